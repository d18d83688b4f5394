//! All that an attempt needs, taken from the plan and the configuration before anything is started.

use std::borrow::Cow;
use std::time::Instant;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use waypost_core::{Json, Plan, PlanId, Problem, Task, TaskId, Timestamp, Work};

use super::prompt::Facts;
use crate::check_evidence::Claim;
use crate::outcome::AttemptKey;
use crate::traces::Trace;
use waypost_config::{self as admit, ResolvedWork};
use waypost_config::{Config, Worker};

/// Somebody to do something, and what they are told.
#[derive(Clone, Debug)]
pub struct Part {
    pub worker: Worker,
    /// The object that a worker reads.
    pub input: String,
    /// What a prompt can ask for; nothing for workers that are told no prompt.
    pub facts: Facts,
    /// Whether it only looks at what another has done.
    pub is_check: bool,
}

/// The check that an attempt ends with.
#[derive(Clone, Debug)]
pub struct Check {
    pub work: Work,
    /// What was reported before: then nothing but the check is done.
    pub reported: Option<Claim>,
    /// Whether it passes without anything being run.
    pub is_noop: bool,
}

/// The work of one attempt.
#[derive(Clone, Debug)]
pub struct AttemptSpec {
    pub key: AttemptKey,
    /// The executor that the task names: that of its work, or of its check when only that is left.
    pub executor: String,
    /// The queue whose slot it takes.
    pub queue: String,
    pub parts: Vec<Part>,
    /// The store's time when the job was made, and a clock from then on.
    made_at: (Timestamp, Instant),
    /// The trace that it belongs to, if anybody wants to hear of it.
    pub trace: Option<Trace>,
    /// Seconds that the attempt may take.
    pub timeout_seconds: Option<u32>,
    /// How much sooner than others the task is to start.
    pub priority: i32,
    pub check: Option<Check>,
    pub output_bytes_max: u64,
    pub log_bytes_max: u64,
}

impl AttemptSpec {
    /// The job of an attempt, made at `now` by the store's clock; an error says why there can be none.
    pub fn of(config: &Config, plan: &Plan, key: &AttemptKey, now: Timestamp) -> Result<Self, String> {
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
                    let input = worker_input(config, plan, task, work, key);
                    timeout_seconds = timeout_seconds.or(worker.timeout_seconds());
                    let facts = match worker {
                        Worker::Agent(_) => {
                            Facts::of(plan, task, &serde_json::from_str(&input).unwrap_or_default())
                        }
                        Worker::Process(_)
                        | Worker::Http(_)
                        | Worker::Container(_)
                        | Worker::Kubernetes(_)
                        | Worker::Slurm(_) => Facts::default(),
                    };
                    parts.push(Part { worker: worker.clone(), input, facts, is_check });
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
            parts,
            check,
            made_at: (now, Instant::now()),
            trace: Trace::of(plan),
            timeout_seconds,
            priority: task.spec.priority,
            output_bytes_max,
            log_bytes_max,
        })
    }

    /// The store's time now.
    pub fn now(&self) -> Timestamp {
        let (then, since) = self.made_at;
        let passed = i64::try_from(since.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(then.as_micros().saturating_add(passed))
    }

    /// What the environment of a worker says about the attempt.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let key = &self.key;
        let mut variables = vec![
            ("WAYPOST_PLAN", key.plan.to_string()),
            ("WAYPOST_TASK", key.task.to_string()),
            ("WAYPOST_ATTEMPT", key.attempt.to_string()),
            ("WAYPOST_IDEMPOTENCY_KEY", idempotency_key(key)),
            // Whoever calls `waypost` from inside the work asks as the worker that it is, not as the person at the keyboard.
            ("WAYPOST_ACTOR", format!("worker:{}", key.plan)),
        ];
        variables.extend(self.trace.map(|trace| ("TRACEPARENT", trace.parent(key))));
        variables
    }
}

/// The object that a worker reads. A promise: `docs/running.md` describes it.
#[derive(Serialize)]
struct WorkerInput<'a> {
    plan: &'a PlanId,
    task: &'a TaskId,
    attempt: u32,
    idempotency_key: String,
    description: &'a str,
    inputs: Cow<'a, Json>,
    #[serde(serialize_with = "as_object")]
    outputs: Vec<(String, Json)>,
    #[serde(skip_serializing_if = "str::is_empty")]
    notes: &'a str,
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

fn worker_input(config: &Config, plan: &Plan, task: &Task, work: &Work, key: &AttemptKey) -> String {
    // Most inputs name no subagent, and are passed on as they are.
    let subagent = work.inputs.as_str().contains("\"subagent\"").then(|| work.inputs.value());
    let input = WorkerInput {
        plan: &key.plan,
        task: &key.task,
        attempt: key.attempt,
        idempotency_key: idempotency_key(key),
        description: &task.spec.description,
        inputs: admit::inputs(config, work),
        outputs: plan.outputs_for(key.task.as_str()),
        notes: &task.spec.notes,
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
    /// What a check is told besides: what it is to look at.
    pub fn about(&self, claim: &Claim) -> Self {
        let mut input: Value = serde_json::from_str(&self.input).unwrap_or_default();
        input["reported"] =
            json!({ "result": claim.result, "output": claim.output.as_ref().map(Json::value) });
        Self { input: format!("{input}\n"), ..self.clone() }
    }
}

/// What a worker can tell one attempt from all others by.
pub(crate) fn idempotency_key(key: &AttemptKey) -> String {
    format!("{}/{}/{}", key.plan, key.task, key.attempt)
}
