//! Loads the configuration and the execution environment from files and environment variables.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use waypost_account::{Account, AccountFileError, ForeignOwner};
use waypost_config::{BadConfig, Config, ExecutionEnv, Layer, Origin};
use waypost_core::ActorKind;
use waypost_store::worker_name;

use crate::actor::account;
use crate::error::{Exit, Failure, Outcome};
use crate::store_location::{self, FOLDER, StoreLocation, TODO};

/// The name of the configuration file.
const FILE: &str = "config.toml";

/// The folders of a workspace.
pub(crate) struct Folders {
    /// The folder in which work is done.
    pub(crate) workspace: PathBuf,
    /// Waypost's own folder.
    pub(crate) own: PathBuf,
    /// Why the configuration in that folder is not used: it is another user's.
    foreign: Option<ForeignOwner>,
}

impl Folders {
    /// The folders for someone who works in this folder with this store. A worktree does its work in itself, and shares
    /// everything else with its repository.
    pub(crate) fn of(place: StoreLocation, here: &Path) -> Self {
        let (workspace, foreign) = match store_location::roots(here) {
            Ok(roots) => (roots.workspace, None),
            Err(foreign) => (here.to_owned(), Some(foreign)),
        };
        let own = place.folder.unwrap_or_else(|| workspace.join(FOLDER));
        Self { workspace, own, foreign }
    }

    /// The folders of a workspace that has just been made in this folder.
    pub(crate) fn new_in(workspace: PathBuf) -> Self {
        Self { own: workspace.join(FOLDER), workspace, foreign: None }
    }

    /// Creates Waypost's own folder if it is missing.
    pub(crate) fn prepare(&self) -> Outcome {
        StoreLocation { location: String::new(), folder: Some(self.own.clone()) }.prepare()
    }

    /// The folder of the attempts' logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.own.join("logs")
    }

    /// The environment in which tasks are executed.
    pub(crate) fn execution_env(&self) -> ExecutionEnv {
        ExecutionEnv {
            workspace: self.workspace.clone(),
            logs: self.logs(),
            variables: variables(),
            worker: worker_name(),
        }
    }
}

/// The environment of this process. Variables that are not UTF-8 are left out.
pub(crate) fn variables() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Loads the user's configuration, then the workspace's, then a named file, then the environment. Later ones override.
/// The variables of an agent or a worker do not choose the user's file, and a file that it names can only tighten.
pub(crate) fn load(folders: &Folders, named: Option<&Path>, by: ActorKind) -> Outcome<Config> {
    let variables = variables();
    let mut layers = Vec::new();
    let mut ignored = Vec::new();
    match by {
        ActorKind::Person => layers.extend(users_file(&variables)?),
        ActorKind::Agent | ActorKind::Worker | ActorKind::System => match accounts_file(account()) {
            Ok(found) => layers.extend(found),
            Err(error) => ignored.push(format!("{error} ({})", error.hint())),
        },
    }
    match (&folders.foreign, named) {
        (None, _) => {
            layers.extend(layer(Origin::Workspace, &folders.own.join(TODO), false)?);
            layers.extend(layer(Origin::Workspace, &folders.own.join(FILE), false)?);
        }
        // Whoever names a file says what to use instead.
        (Some(_), Some(_)) => {}
        (Some(foreign), None) => return Err(store_location::foreign_owner(foreign)),
    }
    let load = |layers: &[Layer]| {
        let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Config::load_with(layers, variables, &|path| fs::read_to_string(path)).map_err(|bad| failure(&bad))
    };
    let mut config = match named.map(|named| layer(Origin::Named, named, true)).transpose()?.flatten() {
        None => load(&layers)?,
        Some(named) => {
            let whom = match by {
                ActorKind::Person => None,
                ActorKind::Agent | ActorKind::System => Some("an agent"),
                ActorKind::Worker => Some("a worker"),
            };
            let before = whom.map(|whom| {
                named.has_only_tightening_keys(whom).map_err(|bad| loosened(&bad))?;
                Ok::<_, Failure>((whom, load(&layers)?))
            });
            let before = before.transpose()?;
            layers.push(named.clone());
            let after = load(&layers)?;
            if let Some((whom, before)) = before {
                named.tightens(whom, &before, &after).map_err(|bad| loosened(&bad))?;
            }
            after
        }
    };
    config.ignored.extend(ignored);
    config.pinned_files.workspace.clone_from(&folders.workspace);
    config.read_prompts(&|file| inside(&folders.workspace, file)).map_err(|bad| failure(&bad))?;
    Ok(config)
}

/// The file of a person, who may keep it elsewhere by `XDG_CONFIG_HOME` or `HOME`.
fn users_file(variables: &BTreeMap<String, String>) -> Outcome<Option<Layer>> {
    let said = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = said("XDG_CONFIG_HOME").or_else(|| said("HOME").map(|home| home.join(".config")));
    let file = base.map(|base| base.join("waypost").join(FILE));
    Ok(file.map(|file| layer(Origin::User, &file, false)).transpose()?.flatten())
}

/// The file in the home of the account.
fn accounts_file(account: &Account) -> Result<Option<Layer>, AccountFileError> {
    let Some(file) = account.user_config_file() else { return Ok(None) };
    let Some(bytes) = account.read(&file)? else { return Ok(None) };
    let text = String::from_utf8(bytes)
        .map_err(|error| AccountFileError::Malformed { file: file.clone(), what: error.to_string() })?;
    Ok(Some(Layer { origin: Origin::User, name: file.display().to_string(), text }))
}

/// Reads a file of the workspace. Refuses links that lead out of it.
pub(crate) fn inside(workspace: &Path, file: &str) -> io::Result<String> {
    let path = workspace.join(file).canonicalize()?;
    if !path.starts_with(workspace.canonicalize()?) {
        return Err(io::Error::other("it leads out of the workspace"));
    }
    fs::read_to_string(path)
}

fn layer(origin: Origin, path: &Path, must_be_there: bool) -> Outcome<Option<Layer>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(Layer { origin, name: path.display().to_string(), text })),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_be_there => Ok(None),
        Err(error) => Err(Failure::file(path, &error)),
    }
}

/// The failure of an agent's or a worker's file that does not only tighten.
fn loosened(bad: &BadConfig) -> Failure {
    let mut problems = bad.problems.iter();
    let first = problems.next();
    let (message, hint) = first.map_or_else(Default::default, |one| (one.to_string(), one.hint.clone()));
    let mut failure = Failure::new(Exit::Invalid, message, hint);
    failure.code = "config_only_tightens".to_owned();
    failure.details.extend(problems.map(|problem| format!("  {problem}")));
    failure
}

fn failure(bad: &BadConfig) -> Failure {
    let mut failure =
        Failure::new(Exit::Invalid, bad.to_string(), "docs/configuration.md describes every key");
    failure.code = "bad_config".to_owned();
    for problem in &bad.problems {
        failure.details.push(format!("  {problem}"));
        if !problem.hint.is_empty() {
            failure.details.push(format!("    hint: {}", problem.hint));
        }
    }
    let problems: Vec<serde_json::Value> = bad
        .problems
        .iter()
        .map(|problem| {
            serde_json::json!({
                "place": problem.place,
                "line": problem.line,
                "message": problem.what,
                "hint": problem.hint,
            })
        })
        .collect();
    failure.with_fact("problems", problems)
}
