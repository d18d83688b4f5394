//! A row of columns: boxes from left to right, and edges with right angles that pass no box.
//!
//! Edges between neighbouring columns run through the channel between them. A longer edge passes each column on the way at a height
//! of its own; edges with the same source, or the same targets, share it. An edge against the order runs below the boxes.

use std::collections::{BTreeMap, BTreeSet};

use super::channel::{Net, SAME, tracks};
use super::order::{Element, Link, Order};

/// Maximum number of points where edges pass columns. Further long edges run below the boxes.
const PASSES_MAX: usize = 6_000;
/// The height that a passing edge takes in a column.
const LINE_HEIGHT: f64 = 8.0;
/// The distance of two tracks.
pub(crate) const TRACK_GAP: f64 = 8.0;
/// Minimum width of a channel between boxes, and what it has beside its tracks: room for the head of an arrow.
const CHANNEL_WIDTH_MIN: f64 = 40.0;
const CHANNEL_AIR: f64 = 16.0;
/// The width of the space beside the first and the last column, if edges cross the border there.
const BORDER_WIDTH_MIN: f64 = 16.0;

pub(crate) type Point = (f64, f64);

/// A box, with the heights at which edges meet its left side and leave its right side.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) size: (f64, f64),
    pub(crate) ins: Vec<f64>,
    pub(crate) outs: Vec<f64>,
    /// Where it should be among the others of its column before the order is improved.
    pub(crate) hint: f64,
}

/// The end of an edge: at a box, or at the border.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum End {
    Node { node: usize, port: usize },
    Border(usize),
}

/// An edge from one end to another. From the border it enters, to the border it leaves.
pub(crate) type Wire = (End, End);

#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) nodes: Vec<Node>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) entries: usize,
    pub(crate) exits: usize,
}

/// Where everything is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placed {
    pub(crate) corners: Vec<Point>,
    pub(crate) wires: Vec<Vec<Point>>,
    /// The heights at which edges cross the left border and the right one.
    pub(crate) entries: Vec<f64>,
    pub(crate) exits: Vec<f64>,
    pub(crate) size: (f64, f64),
}

/// A port of an element: the element, and the number of the port.
type Pin = (usize, usize);

struct Strip<'a> {
    content: &'a Content,
    count: usize,
    elements: Vec<Element>,
    /// For each source, the pins in the next column that it leads to.
    steps: BTreeMap<Pin, BTreeSet<Pin>>,
    /// The first passing point of each source of a chain, and the chain itself: its first column and its elements.
    chain_of: BTreeMap<Pin, usize>,
    chains: Vec<(usize, Vec<usize>)>,
    /// The sources of edges that run below the boxes, with their targets.
    below: BTreeMap<Pin, BTreeSet<Pin>>,
}

/// Lays out boxes whose columns are known.
pub(crate) fn strip(content: &Content, columns: &[usize]) -> Placed {
    let mut strip = Strip::new(content, columns);
    strip.connect();
    strip.place()
}

impl<'a> Strip<'a> {
    fn new(content: &'a Content, columns: &[usize]) -> Self {
        let count = columns.iter().max().map_or(0, |last| last + 1) + 2;
        let mut elements: Vec<Element> = content
            .nodes
            .iter()
            .zip(columns)
            .map(|(node, column)| Element {
                column: column + 1,
                height: node.size.1,
                is_box: true,
                hint: node.hint,
            })
            .collect();
        let border = |column| Element { column, height: LINE_HEIGHT, is_box: false, hint: 0.0 };
        elements.extend((0..content.entries).map(|_| border(0)));
        elements.extend((0..content.exits).map(|_| border(count - 1)));
        Self {
            content,
            count,
            elements,
            steps: BTreeMap::new(),
            chain_of: BTreeMap::new(),
            chains: Vec::new(),
            below: BTreeMap::new(),
        }
    }

    fn source(&self, end: End) -> Pin {
        match end {
            End::Node { node, port } => (node, port),
            End::Border(entry) => (self.content.nodes.len() + entry, 0),
        }
    }

    fn target(&self, end: End) -> Pin {
        match end {
            End::Node { node, port } => (node, port),
            End::Border(exit) => (self.content.nodes.len() + self.content.entries + exit, 0),
        }
    }

    /// Gives long edges their passing points, shorter ones first, until the maximum is reached.
    fn connect(&mut self) {
        let mut far: BTreeMap<Pin, BTreeSet<Pin>> = BTreeMap::new();
        for &(from, to) in &self.content.wires {
            let (source, target) = (self.source(from), self.target(to));
            let (left, right) = (self.elements[source.0].column, self.elements[target.0].column);
            let kind = if right == left + 1 {
                &mut self.steps
            } else if right > left {
                &mut far
            } else {
                &mut self.below
            };
            kind.entry(source).or_default().insert(target);
        }
        // Sources with the same targets share the way.
        let mut shared: BTreeMap<BTreeSet<Pin>, Vec<Pin>> = BTreeMap::new();
        for (source, targets) in far {
            shared.entry(targets).or_default().push(source);
        }
        let mut ways: Vec<(usize, usize, BTreeSet<Pin>, Vec<Pin>)> = shared
            .into_iter()
            .map(|(targets, sources)| {
                let first = sources.iter().map(|pin| self.elements[pin.0].column + 1).min().unwrap_or(0);
                let last = targets.iter().map(|pin| self.elements[pin.0].column).max().unwrap_or(0);
                (first, last, targets, sources)
            })
            .collect();
        ways.sort_by_key(|(first, last, _, sources)| (last - first, *first, sources[0]));
        let mut budget = PASSES_MAX;
        for (first, last, targets, sources) in ways {
            let Some(left) = budget.checked_sub(last - first) else {
                for source in sources {
                    self.below.entry(source).or_default().extend(&targets);
                }
                continue;
            };
            budget = left;
            self.chain(first, last, &targets, &sources);
        }
    }

    fn chain(&mut self, first: usize, last: usize, targets: &BTreeSet<Pin>, sources: &[Pin]) {
        let begin = self.elements.len();
        let hint = sources.iter().map(|pin| self.elements[pin.0].hint).sum::<f64>() / sources.len() as f64;
        for column in first..last {
            self.elements.push(Element { column, height: LINE_HEIGHT, is_box: false, hint });
        }
        let chain: Vec<usize> = (begin..self.elements.len()).collect();
        for pair in chain.windows(2) {
            self.steps.entry((pair[0], 0)).or_default().insert((pair[1], 0));
        }
        for &source in sources {
            let next = chain[self.elements[source.0].column + 1 - first];
            self.steps.entry(source).or_default().insert((next, 0));
            self.chain_of.insert(source, self.chains.len());
        }
        for &target in targets {
            let before = chain[self.elements[target.0].column - 1 - first];
            self.steps.entry((before, 0)).or_default().insert(target);
        }
        self.chains.push((first, chain));
    }

    /// The height of a port, from the top of its element.
    fn out_at(&self, (element, port): Pin) -> f64 {
        match self.content.nodes.get(element) {
            Some(node) => node.outs[port],
            None => LINE_HEIGHT / 2.0,
        }
    }

    fn in_at(&self, (element, port): Pin) -> f64 {
        match self.content.nodes.get(element) {
            Some(node) => node.ins[port],
            None => LINE_HEIGHT / 2.0,
        }
    }

    fn place(self) -> Placed {
        let links: Vec<Link> = self
            .steps
            .iter()
            .flat_map(|(&from, targets)| targets.iter().map(move |&to| (from, to)))
            .map(|(from, to)| Link {
                left: from.0,
                left_at: self.out_at(from),
                right: to.0,
                right_at: self.in_at(to),
            })
            .collect();
        let tops = Order::of(&self.elements, &links, self.count).tops();
        let heights = self.elements.iter().zip(&tops).map(|(element, top)| top + element.height);
        let mut height = heights.fold(0.0, f64::max);
        let lanes = self.lanes(height);
        if let Some(lowest) = lanes.values().copied().reduce(f64::max) {
            height = lowest + TRACK_GAP;
        }
        let channels = self.channels(&tops, &lanes);
        let (lefts, width) = self.lefts(&channels);
        let xs = |element: usize, is_right: bool| match self.content.nodes.get(element) {
            Some(node) => {
                let left = self.left(&lefts, element);
                if is_right { left + node.size.0 } else { left }
            }
            None => {
                let column = self.elements[element].column;
                let (left, right) = lefts[column];
                // A passing edge is as long as the column is wide.
                if is_right { right } else { left }
            }
        };
        let drawn =
            Drawn { strip: &self, tops: &tops, lanes: &lanes, channels: &channels, lefts: &lefts, xs: &xs };
        let wires = self.content.wires.iter().map(|&(from, to)| drawn.route(from, to)).collect();
        let nodes = self.content.nodes.len();
        let border = |first: usize, count: usize| -> Vec<f64> {
            (first..first + count).map(|element| tops[element] + LINE_HEIGHT / 2.0).collect()
        };
        Placed {
            corners: (0..nodes).map(|node| (self.left(&lefts, node), tops[node])).collect(),
            entries: border(nodes, self.content.entries),
            exits: border(nodes + self.content.entries, self.content.exits),
            wires,
            size: (width, height),
        }
    }

    /// The left side of a box: boxes stand in the middle of their column.
    fn left(&self, lefts: &[(f64, f64)], node: usize) -> f64 {
        let (left, right) = lefts[self.elements[node].column];
        (left + (right - left - self.content.nodes[node].size.0) / 2.0).round()
    }

    /// The heights of the edges below the boxes, by their source.
    fn lanes(&self, height: f64) -> BTreeMap<Pin, f64> {
        let mut ends: Vec<usize> = Vec::new();
        let mut lanes = BTreeMap::new();
        for (&source, targets) in &self.below {
            let own = self.elements[source.0].column;
            let columns = || targets.iter().map(|target| self.elements[target.0].column - 1).chain([own]);
            let (first, last) = (columns().min().unwrap_or(own), columns().max().unwrap_or(own));
            // The first lane whose edges end left of this one.
            let lane = ends.iter().position(|end| *end < first).unwrap_or(ends.len());
            if lane == ends.len() {
                ends.push(0);
            }
            ends[lane] = last;
            lanes.insert(source, height + TRACK_GAP * (lane + 1) as f64);
        }
        lanes
    }

    /// The nets of each channel: sources with the same targets share one.
    fn channels(&self, tops: &[f64], lanes: &BTreeMap<Pin, f64>) -> Vec<Channel> {
        let count = self.count - 1;
        let mut shared: Vec<BTreeMap<&BTreeSet<Pin>, Vec<Pin>>> = vec![BTreeMap::new(); count];
        for (source, targets) in &self.steps {
            shared[self.elements[source.0].column].entry(targets).or_default().push(*source);
        }
        let out = |pin: Pin| tops[pin.0] + self.out_at(pin);
        let into = |pin: Pin| tops[pin.0] + self.in_at(pin);
        let mut channels: Vec<Channel> = (0..count).map(|_| Channel::default()).collect();
        let mut nets: Vec<Vec<Net>> = vec![Vec::new(); count];
        for (at, shared) in shared.into_iter().enumerate() {
            for (targets, sources) in shared {
                let net = Net::new(
                    sources.iter().map(|&pin| out(pin)).collect(),
                    targets.iter().map(|&pin| into(pin)).collect(),
                );
                channels[at].sources.extend(sources.into_iter().map(|pin| (pin, nets[at].len())));
                nets[at].push(net);
            }
        }
        for (&source, targets) in &self.below {
            let lane = lanes[&source];
            let own = self.elements[source.0].column;
            channels[own].down.insert(source, nets[own].len());
            nets[own].push(Net::new(vec![out(source)], vec![lane]));
            for &target in targets {
                let before = self.elements[target.0].column - 1;
                channels[before].up.insert((source, target), nets[before].len());
                nets[before].push(Net::new(vec![lane], vec![into(target)]));
            }
        }
        for (channel, nets) in channels.iter_mut().zip(nets) {
            (channel.tracks, channel.count) = tracks(&nets);
            channel.is_used = !nets.is_empty();
        }
        channels
    }

    /// The left and the right side of each column, and the width of all.
    fn lefts(&self, channels: &[Channel]) -> (Vec<(f64, f64)>, f64) {
        let mut widths = vec![0.0f64; self.count];
        for (node, element) in self.content.nodes.iter().zip(&self.elements) {
            widths[element.column] = widths[element.column].max(node.size.0);
        }
        let mut sides = vec![(0.0, 0.0)];
        let mut x = 0.0;
        for (at, channel) in channels.iter().enumerate() {
            let is_border = at == 0 || at + 1 == channels.len();
            x += match (is_border, channel.is_used) {
                (true, false) => 0.0,
                (true, true) => (CHANNEL_AIR + TRACK_GAP * channel.count as f64).max(BORDER_WIDTH_MIN),
                (false, _) => (2.0 * CHANNEL_AIR + TRACK_GAP * channel.count as f64).max(CHANNEL_WIDTH_MIN),
            };
            sides.push((x, x + widths[at + 1]));
            x += widths[at + 1];
        }
        (sides, x)
    }
}

#[derive(Default)]
struct Channel {
    /// The net of each source, of each edge that begins its way below the boxes, and of each that ends it.
    sources: BTreeMap<Pin, usize>,
    down: BTreeMap<Pin, usize>,
    up: BTreeMap<(Pin, Pin), usize>,
    tracks: Vec<Option<usize>>,
    count: usize,
    is_used: bool,
}

struct Drawn<'a> {
    strip: &'a Strip<'a>,
    tops: &'a [f64],
    lanes: &'a BTreeMap<Pin, f64>,
    channels: &'a [Channel],
    lefts: &'a [(f64, f64)],
    xs: &'a dyn Fn(usize, bool) -> f64,
}

impl Drawn<'_> {
    fn route(&self, from: End, to: End) -> Vec<Point> {
        let strip = self.strip;
        let (source, target) = (strip.source(from), strip.target(to));
        let mut points = vec![self.out(source)];
        if strip.below.get(&source).is_some_and(|targets| targets.contains(&target)) {
            let lane = self.lanes[&source];
            let own = strip.elements[source.0].column;
            let before = strip.elements[target.0].column - 1;
            self.turn(&mut points, own, self.channels[own].down.get(&source), lane);
            self.turn(
                &mut points,
                before,
                self.channels[before].up.get(&(source, target)),
                self.into(target).1,
            );
        } else {
            let mut at = source;
            while at != target {
                let steps = &strip.steps[&at];
                let next = if steps.contains(&target) { target } else { self.passing(at) };
                let column = strip.elements[at.0].column;
                let into = self.into(next);
                self.turn(&mut points, column, self.channels[column].sources.get(&at), into.1);
                points.push(into);
                if next != target {
                    points.push(self.out(next));
                }
                at = next;
            }
        }
        points.push(self.into(target));
        straightened(points)
    }

    /// The next point where an edge that is not at its target yet passes a column.
    fn passing(&self, (element, port): Pin) -> Pin {
        match self.strip.chain_of.get(&(element, port)) {
            Some(&chain) => {
                let (first, elements) = &self.strip.chains[chain];
                (elements[self.strip.elements[element].column + 1 - first], 0)
            }
            // The elements of a chain follow each other.
            None => (element + 1, 0),
        }
    }

    fn out(&self, pin: Pin) -> Point {
        ((self.xs)(pin.0, true), self.tops[pin.0] + self.strip.out_at(pin))
    }

    fn into(&self, pin: Pin) -> Point {
        ((self.xs)(pin.0, false), self.tops[pin.0] + self.strip.in_at(pin))
    }

    /// Goes up or down on the track of a net.
    fn turn(&self, points: &mut Vec<Point>, channel: usize, net: Option<&usize>, to: f64) {
        let found = &self.channels[channel];
        let Some(track) = net.and_then(|&net| found.tracks[net]) else { return };
        let (left, right) = (self.lefts[channel].1, self.lefts[channel + 1].0);
        let width = TRACK_GAP * found.count.saturating_sub(1) as f64;
        // At the border, the tracks leave the room to the boxes.
        let first = match (channel == 0, channel + 1 == self.channels.len()) {
            (true, _) => left + (right - left - width - CHANNEL_AIR).max(0.0) / 2.0,
            (false, true) => left + CHANNEL_AIR,
            (false, false) => left + (right - left - width) / 2.0,
        };
        let x = (first + TRACK_GAP * track as f64).round();
        let y = points.last().map_or(to, |point| point.1);
        points.push((x, y));
        points.push((x, to));
    }
}

/// Removes points between which a line does not bend.
pub(crate) fn straightened(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    let near = |a: f64, b: f64| (a - b).abs() < SAME;
    for point in points {
        if kept.last().is_some_and(|last| near(last.0, point.0) && near(last.1, point.1)) {
            continue;
        }
        if let [.., before, last] = kept.as_slice()
            && ((near(before.0, last.0) && near(last.0, point.0))
                || (near(before.1, last.1) && near(last.1, point.1)))
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}
