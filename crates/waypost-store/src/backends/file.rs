//! Plans as JSON files in a folder, for people who want them in version control.
//!
//! ```text
//! store.json            the format of the folder, its id, and the sequence number of the latest version in the log
//! plans/ID.json         the current plan in the native format: to be read, searched and compared
//! history/ID.jsonl      its versions, one per line: the source of truth
//! pruned/ID.json        the plan after the last of its pruned versions: its history continues from there
//! leases.json           when the leases of running tasks expire
//! subscriptions.json    who receives which events, and how far each has read
//! workers.json          who runs plans of the folder, and the last heartbeat of each
//! shared.json           what is known of plans that are shared with other clones
//! damaged/              copies of damaged files, made before they were repaired
//! edited/ID@N.json      manual edits of plans/ID.json that version N replaced
//! .relay-NAME           locked by the process that sends a reporter its events
//! .bell                 opened and closed by writers, which wakes processes that watch the folder
//! .lock                 locked by writers exclusively, by readers jointly
//! .journal.json         a commit in progress; the next process completes it
//! .pending/             files that a commit will move into place
//! .snapshots/ID         a plan at some version, in a form that loads fast; never needed
//! ```
//!
//! The cost of a write grows with the size of the plan, and that of lists, locks and ready tasks with the number of
//! plans: two files of each plan are checked, and read again if they have changed. For many or large plans SQLite is
//! the better choice.

mod check;
mod conflict_markers;
mod fs;
mod history_file;
mod journal;
mod layout;
mod merge_sides;
mod plan_cache;
mod pruned;
mod renumber;
mod repair;
mod small_files;
mod snapshot;
mod transaction;

use std::path::Path;

use waypost_core::{Plan, PlanId};

use crate::backends::in_memory_query;
use crate::dirs::FileIdentity;
use crate::error::{Result, StoreError};
use crate::log::change_watch::{ChangeSignal, Watch};
use crate::named_lock::{self, NamedLock};
use crate::rows::Totals;
use crate::store::{Look, Maintenance, SharingScope, Store, StorePlace, Work};
use fs::Guard;
use layout::{Layout, StoreFile};
use plan_cache::PlanFiles;
use small_files::LeaseEnds;
use transaction::{Access, Session};

/// Files that version control should ignore: they belong to one machine and one moment.
const IGNORED: &str = ".bell\n.lock\n.journal.json\n.pending/\n.snapshots/\nleases.json\nsubscriptions.json\nworkers.json\nshared.json\n.sharing\n.relay-*\n";

/// A store in a folder of JSON files, shared by the processes of one machine.
pub struct FileStore {
    files: PlanFiles,
    bell: ChangeSignal,
    /// The folder that was opened.
    identity: FileIdentity,
    /// The version of the folder's format, if this build can only read it.
    newer_version: Option<u32>,
}

impl FileStore {
    fn location(&self) -> String {
        format!("file:{}", self.files.layout.root.display())
    }

    /// Opens the folder, creates it if it does not exist, and completes an interrupted commit. A folder that a newer
    /// Waypost has upgraded is opened for reading, or refused if that build does not allow it.
    pub fn open(folder: &Path) -> Result<Self> {
        let layout = Layout { root: folder.to_owned() };
        fs::make_folder(folder)?;
        let below = [
            layout.plans(),
            layout.histories(),
            layout.pruned(),
            layout.edited(),
            layout.pending(),
            layout.snapshots(),
        ];
        for folder in &below {
            fs::make_folder(folder)?;
            fs::is_plain_folder(folder)?;
        }
        let bell = ChangeSignal::new(layout.change_signal());
        let identity = FileIdentity::of(folder)?;
        let mut store = Self { files: PlanFiles::new(layout), bell, identity, newer_version: None };
        if fs::read(&store.files.layout.store())?.is_none() {
            let _guard = Guard::alone(&store.files.layout.lock())?;
            store.make()?;
        }
        drop(store.shared()?);
        store.newer_version = store.upgrade()?;
        Ok(store)
    }

    /// Upgrades a folder of an earlier format. A damaged `store.json` stops writers; plans can still be read and the
    /// store repaired. Returns the version of a newer format that this build can read.
    fn upgrade(&self) -> Result<Option<u32>> {
        let layout = &self.files.layout;
        let Ok(Some(file)) = fs::read_json::<StoreFile>(&layout.store()) else { return Ok(None) };
        if file.upgraded()?.is_some() {
            let _guard = self.alone()?;
            // Another process may have been faster, or have written a version.
            let file = fs::read_json::<StoreFile>(&layout.store())?;
            if let Some(upgraded) = file.map(|file| file.upgraded()).transpose()?.flatten() {
                fs::replace(&layout.store(), &fs::pretty(&upgraded)?)?;
            }
        }
        StoreFile::read(layout).map(|file| file.newer_version())
    }

    /// Refuses writes to a folder of a newer format.
    fn may_write(&self) -> Result<()> {
        let too_new = |found| StoreError::TooNew { what: self.location(), found, known: layout::KNOWN };
        self.newer_version.map_or(Ok(()), |found| Err(too_new(found)))
    }

    /// Turns an empty folder into a store. Runs under the lock, because another process may do the same at this moment.
    fn make(&self) -> Result<()> {
        let is_store = fs::read(&self.files.layout.store())?.is_some();
        // A store that lost its `store.json` must not be taken for an empty one.
        if is_store || !fs::names(&self.files.layout.histories(), ".jsonl")?.is_empty() {
            return Ok(());
        }
        let ignore = self.files.layout.root.join(".gitignore");
        if fs::read(&ignore)?.is_none() {
            fs::replace(&ignore, IGNORED.as_bytes())?;
        }
        fs::replace(&self.files.layout.leases(), &fs::pretty(&LeaseEnds::default())?)?;
        fs::replace(&self.files.layout.store(), &fs::pretty(&StoreFile::new(0)?)?)
    }

    /// Refuses to go on with a folder that is no longer at its path, or in one that took its place.
    fn must_be_there(&self) -> Result<()> {
        match self.identity.is_gone_from(&self.files.layout.root) {
            true => Err(StoreError::StoreRemoved { what: self.location() }),
            false => Ok(()),
        }
    }

    /// Waits until no process writes, and completes the commit of a writer that died.
    fn shared(&self) -> Result<Guard> {
        self.must_be_there()?;
        loop {
            let guard = Guard::shared(&self.files.layout.lock())?;
            if !journal::is_left(&self.files.layout)? {
                return Ok(guard);
            }
            drop(guard);
            drop(self.alone()?);
        }
    }

    fn alone(&self) -> Result<Guard> {
        self.must_be_there()?;
        let guard = Guard::alone(&self.files.layout.lock())?;
        journal::complete(&self.files.layout)?;
        Ok(guard)
    }
}

impl Store for FileStore {
    fn place(&self) -> StorePlace {
        StorePlace { location: self.location(), reach: SharingScope::Machine }
    }

    fn write(&self, work: Work<'_>) -> Result<()> {
        self.may_write()?;
        let guard = self.alone()?;
        let mut session = Session::new(&self.files, Access::Write);
        work(&mut session)?;
        if session.has_appended() {
            repair::has_all_versions(&self.files)?;
        }
        let wrote = session.has_news();
        if wrote {
            self.bell.keep_open();
        }
        session.commit()?;
        drop(guard);
        if wrote {
            self.bell.ring();
        }
        Ok(())
    }

    fn read(&self, look: Look<'_>) -> Result<()> {
        let _guard = self.shared()?;
        look(&mut Session::new(&self.files, Access::Read))
    }

    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn NamedLock>>> {
        Ok(named_lock::by_file(&self.files.layout.root.join(format!(".{name}"))))
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        Ok(self.bell.watch())
    }
}

impl Maintenance for FileStore {
    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        let _guard = self.shared()?;
        let format =
            StoreFile::read(&self.files.layout).map_or_else(|_| "unknown".to_owned(), |file| file.format);
        Ok(vec![("format", format), ("synchronous", "full".to_owned())])
    }

    fn check(&self) -> Result<Vec<String>> {
        let _guard = self.shared()?;
        check::check(&self.files.layout)
    }

    fn damage(&self, plan: &PlanId) -> Result<Option<String>> {
        let _guard = self.shared()?;
        Session::new(&self.files, Access::Read).damage(plan)
    }

    fn intact(&self, plan: &PlanId) -> Result<Option<(Plan, String)>> {
        let _guard = self.shared()?;
        repair::intact_plan(&self.files.layout, plan)
    }

    fn repair(&self) -> Result<Vec<(Option<PlanId>, String)>> {
        self.may_write()?;
        let guard = self.alone()?;
        self.bell.keep_open();
        let repaired = repair::repair(&self.files.layout)?;
        drop(guard);
        // Readers of the log may wait for what was damaged.
        self.bell.ring();
        Ok(repaired)
    }

    fn totals(&self) -> Result<Totals> {
        (self as &dyn Store).query(in_memory_query::totals)
    }
}
