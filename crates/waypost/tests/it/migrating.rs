//! Every command of docs/migrating.md, pasted into a shell in a folder with files of the shape that the other program writes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::run::text;
use crate::transcript::Workspace;

/// A section of the page: its heading, the files of the other program, and what each command prints, by how its line begins.
struct Section {
    heading: &'static str,
    files: Vec<(&'static str, String)>,
    expected: &'static [(&'static str, &'static [&'static str])],
    /// The files that the commands may change, and what stands in them afterwards.
    changed: &'static [(&'static str, &'static [&'static str])],
}

fn sections() -> [Section; 6] {
    [
        Section {
            heading: "beads",
            files: vec![(".beads/issues.jsonl", beads())],
            expected: &[
                ("waypost import .beads/issues.jsonl", &["shop"]),
                ("waypost show shop", &["○ ready", "shop-a1", "◌ blocked", "shop-b2", "✓ done", "shop-c3"]),
                ("waypost next shop --claim", &["shop-a1"]),
                ("waypost done shop shop-a1", &["shop-a1 is done"]),
                ("waypost export shop", &["bd close shop-a1\n", "bd close shop-c3\n"]),
            ],
            changed: &[],
        },
        Section {
            heading: "Backlog.md",
            files: backlog(),
            expected: &[
                ("waypost import backlog/tasks", &["board"]),
                ("waypost show board", &["○ ready", "TASK-1", "◌ blocked", "TASK-2"]),
                ("waypost next board --claim", &["TASK-1"]),
                ("waypost done board TASK-1", &["TASK-1 is done"]),
                ("waypost export board", &["backlog task edit TASK-1 -s Done\n"]),
            ],
            changed: &[],
        },
        Section {
            heading: "task-master",
            files: vec![(".taskmaster/tasks/tasks.json", task_master())],
            expected: &[
                ("waypost import .taskmaster/tasks/tasks.json", &["boat"]),
                ("waypost show boat", &["✓ done", "Choose the boat", "○ ready", "2.1"]),
                ("waypost next boat --claim", &["2.1"]),
                ("waypost done boat 2.1", &["2.1 is done"]),
                (
                    "waypost export boat",
                    &[
                        "task-master set-status --id=1 --status=done\n",
                        "task-master set-status --id=2.1 --status=done\n",
                    ],
                ),
            ],
            changed: &[],
        },
        Section {
            heading: "clido",
            files: vec![(".clido/plans/plan-0c0ffee0.json", clido())],
            expected: &[
                ("waypost link .clido/plans", &[]),
                ("waypost show plan-0c0ffee0", &["Brew coffee", "○ ready", "t1", "◌ blocked", "t2"]),
                ("waypost next plan-0c0ffee0 --claim", &["t1"]),
                ("waypost done plan-0c0ffee0 t1", &["t1 is done"]),
                ("waypost unlink .clido/plans", &[]),
                ("waypost export plan-0c0ffee0", &[]),
            ],
            changed: &[(".clido/plans/plan-0c0ffee0.json", &["\"status\": \"done\"", "\"tools\": null"])],
        },
        Section {
            heading: "frctl",
            files: vec![
                (".frctl/plans/0b0b0b0b.json", frctl()),
                (".frctl/plans/index.json", "{}".to_owned()),
            ],
            expected: &[
                ("waypost link .frctl/plans", &[]),
                ("waypost show 0b0b0b0b", &["Make a garden", "0b0b0b0b-g1"]),
                ("waypost next 0b0b0b0b --claim", &["0b0b0b0b-g1"]),
                ("waypost done 0b0b0b0b 0b0b0b0b-g1", &["0b0b0b0b-g1 is done"]),
                ("waypost unlink .frctl/plans", &[]),
                ("waypost export 0b0b0b0b", &[]),
            ],
            changed: &[
                (".frctl/plans/0b0b0b0b.json", &["\"status\": \"complete\""]),
                (".frctl/plans/index.json", &["0b0b0b0b"]),
            ],
        },
        Section {
            heading: "jaato",
            files: vec![(".jaato/plans.json", jaato())],
            expected: &[
                ("waypost import .jaato/plans.json", &["plan_77"]),
                ("waypost show plan_77", &["Paint the fence", "step_1", "step_2"]),
                ("waypost next plan_77 --claim", &["step_1"]),
                ("waypost done plan_77 step_1", &["step_1 is done"]),
                ("waypost export plan_77", &[]),
            ],
            changed: &[(
                ".jaato/plans.json",
                &["\"status\": \"completed\"", "\"smooth\": true", "\"plan_78\": {", "Mow the lawn"],
            )],
        },
    ]
}

fn beads() -> String {
    let issue = |id: &str, title: &str, status: &str, priority: u8, dependencies: Value| {
        json!({
            "id": id, "title": title, "description": "", "status": status, "priority": priority, "issue_type": "task",
            "created_at": "2026-01-01T10:00:00Z", "updated_at": "2026-01-02T10:00:00Z", "dependencies": dependencies,
        })
        .to_string()
    };
    let blocks = |on: &str| json!([{ "issue_id": "shop-b2", "depends_on_id": on, "type": "blocks" }]);
    [
        issue("shop-a1", "Find who writes to the cart", "open", 0, json!([])),
        issue("shop-b2", "Lock the cart", "open", 1, blocks("shop-a1")),
        issue("shop-c3", "Ask support", "closed", 2, json!([])),
    ]
    .map(|line| line + "\n")
    .concat()
}

fn backlog() -> Vec<(&'static str, String)> {
    let task = |id: &str, title: &str, dependencies: &str| {
        format!(
            "---\nid: {id}\ntitle: {title}\nstatus: To Do\nassignee: []\ncreated_date: '2026-01-01 07:00'\nlabels: []\n\
             dependencies: {dependencies}\npriority: high\n---\n\n## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\n\
             As agreed.\n<!-- SECTION:DESCRIPTION:END -->\n"
        )
    };
    vec![
        ("backlog/tasks/task-1 - List-the-rooms.md", task("TASK-1", "List the rooms", "[]")),
        ("backlog/tasks/task-2 - Paint-them.md", task("TASK-2", "Paint them", "[TASK-1]")),
    ]
}

fn task_master() -> String {
    let task = |id: u8, title: &str, status: &str, on: Value, subtasks: Value| {
        json!({
            "id": id, "title": title, "description": "", "status": status, "dependencies": on, "priority": "medium",
            "details": "", "testStrategy": "It floats.", "subtasks": subtasks,
        })
    };
    let part = |id: u8, title: &str, on: Value| json!({ "id": id, "title": title, "description": "", "status": "pending", "dependencies": on });
    let parts = json!([part(1, "Caulk", json!([])), part(2, "Paint", json!([1]))]);
    let tasks = json!([
        task(1, "Choose the boat", "done", json!([]), json!([])),
        task(2, "Make it fit for sea", "pending", json!([1]), parts),
    ]);
    json!({ "master": { "tasks": tasks, "metadata": { "created": "2026-01-01T00:00:00.000Z" } } }).to_string()
}

fn clido() -> String {
    let task = |id: &str, description: &str, on: Value| {
        json!({
            "id": id, "description": description, "depends_on": on, "tools": null, "complexity": "low", "skip": false,
            "notes": "", "status": "pending",
        })
    };
    let meta = json!({ "id": "plan-0c0ffee0", "goal": "Brew coffee", "created_at": "2026-03-22T10:00:00Z" });
    let tasks = json!([task("t1", "Grind", json!([])), task("t2", "Brew", json!(["t1"]))]);
    serde_json::to_string_pretty(&json!({ "meta": meta, "tasks": tasks })).unwrap()
}

fn frctl() -> String {
    let goal = |id: &str, description: &str, parent: Value, children: Value, depth: u8, status: &str| {
        json!({
            "id": id, "description": description, "status": status, "parent_id": parent, "child_ids": children,
            "depth": depth, "created_at": "2026-05-01T12:00:00.000000Z", "updated_at": "2026-05-01T12:00:00.000000Z",
            "reasoning": null, "digest": null, "tokens_used": 0, "dependencies": [], "graph_node_id": null,
        })
    };
    let (root, one) = ("0b0b0b0b-root", "0b0b0b0b-g1");
    let plan = json!({
        "id": "0b0b0b0b", "root_goal_id": root,
        "goals": {
            root: goal(root, "Make a garden", Value::Null, json!([one]), 0, "complete"),
            one: goal(one, "Dig", root.into(), json!([]), 1, "atomic"),
        },
        "created_at": "2026-05-01T12:00:00.000000Z", "updated_at": "2026-05-01T13:00:00.000000Z",
        "status": "in_progress", "total_tokens": 0, "max_depth": 1,
    });
    serde_json::to_string_pretty(&plan).unwrap()
}

fn jaato() -> String {
    let step = |number: u8, description: &str| {
        json!({
            "step_id": format!("step_{number}"), "sequence": number, "description": description, "status": "pending",
            "started_at": null, "completed_at": null, "result": null, "error": null,
        })
    };
    let plan = |id: &str, title: &str| {
        json!({
            "plan_id": id, "title": title, "created_at": "2026-05-01T12:00:00Z", "status": "active",
            "started": false, "steps": [step(1, "Sand"), step(2, "Paint")], "current_step": null,
            "completed_at": null, "summary": null, "context": {},
        })
    };
    let plans =
        json!({ "plan_77": plan("plan_77", "Paint the fence"), "plan_78": plan("plan_78", "Mow the lawn") });
    serde_json::to_string_pretty(&plans).unwrap()
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/migrating.md")).unwrap()
}

/// The commands of a section.
fn commands<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1);
    let section = section.unwrap_or_else(|| panic!("no section {heading}")).split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn every_command_of_the_page_works_on_files_of_the_other_program() {
    let page = page();
    for Section { heading, files, expected, changed } in sections() {
        let workspace = Workspace::new();
        for (name, content) in &files {
            let path = workspace.work().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let commands = commands(&page, heading);
        assert_eq!(commands.len(), expected.len(), "{heading}: {commands:?}");
        for (line, (command, promised)) in commands.iter().zip(expected) {
            assert!(line.starts_with(command), "{line:?} is where {command:?} was expected");
            let mut shell = workspace.command("sh");
            let output = shell.env("WAYPOST_INJECTED_TERMINAL", "yes").arg("-c").arg(line).output().unwrap();
            let (out, err) = text(&output);
            assert_eq!(output.status.code(), Some(0), "{line}\n{out}{err}");
            for words in *promised {
                assert!(out.contains(words), "{words:?} is missing after {line}\n{out}{err}");
            }
        }
        for (name, content) in &files {
            let now = fs::read_to_string(workspace.work().join(name)).unwrap();
            match changed.iter().find(|(changed, _)| changed == name) {
                None => assert_eq!(&now, content, "{heading}: an import changes no file"),
                Some((_, words)) => {
                    for words in *words {
                        assert!(now.contains(words), "{heading}: {words:?} is not in {name}\n{now}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_program_of_the_page_is_tried() {
    let page = page();
    let tried: Vec<&str> = sections().map(|section| section.heading).to_vec();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| [")?.split_once(']'));
    let listed: Vec<&str> = rows.map(|(name, _)| name).collect();
    assert_eq!(listed, tried);
    // No command stands outside of these sections but the two of the linked folders.
    let all: usize =
        page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().lines().count()).sum();
    let of_sections: usize = tried.iter().map(|heading| commands(&page, heading).len()).sum();
    assert_eq!(all, of_sections);
}
