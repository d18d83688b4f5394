//! Requests to the cluster, with retries. Does not know how long a Job takes or what its log contains.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job as ClusterJob;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use waypost_config::Kubernetes;

use super::manifest::{self, Ended};
use crate::async_runtime::RemoteError;
use crate::attempt::Attempt;
use crate::resource_name;

/// Consecutive failures of the cluster before a request is given up.
pub(super) const TRIES_MAX: u32 = 4;

/// Seconds before the first retry; doubled for each further retry.
pub(super) const BACKOFF_SECONDS: u64 = 1;

/// Classifies an error of the client as permanent or temporary.
pub(super) fn trouble(doing: &str, error: &kube::Error) -> RemoteError {
    match error {
        kube::Error::Api(status)
            if (400..500).contains(&status.code) && !matches!(status.code, 408 | 429) =>
        {
            RemoteError::Refused(format!(
                "the cluster refused to {doing}: {} ({})",
                status.message, status.code
            ))
        }
        kube::Error::Api(status) => RemoteError::NotNow(format!(
            "the cluster could not {doing}: {} ({})",
            status.message, status.code
        )),
        other => RemoteError::NotNow(format!("the cluster could not {doing}: {other}")),
    }
}

/// Sends a request to the cluster, with retries.
pub(super) async fn ask<T>(
    doing: &str,
    mut request: impl AsyncFnMut() -> kube::Result<T>,
) -> Result<T, RemoteError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match request().await.map_err(|error| trouble(doing, &error)) {
            Err(RemoteError::NotNow(_)) if tries < TRIES_MAX => {
                tokio::time::sleep(Duration::from_secs(BACKOFF_SECONDS << (tries - 1))).await;
            }
            answer => return answer,
        }
    }
}

/// The API clients of the configured namespace.
pub(super) struct Cluster {
    pub(super) jobs: Api<ClusterJob>,
    pub(super) pods: Api<Pod>,
}

impl Cluster {
    /// Connects to the configured cluster. kube finds it as `kubectl` does, or from inside one of its pods.
    pub(super) async fn connect(attempt: &Attempt<'_>, kubernetes: &Kubernetes) -> Result<Self, String> {
        let options =
            KubeConfigOptions { context: kubernetes.context.clone(), ..KubeConfigOptions::default() };
        let unknown = |error: &dyn std::fmt::Display| format!("no cluster is configured here: {error}");
        let config = match (&kubernetes.kubeconfig, &kubernetes.context) {
            (Some(file), _) => {
                let file = Kubeconfig::read_from(attempt.around.workspace.join(file));
                let file = file.map_err(|error| unknown(&error))?;
                Config::from_custom_kubeconfig(file, &options).await.map_err(|error| unknown(&error))?
            }
            (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(|error| unknown(&error))?,
            (None, None) => Config::infer().await.map_err(|error| unknown(&error))?,
        };
        let namespace = kubernetes.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| unknown(&error))?;
        Ok(Self {
            jobs: Api::namespaced(client.clone(), &namespace),
            pods: Api::namespaced(client, &namespace),
        })
    }

    /// Deletes a Job and its pods. A Job that does not exist is not an error.
    pub(super) async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        let gone = async || match self.jobs.delete(name, &DeleteParams::background()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        };
        ask("delete a Job", gone).await
    }

    /// Returns a Job that an earlier attempt of this task left behind and whose end counts: it runs, or it is complete
    /// and its output has not been read. Deletes the task's other earlier Jobs.
    pub(super) async fn adopted(&self, attempt: &mut Attempt<'_>) -> Result<Option<String>, RemoteError> {
        let key = &attempt.job.key;
        if key.attempt <= 1 {
            return Ok(None);
        }
        let all = ListParams::default().labels(&manifest::selector(key));
        let found = ask("list Jobs", async || self.jobs.list(&all).await).await?;
        let mut earlier: Vec<(u32, &str, bool)> = Vec::new();
        for job in &found.items {
            let number = manifest::attempt_of(job, key).filter(|&number| number < key.attempt);
            let (Some(number), Some(name)) = (number, job.metadata.name.as_deref()) else { continue };
            let is_leaving = job.metadata.deletion_timestamp.is_some();
            let counts = !is_leaving && !matches!(manifest::ended(job), Some(Ended::Failed { .. }));
            earlier.push((number, name, counts));
        }
        let adopted = earlier.iter().filter(|(_, _, counts)| *counts).max().map(|(_, name, _)| *name);
        for (_, name, _) in &earlier {
            if Some(*name) != adopted {
                self.delete(name).await?;
            }
        }
        if let Some(name) = adopted {
            let line = format!("waypost: Job {name} of an earlier attempt is there, and is followed");
            attempt.log.say(&line, &[]);
        }
        Ok(adopted.map(str::to_owned))
    }

    /// Creates the Job of this attempt. If it already exists, it is the same Job.
    pub(super) async fn create(
        &self,
        attempt: &mut Attempt<'_>,
        job: &ClusterJob,
    ) -> Result<String, RemoteError> {
        let name = resource_name::name(&attempt.job.key);
        let made = async || match self.jobs.create(&PostParams::default(), job).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 && status.reason == "AlreadyExists" => {
                Ok(false)
            }
            Err(error) => Err(error),
        };
        let word = if ask("make a Job", made).await? { "made" } else { "there already" };
        attempt.log.say(&format!("waypost: Job {name} {word}"), &[]);
        Ok(name)
    }
}
