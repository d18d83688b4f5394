//! What a request asks: who, the body as JSON, the parameters, and the version that the caller knew.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use waypost_core::{Actor, ActorKind, PlanId, TaskId};

use super::response::Problem;
use crate::tokens::{Role, Token};

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) actor: Actor,
    pub(crate) role: Role,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let token = parts.extensions.get::<Token>();
        let token = token.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "no token", ""))?;
        Ok(Self { actor: token.actor(), role: token.role })
    }
}

/// Who calls, and may write.
#[derive(Clone, Debug)]
pub(crate) struct Writer(pub(crate) Actor);

impl<S: Sync> FromRequestParts<S> for Writer {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Caller { actor, role } = Caller::from_request_parts(parts, state).await?;
        match role {
            Role::Person | Role::Agent | Role::Worker => Ok(Self(actor)),
            Role::Reader => Err(Problem::forbidden(
                format!("{actor} may only read"),
                "use a token of another role: `waypost token new --role person`",
            )),
        }
    }
}

impl Writer {
    /// Whether this is a person.
    pub(crate) fn is_person(&self) -> bool {
        self.0.kind == ActorKind::Person
    }
}

/// The body as JSON. An empty one is an empty object.
#[derive(Clone, Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let is_json =
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
        let whole = request.into_body().collect().await;
        let bytes = whole.map_err(|error| Problem::bad(error.to_string(), "send the body again"))?.to_bytes();
        if bytes.is_empty() {
            return read(b"{}");
        }
        if !is_json {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("the body is {kind:?}, not application/json"),
                "send JSON with that content type",
            ));
        }
        read(&bytes)
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<Body<T>, Problem> {
    let read = serde_json::from_slice(bytes);
    read.map(Body).map_err(|error| Problem::bad(format!("the body: {error}"), "see /api/v1/openapi.json"))
}

/// The parameters behind the question mark.
#[derive(Clone, Debug)]
pub(crate) struct Parameters<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|found| Self(found.0))
            .map_err(|error| Problem::bad(error.to_string(), "see /api/v1/openapi.json for the parameters"))
    }
}

/// The plan that the path names.
#[derive(Clone, Debug)]
pub(crate) struct PlanPath(pub(crate) PlanId);

/// The plan and the task that the path names.
#[derive(Clone, Debug)]
pub(crate) struct TaskPath(pub(crate) PlanId, pub(crate) TaskId);

fn plan_id(text: &str) -> Result<PlanId, Problem> {
    PlanId::new(text)
        .map_err(|error| Problem::not_found(error.to_string(), "GET /api/v1/plans lists the plans"))
}

fn task_id(text: &str) -> Result<TaskId, Problem> {
    let known = "GET /api/v1/plans/{id}/tasks lists the tasks";
    TaskId::new(text).map_err(|error| Problem::not_found(error.to_string(), known))
}

impl<S: Send + Sync> FromRequestParts<S> for PlanPath {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Path(names) = path.map_err(|error| Problem::bad(error.to_string(), ""))?;
        let plan = names.iter().find(|(name, _)| name == "plan").map(|(_, value)| value.as_str());
        Ok(Self(plan_id(plan.unwrap_or_default())?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TaskPath {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Path(names) = path.map_err(|error| Problem::bad(error.to_string(), ""))?;
        let named = |wanted: &str| {
            names.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        Ok(Self(plan_id(named("plan"))?, task_id(named("task"))?))
    }
}

/// The version that the caller knew (`If-Match`), when it matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IfMatch(pub(crate) Option<u64>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(said) = parts.headers.get(IF_MATCH) else { return Ok(Self(None)) };
        let said = said.to_str().unwrap_or_default().trim();
        if said == "*" {
            return Ok(Self(None));
        }
        let number = said.trim_start_matches("W/").trim_matches('"').parse();
        let number = number.map_err(|_| {
            Problem::bad(format!("If-Match {said} names no version"), "send the ETag that came with the plan")
        })?;
        Ok(Self(Some(number)))
    }
}

/// How many rows the caller wants.
pub(crate) fn page_size(said: Option<usize>, default: usize, most: usize) -> Result<usize, Problem> {
    let wanted = said.unwrap_or(default);
    if (1..=most).contains(&wanted) {
        Ok(wanted)
    } else {
        Err(Problem::bad(format!("limit is a number from 1 to {most}, not {wanted}"), "page on for more"))
    }
}

/// A field that was said, be it as nothing.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    input: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(input).map(Some)
}

/// Whether the caller has this version already.
pub(crate) fn is_unchanged(headers: &HeaderMap, version: u64) -> bool {
    let said = headers.get(IF_NONE_MATCH).and_then(|said| said.to_str().ok()).unwrap_or_default();
    said.split(',').any(|one| one.trim().trim_start_matches("W/").trim_matches('"') == version.to_string())
}
