//! Derived events must match a comparison of the plan before and after the version, and must not change the plan.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{Command, DerivedEvent, Event, Phase, Plan, Status, TaskId};
use waypost_testkit::{SeededRng, id, layered, task};

use crate::kit::*;

/// The observable state of a plan.
struct Seen {
    statuses: BTreeMap<TaskId, Status>,
    ready: BTreeSet<TaskId>,
    phase: Phase,
}

fn see(plan: &Plan) -> Seen {
    Seen {
        statuses: plan.tasks().map(|(task, _)| (task.spec.id.clone(), task.state.status)).collect(),
        ready: plan.ready().map(|task| task.spec.id.clone()).collect(),
        phase: plan.state().phase,
    }
}

/// Computes the derived events by comparison, except for newly blocked tasks.
fn compared(before: &Seen, after: &Seen, events: &[Event]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (task, &status) in &after.statuses {
        let old = before.statuses.get(task).copied().unwrap_or(Status::Pending);
        let said =
            |event: &Event| event.task() == Some(task) && event.kind() == format!("task_{}", status.as_str());
        if old != status && status.is_finished() && !events.iter().any(said) {
            found.insert(format!("task_{} {task}", status.as_str()));
        }
        if old.is_finished() && !status.is_finished() {
            found.insert(format!("task_reopened {task}"));
        }
        let went_on =
            after.ready.contains(task) || matches!(status, Status::Running | Status::Done | Status::Failed);
        let was_blocked = old == Status::Pending && !before.ready.contains(task);
        if before.statuses.contains_key(task) && was_blocked && went_on {
            found.insert(format!("task_unblocked {task}"));
        }
    }
    match (before.phase, after.phase) {
        (before, after) if before == after => {}
        (_, after) if after.is_finished() => drop(found.insert(format!("plan_{}", after.as_str()))),
        (before, _) if before.is_finished() => drop(found.insert("plan_reopened".to_owned())),
        (_, Phase::Active) => drop(found.insert("plan_started".to_owned())),
        (_, _) => {}
    }
    found
}

fn told(consequences: &[DerivedEvent]) -> BTreeSet<String> {
    let words = consequences.iter().map(|one| match one.task() {
        Some(task) => format!("{} {task}", one.kind()),
        None => one.kind().to_owned(),
    });
    words.collect()
}

fn command(plan: &Plan, dice: &mut SeededRng, round: usize) -> Command {
    let names: Vec<TaskId> = plan.tasks().map(|(task, _)| task.spec.id.clone()).collect();
    let running: Vec<TaskId> = plan.running().map(|task| task.spec.id.clone()).collect();
    let any = names[dice.below(names.len())].clone();
    let outcome = [done(), done(), done(), failed(), skipped()][dice.below(5)].clone();
    match dice.below(10) {
        0 => Command::RetryTask { task: any },
        1 => Command::AddTasks {
            tasks: vec![task(&format!("n{round}"), &[any.as_str()])],
            place: waypost_core::Position::Last,
        },
        2..=6 if !running.is_empty() => {
            let task = running[dice.below(running.len())].clone();
            Command::FinishTask { task, attempt: None, outcome, retry: None }
        }
        _ => match plan.ready().next() {
            Some(ready) => ask::start(ready.spec.id.as_str()),
            None => Command::RetryPlan,
        },
    }
}

#[test]
fn what_is_told_is_what_a_comparison_finds() {
    for seed in 0..40 {
        let mut dice = SeededRng::new(seed);
        let mut plan = Plan::blank(plan_id());
        let made = plan.decide(&ada(), at(0), &ask::create(layered(25, 3, 8, seed))).unwrap();
        assert_eq!(plan.advance_telling(&made, at(0)), [], "a plan begins as it was written");
        for round in 1..120 {
            let now = at(round as u64);
            let Ok(mut events) = plan.decide(&ada(), now, &command(&plan, &mut dice, round)) else {
                continue;
            };
            let mut plain = plan.clone();
            // Sometimes a task that became ready starts in the same version, as a scheduler does.
            let mut ahead = plan.clone();
            events.iter().for_each(|event| ahead.evolve(event, now));
            let next = ahead.ready().next().map(|task| task.spec.id.clone());
            if let Some(next) = next.filter(|_| dice.below(2) == 0)
                && let Ok(more) = ahead.decide(&ada(), now, &ask::start(next.as_str()))
            {
                events.extend(more);
            }
            let before = see(&plan);
            let consequences = plan.advance_telling(&events, now);
            let is_blocked = |one: &&DerivedEvent| matches!(one, DerivedEvent::TaskBlocked { .. });
            for blocked in consequences.iter().filter(is_blocked) {
                let task = blocked.task().unwrap();
                assert_eq!(
                    plan.effective_status(task.as_str()),
                    Some(waypost_core::EffectiveStatus::Blocked),
                    "seed {seed}"
                );
            }
            let rest: Vec<DerivedEvent> =
                consequences.iter().filter(|one| !is_blocked(one)).cloned().collect();
            assert_eq!(
                told(&rest),
                compared(&before, &see(&plan), &events),
                "seed {seed}, round {round}: {events:?}"
            );
            plain.advance(&events, now);
            assert_eq!(plain.to_draft(), plan.to_draft(), "seed {seed}");
        }
    }
}

#[test]
fn a_consequence_is_called_what_it_is_written_as() {
    let mut plan = Plan::blank(plan_id());
    let made = plan.decide(&ada(), at(0), &ask::create(layered(3, 1, 1, 7))).unwrap();
    plan.advance_telling(&made, at(0));
    let mut kinds = BTreeSet::new();
    for command in [
        ask::start("t0"),
        Command::FinishTask { task: id("t0"), attempt: None, outcome: failed(), retry: None },
        Command::RetryPlan,
    ] {
        let events = plan.decide(&ada(), at(1), &command).unwrap();
        for consequence in plan.advance_telling(&events, at(1)) {
            assert_eq!(serde_json::to_value(&consequence).unwrap()["event"], consequence.kind());
            kinds.insert(consequence.kind());
        }
    }
    assert!(kinds.contains("plan_failed") && kinds.contains("plan_reopened"), "{kinds:?}");
}
