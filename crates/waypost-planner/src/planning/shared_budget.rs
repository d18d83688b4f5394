//! What may be spent, shared by the questions that are under way. Every call is paid for by itself: what one has cost that broke
//! off is gone, and the next is made only if there is enough for it. Knows nothing of plans and journals.

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

/// A question that is under way, and what is set aside for its next answer.
pub(super) struct CallReservation<'a> {
    shared_budget: &'a SharedBudget,
    price: Option<Price>,
    progress: &'a dyn Progress,
    reserve: Mutex<Option<Reserve>>,
    /// Said when one more call cannot be paid.
    broke: CancelToken,
}

impl<'a> CallReservation<'a> {
    /// What is in the journal already costs nothing, and nothing is set aside for it.
    pub(super) fn new(
        shared_budget: &'a SharedBudget,
        price: Option<Price>,
        reserve: Option<Reserve>,
        progress: &'a dyn Progress,
    ) -> Self {
        Self { shared_budget, price, progress, reserve: Mutex::new(reserve), broke: CancelToken::default() }
    }

    /// Said when one more call cannot be paid.
    pub(super) fn broke(&self) -> &CancelToken {
        &self.broke
    }

    /// The question is over. Returns whether it was given up only because one more call could not be paid.
    pub(super) fn end(&self, answer: &Result<Reply, ModelError>) -> bool {
        match answer {
            Ok(reply) if !reply.recalled => {
                self.pay(reply.answer.tokens(), reply.cost.unwrap_or_default().0);
            }
            Ok(_) | Err(ModelError::Stopped) => {}
            // A model that does not tell of its calls has made one.
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

    /// Sets aside what one more call may cost.
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
