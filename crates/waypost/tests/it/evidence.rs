//! Checks and questions, from the command line to the end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::run::{configure, text};
use crate::transcript::Workspace;

const CONFIG: &str = r#"
[checks.tests]
shell = true
command = ["echo looking for ok >&2; test -e ok"]
[executors.asker]
kind = "process"
shell = true
command = ["""
job=$(cat)
case "$job" in
  *'"answer":"left"'*) echo '"went left"' ;;
  *) echo 'waypost:question {"question": "left or right?", "choices": ["left", "right"]}' >&2 ;;
esac"""]
"#;

fn workspace(tasks: serde_json::Value) -> Workspace {
    let workspace = Workspace::new();
    configure(&workspace, CONFIG);
    let plan = serde_json::json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks });
    std::fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    workspace
}

#[track_caller]
fn says(workspace: &Workspace, words: &[&str], code: i32, wanted: &[&str]) -> String {
    // Only a person at a terminal answers.
    let output = match words.first() {
        Some(&"answer") => workspace.at_terminal(words),
        Some(_) | None => workspace.waypost(words),
    };
    let (out, err) = text(&output);
    let both = format!("{out}{err}");
    assert_eq!(output.status.code(), Some(code), "{words:?}: {both}");
    for wanted in wanted {
        assert!(both.contains(wanted), "{words:?} says nothing of {wanted:?}: {both}");
    }
    both
}

#[test]
fn the_word_of_an_agent_is_checked_sent_back_and_believed_with_evidence() {
    let workspace = workspace(
        serde_json::json!([{ "id": "a", "description": "do it", "check": { "executor": "tests" } }]),
    );
    let robin = ["--as", "agent:robin"];
    let ask = |words: &[&str]| [words, &robin].concat().iter().map(ToString::to_string).collect::<Vec<_>>();
    let agent = |words: &[&str], code: i32, wanted: &[&str]| {
        let words = ask(words);
        says(&workspace, &words.iter().map(String::as_str).collect::<Vec<_>>(), code, wanted)
    };
    says(&workspace, &["run", "p.json"], 1, &["the remaining tasks are for people or agents"]);
    agent(&["next", "p", "--claim"], 0, &["claimed"]);
    agent(&["done", "p", "a", "--result", "all of it"], 0, &["a is reported as done"]);
    agent(&["next", "p", "--claim"], 0, &["nothing can be started"]);
    agent(&["done", "p", "a"], 1, &["waits for its check"]);
    says(&workspace, &["show", "p"], 0, &["reported", "reported by agent:robin, waits for its check"]);
    says(&workspace, &["why", "p", "a"], 0, &["its check: agent:robin reported it as done"]);

    says(&workspace, &["run", "p"], 1, &["a will be retried: the check: it ended with exit code 1"]);
    let shown = says(&workspace, &["show", "p", "--task", "a"], 0, &["check tests failed", "looking for ok"]);
    assert!(shown.contains("ready"), "{shown}");

    std::fs::write(workspace.work().join("ok"), "").unwrap();
    agent(&["next", "p", "--claim"], 0, &["claimed"]);
    agent(&["done", "p", "a", "--result", "now really"], 0, &["a is reported as done"]);
    says(&workspace, &["run", "p"], 0, &["check tests passed (sha256:", "plan p is completed"]);
    let shown = says(&workspace, &["show", "p", "--task", "a", "--json"], 0, &["now really"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let evidence = &shown["task"]["state"]["evidence"];
    assert_eq!((&evidence["passed"], &evidence["check"]), (&true.into(), &"tests".into()));
    assert_eq!(evidence["log_tail"], "looking for ok\n");
    says(&workspace, &["history", "p"], 0, &["agent:robin reported a as done", "a done (checked)"]);
}

#[test]
fn a_worker_asks_a_person_answers_and_the_run_goes_on() {
    let workspace = workspace(serde_json::json!([
        { "id": "a", "work": { "executor": "asker" } },
        { "id": "ok", "description": "may we?", "work": { "executor": "human" }, "depends_on": ["a"] },
        { "id": "b", "work": { "executor": "noop" }, "depends_on": ["ok"] },
    ]));
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let mut run =
        command.args(["run", "p.json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    let mut until =
        |wanted: &str| lines.by_ref().map(Result::unwrap).find(|line| line.contains(wanted)).unwrap();
    let asked = until("asks");
    assert!(
        asked.contains("a: left or right? [left | right] (answer with: waypost answer p a ANSWER)"),
        "{asked}"
    );
    until("waiting");
    says(&workspace, &["show", "p"], 0, &["? asking", "asks: left or right?"]);
    says(&workspace, &["answer"], 0, &["p a  left or right?  [left | right]"]);
    says(
        &workspace,
        &["answer", "p", "a", "left", "--as", "agent:robin"],
        1,
        &["only a person can answer a question"],
    );
    says(&workspace, &["answer", "p", "a", "up"], 1, &["choose one of left, right"]);
    says(&workspace, &["answer", "p", "b", "yes"], 1, &["task b has no open question"]);
    says(&workspace, &["answer", "p", "a", "le"], 0, &["a is answered"]);
    until("done     a");
    until("waiting");
    says(&workspace, &["answer", "--json"], 0, &[r#""kind":"task""#, r#""question":"may we?""#]);
    says(&workspace, &["answer", "p", "ok", "yes", "--as", "agent:robin"], 1, &["only a person"]);
    says(
        &workspace,
        &["answer", "p", "ok", "go", "ahead"],
        1,
        &["says neither yes nor no", "or `yes, TEXT` to complete it"],
    );
    says(&workspace, &["answer", "p", "ok", "yes,", "go", "ahead"], 0, &["ok is answered"]);
    until("plan p is completed");
    assert_eq!(run.wait().unwrap().code(), Some(0));
    says(&workspace, &["show", "p", "--task", "ok", "--json"], 0, &[r#""output":{"answer":"go ahead"}"#]);
    says(&workspace, &["show", "p", "--task", "a"], 0, &["left (left or right? → person:"]);
    says(&workspace, &["answer"], 0, &["nothing waits for a person"]);
}

#[test]
fn a_claim_is_given_back_and_an_agent_may_ask_too() {
    let workspace = workspace(serde_json::json!([{ "id": "a", "description": "do it" }]));
    says(&workspace, &["import", "p.json"], 0, &[]);
    says(&workspace, &["start", "p", "a", "--as", "agent:robin"], 0, &["started, attempt 1"]);
    says(&workspace, &["release", "p", "a", "--as", "agent:wren"], 1, &["being worked on by agent:robin"]);
    says(
        &workspace,
        &["release", "p", "a", "--reason", "lunch", "--as", "agent:robin"],
        0,
        &["a is released"],
    );
    says(&workspace, &["start", "p", "a", "--as", "agent:wren"], 0, &["started, attempt 2"]);
    says(
        &workspace,
        &["ask", "p", "a", "which", "one?", "--as", "agent:wren"],
        0,
        &["waypost answer p a ANSWER"],
    );
    says(&workspace, &["next", "p", "--claim", "--as", "agent:wren"], 0, &["nothing can be started"]);
    says(&workspace, &["answer", "p", "a", "the", "left", "one"], 0, &["ready next: a"]);
    says(&workspace, &["next", "p", "--claim", "--as", "agent:wren"], 0, &["the left one (which one?"]);
}
