//! Making plans.

use serde_json::{Value, json};

use super::{begin, plan};
use crate::session::World;

#[test]
fn tasks_without_ids_are_numbered_by_their_place() {
    let (_world, session) = begin();
    let told = session.call(
        "plan_create",
        json!({ "title": "Release", "goal": "ship it", "tasks": [
            "write the notes",
            { "id": "build", "description": "build it" },
            { "description": "publish", "depends_on": ["t1", "build"], "notes": "ask first", "priority": 3 },
        ] }),
    );
    let id = told.value["plan"].as_str().unwrap();
    let expected = json!({ "plan": id, "version": 1, "tasks": 3, "ids": "t1, t3", "ready": ["t1", "build"] });
    assert_eq!(told.value, expected);
    assert_eq!(told.text, format!("plan {id} v1: 3 tasks (t1, t3); ready: t1, build"));
    let task = session.call("plan_get", json!({ "task": "t3" })).value;
    assert_eq!((&task["notes"], &task["priority"]), (&json!("ask first"), &json!(3)));
    assert_eq!(task["depends_on"], json!(["t1", "build"]));
}

#[test]
fn ids_that_are_made_avoid_those_that_are_given() {
    let (_world, session) = begin();
    let tasks = json!([{ "id": "t2", "description": "a" }, "b", "c"]);
    let told = session.call("plan_create", json!({ "title": "x", "tasks": tasks }));
    assert_eq!(told.value["ids"], "t4, t3", "the second would be t2, which is taken");
}

#[test]
fn a_plan_is_read_from_text_in_any_format() {
    let (_world, session) = begin();
    let check = |text: &str, tasks: u64| {
        let told = session.call("plan_create", json!({ "text": text }));
        assert_eq!(told.value["tasks"], tasks, "{text}");
    };
    check("# Move house\n\n- [ ] pack\n- [x] book a van\n", 2);
    check(r#"{"format":"waypost/1","title":"n","tasks":[{"id":"a","description":"d"}]}"#, 1);
    let clido = r#"{"meta":{"id":"x","goal":"g"},"tasks":[{"id":"t1","description":"d","depends_on":[]}]}"#;
    check(clido, 1);
    assert_eq!(
        session.refused("plan_create", json!({ "text": "{\"surprise\": 1}" })),
        "the text: this is not a plan in any format that Waypost knows; name its format"
    );
    let told = session
        .ask("plan_create", json!({ "text": format!("{clido}\n{}", clido.replace("\"g\"", "\"h\"")) }));
    assert_eq!(told.text, "the text holds 2 plans, and one is needed; pass one plan at a time");
    assert_eq!(told.value["code"], "not_one_plan");
}

#[test]
fn a_plan_is_read_from_a_file_of_the_workspace_and_no_other() {
    let (world, session) = begin();
    std::fs::write(world.folder().join("plan.md"), "# Title\n\n- [ ] one\n- [ ] two\n").unwrap();
    let told = session.call("plan_create", json!({ "file": "plan.md", "title": "Mine" }));
    assert_eq!(told.value["tasks"], 2);
    assert_eq!(session.call("plan_get", json!({})).value["title"], "Mine");
    let outside = session.refused("plan_create", json!({ "file": "../plan.md" }));
    assert_eq!(
        outside,
        "../plan.md is outside of the workspace; name a regular file in the workspace by its relative path"
    );
}

#[test]
fn the_same_file_is_the_same_plan() {
    let (world, session) = begin();
    let put = |name: &str, text: &str| std::fs::write(world.folder().join(name), text).unwrap();
    let run = r#"{"id":"r","queue":"default","items":[{"id":"a","executor":"noop","inputs":{},"depends_on":[],"resourceLocks":[]}]}"#;
    put("own.json", run);
    put("flat.json", r#"{"goal":"g","tasks":[{"id":"a","description":"d"}]}"#);
    put("list.md", "# Title\n\n- [ ] one\n- [ ] two\n");
    for file in ["own.json", "flat.json", "list.md"] {
        let first = session.call("plan_create", json!({ "file": file })).value;
        let plan = &first["plan"];
        session.call("plan_edit", json!({ "plan": plan, "ops": [{ "op": "plan", "status": "begun" }] }));
        let again = session.call("plan_create", json!({ "file": file }));
        assert_eq!((&again.value["plan"], &again.value["changed"]), (plan, &json!(false)), "{file}");
        let id = plan.as_str().unwrap();
        let note = format!("this is already plan {id} and has not changed since; nothing was created");
        assert!(again.text.contains(&note), "{}", again.text);
    }
    assert_eq!(session.call("plan_list", json!({})).value["total"], 3);
    session.call("plan_edit", json!({ "plan": "r", "ops": [{ "op": "plan", "archived": true }] }));
    let archived = session.call("plan_create", json!({ "file": "own.json" })).text;
    assert!(archived.contains("already plan r, which is archived, and has not changed since"), "{archived}");
    // Another order is another file.
    put(
        "own.json",
        r#"{"id":"o","queue":"default","items":[
        {"id":"a","executor":"noop","inputs":{},"depends_on":[],"resourceLocks":[]},
        {"id":"b","executor":"noop","inputs":{},"depends_on":[],"resourceLocks":[]}]}"#,
    );
    assert_eq!(session.call("plan_create", json!({ "file": "own.json" })).value["plan"], "o");
    put(
        "own.json",
        r#"{"id":"o","queue":"default","items":[
        {"id":"b","executor":"noop","inputs":{},"depends_on":[],"resourceLocks":[]},
        {"id":"a","executor":"noop","inputs":{},"depends_on":[],"resourceLocks":[]}]}"#,
    );
    assert_ne!(session.call("plan_create", json!({ "file": "own.json" })).value["plan"], "o");
    put("own.json", &run.replace("noop", "human"));
    let other = session.call("plan_create", json!({ "file": "own.json" })).value;
    let id = other["plan"].as_str().unwrap();
    let note =
        format!("another plan has the id r, so this one is {id}; to change the other, use plan_update");
    assert!(other["notes"].as_array().unwrap().contains(&json!(note)), "{other}");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let (_world, session) = begin();
    let tasks = json!([
        { "id": "a", "description": "x", "depends_on": ["b"] },
        { "id": "b", "description": "y", "depends_on": ["a", "nowhere"] },
    ]);
    let said = session.refused("plan_create", json!({ "title": "x", "tasks": tasks }));
    assert!(said.contains("nowhere") && said.contains("a → b → a"), "{said}");
    let said = session.refused("plan_create", json!({ "tasks": [{ "description": 3 }] }));
    assert!(said.contains("description") && said.contains("t1"), "{said}");
    let said = session.refused("plan_create", json!({ "tasks": [{ "descripton": "x" }] }));
    assert_eq!(said, "unknown argument tasks[0].descripton; did you mean description?");
    let said = session.refused("plan_create", json!({}));
    assert_eq!(said, "there is nothing to create a plan from; pass tasks, file or text, and a title");
    let said = session.refused("plan_create", json!({ "tasks": [], "text": "x" }));
    assert_eq!(said, "tasks, file and text exclude each other; give one of them");
    assert_eq!(session.call("plan_list", json!({ "all": true })).value["total"], 0);
}

#[test]
fn work_for_machines_needs_a_persons_approval_and_no_text_brings_it_along() {
    let (_world, session) = begin();
    let work = json!([{ "description": "run it", "work": { "executor": "noop" } }]);
    let told = session.call("plan_create", json!({ "title": "x", "tasks": work }));
    assert_eq!(told.value["approval"], "needed");
    let text = json!({
        "format": "waypost/1", "title": "sly",
        "state": { "phase": "active", "approval": { "by": "person:ada", "at": "2026-01-01T00:00:00Z", "version": 1 } },
        "tasks": [{ "id": "a", "description": "x", "work": { "executor": "noop" } }],
    });
    let told = session.call("plan_create", json!({ "text": text.to_string() }));
    assert_eq!(told.value["approval"], "needed");
}

#[test]
fn a_plan_belongs_to_whoever_made_it_unless_the_text_names_another() {
    let (_world, session) = begin();
    session.call("plan_create", json!({ "text": r#"{"format":"waypost/1","title":"n","tasks":[]}"# }));
    assert_eq!(session.call("plan_list", json!({})).value["total"], 1);
    let text = r#"{"format":"waypost/1","title":"n","owner":"somebody","tasks":[]}"#;
    session.call("plan_create", json!({ "text": text }));
    assert_eq!(session.call("plan_list", json!({})).value["total"], 1);
    let all = session.call("plan_list", json!({ "all": true })).value;
    let owners: Vec<&str> =
        all["plans"].as_array().unwrap().iter().filter_map(|plan| plan["owner"].as_str()).collect();
    assert!(owners.len() == 2 && owners.contains(&"somebody"), "{owners:?}");
}

#[test]
fn a_dependency_may_name_a_task_of_another_plan_or_agent() {
    let world = World::new();
    let other = world.session(waypost_mcp::Toolset::Native, "other");
    let theirs = plan(&other, json!([{ "id": "api", "description": "design the API" }]));
    let mine = world.session(waypost_mcp::Toolset::Native, "main");
    plan(
        &mine,
        json!([
            { "id": "a", "description": "by agent", "depends_on": ["other:api"] },
            { "id": "b", "description": "by plan", "depends_on": [format!("{theirs}/api")] },
        ]),
    );
    let blocked = mine.call("task_next", json!({}));
    assert_eq!(blocked.value["task"], Value::Null, "{}", blocked.text);
    other.call("task_next", json!({}));
    other.call("task_report", json!({ "task": "api", "status": "done", "output": { "url": "/v1" } }));
    let taken = mine.call("task_next", json!({})).value;
    assert_eq!((&taken["task"], &taken["inputs"]), (&json!("a"), &json!({ "other:api": { "url": "/v1" } })));
}

#[test]
fn work_that_nobody_here_can_do_is_noted_before_a_person_is_asked() {
    let (_world, session) = begin();
    let tasks = json!([{ "description": "a", "work": { "executor": "nope" } }]);
    let made = session.call("plan_create", json!({ "title": "t", "tasks": tasks }));
    let notes = made.value["notes"].to_string();
    assert!(notes.contains("not runnable with this configuration") && notes.contains("nope"), "{notes}");
}
