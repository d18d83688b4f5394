//! Looks for secrets in a plan before it is shared: everybody who can read the repository can read it, for good.

use serde::Serialize;
use waypost_core::{Json, Plan, PlanId, Task, TaskId};
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
    pub field: &'static str,
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

/// Returns what looks like a secret in the texts of a plan.
pub(super) fn secrets_of(plan: &Plan) -> Vec<FoundSecret> {
    let spec = plan.spec();
    let mut texts = vec![
        ("title", spec.title.as_str()),
        ("goal", &spec.goal),
        ("status", &spec.status),
        ("body", &spec.body),
    ];
    texts.extend(spec.foreign.0.values().map(|json| ("foreign", json.as_str())));
    let mut found = secrets_in(plan, None, texts);
    for (task, _) in plan.tasks() {
        found.extend(secrets_in(plan, Some(&task.spec.id), texts_of(task)));
    }
    found
}

fn texts_of(task: &Task) -> Vec<(&'static str, &str)> {
    let (spec, state) = (&task.spec, &task.state);
    let mut texts = vec![("description", spec.description.as_str()), ("notes", &spec.notes)];
    let work = [("work", &spec.work), ("check", &spec.check)].into_iter();
    texts.extend(work.filter_map(|(field, work)| Some((field, work.as_ref()?.inputs.as_str()))));
    let notes = spec.thinking.as_deref();
    texts.extend(notes.and_then(|notes| notes.reasoning.as_deref()).map(|text| ("reasoning", text)));
    texts.extend(spec.foreign.0.values().map(|json| ("foreign", json.as_str())));
    let results = [("result", &state.result), ("error", &state.error), ("reason", &state.reason)].into_iter();
    texts.extend(results.filter_map(|(field, text)| Some((field, text.as_deref()?))));
    texts.extend(state.output.as_ref().map(Json::as_str).map(|text| ("output", text)));
    texts.extend(state.comments().iter().map(|comment| ("comments", comment.text.as_str())));
    texts
}

fn secrets_in(plan: &Plan, task: Option<&TaskId>, texts: Vec<(&'static str, &str)>) -> Vec<FoundSecret> {
    let mut found: Vec<FoundSecret> = Vec::new();
    for (field, text) in texts {
        if let Some(beginning) = secret_in(text) {
            found.push(FoundSecret { plan: plan.id().clone(), task: task.cloned(), field, beginning });
        }
    }
    found.dedup();
    found
}
