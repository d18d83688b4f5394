//! The results of reading and writing a text: drafts, problems, losses, errors. Knows no format.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use waypost_core::{Draft, PlanId, Problem, ProblemKind, TaskId};

use crate::Dialect;

/// The result of reading a text.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The format that the text was read as.
    pub dialect: Dialect,
    /// The plans in the text, in order.
    pub drafts: Vec<Draft>,
    /// Problems of the text in its format (types, missing fields, contradictions).
    pub problems: Vec<Problem>,
    /// Notes for a person that are not errors.
    pub notes: Vec<String>,
    /// Values that were understood, but are not kept as they are written.
    pub inexact: Vec<Problem>,
    /// Ids that the reader assigned to tasks without one. In an existing plan they may belong to other tasks: see
    /// [`crate::fit_to_plan`].
    pub assigned_ids: HashSet<TaskId>,
    /// Ids of plans whose file names none. They follow from the content, so they do not say that a text is of another plan.
    pub derived_ids: HashSet<PlanId>,
}

impl Reading {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let (drafts, problems, notes) = (Vec::new(), Vec::new(), Vec::new());
        let (assigned_ids, derived_ids) = (HashSet::new(), HashSet::new());
        Self { dialect, drafts, problems, notes, inexact: Vec::new(), assigned_ids, derived_ids }
    }

    /// Adds the plans of another text of the same format.
    pub(crate) fn append(&mut self, other: Self) {
        let Self { dialect: _, drafts, problems, notes, inexact, assigned_ids, derived_ids } = other;
        self.drafts.extend(drafts);
        self.problems.extend(problems);
        self.notes.extend(notes);
        self.inexact.extend(inexact);
        self.assigned_ids.extend(assigned_ids);
        self.derived_ids.extend(derived_ids);
    }

    /// Tells values that are only inexact apart from problems.
    pub(crate) fn part_inexact(mut self) -> Self {
        let is_inexact = |problem: &Problem| matches!(problem.wrong, ProblemKind::Inexact { .. });
        let (inexact, problems) = self.problems.into_iter().partition(is_inexact);
        self.problems = problems;
        self.inexact.extend::<Vec<Problem>>(inexact);
        self
    }
}

/// A field that a format could not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Loss {
    /// The task; `None` for the plan itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The field's name in Waypost.
    pub field: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.task {
            Some(task) => write!(f, "task {task}: {}", self.field),
            None => write!(f, "plan: {}", self.field),
        }
    }
}

/// The result of writing a draft.
#[derive(Clone, Debug)]
pub struct Writing {
    pub text: String,
    /// The fields that the text does not hold.
    pub losses: Vec<Loss>,
}

/// Why a text cannot be read or written at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// No format was detected.
    #[error("this is not a plan in any format that Waypost knows")]
    UnknownFormat,
    /// The text is not valid JSON.
    #[error("line {line}, column {column}: {detail}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        detail: String,
    },
    #[error("{0} can be written but not read")]
    WriteOnly(Dialect),
    #[error("{0} can be read but not written")]
    ReadOnly(Dialect),
    /// Nothing in the text is a plan.
    #[error("{0}")]
    NoPlan(String),
}
