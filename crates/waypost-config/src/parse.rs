//! From the text of a configuration file to its meaning. Reads on after a mistake, so that all are reported at once.

pub(crate) mod agents;
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

use std::path::Path;
use std::sync::Arc;

use toml::de::DeTable;
use waypost_core::limits;

pub use self::agents::PROMPT_MARK;
use self::jaato_todo as todo;
pub use self::jaato_todo::todo_store;
use self::reader::{Reader, Table, set};
use crate::executor::Worker;
use crate::layer::{Layer, Origin, ReadFile};
use crate::problem::ConfigProblem;
use crate::settings::{ApprovalPolicy, CONCURRENCY_MAX, Config, LOG_BYTES_LIMIT, Queue};

/// Applies one file over what stands.
pub(super) fn apply(
    config: &mut Config,
    layer: &Layer,
    read: ReadFile<'_>,
    variables: &[(&str, &str)],
    problems: &mut Vec<ConfigProblem>,
) {
    let mut reader = Reader { layer, read, problems };
    let parsed = match DeTable::parse(&layer.text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            return reader.wrong(at, error.message().to_owned(), "correct the file there");
        }
    };
    let mut top = reader.table("", parsed.get_ref());
    reader.approval_key(config, &mut top);
    if let Some((_, name)) = top.text(&mut reader, "default_executor") {
        config.default_executor = (!name.is_empty()).then_some(name);
    }
    for (name, at, table) in top.tables(&mut reader, "queues") {
        let path = format!("queues.{name}");
        let mut table = reader.table(&path, table);
        match table.number(&mut reader, "concurrency", 1, CONCURRENCY_MAX.into()) {
            Some(number) => {
                config.queues.insert(name, Queue { concurrency: number as u32 });
            }
            None if table.is_without("concurrency") => {
                reader.wrong(at, format!("{path} has no `concurrency`"), "for example concurrency = 4");
            }
            None => {}
        }
        table.end(&mut reader);
    }
    for (name, at, table) in top.tables(&mut reader, "executors") {
        if let Some(executor) = reader.executor(&format!("executors.{name}"), at, table) {
            config.executors.insert(name, executor);
        }
    }
    for (name, at, table) in top.tables(&mut reader, "checks") {
        let path = format!("checks.{name}");
        let mut table = reader.table(&path, table);
        if let Some(process) = reader.process(&path, at, &mut table) {
            config.checks.insert(name, Worker::Process(Arc::new(process)));
        }
        table.end(&mut reader);
    }
    for (name, _, table) in top.tables(&mut reader, "shapes") {
        if let Some(shape) = reader.shape(&format!("shapes.{name}"), table) {
            config.shapes.insert(name, shape);
        }
    }
    for (name, at, table) in top.tables(&mut reader, "reporters") {
        if let Some(reporter) = reader.reporter(&format!("reporters.{name}"), at, table) {
            config.reporters.insert(name, reporter);
        }
    }
    reader.models(config, &mut top);
    if let Some(mut compat) = top.inner(&mut reader, "compat") {
        if let Some((at, file)) = compat.text(&mut reader, "todo") {
            let beside = Path::new(&layer.name).parent().unwrap_or(Path::new("")).join(&file);
            match (reader.read)(&beside) {
                Ok(text) => {
                    let name = beside.display().to_string();
                    todo::apply(config, &name, &text, variables, reader.problems);
                    // Which store is meant has to be known before any configuration is read.
                    if todo::todo_store(&text).is_some() {
                        let why = "only a .waypost/todo.json chooses the store; say --store file:DIR";
                        config.ignored.push(format!("{name}: its storage is not used: {why}"));
                    }
                }
                Err(error) => {
                    let what = format!("`compat.todo`: {file:?} cannot be read: {error}");
                    reader.wrong(at, what, "name a file beside this one");
                }
            }
        }
        compat.end(&mut reader);
    }
    if let Some(mut retry) = top.inner(&mut reader, "retry") {
        let attempts = retry.number(&mut reader, "attempts", 1, limits::ATTEMPTS_MAX.into());
        set(&mut config.retry.attempts, attempts);
        set(&mut config.retry.backoff_seconds, retry.seconds(&mut reader, "backoff_seconds", 0));
        set(&mut config.retry.backoff_seconds_max, retry.seconds(&mut reader, "backoff_seconds_max", 0));
        retry.end(&mut reader);
    }
    if let Some(mut lease) = top.inner(&mut reader, "lease") {
        set(&mut config.lease_seconds, lease.seconds(&mut reader, "seconds", 2));
        set(&mut config.heartbeat_seconds, lease.seconds(&mut reader, "heartbeat_seconds", 1));
        lease.end(&mut reader);
    }
    if let Some(mut bounds) = top.inner(&mut reader, "limits") {
        if let Some(seconds) = bounds.seconds(&mut reader, "timeout_seconds", 0) {
            config.timeout_seconds = (seconds > 0).then_some(seconds as u32);
        }
        set(&mut config.stop_seconds, bounds.seconds(&mut reader, "stop_seconds", 0));
        set(&mut config.lock_wait_seconds, bounds.seconds(&mut reader, "lock_wait_seconds", 0));
        let output = bounds.number(&mut reader, "output_bytes_max", 1, limits::JSON_BYTES_MAX as u64);
        config.output_bytes_max = output.unwrap_or(config.output_bytes_max);
        let log = bounds.number(&mut reader, "log_bytes_max", 0, LOG_BYTES_LIMIT);
        config.log_bytes_max = log.unwrap_or(config.log_bytes_max);
        bounds.end(&mut reader);
    }
    if let Some(mut retention) = top.inner(&mut reader, "retention") {
        if let Some((at, text)) = retention.text(&mut reader, "older_than") {
            match span(&text) {
                Some(seconds) => config.retention_seconds = Some(seconds),
                None => {
                    let what = format!("`retention.older_than`: {text:?} is not a duration");
                    reader.wrong(at, what, "for example older_than = \"30d\"");
                }
            }
        }
        retention.end(&mut reader);
    }
    reader.tui(config, &mut top);
    top.end(&mut reader);
}

/// Seconds of a span of time that is at least one: `90s`, `15m`, `2h`, `30d`.
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

impl Reader<'_> {
    /// `approval = "work"`, or a table with that as its `policy`.
    fn approval_key(&mut self, config: &mut Config, top: &mut Table<'_>) {
        if !top.is_table("approval") {
            if let Some((at, word)) = top.text(self, "approval") {
                self.approval(config, at, &word);
            }
            return;
        }
        let Some(mut table) = top.inner(self, "approval") else { return };
        if let Some((at, word)) = table.text(self, "policy") {
            self.approval(config, at, &word);
        }
        if let Some(wanted) = table.flag(self, "elicitation") {
            if self.layer.origin == Origin::Workspace && wanted && !config.elicitation {
                let at = table.place("elicitation").unwrap_or(0);
                let what =
                    "`approval.elicitation` = true lets approve where the user's own configuration does not";
                self.wrong(at, what, "write it into the user's configuration, or take it out here");
            } else {
                config.elicitation = wanted;
            }
        }
        table.end(self);
    }

    /// The workspace's file travels with a repository and lies where agents write: it can ask for more approval than
    /// the user's own file, and not for less.
    fn approval(&mut self, config: &mut Config, at: usize, word: &str) {
        let policy = match word {
            "never" => ApprovalPolicy::Never,
            "work" => ApprovalPolicy::Work,
            "all" => ApprovalPolicy::All,
            other => {
                let what = format!("`approval` is {other:?}, and can be work, all or never");
                return self.wrong(at, what, "for example approval = \"work\"");
            }
        };
        if self.layer.origin == Origin::Workspace && policy < config.approval {
            let what =
                format!("`approval` = {word:?} asks for less approval than the user's own configuration");
            return self.wrong(at, what, "write it into the user's configuration, or take it out here");
        }
        config.approval = policy;
    }
}
