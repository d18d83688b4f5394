//! Several worker processes on one store, under faults, judged by what was seen from outside.
//!
//! A binary of its own, so that no other test runs beside a storm. Nothing of Waypost is linked into it: it starts the built
//! program, as users do, and `history.py` judges.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod bystanders;
mod clones;
mod ground;
mod nemesis;
mod order;
mod storm;
mod workload;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use ground::{Ground, patience, until};
use nemesis::{Nemesis, PAST_LEASE};
use serde_json::json;
use storm::Storm;
use waypost_testkit::SeededRng;

/// Storms are not for each other.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
#[ignore = "needs Python 3, some also PostgreSQL"]
fn every_kind_of_wrong_history_is_found_out() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/history_test.py");
    let output =
        Command::new("python3").arg(script).output().expect("the judge needs Python 3: install python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs Python 3, some also PostgreSQL"]
fn what_a_killed_worker_left_behind_is_ended_although_its_lease_has_run_out() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let ground = Ground::sqlite();
    // Its first attempt would go on for a minute.
    let inputs = json!({ "locks": "x:a", "millis": 0, "mode": "hang_once" });
    let task = json!({ "id": "t", "locks": ["a"], "work": { "executor": "run", "inputs": inputs } });
    let plan = json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": [task] });
    fs::write(ground.record("plans/p.json"), plan.to_string()).unwrap();
    let ids = ["p".to_owned()];
    storm::submit(&ground, &ids);
    let mut nemesis = Nemesis::new(&ground, 1, SeededRng::new(0));
    let notes = || fs::read_to_string(ground.record("programs.jsonl")).unwrap_or_default();
    until(patience(), "the start of the task", || notes().contains("start"));
    nemesis.fell(0);
    ground::pass(PAST_LEASE);
    nemesis.replace(0);
    storm::settle(&ground, &mut nemesis, &ids);
    nemesis.finish();
    ground.dump();
    let figures = storm::judged(&ground, &ids);
    assert_eq!((figures["programs"].as_u64(), figures["lost"].as_u64()), (Some(2), Some(1)), "{figures}");
    assert!(!notes().contains("clash"), "the first program still had the lock: {}", notes());
}

#[test]
#[ignore = "needs Python 3, some also PostgreSQL"]
fn workers_on_one_file_that_are_killed_and_stopped_do_every_task_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = storm::seed();
    println!("WAYPOST_SEED={seed} repeats the plans and the order of the faults");
    println!("{}", Storm { workers: 4, plans: 2, tasks: 200, rounds: 2 }.rage(&Ground::sqlite(), seed));
}

#[test]
#[ignore = "needs Python 3, some also PostgreSQL"]
fn workers_on_postgres_survive_kills_stops_restarts_and_cut_connections() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = storm::seed();
    println!("WAYPOST_SEED={seed} repeats the plans and the order of the faults");
    println!("{}", Storm { workers: 4, plans: 4, tasks: 300, rounds: 3 }.rage(&Ground::postgres(6), seed));
}

#[test]
#[ignore = "needs Python 3, some also PostgreSQL"]
fn a_reader_with_a_cursor_misses_nothing_while_slow_writers_commit_among_fast_ones() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let overtaken = order::slow_among_fast(&Ground::postgres(1));
    assert!(overtaken > 5, "only {overtaken} slow writes were overtaken");
}

/// Acts of people and agents for each round of a storm, and in an ordinary run.
const ACTS: (usize, usize) = (420, 300);

#[test]
#[ignore = "needs git"]
fn random_acts_of_people_and_agents_in_two_clones_end_in_equal_plans_and_lose_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = storm::seed();
    println!("WAYPOST_SEED={seed} repeats the acts");
    let mut soak = clones::Soak::new(seed);
    soak.act_at_random(storm::rounds().map_or(ACTS.1, |rounds| rounds * ACTS.0));
    println!("{}", soak.judge());
}
