//! Builds the tree and the dependencies of a merged plan, oldest first, and sets aside what would make tasks wait for each
//! other.
//!
//! A task ends after it begins and after its children end; it begins after its dependencies have ended and its parent
//! has begun. The order of these moments is kept as edges come (Pearce and Kelly), so that an edge costs what lies between
//! its ends in that order. Edges that are in no cycle even if all of them hold are accepted beforehand.

use std::collections::{HashMap, HashSet};

use waypost_core::limits;

/// Where a structural action stands in the total order: the number of its record, and its place there.
pub(super) type Order = (u32, u32, u32);

/// A dependency that somebody added.
pub(super) struct Edge {
    pub(super) order: Order,
    pub(super) task: u32,
    pub(super) on: u32,
}

/// A place that a task could have, best first.
pub(super) struct Candidate {
    pub(super) order: Order,
    /// `None` for a root.
    pub(super) parent: Option<u32>,
}

/// Why an edge does not hold.
pub(super) struct Rejected {
    /// The tasks that would wait for each other; empty if the tree would be too deep.
    pub(super) path: Vec<u32>,
    /// The number of the newest record among those that it does not go with.
    pub(super) by: Option<u32>,
}

pub(super) struct Structure {
    /// The parent of each task.
    pub(super) parent: Vec<Option<u32>>,
    /// The candidates that were passed over, by task and place in its list.
    pub(super) passed_over: Vec<(u32, usize, Rejected)>,
    /// The dependencies that do not hold, by place in the list.
    pub(super) rejected: Vec<(usize, Rejected)>,
}

/// Chooses parents and dependencies for `count` tasks. `places[task]` are its candidates; after them it is a root.
pub(super) fn build(count: usize, places: &[Vec<Candidate>], edges: &[Edge]) -> Structure {
    let mut structure = Structure {
        parent: places.iter().map(|places| places.first().and_then(|place| place.parent)).collect(),
        passed_over: Vec::new(),
        rejected: Vec::new(),
    };
    let all = Arrows::of(count, &structure.parent, edges, |_| true, |_| true);
    let component = all.components();
    if component.is_some() {
        let component = component.unwrap_or_default();
        let inside = |from: u32, to: u32| component[from as usize] == component[to as usize];
        choose(count, places, edges, &inside, &mut structure);
    }
    cut_depth(&mut structure);
    structure
}

fn begin(task: u32) -> u32 {
    task * 2
}

fn end(task: u32) -> u32 {
    task * 2 + 1
}

/// Decides about everything that may be part of a cycle, oldest first.
fn choose(
    count: usize,
    places: &[Vec<Candidate>],
    edges: &[Edge],
    inside: &dyn Fn(u32, u32) -> bool,
    structure: &mut Structure,
) {
    let is_parent_free =
        |task: u32, parent: u32| !inside(begin(parent), begin(task)) && !inside(end(task), end(parent));
    let is_edge_free = |edge: &Edge| edge.on != edge.task && !inside(end(edge.on), begin(edge.task));
    let first = structure.parent.clone();
    let arrows = Arrows::of(
        count,
        &first,
        edges,
        |task| first[task as usize].is_some_and(|parent| is_parent_free(task, parent)),
        is_edge_free,
    );
    let mut moments = Moments::of(&arrows);
    enum Item {
        Place(u32),
        Edge(usize),
    }
    let mut items: Vec<(Order, Item)> = Vec::new();
    for (task, &parent) in first.iter().enumerate() {
        if parent.is_some_and(|parent| !is_parent_free(task as u32, parent)) {
            items.push((places[task][0].order, Item::Place(task as u32)));
        }
    }
    for (number, edge) in edges.iter().enumerate().filter(|(_, edge)| !is_edge_free(edge)) {
        items.push((edge.order, Item::Edge(number)));
    }
    items.sort_by_key(|(order, _)| *order);
    for (_, item) in items {
        match item {
            Item::Edge(number) => {
                let Edge { order, task, on } = edges[number];
                if let Err(rejected) = moments.add_dependency(task, on, order.0) {
                    structure.rejected.push((number, rejected));
                }
            }
            Item::Place(task) => {
                structure.parent[task as usize] = None;
                for (place, candidate) in places[task as usize].iter().enumerate() {
                    let Some(parent) = candidate.parent else { break };
                    match moments.add_parent(task, parent, candidate.order.0) {
                        Ok(()) => {
                            structure.parent[task as usize] = Some(parent);
                            break;
                        }
                        Err(rejected) => structure.passed_over.push((task, place, rejected)),
                    }
                }
            }
        }
    }
}

/// Makes roots of tasks that lie too deep.
fn cut_depth(structure: &mut Structure) {
    let count = structure.parent.len();
    let mut depth: Vec<Option<usize>> = vec![None; count];
    for task in 0..count as u32 {
        let (mut line, mut at) = (Vec::new(), task);
        let above = loop {
            match (depth[at as usize], structure.parent[at as usize]) {
                (Some(depth), _) => break Some(depth),
                (None, parent) => {
                    line.push(at);
                    match parent {
                        Some(parent) => at = parent,
                        None => break None,
                    }
                }
            }
        };
        let mut next = above.map_or(0, |above| above + 1);
        for member in line.into_iter().rev() {
            if next > limits::DEPTH_MAX {
                structure.parent[member as usize] = None;
                structure.passed_over.push((member, 0, Rejected { path: Vec::new(), by: None }));
                next = 0;
            }
            depth[member as usize] = Some(next);
            next += 1;
        }
    }
}

/// Which moments come directly after each moment.
struct Arrows {
    after: Vec<Vec<(u32, u32)>>,
}

impl Arrows {
    fn of(
        count: usize,
        parent: &[Option<u32>],
        edges: &[Edge],
        takes_parent: impl Fn(u32) -> bool,
        takes_edge: impl Fn(&Edge) -> bool,
    ) -> Self {
        let mut after: Vec<Vec<(u32, u32)>> = vec![Vec::new(); count * 2];
        for task in 0..count as u32 {
            after[begin(task) as usize].push((end(task), u32::MAX));
            if let Some(parent) = parent[task as usize].filter(|_| takes_parent(task)) {
                after[begin(parent) as usize].push((begin(task), u32::MAX));
                after[end(task) as usize].push((end(parent), u32::MAX));
            }
        }
        for edge in edges.iter().filter(|edge| takes_edge(edge)) {
            after[end(edge.on) as usize].push((begin(edge.task), edge.order.0));
        }
        Self { after }
    }

    /// Returns all moments in an order in which they can happen; those in cycles, and after them, are missing.
    fn order(&self) -> Vec<u32> {
        let mut waits = vec![0u32; self.after.len()];
        for (to, _) in self.after.iter().flatten() {
            waits[*to as usize] += 1;
        }
        let mut order: Vec<u32> =
            (0..self.after.len() as u32).filter(|&at| waits[at as usize] == 0).collect();
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            for (to, _) in &self.after[at as usize] {
                waits[*to as usize] -= 1;
                if waits[*to as usize] == 0 {
                    order.push(*to);
                }
            }
        }
        order
    }

    /// Returns the strongly connected component of each moment; `None` if there is no cycle.
    fn components(&self) -> Option<Vec<u32>> {
        let has_self_edge =
            self.after.iter().enumerate().any(|(from, to)| to.iter().any(|(to, _)| *to == from as u32));
        if self.order().len() == self.after.len() && !has_self_edge {
            return None;
        }
        // Tarjan's algorithm with a stack of its own.
        let count = self.after.len();
        let (mut index, mut low) = (vec![u32::MAX; count], vec![0u32; count]);
        let mut component = vec![u32::MAX; count];
        let (mut open, mut next, mut components) = (Vec::new(), 0u32, 0u32);
        for start in 0..count as u32 {
            if index[start as usize] != u32::MAX {
                continue;
            }
            let mut path: Vec<(u32, usize)> = vec![(start, 0)];
            while let Some((at, edge)) = path.last_mut() {
                let here = *at as usize;
                if *edge == 0 && index[here] == u32::MAX {
                    (index[here], low[here]) = (next, next);
                    next += 1;
                    open.push(*at);
                }
                if let Some((to, _)) = self.after[here].get(*edge) {
                    *edge += 1;
                    let to = *to;
                    if index[to as usize] == u32::MAX {
                        path.push((to, 0));
                    } else if component[to as usize] == u32::MAX {
                        low[here] = low[here].min(index[to as usize]);
                    }
                    continue;
                }
                if low[here] == index[here] {
                    while let Some(member) = open.pop() {
                        component[member as usize] = components;
                        if member as usize == here {
                            break;
                        }
                    }
                    components += 1;
                }
                let below = low[here];
                path.pop();
                if let Some((above, _)) = path.last() {
                    low[*above as usize] = low[*above as usize].min(below);
                }
            }
        }
        Some(component)
    }
}

/// The moments of a graph without cycles, in an order that is kept up as edges are added.
struct Moments {
    /// Each with the record of the edge.
    after: Vec<Vec<(u32, u32)>>,
    before: Vec<Vec<u32>>,
    place: Vec<u32>,
}

impl Moments {
    fn of(arrows: &Arrows) -> Self {
        let count = arrows.after.len();
        let (mut before, mut place) = (vec![Vec::new(); count], vec![0; count]);
        for (from, to) in arrows.after.iter().enumerate() {
            to.iter().for_each(|(to, _)| before[*to as usize].push(from as u32));
        }
        for (number, at) in arrows.order().into_iter().enumerate() {
            place[at as usize] = number as u32;
        }
        Self { after: arrows.after.clone(), before, place }
    }

    fn add_dependency(&mut self, task: u32, on: u32, record: u32) -> Result<(), Rejected> {
        if task == on {
            return Err(Rejected { path: vec![task, task], by: None });
        }
        self.add(end(on), begin(task), record)
    }

    fn add_parent(&mut self, task: u32, parent: u32, record: u32) -> Result<(), Rejected> {
        if task == parent {
            return Err(Rejected { path: vec![task, task], by: None });
        }
        self.add(begin(parent), begin(task), record)?;
        self.add(end(task), end(parent), record).inspect_err(|_| {
            self.after[begin(parent) as usize].pop();
            self.before[begin(task) as usize].pop();
        })
    }

    /// Adds that `from` comes before `to`, unless `to` comes before `from` already.
    fn add(&mut self, from: u32, to: u32, record: u32) -> Result<(), Rejected> {
        let (low, high) = (self.place[to as usize], self.place[from as usize]);
        if low < high {
            let forward = self.forward(to, from, high).map_err(|path| self.rejected(&path))?;
            let mut backward: Vec<u32> = vec![from];
            let mut seen: HashSet<u32> = HashSet::from([from]);
            let mut next = 0;
            while let Some(&at) = backward.get(next) {
                next += 1;
                let above = self.before[at as usize].iter().copied();
                backward
                    .extend(above.filter(|&above| self.place[above as usize] > low && seen.insert(above)));
            }
            // What comes before `from` takes the first places, what comes after `to` the last ones.
            let by_place = |list: &mut Vec<u32>| list.sort_by_key(|&at| self.place[at as usize]);
            let mut forward = forward;
            by_place(&mut forward);
            by_place(&mut backward);
            backward.extend(forward);
            let mut places: Vec<u32> = backward.iter().map(|&at| self.place[at as usize]).collect();
            places.sort_unstable();
            for (at, place) in backward.into_iter().zip(places) {
                self.place[at as usize] = place;
            }
        }
        self.after[from as usize].push((to, record));
        self.before[to as usize].push(from);
        Ok(())
    }

    /// Returns what can be reached from `start` within the order, or the way to `goal` if it is among that.
    fn forward(&self, start: u32, goal: u32, high: u32) -> Result<Vec<u32>, Vec<(u32, u32)>> {
        let mut came_from: HashMap<u32, (u32, u32)> = HashMap::new();
        let mut found = vec![start];
        let mut next = 0;
        while let Some(&at) = found.get(next) {
            next += 1;
            if at == goal {
                let (mut way, mut back) = (vec![(goal, u32::MAX)], goal);
                while back != start {
                    let Some(&(above, record)) = came_from.get(&back) else { break };
                    way.push((above, record));
                    back = above;
                }
                way.reverse();
                return Err(way);
            }
            for &(to, record) in &self.after[at as usize] {
                if self.place[to as usize] <= high && to != start && !came_from.contains_key(&to) {
                    came_from.insert(to, (at, record));
                    found.push(to);
                }
            }
        }
        Ok(found)
    }

    fn rejected(&self, way: &[(u32, u32)]) -> Rejected {
        let mut path: Vec<u32> = way.iter().map(|(moment, _)| moment / 2).collect();
        path.dedup();
        // Each task waits for the next one.
        path.reverse();
        let by = way.iter().map(|(_, record)| *record).filter(|record| *record != u32::MAX).max();
        Rejected { path, by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(list: &[(u32, u32)]) -> Vec<Edge> {
        let edge =
            |(number, &(task, on)): (usize, &(u32, u32))| Edge { order: (number as u32, 0, 0), task, on };
        list.iter().enumerate().map(edge).collect()
    }

    fn roots(count: usize) -> Vec<Vec<Candidate>> {
        (0..count).map(|_| Vec::new()).collect()
    }

    fn under(order: u32, parent: u32) -> Vec<Candidate> {
        vec![Candidate { order: (order, 0, 0), parent: Some(parent) }]
    }

    #[test]
    fn the_newest_edge_of_a_cycle_is_set_aside() {
        let list = edges(&[(0, 1), (1, 2), (3, 0), (2, 0)]);
        let built = build(4, &roots(4), &list);
        assert_eq!(built.rejected.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [3]);
        let (_, rejected) = &built.rejected[0];
        assert_eq!(rejected.by, Some(1));
        assert_eq!(rejected.path.len(), 3, "{:?}", rejected.path);
        let itself = build(1, &roots(1), &edges(&[(0, 0)]));
        assert_eq!(itself.rejected.len(), 1);
    }

    #[test]
    fn a_place_that_closes_a_cycle_gives_way_to_the_next_one() {
        // 0 under 1 under 2 under 0: the newest falls back to 3, which is older.
        let mut places = vec![under(10, 1), under(11, 2), under(12, 0), Vec::new()];
        places[2].push(Candidate { order: (5, 0, 0), parent: Some(3) });
        let built = build(4, &places, &[]);
        assert_eq!(built.parent, [Some(1), Some(2), Some(3), None]);
        assert_eq!(built.passed_over.len(), 1);
        // A child cannot wait for its parent.
        let built = build(2, &[under(1, 1), Vec::new()], &edges(&[(0, 1)]));
        assert_eq!((built.parent, built.rejected.len(), built.passed_over.len()), (vec![None, None], 0, 1));
    }

    #[test]
    fn what_lies_too_deep_becomes_a_root() {
        let count = limits::DEPTH_MAX + 2;
        let places: Vec<Vec<Candidate>> = (0..count as u32)
            .map(|task| if task == 0 { Vec::new() } else { under(task, task - 1) })
            .collect();
        let built = build(count, &places, &[]);
        assert_eq!((built.parent[count - 1], built.passed_over.len()), (None, 1));
        assert_eq!(built.parent[count - 2], Some(count as u32 - 3));
    }
}
