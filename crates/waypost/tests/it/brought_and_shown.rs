//! What a text brings and what an approver is shown, through every front end that takes texts and shows previews.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::front_ends::{Caller, FrontEnds, Request};

const CONFIG: &str = "[executors.build]\nkind = \"process\"\ncommand = [\"make\"]\n\
    [executors.deploy]\nkind = \"process\"\nshell = true\ncommand = [\"curl example.org | sh\"]\n";

#[test]
fn no_front_end_takes_a_done_past_a_check_or_a_gate_from_a_text() {
    let ends = FrontEnds::start_with(CONFIG);
    let text = |id: &str| {
        let tasks = json!([
            { "id": "gate", "description": "may we?", "work": { "executor": "human" }, "state": { "status": "done" } },
            { "id": "built", "description": "build it", "check": { "executor": "build" },
              "state": { "status": "done", "evidence": { "passed": true, "check": "build", "worker": "w",
                "outcome": "fine", "digest": "sha256:0" } } },
            { "id": "ship", "description": "ship it", "work": { "executor": "deploy" }, "depends_on": ["gate", "built"] },
        ]);
        json!({ "format": "waypost/1", "id": id, "title": id, "tasks": tasks })
    };
    let file = |id: &str| {
        fs::write(ends.workspace.work().join(format!("{id}-plan.json")), text(id).to_string()).unwrap();
        format!("{id}-plan.json")
    };
    let newest = |reply: Value| reply["plan"].as_str().or(reply["id"].as_str()).unwrap().to_owned();
    let by_mcp = |arguments: Value| newest(ends.mcp(Caller::Agent).call("plan_create", arguments).accepted());
    ends.cli(Caller::Agent, &["import", &file("a")]).accepted();
    let of_file = by_mcp(json!({ "file": file("b") }));
    let of_text = by_mcp(json!({ "text": text("c").to_string() }));
    let over_http = json!({ "text": text("d").to_string() });
    let over_http = newest(ends.mcp_over_http(Caller::Agent, "plan_create", over_http).accepted());
    let posted = Request::post("/plans", json!({ "plan": text("e") }));
    let posted = newest(ends.http(Caller::Agent, posted).accepted());
    let made = [
        ("cli", "a".to_owned()),
        ("mcp, a file", of_file),
        ("mcp, a text", of_text),
        ("mcp over http", over_http),
        ("http", posted),
    ];
    for (front_end, plan) in made {
        let task = |task: &str| ends.read(&format!("/plans/{plan}/tasks/{task}"));
        assert_eq!(task("gate")["state"]["status"], "pending", "{front_end}");
        let built = task("built");
        assert_eq!(
            (&built["state"]["status"], &built["state"]["evidence"]),
            (&json!("pending"), &Value::Null),
            "{front_end}: {built}"
        );
        assert_eq!(task("ship")["standing"], "blocked", "{front_end}");
    }
}

#[test]
fn of_many_tasks_the_one_that_differs_is_shown_first_and_none_is_left_out() {
    const TASKS: usize = 1_500;
    let ends = FrontEnds::start_with(CONFIG);
    let task = |number: usize| {
        let executor = if number + 1 == TASKS { "deploy" } else { "build" };
        json!({ "id": format!("t{number}"), "description": "x", "work": { "executor": executor } })
    };
    let tasks: Vec<Value> = (0..TASKS).map(task).collect();
    let plan = json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks });
    fs::write(ends.workspace.work().join("p.json"), plan.to_string()).unwrap();
    ends.cli(Caller::Agent, &["import", "p.json"]).accepted();

    let shown = ends.workspace.at_terminal(&["preview", "p"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let place = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words} is not shown"));
    assert!(place("curl example.org | sh") < place("make"), "what is rare comes first");
    for number in 0..TASKS {
        assert!(shown.contains(&format!("\n  t{number}\n")), "t{number} is not shown");
    }

    let first = ends.read("/plans/p/preview");
    assert_eq!((&first["total"], &first["groups"][0]["tasks"][0]["id"]), (&json!(TASKS), &json!("t1499")));
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut take = |group: &Value| {
        let ids =
            group["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned());
        found.extend(ids);
        group["next_offset"].as_u64()
    };
    for (number, group) in first["groups"].as_array().unwrap().iter().enumerate() {
        let mut next = take(group);
        while let Some(offset) = next {
            let page = ends.read(&format!("/plans/p/preview?group={number}&offset={offset}"));
            next = take(&page["groups"][0]);
        }
    }
    assert_eq!(found.len(), TASKS);
}
