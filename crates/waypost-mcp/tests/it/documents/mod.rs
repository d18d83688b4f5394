//! Plan documents: conversations as docker-agent's tools have them, and what is better here.

mod observed;

use std::os::unix::fs::symlink;
use std::process::Command as Program;

use serde_json::{Value, json};
use waypost_mcp::Toolset;

use crate::direct_writes;
use crate::session::{Session, World, session};

fn plans(world: &World, agent: &str) -> Session {
    world.session(Toolset::Plans, agent)
}

#[test]
fn synonyms_can_be_called_and_are_not_listed() {
    let session = session(Toolset::Plans, "main");
    let listed: Vec<String> = session.tools().iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(listed.len(), 8, "{listed:?}");
    session.call("create_plan", json!({ "name": "p", "content": "one" }));
    let said = session.refused("create_plan", json!({ "name": "p", "content": "two" }));
    assert!(said.starts_with("plan \"p\" exists already, at version 1"), "{said}");
    assert_eq!(session.call("update_plan", json!({ "name": "p", "content": "two" })).value["version"], 2);
    let said = session.refused("update_plan", json!({ "name": "q", "content": "two" }));
    assert!(said.starts_with("plan \"q\" not found"), "{said}");
    assert_eq!(session.call("get_plan", json!({ "name": "p" })).value["content"], "two");
}

#[test]
fn a_stale_writer_writes_nothing_and_learns_who_changed_what() {
    let world = World::new();
    let (ada, bob) = (plans(&world, "ada"), plans(&world, "bob"));
    ada.call("write_plan", json!({ "name": "p", "content": "a\nb\n" }));
    bob.call("write_plan", json!({ "name": "p", "content": "a\nb\nc\n", "last_known_version": 1 }));
    bob.call("write_plan", json!({ "name": "p", "content": "a\nc\n", "title": "T" }));
    let told = ada.ask("write_plan", json!({ "name": "p", "content": "mine", "last_known_version": 1 }));
    assert!(told.is_error);
    let expected = "version conflict on plan \"p\": last_known_version 1 does not match current version 3; re-read the \
        plan and retry. Since then agent:bob wrote versions 2, 3; differs: title, body +1 -1 lines";
    assert_eq!(told.text, expected);
    assert_eq!(told.value["code"], "conflict");
    assert_eq!(told.value["version"], 3);
    assert_eq!(told.value["written_since"][1], json!({ "version": 3, "by": "agent:bob" }));
    let now = ada.call("read_plan", json!({ "name": "p" })).value;
    assert_eq!((&now["content"], &now["version"]), (&json!("a\nc\n"), &json!(3)));
}

#[test]
fn a_misspelt_argument_is_refused_rather_than_taken_for_an_unguarded_write() {
    let session = session(Toolset::Plans, "main");
    session.call("write_plan", json!({ "name": "p", "content": "one" }));
    let said = session.refused("write_plan", json!({ "name": "p", "content": "x", "last_known_verson": 7 }));
    assert!(said.contains("last_known_verson"), "{said}");
    let both = json!({ "name": "p", "content": "x", "last_known_version": 1, "last_known_revision": 2 });
    assert!(session.refused("write_plan", both).contains("they are aliases"));
    assert_eq!(session.call("read_plan", json!({ "name": "p" })).value["version"], 1);
}

#[test]
fn a_status_is_a_version_and_an_editor_with_an_old_guard_hears_that_nothing_else_changed() {
    let world = World::new();
    let (ada, bob) = (plans(&world, "ada"), plans(&world, "bob"));
    ada.call("write_plan", json!({ "name": "p", "content": "one", "status": "draft" }));
    assert_eq!(
        bob.call("set_plan_status", json!({ "name": "p", "status": "in review" })).value["version"],
        2
    );
    let stale = json!({ "name": "p", "content": "two", "last_known_version": 1 });
    let said = ada.refused("write_plan", stale);
    assert!(said.contains("does not match current version 2"), "{said}");
    assert!(said.contains("agent:bob wrote version 2; differs: status"), "{said}");
    let written = ada.call("write_plan", json!({ "name": "p", "content": "two", "last_known_version": 2 }));
    assert_eq!(written.value["version"], 3);
    assert_eq!(written.value["status"], "in review");
    // Who writes a status, too, would overwrite the other's.
    let both = json!({ "name": "p", "content": "three", "status": "done", "last_known_version": 1 });
    assert!(ada.refused("write_plan", both).contains("does not match current version 3"));
    // Who guards a status means it.
    let guarded = json!({ "name": "p", "status": "done", "last_known_version": 2 });
    assert!(bob.refused("set_plan_status", guarded).contains("does not match current version 3"));
    // The same words again are no version.
    assert_eq!(
        bob.call("set_plan_status", json!({ "name": "p", "status": "in review" })).value["version"],
        3
    );
    let got = bob.call("get_plan_status", json!({ "name": "p" })).value;
    assert_eq!(got, json!({ "name": "p", "status": "in review", "version": 3, "revision": 3 }));
}

#[test]
fn a_change_list_says_author_as_the_tools_do() {
    let world = World::new();
    let ada = plans(&world, "ada");
    ada.call("write_plan", json!({ "name": "p", "content": "one" }));
    let told = ada.call("write_plan", json!({ "name": "p", "content": "one", "author": "ada" })).value;
    assert_eq!((&told["changed"], &told["author"]), (&json!("author"), &json!("ada")));
    let stale = json!({ "name": "p", "content": "two", "last_known_version": 1 });
    let told = ada.ask("write_plan", stale);
    assert_eq!(told.value["differs"], "author");
}

#[test]
fn an_imported_document_has_one_revision_in_every_answer() {
    let world = World::new();
    let text = r#"{ "name": "p", "content": "one", "status": "draft", "revision": 7, "updatedAt": "2026-07-01T00:00:00Z" }"#;
    let native = world.session(waypost_mcp::Toolset::Native, "ada");
    native.call("plan_create", json!({ "text": text }));
    let ada = plans(&world, "ada");
    let listed = ada.call("list_plans", json!({})).value["plans"][0].clone();
    let name = listed["name"].as_str().unwrap();
    assert_eq!((&listed["version"], &listed["revision"]), (&json!(7), &json!(7)));
    assert_eq!(ada.call("get_plan_status", json!({ "name": name })).value["revision"], 7);
    assert_eq!(ada.call("read_plan", json!({ "name": name })).value["revision"], 7);
    let status = json!({ "name": name, "status": "in review", "last_known_revision": 7 });
    assert_eq!(ada.call("set_plan_status", status).value["revision"], 8);
    let stale = json!({ "name": name, "content": "two", "last_known_revision": 7 });
    let said = ada.refused("write_plan", stale);
    assert!(said.contains("last_known_revision 7 does not match current revision 8"), "{said}");
    assert!(said.contains("agent:ada wrote version 8; differs: status"), "{said}");
    let older = json!({ "name": name, "content": "two", "last_known_revision": 3 });
    assert!(ada.refused("write_plan", older).contains("does not match current revision 8"));
    let written = json!({ "name": name, "content": "two", "last_known_revision": 8 });
    assert_eq!(ada.call("write_plan", written).value["revision"], 9);
}

#[test]
fn a_deleted_name_is_a_new_document_whose_old_versions_never_match() {
    let world = World::new();
    let session = plans(&world, "ada");
    session.call("write_plan", json!({ "name": "p", "content": "one", "title": "Old", "status": "done" }));
    let deleted = session.call("delete_plan", json!({ "name": "p", "last_known_version": 1 })).value;
    assert_eq!(deleted["deleted"], "p");
    assert_eq!(session.call("list_plans", json!({})).value, json!({ "plans": [] }));
    assert!(session.refused("read_plan", json!({ "name": "p" })).starts_with("plan \"p\" not found"));
    assert!(session.refused("delete_plan", json!({ "name": "p" })).starts_with("plan \"p\" not found"));
    let said = session.refused("write_plan", json!({ "name": "p", "content": "x", "last_known_version": 1 }));
    assert!(said.contains("does not match current version 0"), "{said}");
    assert!(said.contains("It was deleted by agent:ada in version 2"), "{said}");
    let again = session.call("write_plan", json!({ "name": "p", "content": "one", "last_known_version": 0 }));
    assert_eq!((&again.value["version"], &again.value["created"]), (&json!(3), &json!(true)));
    assert_eq!(again.value.get("title"), None, "nothing of the old one is left: {}", again.text);
    // The text is the same as that of version 1, and still nobody who knew version 1 knows this document.
    for known in [1, 2] {
        let stale = json!({ "name": "p", "content": "x", "last_known_version": known });
        assert!(session.refused("write_plan", stale).contains("does not match current version 3"));
    }
}

#[test]
fn a_plan_with_tasks_that_was_put_away_is_not_brought_back_by_its_name() {
    let world = World::new();
    let id = waypost_core::PlanId::new("p").unwrap();
    let new = waypost_store::NewPlan {
        id: Some(id),
        by: waypost_core::Actor::person("ada"),
        draft: waypost_testkit::chain(3),
        approval_required: None,
    };
    direct_writes::create(&world.plans, new);
    let session = plans(&world, "main");
    assert_eq!(session.call("list_plans", json!({})).value["plans"][0]["tasks"], 3);
    session.call("write_plan", json!({ "name": "p", "content": "text beside the tasks" }));
    session.call("delete_plan", json!({ "name": "p" }));
    let said = session.refused("write_plan", json!({ "name": "p", "content": "x" }));
    assert!(
        said.contains("belongs to an archived plan with tasks") && said.contains("waypost unarchive p"),
        "{said}"
    );
}

#[test]
fn the_loop_of_export_edit_and_update_never_costs_the_text() {
    const MARK: &str = "SECRET-BODY-MARKER";
    let world = World::new();
    let session = plans(&world, "main");
    let body = format!("---\ntitle: kept\n---\n# {MARK}\n\n- [ ] not a task\n- [x] nor this\n");
    let written = session.call("write_plan", json!({ "name": "p", "content": body }));
    let exported = session.call("export_plan_to_file", json!({ "name": "p", "path": "tmp/p-plan.md" }));
    let file = world.folder().join("tmp/p-plan.md");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), body);
    assert_eq!(exported.value["bytesWritten"], body.len());
    std::fs::write(&file, body.replace("nor this", "nor that")).unwrap();
    let known = &exported.value["version"];
    let from_file = json!({ "name": "p", "path": "tmp/p-plan.md", "last_known_version": known });
    let updated = session.call("update_plan_from_file", from_file);
    assert_eq!(updated.value["changed"], "body +1 -1 lines");
    assert_eq!((&updated.value["version"], &updated.value["bytes"]), (&json!(2), &json!(body.len())));
    for told in [&written, &exported, &updated] {
        assert!(!told.text.contains(MARK) && !told.value.to_string().contains(MARK), "{}", told.text);
    }
    std::fs::write(&file, "too late").unwrap();
    let stale = json!({ "name": "p", "path": "tmp/p-plan.md", "last_known_version": known });
    let said = session.refused("update_plan_from_file", stale);
    assert!(said.starts_with("version conflict on plan \"p\""), "{said}");
    std::fs::write(&file, body.replace("nor this", "nor that")).unwrap();
    let read = session.call("read_plan", json!({ "name": "p" })).value;
    assert_eq!(read["content"], body.replace("nor this", "nor that"));
    assert_eq!(read.get("tasks"), None, "a checklist in a text is text");
    // What somebody may have edited is not overwritten by mistake; what it holds anyway may be written again.
    session.call("export_plan_to_file", json!({ "name": "p", "path": "tmp/p-plan.md" }));
    std::fs::write(&file, "edited meanwhile").unwrap();
    let said = session.refused("export_plan_to_file", json!({ "name": "p", "path": "tmp/p-plan.md" }));
    assert!(said.contains("exists with other content"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "edited meanwhile");
    session.call("export_plan_to_file", json!({ "name": "p", "path": "tmp/p-plan.md", "overwrite": true }));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), read["content"].as_str().unwrap());
}

#[test]
fn paths_lead_nowhere_but_to_plain_files_of_the_workspace() {
    let world = World::new();
    let session = plans(&world, "main");
    session.call("write_plan", json!({ "name": "p", "content": "text" }));
    let folder = world.folder();
    let outside = folder.with_extension("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("plan.md"), "secret").unwrap();
    symlink(outside.join("plan.md"), folder.join("link-plan.md")).unwrap();
    symlink(&outside, folder.join("way")).unwrap();
    assert!(Program::new("mkfifo").arg(folder.join("pipe-plan.md")).status().unwrap().success());
    std::fs::create_dir(folder.join("dir-plan.md")).unwrap();
    std::fs::write(folder.join("empty.md"), "").unwrap();
    let absolute = outside.join("plan.md").display().to_string();
    let up = format!("../{}/plan.md", outside.file_name().unwrap().to_string_lossy());
    for path in [
        up.as_str(),
        &absolute,
        "link-plan.md",
        "way/plan.md",
        "pipe-plan.md",
        "dir-plan.md",
        "/dev/zero",
        ".waypost/config.toml",
    ] {
        let said = session.refused("update_plan_from_file", json!({ "name": "p", "path": path }));
        assert!(said.contains(path), "{path}: {said}");
        let over = json!({ "name": "p", "path": path, "overwrite": true });
        session.refused("export_plan_to_file", over);
    }
    let said = session.refused("update_plan_from_file", json!({ "name": "p", "path": "empty.md" }));
    assert_eq!(said, "file is empty; plan content must not be empty");
    assert!(
        session.refused("update_plan_from_file", json!({ "name": "p", "path": "none.md" })).contains("none")
    );
    assert_eq!(std::fs::read_to_string(outside.join("plan.md")).unwrap(), "secret");
    assert_eq!(session.call("read_plan", json!({ "name": "p" })).value["content"], "text");
    std::fs::remove_dir_all(outside).unwrap();
}

#[test]
fn a_text_may_have_ten_mebibytes_and_an_answer_shows_a_bounded_part() {
    let session = session(Toolset::Plans, "main");
    let most = "x".repeat(10 * 1024 * 1024);
    let written = session.call("write_plan", json!({ "name": "p", "content": most }));
    assert_eq!(written.value["bytes"], most.len());
    let said = session.refused("write_plan", json!({ "name": "p", "content": format!("{most}x") }));
    let expected = "plan \"p\" content is too large to store (10485761 bytes; max 10485760)";
    assert!(said.starts_with(expected), "{said}");
    let read = session.call("read_plan", json!({ "name": "p" })).value;
    assert_eq!(read["content"].as_str().unwrap().len(), 256 * 1024);
    assert_eq!(read["bytes"], most.len());
    assert!(read["cut"].as_str().unwrap().contains("export_plan_to_file"));
    // Two bytes a character: no half of one is shown.
    session.call("write_plan", json!({ "name": "q", "content": format!("x{}", "é".repeat(200_000)) }));
    let read = session.call("read_plan", json!({ "name": "q" })).value;
    assert_eq!(read["content"].as_str().unwrap().len(), 256 * 1024 - 1);
}

#[test]
fn the_list_is_sorted_bounded_and_goes_on() {
    let session = session(Toolset::Plans, "main");
    for number in (0..53).rev() {
        session.call("write_plan", json!({ "name": format!("p{number:02}"), "content": "x" }));
    }
    let first = session.call("list_plans", json!({})).value;
    let names = |page: &Value| -> Vec<String> {
        let plans = page["plans"].as_array().unwrap().iter();
        plans.map(|plan| plan["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((names(&first).len(), first["total"].as_u64()), (50, Some(53)));
    let rest = session.call("list_plans", json!({ "after": first["next"] })).value;
    assert_eq!(names(&rest), ["p50", "p51", "p52"]);
    assert_eq!(rest.get("next"), None);
}

#[test]
fn a_name_may_be_as_long_as_an_id_and_plans_of_others_can_be_named() {
    let world = World::new();
    let session = plans(&world, "main");
    session.call("write_plan", json!({ "name": "a".repeat(128), "content": "x" }));
    let said = session.refused("write_plan", json!({ "name": "a".repeat(129), "content": "x" }));
    assert!(said.contains("129 bytes") && said.contains("128"), "{said}");
    let new = waypost_store::NewPlan {
        id: Some(waypost_core::PlanId::new("Upper.2").unwrap()),
        by: waypost_core::Actor::person("ada"),
        draft: waypost_core::Draft::new("Made elsewhere"),
        approval_required: None,
    };
    direct_writes::create(&world.plans, new);
    assert_eq!(session.call("read_plan", json!({ "name": "Upper.2" })).value["title"], "Made elsewhere");
    session.call("set_plan_status", json!({ "name": "Upper.2", "status": "seen" }));
    assert!(
        session.refused("write_plan", json!({ "name": "Upper.3", "content": "x" })).starts_with("invalid")
    );
}
