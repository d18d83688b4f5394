//! Operations on a whole store rather than on one plan: checks, copies, pruning and the verification of histories.

pub(crate) mod copy;
pub(crate) mod integrity;
pub(crate) mod prune;
pub(crate) mod verify;
