//! Plans in memory: for tests, and for work that need not outlive the process. It is an SQLite database without a file,
//! on one connection, because another connection would see a database of its own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use waypost_core::Timestamp;

use crate::backends::sqlite::{self, Rows, lock};
use crate::clock;
use crate::error::Result;
use crate::log::change_watch::{MemorySignal, Watch};
use crate::named_lock::NamedLock;
use crate::rows::Totals;
use crate::store::{Look, Maintenance, SharingScope, Store, StorePlace, Work};

/// Returns the current time.
type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A store in memory. Its content is lost when it is dropped.
pub struct MemoryStore {
    /// Opened by the first use, which can fail.
    connection: Mutex<Option<Connection>>,
    clock: Clock,
    bell: MemorySignal,
    held: Arc<Mutex<BTreeSet<String>>>,
}

/// A named lock of this process.
struct Has {
    name: String,
    all: Arc<Mutex<BTreeSet<String>>>,
}

impl NamedLock for Has {
    fn holds(&self) -> bool {
        true
    }
}

impl Drop for Has {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.name);
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Creates an empty store that uses the system clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(clock::now))
    }

    /// Creates an empty store that uses this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self { connection: Mutex::default(), clock, bell: MemorySignal::default(), held: Arc::default() }
    }

    fn with_connection<R>(&self, work: impl FnOnce(&mut Connection) -> Result<R>) -> Result<R> {
        // A transaction that panicked was rolled back during unwinding, so the database behind a poisoned lock is
        // consistent.
        let mut slot = lock(&self.connection);
        work(match slot.as_mut() {
            Some(connection) => connection,
            None => slot.insert(sqlite::in_memory()?),
        })
    }
}

impl Store for MemoryStore {
    fn place(&self) -> StorePlace {
        StorePlace { location: "memory:".to_owned(), reach: SharingScope::Process }
    }

    fn write(&self, work: Work<'_>) -> Result<()> {
        let wrote = self.with_connection(|connection| {
            let transaction = connection.transaction()?;
            let mut rows = Rows::of(&transaction, &*self.clock);
            work(&mut rows)?;
            let wrote = rows.finish()?;
            transaction.commit()?;
            Ok(wrote)
        })?;
        // Signalled after the commit, so that woken watchers read what was committed.
        if wrote {
            self.bell.ring();
        }
        Ok(())
    }

    fn read(&self, look: Look<'_>) -> Result<()> {
        self.with_connection(|connection| {
            let transaction = connection.transaction()?;
            look(&mut Rows::of(&transaction, &*self.clock))
        })
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        Ok(self.bell.watch())
    }

    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn NamedLock>>> {
        let is_new = lock(&self.held).insert(name.to_owned());
        let has =
            || Box::new(Has { name: name.to_owned(), all: Arc::clone(&self.held) }) as Box<dyn NamedLock>;
        Ok(is_new.then(has))
    }
}

impl Maintenance for MemoryStore {
    fn check(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn totals(&self) -> Result<Totals> {
        self.with_connection(|connection| sqlite::totals(connection, (self.clock)()))
    }
}
