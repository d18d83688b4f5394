//! Draws the overlays of the editor: the task form and the task picker.

use ratatui::Frame;
use ratatui::crossterm::event::MouseEvent;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::Clear;
use unicode_segmentation::UnicodeSegmentation;

use super::form::{Field, Form, Target};
use super::picker::Picker;
use crate::edit_buffer::EditBuffer;
use crate::frame::{draw_input, framed, put};
use crate::text;
use crate::text_input::TextInput;
use crate::theme::Theme;

const LABEL_COLUMNS: u16 = 13;

/// The width of an overlay: the full width if fewer than 20 columns would remain beside it.
fn over(columns: u16, wanted: u16) -> u16 {
    if columns < wanted + 20 { columns } else { wanted }
}

/// The frame of the form, and the area of each field.
fn form_layout(area: Rect) -> (Rect, Vec<(Field, Rect)>) {
    let width = over(area.width, 100);
    // Single-row fields, border and help take ten rows, and two stay free where there is room; the rest is for the two texts.
    let taken = if area.height > 14 { 12 } else { 10 };
    let room = area.height.saturating_sub(taken).max(2);
    let description = (room / 2).clamp(1, 4);
    let notes = (room - description.min(room)).clamp(1, 6);
    let height = (description + notes + 7 + 3).min(area.height);
    let frame =
        Rect::new(area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height);
    let x = frame.x + 2 + LABEL_COLUMNS;
    let columns = frame.right().saturating_sub(x + 2);
    let mut y = frame.y + 1;
    let mut fields = Vec::new();
    for field in Field::ALL {
        let rows = match field {
            Field::Description => description,
            Field::Notes => notes,
            Field::Complexity
            | Field::Priority
            | Field::Executor
            | Field::Parent
            | Field::DependsOn
            | Field::Tools
            | Field::Skip => 1,
        };
        fields.push((field, Rect::new(x, y, columns, rows).intersection(area)));
        y += rows;
    }
    (frame, fields)
}

/// The field at the position of the mouse.
pub(super) fn field_at(_form: &Form, area: Rect, mouse: MouseEvent) -> Option<Field> {
    let (frame, fields) = form_layout(area);
    let at = Position::new(mouse.column, mouse.row);
    let row = |place: &Rect| Rect { x: frame.x, width: frame.width, ..*place };
    fields.into_iter().find(|(_, place)| row(place).contains(at)).map(|(field, _)| field)
}

pub(super) fn draw_form(form: &Form, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let (edge, fields) = form_layout(area);
    frame.render_widget(Clear, edge);
    let changed = if form.is_changed() { " ●" } else { "" };
    let title = match &form.target {
        Target::Task(id) => format!("Task {id}{changed}"),
        Target::New(_) => format!("New task {}{changed}", form.before.id),
    };
    framed(theme, frame, edge, &title, true);
    for (field, place) in fields {
        let focused = field == form.focus;
        let style = if focused { theme.accent() } else { theme.quiet() };
        let mark = if focused { "▸" } else { " " };
        let label = format!("{mark} {}", field.label());
        put(frame.buffer_mut(), (edge.x + 1, place.y), LABEL_COLUMNS, &label, style);
        draw_value(form, field, focused, theme, frame, place);
    }
    let help = Rect::new(edge.x + 2, edge.bottom().saturating_sub(2), edge.width.saturating_sub(4), 1);
    let said = text::truncate(form.focus.help(), usize::from(help.width));
    put(frame.buffer_mut(), (help.x, help.y), help.width, &said, theme.quiet());
}

fn draw_value(form: &Form, field: Field, focused: bool, theme: Theme, frame: &mut Frame<'_>, place: Rect) {
    let columns = usize::from(place.width);
    let at = (place.x, place.y);
    match field {
        Field::Description => draw_text(&form.description, focused, theme.warning(), frame, place),
        Field::Notes => draw_text(&form.notes, focused, theme.warning(), frame, place),
        Field::Tools if focused => draw_input(frame, place, &form.tools, Style::new()),
        Field::Tools => put(
            frame.buffer_mut(),
            at,
            place.width,
            &text::truncate(form.tools.text(), columns),
            theme.text(),
        ),
        Field::Complexity => {
            let word = form.complexity.map_or("not set", waypost_core::Complexity::as_str);
            let shown = if focused { format!("◂ {word} ▸") } else { word.to_owned() };
            put(frame.buffer_mut(), at, place.width, &shown, theme.text());
        }
        Field::Priority => {
            let shown =
                if focused { format!("◂ {} ▸", form.priority) } else { form.priority.to_string() };
            put(frame.buffer_mut(), at, place.width, &shown, theme.text());
        }
        Field::Executor => {
            let shown = form.executor.as_deref().unwrap_or("none: an agent or a person does it");
            put(frame.buffer_mut(), at, place.width, &text::truncate(shown, columns), theme.text());
        }
        Field::Parent => {
            let shown = form.parent.as_ref().map_or("nothing", waypost_core::TaskId::as_str);
            put(frame.buffer_mut(), at, place.width, &text::truncate(shown, columns), theme.text());
        }
        Field::DependsOn => {
            let names: Vec<String> = form.depends_on.iter().map(ToString::to_string).collect();
            let shown = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            put(frame.buffer_mut(), at, place.width, &text::truncate(&shown, columns), theme.text());
        }
        Field::Skip => {
            let shown = if form.skip { "[x] skipped: dependants do not wait for it" } else { "[ ]" };
            put(frame.buffer_mut(), at, place.width, &text::truncate(shown, columns), theme.text());
        }
    }
}

/// Draws a text of several lines, wrapped at the width of the field and scrolled to the cursor. Arrows in this style show that
/// there is more text.
fn draw_text(input: &TextInput, focused: bool, style: Style, frame: &mut Frame<'_>, place: Rect) {
    if place.is_empty() {
        return;
    }
    let columns = usize::from(place.width);
    let mut lines = vec![String::new()];
    let mut used = 0;
    let mut cursor = (0, 0);
    let mut found = false;
    for (at, grapheme) in input.text().grapheme_indices(true) {
        let is_break = grapheme == "\n" || grapheme == "\r\n";
        let shown = text::sanitize_line(grapheme);
        let wide = text::width(&shown);
        if !is_break && used + wide > columns {
            lines.push(String::new());
            used = 0;
        }
        if !found && at >= input.cursor() {
            (cursor, found) = ((lines.len() - 1, used), true);
        }
        if is_break {
            lines.push(String::new());
            used = 0;
        } else if let Some(last) = lines.last_mut() {
            last.push_str(&shown);
            used += wide;
        }
    }
    if !found {
        if used >= columns {
            lines.push(String::new());
            used = 0;
        }
        cursor = (lines.len() - 1, used);
    }
    let rows = usize::from(place.height);
    let top = if focused { (cursor.0 + 1).saturating_sub(rows) } else { 0 };
    for (row, line) in (place.y..place.bottom()).zip(lines.iter().skip(top)) {
        put(frame.buffer_mut(), (place.x, row), place.width, line, Style::new());
    }
    // In the column to the right of the text, so that no character is covered.
    let (above, below) = (top > 0, lines.len() > top + rows);
    let mut mark = |row: u16, sign: &str| put(frame.buffer_mut(), (place.right(), row), 1, sign, style);
    match rows {
        1 if above && below => mark(place.y, "↕"),
        _ => {
            if above {
                mark(place.y, "↑");
            }
            if below {
                mark(place.bottom() - 1, "↓");
            }
        }
    }
    if focused {
        let x = place.x + cursor.1.min(columns - 1) as u16;
        frame.set_cursor_position((x, place.y + (cursor.0 - top) as u16));
    }
}

/// The area of the picker, and of its list.
fn picker_layout(area: Rect) -> (Rect, Rect) {
    let width = over(area.width, 90);
    let height = area.height.saturating_sub(if area.height > 20 { 4 } else { 0 });
    let frame =
        Rect::new(area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height);
    let list =
        Rect::new(frame.x + 1, frame.y + 3, frame.width.saturating_sub(2), frame.height.saturating_sub(4));
    (frame, list.intersection(area))
}

pub(super) fn picker_rows(area: Rect) -> usize {
    usize::from(picker_layout(area).1.height)
}

/// The row of the list at the position of the mouse.
pub(super) fn picker_row_at(area: Rect, mouse: MouseEvent) -> Option<usize> {
    let (_, list) = picker_layout(area);
    list.contains(Position::new(mouse.column, mouse.row)).then(|| usize::from(mouse.row - list.y))
}

pub(super) fn draw_picker(
    picker: &Picker,
    buffer: &EditBuffer,
    theme: Theme,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let (edge, list) = picker_layout(area);
    frame.render_widget(Clear, edge);
    let name = picker.task.as_ref().map_or_else(|| "the new task".to_owned(), ToString::to_string);
    let title = format!("Dependencies of {name} · {} chosen", picker.chosen.len());
    framed(theme, frame, edge, &title, true);
    put(frame.buffer_mut(), (edge.x + 2, edge.y + 1), 8, "filter:", theme.quiet());
    let input = Rect::new(edge.x + 10, edge.y + 1, edge.width.saturating_sub(12), 1).intersection(area);
    let rule = "─".repeat(usize::from(edge.width.saturating_sub(2)));
    put(frame.buffer_mut(), (edge.x + 1, edge.y + 2), edge.width, &rule, theme.edge());
    if picker.found.is_empty() {
        put(frame.buffer_mut(), (list.x + 1, list.y), list.width, "no other task matches", theme.quiet());
    }
    let seen = picker.found.iter().skip(picker.top).take(usize::from(list.height));
    for (place, &at) in seen.enumerate() {
        let Some(row) = buffer.rows().get(at) else { continue };
        let y = list.y + place as u16;
        let is_chosen = picker.is_chosen(row.id());
        let mark = if is_chosen { "[x]" } else { "[ ]" };
        let style = if is_chosen { theme.accent() } else { theme.text() };
        put(frame.buffer_mut(), (list.x + 1, y), 3, mark, style);
        let cycle = if picker.closes_cycle(at) { "  ↺ depends on this task" } else { "" };
        let columns = usize::from(list.width.saturating_sub(6)).saturating_sub(text::width(cycle));
        let spec = row.spec();
        let line = format!("{} {}  {}", buffer.sign(row).glyph(), spec.id, spec.description);
        put(frame.buffer_mut(), (list.x + 5, y), columns as u16, &text::fit(&line, columns), theme.text());
        let x = list.x + 5 + columns as u16;
        put(frame.buffer_mut(), (x, y), list.right().saturating_sub(x), cycle, theme.wrong());
        if picker.top + place == picker.selected {
            let line = Rect::new(list.x, y, list.width, 1);
            frame.buffer_mut().set_style(line, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
    draw_input(frame, input, &picker.filter, Style::new());
}
