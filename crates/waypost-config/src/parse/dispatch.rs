//! The part of a configuration file that says who dispatched work goes to: programs, containers, jobs of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeValue;

use super::reader::{Reader, Table};
use crate::executor::{Container, Kubernetes, Mount, Worker};
use crate::parse::values::{one_of, stays_inside};
use crate::settings::SECONDS_MAX;

/// Where a worker can be.
const TARGETS: [&str; 4] = ["local", "container", "kubernetes", "slurm"];
/// Processes that a container may be allowed.
const PIDS_MAX: u64 = 4_000_000;
/// Seconds after which a cluster takes a Job away that has ended and that nobody has read.
const TTL_SECONDS_DEFAULT: u32 = 24 * 60 * 60;
/// Bytes of a name that a cluster or an engine is told.
const NAME_BYTES_MAX: usize = 253;

impl Reader<'_> {
    pub(super) fn dispatch(
        &mut self,
        path: &str,
        at: usize,
        table: &mut Table<'_>,
    ) -> Option<BTreeMap<String, Worker>> {
        let target = self.target(path, table).unwrap_or(TARGETS[0]);
        let mut workers = BTreeMap::new();
        for (name, at, worker) in table.tables(self, "workers") {
            let path = format!("{path}.workers.{name}");
            let mut worker = self.table(&path, worker);
            let target = self.target(&path, &mut worker).unwrap_or(target);
            let found = match target {
                "container" => {
                    let container = self.container(&path, at, &mut worker);
                    container.map(|container| Worker::Container(Arc::new(container)))
                }
                "kubernetes" => {
                    let kubernetes = self.kubernetes(&path, at, &mut worker);
                    kubernetes.map(|kubernetes| Worker::Kubernetes(Arc::new(kubernetes)))
                }
                "slurm" => {
                    let slurm = self.slurm(&path, at, &mut worker);
                    slurm.map(|slurm| Worker::Slurm(Arc::new(slurm)))
                }
                _ => self.process(&path, at, &mut worker).map(|process| Worker::Process(Arc::new(process))),
            };
            workers.extend(found.map(|worker| (name, worker)));
            worker.end(self);
        }
        if table.is_without("workers") {
            let hint = format!("add [{path}.workers.NAME] with a `command`");
            self.wrong(at, format!("{path} has no workers"), hint);
            return None;
        }
        Some(workers)
    }

    fn target(&mut self, path: &str, table: &mut Table<'_>) -> Option<&'static str> {
        let (at, word) = table.text(self, "target")?;
        let found = TARGETS.into_iter().find(|known| *known == word);
        if found.is_none() {
            let hint = one_of(&word, &TARGETS);
            self.wrong(at, format!("{path} has the unknown target {word:?}"), hint);
        }
        found
    }

    fn container(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Container> {
        let image = self.image(path, at, table);
        let engine = self.engine(path, table);
        let command = table.strings(self, "command").map(|(_, words)| words).unwrap_or_default();
        let mounts = self.mounts(path, table);
        let network = self.name_of(path, table, "network").unwrap_or_else(|| "none".to_owned());
        let pids = table.number(self, "pids", 1, PIDS_MAX).and_then(|pids| u32::try_from(pids).ok());
        let container = Container {
            engine,
            image: String::new(),
            command,
            mounts,
            workdir: self.name_of(path, table, "workdir"),
            memory: self.name_of(path, table, "memory"),
            cpus: self.name_of(path, table, "cpus"),
            pids,
            network,
            user: self.name_of(path, table, "user"),
            init: table.flag(self, "init").unwrap_or(true),
            environment: table.strings(self, "environment").map(|(_, names)| names).unwrap_or_default(),
            secrets: self.secrets(path, table),
            timeout_seconds: self.timeout(table),
        };
        Some(Container { image: image?, ..container })
    }

    fn kubernetes(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Kubernetes> {
        let image = self.image(path, at, table);
        let ttl = table.number(self, "ttl_seconds", 0, SECONDS_MAX.into());
        let kubernetes = Kubernetes {
            kubeconfig: table.text(self, "kubeconfig").map(|(_, file)| file),
            context: table.text(self, "context").map(|(_, name)| name),
            namespace: self.name_of(path, table, "namespace"),
            image: String::new(),
            command: table.strings(self, "command").map(|(_, words)| words).unwrap_or_default(),
            service_account: self.name_of(path, table, "service_account"),
            pull_secrets: table.strings(self, "pull_secrets").map(|(_, names)| names).unwrap_or_default(),
            requests: self.texts(path, table, "requests"),
            limits: self.texts(path, table, "limits"),
            variables: self.texts(path, table, "variables"),
            secrets: self.cluster_secrets(path, table),
            ttl_seconds: ttl.map_or(TTL_SECONDS_DEFAULT, |seconds| seconds as u32),
            timeout_seconds: self.timeout(table),
        };
        Some(Kubernetes { image: image?, ..kubernetes })
    }

    fn image(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<String> {
        let image = self.name_of(path, table, "image");
        if image.is_none() && table.is_without("image") {
            let hint = "for example image = \"registry.example.org/worker:1\"";
            self.wrong(at, format!("{path} has no `image`"), hint);
        }
        image
    }

    /// A word that a tool is told as one of its arguments, and that it must not take for a flag.
    pub(super) fn name_of(&mut self, path: &str, table: &mut Table<'_>, key: &'static str) -> Option<String> {
        let (at, word) = table.text(self, key)?;
        let is_name = !word.is_empty()
            && !word.starts_with('-')
            && word.len() <= NAME_BYTES_MAX
            && !word.chars().any(|c| c.is_whitespace() || c.is_control());
        if !is_name {
            let what = format!("{path} has `{key}` = {word:?}");
            self.wrong(at, what, "write a name without spaces that does not begin with -");
            return None;
        }
        Some(word)
    }

    fn engine(&mut self, path: &str, table: &mut Table<'_>) -> Option<String> {
        let (at, word) = table.text(self, "engine")?;
        match word.as_str() {
            "auto" => None,
            "docker" | "podman" => Some(word),
            other if other.starts_with('/') => Some(word),
            other => {
                let hint = one_of(other, &["auto", "docker", "podman", "the full path of a program"]);
                self.wrong(at, format!("{path} has the unknown engine {other:?}"), hint);
                None
            }
        }
    }

    fn mounts(&mut self, path: &str, table: &mut Table<'_>) -> Vec<Mount> {
        let mut mounts = Vec::new();
        for (at, mount) in table.list_of_tables(self, "mounts") {
            let mut mount = self.table(&format!("{path}.mounts"), mount);
            let source = mount.text(self, "source");
            let target = mount.text(self, "target");
            let write = mount.flag(self, "write").unwrap_or(false);
            mount.end(self);
            let (Some((source_at, source)), Some((target_at, target))) = (source, target) else {
                let hint = "for example { source = \"src\", target = \"/src\" }";
                self.wrong(at, format!("a mount of {path} needs `source` and `target`"), hint);
                continue;
            };
            if !stays_inside(&source) {
                let what = format!("{path} would mount {source:?}, outside of the workspace");
                self.wrong(source_at, what, "name something in the workspace, relative to it");
                continue;
            }
            // Engines read these as fields with commas between them.
            let plain = |text: &str| !text.chars().any(|c| c == ',' || c == '"' || c.is_control());
            if !target.starts_with('/') || !plain(&target) || !plain(&source) {
                let what = format!("{path} would mount {source:?} at {target:?}");
                self.wrong(target_at, what, "write a full path, and no comma or quote in either");
                continue;
            }
            mounts.push(Mount { source, target, write });
        }
        mounts
    }

    /// A table of texts whose names are free.
    fn texts(&mut self, path: &str, table: &mut Table<'_>, key: &'static str) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        let Some(outer) = table.inner(self, key) else { return texts };
        for (name, at, value) in outer.entries() {
            match value {
                DeValue::String(text) => {
                    texts.insert(name, text.to_string());
                }
                _ => self.wrong(at, format!("`{path}.{key}.{name}` must be a text"), "write it in quotes"),
            }
        }
        texts
    }

    fn cluster_secrets(&mut self, path: &str, table: &mut Table<'_>) -> BTreeMap<String, (String, String)> {
        let mut secrets = BTreeMap::new();
        for (name, at, secret) in table.tables(self, "secrets") {
            let path = format!("{path}.secrets.{name}");
            let mut secret = self.table(&path, secret);
            match (secret.text(self, "secret"), secret.text(self, "key")) {
                (Some((_, from)), Some((_, key))) => {
                    secrets.insert(name, (from, key));
                }
                (_, _) => {
                    let hint =
                        "write { secret = \"NAME\", key = \"KEY\" }: a Secret of the cluster and a key in it";
                    self.wrong(at, format!("{path} needs `secret` and `key`"), hint);
                }
            }
            secret.end(self);
        }
        secrets
    }
}
