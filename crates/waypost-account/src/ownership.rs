//! Finds the root of a workspace among a folder and those above it, without relying on what other users put there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

use crate::account::Account;

/// Why a link in place of a file is not used.
const IS_LINK: &str = "is a link";
/// How the names of links begin that editors use as locks.
const EDITOR_LOCK: &[u8] = b".#";

/// Something of another user, or that another user can replace, where a workspace would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {why} and is not used", path.display())]
pub struct ForeignOwner {
    pub path: PathBuf,
    why: String,
}

impl ForeignOwner {
    /// Returns what to do next.
    pub fn hint(&self) -> String {
        let path = self.path.display();
        match self.why == IS_LINK {
            true => format!(
                "put the file or folder itself at {path}, or remove it; or name both a store and a configuration: --store URL --config FILE"
            ),
            false => format!(
                "chown -R $(id -u) {path}, or name both a store and a configuration: --store URL --config FILE"
            ),
        }
    }
}

/// What identifies a workspace, relative to its root.
pub struct WorkspaceNames<'a> {
    /// The folder of Waypost's own files.
    pub own: &'a str,
    /// The files that are used, which belong to the account too.
    pub files: &'a [&'a str],
    /// The folders of state in that folder, and how many levels of each may not contain links.
    pub folders: &'a [(&'a str, usize)],
}

/// The root of a workspace.
pub struct FoundRoot {
    pub path: PathBuf,
    /// What would have been the root, had another user not been able to put it there. Any user can put something into a folder
    /// that all can write, so that it must not keep others from working below.
    pub passed_over: Option<ForeignOwner>,
}

/// Returns the root of the workspace that a folder belongs to. `root_among` gets the folder and those above it, up to the
/// first that belongs neither to the account nor to root, or that others can write. If it finds no root there, the folder
/// itself is the root.
pub fn find_root(
    account: &Account,
    from: &Path,
    names: &WorkspaceNames<'_>,
    root_among: impl FnOnce(&[&Path]) -> Option<PathBuf>,
) -> Result<FoundRoot, ForeignOwner> {
    let is_passable = |folder: &&Path| {
        let metadata = fs::metadata(folder);
        metadata.is_ok_and(|found| account.trusts(found.uid()) && !account.others_write(&found))
    };
    let above = from.ancestors().skip(1).take_while(|_| is_passable(&from)).take_while(is_passable);
    let folders: Vec<&Path> = std::iter::once(from).chain(above).collect();
    if let Some(root) = root_among(&folders) {
        return check_root(account, &root, names).map(|()| FoundRoot { path: root, passed_over: None });
    }
    let edge = from.ancestors().nth(folders.len()).filter(|_| is_passable(&from));
    let passed_over = edge.and_then(|edge| {
        let path = edge.join(names.own);
        let metadata = fs::symlink_metadata(&path).ok()?;
        let why = match account.trusts(metadata.uid()) {
            true => format!("is in {}, which others can write,", edge.display()),
            false => belongs_to(metadata.uid()),
        };
        Some(ForeignOwner { path, why })
    });
    check_root(account, from, names).map(|()| FoundRoot { path: from.to_owned(), passed_over })
}

/// Checks that a workspace's root and what is used in it belong to the account.
fn check_root(account: &Account, root: &Path, names: &WorkspaceNames<'_>) -> Result<(), ForeignOwner> {
    let own = root.join(names.own);
    let files: Vec<PathBuf> = names.files.iter().map(|file| own.join(file)).collect();
    // A link would let a repository use or fill files elsewhere. The folder itself may be one: its content is trusted or not.
    let below = || names.folders.iter().find_map(|(name, levels)| link_below(&own.join(name), *levels));
    if let Some(path) = link_below(&own, 1).or_else(below) {
        return Err(ForeignOwner { why: IS_LINK.to_owned(), path });
    }
    for path in [root.to_owned(), own].into_iter().chain(files) {
        // A link belongs to whoever made it, and leads to something that belongs to someone as well.
        let found = [fs::symlink_metadata(&path), fs::metadata(&path)];
        if let Some(stranger) = found.iter().flatten().find(|metadata| !account.trusts(metadata.uid())) {
            return Err(ForeignOwner { why: belongs_to(stranger.uid()), path });
        }
    }
    Ok(())
}

/// Returns a symbolic link in the first levels of a folder.
fn link_below(folder: &Path, levels: usize) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries.flatten().find_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_symlink() => {
            (!entry.file_name().as_encoded_bytes().starts_with(EDITOR_LOCK)).then(|| entry.path())
        }
        Ok(kind) if kind.is_dir() && levels > 1 => link_below(&entry.path(), levels - 1),
        Ok(_) | Err(_) => None,
    })
}

fn belongs_to(uid: u32) -> String {
    format!("belongs to {}", user_name(uid))
}

/// Returns the name of a user with the id, or only the id of a user without a name.
pub fn user_name(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => format!("{} (uid {uid})", user.name),
        Ok(None) | Err(_) => format!("uid {uid}"),
    }
}
