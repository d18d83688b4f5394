//! The OpenAPI 3.1 document of the API, generated from the documentation of each route. Knows no handler.

use axum::routing::MethodFilter;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::ReplaceBoolSchemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::response_schemas::response_schemas;

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
    /// JSON of this schema, or 204 without a body.
    JsonOrNothing(&'static str),
    /// A page of JSON, or a stream of events.
    Events(&'static str),
    /// A text in one of these media types. The first one is a text, so that generated clients return it as it is.
    Text(&'static [&'static str]),
}

/// Generates the schema of a type, and adds those that it refers to to the components of the document.
type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// The documentation of a route.
#[derive(Clone, Debug)]
pub(super) struct RouteDoc {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    /// The name of the operation, which is the name of a function in generated clients.
    operation: &'static str,
    summary: &'static str,
    answer: Answer,
    parameters: Option<MakeSchema>,
    body: Option<MakeSchema>,
    /// Request headers that the route reads.
    headers: &'static [&'static str],
    /// The values of the last part of the path.
    actions: &'static [&'static str],
}

impl RouteDoc {
    pub(super) fn new(
        verb: Verb,
        path: &'static str,
        operation: &'static str,
        summary: &'static str,
        answer: Answer,
    ) -> Self {
        let (parameters, body) = (None, None);
        Self { verb, path, operation, summary, answer, parameters, body, headers: &[], actions: &[] }
    }

    pub(super) fn query<T: JsonSchema>(self) -> Self {
        Self { parameters: Some(T::json_schema), ..self }
    }

    pub(super) fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(SchemaGenerator::subschema_for::<T>), ..self }
    }

    pub(super) fn headers(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }

    pub(super) fn actions(self, actions: &'static [&'static str]) -> Self {
        Self { actions, ..self }
    }
}

/// The generator of request schemas. Programs that generate clients do not read schemas that are `true` or `false`.
fn generator() -> SchemaGenerator {
    let mut no_bool_schemas = ReplaceBoolSchemas::default();
    no_bool_schemas.skip_additional_properties = true;
    let settings = SchemaSettings::draft2020_12().with_transform(no_bool_schemas).with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    settings.into_generator()
}

pub(super) fn get(
    path: &'static str,
    operation: &'static str,
    summary: &'static str,
    shape: &'static str,
) -> RouteDoc {
    RouteDoc::new(GET, path, operation, summary, Answer::Json(shape))
}

/// Generates the document of these routes.
pub(super) fn document(routes: &[RouteDoc]) -> Value {
    let mut generator = generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.verb.0] = operation(route, &mut generator);
    }
    let mut schemas = response_schemas();
    schemas.extend(generator.take_definitions(true));
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
            "schemas": schemas,
        },
    })
}

fn operation(route: &RouteDoc, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        let schema = match name {
            "version" => json!({ "type": "integer", "minimum": 1 }),
            "action" => json!({ "type": "string", "enum": route.actions }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    parameters.extend(route.parameters.map(|make| query(make(generator).as_value())).unwrap_or_default());
    for name in route.headers {
        parameters.push(json!({ "name": name, "in": "header", "schema": { "type": "string" } }));
    }
    let mut value = json!({
        "operationId": route.operation,
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses(route),
    });
    if let Some(body) = route.body {
        let content = json!({ "application/json": { "schema": body(generator) } });
        value["requestBody"] = json!({ "content": content });
    }
    value
}

/// Returns the query parameters: the fields of the type that they are parsed into.
fn query(schema: &Value) -> Vec<Value> {
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
        Answer::Json(shape) | Answer::JsonOrNothing(shape) => {
            ("200", json!({ "application/json": json_of(shape) }))
        }
        Answer::Made(shape) => ("201", json!({ "application/json": json_of(shape) })),
        Answer::Events(shape) => (
            "200",
            json!({
                "application/json": json_of(shape),
                "text/event-stream": { "schema": { "type": "string" } },
            }),
        ),
        Answer::Text(kinds) => {
            let text = |kind: &&str| ((*kind).to_owned(), json!({ "schema": { "type": "string" } }));
            ("200", Value::Object(kinds.iter().map(text).collect()))
        }
    };
    let mut value = json!({
        status: { "description": route.summary, "content": content },
        "default": {
            "description": "Request failed",
            "content": { "application/problem+json": json_of("Problem") },
        },
    });
    if matches!(route.answer, Answer::JsonOrNothing(_)) {
        value["204"] = json!({ "description": "Done; nothing is left to describe" });
    }
    if route.headers.contains(&"If-None-Match") {
        value["304"] = json!({ "description": "Not modified" });
    }
    value
}
