//! What happens, for all who listen: one thread reads the log and hands what it finds to every listener. Whoever begins in
//! the past, or cannot follow, reads pages by itself until it has caught up; a few at a time, and pages that several need are
//! read once.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, WeakSender, channel};
use waypost_store::{Cursor, EVENTS_MAX, EventFilter, Occurrence, Plans};

use super::response::Problem;

/// How long a listener hears nothing at the most: then it is told that somebody is still there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// Pages that wait for a listener; who is farther behind reads for itself.
const PAGES_KEPT: usize = 64;
/// Listeners that read for themselves at the same time; the others wait for their turn.
const READERS_MAX: usize = 4;
/// Pages of the past that are kept for those who need the same.
const PAGES_SHARED: usize = 32;
/// How long the reader waits for something new before it looks whether anybody listens.
const LOOK: Duration = Duration::from_secs(2);

/// Events as they are sent to listeners.
struct Page {
    from: Cursor,
    to: Cursor,
    /// Each with the place of its text.
    events: Vec<(Occurrence, Range<usize>)>,
    /// All texts.
    whole: Bytes,
}

impl Page {
    fn of(from: Cursor, to: Cursor, events: Vec<Occurrence>) -> Self {
        let mut whole = String::new();
        let place = |event: Occurrence| {
            let begin = whole.len();
            whole.push_str(&format!("id: {}\ndata: {}\n\n", event.cursor(), json!(event)));
            (event, begin..whole.len())
        };
        let events = events.into_iter().map(place).collect();
        Self { from, to, events, whole: Bytes::from(whole) }
    }

    /// What a listener who was told of everything before `cursor` is told of it.
    fn after(&self, cursor: Cursor, filter: &EventFilter) -> Bytes {
        if self.from == cursor && *filter == EventFilter::default() {
            return self.whole.clone();
        }
        let fresh = self.events.iter().filter(|(event, _)| event.cursor() > cursor && filter.admits(event));
        Bytes::from(fresh.flat_map(|(_, place)| &self.whole[place.clone()]).copied().collect::<Vec<u8>>())
    }
}

/// Those who are behind.
struct CatchUp {
    turns: Semaphore,
    /// Pages of all events behind which there are others: they never become more.
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

/// Where the reader that goes on sends to, if one does.
type Reader = Arc<Mutex<Option<Sender<Arc<Page>>>>>;

/// The one who reads for all.
pub(crate) struct EventBroadcast {
    plans: Arc<Plans>,
    reader: Reader,
    behind: Arc<CatchUp>,
}

impl EventBroadcast {
    pub(crate) fn new(plans: Arc<Plans>) -> Self {
        let behind = CatchUp { turns: Semaphore::new(READERS_MAX), pages: Mutex::default() };
        Self { plans, reader: Reader::default(), behind: Arc::new(behind) }
    }

    /// Begins to listen behind `after`, or with what comes next. Waits for the store.
    pub(crate) fn listen(&self, after: Option<Cursor>, filter: EventFilter) -> Result<Listener, Problem> {
        let heard = self.subscribe()?;
        let cursor = match after {
            Some(after) => after,
            None => Cursor::after(self.plans.latest()?),
        };
        let (plans, others) = (Arc::clone(&self.plans), Arc::clone(&self.behind));
        Ok(Listener { plans, filter, cursor, heard, others, behind: true, greeted: false })
    }

    fn subscribe(&self) -> Result<Receiver<Arc<Page>>, Problem> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        // One without listeners is about to end.
        if let Some(sender) = reader.as_ref().filter(|sender| sender.receiver_count() > 0) {
            return Ok(sender.subscribe());
        }
        // Read here, not by the thread: nothing may fall between the first page of the listener and of the reader.
        let begin = Cursor::after(self.plans.latest()?);
        let (sender, heard) = channel(PAGES_KEPT);
        let (plans, to) = (Arc::clone(&self.plans), sender.downgrade());
        let own = Arc::clone(&self.reader);
        let work = move || {
            read(&plans, begin, &to);
            end(&own, &to);
        };
        let thread = std::thread::Builder::new().name("feed".to_owned()).spawn(work);
        thread.map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string(), "retry"))?;
        *reader = Some(sender);
        Ok(heard)
    }

    /// Ends what everybody hears; who may listen on comes again and says where it was.
    pub(crate) fn end_all(&self) {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Whoever hears this reader comes again, and begins another.
fn end(reader: &Reader, own: &WeakSender<Arc<Page>>) {
    let Some(own) = own.upgrade() else { return };
    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
    if reader.as_ref().is_some_and(|sender| sender.same_channel(&own)) {
        *reader = None;
    }
}

/// Reads on until nobody listens or the store does not answer.
fn read(plans: &Plans, begin: Cursor, to: &WeakSender<Arc<Page>>) {
    let everything = EventFilter::default();
    let mut cursor = begin;
    loop {
        let page = plans.wait_for_events(cursor, &everything, EVENTS_MAX, LOOK);
        let Some(sender) = to.upgrade().filter(|sender| sender.receiver_count() > 0) else { return };
        let Ok(page) = page else { return };
        if !page.events.is_empty() {
            let _nobody_listens = sender.send(Arc::new(Page::of(cursor, page.cursor, page.events)));
        }
        cursor = page.cursor;
    }
}

/// One who listens.
pub(crate) struct Listener {
    plans: Arc<Plans>,
    filter: EventFilter,
    /// All that is wanted before it was told.
    cursor: Cursor,
    heard: Receiver<Arc<Page>>,
    others: Arc<CatchUp>,
    /// Whether there may be something before what the reader sends next.
    behind: bool,
    greeted: bool,
}

impl Listener {
    /// What is to be said next, after it was waited for; nothing when it is over.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        if !self.greeted {
            // The head of the answer goes out at once, so that whoever listens knows that it is heard.
            self.greeted = true;
            return Some(Bytes::from_static(b": waypost\n\n"));
        }
        loop {
            if self.behind {
                let said = self.catch_up().await?;
                if !said.is_empty() {
                    return Some(said);
                }
                continue;
            }
            match tokio::time::timeout(SIGN_OF_LIFE, self.heard.recv()).await {
                Err(_) => return Some(Bytes::from_static(b": still there\n\n")),
                Ok(Err(RecvError::Closed)) => return None,
                Ok(Err(RecvError::Lagged(_))) => self.behind = true,
                Ok(Ok(page)) => {
                    let said = self.take(&page);
                    if !said.is_empty() {
                        return Some(said);
                    }
                }
            }
        }
    }

    /// One page of what was before, which it reads for itself unless another one has.
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
        self.behind = found.more;
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
