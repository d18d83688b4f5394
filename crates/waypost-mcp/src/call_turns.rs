//! Bounds how many calls run at once: more wait for their turn.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::tool_error::ToolError;

/// Maximum number of calls that a server runs at once.
pub(crate) const CALLS_MAX: usize = 64;
/// Maximum number of calls that wait for their turn.
pub(crate) const CALLS_WAITING_MAX: usize = 4096;

/// The turns of the calls of one server.
#[derive(Debug)]
pub(crate) struct CallTurns {
    running: Arc<Semaphore>,
    waiting: Semaphore,
    waiting_max: usize,
}

impl CallTurns {
    pub(crate) fn new(running_max: usize, waiting_max: usize) -> Self {
        let running = Arc::new(Semaphore::new(running_max));
        Self { running, waiting: Semaphore::new(waiting_max), waiting_max }
    }

    /// Waits until another call may run.
    pub(crate) async fn take(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        let _place = self.waiting.try_acquire().map_err(|_| self.busy())?;
        Arc::clone(&self.running).acquire_owned().await.map_err(|_| self.busy())
    }

    fn busy(&self) -> ToolError {
        let message = format!("{} calls wait for their turn already", self.waiting_max);
        ToolError::new(message, "wait until some of them are answered, then retry").with_fact("code", "busy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_wait_for_their_turn_and_too_many_are_refused() {
        let turns = Arc::new(CallTurns::new(1, 1));
        let first = turns.take().await.unwrap();
        let waiting = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.take().await.map(drop) }
        });
        while turns.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refused = turns.take().await.unwrap_err();
        assert_eq!(
            (refused.message.as_str(), &refused.facts["code"]),
            ("1 calls wait for their turn already", &"busy".into())
        );
        drop(first);
        waiting.await.unwrap().unwrap();
        drop(turns.take().await.unwrap());
    }
}
