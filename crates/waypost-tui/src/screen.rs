//! The interface of screens: events, a context, and navigation. Knows no single screen.

use std::collections::{BTreeSet, VecDeque};

use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;
use waypost_core::{PlanId, TaskId, Timestamp};

use crate::dialog::{Choice, Dialog};
use crate::keys::{Action, Keys, Place};
use crate::messages::{Effect, Reply};
use crate::note::{ErrorMessage, Note, NoteKind};
use crate::plan::PlanKey;
use crate::run_view::messages::Intent;
use crate::theme::Theme;

/// Settings that do not change while the program runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The names of the stores in the list of plans: `repo`, `user`.
    pub stores: Vec<String>,
    /// Nothing is run, and the run view writes nothing.
    pub dry_run: bool,
    pub keys: Keys,
    pub theme: Theme,
}

#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A key that is bound to this action on this screen.
    Action(Action),
    /// A key without a binding on this screen, or any key while text is typed.
    Key(KeyEvent),
    /// In coordinates of the terminal.
    Mouse(MouseEvent),
    Paste(&'a str),
    Tick,
    /// The result of an effect. Sent to every screen.
    Reply(&'a Reply),
    /// Plans of a store were written. Sent to every screen.
    Written(usize, &'a [(PlanId, u64)]),
    /// The choice in the dialog of this screen, and the typed text.
    Chosen(&'a Choice, &'a str),
    /// The dialog of this screen was closed without a choice.
    DialogClosed,
    /// The screen is on top, for the first time or again.
    Shown,
}

/// Navigation after an event.
#[derive(Debug, Default)]
pub enum Flow {
    #[default]
    Stay,
    /// Opens another screen on top of this one.
    Open(Destination),
    /// Returns to the screen below.
    Pop,
    /// Opens a dialog.
    Ask(Box<Dialog>),
    /// Shows this dialog in the place of the one that the screen has open.
    Replace(Box<Dialog>),
    Quit,
}

/// A screen that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Editor(PlanKey),
    /// The editor, at this task.
    Task(PlanKey, TaskId),
    Run(PlanKey, Intent),
    History(PlanKey),
    /// The text of a plan.
    Text(PlanKey),
    /// The history, comparing the latest version with this one.
    HistorySince(PlanKey, u64),
    /// The help screen, with the keys of this place first.
    Help(Place),
}

/// The context in which a screen handles an event.
pub struct Context<'a> {
    pub settings: &'a Settings,
    pub now: Timestamp,
    /// The area of the screen.
    pub area: Rect,
    pub effects: &'a mut Vec<Effect>,
    /// The plans that this process runs.
    pub runs: &'a BTreeSet<PlanKey>,
    pub notes: &'a mut VecDeque<Note>,
    /// The navigation after the event.
    pub flow: Flow,
}

impl Context<'_> {
    /// Navigates after the event.
    pub fn go(&mut self, flow: Flow) {
        self.flow = flow;
    }

    pub fn ask(&mut self, dialog: Dialog) {
        self.go(Flow::Ask(Box::new(dialog)));
    }

    /// Shows a note at the bottom of the screen.
    pub fn notify(&mut self, kind: NoteKind, text: impl Into<String>) {
        self.notes.push_back(Note { kind, text: text.into() });
    }

    pub fn notify_error(&mut self, error: &ErrorMessage) {
        self.notes.push_back(error.note());
    }
}

/// The context in which a screen is drawn.
#[derive(Clone, Copy)]
pub struct DrawContext<'a> {
    pub settings: &'a Settings,
    pub now: Timestamp,
    /// The area of the screen.
    pub area: Rect,
    /// Shown in the footer in place of the keys.
    pub note: Option<&'a Note>,
    /// The place whose keys the footer shows.
    pub place: Place,
}
