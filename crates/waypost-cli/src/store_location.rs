//! Locates the store of a command: the one that is named, or the one of the enclosing repository, which all its
//! worktrees share. Opens nothing.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use waypost_account::{ForeignOwner, WorkspaceNames, find_root};

use crate::actor::account;
use crate::error::{Failure, Outcome};

/// The folder of a workspace's configuration, logs and store.
pub const FOLDER: &str = ".waypost";
/// The store's file in that folder.
pub(crate) const DATABASE: &str = "waypost.db";
/// jaato's folder in a workspace.
const JAATO: &str = ".jaato";
/// jaato's own configuration in that folder, if present.
pub const TODO: &str = "todo.json";
/// What has to belong to the account in a workspace. Of `logs` and `files`, which can be large, those who open something there check the rest.
const NAMES: WorkspaceNames<'static> = WorkspaceNames {
    own: FOLDER,
    files: &["config.toml", TODO, DATABASE, "logs"],
    folders: &[("links", 3), ("planning", 1), ("queues", 2), ("runs", 2), ("slurm", 1), ("worktrees", 1)],
};
/// The content of the folder's `.gitignore`, which keeps it out of version control.
pub const IGNORED: &str = "*\n";

/// Returns jaato's configuration for a workspace: the one in Waypost's own folder or, without that, the one that jaato reads.
pub fn todo_file(own: &Path) -> PathBuf {
    let ours = own.join(TODO);
    let theirs = own.parent().unwrap_or(own).join(JAATO).join(TODO);
    if !ours.exists() && theirs.exists() { theirs } else { ours }
}

/// Returns the command that imports the plans that jaato keeps in a workspace, if it keeps any.
pub fn jaato_import(workspace: &Path) -> Option<&'static str> {
    let has_plans = workspace.join(JAATO).join("plans.json").is_file();
    has_plans.then_some("`waypost import .jaato --owner AGENT` imports the plans of jaato")
}

/// The location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLocation {
    /// The text that `waypost_store::open` takes.
    pub location: String,
    /// Waypost's own folder, which is excluded from version control when it is created.
    pub folder: Option<PathBuf>,
}

impl StoreLocation {
    fn in_folder(folder: PathBuf) -> Self {
        let location = format!("sqlite:{}", folder.join(DATABASE).display());
        Self { location, folder: Some(folder) }
    }

    /// Returns the store that a `todo.json` in the folder names, if it names one.
    pub fn todo_store(&self) -> Option<Self> {
        let folder = self.folder.as_ref()?;
        let text = fs::read_to_string(todo_file(folder)).ok()?;
        let path = waypost_config::todo_store(&text)?;
        let root = folder.parent().unwrap_or(folder);
        Some(Self { location: format!("file:{}", root.join(path).display()), ..self.clone() })
    }

    /// The location without its password.
    pub fn shown(&self) -> String {
        waypost_store::without_password(&self.location)
    }

    /// Whether there is nothing at that location yet.
    pub fn is_absent(&self) -> bool {
        match self.location.split_once(':') {
            // What cannot be looked at is there, and opening it says why.
            Some(("sqlite" | "file", path)) => Path::new(path).try_exists().is_ok_and(|exists| !exists),
            Some(_) | None => false,
        }
    }

    /// Whether it is in a folder of ours that no repository contains.
    pub fn is_outside_repositories(&self) -> bool {
        let is_inside = |folder: &PathBuf| folder.ancestors().any(|above| above.join(".git").exists());
        self.folder.as_ref().is_some_and(|folder| !is_inside(folder))
    }

    /// Whether its database file has no bytes: something has cut it off, because a new one is filled at once.
    pub fn is_cut_off(&self) -> bool {
        match self.location.split_once(':') {
            Some(("sqlite", path)) => {
                fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
            }
            Some(_) | None => false,
        }
    }

    /// Creates the folder with a `.gitignore` that excludes it from version control.
    pub fn prepare(&self) -> Outcome {
        let Some(folder) = &self.folder else { return Ok(()) };
        let ignore = || {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(folder.join(".gitignore"))?;
            file.write_all(IGNORED.as_bytes())
        };
        if folder.is_dir() {
            // There already, or not ours to write.
            let _there = ignore();
            return Ok(());
        }
        if folder.exists() {
            let message =
                format!("{} is a file, and Waypost keeps plans in a folder of that name", folder.display());
            return Err(Failure::failed(message, "move the file away, then try again"));
        }
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| ignore());
        made.map_err(|error| Failure::file(folder, &error))
    }
}

/// The named store (`--store`, `WAYPOST_STORE`), the user's own (`--global`), or the one of the workspace, with what another
/// user could have put above it, which is not used.
pub fn find(said: Option<&str>, global: bool, from: &Path) -> Outcome<(StoreLocation, Option<ForeignOwner>)> {
    // A variable that is empty counts as not set; an empty option is a script's mistake.
    if said == Some("") && std::env::var_os("WAYPOST_STORE").is_none() {
        return Err(Failure::usage("--store is empty", "name a store, or leave the option out"));
    }
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        return Ok((StoreLocation { location: said.to_owned(), folder: None }, None));
    }
    if global {
        let base = std::env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let base =
            base.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share")));
        let base = base.ok_or_else(|| {
            Failure::failed(
                "--global: neither XDG_DATA_HOME nor HOME is set",
                "set one of them, or name a --store",
            )
        })?;
        let location = format!("sqlite:{}", base.join("waypost").join(DATABASE).display());
        return Ok((StoreLocation { location, folder: None }, None));
    }
    let roots = roots(from).map_err(|foreign| foreign_owner(&foreign))?;
    Ok((StoreLocation::in_folder(roots.main.join(FOLDER)), roots.passed_over))
}

/// The roots of a workspace, which differ in a linked worktree.
pub struct Roots {
    /// Where work is done.
    pub workspace: PathBuf,
    /// The main checkout, which has the configuration and the store, or the bare repository, which has the store.
    pub main: PathBuf,
    /// Whether that is a bare repository. Its configuration can only be committed to its worktrees.
    pub is_bare: bool,
    /// What another user could have put above, and is not used.
    pub passed_over: Option<ForeignOwner>,
}

/// Finds the roots of the workspace that this folder belongs to. What other users own or can replace does not count.
pub fn roots(from: &Path) -> Result<Roots, ForeignOwner> {
    let (mut workspace, mut is_bare) = (from.to_owned(), false);
    let found = find_root(account(), from, &NAMES, |folders| {
        let found = roots_among(folders)?;
        (workspace, is_bare) = (found.workspace, found.is_bare);
        Some(found.main)
    })?;
    Ok(Roots { workspace, main: found.path, is_bare, passed_over: found.passed_over })
}

pub fn foreign_owner(foreign: &ForeignOwner) -> Failure {
    Failure { code: "foreign_owner".to_owned(), ..Failure::failed(foreign.to_string(), foreign.hint()) }
}

/// The roots that one of these folders identifies; they begin with the innermost one.
fn roots_among(folders: &[&Path]) -> Option<Roots> {
    let repository = folders.iter().find(|folder| folder.join(".git").exists());
    // A linked worktree shares everything with its main checkout. A `.waypost` inside was committed by someone.
    if let Some(tree) = repository
        && let Some((main, is_bare)) = main_checkout(tree)
    {
        return Some(Roots { workspace: (*tree).to_owned(), main, is_bare, passed_over: None });
    }
    let is_root = |folder: &&&Path| folder.join(FOLDER).is_dir() || folder.join(".git").exists();
    let root = folders.iter().find(is_root)?;
    let root = || (*root).to_owned();
    Some(Roots { workspace: root(), main: root(), is_bare: false, passed_over: None })
}

/// The root of the checkout that a linked worktree belongs to, and whether that is a bare repository; `None` for a main
/// checkout, and for a submodule, which is a repository of its own.
fn main_checkout(folder: &Path) -> Option<(PathBuf, bool)> {
    // `.git` is a file in worktrees and submodules, and names the repository.
    let text = fs::read_to_string(folder.join(".git")).ok()?;
    let git_folder = folder.join(text.strip_prefix("gitdir:")?.trim());
    let git_folder = fs::canonicalize(git_folder).ok()?;
    // Any folder can name the git folder of a worktree, which names its worktree in turn.
    let back = fs::read_to_string(git_folder.join("gitdir")).ok()?;
    if fs::canonicalize(git_folder.join(back.trim())).ok()? != fs::canonicalize(folder.join(".git")).ok()? {
        return None;
    }
    let common = fs::read_to_string(git_folder.join("commondir")).ok()?;
    let common = fs::canonicalize(git_folder.join(common.trim())).ok()?;
    // Any folder can contain a git folder that names another repository. That repository knows only those in its own.
    if git_folder.parent()? != fs::canonicalize(common.join("worktrees")).ok()? {
        return None;
    }
    if let Some(checkout) = configured_checkout(&common) {
        return Some((checkout, false));
    }
    let hidden = common.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let is_bare = !hidden || git_setting(&common, "bare").is_some_and(|value| value == "true");
    // `.git` is in the main checkout. A bare repository has none, and contains the store itself.
    let main = if hidden { common.parent()?.to_owned() } else { common };
    Some((main, is_bare))
}

/// A setting in the `config` of a git folder, wherever in it.
fn git_setting(common: &Path, wanted: &str) -> Option<String> {
    let config = fs::read_to_string(common.join("config")).ok()?;
    config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == wanted).then(|| value.trim().to_owned())
    })
}

/// The folder that `core.worktree` names, as in the repository of a submodule.
fn configured_checkout(common: &Path) -> Option<PathBuf> {
    let checkout = fs::canonicalize(common.join(git_setting(common, "worktree")?)).ok()?;
    // Any repository can name any folder, which names its repository in turn.
    let own = checkout.join(".git");
    let back = match fs::read_to_string(&own) {
        Ok(text) => checkout.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => own,
    };
    (fs::canonicalize(back).ok()? == common).then_some(checkout)
}
