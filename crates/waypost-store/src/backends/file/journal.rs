//! Commits that touch several files, all or none.
//!
//! New files are written beside their places, then the journal says what is to be done with them. From the moment that the
//! journal is durable the commit has happened: the next process that takes the lock completes it. Completing it twice is
//! harmless.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use waypost_core::PlanId;

use super::fs::{self, corrupt, failed};
use super::layout::Layout;
use crate::error::{Result, StoreError};
use crate::rows::VersionRecord;

/// Where a file belongs. Not a path: a journal that somebody slipped in cannot make the store write elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    /// `store.json`.
    Store,
    /// `leases.json`.
    Leases,
    /// `subscriptions.json`.
    Subscriptions,
    /// `workers.json`.
    Workers,
    /// A plan's readable file.
    Plan(PlanId),
    /// A plan's history, as a whole.
    History(PlanId),
    /// A plan in a form that loads fast.
    Snapshot(PlanId),
    /// What is kept of a plan in the place of forgotten events.
    Pruned(PlanId),
    /// What somebody had written into a plan's readable file before this version.
    Edited(PlanId, u64),
}

impl Target {
    fn path(&self, layout: &Layout) -> PathBuf {
        match self {
            Self::Store => layout.store(),
            Self::Leases => layout.leases(),
            Self::Subscriptions => layout.subscriptions(),
            Self::Workers => layout.workers(),
            Self::Plan(id) => layout.plan(id),
            Self::History(id) => layout.history(id),
            Self::Snapshot(id) => layout.snapshot(id),
            Self::Pruned(id) => layout.pruned_plan(id),
            Self::Edited(id, version) => layout.edited_plan(id, *version),
        }
    }
}

/// Lines that belong at the end of a history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lines {
    pub(super) plan: PlanId,
    /// The bytes of the history before them.
    pub(super) offset: u64,
    pub(super) text: String,
}

/// A commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    /// Tells its pending files from those of every other commit.
    token: u64,
    appends: Vec<Lines>,
    /// The places of the pending files, in the order of their numbers.
    files: Vec<Target>,
    removals: Vec<Target>,
}

/// What a commit is to do.
#[derive(Debug, Default)]
pub(super) struct Intent {
    pub(super) appends: Vec<Lines>,
    pub(super) files: Vec<(Target, Vec<u8>)>,
    pub(super) removals: Vec<Target>,
}

/// Whether a commit was interrupted.
pub(super) fn is_left(layout: &Layout) -> Result<bool> {
    Ok(fs::Stamp::of(&layout.journal())?.is_some())
}

/// Completes the commit that a writer has left, if there is one. Only under the writers' lock.
pub(super) fn complete(layout: &Layout) -> Result<()> {
    let Some(journal) = fs::read_json::<Journal>(&layout.journal())? else { return Ok(()) };
    journal.append(layout)?;
    journal.put_in_place(layout)
}

/// Carries out a commit. Durable when this returns `Ok`, and undone otherwise. Only under the writers' lock.
pub(super) fn commit(layout: &Layout, intent: Intent) -> Result<()> {
    let mut token = [0; 8];
    getrandom::fill(&mut token).map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
    let Intent { appends, files, removals } = intent;
    let (targets, contents): (Vec<Target>, Vec<Vec<u8>>) = files.into_iter().unzip();
    let journal = Journal { token: u64::from_le_bytes(token), appends, files: targets, removals };
    journal.prepare(layout, &contents)?;
    if let Err(error) = journal.append(layout) {
        journal.take_back(layout)?;
        return Err(error);
    }
    // The commit has happened. Files that cannot be moved now are moved by the next process that takes the lock: nobody
    // reads the store before that.
    let _completed_later = journal.put_in_place(layout);
    Ok(())
}

impl Journal {
    fn pending(&self, layout: &Layout, number: usize) -> PathBuf {
        layout.pending().join(format!("{:016x}-{number}", self.token))
    }

    /// Writes the pending files, then the journal itself.
    fn prepare(&self, layout: &Layout, contents: &[Vec<u8>]) -> Result<()> {
        for left_over in fs::names(&layout.pending(), "")? {
            fs::remove(&layout.pending().join(left_over))?;
        }
        for (number, bytes) in contents.iter().enumerate() {
            fs::write_new(&self.pending(layout, number), bytes)?;
        }
        fs::sync_folder(&layout.pending())?;
        let bytes = serde_json::to_vec(self).map_err(|error| StoreError::Database(error.to_string()))?;
        let written = fs::replace(&layout.journal(), &bytes);
        if written.is_err() {
            // It may have reached its place before the failure; there it would be completed one day.
            fs::remove(&layout.journal())?;
        }
        written
    }

    fn append(&self, layout: &Layout) -> Result<()> {
        for lines in &self.appends {
            lines.append(layout)?;
        }
        if self.appends.iter().any(|lines| lines.offset == 0) {
            fs::sync_folder(&layout.histories())?;
        }
        Ok(())
    }

    /// Puts the pending files into their places and ends the journal.
    fn put_in_place(&self, layout: &Layout) -> Result<()> {
        let mut folders = vec![layout.root.clone()];
        for (number, target) in self.files.iter().enumerate() {
            let (from, to) = (self.pending(layout, number), target.path(layout));
            // One that is not pending any more is in its place.
            if fs::Stamp::of(&from)?.is_some() {
                fs::rename(&from, &to)?;
            }
            folders.extend(to.parent().map(PathBuf::from));
        }
        for target in &self.removals {
            fs::remove(&target.path(layout))?;
            folders.extend(target.path(layout).parent().map(PathBuf::from));
        }
        folders.sort();
        folders.dedup();
        for folder in folders {
            fs::sync_folder(&folder)?;
        }
        fs::remove(&layout.journal())
    }

    /// Undoes what [`Journal::append`] did before it failed. The journal goes last: until then it covers torn lines.
    fn take_back(&self, layout: &Layout) -> Result<()> {
        for lines in &self.appends {
            lines.take_back(layout)?;
        }
        fs::remove(&layout.journal())?;
        fs::sync_folder(&layout.root)
    }
}

impl Lines {
    /// Makes the lines stand at the end of their history: all, the rest of them, or none if they do already.
    fn append(&self, layout: &Layout) -> Result<()> {
        let path = layout.history(&self.plan);
        let mut file = fs::open_to_change(&path)?;
        let length = file.metadata().map_err(failed(&path))?.len();
        if length < self.offset {
            let detail = format!("it has {length} bytes, and {} when the last commit began", self.offset);
            return Err(corrupt(&path, detail));
        }
        let mut there = Vec::new();
        file.seek(SeekFrom::Start(self.offset))
            .and_then(|_| file.read_to_end(&mut there))
            .map_err(failed(&path))?;
        let intended = self.text.as_bytes();
        let missing = match intended.strip_prefix(there.as_slice()) {
            Some(missing) => missing,
            None if is_torn(&there) => {
                file.set_len(self.offset).map_err(failed(&path))?;
                file.seek(SeekFrom::Start(self.offset)).map_err(failed(&path))?;
                intended
            }
            None => return Err(corrupt(&path, "another process wrote to it during a commit")),
        };
        file.write_all(missing).and_then(|()| file.sync_all()).map_err(failed(&path))
    }

    /// Cuts off what was appended of these lines, and nothing that somebody else wrote.
    fn take_back(&self, layout: &Layout) -> Result<()> {
        let path = layout.history(&self.plan);
        if fs::Stamp::of(&path)?.is_none() {
            return Ok(());
        }
        // What cannot be opened was not written to either.
        let Ok(mut file) = fs::open_to_change(&path) else { return Ok(()) };
        let mut there = Vec::new();
        file.seek(SeekFrom::Start(self.offset))
            .and_then(|_| file.read_to_end(&mut there))
            .map_err(failed(&path))?;
        if !self.text.as_bytes().starts_with(&there) {
            return Ok(());
        }
        if self.offset == 0 {
            return fs::remove(&path);
        }
        file.set_len(self.offset).and_then(|()| file.sync_all()).map_err(failed(&path))
    }
}

/// Whether these bytes are what an interrupted write leaves: nothing in them is a whole version.
fn is_torn(bytes: &[u8]) -> bool {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    lines.all(|line| serde_json::from_slice::<VersionRecord>(line).is_err())
}
