//! Which store is found from where: repositories, worktrees, submodules, folders.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::transcript::Workspace;

/// Makes a plan in `from` and says where its store is, below the workspace's root.
fn store_from(workspace: &Workspace, from: &Path) -> String {
    let output = workspace.waypost(&["-C", from.to_str().unwrap(), "new", "A plan", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let store = answer["store"].as_str().unwrap();
    let path = store.strip_prefix("sqlite:").unwrap();
    assert!(Path::new(path).is_file());
    path.strip_prefix(workspace.root.to_str().unwrap()).unwrap().to_owned()
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_folder_of_its_own_has_its_own_store_which_version_control_ignores() {
    let workspace = Workspace::new();
    assert_eq!(store_from(&workspace, &workspace.work()), "/repo/.waypost/waypost.db");
    assert_eq!(fs::read_to_string(workspace.work().join(".waypost/.gitignore")).unwrap(), "*\n");
}

#[test]
fn the_store_is_at_the_root_of_the_repository() {
    let workspace = Workspace::new();
    let deep = workspace.work().join("crates/core/src");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir_all(workspace.work().join(".git")).unwrap();
    assert_eq!(store_from(&workspace, &deep), "/repo/.waypost/waypost.db");
}

#[test]
fn a_store_on_the_way_up_is_nearer_than_the_repository() {
    let workspace = Workspace::new();
    let part = workspace.work().join("part");
    fs::create_dir_all(workspace.work().join(".git")).unwrap();
    fs::create_dir_all(part.join(".waypost")).unwrap();
    fs::create_dir_all(part.join("deep")).unwrap();
    assert_eq!(store_from(&workspace, &part.join("deep")), "/repo/part/.waypost/waypost.db");
}

#[test]
fn all_worktrees_share_the_store_of_the_main_checkout() {
    let workspace = Workspace::new();
    let (main, tree) = (workspace.work().join("main"), workspace.work().join("tree"));
    put(&main.join(".git/worktrees/tree/commondir"), "../..\n");
    put(&main.join(".git/worktrees/tree/gitdir"), &format!("{}/.git\n", tree.display()));
    put(&main.join(".git/config"), "[core]\n\tbare = false\n");
    put(&tree.join(".git"), &format!("gitdir: {}/.git/worktrees/tree\n", main.display()));
    fs::create_dir_all(tree.join("src")).unwrap();
    assert_eq!(store_from(&workspace, &tree.join("src")), "/repo/main/.waypost/waypost.db");
    assert_eq!(store_from(&workspace, &main), "/repo/main/.waypost/waypost.db");
    let listed = workspace.waypost(&["-C", tree.to_str().unwrap(), "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["total"], 2, "both plans are seen from the worktree");
}

#[test]
fn a_folder_that_only_says_to_be_a_worktree_of_another_repository_is_none() {
    let workspace = Workspace::new();
    let (main, tree) = (workspace.work().join("main"), workspace.work().join("tree"));
    let unpacked = workspace.work().join("unpacked");
    put(&main.join(".git/worktrees/tree/commondir"), "../..\n");
    put(&main.join(".git/worktrees/tree/gitdir"), &format!("{}/.git\n", tree.display()));
    for folder in [&tree, &unpacked] {
        put(&folder.join(".git"), &format!("gitdir: {}/.git/worktrees/tree\n", main.display()));
    }
    assert_eq!(store_from(&workspace, &tree), "/repo/main/.waypost/waypost.db");
    assert_eq!(store_from(&workspace, &unpacked), "/repo/unpacked/.waypost/waypost.db");
    // With a git folder of its own, which names that repository, and itself as its worktree.
    let forged = workspace.work().join("forged");
    for own in ["own", "worktrees/own"] {
        put(&forged.join(".git"), &format!("gitdir: {own}\n"));
        put(&forged.join(own).join("commondir"), main.join(".git").to_str().unwrap());
        put(&forged.join(own).join("gitdir"), forged.join(".git").to_str().unwrap());
        assert_eq!(store_from(&workspace, &forged), "/repo/forged/.waypost/waypost.db", "{own}");
    }
    // With a repository of its own that names that checkout as its own.
    let config = format!("[core]\n\tworktree = {}\n", main.display());
    for common in ["repository", ".repository"] {
        put(&forged.join(".git"), &format!("gitdir: {common}/worktrees/own\n"));
        put(&forged.join(common).join("config"), &config);
        put(&forged.join(common).join("worktrees/own/commondir"), "../..");
        put(&forged.join(common).join("worktrees/own/gitdir"), forged.join(".git").to_str().unwrap());
        assert!(store_from(&workspace, &forged).starts_with("/repo/forged/"), "{common}");
    }
}

#[test]
fn a_folder_of_ours_that_was_committed_inside_a_worktree_does_not_count() {
    let workspace = Workspace::new();
    let (main, tree) = (workspace.work().join("main"), workspace.work().join("tree"));
    put(&main.join(".git/worktrees/tree/commondir"), "../..\n");
    put(&main.join(".git/worktrees/tree/gitdir"), &format!("{}/.git\n", tree.display()));
    put(&tree.join(".git"), &format!("gitdir: {}/.git/worktrees/tree\n", main.display()));
    put(&tree.join(".waypost/config.toml"), "approval = 1\n");
    put(&tree.join("part/.waypost/config.toml"), "approval = 1\n");
    for from in [tree.clone(), tree.join("part")] {
        assert_eq!(store_from(&workspace, &from), "/repo/main/.waypost/waypost.db");
    }
    let output = workspace.waypost(&["-C", tree.to_str().unwrap(), "run", "--dry-run", "/dev/null"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("approval"), "its configuration is not read");
}

#[test]
fn worktrees_of_a_bare_repository_share_a_store_too() {
    let workspace = Workspace::new();
    let (bare, tree) = (workspace.work().join("project.git"), workspace.work().join("tree"));
    put(&bare.join("worktrees/tree/commondir"), "../..\n");
    put(&bare.join("worktrees/tree/gitdir"), "../../../tree/.git\n");
    put(&tree.join(".git"), "gitdir: ../project.git/worktrees/tree\n");
    assert_eq!(store_from(&workspace, &tree), "/repo/project.git/.waypost/waypost.db");

    let (hidden, tree) = (workspace.work().join("other/.bare"), workspace.work().join("other/tree"));
    put(&hidden.join("worktrees/tree/commondir"), "../..\n");
    put(&hidden.join("worktrees/tree/gitdir"), "../../../tree/.git\n");
    put(&tree.join(".git"), "gitdir: ../.bare/worktrees/tree\n");
    assert_eq!(store_from(&workspace, &tree), "/repo/other/.waypost/waypost.db");
}

#[test]
fn worktrees_of_a_bare_repository_use_the_configuration_that_is_committed_to_them() {
    let workspace = Workspace::new();
    for (bare, hidden) in [("project.git", false), ("other/.bare", true)] {
        let bare = workspace.work().join(bare);
        put(&bare.join("config"), "[core]\n\tbare = true\n");
        let tree = |name: &str, priority: u32| {
            let tree = bare.parent().unwrap().join(format!("{name}-{hidden}"));
            put(&bare.join(format!("worktrees/{name}/commondir")), "../..\n");
            put(&bare.join(format!("worktrees/{name}/gitdir")), &format!("{}/.git\n", tree.display()));
            put(&tree.join(".git"), &format!("gitdir: {}/worktrees/{name}\n", bare.display()));
            let executor =
                format!("[executors.say]\nkind = \"command\"\ncommand = [\"echo\", \"{priority}\"]\n");
            put(&tree.join(".waypost/config.toml"), &executor);
            tree
        };
        let plan = workspace.work().join("plan.json");
        put(&plan, r#"{"title":"Say","tasks":[{"id":"a","title":"A","executor":"say"}]}"#);
        let run = |tree: &std::path::Path| {
            workspace.waypost(&["-C", tree.to_str().unwrap(), "run", plan.to_str().unwrap()])
        };
        let (first, same, other) = (tree("first", 1), tree("same", 1), tree("other", 2));
        let refused = run(&first);
        assert!(String::from_utf8_lossy(&refused.stderr).contains("not trusted"), "{refused:?}");
        let digest = workspace.waypost(&["-C", first.to_str().unwrap(), "trust", "--digest"]);
        let digest = String::from_utf8(digest.stdout).unwrap();
        let with_digest = |tree: &std::path::Path| {
            let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
            command.env("WAYPOST_TRUST", digest.trim());
            command.args(["-C", tree.to_str().unwrap(), "run", plan.to_str().unwrap()]).output().unwrap()
        };
        for tree in [&first, &same] {
            let output = with_digest(tree);
            assert!(output.status.success(), "{output:?}");
        }
        // What another branch has is not what was trusted.
        let output = with_digest(&other);
        assert!(
            !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("not trusted"),
            "{output:?}"
        );
        // The repository's own comes first.
        let own = if hidden { bare.parent().unwrap().to_owned() } else { bare.clone() };
        put(
            &own.join(".waypost/config.toml"),
            "[executors.other]\nkind = \"command\"\ncommand = [\"true\"]\n",
        );
        assert!(!with_digest(&first).status.success());
    }
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    let workspace = Workspace::new();
    let module = workspace.work().join("vendor/part");
    put(&workspace.work().join(".git/modules/part/HEAD"), "ref: refs/heads/main\n");
    put(&module.join(".git"), "gitdir: ../../.git/modules/part\n");
    assert_eq!(store_from(&workspace, &module), "/repo/vendor/part/.waypost/waypost.db");
}

#[test]
fn the_user_has_a_store_of_their_own() {
    let workspace = Workspace::new();
    let output = workspace.waypost(&["--global", "new", "Mine", "--id", "mine"]);
    assert!(output.status.success());
    assert!(workspace.root.join("home/.local/share/waypost/waypost.db").is_file());
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let elsewhere = workspace.root.join("data");
    let output = command.env("XDG_DATA_HOME", &elsewhere).args(["--global", "new", "Mine"]).output().unwrap();
    assert!(output.status.success());
    assert!(elsewhere.join("waypost/waypost.db").is_file());
    assert!(!workspace.work().join(".waypost").exists());
}

#[test]
fn a_said_store_is_used_before_all_others() {
    let workspace = Workspace::new();
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.env("WAYPOST_STORE", "sqlite:from-variable.db").args(["--store", "sqlite:said.db", "new", "A"]);
    assert!(command.output().unwrap().status.success());
    assert!(workspace.work().join("said.db").is_file());
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.env("WAYPOST_STORE", "sqlite:from-variable.db").args(["--global", "new", "A"]);
    assert!(command.output().unwrap().status.success());
    assert!(workspace.work().join("from-variable.db").is_file());
}

#[test]
fn a_folder_of_ours_that_is_committed_gets_its_gitignore_with_the_first_plan() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.work().join(".git")).unwrap();
    put(&workspace.work().join(".waypost/config.toml"), "");
    assert_eq!(store_from(&workspace, &workspace.work()), "/repo/.waypost/waypost.db");
    assert_eq!(fs::read_to_string(workspace.work().join(".waypost/.gitignore")).unwrap(), "*\n");
}

#[test]
fn outside_a_repository_the_first_write_says_where_plans_are_kept() {
    let said = |workspace: &Workspace| {
        put(&workspace.work().join("TODO.md"), "- [ ] Read it\n");
        let output = workspace.waypost(&["import", "TODO.md"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let workspace = Workspace::new();
    let kept = format!("are kept in sqlite:{}/.waypost/waypost.db", workspace.work().display());
    assert!(said(&workspace).contains(&kept), "{kept}");
    assert!(!said(&workspace).contains("are kept in"), "it is said once");
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.work().join(".git")).unwrap();
    assert!(!said(&workspace).contains("are kept in"));
}

/// Nobody's id, for a test that runs as root, whom no mode stops.
const NOBODY: u32 = 65_534;

#[test]
fn a_store_that_cannot_be_written_can_be_read() {
    let workspace = Workspace::new();
    let plan = store_from(&workspace, &workspace.work());
    assert_eq!(plan, "/repo/.waypost/waypost.db");
    let folder = workspace.work().join(".waypost");
    let modes = |file_mode: u32, folder_mode: u32| {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            fs::set_permissions(path, fs::Permissions::from_mode(file_mode)).unwrap();
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(folder_mode)).unwrap();
    };
    let run = |words: &[&str]| {
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY).env("WAYPOST_INJECTED_UID", NOBODY.to_string());
        }
        command.args(words).output()
    };
    modes(0o444, 0o555);
    if let Err(error) = run(&["--version"]) {
        eprintln!("LEFT OUT: another user cannot start the program that is tested: {error}");
        return modes(0o600, 0o700);
    }
    let listed = run(&["list", "--json"]).unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let id = listed["plans"][0]["id"].as_str().unwrap().to_owned();
    for words in [&["show", &id][..], &["history", &id], &["export", &id], &["status"]] {
        let output = run(words).unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        let expected = match words[0] {
            "history" => "v1",
            "status" => "1 plan in all",
            _ => "A plan",
        };
        assert!(output.status.success() && shown.contains(expected), "{words:?}: {output:?}");
    }
    let refused = run(&["note", &id, "mine"]).unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("waypost.db: it has to be written for this"), "{said}");
    // Only the folder, as on a system that others administer.
    modes(0o666, 0o555);
    assert!(run(&["show", &id]).unwrap().status.success());
    modes(0o600, 0o700);
}
