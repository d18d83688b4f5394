//! Paints a history: the versions, and what differs between two of them. Changes nothing.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use waypost_service::Sign;

use super::{Focus, History};
use crate::app::App;
use crate::frame::{self, put};
use crate::keys::Action;
use crate::text;
use crate::theme::Theme;

/// From so many columns on, both stand side by side.
const SIDE_BY_SIDE: u16 = 100;

/// Where things stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// The versions, with their edge.
    pub(super) list: Rect,
    /// The differences, with their edge.
    pub(super) diff: Rect,
}

/// Where things stand in an area.
pub(super) fn parts(area: Rect) -> Parts {
    if area.width >= SIDE_BY_SIDE {
        let left = area.width / 2;
        let diff = Rect { x: area.x + left, width: area.width - left, ..area };
        return Parts { list: Rect { width: left, ..area }, diff };
    }
    let above = area.height / 2;
    let diff = Rect { y: area.y + above, height: area.height - above, ..area };
    Parts { list: Rect { height: above, ..area }, diff }
}

/// Versions that are seen at the same time.
pub(super) fn list_rows(area: Rect) -> usize {
    usize::from(parts(area).list.height.saturating_sub(2))
}

impl History {
    /// What the footer offers.
    pub(crate) const KEYS: [Action; 4] = [Action::Mark, Action::Restore, Action::Focus, Action::Back];

    pub(crate) fn draw(&self, app: &App, frame: &mut Frame<'_>, parts_of: frame::Parts) {
        let theme = app.settings.theme;
        let title = match self.versions.title.as_str() {
            "" => format!("History of {}", self.plan.id),
            title => format!("History: {title}"),
        };
        let facts = [Span::styled(format!("{} v{}", self.plan.id, self.versions.current), theme.quiet())];
        frame::heading(theme, frame, parts_of.heading, &title, &facts);
        let parts = parts(parts_of.body);
        self.draw_versions(app, frame, parts.list);
        self.draw_differences(theme, frame, parts.diff);
        frame::footer(app, frame, parts_of.footer, &Self::KEYS);
    }

    fn draw_versions(&self, app: &App, frame: &mut Frame<'_>, area: Rect) {
        let theme = app.settings.theme;
        let inside = frame::framed(theme, frame, area, "Versions", self.focus == Focus::Versions);
        if let Some(error) = &self.error {
            let words = format!("{}: {}", error.what, error.hint);
            return put(frame.buffer_mut(), (inside.x, inside.y), inside.width, &words, theme.wrong());
        }
        let columns = usize::from(inside.width);
        let who_columns = (columns / 5).clamp(6, 18);
        let rows = self.versions.rows.iter().enumerate().skip(self.top);
        for (y, (at, row)) in (inside.y..inside.bottom()).zip(rows) {
            let mark = if self.marked == Some(row.number) { "◆" } else { " " };
            let line = format!(
                "{mark}{} {} {} {}",
                text::fit_right(&format!("v{}", row.number), 6),
                text::fit_right(&text::age(app.now.since(row.at)), 4),
                text::fit(&row.who, who_columns),
                row.what
            );
            let style = if row.forgotten { theme.quiet() } else { theme.text() };
            let style = if at == self.selected { style.patch(theme.selected()) } else { style };
            put(frame.buffer_mut(), (inside.x, y), inside.width, &text::fit(&line, columns), style);
        }
    }

    fn draw_differences(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let pair = self.pair();
        let title = match pair {
            Some((0, new)) => format!("What version {new} made"),
            Some((old, new)) => format!("From version {old} to {new}"),
            None => String::new(),
        };
        let inside = frame::framed(theme, frame, area, &title, self.focus == Focus::Differences);
        let columns = usize::from(inside.width);
        let mut show = |at: usize, line: &str, style: Style| {
            if at < usize::from(inside.height) {
                let place = (inside.x, inside.y + at as u16);
                put(frame.buffer_mut(), place, inside.width, &text::truncate(line, columns), style);
            }
        };
        match pair.and_then(|pair| self.compared.get(&pair)) {
            None if pair.is_some() => show(0, "comparing …", theme.quiet()),
            None => {}
            Some(Err(error)) => {
                let words = format!("{} ({})", error.what, error.hint);
                for (at, line) in text::wrap(&words, columns, 4).iter().enumerate() {
                    show(at, line, theme.warning());
                }
            }
            Some(Ok(compared)) if compared.lines.is_empty() => {
                show(0, "nothing that its author says, nor where tasks stand", theme.quiet());
            }
            Some(Ok(compared)) => {
                for (at, (sign, line)) in compared.lines.iter().skip(self.diff_top).enumerate() {
                    show(at, line, style_of(theme, *sign));
                }
                let seen = compared.lines.len() - self.diff_top;
                if compared.total > compared.lines.len() {
                    let more = text::count(compared.total - compared.lines.len(), "more line");
                    show(seen, &format!("… and {more} (`waypost diff` shows all)"), theme.quiet());
                }
            }
        }
    }
}

fn style_of(theme: Theme, sign: Sign) -> Style {
    match sign {
        Sign::New => theme.good(),
        Sign::Gone => theme.wrong(),
        Sign::Changed => theme.warning(),
        Sign::Around => theme.quiet(),
    }
}
