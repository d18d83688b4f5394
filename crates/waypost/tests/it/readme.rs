//! The tour in README, pasted line by line into a shell in an empty folder, by a person at a terminal.

use std::fs;
use std::path::Path;

use waypost_core::Phase;

use crate::examples::stored;
use crate::run::text;
use crate::transcript::Workspace;

/// The heading of the tour.
const TOUR: &str = "\n## First steps\n";

/// What each command prints, by how its line begins.
const EXPECTED: &[(&str, &[&str])] = &[
    ("waypost new ", &["tokens"]),
    ("waypost task add ", &["t3"]),
    ("waypost show tokens", &["Move sign-in to tokens", "○ ready", "◌ blocked   t3"]),
    ("waypost next tokens --claim", &["t1"]),
    ("waypost done tokens t1", &["t1 is done"]),
    ("waypost note tokens ", &["waiting for review"]),
    ("waypost", &["1 task ready", "waypost next tokens", "1 plan in all"]),
    ("waypost why tokens t3", &["t2"]),
    ("waypost history tokens", &["person:ada", "v1"]),
    ("waypost diff tokens 2", &["t1", "three places touch a session"]),
    ("waypost restore tokens 2", &["version 2"]),
    ("waypost export tokens --format markdown", &[]),
    ("waypost update tokens ", &["nothing to change"]),
    ("waypost graph tokens ", &[]),
    ("waypost export tokens --format checklist", &[]),
    ("waypost import TODO.md ", &["todo"]),
    (
        "waypost init --example",
        &[".waypost/config.toml", "example-plan.json", "waypost run example-plan.json"],
    ),
    ("waypost run example-plan.json --dry-run", &["text", "pictures", "publish", "sh"]),
    ("waypost run example-plan.json", &["plan example is completed"]),
    ("waypost log example publish", &["starting publish"]),
    ("waypost run tokens --executor echo", &["plan tokens is completed"]),
    ("waypost init --client claude", &[".mcp.json", "AGENTS.md"]),
];

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap()
}

/// The lines of a section's blocks in this language.
fn lines<'a>(section: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let blocks = section.split(fence.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn every_line_of_the_tour_works_when_it_is_pasted_into_an_empty_folder() {
    let readme = readme();
    let tour = readme.split(TOUR).nth(1).unwrap().split("\n## ").next().unwrap();
    let workspace = Workspace::new();
    let paste = |line: &str| {
        let mut shell = workspace.command("sh");
        shell.env("WAYPOST_INJECTED_TERMINAL", "yes").arg("-c").arg(line).output().unwrap()
    };
    let lines_pasted = lines(tour, "sh");
    let mut expected = EXPECTED.iter();
    for line in &lines_pasted {
        let output = paste(line);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(0), "{line}\n{out}{err}");
        let Some((command, promised)) = expected.next() else { panic!("nothing is expected of {line:?}") };
        assert!(line.starts_with(command), "{line:?} is where {command:?} was expected");
        for words in *promised {
            assert!(out.contains(words), "{words:?} is missing after {line}\n{out}{err}");
        }
    }
    assert!(expected.next().is_none(), "lines are missing: {lines_pasted:?}");
    assert!(fs::read_to_string(workspace.work().join("PLAN.md")).unwrap().contains("Read the auth module"));
    assert!(fs::read_to_string(workspace.work().join("plan.svg")).unwrap().contains("<svg"));
    for plan in ["tokens", "example"] {
        assert_eq!(stored(&workspace, plan).state().phase, Phase::Completed, "{plan}");
    }
    // What it shows of a refusal is what is printed.
    let shown = lines(tour, "console");
    let output = paste(shown[0].strip_prefix("$ ").unwrap());
    assert_eq!(output.status.code(), Some(3));
    // How many versions a run makes depends on which tasks end at the same time.
    let without_numbers = |text: &str| text.replace(|sign: char| sign.is_ascii_digit(), "");
    let err = without_numbers(&text(&output).1);
    for line in &shown[1..] {
        assert!(err.contains(&without_numbers(line)), "{line}\n{err}");
    }
}

#[test]
fn the_first_two_commands_are_for_a_fresh_clone() {
    let readme = readme();
    let first = lines(&readme, "sh");
    assert_eq!(first[..2], ["cargo run --release -- demo", "cargo xtask test"]);
}

/// In zsh as macOS has it, `#` begins no comment in a line that is typed.
#[test]
fn no_line_to_paste_has_a_comment() {
    let readme = readme();
    let commented: Vec<&str> = lines(&readme, "sh").into_iter().filter(|line| line.contains('#')).collect();
    assert!(commented.is_empty(), "{commented:?}");
}

#[test]
fn without_a_terminal_the_example_runs_with_the_configuration_that_the_command_names() {
    let readme = readme();
    let command = readme.split('`').find(|part| part.starts_with("waypost run example-plan.json --config"));
    let workspace = Workspace::new();
    for line in ["waypost init --example", command.unwrap()] {
        let output = workspace.command("sh").arg("-c").arg(line).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    }
    assert_eq!(stored(&workspace, "example").state().phase, Phase::Completed);
}
