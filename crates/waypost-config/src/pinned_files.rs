//! The files that executors pin: a command is as fixed as what it reads. Their content is part of what a person approves.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use waypost_core::canonical::sha256;
use waypost_text::hex;

/// Maximum number of files that one executor pins.
pub const PINNED_FILES_MAX: usize = 1_000;
/// Maximum bytes of the files that one executor pins.
pub const PINNED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum number of names below a pinned folder that are looked at.
const LOOKED_AT_MAX: usize = 100_000;
/// Files up to this size are read each time: two edits within one tick of the clock leave the same times.
const ALWAYS_READ_BYTES: u64 = 64 * 1024;

/// The patterns by the name of a table, for example `executors.deploy`, and the folder that they are relative to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedFiles {
    pub patterns: BTreeMap<String, Vec<String>>,
    /// The folder below the workspace that the patterns of a table are relative to: where its program runs.
    pub directories: BTreeMap<String, String>,
    pub workspace: PathBuf,
    hashes: HashCache,
}

/// The hashes of files that have not changed since they were read.
#[derive(Clone, Debug, Default)]
struct HashCache(Arc<Mutex<BTreeMap<PathBuf, (Identity, String)>>>);

impl PartialEq for HashCache {
    /// What is remembered to save time makes no difference.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for HashCache {}

/// What changes when the content of a file does: inode, bytes, and the times of the last changes in nanoseconds.
type Identity = (u64, u64, (i64, i64), (i64, i64));

fn identity(file: &Metadata) -> Identity {
    (file.ino(), file.len(), (file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()))
}

impl PinnedFiles {
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns the path and the SHA-256 of each file that a table pins now; `None` for a table that pins nothing. In place
    /// of the hash stands why a file has none, which no approval contains.
    pub fn of(&self, table: &str) -> Option<BTreeMap<String, String>> {
        self.of_copy(table, &self.workspace)
    }

    /// Like [`PinnedFiles::of`], for a copy of the workspace: a git worktree.
    pub fn of_copy(&self, table: &str, root: &Path) -> Option<BTreeMap<String, String>> {
        let patterns = self.patterns.get(table)?;
        let directory = self.directories.get(table).map_or("", String::as_str);
        let mut files = BTreeMap::new();
        let mut bytes = 0;
        let root_pattern = glob::Pattern::escape(&root.to_string_lossy());
        for pattern in patterns {
            // What lies outside of the workspace is not for agents to write.
            let inside = match pattern.starts_with('/') {
                true => pattern.strip_prefix(&root_pattern).and_then(|inside| inside.strip_prefix('/')),
                false => Some(pattern.as_str()),
            };
            let Some(pattern) = inside else { continue };
            // No pattern matches such a name, and a program may still read the file.
            if let Some(problem) = unmatched_name(&root.join(directory), pattern) {
                files.insert(pattern.to_owned(), problem);
                continue;
            }
            match matches(root, directory, pattern) {
                Ok(found) if found.is_empty() => {
                    _ = files.insert(pattern.to_owned(), "no such file".to_owned())
                }
                Ok(found) => {
                    for (name, path) in found {
                        let hash =
                            self.hash(root, &path, &mut bytes).unwrap_or_else(|error| error.to_string());
                        files.insert(name, hash);
                        if files.len() > PINNED_FILES_MAX {
                            let many = format!("more than {PINNED_FILES_MAX} files");
                            return Some(BTreeMap::from([(pattern.to_owned(), many)]));
                        }
                    }
                }
                Err(error) => _ = files.insert(pattern.to_owned(), error.to_string()),
            }
        }
        Some(files)
    }

    /// Returns the hash of a plain file, and where it is if links lead to it: another target is another file.
    fn hash(&self, given: &Path, path: &Path, bytes: &mut u64) -> io::Result<String> {
        let (root, target) = (given.canonicalize()?, path.canonicalize()?);
        let about = fs::metadata(&target)?;
        if !about.is_file() {
            return Err(io::Error::other("not a plain file"));
        }
        *bytes += about.len();
        if *bytes > PINNED_BYTES_MAX {
            return Err(io::Error::other(format!("more than {PINNED_BYTES_MAX} bytes")));
        }
        let hash = self.hash_of(&target, &about)?;
        let place = target.strip_prefix(&root).unwrap_or(&target);
        // A folder that is a link counts as well: programs find `..` behind it at another place.
        let is_link = path.strip_prefix(given).map_or(true, |inside| root.join(inside) != target);
        Ok(if is_link { format!("{hash} (link to {})", place.display()) } else { hash })
    }

    fn hash_of(&self, target: &Path, about: &Metadata) -> io::Result<String> {
        let mut known = self.hashes.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, hash)) = known.get(target)
            && about.len() > ALWAYS_READ_BYTES
            && *then == identity(about)
        {
            return Ok(hash.clone());
        }
        let hash = format!("sha256:{}", hex(&sha256(&fs::read(target)?)));
        known.insert(target.to_owned(), (identity(about), hash.clone()));
        Ok(hash)
    }
}

/// Says if a file that a pattern could mean has a name that is not UTF-8.
fn unmatched_name(folder: &Path, pattern: &str) -> Option<String> {
    let wild = pattern.find(['*', '?', '['])?;
    let literal = pattern[..wild].rfind('/').map_or("", |end| &pattern[..end]);
    let is_deep = pattern.contains("**") || pattern[wild..].contains('/');
    let mut folders = vec![folder.join(literal)];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        // What cannot be read is named where its files are.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            looked_at += 1;
            if entry.file_name().to_str().is_none() {
                return Some("there is a file whose name is not UTF-8".to_owned());
            }
            if looked_at > LOOKED_AT_MAX {
                return Some(format!("more than {LOOKED_AT_MAX} files to look at"));
            }
            if is_deep && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    None
}

fn matches(
    root: &Path,
    directory: &str,
    pattern: &str,
) -> Result<Vec<(String, PathBuf)>, glob::PatternError> {
    let folder = glob::Pattern::escape(&root.join(directory).to_string_lossy());
    // `**` alone matches folders.
    let files = if pattern.ends_with("**") { "/*" } else { "" };
    let found = glob::glob(&format!("{}/{pattern}{files}", folder.trim_end_matches('/')))?;
    let named = |path: PathBuf| {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        (name, path)
    };
    // A folder that cannot be read is named by its own error when its files are.
    let found = found.map(|path| path.unwrap_or_else(|error| error.path().to_owned()));
    // A pattern means files. `**` finds those below a folder too, and follows links.
    let is_link = |path: &PathBuf| path.is_symlink() && !pattern.contains("**");
    let is_folder = |path: &PathBuf| pattern.contains('*') && path.is_dir() && !is_link(path);
    Ok(found.filter(|path| !is_folder(path)).map(named).collect())
}
