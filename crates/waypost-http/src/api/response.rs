//! What a request is answered with: JSON with the version as its tag, or a problem in words (RFC 9457).

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};
use waypost_core::{Problem as PlanProblem, Refusal};
use waypost_store::{StoreError, WriteError};
use waypost_text::sanitize;

/// Seconds after which a caller may try again when the store is busy.
const RETRY_SECONDS: &str = "2";

/// The media type of a problem.
const KIND: &str = "application/problem+json";

/// Why a request was not done.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    hint: String,
    more: Box<Map<String, Value>>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        // Both may quote ids and texts that came with the request.
        let (detail, hint) = (sanitize(&detail.into()).into_owned(), sanitize(&hint.into()).into_owned());
        Self { status, detail, hint, more: Box::default() }
    }

    pub(crate) fn bad(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail, hint)
    }

    pub(crate) fn not_found(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail, hint)
    }

    pub(crate) fn forbidden(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail, hint)
    }

    /// The same answer, and where it is an error without words, with words.
    pub(crate) fn from_error_response(response: Response) -> Response {
        let status = response.status();
        let is_told = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == KIND);
        if is_told || !(status.is_client_error() || status.is_server_error()) {
            return response;
        }
        let (detail, hint) = match status {
            StatusCode::UNAUTHORIZED => {
                ("no token, or none that is known", "send Authorization: Bearer TOKEN, or sign in")
            }
            StatusCode::FORBIDDEN => (
                "this host, page or session may not do that",
                "call the server by its own name; a page sends x-waypost-csrf with what it writes",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => ("the body is too long", "send less at a time"),
            StatusCode::REQUEST_TIMEOUT => ("the body took too long", "send it again"),
            StatusCode::SERVICE_UNAVAILABLE => ("there is no room", "try again"),
            _ => ("it was not done", "see /api/v1/openapi.json"),
        };
        let mut told = Self::new(status, detail, hint).into_response();
        for (name, value) in response.headers() {
            if *name != CONTENT_TYPE && *name != CONTENT_LENGTH {
                told.headers_mut().insert(name, value.clone());
            }
        }
        told
    }

    /// A plan that cannot be written, with everything that is wrong with it.
    pub(crate) fn invalid(detail: impl Into<String>, problems: &[PlanProblem]) -> Self {
        let mut problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail, "mend each and send it again");
        problem.more.insert("problems".to_owned(), problems.iter().map(one).collect());
        problem
    }
}

fn one(problem: &PlanProblem) -> Value {
    let mut value = json!({ "message": sanitize(&problem.to_string()), "hint": sanitize(&problem.hint()) });
    if let waypost_core::Place::Task(task) = &problem.place {
        value["task"] = json!(task);
    }
    value
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string(), error.hint())
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        let (detail, hint) = (error.to_string(), error.hint());
        match error {
            WriteError::Refused(Refusal::Invalid { problems }) => Self::invalid(detail, &problems),
            WriteError::Refused(Refusal::NoSuchTask { .. })
            | WriteError::NotFound(_)
            | WriteError::NoSuchVersion { .. } => Self::not_found(detail, hint),
            WriteError::Refused(Refusal::OnlyAPerson { .. }) => Self::forbidden(detail, hint),
            WriteError::Refused(_) | WriteError::Ambiguous { .. } | WriteError::IdUsed(_) => {
                Self::new(StatusCode::CONFLICT, detail, hint)
            }
            WriteError::Conflict(conflict) => {
                let mut problem = Self::new(StatusCode::PRECONDITION_FAILED, detail, hint);
                let told = json!({
                    "known": conflict.known,
                    "current": conflict.current,
                    "differences": conflict.differences,
                    "differences_total": conflict.differences_total,
                    "writers": conflict.writers,
                });
                problem.more.insert("conflict".to_owned(), told);
                problem
            }
            WriteError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if !self.hint.is_empty() {
            body["hint"] = json!(self.hint);
        }
        if let Value::Object(fields) = &mut body {
            fields.extend(*self.more);
        }
        let mut response = (self.status, Body::from(body.to_string())).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
        }
        response
    }
}

/// JSON, with the version of the plan that it tells of.
pub(crate) struct Versioned<T> {
    pub(crate) status: StatusCode,
    pub(crate) body: T,
    pub(crate) version: Option<u64>,
}

impl<T> Versioned<T> {
    pub(crate) fn of(body: T) -> Self {
        Self { status: StatusCode::OK, body, version: None }
    }

    pub(crate) fn at(body: T, version: u64) -> Self {
        Self { version: Some(version), ..Self::of(body) }
    }
}

impl<T: Serialize> IntoResponse for Versioned<T> {
    fn into_response(self) -> Response {
        let bytes = match serde_json::to_vec(&self.body) {
            Ok(bytes) => bytes,
            Err(error) => {
                return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "")
                    .into_response();
            }
        };
        let mut response = (self.status, Body::from(bytes)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(tag) = self.version.and_then(|version| HeaderValue::from_str(&tag(version)).ok()) {
            headers.insert(ETAG, tag);
        }
        response
    }
}

/// A version as a tag.
pub(crate) fn tag(version: u64) -> String {
    format!("\"{version}\"")
}
