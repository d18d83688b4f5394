//! Budgets of planning, checked before each call. Knows no clock and no prices: the driver of a session supplies both.

use serde::{Deserialize, Serialize};

use waypost_llm::Price;

use crate::ModelRequest;
use waypost_llm::token_estimate::estimate_ask;

/// Minimum useful length of an answer. A request whose answer would have to be shorter is refused.
pub const ANSWER_TOKENS_MIN: u32 = 256;

/// A limit on planning.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Levels of the tree.
    #[strum(serialize = "max_depth")]
    Depth,
    /// Tasks of the plan.
    #[strum(serialize = "max_goals")]
    Goals,
    /// Calls to models.
    #[strum(serialize = "max_calls")]
    Calls,
    /// Tokens of requests and answers.
    #[strum(serialize = "token_budget")]
    Tokens,
    #[strum(serialize = "cost_budget")]
    Cost,
    /// Elapsed time.
    #[strum(serialize = "seconds")]
    Seconds,
}

impl Bound {
    pub const ALL: [Self; 6] =
        [Self::Depth, Self::Goals, Self::Calls, Self::Tokens, Self::Cost, Self::Seconds];

    /// Its name in the configuration and in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Limits on the total spent; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Calls to models.
    pub calls_max: Option<u64>,
    /// Tokens of requests and answers.
    pub tokens_max: Option<u64>,
    /// Cost in millionths of the currency unit.
    pub cost_micros_max: Option<u64>,
    /// Seconds since the session began.
    pub seconds_max: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Calls to models.
    pub calls: u64,
    /// Tokens of requests and answers.
    pub tokens: u64,
    /// Cost in millionths of the currency unit.
    pub cost_micros: u64,
    /// Seconds since the session began.
    pub seconds: u64,
}

impl Spent {
    fn plus(&self, more: &Self) -> Self {
        self.each(more, u64::saturating_add)
    }

    fn minus(&self, less: &Self) -> Self {
        self.each(less, u64::saturating_sub)
    }

    fn each(&self, other: &Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            calls: combine(self.calls, other.calls),
            tokens: combine(self.tokens, other.tokens),
            cost_micros: combine(self.cost_micros, other.cost_micros),
            seconds: combine(self.seconds, other.seconds),
        }
    }
}

/// Why a request must not be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Broken {
    /// It would exceed a limit.
    #[error("{bound} is {max}: {spent} were spent, and the next question may need {needed} more")]
    Over {
        bound: Bound,
        max: u64,
        /// The amount spent, including reservations for pending requests.
        spent: u64,
        /// The amount that the request may need.
        needed: u64,
    },
    /// There is a cost limit, and the price of a model is unknown.
    #[error("cost_budget is set, but a model that may be asked has no price")]
    Unpriced {},
}

impl Broken {
    pub fn bound(&self) -> Bound {
        match self {
            Self::Over { bound, .. } => *bound,
            Self::Unpriced {} => Bound::Cost,
        }
    }

    pub fn hint(&self) -> String {
        match self {
            Self::Over { bound, .. } => {
                format!("raise {bound} and continue: nothing that was answered is lost")
            }
            Self::Unpriced {} => {
                "give every model that may be asked, fallbacks included, a price in the configuration, or leave cost_budget out".to_owned()
            }
        }
    }
}

/// The amount reserved for one request until its answer arrives.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is set aside must be settled or released"]
pub struct Reserve {
    amount: Spent,
    /// Maximum tokens of the answer: the requested maximum, or less if the limits leave less.
    pub answer_tokens_max: u32,
}

/// The limits, the amounts spent, and the amounts reserved for pending requests.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    limits: Limits,
    spent: Spent,
    reserved: Spent,
}

impl Budget {
    /// `spent` is what was spent before, for example by an earlier process.
    pub fn new(limits: Limits, spent: Spent) -> Self {
        Self { limits, spent, reserved: Spent::default() }
    }

    /// The amounts spent, without reservations.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Sets the seconds since the session began.
    pub fn set_seconds(&mut self, seconds: u64) {
        self.spent.seconds = seconds;
    }

    /// The error for a request during which the time limit passed.
    pub fn out_of_time(&self) -> Broken {
        let max = self.limits.seconds_max.unwrap_or(self.spent.seconds);
        Broken::Over { bound: Bound::Seconds, max, spent: max.max(self.spent.seconds), needed: 1 }
    }

    /// Reserves the maximum cost of a request, or returns the limit that it would exceed. If the full answer does not
    /// fit, its maximum is reduced to what is left, but not below [`ANSWER_TOKENS_MIN`].
    pub fn reserve(&mut self, ask: &ModelRequest, price: Option<Price>) -> Result<Reserve, Broken> {
        self.reserve_for(ask, price, ask.tokens_max.min(ANSWER_TOKENS_MIN))
    }

    /// Like [`Self::reserve`], for a retry of the same request: the maximum of the answer is not reduced any further.
    pub fn reserve_again(&mut self, ask: &ModelRequest, price: Option<Price>) -> Result<Reserve, Broken> {
        self.reserve_for(ask, price, ask.tokens_max)
    }

    /// Reserves for an answer of at least `least` tokens.
    fn reserve_for(
        &mut self,
        ask: &ModelRequest,
        price: Option<Price>,
        least: u32,
    ) -> Result<Reserve, Broken> {
        let used = self.spent.plus(&self.reserved);
        let over = |bound, max, spent, needed| Err(Broken::Over { bound, max, spent, needed });
        if let Some(max) = self.limits.seconds_max.filter(|max| used.seconds >= *max) {
            return over(Bound::Seconds, max, used.seconds, 1);
        }
        if let Some(max) = self.limits.calls_max.filter(|max| used.calls >= *max) {
            return over(Bound::Calls, max, used.calls, 1);
        }
        let tokens_in = estimate_ask(ask);
        let mut answer = u64::from(ask.tokens_max);
        if let Some(max) = self.limits.tokens_max {
            let needed = tokens_in.saturating_add(u64::from(least));
            let left = max.saturating_sub(used.tokens);
            if needed > left {
                return over(Bound::Tokens, max, used.tokens, needed);
            }
            answer = answer.min(left - tokens_in);
        }
        if let Some(max) = self.limits.cost_micros_max {
            let Some(price) = price else { return Err(Broken::Unpriced {}) };
            let needed = price.cost(tokens_in, u64::from(least));
            let left = max.saturating_sub(used.cost_micros);
            if needed > left {
                return over(Bound::Cost, max, used.cost_micros, needed);
            }
            let for_answer = u128::from(left - price.cost(tokens_in, 0)) * 1_000_000;
            let affordable = for_answer.checked_div(u128::from(price.micros_out)).unwrap_or(u128::MAX);
            answer = answer.min(u64::try_from(affordable).unwrap_or(u64::MAX)).max(u64::from(least));
        }
        let cost_micros = price.unwrap_or_default().cost(tokens_in, answer);
        let amount = Spent { calls: 1, tokens: tokens_in.saturating_add(answer), cost_micros, seconds: 0 };
        self.reserved = self.reserved.plus(&amount);
        // At most the requested maximum, which is a `u32`.
        Ok(Reserve { amount, answer_tokens_max: u32::try_from(answer).unwrap_or(ask.tokens_max) })
    }

    /// Replaces the reservation by the actual cost of the call.
    pub fn settle(&mut self, reserve: Reserve, tokens: u64, cost_micros: u64) {
        self.release(reserve);
        self.charge(tokens, cost_micros);
    }

    /// Releases the reservation of a call that was not made.
    pub fn release(&mut self, reserve: Reserve) {
        self.reserved = self.reserved.minus(&reserve.amount);
    }

    /// Charges a call without a reservation.
    pub fn charge(&mut self, tokens: u64, cost_micros: u64) {
        self.spent = self.spent.plus(&Spent { calls: 1, tokens, cost_micros, seconds: 0 });
    }
}
