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
fn the_editor_has_the_keys_of_clido() {
    let keys = Keys::default();
    for (name, action) in [
        ("up", Action::Up),
        ("down", Action::Down),
        ("enter", Action::Edit),
        ("d", Action::Delete),
        ("n", Action::New),
        ("space", Action::Skip),
        ("r", Action::MoveUp),
        ("s", Action::Save),
        ("x", Action::Execute),
        ("esc", Action::Back),
    ] {
        assert_eq!(keys.action(Place::Editor, key(name)), Some(action), "{name}");
    }
}

#[test]
fn the_configuration_gives_an_action_other_keys() {
    let changes = BTreeMap::from([("editor.delete".to_owned(), vec!["D".to_owned(), "ctrl+d".to_owned()])]);
    let keys = Keys::with(&changes).unwrap();
    assert_eq!(keys.action(Place::Editor, key("ctrl+d")), Some(Action::Delete));
    assert_eq!(keys.action(Place::Editor, key("d")), None);
    let mut world =
        World::editor_with(waypost_tui::screen::Settings { keys, ..settings() }, example(), (120, 24));
    assert_eq!(
        world.lines_with("D delete").len(),
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
        let changes = BTreeMap::from([("editor.graph".to_owned(), vec![name.to_owned()])]);
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
        ("editor.explode".to_owned(), vec!["b".to_owned()]),
        ("editor.save".to_owned(), vec!["hyper+s".to_owned()]),
        ("editor.undo".to_owned(), vec!["d".to_owned()]),
    ]);
    let told: Vec<String> = Keys::with(&changes).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "[tui.keys] editor.explode: unknown action; did you mean `editor.execute`?",
            "[tui.keys] editor.save: \"hyper+s\" is not a key; write one such as d, ctrl+s, alt+up, f5 or space",
            "[tui.keys] editor.undo: d is also the key of editor.delete",
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
