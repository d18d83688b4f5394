//! A run that is killed at random instants and resumed: every task ends, nothing that was acknowledged as done is done
//! again, no exclusive lock is ever held by two, and every attempt is counted.

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use waypost_core::{Plan, Status};
use waypost_testkit::SeededRng;

use crate::examples::stored;
use crate::run::{configure, text};
use crate::transcript::Workspace;

const TASKS: usize = 300;
const KILLS: usize = 50;
/// Events that a run tells of at most before it is killed: fewer than the tasks allow for so many kills.
const EVENTS_MAX: usize = 10;
/// Milliseconds that pass at most between the last event that was waited for and the kill.
const MILLIS_MAX: usize = 40;
/// How long a run may be without a word before it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What each attempt does: it notes its start with its lock, holds the lock in a way that ends with the process, and
/// notes its end. One that got no job, because the run died before it could be told, does nothing. Only an exit code of
/// 1 says that somebody else has the lock: when a group is killed, `flock` may go before its shell.
const WORKER: &str = r#"
lock=$(sed -n 's/.*"lock":"\([a-z]*\)".*/\1/p'); [ -n "$lock" ] || exit 1
echo "start $WAYPOST_TASK $WAYPOST_ATTEMPT $lock" >> journal
exec 9> "lock.$lock"; flock -n 9; [ $? -ne 1 ] || echo "clash $WAYPOST_TASK $WAYPOST_ATTEMPT $lock" >> journal
sleep 0.01
echo "end $WAYPOST_TASK $WAYPOST_ATTEMPT $lock" >> journal
"#;

fn plan() -> serde_json::Value {
    let tasks = (0..TASKS).map(|number| {
        let lock = ["w", "x", "y", "z"][number % 4];
        let depends: Vec<String> = if number < 20 { Vec::new() } else { vec![format!("t{}", number - 20)] };
        serde_json::json!({
            "id": format!("t{number}"), "depends_on": depends, "locks": [lock],
            "work": { "executor": "run", "inputs": { "lock": lock } },
        })
    });
    let tasks: Vec<serde_json::Value> = tasks.collect();
    serde_json::json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks })
}

/// Lines until there are `events` of them, and for so long after that.
fn listen(lines: &Receiver<String>, events: usize, after: Duration) -> Vec<String> {
    let mut heard = Vec::new();
    while heard.len() < events {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => heard.push(line),
            Err(RecvTimeoutError::Disconnected) => return heard,
            Err(RecvTimeoutError::Timeout) => panic!("the run says nothing more after {heard:?}"),
        }
    }
    let until = Instant::now() + after;
    while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
        heard.push(line);
    }
    heard
}

/// Tasks that a run has told to be done, with their attempts.
fn told_done(lines: &[String]) -> Vec<(String, u32)> {
    let events = lines.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let done = events.filter(|event| event["event"] == "task_ended" && event["status"] == "done");
    done.map(|event| (event["task"].as_str().unwrap().to_owned(), event["attempt"].as_u64().unwrap() as u32))
        .collect()
}

fn done(plan: &Plan) -> Vec<(String, u32)> {
    let done = plan.tasks().filter(|(task, _)| task.state.status == Status::Done);
    done.map(|(task, _)| (task.spec.id.to_string(), task.state.attempt)).collect()
}

#[test]
fn a_run_that_is_killed_again_and_again_comes_to_its_end() {
    let seed = std::env::var("WAYPOST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    println!("WAYPOST_SEED={seed}");
    let mut dice = SeededRng::new(seed);
    let workspace = Workspace::new();
    let line = serde_json::to_string(WORKER).unwrap();
    configure(
        &workspace,
        &format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line}]\n"),
    );
    fs::write(workspace.work().join("p.json"), plan().to_string()).unwrap();
    assert!(workspace.waypost(&["import", "p.json"]).status.success());
    let mut acknowledged: BTreeMap<String, u32> = BTreeMap::new();
    for kill in 0..KILLS {
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        let words = ["run", "p.json", "--json"];
        let mut child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            // The last line may be cut off by the kill.
            for line in stdout.lines().map_while(Result::ok) {
                let _nobody_listens = sender.send(line);
            }
        });
        let events = dice.below(EVENTS_MAX);
        let after = Duration::from_micros(dice.below(MILLIS_MAX * 1_000) as u64);
        let mut heard = listen(&lines, events, after);
        child.kill().unwrap();
        let killed = child.wait().unwrap().code().is_none();
        reader.join().unwrap();
        heard.extend(lines.try_iter());
        let plan = stored(&workspace, "p");
        assert!(killed, "seed {seed}: the plan was completed before kill {kill}: {:?}", plan.counts());
        for (task, attempt) in told_done(&heard).into_iter().chain(done(&plan)) {
            let first = *acknowledged.entry(task.clone()).or_insert(attempt);
            assert_eq!(first, attempt, "seed {seed}: {task} was done and was done again");
        }
    }
    let output = workspace.waypost(&["run", "p.json"]);
    assert_eq!(output.status.code(), Some(0), "seed {seed}: {:?}", text(&output));
    let plan = stored(&workspace, "p");
    assert_eq!(plan.counts().done as usize, TASKS);
    let attempts: BTreeMap<String, u32> = done(&plan).into_iter().collect();
    for (task, attempt) in &acknowledged {
        assert_eq!(attempts[task], *attempt, "seed {seed}: {task} was done and was done again");
    }
    journal_agrees(&fs::read_to_string(workspace.work().join("journal")).unwrap(), &attempts, seed);
    let again = attempts.values().filter(|&&attempt| attempt > 1).count();
    assert!(again > KILLS / 2, "seed {seed}: only {again} tasks were tried again");
    assert!(acknowledged.len() > TASKS / 10, "seed {seed}: only {} acknowledged", acknowledged.len());
    let doctor = workspace.waypost(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(0), "seed {seed}: {:?}", text(&doctor));
}

#[test]
fn a_run_that_is_killed_by_a_program_that_has_just_begun_does_not_begin_it_again_uncounted() {
    let workspace = Workspace::new();
    let line = "echo $WAYPOST_ATTEMPT >> journal; [ $WAYPOST_ATTEMPT = 2 ] || kill -9 $PPID";
    let line = serde_json::to_string(line).unwrap();
    configure(
        &workspace,
        &format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line}]\n"),
    );
    let task = |name: &str, attempts: u32| json!({ "id": name, "work": { "executor": "run" }, "retry": { "attempts": attempts, "backoff_seconds": 0 } });
    for (name, attempts, ends, begun) in
        [("once", 1, Status::Failed, "1\n"), ("twice", 2, Status::Done, "1\n2\n")]
    {
        let file = format!("{name}.json");
        let plan =
            json!({ "format": "waypost/1", "id": name, "title": name, "tasks": [task("a", attempts)] });
        fs::write(workspace.work().join(&file), plan.to_string()).unwrap();
        assert!(workspace.waypost(&["import", &file]).status.success());
        assert_eq!(workspace.waypost(&["run", &file]).status.code(), None, "it was killed");
        let state = stored(&workspace, name).task("a").unwrap().state.clone();
        assert_eq!(
            (state.status, state.attempt),
            (Status::Running, 1),
            "queued, or started: in nobody's hands"
        );
        workspace.waypost(&["run", &file]);
        let state = stored(&workspace, name).task("a").unwrap().state.clone();
        assert_eq!((state.status, state.attempt, state.tries), (ends, attempts, 1), "{state:?}");
        assert_eq!(fs::read_to_string(workspace.work().join("journal")).unwrap(), begun);
        fs::remove_file(workspace.work().join("journal")).unwrap();
    }
}

/// What the workers have noted fits what the plan says of them.
fn journal_agrees(journal: &str, attempts: &BTreeMap<String, u32>, seed: u64) {
    assert!(!journal.contains("clash"), "seed {seed}: a lock was held by two: {journal}");
    let mut started = BTreeSet::new();
    let mut ended = BTreeSet::new();
    for line in journal.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, task, attempt, _lock] = words[..] else { panic!("seed {seed}: {line}") };
        let attempt: u32 = attempt.parse().unwrap();
        assert!(attempt <= attempts[task], "seed {seed}: {task} was started after it was done: {line}");
        if what == "start" {
            assert!(started.insert((task, attempt)), "seed {seed}: an attempt was started twice: {line}");
        } else {
            ended.insert((task, attempt));
        }
    }
    for (task, attempt) in attempts {
        let key = (task.as_str(), *attempt);
        assert!(ended.contains(&key), "seed {seed}: {task} says done at attempt {attempt} and was not");
    }
}
