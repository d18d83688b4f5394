//! Loads the configuration and the execution environment from files and environment variables.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use waypost_config::{BadConfig, Config, ExecutionEnv, Layer, Origin};
use waypost_store::worker_name;

use crate::error::{Exit, Failure, Outcome};
use crate::store_location::{FOLDER, StoreLocation, TODO};

/// The name of the configuration file.
const FILE: &str = "config.toml";

/// The folders of a workspace.
pub(crate) struct Folders {
    /// The folder in which work is done.
    pub(crate) workspace: PathBuf,
    /// Waypost's own folder.
    pub(crate) own: PathBuf,
}

impl Folders {
    /// The folders for someone who works in this folder with this store. A worktree does its work in itself, and shares
    /// everything else with its repository.
    pub(crate) fn of(place: StoreLocation, here: &Path) -> Self {
        let is_root = |folder: &&Path| folder.join(FOLDER).is_dir() || folder.join(".git").exists();
        let workspace = here.ancestors().find(is_root).unwrap_or(here).to_owned();
        let own = place.folder.unwrap_or_else(|| workspace.join(FOLDER));
        Self { workspace, own }
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
pub(crate) fn load(folders: &Folders, named: Option<&Path>) -> Outcome<Config> {
    let variables = variables();
    let said = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = said("XDG_CONFIG_HOME").or_else(|| said("HOME").map(|home| home.join(".config")));
    let mut layers = Vec::new();
    if let Some(base) = base {
        layers.extend(layer(Origin::User, &base.join("waypost").join(FILE), false)?);
    }
    layers.extend(layer(Origin::Workspace, &folders.own.join(TODO), false)?);
    layers.extend(layer(Origin::Workspace, &folders.own.join(FILE), false)?);
    if let Some(named) = named {
        layers.extend(layer(Origin::Named, named, true)?);
    }
    let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut config = Config::load_with(&layers, variables, &|path| fs::read_to_string(path))
        .map_err(|bad| failure(&bad))?;
    config.read_prompts(&|file| inside(&folders.workspace, file)).map_err(|bad| failure(&bad))?;
    Ok(config)
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
