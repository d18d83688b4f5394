//! Identifiers of plans, tasks and actors. Does not know where they are stored.

use std::fmt;
use std::sync::Arc;

use bitcode::{Decode, Encode};
use serde::{Deserialize, Serialize, Serializer};
use strum::{EnumString, IntoStaticStr};

use crate::limits;

/// Why a text is not a valid id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    /// The text is empty.
    #[error("an id must not be empty")]
    Empty,
    /// The text exceeds this many bytes.
    #[error("an id may have at most {0} bytes")]
    TooLong(usize),
    /// The text has a character that is unsafe in a file name or on a command line.
    #[error(
        "a plan id may use letters, digits, '.', '_' and '-', and starts with a letter or a digit; found {0:?}"
    )]
    PlanCharacter(char),
    /// The text has a control character.
    #[error("a task id must not hold control characters; found {0:?}")]
    TaskCharacter(char),
}

/// The id of a plan: safe as a file name and as a command line argument. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Encode, Decode)]
#[serde(try_from = "String")]
pub struct PlanId(Arc<str>);

impl PlanId {
    /// Validates `text` as a plan id.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, BadId> {
        let text = text.into();
        if text.is_empty() {
            return Err(BadId::Empty);
        }
        if text.len() > limits::PLAN_ID_BYTES_MAX {
            return Err(BadId::TooLong(limits::PLAN_ID_BYTES_MAX));
        }
        let bad = text
            .chars()
            .enumerate()
            .find(|&(at, c)| !(c.is_ascii_alphanumeric() || at > 0 && matches!(c, '.' | '_' | '-')));
        match bad {
            Some((_, c)) => Err(BadId::PlanCharacter(c)),
            None => Ok(Self(text)),
        }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id of a task, unique within its plan. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Encode, Decode)]
#[serde(try_from = "String")]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// Validates `text` as a task id.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, BadId> {
        let text = text.into();
        if text.is_empty() {
            return Err(BadId::Empty);
        }
        if text.len() > limits::TASK_ID_BYTES_MAX {
            return Err(BadId::TooLong(limits::TASK_ID_BYTES_MAX));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(c) => Err(BadId::TaskCharacter(c)),
            None => Ok(Self(text)),
        }
    }

    /// Wraps a text that is known to be a valid task id, without validating it.
    pub fn trusted(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! text_id {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                Self::new(text)
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.as_str().to_owned()
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl std::str::FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::new(text)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}
text_id!(PlanId);
text_id!(TaskId);

/// The kind of an actor.
#[derive(Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum ActorKind {
    /// A human. Only a person can approve.
    Person,
    /// A program that plans and works with a model.
    Agent,
    /// A process that runs tasks.
    Worker,
    /// Waypost itself: a lease that expired, a dependency that was delivered.
    System,
}

impl ActorKind {
    /// Returns the name of the kind: the part of an actor before the colon.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What the name ends in of an actor whom only a record of another clone names.
const UNVERIFIED: &str = " (unverified)";

/// The originator of a command. Written `person:ada`, `agent:planner`, `worker:host-1`, `system:lease`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode)]
#[serde(try_from = "String", into = "String")]
pub struct Actor {
    /// The kind of the actor.
    pub kind: ActorKind,
    /// The name of the actor, without its kind.
    pub name: String,
}

impl Actor {
    /// Creates a person.
    pub fn person(name: impl Into<String>) -> Self {
        Self { kind: ActorKind::Person, name: name.into() }
    }
    /// Creates an agent.
    pub fn agent(name: impl Into<String>) -> Self {
        Self { kind: ActorKind::Agent, name: name.into() }
    }
    /// Creates a worker.
    pub fn worker(name: impl Into<String>) -> Self {
        Self { kind: ActorKind::Worker, name: name.into() }
    }
    /// Creates an actor for a part of Waypost.
    pub fn system(name: impl Into<String>) -> Self {
        Self { kind: ActorKind::System, name: name.into() }
    }

    /// Returns the actor as somebody whom only a record of another clone names.
    #[must_use]
    pub fn unverified(&self) -> Self {
        if self.name.ends_with(UNVERIFIED) {
            return self.clone();
        }
        let room = limits::TASK_ID_BYTES_MAX - UNVERIFIED.len();
        let end = (0..=room.min(self.name.len())).rev().find(|&end| self.name.is_char_boundary(end));
        let name = self.name.get(..end.unwrap_or(0)).unwrap_or_default();
        Self { kind: self.kind, name: format!("{name}{UNVERIFIED}") }
    }

    /// Whether a record that names `claimed` can be about this actor, whom it made known or who wrote it here.
    pub(crate) fn is_claim_of(&self, claimed: &Self) -> bool {
        self == claimed || *self == claimed.unverified()
    }

    /// Returns the worker name of this actor in one of its sessions: `agent:planner#k3f9`.
    pub fn in_session(&self, session: &str) -> String {
        format!("{self}#{session}")
    }

    /// Returns the agent or person who works under this name, in any session; `None` for a machine.
    pub fn of_worker(worker: &str) -> Option<Self> {
        let whose = worker.split_once('#').map_or(worker, |(whose, _)| whose);
        let actor: Self = whose.parse().ok()?;
        matches!(actor.kind, ActorKind::Agent | ActorKind::Person).then_some(actor)
    }

    /// Whether `worker` is the worker name of this actor, in any session.
    pub fn is_worker(&self, worker: &str) -> bool {
        let whose = worker.split_once('#').map_or(worker, |(whose, _)| whose);
        whose == self.to_string() || worker == self.name
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.name)
    }
}

impl From<Actor> for String {
    fn from(actor: Actor) -> String {
        actor.to_string()
    }
}

/// Text that is not a valid actor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an actor: write person:NAME, agent:NAME or worker:NAME")]
pub struct BadActor(pub String);

impl TryFrom<String> for Actor {
    type Error = BadActor;
    fn try_from(text: String) -> Result<Self, BadActor> {
        text.parse()
    }
}

impl std::str::FromStr for Actor {
    type Err = BadActor;
    fn from_str(text: &str) -> Result<Self, BadActor> {
        let bad = || BadActor(text.to_owned());
        let (kind, name) = text.split_once(':').ok_or_else(bad)?;
        let kind = kind.parse().map_err(|_| bad())?;
        if name.is_empty() || name.len() > limits::TASK_ID_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(bad());
        }
        Ok(Self { kind, name: name.to_owned() })
    }
}
