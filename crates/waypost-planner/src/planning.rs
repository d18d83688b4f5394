//! Drives planning sessions: sends requests to models, stores and charges their answers, and applies the resulting commands
//! to the plan.
//!
//! Every answer is in the journal before it has any effect, and the plan records which calls it was charged for. If a
//! process dies, another one can resume, and nothing is paid or charged twice. Others may change the plan meanwhile: an
//! answer is interpreted against the current plan, and its commands are written only if the plan is still at that version.

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
