//! What an agent changed: the files of its worktree or of its commit, compared with the commit that it began at. Runs nothing
//! that a worktree or a repository names: no filter, no driver, no hook. What is large is named and not read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use waypost_core::PlanId;

use crate::error::GitError;
use crate::program::Access;
use crate::repository::{Oid, Repository, malformed, text};
use crate::run::{Output, TimeLimit, run};

/// Maximum number of changed files whose content is read.
pub const CHANGED_FILES_MAX: usize = 200;
/// Maximum bytes of one side of a file that are read.
pub const CHANGED_FILE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum bytes that are read of all files together.
pub const CHANGED_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum number of files of a worktree, and of their bytes, that are compared.
const COMPARED_FILES_MAX: usize = 50_000;
const COMPARED_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Seconds that each command may take.
const SECONDS_MAX: u64 = 20;
/// The first bytes of a file, in which a zero byte means that it is not a text, as git decides it.
const BINARY_PROBE_BYTES: usize = 8_000;

/// Returns the folder of the worktree of an attempt, below that of all worktrees, and the name of its branch. `task` is the name
/// that the task has in file names.
pub fn worktree_names(plan: &PlanId, task: &str, attempt: u32) -> (PathBuf, String) {
    let name = format!("{task}.{attempt}");
    let branch = format!("waypost/{plan}/{}", name.replace('~', "-").replace("..", ".%2e"));
    (Path::new(plan.as_str()).join(name), branch)
}

/// One side of a changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Its text.
    Text(String),
    /// Not a text.
    Binary,
    /// More than is read, in one file or in all together.
    TooLarge,
    /// A symbolic link to this target.
    Link(String),
    /// It cannot be read.
    Unreadable,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path in the repository. Whatever its author named it.
    pub path: String,
    /// Its content before; `None` if it is new.
    pub before: Option<FileContent>,
    /// Its content now; `None` if it was removed.
    pub after: Option<FileContent>,
}

/// The files that differ, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    /// At most [`CHANGED_FILES_MAX`].
    pub files: Vec<ChangedFile>,
    /// The number of all that differ.
    pub total: usize,
}

/// An entry of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    mode: String,
    oid: Oid,
    bytes: u64,
}

impl Entry {
    fn is_link(&self) -> bool {
        self.mode == "120000"
    }
}

/// Where the content of a side is.
enum Side<'a> {
    Object(&'a Entry),
    File(PathBuf, u64),
    Link(PathBuf),
}

impl Repository {
    /// Returns the commit that a branch was created at, as the log of the reference has it; otherwise the last commit that it has in
    /// common with `HEAD`. `None` if there is no such branch.
    pub fn branch_start(&self, branch: &str) -> Result<Option<(Oid, Oid)>, GitError> {
        let name = format!("refs/heads/{branch}");
        let Ok(tip) = self.commit_of(&name) else { return Ok(None) };
        let logged = self.bounded(&["rev-list", "--walk-reflogs", &name, "--"], b"", None)?;
        let logged = String::from_utf8_lossy(&logged.text).lines().last().map(Oid::new).transpose()?;
        let start = match logged {
            Some(start) => start,
            None => self.merge_base(&tip, &self.commit_of("HEAD")?)?.unwrap_or_else(|| tip.clone()),
        };
        Ok(Some((start, tip)))
    }

    /// Whether a folder below that of all worktrees is one which git knows as a worktree of this repository. A path that leads
    /// through a link is none.
    pub fn has_worktree(&self, worktrees: &Path, folder: &Path) -> Result<bool, GitError> {
        let is_plain = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let whole = worktrees.join(folder);
        if !is_plain(worktrees)
            || !folder.parent().is_some_and(|own| is_plain(&worktrees.join(own)))
            || !is_plain(&whole)
        {
            return Ok(false);
        }
        let Ok(whole) = whole.canonicalize() else { return Ok(false) };
        let listed = self.bounded(&["worktree", "list", "--porcelain"], b"", None)?;
        let listed = String::from_utf8_lossy(&listed.text).into_owned();
        let paths = listed.lines().filter_map(|line| line.strip_prefix("worktree "));
        Ok(paths.map(Path::new).any(|path| path.canonicalize().is_ok_and(|path| path == whole)))
    }

    /// Compares two commits.
    pub fn changed_in_commit(&self, base: &Oid, commit: &Oid) -> Result<ChangedFiles, GitError> {
        let (old, new) = (self.entries(base)?, self.entries(commit)?);
        let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let changed = paths.into_iter().filter(|path| {
            let (old, new) = (old.get(*path), new.get(*path));
            old.map(|entry| (&entry.mode, &entry.oid)) != new.map(|entry| (&entry.mode, &entry.oid))
        });
        let side = |entry: Option<&'_ Entry>| entry.cloned();
        let pairs: Vec<(String, Option<Entry>, Option<Entry>)> =
            changed.map(|path| (path.clone(), side(old.get(path)), side(new.get(path)))).collect();
        let sides = pairs
            .iter()
            .map(|(path, old, new)| {
                (path.clone(), old.as_ref().map(Side::Object), new.as_ref().map(Side::Object))
            })
            .collect();
        self.read(sides)
    }

    /// Compares the files of a worktree with a commit. Files that git ignores do not count, unless the commit has them.
    pub fn changed_in_worktree(&self, base: &Oid, folder: &Path) -> Result<ChangedFiles, GitError> {
        let old = self.entries(base)?;
        let tracked: BTreeSet<&str> = old.keys().map(String::as_str).collect();
        let mut found = FolderFiles::new(folder);
        let mut sides: Vec<(String, Option<Side<'_>>, Option<Side<'_>>)> = Vec::new();
        let (mut same_size, mut bytes) = (Vec::new(), 0u64);
        for (path, entry) in &old {
            match found.side(path) {
                None => sides.push((path.clone(), Some(Side::Object(entry)), None)),
                Some(Side::File(file, size)) if !entry.is_link() && size == entry.bytes => {
                    bytes += size;
                    same_size.push((path, file, entry));
                }
                Some(Side::Link(link)) if entry.is_link() => {
                    let is_same = link_target(&link).is_some_and(|target| {
                        target.len() as u64 == entry.bytes
                            && self.blob(&entry.oid).is_some_and(|known| known == target.as_bytes())
                    });
                    if !is_same {
                        sides.push((path.clone(), Some(Side::Object(entry)), Some(Side::Link(link))));
                    }
                }
                Some(side) => sides.push((path.clone(), Some(Side::Object(entry)), Some(side))),
            }
        }
        if old.len() > COMPARED_FILES_MAX || bytes > COMPARED_BYTES_MAX {
            return Err(GitError::TooManyFiles { name: base.to_string(), limit: COMPARED_FILES_MAX });
        }
        let hashes =
            self.hashes(folder, &same_size.iter().map(|(path, ..)| path.as_str()).collect::<Vec<_>>())?;
        for ((path, file, entry), hash) in same_size.into_iter().zip(hashes) {
            if hash.as_deref() != Some(entry.oid.as_str()) {
                sides.push((path.clone(), Some(Side::Object(entry)), Some(Side::File(file, entry.bytes))));
            }
        }
        for path in self.unignored(folder)? {
            if !tracked.contains(path.as_str())
                && let Some(side) = found.side(&path)
            {
                sides.push((path, None, Some(side)));
            }
        }
        sides.sort_by(|one, other| one.0.cmp(&other.0));
        self.read(sides)
    }

    /// Runs a command that only reads, with the files of a folder if one is named.
    fn bounded(&self, words: &[&str], input: &[u8], folder: Option<&Path>) -> Result<Output, GitError> {
        let name = words.first().copied().unwrap_or_default();
        let mut command = match folder.and_then(Path::to_str) {
            Some(root) => {
                let root = format!("--work-tree={root}");
                self.prepare(Access::Read, &[&[root.as_str()], words].concat())
            }
            None => self.prepare(Access::Read, words),
        };
        if let Some(folder) = folder {
            // Without an index, everything that is there is listed.
            let none = self.common_folder().join("waypost-no-index");
            command.current_dir(folder).env("GIT_INDEX_FILE", none);
        }
        let output = run(name, command, input, TimeLimit::of(SECONDS_MAX))?;
        match output.succeeded {
            true => Ok(output),
            false => Err(GitError::Failed { command: name.to_owned(), message: output.message }),
        }
    }

    /// The files and links of a commit, by path. Submodules and names that are not UTF-8 are left out.
    fn entries(&self, commit: &Oid) -> Result<BTreeMap<String, Entry>, GitError> {
        let words = ["ls-tree", "-r", "-z", "-l", "--full-tree", commit.as_str()];
        let listed = self.bounded(&words, b"", None)?.text;
        let mut entries = BTreeMap::new();
        for line in listed.split(|&byte| byte == 0).filter(|line| !line.is_empty()) {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let (head, path) = line.split_once('\t').ok_or_else(|| malformed("ls-tree", line))?;
            let fields: Vec<&str> = head.split_whitespace().collect();
            let &[mode, kind, oid, bytes] = &fields[..] else { return Err(malformed("ls-tree", line)) };
            if kind == "blob" {
                let bytes = bytes.parse().unwrap_or(u64::MAX);
                entries.insert(path.to_owned(), Entry { mode: mode.to_owned(), oid: Oid::new(oid)?, bytes });
            }
        }
        Ok(entries)
    }

    /// The files of a folder that git does not ignore. A repository inside is left out.
    fn unignored(&self, folder: &Path) -> Result<Vec<String>, GitError> {
        let words = ["ls-files", "--others", "--exclude-standard", "-z"];
        let listed = self.bounded(&words, b"", Some(folder))?.text;
        let names = listed.split(|&byte| byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        let names: Vec<String> =
            names.filter(|name| !name.is_empty() && !name.ends_with('/')).map(str::to_owned).collect();
        match names.len() > COMPARED_FILES_MAX {
            true => {
                Err(GitError::TooManyFiles { name: folder.display().to_string(), limit: COMPARED_FILES_MAX })
            }
            false => Ok(names),
        }
    }

    /// The names that git would give the contents of these files; `None` where a name cannot be passed.
    fn hashes(&self, folder: &Path, paths: &[&str]) -> Result<Vec<Option<String>>, GitError> {
        let can_pass = |path: &str| !path.contains('\n') && !path.starts_with('"');
        let passed: Vec<&str> = paths.iter().copied().filter(|path| can_pass(path)).collect();
        if passed.is_empty() {
            return Ok(vec![None; paths.len()]);
        }
        let input = passed.iter().map(|path| format!("{path}\n")).collect::<String>();
        let words = ["hash-object", "--no-filters", "--stdin-paths"];
        let printed = text(self.bounded(&words, input.as_bytes(), Some(folder))?, "hash-object")?;
        let mut hashes = printed.lines().map(str::to_owned);
        Ok(paths.iter().map(|path| if can_pass(path) { hashes.next() } else { None }).collect())
    }

    fn blob(&self, oid: &Oid) -> Option<Vec<u8>> {
        self.bounded(&["cat-file", "blob", oid.as_str()], b"", None).ok().map(|output| output.text)
    }

    /// Reads both sides of the first changed files.
    fn read(
        &self,
        mut sides: Vec<(String, Option<Side<'_>>, Option<Side<'_>>)>,
    ) -> Result<ChangedFiles, GitError> {
        let total = sides.len();
        sides.truncate(CHANGED_FILES_MAX);
        let mut left = CHANGED_BYTES_MAX;
        let mut fits = |bytes: u64| {
            let fits = bytes <= CHANGED_FILE_BYTES_MAX && bytes <= left;
            left = left.saturating_sub(if fits { bytes } else { 0 });
            fits
        };
        let mut wanted: BTreeSet<&Oid> = BTreeSet::new();
        let mut readable = Vec::new();
        for (_, before, after) in &sides {
            let mut both = [false; 2];
            for (is_readable, side) in both.iter_mut().zip([before, after]) {
                *is_readable = match side {
                    Some(Side::Object(entry)) => fits(entry.bytes),
                    Some(Side::File(_, bytes)) => fits(*bytes),
                    Some(Side::Link(_)) | None => true,
                };
                if let (true, Some(Side::Object(entry))) = (*is_readable, side) {
                    wanted.insert(&entry.oid);
                }
            }
            readable.push(both);
        }
        let blobs = self.blobs(&wanted)?;
        let content = |side: &Side<'_>, is_readable: bool| match side {
            Side::Link(link) => link_target(link).map_or(FileContent::Unreadable, FileContent::Link),
            _ if !is_readable => FileContent::TooLarge,
            Side::Object(entry) => match blobs.get(entry.oid.as_str()) {
                Some(bytes) if entry.is_link() => {
                    FileContent::Link(String::from_utf8_lossy(bytes).into_owned())
                }
                Some(bytes) => content_of(bytes.clone()),
                None => FileContent::Unreadable,
            },
            Side::File(path, _) => read_file(path),
        };
        let files = sides.iter().zip(readable).map(|((path, before, after), [old, new])| ChangedFile {
            path: path.clone(),
            before: before.as_ref().map(|side| content(side, old)),
            after: after.as_ref().map(|side| content(side, new)),
        });
        Ok(ChangedFiles { files: files.collect(), total })
    }

    /// The contents of objects, by name.
    fn blobs(&self, wanted: &BTreeSet<&Oid>) -> Result<HashMap<String, Vec<u8>>, GitError> {
        let mut found = HashMap::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let input = wanted.iter().map(|oid| format!("{oid}\n")).collect::<String>();
        let printed = self.bounded(&["cat-file", "--batch"], input.as_bytes(), None)?.text;
        let mut rest = printed.as_slice();
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            let fields: Vec<&str> = head.split(' ').collect();
            let (oid, bytes) = match fields[..] {
                [_, "missing"] => continue,
                [oid, "blob", bytes] => (oid, bytes.parse::<usize>().unwrap_or(usize::MAX)),
                _ => return Err(malformed("cat-file", &head)),
            };
            let content = rest.get(..bytes).ok_or_else(|| malformed("cat-file", &head))?;
            found.insert(oid.to_owned(), content.to_vec());
            rest = rest.get(bytes + 1..).unwrap_or_default();
        }
        Ok(found)
    }
}

/// The files of a folder. A path that leads through a link is not followed: it would lead out of the folder.
struct FolderFiles<'a> {
    folder: &'a Path,
    /// Whether a folder inside is one, and not a link to one.
    is_plain: HashMap<PathBuf, bool>,
}

impl<'a> FolderFiles<'a> {
    fn new(folder: &'a Path) -> Self {
        Self { folder, is_plain: HashMap::new() }
    }

    fn side(&mut self, path: &str) -> Option<Side<'static>> {
        let is_inside = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
        if !Path::new(path).components().all(is_inside) || !self.leads_inside(Path::new(path).parent()?) {
            return None;
        }
        let whole = self.folder.join(path);
        let found = fs::symlink_metadata(&whole).ok()?;
        if found.is_symlink() {
            return Some(Side::Link(whole));
        }
        found.is_file().then_some(Side::File(whole, found.len()))
    }

    fn leads_inside(&mut self, path: &Path) -> bool {
        if path.as_os_str().is_empty() {
            return true;
        }
        if let Some(&known) = self.is_plain.get(path) {
            return known;
        }
        let own = path.parent().is_none_or(|parent| self.leads_inside(parent))
            && fs::symlink_metadata(self.folder.join(path)).is_ok_and(|found| found.is_dir());
        self.is_plain.insert(path.to_owned(), own);
        own
    }
}

fn link_target(link: &Path) -> Option<String> {
    fs::read_link(link).ok().map(|target| target.to_string_lossy().into_owned())
}

/// Reads a file that was small a moment ago.
fn read_file(path: &Path) -> FileContent {
    use std::io::Read as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut bytes = Vec::new();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let read = opened.and_then(|file| file.take(CHANGED_FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > CHANGED_FILE_BYTES_MAX => FileContent::TooLarge,
        Ok(_) => content_of(bytes),
        Err(_) => FileContent::Unreadable,
    }
}

fn content_of(bytes: Vec<u8>) -> FileContent {
    match bytes[..bytes.len().min(BINARY_PROBE_BYTES)].contains(&0) {
        true => FileContent::Binary,
        false => FileContent::Text(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
