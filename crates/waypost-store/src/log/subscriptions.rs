//! Subscriptions: stored filters with a cursor. A subscription outlives the process that made it; only its owner reads by it
//! or ends it.

use waypost_core::limits;

use crate::error::{Result, StoreError};
use crate::log::event::{BadFilter, Cursor, EventFilter};
use crate::log::event_log::EventPage;
use crate::log::subscription::{DroppedEvents, Subscription};
use crate::maintenance::copy::unfinished;
use crate::maintenance::integrity::Finding;
use crate::plans::PlanStore;
use crate::plans::transaction::random_name;
use crate::store::{Read, Transaction};

/// Subscriptions that one owner may have.
pub const SUBSCRIPTIONS_MAX: usize = 100;

/// Subscriptions of all owners that a check looks at.
const CHECKED_MAX: usize = 100_000;

/// What a person should hear of, given the end of the log.
fn complaint(subscription: &Subscription, latest: u64) -> Option<String> {
    let (id, owner) = (&subscription.id, &subscription.owner);
    if let Some(from) = unfinished(subscription) {
        return Some(format!("this is an unfinished copy of {from}; run the copy again to continue it"));
    }
    if subscription.cursor > Cursor::after(latest) {
        let cursor = subscription.cursor;
        return Some(format!(
            "subscription {id} of {owner} has read up to {cursor}, and the log ends at {latest}"
        ));
    }
    let DroppedEvents { lost, at, why } = subscription.trouble.as_ref()?;
    let events = if *lost == 1 { "event" } else { "events" };
    Some(format!("{owner} gave up on {lost} {events}, the last one at {at}: {why}"))
}

/// From where on a new subscription hears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// Everything written after the subscription was made.
    #[default]
    Now,
    /// All that was ever written.
    Beginning,
    /// From a place in the log on.
    After(Cursor),
}

/// Why a subscription cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionError {
    /// There are enough.
    #[error("{0} has reached the limit of {SUBSCRIPTIONS_MAX} subscriptions")]
    TooMany(String),
    /// Nobody has it, or somebody else does.
    #[error("{owner} has no subscription {id:?}")]
    NotFound {
        /// Who asked.
        owner: String,
        /// For which.
        id: String,
    },
    /// The name of an owner is empty or too long.
    #[error("a subscription needs an owner of 1 to {} bytes", limits::LINE_BYTES_MAX)]
    BadOwner,
    /// The filter is invalid.
    #[error("{0}")]
    Filter(#[from] BadFilter),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl SubscriptionError {
    fn of_the_store(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::TooMany(_) | Self::NotFound { .. } | Self::BadOwner | Self::Filter(_) => {
                StoreError::Database(self.to_string())
            }
        }
    }

    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::TooMany(_) => "end one that is not needed any more".to_owned(),
            Self::NotFound { .. } => "list the subscriptions, or make one".to_owned(),
            Self::BadOwner => "write it like agent:planner".to_owned(),
            Self::Filter(error) => error.hint(),
            Self::Store(error) => error.hint().to_owned(),
        }
    }
}

impl PlanStore {
    /// Makes a subscription. Durable when this returns.
    pub fn subscribe(
        &self,
        owner: &str,
        filter: EventFilter,
        since: Since,
    ) -> Result<Subscription, SubscriptionError> {
        if owner.is_empty() || owner.len() > limits::LINE_BYTES_MAX {
            return Err(SubscriptionError::BadOwner);
        }
        filter.check()?;
        self.change_subscriptions(|transaction| {
            if transaction.subscriptions(Some(owner), SUBSCRIPTIONS_MAX)?.len() == SUBSCRIPTIONS_MAX {
                return Ok(Err(SubscriptionError::TooMany(owner.to_owned())));
            }
            let latest = transaction.latest()?;
            let cursor = match since {
                Since::Now => Cursor::after(latest),
                Since::Beginning => Cursor::default(),
                Since::After(cursor) => cursor.min(Cursor::after(latest)),
            };
            let (id, created_at) = (free_id(transaction)?, transaction.now());
            let (owner, filter) = (owner.to_owned(), filter.clone());
            let made = Subscription { id, owner, filter, cursor, created_at, trouble: None };
            transaction.set_subscription(&made.id, Some(&made))?;
            Ok(Ok(made))
        })
    }

    /// The subscriptions of an owner, the oldest first.
    pub fn subscriptions(&self, owner: &str) -> Result<Vec<Subscription>> {
        self.store().query(|read| read.subscriptions(Some(owner), SUBSCRIPTIONS_MAX))
    }

    /// Ends one subscription of an owner, or all of them. Returns how many were ended.
    pub fn unsubscribe(&self, owner: &str, id: Option<&str>) -> Result<usize, SubscriptionError> {
        self.change_subscriptions(|transaction| {
            let ended: Vec<String> = match id {
                Some(id) => match own(transaction, owner, id)? {
                    Ok(found) => vec![found.id],
                    Err(error) => return Ok(Err(error)),
                },
                None => {
                    let all = transaction.subscriptions(Some(owner), SUBSCRIPTIONS_MAX)?;
                    all.into_iter().map(|found| found.id).collect()
                }
            };
            for id in &ended {
                transaction.set_subscription(id, None)?;
            }
            Ok(Ok(ended.len()))
        })
    }

    /// What an owner has not read yet, at most `limit` events. They stay unread until they are acknowledged with the
    /// cursor of the page.
    pub fn unread(&self, owner: &str, id: &str, limit: usize) -> Result<EventPage, SubscriptionError> {
        let subscription = self.store().query(|read| own(read, owner, id))??;
        let page = self.events(subscription.cursor, &subscription.filter, limit)?;
        if page.events.is_empty() && page.more {
            // Nothing was wanted in a whole page: the next reader need not look through it again.
            self.acknowledge(owner, id, page.cursor)?;
        }
        Ok(page)
    }

    /// Says that everything up to `cursor` was read. The place of a subscription moves forward, never back, and not beyond
    /// the end of the log. Returns where it stands.
    pub fn acknowledge(&self, owner: &str, id: &str, cursor: Cursor) -> Result<Cursor, SubscriptionError> {
        self.settle(owner, id, cursor, None)
    }

    /// The same for an owner that gave up on `lost` events, most recently because of `why`. The doctor tells of it.
    pub fn give_up(
        &self,
        owner: &str,
        id: &str,
        cursor: Cursor,
        lost: u64,
        why: &str,
    ) -> Result<Cursor, SubscriptionError> {
        self.settle(owner, id, cursor, Some((lost, why)))
    }

    fn settle(
        &self,
        owner: &str,
        id: &str,
        cursor: Cursor,
        given_up: Option<(u64, &str)>,
    ) -> Result<Cursor, SubscriptionError> {
        self.change_subscriptions(|transaction| {
            let mut found = match own(transaction, owner, id)? {
                Ok(found) => found,
                Err(error) => return Ok(Err(error)),
            };
            let cursor = found.cursor.max(cursor.min(Cursor::after(transaction.latest()?)));
            if cursor == found.cursor && given_up.is_none() {
                return Ok(Ok(cursor));
            }
            found.cursor = cursor;
            if let Some((lost, why)) = given_up {
                let before = found.trouble.take().map_or(0, |trouble| trouble.lost);
                let (lost, at, why) = (before + lost, transaction.now(), why.to_owned());
                found.trouble = Some(DroppedEvents { lost, at, why });
            }
            transaction.set_subscription(&found.id, Some(&found))?;
            Ok(Ok(cursor))
        })
    }

    /// Subscriptions whose readers gave up on something, or that stand where the log has not come to yet.
    pub(crate) fn check_subscriptions(&self, repair: bool) -> Result<Vec<Finding>> {
        let read = self.store().query(|read| Ok((read.subscriptions(None, CHECKED_MAX)?, read.latest()?)));
        let (all, latest) = match read {
            Ok(read) => read,
            Err(StoreError::Corrupt { what, detail }) => {
                let what = format!("{what} is damaged: {detail}");
                return Ok(vec![Finding { plan: None, what, repaired: false }]);
            }
            Err(error) => return Err(error),
        };
        let mut findings = Vec::new();
        for subscription in all {
            let Some(what) = complaint(&subscription, latest) else { continue };
            let repair = repair && unfinished(&subscription).is_none();
            if repair {
                self.change_subscriptions(|transaction| {
                    // It may have moved on, or ended, since.
                    let Some(now) = transaction.subscription(&subscription.id)? else { return Ok(Ok(())) };
                    let cursor = now.cursor.min(Cursor::after(transaction.latest()?));
                    let now = Subscription { cursor, trouble: None, ..now };
                    transaction.set_subscription(&now.id, Some(&now))?;
                    Ok(Ok(()))
                })
                .map_err(SubscriptionError::of_the_store)?;
            }
            findings.push(Finding { plan: None, what, repaired: repair });
        }
        Ok(findings)
    }

    /// Runs `change` in a transaction of its own. No versions are written, so that no writer is in anybody's way.
    fn change_subscriptions<R>(
        &self,
        mut change: impl FnMut(&mut dyn Transaction) -> Result<Result<R, SubscriptionError>>,
    ) -> Result<R, SubscriptionError> {
        let mut outcome = None;
        self.store().write(&mut |transaction| {
            outcome = Some(change(transaction)?);
            Ok(())
        })?;
        outcome.unwrap_or_else(|| Err(StoreError::Database("the store gave no answer".into()).into()))
    }
}

/// A subscription, if it is the owner's.
fn own<T: Read + ?Sized>(
    read: &mut T,
    owner: &str,
    id: &str,
) -> Result<Result<Subscription, SubscriptionError>> {
    let found = read.subscription(id)?.filter(|found| found.owner == owner);
    let missing = || SubscriptionError::NotFound { owner: owner.to_owned(), id: id.to_owned() };
    Ok(found.ok_or_else(missing))
}

fn free_id(transaction: &mut dyn Transaction) -> Result<String> {
    loop {
        let id = random_name()?;
        if transaction.subscription(&id)?.is_none() {
            return Ok(id);
        }
    }
}
