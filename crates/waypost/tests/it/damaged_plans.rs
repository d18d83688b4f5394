//! A plan whose files are damaged: every front end shows what is intact and names the damage, and none writes.

use serde_json::{Value, json};

use crate::front_ends::{Caller, FrontEnds, Request};
use Caller::{Agent, Person};

/// The damaged line, as every warning names it.
const DAMAGE: &str = "history/p.jsonl line 2 is damaged";

/// The plans `p`, whose second version is garbage, and `q`, which is intact.
fn damaged() -> FrontEnds {
    let front_ends = FrontEnds::start_on_files();
    for words in [
        &["new", "P", "--id", "p", "--task", "one", "--task", "two"][..],
        &["add", "p", "three"],
        &["add", "p", "four"],
        &["new", "Q", "--id", "q", "--task", "one"],
    ] {
        front_ends.cli(Person, words).accepted();
    }
    let history = front_ends.workspace.root.join("files/history/p.jsonl");
    let text = std::fs::read_to_string(&history).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(&history, format!("{}\ngarbage\n{}\n", lines[0], lines[2])).unwrap();
    front_ends
}

#[track_caller]
fn names_damage(what: &str, warnings: &Value) {
    let texts = warnings.as_array().into_iter().flatten().filter_map(Value::as_str);
    assert!(texts.into_iter().any(|warning| warning.contains(DAMAGE)), "{what}: {warnings}");
}

#[test]
fn every_reader_shows_what_is_intact_and_names_the_damage() {
    let front_ends = damaged();
    for words in [
        &["list"][..],
        &["next"],
        &["next", "p"],
        &["answer"],
        &["answer", "p"],
        &["show", "p"],
        &["task", "show", "p", "t1"],
        &["export", "p"],
        &["graph", "p", "--format", "dot"],
        &["why", "p", "t1"],
        &["history", "p"],
    ] {
        let answer = front_ends.cli(Person, words).accepted();
        names_damage(&words.join(" "), &answer["notes"]);
    }
    for (tool, arguments) in [
        ("plan_list", json!({ "all": true })),
        ("plan_get", json!({ "plan": "p" })),
        ("plan_get", json!({ "plan": "p", "full": true })),
        ("plan_get", json!({ "plan": "p", "task": "t1" })),
        ("plan_export", json!({ "plan": "p", "file": "p.json" })),
    ] {
        let answer = front_ends.mcp(Agent).call(tool, arguments).accepted();
        names_damage(tool, &answer["warnings"]);
    }
    for path in [
        "/plans",
        "/next",
        "/next?plan=p",
        "/plans/p",
        "/plans/p/tasks",
        "/plans/p/tasks/t1",
        "/plans/p/graph",
        "/plans/p/history",
    ] {
        let answer = front_ends.http(Person, Request::get(path)).accepted();
        names_damage(path, &answer["warnings"]);
    }
}

#[test]
fn nobody_writes_to_a_damaged_plan_and_everyone_to_the_others() {
    let front_ends = damaged();
    let edit = |plan: &str| {
        let operations = json!({ "operations": [{ "op": "add", "task": { "description": "more" } }] });
        front_ends.http(Person, Request::post(format!("/plans/{plan}/edits"), operations)).code()
    };
    assert_eq!((edit("p"), edit("q")), ("corrupt".to_owned(), "accepted".to_owned()));
    let add = |plan: &str| front_ends.cli(Person, &["add", plan, "more"]).code();
    assert_eq!((add("p"), add("q")), ("corrupt".to_owned(), "accepted".to_owned()));
    let op = json!([{ "op": "add", "description": "more" }]);
    let call =
        |plan: &str| front_ends.mcp(Agent).call("plan_edit", json!({ "plan": plan, "ops": op })).code();
    assert_eq!((call("p"), call("q")), ("corrupt".to_owned(), "accepted".to_owned()));
}
