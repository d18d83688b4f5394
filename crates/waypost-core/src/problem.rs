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

/// The kind of a problem, with its facts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProblemKind {
    /// Another task has the same id.
    #[error("another task has the same id")]
    DuplicateId,
    /// The id is not valid.
    #[error("the id cannot be used: {rule}")]
    BadId {
        /// The rule that is broken.
        rule: String,
    },
    /// The task depends on a task that is not in the plan.
    #[error("depends on unknown task {dependency}")]
    UnknownDependency {
        /// The missing task.
        dependency: String,
        /// The most similar existing id.
        #[serde(skip_serializing_if = "Option::is_none")]
        nearest: Option<String>,
    },
    /// The task depends on an external task that can never exist.
    #[serde(rename = "never_elsewhere")]
    #[error("depends on {dependency}, which can never be: {why}")]
    ImpossibleExternal {
        /// The external task, as the dependency names it.
        dependency: String,
        /// Why it can never exist.
        why: String,
    },
    /// The task depends on itself.
    #[error("depends on itself")]
    SelfDependency,
    /// Tasks depend on each other in a cycle.
    #[error("tasks depend on each other: {}", path_text(path))]
    Cycle {
        /// The path of the cycle; the first task is repeated at the end.
        path: Vec<String>,
    },
    /// The task's parent is not in the plan.
    #[error("its parent {parent} is not in the plan")]
    OrphanParent {
        /// The missing parent.
        parent: String,
    },
    /// The task lists a child that is not in the plan, or that names another parent.
    #[error("lists {child} as a child, which is not one")]
    DanglingChild {
        /// The id of the child.
        child: String,
    },
    /// Parents form a cycle.
    #[error("parents form a ring: {}", path_text(path))]
    ParentCycle {
        /// The path of the cycle; the first task is repeated at the end.
        path: Vec<String>,
    },
    /// The written depth differs from the depth in the tree.
    #[error("has depth {written}, but its parents put it at depth {actual}")]
    WrongDepth {
        /// The written depth.
        written: i64,
        /// The actual depth.
        actual: usize,
    },
    /// A task with children has work of its own.
    #[error("has both children and work")]
    WorkOnParent,
    /// A value has the wrong type.
    #[error("`{field}` has the wrong type: {detail}")]
    WrongType {
        /// The name of the field.
        field: String,
        /// The expected type and the value found.
        detail: String,
    },
    /// A required field is missing.
    #[error("`{field}` is missing")]
    Missing {
        /// The name of the field.
        field: String,
    },
    /// A text that has to say something is empty.
    #[error("{what} is empty")]
    Empty {
        /// The text, such as `the question`.
        what: String,
    },
    /// The plan names an executor that the configuration does not have.
    #[error("no executor is called {executor}")]
    UnknownExecutor {
        /// The name of the executor.
        executor: String,
    },
    /// The plan names a queue that the configuration does not have.
    #[error("no queue is called {queue}")]
    UnknownQueue {
        /// The name of the queue.
        queue: String,
    },
    /// The plan names a shape that the configuration does not have.
    #[error("no shape is called {shape}")]
    UnknownShape {
        /// The name of the shape.
        shape: String,
    },
    /// The inputs do not fit their shape.
    #[error("inputs do not fit shape {shape}: {detail}")]
    InputsDoNotFit {
        /// The name of the shape.
        shape: String,
        /// The location of the mismatch, and why.
        detail: String,
    },
    /// The task names a lock twice.
    #[error("names lock {key} twice")]
    DuplicateLock {
        /// The key of the lock.
        key: String,
    },
    /// A value exceeds its limit.
    #[error("{what}: {found} is over the limit of {max}")]
    OverLimit {
        /// The limited quantity.
        what: String,
        /// The actual value.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// The task is to be placed before or after itself.
    #[error("cannot be placed next to itself")]
    BesideItself,
    /// A problem specific to one format.
    #[error("{detail}")]
    Format {
        /// A description of the problem.
        detail: String,
    },
    /// The text is of a later version of its format.
    #[error("its format has version {version}, and this Waypost reads version {known}")]
    LaterVersion {
        /// The version that the text names.
        version: String,
        /// The latest version that can be read.
        known: String,
    },
    /// A value that is understood, but not stored as it is written. Only an exact import refuses it.
    #[error("`{field}` is {found}, which is read as {read}")]
    Inexact {
        /// The name of the field.
        field: String,
        /// The value in the text.
        found: String,
        /// What it counts as.
        read: String,
    },
}

/// Joins the names on a path. Of a long one, the middle is left out.
fn path_text(path: &[String]) -> String {
    const NAMES_MAX: usize = 12;
    const NAMES_LAST: usize = 3;
    match path.len() {
        0..=NAMES_MAX => path.join(" → "),
        count => {
            let (first, last) = (&path[..NAMES_MAX - NAMES_LAST], &path[count - NAMES_LAST..]);
            format!("{} → … {} more … → {}", first.join(" → "), count - NAMES_MAX, last.join(" → "))
        }
    }
}

/// One problem of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, thiserror::Error)]
#[error("{place}: {wrong}")]
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
            ProblemKind::Empty { what } => format!("write {what}"),
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
            ProblemKind::BesideItself => "name another task".into(),
            ProblemKind::Format { .. } => "correct it".into(),
            ProblemKind::LaterVersion { known, .. } => {
                format!("update Waypost, or save the plan in version {known}")
            }
            ProblemKind::Inexact { read, .. } => format!("write {read}"),
        }
    }
}
