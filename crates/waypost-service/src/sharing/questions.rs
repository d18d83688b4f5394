//! What people are asked after a merge: values that were written without knowing each other, and acts that no longer fit.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use waypost_core::{Actor, ActorKind, PlanId, TaskId};
use waypost_operation::{Answer, Conflict, OperationSet, ParsedRecord, answer};
use waypost_store::StoreError;

use super::branch::SharedBranch;
use super::error::SharingError;
use super::import::merge_command;
use super::rows;
use crate::caller::Caller;
use crate::merge_question::{MergeQuestion, questions_of};
use crate::preview::names_digest;
use crate::service::Service;

/// Bytes of a version besides its value.
const VERSION_BYTES: usize = 200;
/// A page takes no further question once its values have this many bytes.
const PAGE_BYTES: usize = 512 * 1024;

/// The open questions of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct OpenQuestions {
    /// The plan.
    pub plan: PlanId,
    /// The questions, in a fixed order.
    pub questions: Vec<MergeQuestion>,
}

/// A question of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanQuestion {
    /// The plan.
    pub plan: PlanId,
    /// The question.
    #[serde(flatten)]
    pub question: MergeQuestion,
}

/// Some of the open questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuestionPage {
    /// The questions, by plan and in a fixed order.
    pub questions: Vec<PlanQuestion>,
    /// The number of all open questions.
    pub total: usize,
    /// Continues after the last one; `None` if there are no more.
    pub next: Option<String>,
}

/// The question that a person answers.
#[derive(Clone, Copy, Debug)]
pub struct QuestionRef<'a> {
    /// The plan.
    pub plan: &'a PlanId,
    /// The task that it is about.
    pub task: Option<&'a TaskId>,
    /// What it is about, in one word.
    pub subject: Option<&'a str>,
    /// The digest of what the person has read. Nothing is answered if something else is asked now.
    pub seen: Option<&'a str>,
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
        let mut found = Vec::new();
        for plan in self.plans_with_questions(plan)?.into_iter().map(|(plan, _)| plan) {
            let questions = self.questions_of_plan(&plan)?;
            if !questions.is_empty() {
                found.push(OpenQuestions { plan, questions: questions.to_vec() });
            }
        }
        Ok(found)
    }

    /// Returns at most `limit` open questions of a plan, or of all shared plans, after those of an earlier page.
    pub fn question_page(
        &self,
        plan: Option<&PlanId>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QuestionPage, SharingError> {
        let (from, last) = match after {
            None => ("", ""),
            Some(cursor) => cursor.split_once('/').ok_or_else(|| StoreError::BadCursor(cursor.to_owned()))?,
        };
        let plans = self.plans_with_questions(plan)?;
        let total = plans.iter().map(|(_, count)| count).sum();
        let (mut page, mut bytes) = (QuestionPage { total, ..QuestionPage::default() }, 0);
        for (plan, _) in plans.into_iter().filter(|(plan, _)| plan.as_str() >= from) {
            let questions = self.questions_of_plan(&plan)?;
            // If the last one of the page before was answered, the questions of its plan are listed again.
            let is_last = |question: &MergeQuestion| plan.as_str() == from && question.digest == last;
            let known = questions.iter().position(is_last).map_or(0, |at| at + 1);
            for question in questions.iter().skip(known) {
                if page.questions.len() >= limit || bytes >= PAGE_BYTES {
                    let last = page.questions.last();
                    page.next = last.map(|last| format!("{}/{}", last.plan, last.question.digest));
                    return Ok(page);
                }
                bytes += question
                    .conflict
                    .versions
                    .iter()
                    .map(|version| version.value.len() + VERSION_BYTES)
                    .sum::<usize>();
                page.questions.push(PlanQuestion { plan: plan.clone(), question: question.clone() });
            }
        }
        Ok(page)
    }

    /// Returns the number of open questions of a plan.
    pub fn question_count(&self, plan: &PlanId) -> Result<usize, SharingError> {
        Ok(self.plans_with_questions(Some(plan))?.first().map_or(0, |(_, count)| *count))
    }

    /// Whether a plan travels. Its questions can be answered without a new version of it.
    pub fn is_shared(&self, plan: &PlanId) -> Result<bool, SharingError> {
        let share = self.plans().store().query(|read| rows::share_of(read, plan))?;
        Ok(share.is_some_and(|share| share.shared))
    }

    /// Returns the shared plans with open questions, by id, with the number of them.
    pub fn open_question_counts(&self) -> Result<Vec<(PlanId, usize)>, SharingError> {
        self.plans_with_questions(None)
    }

    /// Returns the shared plans with open questions, as far as the last records say, with the number of them.
    pub(crate) fn known_questions(&self) -> Result<HashMap<PlanId, usize>, StoreError> {
        let shares = self.plans().store().query(rows::shares)?.into_iter();
        let open = shares.filter(|(_, share)| share.shared && share.questions > 0);
        Ok(open.map(|(plan, share)| (plan, share.questions)).collect())
    }

    /// Returns the shared plans with open questions, by id. What is written in one clone can settle a question and never asks
    /// one, so that plans without any need not be looked at.
    pub(crate) fn plans_with_questions(
        &self,
        plan: Option<&PlanId>,
    ) -> Result<Vec<(PlanId, usize)>, SharingError> {
        let known = match plan {
            None => self.known_questions()?.into_iter().collect(),
            Some(plan) => {
                let share = self.plans().store().query(|read| rows::share_of(read, plan))?;
                let open = share.filter(|share| share.shared && share.questions > 0);
                open.map(|share| (plan.clone(), share.questions)).into_iter().collect::<Vec<_>>()
            }
        };
        let mut found = Vec::new();
        for (plan, _) in known {
            let Some(share) = self.plans().store().query(|read| rows::share_of(read, &plan))? else {
                continue;
            };
            let questions = match self.clone_tag()? {
                Some(tag) if self.has_new_versions(&plan, &share)? => {
                    self.derive_records(&plan, &tag)?.share.questions
                }
                Some(_) | None => share.questions,
            };
            if questions > 0 {
                found.push((plan, questions));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns the open questions of a plan. The same records always leave the same ones open.
    pub(crate) fn questions_of_plan(&self, plan: &PlanId) -> Result<Arc<[MergeQuestion]>, SharingError> {
        let share = self.plans().store().query(|read| rows::share_of(read, plan))?;
        let records = share.map_or(0, |share| share.records);
        if let Some(known) = self.asked().known(plan, records) {
            return Ok(known);
        }
        let set = self.plans().store().query(|read| rows::records(read, plan))?;
        let mut found = questions_of(plan, &set);
        let tag = self.clone_tag()?;
        found.iter_mut().for_each(|question| question.conflict.mark_unverified(tag.as_ref()));
        let found: Arc<[MergeQuestion]> = found.into();
        self.asked().put(plan, set.len(), &found);
        Ok(found)
    }

    /// Answers a question, so that it is answered in every clone. Only people answer.
    pub fn resolve_question(
        &self,
        by: &Caller,
        shared: &SharedBranch,
        of: QuestionRef<'_>,
        choice: &AnswerChoice,
    ) -> Result<ResolveReply, SharingError> {
        may_resolve(by)?;
        let plan = of.plan;
        let reply = {
            let _lock = self.sharing_lock()?;
            let tag = self.ensure_tag(shared)?;
            self.settle(|| {
                let derived = self.derive_records(plan, &tag)?;
                let (mut set, mut share) = (derived.set, derived.share);
                let questions = questions_of(plan, &set);
                let conflict = chosen(&questions, of)?;
                let given = answer_of(conflict, choice)?;
                let bad = |error: &dyn std::fmt::Display| SharingError::BadAnswer(error.to_string());
                let actions = answer(&set, conflict, &given).map_err(|error| bad(&error))?;
                let at = self.now()?;
                let record =
                    set.record(at, by.actor.clone(), tag.clone(), actions).map_err(|error| bad(&error))?;
                set.insert(ParsedRecord::Known(Box::new(record.clone())));
                let command = merge_command(&set, &mut share, &tag, &[record.id()]);
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

/// Whether somebody may answer a question of a merge: only people.
pub fn may_resolve(by: &Caller) -> Result<(), SharingError> {
    match by.actor.kind {
        ActorKind::Person => Ok(()),
        ActorKind::Agent | ActorKind::Worker | ActorKind::System => {
            Err(SharingError::NeedsPerson { what: "answer a question about a merge" })
        }
    }
}

/// Finds the question that a person means.
fn chosen<'a>(questions: &'a [MergeQuestion], of: QuestionRef<'_>) -> Result<&'a Conflict, SharingError> {
    let QuestionRef { plan, task, subject, seen } = of;
    let fits = |conflict: &&Conflict| {
        task.is_none_or(|task| conflict.task.as_ref() == Some(task))
            && subject.is_none_or(|subject| conflict.subject == subject)
    };
    let is_seen = |question: &&MergeQuestion| seen.is_none_or(|seen| names_digest(seen, &question.digest));
    let open = questions.iter().filter(is_seen).map(|question| &question.conflict);
    let found: Vec<&Conflict> = open.filter(fits).collect();
    if seen.is_some() && found.is_empty() {
        return Err(SharingError::QuestionChanged(plan.clone()));
    }
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

/// Characters of a record's id that name it in a message.
const RECORD_CHARS: usize = 8;

/// Finds the version that a person names: by author, clone or record.
fn answer_of(conflict: &Conflict, choice: &AnswerChoice) -> Result<Answer, SharingError> {
    let wanted = match choice {
        AnswerChoice::Take(wanted) => wanted,
        AnswerChoice::Text(text) => return Ok(Answer::Text(text.clone())),
        AnswerChoice::Keep => return Ok(Answer::Keep),
        AnswerChoice::Remove => return Ok(Answer::Remove),
        AnswerChoice::Dismiss => return Ok(Answer::Dismiss),
    };
    let is_named = |version: &&waypost_operation::ConflictVersion| {
        let is_by = |by: &Actor| by.to_string() == *wanted || by.name == *wanted;
        is_by(&version.by) || is_by(&version.by.unverified()) || version.from.as_str() == wanted
    };
    let mut found: Vec<_> = conflict.versions.iter().filter(is_named).collect();
    if found.is_empty() {
        // A short name can also begin a record's id.
        found = conflict.versions.iter().filter(|version| version.record.starts_with(wanted)).collect();
    }
    match found[..] {
        [one] => Ok(Answer::Take(one.record)),
        _ => {
            let is_ambiguous = !found.is_empty();
            if !is_ambiguous {
                found = conflict.versions.iter().collect();
            }
            let names = found.iter().map(|version| {
                let record = version.record.prefix(RECORD_CHARS);
                format!("{} in clone {}, record {record}", version.by, version.from)
            });
            let names = names.collect::<Vec<_>>().join("; ");
            let (how, next) = match is_ambiguous {
                true => ("names several", ": name the clone or the record instead"),
                false => ("names none", ""),
            };
            Err(SharingError::BadAnswer(format!(
                "{} {how} of the versions ({names}){next}",
                waypost_text::quote(wanted)
            )))
        }
    }
}
