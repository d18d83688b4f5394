//! The account of the effective user, from the passwd database, and the places of its files. Reads none of them.

use std::env;
use std::path::{Path, PathBuf};

use nix::unistd::{Group, Uid, User};
use waypost_core::canonical::sha256;
use waypost_text::hex;

/// The folder of the operator's files.
const OPERATOR: &str = "/etc/waypost";
/// The configuration in the operator's and in the user's folder.
const CONFIG: &str = "config.toml";
/// The signers in the operator's and in the user's folder.
const SIGNERS: &str = "allowed_signers";

/// The operator's tokens, which count for every store.
const TOKENS: &str = "tokens.json";

/// The account that this process acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    /// The name in the passwd database; the user id if there is no entry.
    pub name: String,
    /// `None` without an entry in the passwd database, and if the folder does not exist.
    pub home: Option<PathBuf>,
    /// The group that only this user belongs to: it has the user's name and is the user's primary group.
    pub private_group: Option<u32>,
    /// The user who became root with `sudo`.
    pub sudo_uid: Option<u32>,
    /// Folders above this one are not examined; empty to examine all. Only tests set it.
    pub examined_below: PathBuf,
}

/// The kinds of records in the account's state folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Trusted folders.
    Trust,
    /// Remotes whose shared plans are trusted.
    Remotes,
    /// The id of the store at a location.
    Stores,
    /// Tokens of the HTTP API.
    Tokens,
    /// Signed-in browsers of the dashboard.
    Sessions,
    /// Folders of other programs whose files are kept together with plans.
    Links,
}

impl Records {
    fn folder(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Remotes => "remotes",
            Self::Stores => "stores",
            Self::Tokens => "tokens",
            Self::Sessions => "sessions",
            Self::Links => "links",
        }
    }
}

impl Account {
    /// Returns the account of the effective user.
    pub fn current() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        // A database that cannot be read is like one without an entry: then nothing is vouched for.
        let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        let private_group = user.as_ref().and_then(private_group);
        let name = user.as_ref().map_or_else(|| uid.to_string(), |user| user.name.clone());
        let home = user.map(|user| user.dir);
        let sudo_uid = env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        let found = Self { uid, name, home, private_group, sudo_uid, examined_below: PathBuf::new() };
        let account = found.injected();
        Self { home: account.home.filter(|home| home.is_dir()), ..account }
    }

    #[cfg(not(feature = "injected"))]
    fn injected(self) -> Self {
        self
    }

    /// Replaces what a test injects.
    #[cfg(feature = "injected")]
    fn injected(mut self) -> Self {
        use crate::injected;
        self.uid = injected::uid().unwrap_or(self.uid);
        self.name = injected::name().unwrap_or(self.name);
        if let Some(home) = injected::home() {
            self.examined_below = home.parent().map(Path::to_owned).unwrap_or_default();
            self.home = Some(home);
        }
        self
    }

    /// An account without a home and without a name, whose approvals last as long as the process.
    pub fn of_process() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            name: String::new(),
            home: None,
            private_group: None,
            sudo_uid: None,
            examined_below: PathBuf::new(),
        }
    }

    /// Returns the account as records name it: `UID@HOST`.
    pub fn at_host(&self) -> String {
        format!("{}@{}", self.uid, rustix::system::uname().nodename().to_string_lossy())
    }

    /// Returns the user's own configuration file.
    pub fn user_config_file(&self) -> Option<PathBuf> {
        self.own(CONFIG)
    }

    /// Returns the files of allowed signers: the operator's, then the user's. The first that exists counts.
    pub fn signer_files(&self) -> Vec<PathBuf> {
        self.both(SIGNERS)
    }

    /// Returns the operator's file of tokens, for machines and containers where no home keeps them.
    pub fn operator_token_file(&self) -> PathBuf {
        operator_folder().join(TOKENS)
    }

    fn both(&self, name: &str) -> Vec<PathBuf> {
        std::iter::once(operator_folder().join(name)).chain(self.own(name)).collect()
    }

    /// Returns the operator's configuration file.
    pub fn operator_config_file(&self) -> PathBuf {
        operator_folder().join(CONFIG)
    }

    fn own(&self, name: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(".config/waypost").join(name))
    }

    /// Returns the folder of the account's state; `None` for an account without a home.
    pub fn state_folder(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(".local/state/waypost"))
    }

    /// Returns the file of the key that seals approvals.
    pub fn seal_key_file(&self) -> Option<PathBuf> {
        self.state_folder().map(|folder| folder.join("seal.key"))
    }

    /// Returns the folder of the notes about remote jobs of the runs whose logs are in this folder.
    pub fn remote_notes_folder(&self, logs: &Path) -> Option<PathBuf> {
        let name = hex(&sha256(logs.as_os_str().as_encoded_bytes()));
        self.state_folder().map(|folder| folder.join("remote").join(name))
    }

    /// Returns the folder of these records.
    pub fn records_folder(&self, records: Records) -> Option<PathBuf> {
        self.state_folder().map(|folder| folder.join(records.folder()))
    }

    /// Returns the file of the record about a canonical path.
    pub fn record_file(&self, records: Records, about: &Path) -> Option<PathBuf> {
        let name = hex(&sha256(about.as_os_str().as_encoded_bytes()));
        self.records_folder(records).map(|folder| folder.join(format!("{name}.json")))
    }

    /// Whether files of this user can be relied on: the account's own, root's, and, as root, those of the user who
    /// called `sudo`.
    pub(crate) fn trusts(&self, uid: u32) -> bool {
        uid == self.uid || uid == 0 || self.uid == 0 && self.sudo_uid == Some(uid)
    }
}

fn operator_folder() -> PathBuf {
    #[cfg(feature = "injected")]
    if let Some(folder) = crate::injected::operator_folder() {
        return folder;
    }
    PathBuf::from(OPERATOR)
}

fn private_group(user: &User) -> Option<u32> {
    let group = Group::from_gid(user.gid).ok().flatten()?;
    (group.name == user.name).then_some(group.gid.as_raw())
}
