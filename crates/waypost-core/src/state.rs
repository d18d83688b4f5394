//! What came of a task: where it stands, its attempts, what it gave. Knows nothing of the other tasks.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::raw_json::is_default;
use crate::{Actor, Answer, Evidence, Json, PlanId, Question, Report, TaskExtras, TaskId, Timestamp};

/// Where a task stands. `blocked` and `ready` are derived from the graph and never stored.
#[derive(Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum Status {
    /// Not started.
    #[default]
    Pending,
    /// Somebody works on it, or has reserved it ([`TaskState::is_queued`]).
    Running,
    /// Fully accomplished.
    Done,
    /// Not accomplished, after the last attempt.
    Failed,
    /// Passed over: by its author, or because something it needed failed.
    Skipped,
    /// Stopped by order.
    Cancelled,
}

impl Status {
    /// All of them, in the order in which people read them.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Done, Self::Failed, Self::Skipped, Self::Cancelled];

    /// Whether nothing more will happen to the task by itself.
    pub fn is_finished(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Done | Self::Failed | Self::Skipped | Self::Cancelled => true,
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How a task elsewhere ended, as it was told to a task that waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct UpstreamResult {
    /// How it ended.
    pub status: Status,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The name under which it offered that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provides: Option<String>,
    /// The plan that it came from, where the dependency names only an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// Why it can never come, where that is not its own end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What came of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Encode, Decode)]
#[serde(from = "WrittenState")]
pub struct TaskState {
    /// Where it stands.
    #[serde(default)]
    pub status: Status,
    /// How often it was started: the number is the fencing token of the latest start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// Failed attempts since it was last set back to the beginning.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tries: u32,
    /// When it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When anything about it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// When the latest attempt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Not to be started before this moment: it failed and waits for its next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Who works on it, or did last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Progress that a log of an earlier build or a file has. The latest progress is stored beside the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What was accomplished, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What it gives to those who depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it was skipped or cancelled, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The task whose end made it impossible; set when it was skipped because of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because_of: Option<TaskId>,
    /// What was received from tasks elsewhere, by [`crate::Elsewhere::key`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub received: BTreeMap<String, UpstreamResult>,
    /// What most tasks never have: a report that waits for its check, evidence, a question, answers.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub aside: Option<Box<TaskExtras>>,
}

/// The same as it is read: what is kept aside stands among the rest there. Read so, because a flattened field would hide
/// from the reader which fields nobody knows.
#[derive(Deserialize)]
struct WrittenState {
    #[serde(default)]
    status: Status,
    #[serde(default)]
    attempt: u32,
    #[serde(default)]
    tries: u32,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    not_before: Option<Timestamp>,
    worker: Option<String>,
    progress: Option<String>,
    result: Option<String>,
    output: Option<Json>,
    error: Option<String>,
    reason: Option<String>,
    because_of: Option<TaskId>,
    #[serde(default)]
    received: BTreeMap<String, UpstreamResult>,
    reported: Option<Box<Report>>,
    evidence: Option<Box<Evidence>>,
    question: Option<Box<Question>>,
    #[serde(default)]
    answers: Vec<Answer>,
    stopped_by: Option<Actor>,
}

impl From<WrittenState> for TaskState {
    fn from(written: WrittenState) -> Self {
        let WrittenState { reported, evidence, question, answers, stopped_by, .. } = written;
        let aside = TaskExtras {
            reported: reported.map(|reported| *reported),
            evidence: evidence.map(|evidence| *evidence),
            question: question.map(|question| *question),
            answers,
            stopped_by,
        };
        Self {
            status: written.status,
            attempt: written.attempt,
            tries: written.tries,
            created_at: written.created_at,
            updated_at: written.updated_at,
            started_at: written.started_at,
            finished_at: written.finished_at,
            not_before: written.not_before,
            worker: written.worker,
            progress: written.progress,
            result: written.result,
            output: written.output,
            error: written.error,
            reason: written.reason,
            because_of: written.because_of,
            received: written.received,
            aside: (aside != TaskExtras::default()).then(|| Box::new(aside)),
        }
    }
}

impl TaskState {
    /// Whether a worker has reserved it and no start is recorded: it may begin at any moment, or may just have begun.
    pub fn is_queued(&self) -> bool {
        // A task that came as running from a file was not started by anybody here: it has no attempt.
        self.status == Status::Running && self.started_at.is_none() && self.attempt > 0
    }

    /// Whether those who depend on it may go on: it is done, or its author passed over it.
    pub fn satisfies(&self) -> bool {
        match self.status {
            Status::Done => true,
            Status::Skipped => self.because_of.is_none(),
            Status::Pending | Status::Running | Status::Failed | Status::Cancelled => false,
        }
    }

    /// Somebody's word that it is done, until its check has passed.
    pub fn reported(&self) -> Option<&Report> {
        self.aside.as_ref()?.reported.as_ref()
    }

    /// What the latest check has found.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.aside.as_ref()?.evidence.as_ref()
    }

    /// What a person is asked.
    pub fn question(&self) -> Option<&Question> {
        self.aside.as_ref()?.question.as_ref()
    }

    /// The person who cancelled it.
    pub fn stopped_by(&self) -> Option<&Actor> {
        self.aside.as_ref()?.stopped_by.as_ref()
    }

    /// What persons have answered, the latest last.
    pub fn answers(&self) -> &[Answer] {
        self.aside.as_ref().map_or(&[], |aside| &aside.answers)
    }

    /// Changes what is kept aside; nothing is kept of nothing.
    pub(crate) fn change_aside(&mut self, change: impl FnOnce(&mut TaskExtras)) {
        let mut aside = self.aside.take().unwrap_or_default();
        change(&mut aside);
        self.aside = (*aside != TaskExtras::default()).then_some(aside);
    }

    /// What is open is open no more: nobody has to check or to answer anything.
    pub(crate) fn close_aside(&mut self) {
        if self.aside.is_some() {
            self.change_aside(|aside| (aside.reported, aside.question) = (None, None));
        }
    }

    /// Why it is not done, in words, when there is anything to say.
    pub fn why(&self) -> Option<String> {
        match (&self.because_of, &self.reason, &self.error) {
            (Some(task), _, _) => Some(match self.received.get(task.as_str()) {
                Some(UpstreamResult { reason: Some(reason), .. }) => reason.clone(),
                // Its author has ended the plan meanwhile.
                Some(UpstreamResult { status: Status::Done, .. }) => {
                    format!("{task} had not succeeded when the plan ended; it has since")
                }
                Some(_) | None => format!("{task} did not succeed"),
            }),
            (None, Some(reason), _) => Some(reason.clone()),
            (None, None, error) => error.clone(),
        }
    }
}
