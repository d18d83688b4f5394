//! Prints rows in columns, measured in terminal cells. The last column takes the remaining width.

use super::text;
use crate::output::Output;
use crate::style::Look;

/// Spaces between two columns.
const GAP: usize = 2;
/// The width from which on a column before the last may be truncated, if not all fit.
const COLUMNS_KEPT: usize = 24;
/// The width that the last column has if others can make room for it.
const LAST_COLUMNS: usize = 20;

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

/// Narrows the widest columns before the last until the last one has room. An id that is cut is still a prefix that commands
/// take.
fn narrow(widths: &mut [usize], columns: usize) {
    let Some((last, before)) = widths.split_last_mut() else { return };
    let room = columns.saturating_sub((*last).min(LAST_COLUMNS));
    while before.iter().map(|width| width + GAP).sum::<usize>() > room {
        let Some(widest) = before.iter_mut().max() else { return };
        if *widest <= COLUMNS_KEPT {
            return;
        }
        *widest -= 1;
    }
}

/// Prints the rows below their headings. On a terminal, cells are truncated to its width; elsewhere only the last cell of a
/// row.
pub fn print(out: &mut Output, headings: &[&str], rows: &[Vec<Cell>]) {
    let count = headings.len();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| text::width(&cell.text));
        cells.chain([text::width(headings[column])]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..count).map(widest).collect();
    if out.is_terminal() {
        narrow(&mut widths, out.columns);
    }
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
                let shown = text::truncate(&cell.text, widths[column]);
                line.push_str(&out.paint(&shown, cell.look));
                let gap = widths[column] + GAP - text::width(&shown);
                line.extend(std::iter::repeat_n(' ', gap));
            }
        }
        out.line(line);
    }
}

#[cfg(test)]
mod tests {
    use super::narrow;

    fn narrowed(mut widths: Vec<usize>, columns: usize) -> Vec<usize> {
        narrow(&mut widths, columns);
        widths
    }

    #[test]
    fn a_long_id_leaves_room_for_what_stands_beside_it() {
        assert_eq!(narrowed(vec![127, 16, 5, 3, 3, 40], 80), [24, 16, 5, 3, 3, 40]);
        assert_eq!(narrowed(vec![127, 16, 5, 3, 3, 40], 120), [63, 16, 5, 3, 3, 40]);
    }

    #[test]
    fn what_fits_keeps_its_width() {
        assert_eq!(narrowed(vec![7, 16, 5, 3, 3, 10], 80), [7, 16, 5, 3, 3, 10]);
        assert!(narrowed(Vec::new(), 80).is_empty());
    }
}
