//! The core and the embedded store, inside one process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use waypost_core::{Actor, Command, Draft, Json, Outcome, Plan, PlanId, TaskId, Timestamp, validate};
use waypost_formats::{Dialect, Form};
use waypost_store::{Durability, NewPlan, PlanStore, SqliteStore, WriteRequest};
use waypost_testkit::{chain, layered};

use super::measure::{Bare, median, peak_megabytes, side_by_side, timed};
use super::report::Report;
use crate::exec::{cache_dir, output};

pub(super) fn run(report: &mut Report) -> Result<()> {
    validation(report)?;
    memory(report, &scratch()?)?;
    completion(report)?;
    commits(report)
}

/// Creates an empty folder.
fn scratch() -> Result<PathBuf> {
    let scratch = cache_dir().join("bench");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir_all(&scratch)?;
    Ok(scratch)
}

fn native(draft: &Draft) -> Result<String> {
    Ok(waypost_formats::write(draft, Dialect::Native, Form::AsRead).context("write native")?.text)
}

/// Reads and validates a plan; the baseline parses the same bytes as bare JSON.
fn validation(report: &mut Report) -> Result<()> {
    let text = native(&layered(100_000, 3, 1_000, 7))?;
    let (ours, floor) = side_by_side(
        9,
        || {
            let reading = waypost_formats::read(&text, None, None).expect("the plan reads");
            assert!(reading.problems.is_empty() && validate(&reading.drafts[0]).is_empty());
        },
        || {
            let value: serde_json::Value = serde_json::from_slice(text.as_bytes()).expect("it is JSON");
            assert!(value.is_object());
        },
    );
    report.note("validate, 100,000 tasks with 3 dependencies each", format!("{:.0} ms", ours * 1e3));
    report.at_most("  relative to serde_json::from_slice::<Value> of the same bytes", ours / floor, 3.0, "×");
    Ok(())
}

/// Validates a chain of a million tasks in a process of its own, and reads its peak memory.
fn memory(report: &mut Report, scratch: &Path) -> Result<()> {
    const TASKS: usize = 1_000_000;
    let file = scratch.join("chain.json");
    std::fs::write(&file, native(&chain(TASKS))?)?;
    let mut child = std::process::Command::new(std::env::current_exe()?);
    child.args(["bench", "validate-file"]).arg(&file);
    let bytes: f64 = output(&mut child)?.trim().parse()?;
    report.at_most(
        "validate, a chain of 1,000,000 tasks: peak memory per task",
        bytes / TASKS as f64,
        1024.0,
        "B",
    );
    Ok(())
}

/// The child of [`memory`]: validates a file and prints its own peak memory in bytes.
pub(super) fn validate_file(path: &str) -> Result<()> {
    let text = std::fs::read_to_string(path)?;
    let reading = waypost_formats::read(&text, None, None)?;
    let problems = validate(&reading.drafts[0]);
    if !reading.problems.is_empty() || !problems.is_empty() {
        bail!("the generated chain is invalid");
    }
    let bytes = peak_megabytes(std::process::id())? * 1024.0 * 1024.0;
    println!("{bytes:.0}");
    Ok(())
}

fn created(draft: Draft) -> Result<Plan> {
    let by = Actor::person("bench");
    let at = Timestamp::from_micros(1);
    let mut plan = Plan::blank(PlanId::new("bench")?);
    let command = Command::Create { draft: draft.into(), approval_required: Some(false) };
    let events = plan.decide(&by, at, &command)?;
    plan.advance(&events, at);
    Ok(plan)
}

fn done(task: &TaskId) -> Command {
    Command::FinishTask {
        task: task.clone(),
        attempt: None,
        outcome: Outcome::Done { result: None, output: Some(Json::empty_object()), evidence: None },
        retry: None,
    }
}

/// Measures one completion in a large plan.
fn completion(report: &mut Report) -> Result<()> {
    let by = Actor::person("bench");
    let at = Timestamp::from_micros(2);
    let mut plan = created(layered(100_000, 3, 1_000, 7))?;
    let mut samples = Vec::new();
    while samples.len() < 50_000 {
        let Some(task) = plan.ready().next().map(|task| task.spec.id.clone()) else {
            bail!("no task is ready")
        };
        let command = done(&task);
        let (outcome, took) = timed(|| {
            let events = plan.decide(&by, at, &command)?;
            plan.advance(&events, at);
            Ok::<_, waypost_core::Refusal>(())
        });
        outcome?;
        samples.push(took.as_secs_f64() * 1e6);
        plan.take_touched();
    }
    report.at_most("one completion in 100,000 tasks: decide + evolve, median", median(samples), 3.0, "µs");
    Ok(())
}

/// Measures a durable command through SQLite against a bare commit of one row, and many callers against one.
pub(super) fn commits(report: &mut Report) -> Result<()> {
    let scratch = scratch()?;
    let store = SqliteStore::open(&scratch.join("waypost.db"), Durability::Full)?;
    let plans = PlanStore::new(Arc::new(store));
    let by = Actor::person("bench");
    let draft = layered(20_000, 0, 1, 7);
    let ids: Vec<TaskId> = draft.tasks.iter().map(|task| task.spec.id.clone()).collect();
    let made = plans.create(NewPlan { id: None, by: by.clone(), draft, approval_required: Some(false) })?;
    let request = |task: &TaskId| WriteRequest {
        plan: made.plan.clone(),
        by: by.clone(),
        commands: vec![done(task)],
        known_version: None,
        lease_seconds: None,
    };
    let finish = |task: &TaskId| {
        plans.write(request(task)).expect("the task can be finished");
    };

    let bare = Bare::open(&scratch)?;
    let mut tasks = ids.iter();
    let (ours, floor) = side_by_side(1_000, || finish(tasks.next().expect("enough tasks")), || bare.commit());
    report.note("a durable command on one task through SQLite", format!("{:.0} µs", ours * 1e6));
    report.at_most("  relative to a bare SQLite commit of one row", ours / floor, 1.3, "×");

    // One caller, 64 threads, and 64 callers of one event loop (each with one command in flight), alternately.
    const CALLERS: usize = 64;
    let rest: Vec<&TaskId> = tasks.collect();
    let (mut one, mut threads, mut served) = (Vec::new(), Vec::new(), Vec::new());
    for round in rest.chunks_exact(rest.len() / 5) {
        let (alone, together) = round.split_at(round.len() / 5);
        let (parallel, event_loop) = together.split_at(together.len() / 2);
        let rate = |tasks: &[&TaskId], work: &dyn Fn()| tasks.len() as f64 / timed(work).1.as_secs_f64();
        one.push(rate(alone, &|| alone.iter().for_each(|task| finish(task))));
        threads.push(rate(parallel, &|| {
            std::thread::scope(|scope| {
                for part in parallel.chunks(parallel.len().div_ceil(CALLERS)) {
                    let finish = &finish;
                    scope.spawn(move || part.iter().for_each(|task| finish(task)));
                }
            });
        }));
        served.push(rate(event_loop, &|| {
            for wave in event_loop.chunks(CALLERS) {
                let answers = plans.write_each(wave.iter().map(|task| request(task)).collect());
                assert!(answers.iter().all(Result::is_ok), "the tasks can be finished");
            }
        }));
    }
    let (one, threads, served) = (median(one), median(threads), median(served));
    report.note("durable commands by one caller", format!("{one:.0} /s"));
    report.note("  by 64 threads", format!("{threads:.0} /s, {:.1} ×", threads / one));
    report.note("  by 64 callers of an event loop", format!("{served:.0} /s"));
    report.at_least("    relative to one caller", served / one, 10.0, "×");
    Ok(())
}
