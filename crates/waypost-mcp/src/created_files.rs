//! The files that tools of this server created.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Maximum number of files that a server remembers to have created. Further ones cannot be replaced.
pub(crate) const CREATED_FILES_MAX: usize = 10_000;

/// The files that tools of this server created, by their paths below the workspace. Only these may be replaced: a file of the
/// same name may be a person's.
#[derive(Default)]
pub(crate) struct CreatedFiles(Mutex<BTreeSet<Vec<String>>>);

impl CreatedFiles {
    pub(crate) fn insert(&self, names: Vec<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < CREATED_FILES_MAX {
            all.insert(names);
        }
    }

    pub(crate) fn contains(&self, names: &[String]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(names)
    }
}
