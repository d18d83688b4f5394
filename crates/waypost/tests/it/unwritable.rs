//! Folders and stores that the account cannot write: what is said of them, and what can still be read.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::run::text;
use crate::sharing::Clones;
use crate::transcript::Workspace;

/// Nobody's id, for a test that runs as root, whom no mode stops.
const NOBODY: u32 = 65_534;

/// The exit code, and what was printed.
type Ran = (Option<i32>, String);

/// The program as an account whom modes stop; `None`, and a line that says so, if such an account cannot start it.
fn bound_by_modes(workspace: &Workspace) -> Option<impl Fn(&Path, &[&str]) -> Ran> {
    let command = || {
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY).env("WAYPOST_INJECTED_UID", NOBODY.to_string());
        }
        command
    };
    if let Err(error) = command().arg("--version").output() {
        let words = "LEFT OUT: another user cannot start the program that is tested";
        let _gone = writeln!(std::io::stderr(), "{words}: {error}");
        return None;
    }
    Some(move |folder: &Path, words: &[&str]| {
        let output = Command::output(command().current_dir(folder).args(words)).unwrap();
        let (out, err) = text(&output);
        (output.status.code(), format!("{out}{err}"))
    })
}

/// Sets the modes of a folder and everything in it.
fn set_modes(folder: &Path, file_mode: u32, folder_mode: u32) {
    fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        match path.is_dir() {
            true => set_modes(&path, file_mode, folder_mode),
            false => fs::set_permissions(path, Permissions::from_mode(file_mode)).unwrap(),
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(folder_mode)).unwrap();
}

const ADVICE: &str = "let this account read and write the folder";

#[test]
fn a_store_that_cannot_be_made_is_named_with_what_to_do() {
    let workspace = Workspace::new();
    let Some(waypost) = bound_by_modes(&workspace) else { return };
    let folder = workspace.root.join("others");
    fs::create_dir(&folder).unwrap();
    set_modes(&folder, 0o444, 0o555);
    let examples = workspace.root.join("examples");
    let (plan, config) = (examples.join("fanout.json"), examples.join("config.toml"));
    let run = ["run", plan.to_str().unwrap(), "--config", config.to_str().unwrap(), "--yes"];
    for (url, named) in [
        ("file:FOLDER/new", "others/new"),
        ("file:FOLDER", "others/plans"),
        ("sqlite:FOLDER/a.db", "others/a.db"),
    ] {
        let store = url.replace("FOLDER", folder.to_str().unwrap());
        for words in [&["new", "Move"][..], &run] {
            let (code, said) = waypost(&workspace.work(), &[&["--store", &store], words].concat());
            assert_eq!(code, Some(1), "{words:?}: {said}");
            assert!(said.contains(&format!("{named}: Permission denied")), "{words:?}: {said}");
            assert!(said.contains(ADVICE), "{words:?}: {said}");
        }
    }
    set_modes(&folder, 0o644, 0o755);
}

#[test]
fn a_store_of_files_that_cannot_be_written_is_read_and_not_said_to_be_damaged() {
    let workspace = Workspace::new();
    let Some(waypost) = bound_by_modes(&workspace) else { return };
    let folder = workspace.root.join("shared");
    let store = format!("file:{}", folder.display());
    let output = workspace.waypost(&["--store", &store, "new", "Move", "--id", "move", "--task", "Read"]);
    assert!(output.status.success(), "{output:?}");
    set_modes(&folder, 0o444, 0o555);
    let waypost = |words: &[&str]| waypost(&workspace.work(), &[&["--store", &store], words].concat());
    for words in [&["list"][..], &["show", "move"], &["history", "move"]] {
        let (code, said) = waypost(words);
        assert!(code == Some(0) && !said.contains("damaged"), "{words:?}: {said}");
    }
    for words in [&["note", "move", "mine"][..], &["new", "Other"], &["next", "move", "--claim"]] {
        let (code, said) = waypost(words);
        assert_eq!(code, Some(1), "{words:?}: {said}");
        assert!(
            said.contains("shared/.lock: Permission denied") && said.contains(ADVICE),
            "{words:?}: {said}"
        );
        assert!(!said.contains("damaged") && !said.contains("doctor"), "{words:?}: {said}");
    }
    set_modes(&folder, 0o644, 0o755);
}

#[test]
fn a_store_that_may_not_be_read_is_not_taken_for_one_without_plans() {
    let workspace = Workspace::new();
    let Some(waypost) = bound_by_modes(&workspace) else { return };
    let output = workspace.waypost(&["new", "Move", "--id", "move", "--task", "Read"]);
    assert!(output.status.success(), "{output:?}");
    let folder = workspace.work().join(".waypost");
    // Of another account with the usual modes; and the folder for all, but not the file.
    for (file_mode, folder_mode) in [(0o000, 0o000), (0o000, 0o755)] {
        set_modes(&folder, file_mode, folder_mode);
        for words in [&["list"][..], &["show", "move"], &["status"], &["new", "Other"], &["doctor"]] {
            let (code, said) = waypost(&workspace.work(), words);
            assert_eq!(code, Some(1), "{words:?}: {said}");
            assert!(
                said.contains("waypost.db: Permission denied") && said.contains(ADVICE),
                "{words:?}: {said}"
            );
            assert!(!said.contains("damage"), "{words:?}: {said}");
        }
    }
    set_modes(&folder, 0o600, 0o700);
}

#[test]
fn init_names_a_folder_that_it_cannot_write_and_writes_nothing() {
    let workspace = Workspace::new();
    let Some(waypost) = bound_by_modes(&workspace) else { return };
    let folder = workspace.work();
    set_modes(&folder, 0o444, 0o555);
    for words in [&["init", "--client", "claude"][..], &["init", "--example"]] {
        let (code, said) = waypost(&folder, words);
        assert_eq!(code, Some(1), "{words:?}: {said}");
        let named = format!("error: {} cannot be written: Permission denied", folder.display());
        assert!(said.starts_with(&named), "{words:?}: {said}");
        assert!(said.contains("nothing was changed"), "{words:?}: {said}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let (code, said) = waypost(&folder, &["new", "Move"]);
    assert!(code == Some(1) && said.contains("/repo/.waypost: Permission denied"), "{said}");
    // What is only shown needs no permission.
    let (code, said) = waypost(&folder, &["init", "--client", "claude", "--print"]);
    assert_eq!(code, Some(0), "{said}");
    set_modes(&folder, 0o644, 0o755);
}

#[test]
#[ignore = "needs git"]
fn a_copy_of_a_shared_store_that_may_only_be_read_can_be_read() {
    let clones = Clones::new();
    let Some(waypost) = bound_by_modes(&clones.workspace) else { return };
    clones.json(0, &["new", "Move", "--id", "move", "--task", "Read"]);
    clones.json(0, &["share", "move"]);
    // Another file at another place: a store that could be written would draw another tag.
    let copy = clones.workspace.root.join("copy");
    fs::create_dir_all(copy.join(".waypost")).unwrap();
    let database = ".waypost/waypost.db";
    fs::copy(clones.folders[0].join(database), copy.join(database)).unwrap();
    set_modes(&copy, 0o444, 0o555);
    for (words, expected) in [
        (&["list"][..], "Move"),
        (&["show", "move"], "Move"),
        (&["next", "move"], "t1  Read"),
        (&["history", "move"], "v1"),
        (&["status"], "1 task ready"),
    ] {
        let (code, said) = waypost(&copy, words);
        assert!(code == Some(0) && said.contains(expected), "{words:?}: {said}");
    }
    set_modes(&copy, 0o600, 0o700);
}
