//! Differences between two versions as lines with a sign: `+` added, `-` removed, `~` changed. The caller computes the
//! differences and adds colours and widths.

use waypost_core::{Change, Difference, line_changes};
use waypost_text::{count, sanitize_line};

/// Maximum number of lines shown of one changed text.
const TEXT_LINES_MAX: usize = 60;

/// How texts of several lines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// Each text as one value.
    Whole,
    /// Line by line.
    ByLine,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Added content.
    New,
    /// Removed content.
    Gone,
    /// A changed value.
    Changed,
    /// Unchanged context.
    Around,
}

/// Renders the differences as lines, each with its kind. `short` truncates a value to the available width.
pub fn difference_lines(
    differences: &[Difference],
    texts: Texts,
    short: &dyn Fn(&str) -> String,
) -> Vec<(Sign, String)> {
    let mut lines = Vec::new();
    for difference in differences {
        match difference {
            Difference::Added { task, description } => {
                lines.push((Sign::New, format!("+ {task}  {}", short(description))));
            }
            Difference::Removed { task, description } => {
                lines.push((Sign::Gone, format!("- {task}  {}", short(description))));
            }
            Difference::Plan { field, before, after } => {
                // People know the field by the command that sets it.
                let name = if *field == "status" { "note" } else { field };
                changed(name, before, after, texts, short, &mut lines);
            }
            Difference::Task { task, field, before, after } => {
                changed(&format!("{task} {field}"), before, after, texts, short, &mut lines);
            }
            Difference::Reordered {} => lines.push((Sign::Changed, "~ tasks reordered".to_owned())),
        }
    }
    lines
}

fn changed(
    name: &str,
    before: &str,
    after: &str,
    texts: Texts,
    short: &dyn Fn(&str) -> String,
    lines: &mut Vec<(Sign, String)>,
) {
    if texts == Texts::ByLine && (before.contains('\n') || after.contains('\n')) {
        lines.push((Sign::Changed, format!("~ {name}:")));
        let changes = line_changes(before, after);
        for change in changes.iter().take(TEXT_LINES_MAX) {
            lines.push(match change {
                Change::Same(same) => (Sign::Around, format!("      {}", clean(same))),
                Change::Old(old) => (Sign::Gone, format!("    - {}", clean(old))),
                Change::New(new) => (Sign::New, format!("    + {}", clean(new))),
                Change::Gap(lines) => (Sign::Around, format!("    … {}", count(*lines, "line"))),
            });
        }
        if changes.len() > TEXT_LINES_MAX {
            let more = count(changes.len() - TEXT_LINES_MAX, "more line");
            lines.push((Sign::Around, format!("    … {more}")));
        }
        return;
    }
    let value = |value: &str| match short(value) {
        empty if empty.is_empty() => "(none)".to_owned(),
        value => value,
    };
    lines.push((Sign::Changed, format!("~ {name}: {} → {}", value(before), value(after))));
}

/// Removes characters with which a plan's text could control a terminal.
fn clean(text: &str) -> String {
    sanitize_line(&text.trim_end_matches('\r').replace('\t', "    ")).into_owned()
}
