//! What the run view asks the loop for, and what it is told.

use waypost_core::{Command, TaskId};
use waypost_engine::Control;

use super::Standings;
use crate::app::{PlanKey, Trouble};

/// What the run view wants from the loop.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEffect {
    /// To know how the plan stands.
    Look(PlanKey),
    /// To know more of one task: what it waits for, its log.
    LookCloser(PlanKey, TaskId),
    /// To know what machines would do.
    Preview(PlanKey),
    /// To run the plan in this process.
    Start(PlanKey),
    /// To approve a version, as the person at the terminal.
    Approve(PlanKey, u64),
    /// To write one command.
    Order {
        /// Which plan.
        plan: PlanKey,
        /// What.
        command: Box<Command>,
        /// What to say when it is written.
        said: String,
    },
    /// To answer what a task asks, or what is for a person to do.
    Answer {
        /// Which plan.
        plan: PlanKey,
        /// Which task.
        task: TaskId,
        /// The answer.
        answer: String,
    },
    /// To end a run of this process.
    End(PlanKey, Control),
}

/// What the run view is told.
#[derive(Clone, Debug)]
pub enum RunAnswer {
    /// How the plan stands.
    Stands(PlanKey, Result<Box<Standings>, Trouble>),
    /// More of one task.
    Closer(PlanKey, TaskId, Box<Closer>),
    /// What machines would do.
    Preview(PlanKey, Result<Box<Preview>, Trouble>),
    /// What came of [`RunEffect::Start`].
    Started(PlanKey, Result<Started, Trouble>),
    /// What came of [`RunEffect::Approve`].
    Approved(PlanKey, Result<u64, Trouble>),
    /// A run of this process is over: in words, and what to do next if it did not end well.
    Ended(PlanKey, Result<String, Trouble>),
}

/// What came of the wish to run a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It runs in this process.
    Runs,
    /// A person has to approve it first.
    NeedsApproval,
}

/// What machines would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// In which version.
    pub version: u64,
    /// A line for each task, at most [`PREVIEW_LINES_MAX`].
    pub lines: Vec<String>,
    /// Tasks in all.
    pub total: usize,
}

/// One task, looked at more closely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closer {
    /// What it waits for.
    pub why: Vec<String>,
    /// The end of its log.
    pub log: String,
    /// Bytes of the whole log.
    pub log_bytes: u64,
    /// What is to be known of the log: whose copy it is, or why there is none.
    pub log_note: String,
}
