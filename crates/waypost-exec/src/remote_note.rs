//! Notes of remote jobs: one file for each job that may exist outside of this machine, written before the job is
//! requested and removed once it is known to have ended. Does not know how a job is followed or ended.
//!
//! The notes of a run are in `WORKER.remote`, in a folder of the account and not of the workspace: agents and cloned repositories
//! write there, and a note is a request with secrets. Whoever takes over a job of a dead run
//! first moves its note into its own folder. A move succeeds once, so that a job never has two followers.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use waypost_config::ExecutionEnv;
use waypost_core::{PlanId, TaskId};
use waypost_store::is_dead;

use crate::attempt::Attempt;
use crate::attempt_spec::{Part, idempotency_key};
use crate::liveness_lock;
use crate::outcome::AttemptKey;
use crate::resource_name;

/// Bytes of a note that are read: that of the largest input, and some more.
const NOTE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The file with the name of the run that a folder belongs to.
const WORKER_FILE: &str = "worker";

/// What is written down of a remote job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoteNote {
    pub plan: PlanId,
    pub task: TaskId,
    /// The attempt that follows the job.
    pub attempt: u32,
    /// The name of the worker in the configuration: `executor`, or `executor/worker`.
    pub(crate) worker: String,
    pub(crate) is_check: bool,
    /// The idempotency key that the job was requested with.
    pub(crate) key: String,
    /// What was sent.
    pub(crate) input: String,
    /// By what the job is found there; `None` while no answer has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<Value>,
    #[serde(skip)]
    path: PathBuf,
}

impl RemoteNote {
    /// The note of a job that this attempt is about to request.
    pub(crate) fn new(attempt: &Attempt<'_>, part: &Part) -> Self {
        let key = &attempt.job.key;
        let check = if part.is_check { "/check" } else { "" };
        Self {
            plan: key.plan.clone(),
            task: key.task.clone(),
            attempt: key.attempt,
            worker: part.name.clone(),
            is_check: part.is_check,
            key: format!("{}{check}", idempotency_key(key)),
            input: part.input.trim_end().to_owned(),
            job: None,
            path: own_folder(attempt.around).join(file_name(key, part.is_check)),
        }
    }

    pub fn attempt_key(&self) -> AttemptKey {
        AttemptKey::new(&self.plan, &self.task, self.attempt)
    }

    /// The attempt that requested the job.
    pub(crate) fn requested_by(&self) -> u32 {
        let key = self.key.strip_suffix("/check").unwrap_or(&self.key);
        key.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    /// Whether the job does the same work as this part, apart from the number of the attempt.
    pub(crate) fn is_for(&self, part: &Part) -> bool {
        self.worker == part.name
            && same_work(&self.input).is_some_and(|work| Some(work) == same_work(&part.input))
    }

    /// Writes the note, so that it is there even after a crash of the machine.
    pub(crate) fn write(&self) -> Result<(), String> {
        let write = || {
            let new = self.path.with_extension("new");
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(serde_json::to_string(self)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.path)?;
            self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        };
        write().map_err(|error: io::Error| format!("{} cannot be written: {error}", self.path.display()))
    }

    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.path == other.path
    }

    pub(crate) fn remove(&self) {
        let _gone = fs::remove_file(&self.path);
    }

    /// Moves the note to this run. `None` if another was faster.
    pub(crate) fn claim(mut self, around: &ExecutionEnv, key: &AttemptKey) -> Option<Self> {
        let path = own_folder(around).join(file_name(key, self.is_check));
        if path != self.path {
            prepare(around).ok()?;
            fs::rename(&self.path, &path).ok()?;
        }
        (self.attempt, self.path) = (key.attempt, path);
        self.write().ok()?;
        Some(self)
    }

    fn read(path: PathBuf) -> Option<Self> {
        let mut text = String::new();
        File::open(&path).ok()?.take(NOTE_BYTES_MAX).read_to_string(&mut text).ok()?;
        Some(Self { path, ..serde_json::from_str(&text).ok()? })
    }
}

/// Creates the folder of this run's notes.
pub(crate) fn prepare(around: &ExecutionEnv) -> Result<(), String> {
    let folder = own_folder(around);
    let prepared = || {
        let name = folder.join(WORKER_FILE);
        if name.exists() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        // Renamed, because others read it at any time. Each attempt has its own file until then.
        let new = folder.join(format!("{WORKER_FILE}.{:?}", std::thread::current().id()));
        fs::write(&new, &around.worker)?;
        fs::rename(new, name)
    };
    prepared().map_err(|error: io::Error| format!("{} cannot be written: {error}", folder.display()))
}

/// Removes the folders of this run and of dead ones that have no notes.
pub fn remove_empty(around: &ExecutionEnv) {
    let _others = left_behind(around);
    let folder = own_folder(around);
    if notes_in(&folder).next().is_none() {
        let _left = fs::remove_dir_all(folder);
    }
}

/// Takes over the jobs that earlier attempts of this part left behind, in this run or in one that is dead; the latest
/// first.
pub(crate) fn claim_earlier(attempt: &Attempt<'_>, part: &Part) -> Vec<RemoteNote> {
    let key = &attempt.job.key;
    if key.attempt <= 1 {
        return Vec::new();
    }
    let is_earlier = |note: &RemoteNote| {
        note.plan == key.plan
            && note.task == key.task
            && note.is_check == part.is_check
            && note.attempt < key.attempt
    };
    let mut earlier: Vec<RemoteNote> =
        left_behind(attempt.around).into_iter().map(|(note, _)| note).filter(is_earlier).collect();
    earlier.sort_by_key(|note| std::cmp::Reverse(note.attempt));
    // Each keeps its own file, named by the attempt that requested it.
    earlier
        .into_iter()
        .filter_map(|note| {
            let key = note.attempt_key();
            note.claim(attempt.around, &key)
        })
        .collect()
}

/// Returns the notes of this run and of those that are dead, with the name of the run.
pub fn left_behind(around: &ExecutionEnv) -> Vec<(RemoteNote, String)> {
    let Ok(entries) = fs::read_dir(&around.remote_notes) else { return Vec::new() };
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found = Vec::new();
    for folder in folders.filter(|path| path.extension().is_some_and(|end| end == "remote")) {
        let Ok(worker) = fs::read_to_string(folder.join(WORKER_FILE)) else { continue };
        let is_own = worker == around.worker;
        if !is_own && !is_dead(&worker) {
            continue;
        }
        let before = found.len();
        found.extend(notes_in(&folder).filter_map(RemoteNote::read).map(|note| (note, worker.clone())));
        if found.len() == before && !is_own {
            let _left = fs::remove_dir_all(&folder);
        }
    }
    found
}

fn notes_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|end| end == "json"))
}

fn own_folder(around: &ExecutionEnv) -> PathBuf {
    liveness_lock::path(&around.remote_notes, &around.worker).with_extension("remote")
}

fn file_name(key: &AttemptKey, is_check: bool) -> String {
    format!("{}{}.json", resource_name::name(key), if is_check { "-check" } else { "" })
}

/// Returns an input without what differs between attempts.
pub(crate) fn same_work(input: &str) -> Option<Value> {
    let mut input: Value = serde_json::from_str(input).ok()?;
    let fields = input.as_object_mut()?;
    for field in ["attempt", "idempotency_key", "fence", "traceparent"] {
        fields.remove(field);
    }
    Some(input)
}
