//! What the name of an executor or a check stands for, as a value that can be shown, compared and hashed.
//!
//! All keys are in it, defaults filled in; of secrets the names and where they are read, never the values. A key that is added to
//! an executor later is in it too, and so asks for approval again where it is used.

use serde_json::Value;
use waypost_core::canonical::{CanonicalHasher, Hash};
use waypost_core::{ProblemKind, Work};

use crate::resolve::{ResolvedWork, resolve, resolve_check};
use crate::settings::{Config, Executor};

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
        let mut hasher = CanonicalHasher::new("definition", 1);
        hasher.text(self.role).text(&self.name);
        hash_value(&mut hasher, &self.value);
        hasher.finish()
    }
}

impl Config {
    /// What the executor of some work stands for.
    pub fn executor_definition(&self, work: &Work) -> Result<Definition, ProblemKind> {
        let worker = match self.executors.get(&work.executor) {
            Some(Executor::Dispatch(_)) => work.inputs.value()["subagent"].as_str().map(str::to_owned),
            Some(Executor::Noop | Executor::Human | Executor::Worker(_)) | None => None,
        };
        let name =
            worker.map_or_else(|| work.executor.clone(), |worker| format!("{}/{worker}", work.executor));
        Ok(Definition { role: "executor", name, value: value_of(resolve(self, work)?) })
    }

    /// What the program of a check stands for: an executor, or else a check of that name.
    pub fn check_definition(&self, check: &Work) -> Result<Definition, ProblemKind> {
        if self.executors.contains_key(&check.executor) {
            return self.executor_definition(check);
        }
        let value = value_of(resolve_check(self, check)?);
        Ok(Definition { role: "check", name: check.executor.clone(), value })
    }
}

fn value_of(work: ResolvedWork<'_>) -> Value {
    match work {
        ResolvedWork::Noop => Value::from("noop"),
        ResolvedWork::Human => Value::from("human"),
        // Texts, numbers, lists and maps with text keys: JSON can hold them all.
        ResolvedWork::Worker(worker) => serde_json::to_value(worker).unwrap_or_default(),
    }
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
