//! Processes that are killed at a call, and those that go on after them.

use std::sync::mpsc::channel;

use super::decompose::MACHINE_CALLS;
use super::*;

/// A stage whose model hangs at the call of this number, the first time, and says so.
fn hanging_at(
    number: usize,
    mut model: impl FnMut(&Seen) -> ScriptedReply + Send + 'static,
) -> (Stage, std::sync::mpsc::Receiver<()>) {
    let (asked, hear) = channel();
    let mut count = 0;
    let stage = Stage::directed(move |seen| {
        count += 1;
        if count == number {
            asked.send(()).unwrap();
            return ScriptedReply::Hang;
        }
        model(seen)
    });
    (stage, hear)
}

/// Kills a command when it makes the call of this number.
fn killed_at(stage: &Stage, hear: &std::sync::mpsc::Receiver<()>, words: &[&str]) {
    let mut child = stage.begins(words);
    hear.recv_timeout(PATIENCE).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn killed_at_any_call_it_goes_on_and_no_answer_is_paid_for_twice() {
    for number in 1..=MACHINE_CALLS {
        let (stage, hear) = hanging_at(number, machine);
        killed_at(&stage, &hear, &["decompose", MACHINE, "--parallel", "1"]);
        let answer = stage.does(&["continue"]);
        assert_eq!(answer["ending"], "over", "killed at {number}: {answer}");
        assert_eq!(
            stage.server.asked() - 1,
            MACHINE_CALLS,
            "killed at {number}: the call that hung was not answered"
        );
        let id = stage.only();
        assert_eq!(stage.plan(&id).len(), 10, "killed at {number}");
        stage.tokens_are_true(&id);
    }
}

#[test]
fn killed_with_several_questions_under_way_it_asks_only_those_again() {
    for number in [3, 6, 9, 14] {
        let (mut stage, hear) = hanging_at(number, machine);
        killed_at(&stage, &hear, &["decompose", MACHINE, "--parallel", "4"]);
        stage.answered_by(machine);
        let id = stage.only();
        let kept = stage.journal(&id).iter().filter(|line| line["kind"] == "answered").count();
        stage.does(&["continue"]);
        assert_eq!(stage.server.asked(), MACHINE_CALLS - kept, "killed at {number}");
        stage.tokens_are_true(&id);
    }
}

#[test]
fn a_plan_that_was_being_written_is_written_by_the_next_process() {
    for number in 1..=2 {
        let mut answered = 0;
        let (stage, hear) = hanging_at(number, move |_| {
            answered += 1;
            if answered == 1 { ScriptedReply::Say("what?".to_owned()) } else { say(three()) }
        });
        killed_at(&stage, &hear, &["plan", GOAL]);
        let words: &[&str] = if number == 1 { &["plan", GOAL] } else { &["continue"] };
        stage.does(words);
        assert_eq!(stage.server.asked() - 1, 2, "killed at {number}");
        stage.tokens_are_true(&stage.only());
    }
}

#[test]
fn an_answer_that_was_kept_but_not_charged_is_charged_by_the_next_process() {
    let stage = Stage::directed(machine);
    stage.fails(1, &["decompose", MACHINE, "--max-calls", "5", "--parallel", "1"]);
    let id = stage.only();
    let before = stage.tokens_are_true(&id);
    // As if the process had died between the journal and the plan.
    let path = stage.workspace.work().join(format!(".waypost/planning/{id}.jsonl"));
    let mut line = stage.journal(&id).pop().unwrap();
    let spent =
        line["answer"]["tokens_in"].as_i64().unwrap() + line["answer"]["tokens_out"].as_i64().unwrap();
    line["slot"] = "atomicity/unheard".into();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{line}\n")).unwrap();
    stage.fails(1, &["continue", "--max-calls", "1"]);
    assert_eq!(stage.tokens_are_true(&id), before + spent);
    assert_eq!(stage.server.asked(), 5);
}
