//! The branch that a store shares its plans on, as a front end names it.

use std::sync::Arc;

use waypost_git::{PlanBranch, RefName, RemoteName, Repository};

use super::error::SharingError;

/// Finds the branch when it is needed: its remote, and the trust in it, can change while a program runs.
pub type FindBranch = Arc<dyn Fn() -> Result<SharedBranch, SharingError> + Send + Sync>;

/// Where the plans of a store travel.
#[derive(Clone, Debug)]
pub struct SharedBranch {
    /// The repository.
    pub repository: Repository,
    /// The reference that holds the plans.
    pub name: RefName,
    /// The remote; `None` if the repository has none of that name.
    pub remote: Option<RemoteName>,
    /// What tells this store from a copy of it, such as the machine and the file.
    pub place: String,
    /// Whether a person has trusted what comes from that remote.
    pub trusted: bool,
}

impl SharedBranch {
    pub(super) fn branch(&self) -> PlanBranch<'_> {
        PlanBranch::new(&self.repository, &self.name)
    }
}
