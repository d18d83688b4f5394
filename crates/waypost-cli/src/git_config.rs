//! The user's own git configuration. That of a repository is never read: it can name any file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use waypost_git::Git;

use crate::actor::account;

/// Returns a setting of git's global configuration; `None` if it, git or the home is missing.
pub fn global(setting: &str) -> Option<String> {
    let home = account().home.as_ref()?.to_str()?;
    let path = std::env::var("PATH").ok()?;
    let environment = BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), home.to_owned())]);
    let git = Git::find(&environment, &std::env::current_dir().ok()?).ok()?;
    let words = git.command(&["config", "--global", "--get", setting]);
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    // No repository is there.
    command.args(arguments).env_clear().envs(git.variables.iter().cloned()).current_dir("/");
    let output = command.output().ok().filter(|output| output.status.success())?;
    let value = String::from_utf8(output.stdout).ok()?;
    Some(value.trim_end_matches('\n').to_owned()).filter(|value| !value.is_empty())
}

/// Returns the file that a global setting names; `~/` is the account's home.
pub fn global_file(setting: &str) -> Option<PathBuf> {
    let value = global(setting)?;
    match value.strip_prefix("~/") {
        Some(rest) => Some(account().home.as_ref()?.join(rest)),
        None => Some(PathBuf::from(value)).filter(|file| file.is_absolute()),
    }
}

/// Returns the key with which the user signs commits, if git signs with SSH keys and a file holds the key.
pub fn signing_key() -> Option<PathBuf> {
    global("gpg.format").filter(|format| format == "ssh")?;
    global_file("user.signingKey").filter(|file| file.is_file())
}
