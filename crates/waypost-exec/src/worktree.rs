//! A git worktree for one attempt, so that concurrent agents do not touch each other's files.
//!
//! Every git command that creates or removes a worktree runs under one lock for the workspace, because git itself does
//! not serialize them. An agent can write any file of its worktree, and no git command executes any of them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use waypost_text::truncate_bytes;

use super::attempt::{Attempt, inside};
use super::process;
use crate::outcome::AttemptOutcome;
use crate::secrets::Secrets;
use waypost_config::PinnedFiles;
use waypost_git::{Git, worktree_names};
use waypost_store::{log_file_name as file_name, make_state_folder, open_state_file};

/// The lock reason that git sets while it creates a worktree.
const BEING_MADE: &str = "locked initializing";
/// Why a folder is left out of a commit.
const NESTED: &str = "it is a git repository of its own, or cannot be listed";
/// Settings that git itself writes while people and agents work, and that name nothing which our commands run.
const HARMLESS_SETTINGS: [&str; 7] =
    ["branch.", "remote.", "user.", "author.", "committer.", "submodule.", "lfs.repositoryformatversion"];
/// Bytes of the first line of a commit message.
const TITLE_BYTES_MAX: usize = 72;

/// The changes on a branch.
pub(super) struct Changes {
    pub(super) commit: String,
    pub(super) files: u64,
    pub(super) insertions: u64,
    pub(super) deletions: u64,
}

/// A git directory and its files, both named in every git command, so that git never looks for a repository itself.
struct Repository {
    git: Git,
    git_dir: String,
    root: PathBuf,
}

impl Repository {
    /// Finds the repository around the workspace. Also returns the path of the workspace inside it.
    fn around(attempt: &mut Attempt<'_>, workspace: &Path) -> Result<(Self, String), String> {
        let git = Git::find(&attempt.around.variables, workspace)?;
        let asked = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix"];
        let answer = output(process::git_output(attempt, &git, workspace, &asked, b""), &asked)?;
        match answer.lines().collect::<Vec<_>>()[..] {
            [root, git_dir, ref prefix @ ..] if prefix.len() <= 1 => {
                let (root, git_dir) = (PathBuf::from(root), git_dir.to_owned());
                Ok((Self { git, git_dir, root }, prefix.concat()))
            }
            _ => Err(format!("git answered {answer:?}, which are not three paths")),
        }
    }

    fn run(&self, attempt: &mut Attempt<'_>, words: &[&str]) -> Result<String, String> {
        self.run_with_input(attempt, words, b"")
    }

    /// Runs git to its end. Returns its output without trailing whitespace.
    fn run_with_input(
        &self,
        attempt: &mut Attempt<'_>,
        words: &[&str],
        input: &[u8],
    ) -> Result<String, String> {
        let git_dir = format!("--git-dir={}", self.git_dir);
        let root = format!("--work-tree={}", text(&self.root)?);
        let all = [&[git_dir.as_str(), &root], words].concat();
        output(process::git_output(attempt, &self.git, &self.root, &all, input), words)
    }
}

impl Repository {
    /// Returns the settings that git would use, each with the file that it is from. Filters, for example, name programs.
    fn settings(&self, attempt: &mut Attempt<'_>) -> Result<Vec<(String, String)>, String> {
        let list = self.run(attempt, &["config", "--list", "--null", "--show-origin"])?;
        let mut parts = list.split('\0').map(str::to_owned);
        let mut settings = Vec::new();
        while let (Some(origin), Some(setting)) = (parts.next(), parts.next()) {
            if !HARMLESS_SETTINGS.iter().any(|harmless| setting.starts_with(harmless)) {
                settings.push((origin, setting));
            }
        }
        Ok(settings)
    }
}

fn output(result: Result<String, String>, words: &[&str]) -> Result<String, String> {
    result.map_err(|error| {
        let word = words.iter().find(|word| !word.starts_with('-') && !word.contains('=')).unwrap_or(&"");
        format!("git {word} failed ({error})")
    })
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not valid UTF-8", path.display()))
}

/// A file by which git finds a repository, as it was before the agent ran.
struct GitFile {
    path: PathBuf,
    inode: u64,
    bytes: Vec<u8>,
}

impl GitFile {
    fn read(path: PathBuf) -> Result<Self, String> {
        let read = || Ok((fs::symlink_metadata(&path)?.ino(), fs::read(&path)?));
        let (inode, bytes) =
            read().map_err(|error: io::Error| format!("{} cannot be read: {error}", path.display()))?;
        Ok(Self { path, inode, bytes })
    }

    fn is_unchanged(&self) -> bool {
        // A pipe in its place would never end: look before reading.
        fs::symlink_metadata(&self.path).is_ok_and(|found| {
            found.is_file() && found.ino() == self.inode && found.len() == self.bytes.len() as u64
        }) && fs::read(&self.path).is_ok_and(|bytes| bytes == self.bytes)
    }
}

pub(super) struct Worktree {
    /// The repository of the workspace.
    main: Repository,
    own: Repository,
    /// The files that lead from the worktree to its git directory, and from there to the repository's.
    git_files: [GitFile; 2],
    /// The settings of git before the agent ran.
    settings: Vec<(String, String)>,
    /// The directory of the workspace inside the worktree.
    workspace: PathBuf,
    branch: String,
    base: String,
}

impl Worktree {
    /// Creates the worktree of this attempt, from the branch of the preceding task or else from the workspace's HEAD.
    pub(super) fn make(attempt: &mut Attempt<'_>, before: Option<&str>) -> Result<Self, String> {
        let workspace = attempt.around.workspace.clone();
        let (main, prefix) = Repository::around(attempt, &workspace)
            .map_err(|error| format!("`worktree = true` needs a git repository: {error}"))?;
        let folder = worktrees(attempt);
        let _lock = locked(&folder)?;
        tidy(attempt, &main, &folder)?;
        let base = base(attempt, &main, before)?;
        let key = &attempt.job.key;
        let (own, branch) = worktree_names(&key.plan, &file_name(key.task.as_str()), key.attempt);
        let root = folder.join(own);
        // Git makes the worktree's own folder, or fills an empty one: also one behind a link.
        let plan_folder = root.parent().unwrap_or(&folder);
        make_state_folder(plan_folder, 2).map_err(|error| unusable(plan_folder, &error))?;
        if root.is_symlink() {
            return Err(format!("{} is a link and is not used", root.display()));
        }
        main.run(attempt, &["worktree", "add", "--quiet", "-b", &branch, text(&root)?, &base])?;
        let git_file = GitFile::read(root.join(".git"))?;
        let git_dir = root.join(git_directory(&git_file.bytes)?);
        let git_files = [git_file, GitFile::read(git_dir.join("commondir"))?];
        let workspace = root.join(prefix);
        let own = Repository { git: main.git.clone(), git_dir: text(&git_dir)?.to_owned(), root };
        let settings = own.settings(attempt)?;
        Ok(Self { main, own, git_files, settings, workspace, branch, base })
    }

    pub(super) fn branch(&self) -> &str {
        &self.branch
    }

    /// The commit that the worktree was created from.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Resolves a directory of the workspace inside the worktree.
    pub(super) fn directory(&self, relative: &str) -> Result<PathBuf, String> {
        inside(&self.workspace, relative)
    }

    /// Refuses a worktree in which a pinned file is not the one of the workspace, which an approval binds: the agent would
    /// run the copy.
    pub(super) fn check_pinned(&self, pinned: &PinnedFiles, table: &str) -> Result<(), String> {
        let approved = pinned.of(table).unwrap_or_default();
        let copied = pinned.of_copy(table, &self.workspace).unwrap_or_default();
        let names = approved.keys().chain(copied.keys());
        match names.into_iter().find(|name| approved.get(*name) != copied.get(*name)) {
            Some(name) => Err(format!("the worktree has another {name} than the workspace; commit it first")),
            None => Ok(()),
        }
    }

    /// Refuses a worktree whose agent led git to another repository, or changed its settings: either could name programs
    /// for git to run.
    pub(super) fn check_git_files(&self, attempt: &mut Attempt<'_>) -> Result<(), String> {
        let changed = |file: &str| Err(format!("the agent changed the repository's git files ({file})"));
        if let Some(file) = self.git_files.iter().find(|file| !file.is_unchanged()) {
            return changed(&file.path.display().to_string());
        }
        let now = self.own.settings(attempt)?;
        let other = self.settings.iter().zip(&now).position(|(before, now)| before != now);
        let other = other.or((self.settings.len() != now.len()).then(|| self.settings.len().min(now.len())));
        match other.and_then(|at| now.get(at).or(self.settings.get(at))) {
            Some((origin, _)) => changed(origin.strip_prefix("file:").unwrap_or(origin)),
            None => Ok(()),
        }
    }

    /// Commits all changes to the branch, except those in nested repositories.
    pub(super) fn commit(
        &self,
        attempt: &mut Attempt<'_>,
        title: &str,
        author: Option<&str>,
    ) -> Result<Changes, AttemptOutcome> {
        self.committed(attempt, title, author).map_err(|error| AttemptOutcome::Failed { error })
    }

    fn committed(
        &self,
        attempt: &mut Attempt<'_>,
        title: &str,
        author: Option<&str>,
    ) -> Result<Changes, String> {
        let branch = format!("refs/heads/{}", self.branch);
        let head = self.own.run(attempt, &["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
        if head != branch {
            return Err(format!("the agent has left its branch {}", self.branch));
        }
        let nested = self.nested()?;
        for folder in &nested {
            attempt
                .log
                .say(&format!("waypost: {} is not committed: {NESTED}", folder.display()), Secrets::NONE);
        }
        let add = ["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        self.own.run_with_input(attempt, &add, &all_but(&nested))?;
        let tree = self.own.run(attempt, &["write-tree"])?;
        let mut commit = self.own.run(attempt, &["rev-parse", "--verify", "HEAD^{commit}"])?;
        if tree != self.own.run(attempt, &["rev-parse", "--verify", "HEAD^{tree}"])? {
            let title = truncate_bytes(title.lines().next().unwrap_or_default(), TITLE_BYTES_MAX);
            let key = &attempt.job.key;
            let idempotency_key = super::attempt_spec::idempotency_key(key);
            let body = format!("Waypost-Task: {}/{}\nWaypost-Attempt: {idempotency_key}", key.plan, key.task);
            let (name, mail) = author
                .and_then(|author| author.strip_suffix('>')?.split_once(" <"))
                .map_or((String::new(), String::new()), |(name, mail)| {
                    (format!("user.name={name}"), format!("user.email={mail}"))
                });
            let mut words = Vec::new();
            if !name.is_empty() {
                words.extend(["-c", &name, "-c", &mail]);
            }
            words.extend(["commit-tree", &tree, "-p", &commit, "-m", &title, "-m", &body]);
            let made = self.own.run(attempt, &words)?;
            self.own.run(attempt, &["update-ref", &branch, &made, &commit])?;
            commit = made;
        }
        let words = ["diff", "--shortstat", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        let stat = self.own.run(attempt, &[&words[..], &[&self.base, &commit]].concat())?;
        let (files, insertions, deletions) = counted(&stat);
        Ok(Changes { commit, files, insertions, deletions })
    }

    /// Removes the worktree; the branch stays.
    pub(super) fn remove(&self, attempt: &mut Attempt<'_>) {
        let Ok(_lock) = locked(&worktrees(attempt)) else { return };
        let path = self.own.root.to_string_lossy().into_owned();
        // A worktree that stays behind blocks nothing, and the log reports it.
        if let Err(error) = self.main.run(attempt, &["worktree", "remove", "--force", &path]) {
            attempt.log.say(&format!("waypost: the worktree {path} was left: {error}"), Secrets::NONE);
        }
    }

    /// Keeps the worktree after a failure, for inspection, and returns its path. If nothing was done in it, it is
    /// removed with its branch.
    pub(super) fn leave(&self, attempt: &mut Attempt<'_>) -> Option<String> {
        if self.is_untouched(attempt) {
            self.remove(attempt);
            let _may_stay =
                self.main.run(attempt, &["branch", "--quiet", "--delete", "--force", &self.branch]);
            return None;
        }
        Some(self.own.root.display().to_string())
    }

    fn is_untouched(&self, attempt: &mut Attempt<'_>) -> bool {
        // `git status` is safe only where there is no other repository.
        self.check_git_files(attempt).is_ok()
            && self.nested().is_ok_and(|nested| nested.is_empty())
            && self
                .own
                .run(attempt, &["status", "--porcelain", "--ignore-submodules=all"])
                .is_ok_and(|changed| changed.is_empty())
            && self.own.run(attempt, &["rev-parse", "HEAD"]).is_ok_and(|head| head == self.base)
    }

    fn nested(&self) -> Result<Vec<PathBuf>, String> {
        let root = &self.own.root;
        nested_repositories(root).map_err(|error| format!("{} cannot be read: {error}", root.display()))
    }
}

/// Returns the path in the `.git` file of a worktree.
fn git_directory(bytes: &[u8]) -> Result<&Path, String> {
    let path = bytes.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
    let path = path.ok_or("git wrote a .git file of an unknown form")?;
    Ok(Path::new(OsStr::from_bytes(path)))
}

/// Finds the folders below `root` that are repositories of their own, or cannot be listed and so might be. Git would run
/// the programs that their configuration names, whatever our settings say.
fn nested_repositories(root: &Path) -> io::Result<Vec<PathBuf>> {
    let (folders, _) = listed(root)?;
    let mut folders: Vec<PathBuf> = folders.into_iter().map(PathBuf::from).collect();
    let mut nested = Vec::new();
    while let Some(folder) = folders.pop() {
        match listed(&root.join(&folder)) {
            Ok((inner, false)) => folders.extend(inner.into_iter().map(|name| folder.join(name))),
            Ok((_, true)) | Err(_) => nested.push(folder),
        }
    }
    nested.sort();
    Ok(nested)
}

/// Returns the folders in a folder, and whether it has a `.git` of any kind.
fn listed(folder: &Path) -> io::Result<(Vec<OsString>, bool)> {
    let (mut folders, mut has_git) = (Vec::new(), false);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        // Some file systems ignore case.
        if name.eq_ignore_ascii_case(".git") {
            has_git = true;
        } else if entry.file_type()?.is_dir() {
            folders.push(name);
        }
    }
    Ok((folders, has_git))
}

/// Returns the pathspecs for everything but these folders, each ended by a zero byte.
fn all_but(folders: &[PathBuf]) -> Vec<u8> {
    let mut pathspecs = b".\0".to_vec();
    for folder in folders {
        pathspecs.extend_from_slice(b":(exclude,literal)");
        pathspecs.extend_from_slice(folder.as_os_str().as_bytes());
        pathspecs.push(0);
    }
    pathspecs
}

/// The directory with all worktrees of the workspace.
fn worktrees(attempt: &Attempt<'_>) -> PathBuf {
    attempt.around.logs.with_file_name("worktrees")
}

fn locked(own: &Path) -> Result<File, String> {
    let file = || {
        make_state_folder(own, 1)?;
        let file = open_state_file(&own.join(".lock"))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    };
    file().map_err(|error: io::Error| unusable(own, &error))
}

fn unusable(folder: &Path, error: &io::Error) -> String {
    format!("{} cannot be used: {error}", folder.display())
}

/// Removes worktrees that a killed run left half created. Their creation also needs the lock that is held here, so none
/// is in progress.
fn tidy(attempt: &mut Attempt<'_>, main: &Repository, own: &Path) -> Result<(), String> {
    let list = main.run(attempt, &["worktree", "list", "--porcelain"])?;
    for entry in list.split("\n\n").filter(|entry| entry.lines().any(|line| line == BEING_MADE)) {
        let path = entry.lines().find_map(|line| line.strip_prefix("worktree "));
        if let Some(path) = path.filter(|path| Path::new(path).starts_with(own)) {
            main.run(attempt, &["worktree", "unlock", path])?;
            let _half_made = fs::remove_dir_all(path);
        }
    }
    main.run(attempt, &["worktree", "prune"]).map(|_| ())
}

/// Returns the commit to start from: the branch of the preceding tasks, if they name exactly one, otherwise the
/// workspace's HEAD.
fn base(attempt: &mut Attempt<'_>, main: &Repository, before: Option<&str>) -> Result<String, String> {
    if let Some(branch) = before {
        // An output can contain anything: it is used only as the name of one of our branches.
        let name = format!("refs/heads/{branch}^{{commit}}");
        if branch.starts_with("waypost/")
            && let Ok(commit) =
                main.run(attempt, &["rev-parse", "--verify", "--quiet", "--end-of-options", &name])
        {
            return Ok(commit);
        }
    }
    main.run(attempt, &["rev-parse", "--verify", "HEAD^{commit}"])
        .map_err(|error| format!("the repository has no commit to begin at: {error}"))
}

/// Parses git's short statistics: files, insertions and deletions.
fn counted(stat: &str) -> (u64, u64, u64) {
    let find = |word: &str| {
        let part = stat.split(',').find(|part| part.contains(word));
        part.and_then(|part| part.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    (find(" file"), find("insertion"), find("deletion"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_as_git_writes_them() {
        assert_eq!(counted(" 3 files changed, 10 insertions(+), 2 deletions(-)"), (3, 10, 2));
        assert_eq!(counted(" 1 file changed, 1 deletion(-)"), (1, 0, 1));
        assert_eq!(counted(""), (0, 0, 0));
    }
}
