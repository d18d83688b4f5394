//! What only one process of all has, as a row with its holder and the moment until which that is believed, by the
//! database's clock. Plain SQL, so that it holds on every server that speaks it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Call;
use super::pool::{Pool, RetryDeadline};
use super::rows;
use crate::error::{Result, StoreError};
use crate::named_lock::{HOLD_SECONDS, NamedLock};

/// Between two words to the server that the holder lives.
const RENEW: Duration = Duration::from_secs(HOLD_SECONDS / 3);
/// How long a release waits for the server.
const RELEASE: Duration = Duration::from_secs(2);

/// Takes it when nobody has it or its holder was not heard of for too long.
const TAKE: &str = "INSERT INTO waypost_held (name, holder, until)
     VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $3)
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
     WHERE waypost_held.until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
     RETURNING 1";
/// Never takes it back from a holder that has taken it meanwhile, nor after another has had it.
const KEEP: &str =
    "UPDATE waypost_held SET until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $3
     WHERE name = $1 AND holder = $2 RETURNING 1";
const GIVE_BACK: &str = "DELETE FROM waypost_held WHERE name = $1 AND holder = $2 RETURNING 1";

/// How things stood when the server was last heard.
enum State {
    /// Believed until this moment here: counted from before the server was asked.
    Until(Instant),
    /// Another has had it since.
    Lost,
}

struct Row {
    pool: Arc<Pool>,
    name: String,
    /// A random number: nobody else has it, not even the same process at another time.
    holder: String,
    state: Mutex<State>,
}

impl Row {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has done that to the row.
    fn ask(&self, sql: &'static str, mut patience: RetryDeadline) -> Result<bool> {
        let lease = i64::try_from(HOLD_SECONDS * 1_000_000).unwrap_or(i64::MAX);
        let answers = self.pool.on_link(&mut patience, |link| {
            let call = Call::new(sql).with(rows::text(&self.name)).with(self.holder.clone());
            link.run(&[if sql == GIVE_BACK { call } else { call.with(lease) }])
        })?;
        Ok(answers.first().is_some_and(|rows| !rows.is_empty()))
    }

    /// Tells the server again and again that this process lives, until `ended` says that it is no longer needed.
    fn keep(&self, ended: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEW) {
            let asked = Instant::now();
            match self.ask(KEEP, RetryDeadline::to_open()) {
                Ok(true) => *self.state() = State::Until(asked + Duration::from_secs(HOLD_SECONDS)),
                Ok(false) => {
                    *self.state() = State::Lost;
                    return;
                }
                // It is believed for a while, and asked again.
                Err(_) => {}
            }
        }
        // Otherwise it is believed for a while longer, and then another takes it.
        let _until_later = self.ask(GIVE_BACK, RetryDeadline::to_open());
    }
}

/// A row that this process has.
struct LockedRow {
    row: Arc<Row>,
    /// Dropped to say that it is not needed any more.
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

/// Takes what is called `name`; nothing when another has it.
pub(super) fn take(pool: &Arc<Pool>, name: &str) -> Result<Option<Box<dyn NamedLock>>> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
    let holder = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let until = Instant::now() + Duration::from_secs(HOLD_SECONDS);
    let row =
        Row { pool: Arc::clone(pool), name: name.to_owned(), holder, state: Mutex::new(State::Until(until)) };
    // Not counted from before a long wait for the server: then it would be believed for too short a while, which is safe.
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
