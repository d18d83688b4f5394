//! What reading and writing a text result in: drafts, problems, losses, errors. Does not know any format.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use waypost_core::{Draft, Problem, TaskId};

use crate::Dialect;

/// What a reader made of a text.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The format that it was read as.
    pub dialect: Dialect,
    /// The plans in it, in their order.
    pub drafts: Vec<Draft>,
    /// What is wrong with the text as a text of its format (types, missing fields, contradictions).
    pub problems: Vec<Problem>,
    /// What a person should know although it is not wrong.
    pub notes: Vec<String>,
    /// Ids that the reader gave to tasks for which the text has none. In a plan that exists already they may belong to
    /// other tasks: see [`crate::fit_to_plan`].
    pub assigned_ids: HashSet<TaskId>,
}

impl Reading {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let (drafts, problems, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { dialect, drafts, problems, notes, assigned_ids: HashSet::new() }
    }
}

/// Something that a format could not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Loss {
    /// The task, or nothing for the plan itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The field, in Waypost's words.
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

/// What a writer made of a draft.
#[derive(Clone, Debug)]
pub struct Writing {
    pub text: String,
    /// What it could not hold.
    pub losses: Vec<Loss>,
}

/// A text that cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Nothing tells which format it is.
    #[error("this is not a plan in any format that Waypost knows")]
    UnknownFormat,
    /// It is not even JSON.
    #[error("line {line}, column {column}: {detail}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        detail: String,
    },
    /// The format cannot be read, only written.
    #[error("{0} can be written but not read")]
    WriteOnly(Dialect),
    /// The format cannot be written, only read.
    #[error("{0} can be read but not written")]
    ReadOnly(Dialect),
    /// Nothing in it is a plan.
    #[error("{0}")]
    NoPlan(String),
}
