//! The branch in one repository.

use std::os::unix::fs::PermissionsExt as _;

use waypost_git::{GitError, LINE_BYTES_MAX, Publication, RefName, SEGMENTS_MAX, Segment};

use crate::kit::{AT, Folder, git, plan};

#[test]
#[ignore = "needs git"]
fn publishing_touches_neither_the_work_tree_nor_the_index_nor_head() {
    let folder = Folder::new();
    let clone = folder.repository("a");
    std::fs::write(clone.path.join("code.rs"), "fn main() { changed }\n").unwrap();
    let before = clone.git(&["status", "--porcelain=v2", "--branch"]);
    let index = std::fs::read(clone.path.join(".git/index")).unwrap();
    let head = clone.git(&["rev-parse", "HEAD"]);
    clone.publish("k3m", 1, &["{\"a\":1}", "{\"b\":2}"]);
    clone.publish("k3m", 2, &["{\"c\":3}"]);
    assert_eq!(clone.git(&["status", "--porcelain=v2", "--branch"]), before);
    assert_eq!(std::fs::read(clone.path.join(".git/index")).unwrap(), index);
    assert_eq!(clone.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(clone.lines().0, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
    assert_eq!(clone.git(&["rev-list", "--count", "waypost"]), "2");
    assert_eq!(clone.git(&["show", "waypost:format"]), "waypost-git 1");
    assert_eq!(clone.git(&["for-each-ref", "refs/waypost-pending"]), "");
    assert_eq!(clone.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
#[ignore = "needs git"]
fn the_slower_of_two_publishers_reads_again() {
    let folder = Folder::new();
    let clone = folder.repository("a");
    let seen = clone.publish("k3m", 1, &["{}"]);
    clone.publish("k3m", 2, &["{\"b\":1}"]);
    let late = Publication {
        files: vec![Segment::new(&plan("k3m"), 2, "x9d", &["{\"c\":1}"])],
        ..Publication::default()
    };
    let refused = clone.branch().publish(Some(&seen), &late, AT);
    assert!(matches!(refused, Err(GitError::Moved(_))), "{refused:?}");
    let refused = clone.branch().publish(None, &late, AT);
    assert!(matches!(refused, Err(GitError::Moved(_))), "{refused:?}");
    assert_eq!(clone.lines().0, ["{\"b\":1}", "{}"]);
    assert_eq!(clone.git(&["for-each-ref", "refs/waypost-pending"]), "");
}

#[test]
#[ignore = "needs git"]
fn a_branch_that_is_checked_out_is_not_moved() {
    let folder = Folder::new();
    let clone = folder.repository("a");
    let tip = clone.publish("k3m", 1, &["{}"]);
    let tree = folder.path().join("tree");
    clone.git(&["worktree", "add", "--quiet", tree.to_str().unwrap(), "waypost"]);
    let publication =
        Publication { files: vec![Segment::new(&plan("k3m"), 2, "k", &["{}"])], ..Publication::default() };
    match clone.branch().publish(Some(&tip), &publication, AT) {
        Err(GitError::CheckedOut { folder, .. }) => assert_eq!(folder, tree.to_str().unwrap()),
        other => panic!("{other:?}"),
    }
    assert_eq!(clone.tip(), Some(tip));
    // From a worktree it is the same branch.
    assert_eq!(folder.open(tree).lines().0, ["{}"]);
}

#[test]
#[ignore = "needs git"]
fn a_branch_of_something_else_is_refused_and_left_alone() {
    let folder = Folder::new();
    let clone = folder.repository("a");
    clone.git(&["branch", "waypost"]);
    let tip = clone.tip().unwrap();
    let refused = clone.branch().check_format(&tip);
    assert!(matches!(refused, Err(GitError::NotOurs { .. })), "{refused:?}");
    clone.git(&["branch", "-D", "waypost"]);
    clone.git(&["symbolic-ref", "refs/heads/waypost", "refs/heads/main"]);
    let refused = clone.branch().tip();
    assert!(matches!(refused, Err(GitError::NotOurs { .. })), "{refused:?}");
    assert!(RefName::new("refs/heads/../main").is_err());
}

#[test]
#[ignore = "needs git"]
fn a_newer_format_is_refused() {
    let folder = Folder::new();
    let clone = folder.repository("a");
    clone.publish("k3m", 1, &["{}"]);
    clone.git(&["checkout", "--quiet", "waypost"]);
    std::fs::write(clone.path.join("format"), "waypost-git 2\n").unwrap();
    clone.git(&["commit", "--quiet", "-am", "newer"]);
    let refused = clone.branch().check_format(&clone.tip().unwrap());
    assert!(matches!(refused, Err(GitError::TooNew { found: 2, known: 1, .. })), "{refused:?}");
}

#[test]
#[ignore = "needs git"]
fn no_hook_and_no_program_of_the_repository_runs() {
    let folder = Folder::new();
    let (bare, clone) = (folder.bare("origin.git"), folder.repository("a"));
    clone.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    let mark = folder.path().join("ran");
    let script = format!("#!/bin/sh\ntouch {}\nexit 1\n", mark.display());
    for hook in ["pre-commit", "post-commit", "reference-transaction", "pre-push", "post-merge", "update"] {
        let path = clone.path.join(".git/hooks").join(hook);
        std::fs::write(&path, &script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for setting in ["core.fsmonitor", "core.sshCommand"] {
        clone.git(&["config", setting, mark.with_extension("sh").to_str().unwrap()]);
    }
    clone.publish("k3m", 1, &["{}"]);
    assert_eq!(clone.sync(), waypost_git::Pushed::Done);
    assert!(!mark.exists());
    assert_eq!(git(&bare, &["rev-parse", "waypost"]), clone.tip().unwrap().to_string());
}

#[test]
#[ignore = "needs git"]
fn what_is_no_plain_file_of_lines_is_named_and_the_rest_is_read() {
    let folder = Folder::new();
    let clone = folder.repository("a");
    clone.publish("k3m", 1, &["{\"a\":1}", "{\"b\":2}"]);
    clone.git(&["checkout", "--quiet", "waypost"]);
    let plans = clone.path.join("plans/k3m");
    std::os::unix::fs::symlink("/etc/passwd", plans.join("link.jsonl")).unwrap();
    std::fs::write(plans.join("bad name.jsonl"), "{\"x\":1}\n").unwrap();
    std::fs::write(plans.join("bytes.jsonl"), b"{\"c\":3}\r\n\xff\xfe\n\n{\"d\":4}").unwrap();
    std::fs::write(plans.join("long.jsonl"), format!("{}\n{{}}\n", "x".repeat(LINE_BYTES_MAX + 1))).unwrap();
    std::fs::write(clone.path.join("plans/notes.txt"), "hello\n").unwrap();
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "by hand"]);
    let (lines, mut damage) = clone.lines();
    assert_eq!(lines, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "{\"d\":4}", "{}"]);
    damage.sort();
    let short = &clone.tip().unwrap().to_string()[..8];
    let expected = [
        format!("{short}: plans/k3m/bad name.jsonl: a file with such a name is not read"),
        format!("{short}: plans/k3m/bytes.jsonl:2: not UTF-8"),
        format!("{short}: plans/k3m/link.jsonl: a symbolic link is not read"),
        format!(
            "{short}: plans/k3m/long.jsonl:1: {} bytes are more than {LINE_BYTES_MAX} for a line",
            LINE_BYTES_MAX + 1
        ),
    ];
    assert_eq!(damage, expected);
}

#[test]
#[ignore = "needs git"]
fn many_segments_become_one_pack_with_the_same_lines() {
    let folder = Folder::new();
    let clone = folder.repository("a");
    for clock in 0..=SEGMENTS_MAX as u64 {
        clone.publish("k3m", clock, &[&format!("{{\"n\":{clock}}}")]);
    }
    clone.publish("other", 1, &["{}"]);
    let before = clone.lines();
    let tip = clone.tip().unwrap();
    assert!(clone.branch().packing(&tip, &plan("other")).unwrap().is_none());
    let packing = clone.branch().packing(&tip, &plan("k3m")).unwrap().unwrap();
    assert_eq!(packing.removed.len(), SEGMENTS_MAX + 1);
    clone.branch().publish(Some(&tip), &packing, AT).unwrap();
    assert_eq!(clone.lines(), before);
    let of_plan = clone.paths().into_iter().filter(|path| path.starts_with("plans/k3m/")).count();
    assert_eq!(of_plan, 1);
    assert!(clone.branch().packing(&clone.tip().unwrap(), &plan("k3m")).unwrap().is_none());
    let changes = clone.repository.changes(&tip, &clone.tip().unwrap()).unwrap();
    assert_eq!((changes.added.len(), changes.removed.len()), (1, SEGMENTS_MAX + 1));
}

#[test]
#[ignore = "needs git"]
fn references_that_a_killed_process_left_are_removed() {
    let folder = Folder::new();
    let clone = folder.repository("a");
    let tip = clone.publish("k3m", 1, &["{}"]);
    clone.git(&["update-ref", "refs/waypost-pending/1-2-3", tip.as_str()]);
    clone.branch().clean().unwrap();
    clone.branch().clean().unwrap();
    assert_eq!(clone.git(&["for-each-ref", "refs/waypost-pending"]), "");
    assert_eq!(clone.tip(), Some(tip));
}
