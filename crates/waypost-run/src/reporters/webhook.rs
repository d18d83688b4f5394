//! Posts one event to a webhook: its payload, its signature and the meaning of the response. Knows nothing of positions
//! in the log or of retries.

use std::time::Duration;

use serde_json::{Map, Value, json};
use waypost_core::Timestamp;
use waypost_store::LogEvent;

use super::REPORT_BYTES_MAX;
use waypost_config::ExecutionEnv;
use waypost_config::{Header, Webhook};
use waypost_exec::Secrets;
use waypost_exec::http::{WAIT_SECONDS_MAX, signature};
use waypost_net as remote;
use waypost_net::http_client::{self as web, Request};

/// Bytes of a response that are read; the body is not used.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// Task ids in a payload; the rest are only counted.
const TASKS_NAMED_MAX: usize = 100;
/// The fields of an event that are sent. Fields that may hold data of a plan or a worker are not among them.
const DETAILS: [&str; 17] = [
    "again_at",
    "answer",
    "attempt",
    "because_of",
    "by",
    "error",
    "goal",
    "message",
    "note",
    "parent",
    "phase",
    "progress",
    "queue",
    "reason",
    "refinement",
    "status",
    "summary",
];

/// Returns the payload of an event: who, when, where, its kind and a few short texts. Never inputs, outputs or whole
/// tasks.
pub fn payload(event: &LogEvent, title: &str) -> Value {
    let mut said = Map::new();
    let mut say = |name: &str, value: Value| drop(said.insert(name.to_owned(), value));
    say("id", json!(id(event)));
    say("sequence", json!(event.sequence));
    say("index", json!(event.index));
    say("kind", json!(event.kind));
    say("at", json!(event.at));
    say("actor", json!(event.actor));
    say("plan", json!(event.plan));
    say("version", json!(event.version));
    say("title", json!(title));
    if !event.owner.is_empty() {
        say("owner", json!(event.owner));
    }
    if let Some(task) = &event.task {
        say("task", json!(task));
    }
    if event.derived {
        say("derived", json!(true));
    }
    let details = details(event);
    if !details.is_empty() && json!(details).to_string().len() <= REPORT_BYTES_MAX {
        say("details", Value::Object(details));
    }
    Value::Object(said)
}

fn details(event: &LogEvent) -> Map<String, Value> {
    let Ok(Value::Object(fields)) = serde_json::to_value(&event.event) else { return Map::new() };
    let mut details = Map::new();
    for (name, value) in &fields {
        let is_plain = value.is_string() || value.is_number() || value.is_boolean();
        if DETAILS.contains(&name.as_str()) && is_plain {
            details.insert(name.clone(), value.clone());
        }
    }
    let asked = fields.get("question").and_then(|question| question.get("text"));
    details.extend(asked.map(|text| ("question".to_owned(), text.clone())));
    if let Some(Value::Array(tasks)) = fields.get("tasks").or_else(|| fields.get("order")) {
        let name = |task: &Value| task.as_str().or_else(|| task.get("id")?.as_str()).map(Value::from);
        let names: Vec<Value> = tasks.iter().take(TASKS_NAMED_MAX).filter_map(name).collect();
        details.insert("tasks".to_owned(), Value::Array(names));
        details.insert("tasks_total".to_owned(), json!(tasks.len()));
    }
    if let Some(tasks) = fields.get("draft").and_then(|draft| draft.get("tasks")?.as_array()) {
        details.insert("tasks_total".to_owned(), json!(tasks.len()));
    }
    details
}

/// Returns the id of an event, the same in every delivery.
fn id(event: &LogEvent) -> String {
    format!("{}.{}.{}", event.plan, event.version, event.index)
}

/// Why an event was not accepted.
pub(super) struct NotTaken {
    pub(super) why: String,
    /// The wait that the server requests before the next try.
    pub(super) wait: Option<Duration>,
}

/// A URL with everything that is sent to it.
pub(super) struct Hook {
    url: String,
    headers: Vec<(String, String)>,
    hmac: Option<String>,
    /// Values that must not appear in messages.
    secrets: Secrets,
}

impl Hook {
    /// Reads the secrets that the webhook needs.
    pub(super) fn new(webhook: &Webhook, around: &ExecutionEnv) -> Result<Self, String> {
        let value = |name: &str, value: &Header| match value {
            Header::Text(text) => Ok(text.clone()),
            Header::Secret(secret) => around.secret(name, secret),
        };
        let url = value("url", &webhook.url)?;
        let mut headers = Vec::new();
        for (name, header) in &webhook.headers {
            headers.push((name.clone(), value(name, header)?));
        }
        let hmac = webhook.hmac.as_ref().map(|secret| around.secret("hmac", secret)).transpose()?;
        let mut secrets: Vec<String> = headers.iter().map(|(_, value)| value.clone()).collect();
        secrets.extend(hmac.clone());
        if let Header::Secret(_) = webhook.url {
            secrets.push(url.clone());
        }
        Ok(Self { url, headers, hmac, secrets: Secrets::new(secrets) })
    }

    /// Posts an event. `Ok`: the server has accepted it.
    pub(super) fn post(
        &self,
        event: &LogEvent,
        title: &str,
        now: Timestamp,
        at_most: Duration,
    ) -> Result<(), NotTaken> {
        let body = payload(event, title).to_string();
        let mut headers = self.headers.clone();
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        headers.push(("idempotency-key".to_owned(), id(event)));
        if let Some(secret) = &self.hmac {
            let timestamp = (now.as_micros() / 1_000_000).to_string();
            headers.push(("x-waypost-signature".to_owned(), signature(secret, &timestamp, &body)));
            headers.push(("x-waypost-timestamp".to_owned(), timestamp));
        }
        let url = self.url.clone();
        let request = Request { method: "POST", url, headers, body, bytes_max: ANSWER_BYTES_MAX };
        let sent = remote::wait_for(async { tokio::time::timeout(at_most, web::send(request)).await });
        let not_taken = |why: String| NotTaken { why: self.secrets.redact(&why), wait: None };
        let answer = match sent {
            Ok(Ok(Ok(answer))) => answer,
            Ok(Ok(Err(why))) | Err(why) => return Err(not_taken(why)),
            Ok(Err(_)) => {
                return Err(not_taken(format!(
                    "{} did not answer in {} s",
                    self.url,
                    at_most.as_secs().max(1)
                )));
            }
        };
        if (200..300).contains(&answer.status) {
            return Ok(());
        }
        let wait = answer.header("retry-after").and_then(|text| text.trim().parse::<u64>().ok());
        let wait = wait.map(|seconds| Duration::from_secs(seconds.min(WAIT_SECONDS_MAX)));
        let not_taken = not_taken(format!("{} answered {}", self.url, answer.status));
        Err(NotTaken { wait, ..not_taken })
    }
}
