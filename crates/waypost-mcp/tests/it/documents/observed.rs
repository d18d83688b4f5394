//! docker-agent's calls, again: what was observed there, and calls of our own in the same form. What differs on purpose
//! stands in `expected` below and in `docs/plan-documents.md`.

use std::path::Path;

use serde_json::{Map, Value};
use waypost_mcp::Toolset;
use waypost_testkit::observed_data;

use crate::session::World;

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Calls every tool as it was called, and compares with what was answered.
fn check(calls: &Value) {
    let world = World::new();
    let session = world.session(Toolset::Plans, "planner");
    // Any name may be written there.
    let place = world.folder().join(".waypost/files").display().to_string();
    for (number, call) in calls.as_array().unwrap().iter().enumerate() {
        let tool = call["tool"].as_str().unwrap();
        let arguments = serde_json::from_str(&call["args"].to_string().replace("$DATA", &place)).unwrap();
        let told = session.ask(tool, arguments);
        let at = format!("call {number}, {tool} {}", call["args"]);
        assert_eq!(told.is_error, call["is_error"].as_bool().unwrap(), "{at}: {}", told.text);
        let output = call["output"].as_str().unwrap().replace("$DATA", &place);
        if told.is_error {
            let words = expected_words(&output);
            assert!(told.text.starts_with(&words), "{at}\n  there: {words}\n  here:  {}", told.text);
        } else {
            let told = serde_json::from_str(&told.text).unwrap();
            assert_eq!(ours(told), theirs(tool, serde_json::from_str(&output).unwrap()), "{at}");
        }
    }
}

/// Two of their texts say the same in other words.
fn expected_words(output: &str) -> String {
    match output.strip_prefix("plan not found: ") {
        Some(name) => format!("plan {name} not found"),
        None => output.to_owned(),
    }
}

/// Their answer without times, and without the text that was sent in.
fn theirs(tool: &str, mut answer: Map<String, Value>) -> Map<String, Value> {
    answer.remove("updatedAt");
    if matches!(tool, "write_plan" | "update_plan_from_file") {
        answer.remove("content");
    }
    answer.sort_keys();
    answer
}

/// Our answer without times, and without what we say besides.
fn ours(mut answer: Map<String, Value>) -> Map<String, Value> {
    if let Some(revision) = answer.get("revision") {
        assert_eq!(answer.get("version"), Some(revision));
    }
    for more in ["version", "updatedAt", "bytes", "changed", "created"] {
        answer.remove(more);
    }
    answer.sort_keys();
    answer
}

#[test]
fn observed_calls_of_docker_agent_are_answered_alike() {
    let Some(data) = observed_data() else {
        println!("the observed data is not beside this checkout; the fixture covers the same shapes");
        return;
    };
    let calls = json_of(&data.join("docker-agent/tool_calls.json"));
    assert!(calls.as_array().unwrap().len() > 20);
    check(&calls);
}

#[test]
fn calls_of_the_same_form_are_answered_alike() {
    check(&json_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/documents/calls.json")));
}

/// Names and parameters as docker-agent has them, but for `last_known_version`.
#[test]
fn tools_have_the_names_parameters_and_hints_of_docker_agent() {
    let path = match observed_data() {
        Some(data) => data.join("docker-agent/tool_params.json"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/documents/parameters.json"),
    };
    let parameters = json_of(&path);
    let session = World::new().session(Toolset::Plans, "main");
    let mut tools = session.tools();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let mut names: Vec<&String> = parameters["plan"].as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(
        tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>(),
        names.into_iter().cloned().collect::<Vec<_>>()
    );
    for tool in tools {
        let theirs = &parameters["plan"][&*tool.name];
        let schema = Value::Object((*tool.input_schema).clone());
        let known = |name: &String| name.replace("last_known_revision", "last_known_version");
        let keys = |of: &Value| -> Vec<String> { of.as_object().unwrap().keys().map(known).collect() };
        let mut required: Vec<String> = keys(&theirs["required"]);
        required.sort();
        let needed = schema["required"].as_array().cloned().unwrap_or_default();
        let mut needed: Vec<&str> = needed.iter().filter_map(Value::as_str).collect();
        needed.sort();
        assert_eq!(needed, required, "{}", tool.name);
        for name in keys(&theirs["required"]).iter().chain(&keys(&theirs["optional"])) {
            assert!(schema["properties"].get(name).is_some(), "{} has no {name}", tool.name);
        }
        let hints = tool.annotations.unwrap();
        let reads = theirs["annotations"]["readOnlyHint"].as_bool().unwrap_or(false);
        assert_eq!(hints.read_only_hint, Some(reads), "{}", tool.name);
        let destroys = theirs["annotations"]["destructiveHint"].as_bool().unwrap_or(false);
        assert_eq!(hints.destructive_hint.unwrap_or(false), destroys, "{}", tool.name);
    }
}
