//! What a run follows, how far it has come with that, and the thread that tells it when somebody may have written.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use waypost_core::PlanId;
use waypost_store::{PlanStore, StoreError};

use super::message::Message;

/// How long one wait for the store lasts at the most, before it is seen that the run is over.
const WATCH_WAIT: Duration = Duration::from_secs(1);

/// What a run follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// These plans.
    Plans(Vec<PlanId>),
    /// Every active plan of these queues.
    Queues(Vec<String>),
}

/// How far a run that follows queues has come.
#[derive(Debug)]
pub(super) struct Offers {
    pub(super) queues: BTreeSet<String>,
    /// The number of the log up to which everything was looked at.
    pub(super) seen: u64,
    /// Whether there are more plans than are followed.
    pub(super) more: bool,
}

impl Offers {
    pub(super) fn of(follow: &Follow) -> Option<Self> {
        match follow {
            Follow::Plans(_) => None,
            Follow::Queues(queues) => {
                Some(Self { queues: queues.iter().cloned().collect(), seen: 0, more: false })
            }
        }
    }
}

/// Says so in the run's channel whenever somebody may have written, once until that was heard.
pub(crate) fn watch(
    plans: &PlanStore,
    sender: Sender<Message>,
    changed: Arc<AtomicBool>,
) -> Result<(), StoreError> {
    let mut watch = plans.watch()?;
    let changed = Arc::downgrade(&changed);
    let look = move || {
        loop {
            // A watch that breaks is no reason to stop: the run looks around once a second anyway.
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
