//! Linked folders: another program's files and their plans are kept together, both ways.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::text;
use crate::transcript::Workspace;

/// How long anything here may take before it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const FILE: &str = ".clido/plans/plan-a.json";

struct Linked {
    workspace: Workspace,
}

impl Linked {
    /// A workspace with a clido plan of `t1` and `t2`, which waits for it.
    fn new() -> Self {
        let linked = Self { workspace: Workspace::new() };
        fs::create_dir_all(linked.workspace.work().join(".git")).unwrap();
        fs::create_dir_all(linked.workspace.root.join("elsewhere")).unwrap();
        linked.put(FILE, &plan("plan-a"));
        linked.does(&["link", ".clido/plans"]);
        linked
    }

    fn put(&self, name: &str, value: &Value) {
        let path = self.workspace.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{value:#}")).unwrap();
    }

    fn get(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.workspace.work().join(name)).unwrap()).unwrap()
    }

    /// Changes the file as another program would.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut value = self.get(FILE);
        change(&mut value);
        self.put(FILE, &value);
    }

    #[track_caller]
    fn does(&self, words: &[&str]) -> (String, String) {
        let output = self.workspace.at_terminal(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        text(&output)
    }

    /// Does something in the store from a folder that knows of no link.
    #[track_caller]
    fn does_elsewhere(&self, words: &[&str]) -> String {
        let store = format!("sqlite:{}", self.workspace.work().join(".waypost/waypost.db").display());
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.current_dir(self.workspace.root.join("elsewhere")).env("WAYPOST_INJECTED_TERMINAL", "yes");
        let output = command.args(["--store", &store]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        text(&output).0
    }

    /// A task of the plan as it is in the store.
    fn task(&self, id: &str) -> Value {
        let shown = self.does_elsewhere(&["task", "show", "plan-a", id, "--json"]);
        serde_json::from_str::<Value>(&shown).unwrap()["task"].clone()
    }
}

fn plan(id: &str) -> Value {
    let task = |id: &str, on: &[&str]| {
        json!({ "id": id, "description": format!("do {id}"), "depends_on": on, "tools": null, "complexity": "low",
                "skip": false, "notes": "", "status": "pending", "mine": [1, 2] })
    };
    json!({
        "meta": { "id": id, "goal": "a goal", "created_at": "2026-03-22T10:00:00Z", "by": "me" },
        "tasks": [task("t1", &[]), task("t2", &["t1"])],
    })
}

#[test]
fn what_happens_in_the_store_is_in_the_file_and_what_is_edited_there_is_in_the_plan() {
    let linked = Linked::new();
    let mut expected = linked.get(FILE);
    linked.does(&["list"]);
    assert_eq!(linked.get(FILE), expected, "nothing happened, and the file stays as it was");
    linked.does(&["done", "plan-a", "t1"]);
    expected["tasks"][0]["status"] = "done".into();
    assert_eq!(
        linked.get(FILE),
        expected,
        "only what happened has changed, and what clido does not know is kept"
    );
    linked.edit(|plan| {
        plan["tasks"][1]["notes"] = "with care".into();
        let task = json!({ "id": "t3", "description": "do t3", "depends_on": ["t2"] });
        plan["tasks"].as_array_mut().unwrap().push(task);
    });
    let edited = linked.get(FILE);
    let (shown, _) = linked.does(&["show", "plan-a"]);
    assert!(
        shown.contains("✓ done      t1") && shown.contains("note: with care") && shown.contains("t3"),
        "{shown}"
    );
    assert_eq!(linked.get(FILE), edited, "a file that says the same is not written again");
    linked.edit(|plan| plan["tasks"][1]["status"] = "done".into());
    linked.does(&["list"]);
    assert_eq!(linked.task("t2")["standing"], "done", "statuses in a file count");
    let (history, _) = linked.does(&["history", "plan-a"]);
    assert!(history.contains("agent:clido"), "{history}");
    let (_, said) = linked.does(&["list"]);
    assert!(!said.contains("to import"), "what is linked is not offered: {said}");
}

#[test]
fn new_files_become_plans_and_the_index_of_frctl_is_kept() {
    let linked = Linked::new();
    linked.put(".clido/plans/plan-b.json", &plan("plan-b"));
    let goal = |id: &str, parent: Value, children: &[&str], depth: u8, status: &str| {
        json!({ "id": id, "description": id, "status": status, "parent_id": parent, "child_ids": children, "depth": depth,
                "created_at": "2025-11-30T10:00:00Z", "updated_at": "2025-11-30T10:00:00Z", "reasoning": null,
                "digest": null, "tokens_used": 0, "dependencies": [], "graph_node_id": null })
    };
    let goals = json!({ "r": goal("r", Value::Null, &["g"], 0, "complete"), "g": goal("g", "r".into(), &[], 1, "atomic") });
    // As frctl itself writes it.
    let tree = json!({
        "id": "aaaa0001", "root_goal_id": "r", "goals": goals, "created_at": "2025-11-30T10:00:00Z",
        "updated_at": "2025-11-30T10:00:00Z", "status": "complete", "total_tokens": 0, "max_depth": 1,
    });
    linked.put(".frctl/plans/aaaa0001.json", &tree);
    linked.put(".frctl/plans/index.json", &json!({ "other": { "id": "other", "goal_count": 9 } }));
    let (said, _) = linked.does(&["link", ".frctl/plans"]);
    assert_eq!(said, "aaaa0001.json is plan aaaa0001\n");
    linked.does(&["done", "plan-b", "t1"]);
    assert_eq!(linked.get(".clido/plans/plan-b.json")["tasks"][0]["status"], "done");
    linked.does(&["done", "aaaa0001", "g"]);
    let written = linked.get(".frctl/plans/aaaa0001.json");
    assert_eq!(
        (&written["goals"]["g"]["status"], &written["status"]),
        (&json!("complete"), &json!("complete"))
    );
    let index = linked.get(".frctl/plans/index.json");
    assert_eq!(
        (&index["aaaa0001"]["goal_count"], &index["other"]["goal_count"]),
        (&json!(2), &json!(9)),
        "{index}"
    );
}

#[test]
fn changes_of_both_sides_are_brought_together_and_conflicts_are_named() {
    let linked = Linked::new();
    linked.does_elsewhere(&["done", "plan-a", "t1"]);
    linked.does_elsewhere(&["task", "revise", "plan-a", "t2", "--notes", "from the store"]);
    linked.edit(|plan| plan["tasks"][1]["complexity"] = "high".into());
    let (_, said) = linked.does(&["list"]);
    assert!(!said.contains("both changed"), "{said}");
    let file = linked.get(FILE);
    let second = &file["tasks"][1];
    assert_eq!(file["tasks"][0]["status"], "done");
    assert_eq!((&second["notes"], &second["complexity"]), (&json!("from the store"), &json!("high")));
    assert_eq!(linked.task("t2")["complexity"], "high");
    // What runs elsewhere is pending here, and nobody has changed that.
    linked.edit(|plan| plan["tasks"][1]["status"] = "running".into());
    linked.does(&["list"]);
    linked.edit(|plan| plan["tasks"][1]["status"] = "pending".into());
    let (_, said) = linked.does(&["list"]);
    assert_eq!(said, "");
    assert_eq!(linked.task("t2")["standing"], "ready");
    linked.does_elsewhere(&["task", "revise", "plan-a", "t2", "--notes", "of the store"]);
    linked.edit(|plan| plan["tasks"][1]["notes"] = "of the file".into());
    let (_, said) = linked.does(&["list"]);
    assert!(
        said.contains("plan-a.json and plan plan-a have both changed t2: notes: the file counts"),
        "{said}"
    );
    assert_eq!(linked.get(FILE)["tasks"][1]["notes"], "of the file");
    let version = said.split("--version ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    let (old, _) = linked.does(&["show", "plan-a", "--version", &version]);
    assert!(old.contains("of the store"), "nothing is lost: {old}");
    assert!(!linked.does(&["list"]).1.contains("both changed"), "it is said once");
    // Both sides add a task, and one removes what the other changes.
    linked.does_elsewhere(&["task", "add", "plan-a", "of the store"]);
    linked.does_elsewhere(&["task", "remove", "plan-a", "t2"]);
    linked.edit(|plan| {
        plan["tasks"][1]["notes"] = "still needed".into();
        let tasks = plan["tasks"].as_array_mut().unwrap();
        tasks.push(json!({ "id": "f1", "description": "of the file", "depends_on": [] }));
    });
    let (_, said) = linked.does(&["list"]);
    assert!(said.contains("has changed tasks that are no longer in plan plan-a: t2 (removed)"), "{said}");
    let copy = said.split("a copy of the file is ").nth(1).unwrap().trim();
    assert!(fs::read_to_string(copy).unwrap().contains("still needed"), "nothing is lost");
    let file = linked.get(FILE);
    let mut names: Vec<&str> =
        file["tasks"].as_array().unwrap().iter().map(|task| task["description"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["do t1", "of the file", "of the store"]);
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone_and_taken_in_later() {
    let linked = Linked::new();
    let path = linked.workspace.work().join(FILE);
    let whole = fs::read_to_string(&path).unwrap();
    // clido writes in place, so that half of a file may be there for a moment.
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (_, said) = linked.does(&["done", "plan-a", "t1"]);
    assert!(said.contains("plan-a.json was left alone: "), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), whole[..whole.len() / 2]);
    fs::write(&path, whole).unwrap();
    linked.does(&["list"]);
    assert_eq!(linked.get(FILE)["tasks"][0]["status"], "done");
    fs::remove_file(&path).unwrap();
    linked.does(&["done", "plan-a", "t2"]);
    assert!(!path.exists(), "what the other program deleted stays deleted");
    assert_eq!(linked.task("t2")["standing"], "done");
    // Files that are no plans are not spoken of.
    fs::write(path.with_file_name("notes.md"), "# Notes\n\n- [ ] not a plan\n").unwrap();
    linked.put(".clido/plans/other.json", &json!({ "x": 1 }));
    let (_, said) = linked.does(&["list"]);
    assert_eq!(said, "");
}

#[test]
fn files_that_cannot_be_taken_in_are_named_and_not_offered_for_import() {
    let linked = Linked::new();
    let folder = linked.workspace.work().join(".clido/plans");
    fs::write(folder.join("cut.json"), "{\"meta\":{\"id\":\"cut").unwrap();
    fs::write(folder.join("empty.json"), "").unwrap();
    fs::write(folder.join("bytes.json"), [0xff, 0xfe]).unwrap();
    let mut wrong = plan("plan-w");
    wrong["tasks"][0]["depends_on"] = json!(["nowhere"]);
    linked.put(".clido/plans/wrong.json", &wrong);
    // A task in progress keeps its work, so the update is refused.
    linked.does(&["start", "plan-a", "t1"]);
    linked.edit(|plan| plan["tasks"][0]["description"] = "something else".into());
    let (_, said) = linked.does(&["list"]);
    for (file, why) in [
        ("cut.json", "it is not valid JSON: EOF while parsing a string"),
        ("empty.json", "it is not valid JSON: EOF while parsing a value"),
        ("bytes.json", "not UTF-8"),
        ("wrong.json", "depends on unknown task nowhere"),
        ("plan-a.json", "task t1 is still in progress"),
    ] {
        let line = said.lines().find(|line| line.contains(&format!("{file} was left alone: ")));
        assert!(line.is_some_and(|line| line.contains(why)), "{file}: {said}");
    }
    assert!(!said.contains("waypost import"), "{said}");
    let (listed, _) = linked.does(&["list", "--json"]);
    assert!(!listed.contains("other_folders"), "{listed}");
}

#[test]
fn a_linked_folder_of_frctls_gets_its_index() {
    let linked = Linked::new();
    let goal = json!({ "id": "r", "description": "d", "status": "pending", "parent_id": null, "child_ids": [], "depth": 0 });
    let tree = json!({ "id": "f1", "root_goal_id": "r", "description": "F", "status": "planning", "goals": { "r": goal } });
    linked.put(".frctl/plans/f1.json", &tree);
    linked.does(&["link", ".frctl/plans"]);
    let index = linked.get(".frctl/plans/index.json");
    assert!(index.to_string().contains("\"f1\""), "{index}");
    let (_, said) = linked.does(&["list"]);
    assert_eq!(said, "", "the index is not a plan");
}

#[test]
fn the_index_of_frctl_follows_files_that_are_edited_deleted_renamed_and_restored() {
    let linked = Linked::new();
    let goal = |id: &str, parent: Value, children: &[&str], depth: u8| {
        json!({ "id": id, "description": id, "status": "atomic", "parent_id": parent, "child_ids": children, "depth": depth,
                "created_at": "2025-11-30T10:00:00Z", "updated_at": "2025-11-30T10:00:00Z", "reasoning": null,
                "digest": null, "tokens_used": 0, "dependencies": [], "graph_node_id": null })
    };
    let tree = |id: &str| {
        let goals = json!({ "r": goal("r", Value::Null, &["g"], 0), "g": goal("g", "r".into(), &[], 1) });
        json!({ "id": id, "root_goal_id": "r", "description": id, "status": "in_progress", "goals": goals,
                "created_at": "2025-11-30T10:00:00Z", "updated_at": "2025-11-30T10:00:00Z", "total_tokens": 0, "max_depth": 1 })
    };
    let file = |name: &str| linked.workspace.work().join(".frctl/plans").join(name);
    for id in ["aaaa0001", "bbbb0002"] {
        linked.put(&format!(".frctl/plans/{id}.json"), &tree(id));
    }
    linked.does(&["link", ".frctl/plans"]);
    let lines = || -> Vec<String> {
        let index = linked.get(".frctl/plans/index.json");
        let line = |one: &Value| format!("{} {}", one["id"].as_str().unwrap(), one["complete_goals"]);
        index["plans"].as_array().unwrap().iter().map(line).collect()
    };
    assert_eq!(lines(), ["aaaa0001 0", "bbbb0002 0"]);
    // Whoever edits a file by hand leaves the index as it was.
    let mut edited = tree("bbbb0002");
    edited["goals"]["g"]["status"] = "complete".into();
    linked.put(".frctl/plans/bbbb0002.json", &edited);
    linked.does(&["list"]);
    assert_eq!(lines(), ["aaaa0001 0", "bbbb0002 2"]);
    fs::rename(file("bbbb0002.json"), file("named.json")).unwrap();
    let gone = fs::read_to_string(file("aaaa0001.json")).unwrap();
    fs::remove_file(file("aaaa0001.json")).unwrap();
    let listed = |words: &[&str]| linked.does(words).0;
    assert!(listed(&["link"]).contains(".frctl/plans  1 plan\n"), "a plan without its file is not counted");
    let json: Value = serde_json::from_str(&listed(&["link", "--json"])).unwrap();
    let of_frctl = json["links"].as_array().unwrap().iter().find(|link| link["folder"] == ".frctl/plans");
    let names: Vec<&String> = of_frctl.unwrap()["files"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["named.json"]);
    assert_eq!(lines(), ["bbbb0002 2"]);
    assert!(listed(&["list"]).contains("aaaa0001"), "the plan stays");
    // The file comes back as it was.
    fs::write(file("aaaa0001.json"), gone).unwrap();
    linked.does(&["list"]);
    assert_eq!(lines(), ["bbbb0002 2", "aaaa0001 0"]);
    assert!(listed(&["link"]).contains(".frctl/plans  2 plans\n"));
}

#[test]
fn a_file_does_nothing_that_only_people_may_do() {
    let linked = Linked::new();
    linked.does(&["task", "revise", "plan-a", "t1", "--executor", "human"]);
    linked.edit(|plan| plan["tasks"][0]["status"] = "done".into());
    let (_, said) = linked.does(&["list"]);
    assert!(said.contains("t1 was not marked done"), "although a person runs the command: {said}");
    assert_eq!(linked.task("t1")["standing"], "ready");
    let work = json!({ "id": "a", "work": { "executor": "noop", "inputs": {} } });
    let native = json!({
        "format": "waypost/1", "id": "native", "title": "n", "tasks": [work],
        "state": { "phase": "active", "approval": { "by": "person:ada", "at": "2026-01-01T00:00:00Z", "version": 1 } },
    });
    linked.put(".clido/plans/native.json", &native);
    linked.does(&["list"]);
    let shown: Value = serde_json::from_str(&linked.does_elsewhere(&["show", "native", "--json"])).unwrap();
    assert_eq!((&shown["awaits_approval"], shown.get("approval")), (&json!(true), None), "{shown}");
    let outside = linked.workspace.at_terminal(&["link", "../elsewhere"]);
    assert_eq!(outside.status.code(), Some(2), "{outside:?}");
    let secret = linked.workspace.root.join("elsewhere/plan-c.json");
    fs::write(&secret, plan("plan-c").to_string()).unwrap();
    std::os::unix::fs::symlink(&secret, linked.workspace.work().join(".clido/plans/plan-c.json")).unwrap();
    linked.does(&["list"]);
    assert!(
        !linked.does_elsewhere(&["list", "--json"]).contains("plan-c"),
        "links to other places are not followed"
    );
}

#[test]
fn a_folder_that_was_imported_before_is_linked_with_its_plans() {
    let linked = Linked::new();
    let other = ".other/plan-d.json";
    linked.put(other, &plan("plan-d"));
    linked.does(&["import", other]);
    linked.does(&["done", "plan-d", "t1"]);
    linked.does(&["link", ".other"]);
    assert_eq!(linked.get(other)["tasks"][0]["status"], "done", "what was done since is not set back");
    let (links, _) = linked.does(&["link", "--json"]);
    let links: Value = serde_json::from_str(&links).unwrap();
    assert_eq!(links["links"].as_array().unwrap().len(), 2, "{links}");
    linked.does(&["unlink", ".other"]);
    linked.does(&["done", "plan-d", "t2"]);
    assert_eq!(linked.get(other)["tasks"][1]["status"], "pending", "it is not kept any more");
    let again = linked.workspace.at_terminal(&["unlink", ".other"]);
    assert_eq!(again.status.code(), Some(5), "{again:?}");
}

#[test]
fn a_server_keeps_files_and_plans_together_while_it_runs() {
    let linked = Linked::new();
    let mut command = linked.workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut watch = waypost_store::watch_file(&linked.workspace.work().join(FILE));
    let mut until = |what: &dyn Fn() -> bool| {
        let since = Instant::now();
        while !what() {
            assert!(since.elapsed() < PATIENCE, "it never came");
            watch.wait(Duration::from_millis(100)).unwrap();
        }
    };
    linked.does_elsewhere(&["done", "plan-a", "t1"]);
    let text = || fs::read_to_string(linked.workspace.work().join(FILE)).unwrap_or_default();
    until(&|| text().contains("\"done\""));
    linked.edit(|plan| plan["tasks"][1]["notes"] = "from the file".into());
    until(&|| linked.task("t2")["notes"] == "from the file");
    server.stdin.take().unwrap().flush().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_server_names_the_files_that_it_leaves_alone_at_once() {
    let linked = Linked::new();
    let folder = linked.workspace.work().join(".clido/plans");
    fs::write(folder.join("cut.json"), "{\"meta\":{\"id\":\"cut").unwrap();
    let (_, said) = linked.does(&["link"]);
    assert!(said.contains(".clido/plans/cut.json was left alone: it is not valid JSON"), "{said}");
    let mut command = linked.workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let (send, lines) = std::sync::mpsc::channel();
    let stderr = BufReader::new(server.stderr.take().unwrap());
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let line = |what: &str| {
        let line = lines.recv_timeout(PATIENCE).unwrap();
        assert!(
            line.contains(&format!(".clido/plans/{what} was left alone: it is not valid JSON")),
            "{line}"
        );
    };
    line("cut.json");
    fs::write(folder.join("late.json"), "{\"meta\":{\"id\":\"late").unwrap();
    line("late.json");
    drop(server.stdin.take());
    server.wait().unwrap();
    assert!(lines.iter().all(|line| !line.contains("was left alone")), "each is named once");
}

#[test]
fn a_number_that_a_plan_cannot_keep_is_named_when_its_file_is_taken_in() {
    let linked = Linked::new();
    let path = linked.workspace.work().join(".clido/plans/plan-n.json");
    let text = plan("plan-n").to_string().replace("[1,2]", "123456789012345678901");
    fs::write(&path, &text).unwrap();
    let note = ".clido/plans/plan-n.json: line 1: the number 123456789012345678901 has too many digits";
    assert!(linked.does(&["list"]).1.contains(note));
    assert!(!linked.does(&["list"]).1.contains(note), "it is said once");
    fs::write(&path, text.replace("do t2", "do more")).unwrap();
    assert!(linked.does(&["list"]).1.contains(note));
}

#[test]
fn a_copy_of_a_file_is_left_alone_and_named_until_it_is_the_only_one() {
    let linked = Linked::new();
    let copy = ".clido/plans/plan-a-copy.json";
    linked.put(copy, &linked.get(FILE));
    let old = linked.get(copy);
    linked.edit(|plan| plan["tasks"][0]["description"] = "done better".into());
    let (_, said) = linked.does(&["list"]);
    assert!(
        said.contains("plan-a-copy.json was left alone: it is of plan plan-a, as plan-a.json is"),
        "{said}"
    );
    assert_eq!(linked.get(copy), old);
    assert_eq!(linked.task("t1")["description"], "done better");
    fs::remove_file(linked.workspace.work().join(FILE)).unwrap();
    linked.does(&["done", "plan-a", "t1"]);
    assert_eq!(linked.get(copy)["tasks"][0]["status"], "done");
}

#[test]
fn files_that_exchange_their_names_stay_the_files_of_their_plans() {
    let linked = Linked::new();
    let other = ".clido/plans/plan-b.json";
    let mut second = plan("plan-b");
    second["meta"]["goal"] = "another goal".into();
    linked.put(other, &second);
    linked.does(&["list"]);
    linked.does(&["done", "plan-a", "t1", "--result", "did it"]);
    let (first, second) = (linked.get(FILE), linked.get(other));
    linked.put(FILE, &second);
    linked.put(other, &first);
    let (_, said) = linked.does(&["list"]);
    assert!(!said.contains("to be done again"), "{said}");
    assert_eq!(linked.task("t1")["state"]["result"], "did it");
    linked.does(&["done", "plan-a", "t2"]);
    assert_eq!(linked.get(other)["tasks"][1]["status"], "done", "plan-a has the other name now");
    assert_eq!(linked.get(FILE), second);
}

#[test]
fn links_that_came_with_a_clone_have_no_effect_until_they_are_made_here() {
    let linked = Linked::new();
    let record = linked.workspace.root.join("home/.local/state/waypost/links");
    assert_eq!(fs::read_dir(&record).unwrap().filter(is_json).count(), 1);
    // As a clone has it: the record of the link, and none of this account.
    fs::remove_dir_all(&record).unwrap();
    linked.edit(|plan| plan["tasks"][0]["notes"] = "from a stranger".into());
    let (_, said) = linked.does(&["list"]);
    assert!(said.contains(".clido/plans was linked elsewhere and is left alone"), "{said}");
    assert_eq!(linked.task("t1")["notes"], Value::Null);
    let store = linked.workspace.work().join(".waypost/waypost.db");
    fs::rename(&store, store.with_extension("old")).unwrap();
    linked.does(&["list"]);
    assert!(!store.exists(), "looking makes no store");
    fs::rename(store.with_extension("old"), &store).unwrap();
    let (listed, _) = linked.does(&["link", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()["links"], json!([]), "{listed}");
    linked.does(&["link", ".clido/plans"]);
    assert_eq!(linked.task("t1")["notes"], "from a stranger");
    linked.does(&["unlink", ".clido/plans"]);
    let left = fs::read_dir(&record).unwrap().filter(is_json);
    for file in left {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(".clido"), "{text}");
    }
}

fn is_json(file: &std::io::Result<fs::DirEntry>) -> bool {
    file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|ending| ending == "json"))
}

#[test]
fn nothing_is_written_through_a_link_in_the_place_of_the_known_texts() {
    let linked = Linked::new();
    let outside = linked.workspace.root.join("outside");
    fs::create_dir(&outside).unwrap();
    let links = linked.workspace.work().join(".waypost/links");
    let texts = fs::read_dir(links).unwrap().next().unwrap().unwrap().path().join("texts");
    fs::remove_dir_all(&texts).unwrap();
    std::os::unix::fs::symlink(&outside, &texts).unwrap();
    linked.edit(|plan| plan["tasks"][0]["notes"] = "edited".into());
    let output = linked.workspace.at_terminal(&["list"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output).1.contains("texts is a link and is not used"), "{output:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}
