//! Progress notifications of a call that takes long, for clients that asked for them: a host that hears nothing for a minute
//! takes a call that waits for a dead one. Knows no tool.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Interval between two notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The notifications of one call.
pub(crate) struct Progress {
    /// What the client recognizes them by; `None` if it did not ask for any.
    token: Option<ProgressToken>,
    peer: Peer<RoleServer>,
    interval: Interval,
    sent: u32,
}

impl Progress {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let mut interval = interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (token, peer) = (context.meta.get_progress_token(), context.peer.clone());
        Self { token, peer, interval, sent: 0 }
    }

    /// Completes when the next notification is due; never if the client did not ask for any.
    pub(crate) async fn due(&mut self) {
        if self.token.is_none() {
            std::future::pending::<()>().await;
        }
        self.interval.tick().await;
    }

    /// Sends a notification. A client that is gone gets none.
    pub(crate) async fn send(&mut self) {
        let Some(token) = &self.token else { return };
        self.sent += 1;
        let note =
            ProgressNotificationParam::new(token.clone(), f64::from(self.sent)).with_message("waiting");
        let _gone = self.peer.notify_progress(note).await;
    }
}
