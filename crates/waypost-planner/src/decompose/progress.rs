//! The planning progress of a plan: which goals are settled, open or waiting. Derived from the plan; stores nothing.

use std::collections::HashMap;

use waypost_core::{Dependency, Plan, Refinement, Status, Task, TaskId};

use super::session::{ADDED, Decompose, GIVEN_UP, Progress, Refining, Stopped, reasoning_of};
use crate::Purpose;

/// The request that a goal is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Refine,
    Atomicity,
    Decompose,
    Dependencies,
}

impl Stage {
    pub(super) fn purpose(self) -> Purpose {
        match self {
            Self::Refine => Purpose::Refine,
            Self::Atomicity => Purpose::Atomicity,
            Self::Decompose => Purpose::Decompose,
            Self::Dependencies => Purpose::Dependencies,
        }
    }
}

/// The planning state of one goal.
#[derive(Clone, Debug)]
enum GoalState {
    /// It has subtasks, and is settled when they are.
    Parent,
    /// Nothing is left to ask.
    Settled,
    Stopped(Stopped),
    Open(Stage),
}

struct Goal<'a> {
    task: &'a Task,
    state: GoalState,
    /// The index of its parent, if that is in scope.
    parent: Option<usize>,
    /// Whether the goal and everything below it are settled.
    settled: bool,
}

/// The goals in scope, parents before children.
pub(super) struct ProgressView<'a> {
    goals: Vec<Goal<'a>>,
    numbers: HashMap<&'a str, usize>,
}

/// Whether planning may change a task: it has not started, is not skipped, and has no work for a machine.
pub(super) fn is_goal(task: &Task) -> bool {
    task.state.status == Status::Pending && task.spec.work.is_none() && !task.spec.skip
}

/// Whether planning has not touched a goal yet.
pub(super) fn is_untouched(plan: &Plan, task: &Task) -> bool {
    let refinement = task.spec.thinking.as_ref().and_then(|thinking| thinking.refinement);
    is_goal(task) && refinement.is_none() && plan.children(task.spec.id.as_str()).is_empty()
}

impl<'a> ProgressView<'a> {
    pub(super) fn of(session: &Decompose, plan: &'a Plan) -> Self {
        let mut view = Self { goals: Vec::new(), numbers: HashMap::new() };
        let mut inside: Option<usize> = None;
        for (task, depth) in plan.tasks() {
            if let Some(scope) = &session.scope {
                match inside {
                    Some(above) if depth > above => {}
                    _ if task.spec.id == *scope => inside = Some(depth),
                    Some(_) | None => {
                        inside = None;
                        continue;
                    }
                }
            }
            let parent =
                task.spec.parent.as_ref().and_then(|parent| view.numbers.get(parent.as_str()).copied());
            if let Some(parent) = parent {
                view.goals[parent].state = GoalState::Parent;
            }
            view.numbers.insert(task.spec.id.as_str(), view.goals.len());
            let state = state_of(session, plan, task, depth);
            view.goals.push(Goal { task, state, parent, settled: true });
        }
        for number in (0..view.goals.len()).rev() {
            if let GoalState::Open(_) = view.goals[number].state {
                view.goals[number].settled = false;
            }
            if let (false, Some(parent)) = (view.goals[number].settled, view.goals[number].parent) {
                view.goals[parent].settled = false;
            }
        }
        view
    }

    /// The goals that can be asked about now.
    pub(super) fn open(&self) -> impl Iterator<Item = (&'a Task, Stage)> {
        self.goals.iter().filter_map(|goal| match goal.state {
            GoalState::Open(stage) if !self.waits(goal) => Some((goal.task, stage)),
            GoalState::Open(_) | GoalState::Parent | GoalState::Settled | GoalState::Stopped(_) => None,
        })
    }

    pub(super) fn stage_of(&self, id: &TaskId) -> Option<Stage> {
        let goal = self.goals.get(*self.numbers.get(id.as_str())?)?;
        match goal.state {
            GoalState::Open(stage) if !self.waits(goal) => Some(stage),
            GoalState::Open(_) | GoalState::Parent | GoalState::Settled | GoalState::Stopped(_) => None,
        }
    }

    /// Whether the goal or an ancestor depends on a goal that is not settled.
    fn waits(&self, goal: &Goal<'_>) -> bool {
        let mut at = Some(goal);
        while let Some(goal) = at {
            let mut on = goal.task.spec.depends_on.iter().filter_map(Dependency::here);
            if on.any(|on| self.numbers.get(on.as_str()).is_some_and(|&on| !self.goals[on].settled)) {
                return true;
            }
            at = goal.parent.map(|parent| &self.goals[parent]);
        }
        false
    }

    pub(super) fn progress(&self) -> Progress {
        let mut progress = Progress { goals: self.goals.len(), ..Progress::default() };
        for goal in &self.goals {
            match &goal.state {
                GoalState::Parent => progress.decomposed += 1,
                GoalState::Settled => progress.atomic += 1,
                GoalState::Open(_) => progress.open += 1,
                GoalState::Stopped(stopped) => {
                    progress.stopped.push((goal.task.spec.id.clone(), stopped.clone()))
                }
            }
        }
        progress
    }
}

fn state_of(session: &Decompose, plan: &Plan, task: &Task, depth: usize) -> GoalState {
    let id = &task.spec.id;
    if !is_goal(task) {
        return GoalState::Settled;
    }
    if let Some(stopped) = session.stopped.get(id) {
        return GoalState::Stopped(stopped.clone());
    }
    match task.spec.thinking.as_ref().and_then(|thinking| thinking.refinement) {
        None => GoalState::Open(first_stage(session, plan, task)),
        Some(Refinement::Atomic) => GoalState::Settled,
        // A goal whose subtasks were removed is decomposed again.
        Some(Refinement::Decomposing | Refinement::Decomposed) => {
            if let Some(why) = reasoning_of(task).strip_prefix(GIVEN_UP) {
                return GoalState::Stopped(Stopped::GivenUp { why: why.to_owned() });
            }
            if session.held.contains_key(id) {
                return GoalState::Open(Stage::Dependencies);
            }
            match session.bound_at(depth, session.goals(plan)) {
                Some(stopped) => GoalState::Stopped(stopped),
                None => GoalState::Open(Stage::Decompose),
            }
        }
    }
}

/// A goal that depended on its siblings is refined first.
fn first_stage(session: &Decompose, plan: &Plan, task: &Task) -> Stage {
    let waited = match session.refining {
        Refining::Nothing => false,
        Refining::Rest => task
            .spec
            .depends_on
            .iter()
            .filter_map(Dependency::here)
            .any(|on| plan.task(on.as_str()).is_some_and(|on| on.spec.parent == task.spec.parent)),
    };
    let added = reasoning_of(task).starts_with(ADDED);
    if waited && !added && !session.refined.contains(&task.spec.id) {
        Stage::Refine
    } else {
        Stage::Atomicity
    }
}
