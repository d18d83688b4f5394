//! What concerns a whole store rather than one write: checks, copies, forgotten events.

pub(crate) mod copy;
pub(crate) mod integrity;
pub(crate) mod prune;
