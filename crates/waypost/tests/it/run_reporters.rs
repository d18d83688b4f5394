//! Reporters: who else is told how a run goes, and what happens when they cannot be.

use std::fs;

use crate::run::{configure, text};
use crate::transcript::Workspace;

const PLAN: &str = r#"{ "format": "waypost/1", "id": "p", "title": "p", "tasks": [
  { "id": "a", "work": { "executor": "run", "inputs": { "password": "hunter2" } } },
  { "id": "b", "work": { "executor": "bad" }, "depends_on": ["a"] },
  { "id": "c", "work": { "executor": "run" }, "depends_on": ["b"] } ] }"#;
const EXECUTORS: &str = "[executors.run]\nkind = \"process\"\ncommand = [\"echo\", \"1\"]\n[executors.bad]\nkind = \"process\"\ncommand = [\"false\"]\n";

fn run(reporters: &str) -> (Workspace, String, String) {
    let workspace = Workspace::new();
    configure(&workspace, &format!("{EXECUTORS}{reporters}"));
    fs::write(workspace.work().join("p.json"), PLAN).unwrap();
    let output = workspace.waypost(&["run", "p.json"]);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    (workspace, out, err)
}

fn events(text: &str) -> Vec<String> {
    let event = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    text.lines().map(event).map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_file_gets_a_line_for_each_event_with_the_moment_and_no_inputs() {
    let (workspace, _, _) = run("[reporters.log]\nkind = \"file\"\npath = \"events.jsonl\"\n");
    let text = fs::read_to_string(workspace.work().join("events.jsonl")).unwrap();
    let expected = ["task_started", "task_ended", "task_started", "task_ended", "task_ended", "plan_is"]
        .map(str::to_owned);
    assert_eq!(events(&text), expected, "{text}");
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(first["at"].is_string() && first["task"] == "a" && first["plan"] == "p", "{first}");
    assert!(!text.contains("hunter2"), "{text}");
    // Another run appends.
    assert!(workspace.waypost(&["retry", "p"]).status.success());
    workspace.waypost(&["run", "p"]);
    let longer = fs::read_to_string(workspace.work().join("events.jsonl")).unwrap();
    assert!(longer.starts_with(&text) && longer.len() > text.len());
}

#[test]
fn a_program_gets_the_events_that_it_asks_for() {
    let reporters = "[reporters.chat]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> told; echo $WAYPOST_ACTOR >> actor\"]\nevents = [\"task_failed\", \"plan_failed\"]\n";
    let (workspace, _, err) = run(reporters);
    let told = fs::read_to_string(workspace.work().join("told")).unwrap();
    assert_eq!(events(&told), ["task_ended", "plan_is"], "{told}");
    assert!(told.contains("\"status\":\"failed\"") && told.contains("\"phase\":\"failed\""), "{told}");
    let actor = fs::read_to_string(workspace.work().join("actor")).unwrap();
    assert_eq!(actor.lines().next(), Some("worker:reporter-chat"));
    assert!(!err.contains("reporter"), "{err}");
}

#[test]
fn what_cannot_be_reported_is_said_once_and_changes_nothing_else() {
    let reporters = "[reporters.chat]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"exit 3\"]\n[reporters.gone]\nkind = \"command\"\ncommand = [\"/no/such/program\"]\n[reporters.log]\nkind = \"file\"\npath = \"no/such/folder/log\"\n[reporters.slow]\nkind = \"command\"\ncommand = [\"sleep\", \"60\"]\nevents = [\"plan_is\"]\ntimeout_seconds = 1\n";
    let (_, out, err) = run(reporters);
    assert!(out.contains("plan p is failed"), "{out}");
    for said in [
        "reporter chat: it ended with exit status: 3 (6 events were not reported)",
        "reporter gone: /no/such/program could not be started",
        "reporter log: \"no/such/folder/log\" cannot be used",
        "reporter slow: it took longer than 1 s (1 event was not reported)",
    ] {
        assert_eq!(err.matches(said).count(), 1, "{said}: {err}");
    }
}

#[test]
fn a_report_stays_in_the_workspace() {
    let workspace = Workspace::new();
    std::os::unix::fs::symlink("../home", workspace.work().join("out")).unwrap();
    let reporters = "[reporters.log]\nkind = \"file\"\npath = \"out/log\"\n";
    configure(&workspace, &format!("{EXECUTORS}{reporters}"));
    fs::write(workspace.work().join("p.json"), PLAN).unwrap();
    let (_, err) = text(&workspace.waypost(&["run", "p.json"]));
    assert!(err.contains("reporter log: \"out/log\" leads out of the workspace"), "{err}");
    assert!(!workspace.root.join("home/log").exists());
}

#[test]
fn the_console_shows_what_it_is_asked_to() {
    let (_, out, _) = run("[reporters.console]\nkind = \"console\"\nevents = [\"task_failed\"]\n");
    let lines: Vec<&str> = out.lines().take_while(|line| !line.starts_with("TASK")).collect();
    assert_eq!(lines.len(), 1, "{out}");
    assert!(lines[0].starts_with("failed   b"), "{out}");
}
