//! The fields of plans and tasks that operations set one by one, and their values in JSON.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::ids::TaskRef;
use crate::json_text;
use crate::travelling_work::TravellingWork;
use waypost_core::{Digest, Hold, Json, PlanSpec, PlannerNotes, TaskId, TaskSpec, Work, limits};

/// A field of a plan or of a task that one action sets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// The title of the plan.
    Title,
    /// The goal of the plan.
    Goal,
    /// The author's free-text status of the plan.
    Status,
    /// The agent that owns the plan.
    Owner,
    /// The queue of the plan.
    Queue,
    /// The token budget of the plan.
    TokenBudget,
    /// The Markdown text of the plan.
    Body,
    /// Whether the plan is archived.
    Archived,
    /// The prose of a task.
    Description,
    /// The notes of a task.
    Notes,
    /// The parent of a task: a task reference, or null for a root.
    Parent,
    /// The place among the siblings, a fractional key.
    Place,
    /// How the dependencies must have ended.
    When,
    /// The estimated effort.
    Complexity,
    /// Whether the task is skipped.
    Skip,
    /// The machine work.
    Work,
    /// The check of a report.
    Check,
    /// The retry policy.
    Retry,
    /// The timeout of one attempt.
    TimeoutSeconds,
    /// The priority.
    Priority,
    /// The name under which dependants receive the output.
    Provides,
    /// The stage that planning has reached.
    Refinement,
    /// The reasoning of the planner.
    Reasoning,
    /// The node in the architecture graph.
    GraphNodeId,
    /// The digest of finished work.
    Digest,
    /// The hold that keeps the task from starting.
    Held,
    /// Who is to take care of the task.
    Assignee,
    /// The preserved fields of this foreign format.
    Foreign(String),
}

/// What happens to values of a field that were set without knowledge of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contest {
    /// Texts are merged line by line; if lines overlap, a question.
    Text,
    /// Equal values agree; otherwise a question.
    Question,
    /// The last value holds.
    LastHolds,
}

const NAMES: [(Field, &str); 27] = [
    (Field::Title, "title"),
    (Field::Goal, "goal"),
    (Field::Status, "status"),
    (Field::Owner, "owner"),
    (Field::Queue, "queue"),
    (Field::TokenBudget, "token_budget"),
    (Field::Body, "body"),
    (Field::Archived, "archived"),
    (Field::Description, "description"),
    (Field::Notes, "notes"),
    (Field::Parent, "parent"),
    (Field::Place, "place"),
    (Field::When, "when"),
    (Field::Complexity, "complexity"),
    (Field::Skip, "skip"),
    (Field::Work, "work"),
    (Field::Check, "check"),
    (Field::Retry, "retry"),
    (Field::TimeoutSeconds, "timeout_seconds"),
    (Field::Priority, "priority"),
    (Field::Provides, "provides"),
    (Field::Refinement, "refinement"),
    (Field::Reasoning, "reasoning"),
    (Field::GraphNodeId, "graph_node_id"),
    (Field::Digest, "digest"),
    (Field::Held, "held"),
    (Field::Assignee, "assignee"),
];

/// What stands before the name of a foreign format.
const FOREIGN: &str = "foreign.";

impl Field {
    /// The fields of a plan, without those of foreign formats.
    pub const OF_PLAN: [Self; 8] = [
        Self::Title,
        Self::Goal,
        Self::Status,
        Self::Owner,
        Self::Queue,
        Self::TokenBudget,
        Self::Body,
        Self::Archived,
    ];

    /// The fields of a task that are its author's, without its place and those of foreign formats.
    pub const OF_TASK: [Self; 15] = [
        Self::Description,
        Self::Notes,
        Self::When,
        Self::Complexity,
        Self::Skip,
        Self::Work,
        Self::Check,
        Self::Retry,
        Self::TimeoutSeconds,
        Self::Priority,
        Self::Provides,
        Self::Refinement,
        Self::Reasoning,
        Self::GraphNodeId,
        Self::Digest,
    ];

    /// Returns the name of the field.
    pub fn as_str(&self) -> Cow<'static, str> {
        if let Self::Foreign(format) = self {
            return Cow::Owned(format!("{FOREIGN}{format}"));
        }
        let name = NAMES.iter().find(|(field, _)| field == self);
        name.map_or(Cow::Borrowed(""), |(_, name)| Cow::Borrowed(*name))
    }

    /// Whether plans have this field.
    pub fn is_of_plan(&self) -> bool {
        Self::OF_PLAN.contains(self) || matches!(self, Self::Foreign(_))
    }

    /// Whether tasks have this field.
    pub fn is_of_task(&self) -> bool {
        !Self::OF_PLAN.contains(self)
    }

    /// Returns what happens to values that were set without knowledge of each other.
    pub fn contest(&self) -> Contest {
        match self {
            Self::Goal | Self::Body | Self::Description | Self::Notes => Contest::Text,
            Self::Place => Contest::LastHolds,
            Self::Title
            | Self::Status
            | Self::Owner
            | Self::Queue
            | Self::TokenBudget
            | Self::Archived
            | Self::Parent
            | Self::When
            | Self::Complexity
            | Self::Skip
            | Self::Work
            | Self::Check
            | Self::Retry
            | Self::TimeoutSeconds
            | Self::Priority
            | Self::Provides
            | Self::Refinement
            | Self::Reasoning
            | Self::GraphNodeId
            | Self::Digest
            | Self::Held
            | Self::Assignee
            | Self::Foreign(_) => Contest::Question,
        }
    }

    /// Returns the maximum bytes of the field's text.
    fn bytes_max(&self) -> usize {
        match self {
            Self::Title | Self::Status | Self::Owner | Self::Queue => limits::LINE_BYTES_MAX,
            Self::Body => limits::BODY_BYTES_MAX,
            Self::Goal | Self::Description | Self::Notes | Self::Reasoning => limits::TEXT_BYTES_MAX,
            Self::Place => limits::PLACE_BYTES_MAX,
            Self::TokenBudget
            | Self::Archived
            | Self::Parent
            | Self::When
            | Self::Complexity
            | Self::Skip
            | Self::Work
            | Self::Check
            | Self::Retry
            | Self::TimeoutSeconds
            | Self::Priority
            | Self::Provides
            | Self::Refinement
            | Self::GraphNodeId
            | Self::Digest
            | Self::Held
            | Self::Assignee
            | Self::Foreign(_) => limits::JSON_BYTES_MAX,
        }
    }

    /// Checks the text of a field against its limit.
    pub(super) fn check_bytes(&self, found: usize) -> Result<(), BadValue> {
        let max = self.bytes_max();
        if found <= max { Ok(()) } else { Err(BadValue::TooLong { field: self.clone(), found, max }) }
    }

    /// Checks that a value can be set, on a plan or on a task.
    pub(super) fn check(&self, to: &Value, on_task: bool) -> Result<(), BadValue> {
        let belongs = if on_task { self.is_of_task() } else { self.is_of_plan() };
        if !belongs {
            return Err(BadValue::NotAField(self.clone()));
        }
        if let Value::String(text) = to {
            self.check_bytes(text.len())?;
        }
        match (self, on_task) {
            (Self::Parent, _) => self.read::<Option<TaskRef>>(to).map(|_| ()),
            (Self::Place, _) => {
                let is_key = to.as_str().is_some_and(crate::place::is_key);
                if is_key { Ok(()) } else { Err(BadValue::Wrong(self.clone())) }
            }
            (Self::Held, _) => self.read::<Option<Hold>>(to).map(|_| ()),
            (Self::Assignee, _) => match self.read::<Option<String>>(to)? {
                Some(who) if !is_one_line(&who, limits::ASSIGNEE_BYTES_MAX) => {
                    Err(BadValue::Wrong(self.clone()))
                }
                Some(_) | None => Ok(()),
            },
            (Self::Archived, _) => self.read::<bool>(to).map(|_| ()),
            (_, true) => {
                let mut spec = TaskSpec::new(TaskId::trusted("t"), "");
                self.set_on_task(&mut spec, to)?;
                let mut work = [&spec.work, &spec.check].into_iter().flatten();
                let is_odd = |work: &Work| {
                    !work.inputs.is_object() || work.inputs.as_str().len() > limits::JSON_BYTES_MAX
                };
                let attempts = spec.retry.map_or(0, |retry| retry.attempts);
                let is_wrong = work.any(|work| is_odd(work)) || attempts > limits::ATTEMPTS_MAX;
                if is_wrong { Err(BadValue::Wrong(self.clone())) } else { Ok(()) }
            }
            (_, false) => self.set_on_plan(&mut PlanSpec::default(), to),
        }
    }

    fn read<T: DeserializeOwned>(&self, to: &Value) -> Result<T, BadValue> {
        T::deserialize(to).map_err(|_| BadValue::Wrong(self.clone()))
    }

    /// Reads a value as text.
    fn text(&self, to: &Value) -> Result<String, BadValue> {
        to.as_str().map(str::to_owned).ok_or_else(|| BadValue::Wrong(self.clone()))
    }

    /// Reads a value as JSON that travels as its text; null clears the field.
    fn json(&self, to: &Value) -> Result<Option<Json>, BadValue> {
        match to {
            Value::Null => Ok(None),
            Value::String(text) => json_text::read(text).map(Some).map_err(|_| BadValue::Wrong(self.clone())),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(BadValue::Wrong(self.clone()))
            }
        }
    }

    /// Returns the value that a task has. `Parent`, `Place`, `Held` and `Assignee` do not belong to its author's part.
    pub(crate) fn of_task(&self, spec: &TaskSpec) -> Value {
        let notes = spec.thinking.as_deref();
        match self {
            Self::Description => Value::from(spec.description.as_str()),
            Self::Notes => Value::from(spec.notes.as_str()),
            Self::When => value(&spec.when),
            Self::Complexity => value(&spec.complexity),
            Self::Skip => Value::from(spec.skip),
            Self::Work => value(&spec.work.as_deref().map(TravellingWork::of)),
            Self::Check => value(&spec.check.as_deref().map(TravellingWork::of)),
            Self::Retry => value(&spec.retry),
            Self::TimeoutSeconds => value(&spec.timeout_seconds),
            Self::Priority => Value::from(spec.priority),
            Self::Provides => value(&spec.provides),
            Self::Refinement => value(&notes.and_then(|notes| notes.refinement)),
            Self::Reasoning => value(&notes.and_then(|notes| notes.reasoning.as_deref())),
            Self::GraphNodeId => value(&notes.and_then(|notes| notes.graph_node_id.as_deref())),
            Self::Digest => {
                let digest = notes.and_then(|notes| notes.digest.as_ref());
                digest.map_or(Value::Null, |digest| Value::from(Json::of(digest).as_str()))
            }
            Self::Foreign(format) => {
                spec.foreign.0.get(format).map_or(Value::Null, |json| Value::from(json.as_str()))
            }
            Self::Title
            | Self::Goal
            | Self::Status
            | Self::Owner
            | Self::Queue
            | Self::TokenBudget
            | Self::Body
            | Self::Archived
            | Self::Parent
            | Self::Place
            | Self::Held
            | Self::Assignee => Value::Null,
        }
    }

    /// Sets the field on the author's part of a task.
    pub(crate) fn set_on_task(&self, spec: &mut TaskSpec, to: &Value) -> Result<(), BadValue> {
        let wrong = || BadValue::Wrong(self.clone());
        match self {
            Self::Description => spec.description = self.text(to)?,
            Self::Notes => spec.notes = self.text(to)?,
            Self::When => spec.when = self.read(to)?,
            Self::Complexity => spec.complexity = self.read(to)?,
            Self::Skip => spec.skip = self.read(to)?,
            Self::Work => {
                spec.work = self.read::<Option<TravellingWork>>(to)?.map(|work| Box::new(work.into()))
            }
            Self::Check => {
                spec.check = self.read::<Option<TravellingWork>>(to)?.map(|work| Box::new(work.into()))
            }
            Self::Retry => spec.retry = self.read(to)?,
            Self::TimeoutSeconds => spec.timeout_seconds = self.read(to)?,
            Self::Priority => spec.priority = self.read(to)?,
            Self::Provides => spec.provides = self.read(to)?,
            Self::Refinement => {
                let refinement = self.read(to)?;
                change_notes(spec, |notes| notes.refinement = refinement);
            }
            Self::Reasoning => {
                let reasoning = self.read(to)?;
                change_notes(spec, |notes| notes.reasoning = reasoning);
            }
            Self::GraphNodeId => {
                let node = self.read(to)?;
                change_notes(spec, |notes| notes.graph_node_id = node);
            }
            Self::Digest => {
                let json = self.json(to)?;
                let digest: Option<Digest> = json.map(|json| json.to()).transpose().map_err(|_| wrong())?;
                change_notes(spec, |notes| notes.digest = digest);
            }
            Self::Foreign(format) => match self.json(to)? {
                Some(json) => {
                    spec.foreign.0.insert(format.clone(), json);
                }
                None => {
                    spec.foreign.0.remove(format);
                }
            },
            Self::Title
            | Self::Goal
            | Self::Status
            | Self::Owner
            | Self::Queue
            | Self::TokenBudget
            | Self::Body
            | Self::Archived
            | Self::Parent
            | Self::Place
            | Self::Held
            | Self::Assignee => return Err(BadValue::NotAField(self.clone())),
        }
        Ok(())
    }

    /// Returns the value that a plan has; `Archived` is state.
    pub(crate) fn of_plan(&self, spec: &PlanSpec) -> Value {
        match self {
            Self::Title => Value::from(spec.title.as_str()),
            Self::Goal => Value::from(spec.goal.as_str()),
            Self::Status => Value::from(spec.status.as_str()),
            Self::Owner => Value::from(spec.owner.as_str()),
            Self::Queue => Value::from(spec.queue.as_str()),
            Self::TokenBudget => value(&spec.token_budget),
            Self::Body => Value::from(spec.body.as_str()),
            Self::Foreign(format) => {
                spec.foreign.0.get(format).map_or(Value::Null, |json| Value::from(json.as_str()))
            }
            Self::Archived
            | Self::Description
            | Self::Notes
            | Self::Parent
            | Self::Place
            | Self::When
            | Self::Complexity
            | Self::Skip
            | Self::Work
            | Self::Check
            | Self::Retry
            | Self::TimeoutSeconds
            | Self::Priority
            | Self::Provides
            | Self::Refinement
            | Self::Reasoning
            | Self::GraphNodeId
            | Self::Digest
            | Self::Held
            | Self::Assignee => Value::Null,
        }
    }

    /// Sets the field on the author's part of a plan.
    pub(crate) fn set_on_plan(&self, spec: &mut PlanSpec, to: &Value) -> Result<(), BadValue> {
        match self {
            Self::Title => spec.title = self.text(to)?,
            Self::Goal => spec.goal = self.text(to)?,
            Self::Status => spec.status = self.text(to)?,
            Self::Owner => spec.owner = self.text(to)?,
            Self::Queue => spec.queue = self.text(to)?,
            Self::TokenBudget => spec.token_budget = self.read(to)?,
            Self::Body => spec.body = self.text(to)?,
            Self::Foreign(format) => match self.json(to)? {
                Some(json) => {
                    spec.foreign.0.insert(format.clone(), json);
                }
                None => {
                    spec.foreign.0.remove(format);
                }
            },
            Self::Archived
            | Self::Description
            | Self::Notes
            | Self::Parent
            | Self::Place
            | Self::When
            | Self::Complexity
            | Self::Skip
            | Self::Work
            | Self::Check
            | Self::Retry
            | Self::TimeoutSeconds
            | Self::Priority
            | Self::Provides
            | Self::Refinement
            | Self::Reasoning
            | Self::GraphNodeId
            | Self::Digest
            | Self::Held
            | Self::Assignee => return Err(BadValue::NotAField(self.clone())),
        }
        Ok(())
    }
}

/// Whether a text is one line of at most `max` bytes, as labels and assignees are.
pub(super) fn is_one_line(text: &str, max: usize) -> bool {
    !text.trim().is_empty() && text.len() <= max && !text.contains(char::is_control)
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// Changes the planner's notes, and drops them if nothing is left.
fn change_notes(spec: &mut TaskSpec, change: impl FnOnce(&mut PlannerNotes)) {
    let mut notes = spec.thinking.take().unwrap_or_default();
    change(&mut notes);
    spec.thinking = (*notes != PlannerNotes::default()).then_some(notes);
}

/// Why a field cannot be set to a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// Plans have no such field, or tasks have none.
    #[error("`{0}` is not a field there")]
    NotAField(Field),
    /// The value has another type.
    #[error("`{0}` has a value of the wrong type")]
    Wrong(Field),
    /// The text is over its limit.
    #[error("`{field}` has {found} bytes; the maximum is {max}")]
    TooLong {
        /// The field.
        field: Field,
        /// Its bytes.
        found: usize,
        /// The maximum.
        max: usize,
    },
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.as_str())
    }
}

/// Text that is not the name of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a field")]
pub struct BadField(pub String);

impl FromStr for Field {
    type Err = BadField;
    fn from_str(text: &str) -> Result<Self, BadField> {
        if let Some((field, _)) = NAMES.iter().find(|(_, name)| *name == text) {
            return Ok(field.clone());
        }
        let format = text.strip_prefix(FOREIGN).filter(|format| !format.is_empty());
        let format = format.filter(|format| format.len() <= limits::LINE_BYTES_MAX);
        format.map(|format| Self::Foreign(format.to_owned())).ok_or_else(|| BadField(text.to_owned()))
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.as_str())
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
