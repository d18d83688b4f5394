//! Draws the list of plans.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use waypost_store::{ArchiveFilter, PlanSummary, Sort};
use waypost_text::StatusSign;

use super::{PlanList, rows};
use crate::frame::{self, Parts, draw_input, footer, heading, put};
use crate::keys::Action;
use crate::screen::DrawContext;
use crate::theme::{Theme, phase_word};
use crate::{text, theme};

/// The widths of the columns; 0 hides a column.
struct Columns {
    scope: usize,
    name: usize,
    title: usize,
    phase: usize,
    version: usize,
    progress: usize,
    bar: usize,
    age: usize,
}

const GAP: usize = 2;

/// The keys while the filter is typed.
const TYPING_KEYS: [(&str, &str); 3] = [("Enter", "apply"), ("Esc", "clear"), ("↑ ↓", "select")];

impl Columns {
    fn of(width: usize, stores: usize, names: usize) -> Self {
        let scope = if stores > 1 || width >= 80 { 5 } else { 0 };
        let version = if width >= 72 { 5 } else { 0 };
        let bar = if width >= 110 { 10 } else { 0 };
        let name = names.clamp(6, if width >= 110 { 24 } else { 12 });
        let (phase, progress, age) = (9, 7, 4);
        let fixed = [scope, name, phase, version, progress, bar, age];
        let used: usize = fixed.iter().filter(|columns| **columns > 0).map(|columns| columns + GAP).sum();
        Self { scope, name, title: width.saturating_sub(used + 2), phase, version, progress, bar, age }
    }
}

impl PlanList {
    pub(crate) const KEYS: [Action; 9] = [
        Action::Open,
        Action::Filter,
        Action::Watch,
        Action::New,
        Action::Status,
        Action::History,
        Action::Sort,
        Action::Archived,
        Action::Back,
    ];

    pub(crate) fn draw(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, parts: Parts) {
        let theme = context.settings.theme;
        let facts = [Span::styled(self.facts(), theme.quiet())];
        heading(theme, frame, parts.heading, "Plans", &facts);
        let area = parts.body;
        let shown = self.list.iter().skip(self.top).take(rows(area));
        let names = shown.clone().map(|&(store, place)| self.sides[store].heads[place].id.as_str().len());
        let columns =
            Columns::of(usize::from(area.width), context.settings.stores.len(), names.max().unwrap_or(0));
        draw_head(&columns, theme, frame, area);
        for (row, (at, &(store, place))) in (area.y + 1..).zip(shown.enumerate()) {
            let scope = context.settings.stores.get(store).map_or("", String::as_str);
            let line = Rect::new(area.x, row, area.width, 1);
            draw_plan(&columns, (scope, &self.sides[store].heads[place]), context, frame, line);
            if self.top + at == self.selected {
                frame.buffer_mut().set_style(line, theme.selected());
            }
        }
        if self.list.is_empty() {
            self.draw_empty(theme, frame, area);
        }
        self.draw_bottom(theme, frame, Rect::new(area.x, area.bottom().saturating_sub(1), area.width, 1));
        if self.typing && context.note.is_none() {
            frame::typing_footer(theme, frame, parts.footer, &TYPING_KEYS);
        } else {
            footer(context, frame, parts.footer, &Self::KEYS);
        }
    }

    fn facts(&self) -> String {
        let total: u64 = self.sides.iter().map(|side| side.total).sum();
        let order = match self.sort {
            Sort::Updated => "last changed",
            Sort::Created => "newest",
            Sort::Title => "by title",
            Sort::Id => "by name",
            Sort::Urgency => "most urgent",
            Sort::Attention => "waiting for you",
        };
        let shelf = match self.shelf {
            ArchiveFilter::Current => "",
            ArchiveFilter::Archived => " · archived",
            ArchiveFilter::All => " · with archived",
        };
        format!("{} · {order}{shelf}", text::count(usize::try_from(total).unwrap_or(usize::MAX), "plan"))
    }

    fn draw_empty(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let said = if self.sides.iter().any(|side| side.request.is_some()) {
            "loading …"
        } else if !self.filter.text().is_empty() {
            "no plan has this text in its name or title"
        } else {
            "no plans yet: n creates one, `waypost import FILE` imports one"
        };
        put(frame.buffer_mut(), (area.x + 2, area.y + 2), area.width.saturating_sub(2), said, theme.quiet());
    }

    /// Draws the filter, and read errors.
    fn draw_bottom(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let mut x = area.x + 1;
        if self.typing || !self.filter.text().is_empty() {
            put(frame.buffer_mut(), (x, area.y), area.width, "/", theme.accent());
            let columns = (area.width / 3).max(16);
            let place = Rect::new(x + 1, area.y, columns, 1).intersection(area);
            if self.typing {
                draw_input(frame, place, &self.filter, Style::new());
            } else {
                let typed = text::truncate(self.filter.text(), usize::from(columns));
                put(frame.buffer_mut(), (place.x, place.y), place.width, &typed, Style::new());
            }
            x = place.right() + 1;
        }
        let warnings: Vec<&String> = self.sides.iter().flat_map(|side| &side.warnings).collect();
        let error = self.sides.iter().find_map(|side| side.error.as_ref());
        let room = area.right().saturating_sub(x);
        let line = match (error, warnings.first()) {
            (Some(error), _) => format!("✗ {}", error.line()),
            (None, Some(first)) => {
                format!("! {} could not be read: {first}", text::count(warnings.len(), "plan"))
            }
            (None, None) => return,
        };
        let style = if error.is_some() { theme.wrong() } else { theme.warning() };
        put(frame.buffer_mut(), (x, area.y), room, &text::truncate(&line, usize::from(room)), style);
    }
}

/// Draws values one after the other, with gaps; skips hidden columns.
struct Pen<'f, 'b> {
    frame: &'f mut Frame<'b>,
    x: u16,
    y: u16,
}

impl Pen<'_, '_> {
    fn put(&mut self, columns: usize, shown: &str, style: Style) {
        if columns > 0 {
            put(self.frame.buffer_mut(), (self.x, self.y), columns as u16, shown, style);
            self.x += (columns + GAP) as u16;
        }
    }
}

fn draw_head(columns: &Columns, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let style = theme.quiet();
    let mut pen = Pen { frame, x: area.x + 1, y: area.y };
    pen.put(columns.scope, "SCOPE", style);
    pen.put(columns.name, "NAME", style);
    pen.put(columns.title, "TITLE", style);
    pen.put(columns.phase, "PHASE", style);
    pen.put(columns.version, &text::fit_right("V", columns.version), style);
    pen.put(columns.bar, "", style);
    pen.put(columns.progress, &text::fit_right("DONE", columns.progress), style);
    pen.put(columns.age, &text::fit_right("AGE", columns.age), style);
}

fn draw_plan(
    columns: &Columns,
    (scope, head): (&str, &PlanSummary),
    context: DrawContext<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let theme = context.settings.theme;
    let mut pen = Pen { frame, x: area.x + 1, y: area.y };
    pen.put(columns.scope, &text::truncate(scope, columns.scope), theme.quiet());
    pen.put(columns.name, &text::truncate(head.id.as_str(), columns.name), theme.accent());
    let title_x = pen.x;
    let status = if head.status.trim().is_empty() {
        String::new()
    } else {
        let room = (columns.title / 2).saturating_sub(3).max(8);
        format!("[{}]", text::truncate(head.status.trim(), room))
    };
    let room = columns.title.saturating_sub(if status.is_empty() { 0 } else { text::width(&status) + 1 });
    let title = text::truncate(if head.title.trim().is_empty() { "(no title)" } else { &head.title }, room);
    pen.put(columns.title, &title, theme.heading());
    if !status.is_empty() {
        let x = title_x + (text::width(&title) + 1) as u16;
        put(pen.frame.buffer_mut(), (x, area.y), text::width(&status) as u16, &status, theme.text());
    }
    let word = match head.archived {
        true => "archived",
        false if head.is_refused() => "refused",
        false => phase_word(head.phase),
    };
    pen.put(columns.phase, word, theme.phase(head.phase));
    pen.put(columns.version, &text::fit_right(&format!("v{}", head.version), columns.version), theme.quiet());
    let counts = &head.counts;
    pen.put(columns.bar, &theme::bar(counts.done, counts.total, columns.bar), theme.phase(head.phase));
    let style = if counts.failed > 0 { theme.wrong() } else { theme.text() };
    let failed = if counts.failed > 0 { StatusSign::Failed.glyph() } else { "" };
    let progress = format!("{failed}{}/{}", counts.done, counts.total);
    pen.put(columns.progress, &text::fit_right(&progress, columns.progress), style);
    let age = head.updated_at.map(|at| text::age(context.now.since(at))).unwrap_or_default();
    pen.put(columns.age, &text::fit_right(&age, columns.age), theme.quiet());
}
