//! jaato's plans: store files, single plans, answers of its tools.

use waypost_core::{Dependency, Phase, Status};
use waypost_formats::{Dialect, Form, read, write_many};

use crate::{draft, fixture, json, losses, observed, problems, reading, seed, task, written};

const JAATO: Dialect = Dialect::Jaato;

#[test]
fn a_store_that_is_read_and_written_is_the_same_text() {
    let text = fixture("jaato/store.json");
    let reading = reading(&text, JAATO);
    assert_eq!((reading.problems.len(), reading.drafts.len()), (0, 2));
    assert_eq!(write_many(&reading.drafts, JAATO, Form::AsRead).unwrap().text, text);
    let writing = write_many(&reading.drafts, JAATO, Form::Program).unwrap();
    assert_eq!((writing.text, writing.losses), (text, vec![]));
}

#[test]
fn an_answer_that_is_read_and_written_is_the_same_text() {
    let text = fixture("jaato/status.json");
    let plan = draft(&text, JAATO);
    assert_eq!(json(&written(&plan, JAATO, Form::AsRead)), json(&text));
}

#[test]
fn the_observed_store_comes_back_equal() {
    let Some(text) = observed("jaato/plans.json") else { return };
    let reading = reading(&text, JAATO);
    assert_eq!(reading.problems, []);
    for form in [Form::AsRead, Form::Program] {
        let writing = write_many(&reading.drafts, JAATO, form).unwrap();
        assert_eq!(json(&writing.text), json(&text));
        assert_eq!(writing.losses, []);
        assert_eq!(writing.text, text);
    }
}

#[test]
fn the_answers_in_the_document_come_back_equal() {
    let Some(text) = seed("jaato-todo-plugin.txt") else { return };
    for heading in ["createPlan response\n", "getPlanStatus response\n"] {
        let at = text.find(heading).unwrap() + heading.len();
        let end = at + text[at..].find("\n}\n").unwrap() + 2;
        let plan = draft(&text[at..end], JAATO);
        assert_eq!(json(&written(&plan, JAATO, Form::AsRead)), json(&text[at..end]));
    }
}

#[test]
fn a_step_waits_for_steps_of_other_agents() {
    let plans = reading(&fixture("jaato/store.json"), JAATO).drafts;
    let step = task(&plans[0], "s-2");
    let on: Vec<String> = step.spec.depends_on.iter().map(ToString::to_string).collect();
    assert_eq!(
        on,
        ["tester:unit", "tester:smoke", "s-1", "builder:5f1c2d3e-0000-4000-8000-00000000000b/image"]
    );
    assert_eq!(step.spec.provides.as_deref(), Some("reports"));
    assert_eq!(step.state.status, Status::Pending);
    let received: Vec<&str> = step.state.received.keys().map(String::as_str).collect();
    assert_eq!(received, ["builder:5f1c2d3e-0000-4000-8000-00000000000b/image", "tester:unit"]);
    let unit = &step.state.received["tester:unit"];
    assert_eq!(unit.output.as_ref().unwrap().as_str(), r#"{"passed":true}"#);
    assert_eq!(unit.provides.as_deref(), Some("unit-report"));
    assert_eq!(step.state.received["builder:5f1c2d3e-0000-4000-8000-00000000000b/image"].output, None);
    assert_eq!(plans[0].state.phase, Phase::Active);
    assert_eq!(plans[1].state.phase, Phase::Draft);
}

#[test]
fn a_step_is_blocked_until_all_has_been_received() {
    let mut plan = reading(&fixture("jaato/store.json"), JAATO).drafts.remove(0);
    let unit = plan.tasks[1].state.received["tester:unit"].clone();
    plan.tasks[1].state.received.insert("tester:smoke".to_owned(), unit);
    let text = json(&written(&plan, JAATO, Form::AsRead));
    assert_eq!(text["steps"][1]["status"], "pending");
    assert_eq!(text["steps"][1].get("blocked_by"), None);
    plan.tasks[0].state.status = Status::Failed;
    let text = json(&written(&plan, JAATO, Form::AsRead));
    assert_eq!(text["steps"][1]["status"], "blocked");
    assert_eq!(text["steps"][1]["blocked_by"][0]["step_id"], "s-1");
}

#[test]
fn what_was_only_kept_gives_way_to_what_has_changed() {
    let mut plan = reading(&fixture("jaato/store.json"), JAATO).drafts.remove(0);
    assert_eq!(json(&written(&plan, JAATO, Form::AsRead))["current_step"], 1);
    plan.tasks[1].state.status = Status::Running;
    assert_eq!(json(&written(&plan, JAATO, Form::AsRead))["current_step"], 2);
    plan.state.started_at = plan.state.created_at;
    let text = json(&written(&plan, JAATO, Form::AsRead));
    assert_eq!(text["started_at"], "2026-04-02T08:00:00.000120+00:00Z");
}

#[test]
fn an_answer_of_the_program_is_active_when_a_step_was_begun() {
    let answer = |status: &str| {
        format!(
            r#"{{"plan_id": "p", "title": "t", "status": "active", "steps": [{{"id": "a", "status": "{status}"}}]}}"#
        )
    };
    assert_eq!(draft(&answer("pending"), JAATO).state.phase, Phase::Draft);
    let plan = draft(&answer("in_progress"), JAATO);
    assert_eq!(plan.state.phase, Phase::Active);
    assert_eq!(json(&written(&plan, JAATO, Form::AsRead))["status"], "active");
}

#[test]
fn the_steps_of_a_request_may_be_texts() {
    let plan = draft(r#"{"title": "Refactor", "steps": ["look", "change"]}"#, JAATO);
    assert_eq!(task(&plan, "step_2").spec.description, "change");
    assert_eq!(plan.id, None);
}

#[test]
fn a_text_dependency_is_a_step_of_the_same_plan() {
    let text = r#"{"plan_id": "p", "title": "t", "steps": [{"id": "a", "status": "pending"},
        {"id": "b", "status": "pending", "depends_on": ["a"]}]}"#;
    let plan = draft(text, JAATO);
    assert_eq!(plan.tasks[1].spec.depends_on, [Dependency::Task(waypost_testkit::id("a"))]);
    let again = draft(&written(&plan, JAATO, Form::Program), JAATO);
    assert_eq!(again.tasks[1].spec.depends_on, plan.tasks[1].spec.depends_on);
}

#[test]
fn the_file_of_current_plans_is_no_plan() {
    let reading = read(r#"{"agent_plan_ids": {"main": "__none__"}}"#, None, Some("_state.json")).unwrap();
    assert_eq!((reading.dialect, reading.drafts.len(), reading.notes.len()), (JAATO, 0, 1));
}

#[test]
fn every_problem_is_told_at_once() {
    let text = r#"{"plan_id": "p", "status": "asleep", "created_at": "yesterday", "steps": [
        {"id": "a", "status": "gone", "result": 5},
        7,
        {"id": "b", "depends_on": [{"agent_id": "x"}, {"step_id": "y"}, 3], "received_outputs": "none"}
    ]}"#;
    assert_eq!(
        problems(text, JAATO),
        [
            "plan: `title` is missing",
            "plan: `created_at` has the wrong type: expected a time such as 2026-03-22T10:00:00Z, found \"yesterday\"",
            "plan: `status` has the wrong type: expected active, completed, failed or cancelled, found \"asleep\"",
            "task a: `result` has the wrong type: expected text, found 5",
            "task a: `status` has the wrong type: expected pending, in_progress, completed, failed, skipped or \
             blocked, found \"gone\"",
            "task number 2: `steps` has the wrong type: expected an object, found 7",
            "task b: `depends_on[0].step_id` is missing",
            "task b: `depends_on[1].agent_id` is missing",
            "task b: `depends_on[2]` has the wrong type: expected an object with `agent_id` and `step_id`, found 3",
            "task b: `received_outputs` has the wrong type: expected an object, found \"none\"",
        ]
    );
}

#[test]
fn a_store_whose_keys_are_not_the_ids_is_a_contradiction() {
    let text = r#"{"p1": {"plan_id": "p2", "title": "t", "steps": []}, "p3": {"title": "u", "steps": []}}"#;
    let reading = reading(text, JAATO);
    assert_eq!(reading.problems[0].to_string(), "plan: is stored under p1, but says that it is p2");
    assert_eq!(reading.drafts[1].id.as_ref().unwrap().as_str(), "p3");
}

#[test]
fn what_jaato_has_no_word_for_is_a_loss() {
    let mut plan = draft(&fixture("jaato/status.json"), JAATO);
    plan.state.phase = Phase::Paused;
    plan.tasks[0].spec.notes = "with care".to_owned();
    plan.tasks[1].state.status = Status::Cancelled;
    assert_eq!(
        losses(&plan, JAATO, Form::Document),
        ["plan: phase", "task step_1: notes", "task step_2: status"]
    );
}

#[test]
fn what_is_counted_or_derived_anew_is_inexact() {
    let text = r#"{ "title": "P", "status": "active", "progress": { "completed": 0, "total": 1, "mood": "good" },
        "steps": [{ "description": "W", "status": "blocked",
            "depends_on": [{ "agent_id": "m", "step_id": "f" }],
            "blocked_by": [{ "agent_id": "m", "step_id": "f", "since": "noon" }] }] }"#;
    let reading = read(text, Some(Dialect::Jaato), None).unwrap();
    let inexact: Vec<String> = reading.inexact.iter().map(ToString::to_string).collect();
    assert_eq!(inexact.len(), 2, "{inexact:?}");
    assert!(inexact[0].contains("progress.mood") && inexact[1].contains("blocked_by.since"), "{inexact:?}");
}
