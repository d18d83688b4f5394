//! From the text of a configuration file to its meaning. Reads on after a mistake, so that all are reported at once.

mod models;
mod reporters;
mod shapes;
mod tui;

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use waypost_core::limits;

use super::{
    ApprovalPolicy, CONCURRENCY_MAX, Config, ConfigProblem, LOG_BYTES_LIMIT, Layer, Origin, Queue, ReadFile,
    SECONDS_MAX, Worker, nearest, todo,
};

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
                    let what = format!("`retention.older_than`: {text:?} is no span of time");
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

fn set(place: &mut u32, number: Option<u64>) {
    if let Some(number) = number {
        *place = u32::try_from(number).unwrap_or(u32::MAX);
    }
}

/// What all parts of one file share.
pub(super) struct Reader<'a> {
    layer: &'a Layer,
    read: ReadFile<'a>,
    problems: &'a mut Vec<ConfigProblem>,
}

impl<'a> Reader<'a> {
    /// How the file is spoken of.
    pub(super) fn name(&self) -> &str {
        &self.layer.name
    }

    /// The line of a place in the file, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.layer.text.get(..at).unwrap_or("").matches('\n').count() + 1
    }

    pub(super) fn wrong(&mut self, at: usize, what: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(ConfigProblem {
            place: self.layer.name.clone(),
            line: Some(self.line(at)),
            what: what.into(),
            hint: hint.into(),
        });
    }

    pub(super) fn table<'t>(&self, path: &str, table: &'t DeTable<'t>) -> Table<'t> {
        Table { path: path.to_owned(), table, known: Vec::new() }
    }

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

/// A table that is being read, with the keys that were asked for.
pub(super) struct Table<'t> {
    path: String,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
}

impl<'t> Table<'t> {
    pub(super) fn is_without(&self, key: &str) -> bool {
        !self.table.iter().any(|(name, _)| name.get_ref() == key)
    }

    fn is_table(&self, key: &str) -> bool {
        self.table.iter().any(|(name, value)| name.get_ref() == key && value.get_ref().as_table().is_some())
    }

    pub(super) fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn find(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.push(key);
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    pub(super) fn expected(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        wanted: &str,
    ) {
        let what = format!("`{}` is {}, and must be {wanted}", self.full(key), kind_of(value.get_ref()));
        reader.wrong(value.span().start, what, "correct the value");
    }

    pub(super) fn text(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<(usize, String)> {
        let value = self.find(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some((value.span().start, text.to_owned())),
            None => {
                self.expected(reader, key, value, "a text");
                None
            }
        }
    }

    pub(super) fn flag(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<bool> {
        let value = self.find(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.expected(reader, key, value, "true or false");
        }
        flag
    }

    pub(super) fn number(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
        min: u64,
        max: u64,
    ) -> Option<u64> {
        let value = self.find(key)?;
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.expected(reader, key, value, &format!("a whole number from {min} to {max}"));
        }
        number
    }

    pub(super) fn seconds(&mut self, reader: &mut Reader<'_>, key: &'static str, min: u64) -> Option<u64> {
        self.number(reader, key, min, SECONDS_MAX.into())
    }

    pub(super) fn words(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
    ) -> Option<(usize, Vec<String>)> {
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

    pub(super) fn inner(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<Table<'t>> {
        let value = self.find(key)?;
        match value.get_ref().as_table() {
            Some(table) => Some(reader.table(&self.full(key), table)),
            None => {
                self.expected(reader, key, value, "a table");
                None
            }
        }
    }

    /// Where the value of a key stands.
    pub(super) fn place(&self, key: &str) -> Option<usize> {
        let found = self.table.iter().find(|(name, _)| name.get_ref() == key);
        found.map(|(_, value)| value.span().start)
    }

    /// Everything in a table whose names are free: each with its name and where it stands.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, usize, &'t DeValue<'t>)> + use<'t> {
        let entries = self.table.iter();
        entries.map(|(name, value)| (name.get_ref().to_string(), name.span().start, value.get_ref()))
    }

    /// The named tables in a table: each with its name and where it stands.
    pub(super) fn tables(
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

    /// The tables of a list, each with where it stands.
    pub(super) fn list_of_tables(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
    ) -> Vec<(usize, &'t DeTable<'t>)> {
        let Some(value) = self.find(key) else { return Vec::new() };
        let tables = value.get_ref().as_array().and_then(|list| {
            let one = |item: &'t Spanned<DeValue<'t>>| Some((item.span().start, item.get_ref().as_table()?));
            list.iter().map(one).collect::<Option<Vec<_>>>()
        });
        tables.unwrap_or_else(|| {
            self.expected(reader, key, value, "a list of tables");
            Vec::new()
        })
    }

    /// Reports every key that nobody asked for.
    pub(super) fn end(self, reader: &mut Reader<'_>) {
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
