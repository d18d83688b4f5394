//! The configuration of a run and what it finds around it: reads the files and the environment that the engine is told of.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use std::sync::Arc;

use waypost_config::Report;
use waypost_config::{BadConfig, Config, Layer, Origin, Surroundings};
use waypost_run::Relay;
use waypost_store::Plans;
use waypost_store::worker_name;

use crate::context::Context;
use crate::error::{Exit, Failure, Outcome};
use crate::workspace::Place;

/// The folder that holds a workspace's configuration, logs and store.
const FOLDER: &str = ".waypost";
/// The configuration's file in it.
const FILE: &str = "config.toml";

/// jaato's own configuration in it, if somebody has put it there.
pub(crate) const TODO: &str = "todo.json";

/// Where everything of a workspace lies.
pub(crate) struct Folders {
    /// The folder that work is done in.
    pub(crate) workspace: PathBuf,
    /// The folder that is ours.
    pub(crate) own: PathBuf,
}

impl Folders {
    /// Those of the current folder. A worktree does its work in itself and shares all else with its repository.
    pub(crate) fn find(context: &Context) -> Outcome<Self> {
        let here = std::env::current_dir().map_err(|error| Failure::file(Path::new("."), &error))?;
        Self::of(context, &here)
    }

    /// Those of somebody who works in this folder.
    pub(crate) fn of(context: &Context, here: &Path) -> Outcome<Self> {
        let is_root = |folder: &&Path| folder.join(FOLDER).is_dir() || folder.join(".git").exists();
        let workspace = here.ancestors().find(is_root).unwrap_or(here).to_owned();
        let own = context.place_of(here)?.folder.unwrap_or_else(|| workspace.join(FOLDER));
        Ok(Self { workspace, own })
    }

    /// Makes the folder that is ours, if it is not there.
    pub(crate) fn prepare(&self) -> Outcome {
        Place { location: String::new(), folder: Some(self.own.clone()) }.prepare()
    }

    /// Where logs of attempts are kept.
    pub(crate) fn logs(&self) -> PathBuf {
        self.own.join("logs")
    }

    /// What the work of tasks finds around it.
    pub(crate) fn surroundings(&self) -> Surroundings {
        Surroundings {
            workspace: self.workspace.clone(),
            logs: self.logs(),
            variables: variables(),
            worker: worker_name(),
        }
    }
}

/// The environment of this process, as far as it is text.
pub(crate) fn variables() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// The user's configuration, the workspace's over it, a named file over both, and the environment over all.
pub(crate) fn config(folders: &Folders, named: Option<&Path>) -> Outcome<Config> {
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

/// Where webhooks that were never told anything begin: at the end of the log as it is before this command writes.
pub(crate) fn webhooks_since(context: &Context, config: &Config) -> Outcome<u64> {
    if has_webhooks(config) { Ok(context.plans()?.latest()?) } else { Ok(0) }
}

/// Whether there are any.
pub(crate) fn has_webhooks(config: &Config) -> bool {
    let is_webhook = |report: &Report| matches!(report, Report::Webhook(_));
    config.reporters.values().any(|reporter| is_webhook(&reporter.report))
}

/// Begins to tell webhooks of what is written, and says what of the configuration has no meaning.
pub(crate) fn relay(
    context: &mut Context,
    folders: &Folders,
    config: &Config,
    plans: &Arc<Plans>,
    since: u64,
) -> Outcome<Relay> {
    for words in &config.ignored {
        context.out.note(words);
    }
    Ok(Relay::start(plans, config, &folders.surroundings(), since)?)
}

/// Says what could not be reported.
pub(crate) fn say_unreported(context: &mut Context, unreported: &[String]) {
    for words in unreported {
        if context.out.json {
            let line = serde_json::json!({ "event": "report_failed", "message": words });
            context.out.line(line.to_string());
        } else {
            context.out.note(words);
        }
    }
}

/// Reads a file of the workspace, and none that a link leads out to.
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
