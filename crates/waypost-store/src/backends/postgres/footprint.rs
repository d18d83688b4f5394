//! What a writer locks: the rows of the plans that it reads or writes, and a mutex for everything else that two writers
//! must not decide about at once. Locks are taken in one order, so that writers that know beforehand what they need cannot
//! block each other.

use std::collections::BTreeSet;

use waypost_core::PlanId;

use super::connection::Call;

/// The number of rows of `waypost_mutexes`. Names that share a row only wait for each other in vain. All builds that share
/// a database must agree on it.
pub(super) const MUTEXES: u64 = 1_024;

const PLANS: &str = "SELECT 1 FROM waypost_plans WHERE id = ANY($1) ORDER BY key FOR NO KEY UPDATE";
const PLANS_NOW: &str =
    "SELECT 1 FROM waypost_plans WHERE id = ANY($1) ORDER BY key FOR NO KEY UPDATE NOWAIT";
const ROWS: &str = "SELECT 1 FROM waypost_mutexes WHERE slot = ANY($1) ORDER BY slot FOR NO KEY UPDATE";
const ROWS_NOW: &str =
    "SELECT 1 FROM waypost_mutexes WHERE slot = ANY($1) ORDER BY slot FOR NO KEY UPDATE NOWAIT";

/// What only one writer at a time decides about.
#[derive(Clone, Copy)]
pub(super) enum Mutex<'a> {
    /// The holders of a lock: whoever starts a task with it.
    Lock(&'a str),
    /// The slots of a queue: whoever starts a task in it.
    Queue(&'a str),
    /// The subscriptions of an owner.
    Subscriber(&'a str),
    /// The subscription of this id.
    Subscription(&'a str),
    /// The worker of this name.
    Worker(&'a str),
    /// The rows of this group about shared plans.
    Shared(&'a str),
}

impl Mutex<'_> {
    /// Returns the number of its row: FNV-1a, which is the same in every build.
    fn row(self) -> i64 {
        let (kind, name) = match self {
            Self::Lock(name) => (b'l', name),
            Self::Queue(name) => (b'q', name),
            Self::Subscriber(name) => (b'o', name),
            Self::Subscription(name) => (b's', name),
            Self::Worker(name) => (b'w', name),
            Self::Shared(name) => (b'g', name),
        };
        let bytes = std::iter::once(kind).chain(name.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash % MUTEXES) as i64
    }
}

/// The locks of a transaction. A try that fails leaves them for the next one, which takes them all at its beginning.
#[derive(Clone, Default)]
pub(super) struct Footprint {
    plans: BTreeSet<PlanId>,
    rows: BTreeSet<i64>,
}

/// Whether to wait for locks that others hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnConflict {
    /// Wait: the locks are taken in their order.
    Wait,
    /// Fail: other locks are held already, and waiting out of order could be a deadlock.
    Fail,
}

impl Footprint {
    pub(super) fn add_plan(&mut self, plan: &PlanId) {
        if !self.plans.contains(plan) {
            self.plans.insert(plan.clone());
        }
    }

    pub(super) fn add(&mut self, mutex: Mutex<'_>) {
        self.rows.insert(mutex.row());
    }

    /// Returns whether `held` has all of it.
    pub(super) fn is_within(&self, held: &Self) -> bool {
        self.plans.is_subset(&held.plans) && self.rows.is_subset(&held.rows)
    }

    /// Returns what `self` has and `held` has not.
    pub(super) fn beyond(&self, held: &Self) -> Self {
        Self {
            plans: self.plans.difference(&held.plans).cloned().collect(),
            rows: self.rows.difference(&held.rows).copied().collect(),
        }
    }

    /// Returns the statements that take these locks.
    pub(super) fn calls(&self, on_conflict: OnConflict) -> Vec<Call> {
        let mut calls = Vec::new();
        if !self.plans.is_empty() {
            let sql = if on_conflict == OnConflict::Wait { PLANS } else { PLANS_NOW };
            let plans: Vec<String> = self.plans.iter().map(ToString::to_string).collect();
            calls.push(Call::new(sql).with(plans));
        }
        if !self.rows.is_empty() {
            let sql = if on_conflict == OnConflict::Wait { ROWS } else { ROWS_NOW };
            calls.push(Call::new(sql).with(self.rows.iter().copied().collect::<Vec<i64>>()));
        }
        calls
    }
}
