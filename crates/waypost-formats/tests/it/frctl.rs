//! frctl's goal trees and their index.

use waypost_core::{Phase, Refinement, Status, validate};
use waypost_formats::frctl::{update_index, write_index};
use waypost_formats::{Dialect, Form, read};
use waypost_testkit::{plan_of, task as spec};

use crate::{draft, fixture, json, losses, observed, problems, reading, seed, task, written};

const FRCTL: Dialect = Dialect::Frctl;

fn refinement(plan: &waypost_core::Draft, id: &str) -> Option<Refinement> {
    task(plan, id).spec.thinking.as_ref().and_then(|thinking| thinking.refinement)
}

#[test]
fn a_plan_that_is_read_and_written_is_the_same_text() {
    for name in ["frctl/saved.json", "frctl/document.json"] {
        let text = fixture(name);
        let plan = draft(&text, FRCTL);
        assert_eq!(validate(&plan), []);
        assert_eq!(written(&plan, FRCTL, Form::AsRead), text, "{name}");
    }
}

#[test]
fn what_goals_have_cost_counts_where_the_plan_forgot_it() {
    let text = fixture("frctl/saved.json");
    let mut value = json(&text);
    let goals = value["goals"].as_object_mut().unwrap();
    goals.values_mut().for_each(|goal| goal["tokens_used"] = 100.into());
    let of_goals = 100 * i64::try_from(goals.len()).unwrap();
    for (total, counted) in [(0, of_goals), (of_goals + 7, of_goals + 7)] {
        value["total_tokens"] = total.into();
        let mut plan = draft(&value.to_string(), FRCTL);
        assert_eq!(plan.state.tokens_used, counted);
        assert_eq!(
            json(&written(&plan, FRCTL, Form::AsRead)),
            value,
            "a file that nobody changed stays as it was"
        );
        plan.state.tokens_used += 1;
        assert_eq!(json(&written(&plan, FRCTL, Form::AsRead))["total_tokens"], counted + 1);
    }
}

#[test]
fn observed_plans_come_back_equal() {
    for name in ["doc-complete-example.json", "real-e4b4b3ea.json"] {
        let Some(text) = observed(&format!("frctl/{name}")) else { continue };
        let plan = draft(&text, FRCTL);
        assert_eq!(json(&written(&plan, FRCTL, Form::AsRead)), json(&text), "{name}");
        if name.starts_with("real") {
            assert_eq!(written(&plan, FRCTL, Form::Program), text, "{name}");
        } else {
            assert_eq!(json(&written(&plan, FRCTL, Form::Document)), json(&text), "{name}");
        }
    }
}

#[test]
fn the_example_of_the_document_comes_back_equal() {
    let Some(text) = seed("frctl-plan-schema.txt") else { return };
    let at = text.find("## Complete Example").unwrap();
    let at = at + text[at..].find("```json").unwrap() + 7;
    let end = at + text[at..].find("```").unwrap();
    let plan = draft(&text[at..end], FRCTL);
    assert_eq!(json(&written(&plan, FRCTL, Form::Document)), json(&text[at..end]));
    assert_eq!(losses(&plan, FRCTL, Form::Document), [""; 0]);
}

#[test]
fn what_the_program_loads_is_written_as_it_writes_it() {
    let Some(cases) = observed("frctl/load-cases.jsonl") else { return };
    for case in cases.lines().map(json) {
        let name = case["name"].as_str().unwrap();
        let reading = read(&case["input"].to_string(), Some(FRCTL), None).unwrap();
        if case["expected"]["ok"] == true {
            let text = written(&reading.drafts[0], FRCTL, Form::Program);
            assert_eq!(json(&text), case["expected"]["dump"], "{name}");
        } else {
            // The document's own example is refused by the program.
            assert_eq!(reading.problems.is_empty(), name.starts_with("doc complete example"), "{name}");
        }
    }
}

#[test]
fn the_two_meanings_of_complete_are_kept_apart() {
    let plan = draft(&fixture("frctl/saved.json"), FRCTL);
    assert_eq!(task(&plan, "77aa00ff-root").state.status, Status::Pending);
    assert_eq!(refinement(&plan, "77aa00ff-root"), Some(Refinement::Decomposed));
    assert_eq!(refinement(&plan, "77aa00ff-root-1"), Some(Refinement::Atomic));
    assert_eq!(task(&plan, "77aa00ff-root-2").state.status, Status::Failed);
    assert_eq!(plan.state.phase, Phase::Draft);
    let plan = draft(&fixture("frctl/document.json"), FRCTL);
    assert_eq!(task(&plan, "0b0b0b0b-g2").state.status, Status::Done);
    assert_eq!(refinement(&plan, "0b0b0b0b-root"), Some(Refinement::Decomposing));
}

#[test]
fn a_composite_goal_is_done_when_all_below_it_is() {
    let text = r#"{"id": "p", "root_goal_id": "r", "status": "complete", "goals": {
        "r": {"id": "r", "description": "r", "status": "complete", "child_ids": ["a"]},
        "a": {"id": "a", "description": "a", "status": "complete", "parent_id": "r", "depth": 1}}}"#;
    let plan = draft(text, FRCTL);
    assert_eq!(task(&plan, "r").state.status, Status::Done);
    assert_eq!(plan.state.phase, Phase::Completed);
}

#[test]
fn children_stand_in_the_order_of_their_parent() {
    let text = r#"{"id": "p", "root_goal_id": "r", "goals": {
        "a": {"id": "a", "description": "a", "parent_id": "r", "depth": 1},
        "r": {"id": "r", "description": "r", "child_ids": ["c", "a", "b"]},
        "b": {"id": "b", "description": "b", "parent_id": "r", "depth": 1},
        "c": {"id": "c", "description": "c", "parent_id": "r", "depth": 1}}}"#;
    let plan = draft(text, FRCTL);
    let order: Vec<&str> = plan.tasks.iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(order, ["c", "r", "a", "b"]);
    let again = json(&written(&plan, FRCTL, Form::AsRead));
    assert_eq!(again["goals"]["r"]["child_ids"], json(r#"["c", "a", "b"]"#));
}

#[test]
fn numbers_are_read_leniently_and_halves_are_not_whole() {
    let goal = |tokens: &str| {
        format!(
            r#"{{"id": "p", "root_goal_id": "r", "goals": {{"r": {{"id": "r", "description": "r", "tokens_used": {tokens}}}}}}}"#
        )
    };
    for (tokens, read) in [("12", 12), ("12.0", 12), ("\"12\"", 12), ("-3", -3)] {
        let plan = draft(&goal(tokens), FRCTL);
        assert_eq!(plan.tasks[0].spec.thinking.as_ref().unwrap().tokens, read);
    }
    assert_eq!(
        problems(&goal("12.5"), FRCTL),
        ["task r: `tokens_used` has the wrong type: expected a whole number, found 12.5"]
    );
}

#[test]
fn what_contradicts_the_tree_is_told() {
    let text = r#"{"id": "p", "root_goal_id": "gone", "goals": {
        "r": {"id": "r", "description": "r", "child_ids": ["ghost", "b"]},
        "a": {"id": "a", "description": "a", "parent_id": "r", "depth": 4},
        "b": {"id": "b", "description": "b"},
        "k": {"id": "other", "description": "o", "status": "done"}}}"#;
    assert_eq!(
        problems(text, FRCTL),
        [
            "task k: stands under the key k, but its id is other",
            "task other: `status` has the wrong type: expected pending, decomposing, atomic, complete or failed, \
             found \"done\"",
            "task r: lists ghost as a child, which is not one",
            "task r: lists b as a child, which is not one",
            "task r: does not list a among its children, whose parent it is",
            "task a: has depth 4, but its parents put it at depth 1",
            "plan: the root goal gone is not among the goals",
        ]
    );
}

#[test]
fn what_was_only_kept_gives_way_to_what_has_changed() {
    let mut plan = draft(&fixture("frctl/document.json"), FRCTL);
    assert_eq!(json(&written(&plan, FRCTL, Form::AsRead))["max_depth"], 3);
    let mut below = waypost_core::TaskSpec::new(waypost_testkit::id("deep"), "deeper");
    below.parent = Some(waypost_testkit::id("0b0b0b0b-g1"));
    plan.tasks.push(waypost_core::Task::new(below));
    let text = json(&written(&plan, FRCTL, Form::AsRead));
    assert_eq!((&text["max_depth"], &text["goals"]["deep"]["depth"]), (&2.into(), &2.into()));
    assert_eq!(text["goals"]["0b0b0b0b-g1"]["child_ids"], json(r#"["deep"]"#));
    let mut plan = draft(&fixture("frctl/saved.json"), FRCTL);
    assert_eq!(json(&written(&plan, FRCTL, Form::AsRead))["status"], "complete");
    plan.state.phase = Phase::Active;
    assert_eq!(
        json(&written(&plan, FRCTL, Form::AsRead))["status"],
        "complete",
        "every goal is looked at: planning is over, whether or not the work is"
    );
    plan.tasks[1].spec.thinking = None;
    assert_eq!(json(&written(&plan, FRCTL, Form::AsRead))["status"], "in_progress");
    plan.state.phase = Phase::Paused;
    assert_eq!(json(&written(&plan, FRCTL, Form::AsRead))["status"], "paused");
}

#[test]
fn the_words_of_a_plan_come_back_and_others_are_kept_with_a_note() {
    let mut value = json(&fixture("frctl/saved.json"));
    for (word, phase) in [
        ("in_progress", Phase::Draft),
        ("complete", Phase::Draft),
        ("paused", Phase::Paused),
        ("failed", Phase::Failed),
        ("resting", Phase::Draft),
    ] {
        value["status"] = word.into();
        let reading = read(&value.to_string(), Some(FRCTL), None).unwrap();
        let plan = &reading.drafts[0];
        assert_eq!((plan.state.phase, &reading.problems), (phase, &vec![]), "{word}");
        assert_eq!(json(&written(plan, FRCTL, Form::AsRead))["status"], word);
        let is_named = reading.notes.iter().any(|note| note.contains("\"resting\" is none of frctl's"));
        assert_eq!(is_named, word == "resting", "{:?}", reading.notes);
    }
}

#[test]
fn a_task_that_is_added_beside_the_root_is_written_below_it() {
    let mut plan = draft(&fixture("frctl/document.json"), FRCTL);
    plan.tasks.push(waypost_core::Task::new(spec("more", &[])));
    let text = json(&written(&plan, FRCTL, Form::AsRead));
    let root = text["root_goal_id"].as_str().unwrap();
    let goal = &text["goals"]["more"];
    assert_eq!((&goal["parent_id"], &goal["depth"]), (&root.into(), &1.into()));
    let children = text["goals"][root]["child_ids"].as_array().unwrap();
    assert_eq!(children.last().unwrap(), "more");
    assert!(losses(&plan, FRCTL, Form::AsRead).contains(&"task more: parent".to_owned()));
    // A file that has two such goals comes back as it was.
    let mut odd = json(&fixture("frctl/document.json"));
    odd["goals"]["0b0b0b0b-g1"]["parent_id"] = serde_json::Value::Null;
    odd["goals"]["0b0b0b0b-g1"]["depth"] = 0.into();
    odd["goals"]["0b0b0b0b-root"]["child_ids"] = json(r#"["0b0b0b0b-g2"]"#);
    let plan = draft(&odd.to_string(), FRCTL);
    assert_eq!(json(&written(&plan, FRCTL, Form::AsRead)), odd);
}

#[test]
fn a_flat_plan_gets_a_root() {
    let mut plan = plan_of([spec("a", &[]), spec("b", &["a"])]);
    plan.spec.goal = "all of it".to_owned();
    let text = json(&written(&plan, FRCTL, Form::Document));
    let root = text["root_goal_id"].as_str().unwrap();
    assert_eq!(text["goals"][root]["description"], "all of it");
    assert_eq!(text["goals"][root]["child_ids"], json(r#"["a", "b"]"#));
    assert_eq!(text["goals"]["a"]["parent_id"], root);
    assert_eq!(text["goals"]["a"]["depth"], 1);
    let again = draft(&text.to_string(), FRCTL);
    assert_eq!((again.tasks.len(), validate(&again)), (3, vec![]));
    assert_eq!(losses(&plan, FRCTL, Form::Document), [""; 0]);
    assert_eq!(losses(&plan, FRCTL, Form::Program), ["plan: title"]);
}

#[test]
fn the_programs_digest_is_a_text() {
    let plan = draft(&fixture("frctl/document.json"), FRCTL);
    let text = json(&written(&plan, FRCTL, Form::Program));
    assert_eq!(text["goals"]["0b0b0b0b-g2"]["digest"], "dug two beds");
    assert_eq!(text.get("description"), None);
    assert_eq!(
        losses(&plan, FRCTL, Form::Program),
        [
            "plan: title",
            "plan: foreign.frctl",
            "task 0b0b0b0b-g2: thinking.digest",
            "task 0b0b0b0b-g2: foreign.frctl",
            "task 0b0b0b0b-g1: foreign.frctl",
        ]
    );
}

#[test]
fn an_index_is_read_and_written() {
    for (index, plan) in
        [("frctl/index-document.json", "frctl/document.json"), ("frctl/index-saved.json", "frctl/saved.json")]
    {
        let text = fixture(index);
        let reading = reading(&text, FRCTL);
        assert_eq!((reading.drafts.len(), reading.problems.len(), reading.notes.len()), (1, 0, 1), "{index}");
        assert_eq!(json(&write_index(&reading.drafts, Form::AsRead).unwrap().text), json(&text), "{index}");
        let plans = [draft(&fixture(plan), FRCTL)];
        assert_eq!(json(&write_index(&plans, Form::AsRead).unwrap().text), json(&text), "{index}");
    }
}

#[test]
fn an_index_gets_a_line_for_a_plan_and_keeps_the_others() {
    let plan = draft(&fixture("frctl/document.json"), FRCTL);
    let lone = json(&update_index(None, &plan).unwrap());
    assert_eq!(lone, json(&fixture("frctl/index-document.json")), "a new index has the form of the plan");
    let others = json(
        r#"{"plans": [{"id": "other", "total_goals": 7, "mine": 1}, {"id": "0b0b0b0b", "note": "kept"}], "x": 2}"#,
    );
    let index = json(&update_index(Some(&others.to_string()), &plan).unwrap());
    assert_eq!(index["plans"][0], others["plans"][0]);
    assert_eq!(index["plans"][1]["note"], "kept");
    assert_eq!(index["plans"][1]["total_goals"], lone["plans"][0]["total_goals"]);
    assert_eq!((&index["x"], &index["last_updated"]), (&2.into(), &lone["last_updated"]));
    // The program begins with an empty map.
    let map = json(&update_index(Some("{}"), &plan).unwrap());
    assert_eq!(map["0b0b0b0b"]["goal_count"], 3);
    assert!(update_index(Some(&fixture("frctl/document.json")), &plan).is_err(), "a plan is not an index");
}

#[test]
fn complete_means_what_the_document_says() {
    let text = fixture("frctl/saved.json");
    let plan = draft(&text, FRCTL);
    // To the program, a goal that is broken down is complete; in the document, one that is implemented.
    let document = json(&written(&plan, FRCTL, Form::Document));
    assert_eq!(document["goals"]["77aa00ff-root"]["status"], "decomposing");
    assert_eq!(document["status"], "complete", "all atomic goals are identified");
    assert_eq!(json(&written(&plan, FRCTL, Form::Program))["goals"]["77aa00ff-root"]["status"], "complete");
    let goal = |status: &str| {
        format!(
            r#"{{"id": "p", "root_goal_id": "r", "description": "d", "goals": {{
            "r": {{"id": "r", "description": "r", "status": "{status}", "child_ids": ["a"]}},
            "a": {{"id": "a", "description": "a", "status": "pending", "parent_id": "r", "child_ids": [], "depth": 1}}}}}}"#
        )
    };
    for status in ["complete", "failed", "atomic"] {
        let plan = draft(&goal(status), FRCTL);
        assert_eq!(task(&plan, "r").state.status, Status::Pending, "{status}");
        let again = json(&written(&plan, FRCTL, Form::AsRead));
        assert_eq!(again["goals"]["r"]["status"], status, "what the file says stays");
    }
    let noted = reading(&goal("failed"), FRCTL).notes;
    assert!(
        noted[0].starts_with("goal r is failed, but it ends as the goals below it do: it is pending here"),
        "{noted:?}"
    );
}

#[test]
fn finished_goals_are_atomic_and_ended_when_they_were_last_changed() {
    let plan = draft(&fixture("frctl/document.json"), FRCTL);
    let done = task(&plan, "0b0b0b0b-g2");
    assert_eq!(refinement(&plan, "0b0b0b0b-g2"), Some(Refinement::Atomic));
    assert!(done.state.updated_at.is_some());
    assert_eq!(done.state.finished_at, done.state.updated_at);
    let Some(text) = observed("frctl/doc-complete-example.json") else { return };
    let plan = draft(&text, FRCTL);
    let stored = waypost_core::Plan::from_trusted_draft("p".parse().unwrap(), plan);
    assert_eq!((stored.atomic(), stored.len()), (2, 4), "as in the document's index");
}

#[test]
fn a_later_version_is_refused_with_a_hint() {
    let of = |version: &str| {
        let mut plan = json(&fixture("frctl/document.json"));
        plan["schema_version"] = json(version);
        reading(&plan.to_string(), FRCTL).problems
    };
    for version in ["\"1.0\"", "\"1.7\"", "1", "\"one\""] {
        assert_eq!(of(version), [], "{version}");
    }
    for version in ["\"2.0\"", "\"v2\"", "2", "3.1"] {
        let problems = of(version);
        let [problem] = problems.as_slice() else { panic!("{version}: {problems:?}") };
        assert!(problem.to_string().contains("this Waypost reads version 1.0"), "{problem}");
        assert_eq!(problem.hint(), "update Waypost, or save the plan in version 1.0");
    }
}

#[test]
fn the_schema_is_as_strict_as_the_document() {
    let schema = jsonschema::validator_for(&json(waypost_formats::schema(FRCTL).unwrap())).unwrap();
    let mut good = vec![json(&fixture("frctl/document.json"))];
    good.extend(observed("frctl/doc-complete-example.json").map(|text| json(&text)));
    let stored = draft(&fixture("frctl/saved.json"), FRCTL);
    good.push(json(&written(&stored, FRCTL, Form::Document)));
    for plan in &good {
        let errors: Vec<String> = schema.iter_errors(plan).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
    }
    let plan = &good[0];
    let top =
        ["id", "root_goal_id", "goals", "created_at", "updated_at", "status", "total_tokens", "max_depth"];
    let goal =
        "id description status parent_id child_ids depth created_at updated_at tokens_used dependencies";
    let without = |pointer: &str, field: &str| {
        let mut bad = plan.clone();
        bad.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field).unwrap();
        bad
    };
    for bad in top
        .map(|field| without("", field))
        .into_iter()
        .chain(goal.split(' ').map(|field| without("/goals/0b0b0b0b-g2", field)))
    {
        assert!(!schema.is_valid(&bad), "{bad}");
    }
    for (pointer, value) in [
        ("/status", "\"banana\""),
        ("/created_at", "\"soon\""),
        ("/updated_at", "1764497867"),
        ("/total_tokens", "\"12\""),
        ("/max_depth", "-1"),
        ("/goals", "[]"),
        ("/description", "null"),
        ("/goals/0b0b0b0b-g2/status", "\"done\""),
        ("/goals/0b0b0b0b-g2/child_ids", "null"),
        ("/goals/0b0b0b0b-g2/depth", "1.5"),
        ("/goals/0b0b0b0b-g2/created_at", "\"2026-05-01T12:00:00\""),
        ("/goals/0b0b0b0b-g2/tokens_used", "null"),
        ("/goals/0b0b0b0b-g2/digest", "\"a text\""),
        ("/goals/0b0b0b0b-g2/digest", "{\"summary\": \"s\"}"),
        ("/goals/0b0b0b0b-g2/digest/fidelity_score", "1.5"),
    ] {
        let mut bad = plan.clone();
        *bad.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is not there")) = json(value);
        assert!(!schema.is_valid(&bad), "{pointer} = {value}");
    }
}

#[test]
fn observed_indices_come_back_equal() {
    for (index, plan) in [
        ("frctl/doc-index-example.json", "frctl/doc-complete-example.json"),
        ("frctl/real-index.json", "frctl/real-e4b4b3ea.json"),
    ] {
        let (Some(index), Some(plan)) = (observed(index), observed(plan)) else { continue };
        let heads = reading(&index, FRCTL).drafts;
        assert_eq!(json(&write_index(&heads, Form::AsRead).unwrap().text), json(&index));
        let plans = [draft(&plan, FRCTL)];
        assert_eq!(json(&write_index(&plans, Form::AsRead).unwrap().text), json(&index));
    }
}

#[test]
fn what_a_goal_must_have_is_missed_and_a_failed_plan_stays_failed() {
    let mut value = json(&fixture("frctl/saved.json"));
    value["status"] = "failed".into();
    let plan = draft(&value.to_string(), FRCTL);
    assert_eq!(plan.state.phase, Phase::Failed);
    assert_eq!(json(&written(&plan, FRCTL, Form::AsRead))["status"], "failed");
    let root = value["root_goal_id"].as_str().unwrap().to_owned();
    value["goals"][&root].as_object_mut().unwrap().remove("description");
    let found = problems(&value.to_string(), FRCTL);
    assert!(found.iter().any(|problem| problem.contains("description")), "{found:?}");
}

#[test]
fn every_version_that_there_is_is_read_without_a_migration() {
    let plan = |version: Option<&str>| {
        let mut plan = json(&fixture("frctl/document.json"));
        plan.as_object_mut().unwrap().shift_remove("schema_version");
        if let Some(version) = version {
            plan["schema_version"] = version.into();
        }
        plan.to_string()
    };
    let plain = draft(&plan(None), FRCTL);
    for version in ["1", "1.0", "1.7"] {
        let text = plan(Some(version));
        let read = draft(&text, FRCTL);
        assert_eq!((&read.tasks, &read.spec.title), (&plain.tasks, &plain.spec.title), "{version}");
        assert_eq!(json(&written(&read, FRCTL, Form::AsRead)), json(&text), "{version}");
    }
}
