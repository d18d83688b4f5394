//! A drawn graph of tasks: layers from left to right, one row a task, lines of box characters in between.
//!
//! A small plan is drawn whole; of a large one, what is near the selected task. Knows no screen but a buffer.

mod lines;
mod order;

use std::collections::VecDeque;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use crate::sheet::Sheet;
use crate::text;
use crate::theme::{Theme, sign};
use crate::view::put;
use lines::Lines;

/// Tasks up to which a plan is drawn whole.
pub const WHOLE_MAX: usize = 40;
/// Tasks that are drawn around the selected one in a larger plan.
pub const NEAR_MAX: usize = 24;
/// How far they are from it.
const NEAR_STEPS: usize = 2;
/// Columns of a task's name.
const LABEL_MAX: usize = 16;

/// A picture of a plan, or of a part of it.
pub struct Picture {
    boxes: Vec<Drawn>,
    lines: Lines,
    columns: usize,
    rows: usize,
    /// How many tasks are in it, and how many there are.
    pub shown: (usize, usize),
}

/// A task in the picture.
struct Drawn {
    /// Its place among the rows of the plan.
    at: usize,
    x: usize,
    y: usize,
    label: String,
}

impl Picture {
    /// Of the plan around a task, for a part of the screen of so many rows.
    pub fn of(sheet: &Sheet, selected: usize, rows: usize) -> Self {
        let tasks = near(sheet, selected);
        let mut places = vec![usize::MAX; sheet.rows().len()];
        for (node, &at) in tasks.iter().enumerate() {
            places[at] = node;
        }
        let arrows: Vec<(usize, usize)> = tasks
            .iter()
            .enumerate()
            .flat_map(|(node, &at)| {
                let places = &places;
                sheet.links().before(at).map(move |on| (places[on], node))
            })
            .filter(|(from, _)| *from != usize::MAX)
            .collect();
        let order = order::Order::of(tasks.len(), &arrows, rows);
        let chosen = places.get(selected).copied().unwrap_or(usize::MAX);
        let labels: Vec<String> = tasks
            .iter()
            .zip(&order.rings)
            .map(|(&at, ring)| {
                let row = &sheet.rows()[at];
                let mark = if *ring { " ↺" } else { "" };
                format!("{} {}{mark}", sign(row.standing), text::truncate(row.id().as_str(), LABEL_MAX))
            })
            .collect();
        let mut widths = vec![1; order.layers.len()];
        for (node, label) in labels.iter().enumerate() {
            let layer = order.layer[node];
            widths[layer] = widths[layer].max(text::width(label));
        }
        let (lines, starts) = Lines::of(&order, &widths, &labels, chosen);
        let boxes: Vec<Drawn> = tasks
            .iter()
            .zip(labels)
            .enumerate()
            .map(|(node, (&at, label))| Drawn { at, x: starts[order.layer[node]], y: order.y[node], label })
            .collect();
        let columns = boxes.iter().map(|drawn| drawn.x + text::width(&drawn.label)).max().unwrap_or(0);
        let rows = boxes.iter().map(|drawn| drawn.y + 1).max().unwrap_or(0).max(lines.rows());
        Self { boxes, lines, columns, rows, shown: (tasks.len(), sheet.rows().len()) }
    }

    /// What part of it an area shows: so much is left out at the left and at the top.
    fn offset(&self, selected: usize, area: Rect) -> (usize, usize) {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let (x, y, wide) = self
            .boxes
            .iter()
            .find(|drawn| drawn.at == selected)
            .map_or((0, 0, 0), |drawn| (drawn.x, drawn.y, text::width(&drawn.label)));
        let left = (x + wide / 2).saturating_sub(width / 2).min(self.columns.saturating_sub(width));
        let top = y.saturating_sub(height / 2).min(self.rows.saturating_sub(height));
        (left, top)
    }

    /// Paints it.
    pub fn draw(&self, sheet: &Sheet, selected: usize, theme: Theme, buffer: &mut Buffer, area: Rect) {
        let (left, top) = self.offset(selected, area);
        for (x, y, sign, marked) in self.lines.cells() {
            let (Some(x), Some(y)) = (x.checked_sub(left), y.checked_sub(top)) else { continue };
            if x < usize::from(area.width) && y < usize::from(area.height) {
                let style = if marked { theme.accent() } else { theme.quiet() };
                put(buffer, (area.x + x as u16, area.y + y as u16), 1, sign, style);
            }
        }
        for drawn in &self.boxes {
            let Some(y) = drawn.y.checked_sub(top).filter(|y| *y < usize::from(area.height)) else {
                continue;
            };
            let hidden = left.saturating_sub(drawn.x);
            let x = drawn.x.saturating_sub(left);
            if x >= usize::from(area.width) {
                continue;
            }
            let row = &sheet.rows()[drawn.at];
            let mut style = theme.standing(row.standing);
            if sheet.problems().has(row.id().as_str()) {
                style = theme.wrong();
            }
            if drawn.at == selected {
                style =
                    style.add_modifier(Modifier::REVERSED | Modifier::BOLD).remove_modifier(Modifier::DIM);
            }
            let label = text::skip_columns(&drawn.label, hidden);
            put(buffer, (area.x + x as u16, area.y + y as u16), area.width - x as u16, &label, style);
        }
    }

    /// The task that is drawn at a place of the terminal.
    pub fn hit(&self, selected: usize, area: Rect, at: Position) -> Option<usize> {
        if !area.contains(at) {
            return None;
        }
        let (left, top) = self.offset(selected, area);
        let (x, y) = (usize::from(at.x - area.x) + left, usize::from(at.y - area.y) + top);
        let under =
            |drawn: &&Drawn| drawn.y == y && (drawn.x..drawn.x + text::width(&drawn.label)).contains(&x);
        self.boxes.iter().find(under).map(|drawn| drawn.at)
    }
}

/// The tasks to draw, in their order.
fn near(sheet: &Sheet, selected: usize) -> Vec<usize> {
    let count = sheet.rows().len();
    if count <= WHOLE_MAX {
        return (0..count).collect();
    }
    let mut found = vec![selected];
    let mut queue = VecDeque::from([(selected, 0)]);
    while let Some((at, steps)) = queue.pop_front() {
        if steps == NEAR_STEPS {
            continue;
        }
        for next in sheet.links().before(at).chain(sheet.links().after(at)) {
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
