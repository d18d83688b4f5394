//! The log as single events, each for itself: what was decided, and what followed from it by the graph. Reads in bounded
//! pages from a cursor, and chooses while it reads. Writes nothing.

use std::collections::HashMap;
use std::sync::TryLockError;
use std::time::{Duration, Instant};

use serde::Serialize;
use waypost_core::{PlanId, TaskId};

use crate::error::Result;
use crate::log::event::{Cursor, EventFilter, EventSource, LogEvent};
use crate::log::replay_cache::Follower;
use crate::metrics::meters;
use crate::plans::PlanStore;
use crate::rows::{LogFilter, VersionRecord};
use crate::store::Read;

/// Events that one page holds at the most.
pub const EVENTS_MAX: usize = 1_000;
/// Versions that one page looks at at the most, whether they hold anything that is wanted or not.
pub const EVENT_VERSIONS_MAX: usize = 1_000;
/// Versions that are read at a time at the least.
const VERSIONS_READ_MIN: usize = 32;
/// How long one wait for events may last.
pub const EVENTS_WAIT_SECONDS_MAX: u64 = 3_600;

/// Events from a place in the log on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventPage {
    /// What was found, in its order.
    pub events: Vec<LogEvent>,
    /// Where to go on. Nothing that is wanted lies before it but what is on this page.
    pub cursor: Cursor,
    /// Whether the log has versions after the cursor; none of them may match.
    pub more: bool,
    /// How many versions between the two places have no events any more: they were pruned, or their plan was purged. What
    /// was in them cannot be told.
    #[serde(skip_serializing_if = "is_zero")]
    pub forgotten: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl PlanStore {
    /// Events behind `after` that `filter` admits, at most `limit` and at most [`EVENTS_MAX`]. Looks at
    /// [`EVENT_VERSIONS_MAX`] versions at most: a page may be empty although the log has more.
    pub fn events(&self, after: Cursor, filter: &EventFilter, limit: usize) -> Result<EventPage> {
        let mut own = Follower::default();
        // A second reader at the same time replays the plans for itself.
        let mut shared = match self.follower().try_lock() {
            Ok(shared) => Some(shared),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let follower = shared.as_deref_mut().unwrap_or(&mut own);
        let page = self.store().query(|read| {
            Reader { read, follower, filter, owners: HashMap::new() }.page(after, limit.clamp(1, EVENTS_MAX))
        })?;
        meters().events_served.add(page.events.len() as u64);
        Ok(page)
    }

    /// The same, and waits until there is something, at most so long and at most [`EVENTS_WAIT_SECONDS_MAX`]. A page that
    /// is empty says how far the log was read.
    pub fn wait_for_events(
        &self,
        after: Cursor,
        filter: &EventFilter,
        limit: usize,
        at_most: Duration,
    ) -> Result<EventPage> {
        let until = Instant::now() + at_most.min(Duration::from_secs(EVENTS_WAIT_SECONDS_MAX));
        // Begun before the first look, so that nothing falls between the two.
        let mut watch = self.watch()?;
        let mut after = after;
        loop {
            let page = self.events(after, filter, limit)?;
            let rest = until.saturating_duration_since(Instant::now());
            if !page.events.is_empty() || rest.is_zero() {
                return Ok(page);
            }
            after = page.cursor;
            if !page.more {
                watch.wait(rest)?;
            }
        }
    }
}

/// One page while it is being read.
struct Reader<'a> {
    read: &'a mut dyn Read,
    follower: &'a mut Follower,
    filter: &'a EventFilter,
    owners: HashMap<PlanId, String>,
}

/// Versions that come next, and the number up to which there are no others that matter.
struct Stretch {
    entries: Vec<VersionRecord>,
    up_to: u64,
}

impl Reader<'_> {
    fn page(mut self, after: Cursor, limit: usize) -> Result<EventPage> {
        let latest = self.read.latest()?;
        let mut page = EventPage { events: Vec::new(), cursor: after, more: false, forgotten: 0 };
        let mut looked = 0;
        while page.cursor.sequence < latest && looked < EVENT_VERSIONS_MAX {
            let count = limit.max(VERSIONS_READ_MIN).min(EVENT_VERSIONS_MAX - looked);
            let stretch = self.stretch(page.cursor.sequence, count, latest)?;
            for entry in stretch.entries {
                looked += 1;
                page.forgotten += u64::from(entry.is_forgotten());
                let sequence = entry.sequence;
                let is_begun = page.cursor.sequence + 1 == sequence;
                let from = if is_begun { page.cursor.part } else { 0 };
                let mut wanted =
                    self.wanted(entry)?.into_iter().filter(|event| event.index >= from).peekable();
                while let Some(event) = wanted.next() {
                    page.cursor = event.cursor();
                    page.events.push(event);
                    if page.events.len() == limit {
                        if wanted.peek().is_none() {
                            page.cursor = Cursor::after(sequence);
                        }
                        page.more = page.cursor.sequence < latest;
                        return Ok(page);
                    }
                }
                page.cursor = Cursor::after(sequence);
            }
            page.cursor = page.cursor.max(Cursor::after(stretch.up_to));
        }
        page.more = page.cursor.sequence < latest;
        Ok(page)
    }

    /// The next versions, about `count` of them.
    fn stretch(&mut self, after: u64, count: usize, latest: u64) -> Result<Stretch> {
        if self.filter.plans.is_empty() {
            let entries = self.read.log(after, &LogFilter::default(), count)?;
            let up_to =
                entries.last().filter(|_| entries.len() == count).map_or(latest, |last| last.sequence);
            return Ok(Stretch { entries, up_to });
        }
        let each = (count / self.filter.plans.len()).max(1);
        let mut stretch = Stretch { entries: Vec::new(), up_to: latest };
        for plan in &self.filter.plans {
            let of_plan = LogFilter { plan: Some(plan.clone()), actor: None };
            let entries = self.read.log(after, &of_plan, each)?;
            if let Some(last) = entries.last().filter(|_| entries.len() == each) {
                stretch.up_to = stretch.up_to.min(last.sequence);
            }
            stretch.entries.extend(entries);
        }
        stretch.entries.retain(|entry| entry.sequence <= stretch.up_to);
        stretch.entries.sort_by_key(|entry| entry.sequence);
        stretch.entries.dedup_by_key(|entry| entry.sequence);
        Ok(stretch)
    }

    /// The events of a version that are wanted. Of a purged plan nothing is left to tell.
    fn wanted(&mut self, entry: VersionRecord) -> Result<Vec<LogEvent>> {
        let filter = self.filter;
        if entry.events.is_empty() {
            return Ok(Vec::new());
        }
        let owner = self.owner(&entry.plan)?;
        if !filter.admits_agent(&owner, &entry.actor) {
            return Ok(Vec::new());
        }
        let followed = match filter.wants_consequences() {
            true => self.follower.consequences(self.read, &entry)?,
            false => Vec::new(),
        };
        let VersionRecord { sequence, plan, version, at, actor, events, .. } = entry;
        let told = |index: usize, kind: &'static str, task: Option<TaskId>, event: EventSource| LogEvent {
            sequence,
            index: index as u32,
            at,
            actor: actor.clone(),
            plan: plan.clone(),
            version,
            owner: owner.clone(),
            kind,
            task,
            derived: matches!(event, EventSource::Followed(_)),
            event,
        };
        let decided = events.len();
        let mut wanted = Vec::new();
        for (index, event) in events.into_iter().enumerate() {
            if filter.admits_kind(event.kind()) && filter.admits_task(|task| event.is_about(task)) {
                let (kind, task) = (event.kind(), event.task().cloned());
                wanted.push(told(index, kind, task, EventSource::Decided(event)));
            }
        }
        for (index, event) in followed.into_iter().enumerate() {
            if filter.admits_kind(event.kind()) && filter.admits_task(|task| event.task() == Some(task)) {
                let (kind, task) = (event.kind(), event.task().cloned());
                wanted.push(told(decided + index, kind, task, EventSource::Followed(event)));
            }
        }
        Ok(wanted)
    }

    fn owner(&mut self, plan: &PlanId) -> Result<String> {
        if let Some(owner) = self.owners.get(plan) {
            return Ok(owner.clone());
        }
        let owner = self.read.head(plan)?.map(|head| head.owner).unwrap_or_default();
        self.owners.insert(plan.clone(), owner.clone());
        Ok(owner)
    }
}
