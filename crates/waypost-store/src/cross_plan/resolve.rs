//! Finds the plan that a reference to another plan's task means, and refuses cycles of tasks across plans. Changes
//! nothing.

use std::collections::{HashMap, HashSet};

use waypost_core::{
    Dependency, Event, ExternalTaskRef, Phase, Plan, PlanId, Problem, ProblemKind, Refusal, Task, TaskId,
    Timestamp,
};

use crate::error::Result;
use crate::plans::cache::load;
use crate::plans::request::WriteError;
use crate::rows::{ArchiveFilter, Query, Sort};
use crate::store::Read;

/// Maximum number of an agent's plans that are searched for a task, once among the open plans and once among the others.
pub const AGENT_PLANS_MAX: usize = 20;
/// Maximum number of an agent's open plans among which the one that is meant is found.
const OPEN_PLANS_MAX: usize = 200;
/// Maximum number of tasks that a search for a cycle across plans visits. A longer cycle is not found; its tasks stay
/// visibly waiting.
pub const RING_TASKS_MAX: usize = 10_000;

/// Returns the plans that may contain the referenced task, the most likely first. A reference that names only an agent means
/// the agent's open plans, later ones first: what an earlier plan delivered is not an answer to a new request.
pub(crate) fn candidates(read: &mut dyn Read, there: &ExternalTaskRef) -> Result<Vec<PlanId>> {
    let agent = match (&there.plan, &there.agent) {
        (Some(plan), None) => return Ok(vec![plan.clone()]),
        (Some(plan), Some(agent)) => {
            let head = read.head(plan)?.filter(|head| head.owner == *agent);
            return Ok(head.into_iter().map(|head| head.id).collect());
        }
        (None, None) => return Ok(Vec::new()),
        (None, Some(agent)) => agent,
    };
    let open = open_plans(read, agent)?.into_iter().take(AGENT_PLANS_MAX);
    Ok(open.map(|(_, id)| id).collect())
}

/// Returns the agent's open plans with the times of their creation, later ones first.
pub(crate) fn open_plans(read: &mut dyn Read, agent: &str) -> Result<Vec<(Option<Timestamp>, PlanId)>> {
    let (phases, sort) = (Phase::OPEN.to_vec(), Sort::Created);
    let open = Query { phases, sort, limit: OPEN_PLANS_MAX, ..of_agent(agent) };
    Ok(read.heads(&open)?.items.into_iter().map(|head| (head.created_at, head.id)).collect())
}

/// Returns the agent's plans that have ended or are archived, the latest change first.
pub(crate) fn ended(read: &mut dyn Read, agent: &str) -> Result<Vec<PlanId>> {
    let any = Query { shelf: ArchiveFilter::All, sort: Sort::Updated, ..of_agent(agent) };
    let heads = read.heads(&any)?.items.into_iter();
    Ok(heads.filter(|head| head.archived || head.phase.is_finished()).map(|head| head.id).collect())
}

fn of_agent(agent: &str) -> Query {
    Query { owner: Some(agent.to_owned()), limit: AGENT_PLANS_MAX, ..Query::default() }
}

/// Refuses events that would make tasks of several plans wait for each other. `plan` is the state after `events`.
pub(crate) fn no_ring(read: &mut dyn Read, plan: &Plan, events: &[Event]) -> Result<(), WriteError> {
    let starts = starts(plan, events);
    // A cycle leaves this plan and passes through another plan that already waits.
    if starts.is_empty() || !plan.waits_for_external() {
        return Ok(());
    }
    let mut search = Search { read, own: plan, others: HashMap::new() };
    match search.ring(starts)? {
        None => Ok(()),
        Some(path) => {
            let first = path.first().cloned().unwrap_or_default();
            let problems = vec![Problem::task(first, ProblemKind::Cycle { path })];
            Err(WriteError::Refused(Refusal::Invalid { problems }))
        }
    }
}

/// Returns the tasks whose waits changed: every newly closed cycle passes through one of them.
fn starts(plan: &Plan, events: &[Event]) -> Vec<TaskId> {
    let waits_there = |on: &[Dependency]| on.iter().any(|on| on.external().is_some());
    let waiting = || -> Vec<TaskId> {
        let tasks = plan.tasks().map(|(task, _)| &task.spec);
        tasks.filter(|spec| waits_there(&spec.depends_on)).map(|spec| spec.id.clone()).collect()
    };
    let mut starts = Vec::new();
    for event in events {
        if let Event::PlanCreated { .. } = event {
            // No other plan could refer to a new plan, so every path out of it begins at these tasks.
            starts.extend(waiting());
        } else if let Event::TasksAdded { tasks, .. } = event {
            starts.extend(tasks.iter().map(|spec| spec.id.clone()));
        } else if let Event::TaskRevised { task } = event {
            starts.push(task.id.clone());
        } else if let Event::TaskMoved { task, .. } = event {
            starts.push(task.clone());
        } else if let Event::TasksRetried { tasks } | Event::TasksReset { tasks } = event {
            // Tasks that depend on these wait again, and the dependencies of these may have changed since.
            starts.extend(tasks.iter().cloned());
        } else if let Event::PlanRevised { owner: Some(_), .. } = event {
            // References by agent may now mean tasks of this plan.
            starts.extend(waiting());
        }
    }
    starts
}

type Node = (PlanId, TaskId);

/// A depth-first search along dependencies, across plans.
struct Search<'a> {
    read: &'a mut dyn Read,
    /// The plan after the events, which are not yet written.
    own: &'a Plan,
    others: HashMap<PlanId, Option<Plan>>,
}

impl Search<'_> {
    /// Returns the path of a reachable cycle; its last element repeats its first.
    fn ring(&mut self, starts: Vec<TaskId>) -> Result<Option<Vec<String>>> {
        let mut seen: HashSet<Node> = HashSet::new();
        for start in starts {
            // Each node of the path with the nodes it has yet to follow.
            let mut path: Vec<(Node, Vec<Node>)> = Vec::new();
            let mut next = Some((self.own.id().clone(), start));
            loop {
                if let Some(node) = next.take() {
                    if let Some(at) = path.iter().position(|(on_path, _)| *on_path == node) {
                        let ring = path[at..].iter().map(|(node, _)| node).chain([&node]);
                        return Ok(Some(ring.map(|node| self.name(node)).collect()));
                    }
                    if seen.len() < RING_TASKS_MAX && seen.insert(node.clone()) {
                        let waits_for = self.waits_for(&node)?;
                        path.push((node, waits_for));
                    }
                }
                match path.last_mut() {
                    None => break,
                    Some((_, left)) => match left.pop() {
                        Some(node) => next = Some(node),
                        None => drop(path.pop()),
                    },
                }
            }
        }
        Ok(None)
    }

    fn plan(&mut self, id: &PlanId) -> Result<Option<&Plan>> {
        if id == self.own.id() {
            return Ok(Some(self.own));
        }
        if !self.others.contains_key(id) {
            let loaded = match self.read.plan_state(id)?.version() {
                Some(version) => Some(load(self.read, id, version)?),
                None => None,
            };
            self.others.insert(id.clone(), loaded);
        }
        Ok(self.others.get(id).and_then(Option::as_ref))
    }

    /// Returns the tasks that must end before this one can: its children, its dependencies and those of its ancestors.
    fn waits_for(&mut self, (id, task): &Node) -> Result<Vec<Node>> {
        let Some(plan) = self.plan(id)? else { return Ok(Vec::new()) };
        // A task that was skipped because of another is reopened when that one is redone.
        let may_wait = |task: &&Task| !task.state.status.is_finished() || task.state.because_of.is_some();
        let Some(found) = plan.task(task.as_str()).filter(may_wait) else {
            return Ok(Vec::new());
        };
        let mut waits_for: Vec<Node> =
            plan.children(task.as_str()).iter().map(|child| (id.clone(), child.spec.id.clone())).collect();
        let mut there: Vec<(ExternalTaskRef, Option<PlanId>)> = Vec::new();
        let mut at = Some(found);
        while let Some(found) = at {
            for dependency in &found.spec.depends_on {
                match dependency {
                    Dependency::Task(on) => waits_for.push((id.clone(), on.clone())),
                    Dependency::External(on) => {
                        // A received result may be withdrawn, by the plan that delivered it if that is known.
                        let heard = found.state.received.get(&on.key());
                        let source = heard.and_then(|heard| heard.plan.clone());
                        there.push(((**on).clone(), source));
                    }
                }
            }
            at = found.spec.parent.as_ref().and_then(|parent| plan.task(parent.as_str()));
        }
        for (there, source) in there {
            let meant = if source.is_some() { source } else { self.meant(id, &there)? };
            waits_for.extend(meant.map(|plan| (plan, there.task)));
        }
        Ok(waits_for)
    }

    fn meant(&mut self, of: &PlanId, there: &ExternalTaskRef) -> Result<Option<PlanId>> {
        let own = self.own.id().clone();
        let mut plans = candidates(self.read, there)?;
        let is_agents = there.agent.as_deref().is_none_or(|agent| agent == self.own.spec().owner);
        let is_named = there.plan.as_ref().is_none_or(|plan| *plan == own);
        if is_agents && is_named && !plans.contains(&own) {
            // The plan is just being created, so it is the latest.
            plans.insert(0, own);
        }
        for plan in plans.into_iter().filter(|plan| plan != of) {
            let has = self.plan(&plan)?.is_some_and(|plan| plan.task(there.task.as_str()).is_some());
            if has {
                return Ok(Some(plan));
            }
        }
        Ok(None)
    }

    /// Returns the node as a dependency on it is written.
    fn name(&self, (id, task): &Node) -> String {
        let plan =
            if id == self.own.id() { Some(self.own) } else { self.others.get(id).and_then(Option::as_ref) };
        let owner = plan.map(|plan| plan.spec().owner.clone()).filter(|owner| !owner.is_empty());
        let there = ExternalTaskRef { agent: owner, plan: Some(id.clone()), task: task.clone() };
        Dependency::External(Box::new(there)).to_string()
    }
}
