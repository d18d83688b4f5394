//! Faults below the front: the caller hears of them, nothing is half-written, and what is in memory recovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use waypost_core::Plan;
use waypost_store::{PlanStore, StoreError, WriteError};

use crate::kit::*;
use crate::place::Place;
use crate::wrapped::{Moment, Wrapped};

fn places() -> [Place; 3] {
    [Place::memory(), Place::file(), Place::sqlite()]
}

/// Fails at `moment`, once, when it comes for the time `number`.
fn failing(place: &Place, moment: Moment, number: usize) -> PlanStore {
    let count = AtomicUsize::new(0);
    PlanStore::new(Wrapped::with_faults(place.store(), move |now| {
        if now == moment && count.fetch_add(1, Ordering::Relaxed) + 1 == number {
            return Err(StoreError::Database(format!("fault at {moment:?} {number}")));
        }
        Ok(())
    }))
}

fn is_the_fault(answer: &Result<waypost_store::Committed, WriteError>) -> bool {
    matches!(answer, Err(WriteError::Store(StoreError::Database(text))) if text.starts_with("fault"))
}

#[test]
fn a_write_that_fails_is_reported_and_leaves_nothing() {
    for place in places() {
        for moment in [Moment::Append, Moment::Commit] {
            for number in 1..=4 {
                let plans = failing(&place, moment, number);
                let name = format!("{moment:?}-{number}");
                let mut expected = 0;
                for step in 0..6 {
                    let answer = if step == 0 || expected == 0 {
                        let new = waypost_store::NewPlan {
                            id: Some(plan(&name)),
                            by: ada(),
                            draft: waypost_testkit::chain(2),
                            approval_required: None,
                        };
                        plans.create(new)
                    } else {
                        plans
                            .write(request(&name, vec![add(&format!("s{step}")), retitle(&step.to_string())]))
                    };
                    assert_eq!(
                        is_the_fault(&answer),
                        step + 1 == number,
                        "{}: {name} {step}",
                        place.location
                    );
                    if answer.is_ok() {
                        expected += 1;
                    }
                    if expected > 0 {
                        let seen = now(&plans, &name);
                        assert_eq!(seen.version(), expected, "{}: {name} after step {step}", place.location);
                        assert_eq!(seen.to_draft(), replayed(&place.plans(), &name).to_draft());
                    }
                }
                assert_eq!(expected, 5);
            }
        }
        assert_eq!(place.plans().doctor(false).unwrap(), [], "{}", place.location);
    }
}

#[test]
fn a_commit_whose_answer_was_lost_is_seen_by_the_next_look() {
    for place in places() {
        let plans = failing(&place, Moment::Answer, 2);
        create_small(&plans, "p");
        assert!(is_the_fault(&write(&plans, "p", add("a"))));
        assert_eq!(task_names(&now(&plans, "p")), ["first", "a"], "{}", place.location);
        assert_eq!(write(&plans, "p", add("b")).unwrap().version, 3);
    }
}

#[test]
fn a_look_that_fails_does_not_spoil_the_next() {
    for place in places() {
        create_small(&place.plans(), "p");
        for number in 1..=2 {
            let plans = failing(&place, Moment::Read, number);
            let looks: Vec<bool> =
                (0..3).map(|_| plans.with_plan(&plan("p"), Plan::version).is_ok()).collect();
            assert!(!looks[0], "a first look reads twice, and one of them fails");
            assert_eq!(looks[1..], [true, true]);
        }
    }
}

#[test]
fn one_that_fails_in_a_group_does_not_take_the_others_along() {
    for place in places() {
        let bad = Arc::new(AtomicBool::new(false));
        let count = AtomicUsize::new(0);
        let failed = Arc::clone(&bad);
        let store = Wrapped::with_faults(place.store(), move |moment| {
            // Every tenth append fails, whoever it belongs to.
            if moment == Moment::Append && count.fetch_add(1, Ordering::Relaxed) % 10 == 9 {
                failed.store(true, Ordering::Relaxed);
                return Err(StoreError::Database("fault".to_owned()));
            }
            Ok(())
        });
        let plans = PlanStore::new(store);
        create_small(&plans, "p");
        let acknowledged: Vec<String> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..6)
                .map(|writer| {
                    let plans = &plans;
                    scope.spawn(move || {
                        let names = (0..20).map(|number| format!("w{writer}-{number}"));
                        names.filter(|name| write(plans, "p", add(name)).is_ok()).collect::<Vec<_>>()
                    })
                })
                .collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        assert!(bad.load(Ordering::Relaxed), "some append did fail");
        let mut there = task_names(&now(&place.plans(), "p"));
        there.retain(|name| name != "first");
        let (mut there, mut acknowledged) = (there, acknowledged);
        there.sort();
        acknowledged.sort();
        assert_eq!(there, acknowledged, "{}: exactly what was acknowledged is there", place.location);
        assert_eq!(now(&plans, "p").to_draft(), replayed(&plans, "p").to_draft());
    }
}

#[test]
fn a_write_that_panics_fails_alone() {
    const WRITERS: usize = 8;
    for place in places() {
        let plans = place.plans();
        create_small(&plans, "p");
        let queued = AtomicUsize::new(0);
        let answers: Vec<bool> = std::thread::scope(|scope| {
            // The first holds the lead until the others are about to queue, so that these share a group.
            let (plans, queued) = (&plans, Arc::new(queued));
            let others = Arc::clone(&queued);
            let first: waypost_store::BuildCommands = Arc::new(move |_| {
                while others.load(Ordering::Relaxed) < WRITERS {
                    std::thread::yield_now();
                }
                Some(vec![add("lead")])
            });
            let lead = scope.spawn(move || plans.write_built(request("p", Vec::new()), first, None));
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let queued = Arc::clone(&queued);
                    scope.spawn(move || {
                        let build: waypost_store::BuildCommands = Arc::new(move |_| {
                            assert!(writer != 3, "this writer breaks down");
                            Some(vec![add(&format!("w{writer}"))])
                        });
                        queued.fetch_add(1, Ordering::Relaxed);
                        plans.write_built(request("p", Vec::new()), build, None).is_ok()
                    })
                })
                .collect();
            assert!(lead.join().unwrap().is_ok());
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let expected: Vec<bool> = (0..WRITERS).map(|writer| writer != 3).collect();
        assert_eq!(answers, expected, "{}", place.location);
        assert_eq!(now(&place.plans(), "p").len(), 1 + WRITERS, "{}", place.location);
    }
}
