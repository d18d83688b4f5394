//! Write requests, their results and errors. Decides nothing.

use std::sync::Arc;

use waypost_core::{Actor, Command, Difference, Draft, Plan, PlanId, Refusal};

use crate::cross_plan::target_status::TargetStatus;
use crate::error::StoreError;
use crate::rows::{SharedScope, Wait};
use crate::store::Read;
use crate::workers::Slots;

/// A request to create a plan.
#[derive(Clone, Debug)]
pub struct NewPlan {
    /// The id of the plan; `None` for a random one.
    pub id: Option<PlanId>,
    /// The actor that creates the plan.
    pub by: Actor,
    /// The content of the plan.
    pub draft: Draft,
    /// Whether machines may run the plan only after a person has approved it; see [`Command::Create`].
    pub approval_required: Option<bool>,
}

/// Commands for one plan that become one version, all or none.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// The id of the plan.
    pub plan: PlanId,
    /// The actor that makes the request.
    pub by: Actor,
    /// The commands. Each is decided on the state that the previous ones leave.
    pub commands: Vec<Command>,
    /// The version that the caller has read, if it matters: the write then fails with a conflict if the plan has
    /// changed since. [`crate::PlanStore::write_partial`] ignores it.
    pub known_version: Option<u64>,
    /// The lease duration of started tasks in seconds; `None` for leases that never expire.
    pub lease_seconds: Option<u32>,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The id of the plan.
    pub plan: PlanId,
    /// The version of the plan after the write.
    pub version: u64,
    /// Whether a version was written: commands that change nothing make none.
    pub changed: bool,
    /// For [`crate::PlanStore::write_partial`]: the refused commands, by their index in the request.
    pub rejected: Vec<(usize, Refusal)>,
    /// The new waits for tasks of other plans that do not exist yet: the first [`crate::WARNINGS_MAX`].
    pub unresolved: Vec<(Wait, TargetStatus)>,
}

impl Committed {
    /// Returns the result of a write that changed nothing: the plan is at this version.
    pub fn unchanged(plan: PlanId, version: u64) -> Self {
        Self { plan, version, changed: false, rejected: Vec::new(), unresolved: Vec::new() }
    }

    /// Returns the unresolved waits as texts for the user.
    pub fn warnings(&self) -> Vec<String> {
        let words = |(wait, found): &(Wait, TargetStatus)| {
            format!("{} waits for {}", wait.task, found.named(&wait.on))
        };
        self.unresolved.iter().map(words).collect()
    }
}

/// The plan has changed since the caller read it.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The id of the plan.
    pub plan: PlanId,
    /// The version that the caller had read.
    pub known: u64,
    /// The current version.
    pub current: u64,
    /// The differences between the two versions, at most 50; none if the known version cannot be read any more.
    pub differences: Vec<Difference>,
    /// The number of all differences.
    pub differences_total: usize,
    /// The actors that have written since.
    pub writers: Vec<Actor>,
}

/// The reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A rule of the plan refuses the write.
    #[error("{0}")]
    Refused(Refusal),
    /// Another writer was faster.
    #[error("plan {} is at version {}, not {}", .0.plan, .0.current, .0.known)]
    Conflict(Box<Conflict>),
    /// No plan has that id.
    #[error("no plan is called {0}")]
    NotFound(String),
    /// Several plan ids begin with the prefix.
    #[error("{prefix} could be any of {}{}", candidates.iter().map(PlanId::as_str).collect::<Vec<_>>().join(", "), if *more { " and others" } else { "" })]
    Ambiguous {
        /// The prefix that was given.
        prefix: String,
        /// Ids that begin with it, at most ten.
        candidates: Vec<PlanId>,
        /// Whether there are more of them.
        more: bool,
    },
    /// The plan has no such version.
    #[error("plan {plan} has versions 1 to {current}, and no version {wanted}")]
    NoSuchVersion {
        /// The id of the plan.
        plan: PlanId,
        /// The requested version.
        wanted: u64,
        /// The current version.
        current: u64,
    },
    /// The id was used before. Ids are never reused.
    #[error("the id {0} was used before")]
    IdUsed(PlanId),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl From<Refusal> for WriteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl WriteError {
    /// Returns what the user can do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.hint(),
            Self::Conflict(_) => {
                "look at what changed since, then write again with the current version".into()
            }
            Self::NotFound(_) => "list the plans".into(),
            Self::Ambiguous { .. } => "write more of the id".into(),
            Self::NoSuchVersion { .. } => "list the versions".into(),
            Self::IdUsed(_) => "choose another id, or leave it out to get a new one".into(),
            Self::Store(error) => error.hint().into(),
        }
    }
}

/// Builds the commands of a write from the plan inside the transaction, so that no other write can come between the
/// read and the write. It may be called again when the backend retries the transaction. Returns `None` to abandon the
/// write, for a reason that the caller knows.
pub type BuildCommands = Arc<dyn Fn(&Plan) -> Option<Vec<Command>> + Send + Sync>;

/// Builds further commands of a write from the plan as its other commands leave it, and from what the transaction reads.
/// They become part of the same version. Like [`BuildCommands`] it may be called again, and may abandon the write.
pub type AppendCommands = Arc<dyn Fn(&Plan, &mut dyn Read) -> Option<Vec<Command>> + Send + Sync>;

/// A write of what plans share with other clones: commands for a plan, and the rows that go with the version they make,
/// all or none.
#[derive(Clone)]
pub struct SharedWrite {
    /// The id of the plan.
    pub plan: PlanId,
    /// The actor that makes the request.
    pub by: Actor,
    /// The version that the caller has read; `None` for a plan that the first command creates.
    pub known_version: Option<u64>,
    /// The commands; none to store only rows.
    pub commands: Vec<Command>,
    /// Makes the rows from the version of the plan after the commands. It may be called again.
    pub rows: MakeRows,
}

/// Makes rows about shared plans from the version of a plan.
pub type MakeRows = Arc<dyn Fn(u64) -> Vec<SharedRow> + Send + Sync>;

/// A row about shared plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRow {
    /// Its group.
    pub group: SharedGroup,
    /// Its key.
    pub key: String,
    /// Its value; `None` removes it.
    pub value: Option<String>,
}

/// Removes a plan and its history for good.
#[derive(Clone)]
pub struct Purge {
    /// The id of the plan.
    pub plan: PlanId,
    /// The actor that makes the request.
    pub by: Actor,
    /// The version that the caller has read; `None` purges the plan at any version.
    pub known_version: Option<u64>,
    /// The rows that the purge leaves, in the same transaction.
    pub rows: Vec<SharedRow>,
}

/// The group of a row of one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedGroup {
    /// [`SharedScope::Plans`].
    Plans,
    /// [`SharedScope::Records`] of the plan.
    Records,
    /// [`SharedScope::Unpublished`] of the plan.
    Unpublished,
    /// [`SharedScope::Withheld`].
    Withheld,
}

impl SharedGroup {
    pub(crate) fn of(self, plan: &PlanId) -> SharedScope<'_> {
        match self {
            Self::Plans => SharedScope::Plans,
            Self::Records => SharedScope::Records(plan),
            Self::Unpublished => SharedScope::Unpublished(plan),
            Self::Withheld => SharedScope::Withheld,
        }
    }
}

/// What happens to a write when some of its commands are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRefusal {
    /// Nothing is written.
    Fail,
    /// The refused commands are left out, and the answer lists them.
    Skip,
}

/// One version of a plan to be written.
pub(crate) struct Write {
    pub(crate) request: WriteRequest,
    /// The slots that the started tasks take.
    pub(crate) slots: Option<Slots>,
    /// Builds the commands that replace those of the request.
    pub(crate) build: Option<BuildCommands>,
    /// Builds commands that follow the others.
    pub(crate) append: Option<AppendCommands>,
    pub(crate) on_refusal: OnRefusal,
}

/// A queued write.
pub(super) enum Job {
    Create(Option<PlanId>, Actor, Command),
    Write(Box<Write>),
    Purge(Purge),
    Shared(Box<SharedWrite>),
}

/// The result of a write, or the reason why nothing was written.
pub type Answer = Result<Committed, WriteError>;

/// The reason why a job of a group failed.
pub(crate) enum BatchError {
    /// Only this job fails.
    OfTheJob(WriteError),
    /// The store failed during a write: the whole group fails.
    OfTheStore(StoreError),
}

impl<E: Into<WriteError>> From<E> for BatchError {
    fn from(error: E) -> Self {
        Self::OfTheJob(error.into())
    }
}

pub(crate) type Done = Result<Committed, BatchError>;
