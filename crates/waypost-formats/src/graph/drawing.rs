//! The layout of a graph: places boxes and the edges between them. Boxes may contain boxes, edges have right angles and pass no box.
//!
//! Knows boxes and arrows, not tasks. The same boxes and arrows always give the same drawing. Containers are laid out from the inside
//! out; of several shapes, the one that is largest in the given frame is taken.

use std::collections::BTreeMap;

use super::bands::rows;
use super::columns::{BOX_GAP, columns};
use super::levels::backward;
use super::strip::{Content, End, Node, Placed, Point, Wire, straightened};

/// The room for the title of a container, and the room around its content.
pub const CONTAINER_HEAD: f64 = 34.0;
const CONTAINER_AIR: f64 = 12.0;
/// The heights of the columns in containers that are tried, in boxes of the usual height.
const CONTAINER_COLUMNS: [f64; 3] = [8.0, 4.0, 14.0];
const USUAL_HEIGHT: f64 = 44.0;
/// Maximum number of columns of a container before it gets another row.
const CONTAINER_COLUMNS_MAX: usize = 6;
/// Maximum number of rows that are tried.
const ROWS_MAX: usize = 24;
/// Maximum number of shapes of the whole that are drawn to compare them.
const DRAWN_SHAPES: usize = 6;
/// Boxes up to which several shapes of the containers are drawn.
const COMPARED_BOXES_MAX: usize = 400;
/// Edges up to which several shapes of the whole are drawn.
const COMPARED_EDGES_MAX: usize = 4_000;
/// The ratio of the heights of columns that are tried.
const LIMIT_STEP: f64 = 1.22;
/// How the width and height of a picture that is larger than its frame may relate.
const RATIO_MIN: f64 = 1.2;
const RATIO_MAX: f64 = 2.2;
/// What it costs at most to break the columns into rows, as a share of the size.
const ROW_COST: f64 = 0.3;
/// The width of a channel in an estimate, and the height of the space between two rows.
const CHANNEL_ESTIMATE: f64 = 56.0;
const ROW_GAP_ESTIMATE: f64 = 50.0;

/// A box, or a container of boxes.
#[derive(Clone, Debug)]
pub struct Item {
    /// The size of a box; the minimum width of a container.
    pub size: (f64, f64),
    /// The container, which comes before its content.
    pub parent: Option<usize>,
    pub is_container: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Frame {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// The place of each item.
    pub frames: Vec<Frame>,
    /// The corners of each arrow, from its begin to its end. An arrow between a container and its content has none.
    pub routes: Vec<Vec<Point>>,
    pub width: f64,
    pub height: f64,
}

/// Draws the items for a frame of this width and height: as large as possible in it.
pub fn draw(items: &[Item], arrows: &[(usize, usize)], frame: (f64, f64)) -> Drawing {
    if items.is_empty() {
        return Drawing::default();
    }
    let tree = Tree::of(items, arrows);
    let mut shapes: Vec<f64> = CONTAINER_COLUMNS.to_vec();
    if items.len() > COMPARED_BOXES_MAX || !items.iter().any(|item| item.is_container) {
        shapes.truncate(1);
    }
    let mut hints = vec![0.0; items.len()];
    let mut best: Option<(f64, f64, Drawing)> = None;
    for &shape in &shapes {
        let found = tree.drawn(shape, frame, &hints);
        if best.as_ref().is_none_or(|(badness, _, _)| found.0 < badness - 0.001) {
            best = Some((found.0, shape, found.1));
        }
    }
    let Some((badness, shape, drawing)) = best else { return Drawing::default() };
    if shapes.len() == 1 {
        return drawing;
    }
    // The order inside a container follows what its boxes are connected with outside.
    for (item, hint) in hints.iter_mut().enumerate() {
        *hint = tree.outside_height(item, &drawing);
    }
    let again = tree.drawn(shape, frame, &hints);
    let is_better = again.0 <= badness * 1.05 && crossings(&again.1) <= crossings(&drawing);
    if is_better { again.1 } else { drawing }
}

/// Counts the crossings of the arrows' lines; shared parts count once.
pub fn crossings(drawing: &Drawing) -> usize {
    let (mut flat, mut upright) = (Vec::new(), Vec::new());
    for route in &drawing.routes {
        for pair in route.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            if y0 == y1 {
                flat.push((y0 as i64, x0.min(x1) as i64, x0.max(x1) as i64));
            } else {
                upright.push((x0 as i64, y0.min(y1) as i64, y0.max(y1) as i64));
            }
        }
    }
    let merged = |lines: &mut Vec<(i64, i64, i64)>| {
        lines.sort_unstable();
        let mut kept: Vec<(i64, i64, i64)> = Vec::new();
        for line in lines.drain(..) {
            match kept.last_mut() {
                Some(last) if last.0 == line.0 && line.1 <= last.2 => last.2 = last.2.max(line.2),
                _ => kept.push(line),
            }
        }
        kept
    };
    let (flat, upright) = (merged(&mut flat), merged(&mut upright));
    let mut count = 0;
    for (x, top, bottom) in upright {
        let first = flat.partition_point(|line| line.0 <= top);
        let after = flat.partition_point(|line| line.0 < bottom);
        count +=
            flat[first..after.max(first)].iter().filter(|(_, left, right)| *left < x && x < *right).count();
    }
    count
}

/// The containers, and the wires in each.
struct Tree<'a> {
    items: &'a [Item],
    arrows: &'a [(usize, usize)],
    /// The boxes of each container; the last is the whole.
    children: Vec<Vec<usize>>,
    /// The place of each item among the boxes of its container.
    number: Vec<usize>,
    wires: Vec<Vec<Wire>>,
    /// How many edges cross the left border of each container, and the right one.
    entries: Vec<usize>,
    exits: Vec<usize>,
    /// The wires of each arrow, from the inside of one container out and into another.
    ways: Vec<Vec<(usize, usize)>>,
}

impl<'a> Tree<'a> {
    fn of(items: &'a [Item], arrows: &'a [(usize, usize)]) -> Self {
        let whole = items.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); whole + 1];
        let mut number = Vec::with_capacity(whole);
        for (item, own) in items.iter().enumerate() {
            let parent =
                own.parent.filter(|&parent| parent < item && items[parent].is_container).unwrap_or(whole);
            number.push(children[parent].len());
            children[parent].push(item);
        }
        let mut made = Self {
            items,
            arrows,
            children,
            number,
            wires: vec![Vec::new(); whole + 1],
            entries: vec![0; whole + 1],
            exits: vec![0; whole + 1],
            ways: Vec::with_capacity(arrows.len()),
        };
        made.connect();
        made
    }

    fn parent(&self, item: usize) -> usize {
        let parent =
            self.items[item].parent.filter(|&parent| parent < item && self.items[parent].is_container);
        parent.unwrap_or(self.items.len())
    }

    /// The containers around an item, from the inside out; the last is the whole.
    fn around(&self, item: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut at = item;
        while at != self.items.len() {
            at = self.parent(at);
            found.push(at);
        }
        found
    }

    /// Splits each arrow into wires: one in each container whose border it crosses. Edges that leave a container for the same boxes
    /// share the place where they cross its border, and so do edges that enter it from the same boxes.
    fn connect(&mut self) {
        let around: Vec<Vec<usize>> = (0..self.items.len()).map(|item| self.around(item)).collect();
        let is_within =
            |item: usize, container: usize| item == container || around[item].contains(&container);
        let mut targets: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        let mut sources: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        let mut ends = Vec::with_capacity(self.arrows.len());
        for &(from, to) in self.arrows {
            if is_within(from, to) || is_within(to, from) {
                ends.push(None);
                continue;
            }
            let common = around[from].iter().copied().find(|&container| is_within(to, container));
            let common = common.unwrap_or(self.items.len());
            for &container in around[from].iter().take_while(|&&container| container != common) {
                targets.entry((container, from)).or_default().push(to);
            }
            for &container in around[to].iter().take_while(|&&container| container != common) {
                sources.entry((container, to)).or_default().push(from);
            }
            ends.push(Some((from, to, common)));
        }
        for list in targets.values_mut().chain(sources.values_mut()) {
            list.sort_unstable();
            list.dedup();
        }
        let mut exits: BTreeMap<(usize, &[usize]), usize> = BTreeMap::new();
        let mut entries: BTreeMap<(usize, &[usize]), usize> = BTreeMap::new();
        let mut known: Vec<BTreeMap<Wire, usize>> = vec![BTreeMap::new(); self.items.len() + 1];
        for end in ends {
            let Some((from, to, common)) = end else {
                self.ways.push(Vec::new());
                continue;
            };
            let mut way = Vec::new();
            // Port 0 of a container is its own; the others are where edges cross its border.
            let mut left = End::Node { node: self.number[from], port: 0 };
            for &container in around[from].iter().take_while(|&&container| container != common) {
                let next = self.exits[container];
                let exit = *exits.entry((container, &targets[&(container, from)])).or_insert(next);
                self.exits[container] = self.exits[container].max(exit + 1);
                way.push((container, (left, End::Border(exit))));
                left = End::Node { node: self.number[container], port: exit + 1 };
            }
            let mut right = End::Node { node: self.number[to], port: 0 };
            let mut inwards = Vec::new();
            for &container in around[to].iter().take_while(|&&container| container != common) {
                let next = self.entries[container];
                let entry = *entries.entry((container, &sources[&(container, to)])).or_insert(next);
                self.entries[container] = self.entries[container].max(entry + 1);
                inwards.push((container, (End::Border(entry), right)));
                right = End::Node { node: self.number[container], port: entry + 1 };
            }
            way.push((common, (left, right)));
            way.extend(inwards.into_iter().rev());
            let way = way.into_iter().map(|(container, wire)| {
                let wires = &mut self.wires[container];
                let number = *known[container].entry(wire).or_insert_with(|| {
                    wires.push(wire);
                    wires.len() - 1
                });
                (container, number)
            });
            self.ways.push(way.collect());
        }
    }

    /// Draws everything with containers of this shape. Returns with it how bad it is: how much it must shrink to fit the frame.
    fn drawn(&self, shape: f64, frame: (f64, f64), hints: &[f64]) -> (f64, Drawing) {
        let whole = self.items.len();
        let mut placed: Vec<Option<Placed>> = vec![None; whole + 1];
        for item in (0..whole).rev().filter(|&item| self.items[item].is_container) {
            let content = self.content(item, &placed, hints);
            let columns = Self::columns(&content, shape * (USUAL_HEIGHT + BOX_GAP));
            let count = columns.iter().max().map_or(1, |last| last + 1);
            placed[item] = Some(rows(&content, &columns, count.div_ceil(CONTAINER_COLUMNS_MAX)));
        }
        let content = self.content(whole, &placed, hints);
        let mut best: Option<(f64, Placed)> = None;
        let mut estimates = estimates(&content);
        // How much larger the drawings are than their estimates.
        let mut scale = (1.0, 1.0);
        let shapes = if content.wires.len() > COMPARED_EDGES_MAX { 1 } else { DRAWN_SHAPES };
        for _ in 0..shapes {
            let expected =
                |shape: &Shape| badness((shape.width * scale.0, shape.height * scale.1), frame, shape.rows);
            let next = (0..estimates.len())
                .min_by(|&a, &b| expected(&estimates[a]).total_cmp(&expected(&estimates[b])));
            let Some(shape) = next.map(|next| estimates.remove(next)) else { break };
            if best.as_ref().is_some_and(|(least, _)| expected(&shape) >= *least) {
                break;
            }
            let columns = Self::columns(&content, shape.column_max);
            let found = rows(&content, &columns, shape.rows);
            scale = (found.size.0 / shape.width.max(1.0), found.size.1 / shape.height.max(1.0));
            let badness = badness(found.size, frame, shape.rows);
            if best.as_ref().is_none_or(|(least, _)| badness < *least) {
                best = Some((badness, found));
            }
        }
        let (badness, found) = best.unwrap_or_default();
        placed[whole] = Some(found);
        (badness, self.assembled(&placed))
    }

    fn columns(content: &Content, height_max: f64) -> Vec<usize> {
        let heights: Vec<f64> = content.nodes.iter().map(|node| node.size.1).collect();
        columns(&heights, &forward(content), height_max)
    }

    /// The boxes of a container, whose own containers are laid out.
    fn content(&self, container: usize, placed: &[Option<Placed>], hints: &[f64]) -> Content {
        let node = |&item: &usize| {
            let hint = hints[item];
            match &placed[item] {
                Some(inner) => {
                    let ports = |heights: &[f64]| -> Vec<f64> {
                        std::iter::once(CONTAINER_HEAD / 2.0)
                            .chain(heights.iter().map(|height| height + CONTAINER_HEAD))
                            .collect()
                    };
                    Node {
                        size: self.outer(item, inner),
                        ins: ports(&inner.entries),
                        outs: ports(&inner.exits),
                        hint,
                    }
                }
                None => {
                    let size = self.items[item].size;
                    let middle = vec![(size.1 / 2.0).round()];
                    Node { size, ins: middle.clone(), outs: middle, hint }
                }
            }
        };
        Content {
            nodes: self.children[container].iter().map(node).collect(),
            wires: self.wires[container].clone(),
            entries: self.entries[container],
            exits: self.exits[container],
        }
    }

    fn outer(&self, item: usize, inner: &Placed) -> (f64, f64) {
        let width = (inner.size.0 + 2.0 * CONTAINER_AIR).max(self.items[item].size.0);
        (width, CONTAINER_HEAD + inner.size.1 + CONTAINER_AIR)
    }

    /// Moves everything from the coordinates of its container to those of the whole.
    fn assembled(&self, placed: &[Option<Placed>]) -> Drawing {
        let whole = self.items.len();
        let mut frames = vec![Frame::default(); whole];
        // Where the content of each container begins, and how wide the container is.
        let mut origins = vec![(0.0, 0.0); whole + 1];
        let empty = Placed::default();
        let inner = |container: usize| placed[container].as_ref().unwrap_or(&empty);
        for item in 0..whole {
            let parent = self.parent(item);
            let (x, y) = inner(parent).corners[self.number[item]];
            let (x, y) = (x + origins[parent].0, y + origins[parent].1);
            let (width, height) = match &placed[item] {
                Some(inner) => self.outer(item, inner),
                None => self.items[item].size,
            };
            frames[item] = Frame { x, y, width, height };
            // The content stands in the middle of a container that its title makes wider.
            let indent = ((width - inner(item).size.0) / 2.0).round();
            origins[item] = (x + indent, y + CONTAINER_HEAD);
        }
        let routes = self.ways.iter().map(|way| {
            let mut points: Vec<Point> = Vec::new();
            for &(container, wire) in way {
                let (dx, dy) = origins[container];
                points.extend(inner(container).wires[wire].iter().map(|(x, y)| (x + dx, y + dy)));
            }
            straightened(points)
        });
        let routes = routes.collect();
        let (width, height) = inner(whole).size;
        Drawing { frames, routes, width, height }
    }

    /// The mean height of what an item is connected with outside of its container.
    fn outside_height(&self, item: usize, drawing: &Drawing) -> f64 {
        let parent = self.parent(item);
        let own = drawing.frames[item];
        if parent == self.items.len() {
            return own.y + own.height / 2.0;
        }
        let (mut sum, mut count) = (0.0, 0);
        for &(from, to) in self.arrows.iter().filter(|(from, to)| *from == item || *to == item) {
            let other = if from == item { to } else { from };
            if self.parent(other) != parent {
                sum += drawing.frames[other].y + drawing.frames[other].height / 2.0;
                count += 1;
            }
        }
        if count == 0 { own.y + own.height / 2.0 } else { sum / f64::from(count) }
    }
}

/// The edges between the boxes, without those that close a cycle.
fn forward(content: &Content) -> Vec<(usize, usize)> {
    let between = |&(from, to): &Wire| match (from, to) {
        (End::Node { node: from, .. }, End::Node { node: to, .. }) if from != to => Some((from, to)),
        _ => None,
    };
    let mut arrows: Vec<(usize, usize)> = content.wires.iter().filter_map(between).collect();
    arrows.sort_unstable();
    arrows.dedup();
    let closing = backward(content.nodes.len(), &arrows);
    arrows.into_iter().zip(closing).filter(|(_, closing)| !closing).map(|(arrow, _)| arrow).collect()
}

/// How much a picture must shrink to fit the frame, at least 1; more if its shape is far from that of the frame.
fn badness(size: (f64, f64), frame: (f64, f64), rows: usize) -> f64 {
    let shrinking = (size.0 / frame.0).max(size.1 / frame.1);
    let breaking = 1.0 + ROW_COST * (1.0 - 1.0 / rows.max(1) as f64);
    if shrinking <= 1.0 {
        return breaking;
    }
    // The bounds hold for the usual frame; others move them.
    let ratio = size.0 / size.1 / (frame.0 / frame.1) * 1.6;
    let outside = (RATIO_MIN / ratio).max(ratio / RATIO_MAX).max(1.0);
    shrinking * outside.powi(2) * breaking
}

/// A shape of the whole, with its estimated size.
struct Shape {
    /// Maximum height of a column.
    column_max: f64,
    rows: usize,
    width: f64,
    height: f64,
}

/// Estimates the size of the whole in different shapes. The natural one, without a limit, comes first.
fn estimates(content: &Content) -> Vec<Shape> {
    let heights: Vec<f64> = content.nodes.iter().map(|node| node.size.1).collect();
    let arrows = forward(content);
    let highest = heights.iter().copied().fold(0.0, f64::max);
    let total: f64 = heights.iter().map(|height| height + BOX_GAP).sum();
    let mut limits = vec![f64::INFINITY];
    let mut limit = highest.max(USUAL_HEIGHT);
    while limit < total * 1.3 {
        limits.push(limit);
        limit *= LIMIT_STEP;
    }
    let mut estimates: Vec<Shape> = Vec::new();
    for column_max in limits {
        let columns = columns(&heights, &arrows, column_max);
        let count = columns.iter().max().map_or(1, |last| last + 1);
        let mut sizes = vec![(0.0f64, 0.0f64); count];
        for (node, &column) in content.nodes.iter().zip(&columns) {
            sizes[column].0 = sizes[column].0.max(node.size.0);
            sizes[column].1 += node.size.1 + BOX_GAP;
        }
        let mut before = 0;
        for rows in 1..=count.min(ROWS_MAX) {
            let length = count.div_ceil(rows);
            let rows = count.div_ceil(length);
            if rows == before {
                continue;
            }
            before = rows;
            let lines = || sizes.chunks(length);
            let wide = |line: &[(f64, f64)]| line.iter().map(|size| size.0 + CHANNEL_ESTIMATE).sum::<f64>();
            let high =
                |line: &[(f64, f64)]| line.iter().map(|size| size.1).fold(0.0, f64::max) + ROW_GAP_ESTIMATE;
            let width = lines().map(wide).fold(0.0, f64::max) - CHANNEL_ESTIMATE;
            let height = lines().map(high).sum::<f64>() - ROW_GAP_ESTIMATE;
            estimates.push(Shape { column_max, rows, width, height });
        }
    }
    estimates
}
