//! Rows of columns below each other, as lines of a text: keeps the picture of a long chain from becoming a ribbon.
//!
//! An edge from one row to another leaves its row at the right, runs through the gap below the row to the left margin, and from there
//! into the other row.

use std::collections::BTreeMap;

use super::channel::{Net, tracks};
use super::strip::{Content, End, Placed, Point, TRACK_GAP, Wire, straightened, strip};

/// The distance of two rows, without the tracks between them.
const ROW_GAP: f64 = 34.0;
/// What a margin has beside its tracks.
const MARGIN_AIR: f64 = 12.0;

/// Lays out boxes whose columns are known in this many rows.
pub(crate) fn rows(content: &Content, columns: &[usize], count: usize) -> Placed {
    let length = columns.iter().max().map_or(1, |last| last + 1).div_ceil(count.max(1));
    if count < 2 || length == 0 {
        return strip(content, columns);
    }
    let rows: Vec<usize> = columns.iter().map(|column| column / length).collect();
    Rows::of(content, columns, rows, length).placed()
}

/// A wire, and what it consists of.
enum Way {
    /// Inside a row.
    Inside { row: usize, wire: usize },
    /// Across rows, or over the border.
    Across { from: Outlet, to: Inlet },
}

/// Where an edge comes into a margin: the exit of a row with the wire that leads there, or an entry of the whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outlet {
    Row { row: usize, exit: usize, wire: usize },
    Border(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Inlet {
    Row { row: usize, entry: usize, wire: usize },
    Border(usize),
}

struct Rows<'a> {
    content: &'a Content,
    contents: Vec<Content>,
    /// The columns of each row's boxes.
    columns: Vec<Vec<usize>>,
    /// The row of each box, and its number there.
    own: Vec<(usize, usize)>,
    ways: Vec<Way>,
    /// The number of each wire of a row.
    known: Vec<BTreeMap<Wire, usize>>,
}

impl<'a> Rows<'a> {
    fn of(content: &'a Content, columns: &[usize], rows: Vec<usize>, length: usize) -> Self {
        let count = rows.iter().max().map_or(0, |last| last + 1);
        let mut made = Self {
            content,
            contents: vec![Content::default(); count],
            columns: vec![Vec::new(); count],
            own: Vec::with_capacity(rows.len()),
            ways: Vec::with_capacity(content.wires.len()),
            known: vec![BTreeMap::new(); count],
        };
        for (node, &row) in rows.iter().enumerate() {
            made.own.push((row, made.contents[row].nodes.len()));
            made.contents[row].nodes.push(content.nodes[node].clone());
            made.columns[row].push(columns[node] - row * length);
        }
        made.connect();
        made
    }

    fn row_of(&self, end: End) -> Option<usize> {
        match end {
            End::Node { node, .. } => Some(self.own[node].0),
            End::Border(_) => None,
        }
    }

    fn inside(&self, end: End) -> End {
        match end {
            End::Node { node, port } => End::Node { node: self.own[node].1, port },
            End::Border(_) => end,
        }
    }

    /// Edges that leave a row for the same ends share an exit; edges that come from the same ends share an entry.
    fn connect(&mut self) {
        let mut targets: BTreeMap<End, Vec<End>> = BTreeMap::new();
        let mut sources: BTreeMap<End, Vec<End>> = BTreeMap::new();
        let is_inside = |made: &Self, &(from, to): &Wire| {
            made.row_of(from).is_some() && made.row_of(from) == made.row_of(to)
        };
        let mut wires: Vec<Wire> =
            self.content.wires.iter().filter(|wire| !is_inside(self, wire)).copied().collect();
        wires.sort_unstable();
        wires.dedup();
        for (from, to) in wires {
            // An entry and an exit of the whole may have the same number.
            targets.entry(from).or_default().push(to);
            sources.entry(to).or_default().push(from);
        }
        let mut exits: BTreeMap<(usize, &Vec<End>), usize> = BTreeMap::new();
        let mut entries: BTreeMap<(usize, &Vec<End>), usize> = BTreeMap::new();
        for wire in &self.content.wires {
            let (from, to) = *wire;
            if is_inside(self, wire) {
                let row = self.row_of(from).unwrap_or(0);
                let inner = (self.inside(from), self.inside(to));
                let wire = self.add(row, inner);
                self.ways.push(Way::Inside { row, wire });
                continue;
            }
            let outlet = match (from, self.row_of(from)) {
                (End::Node { .. }, Some(row)) => {
                    let next = self.contents[row].exits;
                    let exit = *exits.entry((row, &targets[&from])).or_insert(next);
                    self.contents[row].exits = self.contents[row].exits.max(exit + 1);
                    let inner = (self.inside(from), End::Border(exit));
                    Outlet::Row { row, exit, wire: self.add(row, inner) }
                }
                (End::Border(entry), _) => Outlet::Border(entry),
                (End::Node { .. }, None) => continue,
            };
            let inlet = match (to, self.row_of(to)) {
                (End::Node { .. }, Some(row)) => {
                    let next = self.contents[row].entries;
                    let entry = *entries.entry((row, &sources[&to])).or_insert(next);
                    self.contents[row].entries = self.contents[row].entries.max(entry + 1);
                    let inner = (End::Border(entry), self.inside(to));
                    Inlet::Row { row, entry, wire: self.add(row, inner) }
                }
                (End::Border(exit), _) => Inlet::Border(exit),
                (End::Node { .. }, None) => continue,
            };
            self.ways.push(Way::Across { from: outlet, to: inlet });
        }
    }

    /// Adds a wire to a row, unless it is there, and returns its number.
    fn add(&mut self, row: usize, wire: Wire) -> usize {
        let wires = &mut self.contents[row].wires;
        *self.known[row].entry(wire).or_insert_with(|| {
            wires.push(wire);
            wires.len() - 1
        })
    }

    fn placed(&self) -> Placed {
        let placed: Vec<Placed> = self
            .contents
            .iter()
            .zip(&self.columns)
            .map(|(content, columns)| strip(content, columns))
            .collect();
        let width = placed.iter().map(|row| row.size.0).fold(0.0, f64::max);
        // Each exit that leads to another row has a track in the gap below its own.
        let mut gaps: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        let mut in_gap = vec![0usize; placed.len()];
        for way in &self.ways {
            if let Way::Across { from: Outlet::Row { row, exit, .. }, to: Inlet::Row { .. } } = way {
                gaps.entry((*row, *exit)).or_insert_with(|| {
                    in_gap[*row] += 1;
                    TRACK_GAP * in_gap[*row] as f64
                });
            }
        }
        let mut tops = Vec::with_capacity(placed.len());
        let mut y = 0.0;
        for (row, count) in placed.iter().zip(&in_gap) {
            tops.push(y);
            y += row.size.1 + ROW_GAP + TRACK_GAP * *count as f64;
        }
        for (&(row, _), gap) in &mut gaps {
            *gap += (tops[row] + placed[row].size.1 + ROW_GAP / 2.0 - TRACK_GAP / 2.0).round();
        }
        let height = tops.last().copied().unwrap_or(0.0) + placed.last().map_or(0.0, |row| row.size.1);
        let lowest = gaps.values().copied().fold(height, f64::max);

        let exit_at = |row: usize, exit: usize| tops[row] + placed[row].exits[exit];
        let entry_at = |row: usize, entry: usize| tops[row] + placed[row].entries[entry];
        // An end at the border has the height of the first row's end that it leads to.
        let mut entries = vec![0.0; self.content.entries];
        let mut exits = vec![0.0; self.content.exits];
        let mut right: BTreeMap<Outlet, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        let mut left: BTreeMap<Outlet, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for way in self.ways.iter().rev() {
            match *way {
                Way::Across { from: Outlet::Border(entry), to: Inlet::Row { row, entry: inner, .. } } => {
                    entries[entry] = entry_at(row, inner);
                }
                Way::Across { from: Outlet::Row { row, exit: inner, .. }, to: Inlet::Border(exit) } => {
                    exits[exit] = exit_at(row, inner);
                }
                Way::Across { .. } | Way::Inside { .. } => {}
            }
        }
        for way in &self.ways {
            let Way::Across { from, to } = *way else { continue };
            let key = net_of(from);
            match (from, to) {
                (Outlet::Border(entry), Inlet::Row { row, entry: inner, .. }) => {
                    let net = left.entry(key).or_default();
                    push(&mut net.0, entries[entry]);
                    push(&mut net.1, entry_at(row, inner));
                }
                (Outlet::Row { row, exit, .. }, Inlet::Border(border)) => {
                    let net = right.entry(key).or_default();
                    push(&mut net.0, exit_at(row, exit));
                    push(&mut net.1, exits[border]);
                }
                (Outlet::Row { row, exit, .. }, Inlet::Row { row: other, entry, .. }) => {
                    let gap = gaps[&(row, exit)];
                    let net = right.entry(key).or_default();
                    push(&mut net.0, exit_at(row, exit));
                    push(&mut net.0, gap);
                    let net = left.entry(key).or_default();
                    push(&mut net.1, gap);
                    push(&mut net.1, entry_at(other, entry));
                }
                (Outlet::Border(_), Inlet::Border(_)) => {}
            }
        }
        let left = Margin::of(left);
        let right = Margin::of(right);
        let (begin, end) = (left.width, left.width + width);
        let wires = self
            .ways
            .iter()
            .map(|way| match *way {
                Way::Inside { row, wire } => moved(&placed[row].wires[wire], begin, tops[row]),
                Way::Across { from, to } => {
                    let mut points: Vec<Point> = Vec::new();
                    let key = net_of(from);
                    match from {
                        Outlet::Row { row, exit, wire } => {
                            points.extend(moved(&placed[row].wires[wire], begin, tops[row]));
                            let y = exit_at(row, exit);
                            points.push((end, y));
                            let across = match to {
                                Inlet::Border(border) => exits[border],
                                Inlet::Row { .. } => gaps[&(row, exit)],
                            };
                            right.turn(&mut points, key, end, across);
                            if matches!(to, Inlet::Border(_)) {
                                points.push((end + right.width, across));
                            }
                        }
                        Outlet::Border(entry) => points.push((0.0, entries[entry])),
                    }
                    if let Inlet::Row { row, entry, wire } = to {
                        let y = entry_at(row, entry);
                        left.turn(&mut points, key, 0.0, y);
                        points.push((begin, y));
                        points.extend(moved(&placed[row].wires[wire], begin, tops[row]));
                    }
                    straightened(points)
                }
            })
            .collect();
        let corners = self
            .own
            .iter()
            .map(|&(row, node)| {
                let (x, y) = placed[row].corners[node];
                (x + begin, y + tops[row])
            })
            .collect();
        let lowest = if lowest > height { lowest + TRACK_GAP } else { height };
        Placed { corners, wires, entries, exits, size: (end + right.width, lowest) }
    }
}

/// The wires of an exit share a net, whichever box they come from.
fn net_of(outlet: Outlet) -> Outlet {
    match outlet {
        Outlet::Row { row, exit, .. } => Outlet::Row { row, exit, wire: 0 },
        Outlet::Border(entry) => Outlet::Border(entry),
    }
}

/// The vertical edges beside the rows.
struct Margin {
    tracks: BTreeMap<Outlet, Option<usize>>,
    width: f64,
}

impl Margin {
    fn of(nets: BTreeMap<Outlet, (Vec<f64>, Vec<f64>)>) -> Self {
        let (keys, ends): (Vec<Outlet>, Vec<_>) = nets.into_iter().unzip();
        let nets: Vec<Net> = ends.into_iter().map(|(lefts, rights)| Net::new(lefts, rights)).collect();
        let (found, count) = tracks(&nets);
        let width = if keys.is_empty() { 0.0 } else { 2.0 * MARGIN_AIR + TRACK_GAP * count as f64 };
        Self { tracks: keys.into_iter().zip(found).collect(), width }
    }

    fn turn(&self, points: &mut Vec<Point>, key: Outlet, left: f64, to: f64) {
        if let Some(Some(track)) = self.tracks.get(&key) {
            let x = left + MARGIN_AIR + TRACK_GAP * *track as f64;
            let y = points.last().map_or(to, |point| point.1);
            points.push((x, y));
            points.push((x, to));
        }
    }
}

fn push(heights: &mut Vec<f64>, height: f64) {
    if !heights.contains(&height) {
        heights.push(height);
    }
}

fn moved(points: &[Point], dx: f64, dy: f64) -> Vec<Point> {
    points.iter().map(|(x, y)| (x + dx, y + dy)).collect()
}
