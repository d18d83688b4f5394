//! Plain checklists, and the text of the `plan` command.

use waypost_core::{Phase, Status};
use waypost_formats::{Dialect, Form, Unreadable, read, render_plan_command, sniff};
use waypost_testkit::{id, plan_of, task as new_task};

use crate::{draft, fixture, losses, task, written};

const DIALECT: Dialect = Dialect::Checklist;

#[test]
fn a_checklist_becomes_tasks_and_the_rest_becomes_the_body() {
    let text = fixture("checklist/garden.md");
    assert_eq!(sniff(&text, Some("garden.md")), Some(DIALECT));
    let plan = draft(&text, DIALECT);
    assert_eq!(plan.spec.title, "Garden in spring");
    assert_eq!(
        plan.spec.body,
        "What the family agreed on.\n\n## Later\n\n```\n- [ ] not an item: this is code\n```"
    );
    let lines: Vec<String> = plan
        .tasks
        .iter()
        .map(|task| {
            let parent = task.spec.parent.as_ref().map_or(String::new(), |parent| format!(" in {parent}"));
            format!("{} {}{parent}: {}", task.spec.id, task.state.status.as_str(), task.spec.description)
        })
        .collect();
    assert_eq!(
        lines,
        [
            "t1 done: Clear the beds",
            "t2 pending: Plant",
            "t3 running in t2: Beans",
            "t4 pending in t2: Peas",
            "t5 skipped: Paint the shed",
            "t6 failed: Mend the fence",
            "beds-2 pending: Dig the second bed",
            "t7 cancelled: Sell the mower",
        ]
    );
    assert_eq!(task(&plan, "t1").spec.notes, "Rake, then weed.\n  - keep the roses");
    assert_eq!(task(&plan, "t4").spec.depends_on[0].to_string(), "beds-2");
    assert!(plan.tasks.iter().all(|task| task.spec.id == id("t4") || task.spec.depends_on.is_empty()));
}

#[test]
fn the_plan_command_is_read_and_rendered_as_the_document_shows_it() {
    let text = fixture("checklist/plan-command.txt");
    assert_eq!(sniff(&text, None), Some(DIALECT));
    let plan = draft(&text, DIALECT);
    assert_eq!(plan.spec.title, "Move the office");
    assert_eq!(plan.state.phase, Phase::Active);
    assert_eq!(plan.spec.body, "");
    assert_eq!(task(&plan, "step_3").state.status, Status::Running);
    assert_eq!(render_plan_command(&plan), text);
}

#[test]
fn the_plan_command_of_the_document_itself_is_read_and_rendered() {
    let Some(seeds) = waypost_testkit::seed_documents() else {
        eprintln!("no documents beside this checkout: only the fixture was rendered");
        return;
    };
    let document = std::fs::read_to_string(seeds.join("jaato-todo-plugin.txt")).unwrap();
    let start = document.find("Current Plan:").unwrap();
    let end = start + document[start..].find("%)").unwrap() + 3;
    let shown = &document[start..end];
    assert_eq!(render_plan_command(&draft(shown, DIALECT)), shown);
}

#[test]
fn a_plan_without_tasks_has_made_no_progress() {
    let mut plan = plan_of([]);
    plan.spec.title = "Nothing\nyet \u{1b}[2J".into();
    assert_eq!(
        render_plan_command(&plan),
        "Current Plan: Nothing yet \u{fffd}[2J\nStatus: pending\n\nSteps:\n\nProgress: 0/0 (0%)\n"
    );
}

#[test]
fn words_before_a_colon_are_ids_when_they_look_like_ids_or_when_all_have_them() {
    let ids = |text: &str| -> Vec<String> {
        draft(text, DIALECT).tasks.iter().map(|task| task.spec.id.to_string()).collect()
    };
    assert_eq!(ids("- [ ] Fix: the door\n- [ ] Fix: the lock\n"), ["t1", "t2"]);
    assert_eq!(ids("- [ ] t2: one\n- [ ] two\n- [ ] three\n"), ["t2", "t1", "t3"]);
    assert_eq!(ids("- [ ] build: all\n- [ ] ship: all\n"), ["build", "ship"]);
    assert_eq!(ids("- [ ] see https://example.org\n"), ["t1"]);
    assert_eq!(ids("- [ ] build-api: go\n- [ ] Note: this\n- [ ] rest\n"), ["build-api", "t1", "t2"]);
}

#[test]
fn links_and_plain_bullets_are_no_tasks() {
    let refused = read("- [x](http://example.org)\n- plain\n[y] z\n", Some(DIALECT), None);
    // `[y] z` has a box with a mark that nobody knows; it is read, and a note says so.
    assert_eq!(refused.unwrap().notes, ["line 3: the mark [y] is not known; read as pending"]);
    let refused = read("- plain\n1. also plain\n", Some(DIALECT), None);
    assert!(matches!(refused, Err(Unreadable::NoPlan(_))));
}

#[test]
fn words_that_only_look_like_dependencies_are_kept_and_noted() {
    let reading = read("- [ ] Sleep (after: the long day)\n", Some(DIALECT), None).unwrap();
    assert_eq!(reading.drafts[0].tasks[0].spec.description, "Sleep (after: the long day)");
    assert_eq!(
        reading.notes,
        ["line 1: `(after: …)` was read as words; name tasks by their ids, with commas in between"]
    );
}

#[test]
fn a_plan_is_written_as_a_simple_list_and_what_is_lost_is_named() {
    let mut plan = plan_of([new_task("a", &[]), new_task("b", &["a"]), new_task("c", &["b"])]);
    plan.spec.title = "Simple".into();
    plan.spec.body = "Some words.".into();
    plan.spec.goal = "more".into();
    plan.tasks[0].state.status = Status::Done;
    plan.tasks[1].state.status = Status::Running;
    plan.tasks[1].spec.parent = Some(id("a"));
    plan.tasks[2].spec.notes = "a note".into();
    plan.tasks[2].spec.description = "two\nlines".into();
    assert_eq!(
        written(&plan, DIALECT, Form::AsRead),
        "# Simple\n\nSome words.\n\n- [x] \"a\": do a\n  - [>] \"b\": do b  (after: a)\n- [ ] \"c\": two lines  (after: b)\n"
    );
    // A line without an id may be added.
    let longer = draft(&format!("{}- [ ] Tell everybody\n", written(&plan, DIALECT, Form::AsRead)), DIALECT);
    let ids: Vec<&str> = longer.tasks.iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "t1"]);
    assert_eq!(task(&longer, "b").spec.description, "do b");
    assert_eq!(losses(&plan, DIALECT, Form::AsRead), ["plan: goal", "task c: description", "task c: notes"]);
}

#[test]
fn what_is_written_is_read_back() {
    let mut plan =
        plan_of([new_task("build", &[]), new_task("test", &["build"]), new_task("ship it", &["test"])]);
    plan.spec.body = "First words.\n\nSecond words.".into();
    assert_eq!(losses(&plan, DIALECT, Form::AsRead), [] as [&str; 0]);
    assert_eq!(draft(&written(&plan, DIALECT, Form::AsRead), DIALECT), plan);
}

#[test]
fn words_that_look_like_attributes_stay_words() {
    let mut plan = plan_of([new_task("a", &[]), new_task("b", &["a"])]);
    plan.tasks[0].spec.description = "Not now (skip)".into();
    plan.tasks[1].spec.description = "\"quoted\" words".into();
    assert_eq!(losses(&plan, DIALECT, Form::AsRead), [] as [&str; 0]);
    let back = draft(&written(&plan, DIALECT, Form::AsRead), DIALECT);
    assert_eq!(back.tasks, plan.tasks);
}

#[test]
fn a_block_of_code_that_nobody_closes_does_not_hide_the_tasks() {
    let mut plan = plan_of([new_task("a", &[])]);
    plan.spec.body = "```\nopen".into();
    assert_eq!(losses(&plan, DIALECT, Form::AsRead), ["plan: body"]);
    assert_eq!(draft(&written(&plan, DIALECT, Form::AsRead), DIALECT).tasks, plan.tasks);
}

#[test]
fn a_body_that_would_be_read_as_tasks_is_left_out_and_named() {
    let mut plan = plan_of([new_task("a", &[])]);
    plan.spec.body = "- [ ] not mine".into();
    assert_eq!(losses(&plan, DIALECT, Form::AsRead), ["plan: body"]);
    assert_eq!(draft(&written(&plan, DIALECT, Form::AsRead), DIALECT).tasks.len(), 1);
}
