//! Markdown as styled text for a terminal: headings, lists, quotes, code, tables. Nothing is loaded, HTML is shown as written,
//! and the address of a link stands beside its words. Does not know plans.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

use crate::styled_text::{StyledLine, StyledText};
use crate::text;
use crate::theme::Theme;

const BULLET: &str = "• ";
/// Columns of a horizontal rule.
const RULE_COLUMNS: usize = 24;
/// Maximum width of one column of a table.
const CELL_COLUMNS_MAX: usize = 40;
/// Quotes and lists nested deeper are indented no further.
const DEPTH_MAX: usize = 12;

/// Renders a text. Its headings are places to go to.
pub fn markdown(source: &str, theme: Theme) -> StyledText {
    let (lines, headings) = markdown_lines(source, theme);
    StyledText::new(lines, headings)
}

/// Renders a text as lines, with the indices of its headings.
pub fn markdown_lines(source: &str, theme: Theme) -> (Vec<StyledLine>, Vec<usize>) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page::new(theme);
    for event in Parser::new_ext(source, options) {
        page.add(event);
    }
    page.end_line();
    while page.lines.last().is_some_and(|line| line.text().is_empty()) {
        page.lines.pop();
    }
    (page.lines, page.headings)
}

/// A list that is open: the number of its next item, if it is numbered.
type List = Option<u64>;

struct Page {
    theme: Theme,
    lines: Vec<StyledLine>,
    headings: Vec<usize>,
    line: StyledLine,
    /// Whether the line has anything, also an empty text.
    is_begun: bool,
    styles: Vec<Style>,
    lists: Vec<List>,
    /// The mark of the list item that begins with the next line.
    bullet: Option<String>,
    quotes: usize,
    in_code: bool,
    links: Vec<String>,
    table: Option<Table>,
}

/// A table: its rows of cells, the first of which is its head.
#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

impl Page {
    fn new(theme: Theme) -> Self {
        Self {
            theme,
            lines: Vec::new(),
            headings: Vec::new(),
            line: StyledLine::default(),
            is_begun: false,
            styles: Vec::new(),
            lists: Vec::new(),
            bullet: None,
            quotes: 0,
            in_code: false,
            links: Vec::new(),
            table: None,
        }
    }

    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => self.text(&text),
            Event::Code(code) => self.put(&code, self.theme.accent()),
            Event::SoftBreak => self.put(" ", self.style()),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.put(&"─".repeat(RULE_COLUMNS), self.theme.quiet());
                self.end_block();
            }
            Event::TaskListMarker(is_done) => {
                // The box stands in the place of the bullet.
                self.bullet = self.bullet.take().filter(|bullet| bullet.as_str() != BULLET);
                self.put(if is_done { "[x] " } else { "[ ] " }, self.style());
            }
            Event::FootnoteReference(name) => self.put(&format!("[{name}]"), self.style()),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.put(&text, self.style()),
        }
    }

    fn style(&self) -> Style {
        self.styles.iter().fold(Style::new(), |all, style| all.patch(*style))
    }

    fn put(&mut self, text: &str, style: Style) {
        if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
            if let Some(cell) = row.last_mut() {
                cell.push_str(text);
            }
            return;
        }
        if let Some(bullet) = self.bullet.take() {
            self.line.push(&bullet, self.theme.accent());
        }
        self.line.push(text, style);
        self.is_begun = true;
    }

    /// Code and HTML bring their own line ends.
    fn text(&mut self, text: &str) {
        let mut lines = text.split('\n').peekable();
        while let Some(line) = lines.next() {
            if lines.peek().is_none() && line.is_empty() {
                break;
            }
            self.put(line, self.style());
            if lines.peek().is_some() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_begun) {
            let line = std::mem::take(&mut self.line);
            let depth = (self.lists.len() * 2).saturating_sub(2).min(DEPTH_MAX);
            let quotes = "│ ".repeat(self.quotes.min(DEPTH_MAX));
            let code = if self.in_code { "▏ " } else { "" };
            let indent = if self.lists.is_empty() || self.in_code { 0 } else { 2 };
            self.lines.push(line.with_margin(format!("{quotes}{:depth$}{code}", ""), indent));
        }
    }

    /// Ends a block, with an empty line after it; items of lists stand close together.
    fn end_block(&mut self) {
        self.end_line();
        let has_gap = self.lines.last().is_none_or(|line| line.text().is_empty());
        if self.lists.is_empty() && !has_gap {
            self.lines.push(StyledLine::default());
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_block();
                self.headings.push(self.lines.len());
                let style = self.theme.heading();
                self.styles.push(match level {
                    HeadingLevel::H1 => style.add_modifier(Modifier::UNDERLINED),
                    HeadingLevel::H2 => self.theme.accent(),
                    HeadingLevel::H3 | HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => style,
                });
            }
            Tag::BlockQuote(_) => {
                self.end_line();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.end_line();
                self.in_code = true;
                if let CodeBlockKind::Fenced(name) = kind
                    && !name.is_empty()
                {
                    self.put(&name, self.theme.quiet());
                    self.end_line();
                }
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                self.bullet = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => BULLET.to_owned(),
                });
            }
            Tag::Emphasis => self.styles.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.styles.push(Style::new().add_modifier(Modifier::UNDERLINED));
            }
            Tag::Table(alignments) => {
                self.end_line();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => {
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(String::new());
                }
            }
            Tag::Paragraph
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_line();
                self.styles.pop();
                self.end_block();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.end_block(),
            TagEnd::BlockQuote(_) => {
                self.end_line();
                // The gap after its last paragraph is no part of it.
                while self.lines.last().is_some_and(|line| line.text().is_empty()) {
                    self.lines.pop();
                }
                self.quotes -= 1;
                self.end_block();
            }
            TagEnd::CodeBlock => {
                self.end_line();
                self.in_code = false;
                self.end_block();
            }
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
                self.end_block();
            }
            TagEnd::Item => {
                // An empty item is shown too.
                if self.bullet.is_some() {
                    self.put("", Style::new());
                }
                self.end_line();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some(address) = self.links.pop().filter(|address| !self.line.text().ends_with(address))
                {
                    self.put(&format!(" ({address})"), self.theme.quiet());
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.table(&table);
                }
                self.end_block();
            }
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::TableCell
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn table(&mut self, table: &Table) {
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            let cells = table.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| text::width(&text::sanitize_line(cell))).max().unwrap_or(0).min(CELL_COLUMNS_MAX)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        for (number, row) in table.rows.iter().enumerate() {
            let cells = widths.iter().enumerate().map(|(column, &width)| {
                let cell = row.get(column).map_or("", String::as_str);
                match table.alignments.get(column) {
                    Some(Alignment::Right) => text::fit_right(cell, width),
                    Some(Alignment::Left | Alignment::Center | Alignment::None) | None => {
                        text::fit(cell, width)
                    }
                }
            });
            let line = cells.collect::<Vec<_>>().join(" │ ");
            self.put(line.trim_end(), if number == 0 { self.theme.heading() } else { self.theme.text() });
            self.end_line();
            if number == 0 {
                let rule = widths.iter().map(|&width| "─".repeat(width)).collect::<Vec<_>>().join("─┼─");
                self.put(&rule, self.theme.quiet());
                self.end_line();
            }
        }
    }
}
