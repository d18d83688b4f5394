//! Draws the plan editor: the tree of tasks, details of the selected one, the graph. Reads only visible rows.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;
use waypost_core::Complexity;
use waypost_text::StatusSign;

use super::layout::{areas, inside};
use super::{Editor, draw_overlays};
use crate::edit_buffer::{EditBuffer, Row, dependency_names};
use crate::frame::{Parts, draw_input, footer, framed, heading, put};
use crate::graph::GraphCanvas;
use crate::keys::{Action, Place};
use crate::note::ErrorMessage;
use crate::screen::DrawContext;
use crate::text;
use crate::theme::{Theme, phase_word};

/// Columns of the deepest indentation drawn.
const INDENT_MAX: usize = 16;

impl Editor {
    pub(crate) const KEYS: [Action; 18] = [
        Action::Edit,
        Action::Save,
        Action::Execute,
        Action::New,
        Action::Delete,
        Action::Set,
        Action::Palette,
        Action::Undo,
        Action::Dependencies,
        Action::Skip,
        Action::Zoom,
        Action::Approve,
        Action::External,
        Action::Graph,
        Action::Watch,
        Action::History,
        Action::ViewText,
        Action::Back,
    ];

    pub(crate) fn draw(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, parts: Parts) {
        let theme = context.settings.theme;
        let Some(buffer) = &self.buffer else {
            heading(theme, frame, parts.heading, self.plan.id.as_str(), &[]);
            let said = self.error.as_ref().map_or_else(|| "loading …".to_owned(), ErrorMessage::line);
            let columns = parts.body.width.saturating_sub(3);
            let lines = text::wrap(&said, usize::from(columns), usize::from(parts.body.height));
            for (row, line) in (parts.body.y + 1..parts.body.bottom()).zip(lines) {
                put(frame.buffer_mut(), (2, row), columns, &line, theme.text());
            }
            footer(context, frame, parts.footer, &[Action::Back]);
            return;
        };
        let spec = buffer.spec();
        let title = [&spec.title, &spec.goal].into_iter().find(|text| !text.trim().is_empty());
        let title = title.map_or_else(|| self.plan.id.to_string(), String::clone);
        heading(theme, frame, parts.heading, &title, &self.facts(context, buffer));
        if let Some(zoom) = &self.zoom {
            zoom.draw(theme, frame, parts.body);
            return footer(context, frame, parts.footer, &[Action::Zoom, Action::Edit, Action::Back]);
        }
        let areas = areas(parts.body, self.graph);
        self.draw_list(buffer, theme, frame, areas.list);
        if let Some(details) = areas.details {
            self.draw_details(context, buffer, frame, details);
        }
        if let (Some(graph), Some(selected)) = (areas.graph, self.at()) {
            let within = inside(graph);
            let canvas = GraphCanvas::of(buffer, selected, usize::from(within.height));
            let (shown, all) = canvas.shown;
            let title = if shown == all {
                "Graph".to_owned()
            } else {
                format!("Graph · {shown} of {all} tasks, around the selected one")
            };
            framed(theme, frame, graph, &title, false);
            canvas.draw(buffer, selected, theme, frame.buffer_mut(), within);
        } else if let Some(graph) = areas.graph {
            framed(theme, frame, graph, "Graph", false);
        }
        if let Some(form) = &self.form {
            draw_overlays::draw_form(form, theme, frame, parts.body);
        }
        if let Some(picker) = &self.picker {
            draw_overlays::draw_picker(picker, buffer, theme, frame, parts.body);
        }
        self.draw_footer(context, frame, parts.footer);
    }

    fn draw_footer(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, area: Rect) {
        let theme = context.settings.theme;
        if let Some(find) = &self.find {
            put(frame.buffer_mut(), (area.x, area.y), area.width, " find: ", theme.accent());
            // A note is shown next to the typed text, not instead of it.
            let (hint, style) = match context.note {
                _ if self.not_found => ("no task matches   Esc clear", theme.warning()),
                Some(note) => (note.text.as_str(), theme.warning()),
                None => ("↓ next   Enter keep   Esc clear", theme.quiet()),
            };
            let hint = text::truncate(hint, usize::from(area.width / 2));
            let columns = text::width(&hint) as u16;
            let x = area.right().saturating_sub(columns + 1);
            let typed = Rect { x: area.x + 7, width: area.width.saturating_sub(columns + 10), ..area };
            draw_input(frame, typed, find, Style::new());
            put(frame.buffer_mut(), (x, area.y), columns, &hint, style);
        } else if self.picker.is_some() {
            footer(context, frame, area, &[Action::Toggle, Action::Accept, Action::Back]);
        } else if self.form.is_some() {
            footer(
                context,
                frame,
                area,
                &[Action::NextField, Action::Accept, Action::External, Action::Back],
            );
        } else {
            footer(context, frame, area, &Self::KEYS);
        }
    }

    /// The facts at the right end of the heading.
    fn facts(&self, context: DrawContext<'_>, buffer: &EditBuffer) -> Vec<Span<'static>> {
        let theme = context.settings.theme;
        let mut facts = Vec::new();
        let mut say = |text: String, style: Style| {
            facts.extend([Span::styled(text, style), Span::raw("  ")]);
        };
        if context.settings.dry_run {
            say(" DRY RUN ".to_owned(), theme.warning().add_modifier(Modifier::REVERSED));
        }
        let problems = buffer.problems().all().len();
        if problems > 0 {
            say(format!("! {}", text::count(problems, "problem")), theme.wrong());
        }
        if let Some(version) = self.newer() {
            say(format!("v{version} in the store"), theme.warning());
        }
        if self.saving.is_some() {
            say("saving …".to_owned(), theme.accent());
        } else if buffer.is_changed() {
            say(format!("● {}", text::count(buffer.edits().max(1), "edit")), theme.warning());
        }
        let state = &buffer.base().state;
        facts.push(Span::styled(phase_word(state.phase), theme.phase(state.phase)));
        if self.awaits_approval && state.phase != waypost_core::Phase::AwaitingApproval {
            facts.push(Span::styled(" (needs approval)", theme.warning()));
        }
        facts.push(Span::styled(format!("  v{}", buffer.base().version), theme.quiet()));
        facts
    }

    fn draw_list(&self, buffer: &EditBuffer, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let active = self.form.is_none() && self.picker.is_none();
        let position = if self.visible.is_empty() { 0 } else { self.selected + 1 };
        let (done, all) = buffer.progress();
        let title = format!("Tasks {position}/{} · {done} of {all} done", self.visible.len());
        let within = framed(theme, frame, area, &title, active);
        if self.visible.is_empty() {
            let said = "no tasks yet: N adds one, E opens the plan in $EDITOR";
            put(
                frame.buffer_mut(),
                (within.x + 1, within.y),
                within.width.saturating_sub(1),
                said,
                theme.quiet(),
            );
        }
        let seen: Vec<usize> =
            self.visible.iter().skip(self.top).take(usize::from(within.height)).copied().collect();
        let names = seen
            .iter()
            .map(|&at| indent(&buffer.rows()[at]) + text::width(buffer.rows()[at].id().as_str()) + 2);
        let columns = names.max().unwrap_or(0).clamp(6, usize::from(within.width) / 3);
        for (place, &at) in seen.iter().enumerate() {
            let line = Rect::new(within.x, within.y + place as u16, within.width, 1);
            let text = Rect { width: line.width.saturating_sub(1), ..line };
            self.draw_row(buffer, at, columns, theme, frame, text);
            if self.top + place == self.selected {
                let style =
                    if active { theme.selected() } else { Style::new().add_modifier(Modifier::UNDERLINED) };
                frame.buffer_mut().set_style(line, style);
            }
        }
    }

    fn draw_row(
        &self,
        buffer: &EditBuffer,
        at: usize,
        name_columns: usize,
        theme: Theme,
        frame: &mut Frame<'_>,
        line: Rect,
    ) {
        let row = &buffer.rows()[at];
        let spec = row.spec();
        let is_wrong = buffer.problems().has(spec.id.as_str());
        let (mark, mark_style) = if is_wrong { ("!", theme.wrong()) } else { (" ", theme.text()) };
        let (shown, style) = row_sign(buffer, row, theme);
        let cells = frame.buffer_mut();
        put(cells, (line.x, line.y), 1, mark, mark_style);
        put(cells, (line.x + 1, line.y), 1, shown, style);
        let fold = match (buffer.is_parent(at), self.folded.contains(&spec.id)) {
            (true, true) => "▸",
            (true, false) => "▾",
            (false, _) => " ",
        };
        let name = format!("{}{fold}{}", indentation(row), spec.id);
        let name_style =
            if spec.skip { theme.quiet().add_modifier(Modifier::CROSSED_OUT) } else { theme.accent() };
        put(
            cells,
            (line.x + 3, line.y),
            name_columns as u16,
            &text::truncate(&name, name_columns),
            name_style,
        );
        let x = line.x + 4 + name_columns as u16;
        put(cells, (x, line.y), 4, complexity(spec.complexity), theme.quiet());
        let x = x + 5;
        let room = usize::from(line.right().saturating_sub(x));
        let waits = match buffer.problems().cycle(spec.id.as_str()) {
            Some(path) => format!("↺ {}", path.join(" → ")),
            None if spec.depends_on.is_empty() => String::new(),
            None => format!("← {}", dependency_names(spec).join(", ")),
        };
        let waits = text::truncate(&waits, room * if is_wrong { 3 } else { 2 } / 5);
        let wide = text::width(&waits);
        let description =
            text::truncate(&spec.description, room.saturating_sub(if wide > 0 { wide + 2 } else { 0 }));
        let text_style = if spec.skip { theme.quiet() } else { theme.text() };
        put(cells, (x, line.y), room as u16, &description, text_style);
        let waits_style = if is_wrong { theme.wrong() } else { theme.quiet() };
        put(cells, (line.right() - wide as u16, line.y), wide as u16, &waits, waits_style);
    }

    fn draw_details(&self, context: DrawContext<'_>, buffer: &EditBuffer, frame: &mut Frame<'_>, area: Rect) {
        let theme = context.settings.theme;
        let Some(at) = self.at() else {
            framed(theme, frame, area, "", false);
            return;
        };
        let row = &buffer.rows()[at];
        let word = if row.spec().skip { "skip" } else { buffer.sign(row).label() };
        let complexity =
            row.spec().complexity.map(|complexity| format!(" · {}", complexity.as_str())).unwrap_or_default();
        let title = format!("{} · {word}{complexity}", row.id());
        let within = framed(theme, frame, area, &title, false);
        let mut y = within.y;
        let mut hidden: Vec<&str> = Vec::new();
        for (label, value, style) in details(buffer, at, theme) {
            let columns = usize::from(within.width.saturating_sub(2));
            let label_columns = if label.is_empty() { 0 } else { text::width(label) + 2 };
            let room = usize::from(within.bottom().saturating_sub(y));
            let columns = columns.saturating_sub(label_columns);
            if text::wrap(&value, columns, room + 1).len() > room {
                hidden.push(if label.is_empty() { "description" } else { label });
            }
            let lines = text::wrap(&value, columns, room);
            for (number, line) in lines.iter().enumerate() {
                if number == 0 && !label.is_empty() {
                    let label = format!("{label}:");
                    put(frame.buffer_mut(), (within.x + 1, y), within.width, &label, theme.quiet());
                }
                let x = within.x + 1 + label_columns as u16;
                put(frame.buffer_mut(), (x, y), within.right().saturating_sub(x), line, style);
                y += 1;
            }
        }
        if !hidden.is_empty() {
            let key = context.settings.keys.hint(Place::Editor, Action::Zoom).map(|(key, _)| key);
            let key = key.unwrap_or_default();
            let more = format!(" {} more: {} ({key} shows all) ", text::ELLIPSIS, hidden.join(", "));
            let columns = area.width.saturating_sub(4);
            let more = text::truncate(&more, usize::from(columns));
            put(frame.buffer_mut(), (area.x + 2, within.bottom()), columns, &more, theme.warning());
        }
    }
}

fn indent(row: &Row) -> usize {
    (usize::from(row.depth) * 2).min(INDENT_MAX)
}

/// The indentation of a task; beyond the limit, the depth is shown as a number.
fn indentation(row: &Row) -> String {
    let columns = indent(row);
    if usize::from(row.depth) * 2 > columns {
        text::fit_right(&format!("{}›", row.depth), columns)
    } else {
        " ".repeat(columns)
    }
}

fn complexity(complexity: Option<Complexity>) -> &'static str {
    match complexity {
        None => "",
        Some(Complexity::Low) => "low",
        Some(Complexity::Medium) => "med",
        Some(Complexity::High) => "high",
    }
}

fn row_sign(buffer: &EditBuffer, row: &Row, theme: Theme) -> (&'static str, Style) {
    if row.spec().skip && row.task.state.status == waypost_core::Status::Pending {
        return (StatusSign::Skipped.glyph(), theme.quiet());
    }
    let sign = buffer.sign(row);
    (sign.glyph(), theme.role(sign.role()))
}

/// Maximum number of tasks named in a line of the details; the others are counted.
const NAMES_MAX: usize = 12;

/// The details of a task, problems first.
pub(super) fn details(buffer: &EditBuffer, at: usize, theme: Theme) -> Vec<(&'static str, String, Style)> {
    let row = &buffer.rows()[at];
    let (spec, state) = (row.spec(), &row.task.state);
    let mut lines: Vec<(&'static str, String, Style)> = Vec::new();
    for problem in buffer.problems().of_task(spec.id.as_str()) {
        lines.push(("wrong", format!("{}; {}", problem.wrong, problem.hint()), theme.wrong()));
    }
    lines.push(("", spec.description.clone(), theme.text()));
    let mut add = |label: &'static str, value: String, style: Style| {
        if !value.trim().is_empty() {
            lines.push((label, value, style));
        }
    };
    add("error", state.error.clone().unwrap_or_default(), theme.wrong());
    add(
        "question",
        state.question().map(|question| question.text.clone()).unwrap_or_default(),
        theme.warning(),
    );
    add("notes", spec.notes.clone(), theme.text());
    add("depends on", dependency_names(spec).join(", "), theme.text());
    let mut after: Vec<String> = buffer
        .dependencies()
        .dependants(at)
        .take(NAMES_MAX)
        .map(|after| buffer.rows()[after].id().to_string())
        .collect();
    let all = buffer.dependencies().dependants(at).count();
    if all > NAMES_MAX {
        after.push(format!("… {} more", all - NAMES_MAX));
    }
    add("needed by", after.join(", "), theme.text());
    let work = |work: &waypost_core::Work| format!("{} {}", work.executor, work.inputs.as_str());
    add("runs", spec.work.as_deref().map(work).unwrap_or_default(), theme.text());
    add("check", spec.check.as_deref().map(work).unwrap_or_default(), theme.text());
    add("tools", spec.tools.as_deref().unwrap_or_default().join(", "), theme.text());
    add(
        "locks",
        spec.locks.iter().map(|lock| lock.key.as_str()).collect::<Vec<_>>().join(", "),
        theme.text(),
    );
    add("assignee", state.assignee().unwrap_or_default().to_owned(), theme.text());
    add("labels", state.labels().join(", "), theme.text());
    let comments: Vec<String> =
        state.comments().iter().map(|comment| format!("{}: {}", comment.by, comment.text)).collect();
    add("comments", comments.join("\n"), theme.text());
    add("reason", state.reason.clone().unwrap_or_default(), theme.text());
    add("progress", state.progress.clone().unwrap_or_default(), theme.text());
    add("result", state.result.clone().unwrap_or_default(), theme.text());
    lines
}
