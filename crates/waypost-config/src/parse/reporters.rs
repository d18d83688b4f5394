//! `[reporters.NAME]`: who else is told how runs go.

use toml::de::{DeTable, DeValue};
use waypost_core::nearest;

use super::reader::{Reader, Table};
use crate::address::is_address;
use crate::executor::{ENVIRONMENT_DEFAULT, Header};
use crate::parse::values::stays_inside;
use crate::settings::{
    REPORT_EVENTS, REPORT_SECONDS_DEFAULT, Report, Reporter, SECONDS_MAX, WEBHOOK_ATTEMPTS_MAX, Webhook,
};

impl Reader<'_> {
    /// The reporter that a table describes; nothing when it is wrong, which was reported then.
    pub(super) fn reporter(&mut self, path: &str, at: usize, table: &DeTable<'_>) -> Option<Reporter> {
        let mut table = self.table(path, table);
        let kind = table.text(self, "kind");
        let events = table.strings(self, "events");
        let report = match kind.as_ref().map(|(_, kind)| kind.as_str()) {
            Some("console") => Some(Report::Console),
            Some("file") => match table.text(self, "path") {
                Some((_, path)) if !path.is_empty() && stays_inside(&path) => Some(Report::File { path }),
                Some((at, file)) => {
                    let what = format!("{path} would write {file:?}, outside of the workspace");
                    self.wrong(at, what, "name a file of the workspace, relative to it");
                    None
                }
                None => {
                    if table.is_without("path") {
                        self.wrong(
                            at,
                            format!("{path} has no `path`"),
                            "for example path = \"events.jsonl\"",
                        );
                    }
                    None
                }
            },
            Some("command") => {
                let command = table.strings(self, "command").map(|(_, words)| words);
                let environment = table.strings(self, "environment").map(|(_, names)| names);
                let seconds = table.number(self, "timeout_seconds", 1, 3_600);
                match command {
                    Some(command) if command.first().is_some_and(|program| !program.is_empty()) => {
                        Some(Report::Command {
                            command,
                            environment: environment
                                .unwrap_or_else(|| ENVIRONMENT_DEFAULT.map(str::to_owned).to_vec()),
                            timeout_seconds: seconds.map_or(REPORT_SECONDS_DEFAULT, |seconds| seconds as u32),
                        })
                    }
                    Some(_) | None => {
                        let hint = "for example command = [\"notify-send\", \"waypost\"]";
                        self.wrong(at, format!("{path} has no `command`"), hint);
                        None
                    }
                }
            }
            Some("webhook") => self.webhook(path, at, &mut table).map(Report::Webhook),
            Some(other) => {
                let known = ["console", "file", "command", "webhook"];
                let hint = match nearest(other, known) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("it can be {}", known.join(", ")),
                };
                let at = kind.as_ref().map_or(at, |(at, _)| *at);
                self.wrong(at, format!("{path} has the unknown kind {other:?}"), hint);
                return None;
            }
            None => {
                if table.is_without("kind") {
                    self.wrong(at, format!("{path} has no `kind`"), "for example kind = \"file\"");
                }
                return None;
            }
        };
        // A webhook is told of the log, the others of what a run tells.
        let is_webhook = matches!(&kind, Some((_, kind)) if kind == "webhook");
        let known = if is_webhook { waypost_core::event_kinds() } else { REPORT_EVENTS.to_vec() };
        for word in events.iter().flat_map(|(_, words)| words).filter(|word| !known.contains(&word.as_str()))
        {
            let hint = match nearest(word, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("it can be {}", known.join(", ")),
            };
            let at = events.as_ref().map_or(at, |(at, _)| *at);
            self.wrong(at, format!("`{path}.events` names {word:?}, which is not an event"), hint);
        }
        table.end(self);
        Some(Reporter { report: report?, events: events.map(|(_, words)| words).unwrap_or_default() })
    }

    fn webhook(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Webhook> {
        let url = self.address(path, at, table);
        let headers = self.headers(path, table);
        let hmac_at = table.place("hmac").unwrap_or(at);
        let hmac = table.inner(self, "hmac");
        let hmac = hmac.and_then(|secret| self.secret(&format!("{path}.hmac"), hmac_at, secret));
        let seconds = table.number(self, "timeout_seconds", 1, 3_600);
        let attempts = table.number(self, "attempts", 1, WEBHOOK_ATTEMPTS_MAX.into());
        let backoff = table.number(self, "backoff_seconds", 0, SECONDS_MAX.into());
        let backoff_max = table.number(self, "backoff_seconds_max", 0, SECONDS_MAX.into());
        let plain = Webhook::to(url?);
        let or = |said: Option<u64>, default: u32| said.map_or(default, |number| number as u32);
        Some(Webhook {
            headers,
            hmac,
            timeout_seconds: or(seconds, plain.timeout_seconds),
            attempts: or(attempts, plain.attempts),
            backoff_seconds: or(backoff, plain.backoff_seconds),
            backoff_seconds_max: or(backoff_max, plain.backoff_seconds_max),
            ..plain
        })
    }

    /// An address, or where it is read if it is a secret as a whole.
    fn address(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Header> {
        let Some(value) = table.find("url") else {
            let hint = "for example url = \"https://chat.example.org/hooks/waypost\"";
            self.wrong(at, format!("{path} has no `url`"), hint);
            return None;
        };
        let place = value.span().start;
        match value.get_ref() {
            DeValue::String(url) if is_address(url) => Some(Header::Text(url.to_string())),
            DeValue::Table(secret) => {
                let path = format!("{path}.url");
                let secret = self.table(&path, secret);
                self.secret(&path, place, secret).map(Header::Secret)
            }
            _ => {
                // Not repeated: there may be a password in it.
                let hint = "it begins with http:// or https:// and names a host; one that is secret is read from { variable = \"NAME\" }";
                self.wrong(place, format!("{path} has a `url` that cannot be used"), hint);
                None
            }
        }
    }
}
