//! Subscriptions to the event log: whoever reads events makes them, moves them forward and ends them here.

use waypost_store::{Cursor, EventFilter, Since, Subscription, SubscriptionError};

use crate::service::Service;

impl Service {
    /// Makes a subscription.
    pub fn subscribe(
        &self,
        owner: &str,
        filter: EventFilter,
        since: Since,
    ) -> Result<Subscription, SubscriptionError> {
        self.plans().subscribe(owner, filter, since)
    }

    /// Ends one subscription of an owner, or all of them. Returns how many were ended.
    pub fn unsubscribe(&self, owner: &str, id: Option<&str>) -> Result<usize, SubscriptionError> {
        self.plans().unsubscribe(owner, id)
    }

    /// Records that everything up to `cursor` was read, and returns where the subscription stands.
    pub fn acknowledge(&self, owner: &str, id: &str, cursor: Cursor) -> Result<Cursor, SubscriptionError> {
        self.plans().acknowledge(owner, id, cursor)
    }

    /// Records that one event up to `cursor` could not be delivered. `waypost doctor` reports it.
    pub fn drop_event(
        &self,
        owner: &str,
        id: &str,
        cursor: Cursor,
        why: &str,
    ) -> Result<Cursor, SubscriptionError> {
        self.plans().give_up(owner, id, cursor, 1, why)
    }
}
