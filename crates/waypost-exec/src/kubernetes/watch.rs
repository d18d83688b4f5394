//! Follows a Job to its end: watches the Job and its pod, and streams the log.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::client::{ApiError, Change, query};
use super::cluster::{BACKOFF_SECONDS, Cluster, TRIES_MAX, ask, trouble};
use super::manifest::{self, CONTAINER, Ended, Job, List, Pod};
use crate::async_runtime::RemoteError;
use crate::attempt::Attempt;
use crate::secrets::Secrets;

/// Prefix of a log line that contains the output.
const OUTPUT_MARK: &[u8] = b"waypost:output ";
/// Seconds that the log gets to end after its Job has ended.
const LOG_SECONDS_MAX: u64 = 10;
/// Chunks of a log that wait to be processed.
const PIECES_MAX: usize = 64;

pub(super) struct Followed {
    pub(super) ended: Ended,
    pub(super) pod: Option<Pod>,
    pub(super) output: Option<String>,
    pub(super) too_much: bool,
}

/// Events of a Job's pod.
enum News {
    Log(Vec<u8>),
    Waits(String),
}

/// The selector for the pods of a Job.
fn pods_of(name: &str) -> String {
    query("labelSelector", &format!("batch.kubernetes.io/job-name={name}"))
}

pub(super) async fn follow(
    attempt: &mut Attempt<'_>,
    cluster: &Cluster,
    name: &str,
) -> Result<Followed, RemoteError> {
    let (sender, mut news) = mpsc::channel(PIECES_MAX);
    let mut taken = Taken::new(attempt.job.output_bytes_max);
    let mut log_is_whole = None;
    let ended = {
        let mut end = pin!(wait_for_end(cluster, name));
        let mut pod = pin!(tell_of_pod(cluster, name, sender));
        let ended = loop {
            tokio::select! {
                biased;
                Some(news) = news.recv() => taken.take(attempt, news),
                whole = &mut pod, if log_is_whole.is_none() => log_is_whole = Some(whole),
                ended = &mut end => break ended?,
            }
        };
        let late = tokio::time::sleep(Duration::from_secs(LOG_SECONDS_MAX));
        let mut late = pin!(late);
        loop {
            tokio::select! {
                biased;
                Some(news) = news.recv() => taken.take(attempt, news),
                whole = &mut pod, if log_is_whole.is_none() => log_is_whole = Some(whole),
                () = &mut late, if log_is_whole.is_none() => break,
                else => break,
            }
        }
        ended
    };
    let pod = pods(cluster, name).await?.items.into_iter().next();
    if log_is_whole != Some(true)
        && let Some(pod) = pod.as_ref().and_then(|pod| pod.metadata.name.as_deref())
    {
        // The connection broke on the way. The log as it is now is complete, so it is read from the beginning.
        taken = Taken::new(attempt.job.output_bytes_max);
        attempt.log.say("waypost: the log from its beginning:", Secrets::NONE);
        let path = log_path(cluster, pod, false);
        let text = ask("read a log", async || cluster.client.text(&path).await).await?;
        taken.take(attempt, News::Log(text.into_bytes()));
    }
    taken.end_line();
    attempt.log.finish(Secrets::NONE);
    let Taken { output, too_much, .. } = taken;
    Ok(Followed { ended, pod, output, too_much })
}

fn log_path(cluster: &Cluster, pod: &str, follow: bool) -> String {
    format!("{}/{pod}/log?container={CONTAINER}&follow={follow}", cluster.pods)
}

async fn pods(cluster: &Cluster, name: &str) -> Result<List<Pod>, RemoteError> {
    let all = format!("{}?{}", cluster.pods, pods_of(name));
    ask("list pods", async || cluster.client.get(&all).await).await
}

/// The last output found in a log so far.
struct Taken {
    output: Option<String>,
    too_much: bool,
    line: Vec<u8>,
    bytes_max: usize,
}

impl Taken {
    fn new(bytes_max: u64) -> Self {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self { output: None, too_much: false, line: Vec::new(), bytes_max }
    }

    fn take(&mut self, attempt: &mut Attempt<'_>, news: News) {
        match news {
            News::Waits(reason) => {
                attempt.log.say(&format!("waypost: the pod waits: {reason}"), Secrets::NONE);
                attempt.progressed(&reason);
            }
            News::Log(bytes) => {
                attempt.log.take(&bytes, Secrets::NONE);
                for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                    // One byte more than the limit is enough to detect that the output is too large.
                    let room = (OUTPUT_MARK.len() + self.bytes_max + 2).saturating_sub(self.line.len());
                    self.line.extend_from_slice(&part[..part.len().min(room)]);
                    if part.ends_with(b"\n") {
                        self.end_line();
                    }
                }
            }
        }
        if let Some(progress) = attempt.log.progress.take() {
            attempt.progressed(&progress);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if let Some(output) = line.strip_prefix(OUTPUT_MARK) {
            let output = output.trim_ascii_end();
            self.too_much = output.len() > self.bytes_max;
            self.output = Some(String::from_utf8_lossy(output).into_owned());
        }
    }
}

async fn wait_for_end(cluster: &Cluster, name: &str) -> Result<Ended, RemoteError> {
    let only = query("fieldSelector", &format!("metadata.name={name}"));
    let path = format!("{}/{name}", cluster.jobs);
    let mut failures = 0;
    loop {
        match cluster.client.watch(&cluster.jobs, &only, "0").await {
            Err(error) => failed(&mut failures, trouble("watch a Job", &error)).await?,
            Ok(mut watch) => {
                while let Some(change) = watch.next::<Job>().await {
                    match change {
                        Change::Is(job) => {
                            failures = 0;
                            if let Some(ended) = manifest::ended(&job) {
                                return Ok(ended);
                            }
                        }
                        Change::Gone(job) => {
                            let gone =
                                || RemoteError::Refused(format!("Job {name} was deleted by another client"));
                            return manifest::ended(&job).ok_or_else(gone);
                        }
                    }
                }
                // Watches end from time to time, and a Job that is gone would never send another event.
                let is_there = async || match cluster.client.get::<Value>(&path).await {
                    Ok(_) => Ok(true),
                    Err(ApiError::Refused { code: 404, .. }) => Ok(false),
                    Err(error) => Err(error),
                };
                if !ask("look for a Job", is_there).await? {
                    return Err(RemoteError::Refused(format!("Job {name} is gone; its outcome is unknown")));
                }
                failed(&mut failures, RemoteError::NotNow(format!("the watch of Job {name} keeps ending")))
                    .await?;
            }
        }
    }
}

/// Counts a failure and waits, or gives up.
async fn failed(failures: &mut u32, trouble: RemoteError) -> Result<(), RemoteError> {
    *failures += 1;
    match trouble {
        RemoteError::NotNow(_) if *failures < TRIES_MAX => {
            tokio::time::sleep(Duration::from_secs(BACKOFF_SECONDS << (*failures - 1))).await;
            Ok(())
        }
        trouble @ (RemoteError::Refused(_) | RemoteError::NotNow(_)) => Err(trouble),
    }
}

/// Sends the reasons why a Job's pod waits, then its log once the container has started. Returns whether the log was
/// complete.
async fn tell_of_pod(cluster: &Cluster, name: &str, sender: mpsc::Sender<News>) -> bool {
    let Some(pod) = begun(cluster, name, &sender).await else { return false };
    let Ok(mut log) = cluster.client.follow(&log_path(cluster, &pod, true)).await else { return false };
    loop {
        match log.more().await {
            Ok(None) => return true,
            Ok(Some(bytes)) => {
                if sender.send(News::Log(bytes.to_vec())).await.is_err() {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
}

/// Waits until the container of a Job's pod has started. Returns the name of the pod.
async fn begun(cluster: &Cluster, name: &str, sender: &mpsc::Sender<News>) -> Option<String> {
    let only = pods_of(name);
    let mut told = String::new();
    let mut failures = 0;
    loop {
        if let Ok(mut watch) = cluster.client.watch(&cluster.pods, &only, "0").await {
            while let Some(change) = watch.next::<Pod>().await {
                let Change::Is(pod) = change else { continue };
                failures = 0;
                if manifest::has_begun(&pod) {
                    return pod.metadata.name;
                }
                if let Some(reason) = manifest::waits_for(&pod).filter(|reason| *reason != told) {
                    told.clone_from(&reason);
                    sender.send(News::Waits(reason)).await.ok()?;
                }
            }
        }
        failed(&mut failures, RemoteError::NotNow(String::new())).await.ok()?;
    }
}

pub(super) async fn wait_until_gone(cluster: &Cluster, name: &str) -> Result<(), RemoteError> {
    let mut failures = 0;
    loop {
        let list = pods(cluster, name).await?;
        let mut left: BTreeSet<String> = list.items.into_iter().filter_map(|pod| pod.metadata.name).collect();
        if left.is_empty() {
            return Ok(());
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        if let Ok(mut watch) = cluster.client.watch(&cluster.pods, &pods_of(name), &version).await {
            while let Some(change) = watch.next::<Pod>().await {
                match change {
                    Change::Gone(pod) => drop(pod.metadata.name.map(|name| left.remove(&name))),
                    Change::Is(pod) => left.extend(pod.metadata.name),
                }
                if left.is_empty() {
                    return Ok(());
                }
            }
        }
        failed(&mut failures, RemoteError::NotNow(format!("the pods of Job {name} are not being deleted")))
            .await?;
    }
}
