//! Draws the history: the versions, and the differences between two of them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use waypost_service::Sign;

use super::layout::parts;
use super::{Focus, History};
use crate::frame::{self, put};
use crate::keys::Action;
use crate::screen::DrawContext;
use crate::text;
use crate::theme::Theme;

impl History {
    pub(crate) const KEYS: [Action; 7] = [
        Action::Mark,
        Action::Restore,
        Action::Zoom,
        Action::Focus,
        Action::Palette,
        Action::Watch,
        Action::Back,
    ];

    pub(crate) fn draw(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, parts_of: frame::Parts) {
        let theme = context.settings.theme;
        let title = match self.versions.title.as_str() {
            "" => format!("History of {}", self.plan.id),
            title => format!("History: {title}"),
        };
        let facts = [Span::styled(
            format!("{} v{}", frame::heading_id(&self.plan.id), self.versions.current),
            theme.quiet(),
        )];
        frame::heading(theme, frame, parts_of.heading, &title, &facts);
        let parts = parts(parts_of.body, self.is_zoomed);
        if !self.is_zoomed {
            self.draw_versions(context, frame, parts.list);
        }
        self.draw_differences(theme, frame, parts.diff);
        frame::footer(context, frame, parts_of.footer, &Self::KEYS);
    }

    fn draw_versions(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, area: Rect) {
        let theme = context.settings.theme;
        let inside = frame::framed(theme, frame, area, "Versions", self.focus == Focus::Versions);
        if let Some(error) = &self.error {
            let lines = text::wrap(&error.line(), usize::from(inside.width), usize::from(inside.height));
            for (row, line) in (inside.y..inside.bottom()).zip(lines) {
                put(frame.buffer_mut(), (inside.x, row), inside.width, &line, theme.wrong());
            }
            return;
        }
        let columns = usize::from(inside.width);
        let who_columns = (columns / 5).clamp(6, 18);
        let rows = self.versions.rows.iter().enumerate().skip(self.top);
        for (y, (at, row)) in (inside.y..inside.bottom()).zip(rows) {
            let mark = if self.marked == Some(row.number) { "◆" } else { " " };
            let line = format!(
                "{mark}{} {} {} {}",
                text::fit_right(&format!("v{}", row.number), 6),
                text::fit_right(&text::age(context.now.since(row.at)), 4),
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
            Some((0, new)) => format!("Version {new}: created"),
            Some((old, new)) => format!("Changes from version {old} to {new}"),
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
                let most = usize::from(inside.height);
                for (at, line) in text::wrap(&error.line(), columns, most).iter().enumerate() {
                    show(at, line, theme.warning());
                }
            }
            Some(Ok(compared)) if compared.lines.is_empty() => {
                show(0, "no differences in the plan or its statuses", theme.quiet());
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
