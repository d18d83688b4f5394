//! docker-agent's stored plan documents.

use waypost_core::{Phase, Timestamp};
use waypost_formats::{Dialect, Form, read, sniff};
use waypost_testkit::{observed_data, plan_of, task};

use crate::{draft, fixture, json, losses, problems, written};

const DIALECT: Dialect = Dialect::PlanDocument;

#[test]
fn every_field_of_a_document_has_its_place_in_a_plan() {
    let plan = draft(&fixture("plan-document/harbour.json"), DIALECT);
    assert_eq!(plan.id.as_ref().map(ToString::to_string).as_deref(), Some("harbour"));
    assert_eq!(plan.spec.title, "Move the harbour office");
    assert_eq!(plan.spec.body, "# Move\n\nTell the <crew> & pack.\n");
    assert_eq!(plan.spec.owner, "mover");
    assert_eq!(plan.spec.status, "waiting for the van");
    assert_eq!(plan.state.updated_at, Timestamp::parse("2026-02-03T04:05:06Z").ok());
    assert_eq!(plan.version, 0, "our own versions start anew");
}

#[test]
fn a_stored_file_is_written_back_byte_for_byte() {
    let text = fixture("plan-document/harbour.json");
    let plan = draft(&text, DIALECT);
    for form in [Form::AsRead, Form::Document, Form::Program] {
        assert_eq!(written(&plan, DIALECT, form), text, "{form:?}");
    }
}

#[test]
fn the_hosts_form_is_written_back_as_it_was_and_the_store_form_on_request() {
    let text = fixture("plan-document/host.json");
    let plan = draft(&text, DIALECT);
    assert_eq!(written(&plan, DIALECT, Form::AsRead), text);
    let stored = json(&written(&plan, DIALECT, Form::Program));
    let keys: Vec<&String> = stored.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "title", "content", "author", "status", "revision", "updatedAt"]);
    assert_eq!(stored["revision"], 4);
    assert!(losses(&plan, DIALECT, Form::Program).contains(&"plan: foreign.plan-document".to_owned()));
}

#[test]
fn the_name_of_the_file_wins_over_the_name_inside() {
    let text = r#"{"name":"old-name","content":"x","revision":1}"#;
    let reading = read(text, Some(DIALECT), Some("plans/new-name.json")).unwrap();
    assert_eq!(reading.drafts[0].id.as_ref().unwrap().as_str(), "new-name");
    assert_eq!(
        reading.notes,
        ["the file is called \"new-name\", the name inside is \"old-name\": \"new-name\" is used"]
    );
}

#[test]
fn a_name_that_docker_agent_refuses_is_kept_with_a_note() {
    let reading = read(r#"{"content":"x","revision":2}"#, Some(DIALECT), Some("Upper.json")).unwrap();
    assert_eq!(reading.drafts[0].id.as_ref().unwrap().as_str(), "Upper");
    assert_eq!(reading.notes, ["docker-agent itself does not open a plan called \"Upper\""]);
    let reading = read(r#"{"name":"two words","content":"x"}"#, Some(DIALECT), None).unwrap();
    assert_eq!(reading.drafts[0].id, None);
    assert_eq!(json(&written(&reading.drafts[0], DIALECT, Form::AsRead))["name"], "two words");
}

#[test]
fn a_file_without_a_revision_stays_without_one_until_we_change_the_plan() {
    let mut plan = draft(r#"{"name":"planted","content":"precious"}"#, DIALECT);
    assert_eq!(json(&written(&plan, DIALECT, Form::AsRead)).get("revision"), None);
    plan.version = 2;
    assert_eq!(json(&written(&plan, DIALECT, Form::AsRead))["revision"], 2);
}

#[test]
fn the_revision_goes_on_from_the_one_that_was_read() {
    let mut plan = draft(r#"{"name":"p","content":"x","revision":5}"#, DIALECT);
    for (version, revision) in [(0, 5), (1, 5), (2, 6), (10, 14)] {
        plan.version = version;
        assert_eq!(json(&written(&plan, DIALECT, Form::Program))["revision"], revision);
    }
}

#[test]
fn unknown_fields_survive() {
    let text = r#"{"name":"p","content":"x","revision":1,"mood":{"good":true},"$odd":1}"#;
    let back = json(&written(&draft(text, DIALECT), DIALECT, Form::AsRead));
    assert_eq!(back["mood"], json(r#"{"good":true}"#));
    assert_eq!(back["$odd"], 1);
}

#[test]
fn the_command_lines_envelope_is_opened() {
    let text = r#"{"schema_version":"1","plans":[
        {"scope":"shared","name":"a","content":"A","version":2},
        {"scope":"session","name":"b","content":"B","session_id":"s1"}]}"#;
    assert_eq!(sniff(text, None), Some(DIALECT));
    let reading = read(text, None, None).unwrap();
    let bodies: Vec<&str> = reading.drafts.iter().map(|plan| plan.spec.body.as_str()).collect();
    assert_eq!(bodies, ["A", "B"]);
}

#[test]
fn every_wrong_field_is_reported_at_once() {
    let text = r#"{"name":7,"title":[],"author":{},"status":1,"revision":"many","updatedAt":"soon"}"#;
    assert_eq!(
        problems(text, DIALECT),
        [
            "plan: `name` has the wrong type: expected text, found 7",
            "plan: `title` has the wrong type: expected text, found a list",
            "plan: `content` is missing",
            "plan: `author` has the wrong type: expected text, found an object",
            "plan: `status` has the wrong type: expected text, found 1",
            "plan: `revision` has the wrong type: expected a whole number, found \"many\"",
            "plan: `updatedAt` has the wrong type: expected a time such as 2026-03-22T10:00:00Z, found \"soon\"",
        ]
    );
    assert_eq!(
        problems(r#"{"content":"x","revision":-1}"#, DIALECT),
        ["plan: `revision` has the wrong type: expected a number from 0, found -1"]
    );
}

#[test]
fn what_a_document_cannot_hold_is_listed() {
    let mut plan = plan_of([task("a", &[]), task("b", &["a"])]);
    plan.spec.goal = "a goal".into();
    plan.spec.queue = "night".into();
    plan.state.phase = Phase::Paused;
    assert_eq!(
        losses(&plan, DIALECT, Form::Program),
        ["plan: goal", "plan: phase", "plan: queue", "plan: tasks"]
    );
}

#[test]
fn a_plan_of_ours_gets_a_name_that_docker_agent_takes() {
    let mut plan = plan_of([]);
    plan.spec.title = "Größe: The Big Plan!".into();
    assert_eq!(json(&written(&plan, DIALECT, Form::Program))["name"], "gr-e-the-big-plan");
    plan.id = Some("Big.Plan".parse().unwrap());
    assert_eq!(json(&written(&plan, DIALECT, Form::Program))["name"], "big-plan");
    assert_eq!(losses(&plan, DIALECT, Form::Program), ["plan: id"]);
}

#[test]
fn times_are_written_to_the_second() {
    let mut plan = plan_of([]);
    plan.state.updated_at = Timestamp::parse("2026-01-01T00:00:00.999999Z").ok();
    assert_eq!(json(&written(&plan, DIALECT, Form::Program))["updatedAt"], "2026-01-01T00:00:00Z");
}

#[test]
fn the_stores_of_the_real_program_are_read() {
    let Some(root) = observed_data() else {
        eprintln!("no observed data beside this checkout: only the fixtures were read");
        return;
    };
    let mut read_back = 0;
    for entry in std::fs::read_dir(root.join("docker-agent/store/plans")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        match read(&text, Some(DIALECT), Some(name)) {
            Ok(reading) => {
                assert_eq!(reading.problems, [], "{name}");
                let plan = &reading.drafts[0];
                assert_eq!(plan.id.as_ref().unwrap().as_str(), name.trim_end_matches(".json"));
                // The files that the program itself wrote come back as they were.
                if text.contains("updatedAt") {
                    assert_eq!(written(plan, DIALECT, Form::AsRead), text, "{name}");
                    read_back += 1;
                }
            }
            Err(error) => assert_eq!((name, error.to_string().starts_with("line 1")), ("broken.json", true)),
        }
    }
    assert!(read_back >= 3);
    let calls = std::fs::read_to_string(root.join("docker-agent/tool_calls.json")).unwrap();
    for call in json(&calls).as_array().unwrap() {
        let is_plan = ["write_plan", "read_plan"].contains(&call["tool"].as_str().unwrap());
        if is_plan && call["is_error"] == false {
            let answer = call["output"].as_str().unwrap();
            assert_eq!(sniff(answer, None), Some(DIALECT), "{answer}");
            let back = written(&draft(answer, DIALECT), DIALECT, Form::AsRead);
            assert_eq!(json(&back), json(answer));
            assert!(!back.contains(['<', '>', '&', '\u{2028}']));
        }
    }
}
