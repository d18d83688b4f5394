//! Workers that are Jobs of a Kubernetes cluster, one per attempt.
//!
//! The name of a Job is derived from its attempt, so a second creation is detected. If the Job of an earlier attempt
//! is still running because the run that created it died, it is followed and no other is created.

mod client;
mod cluster;
mod kubeconfig;
mod manifest;
mod watch;

use serde_json::Value;

use super::async_runtime::{self, RemoteError, Stop};
use super::attempt::{Attempt, done};
use super::resource_name;
use crate::outcome::AttemptOutcome;
use crate::secrets::Secrets;
use cluster::Cluster;
use watch::{Followed, wait_until_gone};
use waypost_config::Kubernetes;

pub(super) fn run(
    attempt: &mut Attempt<'_>,
    kubernetes: &Kubernetes,
    told: &str,
) -> Result<AttemptOutcome, String> {
    let job = manifest::job(attempt, kubernetes, told.trim_end())?;
    let ending = async_runtime::run(attempt, |attempt, stop| work(attempt, kubernetes, job, stop));
    attempt.log.finish(Secrets::NONE);
    ending
}

async fn work(
    attempt: &mut Attempt<'_>,
    kubernetes: &Kubernetes,
    job: Value,
    mut stop: Stop,
) -> Result<AttemptOutcome, String> {
    let stopped = |what: &str| Err(format!("it was stopped; {what}"));
    let mut name = None;
    let cluster = Cluster::find(attempt, kubernetes)?;
    let ending = {
        let work = followed(attempt, &cluster, &job, &mut name);
        tokio::select! {
            biased;
            ending = work => Some(ending),
            () = stop.asked() => None,
        }
    };
    // A cancelled request may have created the Job, so its name is derived from the attempt if it is not known yet.
    let name = name.unwrap_or_else(|| resource_name::name(&attempt.job.key));
    match ending {
        // A Job that may still be running is left for the next attempt, which follows it.
        Some(Err(trouble @ RemoteError::NotNow(_))) => Ok(trouble.into()),
        Some(ending) => {
            if let Err(RemoteError::Refused(error) | RemoteError::NotNow(error)) = cluster.delete(&name).await
            {
                attempt.log.say(&format!("waypost: Job {name} was left: {error}"), Secrets::NONE);
            }
            Ok(ending.unwrap_or_else(AttemptOutcome::from))
        }
        None => {
            let gone = async {
                cluster.delete(&name).await?;
                wait_until_gone(&cluster, &name).await
            };
            tokio::select! {
                gone = gone => match gone {
                    Ok(()) => stopped(&format!("its Job {name} was deleted")),
                    Err(RemoteError::Refused(error) | RemoteError::NotNow(error)) => {
                        stopped(&format!("its Job {name} may still run: {error}"))
                    }
                },
                () = stop.killed() => stopped(&format!("its Job {name} may not have ended yet")),
            }
        }
    }
}

/// Creates or adopts the Job, follows it to its end and reads its output.
async fn followed(
    attempt: &mut Attempt<'_>,
    cluster: &Cluster,
    job: &Value,
    name: &mut Option<String>,
) -> Result<AttemptOutcome, RemoteError> {
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
        return Ok(AttemptOutcome::Failed { error: format!("its output has more than {bytes} bytes") });
    }
    let message = pod.as_ref().and_then(manifest::terminated).and_then(|end| end.message.clone());
    Ok(done(&output.or(message).unwrap_or_default(), Secrets::NONE))
}
