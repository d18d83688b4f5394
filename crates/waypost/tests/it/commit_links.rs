//! Commits and tasks: the hook of `waypost init --git-hooks`, and the commits that `waypost task show` lists.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::Value;

use crate::run::text;
use crate::transcript::Workspace;

/// A repository with the plan `k3m` of two tasks.
fn repository() -> Workspace {
    let workspace = Workspace::new();
    git(&workspace, &["init", "--quiet", "--initial-branch=main"]);
    for words in [&["user.name", "Ada"][..], &["user.email", "ada@example.org"]] {
        git(&workspace, &[&["config"], words].concat());
    }
    does(&workspace, &["new", "P", "--id", "k3m", "--task", "one", "--task", "two"]);
    workspace
}

/// Runs git as a person at a terminal does; its hooks are run by the same person.
fn try_git(workspace: &Workspace, words: &[&str]) -> Output {
    workspace.command("git").env("WAYPOST_INJECTED_TERMINAL", "yes").args(words).output().unwrap()
}

#[track_caller]
fn git(workspace: &Workspace, words: &[&str]) -> String {
    let output = try_git(workspace, words);
    assert!(output.status.success(), "git {words:?}: {output:?}");
    text(&output).0.trim_end().to_owned()
}

#[track_caller]
fn does(workspace: &Workspace, words: &[&str]) -> (String, String) {
    let output = workspace.at_terminal(words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    text(&output)
}

fn commit(workspace: &Workspace, message: &str) -> String {
    git(workspace, &["commit", "--quiet", "--allow-empty", "-m", message]);
    git(workspace, &["log", "-1", "--format=%B"])
}

#[test]
#[ignore = "needs git"]
fn a_commit_names_the_task_that_is_claimed_and_the_task_shows_the_commit() {
    let workspace = repository();
    does(&workspace, &["init", "--git-hooks"]);
    assert_eq!(commit(&workspace, "No task is claimed"), "No task is claimed");
    does(&workspace, &["next", "k3m", "--claim"]);
    assert_eq!(commit(&workspace, "One"), "One\n\nWaypost-Task: k3m/t1");
    git(&workspace, &["commit", "--quiet", "--allow-empty", "--amend", "--no-edit"]);
    assert_eq!(git(&workspace, &["log", "-1", "--format=%B"]), "One\n\nWaypost-Task: k3m/t1", "once");
    does(&workspace, &["start", "k3m", "t2"]);
    assert_eq!(commit(&workspace, "Whose?"), "Whose?", "nobody can tell for which of two tasks it is");
    does(&workspace, &["done", "k3m", "t1"]);
    let hidden = "\u{1b}[31mTwo\u{202e}";
    assert_eq!(commit(&workspace, hidden), format!("{hidden}\n\nWaypost-Task: k3m/t2"));
    let (shown, _) = does(&workspace, &["task", "show", "k3m", "t1"]);
    assert!(shown.contains(" One (Ada, ") && !shown.contains("Whose"), "{shown}");
    let (shown, _) = does(&workspace, &["task", "show", "k3m", "t2"]);
    assert!(shown.contains("Two") && !shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    let (shown, _) = does(&workspace, &["task", "show", "k3m", "t1", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let commits = shown["commits"].as_array().unwrap();
    assert_eq!((commits.len(), &commits[0]["title"]), (1, &"One".into()), "{shown}");
    let log = git(&workspace, &["log", "--format=%H", "--grep=^One$"]);
    assert_eq!(commits[0]["commit"], log.as_str());
}

#[test]
#[ignore = "needs git"]
fn commits_that_are_no_new_work_get_no_trailer() {
    let workspace = repository();
    commit(&workspace, "First");
    git(&workspace, &["checkout", "--quiet", "-b", "side"]);
    fs::write(workspace.work().join("a"), "a").unwrap();
    git(&workspace, &["add", "a"]);
    commit(&workspace, "Of somebody else");
    git(&workspace, &["checkout", "--quiet", "main"]);
    commit(&workspace, "Second");
    does(&workspace, &["init", "--git-hooks"]);
    does(&workspace, &["next", "k3m", "--claim"]);
    // One that is typed in an editor: what is left empty is no commit.
    let editor = |script: &str| {
        let editor = format!("core.editor=sh -c '{script}' x");
        try_git(&workspace, &["-c", &editor, "commit", "--quiet", "--allow-empty"])
    };
    assert!(!editor("true").status.success());
    assert!(editor("sed -i 1s/^/Typed/ \"$1\"").status.success());
    assert_eq!(git(&workspace, &["log", "-1", "--format=%B"]), "Typed");
    git(&workspace, &["reset", "--quiet", "--hard", "HEAD^"]);
    git(&workspace, &["cherry-pick", "side"]);
    assert_eq!(git(&workspace, &["log", "-1", "--format=%B"]), "Of somebody else");
    git(&workspace, &["reset", "--quiet", "--hard", "HEAD^"]);
    git(&workspace, &["merge", "--quiet", "--no-ff", "--no-edit", "side"]);
    assert!(!git(&workspace, &["log", "-1", "--format=%B"]).contains("Waypost-Task"));
    git(&workspace, &["checkout", "--quiet", "side"]);
    git(&workspace, &["rebase", "--quiet", "--force-rebase", "main^"]);
    assert_eq!(git(&workspace, &["log", "-1", "--format=%B"]), "Of somebody else");
}

#[test]
#[ignore = "needs git"]
fn an_earlier_hook_that_is_a_link_stays_one() {
    let workspace = repository();
    let hooks = workspace.work().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let script = workspace.work().join("hook");
    fs::write(&script, "#!/bin/sh\necho before >> ran\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("../../hook", hooks.join("prepare-commit-msg")).unwrap();
    does(&workspace, &["init", "--git-hooks", "--yes"]);
    let kept = hooks.join("prepare-commit-msg.before-waypost");
    assert_eq!(fs::read_link(kept).unwrap().to_str(), Some("../../hook"));
    // What is changed there later counts.
    fs::write(&script, "#!/bin/sh\necho after >> ran\n").unwrap();
    commit(&workspace, "One");
    assert_eq!(fs::read_to_string(workspace.work().join("ran")).unwrap(), "after\n");
}

#[test]
#[ignore = "needs git"]
fn the_hook_runs_the_earlier_one_first_and_never_fails_a_commit_itself() {
    let workspace = repository();
    let hook = workspace.work().join(".git/hooks/prepare-commit-msg");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let earlier = "#!/bin/sh\necho \"$2\" >> ran\ntest ! -e forbidden\n";
    fs::write(&hook, earlier).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = workspace.waypost(&["--as", "agent:robin", "init", "--git-hooks", "--yes"]);
    assert_eq!(refused.status.code(), Some(1), "only a person moves a hook: {refused:?}");
    assert_eq!(fs::read_to_string(&hook).unwrap(), earlier);
    does(&workspace, &["init", "--git-hooks", "--yes"]);
    does(&workspace, &["init", "--git-hooks", "--yes"]);
    let kept = workspace.work().join(".git/hooks/prepare-commit-msg.before-waypost");
    assert_eq!(fs::read_to_string(&kept).unwrap(), earlier, "ours is not put before ours");
    does(&workspace, &["next", "k3m", "--claim"]);
    assert_eq!(commit(&workspace, "One"), "One\n\nWaypost-Task: k3m/t1");
    assert_eq!(fs::read_to_string(workspace.work().join("ran")).unwrap(), "message\n");
    // Its refusal is a refusal.
    fs::write(workspace.work().join("forbidden"), "").unwrap();
    let refused = try_git(&workspace, &["commit", "--quiet", "--allow-empty", "-m", "Two"]);
    assert!(!refused.status.success(), "{refused:?}");
    fs::remove_file(workspace.work().join("forbidden")).unwrap();
    // A store that cannot be read, and a waypost that is gone, keep nobody from committing.
    let database = workspace.work().join(".waypost/waypost.db");
    fs::write(&database, "this is no database").unwrap();
    for left_behind in ["waypost.db-wal", "waypost.db-shm"] {
        let _none = fs::remove_file(database.with_file_name(left_behind));
    }
    assert_eq!(commit(&workspace, "Three"), "Three");
    let mut without = workspace.command("git");
    without.env("PATH", waypost_testkit::program_path());
    let output = without.args(["commit", "--quiet", "--allow-empty", "-m", "Four"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
#[ignore = "needs git"]
fn the_hook_finds_a_waypost_that_is_not_on_path() {
    let workspace = repository();
    let without = |program: &str, words: &[&str]| {
        let mut command = workspace.command(program);
        command.env("WAYPOST_INJECTED_TERMINAL", "yes").env("PATH", waypost_testkit::program_path());
        let output = command.args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    };
    without(env!("CARGO_BIN_EXE_waypost"), &["init", "--git-hooks"]);
    does(&workspace, &["next", "k3m", "--claim"]);
    without("git", &["commit", "--quiet", "--allow-empty", "-m", "One"]);
    assert_eq!(git(&workspace, &["log", "-1", "--format=%B"]), "One\n\nWaypost-Task: k3m/t1");
}

#[test]
#[ignore = "needs git"]
fn hooks_that_another_program_manages_are_left_to_it() {
    let workspace = repository();
    git(&workspace, &["config", "core.hooksPath", ".husky"]);
    let output = workspace.at_terminal(&["init", "--git-hooks", "--yes"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("core.hooksPath is .husky") && err.contains("waypost commit-trailer"), "{err}");
    assert!(!workspace.work().join(".git/hooks/prepare-commit-msg").exists());
    let outside = Workspace::new();
    let output = outside.at_terminal(&["init", "--git-hooks"]);
    assert!(text(&output).1.contains("is not in a git repository"), "{output:?}");
}
