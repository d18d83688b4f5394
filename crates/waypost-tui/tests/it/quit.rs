//! Nothing that a person typed is lost by leaving, and nothing happens that nobody could see.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use waypost_core::{Command, PlanId, TaskChanges};
use waypost_tui::app::{Screen, update};
use waypost_tui::messages::{Effect, Message, Purpose, Reply};
use waypost_tui::note::ErrorMessage;
use waypost_tui::plan::PlanKey;
use waypost_tui::run_view::{RunReply, Started};

use crate::{World, example, key};

fn plan() -> PlanKey {
    PlanKey { store: 0, id: PlanId::new("plan-1").unwrap() }
}

fn quits(world: &World) -> bool {
    world.undone.contains(&Effect::Quit)
}

fn reply(world: &mut World, answer: RunReply) {
    world.send(Message::Reply(Reply::Run(answer)));
}

#[test]
fn edits_below_another_screen_are_asked_about_before_the_program_ends() {
    for covered_by in ["w", "h", "?"] {
        let mut world = World::editor(example(), (80, 24));
        world.press("S").press(covered_by).press("ctrl+c");
        assert!(!quits(&world), "{covered_by}");
        let shown = world.screen();
        assert!(shown.contains("1 unsaved edit of plan plan-1 would be lost"), "{covered_by}:\n{shown}");
        world.press("g");
        assert!(world.screen().contains("● 1 edit"), "{covered_by}:\n{}", world.screen());
        world.press("s ctrl+c");
        assert!(quits(&world), "{covered_by}: nothing is unsaved any more");
    }
    let mut world = World::editor(example(), (80, 24));
    world.press("S w ctrl+c d");
    assert!(quits(&world), "whoever discards, leaves");
}

#[test]
fn what_an_editor_asked_about_is_not_asked_about_again() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S ctrl+c d");
    assert!(quits(&world), "{}", world.screen());
}

#[test]
fn a_run_that_ends_takes_no_edits_with_it() {
    let mut world = World::editor(example(), (80, 24));
    world.press("x");
    reply(&mut world, RunReply::Started(plan(), Ok(Started::Runs)));
    world.press("ctrl+c w e N").type_text("Mine");
    reply(&mut world, RunReply::Ended(plan(), Ok("completed".to_owned())));
    assert!(!quits(&world), "what is typed in a form counts");
    assert!(world.screen().contains("not quitting because of 1 unsaved edit"), "{}", world.screen());
    world.press("enter s ctrl+c");
    assert!(quits(&world), "{}", world.screen());
    assert!(world.stored().tasks.iter().any(|task| task.spec.description == "Mine"));
}

#[test]
fn the_run_view_goes_back_to_the_editor_that_is_open() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S w e");
    assert!(world.screen().contains("● 1 edit"), "{}", world.screen());
    let editors = world.app.screens.iter().filter(|screen| matches!(screen, Screen::Editor(_)));
    assert_eq!(editors.count(), 1);
}

#[test]
fn whoever_ends_it_from_outside_gets_what_was_typed_as_text() {
    let mut world = World::editor(example(), (80, 24));
    assert!(world.app.unsaved_texts().is_empty());
    world.press("down N").type_text("Kept in a form");
    let texts = world.app.unsaved_texts();
    assert!(texts.len() == 1 && texts[0].0 == plan() && texts[0].1.contains("Kept in a form"), "{texts:?}");
    world.press("enter w");
    let texts = world.app.unsaved_texts();
    assert!(texts.len() == 1 && texts[0].1.contains("Kept in a form"), "{texts:?}");
    assert!(texts[0].1.contains("Write the tests"), "all of the plan");
}

#[test]
fn keys_do_nothing_while_nobody_can_see_what_they_do() {
    let mut world = World::editor(example(), (80, 24));
    world.resize(40, 10);
    world.press("D d S").click(5, 5);
    world.send(Message::Paste("text".to_owned()));
    world.resize(80, 24);
    assert!(!world.screen().contains("●") && world.app.dialog.is_none(), "{}", world.screen());
    world.resize(40, 10);
    world.press("ctrl+z");
    assert_eq!(world.undone, [Effect::Suspend]);
    world.press("ctrl+c");
    assert!(quits(&world));
    let mut changed = World::editor(example(), (80, 24));
    changed.press("S");
    changed.resize(40, 10);
    changed.press("ctrl+c");
    assert!(!quits(&changed), "edits are asked about as soon as the question can be seen");
    changed.resize(80, 24);
    assert!(changed.screen().contains("1 unsaved edit"), "{}", changed.screen());
}

#[test]
fn what_came_of_a_save_is_asked_when_the_editor_is_seen_again() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
    let changes = TaskChanges { description: Some("Theirs".to_owned()), ..TaskChanges::default() };
    let task = waypost_testkit::id("t4");
    world.somebody_writes(vec![Command::ReviseTask { task, changes: Box::new(changes) }]);
    let save = update(&mut world.app, Message::Key(key("s")));
    world.press("?");
    world.carry_out(save);
    assert!(
        world.screen().contains("This plan changed while you were editing"),
        "a note says so: {}",
        world.screen()
    );
    assert!(world.app.dialog.is_none(), "the help screen asks nothing");
    world.press("esc");
    assert!(world.screen().contains("rebase mine"), "{}", world.screen());
}

#[test]
fn whoever_saves_and_leaves_has_left_when_the_editor_is_seen_again() {
    let mut world = World::plan_list(vec![("plan-1", example())], (80, 24));
    world.press("enter S esc");
    let save = update(&mut world.app, Message::Key(key("s")));
    world.press("?");
    world.carry_out(save);
    world.press("esc");
    assert!(matches!(world.app.top(), Some(Screen::PlanList(_))), "{}", world.screen());
}

#[test]
fn an_answer_that_comes_while_something_is_asked_waits_for_its_turn() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
    let changes = TaskChanges { description: Some("Theirs".to_owned()), ..TaskChanges::default() };
    let task = waypost_testkit::id("t4");
    world.somebody_writes(vec![Command::ReviseTask { task, changes: Box::new(changes) }]);
    let save = update(&mut world.app, Message::Key(key("s")));
    world.press("D");
    assert!(world.screen().contains("Delete t1?"), "{}", world.screen());
    world.carry_out(save);
    assert!(world.screen().contains("Delete t1?"), "the next key is for this question: {}", world.screen());
    world.press("k");
    assert!(world.screen().contains("rebase mine"), "{}", world.screen());
}

#[test]
fn where_a_text_is_kept_that_could_not_be_taken_over_is_shown_until_it_is_read() {
    let file = format!("/{}/plan.md", "a-long-name/".repeat(8));
    for purpose in [Purpose::Plan(plan()), Purpose::Field] {
        let mut world = World::editor(example(), (60, 15));
        let what = format!("the editor ended with code 1; your draft is kept in {file}");
        let error = ErrorMessage { what, hint: String::new() };
        world.send(Message::Reply(Reply::Edited { purpose, text: Err(error) }));
        let shown: String = world.screen().lines().map(|line| line.trim_matches([' ', '│'])).collect();
        assert!(shown.contains("kept in") && shown.contains("plan.md"), "{}", world.screen());
        assert!(world.app.dialog.is_some());
    }
}

#[test]
fn a_character_that_is_typed_suspends_nothing() {
    let changes = std::collections::BTreeMap::from([("anywhere.suspend".to_owned(), vec!["z".to_owned()])]);
    let keys = waypost_tui::keys::Keys::with(&changes).unwrap();
    let settings = waypost_tui::screen::Settings { keys, ..crate::settings() };
    let mut world = World::editor_with(settings, example(), (80, 24));
    world.press("N").type_text("az");
    assert!(world.undone.is_empty() && world.screen().contains("az"), "{}", world.screen());
    world.press("esc");
    world.send(Message::Key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::NONE)));
    assert_eq!(world.undone, [Effect::Suspend]);
}
