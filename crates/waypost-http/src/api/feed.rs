//! What happens, for all who listen: one thread reads the log and hands what it finds to every listener. Whoever begins in
//! the past, or cannot follow, reads pages by itself until it has caught up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, WeakSender, channel};
use waypost_store::{Cursor, EVENTS_MAX, EventFilter, Occurrence, Plans};

use super::answer::Problem;

/// How long a listener hears nothing at the most: then it is told that somebody is still there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// Pages that wait for a listener; who is farther behind reads for itself.
const PAGES_KEPT: usize = 256;
/// How long the reader waits for something new before it looks whether anybody listens.
const LOOK: Duration = Duration::from_secs(2);

/// Events as they are sent to listeners.
struct Page {
    from: Cursor,
    to: Cursor,
    /// Each with its text.
    events: Vec<(Occurrence, String)>,
    /// All texts.
    whole: Bytes,
}

impl Page {
    fn of(from: Cursor, to: Cursor, events: Vec<Occurrence>) -> Self {
        let events: Vec<(Occurrence, String)> = events
            .into_iter()
            .map(|event| {
                let text = text(&event);
                (event, text)
            })
            .collect();
        let whole: String = events.iter().map(|(_, text)| text.as_str()).collect();
        Self { from, to, events, whole: Bytes::from(whole) }
    }

    /// What a listener who was told of everything before `cursor` is told of it.
    fn after(&self, cursor: Cursor, filter: &EventFilter) -> Bytes {
        if self.from == cursor && *filter == EventFilter::default() {
            return self.whole.clone();
        }
        let fresh = self.events.iter().filter(|(event, _)| event.cursor() > cursor && filter.admits(event));
        Bytes::from(fresh.map(|(_, text)| text.as_str()).collect::<String>())
    }
}

fn text(event: &Occurrence) -> String {
    format!("id: {}\ndata: {}\n\n", event.cursor(), json!(event))
}

/// Where the reader that goes on sends to, if one does.
type Reader = Arc<Mutex<Option<Sender<Arc<Page>>>>>;

/// The one who reads for all.
pub(crate) struct Feed {
    plans: Arc<Plans>,
    reader: Reader,
}

impl Feed {
    pub(crate) fn new(plans: Arc<Plans>) -> Self {
        Self { plans, reader: Reader::default() }
    }

    /// Begins to listen behind `after`, or with what comes next. Waits for the store.
    pub(crate) fn listen(&self, after: Option<Cursor>, filter: EventFilter) -> Result<Listener, Problem> {
        let heard = self.subscribe()?;
        let cursor = match after {
            Some(after) => after,
            None => Cursor::after(self.plans.latest()?),
        };
        Ok(Listener { plans: Arc::clone(&self.plans), filter, cursor, heard, behind: true, greeted: false })
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
        thread
            .map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string(), "try again"))?;
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
                    let said = page.after(self.cursor, &self.filter);
                    self.cursor = self.cursor.max(page.to);
                    if !said.is_empty() {
                        return Some(said);
                    }
                }
            }
        }
    }

    /// Reads one page for itself.
    async fn catch_up(&mut self) -> Option<Bytes> {
        let (plans, filter, cursor) = (Arc::clone(&self.plans), self.filter.clone(), self.cursor);
        let read = move || plans.events(cursor, &filter, EVENTS_MAX);
        let page = tokio::task::spawn_blocking(read).await.ok()?.ok()?;
        self.cursor = self.cursor.max(page.cursor);
        self.behind = page.more;
        Some(Bytes::from(page.events.iter().map(text).collect::<String>()))
    }
}
