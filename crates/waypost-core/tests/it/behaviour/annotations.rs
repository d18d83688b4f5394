//! Comments, labels and assignees: what people and agents say about a task changes nothing that runs.

use waypost_core::limits;

use super::*;

fn label(task: &str, labels: &[&str]) -> Command {
    Command::LabelTask { task: id(task), labels: labels.iter().map(|&label| label.into()).collect() }
}

fn assign(task: &str, assignee: &str) -> Command {
    Command::AssignTask { task: id(task), assignee: assignee.into() }
}

fn texts(desk: &Desk, task: &str) -> Vec<String> {
    let comments = desk.plan.task(task).unwrap().state.comments();
    comments.iter().map(|comment| format!("{}: {}", comment.by, comment.text)).collect()
}

fn is_over(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Invalid { .. })
}

#[test]
fn people_and_agents_comment_and_a_worker_cannot() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(ask::comment("a", "  mind the mirror\n"));
    desk.asks(&agent(), ask::comment("a", "it is read-only")).unwrap();
    assert_eq!(texts(&desk, "a"), ["person:ada: mind the mirror", "agent:planner: it is read-only"]);
    assert_eq!(desk.plan.task("a").unwrap().state.comments()[0].at, desk.plan.state().created_at.unwrap());
    let refusal = desk.asks(&worker(), ask::comment("a", "hello")).unwrap_err();
    assert!(matches!(refusal, Refusal::OnlyAPerson { .. }), "{refusal}");
    let refusal = desk.asks(&worker(), label("a", &["x"])).unwrap_err();
    assert!(matches!(refusal, Refusal::OnlyAPerson { .. }), "{refusal}");
    let refusal = desk.asks(&worker(), assign("a", "agent:x")).unwrap_err();
    assert!(matches!(refusal, Refusal::OnlyAPerson { .. }), "{refusal}");
    assert!(matches!(desk.refuses(ask::comment("none", "x")), Refusal::NoSuchTask { .. }));
    assert_eq!(
        desk.refuses(ask::comment("a", " \n ")).to_string(),
        "the plan would not be valid: task a: the comment is empty"
    );
}

#[test]
fn comments_labels_and_assignees_change_no_work_and_void_no_approval() {
    let mut desk = Desk::made_by(&agent(), plan_of([by_machine("a", &[]), by_machine("b", &["a"])]));
    let version = desk.plan.version();
    desk.does(Command::Approve { version, note: String::new(), work: None });
    let (digest, standings) = (desk.plan.work_digest(), desk.standings());
    let approved = desk.plan.state().approval.clone();
    assert!(approved.is_some());
    for command in [ask::comment("a", "mind the gap"), label("a", &["risky"]), assign("a", "agent:x")] {
        desk.asks(&agent(), command).unwrap();
    }
    assert_eq!(desk.plan.work_digest(), digest);
    assert_eq!(desk.standings(), standings);
    assert_eq!(desk.plan.state().approval, approved);
}

#[test]
fn labels_are_sorted_and_blank_or_equal_ones_left_out() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(label("a", &["risky", " frontend ", "", "risky"]));
    assert_eq!(desk.plan.task("a").unwrap().state.labels(), ["frontend", "risky"]);
    assert_eq!(desk.does(label("a", &["frontend", "risky"])), [], "nothing changes");
    desk.does(label("a", &[]));
    assert!(desk.plan.task("a").unwrap().state.aside.is_none(), "nothing is stored for it");
    desk.does(assign("a", "person:ada"));
    assert_eq!(desk.does(assign("a", " person:ada ")), []);
    assert_eq!(desk.plan.task("a").unwrap().state.assignee(), Some("person:ada"));
    desk.does(assign("a", ""));
    assert_eq!(desk.plan.task("a").unwrap().state.assignee(), None);
}

#[test]
fn each_limit_holds_and_one_more_is_refused() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    let text = |bytes: usize| "x".repeat(bytes);
    desk.does(ask::comment("a", &text(limits::COMMENT_BYTES_MAX)));
    assert!(is_over(&desk.refuses(ask::comment("a", &text(limits::COMMENT_BYTES_MAX + 1)))));
    let many: Vec<String> = (0..=limits::LABELS_MAX).map(|number| format!("l{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    desk.does(label("a", &many[..limits::LABELS_MAX]));
    assert!(is_over(&desk.refuses(label("a", &many))));
    desk.does(label("a", &[&text(limits::LABEL_BYTES_MAX)]));
    assert!(is_over(&desk.refuses(label("a", &[&text(limits::LABEL_BYTES_MAX + 1)]))));
    assert!(is_over(&desk.refuses(label("a", &["two\nlines"]))));
    desk.does(assign("a", &text(limits::ASSIGNEE_BYTES_MAX)));
    assert!(is_over(&desk.refuses(assign("a", &text(limits::ASSIGNEE_BYTES_MAX + 1)))));
    assert!(is_over(&desk.refuses(assign("a", "two\nlines"))));
}

#[test]
fn the_oldest_comments_are_dropped_and_those_of_people_last() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(ask::comment("a", "stop"));
    for number in 0..limits::COMMENTS_MAX + 5 {
        desk.asks(&agent(), ask::comment("a", &format!("{number}"))).unwrap();
    }
    let told = texts(&desk, "a");
    assert_eq!(told.len(), limits::COMMENTS_MAX);
    assert_eq!(told[0], "person:ada: stop", "an agent that talks much does not silence a person");
    assert_eq!(told[1], "agent:planner: 6");
}

#[test]
fn what_is_said_about_a_task_outlives_its_attempts_and_edits() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    for command in [ask::comment("a", "mind the gap"), label("a", &["risky"]), assign("a", "person:ada")] {
        desk.does(command);
    }
    desk.does(ask::finish("a", failed()));
    desk.does(ask::retry("a"));
    let notes = TaskChanges { notes: Some("again".into()), ..TaskChanges::default() };
    desk.does(ask::revise("a", notes));
    let mut draft = desk.plan.to_draft();
    draft.tasks[0].spec.description = "something else".into();
    desk.does(Command::Replace(Box::new(draft)));
    let reloaded = Plan::from_snapshot(desk.plan.snapshot().to_vec()).unwrap();
    for plan in [&desk.plan, &reloaded] {
        let state = &plan.task("a").unwrap().state;
        assert_eq!(state.comments().len(), 1);
        assert_eq!((state.labels(), state.assignee()), (&["risky".to_owned()][..], Some("person:ada")));
    }
}

#[test]
fn an_imported_plan_brings_no_comments() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(ask::comment("a", "approved by me"));
    desk.does(assign("a", "person:ada"));
    let copy = Desk::made_by(&agent(), Draft { id: None, ..desk.plan.to_draft() });
    let state = &copy.plan.task("a").unwrap().state;
    assert!(state.comments().is_empty(), "nobody speaks for a person by writing a file");
    assert_eq!(state.assignee(), None);
}
