//! agora's runs, as they are submitted and with their state.

use waypost_core::{LockMode, Status, validate};
use waypost_formats::{Dialect, Form};
use waypost_testkit::{plan_of, task as spec};

use crate::{draft, fixture, json, losses, problems, seed, task, written};

const AGORA: Dialect = Dialect::Agora;

#[test]
fn a_run_that_is_read_and_written_is_the_same_text() {
    for name in ["agora/run.json", "agora/state.json"] {
        let text = fixture(name);
        let plan = draft(&text, AGORA);
        assert_eq!(validate(&plan), []);
        assert_eq!(written(&plan, AGORA, Form::AsRead), text, "{name}");
        assert_eq!(losses(&plan, AGORA, Form::AsRead), [""; 0], "{name}");
    }
}

#[test]
fn the_example_of_the_document_comes_back_equal() {
    let Some(text) = seed("agora-plan-json.txt") else { return };
    let at = text.find(r#"{ "id": "fanout-1""#).unwrap();
    let end = text.find("]}Item lifecycle").unwrap() + 2;
    let plan = draft(&text[at..end], AGORA);
    for form in [Form::AsRead, Form::Document] {
        assert_eq!(json(&written(&plan, AGORA, form)), json(&text[at..end]));
    }
    assert_eq!(losses(&plan, AGORA, Form::Document), [""; 0]);
}

#[test]
fn every_field_of_an_item_is_read() {
    let plan = draft(&fixture("agora/run.json"), AGORA);
    assert_eq!(plan.spec.queue, "default");
    let lint = task(&plan, "lint");
    let work = lint.spec.work.as_ref().unwrap();
    assert_eq!((work.executor.as_str(), work.shape.as_deref()), ("dispatch", Some("dev.lint")));
    assert_eq!(work.inputs.value()["workerInput"]["paths"][0], "src");
    assert_eq!((lint.spec.locks[0].key.as_str(), lint.spec.locks[0].mode), ("repo/src", LockMode::Exclusive));
    assert_eq!(lint.spec.description, "");
    assert_eq!(task(&plan, "report").spec.depends_on[0].to_string(), "lint");
}

#[test]
fn the_state_of_items_is_read() {
    let plan = draft(&fixture("agora/state.json"), AGORA);
    let denied = &task(&plan, "a").state;
    assert_eq!((denied.status, denied.error.as_deref()), (Status::Failed, Some("not tonight")));
    let running = &task(&plan, "b").state;
    assert_eq!((running.status, running.tries, running.attempt), (Status::Running, 1, 2));
    assert_eq!(running.started_at.unwrap().to_string(), "2026-06-01T00:00:00.123Z");
    assert_eq!(task(&plan, "c").state.reason.as_deref(), Some("dependency failed or skipped"));
    assert_eq!(task(&plan, "d").state.status, Status::Pending);
}

#[test]
fn a_foreign_status_is_written_back_while_ours_is_the_same() {
    let mut plan = draft(&fixture("agora/state.json"), AGORA);
    plan.tasks[0].state.status = Status::Done;
    plan.tasks[3].state.status = Status::Running;
    let text = json(&written(&plan, AGORA, Form::AsRead));
    assert_eq!(
        (&text["items"][0]["status"], &text["items"][3]["status"]),
        (&"done".into(), &"running".into())
    );
}

#[test]
fn the_state_is_not_part_of_what_is_submitted() {
    let plan = draft(&fixture("agora/state.json"), AGORA);
    let text = json(&written(&plan, AGORA, Form::Document));
    assert_eq!(text["items"][0].get("status"), None);
    assert!(losses(&plan, AGORA, Form::Document).contains(&"task c: reason".to_owned()));
    let plan = draft(&fixture("agora/run.json"), AGORA);
    assert_eq!(json(&written(&plan, AGORA, Form::Program))["items"][0]["status"], "pending");
}

#[test]
fn what_agora_has_no_word_for_is_a_loss() {
    let mut plan = plan_of([spec("a", &[])]);
    plan.tasks[0].spec.locks = serde_json::from_str(r#"[{"key": "k", "mode": "shared"}]"#).unwrap();
    plan.tasks[0].spec.parent = Some(waypost_testkit::id("a"));
    assert_eq!(
        losses(&plan, AGORA, Form::Document),
        ["plan: title", "task a: description", "task a: parent", "task a: work", "task a: locks"]
    );
    let text = written(&plan, AGORA, Form::Document);
    assert_eq!(json(&text)["items"][0]["resourceLocks"], json(r#"["k"]"#));
    assert_eq!(draft(&text, AGORA).tasks[0].spec.work, None);
}

#[test]
fn every_problem_is_told_at_once() {
    let text = r#"{"queue": 5, "items": [
        {"id": "a", "executor": "x", "inputs": [], "depends_on": ["b", {}], "status": "odd", "attempts": -1},
        {"executor": "x", "inputs": {}, "depends_on": [], "resourceLocks": []},
        null
    ]}"#;
    assert_eq!(
        problems(text, AGORA),
        [
            "plan: `id` is missing",
            "plan: `queue` has the wrong type: expected text, found 5",
            "task a: `resourceLocks` is missing",
            "task a: `inputs` has the wrong type: expected an object, found a list",
            "task a: `depends_on[1]` has the wrong type: expected text, found an object",
            "task a: `status` has the wrong type: expected pending, ready, running, done, failed, skipped, cancelled \
             or denied, found \"odd\"",
            "task a: `attempts` has the wrong type: expected a count, found -1",
            "task number 2: `id` is missing",
            "task number 3: `items` has the wrong type: expected an object, found null",
        ]
    );
}
