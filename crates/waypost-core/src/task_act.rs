//! What a person can do by hand with a task of each status: screens offer these acts and no others.

use serde::Serialize;
use strum::IntoStaticStr;

use crate::EffectiveStatus;

/// What a person does with one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TaskAct {
    /// Answer its question.
    Answer,
    /// End it as done.
    Done,
    /// End it as failed.
    Fail,
    /// Take it from whoever works on it.
    Release,
    /// Let it wait until the hold is lifted.
    Hold,
    /// Lift the hold.
    Unhold,
    /// Put it back on the list.
    Retry,
    /// Pass over it, so that its dependants start.
    Skip,
    /// Give it up, so that its dependants are skipped.
    Cancel,
}

impl TaskAct {
    /// Returns the name that the API uses.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl EffectiveStatus {
    /// Returns what a person can do with a task of this status, the most likely act first.
    pub fn acts(self) -> &'static [TaskAct] {
        use TaskAct::{Answer, Cancel, Done, Fail, Hold, Release, Retry, Skip, Unhold};
        match self {
            Self::Blocked => &[Hold, Skip, Cancel],
            Self::Ready => &[Done, Fail, Skip, Hold, Cancel],
            Self::Reported => &[Retry, Skip, Cancel],
            Self::Asking => &[Answer, Skip, Cancel],
            Self::Held => &[Unhold, Skip, Cancel],
            // Its question is answered instead.
            Self::Disputed => &[Skip, Cancel],
            Self::Queued | Self::Running => &[Done, Fail, Release, Cancel],
            Self::Done | Self::Failed | Self::Skipped | Self::Cancelled => &[Retry],
        }
    }
}
