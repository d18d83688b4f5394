//! OpenTelemetry traces: a plan, its versions and its attempts are spans of one trace.
//!
//! The ids of trace and spans are derived from the plan, its versions and its attempts, so that spans of different
//! processes and machines fit together and nothing has to be stored. Spans are sent as OTLP in JSON over HTTP to the
//! collector that the standard variables name. Nothing waits for the export or fails because of it: spans that cannot
//! be queued or sent are counted.

mod otlp;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use waypost_core::{Plan, Timestamp};
use waypost_store::{CommitInfo, meters, set_commit_hook};

use crate::outcome::{AttemptKey, AttemptOutcome};
pub use otlp::Span;
use otlp::{Status, Text};
use waypost_net::{self as remote, http_client as web};

/// Spans in the queue of the exporter; further ones are dropped and counted.
pub const SPANS_WAITING_MAX: usize = 4_096;
/// Spans that are sent together.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Seconds that the collector may take to answer.
pub const COLLECTOR_SECONDS_MAX: u64 = 10;
/// Seconds that the end of a process waits for the last spans.
pub const FLUSH_SECONDS_MAX: u64 = 5;
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of an error message in a span.
const MESSAGE_BYTES_MAX: usize = 300;

/// Sends the spans of this process.
struct Exporter {
    sampler: Sampler,
    queue: Mutex<Option<SyncSender<Span>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

static EXPORTER: OnceLock<Exporter> = OnceLock::new();

/// Which traces are exported. The id of the trace decides, so that all processes decide the same.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sampler {
    All,
    Ratio(f64),
}

impl Sampler {
    fn takes(self, trace: &[u8; 16]) -> bool {
        match self {
            Self::All => true,
            Self::Ratio(ratio) => {
                let mut low = [0; 8];
                low.copy_from_slice(&trace[8..]);
                // The upper 63 bits, as in all other implementations.
                ((u64::from_be_bytes(low) >> 1) as f64) < ratio * (1u64 << 63) as f64
            }
        }
    }
}

/// The settings from the standard variables.
#[derive(Clone, Debug, PartialEq)]
struct Wishes {
    url: String,
    headers: Vec<(String, String)>,
    service: String,
    sampler: Sampler,
}

impl Wishes {
    /// Returns `None` if no collector is named or traces are disabled.
    fn of(variables: &BTreeMap<String, String>) -> Option<Self> {
        let said =
            |name: &str| variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let own = said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(str::to_owned);
        let shared = said("OTEL_EXPORTER_OTLP_ENDPOINT")
            .map(|base| format!("{}/v1/traces", base.trim_end_matches('/')));
        let url = own.or(shared)?;
        let off = said("OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"));
        if off || said("OTEL_TRACES_EXPORTER").is_some_and(|word| word == "none") {
            return None;
        }
        let ratio =
            || said("OTEL_TRACES_SAMPLER_ARG").and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
        let sampler = match said("OTEL_TRACES_SAMPLER").unwrap_or_default().trim_start_matches("parentbased_")
        {
            "always_off" => return None,
            "traceidratio" => Sampler::Ratio(ratio().clamp(0.0, 1.0)),
            _ => Sampler::All,
        };
        let headers = said("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or(said("OTEL_EXPORTER_OTLP_HEADERS"));
        let headers = headers.unwrap_or_default().split(',').filter_map(|pair| pair.split_once('='));
        let headers =
            headers.map(|(name, value)| (name.trim().to_ascii_lowercase(), decoded(value.trim()))).collect();
        let service = said("OTEL_SERVICE_NAME").unwrap_or("waypost").to_owned();
        Some(Self { url, headers, service, sampler })
    }
}

/// Decodes a text with percent-encoded bytes.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Starts the export of this process's spans, if the variables ask for it.
pub fn begin(variables: &BTreeMap<String, String>) {
    let Some(wishes) = Wishes::of(variables) else { return };
    let (sender, spans) = sync_channel(SPANS_WAITING_MAX);
    let sampler = wishes.sampler;
    let thread =
        std::thread::Builder::new().name("traces".to_owned()).spawn(move || send_all(&wishes, &spans));
    let Ok(thread) = thread else { return };
    let exporter = Exporter { sampler, queue: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) };
    if EXPORTER.set(exporter).is_ok() {
        set_commit_hook(trace_commit);
    }
}

/// Sends the remaining spans, for at most `FLUSH_SECONDS_MAX`. Later spans are dropped.
pub fn finish() {
    let Some(exporter) = EXPORTER.get() else { return };
    exporter.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    let thread = exporter.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(thread) = thread else { return };
    let (over, ended) = std::sync::mpsc::channel();
    let joined = std::thread::Builder::new().spawn(move || {
        let _sent = thread.join();
        let _gone = over.send(());
    });
    if joined.is_ok() {
        let _late = ended.recv_timeout(Duration::from_secs(FLUSH_SECONDS_MAX));
    }
}

fn tell(span: Span) {
    let Some(exporter) = EXPORTER.get() else { return };
    let queue = exporter.queue.lock().unwrap_or_else(PoisonError::into_inner);
    if queue.as_ref().is_none_or(|queue| queue.try_send(span).is_err()) {
        meters().spans_dropped.add(1);
    }
}

fn send_all(wishes: &Wishes, spans: &Receiver<Span>) {
    let mut open = true;
    while open {
        let Ok(first) = spans.recv() else { return };
        let (mut batch, until) = (vec![first], Instant::now() + BATCH_WAIT);
        while batch.len() < BATCH_MAX {
            match spans.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(span) => batch.push(span),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    open = false;
                    break;
                }
            }
        }
        let count = batch.len() as u64;
        let sent = send(wishes, otlp::request(&wishes.service, &batch));
        let counter = if sent { &meters().spans_sent } else { &meters().spans_dropped };
        counter.add(count);
    }
}

/// Returns whether the collector accepted the spans. There is no retry: an unreachable collector would delay the next
/// spans.
fn send(wishes: &Wishes, body: String) -> bool {
    let mut headers = wishes.headers.clone();
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    let (method, url, bytes_max) = ("POST", wishes.url.clone(), ANSWER_BYTES_MAX);
    let request = web::Request { method, url, headers, body, bytes_max };
    let limit = Duration::from_secs(COLLECTOR_SECONDS_MAX);
    // The timer has to be created inside the runtime.
    let answer = remote::wait_for(async { tokio::time::timeout(limit, web::send(request)).await });
    matches!(answer, Ok(Ok(Ok(answer))) if (200..300).contains(&answer.status))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace([u8; 16]);

impl Trace {
    /// Returns the trace of a plan, if it is exported.
    pub fn of(plan: &Plan) -> Option<Self> {
        let exporter = EXPORTER.get()?;
        let trace = Self::worked_out(plan);
        exporter.sampler.takes(&trace.0).then_some(trace)
    }

    fn worked_out(plan: &Plan) -> Self {
        let made = plan.state().created_at.map_or(0, Timestamp::as_micros);
        let hash = digest(&SHA256, format!("waypost plan {} {made}", plan.id()).as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hash.as_ref()[..16]);
        Self(id)
    }

    fn span_id(self, what: &str) -> [u8; 8] {
        let hash = digest(&SHA256, &[self.0.as_slice(), what.as_bytes()].concat());
        let mut id = [0; 8];
        id.copy_from_slice(&hash.as_ref()[..8]);
        id
    }

    fn plan_id(self) -> [u8; 8] {
        self.span_id("plan")
    }

    fn attempt_id(self, task: &str, attempt: u32) -> [u8; 8] {
        self.span_id(&format!("attempt {attempt} {task}"))
    }

    /// Returns the `traceparent` for a worker, so that its own spans become children of the attempt.
    pub fn parent(self, key: &AttemptKey) -> String {
        let attempt = self.attempt_id(key.task.as_str(), key.attempt);
        format!("00-{}-{}-01", waypost_text::hex(&self.0), waypost_text::hex(&attempt))
    }

    /// Records the span of an attempt that has ended.
    pub fn attempted(self, told: &Attempted<'_>, ending: &AttemptOutcome) {
        let Attempted { key, executor, queue, worker, started_at, took } = told;
        let error = match ending {
            AttemptOutcome::Failed { error }
            | AttemptOutcome::TryAgain { error }
            | AttemptOutcome::Checked { error: Some(error), .. } => {
                Some(waypost_text::head_bytes(error, MESSAGE_BYTES_MAX).to_owned())
            }
            AttemptOutcome::Done { .. }
            | AttemptOutcome::Checked { error: None, .. }
            | AttemptOutcome::Asked(_) => None,
        };
        tell(Span {
            trace: self.0,
            id: self.attempt_id(key.task.as_str(), key.attempt),
            parent: Some(self.plan_id()),
            name: format!("attempt {}", key.task),
            begun: *started_at,
            ended: after(*started_at, *took),
            attributes: vec![
                ("waypost.plan", Text::Words(key.plan.to_string())),
                ("waypost.task", Text::Words(key.task.to_string())),
                ("waypost.attempt", Text::Number(i64::from(key.attempt))),
                ("waypost.executor", Text::Words((*executor).to_owned())),
                ("waypost.queue", Text::Words((*queue).to_owned())),
                ("waypost.worker", Text::Words((*worker).to_owned())),
                ("waypost.outcome", Text::Words(ending.as_str().to_owned())),
            ],
            links: Vec::new(),
            status: error.map_or(Status::Good, Status::Bad),
        });
    }
}

/// The facts about an attempt for its span.
pub struct Attempted<'a> {
    pub key: &'a AttemptKey,
    pub executor: &'a str,
    pub queue: &'a str,
    pub worker: &'a str,
    pub started_at: Timestamp,
    pub took: Duration,
}

fn after(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp::from_micros(at.as_micros().saturating_add(i64::try_from(time.as_micros()).unwrap_or(i64::MAX)))
}

fn before(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp::from_micros(at.as_micros().saturating_sub(i64::try_from(time.as_micros()).unwrap_or(i64::MAX)))
}

/// Records the span of a version that was written.
fn trace_commit(commit: &CommitInfo<'_>) {
    let Some(trace) = Trace::of(commit.plan) else { return };
    let state = commit.plan.state();
    let Some(at) = state.updated_at else { return };
    let attempts = commit.tasks.iter().filter_map(|task| commit.plan.task(task.as_str()));
    let links = attempts.map(|task| trace.attempt_id(task.spec.id.as_str(), task.state.attempt)).collect();
    tell(Span {
        trace: trace.0,
        id: trace.span_id(&format!("version {}", commit.version)),
        parent: Some(trace.plan_id()),
        name: format!("command {}", commit.commands.join("+")),
        begun: before(at, commit.took),
        ended: at,
        attributes: vec![
            ("waypost.plan", Text::Words(commit.plan.id().to_string())),
            ("waypost.version", Text::Number(i64::try_from(commit.version).unwrap_or(i64::MAX))),
            ("waypost.actor.kind", Text::Words(commit.actor.kind.as_str().to_owned())),
        ],
        links,
        status: Status::Good,
    });
    // This version ended the plan, so its writer also records the span of the whole plan.
    if state.phase.is_finished() && state.finished_at == Some(at) && commit.plan.version() == commit.version {
        let failed = state.phase == waypost_core::Phase::Failed;
        tell(Span {
            trace: trace.0,
            id: trace.plan_id(),
            parent: None,
            name: format!("plan {}", commit.plan.id()),
            begun: state.started_at.or(state.created_at).unwrap_or(at),
            ended: at,
            attributes: vec![
                ("waypost.plan", Text::Words(commit.plan.id().to_string())),
                ("waypost.phase", Text::Words(state.phase.as_str().to_owned())),
                ("waypost.tasks", Text::Number(i64::from(commit.plan.counts().total))),
            ],
            links: Vec::new(),
            status: if failed { Status::Bad("the plan failed".to_owned()) } else { Status::Good },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(pairs: &[(&str, &str)]) -> Option<Wishes> {
        Wishes::of(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn the_standard_variables_are_honoured() {
        const END: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        assert_eq!(wishes(&[]), None);
        assert_eq!(wishes(&[END, ("OTEL_SDK_DISABLED", "TRUE")]), None);
        assert_eq!(wishes(&[END, ("OTEL_TRACES_EXPORTER", "none")]), None);
        assert_eq!(wishes(&[END, ("OTEL_TRACES_SAMPLER", "always_off")]), None);
        let plain = wishes(&[END]).unwrap();
        assert_eq!((plain.url.as_str(), plain.service.as_str()), ("http://c:4318/v1/traces", "waypost"));
        assert_eq!(plain.sampler, Sampler::All);
        let all = wishes(&[
            END,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/x"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20abc, x=1"),
            ("OTEL_SERVICE_NAME", "plans"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ])
        .unwrap();
        assert_eq!((all.url.as_str(), all.service.as_str()), ("https://t/x", "plans"));
        assert_eq!(all.sampler, Sampler::Ratio(0.25));
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(all.headers, [header("authorization", "Basic abc"), header("x", "1")]);
    }

    #[test]
    fn a_share_of_the_traces_is_taken_and_everybody_takes_the_same() {
        let taken = |ratio: f64| {
            let traces = (0..1_000u32).map(|number| {
                let mut trace = [0; 16];
                trace.copy_from_slice(&digest(&SHA256, &number.to_be_bytes()).as_ref()[..16]);
                trace
            });
            traces.filter(|trace| Sampler::Ratio(ratio).takes(trace)).count()
        };
        assert_eq!((taken(0.0), taken(1.0)), (0, 1_000));
        assert!((200..300).contains(&taken(0.25)), "{}", taken(0.25));
    }

    #[test]
    fn the_ids_of_a_trace_follow_from_the_plan_alone() {
        let plan = Plan::blank(waypost_core::PlanId::new("p").unwrap());
        let trace = Trace::worked_out(&plan);
        assert_eq!(trace, Trace::worked_out(&plan.clone()));
        let key = AttemptKey::new(plan.id(), &waypost_core::TaskId::new("t").unwrap(), 2);
        let parent = trace.parent(&key);
        let parts: Vec<usize> = parent.split('-').map(str::len).collect();
        assert_eq!(parts, [2, 32, 16, 2], "{parent}");
        assert_ne!(trace.attempt_id("t", 1), trace.attempt_id("t", 2));
        assert_ne!(trace.plan_id(), trace.attempt_id("t", 1));
    }
}
