//! Every refusal says in one line what happened, and what to type next.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::run::{configure, text};
use crate::transcript::Workspace;

const CONFIG: &str = "[executors.run]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n";

/// A trusted workspace with a plan `p` that an agent wrote: machine work, and a task for a person.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    configure(&workspace, CONFIG);
    let tasks = json!([
        { "id": "work", "work": { "executor": "run" } },
        { "id": "gate", "work": { "executor": "human" } },
    ]);
    let plan = json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks });
    fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    succeeds(&agent(&workspace, &["import", "p.json"]));
    workspace
}

fn program(workspace: &Workspace, words: &[&str]) -> Command {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.args(words);
    command
}

fn agent(workspace: &Workspace, words: &[&str]) -> Output {
    program(workspace, words).env("CLAUDECODE", "1").output().unwrap()
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{:?}", text(output));
}

/// Checks the exit code, the code for programs, the message and the hint of a command with `--json`.
#[track_caller]
fn check(output: &Output, exit: i32, code: &str, message: &str, hint: &str) {
    let (out, err) = text(output);
    let answer = err.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).next_back();
    let error = answer.unwrap_or_default()["error"].take();
    let said = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    assert_eq!((output.status.code(), said("code").as_str()), (Some(exit), code), "{out}{err}");
    assert!(said("message").contains(message), "{message:?} is not in {:?}", said("message"));
    assert_eq!(said("hint"), hint, "{code}");
    assert!(!said("hint").contains('\n'));
}

/// Checks what is shown of a plan that a worker refused to start.
#[track_caller]
fn check_refused(workspace: &Workspace, message: &str, hint: &str) {
    succeeds(&workspace.waypost(&["worker", "--until-idle"]));
    let shown = [&["show", "p"][..], &["list"], &["why", "p", "work"]];
    for words in shown {
        let (out, err) = text(&workspace.waypost(words));
        let line = format!("{out}{err}").lines().find(|line| line.contains(message)).map(str::to_owned);
        let line = line.unwrap_or_else(|| panic!("{words:?} does not say {message:?}: {out}{err}"));
        assert!(line.ends_with(&format!("({hint})")), "{words:?}: {line}");
    }
    assert!(!workspace.work().join("ran").exists());
}

#[test]
fn who_cannot_approve_learns_who_can_and_how() {
    let workspace = self::workspace();
    let approve = ["approve", "p", "--json"];
    let as_ada = agent(&workspace, &["approve", "p", "--json", "--as", "person:ada"]);
    let inside = "--as: this runs inside claude-code (CLAUDECODE is set), so it cannot act as person:ada";
    check(&as_ada, 1, "not_that_actor", inside, "a person does this in a terminal of their own");
    let other = workspace.at_terminal(&["approve", "p", "--json", "--as", "person:eve"]);
    let own = "run `waypost approve p` in a terminal, without --as and WAYPOST_ACTOR";
    check(&other, 1, "not_that_actor", "person:eve is a name that was given", own);
    let only = "only a person can approve a plan; agent:claude-code cannot";
    check(&agent(&workspace, &approve), 1, "needs_person", only, "ask a person to run `waypost approve p`");
    let present = "approving needs a person at a terminal, and there is none";
    let terminal = "run `waypost approve p` in a terminal, or add --sign";
    check(&workspace.waypost(&approve), 1, "needs_terminal", present, terminal);
    let yes = workspace.at_terminal(&["approve", "p", "--json", "--yes"]);
    check(&yes, 1, "seen_missing", "say what you have seen: --seen DIGEST", "`waypost preview p` prints it");
    let old = workspace.at_terminal(&["approve", "p", "--json", "--yes", "--seen", "sha256:0"]);
    let again = "look at it again with `waypost preview p`, then decide";
    check(&old, 3, "changed_since_seen", "plan p changed while you were reading", again);

    let (preview, _) = text(&workspace.waypost(&["preview", "p", "--json"]));
    let digest = serde_json::from_str::<Value>(&preview).unwrap()["digest"].as_str().unwrap().to_owned();
    let seen = ["approve", "p", "--json", "--yes", "--seen", &digest];
    for (proof, needs, with) in
        [("signature", "a signature", ""), ("touch", "a signature with touch", " with a security key")]
    {
        workspace.configure_user(&format!("[approval]\nproof = \"{proof}\"\n"));
        let needs = format!("approval here needs {needs}; presence is not enough");
        let sign = format!("run `waypost approve p --sign`{with}");
        check(&workspace.at_terminal(&seen), 1, "needs_proof", &needs, &sign);
    }
}

#[test]
fn who_cannot_end_a_gate_or_undo_a_stop_learns_who_can() {
    let workspace = self::workspace();
    succeeds(&workspace.at_terminal(&["approve", "p"]));
    let done = agent(&workspace, &["done", "p", "gate", "--json"]);
    let gate = "task gate is for a person; agent:claude-code cannot end it";
    check(&done, 1, "human_gate", gate, "ask a person to run `waypost answer p gate yes`");
    let answer = workspace.waypost(&["answer", "p", "gate", "yes", "--json"]);
    let terminal = "run `waypost answer p gate yes` in a terminal, or add --sign";
    check(&answer, 1, "needs_terminal", "answering needs a person at a terminal", terminal);
    succeeds(&workspace.at_terminal(&["pause", "p", "--reason", "wrong database"]));
    let stopped = "person:ada paused the plan (\"wrong database\"); only a person can resume it";
    let ada = "ask ada to run the same command in a terminal of their own";
    check(&agent(&workspace, &["resume", "p", "--json"]), 1, "stopped_by_person", stopped, ada);
    let resume = workspace.waypost(&["resume", "p", "--json"]);
    let undo = "undoing a person's stop needs a person at a terminal, and there is none";
    check(&resume, 1, "needs_terminal", undo, "run `waypost resume p` in a terminal");
    succeeds(&workspace.waypost(&["new", "Q", "--id", "q", "--task", "one"]));
    succeeds(&workspace.waypost(&["request-approval", "q"]));
    succeeds(&workspace.at_terminal(&["reject", "q", "no"]));
    let submit = workspace.waypost(&["submit", "q", "--json"]);
    let approve = "run `waypost approve q` in a terminal, or add --sign";
    check(&submit, 1, "needs_terminal", undo, approve);
    let submit = workspace.at_terminal(&["submit", "p", "--json"]);
    check(&submit, 1, "wrong_phase", "paused", "resume it first: `waypost resume` and its id");
    let prune = agent(&workspace, &["prune", "--older-than", "1d", "--json"]);
    let person = "ask a person to run the same command in a terminal of their own";
    check(&prune, 1, "needs_person", "only a person can prune plans", person);
}

#[test]
fn what_waits_for_approval_names_the_command_that_approves_it() {
    let workspace = self::workspace();
    let approve = "a person approves it: `waypost approve p`";
    let start = ["start", "p", "work", "--json"];
    let needs = "the plan needs a person's approval before anything runs";
    check(&workspace.at_terminal(&start), 1, "needs_approval", needs, approve);
    succeeds(&agent(&workspace, &["request-approval", "p"]));
    check(&workspace.at_terminal(&start), 1, "needs_approval", needs, approve);
}

#[test]
fn a_worker_that_starts_nothing_says_what_to_type() {
    let workspace = self::workspace();
    succeeds(&workspace.at_terminal(&["approve", "p"]));
    configure(&workspace, &CONFIG.replace("touch", "rm"));
    let restore = "approve it again: `waypost approve p`; or restore this worker's configuration";
    check_refused(&workspace, "(executor run: command)", restore);

    let place = self::workspace();
    let home = place.root.join("home2");
    fs::create_dir_all(&home).unwrap();
    for words in [&["trust"][..], &["approve", "p"]] {
        let mut command = program(&place, words);
        command.env("WAYPOST_INJECTED_HOME", &home).env("WAYPOST_INJECTED_TERMINAL", "yes");
        succeeds(&command.output().unwrap());
    }
    let approve = "a person approves it: `waypost approve p`";
    check_refused(&place, "the approval of plan p was not given on this account", approve);
}

#[test]
fn a_store_that_was_replaced_can_be_trusted() {
    let (workspace, other) = (self::workspace(), self::workspace());
    succeeds(&workspace.at_terminal(&["approve", "p"]));
    for ending in ["-wal", "-shm"] {
        let _absent = fs::remove_file(workspace.work().join(format!(".waypost/waypost.db{ending}")));
    }
    let database = ".waypost/waypost.db";
    succeeds(&other.at_terminal(&["approve", "p"]));
    fs::copy(other.work().join(database), workspace.work().join(database)).unwrap();
    let trust = "if you replaced it, run `waypost trust`";
    check_refused(&workspace, "is not the store that this account used there", trust);
    let approve = workspace.at_terminal(&["approve", "p"]);
    let (_, err) = text(&approve);
    assert!(err.contains("is not the store that this account used there") && err.contains(trust), "{err}");
    let (said, _) = text(&workspace.at_terminal(&["trust"]));
    assert!(said.contains("waypost.db is trusted in place of the store that was there"), "{said}");
    let (said, _) = text(&workspace.at_terminal(&["trust"]));
    assert!(said.starts_with("already trusted: "), "{said}");
    succeeds(&workspace.at_terminal(&["approve", "p"]));
    succeeds(&workspace.waypost(&["worker", "--until-idle"]));
    assert!(workspace.work().join("ran").exists());
}

#[test]
fn an_untrusted_folder_is_mentioned_once_with_what_to_type() {
    let workspace = self::workspace();
    let ways = "without a terminal name it with --config FILE, or set WAYPOST_TRUST to what `waypost trust --digest` prints";
    let run = ["run", "p.json", "--json"];
    fs::write(workspace.work().join(".waypost/config.toml"), format!("{CONFIG}# edited\n")).unwrap();
    let changed = ".waypost/config.toml changed since it was trusted (.waypost/config.toml)";
    let difference = format!("`waypost trust` shows the difference; {ways}");
    check(&workspace.waypost(&run), 4, "trust_changed", changed, &difference);
    succeeds(&workspace.waypost(&["untrust"]));
    let not =
        ".waypost/config.toml is not trusted on this machine; its executors, reporters and models are off";
    let read = format!("read it, then run `waypost trust`; {ways}");
    check(&workspace.waypost(&run), 4, "not_trusted", not, &read);
    check(&agent(&workspace, &run), 4, "not_trusted", not, "ask a person to read it and run `waypost trust`");
    for words in [&["run", "p.json"][..], &["submit", "p.json"], &["worker", "--until-idle"], &["show", "p"]]
    {
        let (out, err) = text(&workspace.waypost(words));
        assert!(err.matches("is not trusted").count() <= 1, "{words:?} says it more than once: {out}{err}");
    }
}

#[test]
fn an_agents_configuration_and_a_strangers_folder_are_refused_with_the_ways_out() {
    let workspace = self::workspace();
    fs::write(workspace.work().join("evil.toml"), CONFIG).unwrap();
    let run = agent(&workspace, &["run", "p.json", "--config", "evil.toml", "--json"]);
    let own = "a person puts it into their own configuration";
    check(&run, 4, "config_only_tightens", "evil.toml:1: an agent's --config cannot define executors", own);
    let path = workspace.work();
    let mut list = program(&workspace, &["list", "--json"]);
    match fs::metadata(&path).unwrap().uid() {
        0 => chown(&path, Some(65_534), None).unwrap(),
        // Another user than the one whose folder this is.
        _ => drop(list.env("WAYPOST_INJECTED_UID", "4242")),
    }
    let ways = format!(
        "chown -R $(id -u) {}, or name both a store and a configuration: --store URL --config FILE",
        path.display()
    );
    check(&list.output().unwrap(), 1, "foreign_owner", "and is not used", &ways);
}

#[test]
fn a_store_that_cannot_be_opened_is_no_damage() {
    let workspace = Workspace::new();
    fs::write(workspace.work().join("notes.txt"), "these are no plans").unwrap();
    let file = workspace.waypost(&["--store", "sqlite:notes.txt", "list", "--json"]);
    let message = "notes.txt is not a database";
    check(&file, 1, "not_a_database", message, "check the path; nothing was changed");
    let folder = workspace.waypost(&["--store", "sqlite:.", "list", "--json"]);
    let hint = "name a file, for example sqlite:FOLDER/waypost.db";
    check(&folder, 1, "files", ".: it is a folder", hint);
    let gone = workspace.waypost(&["--store", "postgres://nobody@127.0.0.1:1/x", "list", "--json"]);
    let message = "PostgreSQL at 127.0.0.1:1 (database x, user nobody) does not answer";
    let hint = "check the address, and that the server runs and lets you in";
    check(&gone, 1, "unreachable", message, hint);
}

#[test]
fn a_command_behind_plan_is_no_goal_for_a_model() {
    let workspace = Workspace::new();
    let otherwise =
        "put the goal in quotes, in several words; `waypost plan -` reads any goal from standard input";
    let meant = |line: &str| format!("did you mean `{line}`? Otherwise {otherwise}");
    let asked = |words: &[&str]| workspace.waypost(&[&["plan"], words, &["--json"]].concat());
    let one = |word: &str| format!("{word:?} is one word, and not the goal of a plan");
    check(&asked(&["list"]), 2, "usage", &one("list"), &meant("waypost list"));
    check(&asked(&["statsu"]), 2, "usage", &one("statsu"), &meant("waypost status"));
    check(&asked(&["kq3"]), 2, "usage", &one("kq3"), otherwise);
    let two = "a goal is one argument, and these are 2";
    check(&asked(&["shwo", "sp"]), 2, "usage", two, &meant("waypost show sp"));
    check(&asked(&["decmpose", "a b"]), 2, "usage", two, &meant("waypost plan decompose 'a b'"));
    check(&asked(&["Refactor", "auth"]), 2, "usage", two, otherwise);
    // What is not a word of the command line may be a goal in one: the model is missing.
    let (_, said) = text(&asked(&["認証をJWTに移行する"]));
    assert!(!said.contains("\"usage\""), "{said}");
}
