//! What waits for a person, over all plans.

use serde_json::json;

use super::response::{Reply, Versioned};
use super::state::Api;

/// `GET /inbox`
pub(crate) fn inbox(api: &Api, (): ()) -> Reply {
    Ok(Versioned::of(json!(api.service.inbox()?)))
}
