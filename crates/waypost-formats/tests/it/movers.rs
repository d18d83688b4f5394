//! Files of programs that people move here from: task-master, beads, Backlog.md.

use waypost_core::{Complexity, Draft, Status, Timestamp, validate};
use waypost_formats::{Dialect, Form, Unreadable, read, read_backlog, sniff, write};
use waypost_testkit::id;

use crate::{fixture, fixtures, reading, task};

fn after(plan: &Draft, name: &str) -> Vec<String> {
    task(plan, name).spec.depends_on.iter().map(ToString::to_string).collect()
}

#[test]
fn each_tag_of_task_master_is_a_plan() {
    let text = fixture("task-master/tagged.json");
    assert_eq!(sniff(&text, None), Some(Dialect::TaskMaster));
    let reading = reading(&text, Dialect::TaskMaster);
    let titles: Vec<&str> = reading.drafts.iter().map(|plan| plan.spec.title.as_str()).collect();
    assert_eq!(titles, ["master", "winter"]);
    let boat = &reading.drafts[0];
    assert_eq!(boat.spec.goal, "Everything about the boat");
    assert_eq!(boat.state.created_at, Timestamp::parse("2026-01-01T00:00:00Z").ok());
    let ids: Vec<&str> = boat.tasks.iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "2.1", "2.2", "2.3", "3"]);
    assert!(validate(boat).is_empty());
}

#[test]
fn the_fields_of_a_task_master_task_have_their_places() {
    let boat = reading(&fixture("task-master/tagged.json"), Dialect::TaskMaster).drafts.remove(0);
    let choose = task(&boat, "1");
    assert_eq!(choose.spec.description, "Choose the boat");
    assert_eq!(
        choose.spec.notes,
        "Small, dry, cheap.\n\n## Details\n\nAsk at the yard first.\n\n## Test strategy\n\nIt floats."
    );
    assert_eq!((choose.state.status, choose.spec.priority), (Status::Done, 1));
    assert_eq!(choose.spec.foreign.of("task-master")["previousStatus"], "in-progress");
    assert_eq!(task(&boat, "2").spec.complexity, Some(Complexity::High));
    assert_eq!(task(&boat, "3").spec.priority, -1);
    assert_eq!(task(&boat, "3").spec.foreign.of("task-master")["metadata"]["teacher"], "Ada");
}

#[test]
fn numbers_inside_a_subtask_mean_the_other_subtasks_first() {
    let boat = reading(&fixture("task-master/tagged.json"), Dialect::TaskMaster).drafts.remove(0);
    assert_eq!(task(&boat, "2.2").spec.parent, Some(id("2")));
    assert_eq!(after(&boat, "2.2"), ["2.1", "2.1"]);
    assert_eq!(after(&boat, "2.3"), ["2.2", "3"], "a subtask does not mean itself");
    assert_eq!(after(&boat, "3"), ["1"]);
}

#[test]
fn words_for_a_status_that_we_do_not_have_are_kept_and_noted() {
    let read = reading(&fixture("task-master/tagged.json"), Dialect::TaskMaster);
    assert_eq!(
        read.notes,
        ["task 2.2: `review` was read as running", "task 3: `deferred` was read as pending"]
    );
    let kept = task(&read.drafts[0], "3").spec.foreign.of("task-master");
    assert_eq!(kept["$status"], serde_json::json!(["pending", "deferred"]));
}

#[test]
fn what_is_wrong_in_one_tag_does_not_touch_the_other() {
    let read = reading(&fixture("task-master/tagged.json"), Dialect::TaskMaster);
    let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["task 1: `priority` has the wrong type: expected high, medium or low, found \"soon\""]
    );
    let found: Vec<String> = validate(&read.drafts[1]).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["task 1: depends on unknown task 9"]);
}

#[test]
fn the_old_task_master_file_is_one_plan() {
    let text = fixture("task-master/legacy.json");
    assert_eq!(sniff(&text, Some("tasks.json")), Some(Dialect::TaskMaster));
    let plan = reading(&text, Dialect::TaskMaster).drafts.remove(0);
    assert_eq!(plan.spec.title, "Boat");
    assert_eq!(after(&plan, "2"), ["1"]);
    assert_eq!(task(&plan, "2").state.status, Status::Pending);
}

#[test]
fn beads_issues_are_the_tasks_of_one_plan() {
    let text = fixture("beads/issues.jsonl");
    assert_eq!(sniff(&text, None), Some(Dialect::Beads));
    let read = reading(&text, Dialect::Beads);
    let plan = &read.drafts[0];
    assert_eq!(plan.spec.title, "cv issues");
    let power = task(plan, "cv-1");
    assert_eq!(
        power.spec.notes,
        "No light below deck.\n\n## Design\n\nOne cable.\n\n## Acceptance criteria\n\n- lamps burn\n\n## Notes\n\nAsk the harbour."
    );
    assert_eq!((power.state.status, power.spec.priority), (Status::Running, 2));
    assert_eq!(power.state.worker.as_deref(), Some("ada"));
    assert_eq!(power.state.created_at, Timestamp::parse("2026-01-01T09:00:00.5Z").ok());
    assert_eq!(power.spec.foreign.of("beads")["labels"], serde_json::json!(["power"]));
    let buy = task(plan, "cv-1.1");
    assert_eq!((buy.state.status, buy.state.result.as_deref()), (Status::Done, Some("Bought")));
    assert_eq!(buy.spec.parent, Some(id("cv-1")));
    let lay = task(plan, "cv-1.2");
    assert_eq!(after(plan, "cv-1.2"), ["cv-1.1"]);
    assert_eq!(lay.spec.foreign.of("beads")["dependencies"][0]["type"], "discovered-from");
    assert_eq!(task(plan, "cv-2").spec.priority, -2);
    assert!(validate(plan).is_empty());
}

#[test]
fn a_bad_line_and_a_deleted_issue_of_beads_are_reported() {
    let read = reading(&fixture("beads/issues.jsonl"), Dialect::Beads);
    let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["plan: line 6: expected ident"]);
    assert_eq!(
        read.notes,
        [
            "task cv-1.2: `blocked` was read as pending",
            "task cv-2: `deferred` was read as pending",
            "1 deleted issues were left out: cv-9",
            "task cv-1.2: no longer waits for cv-9, which was deleted",
        ]
    );
}

#[test]
fn a_folder_of_backlog_files_is_one_plan() {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(fixtures().join("backlog")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        files.push((name, std::fs::read_to_string(path).unwrap()));
    }
    files.push(("readme.md".to_owned(), "# Not a task\n".to_owned()));
    files.sort();
    let read = read_backlog(&files);
    let plan = &read.drafts[0];
    let ids: Vec<&str> = plan.tasks.iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(ids, ["TASK-1", "TASK-2", "TASK-10"], "by hand first, then by number");
    let second = task(plan, "TASK-2");
    assert_eq!(second.spec.description, "Set the mast, and rig it, before the wind comes");
    assert_eq!(after(plan, "TASK-2"), ["TASK-1"], "capitals do not matter");
    assert_eq!(second.spec.parent, Some(id("TASK-10")));
    assert_eq!((second.state.status, second.spec.priority), (Status::Running, 1));
    assert_eq!(second.state.worker.as_deref(), Some("@ada"));
    assert_eq!(second.state.created_at, Timestamp::parse("2026-01-02T08:30:00Z").ok());
    assert_eq!(
        second.spec.notes,
        "With the crane, not by hand.\n\n## Acceptance Criteria\n- [x] #1 It stands\n- [ ] #2 It stays"
    );
    assert_eq!(second.state.result.as_deref(), Some("It stands."));
    assert_eq!(second.spec.foreign.of("backlog")["labels"], serde_json::json!(["rig"]));
    assert_eq!(read.notes, ["task TASK-10: `Waiting` was read as pending"]);
    let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["plan: readme.md: there is no front matter"]);
    assert!(validate(plan).is_empty());
}

#[test]
fn one_backlog_file_is_a_plan_of_one_task() {
    let text = fixture("backlog/task-1 - First.md");
    assert_eq!(sniff(&text, Some("task-1 - First.md")), Some(Dialect::Backlog));
    let plan = reading(&text, Dialect::Backlog).drafts.remove(0);
    assert_eq!(plan.spec.title, "Order: the mast");
    assert_eq!(plan.tasks[0].state.status, Status::Done);
    assert!(matches!(read("# no\n", Some(Dialect::Backlog), None), Err(Unreadable::NoPlan(_))));
}

#[test]
fn formats_that_people_move_in_from_are_not_written() {
    for dialect in [Dialect::TaskMaster, Dialect::Beads, Dialect::Backlog] {
        let refused = write(&Draft::new("x"), dialect, Form::AsRead);
        assert_eq!(refused.err(), Some(Unreadable::ReadOnly(dialect)));
    }
}

#[test]
fn what_was_read_survives_as_a_plan_of_our_own() {
    for (name, dialect) in
        [("task-master/tagged.json", Dialect::TaskMaster), ("beads/issues.jsonl", Dialect::Beads)]
    {
        for plan in reading(&fixture(name), dialect).drafts {
            for ours in [Dialect::Native, Dialect::Markdown] {
                let written = write(&plan, ours, Form::AsRead).unwrap();
                assert_eq!(written.losses, []);
                assert_eq!(reading(&written.text, ours).drafts, std::slice::from_ref(&plan), "{ours}");
            }
        }
    }
}

#[test]
fn a_minimal_file_of_task_masters_is_recognised() {
    let recognised = [
        (r#"{"tasks":[{"id":1,"title":"x"}]}"#, 1),
        (r#"{"master":{"tasks":[{"id":1,"title":"x"}]}}"#, 1),
        (
            r#"{"master":{"tasks":[{"id":1,"title":"x","status":"done"}]},"next":{"tasks":[{"id":"2","title":"y"}]}}"#,
            2,
        ),
        (r#"{"tasks":[{"id":1,"title":"x","status":"pending","subtasks":[{"id":1,"title":"y"}]}]}"#, 1),
    ];
    for (text, plans) in recognised {
        for file in [None, Some("tasks.json")] {
            let reading = read(text, None, file).unwrap();
            assert_eq!((reading.dialect, reading.drafts.len()), (Dialect::TaskMaster, plans), "{text}");
            assert_eq!(reading.problems, [], "{text}");
            assert_eq!(reading.drafts[0].tasks[0].spec.description, "x", "{text}");
        }
    }
    // These are native: they have what task-master's tasks never have.
    for native in [
        r#"{"title":"t","tasks":[{"id":"a","title":"x"}]}"#,
        r#"{"tasks":[{"id":"a","description":"x"}]}"#,
        r#"{"format":"waypost/1","tasks":[{"id":1,"title":"x"}]}"#,
    ] {
        assert_eq!(waypost_formats::sniff(native, None), Some(Dialect::Native), "{native}");
    }
}
