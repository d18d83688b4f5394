//! The OpenAPI document as programs that generate clients read it, and the replies that it promises them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use waypost_http::openapi;

use crate::api::Desk;

/// Calls `visit` with each schema and its place.
fn each_schema(value: &Value, place: &str, visit: &mut impl FnMut(&str, &Value)) {
    let below = |name: &str| format!("{place}/{name}");
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match name.as_str() {
                    "schema" | "items" => visit(&below(name), inner),
                    "properties" | "schemas" => {
                        for (field, schema) in inner.as_object().into_iter().flatten() {
                            visit(&below(field), schema);
                        }
                    }
                    "oneOf" | "anyOf" | "allOf" => {
                        for schema in inner.as_array().into_iter().flatten() {
                            visit(&below(name), schema);
                        }
                    }
                    _ => {}
                }
                each_schema(inner, &below(name), visit);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_schema(item, place, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn no_schema_is_true_or_false_which_generators_refuse() {
    let (mut seen, mut wrong) = (0, Vec::new());
    each_schema(&openapi(), "", &mut |place, schema| {
        seen += 1;
        if !schema.is_object() {
            wrong.push(format!("{place}: {schema}"));
        }
    });
    assert!(seen > 300, "{seen}");
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn every_reference_leads_to_a_component_and_every_component_is_used() {
    let document = openapi();
    let components: BTreeSet<String> =
        document["components"]["schemas"].as_object().unwrap().keys().cloned().collect();
    let text = document.to_string();
    let references: BTreeSet<String> = text
        .split("\"#/components/schemas/")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    assert_eq!(references, components);
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap().values();
    let names: Vec<&str> = paths
        .flat_map(|path| path.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    assert!(names.contains(&"claim_next_task"), "{names:?}");
}

#[test]
fn the_actions_of_the_document_are_those_that_the_server_knows() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let document = openapi();
    for (path, concrete) in [
        ("/plans/{plan}/actions/{action}", "/plans/p/actions/"),
        ("/plans/{plan}/tasks/{task}/actions/{action}", "/plans/p/tasks/a/actions/"),
    ] {
        let parameters = &document["paths"][format!("/api/v1{path}")]["post"]["parameters"];
        let action = parameters.as_array().unwrap().iter().find(|one| one["name"] == "action").unwrap();
        let actions = action["schema"]["enum"].as_array().unwrap();
        assert!(actions.len() > 10, "{actions:?}");
        for action in actions.iter().chain([&json!("dance")]) {
            let action = action.as_str().unwrap();
            let answer = desk.post(&format!("{concrete}{action}"), &json!({}));
            let is_unknown = answer.text.contains("unknown action");
            assert_eq!(is_unknown, action == "dance", "{answer:?}");
        }
    }
}

/// Whether a reply fits the schema of this operation.
#[track_caller]
fn fits(document: &Value, path: &str, method: &str, reply: &Value) {
    let operation = &document["paths"][format!("/api/v1{path}")][method];
    let responses = operation["responses"].as_object().unwrap();
    let found = responses.iter().find(|(status, _)| status.starts_with('2'));
    let (_, response) = found.unwrap_or_else(|| panic!("{method} {path} has no response"));
    let mut schema = response["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(reply).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, [""; 0], "{method} {path}: {reply}");
}

#[test]
fn replies_are_as_the_document_says() {
    let desk = Desk::new();
    let document = openapi();
    let plan = json!({ "format": "waypost/1", "title": "P", "goal": "g", "tasks": [
        { "id": "a", "description": "first", "notes": "n", "complexity": "low", "tools": ["Read"], "priority": 3 },
        { "id": "b", "description": "second", "depends_on": ["a"] },
        { "id": "gate", "description": "deploy?", "work": { "executor": "human" } },
    ] });
    let check = |path: &str, method: &str, reply: &Value| fits(&document, path, method, reply);
    check("/plans", "post", &desk.post("/plans", &json!({ "id": "p", "plan": plan })).ok());
    check("/plans/{plan}/actions/{action}", "post", &desk.post("/plans/p/actions/start", &json!({})).ok());
    let claimed = desk.post("/next", &json!({ "plan": "p" })).ok();
    assert_eq!(claimed["task"]["id"], "a");
    check("/next", "post", &claimed);
    let task = "/plans/p/tasks/a/actions";
    let report = json!({ "progress": "half" });
    let action = "/plans/{plan}/tasks/{task}/actions/{action}";
    check(action, "post", &desk.post(&format!("{task}/progress"), &report).ok());
    check("/plans/{plan}", "get", &desk.get("/plans/p").ok());
    let question = json!({ "question": "which?", "choices": ["this", "that"] });
    check(action, "post", &desk.post(&format!("{task}/ask"), &question).ok());
    for (path, concrete) in [
        ("/me", "/me"),
        ("/next", "/next"),
        ("/inbox", "/inbox"),
        ("/conflicts", "/conflicts"),
        ("/plans/{plan}/conflicts", "/plans/p/conflicts"),
        ("/workers", "/workers"),
        ("/agents", "/agents"),
        ("/queues", "/queues"),
        ("/executors", "/executors"),
        ("/plans", "/plans"),
        ("/plans/{plan}", "/plans/p"),
        ("/plans/{plan}/approval", "/plans/p/approval"),
        ("/plans/{plan}/preview", "/plans/p/preview"),
        ("/plans/{plan}/graph", "/plans/p/graph"),
        ("/plans/{plan}/timeline", "/plans/p/timeline"),
        ("/plans/{plan}/history", "/plans/p/history"),
        ("/plans/{plan}/diff", "/plans/p/diff?from=1"),
        ("/plans/{plan}/tasks", "/plans/p/tasks"),
        ("/plans/{plan}/tasks/{task}", "/plans/p/tasks/a"),
        ("/plans/{plan}/tasks/{task}", "/plans/p/tasks/b"),
        ("/plans/{plan}/tasks/{task}", "/plans/p/tasks/gate"),
        ("/plans/{plan}/tasks/{task}/commits", "/plans/p/tasks/a/commits"),
        ("/plans/{plan}/tasks/{task}/log/times", "/plans/p/tasks/a/log/times"),
        ("/events", "/events?newest=100"),
    ] {
        check(path, "get", &desk.get(concrete).ok());
    }
    let edit = json!({ "operations": [{ "op": "add", "task": { "description": "third" } }] });
    check("/plans/{plan}/edits", "post", &desk.post("/plans/p/edits", &edit).ok());
    check("/next", "post", &desk.post("/next", &json!({ "queue": "elsewhere" })).ok());
    let answered = desk.answer("p", "a", "this").ok();
    check(action, "post", &answered);
    let done = json!({ "output": { "n": 1 }, "result": "r" });
    desk.post("/next", &json!({ "plan": "p" })).ok();
    check(action, "post", &desk.post(&format!("{task}/done"), &done).ok());
    check("/plans/{plan}/tasks/{task}", "get", &desk.get("/plans/p/tasks/a").ok());
    check("/plans/{plan}/tasks/{task}", "get", &desk.get("/plans/p/tasks/b").ok());
    let text = json!({ "text": "# T\n\n- [ ] one\n" });
    check("/validate", "post", &desk.post("/validate", &text).ok());
}
