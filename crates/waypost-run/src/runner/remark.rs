//! Warnings about a run itself, not about one of its tasks.

use waypost_core::{PlanId, TaskId};
use waypost_exec::AttemptKey;
use waypost_store::StoreError;

/// Plans that a warning names.
const PLANS_NAMED_MAX: usize = 5;

/// A warning for the operator of a worker.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunWarning {
    /// The store does not answer.
    StoreAway {
        /// The first error of the outage.
        error: String,
    },
    /// No disk space is left for the store.
    DiskFull {
        /// The first error of the outage.
        error: String,
    },
    /// The store answers again.
    StoreBack {
        /// The length of the outage.
        seconds: u64,
    },
    /// The lease of an attempt is lost, and another worker has the task.
    LeaseLost {
        /// The attempt, which is killed.
        key: AttemptKey,
    },
    /// A plan can no longer be read or written. The worker goes on with the others.
    PlanLost {
        plan: PlanId,
        /// What happened to it, as a message.
        why: String,
    },
    /// A remote job that a dead run left behind could not be ended. It is tried again.
    JobLeft {
        plan: PlanId,
        task: TaskId,
        /// What happened, as a message.
        why: String,
    },
    /// A report came too late and was refused.
    ReportRefused {
        /// The refusal, as a message.
        why: String,
    },
    /// No task of these active plans names an executor, so that no worker ever does anything for them.
    NoExecutor { plans: Vec<PlanId> },
    /// A task names an executor that the configuration of this worker does not have. It leaves all its tasks to others.
    UnknownExecutor {
        executor: String,
        plan: PlanId,
        /// The first such task.
        task: TaskId,
    },
    /// This worker was asked to drain through the store.
    DrainAsked,
    /// A newer build has migrated the store, so this worker drains.
    StoreMigrated {
        /// The schema of the store.
        schema: u32,
    },
}

impl RunWarning {
    /// The warning about the first error of an outage of the store.
    pub(super) fn of_outage(error: &StoreError) -> Self {
        let text = error.to_string();
        let is_full = matches!(error, StoreError::DiskFull { .. });
        if is_full { Self::DiskFull { error: text } } else { Self::StoreAway { error: text } }
    }

    /// Returns a stable name for programs.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

impl std::fmt::Display for RunWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StoreAway { error } => {
                write!(
                    f,
                    "the store does not respond: {error}; running tasks continue, and their results are kept until it does"
                )
            }
            Self::DiskFull { error } => write!(
                f,
                "{error}: free some; running tasks continue, their results are kept until they can be written, and no task \
                 starts (Ctrl-C twice ends the run without them)"
            ),
            Self::StoreBack { seconds } => write!(f, "the store answers again after {seconds} s"),
            Self::LeaseLost { key } => write!(
                f,
                "the lease of {}/{} (attempt {}) is over, and its task went to others: what still runs of it is killed, and \
                 nothing of it is reported",
                key.plan, key.task, key.attempt
            ),
            Self::PlanLost { why, .. } => write!(f, "{why}"),
            Self::JobLeft { plan, task, why } => write!(f, "{plan}/{task}: {why}; it is tried again"),
            Self::ReportRefused { why } => write!(f, "a report came too late and was refused: {why}"),
            Self::NoExecutor { plans } => {
                let names: Vec<&str> = plans.iter().take(PLANS_NAMED_MAX).map(PlanId::as_str).collect();
                let of = if let [_] = names.as_slice() { "plan" } else { "the plans" };
                let more = match plans.len().saturating_sub(names.len()) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(
                    f,
                    "no task of {of} {}{more} names an executor, so workers have nothing to do there: `waypost run {} \
                     --executor NAME` runs its tasks with one, `waypost next {1} --claim` is for people and agents",
                    names.join(", "),
                    names.first().unwrap_or(&"PLAN")
                )
            }
            Self::UnknownExecutor { executor, plan, task } => write!(
                f,
                "task {task} of plan {plan} names the executor {executor}, which the configuration of this worker does not \
                 have: its tasks are left to other workers"
            ),
            Self::DrainAsked => write!(f, "this worker was told to drain (`waypost workers drain`)"),
            Self::StoreMigrated { schema } => write!(
                f,
                "a newer Waypost has migrated the store to schema {schema}: running tasks finish, and no task starts; \
                 update this worker"
            ),
        }
    }
}
