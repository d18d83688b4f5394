//! Lists for backends without a query language: filters, order, pages. Does not know where the rows come from.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use waypost_core::Timestamp;

use crate::error::Result;
use crate::log::subscription::Subscription;
use crate::rows::{
    ArchiveFilter, HeldLock, Lease, LeaseFilter, Page, PlanSummary, Query, Sort, SubscriptionFilter, Totals,
    Wait, WaitFilter, WorkerFilter, parse_urgency,
};
use crate::store::Read;
use crate::workers::Worker;

/// The sort value of a plan in a list. Together with the id it is unique, so that the next page continues exactly there
/// even when plans before or after it have changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Latest(Reverse<i64>),
    /// The urgency, then the time of creation.
    Urgent(Reverse<i64>, i64),
    Text(String),
}

fn value(head: &PlanSummary, sort: Sort) -> Value {
    let latest = |at: Option<Timestamp>| Value::Latest(Reverse(at.map_or(i64::MIN, Timestamp::as_micros)));
    match sort {
        Sort::Updated => latest(head.updated_at),
        Sort::Created => latest(head.created_at),
        Sort::Title => Value::Text(head.title.clone()),
        Sort::Id => Value::Text(String::new()),
        Sort::Urgency => Value::Urgent(Reverse(i64::from(head.urgency)), head.created_micros()),
        Sort::Attention => Value::Latest(Reverse(head.attention())),
    }
}

/// The id comes first: it cannot contain the separator, but a title can.
fn cursor(value: &Value, id: &str) -> String {
    match value {
        Value::Latest(Reverse(micros)) => format!("{id}|{micros}"),
        Value::Urgent(Reverse(urgency), created) => format!("{id}|{urgency}|{created}"),
        Value::Text(text) => format!("{id}|{text}"),
    }
}

fn parse_cursor(text: &str, sort: Sort) -> Option<(Value, String)> {
    let (id, value) = text.split_once('|')?;
    let value = match sort {
        Sort::Updated | Sort::Created | Sort::Attention => Value::Latest(Reverse(value.parse().ok()?)),
        Sort::Urgency => {
            let (urgency, created) = parse_urgency(value)?;
            Value::Urgent(Reverse(urgency), created)
        }
        Sort::Title | Sort::Id => Value::Text(value.to_owned()),
    };
    Some((value, id.to_owned()))
}

/// Returns whether `query` selects a plan.
fn is_wanted(head: &PlanSummary, query: &Query) -> bool {
    let same = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
    let on_shelf = match query.shelf {
        ArchiveFilter::Current => !head.archived,
        ArchiveFilter::Archived => head.archived,
        ArchiveFilter::All => true,
    };
    let has_text = query.text.as_ref().is_none_or(|text| {
        let text = text.to_lowercase();
        head.id.as_str().to_lowercase().contains(&text) || head.title.to_lowercase().contains(&text)
    });
    on_shelf
        && has_text
        && (!query.offers_work || head.offers_work())
        && (query.phases.is_empty() || query.phases.contains(&head.phase))
        && same(&query.status, &head.status)
        && same(&query.owner, &head.owner)
        && (same(&query.queue, &head.queue) || query.is_of_default_queue() && head.queue.is_empty())
}

/// Returns the page of `heads` that `query` selects.
pub(crate) fn page<'a>(heads: impl Iterator<Item = &'a PlanSummary>, query: &Query) -> Page<PlanSummary> {
    let mut wanted: Vec<(Value, &PlanSummary)> =
        heads.filter(|head| is_wanted(head, query)).map(|head| (value(head, query.sort), head)).collect();
    wanted.sort_by(|(a, x), (b, y)| (a, &x.id).cmp(&(b, &y.id)));
    let total = wanted.len() as u64;
    let from =
        query.after.as_deref().and_then(|after| parse_cursor(after, query.sort)).map_or(0, |(after, id)| {
            wanted.partition_point(|(value, head)| (value, head.id.as_str()) <= (&after, id.as_str()))
        });
    let rest = &wanted[from..];
    let shown = &rest[..rest.len().min(query.limit)];
    let more = shown.len() < rest.len();
    let next = shown.last().filter(|_| more).map(|(value, head)| cursor(value, head.id.as_str()));
    let items = shown.iter().map(|&(_, head)| head.clone()).collect();
    Page { items, total, next, ..Page::default() }
}

/// Filters and sorts leases: those that never expire first, then by the earliest end.
pub(crate) fn leases(mut leases: Vec<Lease>, filter: &LeaseFilter<'_>, limit: usize) -> Vec<Lease> {
    leases.retain(|lease| match filter {
        LeaseFilter::All => true,
        LeaseFilter::EndedBefore(before) => lease.until.is_some_and(|until| until < *before),
        LeaseFilter::Worker(worker) => lease.worker == *worker,
        LeaseFilter::Plan(plan) => lease.plan == **plan,
    });
    leases.sort_by(|a, b| (a.until, &a.plan, &a.task).cmp(&(b.until, &b.plan, &b.task)));
    leases.truncate(limit);
    leases
}

/// Returns the holders of the locks `keys`.
pub(crate) fn locks<'a>(locks: impl Iterator<Item = &'a HeldLock>, keys: &[&str]) -> Vec<HeldLock> {
    locks.filter(|held| keys.contains(&held.lock.key.as_str())).cloned().collect()
}

/// Returns the waits that `filter` selects.
pub(crate) fn waits<'a>(waits: impl Iterator<Item = &'a Wait>, filter: WaitFilter<'_>) -> Vec<Wait> {
    let is_meant = |wait: &&Wait| match filter {
        WaitFilter::Of(plan) => wait.plan == *plan,
        WaitFilter::On { plan, owner, task: None } => wait.is_on(plan, owner),
        WaitFilter::On { plan, owner, task: Some(task) } => {
            wait.on.task.as_str() == task
                && wait.on.plan.as_ref().is_none_or(|on| on == plan)
                && wait.on.agent.as_deref().is_none_or(|on| on == owner)
        }
    };
    let mut found: Vec<Wait> = waits.filter(is_meant).cloned().collect();
    found.sort();
    found
}

/// Counts everything, plan by plan.
pub(crate) fn totals(read: &mut dyn Read) -> Result<Totals> {
    const HEADS_READ_MAX: usize = 500;
    let mut totals = Totals::default();
    let (shelf, sort, limit) = (ArchiveFilter::All, Sort::Id, HEADS_READ_MAX);
    let mut query = Query { shelf, sort, limit, ..Query::default() };
    loop {
        let page = read.heads(&query)?;
        page.items.iter().for_each(|head| totals.add(head));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let now = read.now();
    totals.leases = read.leases(&LeaseFilter::All, usize::MAX >> 1)?.len() as u64;
    totals.leases_overdue = read.leases(&LeaseFilter::EndedBefore(now), usize::MAX >> 1)?.len() as u64;
    Ok(totals)
}

/// Returns the subscriptions that `filter` selects: the oldest first.
pub(crate) fn subscriptions<'a>(
    subscriptions: impl Iterator<Item = &'a Subscription>,
    filter: SubscriptionFilter<'_>,
    limit: usize,
) -> Vec<Subscription> {
    let is_wanted = |found: &&Subscription| match filter {
        SubscriptionFilter::All => true,
        SubscriptionFilter::Owner(owner) => found.owner == owner,
        SubscriptionFilter::Id(id) => found.id == id,
    };
    let mut found: Vec<&Subscription> = subscriptions.filter(is_wanted).collect();
    found.sort_by_key(|found| (found.created_at, &found.id));
    found.into_iter().take(limit).cloned().collect()
}

/// Returns the workers that hold slots of a queue, and how many each: expired leases do not count.
pub(crate) fn slots<'a>(
    leases: impl Iterator<Item = &'a Lease>,
    queue: &str,
    now: Timestamp,
) -> Vec<(String, u32)> {
    let mut slots: BTreeMap<&str, u32> = BTreeMap::new();
    let lasts = |lease: &&Lease| lease.until.is_none_or(|until| until >= now);
    for lease in leases.filter(|lease| lease.queue.as_deref() == Some(queue)).filter(lasts) {
        *slots.entry(&lease.worker).or_default() += 1;
    }
    slots.into_iter().map(|(worker, count)| (worker.to_owned(), count)).collect()
}

/// Returns one page of workers, which must be sorted by name.
pub(crate) fn workers<'a>(
    workers: impl ExactSizeIterator<Item = &'a Worker>,
    filter: WorkerFilter<'_>,
    limit: usize,
) -> Page<Worker> {
    let total = workers.len() as u64;
    let is_wanted = |worker: &&Worker| match filter {
        WorkerFilter::Name(name) => worker.name == name,
        WorkerFilter::After(after) => after.is_none_or(|after| worker.name.as_str() > after),
    };
    let items: Vec<Worker> = workers.filter(is_wanted).take(limit.saturating_add(1)).cloned().collect();
    page_of_workers(items, total, limit)
}

/// Builds a page from `items`, which may contain one more than fits.
pub(crate) fn page_of_workers(mut items: Vec<Worker>, total: u64, limit: usize) -> Page<Worker> {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| last.name.clone());
    Page { items, total, next, ..Page::default() }
}
