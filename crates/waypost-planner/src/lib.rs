//! From a goal to a validated plan: what to ask a model next, and what its answers mean.
//!
//! Outside of [`planning`], no network, no files and no clock: a session returns requests ([`ModelRequest`]), the driver brings
//! the [`Answer`]s, and the session turns them into commands for the plan or into further requests.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod budget;
pub mod decompose;
pub mod digest;
pub mod generate;
pub mod json_extract;
mod lenient_fields;
pub mod planning;
mod prompting;
mod prompts;
pub mod prose_plan;
mod repair;
mod schemas;
mod similarity;

pub use budget::{Bound, Broken, Budget, Limits, Reserve, Spent};
pub use decompose::{AnswerKind, AnswerResult, Bounds, Decompose, Progress, Refining, Stopped};
pub use digest::{Digested, Digesting, Fidelity, NoDigest};
pub use generate::{Context, Generate, Generated, GenerationFailed, PlanBrief, Planned, TextPlans, Unwanted};
pub use prompting::{PROBLEMS_TOLD_MAX, PromptPolicy, SHOWN_AGAIN_BYTES_MAX};
pub use prompts::{BadPrompt, Prompts, TEMPLATE_BYTES_MAX};
pub use repair::Repair;
pub use schemas::schema;
pub use similarity::RESTATEMENT_PERCENT;
pub use waypost_llm::{Answer, Ended, ModelRequest, Price, Purpose, Role, Schema, Speaker, Turn};
