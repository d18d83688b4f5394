//! The OpenAPI 3.1 document of the API, generated from the documentation of each route. Knows no handler.

use axum::routing::MethodFilter;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// A method: its name in the document, and its filter for the router.
pub(super) type Verb = (&'static str, MethodFilter);
pub(super) const GET: Verb = ("get", MethodFilter::GET);
pub(super) const POST: Verb = ("post", MethodFilter::POST);
pub(super) const PUT: Verb = ("put", MethodFilter::PUT);
pub(super) const PATCH: Verb = ("patch", MethodFilter::PATCH);
pub(super) const DELETE: Verb = ("delete", MethodFilter::DELETE);

/// The body of a successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// JSON of this schema.
    Json(&'static str),
    /// JSON of this schema, with status 201.
    Made(&'static str),
    /// A page of JSON, or a stream of events.
    Events(&'static str),
    /// Plain text.
    Text,
}

/// The documentation of a route.
#[derive(Clone, Debug)]
pub(super) struct RouteDoc {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    summary: &'static str,
    answer: Answer,
    parameters: Option<Schema>,
    body: Option<Schema>,
    /// Request headers that the route reads.
    headers: &'static [&'static str],
}

impl RouteDoc {
    pub(super) fn new(verb: Verb, path: &'static str, summary: &'static str, answer: Answer) -> Self {
        Self { verb, path, summary, answer, parameters: None, body: None, headers: &[] }
    }

    pub(super) fn query<T: JsonSchema>(self) -> Self {
        Self { parameters: Some(schema::<T>()), ..self }
    }

    pub(super) fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(schema::<T>()), ..self }
    }

    pub(super) fn headers(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }
}

/// Generates the schema of a request, with all subschemas inlined.
fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>()
}

pub(super) fn get(path: &'static str, summary: &'static str, shape: &'static str) -> RouteDoc {
    RouteDoc::new(GET, path, summary, Answer::Json(shape))
}

/// Generates the document of these routes.
pub(super) fn document(routes: &[RouteDoc]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.verb.0] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Waypost",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Plans that agents write, people approve and machines run. The version of a plan is its ETag: \
                send it as If-Match, and the write is refused (412) if the plan has changed since.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }, { "cookie": [], "session": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "waypost_session_PORT" },
                "session": { "type": "apiKey", "in": "header", "name": "x-waypost-session" },
            },
            "schemas": shapes(),
        },
    })
}

fn operation(route: &RouteDoc) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": path_schema(name) }));
    }
    parameters.extend(query(route));
    for name in route.headers {
        parameters.push(json!({ "name": name, "in": "header", "schema": { "type": "string" } }));
    }
    let name: String =
        route.path.split('/').filter(|part| !part.starts_with('{')).collect::<Vec<_>>().join("_");
    let one = if route.path.ends_with('}') { "_one" } else { "" };
    let mut value = json!({
        "operationId": format!("{}{name}{one}", route.verb.0).replace('.', "_"),
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses(route),
    });
    if let Some(body) = &route.body {
        let content = json!({ "application/json": { "schema": body } });
        value["requestBody"] = json!({ "content": content });
    }
    value
}

fn path_schema(name: &str) -> Value {
    match name {
        "version" => json!({ "type": "integer", "minimum": 1 }),
        _ => json!({ "type": "string", "minLength": 1 }),
    }
}

/// Returns the query parameters: the fields of the type that they are parsed into.
fn query(route: &RouteDoc) -> Vec<Value> {
    let Some(schema) = route.parameters.as_ref().map(|schema| schema.as_value()) else { return Vec::new() };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().into_iter().flatten();
    let parameter = |(name, field): (&String, &Value)| {
        let mut field = field.clone();
        // An omitted parameter is absent, never null.
        if let Some(kinds) = field["type"].as_array().cloned() {
            field["type"] = kinds.into_iter().find(|kind| kind != "null").unwrap_or_default();
        }
        let is_required = required.contains(&name.as_str());
        json!({ "name": name, "in": "query", "required": is_required, "schema": field })
    };
    fields.map(parameter).collect()
}

fn responses(route: &RouteDoc) -> Value {
    let json_of = |shape: &str| json!({ "schema": { "$ref": format!("#/components/schemas/{shape}") } });
    let (status, content) = match route.answer {
        Answer::Json(shape) => ("200", json!({ "application/json": json_of(shape) })),
        Answer::Made(shape) => ("201", json!({ "application/json": json_of(shape) })),
        Answer::Events(shape) => (
            "200",
            json!({
                "text/event-stream": { "schema": { "type": "string" } },
                "application/json": json_of(shape),
            }),
        ),
        Answer::Text => ("200", json!({ "*/*": { "schema": { "type": "string" } } })),
    };
    let mut value = json!({
        status: { "description": route.summary, "content": content },
        "default": {
            "description": "Request failed",
            "content": { "application/problem+json": json_of("Problem") },
        },
    });
    if route.headers.contains(&"If-None-Match") {
        value["304"] = json!({ "description": "Not modified" });
    }
    value
}

/// An object with these fields; later versions may add others.
fn object(required: &[&str], fields: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": fields })
}

/// A list under a name. `next` is the cursor of the next page; `warnings` name files of the store that are damaged.
fn list(name: &str, of: &Value) -> Value {
    let fields = json!({
        name: { "type": "array", "items": of },
        "total": { "type": "integer" },
        "next": { "type": ["string", "null"] },
        "warnings": { "type": "array", "items": { "type": "string" } },
    });
    object(&[name], fields)
}

fn shapes() -> Value {
    let (text, number, any) = (json!({ "type": "string" }), json!({ "type": "integer" }), json!({}));
    let version = json!({ "version": number });
    let head = json!({ "$ref": "#/components/schemas/Head" });
    let head_fields = json!({
        "id": text, "version": number, "title": text, "phase": text, "status": text, "owner": text,
        "queue": text, "counts": { "$ref": "#/components/schemas/Counts" }, "asking": number, "goals": number, "atomic": number,
        "document": { "type": "boolean" },
        "state": object(&["name", "label", "detail", "needs_you"], json!({
            "name": text, "label": text, "detail": text, "needs_you": { "type": "boolean" } })),
    });
    let me = json!({
        "actor": text, "role": text, "version": text, "store": text, "worker": { "type": "boolean" },
        "workspace": text, "untrusted": { "type": ["string", "null"] },
    });
    json!({
        "Any": any,
        "Problem": object(&["type", "title", "status", "code", "detail"], json!({
            "type": text, "title": text, "status": number, "code": text, "detail": text, "hint": text,
            "facts": { "type": "object" },
            "problems": { "type": "array", "items": object(&["message"], json!({
                "task": text, "message": text, "hint": text })) },
            "conflict": object(&["known", "current"], json!({
                "known": number, "current": number, "differences": { "type": "array" },
                "differences_total": number, "writers": { "type": "array" } })),
        })),
        "Me": object(&["actor", "role", "version", "store", "worker", "workspace"], me),
        "Head": object(&["id", "version", "title", "phase"], head_fields),
        "Counts": object(&["total", "ready", "blocked", "queued", "running", "done", "failed", "skipped", "cancelled"], json!({
            "total": number, "ready": number, "blocked": number, "reported": number, "asking": number, "held": number,
            "queued": number, "running": number, "done": number, "failed": number, "skipped": number,
            "cancelled": number })),
        "PlanPage": list("plans", &head),
        "Plan": { "allOf": [head, object(&["approval", "questions", "running", "failed"], json!({}))] },
        "Written": object(&["id", "version"], json!({
            "id": text, "version": number, "changed": { "type": "boolean" },
            "warnings": { "type": "array", "items": text },
            "notes": { "type": "array", "items": text }, "added": { "type": "array", "items": text },
            "changes": { "type": "object" }, "again": { "type": "array", "items": text },
            "approval_voided": { "type": "boolean" }, "awaits_approval": { "type": "boolean" } })),
        "Validity": object(&["ok", "problems"], json!({ "ok": { "type": "boolean" }, "problems": { "type": "array" } })),
        "Approval": object(&["required", "standing", "problems"], json!({
            "standing": text,
            "start_refusals": { "type": "array", "items": object(&["worker", "reason", "message"], json!({
                "worker": text, "reason": text, "message": text, "hint": text })) } })),
        "Preview": object(&["plan", "version", "digest", "total", "definitions", "groups"], json!({
            "version": number, "digest": text, "groups": { "type": "array" } })),
        "Graph": object(&["version", "count", "ids", "standing", "from", "to"], version.clone()),
        "Timeline": object(&["version", "rows"], version),
        "History": object(&["versions"], json!({ "versions": { "type": "array" } })),
        "Differences": object(&["differences", "differences_total"], json!({
            "differences_total": number, "restore": { "type": "object" } })),
        "Taken": object(&["task"], json!({
            "plan": text, "version": number, "task": { "type": ["object", "null"] }, "lease_seconds": number,
            "reasons": { "type": "array", "items": text } })),
        "TaskPage": list("tasks", &object(&["id", "description", "standing"], json!({
            "id": text, "standing": text, "waits_for": { "type": "array", "items": text } }))),
        "Task": object(&["id", "standing", "attempts", "why"], json!({ "id": text, "standing": text })),
        "EventPage": object(&["events", "cursor", "more"], json!({ "events": { "type": "array" }, "cursor": text })),
        "Workers": list("workers", &object(&["name", "state", "running"], json!({ "name": text }))),
        "Agents": list("agents", &object(&["name", "plans", "running"], json!({ "name": text }))),
        "Inbox": object(&["items", "total", "totals", "plans_total", "running", "running_total", "more"], json!({
            "items": { "type": "array", "items": object(&["kind", "plan", "plan_title", "version", "text"], json!({
                "kind": text, "plan": text, "plan_title": text, "version": number, "text": text, "error": text,
                "tasks": { "type": "array", "items": text }, "tasks_total": number, "holds_up": number,
                "choices": { "type": "array", "items": text } })) },
            "total": number, "totals": { "type": "object" }, "plans_total": number,
            "running": { "type": "array" }, "running_total": number,
            "more": { "type": "boolean" } })),
        "Queues": list("queues", &object(&["name", "concurrency"], json!({ "name": text, "concurrency": number }))),
        "Executors": list("executors", &object(&["name", "kind"], json!({ "name": text, "kind": text }))),
    })
}
