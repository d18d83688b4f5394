//! Styled text in a pane that scrolls: lines of runs of styles, wrapped once per width, searched, and drawn. Does not know where
//! the text comes from.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use unicode_segmentation::UnicodeSegmentation;

use crate::frame::put;
use crate::text;
use crate::theme::Theme;

/// One line before it is wrapped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StyledLine {
    /// Sanitized, without tabs.
    text: String,
    /// The end of each run of one style, as a byte offset.
    runs: Vec<(usize, Style)>,
    /// Columns by which its continuations are indented.
    indent: usize,
    /// Columns between its beginning and its text, which the continuations keep: `│ ` of a quote.
    margin: String,
}

impl StyledLine {
    pub fn plain(text: &str, style: Style) -> Self {
        let mut line = Self::default();
        line.push(text, style);
        line
    }

    /// Adds a text. What could steer the terminal is replaced, a tab becomes spaces.
    pub fn push(&mut self, text: &str, style: Style) {
        for (at, part) in text.split('\t').enumerate() {
            if at > 0 {
                let columns = text::width(&self.text);
                self.text.extend(std::iter::repeat_n(' ', TAB_COLUMNS - columns % TAB_COLUMNS));
            }
            self.text.push_str(&text::sanitize_line(part));
        }
        let end = self.text.len();
        match self.runs.last_mut() {
            Some((last, known)) if *known == style => *last = end,
            Some(_) | None => self.runs.push((end, style)),
        }
    }

    /// Puts a margin before the line and its continuations, and indents the continuations.
    #[must_use]
    pub fn with_margin(self, margin: impl Into<String>, indent: usize) -> Self {
        Self { margin: margin.into(), indent, ..self }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The rows that it takes in this width, as byte ranges.
    fn rows(&self, columns: usize) -> Vec<Range<usize>> {
        let margin = text::width(&self.margin);
        let mut rows = Vec::new();
        let (mut start, mut used, mut space) = (0, 0, None);
        let room =
            |is_first: bool| columns.saturating_sub(margin + if is_first { 0 } else { self.indent }).max(1);
        let mut from = 0;
        while from < self.text.len() {
            let Some((at, grapheme)) = self.text[from..].grapheme_indices(true).next() else { break };
            let (at, wide) = (from + at, text::width(grapheme));
            if used + wide > room(rows.is_empty()) && at > start {
                // After a space, if the line has one in its second half; program output often has none.
                let end = space.filter(|&space| (space - start) * 2 > at - start).unwrap_or(at);
                rows.push(start..end);
                (start, used, space, from) = (end, 0, None, end);
                continue;
            }
            used += wide;
            from = at + grapheme.len();
            if grapheme == " " {
                space = Some(from);
            }
        }
        rows.push(start..self.text.len());
        rows
    }
}

/// Columns between two tab stops.
const TAB_COLUMNS: usize = 8;

/// A text with its rows in one width, and its matches.
#[derive(Clone, Debug, Default)]
pub struct StyledText {
    lines: Vec<StyledLine>,
    /// The width of the rows.
    columns: usize,
    /// Each row: its line, and its part of it.
    rows: Vec<(usize, Range<usize>)>,
    /// In lower case.
    search: String,
    /// The lines with a match.
    found: Vec<usize>,
    /// The lines that can be gone to where nothing is searched: errors, headings.
    marks: Vec<usize>,
}

impl StyledText {
    pub fn new(lines: Vec<StyledLine>, marks: Vec<usize>) -> Self {
        Self { lines, marks, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines, and those that can be gone to.
    pub fn into_parts(self) -> (Vec<StyledLine>, Vec<usize>) {
        (self.lines, self.marks)
    }

    /// The lines that can be gone to.
    pub fn marks(&self) -> &[usize] {
        &self.marks
    }

    /// The lines with a match.
    pub fn found(&self) -> &[usize] {
        &self.found
    }

    /// Wraps the lines, if the width is another.
    pub fn wrap(&mut self, columns: usize) {
        if self.columns == columns {
            return;
        }
        self.columns = columns;
        let rows = self.lines.iter().enumerate();
        self.rows =
            rows.flat_map(|(at, line)| line.rows(columns).into_iter().map(move |row| (at, row))).collect();
    }

    /// The number of rows in the width of the last [`Self::wrap`].
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The first row of a line.
    pub fn row_of(&self, line: usize) -> usize {
        self.rows.partition_point(|(at, _)| *at < line)
    }

    /// The line of a row.
    pub fn line_of(&self, row: usize) -> usize {
        self.rows.get(row).map_or(self.lines.len(), |(line, _)| *line)
    }

    /// Searches for a text, ignoring case; an empty one finds nothing.
    pub fn search(&mut self, wanted: &str) {
        self.search = wanted.to_lowercase();
        let has = |line: &StyledLine| line.text.to_lowercase().contains(&self.search);
        self.found = match self.search.is_empty() {
            true => Vec::new(),
            false => (0..self.lines.len()).filter(|&at| has(&self.lines[at])).collect(),
        };
    }

    /// Where to go from a line: to the next match if a text is searched, otherwise to the next mark. Wraps around.
    pub fn next(&self, from: usize, is_back: bool) -> Option<usize> {
        let stops = if self.search.is_empty() { &self.marks } else { &self.found };
        if is_back {
            return stops.iter().rev().find(|&&line| line < from).or(stops.last()).copied();
        }
        stops.iter().find(|&&line| line > from).or(stops.first()).copied()
    }

    /// Draws the rows from `top` on. The line at `marked` is underlined.
    pub fn draw(&self, buffer: &mut Buffer, area: Rect, top: usize, theme: Theme, marked: Option<usize>) {
        for (y, (at, row)) in (area.y..area.bottom()).zip(self.rows.iter().skip(top)) {
            let line = &self.lines[*at];
            let is_continued = row.start > 0;
            let before = if is_continued {
                format!("{}{}", line.margin, " ".repeat(line.indent))
            } else {
                line.margin.clone()
            };
            put(buffer, (area.x, y), area.width, &before, theme.quiet());
            let mut x = area.x + text::width(&before) as u16;
            for (part, style) in self.pieces(line, row) {
                let style =
                    if marked == Some(*at) { style.add_modifier(Modifier::UNDERLINED) } else { style };
                let room = area.right().saturating_sub(x);
                put(buffer, (x, y), room, part, style);
                x = x.saturating_add(text::width(part) as u16);
            }
        }
    }

    /// The parts of a row, each of one style; matches are reversed.
    fn pieces<'a>(&self, line: &'a StyledLine, row: &Range<usize>) -> Vec<(&'a str, Style)> {
        let matches = matches(&line.text, &self.search);
        let mut ends: Vec<usize> = line.runs.iter().map(|(end, _)| *end).collect();
        ends.extend(matches.iter().flat_map(|found| [found.start, found.end]));
        ends.push(row.end);
        ends.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = row.start;
        for end in ends.into_iter().filter(|end| *end > row.start && *end <= row.end) {
            if end == from {
                continue;
            }
            let style =
                line.runs.iter().find(|(last, _)| *last > from).map_or(Style::new(), |(_, style)| *style);
            let is_found = matches.iter().any(|found| found.contains(&from));
            let style = if is_found { style.add_modifier(Modifier::REVERSED) } else { style };
            pieces.push((&line.text[from..end], style));
            from = end;
        }
        pieces
    }
}

/// The places of a text in a line, ignoring case. Of characters whose lower case has another length, no place is known.
fn matches(line: &str, wanted: &str) -> Vec<Range<usize>> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let lower = line.to_lowercase();
    let is_at = |at: usize| {
        let end = at + wanted.len();
        lower.len() == line.len() && line.is_char_boundary(at) && line.is_char_boundary(end)
    };
    let found = lower.match_indices(wanted).map(|(at, _)| at).filter(|at| is_at(*at));
    found.map(|at| at..at + wanted.len()).collect()
}
