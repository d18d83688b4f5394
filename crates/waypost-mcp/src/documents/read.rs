//! Reading documents: one with its text, one into a file, the list without any text. Writes no plan.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use waypost_core::{PlanId, Timestamp};
use waypost_store::{Query, Sort};

use super::name::{self, Document};
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;
use crate::workspace_files;

/// Documents in one answer.
const LISTED_MAX: usize = 50;
/// Bytes of a text in one answer; a longer one is cut there, and can be exported.
const CONTENT_BYTES_MAX: usize = 256 * 1024;

/// The fields of an answer.
pub(super) type Fields = Map<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToFile {
    name: String,
    path: String,
    #[serde(default)]
    overwrite: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    after: Option<String>,
}

/// A document as it was at a version.
pub(super) fn at(call: &Call, id: &PlanId, version: u64) -> Result<Document, ToolError> {
    let now = call.workspace.plans().with_plan(id, Document::of)?;
    if now.version == version {
        return Ok(now);
    }
    // Others have written since.
    Ok(Document::of(&call.workspace.plans().at_version(id, version)?))
}

/// What every answer about a document says; empty fields are left out, as docker-agent does.
pub(super) fn about(document: &Document) -> Fields {
    let spec = &document.spec;
    let mut fields = Fields::new();
    fields.insert("name".to_owned(), document.id.as_str().into());
    for (name, text) in [("title", &spec.title), ("author", &spec.owner), ("status", &spec.status)] {
        if !text.is_empty() {
            fields.insert(name.to_owned(), text.as_str().into());
        }
    }
    put_version(&mut fields, document.version);
    if let Some(at) = document.updated_at {
        fields.insert("updatedAt".to_owned(), to_the_second(at).into());
    }
    if document.tasks > 0 {
        fields.insert("tasks".to_owned(), document.tasks.into());
    }
    fields
}

/// The version, under the request's name and docker-agent's.
pub(super) fn put_version(fields: &mut Fields, version: u64) {
    fields.insert("version".to_owned(), version.into());
    fields.insert("revision".to_owned(), version.into());
}

fn to_the_second(at: Timestamp) -> String {
    Timestamp::from_micros(at.as_micros().div_euclid(1_000_000) * 1_000_000).to_string()
}

pub(super) fn read(call: &Call) -> Result<Answer, ToolError> {
    let Named { name } = call.arguments()?;
    let document = name::find(call, &name)?;
    let mut answer = about(&document);
    let body = &document.spec.body;
    let shown = waypost_text::head_bytes(body, CONTENT_BYTES_MAX);
    answer.insert("content".to_owned(), shown.into());
    if shown.len() < body.len() {
        answer.insert("bytes".to_owned(), body.len().into());
        answer.insert("cut".to_owned(), "truncated; export_plan_to_file writes all of it".into());
    }
    Ok(Answer::of(Value::Object(answer)))
}

pub(super) fn to_file(call: &Call) -> Result<Answer, ToolError> {
    let ToFile { name, path, overwrite } = call.arguments()?;
    if path.is_empty() {
        return Err(ToolError::new("path must not be empty", ""));
    }
    let document = name::find(call, &name)?;
    let write = if overwrite { workspace_files::write } else { workspace_files::write_new };
    let bytes = write(&call.workspace, &path, &document.spec.body)?;
    let mut answer = about(&document);
    answer.remove("author");
    answer.remove("updatedAt");
    answer.insert("path".to_owned(), path.into());
    answer.insert("bytesWritten".to_owned(), bytes.into());
    Ok(Answer::of(Value::Object(answer)))
}

pub(super) fn list(call: &Call) -> Result<Answer, ToolError> {
    let List { after } = call.arguments()?;
    let query = Query { sort: Sort::Id, limit: LISTED_MAX, after, ..Query::default() };
    let page = call.workspace.page(&query)?;
    let plans: Vec<Value> = page
        .items
        .into_iter()
        .map(|head| {
            let mut fields = Fields::new();
            fields.insert("name".to_owned(), head.id.as_str().into());
            for (name, text) in [("title", head.title), ("author", head.owner), ("status", head.status)] {
                if !text.is_empty() {
                    fields.insert(name.to_owned(), text.into());
                }
            }
            put_version(&mut fields, head.version);
            if let Some(at) = head.updated_at {
                fields.insert("updatedAt".to_owned(), to_the_second(at).into());
            }
            if head.counts.total > 0 {
                fields.insert("tasks".to_owned(), head.counts.total.into());
            }
            Value::Object(fields)
        })
        .collect();
    let mut answer = json!({ "plans": plans });
    if let (Some(next), Some(answer)) = (page.next, answer.as_object_mut()) {
        answer.insert("next".to_owned(), next.into());
        answer.insert("total".to_owned(), page.total.into());
    }
    Ok(Answer::of(answer))
}
