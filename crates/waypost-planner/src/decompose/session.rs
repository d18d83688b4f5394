//! The state of a decomposition session, its limits and its results.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{Command, Plan, Refinement, Task, TaskId, TaskSpec};

use crate::PromptPolicy;
use crate::budget::Bound;
use crate::prompting::Tries;
use crate::repair::Repair;
use crate::similarity::cut;

/// Prefix of the reasoning of a goal that was given up.
pub const GIVEN_UP: &str = "Given up: ";

/// Prefix of the reasoning of a goal that was added by a refinement.
pub const ADDED: &str = "Added: ";

/// Maximum size of the reasoning stored on a goal in bytes.
pub const REASONING_BYTES_MAX: usize = 4_000;

/// Upper limit of `children_max`.
pub const CHILDREN_LIMIT: usize = 100;

/// Limits on decomposition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Goals with this many ancestors are not decomposed.
    pub depth_max: usize,
    /// Minimum number of subtasks of a goal.
    pub children_min: usize,
    /// Maximum number of subtasks of a goal.
    pub children_max: usize,
    /// Maximum number of tasks in the plan.
    pub goals_max: usize,
    /// Maximum number of pending requests.
    pub parallel_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { depth_max: 4, children_min: 2, children_max: 7, goals_max: 200, parallel_max: 4 }
    }
}

/// Whether remaining goals are refined after a part was decomposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refining {
    /// Before a goal that depended on siblings is considered, it and its dependants may be changed.
    #[default]
    Rest,
    /// Goals stay as first written.
    Nothing,
}

/// Why a goal that is not atomic is not decomposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A limit prevents it.
    Bound { bound: Bound, max: usize },
    /// No answer was usable, or the plan refused it.
    GivenUp {
        /// The reason, as recorded on the goal.
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct AnswerResult {
    /// The commands to apply, in this order. Applying them twice has no further effect.
    pub commands: Vec<Command>,
    pub kind: AnswerKind,
    pub repairs: Vec<Repair>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The answer was used.
    Taken,
    /// The answer is unusable. The next request of [`Decompose::next`] reports the problems to the model.
    Again {
        /// One sentence each.
        problems: Vec<String>,
    },
    /// The goal is left as it is, and the reason is recorded on it.
    Stopped(Stopped),
    /// No attempt was usable, and planning continues without the answer; `repairs` lists the fallback.
    Without {
        /// The problems of the last answer, one sentence each.
        problems: Vec<String>,
    },
    /// The plan has changed since, and the answer is no longer needed.
    Stale,
}

/// The planning progress of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// All goals in scope.
    pub goals: usize,
    /// Goals that were decomposed.
    pub decomposed: usize,
    /// Goals that are atomic, and tasks that are not planned: tasks with work for a machine, skipped and started ones.
    pub atomic: usize,
    /// Goals with something left to ask.
    pub open: usize,
    /// Goals that were left as they are.
    pub stopped: Vec<(TaskId, Stopped)>,
}

/// Subtasks that are not in the plan yet, because their dependencies are being asked for.
#[derive(Clone, Debug)]
pub(super) struct PendingSubtasks {
    pub(super) children: Vec<TaskSpec>,
    pub(super) reasoning: String,
}

/// The command that records the refinement of a goal; `None` if it is already recorded.
pub(super) fn marked(task: &Task, refinement: Refinement, reasoning: &str) -> Option<Command> {
    let reasoning = cut(reasoning, REASONING_BYTES_MAX);
    let thinking = task.spec.thinking.as_ref();
    let stands = thinking.is_some_and(|thinking| {
        thinking.refinement == Some(refinement) && thinking.reasoning.as_deref() == Some(&reasoning)
    });
    let task = task.spec.id.clone();
    (!stands).then_some(Command::RefineTask { task, refinement, reasoning: Some(reasoning), tokens: 0 })
}

/// The reasoning recorded on a goal.
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

/// A session that decomposes goals.
#[derive(Clone, Debug, Default)]
pub struct Decompose {
    pub(super) manner: PromptPolicy,
    pub(super) bounds: Bounds,
    pub(super) refining: Refining,
    /// The root of the goals in scope; `None` for the whole plan.
    pub(super) scope: Option<TaskId>,
    pub(super) held: BTreeMap<TaskId, PendingSubtasks>,
    pub(super) refined: BTreeSet<TaskId>,
    pub(super) stopped: BTreeMap<TaskId, Stopped>,
    /// Requests with rejected answers, by their first slot.
    pub(super) tries: BTreeMap<String, Tries>,
}

impl Decompose {
    /// A session for the whole plan, or for a goal and everything below it. Limits are clamped to valid values.
    pub fn new(manner: PromptPolicy, bounds: Bounds, refining: Refining, scope: Option<TaskId>) -> Self {
        let children_max = bounds.children_max.clamp(2, CHILDREN_LIMIT);
        let children_min = bounds.children_min.clamp(2, children_max);
        let bounds =
            Bounds { children_min, children_max, parallel_max: bounds.parallel_max.max(1), ..bounds };
        Self { manner, bounds, refining, scope, ..Self::default() }
    }

    /// The number of tasks in the plan, including subtasks whose dependencies are not known yet.
    pub(super) fn goals(&self, plan: &Plan) -> usize {
        plan.len() + self.held.values().map(|held| held.children.len()).sum::<usize>()
    }

    /// The limit that prevents decomposing a goal at this depth, if any.
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
