//! Piggybacks subscribed events on the results of an agent's calls: a client cannot be made to listen, but it reads the results
//! that it asked for. An event is delivered once; all of them stay in the log.

use serde_json::{Map, Value};
use waypost_store::{LogEvent, Subscription, SubscriptionError};

use super::event_mapping::{translate, types_of};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum number of events that one subscription adds to a reply. A reply with this many takes none from further subscriptions.
pub(super) const INLINE_EVENTS_MAX: usize = 10;

pub(super) fn subscription_error(error: SubscriptionError) -> ToolError {
    ToolError::new(error.to_string(), error.hint())
}

/// Returns the caller's subscriptions to the event types of this toolset.
pub(super) fn subscriptions(call: &Call) -> Result<Vec<Subscription>, ToolError> {
    let mut found = call.workspace.plans().subscriptions(&call.by().to_string())?;
    found.retain(|subscription| !types_of(&subscription.filter).is_empty());
    Ok(found)
}

/// Adds the caller's undelivered events to its reply.
pub(super) fn deliver(call: &Call, answer: &mut Map<String, Value>) -> Result<(), ToolError> {
    let (owner, plans) = (call.by().to_string(), call.workspace.plans());
    let (mut told, mut more) = (Vec::new(), false);
    for subscription in subscriptions(call)? {
        let page = match plans.unread(&owner, &subscription.id, INLINE_EVENTS_MAX) {
            Ok(page) if page.events.is_empty() => continue,
            Ok(page) => page,
            // Another call removed it a moment ago.
            Err(SubscriptionError::NotFound { .. }) => continue,
            Err(error) => return Err(subscription_error(error)),
        };
        let mut news = translate(call, &of_others(call, page.events), &types_of(&subscription.filter))?;
        news.retain(|event| !told.contains(event));
        if told.len() >= INLINE_EVENTS_MAX && !news.is_empty() {
            // These events stay unread and come with the next reply.
            more = true;
            continue;
        }
        told.extend(news);
        more |= page.more;
        call.service().acknowledge(&owner, &subscription.id, page.cursor).map_err(subscription_error)?;
    }
    if !told.is_empty() {
        answer.insert("events".to_owned(), told.into());
        if more {
            answer.insert("events_more".to_owned(), true.into());
        }
    }
    Ok(())
}

/// Drops the caller's own events. Actions of others on the caller's plan remain.
fn of_others(call: &Call, events: Vec<LogEvent>) -> Vec<LogEvent> {
    events.into_iter().filter(|event| event.actor != *call.by()).collect()
}

/// Marks events that the caller has received otherwise as delivered, if a subscription has no other unread events.
pub(super) fn shown(call: &Call, events: &[Value]) -> Result<(), ToolError> {
    let (owner, plans) = (call.by().to_string(), call.workspace.plans());
    for subscription in subscriptions(call)? {
        let page = match plans.unread(&owner, &subscription.id, events.len().max(1)) {
            Ok(page) if page.events.is_empty() || page.more => continue,
            Ok(page) => page,
            Err(SubscriptionError::NotFound { .. }) => continue,
            Err(error) => return Err(subscription_error(error)),
        };
        let unread = translate(call, &of_others(call, page.events), &types_of(&subscription.filter))?;
        if unread.iter().all(|event| events.contains(event)) {
            call.service().acknowledge(&owner, &subscription.id, page.cursor).map_err(subscription_error)?;
        }
    }
    Ok(())
}
