//! Validation of a text as a plan.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use waypost_service::{ServiceError, Subject};

use super::extract::Body;
use super::plans;
use super::response::{Reply, Versioned};
use super::state::Api;
use super::tasks;

/// Maximum number of tasks that an answer lists, so that their author sees how the text is understood.
const TASKS_SHOWN_MAX: usize = 200;
/// Maximum width of a description in it, in columns.
const LABEL_COLUMNS_MAX: usize = 200;

/// A text that may be a plan.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanText {
    text: String,
    format: Option<String>,
}

/// `POST /validate`
pub(crate) fn validate(api: &Api, Body(text): Body<PlanText>) -> Reply {
    let (draft, notes) = plans::read(Some(text.text), text.format.as_deref(), None)?;
    let problems = api.service.problems(&draft)?;
    if !problems.is_empty() {
        return Err(ServiceError::Invalid { subject: Subject::Text, problems }.into());
    }
    let rows = draft.tasks.iter().take(TASKS_SHOWN_MAX).map(|task| {
        let spec = &task.spec;
        let executor = spec.work.as_ref().map(|work| &work.executor);
        let description = tasks::label(task, LABEL_COLUMNS_MAX);
        json!({
            "id": spec.id, "description": description, "depends_on": spec.depends_on, "parent": spec.parent,
            "status": task.state.status, "executor": executor,
        })
    });
    let understood = json!({
        "ok": true, "problems": [], "notes": notes, "title": draft.spec.title, "total": draft.tasks.len(),
        "tasks": rows.collect::<Vec<_>>(),
    });
    Ok(Versioned::of(understood))
}
