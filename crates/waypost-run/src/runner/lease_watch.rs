//! Ends the attempts of executors with `end_when_lost` when the leases of this run expire without a renewal. On a thread
//! of its own, because the event loop may be waiting for the store, which is why there was no renewal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use waypost_exec::{AttemptHandle, AttemptKey, Force};

#[derive(Default)]
pub(super) struct LeaseWatch {
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    /// When the leases expire.
    until: Option<Instant>,
    attempts: BTreeMap<AttemptKey, AttemptHandle>,
    /// Attempts that were ended.
    ended: BTreeSet<AttemptKey>,
    has_thread: bool,
    is_over: bool,
}

impl LeaseWatch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the leases of all attempts last until then.
    pub(super) fn renewed_until(&self, until: Instant) {
        self.state().until = Some(until);
        self.shared.1.notify_one();
    }

    /// Watches an attempt, whose lease lasts at least until then.
    pub(super) fn add(&self, key: AttemptKey, handle: AttemptHandle, until: Instant) {
        let mut state = self.state();
        state.until.get_or_insert(until);
        state.attempts.insert(key, handle);
        if !state.has_thread {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("leases".to_owned());
            state.has_thread = thread.spawn(move || watch(&shared.0, &shared.1)).is_ok();
        }
        self.shared.1.notify_one();
    }

    /// Forgets an attempt. Returns whether it was ended.
    pub(super) fn remove(&self, key: &AttemptKey) -> bool {
        let mut state = self.state();
        state.attempts.remove(key);
        state.ended.remove(key)
    }
}

impl Drop for LeaseWatch {
    fn drop(&mut self) {
        self.state().is_over = true;
        self.shared.1.notify_one();
    }
}

fn watch(state: &Mutex<State>, changed: &Condvar) {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    while !state.is_over {
        let left = state.until.map(|until| until.saturating_duration_since(Instant::now()));
        match left.filter(|_| !state.attempts.is_empty()) {
            None => state = changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(left) if left.is_zero() => {
                for (key, handle) in std::mem::take(&mut state.attempts) {
                    handle.stop(Force::Kill);
                    state.ended.insert(key);
                }
            }
            Some(left) => {
                state = changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}
