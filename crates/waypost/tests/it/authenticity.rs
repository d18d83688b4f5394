//! Approvals that were not given on this account, or not in this store, let nothing run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::Connection;

use crate::run::{configure, text};
use crate::transcript::Workspace;

const CONFIG: &str = "[executors.run]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\n";

struct Place {
    workspace: Workspace,
}

impl Place {
    fn new() -> Self {
        let place = Self { workspace: Workspace::new() };
        configure(&place.workspace, CONFIG);
        fs::create_dir_all(place.workspace.root.join("home2")).unwrap();
        for plan in ["p", "q"] {
            let tasks = serde_json::json!([{ "id": "a", "work": { "executor": "run" } }]);
            let plan =
                serde_json::json!({ "format": "waypost/1", "id": plan, "title": plan, "tasks": tasks });
            let file = format!("{}.json", plan["id"].as_str().unwrap());
            fs::write(place.workspace.work().join(file), plan.to_string()).unwrap();
        }
        place
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.args(words);
        command
    }

    /// The same program for another account of this machine.
    fn elsewhere(&self, words: &[&str]) -> Output {
        let home = self.workspace.root.join("home2");
        succeeds(&self.at_home(&home, &["trust"]));
        self.at_home(&home, words)
    }

    /// The program at a terminal of the account with this home.
    fn at_home(&self, home: &Path, words: &[&str]) -> Output {
        let mut command = self.command(words);
        command.env("WAYPOST_INJECTED_HOME", home);
        command.env("WAYPOST_INJECTED_TERMINAL", "yes").output().unwrap()
    }

    fn agent(&self, words: &[&str]) -> Output {
        self.command(words).env("CLAUDECODE", "1").output().unwrap()
    }

    fn database(&self) -> PathBuf {
        self.workspace.work().join(".waypost/waypost.db")
    }

    /// Writes to the database as any program can.
    fn forge(&self, sql: &str) {
        let database = Connection::open(self.database()).unwrap();
        database.execute_batch(&format!("DELETE FROM snapshots; {sql}")).unwrap();
    }

    /// Lets workers and runs look at the plan: none starts anything, and the reason is this.
    #[track_caller]
    fn runs_nothing(&self, plan: &str, reason: &str) {
        let idle = self.workspace.waypost(&["worker", "--until-idle"]);
        let (said, err) = text(&idle);
        assert!(idle.status.success() && said.contains(reason), "{said}{err}");
        let run = self.workspace.waypost(&["run", plan]);
        let (out, err) = text(&run);
        assert_eq!(run.status.code(), Some(1), "{out}{err}");
        assert!(err.contains("needs approval"), "{out}{err}");
        assert!(!self.workspace.work().join("ran").exists(), "it ran");
    }

    fn ran(&self) -> bool {
        self.workspace.work().join("ran").exists()
    }
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{:?}", text(output));
}

#[test]
fn an_approval_that_another_account_gave_lets_nothing_run() {
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    succeeds(&place.elsewhere(&["approve", "p"]));
    place.runs_nothing("p", "was not given on this account");
    let (history, _) = text(&place.workspace.waypost(&["history", "p", "--json"]));
    assert_eq!(history.matches("starts nothing").count(), 1, "each worker says it once: {history}");
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    succeeds(&place.workspace.waypost(&["worker", "--until-idle"]));
    assert!(place.ran());
}

#[test]
fn a_plan_that_another_account_started_is_not_ones_own() {
    let place = Place::new();
    succeeds(&place.elsewhere(&["submit", "p.json"]));
    place.runs_nothing("p", "is not the store that this account used there");
    // The person at the terminal sees what it would run, and approves that.
    succeeds(&place.workspace.at_terminal(&["run", "p"]));
    assert!(place.ran());
}

#[test]
fn what_is_written_into_the_database_lets_nothing_run() {
    let waived = r#"
        UPDATE log SET events = replace(events, '"approval_required":true', '"approval_waived":true');
        UPDATE plans SET phase = 'active', awaits_approval = 0"#;
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    place.forge(waived);
    let run = place.agent(&["run", "p"]);
    assert_eq!(run.status.code(), Some(1), "{:?}", text(&run));
    assert!(!place.ran());

    // Another plan's approval.
    let place = Place::new();
    for file in ["p.json", "q.json"] {
        succeeds(&place.agent(&["import", file]));
    }
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    succeeds(&place.workspace.at_terminal(&["pause", "p"]));
    succeeds(&place.workspace.at_terminal(&["approve", "q"]));
    place.forge(
        "UPDATE log SET events = (SELECT events FROM log WHERE plan = 1 AND version = 2) WHERE plan = 2 AND version = 2",
    );
    place.runs_nothing("q", "was not given on this account");
}

#[test]
fn a_store_that_was_put_in_place_of_another_lets_nothing_run() {
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    let other = Place::new();
    succeeds(&other.agent(&["import", "p.json"]));
    // The same account approved the plan there.
    let home = place.workspace.root.join("home");
    for words in [&["trust"][..], &["approve", "p"]] {
        succeeds(&other.at_home(&home, words));
    }
    for ending in ["-wal", "-shm"] {
        let _absent = fs::remove_file(format!("{}{ending}", place.database().display()));
    }
    fs::copy(other.database(), place.database()).unwrap();
    place.runs_nothing("p", "is not the store that this account used there");
}

#[test]
fn ones_own_file_runs_unattended_and_leaves_a_record() {
    let place = Place::new();
    succeeds(&place.workspace.waypost(&["run", "p.json"]));
    assert!(place.ran());
    let (shown, _) = text(&place.workspace.waypost(&["export", "p", "--format", "native"]));
    assert!(shown.contains(r#""kind":"own""#) || shown.contains(r#""kind": "own""#), "{shown}");
}

#[test]
fn an_account_without_a_home_runs_its_own_file() {
    let place = Place::new();
    // Without a home there is no record of trust; naming a file is consent.
    let mut run = place.command(&["run", "p.json", "--config", ".waypost/config.toml"]);
    succeeds(&run.env("WAYPOST_INJECTED_HOME", "/nonexistent").output().unwrap());
    assert!(place.ran());
}

#[test]
fn a_person_edits_their_own_running_plan_without_being_asked() {
    let place = Place::new();
    succeeds(&place.workspace.waypost(&["submit", "p.json"]));
    succeeds(&place.workspace.waypost(&["add", "p", "one more", "--executor", "run"]));
    succeeds(&place.workspace.waypost(&["worker", "--until-idle"]));
    assert!(place.ran());
    let (shown, _) = text(&place.workspace.waypost(&["show", "p"]));
    assert!(shown.contains("completed"), "{shown}");
}

#[test]
fn a_draft_that_this_account_did_not_write_is_not_ones_own() {
    // A stranger's store, whose author has the same name, in a folder that a person then trusts.
    let place = Place::new();
    succeeds(&place.elsewhere(&["import", "p.json"]));
    succeeds(&place.workspace.at_terminal(&["trust"]));
    let run = place.workspace.waypost(&["run", "p"]);
    let (_, err) = text(&run);
    assert!(run.status.code() == Some(1) && err.contains("needs approval"), "{err}");
    assert!(!place.ran());
    // One's own file is, also if it was stored before.
    succeeds(&place.workspace.waypost(&["import", "q.json"]));
    succeeds(&place.workspace.waypost(&["run", "q.json"]));
    assert!(place.ran());

    // A plan of another person in one's own store.
    let place = Place::new();
    let mut import = place.command(&["import", "p.json"]);
    succeeds(&import.env("WAYPOST_INJECTED_NAME", "mallory").output().unwrap());
    let run = place.workspace.waypost(&["run", "p"]);
    assert_eq!(run.status.code(), Some(1), "{:?}", text(&run));
    assert!(!place.ran());
    // The person sees it, and approves it.
    succeeds(&place.workspace.at_terminal(&["run", "p"]));
    assert!(place.ran());
}

#[test]
fn the_name_of_an_author_in_the_database_makes_no_plan_ones_own() {
    let place = Place::new();
    configure(
        &place.workspace,
        &format!("{CONFIG}[executors.evil]\nkind = \"process\"\ncommand = [\"touch\", \"evil\"]\n"),
    );
    succeeds(&place.workspace.waypost(&["import", "p.json"]));
    // Nobody is asked about a file that is named; a name in a store is shown first.
    let run = place.workspace.waypost(&["run", "p"]);
    let (_, err) = text(&run);
    assert!(run.status.code() == Some(1) && err.contains("needs approval"), "{err}");
    place.forge(r#"UPDATE log SET events = replace(events, '"executor":"run"', '"executor":"evil"')"#);
    for words in [["run", "p"], ["run", "p.json"]] {
        let run = place.workspace.waypost(&words);
        assert_eq!(run.status.code(), Some(1), "{:?}", text(&run));
    }
    assert!(!place.ran() && !place.workspace.work().join("evil").exists());
    // The person sees what it would run.
    succeeds(&place.workspace.at_terminal(&["run", "p"]));
    let (history, _) = text(&place.workspace.waypost(&["history", "p"]));
    assert!(history.contains("approved version"), "{history}");
}

#[test]
fn a_store_that_was_copied_to_another_folder_brings_no_approvals() {
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    Connection::open(place.database()).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    // The same account trusts another folder, which has no store yet.
    let other = Place::new();
    let home = place.workspace.root.join("home");
    succeeds(&other.at_home(&home, &["trust"]));
    fs::copy(place.database(), other.database()).unwrap();
    let mut work = other.command(&["worker", "--until-idle"]);
    let idle = work.env("WAYPOST_INJECTED_HOME", &home).output().unwrap();
    succeeds(&idle);
    assert!(!other.ran(), "{:?}", text(&idle));
    succeeds(&other.at_home(&home, &["approve", "p"]));
    let mut work = other.command(&["worker", "--until-idle"]);
    succeeds(&work.env("WAYPOST_INJECTED_HOME", &home).output().unwrap());
    assert!(other.ran());
}

#[test]
fn a_gate_of_another_plan_that_the_database_makes_a_plain_task_opens_nothing() {
    let place = Place::new();
    configure(&place.workspace, &format!("{CONFIG}[executors.ask]\nkind = \"human\"\n"));
    let put = |id: &str, task: serde_json::Value| {
        let plan = serde_json::json!({ "format": "waypost/1", "id": id, "title": id, "tasks": [task] });
        fs::write(place.workspace.work().join(format!("{id}.json")), plan.to_string()).unwrap();
        succeeds(&place.agent(&["import", &format!("{id}.json")]));
        succeeds(&place.workspace.at_terminal(&["approve", id]));
    };
    put("gates", serde_json::json!({ "id": "g", "work": { "executor": "ask" } }));
    let on = serde_json::json!([{ "plan": "gates", "task": "g" }]);
    put("deploy", serde_json::json!({ "id": "t", "depends_on": on, "work": { "executor": "run" } }));
    place.forge(
        r#"DELETE FROM log WHERE plan = (SELECT key FROM plans WHERE id = 'gates') AND version > 1;
           UPDATE log SET events = replace(replace(events, ',"work":{"executor":"ask","inputs":{}}', ''),
               ',"state":{"phase":"draft","approval_required":true}', '')
               WHERE plan = (SELECT key FROM plans WHERE id = 'gates');
           UPDATE plans SET version = 1, phase = 'draft', awaits_approval = 0, hash =
               (SELECT log.hash FROM log WHERE log.plan = plans.key) WHERE id = 'gates';"#,
    );
    for words in [["submit", "gates", ""], ["start", "gates", "g"], ["done", "gates", "g"]] {
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        succeeds(&place.agent(&words));
    }
    let (out, err) = text(&place.workspace.waypost(&["worker", "--until-idle"]));
    assert!(out.contains("gates/g") && !place.ran(), "{out}{err}");
}

#[test]
fn trust_of_a_folder_does_not_revive_approvals_of_a_store_that_was_copied_there() {
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    let (from, to) = (place.workspace.work(), place.workspace.root.join("copy"));
    fs::create_dir(&to).unwrap();
    succeeds(&place.workspace.command("cp").args(["-r", ".waypost"]).arg(&to).output().unwrap());
    let there = |words: &[&str]| {
        let mut command = place.command(words);
        command.current_dir(&to).env("WAYPOST_INJECTED_TERMINAL", "yes").output().unwrap()
    };
    succeeds(&there(&["trust"]));
    let (out, err) = text(&there(&["worker", "--until-idle"]));
    assert!(out.contains("it was given for another folder"), "{out}{err}");
    assert!(!to.join("ran").exists(), "it ran");
    // Where it was given it counts, and there it is given anew.
    succeeds(&place.workspace.waypost(&["worker", "--until-idle"]));
    assert!(from.join("ran").exists());
    succeeds(&there(&["approve", "p"]));
    succeeds(&there(&["worker", "--until-idle"]));
    assert!(to.join("ran").exists());
    // A later approval counts in the copy as little.
    let later = fs::read_to_string(from.join("p.json")).unwrap().replace(r#""id": "p""#, r#""id": "later""#);
    let later = later.replace(r#""id":"p""#, r#""id":"later""#);
    fs::write(from.join("later.json"), later).unwrap();
    succeeds(&place.agent(&["import", "later.json"]));
    succeeds(&place.workspace.at_terminal(&["approve", "later"]));
    fs::remove_dir_all(to.join(".waypost")).unwrap();
    succeeds(&place.workspace.command("cp").args(["-r", ".waypost"]).arg(&to).output().unwrap());
    fs::remove_file(to.join("ran")).unwrap();
    let (out, err) = text(&there(&["worker", "--until-idle"]));
    assert!(out.contains("later") && out.contains("for another folder"), "{out}{err}");
    assert!(!to.join("ran").exists(), "it ran: {out}{err}");
}

#[test]
fn what_changed_since_ones_own_record_needs_a_person() {
    let place = Place::new();
    succeeds(&place.workspace.waypost(&["submit", "p.json"]));
    configure(&place.workspace, &CONFIG.replace("\"ran\"", "\"ran\", \"evil\""));
    place.runs_nothing("p", "executor run: command");
    succeeds(&place.workspace.at_terminal(&["run", "p"]));
    assert!(place.ran());
}

#[test]
fn a_record_of_ones_own_is_not_renewed_over_what_others_changed() {
    let place = Place::new();
    let evil = "[executors.evil]\nkind = \"process\"\ncommand = [\"touch\", \"evil\"]\n";
    configure(&place.workspace, &format!("{CONFIG}{evil}"));
    succeeds(&place.workspace.at_terminal(&["submit", "p.json"]));
    place.forge(r#"UPDATE log SET events = replace(events, '"executor":"run"', '"executor":"evil"')"#);
    for words in [["run", "p"], ["submit", "p"]] {
        // They are asked, and say no.
        let mut command = place.command(&words);
        let output = command.env("WAYPOST_INJECTED_TERMINAL", "no").output().unwrap();
        assert!(!output.status.success(), "{words:?}: {:?}", text(&output));
    }
    for words in [["pause", "p"], ["resume", "p"]] {
        succeeds(&place.workspace.at_terminal(&words));
    }
    let idle = place.workspace.waypost(&["worker", "--until-idle"]);
    assert!(text(&idle).0.contains("approve it again"), "{:?}", text(&idle));
    assert!(!place.workspace.work().join("evil").exists());

    // Whoever names a file says what is in it, with no weaker proof than before.
    for is_present in [false, true] {
        let place = Place::new();
        let submit = ["submit", "p.json"];
        succeeds(&match is_present {
            true => place.workspace.at_terminal(&submit),
            false => place.workspace.waypost(&submit),
        });
        configure(&place.workspace, &CONFIG.replace("\"ran\"", "\"ran\", \"more\""));
        let unattended = place.workspace.waypost(&["run", "p.json"]);
        assert_eq!(unattended.status.success(), !is_present, "{:?}", text(&unattended));
        succeeds(&place.workspace.at_terminal(&["run", "p.json"]));
        assert!(place.ran());
    }
}

#[test]
fn a_restored_version_is_not_taken_for_what_the_person_wrote() {
    let place = Place::new();
    let evil = "[executors.evil]\nkind = \"process\"\ncommand = [\"touch\", \"evil\"]\n";
    configure(&place.workspace, &format!("{CONFIG}{evil}"));
    succeeds(&place.workspace.at_terminal(&["submit", "p.json"]));
    succeeds(&place.workspace.at_terminal(&["task", "revise", "p", "a", "--notes", "now"]));
    place.forge(
        r#"UPDATE log SET events = replace(events, '"executor":"run"', '"executor":"evil"') WHERE version = 1"#,
    );
    succeeds(&place.workspace.at_terminal(&["restore", "p", "1"]));
    let idle = place.workspace.waypost(&["worker", "--until-idle"]);
    assert!(text(&idle).0.contains("approve it again"), "{:?}", text(&idle));
    assert!(!place.workspace.work().join("evil").exists());
}

#[test]
fn a_person_is_asked_once_about_their_own_plan() {
    let place = Place::new();
    succeeds(&place.workspace.waypost(&["import", "p.json"]));
    succeeds(&place.workspace.at_terminal(&["run", "p"]));
    succeeds(&place.workspace.at_terminal(&["add", "p", "one more", "--executor", "run"]));
    let mut again = place.command(&["run", "p"]);
    succeeds(&again.env("WAYPOST_INJECTED_TERMINAL", "no").output().unwrap());
    // What an agent adds is another matter.
    succeeds(&place.agent(&["add", "p", "and more", "--executor", "run"]));
    let mut again = place.command(&["run", "p"]);
    let asked = again.env("WAYPOST_INJECTED_TERMINAL", "no").output().unwrap();
    assert!(!asked.status.success(), "{:?}", text(&asked));
}

#[test]
fn a_file_that_is_called_like_a_plan_does_not_run_in_its_place() {
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    fs::copy(place.workspace.work().join("q.json"), place.workspace.work().join("p")).unwrap();
    for words in [["run", "p"], ["submit", "p"]] {
        let output = place.workspace.at_terminal(&words);
        let (_, err) = text(&output);
        assert!(output.status.code() == Some(2) && err.contains("./p"), "{words:?}: {err}");
    }
    assert!(!place.ran());
    succeeds(&place.workspace.waypost(&["run", "./p"]));
}

#[test]
fn an_older_copy_of_the_database_does_not_bring_back_a_revoked_approval() {
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    Connection::open(place.database()).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let copy = fs::read(place.database()).unwrap();
    succeeds(&place.workspace.at_terminal(&["revoke", "p"]));
    for ending in ["-wal", "-shm"] {
        let _absent = fs::remove_file(format!("{}{ending}", place.database().display()));
    }
    fs::write(place.database(), copy).unwrap();
    place.runs_nothing("p", "it was revoked");
    // A new approval is another one.
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    succeeds(&place.workspace.waypost(&["worker", "--until-idle"]));
    assert!(place.ran());
}

#[test]
fn approvals_of_an_earlier_version_are_given_anew_one_by_one_or_all_once_all_were_shown() {
    const MIGRATE: [&str; 2] = ["migrate", "approvals"];
    for (typed, approved) in [("skip", 0), ("yes", 2), ("all", 2)] {
        let place = Place::new();
        for (file, plan) in [("p.json", "p"), ("q.json", "q")] {
            succeeds(&place.agent(&["import", file]));
            succeeds(&place.workspace.at_terminal(&["approve", plan]));
        }
        let (said, _) = text(&place.workspace.at_terminal(&MIGRATE));
        assert_eq!(said, "approved 0 of 0 plans\n");
        place.forge("UPDATE log SET events = json_remove(events, '$[0].work') WHERE version = 2");
        let (said, _) = text(&place.workspace.waypost(&["worker", "--until-idle"]));
        assert!(
            said.contains("plan p was approved by an earlier version of Waypost (a person approves it: `waypost approve p`)"),
            "{said}"
        );
        assert!(!place.ran());
        for refused in [place.agent(&MIGRATE), place.workspace.waypost(&MIGRATE)] {
            assert_eq!(refused.status.code(), Some(1), "{:?}", text(&refused));
        }
        let mut migrate = place.command(&MIGRATE);
        let output = migrate.env("WAYPOST_INJECTED_TERMINAL", typed).output().unwrap();
        let (said, _) = text(&output);
        assert!(said.starts_with(&format!("approved {approved} of 2 plans\n")), "{typed}: {said}");
        assert_eq!(said.matches("not approved: plan").count(), 2 - approved, "{said}");
        succeeds(&place.workspace.waypost(&["worker", "--until-idle"]));
        assert_eq!(place.ran(), approved > 0, "{typed}");
    }
}

#[test]
fn a_void_approval_is_offered_for_migration() {
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    succeeds(&place.agent(&["add", "p", "one more", "--executor", "run"]));
    // Never approved: `approve` is for that.
    succeeds(&place.agent(&["import", "q.json"]));
    succeeds(&place.agent(&["request-approval", "q"]));
    let (said, _) = text(&place.workspace.at_terminal(&["migrate", "approvals"]));
    assert_eq!(said, "approved 1 of 1 plan\n");
    succeeds(&place.workspace.waypost(&["worker", "--until-idle"]));
    assert!(place.ran());
}

#[test]
fn an_agent_leaves_a_plan_that_nobody_here_can_run() {
    let place = Place::new();
    let plan = fs::read_to_string(place.workspace.work().join("p.json")).unwrap();
    let plan = plan.replace(r#""executor":"run""#, r#""executor":"elsewhere""#);
    fs::write(place.workspace.work().join("p.json"), plan).unwrap();
    let submitted = place.agent(&["submit", "p.json"]);
    succeeds(&submitted);
    assert!(text(&submitted).1.contains("not runnable with this configuration"), "{:?}", text(&submitted));
    let (shown, _) = text(&place.workspace.waypost(&["preview", "p"]));
    assert!(shown.contains("nobody defines elsewhere"), "{shown}");
    // A configuration that defines it is named for the preview.
    let named = CONFIG.replace("executors.run", "executors.elsewhere");
    fs::write(place.workspace.work().join("more.toml"), named).unwrap();
    let (shown, _) = text(&place.workspace.waypost(&["preview", "p", "--config", "more.toml"]));
    assert!(shown.contains("touch ran"), "{shown}");
    succeeds(&place.workspace.at_terminal(&["approve", "p", "--config", "more.toml"]));
    let (shown, _) = text(&place.workspace.waypost(&["show", "p"]));
    assert!(shown.contains("proof: presence (terminal)"), "{shown}");
    succeeds(&place.workspace.waypost(&["verify", "p", "--config", "more.toml"]));
    assert!(!place.workspace.waypost(&["verify", "p"]).status.success());
    let refused = place.agent(&["preview", "p", "--config", "more.toml"]);
    assert!(!refused.status.success() && text(&refused).1.contains("cannot define"), "{:?}", text(&refused));
}

#[test]
fn an_approval_shows_that_the_history_before_it_was_written_anew() {
    let place = Place::new();
    succeeds(&place.agent(&["import", "p.json"]));
    succeeds(&place.agent(&["request-approval", "p"]));
    succeeds(&place.workspace.at_terminal(&["approve", "p"]));
    succeeds(&place.workspace.waypost(&["verify", "p"]));
    // Without hashes there is no chain that could be broken.
    place.forge("UPDATE log SET hash = NULL; UPDATE plans SET hash = NULL");
    let verified = place.workspace.waypost(&["verify", "p"]);
    let (out, err) = text(&verified);
    assert_eq!(verified.status.code(), Some(1), "{out}{err}");
    assert!(out.contains("version 2 is not the one that was approved"), "{out}{err}");
}
