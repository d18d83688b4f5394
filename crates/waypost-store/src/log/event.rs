//! Events of the log, cursors between them, and filters. Does not access a store.

use std::fmt;

use serde::{Deserialize, Serialize};
use waypost_core::{Actor, ActorKind, DerivedEvent, Event, PlanId, TaskId, Timestamp, limits};

/// Maximum number of names in each list of a filter.
pub const FILTER_NAMES_MAX: usize = 100;

/// A position in the log: after all events of version `sequence` and after `part` events of the next version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    /// The sequence number of the last version that was read completely.
    pub sequence: u64,
    /// The number of events of the next version that were read as well.
    pub part: u32,
}

impl Cursor {
    /// Returns the position right after the version of this sequence number.
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

/// The text is not a cursor of the log.
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

/// An event that was stored, or one that is derived from stored events.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EventSource {
    /// A command led to this event; it is stored.
    Decided(Event),
    /// The event follows from stored events by the graph.
    Followed(DerivedEvent),
}

/// One event, as readers receive it. Its JSON format is stable: a golden file holds it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogEvent {
    /// The sequence number of its version in the log.
    pub sequence: u64,
    /// Its position among the events of that version, from 0.
    pub index: u32,
    /// When the version was written.
    pub at: Timestamp,
    /// The actor that wrote the version.
    pub actor: Actor,
    /// The id of the plan.
    pub plan: PlanId,
    /// The version of the plan that the event belongs to.
    pub version: u64,
    /// The agent that owns the plan now; empty when the plan has no owner.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The kind of the event, one of [`Event::KINDS`] or [`DerivedEvent::KINDS`].
    pub kind: &'static str,
    /// The id of the task that the event is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Whether the event follows from the others of its version: it is computed when it is read, and is not stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// The event itself.
    pub event: EventSource,
}

impl LogEvent {
    /// Returns the position right after this event.
    pub fn cursor(&self) -> Cursor {
        Cursor { sequence: self.sequence - 1, part: self.index + 1 }
    }
}

/// Selects events. An empty list admits everything; an event must match every list that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFilter {
    /// Names of agents: admits events of plans that one of them owns, and events that one of them caused. `person:ada`
    /// and the like name any actor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Kinds of events ([`Event::KINDS`], [`DerivedEvent::KINDS`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Ids of plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanId>,
    /// Ids of tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
}

/// The reason why a filter is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFilter {
    /// There is no event kind of that name.
    #[error("no event is called {0:?}")]
    NoSuchKind(String),
    /// A list has more than [`FILTER_NAMES_MAX`] names.
    #[error("a filter may name at most {FILTER_NAMES_MAX} {list}, and this one names {found}")]
    TooManyNames {
        /// The name of the list.
        list: &'static str,
        /// The number of names in it.
        found: usize,
    },
    /// The name of an agent has more bytes than a line of text may have.
    #[error("a name in a filter may have at most {} bytes", limits::LINE_BYTES_MAX)]
    NameTooLong,
}

impl BadFilter {
    /// Returns what the user can do next.
    pub fn hint(&self) -> String {
        match self {
            Self::NoSuchKind(_) => format!("write one of {}", waypost_core::event_kinds().join(", ")),
            Self::TooManyNames { .. } => "name fewer, or omit the list to receive all".to_owned(),
            Self::NameTooLong => "write the name as the plan has it".to_owned(),
        }
    }
}

impl EventFilter {
    /// Checks the lengths of the lists and names, and that each kind exists.
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

    /// Returns whether the filter selects an event.
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

    /// Returns whether the filter selects the progress of a task. A progress report does not contain the owner of the
    /// plan, so a filter by agents selects none.
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
