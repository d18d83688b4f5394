//! How somebody who asks is told to end: at once, after what is under way, or at a moment. Knows nothing of why.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Told to end after what is under way: nothing new is asked. Clones are one.
#[derive(Clone, Debug)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl Default for CancelToken {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl CancelToken {
    /// Ask nothing new.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was said.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it is said.
    async fn cancelled(&self) {
        // The sender is ours, so the wait can end in no other way.
        let mut told = self.0.subscribe();
        let _said = told.wait_for(|said| *said).await;
    }
}

/// By which somebody who asks is told to stop asking. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    now: CancelToken,
    /// Any of these: what is under way may end, and nothing new is asked.
    halts: Vec<CancelToken>,
    until: Option<Instant>,
}

impl Stop {
    /// Nobody is told so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same; and nothing new is asked, not even a question anew, when this is said.
    pub fn or_after(mut self, halt: &CancelToken) -> Self {
        self.halts.push(halt.clone());
        self
    }

    /// The same; and calls that are under way are given up at this moment, if there is one.
    pub fn or_at(mut self, end: Option<Instant>) -> Self {
        self.until = self.until.into_iter().chain(end).min();
        self
    }

    /// Stop: calls that are under way are given up.
    pub fn now(&self) {
        self.now.cancel();
    }

    /// Whether it was said.
    pub fn is_cancelled(&self) -> bool {
        self.now.is_cancelled()
    }

    /// Whether nothing new is to be asked.
    pub fn asks_nothing_new(&self) -> bool {
        self.is_cancelled() || self.halts.iter().any(CancelToken::is_cancelled)
    }

    /// Whether it may go on for longer than this.
    pub(crate) fn has_time_for(&self, wait: Duration) -> bool {
        self.until.is_none_or(|end| end.saturating_duration_since(Instant::now()) > wait)
    }

    /// Returns when it is said.
    pub(crate) async fn cancelled(&self) {
        self.now.cancelled().await;
    }

    /// Returns when nothing new is to be asked.
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

    /// Returns when the time is up; never where there is no end.
    pub(crate) async fn time_is_up(&self) {
        match self.until {
            Some(end) => tokio::time::sleep_until(end.into()).await,
            None => pending().await,
        }
    }
}
