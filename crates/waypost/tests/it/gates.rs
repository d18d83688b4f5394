//! Tasks for people, stops of people, checks: what agents and programs of tasks cannot get past.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::front_ends::{Caller, FrontEnds, Request};
use crate::run::{configure, text};
use crate::transcript::Workspace;

/// `intruder` tries to end the gate and the work of others; `deploy` leaves a witness of having run.
const CONFIG: &str = r#"
[executors.intruder]
kind = "process"
shell = true
command = ["""
for act in done start skip cancel; do waypost $act p gate --json 2>> said; done
waypost answer p gate yes --json 2>> said
waypost fail p other --error no --attempt 1 --json 2>> said
WAYPOST_TASK=other waypost fail p other --error no --attempt 1 --json 2>> said
waypost done p $WAYPOST_TASK --attempt 0 --json 2>> said
touch tried
"""]
[executors.wait]
kind = "process"
shell = true
command = ["until [ -e tried ]; do sleep 0.01; done"]
[executors.deploy]
kind = "process"
command = ["touch", "ran"]
"#;

fn workspace(tasks: Value) -> Workspace {
    let workspace = Workspace::new();
    configure(&workspace, CONFIG);
    let plan = json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks });
    fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    workspace
}

fn as_agent(workspace: &Workspace, words: &[&str]) -> Output {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.env("CLAUDECODE", "1").env("WAYPOST_INJECTED_TERMINAL", "yes").args(words).output().unwrap()
}

/// The code of a refusal; empty where the command was accepted.
fn code(output: &Output) -> String {
    let (_, err) = text(output);
    let answer = |line: &str| serde_json::from_str::<Value>(line).ok();
    let answer = err.lines().filter_map(answer).next_back().unwrap_or_default();
    answer["error"]["code"].as_str().unwrap_or_default().to_owned()
}

fn status(workspace: &Workspace, task: &str) -> Value {
    let (out, _) = text(&workspace.waypost(&["show", "p", "--task", task, "--json"]));
    serde_json::from_str::<Value>(&out).unwrap()["task"]["state"].take()
}

/// The digest of what a task asks, as it is listed.
fn asked(workspace: &Workspace, task: &str) -> String {
    let (out, _) = text(&workspace.waypost(&["answer", "p", "--json"]));
    let listed: Value = serde_json::from_str(&out).unwrap();
    let row = listed["waiting"].as_array().unwrap().iter().find(|row| row["task"] == task).unwrap();
    row["digest"].as_str().unwrap().to_owned()
}

#[test]
fn an_answer_counts_only_for_the_question_that_was_read() {
    let workspace = workspace(json!([
        { "id": "gate", "description": "publish the notes?", "work": { "executor": "human" } },
    ]));
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let read = asked(&workspace, "gate");
    let other = ["task", "revise", "p", "gate", "--description", "delete it all?"];
    assert!(as_agent(&workspace, &other).status.success());
    let answer = ["answer", "p", "gate", "yes", "--json", "--seen"];
    let stale = workspace.at_terminal(&[&answer[..], &[&read]].concat());
    assert_eq!((code(&stale).as_str(), stale.status.code()), ("changed_since_seen", Some(3)));
    assert!(text(&stale).1.contains("delete it all?"), "{:?}", text(&stale));
    // With --json nobody is asked, and whoever is asked and does not agree answers nothing.
    assert_eq!(code(&workspace.at_terminal(&answer[..5])), "seen_missing");
    let mut unsure = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let unsure = unsure.env("WAYPOST_INJECTED_TERMINAL", "what?").args(&answer[..4]).output().unwrap();
    assert!(
        !unsure.status.success() && text(&unsure).1.contains("nothing was answered"),
        "{:?}",
        text(&unsure)
    );
    assert_eq!(status(&workspace, "gate")["status"], "pending");
    let mut unsure = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let unsure =
        unsure.env("WAYPOST_INJECTED_TERMINAL", "what?").args(["done", "p", "gate"]).output().unwrap();
    assert!(text(&unsure).1.contains("nothing was answered"), "{:?}", text(&unsure));
    // What was changed needs approval first. Without an answer it is read at the terminal.
    assert!(workspace.at_terminal(&["approve", "p"]).status.success());
    let answered = workspace.at_terminal(&answer[..3]);
    assert!(answered.status.success(), "{:?}", text(&answered));
    assert_eq!(status(&workspace, "gate")["output"], json!({ "answer": "yes" }));
}

#[test]
fn only_a_person_at_a_terminal_opens_a_gate() {
    let workspace = workspace(json!([
        { "id": "other", "work": { "executor": "wait" } },
        { "id": "intruder", "work": { "executor": "intruder" } },
        { "id": "gate", "description": "deploy?", "work": { "executor": "human" } },
        { "id": "deploy", "work": { "executor": "deploy" }, "depends_on": ["gate"] },
    ]));
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let mut run =
        command.args(["run", "p.json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.starts_with("waiting")));
    let said = fs::read_to_string(workspace.work().join("said")).unwrap();
    let codes: Vec<String> = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| line["error"]["code"].as_str().unwrap().to_owned())
        .collect();
    let gate = ["human_gate"; 4];
    let rest = ["needs_person", "already_running", "already_running", "stale_attempt"];
    assert_eq!(codes, [gate, rest].concat(), "{said}");
    for act in ["done", "start", "skip", "cancel"] {
        assert_eq!(code(&as_agent(&workspace, &[act, "p", "gate", "--json"])), "human_gate", "{act}");
    }
    let seen = asked(&workspace, "gate");
    let answer = ["answer", "p", "gate", "yes", "--seen", &seen, "--json"];
    assert_eq!(code(&as_agent(&workspace, &answer)), "needs_person");
    assert_eq!(code(&workspace.waypost(&answer)), "needs_terminal");
    let named = [&["--as", "person:grace"][..], &answer].concat();
    assert_eq!(code(&workspace.at_terminal(&named)), "not_that_actor");
    assert!(!workspace.work().join("ran").exists(), "nobody opened the gate");
    assert!(workspace.at_terminal(&answer).status.success());
    assert!(lines.by_ref().any(|line| line.contains("plan p is completed")));
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert!(workspace.work().join("ran").exists());
    let gate = status(&workspace, "gate")["gate"].take();
    assert_eq!((&gate["by"], &gate["proof"]), (&"person:ada".into(), &"presence".into()), "{gate}");
}

#[test]
fn what_a_person_stopped_only_a_person_at_a_terminal_starts_again() {
    let workspace = workspace(json!([{ "id": "a", "description": "a" }, { "id": "b", "description": "b" }]));
    assert!(workspace.waypost(&["import", "p.json"]).status.success());
    let stops: [(&[&str], &[&str]); 3] = [
        (&["pause", "p"], &["resume", "p", "--json"]),
        (&["cancel", "p", "a"], &["retry", "p", "a", "--json"]),
        (&["archive", "p"], &["unarchive", "p", "--json"]),
    ];
    for (stop, undo) in stops {
        // Stopping needs no proof.
        assert!(workspace.waypost(stop).status.success(), "{stop:?}");
        assert_eq!(code(&as_agent(&workspace, undo)), "stopped_by_person", "{undo:?}");
        assert_eq!(code(&workspace.waypost(undo)), "needs_terminal", "{undo:?}");
        let undone = workspace.at_terminal(undo);
        assert!(undone.status.success(), "{:?}", text(&undone));
    }
    assert!(as_agent(&workspace, &["start", "p", "b"]).status.success());
    assert!(as_agent(&workspace, &["pause", "p"]).status.success());
    assert!(as_agent(&workspace, &["resume", "p"]).status.success(), "its own pause");
}

#[test]
fn a_file_brings_no_done_past_a_check_or_a_gate() {
    let tasks = || {
        json!([
            { "id": "gate", "work": { "executor": "human" }, "state": { "status": "done" } },
            { "id": "built", "check": { "executor": "wait" }, "state": { "status": "done", "evidence": {
                "passed": true, "check": "wait", "worker": "w", "outcome": "fine", "digest": "sha256:0" } } },
            { "id": "deploy", "work": { "executor": "deploy" }, "depends_on": ["gate", "built"] },
        ])
    };
    let brought = workspace(tasks());
    let imported = as_agent(&brought, &["import", "p.json"]);
    assert!(imported.status.success(), "{:?}", text(&imported));
    assert_eq!(status(&brought, "gate")["status"], "pending");
    let built = status(&brought, "built");
    assert_eq!((&built["status"], &built["evidence"]), (&"pending".into(), &Value::Null));
    assert_eq!(built["reported"]["by"], "agent:claude-code");
    assert_eq!(code(&as_agent(&brought, &["skip", "p", "built", "--json"])), "awaits_check");
}

#[test]
fn a_record_that_the_database_forges_opens_nothing() {
    let workspace = workspace(json!([
        { "id": "gate", "work": { "executor": "human" } },
        { "id": "other", "work": { "executor": "human" } },
        { "id": "deploy", "work": { "executor": "deploy" }, "depends_on": ["gate"] },
    ]));
    assert!(workspace.waypost(&["import", "p.json"]).status.success());
    let submitted = workspace.waypost(&["submit", "p.json"]);
    assert!(submitted.status.success(), "{:?}", text(&submitted));
    assert!(workspace.at_terminal(&["answer", "p", "other", "yes"]).status.success());
    // The genuine record of one task is put in the place of the other's.
    let database = rusqlite::Connection::open(workspace.work().join(".waypost/waypost.db")).unwrap();
    let forged = r#"DELETE FROM snapshots;
        UPDATE log SET events = replace(events, '"task":"other"', '"task":"gate"')"#;
    database.execute_batch(forged).unwrap();
    drop(database);
    let (said, error) = text(&workspace.waypost(&["worker", "--until-idle"]));
    assert!(said.contains("starts nothing behind gate"), "{said}{error}");
    assert!(!workspace.work().join("ran").exists());
    let (said, _) = text(&workspace.waypost(&["verify", "p"]));
    assert!(said.contains("no record that counts here shows that a person ended gate"), "{said}");
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_signed_answer_opens_a_gate_where_signatures_are_asked_for() {
    let workspace = workspace(json!([
        { "id": "gate", "work": { "executor": "human" } },
        { "id": "last", "work": { "executor": "human" }, "depends_on": ["gate"] },
        { "id": "deploy", "work": { "executor": "deploy" }, "depends_on": ["last"] },
    ]));
    let account = workspace.work().join("../home/.config/waypost");
    fs::create_dir_all(&account).unwrap();
    let key = account.join("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    let public = fs::read_to_string(account.join("key.pub")).unwrap();
    fs::write(account.join("allowed_signers"), format!("ada@example.org {public}")).unwrap();
    workspace.configure_user("[approval]\nproof = \"signature\"\n");
    assert!(workspace.waypost(&["import", "p.json"]).status.success());
    let (preview, _) = text(&workspace.waypost(&["preview", "p", "--json"]));
    let digest = serde_json::from_str::<Value>(&preview).unwrap()["digest"].as_str().unwrap().to_owned();
    let key = key.to_str().unwrap();
    let approved =
        workspace.waypost(&["approve", "p", "--yes", "--seen", &digest, "--sign", "--key", key, "--json"]);
    assert!(approved.status.success(), "{:?}", text(&approved));
    // Presence is not enough here, and no signature raises an agent.
    let seen = asked(&workspace, "gate");
    let unsigned = workspace.at_terminal(&["answer", "p", "gate", "yes", "--seen", &seen, "--json"]);
    assert_eq!(code(&unsigned), "needs_proof", "{:?}", text(&unsigned));
    assert!(text(&unsigned).1.contains("waypost answer p gate yes --sign"), "{:?}", text(&unsigned));
    let unnamed = ["answer", "p", "gate", "yes", "--sign", "--key", key, "--json"];
    assert_eq!(code(&workspace.waypost(&unnamed)), "seen_missing");
    let signed = [&unnamed[..], &["--seen", &seen]].concat();
    assert_eq!(code(&as_agent(&workspace, &signed)), "needs_person");
    let answered = workspace.waypost(&signed);
    assert!(answered.status.success(), "{:?}", text(&answered));
    let done = workspace.waypost(&["done", "p", "last", "--sign", "--key", key]);
    assert!(done.status.success(), "{:?}", text(&done));
    let gate = status(&workspace, "gate")["gate"].take();
    assert_eq!(
        (&gate["proof"], &gate["account"]),
        (&"signature".into(), &"ada@example.org".into()),
        "{gate}"
    );
    let (shown, _) = text(&workspace.waypost(&["show", "p", "--task", "gate"]));
    assert!(shown.contains("done by person:ada at ") && shown.contains("(signature,"), "{shown}");
    let (said, error) = text(&workspace.waypost(&["worker", "--until-idle"]));
    assert!(workspace.work().join("ran").exists(), "{said}{error}");
    assert!(workspace.waypost(&["verify", "p"]).status.success());
}

#[test]
fn a_gate_that_the_database_calls_done_opens_nothing() {
    let workspace = workspace(json!([
        { "id": "gate", "work": { "executor": "human" } },
        { "id": "deploy", "work": { "executor": "deploy" }, "depends_on": ["gate"] },
    ]));
    // The executor is a person only since then.
    let before = CONFIG.replace(
        "[executors.deploy]",
        "[executors.sign]\nkind = \"process\"\ncommand = [\"true\"]\n[executors.deploy]",
    );
    configure(&workspace, &before);
    let plan = fs::read_to_string(workspace.work().join("p.json")).unwrap().replace("human", "sign");
    fs::write(workspace.work().join("p.json"), plan).unwrap();
    assert!(workspace.waypost(&["import", "p.json"]).status.success());
    assert!(workspace.waypost(&["done", "p", "gate"]).status.success());
    configure(&workspace, &format!("{CONFIG}[executors.sign]\nkind = \"human\"\n"));
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.env("WAYPOST_INJECTED_TERMINAL", "yes").args(["run", "p"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
    let refused = lines.by_ref().find(|line| line.starts_with("refused")).unwrap();
    assert!(refused.contains("starts nothing behind gate"), "{refused}");
    assert!(workspace.at_terminal(&["retry", "p", "gate"]).status.success());
    assert!(!workspace.work().join("ran").exists());
    assert!(workspace.at_terminal(&["answer", "p", "gate", "yes"]).status.success());
    assert!(lines.by_ref().any(|line| line.contains("plan p is completed")));
    assert!(run.wait().unwrap().success());
    assert!(workspace.work().join("ran").exists());
}

#[test]
fn a_workers_token_gets_no_work_that_a_worker_would_not_start() {
    let ends = FrontEnds::start_with(CONFIG);
    let file = |id: &str, tasks: Value| {
        let plan = json!({ "format": "waypost/1", "id": id, "title": id, "tasks": tasks });
        let file = format!("{id}.json");
        fs::write(ends.workspace.work().join(&file), plan.to_string()).unwrap();
        ends.cli(Caller::Agent, &["import", &file]).accepted();
        ends.cli(Caller::Agent, &["request-approval", id]).accepted();
        assert!(ends.workspace.at_terminal(&["approve", id]).status.success());
    };
    let work = json!({ "executor": "deploy" });
    file("genuine", json!([{ "id": "go", "description": "go", "work": work }]));
    file("forged", json!([{ "id": "go", "description": "go", "priority": 9, "work": work }]));
    // Nobody on this account sealed this.
    let database = rusqlite::Connection::open(ends.workspace.work().join(".waypost/waypost.db")).unwrap();
    let forge = r#"UPDATE log SET events = replace(events, '"seal":"', '"seal":"00')
        WHERE plan = (SELECT key FROM plans WHERE id = 'forged')"#;
    assert!(database.execute(forge, ()).unwrap() > 0);
    let claim = Request::post("/plans/forged/tasks/go/actions/claim", json!({}));
    assert_eq!(ends.http(Caller::Worker, claim).code(), "needs_approval");
    let next = || ends.http(Caller::Worker, Request::post("/next", json!({}))).accepted();
    assert_eq!(next()["plan"], "genuine");
    assert_eq!(next()["task"], Value::Null);
}
