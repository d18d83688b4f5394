//! The execution state of a task: its status, attempts and results. Does not know the other tasks.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::raw_json::is_default;
use crate::{
    Actor, Answer, Comment, Evidence, GateRecord, Hold, Json, PlanId, Question, Report, TaskExtras, TaskId,
    Timestamp,
};

/// The stored status of a task. `blocked` and `ready` are derived from the graph and never stored.
#[derive(Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum Status {
    /// Not started.
    #[default]
    Pending,
    /// Being worked on, or reserved by a worker ([`TaskState::is_queued`]).
    Running,
    /// Fully accomplished.
    Done,
    /// Not accomplished, after the last attempt.
    Failed,
    /// Skipped: by its author, or because something it needed failed.
    Skipped,
    /// Cancelled on request.
    Cancelled,
}

impl Status {
    /// All statuses, in display order.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Done, Self::Failed, Self::Skipped, Self::Cancelled];

    /// Whether the task has ended: nothing more happens to it by itself.
    pub fn is_finished(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Done | Self::Failed | Self::Skipped | Self::Cancelled => true,
        }
    }

    /// Returns the stored name of the status.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The result of a task in another plan, as delivered to a task that depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct UpstreamResult {
    /// How the external task ended.
    pub status: Status,
    /// The output of the external task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The name under which the output was provided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provides: Option<String>,
    /// The plan that the result came from, if the dependency names only an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// Why the result can never come, if the external task itself did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The execution state of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Encode, Decode)]
#[serde(from = "WrittenState")]
pub struct TaskState {
    /// The stored status.
    #[serde(default)]
    pub status: Status,
    /// The number of starts so far; also the fencing token of the latest start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// Failed attempts since the last reset.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tries: u32,
    /// When the task was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When anything about the task last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// When the latest attempt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the task finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The earliest start of the next attempt after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The worker that holds the task, or held it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Progress found in a log of an earlier build or in a file. The latest progress is stored beside the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What was accomplished, in prose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The output passed to dependants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Why the task failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why the task was skipped or cancelled, in prose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The task whose end made this one impossible; set if it was skipped because of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because_of: Option<TaskId>,
    /// Results received from tasks in other plans, by [`crate::ExternalTaskRef::key`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub received: BTreeMap<String, UpstreamResult>,
    /// State that few tasks have: a report that waits for its check, evidence, a question, answers.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub aside: Option<Box<TaskExtras>>,
}

/// The deserialized form of [`TaskState`], with the fields of [`TaskExtras`] inlined. A flattened field would hide
/// unknown fields from the reader.
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
    gate: Option<Box<GateRecord>>,
    held: Option<Hold>,
    #[serde(default)]
    comments: Vec<Comment>,
    #[serde(default)]
    labels: Vec<String>,
    assignee: Option<String>,
}

impl From<WrittenState> for TaskState {
    fn from(written: WrittenState) -> Self {
        let WrittenState {
            reported,
            evidence,
            question,
            answers,
            stopped_by,
            gate,
            held,
            comments,
            labels,
            assignee,
            ..
        } = written;
        let aside = TaskExtras {
            reported: reported.map(|reported| *reported),
            evidence: evidence.map(|evidence| *evidence),
            question: question.map(|question| *question),
            answers,
            stopped_by,
            gate: gate.map(|gate| *gate),
            held,
            comments,
            labels,
            assignee,
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
    /// Whether a worker has reserved the task and no start is recorded: it may begin at any moment, or may just have
    /// begun.
    pub fn is_queued(&self) -> bool {
        // A task imported as running was not started here: it has no attempt.
        self.status == Status::Running && self.started_at.is_none() && self.attempt > 0
    }

    /// Whether the task was ended while a worker had it queued. Its program may have begun before the worker noticed.
    pub fn may_have_begun(&self) -> bool {
        self.status.is_finished() && self.started_at.is_none() && self.attempt > 0 && self.worker.is_some()
    }

    /// Whether dependants may proceed: the task is done, or its author skipped it.
    pub fn satisfies(&self) -> bool {
        match self.status {
            Status::Done => true,
            Status::Skipped => self.because_of.is_none(),
            Status::Pending | Status::Running | Status::Failed | Status::Cancelled => false,
        }
    }

    /// Returns the report that the task is done, until its check has passed.
    pub fn reported(&self) -> Option<&Report> {
        self.aside.as_ref()?.reported.as_ref()
    }

    /// Returns the result of the latest check.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.aside.as_ref()?.evidence.as_ref()
    }

    /// Returns the open question to a person.
    pub fn question(&self) -> Option<&Question> {
        self.aside.as_ref()?.question.as_ref()
    }

    /// Returns the person who cancelled the task.
    pub fn stopped_by(&self) -> Option<&Actor> {
        self.aside.as_ref()?.stopped_by.as_ref()
    }

    /// Returns the record that a person ended the task, which is for people.
    pub fn gate(&self) -> Option<&GateRecord> {
        self.aside.as_ref()?.gate.as_ref()
    }

    /// Returns the hold that keeps the task from starting.
    pub fn held(&self) -> Option<&Hold> {
        self.aside.as_ref()?.held.as_ref()
    }

    /// Returns the comments of people and agents, latest last.
    pub fn comments(&self) -> &[Comment] {
        self.aside.as_ref().map_or(&[], |aside| &aside.comments)
    }

    /// Returns the labels of the task, sorted.
    pub fn labels(&self) -> &[String] {
        self.aside.as_ref().map_or(&[], |aside| &aside.labels)
    }

    /// Returns who is to take care of the task.
    pub fn assignee(&self) -> Option<&str> {
        self.aside.as_ref()?.assignee.as_deref()
    }

    /// Returns the answers of people, latest last.
    pub fn answers(&self) -> &[Answer] {
        self.aside.as_ref().map_or(&[], |aside| &aside.answers)
    }

    /// Changes the extras, and drops them if they become empty.
    pub fn change_aside(&mut self, change: impl FnOnce(&mut TaskExtras)) {
        let mut aside = self.aside.take().unwrap_or_default();
        change(&mut aside);
        self.aside = (*aside != TaskExtras::default()).then_some(aside);
    }

    /// Drops all extras but a hold, comments, labels and the assignee, which outlive what the task has done.
    pub(crate) fn forget_aside(&mut self) {
        if let Some(aside) = self.aside.take() {
            self.change_aside(|new| *new = aside.into_annotations());
        }
    }

    /// Closes the open report and question: no check or answer is needed any more.
    pub(crate) fn close_aside(&mut self) {
        if self.aside.is_some() {
            self.change_aside(|aside| (aside.reported, aside.question) = (None, None));
        }
    }

    /// Returns why the task is not done, in prose, if a reason is known.
    pub fn why(&self) -> Option<String> {
        let why = match (&self.because_of, &self.reason, &self.error) {
            (Some(task), _, _) => Some(match self.received.get(task.as_str()) {
                Some(UpstreamResult { reason: Some(reason), .. }) => reason.clone(),
                // The author ended the plan in the meantime.
                Some(UpstreamResult { status: Status::Done, .. }) => {
                    format!("{task} had not succeeded when the plan ended; it has since")
                }
                Some(_) | None => format!("{task} did not succeed"),
            }),
            (None, Some(reason), _) => Some(reason.clone()),
            (None, None, error) => error.clone(),
        };
        why.filter(|why| !why.trim().is_empty())
    }
}
