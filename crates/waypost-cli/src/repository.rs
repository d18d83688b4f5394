//! The git repository around the workspace, for what is linked with its commits.

use std::collections::BTreeMap;
use std::path::Path;

use waypost_git::Repository;

use crate::actor::account;

/// Variables that git gets, besides the home.
const VARIABLES: [&str; 3] = ["PATH", "USER", "TMPDIR"];

/// Finds the repository; `None` if there is none, no git, or one that git does not trust.
pub fn around(workspace: &Path) -> Option<Repository> {
    let known = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    let mut environment: BTreeMap<String, String> = VARIABLES.into_iter().filter_map(known).collect();
    let home = account().home.as_ref()?.to_str()?;
    environment.insert("HOME".to_owned(), home.to_owned());
    Repository::find(&environment, workspace).ok()
}
