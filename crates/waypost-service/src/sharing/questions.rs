//! What people are asked after a merge: values that were written without knowing each other, and acts that no longer fit.

use serde::Serialize;
use waypost_core::operation::{Answer, Conflict, OperationSet, ParsedRecord, answer, merge};
use waypost_core::{ActorKind, PlanId, TaskId};

use super::branch::SharedBranch;
use super::error::SharingError;
use super::import::merge_command;
use super::rows;
use crate::caller::Caller;
use crate::service::Service;

/// The open questions of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct OpenQuestions {
    /// The plan.
    pub plan: PlanId,
    /// The questions, in a fixed order.
    pub questions: Vec<Conflict>,
}

/// How a person answers a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerChoice {
    /// The version of this author, clone or record.
    Take(String),
    /// Another text.
    Text(String),
    /// What was to be removed stays.
    Keep,
    /// It is removed.
    Remove,
    /// What was set aside is dropped.
    Dismiss,
}

/// An answered question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResolveReply {
    /// The plan.
    pub plan: PlanId,
    /// The version of the plan afterwards.
    pub version: u64,
    /// The record of the answer.
    pub record: String,
    /// The number of questions of the plan that are still open.
    pub questions: usize,
}

/// Names a question as `resolve` takes it.
fn named(conflict: &Conflict) -> String {
    match &conflict.task {
        Some(task) => format!("{task} {}", conflict.subject),
        None => conflict.subject.clone(),
    }
}

impl Service {
    /// Returns the open questions of a plan, or of all shared plans.
    pub fn open_questions(&self, plan: Option<&PlanId>) -> Result<Vec<OpenQuestions>, SharingError> {
        let Some(tag) = self.clone_tag()? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (id, mut share) in self.plans().store().query(rows::shares)? {
            if !share.shared || plan.is_some_and(|plan| *plan != id) {
                continue;
            }
            let mut set = None;
            if self.has_new_versions(&id, &share)? {
                let derived = self.derive_records(&id, &tag)?;
                share = derived.share;
                set = Some(derived.set);
            }
            if share.questions == 0 {
                continue;
            }
            let set = match set {
                Some(set) => set,
                None => self.plans().store().query(|read| rows::records(read, &id))?,
            };
            let questions = merge(&set).conflicts;
            found.push(OpenQuestions { plan: id, questions });
        }
        Ok(found)
    }

    /// Answers a question, so that it is answered in every clone. Only people answer.
    pub fn resolve_question(
        &self,
        by: &Caller,
        shared: &SharedBranch,
        plan: &PlanId,
        task: Option<&TaskId>,
        subject: Option<&str>,
        choice: &AnswerChoice,
    ) -> Result<ResolveReply, SharingError> {
        match by.actor.kind {
            ActorKind::Person => {}
            ActorKind::Agent | ActorKind::Worker | ActorKind::System => {
                return Err(SharingError::NeedsPerson { what: "answer a question about a merge" });
            }
        }
        let reply = {
            let _lock = self.sharing_lock()?;
            let tag = self.ensure_tag(shared)?;
            self.settle(|| {
                let derived = self.derive_records(plan, &tag)?;
                let (mut set, mut share) = (derived.set, derived.share);
                let conflicts = merge(&set).conflicts;
                let conflict = chosen(plan, &conflicts, task, subject)?;
                let given = answer_of(conflict, choice)?;
                let bad = |error: &dyn std::fmt::Display| SharingError::BadAnswer(error.to_string());
                let actions = answer(&set, conflict, &given).map_err(|error| bad(&error))?;
                let at = self.now()?;
                let record =
                    set.record(at, by.actor.clone(), tag.clone(), actions).map_err(|error| bad(&error))?;
                set.insert(ParsedRecord::Known(Box::new(record.clone())));
                let command = merge_command(&set, &mut share, &[record.id()]);
                let questions = share.questions;
                let commands = command.into_iter().collect();
                let (id, answer_rows) = (plan.clone(), rows::own_rows(&record));
                let stored = self.write_shared(
                    plan,
                    by.actor.clone(),
                    Some(derived.version),
                    commands,
                    move |version| {
                        let share = rows::PlanShare { derived_to: version, ..share.clone() };
                        answer_rows.iter().cloned().chain([rows::share_row(&id, &share)]).collect()
                    },
                )?;
                Ok(stored.map(|committed| ResolveReply {
                    plan: plan.clone(),
                    version: committed.version,
                    record: record.id().to_string(),
                    questions,
                }))
            })?
        };
        self.publish_locally(shared)?;
        Ok(reply)
    }

    /// Returns the records of a shared plan, the oldest first.
    pub fn shared_records(&self, plan: &PlanId) -> Result<OperationSet, SharingError> {
        let Some(tag) = self.clone_tag()? else { return Err(SharingError::NotShared(plan.clone())) };
        Ok(self.derive_records(plan, &tag)?.set)
    }
}

/// Finds the question that a person means.
fn chosen<'a>(
    plan: &PlanId,
    conflicts: &'a [Conflict],
    task: Option<&TaskId>,
    subject: Option<&str>,
) -> Result<&'a Conflict, SharingError> {
    let fits = |conflict: &&Conflict| {
        task.is_none_or(|task| conflict.task.as_ref() == Some(task))
            && subject.is_none_or(|subject| conflict.subject == subject)
    };
    let found: Vec<&Conflict> = conflicts.iter().filter(fits).collect();
    match found[..] {
        [one] => Ok(one),
        [] => {
            let about = [task.map(ToString::to_string), subject.map(str::to_owned)];
            let about = about.into_iter().flatten().collect::<Vec<_>>().join(" ");
            Err(SharingError::NoSuchQuestion { plan: plan.clone(), about })
        }
        // Several questions about the same thing are answered one by one, in their order.
        [first, ..] if found.iter().all(|other| named(other) == named(first)) => Ok(first),
        _ => {
            let candidates = found.into_iter().map(named).collect();
            Err(SharingError::WhichQuestion { plan: plan.clone(), candidates })
        }
    }
}

/// Finds the version that a person names: by author, clone or record.
fn answer_of(conflict: &Conflict, choice: &AnswerChoice) -> Result<Answer, SharingError> {
    let wanted = match choice {
        AnswerChoice::Take(wanted) => wanted,
        AnswerChoice::Text(text) => return Ok(Answer::Text(text.clone())),
        AnswerChoice::Keep => return Ok(Answer::Keep),
        AnswerChoice::Remove => return Ok(Answer::Remove),
        AnswerChoice::Dismiss => return Ok(Answer::Dismiss),
    };
    let fits = |version: &&waypost_core::operation::ConflictVersion| {
        version.record.starts_with(wanted)
            || version.by.to_string() == *wanted
            || version.by.name == *wanted
            || version.from.as_str() == wanted
    };
    let found: Vec<_> = conflict.versions.iter().filter(fits).collect();
    match found[..] {
        [one] => Ok(Answer::Take(one.record)),
        _ => {
            let names = conflict
                .versions
                .iter()
                .map(|version| format!("{} ({} in {})", version.record, version.by, version.from));
            let names = names.collect::<Vec<_>>().join(", ");
            let how = if found.is_empty() { "names none" } else { "names several" };
            Err(SharingError::BadAnswer(format!("{wanted} {how} of the versions: {names}")))
        }
    }
}
