//! Subscriptions to events of other agents, which outlive the process, and queries for events.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use waypost_core::{PlanId, TaskId};
use waypost_store::{
    Cursor, EVENTS_MAX, EventFilter, LogEvent, PlanStore, Since, StoreError, Subscription, SubscriptionError,
};

use super::active_plan::current;
use super::arguments;
use super::event_mapping::{all_types, filter, mappable, translate, types, types_of};
use super::piggyback_events::{shown, subscription_error, subscriptions};
use super::reply::{Reply, error};
use crate::reply_text;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Number of events in a reply when the caller gives no limit.
const EVENTS_DEFAULT: usize = 20;
/// Bytes of an id that a reply repeats.
const ID_BYTES: usize = 200;
/// Maximum number of events in a reply.
const EVENTS_ANSWERED_MAX: usize = 100;
/// The longest that a call waits for an event.
const EVENTS_SECONDS_MAX: f64 = 30.0;
/// How many of the latest versions of all plans are searched for recent events.
const LOOK_BACK_VERSIONS_MAX: u64 = 2_000;

pub(super) fn subscribe(call: &Call) -> Reply {
    let words = arguments::texts(call, "event_types")?;
    if words.is_empty() {
        return Err(error("event_types is required"));
    }
    let wanted = types(&words)?;
    let agent = arguments::text(call, "agent_id")?;
    let (plan, step) = (arguments::text(call, "plan_id")?, arguments::text(call, "step_id")?);
    let plan_id = plan.as_deref().map(PlanId::new).transpose().map_err(|bad| error(bad.to_string()))?;
    let step_id = step.as_deref().map(TaskId::new).transpose().map_err(|bad| error(bad.to_string()))?;
    let wanted_filter = filter(agent.as_deref(), &wanted, plan_id, step_id);
    let made = call
        .service()
        .subscribe(&call.by().to_string(), wanted_filter, since(call)?)
        .map_err(subscription_error)?;
    let message = format!("Subscribed to {} event type(s). Events will be delivered inline.", words.len());
    Ok(Map::from_iter([
        ("subscription_id".to_owned(), made.id.into()),
        (
            "filter".to_owned(),
            json!({ "agent_id": agent, "plan_id": plan, "step_id": step, "event_types": words }),
        ),
        ("message".to_owned(), message.into()),
    ]))
}

/// Starts at the creation of the caller's plan, so that a late subscriber misses nothing since.
fn since(call: &Call) -> Result<Since, ToolError> {
    let Some(plan) = current(call)? else { return Ok(Since::Now) };
    let made = call.workspace.plans().history(&plan, 0, 1)?;
    Ok(made.first().map_or(Since::Now, |made| Since::After(Cursor::after(made.sequence))))
}

pub(super) fn list(call: &Call) -> Reply {
    let found: Vec<Value> = subscriptions(call)?.iter().map(|found| listed(call, found)).collect();
    Ok(Map::from_iter([("count".to_owned(), found.len().into()), ("subscriptions".to_owned(), found.into())]))
}

fn listed(call: &Call, found: &Subscription) -> Value {
    let EventFilter { agents, plans, tasks, .. } = &found.filter;
    json!({
        "subscription_id": found.id,
        "subscriber_agent": call.by().name,
        "filter": {
            "agent_id": agents.first().map_or("*", String::as_str),
            "plan_id": plans.first(),
            "step_id": tasks.first(),
            "event_types": types_of(&found.filter),
        },
        "created_at": found.created_at,
    })
}

pub(super) fn unsubscribe(call: &Call) -> Reply {
    let id = arguments::needed(call, "subscription_id")?;
    let (success, message) = match call.service().unsubscribe(&call.by().to_string(), Some(&id)) {
        Ok(_) => (true, "Subscription removed"),
        Err(SubscriptionError::NotFound { .. }) => (false, "Subscription not found"),
        Err(other) => return Err(subscription_error(other)),
    };
    Ok(Map::from_iter([
        ("success".to_owned(), success.into()),
        ("subscription_id".to_owned(), reply_text::cut_text(&id, ID_BYTES).into()),
        ("message".to_owned(), message.into()),
    ]))
}

pub(super) fn recent(call: &Call) -> Reply {
    let agent = arguments::text(call, "agent_id")?;
    let words = arguments::texts(call, "event_types")?;
    let after = arguments::text(call, "after_event")?;
    let seconds = arguments::seconds(call, "timeout", 0.0, EVENTS_SECONDS_MAX)?;
    let limit = match call.arguments.get("limit").map(|limit| (limit.as_i64(), limit)) {
        None | Some((_, Value::Null)) => EVENTS_DEFAULT,
        Some((Some(limit), _)) => usize::try_from(limit).unwrap_or(1).clamp(1, EVENTS_ANSWERED_MAX),
        Some((None, _)) => return Err(error("limit must be a whole number")),
    };
    if seconds > 0.0 && agent.is_none() && words.is_empty() && after.is_none() {
        return Err(error(
            "timeout requires at least one of: agent_id, event_types, or after_event. Say what you wait for.",
        ));
    }
    let wanted = if words.is_empty() { all_types() } else { types(&words)? };
    let query = EventQuery {
        filter: filter(agent.as_deref(), &wanted, None, None),
        types: &wanted,
        limit,
        wait: Duration::from_secs_f64(seconds),
    };
    let plans = call.workspace.plans();
    let found = match after {
        Some(after) => {
            // Several events from one log entry have a number after the cursor.
            let place = after.split('/').next().unwrap_or_default();
            query.after(
                plans,
                place.parse().map_err(|_| {
                    error(format!(
                        "after_event is not an event_id: {after}. Pass an event_id from an earlier reply."
                    ))
                })?,
            )?
        }
        None => query.latest(plans)?,
    };
    let events = translate(call, &found, &wanted)?;
    shown(call, &events)?;
    let mut answer = Map::from_iter([("count".to_owned(), events.len().into())]);
    if let Some(last) = events.last() {
        answer.insert("last_event_id".to_owned(), last["event_id"].clone());
    }
    answer.insert("events".to_owned(), events.into());
    Ok(answer)
}

/// Which events to return, how many, and how long to wait for them.
struct EventQuery<'a> {
    filter: EventFilter,
    types: &'a [&'static str],
    limit: usize,
    wait: Duration,
}

impl EventQuery<'_> {
    /// Returns the first events after a cursor. If there are none, waits for the first that arrive in time.
    fn after(&self, plans: &PlanStore, place: Cursor) -> Result<Vec<LogEvent>, StoreError> {
        let until = Instant::now() + self.wait;
        let mut place = place;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let page = plans.wait_for_events(place, &self.filter, self.limit, left)?;
            let found = mappable(plans, page.events, self.types)?;
            if !found.is_empty() || left.is_zero() && !page.more {
                return Ok(found);
            }
            place = page.cursor;
        }
    }

    /// Returns the latest events. If there are none, waits for the first that arrive in time.
    fn latest(&self, plans: &PlanStore) -> Result<Vec<LogEvent>, StoreError> {
        let latest = plans.latest()?;
        let mut place = Cursor::after(latest.saturating_sub(LOOK_BACK_VERSIONS_MAX));
        let mut found: Vec<LogEvent> = Vec::new();
        while place.sequence < latest {
            let page = plans.intact_events(place, &self.filter, EVENTS_MAX)?;
            found.extend(mappable(plans, page.events, self.types)?);
            let surplus = found.len().saturating_sub(self.limit);
            found.drain(..surplus);
            place = page.cursor;
        }
        if found.is_empty() && !self.wait.is_zero() { self.after(plans, place) } else { Ok(found) }
    }
}
