//! What goes between the program and its event loop: messages in, effects out, and the replies to effects. Types only.

use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use waypost_core::{PlanId, Timestamp};
use waypost_service::EditOp;
use waypost_store::{Conflict, Page, PlanSummary, Query};

use crate::history::messages::{HistoryEffect, HistoryReply};
use crate::note::{ErrorMessage, Note};
use crate::plan::{LoadedPlan, PlanKey};
use crate::run_view::messages::{RunEffect, RunReply};

/// What happened outside of the program.
#[derive(Clone, Debug)]
pub enum Message {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    Resize {
        columns: u16,
        rows: u16,
    },
    /// Nothing else happened for a while; the time now.
    Tick(Timestamp),
    /// An effect is complete.
    Reply(Reply),
    /// Plans were written, with their versions, perhaps by another process.
    Written {
        store: usize,
        plans: Vec<(PlanId, u64)>,
    },
}

/// What the event loop is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Quit,
    /// Stop the process until the shell continues it.
    Suspend,
    /// Read a page of the list of plans.
    LoadPlanPage {
        store: usize,
        /// Comes back with the reply, so that a late reply to an old request can be told apart.
        ticket: u64,
        query: Box<Query>,
    },
    LoadPlan(PlanKey),
    /// Write the edits as one version, if the plan is still at the version that they were made on.
    Save {
        plan: PlanKey,
        version: u64,
        edits: Vec<EditOp>,
    },
    /// Create a plan without tasks.
    CreatePlan {
        store: usize,
        title: String,
    },
    /// Open a text in `$EDITOR`.
    EditText {
        purpose: Purpose,
        text: String,
        /// The file name's extension: `md`, `txt`.
        ending: &'static str,
    },
    /// Run a plan. The program opens the run view by itself.
    Execute(PlanKey),
    Run(RunEffect),
    History(HistoryEffect),
}

/// The result of an [`Effect`].
#[derive(Clone, Debug)]
pub enum Reply {
    PlanPage {
        store: usize,
        ticket: u64,
        heads: Result<Box<Page<PlanSummary>>, ErrorMessage>,
    },
    Plan {
        plan: PlanKey,
        loaded: Result<Box<LoadedPlan>, ErrorMessage>,
    },
    /// The new version.
    Saved {
        plan: PlanKey,
        saved: Result<u64, SaveError>,
    },
    Created {
        plan: Result<PlanKey, ErrorMessage>,
    },
    /// `None`: the text was not changed.
    Edited {
        purpose: Purpose,
        text: Result<Option<String>, ErrorMessage>,
    },
    Note(Note),
    Run(RunReply),
    History(HistoryReply),
}

/// What a text in `$EDITOR` is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The whole plan.
    Plan(PlanKey),
    /// A field of the open form.
    Field,
}

/// Why edits were not written.
#[derive(Clone, Debug)]
pub enum SaveError {
    /// The plan changed since the edits were begun; this is what changed.
    Conflict(Box<Conflict>),
    Refused(ErrorMessage),
}
