//! The search over the tasks of all plans: what fits, in which order, and its bounds.

use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Actor, Draft, EffectiveStatus, PlanId};
use waypost_service::{
    Caller, CreateOptions, EditOp, Guard, SEARCH_WORDS_MAX, SEARCHED_PLANS_MAX, Service, TaskSearch,
};
use waypost_store::{MemoryStore, PlanStore};
use waypost_testkit::{id, plan_of, task};

fn service() -> Service {
    let config = Arc::new(Config::load(&[], []).unwrap());
    Service::new(Arc::new(PlanStore::new(Arc::new(MemoryStore::new()))), config)
}

fn robin() -> Caller {
    Caller::new(Actor::agent("robin"))
}

fn create(service: &Service, title: &str, mut draft: Draft) -> PlanId {
    draft.spec.title = title.to_owned();
    service.create(&robin(), draft, CreateOptions::default()).unwrap().plan
}

fn found(service: &Service, wanted: &TaskSearch) -> Vec<String> {
    let found = service.search_tasks(wanted, 10).unwrap();
    found.tasks.iter().map(|task| format!("{} {}", task.plan_title, task.task)).collect()
}

fn by_text(text: &str) -> TaskSearch {
    TaskSearch { text: text.to_owned(), ..TaskSearch::default() }
}

#[test]
fn a_task_is_found_by_words_of_it_and_of_its_plan_and_its_id_comes_first() {
    let service = service();
    let mut one = plan_of([task("deploy", &[]), task("deploy-docs", &[]), task("test", &[])]);
    one.tasks[2].spec.description = "Test what deploy has put there".to_owned();
    one.tasks[2].spec.notes = "mind the mirror".to_owned();
    create(&service, "Release", one);
    create(&service, "Nightly", plan_of([task("test", &[])]));
    assert_eq!(
        found(&service, &by_text("DEPLOY")),
        ["Release deploy", "Release deploy-docs", "Release test"]
    );
    assert_eq!(found(&service, &by_text("mirror")), ["Release test"]);
    assert_eq!(found(&service, &by_text("nightly test")), ["Nightly test"]);
    assert_eq!(
        found(&service, &by_text("nightly")),
        [""; 0],
        "the words of a plan alone find none of its tasks"
    );
    assert_eq!(found(&service, &by_text("deploy absent")), [""; 0]);
    // Plans that changed last come first.
    assert_eq!(found(&service, &by_text("test")), ["Nightly test", "Release test"]);
    assert_eq!(found(&service, &by_text("")).len(), 4, "without words every task fits");
}

#[test]
fn labels_the_assignee_the_status_and_the_plan_narrow_a_search() {
    let service = service();
    let plan = create(&service, "Release", plan_of([task("a", &[]), task("b", &["a"])]));
    let other = create(&service, "Other", plan_of([task("c", &[])]));
    let ops = vec![
        EditOp::LabelTask {
            task: id("a"),
            labels: Some(vec!["risky".to_owned(), "late".to_owned()]),
            add: Vec::new(),
            remove: vec!["late".to_owned()],
        },
        EditOp::AssignTask { task: id("b"), assignee: "person:ada".to_owned() },
        EditOp::CommentTask { task: id("b"), text: "words that nobody searches for".to_owned() },
    ];
    service.edit(&robin(), &plan, ops, Guard::NONE).unwrap();
    let risky = TaskSearch { label: Some("risky".to_owned()), ..TaskSearch::default() };
    assert_eq!(found(&service, &risky), ["Release a"]);
    assert_eq!(found(&service, &by_text("risky")), ["Release a"]);
    let of_ada = TaskSearch { assignee: Some("person:ada".to_owned()), ..TaskSearch::default() };
    assert_eq!(found(&service, &of_ada), ["Release b"]);
    let ready = TaskSearch { statuses: vec![EffectiveStatus::Blocked], ..TaskSearch::default() };
    assert_eq!(found(&service, &ready), ["Release b"]);
    let there = TaskSearch { plan: Some(other.clone()), ..TaskSearch::default() };
    assert_eq!(found(&service, &there), ["Other c"]);
    service.archive(&robin(), &other, Guard::NONE).unwrap();
    assert_eq!(found(&service, &by_text("c")), [""; 0]);
    assert_eq!(found(&service, &TaskSearch { archived: true, ..by_text("c") }), ["Other c"]);
}

#[test]
fn a_search_is_bounded_and_says_so() {
    let service = service();
    for number in 0..=SEARCHED_PLANS_MAX {
        create(&service, &format!("plan {number}"), plan_of([task("t", &[])]));
    }
    let all = service.search_tasks(&by_text("t"), 3).unwrap();
    assert_eq!((all.tasks.len(), all.total), (3, SEARCHED_PLANS_MAX));
    assert_eq!((all.plans_read, all.more), (SEARCHED_PLANS_MAX, true));
    assert_eq!(all.tasks[0].plan_title, format!("plan {SEARCHED_PLANS_MAX}"), "the latest are read first");
    // Words beyond the limit are ignored.
    let many = ["t"; SEARCH_WORDS_MAX].join(" ") + " absent";
    assert_eq!(service.search_tasks(&by_text(&many), 1).unwrap().total, SEARCHED_PLANS_MAX);
}
