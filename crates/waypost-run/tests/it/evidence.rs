//! Checks, questions and tasks that are given back, as the scheduler sees them and with real programs.

use serde_json::json;
use waypost_core::{
    Command, Evidence, Json, Outcome, Phase, QuestionRequest, Refusal, Retry, Status, TaskSpec, Work,
};
use waypost_run::{AttemptOutcome, Control, Idleness, RunEvent};
use waypost_service::admission as admit;
use waypost_testkit::{id, plan_of, task};

use crate::processes::{Place, configured};
use crate::world::{World, checked, config, job};

fn work(executor: &str) -> Box<Work> {
    Box::new(Work { executor: executor.to_owned(), inputs: Json::empty_object(), shape: None })
}

fn with_check(mut spec: TaskSpec, check: &str) -> TaskSpec {
    spec.check = Some(work(check));
    spec
}

fn world(tasks: impl IntoIterator<Item = TaskSpec>) -> World {
    let mut world = World::new(config(2), plan_of(tasks));
    world.settle();
    world
}

fn report(task: &str) -> Command {
    let outcome = Outcome::Done { result: Some("fine".into()), output: None, evidence: None };
    Command::FinishTask { task: id(task), attempt: None, outcome, retry: None }
}

fn answer(task: &str, answer: &str) -> Command {
    Command::AnswerQuestion { task: id(task), answer: answer.into() }
}

fn evidence(world: &World, task: &str) -> Evidence {
    world.truth.task(task).unwrap().state.evidence().unwrap().clone()
}

#[test]
fn what_an_agent_reports_is_checked_sent_back_and_done_when_the_check_passes() {
    let mut world = world([with_check(task("a", &[]), "look"), job("after", &["a"], &[])]);
    assert_eq!(world.rest(), Idleness::Over, "it is an agent's");
    world.agent(report("a")).unwrap();
    assert_eq!(world.running(), ["a"], "only the check runs");
    world.checks("a", false);
    assert_eq!((world.standing("a"), world.status("after")), ("ready", Status::Pending));
    world.agent(report("a")).unwrap();
    world.checks("a", true);
    assert_eq!((world.status("a"), world.running()), (Status::Done, vec!["after"]));
    let state = &world.truth.task("a").unwrap().state;
    assert_eq!((state.result.as_deref(), state.tries), (Some("fine"), 1));
}

#[test]
fn what_fails_its_check_too_often_has_failed() {
    let mut world = world([with_check(task("a", &[]), "look")]);
    for expected in ["ready", "ready", "failed"] {
        world.agent(report("a")).unwrap();
        world.checks("a", false);
        assert_eq!(world.standing("a"), expected);
    }
}

#[test]
fn a_machine_that_fails_its_check_is_tried_as_often_as_it_may() {
    let mut spec = with_check(job("a", &[], &[]), "look");
    spec.retry = Some(Box::new(Retry { attempts: 2, backoff_seconds: 0, backoff_seconds_max: 0 }));
    let mut world = world([spec]);
    world.checks("a", false);
    assert_eq!((world.running(), world.truth.task("a").unwrap().state.attempt), (vec!["a"], 2));
    world.checks("a", false);
    assert_eq!(world.status("a"), Status::Failed);
}

#[test]
fn a_check_that_asks_for_nothing_passes_at_once() {
    let mut noop = with_check(job("noop", &[], &[]), "noop");
    noop.work = Some(work("noop"));
    let mut world = world([noop, with_check(task("a", &[]), "noop")]);
    assert_eq!(world.status("noop"), Status::Done);
    world.agent(report("a")).unwrap();
    assert_eq!((world.status("a"), world.truth.state().phase), (Status::Done, Phase::Completed));
    assert_eq!(evidence(&world, "a").outcome, "nothing was to be checked");
    assert!(world.order.is_empty(), "no program ran");
}

#[test]
fn a_person_who_is_the_check_is_asked_and_the_answer_is_the_evidence() {
    let mut world = world([with_check(job("a", &[], &["x"]), "ask"), job("b", &[], &["x"])]);
    world.done("a");
    assert_eq!((world.standing("a"), world.running()), ("asking", vec!["b"]), "slot and lock are free");
    let question = world.truth.task("a").unwrap().state.question().unwrap().text.clone();
    assert!(question.starts_with("Is a done? do a\nReported by worker:w0"), "{question}");
    world.done("b");
    assert_eq!(world.rest(), Idleness::Waiting);
    world.person(answer("a", "the tests are missing")).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.status("a"), Status::Failed);
    assert!(!evidence(&world, "a").passed);
    let error = world.truth.task("a").unwrap().state.error.clone().unwrap();
    assert_eq!(error, "the check: person:ada answered: the tests are missing");

    let mut world = self::world([with_check(task("a", &[]), "ask")]);
    world.agent(report("a")).unwrap();
    for said in ["no", "Yes"] {
        assert_eq!(world.standing("a"), "asking");
        world.person(answer("a", said)).unwrap();
        world.look();
        world.settle();
        if said == "no" {
            assert_eq!(world.standing("a"), "ready");
            world.agent(report("a")).unwrap();
        }
    }
    assert_eq!(world.status("a"), Status::Done);
    assert_eq!(evidence(&world, "a").worker, "person:ada");
}

#[test]
fn the_answer_to_a_programs_own_question_is_no_check() {
    let mut world = world([with_check(job("a", &[], &[]), "ask")]);
    // Both are states by which a question about a report was or is known.
    for (attempt, state) in [(2, json!({ "check": 3 })), (3, json!({ "waypost:check": "sha256:0" }))] {
        let ask = QuestionRequest {
            text: "Is blue nice?".into(),
            state: Some(Json::of(&state)),
            ..QuestionRequest::default()
        };
        world.ends("a", AttemptOutcome::Asked(Box::new(ask)));
        world.settle();
        world.person(answer("a", "yes")).unwrap();
        world.look();
        world.settle();
        assert_eq!((world.running(), world.truth.task("a").unwrap().state.attempt), (vec!["a"], attempt));
    }
    world.done("a");
    assert_eq!(world.standing("a"), "asking", "the person was not asked about the report");
    world.person(answer("a", "yes")).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.status("a"), Status::Done);
}

#[test]
fn a_yes_counts_for_the_report_that_was_read_and_for_no_other() {
    let mut world = world([with_check(task("a", &[]), "ask"), task("z", &[])]);
    let reports = |value: &str| {
        let (result, output) = (Some("made".to_owned()), Some(Json::of(&json!({ "v": value }))));
        let outcome = Outcome::Done { result, output, evidence: None };
        Command::FinishTask { task: id("a"), attempt: None, outcome, retry: None }
    };
    let long = "x".repeat(5_000);
    for value in [&long, "good"] {
        world.agent(reports(value)).unwrap();
        let question = world.truth.task("a").unwrap().state.question().unwrap().text.clone();
        assert!(question.contains(&format!(r#"Output: {{"v":"{}"#, &value[..4])), "{question}");
        let all = format!("This is not all of it: task a of plan {} has the rest.", world.truth.id());
        assert_eq!(question.contains(&all), value.len() > 1_000, "{question}");
        assert!(question.len() < 3_000 && question.ends_with("say what is missing."), "{question}");
        for command in [Command::RetryTask { task: id("a") }, ask_cancel("a")] {
            assert!(matches!(world.agent(command), Err(Refusal::AwaitsCheck { .. })), "a person reads it");
        }
        if value == "good" {
            break;
        }
        world.person(Command::RetryTask { task: id("a") }).unwrap();
    }
    world.person(answer("a", "yes")).unwrap();
    // Before a run has looked, another report takes the place of the one that was read.
    for command in [ask_cancel("a"), Command::RetryTask { task: id("a") }, reports("other")] {
        world.person(command).unwrap();
    }
    world.look();
    world.settle();
    assert_eq!(world.standing("a"), "asking", "it is asked about again");
    world.person(answer("a", "yes")).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.status("a"), Status::Done);
    assert_eq!(world.truth.task("a").unwrap().state.output, Some(Json::of(&json!({ "v": "other" }))));
}

fn ask_cancel(task: &str) -> Command {
    Command::CancelTask { task: id(task), reason: "not this".to_owned() }
}

#[test]
fn a_task_that_asks_holds_nothing_and_goes_on_when_it_is_answered() {
    let mut world = world([job("a", &[], &["x"]), job("b", &[], &["x"])]);
    let ask = QuestionRequest {
        text: "left or right?".into(),
        choices: vec!["left".into(), "right".into()],
        ..QuestionRequest::default()
    };
    world.ends("a", AttemptOutcome::Asked(Box::new(ask)));
    world.settle();
    assert_eq!((world.standing("a"), world.running()), ("asking", vec!["b"]));
    world.done("b");
    assert_eq!((world.running(), world.rest()), (Vec::new(), Idleness::Waiting));
    assert!(matches!(world.person(answer("a", "up")), Err(Refusal::NotAChoice { .. })));
    world.person(answer("a", "l")).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.running(), ["a"]);
    let state = &world.truth.task("a").unwrap().state;
    assert_eq!((state.attempt, state.tries, state.answers()[0].answer.as_str()), (2, 0, "left"));
    world.done("a");
    assert_eq!(world.truth.state().phase, Phase::Completed);
}

#[test]
fn a_run_that_is_stopped_gives_back_what_it_had_and_says_so() {
    let once = |name: &str| {
        let mut spec = job(name, &[], &[]);
        spec.retry = Some(Box::new(Retry { attempts: 1, backoff_seconds: 0, backoff_seconds_max: 0 }));
        spec
    };
    let mut world = world([job("a", &[], &[]), once("once")]);
    world.control(Control::Stop);
    world.fails("a");
    world.fails("once");
    let state = &world.truth.task("a").unwrap().state;
    assert_eq!((state.status, state.tries, &state.error), (Status::Pending, 0, &None));
    assert_eq!(state.reason.as_deref(), Some("the run was stopped"));
    assert_eq!(world.status("once"), Status::Failed, "its author allows no second start");
}

#[test]
fn a_check_that_is_stopped_with_the_run_leaves_the_report() {
    let mut world = world([with_check(task("a", &[]), "look")]);
    world.agent(report("a")).unwrap();
    world.control(Control::Stop);
    world.ends("a", checked(false));
    world.settle();
    assert_eq!((world.standing("a"), world.truth.task("a").unwrap().state.tries), ("reported", 0));
}

#[test]
fn a_check_may_name_a_configured_check_and_work_may_not() {
    let allowed = |spec: TaskSpec| {
        let problems = admit::task_problems(&config(1), &spec);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(allowed(with_check(task("a", &[]), "look")).is_empty());
    assert_eq!(allowed(with_check(task("a", &[]), "lock")), ["task a: no executor is called lock"]);
    let mut spec = task("a", &[]);
    spec.work = Some(work("look"));
    assert_eq!(allowed(spec), ["task a: no executor is called look"]);
}

// Real programs

const WORKERS: &str = r#"
[executors.run]
kind = "process"
shell = true
command = ["""echo '{"made": 1}'; echo made it >&2"""]
[executors.asker]
kind = "process"
shell = true
command = ["""
job=$(cat)
case "$job" in
  *'"answer":"left"'*) echo '"went left"' ;;
  *) echo 'waypost:question {"question": "left or right?", "choices": ["left", "right"], "state": {"seen": 2}}' >&2; echo '"not done"' ;;
esac"""]
[checks.look]
shell = true
command = ["""cat > told.json; echo looking at token=$TOKEN >&2; echo '"seen"'; test -e ok"""]
secrets.TOKEN = { variable = "SECRET_SOURCE" }
"#;

#[test]
fn work_and_check_are_one_attempt_with_evidence_and_without_secrets() {
    let place = Place::new();
    std::fs::write(place.root.join("work/ok"), "").unwrap();
    let (plan, _, _) = place.run(configured(WORKERS), plan_of([with_check(job("a", &[], &[]), "look")]));
    let state = &plan.task("a").unwrap().state;
    assert_eq!((state.status, state.attempt), (Status::Done, 1), "{:?}", state.error);
    assert_eq!(state.output.as_ref().unwrap().as_str(), r#"{"made":1}"#, "the work's, not the check's");
    let evidence = state.evidence().unwrap();
    assert_eq!((evidence.passed, evidence.check.as_str()), (true, "look"));
    assert_eq!(evidence.output, Some(Json::of(&"seen")));
    assert_eq!(evidence.log_tail.as_deref(), Some("looking at token=***\n"), "not what the work said");
    let told = std::fs::read_to_string(place.root.join("work/told.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["reported"]["output"]["made"], 1, "the check sees what it is to look at");
}

#[test]
fn a_failing_check_fails_the_work_with_its_log() {
    let place = Place::new();
    let (plan, _, notices) =
        place.run(configured(WORKERS), plan_of([with_check(job("a", &[], &[]), "look")]));
    let state = &plan.task("a").unwrap().state;
    assert_eq!(state.status, Status::Failed);
    let evidence = state.evidence().unwrap();
    assert!(!evidence.passed && evidence.outcome.starts_with("it ended with exit code 1"), "{evidence:?}");
    assert!(state.error.as_ref().unwrap().starts_with("the check: "), "{:?}", state.error);
    let told = |notice: &RunEvent| matches!(notice, RunEvent::TaskEnded { evidence: Some(_), .. });
    assert!(notices.iter().any(told));
}

#[test]
fn a_worker_asks_and_gets_all_answers_when_it_goes_on() {
    let place = Place::new();
    let mut spec = job("a", &[], &[]);
    spec.work = Some(work("asker"));
    let (plan, answered) = place.run_and_answer(configured(WORKERS), plan_of([spec]), "left");
    assert_eq!(answered, 1, "it was told of the question once");
    let state = &plan.task("a").unwrap().state;
    assert_eq!((state.status, state.attempt, state.tries), (Status::Done, 2, 0));
    assert_eq!(state.output, Some(Json::of(&"went left")));
    assert_eq!(state.answers()[0].state, Some(Json::of(&serde_json::json!({ "seen": 2 }))));
}
