//! Cancellation of model calls: at once, after the calls in progress, or at a deadline. Does not know the reason.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Requests an end after the calls in progress: no new call is made. Clones share one state.
#[derive(Clone, Debug)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl Default for CancelToken {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl CancelToken {
    /// Requests that no new call is made.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the token is cancelled.
    async fn cancelled(&self) {
        // The sender is ours, so the wait can end in no other way.
        let mut told = self.0.subscribe();
        let _said = told.wait_for(|said| *said).await;
    }
}

/// Stops model calls. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    now: CancelToken,
    /// Any of these: calls in progress may end, and no new call is made.
    halts: Vec<CancelToken>,
    until: Option<Instant>,
}

impl Stop {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token: once it is cancelled, no new call is made, not even a retry.
    pub fn or_after(mut self, halt: &CancelToken) -> Self {
        self.halts.push(halt.clone());
        self
    }

    /// Adds a deadline, if there is one, at which calls in progress are aborted.
    pub fn or_at(mut self, end: Option<Instant>) -> Self {
        self.until = self.until.into_iter().chain(end).min();
        self
    }

    /// Cancels at once: calls in progress are aborted.
    pub fn now(&self) {
        self.now.cancel();
    }

    /// Whether calls were cancelled at once.
    pub fn is_cancelled(&self) -> bool {
        self.now.is_cancelled()
    }

    /// Whether no new call may be made.
    pub fn asks_nothing_new(&self) -> bool {
        self.is_cancelled() || self.halts.iter().any(CancelToken::is_cancelled)
    }

    /// Whether more than this time is left before the deadline.
    pub(crate) fn has_time_for(&self, wait: Duration) -> bool {
        self.until.is_none_or(|end| end.saturating_duration_since(Instant::now()) > wait)
    }

    /// Returns when calls are cancelled at once.
    pub(crate) async fn cancelled(&self) {
        self.now.cancelled().await;
    }

    /// Returns when no new call may be made.
    pub(crate) async fn nothing_new(&self) {
        type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
        let all = self.halts.iter().chain([&self.now]);
        let mut waits: Vec<Wait<'_>> = all.map(|halt| Box::pin(halt.cancelled()) as Wait<'_>).collect();
        let any =
            poll_fn(|context| match waits.iter_mut().any(|wait| wait.as_mut().poll(context).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            });
        any.await;
    }

    /// Returns at the deadline; never if there is none.
    pub(crate) async fn time_is_up(&self) {
        match self.until {
            Some(end) => tokio::time::sleep_until(end.into()).await,
            None => pending().await,
        }
    }
}
