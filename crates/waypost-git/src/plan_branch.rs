//! The branch of shared plans in a repository: whether it is there, and whether it is one.

use crate::error::GitError;
use crate::layout::{FORMAT, FORMAT_FILE, PLANS, read_format};
use crate::repository::{Oid, RefName, Repository, Tip};

/// The reference of a repository that holds shared plans.
#[derive(Clone, Copy, Debug)]
pub struct PlanBranch<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) name: &'a RefName,
}

impl<'a> PlanBranch<'a> {
    /// Names the branch. Nothing is read.
    pub fn new(repository: &'a Repository, name: &'a RefName) -> Self {
        Self { repository, name }
    }

    /// Returns the repository.
    pub fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// Returns the name of the reference.
    pub fn name(&self) -> &'a RefName {
        self.name
    }

    /// Returns what the branch points to; `None` if there is no such branch.
    pub fn tip(&self) -> Result<Option<Tip>, GitError> {
        self.repository.tip(self.name.as_str())
    }

    /// Refuses a commit that a newer Waypost wrote, or that holds something else than plans.
    pub fn check_format(&self, commit: &Oid) -> Result<(), GitError> {
        let name = self.name.as_str().to_owned();
        match self.repository.small_file(commit, FORMAT_FILE)?.map(|text| read_format(&text)) {
            Some(Some(found)) if found <= FORMAT => Ok(()),
            Some(Some(found)) => Err(GitError::TooNew { name, found, known: FORMAT }),
            Some(None) => {
                Err(GitError::NotOurs { name, problem: "holds a file `format` that is not Waypost's" })
            }
            // Somebody may have deleted the file; the records are still there.
            None if !self.repository.files(commit, PLANS)?.0.is_empty() => Ok(()),
            None => Err(GitError::NotOurs { name, problem: "holds something else than plans" }),
        }
    }
}
