//! What was changed in a worktree and in commits, through the real git.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use waypost_git::{CHANGED_FILE_BYTES_MAX, ChangedFile, FileContent};

use crate::kit::{Clone, Folder};

/// A repository with a few files, and a worktree of it in `worktrees/plan/task.1`.
fn with_worktree(folder: &Folder) -> (Clone, PathBuf, PathBuf) {
    let clone = folder.repository("code");
    for (name, text) in [("src/kept.rs", "kept\n"), ("src/edited.rs", "one\ntwo\n"), ("gone.txt", "gone\n")] {
        let path = clone.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(clone.path.join(".gitignore"), "target/\n").unwrap();
    clone.git(&["add", "--all"]);
    clone.git(&["commit", "--quiet", "-m", "First"]);
    let worktrees = clone.path.parent().unwrap().join("worktrees");
    let root = worktrees.join("plan/task.1");
    clone.git(&["worktree", "add", "--quiet", "-b", "waypost/plan/task.1", root.to_str().unwrap()]);
    (clone, worktrees, root)
}

fn text(text: &str) -> Option<FileContent> {
    Some(FileContent::Text(text.to_owned()))
}

fn changed(path: &str, before: Option<FileContent>, after: Option<FileContent>) -> ChangedFile {
    ChangedFile { path: path.to_owned(), before, after }
}

fn edit(root: &Path) {
    fs::write(root.join("src/edited.rs"), "one\n2wo\n").unwrap();
    fs::write(root.join("src/new.rs"), "new\n").unwrap();
    fs::remove_file(root.join("gone.txt")).unwrap();
    fs::create_dir_all(root.join("target")).unwrap();
    fs::write(root.join("target/ignored"), "ignored\n").unwrap();
}

fn all_three() -> Vec<ChangedFile> {
    vec![
        changed("gone.txt", text("gone\n"), None),
        changed("src/edited.rs", text("one\ntwo\n"), text("one\n2wo\n")),
        changed("src/new.rs", None, text("new\n")),
    ]
}

#[test]
#[ignore = "needs git"]
fn a_worktree_is_compared_with_the_commit_that_it_began_at() {
    let folder = Folder::new();
    let (clone, worktrees, root) = with_worktree(&folder);
    let (base, tip) = clone.repository.branch_start("waypost/plan/task.1").unwrap().unwrap();
    assert_eq!(base, tip);
    assert!(clone.repository.has_worktree(&worktrees, Path::new("plan/task.1")).unwrap());
    assert_eq!(clone.repository.changed_in_worktree(&base, &root).unwrap().total, 0);
    edit(&root);
    assert_eq!(clone.repository.changed_in_worktree(&base, &root).unwrap().files, all_three());

    // Committed, it is still compared with the beginning, and so is the branch when the worktree is gone.
    clone.git(&["-C", root.to_str().unwrap(), "add", "--all"]);
    clone.git(&["-C", root.to_str().unwrap(), "commit", "--quiet", "-m", "Edit"]);
    let (again, tip) = clone.repository.branch_start("waypost/plan/task.1").unwrap().unwrap();
    assert_eq!(again, base);
    assert_eq!(clone.repository.changed_in_worktree(&base, &root).unwrap().files, all_three());
    clone.git(&["worktree", "remove", "--force", root.to_str().unwrap()]);
    assert!(!clone.repository.has_worktree(&worktrees, Path::new("plan/task.1")).unwrap());
    assert_eq!(clone.repository.changed_in_commit(&base, &tip).unwrap().files, all_three());
    assert_eq!(clone.repository.branch_start("waypost/plan/other.1").unwrap(), None);
}

#[test]
#[ignore = "needs git"]
fn nothing_outside_of_a_worktree_is_read() {
    let folder = Folder::new();
    let (clone, worktrees, root) = with_worktree(&folder);
    let (base, _) = clone.repository.branch_start("waypost/plan/task.1").unwrap().unwrap();
    let outside = folder.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("edited.rs"), "secret\n").unwrap();
    fs::write(outside.join("kept.rs"), "secret\n").unwrap();
    // A folder of the repository becomes a link that leads out of it.
    fs::remove_dir_all(root.join("src")).unwrap();
    symlink(&outside, root.join("src")).unwrap();
    symlink(outside.join("kept.rs"), root.join("link.rs")).unwrap();
    let found = clone.repository.changed_in_worktree(&base, &root).unwrap();
    assert!(!format!("{found:?}").contains("secret"), "{found:?}");
    let link = found.files.iter().find(|file| file.path == "link.rs").unwrap();
    assert_eq!(link.after, Some(FileContent::Link(outside.join("kept.rs").display().to_string())));
    // A folder that git does not know, or that a link leads to, is no worktree.
    fs::create_dir_all(worktrees.join("plan/own.1")).unwrap();
    assert!(!clone.repository.has_worktree(&worktrees, Path::new("plan/own.1")).unwrap());
    symlink(worktrees.join("plan"), worktrees.join("other")).unwrap();
    assert!(!clone.repository.has_worktree(&worktrees, Path::new("other/task.1")).unwrap());
}

#[test]
#[ignore = "needs git"]
fn nothing_that_a_worktree_names_runs() {
    let folder = Folder::new();
    let (clone, _, root) = with_worktree(&folder);
    let (base, _) = clone.repository.branch_start("waypost/plan/task.1").unwrap().unwrap();
    let ran = folder.path().join("ran");
    let program = folder.path().join("program");
    fs::write(&program, format!("#!/bin/sh\necho $0 >> {}\ncat\n", ran.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for (name, value) in [
        ("filter.x.clean", program),
        ("filter.x.smudge", program),
        ("diff.x.command", program),
        ("diff.x.textconv", program),
        ("core.fsmonitor", program),
        ("core.pager", program),
    ] {
        clone.git(&["config", name, value]);
    }
    fs::write(root.join(".gitattributes"), "* filter=x diff=x\n").unwrap();
    edit(&root);
    let found = clone.repository.changed_in_worktree(&base, &root).unwrap();
    assert_eq!(found.total, 4);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap_or_default());
}

#[test]
#[ignore = "needs git"]
fn what_is_large_or_no_text_is_named_and_not_read() {
    let folder = Folder::new();
    let (clone, _, root) = with_worktree(&folder);
    let (base, _) = clone.repository.branch_start("waypost/plan/task.1").unwrap().unwrap();
    let size = usize::try_from(CHANGED_FILE_BYTES_MAX).unwrap();
    fs::write(root.join("a"), "a".repeat(size)).unwrap();
    fs::write(root.join("b"), "b".repeat(size + 1)).unwrap();
    fs::write(root.join("c"), b"\0\x01").unwrap();
    let found = clone.repository.changed_in_worktree(&base, &root).unwrap();
    let after: Vec<Option<FileContent>> = found.files.into_iter().map(|file| file.after).collect();
    assert!(matches!(&after[0], Some(FileContent::Text(text)) if text.len() == size));
    assert_eq!(after[1..], [Some(FileContent::TooLarge), Some(FileContent::Binary)]);
}
