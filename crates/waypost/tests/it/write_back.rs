//! `run --write-back` and `run --watch`: the file that a plan comes from, while it runs and afterwards.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::run::{configure, text};
use crate::transcript::Workspace;

const COUNTING: &str = "[executors.run]\nkind = \"process\"\nshell = true\ncommand = [\"echo $WAYPOST_TASK >> ran\"]\n\
                        [executors.dispatch]\nkind = \"dispatch\"\n[executors.dispatch.workers.edit]\nshell = true\ncommand = [\"echo $WAYPOST_TASK >> ran\"]\n";

fn put(workspace: &Workspace, name: &str, text: &str) {
    fs::write(workspace.work().join(name), text).unwrap();
}

fn get(workspace: &Workspace, name: &str) -> String {
    fs::read_to_string(workspace.work().join(name)).unwrap_or_default()
}

fn ran(workspace: &Workspace) -> Vec<String> {
    let mut ran: Vec<String> = get(workspace, "ran").lines().map(str::to_owned).collect();
    ran.sort();
    ran
}

fn native(tasks: &[(&str, &str)]) -> String {
    let tasks: Vec<serde_json::Value> = tasks
        .iter()
        .map(|(id, status)| {
            serde_json::json!({ "id": id, "status": status, "work": { "executor": "run", "inputs": {} } })
        })
        .collect();
    serde_json::json!({ "format": "waypost/1", "title": "p", "tasks": tasks }).to_string()
}

#[test]
fn a_half_done_file_is_resumed_written_back_and_then_done() {
    let workspace = Workspace::new();
    configure(&workspace, COUNTING);
    put(
        &workspace,
        "p.json",
        &native(&[("a", "done"), ("b", "running"), ("c", "pending"), ("d", "skipped")]),
    );
    fs::set_permissions(workspace.work().join("p.json"), fs::Permissions::from_mode(0o640)).unwrap();
    let output = workspace.waypost(&["run", "p.json", "--write-back"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(ran(&workspace), ["b", "c"], "what was done or skipped is not run again");
    let written: serde_json::Value = serde_json::from_str(&get(&workspace, "p.json")).unwrap();
    let statuses: Vec<&str> = written["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["state"]["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["done", "done", "done", "skipped"], "{written}");
    let mode = fs::metadata(workspace.work().join("p.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    // In another store, too: the file alone says what is done.
    let elsewhere = workspace.waypost(&["--store", "memory:", "run", "p.json", "--write-back"]);
    assert_eq!(elsewhere.status.code(), Some(0), "{elsewhere:?}");
    assert_eq!(ran(&workspace).len(), 2);
    let leftovers: Vec<_> = fs::read_dir(workspace.work())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".tmp"))
        .collect();
    assert_eq!(leftovers, Vec::<String>::new());
}

/// A plan of this file of which somebody does a task is written back: the file says afterwards what was done.
fn write_back(name: &str, before: &str, done: Option<(&str, &str)>) -> (String, String) {
    let workspace = Workspace::new();
    configure(&workspace, COUNTING);
    put(&workspace, name, before);
    if let Some((plan, task)) = done {
        assert!(workspace.waypost(&["import", name]).status.success());
        let output = workspace.waypost(&["done", plan, task]);
        assert!(output.status.success(), "{output:?}");
    }
    let output = workspace.waypost(&["run", name, "--write-back", "--yes"]);
    let again = workspace.waypost(&["validate", name]);
    assert!(again.status.success(), "{again:?}");
    assert!(!workspace.work().join(format!("{name}.waypost-new")).exists());
    (get(&workspace, name), text(&output).1)
}

fn statuses(written: &str, list: &str) -> Vec<String> {
    let written: serde_json::Value = serde_json::from_str(written).unwrap();
    let tasks = written[list].as_array().unwrap();
    tasks.iter().map(|task| task["status"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn agoras_format_is_written_back_with_the_state_of_its_items() {
    let before = serde_json::json!({
        "id": "r1", "queue": "default",
        "items": [{
            "id": "one", "depends_on": [], "resourceLocks": [], "executor": "dispatch",
            "inputs": { "subagent": "edit", "workerInput": {} },
        }],
    });
    let (written, said) = write_back("r.json", &before.to_string(), None);
    assert_eq!(statuses(&written, "items"), ["done"], "{written}");
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    for field in ["id", "executor", "inputs", "depends_on", "resourceLocks"] {
        assert_eq!(written["items"][0][field], before["items"][0][field], "{field}");
    }
    assert!(!said.contains("status of one"), "{said}");
}

#[test]
fn formats_whose_tasks_are_for_people_are_written_back() {
    let clido = serde_json::json!({
        "meta": { "id": "c1", "goal": "g" },
        "tasks": [{ "id": "t1", "description": "d", "status": "done", "depends_on": [] },
                  { "id": "t2", "description": "e", "status": "pending", "depends_on": ["t1"] },
                  { "id": "t3", "description": "f", "status": "pending", "depends_on": [] }],
    });
    let (written, _) = write_back("c.json", &clido.to_string(), Some(("c1", "t2")));
    assert_eq!(statuses(&written, "tasks"), ["done", "done", "pending"], "{written}");
    let jaato = serde_json::json!({
        "plan_id": "j1", "title": "j", "status": "active", "started": true,
        "steps": [{ "id": "step_1", "description": "Sand", "status": "pending" },
                  { "id": "step_2", "description": "Paint", "status": "pending" }],
    });
    let (written, _) = write_back("j.json", &jaato.to_string(), Some(("j1", "step_1")));
    assert_eq!(statuses(&written, "steps"), ["completed", "pending"], "{written}");
    let (written, _) = write_back("list.md", "# Things\n\n- [x] one\n- [ ] two\n", None);
    let boxes: Vec<&str> = written.lines().filter_map(|line| line.get(..5)).collect();
    assert_eq!(boxes, ["# Thi", "- [x]", "- [ ]"], "{written}");
}

#[test]
fn a_format_that_cannot_be_written_is_refused_before_anything_runs() {
    let workspace = Workspace::new();
    configure(&workspace, COUNTING);
    put(
        &workspace,
        "tasks.json",
        r#"{"master":{"tasks":[{"id":1,"title":"a","description":"","status":"pending","dependencies":[]}]}}"#,
    );
    let output = workspace.waypost(&["run", "tasks.json", "--format", "task-master", "--write-back"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("task-master can be read but not written"), "{err}");
    let stored = workspace.waypost(&["list", "--json"]);
    assert!(!text(&stored).0.contains("\"id\""), "nothing was stored: {stored:?}");
}

#[test]
fn a_file_that_somebody_else_has_changed_is_left_alone() {
    let workspace = Workspace::new();
    let config = "[executors.run]\nkind = \"process\"\nshell = true\ncommand = [\"[ $WAYPOST_TASK = a ] && echo mine > p.json; true\"]\n";
    configure(&workspace, config);
    put(&workspace, "p.json", &native(&[("a", "pending"), ("b", "pending")]));
    let output = workspace.waypost(&["run", "p.json", "--write-back"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert_eq!(get(&workspace, "p.json"), "mine\n");
    assert!(err.contains("was edited while the plan ran") && err.contains("p.json.waypost-new"), "{err}");
    let aside: serde_json::Value = serde_json::from_str(&get(&workspace, "p.json.waypost-new")).unwrap();
    assert_eq!(aside["tasks"][1]["state"]["status"], "done", "{aside}");
}

fn watching(workspace: &Workspace, words: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let mut child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    (child, lines)
}

#[test]
fn a_watched_file_is_taken_in_whenever_it_is_saved() {
    let workspace = Workspace::new();
    configure(&workspace, COUNTING);
    put(&workspace, "p.json", &native(&[("a", "pending")]));
    let (mut child, mut lines) = watching(&workspace, &["run", "p.json", "--watch"]);
    let mut until = |wanted: &str| {
        let found = lines.find(|line| line.starts_with(wanted));
        assert!(found.is_some(), "{wanted} never came");
    };
    until("done     a");
    // As many editors do it: a new file takes the place of the old one. First a broken one.
    for broken in ["{", &native(&[("a", "pending"), ("a", "pending")])] {
        put(&workspace, "p.json.new", broken);
        fs::rename(workspace.work().join("p.json.new"), workspace.work().join("p.json")).unwrap();
    }
    put(&workspace, "p.json", &native(&[("a", "pending"), ("b", "pending")]));
    until("done     b");
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    let mut err = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut err).unwrap();
    assert_eq!(status.code(), Some(0), "{err}");
    assert_eq!(ran(&workspace), ["a", "b"], "what was done is not done again: {err}");
    assert!(err.contains("reloaded ") && err.contains("p.json: plan "), "{err}");
}

#[test]
fn a_saved_file_opens_no_gate() {
    let workspace = Workspace::new();
    configure(
        &workspace,
        "[executors.ask]\nkind = \"human\"\n[executors.deploy]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n",
    );
    let plan = |gate: &str| {
        let tasks = serde_json::json!([
            { "id": "gate", "status": gate, "work": { "executor": "ask" } },
            { "id": "deploy", "depends_on": ["gate"], "work": { "executor": "deploy" } },
        ]);
        serde_json::json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks }).to_string()
    };
    put(&workspace, "p.json", &plan("pending"));
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.args(["run", "p.json", "--watch"]).env("WAYPOST_INJECTED_TERMINAL", "yes");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut err = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(out.any(|line| line.starts_with("waiting  plan p: gate is for a person")));
    put(&workspace, "p.json.new", &plan("done"));
    fs::rename(workspace.work().join("p.json.new"), workspace.work().join("p.json")).unwrap();
    let said = err.find(|line| line.contains("gate was not marked")).unwrap();
    assert!(said.contains("gate was not marked done: it is for a person, who answers it"), "{said}");
    let (shown, _) = text(&workspace.waypost(&["show", "p", "--task", "gate", "--json"]));
    assert!(shown.contains("\"status\":\"pending\"") || shown.contains("\"status\": \"pending\""), "{shown}");
    assert!(workspace.at_terminal(&["answer", "p", "gate", "no"]).status.success());
    assert!(out.any(|line| line.starts_with("skipped  deploy")));
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    child.wait().unwrap();
    assert!(!workspace.work().join("ran").exists());
}

#[test]
fn a_task_that_is_added_to_a_watched_file_of_another_format_runs_and_what_is_done_stays_done() {
    let workspace = Workspace::new();
    configure(&workspace, &format!("default_executor = \"run\"\n{COUNTING}"));
    let task = |id: &str, status: &str| serde_json::json!({ "id": id, "description": format!("do {id}"), "status": status });
    let file =
        |tasks: &[serde_json::Value]| serde_json::json!({ "goal": "a goal", "tasks": tasks }).to_string();
    put(&workspace, "p.json", &file(&[task("a", "done"), task("b", "pending")]));
    let (mut child, mut lines) = watching(&workspace, &["run", "p.json", "--watch", "--write-back"]);
    let mut until = |wanted: &str| {
        let found = lines.find(|line| line.starts_with(wanted));
        assert!(found.is_some(), "{wanted} never came");
    };
    until("plan     ");
    // Whether what was written back is in the file by now makes no difference.
    let mut plan: serde_json::Value = serde_json::from_str(&get(&workspace, "p.json")).unwrap();
    plan["tasks"].as_array_mut().unwrap().push(task("c", "pending"));
    put(&workspace, "p.json", &plan.to_string());
    until("done     c");
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let mut err = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{err}");
    assert_eq!(ran(&workspace), ["b", "c"], "what was done is not done again: {err}");
    let plan: serde_json::Value = serde_json::from_str(&get(&workspace, "p.json")).unwrap();
    let statuses: Vec<&str> =
        plan["tasks"].as_array().unwrap().iter().map(|task| task["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["done", "done", "done"], "{plan}");
}

/// Runs a file, lets an agent edit the plan while its first task runs, and returns what the file says afterwards and what was
/// said about it.
fn edited_by_an_agent(workspace: &Workspace, file: &str, edit: &[&str], ends: bool) -> (String, String) {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.args(["run", file, "--write-back"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_for(workspace, "started");
    let list = text(&workspace.waypost(&["list", "--json"])).0;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let plan = list["plans"][0]["id"].as_str().unwrap();
    let edit: Vec<&str> = edit.iter().map(|word| if *word == "PLAN" { plan } else { word }).collect();
    let edited =
        workspace.command(env!("CARGO_BIN_EXE_waypost")).env("CLAUDECODE", "1").args(edit).output().unwrap();
    assert!(edited.status.success(), "{:?}", text(&edited));
    put(workspace, "go", "");
    if !ends {
        wait_for(workspace, "ran");
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    }
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    child.wait().unwrap();
    (get(workspace, file), said)
}

fn wait_for(workspace: &Workspace, name: &str) {
    let path = workspace.work().join(name);
    let (mut watch, since) = (waypost_store::watch_file(&path), std::time::Instant::now());
    while !path.exists() {
        assert!(since.elapsed() < std::time::Duration::from_secs(120), "{name} never came");
        watch.wait(std::time::Duration::from_millis(50)).unwrap();
    }
}

/// Says when it begins, and waits until it may end.
const WAITING: &str = "default_executor = \"run\"\n[executors.run]\nkind = \"process\"\nshell = true\n\
    command = [\"touch started; until [ -e go ]; do sleep 0.02; done; cat >> told; echo $WAYPOST_TASK >> ran\"]\n";

#[test]
fn what_an_agent_adds_to_the_plan_is_not_written_into_a_persons_file() {
    let workspace = Workspace::new();
    configure(&workspace, WAITING);
    put(&workspace, "nightly.md", "# nightly\n\n- [ ] check the links\n- [ ] write the report\n");
    let add = ["task", "add", "PLAN", "EVIL words", "--id", "evil"];
    let (written, said) = edited_by_an_agent(&workspace, "nightly.md", &add, true);
    assert!(
        written.contains("[x] t1: check the links") && written.contains("[x] t2: write the report"),
        "{written}"
    );
    assert!(!written.contains("EVIL"), "{written}");
    assert!(said.contains("which were not written: evil"), "{said}");
    // The next night. The file is the same plan, which now has more than the file says.
    let again = workspace.waypost(&["run", "nightly.md"]);
    assert!(text(&again).1.contains("- evil  EVIL words"), "{:?}", text(&again));
    assert!(!get(&workspace, "told").contains("EVIL"));
}

#[test]
fn what_an_agent_changes_in_the_plan_stays_as_the_file_says_it() {
    let item = |id: &str, on: &[&str]| serde_json::json!({ "id": id, "executor": "run", "inputs": {}, "depends_on": on, "resourceLocks": [] });
    let before =
        serde_json::json!({ "id": "n", "queue": "default", "items": [item("a", &[]), item("b", &["a"])] });
    for (edit, left_out) in [
        (&["task", "add", "PLAN", "EVIL", "--id", "evil", "--executor", "run"][..], "evil"),
        (&["task", "revise", "PLAN", "b", "--inputs", "{\"x\":\"EVIL\"}"], "b"),
    ] {
        let workspace = Workspace::new();
        configure(&workspace, WAITING);
        put(&workspace, "n.json", &before.to_string());
        let (written, said) = edited_by_an_agent(&workspace, "n.json", edit, false);
        assert!(said.contains(&format!("which were not written: {left_out}")), "{said}");
        let written: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["items"].as_array().unwrap().len(), 2, "{written}");
        assert_eq!(statuses(&written.to_string(), "items"), ["done", "pending"], "{written}");
        for field in ["id", "executor", "inputs", "depends_on"] {
            assert_eq!(written["items"][1][field], before["items"][1][field], "{field}");
        }
    }
}
