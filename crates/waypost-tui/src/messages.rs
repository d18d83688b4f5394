//! The messages between the program and its event loop: messages in, effects out, and the replies to effects. Types only.

use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use waypost_core::{PlanId, Timestamp};
use waypost_service::EditOp;
use waypost_store::{Conflict, Page, Query};

use crate::history::messages::{HistoryEffect, HistoryReply};
use crate::note::{ErrorMessage, Note};
use crate::palette::messages::{SearchHit, SearchRequest};
use crate::plan::{ListedPlan, LoadedPlan, PlanKey};
use crate::plan_text::messages::PlanText;
use crate::run_view::messages::{RunEffect, RunReply};

/// An event from outside the program.
#[derive(Clone, Debug)]
pub enum Message {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    Resize {
        columns: u16,
        rows: u16,
    },
    /// The current time. Sent after [`crate::app::App::needs_tick`] and a second without messages, and
    /// whenever the store's clock was read.
    Tick(Timestamp),
    /// The result of an effect.
    Reply(Reply),
    /// Plans were written, by this or another process, with their versions.
    Written {
        store: usize,
        plans: Vec<(PlanId, u64)>,
    },
}

/// A request to the event loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Quit,
    /// Stop the process until the shell continues it.
    Suspend,
    /// Read a page of the list of plans.
    LoadPlanPage {
        store: usize,
        /// Returned with the reply, to recognize late replies to old requests.
        ticket: u64,
        query: Box<Query>,
    },
    LoadPlan(PlanKey),
    /// Read the text of a plan.
    LoadText(PlanKey),
    /// Search plans and tasks.
    Search(SearchRequest),
    /// Write the edits as one version, provided the plan is still at the version that they are based on.
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
        /// The file name extension, such as `md`.
        ending: &'static str,
    },
    /// Run a plan. [`crate::app::update`] opens the run view instead of passing this on.
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
        heads: Result<Box<Page<ListedPlan>>, ErrorMessage>,
    },
    Plan {
        plan: PlanKey,
        loaded: Result<Box<LoadedPlan>, ErrorMessage>,
    },
    Text(PlanKey, Result<Box<PlanText>, ErrorMessage>),
    /// What was found, with the ticket of the request.
    Found(u64, Vec<SearchHit>),
    /// With the new version.
    Saved {
        plan: PlanKey,
        saved: Result<u64, SaveError>,
    },
    Created {
        plan: Result<PlanKey, ErrorMessage>,
    },
    /// `None` if the text was not changed.
    Edited {
        purpose: Purpose,
        text: Result<Option<String>, ErrorMessage>,
    },
    Note(Note),
    Run(RunReply),
    History(HistoryReply),
}

/// What a text opened in `$EDITOR` is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The whole plan.
    Plan(PlanKey),
    /// A field of the open form.
    Field,
    /// The answer to what clones disagree about in a plan: the digest of what was read.
    Resolve(PlanKey, String),
}

/// Why a save failed.
#[derive(Clone, Debug)]
pub enum SaveError {
    /// The plan changed since the version that the edits are based on.
    Conflict(Box<Conflict>),
    Refused(ErrorMessage),
}
