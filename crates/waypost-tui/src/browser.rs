//! All plans: one page of each store, filtered and sorted by the store. Holds no plan, only heads.

use ratatui::Frame;

use crate::app::{App, Context, Event, Flow};
use crate::view::Parts;

/// The list of plans.
#[derive(Debug, Default)]
pub struct Browser {}

impl Browser {
    /// An empty list, to be filled when it is shown.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_typing(&self) -> bool {
        false
    }

    pub(crate) fn update(&mut self, _event: Event<'_>, _context: &mut Context<'_>) -> Flow {
        Flow::Stay
    }

    pub(crate) fn draw(&self, app: &App, frame: &mut Frame<'_>, parts: Parts) {
        crate::view::heading(app.settings.theme, frame, parts.heading, "Plans", &[]);
    }
}
