//! The status of a plan is what needs somebody most, and the inbox lists what waits for a person.

use std::sync::Arc;

use waypost_config::{Config, Layer, Origin};
use waypost_core::{
    Command, Dependency, ExternalTaskRef, Phase, Plan, QuestionRequest, Task, TaskId, TaskSpec,
};
use waypost_service::{
    CreateOptions, Guard, HumanExecutors, InboxKind, PlanStatus, Record, Service, ServiceError, TaskReport,
};
use waypost_store::{MemoryStore, PlanStore, Query, Worker, WorkerKind};
use waypost_testkit::{id, plan_of, task};

use crate::gates::{Desk, agent, done, present, with_work};

fn status(desk: &Desk) -> PlanStatus {
    let by_id = |head: &waypost_store::PlanSummary| head.id == desk.plan;
    let head = desk.service.plans().heads(&Query { limit: 10, ..Query::default() }).unwrap().items;
    let head = head.into_iter().find(by_id).unwrap();
    desk.service.plan_status(&desk.service.plan_statuses().unwrap(), &head).unwrap()
}

fn shown(desk: &Desk) -> (&'static str, String, bool) {
    let PlanStatus { sign, label, needs_you, .. } = status(desk);
    (sign.name(), label, needs_you)
}

fn is(name: &'static str, label: &str, needs_you: bool) -> (&'static str, String, bool) {
    (name, label.to_owned(), needs_you)
}

/// A person's active plan of these tasks.
fn active(tasks: impl IntoIterator<Item = TaskSpec>) -> Desk {
    let desk = Desk::of(&present(), plan_of(tasks));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    desk
}

fn register(service: &Service) {
    let mut row = Worker::new("mill:1", "mill", WorkerKind::Worker, vec!["default".to_owned()]);
    service.register_worker(&mut row, 60).unwrap();
}

fn start(desk: &Desk, task: &str) {
    let commands = vec![Command::StartTask { task: id(task), worker: "mill:1".to_owned() }];
    let (plan, by) = (desk.plan.clone(), waypost_core::Actor::worker("mill:1"));
    desk.service.record(Record { plan, by, commands, known_version: None, lease_seconds: Some(60) }).unwrap();
}

fn fail(desk: &Desk, task: &str, error: &str) {
    desk.report(&present(), task, TaskReport::Failed { error: error.to_owned() }).unwrap();
}

fn ask(desk: &Desk, task: &str, text: &str, choices: &[&str]) {
    desk.claim(&agent(), task).unwrap();
    let choices = choices.iter().map(|&choice| choice.to_owned()).collect();
    let question = QuestionRequest { text: text.to_owned(), choices, ..QuestionRequest::default() };
    desk.report(&agent(), task, TaskReport::Question(Box::new(question))).unwrap();
}

#[test]
fn an_active_plan_is_running_only_while_a_task_runs() {
    let desk = active([with_work("build", "build", &[]), with_work("later", "build", &["build"])]);
    assert_eq!(shown(&desk), is("idle", "idle: no worker", false));
    assert!(status(&desk).detail.contains("default"), "{:?}", status(&desk));
    register(&desk.service);
    assert_eq!(shown(&desk), is("idle", "idle: waits for a worker", false));
    start(&desk, "build");
    assert_eq!(shown(&desk), is("running", "running", false));
    let todo = active([task("todo", &[])]);
    assert_eq!(shown(&todo), is("idle", "idle: waits for an agent", false));
}

#[test]
fn a_task_for_a_person_comes_before_failures_and_what_runs() {
    let desk = active([
        with_work("gate", "human", &[]),
        with_work("build", "build", &[]),
        task("todo", &[]),
        task("other", &[]),
    ]);
    start(&desk, "build");
    assert_eq!(shown(&desk), is("person", "your task", true));
    fail(&desk, "todo", "no disk\nat line 3");
    assert_eq!(shown(&desk), is("person", "your task", true));
    desk.answer(&present(), "gate", "yes").unwrap();
    assert_eq!(shown(&desk), is("failed", "1 task failed", true));
    assert!(status(&desk).detail.ends_with(": no disk"), "{:?}", status(&desk));
    ask(&desk, "other", "Which?", &["a", "b"]);
    assert_eq!(shown(&desk), is("asking", "1 question", true));
    assert_eq!(status(&desk).detail, "Which?");
}

#[test]
fn paused_rejected_and_ended_plans_say_so() {
    let desk = active([task("todo", &[])]);
    desk.service.pause(&present(), &desk.plan, "until Monday", Guard::NONE).unwrap();
    assert_eq!(shown(&desk), is("paused", "paused by ada", false));
    assert_eq!(status(&desk).detail, "until Monday");
    desk.service.finish(&present(), &desk.plan, Phase::Cancelled, "", Guard::NONE).unwrap();
    assert_eq!(shown(&desk), is("cancelled", "cancelled", false));

    let desk = Desk::of(&agent(), plan_of([with_work("build", "build", &[])]));
    assert_eq!(shown(&desk), is("draft", "draft", false));
    desk.service.request_approval(&agent(), &desk.plan, "", Guard::NONE).unwrap();
    assert_eq!(shown(&desk), is("approval", "needs approval", true));
    desk.service.reject(&present(), &desk.plan, "tests first", Guard::NONE).unwrap();
    assert_eq!(shown(&desk), is("rejected", "rejected by ada", false));
    assert_eq!(status(&desk).detail, "tests first");

    let desk = active([task("todo", &[]), task("behind", &["todo"])]);
    fail(&desk, "todo", "no disk");
    assert_eq!(shown(&desk), is("failed", "failed", true));
    desk.service.archive(&present(), &desk.plan, Guard::NONE).unwrap();
    let statuses = desk.service.plan_statuses().unwrap();
    let archived = desk.service.read(&desk.plan, |plan| statuses.of_plan(plan)).unwrap();
    assert!(!archived.needs_you, "what is archived needs nobody");
}

#[test]
fn the_inbox_lists_what_waits_and_how_much_it_holds_up() {
    let desk = active([
        with_work("gate", "human", &[]),
        with_work("build", "build", &[]),
        task("first", &[]),
        task("second", &[]),
        task("ask", &[]),
        task("behind", &["ask"]),
        task("further", &["behind"]),
        task("skipped", &["first"]),
    ]);
    start(&desk, "build");
    for task in ["first", "second"] {
        fail(&desk, task, "ld: memory exhausted\nexit 137");
    }
    ask(&desk, "ask", "Which?", &["a", "b"]);
    let asked = desk.service.create(&agent(), plan_of([with_work("x", "build", &[])]), Default::default());
    let asked = asked.unwrap().plan;
    desk.service.request_approval(&agent(), &asked, "", Guard::NONE).unwrap();

    let inbox = desk.service.inbox().unwrap();
    let kinds: Vec<InboxKind> = inbox.items.iter().map(|item| item.kind).collect();
    assert_eq!(kinds, [InboxKind::Approval, InboxKind::Question, InboxKind::Task, InboxKind::Failure]);
    let [approval, question, person, failure] = &inbox.items[..] else { panic!("{inbox:?}") };
    assert_eq!((&approval.plan, approval.commands.as_ref().unwrap().total), (&asked, 1));
    assert_eq!((question.text.as_str(), question.holds_up), ("Which?", 2));
    assert_eq!(question.choices, ["a", "b"]);
    assert_eq!(person.tasks, [id("gate")]);
    assert_eq!((failure.tasks_total, failure.error.as_str()), (2, "ld: memory exhausted"));
    assert_eq!(failure.tasks, ["first", "second"].map(id));
    assert_eq!(failure.holds_up, 1);
    assert_eq!((inbox.total, inbox.running_total), (4, 1));
    assert_eq!(inbox.plans_total, 2, "both plans need a person");
    assert_eq!(inbox.totals.into_values().collect::<Vec<_>>(), [1, 1, 1, 1]);
    assert_eq!(inbox.running[0].task, TaskId::new("build").unwrap());
}

#[test]
fn the_inbox_says_where_there_is_more_to_read() {
    let gate = |name: &str, description: &str, notes: &str| TaskSpec {
        description: description.into(),
        notes: notes.into(),
        ..with_work(name, "human", &[])
    };
    let desk = active([
        gate("a", "Is the typo fixed?", ""),
        gate("b", "Is the typo fixed?\nBy saying yes you allow the deployment.", ""),
        gate("c", "Is the typo fixed?", "and deploy"),
        task("d", &[]),
        task("e", &[]),
    ]);
    ask(&desk, "d", "Which?", &["a", "b"]);
    ask(&desk, "e", &"Do you like tea? ".repeat(100), &["yes", "no"]);
    let cut: Vec<String> = desk
        .service
        .inbox()
        .unwrap()
        .items
        .into_iter()
        .filter(|item| item.is_cut)
        .flat_map(|item| item.tasks)
        .map(|task| task.to_string())
        .collect();
    assert_eq!(cut, ["e", "b", "c"]);
}

#[test]
fn the_numbers_of_the_inbox_count_what_it_does_not_list() {
    // More than the inbox lists.
    const QUESTIONS: usize = 205;
    let names: Vec<String> = (0..QUESTIONS).map(|number| format!("q{number}")).collect();
    let desk = active(names.iter().map(|name| task(name, &[])).chain([with_work("gate", "human", &[])]));
    for name in &names {
        ask(&desk, name, "Which?", &[]);
    }
    let inbox = desk.service.inbox().unwrap();
    assert!(inbox.items.len() < QUESTIONS, "{}", inbox.items.len());
    assert!(inbox.items.iter().all(|item| item.kind == InboxKind::Question));
    assert_eq!(inbox.totals[&InboxKind::Question], QUESTIONS);
    assert_eq!(inbox.totals[&InboxKind::Task], 1, "it is counted, though none is listed");
    assert_eq!((inbox.total, inbox.plans_total), (QUESTIONS + 1, 1));
}

/// The same plans with another configuration.
fn elsewhere(
    desk: Desk,
    load: impl Fn() -> Result<Arc<Config>, ServiceError> + Send + Sync + 'static,
) -> Desk {
    let service = Service::with_config_on_demand(Arc::clone(desk.service.plans()), Box::new(load));
    Desk { service, plan: desk.plan }
}

#[test]
fn a_task_of_an_executor_that_was_a_person_at_the_approval_waits_for_one_where_nobody_knows_the_executor() {
    let text = "[executors.sign]\nkind = \"human\"\n".to_owned();
    let layer = Layer { origin: Origin::User, name: "config.toml".to_owned(), text };
    let config = Arc::new(Config::load(&[layer], []).unwrap());
    let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
    let service = Service::new(plans, config);
    let tasks = plan_of([with_work("sign", "sign", &[]), with_work("then", "sign", &["sign"])]);
    let plan = service.create(&agent(), tasks, CreateOptions::default()).unwrap().plan;
    service.request_approval(&agent(), &plan, "", Guard::NONE).unwrap();
    let seen = service.preview(&plan).unwrap().seen();
    service.approve(&present(), &plan, seen, "", Guard::NONE).unwrap();
    let desk = Desk { service, plan };
    assert_eq!(shown(&desk), is("person", "your task", true));
    let desk = elsewhere(desk, || Ok(Arc::default()));
    assert_eq!(shown(&desk), is("person", "your task", true));
    assert_eq!(desk.service.inbox().unwrap().items[0].kind, InboxKind::Task);
    assert!(desk.report(&agent(), "sign", done()).is_err(), "it is still a person's");
    desk.answer(&present(), "sign", "yes").unwrap();
    assert_eq!(shown(&desk), is("person", "your task", true), "the next one");
}

#[test]
fn a_blocked_plan_says_what_it_waits_for() {
    let desk = active([task("held", &[]), task("behind", &["held"])]);
    let hold = Command::HoldTask { task: id("held"), reason: "until Monday".to_owned() };
    let (plan, by) = (desk.plan.clone(), present().actor);
    desk.service
        .record(Record { plan, by, commands: vec![hold], known_version: None, lease_seconds: None })
        .unwrap();
    assert_eq!(shown(&desk), is("blocked", "blocked: 1 task held", false));
    let detail = status(&desk).detail;
    assert!(detail.starts_with("held waits for the hold of held to end: held by person:ada"), "{detail}");

    let there = ExternalTaskRef { agent: Some("ops".to_owned()), plan: None, task: id("deploy") };
    let on = vec![Dependency::External(Box::new(there))];
    let desk = active([TaskSpec { depends_on: on, ..task("tell", &[]) }, task("then", &["tell"])]);
    assert_eq!(shown(&desk), is("blocked", "blocked", false));
    assert_eq!(status(&desk).detail, "tell waits for ops:deploy: agent ops has no plan so far");
}

#[test]
fn a_persons_task_has_one_sign_once_it_is_its_turn() {
    let desk =
        active([with_work("gate", "human", &[]), with_work("later", "human", &["gate"]), task("todo", &[])]);
    let signs = || {
        let of = |plan: &Plan| {
            let config = Config::default();
            let people = HumanExecutors::of(&config, plan);
            let sign = |(task, _): (&Task, usize)| {
                people.sign(task, plan.effective_status(task.spec.id.as_str()).unwrap()).name()
            };
            (plan.tasks().map(sign).collect::<Vec<_>>(), people.awaited().count())
        };
        desk.service.read(&desk.plan, of).unwrap()
    };
    assert_eq!(signs(), (vec!["person", "blocked", "ready"], 1));
    desk.service.pause(&present(), &desk.plan, "", Guard::NONE).unwrap();
    assert_eq!(signs(), (vec!["ready", "blocked", "ready"], 0), "nothing starts in a paused plan");
}

#[test]
fn a_persons_task_waits_for_a_person_also_where_the_configuration_cannot_be_read() {
    let unreadable = || {
        let (message, details, hint) = ("bad".to_owned(), Vec::new(), String::new());
        Err(ServiceError::Configuration { message, details, hint })
    };
    let desk = elsewhere(active([with_work("gate", "human", &[])]), unreadable);
    assert_eq!(shown(&desk), is("person", "your task", true));
}

#[test]
fn a_task_for_a_person_waits_since_it_could_be_done_whatever_is_said_about_it() {
    let desk = active([task("before", &[]), with_work("gate", "human", &["before"])]);
    desk.report(&present(), "before", done()).unwrap();
    let ended = desk.task("before").state.finished_at;
    let comment = Command::CommentTask { task: id("gate"), text: "soon?".to_owned() };
    let (plan, by) = (desk.plan.clone(), agent().actor);
    desk.service
        .record(Record { plan, by, commands: vec![comment], known_version: None, lease_seconds: None })
        .unwrap();
    assert!(desk.task("gate").state.updated_at > ended);
    assert_eq!(desk.service.inbox().unwrap().items[0].since, ended);
}
