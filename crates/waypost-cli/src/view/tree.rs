//! Prints a page of a plan's tasks as a tree: status, dependencies, a line of notes. Reads only what it shows.

use waypost_core::{Dependency, EffectiveStatus, Plan, Task};
use waypost_text::StatusSign;

use super::{CLONES_DISAGREE, Shown, sign_look, text};
use crate::output::Output;
use crate::runner::typeable;
use crate::style::Look;

/// Maximum depth that is drawn; deeper tasks show their level as a number.
const LEVELS_DRAWN_MAX: usize = 10;
/// Width of a task's status with its sign.
const STANDING_COLUMNS: usize = 12;
/// Maximum width up to which names are aligned.
const NAME_COLUMNS_MAX: usize = 24;
/// Maximum number of dependencies named in a row.
const NAMES_MAX: usize = 4;

/// Maximum number of tasks after a page that are read to find siblings of those on it.
const AHEAD_MAX: usize = 200;

/// One task of a page and its place in the tree.
pub struct Row<'a> {
    pub task: &'a Task,
    /// The nodes from the root to the task itself.
    path: Vec<usize>,
}

/// A part of a plan's tasks, in the order of the tree.
pub struct Page<'a> {
    pub rows: Vec<Row<'a>>,
    /// The number of tasks before it.
    pub before: usize,
    /// The number of all tasks, including parents.
    pub total: usize,
    /// For each task that was read: whether it is the last among its siblings.
    is_last: Vec<bool>,
}

impl<'a> Page<'a> {
    /// The tasks after `after` (or from the beginning), at most `limit`. Of the tasks after the page, reads only those
    /// that show whether the last ones have siblings.
    pub fn of(plan: &'a Plan, after: Option<&str>, limit: usize) -> Self {
        let mut page = Self { rows: Vec::new(), before: 0, total: plan.len(), is_last: Vec::new() };
        let mut path: Vec<usize> = Vec::new();
        let mut begun = after.is_none();
        let mut ahead = 0;
        for (task, depth) in plan.tasks() {
            let node = page.is_last.len();
            page.is_last.push(true);
            // An earlier task at this depth below the same parent is not the last sibling after all.
            if let Some(&sibling) = path.get(depth) {
                page.is_last[sibling] = false;
            }
            path.truncate(depth);
            path.push(node);
            if !begun {
                page.before += 1;
                begun = after == Some(task.spec.id.as_str());
            } else if page.rows.len() < limit {
                page.rows.push(Row { task, path: path.clone() });
            } else {
                ahead += 1;
                if depth == 0 || ahead > AHEAD_MAX {
                    break;
                }
            }
        }
        if ahead > AHEAD_MAX {
            // The siblings are unknown at this point, and more tasks follow in any case.
            path.iter().for_each(|&node| page.is_last[node] = false);
        }
        page
    }

    /// The number of tasks after it.
    pub fn remaining(&self) -> usize {
        self.total - self.before - self.rows.len()
    }

    /// The task to continue after, if there are more.
    pub fn next(&self) -> Option<&str> {
        self.rows.last().filter(|_| self.remaining() > 0).map(|row| row.task.spec.id.as_str())
    }

    /// The tree lines in front of a task.
    fn guides(&self, row: &Row<'_>) -> String {
        let Some((own, above)) = row.path[1..].split_last() else { return String::new() };
        if above.len() >= LEVELS_DRAWN_MAX {
            return format!("{}… level {} ", "  ".repeat(LEVELS_DRAWN_MAX), row.path.len());
        }
        let mut guides: String =
            above.iter().map(|&node| if self.is_last[node] { "   " } else { "│  " }).collect();
        guides.push_str(if self.is_last[*own] { "└─ " } else { "├─ " });
        guides
    }

    /// The tree lines in front of a task's notes.
    fn margin(&self, row: &Row<'_>) -> String {
        let below = row.path[1..].iter().take(LEVELS_DRAWN_MAX);
        below.map(|&node| if self.is_last[node] { "   " } else { "│  " }).collect()
    }

    pub fn print(&self, shown: &Shown<'_>, out: &mut Output) {
        let guides: Vec<String> = self.rows.iter().map(|row| self.guides(row)).collect();
        let names = self.rows.iter().zip(&guides);
        let columns = name_columns(
            names.map(|(row, guides)| text::width(guides) + text::width(row.task.spec.id.as_str())),
        );
        for (row, guides) in self.rows.iter().zip(&guides) {
            let margin = self.margin(row);
            print_row(shown, row.task, &Frame { guides, margin: &margin, columns }, out);
        }
    }
}

/// The tree lines in front of a task, and the width of the names.
pub struct Frame<'a> {
    /// In front of its name.
    pub guides: &'a str,
    /// In front of its notes.
    pub margin: &'a str,
    /// Width of the names with their tree lines.
    pub columns: usize,
}

/// The width that fits all names up to the limit; longer ones are not aligned.
pub fn name_columns(widths: impl Iterator<Item = usize>) -> usize {
    widths.filter(|&width| width <= NAME_COLUMNS_MAX).max().unwrap_or(0)
}

/// Prints a task: one line, then lines with its notes and its latest state.
pub fn print_row(shown: &Shown<'_>, task: &Task, frame: &Frame<'_>, out: &mut Output) {
    let id = task.spec.id.as_str();
    let (standing, (sign, word)) = (shown.status(task), shown.sign(task));
    let word = text::pad(&format!("{} {word}", sign.glyph()), STANDING_COLUMNS);
    let name = format!("{}{}", frame.guides, text::one_line(&text::reveal_lines(id)));
    // A prefix is enough for commands, and the description has to be on the line too.
    let name = if out.is_terminal() { text::truncate(&name, out.columns / 2) } else { name.as_str().into() };
    let head = format!("{}  ", text::pad(&name, frame.columns));
    let room = out.columns.saturating_sub(STANDING_COLUMNS + text::width(&head)).max(20);
    let behind = behind(task, standing);
    let description = text::reveal_lines(&task.spec.description);
    let wanted = text::width(&text::excerpt(&description, room));
    // The second text gets the room that the description leaves, and at least half of it.
    let behind = text::excerpt(&behind, (room / 2).max(room.saturating_sub(wanted + 2)));
    let room = room - if behind.is_empty() { 0 } else { text::width(&behind) + 2 };
    let description = text::excerpt(&description, room);
    let mut line = format!("{}{}", out.paint(&word, sign_look(sign)), head);
    let quiet = matches!(sign, StatusSign::Skipped | StatusSign::Cancelled);
    line.push_str(&out.paint(&description, if quiet { Look::Dim } else { Look::Plain }));
    if !behind.is_empty() {
        if !description.is_empty() {
            line.push_str("  ");
        }
        line.push_str(&out.paint(&behind, Look::Dim));
    }
    out.line(line);
    let margin = text::pad(frame.margin, frame.columns + 2);
    let margin = format!("{}{margin}", " ".repeat(STANDING_COLUMNS));
    for below in below(task, standing) {
        let below = text::reveal_lines(&below);
        let below = text::excerpt(&below, out.columns.saturating_sub(text::width(&margin)).max(20));
        let below = out.paint(&below, Look::Dim);
        out.line(format!("{margin}{below}"));
    }
}

/// The text after the description.
fn behind(task: &Task, standing: EffectiveStatus) -> String {
    let spec = &task.spec;
    let mut parts = Vec::new();
    if let Some(complexity) = spec.complexity {
        parts.push(format!("({})", complexity.as_str()));
    }
    if let Some(work) = &spec.work {
        parts.push(format!("[{}]", work.executor));
    }
    if matches!(standing, EffectiveStatus::Queued | EffectiveStatus::Running)
        && let Some(worker) = &task.state.worker
    {
        parts.push(format!("by {worker}"));
    }
    if !spec.depends_on.is_empty() {
        parts.push(format!("← {}", dependency_names(&spec.depends_on)));
    }
    parts.join(" ")
}

/// The first names of a task's dependencies.
pub fn dependency_names(depends_on: &[Dependency]) -> String {
    text::names(depends_on.iter(), NAMES_MAX)
}

/// The lines below a task.
fn below(task: &Task, standing: EffectiveStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if !task.spec.notes.is_empty() {
        lines.push(format!("note: {}", task.spec.notes));
    }
    let state = &task.state;
    match standing {
        EffectiveStatus::Running => {
            lines.extend(state.progress.as_ref().map(|progress| format!("progress: {progress}")))
        }
        EffectiveStatus::Done => {
            lines.extend(state.result.as_ref().map(|result| format!("result: {result}")))
        }
        EffectiveStatus::Failed | EffectiveStatus::Skipped | EffectiveStatus::Cancelled => {
            lines.extend(state.why().map(|why| format!("why: {why}")));
        }
        EffectiveStatus::Reported => {
            let report = state.reported();
            lines.extend(report.map(|report| format!("reported by {}, waits for its check", report.by)));
        }
        EffectiveStatus::Asking => {
            lines.extend(state.question().map(|question| format!("asks: {}", question.text)));
        }
        EffectiveStatus::Disputed => lines.push(typeable(CLONES_DISAGREE).into_owned()),
        EffectiveStatus::Held => lines.extend(state.held().map(|hold| match hold.reason.as_str() {
            "" => format!("held by {}", hold.by),
            reason => format!("held by {}: {reason}", hold.by),
        })),
        EffectiveStatus::Blocked | EffectiveStatus::Ready | EffectiveStatus::Queued => {
            lines.extend(state.error.as_ref().map(|error| format!("last attempt: {error}")));
        }
    }
    lines
}
