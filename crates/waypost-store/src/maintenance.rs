//! Operations on a whole store rather than on one plan: checks, copies and pruning.

pub(crate) mod copy;
pub(crate) mod integrity;
pub(crate) mod prune;
