//! The log of an attempt: its end, the whole of it, or as it is written.

use std::convert::Infallible;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::{iter, unfold};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch::Receiver;
use waypost_core::{PlanId, Status, TaskId};
use waypost_service::ServiceError;
use waypost_store::{FoundLog, LogTimes, NoLog, find_log, log_path, open_log};

use super::extract::{Parameters, TaskPath};
use super::response::{Problem, Reply, Versioned};
use super::state::{Api, run_blocking};

/// Bytes of a log that are sent: default and maximum.
const LOG_BYTES_DEFAULT: u64 = 64 * 1024;
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of a piece of a log that is sent as a whole.
const PIECE_BYTES: u64 = 256 * 1024;
/// Bytes of a log whose lines are counted to number those of its end.
const COUNTED_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The response header with the size of the whole log, in bytes.
const LOG_BYTES: &str = "x-waypost-log-bytes";
/// The response header with the number that the first line of the text has in the file.
const LOG_LINE: &str = "x-waypost-log-line";
/// Time between two reads of a log that is being written.
const LOG_POLL: Duration = Duration::from_millis(250);

/// Selects an attempt and a part of its log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogQuery {
    attempt: Option<u32>,
    tail: Option<u64>,
    #[serde(default)]
    follow: bool,
    /// All of the log as a download, however long it is.
    #[serde(default)]
    whole: bool,
}

/// `GET /plans/{plan}/tasks/{task}/log`: the end of the log, with `whole=true` all of it, or with `follow=true` the log as
/// it is written.
pub(crate) async fn log(
    State(api): State<Arc<Api>>,
    TaskPath(plan, task): TaskPath,
    headers: HeaderMap,
    Parameters(wanted): Parameters<LogQuery>,
) -> Result<Response, Problem> {
    // Subscribed before the first read, so that no end of streams is missed.
    let ends = api.stream_ends();
    let attempt =
        run_blocking(Arc::clone(&api), move |api| Attempt::find(api, plan, task, wanted.attempt)).await?;
    if wanted.follow {
        // A client that reconnects names the last byte that it has read.
        let last = headers.get("last-event-id").and_then(|last| last.to_str().ok()?.parse().ok());
        let follower = Follower { api, attempt, seen: last.unwrap_or(0), ends, first: true, over: false };
        return Ok(follower.answer());
    }
    let kind = (CONTENT_TYPE, "text/plain; charset=utf-8");
    if wanted.whole {
        let (body, total) = run_blocking(api, move |api| attempt.whole(api)).await?;
        let heads = [kind, (CONTENT_DISPOSITION, "attachment")];
        return Ok((heads, [(LOG_BYTES, total.to_string())], body).into_response());
    }
    let tail = wanted.tail.unwrap_or(LOG_BYTES_DEFAULT).min(LOG_BYTES_MAX);
    let (text, total, line) = run_blocking(api, move |api| {
        let (text, total) = attempt.read(api, tail)?;
        let line = attempt.first_line(api, &text, total);
        Ok((text, total, line))
    })
    .await?;
    let mut response = ([kind], [(LOG_BYTES, total.to_string())], text).into_response();
    if let Some(line) = line {
        response.headers_mut().insert(LOG_LINE, HeaderValue::from(line));
    }
    Ok(response)
}

/// Selects an attempt.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogTimesQuery {
    attempt: Option<u32>,
}

/// `GET /plans/{plan}/tasks/{task}/log/times`: when the lines of the log were written, as far as its file is on this machine.
pub(crate) fn times(
    api: &Api,
    (TaskPath(plan, task), Parameters(wanted)): (TaskPath, Parameters<LogTimesQuery>),
) -> Reply {
    let attempt = Attempt::find(api, plan, task, wanted.attempt)?;
    let times = LogTimes::of(&log_path(&api.logs, &attempt.plan, &attempt.task, attempt.number));
    let times: Vec<_> = times.iter().map(|(from, at)| json!({ "from": from, "at": at })).collect();
    Ok(Versioned::of(json!({ "attempt": attempt.number, "times": times })))
}

/// Reads a log in pieces, one while the one before is sent.
fn pieces(log: impl Read + Send + 'static) -> Body {
    let pieces = unfold(Some(log), async |log| {
        let mut log = log?;
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::new();
            let read = log.by_ref().take(PIECE_BYTES).read_to_end(&mut piece);
            read.map(|_| (Bytes::from(piece), log))
        });
        match read.await.map_err(io::Error::other).and_then(|read| read) {
            Ok((piece, _)) if piece.is_empty() => None,
            Ok((piece, log)) => Some((Ok(piece), Some(log))),
            Err(error) => Some((Err(error), None)),
        }
    });
    // The compression looks once more after the end.
    Body::from_stream(pieces.fuse())
}

/// The attempt that wrote a log.
#[derive(Clone)]
struct Attempt {
    plan: PlanId,
    task: TaskId,
    number: u32,
}

impl Attempt {
    /// Returns the attempt with this number, or the latest.
    fn find(api: &Api, plan: PlanId, task: TaskId, number: Option<u32>) -> Result<Self, Problem> {
        let latest = api.service.view(&plan, |plan, _| {
            let found = plan.task(task.as_str()).map(|task| task.state.attempt);
            found.ok_or_else(|| plan.no_such_task(task.as_str()))
        })?;
        let latest = latest.map_err(ServiceError::from)?;
        let number = number.unwrap_or(latest);
        if latest == 0 {
            let hint = format!("`why` of GET /api/v1/plans/{plan}/tasks/{task} explains what it waits for");
            return Err(Problem::not_found(format!("task {task} has never been started"), hint));
        }
        if number == 0 || number > latest {
            let hint = format!("the latest is {latest}");
            return Err(Problem::not_found(format!("task {task} has no attempt {number}"), hint));
        }
        Ok(Self { plan, task, number })
    }

    fn runs(&self, api: &Api) -> Result<bool, Problem> {
        let runs = |task: &waypost_core::Task| {
            task.state.status == Status::Running && task.state.attempt == self.number
        };
        Ok(api.service.view(&self.plan, |plan, _| plan.task(self.task.as_str()).is_some_and(runs))?)
    }

    /// Returns the whole log and its size in bytes: the local file as it is now, or what the store has of a file on
    /// another machine.
    fn whole(&self, api: &Api) -> Result<(Body, u64), Problem> {
        let path = log_path(&api.logs, &self.plan, &self.task, self.number);
        let opened = open_log(&path).and_then(|file| file.metadata().map(|about| (file, about.len())));
        match opened {
            Ok((file, bytes)) if bytes > 0 => Ok((pieces(file.take(bytes)), bytes)),
            // Why a file cannot be read, `read` says.
            Ok(_) | Err(_) => self.read(api, LOG_BYTES_MAX).map(|(text, bytes)| (Body::from(text), bytes)),
        }
    }

    /// Returns the number that the first line of the end of the log has in its file; `None` if the file is not here, or too
    /// long to count.
    fn first_line(&self, api: &Api, text: &str, total: u64) -> Option<u64> {
        if total <= text.len() as u64 {
            return Some(1);
        }
        if total > COUNTED_BYTES_MAX {
            return None;
        }
        let file = open_log(&log_path(&api.logs, &self.plan, &self.task, self.number)).ok()?;
        let (mut file, mut lines, mut piece) = (file.take(total), 0_u64, vec![0; PIECE_BYTES as usize]);
        loop {
            match file.read(&mut piece).ok()? {
                0 => break,
                read => lines += newlines(piece.get(..read)?),
            }
        }
        (lines > 0).then(|| 1 + lines.saturating_sub(newlines(text.as_bytes())))
    }

    /// Returns the end of the log and its total size in bytes. Reads the local file, or the store's copy of a file on
    /// another machine.
    fn read(&self, api: &Api, bytes_max: u64) -> Result<(String, u64), Problem> {
        let place = (&self.plan, &self.task, self.number);
        match find_log(api.plans(), &api.logs, place, None, bytes_max) {
            Ok(FoundLog::File { text, bytes }) => Ok((text, bytes)),
            Ok(FoundLog::Copy(copy)) => Ok((copy.text, copy.bytes)),
            Ok(FoundLog::Nothing { .. }) => Ok((String::new(), 0)),
            Err(NoLog::File(error)) => Err(Problem::not_found(
                error.to_string(),
                "ask the operator of this server to check the file",
            )),
            Err(NoLog::Store(error)) => Err(error.into()),
        }
    }
}

fn newlines(text: &[u8]) -> u64 {
    text.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// A client that follows a log as it is written.
struct Follower {
    api: Arc<Api>,
    attempt: Attempt,
    /// Bytes sent so far, here or on an earlier connection.
    seen: u64,
    ends: Receiver<u64>,
    first: bool,
    over: bool,
}

impl Follower {
    fn answer(self) -> Response {
        let batches = unfold(self, async |mut follower| Some((follower.next().await?, follower)));
        let events = batches.flat_map(|batch| iter(batch.into_iter().map(Ok::<_, Infallible>)));
        Sse::new(events).into_response()
    }

    /// Returns the next events. Returns `None` after the attempt ended, or when streams end because tokens changed or
    /// the server stops.
    async fn next(&mut self) -> Option<Vec<Event>> {
        if self.over {
            return None;
        }
        if !self.first {
            tokio::select! {
                () = tokio::time::sleep(LOG_POLL) => {}
                _ended = self.ends.changed() => return None,
            }
        }
        let (attempt, is_begin) = (self.attempt.clone(), self.first && self.seen == 0);
        let state = run_blocking(Arc::clone(&self.api), move |api| {
            // The status is read before the log, so that the last lines of the attempt are not missed.
            let runs = attempt.runs(api)?;
            let (text, total) = attempt.read(api, LOG_BYTES_MAX).unwrap_or_default();
            let line = is_begin.then(|| attempt.first_line(api, &text, total)).flatten();
            Ok((runs, text, total, line))
        });
        let (runs, text, total, line) = state.await.ok()?;
        let mut events = Vec::new();
        if let Some(line) = line.filter(|&line| line > 1) {
            events.push(Event::default().event("begin").data(json!({ "line": line }).to_string()));
        }
        let fresh = usize::try_from(total.saturating_sub(self.seen)).unwrap_or(usize::MAX).min(text.len());
        let start = (text.len() - fresh..text.len()).find(|&at| text.is_char_boundary(at));
        if let Some(start) = start {
            let data = json!(&text[start..]).to_string();
            events.push(Event::default().id(total.to_string()).event("log").data(data));
        } else if self.first {
            // Sends the head of the response at once.
            events.push(Event::default().comment("started"));
        }
        if !runs {
            events.push(Event::default().event("end").data("{}"));
        }
        (self.seen, self.first, self.over) = (total, false, !runs);
        Some(events)
    }
}
