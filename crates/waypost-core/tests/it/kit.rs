//! Shared test helpers: a plan driven by commands, and short names for common values.

use waypost_core::{
    Actor, Command, Draft, EffectiveStatus, Event, Json, Outcome, Plan, PlanId, QuestionRequest, Refusal,
    Status, TaskChanges, TaskId, Timestamp, Work,
};
use waypost_testkit::id;

pub(crate) fn ada() -> Actor {
    Actor::person("ada")
}

pub(crate) fn agent() -> Actor {
    Actor::agent("planner")
}

pub(crate) fn worker() -> Actor {
    Actor::worker("host-1")
}

pub(crate) fn system() -> Actor {
    Actor::system("lease")
}

/// The time `seconds` after the start of the test.
pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000).plus_seconds(seconds)
}

pub(crate) fn plan_id() -> PlanId {
    PlanId::new("p").unwrap()
}

pub(crate) fn work() -> Box<Work> {
    Box::new(Work { executor: "shell".into(), inputs: Json::empty_object(), shape: None })
}

pub(crate) fn done() -> Outcome {
    Outcome::Done { result: None, output: None, evidence: None }
}

pub(crate) fn failed() -> Outcome {
    Outcome::Failed { error: "it broke".into(), evidence: None }
}

pub(crate) fn skipped() -> Outcome {
    Outcome::Skipped { reason: None }
}

/// Shorthand for commands.
pub(crate) mod ask {
    use super::*;

    pub(crate) fn create(draft: Draft) -> Command {
        Command::Create { draft: draft.into(), approval_required: None }
    }

    pub(crate) fn start(task: &str) -> Command {
        Command::StartTask { task: id(task), worker: "host-1".into() }
    }

    pub(crate) fn queue(task: &str) -> Command {
        Command::QueueTask { task: id(task), worker: "host-1".into() }
    }

    /// Without an attempt number.
    pub(crate) fn finish(task: &str, outcome: Outcome) -> Command {
        Command::FinishTask { task: id(task), attempt: None, outcome, retry: None }
    }

    pub(crate) fn question(task: &str, choices: &[&str]) -> Command {
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        let ask = QuestionRequest { text: "which one?".into(), choices, ..QuestionRequest::default() };
        Command::AskQuestion { task: id(task), attempt: None, ask: Box::new(ask) }
    }

    pub(crate) fn answer(task: &str, answer: &str) -> Command {
        Command::AnswerQuestion { task: id(task), answer: answer.into() }
    }

    pub(crate) fn cancel(task: &str) -> Command {
        Command::CancelTask { task: id(task), reason: "not needed".into() }
    }

    pub(crate) fn hold(task: &str) -> Command {
        Command::HoldTask { task: id(task), reason: "not before Monday".into() }
    }

    pub(crate) fn comment(task: &str, text: &str) -> Command {
        Command::CommentTask { task: id(task), text: text.into() }
    }

    pub(crate) fn retry(task: &str) -> Command {
        Command::RetryTask { task: id(task) }
    }

    pub(crate) fn revise(task: &str, changes: TaskChanges) -> Command {
        Command::ReviseTask { task: id(task), changes: Box::new(changes) }
    }

    pub(crate) fn remove(task: &str, detach: bool) -> Command {
        Command::RemoveTask { task: id(task), detach }
    }
}

/// A plan and a clock that advances only on request.
pub(crate) struct Desk {
    pub(crate) plan: Plan,
    pub(crate) now: Timestamp,
}

impl Desk {
    /// Creates the plan that `draft` describes, on behalf of `by`.
    pub(crate) fn made_by(by: &Actor, draft: Draft) -> Self {
        let mut desk = Self { plan: Plan::blank(plan_id()), now: at(0) };
        desk.asks(by, ask::create(draft)).unwrap();
        desk
    }

    /// Creates and starts a plan on behalf of a person.
    pub(crate) fn with(draft: Draft) -> Self {
        let mut desk = Self::made_by(&ada(), draft);
        desk.does(Command::Activate);
        desk
    }

    /// Decides a command, applies its events and returns them.
    pub(crate) fn asks(&mut self, by: &Actor, command: Command) -> Result<Vec<Event>, Refusal> {
        let events = self.plan.decide(by, self.now, &command)?;
        if !events.is_empty() {
            self.plan.advance(&events, self.now);
        }
        Ok(events)
    }

    /// Issues a command as a person; it must succeed.
    #[track_caller]
    pub(crate) fn does(&mut self, command: Command) -> Vec<Event> {
        match self.asks(&ada(), command.clone()) {
            Ok(events) => events,
            Err(refusal) => panic!("{command:?} was refused: {refusal}"),
        }
    }

    /// Issues a command as a person; it must be refused.
    #[track_caller]
    pub(crate) fn refuses(&mut self, command: Command) -> Refusal {
        match self.asks(&ada(), command.clone()) {
            Ok(events) => panic!("{command:?} was not refused, but gave {events:?}"),
            Err(refusal) => refusal,
        }
    }

    #[track_caller]
    pub(crate) fn status(&self, task: &str) -> Status {
        self.plan.task(task).unwrap_or_else(|| panic!("there is no task {task}")).state.status
    }

    #[track_caller]
    pub(crate) fn standing(&self, task: &str) -> EffectiveStatus {
        self.plan.effective_status(task).unwrap_or_else(|| panic!("there is no task {task}"))
    }

    pub(crate) fn because_of(&self, task: &str) -> Option<String> {
        self.plan.task(task)?.state.because_of.as_ref().map(TaskId::to_string)
    }

    /// Returns the effective status of all tasks in order, as `a:done b:ready`.
    pub(crate) fn standings(&self) -> String {
        let words = self.plan.tasks().map(|(task, _)| {
            let id = task.spec.id.as_str();
            format!("{id}:{}", self.standing(id).as_str())
        });
        words.collect::<Vec<_>>().join(" ")
    }
}
