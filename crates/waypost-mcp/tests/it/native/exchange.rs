//! Plans to files and back.

use std::fs;

use serde_json::json;

use super::{begin, done, plan, take};

const SECRET: &str = "SECRET-BODY-MARKER";

#[test]
fn a_plan_goes_to_a_file_and_comes_back_without_its_text_being_told() {
    let (world, session) = begin();
    let id =
        plan(&session, json!([{ "id": "a", "description": SECRET }, { "id": "b", "description": "two" }]));
    take(&session);
    done(&session, "a");
    let told = session.call("plan_export", json!({ "file": "out/plan.json" }));
    let file = world.folder().join("out/plan.json");
    let text = fs::read_to_string(&file).unwrap();
    let bytes = text.len();
    assert_eq!(
        told.value,
        json!({ "plan": id, "version": 3, "file": "out/plan.json", "format": "native", "bytes": bytes })
    );
    assert_eq!(told.text, format!("wrote out/plan.json: v3 as native, {bytes} bytes"));
    let edited = text.replace("\"two\"", "\"two, but better\"");
    fs::write(&file, &edited).unwrap();
    let told = session.call("plan_update", json!({ "file": "out/plan.json", "known_version": 3 }));
    let expected = json!({ "plan": id, "version": 4, "bytes": edited.len(), "changes": "1 task changed" });
    assert_eq!(told.value, expected);
    assert!(!told.text.contains(SECRET) && !told.value.to_string().contains(SECRET));
    assert_eq!(session.call("plan_get", json!({ "task": "a" })).value["status"], "done");
    let told = session.call("plan_update", json!({ "file": "out/plan.json" }));
    assert_eq!(told.value["changes"], "nothing differs");
    assert_eq!(told.value["version"], 4);
}

#[test]
fn the_name_of_a_file_speaks_of_its_format() {
    let (world, session) = begin();
    plan(&session, json!([{ "description": "a", "retry": { "attempts": 3 } }]));
    let format = |file: &str| session.call("plan_export", json!({ "file": file })).value["format"].clone();
    assert_eq!(format("plan.md"), "markdown");
    assert_eq!(format("plan.mmd"), "mermaid");
    assert_eq!(format("plan.txt"), "native");
    let again = session.refused("plan_export", json!({ "file": "plan.md", "format": "clido" }));
    assert!(again.starts_with("plan.md exists with other content"), "{again}");
    let clido = json!({ "file": "plan.md", "format": "clido", "overwrite": true });
    let told = session.call("plan_export", clido).value;
    assert_eq!(told["format"], "clido");
    assert!(told["lost"].to_string().contains("retry of a task"), "{told}");
    assert!(fs::read_to_string(world.folder().join("plan.md")).unwrap().contains("\"tasks\""));
    let said = session.refused("plan_export", json!({ "file": "x", "format": "beads" }));
    assert!(said.contains("beads can be read but not written"), "{said}");
    let said = session.refused("plan_export", json!({ "file": "x", "format": "markdwn" }));
    assert!(
        said.starts_with("format cannot be \"markdwn\"; did you mean markdown? use one of native"),
        "{said}"
    );
}

#[test]
fn a_markdown_text_becomes_the_body() {
    let (world, session) = begin();
    plan(&session, json!(["a"]));
    fs::write(world.folder().join("body.md"), "Some words.\nMore words.\n").unwrap();
    let told = session.call("plan_update", json!({ "file": "body.md" }));
    assert_eq!(told.value["changes"], "body +2 -0 lines");
    assert_eq!(session.call("plan_get", json!({})).value["total"], 1);
}

/// What a plan of the tasks one, two, three and four, whose t3 was removed, holds after updates from these checklists.
#[track_caller]
fn check_update(texts: &[&str], expected: &[(&str, &str, &[&str])]) {
    let (world, session) = begin();
    plan(&session, json!(["one", "two", "three", "four"]));
    take(&session);
    done(&session, "t1");
    session.call("plan_edit", json!({ "ops": [{ "op": "remove", "task": "t3" }] }));
    session.call("plan_edit", json!({ "ops": [{ "op": "remove", "task": "t4" }] }));
    for text in texts {
        fs::write(world.folder().join("p.md"), text).unwrap();
        session.call("plan_update", json!({ "file": "p.md" }));
    }
    session.call("plan_export", json!({ "file": "out-plan.json" }));
    let out = fs::read_to_string(world.folder().join("out-plan.json")).unwrap();
    let out: serde_json::Value = serde_json::from_str(&out).unwrap();
    let expected: Vec<_> = expected
        .iter()
        .map(|(id, description, after)| {
            let status = if *id == "t1" { "done" } else { "pending" };
            json!([id, description, after, status])
        })
        .collect();
    let found = out["tasks"].as_array().unwrap().iter().map(|task| {
        let after = if task["depends_on"].is_null() { json!([]) } else { task["depends_on"].clone() };
        json!([task["id"], task["description"], after, task["state"]["status"]])
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn a_line_without_an_id_gets_one_that_no_task_has_had() {
    let tasks = |lines: &str| format!("---\ntitle: P\n---\n## Tasks\n\n{lines}");
    check_update(
        &[&tasks("- [x] t1: one\n- [ ] t2: two\n- [ ] new\n")],
        &[("t1", "one", &[]), ("t2", "two", &[]), ("t5", "new", &[])],
    );
    check_update(&[&tasks("- [x] t1: one\n- [ ] new\n")], &[("t1", "one", &[]), ("t5", "new", &[])]);
    check_update(
        &[&tasks("- [x] t1: one\n- [ ] t2: two\n- [ ] new\n- [ ] t5: named  (after: t2)\n")],
        &[("t1", "one", &[]), ("t2", "two", &[]), ("t6", "new", &[]), ("t5", "named", &["t2"])],
    );
}

#[test]
fn a_line_without_an_id_that_says_what_a_task_says_is_that_task() {
    let text = "---\ntitle: P\n---\n## Tasks\n\n- [ ] zero\n- [x] one\n- [ ] more  (after: t1)\n";
    let expected: &[(&str, &str, &[&str])] =
        &[("t5", "zero", &[]), ("t1", "one", &[]), ("t6", "more", &["t1"])];
    check_update(&[text], expected);
    check_update(&[text, text], expected);
}

#[test]
fn a_stale_version_is_refused_and_the_file_left_alone() {
    let (world, session) = begin();
    plan(&session, json!(["a"]));
    session.call("plan_export", json!({ "file": "p-plan.json" }));
    session.call("plan_edit", json!({ "ops": [{ "op": "plan", "title": "moved on" }] }));
    let said = session.refused("plan_update", json!({ "file": "p-plan.json", "known_version": 1 }));
    assert!(said.contains("is at version 2, not 1; changed since: title=\"moved on\""), "{said}");
    assert!(world.folder().join("p-plan.json").exists());
}

#[test]
fn files_outside_links_and_closed_folders_are_refused() {
    let (world, session) = begin();
    plan(&session, json!(["a"]));
    std::os::unix::fs::symlink("/etc/hostname", world.folder().join("link")).unwrap();
    for file in ["../x.json", "/etc/x.json", "link", "link/x", ".waypost/config.toml", ".git/config", "", "."]
    {
        assert!(session.ask("plan_export", json!({ "file": file })).is_error, "{file}");
        assert!(session.ask("plan_update", json!({ "file": file })).is_error, "{file}");
        assert!(session.ask("plan_create", json!({ "file": file })).is_error, "{file}");
    }
    assert!(
        session
            .refused("plan_update", json!({ "file": "none.json" }))
            .starts_with("there is no file none.json")
    );
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let (world, session) = begin();
    plan(&session, json!(["a"]));
    let write = |text: &str| fs::write(world.folder().join("p.json"), text).unwrap();
    write("{\"format\":\"waypost/1\",\"tasks\":[{\"id\":\"a\",\"depends_on\":[\"a\"]}]}");
    let said = session.refused("plan_update", json!({ "file": "p.json" }));
    assert!(said.starts_with("invalid plan: "), "{said}");
    write("{\"format\":");
    let said = session.refused("plan_update", json!({ "file": "p.json" }));
    assert!(said.starts_with("p.json: line 1"), "{said}");
    assert_eq!(session.call("plan_get", json!({})).value["version"], 1);
}
