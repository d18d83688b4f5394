//! Events: as pages, or as a stream.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::TaskId;
use waypost_store::{Cursor, EVENTS_MAX, EventFilter};

use super::extract::{Parameters, page_size};
use super::response::{Problem, Versioned};
use super::state::{Api, run_blocking};

/// Default number of events on a page.
const EVENTS_DEFAULT: usize = 100;
/// Versions searched for the newest events, further back each time.
const NEWEST_LOOKED: [u64; 4] = [200, 2_000, 20_000, 100_000];

/// Filters and pages the events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventQuery {
    plan: Option<String>,
    kind: Option<String>,
    agent: Option<String>,
    task: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
    newest: Option<usize>,
}

fn split_list(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default().split(',').filter(|word| !word.is_empty())
}

impl EventQuery {
    fn filter(&self, api: &Api) -> Result<EventFilter, Problem> {
        let plans = split_list(self.plan.as_deref()).map(|id| api.service.resolve_plan(id));
        let tasks = split_list(self.task.as_deref())
            .map(|id| TaskId::new(id).map_err(|error| Problem::bad(error.to_string(), "send the whole id")));
        let filter = EventFilter {
            agents: split_list(self.agent.as_deref()).map(str::to_owned).collect(),
            kinds: split_list(self.kind.as_deref()).map(str::to_owned).collect(),
            plans: plans.collect::<Result<_, _>>()?,
            tasks: tasks.collect::<Result<_, _>>()?,
        };
        filter.check().map_err(|error| Problem::bad(error.to_string(), error.hint()))?;
        Ok(filter)
    }
}

/// `GET /events`: a page if the client accepts only JSON, otherwise a stream.
pub(crate) async fn events(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Parameters(wanted): Parameters<EventQuery>,
) -> Result<Response, Problem> {
    let limit = page_size(wanted.limit, EVENTS_DEFAULT, EVENTS_MAX)?;
    let newest = wanted.newest.map(|newest| page_size(Some(newest), newest, EVENTS_MAX)).transpose()?;
    let after = wanted.after.clone();
    let filter = run_blocking(Arc::clone(&api), move |api| wanted.filter(api)).await?;
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    let last = headers.get("last-event-id").and_then(|last| last.to_str().ok()).map(str::to_owned);
    let after = last.or(after).filter(|after| !after.is_empty());
    if let Some(newest) = newest {
        return Ok(run_blocking(api, move |api| newest_of(api, &filter, newest)).await?.into_response());
    }
    let after = match after.as_deref() {
        None => None,
        Some("latest") => Some(None),
        Some(text) => {
            let place = text.parse::<Cursor>();
            Some(Some(
                place.map_err(|error| Problem::bad(error.to_string(), "omit `after`, or send latest"))?,
            ))
        }
    };
    if accepted.contains("application/json") && !accepted.contains("text/event-stream") {
        let page = run_blocking(api, move |api| {
            let begin = match after {
                None => Cursor::default(),
                Some(None) => Cursor::after(api.plans().latest()?),
                Some(Some(place)) => place,
            };
            Ok(api.plans().events(begin, &filter, limit)?)
        });
        return Ok(Versioned::of(json!(page.await?)).into_response());
    }
    let listener = run_blocking(api, move |api| api.events.listen(after.flatten(), filter)).await?;
    let stream = futures_util::stream::unfold(listener, async |mut listener| {
        let said = listener.next().await?;
        Some((Ok::<_, Infallible>(said), listener))
    });
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response())
}

/// Returns the latest events, oldest first.
fn newest_of(api: &Api, filter: &EventFilter, newest: usize) -> Result<Versioned<Value>, Problem> {
    let latest = api.plans().latest()?;
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    for looked in NEWEST_LOOKED {
        let mut cursor = Cursor::after(latest.saturating_sub(looked));
        found.clear();
        loop {
            let page = api.plans().intact_events(cursor, filter, EVENTS_MAX)?;
            warnings = page.warnings;
            cursor = page.cursor;
            found.extend(page.events);
            if !page.more {
                break;
            }
        }
        if found.len() >= newest || looked >= latest {
            break;
        }
    }
    let surplus = found.len().saturating_sub(newest);
    found.drain(..surplus);
    let page = json!({ "events": found, "cursor": Cursor::after(latest), "more": false });
    Ok(Versioned::of(page).warned(&warnings))
}
