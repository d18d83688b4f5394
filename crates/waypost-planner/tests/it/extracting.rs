use serde_json::{Value, json};
use waypost_planner::Repair;
use waypost_planner::json_extract::{ANSWER_BYTES_MAX, JSON_DEPTH_MAX, NoJson, extract};
use waypost_testkit::SeededRng;

fn is_answer(value: &Value) -> bool {
    value.get("a").is_some()
}

#[track_caller]
fn check(text: &str, value: Value, repairs: &[Repair]) {
    let found = extract(text, &is_answer).unwrap();
    assert_eq!((found.value, found.repairs.as_slice()), (value, repairs), "{text}");
}

#[test]
fn json_alone_needs_no_repair() {
    check("{\"a\": 1}", json!({"a": 1}), &[]);
    check(" \n{\"a\": [1, {\"b\": null}]}\n", json!({"a": [1, {"b": null}]}), &[]);
}

#[test]
fn fences_of_all_kinds_are_opened() {
    for text in [
        "```json\n{\"a\":1}\n```",
        "```JSON\n{\"a\":1}\n```",
        "```\n{\"a\":1}\n```",
        "~~~json\n{\"a\":1}\n~~~",
    ] {
        check(text, json!({"a": 1}), &[Repair::Fence]);
    }
    check("```json\n{\"a\":1}", json!({"a": 1}), &[Repair::UnclosedFence]);
    check("Here:\n```json\n{\"a\":1}\n```\nDone.", json!({"a": 1}), &[Repair::Fence, Repair::Prose]);
    check("```json\n{\"a\":\"use ``` here\"}\n```", json!({"a": "use ``` here"}), &[Repair::Fence]);
}

#[test]
fn prose_around_json_is_left_out() {
    check("Sure! {\"a\": 1} see {x}", json!({"a": 1}), &[Repair::Prose]);
    check("use {x} and } {: {\"a\": 1}", json!({"a": 1}), &[Repair::Prose]);
    check("\u{FEFF}{\"a\": 1}", json!({"a": 1}), &[Repair::ByteOrderMark]);
}

#[test]
fn of_several_candidates_the_first_that_fits_is_taken() {
    let several = [Repair::Prose, Repair::SeveralCandidates];
    check("{\"b\": 1} then {\"a\": 2} then {\"a\": 3}", json!({"a": 2}), &several);
    check("[1] {\"a\": 2}", json!({"a": 2}), &several);
    let fenced = [Repair::Fence, Repair::Prose, Repair::SeveralCandidates];
    check("{\"a\": 1}\n```json\n{\"a\": 2}\n```", json!({"a": 2}), &fenced);
    // Nothing fits: the first is returned, so that its faults can be told.
    let found = extract("{\"b\": 1} {\"c\": 2}", &is_answer).unwrap();
    assert_eq!(found.value, json!({"b": 1}));
}

#[test]
fn thoughts_are_left_out_unless_the_answer_is_among_them() {
    check("<think>perhaps {\"a\": 0}?</think>{\"a\": 1}", json!({"a": 1}), &[Repair::Thinking]);
    check("perhaps {\"a\": 0}</think>\n{\"a\": 1}", json!({"a": 1}), &[Repair::Thinking]);
    check("<think>so it is {\"a\": 1}", json!({"a": 1}), &[Repair::Prose]);
    check("<thinking>x</thinking>\n{\"a\": 1}", json!({"a": 1}), &[Repair::Thinking]);
}

#[test]
fn slips_of_syntax_with_one_reading_are_forgiven_by_name() {
    check("{\"a\": [1, 2,],}", json!({"a": [1, 2]}), &[Repair::TrailingComma]);
    check("{\"a\": 1 // one\n}", json!({"a": 1}), &[Repair::Comment]);
    check("{/* x */\"a\": 1 # one\n}", json!({"a": 1}), &[Repair::Comment]);
    check("{'a': 'it'}", json!({"a": "it"}), &[Repair::SingleQuotes]);
    check("{“a”: “it”}", json!({"a": "it"}), &[Repair::SmartQuotes]);
    check("{\"a\": True, \"b\": None}", json!({"a": true, "b": null}), &[Repair::PythonWords]);
    check("{\"a\": \"one\ntwo\"}", json!({"a": "one\ntwo"}), &[Repair::RawControl]);
    check("{\"a\": \"it\\'s\"}", json!({"a": "it's"}), &[Repair::BadEscape]);
    check("{\"a\": 1 \"b\": 2}", json!({"a": 1, "b": 2}), &[Repair::MissingComma]);
    check("\"{\\\"a\\\": 1}\"", json!({"a": 1}), &[Repair::Quoted]);
    check("{\"result\": {\"a\": 1}}", json!({"a": 1}), &[Repair::Wrapped]);
}

#[test]
fn quotes_and_comments_inside_texts_are_left_alone() {
    let text = "{\"a\": \"“so” // it is, # too, /* and */ 'this', }\"}";
    check(text, json!({"a": "“so” // it is, # too, /* and */ 'this', }"}), &[]);
    check("{\"a\": \"\\ud83d\\ude00\",}", json!({"a": "😀"}), &[Repair::TrailingComma]);
    check("{\"a\": \"\\ud83d!\",}", json!({"a": "\u{FFFD}!"}), &[Repair::BadEscape, Repair::TrailingComma]);
}

#[test]
fn what_breaks_off_is_closed_after_its_last_whole_element() {
    let cut = [Repair::Truncated];
    check("{\"a\": 1, \"b\": \"unfini", json!({"a": 1}), &cut);
    check("{\"a\": [{\"x\": 1}, {\"x\": 2, \"y\"", json!({"a": [{"x": 1}]}), &cut);
    check("{\"a\": [1, 2, 34", json!({"a": [1, 2]}), &cut);
    check("{\"a\": 1,", json!({"a": 1}), &cut);
    check("{\"a\": [1, 2]", json!({"a": [1, 2]}), &[Repair::Unclosed]);
    check("{\"a\": {\"b\": true", json!({"a": {"b": true}}), &[Repair::Unclosed]);
    check("{\"a\": {\"b\": true, \"c\": fal", json!({"a": {"b": true}}), &cut);
    check("{\"a\": 1, \"b\": \"\\u00", json!({"a": 1}), &cut);
    check("```json\n{\"a\": [1, 2\n```", json!({"a": [1, 2]}), &[Repair::Fence, Repair::Truncated]);
}

#[test]
fn an_answer_without_json_says_so() {
    assert_eq!(extract("", &is_answer), Err(NoJson::Empty));
    assert_eq!(extract(" \u{FEFF}", &is_answer), Err(NoJson::None));
    assert_eq!(extract("\u{FEFF} \n", &is_answer), Err(NoJson::Empty));
    for text in ["I cannot help.", "} {", "{", "[", "{x}", "true", "12", "\"text\"", "``` ```"] {
        assert_eq!(extract(text, &is_answer), Err(NoJson::None), "{text}");
    }
}

#[test]
fn the_size_of_an_answer_is_bounded() {
    let within = format!("{{\"a\": \"{}\"}}", "x".repeat(ANSWER_BYTES_MAX - 9));
    assert_eq!(within.len(), ANSWER_BYTES_MAX);
    assert!(extract(&within, &is_answer).is_ok());
    let over = format!("{within} ");
    assert_eq!(extract(&over, &is_answer), Err(NoJson::TooLong(ANSWER_BYTES_MAX + 1)));
}

#[test]
fn answers_made_to_be_slow_are_not() {
    let thoughts = "<think></think>".repeat(ANSWER_BYTES_MAX / 15);
    assert_eq!(extract(&thoughts, &is_answer), Err(NoJson::None));
    let nearly = format!("{}!", "[\"a\", ".repeat(ANSWER_BYTES_MAX / 8));
    assert_eq!(extract(&nearly, &is_answer), Err(NoJson::None));
    let long = format!("{}{}", "{\"b\": [".repeat(30), "1, ".repeat(ANSWER_BYTES_MAX / 4));
    assert!(extract(&format!("{long} !"), &is_answer).is_err());
    let fences = "```json {".repeat(ANSWER_BYTES_MAX / 10);
    assert_eq!(extract(&fences, &is_answer), Err(NoJson::None));
}

#[test]
fn the_depth_of_an_answer_is_bounded() {
    let nested = |depth: usize| format!("x {{\"a\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let found = extract(&nested(JSON_DEPTH_MAX - 1), &is_answer).unwrap();
    assert!(found.value.get("a").is_some());
    // One that is deeper is not read from its beginning, and what stands deeper inside does not fit.
    let over = extract(&nested(JSON_DEPTH_MAX), &is_answer);
    assert!(over.is_err() || !is_answer(&over.unwrap().value));
    let endless = "[".repeat(200_000);
    assert_eq!(extract(&endless, &is_answer), Err(NoJson::None));
    let endless = "{\"a\":".repeat(100_000);
    assert!(extract(&endless, &is_answer).is_err());
}

/// Answers that are mutated.
const SEEDS: [&str; 6] = [
    "{\"a\": [{\"id\": \"t1\", \"x\": 1.5e3, \"y\": null}, {\"id\": \"t2\", \"z\": [true, false]}]}",
    "Here you are:\n```json\n{\"a\": \"gr\\u00fc\\u00dfe \\ud83d\\ude00\", // note\n \"b\": [1, 2,],}\n```\nbye",
    "<think>hm {\"a\"</think>{'a': 'x', “b”: “y” }",
    "{\"goal\": \"日本語\", \"a\": {\"b\": {\"c\": {}}}}",
    "1. first\n2. second {\"a\": True}",
    "~~~\n[{\"a\": \"\\\\\"}, {\"a\": \"\\\"\"}]",
];
const PIECES: [&str; 22] = [
    "{", "}", "[", "]", "\"", "'", ",", ":", "\\", "\\u", "\\ud83d", "```", "```json", "~~~", "<think>",
    "</think>", "//", "/*", "é", "😀", "\n", "\u{FEFF}",
];

#[test]
fn no_mutation_of_an_answer_makes_the_search_panic_or_lie() {
    for seed in 0..6_000 {
        let mut dice = SeededRng::new(seed);
        let mut text: Vec<char> = dice.pick(&SEEDS).chars().collect();
        for _ in 0..1 + dice.below(8) {
            let at = dice.below(text.len() + 1);
            match dice.below(4) {
                0 => text.truncate(at),
                1 if at < text.len() => {
                    text.remove(at);
                }
                2 => {
                    let end = (at + dice.below(12)).min(text.len());
                    let copy: Vec<char> = text[at..end].to_vec();
                    text.splice(at..at, copy);
                }
                _ => {
                    let piece: Vec<char> = dice.pick(&PIECES).chars().collect();
                    text.splice(at..at, piece);
                }
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(found) = extract(&text, &is_answer) {
            assert!(found.value.is_object() || found.value.is_array(), "{text:?}");
            // What needed no repair is exactly what a strict reader reads.
            if found.repairs.is_empty() {
                assert_eq!(serde_json::from_str::<Value>(text.trim()).unwrap(), found.value, "{text:?}");
            }
        }
    }
}
