//! Everything that an attempt needs, resolved from the plan and the configuration before anything starts.

use std::borrow::Cow;
use std::time::Instant;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use waypost_core::{Complexity, Json, Plan, PlanId, Problem, Task, TaskId, Timestamp, Work};

use super::prompt::Facts;
use crate::check_evidence::Claim;
use crate::outcome::AttemptKey;
use crate::traces::Trace;
use waypost_config::{self as admit, ResolvedWork};
use waypost_config::{Config, PinnedFiles, Worker};

/// One worker to run, and its input.
#[derive(Clone, Debug)]
pub struct Part {
    pub worker: Worker,
    /// The name of the worker in the configuration: `executor`, or `executor/worker`.
    pub name: String,
    /// The JSON object that the worker reads.
    pub input: String,
    /// The values for the placeholders of a prompt; empty for workers without a prompt.
    pub facts: Facts,
    /// Whether the part is the task's check.
    pub is_check: bool,
    /// The files that the executor pins, and the name of its table.
    pub pinned: Option<(PinnedFiles, String)>,
}

/// The check at the end of an attempt.
#[derive(Clone, Debug)]
pub struct Check {
    pub work: Work,
    /// The earlier report. If there is one, the attempt runs only the check.
    pub reported: Option<Claim>,
    /// Whether the check passes without running anything.
    pub is_noop: bool,
}

#[derive(Clone, Debug)]
pub struct AttemptSpec {
    pub key: AttemptKey,
    /// The executor of the task's work, or of its check when only the check is left.
    pub executor: String,
    /// The queue whose slot the attempt takes.
    pub queue: String,
    /// The fencing number of its locks: a later holder of one of them has a higher one.
    pub fence: Option<u64>,
    pub parts: Vec<Part>,
    /// The store's time when the spec was built, and a monotonic clock since then.
    pub(crate) made_at: StoreClock,
    /// The trace of the attempt, if traces are exported.
    pub trace: Option<Trace>,
    /// The time limit of the attempt; `None`: unlimited.
    pub timeout_seconds: Option<u32>,
    /// Tasks with a higher priority start earlier.
    pub priority: i32,
    pub check: Option<Check>,
    pub output_bytes_max: u64,
    pub log_bytes_max: u64,
}

impl AttemptSpec {
    /// Builds the spec of an attempt at `now` by the store's clock. The error explains why the attempt cannot run.
    pub fn of(
        config: &Config,
        plan: &Plan,
        key: &AttemptKey,
        now: Timestamp,
        fence: Option<u64>,
    ) -> Result<Self, String> {
        let gone = || format!("task {} is no longer in the plan", key.task);
        let task = plan.task(key.task.as_str()).ok_or_else(gone)?;
        let mut parts = Vec::new();
        let mut timeout_seconds = None;
        let mut check = None;
        let reported: Option<Claim> = task.state.reported().map(Claim::from);
        for (work, is_check) in [(&task.spec.work, false), (&task.spec.check, true)] {
            let Some(work) = work else { continue };
            if reported.is_some() && !is_check {
                continue;
            }
            let means =
                if is_check { admit::resolve_check(config, work) } else { admit::resolve(config, work) };
            let means = means.map_err(|wrong| Problem::task(&task.spec.id, wrong).to_string())?;
            if is_check {
                let is_noop = means == ResolvedWork::Noop;
                check = Some(Check { work: (**work).clone(), reported: reported.clone(), is_noop });
            }
            match means {
                ResolvedWork::Noop => {}
                // The work is reported as done, and then the person is asked.
                ResolvedWork::Human if is_check => {}
                ResolvedWork::Human => return Err("this task is for a person".to_owned()),
                ResolvedWork::Worker(worker) => {
                    let input = worker_input(config, plan, task, work, key, fence);
                    timeout_seconds = timeout_seconds.or(worker.timeout_seconds());
                    let facts = match worker {
                        Worker::Agent(_) => {
                            Facts::of(plan, task, &serde_json::from_str(&input).unwrap_or_default())
                        }
                        Worker::Process(_)
                        | Worker::Http(_)
                        | Worker::Container(_)
                        | Worker::Kubernetes(_)
                        | Worker::Slurm(_)
                        | Worker::Program(_) => Facts::default(),
                    };
                    let table = format!("executors.{}", work.executor);
                    let pins = &config.pinned_files;
                    let pinned = pins.patterns.contains_key(&table).then(|| (pins.clone(), table));
                    let name = admit::worker_name(config, work);
                    parts.push(Part { worker: worker.clone(), name, input, facts, is_check, pinned });
                }
            }
        }
        let (output_bytes_max, log_bytes_max) = (config.output_bytes_max, config.log_bytes_max);
        let timeout_seconds = task.spec.timeout_seconds.or(timeout_seconds).or(config.timeout_seconds);
        let timeout_seconds = timeout_seconds.filter(|&seconds| seconds > 0);
        let named = task.spec.work.as_ref().filter(|_| reported.is_none()).or(task.spec.check.as_ref());
        let executor = named.map(|work| work.executor.clone()).unwrap_or_default();
        let queue = Config::queue_name(&plan.spec().queue).to_owned();
        Ok(Self {
            key: key.clone(),
            executor,
            queue,
            fence,
            parts,
            check,
            made_at: StoreClock::set_to(now),
            trace: Trace::of(plan),
            timeout_seconds,
            priority: task.spec.priority,
            output_bytes_max,
            log_bytes_max,
        })
    }

    /// Returns the store's time now.
    pub fn now(&self) -> Timestamp {
        self.made_at.now()
    }

    /// Returns the environment variables that describe the attempt to a worker.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let key = &self.key;
        let mut variables = vec![
            ("WAYPOST_PLAN", key.plan.to_string()),
            ("WAYPOST_TASK", key.task.to_string()),
            ("WAYPOST_ATTEMPT", key.attempt.to_string()),
            ("WAYPOST_IDEMPOTENCY_KEY", idempotency_key(key)),
            // A `waypost` command called from inside the work acts as the worker, not as the person at the keyboard.
            ("WAYPOST_ACTOR", format!("worker:{}", key.plan)),
        ];
        variables.extend(self.fence.map(|fence| ("WAYPOST_FENCE", fence.to_string())));
        variables.extend(self.trace.map(|trace| ("TRACEPARENT", trace.parent(key))));
        variables
    }
}

/// The store's time at a moment, and so at any later one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreClock {
    pub(crate) then: Timestamp,
    pub(crate) since: Instant,
}

impl StoreClock {
    pub(crate) fn set_to(now: Timestamp) -> Self {
        Self { then: now, since: Instant::now() }
    }

    pub(crate) fn now(self) -> Timestamp {
        let passed = i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.then.as_micros().saturating_add(passed))
    }
}

/// The JSON object that a worker reads. A stable format, documented in `docs/running.md`.
#[derive(Serialize)]
struct WorkerInput<'a> {
    plan: &'a PlanId,
    task: &'a TaskId,
    attempt: u32,
    idempotency_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    description: &'a str,
    inputs: Cow<'a, Json>,
    #[serde(serialize_with = "as_object")]
    outputs: Vec<(String, Json)>,
    #[serde(skip_serializing_if = "str::is_empty")]
    notes: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complexity: Option<Complexity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

fn as_object<S: Serializer>(fields: &[(String, Json)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

fn worker_input(
    config: &Config,
    plan: &Plan,
    task: &Task,
    work: &Work,
    key: &AttemptKey,
    fence: Option<u64>,
) -> String {
    // Most inputs name no subagent and are passed on unparsed.
    let subagent = work.inputs.as_str().contains("\"subagent\"").then(|| work.inputs.value());
    let input = WorkerInput {
        plan: &key.plan,
        task: &key.task,
        attempt: key.attempt,
        idempotency_key: idempotency_key(key),
        fence,
        description: &task.spec.description,
        inputs: admit::inputs(config, work),
        outputs: plan.outputs_for(key.task.as_str()),
        notes: &task.spec.notes,
        tools: task.spec.tools.as_deref(),
        complexity: task.spec.complexity,
        subagent: subagent.and_then(|inputs| inputs.get("subagent").filter(|name| name.is_string()).cloned()),
        answers: task.state.answers().iter().map(answer_of).collect(),
        traceparent: Trace::of(plan).map(|trace| trace.parent(key)),
    };
    format!("{}\n", Json::of(&input))
}

fn answer_of(answer: &waypost_core::Answer) -> Value {
    let mut input = json!({ "question": answer.question, "answer": answer.answer, "by": answer.by });
    if let Some(state) = &answer.state {
        input["state"] = state.value();
    }
    input
}

impl Part {
    /// Adds the report to be checked to the input of a check.
    pub fn about(&self, claim: &Claim) -> Self {
        let mut input: Value = serde_json::from_str(&self.input).unwrap_or_default();
        input["reported"] =
            json!({ "result": claim.result, "output": claim.output.as_ref().map(Json::value) });
        Self { input: format!("{input}\n"), ..self.clone() }
    }
}

/// Returns a key that is unique to one attempt.
pub(crate) fn idempotency_key(key: &AttemptKey) -> String {
    format!("{}/{}/{}", key.plan, key.task, key.attempt)
}
