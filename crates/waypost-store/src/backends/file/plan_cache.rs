//! A cache of what a process has read of the plans in the folder, valid as long as their files do not change.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use waypost_core::{Draft, Plan, PlanId};

use super::fs::{self, Stamp, corrupt};
use super::history_file::{self, ReadLine, ReadPosition, Tail};
use super::layout::Layout;
use super::pruned;
use crate::error::{Result, StoreError};
use crate::rows::{IndexRows, PlanSummary, VersionRecord};

/// The parts of a plan that lists and tables show.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) head: PlanSummary,
    /// Without the ends of leases, which are in a file of their own.
    pub(super) rows: IndexRows,
}

impl Facts {
    pub(super) fn of(plan: &Plan) -> Self {
        Self { head: PlanSummary::of(plan), rows: IndexRows::of(plan) }
    }
}

/// How the readable file of a plan compares with its history.
#[derive(Clone, Debug)]
pub(super) enum Readable {
    /// It is as Waypost wrote it.
    Current,
    /// Its content is the same, but its white space differs.
    Reformatted,
    /// It was edited; this is its content.
    Edited(Box<Draft>),
    /// It has this version, which is later than the last one of the history: lines of the history are lost.
    Ahead(u64),
    /// It does not exist.
    Missing,
    /// It cannot be read; this is the reason.
    Broken(String),
}

/// The cached state of a plan's files.
#[derive(Debug)]
pub(super) struct PlanCacheEntry {
    readable_stamp: Option<Stamp>,
    history_stamp: Option<Stamp>,
    pub(super) tail: Tail,
    pub(super) readable: Readable,
    /// `None` after a purge.
    pub(super) facts: Option<Arc<Facts>>,
    /// The damage to a line of the history that only a reader of the whole history notices.
    history_damage: OnceLock<Option<String>>,
}

impl PlanCacheEntry {
    /// Reads a plan's files; returns `None` if it has none.
    pub(super) fn read(layout: &Layout, id: &PlanId) -> Result<Option<Self>> {
        let (readable, history) = (layout.plan(id), layout.history(id));
        let (readable_stamp, history_stamp) = (Stamp::of(&readable)?, Stamp::of(&history)?);
        let Some(tail) = history_file::tail(&history, id)? else {
            return match readable_stamp {
                None => Ok(None),
                Some(_) => Err(corrupt(&readable, NO_HISTORY)),
            };
        };
        let known = |readable, facts| {
            let (tail, history_damage) = (tail.clone(), OnceLock::new());
            Some(Self { readable_stamp, history_stamp, tail, readable, facts, history_damage })
        };
        if tail.purged {
            return Ok(known(Readable::Current, None));
        }
        let bytes = match fs::read(&readable) {
            Ok(bytes) => bytes,
            Err(StoreError::Corrupt { detail, .. }) => {
                let truth = Facts::of(&pruned::replay(layout, id)?);
                return Ok(known(Readable::Broken(detail), Some(Arc::new(truth))));
            }
            Err(error) => return Err(error),
        };
        let draft = bytes.as_ref().map(|bytes| serde_json::from_slice::<Draft>(bytes));
        let written =
            bytes.as_ref().is_some_and(|bytes| tail.file.as_deref() == Some(&fs::fingerprint(bytes)));
        if let Some(Ok(draft)) = &draft
            && written
        {
            let plan = Plan::from_trusted_draft(id.clone(), draft.clone());
            return Ok(known(Readable::Current, Some(Arc::new(Facts::of(&plan)))));
        }
        // The history is the truth, not the readable file.
        let truth = pruned::replay(layout, id)?;
        let readable = match draft {
            None => Readable::Missing,
            Some(Err(error)) => {
                Readable::Broken(fs::json_damage(bytes.as_deref().unwrap_or_default(), &error))
            }
            Some(Ok(draft)) if draft == truth.to_draft() => Readable::Reformatted,
            Some(Ok(draft)) if draft.version > truth.version() => Readable::Ahead(draft.version),
            Some(Ok(draft)) => Readable::Edited(Box::new(draft)),
        };
        Ok(known(readable, Some(Arc::new(Facts::of(&truth)))))
    }

    /// Returns the entry of a plan that this process has just written.
    pub(super) fn written(layout: &Layout, id: &PlanId, tail: Tail, facts: Arc<Facts>) -> Result<Self> {
        let (readable_stamp, history_stamp) = (Stamp::of(&layout.plan(id))?, Stamp::of(&layout.history(id))?);
        let (readable, facts, history_damage) = (Readable::Current, Some(facts), OnceLock::new());
        Ok(Self { readable_stamp, history_stamp, tail, readable, facts, history_damage })
    }

    /// Returns whether the plan's files are still the ones that were read.
    fn holds(&self, layout: &Layout, id: &PlanId) -> Result<bool> {
        let same = self.readable_stamp == Stamp::of(&layout.plan(id))?;
        Ok(same && self.history_stamp == Stamp::of(&layout.history(id))?)
    }

    /// Returns the problem of the readable file, which is at `path`.
    pub(super) fn warning(&self, id: &PlanId, path: &Path) -> Option<String> {
        let (file, path) = (path, path.display());
        match &self.readable {
            Readable::Current | Readable::Reformatted => None,
            Readable::Edited(_) => Some(format!(
                "{path} was edited by hand, and the edit has no effect: to apply it, update plan {id} from this file"
            )),
            Readable::Ahead(version) => {
                Some(format!("{} is damaged: {}", history_beside(file).display(), self.lost(*version)))
            }
            Readable::Missing => {
                Some(format!("{path} is missing; the next write renews it from the history"))
            }
            Readable::Broken(detail) => Some(format!(
                "{path} is damaged: {detail}; fix it, or move it away, and the next write renews it from the history"
            )),
        }
    }

    fn lost(&self, version: u64) -> String {
        let last = self.tail.version;
        format!(
            "it ends with version {last}, but the plan's own file is at version {version}: the versions between are lost; keep that file, a repair restores the plan from it"
        )
    }

    /// Returns the latest version that the files show.
    pub(super) fn last_version(&self) -> u64 {
        if let Readable::Ahead(version) = self.readable { version } else { self.tail.version }
    }

    /// Returns the plan's facts for readers. Fails if the history does not lead to them.
    pub(super) fn current(&self, path: &Path) -> Result<Option<&Arc<Facts>>> {
        match self.readable {
            Readable::Ahead(version) => Err(corrupt(&history_beside(path), self.lost(version))),
            Readable::Current
            | Readable::Reformatted
            | Readable::Edited(_)
            | Readable::Missing
            | Readable::Broken(_) => Ok(self.facts.as_ref()),
        }
    }

    /// Returns the plan's facts for writers. Fails if the readable file cannot be parsed, so that a broken manual edit
    /// is not overwritten.
    pub(super) fn writable(&self, path: &Path) -> Result<Option<&Arc<Facts>>> {
        match &self.readable {
            Readable::Broken(detail) => Err(corrupt(path, detail)),
            Readable::Current
            | Readable::Reformatted
            | Readable::Edited(_)
            | Readable::Ahead(_)
            | Readable::Missing => self.current(path),
        }
    }
}

/// Returns the history that belongs to a readable file.
fn history_beside(readable: &Path) -> PathBuf {
    let root = readable.parent().and_then(Path::parent).unwrap_or(readable);
    root.join("history").join(readable.with_extension("jsonl").file_name().unwrap_or_default())
}

pub(super) const NO_HISTORY: &str = "it has no history; if this store wrote it, restore the history from a backup, or restore the plan from this file with a repair; otherwise move it away and import it";

/// The files of all plans, and their cached state.
#[derive(Debug)]
pub(super) struct PlanFiles {
    pub(super) layout: Layout,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    known: HashMap<PlanId, Arc<PlanCacheEntry>>,
    marks: HashMap<PlanId, ReadPosition>,
}

impl PlanFiles {
    pub(super) fn new(layout: Layout) -> Self {
        Self { layout, cache: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of a plan's files, read again if they have changed.
    pub(super) fn known(&self, id: &PlanId) -> Result<Option<Arc<PlanCacheEntry>>> {
        let found = self.cache().known.get(id).cloned();
        if let Some(known) = found
            && known.holds(&self.layout, id)?
        {
            return Ok(Some(known));
        }
        let known = PlanCacheEntry::read(&self.layout, id)?.map(Arc::new);
        self.learn(id, known.clone());
        Ok(known)
    }

    pub(super) fn learn(&self, id: &PlanId, known: Option<Arc<PlanCacheEntry>>) {
        match known {
            Some(known) => self.cache().known.insert(id.clone(), known),
            None => self.cache().known.remove(id),
        };
    }

    /// Returns the versions of a plan after `after`, at most `limit`, as its file contains them.
    pub(super) fn versions<T: ReadLine>(&self, id: &PlanId, after: u64, limit: usize) -> Result<Vec<T>> {
        self.read_history(id, |marks, path| marks.read(path, id, after, limit))
    }

    /// Returns the versions of a plan after `sequence` in the log, at most `limit`, as its file contains them.
    pub(super) fn log(&self, id: &PlanId, sequence: u64, limit: usize) -> Result<Vec<VersionRecord>> {
        self.read_history(id, |marks, path| marks.read(path, id, marks.before_sequence(sequence), limit))
    }

    /// Returns the sequence numbers of a plan's readable lines after `after`.
    pub(super) fn sequences(&self, id: &PlanId, after: u64) -> Vec<u64> {
        let mut cache = self.cache();
        let marks = cache.marks.entry(id.clone()).or_default();
        // What comes before a damaged line can be read.
        let _damage = marks.catch_up(&self.layout.history(id), id);
        marks.sequences().filter(|&number| number > after).collect()
    }

    fn read_history<T>(
        &self,
        id: &PlanId,
        read: impl FnOnce(&ReadPosition, &Path) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let path = self.layout.history(id);
        let mut cache = self.cache();
        let marks = cache.marks.entry(id.clone()).or_default();
        let damage = marks.catch_up(&path, id);
        let found = read(marks, &path)?;
        // The versions before a damaged line can be read; only a reader that needs more gets the error.
        if found.is_empty() { damage.map(|()| found) } else { Ok(found) }
    }

    /// Returns the damage to the history of a plan, which is read once as long as it does not change.
    pub(super) fn history_damage(&self, id: &PlanId, known: &PlanCacheEntry) -> Result<Option<String>> {
        if let Some(damage) = known.history_damage.get() {
            return Ok(damage.clone());
        }
        let damage = match self.check_history(id) {
            Err(damage @ StoreError::Corrupt { .. }) => Some(damage.to_string()),
            checked => checked.map(|()| None)?,
        };
        Ok(known.history_damage.get_or_init(|| damage).clone())
    }

    /// Checks that the whole history of a plan can be read.
    pub(super) fn check_history(&self, id: &PlanId) -> Result<()> {
        self.cache().marks.entry(id.clone()).or_default().catch_up(&self.layout.history(id), id)
    }
}
