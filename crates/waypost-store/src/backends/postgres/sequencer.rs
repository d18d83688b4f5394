//! Numbers versions after their commit. Every commit leaves a row in `waypost_inbox`; whoever holds the row of
//! `waypost_control` moves the rows to `waypost_order`, by ticket and without gaps, and notifies watchers. Any process may do
//! it at any time: writers in the background, readers before they read the log.
//!
//! The order is right because a ticket is drawn after the last lock of its transaction. If one version depends on another,
//! the other one was committed before, so its ticket is smaller, and whoever sees the one sees the other.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::connection::{Call, Failure, Link};
use super::listen::{NOTIFY, NOTIFY_OTHER};
use super::pool::Pool;
use super::rows;
use crate::error::Result;

/// The minimum time between two runs of one process, and the maximum while another process numbers.
const INTERVAL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(40));
/// The time until the next try after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Maximum number of versions that are numbered in one transaction.
const BATCH_MAX: i64 = 5_000;

const HOLD: &str = "SELECT sequence FROM waypost_control WHERE id = 1 FOR UPDATE";
const HOLD_IF_FREE: &str = "SELECT sequence FROM waypost_control WHERE id = 1 FOR UPDATE SKIP LOCKED";
/// By the index: the table is full of rows that were just removed.
const IS_DUE: &str = "SELECT (SELECT min(ticket) FROM waypost_inbox) IS NOT NULL";
/// Runs after the row is locked, so that it sees what the last holder has committed.
const NUMBER: &str = "WITH taken AS (
         DELETE FROM waypost_inbox WHERE ticket IN (SELECT ticket FROM waypost_inbox ORDER BY ticket LIMIT $1)
         RETURNING ticket, plan, version
     ), numbered AS (
         INSERT INTO waypost_order (sequence, plan, version)
         SELECT c.sequence + row_number() OVER (ORDER BY t.ticket), t.plan, t.version
         FROM taken t, (SELECT sequence FROM waypost_control WHERE id = 1) c
         RETURNING sequence
     )
     UPDATE waypost_control SET sequence = (SELECT max(sequence) FROM numbered)
     WHERE id = 1 AND EXISTS (SELECT 1 FROM numbered)
     RETURNING (SELECT count(*) FROM numbered)";

/// The result of one run.
enum Run {
    /// Some versions were numbered.
    Numbered,
    /// There was nothing to number.
    Nothing,
    /// Another process is numbering.
    Busy,
}

/// Numbers everything that was committed before the call. Waits for others that number.
pub(super) fn number(link: &mut Link) -> Result<(), Failure> {
    loop {
        let mut calls = link.begin("BEGIN ISOLATION LEVEL READ COMMITTED");
        calls.extend([
            Call::new(HOLD),
            Call::new(NUMBER).with(BATCH_MAX),
            Call::new(NOTIFY),
            Call::new("COMMIT"),
        ]);
        match run(link, &calls) {
            // A database without notifications.
            Err(Failure::Refused { text, .. }) if text.contains("pg_notify") => {
                calls.remove(calls.len() - 2);
                run(link, &calls)?;
            }
            numbered => {
                let numbered = numbered?;
                let count = numbered.iter().rev().nth(2).and_then(|rows| rows.first());
                if count.map_or(Ok(0), |row| rows::get::<i64>(row, 0)).map_err(Failure::Store)? < BATCH_MAX {
                    return Ok(());
                }
            }
        }
    }
}

fn run(link: &mut Link, calls: &[Call]) -> Result<super::connection::Answers, Failure> {
    let answers = link.run(calls);
    if answers.is_err() {
        link.send("ROLLBACK");
    }
    answers
}

/// Numbers one batch unless another process is at it. `tells` makes it notify watchers in any case.
fn number_if_free(link: &mut Link, tells: bool) -> Result<Run, Failure> {
    let mut calls = link.begin("BEGIN ISOLATION LEVEL READ COMMITTED");
    let before = calls.len();
    calls.extend([Call::new(IS_DUE), Call::new(HOLD_IF_FREE)]);
    let answers = run(link, &calls)?;
    let is_due = answers.get(before).and_then(|rows| rows.first());
    let is_due = is_due.map_or(Ok(false), |row| rows::get(row, 0)).map_err(Failure::Store)?;
    let is_held = answers.get(before + 1).is_some_and(|rows| !rows.is_empty());
    if !is_held || !is_due && !tells {
        link.send("ROLLBACK");
        return Ok(if is_held { Run::Nothing } else { Run::Busy });
    }
    let notify = if tells { NOTIFY_OTHER } else { NOTIFY };
    let calls = [Call::new(NUMBER).with(BATCH_MAX), Call::new(notify), Call::new("COMMIT")];
    match run(link, &calls) {
        Err(Failure::Refused { text, .. }) if text.contains("pg_notify") => number(link)?,
        answers => drop(answers?),
    }
    Ok(if is_due { Run::Numbered } else { Run::Nothing })
}

#[derive(Default)]
struct State {
    /// Whether this process has committed a version since the last run.
    is_due: bool,
    /// Whether it has written something else that watchers wait for.
    tells: bool,
    ends: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was written that others must learn of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Versions.
    Versions,
    /// Progress of a task, or a purge.
    Other,
}

/// The thread that numbers what this process has committed. It starts with the first commit.
#[derive(Default)]
pub(super) struct Sequencer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sequencer {
    /// Numbers versions and notifies watchers soon.
    pub(super) fn tell(&self, pool: &Arc<Pool>, news: News) {
        {
            let mut state = self.shared.state();
            match news {
                News::Versions => state.is_due = true,
                News::Other => state.tells = true,
            }
        }
        self.shared.changed.notify_all();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (shared, pool) = (Arc::clone(&self.shared), Arc::downgrade(pool));
            let named = std::thread::Builder::new().name("sequencer".to_owned());
            // Without a thread, readers number what they read.
            *thread = named.spawn(move || work(&shared, &pool)).ok();
        }
    }

    /// Numbers what this process has committed last, and ends.
    pub(super) fn end(&self) {
        self.shared.state().ends = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It has nothing to return.
            let _ended = thread.join();
        }
    }
}

fn work(shared: &Shared, pool: &Weak<Pool>) {
    let mut interval = INTERVAL.0;
    let mut next = Instant::now();
    loop {
        let mut state = shared.state();
        let tells = loop {
            let is_wanted = state.is_due || state.tells;
            if state.ends && !is_wanted {
                return;
            }
            let rest = next.saturating_duration_since(Instant::now());
            if is_wanted && (rest.is_zero() || state.ends) {
                state.is_due = false;
                break std::mem::take(&mut state.tells);
            }
            state = if is_wanted {
                shared.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
            } else {
                shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        };
        let ends = state.ends;
        drop(state);
        let Some(pool) = pool.upgrade() else { return };
        let ran = pool.in_background(|link| match ends {
            true if tells => number_if_free(link, tells),
            true => number(link).map(|()| Run::Nothing),
            false => number_if_free(link, tells),
        });
        drop(pool);
        if ends {
            return;
        }
        let (again, pause) = match ran {
            Some(Run::Nothing) => (false, INTERVAL.0),
            // Others may have committed meanwhile, and may rely on this process.
            Some(Run::Numbered) => (true, INTERVAL.0),
            Some(Run::Busy) => (true, (interval * 2).min(INTERVAL.1)),
            None => (true, AFTER_FAILURE),
        };
        interval = pause.min(INTERVAL.1);
        next = Instant::now() + pause;
        let mut state = shared.state();
        state.is_due |= again;
        state.tells |= again && tells && !matches!(ran, Some(Run::Numbered));
    }
}
