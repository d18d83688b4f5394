//! What sharing and syncing did, for front ends.

use serde::Serialize;
use waypost_core::PlanId;

/// What a sync did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    /// The branch.
    pub branch: String,
    /// The commit that the branch points to afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The remote, if the repository has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The number of records that were committed to the branch.
    pub published: usize,
    /// The number of records that were imported.
    pub imported: usize,
    /// The tags of the clones that wrote them.
    pub from: Vec<String>,
    /// The plans that the imported records changed.
    pub plans: Vec<PlanId>,
    /// The number of open questions of all shared plans.
    pub questions: usize,
    /// Whether the remote has everything that the branch has.
    pub pushed: bool,
    /// Whether something was sent to the remote.
    pub sent: bool,
    /// The number of records on the branch that the remote does not have, as far as is known here; 0 if it was not asked.
    pub waiting: usize,
    /// Plans with records that came neither from here nor from the trusted remote. Nothing is pushed before a person
    /// accepts them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strange: Vec<PlanId>,
    /// Why the remote could not be read or written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_problem: Option<String>,
    /// Whether the remote's branch holds something else than plans.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remote_overwritten: bool,
    /// What was not believed or could not be read, by commit, file and line.
    pub findings: Vec<String>,
    /// Plans of the branch that are not imported.
    pub kept_aside: Vec<KeptAside>,
    /// Plans that no agent is offered until a person has trusted where they came from.
    pub withheld: Vec<PlanId>,
}

/// A plan of the branch that is not imported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KeptAside {
    /// The plan.
    pub plan: PlanId,
    /// Why.
    pub reason: String,
}

impl std::fmt::Display for KeptAside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "plan {} is not imported: {}", self.plan, self.reason)
    }
}

/// The plans that are now shared, or not any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShareReply {
    /// The plans that changed.
    pub plans: Vec<PlanId>,
    /// The plans that the branch had, and that go on from there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<PlanId>,
    /// The plans that were so already.
    pub unchanged: Vec<PlanId>,
    /// The number of records that they became.
    pub records: usize,
}

/// A plan that travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedPlan {
    /// The plan.
    pub plan: PlanId,
    /// The number of its records.
    pub records: usize,
    /// The number of records that the branch does not have yet.
    pub unpublished: usize,
    /// The number of its open questions.
    pub questions: usize,
    /// Whether no agent is offered it.
    pub withheld: bool,
}

/// What is shared from this store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharingStatus {
    /// The tag of this clone; empty before anything was shared.
    pub tag: String,
    /// The shared plans.
    pub plans: Vec<SharedPlan>,
    /// Plans of the branch that have no place here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept_aside: Vec<KeptAside>,
    /// Why the remote could not be read or written the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_problem: Option<String>,
}

/// A plan that no agent is offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WithheldPlan {
    /// The plan.
    pub plan: PlanId,
    /// Whether its records did not come from the remote.
    pub is_strange: bool,
}
