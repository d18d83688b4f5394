//! Waypost's own format: nothing is lost, and everything that is wrong is told at once.

use waypost_core::{Draft, ForeignFields, Status, Task, TaskSpec, validate};
use waypost_formats::{Dialect, Form, sniff};
use waypost_testkit::{id, layered};

use crate::{draft, fixture, json, losses, problems, reading, task, written};

const NATIVE: Dialect = Dialect::Native;

#[test]
fn a_plan_that_is_read_and_written_is_the_same_text() {
    let text = fixture("native/plan.json");
    let plan = draft(&text, NATIVE);
    assert_eq!(written(&plan, NATIVE, Form::AsRead), text);
    assert_eq!(losses(&plan, NATIVE, Form::AsRead), [""; 0]);
    assert_eq!(validate(&plan), []);
}

#[test]
fn what_was_received_stands_under_the_plan_as_well_even_if_an_earlier_version_left_it_out() {
    let text = fixture("native/plan.json");
    let earlier = text.replace("ops:backups/nightly", "ops:nightly");
    assert_ne!(earlier, text);
    assert_eq!(draft(&earlier, NATIVE), draft(&text, NATIVE));
}

#[test]
fn what_is_written_is_read_back_as_it_was() {
    for plan in [draft(&fixture("native/plan.json"), NATIVE), Draft::new("empty"), layered(500, 3, 20, 7)] {
        assert_eq!(draft(&written(&plan, NATIVE, Form::AsRead), NATIVE), plan);
    }
}

#[test]
fn reports_evidence_questions_and_answers_are_read_and_written() {
    let text = r#"{
        "format": "waypost/1", "title": "t", "tasks": [{ "id": "a", "description": "", "state": {
            "status": "pending", "grade": "A",
            "reported": { "result": "fine", "output": [1], "at": "2026-03-22T10:00:00Z", "by": "agent:robin" },
            "evidence": { "passed": false, "check": "tests", "worker": "w", "outcome": "it ended with exit code 1",
                "log_tail": "no\n", "digest": "sha256:00" },
            "question": { "text": "which?", "choices": ["a", "b"], "by": "w", "attempt": 2, "asked_at": "2026-03-22T10:00:00Z" },
            "answers": [{ "question": "why?", "answer": "so", "by": "person:ada", "at": "2026-03-22T10:00:00Z" }]
        } }]
    }"#;
    let plan = draft(text, NATIVE);
    let state = &task(&plan, "a").state;
    assert_eq!(state.reported().unwrap().result.as_deref(), Some("fine"));
    assert!(!state.evidence().unwrap().passed);
    assert_eq!(state.question().unwrap().choices, ["a", "b"]);
    assert_eq!(state.answers()[0].answer, "so");
    assert_eq!(json(&written(&plan, NATIVE, Form::AsRead)), json(text), "the unknown field beside them, too");
}

#[test]
fn the_format_may_be_left_out() {
    let text = r#"{"title": "t", "tasks": [{"id": "a"}]}"#;
    assert_eq!(sniff(text, None), Some(NATIVE));
    assert_eq!(draft(text, NATIVE).format, "waypost/1");
    assert_eq!(sniff(r#"{"format": "waypost/1", "title": "no tasks yet"}"#, None), Some(NATIVE));
}

#[test]
fn another_version_of_the_format_is_named() {
    let text = r#"{"format": "waypost/9", "title": "t", "tasks": []}"#;
    assert_eq!(sniff(text, None), Some(NATIVE));
    assert_eq!(
        problems(text, NATIVE),
        [r#"plan: the format "waypost/9" is not supported; this is waypost/1"#]
    );
}

#[test]
fn a_flat_status_is_short_for_the_state() {
    let plan = draft(r#"{"title": "t", "tasks": [{"id": "a", "status": "done"}]}"#, NATIVE);
    assert_eq!(task(&plan, "a").state.status, Status::Done);
    let text = r#"{"title": "t", "tasks": [{"id": "a", "status": "done", "state": {"status": "failed"}}]}"#;
    assert_eq!(problems(text, NATIVE), ["task a: `status` says done, but `state.status` says failed"]);
}

#[test]
fn unknown_fields_come_back_where_they_were() {
    let text = r#"{
        "$schema": "waypost-1.schema.json", "format": "waypost/1", "title": "t", "mood": {"z": 1, "a": 2},
        "state": {"phase": "paused", "weather": "rain"},
        "tasks": [
            {"id": "a", "description": "", "owner.name": "ada", "work": {"executor": "shell", "inputs": {}, "cwd": "/tmp"}},
            {"id": "b", "description": "", "state": {"status": "done", "grade": "A"}, "estimate": 3},
            {"id": "c", "description": "", "state": {"mood": "calm"}}
        ]
    }"#;
    let plan = draft(text, NATIVE);
    assert_eq!(task(&plan, "b").state.status, Status::Done);
    assert_eq!(task(&plan, "a").spec.foreign.of("native")["owner.name"], "ada");
    let again = written(&plan, NATIVE, Form::AsRead);
    assert_eq!(json(&again), json(text));
    assert_eq!(draft(&again, NATIVE), plan);
}

#[test]
fn an_unknown_field_never_hides_a_known_one() {
    let mut plan = Draft::new("t");
    let mut spec = TaskSpec::new(id("a"), "do it");
    let mut foreign = ForeignFields::default();
    foreign.keep("native", serde_json::from_str(r#"{"notes": 5, "work": {"x": 1}, "wish": 2}"#).unwrap());
    spec.foreign = foreign;
    plan.tasks.push(Task::new(spec));
    let again = draft(&written(&plan, NATIVE, Form::AsRead), NATIVE);
    assert_eq!(again.tasks[0].spec.notes, "");
    assert_eq!(
        json(r#"{"notes": 5, "work": {"x": 1}, "wish": 2}"#),
        again.tasks[0].spec.foreign.0["native"].value()
    );
}

#[test]
fn an_unknown_field_inside_a_list_is_told_of() {
    let text = r#"{"title": "t", "tasks": [{"id": "a", "locks": [{"key": "k", "colour": "red"}]}]}"#;
    let reading = reading(text, NATIVE);
    assert_eq!(reading.problems, []);
    assert_eq!(reading.notes, ["task a: the unknown field `locks.0.colour` is ignored"]);
}

#[test]
fn every_wrong_field_is_told_at_once_and_the_rest_is_kept() {
    let text = r#"{
        "format": "waypost/1", "title": 5, "goal": "g", "token_budget": "many",
        "state": {"phase": "asleep", "tokens_used": 12},
        "tasks": [
            {"id": "a", "description": 1, "depends_on": ["b", 7, {"task": "x"}], "skip": "yes", "notes": "kept"},
            {"description": "nameless", "priority": 3},
            {"id": "", "description": "empty"},
            17,
            {"id": "b", "notes": "one", "notes": "two", "status": 5, "state": {"status": "sleeping", "attempt": 4}}
        ]
    }"#;
    let reading = reading(text, NATIVE);
    let told: Vec<String> = reading.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "plan: `state.phase` has the wrong type: `asleep` is not a known value; use one of draft, \
             awaiting_approval, active, paused, completed, failed, cancelled",
            "plan: `title` has the wrong type: must be text, not `5`",
            "plan: `token_budget` has the wrong type: must be a whole number from 0, not \"many\"",
            "task a: `description` has the wrong type: must be text, not `1`",
            "task a: `depends_on[1]` has the wrong type: must be a task id, or an object \
             with `task` and `plan` or `agent`, not `7`",
            "task a: `depends_on[2]` has the wrong type: a dependency elsewhere needs `plan` or `agent`",
            "task a: `skip` has the wrong type: must be true or false, not \"yes\"",
            "task number 2: `id` is missing",
            "task number 3: the id cannot be used: an id must not be empty",
            "task number 4: `tasks` has the wrong type: expected an object, found 17",
            "task b: `notes` is written twice",
            "task b: `state.status` has the wrong type: `sleeping` is not a known value; use one of pending, \
             running, done, failed, skipped, cancelled",
            "task b: `status` has the wrong type: expected pending, running, done, failed, skipped or cancelled, found 5",
        ]
    );
    let plan = &reading.drafts[0];
    assert_eq!(plan.spec.goal, "g");
    assert_eq!(plan.state.tokens_used, 12);
    assert_eq!(plan.tasks.len(), 5);
    assert_eq!(task(plan, "a").spec.notes, "kept");
    assert_eq!(task(plan, "a").spec.depends_on.len(), 1);
    assert_eq!(task(plan, "task-2").spec.priority, 3);
    assert_eq!(task(plan, "b").spec.notes, "two");
    assert_eq!(task(plan, "b").state.attempt, 4);
}

#[test]
fn a_stand_in_never_takes_the_name_of_another_task() {
    let text = r#"{"title": "t", "tasks": [{"id": "task-2"}, {"description": "nameless"}]}"#;
    let reading = reading(text, NATIVE);
    assert_eq!(reading.drafts[0].tasks[1].spec.id.as_str(), "task-2-1");
    assert_eq!(validate(&reading.drafts[0]), []);
}

#[test]
fn broken_json_says_where_it_breaks() {
    let error =
        waypost_formats::read("{\"format\": \"waypost/1\",\n  \"title\": }", Some(NATIVE), None).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 12: expected value");
    let error = waypost_formats::read("{\"format\": \"waypost/1\",\n  \"title\": }", None, None).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 12: expected value");
}
