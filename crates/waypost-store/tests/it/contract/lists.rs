//! Lists of plans.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use waypost_core::{
    Command, Draft, Outcome, Phase, PlanChanges, QuestionRequest, Refinement, StartRefusal,
    StartRefusalReason, TaskSpec, Timestamp,
};
use waypost_store::{ArchiveFilter, PlanStore, PlanSummary, Query, Sort};
use waypost_testkit::task;

use crate::kit::*;
use crate::place::Place;
use crate::wrapped::Wrapped;

/// Plans in a store whose clock goes on by a second at each write.
fn ticking(place: &Place) -> PlanStore {
    let seconds = Arc::new(AtomicI64::new(1_000));
    let clock = move || Timestamp::from_micros(seconds.fetch_add(1, Ordering::Relaxed) * 1_000_000);
    PlanStore::new(Wrapped::with_clock(place.store(), clock))
}

fn titled(plans: &PlanStore, name: &str, title: &str) {
    create(plans, name, Draft::new(title));
}

/// Titles that a careless cursor would stumble over.
const TITLES: [(&str, &str); 7] =
    [("g", "b"), ("f", "a|b"), ("e", "a\\p"), ("d", "a"), ("c", "a|b"), ("b", ""), ("a", "a\\|")];

pub(super) fn pages_go_on_where_the_last_one_ended_in_every_order(place: &Place) {
    let plans = ticking(place);
    for (name, title) in TITLES {
        titled(&plans, name, title);
    }
    write(&plans, "e", add_all([TaskSpec { priority: 1, ..task("later", &[]) }])).unwrap();
    let expected = [
        (Sort::Updated, "eabcdfg"),
        (Sort::Created, "abcdefg"),
        (Sort::Title, "bdeacfg"),
        (Sort::Id, "abcdefg"),
        (Sort::Urgency, "egfdcba"),
    ];
    for (sort, order) in expected {
        for limit in 1..=9 {
            let query = Query { sort, limit, ..Query::default() };
            assert_eq!(list(&plans, &query).concat(), order, "{sort:?}, {limit} a page");
        }
    }
    let page = plans.heads(&Query { limit: 3, ..Query::default() }).unwrap();
    assert_eq!((page.items.len(), page.total), (3, 7), "a page says how many there are in all");
    let page = plans.heads(&Query { limit: 7, ..Query::default() }).unwrap();
    assert_eq!(page.next, None, "the last page knows that it is the last");
}

pub(super) fn a_page_goes_on_although_plans_change_in_between(place: &Place) {
    let plans = ticking(place);
    for name in ["a", "b", "c", "d"] {
        titled(&plans, name, "same");
    }
    let query = Query { sort: Sort::Title, limit: 2, ..Query::default() };
    let first = plans.heads(&query).unwrap();
    // The plan that the page ended with is gone, and a new one belongs before it.
    plans.purge(&plan("b"), &ada()).unwrap();
    titled(&plans, "aa", "same");
    let rest = Query { after: first.next, ..query };
    assert_eq!(list(&plans, &rest), ["c", "d"]);
}

pub(super) fn filters_find_what_they_name(place: &Place) {
    let plans = ticking(place);
    for name in ["a", "b", "c"] {
        create_small(&plans, name);
    }
    let changes = PlanChanges {
        owner: Some("planner".into()),
        queue: Some("fast".into()),
        status: Some("under review".into()),
        ..PlanChanges::default()
    };
    write(&plans, "b", revise(changes)).unwrap();
    write(&plans, "c", Command::Activate).unwrap();
    let found = |query: Query| list(&plans, &Query { sort: Sort::Id, limit: 2, ..query });
    let all = Query::default;
    assert_eq!(found(Query { owner: Some("planner".into()), ..all() }), ["b"]);
    assert_eq!(found(Query { owner: Some(String::new()), ..all() }), ["a", "c"], "nobody's plans");
    assert_eq!(found(Query { queue: Some("fast".into()), ..all() }), ["b"]);
    assert_eq!(found(Query { status: Some("under review".into()), ..all() }), ["b"]);
    assert_eq!(found(Query { status: Some("under".into()), ..all() }), Vec::<String>::new());
    assert_eq!(found(Query { phases: vec![Phase::Active], ..all() }), ["c"]);
    assert_eq!(found(Query { phases: vec![Phase::Active, Phase::Draft], ..all() }), ["a", "b", "c"]);
    let both = Query { phases: vec![Phase::Draft], queue: Some("fast".into()), ..all() };
    assert_eq!(found(both.clone()), ["b"]);
    assert_eq!(
        plans.heads(&Query { limit: 1, ..both }).unwrap().total,
        1,
        "the total counts what is filtered"
    );
}

pub(super) fn a_text_is_found_in_ids_and_titles_whatever_the_case(place: &Place) {
    let plans = ticking(place);
    titled(&plans, "rocket-1", "To the Moon");
    titled(&plans, "x", "a ROCKET of 100%");
    titled(&plans, "y", "under_score");
    let found = |text: &str| {
        list(&plans, &Query { text: Some(text.to_owned()), sort: Sort::Id, limit: 10, ..Query::default() })
    };
    assert_eq!(found("rocket"), ["rocket-1", "x"]);
    assert_eq!(found("mOOn"), ["rocket-1"]);
    assert_eq!(found("%"), ["x"], "signs mean themselves");
    assert_eq!(found("_"), ["y"]);
    assert_eq!(found("\\"), Vec::<String>::new());
    assert_eq!(found("mars"), Vec::<String>::new());
}

pub(super) fn the_archive_is_a_shelf_of_its_own(place: &Place) {
    let plans = ticking(place);
    for name in ["a", "b"] {
        create_small(&plans, name);
    }
    write(&plans, "a", Command::Archive).unwrap();
    let on =
        |shelf: ArchiveFilter| list(&plans, &Query { shelf, sort: Sort::Id, limit: 10, ..Query::default() });
    assert_eq!(on(ArchiveFilter::Current), ["b"]);
    assert_eq!(on(ArchiveFilter::Archived), ["a"]);
    assert_eq!(on(ArchiveFilter::All), ["a", "b"]);
    write(&plans, "a", Command::Unarchive).unwrap();
    assert_eq!(on(ArchiveFilter::Current), ["a", "b"]);
}

pub(super) fn heads_say_what_the_plans_say(place: &Place) {
    let plans = ticking(place);
    titled(&plans, "plain", "just words");
    let goal = Draft {
        spec: waypost_core::PlanSpec { goal: "reach it".into(), ..Default::default() },
        ..Draft::default()
    };
    create(&plans, "untitled", goal);
    create(&plans, "fan", waypost_testkit::fan_out(5));
    plans.write(request("fan", vec![start("root"), finish("root"), start("m3")])).unwrap();
    let judged = |task: &str, refinement| Command::RefineTask {
        task: task_id(task),
        refinement,
        reasoning: None,
        tokens: 0,
    };
    for task in ["m1", "m2"] {
        write(&plans, "fan", judged(task, Refinement::Atomic)).unwrap();
    }
    write(&plans, "fan", judged("m2", Refinement::Decomposing)).unwrap();
    write(&plans, "plain", Command::RequestApproval { message: "may I?".into() }).unwrap();
    let page = plans.heads(&everything()).unwrap();
    assert_eq!(page.items.len(), 3);
    for shown in &page.items {
        let plan = plans.at_version(&shown.id, shown.version).unwrap();
        assert_eq!(*shown, PlanSummary::of(&plan));
        assert_eq!(head(plans.store(), shown.id.as_str()).as_ref(), Some(shown));
    }
    let fan = page.items.iter().find(|head| head.id == plan("fan")).unwrap();
    assert_eq!((fan.counts.done, fan.counts.running, fan.counts.ready, fan.counts.blocked), (1, 1, 4, 1));
    assert_eq!(
        (fan.goals, fan.atomic),
        (7, 1),
        "one of seven was judged small enough, and another one no longer"
    );
    let untitled = page.items.iter().find(|head| head.id == plan("untitled")).unwrap();
    assert_eq!(untitled.title, "reach it", "a plan without a title is listed by its goal");
}

pub(super) fn totals_add_up_what_the_heads_say(place: &Place) {
    let plans = place.plans();
    for name in ["a", "b", "c", "d", "draft"] {
        create_small(&plans, name);
        write(&plans, name, add("second")).unwrap();
    }
    let queue = PlanChanges { queue: Some("gpu".into()), ..PlanChanges::default() };
    write(&plans, "b", waypost_core::Command::RevisePlan(Box::new(queue))).unwrap();
    write(&plans, "a", waypost_core::Command::Activate).unwrap();
    write(&plans, "b", waypost_core::Command::Activate).unwrap();
    let leased =
        waypost_store::WriteRequest { lease_seconds: Some(3_600), ..request("b", vec![start("first")]) };
    plans.write(leased).unwrap();
    write(&plans, "c", waypost_core::Command::Archive).unwrap();
    plans.purge(&plan("d"), &ada()).unwrap();
    let store = place.store();
    let totals = store.totals().unwrap();
    let phases = Phase::ALL.map(|phase| match phase {
        Phase::Active => 2,
        Phase::Draft => 1,
        Phase::AwaitingApproval | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => 0,
    });
    assert_eq!((totals.plans, totals.archived), (phases, 1));
    let tasks = totals.tasks;
    assert_eq!(
        (tasks.total, tasks.ready, tasks.blocked, tasks.running),
        (6, 3, 2, 1),
        "a draft has nothing ready"
    );
    let queues: Vec<(&str, u64, u64)> =
        totals.queues.iter().map(|(name, queue)| (name.as_str(), queue.ready, queue.in_progress)).collect();
    assert_eq!(queues, [("", 2, 0), ("gpu", 1, 1)]);
    assert_eq!(totals.queues["gpu"].ready_since, head(&store, "b").unwrap().updated_at);
    assert_eq!((totals.leases, totals.leases_overdue), (1, 0));
    assert_eq!(
        totals.ready_since,
        head(&store, "a").unwrap().updated_at,
        "the one that was left alone longest"
    );
}

pub(super) fn what_needs_a_person_comes_first_and_pages_keep_their_limit(place: &Place) {
    let plans = ticking(place);
    for name in ["rests", "asks", "waits", "failed", "runs", "idle", "asked", "later", "refused"] {
        create_small(&plans, name);
    }
    write(&plans, "refused", Command::Activate).unwrap();
    let refusal = StartRefusal {
        worker: "w1".into(),
        reason: StartRefusalReason::NoDigest,
        digest: String::new(),
        differences: Vec::new(),
    };
    write(&plans, "refused", Command::RefuseStart(Box::new(refusal))).unwrap();
    assert!(head(plans.store(), "refused").unwrap().is_refused());
    let ask = || Command::AskQuestion {
        task: task_id("first"),
        attempt: None,
        ask: Box::new(QuestionRequest { text: "which one?".into(), ..QuestionRequest::default() }),
    };
    for name in ["asks", "failed", "runs", "idle", "asked"] {
        write(&plans, name, Command::Activate).unwrap();
    }
    write(&plans, "runs", start("first")).unwrap();
    write(&plans, "failed", start("first")).unwrap();
    let outcome = Outcome::Failed { error: "no disk".to_owned(), evidence: None };
    let fail = Command::FinishTask { task: task_id("first"), attempt: None, outcome, retry: None };
    write(&plans, "failed", fail).unwrap();
    for name in ["asks", "asked"] {
        write(&plans, name, start("first")).unwrap();
        write(&plans, name, ask()).unwrap();
    }
    write(&plans, "waits", Command::RequestApproval { message: String::new() }).unwrap();
    let answer = Command::AnswerQuestion { task: task_id("first"), answer: "this one".into() };
    write(&plans, "asked", answer).unwrap();
    write(&plans, "later", add("more")).unwrap();
    write(&plans, "idle", add("more")).unwrap();
    assert_eq!(head(plans.store(), "asks").unwrap().asking, 1);
    assert_eq!(head(plans.store(), "asked").unwrap().asking, 0);
    for limit in 1..=10 {
        let query = Query { sort: Sort::Attention, limit, ..Query::default() };
        let order = ["refused", "waits", "asks", "failed", "runs", "idle", "asked", "later", "rests"];
        assert_eq!(list(&plans, &query), order, "{limit} a page");
        let page = plans.heads(&query).unwrap();
        assert_eq!((page.items.len(), page.total), (limit.min(9), 9));
    }
}
