//! The manifest of a Job, and the meaning of its end. Pure: no connection.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::attempt::Attempt;
use crate::attempt_spec::idempotency_key;
use crate::outcome::{AttemptKey, AttemptOutcome};
use crate::process::EXIT_TRY_AGAIN;
use crate::resource_name::{name, sum};
use waypost_config::Kubernetes;

/// Bytes of the worker's input. It is passed as an annotation, and a cluster accepts 256 KiB of annotations in all.
const JOB_BYTES_MAX: usize = 240 * 1024;
/// The file with the worker's input.
const JOB_FILE: &str = "job.json";
/// The directory of that file.
const JOB_FOLDER: &str = "/waypost";
/// Characters of a label's value.
const LABEL_CHARS_MAX: usize = 63;
/// The name of the container in the pod.
pub(super) const CONTAINER: &str = "worker";
/// The annotation with the attempt of a Job.
const KEY_ANNOTATION: &str = "waypost/idempotency-key";
const JOB_ANNOTATION: &str = "waypost/job";
/// Reasons why a pod disappeared without ending by itself.
const TAKEN_AWAY: [&str; 5] = ["Evicted", "NodeLost", "NodeAffinity", "Preempting", "Shutdown"];

/// Objects of a cluster, with the fields that are read.
#[derive(Deserialize)]
pub(super) struct List<T> {
    #[serde(default)]
    pub(super) metadata: Metadata,
    pub(super) items: Vec<T>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) resource_version: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Job {
    pub(super) metadata: Metadata,
    status: Option<JobStatus>,
}

#[derive(Deserialize)]
struct JobStatus {
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Pod {
    pub(super) metadata: Metadata,
    status: Option<PodStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    reason: Option<String>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Deserialize)]
struct ContainerStatus {
    state: Option<ContainerState>,
}

#[derive(Deserialize)]
struct ContainerState {
    running: Option<Value>,
    terminated: Option<Terminated>,
    waiting: Option<Waiting>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Terminated {
    exit_code: i32,
    reason: Option<String>,
    pub(super) message: Option<String>,
}

#[derive(Deserialize)]
struct Waiting {
    reason: Option<String>,
    message: Option<String>,
}

/// Converts a text to the value of a label. A text that is not valid there is shortened and gets a checksum to stay
/// unique.
pub(super) fn label(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if text.len() <= LABEL_CHARS_MAX
        && text.chars().all(fits)
        && ends(text.chars().next())
        && ends(text.chars().last())
    {
        return text.to_owned();
    }
    let plain: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(40).collect();
    let plain = plain.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let gap = if plain.is_empty() { "" } else { "-" };
    format!("{plain}{gap}{}", sum(text))
}

/// The selector for all Jobs of a task.
pub(super) fn selector(key: &AttemptKey) -> String {
    format!("waypost/plan={},waypost/task={}", label(key.plan.as_str()), label(key.task.as_str()))
}

/// Returns the attempt number of a Job, if the Job belongs to this task. Labels are shortened, the annotation is not.
pub(super) fn attempt_of(job: &Job, key: &AttemptKey) -> Option<u32> {
    let said = job.metadata.annotations.as_ref()?.get(KEY_ANNOTATION)?;
    said.strip_prefix(&format!("{}/{}/", key.plan, key.task))?.parse().ok()
}

pub(super) fn job(attempt: &Attempt<'_>, kubernetes: &Kubernetes, told: &str) -> Result<Value, String> {
    if told.len() > JOB_BYTES_MAX {
        let bytes = told.len();
        return Err(format!(
            "the job specification has {bytes} bytes, over the limit of {JOB_BYTES_MAX} for a pod: pass large inputs and outputs by reference"
        ));
    }
    let key = &attempt.job.key;
    let labels = json!({
        "app.kubernetes.io/managed-by": "waypost",
        "waypost/plan": label(key.plan.as_str()),
        "waypost/task": label(key.task.as_str()),
        "waypost/attempt": key.attempt.to_string(),
        "waypost/run": label(&attempt.around.worker),
    });
    let mut container = json!({
        "name": CONTAINER,
        "image": kubernetes.image,
        "env": environment(attempt, kubernetes),
        "resources": { "requests": kubernetes.requests, "limits": kubernetes.limits },
        "volumeMounts": [{ "name": "waypost", "mountPath": JOB_FOLDER, "readOnly": true }],
        "terminationMessagePolicy": "File",
    });
    if !kubernetes.command.is_empty() {
        container["command"] = json!(kubernetes.command);
    }
    let field = format!("metadata.annotations['{JOB_ANNOTATION}']");
    let mut pod = json!({
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{ "name": "waypost", "downwardAPI": { "items": [
            { "path": JOB_FILE, "fieldRef": { "fieldPath": field } },
        ] } }],
    });
    if let Some(account) = &kubernetes.service_account {
        pod["serviceAccountName"] = json!(account);
    }
    if !kubernetes.pull_secrets.is_empty() {
        let names: Vec<Value> = kubernetes.pull_secrets.iter().map(|name| json!({ "name": name })).collect();
        pod["imagePullSecrets"] = json!(names);
    }
    let mut spec = json!({
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": kubernetes.ttl_seconds,
        "template": {
            "metadata": { "labels": labels, "annotations": { JOB_ANNOTATION: told } },
            "spec": pod,
        },
    });
    if let Some(seconds) = attempt.job.timeout_seconds {
        spec["activeDeadlineSeconds"] = json!(seconds);
    }
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name(key),
            "labels": labels,
            "annotations": { KEY_ANNOTATION: idempotency_key(key) },
        },
        "spec": spec,
    }))
}

fn environment(attempt: &Attempt<'_>, kubernetes: &Kubernetes) -> Vec<Value> {
    let mut variables = Map::new();
    for (name, value) in &kubernetes.variables {
        variables.insert(name.clone(), json!({ "name": name, "value": value }));
    }
    for (name, (secret, key)) in &kubernetes.secrets {
        let from = json!({ "secretKeyRef": { "name": secret, "key": key } });
        variables.insert(name.clone(), json!({ "name": name, "valueFrom": from }));
    }
    for (name, value) in attempt.job.variables() {
        variables.insert(name.to_owned(), json!({ "name": name, "value": value }));
    }
    let file = format!("{JOB_FOLDER}/{JOB_FILE}");
    variables.insert("WAYPOST_JOB_FILE".to_owned(), json!({ "name": "WAYPOST_JOB_FILE", "value": file }));
    variables.into_iter().map(|(_, variable)| variable).collect()
}

/// How a Job ended, according to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Complete,
    Failed { reason: String, message: String },
}

/// Returns how a Job ended, or `None` while it is in progress.
pub(super) fn ended(job: &Job) -> Option<Ended> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let mut holding = conditions.iter().filter(|condition| condition.status == "True");
    holding.find_map(|condition| match condition.kind.as_str() {
        "Complete" => Some(Ended::Complete),
        "Failed" => Some(Ended::Failed {
            reason: condition.reason.clone().unwrap_or_default(),
            message: condition.message.clone().unwrap_or_default(),
        }),
        _ => None,
    })
}

/// Returns how the container of a pod ended, or `None` while it runs.
pub(super) fn terminated(pod: &Pod) -> Option<&Terminated> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.first()?.state.as_ref()?.terminated.as_ref()
}

/// Whether the container of a pod has started, so that it has a log.
pub(super) fn has_begun(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let state = statuses.and_then(|statuses| statuses.first()?.state.as_ref());
    state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// Returns why a pod has not started, if the reason needs attention.
pub(super) fn waits_for(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let waiting = statuses.first()?.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|&reason| reason != "ContainerCreating")?;
    Some(match waiting.message.as_deref() {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    })
}

/// Returns the outcome of a Job and its pod, or `None` if the output decides.
pub(super) fn judged(
    name: &str,
    ended: &Ended,
    pod: Option<&Pod>,
    last_line: &str,
) -> Option<AttemptOutcome> {
    let said = if last_line.is_empty() { String::new() } else { format!(": {last_line}") };
    let code = pod.and_then(terminated).map(|terminated| terminated.exit_code);
    let pod_reason = pod.and_then(|pod| pod.status.as_ref()?.reason.clone()).unwrap_or_default();
    match (ended, code) {
        (Ended::Complete, _) => None,
        (Ended::Failed { reason, .. }, _) if reason == "DeadlineExceeded" => {
            Some(AttemptOutcome::Failed { error: format!("Job {name} took longer than its timeout{said}") })
        }
        (Ended::Failed { .. }, Some(EXIT_TRY_AGAIN)) => {
            Some(AttemptOutcome::TryAgain { error: format!("it asked to be tried again{said}") })
        }
        (Ended::Failed { .. }, _) if TAKEN_AWAY.contains(&pod_reason.as_str()) => {
            Some(AttemptOutcome::TryAgain { error: format!("the cluster took its pod away ({pod_reason})") })
        }
        (Ended::Failed { .. }, Some(code)) => {
            let why = pod.and_then(terminated).and_then(|terminated| terminated.reason.clone());
            let why = why.filter(|why| why != "Error").map(|why| format!(" ({why})")).unwrap_or_default();
            Some(AttemptOutcome::Failed { error: format!("it ended with exit code {code}{why}{said}") })
        }
        (Ended::Failed { reason, message }, None) => {
            let error = format!("Job {name} failed and nothing is left of its pod ({reason}: {message})");
            Some(AttemptOutcome::TryAgain { error })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_such_as_a_cluster_takes() {
        for text in ["build", "Build API/v2", "é", "-", &"x".repeat(120)] {
            let label = label(text);
            assert!(label.len() <= 63 && label.starts_with(|c: char| c.is_ascii_alphanumeric()), "{label}");
        }
        assert_eq!(label("build.api-2"), "build.api-2");
        assert_ne!(label("a/b"), label("a b"));
    }
}
