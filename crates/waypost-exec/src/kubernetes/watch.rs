//! Follows a Job to its end: watches the Job and its pod, and streams the log.

use std::pin::pin;
use std::time::Duration;

use futures_util::{AsyncReadExt, StreamExt};
use k8s_openapi::api::batch::v1::Job as ClusterJob;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, LogParams, WatchEvent, WatchParams};
use tokio::sync::mpsc;

use super::cluster::{BACKOFF_SECONDS, Cluster, TRIES_MAX, ask, trouble};
use super::manifest::{self, CONTAINER, Ended};
use crate::async_runtime::RemoteError;
use crate::attempt::Attempt;

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
    format!("batch.kubernetes.io/job-name={name}")
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
        let mut end = pin!(wait_for_end(&cluster.jobs, name));
        let mut pod = pin!(tell_of_pod(&cluster.pods, name, sender));
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
    let all = ListParams::default().labels(&pods_of(name));
    let pod = ask("list pods", async || cluster.pods.list(&all).await).await?.items.into_iter().next();
    if log_is_whole != Some(true)
        && let Some(pod) = pod.as_ref().and_then(|pod| pod.metadata.name.as_deref())
    {
        // The connection broke on the way. The log as it is now is complete, so it is read from the beginning.
        taken = Taken::new(attempt.job.output_bytes_max);
        attempt.log.say("waypost: the log from its beginning:", &[]);
        let text = ask("read a log", async || cluster.pods.logs(pod, &log_of_worker(false)).await).await?;
        taken.take(attempt, News::Log(text.into_bytes()));
    }
    taken.end_line();
    attempt.log.finish(&[]);
    let Taken { output, too_much, .. } = taken;
    Ok(Followed { ended, pod, output, too_much })
}

fn log_of_worker(follow: bool) -> LogParams {
    LogParams { container: Some(CONTAINER.to_owned()), follow, ..LogParams::default() }
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
                attempt.log.say(&format!("waypost: the pod waits: {reason}"), &[]);
                attempt.progressed(&reason);
            }
            News::Log(bytes) => {
                attempt.log.take(&bytes, &[]);
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

async fn wait_for_end(jobs: &Api<ClusterJob>, name: &str) -> Result<Ended, RemoteError> {
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut failures = 0;
    loop {
        // Version 0 means: the current state, followed by all changes.
        match jobs.watch(&only, "0").await {
            Err(error) => failed(&mut failures, trouble("watch a Job", &error)).await?,
            Ok(events) => {
                let mut events = pin!(events);
                while let Some(event) = events.next().await {
                    match event {
                        Ok(WatchEvent::Added(job) | WatchEvent::Modified(job)) => {
                            failures = 0;
                            if let Some(ended) = manifest::ended(&job) {
                                return Ok(ended);
                            }
                        }
                        Ok(WatchEvent::Deleted(job)) => {
                            return match manifest::ended(&job) {
                                Some(ended) => Ok(ended),
                                None => Err(RemoteError::Refused(format!(
                                    "Job {name} was deleted by another client"
                                ))),
                            };
                        }
                        Ok(WatchEvent::Bookmark(_)) => {}
                        Ok(WatchEvent::Error(_)) | Err(_) => break,
                    }
                }
                // Watches end from time to time, and a Job that is gone would never send another event.
                if ask("look for a Job", async || jobs.get_opt(name).await).await?.is_none() {
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
        trouble => Err(trouble),
    }
}

/// Sends the reasons why a Job's pod waits, then its log once the container has started. Returns whether the log was
/// complete.
async fn tell_of_pod(pods: &Api<Pod>, name: &str, sender: mpsc::Sender<News>) -> bool {
    let Some(pod) = begun(pods, name, &sender).await else { return false };
    let Ok(log) = pods.log_stream(&pod, &log_of_worker(true)).await else { return false };
    let mut log = pin!(log);
    let mut buffer = vec![0u8; 16 * 1024];
    loop {
        match log.read(&mut buffer).await {
            Ok(0) => return true,
            Ok(count) => {
                if sender.send(News::Log(buffer[..count].to_vec())).await.is_err() {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
}

/// Waits until the container of a Job's pod has started. Returns the name of the pod.
async fn begun(pods: &Api<Pod>, name: &str, sender: &mpsc::Sender<News>) -> Option<String> {
    let only = WatchParams::default().labels(&pods_of(name));
    let mut told = String::new();
    let mut failures = 0;
    loop {
        if let Ok(events) = pods.watch(&only, "0").await {
            let mut events = pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { continue };
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

pub(super) async fn wait_until_gone(pods: &Api<Pod>, name: &str) -> Result<(), RemoteError> {
    let selector = pods_of(name);
    let (all, only) = (ListParams::default().labels(&selector), WatchParams::default().labels(&selector));
    let mut failures = 0;
    loop {
        let list = ask("list pods", async || pods.list(&all).await).await?;
        let mut left = list.items.len();
        if left == 0 {
            return Ok(());
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        if let Ok(events) = pods.watch(&only, &version).await {
            let mut events = pin!(events);
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Deleted(_) => left = left.saturating_sub(1),
                    WatchEvent::Added(_) => left += 1,
                    WatchEvent::Modified(_) | WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => break,
                }
                if left == 0 {
                    return Ok(());
                }
            }
        }
        failed(&mut failures, RemoteError::NotNow(format!("the pods of Job {name} are not being deleted")))
            .await?;
    }
}
