//! Plans in a PostgreSQL database, shared by any number of processes on any number of machines.
//!
//! There is one writer at a time among all of them: the one that has locked the row of `waypost_control`. The row
//! contains the latest sequence number of the log, so that numbers have no gaps and a reader that sees a number sees
//! all before it. A write takes two round trips regardless of how many commands it contains (`transaction.rs`).

mod connection;
mod connection_config;
mod diagnostics;
mod listen;
mod maintenance;
mod named_lock;
mod pool;
mod read;
mod rows;
mod schema;
mod tls;
mod transaction;
mod workers;
mod write;
mod write_buffer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use self::connection::Traffic;
use self::connection::{Call, Failure, Link};
pub use self::connection_config::without_password;
use self::listen::Listener;
use self::pool::{Pool, RetryDeadline};
use self::transaction::{Session, UncertainCommit, describe};
use crate::backends::sqlite::Durability;
use crate::error::{Result, StoreError};
use crate::log::change_watch::Watch;
use crate::named_lock::NamedLock;
use crate::rows::Totals;
use crate::store::{Look, Maintenance, SharingScope, Store, Work};

/// Maximum number of the latest sequence numbers of the log that a check examines for gaps.
const CHECKED_MAX: i64 = 100_000;

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    pool: Arc<Pool>,
    /// Writers of this process queue here rather than at the server.
    alone: Mutex<()>,
    ears: OnceLock<Listener>,
    /// Whether the database supports notifications of commits.
    notifies: AtomicBool,
    /// The schema of the database, if this build can only read it.
    newer_schema: Option<u32>,
}

/// The outcome of one try of a write.
enum Try {
    Done,
    /// The work itself returned an error.
    NotDone(StoreError),
    Failed(Failure),
}

impl PostgresStore {
    /// Opens the database that `url` names and migrates its schema. A database that a newer Waypost has migrated is
    /// opened for reading, or refused if that build does not allow it.
    pub fn open(url: &str, durability: Durability) -> Result<Self> {
        let mut store = Self::connect(url, durability)?;
        let found = store.pool.on_link(&mut RetryDeadline::to_open(), schema::bring_up_to_date)?;
        if found > schema::KNOWN {
            store.newer_schema = Some(found);
            if !store.pool.on_link(&mut RetryDeadline::to_open(), schema::is_readable)? {
                return Err(store.too_new(found));
            }
        }
        Ok(store)
    }

    fn connect(url: &str, durability: Durability) -> Result<Self> {
        let pool = Arc::new(Pool::new(url, durability)?);
        let (notifies, alone) = (AtomicBool::new(true), Mutex::new(()));
        Ok(Self { pool, alone, ears: OnceLock::new(), notifies, newer_schema: None })
    }

    fn too_new(&self, found: u32) -> StoreError {
        StoreError::TooNew { what: self.location(), found, known: schema::KNOWN }
    }

    /// Returns the current schema of a database without migrating it; `None` if it has no Waypost schema.
    pub fn schema_of(url: &str) -> Result<Option<u32>> {
        let store = Self::connect(url, Durability::Full)?;
        store.pool.on_link(&mut RetryDeadline::to_open(), schema::version)
    }

    /// Returns how much this process has sent to the server.
    pub fn traffic(&self) -> Traffic {
        self.pool.traffic()
    }

    fn try_write(
        &self,
        link: &mut Link,
        nonce: i64,
        doubt: &mut Option<UncertainCommit>,
        work: Work<'_>,
    ) -> Try {
        let notifies = self.notifies.load(Ordering::Relaxed);
        let mut session = Session::writing(link, nonce, *doubt, notifies);
        if doubt.is_some() {
            let begun = session.begin();
            let was_committed = session.writing.as_ref().is_some_and(|writing| writing.was_committed);
            if begun.is_ok() && was_committed {
                session.end();
                return Try::Done;
            }
            if begun.is_ok() {
                // The control row is locked now, so the commit in doubt can no longer happen.
                *doubt = None;
            }
        }
        let worked = match session.failure {
            Some(_) => Ok(()),
            None => work(&mut session),
        };
        if let Some(failure) = session.failure.take() {
            session.end();
            return Try::Failed(failure);
        }
        if let Err(error) = worked {
            session.end();
            return Try::NotDone(error);
        }
        match session.commit() {
            Ok(()) => Try::Done,
            Err((failure, about)) => {
                if matches!(failure, Failure::Lost(_)) {
                    *doubt = Some(about);
                }
                Try::Failed(failure)
            }
        }
    }

    /// Returns whether a commit failed only because the database does not support notifications. The next try omits
    /// them.
    fn learns_to_be_silent(&self, failure: &Failure) -> bool {
        let cannot = matches!(failure, Failure::Refused { code, text }
            if matches!(code.as_str(), "42883" | "0A000") && text.contains("pg_notify"));
        cannot && self.notifies.swap(false, Ordering::Relaxed)
    }
}

impl Store for PostgresStore {
    fn location(&self) -> String {
        self.pool.location().to_owned()
    }

    fn write(&self, work: Work<'_>) -> Result<()> {
        if let Some(found) = self.newer_schema {
            return Err(self.too_new(found));
        }
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
        let nonce = i64::from_le_bytes(random);
        let (mut doubt, mut patience) = (None, RetryDeadline::to_work());
        loop {
            let mut borrowed = self.pool.take(&patience).map_err(|error| in_doubt(error, doubt))?;
            match self.try_write(borrowed.link(), nonce, &mut doubt, work) {
                Try::Done => {
                    borrowed.give_back();
                    return Ok(());
                }
                Try::NotDone(error) => {
                    borrowed.give_back();
                    return Err(error);
                }
                Try::Failed(failure) => {
                    if !matches!(failure, Failure::Lost(_)) {
                        borrowed.give_back();
                    }
                    if !self.learns_to_be_silent(&failure) {
                        let waited = self.pool.wait_after(failure, &mut patience);
                        waited.map_err(|error| in_doubt(error, doubt))?;
                    }
                }
            }
        }
    }

    fn read(&self, look: Look<'_>) -> Result<()> {
        let mut patience = RetryDeadline::to_work();
        loop {
            let mut borrowed = self.pool.take(&patience)?;
            let mut session = Session::reading(borrowed.link());
            let looked = look(&mut session);
            let failure = session.failure.take();
            session.end();
            match failure {
                None => {
                    borrowed.give_back();
                    return looked;
                }
                Some(failure) => {
                    if !matches!(failure, Failure::Lost(_)) {
                        borrowed.give_back();
                    }
                    self.pool.wait_after(failure, &mut patience)?;
                }
            }
        }
    }

    fn reach(&self) -> SharingScope {
        SharingScope::Machines
    }

    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn NamedLock>>> {
        named_lock::take(&self.pool, name)
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        Ok(self.ears.get_or_init(|| self.pool.listen()).watch())
    }
}

impl Maintenance for PostgresStore {
    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        diagnostics::ask(&self.pool)
    }

    fn check(&self) -> Result<Vec<String>> {
        let found = self.pool.on_link(&mut RetryDeadline::to_work(), |link| {
            link.run(&[Call::new(
                "SELECT c.sequence, (SELECT coalesce(max(sequence), 0) FROM waypost_log),
                     (SELECT count(*) FROM waypost_log WHERE sequence > c.sequence - $1),
                     c.plans, (SELECT coalesce(max(key), 0) FROM waypost_plans)
                 FROM waypost_control c",
            )
            .with(CHECKED_MAX)])
        })?;
        let Some(row) = found.first().and_then(|rows| rows.first()) else {
            return Ok(vec![format!("{}: table waypost_control has no row", self.location())]);
        };
        let number = |column| rows::get::<i64>(row, column);
        let (sequence, last, count, plans, key) =
            (number(0)?, number(1)?, number(2)?, number(3)?, number(4)?);
        let mut wrong = Vec::new();
        if last != sequence {
            wrong.push(format!("the log ends at number {last}, and waypost_control says {sequence}"));
        } else if count != sequence.min(CHECKED_MAX) {
            let missing = sequence.min(CHECKED_MAX) - count;
            wrong.push(format!("{missing} of the latest numbers of the log are missing"));
        }
        if key > plans {
            wrong.push(format!("a plan has the key {key}, and waypost_control says {plans}"));
        }
        Ok(wrong.into_iter().map(|what| format!("{}: {what}", self.location())).collect())
    }

    fn totals(&self) -> Result<Totals> {
        let ask = maintenance::ask_totals();
        maintenance::totals(&self.pool.on_link(&mut RetryDeadline::to_work(), |link| link.run(&ask))?)
    }
}

/// Adds to an error that it is unknown whether the commit happened.
fn in_doubt(error: StoreError, doubt: Option<UncertainCommit>) -> StoreError {
    match (error, doubt) {
        (error, None) => error,
        (StoreError::Database(text), Some(_)) => StoreError::Database(format!(
            "{text}; the connection broke during the commit, and it is not known whether it was written"
        )),
        (StoreError::Busy, Some(_)) => StoreError::Database(
            "the connection broke during a commit, and others were in the way of finding out whether it was written"
                .to_owned(),
        ),
        (error, Some(_)) => error,
    }
}
