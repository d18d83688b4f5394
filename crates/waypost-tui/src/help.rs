//! The help screen: all keys, from the table of bindings.

use ratatui::Frame;
use ratatui::crossterm::event::MouseEventKind;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::frame::{self, Parts};
use crate::keys::{Action, Keys, Place};
use crate::screen::{Context, DrawContext, Event, Flow};
use crate::{text, theme::Theme};

#[derive(Debug)]
pub struct Help {
    /// The place whose keys are listed first.
    from: Place,
    top: usize,
}

impl Help {
    pub fn new(from: Place) -> Self {
        Self { from, top: 0 }
    }

    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) {
        let page = usize::from(context.area.height.max(1));
        match event {
            Event::Action(Action::Up) => self.top = self.top.saturating_sub(1),
            Event::Action(Action::Down) => self.top += 1,
            Event::Action(Action::PageUp) => self.top = self.top.saturating_sub(page),
            Event::Action(Action::PageDown) => self.top += page,
            Event::Action(Action::First) => self.top = 0,
            Event::Action(Action::Last) => self.top = usize::MAX / 2,
            Event::Action(Action::Quit) => return context.go(Flow::Quit),
            Event::Action(Action::Back | Action::Help | Action::Open) => return context.go(Flow::Pop),
            Event::Mouse(mouse) if mouse.kind == MouseEventKind::ScrollUp => {
                self.top = self.top.saturating_sub(3)
            }
            Event::Mouse(mouse) if mouse.kind == MouseEventKind::ScrollDown => self.top += 3,
            Event::Action(_)
            | Event::Key(_)
            | Event::Mouse(_)
            | Event::Paste(_)
            | Event::Tick
            | Event::Reply(_)
            | Event::Written(..)
            | Event::Chosen(..)
            | Event::DialogClosed
            | Event::Shown => {}
        }
        let lines =
            lines(&context.settings.keys, self.from, context.settings.theme, context.area.width).len();
        self.top = self.top.min(lines.saturating_sub(page));
    }

    pub(crate) fn draw(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, parts: Parts) {
        let (settings, area) = (context.settings, parts.body);
        frame::heading(settings.theme, frame, parts.heading, "Keys", &[]);
        let lines = lines(&settings.keys, self.from, settings.theme, area.width);
        for (row, line) in (area.y..area.bottom()).zip(lines.into_iter().skip(self.top)) {
            frame.render_widget(line, Rect::new(area.x, row, area.width, 1));
        }
        frame::footer(context, frame, parts.footer, &[Action::Back]);
    }
}

/// One line per key, grouped by place.
fn lines(keys: &Keys, from: Place, theme: Theme, columns: u16) -> Vec<Line<'static>> {
    const KEYS_COLUMNS: usize = 18;
    let mut places = Place::ALL.to_vec();
    places.sort_by_key(|(place, _)| *place != from);
    let mut lines = Vec::new();
    for (place, title) in places {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::styled(format!("  {}", title), theme.heading()));
        for (binding, chords) in keys.rows(place) {
            let shown = chords.iter().map(ToString::to_string).collect::<Vec<_>>().join("  ");
            let room = usize::from(columns).saturating_sub(KEYS_COLUMNS + 6);
            for (number, line) in text::wrap(binding.help, room, usize::MAX).into_iter().enumerate() {
                let keys = if number == 0 { shown.as_str() } else { "" };
                lines.push(Line::from(vec![
                    Span::raw("    "),
                    Span::styled(text::fit(keys, KEYS_COLUMNS), theme.accent()),
                    Span::raw(" "),
                    Span::raw(line),
                ]));
            }
        }
    }
    lines
}
