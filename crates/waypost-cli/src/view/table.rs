//! Prints rows in columns, measured in terminal cells. The last column takes the remaining width.

use super::text;
use crate::output::Output;
use crate::style::Look;

/// Spaces between two columns.
const GAP: usize = 2;

pub struct Cell {
    text: String,
    look: Look,
    /// Text after the main text, in the last column. It keeps at least a third of the column.
    behind: String,
}

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self::looking(text, Look::Plain)
    }

    pub fn looking(text: impl Into<String>, look: Look) -> Self {
        Self { text: text.into(), look, behind: String::new() }
    }

    /// A cell of the last column with a second text.
    pub fn with_behind(text: impl Into<String>, behind: impl Into<String>) -> Self {
        Self { behind: behind.into(), ..Self::plain(text) }
    }

    fn print_last(&self, columns: usize, out: &Output) -> String {
        let left = columns.saturating_sub(text::width(&text::excerpt(&self.text, columns)) + 1);
        let behind = text::excerpt(&self.behind, (columns / 3).max(left));
        if behind.is_empty() {
            return out.paint(&text::excerpt(&self.text, columns), self.look);
        }
        let room = columns.saturating_sub(text::width(&behind) + 1);
        format!(
            "{} {}",
            out.paint(&text::excerpt(&self.text, room), self.look),
            out.paint(&behind, Look::Cyan)
        )
    }
}

/// Prints the rows below their headings. The last cell of a row is truncated to the remaining width.
pub fn print(out: &mut Output, headings: &[&str], rows: &[Vec<Cell>]) {
    let count = headings.len();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| text::width(&cell.text));
        cells.chain([text::width(headings[column])]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(widest).collect();
    let before_last: usize = widths[..count.saturating_sub(1)].iter().map(|width| width + GAP).sum();
    let last = out.columns.saturating_sub(before_last).max(10);
    let mut heading = String::new();
    for (column, name) in headings.iter().enumerate() {
        heading.push_str(&text::pad(name, widths[column] + GAP));
    }
    let heading = out.paint(heading.trim_end(), Look::Dim);
    out.line(heading);
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == count {
                line.push_str(&cell.print_last(last, out));
            } else {
                line.push_str(&out.paint(&cell.text, cell.look));
                let gap = widths[column] + GAP - text::width(&cell.text);
                line.extend(std::iter::repeat_n(' ', gap));
            }
        }
        out.line(line);
    }
}
