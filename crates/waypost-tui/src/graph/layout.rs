//! The layer and row of each node. Knows nodes and arrows, not tasks.

use waypost_formats::{backward, depths};

/// Number of passes that improve the order inside the layers.
const SWEEPS: usize = 6;

/// Nodes, and bends of arrows that span more than one layer.
pub(super) struct Layout {
    /// The layer of each node and bend.
    pub(super) layer: Vec<usize>,
    /// The row of each node and bend.
    pub(super) y: Vec<usize>,
    /// The nodes and bends of each layer, from top to bottom.
    pub(super) layers: Vec<Vec<usize>>,
    /// Parts of arrows from one layer to the next: from, to, and the index of the arrow.
    pub(super) parts: Vec<(usize, usize, usize)>,
    pub(super) arrows: Vec<(usize, usize)>,
    /// Nodes at the ends of an arrow that closes a cycle.
    pub(super) cycles: Vec<bool>,
    /// The number of nodes; higher indices are bends.
    pub(super) nodes: usize,
}

impl Layout {
    pub(super) fn of(nodes: usize, arrows: &[(usize, usize)], rows: usize) -> Self {
        let back = backward(nodes, arrows);
        let mut cycles = vec![false; nodes];
        for (&(from, to), _) in arrows.iter().zip(&back).filter(|(_, back)| **back) {
            (cycles[from], cycles[to]) = (true, true);
        }
        let forth: Vec<(usize, usize)> =
            arrows.iter().zip(&back).filter(|(_, back)| !**back).map(|(arrow, _)| *arrow).collect();
        let mut layer = depths(nodes, &forth);
        let mut parts = Vec::new();
        for (which, &(from, to)) in forth.iter().enumerate() {
            let mut last = from;
            for between in layer[from] + 1..layer[to] {
                layer.push(between);
                parts.push((last, layer.len() - 1, which));
                last = layer.len() - 1;
            }
            parts.push((last, to, which));
        }
        let depth = layer.iter().max().map_or(0, |deepest| deepest + 1);
        let mut layers = vec![Vec::new(); depth];
        for (node, &at) in layer.iter().enumerate() {
            layers[at].push(node);
        }
        let mut layout = Self { y: vec![0; layer.len()], layer, layers, parts, arrows: forth, cycles, nodes };
        layout.sort();
        let widest = layout.layers.iter().map(Vec::len).max().unwrap_or(0);
        layout.place(if widest * 2 <= rows.max(1) + 1 { 2 } else { 1 });
        layout
    }

    /// Moves each node towards the mean position of its neighbours, to reduce crossings.
    fn sort(&mut self) {
        let count = self.layer.len();
        let (mut before, mut after) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for &(from, to, _) in &self.parts {
            after[from].push(to);
            before[to].push(from);
        }
        let mut at = vec![0usize; count];
        let note = |layer: &[usize], at: &mut Vec<usize>| {
            layer.iter().enumerate().for_each(|(place, &node)| at[node] = place);
        };
        self.layers.iter().for_each(|layer| note(layer, &mut at));
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let next = if down { &before } else { &after };
            let turns: Vec<usize> =
                if down { (0..self.layers.len()).collect() } else { (0..self.layers.len()).rev().collect() };
            for turn in turns {
                let middle = |node: usize| {
                    let all = &next[node];
                    if all.is_empty() {
                        return at[node] * 1000;
                    };
                    all.iter().map(|&other| at[other]).sum::<usize>() * 1000 / all.len()
                };
                let mut keyed: Vec<(usize, usize)> =
                    self.layers[turn].iter().map(|&node| (middle(node), node)).collect();
                keyed.sort_by_key(|(middle, _)| *middle);
                self.layers[turn] = keyed.into_iter().map(|(_, node)| node).collect();
                note(&self.layers[turn], &mut at);
            }
        }
    }

    /// Assigns rows: each node as near as possible to the mean row of its predecessors, at least `gap` below the node above.
    fn place(&mut self, gap: usize) {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.layer.len()];
        for &(from, to, _) in &self.parts {
            before[to].push(from);
        }
        let highest = self.layers.iter().map(|layer| layer.len().saturating_sub(1) * gap).max().unwrap_or(0);
        for layer in &self.layers {
            let mut free = 0;
            for (place, &node) in layer.iter().enumerate() {
                let wanted = match before[node].as_slice() {
                    [] => free,
                    all => all.iter().map(|&on| self.y[on]).sum::<usize>() / all.len(),
                };
                // Leaves room for the nodes below.
                let latest = highest.saturating_sub((layer.len() - 1 - place) * gap);
                self.y[node] = wanted.min(latest).max(free);
                free = self.y[node] + gap;
            }
        }
    }
}
