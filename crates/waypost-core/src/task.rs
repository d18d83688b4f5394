//! A task: the author's part and the execution state. Does not know the other tasks.

use std::collections::BTreeMap;
use std::fmt;

use bitcode::{Decode, Encode};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::raw_json::is_default;
use crate::{Json, PlanId, TaskId, TaskState};

/// Fields of another format that have no counterpart in Waypost, preserved for a round trip: format name → its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(transparent)]
pub struct ForeignFields(pub BTreeMap<String, Json>);

impl ForeignFields {
    /// Whether no fields are preserved.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the preserved fields of the format `dialect`; empty if there are none.
    pub fn of(&self, dialect: &str) -> serde_json::Map<String, serde_json::Value> {
        self.0.get(dialect).and_then(|kept| kept.to().ok()).unwrap_or_default()
    }

    /// Stores `fields` under the format's name; an empty map removes the format.
    pub fn keep(&mut self, dialect: &str, fields: serde_json::Map<String, serde_json::Value>) {
        if fields.is_empty() {
            self.0.remove(dialect);
        } else {
            self.0.insert(dialect.to_owned(), Json::of(&fields));
        }
    }
}

/// One dependency of a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum Dependency {
    /// A task of the same plan.
    Task(TaskId),
    /// A task of another plan.
    External(Box<ExternalTaskRef>),
}

/// A task of another plan, named by the plan, by the agent that owns the plan, or by both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode)]
pub struct ExternalTaskRef {
    /// The agent that owns the plan. If set, `plan` may be omitted, which means any plan of that agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The id of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// The id of the task in that plan.
    pub task: TaskId,
}

impl ExternalTaskRef {
    /// Parses `plan/task` or `agent:task`. A plan id cannot contain a colon, so what stands before the first slash of
    /// `agent:a/b` is no plan.
    pub fn parse(text: &str) -> Option<Self> {
        let in_plan = || {
            let (plan, task) = text.split_once('/')?;
            Some(Self { agent: None, plan: Some(PlanId::new(plan).ok()?), task: TaskId::new(task).ok()? })
        };
        let of_agent = || {
            let (agent, task) = text.split_once(':').filter(|(agent, _)| !agent.is_empty())?;
            Some(Self { agent: Some(agent.to_owned()), plan: None, task: TaskId::new(task).ok()? })
        };
        in_plan().or_else(of_agent)
    }

    /// Returns the key under which the output is received: `agent:task`, `plan/task`, or `agent:plan/task` if both are
    /// set.
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
    /// Returns the task, if it is in the same plan.
    pub fn here(&self) -> Option<&TaskId> {
        match self {
            Self::Task(task) => Some(task),
            Self::External(_) => None,
        }
    }

    /// Returns the external task, if it is in another plan.
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

/// How the dependencies of a task must have ended before it may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum DependencyRule {
    /// All are done, or were skipped by their author.
    #[default]
    AllDone,
    /// All have finished, in any way.
    AllFinished,
    /// At least one is done.
    AnyDone,
}

/// The author's estimate of the effort.
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
    /// Returns the stored name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Whether a lock can have several holders at the same time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode,
)]
#[serde(rename_all = "snake_case")]
pub enum LockMode {
    /// One holder at a time.
    #[default]
    Exclusive,
    /// Any number of shared holders.
    Shared,
}

/// A lock that a task must hold while it runs. Keys are global across plans.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Lock {
    /// The key of the resource.
    pub key: String,
    /// The mode of the lock.
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

/// Machine work. The plan names an executor; the operator's configuration defines what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Work {
    /// The name of the configured executor.
    pub executor: String,
    /// The inputs, a JSON object.
    #[serde(default = "Json::empty_object")]
    pub inputs: Json,
    /// The configured shape that the inputs must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
}

/// A retry policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Retry {
    /// Maximum attempts, including the first.
    pub attempts: u32,
    /// Seconds to wait before the second attempt; doubled for each further one.
    #[serde(default)]
    pub backoff_seconds: u32,
    /// Maximum seconds to wait between two attempts.
    #[serde(default = "Retry::default_backoff_seconds_max")]
    pub backoff_seconds_max: u32,
}

impl Retry {
    fn default_backoff_seconds_max() -> u32 {
        3600
    }

    /// Returns the seconds to wait after `tries` failed attempts.
    pub fn wait_seconds(&self, tries: u32) -> u64 {
        let doublings = tries.saturating_sub(1).min(32);
        (u64::from(self.backoff_seconds) << doublings).min(u64::from(self.backoff_seconds_max))
    }
}

/// How far the planning of a task has progressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Refinement {
    /// Being decomposed.
    Decomposing,
    /// Decomposed into children.
    Decomposed,
    /// Small enough to be done without decomposition.
    Atomic,
}

/// A compressed record of finished work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct Digest {
    /// What was accomplished, in under 100 words.
    pub summary: String,
    /// Decisions that later work must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_decisions: Vec<String>,
    /// The main deliverables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// The size of the digest divided by the size of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_ratio: Option<f64>,
    /// The estimated share of information that was preserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity_score: Option<f64>,
}

/// The planner's notes on a task. Stored apart, because most tasks have none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct PlannerNotes {
    /// The stage that planning has reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refinement: Option<Refinement>,
    /// Why the task is atomic, or why it was decomposed this way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tokens that models spent on this task.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens: i64,
    /// The architecture graph node that the task belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_node_id: Option<String>,
    /// The digest of the finished work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// The author's part of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct TaskSpec {
    /// The id, unique within the plan.
    pub id: TaskId,
    /// The work to be done, in prose.
    #[serde(default)]
    pub description: String,
    /// The parent task. The position among siblings is the position in the list of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The tasks that must end before this one may start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// How the dependencies must have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when: DependencyRule,
    /// The author's estimate of the effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<Complexity>,
    /// Free text for the worker.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Tools that the author expects to be used; a hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether the task is skipped: dependants proceed as if it were done.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip: bool,
    /// Locks that the task must hold while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Lock>,
    /// The machine work; without it the task is for an agent or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<Work>>,
    /// The check that must pass before a report of done is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Box<Work>>,
    /// The retry policy; if `None`, the configuration decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<Retry>>,
    /// Timeout of one attempt, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Tasks with a higher priority start first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// The name under which dependants receive the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provides: Option<String>,
    /// The planner's notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Box<PlannerNotes>>,
    /// Preserved fields of other formats.
    #[serde(default, skip_serializing_if = "ForeignFields::is_empty")]
    pub foreign: ForeignFields,
}

impl TaskSpec {
    /// Creates a task that has only an id and a description.
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

    /// Whether results for `self` still count for `other`: same description, parent and machine work. Locks only say what must not
    /// run at the same time.
    pub fn same_work_as(&self, other: &Self) -> bool {
        self.description == other.description && self.parent == other.parent && self.has_same_result_as(other)
    }

    /// Whether machines would do the same for both: same work, check, and conditions for the start.
    pub fn runs_the_same_as(&self, other: &Self) -> bool {
        self.has_same_result_as(other) && self.locks == other.locks
    }

    fn has_same_result_as(&self, other: &Self) -> bool {
        self.work == other.work
            && self.check == other.check
            && self.when == other.when
            && self.skip == other.skip
            && same_set(&self.depends_on, &other.depends_on)
    }

    /// Returns the maximum attempts of the task's own retry policy; 1 without one.
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

/// A task: the author's part and the execution state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct Task {
    /// The author's part.
    #[serde(flatten)]
    pub spec: TaskSpec,
    /// The execution state.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: TaskState,
}

impl Task {
    /// Creates a task without any history.
    pub fn new(spec: TaskSpec) -> Self {
        Self { spec, state: TaskState::default() }
    }

    /// Rekeys received results of dependencies that name both agent and plan: earlier versions left the plan out of the
    /// key.
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
