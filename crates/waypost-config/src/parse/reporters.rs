//! Parses `[reporters.NAME]`: who else receives the events of runs.

use toml::de::DeValue;

use super::reader::{Table, set};
use crate::address::is_address;
use crate::executor::Header;
use crate::parse::values::{is_log_path, one_of};
use crate::settings::{
    REPORT_EVENTS, REPORT_SECONDS_DEFAULT, Report, Reporter, WEBHOOK_ATTEMPTS_MAX, Webhook,
};

/// The highest time limit of a reporter for one event.
const REPORT_SECONDS_MAX: u32 = 3_600;

/// Reads the rest of a table of a known kind, and lists the events that it can subscribe to: a webhook receives events
/// of the log, the other kinds those of a run.
type Kind = (fn(&mut Table<'_>) -> Option<Report>, fn() -> Vec<&'static str>);

/// The kinds of reporters, by name.
const KINDS: [(&str, Kind); 4] = [
    ("console", (|_| Some(Report::Console), of_runs)),
    ("file", (|table| table.report_file(), of_runs)),
    ("command", (|table| table.report_command(), of_runs)),
    ("webhook", (|table| table.webhook().map(Report::Webhook), waypost_core::event_kinds)),
];

fn of_runs() -> Vec<&'static str> {
    REPORT_EVENTS.to_vec()
}

impl Table<'_> {
    /// Reads a reporter. Returns `None` if it is wrong, after reporting why.
    pub(super) fn reporter(&mut self) -> Option<Reporter> {
        let Some((read, events_known)) = self.choice("kind", &KINDS) else {
            self.missing("kind", "for example kind = \"file\"");
            self.accept_rest();
            return None;
        };
        let (at, events) = self.strings_at("events").unwrap_or_default();
        let report = read(self);
        let known = events_known();
        for word in events.iter().filter(|word| !known.contains(&word.as_str())) {
            let what = format!("`{}.events` names {word:?}, which is not an event", self.path);
            self.wrong(at, what, one_of(word, &known));
        }
        Some(Reporter { report: report?, events })
    }

    fn report_file(&mut self) -> Option<Report> {
        let Some((at, file)) = self.text_at("path") else {
            self.missing("path", "for example path = \"events.jsonl\"");
            return None;
        };
        if is_log_path(&file) {
            return Some(Report::File { path: file });
        }
        let what = format!("{} would write {file:?}, outside of the workspace", self.path);
        self.refuse(at, what, "name a file of the workspace, relative to it, or an absolute path without ..")
    }

    fn report_command(&mut self) -> Option<Report> {
        let command = self.strings("command").unwrap_or_default();
        let environment = self.environment();
        let seconds = self.small("timeout_seconds", 1..=REPORT_SECONDS_MAX);
        if command.first().is_none_or(String::is_empty) {
            let hint = "for example command = [\"notify-send\", \"waypost\"]";
            return self.refuse(self.at, format!("{} has no `command`", self.path), hint);
        }
        let timeout_seconds = seconds.unwrap_or(REPORT_SECONDS_DEFAULT);
        Some(Report::Command { command, environment, timeout_seconds })
    }

    fn webhook(&mut self) -> Option<Webhook> {
        let url = self.address();
        let mut webhook = Webhook::to(url.clone().unwrap_or_else(|| Header::Text(String::new())));
        webhook.headers = self.headers();
        webhook.hmac = self.section("hmac", Table::sent_secret).flatten();
        set(&mut webhook.timeout_seconds, self.small("timeout_seconds", 1..=REPORT_SECONDS_MAX));
        set(&mut webhook.attempts, self.small("attempts", 1..=WEBHOOK_ATTEMPTS_MAX));
        set(&mut webhook.backoff_seconds, self.seconds("backoff_seconds", 0));
        set(&mut webhook.backoff_seconds_max, self.seconds("backoff_seconds_max", 0));
        url.map(|_| webhook)
    }

    /// Reads a URL, or the source of one that is secret as a whole.
    fn address(&mut self) -> Option<Header> {
        let Some(value) = self.find("url") else {
            self.missing("url", "for example url = \"https://chat.example.org/hooks/waypost\"");
            return None;
        };
        match value.get_ref() {
            DeValue::String(url) if is_address(url) => Some(Header::Text(url.to_string())),
            DeValue::Table(_) => self.section("url", Table::sent_secret).flatten().map(Header::Secret),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                // The URL is not repeated because it may contain a password.
                let hint = "it begins with http:// or https:// and names a host; one that is secret is read from { variable = \"NAME\" }";
                let what = format!("{} has a `url` that cannot be used", self.path);
                self.refuse(value.span().start, what, hint)
            }
        }
    }
}
