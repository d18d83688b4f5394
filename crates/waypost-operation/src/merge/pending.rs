//! Questions while the plan is being merged: tasks have numbers, and no names yet.

use serde_json::Value;

use super::result::{AnswerKind, Conflict, ConflictKind, ConflictVersion, VersionValue, who};
use crate::action::ActionRef;
use crate::ids::{RecordId, TaskRef};
use crate::record::Record;
use crate::set::TaskKey;
use waypost_core::TaskId;
use waypost_text::count;

/// One side of a question.
pub(super) struct Side<'a> {
    pub(super) record: &'a Record,
    pub(super) to: VersionValue,
    /// What it did, where that is no value.
    pub(super) act: Option<SideAct>,
}

/// What one side did, with `{}` for each task.
pub(super) struct SideAct {
    pub(super) words: String,
    pub(super) tasks: Vec<u32>,
}

impl SideAct {
    pub(super) fn new(words: impl Into<String>, tasks: impl IntoIterator<Item = u32>) -> Self {
        Self { words: words.into(), tasks: tasks.into_iter().collect() }
    }

    fn named(&self, name: impl Fn(u32) -> String) -> String {
        let mut tasks = self.tasks.iter();
        let mut parts = self.words.split("{}");
        let first = parts.next().unwrap_or_default().to_owned();
        parts
            .fold(first, |text, part| text + &tasks.next().map(|&task| name(task)).unwrap_or_default() + part)
    }
}

/// A question.
pub(super) struct Pending<'a> {
    pub(super) task: Option<u32>,
    pub(super) kind: ConflictKind,
    pub(super) sides: Vec<Side<'a>>,
    pub(super) shown: Option<usize>,
    pub(super) answers: &'static [AnswerKind],
    /// Tasks that wait for each other, or that would be removed.
    pub(super) tasks: Vec<u32>,
    pub(super) item: Option<Value>,
    pub(super) actions: Vec<ActionRef>,
    /// The record that something does not go with.
    pub(super) by: Option<&'a Record>,
    /// Of a removal, how many records its author had not seen.
    pub(super) unseen: usize,
}

impl Pending<'_> {
    /// Names the tasks. `names` are by number; a task that is not in the plan has none.
    pub(super) fn named(self, names: &[Option<TaskId>], keys: &[TaskKey]) -> Conflict {
        let name = |task: u32| {
            names[task as usize]
                .as_ref()
                .map_or_else(|| keys[task as usize].name.to_string(), ToString::to_string)
        };
        let who = |record: &Record| who(record.by(), record.from());
        let path: Vec<String> = self.tasks.iter().map(|&task| name(task)).collect();
        let first = self.sides.first().map(|side| who(side.record)).unwrap_or_default();
        let other = self.by.map(who);
        let did = |side: &Side<'_>| side.act.as_ref().map(|act| act.named(name)).unwrap_or_default();
        let with = other.as_ref().map(|by| format!(" with what {by} did")).unwrap_or_default();
        let text = match &self.kind {
            ConflictKind::Field(field) => {
                let mut writers: Vec<String> = self.sides.iter().map(|side| who(side.record)).collect();
                writers.dedup();
                format!("{} set {field} to different values", writers.join(" and "))
            }
            ConflictKind::Outcome => {
                let ends = self.sides.iter().map(|side| match &side.to {
                    VersionValue::Outcome { outcome, .. } => {
                        format!("{} says {}", who(side.record), outcome.as_str())
                    }
                    VersionValue::Field(_) | VersionValue::Shown => who(side.record),
                });
                ends.collect::<Vec<String>>().join(", ")
            }
            ConflictKind::Removal => {
                let by = other.unwrap_or_default();
                let (removed, unseen) = (self.sides.first().map(did), self.sides.get(1).map(did));
                let named = self.sides.first().and_then(|side| side.act.as_ref()).map(|act| &act.tasks);
                let is_below = |task: &&u32| named.is_some_and(|named| !named.contains(*task));
                let below: Vec<String> = self.tasks.iter().filter(is_below).map(|&task| name(task)).collect();
                let also = match below.is_empty() {
                    true => String::new(),
                    false => format!("; to remove it now removes {} as well", below.join(", ")),
                };
                let more = match self.unseen.saturating_sub(1) {
                    0 => String::new(),
                    more => format!(", nor {}", count(more, "more change")),
                };
                format!(
                    "{first} {}, and had not seen that {by} {}{more}; nothing was removed{also}",
                    removed.unwrap_or_default(),
                    unseen.unwrap_or_default()
                )
            }
            ConflictKind::Dependency => {
                format!(
                    "{first} added that {}; that is set aside:{with} tasks would wait for each other: {}",
                    self.sides.first().map(did).unwrap_or_default(),
                    path.join(" → ")
                )
            }
            ConflictKind::Parent if path.is_empty() => {
                format!("the place that {first} gave it lies too deep in the tree")
            }
            ConflictKind::Parent => {
                format!(
                    "the place that {first} gave it is set aside:{with} tasks would wait for each other: {}",
                    path.join(" → ")
                )
            }
            ConflictKind::WorkOfGroup => "it has children, so its own work is set aside".to_owned(),
            ConflictKind::Delete | ConflictKind::Archive => {
                let (deleted, unseen) = (self.sides.first().map(did), self.sides.get(1).map(did));
                let (deleted, unseen) = (deleted.unwrap_or_default(), unseen.unwrap_or_default());
                let by = other.unwrap_or_default();
                format!("{first} {deleted}, and had not seen that {by} {unseen}; the plan stays")
            }
        };
        let value = |to: &VersionValue| match to {
            VersionValue::Field(Value::String(text))
                if self.kind == ConflictKind::Field(crate::field::Field::Parent) =>
            {
                let meant = text.parse::<TaskRef>().ok().and_then(|task| shown_task(&task, names, keys));
                meant.unwrap_or_else(|| text.clone())
            }
            VersionValue::Field(Value::String(text)) => text.clone(),
            VersionValue::Field(Value::Null) => String::new(),
            VersionValue::Field(value) => value.to_string(),
            VersionValue::Outcome { outcome, text, .. } => match text {
                Some(text) => format!("{}: {text}", outcome.as_str()),
                None => outcome.as_str().to_owned(),
            },
            VersionValue::Shown => String::new(),
        };
        let versions = self.sides.iter().map(|side| ConflictVersion {
            record: side.record.id(),
            by: side.record.by().clone(),
            from: side.record.from().clone(),
            at: side.record.at(),
            value: if side.act.is_some() { did(side) } else { value(&side.to) },
            to: side.to.clone(),
        });
        let sides = self.sides.iter().map(|side| side.record);
        Conflict {
            task: self.task.and_then(|task| names[task as usize].clone()),
            subject: self.kind.subject(),
            versions: versions.collect(),
            shown: self.shown,
            answers: self.answers.to_vec(),
            key: self.task.map(|task| keys[task as usize].clone()),
            guarded: match self.kind {
                ConflictKind::Removal | ConflictKind::Dependency | ConflictKind::Parent => {
                    self.tasks.iter().map(|&task| keys[task as usize].clone()).collect()
                }
                ConflictKind::WorkOfGroup => {
                    self.task.iter().map(|&task| keys[task as usize].clone()).collect()
                }
                ConflictKind::Field(_)
                | ConflictKind::Outcome
                | ConflictKind::Delete
                | ConflictKind::Archive => Vec::new(),
            },
            authors: sides
                .chain(self.by)
                .map(|record| (record.by().clone(), record.from().clone()))
                .collect(),
            item: self.item,
            actions: self.actions,
            kind: self.kind,
            text,
        }
    }
}

fn shown_task(task: &TaskRef, names: &[Option<TaskId>], keys: &[TaskKey]) -> Option<String> {
    let is_meant = |key: &TaskKey| key.name == task.name && starts_with(key.record, &task.record);
    let number = keys.iter().position(is_meant)?;
    names[number].as_ref().map(ToString::to_string)
}

fn starts_with(record: RecordId, prefix: &str) -> bool {
    record.starts_with(prefix)
}
