//! Places where a store can be opened, closed and opened again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use waypost_store::{Durability, FileStore, MemoryStore, PlanStore, PostgresStore, SqliteStore, Store};
use waypost_testkit::postgres::PostgresDatabase;

/// A folder of its own that is gone when the test is over.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("waypost-store-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Somewhere plans can live.
pub(crate) struct Place {
    /// How a user would name it.
    pub(crate) location: String,
    /// Whether heads, ready tasks, leases, locks and waits stand in tables that can be wrong.
    pub(crate) has_tables: bool,
    /// Random histories that it is taken through: fewer where every answer comes from afar or is slow to make durable.
    pub(crate) histories: u64,
    open: Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>,
    folder: Option<Folder>,
    database: Option<PostgresDatabase>,
}

impl Place {
    /// In memory. Opened again it is the same store: nothing else could survive.
    pub(crate) fn memory() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let open = Box::new(move || Arc::clone(&store));
        Self {
            location: "memory:".to_owned(),
            has_tables: true,
            histories: 30,
            open,
            folder: None,
            database: None,
        }
    }

    pub(crate) fn file() -> Self {
        let folder = Folder::new();
        let path = folder.path().join("plans");
        let location = format!("file:{}", path.display());
        let open = Box::new(move || Arc::new(FileStore::open(&path).unwrap()) as Arc<dyn Store>);
        Self { location, has_tables: false, histories: 3, open, folder: Some(folder), database: None }
    }

    pub(crate) fn sqlite() -> Self {
        let folder = Folder::new();
        let path = folder.path().join("waypost.db");
        let location = format!("sqlite:{}", path.display());
        let open = Box::new(move || {
            Arc::new(SqliteStore::open(&path, Durability::Relaxed).unwrap()) as Arc<dyn Store>
        });
        Self { location, has_tables: true, histories: 30, open, folder: Some(folder), database: None }
    }

    pub(crate) fn postgres() -> Self {
        let database = PostgresDatabase::new();
        let location = database.url().to_owned();
        let url = location.clone();
        let open = Box::new(move || {
            Arc::new(PostgresStore::open(&url, Durability::Relaxed).unwrap()) as Arc<dyn Store>
        });
        Self { location, has_tables: true, histories: 6, open, folder: None, database: Some(database) }
    }

    /// Opens it.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        (self.open)()
    }

    /// Opens it as another process would: with nothing in memory.
    pub(crate) fn plans(&self) -> PlanStore {
        PlanStore::new(self.store())
    }

    /// The database that everything lies in.
    pub(crate) fn database(&self) -> &PostgresDatabase {
        self.database.as_ref().expect("this place is a database")
    }

    /// The folder that everything lies in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_ref().expect("this place is on a disk").path()
    }
}
