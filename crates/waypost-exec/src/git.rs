//! Git, run so that it executes nothing that a repository names: its program from outside of the repository, a closed
//! environment, and settings that override the repository's own.
//!
//! Settings do not reach a repository nested in another one: callers leave those out (`worktree.rs`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The variables that git gets from our environment, besides `PATH`: none for the language, because its messages are
/// parsed.
const ENVIRONMENT: [&str; 3] = ["HOME", "USER", "TMPDIR"];
/// Git waits for nobody and writes no index that was only read.
const FIXED: [(&str, &str); 2] = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
const SETTINGS: [&str; 10] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.sshCommand=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    "commit.gpgSign=false",
    "gc.auto=0",
];

/// The git program and its environment.
#[derive(Clone, Debug)]
pub struct Git {
    program: String,
    /// All of its environment variables.
    pub variables: Vec<(&'static str, String)>,
}

impl Git {
    /// Finds git in `PATH`, outside of the repository around the workspace: what is in there, others may have written.
    pub fn find(environment: &BTreeMap<String, String>, workspace: &Path) -> Result<Self, String> {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let root = workspace.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&workspace);
        let real_outside = |path: &Path| path.canonicalize().ok().filter(|real| !real.starts_with(root));
        let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
        let folders: Vec<PathBuf> = path
            .split(':')
            .filter(|folder| folder.starts_with('/'))
            .filter_map(|folder| real_outside(Path::new(folder)))
            .collect();
        let program = folders.iter().map(|folder| folder.join("git")).find(|program| {
            // A link in a folder outside may lead inside.
            real_outside(program).is_some_and(|real| real.is_file())
        });
        let program = program.and_then(|program| program.into_os_string().into_string().ok());
        let program = program.ok_or("git is not in the PATH, or only inside of the repository")?;
        let path = folders.iter().filter_map(|folder| folder.to_str()).collect::<Vec<_>>().join(":");
        let known = |name: &'static str| Some((name, environment.get(name)?.clone()));
        let mut variables = vec![("PATH", path)];
        variables.extend(ENVIRONMENT.into_iter().filter_map(known));
        variables.extend(FIXED.map(|(name, value)| (name, value.to_owned())));
        Ok(Self { program, variables })
    }

    /// Builds the command line: the program, its settings, and these words.
    pub fn command(&self, words: &[&str]) -> Vec<String> {
        let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        let all = std::iter::once(self.program.as_str()).chain(settings).chain(words.iter().copied());
        all.map(str::to_owned).collect()
    }
}
