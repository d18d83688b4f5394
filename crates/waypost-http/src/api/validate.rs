//! Whether a text is a valid plan.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::validate as problems_of;
use waypost_service::admission as admit;

use super::extract::Body;
use super::response::{Problem, Versioned};
use super::{Api, plans, run_blocking};

/// A text that may be a plan.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    text: String,
    format: Option<String>,
}

/// `POST /validate`
pub(crate) async fn validate(
    State(api): State<Arc<Api>>,
    Body(text): Body<Text>,
) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, move |api| {
        let draft = plans::read(Some(text.text), text.format.as_deref(), None)?;
        let mut found = problems_of(&draft);
        found.extend(admit::problems(&api.config, &draft));
        if found.is_empty() {
            return Ok(Versioned::of(json!({ "ok": true, "problems": [] })));
        }
        Err(Problem::invalid("the plan is not sound", &found))
    })
    .await
}
