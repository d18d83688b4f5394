//! The log as single events.

use std::time::{Duration, Instant};

use waypost_core::{Actor, Command, Outcome};
use waypost_store::{Cursor, EVENT_VERSIONS_MAX, EventFilter, EventPage, LogEvent, PlanStore, WriteRequest};
use waypost_testkit::{chain, id, plan_of, task};

use crate::kit::*;
use crate::place::Place;

/// `sequence.index kind task`, with `~` before what only followed.
fn told(event: &LogEvent) -> String {
    let follows = if event.derived { "~" } else { "" };
    let task = event.task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    format!("{}.{} {follows}{}{task}", event.sequence, event.index, event.kind)
}

/// All events behind `after`, so many a page.
fn read(plans: &PlanStore, after: Cursor, filter: &EventFilter, limit: usize) -> Vec<String> {
    let (mut cursor, mut all) = (after, Vec::new());
    loop {
        let page = plans.events(cursor, filter, limit).unwrap();
        assert!(page.events.len() <= limit && page.cursor >= cursor);
        all.extend(page.events.iter().map(told));
        cursor = page.cursor;
        if !page.more {
            return all;
        }
    }
}

fn all(plans: &PlanStore, filter: &EventFilter) -> Vec<String> {
    read(plans, Cursor::default(), filter, 100)
}

fn kinds(words: &[&str]) -> EventFilter {
    EventFilter { kinds: words.iter().map(ToString::to_string).collect(), ..EventFilter::default() }
}

fn fail(name: &str) -> Command {
    let outcome = Outcome::Failed { error: "it broke".to_owned(), evidence: None };
    Command::FinishTask { task: id(name), attempt: None, outcome, retry: None }
}

/// Two plans, `a` of the agent bot and `b` of nobody, in which something happened.
fn a_past(plans: &PlanStore) {
    let mut draft = chain(3);
    draft.spec.owner = "bot".to_owned();
    create(plans, "a", draft);
    create(plans, "b", plan_of([task("x", &[]), task("y", &["x"])]));
    write(plans, "a", start("t0")).unwrap();
    write(plans, "a", finish("t0")).unwrap();
    let by_bot = |name: &str, command: Command| {
        plans.write(WriteRequest { by: bot(), ..request(name, vec![command]) }).unwrap()
    };
    by_bot("b", Command::StartTask { task: id("x"), worker: "bot".to_owned() });
    by_bot("b", finish("x"));
    write(plans, "a", start("t1")).unwrap();
    write(plans, "a", fail("t1")).unwrap();
}

pub(super) fn events_come_one_by_one_in_the_order_of_the_log(place: &Place) {
    let plans = place.plans();
    a_past(&plans);
    let page = plans.events(Cursor::default(), &EventFilter::default(), 1_000).unwrap();
    assert_eq!((page.cursor, page.more), (Cursor::after(8), false));
    let expected = [
        "1.0 plan_created",
        "2.0 plan_created",
        "3.0 plan_activated",
        "3.1 task_started t0",
        "3.2 ~plan_started",
        "4.0 task_done t0",
        "4.1 ~task_unblocked t1",
        "5.0 plan_activated",
        "5.1 task_started x",
        "5.2 ~plan_started",
        "6.0 task_done x",
        "6.1 ~task_unblocked y",
        "7.0 task_started t1",
        "8.0 task_failed t1",
        "8.1 ~task_skipped t2",
        "8.2 ~plan_failed",
    ];
    assert_eq!(page.events.iter().map(told).collect::<Vec<_>>(), expected);
    let done = &page.events[5];
    assert_eq!((done.plan.as_str(), done.version, done.owner.as_str()), ("a", 3, "bot"));
    assert_eq!((&done.actor, done.at), (&ada(), log(&plans)[3].at));
}

pub(super) fn what_followed_from_an_event_is_told_with_it(place: &Place) {
    let plans = place.plans();
    create(&plans, "p", chain(3));
    write(&plans, "p", start("t0")).unwrap();
    write(&plans, "p", fail("t0")).unwrap();
    let retried = write(&plans, "p", Command::RetryTask { task: id("t0") }).unwrap();
    let behind = Cursor::after(number(&plans, &retried) - 1);
    let expected = [
        "4.0 tasks_retried t0",
        "4.1 ~task_reopened t0",
        "4.2 ~task_reopened t1",
        "4.3 ~task_reopened t2",
        "4.4 ~plan_reopened",
    ];
    assert_eq!(read(&plans, behind, &EventFilter::default(), 100), expected);
    let added = write(&plans, "p", add_all([task("free", &[]), task("late", &["t2"])])).unwrap();
    let behind = Cursor::after(number(&plans, &added) - 1);
    let expected = ["5.0 tasks_added", "5.1 ~task_blocked late"];
    assert_eq!(read(&plans, behind, &EventFilter::default(), 100), expected);
}

pub(super) fn filters_choose_by_agent_kind_plan_and_task(place: &Place) {
    let plans = place.plans();
    a_past(&plans);
    assert_eq!(
        all(&plans, &kinds(&["task_unblocked", "plan_failed"])),
        ["4.1 ~task_unblocked t1", "6.1 ~task_unblocked y", "8.2 ~plan_failed",]
    );
    let of_b = EventFilter { plans: vec![plan("b"), plan("none")], ..kinds(&["task_done", "plan_created"]) };
    assert_eq!(all(&plans, &of_b), ["2.0 plan_created", "6.0 task_done x"]);
    let both = EventFilter { plans: vec![plan("b"), plan("a")], ..kinds(&["task_done"]) };
    assert_eq!(all(&plans, &both), ["4.0 task_done t0", "6.0 task_done x"]);
    let of_t2 = EventFilter { tasks: vec![id("t2")], ..EventFilter::default() };
    assert_eq!(
        all(&plans, &of_t2),
        ["8.1 ~task_skipped t2"],
        "a cascade is told to whoever asks for its end"
    );
    let done = |agent: &str| {
        let agents = vec![agent.to_owned()];
        all(&plans, &EventFilter { agents, ..kinds(&["task_done"]) })
    };
    assert_eq!(
        done("bot"),
        ["4.0 task_done t0", "6.0 task_done x"],
        "its own plan, and what it did elsewhere"
    );
    assert_eq!(done("person:ada"), ["4.0 task_done t0"]);
    assert_eq!(done("ada"), Vec::<String>::new(), "a bare name is an agent's");
    assert_eq!(done(&Actor::agent("bot").to_string()), ["6.0 task_done x"]);
}

pub(super) fn a_page_ends_within_a_version_and_the_next_goes_on_there(place: &Place) {
    let plans = place.plans();
    a_past(&plans);
    let everything = EventFilter::default();
    let whole = all(&plans, &everything);
    for limit in [1, 2, 3, 7] {
        assert_eq!(read(&plans, Cursor::default(), &everything, limit), whole, "{limit} a page");
    }
    let page = plans.events(Cursor::after(7), &everything, 2).unwrap();
    assert_eq!(page.cursor.to_string(), "7+2");
    assert!(page.more);
    assert_eq!(read(&plans, "7+2".parse().unwrap(), &everything, 100), ["8.2 ~plan_failed"]);
    let last = plans.events(Cursor::after(7), &everything, 3).unwrap();
    assert_eq!((last.cursor, last.more), (Cursor::after(8), false));
}

pub(super) fn a_filter_that_matches_nothing_looks_at_a_bounded_part_of_the_log(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    // Written together, so that a file store need not write each for itself.
    let rename = |round: usize| request("p", vec![retitle(&format!("title {round}"))]);
    let answers = plans.write_each((0..EVENT_VERSIONS_MAX).map(rename).collect());
    assert!(answers.iter().all(Result::is_ok));
    let nothing = kinds(&["question_asked"]);
    let page = plans.events(Cursor::default(), &nothing, 10).unwrap();
    let looked = Cursor::after(EVENT_VERSIONS_MAX as u64);
    assert_eq!(page, EventPage { events: Vec::new(), cursor: looked, more: true, ..EventPage::default() });
    let rest = plans.events(page.cursor, &nothing, 10).unwrap();
    let end = Cursor::after(EVENT_VERSIONS_MAX as u64 + 1);
    assert_eq!(rest, EventPage { events: Vec::new(), cursor: end, more: false, ..EventPage::default() });
    let of_none = EventFilter { plans: vec![plan("none")], ..EventFilter::default() };
    assert_eq!(
        plans.events(Cursor::default(), &of_none, 10).unwrap().cursor,
        end,
        "it has no versions at all"
    );
}

pub(super) fn readers_who_come_from_anywhere_are_told_the_same(place: &Place) {
    let plans = place.plans();
    a_past(&plans);
    let everything = EventFilter::default();
    let whole = all(&plans, &everything);
    for after in [8, 3, 0, 5, 7, 1] {
        let number = |line: &String| line.split('.').next().unwrap().parse::<u64>().unwrap();
        let rest: Vec<String> = whole.iter().filter(|line| number(line) > after).cloned().collect();
        for plans in [&plans, &place.plans()] {
            assert_eq!(read(plans, Cursor::after(after), &everything, 4), rest, "after {after}");
        }
    }
}

pub(super) fn of_a_purged_plan_nothing_is_told(place: &Place) {
    let plans = place.plans();
    a_past(&plans);
    plans.purge(&plan("a"), &ada()).unwrap();
    let left = all(&plans, &EventFilter::default());
    assert_eq!(left.first().map(String::as_str), Some("2.0 plan_created"));
    assert!(left.iter().all(|line| ["2", "5", "6"].iter().any(|of_b| line.starts_with(of_b))), "{left:?}");
    let page = plans.events(Cursor::default(), &EventFilter::default(), 100).unwrap();
    assert_eq!((page.cursor, page.more), (Cursor::after(8), false));
}

pub(super) fn whoever_waits_is_told_as_soon_as_something_matches(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    create(&plans, "p", chain(2));
    let after = Cursor::after(plans.latest().unwrap());
    let wanted = kinds(&["task_unblocked"]);
    let found = std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| plans.wait_for_events(after, &wanted, 10, Duration::from_secs(60)).unwrap());
        write(&other, "p", retitle("nothing that is waited for")).unwrap();
        write(&other, "p", start("t0")).unwrap();
        write(&other, "p", finish("t0")).unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(found.events.iter().map(told).collect::<Vec<_>>(), ["4.1 ~task_unblocked t1"]);
}

pub(super) fn a_wait_ends_when_its_time_is_over(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let begun = Instant::now();
    let wait = Duration::from_millis(50);
    let page = plans.wait_for_events(Cursor::default(), &kinds(&["plan_failed"]), 10, wait).unwrap();
    assert!(begun.elapsed() >= wait);
    assert_eq!(
        page,
        EventPage { events: Vec::new(), cursor: Cursor::after(1), more: false, ..EventPage::default() }
    );
}
