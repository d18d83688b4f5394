//! Finished work that is compressed.

use super::*;

/// A model that digests, and remembers one of two things.
fn scribe(seen: &Seen) -> ScriptedReply {
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
        other => ScriptedReply::status(400, "script", other),
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

#[test]
fn a_digest_does_not_end_a_decomposition_that_is_unfinished() {
    let stage = Stage::directed(|seen| match purpose(seen).as_str() {
        "digest" => scribe(seen),
        _ => machine(seen),
    });
    stage.fails(1, &["decompose", MACHINE, "--max-calls", "4", "--parallel", "1"]);
    let id = stage.only();
    stage.does(&["done", &id, "goal.1", "--result", "the frame stands"]);
    // One that ends before its end is gone on with first, and the other one is not lost.
    stage.fails(1, &["digest", &id, "--no-exam", "--max-calls", "4"]);
    let answer = stage.does(&["continue", "--max-calls", "100"]);
    assert_eq!(answer["digests"][0]["task"], "goal.1", "{answer}");
    assert!(answer["notes"].to_string().contains(&format!("waypost plan continue {id}")), "{answer}");
    let answer = stage.does(&["continue", "--max-calls", "100"]);
    assert_eq!((answer["ending"].as_str(), answer["goals"]["open"].as_u64()), (Some("over"), Some(0)));
    assert_eq!(stage.plan(&id).children("goal.2").len(), 2);
    stage.tokens_are_true(&id);
    stage.fails(5, &["continue"]);
}
