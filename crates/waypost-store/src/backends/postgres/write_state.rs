//! The state of a writer: what all tries of a write have in common, what this try holds, and what it has yet to send. Does
//! not know the connection.

use std::collections::{BTreeSet, HashMap};

use waypost_core::PlanId;

use super::connection::Call;
use super::footprint::Footprint;
use super::sequencer::News;
use super::write_buffer::Pending;

/// A commit of which it is unknown whether it happened.
#[derive(Clone)]
pub(super) struct UncertainCommit {
    /// Its last version; `None` when it had none.
    pub(super) version: Option<(PlanId, u64)>,
}

/// Which other writers may write at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Those that touch nothing of what this one touches.
    Shared,
    /// None.
    Exclusive,
}

/// What all tries of one write have in common.
pub(super) struct WriteTries {
    /// Marks the versions that the write appends.
    pub(super) nonce: i64,
    pub(super) access: Access,
    pub(super) doubt: Option<UncertainCommit>,
    /// What the tries so far have locked, or tried to lock.
    pub(super) footprint: Footprint,
    /// How often versions were numbered for this write.
    pub(super) numbered: u32,
}

/// The state of the store when the transaction began.
#[derive(Default)]
pub(super) struct Control {
    /// The id of the store.
    pub(super) store: String,
    pub(super) schema: u32,
    /// The end of the log.
    pub(super) sequence: u64,
    /// Whether versions were committed and have no number yet.
    pub(super) is_unnumbered: bool,
}

/// How a transaction is made durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// It has written nothing.
    Empty,
    /// A heartbeat: the next one makes up for it if the server crashes.
    Heartbeat,
    /// It can be repeated without harm.
    Idempotent,
    /// It must be done once.
    Once,
}

/// The state that only a writer has.
pub(super) struct Writing<'a> {
    pub(super) tries: &'a mut WriteTries,
    /// What this try has locked.
    pub(super) held: Footprint,
    /// Whether the commit in doubt turned out to have happened.
    pub(super) was_committed: bool,
    pub(super) control: Control,
    /// What others must learn of.
    pub(super) news: Option<News>,
    pub(super) weight: Weight,
    pub(super) pending: Pending,
    /// The versions that were appended, with the keys of their plans.
    pub(super) appended: Vec<(i64, u64)>,
    /// The last of them, with the id of its plan.
    pub(super) last: Option<(PlanId, u64)>,
    /// Plans that were looked for and do not exist.
    pub(super) absent: BTreeSet<PlanId>,
    /// A key for the row of a new plan.
    pub(super) spare_key: Option<i64>,
    /// The stored records of workers, without their heartbeats.
    pub(super) workers: HashMap<String, String>,
    /// When the listed workers expire.
    pub(super) listed: HashMap<String, i64>,
    /// Statements that are sent after the pending rows.
    pub(super) queued: Vec<Call>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(tries: &'a mut WriteTries) -> Self {
        Self {
            tries,
            held: Footprint::default(),
            was_committed: false,
            control: Control::default(),
            news: None,
            weight: Weight::Empty,
            pending: Pending::default(),
            appended: Vec::new(),
            last: None,
            absent: BTreeSet::new(),
            spare_key: None,
            workers: HashMap::new(),
            listed: HashMap::new(),
            queued: Vec::new(),
        }
    }
}
