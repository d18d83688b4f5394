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
    // A server that has the plan in memory notices the damage as well.
    front_ends.mcp(Agent).call("plan_get", json!({ "plan": "p" })).accepted();
    front_ends.http(Person, Request::get("/plans/p")).accepted();
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
        &["diff", "p", "1"],
        &["diff", "p", "1", "3"],
        &["show", "p", "--version", "1"],
        &["export", "p", "--version", "1"],
        &["validate", "p"],
        &["preview", "p"],
    ] {
        let answer = front_ends.cli(Person, words).accepted();
        names_damage(&words.join(" "), &answer["notes"]);
    }
    for (tool, arguments) in [
        ("plan_list", json!({ "all": true })),
        ("plan_get", json!({ "plan": "p" })),
        ("plan_get", json!({ "plan": "p", "full": true })),
        ("plan_get", json!({ "plan": "p", "task": "t1" })),
        ("plan_get", json!({ "plan": "p", "since": 1 })),
        ("events", json!({ "cursor": "0" })),
        ("plan_export", json!({ "plan": "p", "file": ".claude/plans/p.md" })),
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
        "/plans/p/versions/1",
        "/plans/p/diff?from=1",
        "/plans/p/timeline",
        "/plans/p/preview",
        "/events?newest=10",
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

#[test]
fn events_list_what_is_intact_and_name_the_damage() {
    let front_ends = damaged();
    let numbers = |words: &[&str]| -> Vec<u64> {
        let output = front_ends.workspace.waypost(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(stderr.contains(DAMAGE), !words.contains(&"--cursor"), "{words:?}: {stderr}");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        stdout.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
    };
    assert_eq!(numbers(&["events"]), [1, 4], "what is intact is listed");
    assert_eq!(numbers(&["events", "--plan", "p"]), [1]);
    assert_eq!(numbers(&["events", "--cursor", "3"]), [4]);
    assert_eq!(numbers(&["events", "--kind", "plan_created"]), [1, 4]);
}

#[test]
fn a_damaged_plan_is_listed_as_it_is_shown() {
    let garbage: fn(&str) -> String = |text| {
        let lines: Vec<&str> = text.lines().collect();
        format!("{}\ngarbage\n{}\n", lines[0], lines[2])
    };
    let strikes: [fn(&str) -> String; 5] = [
        garbage,
        |text| format!("{text}x"),
        |text| text[..text.len() - 20].to_owned(),
        |text| format!("<<<<<<< HEAD\n{text}"),
        |_| String::new(),
    ];
    for (number, strike) in strikes.into_iter().enumerate() {
        let front_ends = FrontEnds::start_on_files();
        for words in [
            &["new", "P", "--id", "p", "--task", "one", "--task", "two"][..],
            &["add", "p", "three"],
            &["add", "p", "four"],
        ] {
            front_ends.cli(Person, words).accepted();
        }
        let history = front_ends.workspace.root.join("files/history/p.jsonl");
        let text = std::fs::read_to_string(&history).unwrap();
        std::fs::write(&history, strike(&text)).unwrap();
        let shown = front_ends.cli(Person, &["show", "p"]).accepted();
        let listed = front_ends.cli(Person, &["list"]).accepted();
        let row = listed["plans"][0].clone();
        assert_eq!((&row["id"], &row["version"]), (&json!("p"), &shown["version"]), "{number}: {row}");
        assert_eq!(shown["version"], 3, "{number}: as the plan's own file has it");
        for words in [&["export", "p"][..], &["why", "p", "t1"]] {
            front_ends.cli(Person, words).accepted();
        }
        let tool = front_ends.mcp(Agent).call("plan_list", json!({ "all": true })).accepted();
        assert!(tool.to_string().contains("\"p\""), "{number}: {tool}");
        let page = front_ends.http(Person, Request::get("/plans")).accepted();
        assert_eq!(page["plans"][0]["version"], 3, "{number}: {page}");
    }
}

#[test]
fn a_plan_of_which_nothing_can_be_read_is_no_missing_plan() {
    let front_ends = FrontEnds::start_on_files();
    front_ends.cli(Person, &["new", "P", "--id", "p", "--task", "one"]).accepted();
    for file in ["files/history/p.jsonl", "files/plans/p.json", "files/store.json"] {
        let file = front_ends.workspace.root.join(file);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> other\n")).unwrap();
    }
    for words in [&["list"][..], &["status"], &[]] {
        let output = front_ends.workspace.waypost(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("history/p.jsonl line 1 is damaged"), "{words:?}: {said}");
        assert!(said.contains("`waypost share PLAN`"), "{words:?}: {said}");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.lines().any(|line| line.trim().starts_with("p  ")), "{words:?}: {shown}");
    }
    assert_eq!(front_ends.cli(Person, &["list"]).code(), "corrupt");
    for words in [&["show", "p"][..], &["next", "p"], &["doctor"]] {
        let output = front_ends.workspace.waypost(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("`waypost share PLAN`"), "{words:?}: {said}");
    }
}

#[test]
fn a_plan_of_which_nothing_can_be_read_has_a_row_beside_the_others() {
    let front_ends = FrontEnds::start_on_files();
    for id in ["p", "q"] {
        front_ends.cli(Person, &["new", "Title", "--id", id, "--task", "one"]).accepted();
    }
    for file in ["files/history/p.jsonl", "files/plans/p.json"] {
        std::fs::write(front_ends.workspace.root.join(file), "garbage\n").unwrap();
    }
    for words in [&["list"][..], &["status"], &["status", "--line"]] {
        let output = front_ends.workspace.waypost(words);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {output:?}");
        assert!(shown.contains("damaged") && shown.contains('q'), "{words:?}: {shown}");
    }
    for words in ["list", "status"] {
        let page = front_ends.cli(Person, &[words]).accepted();
        assert_eq!(page["damaged"][0]["id"], "p", "{page}");
        let what = page["damaged"][0]["what"].as_str().unwrap_or_default();
        assert!(what.contains("history/p.jsonl line 1 is damaged"), "{page}");
    }
    assert_eq!(front_ends.cli(Person, &["list", "--search", "q"]).accepted()["damaged"], Value::Null);
}
