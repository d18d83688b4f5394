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

    /// Returns what a person can do with a parent of this status: nobody works on it, and it ends when its children end.
    pub fn acts_of_parent(self) -> &'static [TaskAct] {
        use TaskAct::{Cancel, Hold, Retry, Unhold};
        match self {
            Self::Blocked | Self::Ready | Self::Reported | Self::Asking | Self::Queued | Self::Running => {
                &[Hold, Cancel]
            }
            Self::Held => &[Unhold, Cancel],
            // Its question is answered instead.
            Self::Disputed => &[Cancel],
            Self::Done | Self::Failed | Self::Skipped | Self::Cancelled => &[Retry],
        }
    }
}
