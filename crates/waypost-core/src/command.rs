//! What a door can ask of a plan. Says nothing about whether it is allowed: that is `Plan::decide`.

use crate::{
    Complexity, Dependency, DependencyRule, Digest, Draft, Evidence, ExternalTaskRef, ForeignFields, Json,
    Lock, Phase, QuestionRequest, Refinement, Retry, TaskId, TaskSpec, Timestamp, UpstreamResult, Work,
};

/// A place among siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// Before all others.
    First,
    /// After all others.
    #[default]
    Last,
    /// Right before this sibling.
    Before(TaskId),
    /// Right after this sibling.
    After(TaskId),
}

/// Changes to what the author says of a plan; what is `None` stays. An empty text clears.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanChanges {
    /// The line for lists.
    pub title: Option<String>,
    /// What is to be reached.
    pub goal: Option<String>,
    /// The author's free words.
    pub status: Option<String>,
    /// The agent that it belongs to.
    pub owner: Option<String>,
    /// The queue.
    pub queue: Option<String>,
    /// Tokens that planning may spend; `Some(None)` takes the limit away.
    pub token_budget: Option<Option<u64>>,
    /// Free Markdown text.
    pub body: Option<String>,
    /// Fields of foreign formats.
    pub foreign: Option<ForeignFields>,
}

/// Changes to what the author says of a task; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskChanges {
    /// What is to be done.
    pub description: Option<String>,
    /// What it waits for, all of it.
    pub depends_on: Option<Vec<Dependency>>,
    /// What it waits for besides.
    pub add_dependencies: Vec<Dependency>,
    /// What it no longer waits for.
    pub remove_dependencies: Vec<Dependency>,
    /// How those must have ended.
    pub when: Option<DependencyRule>,
    /// The author's estimate.
    pub complexity: Option<Option<Complexity>>,
    /// Free text.
    pub notes: Option<String>,
    /// Tools, a hint.
    pub tools: Option<Option<Vec<String>>>,
    /// Whether it is passed over.
    pub skip: Option<bool>,
    /// What it must hold.
    pub locks: Option<Vec<Lock>>,
    /// What a machine is to do.
    pub work: Option<Option<Work>>,
    /// What must pass before done is believed.
    pub check: Option<Option<Work>>,
    /// How often to try.
    pub retry: Option<Option<Retry>>,
    /// Seconds that an attempt may take.
    pub timeout_seconds: Option<Option<u32>>,
    /// Higher goes first.
    pub priority: Option<i32>,
    /// The name of its output.
    pub provides: Option<Option<String>>,
    /// The node of an architecture graph.
    pub graph_node_id: Option<Option<String>>,
    /// Fields of foreign formats.
    pub foreign: Option<ForeignFields>,
}

/// How a task ended, as whoever worked on it says.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Fully accomplished.
    Done {
        /// In words.
        result: Option<String>,
        /// For those who depend on it.
        output: Option<Json>,
        /// What the task's check has found; without it, done is only a report where there is a check.
        evidence: Option<Box<Evidence>>,
    },
    /// Not accomplished.
    Failed {
        /// Why.
        error: String,
        /// What the task's check has found, if that is why.
        evidence: Option<Box<Evidence>>,
    },
    /// It turned out to be unnecessary; those who depend on it go on.
    Skipped {
        /// Why.
        reason: Option<String>,
    },
}

/// What a door asks of a plan.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Command {
    /// Make the plan. The only command that a blank plan takes.
    Create {
        /// What it is to be.
        draft: Box<Draft>,
        /// Whether machines may run it only after a person has approved; `None`: if an agent gives work to machines.
        approval_required: Option<bool>,
    },
    /// Change what the author says of the plan.
    RevisePlan(Box<PlanChanges>),
    /// Add tasks, all or none.
    AddTasks {
        /// The tasks; each names its parent.
        tasks: Vec<TaskSpec>,
        /// Where the first goes among its siblings; the others follow.
        place: Position,
    },
    /// Change what the author says of a task.
    ReviseTask {
        /// Which.
        task: TaskId,
        /// How.
        changes: Box<TaskChanges>,
    },
    /// Take tasks out, with all their children.
    RemoveTask {
        /// Which.
        task: TaskId,
        /// Whether those who depend on it forget it; otherwise they forbid the removal.
        detach: bool,
    },
    /// Give a task another parent or another place among its siblings.
    MoveTask {
        /// Which.
        task: TaskId,
        /// The new parent; `None` leaves it, `Some(None)` makes it a root.
        parent: Option<Option<TaskId>>,
        /// The new place.
        place: Position,
    },
    /// Make the plan what this draft says, keeping what already happened to tasks that ask the same as before.
    Replace(Box<Draft>),
    /// Ask a person for approval.
    RequestApproval {
        /// What to tell the person.
        message: String,
    },
    /// Allow the plan to run. Only a person can.
    Approve {
        /// The version that was looked at.
        version: u64,
        /// What the person adds.
        note: String,
    },
    /// Do not allow it. Only a person can.
    Reject {
        /// Why.
        reason: String,
    },
    /// Begin to run.
    Activate,
    /// Start nothing new.
    Pause {
        /// Why.
        reason: String,
    },
    /// Go on.
    Resume,
    /// Somebody begins to work on a task.
    StartTask {
        /// Which.
        task: TaskId,
        /// Who.
        worker: String,
    },
    /// A worker reserves a task, which it begins as soon as it can: with an attempt, a lease and locks, like a start.
    QueueTask {
        /// Which.
        task: TaskId,
        /// Who.
        worker: String,
    },
    /// The work of a queued attempt has begun. Written up to a moment after the fact, so that it says when.
    RecordStart {
        /// Which.
        task: TaskId,
        /// The attempt that was queued.
        attempt: u32,
        /// When its work began.
        started_at: Timestamp,
    },
    /// Somebody says how a task ended.
    FinishTask {
        /// Which.
        task: TaskId,
        /// The attempt that reports; `None` for a person or agent who ticks off what nobody else works on.
        attempt: Option<u32>,
        /// How it ended.
        outcome: Outcome,
        /// How often to try where the task itself does not say.
        retry: Option<Retry>,
    },
    /// Whoever worked on a task is gone.
    LoseTask {
        /// Which.
        task: TaskId,
        /// The attempt that was lost.
        attempt: u32,
        /// How often to try where the task itself does not say.
        retry: Option<Retry>,
    },
    /// Somebody who works on a task gives it back undone. That says nothing about the task.
    ReleaseTask {
        /// Which.
        task: TaskId,
        /// The attempt that is given back; `None` for whoever works on it, and for a person.
        attempt: Option<u32>,
        /// Why.
        reason: String,
    },
    /// Somebody who works on a task asks a person, and leaves the task until there is an answer.
    AskQuestion {
        /// Which.
        task: TaskId,
        /// The attempt that asks; `None` for whoever works on it, and for a person.
        attempt: Option<u32>,
        /// What.
        ask: Box<QuestionRequest>,
    },
    /// Answer what a task asks. Only a person can.
    AnswerQuestion {
        /// Which.
        task: TaskId,
        /// The answer.
        answer: String,
    },
    /// Stop a task, with all its children.
    CancelTask {
        /// Which.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// Set a finished task back, and what was skipped because of it.
    RetryTask {
        /// Which.
        task: TaskId,
    },
    /// Set everything back that failed or was cancelled.
    RetryPlan,
    /// Say how far the thinking about a task has come.
    RefineTask {
        /// Which.
        task: TaskId,
        /// How far.
        refinement: Refinement,
        /// Why.
        reasoning: Option<String>,
        /// Tokens that this cost.
        tokens: i64,
    },
    /// Break a task down into children.
    DecomposeTask {
        /// Which.
        task: TaskId,
        /// Its children.
        children: Vec<TaskSpec>,
        /// Why so.
        reasoning: Option<String>,
        /// Tokens that this cost.
        tokens: i64,
    },
    /// Keep the digest of finished work.
    AttachDigest {
        /// Which.
        task: TaskId,
        /// The digest.
        digest: Digest,
        /// Tokens that this cost.
        tokens: i64,
    },
    /// Say what a call of a model cost. What was said of a call is not said twice.
    ChargeTokens {
        /// What the call was about; `None`: the plan. A task that is gone is the plan's affair.
        task: Option<TaskId>,
        /// Tokens that it cost.
        tokens: i64,
        /// Its number among the plan's calls, from 1.
        call: u64,
    },
    /// Take back the thinking about a task, with everything that was thought out below it.
    RollBackTask {
        /// Which.
        task: TaskId,
        /// Whether those who depend on what goes forget it; otherwise they forbid it.
        detach: bool,
    },
    /// Tell a waiting task how a task elsewhere ended.
    ReceiveOutput {
        /// Who waits.
        task: TaskId,
        /// What it waited for.
        from: ExternalTaskRef,
        /// How that ended.
        received: UpstreamResult,
    },
    /// Tell a task that has not begun that a task elsewhere, of whose end it has heard, is to be done again.
    WithdrawOutput {
        /// Who waits.
        task: TaskId,
        /// What for.
        from: ExternalTaskRef,
    },
    /// End the plan.
    FinishPlan {
        /// How: completed, failed or cancelled.
        phase: Phase,
        /// What its author says.
        summary: String,
    },
    /// Put the plan away.
    Archive,
    /// Take it out again.
    Unarchive,
}

impl Command {
    /// The name of the command, as the history shows it.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
