//! clido's plans: files, answers, steps; and what the program does with the same inputs.

use serde_json::{Map, Value};
use waypost_core::{Complexity, Status, levels, topological_order, validate};
use waypost_formats::clido::steps_of_text;
use waypost_formats::{Dialect, Form, Unreadable, read};

use crate::{draft, fixture, json, losses, observed, problems, reading, task, written};

const CLIDO: Dialect = Dialect::Clido;

fn ids(list: &[waypost_core::TaskId]) -> Vec<&str> {
    list.iter().map(|id| id.as_str()).collect()
}

#[test]
fn a_file_that_is_read_and_written_is_the_same_text() {
    for name in ["clido/saved.json", "clido/document.json", "clido/flat.json"] {
        let text = fixture(name);
        assert_eq!(written(&draft(&text, CLIDO), CLIDO, Form::AsRead), text, "{name}");
    }
}

#[test]
fn observed_files_come_back_equal() {
    for name in [
        "design-flat-with-id-created_at.json",
        "doc-plan-schema-full-example.json",
        "doc-planner-guide-example.json",
        "real-define_project_structure_1774558451.json",
        "real-plan-6ecda1a6.json",
    ] {
        let Some(text) = observed(&format!("clido/{name}")) else { continue };
        let plan = draft(&text, CLIDO);
        assert_eq!(json(&written(&plan, CLIDO, Form::AsRead)), json(&text), "{name}");
        if name.starts_with("real") {
            assert_eq!(written(&plan, CLIDO, Form::AsRead), text, "{name}");
        }
    }
}

#[test]
fn every_field_of_a_task_is_read() {
    let plan = draft(&fixture("clido/saved.json"), CLIDO);
    assert_eq!(plan.id.as_ref().unwrap().as_str(), "plan-51ab00c2");
    assert_eq!(plan.spec.goal, "Speed up the search");
    assert_eq!(plan.state.created_at.unwrap().to_string(), "2026-03-26T18:33:20Z");
    let index = task(&plan, "t2");
    assert_eq!(index.spec.depends_on[0].to_string(), "t1");
    assert_eq!(index.spec.complexity, Some(Complexity::High));
    assert_eq!(index.spec.tools, Some(vec!["Edit".to_owned()]));
    assert_eq!((index.spec.skip, index.spec.notes.as_str()), (true, "ask first"));
    assert_eq!(index.state.status, Status::Skipped);
}

#[test]
fn a_chatty_answer_with_braces_and_fences_in_it_is_understood() {
    let plan = draft(&fixture("clido/answer.txt"), CLIDO);
    assert_eq!(plan.spec.goal, "Show `code` in ```rust fences");
    assert_eq!(plan.tasks.len(), 3);
    assert_eq!(task(&plan, "2").spec.depends_on[0].to_string(), "1");
    assert_eq!(task(&plan, "2").spec.complexity, Some(Complexity::High));
    assert_eq!(task(&plan, "2").state.status, Status::Running);
    assert_eq!(validate(&plan), []);
}

#[test]
fn answers_of_many_kinds_are_understood() {
    let plan = r#"{"goal":"g","tasks":[]}"#;
    for text in [
        format!("```json\n{plan}\n```"),
        format!("```\n{plan}\n```"),
        format!("```Json {plan}"),
        format!("```\nls -la\n```\n{plan}"),
        format!("Here {{see}}: {plan} bye }} {{"),
        format!("}} {{ {plan}"),
        format!("{plan} {plan}"),
        format!("{{\"plan\": {plan}}}"),
        format!("{{\"thought\": 1}} {plan}"),
    ] {
        assert_eq!(draft(&text, CLIDO).spec.goal, "g", "{text}");
    }
    // Which one is meant, its author says.
    let text = format!("{{\"goal\":\"an example\",\"tasks\":[]}} but really\n```json\n{plan}\n```");
    assert_eq!(reading(&text, CLIDO).drafts.len(), 2);
}

#[test]
fn an_answer_without_a_plan_says_so_and_never_panics() {
    for text in
        ["} {", "{", "}", "```", "```json", "```json {", "", "{see}", "a } b { c", "[]", "[{\"id\": 1}]"]
    {
        assert!(
            matches!(read(text, Some(CLIDO), None), Err(Unreadable::NoPlan(_) | Unreadable::Syntax { .. })),
            "{text}"
        );
    }
}

#[test]
fn a_list_of_tasks_is_a_plan_that_lacks_its_goal() {
    let text = r#"[{"id": "t1", "description": "d", "depends_on": []}]"#;
    assert_eq!(problems(text, CLIDO), ["plan: `goal` is missing"]);
    assert_eq!(reading(text, CLIDO).drafts[0].tasks.len(), 1);
}

#[test]
fn every_problem_is_told_at_once() {
    let text = r#"{"meta": {"id": "x"}, "tasks": [
        {"id": "a", "description": 5, "depends_on": ["b", true], "complexity": "huge", "skip": 1, "status": "lost"},
        {"description": "no id"},
        "just text",
        {"id": "b\u0007", "notes": []}
    ]}"#;
    assert_eq!(
        problems(text, CLIDO),
        [
            "plan: `meta.goal` is missing",
            "task a: `description` has the wrong type: expected text, found 5",
            "task a: `depends_on[1]` has the wrong type: expected text, found true",
            "task a: `complexity` has the wrong type: expected low, medium or high, found \"huge\"",
            "task a: `skip` has the wrong type: expected true or false, found 1",
            "task a: `status` has the wrong type: expected pending, running, done, failed or skipped, found \"lost\"",
            "task number 2: `id` is missing",
            "task number 3: `tasks` has the wrong type: expected an object, found \"just text\"",
            "task b\u{7}: the id cannot be used: a task id must not hold control characters; found '\\u{7}'",
            "task b\u{7}: `description` is missing",
            "task b\u{7}: `notes` has the wrong type: expected text, found a list",
        ]
    );
}

#[test]
fn unknown_fields_are_kept_and_the_programs_form_names_them_as_losses() {
    let plan = draft(&fixture("clido/document.json"), CLIDO);
    assert_eq!(losses(&plan, CLIDO, Form::AsRead), [""; 0]);
    assert_eq!(losses(&plan, CLIDO, Form::Program), ["plan: foreign.clido", "task t2: foreign.clido"]);
    assert_eq!(
        losses(&plan, Dialect::Agora, Form::Document)
            .iter()
            .filter(|loss| loss.contains("foreign"))
            .collect::<Vec<_>>(),
        ["plan: foreign.clido", "task t2: foreign.clido"]
    );
    assert_eq!(losses(&plan, Dialect::Native, Form::AsRead), [""; 0]);
}

#[test]
fn a_plan_without_id_and_time_gets_those_of_the_program() {
    let plan = draft(r#"{"goal": "do the thing", "tasks": []}"#, CLIDO);
    let text = json(&written(&plan, CLIDO, Form::Document));
    assert_eq!(text["meta"]["id"], "plan-983cbf2a");
    assert_eq!(text["meta"]["created_at"], "2026-01-01T00:00:00Z");
}

#[test]
fn an_id_that_cannot_be_ours_is_noted_and_comes_back() {
    let text = r#"{"meta": {"id": "../up", "goal": "g", "created_at": "whenever"}, "tasks": []}"#;
    let reading = reading(text, CLIDO);
    assert_eq!(reading.drafts[0].id, None);
    assert!(
        reading.notes[0].starts_with(r#"the plan's id "../up" cannot be used here"#),
        "{:?}",
        reading.notes
    );
    assert_eq!(json(&written(&reading.drafts[0], CLIDO, Form::AsRead)), json(text));
}

#[test]
fn what_clido_has_no_word_for_is_a_loss() {
    let mut plan = draft(&fixture("clido/document.json"), CLIDO);
    plan.tasks[0].state.status = Status::Cancelled;
    plan.tasks[1].spec.priority = 4;
    plan.spec.title = "Coffee".to_owned();
    assert_eq!(losses(&plan, CLIDO, Form::AsRead), ["plan: title", "task t1: status", "task t2: priority"]);
    assert_eq!(json(&written(&plan, CLIDO, Form::AsRead))["tasks"][0]["status"], "skipped");
}

#[test]
fn a_step_that_is_set_in_bold_loses_its_stars() {
    assert_eq!(
        steps_of_text("**Step 1:** Fix auth\n__2.__ Test **all** of it"),
        ["Fix auth", "Test **all** of it"]
    );
}

#[test]
fn all_plans_of_a_text_are_read_and_a_repeated_key_is_named() {
    let one = |goal: &str| format!(r#"{{"goal": "{goal}", "tasks": [{{"id": "t1", "description": "d"}}]}}"#);
    let text = format!("```json\n{}\n```\nand\n```\n{}\n```\n", one("a"), one("b"));
    for file in [Some("plans.md"), None] {
        let reading = read(&text, Some(CLIDO), file).unwrap();
        let goals: Vec<String> = reading.drafts.into_iter().map(|draft| draft.spec.goal).collect();
        assert_eq!((goals, reading.notes), (vec!["a".to_owned(), "b".to_owned()], vec![]), "{file:?}");
    }
    let reading = read(r#"{"goal": "g", "goal": "h", "tasks": []}"#, Some(CLIDO), None).unwrap();
    assert_eq!(reading.notes, ["the key goal is there more than once; one of them counts"]);
}

#[test]
fn a_flat_file_is_always_the_same_plan() {
    let text = r#"{"goal": "do the thing", "tasks": [{"id": "t1", "description": "one"}]}"#;
    let from_file = read(text, Some(Dialect::Clido), Some("plan.json")).unwrap().drafts.remove(0);
    assert_eq!(from_file.id.as_ref().map(|id| id.as_str()), Some("plan-983cbf2a"));
    assert!(!written(&from_file, CLIDO, Form::AsRead).contains("plan-983cbf2a"));
    // What a model answers is a new plan every time.
    assert_eq!(read(text, Some(Dialect::Clido), None).unwrap().drafts[0].id, None);
}

#[test]
fn numbered_lines_are_steps() {
    assert_eq!(
        steps_of_text("Step 1: a\nSTEP 2. b\n3) c\n4.d\n  5. indented\n- Step 6: bullet\n## 7. e"),
        ["a", "b", "c", "d", "e"]
    );
    let reading = reading("My plan\n1. look\n2. leap\n", CLIDO);
    assert_eq!(reading.drafts[0].spec.goal, "look");
    assert_eq!(reading.drafts[0].tasks[1].spec.id.as_str(), "2");
    assert_eq!(reading.drafts[0].tasks[1].spec.complexity, Some(Complexity::Medium));
    assert_eq!(reading.notes.len(), 1);
}

#[test]
fn steps_are_those_that_the_program_finds() {
    let Some(cases) = observed("clido/text-plan-cases.jsonl") else { return };
    for case in cases.lines().map(json) {
        let steps: Vec<Value> =
            steps_of_text(case["text"].as_str().unwrap()).into_iter().map(Into::into).collect();
        assert_eq!(Value::Array(steps), case["steps"], "{case}");
    }
}

/// What the program refuses and we understand.
const BETTER: [&str; 12] = [
    "null depends_on",
    "integer id",
    "status 'in_progress'",
    "status 'complete'",
    "complexity 'med'",
    "complexity None",
    "skip string",
    "fence marker inside string",
    "prose with braces before",
    "meta missing id",
    "two bare objects",
    "missing depends_on",
];

#[test]
fn answers_are_understood_as_the_program_does_or_better() {
    let Some(cases) = observed("clido/parse-cases.jsonl") else { return };
    for case in cases.lines().map(json) {
        let (name, input) = (case["name"].as_str().unwrap(), case["input"].as_str().unwrap());
        let expected = &case["expected"];
        let read = read(input, Some(CLIDO), None);
        if expected["ok"] == true {
            let reading = read.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(reading.problems, [], "{name}");
            let plan = &reading.drafts[0];
            assert_eq!(validate(plan), [], "{name}");
            assert_eq!(json(&written(plan, CLIDO, Form::Program)), expected["plan"], "{name}");
            let order = topological_order(plan).unwrap();
            assert_eq!(Value::from(ids(&order)), expected["topological_order"], "{name}");
            let batches: Vec<Value> = levels(plan).unwrap().iter().map(|level| ids(level).into()).collect();
            assert_eq!(Value::from(batches), expected["parallel_batches"], "{name}");
        } else {
            let fine = read.as_ref().is_ok_and(|reading| {
                reading.problems.is_empty() && reading.drafts.iter().all(|plan| validate(plan).is_empty())
            });
            assert_eq!(fine, BETTER.contains(&name), "{name}: {read:?}");
        }
    }
}

#[test]
fn the_same_goal_always_gives_the_same_id() {
    for (goal, id) in [("", "plan-00000000"), ("a", "plan-00000061"), ("Grüße 🎯", "plan-105f088b")] {
        let mut map = Map::new();
        map.insert("goal".to_owned(), goal.into());
        map.insert("tasks".to_owned(), Value::Array(Vec::new()));
        let plan = draft(&Value::Object(map).to_string(), CLIDO);
        assert_eq!(json(&written(&plan, CLIDO, Form::Program))["meta"]["id"], id);
    }
}
