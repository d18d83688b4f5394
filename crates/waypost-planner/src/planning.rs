//! Drives the sessions of the planner: asks models, keeps and charges what they answer, and tells the plan what it means.
//!
//! Every answer is in the journal before anything follows from it, and the plan says which of them it was charged with; so a
//! process that dies anywhere is followed by another that goes on, and nothing is paid or charged twice. People may change
//! the plan meanwhile: an answer is understood against the plan as it is, and written only if it still is so.

mod digests;
mod driver;
mod generate;
mod request;
mod session;
mod shared_budget;
mod stale_answers;
mod token_charges;

use crate::{Ask, Broken, Limits, Meaning, Price, Repair};
use waypost_core::{Actor, PlanId, Refinement, Refusal};
use waypost_store::{Plans, WriteError};

use waypost_llm::{Journal, Model, ModelError, Progress, Stop};

pub use digests::Digests;
pub use generate::{Drafted, NoDraft, generate};
pub use request::{Extent, Order, OrderError, Orders, Stand, Text, Unfinished, Want};
pub use session::Session;
pub use stale_answers::forget_outdated;
pub use token_charges::charge;

pub use waypost_llm::Halt;

/// Who is told how the thinking goes.
pub trait Watcher: Progress {
    /// An answer was understood, and the plan was told.
    fn stepped(&self, step: &Step<'_>);
}

/// An answer that was understood.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The question.
    pub ask: &'a Ask,
    /// What the answer was.
    pub meaning: &'a Meaning,
    /// What had to be put right in it.
    pub repairs: &'a [Repair],
    /// Why the plan did not take it, if it did not.
    pub refusal: Option<&'a Refusal>,
    /// What the goal says.
    pub description: &'a str,
    /// Goals above it.
    pub depth: usize,
    /// Goals right below it.
    pub children: usize,
    /// How far the thinking about it has come.
    pub refinement: Option<Refinement>,
}

/// How long to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// Until nothing is left to ask.
    #[default]
    All,
    /// Until one answer could be used.
    One,
}

/// What a question costs at the most, whoever answers it, if that is known of all who may.
pub type Prices<'a> = &'a (dyn Fn(&Ask) -> Option<Price> + Sync);

/// Everything that thinking about a plan needs.
pub struct Thinker<'a> {
    /// The plans of the store.
    pub plans: &'a Plans,
    /// The plan.
    pub plan: PlanId,
    /// In whose name the plan is told.
    pub by: Actor,
    /// Who is asked. Keeps its answers in `journal`.
    pub model: &'a dyn Model,
    /// The journal of this plan.
    pub journal: &'a Journal,
    /// Calls that the plan was charged with before this journal was begun.
    pub calls_before: u64,
    /// What may be spent; of the budget of tokens here and the one that the plan has itself, the smaller holds.
    pub limits: Limits,
    /// What questions cost.
    pub prices: Prices<'a>,
    /// Questions that are under way at once.
    pub parallel_max: usize,
    /// How long to think.
    pub steps: Steps,
    /// Ends it after what is under way.
    pub halt: Halt,
    /// Ends it at once.
    pub stop: Stop,
    /// Who is told.
    pub watcher: &'a dyn Watcher,
}

/// Why the thinking ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// There is nothing left to ask.
    Over,
    /// One step was wanted, and was made.
    Stepped,
    /// Somebody asked to end it.
    Halted,
    /// The plan was paused.
    Paused,
    /// The plan was put away, has ended, or is gone.
    Gone,
    /// The next question would go over a bound.
    Bound(Broken),
    /// No model answered.
    Trouble(ModelError),
    /// The same answer was of no use again and again.
    Circles {
        /// To which question.
        slot: String,
    },
}

/// What came of thinking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thought {
    /// Why it ended.
    pub ending: Ending,
    /// Answers that models gave now.
    pub asked: u64,
    /// Answers that were in the journal already.
    pub recalled: u64,
    /// Tokens of the answers that were given now.
    pub tokens: u64,
    /// What had to be put right in answers, each as often as it happened.
    pub repairs: Vec<Repair>,
    /// Answers that were returned to the model.
    pub returned: u64,
}

/// Why nothing can be thought.
#[derive(Debug, thiserror::Error)]
pub enum ThinkError {
    /// The store, or the plan in it.
    #[error(transparent)]
    Store(#[from] WriteError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] waypost_llm::JournalError),
}

impl From<waypost_store::StoreError> for ThinkError {
    fn from(error: waypost_store::StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl ThinkError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Store(error) => error.hint(),
            Self::Journal(error) => error.hint(),
        }
    }
}
