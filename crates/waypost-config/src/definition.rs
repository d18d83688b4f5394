//! What the names of executors and checks stand for, as values that can be shown, compared, published and hashed.
//!
//! A value has all keys with their defaults; of a secret its name and source, never its value. A key that is added to
//! an executor later is in it too, so that plans that use the executor need approval again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use waypost_core::canonical::{CanonicalHasher, Hash};
use waypost_core::{ProblemKind, Retry, Work};

use crate::executor::Worker;
use crate::settings::{Config, Executor};

/// The key of an executor that chooses among several workers by the inputs of a task.
const DISPATCH: &str = "dispatch";
/// The keys with the content of files.
const PROMPT: &str = "prompt";
const PIN: &str = "pin";

/// Whether a name stands for an executor or for a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionRole {
    /// An executor.
    Executor,
    /// A check that is no executor.
    Check,
}

impl DefinitionRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executor => "executor",
            Self::Check => "check",
        }
    }
}

/// What one name stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition<'a> {
    pub role: DefinitionRole,
    /// The name; `executor/worker` for a worker of a dispatch executor.
    pub name: String,
    /// The kind of the executor, with everything that is configured for it.
    pub value: &'a Value,
    /// The text that an approval binds in place of the value, so that workers can define the name differently.
    pub revision: Option<&'a str>,
}

impl Definition<'_> {
    /// Returns the hash by which an approval binds it.
    pub fn hash(&self) -> Hash {
        if let Some(revision) = self.revision {
            let kind = self.value.as_object().and_then(|kinds| kinds.iter().next());
            let name = kind.map(|(name, _)| name.as_str()).or(self.value.as_str()).unwrap_or_default();
            // Agents may write these files, so that no word of the operator stands for their content.
            let files = [PROMPT, PIN].map(|key| kind.and_then(|(_, keys)| keys.get(key)));
            let version = if files == [None, None] { 1 } else { 2 };
            let mut hasher = CanonicalHasher::new("revision", version);
            hasher.text(&self.name).text(name).text(revision);
            for file in files.into_iter().flatten() {
                hash_value(&mut hasher, file);
            }
            return hasher.finish();
        }
        let mut hasher = CanonicalHasher::new("definition", 1);
        hasher.text(self.role.as_str()).text(&self.name);
        hash_value(&mut hasher, self.value);
        hasher.finish()
    }
}

/// What all names of a configuration stand for, and the defaults for tasks that set no limits. Workers publish theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definitions {
    /// The executors by name; workers of a dispatch executor as `executor/worker`.
    pub executors: BTreeMap<String, Value>,
    /// The checks by name.
    pub checks: BTreeMap<String, Value>,
    /// The revisions by the name of the executor.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub revisions: BTreeMap<String, String>,
    /// The retries of a task that sets none.
    pub retry: Retry,
    /// The time limit of a task without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// The folder in which programs start, as shown to approvers. It differs between machines, so that no digest covers it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
}

impl Definitions {
    /// Returns the definitions of a configuration. Files that it pins are read.
    pub fn of(config: &Config) -> Self {
        let mut executors = BTreeMap::new();
        for (name, executor) in &config.executors {
            let pinned = || config.pinned_files.of(&format!("executors.{name}"));
            let value = match executor {
                Executor::Noop => json!("noop"),
                Executor::Human => json!("human"),
                Executor::Worker(worker) => value_of(worker, pinned()),
                Executor::Dispatch(workers) => {
                    let pinned = pinned();
                    let named = workers
                        .iter()
                        .map(|(worker, one)| (format!("{name}/{worker}"), value_of(one, pinned.clone())));
                    executors.extend(named);
                    json!({ DISPATCH: workers.keys().collect::<BTreeSet<_>>() })
                }
            };
            executors.insert(name.clone(), value);
        }
        let check = |(name, worker): (&String, &Worker)| {
            (name.clone(), value_of(worker, config.pinned_files.of(&format!("checks.{name}"))))
        };
        Self {
            executors,
            checks: config.checks.iter().map(check).collect(),
            revisions: config.revisions.clone(),
            retry: config.retry,
            timeout_seconds: config.timeout_seconds,
            folder: config.pinned_files.workspace.to_string_lossy().into_owned(),
        }
    }

    /// Adds what an executor stands for, by the name of its [`Definition`].
    pub fn add_executor(&mut self, name: &str, value: Value) {
        if let Some((executor, _)) = name.split_once('/') {
            let dispatch = || json!({ DISPATCH: [] });
            self.executors.entry(executor.to_owned()).or_insert_with(dispatch);
        }
        self.executors.insert(name.to_owned(), value);
    }

    /// Adds the revision of an executor, by the name of its [`Definition`].
    pub fn add_revision(&mut self, name: &str, revision: &str) {
        let executor = name.split_once('/').map_or(name, |(executor, _)| executor);
        self.revisions.insert(executor.to_owned(), revision.to_owned());
    }

    /// Returns what the executor of some work stands for.
    pub fn of_work(&self, work: &Work) -> Result<Definition<'_>, ProblemKind> {
        let unknown = |executor: &str| ProblemKind::UnknownExecutor { executor: executor.to_owned() };
        let mut name = work.executor.clone();
        let mut value = self.executors.get(&name).ok_or_else(|| unknown(&name))?;
        if value.get(DISPATCH).is_some() {
            let inputs = work.inputs.value();
            let Some(worker) = inputs["subagent"].as_str().filter(|name| !name.is_empty()) else {
                return Err(ProblemKind::Missing { field: "work.inputs.subagent".to_owned() });
            };
            name = format!("{name}/{worker}");
            value = self.executors.get(&name).ok_or_else(|| unknown(&name))?;
        }
        let revision = self.revisions.get(&work.executor).map(String::as_str);
        Ok(Definition { role: DefinitionRole::Executor, name, value, revision })
    }

    /// Returns what the program of a check stands for: an executor, or else a check of that name.
    pub fn of_check(&self, check: &Work) -> Result<Definition<'_>, ProblemKind> {
        match self.checks.get(&check.executor) {
            Some(value) if !self.executors.contains_key(&check.executor) => {
                let name = check.executor.clone();
                Ok(Definition { role: DefinitionRole::Check, name, value, revision: None })
            }
            Some(_) | None => self.of_work(check),
        }
    }
}

/// Returns what a worker stands for, with the hashes of the files that it pins.
fn value_of(worker: &Worker, pinned: Option<BTreeMap<String, String>>) -> Value {
    // Texts, numbers, lists and maps with text keys: JSON can represent all of them.
    let mut value = serde_json::to_value(worker).unwrap_or_default();
    // The kind is the only key, and all others are below it.
    let keys = value.as_object_mut().and_then(|kinds| kinds.values_mut().next()?.as_object_mut());
    if let (Some(pinned), Some(keys)) = (pinned, keys) {
        keys.insert(PIN.to_owned(), json!(pinned));
    }
    value
}

/// Hashes a value with a tag before each part, and keys in the order of their bytes.
fn hash_value<'a>(hasher: &'a mut CanonicalHasher, value: &Value) -> &'a mut CanonicalHasher {
    match value {
        Value::Null => hasher.text("null"),
        Value::Bool(flag) => hasher.text("bool").flag(*flag),
        Value::Number(number) => hasher.text("number").text(&number.to_string()),
        Value::String(text) => hasher.text("text").text(text),
        Value::Array(items) => hasher.text("list").list(items.iter(), hash_value),
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            hasher.text("map").list(entries.into_iter(), |hasher, (key, value)| {
                hasher.text(key);
                hash_value(hasher, value)
            })
        }
    }
}
