use waypost_core::{Command, Digest, Outcome, TaskSpec};
use waypost_llm::token_estimate::estimate;
use waypost_planner::digest::{LIST_MAX, SUMMARY_WORDS_MAX};
use waypost_planner::{Digested, Digesting, Fidelity, GenerationFailed, NoDigest, PromptPolicy, Repair};
use waypost_testkit::{id, plan_of};

use crate::kit::{Desk, answer, said};

const RESULT: &str = "Sessions are signed with RS256 so that keys can be rotated; the code is in src/auth.rs. Logging out \
    deletes the session at once. Load tests showed 2000 logins per second. The cookie is called sid.";
const DIGEST: &str = r#"{"summary": "Sessions are signed with RS256.", "key_decisions": ["RS256 for rotation"], "artifacts": ["src/auth.rs"]}"#;
const QUESTIONS: &str = r#"{"questions": [{"question": "How are sessions signed?", "answer": "RS256"},
    {"question": "Where is the code?", "answer": "src/auth.rs"}, {"question": "How many logins per second?", "answer": "2000"},
    {"question": "What is the cookie called?", "answer": "sid"}]}"#;
const ANSWERS: &str = r#"{"answers": [{"question": 1, "answer": "with RS256"}, {"question": 2, "answer": "src/auth.rs"},
    {"question": 3, "answer": "unknown"}, {"question": 4, "answer": "unknown"}]}"#;
const MARKS: &str = r#"{"marks": [{"question": 1, "agrees": true}, {"question": 2, "agrees": true}, {"question": 3, "agrees": false}, {"question": 4, "agrees": true}]}"#;

fn desk() -> Desk {
    let mut desk =
        Desk::with(plan_of([TaskSpec::new(id("auth"), "Build sessions"), TaskSpec::new(id("open"), "Test")]));
    let outcome = Outcome::Done { result: Some(RESULT.into()), output: None, evidence: None };
    desk.does(&Command::FinishTask { task: id("auth"), attempt: None, outcome, retry: None });
    desk
}

fn conversation(desk: &Desk, fidelity: Fidelity) -> Digesting {
    Digesting::new(PromptPolicy::default(), fidelity, &desk.plan, &id("auth")).unwrap()
}

#[track_caller]
fn attached(desk: &mut Desk, digested: Digested) -> Digest {
    let Digested::Done { command, .. } = digested else { panic!("{digested:?}") };
    desk.does(&command);
    desk.task("auth").spec.thinking.clone().unwrap().digest.unwrap()
}

#[test]
fn a_digest_is_measured_and_examined_against_the_original() {
    let mut desk = desk();
    let mut conversation = conversation(&desk, Fidelity::Examined { questions: 4 });
    let mut slots = Vec::new();
    for text in [DIGEST, QUESTIONS, ANSWERS] {
        let ask = conversation.next().unwrap().clone();
        slots.push(ask.slot.split(':').next().unwrap().to_owned());
        match ask.purpose.name() {
            // Whoever sits the exam sees the digest and nothing of the original.
            "sit" => {
                assert!(
                    said(&ask).contains("RS256 for rotation") && said(&ask).contains("4. What is the cookie")
                );
                assert!(!said(&ask).contains("2000") && !said(&ask).contains("sid\n"), "{}", said(&ask));
            }
            _ => assert!(said(&ask).contains(RESULT), "{}", said(&ask)),
        }
        let heard = conversation.interpret(&answer(text));
        assert!(matches!(heard, Digested::Taken { .. }), "{heard:?}");
    }
    let mark = conversation.next().unwrap().clone();
    assert!(said(&mark).contains("right: 2000\n   given: unknown"), "{}", said(&mark));
    let heard = conversation.interpret(&answer(MARKS));
    let digest = attached(&mut desk, heard);
    assert_eq!(slots, ["digest/auth", "examine/auth", "sit/auth"]);
    assert_eq!(digest.summary, "Sessions are signed with RS256.");
    assert_eq!(digest.artifacts, ["src/auth.rs"]);
    // The fourth was marked as agreeing, but nobody had answered it.
    assert_eq!(digest.fidelity_score, Some(0.5));
    let ratio = digest.compression_ratio.unwrap();
    assert!(ratio > 0.1 && ratio < 0.6, "{ratio}");
    assert_eq!(conversation.next(), None);
}

#[test]
fn slots_change_with_what_came_of_the_task() {
    let slot = |result: &str| {
        let mut desk = Desk::with(plan_of([TaskSpec::new(id("auth"), "Build sessions")]));
        let outcome = Outcome::Done { result: Some(result.into()), output: None, evidence: None };
        desk.does(&Command::FinishTask { task: id("auth"), attempt: None, outcome, retry: None });
        conversation(&desk, Fidelity::Unknown).next().unwrap().slot.clone()
    };
    assert_eq!(slot("one"), slot("one"));
    assert_ne!(slot("one"), slot("two"));
}

#[test]
fn a_summary_has_fewer_than_a_hundred_words() {
    let of = |words: usize| {
        format!(r#"{{"summary": "{}", "key_decisions": [], "artifacts": []}}"#, "word ".repeat(words))
    };
    let mut desk = desk();
    let heard = conversation(&desk, Fidelity::Unknown).interpret(&answer(&of(SUMMARY_WORDS_MAX)));
    let Digested::Again { problems } = heard else { panic!("{heard:?}") };
    assert_eq!(problems, ["`summary` has 100 words; it must have fewer than 100"]);
    let heard = conversation(&desk, Fidelity::Unknown).interpret(&answer(&of(SUMMARY_WORDS_MAX - 1)));
    let digest = attached(&mut desk, heard);
    assert_eq!(digest.fidelity_score, None, "nobody has examined it");
}

#[test]
fn lists_are_bounded_and_the_names_of_others_are_known() {
    let of = |count: usize| {
        let items: Vec<String> = (0..count).map(|n| format!("\"decision {n}\"")).collect();
        format!(r#"{{"digest": "Done.", "decisions": [{}], "key_artifacts": "a.rs"}}"#, items.join(","))
    };
    let mut desk = desk();
    let heard = conversation(&desk, Fidelity::Unknown).interpret(&answer(&of(LIST_MAX + 1)));
    assert!(
        matches!(&heard, Digested::Again { problems } if problems[0].contains("11 entries")),
        "{heard:?}"
    );
    let heard = conversation(&desk, Fidelity::Unknown).interpret(&answer(&of(LIST_MAX)));
    let Digested::Done { repairs, .. } = &heard else { panic!("{heard:?}") };
    assert_eq!(repairs.as_slice(), [Repair::OtherName, Repair::ValueAsList]);
    assert_eq!(attached(&mut desk, heard).artifacts, ["a.rs"]);
}

#[test]
fn without_a_digest_it_is_given_up_with_all_answers() {
    let desk = desk();
    let mut conversation = conversation(&desk, Fidelity::default());
    for _ in 0..2 {
        assert!(matches!(conversation.interpret(&answer("no")), Digested::Again { .. }));
    }
    let Digested::GaveUp(GenerationFailed { answers, .. }) = conversation.interpret(&answer("never")) else {
        panic!("it was not given up")
    };
    assert_eq!(answers, ["no", "no", "never"]);
    assert_eq!(conversation.next(), None);
}

#[test]
fn without_an_exam_the_digest_is_kept_and_its_fidelity_unknown() {
    let mut desk = desk();
    let mut conversation = conversation(&desk, Fidelity::Examined { questions: 2 });
    conversation.interpret(&answer(DIGEST));
    conversation.interpret(&answer("?"));
    conversation.interpret(&answer(r#"{"questions": []}"#));
    let heard = conversation.interpret(&answer(r#"{"questions": [{"question": "What?", "answer": ""}]}"#));
    let Digested::Done { unexamined, .. } = &heard else { panic!("{heard:?}") };
    assert_eq!(unexamined.as_slice(), ["question 1 needs both `question` and `answer`"]);
    assert_eq!(attached(&mut desk, heard).fidelity_score, None);
}

#[test]
fn every_question_must_be_marked() {
    let desk = desk();
    let mut conversation = conversation(&desk, Fidelity::Examined { questions: 4 });
    for text in [DIGEST, QUESTIONS, ANSWERS] {
        conversation.interpret(&answer(text));
    }
    let heard = conversation.interpret(&answer(
        r#"{"marks": [{"question": 1, "agrees": true}, {"question": 9, "agrees": true}]}"#,
    ));
    let Digested::Again { problems } = heard else { panic!("{heard:?}") };
    assert_eq!(problems.len(), 4, "{problems:?}");
}

#[test]
fn only_finished_work_has_a_digest() {
    let desk = desk();
    let of = |name: &str| {
        Digesting::new(PromptPolicy::default(), Fidelity::default(), &desk.plan, &id(name)).unwrap_err()
    };
    assert_eq!(of("open"), NoDigest::NotFinished(id("open")));
    assert_eq!(of("gone"), NoDigest::NoSuchTask(id("gone")));
}

#[test]
fn a_group_is_digested_from_the_digests_of_its_parts() {
    let part =
        |name: &str| TaskSpec { parent: Some(id("auth")), ..TaskSpec::new(id(name), format!("Part {name}")) };
    let mut desk = Desk::with(plan_of([TaskSpec::new(id("auth"), "Build sessions"), part("x"), part("y")]));
    for name in ["x", "y"] {
        let outcome = Outcome::Done { result: Some(format!("all of {name}")), output: None, evidence: None };
        desk.does(&Command::FinishTask { task: id(name), attempt: None, outcome, retry: None });
    }
    let digest = Digest {
        summary: "x in short".into(),
        key_decisions: Vec::new(),
        artifacts: Vec::new(),
        compression_ratio: None,
        fidelity_score: None,
    };
    desk.does(&Command::AttachDigest { task: id("x"), digest, tokens: 0 });
    let conversation = conversation(&desk, Fidelity::Unknown);
    let prompt = said(conversation.next().unwrap());
    assert!(prompt.contains("x in short") && !prompt.contains("all of x"), "{prompt}");
    assert!(prompt.contains("all of y"), "{prompt}");
}

#[test]
fn the_estimate_of_tokens_is_close_to_what_tokenizers_count_and_errs_upwards() {
    let code = include_str!("kit.rs");
    let prose = include_str!("../../../../docs/glossary.md");
    let json =
        serde_json::to_string_pretty(&waypost_planner::schema(waypost_planner::Purpose::Generate)).unwrap();
    let german =
        "Die Grundschule überprüft regelmäßig die Straßenverkehrsordnung für größere Fußgängergruppen. "
            .repeat(5);
    let chinese = "计划由代理编写，由人批准，由机器运行。".repeat(20);
    let russian = "Планы пишут агенты, одобряют люди, а выполняют машины. ".repeat(10);
    let encoders = [tiktoken_rs::cl100k_base().unwrap(), tiktoken_rs::o200k_base().unwrap()];
    for (name, text) in [
        ("code", code),
        ("prose", prose),
        ("json", &json),
        ("german", &german),
        ("chinese", &chinese),
        ("russian", &russian),
    ] {
        for encoder in &encoders {
            let (ours, theirs) = (estimate(text) as f64, encoder.encode_ordinary(text).len() as f64);
            let ratio = ours / theirs;
            assert!((0.9..=2.2).contains(&ratio), "{name}: {ours} beside {theirs}, {ratio:.2} times as many");
        }
    }
}
