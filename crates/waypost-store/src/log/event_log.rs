//! Reads the log as single events: those that were decided, and those that follow from them by the graph. Reads bounded
//! pages from a cursor and filters while it reads. Writes nothing.

use std::collections::HashMap;
use std::sync::TryLockError;
use std::time::{Duration, Instant};

use serde::Serialize;
use waypost_core::{PlanId, TaskId};

use crate::error::{Result, StoreError};
use crate::log::event::{Cursor, EventFilter, EventSource, LogEvent};
use crate::log::replay_cache::Follower;
use crate::metrics::meters;
use crate::plans::PlanStore;
use crate::plans::cache::load;
use crate::rows::{LOST, LogFilter, LogPage, Unreadable, VersionRecord};
use crate::store::Read;

/// Maximum number of events of one page.
pub const EVENTS_MAX: usize = 1_000;
/// Maximum number of versions that one page reads, whether they match or not.
pub const EVENT_VERSIONS_MAX: usize = 1_000;
/// Minimum number of versions that are read at a time.
const VERSIONS_READ_MIN: usize = 32;
/// Maximum number of seconds that one wait for events lasts.
pub const EVENTS_WAIT_SECONDS_MAX: u64 = 3_600;

/// Events of the log from a cursor on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventPage {
    /// The matching events, in the order of the log.
    pub events: Vec<LogEvent>,
    /// The position to continue from. Every matching event before it is on this page or an earlier one.
    pub cursor: Cursor,
    /// Whether the log has versions after the cursor; none of them may match.
    pub more: bool,
    /// The number of versions between the two positions whose events no longer exist: they were pruned, or their plan
    /// was purged. Their content is lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub forgotten: u64,
    /// The number of versions between the two positions whose events were lost when a file was damaged.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// The first version that a damaged file hides. The cursor stays before it until the file is repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable_from: Option<u64>,
    /// The damage: each file and line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What a page does about versions that a damaged file hides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtDamage {
    /// Ends before them.
    Stop,
    /// Leaves them out.
    Skip,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl PlanStore {
    /// Returns events after `after` that `filter` admits: at most `limit` and at most [`EVENTS_MAX`]. Reads at most
    /// [`EVENT_VERSIONS_MAX`] versions, so a page may be empty although the log has more. The cursor does not pass
    /// versions that a damaged file hides: they can be read when it is repaired.
    pub fn events(&self, after: Cursor, filter: &EventFilter, limit: usize) -> Result<EventPage> {
        self.event_page(after, filter, limit, AtDamage::Stop)
    }

    /// Returns the same, but leaves out what a damaged file hides: for readers that do not continue from the cursor
    /// later.
    pub fn intact_events(&self, after: Cursor, filter: &EventFilter, limit: usize) -> Result<EventPage> {
        self.event_page(after, filter, limit, AtDamage::Skip)
    }

    fn event_page(
        &self,
        after: Cursor,
        filter: &EventFilter,
        limit: usize,
        at_damage: AtDamage,
    ) -> Result<EventPage> {
        let mut own = Follower::default();
        // A second reader at the same time replays the plans for itself.
        let mut shared = match self.follower().try_lock() {
            Ok(shared) => Some(shared),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let follower = shared.as_deref_mut().unwrap_or(&mut own);
        let page = self.store().query(|read| {
            let reader = Reader { read, follower, filter, at_damage, owners: HashMap::new() };
            reader.page(after, limit.clamp(1, EVENTS_MAX))
        })?;
        meters().events_served.add(page.events.len() as u64);
        Ok(page)
    }

    /// Returns the same as [`PlanStore::events`], but waits for a matching event, for at most `at_most` and at most
    /// [`EVENTS_WAIT_SECONDS_MAX`]. The cursor of an empty page shows how far the log was read.
    pub fn wait_for_events(
        &self,
        after: Cursor,
        filter: &EventFilter,
        limit: usize,
        at_most: Duration,
    ) -> Result<EventPage> {
        let until = Instant::now() + at_most.min(Duration::from_secs(EVENTS_WAIT_SECONDS_MAX));
        // The watch begins before the first read, so no version between the two is missed.
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

/// Reads one page.
struct Reader<'a> {
    read: &'a mut dyn Read,
    follower: &'a mut Follower,
    filter: &'a EventFilter,
    at_damage: AtDamage,
    owners: HashMap<PlanId, String>,
}

/// The next versions, and the sequence number up to which no other version can match.
struct Stretch {
    entries: Vec<VersionRecord>,
    up_to: u64,
    unreadable: Unreadable,
}

impl Reader<'_> {
    fn page(mut self, after: Cursor, limit: usize) -> Result<EventPage> {
        let mut latest = self.read.store_state()?.latest;
        let mut page = EventPage { cursor: after, ..EventPage::default() };
        let mut looked = 0;
        while page.cursor.sequence < latest && looked < EVENT_VERSIONS_MAX {
            let count = limit.max(VERSIONS_READ_MIN).min(EVENT_VERSIONS_MAX - looked);
            let mut stretch = self.stretch(page.cursor.sequence, count, latest)?;
            let Unreadable { from, warnings } = std::mem::take(&mut stretch.unreadable);
            (page.unreadable_from, page.warnings) = (from, warnings);
            if let Some(hidden) = from.filter(|_| self.at_damage == AtDamage::Stop) {
                latest = latest.min(hidden - 1);
                stretch.up_to = stretch.up_to.min(latest);
                stretch.entries.retain(|entry| entry.sequence <= latest);
            }
            for entry in stretch.entries {
                looked += 1;
                let is_lost = entry.command == LOST;
                page.lost += u64::from(entry.is_forgotten() && is_lost);
                page.forgotten += u64::from(entry.is_forgotten() && !is_lost);
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

    /// Returns about `count` of the next versions.
    fn stretch(&mut self, after: u64, count: usize, latest: u64) -> Result<Stretch> {
        if self.filter.plans.is_empty() {
            let LogPage { versions, unreadable } = self.read.log(after, &LogFilter::default(), count)?;
            let up_to =
                versions.last().filter(|_| versions.len() == count).map_or(latest, |last| last.sequence);
            return Ok(Stretch { entries: versions, up_to, unreadable });
        }
        let each = (count / self.filter.plans.len()).max(1);
        let mut stretch = Stretch { entries: Vec::new(), up_to: latest, unreadable: Unreadable::default() };
        for plan in &self.filter.plans {
            let of_plan = LogFilter { plan: Some(plan.clone()), actor: None };
            let LogPage { versions, unreadable } = self.read.log(after, &of_plan, each)?;
            if let Some(last) = versions.last().filter(|_| versions.len() == each) {
                stretch.up_to = stretch.up_to.min(last.sequence);
            }
            stretch.entries.extend(versions);
            stretch.unreadable = unreadable;
        }
        stretch.entries.retain(|entry| entry.sequence <= stretch.up_to);
        stretch.entries.sort_by_key(|entry| entry.sequence);
        stretch.entries.dedup_by_key(|entry| entry.sequence);
        Ok(stretch)
    }

    /// Returns the events of a version that the filter admits. A purged plan has none.
    fn wanted(&mut self, entry: VersionRecord) -> Result<Vec<LogEvent>> {
        let filter = self.filter;
        if entry.events.is_empty() {
            return Ok(Vec::new());
        }
        let owner = self.owner(&entry)?;
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

    fn owner(&mut self, entry: &VersionRecord) -> Result<String> {
        let plan = &entry.plan;
        if let Some(owner) = self.owners.get(plan) {
            return Ok(owner.clone());
        }
        let owner = match self.read.head(plan) {
            // The versions before the damage say it.
            Err(StoreError::Corrupt { .. }) => load(self.read, plan, entry.version)?.spec().owner.clone(),
            head => head?.map(|head| head.owner).unwrap_or_default(),
        };
        self.owners.insert(plan.clone(), owner.clone());
        Ok(owner)
    }
}
