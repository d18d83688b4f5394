//! Reads documents: one with its text, one into a file, or the list without texts. Writes no plan.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use waypost_core::{PlanId, Timestamp};
use waypost_formats::plan_document::to_the_second;
use waypost_store::{Query, Sort};

use super::name::{self, Document};
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum number of documents in a reply.
const LISTED_MAX: usize = 50;
/// Maximum bytes of text in a reply. A longer text is truncated there; it can be exported in full.
const CONTENT_BYTES_MAX: usize = 256 * 1024;

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

/// Returns a document as it was at a version.
pub(super) fn at(call: &Call, id: &PlanId, version: u64) -> Result<Document, ToolError> {
    let now = call.workspace.plans().with_plan(id, Document::of)?;
    if now.version == version {
        return Ok(now);
    }
    // Others have written since.
    Ok(Document::of(&call.workspace.plans().at_version(id, version)?))
}

/// The fields that every reply about a document has.
pub(super) fn about(document: &Document) -> Fields {
    let Document { id, spec, updated_at, tasks, .. } = document;
    fields(id, [&spec.title, &spec.owner, &spec.status], document.revision(), *updated_at, *tasks)
}

/// Omits empty fields, like docker-agent.
fn fields(
    id: &PlanId,
    texts: [&String; 3],
    version: u64,
    updated_at: Option<Timestamp>,
    tasks: usize,
) -> Fields {
    let mut fields = Fields::new();
    fields.insert("name".to_owned(), id.as_str().into());
    for (name, text) in ["title", "author", "status"].into_iter().zip(texts) {
        if !text.is_empty() {
            fields.insert(name.to_owned(), text.as_str().into());
        }
    }
    fields.insert("version".to_owned(), version.into());
    // docker-agent's name for the version.
    fields.insert("revision".to_owned(), version.into());
    if let Some(at) = updated_at {
        fields.insert("updatedAt".to_owned(), to_the_second(at).into());
    }
    if tasks > 0 {
        fields.insert("tasks".to_owned(), tasks.into());
    }
    fields
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
    let bytes = call.files().write(&path, &document.spec.body, overwrite)?;
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
    let mut plans = Vec::with_capacity(page.items.len());
    for head in &page.items {
        let texts = [&head.title, &head.owner, &head.status];
        let offset = call.view(&head.id, |plan, _| Document::of(plan).offset).unwrap_or_default();
        plans.push(fields(
            &head.id,
            texts,
            head.version + offset,
            head.updated_at,
            head.counts.total as usize,
        ));
    }
    let mut answer = json!({ "plans": plans });
    if let Some(next) = page.next {
        answer["next"] = next.into();
        answer["total"] = page.total.into();
    }
    if !page.warnings.is_empty() {
        answer["warnings"] = page.warnings.into();
    }
    Ok(Answer::of(answer))
}
