//! Many at once: threads, processes, transactions that fail.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use waypost_store::{LeaseFilter, PlanState, StoreError, WriteError, WriteRequest};
use waypost_testkit::task;

use crate::kit::*;
use crate::place::Place;

pub(super) fn writers_in_many_threads_lose_nothing(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let versions: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let plans = &plans;
                scope.spawn(move || {
                    let add_one = |number: usize| {
                        write(plans, "p", add(&format!("w{writer}-{number}"))).unwrap().version
                    };
                    (0..100).map(add_one).collect::<Vec<u64>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let unique: BTreeSet<u64> = versions.iter().copied().collect();
    assert_eq!(unique, (2..=801).collect(), "each got a version of its own, without gaps");
    let fresh = place.plans();
    let names: BTreeSet<String> = task_names(&now(&fresh, "p")).into_iter().collect();
    let expected = (0..8).flat_map(|writer| (0..100).map(move |number| format!("w{writer}-{number}")));
    assert_eq!(names, expected.chain(["first".to_owned()]).collect());
    let numbers: Vec<u64> = log(&fresh).iter().map(|entry| entry.sequence).collect();
    assert_eq!(numbers, (1..=801).collect::<Vec<u64>>());
}

pub(super) fn a_refused_command_leaves_the_others_of_its_group_alone(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let plans = &plans;
            scope.spawn(move || {
                for number in 0..15 {
                    let name = format!("w{writer}-{number}");
                    if writer % 2 == 0 {
                        write(plans, "p", add(&name)).unwrap();
                    } else {
                        // The first command is fine and the second is not: nothing of either may stay.
                        refusal(plans.write(request("p", vec![add(&name), add("first")])));
                    }
                }
            });
        }
    });
    for plans in [&plans, &place.plans()] {
        let current = now(plans, "p");
        assert_eq!(current.version(), 46);
        assert_eq!(current.len(), 46);
        assert_eq!(current.to_draft(), replayed(plans, "p").to_draft());
    }
}

pub(super) fn readers_see_whole_versions_only(place: &Place) {
    let (plans, apart) = (place.plans(), place.plans());
    create_small(&plans, "p");
    write(&plans, "p", retitle("2")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A reader in the same process, and one with nothing in common but the place.
        let readers = [&plans, &apart].map(|reader| {
            let done = &done;
            scope.spawn(move || {
                let mut seen = 0;
                while !done.load(Ordering::Relaxed) || seen == 0 {
                    let (version, title, tasks) = reader
                        .with_plan(&plan("p"), |plan| {
                            (plan.version(), plan.spec().title.clone(), plan.len() as u64)
                        })
                        .unwrap();
                    assert_eq!((title, tasks), (version.to_string(), 1 + 2 * (version - 2)));
                    assert!(version >= seen, "a reader never goes back");
                    seen = version;
                    let head = reader.heads(&everything()).unwrap().items.remove(0);
                    assert_eq!(head.title, head.version.to_string());
                    assert_eq!(u64::from(head.counts.total), 1 + 2 * (head.version - 2));
                }
            })
        });
        for version in 3..=52 {
            let pair = add_all([task(&format!("a{version}"), &[]), task(&format!("b{version}"), &[])]);
            plans.write(request("p", vec![pair, retitle(&version.to_string())])).unwrap();
            // A reader that has failed would leave nobody to see the rest.
            if readers.iter().any(|reader| reader.is_finished()) {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(now(&apart, "p").version(), 52);
}

pub(super) fn two_processes_see_each_others_writes(place: &Place) {
    let (one, other) = (place.plans(), place.plans());
    create_small(&one, "p");
    assert_eq!(now(&other, "p").version(), 1);
    for round in 0..5 {
        write(&one, "p", add(&format!("one-{round}"))).unwrap();
        assert_eq!(write(&other, "p", add(&format!("other-{round}"))).unwrap().version, 3 + 2 * round);
        assert_eq!(now(&one, "p").to_draft(), now(&other, "p").to_draft());
    }
    assert!(write(&one, "p", add("other-4")).is_err(), "what the other wrote counts");
    create_small(&other, "q");
    assert_eq!(one.resolve("q").unwrap(), plan("q"));
    other.purge(&plan("p"), &ada()).unwrap();
    assert!(matches!(one.with_plan(&plan("p"), |_| ()), Err(WriteError::NotFound(_))));
}

pub(super) fn a_transaction_that_fails_leaves_nothing(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    plans
        .write(waypost_store::WriteRequest { lease_seconds: Some(60), ..request("p", vec![start("first")]) })
        .unwrap();
    let (before, before_head) = (index(plans.store(), "p"), head(plans.store(), "p"));
    let until = before.leases[0].until.unwrap().plus_seconds(60);
    let outcome = plans.store().write(&mut |transaction| {
        assert!(transaction.renew_lease(&plan("p"), "first", 1, until)?);
        assert_eq!(
            transaction.leases(&LeaseFilter::Plan(&plan("p")), 10)?[0].until,
            Some(until),
            "a transaction reads its own writes"
        );
        transaction.purge(&plan("p"))?;
        assert_eq!(transaction.head(&plan("p"))?, None);
        assert_eq!(transaction.plan_state(&plan("p"))?, PlanState::Purged);
        Err(StoreError::Database("on purpose".to_owned()))
    });
    assert!(matches!(outcome, Err(StoreError::Database(text)) if text == "on purpose"));
    for store in [plans.store(), &place.store()] {
        assert_eq!(index(store, "p"), before);
        assert_eq!(head(store, "p"), before_head);
    }
    assert_eq!(write(&plans, "p", finish("first")).unwrap().version, 3);
}

pub(super) fn callers_that_are_served_together_get_each_their_own_answer(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    create_small(&plans, "q");
    let stale = WriteRequest { known_version: Some(7), ..request("p", vec![add("stale")]) };
    let requests = vec![
        request("p", vec![add("a")]),
        request("nobody", vec![add("x")]),
        request("q", vec![add("b")]),
        stale,
        request("p", vec![add("a")]),
        request("p", vec![add("c")]),
    ];
    let answers = plans.write_each(requests);
    let shown: Vec<String> = answers
        .iter()
        .map(|answer| match answer {
            Ok(committed) => format!("{} {}", committed.plan, committed.version),
            Err(WriteError::NotFound(id)) => format!("no {id}"),
            Err(WriteError::Conflict(conflict)) => format!("conflict at {}", conflict.current),
            Err(WriteError::Refused(refusal)) => format!("refused: {refusal}"),
            Err(other) => panic!("{other}"),
        })
        .collect();
    let twice = "refused: the plan would not be valid: task a: another task has the same id";
    assert_eq!(shown, ["p 2", "no nobody", "q 2", "conflict at 2", twice, "p 3"]);
    let sequences: Vec<u64> = answers.iter().flatten().map(|committed| number(&plans, committed)).collect();
    assert_eq!(sequences, [3, 4, 5], "the log has no gaps");
    assert!(plans.write_each(Vec::new()).is_empty());
}

pub(super) fn what_only_one_may_have_is_had_by_one_until_it_gives_it_back(place: &Place) {
    let (one, other) = (place.store(), place.store());
    let held = one.try_lock("relay-x").unwrap().unwrap();
    assert!(held.holds());
    assert!(other.try_lock("relay-x").unwrap().is_none() && one.try_lock("relay-x").unwrap().is_none());
    let another = other.try_lock("relay-y").unwrap().unwrap();
    assert!(another.holds(), "it goes by the name");
    drop(held);
    let held = other.try_lock("relay-x").unwrap().unwrap();
    assert!(held.holds() && one.try_lock("relay-x").unwrap().is_none());
    let have: usize = std::thread::scope(|scope| {
        drop(another);
        let ask = || usize::from(place.store().try_lock("relay-y").unwrap().map(std::mem::forget).is_some());
        let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(have, 1, "of all who ask at once");
}
