//! What a person's answer does to a task: it answers a question, or finishes a task that a person does. An answer is bound to
//! what the person has read. Writes nothing.

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::json;
use waypost_config::{Config, Executor};
use waypost_core::canonical::CanonicalHasher;
use waypost_core::{
    Actor, ActorKind, Command, EffectiveStatus, Json, Outcome, Phase, Plan, PlanId, Problem, ProblemKind,
    Refusal, Status, Task, TaskId, TaskSpec,
};
use waypost_text::{StatusSign, hex};

use crate::error::ServiceError;
use crate::gate::approved_as_human;
use crate::preview::names_digest;

/// Whether a person's answer finishes a task: its executor is a person, and it is pending or running.
pub fn is_for_people(config: &Config, plan: &Plan, task: &Task) -> bool {
    HumanExecutors::of(config, plan).has(task)
}

/// The executors of a plan that are people: by the configuration, or, if that does not know an executor (perhaps nobody has
/// trusted it here), where the plan was approved.
pub struct HumanExecutors<'a> {
    config: &'a Config,
    plan: &'a Plan,
    approved: OnceCell<HashSet<String>>,
}

impl<'a> HumanExecutors<'a> {
    /// Returns those of a plan. The approval is read once, when it is needed.
    pub fn of(config: &'a Config, plan: &'a Plan) -> Self {
        Self { config, plan, approved: OnceCell::new() }
    }

    /// Whether a person's answer finishes a task of the plan.
    pub fn has(&self, task: &Task) -> bool {
        let is_open = matches!(task.state.status, Status::Pending | Status::Running);
        is_open && task.spec.work.as_ref().is_some_and(|work| self.contains(&work.executor))
    }

    /// Whether an executor is a person.
    pub(crate) fn contains(&self, executor: &str) -> bool {
        match self.config.executors.get(executor) {
            Some(Executor::Human) => true,
            Some(Executor::Noop | Executor::Worker(_) | Executor::Dispatch(_)) => false,
            None => self.approved.get_or_init(|| approved_as_human(self.plan)).contains(executor),
        }
    }

    /// The tasks that wait for a person to do them, by priority.
    pub fn awaited(&self) -> impl Iterator<Item = &'a Task> {
        let is_active = self.plan.state().phase == Phase::Active;
        self.plan.claimable().filter(move |task| is_active && self.has(task))
    }

    /// The sign of a task with this status, at every front end: a ready task that a person does waits for that person.
    pub fn sign(&self, task: &Task, status: EffectiveStatus) -> StatusSign {
        let is_turn = status == EffectiveStatus::Ready && self.plan.state().phase == Phase::Active;
        if is_turn && self.has(task) { StatusSign::Person } else { status.sign() }
    }
}

/// Returns the digest of what a task asks a person: its open question, and the words of the task itself. An answer names it,
/// because another question may stand there by the time the answer arrives.
pub fn question_digest(plan: &PlanId, task: &Task) -> String {
    let Task { spec, state, .. } = task;
    let mut hasher = CanonicalHasher::new("question", 1);
    hasher.text(plan.as_str()).text(spec.id.as_str()).number(u64::from(state.attempt));
    add_words(&mut hasher, spec);
    hasher.optional(state.question(), |hasher, question| {
        hasher.text(&question.text).text(&question.by).text(&question.asked_at.to_string());
        hasher.list(question.choices.iter(), |hasher, choice| hasher.text(choice));
        hasher.optional(question.state.as_ref(), |hasher, state| hasher.text(state.as_str()))
    });
    format!("sha256:{}", hex(&hasher.finish()))
}

/// Returns the digest of the words of a task for people, whenever it is asked.
pub(crate) fn words_digest(spec: &TaskSpec) -> String {
    let mut hasher = CanonicalHasher::new("gate", 1);
    add_words(&mut hasher, spec);
    format!("sha256:{}", hex(&hasher.finish()))
}

/// Adds what a task for people says.
fn add_words(hasher: &mut CanonicalHasher, spec: &TaskSpec) {
    hasher.text(&spec.description).text(&spec.notes);
    hasher.optional(spec.work.as_deref(), |hasher, work| {
        hasher.text(&work.executor).text(work.inputs.as_str())
    });
}

/// Refuses an answer to something else than what a task asks now.
pub(crate) fn is_as_seen(plan: &Plan, task: &TaskId, seen: &str) -> Result<(), ServiceError> {
    let Some(known) = plan.task(task.as_str()) else { return Ok(()) };
    let digest = question_digest(plan.id(), known);
    if names_digest(seen, &digest) {
        return Ok(());
    }
    let (text, choices) = match known.state.question() {
        Some(question) => (question.text.clone(), question.choices.clone()),
        None => (known.spec.description.clone(), Vec::new()),
    };
    Err(ServiceError::QuestionChanged { plan: plan.id().clone(), task: task.clone(), text, choices, digest })
}

/// Refuses an answer that does not say what was asked: by the digest of the question, or by the version of the plan.
pub(crate) fn names_question(
    config: &Config,
    plan: &Plan,
    task: &TaskId,
    seen: Option<&str>,
    known_version: Option<u64>,
) -> Result<(), ServiceError> {
    let is_asked = |task: &&Task| task.state.question().is_some() || is_for_people(config, plan, task);
    match (plan.task(task.as_str()).filter(is_asked), seen) {
        // The plan says that nothing is asked.
        (None, _) => Ok(()),
        (Some(_), Some(seen)) => is_as_seen(plan, task, seen),
        (Some(_), None) if known_version.is_some() => Ok(()),
        (Some(_), None) => {
            Err(ServiceError::QuestionNotNamed { plan: plan.id().clone(), task: task.clone() })
        }
    }
}

/// What an answer to a task for people says.
enum AnswerMeaning {
    Yes {
        text: String,
    },
    No {
        reason: String,
    },
    /// It may be a no, in any language. What waits behind the task starts only after a yes.
    Unclear,
}

/// Reads an answer: `yes` and `no` may be followed by a sign of punctuation and a text.
fn meaning_of(answer: &str) -> AnswerMeaning {
    let answer = answer.trim();
    let end = answer.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(answer.len());
    let (word, rest) = answer.split_at(end);
    let rest = rest.trim();
    let text = rest.trim_start_matches([',', '.', ':', ';', '!', '-', '–', '—']).trim_start().to_owned();
    let is_apart = text.is_empty() || text.len() < rest.len();
    match word.to_lowercase().as_str() {
        // "yes, no": somebody corrected themselves.
        "yes" | "y" if is_apart => match meaning_of(&text) {
            AnswerMeaning::No { .. } => AnswerMeaning::Unclear,
            AnswerMeaning::Yes { .. } | AnswerMeaning::Unclear => AnswerMeaning::Yes { text },
        },
        "no" | "n" if is_apart => AnswerMeaning::No { reason: text },
        _ => AnswerMeaning::Unclear,
    }
}

/// Returns the command for an answer to a task. A task with an open question gets it as its answer. A task that a
/// person does is done with `yes`, and fails with `no`; nothing else ends it.
pub(crate) fn answer_command(
    config: &Config,
    plan: &Plan,
    task: &TaskId,
    answer: &str,
    by: &Actor,
) -> Result<Command, ServiceError> {
    let known = plan.task(task.as_str());
    let asks = known.is_some_and(|task| task.state.question().is_some());
    if asks || !known.is_some_and(|task| is_for_people(config, plan, task)) {
        return Ok(Command::AnswerQuestion { task: task.clone(), answer: answer.to_owned() });
    }
    if by.kind != ActorKind::Person {
        let refusal = Refusal::OnlyAPerson { what: "answer what is for a person to do", by: by.clone() };
        return Err(refusal.into());
    }
    if answer.trim().is_empty() {
        let problem = Problem::task(task, ProblemKind::Empty { what: "the answer".to_owned() });
        return Err(Refusal::Invalid { problems: vec![problem] }.into());
    }
    let outcome = match meaning_of(answer) {
        AnswerMeaning::No { reason } if reason.is_empty() => {
            Outcome::Failed { error: format!("answered no by {by}"), evidence: None }
        }
        AnswerMeaning::No { reason } => {
            Outcome::Failed { error: format!("answered no by {by}: {reason}"), evidence: None }
        }
        AnswerMeaning::Yes { text } if text.is_empty() => done("yes"),
        AnswerMeaning::Yes { text } => done(&text),
        AnswerMeaning::Unclear => {
            return Err(ServiceError::AnswerUnclear { plan: plan.id().clone(), task: task.clone() });
        }
    };
    Ok(Command::FinishTask { task: task.clone(), attempt: None, outcome, retry: None })
}

fn done(answer: &str) -> Outcome {
    let output = Some(Json::of(&json!({ "answer": answer })));
    Outcome::Done { result: None, output, evidence: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_in_words_completes_nothing() {
        let word = |answer: &str| match meaning_of(answer) {
            AnswerMeaning::Yes { text } => format!("yes: {text}"),
            AnswerMeaning::No { reason } => format!("no: {reason}"),
            AnswerMeaning::Unclear => "unclear".to_owned(),
        };
        for (answer, expected) in [
            ("yes", "yes: "),
            ("Y!", "yes: "),
            ("yes, on Monday", "yes: on Monday"),
            ("yes: -1", "yes: -1"),
            ("no", "no: "),
            (" No. ", "no: "),
            ("no, not on Friday", "no: not on Friday"),
            ("no – wait", "no: wait"),
            ("no issues found", "unclear"),
            ("yes and no", "unclear"),
            ("nope", "unclear"),
            ("nein", "unclear"),
            ("(no)", "unclear"),
            ("**no**", "unclear"),
            ("\u{200b}no", "unclear"),
            ("do not deploy", "unclear"),
            ("false", "unclear"),
            ("use the second candidate", "unclear"),
            ("", "unclear"),
        ] {
            assert_eq!(word(answer), expected, "{answer:?}");
        }
    }
}
