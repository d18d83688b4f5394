//! Drives remote attempts on the process's one small asynchronous runtime and delivers stop requests to them. The first
//! remote attempt starts the runtime; a run of plain programs never has one.

use std::future::Future;

use tokio::sync::watch;

use super::attempt::{Attempt, State, lock};
use crate::outcome::{AttemptOutcome, Force};

/// Why a request to a cluster failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemoteError {
    /// Permanent: a retry would fail in the same way.
    Refused(String),
    /// Temporary: a retry may succeed.
    NotNow(String),
}

impl From<RemoteError> for AttemptOutcome {
    fn from(trouble: RemoteError) -> Self {
        match trouble {
            RemoteError::Refused(error) => Self::Failed { error },
            RemoteError::NotNow(error) => Self::TryAgain { error },
        }
    }
}

/// Reports whether an attempt has been asked to stop.
#[derive(Clone)]
pub(super) struct Stop(watch::Receiver<Option<Force>>);

impl Stop {
    /// Returns when the attempt is asked to end, or killed.
    pub(super) async fn asked(&mut self) {
        self.reached(|force| force.is_some()).await;
    }

    /// Returns when the attempt is killed.
    pub(super) async fn killed(&mut self) {
        self.reached(|force| *force == Some(Force::Kill)).await;
    }

    async fn reached(&mut self, wanted: impl FnMut(&Option<Force>) -> bool) {
        if self.0.wait_for(wanted).await.is_err() {
            // No sender is left that could ask.
            std::future::pending::<()>().await;
        }
    }
}

/// Runs work that waits for other machines to its end; `Stop` signals it to stop.
pub(super) fn run<'a, 'b, W>(
    attempt: &'a mut Attempt<'b>,
    work: impl FnOnce(&'a mut Attempt<'b>, Stop) -> W,
) -> Result<AttemptOutcome, String>
where
    W: Future<Output = Result<AttemptOutcome, String>>,
{
    let runtime = waypost_net::runtime()?;
    let (sender, receiver) = watch::channel(None);
    let state = attempt.state;
    {
        let mut state = lock(state);
        if let State::Stopped = &*state {
            return Err("it was stopped before it began".to_owned());
        }
        *state = State::Remote(sender);
    }
    let ending = runtime.block_on(work(attempt, Stop(receiver)));
    *lock(state) = State::Between;
    ending
}
