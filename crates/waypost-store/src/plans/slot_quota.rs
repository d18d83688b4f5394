//! Slots of a queue that all workers of a store share. Tasks start in write transactions, which are serialized, so
//! counting is enough.

use std::collections::HashMap;

use waypost_core::{Command, Refusal};

use super::request::{WriteError, WriteRequest};
use crate::store::Transaction;
use crate::workers::Slots;

/// The number of tasks of a request that may still start.
pub(super) struct SlotQuota<'a> {
    slots: Option<&'a Slots>,
    /// The index of the last command that ends each task: a task that starts before it never runs alongside another.
    ends: HashMap<&'a str, usize>,
    worker: &'a str,
    /// The free slots, once they were counted.
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
                // The worker knows its own slots better than the store: this very request may end some of its tasks.
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
