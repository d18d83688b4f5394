//! The conversation that generates a plan. The plan is not in the store meanwhile: only the journal has the answers.

use std::time::Instant;

use crate::{Broken, Budget, Generate, Generated, GenerationFailed, Limits, ModelRequest, Planned, Spent};

use super::driver::{Prices, end_of};
use super::shared_budget::{CallReservation, SharedBudget};

use waypost_llm::{CancelToken, Journal, Model, ModelError, Progress, Stop};

/// A plan written by a model, with statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Drafted {
    pub planned: Planned,
    /// New answers from models.
    pub asked: u64,
    /// Answers from the journal.
    pub recalled: u64,
    /// The configured name of the model that wrote it.
    pub from: String,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum NoDraft {
    /// No answer was usable.
    GaveUp(GenerationFailed),
    /// The next request would exceed a limit.
    Bound(Broken),
    /// No model answered.
    Trouble(ModelError),
    /// An end was requested.
    Halted,
}

/// Sends requests until there is a plan or a failure.
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
            // After a requested end, failures are not reported; they are in the journal.
            Err(_) if halt.is_cancelled() => return Err(NoDraft::Halted),
            // Either the budget allows a shorter answer, or the limit is reported.
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
