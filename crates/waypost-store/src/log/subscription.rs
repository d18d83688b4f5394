//! A stored subscription: its owner, the events it selects, and how far its owner has read.

use serde::{Deserialize, Serialize};
use waypost_core::Timestamp;

use crate::log::event::{Cursor, EventFilter};

/// A stored filter with a cursor of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// The id of the subscription: short, random and unique.
    pub id: String,
    /// The owner: `agent:planner`, `reporter:hook`.
    pub owner: String,
    /// The events that the owner receives.
    pub filter: EventFilter,
    /// How far the owner has read.
    pub cursor: Cursor,
    /// When the subscription was created.
    pub created_at: Timestamp,
    /// The events that the owner failed to process, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<DroppedEvents>,
}

/// Events that an owner gave up on. Kept until `waypost doctor` has reported them and was asked to repair them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedEvents {
    /// The number of events that were given up.
    pub lost: u64,
    /// When the last of them was given up.
    pub at: Timestamp,
    /// The reason why the last of them was given up.
    pub why: String,
}
