//! Commands that the program prints can be pasted: they name the folder and the store that the caller named.

use std::fs;
use std::path::Path;

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
            // What it does is behind two spaces.
            found.extend(at.and_then(|at| line[at..].split("  ").next()).map(str::to_owned));
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
        assert_eq!(shell(&format!("waypost {place} start move t2")).0, Some(0));
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
    assert!(err.contains("created plan move in sqlite:mine.db"), "{out}{err}");
    let (out, _) = text(&workspace.waypost(&["status"]));
    assert!(out.contains("  waypost next move") && out.contains(": waypost list"), "{out}");
}

#[test]
fn an_id_of_a_task_is_one_word_of_a_shell_in_every_printed_command() {
    for id in ["$(touch PWNED)", "a b", "it's", "-x", "t;touch PWNED", "`touch PWNED`"] {
        let workspace = Workspace::new();
        let shell = |line: &str| {
            let mut command = workspace.command("sh");
            let output = command.env("WAYPOST_INJECTED_TERMINAL", "yes").args(["-c", line]).output().unwrap();
            let (out, err) = text(&output);
            (output.status.code(), format!("{out}{err}"))
        };
        let import = |plan: &str, work: &str| {
            let task = serde_json::json!({ "id": id, "description": "w" });
            let mut plan =
                serde_json::json!({ "format": "waypost/1", "id": plan, "title": "x", "tasks": [task] });
            if !work.is_empty() {
                plan["tasks"][0]["work"] = serde_json::json!({ "executor": work });
            }
            fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
            assert_eq!(shell("waypost import p.json").0, Some(0), "{id}");
        };
        // The command behind these words, which ends with the line or with words for people.
        let printed = |said: &str, before: &str, after: &str| {
            let at = said.find(before).unwrap_or_else(|| panic!("{before} is not in {said}"));
            let line = said[at + before.len()..].lines().next().unwrap();
            line[..line.find(after).filter(|_| !after.is_empty()).unwrap_or(line.len())].to_owned()
        };
        let works = |command: &str| {
            let (code, said) = shell(command);
            assert_eq!(code, Some(0), "{command}: {said}");
        };
        import("claimed", "");
        let (_, said) = shell("waypost next claimed --claim");
        works(&printed(&said, "when it is done: ", ""));
        import("asked", "");
        let word = waypost_text::shell_word(id);
        works(&format!("waypost start asked -- {word}"));
        let (_, said) = shell(&format!("waypost ask asked -- {word} which"));
        works(&printed(&said, "a person answers with: ", ""));
        import("people", "human");
        works("waypost submit people --yes");
        let (_, said) = shell("waypost why people");
        works(&printed(&said, "who does it (`", "`)"));
        fs::write(
            workspace.work().join("c.toml"),
            "[executors.no]\nkind = \"process\"\ncommand = [\"false\"]\n",
        )
        .unwrap();
        import("failing", "no");
        let (_, said) = shell("waypost run failing --config c.toml");
        works(&printed(&said, "hint: `", "` shows its output"));
        assert!(!workspace.work().join("PWNED").exists(), "{id}");
    }
}

#[test]
fn printed_commands_name_the_configuration_that_the_caller_named() {
    let workspace = Workspace::new();
    let put = |name: &str, text: &str| fs::write(workspace.work().join(name), text).unwrap();
    put("my config.toml", "[executors.no]\nkind = \"process\"\ncommand = [\"false\"]\n");
    put(
        "p.json",
        r#"{"id":"p","title":"P","tasks":[{"id":"a","description":"A","work":{"executor":"no"}}]}"#,
    );
    let err = |words: &[&str]| text(&workspace.waypost(words)).1;
    err(&["import", "p.json", "--as", "agent:robin"]);
    for verb in ["approve", "run"] {
        let said = err(&[verb, "p", "--config", "my config.toml"]);
        assert!(said.contains("`waypost approve --config 'my config.toml' p"), "{said}");
    }
    let (_, said) = text(&workspace.at_terminal(&["run", "p.json", "--config", "my config.toml"]));
    assert!(said.contains("`waypost log p a`") && said.contains("`waypost retry p`"), "{said}");
}

#[test]
fn a_demo_that_fails_names_no_command_for_a_folder_that_is_gone() {
    let workspace = Workspace::new();
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let (out, err) = text(&command.env("PATH", "/nonexistent").arg("demo").output().unwrap());
    assert!(err.contains("hint: `waypost demo --plain --keep` keeps the folder"), "{out}{err}");
    assert!(!err.contains("waypost log") && !err.contains("waypost retry"), "{err}");
}

#[test]
fn what_a_plan_says_is_printed_as_it_says_it_wherever_the_caller_works() {
    let workspace = Workspace::new();
    let plan =
        r#"{"title":"T","tasks":[{"id":"a","depends_on":["`waypost list`"]},{"id":"b","depends_on":["x"]}]}"#;
    fs::write(workspace.work().join("p.json"), plan).unwrap();
    for words in [&["--global", "validate", "p.json"][..], &["--global", "validate", "p.json", "--json"]] {
        let (out, err) = text(&workspace.waypost(words));
        assert!(format!("{out}{err}").contains("depends on unknown task `waypost list`"), "{out}{err}");
    }
    // The command of a hint is one to be typed.
    let (_, err) = text(&workspace.waypost(&["--global", "show", "nothing"]));
    assert!(err.contains("hint: `waypost --global list`"), "{err}");
}

#[test]
fn a_command_to_type_again_has_the_arguments_of_the_call() {
    let workspace = Workspace::new();
    let said = |words: &[&str]| text(&workspace.waypost(words)).1;
    let err = said(&["token", "new", "--role", "person", "--name", "ada lovelace"]);
    assert!(
        err.contains("run `waypost token new --agent 'ada lovelace' --role person` in a terminal"),
        "{err}"
    );
    let err = said(&["--as", "agent:robin", "token", "new", "--agent", "x", "--only-metrics"]);
    assert!(err.contains("ask a person to run `waypost token new --agent x --only-metrics`"), "{err}");
}

/// Examples that go on until they are stopped, or reach for a server, or for git, which a bare machine lacks.
const STAYING: [&str; 9] =
    ["demo", "worker", "serve", "watch", "--follow", "tui", "postgres:", "model test", "signers import"];

#[test]
fn every_example_of_the_help_runs_as_it_is_printed() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let mut folders = vec![sources];
    let mut examples = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(source) = fs::read_to_string(&path) else { continue };
            for part in source.split("\nExamples:\n").skip(1) {
                let lines = part.split("\";\n").next().unwrap().lines();
                examples.extend(lines.map(|line| line.trim().replace("\\\"", "\"")));
            }
        }
    }
    assert!(examples.len() > 150, "{}", examples.len());
    let workspace = Workspace::new();
    for folder in
        ["home/.zfunc", "home/.config/fish/completions", "home/.local/share/bash-completion/completions"]
    {
        fs::create_dir_all(workspace.root.join(folder)).unwrap();
    }
    let signers = "[gpg \"ssh\"]\n\tallowedSignersFile = ~/.ssh/allowed_signers\n";
    fs::write(workspace.root.join("home/.gitconfig"), signers).unwrap();
    // Programs that stand in for others, and a note of every exit code: that of a pipe is its last one's.
    let around = |options: &str, line: &str| {
        format!(
            "generate() {{ echo; }}; dot() {{ cat; }}; jq() {{ cat; }}; echo words | tee goal.txt > hook-input.json\n\
             waypost() {{ command waypost {options} \"$@\"; echo $? >> ../codes; }}\n{line}\n"
        )
    };
    let codes = |options: &str, line: &str| -> Vec<String> {
        let _none = fs::remove_file(workspace.root.join("codes"));
        let script = around(options, line);
        let output = workspace.command("sh").args(["-c", &script]).output().unwrap();
        let codes = fs::read_to_string(workspace.root.join("codes"));
        let codes = codes.unwrap_or_else(|_| panic!("{line} runs nothing: {:?}", text(&output)));
        codes.lines().map(str::to_owned).collect()
    };
    for example in &examples {
        // It is understood, and there is no such folder to do it in.
        let parsed = codes("-C /nonexistent", example);
        assert!(parsed.iter().all(|code| code == "5"), "{example}: {parsed:?}");
        if !STAYING.iter().any(|word| example.contains(word)) {
            let ran = codes("", example);
            assert!(ran.iter().all(|code| code != "2"), "{example}: {ran:?}");
        }
    }
}
