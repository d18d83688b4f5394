//! Drawing shared by all screens: heading, footer, bordered boxes, text inputs and dialogs. Knows no single screen.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear};
use waypost_core::PlanId;

use crate::dialog::Dialog;
use crate::dialog::menu::Menu;
use crate::keys::{Action, Keys, Place};
use crate::note::NoteKind;
use crate::screen::DrawContext;
use crate::text;
use crate::text_input::TextInput;
use crate::theme::Theme;

/// The smallest supported terminal.
const COLUMNS_MIN: u16 = 60;
const ROWS_MIN: u16 = 15;
/// Columns of a plan's id in the heading.
const HEADING_ID_COLUMNS: usize = 24;

/// The parts of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// The first row.
    pub heading: Rect,
    /// The area of the screen.
    pub body: Rect,
    /// The last row: a note, or the keys.
    pub footer: Rect,
}

pub fn parts(size: Rect) -> Parts {
    let row = |y: u16| Rect::new(size.x, y, size.width, 1).intersection(size);
    Parts {
        heading: row(size.y),
        body: Rect::new(size.x, size.y + 1, size.width, size.height.saturating_sub(2)).intersection(size),
        footer: row(size.bottom().saturating_sub(1)),
    }
}

/// Whether the terminal is too small for any screen.
pub fn is_too_small(size: Rect) -> bool {
    size.width < COLUMNS_MIN || size.height < ROWS_MIN
}

/// Draws the size that is needed.
pub fn draw_too_small(frame: &mut Frame<'_>, size: Rect) {
    let lines = [
        format!("Waypost needs {COLUMNS_MIN}×{ROWS_MIN};"),
        format!("this terminal is {}×{}.", size.width, size.height),
        "Make it larger, or Ctrl-C quits.".to_owned(),
    ];
    let top = size.y + size.height.saturating_sub(lines.len() as u16) / 2;
    for (row, line) in (top..size.bottom()).zip(lines) {
        let line = text::truncate(&line, usize::from(size.width));
        put(frame.buffer_mut(), (size.x, row), size.width, &line, Style::new());
    }
}

/// Draws one sanitized line, at most `columns` wide.
pub fn put(buffer: &mut Buffer, (x, y): (u16, u16), columns: u16, line: &str, style: Style) {
    let area = buffer.area;
    if area.contains(Position::new(x, y)) {
        let room = columns.min(area.right() - x);
        buffer.set_stringn(x, y, text::sanitize_line(line), usize::from(room), style);
    }
}

/// Draws the first row: the title, and a few facts at the right end.
pub fn heading(theme: Theme, frame: &mut Frame<'_>, area: Rect, title: &str, facts: &[Span<'_>]) {
    let columns = usize::from(area.width);
    let name = " waypost ";
    let right: usize = facts.iter().map(|fact| text::width(&fact.content)).sum::<usize>() + 1;
    let room = columns.saturating_sub(text::width(name) + 2 + right + 1);
    let title = text::fit(title, room);
    let mut spans = vec![
        Span::styled(name, theme.accent().add_modifier(ratatui::style::Modifier::REVERSED)),
        Span::raw("  "),
        Span::styled(title, theme.heading()),
        Span::raw(" "),
    ];
    spans.extend(facts.iter().cloned());
    frame.render_widget(Line::from(spans), area);
}

/// A plan's id beside its title: one that is very long takes no room from the title.
pub fn heading_id(plan: &PlanId) -> String {
    text::truncate(plan.as_str(), HEADING_ID_COLUMNS).into_owned()
}

/// Draws the last row: a note, or the available keys, as many as fit.
pub fn footer(context: DrawContext<'_>, frame: &mut Frame<'_>, area: Rect, actions: &[Action]) {
    let theme = context.settings.theme;
    if let Some(note) = context.note {
        let (sign, style) = match note.kind {
            NoteKind::Good => ("✓", theme.good()),
            NoteKind::Warning => ("!", theme.warning()),
            NoteKind::Wrong => ("✗", theme.wrong()),
        };
        return draw_note(&format!("{sign} {}", note.text), style, frame, area);
    }
    for entry in footer_keys(&context.settings.keys, context.place, actions, area.width) {
        let x = area.x + entry.x;
        put(frame.buffer_mut(), (x, area.y), area.width, &entry.key, theme.accent());
        let x = x + text::width(&entry.key) as u16 + 1;
        put(frame.buffer_mut(), (x, area.y), area.width, entry.hint, theme.quiet());
    }
}

/// Draws a note in the last row, and in as many rows above it as it needs: no error is cut.
fn draw_note(note: &str, style: Style, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width.saturating_sub(2));
    let lines = text::wrap(note, columns, usize::from(area.y / 2).max(1));
    let top = (area.y + 1).saturating_sub(lines.len() as u16);
    for (row, line) in (top..).zip(&lines) {
        let line = text::fit(&format!(" {line}"), usize::from(area.width));
        frame.render_widget(Clear, Rect { y: row, height: 1, ..area });
        put(frame.buffer_mut(), (area.x, row), area.width, &line, style);
    }
}

/// Draws the last row while a line of text is typed: the few keys that are not text.
pub fn typing_footer(theme: Theme, frame: &mut Frame<'_>, area: Rect, keys: &[(&str, &str)]) {
    let mut x = area.x + 1;
    for (key, does) in keys {
        put(frame.buffer_mut(), (x, area.y), area.width, key, theme.accent());
        x += text::width(key) as u16 + 1;
        put(frame.buffer_mut(), (x, area.y), area.width, does, theme.quiet());
        x += text::width(does) as u16 + 3;
    }
}

/// Draws the last row while a search is typed: the text, the number of matches, and the keys that are not text.
pub fn search_footer(
    theme: Theme,
    frame: &mut Frame<'_>,
    area: Rect,
    find: &TextInput,
    found: usize,
    keys: &[(&str, &str)],
) {
    let columns = (area.width / 3).max(16);
    put(frame.buffer_mut(), (area.x + 1, area.y), 1, "/", theme.accent());
    draw_input(frame, Rect { x: area.x + 2, width: columns, ..area }, find, Style::new());
    let (said, style) = match (find.text().is_empty(), found) {
        (true, _) => (String::new(), theme.quiet()),
        (false, 0) => ("nothing found".to_owned(), theme.warning()),
        (false, found) => (text::count(found, "line"), theme.quiet()),
    };
    let x = area.x + columns + 4;
    put(frame.buffer_mut(), (x, area.y), area.width.saturating_sub(x), &said, style);
    let keys_x = x + text::width(&said) as u16 + 2;
    typing_footer(theme, frame, Rect { x: keys_x, width: area.width.saturating_sub(keys_x), ..area }, keys);
}

/// A key in the footer.
struct FooterKey {
    action: Action,
    key: String,
    hint: &'static str,
    x: u16,
}

impl FooterKey {
    fn columns(&self) -> usize {
        text::width(&self.key) + 1 + text::width(self.hint)
    }
}

/// The keys in the footer: as many as fit. The key for help (except in the form and the picker) and, if it is
/// among the actions, the key to go back are always included.
fn footer_keys(keys: &Keys, place: Place, actions: &[Action], width: u16) -> Vec<FooterKey> {
    const GAP: usize = 3;
    let entry = |action: Action| {
        let (key, hint) = keys.hint(place, action).filter(|(_, hint)| !hint.is_empty())?;
        Some(FooterKey { action, key, hint, x: 0 })
    };
    let help = entry(Action::Help).filter(|_| place != Place::Form && place != Place::Picker);
    let back = entry(Action::Back).filter(|_| actions.contains(&Action::Back));
    let always: Vec<FooterKey> = back.into_iter().chain(help).collect();
    let taken: usize = always.iter().map(|entry| entry.columns() + GAP).sum();
    let mut room = usize::from(width).saturating_sub(1 + taken);
    let mut shown: Vec<FooterKey> = Vec::new();
    let others = actions.iter().filter(|action| **action != Action::Back);
    for entry in others.filter_map(|&action| entry(action)) {
        if entry.columns() > room {
            break;
        }
        room = room.saturating_sub(entry.columns() + GAP);
        shown.push(entry);
    }
    shown.extend(always);
    let mut x = 1;
    for entry in &mut shown {
        entry.x = x;
        x += (entry.columns() + GAP) as u16;
    }
    shown
}

/// The action of the footer key in a column of the terminal.
pub fn footer_key_at(
    keys: &Keys,
    place: Place,
    actions: &[Action],
    footer: Rect,
    column: u16,
) -> Option<Action> {
    let shown = footer_keys(keys, place, actions, footer.width);
    let hit = |entry: &&FooterKey| (entry.x..entry.x + entry.columns() as u16).contains(&column);
    shown.iter().find(hit).map(|entry| entry.action)
}

/// Draws a box with a title. Returns the area inside.
pub fn framed(theme: Theme, frame: &mut Frame<'_>, area: Rect, title: &str, active: bool) -> Rect {
    let style = if active { theme.edge_active() } else { theme.edge() };
    let title = text::truncate(title, usize::from(area.width.saturating_sub(4)));
    let block = Block::bordered().border_type(BorderType::Rounded).border_style(style);
    let block = if title.is_empty() {
        block
    } else {
        block.title(Line::styled(format!(" {title} "), if active { theme.accent() } else { theme.heading() }))
    };
    let inside = block.inner(area);
    frame.render_widget(block, area);
    inside
}

/// Draws one line of typed text, scrolled so that the cursor is visible.
pub fn draw_input(frame: &mut Frame<'_>, area: Rect, input: &TextInput, style: Style) {
    if area.is_empty() {
        return;
    }
    let columns = usize::from(area.width);
    let before = text::sanitize_line(&input.text()[..input.cursor()]).into_owned();
    let hidden = (text::width(&before) + 1).saturating_sub(columns);
    let all = text::sanitize_line(input.text());
    let shown = text::skip_columns(&all, hidden);
    put(frame.buffer_mut(), (area.x, area.y), area.width, &text::fit(&shown, columns), style);
    let at = area.x + (text::width(&before) - hidden).min(columns - 1) as u16;
    frame.set_cursor_position((at, area.y));
}

/// Draws a dialog over everything else.
pub fn draw_dialog(dialog: &Dialog, theme: Theme, frame: &mut Frame<'_>, size: Rect) {
    let layout = dialog.layout(size);
    frame.render_widget(Clear, layout.frame);
    framed(theme, frame, layout.frame, &dialog.title, true);
    for (row, line) in (layout.text.y..layout.text.bottom()).zip(&layout.lines) {
        put(frame.buffer_mut(), (layout.text.x, row), layout.text.width, line, theme.text());
    }
    for (at, (button, place)) in dialog.buttons.iter().zip(&layout.buttons).enumerate() {
        let style = if at == dialog.marked { theme.selected() } else { theme.accent() };
        put(frame.buffer_mut(), (place.x, place.y), place.width, &button.shown(), style);
    }
    if let (Some(menu), Some(area)) = (&dialog.menu, layout.menu) {
        draw_menu(menu, theme, frame, area);
    }
    if let (Some(input), Some(place)) = (&dialog.input, layout.input) {
        draw_input(frame, place, input, Style::new().add_modifier(ratatui::style::Modifier::UNDERLINED));
    }
}

/// Draws a list of options, with its filter in the first row.
pub fn draw_menu(menu: &Menu, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let filter = u16::from(menu.has_filter());
    let list = Rect { y: area.y + filter, height: area.height.saturating_sub(filter), ..area };
    let mut is_empty = true;
    for (row, (option, digit, is_selected)) in
        (list.y..list.bottom()).zip(menu.visible(usize::from(list.height)))
    {
        is_empty = false;
        let key = digit.map(|digit| format!("{digit} ")).unwrap_or_default();
        let label = format!(" {key}{} ", text::sanitize_line(&option.label));
        let columns = usize::from(list.width);
        let detail = text::truncate(&option.detail, columns.saturating_sub(text::width(&label) + 1));
        let at = columns.saturating_sub(text::width(&detail) + 1);
        let label = text::truncate(&label, columns);
        put(frame.buffer_mut(), (list.x, row), list.width, &label, theme.text());
        put(frame.buffer_mut(), (list.x + at as u16, row), list.width, &detail, theme.quiet());
        if is_selected {
            frame.buffer_mut().set_style(Rect { y: row, height: 1, ..list }, theme.selected());
        }
    }
    if is_empty && !list.is_empty() {
        put(frame.buffer_mut(), (list.x + 1, list.y), list.width, "nothing matches", theme.quiet());
    }
    if let (Some(typed), false) = (menu.filter(), area.is_empty()) {
        put(frame.buffer_mut(), (area.x, area.y), 2, "/ ", theme.accent());
        let place = Rect { x: area.x + 2, width: area.width.saturating_sub(2), height: 1, ..area };
        draw_input(frame, place, typed, Style::new().add_modifier(ratatui::style::Modifier::UNDERLINED));
    }
}
