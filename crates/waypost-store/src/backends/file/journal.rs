//! Commits that touch several files, all or none.
//!
//! New files are first written to `.pending`, then the journal records what is to be done with them. Once the journal
//! is durable, the next process that takes the lock completes an interrupted commit. Completing it twice is harmless.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use waypost_core::PlanId;

use super::fs::{self, corrupt, failed};
use super::layout::Layout;
use crate::error::{Result, StoreError};
use crate::rows::VersionRecord;

/// The place of a file. It is not a path: a forged journal cannot make the store write elsewhere.
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
    /// `shared.json`.
    Shared,
    /// A plan's readable file.
    Plan(PlanId),
    /// A plan's history, as a whole.
    History(PlanId),
    /// A plan in a form that loads fast.
    Snapshot(PlanId),
    /// The state that is kept of a plan in place of pruned events.
    Pruned(PlanId),
    /// The manual edits of a plan's readable file that this version replaced.
    Edited(PlanId, u64),
}

impl Target {
    fn path(&self, layout: &Layout) -> PathBuf {
        match self {
            Self::Store => layout.store(),
            Self::Leases => layout.leases(),
            Self::Subscriptions => layout.subscriptions(),
            Self::Workers => layout.workers(),
            Self::Shared => layout.shared(),
            Self::Plan(id) => layout.plan(id),
            Self::History(id) => layout.history(id),
            Self::Snapshot(id) => layout.snapshot(id),
            Self::Pruned(id) => layout.pruned_plan(id),
            Self::Edited(id, version) => layout.edited_plan(id, *version),
        }
    }
}

/// Lines to append to a history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lines {
    pub(super) plan: PlanId,
    /// The size of the history in bytes before them.
    pub(super) offset: u64,
    pub(super) text: String,
}

/// A commit in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    /// A random number that distinguishes its pending files from those of every other commit.
    token: u64,
    appends: Vec<Lines>,
    /// The places of the pending files, in the order of their numbers.
    files: Vec<Target>,
    removals: Vec<Target>,
}

/// The changes that a commit makes.
#[derive(Debug, Default)]
pub(super) struct Intent {
    pub(super) appends: Vec<Lines>,
    pub(super) files: Vec<(Target, Vec<u8>)>,
    pub(super) removals: Vec<Target>,
}

/// Returns whether a commit was interrupted.
pub(super) fn is_left(layout: &Layout) -> Result<bool> {
    Ok(fs::Stamp::of(&layout.journal())?.is_some())
}

/// Completes the commit that a writer has left, if there is one. Requires the writers' lock.
pub(super) fn complete(layout: &Layout) -> Result<()> {
    let Some(journal) = fs::read_json::<Journal>(&layout.journal())? else { return Ok(()) };
    journal.append(layout)?;
    journal.put_in_place(layout)
}

/// Executes a commit. It is durable when this returns `Ok`, and rolled back otherwise. Requires the writers' lock.
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
    // The commit has happened. The next process that takes the lock moves files that cannot be moved now: no process
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
            // The journal may have reached its place before the failure, and would be completed some day.
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

    /// Moves the pending files into place and removes the journal.
    fn put_in_place(&self, layout: &Layout) -> Result<()> {
        let mut folders = vec![layout.root.clone()];
        for (number, target) in self.files.iter().enumerate() {
            let (from, to) = (self.pending(layout, number), target.path(layout));
            // A file that is no longer pending is already in its place.
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

    /// Undoes a failed [`Journal::append`]. Removes the journal last: until then it covers torn lines.
    fn take_back(&self, layout: &Layout) -> Result<()> {
        for lines in &self.appends {
            lines.take_back(layout)?;
        }
        fs::remove(&layout.journal())?;
        fs::sync_folder(&layout.root)
    }
}

impl Lines {
    /// Ensures that the lines are at the end of their history: appends all of them, the missing rest, or none.
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

    /// Cuts off the appended part of these lines, but nothing that another process wrote.
    fn take_back(&self, layout: &Layout) -> Result<()> {
        let path = layout.history(&self.plan);
        if fs::Stamp::of(&path)?.is_none() {
            return Ok(());
        }
        // A file that cannot be opened was not written to either.
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

/// Returns whether these bytes can be the result of an interrupted write: none of their lines is a whole version.
fn is_torn(bytes: &[u8]) -> bool {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    lines.all(|line| serde_json::from_slice::<VersionRecord>(line).is_err())
}
