//! Copies that are refused, interrupted and gone on with.

use std::sync::atomic::{AtomicUsize, Ordering};

use waypost_core::Command;
use waypost_store::{CopyError, Running, StoreError, WriteRequest, copy};

use crate::kit::*;
use crate::place::Place;
use crate::wrapped::{Moment, Wrapped};

fn filled() -> Place {
    let place = Place::sqlite();
    let plans = place.plans();
    for name in ["a", "b", "c", "d"] {
        create_small(&plans, name);
    }
    for round in 0..8 {
        for name in ["d", "b", "a", "c"] {
            write(&plans, name, add(&format!("task-{round}"))).unwrap();
        }
    }
    place
}

#[test]
fn a_copy_that_was_interrupted_anywhere_goes_on_where_it_stopped() {
    let from = filled();
    let whole = copy(&*from.store(), &*Place::file().store(), Running::Refuse, &mut |_| {}).unwrap();
    for moment in [Moment::Append, Moment::Commit, Moment::Answer] {
        for number in 0..5 {
            let target = Place::sqlite();
            let seen = AtomicUsize::new(0);
            let faulty = Wrapped::with_faults(target.store(), move |at| {
                let fails = at == moment && seen.fetch_add(1, Ordering::Relaxed) == number;
                if fails { Err(StoreError::Busy) } else { Ok(()) }
            });
            let Err(CopyError::Store(StoreError::Busy)) =
                copy(&*from.store(), &*faulty, Running::Refuse, &mut |_| {})
            else {
                assert_eq!((moment, number), (Moment::Append, 4), "there is such a moment");
                continue;
            };
            let unfinished = target.plans().doctor(false).unwrap();
            let copied = copy(&*from.store(), &*target.store(), Running::Refuse, &mut |_| {}).unwrap();
            if copied.resumed {
                assert!(unfinished[0].what.contains("unfinished copy"), "{unfinished:?}");
            }
            assert_eq!(copied.digest, whole.digest);
            assert_eq!(log(&target.plans()), log(&from.plans()));
            assert_eq!(target.plans().doctor(false).unwrap(), []);
        }
    }
}

#[test]
fn what_is_written_into_the_source_meanwhile_is_not_in_the_copy_and_is_counted() {
    let (from, target) = (filled(), Place::file());
    let before = log(&from.plans());
    let mut once = Some(from.plans());
    let copied = copy(&*from.store(), &*target.store(), Running::Refuse, &mut |_| {
        if let Some(plans) = once.take() {
            write(&plans, "a", add("late")).unwrap();
            create_small(&plans, "new");
        }
    });
    let copied = copied.unwrap();
    assert_eq!((copied.versions, copied.written_since), (before.len() as u64, 2));
    assert_eq!(log(&target.plans()), before);
}

#[test]
fn only_an_empty_store_is_copied_into() {
    let (from, target) = (filled(), Place::sqlite());
    create_small(&target.plans(), "theirs");
    let refused = copy(&*from.store(), &*target.store(), Running::Refuse, &mut |_| {});
    assert!(matches!(refused, Err(CopyError::NotEmpty { versions: 1, .. })), "{refused:?}");
    assert_eq!(log(&target.plans()).len(), 1);
    let refused = copy(&*from.store(), &*from.store(), Running::Refuse, &mut |_| {});
    assert!(matches!(refused, Err(CopyError::Same(_))), "{refused:?}");
}

#[test]
fn an_unfinished_copy_of_one_store_is_not_gone_on_with_from_another() {
    let (from, other, target) = (filled(), filled(), Place::sqlite());
    let faulty = Wrapped::with_faults(target.store(), |at| {
        if at == Moment::Append { Err(StoreError::Busy) } else { Ok(()) }
    });
    assert!(copy(&*from.store(), &*faulty, Running::Refuse, &mut |_| {}).is_err());
    let refused = copy(&*other.store(), &*target.store(), Running::Refuse, &mut |_| {});
    assert!(matches!(refused, Err(CopyError::OfAnother { .. })), "{refused:?}");
}

#[test]
fn a_store_whose_tasks_are_worked_on_is_copied_only_when_that_is_allowed() {
    let (from, target) = (filled(), Place::sqlite());
    let plans = from.plans();
    write(&plans, "a", Command::Activate).unwrap();
    plans.write(WriteRequest { lease_seconds: Some(60), ..request("a", vec![start("first")]) }).unwrap();
    let refused = copy(&*from.store(), &*target.store(), Running::Refuse, &mut |_| {});
    match refused {
        Err(CopyError::WorkGoesOn { leases, .. }) => assert_eq!(leases[0].task.as_str(), "first"),
        other => panic!("somebody works on it: {other:?}"),
    }
    assert_eq!(log(&target.plans()), []);
    copy(&*from.store(), &*target.store(), Running::Allow, &mut |_| {}).unwrap();
    assert_eq!(index(&target.store(), "a").leases, index(&from.store(), "a").leases);
}
