//! The routes: health checks and the dashboard's files for everyone, the API and the mounted services for callers with
//! a token or a session that began with one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, LOCATION, SET_COOKIE, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use http_body_util::BodyExt;
use tower_http::compression::CompressionLayer;
use tower_service::Service;

use crate::api::{self, Api, Problem};
use crate::assets;
use crate::host_origin_guard::HostOriginGuard;
use crate::sessions::{Session, Sessions};
use crate::tokens::{Role, Token, Tokens};

/// Maximum size of a request body.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
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
    /// The services created so far, by token and mount.
    open: Mutex<BTreeMap<(String, usize), Mounted>>,
}

impl Site {
    /// A site with these mounts, without the API.
    pub fn new(guard: HostOriginGuard, tokens: Tokens, mounts: Vec<Mount>) -> Self {
        Self { guard, tokens, mounts, api: None, sessions: Sessions::default(), open: Mutex::default() }
    }

    /// Adds the API and the dashboard.
    #[must_use]
    pub fn with_api(self, api: Api) -> Self {
        Self { api: Some(Arc::new(api)), ..self }
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
                .route("/login", get(login))
                .route("/logout", post(logout))
                .nest_service("/api/v1", api::router(api).layer(from_fn(bounded)))
                .fallback(page);
        }
        let router = router.route("/healthz", get(health)).route("/readyz", get(ready));
        // Event streams are never compressed: that would delay events.
        router
            .layer(from_fn_with_state(Arc::clone(self), authenticate))
            .layer(from_fn(as_problem))
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
            Err(status) => return status.into_response(),
        };
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
    match site.guard.admits(request.headers()) {
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

/// Authenticates a request: the host and origin must be accepted, and every path that shows plans needs a token or a
/// session.
async fn authenticate(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    if let Err(status) = site.guard.admits(request.headers()) {
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
        Ok(Some((_, Some(session)))) if !session.wrote(&request) => {
            guarded(StatusCode::FORBIDDEN.into_response())
        }
        Ok(Some((token, session))) => {
            // Handlers need neither header, and so cannot leak them. Only `/logout` needs the cookie.
            request.headers_mut().remove(AUTHORIZATION);
            if request.uri().path() != "/logout" {
                request.headers_mut().remove(COOKIE);
            }
            request.extensions_mut().insert(token);
            if let Some(session) = session {
                request.extensions_mut().insert(session);
            }
            guarded(next.run(request).await)
        }
        Ok(None) => unauthorized(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn guarded(mut response: Response) -> Response {
    assets::guard(&mut response);
    response
}

fn cookies(headers: &HeaderMap) -> Option<&str> {
    headers.get(COOKIE).and_then(|cookies| cookies.to_str().ok())
}

impl Session {
    /// Whether a page of this session may have sent the request: it only reads, or it carries the CSRF token.
    fn wrote(&self, request: &Request) -> bool {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let said = request.headers().get("x-waypost-csrf").and_then(|said| said.to_str().ok());
        reads || self.proves(said)
    }
}

impl Site {
    /// Returns the token with which the session of a request began, unless it was revoked. Sessions are for the API.
    fn signed_in(
        &self,
        request: &Request,
    ) -> Result<Option<(Token, Option<Session>)>, crate::tokens::TokenError> {
        let path = request.uri().path();
        if !path.starts_with("/api/") && path != "/logout" {
            return Ok(None);
        }
        let Some(session) = self.sessions.of(cookies(request.headers())) else { return Ok(None) };
        let token = self.tokens.list()?.into_iter().find(|token| token.id == session.token);
        Ok(token.map(|token| (token, Some(session))))
    }
}

/// The parameters of `/login`.
#[derive(serde::Deserialize)]
struct SigningIn {
    token: Option<String>,
}

/// `GET /login?token=…`: begins a session and redirects to the dashboard, so that the token stays in no address.
async fn login(State(site): State<Arc<Site>>, Query(said): Query<SigningIn>) -> Response {
    let token = said.token.map_or(Ok(None), |text| site.tokens.find(&text));
    match token {
        Ok(Some(token)) => match site.sessions.begin(&token.id, false) {
            Ok(cookie) => {
                (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, "/".to_owned())]).into_response()
            }
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        },
        Ok(None) => (
            StatusCode::UNAUTHORIZED,
            "invalid or revoked sign-in link; open the address that the server printed when it started\n",
        )
            .into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// `POST /logout`
async fn logout(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    (StatusCode::NO_CONTENT, [(SET_COOKIE, site.sessions.end(cookies(&headers)))]).into_response()
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
        Err(status) => status.into_response(),
    }
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

/// Reads the whole body of a request, within the limits of size and time.
async fn whole(request: Request) -> Result<Request, StatusCode> {
    let (parts, body) = request.into_parts();
    let said = parts.headers.get(CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse::<u64>().ok());
    let waits = parts.headers.contains_key(EXPECT);
    if said.is_some_and(|said| said > BODY_BYTES_MAX as u64) && waits {
        // The client waits for 100 Continue and has not sent the body.
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    match tokio::time::timeout(Duration::from_secs(BODY_SECONDS_MAX), read(body)).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(status)) => Err(status),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// Reads all bytes of a body. A part of an oversized body is read as well: a client cut off while sending never reads
/// the error.
async fn read(mut body: Body) -> Result<Vec<u8>, StatusCode> {
    let mut bytes = Vec::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let data = frame.map_err(|_| StatusCode::BAD_REQUEST)?.into_data().unwrap_or_default();
        seen += data.len();
        if seen <= BODY_BYTES_MAX {
            bytes.extend_from_slice(&data);
        } else {
            bytes = Vec::new();
        }
        if seen > BODY_BYTES_MAX + DISCARDED_BYTES_MAX {
            break;
        }
    }
    if seen > BODY_BYTES_MAX { Err(StatusCode::PAYLOAD_TOO_LARGE) } else { Ok(bytes) }
}
