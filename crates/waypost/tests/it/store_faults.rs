//! Faults of a local store during the work: a full disk, files that disappear, and a newer build that migrates it.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};
use waypost_core::Phase;

use crate::examples::stored;
use crate::run::{configure, text};
use crate::transcript::Workspace;

/// How long a test waits for other processes before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A task notes that it has begun, and ends when it may.
const WORKER: &str = "echo $WAYPOST_TASK >> ../journal; while [ ! -e ../go ]; do sleep 0.05; done";

fn plan(id: &str) -> String {
    let task = |name: &str, before: &[&str]| json!({ "id": name, "depends_on": before, "work": { "executor": "run" } });
    json!({ "format": "waypost/1", "id": id, "title": id, "tasks": [task("a", &[]), task("b", &["a"])] })
        .to_string()
}

fn config() -> String {
    let line = serde_json::to_string(WORKER).unwrap();
    format!(
        "[lease]\nseconds = 6\nheartbeat_seconds = 1\n[executors.run]\nkind = \"process\"\nshell = true\n\
         command = [{line}]\n"
    )
}

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    configure(&workspace, &config());
    fs::write(workspace.root.join("config.toml"), config()).unwrap();
    fs::write(workspace.work().join("p.json"), plan("p")).unwrap();
    workspace
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} did not come");
        std::thread::yield_now();
    }
}

fn begun(workspace: &Workspace) -> usize {
    fs::read_to_string(workspace.root.join("journal")).unwrap_or_default().lines().count()
}

/// A command with its output in files, which is ended with the test.
struct Running<'a>(&'a Workspace, Child);

impl<'a> Running<'a> {
    fn start(workspace: &'a Workspace, words: &[&str]) -> Self {
        let file = |name: &str| Stdio::from(fs::File::create(workspace.root.join(name)).unwrap());
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        Self(workspace, command.args(words).stdout(file("out")).stderr(file("err")).spawn().unwrap())
    }

    fn said(&self, name: &str) -> String {
        fs::read_to_string(self.0.root.join(name)).unwrap()
    }

    /// The exit code, and the error that it printed.
    fn ends(&mut self) -> (Option<i32>, Value) {
        let mut code = None;
        until("the end", || {
            code = self.1.try_wait().unwrap();
            code.is_some()
        });
        let said = self.said("err");
        let values = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let error = values.map(|value| value["error"].clone()).find(|error| !error.is_null());
        (code.and_then(|status| status.code()), error.unwrap_or_default())
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _gone = self.1.kill();
        let _gone = self.1.wait();
        // What the command ran ends by itself.
        let _written = fs::write(self.0.root.join("go"), "");
    }
}

/// Fills a small disk during a run, frees it, and does the same to a run that is then interrupted twice.
const FILLED: &str = r#"
mount -t tmpfs -o size=4m,mode=700 tmpfs disk && cd disk || exit 99
cp ../repo/p.json ../q.json .
fill() { dd if=/dev/zero of=filler bs=4k 2>/dev/null; }
begins() { until [ -e ../journal ]; do sleep 0.05; done; }
says() { until grep -q "$1" "$2"; do sleep 0.05; done; }
waypost run p.json --yes --json --config ../config.toml > ../p.out 2> ../p.err & pid=$!
begins; fill; touch ../go; says disk_full ../p.out
rm filler; wait $pid; echo "p ended with $?"
rm ../journal ../go
waypost run q.json --yes --config ../config.toml > ../q.out 2> ../q.err & pid=$!
begins; fill; says 'no disk space is left' ../q.out
kill -INT $pid; says 'no further tasks start' ../q.out
kill -INT $pid; wait $pid; echo "q ended with $?"
"#;

#[test]
fn a_run_reports_a_full_disk_continues_when_there_is_space_and_ends_on_the_second_signal() {
    let workspace = workspace();
    fs::create_dir(workspace.root.join("disk")).unwrap();
    fs::write(workspace.root.join("q.json"), plan("q")).unwrap();
    let mut command = workspace.command("timeout");
    let words = ["60", "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FILLED];
    let output = command.args(words).current_dir(&workspace.root).output().unwrap();
    let (out, err) = text(&output);
    if output.status.code() != Some(0) && !workspace.root.join("p.out").exists() {
        // Not every machine lets its users mount something.
        println!("skipped: no small disk can be mounted here: {err}");
        return;
    }
    let read = |name: &str| fs::read_to_string(workspace.root.join(name)).unwrap();
    assert_eq!(out, "p ended with 0\nq ended with 130\n", "{err}{}{}", read("p.err"), read("q.err"));
    let events = read("p.out");
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let position = |name: &str| events.iter().position(|event| event["event"] == name);
    assert!(position("disk_full") < position("store_back"), "{events:?}");
    let ended: Vec<&Value> = events.iter().filter(|event| event["event"] == "task_ended").collect();
    assert_eq!(ended.len(), 2, "{events:?}");
    assert!(ended.iter().all(|event| event["attempt"] == 1), "{events:?}");
    assert!(read("q.err").contains("stopped while the store could not be used"), "{}", read("q.err"));
}

/// Fills a small disk on which a store stands, and reads and writes.
const FULL: &str = r#"
mount -t tmpfs -o size=1m,mode=700 tmpfs disk && cd disk || exit 99
waypost new Move --id move --task Read
dd if=/dev/zero of=filler bs=1k 2>/dev/null
waypost && waypost show move && waypost why move t1 || exit 1
waypost note move words; echo "the note ended with $?"
rm filler
waypost note move words
"#;

#[test]
fn plans_on_a_full_disk_can_be_read() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.root.join("disk")).unwrap();
    let mut command = workspace.command("timeout");
    let words = ["60", "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FULL];
    let output = command.args(words).current_dir(&workspace.root).output().unwrap();
    let (out, err) = text(&output);
    if !out.starts_with("move\n") {
        // Not every machine lets its users mount something.
        println!("skipped: no small disk can be mounted here: {err}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(out.contains("move  Move: 1 task ready") && out.contains("t1 is ready"), "{out}{err}");
    assert!(out.contains("the note ended with 1\nnote: words"), "{out}{err}");
    assert!(err.contains("error: no disk space is left for sqlite:"), "{err}");
    assert!(err.contains("hint: free disk space, then try again"), "{err}");
}

/// Removes the folder of the store at once: a process may create files in it while they are removed one by one.
fn remove_store(workspace: &Workspace) {
    let gone = workspace.root.join("gone");
    fs::rename(workspace.work().join(".waypost"), &gone).unwrap();
    fs::remove_dir_all(gone).unwrap();
}

#[test]
fn a_run_whose_store_is_removed_says_so_and_saves_it() {
    let workspace = workspace();
    let mut run = Running::start(&workspace, &["run", "p.json", "--yes", "--json"]);
    until("the first task", || begun(&workspace) == 1);
    let folder = workspace.work().join(".waypost");
    remove_store(&workspace);
    fs::write(workspace.root.join("go"), "").unwrap();
    let (code, error) = run.ends();
    assert_eq!((code, &error["code"]), (Some(1), &json!("store_removed")), "{error}");
    assert!(!run.said("out").contains("run_ended"), "{}", run.said("out"));
    let recovered = workspace.work().join("waypost-recovered.db");
    assert_eq!(error["recovered"], recovered.display().to_string());
    // Put back, it continues.
    configure(&workspace, &config());
    fs::rename(recovered, folder.join("waypost.db")).unwrap();
    let again = workspace.waypost(&["run", "p", "--yes"]);
    assert_eq!(again.status.code(), Some(0), "{:?}", text(&again));
    assert_eq!(stored(&workspace, "p").state().phase, Phase::Completed);
}

#[test]
fn workers_and_servers_end_when_their_store_is_removed() {
    for words in [&["worker", "--json"][..], &["serve", "--json"], &["serve", "--no-worker", "--json"]] {
        let workspace = workspace();
        assert!(workspace.waypost(&["import", "p.json"]).status.success());
        let mut running = Running::start(&workspace, words);
        let database = Connection::open(workspace.work().join(".waypost/waypost.db")).unwrap();
        match words.contains(&"worker") {
            true => until("the worker", || {
                database.query_row("SELECT count(*) FROM workers", [], |row| row.get::<_, u32>(0)).unwrap()
                    > 0
            }),
            false => until("the address", || running.said("out").contains("url")),
        }
        remove_store(&workspace);
        let (code, error) = running.ends();
        assert_eq!((code, &error["code"]), (Some(1), &json!("store_removed")), "{words:?}: {error}");
        assert!(workspace.work().join("waypost-recovered.db").exists(), "{words:?}");
    }
}

/// Does what the migration of a newer build does, which builds of the schema `readable_by` can still use.
fn migrate(workspace: &Workspace, readable_by: u32) {
    let database = Connection::open(workspace.work().join(".waypost/waypost.db")).unwrap();
    database.busy_timeout(PATIENCE).unwrap();
    database.execute("UPDATE store SET readable_by = ?1", [readable_by]).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
}

/// The schema of this build, which a newer one has migrated.
fn schema(workspace: &Workspace) -> u32 {
    let database = Connection::open(workspace.work().join(".waypost/waypost.db")).unwrap();
    database.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn an_old_worker_finishes_its_tasks_after_a_compatible_migration_and_a_new_one_goes_on() {
    let workspace = workspace();
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let known = schema(&workspace);
    let mut old = Running::start(&workspace, &["worker", "--json"]);
    until("the first task", || begun(&workspace) == 1);
    migrate(&workspace, known);
    until("a warning", || old.said("out").contains("store_migrated"));
    fs::write(workspace.root.join("go"), "").unwrap();
    let (code, error) = old.ends();
    assert_eq!((code, &error["code"]), (Some(6), &json!("too_new")), "{error}");
    // Its last end is in the store, and it started nothing more.
    assert_eq!((stored(&workspace, "p").counts().done, begun(&workspace)), (1, 1));
    let refused = workspace.waypost(&["worker", "--until-idle", "--json"]);
    assert_eq!(refused.status.code(), Some(6), "{:?}", text(&refused));
    // The new build is the same program, to which the schema is not new.
    let database = Connection::open(workspace.work().join(".waypost/waypost.db")).unwrap();
    database.pragma_update(None, "user_version", known).unwrap();
    let new = workspace.waypost(&["worker", "--until-idle"]);
    assert_eq!(new.status.code(), Some(0), "{:?}", text(&new));
    let plan = stored(&workspace, "p");
    assert_eq!(plan.state().phase, Phase::Completed);
    assert!(plan.tasks().all(|(task, _)| task.state.attempt == 1), "nothing was done twice");
}

#[test]
fn an_old_worker_ends_at_once_after_a_migration_that_it_cannot_follow() {
    let workspace = workspace();
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let mut old = Running::start(&workspace, &["worker", "--json"]);
    until("the first task", || begun(&workspace) == 1);
    migrate(&workspace, 99);
    let (code, error) = old.ends();
    assert_eq!((code, &error["code"]), (Some(6), &json!("too_new")), "{error}");
    assert_eq!(error["hint"], "update Waypost");
    let refused = workspace.waypost(&["list"]);
    assert_eq!(refused.status.code(), Some(6), "{:?}", text(&refused));
}

#[test]
fn the_doctor_does_not_call_a_database_of_0_bytes_sound_and_leaves_it_alone() {
    let workspace = workspace();
    let database = workspace.work().join(".waypost/waypost.db");
    fs::write(&database, "").unwrap();
    for words in [&["doctor", "--json"][..], &["doctor", "--repair", "--json"]] {
        let output = workspace.waypost(words);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        let found: Value = serde_json::from_str(&out).unwrap();
        assert!(found["findings"][0]["what"].as_str().unwrap().contains("0 bytes"), "{out}");
    }
    assert_eq!(fs::metadata(database).unwrap().len(), 0);
}

/// Adds the files and folders below a folder, with their modes.
fn modes(folder: &std::path::Path, found: &mut Vec<(std::path::PathBuf, u32)>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        found.push((entry.path(), entry.metadata().unwrap().permissions().mode() & 0o777));
        if entry.path().is_dir() {
            modes(&entry.path(), found);
        }
    }
}

#[test]
fn only_the_account_reads_the_database_and_the_logs_whatever_the_umask_is() {
    let workspace = workspace();
    fs::write(workspace.root.join("go"), "").unwrap();
    let logged = config().replace("echo $WAYPOST_TASK", "echo begun >&2; echo $WAYPOST_TASK");
    fs::remove_dir_all(workspace.work().join(".waypost")).unwrap();
    fs::write(workspace.root.join("config.toml"), logged).unwrap();
    let line = "umask 0; waypost run p.json --yes --config ../config.toml";
    let output = workspace.command("sh").args(["-c", line]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    let mut found = Vec::new();
    modes(&workspace.work().join(".waypost"), &mut found);
    for name in ["waypost.db", "a.1.log"] {
        assert!(found.iter().any(|(path, _)| path.ends_with(name)), "{name}: {found:?}");
    }
    for (path, mode) in found {
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}
