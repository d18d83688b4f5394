//! Plans in one SQLite file, shared by any number of processes. Durable by default: write-ahead log,
//! `synchronous=FULL`.

mod maintenance;
mod rows;
mod schema;
mod write_buffer;

use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, ffi, params, params_from_iter};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use waypost_core::{Plan, PlanId, TaskId, Timestamp};

pub(super) use self::maintenance::totals;
use self::rows::PlanRow;
use crate::backends::lock_holder::{HolderWatch, StoppedHolder};
use crate::backends::write_buffer::{PendingPlan, PendingPlans};
use crate::backends::{hash_chain, in_memory_query, list_query};
use crate::clock;
use crate::dirs::{FileIdentity, make_recovery_file, remove_file, sync_file};
use crate::error::{BUSY_SECONDS_MAX, Result, StoreError};
use crate::log::change_watch::{ChangeSignal, Watch, beside, pause};
use crate::log::subscription::Subscription;
use crate::named_lock::{self, NamedLock};
use crate::rows::{
    HeldLock, IndexRows, Lease, LeaseFilter, LeaseUpdate, LockFilter, LogFilter, LogPage, Page, PlanState,
    PlanSummary, Pruned, Query, SharedKeys, SharedScope, StoreState, SubscriptionFilter, Totals,
    VersionRecord, Wait, WaitFilter, WorkerFilter, WrittenSince,
};
use crate::store::{
    Append, Appended, Inspect, Look, Maintenance, Pruning, Read, Record, Rewrite, SNAPSHOT_MILESTONE,
    SharingScope, Store, StorePlace, Transaction, Work,
};
use crate::stored_version::StoredVersion;
use crate::workers::{AttemptLog, Worker};

const STATEMENTS_CACHED_MAX: usize = 64;
/// The byte of the shared memory file that SQLite locks for a transaction that writes to the write-ahead log.
const WRITE_LOCK_BYTE: u64 = 120;

/// What a crash of the machine may lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing that was acknowledged.
    #[default]
    Full,
    /// The last moments before a power loss; never consistency, and nothing when only processes crash.
    Relaxed,
}

/// A store in one SQLite file, shared by the processes of one machine.
pub struct SqliteStore {
    path: PathBuf,
    durability: Durability,
    bell: ChangeSignal,
    /// The file that was opened, once it is.
    identity: Option<FileIdentity>,
    /// The schema of the file, if this build can only read it.
    newer_schema: Option<u32>,
    access: FileAccess,
    writer: Mutex<Option<Connection>>,
    reader: Mutex<Option<Connection>>,
}

/// What can be done with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileAccess {
    Write,
    /// This user can only read it.
    Read,
    /// It can be read; the disk is full.
    ReadOnFullDisk,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::DiskFull { what: "the database".to_owned() },
            // The shared memory of the write-ahead log is a file, too, which SQLite extends before it is used.
            Some(ErrorCode::SystemIoFailure) if has_extended_code(&error, ffi::SQLITE_IOERR_SHMSIZE) => {
                Self::DiskFull { what: "the database".to_owned() }
            }
            Some(ErrorCode::NotADatabase) => Self::NotADatabase("the file".to_owned()),
            Some(ErrorCode::DatabaseCorrupt) => {
                Self::Corrupt { what: "the database file".to_owned(), detail: error.to_string() }
            }
            _ => Self::Database(error.to_string()),
        }
    }
}

fn has_extended_code(error: &rusqlite::Error, code: i32) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == code)
}

/// Waits for another writer, after `tries` earlier waits; returns `false` after [`BUSY_SECONDS_MAX`]. A commit takes a
/// millisecond or two, and SQLite's own handler soon sleeps for tens of them.
fn wait_for_others(tries: i32) -> bool {
    const SHORT: (i32, u64) = (50, 200);
    const LONG_MICROS: u64 = 2_000;
    const TRIES_MAX: u64 = BUSY_SECONDS_MAX * 1_000_000 / LONG_MICROS;
    /// Number of tries between two checks of the holder: a second or more.
    const CHECK_TRIES: i32 = 500;
    if tries > 0 && tries % CHECK_TRIES == 0 && finds_stopped_holder() {
        return false;
    }
    let (short_tries, short_micros) = SHORT;
    pause(Duration::from_micros(if tries < short_tries { short_micros } else { LONG_MICROS }));
    u64::try_from(tries).is_ok_and(|tries| tries < TRIES_MAX)
}

thread_local! {
    /// Who holds the lock that this thread waits for: SQLite passes nothing to its busy handler.
    static WAIT: RefCell<Option<(HolderWatch, Option<StoppedHolder>)>> = const { RefCell::new(None) };
}

/// Whether the writer that this thread waits for is a stopped process.
fn finds_stopped_holder() -> bool {
    WAIT.with_borrow_mut(|wait| {
        let Some((watch, found)) = wait else { return false };
        *found = watch.check();
        found.is_some()
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens an empty database that ends with its connection.
pub(super) fn in_memory() -> Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    schema::bring_up_to_date(&mut connection, "memory:")?;
    keep_statements(&connection)?;
    Ok(connection)
}

/// Keeps prepared statements for the next time. Without the stability guarantee, SQLite looks at the values of parameters
/// when it plans a statement, and plans it again each time they change.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether this user can read a file, and cannot write it or make the files beside it that writing takes.
fn is_read_only(path: &Path) -> bool {
    let is_refused = |path: &Path| {
        matches!(access(path, Access::WRITE_OK), Err(Errno::ACCESS | Errno::ROFS | Errno::PERM))
    };
    access(path, Access::READ_OK).is_ok() && (is_refused(path) || is_refused(folder_of(path)))
}

impl SqliteStore {
    fn location(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    /// Opens the file, creates it if it does not exist, and migrates its schema. A file that a newer Waypost has migrated
    /// is opened for reading, or refused if that build does not allow it. So is one that this user can only read.
    pub fn open(path: &Path, durability: Durability) -> Result<Self> {
        if path.is_dir() {
            let error = std::io::Error::new(std::io::ErrorKind::IsADirectory, "it is a folder");
            return Err(StoreError::files(path, error));
        }
        if let Err(error @ (Errno::ACCESS | Errno::PERM)) = access(path, Access::READ_OK) {
            return Err(StoreError::files(path, error.into()));
        }
        if is_read_only(path) {
            return Self::open_existing(path, durability, FileAccess::Read);
        }
        crate::dirs::make_folder(folder_of(path))?;
        crate::dirs::make_file(path)?;
        Self::open_existing(path, durability, FileAccess::Write)
    }

    /// Opens the file for one command that may only read. The files through which processes coordinate need space: on a full disk
    /// the file is read without them.
    pub fn open_for_one_command(path: &Path, durability: Durability) -> Result<Self> {
        match Self::open(path, durability) {
            Err(error @ StoreError::DiskFull { .. }) => {
                Self::open_existing(path, durability, FileAccess::ReadOnFullDisk).map_err(|_| error)
            }
            opened => opened,
        }
    }

    /// Opens a file that exists, to read it. Does not migrate it: one of an earlier schema is refused.
    pub fn open_to_read(path: &Path) -> Result<Self> {
        Self::open_existing(path, Durability::default(), FileAccess::Read)
    }

    fn open_existing(path: &Path, durability: Durability, access: FileAccess) -> Result<Self> {
        let bell = ChangeSignal::new(beside(path, "bell"));
        let mut store = Self {
            path: path.to_owned(),
            durability,
            bell,
            identity: None,
            newer_schema: None,
            access,
            writer: Mutex::new(None),
            reader: Mutex::new(None),
        };
        let mut connection = store.connect()?;
        store.newer_schema = match access {
            FileAccess::Write => schema::bring_up_to_date(&mut connection, &store.location())?,
            FileAccess::Read | FileAccess::ReadOnFullDisk => {
                schema::must_be_usable(&connection, &store.location())?;
                let found = schema::version(&connection)?;
                if found < schema::KNOWN {
                    return Err(store.cannot_write("has to be migrated to the schema of this version"));
                }
                (found > schema::KNOWN).then_some(found)
            }
        };
        store.identity = Some(FileIdentity::of(path)?);
        *lock(&store.writer) = Some(connection);
        Ok(store)
    }

    /// Returns the current schema of a file without migrating it; `None` if there is no file.
    pub fn schema_of(path: &Path) -> Result<Option<u32>> {
        if !path.exists() {
            return Ok(None);
        }
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(BUSY_SECONDS_MAX))?;
        schema::version(&connection).map(Some)
    }

    /// Refuses to go on with a file that is no longer at its path. SQLite itself would go on, and everything would be
    /// lost when the last process closes the file.
    fn must_be_there(&self) -> Result<()> {
        match self.identity.is_some_and(|identity| identity.is_gone_from(&self.path)) {
            true => Err(StoreError::StoreRemoved { what: self.location() }),
            false => Ok(()),
        }
    }

    /// Begins a transaction that writes, after those of other processes.
    fn begin_to_write<'a>(&self, connection: &'a mut Connection) -> Result<rusqlite::Transaction<'a>> {
        let watch = HolderWatch::of(&self.shared_memory(), Some(WRITE_LOCK_BYTE));
        WAIT.set(Some((watch, None)));
        let begun = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
        let found = WAIT.take().and_then(|(_, found)| found);
        match (begun.map_err(StoreError::from), found) {
            (Err(StoreError::Busy), Some(StoppedHolder { process, program })) => {
                Err(StoreError::HolderStopped { what: self.location(), process, program })
            }
            (begun, _) => begun,
        }
    }

    /// The file beside the database through which its processes coordinate.
    fn shared_memory(&self) -> PathBuf {
        self.path_with("-shm")
    }

    fn path_with(&self, ending: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(ending);
        PathBuf::from(path)
    }

    /// The error of a file that has to be written and cannot be.
    fn cannot_write(&self, what: &str) -> StoreError {
        if self.access == FileAccess::ReadOnFullDisk {
            return StoreError::DiskFull { what: self.location() };
        }
        let why = format!("it {what}, and this user cannot write the file or its folder");
        StoreError::files(&self.path, std::io::Error::new(std::io::ErrorKind::PermissionDenied, why))
    }

    /// Opens a file that this user can only read. Without a write-ahead log there are no writers, and no file can be made
    /// through which to coordinate with them.
    fn connect_to_read(&self) -> rusqlite::Result<Connection> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let wal = self.path_with("-wal");
        if std::fs::metadata(wal).is_ok_and(|found| found.len() > 0) {
            return Connection::open_with_flags(&self.path, flags);
        }
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)
    }

    fn connect(&self) -> Result<Connection> {
        self.must_be_there()?;
        let named = |error: rusqlite::Error| match StoreError::from(error) {
            StoreError::Corrupt { detail, .. } => StoreError::Corrupt { what: self.location(), detail },
            StoreError::Database(detail) => StoreError::Database(format!("{}: {detail}", self.location())),
            StoreError::NotADatabase(_) => StoreError::NotADatabase(self.location()),
            StoreError::DiskFull { .. } => StoreError::DiskFull { what: self.location() },
            other @ (StoreError::TooNew { .. }
            | StoreError::Busy
            | StoreError::HolderStopped { .. }
            | StoreError::Unreachable(_)
            | StoreError::Files { .. }
            | StoreError::StoreRemoved { .. }
            | StoreError::Pruned { .. }
            | StoreError::BadCursor(_)
            | StoreError::BadLocation(_)) => other,
        };
        // The file is there already: a missing one must not be replaced by an empty one.
        let flags = OpenFlags::default() - OpenFlags::SQLITE_OPEN_CREATE;
        let opened = match self.access {
            FileAccess::Write => Connection::open_with_flags(&self.path, flags),
            FileAccess::Read | FileAccess::ReadOnFullDisk => self.connect_to_read(),
        };
        let mut connection = opened.map_err(named)?;
        connection.busy_handler(Some(wait_for_others)).map_err(named)?;
        let synchronous = match self.durability {
            Durability::Full => "FULL",
            Durability::Relaxed => "NORMAL",
        };
        let mode: String =
            connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(named)?;
        if mode != "wal" && self.access == FileAccess::Write {
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(named)?;
        }
        connection
            .execute_batch(&format!("PRAGMA synchronous = {synchronous}; PRAGMA mmap_size = 1073741824;"))
            .map_err(named)?;
        keep_statements(&connection).map_err(named)?;
        Ok(connection)
    }
}

impl Store for SqliteStore {
    fn place(&self) -> StorePlace {
        StorePlace { location: self.location(), reach: SharingScope::Machine }
    }

    fn write(&self, work: Work<'_>) -> Result<()> {
        if let Some(found) = self.newer_schema {
            return Err(StoreError::TooNew { what: self.location(), found, known: schema::KNOWN });
        }
        if self.access != FileAccess::Write {
            return Err(self.cannot_write("has to be written for this"));
        }
        self.must_be_there()?;
        let mut slot = lock(&self.writer);
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let outcome = (|| {
            let transaction = self.begin_to_write(&mut connection)?;
            schema::must_be_usable(&transaction, &self.location())?;
            let mut rows = Rows::of(&transaction, &clock::now);
            work(&mut rows)?;
            let wrote = rows.finish()?;
            if wrote {
                self.bell.keep_open();
            }
            transaction.commit()?;
            Ok(wrote)
        })();
        *slot = Some(connection);
        drop(slot);
        // Signalled after the commit, so that woken watchers read what was committed.
        if outcome.as_ref().is_ok_and(|&wrote| wrote) {
            self.bell.ring();
        }
        outcome.and_then(|_| self.must_be_there())
    }

    fn read(&self, look: Look<'_>) -> Result<()> {
        self.must_be_there()?;
        // A process that reads only once, as most commands do, needs no second connection.
        if let Ok(mut slot) = self.writer.try_lock()
            && let Some(connection) = slot.as_mut()
        {
            let transaction = connection.transaction()?;
            return look(&mut Rows::of(&transaction, &clock::now));
        }
        let mut slot = lock(&self.reader);
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let outcome = (|| {
            let transaction = connection.transaction()?;
            look(&mut Rows::of(&transaction, &clock::now))
        })();
        *slot = Some(connection);
        outcome
    }

    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn NamedLock>>> {
        Ok(named_lock::by_file(&beside(&self.path, name)))
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        Ok(self.bell.watch())
    }
}

impl Maintenance for SqliteStore {
    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        let connection = self.connect()?;
        let pragma = |name: &str| -> Result<String> {
            let value: Value = connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?;
            Ok(match value {
                Value::Text(text) => text,
                Value::Integer(number) => number.to_string(),
                other @ (Value::Null | Value::Real(_) | Value::Blob(_)) => format!("{other:?}"),
            })
        };
        let synchronous = match pragma("synchronous")?.as_str() {
            "1" => "normal".to_owned(),
            "2" => "full".to_owned(),
            other => other.to_owned(),
        };
        Ok(vec![
            ("schema", schema::version(&connection)?.to_string()),
            ("journal_mode", pragma("journal_mode")?),
            ("synchronous", synchronous),
        ])
    }

    fn rescue(&self) -> Result<Option<PathBuf>> {
        let (writer, reader) = (lock(&self.writer), lock(&self.reader));
        let Some(connection) = writer.as_ref().or(reader.as_ref()) else { return Ok(None) };
        let path = make_recovery_file(&self.path)?;
        let copied = connection.execute("VACUUM INTO ?1", [path.to_string_lossy()]);
        copied
            .map_err(StoreError::from)
            .and_then(|_| sync_file(&path))
            .inspect_err(|_| remove_file(&path))?;
        Ok(Some(path))
    }

    fn compact(&self) -> Result<u64> {
        let size = |connection: &Connection| -> Result<u64> {
            let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            let bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            Ok((pages * bytes) as u64)
        };
        let connection = self.connect()?;
        let before = size(&connection)?;
        connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(before.saturating_sub(size(&connection)?))
    }

    fn check(&self) -> Result<Vec<String>> {
        let connection = self.connect()?;
        let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
        Ok(lines
            .into_iter()
            .filter(|line| line != "ok")
            .map(|line| format!("{}: {line}", self.location()))
            .collect())
    }

    fn totals(&self) -> Result<Totals> {
        totals(&self.connect()?, clock::now())
    }
}

/// The tables during one transaction.
pub(super) struct Rows<'a> {
    connection: &'a Connection,
    clock: &'a dyn Fn() -> Timestamp,
    pending: PendingPlans,
    /// The latest sequence number of the log, once this transaction knows it.
    sequence: Option<i64>,
    /// Whether watchers must be woken: a version was appended or imported, a plan purged, or progress reported.
    wrote: bool,
    /// Whether the table of waits has rows, once it was read.
    has_waits: Option<bool>,
}

impl<'a> Rows<'a> {
    pub(super) fn of(connection: &'a Connection, clock: &'a dyn Fn() -> Timestamp) -> Self {
        Self {
            connection,
            clock,
            pending: PendingPlans::default(),
            sequence: None,
            wrote: false,
            has_waits: None,
        }
    }

    /// Writes everything pending before the commit. Returns whether watchers must be woken after it.
    pub(super) fn finish(mut self) -> Result<bool> {
        self.flush()?;
        Ok(self.wrote)
    }

    /// Writes everything pending, so that the tables are current.
    fn flush(&mut self) -> Result<()> {
        if self.pending.has_waits() {
            self.has_waits = None;
        }
        write_buffer::flush(&mut self.pending, self.connection)
    }

    /// Returns whether the table of waits has any rows. In most stores it has none, and then no further query is
    /// needed.
    fn has_waits(&mut self) -> Result<bool> {
        if self.pending.has_waits() {
            return Ok(true);
        }
        if let Some(known) = self.has_waits {
            return Ok(known);
        }
        let found = rows::value(self.connection, "SELECT EXISTS (SELECT 1 FROM waits)", [])?.unwrap_or(true);
        self.has_waits = Some(found);
        Ok(found)
    }

    /// Returns the next sequence number of the log. Not `last_insert_rowid`: a number must never be assigned twice, not
    /// even after a purge.
    fn next_sequence(&mut self) -> Result<i64> {
        let latest = match self.sequence {
            Some(latest) => latest,
            None => {
                let sql = "SELECT coalesce(max(sequence), 0) FROM log";
                rows::value(self.connection, sql, [])?.unwrap_or(0)
            }
        };
        self.sequence = Some(latest + 1);
        Ok(latest + 1)
    }

    /// Returns the key of a plan's row, unless the plan was purged.
    fn key(&self, plan: &PlanId) -> Result<Option<i64>> {
        if let Some(pending) = self.pending.get(plan) {
            return Ok(Some(pending.key));
        }
        let sql = "SELECT key FROM plans WHERE id = ?1 AND purged_at IS NULL";
        rows::value(self.connection, sql, [plan.as_str()])
    }

    fn known_key(&self, plan: &PlanId) -> Result<i64> {
        self.key(plan)?.ok_or_else(|| StoreError::Database(format!("plan {plan} has no row")))
    }
}

impl Inspect for Rows<'_> {
    fn stored_versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<StoredVersion>> {
        let sql = "SELECT l.sequence, l.version, l.at, l.actor, l.command, l.events, l.hash, l.chained_from
             FROM plans p JOIN log l ON l.plan = p.key WHERE p.id = ?1 AND l.version > ?2
             ORDER BY l.version LIMIT ?3";
        let params = params![plan.as_str(), after as i64, limit as i64];
        rows::query(self.connection, sql, params, |row| rows::stored_version(row, plan))
    }

    fn pruned(&mut self, plan: &PlanId) -> Result<Option<Pruned>> {
        match self.key(plan)? {
            Some(key) => maintenance::pruned(self.connection, key),
            None => Ok(None),
        }
    }
}

impl Read for Rows<'_> {
    fn head(&mut self, plan: &PlanId) -> Result<Option<PlanSummary>> {
        if let Some(pending) = self.pending.get(plan) {
            return Ok(Some(pending.head.clone()));
        }
        let sql = format!("SELECT {} FROM plans WHERE id = ?1 AND purged_at IS NULL", list_query::HEAD);
        Ok(rows::query(self.connection, &sql, [plan.as_str()], |row| rows::head(row))?.pop())
    }

    fn plan_state(&mut self, plan: &PlanId) -> Result<PlanState> {
        if let Some(PendingPlan { head, hash, .. }) = self.pending.get(plan) {
            return Ok(PlanState::Stored { version: head.version, hash: *hash });
        }
        let sql = "SELECT version, purged_at IS NOT NULL, hash FROM plans WHERE id = ?1";
        let found = rows::query(self.connection, sql, [plan.as_str()], |row| rows::plan_state(row))?;
        Ok(found.into_iter().next().unwrap_or(PlanState::Unused))
    }

    fn heads(&mut self, query: &Query) -> Result<Page<PlanSummary>> {
        self.flush()?;
        rows::heads(self.connection, query)
    }

    fn ids(&mut self, prefix: &str, limit: usize) -> Result<Vec<PlanId>> {
        // All ids with this prefix are between the prefix and the prefix followed by the highest character.
        let sql = "SELECT id FROM plans
             WHERE id >= ?1 AND id < ?1 || char(0x10FFFF) AND purged_at IS NULL ORDER BY id LIMIT ?2";
        rows::query(self.connection, sql, params![prefix, limit as i64], |row| rows::plan_id(row.get(0)?))
    }

    fn versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<VersionRecord>> {
        let Some(key) = self.key(plan)? else { return Ok(Vec::new()) };
        let sql = "SELECT sequence, version, at, actor, command, events FROM log
             WHERE plan = ?1 AND version > ?2 ORDER BY version LIMIT ?3";
        let params = params![key, after as i64, limit as i64];
        rows::query(self.connection, sql, params, |row| rows::entry(row, 0, plan.clone()))
    }

    fn snapshot(&mut self, plan: &PlanId, at_most: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let Some(key) = self.key(plan)? else { return Ok(None) };
        let mut statement = self.connection.prepare_cached(
            "SELECT rowid, version, length(bytes) FROM snapshots
             WHERE plan = ?1 AND version <= ?2 ORDER BY version DESC LIMIT 1",
        )?;
        let found = statement.query_row(params![key, at_most as i64], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as usize))
        });
        let Some((row, version, length)) = found.optional()? else {
            // There is no snapshot at this version or before: only the state kept for pruned events is left.
            return maintenance::snapshot(self.connection, key, at_most);
        };
        // Read directly into the buffer: SQLite would first assemble a large column value and then copy it.
        let mut bytes = vec![0; length];
        let mut blob = self.connection.blob_open(rusqlite::MAIN_DB, "snapshots", "bytes", row, true)?;
        blob.read_exact(&mut bytes).map_err(|error| StoreError::Database(error.to_string()))?;
        Ok(Some((version, bytes)))
    }

    fn log(&mut self, after: u64, filter: &LogFilter, limit: usize) -> Result<LogPage> {
        // For one plan, the index of its versions is in the order of the log, so versions of other plans are not read.
        let sql = match filter.plan {
            Some(_) => {
                "SELECT l.sequence, l.version, l.at, l.actor, l.command, l.events, p.id
                 FROM plans p CROSS JOIN log l INDEXED BY log_by_plan ON l.plan = p.key
                 WHERE p.id = ?2 AND l.sequence > ?1 AND (?3 IS NULL OR l.actor = ?3)
                 ORDER BY l.version LIMIT ?4"
            }
            None => {
                "SELECT l.sequence, l.version, l.at, l.actor, l.command, l.events, p.id
                 FROM log l JOIN plans p ON p.key = l.plan
                 WHERE l.sequence > ?1 AND ?2 IS NULL AND (?3 IS NULL OR l.actor = ?3)
                 ORDER BY l.sequence LIMIT ?4"
            }
        };
        let plan = filter.plan.as_ref().map(PlanId::as_str);
        let actor = filter.actor.as_ref().map(ToString::to_string);
        let params = params![after as i64, plan, actor, limit as i64];
        let versions = rows::query(self.connection, sql, params, |row| {
            rows::entry(row, 0, rows::plan_id(row.get(6)?)?)
        })?;
        Ok(LogPage { versions, ..LogPage::default() })
    }

    fn written_since(&mut self, after: u64, limit: usize) -> Result<WrittenSince> {
        // The events are the last column, so they are not read.
        let mut statement = self.connection.prepare_cached(
            "SELECT p.id, max(l.version), max(l.sequence), count(*)
             FROM (SELECT plan, version, sequence FROM log WHERE sequence > ?1 ORDER BY sequence LIMIT ?2) l
             JOIN plans p ON p.key = l.plan GROUP BY l.plan ORDER BY 3",
        )?;
        let mut found = statement.query(params![after as i64, limit as i64])?;
        let mut written = WrittenSince { up_to: after, ..WrittenSince::default() };
        let mut count = 0;
        while let Some(row) = found.next()? {
            let version = row.get::<_, i64>(1)? as u64;
            written.plans.push((rows::plan_id(row.get(0)?)?, version));
            written.up_to = written.up_to.max(row.get::<_, i64>(2)? as u64);
            count += row.get::<_, i64>(3)? as usize;
        }
        written.more = count == limit;
        Ok(written)
    }

    fn leases(&mut self, filter: &LeaseFilter<'_>, limit: usize) -> Result<Vec<Lease>> {
        self.flush()?;
        let (which, mut values): (_, Vec<Value>) = match *filter {
            LeaseFilter::All => ("TRUE", Vec::new()),
            LeaseFilter::EndedBefore(before) => ("l.until < ?1", vec![before.as_micros().into()]),
            LeaseFilter::Worker(worker) => ("l.worker = ?1", vec![worker.to_owned().into()]),
            LeaseFilter::Plan(plan) => ("p.id = ?1", vec![plan.to_string().into()]),
        };
        values.push((limit as i64).into());
        let sql = format!(
            "SELECT {} FROM leases l JOIN plans p ON p.key = l.plan WHERE {which}
             ORDER BY l.until, p.id, l.task LIMIT ?{}",
            rows::LEASE,
            values.len()
        );
        rows::query(self.connection, &sql, params_from_iter(values), |row| rows::lease(row))
    }

    fn locks(&mut self, filter: LockFilter<'_>) -> Result<Vec<HeldLock>> {
        self.flush()?;
        let (which, wanted) = match filter {
            LockFilter::Keys(keys) => ("l.key = ?1", keys),
            LockFilter::Plan(plan) => ("p.id = ?1", &[plan.as_str()][..]),
        };
        let sql = format!(
            "SELECT l.key, l.shared, p.id, l.task FROM locks l JOIN plans p ON p.key = l.plan WHERE {which}"
        );
        let mut held = Vec::new();
        for wanted in wanted {
            held.extend(rows::query(self.connection, &sql, [wanted], |row| rows::held_lock(row))?);
        }
        Ok(held)
    }

    fn waits(&mut self, filter: WaitFilter<'_>) -> Result<Vec<Wait>> {
        if !self.has_waits()? {
            return Ok(Vec::new());
        }
        self.flush()?;
        let (which, plan, owner, task) = match filter {
            WaitFilter::Of(plan) => ("p.id = ?1 AND ?2 IS NULL AND ?3 IS NULL", plan, None, None),
            WaitFilter::On { plan, owner, task: Some(task) } => (
                "w.on_task = ?3 AND (w.on_plan = ?1 OR w.on_plan IS NULL) AND (w.on_agent = ?2 OR w.on_agent IS NULL)",
                plan,
                Some(owner),
                Some(task),
            ),
            WaitFilter::On { plan, owner, task: None } => (
                "?3 IS NULL AND (w.on_plan = ?1 OR w.on_plan IS NULL AND w.on_agent = ?2)",
                plan,
                Some(owner),
                None,
            ),
        };
        let sql = format!(
            "SELECT p.id, w.task, w.on_agent, w.on_plan, w.on_task FROM waits w JOIN plans p ON p.key = w.plan
             WHERE {which}"
        );
        let params = params![plan.as_str(), owner, task];
        let mut waits = rows::query(self.connection, &sql, params, |row| rows::wait(row))?;
        waits.sort();
        Ok(waits)
    }

    fn subscriptions(&mut self, filter: SubscriptionFilter<'_>, limit: usize) -> Result<Vec<Subscription>> {
        let (which, wanted) = match filter {
            SubscriptionFilter::All => ("?1 = ''", ""),
            SubscriptionFilter::Owner(owner) => ("owner = ?1", owner),
            SubscriptionFilter::Id(id) => ("id = ?1", id),
        };
        let columns = rows::SUBSCRIPTION;
        let sql =
            format!("SELECT {columns} FROM subscriptions WHERE {which} ORDER BY created_at, id LIMIT ?2");
        rows::query(self.connection, &sql, params![wanted, limit as i64], |row| rows::subscription(row))
    }

    fn workers(&mut self, filter: WorkerFilter<'_>, limit: usize) -> Result<Page<Worker>> {
        let (after, total) = match filter {
            WorkerFilter::Name(name) => {
                let sql = "SELECT name, record FROM workers WHERE name = ?1";
                let items = rows::query(self.connection, sql, [name], |row| rows::worker(row))?;
                return Ok(in_memory_query::page_of_workers(items, 1, 1));
            }
            WorkerFilter::After(after) => {
                (after, rows::value::<i64>(self.connection, "SELECT count(*) FROM workers", [])?.unwrap_or(0))
            }
        };
        let sql = "SELECT name, record FROM workers WHERE name > ?1 ORDER BY name LIMIT ?2";
        let params = params![after.unwrap_or_default(), limit as i64 + 1];
        let items = rows::query(self.connection, sql, params, |row| rows::worker(row))?;
        Ok(in_memory_query::page_of_workers(items, total as u64, limit))
    }

    fn slots(&mut self, queue: &str) -> Result<Vec<(String, u32)>> {
        self.flush()?;
        let now = self.now().as_micros();
        let sql = "SELECT worker, count(*) FROM leases WHERE queue = ?1 AND (until IS NULL OR until >= ?2)
             GROUP BY worker ORDER BY worker";
        rows::query(self.connection, sql, params![queue, now], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn attempt_logs(
        &mut self,
        plan: &PlanId,
        after: Option<(&TaskId, u32)>,
        limit: usize,
    ) -> Result<Vec<AttemptLog>> {
        let Some(key) = self.key(plan)? else { return Ok(Vec::new()) };
        let sql = "SELECT task, attempt, worker, at, ended, bytes, text FROM attempt_logs
             WHERE plan = ?1 AND (task, attempt) > (?2, ?3) ORDER BY task, attempt LIMIT ?4";
        let (task, attempt) = after.map_or(("", 0), |(task, attempt)| (task.as_str(), attempt));
        let params = params![key, task, attempt, limit as i64];
        rows::query(self.connection, sql, params, |row| rows::attempt_log(row, plan))
    }

    fn shared(
        &mut self,
        scope: SharedScope<'_>,
        keys: SharedKeys<'_>,
        limit: usize,
    ) -> Result<Vec<(String, String)>> {
        let (sql, key) = match keys {
            SharedKeys::After(key) => {
                ("SELECT key, value FROM shared WHERE scope = ?1 AND key > ?2 ORDER BY key LIMIT ?3", key)
            }
            SharedKeys::Only(key) => {
                ("SELECT key, value FROM shared WHERE scope = ?1 AND key = ?2 LIMIT ?3", key)
            }
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        rows::query(self.connection, sql, params![scope.name(), key, limit], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    fn store_state(&mut self) -> Result<StoreState> {
        let sql = "SELECT id, (SELECT coalesce(max(sequence), 0) FROM log) FROM store";
        let found = rows::query(self.connection, sql, [], |row| Ok((row.get(0)?, rows::number(row, 1)?)))?;
        let no_id = || StoreError::Database("the store has no id".to_owned());
        let (id, latest) = found.into_iter().next().ok_or_else(no_id)?;
        let newer_schema = Some(schema::version(self.connection)?).filter(|&found| found > schema::KNOWN);
        Ok(StoreState { id, latest, newer_schema })
    }

    fn now(&mut self) -> Timestamp {
        (self.clock)()
    }
}

impl Transaction for Rows<'_> {
    fn append(&mut self, append: &Append<'_>) -> Result<Appended> {
        let head = append.head;
        self.wrote = true;
        let row = match self.pending.get(&head.id) {
            Some(PendingPlan { key, head, hash, replay_bytes, .. }) => {
                PlanRow { key: *key, replay_bytes: *replay_bytes, version: head.version, hash: *hash }
            }
            None => rows::take_up(self.connection, &head.id)?,
        };
        let predecessor = hash_chain::predecessor(self, &head.id, row.version, row.hash)?;
        let version = append.stored(self.next_sequence()? as u64, predecessor)?;
        let pending = self.pending.begin(row.key, head, row.replay_bytes);
        pending.add(head, &version, append.index);
        let appended = Appended { sequence: version.sequence, replay_bytes: pending.replay_bytes };
        rows::put_version(self.connection, row.key, &version)?;
        Ok(appended)
    }

    fn update_leases(&mut self, updates: &[LeaseUpdate]) -> Result<Vec<bool>> {
        self.flush()?;
        let mut statement = self.connection.prepare_cached(
            "UPDATE leases SET until = coalesce(?4, until), progress = coalesce(?5, progress),
                 progressed_at = coalesce(?6, progressed_at), seconds = coalesce(?7, seconds) WHERE task = ?2 AND attempt = ?3
                 AND plan = (SELECT key FROM plans WHERE id = ?1 AND purged_at IS NULL)",
        )?;
        let mut updated = Vec::new();
        for LeaseUpdate { plan, task, attempt, until, seconds, progress } in updates {
            let until = until.map(Timestamp::as_micros);
            let (text, at) =
                progress.as_ref().map(|progress| (&progress.text, progress.at.as_micros())).unzip();
            let changed = statement.execute(params![
                plan.as_str(),
                task.as_str(),
                attempt,
                until,
                text,
                at,
                seconds
            ])? == 1;
            self.wrote |= changed && progress.is_some();
            updated.push(changed);
        }
        Ok(updated)
    }

    fn put(&mut self, record: Record<'_>) -> Result<()> {
        let changed = match record {
            Record::Subscription(id, None) => {
                rows::execute(self.connection, "DELETE FROM subscriptions WHERE id = ?1", [id])
            }
            Record::Subscription(id, Some(subscription)) => {
                let Subscription { owner, filter, cursor, created_at, trouble, .. } = subscription;
                let sql =
                    "INSERT OR REPLACE INTO subscriptions (id, owner, filter, cursor, created_at, trouble)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let (filter, trouble) = (rows::json(filter)?, trouble.as_ref().map(rows::json).transpose()?);
                let params = params![id, owner, filter, cursor.to_string(), created_at.as_micros(), trouble];
                rows::execute(self.connection, sql, params)
            }
            Record::Worker(name, None) => {
                rows::execute(self.connection, "DELETE FROM workers WHERE name = ?1", [name])
            }
            Record::Worker(name, Some(worker)) => {
                let sql = "INSERT OR REPLACE INTO workers (name, until, record) VALUES (?1, ?2, ?3)";
                let params = params![name, worker.until.as_micros(), rows::json(worker)?];
                rows::execute(self.connection, sql, params)
            }
            Record::Shared(scope, key, None) => {
                let sql = "DELETE FROM shared WHERE scope = ?1 AND key = ?2";
                rows::execute(self.connection, sql, params![scope.name(), key])
            }
            Record::Shared(scope, key, Some(value)) => {
                let sql = "INSERT OR REPLACE INTO shared (scope, key, value) VALUES (?1, ?2, ?3)";
                rows::execute(self.connection, sql, params![scope.name(), key, value])
            }
            Record::AttemptLog(log) => {
                let Some(key) = self.key(&log.plan)? else { return Ok(()) };
                let sql = "INSERT OR REPLACE INTO attempt_logs (plan, task, attempt, worker, at, ended, bytes, text)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let AttemptLog { task, attempt, worker, at, ended, bytes, text, .. } = log;
                let (at, bytes) = (at.as_micros(), *bytes as i64);
                let params = params![key, task.as_str(), attempt, worker, at, ended, bytes, text];
                rows::execute(self.connection, sql, params)
            }
            Record::Snapshot(plan, version, bytes) => {
                let (key, version) = (self.known_key(plan)?, version as i64);
                let sql = "INSERT OR REPLACE INTO snapshots (plan, version, bytes) VALUES (?1, ?2, ?3)";
                rows::execute(self.connection, sql, params![key, version, bytes])?;
                let sql = "DELETE FROM snapshots WHERE plan = ?1 AND version < ?2 AND version / ?3 = ?2 / ?3";
                rows::execute(self.connection, sql, params![key, version, SNAPSHOT_MILESTONE as i64])?;
                if let Some(pending) = self.pending.get_mut(plan) {
                    pending.replay_bytes = 0;
                    return Ok(());
                }
                rows::execute(self.connection, "UPDATE plans SET replay_bytes = 0 WHERE key = ?1", [key])
            }
        };
        changed.map(drop)
    }
}

impl Rewrite for Rows<'_> {
    fn replace_index(&mut self, plan: &Plan, head: &PlanSummary, index: &IndexRows) -> Result<()> {
        let plan = plan.id();
        self.flush()?;
        let key = self.known_key(plan)?;
        let sql = "SELECT replay_bytes FROM plans WHERE key = ?1";
        let replay_bytes = rows::value::<i64>(self.connection, sql, [key])?.unwrap_or(0) as u64;
        rows::put_head(self.connection, head, None, replay_bytes)?;
        self.has_waits = None;
        rows::replace_index(self.connection, key, index)
    }

    fn purge(&mut self, plan: &PlanId) -> Result<()> {
        self.wrote = true;
        self.flush()?;
        let key = self.known_key(plan)?;
        let now = self.now().as_micros();
        rows::replace_index(self.connection, key, &IndexRows::default())?;
        self.connection.execute("DELETE FROM snapshots WHERE plan = ?1", [key])?;
        self.connection.execute("DELETE FROM attempt_logs WHERE plan = ?1", [key])?;
        self.connection.execute("DELETE FROM pruned WHERE plan = ?1", [key])?;
        for scope in [SharedScope::Records(plan), SharedScope::Unpublished(plan)] {
            self.connection.execute("DELETE FROM shared WHERE scope = ?1", [scope.name()])?;
        }
        // The rows of the log stay, empty: their sequence numbers are never reused, and readers of the log see no gap.
        let sql = "UPDATE log SET events = '[]', command = 'purged', hash = NULL, chained_from = NULL WHERE plan = ?1";
        self.connection.execute(sql, [key])?;
        let sql =
            "UPDATE plans SET purged_at = ?2, title = '', status = '', owner = '', queue = '', hash = NULL
             WHERE key = ?1";
        self.connection.execute(sql, params![key, now])?;
        Ok(())
    }

    fn prune(&mut self, pruning: &Pruning<'_>) -> Result<()> {
        self.flush()?;
        maintenance::prune(self.connection, self.known_key(pruning.plan.id())?, pruning)
    }

    fn import_versions(&mut self, entries: &[StoredVersion]) -> Result<()> {
        self.wrote = true;
        self.sequence = None;
        maintenance::import_versions(self.connection, entries)
    }
}
