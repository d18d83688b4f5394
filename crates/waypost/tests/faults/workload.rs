//! The plans of a storm, made from a seed, and the configuration that every worker has. Runs nothing.

use serde_json::{Value, json};
use waypost_testkit::SeededRng;

/// Few, so that tasks of different plans are in each other's way.
const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// Seconds without a sign of life after which a worker is lost.
pub(crate) const LEASE_SECONDS: u64 = 2;
/// How far back a task may depend on others.
const REACH: usize = 40;

/// The configuration of a worker whose programs note what they do in `notes`, take locks in `locks` and wait at `empty`.
pub(crate) fn configuration(program: &str, notes: &str, locks: &str, empty: &str) -> String {
    format!(
        "[queues.default]\nconcurrency = 12\n\
         [lease]\nseconds = {LEASE_SECONDS}\nheartbeat_seconds = 1\n\
         [retry]\nattempts = 100\nbackoff_seconds = 0\n\
         [limits]\nstop_seconds = 1\nlock_wait_seconds = 2\n\
         [executors.run]\nkind = \"process\"\ncommand = [\"bash\", {program:?}, {notes:?}, {locks:?}, {empty:?}]\n"
    )
}

/// A plan of `count` tasks.
pub(crate) fn plan(id: &str, count: usize, dice: &mut SeededRng) -> Value {
    let mut risky = Vec::new();
    let tasks: Vec<Value> = (0..count).map(|number| task(number, &mut risky, dice)).collect();
    json!({ "format": "waypost/1", "id": id, "title": id, "tasks": tasks })
}

/// What kind of life a task has. Each is common enough for a small plan to have some of it.
fn mode(number: usize, dice: &mut SeededRng) -> &'static str {
    match (number % 50, dice.below(100)) {
        (7, _) => "slow",
        (17, _) => "hang_once",
        (27, _) => "doomed",
        (37, _) => "once",
        (_, 0..4) => "fail_once",
        (_, 4..7) => "again_once",
        _ => "ok",
    }
}

fn task(number: usize, risky: &mut Vec<usize>, dice: &mut SeededRng) -> Value {
    let mode = mode(number, dice);
    let mut before: Vec<usize> = Vec::new();
    for _ in 0..dice.below(4).min(number) {
        let other = number - 1 - dice.below(REACH.min(number));
        // What may fail for good takes little along: few depend on it.
        if !before.contains(&other) && (!risky.contains(&other) || dice.chance(4)) {
            before.push(other);
        }
    }
    if matches!(mode, "doomed" | "once") {
        risky.push(number);
    }
    let locks = locks(mode, dice);
    let words: Vec<String> =
        locks.iter().map(|(key, shared)| format!("{}:{key}", if *shared { "s" } else { "x" })).collect();
    let millis = dice.below(25);
    let mut task = json!({
        "id": format!("t{number}"),
        "depends_on": before.iter().map(|other| format!("t{other}")).collect::<Vec<_>>(),
        "locks": locks.iter().map(|(key, shared)| lock(key, *shared)).collect::<Vec<_>>(),
        "work": { "executor": "run", "inputs": { "locks": words.join(" "), "millis": millis, "mode": mode } },
    });
    match mode {
        "doomed" => task["retry"] = json!({ "attempts": 2, "backoff_seconds": 1 }),
        "once" => task["retry"] = json!({ "attempts": 1 }),
        "hang_once" => task["timeout_seconds"] = json!(1),
        _ => {}
    }
    task
}

fn locks(mode: &str, dice: &mut SeededRng) -> Vec<(&'static str, bool)> {
    let mut locks: Vec<(&str, bool)> = Vec::new();
    // The slow ones always have one: they are what a stopped worker risky behind.
    let wanted = if mode == "slow" { 1 } else { [0, 0, 1, 1, 2][dice.below(5)] };
    while locks.len() < wanted {
        let key = *dice.pick(&KEYS);
        if locks.iter().all(|(taken, _)| *taken != key) {
            locks.push((key, dice.chance(40)));
        }
    }
    locks
}

fn lock(key: &str, shared: bool) -> Value {
    if shared { json!({ "key": key, "mode": "shared" }) } else { json!(key) }
}
