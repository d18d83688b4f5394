//! Validation of a text as a plan.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use waypost_service::{ServiceError, Subject};

use super::extract::Body;
use super::plans;
use super::response::{Reply, Versioned};
use super::state::Api;

/// A text that may be a plan.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    text: String,
    format: Option<String>,
}

/// `POST /validate`
pub(crate) fn validate(api: &Api, Body(text): Body<Text>) -> Reply {
    let (draft, _) = plans::read(Some(text.text), text.format.as_deref(), None)?;
    let problems = api.service.problems(&draft)?;
    if !problems.is_empty() {
        return Err(ServiceError::Invalid { subject: Subject::Text, problems }.into());
    }
    Ok(Versioned::of(json!({ "ok": true, "problems": [] })))
}
