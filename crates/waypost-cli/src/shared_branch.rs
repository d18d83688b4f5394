//! The branch that the plans of a command's store travel on: the repository around the workspace, the reference and the
//! remote of the configuration, and whether a person has trusted what comes from there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use waypost_account::RemoteTrust;
use waypost_config::Config;
use waypost_git::{GitError, RefName, RemoteName, Repository};
use waypost_service::{FindBranch, SharedBranch, SharingError};
use waypost_text::reveal;

use crate::actor::account;
use crate::context::Context;
use crate::error::{Exit, Failure, Outcome};
use crate::load_config::{Folders, variables};
use crate::store_location::StoreLocation;
use crate::view::text;
use crate::workspace_config::account_file;

/// Where the machine names itself.
const MACHINE: &str = "/etc/machine-id";

/// The branch, with the address that trust is about.
pub struct FoundBranch {
    pub shared: SharedBranch,
    /// The address of the remote; the folder of the repository if it has none.
    pub address: String,
}

/// Finds the branch for the store of this command. The store has to exist.
pub fn find(context: &Context) -> Outcome<FoundBranch> {
    let folders = context.folders()?;
    let config = context.load_config(&folders, None)?;
    find_with(&folders, &config, &context.store_location()?)
}

/// Returns what finds the branch while a command runs that stays.
pub fn finder(context: &Context) -> FindBranch {
    // A command can be asked by several threads at once.
    let context = Mutex::new(context.for_background());
    Arc::new(move || {
        let context = context.lock().unwrap_or_else(PoisonError::into_inner);
        let found = find(&context)
            .map_err(|failure| SharingError::NoBranch { problem: failure.one_line(), hint: failure.hint });
        Ok(found?.shared)
    })
}

/// Finds the branch for a store, with a configuration that is loaded already.
pub fn find_with(folders: &Folders, config: &Config, place: &StoreLocation) -> Outcome<FoundBranch> {
    let repository = Repository::find(&variables(), &folders.workspace).map_err(failure)?;
    let name = RefName::new(&config.git.reference).map_err(failure)?;
    let remote = RemoteName::new(&config.git.remote).map_err(failure)?;
    let address = repository.remote_address(&remote).map_err(failure)?;
    let remote = address.is_some().then_some(remote);
    let address = address.unwrap_or_else(|| repository.common_folder().display().to_string());
    let record =
        RemoteTrust::read(account(), &address, name.as_str()).map_err(|error| account_file(&error))?;
    let trusted = record.is_some();
    let shared = SharedBranch { repository, name, remote, place: place_of(place), trusted };
    Ok(FoundBranch { shared, address })
}

/// What tells a store from a copy of it: its machine and the number of its file.
fn place_of(place: &StoreLocation) -> String {
    let machine = fs::read_to_string(MACHINE).unwrap_or_default();
    let path = match place.location.split_once(':') {
        Some(("sqlite" | "file", path)) => path,
        // The users of a database share it, and its records.
        Some(_) | None => return place.shown(),
    };
    let number = fs::metadata(Path::new(path)).map_or(0, |found| found.ino());
    format!("{}:{number}", machine.trim())
}

impl FoundBranch {
    /// Records that a person trusts what comes from there. Returns whether the account can keep the record.
    pub fn trust(&mut self, context: &Context, via: &str) -> Outcome<bool> {
        let record = RemoteTrust {
            address: self.address.clone(),
            reference: self.shared.name.as_str().to_owned(),
            trusted_at: text::now(),
            by: context.actor()?,
            via: via.to_owned(),
            unknown: serde_json::Map::new(),
        };
        let is_kept = record.write(account()).map_err(|error| account_file(&error))?;
        self.shared.trusted = is_kept;
        Ok(is_kept)
    }

    /// The address as it is shown: without a password.
    pub fn shown(&self) -> String {
        reveal(&waypost_store::without_password(&self.address)).into_owned()
    }

    /// The branch as a person would name it: that of the remote, if there is one.
    pub fn branch_name(&self) -> String {
        let name = self.shared.name.short();
        self.shared
            .remote
            .as_ref()
            .map_or_else(|| name.to_owned(), |remote| format!("{}/{name}", remote.as_str()))
    }
}

/// Converts an error of git to a command's failure.
pub fn failure(error: GitError) -> Failure {
    SharingError::from(error).into()
}

impl From<SharingError> for Failure {
    fn from(error: SharingError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let hint = match &error {
            SharingError::Service(_) => "",
            SharingError::Git(error) => error.hint(),
            SharingError::Busy => "try again when it is done",
            SharingError::NeedsPerson { .. } => "ask a person to do it",
            SharingError::NotShared(_) => "`waypost share PLAN` shares it",
            SharingError::Taken(_) => {
                "`waypost sync` imports it, unless a plan of that name is here: then give yours another id"
            }
            SharingError::Newer(_) => "update Waypost",
            SharingError::Records { .. } => "`waypost doctor` checks the store",
            SharingError::NoSuchQuestion { .. } => "`waypost conflicts` lists the open questions",
            SharingError::QuestionChanged(_) => "`waypost conflicts` lists the open questions",
            SharingError::NoBranch { hint, .. } => hint,
            SharingError::WhichQuestion { .. } => "name the task and the field",
            SharingError::BadAnswer(_) => "`waypost conflicts` shows how each question can be answered",
        };
        let exit = match &error {
            SharingError::Service(_)
            | SharingError::Git(_)
            | SharingError::Busy
            | SharingError::NeedsPerson { .. }
            | SharingError::Taken(_)
            | SharingError::QuestionChanged(_)
            | SharingError::NoBranch { .. }
            | SharingError::Records { .. } => Exit::Failed,
            SharingError::NotShared(_) | SharingError::NoSuchQuestion { .. } => Exit::NotFound,
            SharingError::Newer(_) => Exit::Outdated,
            SharingError::WhichQuestion { .. } | SharingError::BadAnswer(_) => Exit::Usage,
        };
        match error {
            SharingError::Service(error) => error.into(),
            SharingError::Git(_)
            | SharingError::Busy
            | SharingError::NeedsPerson { .. }
            | SharingError::Taken(_)
            | SharingError::Records { .. }
            | SharingError::NotShared(_)
            | SharingError::NoSuchQuestion { .. }
            | SharingError::QuestionChanged(_)
            | SharingError::NoBranch { .. }
            | SharingError::Newer(_)
            | SharingError::WhichQuestion { .. }
            | SharingError::BadAnswer(_) => Self { code, ..Self::new(exit, message, hint) },
        }
    }
}
