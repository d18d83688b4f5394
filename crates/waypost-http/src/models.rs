//! Models that write plans, and what they have cost. Knows no model and no key: the binary brings what does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use waypost_core::{PlanId, Timestamp};
use waypost_text::excerpt;

/// Maximum number of jobs that are remembered, and of lines about each.
const JOBS_MAX: usize = 20;
const LINES_MAX: usize = 100;
/// Maximum width of a line, in columns.
const LINE_COLUMNS_MAX: usize = 300;

/// Why a model cannot do something, in words for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModelFailure {
    pub message: String,
    pub hint: String,
    /// Problems of what the model answered, one a line.
    pub details: Vec<String>,
}

/// What a plan is to be for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanWish {
    pub goal: String,
    pub constraints: Vec<String>,
    pub tasks_max: Option<usize>,
}

/// The models of the configuration.
pub trait Models: Send + Sync {
    /// Returns the name of the model that would write a plan.
    fn planner(&self) -> Result<String, ModelFailure>;
    /// Writes a plan and saves it as a draft. Takes minutes; what happens meanwhile is told to the job.
    fn write_plan(&self, wish: &PlanWish, job: &PlanJob) -> Result<PlanId, ModelFailure>;
    /// Returns calls, tokens and cost: of a plan by purpose, model and task, or of all plans.
    fn spent(&self, plan: Option<&PlanId>) -> Result<Value, ModelFailure>;
}

/// A plan that a model writes.
pub struct PlanJob {
    number: u64,
    goal: String,
    by: String,
    begun_at: Timestamp,
    state: Mutex<JobState>,
}

#[derive(Default)]
struct JobState {
    lines: VecDeque<String>,
    /// What is happening at the moment.
    now: String,
    ended: Option<Result<PlanId, ModelFailure>>,
    is_stopped: bool,
    stop: Option<Box<dyn Fn() + Send>>,
}

impl PlanJob {
    /// Adds a line about what happened.
    pub fn say(&self, line: &str) {
        let mut state = self.state();
        if state.lines.len() == LINES_MAX {
            state.lines.pop_front();
        }
        state.lines.push_back(excerpt(line, LINE_COLUMNS_MAX).into_owned());
    }

    /// Replaces what is happening at the moment.
    pub fn set_now(&self, words: &str) {
        self.state().now = excerpt(words, LINE_COLUMNS_MAX).into_owned();
    }

    /// Names what ends the job early. Called at once if it was stopped already.
    pub fn on_stop(&self, stop: impl Fn() + Send + 'static) {
        let mut state = self.state();
        if state.is_stopped {
            stop();
        }
        state.stop = Some(Box::new(stop));
    }

    fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        if let Some(stop) = &state.stop {
            stop();
        }
    }

    fn end(&self, result: Result<PlanId, ModelFailure>) {
        let mut state = self.state();
        (state.ended, state.stop) = (Some(result), None);
        state.now.clear();
    }

    fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job as the API shows it.
    pub(crate) fn view(&self) -> JobView {
        let state = self.state();
        let name = match &state.ended {
            None if state.is_stopped => "stopping",
            None => "running",
            Some(Ok(_)) => "done",
            Some(Err(_)) if state.is_stopped => "stopped",
            Some(Err(_)) => "failed",
        };
        JobView {
            job: self.number,
            goal: self.goal.clone(),
            by: self.by.clone(),
            begun_at: self.begun_at,
            state: name,
            progress: state.lines.iter().cloned().collect(),
            now: state.now.clone(),
            plan: state.ended.as_ref().and_then(|ended| ended.as_ref().ok()).cloned(),
            failure: state.ended.as_ref().and_then(|ended| ended.as_ref().err()).cloned(),
        }
    }
}

/// A job as the API shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobView {
    job: u64,
    goal: String,
    by: String,
    begun_at: Timestamp,
    state: &'static str,
    progress: Vec<String>,
    now: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<PlanId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<ModelFailure>,
}

/// The latest jobs. One runs at a time: each pays for itself.
#[derive(Default)]
pub(crate) struct PlanJobs(Mutex<VecDeque<Arc<PlanJob>>>);

impl PlanJobs {
    /// Begins a job on a thread of its own; `None` if one runs.
    pub(crate) fn begin(
        &self,
        models: &Arc<dyn Models>,
        wish: PlanWish,
        (by, begun_at): (String, Timestamp),
    ) -> Option<std::io::Result<Arc<PlanJob>>> {
        let mut jobs = self.jobs();
        if jobs.iter().any(|job| job.state().ended.is_none()) {
            return None;
        }
        let number = jobs.back().map_or(1, |job| job.number + 1);
        let goal = wish.goal.clone();
        let job = Arc::new(PlanJob { number, goal, by, begun_at, state: Mutex::default() });
        let (own, models) = (Arc::clone(&job), Arc::clone(models));
        let run = move || {
            // A panic must not leave a job that runs for ever.
            let guard = EndsJob(&own);
            let ended = models.write_plan(&wish, &own);
            std::mem::forget(guard);
            own.end(ended);
        };
        if let Err(error) = std::thread::Builder::new().name("planner".to_owned()).spawn(run) {
            return Some(Err(error));
        }
        if jobs.len() == JOBS_MAX {
            jobs.pop_front();
        }
        jobs.push_back(Arc::clone(&job));
        Some(Ok(job))
    }

    pub(crate) fn find(&self, number: u64) -> Option<Arc<PlanJob>> {
        self.jobs().iter().find(|job| job.number == number).cloned()
    }

    pub(crate) fn stop(&self, number: u64) -> Option<Arc<PlanJob>> {
        let job = self.find(number)?;
        job.stop();
        Some(job)
    }

    /// All jobs, the latest first.
    pub(crate) fn views(&self) -> Vec<JobView> {
        self.jobs().iter().rev().map(|job| job.view()).collect()
    }

    fn jobs(&self) -> MutexGuard<'_, VecDeque<Arc<PlanJob>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a job whose thread panicked.
struct EndsJob<'a>(&'a PlanJob);

impl Drop for EndsJob<'_> {
    fn drop(&mut self) {
        let message = "the server failed while the plan was written".to_owned();
        self.0.end(Err(ModelFailure { message, hint: "try again".to_owned(), details: Vec::new() }));
    }
}
