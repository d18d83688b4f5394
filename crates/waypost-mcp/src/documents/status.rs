//! Sets and reads the free-text status of a document, and archives it. Neither touches the text.

use serde::Deserialize;
use serde_json::json;
use waypost_core::{PlanChanges, Refusal};
use waypost_service::{EditOp, Guard, ServiceError};

use super::conflict;
use super::name::{self, Document, KnownVersion, LastKnown};
use super::read::Named;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    name: String,
    status: String,
    last_known_version: Option<u64>,
    last_known_revision: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delete {
    name: String,
    last_known_version: Option<u64>,
    last_known_revision: Option<u64>,
}

pub(super) fn set(call: &Call) -> Result<Answer, ToolError> {
    let Set { name, status, last_known_version, last_known_revision } = call.arguments()?;
    if status.is_empty() {
        return Err(ToolError::new("status must not be empty", ""));
    }
    let known = LastKnown { last_known_version, last_known_revision }.known()?;
    let document = name::find(call, &name)?;
    let changes = PlanChanges { status: Some(status.clone()), ..PlanChanges::default() };
    let version = send(call, &document, &name, EditOp::RevisePlan(Box::new(changes)), known)?;
    Ok(answer(&name, &status, version + document.offset))
}

pub(super) fn get(call: &Call) -> Result<Answer, ToolError> {
    let Named { name } = call.arguments()?;
    let document = name::find(call, &name)?;
    Ok(answer(&name, &document.spec.status, document.revision()))
}

fn answer(name: &str, status: &str, version: u64) -> Answer {
    Answer::of(json!({ "name": name, "status": status, "version": version, "revision": version }))
}

pub(super) fn delete(call: &Call) -> Result<Answer, ToolError> {
    let Delete { name, last_known_version, last_known_revision } = call.arguments()?;
    let known = LastKnown { last_known_version, last_known_revision }.known()?;
    let document = name::find(call, &name)?;
    let version = send(call, &document, &name, EditOp::SetArchived(true), known)?;
    Ok(Answer::of(json!({ "deleted": name, "version": version + document.offset })))
}

/// Writes one operation and returns the new version.
fn send(
    call: &Call,
    document: &Document,
    name: &str,
    op: EditOp,
    known: Option<KnownVersion>,
) -> Result<u64, ToolError> {
    let guard = Guard::from(known.map(|known| document.version_of(known.version)));
    match (call.service().edit(&call.caller, &document.id, vec![op], guard), known) {
        (Ok(written), _) => Ok(written.version),
        // Another caller deleted it in the meantime.
        (Err(ServiceError::Refused(Refusal::Archived { .. })), _) => Err(name::not_found(name)),
        (Err(ServiceError::Conflict(found)), Some(known)) => {
            Err(conflict::version_conflict(call, name, known, &found)?)
        }
        (Err(error), _) => Err(error.into()),
    }
}
