//! The dashboard: files built from `web/` and embedded in the binary. They contain no data; they fetch it from the API
//! with the browser's session.

use axum::body::Body;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use ring::digest::{SHA256, digest};

/// Scripts and styles load from this server only, and none is inline, so text of a plan cannot run code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The path, the media type and the content of a file.
type File = (&'static str, &'static str, &'static [u8]);

const INDEX: File = ("/index.html", "text/html; charset=utf-8", include_bytes!("../assets/index.html"));
/// All files of the dashboard, as `build.rs` lists them.
const FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Whether a path belongs to the dashboard: one of its files, or any path outside the API and the mounted services,
/// which may be a view.
pub(crate) fn is_page(path: &str) -> bool {
    let outside = ["/api/", "/mcp", "/metrics"];
    FILES.iter().any(|(known, ..)| *known == path) || !outside.iter().any(|place| path.starts_with(place))
}

/// Serves the file at a path; for a view, the index page that renders it.
pub(crate) fn answer(method: &Method, path: &str, headers: &HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let named = FILES.iter().find(|(known, ..)| *known == path);
    let wants_page = headers
        .get(ACCEPT)
        .and_then(|kinds| kinds.to_str().ok())
        .is_some_and(|kinds| kinds.contains("text/html"));
    let (_, kind, bytes) = match named {
        Some(file) => *file,
        None if wants_page => INDEX,
        None => return (StatusCode::NOT_FOUND, "not found\n").into_response(),
    };
    let tag = tag(bytes);
    let unchanged = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = match unchanged {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(bytes).into_response(),
    };
    let all = response.headers_mut();
    all.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // The browser asks every time, and gets the content only if it has changed.
    all.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        all.insert(ETAG, tag);
    }
    response
}

fn tag(bytes: &[u8]) -> String {
    let sum = digest(&SHA256, bytes);
    format!("\"{}\"", waypost_text::hex(&sum.as_ref()[..12]))
}

/// Sets the security headers of a response.
pub(crate) fn guard(response: &mut Response) {
    let all = response.headers_mut();
    all.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    all.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    all.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    all.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}
