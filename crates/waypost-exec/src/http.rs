//! Workers called over HTTP: the job is sent, and the response is the output or names a URL to poll.
//!
//! Never follows a URL to a host other than the configured one, so that the job and the secrets are sent nowhere else.

use std::time::{Duration, Instant};

use serde_json::Value;

use waypost_text::truncate_bytes;

use super::async_runtime::{self, Stop};
use super::attempt::{Attempt, SAID_BYTES_MAX, done};
use super::attempt_log::without_secrets;
use super::attempt_spec::idempotency_key;
use crate::outcome::AttemptOutcome;
use waypost_config::{Header, Http};
use waypost_net::http_client::{self as web, Answer, Request};

/// The longest wait between requests that the server can ask for.
pub const WAIT_SECONDS_MAX: u64 = 300;
/// Seconds before the first retry of a request; doubled for each further retry.
const BACKOFF_SECONDS: u64 = 1;
/// Maximum duration of a status request in seconds.
const POLL_SECONDS_MAX: u64 = 60;
/// How long to wait for the server to acknowledge a cancellation, in seconds.
const FAREWELL_SECONDS: u64 = 5;

pub(super) fn run(attempt: &mut Attempt<'_>, http: &Http, job: &str) -> Result<AttemptOutcome, String> {
    let call = Call::new(attempt, http, job.trim_end())?;
    let ending = async_runtime::run(attempt, |attempt, stop| exchange(attempt, &call, stop));
    attempt.log.finish(&call.secrets);
    ending
}

/// The data of all requests of an attempt.
struct Call<'a> {
    http: &'a Http,
    job: &'a str,
    headers: Vec<(String, String)>,
    hmac: Option<String>,
    secrets: Vec<String>,
    key: String,
    traceparent: Option<String>,
    /// The store's time in seconds when the work began, and a monotonic clock since then.
    started: (i64, Instant),
    bytes_max: u64,
}

impl<'a> Call<'a> {
    fn new(attempt: &Attempt<'_>, http: &'a Http, job: &'a str) -> Result<Self, String> {
        let mut secrets = Vec::new();
        let mut headers = Vec::new();
        for (name, value) in &http.headers {
            let value = match value {
                Header::Text(text) => text.clone(),
                Header::Secret(secret) => {
                    let value = attempt.secret(name, secret)?;
                    secrets.push(value.clone());
                    value
                }
            };
            headers.push((name.clone(), value));
        }
        let hmac = http.hmac.as_ref().map(|secret| attempt.secret("hmac", secret)).transpose()?;
        secrets.extend(hmac.clone());
        let key = idempotency_key(&attempt.job.key);
        let started = (attempt.job.now().as_micros() / 1_000_000, Instant::now());
        let traceparent = attempt.job.trace.map(|trace| trace.parent(&attempt.job.key));
        let bytes_max = attempt.job.output_bytes_max;
        Ok(Self { http, job, headers, hmac, secrets, key, traceparent, started, bytes_max })
    }

    fn request(&self, method: &'static str, url: &str, body: &str) -> Request {
        let mut headers = self.headers.clone();
        headers.push(("idempotency-key".to_owned(), self.key.clone()));
        headers.extend(self.traceparent.clone().map(|parent| ("traceparent".to_owned(), parent)));
        headers.push(("accept".to_owned(), "application/json, text/plain;q=0.5, */*;q=0.1".to_owned()));
        if !body.is_empty() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
            if let Some(secret) = &self.hmac {
                let (seconds, since) = self.started;
                let timestamp = (seconds + since.elapsed().as_secs() as i64).to_string();
                headers.push(("x-waypost-signature".to_owned(), signature(secret, &timestamp, body)));
                headers.push(("x-waypost-timestamp".to_owned(), timestamp));
            }
        }
        Request { method, url: url.to_owned(), headers, body: body.to_owned(), bytes_max: self.bytes_max }
    }
}

/// Returns the value of the header `X-Waypost-Signature`.
pub fn signature(secret: &str, timestamp: &str, body: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let tag = ring::hmac::sign(&key, format!("{timestamp}.{body}").as_bytes());
    format!("sha256={}", waypost_text::hex(tag.as_ref()))
}

enum ResponseKind {
    /// The work is done, with this output.
    Done(String),
    /// The work is in progress: the URL to poll, the wait before the next poll, and the progress.
    GoesOn { status_url: Option<String>, wait: Option<Duration>, progress: Option<String> },
    /// Temporary: a retry may succeed.
    NotNow { error: String, wait: Option<Duration> },
    /// Permanent: a retry would fail in the same way.
    Failed(String),
}

fn response_kind(call: &Call<'_>, answer: Result<Answer, String>) -> ResponseKind {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return ResponseKind::NotNow { error, wait: None },
    };
    let wait = answer.header("retry-after").and_then(|text| text.trim().parse::<u64>().ok());
    let wait = wait.map(|seconds| Duration::from_secs(seconds.min(WAIT_SECONDS_MAX)));
    let said = match answer.body.trim() {
        "" => String::new(),
        body => format!(": {}", truncate_bytes(&without_secrets(body, &call.secrets), SAID_BYTES_MAX)),
    };
    let error = format!("{} answered {}{said}", call.http.url, answer.status);
    match answer.status {
        200..=299 if answer.too_much => {
            ResponseKind::Failed(format!("its output has more than {} bytes", call.bytes_max))
        }
        202 => {
            let body: Option<Value> = serde_json::from_str(&answer.body).ok();
            let field = |name: &str| body.as_ref().and_then(|body| body.get(name));
            let in_body = field("status_url").and_then(Value::as_str).map(str::to_owned);
            let status_url = answer.header("location").map(str::to_owned).or(in_body);
            let progress = field("progress").map(|progress| match progress {
                Value::String(words) => words.clone(),
                other => other.to_string(),
            });
            ResponseKind::GoesOn { status_url, wait, progress }
        }
        200..=299 => ResponseKind::Done(answer.body),
        408 | 425 | 429 | 500..=599 => ResponseKind::NotNow { error, wait },
        _ => ResponseKind::Failed(error),
    }
}

async fn exchange(
    attempt: &mut Attempt<'_>,
    call: &Call<'_>,
    mut stop: Stop,
) -> Result<AttemptOutcome, String> {
    let mut status_url = None;
    let ending = {
        let work = work(attempt, call, &mut status_url);
        tokio::select! {
            biased;
            ending = work => Some(ending),
            () = stop.asked() => None,
        }
    };
    if let Some(ending) = ending {
        return ending;
    }
    if let Some(url) = status_url {
        let farewell = web::send(call.request("DELETE", &url, ""));
        let told = tokio::select! {
            told = tokio::time::timeout(Duration::from_secs(FAREWELL_SECONDS), farewell) => told.ok(),
            () = stop.killed() => None,
        };
        let word = match told {
            Some(Ok(answer)) => answer.status.to_string(),
            Some(Err(error)) => error,
            None => "no answer".to_owned(),
        };
        attempt.log.say(&format!("DELETE {url}: {word}"), &call.secrets);
    }
    Err("it was stopped; the remote side may still be working".to_owned())
}

/// Sends the job, then polls until the work is done.
async fn work(
    attempt: &mut Attempt<'_>,
    call: &Call<'_>,
    status_url: &mut Option<String>,
) -> Result<AttemptOutcome, String> {
    let mut failures = 0;
    loop {
        let (method, url) = match &*status_url {
            None => (call.http.method.as_str(), call.http.url.clone()),
            Some(url) => ("GET", url.clone()),
        };
        let answer = if status_url.is_some() {
            let asked = web::send(call.request(method, &url, ""));
            let limit = Duration::from_secs(POLL_SECONDS_MAX);
            tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(format!("{url}: no response")))
        } else {
            web::send(call.request(method, &url, call.job)).await
        };
        let line = match &answer {
            Ok(answer) => format!("{method} {url}: {}", answer.status),
            Err(error) => format!("{method}: {error}"),
        };
        attempt.log.say(&line, &call.secrets);
        let wait = match response_kind(call, answer) {
            ResponseKind::Done(body) => return Ok(done(&body, &call.secrets)),
            ResponseKind::Failed(error) => return Err(error),
            ResponseKind::NotNow { error, wait } => {
                failures += 1;
                if failures >= call.http.tries {
                    return Ok(AttemptOutcome::TryAgain { error });
                }
                wait.unwrap_or_else(|| Duration::from_secs(BACKOFF_SECONDS << (failures - 1).min(5)))
            }
            ResponseKind::GoesOn { status_url: named, wait, progress } => {
                failures = 0;
                if let Some(progress) = progress {
                    attempt.progressed(&without_secrets(&progress, &call.secrets));
                }
                match (named, &*status_url) {
                    (None, None) => {
                        return Err(format!(
                            "{url} answered 202 and did not say where to ask: it needs the header Location or a field status_url"
                        ));
                    }
                    (None, Some(_)) => {}
                    (Some(named), _) => *status_url = Some(web::on_the_same_host(&url, &named)?),
                }
                wait.unwrap_or(Duration::from_secs(u64::from(call.http.poll_seconds)))
            }
        };
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_the_one_that_others_compute() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        assert_eq!(
            signature("key", "1700000000", "{\"a\":1}"),
            "sha256=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03"
        );
    }
}
