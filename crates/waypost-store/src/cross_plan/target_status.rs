//! Where a task elsewhere is that somebody waits for: there, not there so far, or never to be. Changes nothing.

use waypost_core::{
    Dependency, Elsewhere, Event, Phase, Plan, PlanId, Problem, Refusal, Standing, Status, TaskId, Wrong,
};

use crate::cross_plan::resolve::candidates;
use crate::plans::{Cache, Committed, Plans, WriteError, catch_up};
use crate::rows::{Wait, open_waits};
use crate::store::{Read, StoreError};

/// Tasks whose waits the answer to a write warns of.
pub const WARNINGS_MAX: usize = 10;

/// What is known of a task elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// A plan has it.
    There {
        /// Which plan.
        plan: PlanId,
        /// Where the task stands.
        standing: Standing,
        /// Where its plan stands.
        phase: Phase,
        /// Whether the plan is put away.
        archived: bool,
        /// Who works on it, or why it stands as it does.
        more: Option<String>,
    },
    /// No plan has that id so far.
    NoSuchPlan(PlanId),
    /// The plan was purged, and ids are never used twice.
    Purged(PlanId),
    /// The plan itself is named, as if it were another.
    OwnPlan(PlanId),
    /// The plan belongs to somebody else than the agent that is named.
    OwnedBy {
        /// Which plan.
        plan: PlanId,
        /// Whose it is; empty when it is nobody's.
        owner: String,
    },
    /// The plan has no such task.
    NoSuchTask {
        /// Which plan.
        plan: PlanId,
        /// Where it stands.
        phase: Phase,
        /// Whether it is put away.
        archived: bool,
    },
    /// The agent has no plan so far.
    NoPlanOf(String),
    /// No plan of the agent has such a task so far.
    NoTaskOf(String),
    /// A text that no agent can be called by.
    NoName(String),
}

impl Whereabouts {
    /// Whether there is such a task.
    pub fn is_there(&self) -> bool {
        matches!(self, Self::There { .. })
    }

    /// Whether there can never be one, as things stand.
    pub fn can_never_be(&self) -> bool {
        match self {
            Self::Purged(_) | Self::OwnPlan(_) | Self::OwnedBy { .. } | Self::NoName(_) => true,
            Self::NoSuchTask { phase, .. } => phase.is_finished(),
            Self::There { .. } | Self::NoSuchPlan(_) | Self::NoPlanOf(_) | Self::NoTaskOf(_) => false,
        }
    }

    /// What is known, behind the name of what it is known of: `lib/build (running)`, `lib/build: there is no plan …`.
    pub fn named(&self, there: &Elsewhere) -> String {
        let (name, words) = (there.key(), self.words(there));
        if self.is_there() { format!("{name} ({words})") } else { format!("{name}: {words}") }
    }

    /// What is known, in words. May hold text of a plan.
    pub fn words(&self, there: &Elsewhere) -> String {
        let task = &there.task;
        match self {
            Self::There { standing, phase, archived, more, .. } => {
                let word = standing.word();
                match (archived, phase, more) {
                    (true, _, _) => format!("{word}; its plan is archived"),
                    (false, Phase::Draft | Phase::AwaitingApproval, _) => {
                        format!("{word}; its plan is not started")
                    }
                    (false, Phase::Paused, _) => format!("{word}; its plan is paused"),
                    (false, _, Some(more)) if matches!(standing, Standing::Queued | Standing::Running) => {
                        format!("{word}, {more}")
                    }
                    (false, _, Some(more)) => format!("{word}; {more}"),
                    (false, _, None) => word.to_owned(),
                }
            }
            Self::NoSuchPlan(plan) => format!("there is no plan {plan} so far"),
            Self::Purged(plan) => format!("plan {plan} was purged"),
            Self::OwnPlan(plan) => format!("{plan} is its own plan; a task of it is named by its id alone"),
            Self::OwnedBy { plan, owner } => {
                let whose = if owner.is_empty() { "to no agent" } else { &format!("to {owner}") };
                let agent = there.agent.as_deref().unwrap_or_default();
                format!("plan {plan} belongs {whose}, not to {agent}")
            }
            Self::NoSuchTask { plan, phase, archived } => match (phase.is_finished(), archived) {
                (true, _) => format!("plan {plan} has ended, and has no task {task}"),
                (false, true) => format!("plan {plan} was archived, and has no task {task}"),
                (false, false) => format!("plan {plan} has no task {task} so far"),
            },
            // A person can give a plan to anybody, but no agent comes in under such a name.
            Self::NoPlanOf(agent) if agent.contains(':') => {
                format!("agent {agent} has no plan so far, and no agent that calls has a colon in its name")
            }
            Self::NoPlanOf(agent) => format!("agent {agent} has no plan so far"),
            Self::NoTaskOf(agent) => format!("no plan of agent {agent} has a task {task} so far"),
            Self::NoName(agent) => format!("{agent:?} names no agent"),
        }
    }
}

fn there(plan: &Plan, task: &TaskId) -> Option<Whereabouts> {
    let state = &plan.task(task.as_str())?.state;
    let more = match state.status {
        Status::Running if state.is_queued() => state.worker.as_ref().map(|worker| format!("by {worker}")),
        Status::Running => state.worker.as_ref().map(|worker| format!("{worker} works on it")),
        Status::Pending => state.reason.clone(),
        Status::Done | Status::Failed | Status::Skipped | Status::Cancelled => state.why(),
    };
    Some(Whereabouts::There {
        plan: plan.id().clone(),
        standing: plan.standing(task.as_str())?,
        phase: plan.state().phase,
        archived: plan.state().archived,
        more,
    })
}

/// Looks where the task is that a task of the plan `of` means.
pub(crate) fn locate(
    read: &mut dyn Read,
    cache: &mut Cache,
    of: &PlanId,
    on: &Elsewhere,
) -> Result<Whereabouts, StoreError> {
    let Some(id) = &on.plan else {
        return locate_by_agent(read, cache, of, on);
    };
    if id == of {
        return Ok(Whereabouts::OwnPlan(id.clone()));
    }
    let Some(version) = read.version(id)? else {
        let gone = read.was_used(id)?;
        return Ok(if gone { Whereabouts::Purged(id.clone()) } else { Whereabouts::NoSuchPlan(id.clone()) });
    };
    catch_up(read, cache, id, version)?;
    let Some(plan) = cache.get(id) else { return Ok(Whereabouts::NoSuchPlan(id.clone())) };
    let owner = &plan.spec().owner;
    if on.agent.as_ref().is_some_and(|agent| agent != owner) {
        return Ok(Whereabouts::OwnedBy { plan: id.clone(), owner: owner.clone() });
    }
    let (phase, archived) = (plan.state().phase, plan.state().archived);
    let missing = || Whereabouts::NoSuchTask { plan: id.clone(), phase, archived };
    Ok(there(plan, &on.task).unwrap_or_else(missing))
}

fn locate_by_agent(
    read: &mut dyn Read,
    cache: &mut Cache,
    of: &PlanId,
    on: &Elsewhere,
) -> Result<Whereabouts, StoreError> {
    let agent = on.agent.clone().unwrap_or_default();
    let (mut has_plans, mut put_away) = (false, None);
    for id in candidates(read, on)? {
        if id == *of {
            // The plan that waits is not meant, but its agent has one.
            has_plans |= cache.get(&id).is_some_and(|plan| plan.task(on.task.as_str()).is_none());
            continue;
        }
        let Some(version) = read.version(&id)? else { continue };
        catch_up(read, cache, &id, version)?;
        has_plans = true;
        let Some(plan) = cache.get(&id) else { continue };
        match there(plan, &on.task) {
            // What was put away is meant only when nothing else can be.
            Some(found) if plan.state().archived => put_away = put_away.or(Some(found)),
            Some(found) => return Ok(found),
            None => {}
        }
    }
    Ok(put_away.unwrap_or(match has_plans {
        true => Whereabouts::NoTaskOf(agent),
        false if agent.trim().is_empty() || agent == "*" => Whereabouts::NoName(agent),
        false => Whereabouts::NoPlanOf(agent),
    }))
}

impl Committed {
    /// What tasks now wait for that is not there so far, in words.
    pub fn warnings(&self) -> Vec<String> {
        let words = |(wait, found): &(Wait, Whereabouts)| {
            format!("{} waits for {}", wait.task, found.named(&wait.on))
        };
        self.missing.iter().map(words).collect()
    }
}

impl Plans {
    /// Where the task is that a task of the plan `of` means by a name elsewhere, as things stand.
    pub fn whereabouts(&self, of: &PlanId, on: &Elsewhere) -> Result<Whereabouts, WriteError> {
        let mut found = Whereabouts::NoPlanOf(String::new());
        self.looking(&mut |read, cache| {
            found = locate(read, cache, of, on)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// What the tasks of a plan wait for elsewhere and have not got, each with what is known of it; at most `limit`.
    pub fn waiting_elsewhere(
        &self,
        plan: &PlanId,
        limit: usize,
    ) -> Result<Vec<(Wait, Whereabouts)>, WriteError> {
        let mut found = Vec::new();
        self.looking(&mut |read, cache| {
            let waits = read.index(plan)?.waits;
            let Some(version) = read.version(plan)? else { return Ok(()) };
            catch_up(read, cache, plan, version)?;
            let Some(waiting) = cache.get(plan) else { return Ok(()) };
            let open: Vec<Wait> =
                waits.into_iter().filter(|wait| is_open(waiting, wait)).take(limit).collect();
            found.clear();
            for wait in open {
                let whereabouts = locate(read, cache, plan, &wait.on)?;
                found.push((wait, whereabouts));
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Whether a task that has not begun has not got this yet.
fn is_open(plan: &Plan, wait: &Wait) -> bool {
    let task = plan.task(wait.task.as_str()).filter(|task| task.state.status == Status::Pending);
    let heard = task.map(|task| task.state.received.get(&wait.on.key()).map(|heard| heard.status));
    heard.is_some_and(|heard| heard != Some(Status::Done))
}

/// What `events` make tasks of `plan` wait for that they did not wait for before. `plan` is as they leave it, and the tables
/// have not heard of them.
fn new_waits(read: &mut dyn Read, plan: &Plan, events: &[Event]) -> Result<Vec<Wait>, StoreError> {
    let elsewhere = |on: &[Dependency]| on.iter().any(|on| on.elsewhere().is_some());
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
    let before = if is_new { Vec::new() } else { read.index(plan.id())?.waits };
    let now = tasks.into_iter().flat_map(|task| {
        let waits = open_waits(plan, task).into_iter();
        waits.map(|on| Wait { plan: plan.id().clone(), task: task.clone(), on })
    });
    Ok(now.filter(|wait| before.binary_search(wait).is_err()).collect())
}

/// Refuses what waits for something that can never be; tells of what is not there so far.
pub(crate) fn check_waits(
    read: &mut dyn Read,
    plan: &Plan,
    events: &[Event],
) -> Result<Vec<(Wait, Whereabouts)>, WriteError> {
    let (mut problems, mut missing) = (Vec::new(), Vec::new());
    // The plan that is being written stands in the cache itself, and is not to be touched.
    let mut cache = Cache::default();
    for wait in new_waits(read, plan, events)? {
        let heard =
            plan.task(wait.task.as_str()).map(|task| task.state.received.contains_key(&wait.on.key()));
        if heard != Some(false) {
            continue;
        }
        let found = locate(read, &mut cache, plan.id(), &wait.on)?;
        if found.can_never_be() {
            let (dependency, why) = (wait.on.key(), found.words(&wait.on));
            problems.push(Problem::task(&wait.task, Wrong::NeverElsewhere { dependency, why }));
        } else if !found.is_there() && missing.len() < WARNINGS_MAX {
            missing.push((wait, found));
        }
    }
    if problems.is_empty() { Ok(missing) } else { Err(WriteError::Refused(Refusal::Invalid { problems })) }
}
