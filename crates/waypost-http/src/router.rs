//! The routes: health checks and the dashboard's files for everyone, the API and the mounted services for callers with
//! a token or a session that began with one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, SET_COOKIE, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use axum::{Extension, Router};
use futures_util::StreamExt;
use http_body_util::BodyExt;
use tower_http::compression::CompressionLayer;
use tower_service::Service;

use crate::api::{self, Api, Problem};
use crate::assets;
use crate::host_origin_guard::{HostOriginGuard, page_origin};
use crate::load_limits::{BODY_PARTS_MAX, Counted, LoadLimits, RequestPermit, has_too_many_parts};
use crate::sessions::{self, SESSION_HEADER, Session, Sessions};
use crate::tokens::{Role, Token, TokenError, Tokens};

/// Maximum size of a request body.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum size of the body of a sign-in, which anyone can send.
const LOGIN_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a larger body that are read and discarded before it is refused.
const DISCARDED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum time to receive a body, in seconds.
pub const BODY_SECONDS_MAX: u64 = 30;

/// A service for one token.
pub struct Mounted {
    service: Router,
    close: Box<dyn Fn() + Send + Sync>,
}

impl Mounted {
    /// Wraps a service. `close` ends its open streams and sessions.
    pub fn new<S>(service: S, close: impl Fn() + Send + Sync + 'static) -> Self
    where
        S: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        Self { service: Router::new().fallback_service(service), close: Box::new(close) }
    }
}

/// A path, and the constructor of the service mounted there.
pub struct Mount {
    /// The path, such as `/mcp`.
    pub path: &'static str,
    /// Creates the service for a token.
    pub make: Box<dyn Fn(&Token) -> Mounted + Send + Sync>,
}

/// Everything served on one socket.
pub struct Site {
    guard: HostOriginGuard,
    tokens: Tokens,
    mounts: Vec<Mount>,
    api: Option<Arc<Api>>,
    sessions: Sessions,
    limits: Arc<LoadLimits>,
    /// Whether tokens of people count.
    admits_people: bool,
    /// The services created so far, by token and mount.
    open: Mutex<BTreeMap<(String, usize), Mounted>>,
}

impl Site {
    /// A site with these mounts, without the API.
    pub fn new(guard: HostOriginGuard, tokens: Tokens, mounts: Vec<Mount>) -> Self {
        let (sessions, limits, open) = (Sessions::new(tokens.files()), Arc::default(), Mutex::default());
        Self { guard, tokens, mounts, api: None, sessions, limits, admits_people: true, open }
    }

    /// Refuses the tokens of people. For a server that an agent or a worker started: it could record what they send.
    #[must_use]
    pub fn without_people(self) -> Self {
        Self { admits_people: false, ..self }
    }

    /// Adds the API and the dashboard.
    #[must_use]
    pub fn with_api(self, api: impl Into<Arc<Api>>) -> Self {
        Self { api: Some(api.into()), ..self }
    }

    /// Creates the code of a sign-in link, which begins one session with this token (`URL/#login=CODE`).
    pub fn login_code(&self, token: &Token) -> Result<String, TokenError> {
        self.sessions.make_code(&token.id, Instant::now())
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    pub(crate) fn router(self: &Arc<Self>) -> Router {
        let mut router = Router::new().route("/health", get(health));
        for (place, mount) in self.mounts.iter().enumerate() {
            let forward = move |State(site): State<Arc<Self>>, request: Request| async move {
                site.forward(place, request).await
            };
            router = router.route(mount.path, any(forward));
        }
        if let Some(api) = &self.api {
            router = router
                .route("/login", get(page).post(login))
                .route("/logout", post(logout))
                .nest_service("/api/v1", api::router(api).layer(from_fn(bounded)))
                .fallback(page);
        }
        let router = router.route("/healthz", get(health)).route("/readyz", get(ready));
        // Event streams are never compressed: that would delay events.
        router
            .layer(from_fn_with_state(Arc::clone(self), authenticate))
            .layer(from_fn(as_problem))
            .layer(from_fn(not_stored))
            .layer(CompressionLayer::new())
            .with_state(Arc::clone(self))
    }

    /// Whether a path needs no token, because it shows nothing of plans.
    fn is_open(&self, path: &str) -> bool {
        match path {
            "/health" | "/healthz" | "/readyz" => true,
            "/login" => self.api.is_some(),
            other => self.api.is_some() && other != "/logout" && assets::is_page(other),
        }
    }

    /// The router for connections over the limit: `/health`, and `at_capacity` for everything else.
    pub(crate) fn spare_router(self: &Arc<Self>, at_capacity: MethodRouter) -> Router {
        Router::new()
            .route("/health", get(health))
            .fallback_service(at_capacity)
            .layer(from_fn_with_state(Arc::clone(self), check_host))
            .layer(from_fn(as_problem))
    }

    async fn forward(&self, place: usize, request: Request) -> Response {
        let Some(token) = request.extensions().get::<Token>().cloned() else { return unauthorized() };
        if token.only.as_deref().is_some_and(|only| only != self.mounts[place].path) {
            return StatusCode::FORBIDDEN.into_response();
        }
        match token.role {
            Role::Person | Role::Agent => {}
            // Mounted services let every caller write.
            Role::Worker | Role::Reader if token.only.is_none() => {
                return StatusCode::FORBIDDEN.into_response();
            }
            Role::Worker | Role::Reader => {}
        }
        let request = match whole(request).await {
            Ok(request) => request,
            Err(refusal) => return refusal,
        };
        // Until the reply begins.
        let _permit = request.extensions().get::<RequestPermit>().cloned();
        let mut service = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let made =
                open.entry((token.id.clone(), place)).or_insert_with(|| (self.mounts[place].make)(&token));
            made.service.clone()
        };
        match Service::<Request>::call(&mut service, request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Closes the services of revoked tokens, or all services if the tokens cannot be read.
    pub(crate) fn sweep(&self) {
        let tokens = self.tokens.list().unwrap_or_default();
        self.close_those(|id| !tokens.iter().any(|token| token.id == id));
        self.end_streams();
    }

    /// Closes all services and ends all streams.
    pub(crate) fn close(&self) {
        self.close_those(|_| true);
        self.end_streams();
    }

    /// Ends the streams of the API. Clients that may still read reconnect by themselves.
    fn end_streams(&self) {
        if let Some(api) = &self.api {
            api.end_streams();
        }
    }

    fn close_those(&self, ends: impl Fn(&str) -> bool) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(id, _), mounted| {
            let stays = !ends(id);
            if !stays {
                (mounted.close)();
            }
            stays
        });
    }
}

async fn health() -> &'static str {
    "ok\n"
}

/// Checks the host and the origin.
async fn check_host(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    match site.guard.admits(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(status) => status.into_response(),
    }
}

/// Turns every error under the API into a problem document.
async fn as_problem(request: Request, next: Next) -> Response {
    let of_api = request.uri().path().starts_with("/api/");
    let response = next.run(request).await;
    if of_api { Problem::from_error_response(response) } else { response }
}

/// Keeps what only the caller may read, and the replies that hold secrets, out of every cache.
async fn not_stored(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_private = path.starts_with("/api/") || path == "/login" || path == "/logout";
    let mut response = next.run(request).await;
    if is_private {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Authenticates a request: the host and origin must be accepted, and every path that shows plans needs a token or a
/// session.
async fn authenticate(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    if let Err(status) = site.guard.admits(request.uri(), request.headers()) {
        return status.into_response();
    }
    let path = request.uri().path();
    if site.is_open(path) {
        return guarded(next.run(request).await);
    }
    let found = match bearer(request.headers()) {
        Some(text) => site.tokens.find(text).map(|token| token.map(|token| (token, None))),
        None => site.signed_in(&request),
    };
    match found {
        Ok(Some((_, Some(session)))) if !session.may_have_sent(&request) => {
            guarded(StatusCode::FORBIDDEN.into_response())
        }
        Ok(Some((token, _))) if !site.admits(&token) => guarded(no_people().into_response()),
        Ok(Some((token, session))) => {
            // Handlers need none of these headers, and so cannot leak them.
            for secret in [AUTHORIZATION.as_str(), COOKIE.as_str(), SESSION_HEADER] {
                request.headers_mut().remove(secret);
            }
            let (id, reads) = (token.id.clone(), request.method() == Method::GET);
            request.extensions_mut().insert(token);
            request.extensions_mut().insert(Arc::clone(&site.limits));
            request.extensions_mut().insert(RequestPermit::default());
            if let Some(session) = session {
                request.extensions_mut().insert(session);
            }
            let response = next.run(request).await;
            // What a call has done is told, however many streams there are.
            guarded(if reads && is_event_stream(&response) {
                count_stream(&site, &id, response)
            } else {
                response
            })
        }
        Ok(None) => unauthorized(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn guarded(mut response: Response) -> Response {
    assets::guard(&mut response);
    response
}

impl Session {
    /// Whether a page of this session may have sent the request: it only reads, or the browser names the session's origin.
    fn may_have_sent(&self, request: &Request) -> bool {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        reads || page_origin(request.headers()).is_some_and(|origin| origin == self.origin)
    }
}

impl Site {
    /// Returns the token with which the session of a request began, unless it was revoked. Sessions are for the API.
    fn signed_in(&self, request: &Request) -> Result<Option<(Token, Option<Session>)>, TokenError> {
        let path = request.uri().path();
        if !path.starts_with("/api/") && path != "/logout" {
            return Ok(None);
        }
        let session = self.sessions.of(request.headers(), sessions::now());
        let Some(session) = session else { return Ok(None) };
        Ok(self.tokens.with_id(&session.token)?.map(|token| (token, Some(session))))
    }

    /// Returns the token that a sign-in names.
    fn token_of(&self, credential: &Credential) -> Result<Option<Token>, TokenError> {
        match credential {
            Credential::Token(text) => self.tokens.find(text),
            Credential::Code(code) => match self.sessions.redeem(code, Instant::now()) {
                Some(id) => self.tokens.with_id(&id),
                None => Ok(None),
            },
        }
    }
}

impl Site {
    fn admits(&self, token: &Token) -> bool {
        self.admits_people || token.role != Role::Person
    }
}

fn no_people() -> Problem {
    let detail = "this server was not started by a person, so nobody acts as a person here";
    Problem::new(StatusCode::FORBIDDEN, detail, "start `waypost serve` in a terminal of your own")
}

/// The body of `POST /login`.
#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Credential {
    /// The code of a sign-in link.
    Code(String),
    /// The text of a token.
    Token(String),
}

/// `POST /login`: begins a session. The reply is the only one that contains the second secret.
async fn login(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let Some(origin) = page_origin(request.headers()) else {
        let hint = "open the dashboard; programs send Authorization: Bearer TOKEN instead";
        return Err(Problem::new(StatusCode::FORBIDDEN, "only a page of this server signs in", hint));
    };
    let body = read_in_time(request.into_body(), LOGIN_BYTES_MAX).await;
    let body = body.map_err(|status| Problem::new(status, "the body cannot be read", "retry"))?;
    let credential = serde_json::from_slice::<Credential>(&body)
        .map_err(|error| Problem::bad(error.to_string(), "send {\"code\": …} or {\"token\": …}"))?;
    let failed = |_: TokenError| {
        let detail = "the tokens of this server cannot be read";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail, "ask its operator to check the file")
    };
    let Some(token) = site.token_of(&credential).map_err(failed)? else {
        let detail = match credential {
            Credential::Code(_) => "this sign-in link was used already, has expired, or is of another server",
            Credential::Token(_) => "unknown or revoked token",
        };
        let hint = "sign in with a token: `waypost token new --role person --name NAME` creates one";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, detail, hint));
    };
    if !site.admits(&token) {
        return Err(no_people());
    }
    if let Some(only) = &token.only {
        let detail = format!("this token grants access to {only} only");
        return Err(Problem::new(StatusCode::FORBIDDEN, detail, "sign in with another token"));
    }
    let new = site.sessions.begin(&token.id, &origin, sessions::now()).map_err(failed)?;
    let heads = [(CONTENT_TYPE, "application/json"), (SET_COOKIE, new.set_cookie.as_str())];
    Ok((heads, serde_json::json!({ "session": new.secret }).to_string()).into_response())
}

/// `POST /logout`: ends the session and its streams. A caller with a token has no session.
async fn logout(State(site): State<Arc<Site>>, session: Option<Extension<Session>>) -> Response {
    let Some(Extension(session)) = session else { return StatusCode::NO_CONTENT.into_response() };
    let cookie = site.sessions.end(&session);
    site.end_streams();
    (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response()
}

/// Serves the dashboard.
async fn page(request: Request) -> Response {
    assets::answer(request.method(), request.uri().path(), request.headers())
}

/// `GET /readyz`: whether the store responds.
async fn ready(State(site): State<Arc<Site>>) -> Response {
    let Some(api) = site.api.clone() else { return "ok\n".into_response() };
    match tokio::task::spawn_blocking(move || api.plans().latest()).await {
        Ok(Ok(_)) => "ok\n".into_response(),
        Ok(Err(_)) | Err(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the store does not respond\n").into_response()
        }
    }
}

/// Limits bodies of the API like those of the mounted services, and refuses tokens that are restricted to one path.
async fn bounded(request: Request, next: Next) -> Response {
    if request.extensions().get::<Token>().is_none_or(|token| token.only.is_some()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    match whole(request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal,
    }
}

/// Lets each token have so many event streams, of the API and of the mounted services.
fn count_stream(site: &Site, token: &str, response: Response) -> Response {
    match site.limits.stream(token) {
        Ok(counted) => response.map(|body| counted_body(body, counted)),
        Err(overload) => Problem::from(overload).into_response(),
    }
}

/// Returns a body that counts as a stream until its end.
fn counted_body(body: Body, counted: Counted) -> Body {
    Body::from_stream(body.into_data_stream().map(move |data| {
        let _until_the_end = &counted;
        data
    }))
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, text) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

/// Returns 401, without revealing whether the token was missing or wrong.
fn unauthorized() -> Response {
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response()
}

/// Reads the whole body of a request, within the limits of size and time. A large one first waits for a permit, which the
/// request then has.
async fn whole(request: Request) -> Result<Request, Response> {
    let (parts, body) = request.into_parts();
    let said = parts.headers.get(CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse::<u64>().ok());
    let waits = parts.headers.contains_key(EXPECT);
    if said.is_some_and(|said| said > BODY_BYTES_MAX as u64) && waits {
        // The client waits for 100 Continue and has not sent the body.
        return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
    }
    let most = body.size_hint().upper().map_or(BODY_BYTES_MAX, |most| most as usize);
    let extensions = &parts.extensions;
    if let (Some(limits), Some(token), Some(permit)) =
        (extensions.get::<Arc<LoadLimits>>(), extensions.get::<Token>(), extensions.get::<RequestPermit>())
    {
        let given = limits.permit_for_body(permit, &token.id, most.min(BODY_BYTES_MAX)).await;
        given.map_err(|overload| Problem::from(overload).into_response())?;
    }
    match read_in_time(body, BODY_BYTES_MAX).await {
        Ok(bytes) if has_too_many_parts(&bytes) => {
            let detail = format!("the body has more than {BODY_PARTS_MAX} objects and lines");
            let hint = "send fewer at once, or use `waypost import`";
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail, hint).into_response())
        }
        Ok(bytes) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Err(status) => Err(status.into_response()),
    }
}

async fn read_in_time(body: Body, bytes_max: usize) -> Result<Vec<u8>, StatusCode> {
    let read = tokio::time::timeout(Duration::from_secs(BODY_SECONDS_MAX), read(body, bytes_max)).await;
    read.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
}

/// Reads all bytes of a body. A part of an oversized body is read as well: a client cut off while sending never reads
/// the error.
async fn read(mut body: Body, bytes_max: usize) -> Result<Vec<u8>, StatusCode> {
    let mut bytes = Vec::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let data = frame.map_err(|_| StatusCode::BAD_REQUEST)?.into_data().unwrap_or_default();
        seen += data.len();
        if seen <= bytes_max {
            bytes.extend_from_slice(&data);
        } else {
            bytes = Vec::new();
        }
        if seen > bytes_max + DISCARDED_BYTES_MAX {
            break;
        }
    }
    if seen > bytes_max { Err(StatusCode::PAYLOAD_TOO_LARGE) } else { Ok(bytes) }
}
