//! Errors that are about one plan, and not about the store.

use waypost_core::PlanId;
use waypost_store::{StoreError, WriteError};

/// Describes what happened to a plan during its run.
pub(super) fn lost_plan(plan: &PlanId, error: &WriteError) -> String {
    let what = match error {
        WriteError::NotFound(_) => format!("plan {plan} was purged while it ran"),
        WriteError::Refused(_)
        | WriteError::Conflict(_)
        | WriteError::Ambiguous { .. }
        | WriteError::NoSuchVersion { .. }
        | WriteError::IdUsed(_)
        | WriteError::Store(_) => format!("plan {plan} cannot be run any more: {error}"),
    };
    format!("{what}; what ran of it was stopped")
}

/// Whether an error of the store is about one plan and lasts.
pub(super) fn is_of_plan(error: &StoreError) -> bool {
    match error {
        StoreError::Corrupt { .. } | StoreError::Pruned { .. } => true,
        StoreError::TooNew { .. }
        | StoreError::Busy
        | StoreError::HolderStopped { .. }
        | StoreError::Files { .. }
        | StoreError::DiskFull { .. }
        | StoreError::StoreRemoved { .. }
        | StoreError::Database(_)
        | StoreError::Unreachable(_)
        | StoreError::NotADatabase(_)
        | StoreError::BadCursor(_)
        | StoreError::BadLocation(_) => false,
    }
}
