//! One plan, to be edited: keys become edits of a draft in memory, and saving turns the draft into commands.

use ratatui::Frame;

use crate::app::{App, Context, Event, Flow, PlanKey};
use crate::keys::Place;
use crate::view::Parts;

/// The plan editor.
#[derive(Debug)]
pub struct Editor {
    plan: PlanKey,
}

impl Editor {
    /// For a plan, which is read when the editor is shown.
    pub fn new(plan: PlanKey) -> Self {
        Self { plan }
    }

    /// Which plan.
    pub fn plan(&self) -> &PlanKey {
        &self.plan
    }

    pub(crate) fn place(&self) -> Place {
        Place::Editor
    }

    pub(crate) fn is_typing(&self) -> bool {
        false
    }

    pub(crate) fn update(&mut self, _event: Event<'_>, _context: &mut Context<'_>) -> Flow {
        Flow::Stay
    }

    pub(crate) fn draw(&self, app: &App, frame: &mut Frame<'_>, parts: Parts) {
        crate::view::heading(app.settings.theme, frame, parts.heading, "Plan", &[]);
    }
}
