//! The files that a configuration names: its sources, the programs that it runs, its secrets and event logs. Code that
//! writes files on behalf of others must not touch these. Accesses no file.

use std::path::{Path, PathBuf};

use crate::executor::{Header, Process, Secret, Worker};
use crate::settings::{Config, Executor, Report};

/// Why a configuration names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// It is the configuration, or was read for it: a schema, a prompt.
    Read,
    /// It is a program, or may be an argument of one.
    Run,
    /// It contains a secret.
    Secret,
    /// Events are appended to it.
    EventLog,
}

impl FileRole {
    /// The role, as a clause.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Read => "the configuration is read from it",
            Self::Run => "the configuration runs it, or gives it to a program",
            Self::Secret => "the configuration takes a secret from it",
            Self::EventLog => "events are written to it",
        }
    }
}

/// A file that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Relative to the workspace unless absolute.
    pub path: PathBuf,
    pub role: FileRole,
}

impl NamedFile {
    fn new(role: FileRole, path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), role }
    }
}

impl Config {
    /// All files that it names. Every argument of a program that could be a file counts as one.
    pub fn named_files(&self) -> Vec<NamedFile> {
        let read = self.read_from.iter().map(|path| NamedFile::new(FileRole::Read, path));
        let mut files: Vec<NamedFile> = read.collect();
        for executor in self.executors.values() {
            match executor {
                Executor::Noop | Executor::Human => {}
                Executor::Worker(worker) => of_worker(worker, &mut files),
                Executor::Dispatch(workers) => {
                    workers.values().for_each(|worker| of_worker(worker, &mut files))
                }
            }
        }
        self.checks.values().for_each(|worker| of_worker(worker, &mut files));
        for reporter in self.reporters.values() {
            match &reporter.report {
                Report::Console => {}
                Report::File { path } => files.push(NamedFile::new(FileRole::EventLog, path)),
                Report::Command { command, .. } => of_command(command, "", &mut files),
                Report::Webhook(webhook) => {
                    let headers = webhook.headers.iter().map(|(_, header)| header);
                    headers.chain([&webhook.url]).for_each(|header| of_header(header, &mut files));
                    of_secrets(&webhook.hmac, &mut files);
                }
            }
        }
        for model in self.models.values() {
            of_secrets(&model.key, &mut files);
            model.headers.iter().for_each(|(_, header)| of_header(header, &mut files));
        }
        files.extend(self.planner.prompts.iter().map(|path| NamedFile::new(FileRole::Read, path)));
        files
    }
}

fn of_worker(worker: &Worker, files: &mut Vec<NamedFile>) {
    match worker {
        Worker::Process(process) => of_process(process, files),
        Worker::Agent(agent) => of_process(&agent.process, files),
        Worker::Http(http) => {
            http.headers.iter().for_each(|(_, header)| of_header(header, files));
            of_secrets(&http.hmac, files);
        }
        Worker::Container(container) => {
            of_command(&container.command, "", files);
            of_secrets(container.secrets.values(), files);
        }
        Worker::Slurm(slurm) => of_process(&slurm.process, files),
        Worker::Kubernetes(kubernetes) => {
            files.extend(kubernetes.kubeconfig.iter().map(|path| NamedFile::new(FileRole::Secret, path)));
        }
    }
}

fn of_process(process: &Process, files: &mut Vec<NamedFile>) {
    of_command(&process.command, &process.directory, files);
    of_secrets(process.secrets.values(), files);
}

/// Adds each word of a command line, both as written and relative to the program's folder.
fn of_command(command: &[String], directory: &str, files: &mut Vec<NamedFile>) {
    let between = |character: char| character.is_whitespace() || "=:;&|<>()'\"`,".contains(character);
    for word in command.iter().flat_map(|word| word.split(between).chain([word.as_str()])) {
        if word.is_empty() || word.starts_with('-') {
            continue;
        }
        for path in [Path::new(word).to_owned(), Path::new(directory).join(word)] {
            let file = NamedFile::new(FileRole::Run, path);
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
}

fn of_header(header: &Header, files: &mut Vec<NamedFile>) {
    match header {
        Header::Text(_) => {}
        Header::Secret(secret) => of_secrets([secret], files),
    }
}

fn of_secrets<'a>(secrets: impl IntoIterator<Item = &'a Secret>, files: &mut Vec<NamedFile>) {
    for secret in secrets {
        match secret {
            Secret::Variable(_) => {}
            Secret::File(path) => files.push(NamedFile::new(FileRole::Secret, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::layer::{Layer, Origin};

    #[test]
    fn programs_their_arguments_secrets_and_what_was_read_are_named() {
        let text = r#"
            [executors.build]
            kind = "process"
            command = ["./scripts/build.sh", "--config=ci/build.toml"]
            directory = "tools"
            [executors.build.secrets]
            TOKEN = { file = "keys/token" }
            [executors.line]
            kind = "process"
            shell = true
            command = ["cat notes.txt | ./filter.py"]
            [shapes.report]
            input_schema = "shapes/report.json"
            [reporters.log]
            kind = "file"
            path = "events.jsonl"
        "#;
        let layer = Layer { origin: Origin::Named, name: "waypost.toml".to_owned(), text: text.to_owned() };
        let read = |_: &Path| -> io::Result<String> { Ok("{}".to_owned()) };
        let config = Config::load_with(&[layer], [], &read).unwrap_or_else(|bad| panic!("{bad:?}"));
        let files = config.named_files();
        let role = |path: &str| files.iter().find(|file| file.path == Path::new(path)).map(|file| file.role);
        assert_eq!(role("waypost.toml"), Some(FileRole::Read));
        assert_eq!(role("shapes/report.json"), Some(FileRole::Read));
        assert_eq!(role("tools/./scripts/build.sh"), Some(FileRole::Run));
        assert_eq!(role("ci/build.toml"), Some(FileRole::Run));
        assert_eq!(role("notes.txt"), Some(FileRole::Run));
        assert_eq!(role("./filter.py"), Some(FileRole::Run));
        assert_eq!(role("keys/token"), Some(FileRole::Secret));
        assert_eq!(role("events.jsonl"), Some(FileRole::EventLog));
        assert_eq!(role("plan.md"), None);
    }
}
