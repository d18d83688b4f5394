//! Loads the configuration and the execution environment from files and environment variables.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use waypost_account::{Account, AccountFileError, ForeignOwner};
use waypost_config::{
    BadConfig, Config, ExecutionEnv, Layer, NotTrusted, Origin, UnknownTarget, path_inside,
};
use waypost_core::ActorKind;
use waypost_store::worker_name;

use crate::actor::account;
use crate::error::{Exit, Failure, Outcome};
use crate::runner::typeable;
use crate::store_location::{self, FOLDER, Roots, StoreLocation};
use crate::workspace_config::{FILE, TRUST_VARIABLE, WorkspaceConfig};

/// The folders of a workspace.
pub struct Folders {
    /// The folder in which work is done.
    pub workspace: PathBuf,
    /// Waypost's own folder.
    pub own: PathBuf,
    /// The folder with the configuration: that, or the one that is committed in a worktree of a bare repository.
    pub config: PathBuf,
    /// Why the configuration in that folder is not used: it is another user's.
    foreign: Option<ForeignOwner>,
    /// A folder like ours inside a linked worktree. Someone committed it, so it is not used.
    committed: Option<PathBuf>,
}

impl Folders {
    /// The folders for someone who works in this folder with this store. A worktree does its work in itself, and shares
    /// everything else with its repository.
    pub fn of(place: StoreLocation, here: &Path) -> Self {
        let (roots, foreign) = match store_location::roots(here) {
            Ok(roots) => (roots, None),
            Err(foreign) => {
                let (workspace, main) = (here.to_owned(), here.to_owned());
                (Roots { workspace, main, is_bare: false, passed_over: None }, Some(foreign))
            }
        };
        let own = place.folder.unwrap_or_else(|| roots.main.join(FOLDER));
        let committed = roots.workspace.join(FOLDER);
        let committed = (roots.workspace != roots.main && committed.is_dir()).then_some(committed);
        let (config, committed) = match committed {
            Some(committed) if roots.is_bare && !own.join(FILE).exists() => (committed, None),
            committed => (own.clone(), committed),
        };
        Self { workspace: roots.workspace, own, config, foreign, committed }
    }

    /// The folders of a workspace that has just been made in this folder.
    pub fn new_in(workspace: PathBuf) -> Self {
        let own = workspace.join(FOLDER);
        Self { config: own.clone(), own, workspace, foreign: None, committed: None }
    }

    /// Reads the configuration that the workspace brings along.
    pub fn workspace_config(&self) -> Outcome<WorkspaceConfig> {
        WorkspaceConfig::read(&self.own, &self.config, &self.workspace)
    }

    /// Creates Waypost's own folder if it is missing.
    pub fn prepare(&self) -> Outcome {
        StoreLocation { location: String::new(), folder: Some(self.own.clone()) }.prepare()
    }

    /// Whether Waypost's own folder belongs to another user, or contains a link.
    pub fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// The folder of the attempts' logs.
    pub fn logs(&self) -> PathBuf {
        self.own.join("logs")
    }

    /// The environment in which tasks are executed.
    pub fn execution_env(&self) -> ExecutionEnv {
        ExecutionEnv {
            workspace: self.workspace.clone(),
            logs: self.logs(),
            remote_notes: remote_notes(&self.logs()),
            variables: variables(),
            worker: worker_name(),
        }
    }
}

/// The folder of the notes about remote jobs of the runs whose logs are here.
fn remote_notes(logs: &Path) -> PathBuf {
    // Without a home there is no place for notes, and an attempt that needs one fails with its name.
    account().remote_notes_folder(logs).unwrap_or_else(|| PathBuf::from("/nonexistent/waypost"))
}

/// The environment of this process. Variables that are not UTF-8 are left out.
pub fn variables() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Loads the operator's configuration, then the user's, the workspace's, a named file, and the environment. Later ones
/// override. The variables of an agent or a worker do not choose the user's file, and a file that it names can only
/// tighten. Of a workspace that nobody has trusted only a stricter `[approval]` counts.
pub fn load(folders: &Folders, named: Option<&Path>, by: ActorKind) -> Outcome<Config> {
    Loading::begin(folders, named, by)?.finish(folders, named, by)
}

/// Loads the configuration as if the workspace's were trusted. It may be shown and checked, and must not be run.
pub fn load_untrusted(folders: &Folders, by: ActorKind) -> Outcome<Config> {
    let mut loading = Loading::begin(folders, None, by)?;
    loading.not_trusted = None;
    loading.finish(folders, None, by)
}

/// Returns why the workspace's configuration does not count; `None` if it does, or if there is none.
pub fn not_trusted(folders: &Folders, by: ActorKind) -> Outcome<Option<NotTrusted>> {
    Ok(Loading::begin(folders, None, by)?.not_trusted)
}

/// What was found before anything of it counts.
struct Loading {
    variables: BTreeMap<String, String>,
    /// The account's files.
    layers: Vec<Layer>,
    brought: Option<WorkspaceConfig>,
    not_trusted: Option<NotTrusted>,
    ignored: Vec<String>,
}

impl Loading {
    fn begin(folders: &Folders, named: Option<&Path>, by: ActorKind) -> Outcome<Self> {
        let variables = variables();
        let mut ignored = Vec::new();
        let layers = account_layers(&variables, by, &mut ignored)?;
        if let Some(committed) = &folders.committed {
            let (passed_over, used) = (committed.join(FILE), folders.config.join(FILE));
            // One that says the same is no surprise to anybody.
            let differs = fs::read(&passed_over).ok() != fs::read(&used).ok();
            if differs {
                let (passed_over, used) = (passed_over.display(), used.display());
                ignored.push(format!("{passed_over} is inside a linked worktree and is not used; {used} is"));
            }
        }
        let brought = match (&folders.foreign, named) {
            (None, _) => Some(folders.workspace_config()?),
            // Whoever names a file says what to use instead.
            (Some(_), Some(_)) => None,
            (Some(foreign), None) => return Err(store_location::foreign_owner(foreign)),
        };
        let operator = Config::of_layers(&layers, &|path| fs::read_to_string(path)).trusted_folders;
        let state = brought.as_ref().map(|brought| brought.not_trusted(&operator, by)).transpose();
        let not_trusted = state.unwrap_or_else(|error| {
            ignored.push(format!("{error} ({})", error.hint()));
            let file = brought.as_ref().map(WorkspaceConfig::name).unwrap_or_default();
            Some(Some(NotTrusted { file, changed: Vec::new() }))
        });
        Ok(Self { variables, layers, brought, not_trusted: not_trusted.flatten(), ignored })
    }

    fn finish(self, folders: &Folders, named: Option<&Path>, by: ActorKind) -> Outcome<Config> {
        let Self { variables, mut layers, brought, not_trusted, ignored } = self;
        let own = brought.as_ref().map(|brought| brought.layers.clone()).unwrap_or_default();
        layers.extend(own.into_iter().filter_map(|layer| match (&not_trusted, layer.name.ends_with(FILE)) {
            (None, _) => Some(layer),
            (Some(_), true) => Some(Layer { origin: Origin::Untrusted, ..layer }),
            (Some(_), false) => None,
        }));
        let read = |path: &Path| match &brought {
            Some(brought) => brought.text(path),
            None => fs::read_to_string(path),
        };
        let load = |layers: &[Layer]| {
            let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            Config::load_with(layers, variables, &read).map_err(|bad| failure(&bad))
        };
        let mut config = match named.map(|named| named_layer(folders, named)).transpose()? {
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
        let inside = |file: &str| match &brought {
            Some(brought) => brought.text_inside(file),
            None => inside(&folders.workspace, file),
        };
        config.read_prompts(&inside).map_err(|bad| failure(&bad))?;
        if not_trusted.is_some() {
            // Whoever wrote the file, what it calls a secret may be one.
            let untrusted = brought.iter().flat_map(|brought| &brought.layers);
            config.untrusted_secret_files = untrusted.flat_map(Layer::secret_files).collect();
        }
        // A person who names a file has said what to use instead.
        config.not_trusted = not_trusted.filter(|_| named.is_none() || by != ActorKind::Person);
        if config.not_trusted.is_some() {
            config.reporters.clear();
        }
        Ok(config)
    }
}

/// Chooses the workers of a target, if one is named.
pub fn for_target(mut config: Config, target: Option<&str>) -> Outcome<Config> {
    let Some(target) = target else { return Ok(config) };
    let unknown = |unknown: UnknownTarget| Failure::new(Exit::Invalid, unknown.to_string(), unknown.hint());
    config.use_target(target).map_err(unknown)?;
    Ok(config)
}

/// The failure of a command that would run what nobody has trusted.
pub fn untrusted(not_trusted: &NotTrusted, by: ActorKind) -> Failure {
    let hint = match by {
        ActorKind::Person => format!(
            "{}; without a terminal name it with --config FILE, or set {TRUST_VARIABLE} to what `waypost trust --digest` prints",
            not_trusted.hint()
        ),
        ActorKind::Agent | ActorKind::Worker | ActorKind::System => {
            "ask a person to read it and run `waypost trust`".to_owned()
        }
    };
    let failure = Failure::new(Exit::Invalid, not_trusted.to_string(), hint);
    Failure { code: not_trusted.code().to_owned(), ..failure }
        .with_fact("changed", not_trusted.changed.clone())
}

/// Reads the account's files: the operator's and the user's. A person may keep another one elsewhere, by
/// `XDG_CONFIG_HOME` or `HOME`; of the account's only what it says about approval counts then.
fn account_layers(
    variables: &BTreeMap<String, String>,
    by: ActorKind,
    ignored: &mut Vec<String>,
) -> Outcome<Vec<Layer>> {
    let account = account();
    let mut layers = Vec::new();
    let mut add = |origin: Origin, file: &Path| match account_layer(account, origin, file) {
        Ok(found) => layers.extend(found),
        Err(error) => ignored.push(format!("{error} ({})", error.hint())),
    };
    add(Origin::Operator, &account.operator_config_file());
    let own = account.user_config_file();
    let chosen = match by {
        ActorKind::Person => chosen_file(variables).filter(|chosen| !is_same(Some(chosen), own.as_deref())),
        ActorKind::Agent | ActorKind::Worker | ActorKind::System => None,
    };
    if let Some(own) = &own {
        add(if chosen.is_some() { Origin::UserApproval } else { Origin::User }, own);
    }
    if let Some(chosen) = &chosen {
        layers.extend(layer(Origin::Named, chosen, false)?);
    }
    Ok(layers)
}

/// The user's file that variables choose.
fn chosen_file(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let said = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = said("XDG_CONFIG_HOME").or_else(|| said("HOME").map(|home| home.join(".config")));
    base.map(|base| base.join("waypost").join(FILE))
}

/// Whether two paths lead to the same file.
fn is_same(one: Option<&Path>, other: Option<&Path>) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || one.and_then(real).is_some_and(|one| other.and_then(real) == Some(one))
}

fn account_layer(account: &Account, origin: Origin, file: &Path) -> Result<Option<Layer>, AccountFileError> {
    let Some(bytes) = account.read(file)? else { return Ok(None) };
    let text = String::from_utf8(bytes)
        .map_err(|error| AccountFileError::Malformed { file: file.to_owned(), what: error.to_string() })?;
    Ok(Some(Layer { origin, name: file.display().to_string(), text }))
}

/// Reads a file that the caller names. Naming the workspace's own does not turn it into the user's.
fn named_layer(folders: &Folders, named: &Path) -> Outcome<Layer> {
    let is_brought = is_same(Some(named), Some(&folders.config.join(FILE)));
    let origin = if is_brought { Origin::Workspace } else { Origin::Named };
    let found = layer(origin, named, true)?;
    found.ok_or_else(|| Failure::not_found(format!("{} does not exist", named.display()), "check the path"))
}

/// Reads a file of the workspace that is no link.
pub fn inside(workspace: &Path, file: &str) -> io::Result<String> {
    fs::read_to_string(path_inside(workspace, file)?)
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
            failure.details.push(format!("    hint: {}", typeable(&problem.hint)));
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
