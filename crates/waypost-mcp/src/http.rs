//! The MCP server over streamable HTTP: a service to mount, with a limit on sessions. Knows no socket, token or host: the caller
//! is authenticated already.

use std::cell::Cell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tower_service::Service;

use crate::resource_updates::lock;
use crate::server::Server;
use crate::stdio_transport::what_is_wrong;

/// Maximum number of concurrent sessions of one agent.
pub const SESSIONS_MAX: usize = 64;
/// Seconds after which an idle session ends.
pub const SESSION_IDLE_SECONDS: u64 = 60 * 60;
/// Seconds after which an idle session may be ended in favour of a new one.
pub const SESSION_SPARE_SECONDS: u64 = 60;
/// The header that carries the session id.
const SESSION: &str = "mcp-session-id";
/// The header that carries the version of the protocol.
const PROTOCOL: &str = "mcp-protocol-version";
/// The first version of the protocol in which a stream begins with an empty event.
const EMPTY_EVENT_SINCE: &str = "2025-11-25";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Answered = Response<BoxBody<Bytes, Infallible>>;

tokio::task_local! {
    /// Whether the current request was refused because of the session limit. The protocol service in between does not
    /// distinguish this from other failures.
    static TURNED_AWAY: Cell<bool>;
    /// Whether the client of the current request knows events without a message. The sessions, which begin the streams of all
    /// requests but the first, are shared by clients of all versions.
    static EMPTY_EVENTS: bool;
}

/// The MCP service for one agent.
#[derive(Clone)]
pub struct HttpService {
    protocol: StreamableHttpService<Server, Sessions>,
    /// The same for clients of protocols without the empty first event of a stream, which some of them take for a message.
    earlier: StreamableHttpService<Server, Sessions>,
    sessions: Arc<Sessions>,
    body_bytes_max: usize,
}

/// Creates the service for the agent of `server`. Requests have at most `body_bytes_max` bytes.
pub fn http_service(server: &Server, body_bytes_max: usize) -> HttpService {
    let server = server.clone();
    let config = StreamableHttpServerConfig::default()
        // The owner of the socket has checked both already.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(body_bytes_max);
    let sessions = Arc::new(Sessions::new(SESSIONS_MAX, Duration::from_secs(SESSION_SPARE_SECONDS)));
    let begin = move || Ok(server.for_session());
    let earlier = config.clone().with_sse_retry(None);
    let earlier = StreamableHttpService::new(begin.clone(), Arc::clone(&sessions), earlier);
    let protocol = StreamableHttpService::new(begin, Arc::clone(&sessions), config);
    HttpService { protocol, earlier, sessions, body_bytes_max }
}

impl HttpService {
    /// Ends all sessions and streams.
    pub fn close(&self) {
        self.protocol.config.cancellation_token.cancel();
    }

    async fn answer<B>(&self, request: Request<B>) -> Answered
    where
        B: Body + Send + 'static,
        B::Error: Display + Into<BoxError>,
    {
        if *request.method() == Method::DELETE {
            return self.end_session(request).await;
        }
        let (head, body) = request.into_parts();
        let body = match collected(body, self.body_bytes_max).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_json = kind.is_some_and(|kind| kind.trim_start().starts_with("application/json"));
        let empty_events = begins_with_empty_event(&head, &body);
        let protocol = if empty_events { &self.protocol } else { &self.earlier };
        let request = Request::from_parts(head, Full::new(body.clone()));
        let asked = async { (protocol.handle(request).await, TURNED_AWAY.with(Cell::get)) };
        let asked = EMPTY_EVENTS.scope(empty_events, asked);
        match TURNED_AWAY.scope(Cell::new(false), asked).await {
            (_, true) => no_room(),
            // rmcp also returns this status for a JSON body that is not a valid message.
            (answer, false) if is_json && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                no_message(&body)
            }
            (answer, false) => answer,
        }
    }

    async fn end_session<B>(&self, request: Request<B>) -> Answered
    where
        B: Body + Send + 'static,
        B::Error: Display + Into<BoxError>,
    {
        let named = request.headers().get(SESSION).and_then(|named| named.to_str().ok());
        if let Some(named) = named
            && !self.sessions.is_there(named).await
        {
            return worded(
                StatusCode::NOT_FOUND,
                "unknown session: it has ended, or belongs to another agent\n",
            );
        }
        let mut answer = self.protocol.handle(request).await;
        // The session has ended, so the status is not "accepted": clients treat anything but this one as a failure.
        if answer.status() == StatusCode::ACCEPTED {
            *answer.status_mut() = StatusCode::NO_CONTENT;
            *answer.body_mut() = Empty::new().boxed();
        }
        answer
    }
}

/// Whether the client's protocol begins a stream with an empty event, from which the client can resume. The first request names
/// the protocol in its body, all others in a header.
fn begins_with_empty_event(head: &Parts, body: &[u8]) -> bool {
    let named = head.headers.get(PROTOCOL).and_then(|named| named.to_str().ok()).map(str::to_owned);
    let asked = || {
        let message: serde_json::Value = serde_json::from_slice(body).ok()?;
        message.pointer("/params/protocolVersion")?.as_str().map(str::to_owned)
    };
    // Versions are dates, whose order is that of their texts.
    named.or_else(asked).is_some_and(|version| version.as_str() >= EMPTY_EVENT_SINCE)
}

fn worded(status: StatusCode, words: impl Into<Bytes>) -> Answered {
    let mut answer = Response::new(Full::new(words.into()).boxed());
    *answer.status_mut() = status;
    answer
}

/// Answers a body that is not a message with the same error as the stdio transport.
fn no_message(body: &[u8]) -> Answered {
    let mut answer = worded(StatusCode::BAD_REQUEST, what_is_wrong(body).to_string());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Reads the whole body, or returns the error response.
async fn collected<B>(body: B, bytes_max: usize) -> Result<Bytes, Answered>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let collected = Limited::new(body, bytes_max).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            let words = format!("the body has more than {bytes_max} bytes; send less at a time\n");
            return worded(StatusCode::PAYLOAD_TOO_LARGE, words);
        }
        worded(StatusCode::BAD_REQUEST, format!("reading the body failed: {error}\n"))
    })?;
    Ok(collected.to_bytes())
}

fn no_room() -> Answered {
    let words = format!("{}; then try again\n", SessionError::TooMany);
    let mut answer = worded(StatusCode::SERVICE_UNAVAILABLE, words);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(SESSION_SPARE_SECONDS));
    answer
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Error: Display + Into<BoxError>,
    B::Data: Send + 'static,
{
    type Response = Answered;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answered, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

/// The sessions of one agent, up to a maximum.
#[derive(Debug)]
pub struct Sessions {
    all: LocalSessionManager,
    most: usize,
    /// How long a session has to be idle before a new one may replace it.
    spare: Duration,
    uses: Arc<Mutex<HashMap<SessionId, Use>>>,
    /// Held while a session is created, so that two requests cannot both take the last slot.
    beginning: tokio::sync::Mutex<()>,
}

/// The use of a session.
#[derive(Clone, Copy, Debug)]
struct Use {
    last: Instant,
    /// Number of response and notification streams that are open.
    streams: usize,
}

/// Counts a stream of a session as open until dropped.
struct Reading {
    uses: Arc<Mutex<HashMap<SessionId, Use>>>,
    id: SessionId,
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(used) = lock(&self.uses).get_mut(&self.id) {
            *used = Use { last: Instant::now(), streams: used.streams.saturating_sub(1) };
        }
    }
}

/// Why a session could not be created or used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The limit is reached and no session is idle.
    #[error(
        "session limit reached ({SESSIONS_MAX}), none idle; end one (DELETE), or wait until one is idle for {SESSION_SPARE_SECONDS} s"
    )]
    TooMany,
    /// An error from rmcp's session manager.
    #[error(transparent)]
    Session(#[from] LocalSessionManagerError),
}

impl Sessions {
    fn new(most: usize, spare: Duration) -> Self {
        let mut all = LocalSessionManager::default();
        all.session_config.keep_alive = Some(Duration::from_secs(SESSION_IDLE_SECONDS));
        Self { all, most, spare, uses: Arc::default(), beginning: tokio::sync::Mutex::default() }
    }

    async fn is_there(&self, id: &str) -> bool {
        self.all.sessions.read().await.contains_key(id)
    }

    fn used(&self, id: &SessionId) {
        if let Some(used) = lock(&self.uses).get_mut(id) {
            used.last = Instant::now();
        }
    }

    fn reading(&self, id: &SessionId) -> Reading {
        if let Some(used) = lock(&self.uses).get_mut(id) {
            *used = Use { last: Instant::now(), streams: used.streams + 1 };
        }
        Reading { uses: Arc::clone(&self.uses), id: Arc::clone(id) }
    }

    /// Makes room for one more session: ends the one that has been idle longest, if it has been idle long enough.
    async fn make_room(&self) -> Result<(), SessionError> {
        let there: Vec<SessionId> = self.all.sessions.read().await.keys().cloned().collect();
        if there.len() < self.most {
            return Ok(());
        }
        let longest = {
            let uses = lock(&self.uses);
            let idle = there.iter().filter_map(|id| Some((id, uses.get(id)?)));
            let idle = idle.filter(|(_, used)| used.streams == 0 && used.last.elapsed() >= self.spare);
            idle.min_by_key(|(_, used)| used.last).map(|(id, _)| Arc::clone(id))
        };
        self.close_session(&longest.ok_or(SessionError::TooMany)?).await
    }
}

/// Returns the same stream, which counts as open until it is dropped, without empty events if the client does not know them.
fn read_by(
    reading: Reading,
    stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    let empty_events = EMPTY_EVENTS.try_with(|empty_events| *empty_events).unwrap_or(true);
    stream.filter(move |event| {
        let _until_it_is_dropped = &reading;
        ready(empty_events || event.message.is_some())
    })
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let _one_at_a_time = self.beginning.lock().await;
        if let Err(error) = self.make_room().await {
            if matches!(error, SessionError::TooMany) {
                let _not_asked_over_http = TURNED_AWAY.try_with(|turned_away| turned_away.set(true));
            }
            return Err(error);
        }
        let (id, transport) = self.all.create_session().await?;
        lock(&self.uses).insert(Arc::clone(&id), Use { last: Instant::now(), streams: 0 });
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.all.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.all.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        lock(&self.uses).remove(id);
        Ok(self.all.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let reading = self.reading(id);
        Ok(read_by(reading, self.all.create_stream(id, message).await?))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.used(id);
        Ok(self.all.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let reading = self.reading(id);
        Ok(read_by(reading, self.all.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let reading = self.reading(id);
        Ok(read_by(reading, self.all.resume(id, last_event_id).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60 * 60);

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn a_session_that_nobody_uses_gives_way_to_a_new_one_and_the_oldest_goes_first() {
        run(async {
            let sessions = Sessions::new(2, Duration::ZERO);
            let (first, _kept) = sessions.create_session().await.unwrap();
            let (second, _kept) = sessions.create_session().await.unwrap();
            sessions.used(&first);
            let (third, _kept) = sessions.create_session().await.unwrap();
            assert!(sessions.is_there(&first).await && sessions.is_there(&third).await);
            assert!(!sessions.is_there(&second).await);
        });
    }

    #[test]
    fn a_session_whose_stream_is_read_stays_and_so_does_one_that_was_used_just_now() {
        run(async {
            let sessions = Sessions::new(1, Duration::ZERO);
            let (read, _kept) = sessions.create_session().await.unwrap();
            let reading = sessions.reading(&read);
            assert!(matches!(sessions.create_session().await, Err(SessionError::TooMany)));
            drop(reading);
            assert!(sessions.create_session().await.is_ok());
            let sessions = Sessions::new(1, LONG);
            let (used, _kept) = sessions.create_session().await.unwrap();
            assert!(matches!(sessions.create_session().await, Err(SessionError::TooMany)));
            sessions.close_session(&used).await.unwrap();
            assert!(sessions.create_session().await.is_ok());
        });
    }
}
