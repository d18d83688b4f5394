//! The files that a configuration takes secrets from. Code that reads files on behalf of others must not read these. Accesses no
//! file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::executor::{Header, Secret, Worker};
use crate::layer::Layer;
use crate::settings::{Config, Executor, Report};

/// The endings of settings that name a file with a secret.
const NAMING_SECRETS: [&str; 2] = [".file", ".kubeconfig"];

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
        files.extend(self.untrusted_secret_files.iter().cloned());
        files
    }
}

impl Layer {
    /// The files that the layer names as secrets, also where it is not right. For files that nobody has trusted.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let settings = self.settings().unwrap_or_default().into_iter();
        let names_secret = |name: &str| NAMING_SECRETS.iter().any(|ending| name.ends_with(ending));
        let named = settings.filter(|(name, _)| names_secret(name));
        // Only texts are names of files.
        named
            .filter_map(|(_, value)| Some(PathBuf::from(serde_json::from_str::<String>(&value).ok()?)))
            .collect()
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
    use crate::layer::Origin;

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

    #[test]
    fn secrets_that_an_untrusted_file_names_are_listed_even_if_it_is_wrong() {
        let text = r#"
            [executors.build]
            kind = "no such kind"
            secrets = { TOKEN = { file = "keys/token" }, OTHER = { variable = "OTHER" }, NUMBER = { file = 1 } }
            [executors.cluster]
            kubeconfig = "keys/cluster"
            [models.own]
            key.file = "keys/model"
        "#;
        let layer =
            Layer { origin: Origin::Untrusted, name: "config.toml".to_owned(), text: text.to_owned() };
        assert_eq!(layer.secret_files(), ["keys/token", "keys/cluster", "keys/model"].map(Path::new));
        assert_eq!(Layer { text: "[".to_owned(), ..layer }.secret_files(), [""; 0].map(Path::new));
    }
}
