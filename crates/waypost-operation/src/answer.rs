//! Answers to conflicts: the actions of the one record that settles a question.

use serde_json::Value;

use crate::action::{Action, ListField};
use crate::field::Field;
use crate::ids::RecordId;
use crate::merge::{AnswerKind, Conflict, ConflictKind, VersionValue};
use crate::set::OperationSet;

/// An answer to a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What this record says.
    Take(RecordId),
    /// Another text.
    Text(String),
    /// Nothing is removed.
    Keep,
    /// It is removed all the same.
    Remove,
    /// What was set aside is dropped; a task with several outcomes is done again.
    Dismiss,
}

impl Answer {
    /// Returns the way in which it answers.
    pub fn kind(&self) -> AnswerKind {
        match self {
            Self::Take(_) => AnswerKind::Take,
            Self::Text(_) => AnswerKind::Text,
            Self::Keep => AnswerKind::Keep,
            Self::Remove => AnswerKind::Remove,
            Self::Dismiss => AnswerKind::Dismiss,
        }
    }
}

/// Why an answer does not fit a conflict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The conflict cannot be answered in this way.
    #[error("a question about {subject} cannot be answered like that")]
    WrongKind {
        /// What the conflict is about.
        subject: String,
    },
    /// A task needs a description.
    #[error("{subject} cannot be empty")]
    Empty {
        /// What the conflict is about.
        subject: String,
    },
    /// None of the versions is from this record.
    #[error("none of the versions of {subject} is from record {record}")]
    NoSuchVersion {
        /// What the conflict is about.
        subject: String,
        /// The record.
        record: RecordId,
    },
}

/// Returns the actions of a record that answers a conflict: make it with [`OperationSet::record`].
pub fn answer(set: &OperationSet, conflict: &Conflict, answer: &Answer) -> Result<Vec<Action>, AnswerError> {
    let subject = conflict.subject.clone();
    if !conflict.answers.contains(&answer.kind()) {
        return Err(AnswerError::WrongKind { subject });
    }
    let task = conflict.key.as_ref().map(|key| set.reference(key));
    let mut over: Vec<RecordId> = conflict.actions.iter().map(|action| action.record).collect();
    over.sort_unstable();
    over.dedup();
    let wrong = || AnswerError::WrongKind { subject: subject.clone() };
    let taken = |record: &RecordId| {
        let version = conflict.versions.iter().find(|version| version.record == *record);
        version.ok_or_else(|| AnswerError::NoSuchVersion { subject: subject.clone(), record: *record })
    };
    let action = match (&conflict.kind, answer) {
        (ConflictKind::Field(field), Answer::Take(record)) => match &taken(record)?.to {
            VersionValue::Field(to) => {
                let to = set.reread(field, to, *record);
                Action::Set { task, field: field.clone(), to, over }
            }
            VersionValue::Outcome { .. } | VersionValue::Shown => return Err(wrong()),
        },
        (ConflictKind::Field(Field::Description), Answer::Text(text)) if text.trim().is_empty() => {
            return Err(AnswerError::Empty { subject });
        }
        (ConflictKind::Field(field), Answer::Text(text)) => {
            Action::Set { task, field: field.clone(), to: Value::from(text.as_str()), over }
        }
        (ConflictKind::Outcome, Answer::Take(record)) => match &taken(record)?.to {
            VersionValue::Outcome { outcome, text, output } => Action::Report {
                task: task.ok_or_else(wrong)?,
                outcome: *outcome,
                text: text.clone(),
                output: output.clone(),
                evidence: None,
                over,
            },
            VersionValue::Field(_) | VersionValue::Shown => return Err(wrong()),
        },
        (ConflictKind::Outcome, Answer::Dismiss) => Action::Retry { task: task.ok_or_else(wrong)?, over },
        (ConflictKind::Removal | ConflictKind::Delete | ConflictKind::Archive, Answer::Keep) => {
            Action::Dismiss { over: conflict.actions.clone() }
        }
        (ConflictKind::Removal, Answer::Remove) => {
            let tasks = conflict.guarded.iter().map(|key| set.reference(key)).collect();
            Action::Remove { tasks, over: set.waiting_about(&conflict.guarded) }
        }
        (ConflictKind::Delete | ConflictKind::Archive, Answer::Remove) => {
            match set.action(conflict.actions[0]) {
                Some(Action::Set { field, to, .. }) => {
                    Action::Set { task: None, field: field.clone(), to: to.clone(), over }
                }
                _ => Action::Delete {},
            }
        }
        (ConflictKind::Dependency, Answer::Dismiss) => Action::Exclude {
            task: task.ok_or_else(wrong)?,
            list: ListField::DependsOn,
            item: conflict.item.clone().ok_or_else(wrong)?,
            over,
        },
        (ConflictKind::Parent, Answer::Dismiss) => {
            let to = conflict.item.clone().unwrap_or(Value::Null);
            Action::Set { task, field: Field::Parent, to, over }
        }
        (ConflictKind::WorkOfGroup, Answer::Dismiss) => {
            Action::Set { task, field: Field::Work, to: Value::Null, over }
        }
        (
            ConflictKind::Field(_)
            | ConflictKind::Outcome
            | ConflictKind::Removal
            | ConflictKind::Dependency
            | ConflictKind::Parent
            | ConflictKind::WorkOfGroup
            | ConflictKind::Delete
            | ConflictKind::Archive,
            _,
        ) => return Err(wrong()),
    };
    Ok(vec![action])
}
