//! Hint keys: what to do next after an error or a refusal. Each front end words them, because the next step is a command in
//! one and a tool call or a click in another.

use std::fmt;

use waypost_core::PlanId;

/// The next step to suggest. Each front end words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// No suggestion.
    None,
    /// List the plans.
    ListPlans,
    /// List the versions of the plan.
    ListVersions(PlanId),
    /// Give more characters of the id.
    LongerId,
    /// Choose another id, or omit it.
    OtherId,
    /// Read the changes, then write again with this version.
    ReadChanges {
        /// The id of the plan.
        plan: PlanId,
        /// The newest version of the plan.
        current: u64,
    },
    /// Fix all listed problems.
    FixProblems,
    /// Name the format.
    NameFormat,
    /// Use a format that supports reading, or one that supports writing.
    OtherFormat,
    /// Correct the text at the position that the error names.
    FixText,
    /// Check that this is the right text.
    RightText,
    /// Provide a text with exactly one plan.
    OnePlan,
    /// Take the task over if the other session is gone; otherwise claim another task.
    TakeOver,
    /// Report the task as failed, or as done once more if it surely is.
    FailOrBeSure,
    /// Look at the preview of the plan again, then decide.
    PreviewAgain(PlanId),
    /// Read what the task asks now, then answer.
    ReadQuestion(PersonAct),
    /// Ask a person to do it.
    AskPerson(PersonAct),
    /// Ask a person to trust the remote that the plan is from.
    TrustRemote,
    /// Leave it to an agent or a person.
    LeaveToOthers,
    /// Do it where it is proved that a person acts.
    ProvePresence(PersonAct),
    /// Do it under the name of the account.
    UseOwnName(PersonAct),
    /// Sign it.
    Sign {
        /// What a person signs.
        act: PersonAct,
        /// Whether with a key that has to be touched.
        touch: bool,
    },
    /// Approve the plan, perhaps once more.
    Approve(PlanId),
    /// Run the plan as its author, or approve what another wrote.
    RunOrApprove(PlanId),
    /// Approve what would run now, or restore the configuration of the worker.
    ApproveOrRestore(PlanId),
    /// Approve the plan on this account, or allow the signer.
    ApproveOrAllowSigner(PlanId),
    /// Retry a task for people and answer it again, so that a record shows it.
    AnswerAgain {
        /// The id of the plan.
        plan: PlanId,
        /// The id of the task.
        task: String,
    },
    /// Trust the store in the place of the earlier one, if that is intended.
    TrustStore,
    /// Start the plan, or ask for its approval.
    StartPlan,
    /// Change what the dependants depend on, or drop these dependencies.
    DropDependencies,
    /// Check the store for damage.
    CheckStore,
    /// Read the latest state of the plan.
    ReadLatest(PlanId),
    /// Name the key to sign with.
    NameKey,
    /// Sign so that the approval counts in every store.
    SignPortable,
    /// A hint with the same wording at every front end.
    Text(String),
}

/// What a person does to a plan or a task. Its text is a clause; each front end says how it is done there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonAct {
    /// What is done.
    pub verb: PersonVerb,
    /// The id of the plan.
    pub plan: String,
    /// The id of the task, for what is done to one.
    pub task: Option<String>,
}

/// What a person does. The names are those of the actions and commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PersonVerb {
    /// Approve a plan.
    Approve,
    /// Withdraw an approval.
    Revoke,
    /// Delete a plan with its history.
    Purge,
    /// Answer a question, or end a task for people.
    Answer,
    /// Cancel a task for people.
    Cancel,
    /// Resume what was paused.
    Resume,
    /// Run again what has ended.
    Retry,
    /// Restore from the archive.
    Unarchive,
    /// Let a held task start.
    Unhold,
    /// Start a plan.
    Run,
    /// Claim a task.
    Start,
    /// Report a task as done.
    Done,
    /// Report a task as failed.
    Fail,
    /// Skip a task.
    Skip,
    /// Change the content.
    Edit,
}

impl PersonAct {
    /// Creates an act on a plan.
    pub fn on_plan(verb: PersonVerb, plan: &PlanId) -> Self {
        Self { verb, plan: plan.to_string(), task: None }
    }

    /// Creates an act on a task of a plan.
    pub fn on_task(verb: PersonVerb, plan: impl ToString, task: impl ToString) -> Self {
        Self { verb, plan: plan.to_string(), task: Some(task.to_string()) }
    }
}

impl fmt::Display for PersonAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, plan, task } = self;
        match task {
            Some(task) => write!(f, "{verb} task {task} of plan {plan}"),
            None => write!(f, "{verb} plan {plan}"),
        }
    }
}
