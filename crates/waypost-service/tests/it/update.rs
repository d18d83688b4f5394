//! Updates of a stored plan by a text that was written from it before.

use waypost_core::{Json, Plan, Status, TaskState};
use waypost_formats::{Dialect, Form, write};
use waypost_service::{Guard, SourceText, StatusChange, TaskReport, UpdateReply};
use waypost_testkit::{plan_of, task};

use crate::gates::{Desk, agent, set, with_work};

const DIALECTS: [Dialect; 2] = [Dialect::Native, Dialect::Markdown];

fn export(desk: &Desk, dialect: Dialect) -> String {
    let draft = desk.service.read(&desk.plan, Plan::to_draft).unwrap();
    write(&draft, dialect, Form::AsRead).unwrap().text
}

fn update(desk: &Desk, dialect: Dialect, text: String) -> UpdateReply {
    let (format, file_name, name) = (Some(dialect), None, "text".to_owned());
    let source = SourceText { text, format, file_name, name };
    desk.service.update(&agent(), &desk.plan, source, Guard::NONE).unwrap()
}

fn state(desk: &Desk, task: &str) -> TaskState {
    desk.service.read(&desk.plan, |plan| plan.task(task).unwrap().state.clone()).unwrap()
}

fn started(tasks: [&str; 3]) -> Desk {
    let desk = Desk::of(&agent(), plan_of(tasks.map(|id| task(id, &[]))));
    desk.service.activate(&agent(), &desk.plan, Guard::NONE).unwrap();
    desk
}

fn done(result: &str) -> TaskReport {
    TaskReport::Done { result: Some(result.to_owned()), output: Some(Json::of(&1)), sure: false }
}

#[test]
fn a_text_of_an_earlier_version_takes_nothing_back() {
    for dialect in DIALECTS {
        let desk = started(["one", "two", "old"]);
        let text = export(&desk, dialect);
        desk.report(&agent(), "one", done("hours of work")).unwrap();
        let gone = waypost_service::EditOp::RemoveTask {
            task: waypost_testkit::id("old"),
            drop_dependencies: false,
        };
        desk.edit(&agent(), vec![gone]).unwrap();
        let reply = update(&desk, dialect, text.replace("two", "2nd"));
        assert_eq!(reply.again, [], "{dialect}");
        let one = state(&desk, "one");
        assert_eq!((one.status, one.result.as_deref()), (Status::Done, Some("hours of work")), "{dialect}");
        let ids = desk.service.read(&desk.plan, |plan| {
            plan.tasks().map(|(task, _)| task.spec.id.to_string()).collect::<Vec<_>>()
        });
        assert_eq!(ids.unwrap(), ["one", "2nd"], "{dialect}: what others removed stays removed");
        // A text of this version says what it says.
        let text = export(&desk, Dialect::Native).replace("\"status\": \"done\"", "\"status\": \"pending\"");
        assert_eq!(update(&desk, Dialect::Native, text).again.len(), 1);
    }
}

#[test]
fn other_words_do_not_bring_back_what_was_given_up() {
    for dialect in DIALECTS {
        let desk = started(["a", "b", "c"]);
        let reason = || Some("not wanted".to_owned());
        desk.edit(&agent(), set("a", StatusChange::Skipped { reason: reason() })).unwrap();
        desk.edit(&agent(), set("b", StatusChange::Cancelled { reason: "not wanted".to_owned() })).unwrap();
        let text = export(&desk, dialect);
        let edited = text.replace("do a", "do the a").replace("do b", "do the b");
        assert_ne!(text, edited);
        update(&desk, dialect, edited);
        for (task, status) in [("a", Status::Skipped), ("b", Status::Cancelled)] {
            let state = state(&desk, task);
            assert_eq!((state.status, state.reason), (status, reason()), "{dialect}: {task}");
        }
    }
}

#[test]
fn what_a_text_does_not_change_is_named() {
    let desk = started(["a", "b", "c"]);
    desk.report(&agent(), "a", done("first")).unwrap();
    let text = export(&desk, Dialect::Native);
    let reply = update(&desk, Dialect::Native, text.replace("\"first\"", "\"second\""));
    assert_eq!(reply.notes, ["the result of a was not taken"]);
    let reply = update(&desk, Dialect::Native, text.replace("\"active\"", "\"paused\""));
    assert_eq!(reply.notes, ["the plan was not set to paused: a text does not do that"]);
    // The same words that a report is refused for.
    let text = export(&desk, Dialect::Jaato);
    let doubtful = text.replacen("\"pending\"", "\"completed\", \"result\": \"I could not do it\"", 1);
    assert_ne!(text, doubtful);
    let reply = update(&desk, Dialect::Jaato, doubtful);
    assert!(reply.notes.iter().any(|note| note.starts_with("b was not marked done: ")), "{:?}", reply.notes);
    assert_eq!(state(&desk, "b").status, Status::Pending);
}

#[test]
fn a_tick_at_a_task_with_a_check_is_a_report() {
    let checked = waypost_core::TaskSpec { check: crate::gates::work("build"), ..task("a", &[]) };
    let desk = Desk::of(&crate::gates::present(), plan_of([checked, with_work("b", "build", &[])]));
    desk.service.activate(&crate::gates::present(), &desk.plan, Guard::NONE).unwrap();
    let reply =
        update(&desk, Dialect::Markdown, export(&desk, Dialect::Markdown).replace("- [ ] a", "- [x] a"));
    assert!(
        reply.notes.contains(&"a is reported as done; its check decides".to_owned()),
        "{:?}",
        reply.notes
    );
}
