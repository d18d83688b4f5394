//! Files that `waypost mcp` reads and writes for an agent: plans, and nothing that other programs run or obey.

use std::fs;

use serde_json::json;

use crate::mcp_jaato::Agent;
use crate::run::{configure, text as text_of};
use crate::transcript::Workspace;

/// Files that hosts, editors, build tools or shells run or obey.
const OBEYED: [&str; 12] = [
    "Makefile",
    "package.json",
    "compose.yaml",
    "CLAUDE.md",
    ".envrc",
    ".github/workflows/x.yml",
    "build.rs",
    ".zed/settings.json",
    ".mcp.json",
    ".git/config",
    ".waypost/config.toml",
    "action.yml",
];

#[test]
fn an_agent_writes_no_file_that_other_programs_obey() {
    let workspace = Workspace::new();
    let work = workspace.work();
    fs::create_dir(work.join(".git")).unwrap();
    fs::write(work.join("Makefile"), "all:\n").unwrap();
    let mut native = Agent::with_toolset(&workspace, "native", "a");
    let mut plans = Agent::with_toolset(&workspace, "plans", "b");
    native.call("plan_create", json!({ "title": "T", "tasks": ["a"] }));
    plans.call("write_plan", json!({ "name": "p", "content": "all: ; touch pwned" }));
    for file in OBEYED {
        for overwrite in [false, true] {
            let said = native.refused("plan_export", json!({ "file": file, "overwrite": overwrite }));
            assert!(said.contains(".waypost/files/"), "{file}: it names what is accepted: {said}");
            let arguments = json!({ "name": "p", "path": file, "overwrite": overwrite });
            plans.refused("export_plan_to_file", arguments);
        }
        assert_eq!(work.join(file).exists(), file == "Makefile", "{file}");
    }
    assert_eq!(fs::read_to_string(work.join("Makefile")).unwrap(), "all:\n");
    native.call("plan_export", json!({ "file": "release-plan.md" }));
    plans.call("export_plan_to_file", json!({ "name": "p", "path": ".waypost/files/any.md" }));
    assert!(work.join("release-plan.md").exists() && work.join(".waypost/files/any.md").exists());
}

#[test]
fn an_agent_reads_no_file_that_is_not_a_plan() {
    let workspace = Workspace::new();
    let work = workspace.work();
    fs::write(work.join(".env"), "SECRET=1\n").unwrap();
    fs::write(work.join("keys.json"), "{\"key\": \"SECRET\"}").unwrap();
    fs::write(work.join("original.md"), "SECRET").unwrap();
    fs::hard_link(work.join("original.md"), work.join("hard.md")).unwrap();
    assert!(workspace.command("mkfifo").arg(work.join("pipe.md")).status().unwrap().success());
    let mut native = Agent::with_toolset(&workspace, "native", "a");
    let mut plans = Agent::with_toolset(&workspace, "plans", "b");
    native.call("plan_create", json!({ "title": "T", "tasks": ["a"] }));
    for file in [".env", "keys.json", "hard.md", "pipe.md"] {
        for tool in ["plan_create", "plan_update"] {
            for format in ["markdown", "checklist", ""] {
                let arguments = json!({ "file": file, "format": format });
                let said = native.refused(tool, arguments);
                assert!(!said.contains("SECRET"), "{file}: {said}");
            }
        }
        plans.refused("update_plan_from_file", json!({ "name": "p", "path": file }));
    }
    fs::write(work.join("notes.md"), "words").unwrap();
    native.call("plan_update", json!({ "file": "notes.md" }));
}

#[test]
fn a_secret_of_the_workspaces_configuration_is_refused_whether_that_is_trusted_or_not() {
    let workspace = Workspace::new();
    let (work, config) = (workspace.work(), workspace.work().join(".waypost/config.toml"));
    fs::create_dir_all(work.join(".waypost")).unwrap();
    fs::write(work.join("key.txt"), "SECRET").unwrap();
    let executor =
        "[executors.x]\nkind = \"process\"\ncommand = [\"true\"]\nsecrets.K = { file = \"key.txt\" }\n";
    fs::write(&config, executor).unwrap();
    let check = |state: &str| {
        let mut plans = Agent::with_toolset(&workspace, "plans", state);
        plans.call("write_plan", json!({ "name": state, "content": "words" }));
        let said = plans.refused("update_plan_from_file", json!({ "name": state, "path": "key.txt" }));
        assert!(said.contains("it contains a secret"), "{state}: {said}");
    };
    check("never-trusted");
    workspace.trust();
    check("trusted");
    fs::write(&config, format!("{executor}# a comment\n")).unwrap();
    check("changed");
}

#[test]
fn a_file_that_a_tool_wrote_does_not_run_unattended() {
    let workspace = Workspace::new();
    configure(&workspace, "[executors.run]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n");
    let mut native = Agent::with_toolset(&workspace, "native", "a");
    let task = json!({ "id": "a", "description": "a", "work": { "executor": "run" } });
    native.call("plan_create", json!({ "title": "Nightly", "tasks": [task] }));
    for file in ["nightly-plan.json", ".waypost/files/nightly.json"] {
        native.call("plan_export", json!({ "file": file, "format": "native" }));
        // Under another id, so that it is not the agent's plan that is run.
        let path = workspace.work().join(file);
        let mut plan: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        plan["id"] = "nightly".into();
        fs::write(&path, plan.to_string()).unwrap();
        let run = workspace.waypost(&["run", file]);
        let (out, err) = text_of(&run);
        assert_eq!(run.status.code(), Some(1), "{file}: {out}{err}");
        assert!(err.contains("needs approval before it runs"), "{file}: {err}");
        assert!(!workspace.work().join("ran").exists(), "{file} ran");
    }
    // Nor from a folder of another workspace.
    let (other, work) = (workspace.root.join("other"), workspace.work());
    fs::create_dir(&other).unwrap();
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let config = work.join(".waypost/config.toml");
    command.arg("run").arg(work.join("nightly-plan.json")).arg("--config").arg(config);
    let run = command.current_dir(&other).output().unwrap();
    let (out, err) = text_of(&run);
    assert!(err.contains("needs approval before it runs"), "{out}{err}");
    assert!(!other.join("ran").exists() && !work.join("ran").exists());
    // A person's copy is a person's file, and a person at a terminal decides about the other.
    fs::copy(workspace.work().join("nightly-plan.json"), workspace.work().join("mine.json")).unwrap();
    assert!(workspace.at_terminal(&["run", "nightly-plan.json", "--yes"]).status.code() != Some(0));
    assert!(workspace.waypost(&["run", "mine.json"]).status.success());
    assert!(workspace.work().join("ran").exists());
}
