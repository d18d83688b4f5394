//! The broadcast of events: one thread reads the log and sends each page to every listener. A listener that starts in
//! the past or falls behind reads pages itself until it has caught up. Only a few do so at a time, and a page that
//! several need is read once.
//!
//! Frames are rendered here, once per page, and shared by all listeners: axum's SSE events would be copied for each of
//! them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, WeakSender, channel};
use waypost_store::{Cursor, EVENTS_MAX, EventFilter, Lease, LogEvent, PlanStore, ProgressFeed, StoreError};
use waypost_text::escape_json;

use super::response::Problem;

/// Time without an event after which a comment keeps the connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Pages buffered per listener; one that falls further behind reads the log itself.
const PAGES_KEPT: usize = 64;
/// Maximum number of listeners that read the log themselves at the same time; the others wait.
const READERS_MAX: usize = 4;
/// Past pages cached for listeners that need the same ones.
const PAGES_SHARED: usize = 32;
/// How long the reader waits for new events before it checks whether any listener is left.
const LOOK: Duration = Duration::from_secs(2);

/// Events, rendered for listeners.
struct Page {
    from: Cursor,
    to: Cursor,
    /// Each event with the position of its frame in `whole`.
    events: Vec<(LogEvent, Range<usize>)>,
    whole: Bytes,
}

impl Page {
    fn of(from: Cursor, to: Cursor, events: Vec<LogEvent>) -> Self {
        let mut whole = String::new();
        let place = |event: LogEvent| {
            let begin = whole.len();
            let data = json!(event).to_string();
            whole.push_str(&format!("id: {}\ndata: {}\n\n", event.cursor(), escape_json(&data)));
            (event, begin..whole.len())
        };
        let events = events.into_iter().map(place).collect();
        Self { from, to, events, whole: Bytes::from(whole) }
    }

    /// Returns the frames for a listener that has received everything up to `cursor`.
    fn after(&self, cursor: Cursor, filter: &EventFilter) -> Bytes {
        if self.from == cursor && *filter == EventFilter::default() {
            return self.whole.clone();
        }
        let fresh = self.events.iter().filter(|(event, _)| event.cursor() > cursor && filter.admits(event));
        Bytes::from(fresh.flat_map(|(_, place)| &self.whole[place.clone()]).copied().collect::<Vec<u8>>())
    }
}

/// A message from the reader to all listeners.
enum Broadcast {
    Events(Page),
    /// Reported progress, each with its frame. It has no position in the log: a listener that was disconnected reads
    /// the plan.
    Progress(Vec<(Lease, Bytes)>),
}

fn progress_frame(lease: Lease) -> Option<(Lease, Bytes)> {
    let progress = lease.progress.as_ref()?;
    let data = json!({
        "plan": lease.plan,
        "task": lease.task,
        "attempt": lease.attempt,
        "worker": lease.worker,
        "progress": progress.text,
        "at": progress.at,
    });
    let frame = Bytes::from(format!("event: progress\ndata: {}\n\n", escape_json(&data.to_string())));
    Some((lease, frame))
}

/// State shared by the listeners that are behind the reader.
struct CatchUp {
    turns: Semaphore,
    /// Unfiltered pages that are full and so never change.
    pages: Mutex<VecDeque<Arc<Page>>>,
}

impl CatchUp {
    fn known(&self, from: Cursor) -> Option<Arc<Page>> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.iter().find(|page| page.from == from).cloned()
    }

    fn keep(&self, page: &Arc<Page>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() >= PAGES_SHARED {
            pages.pop_front();
        }
        pages.push_back(Arc::clone(page));
    }
}

/// The channel of the reader thread, while one runs.
type Reader = Arc<Mutex<Option<Sender<Arc<Broadcast>>>>>;

/// The reader that all listeners share.
pub(crate) struct EventBroadcast {
    plans: Arc<PlanStore>,
    reader: Reader,
    behind: Arc<CatchUp>,
}

impl EventBroadcast {
    pub(crate) fn new(plans: Arc<PlanStore>) -> Self {
        let behind = CatchUp { turns: Semaphore::new(READERS_MAX), pages: Mutex::default() };
        Self { plans, reader: Reader::default(), behind: Arc::new(behind) }
    }

    /// Subscribes to the events after a cursor, or from now on. Blocks on the store.
    pub(crate) fn listen(&self, after: Option<Cursor>, filter: EventFilter) -> Result<Listener, Problem> {
        let heard = self.subscribe()?;
        let cursor = match after {
            Some(after) => after,
            None => Cursor::after(self.plans.latest()?),
        };
        let (plans, others) = (Arc::clone(&self.plans), Arc::clone(&self.behind));
        Ok(Listener {
            plans,
            filter,
            cursor,
            heard,
            others,
            behind: true,
            hidden_by: Vec::new(),
            greeted: false,
        })
    }

    fn subscribe(&self) -> Result<Receiver<Arc<Broadcast>>, Problem> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader without listeners is about to end.
        if let Some(sender) = reader.as_ref().filter(|sender| sender.receiver_count() > 0) {
            return Ok(sender.subscribe());
        }
        // Read here, not in the thread: no event may be missed between the first pages of the listener and of the
        // reader.
        let begin = Cursor::after(self.plans.latest()?);
        let mut progress = ProgressFeed::default();
        progress.poll(&self.plans, Instant::now())?;
        let (sender, heard) = channel(PAGES_KEPT);
        let (plans, to) = (Arc::clone(&self.plans), sender.downgrade());
        let own = Arc::clone(&self.reader);
        let work = move || {
            let _unreadable = read(&plans, begin, progress, &to);
            end(&own, &to);
        };
        let thread = std::thread::Builder::new().name("feed".to_owned()).spawn(work);
        thread.map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string(), "retry"))?;
        *reader = Some(sender);
        Ok(heard)
    }

    /// Ends all streams. Clients that may still read reconnect and resume where they were.
    pub(crate) fn end_all(&self) {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Ends the streams of this reader. Clients reconnect, which starts another one.
fn end(reader: &Reader, own: &WeakSender<Arc<Broadcast>>) {
    let Some(own) = own.upgrade() else { return };
    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
    if reader.as_ref().is_some_and(|sender| sender.same_channel(&own)) {
        *reader = None;
    }
}

/// Reads until no listener is left or the store fails.
fn read(
    plans: &PlanStore,
    begin: Cursor,
    mut progress: ProgressFeed,
    to: &WeakSender<Arc<Broadcast>>,
) -> Result<(), StoreError> {
    let everything = EventFilter::default();
    let mut cursor = begin;
    // Created before the first read, so that nothing is missed between the two.
    let mut watch = plans.watch()?;
    loop {
        let page = plans.events(cursor, &everything, EVENTS_MAX)?;
        let reported = progress.poll(plans, Instant::now())?;
        let Some(sender) = to.upgrade().filter(|sender| sender.receiver_count() > 0) else { return Ok(()) };
        if !page.events.is_empty() {
            let events = Broadcast::Events(Page::of(cursor, page.cursor, page.events));
            let _nobody_listens = sender.send(Arc::new(events));
        }
        if !reported.is_empty() {
            let frames = reported.into_iter().filter_map(progress_frame).collect();
            let _nobody_listens = sender.send(Arc::new(Broadcast::Progress(frames)));
        }
        drop(sender);
        cursor = page.cursor;
        if !page.more {
            // A report that was held back is delivered although nothing is written after it.
            watch.wait(progress.wait(Instant::now()).map_or(LOOK, |due| due.min(LOOK)))?;
        }
    }
}

/// One stream.
pub(crate) struct Listener {
    plans: Arc<PlanStore>,
    filter: EventFilter,
    /// Everything wanted up to here was sent.
    cursor: Cursor,
    heard: Receiver<Arc<Broadcast>>,
    others: Arc<CatchUp>,
    /// Whether there may be unsent events before the reader's next page.
    behind: bool,
    /// The damage to files that hide the next events. They are sent after a repair, and the later ones after them.
    hidden_by: Vec<String>,
    greeted: bool,
}

impl Listener {
    /// Waits for the next frames. Returns `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        if !self.greeted {
            // Sends the head of the response at once, so that the client knows that it is connected.
            self.greeted = true;
            return Some(Bytes::from_static(b": waypost\n\n"));
        }
        loop {
            if self.behind {
                let before = self.hidden_by.clone();
                let said = self.catch_up().await?;
                if !said.is_empty() {
                    return Some(said);
                }
                if self.hidden_by.is_empty() {
                    continue;
                }
                if self.hidden_by == before {
                    tokio::time::sleep(KEEP_ALIVE).await;
                }
                return Some(Bytes::from(format!(": {}\n\n", self.hidden_by.join("; ").replace('\n', " "))));
            }
            match tokio::time::timeout(KEEP_ALIVE, self.heard.recv()).await {
                Err(_) => return Some(Bytes::from_static(b": still there\n\n")),
                Ok(Err(RecvError::Closed)) => return None,
                Ok(Err(RecvError::Lagged(_))) => self.behind = true,
                Ok(Ok(sent)) => {
                    let said = match &*sent {
                        Broadcast::Events(page) => self.take(page),
                        Broadcast::Progress(frames) => {
                            let wanted = frames
                                .iter()
                                .filter(|(lease, _)| self.filter.admits_progress(&lease.plan, &lease.task));
                            Bytes::from(wanted.flat_map(|(_, frame)| frame).copied().collect::<Vec<u8>>())
                        }
                    };
                    if !said.is_empty() {
                        return Some(said);
                    }
                }
            }
        }
    }

    /// Returns one past page, from the cache or from the log.
    async fn catch_up(&mut self) -> Option<Bytes> {
        let hears_all = self.filter == EventFilter::default();
        let known = |listener: &Self| listener.others.known(listener.cursor).filter(|_| hears_all);
        if let Some(page) = known(self) {
            return Some(self.take(&page));
        }
        let others = Arc::clone(&self.others);
        let _turn = others.turns.acquire().await.ok()?;
        if let Some(page) = known(self) {
            return Some(self.take(&page));
        }
        let (plans, filter, cursor) = (Arc::clone(&self.plans), self.filter.clone(), self.cursor);
        let read = move || plans.events(cursor, &filter, EVENTS_MAX);
        let found = tokio::task::spawn_blocking(read).await.ok()?.ok()?;
        self.hidden_by = found.unreadable_from.map(|_| found.warnings).unwrap_or_default();
        self.behind = found.more || !self.hidden_by.is_empty();
        let page = Arc::new(Page::of(self.cursor, found.cursor, found.events));
        if found.more && hears_all {
            others.keep(&page);
        }
        Some(self.take(&page))
    }

    fn take(&mut self, page: &Page) -> Bytes {
        let said = page.after(self.cursor, &self.filter);
        self.cursor = self.cursor.max(page.to);
        said
    }
}
