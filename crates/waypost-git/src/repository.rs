//! A repository as the plan branch needs it: its folders, its references, and who writes commits there.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::GitError;
use crate::program::{Access, Git};
use crate::run::{LOCAL, Output, REMOTE, Running, run};

/// The setting that names which bare repositories count.
const BARE: &str = "safe.bareRepository";
/// Maximum bytes of the name of a reference or a remote.
const NAME_BYTES_MAX: usize = 200;

/// The name of a commit or another object: hexadecimal, so that no command takes it for an option.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid(String);

impl Oid {
    /// Checks that a text is the name of an object.
    pub fn new(text: &str) -> Result<Self, GitError> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
        match is_hex && matches!(text.len(), 40 | 64) {
            true => Ok(Self(text.to_owned())),
            false => Err(bad_name("object", text, "is not the name of an object")),
        }
    }

    /// Returns the name in hexadecimal.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first characters, for messages.
    pub fn short(&self) -> &str {
        &self.0[..8]
    }

    /// The name that stands for no object in this repository.
    pub(crate) fn zero(&self) -> String {
        "0".repeat(self.0.len())
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whether git takes an address for a path: no scheme, and no host before a colon.
fn is_path(address: &str) -> bool {
    let host = address.split('/').next().unwrap_or_default();
    !address.contains("://") && !host.contains(':')
}

fn bad_name(what: &'static str, name: &str, problem: &'static str) -> GitError {
    GitError::BadName { what, name: name.to_owned(), problem }
}

/// Whether a name has only characters that mean nothing to git, to a shell or to a file system.
fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/'))
        && name.split('/').all(is_part)
}

/// The full name of the reference that holds the plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefName(String);

impl RefName {
    /// Checks the name of a reference: a branch, or a reference below `refs/waypost/`.
    pub fn new(name: &str) -> Result<Self, GitError> {
        if !is_plain(name) {
            return Err(bad_name("the reference", name, "is not a plain name"));
        }
        let is_known = ["refs/heads/", "refs/waypost/"].iter().any(|start| name.starts_with(start));
        match is_known {
            true => Ok(Self(name.to_owned())),
            false => Err(bad_name("the reference", name, "is neither refs/heads/… nor refs/waypost/…")),
        }
    }

    /// Returns the full name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as people write it.
    pub fn short(&self) -> &str {
        self.0.strip_prefix("refs/heads/").unwrap_or(&self.0)
    }

    /// Returns the reference that remembers it as a remote had it last.
    pub fn tracking(&self, remote: &RemoteName) -> String {
        match (self.0.strip_prefix("refs/heads/"), self.0.strip_prefix("refs/waypost/")) {
            (Some(branch), _) => format!("refs/remotes/{}/{branch}", remote.0),
            (None, Some(name)) => format!("refs/waypost-remotes/{}/{name}", remote.0),
            (None, None) => format!("refs/waypost-remotes/{}/{}", remote.0, self.0),
        }
    }
}

/// The name of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteName(String);

impl RemoteName {
    /// Checks the name of a remote.
    pub fn new(name: &str) -> Result<Self, GitError> {
        match is_plain(name) {
            true => Ok(Self(name.to_owned())),
            false => Err(bad_name("the remote", name, "is not a plain name")),
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A reference and what it points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The commit.
    pub commit: Oid,
    /// The worktree that has it checked out.
    pub checked_out: Option<String>,
}

/// A repository, with the program that works on it.
#[derive(Clone, Debug)]
pub struct Repository {
    git: Git,
    git_dir: String,
    common: PathBuf,
    /// Where git runs if it reaches a remote.
    folder: PathBuf,
    identity: OnceLock<(String, String)>,
}

impl Repository {
    /// Finds the repository around a folder. Git itself refuses one that belongs to another user.
    pub fn find(environment: &BTreeMap<String, String>, folder: &Path) -> Result<Self, GitError> {
        let git = Git::find(environment, folder).map_err(GitError::NoProgram)?;
        let found = Self {
            git,
            git_dir: String::new(),
            common: PathBuf::new(),
            folder: folder.to_owned(),
            identity: OnceLock::new(),
        };
        let words = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let mut output = found.output(Access::Read, &words, b"")?;
        if !output.succeeded && output.message.contains(BARE) && found.may_be_bare()? {
            let words = ["-c", "safe.bareRepository=all"].into_iter().chain(words);
            output = found.output(Access::Read, &Vec::from_iter(words), b"")?;
        }
        if !output.succeeded {
            return match output.message.contains("not a git repository") {
                true => Err(GitError::NoRepository(folder.to_owned())),
                false => Err(GitError::Failed { command: "rev-parse".to_owned(), message: output.message }),
            };
        }
        let git_dir = text(output, "rev-parse")?;
        let common = PathBuf::from(&git_dir);
        // Git resolves a relative address from the root of the work tree.
        let folder = match (common.file_name(), common.parent()) {
            (Some(name), Some(root)) if name == ".git" => root.to_owned(),
            _ => found.work_tree()?.unwrap_or_else(|| common.clone()),
        };
        Ok(Self { git_dir, common, folder, ..found })
    }

    /// Whether a bare repository counts that nothing but its place names. One inside of another repository does not: what it holds,
    /// others may have committed there.
    fn may_be_bare(&self) -> Result<bool, GitError> {
        let is_inside = self.folder.ancestors().any(|folder| folder.join(".git").symlink_metadata().is_ok());
        let refuses = || Ok(self.users_setting(BARE)?.is_some_and(|value| value == "explicit"));
        Ok(!is_inside && !refuses()?)
    }

    fn work_tree(&self) -> Result<Option<PathBuf>, GitError> {
        let words = ["rev-parse", "--path-format=absolute", "--show-toplevel"];
        let output = self.output(Access::Read, &words, b"")?;
        match output.succeeded {
            true => Ok(Some(PathBuf::from(text(output, "rev-parse")?))),
            false => Ok(None),
        }
    }

    /// Returns the folder that all worktrees of the repository share.
    pub fn common_folder(&self) -> &Path {
        &self.common
    }

    /// Whether git tracks files in a folder. Each worktree has an index of its own: the one around the folder counts.
    pub fn tracks(&self, folder: &Path) -> Result<bool, GitError> {
        let (git_dir, common) = (String::new(), PathBuf::new());
        let around = Self { git_dir, common, folder: folder.to_owned(), ..self.clone() };
        let listed = around.output(Access::Read, &["ls-files", "--", "."], b"")?;
        Ok(listed.succeeded && !listed.text.is_empty())
    }

    /// Returns the folder of hooks that the configuration names instead of the repository's own.
    pub fn hooks_path(&self) -> Result<Option<String>, GitError> {
        Ok(self.users_setting("core.hooksPath")?.filter(|path| !path.is_empty()))
    }

    /// Returns a setting without ours, which count more.
    fn users_setting(&self, name: &str) -> Result<Option<String>, GitError> {
        let words = ["config", "--null", "--show-scope", "--get-all", name];
        let output = self.output(Access::Read, &words, b"")?;
        let listed = String::from_utf8_lossy(&output.text).into_owned();
        let mut parts = listed.split('\0');
        let mut found = None;
        while let (Some(scope), Some(value)) = (parts.next(), parts.next()) {
            if scope != "command" {
                found = Some(value.to_owned());
            }
        }
        Ok(found)
    }

    /// Returns the address from which a remote is read, as git resolves it; `None` if there is no such remote. A path is
    /// absolute, so that it means the same in every folder.
    pub fn remote_address(&self, remote: &RemoteName) -> Result<Option<String>, GitError> {
        let output = self.output(Access::Read, &["remote", "get-url", remote.as_str()], b"")?;
        if !output.succeeded {
            return Ok(None);
        }
        let address = text(output, "remote")?;
        if !is_path(&address) {
            return Ok(Some(address));
        }
        let path = self.folder.join(&address);
        let path = path.canonicalize().unwrap_or(path);
        Ok(Some(path.display().to_string()))
    }

    /// Returns the remotes that have a plain name.
    pub fn remotes(&self) -> Result<Vec<RemoteName>, GitError> {
        let listed = text(self.succeed(Access::Read, &["remote"], b"")?, "remote")?;
        Ok(listed.lines().filter_map(|name| RemoteName::new(name).ok()).collect())
    }

    /// Returns the remote that the current branch of the main checkout follows.
    pub fn upstream_remote(&self) -> Result<Option<RemoteName>, GitError> {
        let head = self.output(Access::Read, &["symbolic-ref", "--quiet", "HEAD"], b"")?;
        if !head.succeeded {
            return Ok(None);
        }
        let branch = text(head, "symbolic-ref")?;
        let words = ["for-each-ref", "--format=%(upstream:remotename)", "--", &branch];
        let listed = text(self.succeed(Access::Read, &words, b"")?, "for-each-ref")?;
        Ok(listed.lines().next().and_then(|name| RemoteName::new(name).ok()))
    }

    /// Returns what a reference points to; `None` if there is none.
    pub fn tip(&self, name: &str) -> Result<Option<Tip>, GitError> {
        let format = "--format=%(refname)%00%(objectname)%00%(objecttype)%00%(symref)%00%(worktreepath)";
        let listed =
            text(self.succeed(Access::Read, &["for-each-ref", format, "--", name], b"")?, "for-each-ref")?;
        // The pattern also matches references below the name.
        for line in listed.lines() {
            let fields: Vec<&str> = line.split('\0').collect();
            let &[found, commit, kind, symbolic, folder] = &fields[..] else {
                return Err(malformed("for-each-ref", line));
            };
            if found != name {
                continue;
            }
            let not_ours = |problem| GitError::NotOurs { name: name.to_owned(), problem };
            if !symbolic.is_empty() {
                return Err(not_ours("is a symbolic reference"));
            }
            if kind != "commit" {
                return Err(not_ours("does not point to a commit"));
            }
            let checked_out = Some(folder.to_owned()).filter(|folder| !folder.is_empty());
            return Ok(Some(Tip { commit: Oid::new(commit)?, checked_out }));
        }
        Ok(None)
    }

    /// Returns the commit that a name of the user's means.
    pub fn commit_of(&self, name: &str) -> Result<Oid, GitError> {
        let wanted = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let output = self.output(Access::Read, &words, b"")?;
        match output.succeeded {
            true => Oid::new(&text(output, "rev-parse")?),
            false => Err(bad_name("the commit", name, "does not exist")),
        }
    }

    /// Whether one commit is reachable from another.
    pub fn is_ancestor(&self, ancestor: &Oid, of: &Oid) -> Result<bool, GitError> {
        let words = ["merge-base", "--is-ancestor", ancestor.as_str(), of.as_str()];
        let output = self.output(Access::Read, &words, b"")?;
        match output.message.is_empty() {
            true => Ok(output.succeeded),
            false => Err(GitError::Failed { command: "merge-base".to_owned(), message: output.message }),
        }
    }

    /// Returns a commit that two commits have in common; `None` for unrelated histories.
    pub(crate) fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, GitError> {
        let output = self.output(Access::Read, &["merge-base", one.as_str(), other.as_str()], b"")?;
        match output.succeeded {
            true => Oid::new(text(output, "merge-base")?.lines().next().unwrap_or_default()).map(Some),
            false => Ok(None),
        }
    }

    /// Whether the repository still has an object.
    pub fn has(&self, oid: &Oid) -> Result<bool, GitError> {
        Ok(self.output(Access::Read, &["cat-file", "-e", oid.as_str()], b"")?.succeeded)
    }

    /// Returns the name and the address of whoever commits here.
    pub(crate) fn identity(&self) -> Result<(String, String), GitError> {
        if let Some(known) = self.identity.get() {
            return Ok(known.clone());
        }
        let output = self.output(Access::Read, &["var", "GIT_COMMITTER_IDENT"], b"")?;
        // Git refuses to guess an identity on machines without a name; a plan is shared all the same.
        let found = output.succeeded.then(|| text(output, "var")).transpose()?;
        let found = found.as_deref().and_then(name_and_address);
        let identity = found.unwrap_or_else(|| ("Waypost".to_owned(), "waypost@localhost".to_owned()));
        Ok(self.identity.get_or_init(|| identity).clone())
    }

    pub(crate) fn prepare(&self, access: Access, words: &[&str]) -> std::process::Command {
        let folder = format!("--git-dir={}", self.git_dir);
        let all: Vec<&str> = match self.git_dir.is_empty() {
            true => words.to_vec(),
            false => std::iter::once(folder.as_str()).chain(words.iter().copied()).collect(),
        };
        let mut command = self.git.prepare(access, &all);
        let is_found = !self.common.as_os_str().is_empty();
        command.current_dir(if is_found && access != Access::Remote { &self.common } else { &self.folder });
        if let Some((name, address)) = self.identity.get() {
            command.env("GIT_COMMITTER_NAME", name).env("GIT_COMMITTER_EMAIL", address);
        }
        command
    }

    /// Runs a command to its end, whether it succeeds or not.
    pub(crate) fn output(&self, access: Access, words: &[&str], input: &[u8]) -> Result<Output, GitError> {
        // Settings stand before it.
        let mut named = words;
        while let ["-c", _, rest @ ..] = named {
            named = rest;
        }
        let name = named.first().copied().unwrap_or_default();
        let limit = if access == Access::Remote { REMOTE } else { LOCAL };
        let output = run(name, self.prepare(access, words), input, limit)?;
        // A partial clone has what it has read so far; the remote has the rest.
        match access != Access::Remote && !output.succeeded && output.message.contains("promisor remote") {
            true => run(name, self.prepare(Access::Remote, words), input, REMOTE),
            false => Ok(output),
        }
    }

    /// Runs a command that has to succeed.
    pub(crate) fn succeed(&self, access: Access, words: &[&str], input: &[u8]) -> Result<Output, GitError> {
        let output = self.output(access, words, input)?;
        match output.succeeded {
            true => Ok(output),
            false => {
                let command = words.first().copied().unwrap_or_default().to_owned();
                Err(GitError::Failed { command, message: output.message })
            }
        }
    }

    /// Starts a command that is fed and read piece by piece.
    pub(crate) fn start(&self, access: Access, words: &[&str]) -> Result<Running, GitError> {
        Running::start(words.first().copied().unwrap_or_default(), self.prepare(access, words))
    }
}

/// Splits `NAME <ADDRESS> TIME ZONE`.
fn name_and_address(identity: &str) -> Option<(String, String)> {
    let (name, rest) = identity.split_once(" <")?;
    let (address, _) = rest.split_once('>')?;
    let is_plain = |text: &str| !text.is_empty() && !text.contains(['<', '>', '\n', '\0']);
    (is_plain(name) && is_plain(address)).then(|| (name.to_owned(), address.to_owned()))
}

pub(crate) fn text(output: Output, command: &str) -> Result<String, GitError> {
    let text = String::from_utf8(output.text).map_err(|_| malformed(command, "not UTF-8"))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

pub(crate) fn malformed(command: &str, output: &str) -> GitError {
    GitError::Malformed { command: command.to_owned(), output: output.chars().take(200).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_that_could_mean_something_else_is_refused() {
        for name in ["refs/heads/waypost", "refs/waypost/plans", "refs/heads/team/plans"] {
            assert!(RefName::new(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "HEAD",
            "waypost",
            "refs/heads/",
            "refs/heads/-x",
            "refs/heads/a..b",
            "refs/heads/a b",
            "refs/heads/a.lock",
            "refs/tags/x",
            "refs/remotes/origin/x",
            "refs/heads/../x",
            "refs/heads/a//b",
            "refs/heads/x:y",
            "refs/heads/*",
        ] {
            assert!(RefName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_remote_is_not_an_option_or_an_address() {
        assert!(RemoteName::new("origin").is_ok());
        for name in ["", "-upload-pack=x", "ext::sh", "../x", "https://a/b", "a b"] {
            assert!(RemoteName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn an_identity_is_split_only_if_it_is_one() {
        let identity = |text: &str| name_and_address(text);
        assert_eq!(identity("Ada L <ada@x.org> 1 +0000"), Some(("Ada L".to_owned(), "ada@x.org".to_owned())));
        assert_eq!(identity("nobody"), None);
        assert_eq!(identity(" <a> 1 +0000"), None);
    }
}
