//! Repositories in temporary folders, and git as people use it in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use waypost_core::PlanId;
use waypost_git::{Author, GitError, Oid, PlanBranch, Publication, RefName, RemoteName, Repository, Segment};
use waypost_testkit::program_path;

pub(crate) const AT: Author = Author { seconds: 1_700_000_000 };

/// A folder that is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("waypost-git-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let home = self.0.to_str().unwrap().to_owned();
        BTreeMap::from([("PATH".to_owned(), program_path()), ("HOME".to_owned(), home)])
    }

    /// Makes a bare repository.
    pub(crate) fn bare(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        git(&self.0, &["init", "--quiet", "--bare", "--initial-branch=main", path.to_str().unwrap()]);
        path
    }

    /// Makes a repository with one commit on `main`.
    pub(crate) fn repository(&self, name: &str) -> Clone {
        let path = self.0.join(name);
        git(&self.0, &["init", "--quiet", "--initial-branch=main", path.to_str().unwrap()]);
        std::fs::write(path.join("code.rs"), "fn main() {}\n").unwrap();
        git(&path, &["add", "."]);
        git(&path, &["commit", "--quiet", "-m", "code"]);
        self.open(path)
    }

    /// Clones a repository.
    pub(crate) fn clone(&self, from: &Path, name: &str) -> Clone {
        let path = self.0.join(name);
        git(&self.0, &["clone", "--quiet", from.to_str().unwrap(), path.to_str().unwrap()]);
        self.open(path)
    }

    pub(crate) fn find(&self, path: &Path) -> Result<Repository, GitError> {
        Repository::find(&self.environment(), path)
    }

    pub(crate) fn open(&self, path: PathBuf) -> Clone {
        self.open_with(path, &[])
    }

    /// Opens a repository with further variables of the environment.
    pub(crate) fn open_with(&self, path: PathBuf, variables: &[(&str, &str)]) -> Clone {
        let mut environment = self.environment();
        environment.extend(variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        let repository = Repository::find(&environment, &path).unwrap();
        Clone { path, repository, name: RefName::new("refs/heads/waypost").unwrap() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs git as a person does, and returns what it printed.
pub(crate) fn try_git(folder: &Path, words: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(words)
        .current_dir(folder)
        .env_clear()
        .env("PATH", program_path())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")])
        .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@example.org")])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

pub(crate) fn git(folder: &Path, words: &[&str]) -> String {
    try_git(folder, words).unwrap_or_else(|error| panic!("git {words:?}: {error}"))
}

/// A repository and its branch of plans.
pub(crate) struct Clone {
    pub(crate) path: PathBuf,
    pub(crate) repository: Repository,
    pub(crate) name: RefName,
}

pub(crate) fn plan(name: &str) -> PlanId {
    PlanId::new(name).unwrap()
}

pub(crate) fn origin() -> RemoteName {
    RemoteName::new("origin").unwrap()
}

impl Clone {
    pub(crate) fn branch(&self) -> PlanBranch<'_> {
        PlanBranch::new(&self.repository, &self.name)
    }

    pub(crate) fn git(&self, words: &[&str]) -> String {
        git(&self.path, words)
    }

    pub(crate) fn tip(&self) -> Option<Oid> {
        self.branch().tip().unwrap().map(|tip| tip.commit)
    }

    /// Publishes lines of a plan.
    pub(crate) fn publish(&self, name: &str, clock: u64, lines: &[&str]) -> Oid {
        let files = vec![Segment::new(&plan(name), clock, "k7f", lines)];
        let publication = Publication { files, message: "records\n".to_owned(), ..Publication::default() };
        self.branch().publish(self.tip().as_ref(), &publication, AT).unwrap()
    }

    /// Fetches, joins and pushes once.
    pub(crate) fn sync(&self) -> waypost_git::Pushed {
        if let waypost_git::Fetched::Tip(theirs) = self.branch().fetch(&origin()).unwrap() {
            self.branch().join(self.tip().as_ref(), &theirs, AT).unwrap();
        }
        self.branch().push(&origin(), &self.tip().unwrap()).unwrap()
    }

    /// All lines of the branch, sorted, each once; with what cannot be read.
    pub(crate) fn lines(&self) -> (Vec<String>, Vec<String>) {
        let Some(tip) = self.tip() else { return Default::default() };
        let (files, mut damage) = self.repository.files(&tip, "plans/").unwrap();
        let files: Vec<_> = files.into_iter().filter(|file| file.plan().is_some()).collect();
        let mut lines = Vec::new();
        damage.extend(
            self.repository.read_lines(&tip, &files, |line| lines.push(line.text.to_owned())).unwrap(),
        );
        lines.sort();
        lines.dedup();
        (lines, damage.iter().map(ToString::to_string).collect())
    }

    /// The paths of the branch.
    pub(crate) fn paths(&self) -> Vec<String> {
        let (files, _) = self.repository.files(&self.tip().unwrap(), "").unwrap();
        files.into_iter().map(|file| file.path).collect()
    }
}
