//! From the text of a configuration file to its meaning. Reads on after a mistake, so that all are reported at once.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use waypost_core::limits;

use super::{
    ApprovalPolicy, CONCURRENCY_MAX, Config, ConfigProblem, ENVIRONMENT_DEFAULT, Executor, LOG_BYTES_LIMIT,
    Layer, Origin, Process, Queue, SECONDS_MAX, Secret, nearest,
};

/// Applies one file over what stands.
pub(super) fn apply(config: &mut Config, layer: &Layer, problems: &mut Vec<ConfigProblem>) {
    let mut reader = Reader { layer, problems };
    let parsed = match DeTable::parse(&layer.text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            return reader.wrong(at, error.message().to_owned(), "correct the file there");
        }
    };
    let mut top = reader.table("", parsed.get_ref());
    if let Some((at, word)) = top.text(&mut reader, "approval") {
        reader.approval(config, at, &word);
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
            config.checks.insert(name, process);
        }
        table.end(&mut reader);
    }
    for (name, _, table) in top.tables(&mut reader, "shapes") {
        let mut table = reader.table(&format!("shapes.{name}"), table);
        let said = table.text(&mut reader, "description").map(|(_, text)| text).unwrap_or_default();
        config.shapes.insert(name, said);
        table.end(&mut reader);
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
    top.end(&mut reader);
}

fn set(place: &mut u32, number: Option<u64>) {
    if let Some(number) = number {
        *place = u32::try_from(number).unwrap_or(u32::MAX);
    }
}

/// What all parts of one file share.
struct Reader<'a> {
    layer: &'a Layer,
    problems: &'a mut Vec<ConfigProblem>,
}

impl<'a> Reader<'a> {
    fn wrong(&mut self, at: usize, what: impl Into<String>, hint: impl Into<String>) {
        let before = self.layer.text.get(..at).unwrap_or("");
        self.problems.push(ConfigProblem {
            place: self.layer.name.clone(),
            line: Some(before.matches('\n').count() + 1),
            what: what.into(),
            hint: hint.into(),
        });
    }

    fn table<'t>(&self, path: &str, table: &'t DeTable<'t>) -> Table<'t> {
        Table { path: path.to_owned(), table, known: Vec::new() }
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

    fn executor(&mut self, path: &str, at: usize, table: &DeTable<'_>) -> Option<Executor> {
        let mut table = self.table(path, table);
        let kind = table.text(self, "kind");
        let executor = match kind.as_ref().map(|(_, kind)| kind.as_str()) {
            Some("noop") => Some(Executor::Noop),
            Some("human") => Some(Executor::Human),
            Some("process") => self.process(path, at, &mut table).map(Executor::Process),
            Some("dispatch") => self.dispatch(path, at, &mut table).map(Executor::Dispatch),
            Some(other) => {
                let known = ["process", "dispatch", "human", "noop"];
                let hint = match nearest(other, known) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("it can be {}", known.join(", ")),
                };
                let at = kind.as_ref().map_or(at, |(at, _)| *at);
                self.wrong(at, format!("{path} has the unknown kind {other:?}"), hint);
                return None;
            }
            None if table.is_without("kind") => {
                self.wrong(at, format!("{path} has no `kind`"), "for example kind = \"process\"");
                return None;
            }
            None => return None,
        };
        table.end(self);
        executor
    }

    fn dispatch(
        &mut self,
        path: &str,
        at: usize,
        table: &mut Table<'_>,
    ) -> Option<BTreeMap<String, Process>> {
        if let Some((at, target)) = table.text(self, "target")
            && target != "local"
        {
            self.wrong(
                at,
                format!("{path} has the target {target:?}, and only \"local\" can be had"),
                "write \"local\"",
            );
        }
        let mut workers = BTreeMap::new();
        for (name, at, worker) in table.tables(self, "workers") {
            let path = format!("{path}.workers.{name}");
            let mut worker = self.table(&path, worker);
            if let Some(process) = self.process(&path, at, &mut worker) {
                workers.insert(name, process);
            }
            worker.end(self);
        }
        if table.is_without("workers") {
            let hint = format!("add [{path}.workers.NAME] with a `command`");
            self.wrong(at, format!("{path} has no workers"), hint);
            return None;
        }
        Some(workers)
    }

    fn process(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Process> {
        let shell = table.flag(self, "shell").unwrap_or(false);
        let command = table.words(self, "command");
        let directory = table.text(self, "directory");
        let environment = table.words(self, "environment");
        let timeout = table.seconds(self, "timeout_seconds", 0);
        let mut secrets = BTreeMap::new();
        for (name, at, secret) in table.tables(self, "secrets") {
            let path = format!("{path}.secrets.{name}");
            let mut secret = self.table(&path, secret);
            let from = (secret.text(self, "variable"), secret.text(self, "file"));
            match from {
                (Some((_, variable)), None) => {
                    secrets.insert(name, Secret::Variable(variable));
                }
                (None, Some((_, file))) => {
                    secrets.insert(name, Secret::File(file));
                }
                (Some(_), Some(_)) | (None, None) => {
                    let hint =
                        "write { variable = \"NAME\" } or { file = \"PATH\" }; a value never stands here";
                    self.wrong(at, format!("{path} needs either `variable` or `file`"), hint);
                }
            }
            secret.end(self);
        }
        if let Some((at, folder)) = &directory
            && !stays_inside(folder)
        {
            let what = format!("{path} would start in {folder:?}, outside of the workspace");
            self.wrong(*at, what, "name a folder of the workspace, relative to it");
            return None;
        }
        let Some((command_at, command)) = command else {
            if table.is_without("command") {
                self.wrong(
                    at,
                    format!("{path} has no `command`"),
                    "for example command = [\"make\", \"test\"]",
                );
            }
            return None;
        };
        if command.is_empty() || command[0].is_empty() {
            self.wrong(command_at, format!("the command of {path} is empty"), "name a program");
            return None;
        }
        if shell && command.len() != 1 {
            let what = format!("{path} has `shell = true` and {} words", command.len());
            self.wrong(command_at, what, "write the whole line as one text in the list");
            return None;
        }
        let defaults = || ENVIRONMENT_DEFAULT.map(str::to_owned).to_vec();
        Some(Process {
            command,
            shell,
            directory: directory.map(|(_, folder)| folder).unwrap_or_default(),
            environment: environment.map_or_else(defaults, |(_, names)| names),
            secrets,
            timeout_seconds: timeout
                .and_then(|seconds| u32::try_from(seconds).ok())
                .filter(|&seconds| seconds > 0),
        })
    }
}

/// Whether a path names something below where it starts, as far as its text says. Links are looked at when it is used.
fn stays_inside(path: &str) -> bool {
    use std::path::{Component, Path};
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(inside)
}

/// A table that is being read, with the keys that were asked for.
struct Table<'t> {
    path: String,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
}

impl<'t> Table<'t> {
    fn is_without(&self, key: &str) -> bool {
        !self.table.iter().any(|(name, _)| name.get_ref() == key)
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn find(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.push(key);
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn expected(&self, reader: &mut Reader<'_>, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) {
        let what = format!("`{}` is {}, and must be {wanted}", self.full(key), kind_of(value.get_ref()));
        reader.wrong(value.span().start, what, "correct the value");
    }

    fn text(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<(usize, String)> {
        let value = self.find(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some((value.span().start, text.to_owned())),
            None => {
                self.expected(reader, key, value, "a text");
                None
            }
        }
    }

    fn flag(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<bool> {
        let value = self.find(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.expected(reader, key, value, "true or false");
        }
        flag
    }

    fn number(&mut self, reader: &mut Reader<'_>, key: &'static str, min: u64, max: u64) -> Option<u64> {
        let value = self.find(key)?;
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.expected(reader, key, value, &format!("a whole number from {min} to {max}"));
        }
        number
    }

    fn seconds(&mut self, reader: &mut Reader<'_>, key: &'static str, min: u64) -> Option<u64> {
        self.number(reader, key, min, SECONDS_MAX.into())
    }

    fn words(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<(usize, Vec<String>)> {
        let value = self.find(key)?;
        let words = value.get_ref().as_array().and_then(|list| {
            list.iter()
                .map(|word| word.get_ref().as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
        });
        if words.is_none() {
            self.expected(reader, key, value, "a list of texts");
        }
        words.map(|words| (value.span().start, words))
    }

    fn inner(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<Table<'t>> {
        let value = self.find(key)?;
        match value.get_ref().as_table() {
            Some(table) => Some(reader.table(&self.full(key), table)),
            None => {
                self.expected(reader, key, value, "a table");
                None
            }
        }
    }

    /// The named tables in a table: each with its name and where it stands.
    fn tables(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
    ) -> Vec<(String, usize, &'t DeTable<'t>)> {
        let Some(outer) = self.inner(reader, key) else { return Vec::new() };
        let mut tables = Vec::new();
        for (name, value) in outer.table.iter() {
            match value.get_ref().as_table() {
                Some(table) => tables.push((name.get_ref().to_string(), name.span().start, table)),
                None => outer.expected(reader, name.get_ref(), value, "a table"),
            }
        }
        tables
    }

    /// Reports every key that nobody asked for.
    fn end(self, reader: &mut Reader<'_>) {
        for (name, _) in self.table.iter().filter(|(name, _)| !self.known.contains(&name.get_ref().as_ref()))
        {
            let hint = match nearest(name.get_ref(), self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it can be {}", self.known.join(", ")),
            };
            let what = format!("`{}` is no key of the configuration", self.full(name.get_ref()));
            reader.wrong(name.span().start, what, hint);
        }
    }
}

fn kind_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
