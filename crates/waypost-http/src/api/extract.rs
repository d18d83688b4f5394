//! Extractors: the caller, the body as JSON, the parameters, and the version that the caller has read.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use waypost_core::{Actor, PlanId, TaskId};
use waypost_service::{Caller, Guard, Presence, ServiceError, resolve_task};
use waypost_store::StoreError;
use waypost_text::plain_parse_error;

use super::response::Problem;
use super::state::{Api, run_blocking};
use crate::load_limits::{LoadLimits, RequestPermit};
use crate::sessions::Session;
use crate::tokens::{Role, Token};

/// The caller, as its token names it.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) actor: Actor,
    pub(crate) role: Role,
}

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let token = parts.extensions.get::<Token>();
        let token = token.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "no token", ""))?;
        Ok(Self { actor: token.actor(), role: token.role })
    }
}

/// A caller that may write.
#[derive(Clone, Debug)]
pub(crate) struct Writer(pub(crate) Caller);

impl<S: Sync> FromRequestParts<S> for Writer {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Identity { actor, role } = Identity::from_request_parts(parts, state).await?;
        match role {
            Role::Person => {
                let token = parts.extensions.get::<Token>().map(|token| format!("token:{}", token.id));
                let session = parts.extensions.get::<Session>().map(|_| "dashboard".to_owned());
                Ok(Self(Caller::new(actor).present(Presence::new(session.or(token).unwrap_or_default()))))
            }
            Role::Agent => Ok(Self(Caller::new(actor))),
            Role::Worker => Ok(Self(Caller::only_reporting(actor))),
            Role::Reader => Err(Problem::new(
                StatusCode::FORBIDDEN,
                format!("{actor} may only read"),
                "use a token with the role person, agent or worker",
            )),
        }
    }
}

/// The body as JSON. An empty body counts as an empty object, whatever its content type.
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
        let bytes = whole.map_err(|error| Problem::bad(error.to_string(), "retry"))?.to_bytes();
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
    let read = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(bytes));
    read.map(Body).map_err(|error| {
        let words = plain_parse_error(&error.path().to_string(), &error.inner().to_string());
        Problem::bad(format!("the body: {words}"), "see /api/v1/openapi.json")
    })
}

/// The query parameters.
#[derive(Clone, Debug)]
pub(crate) struct Parameters<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|found| Self(found.0)).map_err(|error| {
            let words = error.body_text();
            let words = words.rsplit_once("query string: ").map_or(words.as_str(), |(_, words)| words);
            let (path, words) = match words.split_once(": ") {
                Some((path, words)) if !path.contains(' ') => (path, words),
                Some(_) | None => ("", words),
            };
            let words = plain_parse_error(path, words);
            Problem::bad(words, "see /api/v1/openapi.json for the parameters")
        })
    }
}

/// The plan named in the path, by its id or an unambiguous prefix of it. Waits for the permit of a large one.
#[derive(Clone, Debug)]
pub(crate) struct PlanPath(pub(crate) PlanId);

/// The plan and the task named in the path, each by its id or an unambiguous prefix of it.
#[derive(Clone, Debug)]
pub(crate) struct TaskPath(pub(crate) PlanId, pub(crate) TaskId);

/// Returns the parameters of the path.
async fn path_parameters<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<Vec<(String, String)>, Problem> {
    let path = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
    Ok(path.map_err(|error| Problem::bad(error.to_string(), ""))?.0)
}

/// Returns one parameter of the path, or an empty text.
pub(crate) fn parameter<'a>(path: &'a [(String, String)], name: &str) -> &'a str {
    path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

impl FromRequestParts<Arc<Api>> for PlanPath {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let path = path_parameters(parts, api).await?;
        let plan = parameter(&path, "plan").to_owned();
        let known = PlanId::new(plan.as_str()).ok();
        let known = known.and_then(|id| Some((api.plans().cached_size_now(&id)?, id)));
        let (plan, tasks) = match known {
            Some((tasks, id)) => (id, Some(tasks)),
            None => {
                let found = run_blocking(Arc::clone(api), move |api| {
                    let plan = api.service.resolve_plan(&plan)?;
                    let tasks = api.plans().cached_size(&plan);
                    Ok((plan, tasks))
                });
                found.await?
            }
        };
        let extensions = &parts.extensions;
        if let (Some(limits), Some(token), Some(permit)) = (
            extensions.get::<Arc<LoadLimits>>(),
            extensions.get::<Token>(),
            extensions.get::<RequestPermit>(),
        ) {
            limits.permit_for_plan(permit, &token.id, tasks).await?;
        }
        Ok(Self(plan))
    }
}

impl FromRequestParts<Arc<Api>> for TaskPath {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let PlanPath(plan) = PlanPath::from_request_parts(parts, api).await?;
        let path = path_parameters(parts, api).await?;
        let task = parameter(&path, "task").to_owned();
        run_blocking(Arc::clone(api), move |api| {
            let task = match api.service.read(&plan, |plan| resolve_task(plan, &task)) {
                Err(ServiceError::Store(StoreError::Corrupt { .. })) => {
                    api.service.view(&plan, |plan, _| resolve_task(plan, &task))
                }
                task => task,
            };
            Ok(Self(plan, task??))
        })
        .await
    }
}

/// The version that the caller has read (`If-Match`). Without the header, and with `*`, any version is accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IfMatch(pub(crate) Guard);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(tag) = parts.headers.get(IF_MATCH) else { return Ok(Self(Guard::NONE)) };
        let tag = tag.to_str().unwrap_or_default().trim();
        if tag == "*" {
            return Ok(Self(Guard::NONE));
        }
        let version = tag.trim_start_matches("W/").trim_matches('"').parse();
        let version = version.map_err(|_| {
            Problem::bad(format!("If-Match: {tag} is not a version"), "send the ETag that came with the plan")
        })?;
        Ok(Self(Guard::at(version)))
    }
}

/// A write to a plan: the caller, the expected version, and the body.
#[derive(Clone, Debug)]
pub(crate) struct Write<T> {
    pub(crate) plan: PlanId,
    pub(crate) guard: Guard,
    pub(crate) by: Caller,
    pub(crate) body: T,
}

impl<T: DeserializeOwned> FromRequest<Arc<Api>> for Write<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &Arc<Api>) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let PlanPath(plan) = PlanPath::from_request_parts(&mut parts, state).await?;
        let IfMatch(guard) = IfMatch::from_request_parts(&mut parts, state).await?;
        let Writer(by) = Writer::from_request_parts(&mut parts, state).await?;
        let Body(body) = Body::from_request(Request::from_parts(parts, body), state).await?;
        Ok(Self { plan, guard, by, body })
    }
}

/// Validates the page size that the caller requested.
pub(crate) fn page_size(limit: Option<usize>, default: usize, most: usize) -> Result<usize, Problem> {
    let wanted = limit.unwrap_or(default);
    if (1..=most).contains(&wanted) {
        Ok(wanted)
    } else {
        Err(Problem::bad(
            format!("limit is a number from 1 to {most}, not {wanted}"),
            "send a number within that range, or none",
        ))
    }
}

/// Distinguishes a field that is null from an absent one.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    input: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(input).map(Some)
}

/// Reads null as the empty value, which clears a field, and not as an absent field.
pub(crate) fn null_clears<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    input: D,
) -> Result<Option<T>, D::Error> {
    Option::<T>::deserialize(input).map(|value| Some(value.unwrap_or_default()))
}

/// Whether the caller already has this version (`If-None-Match`).
pub(crate) fn is_unchanged(headers: &HeaderMap, version: u64) -> bool {
    let said = headers.get(IF_NONE_MATCH).and_then(|said| said.to_str().ok()).unwrap_or_default();
    said.split(',').any(|one| one.trim().trim_start_matches("W/").trim_matches('"') == version.to_string())
}
