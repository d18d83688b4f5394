//! Goals broken down until every leaf is small enough: what to ask now, and what the answers mean for the plan.
//!
//! What is open follows from the plan; the session remembers only answers that are not in the plan yet (children whose
//! dependencies are still asked for, answers that were returned). Whoever keeps the answers by their slots can begin again with
//! the plan alone. Commands carry no tokens: whoever drives the session charges each answer once.

mod atomicity;
mod children;
mod context;
mod rest;
mod siblings;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{Command, Plan, Refinement, Task, TaskId, TaskSpec};

use crate::budget::Bound;
use crate::manner::{Tries, cut_first, slot_name};
use crate::repair::Repair;
use crate::words::cut;
use crate::{Answer, Ask, Manner, Purpose};
use view::{Stage, View};

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
    Bound {
        /// Which.
        bound: Bound,
        /// What it is set to.
        max: usize,
    },
    /// No answer could be used, or the plan would not take it.
    GivenUp {
        /// Why, as it stands on the goal.
        why: String,
    },
}

/// What came of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// What the plan is to be told, in this order; all of it can be told twice.
    pub commands: Vec<Command>,
    /// What the answer was.
    pub meaning: Meaning,
    /// What had to be put right in it.
    pub repairs: Vec<Repair>,
}

/// What an answer was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
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
struct Held {
    children: Vec<TaskSpec>,
    reasoning: String,
}

/// A session that breaks goals down.
#[derive(Clone, Debug)]
pub struct Decompose {
    manner: Manner,
    bounds: Bounds,
    refining: Refining,
    /// The goal below which everything is looked at; none: the whole plan.
    scope: Option<TaskId>,
    held: BTreeMap<TaskId, Held>,
    refined: BTreeSet<TaskId>,
    stopped: BTreeMap<TaskId, Stopped>,
    /// Questions whose answers were returned, by their first slot.
    tries: BTreeMap<String, Tries>,
}

impl Decompose {
    /// A session over the whole plan, or over a goal and what lies below it.
    pub fn new(manner: Manner, bounds: Bounds, refining: Refining, scope: Option<TaskId>) -> Self {
        let children_max = bounds.children_max.clamp(2, CHILDREN_LIMIT);
        let children_min = bounds.children_min.clamp(2, children_max);
        let bounds =
            Bounds { children_min, children_max, parallel_max: bounds.parallel_max.max(1), ..bounds };
        Self {
            manner,
            bounds,
            refining,
            scope,
            held: BTreeMap::new(),
            refined: BTreeSet::new(),
            stopped: BTreeMap::new(),
            tries: BTreeMap::new(),
        }
    }

    /// Every question that can be asked now, at most `parallel_max`. Questions that are under way are among them; a question is
    /// known by its slot. None: there is nothing left to ask.
    pub fn next(&self, plan: &Plan) -> Vec<Ask> {
        let view = View::of(self, plan);
        view.open()
            .take(self.bounds.parallel_max)
            .map(|(task, stage)| self.question(plan, task, stage))
            .collect()
    }

    /// Whether there is nothing left to ask.
    pub fn is_over(&self, plan: &Plan) -> bool {
        View::of(self, plan).open().next().is_none()
    }

    /// Where the thinking stands.
    pub fn progress(&self, plan: &Plan) -> Progress {
        View::of(self, plan).progress()
    }

    /// What an answer means for the plan as it is now.
    pub fn hear(&mut self, plan: &Plan, ask: &Ask, answer: &Answer) -> Heard {
        let stale = Heard { commands: Vec::new(), meaning: Meaning::Stale, repairs: Vec::new() };
        let Some(task) = ask.task.as_ref().and_then(|id| plan.task(id.as_str())) else { return stale };
        let stage = View::of(self, plan).stage_of(&task.spec.id);
        let slot = first_slot(ask.purpose, &task.spec.id);
        let open = self.tries.get(&slot).map_or(&slot, |tries| &tries.open.slot);
        if stage.is_none_or(|stage| stage.purpose() != ask.purpose) || *open != ask.slot {
            return stale;
        }
        self.tries.entry(slot.clone()).or_insert_with(|| Tries::new(ask.clone()));
        let heard = match ask.purpose {
            Purpose::Atomicity => self.hear_atomicity(plan, task, answer),
            Purpose::Decompose => self.hear_children(plan, task, answer),
            Purpose::Dependencies => self.hear_dependencies(plan, task, answer),
            Purpose::Refine => self.hear_rest(plan, task, answer),
            Purpose::Generate | Purpose::Digest | Purpose::Examine | Purpose::Sit | Purpose::Mark => {
                return stale;
            }
        };
        match heard {
            Ok(heard) => {
                self.tries.remove(&slot);
                heard
            }
            Err(problems) => self.unusable(task, ask, answer, cut_first(answer, problems)),
        }
    }

    /// The plan did not take what an answer had led to: the goal is left as it is, in this session.
    pub fn refused(&mut self, task: &TaskId, why: &str) {
        self.held.remove(task);
        let why = format!("the plan did not take it: {why}");
        self.stopped.insert(task.clone(), Stopped::GivenUp { why });
    }

    /// An answer that cannot be used: asked again, or the end of asking.
    fn unusable(&mut self, task: &Task, ask: &Ask, answer: &Answer, problems: Vec<String>) -> Heard {
        let id = &task.spec.id;
        let slot = first_slot(ask.purpose, id);
        let tries = self.tries.entry(slot.clone()).or_insert_with(|| Tries::new(ask.clone()));
        if tries.failed(&self.manner, answer, &problems) {
            return Heard { commands: Vec::new(), meaning: Meaning::Again { problems }, repairs: Vec::new() };
        }
        let asked = tries.answers.len();
        self.tries.remove(&slot);
        match ask.purpose {
            Purpose::Dependencies => self.without_dependencies(task, problems),
            Purpose::Refine => {
                self.refined.insert(id.clone());
                Heard { commands: Vec::new(), meaning: Meaning::Without { problems }, repairs: Vec::new() }
            }
            purpose => {
                let problems = problems.join("; ");
                let why = format!(
                    "none of {asked} answers on its {} could be used; the last: {problems}",
                    purpose.name()
                );
                let reasoning = format!("{GIVEN_UP}{why}");
                let commands = marked(task, Refinement::Decomposing, &reasoning).into_iter().collect();
                let stopped = Stopped::GivenUp { why };
                self.stopped.insert(id.clone(), stopped.clone());
                Heard { commands, meaning: Meaning::Stopped(stopped), repairs: Vec::new() }
            }
        }
    }

    /// Goals of the plan, with those that will be in it as soon as their dependencies are known.
    fn goals(&self, plan: &Plan) -> usize {
        plan.len() + self.held.values().map(|held| held.children.len()).sum::<usize>()
    }

    /// The bound that keeps a goal at this depth from being broken down, if one does.
    fn bound_at(&self, depth: usize, goals: usize) -> Option<Stopped> {
        let bounds = &self.bounds;
        if depth >= bounds.depth_max {
            return Some(Stopped::Bound { bound: Bound::Depth, max: bounds.depth_max });
        }
        if goals + bounds.children_min > bounds.goals_max {
            return Some(Stopped::Bound { bound: Bound::Goals, max: bounds.goals_max });
        }
        None
    }

    fn question(&self, plan: &Plan, task: &Task, stage: Stage) -> Ask {
        let id = &task.spec.id;
        let slot = first_slot(stage.purpose(), id);
        match self.tries.get(&slot) {
            Some(tries) => tries.open.clone(),
            None => {
                let values = match stage {
                    Stage::Atomicity => self.atomicity_values(plan, task),
                    Stage::Decompose => self.children_values(plan, task),
                    Stage::Dependencies => self.siblings_values(plan, task),
                    Stage::Refine => self.rest_values(plan, task),
                };
                self.manner.ask(stage.purpose(), Some(id.clone()), slot, &values)
            }
        }
    }
}

/// The slot of the first question about a goal for a purpose.
fn first_slot(purpose: Purpose, id: &TaskId) -> String {
    format!("{}/{}", purpose.name(), slot_name(id))
}

/// The command that notes how far the thinking has come; none if that stands there already.
fn marked(task: &Task, refinement: Refinement, reasoning: &str) -> Option<Command> {
    let reasoning = cut(reasoning, REASONING_BYTES_MAX);
    let thinking = task.spec.thinking.as_ref();
    let stands = thinking.is_some_and(|thinking| {
        thinking.refinement == Some(refinement) && thinking.reasoning.as_deref() == Some(&reasoning)
    });
    let task = task.spec.id.clone();
    (!stands).then_some(Command::RefineTask { task, refinement, reasoning: Some(reasoning), tokens: 0 })
}

/// The reasons that stand on a goal.
fn reasoning_of(task: &Task) -> &str {
    task.spec.thinking.as_ref().and_then(|thinking| thinking.reasoning.as_deref()).unwrap_or_default()
}

impl Stopped {
    /// What to do about it.
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
