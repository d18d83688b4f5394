//! What agents, workers and other users of the machine cannot make the program believe: who calls, whose configuration
//! counts, whose folder it is.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::run::{configure, text};
use crate::transcript::Workspace;

/// An executor that leaves a witness of having run.
const TOUCH: &str = "[executors.touch]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n";

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A workspace with a plan in `p.json` whose task names the executor `touch`.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let plan = r#"{"format":"waypost/1","id":"p","title":"p","tasks":[{"id":"a","description":"a","work":{"executor":"touch"}}]}"#;
    put(&workspace.work().join("p.json"), plan);
    workspace
}

fn waypost(workspace: &Workspace, words: &[&str]) -> Command {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.args(words);
    command
}

fn agent(workspace: &Workspace, words: &[&str]) -> Command {
    let mut command = waypost(workspace, words);
    command.env("CLAUDECODE", "1");
    command
}

#[track_caller]
fn check(output: &Output, code: i32, said: &str) {
    let (out, err) = text(output);
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    assert!(err.contains(said), "{said:?} is not in {err}");
}

#[track_caller]
fn nothing_ran(workspace: &Workspace) {
    assert!(!workspace.work().join("ran").exists(), "something ran");
}

#[test]
fn a_file_that_an_agent_names_cannot_bring_executors_or_waive_approval() {
    let workspace = workspace();
    put(&workspace.work().join("evil.toml"), TOUCH);
    put(&workspace.work().join("never.toml"), "approval = \"never\"\n");
    let (file, flag) = ("p.json", "--config");
    let executors = "evil.toml:1: an agent's --config cannot define executors";
    for words in [&["run", file, "--yes", flag, "evil.toml"][..], &["submit", file, flag, "evil.toml"]] {
        check(&agent(&workspace, words).output().unwrap(), 4, executors);
    }
    check(&agent(&workspace, &["worker", "--until-idle", flag, "evil.toml"]).output().unwrap(), 4, executors);
    let said = "never.toml:1: an agent's --config cannot ask for less approval";
    check(&agent(&workspace, &["run", file, flag, "never.toml"]).output().unwrap(), 4, said);
    let json = agent(&workspace, &["--json", "run", file, flag, "never.toml"]).output().unwrap();
    check(&json, 4, "\"code\":\"config_only_tightens\"");
    let mut task = waypost(&workspace, &["run", file, flag, "evil.toml"]);
    let output = task.env("WAYPOST_ACTOR", "worker:kq3").output().unwrap();
    check(&output, 4, "evil.toml:1: a worker's --config cannot define executors");
    nothing_ran(&workspace);
    // For a person naming a file is consent.
    check(&waypost(&workspace, &["run", file, flag, "evil.toml"]).output().unwrap(), 0, "");
    assert!(workspace.work().join("ran").exists());
}

#[test]
fn variables_do_not_choose_the_configuration_of_an_agent() {
    let workspace = workspace();
    let evil = workspace.root.join("evil");
    put(&evil.join("waypost/config.toml"), TOUCH);
    put(&evil.join(".config/waypost/config.toml"), TOUCH);
    for variable in ["XDG_CONFIG_HOME", "HOME"] {
        let output = agent(&workspace, &["run", "p.json", "--yes"]).env(variable, &evil).output().unwrap();
        check(&output, 4, "no executor is called");
        nothing_ran(&workspace);
    }
    let mut person = waypost(&workspace, &["run", "p.json", "--dry-run"]);
    check(&person.env("HOME", &evil).output().unwrap(), 0, "");
    // The account's own file counts for its agents, and a named one can ask for more.
    let own = workspace.root.join("home/.config/waypost/config.toml");
    put(&own, &format!("approval = \"never\"\n{TOUCH}"));
    put(&workspace.work().join("all.toml"), "[approval]\npolicy = \"all\"\n");
    let output = agent(&workspace, &["run", "p.json", "--config", "all.toml"]).output().unwrap();
    check(&output, 1, "approv");
    nothing_ran(&workspace);
    let elsewhere = workspace.root.join("nowhere");
    let plan = fs::read_to_string(workspace.work().join("p.json")).unwrap().replace("\"p\"", "\"q\"");
    put(&workspace.work().join("q.json"), &plan);
    let output = agent(&workspace, &["run", "q.json"]).env("HOME", &elsewhere).output().unwrap();
    check(&output, 0, "");
    assert!(workspace.work().join("ran").exists());
}

#[test]
fn a_file_of_the_account_that_others_can_write_does_not_count_for_an_agent() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = workspace();
    let own = workspace.root.join("home/.config/waypost/config.toml");
    put(&own, &format!("approval = \"never\"\n{TOUCH}"));
    fs::set_permissions(&own, fs::Permissions::from_mode(0o666)).unwrap();
    let output = agent(&workspace, &["run", "p.json"]).output().unwrap();
    check(&output, 4, "no executor is called");
    nothing_ran(&workspace);
}

#[test]
fn nobody_inside_an_agent_or_a_task_acts_as_a_person() {
    let workspace = workspace();
    assert!(waypost(&workspace, &["new", "A", "--id", "a"]).output().unwrap().status.success());
    let approve = ["approve", "a", "--as", "person:ada"];
    let cannot = "so it cannot act as person:ada";
    for (actor, inside) in [("worker:p", "a task of a plan"), ("agent:x", "x")] {
        let output = waypost(&workspace, &approve).env("WAYPOST_ACTOR", actor).output().unwrap();
        check(&output, 1, &format!("--as: this runs inside {inside} (WAYPOST_ACTOR is set), {cannot}"));
    }
    let mut injected = waypost(&workspace, &approve);
    injected.env("WAYPOST_INJECTED_ANCESTORS", "4712 PATH=/bin; 4711 CLAUDECODE=1");
    let said = "inside claude-code (CLAUDECODE is set in process 4711, which started it), so";
    check(&injected.output().unwrap(), 1, said);
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_or_a_program_that_unsets_its_variables_is_known_by_its_ancestors() {
    let workspace = workspace();
    assert!(waypost(&workspace, &["new", "A", "--id", "a"]).output().unwrap().status.success());
    // A shell that does something afterwards stays an ancestor.
    let script = "env -u CLAUDECODE script -qc 'waypost approve a --as person:ada' /dev/null; true";
    let mut shell = workspace.command("sh");
    shell.args(["-c", script]).env_remove("WAYPOST_INJECTED_ANCESTORS").env("CLAUDECODE", "1");
    let (said, _) = text(&shell.output().unwrap());
    let inside = "this runs inside claude-code (CLAUDECODE is set in process";
    assert!(said.contains(inside), "{said}");

    let unset = "env -u WAYPOST_ACTOR -u WAYPOST_ATTEMPT -u WAYPOST_WORKER -u WAYPOST_PLAN";
    let line = format!(
        "{unset} waypost approve a --as person:ada 2> said; {unset} waypost status set a x 2>> said; {unset} waypost status set p x 2>> said; true"
    );
    configure(
        &workspace,
        &format!("[executors.touch]\nkind = \"process\"\ncommand = [\"sh\", \"-c\", {line:?}]\n"),
    );
    check(&waypost(&workspace, &["run", "p.json"]).output().unwrap(), 0, "");
    let said = fs::read_to_string(workspace.work().join("said")).unwrap();
    assert!(said.contains("this runs inside a task of a plan (WAYPOST_ACTOR is set in process"), "{said}");
    assert!(said.contains("worker:p is the program of a task and works on that alone"), "{said}");
    let history = |plan| text(&waypost(&workspace, &["history", plan]).output().unwrap()).0;
    assert!(!history("a").contains("approved") && !history("a").contains("worker:p"), "{}", history("a"));
    assert!(said.contains("claims tasks and reports on those that it holds"), "{said}");
    assert!(!history("p").contains("worker:p  "), "{}", history("p"));
}

#[test]
fn a_folder_of_another_user_is_not_used_and_keeps_nobody_from_working_below() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    const NOBODY: u32 = 65_534;
    let workspace = workspace();
    let shared = workspace.root.join("shared");
    let (planted, mine) = (shared.join(".waypost"), shared.join("mine"));
    fs::create_dir_all(&mine).unwrap();
    put(&planted.join("config.toml"), TOUCH);
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let at = |words: &[&str]| {
        let words = [&["-C", mine.to_str().unwrap()], words].concat();
        waypost(&workspace, &words)
    };
    let said = |output: &Output, why: &str| {
        let (out, err) = text(output);
        assert!(output.status.success(), "{out}{err}");
        assert_eq!(err.matches(why).count(), 1, "{out}{err}");
    };
    // What runs there is not what was planted.
    fs::copy(workspace.work().join("p.json"), mine.join("p.json")).unwrap();
    said(&at(&["list"]).output().unwrap(), "which others can write, and is not used");
    check(&at(&["run", "p.json"]).output().unwrap(), 4, "touch");
    assert!(!mine.join("ran").exists() && !shared.join("ran").exists());
    assert!(!planted.join("waypost.db").exists(), "nothing is written there");
    if fs::metadata(&mine).unwrap().uid() == 0 {
        chown(&planted, Some(NOBODY), None).unwrap();
        said(&at(&["list"]).output().unwrap(), "belongs to nobody (uid 65534) and is not used");
    }
    said(&at(&["new", "A"]).output().unwrap(), "and is not used");
    assert!(mine.join(".waypost/waypost.db").exists());
    check(&at(&["list"]).output().unwrap(), 0, "");
    assert!(!text(&at(&["list"]).output().unwrap()).1.contains("is not used"), "one's own is nearer");
    // One's own folder has to be one's own, whatever is started there.
    let is_root = fs::metadata(&mine).unwrap().uid() == 0;
    if is_root {
        chown(&mine, Some(NOBODY), None).unwrap();
    }
    let as_stranger = |words: &[&str]| {
        let mut command = at(&[&["--json"], words].concat());
        if !is_root {
            // Another user than the one whose folders these are.
            command.env("WAYPOST_INJECTED_UID", "4242");
        }
        command
    };
    for words in [&["list"][..], &["run", "p.json"], &["worker", "--until-idle"], &["serve"]] {
        check(&as_stranger(words).stdin(Stdio::null()).output().unwrap(), 1, "foreign_owner");
    }
    let mut mcp = as_stranger(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = mcp.stdin.take().unwrap();
    let who = json!({ "name": "robin", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who });
    let list = json!({ "name": "plan_list", "arguments": {} });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": list }),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let mut lines = BufReader::new(mcp.stdout.take().unwrap()).lines().map(Result::unwrap);
    let answer = lines.find(|line| line.contains("\"id\":2")).unwrap();
    assert!(answer.contains("and is not used"), "{answer}");
    drop(input);
    mcp.wait().unwrap();
}

#[test]
fn links_out_of_the_workspace_are_not_followed() {
    use std::os::unix::fs::{MetadataExt, chown, symlink};
    const NOBODY: u32 = 65_534;
    let workspace = Workspace::new();
    let outside = workspace.root.join("outside");
    let own = workspace.work().join(".waypost");
    let list = || waypost(&workspace, &["--json", "list"]).output().unwrap();
    let foreign = "\"code\":\"foreign_owner\"";
    // The whole folder.
    put(&outside.join("config.toml"), TOUCH);
    symlink(&outside, &own).unwrap();
    check(&list(), 0, "");
    // Only root can make what belongs to others.
    if fs::metadata(workspace.work()).unwrap().uid() == 0 {
        chown(&outside, Some(NOBODY), None).unwrap();
        check(&list(), 1, foreign);
    }
    fs::remove_file(&own).unwrap();
    fs::create_dir(&own).unwrap();
    // The database, the logs and the configuration.
    for name in ["waypost.db", "logs", "config.toml"] {
        let target = workspace.root.join(format!("their-{name}"));
        match name {
            "logs" => fs::create_dir(&target).unwrap(),
            _ => fs::write(&target, "").unwrap(),
        }
        // Also one that leads nowhere yet.
        for target in [target, workspace.root.join("nowhere")] {
            symlink(&target, own.join(name)).unwrap();
            check(&list(), 1, foreign);
            check(&list(), 1, "is a link and is not used");
            check(&waypost(&workspace, &["--json", "new", "A"]).output().unwrap(), 1, foreign);
            fs::remove_file(own.join(name)).unwrap();
        }
    }
    check(&list(), 0, "");
    // Everything that is written while plans run, and what is below.
    let (target, folder) = (workspace.root.join("theirs"), |name: &str| fs::create_dir_all(own.join(name)));
    fs::create_dir(&target).unwrap();
    let names = [
        "links",
        "planning",
        "queues",
        "runs",
        "slurm",
        "worktrees",
        "files",
        "waypost.db-wal",
        ".gitignore",
    ];
    let below = [
        "links/x",
        "links/x/texts",
        "links/x/texts/a",
        "planning/p.json",
        "queues/q",
        "runs/r",
        "worktrees/p",
    ];
    for name in names.into_iter().chain(below) {
        let _present = fs::remove_file(own.join(name));
        folder(Path::new(name).parent().unwrap().to_str().unwrap()).unwrap();
        symlink(&target, own.join(name)).unwrap();
        check(&list(), 1, &format!("{name} is a link and is not used"));
        fs::remove_file(own.join(name)).unwrap();
    }
    check(&list(), 0, "");
}

/// An MCP client that declares that it asks a person, and answers by itself. Returns what `plan_start` says, and how often
/// it was asked.
fn start_as_own_person(workspace: &Workspace, client: &str) -> (String, usize) {
    let mut server = agent(workspace, &["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let mut send = |message: Value| writeln!(input, "{message}").unwrap();
    let can = json!({ "elicitation": {} });
    let who = json!({ "name": client, "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": can, "clientInfo": who });
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let start = json!({ "name": "plan_start", "arguments": { "plan": "p", "wait": 1 } });
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": start }));
    let mut asked = 0;
    let mut said = None;
    for line in BufReader::new(output).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if message["method"] == "elicitation/create" {
            asked += 1;
            let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
            send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": yes }));
        } else if message["id"] == 2 {
            said = message["result"]["content"][0]["text"].as_str().map(str::to_owned);
            break;
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    (said.expect("an answer"), asked)
}

#[test]
fn a_client_that_answers_its_own_question_approves_nothing_unless_the_account_names_it() {
    let check = |approval: &str, approves: bool| {
        let workspace = workspace();
        let config = workspace.root.join("home/.config/waypost/config.toml");
        put(&config, &format!("{approval}{TOUCH}"));
        let imported = agent(&workspace, &["import", "p.json"]).output().unwrap();
        assert!(imported.status.success(), "{:?}", text(&imported));
        let (said, asked) = start_as_own_person(&workspace, "evil");
        assert_eq!(
            (said.starts_with("active"), asked),
            (approves, usize::from(approves)),
            "{approval}: {said}"
        );
        assert!(approves || said.contains("waypost approve p"), "{said}");
        let shown = workspace.waypost(&["show", "p", "--json"]);
        assert_eq!(text(&shown).0.contains("someone at evil"), approves, "{:?}", text(&shown));
    };
    check("", false);
    check("[approval]\nelicitation = true\n", false);
    check("[approval]\nproof = \"client\"\nelicitation = [\"claude-code\"]\n", false);
    check("[approval]\nelicitation = [\"evil\"]\n", false);
    check("[approval]\nproof = \"client\"\nelicitation = [\"evil\"]\n", true);
}
