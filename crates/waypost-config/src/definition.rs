//! What the name of an executor or a check stands for, as a value that can be shown, compared and hashed.
//!
//! All keys are in it, defaults filled in; of secrets the names and where they are read, never the values. A key that is added to
//! an executor later is in it too, and so asks for approval again where it is used.

use serde_json::Value;
use waypost_core::canonical::{CanonicalHasher, Hash};

use crate::{Config, Executor, Worker};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// `executor` or `check`.
    pub role: &'static str,
    /// The name; `executor/worker` where an executor chooses among several by the inputs of a task.
    pub name: String,
    /// All that is configured for it.
    pub value: Value,
}

impl Definition {
    /// The hash by which an approval binds it.
    pub fn hash(&self) -> Hash {
        let mut hasher = CanonicalHasher::new("waypost/definition/1");
        hasher.text(self.role).text(&self.name);
        hash_value(&mut hasher, &self.value);
        hasher.finish()
    }
}

impl Config {
    /// What the executor of some work stands for; nothing where no executor has that name.
    pub fn executor_definition(&self, executor: &str, inputs: &waypost_core::Json) -> Option<Definition> {
        let (name, value) = match self.executors.get(executor)? {
            Executor::Dispatch(workers) => {
                let inputs = inputs.value();
                let worker = inputs.get("subagent")?.as_str()?;
                (format!("{executor}/{worker}"), value_of(workers.get(worker)?))
            }
            Executor::Worker(worker) => (executor.to_owned(), value_of(worker)),
            Executor::Noop => (executor.to_owned(), Value::from("noop")),
            Executor::Human => (executor.to_owned(), Value::from("human")),
        };
        Some(Definition { role: "executor", name, value })
    }

    /// What the program of a check stands for: an executor, or else a check of that name.
    pub fn check_definition(&self, check: &waypost_core::Work) -> Option<Definition> {
        if self.executors.contains_key(&check.executor) {
            return self.executor_definition(&check.executor, &check.inputs);
        }
        let value = value_of(self.checks.get(&check.executor)?);
        Some(Definition { role: "check", name: check.executor.clone(), value })
    }
}

fn value_of(worker: &Worker) -> Value {
    // Texts, numbers, lists and maps with text keys: JSON can hold them all.
    serde_json::to_value(worker).unwrap_or_default()
}

/// A tag before each value, and keys in the order of their bytes.
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
