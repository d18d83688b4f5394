//! The branch in several clones and a bare repository between them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use waypost_git::{Fetched, Pushed, SEGMENTS_MAX};

use crate::kit::{AT, Clone, Folder, git, origin, plan, try_git};

/// Two clones of a bare repository with one commit of code.
fn two() -> (Folder, PathBuf, Clone, Clone) {
    let folder = Folder::new();
    let bare = folder.bare("origin.git");
    let seed = folder.repository("seed");
    seed.git(&["push", "--quiet", bare.to_str().unwrap(), "main"]);
    let (a, b) = (folder.clone(&bare, "a"), folder.clone(&bare, "b"));
    (folder, bare, a, b)
}

/// Syncs both until nothing moves, and returns the lines that both have.
fn settle(a: &Clone, b: &Clone) -> Vec<String> {
    for _ in 0..3 {
        a.sync();
        b.sync();
    }
    assert_eq!(a.sync(), Pushed::Done);
    assert_eq!(a.tip(), b.tip());
    assert_eq!(a.lines(), b.lines());
    a.lines().0
}

#[test]
#[ignore = "needs git"]
fn a_remote_without_the_branch_gets_it_and_the_next_clone_brings_it_along() {
    let (folder, bare, a, _) = two();
    assert_eq!(a.branch().fetch(&origin()).unwrap(), Fetched::NoBranch);
    a.publish("k3m", 1, &["{}"]);
    assert_eq!(a.sync(), Pushed::Done);
    let c = folder.clone(&bare, "c");
    assert_eq!(c.tip(), None, "a clone has only the remote's branch");
    assert_eq!(c.sync(), Pushed::Done);
    assert_eq!(c.lines().0, ["{}"]);
}

#[test]
#[ignore = "needs git"]
fn histories_that_went_apart_are_joined_and_nothing_is_forced() {
    let (_folder, _, a, b) = two();
    a.publish("k3m", 1, &["a1"]);
    a.sync();
    b.sync();
    a.publish("k3m", 2, &["a2"]);
    b.publish("k3m", 2, &["b2"]);
    b.publish("x", 1, &["b3"]);
    assert_eq!(a.sync(), Pushed::Done);
    assert_eq!(b.branch().push(&origin(), &b.tip().unwrap()).unwrap(), Pushed::Behind);
    assert_eq!(settle(&a, &b), ["a1", "a2", "b2", "b3"]);
}

#[test]
#[ignore = "needs git"]
fn clones_that_both_began_the_branch_are_joined() {
    let (_folder, _, a, b) = two();
    a.publish("k3m", 1, &["a1"]);
    b.publish("x", 1, &["b1"]);
    assert_eq!(settle(&a, &b), ["a1", "b1"]);
}

#[test]
#[ignore = "needs git"]
fn a_force_push_a_squash_and_a_deletion_lose_nothing() {
    let (_folder, bare, a, b) = two();
    let first = a.publish("k3m", 1, &["a1"]);
    a.sync();
    b.sync();
    a.publish("k3m", 2, &["a2"]);
    a.sync();
    // Somebody forces the branch back.
    git(&bare, &["update-ref", "refs/heads/waypost", first.as_str()]);
    b.publish("k3m", 2, &["b2"]);
    assert_eq!(settle(&a, &b), ["a1", "a2", "b2"]);
    // Somebody squashes it: the clones follow, and the old history does not come back.
    let squashed = git(&bare, &["commit-tree", "-m", "squashed", "waypost^{tree}"]);
    git(&bare, &["update-ref", "refs/heads/waypost", &squashed]);
    b.publish("k3m", 3, &["b3"]);
    assert_eq!(settle(&a, &b), ["a1", "a2", "b2", "b3"]);
    assert_eq!(a.git(&["rev-list", "--count", "waypost"]), "2");
    // Somebody deletes it.
    git(&bare, &["update-ref", "-d", "refs/heads/waypost"]);
    assert_eq!(a.branch().fetch(&origin()).unwrap(), Fetched::NoBranch);
    assert_eq!(settle(&a, &b), ["a1", "a2", "b2", "b3"]);
}

#[test]
#[ignore = "needs git"]
fn plain_git_merges_and_rebases_the_branch_without_a_conflict() {
    let (_folder, _, a, b) = two();
    a.publish("k3m", 1, &["a1"]);
    a.sync();
    b.sync();
    a.publish("k3m", 2, &["a2"]);
    a.sync();
    b.publish("k3m", 2, &["b2"]);
    b.git(&["fetch", "--quiet", "origin"]);
    b.git(&["checkout", "--quiet", "waypost"]);
    b.git(&["merge", "--quiet", "--no-edit", "origin/waypost"]);
    b.git(&["checkout", "--quiet", "main"]);
    assert_eq!(b.lines().0, ["a1", "a2", "b2"]);
    a.publish("k3m", 3, &["a3"]);
    a.git(&["fetch", "--quiet", "origin"]);
    b.sync();
    a.git(&["fetch", "--quiet", "origin"]);
    a.git(&["checkout", "--quiet", "waypost"]);
    a.git(&["rebase", "--quiet", "origin/waypost"]);
    a.git(&["checkout", "--quiet", "main"]);
    assert_eq!(settle(&a, &b), ["a1", "a2", "a3", "b2"]);
}

#[test]
#[ignore = "needs git"]
fn a_pack_of_one_clone_and_a_segment_of_another_are_joined() {
    let (_folder, _, a, b) = two();
    for clock in 0..=SEGMENTS_MAX as u64 {
        a.publish("k3m", clock, &[&format!("{{\"n\":{clock}}}")]);
    }
    a.sync();
    b.sync();
    let tip = a.tip().unwrap();
    let packing = a.branch().packing(&tip, &plan("k3m")).unwrap().unwrap();
    a.branch().publish(Some(&tip), &packing, AT).unwrap();
    b.publish("k3m", 99, &["b99"]);
    let lines = settle(&a, &b);
    assert_eq!(lines.len(), SEGMENTS_MAX + 2);
    let files = a.paths().into_iter().filter(|path| path.starts_with("plans/k3m/")).count();
    assert_eq!(files, 2, "the packed segments stay removed");
}

#[test]
#[ignore = "needs git"]
fn a_remote_that_refuses_or_is_gone_is_an_answer_and_not_a_failure() {
    let (folder, bare, a, _) = two();
    a.publish("k3m", 1, &["{}"]);
    let hook = bare.join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho protected by the team\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    match a.sync() {
        Pushed::Refused(why) => {
            assert!(why.contains("protected by the team") || why.contains("pre-receive"), "{why}")
        }
        other => panic!("{other:?}"),
    }
    std::fs::rename(&bare, folder.path().join("away")).unwrap();
    assert!(matches!(a.branch().fetch(&origin()).unwrap(), Fetched::Unreachable(_)));
    assert!(matches!(a.branch().push(&origin(), &a.tip().unwrap()).unwrap(), Pushed::Refused(_)));
}

#[test]
#[ignore = "needs git"]
fn shallow_and_partial_clones_read_and_push() {
    let (folder, bare, a, _) = two();
    for clock in 1..4 {
        a.publish("k3m", clock, &[&format!("a{clock}")]);
    }
    a.sync();
    git(&bare, &["config", "uploadpack.allowFilter", "true"]);
    let address = format!("file://{}", bare.display());
    for (name, option) in [
        ("shallow", "--depth=1"),
        ("single", "--single-branch"),
        ("partial", "--filter=blob:none"),
        ("treeless", "--filter=tree:0"),
    ] {
        let path = folder.path().join(name);
        git(folder.path(), &["clone", "--quiet", option, &address, path.to_str().unwrap()]);
        let clone = folder.open(path);
        let line = format!("by {name}");
        assert!(matches!(clone.sync_first(), Pushed::Done), "{name}");
        clone.publish("k3m", 9, &[&line]);
        assert_eq!(clone.sync(), Pushed::Done, "{name}");
        assert!(clone.lines().0.contains(&line), "{name}");
        assert!(clone.lines().0.contains(&"a1".to_owned()), "{name}");
    }
    a.sync();
    assert_eq!(a.lines().0.len(), 7);
}

impl Clone {
    fn sync_first(&self) -> Pushed {
        assert!(try_git(&self.path, &["rev-parse", "--verify", "--quiet", "refs/heads/waypost"]).is_err());
        self.sync()
    }
}

#[test]
#[ignore = "needs git"]
fn a_relative_address_is_resolved_from_the_work_tree_and_reached() {
    let (_folder, bare, a, _) = two();
    a.git(&["remote", "set-url", "origin", "../origin.git"]);
    assert_eq!(
        a.repository.remote_address(&origin()).unwrap().as_deref(),
        Some(bare.canonicalize().unwrap().to_str().unwrap())
    );
    a.publish("k3m", 1, &["{}"]);
    assert_eq!(a.sync(), Pushed::Done);
    // What git reads is what counts, not what the remote is written as.
    a.git(&["remote", "set-url", "origin", "https://example.org/plans"]);
    a.git(&["config", "url./tmp/evil.git.insteadOf", "https://example.org/plans"]);
    assert_eq!(a.repository.remote_address(&origin()).unwrap().as_deref(), Some("/tmp/evil.git"));
}

#[test]
#[ignore = "needs git"]
fn the_user_s_settings_in_the_environment_count_and_start_no_hook() {
    let (folder, bare, a, _) = two();
    a.git(&["remote", "set-url", "origin", "team:origin"]);
    let bare = bare.to_str().unwrap();
    assert!(matches!(a.branch().fetch(&origin()).unwrap(), Fetched::Unreachable(_)));
    // A hook, as the environment names it: ours is none.
    let (hooks, mark) = (folder.path().join("hooks"), folder.path().join("ran"));
    std::fs::create_dir(&hooks).unwrap();
    let hook = hooks.join("reference-transaction");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let address = format!("url.{bare}.insteadOf");
    let numbered = [
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", address.as_str()),
        ("GIT_CONFIG_VALUE_0", "team:origin"),
        ("GIT_CONFIG_KEY_1", "core.hooksPath"),
        ("GIT_CONFIG_VALUE_1", hooks.to_str().unwrap()),
    ];
    let file = folder.path().join("settings");
    let text = format!("[url {bare:?}]\n\tinsteadOf = team:origin\n");
    std::fs::write(&file, text).unwrap();
    let in_file = [("GIT_CONFIG_GLOBAL", file.to_str().unwrap())];
    for variables in [&numbered[..], &in_file[..]] {
        let clone = folder.open_with(a.path.clone(), variables);
        // Trust is about the address that git reads from.
        assert_eq!(clone.repository.remote_address(&origin()).unwrap().as_deref(), Some(bare));
        clone.publish("k3m", variables.len() as u64, &[&format!("{}", variables.len())]);
        assert_eq!(clone.sync(), Pushed::Done);
    }
    assert!(!mark.exists());
}

#[test]
#[ignore = "needs git"]
fn a_bare_repository_is_found_unless_it_lies_inside_of_another_one() {
    let folder = Folder::new();
    let alone = folder.bare("alone.git");
    assert_eq!(folder.open(alone.clone()).repository.common_folder(), alone);
    let around = folder.repository("around");
    let inside = folder.bare("around/inside.git");
    let found = folder.find(&inside);
    assert!(found.is_err(), "what it names, others may have committed: {found:?}");
    assert_eq!(around.repository.common_folder(), around.path.join(".git"));
}
