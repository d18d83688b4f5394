//! Traces of whole runs, as a collector gets them.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::run::{configure, text};
use crate::server::Server;
use crate::transcript::Workspace;

const PLAN: &str = r#"{ "format": "waypost/1", "id": "p", "title": "Ship it", "tasks": [
  { "id": "good", "work": { "executor": "tell" } },
  { "id": "bad", "work": { "executor": "break" }, "depends_on": ["good"] } ] }"#;

fn spans(server: &Server) -> Vec<Value> {
    let mut all = Vec::new();
    for request in server.requests() {
        assert_eq!(request.line(), "POST /v1/traces");
        assert_eq!(request.headers["content-type"], "application/json");
        assert_eq!(request.headers["x-key"], "a b");
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let resource = &body["resourceSpans"][0];
        let service = &resource["resource"]["attributes"][0];
        assert_eq!(
            (&service["key"], &service["value"]["stringValue"]),
            (&"service.name".into(), &"plans".into())
        );
        all.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    all
}

fn word(span: &Value, key: &str) -> String {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|one| one["key"] == key);
    found.map(|one| one["value"]["stringValue"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

#[test]
fn a_run_is_one_trace_of_its_plan_its_commands_and_its_attempts() {
    let server = Server::start(|_, _, reply| reply.json(200, &serde_json::json!({})));
    let workspace = Workspace::new();
    configure(
        &workspace,
        "[executors.tell]\nkind = \"process\"\nshell = true\ncommand = [\"cat > input.json; printf %s $TRACEPARENT > parent\"]\n\
         [executors.break]\nkind = \"process\"\ncommand = [\"false\"]\n",
    );
    fs::write(workspace.work().join("p.json"), PLAN).unwrap();
    let mut run = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    run.args(["run", "p.json", "--yes"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", server.address))
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
        .env("OTEL_SERVICE_NAME", "plans");
    let output = run.output().unwrap();
    let spans = spans(&server);
    assert!(!spans.is_empty(), "{}", text(&output).1);
    let traces: std::collections::BTreeSet<&str> =
        spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1, "all belong to one trace");
    let ids: BTreeMap<&str, &Value> =
        spans.iter().map(|span| (span["spanId"].as_str().unwrap(), span)).collect();
    assert_eq!(ids.len(), spans.len(), "each span is told of once");
    let named =
        |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let plan = named("plan p");
    assert!(plan.get("parentSpanId").is_none());
    assert_eq!((word(plan, "waypost.phase").as_str(), &plan["status"]["code"]), ("failed", &2.into()));
    let (good, bad) = (named("attempt good"), named("attempt bad"));
    for (attempt, executor, outcome) in [(good, "tell", "done"), (bad, "break", "failed")] {
        assert_eq!(attempt["parentSpanId"], plan["spanId"]);
        assert_eq!(word(attempt, "waypost.executor"), executor);
        assert_eq!(word(attempt, "waypost.outcome"), outcome);
    }
    assert_eq!((good["status"].get("code"), &bad["status"]["code"]), (None, &2.into()));
    let linked: Vec<&Value> = spans
        .iter()
        .filter(|span| span["name"].as_str().unwrap().starts_with("command "))
        .flat_map(|span| span["links"].as_array().unwrap())
        .map(|link| &link["spanId"])
        .collect();
    assert!(
        linked.contains(&&good["spanId"]) && linked.contains(&&bad["spanId"]),
        "commands are linked to attempts"
    );
    let parent = fs::read_to_string(workspace.work().join("parent")).unwrap();
    let (trace, id) = (good["traceId"].as_str().unwrap(), good["spanId"].as_str().unwrap());
    assert_eq!(parent, format!("00-{trace}-{id}-01"), "the program's own spans come below its attempt");
    let input: Value =
        serde_json::from_str(&fs::read_to_string(workspace.work().join("input.json")).unwrap()).unwrap();
    assert_eq!(input["traceparent"], parent);
    for span in &spans {
        let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(
            time("startTimeUnixNano") <= time("endTimeUnixNano")
                && time("startTimeUnixNano") > 1_600_000_000_000_000_000
        );
    }
}

#[test]
fn without_a_collector_nothing_is_told_and_one_that_is_away_fails_nothing() {
    let workspace = Workspace::new();
    configure(
        &workspace,
        "[executors.tell]\nkind = \"process\"\nshell = true\ncommand = [\"printf %s \\\"$TRACEPARENT\\\" > parent\"]\n\
         [executors.break]\nkind = \"process\"\ncommand = [\"true\"]\n",
    );
    fs::write(workspace.work().join("p.json"), PLAN).unwrap();
    let output = workspace.waypost(&["run", "p.json", "--yes"]);
    assert!(output.status.success(), "{}", text(&output).1);
    assert_eq!(fs::read_to_string(workspace.work().join("parent")).unwrap(), "");
    // Nobody listens at a port that was given back.
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut run = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    fs::write(workspace.work().join("q.json"), PLAN.replace("\"p\"", "\"q\"")).unwrap();
    run.args(["run", "q.json", "--yes"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{away}"));
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", text(&output).1);
}
