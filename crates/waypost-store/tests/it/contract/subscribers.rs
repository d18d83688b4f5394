//! Subscriptions: durable, each its owner's, with a cursor that only moves forward.

use std::time::Duration;

use waypost_store::{
    BadFilter, Cursor, EventFilter, FILTER_NAMES_MAX, PlanStore, SUBSCRIPTIONS_MAX, Since, SubscriptionError,
};

use crate::kit::*;
use crate::place::Place;

const PLANNER: &str = "agent:planner";

fn added() -> EventFilter {
    EventFilter { kinds: vec!["tasks_added".to_owned()], ..EventFilter::default() }
}

fn unread(plans: &PlanStore, id: &str) -> Vec<(u64, u32)> {
    let page = plans.unread(PLANNER, id, 10).unwrap();
    page.events.iter().map(|event| (event.sequence, event.index)).collect()
}

pub(super) fn a_subscription_is_found_again_with_what_was_not_read(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    write(&plans, "p", add("before")).unwrap();
    let now = plans.subscribe(PLANNER, added(), Since::Now).unwrap();
    let always = plans.subscribe(PLANNER, added(), Since::Beginning).unwrap();
    assert_ne!(now.id, always.id);
    write(&plans, "p", add("after")).unwrap();
    write(&plans, "p", retitle("not wanted")).unwrap();
    write(&plans, "p", add("later")).unwrap();
    for plans in [&plans, &place.plans()] {
        assert_eq!(plans.subscriptions(PLANNER).unwrap(), [now.clone(), always.clone()]);
        assert_eq!(unread(plans, &now.id), [(3, 0), (5, 0)]);
        assert_eq!(unread(plans, &always.id), [(2, 0), (3, 0), (5, 0)]);
    }
    let first = plans.unread(PLANNER, &now.id, 1).unwrap();
    assert!(first.more);
    assert_eq!(plans.acknowledge(PLANNER, &now.id, first.cursor).unwrap(), first.cursor);
    assert_eq!(unread(&place.plans(), &now.id), [(5, 0)], "another process goes on where this one stopped");
}

pub(super) fn a_cursor_moves_forward_and_never_back_or_beyond_the_end(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    write(&plans, "p", add("second")).unwrap();
    let made = plans.subscribe(PLANNER, EventFilter::default(), Since::After(Cursor::after(1))).unwrap();
    assert_eq!(made.cursor, Cursor::after(1));
    let acknowledge = |cursor: Cursor| plans.acknowledge(PLANNER, &made.id, cursor).unwrap();
    let part = Cursor { sequence: 1, part: 1 };
    assert_eq!(acknowledge(part), part);
    assert_eq!(acknowledge(Cursor::after(1)), part, "it never moves back");
    assert_eq!(acknowledge(Cursor::after(99)), Cursor::after(2), "what is yet to come is not read yet");
    assert_eq!(place.plans().subscriptions(PLANNER).unwrap()[0].cursor, Cursor::after(2));
    let ahead = plans.subscribe(PLANNER, EventFilter::default(), Since::After(Cursor::after(99))).unwrap();
    assert_eq!(ahead.cursor, Cursor::after(2));
}

pub(super) fn a_subscription_belongs_to_its_owner(place: &Place) {
    let plans = place.plans();
    let (own, other) = ("agent:bot", PLANNER);
    let made = plans.subscribe(own, EventFilter::default(), Since::Now).unwrap();
    plans.subscribe(own, added(), Since::Now).unwrap();
    let theirs = plans.subscribe(other, added(), Since::Now).unwrap();
    let is_missing = |error: SubscriptionError| matches!(error, SubscriptionError::NotFound { .. });
    assert!(is_missing(plans.unread(other, &made.id, 10).unwrap_err()));
    assert!(is_missing(plans.acknowledge(other, &made.id, Cursor::after(1)).unwrap_err()));
    assert!(is_missing(plans.unsubscribe(other, Some(&made.id)).unwrap_err()));
    assert_eq!(plans.unsubscribe(own, Some(&made.id)).unwrap(), 1);
    assert!(is_missing(plans.unsubscribe(own, Some(&made.id)).unwrap_err()), "it is gone");
    assert_eq!(plans.unsubscribe(own, None).unwrap(), 1);
    assert_eq!(plans.unsubscribe(own, None).unwrap(), 0);
    assert_eq!(place.plans().subscriptions(own).unwrap(), []);
    assert_eq!(place.plans().subscriptions(other).unwrap(), [theirs]);
}

pub(super) fn there_is_a_limit_to_subscriptions_and_to_filters(place: &Place) {
    let plans = place.plans();
    let subscribe = |filter: EventFilter| plans.subscribe(PLANNER, filter, Since::Now);
    let agents = |count: usize| EventFilter {
        agents: (0..count).map(|number| format!("agent-{number}")).collect(),
        ..EventFilter::default()
    };
    match subscribe(agents(FILTER_NAMES_MAX + 1)) {
        Err(SubscriptionError::Filter(BadFilter::TooManyNames { list: "agents", found })) => {
            assert_eq!(found, FILTER_NAMES_MAX + 1);
        }
        other => panic!("{other:?}"),
    }
    let unknown = EventFilter { kinds: vec!["task_exploded".to_owned()], ..EventFilter::default() };
    match subscribe(unknown) {
        Err(error @ SubscriptionError::Filter(BadFilter::NoSuchKind(_))) => {
            assert!(error.hint().contains("task_unblocked"), "{}", error.hint());
        }
        other => panic!("{other:?}"),
    }
    subscribe(agents(FILTER_NAMES_MAX)).unwrap();
    for _ in 1..SUBSCRIPTIONS_MAX {
        subscribe(EventFilter::default()).unwrap();
    }
    assert!(matches!(subscribe(EventFilter::default()), Err(SubscriptionError::TooMany(_))));
    assert_eq!(plans.subscriptions(PLANNER).unwrap().len(), SUBSCRIPTIONS_MAX);
    plans.subscribe("agent:other", EventFilter::default(), Since::Now).unwrap();
    assert!(matches!(
        plans.subscribe("", EventFilter::default(), Since::Now),
        Err(SubscriptionError::BadOwner)
    ));
}

pub(super) fn a_purged_plan_breaks_no_subscription(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    create_small(&plans, "stays");
    let of_p = EventFilter { plans: vec![plan("p")], ..EventFilter::default() };
    let gone = plans.subscribe(PLANNER, of_p, Since::Beginning).unwrap();
    let all = plans.subscribe(PLANNER, EventFilter::default(), Since::Beginning).unwrap();
    plans.purge(&plan("p"), &ada()).unwrap();
    write(&plans, "stays", add("next")).unwrap();
    assert_eq!(unread(&plans, &gone.id), []);
    assert_eq!(unread(&plans, &all.id), [(2, 0), (3, 0)]);
    assert_eq!(plans.doctor(false).unwrap(), []);
}

pub(super) fn what_was_given_up_is_told_by_the_doctor_until_it_is_put_right(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    write(&plans, "p", add("second")).unwrap();
    let made = plans.subscribe("reporter:hook", EventFilter::default(), Since::Beginning).unwrap();
    plans.give_up("reporter:hook", &made.id, Cursor::after(1), 1, "it said 410").unwrap();
    plans.give_up("reporter:hook", &made.id, Cursor::after(2), 2, "nobody listens").unwrap();
    let findings = place.plans().doctor(false).unwrap();
    assert_eq!(findings.len(), 1);
    let words = &findings[0].what;
    assert!(words.starts_with("reporter:hook gave up on 3 events"), "{words}");
    assert!(words.ends_with("nobody listens"), "{words}");
    assert!(plans.doctor(true).unwrap()[0].repaired);
    assert_eq!(plans.doctor(false).unwrap(), []);
    assert_eq!(plans.subscriptions("reporter:hook").unwrap()[0].cursor, Cursor::after(2));
}

pub(super) fn nobody_is_woken_by_subscriptions(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let mut watch = place.store().watch().unwrap();
    let made = plans.subscribe(PLANNER, EventFilter::default(), Since::Beginning).unwrap();
    plans.acknowledge(PLANNER, &made.id, Cursor::after(1)).unwrap();
    plans.unsubscribe(PLANNER, None).unwrap();
    assert!(!watch.wait(Duration::from_millis(30)).unwrap());
    write(&plans, "p", add("second")).unwrap();
    assert!(watch.wait(Duration::from_secs(60)).unwrap());
}
