//! Parses a configuration file. Continues after a mistake, so that all of them are reported at once.

pub(crate) mod agents;
mod approval;
mod dispatch;
mod executors;
pub(crate) mod jaato_todo;
mod models;
mod reader;
mod remote;
mod reporters;
mod shapes;
mod slurm;
mod tui;
pub(crate) mod values;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toml::de::DeTable;
use waypost_core::{Retry, limits};

pub use self::agents::PROMPT_MARK;
use self::jaato_todo as todo;
pub use self::jaato_todo::todo_store;
use self::reader::{Reader, Table, set};
use crate::executor::Worker;
use crate::layer::{Layer, Origin, ReadFile};
use crate::problem::ConfigProblem;
use crate::settings::{CONCURRENCY_MAX, Config, Executor, GitSync, LOG_BYTES_LIMIT, Queue};

/// The hint for a setting that only the user's own file may contain.
const IN_USER_CONFIG: &str = "write it into the user's configuration, or take it out here";

/// Applies one file over the configuration.
pub(super) fn apply(
    config: &mut Config,
    layer: &Layer,
    read: ReadFile<'_>,
    variables: &[(&str, &str)],
    problems: &mut Vec<ConfigProblem>,
) {
    let reader = Reader { layer, read, problems: RefCell::default() };
    match DeTable::parse(&layer.text) {
        Ok(parsed) => {
            let mut top = Table::new(&reader, String::new(), 0, parsed.get_ref());
            top.file(config, variables);
            top.end();
        }
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            reader.wrong(at, error.message(), "correct the file there");
        }
    }
    // Whoever has not trusted the file need not correct it either.
    if layer.origin != Origin::Untrusted {
        problems.extend(reader.problems.into_inner());
    }
}

/// Converts a file to JSON; `None` if it cannot be parsed.
pub(crate) fn to_json(layer: &Layer) -> Option<Value> {
    match layer.name.ends_with(".json") {
        true => serde_json::from_str(&layer.text).ok(),
        false => DeTable::parse(&layer.text).ok().map(|parsed| shapes::table_json(parsed.get_ref())),
    }
}

/// Parses a duration of at least one second, such as `90s`, `15m`, `2h` or `30d`, into seconds.
fn span(text: &str) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    number.checked_mul(factor).filter(|&seconds| seconds > 0)
}

impl Table<'_> {
    /// Reads all keys of a file.
    fn file(&mut self, config: &mut Config, variables: &[(&str, &str)]) {
        self.approval_key(config);
        if self.reader.layer.origin.is_for_approval_only() {
            return self.accept_rest();
        }
        self.section("trust", |table| table.trust(config));
        let default_executor = self.text("default_executor");
        set(&mut config.default_executor, default_executor.map(|name| (!name.is_empty()).then_some(name)));
        set(&mut config.target, self.text("target").map(|name| (!name.is_empty()).then_some(name)));
        config.queues.extend(self.tables("queues", |_, table| {
            let concurrency = table.small("concurrency", 1..=CONCURRENCY_MAX);
            table.missing("concurrency", "for example concurrency = 4");
            Some(Queue { concurrency: concurrency? })
        }));
        let pinned = &mut config.pinned_files;
        let executors = self.tables("executors", |_, table| {
            let executor = table.executor();
            let worker = match &executor {
                Some(Executor::Worker(worker)) => Some(worker),
                Some(Executor::Dispatch(_) | Executor::Noop | Executor::Human) | None => None,
            };
            let revision = table.revision();
            let end_when_lost = table.flag("end_when_lost").unwrap_or(false);
            let (workers, targets) = match &executor {
                Some(Executor::Dispatch(workers)) => (Some(workers), table.targets()),
                Some(Executor::Worker(_) | Executor::Noop | Executor::Human) | None => {
                    (None, BTreeMap::new())
                }
            };
            let workers = workers.into_iter().chain(targets.values()).flat_map(BTreeMap::values);
            let clusters = workers.filter_map(Worker::kubeconfig);
            table.pin(pinned, worker.map_or("", Worker::directory), clusters);
            Some((executor?, revision, end_when_lost, targets))
        });
        for (name, (executor, revision, end_when_lost, targets)) in executors {
            config.targets.values_mut().for_each(|known| drop(known.remove(&name)));
            for (target, workers) in targets {
                config.targets.entry(target).or_default().insert(name.clone(), workers);
            }
            // What a later file defines is something else, so the revision does not stand for it.
            config.revisions.remove(&name);
            config.revisions.extend(revision.map(|revision| (name.clone(), revision)));
            config.end_when_lost.remove(&name);
            config.end_when_lost.extend(end_when_lost.then(|| name.clone()));
            config.executors.insert(name, executor);
        }
        config.checks.extend(self.tables("checks", |_, table| {
            let process = table.process();
            table.pin(pinned, process.as_ref().map_or("", |process| &process.directory), []);
            Some(Worker::Process(Arc::new(process?)))
        }));
        config.shapes.extend(self.tables("shapes", |_, table| table.shape()));
        config.reporters.extend(self.tables("reporters", |_, table| table.reporter()));
        self.models(config);
        self.section("compat", |table| table.compat(config, variables));
        self.section("retry", |table| {
            let Retry { attempts, backoff_seconds, backoff_seconds_max, .. } = &mut config.retry;
            set(attempts, table.small("attempts", 1..=limits::ATTEMPTS_MAX));
            set(backoff_seconds, table.seconds("backoff_seconds", 0));
            set(backoff_seconds_max, table.seconds("backoff_seconds_max", 0));
        });
        self.section("lease", |table| {
            set(&mut config.lease_seconds, table.seconds("seconds", 2));
            set(&mut config.heartbeat_seconds, table.seconds("heartbeat_seconds", 1));
        });
        self.section("limits", |table| {
            let timeout = table.seconds("timeout_seconds", 0);
            set(&mut config.timeout_seconds, timeout.map(|seconds| (seconds > 0).then_some(seconds)));
            set(&mut config.stop_seconds, table.seconds("stop_seconds", 0));
            set(&mut config.lock_wait_seconds, table.seconds("lock_wait_seconds", 0));
            let output = table.number("output_bytes_max", 1..=limits::JSON_BYTES_MAX as u64);
            set(&mut config.output_bytes_max, output);
            set(&mut config.log_bytes_max, table.number("log_bytes_max", 0..=LOG_BYTES_LIMIT));
        });
        self.section("retention", |table| {
            let Some((at, text)) = table.text_at("older_than") else { return };
            config.retention_seconds = span(&text).or(config.retention_seconds);
            if span(&text).is_none() {
                let what = format!("`retention.older_than`: {text:?} is not a duration");
                table.wrong(at, what, "for example older_than = \"30d\"");
            }
        });
        self.section("tui", |table| table.tui(&mut config.tui));
        self.section("files", |table| table.files(config));
        self.section("git", |table| {
            set(&mut config.git.reference, table.text("ref"));
            set(&mut config.git.remote, table.text("remote"));
            let words = [("off", GitSync::Off), ("auto", GitSync::Auto)];
            set(&mut config.git.sync, table.choice("sync", &words));
        });
    }

    /// Reads the folders that the operator trusts. A file that could name itself would be trusted by everybody.
    fn trust(&mut self, config: &mut Config) {
        let Some((at, folders)) = self.strings_at("folders") else { return };
        if self.reader.layer.origin != Origin::Operator {
            let what = "`trust.folders` counts only in /etc/waypost/config.toml";
            return self.wrong(at, what, "take it out, or run `waypost trust` in the folder");
        }
        if let Some(folder) = folders.iter().find(|folder| !Path::new(folder).is_absolute()) {
            let what = format!("`trust.folders` names {folder:?}, which is not a full path");
            return self.wrong(at, what, "write the canonical path, which begins with /");
        }
        config.trusted_folders = folders.into_iter().map(PathBuf::from).collect();
    }

    /// Agents write in the workspace, so its file cannot open more files to their tools.
    fn files(&mut self, config: &mut Config) {
        let (write, http) = (self.strings("write"), self.flag("http"));
        if !self.is_of_workspace() {
            set(&mut config.files.write, write);
            set(&mut config.files.http, http);
            return;
        }
        for key in ["write", "http"].into_iter().filter(|key| !self.is_without(key)) {
            let what = format!("`files.{key}` counts only in the user's own configuration");
            self.wrong(self.place(key), what, IN_USER_CONFIG);
        }
    }

    fn compat(&mut self, config: &mut Config, variables: &[(&str, &str)]) {
        let Some((at, file)) = self.text_at("todo") else { return };
        match self.reader.read_beside(&file) {
            (name, Ok(text)) => {
                let file = (name.as_str(), text.as_str(), self.reader.layer.origin);
                todo::apply(config, file, variables, &mut self.reader.problems.borrow_mut());
                // The store must be chosen before any configuration is read.
                if todo::todo_store(&text).is_some() {
                    let why = "only a .waypost/todo.json chooses the store; say --store file:DIR";
                    config.ignored.push(format!("{name}: its storage is not used: {why}"));
                }
            }
            (_, Err(error)) => {
                let what = format!("`compat.todo`: {file:?} cannot be read: {error}");
                self.wrong(at, what, "name a file beside this one");
            }
        }
    }
}
