//! Workers behind a program that speaks for a remote service: it submits a job, finds, polls and cancels it. One call of
//! the program is one question: a JSON object on standard input, and a JSON object on standard output.
//!
//! Does not know what the service is. The note of a job is written before it is submitted, as for HTTP.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::async_runtime::{self, RemoteError, Stop};
use super::attempt::{Attempt, SAID_BYTES_MAX, done, inside};
use super::attempt_spec::Part;
use super::pipes::read_both;
use super::remote_note::{self, RemoteNote};
use super::resource_name;
use crate::outcome::AttemptOutcome;
use crate::secrets::Secrets;
use waypost_config::{ExecutionEnv, RemoteProgram};
use waypost_text::truncate_bytes;

/// The version of the protocol.
const PROTOCOL: u32 = 1;
/// The time limit of one call.
const CALL_SECONDS_MAX: u64 = 120;
/// Tries of a submission before the attempt ends.
const TRIES_MAX: u32 = 4;
/// Seconds before the first retry; doubled for each further retry.
const BACKOFF_SECONDS: u64 = 1;
/// The longest wait between two polls that a program can ask for, in seconds.
const WAIT_SECONDS_MAX: u64 = 300;
/// How long the end of a cancelled job is waited for, in seconds.
const END_SECONDS_MAX: u64 = 60;
/// The exit code for a question that the service cannot answer now.
const EXIT_NOT_NOW: i32 = 75;

pub(super) fn run(
    attempt: &mut Attempt<'_>,
    program: &RemoteProgram,
    part: &Part,
) -> Result<AttemptOutcome, String> {
    remote_note::prepare(attempt.around)?;
    let mut call = Call::new(attempt.around, program)?;
    call.variables.extend(attempt.job.variables().into_iter().map(|(name, value)| (name.to_owned(), value)));
    call.answer_bytes_max = attempt.job.output_bytes_max.saturating_add(ANSWER_EXTRA_BYTES);
    let timeout_seconds = attempt.job.timeout_seconds;
    let ending =
        async_runtime::run(attempt, |attempt, stop| exchange(attempt, &call, part, timeout_seconds, stop));
    attempt.log.finish(&call.secrets);
    ending
}

/// Ends the job of a note whose task no longer wants it. Returns whether nothing is left to do.
pub(super) fn end_left(
    around: &ExecutionEnv,
    program: &RemoteProgram,
    note: &mut RemoteNote,
) -> Result<bool, String> {
    let call = Call::new(around, program)?;
    let runtime = waypost_net::runtime()?;
    let ended = runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(END_SECONDS_MAX), end(&call, note)).await
    });
    ended.unwrap_or(Ok(false))
}

/// Bytes of an answer apart from the output in it.
const ANSWER_EXTRA_BYTES: u64 = 64 * 1024;

/// What all calls of an attempt have in common.
#[derive(Clone)]
struct Call {
    words: Vec<String>,
    directory: std::path::PathBuf,
    variables: Vec<(String, String)>,
    secrets: Secrets,
    settings: Map<String, Value>,
    poll_seconds: u32,
    answer_bytes_max: u64,
}

impl Call {
    fn new(around: &ExecutionEnv, program: &RemoteProgram) -> Result<Self, String> {
        let process = &program.process;
        let known = |name: &String| Some((name.clone(), around.variables.get(name)?.clone()));
        let mut variables: Vec<(String, String)> = process.environment.iter().filter_map(known).collect();
        let mut secrets = Vec::new();
        for (name, secret) in &process.secrets {
            let value = around.secret(name, secret)?;
            secrets.push(value.clone());
            variables.push((name.clone(), value));
        }
        let words = match process.shell {
            true => ["sh".to_owned(), "-c".to_owned()].into_iter().chain(process.command.clone()).collect(),
            false => process.command.clone(),
        };
        let setting = |(name, value): (&String, &String)| (name.clone(), Value::String(value.clone()));
        Ok(Self {
            words,
            directory: inside(&around.workspace, &process.directory)?,
            variables,
            secrets: Secrets::new(secrets),
            settings: program.settings.iter().map(setting).collect(),
            poll_seconds: program.poll_seconds,
            answer_bytes_max: ANSWER_EXTRA_BYTES,
        })
    }

    /// Asks one question. Returns the answer and what the program wrote to its log.
    async fn ask(&self, verb: &str, note: &RemoteNote, more: Value) -> (Result<Value, RemoteError>, String) {
        let mut question = json!({
            "protocol": PROTOCOL,
            "call": verb,
            "key": note.key,
            "name": resource_name::of_idempotency_key(&note.key),
            "settings": self.settings,
        });
        if let (Some(fields), Value::Object(more)) = (question.as_object_mut(), more) {
            fields.extend(more);
        }
        let (call, verb) = (self.clone(), verb.to_owned());
        let asked = tokio::task::spawn_blocking(move || call.ask_now(&verb, &question)).await;
        asked.unwrap_or_else(|error| (Err(RemoteError::NotNow(error.to_string())), String::new()))
    }

    fn ask_now(&self, verb: &str, question: &Value) -> (Result<Value, RemoteError>, String) {
        let name = &self.words[0];
        let failed = |error: io::Error| match error.kind() == io::ErrorKind::NotFound {
            true => RemoteError::Refused(format!("{name} cannot be found")),
            false => RemoteError::NotNow(format!("{name} could not be called: {error}")),
        };
        let told = || -> io::Result<_> {
            let (output, says) = io::pipe()?;
            let (errors, complains) = io::pipe()?;
            let mut command = Command::new(name);
            command.args(&self.words[1..]).env_clear().envs(self.variables.iter().cloned());
            command.current_dir(&self.directory).stdin(Stdio::piped()).stdout(says).stderr(complains);
            let mut child = command.spawn()?;
            // `command` holds our copies of the writing ends.
            drop(command);
            let (text, input) = (format!("{question}\n"), child.stdin.take());
            // The program may answer before it has read everything.
            let writer = std::thread::spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
            let limit = Duration::from_secs(CALL_SECONDS_MAX);
            let bytes_max = usize::try_from(self.answer_bytes_max).unwrap_or(usize::MAX);
            let read = read_both(output, errors, limit, bytes_max);
            if !matches!(read, Ok(Some(_))) {
                let _gone = child.kill();
            }
            let status = child.wait()?;
            let _unread = writer.join();
            Ok((status, read?))
        };
        let (status, read) = match told() {
            Ok(told) => told,
            Err(error) => return (Err(failed(error)), String::new()),
        };
        let Some((answer, log)) = read else {
            let error =
                format!("{verb}: {name} did not answer within {CALL_SECONDS_MAX} s, or said too much");
            return (Err(RemoteError::NotNow(error)), String::new());
        };
        let reason = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
        let reason = truncate_bytes(&self.secrets.redact(reason.trim()), SAID_BYTES_MAX).into_owned();
        let answer = match status.code() {
            Some(0) => {
                serde_json::from_str::<Value>(&answer).ok().filter(Value::is_object).ok_or_else(|| {
                    RemoteError::Refused(format!("{verb}: {name} did not answer with one JSON object"))
                })
            }
            Some(EXIT_NOT_NOW) | None => Err(RemoteError::NotNow(format!("{verb}: {reason}"))),
            Some(_) => Err(RemoteError::Refused(format!("{verb}: {reason}"))),
        };
        (answer, log)
    }
}

/// Asks a question, and puts the program's log into that of the attempt.
async fn ask(
    attempt: &mut Attempt<'_>,
    call: &Call,
    verb: &str,
    note: &RemoteNote,
    more: Value,
) -> Result<Value, RemoteError> {
    let (answer, log) = call.ask(verb, note, more).await;
    attempt.log.take(log.as_bytes(), &call.secrets);
    attempt.log.finish(&call.secrets);
    answer
}

async fn exchange(
    attempt: &mut Attempt<'_>,
    call: &Call,
    part: &Part,
    timeout_seconds: Option<u32>,
    mut stop: Stop,
) -> Result<AttemptOutcome, String> {
    let mut earlier = remote_note::claim_earlier(attempt, part);
    let followed = earlier.iter().position(|note| note.is_for(part)).map(|at| earlier.remove(at));
    for mut note in earlier {
        let ended = tokio::select! {
            ended = end(call, &mut note) => ended,
            () = stop.asked() => return Err("it was stopped before it began".to_owned()),
        };
        match ended {
            Ok(true) => note.remove(),
            Ok(false) => {
                let error = "the job of an earlier attempt has not ended yet".to_owned();
                return Ok(AttemptOutcome::TryAgain { error });
            }
            Err(error) => return Ok(AttemptOutcome::TryAgain { error }),
        }
    }
    let followed = followed.and_then(|note| note.claim(attempt.around, &attempt.job.key));
    let is_earlier = followed.is_some();
    let mut note = followed.unwrap_or_else(|| RemoteNote::new(attempt, part));
    note.write()?;
    let ending = {
        let work = work(attempt, call, part, timeout_seconds, &mut note, is_earlier);
        tokio::select! {
            biased;
            ending = work => Some(ending),
            () = stop.asked() => None,
        }
    };
    match ending {
        // Whether there is a job is unknown: the next attempt looks for it.
        Some(Err(trouble @ RemoteError::NotNow(_))) => Ok(trouble.into()),
        Some(ending) => {
            note.remove();
            Ok(ending.unwrap_or_else(AttemptOutcome::from))
        }
        None => {
            let ended = tokio::select! {
                ended = end(call, &mut note) => ended,
                () = stop.killed() => Ok(false),
            };
            let word = match ended {
                Ok(true) => {
                    note.remove();
                    "its job was cancelled".to_owned()
                }
                Ok(false) => "its job may not have ended yet".to_owned(),
                Err(error) => format!("its job may still run: {error}"),
            };
            Err(format!("it was stopped; {word}"))
        }
    }
}

/// Looks for the job of a note that has no handle yet. Returns whether there is one.
async fn find(call: &Call, note: &mut RemoteNote) -> Result<bool, RemoteError> {
    if note.job.is_none() {
        let answer = call.ask("find", note, json!({})).await.0?;
        note.job = answer.get("job").filter(|job| !job.is_null()).cloned();
        if note.job.is_some() {
            note.write().map_err(RemoteError::Refused)?;
        }
    }
    Ok(note.job.is_some())
}

/// Cancels a job. Returns whether it has ended.
async fn end(call: &Call, note: &mut RemoteNote) -> Result<bool, String> {
    let failed = |trouble| match trouble {
        RemoteError::Refused(error) | RemoteError::NotNow(error) => error,
    };
    if !find(call, note).await.map_err(failed)? {
        return Ok(true);
    }
    loop {
        let answer = call.ask("cancel", note, json!({ "job": note.job })).await.0.map_err(failed)?;
        match answer.get("state").and_then(Value::as_str) {
            Some("ended") => return Ok(true),
            Some("ending") => tokio::time::sleep(wait_of(call, &answer)).await,
            _ => return Err(format!("cancel: the answer has no known `state`: {answer}")),
        }
    }
}

fn wait_of(call: &Call, answer: &Value) -> Duration {
    let seconds = answer.get("wait_seconds").and_then(Value::as_f64);
    let seconds = seconds.unwrap_or(f64::from(call.poll_seconds)).clamp(0.0, WAIT_SECONDS_MAX as f64);
    Duration::from_secs_f64(seconds)
}

/// Submits the job unless it is there, then polls until it has ended.
async fn work(
    attempt: &mut Attempt<'_>,
    call: &Call,
    part: &Part,
    timeout_seconds: Option<u32>,
    note: &mut RemoteNote,
    is_earlier: bool,
) -> Result<AttemptOutcome, RemoteError> {
    let mut failures = 0;
    while note.job.is_none() {
        // A submission without an answer may have been accepted.
        let asked = match (is_earlier || failures > 0) && find(call, note).await? {
            true => break,
            false => {
                let input: Value = serde_json::from_str(&note.input).unwrap_or_default();
                let more = json!({ "input": input, "timeout_seconds": timeout_seconds });
                ask(attempt, call, "submit", note, more).await
            }
        };
        match asked {
            Ok(answer) => {
                note.job = answer.get("job").filter(|job| !job.is_null()).cloned();
                if note.job.is_none() {
                    return Err(RemoteError::Refused("submit: the answer has no `job`".to_owned()));
                }
                note.write().map_err(RemoteError::Refused)?;
            }
            Err(trouble @ RemoteError::Refused(_)) => return Err(trouble),
            Err(trouble @ RemoteError::NotNow(_)) => {
                failures += 1;
                if failures >= TRIES_MAX {
                    return Err(trouble);
                }
                tokio::time::sleep(Duration::from_secs(BACKOFF_SECONDS << (failures - 1))).await;
            }
        }
    }
    let line = format!("waypost: the job {} of {}", note.job.clone().unwrap_or_default(), note.key);
    attempt.log.say(&line, &call.secrets);
    let mut failures: u32 = 0;
    loop {
        let answer = match ask(attempt, call, "poll", note, json!({ "job": note.job })).await {
            Ok(answer) => answer,
            Err(trouble @ RemoteError::Refused(_)) => return Err(trouble),
            // A job that was accepted is asked about until there is an answer.
            Err(RemoteError::NotNow(error)) => {
                failures += 1;
                if failures == TRIES_MAX {
                    attempt.progressed(&format!("no answer, and asked again: {error}"));
                }
                tokio::time::sleep(Duration::from_secs(BACKOFF_SECONDS << (failures - 1).min(5))).await;
                continue;
            }
        };
        failures = 0;
        let text = |field: &str| {
            let text = answer.get(field).and_then(Value::as_str).unwrap_or_default();
            truncate_bytes(&call.secrets.redact(text), SAID_BYTES_MAX).into_owned()
        };
        match answer.get("state").and_then(Value::as_str) {
            Some("running") => {
                if answer.get("progress").is_some() {
                    attempt.progressed(&text("progress"));
                }
                tokio::time::sleep(wait_of(call, &answer)).await;
            }
            Some("done") => {
                let output = match answer.get("output") {
                    Some(output) if !output.is_null() => output.to_string(),
                    Some(_) | None => {
                        answer.get("result").and_then(Value::as_str).unwrap_or_default().to_owned()
                    }
                };
                if output.len() as u64 > attempt.job.output_bytes_max {
                    let bytes = attempt.job.output_bytes_max;
                    return Err(RemoteError::Refused(format!("its output has more than {bytes} bytes")));
                }
                return Ok(done(&output, &call.secrets));
            }
            Some("failed") => return Ok(AttemptOutcome::Failed { error: text("error") }),
            Some("lost") => return Ok(AttemptOutcome::TryAgain { error: text("error") }),
            // Nothing is left of what an earlier attempt submitted.
            Some("unknown") if is_earlier => {
                note.remove();
                *note = RemoteNote::new(attempt, part);
                note.write().map_err(RemoteError::Refused)?;
                return Box::pin(work(attempt, call, part, timeout_seconds, note, false)).await;
            }
            Some("unknown") => {
                return Ok(AttemptOutcome::TryAgain {
                    error: "the service no longer knows its job".to_owned(),
                });
            }
            _ => {
                return Err(RemoteError::Refused(format!("poll: the answer has no known `state`: {answer}")));
            }
        }
    }
}
