use waypost_tui::text_input::{TYPED_BYTES_MAX, TextInput};

use crate::key;

/// Presses keys in a text with `|` where the cursor is, and tells what comes of it in the same way.
fn check(given: &str, keys: &str, wanted: &str) {
    let at = given.find('|').unwrap();
    let mut input = TextInput::lines(given.replacen('|', "", 1));
    let end = input.text().len();
    while input.cursor() > at {
        input.key(key("left"));
    }
    assert!(input.cursor() == at || at == end, "the cursor cannot stand there: {given}");
    for name in keys.split_whitespace() {
        input.key(key(name));
    }
    let mut found = input.text().to_owned();
    found.insert(input.cursor(), '|');
    assert_eq!(found, wanted, "{given} and {keys}");
}

#[test]
fn the_cursor_goes_by_what_people_see_as_characters() {
    check("a👩‍👩‍👧‍👦|b", "left", "a|👩‍👩‍👧‍👦b");
    check("a👩‍👩‍👧‍👦|b", "backspace", "a|b");
    check("|e\u{301}x", "delete", "|x");
    check("|e\u{301}x", "right", "e\u{301}|x");
    check("漢|字", "backspace backspace", "|字");
}

#[test]
fn the_keys_of_a_shell_work() {
    check("one two| three", "ctrl+w", "one | three");
    check("one two| three", "ctrl+u", "| three");
    check("one two| three", "ctrl+k", "one two|");
    check("one two| three", "ctrl+a x", "x|one two three");
    check("one two| three", "end x", "one two threex|");
    check("one |two three", "alt+right alt+right", "one two three|");
    check("one two |three", "alt+left alt+left", "|one two three");
}

#[test]
fn up_and_down_go_from_line_to_line_in_the_same_column() {
    check("abc\nde|f", "up", "ab|c\ndef");
    check("ab|c\ndef", "down", "abc\nde|f");
    check("abcd|\nx", "down", "abcd\nx|");
    check("漢字|\nxyz", "down", "漢字\nxy|z");
    check("a|b", "up down", "a|b");
}

#[test]
fn pasted_text_cannot_bring_control_characters_and_one_line_stays_one() {
    let mut line = TextInput::line("");
    line.insert("a\r\nb\tc\u{1b}[31m");
    assert_eq!(line.text(), "a b c[31m");
    let mut lines = TextInput::lines("");
    lines.insert("a\r\nb\tc\u{7}");
    assert_eq!(lines.text(), "a\nb\tc");
}

#[test]
fn a_field_takes_as_much_as_a_plan_may_hold_and_no_more() {
    let mut input = TextInput::line("x".repeat(TYPED_BYTES_MAX - 1));
    input.insert("y");
    assert_eq!(input.text().len(), TYPED_BYTES_MAX);
    input.insert("z");
    assert_eq!(input.text().len(), TYPED_BYTES_MAX);
}
