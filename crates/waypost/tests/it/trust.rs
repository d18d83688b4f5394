//! Nothing of a folder's configuration counts until a person has trusted exactly that content on this account.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::mcp_jaato::Agent;
use crate::run::text;
use crate::server::Server;
use crate::transcript::Workspace;

/// An executor that leaves a witness of having run.
const TOUCH: &str = "[executors.touch]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n";
const NOT_TRUSTED: &str = ".waypost/config.toml is not trusted on this machine";

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A workspace with this configuration, which nobody has trusted, and a plan in `p.json` whose task names `touch`.
fn cloned(config: &str) -> Workspace {
    let workspace = Workspace::new();
    for id in ["p", "q"] {
        let plan = json!({ "format": "waypost/1", "id": id, "title": id, "tasks": [
            { "id": "a", "description": "a", "work": { "executor": "touch" } } ] });
        put(&workspace.work().join(format!("{id}.json")), &plan.to_string());
    }
    put(&workspace.work().join(".waypost/config.toml"), config);
    workspace
}

fn waypost(workspace: &Workspace, words: &[&str]) -> Command {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.args(words);
    command
}

#[track_caller]
fn check(output: &Output, code: i32, said: &str) {
    let (out, err) = text(output);
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    assert!(err.contains(said) || out.contains(said), "{said:?} is not in {out}{err}");
}

fn ran(workspace: &Workspace) -> bool {
    workspace.work().join("ran").exists()
}

#[test]
fn a_cloned_repository_runs_and_sends_nothing_until_a_person_trusts_it() {
    let server = Server::start(|_, _, reply| reply.send(200, &[], ""));
    let reporters = format!(
        "[reporters.hook]\nkind = \"webhook\"\nurl = \"http://{}/hook\"\n[reporters.told]\nkind = \"command\"\ncommand = [\"touch\", \"told\"]\n",
        server.address
    );
    let workspace = cloned(&format!("{TOUCH}{reporters}"));
    // Its author has an active plan in the store that comes along. Nobody on this account has trusted anything.
    workspace.trust();
    check(&workspace.waypost(&["submit", "p.json"]), 0, "submitted");
    fs::remove_dir_all(workspace.root.join("home/.local")).unwrap();

    let mut serve = waypost(&workspace, &["serve", "--json"]);
    let mut serve = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(serve.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let greeting: Value = serde_json::from_str(&line).unwrap();
    assert!(greeting["notes"][0].as_str().unwrap().starts_with("not_trusted: "), "{greeting}");
    // A worker would be there before the greeting.
    let workers: Value = serde_json::from_slice(&workspace.waypost(&["workers", "--json"]).stdout).unwrap();
    assert_eq!(workers["workers"], json!([]), "{workers}");
    check(&workspace.waypost(&["list"]), 0, "p");
    serve.kill().unwrap();
    serve.wait().unwrap();

    check(&workspace.waypost(&["worker", "--until-idle"]), 4, NOT_TRUSTED);
    check(&workspace.waypost(&["--json", "worker", "--until-idle"]), 4, "\"code\":\"not_trusted\"");
    for words in [&["run", "p"][..], &["run", "q.json", "--yes"], &["submit", "q.json"]] {
        check(&workspace.waypost(words), 4, NOT_TRUSTED);
    }
    let mut agent = Agent::with_toolset(&workspace, "native", "a");
    agent.call("plan_create", json!({ "title": "T", "tasks": ["a"] }));
    drop(agent);
    check(&workspace.waypost(&["run", "q.json", "--dry-run"]), 0, "touch");
    let told = workspace.work().join("told");
    assert!(!ran(&workspace) && !told.exists() && server.requests().is_empty());

    workspace.trust();
    check(&workspace.waypost(&["run", "q.json"]), 0, "");
    assert!(ran(&workspace) && told.exists() && !server.requests().is_empty());
}

#[test]
fn an_edit_after_trust_is_named_and_does_not_count() {
    let workspace = cloned(TOUCH);
    workspace.trust();
    put(&workspace.work().join(".waypost/config.toml"), &TOUCH.replace("\"ran\"", "\"evil\""));
    let changed = "changed since it was trusted (executors.touch.command)";
    check(&workspace.waypost(&["run", "p.json"]), 4, changed);
    check(&workspace.waypost(&["--json", "run", "p.json"]), 4, "\"code\":\"trust_changed\"");
    check(&workspace.waypost(&["worker", "--until-idle"]), 4, changed);
    assert!(!workspace.work().join("evil").exists());
    put(&workspace.work().join(".waypost/config.toml"), TOUCH);
    check(&workspace.waypost(&["run", "p.json"]), 0, "");
}

#[test]
fn the_files_that_a_configuration_names_are_trusted_with_it() {
    let config = "[executors.touch]\nkind = \"agent\"\ncommand = [\"touch\", \"ran\"]\ntemplate = \"prompts/work.md\"\n[shapes.s]\ninput_schema = \"s.json\"\n";
    let workspace = cloned(config);
    let files = [("prompts/work.md", "Do {{description}}."), (".waypost/s.json", "{}")];
    files.iter().for_each(|(name, text)| put(&workspace.work().join(name), text));
    workspace.trust();
    for (name, text) in files {
        put(&workspace.work().join(name), &format!("{text} "));
        check(&workspace.waypost(&["run", "p.json"]), 4, &format!("changed since it was trusted ({name})"));
        put(&workspace.work().join(name), text);
    }
    assert!(!ran(&workspace));
    check(&workspace.waypost(&["run", "p.json"]), 0, "");
}

#[test]
fn no_template_shows_a_file_by_a_link() {
    let workspace = cloned(TOUCH);
    workspace.trust();
    workspace
        .configure_user("[executors.ai]\nkind = \"agent\"\ncommand = [\"cat\"]\ntemplate = \"prompt.md\"\n");
    let (secret, template) = (workspace.work().join(".env"), workspace.work().join("prompt.md"));
    put(&secret, "KEY=hunter2");
    std::os::unix::fs::symlink(".env", &template).unwrap();
    check(&workspace.waypost(&["run", "q.json", "--dry-run"]), 4, "it is a symbolic link");
    fs::remove_file(&template).unwrap();
    fs::hard_link(&secret, &template).unwrap();
    check(&workspace.waypost(&["run", "q.json", "--dry-run"]), 4, "it has 2 names (hard links)");
    fs::remove_file(&template).unwrap();
    put(&template, "Do {{description}}.");
    check(&workspace.waypost(&["run", "q.json", "--dry-run"]), 0, "");
}

#[test]
fn a_pipeline_trusts_one_digest_and_only_as_a_person() {
    let workspace = cloned(TOUCH);
    let (digest, _) = text(&workspace.waypost(&["trust", "--digest"]));
    let with = |digest: &str, agent: bool| {
        let mut command = waypost(&workspace, &["run", "p.json", "--yes"]);
        command.env("WAYPOST_TRUST", digest);
        if agent {
            command.env("CLAUDECODE", "1");
        }
        command.output().unwrap()
    };
    let wrong = format!("sha256:{}", "0".repeat(64));
    check(&with(&wrong, false), 4, NOT_TRUSTED);
    check(&with(digest.trim(), true), 4, NOT_TRUSTED);
    assert!(!ran(&workspace));
    check(&with(digest.trim(), false), 0, "");
    assert!(ran(&workspace));
    let (listed, _) = text(&workspace.waypost(&["trust", "--list", "--json"]));
    assert_eq!(listed.trim(), "{\"folders\":[],\"remotes\":[]}");
    put(&workspace.work().join(".waypost/config.toml"), &format!("{TOUCH}# edited\n"));
    check(&with(digest.trim(), false), 4, NOT_TRUSTED);
}

#[test]
fn only_a_person_at_a_terminal_trusts_a_folder() {
    let workspace = cloned(TOUCH);
    let trust = |variable: (&str, &str), typed: &str| {
        let mut command = waypost(&workspace, &["--json", "trust"]);
        command.env(variable.0, variable.1).env("WAYPOST_INJECTED_TERMINAL", typed).output().unwrap()
    };
    check(&trust(("CLAUDECODE", "1"), "yes"), 1, "\"code\":\"needs_person\"");
    check(&trust(("WAYPOST_ACTOR", "worker:p"), "yes"), 1, "\"code\":\"needs_person\"");
    check(&trust(("WAYPOST_ACTOR", "person:eve"), "yes"), 1, "\"code\":\"needs_person\"");
    check(&trust(("X", "x"), ""), 1, "\"code\":\"needs_terminal\"");
    check(&trust(("X", "x"), "no"), 1, "is not trusted; nothing of it counts");
    check(&workspace.waypost(&["run", "p.json"]), 4, NOT_TRUSTED);
    check(&trust(("X", "x"), "y"), 0, "\"trusted\":true");
    check(&workspace.waypost(&["run", "p.json"]), 0, "");
}

#[test]
fn a_present_person_is_asked_once_by_the_command_that_needs_it() {
    let workspace = cloned(TOUCH);
    let run = |typed: &str| {
        let mut command = waypost(&workspace, &["run", "p.json"]);
        command.env("WAYPOST_INJECTED_TERMINAL", typed).output().unwrap()
    };
    check(&run("n"), 4, NOT_TRUSTED);
    assert!(!ran(&workspace));
    check(&run("y"), 0, "");
    assert!(ran(&workspace));
    check(&workspace.waypost(&["trust", "--list"]), 0, "current");
}

#[test]
fn naming_a_file_is_consent_and_leaves_the_folders_own_out() {
    let workspace = cloned(&TOUCH.replace("\"ran\"", "\"evil\""));
    put(&workspace.work().join("mine.toml"), TOUCH);
    check(&workspace.waypost(&["run", "p.json", "--config", "mine.toml"]), 0, "");
    assert!(ran(&workspace) && !workspace.work().join("evil").exists());
    let own = [".waypost/config.toml", "q.json"];
    check(&workspace.waypost(&["run", own[1], "--config", own[0]]), 0, "");
    assert!(workspace.work().join("evil").exists());
}

#[test]
fn trusted_folders_are_listed_and_forgotten() {
    let workspace = cloned(TOUCH);
    let list = || text(&workspace.waypost(&["trust", "--list"])).0;
    let state = || list().split_whitespace().next().map(str::to_owned);
    workspace.trust();
    assert_eq!(state().as_deref(), Some("current"));
    assert!(list().trim().ends_with("/repo"), "{}", list());
    put(&workspace.work().join(".waypost/config.toml"), "default_executor = \"noop\"\n");
    assert_eq!(state().as_deref(), Some("changed"));
    check(&workspace.waypost(&["untrust"]), 0, "no longer trusted: ");
    check(&workspace.waypost(&["untrust"]), 0, "nothing was trusted there");
    workspace.trust();
    check(&workspace.waypost(&["untrust", "--gone"]), 0, "nothing was trusted there");
    fs::rename(workspace.work(), workspace.root.join("elsewhere")).unwrap();
    fs::create_dir(workspace.work()).unwrap();
    fs::remove_dir(workspace.work()).unwrap();
    let mut gone = waypost(&workspace, &["trust", "--list"]);
    check(&gone.current_dir(&workspace.root).output().unwrap(), 0, "gone");
    let mut forget = waypost(&workspace, &["untrust", "--gone"]);
    check(&forget.current_dir(&workspace.root).output().unwrap(), 0, "no longer trusted: ");
}

#[test]
fn an_untrusted_file_can_only_ask_for_more_approval() {
    let noop = json!({ "format": "waypost/1", "id": "n", "title": "n", "tasks": [
        { "id": "a", "description": "a" } ] });
    for (config, awaits) in
        [("approval = \"all\"\n", true), ("approval = \"never\"\n", false), ("a =\n", false)]
    {
        let workspace = cloned(config);
        put(&workspace.work().join("n.json"), &noop.to_string());
        let mut import = waypost(&workspace, &["import", "n.json"]);
        assert!(import.env("WAYPOST_ACTOR", "agent:x").output().unwrap().status.success());
        let (shown, _) = text(&workspace.waypost(&["show", "n", "--json"]));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["awaits_approval"].as_bool(), Some(awaits), "{config}{shown}");
    }
}

#[test]
fn a_workspace_cannot_send_a_secret_to_an_address_even_if_it_is_trusted() {
    let server = Server::start(|_, _, reply| reply.send(200, &[], ""));
    let config = format!(
        "{TOUCH}[reporters.hook]\nkind = \"webhook\"\nurl = \"http://{}/\"\nheaders.X = {{ variable = \"AWS_SECRET_ACCESS_KEY\" }}\n",
        server.address
    );
    let workspace = cloned(&config);
    let mut agent = Agent::with_toolset(&workspace, "native", "a");
    agent.call("plan_create", json!({ "title": "T", "tasks": ["a"] }));
    drop(agent);
    let line = ".waypost/config.toml:7: reporters.hook.headers.X sends a secret to an address";
    let output = workspace.at_terminal(&["trust"]);
    check(&output, 4, line);
    check(&output, 4, "hint: move it to ~/.config/waypost/config.toml");
    check(&workspace.waypost(&["run", "p.json"]), 4, line);
    let mut operator = waypost(&workspace, &["run", "p.json"]);
    trusted_by_operator(&workspace, "");
    check(&operator.env("WAYPOST_INJECTED_ETC", workspace.root.join("etc")).output().unwrap(), 4, line);
    assert!(server.requests().is_empty() && !ran(&workspace));
}

fn trusted_by_operator(workspace: &Workspace, more: &str) {
    let text = format!("{more}[trust]\nfolders = [{:?}]\n", workspace.work().display().to_string());
    put(&workspace.root.join("etc/config.toml"), &text);
}

#[test]
fn the_operator_trusts_folders_and_is_never_loosened() {
    let workspace = cloned(TOUCH);
    let etc = workspace.root.join("etc");
    let run = |file: &str| {
        let mut command = waypost(&workspace, &["run", file]);
        command.env("WAYPOST_INJECTED_ETC", &etc).output().unwrap()
    };
    trusted_by_operator(&workspace, "");
    check(&run("p.json"), 0, "");
    assert!(ran(&workspace));
    trusted_by_operator(&workspace, "[approval]\npolicy = \"all\"\n");
    workspace.configure_user("approval = \"never\"\n");
    check(&run("q.json"), 4, "config.toml:1: `approval.policy` asks for less than /etc/waypost/config.toml");
    // Anybody else's list of folders is a mistake.
    workspace.configure_user("[trust]\nfolders = [\"/\"]\n");
    check(&run("q.json"), 4, "config.toml:2: `trust.folders` counts only in /etc/waypost/config.toml");
    // A file that others can write is as good as none.
    workspace.configure_user("");
    fs::set_permissions(etc.join("config.toml"), fs::Permissions::from_mode(0o666)).unwrap();
    check(&run("q.json"), 4, NOT_TRUSTED);
}

#[test]
fn a_file_elsewhere_cannot_waive_approval() {
    let workspace = cloned("");
    let elsewhere = workspace.root.join("elsewhere");
    put(&elsewhere.join("waypost/config.toml"), &format!("approval = \"never\"\n{TOUCH}"));
    let mut command = waypost(&workspace, &["run", "p.json"]);
    let output = command.env("XDG_CONFIG_HOME", &elsewhere).output().unwrap();
    check(&output, 4, "config.toml:1: `approval` = \"never\" counts only in the user's own configuration");
    put(&workspace.work().join("never.toml"), "approval = \"never\"\n");
    let output = workspace.waypost(&["run", "p.json", "--config", "never.toml"]);
    check(&output, 4, "never.toml:1: `approval` = \"never\" counts only in the user's own configuration");
    // What the account says about approval counts, whichever file is chosen.
    put(&elsewhere.join("waypost/config.toml"), TOUCH);
    workspace.configure_user("[approval]\nunattended = false\n[executors.own]\nkind = \"noop\"\n");
    let mut command = waypost(&workspace, &["run", "p.json", "--dry-run"]);
    check(&command.env("XDG_CONFIG_HOME", &elsewhere).output().unwrap(), 0, "touch");
}

#[test]
fn the_store_that_an_untrusted_todo_json_names_is_not_used() {
    let workspace = cloned("");
    let todo = json!({ "storage_type": "file", "storage_path": "theirs.json" });
    put(&workspace.work().join(".waypost/todo.json"), &todo.to_string());
    check(&workspace.waypost(&["new", "A", "--id", "a"]), 0, "");
    assert!(!workspace.work().join("theirs").exists());
    workspace.trust();
    check(&workspace.waypost(&["new", "B", "--id", "b"]), 0, "");
    assert!(workspace.work().join("theirs").exists());
}

#[test]
fn a_file_of_jaato_that_says_nothing_readable_stops_no_command() {
    for text in ["[]", "5", "{", ""] {
        let workspace = cloned("");
        put(&workspace.work().join(".jaato/todo.json"), text);
        check(&workspace.waypost(&["new", "A", "--id", "a"]), 0, "");
    }
}

#[test]
#[ignore = "needs git"]
fn a_linked_worktree_uses_the_configuration_and_the_trust_of_its_main_checkout() {
    let workspace = cloned(TOUCH);
    let git = |words: &[&str]| {
        let mut command = workspace.command("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(words);
        assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "p.json"]);
    git(&["commit", "-qm", "a"]);
    git(&["worktree", "add", "-q", "../tree"]);
    let tree = workspace.root.join("tree");
    put(&tree.join(".waypost/config.toml"), &TOUCH.replace("\"ran\"", "\"evil\""));
    let run = |words: &[&str]| waypost(&workspace, words).current_dir(&tree).output().unwrap();
    // Another file of that name lies here, and it is not the one that is trusted.
    let main = workspace.work().join(".waypost/config.toml");
    let refused = run(&["run", "p.json"]);
    check(&refused, 4, &format!("{} is not trusted", main.display()));
    check(&refused, 4, &format!("is inside a linked worktree and is not used; {} is", main.display()));
    workspace.trust();
    let two = fs::read_to_string(workspace.work().join("q.json")).unwrap().replace("touch", "two");
    put(&tree.join("two.json"), &two);
    let missing = run(&["run", "two.json", "--dry-run"]);
    check(&missing, 4, "is inside a linked worktree and is not used");
    check(&run(&["run", "p.json"]), 0, "is inside a linked worktree and is not used");
    assert!(tree.join("ran").exists() && !tree.join("evil").exists());
    check(&run(&["--store", "memory:", "run", "p.json"]), 0, "");
    assert!(!tree.join("evil").exists());
}

#[test]
fn what_a_stranger_names_cannot_stop_a_reader() {
    let workspace = cloned("[shapes.s]\ninput_schema = \"pipe\"\n[shapes.z]\ninput_schema = \"/dev/zero\"\n");
    assert!(
        workspace.command("mkfifo").arg(workspace.work().join(".waypost/pipe")).status().unwrap().success()
    );
    check(&workspace.waypost(&["trust", "--digest"]), 0, "sha256:");
    check(&workspace.waypost(&["validate", "p.json"]), 0, "");
    check(&workspace.waypost(&["run", "p.json"]), 4, "it is not a plain file");
}

#[test]
fn init_by_a_present_person_trusts_what_it_writes() {
    let workspace = Workspace::new();
    check(&workspace.at_terminal(&["init", "--client", "codex"]), 0, "");
    check(&workspace.waypost(&["trust", "--list"]), 0, "current");
    let unattended = Workspace::new();
    check(&unattended.waypost(&["init", "--client", "codex"]), 0, "");
    assert_eq!(text(&unattended.waypost(&["trust", "--list"])).0, "");
}

#[test]
fn files_and_folders_are_private_whatever_the_umask() {
    let workspace = cloned(&TOUCH.replace("[\"touch\", \"ran\"]", "[\"sh\", \"-c\", \"echo said >&2\"]"));
    workspace.trust();
    fs::rename(workspace.work().join(".waypost/config.toml"), workspace.work().join("config.toml")).unwrap();
    fs::remove_dir_all(workspace.work().join(".waypost")).unwrap();
    let mut shell = workspace.command("sh");
    let script = "umask 000; waypost run p.json --config config.toml";
    check(&shell.args(["-c", script]).output().unwrap(), 0, "");
    let mode = |name: &str| {
        fs::metadata(workspace.root.join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .permissions()
            .mode()
            & 0o777
    };
    let own = "repo/.waypost";
    for folder in ["", "logs", "queues", "queues/default", "runs"] {
        assert_eq!(mode(&format!("{own}/{folder}")), 0o700, "{folder}");
    }
    assert_eq!(mode("home/.local/state/waypost/trust"), 0o700);
    for file in ["waypost.db", "waypost.db-bell", "queues/default/0", ".gitignore", "logs/p/a.1.log"] {
        assert_eq!(mode(&format!("{own}/{file}")), 0o600, "{file}");
    }
}
