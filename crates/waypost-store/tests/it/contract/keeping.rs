//! Events that are forgotten, and stores that are copied.

use waypost_core::{Command, Phase, PlanId, Timestamp};
use waypost_store::{
    AttemptLog, EventFilter, HeldBack, Looked, PlanStore, PruneMode, Record, Running, Since, Store,
    StoreError, WriteError, copy,
};
use waypost_testkit::{id, plan_of, task};

use crate::kit::*;
use crate::place::Place;

/// Makes a plan of two tasks and has both done.
fn create_done(plans: &PlanStore, name: &str) {
    create(plans, name, plan_of([task("first", &[]), task("second", &["first"])]));
    write(plans, name, Command::Activate).unwrap();
    for task in ["first", "second"] {
        write(plans, name, start(task)).unwrap();
        write(plans, name, finish(task)).unwrap();
    }
    assert_eq!(now(plans, name).state().phase, Phase::Completed);
}

/// Prunes what ended so many seconds ago; the names of what went, and what was held back.
fn prune(plans: &PlanStore, seconds: u64, mode: PruneMode) -> (Vec<String>, Vec<HeldBack>) {
    let (mut names, mut kept) = (Vec::new(), Vec::new());
    plans
        .prune(seconds, &ada(), mode, &mut |looked| match looked {
            Looked::Pruned(found) => names.push(found.plan.to_string()),
            Looked::Kept(_, why) => kept.push(why),
        })
        .unwrap();
    (names, kept)
}

/// Keeps the end of an attempt's log.
fn put_log(plans: &PlanStore, name: &str, attempt: u32) {
    let (worker, at) = ("w".to_owned(), Timestamp::from_micros(i64::from(attempt)));
    let text = format!("attempt {attempt} of {name}\n");
    let (plan, task, bytes) = (plan(name), id("first"), text.len() as u64);
    let log = AttemptLog { plan, task, attempt, worker, at, ended: true, bytes, text };
    let put = plans.store().write(&mut |transaction| transaction.put(Record::AttemptLog(&log)));
    put.unwrap();
}

/// The logs of a plan that are kept, as they are found page by page.
fn logs_of(store: &std::sync::Arc<dyn Store>, name: &str) -> Vec<AttemptLog> {
    let mut all: Vec<AttemptLog> = Vec::new();
    loop {
        let after = all.last().map(|log| (log.task.clone(), log.attempt));
        let after = after.as_ref().map(|(task, attempt)| (task, *attempt));
        let page = look(store, |read| read.attempt_logs(&plan(name), after, 7));
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

fn sound(plans: &PlanStore) {
    assert_eq!(plans.doctor(false).unwrap(), []);
}

pub(super) fn forgotten_events_leave_the_plan_and_the_numbers_of_the_log(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "other");
    create_done(&plans, "p");
    for name in ["p", "other"] {
        put_log(&plans, name, 1);
    }
    let kept = usize::from(!place.location.starts_with("file:"));
    let logs = |name: &str| logs_of(&place.store(), name).len();
    assert_eq!((logs("p"), logs("other")), (kept, kept));
    let (before, entries) = (now(&plans, "p"), log(&plans));
    let listed = head(&place.store(), "p");
    assert_eq!(prune(&plans, 0, PruneMode::DryRun).0, ["p"]);
    assert_eq!(log(&plans), entries, "a dry run changes nothing");
    assert_eq!(prune(&plans, 0, PruneMode::Act).0, ["p"]);
    assert_eq!(prune(&plans, 0, PruneMode::Act).0, Vec::<String>::new(), "there is nothing left to forget");
    assert_eq!((logs("p"), logs("other")), (0, kept), "logs go with the events of their plan");
    for plans in [&plans, &place.plans()] {
        assert_eq!(now(plans, "p").to_draft(), before.to_draft());
        assert_eq!(head(&place.store(), "p"), listed);
        for (was, is) in entries.iter().zip(log(plans)) {
            let forgotten = is.plan == plan("p");
            assert_eq!(is.is_forgotten(), forgotten);
            let was = if forgotten {
                waypost_store::VersionRecord { events: Vec::new(), ..was.clone() }
            } else {
                was.clone()
            };
            assert_eq!(is, was, "number, who, when and the command's name stay");
        }
        assert_eq!(log(plans).len(), entries.len());
        let last = before.version();
        assert_eq!(plans.at_version(&plan("p"), last).unwrap().to_draft(), before.to_draft());
        for version in 1..last {
            match plans.at_version(&plan("p"), version) {
                Err(WriteError::Store(StoreError::Pruned { up_to, .. })) => assert_eq!(up_to, last),
                other => panic!("version {version} was pruned: {other:?}"),
            }
        }
        assert_eq!(plans.pruned(&plan("p")).unwrap().unwrap().by, ada());
        sound(plans);
    }
    plans.purge(&plan("p"), &ada()).unwrap();
    assert_eq!(plans.pruned(&plan("p")).unwrap(), None);
    sound(&place.plans());
}

pub(super) fn a_process_that_knew_an_early_version_sees_the_plan_whose_events_were_pruned(place: &Place) {
    let (ours, theirs) = (place.plans(), place.plans());
    create_small(&theirs, "p");
    assert_eq!(now(&ours, "p").version(), 1);
    for command in [Command::Activate, start("first"), finish("first")] {
        write(&theirs, "p", command).unwrap();
    }
    assert_eq!(prune(&theirs, 0, PruneMode::Act).0, ["p"]);
    assert_eq!(now(&ours, "p").to_draft(), now(&theirs, "p").to_draft());
}

pub(super) fn a_plan_whose_events_were_forgotten_can_be_gone_on_with(place: &Place) {
    let plans = place.plans();
    create_done(&plans, "p");
    let last = now(&plans, "p").version();
    prune(&plans, 0, PruneMode::Act);
    let plans = place.plans();
    write(&plans, "p", Command::Archive).unwrap();
    write(&plans, "p", Command::Unarchive).unwrap();
    let stale =
        waypost_store::WriteRequest { known_version: Some(2), ..request("p", vec![Command::Archive]) };
    match plans.write(stale) {
        Err(WriteError::Conflict(conflict)) => assert_eq!(conflict.current, last + 2),
        other => panic!("a version that was pruned is an old one: {other:?}"),
    }
    let other = place.plans();
    assert!(other.at_version(&plan("p"), last + 1).unwrap().state().archived);
    assert!(!other.at_version(&plan("p"), last).unwrap().state().archived);
    sound(&other);
    let page = other.events(Default::default(), &EventFilter::default(), 100).unwrap();
    let told: Vec<u64> = page.events.iter().map(|event| event.version).collect();
    assert_eq!(told, [last + 1, last + 2], "readers hear of what is left");
    assert_eq!(page.forgotten, last, "and how much is not");
    assert_eq!(prune(&other, 0, PruneMode::Act).0, ["p"]);
    assert_eq!(other.pruned(&plan("p")).unwrap().unwrap().up_to, last + 2);
    sound(&place.plans());
}

pub(super) fn only_plans_that_ended_long_ago_are_pruned_and_only_by_a_person(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "open");
    create_done(&plans, "ended");
    assert_eq!(prune(&plans, 3_600, PruneMode::Act).0, Vec::<String>::new());
    match plans.prune(0, &bot(), PruneMode::Act, &mut |_| {}) {
        Err(WriteError::Refused(waypost_core::Refusal::OnlyAPerson { .. })) => {}
        other => panic!("an agent must not prune: {other:?}"),
    }
    assert!(!log(&plans).iter().any(|entry| entry.is_forgotten()));
    assert_eq!(prune(&plans, 0, PruneMode::Act).0, ["ended"]);
}

pub(super) fn what_a_subscription_has_not_read_is_held_back(place: &Place) {
    let plans = place.plans();
    create_done(&plans, "p");
    create_done(&plans, "q");
    let of_p = EventFilter { plans: vec![plan("p")], ..EventFilter::default() };
    let made = plans.subscribe("agent:slow", of_p, Since::Beginning).unwrap();
    let (gone, kept) = prune(&plans, 0, PruneMode::Act);
    assert_eq!(gone, ["q"]);
    assert_eq!(kept, [HeldBack::Unread { owner: "agent:slow".to_owned(), subscription: made.id.clone() }]);
    let end = waypost_store::Cursor::after(plans.latest().unwrap());
    plans.acknowledge("agent:slow", &made.id, end).unwrap();
    assert_eq!(prune(&plans, 0, PruneMode::Act).0, ["p"]);
    sound(&plans);
}

/// A store with something of everything.
fn fill(plans: &PlanStore) {
    create_done(plans, "done");
    create_done(plans, "pruned");
    create_done(plans, "archived");
    write(plans, "archived", Command::Archive).unwrap();
    prune(plans, 0, PruneMode::Act);
    write(plans, "pruned", Command::Archive).unwrap();
    create_small(plans, "purged");
    write(plans, "purged", add("more")).unwrap();
    create_small(plans, "running");
    create_small(plans, "last");
    plans.purge(&plan("purged"), &ada()).unwrap();
    write(plans, "running", Command::Activate).unwrap();
    let leased = waypost_store::WriteRequest {
        lease_seconds: Some(3_600),
        ..request("running", vec![start("first")])
    };
    plans.write(leased).unwrap();
    for round in 0..40 {
        write(plans, "last", retitle(&"a long title ".repeat(200).replace('a', &round.to_string()))).unwrap();
    }
    plans.subscribe("agent:reader", EventFilter::default(), Since::Now).unwrap();
    plans.subscribe("agent:reader", EventFilter::default(), Since::Beginning).unwrap();
}

/// Everything that can be seen of a store.
fn seen(store: &std::sync::Arc<dyn Store>) -> impl PartialEq + std::fmt::Debug + use<> {
    let plans = PlanStore::new(std::sync::Arc::clone(store));
    let heads = plans.heads(&everything()).unwrap().items;
    let told: Vec<_> = heads
        .iter()
        .map(|head| {
            let first = plans.pruned(&head.id).unwrap().map_or(1, |pruned| pruned.up_to);
            let each: Vec<_> =
                (first..=head.version).map(|at| plans.at_version(&head.id, at).unwrap().to_draft()).collect();
            (each, index(store, head.id.as_str()), plans.pruned(&head.id).unwrap())
        })
        .map(|(each, rows, pruned)| (each, rows.leases, rows.locks, rows.waits, pruned))
        .collect();
    (heads, told, log(&plans), plans.subscriptions("agent:reader").unwrap())
}

pub(super) fn a_copy_has_everything_that_the_store_has(place: &Place) {
    let plans = place.plans();
    fill(&plans);
    for attempt in 1..=60 {
        put_log(&plans, "running", attempt);
    }
    let from = place.store();
    let before = format!("{:?}", seen(&from));
    let mut digests = std::collections::BTreeSet::new();
    let mut targets = vec![Place::memory(), Place::file(), Place::sqlite()];
    if place.location.starts_with("postgres:") {
        targets.push(Place::postgres());
    }
    for target in targets {
        if target.location == place.location {
            continue;
        }
        let copied = copy(&*from, &*target.store(), Running::Allow, &mut |_| {}).unwrap();
        assert_eq!((copied.plans, copied.purged, copied.subscriptions), (5, 1, 2));
        assert_eq!(copied.versions, plans.latest().unwrap());
        digests.insert(copied.digest);
        assert_eq!(format!("{:?}", seen(&target.store())), before);
        assert_eq!(format!("{:?}", seen(&from)), before, "what is read is not changed");
        if target.location.starts_with("file:") {
            assert_eq!(logs_of(&target.store(), "running"), []);
        } else {
            assert_eq!(logs_of(&target.store(), "running"), logs_of(&from, "running"));
        }
        let there = target.plans();
        sound(&there);
        let used = waypost_store::NewPlan {
            id: Some(PlanId::new("purged").unwrap()),
            by: ada(),
            draft: plan_of([task("t", &[])]),
            approval_required: None,
        };
        assert!(matches!(there.create(used), Err(WriteError::IdUsed(_))), "a purged id stays used");
        let next = write(&there, "running", finish("first")).unwrap();
        assert_eq!(number(&there, &next), copied.versions + 1, "the log goes on");
        sound(&target.plans());
    }
    assert_eq!(digests.len(), 1, "all copies have the same fingerprint");
}
