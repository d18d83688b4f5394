//! The conversation that ends in a plan. There is no plan in the store while it goes on: the journal alone has the answers.

use std::time::Instant;

use crate::{Broken, Budget, Generate, Generated, GenerationFailed, Limits, ModelRequest, Planned, Spent};

use super::driver::{Prices, end_of};
use super::shared_budget::{CallReservation, SharedBudget};

use waypost_llm::{CancelToken, Journal, Model, ModelError, Progress, Stop};

/// A plan that a model has written, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Drafted {
    pub planned: Planned,
    /// Answers that models gave now.
    pub asked: u64,
    /// Answers that were in the journal already.
    pub recalled: u64,
    /// The model that wrote it, as the configuration calls it.
    pub from: String,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum NoDraft {
    /// No answer could be used.
    GaveUp(GenerationFailed),
    /// The next question would go over a bound.
    Bound(Broken),
    /// No model answered.
    Trouble(ModelError),
    /// Somebody asked to end it.
    Halted,
}

/// Asks until there is a plan, or none can be had.
pub fn generate(
    session: &mut Generate,
    model: &dyn Model,
    journal: &Journal,
    (limits, prices): (Limits, Prices<'_>),
    (halt, stop): (&CancelToken, &Stop),
    progress: &dyn Progress,
    mut returned: impl FnMut(&ModelRequest, &[String]),
) -> Result<Drafted, NoDraft> {
    let totals = journal.totals();
    let (calls, tokens) = (totals.attempts(), totals.all.tokens());
    let spent = Spent { calls, tokens, cost_micros: totals.all.cost.0, seconds: 0 };
    let (shared_budget, begun) = (SharedBudget::new(Budget::new(limits, spent)), Instant::now());
    let stop = &stop.clone().or_after(halt).or_at(end_of(begun, &limits));
    let (mut asked, mut recalled) = (0, 0);
    loop {
        if halt.is_cancelled() || stop.is_cancelled() {
            return Err(NoDraft::Halted);
        }
        let Some(mut ask) = session.next().cloned() else {
            return Err(NoDraft::GaveUp(GenerationFailed {
                problems: Vec::new(),
                answers: Vec::new(),
                broke_off: false,
            }));
        };
        shared_budget.budget().set_seconds(begun.elapsed().as_secs());
        let price = prices(&ask);
        let reserve = match journal.find(&ask.slot) {
            Some(_) => None,
            None => Some(shared_budget.budget().reserve(&ask, price).map_err(NoDraft::Bound)?),
        };
        if let Some(reserve) = &reserve {
            ask.tokens_max = ask.tokens_max.min(reserve.answer_tokens_max);
        }
        let paying = CallReservation::new(&shared_budget, price, reserve, progress);
        let answer = model.ask(&ask, &paying, &stop.clone().or_after(paying.broke()));
        let broke = paying.end(&answer);
        let reply = match answer {
            Ok(reply) => reply,
            // Whoever asked to end it need not be told what went wrong then: it is in the journal.
            Err(_) if halt.is_cancelled() => return Err(NoDraft::Halted),
            // Either there is enough for a shorter answer, or the bound is told.
            Err(ModelError::Stopped) if broke => continue,
            Err(ModelError::Stopped) => return Err(NoDraft::Halted),
            Err(ModelError::OutOfTime { .. }) => {
                return Err(NoDraft::Bound(shared_budget.budget().out_of_time()));
            }
            Err(error) => return Err(NoDraft::Trouble(error)),
        };
        if reply.recalled {
            recalled += 1;
        } else {
            asked += 1;
        }
        match session.interpret(&reply.answer) {
            Generated::Plan(planned) => {
                return Ok(Drafted { planned: *planned, asked, recalled, from: reply.from });
            }
            Generated::Again { problems } => returned(&ask, &problems),
            Generated::GaveUp(gave_up) => return Err(NoDraft::GaveUp(gave_up)),
        }
    }
}
