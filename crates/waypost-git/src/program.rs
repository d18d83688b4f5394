//! Git, run so that it executes nothing that a repository names: its program from outside of the repository, a closed
//! environment, and settings that override the repository's own. The user's own settings count, also those of the
//! environment. Commands that reach a remote may use the user's own ways to sign in, and nothing else.
//!
//! Settings do not reach a repository nested in another one: callers leave those out.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variables that git gets from our environment, besides `PATH`: none for the language, because its messages are
/// parsed.
const ENVIRONMENT: [&str; 3] = ["HOME", "USER", "TMPDIR"];
/// Git waits for nobody and writes no index that was only read.
const FIXED: [(&str, &str); 2] = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
const SETTINGS: [&str; 9] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "safe.bareRepository=explicit",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
];
/// Settings of commands that reach no other machine.
const LOCAL: [&str; 2] = ["core.sshCommand=false", "protocol.allow=never"];
/// Settings of commands that reach a remote: the transports that start no program which an address names.
const REMOTE: [&str; 7] = [
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.http.allow=always",
    "protocol.ssh.allow=always",
    "protocol.git.allow=always",
    "protocol.file.allow=always",
    "push.followTags=false",
];
/// Settings of commands that write objects and references: what is acknowledged survives a power cut.
const DURABLE: [&str; 2] = ["core.fsync=objects,derived-metadata,reference", "core.fsyncMethod=fsync"];
/// Further variables of commands that reach a remote: how the user signs in there, and which proxy is used.
const REMOTE_ENVIRONMENT: [&str; 25] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "ALL_PROXY",
    "all_proxy",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_SSL_NO_VERIFY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// The variables that hold settings of the user, or name files of them. They count less than our own settings, as the files do.
const SETTINGS_ENVIRONMENT: [&str; 4] =
    ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_PARAMETERS"];
/// The variable that says how many settings the variables [`NUMBERED_ENVIRONMENT`] hold.
const SETTINGS_COUNT: &str = "GIT_CONFIG_COUNT";
/// The beginnings of the names of numbered variables, each of which holds a part of a setting.
const NUMBERED_ENVIRONMENT: [&str; 2] = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
/// Maximum number of settings in numbered variables.
const NUMBERED_SETTINGS_MAX: usize = 1_000;

/// What a git command may do besides reading the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    Remote,
}

/// The git program and its environment.
#[derive(Clone, Debug)]
pub struct Git {
    program: String,
    /// All of its environment variables.
    pub variables: Vec<(&'static str, String)>,
    /// Those that commands get besides, if they reach a remote.
    remote_variables: Vec<(&'static str, String)>,
    /// Those that hold the user's settings.
    settings_variables: Vec<(String, String)>,
}

/// Returns the variables that hold settings of the user.
fn settings_variables(environment: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let count = environment.get(SETTINGS_COUNT).and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
    let numbered = (0..count.min(NUMBERED_SETTINGS_MAX))
        .flat_map(|number| NUMBERED_ENVIRONMENT.map(|name| format!("{name}{number}")));
    let named = SETTINGS_ENVIRONMENT.into_iter().chain([SETTINGS_COUNT]).map(str::to_owned);
    let known = |name: String| Some((name.clone(), environment.get(&name)?.clone()));
    named.chain(numbered).filter_map(known).collect()
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
        let remote_variables = REMOTE_ENVIRONMENT.into_iter().filter_map(known).collect();
        let settings_variables = settings_variables(environment);
        Ok(Self { program, variables, remote_variables, settings_variables })
    }

    /// Builds the command line: the program, its settings, and these words.
    pub fn command(&self, words: &[&str]) -> Vec<String> {
        self.command_with(&LOCAL, words)
    }

    fn command_with(&self, more: &[&str], words: &[&str]) -> Vec<String> {
        let settings = SETTINGS.iter().chain(more).flat_map(|setting| ["-c", setting]);
        let all = std::iter::once(self.program.as_str()).chain(settings).chain(words.iter().copied());
        all.map(str::to_owned).collect()
    }

    /// Prepares a command with its environment and its settings. It runs in a process group of its own.
    pub(crate) fn prepare(&self, access: Access, words: &[&str]) -> Command {
        let more: Vec<&str> = match access {
            Access::Read => LOCAL.to_vec(),
            Access::Write => LOCAL.into_iter().chain(DURABLE).collect(),
            Access::Remote => REMOTE.into_iter().chain(DURABLE).collect(),
        };
        let line = self.command_with(&more, words);
        let mut command = Command::new(&self.program);
        command.args(&line[1..]).env_clear().process_group(0);
        command.envs(self.variables.iter().cloned()).envs(self.settings_variables.iter().cloned());
        if access == Access::Remote {
            command.envs(self.remote_variables.iter().cloned());
        }
        command
    }
}
