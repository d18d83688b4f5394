//! Workers that are Jobs of a Kubernetes cluster, one for each attempt.
//!
//! The name of a Job follows from its attempt, so making it twice is noticed; a Job of an earlier attempt that still runs
//! (because the run that made it died) is followed instead of making another.

mod manifest;
mod watch;

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job as ClusterJob;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use super::attempt::{Attempt, done};
use super::remote::{self, Stop, Trouble};
use super::resource_name;
use crate::outcome::Ending;
use manifest::Ended;
use watch::{Followed, wait_until_gone};
use waypost_config::Kubernetes;

/// How often in a row the cluster may fail to answer.
const TRIES_MAX: u32 = 4;
/// Seconds before the second try; doubled for each further one.
const BACKOFF_SECONDS: u64 = 1;

/// What an error of the client means.
fn trouble(doing: &str, error: &kube::Error) -> Trouble {
    match error {
        kube::Error::Api(status)
            if (400..500).contains(&status.code) && !matches!(status.code, 408 | 429) =>
        {
            Trouble::Refused(format!(
                "the cluster does not let us {doing}: {} ({})",
                status.message, status.code
            ))
        }
        kube::Error::Api(status) => {
            Trouble::NotNow(format!("the cluster could not {doing}: {} ({})", status.message, status.code))
        }
        other => Trouble::NotNow(format!("the cluster could not {doing}: {other}")),
    }
}

/// Asks the cluster for something, several times if need be.
async fn ask<T>(doing: &str, mut request: impl AsyncFnMut() -> kube::Result<T>) -> Result<T, Trouble> {
    let mut tries = 0;
    loop {
        tries += 1;
        match request().await.map_err(|error| trouble(doing, &error)) {
            Err(Trouble::NotNow(_)) if tries < TRIES_MAX => {
                tokio::time::sleep(Duration::from_secs(BACKOFF_SECONDS << (tries - 1))).await;
            }
            answer => return answer,
        }
    }
}

/// What is asked of the cluster.
struct Cluster {
    jobs: Api<ClusterJob>,
    pods: Api<Pod>,
}

impl Cluster {
    /// The cluster that the configuration means. kube finds it as `kubectl` does, or from inside a pod of it.
    async fn connect(attempt: &Attempt<'_>, kubernetes: &Kubernetes) -> Result<Self, String> {
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

    /// Takes a Job away with its pods.
    async fn delete(&self, name: &str) -> Result<(), Trouble> {
        let gone = async || match self.jobs.delete(name, &DeleteParams::background()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        };
        ask("delete a Job", gone).await
    }

    /// A Job of this task that an earlier attempt left behind and whose end counts: it runs, or it is complete and nobody
    /// has read its output. Others of the task are taken away.
    async fn adopted(&self, attempt: &mut Attempt<'_>) -> Result<Option<String>, Trouble> {
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

    /// Makes the Job of this attempt. One that is there already is the same.
    async fn create(&self, attempt: &mut Attempt<'_>, job: &ClusterJob) -> Result<String, Trouble> {
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

pub(super) fn run(attempt: &mut Attempt<'_>, kubernetes: &Kubernetes, told: &str) -> Ending {
    let job = match manifest::job(attempt, kubernetes, told.trim_end()) {
        Ok(job) => job,
        Err(error) => return Ending::Failed { error },
    };
    let ending = remote::run(attempt, |attempt, stop| work(attempt, kubernetes, job, stop));
    attempt.log.finish(&[]);
    ending
}

async fn work(attempt: &mut Attempt<'_>, kubernetes: &Kubernetes, job: ClusterJob, mut stop: Stop) -> Ending {
    let stopped = |what: &str| Ending::Failed { error: format!("it was stopped; {what}") };
    let mut name = None;
    let cluster = match Cluster::connect(attempt, kubernetes).await {
        Ok(cluster) => cluster,
        Err(error) => return Ending::Failed { error },
    };
    let ending = {
        let work = followed(attempt, &cluster, &job, &mut name);
        tokio::select! {
            biased;
            ending = work => Some(ending),
            () = stop.asked() => None,
        }
    };
    // The Job may have been made by a request that was given up, so its name counts from the beginning.
    let name = name.unwrap_or_else(|| resource_name::name(&attempt.job.key));
    match ending {
        // What may still run is left for the next attempt, which follows it.
        Some(Err(trouble @ Trouble::NotNow(_))) => trouble.into(),
        Some(ending) => {
            if let Err(Trouble::Refused(error) | Trouble::NotNow(error)) = cluster.delete(&name).await {
                attempt.log.say(&format!("waypost: Job {name} was left: {error}"), &[]);
            }
            ending.unwrap_or_else(Ending::from)
        }
        None => {
            let gone = async {
                cluster.delete(&name).await?;
                wait_until_gone(&cluster.pods, &name).await
            };
            tokio::select! {
                gone = gone => match gone {
                    Ok(()) => stopped(&format!("its Job {name} was deleted")),
                    Err(Trouble::Refused(error) | Trouble::NotNow(error)) => {
                        stopped(&format!("its Job {name} may still run: {error}"))
                    }
                },
                () = stop.killed() => stopped(&format!("its Job {name} may not have ended yet")),
            }
        }
    }
}

/// Makes or finds the Job, follows it to its end, and reads what came of it.
async fn followed(
    attempt: &mut Attempt<'_>,
    cluster: &Cluster,
    job: &ClusterJob,
    name: &mut Option<String>,
) -> Result<Ending, Trouble> {
    let found = match cluster.adopted(attempt).await? {
        Some(found) => found,
        None => cluster.create(attempt, job).await?,
    };
    *name = Some(found.clone());
    let Followed { ended, pod, output, too_much } = watch::follow(attempt, cluster, &found).await?;
    if let Some(ending) = manifest::judged(&found, &ended, pod.as_ref(), &attempt.log.last) {
        return Ok(ending);
    }
    if too_much {
        let bytes = attempt.job.output_bytes_max;
        return Ok(Ending::Failed { error: format!("its output has more than {bytes} bytes") });
    }
    let message = pod.as_ref().and_then(manifest::terminated).and_then(|end| end.message.clone());
    Ok(done(&output.or(message).unwrap_or_default(), &[]))
}
