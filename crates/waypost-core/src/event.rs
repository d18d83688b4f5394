//! What happened to a plan. The stored truth: every shape here is a promise, and has a golden file.
//!
//! An event says what was decided. What follows from it by the graph alone (dependants that become ready, a failure that
//! skips 99,999 tasks, a plan that ends with its last task) is worked out by `Plan::evolve`, the same way each time, and
//! is not written down.

use serde::{Deserialize, Serialize};

use crate::raw_json::is_default;
use crate::task::ForeignFields;
use crate::{
    Actor, Digest, Draft, Evidence, ExternalTaskRef, Json, Phase, Question, Refinement, TaskId, TaskSpec,
    Timestamp, UpstreamResult,
};

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Something that happened to a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Event {
    /// It was made.
    PlanCreated {
        /// As what.
        draft: Box<Draft>,
        /// By whom.
        by: Actor,
    },
    /// Its author's words changed; what is absent stayed.
    PlanRevised {
        /// The line for lists.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What is to be reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        /// The author's free words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        /// The agent that it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        /// The queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<String>,
        /// Tokens that planning may spend; 0 means no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_budget: Option<u64>,
        /// Free Markdown text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// Fields of foreign formats.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        foreign: Option<ForeignFields>,
    },
    /// Tasks were added, in this order, each after the one before among its siblings.
    TasksAdded {
        /// What their author says of them.
        tasks: Vec<TaskSpec>,
        /// The place of the first among its siblings; absent: last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<usize>,
    },
    /// What the author says of a task changed (all but its parent).
    TaskRevised {
        /// What it is now.
        task: Box<TaskSpec>,
    },
    /// Tasks were taken out with their children; those who depended on them forgot them.
    TasksRemoved {
        /// Which.
        tasks: Vec<TaskId>,
    },
    /// A task got another parent or place.
    TaskMoved {
        /// Which.
        task: TaskId,
        /// Its parent now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<TaskId>,
        /// Its place among its siblings now, from 0.
        index: usize,
    },
    /// Siblings got another order.
    TasksReordered {
        /// Their parent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<TaskId>,
        /// Their order now.
        order: Vec<TaskId>,
    },
    /// What had been done for tasks no longer counts.
    TasksReset {
        /// Which.
        tasks: Vec<TaskId>,
    },
    /// A person was asked.
    ApprovalRequested {
        /// What the person is told.
        message: String,
    },
    /// A person allowed it.
    PlanApproved {
        /// Who.
        by: Actor,
        /// Of which version.
        version: u64,
        /// What the person added.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// A person did not allow it.
    PlanRejected {
        /// Who.
        by: Actor,
        /// Why.
        reason: String,
    },
    /// What machines will run is no longer what was approved.
    ApprovalVoided {},
    /// It began to run.
    PlanActivated {},
    /// It starts nothing new.
    PlanPaused {
        /// Why.
        reason: String,
        /// The person who did it: only a person undoes it. Absent where an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// It goes on.
    PlanResumed {
        /// Whether it had not begun: then it is a draft again, and nothing runs.
        #[serde(default, skip_serializing_if = "is_default")]
        to_draft: bool,
    },
    /// Its author ended it.
    PlanFinished {
        /// How.
        phase: Phase,
        /// What the author said.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        summary: String,
        /// The person who did it: only a person undoes it. Absent where an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// It was put away.
    PlanArchived {
        /// The person who did it: only a person undoes it. Absent where an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// It was taken out again.
    PlanUnarchived {},
    /// A worker reserved a task. It begins it later: until a start is recorded, nobody knows whether it has.
    TaskQueued {
        /// Which.
        task: TaskId,
        /// The number of the attempt.
        attempt: u32,
        /// Who.
        worker: String,
    },
    /// Somebody began to work on a task.
    TaskStarted {
        /// Which.
        task: TaskId,
        /// The number of this start.
        attempt: u32,
        /// Who.
        worker: String,
        /// When, where that was before the version was written; absent: with the version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Timestamp>,
    },
    /// Somebody said how far a task is. Only logs of earlier builds have it: progress is no version of a plan any more.
    TaskProgressed {
        /// Which.
        task: TaskId,
        /// How far.
        progress: String,
    },
    /// A task was accomplished.
    TaskDone {
        /// Which.
        task: TaskId,
        /// In words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// For those who depend on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Json>,
        /// What its check has found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
    },
    /// Somebody said that a task is done; its check has yet to pass.
    TaskReported {
        /// Which.
        task: TaskId,
        /// In words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// For those who depend on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Json>,
        /// Who said so.
        by: Actor,
    },
    /// An attempt failed.
    TaskFailed {
        /// Which.
        task: TaskId,
        /// Why.
        error: String,
        /// When it may be tried again; absent: never, it has failed for good.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again_at: Option<Timestamp>,
        /// What its check has found, if that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
    },
    /// Whoever worked on a task gave it back undone.
    TaskReleased {
        /// Which.
        task: TaskId,
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// Whoever worked on a task asked a person and left the task until there is an answer.
    QuestionAsked {
        /// Which.
        task: TaskId,
        /// What was asked.
        question: Box<Question>,
    },
    /// A person answered what a task asked.
    QuestionAnswered {
        /// Which.
        task: TaskId,
        /// The answer.
        answer: String,
        /// Who gave it.
        by: Actor,
    },
    /// Its author, or whoever works on it, passed over a task.
    TaskSkipped {
        /// Which.
        task: TaskId,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Tasks were stopped by order.
    TasksCancelled {
        /// Which.
        tasks: Vec<TaskId>,
        /// Why.
        reason: String,
        /// The person who did it: only a person undoes it. Absent where an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// Tasks were set back to the beginning, and with them what was skipped because of them.
    TasksRetried {
        /// Which.
        tasks: Vec<TaskId>,
    },
    /// The thinking about a task came further.
    TaskRefined {
        /// Which.
        task: TaskId,
        /// How far.
        refinement: Refinement,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        /// Tokens that this cost.
        #[serde(default, skip_serializing_if = "is_zero")]
        tokens: i64,
    },
    /// The digest of a task was kept.
    DigestAttached {
        /// Which.
        task: TaskId,
        /// The digest.
        digest: Digest,
        /// Tokens that this cost.
        #[serde(default, skip_serializing_if = "is_zero")]
        tokens: i64,
    },
    /// A model was called, and that cost tokens.
    TokensCharged {
        /// What for; none: for the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// How many.
        tokens: i64,
        /// The number of the call.
        call: u64,
    },
    /// The thinking about a task was taken back; its children went before.
    TaskRolledBack {
        /// Which.
        task: TaskId,
        /// Tokens that had been spent on what went: they are its own now.
        #[serde(default, skip_serializing_if = "is_zero")]
        tokens: i64,
    },
    /// A task heard how a task elsewhere ended.
    OutputReceived {
        /// Who waited.
        task: TaskId,
        /// For what.
        from: ExternalTaskRef,
        /// How that ended.
        received: UpstreamResult,
    },
    /// What a task had heard of a task elsewhere no longer counts: that one has not ended after all.
    OutputWithdrawn {
        /// Who waits again.
        task: TaskId,
        /// For what.
        from: ExternalTaskRef,
    },
}
