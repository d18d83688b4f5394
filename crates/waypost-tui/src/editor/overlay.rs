//! What is open above the task list: the text of a task on the whole screen, and the list that a value is chosen from; and where a
//! search goes. Knows no editor.

use ratatui::Frame;
use ratatui::layout::Rect;
use waypost_core::{Complexity, TaskId};

use crate::frame::framed;
use crate::run_view::PlanAction;
use crate::styled_text::StyledText;
use crate::theme::Theme;

/// The text of a task, and the first row that is shown.
#[derive(Debug)]
pub(super) struct Zoom {
    pub(super) title: String,
    pub(super) text: StyledText,
    pub(super) top: usize,
}

impl Zoom {
    pub(super) fn draw(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let within = framed(theme, frame, area, &self.title, true);
        self.text.draw(frame.buffer_mut(), within, self.top, theme, None);
    }
}

/// Where a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Back,
}

impl Direction {
    /// The row `step` rows away, wrapping around.
    pub(super) fn place(self, from: usize, step: usize, count: usize) -> usize {
        match self {
            Self::Forward => (from + step) % count,
            Self::Back => (from + count - step) % count,
        }
    }
}

/// A field of the selected task, or of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settable {
    Status,
    Complexity,
    Priority,
    Executor,
    Parent,
    Title,
    Note,
    Queue,
    Owner,
}

/// The open list, with the value of each option.
#[derive(Clone, Debug)]
pub(super) enum Choosing {
    What(Vec<Settable>),
    Status(Vec<PlanAction>),
    Complexity(Vec<Option<Complexity>>),
    Priority(Vec<i32>),
    Executor(Vec<Option<String>>),
    Parent(Vec<Option<TaskId>>),
    /// A text of the plan: which, and those that can be chosen.
    Plan(Settable, Vec<String>),
}
