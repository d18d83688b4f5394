//! The log of all versions of all plans.

use waypost_store::{LogFilter, WriteRequest};

use crate::kit::*;
use crate::place::Place;

pub(super) fn the_log_has_no_gaps_and_follows_the_commits(place: &Place) {
    let (one, other) = (place.plans(), place.plans());
    let mut expected = Vec::new();
    for (plans, name) in [(&one, "a"), (&other, "b"), (&one, "c")] {
        let made = create_small(plans, name);
        expected.push((number(plans, &made), name.to_owned(), 1));
    }
    for (plans, name) in [(&other, "a"), (&one, "b"), (&one, "a"), (&other, "c"), (&one, "a")] {
        let version = now(plans, name).version() + 1;
        let refused = write(plans, name, add("first"));
        assert!(refused.is_err(), "a refused command takes no number");
        let committed = write(plans, name, add(&format!("task-{version}"))).unwrap();
        expected.push((number(plans, &committed), name.to_owned(), version));
    }
    let numbers: Vec<u64> = expected.iter().map(|(sequence, ..)| *sequence).collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    for plans in [&one, &other, &place.plans()] {
        let told: Vec<_> = log(plans).iter().map(|e| (e.sequence, e.plan.to_string(), e.version)).collect();
        assert_eq!(told, expected);
    }
}

pub(super) fn the_log_can_be_read_by_plan_by_actor_and_page_by_page(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "a");
    create_small(&plans, "b");
    for round in 0..6 {
        let by = if round % 3 == 0 { bot() } else { ada() };
        let name = if round % 2 == 0 { "a" } else { "b" };
        plans.write(WriteRequest { by, ..request(name, vec![add(&format!("task-{round}"))]) }).unwrap();
    }
    let numbers = |after: u64, filter: &LogFilter, limit: usize| -> Vec<u64> {
        plans.log(after, filter, limit).unwrap().versions.iter().map(|entry| entry.sequence).collect()
    };
    let all = LogFilter::default();
    assert_eq!(numbers(0, &all, 3), [1, 2, 3]);
    assert_eq!(numbers(3, &all, 3), [4, 5, 6]);
    assert_eq!(numbers(6, &all, 3), [7, 8]);
    assert_eq!(numbers(8, &all, 3), Vec::<u64>::new());
    let of_a = LogFilter { plan: Some(plan("a")), ..all.clone() };
    assert_eq!(numbers(0, &of_a, 100), [1, 3, 5, 7]);
    let by_bot = LogFilter { actor: Some(bot()), ..all.clone() };
    assert_eq!(numbers(0, &by_bot, 100), [3, 6]);
    assert_eq!(numbers(0, &by_bot, 1), [3], "a filter is applied before the limit");
    let both = LogFilter { plan: Some(plan("b")), actor: Some(bot()) };
    assert_eq!(numbers(0, &both, 1), [6]);
    assert_eq!(numbers(0, &LogFilter { plan: Some(plan("none")), ..all }, 100), Vec::<u64>::new());
    let entry = &plans.log(0, &of_a, 1).unwrap().versions[0];
    assert_eq!(
        plans.history(&plan("a"), 0, 1).unwrap(),
        std::slice::from_ref(entry),
        "the same entry as in the history"
    );
}

pub(super) fn the_log_tells_which_plans_were_written_since(place: &Place) {
    let plans = place.plans();
    assert_eq!(plans.latest().unwrap(), 0);
    for round in 0..7 {
        for name in ["a", "b", "c"].into_iter().take(1 + round % 3) {
            match round {
                0..3 if plans.resolve(name).is_err() => drop(create_small(&plans, name)),
                _ => drop(write(&plans, name, add(&format!("task-{round}"))).unwrap()),
            }
        }
    }
    let entries = log(&plans);
    assert_eq!(plans.latest().unwrap(), entries.len() as u64);
    for after in 0..=entries.len() {
        for limit in [1, 3, 100] {
            let page: Vec<_> = entries.iter().skip(after).take(limit).collect();
            let written = plans.written_since(after as u64, limit).unwrap();
            let mut expected: std::collections::BTreeMap<_, u64> = std::collections::BTreeMap::new();
            for entry in &page {
                expected.insert(entry.plan.clone(), entry.version);
            }
            assert_eq!(written.plans.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(), expected);
            assert_eq!(written.up_to, page.last().map_or(after as u64, |entry| entry.sequence));
            assert_eq!(written.more, page.len() == limit);
        }
    }
}
