//! Drives the sessions of the planner: asks models, keeps and charges what they answer, and tells the plan what it means.
//!
//! Every answer is in the journal before anything follows from it, and the plan says which of them it was charged with; so a
//! process that dies anywhere is followed by another that goes on, and nothing is paid or charged twice. People may change
//! the plan meanwhile: an answer is understood against the plan as it is, and written only if it still is so.

mod digests;
mod driver;
mod generate;
mod request;
mod result;
mod session;
mod shared_budget;
mod stale_answers;
mod token_charges;

pub use digests::Digests;
pub use driver::{PlanningDriver, PlanningObserver, Prices, Step, Steps};
pub use generate::{Drafted, NoDraft, generate};
pub use request::{
    PlanningGoal, PlanningRequest, RequestError, RequestLimits, RequestProgress, RequestStore, Text,
    Unfinished,
};
pub use result::{PlanningError, PlanningResult, StopReason};
pub use session::Session;
pub use stale_answers::forget_outdated;
pub use token_charges::charge;

pub use waypost_llm::CancelToken;
