//! A stored subscription: whose it is, which events it is for, and how far its owner has read.

use serde::{Deserialize, Serialize};
use waypost_core::Timestamp;

use crate::log::event::{Cursor, EventFilter};

/// A stored filter with a place in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its name: short, random, never the same as another's.
    pub id: String,
    /// Whose it is: `agent:planner`, `reporter:hook`.
    pub owner: String,
    /// What the owner wants to hear of.
    pub filter: EventFilter,
    /// How far the owner has read.
    pub cursor: Cursor,
    /// When it was made.
    pub created_at: Timestamp,
    /// What its owner could not make use of, if that happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<DroppedEvents>,
}

/// Events that an owner gave up on. Kept until the doctor has told of it and was asked to put it right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedEvents {
    /// How many.
    pub lost: u64,
    /// When the last of them was given up.
    pub at: Timestamp,
    /// What stood in its way.
    pub why: String,
}
