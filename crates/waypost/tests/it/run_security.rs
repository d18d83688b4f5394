//! Plans that a model wrote, run from inside its own shell: what the operator has not allowed runs nothing, and says so.

use std::fs;
use std::process::Output;

use crate::run::{configure, text};
use crate::transcript::Workspace;

/// An executor that leaves a witness of having run, in the folder that it was started in.
const CONFIG: &str = "[executors.run]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n";

struct Place {
    workspace: Workspace,
}

impl Place {
    fn new(config: &str) -> Self {
        let workspace = Workspace::new();
        configure(&workspace, config);
        fs::create_dir_all(workspace.root.join("outside")).unwrap();
        Self { workspace }
    }

    /// What an agent asks for in the shell that it runs its commands in.
    fn agent(&self, words: &[&str]) -> Output {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.env("CLAUDECODE", "1").args(words).output().unwrap()
    }

    fn plan(&self, work: serde_json::Value) -> &'static str {
        let tasks = serde_json::json!([{ "id": "a", "description": "innocent", "work": work }]);
        let plan = serde_json::json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks });
        fs::write(self.workspace.work().join("p.json"), plan.to_string()).unwrap();
        "p.json"
    }

    #[track_caller]
    fn nothing_ran(&self) {
        for folder in [self.workspace.work(), self.workspace.root.join("outside")] {
            assert!(!folder.join("ran").exists(), "something ran in {}", folder.display());
        }
        let logs = fs::read_dir(self.workspace.work().join(".waypost/logs"));
        assert_eq!(logs.map_or(0, Iterator::count), 0, "an attempt has a log");
    }
}

#[track_caller]
fn check(output: &Output, code: i32, said: &str) {
    let (out, err) = text(output);
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    assert!(err.contains(said), "{err}");
}

#[test]
fn an_executor_that_is_not_configured_runs_nothing() {
    let place = Place::new(CONFIG);
    let inputs = serde_json::json!({ "command": ["touch", "ran"] });
    for executor in ["shell", "bash", "run ", "RUN", "../run", "run/touch", ""] {
        let file = place.plan(serde_json::json!({ "executor": executor, "inputs": inputs }));
        for words in [&["run", file][..], &["run", file, "--yes"], &["run", file, "--dry-run"]] {
            let said = if executor.is_empty() { "" } else { "no executor is called" };
            check(&place.agent(words), 4, said);
            place.nothing_ran();
        }
    }
    assert!(!place.workspace.work().join(".waypost/waypost.db").exists(), "nothing was written either");
}

#[test]
fn a_plan_cannot_say_what_an_executor_runs_or_where() {
    let place = Place::new(CONFIG);
    let outside = place.workspace.root.join("outside").display().to_string();
    let command = serde_json::json!(["touch", format!("{outside}/ran")]);
    let file = place.plan(serde_json::json!({
        "executor": "run", "command": command, "directory": outside, "shell": true, "kind": "process",
        "target": "cloud", "image": "other:latest", "environment": { "PATH": outside },
        "inputs": { "command": command, "directory": outside, "env": { "PATH": outside }, "image": "other:latest" },
    }));
    // As a person, who may: what runs is what the configuration says, where it says.
    let output = place.workspace.waypost(&["run", file, "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    assert!(place.workspace.work().join("ran").exists());
    assert!(!place.workspace.root.join("outside/ran").exists());
}

#[test]
fn a_folder_outside_of_the_workspace_runs_nothing() {
    for (folder, code, said) in [
        ("..", 4, "outside of the workspace"),
        ("../outside", 4, "outside of the workspace"),
        ("sub/../../outside", 4, "outside of the workspace"),
        ("/tmp", 4, "outside of the workspace"),
        ("link", 1, "is not completed"),
        ("link/deeper", 1, "is not completed"),
    ] {
        let place = Place::new(&format!("{CONFIG}directory = {folder:?}\n"));
        fs::create_dir_all(place.workspace.root.join("outside/deeper")).unwrap();
        std::os::unix::fs::symlink("../outside", place.workspace.work().join("link")).unwrap();
        let file = place.plan(serde_json::json!({ "executor": "run" }));
        let output = place.workspace.waypost(&["run", file, "--yes"]);
        check(&output, code, said);
        place.nothing_ran();
        assert!(!place.workspace.root.join("outside/deeper/ran").exists());
        if code == 1 {
            let (out, _) = text(&output);
            assert!(out.contains(&format!("the folder {folder:?} leads out of the workspace")), "{out}");
        }
    }
}

#[test]
fn a_task_cannot_be_named_so_that_its_log_lies_elsewhere() {
    let line = "[executors.run]\nkind = \"process\"\nshell = true\ncommand = [\"echo said >&2\"]\n";
    let place = Place::new(line);
    let name = "../../../outside/x";
    let tasks = serde_json::json!([{ "id": name, "work": { "executor": "run" } }]);
    let plan = serde_json::json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks });
    fs::write(place.workspace.work().join("p.json"), plan.to_string()).unwrap();
    let output = place.workspace.waypost(&["run", "p.json", "--yes"]);
    let logged: Vec<String> = fs::read_dir(place.workspace.work().join(".waypost/logs/p"))
        .map(|files| files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    assert_eq!(logged.len(), 2, "the log and its times: {logged:?}");
    assert_eq!(fs::read_dir(place.workspace.root.join("outside")).unwrap().count(), 0);
}

#[test]
fn a_command_that_no_person_has_approved_runs_nothing() {
    let place = Place::new(CONFIG);
    let file = place.plan(serde_json::json!({ "executor": "run" }));
    for words in [
        &["run", file][..],
        &["run", file, "--yes"],
        &["run", "p"],
        &["run", "p", "--yes", "--json"],
        &["approve", "p"],
        &["--as", "person:ada", "run", "p", "--yes"],
        &["--as", "worker:w", "run", "p", "--yes"],
    ] {
        let output = place.agent(words);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {out}{err}");
        let said = ["approve", "cannot act as"].iter().any(|said| err.contains(said));
        assert!(said, "{words:?}: {err}");
        place.nothing_ran();
    }
    // A worker's own shell is no person's either.
    let mut worker = place.workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let output = worker.env("WAYPOST_ACTOR", "worker:p").args(["run", "p", "--yes"]).output().unwrap();
    check(&output, 1, "can do nothing else");
    place.nothing_ran();
}

#[test]
fn work_that_an_agent_changes_after_approval_runs_nothing_until_it_is_approved_again() {
    let place = Place::new(&format!(
        "{CONFIG}[executors.other]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n"
    ));
    let file = place.plan(serde_json::json!({ "executor": "noop" }));
    assert!(place.agent(&["import", file]).status.success());
    check(&place.workspace.waypost(&["approve", "p"]), 1, "needs a person at a terminal");
    assert!(place.workspace.at_terminal(&["approve", "p"]).status.success());
    assert!(place.agent(&["task", "revise", "p", "a", "--executor", "other"]).status.success());
    check(&place.agent(&["run", "p", "--yes"]), 1, "needs approval before it runs");
    check(&place.workspace.waypost(&["run", "p"]), 1, "needs approval before it runs");
    place.nothing_ran();
    // Nor does it help to have it added by a task that was approved.
    assert!(place.agent(&["add", "p", "one more", "--executor", "run"]).status.success());
    check(&place.agent(&["run", "p"]), 1, "needs approval before it runs");
    place.nothing_ran();
}

#[test]
fn a_command_that_was_changed_after_approval_runs_nothing_until_it_is_approved_again() {
    let process = |command: &str| format!("[executors.run]\nkind = \"process\"\ncommand = {command}\n");
    let place = Place::new(&process("[\"true\"]"));
    let file = place.plan(serde_json::json!({ "executor": "run" }));
    assert!(place.agent(&["import", file]).status.success());
    assert!(place.workspace.at_terminal(&["approve", "p"]).status.success());
    configure(&place.workspace, &process("[\"touch\", \"ran\"]"));
    let idle = place.workspace.waypost(&["worker", "--until-idle"]);
    check(&idle, 0, "");
    let (said, _) = text(&idle);
    assert!(said.contains("(executor run: command)") && said.contains("waypost approve p"), "{said}");
    check(&place.workspace.waypost(&["run", "p"]), 1, "needs approval before it runs");
    place.nothing_ran();
    let (history, _) = text(&place.workspace.waypost(&["history", "p"]));
    assert_eq!(history.matches("starts nothing").count(), 1, "{history}");
    let (preview, _) = text(&place.workspace.waypost(&["preview", "p"]));
    assert!(
        preview.contains(
            "\nchanged since version 1 was approved (everything is shown below):\n  executor run: command\n\n"
        ),
        "{preview}"
    );
    assert!(place.workspace.at_terminal(&["approve", "p"]).status.success());
    check(&place.workspace.waypost(&["worker", "--until-idle"]), 0, "");
    assert!(place.workspace.work().join("ran").exists());
}

#[test]
fn a_task_that_changes_a_pinned_file_is_the_last_that_runs() {
    let config = "[executors.first]\nkind = \"process\"\nshell = true\ncommand = [\"echo touch ran > tool.sh\"]\n\
                  [executors.run]\nkind = \"process\"\ncommand = [\"sh\", \"tool.sh\"]\npin = [\"tool.sh\"]\n";
    let place = Place::new(config);
    fs::write(place.workspace.work().join("tool.sh"), "true\n").unwrap();
    let plan = serde_json::json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": [
        { "id": "a", "work": { "executor": "first" } },
        { "id": "b", "depends_on": ["a"], "work": { "executor": "run" } },
    ] });
    fs::write(place.workspace.work().join("p.json"), plan.to_string()).unwrap();
    assert!(place.agent(&["import", "p.json"]).status.success());
    assert!(place.workspace.at_terminal(&["approve", "p"]).status.success());
    let (said, _) = text(&place.workspace.waypost(&["worker", "--until-idle"]));
    assert!(said.contains("executor run: pin"), "{said}");
    assert!(!place.workspace.work().join("ran").exists());
    let (task, _) = text(&place.workspace.waypost(&["show", "p"]));
    assert!(task.contains("refused"), "{task}");
    // Approved again, it runs.
    assert!(place.workspace.at_terminal(&["approve", "p"]).status.success());
    check(&place.workspace.waypost(&["worker", "--until-idle"]), 0, "");
    assert!(place.workspace.work().join("ran").exists());
}

#[test]
fn no_configuration_but_the_operators_is_read_on_an_agents_word() {
    let place = Place::new("");
    let own = "[executors.run]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n";
    let file = place.plan(serde_json::json!({ "executor": "run" }));
    // Beside the plan, under names that other programs would read.
    for name in ["waypost.toml", "config.toml", ".waypost.toml", "p.toml"] {
        fs::write(place.workspace.work().join(name), own).unwrap();
    }
    check(&place.agent(&["run", file, "--yes"]), 4, "no executor is called run");
    // A file that an agent names brings neither executors nor approval.
    let cannot = "p.toml:1: an agent's --config cannot define executors";
    check(&place.agent(&["run", file, "--yes", "--config", "p.toml"]), 4, cannot);
    fs::write(place.workspace.work().join("p.toml"), format!("approval = \"never\"\n{own}")).unwrap();
    check(&place.agent(&["run", file, "--config", "p.toml"]), 4, "an agent's --config cannot");
    place.nothing_ran();
}

#[test]
fn an_agents_list_of_things_to_do_goes_to_machines_only_on_a_persons_word() {
    let config = format!("default_executor = \"run\"\n{CONFIG}");
    let new = ["new", "Things to do", "--id", "p", "--task", "innocent"];
    for starts in [false, true] {
        let place = Place::new(&config);
        assert!(place.agent(&new).status.success());
        if starts {
            assert!(place.agent(&["start", "p", "t1"]).status.success());
            assert!(place.agent(&["done", "p", "t1"]).status.success());
            assert!(place.agent(&["add", "p", "one more"]).status.success());
        }
        for words in [&["run", "p"][..], &["run", "p", "--yes"], &["run", "p", "--executor", "run", "--yes"]]
        {
            check(&place.agent(words), 1, "approve");
            place.nothing_ran();
        }
        check(&place.workspace.waypost(&["run", "p"]), 1, "needs approval");
        place.nothing_ran();
        // What was not seen is not agreed to either.
        check(&place.workspace.at_terminal(&["run", "p", "--yes"]), 1, "--seen");
        place.nothing_ran();
        let output = place.workspace.at_terminal(&["run", "p"]);
        assert!(place.workspace.work().join("ran").exists(), "{:?}", text(&output));
    }
    // Without the configuration's word a list of things to do stays one.
    let place = Place::new(CONFIG);
    assert!(place.workspace.waypost(&new).status.success());
    check(&place.workspace.waypost(&["run", "p", "--yes"]), 1, "no task of plan p names an executor");
    place.nothing_ran();
    check(&place.workspace.waypost(&["run", "p", "--executor", "rum"]), 4, "no executor is called rum");
    place.nothing_ran();
    check(&place.workspace.waypost(&["run", "p", "--executor", "run"]), 1, "needs approval");
    place.nothing_ran();
    assert_eq!(place.workspace.at_terminal(&["run", "p", "--executor", "run"]).status.code(), Some(0));
    assert!(place.workspace.work().join("ran").exists());
}

#[test]
fn whoever_says_no_has_changed_nothing() {
    let place = Place::new(&format!("{CONFIG}\n[queues.other]\nconcurrency = 1\n"));
    assert!(place.agent(&["new", "Things to do", "--id", "p", "--task", "innocent"]).status.success());
    let stored = || text(&place.workspace.waypost(&["show", "p", "--full", "--json"])).0;
    let before = stored();
    let asked = |typed: &str, words: &[&str]| {
        let mut command = place.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.env("WAYPOST_INJECTED_TERMINAL", typed).args(words).output().unwrap()
    };
    let run = ["run", "p", "--executor", "run", "--queue", "other"];
    for words in [&run[..], &run[..4], &["run", "p", "--executor", "run", "--yes"]] {
        check(&asked("no", words), 1, if words.contains(&"--yes") { "--seen" } else { "nothing ran" });
        assert_eq!(stored(), before, "{words:?}");
        place.nothing_ran();
    }
    // Nor has whoever cannot be asked.
    check(&place.workspace.waypost(&run), 1, "nothing was changed");
    assert_eq!(stored(), before);
    check(&asked("yes", &run), 0, "");
    assert!(place.workspace.work().join("ran").exists());
    let history = text(&place.workspace.waypost(&["history", "p"])).0;
    assert!(history.contains("approved"), "{history}");
    assert!(stored().contains("\"queue\":\"other\""), "{}", stored());
}

#[test]
fn where_every_plan_needs_approval_it_does_not_matter_how_it_came_into_the_store() {
    let place = Place::new(&format!("approval = \"all\"\n{CONFIG}"));
    let file = place.plan(serde_json::json!({ "executor": "run" }));
    let person = |words: &[&str]| {
        let mut command = place.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.args(words).output().unwrap()
    };
    check(&person(&["import", file]), 0, "");
    check(&person(&["run", "p"]), 1, "approv");
    check(&person(&["new", "Q", "--id", "q", "--task", "one"]), 0, "");
    check(&person(&["task", "revise", "q", "t1", "--executor", "run"]), 0, "");
    check(&person(&["run", "q"]), 1, "approv");
    place.nothing_ran();
    check(&place.workspace.at_terminal(&["run", "q"]), 0, "");
    assert!(place.workspace.work().join("ran").exists());
}

#[test]
fn texts_of_a_plan_steer_no_terminal() {
    let workspace = Workspace::new();
    let does = |words: &[&str]| {
        let output = workspace.command(env!("CARGO_BIN_EXE_waypost")).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let notes = "\u{1b}]8;;http://evil\u{7}link \u{202e}evil";
    let plan = serde_json::json!({ "format": "waypost/1", "id": "loose", "title": "x", "tasks": [
        { "id": "a", "description": "\u{1b}[2Jfirst", "notes": notes },
    ] });
    std::fs::write(workspace.work().join("loose.json"), plan.to_string()).unwrap();
    does(&["import", "loose.json"]);
    does(&["done", "loose", "a", "--result", "\u{1b}[2J\u{1b}[1;1Hall good"]);
    for words in [&["task", "show", "loose", "a"][..], &["show", "loose"], &["history", "loose"]] {
        let shown = does(words);
        assert!(
            !shown.chars().any(|shown| shown != '\n' && waypost_text::is_unsafe_char(shown)),
            "{words:?}: {shown:?}"
        );
    }
}

#[test]
fn ids_inputs_and_choices_are_shown_escaped_and_not_obeyed() {
    let workspace = Workspace::new();
    configure(&workspace, "[executors.sh]\nkind = \"process\"\ncommand = [\"true\"]\n");
    let hidden = "\u{202e}\u{200b}";
    let hostile = format!("\u{1b}]52;c;AAAA\u{7}\u{1b}[2J{hidden}");
    // A task's id has no control characters.
    let id = format!("a{hidden}z");
    let work = serde_json::json!({ "executor": "sh", "inputs": { "key": hostile } });
    let tasks = serde_json::json!([{ "id": id, "work": work }, { "id": "ask" }]);
    let plan = serde_json::json!({ "format": "waypost/1", "id": "p", "title": "x", "tasks": tasks });
    fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    let agent = |words: &[&str]| {
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.env("CLAUDECODE", "1").args(words).output().unwrap()
    };
    assert!(agent(&["import", "p.json"]).status.success());
    let (preview, _) = text(&workspace.waypost(&["preview", "p"]));
    for escaped in ["\\u001b]52;c;AAAA\\u0007\\u001b[2J", "\\u{202e}\\u{200b}", "a\\u{202e}\\u{200b}z"] {
        assert!(preview.contains(escaped), "{escaped} is visible: {preview}");
    }
    assert!(workspace.at_terminal(&["approve", "p"]).status.success());
    assert!(agent(&["start", "p", "ask"]).status.success());
    let ask = agent(&["ask", "p", "ask", "left?", "--choice", &hostile, "--choice", "right"]);
    assert!(ask.status.success(), "{:?}", text(&ask));
    let shown: [&[&str]; 12] = [
        &["preview", "p"],
        &["show", "p"],
        &["show", "p", "--full"],
        &["task", "show", "p", &id],
        &["task", "show", "p", "ask"],
        &["answer", "p"],
        &["answer", "p", "ask", "neither"],
        &["why", "p", &id],
        &["why", "p", "ask"],
        &["next", "p"],
        &["history", "p"],
        &["done", "p", &id],
    ];
    for words in shown {
        let (out, err) = text(&workspace.at_terminal(words));
        let is_unsafe = |shown: char| shown != '\n' && waypost_text::is_unsafe_char(shown);
        assert!(!out.contains(is_unsafe) && !err.contains(is_unsafe), "{words:?}: {out:?} {err:?}");
        assert!(!out.is_empty() || !err.is_empty(), "{words:?}");
    }
}

#[test]
fn an_id_in_an_error_message_steers_no_terminal() {
    let workspace = Workspace::new();
    let plan = serde_json::json!({ "format": "waypost/1", "id": "p", "title": "x", "tasks": [
        { "id": "a", "description": "first" },
    ] });
    fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    assert!(workspace.waypost(&["import", "p.json"]).status.success());
    let hostile = "\u{1b}[31mx\u{202e}\u{e0041}\u{9b}2J";
    for words in [
        &["show", hostile][..],
        &["show", "p", hostile],
        &["task", "show", "p", hostile],
        &["done", "p", hostile],
        &["start", "p", hostile],
        &["import", hostile],
        &["show", "p", "--version", hostile],
        &[hostile],
    ] {
        for color in ["never", "always"] {
            let output = workspace.waypost(&[&["--color", color], words].concat());
            assert!(!output.status.success(), "{words:?}");
            let said = String::from_utf8(output.stderr).unwrap();
            // The colours of `error:` and `hint:` are our own.
            let said = ["\u{1b}[31merror:\u{1b}[0m", "\u{1b}[36mhint:\u{1b}[0m"]
                .iter()
                .fold(said, |said, ours| said.replace(ours, ""));
            let is_unsafe = |shown: char| shown != '\n' && waypost_text::is_unsafe_char(shown);
            assert!(!said.contains(is_unsafe), "{words:?} {color}: {said:?}");
        }
    }
    let output = workspace.waypost(&["--json", "show", hostile]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.trim_end().contains(waypost_text::is_unsafe_char), "{said:?}");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["error"]["plan"], hostile, "a program gets what was given");
    let shown = "\u{fffd}[31mx\u{fffd}2J";
    assert_eq!(said["error"]["message"], format!("no plan is called {shown}"));
    // The errors of the command line as well.
    let output = workspace.waypost(&["--json", "list", "--phase", hostile]);
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(said["error"]["message"].as_str().unwrap().contains(shown), "{said}");
}

#[test]
fn json_lines_of_events_are_inert_in_a_terminal() {
    let workspace = Workspace::new();
    let hostile = "x\u{202e}y\u{e0041}\u{200b}z";
    assert!(workspace.waypost(&["new", hostile, "--id", "p", "--task", "a"]).status.success());
    for words in [&["events", "--json"][..], &["events", "--kind", "plan_created", "--json"]] {
        let said = String::from_utf8(workspace.waypost(words).stdout).unwrap();
        assert!(!said.trim_end().contains(waypost_text::is_unsafe_char), "{words:?}: {said:?}");
        assert!(said.contains("\\u202e"), "{words:?}: a program gets every character: {said:?}");
    }
}

#[test]
fn whoever_looks_before_approving_reads_all_that_the_author_says_to_a_program() {
    let workspace = Workspace::new();
    configure(&workspace, "[executors.sh]\nkind = \"process\"\ncommand = [\"/bin/sh\"]\n");
    let long = format!("{} rm -rf HOME", "harmless ".repeat(60));
    let plan = serde_json::json!({ "format": "waypost/1", "id": "long", "title": "x", "tasks": [
        { "id": "a", "description": "first", "work": { "executor": "sh", "inputs": { "say": long } } },
        { "id": "b", "description": "passed over", "skip": true, "work": { "executor": "sh", "inputs": {} } },
    ] });
    fs::write(workspace.work().join("long.json"), plan.to_string()).unwrap();
    let output = workspace.waypost(&["run", "long.json", "--dry-run"]);
    let (shown, _) = text(&output);
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words.join(" ").contains("rm -rf HOME"), "{shown}");
}

#[test]
fn secrets_of_several_lines_and_with_characters_that_json_escapes_are_stored_nowhere() {
    let config = "[executors.run]\nkind = \"process\"\ncommand = [\"sh\", \"-c\", \"echo using \\\"$KEY\\\" \\\"$WORD\\\" >&2; cat out.json\"]\n\
                  secrets.KEY = { file = \"key\" }\nsecrets.WORD = { file = \"word\" }\n";
    let place = Place::new(config);
    let (key, word) =
        ("-----BEGIN KEY-----\nTOPSECRET1\nTOPSECRET2\n-----END KEY-----\n", "pa\"ss\\wordTOPSECRET3");
    let put = |name: &str, text: &str| fs::write(place.workspace.work().join(name), text).unwrap();
    put("key", key);
    put("word", word);
    // As programs write it, and as nobody does.
    let numbered: String = word.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let written =
        serde_json::json!({ "key": key, "word": word, "more": ["kept", 9_007_199_254_740_993_u64] });
    put("out.json", &written.to_string().replace("kept", &numbered));
    let file = place.plan(serde_json::json!({ "executor": "run" }));
    let output = place.workspace.waypost(&["run", file]);
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    let shown = text(&place.workspace.waypost(&["task", "show", "p", "a", "--json"])).0;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let expected =
        serde_json::json!({ "key": "***\n", "word": "***", "more": ["***", 9_007_199_254_740_993_u64] });
    assert_eq!(shown["task"]["state"]["output"], expected, "{shown}");
    let log = fs::read_to_string(place.workspace.work().join(".waypost/logs/p/a.1.log")).unwrap();
    assert_eq!(log, "using ***\n***\n***\n*** ***\n");
    for file in fs::read_dir(place.workspace.work().join(".waypost")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(9).any(|part| part == b"TOPSECRET"), "in the store");
    }
}
