//! Commands: the requests a front end can make of a plan. `Plan::decide` checks whether they are allowed.

use std::sync::Arc;

use crate::merge_request::MergeRequest;
use crate::{
    ApprovedWork, Complexity, Dependency, DependencyRule, Digest, Draft, Evidence, ExternalTaskRef,
    ForeignFields, GateRecord, Json, Lock, Phase, QuestionRequest, Refinement, Retry, StartRefusal, TaskId,
    TaskSpec, Timestamp, UpstreamResult, Work,
};

/// A position among siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// Before all other siblings.
    First,
    /// After all other siblings.
    #[default]
    Last,
    /// Directly before this sibling.
    Before(TaskId),
    /// Directly after this sibling.
    After(TaskId),
}

/// Changes to the author's part of a plan. A `None` field is unchanged; an empty text clears the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanChanges {
    /// The title shown in lists.
    pub title: Option<String>,
    /// The goal of the plan.
    pub goal: Option<String>,
    /// The author's free-text status; no program reads it.
    pub status: Option<String>,
    /// The agent that owns the plan.
    pub owner: Option<String>,
    /// The queue that the plan's work runs on.
    pub queue: Option<String>,
    /// The token budget for planning; `Some(None)` removes the limit.
    pub token_budget: Option<Option<u64>>,
    /// Free Markdown text.
    pub body: Option<String>,
    /// Fields of foreign formats.
    pub foreign: Option<ForeignFields>,
}

/// Changes to the author's part of a task. A `None` field is unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskChanges {
    /// The work to be done, in prose.
    pub description: Option<String>,
    /// Replaces the whole list of dependencies.
    pub depends_on: Option<Vec<Dependency>>,
    /// Dependencies to add.
    pub add_dependencies: Vec<Dependency>,
    /// Dependencies to remove.
    pub remove_dependencies: Vec<Dependency>,
    /// How the dependencies must have ended before the task may start.
    pub when: Option<DependencyRule>,
    /// The author's estimate of the effort.
    pub complexity: Option<Option<Complexity>>,
    /// Free text for the worker.
    pub notes: Option<String>,
    /// Tools that the author expects to be used; a hint.
    pub tools: Option<Option<Vec<String>>>,
    /// Whether the task is skipped.
    pub skip: Option<bool>,
    /// Locks that the task must hold while it runs.
    pub locks: Option<Vec<Lock>>,
    /// The machine work of the task.
    pub work: Option<Option<Work>>,
    /// The check that must pass before a report of done is accepted.
    pub check: Option<Option<Work>>,
    /// The retry policy.
    pub retry: Option<Option<Retry>>,
    /// Timeout of one attempt, in seconds.
    pub timeout_seconds: Option<Option<u32>>,
    /// Tasks with a higher priority start first.
    pub priority: Option<i32>,
    /// The name under which dependants receive the output.
    pub provides: Option<Option<String>>,
    /// The architecture graph node that the task belongs to.
    pub graph_node_id: Option<Option<String>>,
    /// Preserved fields of other formats.
    pub foreign: Option<ForeignFields>,
}

/// How a task ended, as reported by its worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Fully accomplished.
    Done {
        /// What was accomplished, in prose.
        result: Option<String>,
        /// The output passed to dependants.
        output: Option<Json>,
        /// The result of the task's check. Without it, a task that has a check is only reported as done.
        evidence: Option<Box<Evidence>>,
    },
    /// Not accomplished.
    Failed {
        /// Why the attempt failed.
        error: String,
        /// The result of the task's check, if that is the cause of the failure.
        evidence: Option<Box<Evidence>>,
    },
    /// The task turned out to be unnecessary; its dependants may proceed.
    Skipped {
        /// Why the task was skipped.
        reason: Option<String>,
    },
}

/// A request to change a plan.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Command {
    /// Create the plan. The only command that a blank plan accepts.
    Create {
        /// The content of the new plan. Shared: a caller that compares it afterwards needs no second copy.
        draft: Arc<Draft>,
        /// Whether machines may run the plan only after a person approved it. `None`: required if the creator is not a
        /// person and the plan has machine work or a check.
        approval_required: Option<bool>,
    },
    /// Change the author's part of the plan.
    RevisePlan(Box<PlanChanges>),
    /// Add tasks, all or none.
    AddTasks {
        /// The tasks to add; each names its parent.
        tasks: Vec<TaskSpec>,
        /// The position of the first task among its siblings; the others follow it.
        place: Position,
    },
    /// Change the author's part of a task.
    ReviseTask {
        /// The id of the task.
        task: TaskId,
        /// The changes to apply.
        changes: Box<TaskChanges>,
    },
    /// Remove a task and all its children.
    RemoveTask {
        /// The id of the task.
        task: TaskId,
        /// Whether to also remove dependencies on the removed tasks. Otherwise such dependencies refuse the removal.
        detach: bool,
    },
    /// Change a task's parent or its position among its siblings.
    MoveTask {
        /// The id of the task.
        task: TaskId,
        /// The new parent; `None` keeps the current one, `Some(None)` makes the task a root.
        parent: Option<Option<TaskId>>,
        /// The new position among the siblings.
        place: Position,
    },
    /// Make the plan match this draft. Tasks whose work is unchanged keep their state.
    Replace(Box<Draft>),
    /// Make the plan match one of its earlier versions, as [`Command::Replace`] does.
    Restore {
        /// The number of the earlier version.
        version: u64,
        /// Its content.
        draft: Box<Draft>,
    },
    /// Make the plan what the records of all clones say. Starts nothing. A blank plan accepts it, too.
    Merge(Box<MergeRequest>),
    /// Ask a person for approval.
    RequestApproval {
        /// The message shown to the person.
        message: String,
    },
    /// Allow the plan to run. Only a person can.
    Approve {
        /// The version that the person reviewed.
        version: u64,
        /// The person's note.
        note: String,
        /// What the person has seen. Without it no worker starts anything.
        work: Option<Box<ApprovedWork>>,
    },
    /// Withdraw the approval: nothing new starts until the plan is approved again. Only a person can.
    Revoke,
    /// Record that a worker starts nothing of this plan, and why.
    RefuseStart(Box<StartRefusal>),
    /// Reject the plan. Only a person can.
    Reject {
        /// Why the plan is rejected.
        reason: String,
    },
    /// Start the plan.
    Activate,
    /// Pause the plan: no further task starts.
    Pause {
        /// Why the plan is paused.
        reason: String,
    },
    /// Resume a paused plan.
    Resume,
    /// Claim a task and start it at once.
    StartTask {
        /// The id of the task.
        task: TaskId,
        /// The worker that claims the task.
        worker: String,
    },
    /// Reserve a task that the worker starts as soon as it can. Like a start, this creates an attempt, a lease and
    /// locks.
    QueueTask {
        /// The id of the task.
        task: TaskId,
        /// The worker that reserves the task.
        worker: String,
    },
    /// Record that the work of a queued attempt has begun. Written shortly after the fact, so it carries the start
    /// time.
    RecordStart {
        /// The id of the task.
        task: TaskId,
        /// The queued attempt.
        attempt: u32,
        /// When the work began.
        started_at: Timestamp,
    },
    /// Report how a task ended.
    FinishTask {
        /// The id of the task.
        task: TaskId,
        /// The attempt that reports; `None` for a person or agent that marks a task that no other worker holds.
        attempt: Option<u32>,
        /// How the task ended.
        outcome: Outcome,
        /// The retry policy to use if the task has none.
        retry: Option<Retry>,
    },
    /// Record that the worker of a task was lost.
    LoseTask {
        /// The id of the task.
        task: TaskId,
        /// The lost attempt.
        attempt: u32,
        /// The retry policy to use if the task has none.
        retry: Option<Retry>,
    },
    /// Release a running task without an outcome. This is not counted as a failure of the task.
    ReleaseTask {
        /// The id of the task.
        task: TaskId,
        /// The attempt to release; `None` for the current holder, and for a person.
        attempt: Option<u32>,
        /// Why the task is released.
        reason: String,
    },
    /// Ask a person a question and release the task until it is answered.
    AskQuestion {
        /// The id of the task.
        task: TaskId,
        /// The attempt that asks; `None` for the current holder, and for a person.
        attempt: Option<u32>,
        /// The question, its choices and the state to return with the answer.
        ask: Box<QuestionRequest>,
    },
    /// Answer the open question of a task. Only a person can.
    AnswerQuestion {
        /// The id of the task.
        task: TaskId,
        /// The answer, as the person gave it.
        answer: String,
    },
    /// Record that a person ended a task for people. Follows the command that ends it. Only a person can.
    RecordGate {
        /// The id of the task.
        task: TaskId,
        /// The record.
        gate: Box<GateRecord>,
    },
    /// Cancel a task and all its children.
    CancelTask {
        /// The id of the task.
        task: TaskId,
        /// Why the task is cancelled.
        reason: String,
    },
    /// Hold a task, or all tasks below it: none of them starts until the hold is lifted.
    HoldTask {
        /// The id of the task.
        task: TaskId,
        /// Why the task is held.
        reason: String,
    },
    /// Lift the hold of a task. Only a person lifts the hold of a person.
    UnholdTask {
        /// The id of the task.
        task: TaskId,
    },
    /// Comment on a task, for those who work on it. People and agents can.
    CommentTask {
        /// The id of the task.
        task: TaskId,
        /// The text of the comment.
        text: String,
    },
    /// Set the labels of a task. They change nothing that runs.
    LabelTask {
        /// The id of the task.
        task: TaskId,
        /// All labels; blank ones are left out, the others sorted.
        labels: Vec<String>,
    },
    /// Set who is to take care of a task. A hint: others may still claim it.
    AssignTask {
        /// The id of the task.
        task: TaskId,
        /// A person or agent; empty for nobody.
        assignee: String,
    },
    /// Reset a finished task, and the tasks that were skipped because of it.
    RetryTask {
        /// The id of the task.
        task: TaskId,
    },
    /// Reset every failed or cancelled task.
    RetryPlan,
    /// Record how far the planning of a task has progressed.
    RefineTask {
        /// The id of the task.
        task: TaskId,
        /// The stage that planning has reached.
        refinement: Refinement,
        /// Why the task is at this stage.
        reasoning: Option<String>,
        /// Tokens spent.
        tokens: i64,
    },
    /// Decompose a task into children.
    DecomposeTask {
        /// The id of the task.
        task: TaskId,
        /// The new children.
        children: Vec<TaskSpec>,
        /// Why the task was decomposed this way.
        reasoning: Option<String>,
        /// Tokens spent.
        tokens: i64,
    },
    /// Store the digest of finished work.
    AttachDigest {
        /// The id of the task.
        task: TaskId,
        /// The digest to store.
        digest: Digest,
        /// Tokens spent.
        tokens: i64,
    },
    /// Charge the tokens of one model call. Idempotent: a call number that was already charged is ignored.
    ChargeTokens {
        /// The task that the call was made for. `None`, or a task that no longer exists: charged to the plan.
        task: Option<TaskId>,
        /// Tokens spent.
        tokens: i64,
        /// The number of the call among the plan's calls, from 1.
        call: u64,
    },
    /// Discard a task's decomposition and all its subtasks.
    RollBackTask {
        /// The id of the task.
        task: TaskId,
        /// Whether to also remove dependencies on the discarded tasks. Otherwise such dependencies refuse the rollback.
        detach: bool,
    },
    /// Deliver the result of a task in another plan to a waiting task.
    ReceiveOutput {
        /// The id of the waiting task.
        task: TaskId,
        /// The external task that ended.
        from: ExternalTaskRef,
        /// The result of the external task.
        received: UpstreamResult,
        /// Whether it comes from records that nobody trusts here: no machine work starts because of it.
        untrusted: bool,
    },
    /// Withdraw a delivered result from a task that has not begun, because the external task is to be done again.
    WithdrawOutput {
        /// The id of the waiting task.
        task: TaskId,
        /// The external task that is open again.
        from: ExternalTaskRef,
    },
    /// End the plan.
    FinishPlan {
        /// The final phase: completed, failed or cancelled.
        phase: Phase,
        /// The author's summary.
        summary: String,
    },
    /// Archive the plan.
    Archive,
    /// Restore the plan from the archive.
    Unarchive,
}

impl Command {
    /// Returns the name of the command, as shown in the history.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
