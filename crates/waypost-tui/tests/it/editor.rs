use waypost_core::PlanId;
use waypost_tui::app::Screen;
use waypost_tui::messages::{Effect, Message, Purpose, Reply};
use waypost_tui::plan::{LoadedPlan, PlanKey};
use waypost_tui::run_view::RunEffect;
use waypost_tui::screen::Settings;
use waypost_tui::theme::Theme;

use crate::{World, example, golden, golden_in_all_sizes, settings};

fn selected(world: &World) -> String {
    match world.app.top() {
        Some(Screen::Editor(editor)) => editor.selected_task().map(ToString::to_string).unwrap_or_default(),
        _ => String::new(),
    }
}

fn order(world: &World) -> Vec<String> {
    world.stored().tasks.iter().map(|task| task.spec.id.to_string()).collect()
}

#[test]
fn the_editor_shows_tasks_as_a_tree_with_details_and_a_graph_where_there_is_room() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down down down");
    golden_in_all_sizes("editor", world);
}

#[test]
fn a_terminal_that_is_too_small_says_what_size_is_needed() {
    let mut world = World::editor(example(), (59, 15));
    golden("too-small-59x15", &world.screen());
    world.resize(60, 14);
    assert!(world.screen().contains("Waypost needs 60×15"), "{}", world.screen());
}

#[test]
fn the_form_edits_every_field_and_saving_writes_a_version() {
    let mut world = World::editor(example(), (80, 24));
    world.press("end enter ctrl+u").type_text("Write the documentation anew");
    world.press("tab").type_text("in English").press("alt+enter").type_text("and short");
    world.press("tab right right tab right tab tab tab space").type_text("t4").press("tab enter");
    world.press("tab").type_text("Edit, Write").press("tab space");
    golden_in_all_sizes("form", {
        let mut copy = World::editor(example(), (80, 24));
        copy.press("end enter ctrl+u").type_text("Write the documentation anew");
        copy.press("tab").type_text("in English").press("alt+enter").type_text("and short");
        copy
    });
    world.press("enter s");
    let stored = world.stored();
    let task = &stored.tasks[7].spec;
    assert_eq!(task.description, "Write the documentation anew");
    assert_eq!(task.notes, "in English\nand short");
    assert_eq!(task.complexity, Some(waypost_core::Complexity::Medium));
    assert_eq!(task.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>(), ["t3", "t4"]);
    assert_eq!(task.priority, 1);
    assert_eq!(task.tools.as_deref(), Some(&["Edit".to_owned(), "Write".to_owned()][..]));
    assert!(task.skip);
    assert_eq!(stored.version, 2, "one version for all of it");
    assert!(world.screen().contains("saved as version 2 of plan-1"), "{}", world.screen());
}

#[test]
fn escape_leaves_the_task_as_it_was() {
    let mut world = World::editor(example(), (80, 24));
    world.press("enter").type_text("nonsense").press("esc s");
    assert_eq!(world.stored().version, 1);
    assert!(world.screen().contains("no unsaved edits"), "{}", world.screen());
}

#[test]
fn a_new_task_stands_below_the_selected_one_and_has_a_free_id() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down N").type_text("Ask the others").press("enter");
    assert_eq!(selected(&world), "t7");
    world.press("s");
    assert_eq!(order(&world), ["t1", "t2", "t7", "t3", "t3a", "t3b", "t4", "t5", "t6"]);
}

#[test]
fn a_new_task_without_a_word_is_not_taken() {
    let mut world = World::editor(example(), (80, 24));
    world.press("N enter");
    assert!(world.screen().contains("the description must not be empty"), "{}", world.screen());
    world.press("esc s");
    assert_eq!(world.stored().version, 1);
}

#[test]
fn deleting_names_what_depends_on_the_task_and_keeps_it_unless_told() {
    let mut world = World::editor(example(), (80, 24));
    world.press("D");
    golden("delete-80x24", &world.screen());
    world.press("enter s");
    assert_eq!(world.stored().version, 1, "Enter keeps it");
    world.press("D d s");
    let stored = world.stored();
    assert_eq!(order(&world), ["t2", "t3", "t3a", "t3b", "t4", "t5", "t6"]);
    assert!(stored.tasks[0].spec.depends_on.is_empty(), "t2 no longer waits for it");
}

#[test]
fn a_task_that_nobody_needs_goes_at_once_and_can_be_brought_back() {
    let mut world = World::editor(example(), (80, 24));
    world.press("end D");
    assert!(world.screen().contains("deleted t6; z restores it"), "{}", world.screen());
    world.press("z");
    assert_eq!(selected(&world), "t6");
    assert!(!world.screen().contains("●"), "nothing is left to save:\n{}", world.screen());
}

#[test]
fn capital_letters_skip_a_task_and_move_it_up_and_down() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down K s");
    assert_eq!(order(&world)[..2], ["t2", "t1"]);
    world.press("J s");
    assert_eq!(order(&world)[..2], ["t1", "t2"]);
    world.press("K K");
    assert!(world.screen().contains("t2 is the first among its siblings"), "{}", world.screen());
    world.press("z S s");
    assert!(world.stored().tasks[1].spec.skip);
}

#[test]
fn a_parent_moves_with_its_parts_and_tasks_go_in_and_out_of_it() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down down K s");
    assert_eq!(order(&world), ["t1", "t3", "t3a", "t3b", "t2", "t4", "t5", "t6"]);
    world.press("end > s");
    assert_eq!(world.stored().tasks[7].spec.parent, Some(waypost_testkit::id("t5")));
    world.press("< s");
    assert_eq!(world.stored().tasks[7].spec.parent, None);
}

#[test]
fn a_task_that_waits_for_a_person_is_your_task_in_the_editor_too() {
    let mut world = World::editor(example(), (80, 24));
    let plan = PlanKey { store: 0, id: PlanId::new("plan-1").unwrap() };
    let mut loaded = world.plans.with_plan(&plan.id, LoadedPlan::of).unwrap();
    loaded.for_people = loaded.draft.tasks.iter().map(|task| task.spec.id.clone()).collect();
    world.send(Message::Reply(Reply::Plan { plan, loaded: Ok(Box::new(loaded)) }));
    assert!(
        world.screen().contains("t1 · your task") && !world.screen().contains("ready"),
        "{}",
        world.screen()
    );
    assert_eq!(world.lines_with("@").len(), 1, "those behind it are still blocked: {}", world.screen());
}

#[test]
fn a_folded_task_hides_its_parts_until_something_in_it_is_looked_at() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down down space");
    assert!(!world.screen().contains("t3a"), "{}", world.screen());
    assert!(world.screen().contains("▸t3"));
    world.press("/").type_text("validate").press("esc");
    assert_eq!(selected(&world), "t3b");
    assert!(world.screen().contains("t3a"));
}

#[test]
fn a_cycle_is_shown_with_its_path_at_its_tasks_and_is_not_saved() {
    let mut world = World::editor(example(), (80, 24));
    world.press("b").type_text("t5");
    golden("picker-ring-80x24", &world.screen());
    world.press("tab enter");
    golden("cycle-80x24", &world.screen());
    world.press("s");
    assert!(world.screen().contains("not saved: task"), "{}", world.screen());
    assert_eq!(world.stored().version, 1);
    let note = world.app.note.as_ref().map(|(note, _)| note.text.clone()).unwrap_or_default();
    assert!(note.contains("→") && note.contains("remove one of these dependencies"), "{note}");
    world.press("z");
    assert!(!world.screen().contains("problem"), "{}", world.screen());
    assert!(world.lines_with("↺").is_empty());
}

#[test]
fn n_and_p_go_from_problem_to_problem() {
    let mut world = World::editor(example(), (80, 24));
    world.press("n");
    assert!(world.screen().contains("no problems"));
    world.press("b").type_text("t2").press("tab enter end n");
    assert_eq!(selected(&world), "t1");
    world.press("n");
    assert_eq!(selected(&world), "t2");
    world.press("p");
    assert_eq!(selected(&world), "t1");
}

#[test]
fn leaving_with_unsaved_edits_asks() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S esc");
    golden("leave-80x24", &world.screen());
    world.press("b");
    assert!(world.undone.is_empty());
    world.press("q d");
    assert_eq!(world.undone, [Effect::Quit], "the editor was the first screen");
    assert_eq!(world.stored().version, 1);
    let mut world = World::editor(example(), (80, 24));
    world.press("S esc s");
    assert_eq!((world.undone.as_slice(), world.stored().version), (&[Effect::Quit][..], 2));
}

/// Whether the run view is on top and has asked for the plan to be run.
fn runs(world: &World) -> bool {
    let starts = |effect: &Effect| matches!(effect, Effect::Run(RunEffect::Start(_)));
    matches!(world.app.top(), Some(Screen::Run(_))) && world.undone.iter().any(starts)
}

#[test]
fn x_runs_what_is_saved_and_a_dry_run_runs_nothing() {
    let mut world = World::editor(example(), (80, 24));
    world.press("x");
    assert!(runs(&world), "{:?}", world.undone);

    let mut world = World::editor(example(), (80, 24));
    world.press("S x");
    assert!(world.screen().contains("not saved yet") && !runs(&world), "{}", world.screen());
    world.press("s");
    assert!(runs(&world), "{:?}", world.undone);
    assert_eq!(world.stored().version, 2);

    let mut world = World::editor_with(Settings { dry_run: true, ..settings() }, example(), (80, 24));
    assert!(world.screen().contains("DRY RUN"), "{}", world.screen());
    world.press("x");
    assert!(world.undone.is_empty());
    assert!(world.screen().contains("[dry run] the plan would run now; nothing was run"));
}

#[test]
fn capital_e_opens_the_plan_as_text_and_what_comes_back_is_one_edit() {
    let mut world = World::editor(example(), (80, 24));
    world.press("E");
    let Some(Effect::EditText { purpose, text, ending: "md" }) = world.undone.pop() else { panic!() };
    let edited = text.replace("Add the jwt crate", "Add the jose crate");
    assert_ne!(edited, text);
    let answer = |text: Option<String>| {
        Message::Reply(waypost_tui::messages::Reply::Edited { purpose: purpose.clone(), text: Ok(text) })
    };
    world.send(answer(Some(edited)));
    assert!(world.screen().contains("Add the jose crate"), "{}", world.screen());
    world.press("s");
    let stored = world.stored();
    assert_eq!(stored.tasks[1].spec.description, "Add the jose crate to Cargo.toml");
    assert_eq!(stored.tasks[3].spec.notes, "Use HS256, expiry = 24h", "nothing else is changed");
    world.press("z");
    assert!(
        world.screen().contains("Add the jwt crate"),
        "what was saved can be undone:\n{}",
        world.screen()
    );
    world.send(answer(None));
    assert!(world.screen().contains("Add the jwt crate"));
}

#[test]
fn a_field_goes_to_the_editor_and_back() {
    let mut world = World::editor(example(), (80, 24));
    world.press("enter ctrl+e");
    let Some(Effect::EditText { purpose: Purpose::Field, text, .. }) = world.undone.pop() else { panic!() };
    assert_eq!(text, "Read the auth module and find its patterns");
    let answer = waypost_tui::messages::Reply::Edited {
        purpose: Purpose::Field,
        text: Ok(Some("Read it\n".to_owned())),
    };
    world.send(Message::Reply(answer));
    world.press("enter s");
    assert_eq!(world.stored().tasks[0].spec.description, "Read it");
}

#[test]
fn the_mouse_selects_in_the_list_and_in_the_graph_and_presses_keys_of_the_footer() {
    let mut world = World::editor(example(), (200, 50));
    let find = |world: &mut World, text: &str| -> (u16, u16) {
        let screen = world.screen();
        let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).unwrap();
        let at = line.find(text).unwrap();
        (unicode_width::UnicodeWidthStr::width(&line[..at]) as u16, row as u16)
    };
    let (x, y) = find(&mut world, "Move the sessions over");
    world.click(x, y);
    assert_eq!(selected(&world), "t4");
    let (x, y) = find(&mut world, "S skip");
    world.click(x, y);
    assert!(world.screen().contains("● 1 edit"), "{}", world.screen());
    let screen = world.screen();
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains("▸◌ t5")).unwrap();
    let x = unicode_width::UnicodeWidthStr::width(&line[..line.find("▸◌ t5").unwrap()]) as u16 + 3;
    world.click(x, row as u16);
    assert_eq!(selected(&world), "t5", "{screen}");
}

#[test]
fn without_colours_everything_is_still_told_apart() {
    let mut plain = World::editor(example(), (80, 24));
    let mut coloured =
        World::editor_with(Settings { theme: Theme::Colours, ..settings() }, example(), (80, 24));
    assert_eq!(plain.screen(), coloured.screen());
    let has_colour =
        |world: &mut World| {
            world.buffer().content.iter().any(|cell| {
                cell.fg != ratatui::style::Color::Reset || cell.bg != ratatui::style::Color::Reset
            })
        };
    assert!(!has_colour(&mut plain));
    assert!(has_colour(&mut coloured));
}

#[test]
fn a_dry_run_of_a_plan_that_has_ended_says_that_nothing_would_run() {
    let mut world = World::editor_with(
        waypost_tui::screen::Settings { dry_run: true, ..crate::settings() },
        example(),
        (80, 24),
    );
    let finish =
        waypost_core::Command::FinishPlan { phase: waypost_core::Phase::Cancelled, summary: String::new() };
    let version = world.somebody_writes(vec![finish]);
    let plans = vec![(waypost_core::PlanId::new("plan-1").unwrap(), version)];
    world.send(waypost_tui::messages::Message::Written { store: 0, plans });
    world.press("x");
    assert!(world.screen().contains("the plan is cancelled: nothing would run"), "{}", world.screen());
}

#[test]
fn details_that_do_not_fit_are_named() {
    let mut draft = example();
    draft.tasks[0].spec.description = "one\ntwo\nthree".to_owned();
    draft.tasks[0].spec.notes = "four".to_owned();
    let mut world = World::editor(draft, (60, 15));
    golden("details-60x15", &world.screen());
    world.resize(80, 40);
    assert!(!world.screen().contains("… more"), "{}", world.screen());
}

#[test]
fn tasks_deeper_than_is_drawn_say_how_deep() {
    let mut draft = waypost_core::Draft::new("deep");
    for depth in 0..12 {
        let mut spec = waypost_testkit::task(&format!("t{depth}"), &[]);
        spec.parent = (depth > 0).then(|| waypost_testkit::id(&format!("t{}", depth - 1)));
        draft.tasks.push(waypost_core::Task::new(spec));
    }
    let mut world = World::editor(draft, (80, 24));
    golden("deep-80x24", &world.screen());
}

#[test]
fn a_field_with_lines_above_or_below_says_so() {
    let mut draft = example();
    draft.tasks[0].spec.notes = "one\ntwo\nthree\nfour\nfive".to_owned();
    let mut world = World::editor(draft, (60, 15));
    world.press("enter");
    assert_eq!(world.lines_with("↓").len(), 1, "{}", world.screen());
    world.press("tab up up");
    golden("form-scrolled-60x15", &world.screen());
    assert_eq!((world.lines_with("↑").len(), world.lines_with("↓").len()), (1, 1), "{}", world.screen());
}

#[test]
fn what_is_to_be_found_stays_in_sight_when_no_task_has_it() {
    let mut world = World::editor(example(), (80, 24));
    world.press("/").type_text("zz");
    assert_eq!(world.lines_with("find: zz").len(), 1, "{}", world.screen());
    assert_eq!(world.lines_with("no task matches").len(), 1, "{}", world.screen());
    world.press("backspace backspace").type_text("t5");
    assert!(world.lines_with("no task matches").is_empty(), "{}", world.screen());
    assert_eq!(selected(&world), "t5");
}

#[test]
fn every_footer_names_the_way_back() {
    for (columns, rows) in crate::SIZES {
        let mut worlds =
            [World::editor(example(), (columns, rows)), World::plan_list(Vec::new(), (columns, rows))];
        for world in &mut worlds {
            let screen = world.screen();
            let footer = screen.lines().last().unwrap();
            assert!(footer.contains("Esc back") && footer.contains("? help"), "{screen}");
        }
    }
}

#[test]
fn fields_are_chosen_from_lists() {
    let mut world = World::editor(example(), (80, 24));
    world.press("end = 3").type_text("urgent").press("enter");
    world.press("= 5").type_text("t4").press("enter");
    world.press("s");
    let stored = world.stored();
    let task = stored.tasks.iter().find(|task| task.spec.id.as_str() == "t6").unwrap();
    assert_eq!((task.spec.priority, task.spec.parent.as_ref().unwrap().as_str()), (10, "t4"));
    assert_eq!(order(&world), ["t1", "t2", "t3", "t3a", "t3b", "t4", "t6", "t5"], "below its parent");
    world.press("= 8").type_text("night").press("enter s");
    assert_eq!(world.stored().spec.queue, "night");
    world.press("z s");
    assert_eq!(world.stored().spec.queue, "", "undo takes it back");
    world.press("=");
    golden("set-80x24", &world.screen());
}

#[test]
fn a_task_is_no_part_of_itself_and_of_none_of_its_parts() {
    let mut world = World::editor(example(), (80, 24));
    world.press("down down = 5");
    let screen = world.screen();
    assert!(screen.contains("t3 is part of") && screen.contains(" t4"), "{screen}");
    for id in ["○ t3a", "◌ t3a", "◌ t3b", "◌ t3 "] {
        let listed =
            screen.lines().filter(|line| line.contains("│ ") && line.contains(id) && line.contains("││"));
        assert_eq!(listed.count(), 0, "{id}: {screen}");
    }
}

#[test]
fn the_form_offers_lists_too_and_moves_the_task() {
    let mut world = World::editor(example(), (80, 24));
    world.press("end enter tab tab tab tab tab space").type_text("t4").press("enter enter s");
    let stored = world.stored();
    let task = stored.tasks.iter().find(|task| task.spec.id.as_str() == "t6").unwrap();
    assert_eq!(task.spec.parent.as_ref().unwrap().as_str(), "t4");
}

#[test]
fn a_status_is_written_at_once_and_edits_stay() {
    let mut world = World::editor(example(), (80, 24));
    world.press("S = 1 1");
    let written = world.undone.iter().any(|effect| {
        matches!(
            effect,
            Effect::Run(RunEffect::Write { action: waypost_tui::run_view::PlanAction::CompleteTask(_), .. })
        )
    });
    assert!(written, "{:?}", world.undone);
    assert!(world.screen().contains("● 1 edit"), "{}", world.screen());
}

#[test]
fn u_and_d_follow_the_dependencies() {
    let mut world = World::editor(example(), (80, 24));
    world.press("d");
    assert_eq!(selected(&world), "t2");
    world.press("d");
    assert_eq!(selected(&world), "t3");
    world.press("u u");
    assert_eq!(selected(&world), "t1");
    world.press("u");
    assert!(world.screen().contains("t1 depends on no task"), "{}", world.screen());
}

#[test]
fn a_search_stays_and_n_goes_on() {
    let mut world = World::editor(example(), (80, 24));
    world.press("/").type_text("token").press("enter");
    assert_eq!(selected(&world), "t3");
    world.press("n n");
    assert_eq!(selected(&world), "t3b");
    world.press("p");
    assert_eq!(selected(&world), "t3a");
}

#[test]
fn everything_about_a_task_is_shown_on_the_whole_screen() {
    let mut draft = example();
    draft.tasks[0].spec.notes = (0..40).map(|line| format!("- note {line}\n")).collect();
    let mut world = World::editor(draft, (80, 24));
    world.press("f");
    golden("editor-focus-80x24", &world.screen());
    world.press("end");
    assert!(world.screen().contains("note 39"), "{}", world.screen());
    world.press("esc");
    assert!(world.screen().contains("Tasks 1/8"), "{}", world.screen());
}
