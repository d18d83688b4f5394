//! The graph of tasks: layers from left to right, one row per task, edges of box characters.
//!
//! A small plan is drawn whole; of a large one, only the tasks near the selected one.

mod edges;
mod layout;

use std::collections::VecDeque;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use crate::edit_buffer::EditBuffer;
use crate::frame::put;
use crate::text;
use crate::theme::Theme;
use edges::Edges;

/// Number of tasks up to which a plan is drawn whole.
pub const WHOLE_MAX: usize = 40;
/// Maximum number of tasks drawn around the selected one in a larger plan.
pub const NEAR_MAX: usize = 24;
/// Their maximum distance from it, in dependencies.
const NEAR_STEPS: usize = 2;
/// Columns of a task's name.
const LABEL_MAX: usize = 16;

/// The drawn graph of a plan, or of a part of it.
pub struct GraphCanvas {
    nodes: Vec<Node>,
    edges: Edges,
    columns: usize,
    rows: usize,
    /// Number of tasks drawn, and of all tasks.
    pub shown: (usize, usize),
}

/// A drawn task.
struct Node {
    /// Its row in the edit buffer.
    at: usize,
    x: usize,
    y: usize,
    label: String,
}

impl GraphCanvas {
    /// Lays out the plan around a task; `rows` is the available height.
    pub fn of(buffer: &EditBuffer, selected: usize, rows: usize) -> Self {
        let tasks = near(buffer, selected);
        let mut places = vec![usize::MAX; buffer.rows().len()];
        for (node, &at) in tasks.iter().enumerate() {
            places[at] = node;
        }
        let arrows: Vec<(usize, usize)> = tasks
            .iter()
            .enumerate()
            .flat_map(|(node, &at)| {
                let places = &places;
                buffer.dependencies().prerequisites(at).map(move |on| (places[on], node))
            })
            .filter(|(from, _)| *from != usize::MAX)
            .collect();
        let layout = layout::Layout::of(tasks.len(), &arrows, rows);
        let chosen = places.get(selected).copied().unwrap_or(usize::MAX);
        let labels: Vec<String> = tasks
            .iter()
            .zip(&layout.cycles)
            .map(|(&at, cycle)| {
                let row = &buffer.rows()[at];
                let mark = if *cycle { " ↺" } else { "" };
                format!("{} {}{mark}", buffer.sign(row).glyph(), text::truncate(row.id().as_str(), LABEL_MAX))
            })
            .collect();
        let mut widths = vec![1; layout.layers.len()];
        for (node, label) in labels.iter().enumerate() {
            let layer = layout.layer[node];
            widths[layer] = widths[layer].max(text::width(label));
        }
        let (edges, starts) = Edges::of(&layout, &widths, &labels, chosen);
        let nodes: Vec<Node> = tasks
            .iter()
            .zip(labels)
            .enumerate()
            .map(|(node, (&at, label))| Node { at, x: starts[layout.layer[node]], y: layout.y[node], label })
            .collect();
        let columns = nodes.iter().map(|node| node.x + text::width(&node.label)).max().unwrap_or(0);
        let rows = nodes.iter().map(|node| node.y + 1).max().unwrap_or(0).max(edges.rows());
        Self { nodes, edges, columns, rows, shown: (tasks.len(), buffer.rows().len()) }
    }

    /// The scroll offset that centers the selected task: columns hidden at the left, rows hidden at the top.
    fn offset(&self, selected: usize, area: Rect) -> (usize, usize) {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let (x, y, wide) = self
            .nodes
            .iter()
            .find(|node| node.at == selected)
            .map_or((0, 0, 0), |node| (node.x, node.y, text::width(&node.label)));
        let left = (x + wide / 2).saturating_sub(width / 2).min(self.columns.saturating_sub(width));
        let top = y.saturating_sub(height / 2).min(self.rows.saturating_sub(height));
        (left, top)
    }

    pub fn draw(&self, buffer: &EditBuffer, selected: usize, theme: Theme, cells: &mut Buffer, area: Rect) {
        let (left, top) = self.offset(selected, area);
        for (x, y, sign, marked) in self.edges.cells() {
            let (Some(x), Some(y)) = (x.checked_sub(left), y.checked_sub(top)) else { continue };
            if x < usize::from(area.width) && y < usize::from(area.height) {
                let style = if marked { theme.accent() } else { theme.quiet() };
                put(cells, (area.x + x as u16, area.y + y as u16), 1, sign, style);
            }
        }
        for node in &self.nodes {
            let Some(y) = node.y.checked_sub(top).filter(|y| *y < usize::from(area.height)) else {
                continue;
            };
            let hidden = left.saturating_sub(node.x);
            let x = node.x.saturating_sub(left);
            if x >= usize::from(area.width) {
                continue;
            }
            let row = &buffer.rows()[node.at];
            let mut style = theme.role(buffer.sign(row).role());
            if buffer.problems().has(row.id().as_str()) {
                style = theme.wrong();
            }
            if node.at == selected {
                style =
                    style.add_modifier(Modifier::REVERSED | Modifier::BOLD).remove_modifier(Modifier::DIM);
            }
            let label = text::skip_columns(&node.label, hidden);
            put(cells, (area.x + x as u16, area.y + y as u16), area.width - x as u16, &label, style);
        }
    }

    /// The task drawn at a position of the terminal.
    pub fn hit(&self, selected: usize, area: Rect, at: Position) -> Option<usize> {
        if !area.contains(at) {
            return None;
        }
        let (left, top) = self.offset(selected, area);
        let (x, y) = (usize::from(at.x - area.x) + left, usize::from(at.y - area.y) + top);
        let under = |node: &&Node| node.y == y && (node.x..node.x + text::width(&node.label)).contains(&x);
        self.nodes.iter().find(under).map(|node| node.at)
    }
}

/// The tasks to draw, in the order of the plan.
fn near(buffer: &EditBuffer, selected: usize) -> Vec<usize> {
    let count = buffer.rows().len();
    if count <= WHOLE_MAX {
        return (0..count).collect();
    }
    let mut found = vec![selected];
    let mut queue = VecDeque::from([(selected, 0)]);
    while let Some((at, steps)) = queue.pop_front() {
        if steps == NEAR_STEPS {
            continue;
        }
        for next in buffer.dependencies().prerequisites(at).chain(buffer.dependencies().dependants(at)) {
            if found.len() == NEAR_MAX {
                break;
            }
            if !found.contains(&next) {
                found.push(next);
                queue.push_back((next, steps + 1));
            }
        }
    }
    found.sort_unstable();
    found
}
