//! The branch that the plans of a command's store travel on: the repository around the workspace, the reference and the
//! remote of the configuration, and whether a person has trusted what comes from there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use waypost_account::RemoteTrust;
use waypost_config::Config;
use waypost_core::Actor;
use waypost_git::{GitError, RefName, RemoteName, Repository};
use waypost_service::{FindBranch, SharedBranch, SharingError};
use waypost_text::reveal;

use crate::actor::account;
use crate::error::{Exit, Failure, Outcome};
use crate::load_config::variables;
use crate::store_copy::place_of;
use crate::store_location::StoreLocation;
use crate::view::text;
use crate::workspace_config::account_file;

/// The branch, as people name and trust it.
pub struct FoundBranch {
    pub shared: SharedBranch,
    /// The remote that the configuration names.
    wanted_remote: String,
    /// The remotes of the repository, if none of them is the one to sync with.
    other_remotes: Vec<RemoteName>,
}

/// Returns what finds the branch for a store of another folder, with the configuration there.
pub fn finder_in(workspace: PathBuf, config: Arc<Config>, place: StoreLocation) -> FindBranch {
    Arc::new(move || {
        if let Some(not_trusted) = &config.not_trusted {
            let (problem, hint) = (not_trusted.to_string(), not_trusted.hint().to_owned());
            return Err(SharingError::NoBranch { problem, hint });
        }
        let found = find_with(&workspace, &config, &place)
            .map_err(|failure| SharingError::NoBranch { problem: failure.one_line(), hint: failure.hint })?;
        Ok(found.shared)
    })
}

/// Finds the branch for a store, with a configuration that is loaded already.
pub fn find_with(workspace: &Path, config: &Config, place: &StoreLocation) -> Outcome<FoundBranch> {
    let repository = Repository::find(&variables(), workspace).map_err(failure)?;
    let name = RefName::new(&config.git.reference).map_err(failure)?;
    let (remote, other_remotes) = remote_of(&repository, &config.git.remote).map_err(failure)?;
    let address = remote.as_ref().map(|remote| repository.remote_address(remote)).transpose();
    let address = address
        .map_err(failure)?
        .flatten()
        .unwrap_or_else(|| repository.common_folder().display().to_string());
    let record =
        RemoteTrust::read(account(), &address, name.as_str()).map_err(|error| account_file(&error))?;
    let trusted = record.is_some();
    let home = serves_others(place, &repository).then(|| address.clone());
    let shared = SharedBranch { repository, name, remote, place: place_of(place), address, home, trusted };
    Ok(FoundBranch { shared, wanted_remote: config.git.remote.clone(), other_remotes })
}

/// Returns the remote to sync with, or those that the repository has instead: the one of that name; where nobody names
/// another than the default, also the only one, or the one that the current branch follows.
fn remote_of(
    repository: &Repository,
    wanted: &str,
) -> Result<(Option<RemoteName>, Vec<RemoteName>), GitError> {
    let wanted = RemoteName::new(wanted)?;
    if repository.remote_address(&wanted)?.is_some() {
        return Ok((Some(wanted), Vec::new()));
    }
    let remotes = repository.remotes()?;
    if wanted.as_str() != waypost_config::Git::default().remote {
        return Ok((None, remotes));
    }
    let followed = match remotes.as_slice() {
        [only] => Some(only.clone()),
        [] => None,
        [_, _, ..] => repository.upstream_remote()?.filter(|remote| remotes.contains(remote)),
    };
    Ok(match followed {
        Some(remote) => (Some(remote), Vec::new()),
        None => (None, remotes),
    })
}

/// Whether a store lies outside of the repository, so that others may use it, too.
fn serves_others(place: &StoreLocation, repository: &Repository) -> bool {
    let path = match place.location.split_once(':') {
        Some(("sqlite" | "file", path)) => Path::new(path),
        Some(_) | None => return true,
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let common = real(repository.common_folder());
    let root = common.parent().filter(|_| common.ends_with(".git")).unwrap_or(&common).to_owned();
    !real(path).starts_with(root)
}

impl FoundBranch {
    /// Records that a person trusts what comes from there. Returns whether the account can keep the record.
    pub fn trust(&mut self, by: Actor, via: &str) -> Outcome<bool> {
        let record = RemoteTrust {
            address: self.shared.address.clone(),
            reference: self.shared.name.as_str().to_owned(),
            trusted_at: text::now(),
            by,
            via: via.to_owned(),
            unknown: serde_json::Map::new(),
        };
        let is_kept = record.write(account()).map_err(|error| account_file(&error))?;
        self.shared.trusted = is_kept;
        Ok(is_kept)
    }

    /// The address as it is shown: without a password.
    pub fn shown(&self) -> String {
        reveal(&waypost_store::without_password(&self.shared.address)).into_owned()
    }

    /// Refuses to reach a remote that the repository does not have, if it has others. Without any, the branch stays here.
    pub fn check_remote(&self) -> Outcome {
        if self.other_remotes.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.other_remotes.iter().map(RemoteName::as_str).collect();
        let message = format!(
            "this repository has no remote {}; it has {}",
            reveal(&self.wanted_remote),
            names.join(", ")
        );
        let hint = "name one in the [git] section of .waypost/config.toml: remote = \"NAME\"";
        Err(Failure { code: "no_remote".to_owned(), ..Failure::failed(message, hint) })
    }

    /// Whether this repository has the branch, or has fetched the remote's.
    pub fn is_there(&self) -> bool {
        let SharedBranch { repository, name, remote, .. } = &self.shared;
        let has = |name: &str| matches!(repository.tip(name), Ok(Some(_)));
        has(name.as_str()) || remote.as_ref().is_some_and(|remote| has(&name.tracking(remote)))
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
                "none of the last versions here is what they shared: give yours another id (`waypost export`, then `waypost import --id`)"
            }
            SharingError::Newer(_) => "update Waypost",
            SharingError::Secrets(_) => {
                "remove it, or name an environment variable instead; `waypost share --allow-secrets` shares it all the same"
            }
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
            | SharingError::Secrets(_)
            | SharingError::QuestionChanged(_)
            | SharingError::NoBranch { .. }
            | SharingError::Records { .. } => Exit::Failed,
            SharingError::NotShared(_) | SharingError::NoSuchQuestion { .. } => Exit::NotFound,
            SharingError::Newer(_) => Exit::Outdated,
            SharingError::WhichQuestion { .. } | SharingError::BadAnswer(_) => Exit::Usage,
        };
        let mut facts = serde_json::Map::new();
        if let SharingError::Secrets(found) = &error {
            facts.insert("secrets".to_owned(), serde_json::json!(found));
        }
        match error {
            SharingError::Service(error) => error.into(),
            SharingError::Git(_)
            | SharingError::Busy
            | SharingError::NeedsPerson { .. }
            | SharingError::Taken(_)
            | SharingError::Secrets(_)
            | SharingError::Records { .. }
            | SharingError::NotShared(_)
            | SharingError::NoSuchQuestion { .. }
            | SharingError::QuestionChanged(_)
            | SharingError::NoBranch { .. }
            | SharingError::Newer(_)
            | SharingError::WhichQuestion { .. }
            | SharingError::BadAnswer(_) => {
                Self { code, facts: Box::new(facts), ..Self::new(exit, message, hint) }
            }
        }
    }
}
