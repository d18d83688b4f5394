use waypost_core::{Command, Dependency, PlanId, Position, TaskChanges};
use waypost_tui::messages::{Effect, Message};

use crate::{World, example, golden};

fn describe(task: &str, description: &str) -> Command {
    let changes = TaskChanges { description: Some(description.to_owned()), ..TaskChanges::default() };
    Command::ReviseTask { task: waypost_testkit::id(task), changes: Box::new(changes) }
}

fn notify_written(world: &mut World, version: u64) {
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
    world.press("S");
    world.somebody_writes(vec![describe("t4", "Theirs")]);
    world.press("s esc");
    assert!(world.screen().contains("● 1 edit"), "{}", world.screen());
    assert_eq!(world.stored().version, 2);
}

#[test]
fn mine_can_be_thrown_away_for_theirs() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
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
    notify_written(&mut world, version);
    assert!(world.screen().contains("Theirs") && world.screen().contains("v2"), "{}", world.screen());
    assert!(world.screen().contains("Tasks 2/8"), "the selection stays");
}

#[test]
fn with_edits_what_others_write_is_said_and_nothing_is_taken_away() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
    let version = world.somebody_writes(vec![describe("t2", "Theirs")]);
    notify_written(&mut world, version);
    assert!(world.screen().contains("v2 in the store"), "{}", world.screen());
    assert!(!world.screen().contains("Theirs"));
}

#[test]
fn edits_go_on_while_the_plan_runs() {
    let mut world = World::editor(example(), (80, 24));
    world.press("end S");
    world.somebody_writes(vec![Command::Activate]);
    let version = world.somebody_writes(vec![Command::StartTask {
        task: waypost_testkit::id("t1"),
        worker: "w".to_owned(),
    }]);
    notify_written(&mut world, version);
    assert_eq!(world.lines_with("◐").len(), 1, "where it stands is shown:\n{}", world.screen());
    world.press("s");
    assert!(world.screen().contains("saved as version 4"), "and is no conflict:\n{}", world.screen());
    assert!(world.stored().tasks[7].spec.skip);
}

fn notes(task: &str, notes: &str) -> Command {
    let changes = TaskChanges { notes: Some(notes.to_owned()), ..TaskChanges::default() };
    Command::ReviseTask { task: waypost_testkit::id(task), changes: Box::new(changes) }
}

fn add(id: &str, description: &str, place: Position) -> Command {
    let mut spec = waypost_testkit::task(id, &[]);
    spec.description = description.to_owned();
    Command::AddTasks { tasks: vec![spec], place }
}

fn remove(task: &str) -> Command {
    Command::RemoveTask { task: waypost_testkit::id(task), detach: true }
}

fn described<'a>(draft: &'a waypost_core::Draft, task: &str) -> &'a str {
    draft.tasks.iter().find(|other| other.spec.id.as_str() == task).map_or("", |task| &task.spec.description)
}

#[test]
fn what_others_write_while_a_form_is_open_is_no_more_lost_than_what_is_typed() {
    let mut world = World::editor(example(), (80, 24));
    world.press("enter").type_text(" mine");
    let version = world.somebody_writes(vec![notes("t1", "THEIR NOTES")]);
    notify_written(&mut world, version);
    world.press("enter s");
    assert!(world.screen().contains("This plan changed while you were editing"), "{}", world.screen());
    world.press("r s");
    let task = &world.stored().tasks[0].spec;
    assert_eq!(
        (task.description.as_str(), task.notes.as_str()),
        ("Read the auth module and find its patterns mine", "THEIR NOTES")
    );
}

#[test]
fn what_others_write_while_dependencies_are_chosen_is_kept() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down down down down down b");
    let changes = TaskChanges {
        add_dependencies: vec![Dependency::Task(waypost_testkit::id("t2"))],
        ..TaskChanges::default()
    };
    let version = world.somebody_writes(vec![
        Command::ReviseTask { task: waypost_testkit::id("t4"), changes: Box::new(changes) },
        add("new", "Theirs", Position::First),
    ]);
    notify_written(&mut world, version);
    world.type_text("t3a").press("tab enter s r s");
    let stored = world.stored();
    let task = &stored.tasks.iter().find(|task| task.spec.id.as_str() == "t4").unwrap().spec;
    assert_eq!(task.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>(), ["t1", "t2", "t3a"]);
}

#[test]
fn a_new_task_stands_behind_the_task_that_was_selected_whatever_others_add() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down N").type_text("Mine");
    let version = world
        .somebody_writes(vec![add("x1", "Theirs", Position::First), add("x2", "Theirs", Position::First)]);
    notify_written(&mut world, version);
    world.press("enter s r s");
    let stored = world.stored();
    let at = stored.tasks.iter().position(|task| task.spec.description == "Mine").unwrap();
    assert_eq!((stored.tasks[at - 1].spec.id.as_str(), stored.tasks.len()), ("t2", 11));
}

#[test]
fn a_form_that_is_closed_without_a_change_shows_what_others_wrote() {
    let mut world = World::editor(example(), (80, 24));
    world.press("enter").type_text(" mine");
    let version = world.somebody_writes(vec![describe("t2", "Theirs")]);
    notify_written(&mut world, version);
    assert!(!world.screen().contains("Theirs"), "{}", world.screen());
    world.press("esc");
    assert!(world.screen().contains("Theirs") && world.screen().contains("v2"), "{}", world.screen());
}

#[test]
fn my_new_task_gets_another_id_where_others_took_its_own() {
    let mut world = World::editor(example(), (80, 24));
    world.press("end N").type_text("My important new task").press("enter");
    // Another of mine is a part of it, and waits for it.
    world.press("N").type_text("And its part").press("enter >");
    world.press("b").type_text("t5").press("tab enter");
    world.somebody_writes(vec![add("t7", "their task", Position::Last)]);
    world.press("s r");
    assert!(world.screen().contains("your new task t7 is t9 now: they added a t7 too"), "{}", world.screen());
    world.press("b s");
    let stored = world.stored();
    assert_eq!(described(&stored, "t7"), "their task");
    assert_eq!(described(&stored, "t9"), "My important new task");
    let part = &stored.tasks.iter().find(|task| task.spec.id.as_str() == "t8").unwrap().spec;
    assert_eq!(part.parent, Some(waypost_testkit::id("t9")));
}

#[test]
fn a_task_that_i_edited_and_others_deleted_is_back_and_named() {
    let mut world = World::editor(example(), (80, 24));
    world.press("end enter").type_text(" in French").press("enter");
    world.somebody_writes(vec![remove("t6")]);
    world.press("s r");
    assert!(world.screen().contains("t6 is restored with your edits"), "{}", world.screen());
    world.press("b s");
    assert_eq!(described(&world.stored(), "t6"), "Update the documentation in French");
}

#[test]
fn where_both_changed_the_same_mine_stands_and_theirs_is_shown() {
    let mut world = World::editor(example(), (80, 24));
    world.press("enter ctrl+u").type_text("Mine").press("enter end D");
    world.somebody_writes(vec![
        describe("t1", "Theirs of the first"),
        notes("t6", "Theirs"),
        add("x1", "Theirs", Position::First),
    ]);
    world.press("s r");
    golden("met-80x24", &world.screen());
    world.resize(60, 15);
    golden("met-60x15", &world.screen());
    world.press("b s");
    let stored = world.stored();
    assert_eq!((described(&stored, "t1"), described(&stored, "x1")), ("Mine", "Theirs"));
    assert_eq!(described(&stored, "t6"), "");
}

#[test]
fn what_both_changed_is_shown_page_by_page_in_a_small_terminal() {
    let mut world = World::editor(example(), (60, 15));
    let tasks = ["t1", "t2", "t3", "t3a", "t3b", "t4", "t5", "t6"];
    for _ in tasks {
        world.press("enter").type_text(" mine").press("enter down");
    }
    world.somebody_writes(tasks.map(|task| describe(task, "Theirs")).to_vec());
    world.press("s r");
    let mut seen = world.screen();
    while world.app.dialog.as_ref().is_some_and(|dialog| dialog.buttons.len() == 2) {
        world.press("m");
        seen.push_str(&world.screen());
    }
    for task in tasks {
        assert!(seen.contains(&format!("{task}: both changed description")), "{task}\n{seen}");
    }
}

#[test]
fn tasks_that_others_put_into_one_that_i_deleted_stay() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down down D d");
    let mut part = waypost_testkit::task("x1", &["t3"]);
    part.parent = Some(waypost_testkit::id("t3"));
    part.depends_on.clear();
    world.somebody_writes(vec![Command::AddTasks { tasks: vec![part], place: Position::Last }]);
    world.press("s r");
    assert!(
        world.screen().contains("x1 is no longer a subtask of t3, which is deleted"),
        "{}",
        world.screen()
    );
    world.press("b s");
    let ids: Vec<String> = world.stored().tasks.iter().map(|task| task.spec.id.to_string()).collect();
    assert_eq!(ids, ["t1", "t2", "x1", "t4", "t5", "t6"]);
}

/// Presses keys while the answer to what was asked of the store is still on its way.
fn in_one_burst(world: &mut World, keys: &str) {
    let mut effects = Vec::new();
    for name in keys.split_whitespace() {
        effects.extend(waypost_tui::app::update(&mut world.app, Message::Key(crate::key(name))));
    }
    world.carry_out(effects);
}

#[test]
fn edits_that_are_made_while_others_are_being_saved_stay() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
    in_one_burst(&mut world, "s down S down S");
    assert!(world.screen().contains("● 2 edits"), "{}", world.screen());
    world.press("s");
    let stored = world.stored();
    assert_eq!(stored.version, 3);
    assert!(stored.tasks[..3].iter().all(|task| task.spec.skip), "{stored:?}");
    world.press("z z z s");
    assert!(!world.stored().tasks[0].spec.skip, "the way back stays, too");
}

#[test]
fn an_edit_taken_back_while_it_is_being_saved_is_an_edit() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
    in_one_burst(&mut world, "s z");
    assert!(world.stored().tasks[0].spec.skip);
    assert!(world.screen().contains("● 1 edit"), "{}", world.screen());
    world.press("s");
    assert!(!world.stored().tasks[0].spec.skip);
}

#[test]
fn edits_that_are_made_while_others_are_being_saved_stand_on_what_a_third_wrote() {
    let mut world = World::editor(example(), (80, 24));
    world.press("N").type_text("Mine").press("enter");
    let mut effects = Vec::new();
    for name in ["s", "end", "S"] {
        effects.extend(waypost_tui::app::update(&mut world.app, Message::Key(crate::key(name))));
    }
    let answers: Vec<_> = effects.into_iter().map(|effect| world.done(effect).unwrap()).collect();
    let version = world.somebody_writes(vec![describe("t2", "Theirs")]);
    // The news of it is there before the answer.
    notify_written(&mut world, version);
    answers.into_iter().for_each(|answer| world.send(Message::Reply(answer)));
    world.press("s r s");
    let stored = world.stored();
    assert_eq!((described(&stored, "t7"), described(&stored, "t2")), ("Mine", "Theirs"));
    assert_eq!(stored.tasks.len(), 9, "my new task is there once");
    assert!(stored.tasks[8].spec.skip);
}

#[test]
fn leaving_after_a_save_asks_again_when_there_are_newer_edits() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S q");
    in_one_burst(&mut world, "s down S");
    assert!(world.undone.is_empty(), "{:?}", world.undone);
    assert!(world.screen().contains("1 unsaved edit would be lost"), "{}", world.screen());
}

#[test]
fn a_question_waits_until_nobody_types() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
    world.somebody_writes(vec![describe("t2", "Theirs")]);
    in_one_burst(&mut world, "s down down enter");
    world.type_text("drdr").press("enter");
    assert!(world.screen().contains("This plan changed while you were editing"), "{}", world.screen());
    assert!(world.screen().contains("Implement tokensdrdr"), "{}", world.screen());
}

#[test]
fn a_deletion_takes_what_was_asked_about_and_nothing_else() {
    let mut world = World::editor(example(), (80, 24));
    world.press("D");
    let version = world.somebody_writes(vec![remove("t1")]);
    notify_written(&mut world, version);
    world.press("d");
    assert!(world.screen().contains("t1 is no longer in the plan"), "{}", world.screen());
    assert!(!world.screen().contains("●"), "{}", world.screen());
}

#[test]
fn a_deletion_asks_again_when_more_would_go_with_it() {
    let mut world = World::editor(example(), (80, 24));
    world.press("D");
    let mut more = waypost_testkit::task("x1", &["t1"]);
    more.description = "Theirs".to_owned();
    let version = world.somebody_writes(vec![Command::AddTasks { tasks: vec![more], place: Position::Last }]);
    notify_written(&mut world, version);
    world.press("d");
    assert!(
        world.screen().contains("Delete t1?") && world.screen().contains("  x1  Theirs"),
        "{}",
        world.screen()
    );
    world.press("d");
    assert!(world.screen().contains("deleted t1"), "{}", world.screen());
}

#[test]
fn undo_leaves_work_that_was_done_meanwhile_done() {
    let mut world = World::editor(example(), (80, 24));
    world.press("enter").type_text(" mine").press("enter");
    world.somebody_writes(vec![Command::Activate]);
    let version = world.somebody_writes(vec![Command::StartTask {
        task: waypost_testkit::id("t1"),
        worker: "w".to_owned(),
    }]);
    notify_written(&mut world, version);
    world.press("z");
    assert_eq!(world.lines_with("◐").len(), 1, "{}", world.screen());
    world.press("ctrl+r");
    assert_eq!(world.lines_with("◐").len(), 1, "{}", world.screen());
}

#[test]
fn save_and_leave_leaves_also_when_the_edits_were_being_saved_already() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
    in_one_burst(&mut world, "s q s");
    assert_eq!((world.stored().version, world.undone.as_slice()), (2, &[Effect::Quit][..]));
    let mut world = World::editor(example(), (80, 24));
    world.press("S");
    in_one_burst(&mut world, "s q");
    world.press("s");
    assert_eq!((world.stored().version, world.undone.as_slice()), (2, &[Effect::Quit][..]));
}
