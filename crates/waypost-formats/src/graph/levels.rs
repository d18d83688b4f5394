//! Levels of a directed graph: how far each node is from those that wait for nothing, and which arrows close a cycle.

/// Returns the level of each node (0 waits for nothing), and which arrows close a cycle and were ignored.
pub(crate) fn levels(count: usize, arrows: &[(usize, usize)]) -> (Vec<usize>, Vec<bool>) {
    let backward = backward(count, arrows);
    let forward = arrows.iter().zip(&backward).filter(|(_, backward)| !**backward);
    let forward: Vec<(usize, usize)> = forward.map(|(arrow, _)| *arrow).collect();
    let mut levels = depths(count, &forward);
    let (mut is_source, mut lowest) = (vec![true; count], vec![usize::MAX; count]);
    for &(from, to) in &forward {
        is_source[to] = false;
        lowest[from] = lowest[from].min(levels[to]);
    }
    // A node that waits for nothing goes right above the first that waits for it, not to the very top.
    for node in (0..count).filter(|&node| is_source[node] && lowest[node] != usize::MAX) {
        levels[node] = lowest[node].saturating_sub(1);
    }
    (levels, backward)
}

/// Returns the length of the longest path to each node, in arrows. The arrows must not contain a cycle.
pub fn depths(count: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let mut waiting = vec![0usize; count];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &(from, to) in arrows {
        waiting[to] += 1;
        next[from].push(to);
    }
    let mut depths = vec![0usize; count];
    let mut free: Vec<usize> = (0..count).filter(|&node| waiting[node] == 0).collect();
    while let Some(node) = free.pop() {
        for &after in &next[node] {
            depths[after] = depths[after].max(depths[node] + 1);
            waiting[after] -= 1;
            if waiting[after] == 0 {
                free.push(after);
            }
        }
    }
    depths
}

/// Returns which arrows close a cycle: those that lead to a node on the current path of the depth-first search.
pub fn backward(count: usize, arrows: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        Never,
        Open,
        Done,
    }
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (n, &(from, _)) in arrows.iter().enumerate() {
        next[from].push(n);
    }
    let mut backward = vec![false; arrows.len()];
    let mut visits = vec![Visit::Never; count];
    for start in 0..count {
        if visits[start] != Visit::Never {
            continue;
        }
        visits[start] = Visit::Open;
        let mut path = vec![(start, 0)];
        while let Some((node, turn)) = path.last_mut() {
            let Some(&arrow) = next[*node].get(*turn) else {
                visits[*node] = Visit::Done;
                path.pop();
                continue;
            };
            *turn += 1;
            let to = arrows[arrow].1;
            match visits[to] {
                Visit::Never => {
                    visits[to] = Visit::Open;
                    path.push((to, 0));
                }
                Visit::Open => backward[arrow] = true,
                Visit::Done => {}
            }
        }
    }
    backward
}
