//! Events of the log, places between them, and filters of those that somebody wants to read. Knows no store.

use std::fmt;

use serde::{Deserialize, Serialize};
use waypost_core::{Actor, ActorKind, DerivedEvent, Event, PlanId, TaskId, Timestamp, limits};

/// Names that each list of a filter may hold.
pub const FILTER_NAMES_MAX: usize = 100;

/// A place in the log: all events up to a version, and `part` events of the next one.
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

/// A text that is not a place in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a cursor of the log: pass a sequence number such as 120, or a cursor from an earlier reply"
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

/// Something that happened: written down, or worked out from what was.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EventSource {
    /// Somebody's command was decided so.
    Decided(Event),
    /// It followed by the graph.
    Followed(DerivedEvent),
}

/// One event, as readers are told of it. Its JSON is a promise: a golden file holds it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogEvent {
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
    /// The event.
    pub event: EventSource,
}

impl LogEvent {
    /// The place in the log right behind it.
    pub fn cursor(&self) -> Cursor {
        Cursor { sequence: self.sequence - 1, part: self.index + 1 }
    }
}

/// Which events somebody wants to hear of. An empty list leaves that open; what is named in several lists must agree with
/// each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFilter {
    /// Agents by name: plans that belong to one of them, and what one of them did. `person:ada` and the like name
    /// an actor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Words for events ([`Event::KINDS`], [`DerivedEvent::KINDS`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanId>,
    /// Tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
}

/// Why a filter is invalid.
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
            Self::TooManyNames { .. } => "name fewer, or omit the list to receive all".to_owned(),
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
        let is_known = |kind: &str| Event::KINDS.contains(&kind) || DerivedEvent::KINDS.contains(&kind);
        match self.kinds.iter().find(|kind| !is_known(kind)) {
            Some(kind) => Err(BadFilter::NoSuchKind(kind.clone())),
            None => Ok(()),
        }
    }

    /// Whether an event is one of those that are wanted.
    pub fn admits(&self, event: &LogEvent) -> bool {
        let is_about = |task: &TaskId| match &event.event {
            EventSource::Decided(decided) => decided.is_about(task),
            EventSource::Followed(followed) => followed.task() == Some(task),
        };
        (self.plans.is_empty() || self.plans.contains(&event.plan))
            && self.admits_kind(event.kind)
            && self.admits_agent(&event.owner, &event.actor)
            && self.admits_task(is_about)
    }

    /// Whether the progress of a task is wanted. Who owns the plan is not known to a report, so a filter for agents wants none.
    pub fn admits_progress(&self, plan: &PlanId, task: &TaskId) -> bool {
        self.agents.is_empty()
            && (self.plans.is_empty() || self.plans.contains(plan))
            && self.admits_kind("task_progressed")
            && self.admits_task(|wanted| wanted == task)
    }

    pub(super) fn wants_consequences(&self) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| DerivedEvent::KINDS.contains(&kind.as_str()))
    }

    pub(super) fn admits_kind(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind)
    }

    pub(super) fn admits_agent(&self, owner: &str, actor: &Actor) -> bool {
        let acted = |wanted: &String| {
            actor.kind == ActorKind::Agent && *wanted == actor.name || *wanted == actor.to_string()
        };
        self.agents.is_empty() || self.agents.iter().any(|wanted| *wanted == owner || acted(wanted))
    }

    pub(super) fn admits_task(&self, is_about: impl Fn(&TaskId) -> bool) -> bool {
        self.tasks.is_empty() || self.tasks.iter().any(is_about)
    }
}
