//! The part of a configuration file that says what executors are.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeTable;

use super::reader::{Reader, Table};
use crate::executor::{ENVIRONMENT_DEFAULT, Process, Secret, Worker};
use crate::parse::values::{one_of, stays_inside};
use crate::settings::Executor;

/// The words for executors.
const KINDS: [&str; 6] = ["process", "dispatch", "agent", "http", "human", "noop"];

impl Reader<'_> {
    pub(super) fn executor(&mut self, path: &str, at: usize, table: &DeTable<'_>) -> Option<Executor> {
        let mut table = self.table(path, table);
        let kind = table.text(self, "kind");
        let executor = match kind.as_ref().map(|(_, kind)| kind.as_str()) {
            Some("noop") => Some(Executor::Noop),
            Some("human") => Some(Executor::Human),
            Some("process") => self
                .process(path, at, &mut table)
                .map(|process| Executor::Worker(Worker::Process(Arc::new(process)))),
            Some("agent") => {
                let agent = self.agent(path, at, &mut table);
                agent.map(|agent| Executor::Worker(Worker::Agent(Arc::new(agent))))
            }
            Some("http") => {
                self.http(path, at, &mut table).map(|http| Executor::Worker(Worker::Http(Arc::new(http))))
            }
            Some("dispatch") => self.dispatch(path, at, &mut table).map(Executor::Dispatch),
            Some(other) => {
                let hint = one_of(other, &KINDS);
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

    pub(super) fn process(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Process> {
        let shell = table.flag(self, "shell").unwrap_or(false);
        let command = self.command(path, at, table);
        let directory = self.directory(path, table);
        let environment = self.environment(table);
        let timeout_seconds = self.timeout(table);
        let secrets = self.secrets(path, table);
        let ((command_at, command), directory) = (command?, directory?);
        if shell && command.len() != 1 {
            let what = format!("{path} has `shell = true` and {} words", command.len());
            self.wrong(command_at, what, "write the whole line as one text in the list");
            return None;
        }
        Some(Process { command, shell, directory, environment, secrets, timeout_seconds })
    }

    /// A program and its arguments, which must be there.
    pub(super) fn command(
        &mut self,
        path: &str,
        at: usize,
        table: &mut Table<'_>,
    ) -> Option<(usize, Vec<String>)> {
        let Some((command_at, command)) = table.strings(self, "command") else {
            if table.is_without("command") {
                let hint = "for example command = [\"make\", \"test\"]";
                self.wrong(at, format!("{path} has no `command`"), hint);
            }
            return None;
        };
        if command.is_empty() || command[0].is_empty() {
            self.wrong(command_at, format!("the command of {path} is empty"), "name a program");
            return None;
        }
        Some((command_at, command))
    }

    /// The folder to start in; the workspace itself where none is named.
    pub(super) fn directory(&mut self, path: &str, table: &mut Table<'_>) -> Option<String> {
        let Some((at, folder)) = table.text(self, "directory") else { return Some(String::new()) };
        if stays_inside(&folder) {
            return Some(folder);
        }
        let what = format!("{path} would start in {folder:?}, outside of the workspace");
        self.wrong(at, what, "name a folder of the workspace, relative to it");
        None
    }

    /// Variables that are let through.
    pub(super) fn environment(&mut self, table: &mut Table<'_>) -> Vec<String> {
        let defaults = || ENVIRONMENT_DEFAULT.map(str::to_owned).to_vec();
        table.strings(self, "environment").map_or_else(defaults, |(_, names)| names)
    }

    pub(super) fn timeout(&mut self, table: &mut Table<'_>) -> Option<u32> {
        let seconds = table.seconds(self, "timeout_seconds", 0)?;
        u32::try_from(seconds).ok().filter(|&seconds| seconds > 0)
    }

    pub(super) fn secrets(&mut self, path: &str, table: &mut Table<'_>) -> BTreeMap<String, Secret> {
        let mut secrets = BTreeMap::new();
        for (name, at, secret) in table.tables(self, "secrets") {
            let path = format!("{path}.secrets.{name}");
            let secret = self.table(&path, secret);
            if let Some(secret) = self.secret(&path, at, secret) {
                secrets.insert(name, secret);
            }
        }
        secrets
    }

    pub(super) fn secret(&mut self, path: &str, at: usize, mut table: Table<'_>) -> Option<Secret> {
        let secret = match (table.text(self, "variable"), table.text(self, "file")) {
            (Some((_, variable)), None) => Some(Secret::Variable(variable)),
            (None, Some((_, file))) => Some(Secret::File(file)),
            (Some(_), Some(_)) | (None, None) => {
                let hint = "write { variable = \"NAME\" } or { file = \"PATH\" }; a value never stands here";
                self.wrong(at, format!("{path} needs either `variable` or `file`"), hint);
                None
            }
        };
        table.end(self);
        secret
    }
}
