//! Commits that name their task, found and made through the real git.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use waypost_core::Timestamp;
use waypost_git::TASK_COMMITS_MAX;

use crate::kit::{Clone, Folder};

fn commit(clone: &Clone, message: &str) {
    clone.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
}

fn titles(clone: &Clone, task: &str) -> Vec<String> {
    let found = clone.repository.task_commits(task, None).unwrap();
    found.commits.into_iter().map(|commit| commit.title).collect()
}

#[test]
#[ignore = "needs git"]
fn a_commit_belongs_to_the_task_that_its_trailer_names_and_to_no_other() {
    let folder = Folder::new();
    let clone = folder.repository("code");
    commit(&clone, "One\n\nWhy.\n\nWaypost-Task: k3m/t2");
    commit(&clone, "Another\n\nWaypost-Task: k3m/t21");
    commit(&clone, "Of another plan\n\nWaypost-Task: ak3m/t2");
    commit(&clone, "Only words\n\nThis is not Waypost-Task: k3m/t2, is it?\n\nSigned-off-by: Ada <a@b>");
    clone.git(&["checkout", "--quiet", "-b", "side"]);
    commit(&clone, "Two\n\nWaypost-Task: k3m/t2\nWaypost-Attempt: k3m/t2/1\nSigned-off-by: Ada <a@b>");
    clone.git(&["checkout", "--quiet", "main"]);
    commit(&clone, "Of two\n\nWaypost-Task: k3m/t3\nWaypost-Task: k3m/t2");
    let mut found = titles(&clone, "k3m/t2");
    found.sort();
    assert_eq!(found, ["Of two", "One", "Two"], "on all branches");
    assert_eq!(titles(&clone, "k3m/t3"), ["Of two"]);
    assert_eq!(titles(&clone, "k3m/t"), [""; 0]);
    assert_eq!(titles(&clone, "--output=/tmp/x"), [""; 0]);
    commit(&clone, "Lower\n\nwaypost-task: k3m/t4, k3m/t5");
    for task in ["k3m/t4", "k3m/t5"] {
        assert_eq!(titles(&clone, task), ["Lower"], "{task}");
    }
    assert_eq!(titles(&clone, "K3M/t4"), [""; 0], "ids have a case");
    let one = clone.repository.task_commits("k3m/t21", None).unwrap().commits.remove(0);
    assert_eq!((one.author.as_str(), one.commit.as_str().len()), ("Ada", 40));
    assert_eq!(one.commit.as_str(), clone.git(&["log", "--all", "--grep=Another", "--format=%H"]));
}

#[test]
#[ignore = "needs git"]
fn a_search_has_an_end() {
    let folder = Folder::new();
    let clone = folder.repository("code");
    assert_eq!(titles(&clone, "k3m/t2"), [""; 0]);
    for number in 0..=TASK_COMMITS_MAX {
        commit(&clone, &format!("{number}\n\nWaypost-Task: k3m/t2"));
    }
    let found = clone.repository.task_commits("k3m/t2", None).unwrap();
    assert_eq!((found.commits.len(), found.more), (TASK_COMMITS_MAX, true));
    // What is older than the plan is not looked at.
    old_commit(&folder, &clone, "Old", "");
    assert_eq!(titles(&clone, "k3m/old"), ["Old"]);
    let since = Timestamp::parse("2024-01-01T00:00:00Z").unwrap();
    assert_eq!(clone.repository.task_commits("k3m/old", Some(since)).unwrap().commits, []);
}

/// Makes a commit of the year 2023 for the task `k3m/old`, on a branch of its own, with these further headers.
fn old_commit(folder: &Folder, clone: &Clone, title: &str, headers: &str) {
    let tree = clone.git(&["rev-parse", "HEAD^{tree}"]);
    let commit = format!(
        "tree {tree}\nauthor A <a@b> 1700000000 +0000\ncommitter A <a@b> 1700000000 +0000\n{headers}\n{title}\n\nWaypost-Task: k3m/old\n"
    );
    let path = folder.path().join("commit");
    fs::write(&path, commit).unwrap();
    let oid = clone.git(&["hash-object", "-t", "commit", "-w", path.to_str().unwrap()]);
    clone.git(&["update-ref", "refs/heads/old", &oid]);
}

#[test]
#[ignore = "needs git"]
fn a_repository_without_a_commit_has_none_for_a_task() {
    let folder = Folder::new();
    let path = folder.path().join("empty");
    crate::kit::git(folder.path(), &["init", "--quiet", path.to_str().unwrap()]);
    assert_eq!(titles(&folder.open(path), "k3m/t2"), [""; 0]);
}

#[test]
#[ignore = "needs git"]
fn a_search_runs_nothing_that_the_repository_names() {
    let folder = Folder::new();
    let clone = folder.repository("code");
    commit(&clone, "One\n\nWaypost-Task: k3m/t2");
    let (script, mark) = (folder.path().join("trap"), folder.path().join("mark"));
    fs::write(&script, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = script.to_str().unwrap();
    for (setting, value) in [
        ("log.showSignature", "true"),
        ("gpg.program", trap),
        ("gpg.ssh.program", trap),
        ("core.pager", trap),
        ("pager.log", trap),
        ("core.fsmonitor", trap),
        ("core.sshCommand", trap),
        ("diff.external", trap),
        ("mailmap.file", "/dev/zero"),
        ("grep.patternType", "perl"),
        ("format.pretty", "oneline"),
    ] {
        clone.git(&["config", setting, value]);
    }
    // With a signature, so that git would check one.
    let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n";
    old_commit(&folder, &clone, "Signed", signature);
    assert_eq!(titles(&clone, "k3m/old"), ["Signed"]);
    assert_eq!(titles(&clone, "k3m/t2"), ["One"]);
    assert!(!mark.exists(), "nothing ran");
}

#[test]
#[ignore = "needs git"]
fn a_trailer_is_added_once_and_stands_where_git_reads_it() {
    let folder = Folder::new();
    let clone = folder.repository("code");
    let message = clone.path.join(".git/COMMIT_EDITMSG");
    let written = |text: &str| {
        fs::write(&message, text).unwrap();
        clone.repository.add_task_trailer(&message, "k3m/t2").unwrap();
        clone.repository.add_task_trailer(&message, "k3m/t2").unwrap();
        fs::read_to_string(&message).unwrap()
    };
    assert_eq!(written("One\n"), "One\n\nWaypost-Task: k3m/t2\n");
    assert_eq!(
        written("One\n\nSigned-off-by: A <a@b>\n"),
        "One\n\nSigned-off-by: A <a@b>\nWaypost-Task: k3m/t2\n"
    );
    let commented = written("\n# Please enter the commit message\n# On branch main\n");
    assert!(
        commented.starts_with("\nWaypost-Task: k3m/t2\n")
            || commented.starts_with("\n\nWaypost-Task: k3m/t2\n"),
        "{commented:?}"
    );
    assert!(commented.ends_with("# Please enter the commit message\n# On branch main\n"), "{commented:?}");
}
