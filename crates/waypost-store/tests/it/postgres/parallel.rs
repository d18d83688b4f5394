//! Two writers at once, each stopped just before its commit while the other goes on: what they decide must be what one of
//! them would have decided after the other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use waypost_core::{Dependency, ExternalTaskRef, Lock, LockMode, PlanId, Refusal, TaskSpec};
use waypost_store::{PlanStore, Since, Slots, StoreError, SubscriptionError, WriteError, WriteRequest};
use waypost_testkit::{id, plan_of, task};

use super::PATIENCE;
use crate::kit::*;
use crate::place::Place;
use crate::wrapped::{Moment, Wrapped};

/// Which try of a write is stopped before its commit.
#[derive(Clone, Copy)]
enum Stop {
    /// The first one.
    First = 0,
    /// The second one: the first finds out that it has to be the only writer.
    Alone = 1,
}

/// A store of which one commit waits until it may go on.
fn held_back(place: &Place, stop: Stop) -> (PlanStore, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (reached, is_there) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let (may_go_on, tries) = (Mutex::new(may_go_on), AtomicUsize::new(0));
    let fault = move |moment: Moment| -> Result<(), StoreError> {
        if moment == Moment::Commit && tries.fetch_add(1, Ordering::SeqCst) == stop as usize {
            reached.send(()).unwrap();
            may_go_on.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        }
        Ok(())
    };
    let store = Wrapped::with_faults(place.store(), fault);
    (PlanStore::new(store), is_there, go_on)
}

/// Runs `first` up to its commit, then `second` until it is done or waits for a lock of the first, then both to their end.
/// Returns their answers, and whether the second had to wait.
fn overlapping<A: Send, B: Send>(
    place: &Place,
    first: impl FnOnce(&PlanStore) -> A + Send,
    second: impl FnOnce(&PlanStore) -> B + Send,
) -> (A, B, bool) {
    overlapping_at(place, Stop::First, first, second)
}

fn overlapping_at<A: Send, B: Send>(
    place: &Place,
    stop: Stop,
    first: impl FnOnce(&PlanStore) -> A + Send,
    second: impl FnOnce(&PlanStore) -> B + Send,
) -> (A, B, bool) {
    let (slow, is_there, go_on) = held_back(place, stop);
    let fast = place.plans();
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || first(&slow));
        is_there.recv_timeout(PATIENCE).unwrap();
        let fast = scope.spawn(move || second(&fast));
        let waiting = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let began = Instant::now();
        let waits = loop {
            if fast.is_finished() {
                break false;
            }
            if place.database().sql(waiting) != ["0"] {
                break true;
            }
            assert!(began.elapsed() < PATIENCE, "the second writer neither ends nor waits");
        };
        go_on.send(()).unwrap();
        (slow.join().unwrap(), fast.join().unwrap(), waits)
    })
}

fn waiting(name: &str, on: &str, for_task: &str) -> TaskSpec {
    let there = ExternalTaskRef { agent: None, plan: Some(plan(on)), task: id(for_task) };
    TaskSpec { depends_on: vec![Dependency::External(Box::new(there))], ..task(name, &[]) }
}

fn waiting_for_agent(name: &str, agent: &str, for_task: &str) -> TaskSpec {
    let there = ExternalTaskRef { agent: Some(agent.to_owned()), plan: None, task: id(for_task) };
    TaskSpec { depends_on: vec![Dependency::External(Box::new(there))], ..task(name, &[]) }
}

fn locking(name: &str, key: &str, mode: LockMode) -> TaskSpec {
    TaskSpec { locks: vec![Lock { key: key.to_owned(), mode }], ..task(name, &[]) }
}

fn received(place: &Place, name: &str, task: &str) -> usize {
    now(&place.plans(), name).task(task).unwrap().state.received.len()
}

fn sound(place: &Place) {
    let plans = place.plans();
    let numbers: Vec<u64> = log(&plans).iter().map(|entry| entry.sequence).collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    assert_eq!(plans.doctor(false).unwrap(), []);
    assert_eq!(plans.store().check().unwrap(), Vec::<String>::new());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn writers_of_different_plans_do_not_wait_for_each_other() {
    let place = Place::postgres();
    create_small(&place.plans(), "a");
    create_small(&place.plans(), "b");
    let (one, other, waited) = overlapping(
        &place,
        |plans| write(plans, "a", add("x")).unwrap().version,
        |plans| write(plans, "b", add("x")).unwrap().version,
    );
    assert_eq!((one, other, waited), (2, 2, false));
    let order: Vec<PlanId> = log(&place.plans()).into_iter().skip(2).map(|entry| entry.plan).collect();
    assert_eq!(order, [plan("b"), plan("a")], "the log follows the commits, not the beginnings");
    sound(&place);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn writers_of_one_plan_come_one_after_the_other() {
    let place = Place::postgres();
    create_small(&place.plans(), "a");
    let (one, other, waited) = overlapping(
        &place,
        |plans| write(plans, "a", add("x")).unwrap().version,
        |plans| write(plans, "a", add("y")).unwrap().version,
    );
    assert_eq!((one, other, waited), (2, 3, true));
    sound(&place);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn who_begins_to_wait_while_the_other_ends_is_told() {
    for waits_first in [true, false] {
        let place = Place::postgres();
        create_small(&place.plans(), "lib");
        create_small(&place.plans(), "app");
        let begin =
            |plans: &PlanStore| write(plans, "app", add_all([waiting("link", "lib", "first")])).map(drop);
        let end = |plans: &PlanStore| write(plans, "lib", finish("first")).map(drop);
        let (one, other, waited) = match waits_first {
            true => overlapping(&place, begin, end),
            false => overlapping(&place, end, begin),
        };
        assert!(one.is_ok() && other.is_ok() && waited, "{one:?} {other:?}");
        assert_eq!(received(&place, "app", "link"), 1, "waits first: {waits_first}");
        sound(&place);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn who_waits_for_a_plan_that_is_made_meanwhile_is_told() {
    for waits_first in [true, false] {
        let place = Place::postgres();
        create_small(&place.plans(), "app");
        let begin =
            |plans: &PlanStore| write(plans, "app", add_all([waiting("link", "lib", "first")])).map(drop);
        let make = |plans: &PlanStore| {
            create_small(plans, "lib");
            Ok(())
        };
        let (one, other, waited) = match waits_first {
            true => overlapping_at(&place, Stop::Alone, begin, make),
            false => overlapping(&place, make, begin),
        };
        assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
        assert!(waited, "nothing can be locked that does not exist, so the waiting plan is written alone");
        write(&place.plans(), "lib", finish("first")).unwrap();
        assert_eq!(received(&place, "app", "link"), 1, "waits first: {waits_first}");
        sound(&place);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn who_waits_for_an_agent_is_told_of_a_plan_that_ends_meanwhile() {
    for waits_first in [true, false] {
        let place = Place::postgres();
        let mut draft = plan_of([task("first", &[])]);
        draft.spec.owner = "builder".to_owned();
        create(&place.plans(), "lib", draft);
        create_small(&place.plans(), "app");
        let spec = waiting_for_agent("link", "builder", "first");
        let begin = move |plans: &PlanStore| write(plans, "app", add_all([spec.clone()])).map(drop);
        let end = |plans: &PlanStore| write(plans, "lib", finish("first")).map(drop);
        let (one, other, waited) = match waits_first {
            true => overlapping_at(&place, Stop::Alone, begin, end),
            false => overlapping(&place, end, begin),
        };
        assert!(one.is_ok() && other.is_ok() && waited, "{one:?} {other:?}");
        // A plan that was over before does not answer for its agent.
        assert_eq!(received(&place, "app", "link"), usize::from(waits_first), "waits first: {waits_first}");
        sound(&place);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn two_plans_that_begin_to_wait_for_each_other_at_once_make_no_ring() {
    let place = Place::postgres();
    create_small(&place.plans(), "a");
    create_small(&place.plans(), "b");
    let (one, other, waited) = overlapping(
        &place,
        |plans| write(plans, "a", add_all([waiting("x", "b", "y")])),
        |plans| write(plans, "b", add_all([waiting("y", "a", "x")])),
    );
    assert!(one.is_ok() && waited);
    assert!(matches!(other, Err(WriteError::Refused(Refusal::Invalid { .. }))), "{other:?}");
    sound(&place);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_lock_is_taken_by_one_of_two_plans() {
    let place = Place::postgres();
    for name in ["a", "b", "c"] {
        let tasks = [locking("own", "key", LockMode::Exclusive), locking("read", "key", LockMode::Shared)];
        create(&place.plans(), name, plan_of(tasks));
    }
    let (one, other, waited) =
        overlapping(&place, |plans| write(plans, "a", start("own")), |plans| write(plans, "b", start("own")));
    assert!(one.is_ok() && waited);
    assert!(matches!(other, Err(WriteError::Refused(Refusal::LockHeld { .. }))), "{other:?}");
    // Whoever releases it keeps nobody waiting, and is not overtaken.
    let (one, other, waited) = overlapping(
        &place,
        |plans| write(plans, "a", finish("own")),
        |plans| write(plans, "b", start("read")),
    );
    assert!(one.is_ok() && !waited);
    assert!(matches!(other, Err(WriteError::Refused(Refusal::LockHeld { .. }))), "{other:?}");
    let (one, other, _) = overlapping(
        &place,
        |plans| write(plans, "b", start("read")),
        |plans| write(plans, "c", start("read")),
    );
    assert!(one.is_ok() && other.is_ok(), "shared locks coexist");
    sound(&place);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_last_slot_of_a_queue_is_taken_by_one_of_two_workers() {
    let place = Place::postgres();
    create_small(&place.plans(), "a");
    create_small(&place.plans(), "b");
    let take = |plans: &PlanStore, name: &str, worker: &str| {
        let by = waypost_core::Actor::worker(worker);
        let slots = Slots { queue: "q".to_owned(), own: 0, concurrency: Some(1) };
        let begin = waypost_core::Command::StartTask { task: id("first"), worker: worker.to_owned() };
        let request = WriteRequest { by, lease_seconds: Some(60), ..request(name, vec![begin]) };
        plans.write_with_slots(request, slots)
    };
    let (one, other, waited) =
        overlapping(&place, |plans| take(plans, "a", "w1"), |plans| take(plans, "b", "w2"));
    assert!(one.is_ok() && waited);
    assert!(matches!(other, Err(WriteError::Refused(Refusal::QueueFull { .. }))), "{other:?}");
    sound(&place);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_id_is_given_to_one_of_two_plans() {
    let place = Place::postgres();
    let make = |plans: &PlanStore| {
        let draft = plan_of([task("first", &[])]);
        plans.create(waypost_store::NewPlan {
            id: Some(plan("p")),
            by: ada(),
            draft,
            approval_required: None,
        })
    };
    let (one, other, _) = overlapping(&place, make, make);
    let answers = [one.is_ok(), other.is_ok()];
    assert!(answers == [true, false] || answers == [false, true], "{answers:?}");
    assert_eq!(log(&place.plans()).len(), 1);
    sound(&place);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_purged_plan_is_not_written_by_who_read_it_before() {
    let place = Place::postgres();
    create_small(&place.plans(), "p");
    let (one, other, waited) =
        overlapping(&place, |plans| plans.purge(&plan("p"), &ada()), |plans| write(plans, "p", add("late")));
    assert!(one.is_ok() && waited && matches!(other, Err(WriteError::NotFound(_))), "{other:?}");
    sound(&place);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_subscription_that_is_ended_is_not_brought_back_by_who_acknowledges() {
    let place = Place::postgres();
    create_small(&place.plans(), "p");
    let made = place.plans().subscribe("agent:a", Default::default(), Since::Beginning).unwrap();
    let (ended, late) = (made.id.clone(), made.id.clone());
    let (one, other, waited) = overlapping(
        &place,
        move |plans| plans.unsubscribe("agent:a", Some(&ended)),
        move |plans| plans.acknowledge("agent:a", &late, waypost_store::Cursor::after(1)),
    );
    assert!(one.is_ok() && waited);
    assert!(matches!(other, Err(SubscriptionError::NotFound { .. })), "{other:?}");
    assert_eq!(place.plans().subscriptions("agent:a").unwrap(), []);
}

/// A transaction gets its id with its first lock, and its ticket after its last. Where the second lock is what it waited
/// for, only the ticket tells what came first.
#[test]
#[ignore = "needs PostgreSQL"]
fn numbers_follow_the_last_lock_where_the_ids_of_transactions_do_not() {
    let place = Place::postgres();
    let plans = place.plans();
    create_small(&plans, "a");
    create_small(&plans, "b");
    let (slow, fast) = (place.store(), place.plans());
    let slow_plans = Arc::new(PlanStore::new(Arc::clone(&slow)));
    let mut current = now(&slow_plans, "b");
    slow.write(&mut |transaction| {
        transaction.plan_state(&plan("a"))?;
        // Only now that this transaction has its id.
        if current.version() == 1 {
            write(&fast, "b", add("between")).unwrap();
            current = now(&fast, "b");
        }
        transaction.plan_state(&plan("b"))?;
        append(transaction, &mut current.clone(), &add("after"))
    })
    .unwrap();
    let of_b: Vec<u64> =
        log(&plans).iter().filter(|entry| entry.plan == plan("b")).map(|entry| entry.version).collect();
    assert_eq!(of_b, [1, 2, 3], "by number");
    let by_id = "SELECT l.version FROM waypost_log l JOIN waypost_plans p ON p.key = l.plan WHERE p.id = 'b'
         ORDER BY l.xmin::text::bigint";
    assert_eq!(place.database().sql(by_id), ["1", "3", "2"], "by transaction id, which would be wrong");
    sound(&place);
}

/// Decides a command and appends its events.
fn append(
    transaction: &mut dyn waypost_store::Transaction,
    plan: &mut waypost_core::Plan,
    command: &waypost_core::Command,
) -> Result<(), StoreError> {
    let at = transaction.now();
    let events = plan.decide(&ada(), at, command).unwrap();
    plan.advance(&events, at);
    let touched = plan.take_touched();
    let index = waypost_store::IndexChanges::of(plan, touched, waypost_store::LeaseTerms::default(), at);
    let (head, actor) = (waypost_store::PlanSummary::of(plan), ada());
    let append = waypost_store::Append {
        head: &head,
        at,
        actor: &actor,
        command: "test",
        events: &events,
        index: &index,
        plan,
    };
    transaction.append(&append).map(drop)
}
