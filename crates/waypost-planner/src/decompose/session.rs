//! What a session that breaks goals down knows besides the plan, its bounds, and what it can say of a goal.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{Command, Plan, Refinement, Task, TaskId, TaskSpec};

use crate::PromptPolicy;
use crate::budget::Bound;
use crate::prompting::Tries;
use crate::repair::Repair;
use crate::similarity::cut;

/// What the reasoning of a goal begins with that was given up.
pub const GIVEN_UP: &str = "Given up: ";

/// What the reasoning of a goal begins with that was added when the rest was looked at.
pub const ADDED: &str = "Added: ";

/// Bytes of the reasons that are kept on a goal.
pub const REASONING_BYTES_MAX: usize = 4_000;

/// The most that `children_max` may be.
pub const CHILDREN_LIMIT: usize = 100;

/// How far goals are broken down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Goals with so many goals above them are not broken down any more.
    pub depth_max: usize,
    /// Children that a goal has at least.
    pub children_min: usize,
    /// Children that a goal has at the most.
    pub children_max: usize,
    /// Tasks that the plan has at the most.
    pub goals_max: usize,
    /// Questions that are open at once.
    pub parallel_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { depth_max: 4, children_min: 2, children_max: 7, goals_max: 200, parallel_max: 4 }
    }
}

/// Whether the rest is looked at again when a part has been thought through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refining {
    /// Before a goal that waited for others is looked at, it and what waits for it may be changed.
    #[default]
    Rest,
    /// Goals stay as they were first written.
    Nothing,
}

/// Why a goal that is not small enough is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A bound forbids it.
    Bound { bound: Bound, max: usize },
    /// No answer could be used, or the plan would not take it.
    GivenUp {
        /// Why, as it stands on the goal.
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct AnswerResult {
    /// What the plan is to be told, in this order; all of it can be told twice.
    pub commands: Vec<Command>,
    pub kind: AnswerKind,
    pub repairs: Vec<Repair>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// Something to go on with.
    Taken,
    /// It cannot be used: the next question of [`Decompose::next`] tells the model why.
    Again {
        /// What is wrong, one sentence each.
        problems: Vec<String>,
    },
    /// The goal is left as it is, and the reason stands on it.
    Stopped(Stopped),
    /// Asked often enough, it is done without: the repairs say how.
    Without {
        /// What is wrong with the last answer, one sentence each.
        problems: Vec<String>,
    },
    /// The plan has changed since, and nobody needs it any more.
    Stale,
}

/// Where the thinking about a plan stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Goals in all.
    pub goals: usize,
    /// Goals that were broken down.
    pub decomposed: usize,
    /// Goals that are small enough, and tasks that nobody has to think about: those of machines, and those that have begun.
    pub atomic: usize,
    /// Goals that somebody has to think about still.
    pub open: usize,
    /// Goals that were left as they are.
    pub stopped: Vec<(TaskId, Stopped)>,
}

/// Children that are not in the plan yet: their dependencies are being asked for.
#[derive(Clone, Debug)]
pub(super) struct PendingSubtasks {
    pub(super) children: Vec<TaskSpec>,
    pub(super) reasoning: String,
}

/// The command that notes how far the thinking has come; none if that stands there already.
pub(super) fn marked(task: &Task, refinement: Refinement, reasoning: &str) -> Option<Command> {
    let reasoning = cut(reasoning, REASONING_BYTES_MAX);
    let thinking = task.spec.thinking.as_ref();
    let stands = thinking.is_some_and(|thinking| {
        thinking.refinement == Some(refinement) && thinking.reasoning.as_deref() == Some(&reasoning)
    });
    let task = task.spec.id.clone();
    (!stands).then_some(Command::RefineTask { task, refinement, reasoning: Some(reasoning), tokens: 0 })
}

/// The reasons that stand on a goal.
pub(super) fn reasoning_of(task: &Task) -> &str {
    task.spec.thinking.as_ref().and_then(|thinking| thinking.reasoning.as_deref()).unwrap_or_default()
}

impl Stopped {
    pub fn hint(&self) -> String {
        match self {
            Self::Bound { bound, .. } => format!("raise {bound} and continue"),
            Self::GivenUp { .. } => {
                "reword the goal or roll it back, then continue; or break it down by hand".to_owned()
            }
        }
    }
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bound { bound, max } => write!(f, "not broken down: {bound} is {max}"),
            Self::GivenUp { why } => write!(f, "given up: {why}"),
        }
    }
}

/// A session that breaks goals down.
#[derive(Clone, Debug, Default)]
pub struct Decompose {
    pub(super) manner: PromptPolicy,
    pub(super) bounds: Bounds,
    pub(super) refining: Refining,
    /// The goal below which everything is looked at; none: the whole plan.
    pub(super) scope: Option<TaskId>,
    pub(super) held: BTreeMap<TaskId, PendingSubtasks>,
    pub(super) refined: BTreeSet<TaskId>,
    pub(super) stopped: BTreeMap<TaskId, Stopped>,
    /// Questions whose answers were returned, by their first slot.
    pub(super) tries: BTreeMap<String, Tries>,
}

impl Decompose {
    /// A session over the whole plan, or over a goal and what lies below it.
    pub fn new(manner: PromptPolicy, bounds: Bounds, refining: Refining, scope: Option<TaskId>) -> Self {
        let children_max = bounds.children_max.clamp(2, CHILDREN_LIMIT);
        let children_min = bounds.children_min.clamp(2, children_max);
        let bounds =
            Bounds { children_min, children_max, parallel_max: bounds.parallel_max.max(1), ..bounds };
        Self { manner, bounds, refining, scope, ..Self::default() }
    }

    /// Goals of the plan, with those that will be in it as soon as their dependencies are known.
    pub(super) fn goals(&self, plan: &Plan) -> usize {
        plan.len() + self.held.values().map(|held| held.children.len()).sum::<usize>()
    }

    /// The bound that keeps a goal at this depth from being broken down, if one does.
    pub(super) fn bound_at(&self, depth: usize, goals: usize) -> Option<Stopped> {
        let bounds = &self.bounds;
        if depth >= bounds.depth_max {
            return Some(Stopped::Bound { bound: Bound::Depth, max: bounds.depth_max });
        }
        if goals + bounds.children_min > bounds.goals_max {
            return Some(Stopped::Bound { bound: Bound::Goals, max: bounds.goals_max });
        }
        None
    }
}
