//! From a goal to a checked plan: what to ask a model next, and what its answers mean.
//!
//! Pure: no network, no files, no clock. A session says what to ask ([`Ask`]); whoever drives it (the engine) brings the
//! [`Answer`]; the session turns it into commands for the plan, or into the next question.

pub mod budget;
pub mod decompose;
pub mod digest;
pub mod extract;
pub mod generate;
mod manner;
pub mod planning;
mod prompts;
mod reading;
mod repair;
mod schemas;
pub mod textplan;
mod words;

pub use budget::{Bound, Broken, Budget, Limits, Reserve, Spent};
pub use decompose::{Bounds, Decompose, Heard, Meaning, Progress, Refining, Stopped};
pub use digest::{Digested, Digesting, Fidelity, NoDigest};
pub use generate::{Context, GaveUp, Generate, Generated, Planned, TextPlans, Unwanted, Wanted};
pub use manner::{Manner, PROBLEMS_TOLD_MAX, SHOWN_AGAIN_BYTES_MAX};
pub use prompts::{BadPrompt, Prompts, TEMPLATE_BYTES_MAX};
pub use repair::Repair;
pub use schemas::schema;
pub use waypost_llm::{Answer, Ask, Ended, Price, Purpose, Role, Schema, Speaker, Turn};
pub use words::RESTATEMENT_PERCENT;
