//! Looks for secrets in a plan before it is shared: everybody who can read the repository can read it, for good.

use serde::Serialize;
use serde_json::Value;
use waypost_core::{Plan, PlanId, TaskId};
use waypost_text::secret_in;

/// What becomes of a plan with something that looks like a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretScan {
    /// It is not shared.
    Refuse,
    /// It is shared: a person has looked at it.
    Allow,
}

/// A text that looks as if it held a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundSecret {
    /// The plan.
    pub plan: PlanId,
    /// The task; `None` for the plan itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The field.
    pub field: String,
    /// How the secret begins.
    pub beginning: &'static str,
}

impl std::fmt::Display for FoundSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { plan, task, field, beginning } = self;
        match task {
            Some(task) => write!(f, "{plan}/{task} {field} ({beginning}…)"),
            None => write!(f, "{plan} {field} ({beginning}…)"),
        }
    }
}

/// Returns what looks like a secret in the texts of a plan, whatever they are.
pub(super) fn secrets_of(plan: &Plan) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    let mut look = |task: Option<&TaskId>, part: serde_json::Result<Value>| {
        let Ok(Value::Object(fields)) = part else { return };
        for (field, value) in fields {
            if let Some(beginning) = secret_within(&value) {
                found.push(FoundSecret { plan: plan.id().clone(), task: task.cloned(), field, beginning });
            }
        }
    };
    look(None, serde_json::to_value(plan.spec()));
    look(None, serde_json::to_value(plan.state()));
    for (task, _) in plan.tasks() {
        look(Some(&task.spec.id), serde_json::to_value(&task.spec));
        look(Some(&task.spec.id), serde_json::to_value(&task.state));
    }
    found
}

fn secret_within(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(text) => secret_in(text),
        Value::Array(values) => values.iter().find_map(secret_within),
        Value::Object(fields) => {
            fields.iter().find_map(|(key, value)| secret_in(key).or_else(|| secret_within(value)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
