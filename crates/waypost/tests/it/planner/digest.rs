//! Finished work that is compressed.

use super::*;

/// A model that digests, and remembers one of two things.
fn scribe(seen: &Seen) -> Play {
    match purpose(seen).as_str() {
        "digest" => say(
            json!({ "summary": "The frame stands on bolts.", "key_decisions": ["bolts, not welds"], "artifacts": ["frame.step"] }),
        ),
        "examine" => say(json!({ "questions": [
            { "question": "What holds the frame?", "answer": "bolts" }, { "question": "Which colour?", "answer": "red" },
            { "question": "Which file?", "answer": "frame.step" }, { "question": "Who?", "answer": "ada" },
            { "question": "What stands?", "answer": "the frame" } ] })),
        "sit" => say(
            json!({ "answers": (1..=5).map(|n| json!({ "question": n, "answer": if n % 2 == 1 { "bolts" } else { "not said" } })).collect::<Vec<_>>() }),
        ),
        "mark" => say(
            json!({ "marks": (1..=5).map(|n| json!({ "question": n, "agrees": n % 2 == 1 })).collect::<Vec<_>>() }),
        ),
        other => Play::status(400, "script", other),
    }
}

#[test]
fn finished_work_is_digested_and_its_fidelity_is_measured() {
    let stage = Stage::directed(scribe);
    stage.does(&["new", "works", "--task", "part frame", "--task", "part motor", "--id", "w"]);
    stage.does(&["done", "w", "t1", "--result", "The frame stands. It is held by forty bolts, as welding was ruled out; it is red. The drawing is frame.step, made by ada on Monday."]);
    let answer = stage.does(&["digest", "w"]);
    assert_eq!(answer["digests"][0]["task"], "t1", "{answer}");
    let digest = stage.plan("w").task("t1").unwrap().spec.thinking.clone().unwrap().digest.unwrap();
    assert_eq!(digest.summary, "The frame stands on bolts.");
    assert_eq!(digest.fidelity_score, Some(0.6), "three of five answers agreed");
    let ratio = digest.compression_ratio.unwrap();
    assert!(ratio > 0.0 && ratio < 1.0, "{ratio}");
    assert_eq!(stage.server.asked(), 4);
    stage.tokens_are_true("w");
    let again = stage.does(&["digest", "w"]);
    assert_eq!((again["digests"].as_array().unwrap().len(), stage.server.asked()), (0, 4));
}

#[test]
fn a_digest_without_an_exam_says_nothing_of_its_fidelity() {
    let stage = Stage::directed(scribe);
    stage.does(&["new", "works", "--task", "part frame", "--id", "w"]);
    stage.does(&["done", "w", "t1", "--result", "it stands"]);
    stage.does(&["digest", "w", "--no-exam"]);
    let digest = stage.plan("w").task("t1").unwrap().spec.thinking.clone().unwrap().digest.unwrap();
    assert_eq!((digest.fidelity_score, stage.server.asked()), (None, 1));
}
