//! Named locks: a row with the holder and the expiry of each lock, by the database's clock. Plain SQL, so that it works
//! on every server that resembles PostgreSQL.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Call;
use super::pool::{Pool, RetryDeadline};
use super::rows;
use crate::error::{Result, StoreError};
use crate::named_lock::{HOLD_SECONDS, NamedLock};

/// The time between two renewals.
const RENEW: Duration = Duration::from_secs(HOLD_SECONDS / 3);
/// How long a release waits for the server.
const RELEASE: Duration = Duration::from_secs(2);

/// Takes the lock if it is free or its holder has not renewed it in time.
const TAKE: &str = "INSERT INTO waypost_held (name, holder, until)
     VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $3)
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
     WHERE waypost_held.until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
     RETURNING 1";
/// Renews the lock, but never after another holder has taken it.
const KEEP: &str =
    "UPDATE waypost_held SET until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $3
     WHERE name = $1 AND holder = $2 RETURNING 1";
const GIVE_BACK: &str = "DELETE FROM waypost_held WHERE name = $1 AND holder = $2 RETURNING 1";

/// The state of the lock at the last answer of the server.
enum State {
    /// Held until this local time, counted from before the request.
    Until(Instant),
    /// Another holder has had the lock since.
    Lost,
}

struct Row {
    pool: Arc<Pool>,
    name: String,
    /// A random number that no other holder has, not even the same process at another time.
    holder: String,
    state: Mutex<State>,
}

impl Row {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the statement changed the row.
    fn ask(&self, sql: &'static str, mut patience: RetryDeadline) -> Result<bool> {
        let lease = i64::try_from(HOLD_SECONDS * 1_000_000).unwrap_or(i64::MAX);
        let answers = self.pool.on_link(&mut patience, |link| {
            let call = Call::new(sql).with(rows::text(&self.name)).with(self.holder.clone());
            link.run(&[if sql == GIVE_BACK { call } else { call.with(lease) }])
        })?;
        Ok(answers.first().is_some_and(|rows| !rows.is_empty()))
    }

    /// Renews the lock until `ended` is closed, then releases it.
    fn keep(&self, ended: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEW) {
            let asked = Instant::now();
            match self.ask(KEEP, RetryDeadline::to_open()) {
                Ok(true) => *self.state() = State::Until(asked + Duration::from_secs(HOLD_SECONDS)),
                Ok(false) => {
                    *self.state() = State::Lost;
                    return;
                }
                // The lock stays valid for a while, and the renewal is retried.
                Err(_) => {}
            }
        }
        // If the release fails, the lock expires after a while, and another process takes it.
        let _until_later = self.ask(GIVE_BACK, RetryDeadline::to_open());
    }
}

/// A lock that this process holds.
struct LockedRow {
    row: Arc<Row>,
    /// Dropped to stop the renewal and release the lock.
    end: Option<Sender<()>>,
    given_back: Receiver<()>,
}

impl NamedLock for LockedRow {
    fn holds(&self) -> bool {
        match *self.row.state() {
            State::Until(until) => Instant::now() < until,
            State::Lost => false,
        }
    }
}

impl Drop for LockedRow {
    fn drop(&mut self) {
        drop(self.end.take());
        let _later = self.given_back.recv_timeout(RELEASE);
    }
}

/// Takes the lock `name`; returns `None` when another process holds it.
pub(super) fn take(pool: &Arc<Pool>, name: &str) -> Result<Option<Box<dyn NamedLock>>> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
    let holder = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let until = Instant::now() + Duration::from_secs(HOLD_SECONDS);
    let row =
        Row { pool: Arc::clone(pool), name: name.to_owned(), holder, state: Mutex::new(State::Until(until)) };
    // `until` is counted from before the request: after a long wait for the server it is too early, which is safe.
    if !row.ask(TAKE, RetryDeadline::to_work())? {
        return Ok(None);
    }
    let row = Arc::new(row);
    let ((end, ended), (tell, given_back)) = (channel(), channel());
    let kept = Arc::clone(&row);
    let keep = move || {
        kept.keep(&ended);
        let _nobody_waits = tell.send(());
    };
    let thread = std::thread::Builder::new().name("held".to_owned()).spawn(keep);
    thread.map_err(|error| StoreError::Database(format!("no thread can be started: {error}")))?;
    Ok(Some(Box::new(LockedRow { row, end: Some(end), given_back })))
}
