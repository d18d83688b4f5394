//! A budget shared by pending requests. Every call is paid separately: a failed call is charged, and a retry is made only if the
//! budget allows it. Knows no plans and no journals.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Budget, ModelRequest, Price, Reserve};

use waypost_llm::{CallEvent, CancelToken, ModelError, Progress, Reply};

pub(super) struct SharedBudget(Mutex<Budget>);

impl SharedBudget {
    pub(super) fn new(budget: Budget) -> Self {
        Self(Mutex::new(budget))
    }

    pub(super) fn budget(&self) -> MutexGuard<'_, Budget> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pending request, with the reservation for its next call.
pub(super) struct CallReservation<'a> {
    shared_budget: &'a SharedBudget,
    price: Option<Price>,
    progress: &'a dyn Progress,
    reserve: Mutex<Option<Reserve>>,
    /// Cancelled when the budget does not allow one more call.
    broke: CancelToken,
}

impl<'a> CallReservation<'a> {
    /// Without a reservation for answers from the journal, which cost nothing.
    pub(super) fn new(
        shared_budget: &'a SharedBudget,
        price: Option<Price>,
        reserve: Option<Reserve>,
        progress: &'a dyn Progress,
    ) -> Self {
        Self { shared_budget, price, progress, reserve: Mutex::new(reserve), broke: CancelToken::default() }
    }

    /// Cancelled when the budget does not allow one more call.
    pub(super) fn broke(&self) -> &CancelToken {
        &self.broke
    }

    /// Ends the request. Returns whether it was given up only because the budget did not allow one more call.
    pub(super) fn end(&self, answer: &Result<Reply, ModelError>) -> bool {
        match answer {
            Ok(reply) if !reply.recalled => {
                self.pay(reply.answer.tokens(), reply.cost.unwrap_or_default().0);
            }
            Ok(_) | Err(ModelError::Stopped) => {}
            // A model that does not report its calls counts as one call.
            Err(_) => {
                if let Some(reserve) = self.reserve().take() {
                    self.shared_budget.budget().settle(reserve, 0, 0);
                }
            }
        }
        if let Some(reserve) = self.reserve().take() {
            self.shared_budget.budget().release(reserve);
        }
        self.broke.is_cancelled() && matches!(answer, Err(ModelError::Stopped))
    }

    fn reserve(&self) -> MutexGuard<'_, Option<Reserve>> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pay(&self, tokens: u64, cost_micros: u64) {
        match self.reserve().take() {
            Some(reserve) => self.shared_budget.budget().settle(reserve, tokens, cost_micros),
            None => self.shared_budget.budget().charge(tokens, cost_micros),
        }
    }

    /// Reserves the maximum cost of one more call.
    fn set_aside(&self, ask: &ModelRequest) {
        let mut reserve = self.reserve();
        if reserve.is_some() {
            return;
        }
        match self.shared_budget.budget().reserve_again(ask, self.price) {
            Ok(again) => *reserve = Some(again),
            Err(_) => self.broke.cancel(),
        }
    }
}

impl Progress for CallReservation<'_> {
    fn on_event(&self, ask: &ModelRequest, moment: &CallEvent<'_>) {
        match moment {
            CallEvent::Failed { lost, .. } => {
                let lost = lost.map(|lost| (lost.tokens(), lost.cost.unwrap_or_default().0));
                let (tokens, cost) = lost.unwrap_or_default();
                self.pay(tokens, cost);
            }
            CallEvent::Waits { .. } | CallEvent::FellBack { .. } => self.set_aside(ask),
            CallEvent::Asked { .. }
            | CallEvent::Received { .. }
            | CallEvent::TurnedDown { .. }
            | CallEvent::Answered { .. } => {}
        }
        self.progress.on_event(ask, moment);
    }
}
