//! Subscriptions: stored filters with a cursor. A subscription outlives the process that created it; only its owner
//! reads from it or ends it.

use waypost_core::limits;

use crate::error::{Result, StoreError};
use crate::log::event::{BadFilter, Cursor, EventFilter};
use crate::log::event_log::EventPage;
use crate::log::subscription::{DroppedEvents, Subscription};
use crate::maintenance::copy::unfinished;
use crate::maintenance::integrity::Finding;
use crate::plans::PlanStore;
use crate::plans::transaction::random_name;
use crate::rows::SubscriptionFilter;
use crate::store::{Read, Record, Transaction};

/// Maximum number of subscriptions of one owner.
pub const SUBSCRIPTIONS_MAX: usize = 100;

/// Maximum number of subscriptions of all owners that a check reads.
const CHECKED_MAX: usize = 100_000;

/// Returns what `waypost doctor` should report about a subscription, given the end of the log.
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

/// The position in the log where a new subscription begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// Everything that is written after the subscription was created.
    #[default]
    Now,
    /// The whole log.
    Beginning,
    /// Everything after a cursor; a cursor beyond the end of the log means the end.
    After(Cursor),
}

/// The reason why a subscription cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionError {
    /// The owner already has [`SUBSCRIPTIONS_MAX`] subscriptions. Carries the owner.
    #[error("{0} has reached the limit of {SUBSCRIPTIONS_MAX} subscriptions")]
    TooMany(String),
    /// There is no such subscription, or it belongs to another owner.
    #[error("{owner} has no subscription {id:?}")]
    NotFound {
        /// The owner that made the request.
        owner: String,
        /// The requested id.
        id: String,
    },
    /// The name of the owner is empty or too long.
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

    /// Returns what the user can do next.
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
    /// Creates a subscription. Durable when this returns.
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
            if transaction.subscriptions(SubscriptionFilter::Owner(owner), SUBSCRIPTIONS_MAX)?.len()
                == SUBSCRIPTIONS_MAX
            {
                return Ok(Err(SubscriptionError::TooMany(owner.to_owned())));
            }
            let latest = transaction.store_state()?.latest;
            let cursor = match since {
                Since::Now => Cursor::after(latest),
                Since::Beginning => Cursor::default(),
                Since::After(cursor) => cursor.min(Cursor::after(latest)),
            };
            let (id, created_at) = (free_id(transaction)?, transaction.now());
            let (owner, filter) = (owner.to_owned(), filter.clone());
            let made = Subscription { id, owner, filter, cursor, created_at, trouble: None };
            transaction.put(Record::Subscription(&made.id, Some(&made)))?;
            Ok(Ok(made))
        })
    }

    /// Returns the subscriptions of an owner, the oldest first.
    pub fn subscriptions(&self, owner: &str) -> Result<Vec<Subscription>> {
        self.store().query(|read| read.subscriptions(SubscriptionFilter::Owner(owner), SUBSCRIPTIONS_MAX))
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
                    let all =
                        transaction.subscriptions(SubscriptionFilter::Owner(owner), SUBSCRIPTIONS_MAX)?;
                    all.into_iter().map(|found| found.id).collect()
                }
            };
            for id in &ended {
                transaction.put(Record::Subscription(id, None))?;
            }
            Ok(Ok(ended.len()))
        })
    }

    /// Returns the events that an owner has not read yet, at most `limit`. They stay unread until they are acknowledged
    /// with the cursor of the page.
    pub fn unread(&self, owner: &str, id: &str, limit: usize) -> Result<EventPage, SubscriptionError> {
        let subscription = self.store().query(|read| own(read, owner, id))??;
        let page = self.events(subscription.cursor, &subscription.filter, limit)?;
        if page.events.is_empty() && page.more {
            // The whole page contains no match, so the next reader need not read it again.
            self.acknowledge(owner, id, page.cursor)?;
        }
        Ok(page)
    }

    /// Records that everything up to `cursor` was read. The cursor of a subscription never moves back, nor beyond the
    /// end of the log. Returns its new position.
    pub fn acknowledge(&self, owner: &str, id: &str, cursor: Cursor) -> Result<Cursor, SubscriptionError> {
        self.settle(owner, id, cursor, None)
    }

    /// Records the same for an owner that gave up on `lost` events, the last time because of `why`. `waypost doctor`
    /// reports them.
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
            let cursor = found.cursor.max(cursor.min(Cursor::after(transaction.store_state()?.latest)));
            if cursor == found.cursor && given_up.is_none() {
                return Ok(Ok(cursor));
            }
            found.cursor = cursor;
            if let Some((lost, why)) = given_up {
                let before = found.trouble.take().map_or(0, |trouble| trouble.lost);
                let (lost, at, why) = (before + lost, transaction.now(), why.to_owned());
                found.trouble = Some(DroppedEvents { lost, at, why });
            }
            transaction.put(Record::Subscription(&found.id, Some(&found)))?;
            Ok(Ok(cursor))
        })
    }

    /// Returns subscriptions whose readers gave up on events, or whose cursor is beyond the end of the log.
    pub(crate) fn check_subscriptions(&self, repair: bool) -> Result<Vec<Finding>> {
        let read = self.store().query(|read| {
            Ok((read.subscriptions(SubscriptionFilter::All, CHECKED_MAX)?, read.store_state()?.latest))
        });
        let (all, latest) = match read {
            Ok(read) => read,
            Err(StoreError::Corrupt { what, detail }) => {
                let what = format!("{what} is damaged: {detail}");
                return Ok(vec![Finding { plan: None, what, repaired: false, repairable: true }]);
            }
            Err(error) => return Err(error),
        };
        let mut findings = Vec::new();
        for subscription in all {
            let Some(what) = complaint(&subscription, latest) else { continue };
            let repair = repair && unfinished(&subscription).is_none();
            if repair {
                self.change_subscriptions(|transaction| {
                    // The subscription may have moved on, or ended, since it was read.
                    let Some(now) = find(transaction, &subscription.id)? else { return Ok(Ok(())) };
                    let cursor = now.cursor.min(Cursor::after(transaction.store_state()?.latest));
                    let now = Subscription { cursor, trouble: None, ..now };
                    transaction.put(Record::Subscription(&now.id, Some(&now)))?;
                    Ok(Ok(()))
                })
                .map_err(SubscriptionError::of_the_store)?;
            }
            findings.push(Finding { plan: None, what, repaired: repair, repairable: true });
        }
        Ok(findings)
    }

    /// Runs `change` in a transaction of its own. It writes no versions, so it does not delay group commits.
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

/// Returns the subscription of this id.
fn find<T: Read + ?Sized>(read: &mut T, id: &str) -> Result<Option<Subscription>> {
    Ok(read.subscriptions(SubscriptionFilter::Id(id), 1)?.pop())
}

/// Returns a subscription if it belongs to the owner.
fn own<T: Read + ?Sized>(
    read: &mut T,
    owner: &str,
    id: &str,
) -> Result<Result<Subscription, SubscriptionError>> {
    let found = find(read, id)?.filter(|found| found.owner == owner);
    let missing = || SubscriptionError::NotFound { owner: owner.to_owned(), id: id.to_owned() };
    Ok(found.ok_or_else(missing))
}

fn free_id(transaction: &mut dyn Transaction) -> Result<String> {
    loop {
        let id = random_name()?;
        if find(transaction, &id)?.is_none() {
            return Ok(id);
        }
    }
}
