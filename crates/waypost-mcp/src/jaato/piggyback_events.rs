//! Piggybacks subscribed events on the results of an agent's calls: a client cannot be made to listen, but it reads what it asked
//! for. An event is delivered once; all of them stay in the log.

use serde_json::{Map, Value};
use waypost_store::{LogEvent, Subscription, SubscriptionError};

use super::event_mapping::{translate, types_of};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Events of one subscription that come along with one answer, and how many end the telling.
pub(super) const INLINE_EVENTS_MAX: usize = 10;

pub(super) fn subscription_error(error: SubscriptionError) -> ToolError {
    ToolError::new(error.to_string(), error.hint())
}

/// The caller's subscriptions to what this set of tools tells.
pub(super) fn subscriptions(call: &Call) -> Result<Vec<Subscription>, ToolError> {
    let mut found = call.workspace.plans().subscriptions(&call.by().to_string())?;
    found.retain(|subscription| !types_of(&subscription.filter).is_empty());
    Ok(found)
}

/// Puts what the caller has not heard yet into its answer.
pub(super) fn deliver(call: &Call, answer: &mut Map<String, Value>) -> Result<(), ToolError> {
    let (owner, plans) = (call.by().to_string(), call.workspace.plans());
    let (mut told, mut more) = (Vec::new(), false);
    for subscription in subscriptions(call)? {
        let page = match plans.unread(&owner, &subscription.id, INLINE_EVENTS_MAX) {
            Ok(page) if page.events.is_empty() => continue,
            Ok(page) => page,
            // Ended a moment ago by another call.
            Err(SubscriptionError::NotFound { .. }) => continue,
            Err(error) => return Err(subscription_error(error)),
        };
        let mut news = translate(call, &of_others(call, page.events), &types_of(&subscription.filter))?;
        news.retain(|event| !told.contains(event));
        if told.len() >= INLINE_EVENTS_MAX && !news.is_empty() {
            // They stay unread, and come with the next answer.
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

/// Nobody is told of its own deeds; of what others did to its plan it is.
fn of_others(call: &Call, events: Vec<LogEvent>) -> Vec<LogEvent> {
    events.into_iter().filter(|event| event.actor != *call.by()).collect()
}

/// What the caller has been shown otherwise counts as told, where that is all there was.
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
