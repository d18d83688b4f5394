//! What a server reads of its workspace: reporters, which hear of what agents do over MCP, and what jaato left there.

use std::fs;

use serde_json::{Value, json};

use crate::mcp_jaato::Agent;
use crate::run::configure;
use crate::transcript::Workspace;

fn work(agent: &mut Agent) -> String {
    let made = agent.call("createPlan", json!({ "title": "T", "steps": ["a", "b"] }));
    assert_eq!(agent.call("startPlan", json!({}))["confirmed"], true);
    agent.call("setStepStatus", json!({ "step_id": "step_1", "status": "in_progress" }));
    agent.call("setStepStatus", json!({ "step_id": "step_1", "status": "completed" }));
    agent.call("setStepStatus", json!({ "step_id": "step_2", "status": "failed", "error": "no" }));
    made["plan_id"].as_str().unwrap().to_owned()
}

fn events(text: &str) -> Vec<String> {
    let word = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["event"].as_str().unwrap().to_owned()
    };
    text.lines().map(word).collect()
}

const EXPECTED: [&str; 5] = ["plan_is", "task_started", "task_ended", "task_ended", "plan_is"];

#[test]
fn a_file_and_the_console_report_what_agents_do() {
    let workspace = Workspace::new();
    workspace.configure_user("approval = \"never\"\n");
    let reporters = "[reporters.log]\nkind = \"file\"\npath = \"events.jsonl\"\n\
        [reporters.console]\nkind = \"console\"\nevents = [\"task_failed\"]\n\
        [reporters.broken]\nkind = \"file\"\npath = \"no/such/folder/log\"\n";
    configure(&workspace, reporters);
    let mut agent = Agent::with_toolset(&workspace, "jaato", "main");
    let plan = work(&mut agent);
    let said = agent.end();
    let text = fs::read_to_string(workspace.work().join("events.jsonl")).unwrap();
    assert_eq!(events(&text), EXPECTED, "{text}\n{said}");
    assert_eq!(said.matches("reporter broken: \"no/such/folder/log\" cannot be used").count(), 2, "{said}");
    let shown: Vec<&str> = said.lines().filter(|line| line.contains("step_")).collect();
    assert_eq!(shown.len(), 1, "{said}");
    assert!(shown[0].starts_with("failed") && shown[0].contains(&format!("{plan}/step_2")), "{said}");
}

#[test]
fn the_configuration_of_jaato_is_read_where_jaato_reads_it_and_names_a_log_of_the_machine() {
    let workspace = Workspace::new();
    let log = workspace.root.join("plans.log");
    let todo = json!({
        "reporter_type": "file", "reporter_config": { "path": log }, "storage_type": "file",
    });
    fs::create_dir_all(workspace.work().join(".jaato")).unwrap();
    fs::write(workspace.work().join(".jaato/todo.json"), todo.to_string()).unwrap();
    workspace.configure_user("approval = \"never\"\n");
    workspace.trust();
    let mut agent = Agent::with_toolset(&workspace, "jaato", "main");
    let plan = work(&mut agent);
    agent.end();
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(events(&text), EXPECTED, "{text}");
    assert!(text.contains(&plan));
    // The default path of its storage is that of jaato.
    assert!(workspace.work().join(".jaato/plans").is_dir());
    assert!(!workspace.work().join(".waypost/waypost.db").exists());
    // Without an id, the latest plan is shown.
    let shown = workspace.waypost(&["show", "--plan-command"]);
    assert!(String::from_utf8_lossy(&shown.stdout).starts_with("Current Plan: T\n"), "{shown:?}");
}

#[test]
fn what_a_person_is_shown_by_the_plan_command_leaves_no_trace_for_a_model() {
    let workspace = Workspace::new();
    let run = |arguments: &[&str]| {
        let output = workspace.waypost(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let plan = r#"{ "format": "waypost/1", "id": "p", "title": "Secret", "tasks": [{ "id": "a" }] }"#;
    fs::write(workspace.work().join("p.json"), plan).unwrap();
    run(&["import", "p.json"]);
    let traces = || [run(&["history", "p", "--json"]), run(&["events", "--plan", "p", "--json"])];
    let before = traces();
    assert!(run(&["show", "p", "--plan-command"]).starts_with("Current Plan: Secret\n"));
    assert_eq!(traces(), before);
}

#[test]
fn without_an_id_the_plan_that_is_worked_on_is_shown() {
    let workspace = Workspace::new();
    let none = workspace.waypost(&["show"]);
    assert_eq!(none.status.code(), Some(5), "{none:?}");
    let run = |arguments: &[&str]| {
        let output = workspace.waypost(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let first = r#"{ "format": "waypost/1", "id": "first", "title": "First", "tasks": [{ "id": "a" }] }"#;
    fs::write(workspace.work().join("first.json"), first).unwrap();
    fs::write(
        workspace.work().join("second.json"),
        first.replace("first", "second").replace("First", "Second"),
    )
    .unwrap();
    run(&["import", "first.json", "--owner", "builder"]);
    run(&["start", "first", "a"]);
    run(&["import", "second.json"]);
    let shown: Value = serde_json::from_str(&run(&["show", "--json"])).unwrap();
    assert_eq!((&shown["id"], &shown["owner"]), (&json!("first"), &json!("builder")), "{shown}");
    run(&["done", "first", "a"]);
    run(&["status", "set", "second", "later"]);
    let shown: Value = serde_json::from_str(&run(&["show", "--json"])).unwrap();
    assert_eq!(shown["id"], "second");
}

#[test]
fn plans_that_jaato_keeps_are_offered_for_import_and_get_an_owner() {
    let workspace = Workspace::new();
    let step = json!({ "step_id": "s1", "sequence": 1, "description": "a", "status": "pending" });
    let plan =
        json!({ "plan_id": "p1", "title": "Old", "status": "active", "started": false, "steps": [step] });
    fs::create_dir_all(workspace.work().join(".jaato")).unwrap();
    fs::write(workspace.work().join(".jaato/plans.json"), json!({ "p1": plan }).to_string()).unwrap();
    let offered = "`waypost import .jaato --owner AGENT` imports the plans of jaato";
    let none = workspace.waypost(&["show"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains(offered), "{none:?}");
    let mut agent = Agent::with_toolset(&workspace, "jaato", "main");
    assert!(agent.refused("getPlanStatus", json!({})).starts_with("No plan found for this agent"));
    assert!(agent.end().contains(offered));
    let imported = workspace.waypost(&["import", ".jaato", "--owner", "main"]);
    assert!(imported.status.success(), "{imported:?}");
    let mut agent = Agent::with_toolset(&workspace, "jaato", "main");
    assert_eq!(agent.call("getPlanStatus", json!({}))["title"], "Old");
    assert!(!agent.end().contains(offered));
}
