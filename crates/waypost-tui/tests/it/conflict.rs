use waypost_core::{Command, PlanId, TaskChanges};
use waypost_tui::app::Message;

use crate::{World, example, golden};

fn describe(task: &str, description: &str) -> Command {
    let changes = TaskChanges { description: Some(description.to_owned()), ..TaskChanges::default() };
    Command::ReviseTask { task: waypost_testkit::id(task), changes: Box::new(changes) }
}

fn heard(world: &mut World, version: u64) {
    world.send(Message::Written { store: 0, plans: vec![(PlanId::new("plan-1").unwrap(), version)] });
}

#[test]
fn a_conflict_keeps_the_edits_shows_what_changed_and_makes_them_on_top() {
    let mut world = World::editor(example(), (80, 24));
    world.press("enter ctrl+u").type_text("Mine").press("enter");
    world.somebody_writes(vec![describe("t4", "Theirs")]);
    world.press("s");
    golden("conflict-80x24", &world.screen());
    world.press("r");
    assert!(world.screen().contains("Mine") && world.screen().contains("Theirs"), "{}", world.screen());
    world.press("s");
    let stored = world.stored();
    assert_eq!(
        (stored.tasks[0].spec.description.as_str(), stored.tasks[5].spec.description.as_str()),
        ("Mine", "Theirs")
    );
    assert_eq!(stored.version, 3);
}

#[test]
fn a_conflict_can_be_left_and_the_edits_are_still_there() {
    let mut world = World::editor(example(), (80, 24));
    world.press("space");
    world.somebody_writes(vec![describe("t4", "Theirs")]);
    world.press("s esc");
    assert!(world.screen().contains("● 1 edit"), "{}", world.screen());
    assert_eq!(world.stored().version, 2);
}

#[test]
fn mine_can_be_thrown_away_for_theirs() {
    let mut world = World::editor(example(), (80, 24));
    world.press("space");
    world.somebody_writes(vec![describe("t4", "Theirs")]);
    world.press("s d");
    assert!(world.screen().contains("Theirs"), "{}", world.screen());
    assert!(!world.screen().contains("●"));
}

#[test]
fn without_edits_what_others_write_is_shown_at_once() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down");
    let version = world.somebody_writes(vec![describe("t2", "Theirs")]);
    heard(&mut world, version);
    assert!(world.screen().contains("Theirs") && world.screen().contains("v2"), "{}", world.screen());
    assert!(world.screen().contains("Tasks 2/8"), "the selection stays");
}

#[test]
fn with_edits_what_others_write_is_said_and_nothing_is_taken_away() {
    let mut world = World::editor(example(), (80, 24));
    world.press("space");
    let version = world.somebody_writes(vec![describe("t2", "Theirs")]);
    heard(&mut world, version);
    assert!(world.screen().contains("v2 is in the store"), "{}", world.screen());
    assert!(!world.screen().contains("Theirs"));
}

#[test]
fn edits_go_on_while_the_plan_runs() {
    let mut world = World::editor(example(), (80, 24));
    world.press("end space");
    world.somebody_writes(vec![Command::Activate]);
    let version = world.somebody_writes(vec![Command::StartTask {
        task: waypost_testkit::id("t1"),
        worker: "w".to_owned(),
    }]);
    heard(&mut world, version);
    assert_eq!(world.lines_with("↻").len(), 1, "where it stands is shown:\n{}", world.screen());
    world.press("s");
    assert!(world.screen().contains("saved as version 4"), "and is no conflict:\n{}", world.screen());
    assert!(world.stored().tasks[7].spec.skip);
}
