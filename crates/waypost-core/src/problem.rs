//! Validation problems: one value per problem, with its location and a hint. Decides nothing.

use std::fmt;

use serde::Serialize;

/// The location of a problem in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemLocation {
    /// The plan as a whole.
    Plan,
    /// The task with this id, as written: it may not be a valid id.
    Task(String),
    /// The nth task of the list, counted from 1, for a task without an id.
    TaskNumber(usize),
}

impl fmt::Display for ProblemLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan => f.write_str("plan"),
            Self::Task(id) => write!(f, "task {id}"),
            Self::TaskNumber(number) => write!(f, "task number {number}"),
        }
    }
}

/// The kind of a problem.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProblemKind {
    /// Two tasks have the same id.
    DuplicateId,
    /// The id breaks the rules for ids.
    BadId {
        /// The rule that is broken.
        rule: String,
    },
    /// The task depends on a task that is not in the plan.
    UnknownDependency {
        /// The missing task.
        dependency: String,
        /// The most similar existing id.
        #[serde(skip_serializing_if = "Option::is_none")]
        nearest: Option<String>,
    },
    /// The task depends on an external task that can never exist.
    #[serde(rename = "never_elsewhere")]
    ImpossibleExternal {
        /// The external task, as the dependency names it.
        dependency: String,
        /// Why it can never exist.
        why: String,
    },
    /// The task depends on itself.
    SelfDependency,
    /// Tasks wait for each other.
    Cycle {
        /// The path of the cycle; the first task is repeated at the end.
        path: Vec<String>,
    },
    /// The task's parent is not in the plan.
    OrphanParent {
        /// The missing parent.
        parent: String,
    },
    /// The task lists a child that is not in the plan, or that names another parent.
    DanglingChild {
        /// The id of the child.
        child: String,
    },
    /// Parents form a cycle.
    ParentCycle {
        /// The path of the cycle; the first task is repeated at the end.
        path: Vec<String>,
    },
    /// The written depth is not the depth in the tree.
    WrongDepth {
        /// The written depth.
        written: i64,
        /// The actual depth.
        actual: usize,
    },
    /// A task with children has work of its own.
    WorkOnParent,
    /// A value has the wrong type.
    WrongType {
        /// The name of the field.
        field: String,
        /// The expected type and the value found.
        detail: String,
    },
    /// A required field is missing.
    Missing {
        /// The name of the field.
        field: String,
    },
    /// The configuration has no such executor.
    UnknownExecutor {
        /// The name of the executor.
        executor: String,
    },
    /// The configuration has no such queue.
    UnknownQueue {
        /// The name of the queue.
        queue: String,
    },
    /// The configuration has no such shape.
    UnknownShape {
        /// The name of the shape.
        shape: String,
    },
    /// The inputs do not match their shape.
    InputsDoNotFit {
        /// The name of the shape.
        shape: String,
        /// The location of the mismatch, and why.
        detail: String,
    },
    /// The task names the same lock twice.
    DuplicateLock {
        /// The key of the lock.
        key: String,
    },
    /// A value exceeds its limit.
    OverLimit {
        /// The limited quantity.
        what: String,
        /// The actual value.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// A problem that is specific to one format.
    Format {
        /// A description of the problem.
        detail: String,
    },
}

/// One problem of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The location of the problem.
    pub place: ProblemLocation,
    /// The kind of the problem.
    #[serde(flatten)]
    pub wrong: ProblemKind,
}

impl Problem {
    /// Creates a problem of the plan as a whole.
    pub fn plan(wrong: ProblemKind) -> Self {
        Self { place: ProblemLocation::Plan, wrong }
    }

    /// Creates a problem of one task.
    pub fn task(id: impl fmt::Display, wrong: ProblemKind) -> Self {
        Self { place: ProblemLocation::Task(id.to_string()), wrong }
    }

    /// Returns what to do about the problem.
    pub fn hint(&self) -> String {
        match &self.wrong {
            ProblemKind::DuplicateId => "give one of them another id".into(),
            ProblemKind::BadId { .. } => "choose an id such as t1 or build-api".into(),
            ProblemKind::UnknownDependency { nearest: Some(near), .. } => format!("did you mean {near}?"),
            ProblemKind::UnknownDependency { .. } => "add that task, or take it out of depends_on".into(),
            ProblemKind::ImpossibleExternal { .. } => {
                "name a task that is there or may yet be, or leave it out".into()
            }
            ProblemKind::SelfDependency => "take its own id out of depends_on".into(),
            ProblemKind::Cycle { .. } => "remove one of these dependencies".into(),
            ProblemKind::OrphanParent { .. } => "add the parent, or leave `parent` out".into(),
            ProblemKind::DanglingChild { .. } => {
                "add the child with this task as its parent, or take it off the list".into()
            }
            ProblemKind::ParentCycle { .. } => "give one of them no parent".into(),
            ProblemKind::WrongDepth { actual, .. } => format!("write {actual}, or leave the depth out"),
            ProblemKind::WorkOnParent => "move the work into a child".into(),
            ProblemKind::WrongType { .. } => "write a value of the expected type".into(),
            ProblemKind::Missing { field } => format!("add `{field}`"),
            ProblemKind::UnknownExecutor { .. } => {
                "name an executor of the configuration, or configure this one".into()
            }
            ProblemKind::UnknownQueue { .. } => {
                "name a queue of the configuration, or configure this one".into()
            }
            ProblemKind::UnknownShape { .. } => {
                "name a shape of the configuration, or configure this one".into()
            }
            ProblemKind::InputsDoNotFit { .. } => {
                "change the inputs so that they fit the shape's schema".into()
            }
            ProblemKind::DuplicateLock { .. } => "name each lock once".into(),
            ProblemKind::OverLimit { max, .. } => format!("stay within {max}"),
            ProblemKind::Format { .. } => "correct the file".into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.wrong)
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateId => f.write_str("another task has the same id"),
            Self::BadId { rule } => write!(f, "the id cannot be used: {rule}"),
            Self::UnknownDependency { dependency, .. } => write!(f, "depends on unknown task {dependency}"),
            Self::ImpossibleExternal { dependency, why } => {
                write!(f, "depends on {dependency}, which can never be: {why}")
            }
            Self::SelfDependency => f.write_str("depends on itself"),
            Self::Cycle { path } => write!(f, "tasks depend on each other: {}", path.join(" → ")),
            Self::OrphanParent { parent } => write!(f, "its parent {parent} is not in the plan"),
            Self::DanglingChild { child } => write!(f, "lists {child} as a child, which is not one"),
            Self::ParentCycle { path } => write!(f, "parents form a ring: {}", path.join(" → ")),
            Self::WrongDepth { written, actual } => {
                write!(f, "says depth {written}, but stands at depth {actual}")
            }
            Self::WorkOnParent => f.write_str("has children and work of its own"),
            Self::WrongType { field, detail } => write!(f, "`{field}` has the wrong type: {detail}"),
            Self::Missing { field } => write!(f, "`{field}` is missing"),
            Self::UnknownExecutor { executor } => write!(f, "no executor is called {executor}"),
            Self::UnknownQueue { queue } => write!(f, "no queue is called {queue}"),
            Self::UnknownShape { shape } => write!(f, "no shape is called {shape}"),
            Self::InputsDoNotFit { shape, detail } => write!(f, "inputs do not fit shape {shape}: {detail}"),
            Self::DuplicateLock { key } => write!(f, "names lock {key} twice"),
            Self::OverLimit { what, found, max } => write!(f, "{what}: {found} is over the limit of {max}"),
            Self::Format { detail } => f.write_str(detail),
        }
    }
}
