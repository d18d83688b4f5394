//! `events`: subscribes to events, waits for them, or reads them from a cursor.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};
use waypost_core::{Event, PlanId, TaskId};
use waypost_store::{
    Cursor, EventFilter, EventPage, EventSource, LogEvent, Since, Subscription, SubscriptionError,
};
use waypost_text::quote_unless_word;

use super::arguments::{ArgumentForm, Arguments, Problems};
use crate::hints;
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Number of events in a reply when the caller gives no limit.
const EVENTS_DEFAULT: u64 = 20;
/// Maximum number of events in a reply.
pub(super) const EVENTS_PAGE_MAX: u64 = 100;
/// The longest that a call waits.
pub(super) const WAIT_SECONDS_MAX: u64 = 600;
/// Interval at which a waiting call checks whether the client has cancelled.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum bytes of an event's details.
const DETAIL_BYTES: usize = 160;

/// Maximum number of subscriptions that are checked for unread events.
const UNREAD_LOOKED_AT_MAX: usize = 20;
/// Maximum number of subscriptions with unread events that a reply names.
const UNREAD_NAMED_MAX: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Action {
    Read,
    Subscribe,
    Unsubscribe,
    List,
}

const KNOWN: [(&str, ArgumentForm); 9] = [
    ("action", ArgumentForm::Word),
    ("subscription", ArgumentForm::Text),
    ("plans", ArgumentForm::Texts),
    ("tasks", ArgumentForm::Texts),
    ("agents", ArgumentForm::Texts),
    ("kinds", ArgumentForm::Texts),
    ("cursor", ArgumentForm::Text),
    ("wait", ArgumentForm::Number),
    ("limit", ArgumentForm::Number),
];

impl From<SubscriptionError> for ToolError {
    fn from(error: SubscriptionError) -> Self {
        let hint = match &error {
            SubscriptionError::TooMany(_) => "events with action unsubscribe ends one".to_owned(),
            SubscriptionError::NotFound { .. } => "events with action list shows yours".to_owned(),
            SubscriptionError::Store(error) => hints::about_store(error).to_owned(),
            SubscriptionError::BadOwner | SubscriptionError::Filter(_) => error.hint(),
        };
        Self::new(error.to_string(), hint)
    }
}

pub(super) fn run(call: &Call) -> Result<Answer, ToolError> {
    let mut wrong = Problems::default();
    let arguments = Arguments::noting_wrong(&call.arguments, &KNOWN, &mut wrong);
    let action = wrong.take_or_default(arguments.one_of("action", Action::iter()));
    let action = wrong.or(action)?;
    let (plans, owner) = (call.workspace.plans(), call.by().to_string());
    match action.unwrap_or(Action::Read) {
        Action::Subscribe => {
            let since = cursor(&arguments)?.map_or(Since::Now, Since::After);
            let made = call.service().subscribe(&owner, filter(call, &arguments)?, since)?;
            let text = format!("subscription {}; read it with events", made.id);
            Ok(Answer { value: json!({ "subscription": made.id }), text })
        }
        Action::Unsubscribe => {
            let named = arguments.name("subscription")?;
            let count = plans.subscriptions(&owner)?.len();
            if named.is_none() && count != 1 {
                let message = format!("you have {count} subscriptions; name one");
                return Err(ToolError::new(message, "events with action list shows yours"));
            }
            let ended = call.service().unsubscribe(&owner, named)?;
            Ok(Answer { value: json!({ "ended": ended }), text: format!("{ended} ended") })
        }
        Action::List => Ok(list(&plans.subscriptions(&owner)?)),
        Action::Read => read(call, &arguments, &owner),
    }
}

fn list(subscriptions: &[Subscription]) -> Answer {
    let told: Vec<Value> = subscriptions
        .iter()
        .map(|subscription| {
            let filter = json!(subscription.filter);
            let filter = reply_text::shortened(&filter, DETAIL_BYTES).0;
            json!({ "subscription": subscription.id, "filter": filter, "cursor": subscription.cursor })
        })
        .collect();
    Answer::of(json!({ "subscriptions": told }))
}

fn cursor(arguments: &Arguments<'_>) -> Result<Option<Cursor>, ToolError> {
    let Some(text) = arguments.name("cursor")? else { return Ok(None) };
    text.parse().map(Some).map_err(|bad: waypost_store::BadCursor| arguments.bad("cursor", bad))
}

fn filter(call: &Call, arguments: &Arguments<'_>) -> Result<EventFilter, ToolError> {
    let plans: Result<Vec<PlanId>, ToolError> =
        arguments.texts("plans")?.iter().map(|plan| Ok(call.plan(plan)?)).collect();
    let tasks: Result<Vec<TaskId>, ToolError> = arguments
        .texts("tasks")?
        .into_iter()
        .map(|task| TaskId::new(task).map_err(|bad| arguments.bad("tasks", bad)))
        .collect();
    let filter = EventFilter {
        agents: arguments.texts("agents")?,
        kinds: arguments.texts("kinds")?,
        plans: plans?,
        tasks: tasks?,
    };
    filter.check().map_err(|bad| ToolError::new(bad.to_string(), bad.hint()))?;
    Ok(filter)
}

/// Reads a subscription's unread events, or the events after a cursor.
fn read(call: &Call, arguments: &Arguments<'_>, owner: &str) -> Result<Answer, ToolError> {
    let limit = arguments.number("limit")?.unwrap_or(EVENTS_DEFAULT);
    if limit == 0 || limit > EVENTS_PAGE_MAX {
        return Err(arguments.bad("limit", format!("must be from 1 to {EVENTS_PAGE_MAX}")));
    }
    let wait = arguments.number("wait")?.unwrap_or(0);
    if wait > WAIT_SECONDS_MAX {
        return Err(arguments.bad("wait", format!("must be at most {WAIT_SECONDS_MAX} seconds")));
    }
    let (subscription, place) = (arguments.name("subscription")?, cursor(arguments)?);
    let (from, filter) = match subscription {
        Some(id) => {
            let found = call.workspace.plans().subscriptions(owner)?.into_iter().find(|found| found.id == id);
            let missing = || SubscriptionError::NotFound { owner: owner.to_owned(), id: id.to_owned() };
            let found = found.ok_or_else(missing)?;
            (place.unwrap_or(found.cursor), found.filter)
        }
        None => {
            let place = match place {
                Some(place) => place,
                // Without a cursor, only events from now on are read.
                None => Cursor::after(call.workspace.plans().latest()?),
            };
            (place, filter(call, arguments)?)
        }
    };
    let page = wait_for(call, from, &filter, limit as usize, Duration::from_secs(wait))?;
    // Returned events count as read: a client that lost the reply reads again from a cursor.
    if let Some(id) = subscription.filter(|_| place.is_none()) {
        call.service().acknowledge(owner, id, page.cursor)?;
    }
    let unread = match (subscription, page.events.is_empty()) {
        (None, true) => unread(call, owner)?,
        (None, false) | (Some(_), _) => Vec::new(),
    };
    Ok(answer(&page, &unread))
}

/// Returns the caller's subscriptions that have unread events.
fn unread(call: &Call, owner: &str) -> Result<Vec<String>, ToolError> {
    let plans = call.workspace.plans();
    let mut unread = Vec::new();
    for subscription in plans.subscriptions(owner)?.into_iter().take(UNREAD_LOOKED_AT_MAX) {
        let page = plans.wait_for_events(subscription.cursor, &subscription.filter, 1, Duration::ZERO)?;
        if !page.events.is_empty() {
            unread.push(subscription.id);
        }
        if unread.len() == UNREAD_NAMED_MAX {
            break;
        }
    }
    Ok(unread)
}

/// Waits until there are events, the time is over, or the client has cancelled.
fn wait_for(
    call: &Call,
    from: Cursor,
    filter: &EventFilter,
    limit: usize,
    at_most: Duration,
) -> Result<EventPage, ToolError> {
    let until = Instant::now() + at_most;
    let mut from = from;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let page = call.workspace.plans().wait_for_events(from, filter, limit, left.min(LOOK))?;
        if !page.events.is_empty() || left.is_zero() || (call.client.gone)() {
            return Ok(page);
        }
        from = page.cursor;
    }
}

fn answer(page: &EventPage, unread: &[String]) -> Answer {
    let mut events = Vec::new();
    let mut lines = Vec::new();
    for event in &page.events {
        let (plan, kind, by) = (&event.plan, event.kind, event.actor.to_string());
        let mut told = json!({ "kind": kind, "plan": plan });
        let mut line = format!("{kind} {plan}");
        if let Some(task) = &event.task {
            told["task"] = json!(task);
            line.push_str(&format!("/{task}"));
        }
        if !event.derived {
            line.push_str(&format!(" by {by}"));
            told["by"] = json!(by);
        }
        if let Some(fields) = detail(event) {
            let said: Vec<String> = fields.iter().map(|(name, value)| field_text(name, value)).collect();
            line.push_str(&format!(": {}", said.join(", ")));
            for (name, value) in fields {
                if told.get(&name).is_none() {
                    told[name] = value;
                }
            }
        }
        events.push(told);
        lines.push(line);
    }
    if lines.is_empty() && unread.is_empty() {
        lines.push("nothing new".to_owned());
    }
    if !unread.is_empty() {
        let words = format!("unread: subscription {}; events with subscription reads it", unread.join(", "));
        lines.push(words);
    }
    lines.push(format!("cursor {}{}", page.cursor, if page.more { ", more" } else { "" }));
    let mut value = json!({ "events": events, "cursor": page.cursor });
    if !unread.is_empty() {
        value["unread"] = json!(unread);
    }
    if page.more {
        value["more"] = json!(true);
    }
    let mut answer = Answer { value, text: lines.join("\n") };
    answer.warn(&page.warnings);
    answer
}

/// Formats a field as text.
fn field_text(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{name} {}", quote_unless_word(&reply_text::cut(text, DETAIL_BYTES))),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            format!("{name} {other}")
        }
    }
}

/// Returns the fields of an event besides its kind and its task.
fn detail(event: &LogEvent) -> Option<Map<String, Value>> {
    // Whole plans and tasks are read with plan_get.
    if let EventSource::Decided(
        Event::PlanCreated { .. } | Event::TasksAdded { .. } | Event::TaskRevised { .. },
    ) = &event.event
    {
        return None;
    }
    let Ok(Value::Object(mut fields)) = serde_json::to_value(&event.event) else { return None };
    for known in ["type", "kind", "event", "task"] {
        fields.shift_remove(known);
    }
    fields.retain(|_, value| !value.is_null());
    match reply_text::shortened(&Value::Object(fields), DETAIL_BYTES).0 {
        Value::Object(fields) if !fields.is_empty() => Some(fields),
        Value::Object(_) => None,
        cut @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Some(Map::from_iter([("detail".to_owned(), cut)]))
        }
    }
}
