//! What is where: `/health` for everybody, and the mounted services for those with a token.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, EXPECT, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http_body_util::BodyExt;
use tower_service::Service;

use crate::gate::Gate;
use crate::serve::{CONNECTIONS_MAX, SPARE_SECONDS_MAX};
use crate::tokens::{Token, Tokens};

/// Bytes of the body of a request.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a longer one that are read and forgotten before it is refused.
const DISCARDED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Seconds that a body may take to come in.
pub const BODY_SECONDS_MAX: u64 = 30;

/// A service for the caller with one token.
pub struct Mounted {
    service: Router,
    close: Box<dyn Fn() + Send + Sync>,
}

impl Mounted {
    /// This service; `close` ends what of it still goes on.
    pub fn new<S>(service: S, close: impl Fn() + Send + Sync + 'static) -> Self
    where
        S: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        Self { service: Router::new().fallback_service(service), close: Box::new(close) }
    }
}

/// A place of the site, and who makes the service that is there.
pub struct Mount {
    /// Its path, such as `/mcp`.
    pub path: &'static str,
    /// Makes the service for the caller with this token.
    pub make: Box<dyn Fn(&Token) -> Mounted + Send + Sync>,
}

/// Everything behind one socket.
pub struct Site {
    gate: Gate,
    tokens: Tokens,
    mounts: Vec<Mount>,
    /// What was made so far, by token and place.
    open: Mutex<BTreeMap<(String, usize), Mounted>>,
}

impl Site {
    /// A site with these places.
    pub fn new(gate: Gate, tokens: Tokens, mounts: Vec<Mount>) -> Self {
        Self { gate, tokens, mounts, open: Mutex::default() }
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    pub(crate) fn router(self: &Arc<Self>) -> Router {
        let mut router = Router::new().route("/health", get(health));
        for (place, mount) in self.mounts.iter().enumerate() {
            let hand_over = move |State(site): State<Arc<Self>>, request: Request| async move {
                site.hand_over(place, request).await
            };
            router = router.route(mount.path, any(hand_over));
        }
        router.layer(from_fn_with_state(Arc::clone(self), let_in)).with_state(Arc::clone(self))
    }

    /// What there is for callers for whom there is no room.
    pub(crate) fn spare_router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/health", get(health))
            .fallback(no_room)
            .layer(from_fn_with_state(Arc::clone(self), of_the_right_host))
    }

    async fn hand_over(&self, place: usize, request: Request) -> Response {
        let Some(token) = request.extensions().get::<Token>().cloned() else { return unauthorized() };
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

    /// Ends what goes on for tokens that are no more; if they cannot be read, for all.
    pub(crate) fn sweep(&self) {
        let tokens = self.tokens.list().unwrap_or_default();
        self.close_those(|id| !tokens.iter().any(|token| token.id == id));
    }

    /// Ends everything that goes on.
    pub(crate) fn close(&self) {
        self.close_those(|_| true);
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

async fn no_room() -> Response {
    let words = format!("there are {CONNECTIONS_MAX} connections already; close one of them, or try again\n");
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, SPARE_SECONDS_MAX.to_string())], words).into_response()
}

/// The right host, and no strange page.
async fn of_the_right_host(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    match site.gate.admits(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(status) => status.into_response(),
    }
}

/// Lets a request in: the right host, no strange page, and a token for all but `/health`.
async fn let_in(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    if let Err(status) = site.gate.admits(request.headers()) {
        return status.into_response();
    }
    if request.uri().path() == "/health" {
        return next.run(request).await;
    }
    let found = bearer(request.headers()).map(|text| site.tokens.find(text));
    match found {
        Some(Ok(Some(token))) => {
            // Whoever is behind this has no use for it, and cannot let it slip.
            request.headers_mut().remove(AUTHORIZATION);
            request.extensions_mut().insert(token);
            next.run(request).await
        }
        Some(Ok(None)) | None => unauthorized(),
        Some(Err(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, text) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

/// Says no more than that: neither what was missing nor what was wrong.
fn unauthorized() -> Response {
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response()
}

/// The request with its whole body, if that is not too much and does not take too long.
async fn whole(request: Request) -> Result<Request, StatusCode> {
    let (parts, body) = request.into_parts();
    let said = parts.headers.get(CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse::<u64>().ok());
    let waits = parts.headers.contains_key(EXPECT);
    if said.is_some_and(|said| said > BODY_BYTES_MAX as u64) && waits {
        // It has not begun to send it.
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    match tokio::time::timeout(Duration::from_secs(BODY_SECONDS_MAX), read(body)).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(status)) => Err(status),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// All bytes of a body. Of one that is too long a good part is read all the same: a caller that is cut off while it sends
/// never reads why.
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
