//! Files of clido and frctl, and the folders of other programs: what is read of them, and what is written into them.

use std::fs;

use serde_json::{Value, json};

use crate::run::{configure, text};
use crate::transcript::Workspace;

const CAT: &str = "default_executor = \"run\"\n[executors.run]\nkind = \"process\"\nshell = true\n\
                   command = [\"cat > in.$WAYPOST_TASK; test $WAYPOST_TASK != t1 -o -e mended\"]\n";

fn put(workspace: &Workspace, name: &str, value: &Value) {
    let path = workspace.work().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, value.to_string()).unwrap();
}

fn get(workspace: &Workspace, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(workspace.work().join(name)).unwrap()).unwrap()
}

#[track_caller]
fn does(workspace: &Workspace, words: &[&str]) -> (String, String) {
    let output = workspace.at_terminal(words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    text(&output)
}

fn clido(id: &str, tasks: Value) -> Value {
    json!({ "meta": { "id": id, "goal": "a goal", "created_at": "2026-03-22T10:00:00Z" }, "tasks": tasks })
}

/// A plan of which `a` is skipped by its author, and `c` has failed.
fn with_skip() -> Value {
    let task =
        |id: &str, on: &[&str]| json!({ "id": id, "description": format!("do {id}"), "depends_on": on });
    let (mut a, mut c) = (task("a", &[]), task("c", &[]));
    a["skip"] = true.into();
    c["status"] = "failed".into();
    clido("plan-skip", json!([a, task("b", &["a"]), c, task("d", &["c"]), task("e", &[])]))
}

#[test]
fn what_its_author_skips_is_seen_before_the_plan_starts() {
    let workspace = Workspace::new();
    put(&workspace, "p.json", &with_skip());
    does(&workspace, &["import", "p.json"]);
    let (shown, _) = does(&workspace, &["show", "plan-skip"]);
    assert!(shown.contains("⊘ skip      a  do a"), "{shown}");
    let (rows, _) = does(&workspace, &["show", "plan-skip", "--json"]);
    let rows: Value = serde_json::from_str(&rows).unwrap();
    assert_eq!((&rows["tasks"][0]["skip"], rows["tasks"][1].get("skip")), (&true.into(), None));
    let (why, _) = does(&workspace, &["why", "plan-skip", "a"]);
    assert!(why.starts_with("a is to be skipped, and waits for:\n  nothing: its author skips it"), "{why}");
    let (why, _) = does(&workspace, &["why", "plan-skip", "b"]);
    let ready = "b is ready: it waits only to be started (`waypost next plan-skip --claim`)\n";
    assert_eq!(why, ready, "what is skipped keeps nothing waiting");
    let (graph, _) = does(&workspace, &["graph", "plan-skip"]);
    assert!(graph.contains("n0[/\"⊘ a: do a\"/]:::skipped"), "{graph}");
    let (tree, _) = does(&workspace, &["graph", "plan-skip", "--format", "ascii"]);
    assert!(tree.contains("[S] a  do a"), "{tree}");
}

#[test]
fn a_preview_of_a_run_lists_what_the_run_would_do() {
    let workspace = Workspace::new();
    configure(&workspace, CAT);
    put(&workspace, "p.json", &with_skip());
    let batches = |words: &[&str]| -> Vec<Vec<String>> {
        let words = [&["run"], words, &["--dry-run", "--json"]].concat();
        let shown: Value = serde_json::from_str(&does(&workspace, &words).0).unwrap();
        let batch = |batch: &Value| {
            batch.as_array().unwrap().iter().map(|task| task["task"].as_str().unwrap().to_owned()).collect()
        };
        shown["batches"].as_array().unwrap().iter().map(batch).collect()
    };
    assert_eq!(
        batches(&["p.json"]),
        [["b", "e"]],
        "neither the skipped, nor the failed, nor what waits for it"
    );
    assert_eq!(batches(&["p.json", "--retry-failed"]), [vec!["b", "c", "e"], vec!["d"]]);
    // And so it is.
    let output = workspace.at_terminal(&["run", "p.json", "--yes"]);
    assert_eq!(output.status.code(), Some(1), "c had failed: {output:?}");
    let ran = |id: &str| workspace.work().join(format!("in.{id}")).exists();
    assert_eq!(["a", "b", "c", "d", "e"].map(ran), [false, true, false, false, true]);
    assert_eq!(batches(&["plan-skip"]), Vec::<Vec<String>>::new());
}

#[test]
fn what_failed_is_run_again_when_asked_to() {
    let workspace = Workspace::new();
    configure(&workspace, CAT);
    let tasks = json!([
        { "id": "t1", "description": "do t1", "depends_on": [] },
        { "id": "t2", "description": "do t2", "depends_on": ["t1"] },
    ]);
    put(&workspace, "p.json", &clido("plan-retry", tasks));
    let run = |words: &[&str]| workspace.at_terminal(&[&["run", "p.json", "--yes"], words].concat());
    assert_eq!(run(&[]).status.code(), Some(1));
    let again = run(&[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again).1.contains("`waypost run plan-retry --retry-failed`"), "{again:?}");
    fs::write(workspace.work().join("mended"), "").unwrap();
    let output = run(&["--retry-failed"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = run(&["--retry-failed"]);
    assert_eq!(output.status.code(), Some(0), "nothing has failed, and that is no error: {output:?}");
}

#[test]
fn programs_are_told_the_tools_and_the_complexity() {
    let workspace = Workspace::new();
    configure(&workspace, CAT);
    let tasks = json!([
        { "id": "a", "description": "a", "depends_on": [], "tools": ["Read", "Edit"], "complexity": "high" },
        { "id": "b", "description": "b", "depends_on": [] },
    ]);
    put(&workspace, "p.json", &clido("plan-tools", tasks));
    let output = workspace.at_terminal(&["run", "p.json", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (a, b) = (get(&workspace, "in.a"), get(&workspace, "in.b"));
    assert_eq!((&a["tools"], &a["complexity"]), (&json!(["Read", "Edit"]), &json!("high")));
    assert_eq!((b.get("tools"), b.get("complexity")), (None, None));
}

fn goal(id: &str, parent: Value, children: &[&str], depth: u8, status: &str) -> Value {
    json!({
        "id": id, "description": format!("goal {id}"), "status": status, "parent_id": parent,
        "child_ids": children, "depth": depth, "created_at": "2025-11-30T10:00:00Z",
        "updated_at": "2025-11-30T10:05:00Z", "reasoning": null, "digest": null, "tokens_used": 5,
        "dependencies": [], "graph_node_id": null,
    })
}

/// A goal tree: `r` with `g1`, which is atomic, and `g2`, which is `second`.
fn frctl(id: &str, root: &str, second: &str) -> Value {
    json!({
        "id": id, "root_goal_id": "r", "description": "a tree", "status": "in_progress",
        "created_at": "2025-11-30T10:00:00Z", "updated_at": "2025-11-30T05:15:00.714827-05:00",
        "total_tokens": 15, "max_depth": 1, "finished_at": "mine",
        "goals": {
            "r": goal("r", Value::Null, &["g1", "g2"], 0, root),
            "g1": goal("g1", "r".into(), &[], 1, "atomic"),
            "g2": goal("g2", "r".into(), &[], 1, second),
        },
    })
}

#[test]
fn a_plan_that_was_only_stored_is_written_as_it_was_read() {
    let workspace = Workspace::new();
    let mut odd = clido("../x", json!([{ "id": "t1", "description": "d", "depends_on": [] }]));
    odd["meta"]["created_at"] = "soon".into();
    let plans = [
        ("clido", odd),
        ("frctl", frctl("aaaa0001", "failed", "pending")),
        ("frctl", frctl("aaaa0002", "decomposing", "complete")),
        ("frctl", frctl("aaaa0003", "complete", "failed")),
    ];
    for (format, plan) in plans {
        put(&workspace, "p.json", &plan);
        let (id, _) = does(&workspace, &["import", "p.json"]);
        let (written, _) = does(&workspace, &["export", id.trim(), "--format", format]);
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), plan, "{format}");
    }
}

#[test]
fn the_time_of_the_latest_change_is_written() {
    let workspace = Workspace::new();
    let plan = frctl("aaaa0001", "decomposing", "atomic");
    put(&workspace, "p.json", &plan);
    does(&workspace, &["import", "p.json"]);
    does(&workspace, &["task", "revise", "aaaa0001", "g1", "--description", "another one"]);
    let (written, _) = does(&workspace, &["export", "aaaa0001", "--format", "frctl"]);
    let written: Value = serde_json::from_str(&written).unwrap();
    let time = |plan: &Value, pointer: &str| plan.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    for changed in ["/updated_at", "/goals/g1/updated_at"] {
        assert_ne!(time(&written, changed), time(&plan, changed), "{changed}");
    }
    for same in ["/created_at", "/goals/g1/created_at", "/goals/g2/updated_at"] {
        assert_eq!(time(&written, same), time(&plan, same), "{same}");
    }
}

#[test]
fn a_strict_import_is_exact_or_refused() {
    let workspace = Workspace::new();
    let refused = |plan: &Value, named: &str| {
        put(&workspace, "p.json", plan);
        let output = workspace.at_terminal(&["import", "p.json", "--strict"]);
        let (_, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{plan}: {err}");
        assert!(err.contains(named), "{named}: {err}");
        assert!(text(&workspace.waypost(&["list", "--json"])).0.contains("\"total\":0"), "{plan}");
    };
    let with = |field: &str, value: Value| {
        let mut task = json!({ "id": "t1", "description": "d", "depends_on": [], "status": "pending" });
        task[field] = value;
        clido("plan-strict", json!([task]))
    };
    refused(&with("status", "running".into()), "p.json: task t1 is running, and is read as pending");
    refused(&with("status", "blocked".into()), "task t1: `status` is \"blocked\", which is read as pending");
    refused(&with("status", "completed".into()), "task t1: `status` is \"completed\", which is read as done");
    refused(&with("complexity", "HIGH".into()), "task t1: `complexity` is \"HIGH\", which is read as high");
    refused(&with("skip", "true".into()), "task t1: `skip` is \"true\", which is read as true");
    refused(&with("tools", "Read".into()), "task t1: `tools` is \"Read\", which is read as a list of one");
    refused(&with("id", 7.into()), "`id` is 7, which is read as \"7\"");
    let step = json!({ "id": "step_1", "description": "d", "status": "blocked" });
    let jaato = json!({ "plan_id": "j1", "title": "j", "status": "active", "steps": [step] });
    refused(&jaato, "task step_1: `status` is \"blocked\", which is read as pending");
    let step = json!({ "id": "step_1", "description": "d", "status": "pending", "depends_on": [
        { "agent_id": "q", "step_id": "z" }], "received_outputs": { "q:z": { "v": 1 } } });
    let jaato = json!({ "plan_id": "j1", "title": "j", "status": "active", "steps": [step] });
    refused(&jaato, "p.json: task step_1: what it received is not taken over");
    let mut plan = with("notes", "".into());
    plan["meta"]["created_at"] = "soon".into();
    refused(&plan, "plan: `meta.created_at` is \"soon\", which is read as no time");
    let mut plan = frctl("aaaa0001", "decomposing", "pending");
    plan["total_tokens"] = "15".into();
    refused(&plan, "plan: `total_tokens` is \"15\", which is read as 15");
    refused(
        &frctl("aaaa0001", "failed", "pending"),
        "goal r is failed, but it ends as the goals below it do: it is pending here",
    );
    let long = with("notes", "".into())
        .to_string()
        .replace("\"depends_on\"", "\"n\":123456789012345678901,\"depends_on\"");
    fs::write(workspace.work().join("p.json"), long).unwrap();
    let output = workspace.at_terminal(&["import", "p.json", "--strict"]);
    assert!(
        text(&output).1.contains("line 1: the number 123456789012345678901 has too many digits"),
        "{output:?}"
    );
    put(&workspace, "p.json", &with("notes", "exact".into()));
    does(&workspace, &["import", "p.json", "--strict"]);
}

#[test]
fn a_later_version_of_frctl_is_refused_with_a_hint() {
    let workspace = Workspace::new();
    let mut plan = frctl("aaaa0001", "decomposing", "pending");
    plan["schema_version"] = "2.1".into();
    put(&workspace, "p.json", &plan);
    let output = workspace.at_terminal(&["import", "p.json"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(
        err.contains("version 2.1") && err.contains("hint: update Waypost, or save the plan in version 1.0"),
        "{err}"
    );
}

#[test]
fn frctls_index_is_kept_beside_its_plans() {
    let workspace = Workspace::new();
    let (first, second) = (".frctl/plans/aaaa0001.json", ".frctl/plans/aaaa0002.json");
    put(&workspace, first, &frctl("aaaa0001", "decomposing", "pending"));
    put(&workspace, second, &frctl("aaaa0002", "decomposing", "complete"));
    does(&workspace, &["import", ".frctl/plans"]);
    does(&workspace, &["export", "aaaa0001", "--format", "frctl", "--force", "--output", first]);
    let line = |index: &Value, id: &str| -> Value {
        let lines = index["plans"].as_array().unwrap();
        lines.iter().find(|line| line["id"] == id).cloned().unwrap_or_default()
    };
    let index = get(&workspace, ".frctl/plans/index.json");
    let counts = ["total_goals", "atomic_goals", "complete_goals"];
    assert_eq!(counts.map(|name| line(&index, "aaaa0001")[name].as_i64().unwrap()), [3, 1, 0]);
    assert_eq!(line(&index, "aaaa0001")["updated_at"], "2025-11-30T05:15:00.714827-05:00");
    does(&workspace, &["done", "aaaa0002", "g1"]);
    workspace.at_terminal(&["run", second, "--write-back", "--yes"]);
    let index = get(&workspace, ".frctl/plans/index.json");
    assert_eq!(counts.map(|name| line(&index, "aaaa0002")[name].as_i64().unwrap()), [3, 2, 3]);
    assert_eq!(line(&index, "aaaa0002")["status"], "complete");
    assert_eq!(line(&index, "aaaa0001")["total_goals"], 3, "the other line stays: {index}");
    assert_eq!(get(&workspace, second)["goals"]["r"]["status"], "complete");
    // Elsewhere, nobody looks for an index.
    does(&workspace, &["export", "aaaa0001", "--format", "frctl", "--output", "alone.json"]);
    assert!(!workspace.work().join("index.json").exists());
}

#[test]
fn plans_of_other_programs_are_mentioned_until_they_are_imported() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.work().join(".git")).unwrap();
    let task = json!({ "id": "t1", "description": "d", "depends_on": [] });
    put(&workspace, ".clido/plans/plan-1.json", &clido("plan-1", json!([task])));
    put(&workspace, ".frctl/plans/aaaa0001.json", &frctl("aaaa0001", "decomposing", "pending"));
    let master = json!({ "id": 1, "title": "a", "description": "", "status": "pending", "dependencies": [] });
    put(&workspace, ".taskmaster/tasks/tasks.json", &json!({ "master": { "tasks": [master] } }));
    put(
        &workspace,
        ".jaato/plans.json",
        &json!({ "j1": { "plan_id": "j1", "title": "j", "status": "active", "started": false, "steps": [] } }),
    );
    let folders = [".clido/plans", ".frctl/plans", ".taskmaster", ".jaato"];
    for at in 0..=folders.len() {
        let (_, said) = does(&workspace, &["list"]);
        let (listed, _) = does(&workspace, &["list", "--json"]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let named = listed["other_folders"].as_array().cloned().unwrap_or_default();
        let named: Vec<&str> = named.iter().map(|folder| folder["folder"].as_str().unwrap()).collect();
        assert_eq!(named, folders[at..], "{listed}");
        for folder in folders {
            let mentions = said.contains(&format!(
                "{folder} holds 1 plan of another program; to import: `waypost import {folder}`"
            ));
            assert_eq!(mentions, folders[at..].contains(&folder), "{said}");
        }
        if let Some(folder) = folders.get(at) {
            does(&workspace, &["import", folder]);
        }
    }
}

#[test]
fn a_long_cycle_is_shortened() {
    let workspace = Workspace::new();
    let task = |n: usize| json!({ "id": format!("t{n}"), "description": "d", "depends_on": [format!("t{}", (n + 1) % 500)] });
    put(&workspace, "p.json", &clido("plan-ring", (0..500).map(task).collect()));
    let output = workspace.at_terminal(&["import", "p.json"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(4));
    assert!(err.contains("tasks depend on each other: t0 → t1 → "), "{err}");
    assert!(err.contains(" → … 489 more … → ") && err.len() < 500, "{err}");
}

#[test]
fn the_same_file_without_an_id_is_imported_and_run_once() {
    let files = [
        ("l.md", "# T\n\n- [ ] one\n- [ ] two\n"),
        ("m.md", "---\ntitle: M\n---\n\n## Tasks\n\n- [ ] one\n"),
        ("n.json", r#"{"format":"waypost/1","title":"N","tasks":[{"id":"t9","description":"d"}]}"#),
        ("j.json", r#"{"title":"J","steps":["a","b"]}"#),
        ("c.json", r#"{"goal":"G","tasks":[{"id":"t9","description":"d"}]}"#),
        (
            "f.json",
            r#"{"schema_version":"1.0","id":"../x","title":"F","root_goal_id":"r","goals":{"r":{"id":"r","description":"root","child_ids":["k"]},"k":{"id":"k","description":"kid","parent_id":"r"}}}"#,
        ),
    ];
    for (name, content) in files {
        let workspace = Workspace::new();
        configure(
            &workspace,
            "default_executor = \"run\"\n[executors.run]\nkind = \"process\"\nshell = true\ncommand = [\"echo $WAYPOST_TASK >> ran\"]\n",
        );
        fs::write(workspace.work().join(name), content).unwrap();
        let run = || does(&workspace, &["run", name, "--yes", "--write-back"]);
        let plans = || -> usize {
            let listed: Value = serde_json::from_str(&does(&workspace, &["list", "--json"]).0).unwrap();
            listed["plans"].as_array().unwrap().len()
        };
        let ran = || fs::read_to_string(workspace.work().join("ran")).unwrap().lines().count();
        run();
        let once = ran();
        run();
        assert_eq!((plans(), ran()), (1, once), "{name}");
        let (_, said) = does(&workspace, &["import", name]);
        assert!(said.contains("has not changed since"), "{name}: {said}");
        assert_eq!(plans(), 1, "{name}");

        let imported = Workspace::new();
        fs::write(imported.work().join(name), content).unwrap();
        let (first, _) = does(&imported, &["import", name]);
        let (again, said) = does(&imported, &["import", name]);
        assert_eq!(first, again, "{name}");
        assert!(said.contains("has not changed since"), "{name}: {said}");
    }
}

#[test]
fn a_file_whose_id_another_plan_has_is_imported_once() {
    let workspace = Workspace::new();
    let flat =
        |task: &str| json!({ "goal": "the same goal", "tasks": [{ "id": "t1", "description": task }] });
    put(&workspace, "first.json", &flat("one"));
    put(&workspace, "second.json", &flat("other"));
    let import = |name: &str| does(&workspace, &["import", name]);
    let (first, _) = import("first.json");
    let (second, said) = import("second.json");
    assert_ne!(first, second);
    assert!(said.contains(&format!("the id {} is taken", first.trim())), "{said}");
    let (again, said) = import("second.json");
    assert_eq!(again, second);
    assert!(said.contains("has not changed since"), "{said}");
    assert_eq!(import("first.json").0, first);
    // A run takes the same file for the same plan.
    configure(&workspace, "[executors.run]\nkind = \"process\"\ncommand = [\"true\"]\n");
    does(&workspace, &["run", "second.json", "--executor", "run"]);
    let phase = |plan: &str| {
        let shown: Value =
            serde_json::from_str(&does(&workspace, &["show", plan.trim(), "--json"]).0).unwrap();
        shown["phase"].as_str().unwrap().to_owned()
    };
    assert_eq!((phase(&first).as_str(), phase(&second).as_str()), ("draft", "completed"));
}

#[test]
fn every_command_says_the_same_about_what_waits_only_for_a_skipped_task() {
    let tasks = json!([
        { "id": "a", "description": "x", "skip": true, "depends_on": [] },
        { "id": "b", "description": "y", "depends_on": ["a"] },
        { "id": "c", "description": "z", "depends_on": ["b"] },
    ]);
    let workspace = Workspace::new();
    for plan in ["one", "two"] {
        put(&workspace, "p.json", &clido(plan, tasks.clone()));
        let (_, said) = does(&workspace, &["import", "p.json"]);
        assert!(said.contains("as plan"), "{said}");
        assert_eq!(does(&workspace, &["next", plan]).0, "b  y\n");
        let ready = format!("b is ready: it waits only to be started (`waypost next {plan} --claim`)\n");
        assert_eq!(does(&workspace, &["why", plan, "b"]).0, ready);
        let (why, _) = does(&workspace, &["why", plan, "c"]);
        assert!(why.contains("c is blocked, and waits for:\n  b (ready)"), "{why}");
        let (shown, _) = does(&workspace, &["show", plan]);
        assert!(shown.contains("○ ready     b  y"), "{shown}");
        let rows: Value = serde_json::from_str(&does(&workspace, &["show", plan, "--json"]).0).unwrap();
        let standing = |at: usize| rows["tasks"][at]["standing"].as_str().unwrap();
        assert_eq!([standing(0), standing(1), standing(2)], ["skipped", "ready", "blocked"], "{rows}");
        let counts = |name: &str| rows["counts"][name].as_u64().unwrap();
        assert_eq!(["skipped", "ready", "blocked"].map(counts), [1, 1, 1], "{rows}");
        assert!(shown.contains("0/3 done (0%), 1 skipped, 1 ready, 1 blocked"), "{shown}");
        let listed: Value = serde_json::from_str(&does(&workspace, &["list", "--json"]).0).unwrap();
        let found = listed["plans"].as_array().unwrap().iter().find(|found| found["id"] == plan).unwrap();
        assert_eq!(found["counts"], rows["counts"], "a list and a plan count alike");
        let (ready, _) = does(&workspace, &["next"]);
        assert!(ready.contains(&format!("{plan}/b  y\n")), "{ready}");
        let (task, _) = does(&workspace, &["task", "show", plan, "b"]);
        assert!(task.contains("○ ready") && !task.contains("waits for"), "{task}");
        let task: Value =
            serde_json::from_str(&does(&workspace, &["task", "show", plan, "b", "--json"]).0).unwrap();
        assert_eq!(
            (&task["task"]["standing"], &task["task"]["waits_for"]),
            (&json!("ready"), &json!([])),
            "{task}"
        );
        let (graph, _) = does(&workspace, &["graph", plan]);
        assert!(graph.contains("○ b: y") && graph.contains("◌ c: z"), "{graph}");
        let (dry, _) = does(&workspace, &["run", plan, "--dry-run"]);
        assert!(dry.contains("batch 1\n  b  "), "{dry}");
    }
    does(&workspace, &["next", "one", "--claim"]);
    does(&workspace, &["start", "two", "b"]);
    for plan in ["one", "two"] {
        let rows: Value = serde_json::from_str(&does(&workspace, &["show", plan, "--json"]).0).unwrap();
        let standing = |at: usize| rows["tasks"][at]["standing"].as_str().unwrap();
        assert_eq!([standing(0), standing(1), standing(2)], ["skipped", "running", "blocked"], "{plan}");
    }
}

#[test]
fn an_update_removes_nothing_without_naming_it() {
    let workspace = Workspace::new();
    let task = json!({ "id": "a", "description": "x", "notes": "N", "tools": ["Read"], "complexity": "high", "skip": true, "x": 1 });
    let plan = json!({ "format": "waypost/1", "id": "q", "title": "P", "goal": "P", "tasks": [task] });
    put(&workspace, "n.json", &plan);
    does(&workspace, &["import", "n.json"]);
    let stored = || does(&workspace, &["export", "q", "--format", "native"]).0;
    let before = stored();
    // A file of another program that leaves something out says nothing about it.
    put(&workspace, "c.json", &json!({ "goal": "P", "tasks": [{ "id": "a", "description": "x" }] }));
    let (_, said) = does(&workspace, &["update", "q", "--from-file", "c.json", "--format", "clido"]);
    assert!(!said.contains("removed"), "{said}");
    assert_eq!(stored(), before);
    // Waypost leaves out what is empty, so leaving it out removes it.
    let mut shorter = plan.clone();
    shorter["tasks"] = json!([{ "id": "a", "description": "x", "complexity": "high" }]);
    put(&workspace, "n.json", &shorter);
    let (_, said) = does(&workspace, &["update", "q", "--from-file", "n.json"]);
    assert!(said.contains("removed: notes of a, tools of a, skip of a, foreign of a"), "{said}");
}

#[test]
fn what_is_removed_from_a_file_of_agora_is_removed_from_the_plan() {
    let workspace = Workspace::new();
    let item = json!({
        "id": "a", "executor": "noop", "inputs": { "n": 1, "deep": { "x": 1, "y": 2 } }, "depends_on": [],
        "resourceLocks": ["l"], "subagentShape": "s", "trigger": "nightly", "openEnded": true,
    });
    put(
        &workspace,
        "r.json",
        &json!({ "id": "r", "queue": "default", "items": [item], "team": "blue", "note": 1 }),
    );
    does(&workspace, &["import", "r.json"]);
    let mut run: Value =
        serde_json::from_str(&does(&workspace, &["export", "r", "--format", "agora"]).0).unwrap();
    run.as_object_mut().unwrap().remove("team");
    let item = run["items"][0].as_object_mut().unwrap();
    item.remove("subagentShape");
    item.remove("trigger");
    item["resourceLocks"] = json!([]);
    item["inputs"] = json!({ "deep": { "y": 2 } });
    put(&workspace, "r.json", &run);
    let (_, said) = does(&workspace, &["update", "r", "--from-file", "r.json"]);
    let expected = "removed: the plan's foreign.agora.team, locks of a, work.inputs.n of a, work.inputs.deep.x of a, \
                    work.shape of a, foreign.agora.trigger of a";
    assert!(said.contains(expected), "{said}");
    let again: Value =
        serde_json::from_str(&does(&workspace, &["export", "r", "--format", "agora"]).0).unwrap();
    assert_eq!(again, run);
}

#[test]
fn an_edited_lock_leaves_the_result_of_a_task_alone() {
    let workspace = Workspace::new();
    let locks = json!(["l1", { "key": "l2", "mode": "shared" }]);
    let task = json!({ "id": "a", "description": "x", "locks": locks, "status": "done" });
    put(&workspace, "n.json", &json!({ "format": "waypost/1", "id": "p", "title": "P", "tasks": [task] }));
    does(&workspace, &["import", "n.json"]);
    let (run, _) = does(&workspace, &["export", "p", "--format", "agora", "--form", "program"]);
    fs::write(workspace.work().join("a.json"), run.replace("\"l1\"", "\"l9\"")).unwrap();
    does(&workspace, &["update", "p", "--from-file", "a.json"]);
    let stored: Value =
        serde_json::from_str(&does(&workspace, &["export", "p", "--format", "native"]).0).unwrap();
    let stored = &stored["tasks"][0];
    assert_eq!(stored["locks"], json!(["l9", { "key": "l2", "mode": "shared" }]));
    assert_eq!(stored["state"]["status"], "done", "{stored}");
}
