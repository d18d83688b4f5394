//! Copies of attempts' logs for those who cannot reach the files. Only the end of a log is copied, only where machines share
//! the store, and never for its own sake: copies travel with signs of life, and once a second with what has ended.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use waypost_core::Timestamp;
use waypost_store::{ATTEMPT_LOG_BYTES_MAX, AttemptLog};

use waypost_exec::AttemptKey;
use waypost_store::{log_path, log_tail};

/// Logs of attempts that have ended and are yet to be copied, at the most; older ones stay files.
const ENDED_MAX: usize = 1_000;

/// Which logs were copied, and how much of each.
#[derive(Debug)]
pub(super) struct Copies {
    logs: PathBuf,
    worker: String,
    /// Bytes of the log that the copy shows.
    copied: BTreeMap<AttemptKey, u64>,
    ended: Vec<AttemptKey>,
}

impl Copies {
    pub(super) fn new(logs: PathBuf, worker: String) -> Self {
        Self { logs, worker, copied: BTreeMap::new(), ended: Vec::new() }
    }

    /// An attempt has ended.
    pub(super) fn ended(&mut self, key: &AttemptKey) {
        if self.ended.len() < ENDED_MAX && self.bytes(key) > 0 {
            self.ended.push(key.clone());
        }
    }

    /// Whether attempts have ended whose logs are yet to be copied.
    pub(super) fn are_due(&self) -> bool {
        !self.ended.is_empty()
    }

    fn bytes(&self, key: &AttemptKey) -> u64 {
        let path = log_path(&self.logs, &key.plan, &key.task, key.attempt);
        fs::metadata(path).map_or(0, |found| found.len())
    }

    /// Copies of what has grown, of attempts that run and of those that have ended.
    pub(super) fn make<'a>(
        &self,
        running: impl Iterator<Item = &'a AttemptKey>,
        at: Timestamp,
    ) -> Vec<AttemptLog> {
        let grown = |key: &&AttemptKey| self.bytes(key) > self.copied.get(*key).copied().unwrap_or(0);
        let running = running.filter(grown).map(|key| (key, false));
        let all = running.chain(self.ended.iter().map(|key| (key, true)));
        all.filter_map(|(key, ended)| self.copy(key, ended, at)).collect()
    }

    fn copy(&self, key: &AttemptKey, ended: bool, at: Timestamp) -> Option<AttemptLog> {
        let path = log_path(&self.logs, &key.plan, &key.task, key.attempt);
        // A log that cannot be read does not keep others from being copied.
        let (text, bytes) = log_tail(&path, ATTEMPT_LOG_BYTES_MAX as u64).ok()?;
        let (plan, task, attempt) = (key.plan.clone(), key.task.clone(), key.attempt);
        let worker = self.worker.clone();
        Some(AttemptLog { plan, task, attempt, worker, at, ended, bytes, text })
    }

    /// These are in the store now.
    pub(super) fn were_kept(&mut self, copies: &[AttemptLog]) {
        for copy in copies {
            let key = AttemptKey::new(&copy.plan, &copy.task, copy.attempt);
            if copy.ended {
                self.copied.remove(&key);
                self.ended.retain(|ended| *ended != key);
            } else {
                self.copied.insert(key, copy.bytes);
            }
        }
    }
}
