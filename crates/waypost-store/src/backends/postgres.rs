//! Plans in a PostgreSQL database, shared by any number of processes on any number of machines.
//!
//! Writers lock what they touch (`footprint.rs`), so that writers of different plans commit at the same time. Versions get
//! their numbers in the log after their commit (`sequencer.rs`): numbers have no gaps, and a reader that sees a number sees
//! all before it. A write takes two round trips regardless of how many commands it contains (`transaction.rs`).

mod connection;
mod connection_config;
mod diagnostics;
mod footprint;
mod listen;
mod maintenance;
mod named_lock;
mod pool;
mod read;
mod rows;
mod schema;
mod sequencer;
mod tls;
mod transaction;
mod workers;
mod write;
mod write_buffer;
mod write_state;

use std::sync::{Arc, OnceLock};

pub use self::connection::Traffic;
use self::connection::{Call, Failure, Link};
pub use self::connection_config::without_password;
use self::footprint::Footprint;
use self::listen::Listener;
use self::pool::{Pool, RetryDeadline};
use self::sequencer::{News, Sequencer};
use self::transaction::Session;
use self::write_state::{Access, UncertainCommit, WriteTries};
use crate::backends::sqlite::Durability;
use crate::error::{Result, StoreError};
use crate::log::change_watch::Watch;
use crate::named_lock::NamedLock;
use crate::rows::Totals;
use crate::store::{Look, Maintenance, SharingScope, Store, StorePlace, Work};

/// Maximum number of the latest sequence numbers of the log that a check examines for gaps.
const CHECKED_MAX: i64 = 100_000;

/// The code of a write to a server that only reads, such as a standby.
const READ_ONLY: &str = "25006";
/// The code of a write that the role is not permitted.
const NOT_PERMITTED: &str = "42501";

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    pool: Arc<Pool>,
    ears: OnceLock<Listener>,
    sequencer: Sequencer,
    /// The schema of the database, if this build can only read it.
    newer_schema: Option<u32>,
}

/// The outcome of one try of a write.
enum Try {
    /// It is durable. Carries what others must learn of.
    Done(Option<News>),
    /// The work itself returned an error.
    NotDone(StoreError),
    Failed(Failure),
}

impl PostgresStore {
    fn location(&self) -> String {
        self.pool.location().to_owned()
    }

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
        Ok(Self { pool, ears: OnceLock::new(), sequencer: Sequencer::default(), newer_schema: None })
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

    /// Numbers everything that was committed so far. Who may not write sees what others have numbered.
    fn number(&self) -> Result<()> {
        if self.newer_schema.is_some() {
            return Ok(());
        }
        self.pool.on_link(&mut RetryDeadline::to_work(), |link| match sequencer::number(link) {
            Err(Failure::Refused { code, .. }) if matches!(code.as_str(), READ_ONLY | NOT_PERMITTED) => {
                Ok(())
            }
            numbered => numbered,
        })
    }
}

fn try_write(link: &mut Link, tries: &mut WriteTries, work: Work<'_>) -> Try {
    let is_in_doubt = tries.doubt.is_some();
    let mut session = Session::writing(link, tries);
    if is_in_doubt {
        let begun = session.begin();
        let was_committed = session.writing.as_ref().is_some_and(|writing| writing.was_committed);
        if begun.is_ok() && was_committed {
            session.end();
            return Try::Done(Some(News::Versions));
        }
        if begun.is_ok()
            && let Some(writing) = &mut session.writing
        {
            // No other writer is at work now, so the commit in doubt can no longer happen.
            writing.tries.doubt = None;
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
        Ok(news) => Try::Done(news),
        Err((failure, about)) => {
            if matches!(failure, Failure::Lost(_)) {
                tries.doubt = Some(about);
            }
            Try::Failed(failure)
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.sequencer.end();
    }
}

impl Store for PostgresStore {
    fn place(&self) -> StorePlace {
        StorePlace { location: self.location(), reach: SharingScope::Machines }
    }

    fn write(&self, work: Work<'_>) -> Result<()> {
        if let Some(found) = self.newer_schema {
            return Err(self.too_new(found));
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
        let mut tries = WriteTries {
            nonce: i64::from_le_bytes(random),
            access: Access::Shared,
            doubt: None,
            footprint: Footprint::default(),
            numbered: 0,
        };
        let mut patience = RetryDeadline::to_work();
        loop {
            let taken = self.pool.take(&patience);
            let mut borrowed = taken.map_err(|error| in_doubt(error, tries.doubt.as_ref()))?;
            let tried = try_write(borrowed.link(), &mut tries, work);
            if !matches!(tried, Try::Failed(Failure::Lost(_))) {
                borrowed.give_back();
            }
            match tried {
                Try::Done(news) => {
                    if let Some(news) = news {
                        self.sequencer.tell(&self.pool, news);
                    }
                    return Ok(());
                }
                Try::NotDone(error) => return Err(error),
                Try::Failed(Failure::Exclusive) => tries.access = Access::Exclusive,
                Try::Failed(Failure::Unnumbered) => {
                    self.number()?;
                    tries.numbered += 1;
                }
                Try::Failed(failure) => {
                    if tries.doubt.is_some() {
                        // Whoever is alone knows that the commit in doubt has ended.
                        tries.access = Access::Exclusive;
                    }
                    let waited = self.pool.wait_after(failure, &mut patience);
                    waited.map_err(|error| in_doubt(error, tries.doubt.as_ref()))?;
                }
            }
        }
    }

    fn read(&self, look: Look<'_>) -> Result<()> {
        let (mut patience, mut numbered) = (RetryDeadline::to_work(), 0);
        loop {
            let mut borrowed = self.pool.take(&patience)?;
            let mut session = Session::reading(borrowed.link(), numbered);
            let looked = look(&mut session);
            let failure = session.failure.take();
            session.end();
            if !matches!(failure, Some(Failure::Lost(_))) {
                borrowed.give_back();
            }
            match failure {
                None => return looked,
                Some(Failure::Unnumbered) => {
                    self.number()?;
                    numbered += 1;
                }
                Some(failure) => self.pool.wait_after(failure, &mut patience)?,
            }
        }
    }

    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn NamedLock>>> {
        named_lock::take(&self.pool, name)
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        Ok(self.ears.get_or_init(|| Listener::open(&self.pool)).watch())
    }
}

impl Maintenance for PostgresStore {
    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        diagnostics::ask(&self.pool)
    }

    fn check(&self) -> Result<Vec<String>> {
        let found = self.pool.on_link(&mut RetryDeadline::to_work(), |link| {
            link.run(&[Call::new(
                "SELECT c.sequence, (SELECT coalesce(max(sequence), 0) FROM waypost_order),
                     (SELECT count(*) FROM waypost_order o JOIN waypost_log l ON l.plan = o.plan AND l.version = o.version
                      WHERE o.sequence > c.sequence - $1),
                     (SELECT last_value FROM waypost_plan_keys), (SELECT coalesce(max(key), 0) FROM waypost_plans),
                     (SELECT count(*) FROM waypost_plans p WHERE p.version > 0
                      AND NOT EXISTS (SELECT 1 FROM waypost_order o WHERE o.plan = p.key AND o.version = p.version)
                      AND NOT EXISTS (SELECT 1 FROM waypost_inbox i WHERE i.plan = p.key AND i.version = p.version))
                 FROM waypost_control c",
            )
            .with(CHECKED_MAX)])
        })?;
        let Some(row) = found.first().and_then(|rows| rows.first()) else {
            return Ok(vec![format!("{}: table waypost_control has no row", self.location())]);
        };
        let number = |column| rows::get::<i64>(row, column);
        let (sequence, last, count, keys, key, lost) =
            (number(0)?, number(1)?, number(2)?, number(3)?, number(4)?, number(5)?);
        let mut wrong = Vec::new();
        if last != sequence {
            wrong.push(format!("the log ends at number {last}, and waypost_control says {sequence}"));
        } else if count != sequence.min(CHECKED_MAX) {
            let missing = sequence.min(CHECKED_MAX) - count;
            wrong.push(format!("{missing} of the latest numbers of the log are missing"));
        }
        if lost > 0 {
            wrong.push(format!("the latest versions of {lost} plans have no number, and will get none"));
        }
        if key > keys {
            wrong.push(format!("a plan has the key {key}, and waypost_plan_keys says {keys}"));
        }
        Ok(wrong.into_iter().map(|what| format!("{}: {what}", self.location())).collect())
    }

    fn totals(&self) -> Result<Totals> {
        let ask = maintenance::ask_totals();
        maintenance::totals(&self.pool.on_link(&mut RetryDeadline::to_work(), |link| link.run(&ask))?)
    }
}

/// Adds to an error that it is unknown whether the commit happened.
fn in_doubt(error: StoreError, doubt: Option<&UncertainCommit>) -> StoreError {
    match (error, doubt) {
        (error, None) => error,
        (StoreError::Database(text) | StoreError::Unreachable(text), Some(_)) => StoreError::Database(format!(
            "{text}; the connection broke during the commit, and it is not known whether it was written"
        )),
        (StoreError::Busy, Some(_)) => StoreError::Database(
            "the connection broke during a commit, and others were in the way of finding out whether it was written"
                .to_owned(),
        ),
        (error, Some(_)) => error,
    }
}
