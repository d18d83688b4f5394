//! Remote jobs that dead runs left behind: those of lost attempts are followed, and those whose task was cancelled, or has
//! ended in another way, are ended.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use waypost_core::{Plan, Status};
use waypost_exec::{RemoteNote, end_left_job, left_remote_jobs};
use waypost_store::is_alive;

use super::job_endings::TaskKey;
use super::{RunWarning, Runner};

/// Jobs that are ended at the same time.
const ENDINGS_MAX: usize = 16;
/// The wait before a job that could not be ended is tried again.
const RETRY_WAIT: Duration = Duration::from_secs(5);

/// What is to be done about a job whose run is dead.
enum Claim {
    /// Its attempt is lost, and still holds its locks.
    Lost,
    /// Another attempt follows it, or will.
    Wanted,
    Unwanted,
}

fn claim_of(plan: &Plan, note: &RemoteNote, owner: &str, own: &str) -> Claim {
    let Some(task) = plan.task(note.task.as_str()) else { return Claim::Unwanted };
    match task.state.status {
        Status::Running => match task.state.worker.as_deref() {
            Some(worker) if worker == owner => Claim::Lost,
            // It finds the note.
            Some(worker) if worker == own || is_alive(worker) => Claim::Wanted,
            Some(_) | None => Claim::Unwanted,
        },
        Status::Pending => Claim::Wanted,
        Status::Done | Status::Failed | Status::Skipped | Status::Cancelled => Claim::Unwanted,
    }
}

impl Runner {
    /// Ends the jobs that no task wants any more. Returns those whose attempts are lost.
    pub(super) fn look_at_left_jobs(&mut self) -> BTreeMap<TaskKey, Vec<RemoteNote>> {
        self.note_endings();
        let own = self.workshop.around.worker.clone();
        let mut lost: BTreeMap<TaskKey, Vec<RemoteNote>> = BTreeMap::new();
        for (note, owner) in left_remote_jobs(&self.workshop.around) {
            let is_followed = |key: &waypost_exec::AttemptKey| key.plan == note.plan && key.task == note.task;
            if owner == own && self.handles.keys().any(is_followed) {
                continue;
            }
            let look = |plan: &Plan| claim_of(plan, &note, &owner, &own);
            let known = self.scheduler.plan(&note.plan).map(look);
            // A plan that is not there may be in another store of this folder.
            let claim = known.map_or_else(|| self.plans.with_plan(&note.plan, look), Ok);
            match claim.unwrap_or(Claim::Wanted) {
                Claim::Lost => lost.entry((note.plan.clone(), note.task.clone())).or_default().push(note),
                Claim::Wanted => {}
                Claim::Unwanted => self.end_job(note),
            }
        }
        lost
    }

    /// Ends a job on a thread of its own. Its note is gone once it has ended.
    pub(super) fn end_job(&mut self, note: RemoteNote) {
        let key = (note.plan.clone(), note.task.clone());
        let waits = self.endings.again_at.get(&key).is_some_and(|at| *at > Instant::now());
        if waits || self.endings.threads.contains_key(&key) || self.endings.threads.len() >= ENDINGS_MAX {
            return;
        }
        let (config, workshop, now) = (self.config.clone(), self.workshop.clone(), self.clock.now());
        let end = move || end_left_job(&config, &workshop.around, note, now);
        if let Ok(thread) = std::thread::Builder::new().name("remote".to_owned()).spawn(end) {
            self.endings.threads.insert(key, thread);
        }
    }

    /// Takes note of the jobs that have ended or could not be.
    fn note_endings(&mut self) {
        let over: Vec<TaskKey> = self
            .endings
            .threads
            .iter()
            .filter(|(_, thread)| thread.is_finished())
            .map(|(key, _)| key.clone())
            .collect();
        for key in over {
            let Some(thread) = self.endings.threads.remove(&key) else { continue };
            let ended = thread.join().unwrap_or_else(|_| Err("it failed".to_owned()));
            let Err(why) = ended else {
                self.endings.again_at.remove(&key);
                continue;
            };
            if !self.endings.reported.contains(&key) {
                let (plan, task) = key.clone();
                self.remarks.push(RunWarning::JobLeft { plan, task, why });
                self.endings.reported.push(key.clone());
            }
            self.endings.again_at.insert(key, Instant::now() + RETRY_WAIT);
        }
    }
}
