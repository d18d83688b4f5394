//! Subscriptions to the event log: readers of events create, advance and end them here.

use waypost_store::{Cursor, EventFilter, Since, Subscription, SubscriptionError};

use crate::service::Service;

impl Service {
    /// Creates a subscription.
    pub fn subscribe(
        &self,
        owner: &str,
        filter: EventFilter,
        since: Since,
    ) -> Result<Subscription, SubscriptionError> {
        self.plans().subscribe(owner, filter, since)
    }

    /// Ends one subscription of an owner, or all of them. Returns how many ended.
    pub fn unsubscribe(&self, owner: &str, id: Option<&str>) -> Result<usize, SubscriptionError> {
        self.plans().unsubscribe(owner, id)
    }

    /// Records that everything up to `cursor` was read, and returns the cursor of the subscription.
    pub fn acknowledge(&self, owner: &str, id: &str, cursor: Cursor) -> Result<Cursor, SubscriptionError> {
        self.plans().acknowledge(owner, id, cursor)
    }

    /// Advances to `cursor` and records that one event could not be delivered. `waypost doctor` reports it.
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
