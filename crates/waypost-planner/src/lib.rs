//! From a goal to a checked plan: what to ask a model next, and what its answers mean.
//!
//! Pure: no network, no files, no clock. A session says what to ask ([`Ask`]); whoever drives it (the engine) brings the
//! [`Answer`]; the session turns it into commands for the plan, or into the next question.

mod ask;
pub mod wire;

pub use ask::{Answer, Ask, Ended, Purpose, Role, Schema, Speaker, Turn};
