//! The picture of a plan: which boxes it has, and what a request may ask for.

use serde_json::{Value, json};

use crate::api::Desk;

/// A parent with three children, a chain behind it, and a task of another plan before it.
fn desk() -> Desk {
    let desk = Desk::new();
    let task =
        |id: &str, parent: Option<&str>, on: Value| json!({ "id": id, "parent": parent, "depends_on": on });
    let tasks = [
        task("p", None, json!([])),
        task("p1", Some("p"), json!([{ "plan": "other", "task": "o" }])),
        task("p2", Some("p"), json!([])),
        task("p3", Some("p"), json!(["p1"])),
        task("x", None, json!(["p"])),
        task("y", None, json!(["x"])),
    ];
    let plan = |title: &str, tasks: Value| json!({ "format": "waypost/1", "title": title, "tasks": tasks });
    desk.post("/plans", &json!({ "id": "other", "plan": plan("Other", json!([{ "id": "o" }])) })).ok();
    desk.post("/plans", &json!({ "id": "q", "plan": plan("Q", json!(tasks)) })).ok();
    desk
}

fn kinds(layout: &Value) -> Vec<&str> {
    layout["boxes"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_small_plan_is_shown_whole_with_the_tasks_of_other_plans() {
    let layout = desk().get("/plans/q/layout").ok();
    assert_eq!(kinds(&layout), ["frame", "task", "task", "task", "task", "task", "outside"]);
    assert_eq!(layout["of"], json!([0, 1, 2, 3, 4, 5]));
    assert_eq!(layout["boxes"][1]["outer"], json!(0));
    let outside = &layout["boxes"][6];
    assert_eq!([&outside["plan"], &outside["plan_title"], &outside["status"]], ["other", "Other", "ready"]);
    let ends: Vec<[&Value; 2]> =
        layout["edges"].as_array().unwrap().iter().map(|edge| [&edge["from"], &edge["to"]]).collect();
    assert_eq!(json!(ends), json!([[0, 4], [1, 3], [4, 5], [6, 1]]));
    assert_eq!(layout["open"], json!(["in p"]));
}

#[test]
fn a_request_folds_groups_and_shows_what_surrounds_a_task() {
    let desk = desk();
    let folded = desk.get("/plans/q/layout?open=%5B%5D").ok();
    assert_eq!(kinds(&folded), ["group", "task", "task", "outside"]);
    assert_eq!(folded["of"], json!([0, 0, 0, 0, 1, 2]));
    let shown = desk.get("/plans/q/layout?open=%5B%5D&show=p2").ok();
    assert_eq!(shown["open"], json!(["in p"]), "the way to the task is open");
    let up = desk.get("/plans/q/layout?focus=p3&direction=up").ok();
    assert_eq!(up["of"], json!([0, 1, -1, 2, -1, -1]), "with the parent, without the rest");
}

#[test]
fn a_request_that_makes_no_sense_is_refused_with_the_place() {
    let desk = desk();
    for (query, part) in [
        ("open=p", "JSON array"),
        ("group=colour", "colour"),
        ("focus=p1&direction=sideways", "sideways"),
        ("focus=nobody", "nobody"),
    ] {
        let answer = desk.get(&format!("/plans/q/layout?{query}"));
        assert!(answer.status == 400 || answer.status == 404, "{query}: {answer:?}");
        assert!(answer.text.contains(part), "{query}: {answer:?}");
    }
    // Sizes beyond the limits count as the limits.
    desk.get("/plans/q/layout?width=0&height=1e99&boxes=0").ok();
}
