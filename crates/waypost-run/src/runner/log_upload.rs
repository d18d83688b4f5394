//! Copies of attempts' logs for readers without access to the files. Only the end of a log is copied, only if machines
//! share the store, and only with a heartbeat, which follows within a second when an attempt has ended.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::PathBuf;

use waypost_core::Timestamp;
use waypost_store::{ATTEMPT_LOG_BYTES_MAX, AttemptLog};

use waypost_exec::AttemptKey;
use waypost_store::{log_path, log_tail};

/// Logs of ended attempts that wait to be copied. Beyond that, the oldest are not copied and stay files.
const ENDED_MAX: usize = 1_000;

/// Which logs were copied, and how much of each.
#[derive(Debug)]
pub(super) struct Copies {
    logs: PathBuf,
    worker: String,
    /// The size of the log when it was last copied, in bytes.
    copied: BTreeMap<AttemptKey, u64>,
    ended: VecDeque<AttemptKey>,
}

impl Copies {
    pub(super) fn new(logs: PathBuf, worker: String) -> Self {
        Self { logs, worker, copied: BTreeMap::new(), ended: VecDeque::new() }
    }

    /// Marks the log of an attempt that has ended, to be copied.
    pub(super) fn ended(&mut self, key: &AttemptKey) {
        if self.bytes(key) == 0 {
            return;
        }
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(key.clone());
    }

    /// Whether logs of ended attempts wait to be copied.
    pub(super) fn are_due(&self) -> bool {
        !self.ended.is_empty()
    }

    fn bytes(&self, key: &AttemptKey) -> u64 {
        let path = log_path(&self.logs, &key.plan, &key.task, key.attempt);
        fs::metadata(path).map_or(0, |found| found.len())
    }

    /// Copies the logs of running attempts that have grown, and those of ended attempts.
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
        // A log that cannot be read does not prevent other copies.
        let (text, bytes) = log_tail(&path, ATTEMPT_LOG_BYTES_MAX as u64).ok()?;
        let (plan, task, attempt) = (key.plan.clone(), key.task.clone(), key.attempt);
        let worker = self.worker.clone();
        Some(AttemptLog { plan, task, attempt, worker, at, ended, bytes, text })
    }

    /// Records that these copies are stored.
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

#[cfg(test)]
mod tests {
    use waypost_core::{PlanId, TaskId};

    use super::*;

    #[test]
    fn the_oldest_logs_give_way_to_the_newest() {
        let logs = std::env::temp_dir().join(format!("waypost-log-upload-{}", std::process::id()));
        let mut copies = Copies::new(logs.clone(), "w1".to_owned());
        let (plan, task) = (PlanId::new("p").unwrap(), TaskId::new("t").unwrap());
        let key = |attempt: usize| AttemptKey::new(&plan, &task, attempt as u32);
        for attempt in 1..=ENDED_MAX + 1 {
            let path = log_path(&logs, &plan, &task, attempt as u32);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
            copies.ended(&key(attempt));
        }
        let _gone = fs::remove_dir_all(&logs);
        assert_eq!(copies.ended.len(), ENDED_MAX);
        assert_eq!((copies.ended.front(), copies.ended.back()), (Some(&key(2)), Some(&key(ENDED_MAX + 1))));
    }
}
