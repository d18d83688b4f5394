//! Which task is meant by a name elsewhere, and whether tasks of several plans would wait for each other. Changes nothing.

use std::collections::{HashMap, HashSet};

use waypost_core::{
    Dependency, Event, ExternalTaskRef, Phase, Plan, PlanId, Problem, ProblemKind, Refusal, Task, TaskId,
};

use crate::error::Result;
use crate::plans::cache::load;
use crate::plans::request::WriteError;
use crate::rows::{ArchiveFilter, Query, Sort};
use crate::store::Read;

/// Plans of an agent that are searched for a task.
pub const AGENT_PLANS_MAX: usize = 20;
/// Tasks that a search for a ring across plans visits. Rings that are longer are not found, and wait visibly.
pub const RING_TASKS_MAX: usize = 10_000;

/// The phases of plans that go on.
const OPEN: [Phase; 4] = [Phase::Draft, Phase::AwaitingApproval, Phase::Active, Phase::Paused];

/// The plans in which the task can be that is meant, the most likely first: of an agent those that go on before those that
/// have ended, and the latest of each.
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
    let of_agent = Query { owner: Some(agent.clone()), limit: AGENT_PLANS_MAX, ..Query::default() };
    let open = Query { phases: OPEN.to_vec(), sort: Sort::Created, ..of_agent.clone() };
    let any = Query { shelf: ArchiveFilter::All, sort: Sort::Updated, ..of_agent };
    let mut found: Vec<PlanId> = read.heads(&open)?.items.into_iter().map(|head| head.id).collect();
    for head in read.heads(&any)?.items {
        if !found.contains(&head.id) {
            found.push(head.id);
        }
    }
    Ok(found)
}

/// Refuses what would make tasks of several plans wait for each other. `plan` is as `events` leave it.
pub(crate) fn no_ring(read: &mut dyn Read, plan: &Plan, events: &[Event]) -> Result<(), WriteError> {
    let starts = starts(plan, events);
    // A ring goes through another plan that waits already, and leaves this one.
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

/// The tasks that now wait for something else than before: a ring that was closed goes through one of them.
fn starts(plan: &Plan, events: &[Event]) -> Vec<TaskId> {
    let waits_there = |on: &[Dependency]| on.iter().any(|on| on.external().is_some());
    let waiting = || -> Vec<TaskId> {
        let tasks = plan.tasks().map(|(task, _)| &task.spec);
        tasks.filter(|spec| waits_there(&spec.depends_on)).map(|spec| spec.id.clone()).collect()
    };
    let mut starts = Vec::new();
    for event in events {
        if let Event::PlanCreated { .. } = event {
            // Nobody knew of a new plan: what leaves it begins at these.
            starts.extend(waiting());
        } else if let Event::TasksAdded { tasks, .. } = event {
            starts.extend(tasks.iter().map(|spec| spec.id.clone()));
        } else if let Event::TaskRevised { task } = event {
            starts.push(task.id.clone());
        } else if let Event::TaskMoved { task, .. } = event {
            starts.push(task.clone());
        } else if let Event::TasksRetried { tasks } | Event::TasksReset { tasks } = event {
            // Those who wait for them wait again, and what they depend on may have changed since.
            starts.extend(tasks.iter().cloned());
        } else if let Event::PlanRevised { owner: Some(_), .. } = event {
            // Others may mean tasks of this plan now.
            starts.extend(waiting());
        }
    }
    starts
}

type Node = (PlanId, TaskId);

/// A search from task to task, across plans.
struct Search<'a> {
    read: &'a mut dyn Read,
    /// The plan as it would be.
    own: &'a Plan,
    others: HashMap<PlanId, Option<Plan>>,
}

impl Search<'_> {
    /// The path of a ring through other plans that can be reached; the last is the first.
    fn ring(&mut self, starts: Vec<TaskId>) -> Result<Option<Vec<String>>> {
        let mut seen: HashSet<Node> = HashSet::new();
        for start in starts {
            // Each step of the path with what it has yet to follow.
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
            let loaded = match self.read.version(id)? {
                Some(version) => Some(load(self.read, id, version)?),
                None => None,
            };
            self.others.insert(id.clone(), loaded);
        }
        Ok(self.others.get(id).and_then(Option::as_ref))
    }

    /// What must end before this task can: what it and the tasks around it depend on, and its children.
    fn waits_for(&mut self, (id, task): &Node) -> Result<Vec<Node>> {
        let Some(plan) = self.plan(id)? else { return Ok(Vec::new()) };
        // What was skipped because of another comes back when that one is done again.
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
                        // What it has heard may be taken back: by the plan from which it has heard, if that is known.
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
            // It is being made, so it is the latest.
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

    /// As a dependency on it would be written.
    fn name(&self, (id, task): &Node) -> String {
        let plan =
            if id == self.own.id() { Some(self.own) } else { self.others.get(id).and_then(Option::as_ref) };
        let owner = plan.map(|plan| plan.spec().owner.clone()).filter(|owner| !owner.is_empty());
        let there = ExternalTaskRef { agent: owner, plan: Some(id.clone()), task: task.clone() };
        Dependency::External(Box::new(there)).to_string()
    }
}
