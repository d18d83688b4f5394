//! Where workers ask for signatures, nothing runs that nobody signed, whatever stands in the database.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::Value;
use waypost_testkit::SeededRng;
use waypost_testkit::postgres::PostgresDatabase;

use crate::run::text;
use crate::transcript::Workspace;

/// Databases that an attacker writes.
const FORGERIES: u32 = 80;
/// Every program leaves the id of its task.
const CONFIG: &str = r#"
[approval]
proof = "signature"
[executors.run]
kind = "process"
shell = true
command = ["echo $WAYPOST_TASK >> ran"]
"#;

/// A workspace of two accounts: workers accept only what the key of the first one signed.
struct Place {
    workspace: Workspace,
    /// The store; that of the workspace if it is empty.
    store: String,
}

impl Place {
    fn new() -> Self {
        Self::with_store("")
    }

    fn with_store(store: &str) -> Self {
        let workspace = Workspace::new();
        let store = store.replace("ROOT", workspace.root.to_str().unwrap());
        let place = Self { workspace, store };
        for (home, name) in [("home", "ada"), ("mallory", "mallory")] {
            let folder = place.home(home).join(".config/waypost");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("config.toml"), CONFIG).unwrap();
            let key = place.home(home).join("key");
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&key);
            assert!(keygen.status().unwrap().success());
            let public = fs::read_to_string(key.with_extension("pub")).unwrap();
            fs::write(folder.join("allowed_signers"), format!("{name}@example.org {public}")).unwrap();
        }
        for (plan, prefix) in [("p", "good"), ("q", "evil")] {
            let task = |number: u32| format!("{prefix}{number}");
            let tasks = serde_json::json!([
                { "id": task(1), "work": { "executor": "run" } },
                { "id": task(2), "depends_on": [task(1)], "work": { "executor": "run" } },
            ]);
            let document =
                serde_json::json!({ "format": "waypost/1", "id": plan, "title": plan, "tasks": tasks });
            fs::write(place.workspace.work().join(format!("{plan}.json")), document.to_string()).unwrap();
            let imported =
                place.command("home", &["import", &format!("{plan}.json")]).env("CLAUDECODE", "1").output();
            succeeds(&imported.unwrap());
        }
        place
    }

    fn home(&self, name: &str) -> PathBuf {
        self.workspace.root.join(name)
    }

    fn command(&self, home: &str, words: &[&str]) -> Command {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.env("WAYPOST_INJECTED_HOME", self.home(home)).env("WAYPOST_STORE", &self.store).args(words);
        command
    }

    fn at_terminal(&self, home: &str, words: &[&str]) -> Output {
        self.command(home, words).env("WAYPOST_INJECTED_TERMINAL", "yes").output().unwrap()
    }

    fn sign(&self, home: &str, plan: &str) {
        let key = self.home(home).join("key");
        succeeds(&self.at_terminal(home, &["approve", plan, "--sign", "--key", key.to_str().unwrap()]));
    }

    fn database(&self) -> PathBuf {
        self.workspace.work().join(".waypost/waypost.db")
    }

    fn signers(&self) -> PathBuf {
        self.home("home").join(".config/waypost/allowed_signers")
    }

    fn key(&self) -> String {
        self.home("home").join("key").display().to_string()
    }

    /// Lets a worker do everything that it would, and returns what it ran and said.
    fn work(&self) -> (Vec<String>, String) {
        let (said, error) = text(&self.command("home", &["worker", "--until-idle"]).output().unwrap());
        let ran = fs::read_to_string(self.workspace.work().join("ran")).unwrap_or_default();
        (ran.lines().map(str::to_owned).collect(), said + &error)
    }
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{:?}", text(output));
}

#[test]
#[ignore = "needs ssh-keygen"]
fn what_a_person_signed_runs_and_ssh_keygen_verifies_it() {
    let place = Place::new();
    let unsigned = place.at_terminal("home", &["approve", "p", "--json"]);
    assert_eq!(unsigned.status.code(), Some(1), "{:?}", text(&unsigned));
    assert_eq!(place.work().0, [""; 0]);
    place.sign("home", "p");
    assert_eq!(place.work().0, ["good1", "good2"]);

    let [message, signature] = ["--message", "--signature"].map(|part| {
        let output = place.command("home", &["verify", "p", part]).output().unwrap();
        succeeds(&output);
        output.stdout
    });
    let file = place.home("tmp").join("signature");
    fs::write(&file, signature).unwrap();
    let mut verify = Command::new("ssh-keygen");
    verify.args(["-Y", "verify", "-n", "waypost", "-I", "ada@example.org", "-s"]).arg(file);
    verify.arg("-f").arg(place.home("home").join(".config/waypost/allowed_signers"));
    let message_file = place.home("tmp").join("message");
    fs::write(&message_file, message).unwrap();
    succeeds(&verify.stdin(fs::File::open(message_file).unwrap()).output().unwrap());
}

#[test]
#[ignore = "needs ssh-keygen"]
fn ones_own_file_is_signed_before_it_runs() {
    let place = Place::new();
    for words in [&["run", "p.json"][..], &["run", "p"]] {
        let output = place.command("home", words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {:?}", text(&output));
    }
    let (said, _) = text(&place.command("home", &["submit", "p.json"]).output().unwrap());
    assert!(said.contains("waits for a person's approval"), "{said}");
    assert_eq!(place.work().0, [""; 0]);
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_key_that_was_taken_off_the_list_or_revoked_lets_nothing_run() {
    for revoked in [false, true] {
        let place = Place::new();
        place.sign("home", "p");
        let folder = place.home("home").join(".config/waypost");
        if revoked {
            let public = fs::read_to_string(place.home("home").join("key.pub")).unwrap();
            fs::write(folder.join("revoked_keys"), public).unwrap();
        } else {
            fs::write(folder.join("allowed_signers"), "").unwrap();
        }
        let (ran, said) = place.work();
        assert_eq!(ran, [""; 0], "{said}");
        assert!(said.contains("is not an allowed signer") || said.contains("revoked"), "{said}");
    }
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_key_that_is_taken_off_the_list_while_a_plan_runs_starts_nothing_more() {
    let place = Place::new();
    place.sign("home", "p");
    let config = CONFIG.replace("echo", &format!(": > {}; echo", place.signers().display()));
    let file = place.home("home").join(".config/waypost/config.toml");
    fs::write(&file, &config).unwrap();
    assert_eq!(place.work().0, [""; 0], "another command than the one that was approved");
    place.sign("home", "p");
    let (ran, said) = place.work();
    assert_eq!(ran, ["good1"], "{said}");
    assert!(said.contains("is not an allowed signer"), "{said}");
}

#[test]
#[ignore = "needs ssh-keygen"]
fn signers_in_the_workspace_or_in_a_file_that_others_write_let_nothing_run() {
    let place = Place::new();
    let signers = fs::read_to_string(place.signers()).unwrap();
    let sign = |place: &Place| place.at_terminal("home", &["approve", "p", "--sign", "--key", &place.key()]);
    fs::remove_file(place.signers()).unwrap();
    fs::write(place.workspace.work().join(".waypost/allowed_signers"), &signers).unwrap();
    assert!(text(&sign(&place)).1.contains("is not an allowed signer"));
    fs::write(place.signers(), &signers).unwrap();
    succeeds(&sign(&place));
    fs::set_permissions(place.signers(), fs::Permissions::from_mode(0o666)).unwrap();
    let (ran, said) = place.work();
    assert_eq!(ran, [""; 0], "{said}");
    assert!(said.contains("others can write"), "{said}");
    fs::set_permissions(place.signers(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.work().0, ["good1", "good2"]);
}

#[test]
#[ignore = "needs ssh-keygen"]
fn the_key_of_a_signature_is_that_of_gits_global_configuration_and_never_the_repositorys() {
    let place = Place::new();
    let settings = |key: &str| format!("[gpg]\n\tformat = ssh\n[user]\n\tsigningKey = {key}\n");
    let git = place.workspace.work().join(".git");
    fs::create_dir_all(git.join("objects")).unwrap();
    fs::create_dir_all(git.join("refs")).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("config"), settings(&place.key())).unwrap();
    let sign = |place: &Place| place.at_terminal("home", &["approve", "p", "--sign"]);
    let refused = sign(&place);
    assert!(text(&refused).1.contains("--sign needs a key"), "{:?}", text(&refused));
    let global = place.home("home").join(".gitconfig");
    fs::write(&global, settings("~/key.pub").replace("ssh", "openpgp")).unwrap();
    assert!(text(&sign(&place)).1.contains("--sign needs a key"));
    fs::write(&global, settings("~/key.pub")).unwrap();
    succeeds(&sign(&place));
    // An agent does not sign, whatever key there is.
    let preview = place.command("home", &["preview", "q", "--json"]).output().unwrap();
    let preview: Value = serde_json::from_slice(&preview.stdout).unwrap();
    let words = ["approve", "q", "--sign", "--yes", "--seen", preview["digest"].as_str().unwrap(), "--json"];
    let agent = place.command("home", &words).env("CLAUDECODE", "1").output().unwrap();
    assert!(text(&agent).1.contains("needs_person"), "{:?}", text(&agent));
    assert_eq!(place.work().0, ["good1", "good2"]);
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_key_in_the_ssh_agent_signs() {
    let place = Place::new();
    let socket = place.home("tmp").join("agent");
    let mut agent =
        Command::new("ssh-agent").arg("-D").arg("-a").arg(&socket).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the agent does not listen");
        std::thread::yield_now();
    }
    let add =
        Command::new("ssh-add").arg("-q").arg(place.key()).env("SSH_AUTH_SOCK", &socket).output().unwrap();
    fs::remove_file(place.key()).unwrap();
    let public = format!("{}.pub", place.key());
    let mut sign = place.command("home", &["approve", "p", "--sign", "--key", &public]);
    sign.env("SSH_AUTH_SOCK", &socket).env("WAYPOST_INJECTED_TERMINAL", "yes");
    let signed = sign.output().unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    succeeds(&add);
    succeeds(&signed);
    assert_eq!(place.work().0, ["good1", "good2"]);
}

#[test]
#[ignore = "needs ssh-keygen"]
fn before_a_key_is_removed_the_plans_that_would_stop_are_listed() {
    let place = Place::new();
    place.sign("home", "p");
    for key in [place.key(), format!("{}.pub", place.key())] {
        let (said, _) =
            text(&place.command("home", &["verify", "--all", "--without", &key]).output().unwrap());
        assert_eq!(said, "plan p would stop\n");
    }
    let list = |key: &str| {
        let output =
            place.command("home", &["verify", "--all", "--without", key, "--json"]).output().unwrap();
        succeeds(&output);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let by_file = list(&place.key());
    assert_eq!(by_file["stopped"], serde_json::json!(["p"]));
    assert_eq!(list(by_file["without"].as_str().unwrap()), by_file);
    let other = list(&place.home("mallory").join("key").display().to_string());
    assert_eq!(other["stopped"], serde_json::json!([]));
    let unknown = place.command("home", &["verify", "--all", "--without", "nothing"]).output().unwrap();
    assert!(!unknown.status.success());
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_person_imports_the_signers_of_git_after_seeing_them() {
    let place = Place::new();
    let known = fs::read_to_string(place.signers()).unwrap();
    let mallory = fs::read_to_string(place.home("mallory").join(".config/waypost/allowed_signers")).unwrap();
    let file = place.home("home").join("git_signers");
    fs::write(&file, format!("# of git\n{known}{mallory}")).unwrap();
    let git = format!("[gpg \"ssh\"]\n\tallowedSignersFile = {}\n", file.display());
    fs::write(place.home("home").join(".gitconfig"), git).unwrap();
    let import = ["signers", "import"];
    let agent = place.command("home", &import).env("CLAUDECODE", "1").output().unwrap();
    let unattended = place.command("home", &import).output().unwrap();
    let no = place.command("home", &import).env("WAYPOST_INJECTED_TERMINAL", "no").output().unwrap();
    for refused in [agent, unattended, no] {
        assert_eq!(refused.status.code(), Some(1), "{:?}", text(&refused));
    }
    assert_eq!(fs::read_to_string(place.signers()).unwrap(), known);
    let (said, _) = text(&place.at_terminal("home", &import));
    assert!(said.starts_with("added 1 signer to "), "{said}");
    assert_eq!(fs::read_to_string(place.signers()).unwrap(), format!("{known}{mallory}"));
    let (said, _) = text(&place.at_terminal("home", &import));
    assert!(said.starts_with("added 0 signers to "), "{said}");
    fs::write(&file, "bad\n").unwrap();
    let bad = place.at_terminal("home", &["signers", "import", file.to_str().unwrap()]);
    assert!(text(&bad).1.contains("git_signers:1: there is no key"), "{:?}", text(&bad));
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_plan_is_approved_with_holds_that_only_a_person_lifts() {
    let place = Place::new();
    let words = ["approve", "p", "--hold", "good2", "--sign", "--key", &place.key()];
    succeeds(&place.at_terminal("home", &words));
    let sql = "SELECT events FROM log WHERE events LIKE '%task_held%'";
    let held: String =
        Connection::open(place.database()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap();
    assert!(held.contains("plan_approved"), "one version approves and holds: {held}");
    assert_eq!(place.work().0, ["good1"]);
    let (why, _) = text(&place.command("home", &["why", "p", "good2"]).output().unwrap());
    assert!(why.contains("(\"held when the plan was approved\") (`waypost unhold p good2`)"), "{why}");
    let (preview, _) = text(&place.command("home", &["preview", "p"]).output().unwrap());
    assert!(preview.contains("held: by person:ada"), "{preview}");
    let (shown, _) = text(&place.command("home", &["show", "p", "--json"]).output().unwrap());
    assert!(
        shown.contains(r#""held_by": "person:ada""#) || shown.contains(r#""held_by":"person:ada""#),
        "{shown}"
    );
    succeeds(&place.command("home", &["verify", "p"]).output().unwrap());
    let unhold = ["unhold", "p", "good2", "--json"];
    let agent = place.command("home", &unhold).env("CLAUDECODE", "1").output().unwrap();
    assert!(text(&agent).1.contains("stopped_by_person"), "{:?}", text(&agent));
    let unattended = place.command("home", &unhold).output().unwrap();
    assert!(text(&unattended).1.contains("needs_terminal"), "{:?}", text(&unattended));
    assert_eq!(place.work().0, ["good1"]);
    succeeds(&place.at_terminal("home", &unhold));
    assert_eq!(place.work().0, ["good1", "good2"]);
    let unknown =
        place.at_terminal("home", &["approve", "q", "--hold", "nothing", "--sign", "--key", &place.key()]);
    assert_eq!(unknown.status.code(), Some(5), "{:?}", text(&unknown));
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_bundle_is_verified_without_a_store_and_with_its_own_message_only() {
    let place = Place::new();
    let words = ["approve", "p", "--sign", "--portable", "--key", &place.key()];
    succeeds(&place.at_terminal("home", &words));
    let bundle = place.workspace.root.join("bundle.json");
    let file = bundle.to_str().unwrap();
    succeeds(&place.command("home", &["export", "p", "--approval", "--output", file]).output().unwrap());
    let verify = || place.command("home", &["verify", "--bundle", file, "--json"]).output().unwrap();
    for ending in ["-wal", "-shm"] {
        let _absent = fs::remove_file(format!("{}{ending}", place.database().display()));
    }
    fs::write(place.database(), "this is not a database, and nobody opens it").unwrap();
    succeeds(&verify());
    let mut changed: Value = serde_json::from_str(&fs::read_to_string(&bundle).unwrap()).unwrap();
    // What the file shows is what was signed.
    let command = serde_json::json!(["rm", "-rf", "/"]);
    let with = |pointer: &str, value: Value| {
        let mut changed = changed.clone();
        *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        changed
    };
    let mut added = changed.clone();
    added["plan"]["tasks"]
        .as_array_mut()
        .unwrap()
        .push(serde_json::json!({ "id": "evil", "work": { "executor": "run" } }));
    let mut beside = changed.clone();
    beside["approval"]["work"]["definitions"]["executor harmless"] = "noop".into();
    let forged = [
        added,
        with("/plan/title", "another".into()),
        with("/plan/tasks/0/work/executor", "b".into()),
        with("/approval/work/definitions/executor run/process/command", command),
        with("/approval/work/definitions/defaults/limits/retry.attempts", 50.into()),
        with("/approval/work/definitions", serde_json::json!({})),
        with("/approval/work/definitions/defaults", serde_json::json!({ "limits": {}, "more": {} })),
        beside,
    ];
    for forged in forged {
        fs::write(&bundle, forged.to_string()).unwrap();
        let refused = verify();
        assert_eq!(refused.status.code(), Some(1), "{forged}");
        let said = text(&refused).1;
        assert!(said.contains("digest_mismatch") || said.contains("not_authentic"), "{said}");
    }
    let message = changed["message"].as_str().unwrap().replace("plan p\n", "plan q\n");
    changed["message"] = message.into();
    fs::write(&bundle, changed.to_string()).unwrap();
    let refused = verify();
    assert_eq!(refused.status.code(), Some(1), "{:?}", text(&refused));
    assert!(text(&refused).1.contains("not_authentic"), "{:?}", text(&refused));
}

#[test]
#[ignore = "needs ssh-keygen"]
fn no_hold_is_lost_and_no_rejection_is_undone_by_a_bundle() {
    let place = Place::new();
    let key = place.key();
    let portable = ["approve", "p", "--sign", "--portable", "--key", &key];
    let held = [&portable[..], &["--hold", "good2"]].concat();
    assert!(text(&place.at_terminal("home", &held)).1.contains("task good2 is held"));
    succeeds(&place.at_terminal("home", &["hold", "p", "good2"]));
    assert!(text(&place.at_terminal("home", &portable)).1.contains("task good2 is held"));
    succeeds(&place.at_terminal("home", &["unhold", "p", "good2"]));
    succeeds(&place.at_terminal("home", &portable));
    let bundle = place.workspace.root.join("bundle.json");
    let file = bundle.to_str().unwrap();
    let export = ["export", "p", "--approval", "--output", file];
    succeeds(&place.at_terminal("home", &["hold", "p", "good2"]));
    assert!(text(&place.at_terminal("home", &export)).1.contains("task good2 is held"));
    succeeds(&place.at_terminal("home", &["unhold", "p", "good2"]));
    succeeds(&place.at_terminal("home", &export));

    fs::remove_dir_all(place.workspace.work().join(".waypost")).unwrap();
    succeeds(&place.at_terminal("home", &["init", "--store", "sqlite"]));
    succeeds(&place.at_terminal("home", &["trust"]));
    succeeds(&place.command("home", &["import", file]).env("CLAUDECODE", "1").output().unwrap());
    succeeds(&place.at_terminal("home", &["reject", "p", "--reason", "not on a Friday"]));
    let approve = ["approve", "p", "--bundle", file, "--json"];
    let unattended = place.command("home", &approve).output().unwrap();
    assert!(text(&unattended).1.contains("needs_terminal"), "{:?}", text(&unattended));
    assert!(place.work().0.is_empty(), "rejected work does not run");
    succeeds(&place.at_terminal("home", &approve));
    assert_eq!(place.work().0, ["good1", "good2"]);
}

#[test]
#[ignore = "needs ssh-keygen"]
fn no_rejection_is_undone_by_a_signature_without_a_person() {
    let place = Place::new();
    let key = place.key();
    succeeds(&place.at_terminal("home", &["reject", "p", "--reason", "not on a Friday"]));
    let (preview, _) = text(&place.command("home", &["preview", "p", "--json"]).output().unwrap());
    let digest =
        serde_json::from_str::<serde_json::Value>(&preview).unwrap()["digest"].as_str().unwrap().to_owned();
    let sign = ["approve", "p", "--yes", "--seen", &digest, "--sign", "--key", &key, "--json"];
    let unattended = place.command("home", &sign).output().unwrap();
    assert!(text(&unattended).1.contains("needs_terminal"), "{:?}", text(&unattended));
    assert!(!text(&unattended).1.contains("--sign"), "that is no way out: {:?}", text(&unattended));
    assert!(place.work().0.is_empty(), "rejected work does not run");
    // What was changed since is not what was rejected.
    let revise = ["task", "revise", "p", "good2", "--notes", "on a Monday"];
    succeeds(&place.command("home", &revise).env("CLAUDECODE", "1").output().unwrap());
    assert!(!text(&place.command("home", &sign).output().unwrap()).1.contains("needs_terminal"));
    // What was changed back is.
    let back = ["task", "revise", "p", "good2", "--clear", "notes"];
    succeeds(&place.command("home", &back).env("CLAUDECODE", "1").output().unwrap());
    let ask = place.command("home", &["request-approval", "p"]).env("CLAUDECODE", "1").output().unwrap();
    assert!(text(&ask).1.contains("rejected the plan"), "{:?}", text(&ask));
    let unattended = place.command("home", &sign).output().unwrap();
    assert!(text(&unattended).1.contains("needs_terminal"), "{:?}", text(&unattended));
    assert!(place.work().0.is_empty(), "rejected work does not run");
    succeeds(&place.command("home", &revise).env("CLAUDECODE", "1").output().unwrap());
    succeeds(&place.at_terminal("home", &["reject", "p", "--reason", "nor then"]));
    place.sign("home", "p");
    assert_eq!(place.work().0, ["good1", "good2"]);
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_signature_that_has_expired_starts_nothing_new() {
    let place = Place::new();
    let config = place.home("home").join(".config/waypost/config.toml");
    let kept = fs::read_to_string(&config).unwrap();
    fs::write(&config, kept.replace("[approval]", "[approval]\nvalid = \"1s\"")).unwrap();
    place.sign("home", "p");
    // The store's clock decides, which nobody sets.
    while place.command("home", &["verify", "p"]).output().unwrap().status.success() {}
    let (ran, said) = place.work();
    assert_eq!(ran, [""; 0], "{said}");
    assert!(said.contains("the approval of plan p ended on "), "{said}");
    let (shown, _) = text(&place.command("home", &["show", "p"]).output().unwrap());
    assert!(shown.contains("ended on"), "{shown}");
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_portable_approval_counts_in_a_fresh_store_for_the_same_work_only() {
    let place = Place::new();
    let key = place.home("home").join("key");
    let refused = place.command("home", &["export", "p", "--approval"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{:?}", text(&refused));
    let words = ["approve", "p", "--sign", "--portable", "--key", key.to_str().unwrap()];
    succeeds(&place.at_terminal("home", &words));
    let bundle = place.workspace.root.join("bundle.json");
    let file = bundle.to_str().unwrap();
    succeeds(&place.command("home", &["export", "p", "--approval", "--output", file]).output().unwrap());
    succeeds(&place.command("home", &["verify", "--bundle", file]).output().unwrap());
    let stranger = place.command("mallory", &["verify", "--bundle", file]).output().unwrap();
    assert_eq!(stranger.status.code(), Some(1), "{:?}", text(&stranger));

    fs::remove_dir_all(place.workspace.work().join(".waypost")).unwrap();
    succeeds(&place.at_terminal("home", &["init", "--store", "sqlite"]));
    succeeds(&place.at_terminal("home", &["trust"]));
    succeeds(&place.command("home", &["import", file]).output().unwrap());
    assert_eq!(place.work().0, [""; 0]);
    // Of another plan, or with other words.
    succeeds(&place.command("home", &["import", "q.json"]).output().unwrap());
    let other = place.command("home", &["approve", "q", "--bundle", file, "--json"]).output().unwrap();
    assert!(text(&other).1.contains("not_authentic"), "{:?}", text(&other));
    let agent = place.command("home", &["approve", "p", "--bundle", file]).env("CLAUDECODE", "1").output();
    assert_eq!(agent.unwrap().status.code(), Some(1));
    succeeds(&place.command("home", &["approve", "p", "--bundle", file]).output().unwrap());
    assert_eq!(place.work().0, ["good1", "good2"]);

    let forged = fs::read_to_string(&bundle).unwrap().replace("sha256:", "sha256:0");
    fs::write(&bundle, forged).unwrap();
    let forged = place.command("home", &["verify", "--bundle", file]).output().unwrap();
    assert_eq!(forged.status.code(), Some(1), "{:?}", text(&forged));
    fs::write(&bundle, "{\"format\":\"waypost-approval/1\"}").unwrap();
    let (_, said) = text(&place.command("home", &["verify", "--bundle", file]).output().unwrap());
    assert!(said.contains("is not a plan with its approval: missing field"), "{said}");
}

/// What an attacker writes in the place of something else.
const FORGED_WORDS: [(&str, &str); 6] = [
    ("mallory@example.org", "ada@example.org"),
    ("\"proof\":\"signature\"", "\"proof\":\"presence\""),
    ("\"kind\":\"explicit\"", "\"kind\":\"own\""),
    ("good", "evil"),
    ("\"executor\":\"run\"", "\"executor\":\"run\",\"inputs\":{\"n\":1}"),
    ("\"depends_on\":[\"good1\"]", "\"depends_on\":[]"),
];

/// What an attacker does to the rows of the log, besides writing to it with an account and a key of their own.
fn forge(database: &Connection, rng: &mut SeededRng) -> String {
    let events = |plan: i64, version: i64| -> String {
        let sql = "SELECT events FROM log WHERE plan = ? AND version = ?";
        database.query_row(sql, [plan, version], |row| row.get(0)).unwrap_or_default()
    };
    let replace = |plan: i64, version: i64, text: &str| {
        let sql = "UPDATE log SET events = ? WHERE plan = ? AND version = ?";
        database.execute(sql, params![text, plan, version]).unwrap();
    };
    let rows: Vec<(i64, i64)> = database
        .prepare("SELECT plan, version FROM log ORDER BY plan, version")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let (plan, version) = *rng.pick(&rows);
    let approval = |plan: i64| {
        let of_plan = rows.iter().filter(|row| row.0 == plan);
        of_plan.map(|row| row.1).find(|version| events(plan, *version).contains("\"signature\"")).unwrap()
    };
    match rng.below(8) {
        0 => {
            let (from, to) = *rng.pick(&FORGED_WORDS);
            for (plan, version) in &rows {
                replace(*plan, *version, &events(*plan, *version).replace(from, to));
            }
            format!("{from} becomes {to}")
        }
        1 => {
            let mut text: Vec<char> = events(plan, version).chars().collect();
            let at = rng.below(text.len());
            text[at] = *rng.pick(&['0', '1', 'a', 'f', '"', '}']);
            replace(plan, version, &text.iter().collect::<String>());
            format!("character {at} of {plan}.{version}")
        }
        2 => {
            let (from_plan, from_version) = *rng.pick(&rows);
            replace(plan, version, &events(from_plan, from_version));
            format!("{from_plan}.{from_version} over {plan}.{version}")
        }
        3 => {
            database.execute("DELETE FROM log WHERE plan = ? AND version = ?", [plan, version]).unwrap();
            format!("{plan}.{version} removed")
        }
        4 => {
            replace(2, approval(2), &events(1, approval(1)));
            "the approval of p in q".to_owned()
        }
        5 => {
            // The signature of one plan, the digest and the words of the other.
            let (mut of_q, of_p) = (events(2, approval(2)), events(1, approval(1)));
            let field = |text: &str| -> String {
                let at = text.find("\"signature\":").unwrap();
                text[at..at + text[at..].find("}").unwrap()].to_owned()
            };
            let (from, to) = (field(&of_q), field(&of_p));
            of_q = of_q.replace(&from, &to);
            replace(2, approval(2), &of_q);
            "the signature of p in q".to_owned()
        }
        6 => {
            let swap = "UPDATE plans SET id = 'x' WHERE key = 1; UPDATE plans SET id = 'p' WHERE key = 2;
                UPDATE plans SET id = 'q' WHERE key = 1";
            database.execute_batch(swap).unwrap();
            "the names swapped".to_owned()
        }
        _ => {
            // The tasks of one plan in the other, whose approval stays.
            replace(1, 1, &events(2, 1));
            "the tasks of q in p".to_owned()
        }
    }
}

#[test]
#[ignore = "needs ssh-keygen"]
fn whatever_is_written_into_the_database_only_what_was_signed_runs() {
    let place = Place::new();
    place.sign("home", "p");
    place.sign("mallory", "q");
    let kept = place.workspace.root.join("kept.db");
    let database = Connection::open(place.database()).unwrap();
    database.execute("VACUUM INTO ?", [kept.to_str().unwrap()]).unwrap();
    drop(database);

    let mut rng = SeededRng::new(7);
    let mut whole = 0;
    for round in 0..FORGERIES {
        for ending in ["", "-wal", "-shm"] {
            let _absent = fs::remove_file(format!("{}{ending}", place.database().display()));
        }
        let _absent = fs::remove_file(place.workspace.work().join("ran"));
        fs::copy(&kept, place.database()).unwrap();
        let database = Connection::open(place.database()).unwrap();
        let forged: Vec<String> = (0..=rng.below(2)).map(|_| forge(&database, &mut rng)).collect();
        if rng.below(4) > 0 {
            database.execute("DELETE FROM snapshots", []).unwrap();
        }
        drop(database);
        let (ran, said) = place.work();
        assert!(
            ran.iter().all(|task| task.starts_with("good")),
            "round {round}, {forged:?}: {ran:?}\n{said}"
        );
        whole += u32::from(ran == ["good1", "good2"]);
    }
    assert!(whole > 0 && whole < FORGERIES, "what was signed ran in {whole} of {FORGERIES} rounds");
}

/// All files below a folder, with their content.
fn files_of(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files_of(&entry.path())),
            false => found.push((entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
#[ignore = "needs ssh-keygen"]
fn whatever_is_written_into_the_files_only_what_was_signed_runs() {
    let place = Place::with_store("file:ROOT/plans");
    place.sign("home", "p");
    place.sign("mallory", "q");
    let folder = place.home("plans");
    let kept = files_of(&folder);
    let mut rng = SeededRng::new(11);
    let mut whole = 0;
    for round in 0..FORGERIES {
        fs::remove_dir_all(&folder).unwrap();
        for (path, content) in &kept {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let _absent = fs::remove_file(place.workspace.work().join("ran"));
        let mut forged = Vec::new();
        for _ in 0..=rng.below(2) {
            let texts: Vec<(PathBuf, String)> = files_of(&folder)
                .into_iter()
                .filter_map(|(path, content)| Some((path, String::from_utf8(content).ok()?)))
                .filter(|(_, text)| !text.is_empty())
                .collect();
            let (path, text) = rng.pick(&texts);
            let lines: Vec<&str> = text.lines().collect();
            let (edited, what) = match rng.below(4) {
                0 => {
                    let (from, to) = *rng.pick(&FORGED_WORDS);
                    (text.replace(from, to), format!("{from} becomes {to}"))
                }
                1 => {
                    let mut letters: Vec<char> = text.chars().collect();
                    let at = rng.below(letters.len());
                    letters[at] = *rng.pick(&['0', '1', 'a', 'f', '"', '}']);
                    (letters.into_iter().collect(), format!("character {at}"))
                }
                2 => {
                    let (other, brought) = rng.pick(&texts);
                    (brought.clone(), format!("all of {}", other.display()))
                }
                _ => {
                    // A line of any file in the place of one of this file.
                    let (_, brought) = rng.pick(&texts);
                    let brought: Vec<&str> = brought.lines().collect();
                    let (at, line) = (rng.below(lines.len()), *rng.pick(&brought));
                    let replaced: Vec<&str> = lines
                        .iter()
                        .enumerate()
                        .map(|(here, old)| if here == at { line } else { old })
                        .collect();
                    (replaced.join("\n") + "\n", format!("line {at}"))
                }
            };
            fs::write(path, edited).unwrap();
            forged.push(format!("{}: {what}", path.display()));
        }
        let (ran, said) = place.work();
        assert!(
            ran.iter().all(|task| task.starts_with("good")),
            "round {round}, {forged:?}: {ran:?}\n{said}"
        );
        whole += u32::from(ran == ["good1", "good2"]);
    }
    assert!(whole > 0 && whole < FORGERIES, "what was signed ran in {whole} of {FORGERIES} rounds");
}

#[test]
#[ignore = "needs ssh-keygen and PostgreSQL"]
fn whatever_is_written_into_postgresql_only_what_was_signed_runs() {
    let database = PostgresDatabase::new();
    let place = Place::with_store(database.url());
    place.sign("home", "p");
    place.sign("mallory", "q");
    let tables = database.sql("SELECT tablename FROM pg_tables WHERE tablename LIKE 'waypost%'");
    for table in &tables {
        database.sql(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}"));
    }
    let mut rng = SeededRng::new(13);
    let mut whole = 0;
    for round in 0..FORGERIES {
        for table in &tables {
            database.sql(&format!("DELETE FROM {table}"));
        }
        for table in &tables {
            database.sql(&format!("INSERT INTO {table} SELECT * FROM kept_{table}"));
        }
        let _absent = fs::remove_file(place.workspace.work().join("ran"));
        let forgeries: Vec<String> = FORGED_WORDS
            .iter()
            .map(|(from, to)| format!("UPDATE waypost_log SET events = replace(events, '{from}', '{to}')"))
            .chain([
                "DELETE FROM waypost_log WHERE version = 2".to_owned(),
                "DELETE FROM waypost_snapshots".to_owned(),
                "UPDATE waypost_log log SET events = other.events FROM waypost_log other
                    WHERE other.version = log.version AND other.plan <> log.plan AND log.version = 1"
                    .to_owned(),
                "UPDATE waypost_log log SET events = other.events FROM waypost_log other
                    WHERE other.version = log.version AND other.plan <> log.plan AND log.version = 2"
                    .to_owned(),
            ])
            .collect();
        let forged: Vec<&String> = (0..=rng.below(2)).map(|_| rng.pick(&forgeries)).collect();
        for sql in &forged {
            database.sql(sql);
        }
        if rng.below(4) > 0 {
            database.sql("DELETE FROM waypost_snapshots");
        }
        let (ran, said) = place.work();
        assert!(
            ran.iter().all(|task| task.starts_with("good")),
            "round {round}, {forged:?}: {ran:?}\n{said}"
        );
        whole += u32::from(ran == ["good1", "good2"]);
    }
    assert!(whole > 0 && whole < FORGERIES, "what was signed ran in {whole} of {FORGERIES} rounds");
}

#[test]
#[ignore = "needs ssh-keygen"]
fn verify_says_who_signed() {
    let place = Place::new();
    place.sign("home", "p");
    let output = place.command("home", &["verify", "p", "--json"]).output().unwrap();
    succeeds(&output);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let approval = &report["approvals"][0];
    assert_eq!((&approval["signer"], &approval["proof"]), (&"ada@example.org".into(), &"signature".into()));
    let (said, _) = text(&place.command("home", &["verify", "p"]).output().unwrap());
    assert!(said.contains("signed by ada@example.org with SHA256:"), "{said}");
    let elsewhere = place.command("mallory", &["verify", "p", "--json"]).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(1), "{:?}", text(&elsewhere));
}
