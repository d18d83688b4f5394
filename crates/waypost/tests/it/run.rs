//! `waypost run` as people and scripts use it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::transcript::Workspace;

pub(crate) fn configure(workspace: &Workspace, text: &str) {
    let folder = workspace.work().join(".waypost");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
    workspace.trust();
}

pub(crate) fn text(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn shell(line: &str) -> String {
    format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line:?}]\n")
}

fn plan(tasks: &[(&str, &[&str], &[&str])]) -> String {
    let tasks: Vec<serde_json::Value> = tasks
        .iter()
        .map(|(id, depends_on, locks)| {
            serde_json::json!({
                "id": id, "depends_on": depends_on, "locks": locks, "work": { "executor": "run", "inputs": {} },
            })
        })
        .collect();
    serde_json::json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks }).to_string()
}

fn put(workspace: &Workspace, name: &str, text: &str) {
    fs::write(workspace.work().join(name), text).unwrap();
}

fn spawn(workspace: &Workspace, words: &[&str]) -> Child {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

#[test]
fn the_example_of_the_repository_edits_and_verifies() {
    let workspace = Workspace::new();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for folder in ["workers", "fixture"] {
        fs::create_dir_all(workspace.work().join("examples").join(folder)).unwrap();
        for entry in fs::read_dir(examples.join(folder)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), workspace.work().join("examples").join(folder).join(entry.file_name()))
                .unwrap();
        }
    }
    fs::copy(examples.join("config.toml"), workspace.work().join("examples/config.toml")).unwrap();
    let file = examples.join("fanout.json").display().to_string();
    let (out, err) = text(&workspace.waypost(&["run", &file, "--config", "examples/config.toml"]));
    assert!(out.contains("plan rename-fanout is completed"), "{out}{err}");
    for name in ["parser.ts", "store.ts", "views.ts"] {
        let edited = fs::read_to_string(workspace.work().join("examples/scratch").join(name)).unwrap();
        assert!(edited.contains("Entry") && !edited.contains("Item"), "{edited}");
    }
    let started: Vec<usize> = ["parser", "store", "views"]
        .iter()
        .map(|name| out.find(&format!("start    edit-{name}")).unwrap())
        .collect();
    let first_done = out.find("done     edit-").unwrap();
    assert!(started.iter().all(|&at| at < first_done), "the edits overlap: {out}");
    // What is done is not done again.
    let again = workspace.waypost(&["run", &file, "--config", "examples/config.toml"]);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again).0.starts_with("plan rename-fanout is completed"), "{again:?}");
}

#[test]
fn a_dry_run_runs_and_writes_nothing() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("touch ran"));
    put(&workspace, "p.json", &plan(&[("a", &[], &[]), ("b", &["a"], &["x"])]));
    let output = workspace.waypost(&["run", "p.json", "--dry-run"]);
    let (out, _) = text(&output);
    assert_eq!(
        out,
        "2 tasks in 2 batches, at most 4 concurrent (queue default)\nbatch 1\n  a  sh -c 'touch ran'\nbatch 2\n  b  sh -c 'touch ran'\n      depends on: a\n      locks: x\n"
    );
    assert!(!workspace.work().join("ran").exists() && !workspace.work().join(".waypost/waypost.db").exists());
}

#[test]
fn a_dry_run_of_a_file_sees_the_plan_in_the_store() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("touch ran-$WAYPOST_TASK; [ $WAYPOST_TASK != b ] || test -e go"));
    put(&workspace, "p.json", &plan(&[("a", &[], &[]), ("b", &["a"], &[])]));
    assert_eq!(workspace.waypost(&["run", "p.json"]).status.code(), Some(1));
    // What is done already does not run, as in a run.
    let dry = workspace.waypost(&["run", "p.json", "--dry-run", "--retry-failed"]);
    let (out, err) = text(&dry);
    assert!(out.starts_with("1 task in 1 batch") && out.contains("\n  b  "), "{out}{err}");
    // Another plan has the id of the file.
    put(&workspace, "other.json", &plan(&[("x", &[], &[])]));
    let (dry, run) =
        (workspace.waypost(&["run", "other.json", "--dry-run"]), workspace.waypost(&["run", "other.json"]));
    assert!(
        text(&run).1.contains("plan p is already in the store, and other.json differs from it"),
        "{run:?}"
    );
    assert_eq!((dry.status.code(), text(&dry)), (run.status.code(), text(&run)));
}

#[test]
fn what_the_configuration_does_not_have_runs_nothing() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("touch ran"));
    let mut wrong = plan(&[("a", &[], &[]), ("b", &[], &[])]);
    wrong = wrong.replacen("\"run\"", "\"rm\"", 1);
    put(&workspace, "p.json", &wrong);
    let output = workspace.waypost(&["run", "p.json", "--yes"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(err.contains("task a: no executor is called rm"), "{err}");
    let queued = workspace.waypost(&["run", "p.json", "--queue", "fast"]);
    assert!(text(&queued).1.contains("plan: no queue is called fast"), "{queued:?}");
    assert!(!workspace.work().join("ran").exists());
}

#[test]
fn a_mistake_in_the_configuration_is_named_with_its_line() {
    let workspace = Workspace::new();
    configure(&workspace, "[queues.default]\nconcurency = 2\nconcurrency = 2\n");
    put(&workspace, "p.json", &plan(&[]));
    let output = workspace.waypost(&["run", "p.json"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(4));
    assert!(err.contains(".waypost/config.toml:2: `queues.default.concurency` is not a key"), "{err}");
    assert!(err.contains("did you mean `concurrency`?"), "{err}");
}

#[test]
fn an_agents_plan_runs_only_after_a_person_has_approved() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("touch ran"));
    put(&workspace, "p.json", &plan(&[("a", &[], &[])]));
    assert!(workspace.waypost(&["--as", "agent:x", "import", "p.json"]).status.success());
    for words in [
        &["run", "p"][..],
        &["run", "p", "--yes"],
        &["--as", "agent:x", "run", "p"],
        &["--as", "agent:x", "run", "p", "--yes"],
    ] {
        let output = workspace.waypost(words);
        let (_, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("needs approval before it runs"), "{err}");
        assert!(!workspace.work().join("ran").exists());
    }
    // What the person imported also runs as the file that it was.
    put(&workspace, "own.json", &plan(&[("a", &[], &[])]).replace("\"p\"", "\"own\""));
    assert!(workspace.waypost(&["import", "own.json"]).status.success());
    let (_, err) = text(&workspace.waypost(&["run", "own"]));
    assert!(err.contains("from the store, where agents can change it"), "{err}");
    assert!(err.contains("or run the file that you imported: `waypost run FILE`"), "{err}");
    assert!(workspace.waypost(&["run", "own.json"]).status.success());
    fs::remove_file(workspace.work().join("ran")).unwrap();
    let output = workspace.at_terminal(&["run", "p"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(workspace.work().join("ran").exists());
    let (history, _) = text(&workspace.waypost(&["history", "p"]));
    assert!(history.contains("person:ada") && history.contains("approved version 1"), "{history}");
}

#[test]
fn a_failure_is_shown_with_its_reason_and_can_be_retried() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("[ -e fixed ] || { echo the disk is full >&2; exit 3; }"));
    put(&workspace, "p.json", &plan(&[("a", &[], &[]), ("b", &["a"], &[])]));
    let output = workspace.waypost(&["run", "p.json"]);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    // How long it took depends on the machine.
    let failed = out.lines().find_map(|line| line.strip_prefix("failed   a (")).unwrap_or_default();
    let (seconds, reason) = failed.split_once("s): ").unwrap_or_default();
    assert!(seconds.parse::<f64>().is_ok(), "{out}");
    assert_eq!(reason, "it ended with exit code 3: the disk is full", "{out}");
    assert!(out.contains("skipped  b: a did not succeed"), "{out}");
    assert_eq!(text(&workspace.waypost(&["log", "p", "a"])).0, "the disk is full\n");
    let over = workspace.waypost(&["run", "p.json"]);
    assert!(text(&over).1.contains("waypost retry p"), "{over:?}");
    put(&workspace, "fixed", "");
    assert!(workspace.waypost(&["retry", "p"]).status.success());
    assert_eq!(workspace.waypost(&["run", "p.json"]).status.code(), Some(0));
}

#[test]
fn a_file_that_asks_for_something_else_than_the_stored_plan_is_refused() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("true"));
    put(&workspace, "p.json", &plan(&[("a", &[], &[])]));
    assert_eq!(workspace.waypost(&["run", "p.json"]).status.code(), Some(0));
    put(&workspace, "p.json", &plan(&[("a", &[], &[]), ("b", &[], &[])]));
    let output = workspace.waypost(&["run", "p.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).1.contains("plan p is already in the store, and p.json differs from it"),
        "{output:?}"
    );
}

#[test]
fn a_file_that_is_called_like_plans_is_not_taken_for_them() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("touch ran"));
    for id in ["release", "deploy-1", "deploy-2"] {
        assert!(workspace.waypost(&["new", "A plan", "--id", id, "--task", "one"]).status.success());
    }
    for name in ["release", "deploy"] {
        put(&workspace, name, &plan(&[("a", &[], &[])]));
        let output = workspace.waypost(&["run", name]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output).1.contains(&format!("write ./{name} for the file")), "{output:?}");
    }
    assert!(!workspace.work().join("ran").exists());
    assert_eq!(workspace.waypost(&["run", "./release"]).status.code(), Some(0));
}

#[test]
fn a_log_says_when_its_lines_were_written_if_that_is_known() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("printf '10%%\\r100%%\\n' >&2; echo said >&2"));
    put(&workspace, "p.json", &plan(&[("a", &[], &[])]));
    assert_eq!(workspace.waypost(&["run", "p.json"]).status.code(), Some(0));
    let log = workspace.work().join(".waypost/logs/p/a.1.log");
    assert_eq!(fs::read_to_string(&log).unwrap(), "10%\r100%\nsaid\n", "the bytes of the program");
    let timed = text(&workspace.waypost(&["log", "p", "a", "--timestamps"])).0;
    let lines: Vec<(&str, &str)> = timed.lines().map(|line| line.split_at(20)).collect();
    assert_eq!(lines.iter().map(|(_, words)| *words).collect::<Vec<_>>(), ["100%", "said"], "{timed}");
    let is_time = |at: &str| waypost_core::Timestamp::parse(&at.trim_end().replace(' ', "T")).is_ok();
    assert!(lines.iter().all(|(at, _)| is_time(at)), "{timed}");
    fs::remove_file(log.with_extension("times")).unwrap();
    let (plain, said) = text(&workspace.waypost(&["log", "p", "a", "--timestamps"]));
    assert_eq!(plain, "10%\r100%\nsaid\n");
    assert!(said.contains("no timestamps"), "{said}");
}

#[test]
fn a_log_that_somebody_looks_at_has_colours_and_neither_other_sequences_nor_protocol_lines() {
    let workspace = Workspace::new();
    let says = r"printf 'waypost:progress half\n\033[2J\033[31mred\033[0m\nlast\n' >&2";
    configure(&workspace, &shell(says));
    put(&workspace, "p.json", &plan(&[("a", &[], &[])]));
    assert_eq!(workspace.waypost(&["run", "p.json"]).status.code(), Some(0));
    let of = |more: &[&str]| text(&workspace.waypost(&[&["log", "p", "a"], more].concat())).0;
    assert_eq!(
        of(&[]),
        "waypost:progress half\n\u{1b}[2J\u{1b}[31mred\u{1b}[0m\nlast\n",
        "the bytes of the program"
    );
    assert_eq!(of(&["--color", "always"]), "\u{1b}[0;31mred\u{1b}[0m\nlast\n");
    let timed = of(&["--timestamps", "--color", "always"]);
    assert_eq!(timed.lines().count(), 2, "{timed}");
}

#[test]
fn a_log_is_read_and_written_only_where_it_is() {
    use std::os::unix::fs::symlink;

    let workspace = Workspace::new();
    configure(&workspace, &shell("echo said >&2; exit 1"));
    put(&workspace, "p.json", &plan(&[("a", &[], &[])]));
    put(&workspace, "secret", "hunter2");
    let log = workspace.work().join(".waypost/logs/p/a.1.log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    // A second name of another file, in the place of the log.
    fs::hard_link(workspace.work().join("secret"), &log).unwrap();
    fs::hard_link(workspace.work().join("secret"), log.with_extension("times")).unwrap();
    assert_eq!(workspace.waypost(&["run", "p.json"]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(workspace.work().join("secret")).unwrap(), "hunter2");
    assert!(text(&workspace.waypost(&["log", "p", "a"])).0.contains("said"));
    let place: [fn(&Workspace, &std::path::Path); 3] = [
        |workspace, log| symlink(workspace.work().join("secret"), log).unwrap(),
        |workspace, log| fs::hard_link(workspace.work().join("secret"), log).unwrap(),
        |_, log| rustix::fs::mkfifoat(rustix::fs::CWD, log, rustix::fs::Mode::RUSR).unwrap(),
    ];
    for place in place {
        fs::remove_file(&log).unwrap();
        place(&workspace, &log);
        let output = workspace.waypost(&["log", "p", "a"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(text(&output).0, "");
    }
}

#[test]
fn ctrl_c_once_waits_for_what_runs_and_twice_stops_it() {
    for (presses, finishes) in [(1, true), (2, false)] {
        let workspace = Workspace::new();
        // Each attempt runs until the test lets it finish.
        let work = "until [ -e may-finish ]; do sleep 0.01; done; touch \"$WAYPOST_TASK.$WAYPOST_ATTEMPT\"";
        configure(&workspace, &shell(work));
        put(&workspace, "p.json", &plan(&[("a", &[], &["x"]), ("b", &[], &["x"])]));
        let mut child = spawn(&workspace, &["run", "p.json"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().as_deref(), Some("start    a"));
        for press in 0..presses {
            signal(&child, Signal::INT);
            let line = lines.next().unwrap();
            let expected =
                if press == 0 { "ending   no further tasks start" } else { "ending   stopping what runs" };
            assert!(line.starts_with(expected), "{line}");
        }
        if finishes {
            put(&workspace, "may-finish", "");
        }
        let rest: Vec<String> = lines.collect();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
        assert_eq!(workspace.work().join("a.1").exists(), finishes, "{rest:?}");
        // The next run continues where this one stopped.
        put(&workspace, "may-finish", "");
        let output = workspace.waypost(&["run", "p"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(workspace.work().join("b.1").exists());
        assert_eq!(workspace.work().join("a.2").exists(), !finishes);
    }
}

#[test]
fn others_can_cancel_add_and_do_what_is_for_people_while_it_runs() {
    let workspace = Workspace::new();
    let config = format!(
        "{}[executors.ask]\nkind = \"human\"\n",
        shell("[ \"$WAYPOST_TASK\" != long ] || sleep 3600")
    );
    configure(&workspace, &config);
    let text_of = plan(&[("long", &[], &[]), ("sign", &[], &[]), ("after", &["sign"], &[])]);
    // The second task is for a person.
    let mut value: serde_json::Value = serde_json::from_str(&text_of).unwrap();
    value["tasks"][1]["work"]["executor"] = "ask".into();
    put(&workspace, "p.json", &value.to_string());
    let mut child = spawn(&workspace, &["run", "p.json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("start    long"));
    assert!(workspace.waypost(&["cancel", "p", "long"]).status.success());
    let stopped = lines.next().unwrap();
    assert!(stopped.starts_with("stopped  long"), "{stopped}");
    let waiting = lines.next().unwrap();
    assert_eq!(waiting, "waiting  plan p: sign is for a person: `waypost answer p sign yes`, or no");
    let (_, absent) = text(&workspace.waypost(&["done", "p", "sign"]));
    assert!(absent.contains("ending a task for people needs a person at a terminal"), "{absent}");
    assert!(workspace.at_terminal(&["done", "p", "sign"]).status.success());
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.starts_with("done     after")), "{rest:?}");
    assert_eq!(child.wait().unwrap().code(), Some(1), "a cancelled task is not a completed plan");
}

#[test]
fn a_cancelled_task_is_stopped_also_in_a_container_that_was_started_from_outside() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("touch began; sleep 3600"));
    put(&workspace, "p.json", &plan(&[("long", &[], &[])]));
    // The process group of what runs in there has the number 0.
    let line = "waypost run p.json & until [ -e began ]; do sleep 0.02; done; waypost cancel p long; wait $!; echo $?";
    let mut command = workspace.command("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        line,
    ]);
    let (out, err) = text(&command.output().unwrap());
    if !workspace.work().join("began").exists() {
        // Not every machine lets its users make a namespace.
        println!("skipped: no process namespace can be made here: {err}");
        return;
    }
    assert!(out.contains("stopped  long"), "{out}{err}");
    assert!(out.ends_with("\n1\n"), "{out}{err}");
}

#[test]
fn programs_get_json_lines_and_why_and_events_tell_the_rest() {
    let workspace = Workspace::new();
    configure(&workspace, &shell("echo 7"));
    put(&workspace, "p.json", &plan(&[("a", &[], &[]), ("b", &["a"], &[])]));
    let (why, _) = {
        assert!(workspace.waypost(&["import", "p.json"]).status.success());
        text(&workspace.waypost(&["why", "p", "b"]))
    };
    assert!(why.contains("a (ready)"), "{why}");
    let (out, _) = text(&workspace.waypost(&["run", "p.json", "--json"]));
    let events: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["task_started", "task_ended", "task_started", "task_ended", "plan_is", "run_ended"],
        "{out}"
    );
    assert_eq!(events[5]["critical_path"], serde_json::json!(["a", "b"]));
    let (log, _) = text(&workspace.waypost(&["events", "--json"]));
    let numbers: Vec<u64> = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}
