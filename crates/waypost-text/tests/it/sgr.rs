use std::path::Path;

use serde_json::{Value, json};
use waypost_text::{SgrReader, TextStyle, terminal_text};

fn names(style: TextStyle) -> String {
    let TextStyle { bold, dim, italic, underline, strike, inverse, foreground, background } = style;
    let marks = [
        (bold, "bold"),
        (dim, "dim"),
        (italic, "italic"),
        (underline, "underline"),
        (strike, "strike"),
        (inverse, "inverse"),
    ];
    let mut names: Vec<String> =
        marks.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| (*name).to_owned()).collect();
    names.extend(foreground.map(|hue| format!("fg-{}", hue.name())));
    names.extend(background.map(|hue| format!("bg-{}", hue.name())));
    names.join(" ")
}

#[test]
fn a_log_has_the_same_colours_as_in_the_dashboard() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/lib/sgrCases.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(cases.len() >= 10);
    for case in cases {
        let mut reader = SgrReader::default();
        let lines = case["lines"].as_array().unwrap();
        let mut read = |line: &Value| -> Value {
            let runs = reader.line(line.as_str().unwrap());
            runs.into_iter().map(|run| json!([run.text, names(run.style)])).collect()
        };
        let found: Vec<Value> = lines.iter().map(&mut read).collect();
        assert_eq!(json!(found), case["spans"], "{:?}", case["lines"]);
    }
}

#[test]
fn a_terminal_gets_sequences_of_our_own_and_no_other() {
    let log = "\u{1b}[2J\u{1b}[1;38;5;196merror\u{1b}[0m: x\r\n\u{1b}[32mon\nand on\u{7}\n";
    assert_eq!(terminal_text(log, false), "error: x\non\nand on\u{fffd}\n");
    assert_eq!(
        terminal_text(log, true),
        "\u{1b}[0;1;31merror\u{1b}[0m: x\n\u{1b}[0;32mon\u{1b}[0m\n\u{1b}[0;32mand on\u{fffd}\u{1b}[0m\n"
    );
    let hidden = terminal_text("\u{1b}[1;30;40mblack on black\n", true);
    assert_eq!(hidden, "\u{1b}[0;1mblack on black\u{1b}[0m\n");
}
