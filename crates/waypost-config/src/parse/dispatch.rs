//! Parses the workers of dispatch executors: programs, containers and cluster jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeValue;

use super::reader::Table;
use crate::executor::{Container, Kubernetes, Mount, RemoteProgram, Worker};
use crate::parse::values::{one_of, stays_inside};

/// Reads the table of a worker with a known target.
type Read = fn(&mut Table<'_>) -> Option<Worker>;

/// The targets of a worker; the first is the default.
const TARGETS: [(&str, Read); 5] = [
    ("local", |table| Some(Worker::Process(Arc::new(table.process()?)))),
    ("container", |table| Some(Worker::Container(Arc::new(table.container()?)))),
    ("kubernetes", |table| Some(Worker::Kubernetes(Arc::new(table.kubernetes()?)))),
    ("slurm", |table| Some(Worker::Slurm(Arc::new(table.slurm()?)))),
    ("program", |table| Some(Worker::Program(Arc::new(table.remote_program()?)))),
];
/// Seconds between two polls of a program, unless the configuration sets them.
const POLL_SECONDS_DEFAULT: u32 = 5;
/// The highest process limit that can be set for a container.
const PIDS_MAX: u32 = 4_000_000;
/// Seconds after which a cluster deletes a finished Job that no run has cleaned up, unless the configuration sets it.
const TTL_SECONDS_DEFAULT: u32 = 24 * 60 * 60;
/// Maximum bytes of a name that is passed to a cluster or a container engine.
const NAME_BYTES_MAX: usize = 253;

impl Table<'_> {
    pub(super) fn dispatch(&mut self) -> Option<BTreeMap<String, Worker>> {
        let default = self.choice("target", &TARGETS).unwrap_or(TARGETS[0].1);
        let workers = self.tables("workers", |_, worker| {
            let read = worker.choice("target", &TARGETS).unwrap_or(default);
            read(worker)
        });
        if self.is_without("workers") {
            let hint = format!("add [{}.workers.NAME] with a `command`", self.path);
            return self.refuse(self.at, format!("{} has no workers", self.path), hint);
        }
        Some(workers.into_iter().collect())
    }

    /// Reads the workers that `--target NAME` chooses instead, by that name.
    pub(super) fn targets(&mut self) -> BTreeMap<String, BTreeMap<String, Worker>> {
        self.tables("targets", |_, target| target.dispatch()).into_iter().collect()
    }

    fn remote_program(&mut self) -> Option<RemoteProgram> {
        let process = self.process();
        let settings = self.texts("settings");
        let poll_seconds = self.seconds("poll_seconds", 1).unwrap_or(POLL_SECONDS_DEFAULT);
        Some(RemoteProgram { process: process?, settings, poll_seconds })
    }

    fn container(&mut self) -> Option<Container> {
        let image = self.image();
        let container = Container {
            engine: self.engine(),
            image: String::new(),
            command: self.strings("command").unwrap_or_default(),
            mounts: self.mounts(),
            workdir: self.name("workdir"),
            memory: self.name("memory"),
            cpus: self.name("cpus"),
            pids: self.small("pids", 1..=PIDS_MAX),
            network: self.name("network").unwrap_or_else(|| "none".to_owned()),
            user: self.name("user"),
            init: self.flag("init").unwrap_or(true),
            environment: self.strings("environment").unwrap_or_default(),
            secrets: self.secrets(),
            timeout_seconds: self.timeout(),
        };
        Some(Container { image: image?, ..container })
    }

    fn kubernetes(&mut self) -> Option<Kubernetes> {
        let image = self.image();
        let kubernetes = Kubernetes {
            kubeconfig: self.text("kubeconfig"),
            context: self.text("context"),
            namespace: self.name("namespace"),
            image: String::new(),
            command: self.strings("command").unwrap_or_default(),
            service_account: self.name("service_account"),
            pull_secrets: self.strings("pull_secrets").unwrap_or_default(),
            requests: self.texts("requests"),
            limits: self.texts("limits"),
            variables: self.texts("variables"),
            secrets: self.cluster_secrets(),
            ttl_seconds: self.seconds("ttl_seconds", 0).unwrap_or(TTL_SECONDS_DEFAULT),
            timeout_seconds: self.timeout(),
        };
        Some(Kubernetes { image: image?, ..kubernetes })
    }

    fn image(&mut self) -> Option<String> {
        let image = self.name("image");
        self.missing("image", "for example image = \"registry.example.org/worker:1\"");
        image
    }

    /// Reads a word that is passed to a tool as an argument, and that the tool must not mistake for a flag.
    pub(super) fn name(&mut self, key: &'static str) -> Option<String> {
        let (at, word) = self.text_at(key)?;
        let is_name = !word.is_empty()
            && !word.starts_with('-')
            && word.len() <= NAME_BYTES_MAX
            && !word.chars().any(|c| c.is_whitespace() || c.is_control());
        if !is_name {
            let what = format!("{} has `{key}` = {word:?}", self.path);
            self.wrong(at, what, "write a name without spaces that does not begin with -");
        }
        is_name.then_some(word)
    }

    fn engine(&mut self) -> Option<String> {
        let (at, word) = self.text_at("engine")?;
        match word.as_str() {
            "auto" => None,
            "docker" | "podman" => Some(word),
            other if other.starts_with('/') => Some(word),
            other => {
                let hint = one_of(other, &["auto", "docker", "podman", "the full path of a program"]);
                self.refuse(at, format!("{} has the unknown engine {other:?}", self.path), hint)
            }
        }
    }

    fn mounts(&mut self) -> Vec<Mount> {
        let path = self.path.clone();
        let mut mounts = Vec::new();
        for mut mount in self.list_of_tables("mounts") {
            let (source, target) = (mount.text("source"), mount.text("target"));
            let write = mount.flag("write").unwrap_or(false);
            // Engines parse these as comma-separated fields.
            let plain = |text: &str| !text.chars().any(|c| c == ',' || c == '"' || c.is_control());
            match (source, target) {
                (Some(source), Some(_)) if !stays_inside(&source) => {
                    let what = format!("{path} would mount {source:?}, outside of the workspace");
                    let hint = "name something in the workspace, relative to it";
                    mount.wrong(mount.place("source"), what, hint);
                }
                (Some(source), Some(target))
                    if target.starts_with('/') && plain(&target) && plain(&source) =>
                {
                    mounts.push(Mount { source, target, write });
                }
                (Some(source), Some(target)) => {
                    let what = format!("{path} would mount {source:?} at {target:?}");
                    let hint = "write a full path, and no comma or quote in either";
                    mount.wrong(mount.place("target"), what, hint);
                }
                (_, _) => {
                    let hint = "for example { source = \"src\", target = \"/src\" }";
                    mount.wrong(mount.at, format!("a mount of {path} needs `source` and `target`"), hint);
                }
            }
            mount.end();
        }
        mounts
    }

    /// Reads a table of strings with arbitrary names.
    fn texts(&mut self, key: &'static str) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        let Some(outer) = self.inner(key) else { return texts };
        for (name, at, value) in outer.entries() {
            match value {
                DeValue::String(text) => drop(texts.insert(name, text.to_string())),
                DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Array(_)
                | DeValue::Table(_) => {
                    self.wrong(at, format!("`{}.{name}` must be a text", outer.path), "write it in quotes")
                }
            }
        }
        texts
    }

    fn cluster_secrets(&mut self) -> BTreeMap<String, (String, String)> {
        let secret = |_: &str, secret: &mut Table<'_>| {
            let found = secret.text("secret").zip(secret.text("key"));
            if found.is_none() {
                let hint =
                    "write { secret = \"NAME\", key = \"KEY\" }: a Secret of the cluster and a key in it";
                secret.wrong(secret.at, format!("{} needs `secret` and `key`", secret.path), hint);
            }
            found
        };
        self.tables("secrets", secret).into_iter().collect()
    }
}
