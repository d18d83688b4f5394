//! Requests to the cluster, with retries. Does not know how long a Job takes or what its log contains.

use std::time::Duration;

use serde_json::{Value, json};
use waypost_config::Kubernetes;

use super::client::{ApiError, Client, query};
use super::kubeconfig;
use super::manifest::{self, Ended, Job, List};
use crate::async_runtime::RemoteError;
use crate::attempt::Attempt;
use crate::resource_name;
use crate::secrets::Secrets;

/// Consecutive failures of the cluster before a request is given up.
pub(super) const TRIES_MAX: u32 = 4;

/// Seconds before the first retry; doubled for each further retry.
pub(super) const BACKOFF_SECONDS: u64 = 1;

/// Classifies an error of the client as permanent or temporary.
pub(super) fn trouble(doing: &str, error: &ApiError) -> RemoteError {
    match error {
        ApiError::Refused { code, message, .. }
            if (400..500).contains(code) && !matches!(code, 408 | 429) =>
        {
            RemoteError::Refused(format!("the cluster refused to {doing}: {message} ({code})"))
        }
        ApiError::Refused { code, message, .. } => {
            RemoteError::NotNow(format!("the cluster could not {doing}: {message} ({code})"))
        }
        ApiError::Lost(error) => RemoteError::NotNow(format!("the cluster could not {doing}: {error}")),
    }
}

/// Sends a request to the cluster, with retries.
pub(super) async fn ask<T>(
    doing: &str,
    mut request: impl AsyncFnMut() -> Result<T, ApiError>,
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

/// The configured namespace of a cluster.
pub(super) struct Cluster {
    pub(super) client: Client,
    /// The paths of its Jobs and its pods.
    pub(super) jobs: String,
    pub(super) pods: String,
}

impl Cluster {
    /// Finds the configured cluster. Nothing is sent yet.
    pub(super) fn find(attempt: &Attempt<'_>, kubernetes: &Kubernetes) -> Result<Self, String> {
        let around = attempt.around;
        let file = kubernetes.kubeconfig.as_ref().map(|file| around.workspace.join(file));
        let found = kubeconfig::find(
            file.as_deref(),
            kubernetes.context.as_deref(),
            &around.variables,
            &around.workspace,
        );
        let found = found.map_err(|error| format!("no cluster is configured here: {error}"))?;
        let namespace = kubernetes.namespace.as_ref().unwrap_or(&found.namespace);
        Ok(Self {
            jobs: format!("/apis/batch/v1/namespaces/{namespace}/jobs"),
            pods: format!("/api/v1/namespaces/{namespace}/pods"),
            client: Client::new(found),
        })
    }

    /// Deletes a Job and its pods. A Job that does not exist is not an error.
    pub(super) async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        let options = json!({ "propagationPolicy": "Background" });
        let path = format!("{}/{name}", self.jobs);
        let gone = async || match self.client.delete(&path, &options).await {
            Err(ApiError::Refused { code: 404, .. }) => Ok(()),
            done => done,
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
        let all = format!("{}?{}", self.jobs, query("labelSelector", &manifest::selector(key)));
        let found: List<Job> = ask("list Jobs", async || self.client.get(&all).await).await?;
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
            attempt.log.say(&line, Secrets::NONE);
        }
        Ok(adopted.map(str::to_owned))
    }

    /// Creates the Job of this attempt. If it already exists, it is the same Job.
    pub(super) async fn create(&self, attempt: &mut Attempt<'_>, job: &Value) -> Result<String, RemoteError> {
        let name = resource_name::name(&attempt.job.key);
        let made = async || match self.client.create(&self.jobs, job).await {
            Ok(()) => Ok(true),
            Err(ApiError::Refused { code: 409, reason, .. }) if reason == "AlreadyExists" => Ok(false),
            Err(error) => Err(error),
        };
        let word = if ask("make a Job", made).await? { "made" } else { "there already" };
        attempt.log.say(&format!("waypost: Job {name} {word}"), Secrets::NONE);
        Ok(name)
    }
}
