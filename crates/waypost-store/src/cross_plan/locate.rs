//! Locates the task of another plan that a task waits for, and refuses waits that can never end. Changes nothing.

use waypost_core::{
    Dependency, Event, ExternalTaskRef, Plan, PlanId, Problem, ProblemKind, Refusal, Status, TaskId,
    Timestamp,
};

use crate::cross_plan::resolve::{AGENT_PLANS_MAX, ended, open_plans};
use crate::cross_plan::target_status::TargetStatus;
use crate::error::Result;
use crate::plans::cache::{Cache, catch_up};
use crate::plans::request::WriteError;
use crate::rows::{PlanState, Wait, WaitFilter, open_waits};
use crate::store::Read;

/// Maximum number of unresolved waits that the reply to a write lists.
pub const WARNINGS_MAX: usize = 10;

/// Returns the status of a task of this plan, if the plan has it.
pub(crate) fn there(plan: &Plan, task: &TaskId) -> Option<TargetStatus> {
    let state = &plan.task(task.as_str())?.state;
    let more = match state.status {
        Status::Running if state.is_queued() => state.worker.as_ref().map(|worker| format!("by {worker}")),
        Status::Running => state.worker.as_ref().map(|worker| format!("{worker} works on it")),
        Status::Pending => state.reason.clone(),
        Status::Done | Status::Failed | Status::Skipped | Status::Cancelled => state.why(),
    };
    Some(TargetStatus::There {
        plan: plan.id().clone(),
        standing: plan.effective_status(task.as_str())?,
        phase: plan.state().phase,
        archived: plan.state().archived,
        more,
    })
}

/// Returns since when a task waits, as far as that is known. Its plan has been read.
pub(crate) fn waits_since(cache: &Cache, plan: &PlanId, task: &TaskId) -> Option<Timestamp> {
    cache.get(plan)?.task(task.as_str())?.state.created_at
}

/// Locates the task that a task of the plan `of` refers to, which waits since then or begins to wait now.
pub(crate) fn locate(
    read: &mut dyn Read,
    cache: &mut Cache,
    of: &PlanId,
    since: Option<Timestamp>,
    on: &ExternalTaskRef,
) -> Result<TargetStatus> {
    let Some(id) = &on.plan else {
        return locate_by_agent(read, cache, of, since, on);
    };
    if id == of {
        return Ok(TargetStatus::OwnPlan(id.clone()));
    }
    let Some(version) = read.plan_state(id)?.version() else {
        let gone = read.plan_state(id)? == PlanState::Purged;
        return Ok(if gone {
            TargetStatus::Purged(id.clone())
        } else {
            TargetStatus::NoSuchPlan(id.clone())
        });
    };
    catch_up(read, cache, id, version)?;
    let Some(plan) = cache.get(id) else { return Ok(TargetStatus::NoSuchPlan(id.clone())) };
    let owner = &plan.spec().owner;
    if on.agent.as_ref().is_some_and(|agent| agent != owner) {
        return Ok(TargetStatus::OwnedBy { plan: id.clone(), owner: owner.clone() });
    }
    let (phase, archived) = (plan.state().phase, plan.state().archived);
    let missing = || TargetStatus::NoSuchTask { plan: id.clone(), phase, archived };
    Ok(there(plan, &on.task).unwrap_or_else(missing))
}

/// Returns the plan of an agent that a reference without a plan means, and whether the agent has any. It is the latest open plan with
/// the task. Once that plan has started, plans that are created later are not what was asked for: before, its agent may still replace
/// it. `also` is a plan that counts although it may have ended just now.
pub(crate) fn meant_plan(
    read: &mut dyn Read,
    cache: &mut Cache,
    of: &PlanId,
    since: Option<Timestamp>,
    on: &ExternalTaskRef,
    also: Option<&PlanId>,
) -> Result<(Option<PlanId>, bool)> {
    let Some(agent) = &on.agent else { return Ok((None, false)) };
    let mut open = open_plans(read, agent)?;
    if let Some(also) = also.filter(|also| open.iter().all(|(_, id)| id != *also)) {
        let created_at = cache.get(also).and_then(|plan| plan.state().created_at);
        open.insert(open.partition_point(|(other, _)| *other > created_at), (created_at, also.clone()));
    }
    // Whoever begins to wait now knows them all.
    let known = open.partition_point(|(created_at, _)| since.is_some() && *created_at > since);
    let (later, earlier) = open.split_at(known);
    let (mut has_plans, mut meant) = (false, None);
    for (_, id) in earlier.iter().take(AGENT_PLANS_MAX) {
        meant = started_if_it_has(read, cache, (of, id), &on.task, &mut has_plans)?;
        if meant.is_some() {
            break;
        }
    }
    for (created_at, id) in later.iter().rev().take(AGENT_PLANS_MAX) {
        let has_started = |(_, started_at): &(PlanId, Option<Timestamp>)| {
            started_at.is_some() && *started_at <= *created_at
        };
        if meant.as_ref().is_some_and(has_started) {
            break;
        }
        meant = started_if_it_has(read, cache, (of, id), &on.task, &mut has_plans)?.or(meant);
    }
    Ok((meant.map(|(id, _)| id), has_plans))
}

/// Returns a plan with the time of its start if it has the task and is not the waiting plan `of`. Notes whether there is a plan.
fn started_if_it_has(
    read: &mut dyn Read,
    cache: &mut Cache,
    (of, id): (&PlanId, &PlanId),
    task: &TaskId,
    has_plans: &mut bool,
) -> Result<Option<(PlanId, Option<Timestamp>)>> {
    if id == of {
        // The waiting plan is never the target, but its agent has a plan.
        *has_plans |= cache.get(id).is_some_and(|plan| plan.task(task.as_str()).is_none());
        return Ok(None);
    }
    let Some(version) = read.plan_state(id)?.version() else { return Ok(None) };
    catch_up(read, cache, id, version)?;
    *has_plans = true;
    let plan = cache.get(id).filter(|plan| plan.task(task.as_str()).is_some());
    Ok(plan.map(|plan| (id.clone(), plan.state().started_at)))
}

fn locate_by_agent(
    read: &mut dyn Read,
    cache: &mut Cache,
    of: &PlanId,
    since: Option<Timestamp>,
    on: &ExternalTaskRef,
) -> Result<TargetStatus> {
    let agent = on.agent.clone().unwrap_or_default();
    let (meant, mut has_plans) = meant_plan(read, cache, of, since, on, None)?;
    let found = meant.and_then(|id| there(cache.get(&id)?, &on.task));
    if let Some(found) = found {
        return Ok(found);
    }
    for id in ended(read, &agent)?.into_iter().filter(|id| id != of) {
        let Some(version) = read.plan_state(&id)?.version() else { continue };
        // A damaged plan that is over does not keep anybody from waiting.
        if catch_up(read, cache, &id, version).is_err() {
            continue;
        }
        has_plans = true;
        if cache.get(&id).is_some_and(|plan| plan.task(on.task.as_str()).is_some()) {
            return Ok(TargetStatus::OnlyInEnded { agent, plan: id });
        }
    }
    Ok(match has_plans {
        true => TargetStatus::NoTaskOf(agent),
        false if agent.trim().is_empty() || agent == "*" => TargetStatus::NoName(agent),
        false => TargetStatus::NoPlanOf(agent),
    })
}

/// Returns whether a task that has not started still lacks a successful result of this wait.
pub(crate) fn is_open(plan: &Plan, wait: &Wait) -> bool {
    let task = plan.task(wait.task.as_str()).filter(|task| task.state.status == Status::Pending);
    let heard = task.map(|task| task.state.received.get(&wait.on.key()).map(|heard| heard.status));
    heard.is_some_and(|heard| heard != Some(Status::Done))
}

/// Returns the waits that `events` add to tasks of `plan`. `plan` is the state after the events; the tables do not
/// contain them yet.
fn new_waits(read: &mut dyn Read, plan: &Plan, events: &[Event]) -> Result<Vec<Wait>> {
    let elsewhere = |on: &[Dependency]| on.iter().any(|on| on.external().is_some());
    let mut tasks: Vec<&TaskId> = Vec::new();
    let mut is_new = false;
    for event in events {
        if let Event::PlanCreated { draft, .. } = event {
            is_new = true;
            tasks.extend(
                draft.tasks.iter().filter(|task| elsewhere(&task.spec.depends_on)).map(|task| &task.spec.id),
            );
        } else if let Event::TasksAdded { tasks: added, .. } = event {
            tasks.extend(added.iter().filter(|spec| elsewhere(&spec.depends_on)).map(|spec| &spec.id));
        } else if let Event::TaskRevised { task } = event {
            tasks.extend(elsewhere(&task.depends_on).then_some(&task.id));
        }
    }
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let before = if is_new { Vec::new() } else { read.waits(WaitFilter::Of(plan.id()))? };
    let now = tasks.into_iter().flat_map(|task| {
        let waits = open_waits(plan, task).into_iter();
        waits.map(|on| Wait { plan: plan.id().clone(), task: task.clone(), on })
    });
    Ok(now.filter(|wait| before.binary_search(wait).is_err()).collect())
}

/// Refuses waits that can never end, and returns those whose target does not exist yet.
pub(crate) fn check_waits(
    read: &mut dyn Read,
    plan: &Plan,
    events: &[Event],
) -> Result<Vec<(Wait, TargetStatus)>, WriteError> {
    let (mut problems, mut missing) = (Vec::new(), Vec::new());
    // The plan that is being written is in the shared cache and must not be touched.
    let mut cache = Cache::default();
    for wait in new_waits(read, plan, events)? {
        let heard =
            plan.task(wait.task.as_str()).map(|task| task.state.received.contains_key(&wait.on.key()));
        if heard != Some(false) {
            continue;
        }
        let found = locate(read, &mut cache, plan.id(), None, &wait.on)?;
        if found.can_never_be() {
            let (dependency, why) = (wait.on.key(), found.describe(&wait.on));
            problems.push(Problem::task(&wait.task, ProblemKind::ImpossibleExternal { dependency, why }));
        } else if !found.is_there() && missing.len() < WARNINGS_MAX {
            missing.push((wait, found));
        }
    }
    if problems.is_empty() { Ok(missing) } else { Err(WriteError::Refused(Refusal::Invalid { problems })) }
}
