//! What planning may cost, looked at before a call. Knows no clock and no price list: whoever drives a session brings both.

use serde::{Deserialize, Serialize};

use waypost_llm::Price;

use crate::ModelRequest;
use waypost_llm::token_estimate::estimate_ask;

/// An answer shorter than this is not worth asking for.
pub const ANSWER_TOKENS_MIN: u32 = 256;

/// What planning is bounded by.
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
    /// Questions to models.
    #[strum(serialize = "max_calls")]
    Calls,
    /// Tokens of questions and answers.
    #[strum(serialize = "token_budget")]
    Tokens,
    /// Money.
    #[strum(serialize = "cost_budget")]
    Cost,
    /// Time.
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

/// What may be spent in all; what is `None` is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Questions to models.
    pub calls_max: Option<u64>,
    /// Tokens of questions and answers.
    pub tokens_max: Option<u64>,
    /// Money, in millionths.
    pub cost_micros_max: Option<u64>,
    /// Seconds since the session began.
    pub seconds_max: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Questions to models.
    pub calls: u64,
    /// Tokens of questions and answers.
    pub tokens: u64,
    /// Money, in millionths.
    pub cost_micros: u64,
    /// Seconds.
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

/// Why a question must not be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Broken {
    /// It would go over a bound.
    #[error("{bound} is {max}: {spent} were spent, and the next question may need {needed} more")]
    Over {
        bound: Bound,
        max: u64,
        /// What was spent, with what is being asked now.
        spent: u64,
        /// What the question may need.
        needed: u64,
    },
    /// There is a bound of money, and nobody knows what the question would cost.
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

/// What is set aside for one question until its answer is there.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is set aside must be settled or released"]
pub struct Reserve {
    amount: Spent,
    /// Tokens that the answer may have: what was asked for, or what is left of the bounds.
    pub answer_tokens_max: u32,
}

/// What may be spent, what was, and what is set aside for questions under way.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    limits: Limits,
    spent: Spent,
    reserved: Spent,
}

impl Budget {
    /// A budget of which something may be spent already: by an earlier process, for one.
    pub fn new(limits: Limits, spent: Spent) -> Self {
        Self { limits, spent, reserved: Spent::default() }
    }

    /// What was spent, without what is set aside.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Says how many seconds have passed since the session began.
    pub fn set_seconds(&mut self, seconds: u64) {
        self.spent.seconds = seconds;
    }

    /// What there is to say when the time was up while a question was under way.
    pub fn out_of_time(&self) -> Broken {
        let max = self.limits.seconds_max.unwrap_or(self.spent.seconds);
        Broken::Over { bound: Bound::Seconds, max, spent: max.max(self.spent.seconds), needed: 1 }
    }

    /// Sets aside what a question may cost at the most, or says which bound it would break. An answer that would not fit
    /// whole is cut to what is left, as long as that is [`ANSWER_TOKENS_MIN`].
    pub fn reserve(&mut self, ask: &ModelRequest, price: Option<Price>) -> Result<Reserve, Broken> {
        self.reserve_for(ask, price, ask.tokens_max.min(ANSWER_TOKENS_MIN))
    }

    /// The same for a question that is asked once more: its answer is not cut any further.
    pub fn reserve_again(&mut self, ask: &ModelRequest, price: Option<Price>) -> Result<Reserve, Broken> {
        self.reserve_for(ask, price, ask.tokens_max)
    }

    /// Sets aside what a question may cost whose answer may have so many tokens at the least.
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
        // It is at most what was asked for, which is a u32.
        Ok(Reserve { amount, answer_tokens_max: u32::try_from(answer).unwrap_or(ask.tokens_max) })
    }

    /// The call is over: what it has cost takes the place of what was set aside.
    pub fn settle(&mut self, reserve: Reserve, tokens: u64, cost_micros: u64) {
        self.release(reserve);
        self.charge(tokens, cost_micros);
    }

    /// Nobody was asked.
    pub fn release(&mut self, reserve: Reserve) {
        self.reserved = self.reserved.minus(&reserve.amount);
    }

    /// A call for which nothing was set aside.
    pub fn charge(&mut self, tokens: u64, cost_micros: u64) {
        self.spent = self.spent.plus(&Spent { calls: 1, tokens, cost_micros, seconds: 0 });
    }
}
