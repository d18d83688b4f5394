//! Workers called over HTTP: the job is sent, and the response is the output or names a URL to poll.
//!
//! A note of each job is written before the job is sent, with the status URL as soon as it is known. An attempt whose
//! predecessor left a note follows that job: by its status URL, or by sending the same request with the same key.
//!
//! Never follows a URL to a host other than the configured one, so that the job and the secrets are sent nowhere else.

use std::time::{Duration, Instant};

use serde_json::Value;

use waypost_text::truncate_bytes;

use super::async_runtime::{self, Stop};
use super::attempt::{Attempt, SAID_BYTES_MAX, done};
use super::attempt_spec::Part;
use super::remote_note::{self, RemoteNote};
use crate::outcome::AttemptOutcome;
use crate::secrets::Secrets;
use waypost_config::{ExecutionEnv, Header, Http};
use waypost_net::http_client::{self as web, Answer, Request};

/// The longest wait between requests that the server can ask for.
pub const WAIT_SECONDS_MAX: u64 = 300;
/// Seconds before the first retry of a request; doubled for each further retry.
const BACKOFF_SECONDS: u64 = 1;
/// Maximum duration of a status request in seconds.
const POLL_SECONDS_MAX: u64 = 60;
/// How long to wait for the server to acknowledge a cancellation, in seconds.
const FAREWELL_SECONDS: u64 = 5;
/// The wait before the service is asked whether it has ended a job, if it names none.
const END_PAUSE: Duration = Duration::from_millis(500);
/// Bytes of an answer that are read where only its beginning matters.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

pub(super) fn run(attempt: &mut Attempt<'_>, http: &Http, part: &Part) -> Result<AttemptOutcome, String> {
    let started = (attempt.job.now().as_micros() / 1_000_000, Instant::now());
    let mut call = Call::new(attempt.around, http, started)?;
    call.traceparent = attempt.job.trace.map(|trace| trace.parent(&attempt.job.key));
    call.bytes_max = attempt.job.output_bytes_max;
    remote_note::prepare(attempt.around)?;
    let ending = async_runtime::run(attempt, |attempt, stop| exchange(attempt, &call, part, stop));
    attempt.log.finish(&call.secrets);
    ending
}

/// Ends the job of a note whose task no longer wants it. Returns whether nothing is left to do.
pub(super) fn end_left(
    around: &ExecutionEnv,
    http: &Http,
    note: &RemoteNote,
    now: i64,
) -> Result<bool, String> {
    let call = Call::new(around, http, (now, Instant::now()))?;
    let ended = waypost_net::runtime()?.block_on(async {
        tokio::time::timeout(Duration::from_secs(FAREWELL_SECONDS), end(&call, note)).await
    });
    Ok(ended.is_ok_and(|(is_over, _)| is_over))
}

/// The data of all requests of an attempt.
struct Call<'a> {
    http: &'a Http,
    headers: Vec<(String, String)>,
    hmac: Option<String>,
    secrets: Secrets,
    traceparent: Option<String>,
    /// The store's time in seconds when the work began, and a monotonic clock since then.
    started: (i64, Instant),
    bytes_max: u64,
}

impl<'a> Call<'a> {
    fn new(around: &ExecutionEnv, http: &'a Http, started: (i64, Instant)) -> Result<Self, String> {
        let mut secrets = Vec::new();
        let mut headers = Vec::new();
        for (name, value) in &http.headers {
            let value = match value {
                Header::Text(text) => text.clone(),
                Header::Secret(secret) => {
                    let value = around.secret(name, secret)?;
                    secrets.push(value.clone());
                    value
                }
            };
            headers.push((name.clone(), value));
        }
        let hmac = http.hmac.as_ref().map(|secret| around.secret("hmac", secret)).transpose()?;
        secrets.extend(hmac.clone());
        let secrets = Secrets::new(secrets);
        Ok(Self { http, headers, hmac, secrets, traceparent: None, started, bytes_max: ANSWER_BYTES_MAX })
    }

    /// The request that asks for the job of a note, or for the same job again.
    fn submission(&self, note: &RemoteNote) -> Request {
        self.request(note, self.http.method.as_str(), &self.http.url, &note.input)
    }

    fn request(&self, note: &RemoteNote, method: &'static str, url: &str, body: &str) -> Request {
        let mut headers = self.headers.clone();
        headers.push(("idempotency-key".to_owned(), note.key.clone()));
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
    /// The service does not know it.
    Gone(String),
    /// Permanent: a retry would fail in the same way.
    Failed(String),
}

/// Returns the wait before the next request that the service asks for.
fn answer_wait(answer: &Answer) -> Option<Duration> {
    let seconds = answer.header("retry-after")?.trim().parse::<u64>().ok()?;
    Some(Duration::from_secs(seconds.min(WAIT_SECONDS_MAX)))
}

fn response_kind(call: &Call<'_>, answer: Result<Answer, String>) -> ResponseKind {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return ResponseKind::NotNow { error, wait: None },
    };
    let wait = answer_wait(&answer);
    let said = match answer.body.trim() {
        "" => String::new(),
        body => format!(": {}", truncate_bytes(&call.secrets.redact(body), SAID_BYTES_MAX)),
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
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => other.to_string(),
            });
            ResponseKind::GoesOn { status_url, wait, progress }
        }
        200..=299 => ResponseKind::Done(answer.body),
        408 | 425 | 429 | 500..=599 => ResponseKind::NotNow { error, wait },
        404 | 410 => ResponseKind::Gone(error),
        _ => ResponseKind::Failed(error),
    }
}

/// Follows the job that an earlier attempt left behind, or requests one, to its end.
async fn exchange(
    attempt: &mut Attempt<'_>,
    call: &Call<'_>,
    part: &Part,
    mut stop: Stop,
) -> Result<AttemptOutcome, String> {
    let mut earlier = remote_note::claim_earlier(attempt, part);
    let followed = earlier.iter().position(|note| note.is_for(part)).map(|at| earlier.remove(at));
    for note in earlier {
        let (is_over, word) = tokio::select! {
            ended = end(call, &note) => ended,
            () = stop.asked() => return Err("it was stopped before it began".to_owned()),
        };
        attempt.log.say(&format!("waypost: the job of attempt {}: {word}", note.attempt), &call.secrets);
        if !is_over {
            let error = format!("the job of an earlier attempt could not be ended ({word})");
            return Ok(AttemptOutcome::TryAgain { error });
        }
        note.remove();
    }
    let mut note = match followed.and_then(|note| note.claim(attempt.around, &attempt.job.key)) {
        Some(note) => {
            let line = format!("waypost: the job {} of an earlier attempt is followed", note.key);
            attempt.log.say(&line, &call.secrets);
            note
        }
        None => {
            let note = RemoteNote::new(attempt, part);
            note.write()?;
            note
        }
    };
    let ending = {
        let work = work(attempt, call, part, &mut note);
        tokio::select! {
            biased;
            ending = work => Some(ending),
            () = stop.asked() => None,
        }
    };
    match ending {
        // Whether the service has the job is unknown: the next attempt asks for the same one.
        Some(Ok(ending @ AttemptOutcome::TryAgain { .. })) => Ok(ending),
        Some(ending) => {
            note.remove();
            ending
        }
        None => {
            let farewell = tokio::time::timeout(Duration::from_secs(FAREWELL_SECONDS), end(call, &note));
            let (is_over, word) = tokio::select! {
                ended = farewell => ended.ok(),
                () = stop.killed() => None,
            }
            .unwrap_or_else(|| (false, "no answer to the DELETE".to_owned()));
            attempt.log.say(&format!("waypost: {word}"), &call.secrets);
            // Without its answer, a job is asked for once more by the next attempt, if there is one.
            if is_over && (note.job.is_some() || call.http.idempotent) {
                note.remove();
            }
            Err(format!("it was stopped; {word}"))
        }
    }
}

/// Ends a job by DELETE of its status URL. Returns whether there is nothing left to do, and a message.
async fn end(call: &Call<'_>, note: &RemoteNote) -> (bool, String) {
    let mut status_url = status_url(call, note);
    if status_url.is_none() && call.http.idempotent {
        // The service may have the job although no answer came. It says so when it is asked for the same job.
        match response_kind(call, web::send(call.submission(note)).await) {
            ResponseKind::GoesOn { status_url: Some(named), .. } => {
                status_url = web::on_the_same_host(&call.http.url, &named).ok();
            }
            ResponseKind::NotNow { error, .. } => return (false, error),
            ResponseKind::GoesOn { status_url: None, .. }
            | ResponseKind::Done(_)
            | ResponseKind::Gone(_)
            | ResponseKind::Failed(_) => {}
        }
    }
    let Some(url) = status_url else {
        return (true, "no status URL is known; the remote side may still be working".to_owned());
    };
    let mut method = "DELETE";
    loop {
        let answer = match web::send(call.request(note, method, &url, "")).await {
            Ok(answer) => answer,
            Err(error) => return (false, error),
        };
        let word = format!("{method} {url}: {}", answer.status);
        match answer.status {
            // The service has begun to end it.
            202 => {
                method = "GET";
                tokio::time::sleep(answer_wait(&answer).unwrap_or(END_PAUSE)).await;
            }
            200..=299 | 404 | 409 | 410 => return (true, word),
            405 | 501 => return (true, format!("{word}; the remote side may still be working")),
            _ => return (false, word),
        }
    }
}

/// The status URL of a note. Notes can be written by others, so it counts only on the host of the service.
fn status_url(call: &Call<'_>, note: &RemoteNote) -> Option<String> {
    web::on_the_same_host(&call.http.url, note.job.as_ref()?.as_str()?).ok()
}

/// Sends the job, then polls until the work is done. A job that the service has accepted is polled until it answers.
async fn work(
    attempt: &mut Attempt<'_>,
    call: &Call<'_>,
    part: &Part,
    note: &mut RemoteNote,
) -> Result<AttemptOutcome, String> {
    let mut failures: u32 = 0;
    // A POST that got any answer at all was not lost on the way.
    let mut unanswered = true;
    loop {
        let status_url = status_url(call, note);
        let (method, url) = match &status_url {
            None => (call.http.method.as_str(), call.http.url.clone()),
            Some(url) => ("GET", url.clone()),
        };
        let answer = if status_url.is_some() {
            let asked = web::send(call.request(note, method, &url, ""));
            let limit = Duration::from_secs(POLL_SECONDS_MAX);
            tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(format!("{url}: no response")))
        } else {
            web::send(call.submission(note)).await
        };
        unanswered = unanswered && answer.is_err();
        let line = match &answer {
            Ok(answer) => format!("{method} {url}: {}", answer.status),
            Err(error) => format!("{method}: {error}"),
        };
        attempt.log.say(&line, &call.secrets);
        let wait = match response_kind(call, answer) {
            ResponseKind::Done(body) => return Ok(done(&body, &call.secrets)),
            // The service no longer knows what an earlier attempt asked for, so that nothing of it is left.
            ResponseKind::Gone(_)
                if status_url.is_some() && note.requested_by() != attempt.job.key.attempt =>
            {
                note.remove();
                *note = RemoteNote::new(attempt, part);
                note.write()?;
                continue;
            }
            ResponseKind::Gone(error) | ResponseKind::Failed(error) => return Err(error),
            ResponseKind::NotNow { error, wait } => {
                failures += 1;
                if status_url.is_none() && failures >= call.http.tries {
                    if !unanswered {
                        note.remove();
                    }
                    return Ok(AttemptOutcome::TryAgain { error });
                }
                if status_url.is_some() && failures == call.http.tries {
                    let error = call.secrets.redact(&error);
                    attempt.progressed(&format!("the service does not answer, and is asked again: {error}"));
                }
                wait.unwrap_or_else(|| Duration::from_secs(BACKOFF_SECONDS << (failures - 1).min(5)))
            }
            ResponseKind::GoesOn { status_url: named, wait, progress } => {
                failures = 0;
                match (named, &status_url) {
                    (None, None) => {
                        return Err(format!(
                            "{url} answered 202 and did not say where to ask: it needs the header Location or a field status_url"
                        ));
                    }
                    (None, Some(_)) => {}
                    (Some(named), _) => {
                        let named = web::on_the_same_host(&url, &named)?;
                        if status_url.as_ref() != Some(&named) {
                            note.job = Some(Value::String(named));
                            note.write()?;
                        }
                    }
                }
                if let Some(progress) = progress {
                    attempt.progressed(&call.secrets.redact(&progress));
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
