//! Commands that the program prints can be pasted: they name the folder and the store that the caller named.

use std::fs;

use crate::run::text;
use crate::transcript::Workspace;

/// The commands in these texts: those in backquotes, and those at the end of a line.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.split('`').enumerate().map(|(at, part)| (at % 2 == 1, part));
        if line.contains('`') {
            let quoted = parts.filter(|(is_quoted, part)| *is_quoted && part.starts_with("waypost"));
            found.extend(quoted.map(|(_, part)| part.to_owned()));
        } else if let Some((_, line)) = parts.next() {
            let at = line.find("  waypost ").or_else(|| line.find(": waypost ")).map(|at| at + 2);
            found.extend(at.map(|at| line[at..].to_owned()));
        }
    }
    found
}

#[test]
fn printed_commands_name_the_folder_and_the_store_that_the_caller_named() {
    for place in ["-C '../other place'", "--store 'sqlite:../other place/my.db'", "--global"] {
        let workspace = Workspace::new();
        fs::create_dir(workspace.root.join("other place")).unwrap();
        let shell = |line: &str| {
            let output = workspace.command("sh").args(["-c", line]).output().unwrap();
            let (out, err) = text(&output);
            (output.status.code(), format!("{out}{err}"))
        };
        let printed = |words: &str, expected: usize| {
            let (_, said) = shell(&format!("waypost {place} {words}"));
            let found = commands(&said);
            assert!(found.len() >= expected, "{words}: {found:?} in {said}");
            for command in &found {
                let is_placeless = ["help", "demo"].iter().any(|verb| command.contains(verb));
                assert!(is_placeless || command.starts_with(&format!("waypost {place} ")), "{words}: {said}");
                let is_example = command.split(' ').any(|word| word.chars().all(|c| c.is_ascii_uppercase()));
                if words.starts_with("status") && !is_placeless && !is_example {
                    assert_eq!(shell(command).0, Some(0), "{command}");
                }
            }
            found
        };
        printed("status", 5);
        assert_eq!(shell(&format!("waypost {place} new Move --id move --task Read --task Write")).0, Some(0));
        printed("status", 3);
        printed("why move", 2);
        printed("run move", 2);
        printed("show nothing", 1);
        printed("note move mine --expect-version 7", 0);
        let done = printed("next move --claim", 1).remove(0);
        assert_eq!(shell(&done).0, Some(0), "{done}");
        printed("ask move t2 'Which one?'", 1);
        printed("answer", 1);
        printed("history move --limit 1", 1);
    }
}

#[test]
fn the_commands_after_the_example_work_from_where_it_was_written_into_another_folder() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.root.join("other/deep")).unwrap();
    fs::create_dir(workspace.root.join("other/.git")).unwrap();
    let shell = |line: &str| text(&workspace.command("sh").args(["-c", line]).output().unwrap());
    let (out, err) = shell("waypost -C ../other/deep init --example");
    let next: Vec<&str> = out.split("next:\n").nth(1).unwrap_or(&err).lines().map(str::trim).collect();
    assert!(next.iter().all(|line| line.starts_with("waypost -C ../other/deep run ")), "{out}{err}");
    let (out, err) = shell(next[1]);
    assert!(out.contains("completed"), "{out}{err}");
}

#[test]
fn a_store_that_the_environment_names_is_not_repeated() {
    let mut workspace = Workspace::new();
    workspace.store = Some("sqlite:mine.db".to_owned());
    let (out, err) = text(&workspace.waypost(&["new", "Move", "--id", "move", "--task", "Read"]));
    assert!(err.is_empty(), "{out}{err}");
    let (out, _) = text(&workspace.waypost(&["status"]));
    assert!(out.contains("  waypost next move") && out.contains(": waypost list"), "{out}");
}
