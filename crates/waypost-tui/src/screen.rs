//! What every screen is given and what it returns: events, a context, and where to go next. Knows no single screen.

use std::collections::{BTreeSet, VecDeque};

use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;
use waypost_core::{PlanId, Timestamp};

use crate::dialog::{Choice, Dialog};
use crate::keys::{Action, Keys, Place};
use crate::messages::{Effect, Reply};
use crate::note::{ErrorMessage, Note, NoteKind};
use crate::plan::PlanKey;
use crate::run_view::messages::Intent;
use crate::theme::Theme;

/// What does not change while the program runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The names of the stores, as the list of plans shows them: `repo`, `user`.
    pub stores: Vec<String>,
    /// Nothing is run or written to a plan from the run view.
    pub dry_run: bool,
    pub keys: Keys,
    pub theme: Theme,
}

#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A key that is bound to this action here.
    Action(Action),
    /// A key that is not bound here, or any key while text is being typed.
    Key(KeyEvent),
    /// In coordinates of the terminal.
    Mouse(MouseEvent),
    Paste(&'a str),
    Tick,
    /// An effect is complete. Every screen receives it.
    Reply(&'a Reply),
    /// Plans of a store were written. Every screen receives it.
    Written(usize, &'a [(PlanId, u64)]),
    /// The choice in the dialog that this screen opened, and what was typed there.
    Chosen(&'a Choice, &'a str),
    /// The screen is on top now, for the first time or again.
    Shown,
}

/// Where to go after an event.
#[derive(Debug, Default)]
pub enum Flow {
    #[default]
    Stay,
    /// To another screen, on top of this one.
    Open(Destination),
    /// Back to the screen below.
    Pop,
    /// Nowhere before this is answered.
    Ask(Dialog),
    Quit,
}

/// A screen that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Editor(PlanKey),
    Run(PlanKey, Intent),
    History(PlanKey),
    /// The history, comparing the latest version with this one.
    HistorySince(PlanKey, u64),
    /// The keys, those of this place first.
    Help(Place),
}

/// What a screen may use while it handles an event.
pub struct Context<'a> {
    pub settings: &'a Settings,
    pub now: Timestamp,
    /// The part of the terminal that belongs to the screen.
    pub area: Rect,
    pub effects: &'a mut Vec<Effect>,
    /// The plans that this process runs.
    pub runs: &'a BTreeSet<PlanKey>,
    pub notes: &'a mut VecDeque<Note>,
    /// Where to go when the event is handled.
    pub flow: Flow,
}

impl Context<'_> {
    /// Goes there when the event is handled.
    pub fn go(&mut self, flow: Flow) {
        self.flow = flow;
    }

    pub fn ask(&mut self, dialog: Dialog) {
        self.go(Flow::Ask(dialog));
    }

    /// Shows a note at the bottom of the screen.
    pub fn notify(&mut self, kind: NoteKind, text: impl Into<String>) {
        self.notes.push_back(Note { kind, text: text.into() });
    }

    pub fn notify_error(&mut self, error: &ErrorMessage) {
        self.notes.push_back(error.note());
    }
}

/// What a screen may use while it is drawn.
#[derive(Clone, Copy)]
pub struct DrawContext<'a> {
    pub settings: &'a Settings,
    pub now: Timestamp,
    /// The part of the terminal that belongs to the screen.
    pub area: Rect,
    /// Shown in the footer in place of the keys.
    pub note: Option<&'a Note>,
    /// Whose keys the footer shows.
    pub place: Place,
}
