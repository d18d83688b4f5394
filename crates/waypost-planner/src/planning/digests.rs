//! Digests finished work that has no digest yet: subtasks before parents, so that a parent's digest includes theirs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Answer, AnswerKind, AnswerResult, Digested, Digesting, Fidelity, ModelRequest, PromptPolicy, Stopped,
};
use waypost_core::{Plan, Status, Task, TaskId};

use super::Session;

/// A session that digests finished tasks.
#[derive(Clone, Debug)]
pub struct Digests {
    manner: PromptPolicy,
    fidelity: Fidelity,
    /// The root of the tasks in scope; `None` for the whole plan.
    scope: Option<TaskId>,
    parallel_max: usize,
    under_way: BTreeMap<TaskId, Digesting>,
    given_up: BTreeMap<TaskId, String>,
    unexamined: BTreeMap<TaskId, Vec<String>>,
}

impl Digests {
    /// A session for the whole plan, or for a task and everything below it.
    pub fn new(manner: PromptPolicy, fidelity: Fidelity, scope: Option<TaskId>, parallel_max: usize) -> Self {
        Self {
            manner,
            fidelity,
            scope,
            parallel_max: parallel_max.max(1),
            under_way: BTreeMap::new(),
            given_up: BTreeMap::new(),
            unexamined: BTreeMap::new(),
        }
    }

    /// Tasks without a digest because no answer was usable, with the reasons.
    pub fn given_up(&self) -> &BTreeMap<TaskId, String> {
        &self.given_up
    }

    /// Digests whose fidelity could not be measured although that was requested, with the reasons.
    pub fn unexamined(&self) -> &BTreeMap<TaskId, Vec<String>> {
        &self.unexamined
    }

    /// The tasks that need a digest now: no task below them needs one.
    fn wanting<'a>(&self, plan: &'a Plan) -> Vec<&'a Task> {
        let inside: Option<BTreeSet<&TaskId>> = self.scope.as_ref().map(|scope| family(plan, scope));
        let mut blocked: BTreeSet<TaskId> = BTreeSet::new();
        let mut found = Vec::new();
        let tasks: Vec<&Task> = plan.tasks().map(|(task, _)| task).collect();
        // Children come after their parents.
        for task in tasks.into_iter().rev() {
            let id = &task.spec.id;
            if inside.as_ref().is_some_and(|inside| !inside.contains(id)) || !self.wants(task) {
                continue;
            }
            if let Some(parent) = &task.spec.parent {
                blocked.insert(parent.clone());
            }
            if blocked.contains(id) {
                continue;
            }
            found.push(task);
        }
        found.reverse();
        found
    }

    fn wants(&self, task: &Task) -> bool {
        let ended = match task.state.status {
            Status::Done | Status::Failed => true,
            Status::Pending | Status::Running | Status::Skipped | Status::Cancelled => false,
        };
        let has_one = task.spec.thinking.as_ref().is_some_and(|thinking| thinking.digest.is_some());
        ended && !has_one && !self.given_up.contains_key(&task.spec.id)
    }

    fn of(&self, plan: &Plan, task: &TaskId) -> Option<Digesting> {
        match self.under_way.get(task) {
            Some(digesting) => Some(digesting.clone()),
            None => Digesting::new(self.manner.clone(), self.fidelity, plan, task).ok(),
        }
    }
}

impl Session for Digests {
    fn next(&self, plan: &Plan) -> Vec<ModelRequest> {
        let wanting = self.wanting(plan).into_iter();
        let asks = wanting.filter_map(|task| self.of(plan, &task.spec.id)?.next().cloned());
        asks.take(self.parallel_max).collect()
    }

    fn interpret(&mut self, plan: &Plan, ask: &ModelRequest, answer: &Answer) -> AnswerResult {
        let heard = |meaning| AnswerResult { commands: Vec::new(), kind: meaning, repairs: Vec::new() };
        let wanted =
            ask.task.as_ref().filter(|task| plan.task(task.as_str()).is_some_and(|task| self.wants(task)));
        let Some(task) = wanted else { return heard(AnswerKind::Stale) };
        let Some(mut digesting) = self.of(plan, task) else { return heard(AnswerKind::Stale) };
        if digesting.next().is_none_or(|open| open.slot != ask.slot) {
            return heard(AnswerKind::Stale);
        }
        let meant = digesting.interpret(answer);
        match meant {
            Digested::Taken { repairs } => {
                self.under_way.insert(task.clone(), digesting);
                AnswerResult { repairs, ..heard(AnswerKind::Taken) }
            }
            Digested::Again { problems } => {
                self.under_way.insert(task.clone(), digesting);
                heard(AnswerKind::Again { problems })
            }
            Digested::Done { command, repairs, unexamined } => {
                self.under_way.remove(task);
                if !unexamined.is_empty() {
                    self.unexamined.insert(task.clone(), unexamined);
                }
                AnswerResult { commands: vec![*command], kind: AnswerKind::Taken, repairs }
            }
            Digested::GaveUp(gave_up) => {
                self.under_way.remove(task);
                let why = gave_up.problems.join("; ");
                self.given_up.insert(task.clone(), why.clone());
                heard(AnswerKind::Stopped(Stopped::GivenUp { why }))
            }
        }
    }

    fn refused(&mut self, task: &TaskId, why: &str) {
        self.under_way.remove(task);
        self.given_up.insert(task.clone(), format!("the plan did not take it: {why}"));
    }
}

/// A task and everything below it.
fn family<'a>(plan: &'a Plan, task: &TaskId) -> BTreeSet<&'a TaskId> {
    let mut found = BTreeSet::new();
    let mut rest: Vec<&Task> = plan.task(task.as_str()).into_iter().collect();
    while let Some(task) = rest.pop() {
        found.insert(&task.spec.id);
        rest.extend(plan.children(task.spec.id.as_str()));
    }
    found
}
