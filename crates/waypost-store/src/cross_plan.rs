//! Dependencies on tasks of other plans.

pub(crate) mod deliver;
pub(crate) mod locate;
pub(crate) mod resolve;
pub(crate) mod target_status;
