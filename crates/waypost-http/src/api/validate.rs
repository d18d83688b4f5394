//! Validation of a text as a plan.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_service::{ServiceError, Subject};

use super::extract::Body;
use super::plans;
use super::response::{Problem, Versioned};
use super::state::{Api, run_blocking};

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
        let problems = api.service.problems(&draft)?;
        if !problems.is_empty() {
            return Err(ServiceError::Invalid { subject: Subject::Text, problems }.into());
        }
        Ok(Versioned::of(json!({ "ok": true, "problems": [] })))
    })
    .await
}
