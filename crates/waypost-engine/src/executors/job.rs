//! All that an attempt needs, taken from the plan and the configuration before anything is started.

use serde_json::{Map, Value, json};
use waypost_core::{Json, Plan, Problem, Task, Work};

use super::prompt::Facts;
use crate::admit::{self, Means};
use crate::config::{Config, Worker};
use crate::proof::Claim;
use crate::scheduler::AttemptKey;

/// Somebody to do something, and what they are told.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) worker: Worker,
    /// The object that a worker reads.
    pub(crate) input: String,
    /// What a prompt can ask for; nothing for workers that are told no prompt.
    pub(crate) facts: Facts,
    /// Whether it only looks at what another has done.
    pub(crate) is_check: bool,
}

/// The check that an attempt ends with.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) work: Work,
    /// What was reported before: then nothing but the check is done.
    pub(crate) reported: Option<Claim>,
    /// Whether it passes without anything being run.
    pub(crate) is_noop: bool,
}

/// The work of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) key: AttemptKey,
    /// The queue whose slot it takes.
    pub(crate) queue: String,
    pub(crate) parts: Vec<Part>,
    /// When the task was started, in seconds since 1970.
    pub(crate) started_seconds: i64,
    /// Seconds that the attempt may take.
    pub(crate) timeout_seconds: Option<u32>,
    pub(crate) check: Option<Check>,
    pub(crate) output_bytes_max: u64,
    pub(crate) log_bytes_max: u64,
}

impl Job {
    /// The job of an attempt; an error says why there can be none.
    pub(crate) fn of(config: &Config, plan: &Plan, key: &AttemptKey) -> Result<Self, String> {
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
                let is_noop = means == Means::Noop;
                check = Some(Check { work: (**work).clone(), reported: reported.clone(), is_noop });
            }
            match means {
                Means::Noop => {}
                // The work is reported as done, and then the person is asked.
                Means::Human if is_check => {}
                Means::Human => return Err("this is for a person to do".to_owned()),
                Means::Worker(worker) => {
                    let told = told(config, plan, task, work, key);
                    timeout_seconds = timeout_seconds.or(worker.timeout_seconds());
                    let facts = match worker {
                        Worker::Agent(_) => Facts::of(plan, task, &told),
                        Worker::Process(_)
                        | Worker::Http(_)
                        | Worker::Container(_)
                        | Worker::Kubernetes(_) => Facts::default(),
                    };
                    let input = format!("{told}\n");
                    parts.push(Part { worker: worker.clone(), input, facts, is_check });
                }
            }
        }
        let (output_bytes_max, log_bytes_max) = (config.output_bytes_max, config.log_bytes_max);
        let started_seconds = task.state.started_at.map_or(0, |at| at.as_micros() / 1_000_000);
        let timeout_seconds = task.spec.timeout_seconds.or(timeout_seconds).or(config.timeout_seconds);
        let timeout_seconds = timeout_seconds.filter(|&seconds| seconds > 0);
        let queue = Config::queue_name(&plan.spec().queue).to_owned();
        Ok(Self {
            key: key.clone(),
            queue,
            parts,
            check,
            started_seconds,
            timeout_seconds,
            output_bytes_max,
            log_bytes_max,
        })
    }

    /// What the environment of a worker says about the attempt.
    pub(crate) fn variables(&self) -> [(&'static str, String); 5] {
        let key = &self.key;
        [
            ("WAYPOST_PLAN", key.plan.to_string()),
            ("WAYPOST_TASK", key.task.to_string()),
            ("WAYPOST_ATTEMPT", key.attempt.to_string()),
            ("WAYPOST_IDEMPOTENCY_KEY", idempotency_key(key)),
            // Whoever calls `waypost` from inside the work asks as the worker that it is, not as the person at the keyboard.
            ("WAYPOST_ACTOR", format!("worker:{}", key.plan)),
        ]
    }
}

/// The object that a worker reads. A promise: `docs/running.md` describes it.
fn told(config: &Config, plan: &Plan, task: &Task, work: &Work, key: &AttemptKey) -> Value {
    let mut outputs = Map::new();
    for (name, output) in plan.outputs_for(key.task.as_str()) {
        outputs.insert(name, output.value());
    }
    let mut told = json!({
        "plan": key.plan,
        "task": key.task,
        "attempt": key.attempt,
        "idempotency_key": idempotency_key(key),
        "description": task.spec.description,
        "inputs": admit::inputs(config, work),
        "outputs": outputs,
    });
    if let Some(fields) = told.as_object_mut() {
        if !task.spec.notes.is_empty() {
            fields.insert("notes".to_owned(), Value::from(task.spec.notes.clone()));
        }
        if let Some(subagent) = work.inputs.value().get("subagent").filter(|name| name.is_string()) {
            fields.insert("subagent".to_owned(), subagent.clone());
        }
        if !task.state.answers().is_empty() {
            fields.insert("answers".to_owned(), task.state.answers().iter().map(answer_of).collect());
        }
    }
    told
}

fn answer_of(answer: &waypost_core::Answer) -> Value {
    let mut told = json!({ "question": answer.question, "answer": answer.answer, "by": answer.by });
    if let Some(state) = &answer.state {
        told["state"] = state.value();
    }
    told
}

impl Part {
    /// What a check is told besides: what it is to look at.
    pub(crate) fn about(&self, claim: &Claim) -> Self {
        let mut told: Value = serde_json::from_str(&self.input).unwrap_or_default();
        told["reported"] =
            json!({ "result": claim.result, "output": claim.output.as_ref().map(Json::value) });
        Self { input: format!("{told}\n"), ..self.clone() }
    }
}

/// What a worker can tell one attempt from all others by.
pub(crate) fn idempotency_key(key: &AttemptKey) -> String {
    format!("{}/{}/{}", key.plan, key.task, key.attempt)
}
