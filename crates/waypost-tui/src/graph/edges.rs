//! The edges of the graph: the box character of each cell. Knows rows and columns, not tasks.

use std::collections::BTreeMap;

use super::layout::Layout;
use crate::text;

const UP: u8 = 1;
const RIGHT: u8 = 2;
const DOWN: u8 = 4;
const LEFT: u8 = 8;

/// Box characters, indexed by the sides that they connect.
const SIGNS: [&str; 16] = [" ", "╵", "╶", "╰", "╷", "│", "╭", "├", "╴", "╯", "─", "┴", "╮", "┤", "┬", "┼"];

/// One cell: the sides that lines connect, whether a line of the selected task passes, and whether it is an arrowhead.
#[derive(Clone, Copy, Default)]
struct Cell {
    sides: u8,
    marked: bool,
    head: bool,
}

pub(super) struct Edges {
    cells: BTreeMap<(usize, usize), Cell>,
}

/// The edges from one node to the next layer.
struct Bus {
    from: usize,
    to: Vec<usize>,
    top: usize,
    bottom: usize,
    track: usize,
}

impl Bus {
    fn is_straight(&self) -> bool {
        self.top == self.bottom
    }
}

impl Edges {
    /// Draws the edges between layers of these widths. Also returns the first column of each layer.
    pub(super) fn of(
        layout: &Layout,
        widths: &[usize],
        labels: &[String],
        chosen: usize,
    ) -> (Self, Vec<usize>) {
        let mut edges = Self { cells: BTreeMap::new() };
        let mut starts = Vec::with_capacity(widths.len());
        let mut x = 0;
        let touches = |which: usize| layout.arrows[which].0 == chosen || layout.arrows[which].1 == chosen;
        for (layer, &width) in widths.iter().enumerate() {
            starts.push(x);
            let mut buses = buses(layout, layer);
            let tracks = assign(&mut buses, layout);
            // One empty column, the tracks, and one column for the arrowhead.
            let gutter = x + width + 1;
            let next = gutter + if tracks == 0 { 3 } else { tracks + 3 };
            for bus in &buses {
                let y = layout.y[bus.from];
                let begin = if bus.from < layout.nodes { x + text::width(&labels[bus.from]) + 1 } else { x };
                for &to in &bus.to {
                    let marked = layout
                        .parts
                        .iter()
                        .any(|&(from, part_to, which)| from == bus.from && part_to == to && touches(which));
                    let target = layout.y[to];
                    // A bend has no arrowhead: its line continues in the next layer.
                    let end = if to < layout.nodes { next - 1 } else { next };
                    edges.add(begin, y, LEFT, marked);
                    if bus.is_straight() {
                        edges.across(begin, end, y, marked);
                    } else {
                        let track = gutter + 1 + bus.track;
                        edges.across(begin, track, y, marked);
                        edges.along(track, y, target, marked);
                        edges.across(track, end, target, marked);
                    }
                    if to < layout.nodes {
                        edges.cells.entry((target, end)).or_default().head = true;
                    }
                }
            }
            x = next;
        }
        (edges, starts)
    }

    pub(super) fn rows(&self) -> usize {
        self.cells.keys().map(|(y, _)| y + 1).max().unwrap_or(0)
    }

    /// Column, row, character, and whether it belongs to an edge of the selected task.
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, usize, &'static str, bool)> {
        self.cells.iter().map(|(&(y, x), cell)| {
            let sign = if cell.head { "▸" } else { SIGNS[usize::from(cell.sides & 15)] };
            (x, y, sign, cell.marked)
        })
    }

    fn add(&mut self, x: usize, y: usize, side: u8, marked: bool) {
        let cell = self.cells.entry((y, x)).or_default();
        cell.sides |= side;
        cell.marked |= marked;
    }

    /// Draws a horizontal line between two columns, both included.
    fn across(&mut self, from: usize, to: usize, y: usize, marked: bool) {
        for x in from..to {
            self.add(x, y, RIGHT, marked);
            self.add(x + 1, y, LEFT, marked);
        }
    }

    fn along(&mut self, x: usize, from: usize, to: usize, marked: bool) {
        for y in from.min(to)..from.max(to) {
            self.add(x, y, DOWN, marked);
            self.add(x, y + 1, UP, marked);
        }
    }
}

fn buses(layout: &Layout, layer: usize) -> Vec<Bus> {
    let mut buses: Vec<Bus> = Vec::new();
    for &from in &layout.layers[layer] {
        let to: Vec<usize> =
            layout.parts.iter().filter(|(part, _, _)| *part == from).map(|&(_, to, _)| to).collect();
        if to.is_empty() {
            continue;
        }
        let rows = || to.iter().map(|&to| layout.y[to]).chain([layout.y[from]]);
        let (top, bottom) = (rows().min().unwrap_or(0), rows().max().unwrap_or(0));
        buses.push(Bus { from, to, top, bottom, track: 0 });
    }
    buses
}

/// Assigns every bus a column for its vertical part; buses to the same targets share one. A bus that begins in a row where
/// another ends is placed left of it, so that the two do not merge. Returns the number of columns.
fn assign(buses: &mut [Bus], layout: &Layout) -> usize {
    let left_of = |a: &Bus, b: &Bus| a.to != b.to && b.to.iter().any(|&to| layout.y[to] == layout.y[a.from]);
    let mut waiting: Vec<usize> = (0..buses.len()).filter(|&bus| !buses[bus].is_straight()).collect();
    let mut placed: Vec<usize> = Vec::new();
    while !waiting.is_empty() {
        // If these constraints form a cycle, the first bus is placed first.
        let free = waiting
            .iter()
            .position(|&bus| {
                !waiting.iter().any(|&other| other != bus && left_of(&buses[other], &buses[bus]))
            })
            .unwrap_or(0);
        let bus = waiting.remove(free);
        let least = placed
            .iter()
            .filter(|&&other| left_of(&buses[other], &buses[bus]))
            .map(|&other| buses[other].track + 1)
            .max()
            .unwrap_or(0);
        let overlaps = |other: &Bus| {
            other.to != buses[bus].to && other.top <= buses[bus].bottom && buses[bus].top <= other.bottom
        };
        let taken: Vec<usize> = placed
            .iter()
            .filter(|&&other| overlaps(&buses[other]))
            .map(|&other| buses[other].track)
            .collect();
        let track = (least..).find(|track| !taken.contains(track)).unwrap_or(least);
        buses[bus].track = track;
        placed.push(bus);
    }
    placed.iter().map(|&bus| buses[bus].track + 1).max().unwrap_or(0)
}
