//! Events: what happened to a plan. They are the stored source of truth: every shape here is a promise and has a golden
//! file.
//!
//! An event records a decision. What follows from it through the graph alone (dependants that become ready, a failure
//! that skips 99,999 tasks, a plan that ends with its last task) is computed by `Plan::evolve`, deterministically, and
//! is not stored.

use serde::{Deserialize, Serialize};

use crate::raw_json::is_default;
use crate::task::ForeignFields;
use crate::{
    Actor, ApprovedWork, Digest, Draft, Evidence, ExternalTaskRef, GateRecord, Json, Phase, Question,
    Refinement, StartRefusal, TaskId, TaskSpec, Timestamp, UpstreamResult,
};

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A stored change of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Event {
    /// The plan was created.
    PlanCreated {
        /// The initial content of the plan.
        draft: Box<Draft>,
        /// The actor that created the plan.
        by: Actor,
    },
    /// The author's part of the plan changed; absent fields are unchanged.
    PlanRevised {
        /// The title shown in lists.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The goal of the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        /// The author's free-text status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        /// The agent that owns the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        /// The queue that the plan's work runs on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<String>,
        /// The token budget for planning; 0 means no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_budget: Option<u64>,
        /// Free Markdown text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// Preserved fields of other formats.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        foreign: Option<ForeignFields>,
    },
    /// The plan got the content of an earlier version. The events that follow say what changed.
    PlanRestored {
        /// The number of the earlier version.
        version: u64,
    },
    /// Records of other clones were merged. The events that follow say what changed.
    PlanMerged {
        /// How many records were new.
        operations: u64,
        /// The tags of the clones that they are from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        from: Vec<String>,
        /// The state that they lead to: the hash of the heads of all records.
        state: String,
        /// How many questions are open.
        #[serde(default, skip_serializing_if = "is_default")]
        questions: u32,
        /// The tasks about whose removal, order or place a person is asked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removals: Vec<TaskId>,
        /// Whether the plan, which had ended, has open tasks again. Nothing of it runs.
        #[serde(default, skip_serializing_if = "is_default")]
        to_draft: bool,
        /// Whether skips and failures have consequences from now on, because somebody began to work in another clone.
        #[serde(default, skip_serializing_if = "is_default")]
        begun: bool,
    },
    /// Tasks were added in this order, each after the previous one among its siblings.
    TasksAdded {
        /// The author's part of the new tasks.
        tasks: Vec<TaskSpec>,
        /// The position of the first task among its siblings; absent means last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<usize>,
    },
    /// The author's part of a task changed (all but its parent).
    TaskRevised {
        /// The new author's part.
        task: Box<TaskSpec>,
    },
    /// Tasks were removed with their children, and with all dependencies on them.
    TasksRemoved {
        /// The ids of the removed tasks, without their children.
        tasks: Vec<TaskId>,
    },
    /// A task got another parent or position.
    TaskMoved {
        /// The id of the task.
        task: TaskId,
        /// The new parent; absent for a root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<TaskId>,
        /// The new position among its siblings, from 0.
        index: usize,
    },
    /// Siblings were reordered.
    TasksReordered {
        /// The parent of the siblings; absent for roots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<TaskId>,
        /// The new order of the siblings.
        order: Vec<TaskId>,
    },
    /// The results of tasks no longer count, because an edit changed their work or removed their children.
    TasksReset {
        /// The ids of the reset tasks.
        tasks: Vec<TaskId>,
    },
    /// Approval by a person was requested.
    ApprovalRequested {
        /// The message shown to the person.
        message: String,
    },
    /// A person approved the plan.
    PlanApproved {
        /// The person who approved.
        by: Actor,
        /// The version that the person reviewed.
        version: u64,
        /// The person's note.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
        /// What was approved. Absent in approvals of earlier versions of Waypost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Box<ApprovedWork>>,
    },
    /// A worker starts nothing of the plan: it would not run what was approved.
    StartRefused {
        /// The worker, and its reason.
        #[serde(flatten)]
        refusal: Box<StartRefusal>,
    },
    /// A person rejected the plan.
    PlanRejected {
        /// The person who rejected it.
        by: Actor,
        /// Why the plan was rejected.
        reason: String,
    },
    /// The approval became invalid: the machine work is no longer what was approved.
    ApprovalVoided {},
    /// The plan started.
    PlanActivated {},
    /// The plan was paused: no further task starts.
    PlanPaused {
        /// Why the plan was paused.
        reason: String,
        /// The person who paused it: only a person can undo it. Absent if an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// The plan was resumed.
    PlanResumed {
        /// Whether the plan returns to draft, so that nothing runs: it had not started, or it lacks a required
        /// approval.
        #[serde(default, skip_serializing_if = "is_default")]
        to_draft: bool,
    },
    /// The author ended the plan.
    PlanFinished {
        /// The final phase.
        phase: Phase,
        /// The author's summary.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        summary: String,
        /// The person who cancelled it: only a person can undo it. Absent if an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// The plan was archived.
    PlanArchived {
        /// The person who archived it: only a person can undo it. Absent if an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// The plan was restored from the archive.
    PlanUnarchived {},
    /// A worker reserved a task. Until a start is recorded, it is unknown whether the work has begun.
    TaskQueued {
        /// The id of the task.
        task: TaskId,
        /// The number of the attempt.
        attempt: u32,
        /// The worker that reserved the task.
        worker: String,
    },
    /// Work on a task began.
    TaskStarted {
        /// The id of the task.
        task: TaskId,
        /// The number of the attempt.
        attempt: u32,
        /// The worker that holds the attempt.
        worker: String,
        /// When the work began, if before the version was written; absent means at that time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Timestamp>,
    },
    /// Progress of a task. Found only in logs of earlier builds: progress no longer creates a version.
    TaskProgressed {
        /// The id of the task.
        task: TaskId,
        /// The reported progress.
        progress: String,
    },
    /// A task was done.
    TaskDone {
        /// The id of the task.
        task: TaskId,
        /// What was accomplished, in prose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// The output passed to dependants.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Json>,
        /// The result of its check.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
    },
    /// A task was reported as done; its check has yet to pass.
    TaskReported {
        /// The id of the task.
        task: TaskId,
        /// What was accomplished, in prose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// The output passed to dependants.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Json>,
        /// The actor that made the report.
        by: Actor,
    },
    /// An attempt failed.
    TaskFailed {
        /// The id of the task.
        task: TaskId,
        /// Why the attempt failed.
        error: String,
        /// The earliest start of the next attempt; absent means that the task has failed for good.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again_at: Option<Timestamp>,
        /// The result of the task's check, if that is the cause of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
    },
    /// A running task was released without an outcome.
    TaskReleased {
        /// The id of the task.
        task: TaskId,
        /// Why the task was released.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// A worker asked a person a question and released the task until it is answered.
    QuestionAsked {
        /// The id of the task.
        task: TaskId,
        /// The question, its choices and its state.
        question: Box<Question>,
    },
    /// A person answered a task's question.
    QuestionAnswered {
        /// The id of the task.
        task: TaskId,
        /// The answer that was given.
        answer: String,
        /// The person who answered.
        by: Actor,
    },
    /// A person ended a task for people; the event before it says how.
    GateRecorded {
        /// The id of the task.
        task: TaskId,
        /// Who it was, and how that is known.
        gate: Box<GateRecord>,
    },
    /// The task's author or worker skipped it.
    TaskSkipped {
        /// The id of the task.
        task: TaskId,
        /// Why the task was skipped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The person who skipped it: only a person undoes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// Tasks were cancelled on request.
    TasksCancelled {
        /// The ids of the cancelled tasks.
        tasks: Vec<TaskId>,
        /// Why the tasks were cancelled.
        reason: String,
        /// The person who cancelled them: only a person can undo it. Absent if an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// Tasks were reset to be done again, together with the tasks skipped because of them.
    TasksRetried {
        /// The ids of the retried tasks; those skipped because of them need not be listed.
        tasks: Vec<TaskId>,
    },
    /// The planning of a task progressed.
    TaskRefined {
        /// The id of the task.
        task: TaskId,
        /// The stage that planning has reached.
        refinement: Refinement,
        /// Why the task is at this stage.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        /// Tokens spent.
        #[serde(default, skip_serializing_if = "is_zero")]
        tokens: i64,
    },
    /// The digest of a task was stored.
    DigestAttached {
        /// The id of the task.
        task: TaskId,
        /// The stored digest.
        digest: Digest,
        /// Tokens spent.
        #[serde(default, skip_serializing_if = "is_zero")]
        tokens: i64,
    },
    /// The tokens of a model call were charged.
    TokensCharged {
        /// The task that the call was made for; absent means the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// Tokens spent.
        tokens: i64,
        /// The number of the call among the plan's calls, from 1.
        call: u64,
    },
    /// The decomposition of a task was discarded; its children were removed before.
    TaskRolledBack {
        /// The id of the task.
        task: TaskId,
        /// Tokens that were spent on the discarded subtasks; now charged to the task itself.
        #[serde(default, skip_serializing_if = "is_zero")]
        tokens: i64,
    },
    /// A task received the result of a task in another plan.
    OutputReceived {
        /// The id of the waiting task.
        task: TaskId,
        /// The external task that ended.
        from: ExternalTaskRef,
        /// The result of the external task.
        received: UpstreamResult,
    },
    /// A received result was withdrawn: the external task is open again.
    OutputWithdrawn {
        /// The id of the task that waits again.
        task: TaskId,
        /// The external task that is open again.
        from: ExternalTaskRef,
    },
    /// A task was held: neither it nor a task below it starts until the hold is lifted.
    TaskHeld {
        /// The id of the task.
        task: TaskId,
        /// The actor that holds it.
        by: Actor,
        /// Why the task is held.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// The hold of a task was lifted.
    TaskUnheld {
        /// The id of the task.
        task: TaskId,
    },
    /// A person or an agent commented on a task.
    TaskCommented {
        /// The id of the task.
        task: TaskId,
        /// The author of the comment.
        by: Actor,
        /// The text of the comment.
        text: String,
        /// When it was written, if not with this version: another clone of a shared plan wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// Its place among the comments, from 0, if it is not the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<u32>,
    },
    /// The labels of a task changed.
    TaskLabeled {
        /// The id of the task.
        task: TaskId,
        /// All its labels, sorted.
        labels: Vec<String>,
    },
    /// The task got another assignee.
    TaskAssigned {
        /// The id of the task.
        task: TaskId,
        /// The person or agent that is to take care of it; absent for nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assignee: Option<String>,
    },
}
