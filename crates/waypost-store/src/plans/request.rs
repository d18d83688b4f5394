//! Write requests, their results and errors. Decides nothing.

use std::sync::Arc;

use waypost_core::{Actor, Command, Difference, Draft, Plan, PlanId, Refusal};

use crate::cross_plan::target_status::TargetStatus;
use crate::error::StoreError;
use crate::rows::Wait;
use crate::workers::Slots;

/// A plan that is to be made.
#[derive(Clone, Debug)]
pub struct NewPlan {
    /// The id that it should have; without one it gets a new one.
    pub id: Option<PlanId>,
    /// Who makes it.
    pub by: Actor,
    /// What it is to be.
    pub draft: Draft,
    /// Whether machines may run it only after a person has approved; see [`Command::Create`].
    pub approval_required: Option<bool>,
}

/// Commands for one plan that become one version, all or none.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// The plan.
    pub plan: PlanId,
    /// Who asks.
    pub by: Actor,
    /// Each is decided on the plan as the ones before it leave it.
    pub commands: Vec<Command>,
    /// The version that the caller knew, when it matters: then nothing is written if the plan has moved on.
    pub known_version: Option<u64>,
    /// The lease duration of started tasks.
    pub lease_seconds: Option<u32>,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The plan.
    pub plan: PlanId,
    /// Its version now.
    pub version: u64,
    /// The number of that version in the log; 0 when nothing was written.
    pub sequence: u64,
    /// Whether anything was written: what is as asked already makes no version.
    pub changed: bool,
    /// Of [`crate::PlanStore::write_partial`]: the commands that were refused, by their place in the request.
    pub rejected: Vec<(usize, Refusal)>,
    /// What tasks now wait for elsewhere that is not there so far: the first [`crate::WARNINGS_MAX`].
    pub unresolved: Vec<(Wait, TargetStatus)>,
}

impl Committed {
    /// Nothing was written: the plan is at this version.
    pub fn unchanged(plan: PlanId, version: u64) -> Self {
        Self { plan, version, sequence: 0, changed: false, rejected: Vec::new(), unresolved: Vec::new() }
    }

    /// What tasks now wait for that is not there so far, in words.
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
    /// The plan.
    pub plan: PlanId,
    /// The version that the caller knew.
    pub known: u64,
    /// The version that stands.
    pub current: u64,
    /// What differs between the two, up to a bound.
    pub differences: Vec<Difference>,
    /// How many differences there are.
    pub differences_total: usize,
    /// Who wrote since.
    pub writers: Vec<Actor>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A rule of the plan refuses it.
    #[error("{0}")]
    Refused(Refusal),
    /// Another writer was faster.
    #[error("plan {} is at version {}, not {}", .0.plan, .0.current, .0.known)]
    Conflict(Box<Conflict>),
    /// No plan has that id.
    #[error("no plan is called {0}")]
    NotFound(String),
    /// Several plans begin like that.
    #[error("{prefix} could be any of {}", candidates.iter().map(PlanId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The beginning that was given.
        prefix: String,
        /// Ids that begin so.
        candidates: Vec<PlanId>,
    },
    /// The plan has no such version.
    #[error("plan {plan} has versions 1 to {current}, and no version {wanted}")]
    NoSuchVersion {
        /// The plan.
        plan: PlanId,
        /// The version that was asked for.
        wanted: u64,
        /// The version that stands.
        current: u64,
    },
    /// The id was used before, and ids are never used twice.
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
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.hint(),
            Self::Conflict(_) => {
                "look at what changed since, then write again with the current version".into()
            }
            Self::NotFound(_) => "`waypost list` shows the plans".into(),
            Self::Ambiguous { .. } => "write more of the id".into(),
            Self::NoSuchVersion { .. } => "`waypost history` shows the versions".into(),
            Self::IdUsed(_) => "choose another id, or leave it out to get a new one".into(),
            Self::Store(error) => error.hint().into(),
        }
    }
}

/// Makes the commands of a write from the plan as it is inside the transaction, so that nothing can come between what was
/// read and what is written. It may be called again when the backend has to start over. Nothing: the write is given up, for a reason that
/// the caller knows.
pub type BuildCommands = Arc<dyn Fn(&Plan) -> Option<Vec<Command>> + Send + Sync>;

/// What becomes of a write when some of its commands are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRefusal {
    /// Nothing is written.
    Fail,
    /// They are left out, and the answer says which.
    Skip,
}

/// One version of a plan that is to be written.
pub(crate) struct Write {
    pub(crate) request: WriteRequest,
    /// The slots that tasks take that it starts.
    pub(crate) slots: Option<Slots>,
    /// Makes the commands, in place of those of the request.
    pub(crate) build: Option<BuildCommands>,
    pub(crate) on_refusal: OnRefusal,
}

/// A write that waits for its turn.
pub(super) enum Job {
    Create(Option<PlanId>, Actor, Command),
    Write(Box<Write>),
    Purge(PlanId, Actor),
}

/// What was written, or why nothing was.
pub type Answer = Result<Committed, WriteError>;

/// Why a job of a group was not done.
pub(crate) enum BatchError {
    /// It concerns this job alone.
    OfTheJob(WriteError),
    /// It happened while something was written: it concerns all.
    OfTheStore(StoreError),
}

impl<E: Into<WriteError>> From<E> for BatchError {
    fn from(error: E) -> Self {
        Self::OfTheJob(error.into())
    }
}

pub(crate) type Done = Result<Committed, BatchError>;
