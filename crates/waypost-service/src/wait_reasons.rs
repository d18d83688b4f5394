//! Explains what a task waits for, and who holds it. Writes nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use waypost_config::Config;
use waypost_core::{
    BlockReason, Dependency, EffectiveStatus, ExternalTaskRef, LockMode, Phase, Plan, PlanId, StartRefusal,
    StartRefusalReason, Status, Task, TaskId, Timestamp,
};
use waypost_store::{HeldLock, LeaseFilter, LockFilter, PlanStore, Query, Worker, WriteError};
use waypost_text::{StatusSign, one_line, quote};

use crate::active_workers::{draining_of, no_worker, workers_of};
use crate::approval::start_refusal_text;
use crate::human_answer::HumanExecutors;
use crate::report::LEASES_MAX;

/// Maximum number of external tasks to look up for one task.
const ELSEWHERE_MAX: usize = 20;
/// Maximum number of children that a reason names.
const CHILDREN_MAX: usize = 20;

/// One thing that a task waits for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// The kind of the reason.
    pub kind: &'static str,
    /// The reason as text, the same at every front end; advice is up to each of them. May contain text of the plan.
    #[serde(rename = "message")]
    pub words: String,
    /// The reason for programs.
    pub fact: Value,
}

/// The status of a task, and the reasons for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The effective status; `None` if the task no longer exists.
    pub standing: Option<EffectiveStatus>,
    /// The sign under which the task is shown; `None` if it no longer exists.
    pub sign: Option<StatusSign>,
    /// What the task waits for; for a finished task, why it ended like that.
    pub reasons: Vec<Reason>,
    /// Damage to the files of the plan.
    pub warnings: Vec<String>,
}

/// Explains what a task waits for. Without a configuration, what every configuration has is still true.
pub fn why(
    plans: &PlanStore,
    config: Option<&Config>,
    plan: &PlanId,
    task: &TaskId,
) -> Result<Explanation, WriteError> {
    let now = plans.store().query(|read| Ok(read.now()))?;
    let builtin = Config::default();
    let config = config.unwrap_or(&builtin);
    let mut known = BTreeMap::new();
    for there in plans.view(plan, |plan, _| awaited(plan, task))? {
        known.insert(there.key(), plans.target_status(plan, Some(task), &there)?.describe(&there));
    }
    let leases = plans.store().query(|read| read.leases(&LeaseFilter::Plan(plan), LEASES_MAX));
    let until = leases.ok().and_then(|leases| leases.into_iter().find(|lease| lease.task == *task)?.until);
    let (standing, sign, mut reasons, warnings) = plans.view(plan, |plan, warnings| {
        let started = plan.as_started();
        let standing = started.effective_status(task.as_str());
        let people = HumanExecutors::of(config, plan);
        let sign =
            plan.task(task.as_str()).zip(standing).map(|(found, standing)| people.sign(found, standing));
        // That its author skips the task is said before the plan has started.
        let shown = if is_to_be_skipped(plan, task.as_str()) { plan } else { &*started };
        let mut reasons = reasons(shown, task, (now, until), &known);
        reasons.extend(refused(plan, task));
        (standing, sign, reasons, warnings.to_vec())
    })?;
    reasons.extend(held(plans, plan, task)?);
    let is_free = reasons.is_empty();
    reasons.extend(worker(plans, config, plan, task, is_free)?);
    Ok(Explanation { standing, sign, reasons, warnings })
}

/// Explains what the tasks of a plan that have not ended wait for: the first `max` of them in the plan's order, and how many
/// there are.
pub fn why_open(
    plans: &PlanStore,
    config: Option<&Config>,
    plan: &PlanId,
    max: usize,
) -> Result<(Vec<(TaskId, Explanation)>, usize), WriteError> {
    let (open, total) = plans.view(plan, |plan, _| {
        let is_open = |task: &&Task| !task.state.status.is_finished();
        let open = || plan.tasks().map(|(task, _)| task).filter(is_open);
        (open().take(max).map(|task| task.spec.id.clone()).collect::<Vec<_>>(), open().count())
    })?;
    let explained = open.into_iter().map(|task| why(plans, config, plan, &task).map(|why| (task, why)));
    Ok((explained.collect::<Result<_, _>>()?, total))
}

/// Returns the unfinished external tasks that a pending task and its ancestors depend on.
fn awaited(plan: &Plan, task: &TaskId) -> Vec<ExternalTaskRef> {
    let mut found = Vec::new();
    let mut at = plan.task(task.as_str()).filter(|task| task.state.status == Status::Pending);
    while let Some(task) = at {
        let there = task.spec.depends_on.iter().filter_map(Dependency::external);
        let heard = |there: &ExternalTaskRef| task.state.received.get(&there.key()).map(|heard| heard.status);
        found.extend(there.filter(|there| heard(there) != Some(Status::Done)).cloned());
        at = task.spec.parent.as_ref().and_then(|parent| plan.task(parent.as_str()));
    }
    found.truncate(ELSEWHERE_MAX);
    found
}

/// Descriptions of external tasks, by key.
type TargetTexts = BTreeMap<String, String>;

/// `until` is the end of the task's lease.
fn reasons(
    plan: &Plan,
    task: &TaskId,
    (now, until): (Timestamp, Option<Timestamp>),
    known: &TargetTexts,
) -> Vec<Reason> {
    let waiting = plan.waiting(task.as_str(), now).into_iter();
    let mut reasons: Vec<Reason> = waiting.map(|waiting| of(plan, task, waiting, known)).collect();
    let Some(found) = plan.task(task.as_str()) else { return reasons };
    let state = &found.state;
    let does = match plan.effective_status(task.as_str()) {
        Some(EffectiveStatus::Queued) => Some("has queued it"),
        Some(EffectiveStatus::Running) => Some("works on it"),
        _ => None,
    };
    if let (Some(does), Some(worker)) = (does, &state.worker) {
        let lease = until.map(|until| format!(", lease until {}", until.to_the_second())).unwrap_or_default();
        reasons.push(Reason {
            kind: "worker",
            words: format!("{worker}, who {does} (attempt {}{lease})", state.attempt),
            fact: json!({ "worker": worker, "attempt": state.attempt, "until": until }),
        });
    }
    if reasons.is_empty() && state.status == Status::Pending {
        reasons.extend(below(plan, task));
    }
    if let Some(why) = state.why().filter(|_| state.status.is_finished()) {
        reasons.push(Reason { kind: "ended", words: format!("nothing any more: {why}"), fact: json!(why) });
    }
    reasons
}

/// Returns what keeps an open parent from ending where nothing of it can start or runs.
fn below(plan: &Plan, task: &TaskId) -> Option<Reason> {
    match plan.effective_status(task.as_str())? {
        EffectiveStatus::Blocked | EffectiveStatus::Asking | EffectiveStatus::Disputed => {}
        EffectiveStatus::Ready
        | EffectiveStatus::Reported
        | EffectiveStatus::Held
        | EffectiveStatus::Queued
        | EffectiveStatus::Running
        | EffectiveStatus::Done
        | EffectiveStatus::Failed
        | EffectiveStatus::Skipped
        | EffectiveStatus::Cancelled => return None,
    }
    let open = plan.children(task.as_str()).into_iter().filter(|child| !child.state.status.is_finished());
    let open: Vec<&TaskId> = open.map(|child| &child.spec.id).take(CHILDREN_MAX).collect();
    let named: Vec<String> = open
        .iter()
        .filter_map(|id| Some(format!("{id} ({})", plan.effective_status(id.as_str())?.as_str())))
        .collect();
    let fact = json!({ "children": open });
    (!named.is_empty()).then(|| Reason {
        kind: "children",
        words: format!("the tasks in it: {}", named.join(", ")),
        fact,
    })
}

fn of(plan: &Plan, task: &TaskId, waiting: BlockReason, known: &TargetTexts) -> Reason {
    let fact = json!(waiting);
    let (kind, words) = match waiting {
        BlockReason::Approval => {
            let rejection = plan.rejection();
            let dash = if rejection.is_empty() { "" } else { "; " };
            ("approval", format!("a person's approval{dash}{rejection}"))
        }
        BlockReason::Phase(Phase::Draft) => {
            ("phase", format!("a person to start the plan: {}", plan.rejection()))
        }
        BlockReason::Phase(phase) => ("phase", format!("the plan, which is {}", phase.as_str())),
        BlockReason::Dependencies(names) => {
            let named: Vec<String> = names
                .into_iter()
                .map(|name| match (known.get(&name), plan.effective_status(&name)) {
                    (Some(words), _) => format!("{name} ({words})"),
                    (None, Some(_)) if is_to_be_skipped(plan, &name) => format!("{name} (to be skipped)"),
                    (None, Some(standing)) => match holder(plan, &name, standing) {
                        Some(worker) => format!("{name} ({}, {worker})", standing.as_str()),
                        None => format!("{name} ({})", standing.as_str()),
                    },
                    (None, None) => name,
                })
                .collect();
            ("dependencies", named.join(", "))
        }
        BlockReason::Answer(question) => ("answer", format!("a person's answer to: {question}")),
        BlockReason::Check => {
            let by = plan.task(task.as_str()).and_then(|task| task.state.reported());
            let by = by.map(|report| report.by.to_string()).unwrap_or_default();
            ("check", format!("its check: {by} reported it as done"))
        }
        BlockReason::Held { task, by, reason } => ("hold", hold_text(&task, &by, &reason)),
        BlockReason::Disputed { task } => ("dispute", dispute_text(&task)),
        BlockReason::Until(at) => ("retry", format!("its next attempt at {}", at.to_the_second())),
        BlockReason::Skip { task: skipped } => ("skip", skip_text(Some(task.as_str()), &skipped)),
    };
    Reason { kind, words, fact }
}

/// Returns who works on a task now, or has it queued.
fn holder<'a>(plan: &'a Plan, task: &str, standing: EffectiveStatus) -> Option<&'a str> {
    let is_held = matches!(standing, EffectiveStatus::Queued | EffectiveStatus::Running);
    plan.task(task).filter(|_| is_held)?.state.worker.as_deref()
}

/// Says what a task waits for, as far as its plan knows.
pub fn waiting_text(waiting: &BlockReason) -> String {
    match waiting {
        BlockReason::Approval => "a person's approval of the plan".to_owned(),
        BlockReason::Phase(Phase::Draft) => "a person to start the plan".to_owned(),
        BlockReason::Phase(phase) => format!("the plan, which is {}", phase.as_str()),
        BlockReason::Dependencies(names) => names.join(", "),
        BlockReason::Answer(question) => format!("a person's answer to: {}", one_line(question)),
        BlockReason::Check => "its check: it is reported as done".to_owned(),
        BlockReason::Held { task, by, reason } => hold_text(task, by, reason),
        BlockReason::Disputed { task } => dispute_text(task),
        BlockReason::Until(until) => format!("its next attempt at {} UTC", until.to_the_second()),
        BlockReason::Skip { task } => skip_text(None, task),
    }
}

/// Whether the author skips a task that has not ended yet.
pub fn is_to_be_skipped(plan: &Plan, task: &str) -> bool {
    plan.task(task).is_some_and(|task| task.spec.skip && task.state.status == Status::Pending)
}

/// Says that the author skips a task, or one above it.
fn skip_text(task: Option<&str>, skipped: &str) -> String {
    let which = if task == Some(skipped) { "it".to_owned() } else { skipped.to_owned() };
    format!("nothing: its author skips {which} once the plan has started, and dependants do not wait for it")
}

/// Says who holds a task that another, or the task itself, waits for.
fn hold_text(task: &str, by: &str, reason: &str) -> String {
    let why = if reason.is_empty() { String::new() } else { format!(" ({})", quote(reason)) };
    format!("the hold of {task} to end: held by {by}{why}")
}

/// Says which task, that another or the task itself waits for, clones disagree about.
fn dispute_text(task: &str) -> String {
    format!("a person to decide about {task}: clones did what does not go together")
}

/// Returns the executor of a task that a machine could start now.
fn startable(plan: &Plan, task: &TaskId) -> Option<String> {
    let found = plan.task(task.as_str())?;
    let work = match plan.effective_status(task.as_str())? {
        EffectiveStatus::Ready => found.spec.work.as_deref(),
        EffectiveStatus::Reported => found.spec.check.as_deref(),
        EffectiveStatus::Blocked
        | EffectiveStatus::Held
        | EffectiveStatus::Disputed
        | EffectiveStatus::Asking
        | EffectiveStatus::Queued
        | EffectiveStatus::Running
        | EffectiveStatus::Done
        | EffectiveStatus::Failed
        | EffectiveStatus::Skipped
        | EffectiveStatus::Cancelled => None,
    }?;
    (plan.state().phase == Phase::Active).then(|| work.executor.clone())
}

/// For a task that a machine could start now: the workers that refuse to.
fn refused(plan: &Plan, task: &TaskId) -> Vec<Reason> {
    if startable(plan, task).is_none() {
        return Vec::new();
    }
    let concerns = |refusal: &&StartRefusal| {
        // Gates are of this plan, or of others that the task waits for.
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            refusal.differences.iter().partition(|gate| plan.task(gate).is_some());
        let gates: Vec<TaskId> = here.iter().filter_map(|gate| TaskId::new(gate.as_str()).ok()).collect();
        refusal.reason != StartRefusalReason::GateNotProved
            || !elsewhere.is_empty()
            || plan.tasks_behind(&gates).contains(task)
    };
    let reason = |refusal: &StartRefusal| Reason {
        kind: "refused",
        words: format!("a worker that starts it: {}", start_refusal_text(plan, refusal)),
        fact: json!(refusal),
    };
    plan.state().start_refusals.iter().filter(concerns).map(reason).collect()
}

/// For a task that a machine could start now: whether no worker is available or its queue is full. If it waits for
/// nothing else (`is_free`), what the workers of its queue have to do besides.
fn worker(
    plans: &PlanStore,
    config: &Config,
    plan: &PlanId,
    task: &TaskId,
    is_free: bool,
) -> Result<Option<Reason>, WriteError> {
    let found = plans.view(plan, |plan, _| {
        let executor = startable(plan, task)?;
        Some((HumanExecutors::of(config, plan).contains(&executor), executor))
    })?;
    let Some((is_for_person, executor)) = found else { return Ok(None) };
    if is_for_person {
        let words = "a person, who does it".to_owned();
        return Ok(Some(Reason { kind: "person", words, fact: json!({ "executor": executor }) }));
    }
    let (queue, workers) = workers_of(plans, plan)?;
    let takers: Vec<&Worker> = workers.iter().filter(|worker| worker.executors.contains(&executor)).collect();
    if takers.is_empty() {
        let nobody = match workers.len() {
            0 => match draining_of(plans, plan, &queue)? {
                0 => no_worker(&queue),
                count => {
                    format!("those of queue {queue} that are alive ({count}) drain and start nothing more")
                }
            },
            count => format!(
                "of the workers of queue {queue} that are alive ({count}) none takes executor {executor}"
            ),
        };
        let words = format!("a worker: {nobody}");
        let fact = json!({ "queue": queue, "executor": executor, "workers": workers.len() });
        return Ok(Some(Reason { kind: "no_worker", words, fact }));
    }
    let running = || -> Result<u32, WriteError> {
        Ok(plans.store().query(|read| read.slots(&queue))?.iter().map(|(_, count)| *count).sum())
    };
    if workers.iter().any(|worker| worker.waits_for.contains(&queue)) {
        let count = running()?;
        let words = format!("a slot of queue {queue}: {count} are taken");
        return Ok(Some(Reason { kind: "queue", words, fact: json!({ "queue": queue, "taken": count }) }));
    }
    if !is_free || takers.iter().all(|worker| is_for_people(worker, &executor)) {
        return Ok(None);
    }
    let (phases, of_queue) = (vec![Phase::Active], Some(queue.clone()));
    let query = Query { phases, queue: of_queue, offers_work: true, limit: 1, ..Query::default() };
    let (others, running) = (plans.heads(&query)?.total.saturating_sub(1), running()?);
    if others == 0 && running == 0 {
        return Ok(None);
    }
    let words = format!(
        "its turn in queue {queue}, the most urgent first: other plans with ready tasks: {others}, tasks in progress: \
         {running}"
    );
    let fact = json!({ "queue": queue, "other_plans": others, "in_progress": running });
    Ok(Some(Reason { kind: "turn", words, fact }))
}

/// Whether a worker leaves tasks of this executor to people.
fn is_for_people(worker: &Worker, executor: &str) -> bool {
    let definitions = worker.definitions.as_ref().map(|published| published.value());
    definitions.is_some_and(|definitions| definitions["executors"][executor] == "human")
}

/// Locks of a pending task that other tasks hold.
fn held(plans: &PlanStore, plan: &PlanId, task: &TaskId) -> Result<Vec<Reason>, WriteError> {
    let wanted = plans.view(plan, |plan, _| {
        let found = plan.task(task.as_str()).filter(|task| task.state.status == Status::Pending);
        found.map(|task| task.spec.locks.clone()).unwrap_or_default()
    })?;
    let keys: Vec<&str> = wanted.iter().map(|lock| lock.key.as_str()).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = plans.store().query(|read| read.locks(LockFilter::Keys(&keys)))?;
    let clashes = rows.into_iter().filter(|row| {
        let mode = wanted.iter().find(|lock| lock.key == row.lock.key).map(|lock| lock.mode);
        (mode, row.lock.mode) != (Some(LockMode::Shared), LockMode::Shared)
    });
    let reason = |row: HeldLock| {
        let (key, holder) = (row.lock.key, format!("{}/{}", row.plan, row.task));
        let words = format!("lock {key}, which {holder} holds");
        Reason { kind: "lock", words, fact: json!({ "key": key, "holder": holder }) }
    };
    Ok(clashes.map(reason).collect())
}
