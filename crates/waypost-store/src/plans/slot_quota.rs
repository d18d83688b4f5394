//! Slots of a queue that all workers of a store share. A task starts in a write transaction, and writers are serialized, so
//! that counting is enough.

use std::collections::HashMap;

use waypost_core::{Command, Refusal};

use super::request::{WriteError, WriteRequest};
use crate::store::Transaction;
use crate::workers::Slots;

/// How many tasks of a request may still start.
pub(super) struct SlotQuota<'a> {
    slots: Option<&'a Slots>,
    /// Where in the request each task is last ended: what begins before that never runs beside anything.
    ends: HashMap<&'a str, usize>,
    worker: &'a str,
    /// Once it was counted.
    left: Option<u32>,
}

impl<'a> SlotQuota<'a> {
    pub(super) fn of(request: &'a WriteRequest, slots: Option<&'a Slots>) -> Self {
        let bounded = slots.filter(|slots| slots.concurrency.is_some());
        let mut ends = HashMap::new();
        if bounded.is_some() {
            for (place, command) in request.commands.iter().enumerate() {
                if let Command::FinishTask { task, .. } | Command::AskQuestion { task, .. } = command {
                    ends.insert(task.as_str(), place);
                }
            }
        }
        Self { slots: bounded, ends, worker: &request.by.name, left: None }
    }

    /// Takes a slot for a command that starts a task, if it needs one.
    pub(super) fn take(
        &mut self,
        transaction: &mut dyn Transaction,
        place: usize,
        command: &Command,
    ) -> Result<(), WriteError> {
        let (Some(slots), Command::StartTask { task, .. } | Command::QueueTask { task, .. }) =
            (self.slots, command)
        else {
            return Ok(());
        };
        let Some(concurrency) = slots.concurrency else { return Ok(()) };
        if self.ends.get(task.as_str()).is_some_and(|end| *end > place) {
            return Ok(());
        }
        let left = match self.left {
            Some(left) => left,
            None => {
                // What this worker has is known better to itself: of some the end is only now being written.
                let taken = transaction.slots(&slots.queue)?;
                let others = taken.iter().filter(|(worker, _)| worker != self.worker);
                let others = others.map(|(_, count)| *count).sum::<u32>();
                concurrency.saturating_sub(others.saturating_add(slots.own))
            }
        };
        self.left = Some(left.saturating_sub(1));
        if left == 0 {
            let (task, queue) = (task.to_string(), slots.queue.clone());
            return Err(Refusal::QueueFull { task, queue, concurrency }.into());
        }
        Ok(())
    }
}
