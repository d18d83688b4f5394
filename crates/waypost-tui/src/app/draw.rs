//! Draws the program: the screen on top, and a dialog over it. Changes no state.

use ratatui::Frame;
use ratatui::layout::Position;

use super::{App, Screen};
use crate::frame::{draw_dialog, draw_too_small, footer_key_at, is_too_small, parts};
use crate::keys::{Action, Place};
use crate::screen::DrawContext;

pub fn render(app: &App, frame: &mut Frame<'_>) {
    let size = frame.area();
    if is_too_small(size) {
        return draw_too_small(frame, size);
    }
    let context = DrawContext {
        settings: &app.settings,
        now: app.now,
        area: app.area(),
        note: app.note.as_ref().map(|(note, _)| note),
        place: app.top().map_or(Place::Anywhere, Screen::place),
    };
    let parts = parts(size);
    match app.top() {
        Some(Screen::PlanList(plan_list)) => plan_list.draw(context, frame, parts),
        Some(Screen::Editor(editor)) => editor.draw(context, frame, parts),
        Some(Screen::Run(run)) => run.draw(context, frame, parts),
        Some(Screen::History(history)) => history.draw(context, frame, parts),
        Some(Screen::Text(text)) => text.draw(context, frame, parts),
        Some(Screen::Help(help)) => help.draw(context, frame, parts),
        None => {}
    }
    if let Some(palette) = &app.palette {
        palette.draw(app.settings.theme, frame, size);
    }
    if let Some(dialog) = &app.dialog {
        draw_dialog(dialog, app.settings.theme, frame, size);
    }
}

impl App {
    /// The action of the footer key at a position of the terminal.
    pub(super) fn footer_hit(&self, at: Position) -> Option<Action> {
        let footer = parts(self.size).footer;
        let top = self.top().filter(|top| footer.contains(at) && self.note.is_none() && !top.is_typing())?;
        let actions = top.actions(&self.settings);
        footer_key_at(&self.settings.keys, top.place(), &actions, footer, at.x)
    }
}
