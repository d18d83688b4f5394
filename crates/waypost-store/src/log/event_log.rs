//! The log as single events, each for itself: what was decided, and what followed from it by the graph. Reads in bounded
//! pages from a cursor, and chooses while it reads. Writes nothing.

use std::collections::HashMap;
use std::fmt;
use std::sync::TryLockError;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use waypost_core::{Actor, ActorKind, Consequence, Event, PlanId, TaskId, Timestamp, limits};

use crate::log::replay_cache::Follower;
use crate::metrics::meters;
use crate::plans::Plans;
use crate::rows::{Entry, LogFilter};
use crate::store::{Read, StoreError};

/// Events that one page holds at the most.
pub const EVENTS_MAX: usize = 1_000;
/// Versions that one page looks at at the most, whether they hold anything that is wanted or not.
pub const EVENT_VERSIONS_MAX: usize = 1_000;
/// Versions that are read at a time at the least.
const VERSIONS_READ_MIN: usize = 32;
/// Names that each list of a filter may hold.
pub const FILTER_NAMES_MAX: usize = 100;
/// How long one wait for events may last.
pub const EVENTS_WAIT_SECONDS_MAX: u64 = 3_600;

/// A place in the log: everything up to a version was read, and of the next version so many events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    /// The number of the last version that was read to its end.
    pub sequence: u64,
    /// How many events of the version behind it were read as well.
    pub part: u32,
}

impl Cursor {
    /// Behind the version of this number.
    pub fn after(sequence: u64) -> Self {
        Self { sequence, part: 0 }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            0 => write!(f, "{}", self.sequence),
            part => write!(f, "{}+{part}", self.sequence),
        }
    }
}

/// A text that is no place in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no place in the log: write the number of a version, such as 120, or a cursor as it was given"
)]
pub struct BadCursor(pub String);

impl std::str::FromStr for Cursor {
    type Err = BadCursor;
    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let bad = |_| BadCursor(text.to_owned());
        let (sequence, part) = text.split_once('+').unwrap_or((text, "0"));
        Ok(Self { sequence: sequence.parse().map_err(bad)?, part: part.parse().map_err(bad)? })
    }
}

impl TryFrom<String> for Cursor {
    type Error = BadCursor;
    fn try_from(text: String) -> Result<Self, BadCursor> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> String {
        cursor.to_string()
    }
}

/// Which events somebody wants to hear of. An empty list leaves that open; what is named in several lists must agree with
/// each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFilter {
    /// Agents by name: plans that belong to one of them, and what one of them did. `person:ada` and the like name whoever
    /// acted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Words for events ([`Event::KINDS`], [`Consequence::KINDS`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanId>,
    /// Tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
}

/// Why a filter is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFilter {
    /// No event is called that.
    #[error("no event is called {0:?}")]
    NoSuchKind(String),
    /// A list is too long.
    #[error("a filter may name at most {FILTER_NAMES_MAX} {list}, and this one names {found}")]
    TooManyNames {
        /// Of what.
        list: &'static str,
        /// How many.
        found: usize,
    },
    /// A name is too long.
    #[error("a name in a filter may have at most {} bytes", limits::LINE_BYTES_MAX)]
    NameTooLong,
}

impl BadFilter {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::NoSuchKind(_) => format!("write one of {}", waypost_core::event_kinds().join(", ")),
            Self::TooManyNames { .. } => "name fewer, or leave the list out to hear of all".to_owned(),
            Self::NameTooLong => "write the name as the plan has it".to_owned(),
        }
    }
}

impl EventFilter {
    /// Says what is wrong with it.
    pub fn check(&self) -> Result<(), BadFilter> {
        let lists = [
            ("agents", self.agents.len()),
            ("kinds", self.kinds.len()),
            ("plans", self.plans.len()),
            ("tasks", self.tasks.len()),
        ];
        if let Some(&(list, found)) = lists.iter().find(|(_, found)| *found > FILTER_NAMES_MAX) {
            return Err(BadFilter::TooManyNames { list, found });
        }
        if self.agents.iter().any(|agent| agent.len() > limits::LINE_BYTES_MAX) {
            return Err(BadFilter::NameTooLong);
        }
        let is_known = |kind: &str| Event::KINDS.contains(&kind) || Consequence::KINDS.contains(&kind);
        match self.kinds.iter().find(|kind| !is_known(kind)) {
            Some(kind) => Err(BadFilter::NoSuchKind(kind.clone())),
            None => Ok(()),
        }
    }

    /// Whether an event is one of those that are wanted.
    pub fn admits(&self, event: &Occurrence) -> bool {
        let is_about = |task: &TaskId| match &event.event {
            Happening::Decided(decided) => decided.is_about(task),
            Happening::Followed(followed) => followed.task() == Some(task),
        };
        (self.plans.is_empty() || self.plans.contains(&event.plan))
            && self.admits_kind(event.kind)
            && self.admits_agent(&event.owner, &event.actor)
            && self.admits_task(is_about)
    }

    fn wants_consequences(&self) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| Consequence::KINDS.contains(&kind.as_str()))
    }

    fn admits_kind(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind)
    }

    fn admits_agent(&self, owner: &str, actor: &Actor) -> bool {
        let acted = |wanted: &String| {
            actor.kind == ActorKind::Agent && *wanted == actor.name || *wanted == actor.to_string()
        };
        self.agents.is_empty() || self.agents.iter().any(|wanted| *wanted == owner || acted(wanted))
    }

    fn admits_task(&self, is_about: impl Fn(&TaskId) -> bool) -> bool {
        self.tasks.is_empty() || self.tasks.iter().any(is_about)
    }
}

/// Something that happened: written down, or worked out from what was.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Happening {
    /// Somebody's command was decided so.
    Decided(Event),
    /// It followed by the graph.
    Followed(Consequence),
}

/// One event, as readers are told of it. Its JSON is a promise: a golden file holds it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occurrence {
    /// The number of its version in the log.
    pub sequence: u64,
    /// Its place among the events of that version, from 0.
    pub index: u32,
    /// When.
    pub at: Timestamp,
    /// Who wrote the version.
    pub actor: Actor,
    /// The plan.
    pub plan: PlanId,
    /// The version of the plan that it belongs to.
    pub version: u64,
    /// The agent that the plan belongs to now; nothing where it belongs to none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The word for it.
    pub kind: &'static str,
    /// The task that it is about, when it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Whether it only followed from the others of its version: it is worked out when it is read, and stands in no history.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// What happened.
    pub event: Happening,
}

impl Occurrence {
    /// The place in the log right behind it.
    pub fn cursor(&self) -> Cursor {
        Cursor { sequence: self.sequence - 1, part: self.index + 1 }
    }
}

/// Events from a place in the log on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventPage {
    /// What was found, in its order.
    pub events: Vec<Occurrence>,
    /// Where to go on. Nothing that is wanted lies before it but what is on this page.
    pub cursor: Cursor,
    /// Whether the log goes on behind the cursor; it may hold nothing that is wanted.
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

impl Plans {
    /// Events behind `after` that `filter` admits, at most `limit` and at most [`EVENTS_MAX`]. Looks at
    /// [`EVENT_VERSIONS_MAX`] versions and no more: a page may be empty although the log goes on.
    pub fn events(&self, after: Cursor, filter: &EventFilter, limit: usize) -> Result<EventPage, StoreError> {
        let mut own = Follower::default();
        // Whoever comes while another one reads follows the plans for itself.
        let mut shared = match self.follower().try_lock() {
            Ok(shared) => Some(shared),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let follower = shared.as_deref_mut().unwrap_or(&mut own);
        let mut page = EventPage { events: Vec::new(), cursor: after, more: false, forgotten: 0 };
        self.store().read(&mut |read| {
            page = Reader { read, follower, filter, owners: HashMap::new() }
                .page(after, limit.clamp(1, EVENTS_MAX))?;
            Ok(())
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
    ) -> Result<EventPage, StoreError> {
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
    entries: Vec<Entry>,
    up_to: u64,
}

impl Reader<'_> {
    fn page(mut self, after: Cursor, limit: usize) -> Result<EventPage, StoreError> {
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
    fn stretch(&mut self, after: u64, count: usize, latest: u64) -> Result<Stretch, StoreError> {
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
    fn wanted(&mut self, entry: Entry) -> Result<Vec<Occurrence>, StoreError> {
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
        let Entry { sequence, plan, version, at, actor, events, .. } = entry;
        let told = |index: usize, kind: &'static str, task: Option<TaskId>, event: Happening| Occurrence {
            sequence,
            index: index as u32,
            at,
            actor: actor.clone(),
            plan: plan.clone(),
            version,
            owner: owner.clone(),
            kind,
            task,
            derived: matches!(event, Happening::Followed(_)),
            event,
        };
        let decided = events.len();
        let mut wanted = Vec::new();
        for (index, event) in events.into_iter().enumerate() {
            if filter.admits_kind(event.kind()) && filter.admits_task(|task| event.is_about(task)) {
                let (kind, task) = (event.kind(), event.task().cloned());
                wanted.push(told(index, kind, task, Happening::Decided(event)));
            }
        }
        for (index, event) in followed.into_iter().enumerate() {
            if filter.admits_kind(event.kind()) && filter.admits_task(|task| event.task() == Some(task)) {
                let (kind, task) = (event.kind(), event.task().cloned());
                wanted.push(told(decided + index, kind, task, Happening::Followed(event)));
            }
        }
        Ok(wanted)
    }

    fn owner(&mut self, plan: &PlanId) -> Result<String, StoreError> {
        if let Some(owner) = self.owners.get(plan) {
            return Ok(owner.clone());
        }
        let owner = self.read.head(plan)?.map(|head| head.owner).unwrap_or_default();
        self.owners.insert(plan.clone(), owner.clone());
        Ok(owner)
    }
}
