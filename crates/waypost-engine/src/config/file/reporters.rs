//! `[reporters.NAME]`: who else is told how runs go.

use toml::de::DeTable;

use super::Reader;
use crate::config::executors::stays_inside;
use crate::config::{ENVIRONMENT_DEFAULT, REPORT_EVENTS, REPORT_SECONDS_DEFAULT, Report, Reporter, nearest};

impl Reader<'_> {
    /// The reporter that a table describes; nothing when it is wrong, which was reported then.
    pub(super) fn reporter(&mut self, path: &str, at: usize, table: &DeTable<'_>) -> Option<Reporter> {
        let mut table = self.table(path, table);
        let kind = table.text(self, "kind");
        let events = table.words(self, "events");
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
                let command = table.words(self, "command").map(|(_, words)| words);
                let environment = table.words(self, "environment").map(|(_, names)| names);
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
            Some(other) => {
                let known = ["console", "file", "command"];
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
        for word in events.iter().flat_map(|(_, words)| words).filter(|word| !is_event(word)) {
            let hint = match nearest(word, REPORT_EVENTS) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("it can be {}", REPORT_EVENTS.join(", ")),
            };
            let at = events.as_ref().map_or(at, |(at, _)| *at);
            self.wrong(
                at,
                format!("`{path}.events` names {word:?}, and nothing is told under that name"),
                hint,
            );
        }
        table.end(self);
        Some(Reporter { report: report?, events: events.map(|(_, words)| words).unwrap_or_default() })
    }
}

fn is_event(word: &str) -> bool {
    REPORT_EVENTS.contains(&word)
}
