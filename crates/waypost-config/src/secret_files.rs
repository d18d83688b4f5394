//! The files that a configuration takes secrets from. Code that reads files on behalf of others must not read these. Accesses no
//! file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::executor::{Header, Secret, Worker};
use crate::settings::{Config, Executor, Report};

impl Config {
    /// All files with secrets, relative to the workspace unless absolute.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for executor in self.executors.values() {
            match executor {
                Executor::Noop | Executor::Human => {}
                Executor::Worker(worker) => of_worker(worker, &mut files),
                Executor::Dispatch(workers) => {
                    workers.values().for_each(|worker| of_worker(worker, &mut files))
                }
            }
        }
        let of_targets = self.targets.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        of_targets.chain(self.checks.values()).for_each(|worker| of_worker(worker, &mut files));
        for reporter in self.reporters.values() {
            match &reporter.report {
                Report::Console | Report::File { .. } | Report::Command { .. } => {}
                Report::Webhook(webhook) => {
                    let headers = webhook.headers.iter().map(|(_, header)| header);
                    of_headers(headers.chain([&webhook.url]), &mut files);
                    of_secrets(&webhook.hmac, &mut files);
                }
            }
        }
        for model in self.models.values() {
            of_secrets(&model.key, &mut files);
            of_headers(model.headers.iter().map(|(_, header)| header), &mut files);
        }
        files
    }
}

fn of_worker(worker: &Worker, files: &mut Vec<PathBuf>) {
    match worker {
        Worker::Process(process) => of_secrets(process.secrets.values(), files),
        Worker::Agent(agent) => of_secrets(agent.process.secrets.values(), files),
        Worker::Http(http) => {
            of_headers(http.headers.iter().map(|(_, header)| header), files);
            of_secrets(&http.hmac, files);
        }
        Worker::Container(container) => of_secrets(container.secrets.values(), files),
        Worker::Slurm(slurm) => of_secrets(slurm.process.secrets.values(), files),
        Worker::Program(program) => of_secrets(program.process.secrets.values(), files),
        // It holds the keys to the cluster.
        Worker::Kubernetes(kubernetes) => files.extend(kubernetes.kubeconfig.iter().map(PathBuf::from)),
    }
}

fn of_headers<'a>(headers: impl Iterator<Item = &'a Header>, files: &mut Vec<PathBuf>) {
    for header in headers {
        match header {
            Header::Text(_) => {}
            Header::Secret(secret) => of_secrets([secret], files),
        }
    }
}

fn of_secrets<'a>(secrets: impl IntoIterator<Item = &'a Secret>, files: &mut Vec<PathBuf>) {
    for secret in secrets {
        match secret {
            Secret::Variable(_) => {}
            Secret::File(path) => files.push(PathBuf::from(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::layer::{Layer, Origin};

    #[test]
    fn secrets_of_executors_checks_reporters_and_models_are_listed() {
        let text = r#"
            [executors.build]
            kind = "process"
            command = ["./scripts/build.sh", "--config=ci/build.toml"]
            [executors.build.secrets]
            TOKEN = { file = "keys/token" }
            OTHER = { variable = "OTHER" }
            [executors.service]
            kind = "http"
            url = "https://example.org/"
            headers.authorization = { file = "keys/service" }
            [checks.tests]
            command = ["make", "test"]
            secrets.KEY = { file = "keys/check" }
            [reporters.hook]
            kind = "webhook"
            url = { file = "/etc/hook" }
            [models.own]
            api = "openai"
            model = "m"
            key = { file = "keys/model" }
        "#;
        let layer = Layer { origin: Origin::User, name: "config.toml".to_owned(), text: text.to_owned() };
        let config = Config::load(&[layer], []).unwrap_or_else(|bad| panic!("{bad:?}"));
        let expected = ["keys/token", "keys/service", "keys/check", "/etc/hook", "keys/model"];
        assert_eq!(config.secret_files(), expected.map(Path::new));
    }
}
