//! Ids: found by their beginning, never used twice.

use waypost_core::{ActorKind, Refusal};
use waypost_store::{LeaseFilter, LogFilter, NewPlan, WriteError};
use waypost_testkit::chain;

use crate::kit::*;
use crate::place::Place;

pub(super) fn an_id_is_never_used_twice_not_even_after_a_purge(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let again = || NewPlan { id: Some(plan("p")), by: ada(), draft: chain(1), approval_required: None };
    assert_eq!(refusal(plans.create(again())), Refusal::AlreadyExists {});
    plans.purge(&plan("p"), &ada()).unwrap();
    assert!(matches!(plans.create(again()), Err(WriteError::IdUsed(id)) if id == plan("p")));
    assert!(
        matches!(place.plans().create(again()), Err(WriteError::IdUsed(_))),
        "another process knows it too"
    );
}

pub(super) fn a_plan_gets_a_fresh_id_when_none_is_asked_for(place: &Place) {
    let plans = place.plans();
    let make = || NewPlan { id: None, by: ada(), draft: chain(1), approval_required: None };
    let (one, other) = (plans.create(make()).unwrap().plan, plans.create(make()).unwrap().plan);
    assert_ne!(one, other);
    assert_eq!(plans.resolve(one.as_str()).unwrap(), one);
}

pub(super) fn an_unambiguous_beginning_names_a_plan(place: &Place) {
    let plans = place.plans();
    for name in ["moon", "mars", "mars-2", "Mercury"] {
        create_small(&plans, name);
    }
    let resolve = |prefix: &str| plans.resolve(prefix).map(|id| id.to_string());
    assert_eq!(resolve("mo").unwrap(), "moon");
    assert_eq!(resolve("mars").unwrap(), "mars", "a whole id is never ambiguous");
    assert_eq!(resolve("mars-").unwrap(), "mars-2");
    assert_eq!(resolve("M").unwrap(), "Mercury", "ids are told apart by case");
    match resolve("m") {
        Err(WriteError::Ambiguous { prefix, candidates, more }) => {
            assert_eq!((prefix.as_str(), more), ("m", false));
            assert_eq!(candidates, [plan("mars"), plan("mars-2"), plan("moon")]);
        }
        other => panic!("expected several, got {other:?}"),
    }
    for number in 0..11 {
        create_small(&plans, &format!("x{number}"));
    }
    let many = resolve("x").unwrap_err().to_string();
    assert!(many.ends_with("x8 and others"), "{many}");
    for unknown in ["venus", "moons", "%", "mo_"] {
        assert!(matches!(resolve(unknown), Err(WriteError::NotFound(_))), "{unknown} names no plan");
    }
    plans.purge(&plan("mars"), &ada()).unwrap();
    assert_eq!(resolve("mars").unwrap(), "mars-2", "a purged plan is not found");
}

pub(super) fn a_purged_plan_is_gone_and_only_a_person_can_purge(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    create_small(&plans, "p");
    create_small(&plans, "stays");
    write(&other, "p", start("first")).unwrap();
    match plans.purge(&plan("p"), &bot()) {
        Err(WriteError::Refused(Refusal::OnlyAPerson { by, .. })) => assert_eq!(by.kind, ActorKind::Agent),
        other => panic!("an agent must not purge: {other:?}"),
    }
    plans.purge(&plan("p"), &ada()).unwrap();
    for plans in [&plans, &other, &place.plans()] {
        assert!(matches!(plans.with_plan(&plan("p"), |_| ()), Err(WriteError::NotFound(_))));
        assert!(matches!(write(plans, "p", add("late")), Err(WriteError::NotFound(_))));
        assert_eq!(plans.history(&plan("p"), 0, 10).unwrap(), []);
        assert_eq!(list(plans, &everything()), ["stays"]);
    }
    assert_eq!(head(plans.store(), "p"), None);
    assert_eq!(look(plans.store(), |read| read.leases(&LeaseFilter::All, 10)), []);
    assert!(
        matches!(plans.purge(&plan("p"), &ada()), Err(WriteError::NotFound(_))),
        "it cannot be purged twice"
    );
    // Its numbers stay used, so that whoever reads the log by number misses nothing.
    let numbers: Vec<u64> =
        plans.log(0, &LogFilter::default(), 10).unwrap().versions.iter().map(|e| e.sequence).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(log(&plans).iter().all(|entry| entry.plan != plan("p") || entry.events.is_empty()));
    let next = write(&plans, "stays", add("next")).unwrap();
    assert_eq!(number(&plans, &next), 4);
    assert_eq!(plans.doctor(false).unwrap(), []);
}
