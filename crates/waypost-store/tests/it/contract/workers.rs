//! Who works on the store, which slots they have, and the logs that they leave.

use std::time::{Duration, Instant};

use waypost_core::{Actor, Command, Outcome, Refusal, Timestamp};
use waypost_store::{
    AttemptLog, LeaseUpdate, PlanStore, ProgressFeed, Read, Record, Slots, StoreError, TaskProgress,
    Transaction, WORKER_KEPT_SECONDS, Worker, WorkerFilter, WorkerKind, WorkerState, WriteRequest,
};
use waypost_testkit::{id, plan_of, task};

use crate::kit::*;
use crate::place::Place;

fn worker_at(name: &str, seen: Timestamp) -> Worker {
    Worker {
        executors: vec!["run".to_owned()],
        capacity: Some(4),
        version: "0.1.0".to_owned(),
        began: seen,
        seen,
        until: seen.plus_seconds(60),
        ..Worker::new(name, "mill", WorkerKind::Worker, vec!["default".to_owned()])
    }
}

fn change(plans: &PlanStore, mut work: impl FnMut(&mut dyn Transaction) -> Result<(), StoreError>) {
    plans.store().write(&mut |transaction| work(transaction)).unwrap();
}

fn put(transaction: &mut dyn Transaction, worker: &Worker) -> Result<(), StoreError> {
    transaction.put(Record::Worker(&worker.name, Some(worker)))
}

fn seen<R: Default>(plans: &PlanStore, mut look: impl FnMut(&mut dyn Read) -> Result<R, StoreError>) -> R {
    let mut found = R::default();
    plans
        .store()
        .read(&mut |read| {
            found = look(read)?;
            Ok(())
        })
        .unwrap();
    found
}

fn names(plans: &PlanStore) -> Vec<String> {
    let (page, _) = plans.workers(None, 10).unwrap();
    page.items.into_iter().map(|worker| worker.name).collect()
}

pub(super) fn a_worker_is_found_again_until_it_is_dropped_or_forgotten(place: &Place) {
    let plans = place.plans();
    let now = Timestamp::from_micros(1_000_000);
    let mut first = worker_at("mill:1", now);
    change(&plans, |transaction| {
        put(transaction, &first)?;
        put(transaction, &worker_at("mill:2", now.plus_seconds(WORKER_KEPT_SECONDS)))
    });
    assert_eq!(
        seen(&place.plans(), |read| Ok(read.workers(WorkerFilter::Name("mill:1"), 1)?.items.pop())),
        Some(first.clone())
    );
    assert_eq!(seen(&plans, |read| Ok(read.workers(WorkerFilter::Name("mill"), 1)?.items.pop())), None);
    (first.kind, first.capacity, first.waits_for) = (WorkerKind::Run, None, vec!["nightly".to_owned()]);
    first.plans = vec![plan("p")];
    change(&plans, |transaction| put(transaction, &first));
    assert_eq!(
        seen(&place.plans(), |read| Ok(read.workers(WorkerFilter::Name("mill:1"), 1)?.items.pop())),
        Some(first.clone())
    );
    let mut gone = 0;
    change(&plans, |transaction| {
        gone = transaction.forget_workers(first.until)?;
        Ok(())
    });
    assert_eq!((gone, names(&plans).len()), (0, 2), "its time is not over before its end");
    change(&plans, |transaction| {
        gone = transaction.forget_workers(first.until.plus_seconds(1))?;
        Ok(())
    });
    assert_eq!((gone, names(&place.plans())), (1, vec!["mill:2".to_owned()]));
    change(&plans, |transaction| {
        transaction.put(Record::Worker("mill:2", None))?;
        transaction.put(Record::Worker("nobody", None))
    });
    assert_eq!(names(&place.plans()), [""; 0]);
}

pub(super) fn workers_come_by_name_and_page_by_page(place: &Place) {
    let plans = place.plans();
    let now = Timestamp::from_micros(1);
    change(&plans, |transaction| {
        (0..5).rev().try_for_each(|number| put(transaction, &worker_at(&format!("w{number}"), now)))
    });
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let (page, _) = plans.workers(after.as_deref(), 2).unwrap();
        assert_eq!(page.total, 5);
        seen.extend(page.items.into_iter().map(|worker| worker.name));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["w0", "w1", "w2", "w3", "w4"]);
    assert_eq!(plans.workers(None, 5).unwrap().0.next, None, "nothing follows a page that is just full");
}

pub(super) fn a_worker_is_alive_silent_and_dead_by_the_stores_clock(place: &Place) {
    let plans = place.plans();
    let now = seen(&plans, |read| Ok(Some(read.now()))).unwrap();
    let worker = worker_at("w", now);
    change(&plans, |transaction| put(transaction, &worker));
    let (page, read_at) = plans.workers(None, 1).unwrap();
    assert_eq!(page.items[0].state(read_at), WorkerState::Alive);
    let after = |seconds: u64| page.items[0].state(now.plus_seconds(seconds));
    assert_eq!(
        [after(40), after(41), after(60)],
        [WorkerState::Alive, WorkerState::Silent, WorkerState::Silent]
    );
    assert_eq!(after(61), WorkerState::Dead);
    let draining = Worker { draining: true, ..worker };
    assert_eq!(draining.state(now), WorkerState::Draining);
    assert_eq!(draining.state(now.plus_seconds(61)), WorkerState::Dead);
}

pub(super) fn whoever_is_asked_to_drain_finds_that_in_its_own_row(place: &Place) {
    let plans = place.plans();
    change(&plans, |transaction| put(transaction, &worker_at("w", Timestamp::from_micros(1))));
    assert!(!place.plans().drain("nobody").unwrap());
    assert!(place.plans().drain("w").unwrap());
    let found = seen(&plans, |read| Ok(read.workers(WorkerFilter::Name("w"), 1)?.items.pop())).unwrap();
    assert_eq!(found, Worker { draining: true, ..worker_at("w", Timestamp::from_micros(1)) });
}

fn begin(name: &str, worker: &str) -> Command {
    Command::StartTask { task: id(name), worker: worker.to_owned() }
}

fn end(name: &str) -> Command {
    let outcome = Outcome::Done { result: None, output: None, evidence: None };
    Command::FinishTask { task: id(name), attempt: None, outcome, retry: None }
}

fn by(worker: &str, name: &str, commands: Vec<Command>) -> WriteRequest {
    let (by, lease_seconds) = (Actor::worker(worker), Some(60));
    WriteRequest { by, lease_seconds, ..request(name, commands) }
}

fn slots(own: u32, concurrency: u32) -> Slots {
    Slots { queue: "q".to_owned(), own, concurrency: Some(concurrency) }
}

fn taken(plans: &PlanStore) -> Vec<(String, u32)> {
    seen(plans, |read| read.slots("q"))
}

fn wide(plans: &PlanStore, name: &str) {
    create(plans, name, plan_of((0..6).map(|number| task(&format!("t{number}"), &[]))));
}

pub(super) fn leases_tell_who_works_on_what_since_when_and_in_which_slot(place: &Place) {
    let plans = place.plans();
    wide(&plans, "p");
    let unbounded = Slots { queue: "q".to_owned(), own: 0, concurrency: None };
    let started = vec![begin("t0", "w1"), begin("t1", "w1")];
    plans.write_with_slots(by("w1", "p", started), unbounded).unwrap();
    plans.write(by("bot", "p", vec![begin("t2", "agent:bot")])).unwrap();
    let at = plans.history(&plan("p"), 1, 1).unwrap()[0].at;
    for plans in [&plans, &place.plans()] {
        let leases = plans.leases_of("w1", 10).unwrap();
        let told = |lease: &waypost_store::Lease| (lease.task.to_string(), lease.attempt, lease.since);
        let expected = [("t0".to_owned(), 1, Some(at)), ("t1".to_owned(), 1, Some(at))];
        assert_eq!(leases.iter().map(told).collect::<Vec<_>>(), expected);
        assert!(leases.iter().all(|lease| lease.queue.as_deref() == Some("q")));
        assert_eq!(plans.leases_of("w1", 1).unwrap().len(), 1);
        assert_eq!(plans.leases_of("agent:bot", 10).unwrap()[0].queue, None);
        assert_eq!(taken(plans), [("w1".to_owned(), 2)]);
        assert_eq!(seen(plans, |read| read.slots("another")), []);
    }
    change(&plans, |transaction| {
        let until = transaction.now().plus_seconds(600);
        let held = [(id("t0"), 1), (id("t1"), 2)];
        let held = held.map(|(task, attempt)| LeaseUpdate {
            seconds: Some(1_234),
            ..LeaseUpdate::renewal(plan("p"), task, attempt, until)
        });
        assert_eq!(transaction.update_leases(&held)?, [true, false], "there is no second attempt");
        Ok(())
    });
    let mut leases = plans.leases_of("w1", 10).unwrap();
    leases.retain(|lease| lease.seconds == Some(1_234));
    assert_eq!(leases.len(), 1, "its duration is the new one");
    assert_eq!(leases[0].task, id("t0"));
    assert_eq!(taken(&place.plans()), [("w1".to_owned(), 2)], "a renewed lease keeps its slot");
    plans.write_with_slots(by("w1", "p", vec![end("t0")]), slots(1, 2)).unwrap();
    assert_eq!(taken(&place.plans()), [("w1".to_owned(), 1)]);
    change(&plans, |transaction| {
        transaction.renew_lease(&plan("p"), "t1", 1, Timestamp::from_micros(1)).map(drop)
    });
    assert_eq!(taken(&place.plans()), [], "whoever is taken for dead has no slot");
    assert_eq!(plans.doctor(false).unwrap(), []);
}

pub(super) fn progress_is_kept_with_the_lease_wakes_watchers_and_makes_no_version(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    wide(&plans, "p");
    plans.write(by("w1", "p", vec![begin("t0", "w1")])).unwrap();
    // A claim without an end keeps its progress too.
    let request = WriteRequest { lease_seconds: None, ..by("bot", "p", vec![begin("t1", "agent:bot")]) };
    plans.write(request).unwrap();
    let (version, latest) = (now(&plans, "p").version(), plans.latest().unwrap());
    let report = |name: &str, attempt: u32, text: &str| {
        let mut stored = Vec::new();
        other
            .store()
            .write(&mut |transaction| {
                let progress = Some(TaskProgress { text: text.to_owned(), at: transaction.now() });
                let (plan, task) = (plan("p"), id(name));
                let update = LeaseUpdate { plan, task, attempt, until: None, seconds: None, progress };
                stored = transaction.update_leases(&[update])?;
                Ok(())
            })
            .unwrap();
        stored == [true]
    };
    let mut watch = plans.watch().unwrap();
    assert!(report("t0", 1, "one") && report("t0", 1, "two") && report("t1", 1, "begun"));
    assert!(watch.wait(Duration::from_secs(30)).unwrap(), "progress is heard of");
    assert!(!report("t0", 2, "of no attempt") && !report("t5", 1, "of nobody"));
    for plans in [&plans, &place.plans()] {
        let progress = plans.progress(&plan("p")).unwrap();
        let text = |name: &str| progress.latest(&id(name), 1).map(|progress| progress.text.clone());
        assert_eq!((text("t0"), text("t1")), (Some("two".to_owned()), Some("begun".to_owned())));
        assert_eq!(progress.latest(&id("t0"), 2), None);
        assert_eq!((now(plans, "p").version(), plans.latest().unwrap()), (version, latest));
    }
    let (mut feed, begin) = (ProgressFeed::default(), Instant::now());
    let after = |milliseconds: u64| begin + Duration::from_millis(milliseconds);
    let all = feed.poll(&plans, begin).unwrap();
    let until = |name: &str| all.iter().find(|lease| lease.task == id(name)).unwrap().until;
    assert!(all.len() == 2 && until("t0").is_some() && until("t1").is_none(), "{all:?}");
    assert_eq!(feed.poll(&plans, after(1_000)).unwrap(), []);
    assert_eq!(feed.wait(after(1_000)), None);
    let mut deliver = |at: u64| -> Vec<String> {
        let fresh = feed.poll(&plans, after(at)).unwrap();
        fresh.into_iter().map(|lease| format!("{} {}", lease.task, lease.progress.unwrap().text)).collect()
    };
    let mut delivered = Vec::new();
    for at in (1_000..2_000).step_by(10) {
        assert!(report("t1", 1, &format!("at {at}")));
        delivered.extend(deliver(at));
    }
    let expected = ["t1 at 1000", "t1 at 1250", "t1 at 1500", "t1 at 1750"];
    assert_eq!(delivered, expected, "at most four a second");
    assert!(report("t0", 1, "another task"));
    assert_eq!(deliver(1_995), ["t0 another task"], "another task does not wait");
    assert_eq!(deliver(1_999), [""; 0]);
    assert_eq!(deliver(2_000), ["t1 at 1990"], "the latest report arrives");
    assert_eq!(feed.wait(after(2_000)), None);
    assert!(report("t1", 1, "last"));
    assert_eq!(feed.poll(&plans, after(2_050)).unwrap(), []);
    assert_eq!(feed.wait(after(2_050)), Some(Duration::from_millis(200)), "it is due without another write");
    plans.write(by("w1", "p", vec![end("t0")])).unwrap();
    assert_eq!(plans.progress(&plan("p")).unwrap().latest(&id("t0"), 1), None);
}

pub(super) fn a_queue_has_so_many_slots_for_all_workers_together(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    wide(&plans, "p");
    wide(&plans, "r");
    plans.write_with_slots(by("w1", "p", vec![begin("t0", "w1"), begin("t1", "w1")]), slots(0, 3)).unwrap();
    let all = vec![begin("t0", "w2"), begin("t1", "w2")];
    let full = Refusal::QueueFull { task: "t1".into(), queue: "q".into(), concurrency: 3 };
    assert_eq!(refusal(other.write_with_slots(by("w2", "r", all.clone()), slots(0, 3))), full);
    assert_eq!(now(&other, "r").counts().running, 0, "all or none");
    let written = other.write_partial(by("w2", "r", all), Some(slots(0, 3))).unwrap();
    assert_eq!(written.rejected, [(1, full)]);
    assert_eq!(now(&plans, "r").counts().running, 1);
    assert_eq!(taken(&plans), [("w1".to_owned(), 2), ("w2".to_owned(), 1)]);
    // A worker may pass its own slot on within one version.
    plans.write_with_slots(by("w1", "p", vec![end("t0"), begin("t2", "w1")]), slots(1, 3)).unwrap();
    refusal(plans.write_with_slots(by("w1", "p", vec![begin("t3", "w1")]), slots(2, 3)));
    let another = Slots { queue: "another".to_owned(), ..slots(0, 1) };
    plans.write_with_slots(by("w1", "p", vec![begin("t3", "w1")]), another).unwrap();
    assert_eq!(taken(&plans), [("w1".to_owned(), 2), ("w2".to_owned(), 1)]);
}

pub(super) fn what_ends_within_its_version_and_what_agents_do_takes_no_slot(place: &Place) {
    let plans = place.plans();
    wide(&plans, "p");
    plans.write(by("bot", "p", vec![begin("t0", "agent:bot")])).unwrap();
    plans.write_with_slots(by("w1", "p", vec![begin("t1", "w1")]), slots(0, 1)).unwrap();
    let instant = vec![begin("t2", "w2"), end("t2"), begin("t3", "w2"), end("t3")];
    plans.write_with_slots(by("w2", "p", instant), slots(0, 1)).unwrap();
    let mixed = vec![begin("t4", "w2"), end("t4"), begin("t5", "w2")];
    let written = plans.write_partial(by("w2", "p", mixed), Some(slots(0, 1))).unwrap();
    assert_eq!(written.rejected.len(), 1);
    let counts = now(&plans, "p").counts();
    assert_eq!((counts.done, counts.running, counts.ready), (3, 2, 1));
}

pub(super) fn the_copy_of_a_log_is_found_again_where_copies_are_kept(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let mut log = AttemptLog {
        plan: plan("p"),
        task: id("first"),
        attempt: 1,
        worker: "w1".to_owned(),
        at: Timestamp::from_micros(7),
        ended: false,
        bytes: 70_000,
        text: "so far\n".to_owned(),
    };
    change(&plans, |transaction| transaction.put(Record::AttemptLog(&log)));
    (log.ended, log.text) = (true, "to the end\n".to_owned());
    change(&plans, |transaction| transaction.put(Record::AttemptLog(&log)));
    let found = |attempt: u32| place.plans().attempt_log(&plan("p"), &id("first"), attempt).unwrap();
    let is_kept = !place.location.starts_with("file:");
    assert_eq!(found(1), is_kept.then_some(log.clone()));
    assert_eq!(found(2), None);
    plans.purge(&plan("p"), &ada()).unwrap();
    change(&plans, |transaction| transaction.put(Record::AttemptLog(&log)));
    assert_eq!(found(1), None, "what was in it is gone with the plan");
}

pub(super) fn nobody_is_woken_by_workers_and_logs_and_no_version_comes_of_them(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    create_small(&plans, "p");
    let mut watch = plans.watch().unwrap();
    let (text, at) = ("words".to_owned(), Timestamp::from_micros(1));
    let (plan, task, worker) = (plan("p"), id("first"), "w".to_owned());
    let log = AttemptLog { plan, task, attempt: 1, worker, at, ended: true, bytes: 5, text };
    change(&other, |transaction| {
        put(transaction, &worker_at("w", at))?;
        transaction.put(Record::AttemptLog(&log))
    });
    change(&other, |transaction| transaction.forget_workers(at.plus_seconds(61)).map(drop));
    assert!(!watch.wait(Duration::from_millis(100)).unwrap());
    assert_eq!((plans.latest().unwrap(), now(&plans, "p").version()), (1, 1));
}
