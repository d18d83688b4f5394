//! Several worker processes on one store, under faults, judged by what was seen from outside.
//!
//! A binary of its own, so that no other test runs beside a storm. Nothing of Waypost is linked into it: it starts the built
//! program, as users do, and `history.py` judges.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod bystanders;
mod ground;
mod nemesis;
mod proxy;
mod storm;
mod workload;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use ground::Ground;
use storm::Storm;

/// Storms are not for each other.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn every_kind_of_wrong_history_is_found_out() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/history_test.py");
    let output =
        Command::new("python3").arg(script).output().expect("the judge needs Python 3: install python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn workers_on_one_file_that_are_killed_and_stopped_do_every_task_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Storm { workers: 4, plans: 2, tasks: 200, rounds: 2 }.rage(&Ground::sqlite());
}

#[test]
fn workers_on_postgres_survive_kills_stops_restarts_and_cut_connections() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Storm { workers: 4, plans: 4, tasks: 500, rounds: 3 }.rage(&Ground::postgres(6));
}
