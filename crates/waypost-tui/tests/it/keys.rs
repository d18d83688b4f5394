use std::collections::BTreeMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use waypost_tui::keys::{Action, Chord, Keys, Place, bindings};

use crate::{World, example, golden, key, settings};

#[test]
fn every_key_of_the_table_can_be_read_and_none_does_two_things_in_one_place() {
    for binding in bindings() {
        for name in binding.keys {
            assert!(Chord::parse(name).is_some(), "{name} of {}", binding.name());
        }
    }
    Keys::with(&BTreeMap::new()).unwrap();
}

#[test]
fn a_key_means_the_same_on_every_screen() {
    let screens = [Place::PlanList, Place::Editor, Place::Run, Place::History, Place::Text, Place::Anywhere];
    let mut meanings: BTreeMap<&str, Vec<Action>> = BTreeMap::new();
    for binding in bindings().filter(|binding| screens.contains(&binding.place)) {
        for name in binding.keys {
            let known = meanings.entry(name).or_default();
            if !known.contains(&binding.action) {
                known.push(binding.action);
            }
        }
    }
    meanings.retain(|_, actions| actions.len() > 1);
    // What Enter opens in the editor is the form; the first view of a plan is its editor.
    let same = [("1", vec![Action::ViewTasks, Action::Edit]), ("enter", vec![Action::Open, Action::Edit])];
    assert_eq!(meanings, BTreeMap::from(same));
}

#[test]
fn the_keys_of_the_dashboard_hold_here_too() {
    let keys = Keys::default();
    for (place, name, action) in [
        (Place::Run, "/", Action::Filter),
        (Place::Editor, "ctrl+k", Action::Palette),
        (Place::PlanList, "?", Action::Help),
        (Place::History, "j", Action::Down),
        (Place::History, "k", Action::Up),
        (Place::PlanList, "enter", Action::Open),
        (Place::Run, "esc", Action::Back),
        (Place::PlanList, "a", Action::Approve),
        (Place::Run, "a", Action::Approve),
        (Place::Run, "r", Action::Retry),
        (Place::Run, "T", Action::RetryAll),
        (Place::PlanList, "T", Action::RetryAll),
        (Place::Run, "e", Action::Edit),
        (Place::Editor, "e", Action::Edit),
        (Place::Run, "n", Action::Next),
        (Place::Editor, "p", Action::Previous),
        (Place::Run, "f", Action::Zoom),
        (Place::Editor, "u", Action::Upstream),
        (Place::Editor, "d", Action::Downstream),
        (Place::Editor, "space", Action::Fold),
    ] {
        assert_eq!(keys.action(place, key(name)), Some(action), "{name}");
    }
}

#[test]
fn names_of_earlier_configurations_are_still_read() {
    let changes = BTreeMap::from([
        ("editor.problems".to_owned(), vec!["ctrl+n".to_owned()]),
        ("run.answer".to_owned(), vec!["i".to_owned()]),
        ("browser.retry".to_owned(), vec!["r".to_owned()]),
    ]);
    let keys = Keys::with(&changes).unwrap();
    assert_eq!(keys.action(Place::Editor, key("ctrl+n")), Some(Action::Next));
    assert_eq!(keys.action(Place::Run, key("i")), Some(Action::Open));
    assert_eq!(keys.action(Place::PlanList, key("r")), Some(Action::RetryAll));
}

#[test]
fn the_configuration_gives_an_action_other_keys() {
    let changes = BTreeMap::from([("editor.delete".to_owned(), vec!["W".to_owned(), "ctrl+d".to_owned()])]);
    let keys = Keys::with(&changes).unwrap();
    assert_eq!(keys.action(Place::Editor, key("ctrl+d")), Some(Action::Delete));
    assert_eq!(keys.action(Place::Editor, key("D")), None);
    let mut world =
        World::editor_with(waypost_tui::screen::Settings { keys, ..settings() }, example(), (120, 24));
    assert_eq!(
        world.lines_with("W delete").len(),
        1,
        "the footer names the key that works:\n{}",
        world.screen()
    );
}

#[test]
fn a_key_with_shift_or_a_capital_with_ctrl_is_the_one_that_terminals_tell() {
    let press = |code, modifiers| KeyEvent::new(code, modifiers);
    for (name, pressed) in [
        ("shift+d", press(KeyCode::Char('D'), KeyModifiers::SHIFT)),
        ("shift+d", press(KeyCode::Char('D'), KeyModifiers::NONE)),
        ("ctrl+U", press(KeyCode::Char('u'), KeyModifiers::CONTROL)),
        ("alt+shift+d", press(KeyCode::Char('D'), KeyModifiers::ALT | KeyModifiers::SHIFT)),
        ("shift+tab", press(KeyCode::BackTab, KeyModifiers::SHIFT)),
        ("shift+up", press(KeyCode::Up, KeyModifiers::SHIFT)),
    ] {
        let changes = BTreeMap::from([
            ("editor.graph".to_owned(), vec![name.to_owned()]),
            ("editor.delete".to_owned(), Vec::new()),
        ]);
        let keys = Keys::with(&changes).unwrap();
        assert_eq!(keys.action(Place::Editor, pressed), Some(Action::Graph), "{name}");
    }
    assert_eq!(Chord::parse("shift+d").unwrap().to_string(), "D", "the footer names the key that works");
    for name in ["shift+1", "shift+space", "ctrl+shift+u"] {
        assert_eq!(Chord::parse(name), None, "{name} is not told apart by a terminal");
    }
}

#[test]
fn a_wrong_line_of_the_configuration_is_told_with_what_to_write() {
    let changes = BTreeMap::from([
        ("editor.exekute".to_owned(), vec!["b".to_owned()]),
        ("editor.save".to_owned(), vec!["hyper+s".to_owned()]),
        ("editor.undo".to_owned(), vec!["D".to_owned()]),
    ]);
    let told: Vec<String> = Keys::with(&changes).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "[tui.keys] editor.exekute: unknown action; did you mean `editor.execute`?",
            "[tui.keys] editor.save: \"hyper+s\" is not a key; write one such as d, ctrl+s, alt+up, f5 or space",
            "[tui.keys] editor.undo: D is also the key of editor.delete",
        ]
    );
}

#[test]
fn the_help_screen_shows_the_table_with_the_keys_of_this_place_first() {
    let mut world = World::editor(example(), (80, 24));
    world.press("?");
    golden("help-80x24", &world.screen());
    world.press("esc");
    assert!(world.screen().contains("Tasks 1/8 · 0 of 7 done"), "{}", world.screen());
}
