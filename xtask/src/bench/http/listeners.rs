//! Many concurrent listeners to a server's event stream. The events that each receives are compared with the log.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use waypost_store::{Cursor, Durability, EVENTS_MAX, EventFilter, PlanStore, SqliteStore};

use super::server::{Server, store_path};

/// Maximum time for delivery to the last listener.
const DELIVERY_SECONDS_MAX: u64 = 300;

/// The cursors of events in their order, hashed into one number, and their count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EventDigest {
    events: u64,
    sum: u64,
}

impl EventDigest {
    const NOTHING: Self = Self { events: 0, sum: 0xcbf2_9ce4_8422_2325 };

    fn add(&mut self, place: &[u8]) {
        self.events += 1;
        for byte in place.iter().chain(b"\n") {
            self.sum = (self.sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// What was delivered to all listeners.
pub(super) struct Delivery {
    pub(super) events: u64,
    /// From the start until the last listener received the last event.
    pub(super) seconds: f64,
}

pub(super) struct Listeners {
    runtime: Runtime,
    plans: Arc<PlanStore>,
    begin: Cursor,
    began: Instant,
    /// The cursor of the last event, once it is known.
    end: watch::Sender<Option<String>>,
    each: Vec<JoinHandle<Result<EventDigest>>>,
}

impl Listeners {
    /// Connects all listeners. Each is subscribed when this returns.
    pub(super) fn begin(server: &Server, scratch: &Path, count: usize) -> Result<Self> {
        let plans =
            Arc::new(PlanStore::new(Arc::new(SqliteStore::open(&store_path(scratch), Durability::Full)?)));
        let begin = Cursor::after(plans.latest()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (end, _) = watch::channel(None);
        let (listening, mut all) = watch::channel(0);
        let listening = Arc::new(listening);
        let url = format!("http://{}/api/v1/events?after={begin}", server.address());
        let session = server.session().to_vec();
        let each = (0..count)
            .map(|_| {
                let one = listen(url.clone(), session.clone(), Arc::clone(&listening), end.subscribe());
                runtime.spawn(one)
            })
            .collect();
        let bound = Duration::from_secs(DELIVERY_SECONDS_MAX);
        let greeted =
            async { tokio::time::timeout(bound, all.wait_for(|found| *found == count)).await.is_ok() };
        if !runtime.block_on(greeted) {
            bail!("only {} of {count} listeners could connect", *all.borrow());
        }
        Ok(Self { runtime, plans, begin, began: Instant::now(), end, each })
    }

    /// Waits until each listener has received all events that the log has now. Fails if one received different events.
    pub(super) fn wait_for_all(self) -> Result<Delivery> {
        let Self { runtime, plans, begin, began, end, each } = self;
        let (expected, last) = expected(&plans, begin)?;
        end.send_replace(Some(last));
        let bound = Duration::from_secs(DELIVERY_SECONDS_MAX);
        runtime.block_on(async {
            for (number, one) in each.into_iter().enumerate() {
                let digest = tokio::time::timeout(bound, one)
                    .await
                    .context("a listener did not receive every event")???;
                if digest != expected {
                    bail!("listener {number} received {digest:?}, but the log has {expected:?}");
                }
            }
            Ok(())
        })?;
        Ok(Delivery { events: expected.events, seconds: began.elapsed().as_secs_f64() })
    }
}

/// Returns the digest of the log after a cursor, and the cursor of its last event.
fn expected(plans: &PlanStore, begin: Cursor) -> Result<(EventDigest, String)> {
    let (mut digest, mut cursor, mut last) = (EventDigest::NOTHING, begin, String::new());
    loop {
        let page = plans.events(cursor, &EventFilter::default(), EVENTS_MAX)?;
        cursor = page.cursor;
        for event in page.events {
            last = event.cursor().to_string();
            digest.add(last.as_bytes());
        }
        if !page.more {
            return Ok((digest, last));
        }
    }
}

/// Receives every event up to the one at `end`.
async fn listen(
    url: String,
    session: Vec<(&'static str, String)>,
    listening: Arc<watch::Sender<usize>>,
    mut end: watch::Receiver<Option<String>>,
) -> Result<EventDigest> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let request = session
        .into_iter()
        .fold(hyper::Request::get(url), |request, (name, value)| request.header(name, value));
    let request = request.body(Full::new(Bytes::new()))?;
    let response = client.request(request).await?;
    if response.status() != 200 {
        bail!("a listener got HTTP status {}", response.status());
    }
    listening.send_modify(|count| *count += 1);
    let mut body = response.into_body();
    let (mut digest, mut rest, mut last) = (EventDigest::NOTHING, Vec::new(), String::new());
    loop {
        if end.borrow().as_deref() == Some(last.as_str()) {
            return Ok(digest);
        }
        let frame = tokio::select! {
            frame = body.frame() => frame,
            _known = end.changed() => continue,
        };
        let frame = frame.with_context(|| format!("a stream ended after {} events", digest.events))??;
        rest.extend_from_slice(&frame.into_data().unwrap_or_default());
        let mut from = 0;
        while let Some(length) = rest[from..].iter().position(|&byte| byte == b'\n') {
            if let Some(place) = rest[from..from + length].strip_prefix(b"id: ") {
                digest.add(place);
                last = String::from_utf8_lossy(place).into_owned();
            }
            from += length + 1;
        }
        rest.drain(..from);
    }
}
