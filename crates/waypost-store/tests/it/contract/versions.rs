//! Plans and their versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use waypost_core::{Difference, Event, Refusal, Timestamp};
use waypost_store::{NewPlan, PlanStore, Record, WriteError, WriteRequest};
use waypost_testkit::{chain, plan_of, task};

use crate::kit::*;
use crate::place::Place;
use crate::wrapped::Wrapped;

pub(super) fn a_plan_that_was_made_can_be_read_back(place: &Place) {
    let plans = place.plans();
    let mut draft = chain(3);
    draft.spec.body = "# Why\n\n\"quotes\", ünïcödé and \u{1F600}".to_owned();
    let made = create(&plans, "rocket", draft);
    assert_eq!((made.plan.as_str(), made.version, made.changed), ("rocket", 1, true));
    let plan = now(&plans, "rocket");
    assert_eq!(plan.spec().body, "# Why\n\n\"quotes\", ünïcödé and \u{1F600}");
    assert_eq!(task_names(&plan), ["t0", "t1", "t2"]);
    assert_eq!(plan.state().created_by, Some(ada()));
    assert_eq!(now(&place.plans(), "rocket").to_draft(), plan.to_draft(), "another process reads the same");
}

pub(super) fn every_write_makes_one_version_and_what_changes_nothing_makes_none(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    for version in 2..=6 {
        let committed = write(&plans, "p", add(&format!("task-{version}"))).unwrap();
        assert_eq!((committed.version, committed.changed), (version, true));
    }
    let batch = plans.write(request("p", vec![retitle("new"), start("first"), finish("first")])).unwrap();
    assert_eq!(batch.version, 7, "several commands of one request are one version");
    let again = write(&plans, "p", retitle("new")).unwrap();
    assert_eq!((again.version, again.changed), (7, false), "it is as asked already");
    assert_eq!(now(&plans, "p").version(), 7);
    assert_eq!(plans.history(&plan("p"), 0, 100).unwrap().len(), 7);
}

pub(super) fn every_version_keeps_who_when_what_and_what_came_of_it(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let by_bot = WriteRequest { by: bot(), ..request("p", vec![add("a"), add("b"), retitle("two")]) };
    plans.write(by_bot).unwrap();
    write(&plans, "p", start("first")).unwrap();
    let history = plans.history(&plan("p"), 0, 100).unwrap();
    let told: Vec<_> = history.iter().map(|e| (e.version, e.actor.to_string(), e.command.as_str())).collect();
    assert_eq!(
        told,
        [
            (1, "person:ada".to_owned(), "create"),
            (2, "agent:bot".to_owned(), "add_tasks+revise_plan"),
            (3, "person:ada".to_owned(), "start_task"),
        ]
    );
    assert!(matches!(history[0].events.as_slice(), [Event::PlanCreated { .. }]));
    assert!(matches!(
        history[1].events.as_slice(),
        [Event::TasksAdded { .. }, Event::TasksAdded { .. }, Event::PlanRevised { .. }]
    ));
    assert!(history.iter().all(|entry| entry.plan == plan("p")));
    assert!(history.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].sequence < pair[1].sequence));
    assert_eq!(plans.history(&plan("p"), 1, 1).unwrap(), history[1..2], "a page of the history");
    assert_eq!(plans.history(&plan("p"), 3, 10).unwrap(), []);
    assert_eq!(
        replayed(&plans, "p").to_draft(),
        now(&plans, "p").to_draft(),
        "the events tell the whole plan"
    );
}

pub(super) fn a_writer_who_knows_an_old_version_is_told_what_changed_and_writes_nothing(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    plans.write(WriteRequest { by: bot(), ..request("p", vec![add("new")]) }).unwrap();
    write(&plans, "p", retitle("better")).unwrap();
    let stale = WriteRequest { known_version: Some(1), ..request("p", vec![retitle("mine")]) };
    let conflict = match plans.write(stale) {
        Err(WriteError::Conflict(conflict)) => conflict,
        other => panic!("expected a conflict, got {other:?}"),
    };
    assert_eq!((conflict.known, conflict.current, conflict.differences_total), (1, 3, 2));
    let title = Difference::Plan { field: "title", before: "a plan".into(), after: "better".into() };
    let added = Difference::Added { task: task_id("new"), description: "do new".into() };
    assert_eq!(conflict.differences, [title, added]);
    assert_eq!(conflict.writers, [bot(), ada()]);
    assert_eq!(now(&plans, "p").spec().title, "better", "nothing was written");
    assert_eq!(plans.history(&plan("p"), 0, 100).unwrap().len(), 3);

    let current = WriteRequest { known_version: Some(3), ..request("p", vec![retitle("mine")]) };
    assert_eq!(plans.write(current).unwrap().version, 4, "the current version may be written");
    let future = WriteRequest { known_version: Some(9), ..request("p", vec![retitle("odd")]) };
    assert!(matches!(plans.write(future), Err(WriteError::Conflict(conflict)) if conflict.known == 9));
}

pub(super) fn small_commands_need_no_version(place: &Place) {
    let (one, other) = (place.plans(), place.plans());
    create_small(&one, "p");
    write(&other, "p", add("a")).unwrap();
    write(&one, "p", add("b")).unwrap();
    write(&other, "p", start("first")).unwrap();
    write(&one, "p", finish("first")).unwrap();
    assert_eq!(task_names(&now(&other, "p")), ["first", "a", "b"]);
    assert_eq!(now(&other, "p").counts().done, 1);
}

pub(super) fn a_batch_with_a_refused_command_leaves_nothing(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let before = now(&plans, "p").to_draft();
    let answer = plans.write(request("p", vec![add("a"), retitle("new"), add("first")]));
    assert!(matches!(refusal(answer), Refusal::Invalid { .. }));
    assert_eq!(now(&plans, "p").to_draft(), before);
    assert_eq!(now(&place.plans(), "p").to_draft(), before);
    assert_eq!(
        write(&plans, "p", add("a")).unwrap().version,
        2,
        "the name was not taken by what never happened"
    );
}

/// Writes enough for several snapshots.
fn write_much(plans: &PlanStore, name: &str) -> Vec<waypost_core::Draft> {
    create(plans, name, plan_of([task("first", &[])]));
    let mut drafts = vec![now(plans, name).to_draft()];
    for round in 0..24 {
        let body = format!("{round} ").repeat(6_000);
        let mut commands = vec![add(&format!("task-{round}"))];
        commands.push(revise(waypost_core::PlanChanges { body: Some(body), ..Default::default() }));
        if round % 3 == 0 {
            commands.extend([start(&format!("task-{round}")), finish(&format!("task-{round}"))]);
        }
        plans.write(request(name, commands)).unwrap();
        drafts.push(now(plans, name).to_draft());
    }
    drafts
}

pub(super) fn a_plan_can_be_read_as_it_was_at_every_version(place: &Place) {
    let plans = place.plans();
    let drafts = write_much(&plans, "p");
    let fresh = place.plans();
    for (draft, version) in drafts.iter().zip(1..) {
        let then = fresh.at_version(&plan("p"), version).unwrap();
        assert_eq!(&then.to_draft(), draft, "version {version}");
    }
    assert_eq!(now(&fresh, "p").to_draft(), *drafts.last().unwrap());
    for wanted in [0, 26] {
        let answer = fresh.at_version(&plan("p"), wanted);
        assert!(
            matches!(answer, Err(WriteError::NoSuchVersion { current: 25, .. })),
            "there is no version {wanted}"
        );
    }
    assert!(matches!(fresh.at_version(&plan("q"), 1), Err(WriteError::NotFound(_))));
}

pub(super) fn snapshots_can_be_lost_without_losing_anything(place: &Place) {
    let plans = place.plans();
    let drafts = write_much(&plans, "p");
    let store = place.store();
    // Every snapshot there is becomes garbage, and the newest versions get one that never was.
    let mut garbled = 0;
    store
        .write(&mut |transaction| {
            for version in 1..=25 {
                let there = transaction.snapshot(&plan("p"), version)?;
                if version > 20 || there.is_some_and(|(at, _)| at == version) {
                    transaction.put(Record::Snapshot(&plan("p"), version, b"not a snapshot"))?;
                    garbled += 1;
                }
            }
            Ok(())
        })
        .unwrap();
    assert!(garbled >= 5);
    let fresh = place.plans();
    for (draft, version) in drafts.iter().zip(1..) {
        assert_eq!(&fresh.at_version(&plan("p"), version).unwrap().to_draft(), draft, "version {version}");
    }
    assert_eq!(write(&fresh, "p", add("after")).unwrap().version, 26);
}

pub(super) fn time_never_goes_backwards_within_a_plan(place: &Place) {
    let seconds = [1_000, 2_000, 500, 1_999, 3_000];
    let calls = Arc::new(AtomicUsize::new(0));
    let clock = move || {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_micros(seconds[call.min(4)] * 1_000_000)
    };
    let plans = PlanStore::new(Wrapped::with_clock(place.store(), clock));
    create_small(&plans, "p");
    for name in ["a", "b", "c", "d"] {
        write(&plans, "p", add(name)).unwrap();
    }
    let history = plans.history(&plan("p"), 0, 10).unwrap();
    let times: Vec<i64> = history.iter().map(|entry| entry.at.as_micros() / 1_000_000).collect();
    assert_eq!(times, [1_000, 2_000, 2_000, 2_000, 3_000]);
}

pub(super) fn a_store_can_be_closed_and_opened_again(place: &Place) {
    {
        let plans = place.plans();
        create_small(&plans, "p");
        let request = WriteRequest { lease_seconds: Some(60), ..request("p", vec![start("first")]) };
        plans.write(request).unwrap();
    }
    let plans = place.plans();
    assert_eq!(plans.store().location(), place.location);
    assert_eq!(now(&plans, "p").version(), 2);
    assert_eq!(index(plans.store(), "p").leases.len(), 1);
    let finished = write(&plans, "p", finish("first")).unwrap();
    assert_eq!(number(&plans, &finished), 3, "the log goes on where it was");
    assert_eq!(plans.store().check().unwrap(), Vec::<String>::new());
    assert_eq!(plans.doctor(false).unwrap(), []);
    let missing = plans.write(request("q", vec![add("a")]));
    assert!(matches!(missing, Err(WriteError::NotFound(name)) if name == "q"));
    let new = NewPlan { id: Some(plan("p")), by: ada(), draft: chain(1), approval_required: None };
    assert_eq!(refusal(plans.create(new)), Refusal::AlreadyExists {});
}
