//! The plans or queues that a run follows, its position in them, and the thread that notifies it of changes in the
//! store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use waypost_core::PlanId;
use waypost_store::{PlanStore, StoreError};

use super::left_tasks::LeftTasks;
use super::message::Message;
use crate::scheduler::TaskFilter;

/// The longest single wait for a change of the store, after which the thread checks whether the run is over.
const WATCH_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// These plans.
    Plans(Vec<PlanId>),
    /// Every active plan of these queues.
    Queues(Vec<String>),
}

/// The position of a run that follows queues.
#[derive(Debug)]
pub(super) struct Offers {
    pub(super) queues: BTreeSet<String>,
    /// The sequence number of the log up to which everything was read.
    pub(super) seen: u64,
    /// Whether there are more plans than the run follows.
    pub(super) more: bool,
    /// When to search them for plans that are more urgent than the followed ones.
    pub(super) next_search: Instant,
    /// The versions of plans that a search found to have nothing for this run.
    pub(super) unwanted: BTreeMap<PlanId, u64>,
    /// What is left to others because no executor works on it here.
    pub(super) left: LeftTasks,
}

impl Offers {
    pub(super) fn of(follow: &Follow, takes: &TaskFilter) -> Option<Self> {
        match follow {
            Follow::Plans(_) => None,
            Follow::Queues(queues) => Some(Self {
                queues: queues.iter().cloned().collect(),
                seen: 0,
                more: false,
                next_search: Instant::now(),
                unwanted: BTreeMap::new(),
                left: LeftTasks::new(takes.executors.is_none()),
            }),
        }
    }
}

/// Sends a message to the run whenever the store may have changed, once until the run has cleared the flag.
pub(crate) fn watch(
    plans: &PlanStore,
    sender: Sender<Message>,
    changed: Arc<AtomicBool>,
) -> Result<(), StoreError> {
    let mut watch = plans.watch()?;
    let changed = Arc::downgrade(&changed);
    let look = move || {
        loop {
            // A broken watch is not a reason to stop: the run reads the store once a second anyway.
            let written = watch.wait(WATCH_WAIT).unwrap_or_else(|_| {
                std::thread::park_timeout(WATCH_WAIT);
                true
            });
            let Some(changed) = changed.upgrade() else { return };
            if written && !changed.swap(true, Ordering::AcqRel) && sender.send(Message::StoreChanged).is_err()
            {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("store".to_owned()).spawn(look);
    thread.map(drop).map_err(|error| StoreError::Database(format!("no thread can be started: {error}")))
}
