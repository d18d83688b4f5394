//! `/metrics`: counters of this process and totals of its store, in the Prometheus text format (0.0.4). Never reads a
//! plan. The values are at most a second old.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use waypost_config::Config;
use waypost_core::{Phase, Timestamp};
use waypost_service::worker_state;
use waypost_store::{
    Counter, Distribution, QueueTotals, Store, StoreError, Times, Totals, Worker, WorkerFilter, WorkerState,
    meters,
};

use crate::router::{Mount, Mounted};
use crate::tokens::Token;

pub const METRICS_PATH: &str = "/metrics";
/// How long a response is cached, so that frequent scrapes cost nothing.
const FRESH: Duration = Duration::from_secs(1);
/// The media type of the format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Maximum number of workers that are counted by state; further ones are left out.
const WORKERS_MAX: usize = 10_000;
/// Ticks per second in `/proc/self/stat`, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Bytes per page in `/proc/self/statm`. Assumes pages of 4 KiB.
const PAGE_BYTES: u64 = 4096;

/// Creates the mount with the metrics of this process, its store and its queues.
pub fn metrics(store: Arc<dyn Store>, config: &Config) -> Mount {
    let told: Arc<Mutex<Option<(Instant, String)>>> = Arc::default();
    let slots = Arc::new(slots_of(config));
    let make = move |_: &Token| {
        let (store, slots, told) = (Arc::clone(&store), Arc::clone(&slots), Arc::clone(&told));
        let answer = move || {
            let (store, slots, told) = (Arc::clone(&store), Arc::clone(&slots), Arc::clone(&told));
            async move { answered(store, slots, told).await }
        };
        Mounted::new(Router::new().route(METRICS_PATH, get(answer)), || {})
    };
    Mount { path: METRICS_PATH, make: Box::new(make) }
}

async fn answered(
    store: Arc<dyn Store>,
    slots: Arc<BTreeMap<String, u32>>,
    told: Arc<Mutex<Option<(Instant, String)>>>,
) -> Response {
    let written = tokio::task::spawn_blocking(move || {
        // Locked while the text is rendered, so that concurrent scrapes share it.
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        match &*told {
            Some((at, text)) if at.elapsed() < FRESH => text.clone(),
            _ => {
                let text = text(&*store, &slots);
                *told = Some((Instant::now(), text.clone()));
                text
            }
        }
    });
    match written.await {
        Ok(text) => ([(CONTENT_TYPE, FORMAT)], text).into_response(),
        Err(_) => axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Renders all metrics.
pub fn metrics_page(store: &dyn Store, config: &Config) -> String {
    text(store, &slots_of(config))
}

fn slots_of(config: &Config) -> BTreeMap<String, u32> {
    config.queues.iter().map(|(name, queue)| (name.clone(), queue.concurrency)).collect()
}

fn text(store: &dyn Store, slots: &BTreeMap<String, u32>) -> String {
    let mut page = Page(String::new());
    page.head("waypost_build_info", "gauge", "The version of this process.");
    page.line("waypost_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    match state(store) {
        Ok(state) => {
            page.gauge("waypost_store_up", "Whether the store can be read.", 1.0);
            page.store(&state.totals, state.latest, state.now);
            page.workers(&state.workers, state.now);
        }
        Err(error) => {
            meters().store_errors.with([error.as_str()], |errors| errors.add(1));
            page.gauge("waypost_store_up", "Whether the store can be read.", 0.0);
        }
    }
    page.slots(slots);
    page.process_counts();
    page.process();
    page.0
}

/// What the store holds at a moment.
struct StoreState {
    totals: Totals,
    workers: Vec<Worker>,
    latest: u64,
    now: Timestamp,
}

fn state(store: &dyn Store) -> Result<StoreState, StoreError> {
    let (latest, now, workers) = store.query(|read| {
        let workers = read.workers(WorkerFilter::After(None), WORKERS_MAX)?.items;
        Ok((read.store_state()?.latest, read.now(), workers))
    })?;
    Ok(StoreState { totals: store.totals()?, workers, latest, now })
}

/// A page in the making.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _always = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _always = write!(self.0, "{}{label}=\"{text}\"", if place == 0 { '{' } else { ',' });
        }
        let _always = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        self.line(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "counter", help);
        self.line(name, &[], value);
    }

    fn counters<const L: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; L],
        family: &waypost_store::Family<L, Counter>,
    ) {
        self.head(name, "counter", help);
        for (values, count) in family.get(Counter::get) {
            let labels: Vec<(&str, &str)> =
                labels.into_iter().zip(values.iter().map(String::as_str)).collect();
            self.line(name, &labels, count as f64);
        }
    }

    fn distribution(&mut self, name: &str, labels: &[(&str, &str)], told: &Distribution) {
        let (bucket, mut with_bound) = (format!("{name}_bucket"), labels.to_vec());
        for (bound, count) in &told.buckets {
            let bound = bound.to_string();
            let mut labels = with_bound.clone();
            labels.push(("le", &bound));
            self.line(&bucket, &labels, *count as f64);
        }
        with_bound.push(("le", "+Inf"));
        self.line(&bucket, &with_bound, told.count as f64);
        self.line(&format!("{name}_sum"), labels, told.sum);
        self.line(&format!("{name}_count"), labels, told.count as f64);
    }

    fn store(&mut self, totals: &Totals, latest: u64, now: Timestamp) {
        self.head("waypost_plans", "gauge", "Plans that are not archived, by phase.");
        for (phase, count) in Phase::ALL.iter().zip(totals.plans) {
            self.line("waypost_plans", &[("phase", phase.as_str())], count as f64);
        }
        self.gauge("waypost_plans_archived", "Archived plans.", totals.archived as f64);
        self.head("waypost_tasks", "gauge", "Tasks of plans that are not archived, by status.");
        let tasks = &totals.tasks;
        for (status, count) in [
            ("ready", tasks.ready),
            ("blocked", tasks.blocked),
            ("queued", tasks.queued),
            ("running", tasks.running),
            ("done", tasks.done),
            ("failed", tasks.failed),
            ("skipped", tasks.skipped),
            ("cancelled", tasks.cancelled),
        ] {
            self.line("waypost_tasks", &[("status", status)], f64::from(count));
        }
        let waited = totals.ready_since.map_or(0, |since| (now.as_micros() - since.as_micros()).max(0));
        let help =
            "Seconds since the last change of the active plan with ready tasks that has waited longest.";
        self.gauge("waypost_ready_oldest_seconds", help, waited as f64 / 1e6);
        let queue_of = |name: &str| Config::queue_name(name).to_owned();
        let queues: Vec<(String, &QueueTotals)> =
            totals.queues.iter().map(|(name, queue)| (queue_of(name), queue)).collect();
        self.head("waypost_queue_tasks", "gauge", "Tasks of active plans, by queue and status.");
        for (name, queue) in &queues {
            for (status, count) in [("ready", queue.ready), ("running", queue.in_progress)] {
                self.line("waypost_queue_tasks", &[("queue", name), ("status", status)], count as f64);
            }
        }
        let help = "Like waypost_ready_oldest_seconds, by queue.";
        self.head("waypost_queue_ready_oldest_seconds", "gauge", help);
        for (name, queue) in &queues {
            let waited = queue.ready_since.map_or(0.0, |since| now.since(since).as_secs_f64());
            self.line("waypost_queue_ready_oldest_seconds", &[("queue", name)], waited);
        }
        self.gauge("waypost_leases", "Tasks that are leased.", totals.leases as f64);
        let help = "Leases that have expired and were not reclaimed yet.";
        self.gauge("waypost_leases_overdue", help, totals.leases_overdue as f64);
        self.counter("waypost_versions_total", "Versions written.", latest as f64);
    }

    fn workers(&mut self, workers: &[Worker], now: Timestamp) {
        self.head("waypost_workers", "gauge", "Workers and runs, by state.");
        for state in WorkerState::ALL {
            let count = workers.iter().filter(|worker| worker_state(worker, now) == state).count();
            self.line("waypost_workers", &[("state", state.as_str())], count as f64);
        }
    }

    fn slots(&mut self, slots: &BTreeMap<String, u32>) {
        let help = "Tasks of a queue that may run at the same time, by the configuration of this process.";
        self.head("waypost_queue_slots", "gauge", help);
        for (queue, slots) in slots {
            self.line("waypost_queue_slots", &[("queue", queue)], f64::from(*slots));
        }
    }

    /// What this process has done since it started.
    fn process_counts(&mut self) {
        let meters = meters();
        let help = "Duration of commits, from the first read to the last sync.";
        self.head("waypost_commit_seconds", "histogram", help);
        self.distribution("waypost_commit_seconds", &[], &meters.commits.get());
        self.head("waypost_commit_writers", "histogram", "Writers served by one commit.");
        self.distribution("waypost_commit_writers", &[], &meters.group_sizes.get());
        let help = "How long writers of this process waited for the store, including for each other.";
        self.head("waypost_store_wait_seconds", "histogram", help);
        self.distribution("waypost_store_wait_seconds", &[], &meters.store_waits.get());
        let help = "Store errors, by kind.";
        self.counters("waypost_store_errors_total", help, ["kind"], &meters.store_errors);
        let help = "Events delivered to readers.";
        self.counter("waypost_events_served_total", help, meters.events_served.get() as f64);
        let help = "Attempts started by this process, by executor.";
        self.counters("waypost_attempts_started_total", help, ["executor"], &meters.attempts_started);
        let help = "Attempts ended by this process, by executor and outcome.";
        self.counters("waypost_attempts_ended_total", help, ["executor", "outcome"], &meters.attempts_ended);
        self.head("waypost_attempt_seconds", "histogram", "Duration of attempts, by executor.");
        for ([executor], told) in meters.attempt_times.get(Times::get) {
            self.distribution("waypost_attempt_seconds", &[("executor", &executor)], &told);
        }
        for (name, help, family) in [
            (
                "waypost_start_delay_seconds",
                "From when a task was ready until its program began, by queue.",
                &meters.start_delays,
            ),
            (
                "waypost_lock_wait_seconds",
                "How long tasks waited for locks that others held, by queue.",
                &meters.lock_waits,
            ),
        ] {
            self.head(name, "histogram", help);
            for ([queue], told) in family.get(Times::get) {
                self.distribution(name, &[("queue", &queue)], &told);
            }
        }
        let help = "MCP tool calls, by tool and outcome.";
        self.counters("waypost_mcp_calls_total", help, ["tool", "outcome"], &meters.calls);
        let help = "Spans sent to the collector.";
        self.counter("waypost_spans_sent_total", help, meters.spans_sent.get() as f64);
        let help = "Spans dropped because they could not be sent or buffered.";
        self.counter("waypost_spans_dropped_total", help, meters.spans_dropped.get() as f64);
    }

    /// CPU time and memory from `/proc`; left out where that does not exist.
    fn process(&mut self) {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The program's name is in parentheses and may contain anything.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok());
        if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
            let help = "CPU time of this process.";
            self.counter("process_cpu_seconds_total", help, (user + system) / TICKS_PER_SECOND);
        }
        let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        if let Some(pages) = pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()) {
            self.gauge("process_resident_memory_bytes", "Resident memory.", (pages * PAGE_BYTES) as f64);
        }
    }
}
