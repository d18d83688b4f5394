//! Layered layout: places each box below everything that it waits for, in rows, with few crossings.
//!
//! Knows boxes and arrows, not tasks. The same boxes and arrows always give the same layout. Every step is bounded: nothing here
//! is quadratic in its input.

/// Maximum number of boxes in a row; a wider level is broken into several rows.
const ROW_BOXES_MAX: usize = 12;
/// Maximum number of rows of a level that long arrows pass with bends. Through a level with more rows they run behind the boxes.
const ROWS_WITH_BENDS_MAX: usize = 2;
/// Maximum number of bends in total. Further long arrows are drawn straight, behind the boxes.
const BENDS_MAX: usize = 12_000;
/// Number of passes that improve the order of the boxes.
const ORDER_SWEEPS: usize = 10;
/// Number of passes that move the boxes towards their neighbours.
const PLACE_SWEEPS: usize = 12;
const BOX_GAP: f64 = 28.0;
const BEND_WIDTH: f64 = 6.0;
const BEND_GAP: f64 = 16.0;
const ROW_GAP: f64 = 56.0;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    /// Downwards through these points.
    Down(Vec<(f64, f64)>),
    /// Downwards over more than one row, without bends: behind the boxes.
    Far((f64, f64), (f64, f64)),
    /// Against the order, because it closes a cycle: from the right side of one box to the right side of another.
    Back((f64, f64), (f64, f64)),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Layout {
    /// The upper left corner of each box.
    pub(crate) corners: Vec<(f64, f64)>,
    /// The route of each arrow.
    pub(crate) routes: Vec<Route>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

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

/// Lays out boxes of these sizes.
pub(crate) fn layered(sizes: &[(f64, f64)], arrows: &[(usize, usize)]) -> Layout {
    if sizes.is_empty() {
        return Layout::default();
    }
    let (levels, backward) = levels(sizes.len(), arrows);
    let mut rows = Rows::new(sizes, &levels);
    rows.connect(arrows, &backward);
    rows.order();
    rows.place();
    rows.layout(sizes, arrows, &backward)
}

/// The positions of boxes of one size, for callers that draw by themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// The upper left corner of each box.
    pub corners: Vec<(f64, f64)>,
    pub width: f64,
    pub height: f64,
}

/// Places `count` boxes of one size, each below every box from which an arrow leads to it. The same boxes and arrows always give
/// the same positions.
pub fn places(count: usize, arrows: &[(usize, usize)], size: (f64, f64)) -> Places {
    let Layout { corners, width, height, .. } = layered(&vec![size; count], arrows);
    Places { corners, width, height }
}

/// Boxes and bends in their rows. A bend is a point where a long arrow passes a row.
struct Rows {
    rows: Vec<Vec<usize>>,
    /// For each row, how many rows up to and including it belong to levels that are too wide for bends.
    dense: Vec<usize>,
    row_of: Vec<usize>,
    widths: Vec<f64>,
    boxes: usize,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// The bends of each arrow, from top to bottom; `None` for an arrow that is drawn without.
    bends: Vec<Option<Vec<usize>>>,
    centers: Vec<f64>,
}

impl Rows {
    fn new(sizes: &[(f64, f64)], levels: &[usize]) -> Self {
        let height = levels.iter().max().map_or(0, |level| level + 1);
        let mut by_level: Vec<Vec<usize>> = vec![Vec::new(); height];
        for (node, &level) in levels.iter().enumerate() {
            by_level[level].push(node);
        }
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let mut dense = Vec::new();
        for level in by_level.into_iter().filter(|level| !level.is_empty()) {
            // Fill the rows of a level evenly: two rows of seven rather than twelve and two.
            let lines = level.len().div_ceil(ROW_BOXES_MAX);
            let length = level.len().div_ceil(lines);
            for row in level.chunks(length) {
                rows.push(row.to_vec());
                let before = dense.last().copied().unwrap_or(0);
                dense.push(before + usize::from(lines > ROWS_WITH_BENDS_MAX));
            }
        }
        let mut row_of = vec![0; sizes.len()];
        for (row, nodes) in rows.iter().enumerate() {
            nodes.iter().for_each(|&node| row_of[node] = row);
        }
        Self {
            rows,
            dense,
            row_of,
            widths: sizes.iter().map(|(width, _)| *width).collect(),
            boxes: sizes.len(),
            above: vec![Vec::new(); sizes.len()],
            below: vec![Vec::new(); sizes.len()],
            bends: Vec::new(),
            centers: Vec::new(),
        }
    }

    /// Gives long arrows their bends, shorter arrows first, until the maximum is reached.
    fn connect(&mut self, arrows: &[(usize, usize)], backward: &[bool]) {
        self.bends = vec![None; arrows.len()];
        let span = |&(from, to): &(usize, usize), rows: &[usize]| rows[to].saturating_sub(rows[from]);
        let mut forward: Vec<usize> = (0..arrows.len()).filter(|&n| !backward[n]).collect();
        forward.sort_by_key(|&n| (span(&arrows[n], &self.row_of), n));
        let mut budget = BENDS_MAX;
        for n in forward {
            let (from, to) = arrows[n];
            let needed = span(&arrows[n], &self.row_of).saturating_sub(1);
            let last_between = self.row_of[from] + needed;
            if needed > budget || self.dense[last_between] > self.dense[self.row_of[from]] {
                continue;
            }
            budget -= needed;
            let mut bends = Vec::with_capacity(needed);
            let mut last = from;
            for row in self.row_of[from] + 1..self.row_of[to] {
                let bend = self.row_of.len();
                self.row_of.push(row);
                self.widths.push(BEND_WIDTH);
                self.above.push(Vec::new());
                self.below.push(Vec::new());
                self.rows[row].push(bend);
                self.link(last, bend);
                bends.push(bend);
                last = bend;
            }
            self.link(last, to);
            self.bends[n] = Some(bends);
        }
    }

    fn link(&mut self, upper: usize, lower: usize) {
        self.below[upper].push(lower);
        self.above[lower].push(upper);
    }

    /// Orders each row by the mean position of its neighbours, alternating down and up, and keeps the best order.
    fn order(&mut self) {
        let mut positions = vec![0.0; self.row_of.len()];
        let number = |rows: &[Vec<usize>], positions: &mut [f64]| {
            for row in rows {
                row.iter().enumerate().for_each(|(at, &node)| positions[node] = at as f64);
            }
        };
        number(&self.rows, &mut positions);
        let mut best = (self.crossings(&positions), self.rows.clone());
        for sweep in 0..ORDER_SWEEPS {
            if best.0 == 0 {
                break;
            }
            let down = sweep % 2 == 0;
            let count = self.rows.len();
            for step in 1..count {
                let row = if down { step } else { count - 1 - step };
                let neighbours = if down { &self.above } else { &self.below };
                let mut keyed: Vec<(f64, usize)> = self.rows[row]
                    .iter()
                    .map(|&node| (mean(&neighbours[node], &positions).unwrap_or(positions[node]), node))
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                for (at, (_, node)) in keyed.iter().enumerate() {
                    positions[*node] = at as f64;
                    self.rows[row][at] = *node;
                }
            }
            let crossings = self.crossings(&positions);
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
    }

    /// Counts the pairs of arrows that cross, row by row, with a binary indexed tree.
    fn crossings(&self, positions: &[f64]) -> u64 {
        let mut total = 0;
        for (row, nodes) in self.rows.iter().enumerate() {
            let Some(next) = self.rows.get(row + 1) else { break };
            let mut sums = vec![0u64; next.len() + 1];
            let mut seen = 0u64;
            for &node in nodes {
                let mut ends: Vec<usize> =
                    self.below[node].iter().map(|&to| positions[to] as usize).collect();
                ends.sort_unstable();
                for &end in &ends {
                    let mut at = end + 1;
                    let mut before = 0;
                    while at > 0 {
                        before += sums[at];
                        at &= at - 1;
                    }
                    total += seen - before;
                }
                for &end in &ends {
                    let mut at = end + 1;
                    while at < sums.len() {
                        sums[at] += 1;
                        at += at & at.wrapping_neg();
                    }
                    seen += 1;
                }
            }
        }
        total
    }

    /// Moves the nodes of each row towards their neighbours, without changing their order.
    fn place(&mut self) {
        self.centers = vec![0.0; self.row_of.len()];
        for row in 0..self.rows.len() {
            let offsets = self.offsets(row);
            let middle = offsets.last().copied().unwrap_or(0.0) / 2.0;
            for (&node, offset) in self.rows[row].iter().zip(&offsets) {
                self.centers[node] = offset - middle;
            }
        }
        for sweep in 0..PLACE_SWEEPS {
            let count = self.rows.len();
            for step in 0..count {
                let row = if sweep % 2 == 0 { step } else { count - 1 - step };
                let last = sweep + 2 >= PLACE_SWEEPS;
                self.settle(row, sweep % 2 == 0, last);
            }
        }
    }

    /// Returns the minimum distance of each node of a row from the first.
    fn offsets(&self, row: usize) -> Vec<f64> {
        let mut offsets = Vec::with_capacity(self.rows[row].len());
        let mut at = 0.0;
        let mut previous: Option<usize> = None;
        for &node in &self.rows[row] {
            if let Some(previous) = previous {
                let gap = if previous < self.boxes && node < self.boxes { BOX_GAP } else { BEND_GAP };
                at += (self.widths[previous] + self.widths[node]) / 2.0 + gap;
            }
            offsets.push(at);
            previous = Some(node);
        }
        offsets
    }

    /// Moves each node of a row as close as possible to its desired position: neighbours that would pass each other are merged into
    /// blocks that share the weighted mean of their desired positions.
    fn settle(&mut self, row: usize, from_above: bool, both: bool) {
        struct Block {
            wish: f64,
            weight: f64,
            nodes: usize,
        }
        let offsets = self.offsets(row);
        let mut blocks: Vec<Block> = Vec::new();
        for (&node, offset) in self.rows[row].iter().zip(&offsets) {
            let (first, second) = match from_above {
                true => (&self.above[node], &self.below[node]),
                false => (&self.below[node], &self.above[node]),
            };
            let wish = match (mean(first, &self.centers), mean(second, &self.centers)) {
                (Some(a), Some(b)) if both => (a + b) / 2.0,
                (Some(a), _) => a,
                (None, Some(b)) if both => b,
                (None, _) => self.centers[node],
            };
            // Bends weigh more, so that long arrows run straight.
            let weight = if node < self.boxes { 1.0 } else { 3.0 };
            blocks.push(Block { wish: wish - offset, weight, nodes: 1 });
            while let [.., before, last] = blocks.as_mut_slice()
                && before.wish > last.wish
            {
                let weight = before.weight + last.weight;
                before.wish = (before.wish * before.weight + last.wish * last.weight) / weight;
                before.weight = weight;
                before.nodes += last.nodes;
                blocks.pop();
            }
        }
        let mut at = 0;
        for block in blocks {
            for _ in 0..block.nodes {
                self.centers[self.rows[row][at]] = block.wish + offsets[at];
                at += 1;
            }
        }
    }

    fn layout(&self, sizes: &[(f64, f64)], arrows: &[(usize, usize)], backward: &[bool]) -> Layout {
        let left = (0..self.row_of.len())
            .map(|node| self.centers[node] - self.widths[node] / 2.0)
            .fold(f64::INFINITY, f64::min);
        let right = (0..self.row_of.len())
            .map(|node| self.centers[node] + self.widths[node] / 2.0)
            .fold(f64::NEG_INFINITY, f64::max);
        let mut tops = Vec::with_capacity(self.rows.len());
        let mut heights = Vec::with_capacity(self.rows.len());
        let mut y = 0.0;
        for row in &self.rows {
            let height =
                row.iter().filter(|&&node| node < self.boxes).map(|&node| sizes[node].1).fold(0.0, f64::max);
            tops.push(y);
            heights.push(height);
            y += height + ROW_GAP;
        }
        let center = |node: usize| self.centers[node] - left;
        let corners: Vec<(f64, f64)> = (0..self.boxes)
            .map(|node| {
                let row = self.row_of[node];
                (center(node) - sizes[node].0 / 2.0, tops[row] + (heights[row] - sizes[node].1) / 2.0)
            })
            .collect();
        let ports = self.ports(arrows, backward, &center);
        let routes = arrows
            .iter()
            .enumerate()
            .map(|(n, &(from, to))| {
                let bottom = |node: usize| corners[node].1 + sizes[node].1;
                if backward[n] {
                    let side = |node: usize| {
                        (corners[node].0 + sizes[node].0, corners[node].1 + sizes[node].1 / 2.0)
                    };
                    return Route::Back(side(from), side(to));
                }
                let (start, end) = ((ports[n].0, bottom(from)), (ports[n].1, corners[to].1));
                let Some(bends) = &self.bends[n] else { return Route::Far(start, end) };
                let mut points = vec![start];
                for &bend in bends {
                    let row = self.row_of[bend];
                    points.push((center(bend), tops[row]));
                    points.push((center(bend), tops[row] + heights[row]));
                }
                points.push(end);
                Route::Down(points)
            })
            .collect();
        Layout { corners, routes, width: right - left, height: (y - ROW_GAP).max(0.0) }
    }

    /// Returns where each arrow leaves its first box and meets its second: side by side, in the order of the other ends.
    fn ports(
        &self,
        arrows: &[(usize, usize)],
        backward: &[bool],
        center: &impl Fn(usize) -> f64,
    ) -> Vec<(f64, f64)> {
        let mut ports: Vec<(f64, f64)> =
            arrows.iter().map(|&(from, to)| (center(from), center(to))).collect();
        let mut leaving: Vec<Vec<(f64, usize)>> = vec![Vec::new(); self.boxes];
        let mut meeting = leaving.clone();
        for (n, &(from, to)) in arrows.iter().enumerate().filter(|(n, _)| !backward[*n]) {
            let bends = self.bends[n].as_deref().unwrap_or_default();
            leaving[from].push((center(bends.first().copied().unwrap_or(to)), n));
            meeting[to].push((center(bends.last().copied().unwrap_or(from)), n));
        }
        for node in 0..self.boxes {
            for (ends, is_leaving) in [(&mut leaving[node], true), (&mut meeting[node], false)] {
                ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let step = (self.widths[node] * 0.6 / ends.len().max(1) as f64).min(14.0);
                let first = -step * (ends.len().saturating_sub(1) as f64) / 2.0;
                for (turn, (_, n)) in ends.iter().enumerate() {
                    let x = center(node) + first + step * turn as f64;
                    if is_leaving {
                        ports[*n].0 = x;
                    } else {
                        ports[*n].1 = x;
                    }
                }
            }
        }
        ports
    }
}

fn mean(nodes: &[usize], values: &[f64]) -> Option<f64> {
    let sum: f64 = nodes.iter().map(|&node| values[node]).sum();
    (!nodes.is_empty()).then(|| sum / nodes.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(count: usize) -> Vec<(f64, f64)> {
        vec![(100.0, 40.0); count]
    }

    fn overlaps(layout: &Layout, sizes: &[(f64, f64)]) -> bool {
        let apart = |a: usize, b: usize| {
            let ((ax, ay), (bx, by)) = (layout.corners[a], layout.corners[b]);
            ax + sizes[a].0 <= bx || bx + sizes[b].0 <= ax || ay + sizes[a].1 <= by || by + sizes[b].1 <= ay
        };
        (0..sizes.len()).any(|a| (0..a).any(|b| !apart(a, b)))
    }

    #[test]
    fn every_box_stands_below_what_it_waits_for_and_none_overlap() {
        let arrows = [(0, 2), (1, 2), (2, 3), (0, 3), (0, 4), (4, 5), (3, 5)];
        let sizes = boxes(6);
        let layout = layered(&sizes, &arrows);
        for (from, to) in arrows {
            assert!(layout.corners[from].1 + 40.0 < layout.corners[to].1, "{from} stands above {to}");
        }
        assert!(!overlaps(&layout, &sizes));
        assert_eq!(layout, layered(&sizes, &arrows), "the same boxes stand in the same places");
    }

    #[test]
    fn a_circle_does_not_stop_the_picture() {
        let layout = layered(&boxes(3), &[(0, 1), (1, 2), (2, 0), (1, 1)]);
        let back = layout.routes.iter().filter(|route| matches!(route, Route::Back(..))).count();
        assert_eq!(back, 2);
    }

    #[test]
    fn a_level_wider_than_a_row_is_broken_into_rows() {
        let sizes = boxes(100);
        let layout = layered(&sizes, &[]);
        assert!(layout.width < 13.0 * 130.0 && !overlaps(&layout, &sizes));
    }

    #[test]
    fn arrows_do_not_cross_where_they_need_not() {
        // Two chains whose boxes are in the wrong order at first.
        let arrows = [(0, 3), (1, 2), (3, 4), (2, 5)];
        let layout = layered(&boxes(6), &arrows);
        let side = |upper: usize, lower: usize| layout.corners[upper].0 < layout.corners[lower].0;
        assert_eq!(side(0, 1), side(3, 2));
        assert_eq!(side(3, 2), side(4, 5));
    }
}
