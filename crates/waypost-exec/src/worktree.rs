//! A git worktree for one attempt, so that concurrent agents do not touch each other's files.
//!
//! Every git command that creates or removes a worktree runs under one lock for the workspace, because git itself does
//! not serialize them.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use waypost_text::truncate_bytes;

use super::attempt::{Attempt, inside};
use super::process;
use crate::outcome::AttemptOutcome;
use waypost_store::log_file_name as file_name;

/// The variables that git gets from our environment: none for the language, because its messages are parsed.
const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "USER", "TMPDIR"];
/// Our git commands run no program of the repository and never wait for a person.
const SETTINGS: [&str; 4] =
    ["core.hooksPath=/dev/null", "commit.gpgSign=false", "gc.auto=0", "advice.detachedHead=false"];
/// The lock reason that git sets while it creates a worktree.
const BEING_MADE: &str = "locked initializing";
/// Bytes of the first line of a commit message.
const TITLE_BYTES_MAX: usize = 72;

/// The changes on a branch.
pub(super) struct Changes {
    pub(super) commit: String,
    pub(super) files: u64,
    pub(super) insertions: u64,
    pub(super) deletions: u64,
}

pub(super) struct Worktree {
    root: PathBuf,
    /// The directory of the workspace inside the worktree.
    workspace: PathBuf,
    branch: String,
    base: String,
}

impl Worktree {
    /// Creates the worktree of this attempt, from the branch of the preceding task or else from the workspace's HEAD.
    pub(super) fn make(attempt: &mut Attempt<'_>, before: Option<&str>) -> Result<Self, String> {
        let main = attempt.around.workspace.clone();
        let prefix = git(attempt, &main, &["rev-parse", "--show-prefix"])
            .map_err(|error| format!("`worktree = true` needs a git repository: {error}"))?;
        let own = worktrees(attempt);
        let _lock = locked(&own)?;
        tidy(attempt, &main, &own)?;
        let base = base(attempt, &main, before)?;
        let key = &attempt.job.key;
        let name = format!("{}.{}", file_name(key.task.as_str()), key.attempt);
        let branch = format!("waypost/{}/{}", key.plan, as_ref(&name));
        let root = own.join(key.plan.as_str()).join(name);
        let path = root.to_str().ok_or("the path of the workspace is not valid UTF-8")?.to_owned();
        git(attempt, &main, &["worktree", "add", "--quiet", "-b", &branch, &path, &base])?;
        Ok(Self { workspace: root.join(prefix), root, branch, base })
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

    /// Commits all changes to the branch.
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
        let root = &self.root;
        let head = git(attempt, root, &["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
        if head != format!("refs/heads/{}", self.branch) {
            return Err(format!("the agent has left its branch {}", self.branch));
        }
        git(attempt, root, &["add", "--all"])?;
        if git(attempt, root, &["diff", "--cached", "--quiet"]).is_err() {
            let title = truncate_bytes(title.lines().next().unwrap_or_default(), TITLE_BYTES_MAX);
            let body = format!("Waypost-Attempt: {}", super::attempt_spec::idempotency_key(&attempt.job.key));
            let (name, mail) = author
                .and_then(|author| author.strip_suffix('>')?.split_once(" <"))
                .map_or((String::new(), String::new()), |(name, mail)| {
                    (format!("user.name={name}"), format!("user.email={mail}"))
                });
            let mut words = Vec::new();
            if !name.is_empty() {
                words.extend(["-c", &name, "-c", &mail]);
            }
            let message = format!("--message={title}");
            let trailer = format!("--message={body}");
            words.extend(["commit", "--quiet", "--no-verify", &message, &trailer]);
            git(attempt, root, &words)?;
        }
        let commit = git(attempt, root, &["rev-parse", "HEAD"])?;
        let stat = git(attempt, root, &["diff", "--shortstat", &self.base, &commit])?;
        let (files, insertions, deletions) = counted(&stat);
        Ok(Changes { commit, files, insertions, deletions })
    }

    /// Removes the worktree; the branch stays.
    pub(super) fn remove(&self, attempt: &mut Attempt<'_>) {
        let main = attempt.around.workspace.clone();
        let Ok(_lock) = locked(&worktrees(attempt)) else { return };
        let path = self.root.to_string_lossy().into_owned();
        // A worktree that stays behind blocks nothing, and the log reports it.
        if let Err(error) = git(attempt, &main, &["worktree", "remove", "--force", &path]) {
            attempt.log.say(&format!("waypost: the worktree {path} was left: {error}"), &[]);
        }
    }

    /// Keeps the worktree after a failure, for inspection, and returns its path. If nothing was done in it, it is
    /// removed with its branch.
    pub(super) fn leave(&self, attempt: &mut Attempt<'_>) -> Option<String> {
        let status = git(attempt, &self.root, &["status", "--porcelain"]);
        let head = git(attempt, &self.root, &["rev-parse", "HEAD"]);
        if status.is_ok_and(|changed| changed.is_empty()) && head.is_ok_and(|head| head == self.base) {
            self.remove(attempt);
            let main = attempt.around.workspace.clone();
            let _may_stay = git(attempt, &main, &["branch", "--quiet", "--delete", "--force", &self.branch]);
            return None;
        }
        Some(self.root.display().to_string())
    }
}

/// The directory with all worktrees of the workspace.
fn worktrees(attempt: &Attempt<'_>) -> PathBuf {
    attempt.around.logs.with_file_name("worktrees")
}

fn locked(own: &Path) -> Result<File, String> {
    let file = || {
        fs::create_dir_all(own)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(own.join(".lock"))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    };
    file().map_err(|error: std::io::Error| format!("{} cannot be used: {error}", own.display()))
}

/// Removes worktrees that a killed run left half created. Their creation also needs the lock that is held here, so none
/// is in progress.
fn tidy(attempt: &mut Attempt<'_>, main: &Path, own: &Path) -> Result<(), String> {
    let list = git(attempt, main, &["worktree", "list", "--porcelain"])?;
    for entry in list.split("\n\n").filter(|entry| entry.lines().any(|line| line == BEING_MADE)) {
        let path = entry.lines().find_map(|line| line.strip_prefix("worktree "));
        if let Some(path) = path.filter(|path| Path::new(path).starts_with(own)) {
            git(attempt, main, &["worktree", "unlock", path])?;
            let _half_made = fs::remove_dir_all(path);
        }
    }
    git(attempt, main, &["worktree", "prune"]).map(|_| ())
}

/// Returns the commit to start from: the branch of the preceding tasks, if they name exactly one, otherwise the
/// workspace's HEAD.
fn base(attempt: &mut Attempt<'_>, main: &Path, before: Option<&str>) -> Result<String, String> {
    if let Some(branch) = before {
        // An output can contain anything: it is used only as the name of one of our branches.
        let name = format!("refs/heads/{branch}^{{commit}}");
        if branch.starts_with("waypost/")
            && let Ok(commit) =
                git(attempt, main, &["rev-parse", "--verify", "--quiet", "--end-of-options", &name])
        {
            return Ok(commit);
        }
    }
    git(attempt, main, &["rev-parse", "--verify", "HEAD^{commit}"])
        .map_err(|error| format!("the repository has no commit to begin at: {error}"))
}

/// Returns a name that git accepts in a branch.
fn as_ref(name: &str) -> String {
    name.replace('~', "-").replace("..", ".%2e")
}

/// Parses git's short statistics: files, insertions and deletions.
fn counted(stat: &str) -> (u64, u64, u64) {
    let find = |word: &str| {
        let part = stat.split(',').find(|part| part.contains(word));
        part.and_then(|part| part.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    (find(" file"), find("insertion"), find("deletion"))
}

/// Runs git to its end. Returns its output without trailing whitespace.
fn git(attempt: &mut Attempt<'_>, directory: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = vec!["git".to_owned()];
    command.extend(SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]));
    command.extend(words.iter().map(|word| (*word).to_owned()));
    process::tool_output(attempt, command, &ENVIRONMENT, directory).map_err(|error| {
        let word = words.iter().find(|word| !word.starts_with('-') && !word.contains('=')).unwrap_or(&"");
        format!("git {word} failed ({error})")
    })
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
