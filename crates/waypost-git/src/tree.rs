//! Reads the trees of the branch: which files a commit holds, what two commits differ in, and the lines of files.
//!
//! What somebody damaged is named, and does not keep the rest from being read.

use std::io::{BufRead, BufReader, Read, Write};

use waypost_core::PlanId;

use crate::error::GitError;
use crate::layout::{FILE_BYTES_MAX, LINE_BYTES_MAX, is_plain_path, plan_of_path};
use crate::program::Access;
use crate::repository::{Oid, Repository, malformed, text};

/// Maximum number of files of the branch.
pub const TREE_FILES_MAX: usize = 1_000_000;
/// Maximum number of damaged places that are listed.
const DAMAGE_MAX: usize = 1_000;

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeFile {
    /// Its path, which is plain: letters, digits, `.`, `_`, `-`, `~` and `/`.
    pub path: String,
    /// Its content.
    pub oid: Oid,
}

impl TreeFile {
    /// Returns the plan whose records it holds.
    pub fn plan(&self) -> Option<PlanId> {
        plan_of_path(&self.path)
    }
}

/// What differs between two commits: a file whose content changed is in both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The files that only the newer commit holds.
    pub added: Vec<TreeFile>,
    /// The files that only the older commit holds.
    pub removed: Vec<TreeFile>,
    /// What cannot be read.
    pub damage: Vec<Damage>,
}

/// A place that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The commit in which it was found.
    pub commit: String,
    /// The file.
    pub path: String,
    /// The number of the line, from 1; `None` for the whole file.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { commit, path, line, problem } = self;
        let commit = &commit[..commit.len().min(8)];
        match line {
            Some(line) => write!(formatter, "{commit}: {path}:{line}: {problem}"),
            None => write!(formatter, "{commit}: {path}: {problem}"),
        }
    }
}

/// A line of a file.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The file.
    pub file: &'a TreeFile,
    /// Its number, from 1.
    pub number: usize,
    /// Its text, without the end of line.
    pub text: &'a str,
}

impl Line<'_> {
    /// Names the line as damaged.
    pub fn damage(&self, commit: &Oid, problem: impl Into<String>) -> Damage {
        let (commit, path) = (commit.to_string(), self.file.path.clone());
        Damage { commit, path, line: Some(self.number), problem: problem.into() }
    }
}

pub(crate) fn add_damage(list: &mut Vec<Damage>, damage: Damage) {
    if list.len() < DAMAGE_MAX {
        list.push(damage);
    }
}

/// Why an entry of a tree is not read, if it is not a plain file.
fn problem_of(mode: &str, path: &[u8]) -> Option<&'static str> {
    match mode {
        "100644" | "100755" => {}
        "120000" => return Some("a symbolic link is not read"),
        "160000" => return Some("a submodule is not read"),
        _ => return Some("only regular files are read"),
    }
    let plain = std::str::from_utf8(path).is_ok_and(is_plain_path);
    (!plain).then_some("a file with such a name is not read")
}

impl Repository {
    /// Lists the files of a commit below a folder, or all with an empty name. Entries that are no plain files are
    /// damage.
    pub fn files(&self, commit: &Oid, below: &str) -> Result<(Vec<TreeFile>, Vec<Damage>), GitError> {
        let mut words = vec!["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
        if !below.is_empty() {
            words.extend(["--", below]);
        }
        let listed = self.succeed(Access::Read, &words, b"")?.text;
        let (mut files, mut damage) = (Vec::new(), Vec::new());
        for entry in listed.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()) {
            let shown = String::from_utf8_lossy(entry);
            let bad = || malformed("ls-tree", &shown);
            let tab = entry.iter().position(|&byte| byte == b'\t').ok_or_else(bad)?;
            let head = std::str::from_utf8(&entry[..tab]).map_err(|_| bad())?;
            let mut fields = head.split(' ');
            let (mode, oid) = (fields.next().ok_or_else(bad)?, fields.nth(1).ok_or_else(bad)?);
            let path = &entry[tab + 1..];
            match problem_of(mode, path) {
                None => files
                    .push(TreeFile { path: String::from_utf8_lossy(path).into_owned(), oid: Oid::new(oid)? }),
                Some(problem) => add_damage(&mut damage, damaged_file(commit, path, problem)),
            }
        }
        match files.len() > TREE_FILES_MAX {
            true => Err(GitError::TooManyFiles { name: commit.to_string(), limit: TREE_FILES_MAX }),
            false => Ok((files, damage)),
        }
    }

    /// Lists the files of plans that two commits differ in.
    pub fn changes(&self, older: &Oid, newer: &Oid) -> Result<Changes, GitError> {
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--raw",
            older.as_str(),
            newer.as_str(),
            "--",
            "plans/",
        ];
        let listed = self.succeed(Access::Read, &words, b"")?.text;
        let mut changes = Changes::default();
        let mut parts = listed.split(|&byte| byte == 0).filter(|part| !part.is_empty());
        while let Some(head) = parts.next() {
            let shown = String::from_utf8_lossy(head);
            let bad = || malformed("diff-tree", &shown);
            let fields: Vec<&str> = shown.trim_start_matches(':').split(' ').collect();
            let (path, &[old_mode, new_mode, old, new, _]) = (parts.next().ok_or_else(bad)?, &fields[..])
            else {
                return Err(bad());
            };
            let sides = [(old_mode, old, &mut changes.removed), (new_mode, new, &mut changes.added)];
            for (is_new, (mode, oid, list)) in [false, true].into_iter().zip(sides) {
                if mode == "000000" {
                    continue;
                }
                match problem_of(mode, path) {
                    None => list.push(TreeFile {
                        path: String::from_utf8_lossy(path).into_owned(),
                        oid: Oid::new(oid)?,
                    }),
                    Some(problem) if is_new => {
                        add_damage(&mut changes.damage, damaged_file(newer, path, problem));
                    }
                    Some(_) => {}
                }
            }
        }
        match changes.added.len() > TREE_FILES_MAX {
            true => Err(GitError::TooManyFiles { name: newer.to_string(), limit: TREE_FILES_MAX }),
            false => Ok(changes),
        }
    }

    /// Returns the content of a small file of a commit; `None` if there is none.
    pub(crate) fn small_file(&self, commit: &Oid, path: &str) -> Result<Option<String>, GitError> {
        let name = format!("{commit}:{path}");
        let output = self.output(Access::Read, &["cat-file", "blob", &name], b"")?;
        Ok(output.succeeded.then(|| text(output, "cat-file")).transpose().unwrap_or_default())
    }

    /// Reads files and calls `each` for every line that is not empty. Returns what cannot be read.
    pub fn read_lines(
        &self,
        commit: &Oid,
        files: &[TreeFile],
        mut each: impl FnMut(Line<'_>),
    ) -> Result<Vec<Damage>, GitError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut damage = Vec::new();
        let whole = |file: &TreeFile, problem: String| Damage {
            commit: commit.to_string(),
            path: file.path.clone(),
            line: None,
            problem,
        };
        // The objects of a clone without blobs are fetched when they are read.
        let access = if self.is_partial()? { Access::Remote } else { Access::Read };
        let mut running = self.start(access, &["cat-file", "--batch"])?;
        let (mut input, output) = (running.input()?, running.output()?);
        let mut output = BufReader::new(output);
        let io = |error| GitError::Io { command: "cat-file".to_owned(), error };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for file in files {
                    // A reader that gave up has an error of its own.
                    if writeln!(input, "{}", file.oid).is_err() {
                        return;
                    }
                }
            });
            let mut bytes = Vec::new();
            for file in files {
                let mut head = String::new();
                output.read_line(&mut head).map_err(io)?;
                let fields: Vec<&str> = head.trim_end().split(' ').collect();
                let size = match fields[..] {
                    [_, "missing"] => {
                        add_damage(&mut damage, whole(file, "its content is missing".to_owned()));
                        continue;
                    }
                    [_, "blob", size] => size.parse::<u64>().map_err(|_| malformed("cat-file", &head))?,
                    _ => return Err(malformed("cat-file", &head)),
                };
                bytes.clear();
                if size > FILE_BYTES_MAX {
                    let problem = format!("{size} bytes are more than {FILE_BYTES_MAX}");
                    add_damage(&mut damage, whole(file, problem));
                    std::io::copy(&mut output.by_ref().take(size), &mut std::io::sink()).map_err(io)?;
                } else {
                    output.by_ref().take(size).read_to_end(&mut bytes).map_err(io)?;
                    lines(commit, file, &bytes, &mut damage, &mut each);
                }
                // The line break behind the content.
                output.read_exact(&mut [0]).map_err(io)?;
            }
            Ok(())
        })?;
        drop(output);
        running.finish()?;
        Ok(damage)
    }

    /// Whether objects of this clone may still be with the remote.
    fn is_partial(&self) -> Result<bool, GitError> {
        let words = ["config", "--get-regexp", r"^(remote\..*\.promisor|extensions\.partialclone)$"];
        Ok(self.output(Access::Read, &words, b"")?.succeeded)
    }
}

fn damaged_file(commit: &Oid, path: &[u8], problem: &str) -> Damage {
    let path = String::from_utf8_lossy(path).escape_debug().to_string();
    Damage { commit: commit.to_string(), path, line: None, problem: problem.to_owned() }
}

/// Calls `each` for the lines of a file.
fn lines(
    commit: &Oid,
    file: &TreeFile,
    bytes: &[u8],
    damage: &mut Vec<Damage>,
    each: &mut impl FnMut(Line<'_>),
) {
    for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let place = Line { file, number: at + 1, text: "" };
        if line.len() > LINE_BYTES_MAX {
            let problem = format!("{} bytes are more than {LINE_BYTES_MAX} for a line", line.len());
            add_damage(damage, place.damage(commit, problem));
            continue;
        }
        match std::str::from_utf8(line) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => each(Line { text, ..place }),
            Err(_) => add_damage(damage, place.damage(commit, "not UTF-8")),
        }
    }
}
