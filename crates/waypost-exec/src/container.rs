//! Workers in containers: docker or podman starts one for each attempt, with the contract of a program.
//!
//! The engine's program is our child process, the container is not. A note of each container is therefore kept beside
//! the liveness lock of its run for as long as the container may exist. The run that takes over the work of a dead run
//! ends the containers named in its notes.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::attempt::{Attempt, inside};
use super::process::{self, Environment, Escaped, Program};
use super::resource_name;
use crate::liveness_lock;
use crate::outcome::AttemptOutcome;
use waypost_config::ExecutionEnv;
use waypost_config::{Config, Container, Executor, Process, Worker};
use waypost_store::{make_state_folder, open_state_file};

/// The variables that an engine's program gets from our environment: the locations of its daemon, storage and settings.
const ENVIRONMENT: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "REGISTRY_AUTH_FILE",
];
/// The label with the name of the run that made a container.
const RUN_LABEL: &str = "waypost.run";
/// The engines to look for, in this order.
const ENGINES: [&str; 2] = ["docker", "podman"];
/// The exit code of an engine that failed itself.
const EXIT_ENGINE_FAILED: i32 = 125;

pub(super) fn run(
    attempt: &mut Attempt<'_>,
    container: &Container,
    input: &[u8],
) -> Result<AttemptOutcome, String> {
    let engine = engine(attempt.around, container)?;
    let name = resource_name::name(&attempt.job.key);
    if attempt.job.key.attempt > 1 {
        end_earlier(attempt, &engine)?;
    }
    let environment = ENVIRONMENT.iter().map(|name| (*name).to_owned());
    let process = Process {
        command: command(attempt, container, &engine, &name)?,
        environment: environment.chain(container.environment.iter().cloned()).collect(),
        secrets: container.secrets.clone(),
        ..Process::default()
    };
    let note = Note::write(attempt, &engine, &name)?;
    let directory = inside(&attempt.around.workspace, "")?;
    let environment = Environment::Configured;
    // The engine ends what belongs to its container.
    let escaped = Escaped::Leave;
    let spoken =
        process::follow(attempt, &Program { process: &process, directory, input, environment, escaped });
    // An engine's program that ended by itself has waited for its container; a killed one has not.
    let alone = match &spoken {
        Ok(spoken) => spoken.status.signal().is_some(),
        Err(_) => true,
    };
    let filters = [format!("name=^{name}$"), of_run(&attempt.around.worker)];
    if !alone || end(&note.engine, &filters) {
        note.take_away();
    }
    let spoken = spoken?;
    if spoken.status.code() == Some(EXIT_ENGINE_FAILED) {
        return Err(format!("no container of {} could be started; see its log", container.image));
    }
    Ok(process::outcome(attempt, &spoken))
}

/// Returns the full path of the engine's program.
fn engine(around: &ExecutionEnv, container: &Container) -> Result<String, String> {
    let path = around.variables.get("PATH").map(String::as_str).unwrap_or_default();
    let find = |name: &str| {
        let places = path.split(':').filter(|folder| folder.starts_with('/'));
        places.map(|folder| Path::new(folder).join(name)).find(|program| program.is_file())
    };
    let found = match &container.engine {
        Some(engine) if engine.starts_with('/') => Some(PathBuf::from(engine)),
        Some(engine) => find(engine),
        None => ENGINES.iter().find_map(|name| find(name)),
    };
    let wanted = container.engine.as_deref().unwrap_or("docker or podman");
    let found = found.ok_or_else(|| format!("{wanted} is not in the PATH"))?;
    found.into_os_string().into_string().map_err(|_| format!("the path of {wanted} is not valid UTF-8"))
}

/// Builds the command line. It never contains the values of variables.
fn command(
    attempt: &Attempt<'_>,
    container: &Container,
    engine: &str,
    name: &str,
) -> Result<Vec<String>, String> {
    let key = &attempt.job.key;
    let mut words: Vec<String> = [engine, "run", "--rm", "--interactive", "--name", name]
        .iter()
        .map(|word| (*word).to_owned())
        .collect();
    let mut flag = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    for (label, value) in labels(attempt) {
        flag("--label", format!("{label}={value}"));
    }
    flag("--label", format!("waypost.attempt={}", key.attempt));
    flag("--label", format!("{RUN_LABEL}={}", attempt.around.worker));
    flag("--security-opt", "no-new-privileges".to_owned());
    flag("--network", container.network.clone());
    for mount in &container.mounts {
        let source = inside(&attempt.around.workspace, &mount.source)?;
        let source = source.to_str().filter(|path| !path.contains([',', '"']));
        let source = source.ok_or_else(|| format!("{:?} has a path that cannot be mounted", mount.source))?;
        let access = if mount.write { "" } else { ",readonly" };
        flag("--mount", format!("type=bind,source={source},target={}{access}", mount.target));
    }
    let pids = container.pids.map(|pids| pids.to_string());
    for (name, value) in [
        ("--workdir", &container.workdir),
        ("--memory", &container.memory),
        ("--cpus", &container.cpus),
        ("--pids-limit", &pids),
        ("--user", &container.user),
    ] {
        if let Some(value) = value {
            flag(name, value.clone());
        }
    }
    let own = attempt.job.variables().into_iter().map(|(name, _)| name.to_owned());
    let names = container.environment.iter().chain(container.secrets.keys()).cloned();
    for name in names.chain(own) {
        flag("--env", name);
    }
    if container.init {
        words.push("--init".to_owned());
    }
    words.push(container.image.clone());
    words.extend(container.command.iter().cloned());
    Ok(words)
}

/// The labels that identify the containers of a task.
fn labels(attempt: &Attempt<'_>) -> [(&'static str, String); 2] {
    let key = &attempt.job.key;
    [("waypost.plan", key.plan.to_string()), ("waypost.task", key.task.to_string())]
}

/// Ends the containers of earlier attempts of the task, whichever run made them.
fn end_earlier(attempt: &mut Attempt<'_>, engine: &str) -> Result<(), String> {
    let workspace = attempt.around.workspace.clone();
    let mut words = vec![engine.to_owned(), "ps".to_owned(), "--all".to_owned(), "--quiet".to_owned()];
    for (label, value) in labels(attempt) {
        words.extend(["--filter".to_owned(), format!("label={label}={value}")]);
    }
    let unknown = |error| format!("the containers of earlier attempts could not be listed ({error})");
    let found = process::tool_output(attempt, words, &ENVIRONMENT, &workspace).map_err(unknown)?;
    for id in found.lines() {
        let words = [engine, "rm", "--force", id].map(str::to_owned).to_vec();
        process::tool_output(attempt, words, &ENVIRONMENT, &workspace).map_err(|error| {
            format!("the container {id} of an earlier attempt could not be ended ({error})")
        })?;
    }
    Ok(())
}

/// Kills and removes the containers of a run that a filter of the engine finds. Returns whether none is left.
fn end(engine: &str, filters: &[String]) -> bool {
    let quiet = |words: &[&str]| {
        let ended = Command::new(engine).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output();
        ended
            .ok()
            .filter(|ended| ended.status.success())
            .and_then(|ended| String::from_utf8(ended.stdout).ok())
    };
    let mut listing = vec!["ps", "--all", "--quiet"];
    listing.extend(filters.iter().flat_map(|filter| ["--filter", filter]));
    for id in quiet(&listing).unwrap_or_default().split_whitespace() {
        // podman's `rm --force` first asks the container to stop and waits for ten seconds.
        let _may_be_gone = quiet(&["kill", id]);
        let _may_be_gone = quiet(&["rm", "--force", id]);
    }
    quiet(&listing).is_some_and(|left| left.trim().is_empty())
}

fn of_run(worker: &str) -> String {
    format!("label={RUN_LABEL}={worker}")
}

/// A note that a container may exist, kept for as long as it may.
struct Note {
    path: PathBuf,
    engine: String,
}

impl Note {
    fn write(attempt: &Attempt<'_>, engine: &str, name: &str) -> Result<Self, String> {
        let folder = notes(&attempt.around.logs.with_file_name("runs"), &attempt.around.worker);
        let path = folder.join(name);
        let written = make_state_folder(&folder, 2)
            .and_then(|()| open_state_file(&path))
            .and_then(|mut file| file.set_len(0).and_then(|()| file.write_all(engine.as_bytes())));
        written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        Ok(Self { path, engine: engine.to_owned() })
    }

    fn take_away(&self) {
        let _gone = fs::remove_file(&self.path);
        // Fails unless this was the last note.
        let _others = self.path.parent().map(fs::remove_dir);
    }
}

/// The directory with the notes of a run.
fn notes(runs: &Path, worker: &str) -> PathBuf {
    liveness_lock::path(runs, worker).with_extension("containers")
}

/// Returns the engines of all container executors in the configuration.
pub fn engines(config: &Config, around: &ExecutionEnv) -> Vec<String> {
    let workers = config.executors.values().flat_map(|executor| match executor {
        Executor::Dispatch(workers) => workers.values().collect(),
        Executor::Worker(worker) => vec![worker],
        Executor::Noop | Executor::Human => Vec::new(),
    });
    let mut engines: Vec<String> = Vec::new();
    for worker in workers {
        if let Worker::Container(container) = worker
            && let Ok(engine) = engine(around, container)
            && !engines.contains(&engine)
        {
            engines.push(engine);
        }
    }
    engines
}

/// Ends the containers that a dead run left behind. Returns whether none is left. Agents may be able to write notes, so
/// a note is used only if the configuration has the engine that it names, and only for containers with the label of the run.
pub fn end_left_behind(runs: &Path, worker: &str, engines: &[String]) -> bool {
    let folder = notes(runs, worker);
    let Ok(entries) = fs::read_dir(&folder) else { return true };
    let mut none_left = true;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let engine = fs::read_to_string(&path).unwrap_or_default();
        // An empty note was not written completely, so its container was never started.
        if engine.is_empty() || engines.contains(&engine) && end(&engine, &[of_run(worker)]) {
            Note { path: path.clone(), engine }.take_away();
        } else {
            none_left = false;
        }
    }
    none_left
}
