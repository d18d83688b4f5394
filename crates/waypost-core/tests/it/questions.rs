//! Questions to people: who may ask, who may answer, and the state of the task in between.

use waypost_core::{
    BlockReason, Command, EffectiveStatus, Json, Outcome, Plan, QuestionRequest, Refusal, Status,
    TaskChanges, limits,
};
use waypost_testkit::{id, plan_of, task};

use crate::kit::{Desk, ada, agent, ask, done, skipped, system, work, worker};

/// A plan in which `a` has an open question with these choices.
fn asking(choices: &[&str]) -> Desk {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("after", &["a"])]));
    desk.does(ask::start("a"));
    desk.asks(&worker(), ask::question("a", choices)).unwrap();
    desk
}

#[test]
fn a_task_that_asks_waits_and_goes_on_with_the_answer() {
    let mut desk = asking(&[]);
    assert_eq!(desk.standings(), "a:asking after:blocked");
    assert_eq!((desk.plan.ready().count(), desk.plan.asking().count()), (0, 1));
    assert_eq!(desk.plan.waiting("a", desk.now), [BlockReason::Answer("which one?".into())]);
    assert_eq!(desk.plan.task("a").unwrap().state.worker, None, "nobody works on it");
    assert!(matches!(desk.refuses(ask::start("a")), Refusal::AwaitsAnswer { .. }));
    assert!(matches!(desk.refuses(ask::finish("a", done())), Refusal::AwaitsAnswer { .. }));

    desk.does(ask::answer("a", " the left one "));
    assert_eq!((desk.standing("a"), desk.plan.asking().count()), (EffectiveStatus::Ready, 0));
    let state = &desk.plan.task("a").unwrap().state;
    let answer = &state.answers()[0];
    assert_eq!((answer.question.as_str(), answer.answer.as_str()), ("which one?", "the left one"));
    assert_eq!((&answer.by, state.tries, state.question()), (&ada(), 0, None));
    desk.does(ask::start("a"));
    assert_eq!(desk.plan.task("a").unwrap().state.answers().len(), 1, "whoever goes on reads it");
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.standings(), "a:done after:ready");
}

#[test]
fn only_a_person_answers_and_only_what_is_asked() {
    let mut desk = asking(&[]);
    for by in [agent(), worker(), system()] {
        let refusal = desk.asks(&by, ask::answer("a", "yes")).unwrap_err();
        assert!(matches!(refusal, Refusal::OnlyAPerson { what: "answer a question", .. }), "{refusal}");
    }
    assert_eq!(desk.refuses(ask::answer("after", "yes")), Refusal::NoQuestion { task: "after".into() });
    assert!(matches!(desk.refuses(ask::answer("a", "  ")), Refusal::Invalid { .. }));
}

#[test]
fn choices_are_what_a_person_reads() {
    let desk = asking(&["no\u{202e}sey", "👩\u{200d}💻", "no"]);
    let question = desk.plan.task("a").unwrap().state.question().unwrap();
    assert_eq!(question.choices, [r"no\u{202e}sey", "👩\u{200d}💻", "no"]);
}

#[test]
fn choices_are_kept_to() {
    for (said, meant) in [
        ("left", Some("Left")),
        ("RIGHT", Some("Right")),
        ("le", Some("Left")),
        ("r", None),
        ("ri", Some("Right")),
        ("re", Some("Rest")),
        ("", None),
        ("up", None),
    ] {
        let mut desk = asking(&["Left", "Right", "Rest"]);
        match meant {
            Some(meant) => {
                desk.does(ask::answer("a", said));
                assert_eq!(desk.plan.task("a").unwrap().state.answers()[0].answer, meant, "{said}");
            }
            None => {
                let refusal = desk.refuses(ask::answer("a", said));
                let choices = vec!["Left".to_owned(), "Right".into(), "Rest".into()];
                assert_eq!(refusal, Refusal::NotAChoice { task: "a".into(), answer: said.into(), choices });
            }
        }
    }
}

#[test]
fn a_choice_is_offered_once() {
    let desk = asking(&["Left", " left ", "Right", "LEFT"]);
    assert_eq!(desk.plan.task("a").unwrap().state.question().unwrap().choices, ["Left", "Right"]);
}

#[test]
fn only_whoever_works_on_a_task_asks_for_it() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    assert!(matches!(desk.refuses(ask::question("a", &[])), Refusal::WrongStatus { .. }));
    desk.asks(&agent(), Command::StartTask { task: id("a"), worker: "agent:planner".into() }).unwrap();
    let other = waypost_core::Actor::agent("other");
    assert!(matches!(desk.asks(&other, ask::question("a", &[])), Err(Refusal::AlreadyRunning { .. })));
    let late = Command::AskQuestion {
        task: id("a"),
        attempt: Some(0),
        ask: Box::new(QuestionRequest { text: "hm?".into(), ..QuestionRequest::default() }),
    };
    assert!(matches!(desk.asks(&other, late), Err(Refusal::StaleAttempt { .. })));
    desk.asks(&agent(), ask::question("a", &[])).unwrap();
    let question = desk.plan.task("a").unwrap().state.question().cloned().unwrap();
    assert_eq!((question.by.as_str(), question.attempt), ("agent:planner", 1));
}

#[test]
fn an_end_or_another_task_of_the_same_name_leaves_no_question_open() {
    let no_question = |desk: &Desk| {
        assert_eq!(desk.plan.task("a").unwrap().state.question(), None);
        assert_eq!(desk.plan.asking().count(), 0);
    };
    let mut desk = asking(&[]);
    desk.does(ask::cancel("a"));
    no_question(&desk);
    let mut desk = asking(&[]);
    desk.does(ask::finish("a", skipped()));
    no_question(&desk);
    let mut desk = asking(&[]);
    desk.does(ask::retry("a"));
    no_question(&desk);
    assert_eq!(desk.standing("a"), EffectiveStatus::Ready);
    let mut desk = asking(&[]);
    desk.does(ask::revise("a", TaskChanges { work: Some(Some(*work())), ..TaskChanges::default() }));
    no_question(&desk);
    let mut desk = asking(&[]);
    desk.does(ask::remove("a", true));
    assert_eq!(desk.plan.asking().count(), 0);
}

#[test]
fn a_check_may_ask_and_the_report_stays() {
    let mut spec = task("a", &[]);
    spec.check = Some(work());
    let mut desk = Desk::with(plan_of([spec]));
    desk.asks(&agent(), ask::finish("a", done())).unwrap();
    desk.asks(&worker(), ask::start("a")).unwrap();
    let ask =
        QuestionRequest { text: "is it?".into(), state: Some(Json::of(&7)), ..QuestionRequest::default() };
    desk.asks(&worker(), Command::AskQuestion { task: id("a"), attempt: Some(1), ask: Box::new(ask) })
        .unwrap();
    assert_eq!(desk.standing("a"), EffectiveStatus::Asking);
    desk.does(ask::answer("a", "yes"));
    assert_eq!(desk.standing("a"), EffectiveStatus::Reported);
    assert_eq!(desk.plan.task("a").unwrap().state.answers()[0].state, Some(Json::of(&7)));
}

#[test]
fn questions_and_answers_have_bounds() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(ask::start("a"));
    let text = |bytes: usize| "x".repeat(bytes);
    let of = |ask: QuestionRequest| Command::AskQuestion { task: id("a"), attempt: None, ask: Box::new(ask) };
    let state = |bytes: usize| Some(Json::of(&text(bytes - 2)));
    let choices = |count: usize| vec!["x".to_owned(); count];
    let too_much = [
        QuestionRequest { text: text(limits::QUESTION_BYTES_MAX + 1), ..QuestionRequest::default() },
        QuestionRequest {
            text: "?".into(),
            choices: choices(limits::CHOICES_MAX + 1),
            ..QuestionRequest::default()
        },
        QuestionRequest {
            text: "?".into(),
            state: state(limits::QUESTION_STATE_BYTES_MAX + 1),
            ..QuestionRequest::default()
        },
        QuestionRequest { text: " ".into(), ..QuestionRequest::default() },
        QuestionRequest { text: "?".into(), choices: vec![String::new()], ..QuestionRequest::default() },
    ];
    for ask in too_much {
        assert!(matches!(desk.refuses(of(ask)), Refusal::Invalid { .. }));
    }
    desk.does(of(QuestionRequest {
        text: text(limits::QUESTION_BYTES_MAX),
        state: state(limits::QUESTION_STATE_BYTES_MAX),
        ..QuestionRequest::default()
    }));
    assert!(matches!(
        desk.refuses(ask::answer("a", &text(limits::QUESTION_BYTES_MAX + 1))),
        Refusal::Invalid { .. }
    ));
    desk.does(ask::answer("a", &text(limits::QUESTION_BYTES_MAX)));
    for number in 1..=limits::ANSWERS_MAX {
        desk.does(ask::start("a"));
        desk.does(ask::question("a", &[]));
        desk.does(ask::answer("a", &number.to_string()));
    }
    let answers = desk.plan.task("a").unwrap().state.answers();
    assert_eq!((answers.len(), answers[0].answer.as_str()), (limits::ANSWERS_MAX, "1"), "the oldest is gone");
}

#[test]
fn a_question_survives_a_snapshot() {
    let mut desk = asking(&["Left", "Right"]);
    let loaded = Plan::from_snapshot(desk.plan.snapshot().to_vec()).unwrap();
    assert_eq!((loaded.effective_status("a"), loaded.asking().count()), (Some(EffectiveStatus::Asking), 1));
    assert_eq!((loaded.ready().count(), loaded.to_draft()), (0, desk.plan.to_draft()));
}

#[test]
fn a_task_whose_reason_to_be_is_gone_asks_no_more() {
    let mut desk = Desk::with(plan_of([task("first", &[]), task("a", &["first"])]));
    desk.does(ask::finish("first", done()));
    desk.does(ask::start("a"));
    desk.does(ask::question("a", &[]));
    desk.does(ask::retry("first"));
    desk.does(ask::finish("first", Outcome::Failed { error: "no".into(), evidence: None }));
    assert_eq!((desk.status("a"), desk.plan.asking().count()), (Status::Skipped, 0));
}
