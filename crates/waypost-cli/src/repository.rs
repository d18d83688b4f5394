//! The git repository around the workspace, for what is linked with its commits.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use waypost_git::{Git, Repository};

use crate::actor::account;
use crate::store_location::DATABASE;

/// Variables that git gets, besides the home.
const VARIABLES: [&str; 3] = ["PATH", "USER", "TMPDIR"];

/// Finds the repository; `None` if there is none, no git, or one that git does not trust.
pub fn around(workspace: &Path) -> Option<Repository> {
    Repository::find(&environment()?, workspace).ok()
}

/// Says what to do if git would commit the store in Waypost's own folder; `None` if it ignores it, or is not used here.
pub fn not_ignored(own: &Path) -> Option<String> {
    let git = Git::find(&environment()?, own).ok()?;
    let folder = own.to_str()?;
    let line = git.command(&["-C", folder, "check-ignore", "--quiet", "--no-index", DATABASE]);
    let mut command = Command::new(line.first()?);
    command.args(&line[1..]).env_clear().envs(git.variables.iter().cloned()).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    // Where there is no repository, it fails otherwise.
    let is_exposed = status.code() == Some(1);
    is_exposed.then(|| {
        let ignore = own.join(".gitignore");
        format!(
            "git does not ignore {}: put a line `*` at the top of {}",
            own.join(DATABASE).display(),
            ignore.display()
        )
    })
}

fn environment() -> Option<BTreeMap<String, String>> {
    let known = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    let mut environment: BTreeMap<String, String> = VARIABLES.into_iter().filter_map(known).collect();
    let home = account().home.as_ref()?.to_str()?;
    environment.insert("HOME".to_owned(), home.to_owned());
    Some(environment)
}
