//! The author's free words for where a document stands, and its end. Neither touches the text.

use serde::Deserialize;
use serde_json::Value;
use waypost_core::{Command, PlanChanges, Refusal};
use waypost_store::{WriteError, WriteRequest};

use super::conflict;
use super::name::{self, Document, Guard, KnownVersion};
use super::read::{self, Fields, Named};
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
    let known = Guard { last_known_version, last_known_revision }.known()?;
    let document = name::find(call, &name)?;
    let changes = PlanChanges { status: Some(status.clone()), ..PlanChanges::default() };
    let version = send(call, &document, &name, Command::RevisePlan(Box::new(changes)), known)?;
    Ok(answer(&name, &status, version))
}

pub(super) fn get(call: &Call) -> Result<Answer, ToolError> {
    let Named { name } = call.arguments()?;
    let document = name::find(call, &name)?;
    Ok(answer(&name, &document.spec.status, document.version))
}

fn answer(name: &str, status: &str, version: u64) -> Answer {
    let mut fields = Fields::new();
    fields.insert("name".to_owned(), name.into());
    fields.insert("status".to_owned(), status.into());
    read::put_version(&mut fields, version);
    Answer::of(Value::Object(fields))
}

pub(super) fn delete(call: &Call) -> Result<Answer, ToolError> {
    let Delete { name, last_known_version, last_known_revision } = call.arguments()?;
    let known = Guard { last_known_version, last_known_revision }.known()?;
    let document = name::find(call, &name)?;
    let version = send(call, &document, &name, Command::Archive, known)?;
    let mut fields = Fields::new();
    fields.insert("deleted".to_owned(), name.into());
    fields.insert("version".to_owned(), version.into());
    Ok(Answer::of(Value::Object(fields)))
}

/// Writes one command; the version then.
fn send(
    call: &Call,
    document: &Document,
    name: &str,
    command: Command,
    known: Option<KnownVersion>,
) -> Result<u64, ToolError> {
    let request = WriteRequest {
        plan: document.id.clone(),
        by: call.by.clone(),
        commands: vec![command],
        known_version: known.map(|known| known.version),
        lease_seconds: None,
    };
    match (call.workspace.plans.write(request), known) {
        (Ok(committed), _) => Ok(committed.version),
        // Somebody has deleted it in this moment.
        (Err(WriteError::Refused(Refusal::Archived {})), _) => Err(name::not_found(name)),
        (Err(WriteError::Conflict(found)), Some(known)) => {
            Err(conflict::version_conflict(call, name, known, &found)?)
        }
        (Err(error), _) => Err(error.into()),
    }
}
