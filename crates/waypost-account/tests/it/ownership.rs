//! Which folder is the root of a workspace, and whose it has to be.

use std::fs;
use std::path::{Path, PathBuf};

use waypost_account::{Account, FoundRoot, WorkspaceNames, find_root};

use crate::{Scratch, set_mode};

const NAMES: WorkspaceNames<'static> =
    WorkspaceNames { own: ".waypost", files: &["config.toml"], folders: &[("state", 2)] };

fn found(account: &Account, from: &Path) -> Result<FoundRoot, String> {
    let found = find_root(account, from, &NAMES, |folders| {
        folders.iter().find(|folder| folder.join(".waypost").is_dir()).map(|folder| folder.to_path_buf())
    });
    found.map_err(|foreign| foreign.to_string())
}

fn find(account: &Account, from: &Path) -> Result<PathBuf, String> {
    found(account, from).map(|found| found.path)
}

/// What was found above and is not used.
fn passed_over(account: &Account, from: &Path) -> Option<String> {
    found(account, from).unwrap().passed_over.map(|foreign| foreign.to_string())
}

/// `root/shared/mine/deep`, all of the account's own.
fn nested(scratch: &Scratch) -> (PathBuf, PathBuf, PathBuf) {
    let shared = scratch.root.join("shared");
    let (mine, deep) = (shared.join("mine"), shared.join("mine/deep"));
    fs::create_dir_all(&deep).unwrap();
    for folder in [&shared, &mine, &deep] {
        set_mode(folder, 0o755);
    }
    (shared, mine, deep)
}

#[test]
fn the_search_climbs_through_ones_own_folders() {
    let scratch = Scratch::new();
    let (shared, mine, deep) = nested(&scratch);
    assert_eq!(find(&scratch.account, &deep), Ok(deep.clone()), "without a root it is where one is");
    fs::create_dir(shared.join(".waypost")).unwrap();
    assert_eq!(find(&scratch.account, &deep), Ok(shared.clone()));
    fs::create_dir(mine.join(".waypost")).unwrap();
    assert_eq!(find(&scratch.account, &deep), Ok(mine));
}

#[test]
fn it_stops_where_others_can_write_sticky_or_not() {
    let scratch = Scratch::new();
    let (shared, mine, deep) = nested(&scratch);
    for mode in [0o777, 0o1777, 0o775] {
        set_mode(&shared, mode);
        assert_eq!(find(&scratch.account, &deep), Ok(deep.clone()));
        assert_eq!(passed_over(&scratch.account, &deep), None);
    }
    let planted = shared.join(".waypost");
    fs::create_dir(&planted).unwrap();
    let said = |why: &str| Some(format!("{} {why} and is not used", planted.display()));
    let writable = format!("is in {}, which others can write,", shared.display());
    assert_eq!(passed_over(&scratch.account, &deep), said(&writable));
    assert_eq!(find(&scratch.account, &deep), Ok(deep.clone()), "it keeps nobody from working");
    fs::create_dir(mine.join(".waypost")).unwrap();
    assert_eq!(find(&scratch.account, &deep), Ok(mine.clone()), "what is nearer is one's own");
    fs::remove_dir(mine.join(".waypost")).unwrap();
    if scratch.account.uid == 0 {
        let account = scratch.stranger(&planted);
        assert_eq!(passed_over(&account, &deep), said("belongs to nobody (uid 65534)"));
        assert_eq!(find(&account, &deep), Ok(deep.clone()));
    }
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    for part in ["", ".waypost", ".waypost/config.toml"] {
        let scratch = Scratch::new();
        let (_, mine, deep) = nested(&scratch);
        fs::create_dir(mine.join(".waypost")).unwrap();
        fs::write(mine.join(".waypost/config.toml"), "").unwrap();
        let account = scratch.stranger(&mine.join(part));
        let said = find(&account, if part.is_empty() { &mine } else { &deep }).unwrap_err();
        assert!(said.contains("belongs to") && said.ends_with("and is not used"), "{part}: {said}");
    }
}

#[test]
fn root_uses_what_belongs_to_the_user_who_called_sudo() {
    let scratch = Scratch::new();
    if scratch.account.uid != 0 {
        return;
    }
    let (_, mine, _) = nested(&scratch);
    fs::create_dir(mine.join(".waypost")).unwrap();
    let account = scratch.stranger(&mine.join(".waypost"));
    assert!(find(&account, &mine).is_err());
    assert_eq!(find(&Account { sudo_uid: Some(65_534), ..account.clone() }, &mine), Ok(mine.clone()));
    let user = Account { uid: 1_000, sudo_uid: Some(65_534), ..account };
    assert!(find(&user, &mine).is_err(), "the variable counts for root only");
}

#[test]
fn links_in_the_folders_of_state_are_refused() {
    let scratch = Scratch::new();
    let (shared, mine, _) = nested(&scratch);
    let own = mine.join(".waypost");
    fs::create_dir_all(own.join("state/a/b")).unwrap();
    fs::create_dir_all(own.join("other")).unwrap();
    let check = |name: &str, is_used: bool| {
        let path = own.join(name);
        std::os::unix::fs::symlink(&shared, &path).unwrap();
        let said = format!("{} is a link and is not used", path.display());
        let expected = if is_used { Ok(mine.clone()) } else { Err(said) };
        assert_eq!(find(&scratch.account, &mine), expected, "{name}");
        fs::remove_file(path).unwrap();
    };
    check("anything", false);
    check("state/file", false);
    check("state/a/file", false);
    check("state/a/b/file", true);
    check("other/file", true);
    check(".#config.toml", true);
}
