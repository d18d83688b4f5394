//! What a task is: what its author says of it, and what came of it. Knows nothing of the other tasks.

use std::collections::BTreeMap;
use std::fmt;

use bitcode::{Decode, Encode};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::raw_json::is_default;
use crate::{Json, PlanId, TaskId, TaskState};

/// Fields of a foreign format that Waypost has no word for, kept for the way back: format name → its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(transparent)]
pub struct ForeignFields(pub BTreeMap<String, Json>);

impl ForeignFields {
    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is kept of the format called `dialect`; empty when nothing is.
    pub fn of(&self, dialect: &str) -> serde_json::Map<String, serde_json::Value> {
        self.0.get(dialect).and_then(|kept| kept.to().ok()).unwrap_or_default()
    }

    /// Keeps `fields` under the format's name; an empty map forgets the format.
    pub fn keep(&mut self, dialect: &str, fields: serde_json::Map<String, serde_json::Value>) {
        if fields.is_empty() {
            self.0.remove(dialect);
        } else {
            self.0.insert(dialect.to_owned(), Json::of(&fields));
        }
    }
}

/// One thing that a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum Dependency {
    /// A task of the same plan.
    Task(TaskId),
    /// A task elsewhere.
    External(Box<ExternalTaskRef>),
}

/// A task of another plan, named by the plan, by the agent who owns it, or by both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode)]
pub struct ExternalTaskRef {
    /// The agent whose plan it is; then `plan` may be left out: whatever plan that agent owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// The task in that plan.
    pub task: TaskId,
}

impl ExternalTaskRef {
    /// The key under which its output is received: `agent:task`, `plan/task`, or `agent:plan/task` where both are named.
    pub fn key(&self) -> String {
        match (&self.agent, &self.plan) {
            (Some(agent), Some(plan)) => format!("{agent}:{plan}/{}", self.task),
            (Some(agent), None) => format!("{agent}:{}", self.task),
            (None, Some(plan)) => format!("{plan}/{}", self.task),
            (None, None) => self.task.to_string(),
        }
    }
}

impl Dependency {
    /// The task of the same plan that it names, if it does.
    pub fn here(&self) -> Option<&TaskId> {
        match self {
            Self::Task(task) => Some(task),
            Self::External(_) => None,
        }
    }

    /// The task elsewhere that it names, if it does.
    pub fn external(&self) -> Option<&ExternalTaskRef> {
        match self {
            Self::Task(_) => None,
            Self::External(there) => Some(there),
        }
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(task) => task.fmt(f),
            Self::External(there) => f.write_str(&there.key()),
        }
    }
}

impl Serialize for Dependency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Task(task) => task.serialize(serializer),
            Self::External(there) => there.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Dependency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Dependency;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a task id, or an object with `task` and `plan` or `agent`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Dependency, E> {
                TaskId::new(text).map(Dependency::Task).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Dependency, A::Error> {
                let there = ExternalTaskRef::deserialize(de::value::MapAccessDeserializer::new(map))?;
                if there.agent.is_none() && there.plan.is_none() {
                    return Err(de::Error::custom("a dependency elsewhere needs `plan` or `agent`"));
                }
                Ok(Dependency::External(Box::new(there)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// How the tasks it depends on must have ended before a task may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum DependencyRule {
    /// All are done (or were skipped by their author).
    #[default]
    AllDone,
    /// All have finished, however they ended.
    AllFinished,
    /// At least one is done.
    AnyDone,
}

/// The author's estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// One step.
    Low,
    /// Several steps, a few files.
    Medium,
    /// Much reasoning or many files.
    High,
}

impl Complexity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Whether others may hold the same key at the same time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode,
)]
#[serde(rename_all = "snake_case")]
pub enum LockMode {
    /// Nobody else holds it.
    #[default]
    Exclusive,
    /// Other shared holders are fine.
    Shared,
}

/// A resource that a task must hold while it runs. Keys are global across plans.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Lock {
    /// The resource.
    pub key: String,
    /// How it is held.
    pub mode: LockMode,
}

impl Serialize for Lock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        match self.mode {
            LockMode::Exclusive => self.key.serialize(serializer),
            LockMode::Shared => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("key", &self.key)?;
                map.serialize_entry("mode", &self.mode)?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Lock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Lock;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a lock key, or an object with `key` and `mode`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Lock, E> {
                Ok(Lock { key: text.to_owned(), mode: LockMode::Exclusive })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Lock, A::Error> {
                #[derive(Deserialize)]
                struct Long {
                    key: String,
                    #[serde(default)]
                    mode: LockMode,
                }
                let long = Long::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Lock { key: long.key, mode: long.mode })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// What a machine is to do. The plan names an executor; the operator's configuration says what that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Work {
    /// The configured executor.
    pub executor: String,
    /// Its inputs, a JSON object.
    #[serde(default = "Json::empty_object")]
    pub inputs: Json,
    /// The configured shape that the inputs must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
}

/// How often to try, and how long to wait in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Retry {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// Seconds before the second attempt; doubled for each further one.
    #[serde(default)]
    pub backoff_seconds: u32,
    /// The longest wait between two attempts.
    #[serde(default = "Retry::default_backoff_seconds_max")]
    pub backoff_seconds_max: u32,
}

impl Retry {
    fn default_backoff_seconds_max() -> u32 {
        3600
    }

    /// Seconds to wait after `tries` attempts have failed.
    pub fn wait_seconds(&self, tries: u32) -> u64 {
        let doublings = tries.saturating_sub(1).min(32);
        (u64::from(self.backoff_seconds) << doublings).min(u64::from(self.backoff_seconds_max))
    }
}

/// How far the thinking about a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Refinement {
    /// Being broken down.
    Decomposing,
    /// Broken down into its children.
    Decomposed,
    /// Small enough to be done as it is.
    Atomic,
}

/// Finished work, compressed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct Digest {
    /// What was accomplished, in under 100 words.
    pub summary: String,
    /// Choices that later work must know of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_decisions: Vec<String>,
    /// Main deliverables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// Size of the digest over size of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_ratio: Option<f64>,
    /// Estimated share of the information that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity_score: Option<f64>,
}

/// What the planner thought of a task. Kept apart because most tasks have none of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct PlannerNotes {
    /// How far the thinking has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refinement: Option<Refinement>,
    /// Why it is atomic, or why it was broken down so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tokens that a model spent on this task.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens: i64,
    /// The node of an architecture graph that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_node_id: Option<String>,
    /// What came of it, compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// What the author says of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct TaskSpec {
    /// Unique within the plan.
    pub id: TaskId,
    /// What is to be done.
    #[serde(default)]
    pub description: String,
    /// The task that this one is a part of. Its place among its siblings is its place in the list of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// How those must have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when: DependencyRule,
    /// The author's estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<Complexity>,
    /// Free text for whoever does it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Tools that its author expects to be used; a hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Passed over: what depends on it goes on as if it were done.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip: bool,
    /// What it must hold while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Lock>,
    /// What a machine is to do; without it the task is for an agent or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<Work>>,
    /// What must pass before a report of done is believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Box<Work>>,
    /// How often to try; without it the configuration says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<Retry>>,
    /// Seconds that one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Higher goes first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// The name under which those who depend on it receive its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provides: Option<String>,
    /// What the planner thought of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Box<PlannerNotes>>,
    /// Fields of foreign formats.
    #[serde(default, skip_serializing_if = "ForeignFields::is_empty")]
    pub foreign: ForeignFields,
}

impl TaskSpec {
    /// A task with nothing but an id and a description.
    pub fn new(id: TaskId, description: impl Into<String>) -> Self {
        Self {
            id,
            description: description.into(),
            parent: None,
            depends_on: Vec::new(),
            when: DependencyRule::default(),
            complexity: None,
            notes: String::new(),
            tools: None,
            skip: false,
            locks: Vec::new(),
            work: None,
            check: None,
            retry: None,
            timeout_seconds: None,
            priority: 0,
            provides: None,
            thinking: None,
            foreign: ForeignFields::default(),
        }
    }

    /// Whether what was done for `self` still counts for `other`: the same words, order and work.
    pub fn same_work_as(&self, other: &Self) -> bool {
        self.description == other.description && self.runs_the_same_as(other) && self.parent == other.parent
    }

    /// Whether machines would do the same for both: work, check, and what decides whether and when it starts.
    pub fn runs_the_same_as(&self, other: &Self) -> bool {
        self.work == other.work
            && self.check == other.check
            && self.when == other.when
            && self.skip == other.skip
            && self.locks == other.locks
            && same_set(&self.depends_on, &other.depends_on)
    }

    /// Attempts in all: the task's own word, or one.
    pub fn attempts_max(&self) -> u32 {
        self.retry.as_ref().map_or(1, |retry| retry.attempts.max(1))
    }
}

fn same_set(a: &[Dependency], b: &[Dependency]) -> bool {
    if a == b {
        return true;
    }
    let sorted = |list: &[Dependency]| {
        let mut list = list.to_vec();
        list.sort();
        list.dedup();
        list
    };
    sorted(a) == sorted(b)
}

/// A task: what its author says, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct Task {
    /// What its author says.
    #[serde(flatten)]
    pub spec: TaskSpec,
    /// What came of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: TaskState,
}

impl Task {
    /// A task to which nothing has happened.
    pub fn new(spec: TaskSpec) -> Self {
        Self { spec, state: TaskState::default() }
    }

    /// Puts what came from tasks that are named by agent and plan under their keys: earlier versions left the plan out.
    pub fn name_received(&mut self) {
        let there: Vec<&ExternalTaskRef> =
            self.spec.depends_on.iter().filter_map(Dependency::external).collect();
        for on in there.iter().filter(|on| on.agent.is_some() && on.plan.is_some()) {
            let (key, short) = (on.key(), ExternalTaskRef { plan: None, ..(*on).clone() }.key());
            let is_anothers = there.iter().any(|other| other.key() == short);
            if is_anothers || self.state.received.contains_key(&key) {
                continue;
            }
            if let Some(received) = self.state.received.remove(&short) {
                self.state.received.insert(key, received);
            }
        }
    }
}
