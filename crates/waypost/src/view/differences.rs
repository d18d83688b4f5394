//! Differences between two versions, in lines with a sign: `+` new, `-` gone, `~` changed. Finds none itself.

use serde_json::Value;
use waypost_core::{Change, Difference, line_changes};

use super::text;
use crate::output::Look;

/// Lines of one changed text that are shown.
const TEXT_LINES_MAX: usize = 60;

/// How much is shown.
pub(crate) struct Style {
    /// Columns for each value.
    pub(crate) value_columns: usize,
    /// Whether texts of several lines are compared line by line.
    pub(crate) line_by_line: bool,
}

impl Style {
    /// For a message: one short line each.
    pub(crate) fn short() -> Self {
        Self { value_columns: 40, line_by_line: false }
    }
}

/// A line, and how it looks.
pub(crate) struct Line {
    /// The text.
    pub(crate) text: String,
    /// Its look.
    pub(crate) look: Look,
}

fn line(text: String, look: Look) -> Line {
    Line { text, look }
}

/// The differences as lines.
pub(crate) fn lines(differences: &[Difference], style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    for difference in differences {
        match difference {
            Difference::Added { task, description } => {
                let description = text::short(description, style.value_columns);
                lines.push(line(format!("+ {task}  {description}"), Look::Green));
            }
            Difference::Removed { task, description } => {
                let description = text::short(description, style.value_columns);
                lines.push(line(format!("- {task}  {description}"), Look::Red));
            }
            Difference::Plan { field, before, after } => changed(field, before, after, style, &mut lines),
            Difference::Task { task, field, before, after } => {
                changed(&format!("{task} {field}"), before, after, style, &mut lines);
            }
            Difference::Reordered {} => {
                lines.push(line("~ tasks stand in another order".to_owned(), Look::Yellow))
            }
        }
    }
    lines
}

fn changed(name: &str, before: &str, after: &str, style: &Style, lines: &mut Vec<Line>) {
    if style.line_by_line && (before.contains('\n') || after.contains('\n')) {
        lines.push(line(format!("~ {name}:"), Look::Yellow));
        let changes = line_changes(before, after);
        for change in changes.iter().take(TEXT_LINES_MAX) {
            lines.push(match change {
                Change::Same(same) => line(format!("      {}", clean(same)), Look::Dim),
                Change::Old(old) => line(format!("    - {}", clean(old)), Look::Red),
                Change::New(new) => line(format!("    + {}", clean(new)), Look::Green),
                Change::Gap(count) => line(format!("    … {}", text::count(*count, "line")), Look::Dim),
            });
        }
        if changes.len() > TEXT_LINES_MAX {
            let more = text::count(changes.len() - TEXT_LINES_MAX, "more line");
            lines.push(line(format!("    … {more}"), Look::Dim));
        }
        return;
    }
    let value = |value: &str| match text::short(value, style.value_columns) {
        empty if empty.is_empty() => "(none)".to_owned(),
        value => value,
    };
    lines.push(line(format!("~ {name}: {} → {}", value(before), value(after)), Look::Yellow));
}

/// A line without control characters, so that a plan's text cannot steer a terminal.
fn clean(text: &str) -> String {
    text.replace('\t', "    ").chars().filter(|character| !character.is_control()).collect()
}

/// One difference for programs, its values cut to so many characters.
pub(crate) fn json(difference: &Difference, characters_max: usize) -> Value {
    let mut value = serde_json::to_value(difference).unwrap_or_default();
    for name in ["before", "after", "description"] {
        if let Some(Value::String(text)) = value.get_mut(name)
            && let Some((end, _)) = text.char_indices().nth(characters_max)
        {
            text.truncate(end);
            text.push('…');
        }
    }
    value
}
