//! jaato's `todo.json`, in the flat form of its documentation and the nested form of its program. Its reporter and
//! storage become ours. Keys without a meaning here are reported as ignored, and unknown keys are errors.

use serde_json::{Map, Value};

use crate::address::is_address;
use crate::executor::Header;
use crate::layer::Origin;
use crate::parse::values::{is_log_path, stays_inside};
use crate::problem::ConfigProblem;
use crate::settings::{Config, Report, Reporter, Webhook};

/// The name of its reporter among ours.
const NAME: &str = "todo";
/// The variable that contains the token of its webhook.
const TOKEN_VARIABLE: &str = "TODO_WEBHOOK_TOKEN";
/// Where plans are stored if the flat form does not say where.
const STORAGE_PATH: &str = ".jaato/plans.json";
/// Keys that only affect what jaato displays or how it finds its files.
const MEANINGLESS: [&str; 4] = ["display", "config_path", "agent_name", "storage_use_directory"];

/// Adds its reporter, unless there is already one with that name.
pub(crate) fn apply(
    config: &mut Config,
    (file, text, origin): (&str, &str, Origin),
    variables: &[(&str, &str)],
    problems: &mut Vec<ConfigProblem>,
) {
    let mut todo = Todo { file, problems };
    let Some(fields) = todo.fields(text) else { return };
    let token = variables.iter().find(|(name, value)| *name == TOKEN_VARIABLE && !value.is_empty());
    let sent = token.filter(|_| !origin.is_of_workspace());
    if let Some(report) = todo.report(&fields, sent.map(|(_, value)| *value)) {
        // The workspace's file can come with a repository: it would choose who gets the secret.
        if let (Report::Webhook(_), Some(_), None) = (&report, token, sent) {
            config.ignored.push(format!(
                "{file}: {TOKEN_VARIABLE} is not sent to an address that a workspace's file names; configure the webhook in ~/.config/waypost/config.toml"
            ));
        }
        config.reporters.entry(NAME.to_owned()).or_insert(Reporter { report, events: Vec::new() });
    }
    todo.storage(&fields);
    for key in MEANINGLESS.iter().filter(|key| fields.contains_key(**key)) {
        config.ignored.push(format!("{file}: `{key}` has no meaning here"));
    }
    if fields.get("storage").is_some_and(|storage| storage.get("use_directory").is_some()) {
        config.ignored.push(format!("{file}: `storage.use_directory` has no meaning here"));
    }
    if storage_of(&fields).is_some_and(|(kind, _)| kind == "memory") {
        let why = "plans are kept in the store of the workspace; --store memory: forgets them";
        config.ignored.push(format!("{file}: storage `memory` has no meaning for single commands: {why}"));
    }
}

/// The store that the storage of a `todo.json` stands for, relative to the workspace. `None` for the workspace's own store.
pub fn todo_store(text: &str) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    let (kind, path) = storage_of(&fields)?;
    let path = path.filter(|path| stays_inside(path))?;
    // Our store is a folder; jaato's is one file.
    matches!(kind, "file" | "hybrid").then(|| path.strip_suffix(".json").unwrap_or(path).to_owned())
}

/// The type of its storage, and the path.
fn storage_of(fields: &Map<String, Value>) -> Option<(&str, Option<&str>)> {
    let nested = fields.get("storage");
    let nested = |name: &str| nested?.get(name)?.as_str();
    let flat = |name: &str| fields.get(name)?.as_str();
    let path = nested("path").or_else(|| flat("storage_path"));
    // The program's nested form has no default.
    let Some(kind) = nested("type") else {
        let kind = flat("storage_type")?;
        let default = matches!(kind, "file" | "hybrid").then_some(STORAGE_PATH);
        return Some((kind, path.or(default)));
    };
    Some((kind, path))
}

struct Todo<'a> {
    file: &'a str,
    problems: &'a mut Vec<ConfigProblem>,
}

impl Todo<'_> {
    fn wrong(&mut self, what: impl Into<String>, hint: impl Into<String>) {
        let place = self.file.to_owned();
        self.problems.push(ConfigProblem { place, line: None, what: what.into(), hint: hint.into() });
    }

    /// Reports a value that cannot be used.
    fn refuse<T>(&mut self, what: impl Into<String>, hint: impl Into<String>) -> Option<T> {
        self.wrong(what, hint);
        None
    }

    fn fields(&mut self, text: &str) -> Option<Map<String, Value>> {
        let fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return self.refuse("it holds no object", "write { \"reporter\": { … } }"),
            Err(error) => {
                let what = format!("it is not JSON: {error}");
                self.problems.push(ConfigProblem {
                    place: self.file.to_owned(),
                    line: Some(error.line()),
                    what,
                    hint: "correct the file there".to_owned(),
                });
                return None;
            }
        };
        let known = [
            "version",
            "reporter",
            "storage",
            "reporter_type",
            "reporter_config",
            "storage_type",
            "storage_path",
        ];
        for key in
            fields.keys().filter(|key| !known.contains(&key.as_str()) && !MEANINGLESS.contains(&key.as_str()))
        {
            self.wrong(
                format!("`{key}` is not a key of a todo.json"),
                format!("it can be {}", known.join(", ")),
            );
        }
        let version = fields.get("version").map(|version| version.to_string().trim_matches('"').to_owned());
        if let Some(version) = version.filter(|version| !["1", "1.0"].contains(&version.as_str())) {
            self.wrong(format!("`version` is {version}, and only 1.0 is known"), "write \"1.0\"");
        }
        Some(fields)
    }

    /// Reads its reporter, from the nested form (`reporter`) or the flat one (`reporter_type` and `reporter_config`).
    fn report(&mut self, fields: &Map<String, Value>, token: Option<&str>) -> Option<Report> {
        let (at, kind, more) = match (fields.get("reporter"), fields.get("reporter_type")) {
            (Some(Value::Object(nested)), _) => ("reporter", nested.get("type"), Some(nested)),
            (Some(_), _) => {
                return self.refuse(
                    "`reporter` is not an object",
                    "write { \"type\": \"webhook\", \"endpoint\": \"https://…\" }",
                );
            }
            (None, flat) => match fields.get("reporter_config") {
                Some(Value::Object(more)) => ("reporter_config", flat, Some(more)),
                Some(_) => {
                    return self
                        .refuse("`reporter_config` is not an object", "write { \"url\": \"https://…\" }");
                }
                None => ("reporter_config", flat, None),
            },
        };
        let empty = Map::new();
        let more = more.unwrap_or(&empty);
        match kind.map(|kind| kind.as_str().unwrap_or_default()) {
            None => None,
            Some("console") => Some(Report::Console),
            Some("webhook") => self.webhook(at, more, token),
            Some("file") => self.file(at, more),
            Some(other) => {
                let what = format!("the type of `{at}` is {other:?}");
                self.refuse(what, "it can be console, file or webhook")
            }
        }
    }

    fn known_keys(&mut self, at: &str, more: &Map<String, Value>, known: &[&str]) {
        for key in
            more.keys().filter(|key| *key != "type" && *key != "timeout" && !known.contains(&key.as_str()))
        {
            self.wrong(
                format!("`{at}.{key}` cannot be taken over"),
                format!("it can have {}", known.join(", ")),
            );
        }
    }

    fn file(&mut self, at: &str, more: &Map<String, Value>) -> Option<Report> {
        self.known_keys(at, more, &["path"]);
        match more.get("path").and_then(Value::as_str) {
            Some(path) if is_log_path(path) => Some(Report::File { path: path.to_owned() }),
            Some(path) => {
                let what = format!("`{at}.path` names {path:?}, outside of the workspace");
                self.refuse(
                    what,
                    "name a file of the workspace, relative to it, or an absolute path without ..",
                )
            }
            None => self.refuse(format!("`{at}` has no `path`"), "for example \"path\": \"events.jsonl\""),
        }
    }

    fn webhook(&mut self, at: &str, more: &Map<String, Value>, token: Option<&str>) -> Option<Report> {
        self.known_keys(at, more, &["url", "endpoint", "headers", "auth_token", "timeout"]);
        let url = more.get("url").or_else(|| more.get("endpoint")).and_then(Value::as_str);
        let Some(url) = url.filter(|url| is_address(url)) else {
            // The URL is not repeated because it may contain a password.
            let hint = "it begins with http:// or https:// and names a host";
            return self.refuse(format!("`{at}` has no `url` that can be used"), hint);
        };
        let mut webhook = Webhook::to(Header::Text(url.to_owned()));
        match more.get("headers") {
            None => {}
            Some(Value::Object(headers)) => {
                for (name, value) in headers {
                    if name.eq_ignore_ascii_case("content-type") {
                        continue;
                    }
                    match self.header(name, value) {
                        Some(text) => webhook.headers.push((name.clone(), Header::Text(text))),
                        None => self.wrong(format!("`{at}.headers.{name}` cannot be sent"), "correct it"),
                    }
                }
            }
            Some(_) => {
                self.wrong(format!("`{at}.headers` is not an object"), "write { \"X-Service\": \"jaato\" }")
            }
        }
        let token = more.get("auth_token").and_then(Value::as_str).or(token);
        let is_there = webhook.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let Some(token) = token.filter(|_| !is_there) {
            webhook.headers.push(("Authorization".to_owned(), Header::Text(format!("Bearer {token}"))));
        }
        match more.get("timeout").map(Value::as_f64) {
            None => {}
            Some(Some(seconds)) if (0.0..=3_600.0).contains(&seconds) && seconds > 0.0 => {
                webhook.timeout_seconds = seconds.ceil() as u32;
            }
            Some(_) => {
                self.wrong(format!("`{at}.timeout` is not a number of seconds up to 3600"), "for example 10")
            }
        }
        Some(Report::Webhook(webhook))
    }

    /// The value of a header, if both the name and the value are valid.
    fn header(&self, name: &str, value: &Value) -> Option<String> {
        let is_name = http::header::HeaderName::from_bytes(name.as_bytes()).is_ok();
        let text = value.as_str().filter(|text| http::header::HeaderValue::from_str(text).is_ok());
        text.filter(|_| is_name).map(str::to_owned)
    }

    fn storage(&mut self, fields: &Map<String, Value>) {
        if fields.get("storage").is_some_and(|storage| !storage.is_object()) {
            return self.wrong(
                "`storage` is not an object",
                "write { \"type\": \"file\", \"path\": \"plans.json\" }",
            );
        }
        let Some((kind, path)) = storage_of(fields) else { return };
        let at = if fields.contains_key("storage") { "storage.path" } else { "storage_path" };
        match (kind, path) {
            ("memory", _) => {}
            ("file" | "hybrid", Some(path)) if !path.is_empty() && stays_inside(path) => {}
            ("file" | "hybrid", Some(path)) => {
                let what = format!("`{at}` names {path:?}, outside of the workspace");
                self.wrong(what, "name a place in the workspace, or say --store file:DIR");
            }
            ("file" | "hybrid", None) => {
                self.wrong(format!("storage {kind:?} needs `{at}`"), "for example \"plans.json\"");
            }
            (other, _) => {
                self.wrong(format!("storage has the type {other:?}"), "it can be memory, file or hybrid");
            }
        }
    }
}
