//! A few tools for everything, made for small contexts: answers are small whatever the size of the plan.

use serde::Deserialize;
use serde_json::json;
use waypost_store::Query;

use crate::call::Call;
use crate::refused::Refused;
use crate::tool::{Answer, Effect, Tool};

/// Plans in one answer.
const PLANS_PAGE: usize = 20;

pub(crate) fn tools() -> Vec<Tool> {
    vec![Tool {
        name: "plan_list",
        description: "List plans, the latest first.",
        arguments: r#"{"type":"object","properties":{"after":{"type":"string"}}}"#,
        answer: r#"{"type":"object"}"#,
        effect: Effect::Reads,
        run: list,
    }]
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    after: Option<String>,
}

fn list(call: &Call) -> Result<Answer, Refused> {
    let asked: List = call.arguments()?;
    let page =
        call.workspace.plans.heads(&Query { limit: PLANS_PAGE, after: asked.after, ..Query::default() })?;
    let plans: Vec<_> = page.items.iter().map(|head| json!({ "id": head.id, "title": head.title })).collect();
    Ok(Answer::of(json!({ "plans": plans })))
}
