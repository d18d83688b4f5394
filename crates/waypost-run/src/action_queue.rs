//! The actions that the scheduler has decided and the event loop has not executed yet. A turn of the event loop ends
//! after a while even if there is more to do, so that messages, signals and heartbeats are handled between writes.

use std::collections::VecDeque;

use waypost_core::Timestamp;

use crate::scheduler::{Action, Scheduler};
use waypost_exec::AttemptKey;

/// Microseconds after which a turn ends. Writes are usually much shorter.
const TURN_MICROS_MAX: i64 = 100_000;

/// The actions to execute, in order.
#[derive(Debug, Default)]
pub struct ActionQueue {
    actions: VecDeque<Action>,
    began: Option<Timestamp>,
    /// Whether the turn executes what the previous one left. It does not ask the scheduler then, because the event loop
    /// reads what others have written only between two steps of the scheduler.
    resumed: bool,
    done: bool,
}

impl ActionQueue {
    /// Begins a turn of the event loop.
    pub fn begin(&mut self, now: Timestamp) {
        (self.began, self.resumed, self.done) = (Some(now), !self.actions.is_empty(), false);
    }

    /// Returns the next action. `None` ends the turn.
    pub fn next(&mut self, now: Timestamp, scheduler: &mut Scheduler) -> Option<Action> {
        // The clock of the store may be set back.
        let elapsed = self.began.map_or(0, |began| (now.as_micros() - began.as_micros()).abs());
        if elapsed >= TURN_MICROS_MAX {
            return None;
        }
        if self.actions.is_empty() && !self.resumed {
            self.actions = scheduler.step(now).into();
            self.done = self.actions.is_empty();
        }
        self.actions.pop_front()
    }

    /// Whether the scheduler had nothing more to do when the turn ended, so that the event loop may wait.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Whether all decided actions were executed.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Removes the start of an attempt that must not begin any more. Returns whether it was there.
    pub fn cancel_start(&mut self, key: &AttemptKey) -> bool {
        let before = self.actions.len();
        let starts = |action: &Action| matches!(action, Action::Start(of) | Action::Prepare(of) if of == key);
        self.actions.retain(|action| !starts(action));
        self.actions.len() < before
    }
}
