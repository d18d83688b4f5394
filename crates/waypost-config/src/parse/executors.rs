//! Parses `[executors.NAME]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use glob::Pattern;

use super::reader::Table;
use crate::executor::{ENVIRONMENT_DEFAULT, Process, Secret, Worker};
use crate::parse::values::stays_inside;
use crate::pinned_files::PinnedFiles;
use crate::settings::Executor;

/// Reads the rest of a table of a known kind.
type Read = fn(&mut Table<'_>) -> Option<Executor>;

/// The kinds of executors, by name.
const KINDS: [(&str, Read); 6] = [
    ("process", |table| Some(Executor::Worker(Worker::Process(Arc::new(table.process()?))))),
    ("dispatch", |table| table.dispatch().map(Executor::Dispatch)),
    ("agent", |table| Some(Executor::Worker(Worker::Agent(Arc::new(table.agent()?))))),
    ("http", |table| Some(Executor::Worker(Worker::Http(Arc::new(table.http()?))))),
    ("human", |_| Some(Executor::Human)),
    ("noop", |_| Some(Executor::Noop)),
];

impl Table<'_> {
    /// Reads the patterns of the files that an approval binds too, besides those that say where the work goes. A later file
    /// that defines the executor anew replaces them.
    pub(super) fn pin<'w>(
        &mut self,
        pinned: &mut PinnedFiles,
        directory: &str,
        places: impl IntoIterator<Item = &'w str>,
    ) {
        let patterns = self.strings_at("pin");
        pinned.patterns.remove(&self.path);
        pinned.directories.insert(self.path.clone(), directory.to_owned());
        let places: Vec<String> = places.into_iter().map(Pattern::escape).collect();
        if !places.is_empty() {
            pinned.patterns.insert(self.path.clone(), places);
        }
        let Some((at, patterns)) = patterns else { return };
        for pattern in
            patterns.iter().filter(|pattern| !stays_inside(pattern) || Pattern::new(pattern).is_err())
        {
            let what = format!("`{}.pin`: {pattern:?} is no pattern of files below the workspace", self.path);
            self.wrong(at, what, "for example pin = [\"Makefile\", \"scripts/*.sh\"]");
        }
        pinned.patterns.entry(self.path.clone()).or_default().extend(patterns);
    }

    pub(super) fn executor(&mut self) -> Option<Executor> {
        let Some(read) = self.choice("kind", &KINDS) else {
            self.missing("kind", "for example kind = \"process\"");
            self.accept_rest();
            return None;
        };
        read(self)
    }

    /// Reads the text that stands for the definition in approvals, where workers define the executor differently on purpose.
    pub(super) fn revision(&mut self) -> Option<String> {
        let (at, revision) = self.text_at("revision")?;
        if !self.is_of_account() {
            let what = format!("`{}.revision` counts only in the user's own configuration", self.path);
            return self.refuse(at, what, "write it into the user's configuration, or take it out here");
        }
        if revision.is_empty() {
            return self.refuse(
                at,
                format!("`{}.revision` is empty", self.path),
                "for example revision = \"1\"",
            );
        }
        Some(revision)
    }

    pub(super) fn process(&mut self) -> Option<Process> {
        let shell = self.flag("shell").unwrap_or(false);
        let command = self.command();
        let directory = self.directory();
        let environment = self.environment();
        let timeout_seconds = self.timeout();
        let secrets = self.secrets();
        let ((command_at, command), directory) = (command?, directory?);
        if shell && command.len() != 1 {
            let what = format!("{} has `shell = true` and {} words", self.path, command.len());
            return self.refuse(command_at, what, "write the whole line as one text in the list");
        }
        Some(Process { command, shell, directory, environment, secrets, timeout_seconds })
    }

    /// Reads the program and its arguments. At least the program is required.
    pub(super) fn command(&mut self) -> Option<(usize, Vec<String>)> {
        let Some((at, command)) = self.strings_at("command") else {
            self.missing("command", "for example command = [\"make\", \"test\"]");
            return None;
        };
        if command.first().is_none_or(String::is_empty) {
            return self.refuse(at, format!("the command of {} is empty", self.path), "name a program");
        }
        Some((at, command))
    }

    /// Reads the working directory; empty for the workspace itself.
    pub(super) fn directory(&mut self) -> Option<String> {
        let Some((at, folder)) = self.text_at("directory") else { return Some(String::new()) };
        if stays_inside(&folder) {
            return Some(folder);
        }
        let what = format!("{} would start in {folder:?}, outside of the workspace", self.path);
        self.refuse(at, what, "name a folder of the workspace, relative to it")
    }

    /// Reads the names of the variables that are passed on.
    pub(super) fn environment(&mut self) -> Vec<String> {
        self.strings("environment").unwrap_or_else(|| ENVIRONMENT_DEFAULT.map(str::to_owned).to_vec())
    }

    pub(super) fn timeout(&mut self) -> Option<u32> {
        self.seconds("timeout_seconds", 0).filter(|&seconds| seconds > 0)
    }

    pub(super) fn secrets(&mut self) -> BTreeMap<String, Secret> {
        self.tables("secrets", |_, secret| secret.secret()).into_iter().collect()
    }

    /// Reads where a secret comes from that is sent to an address. The workspace's file can come with a repository, so that
    /// it cannot choose both what is sent and where to.
    pub(super) fn sent_secret(&mut self) -> Option<Secret> {
        let secret = self.secret()?;
        if !self.is_of_workspace() {
            return Some(secret);
        }
        let what = format!("{} sends a secret to an address, which a workspace's file cannot do", self.path);
        self.refuse(self.at, what, "move it to ~/.config/waypost/config.toml")
    }

    /// Reads where a secret comes from.
    pub(super) fn secret(&mut self) -> Option<Secret> {
        match (self.text("variable"), self.text("file")) {
            (Some(variable), None) => Some(Secret::Variable(variable)),
            (None, Some(file)) => Some(Secret::File(file)),
            (Some(_), Some(_)) | (None, None) => {
                let hint = "write { variable = \"NAME\" } or { file = \"PATH\" }; a value never stands here";
                self.refuse(self.at, format!("{} needs either `variable` or `file`", self.path), hint)
            }
        }
    }
}
