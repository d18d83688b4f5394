//! Where workers ask for signatures, nothing runs that nobody signed, whatever stands in the database.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use rusqlite::{Connection, params};
use serde_json::Value;
use waypost_testkit::SeededRng;

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
}

impl Place {
    fn new() -> Self {
        let place = Self { workspace: Workspace::new() };
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
        command.env("WAYPOST_INJECTED_HOME", self.home(home)).args(words);
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
            let pairs = [
                ("mallory@example.org", "ada@example.org"),
                ("\"proof\":\"signature\"", "\"proof\":\"presence\""),
                ("\"kind\":\"explicit\"", "\"kind\":\"own\""),
                ("good", "evil"),
                ("\"executor\":\"run\"", "\"executor\":\"run\",\"inputs\":{\"n\":1}"),
                ("\"depends_on\":[\"good1\"]", "\"depends_on\":[]"),
            ];
            let (from, to) = *rng.pick(&pairs);
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

#[test]
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
