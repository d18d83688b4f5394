//! The caller, and this server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use serde_json::{Value, json};

use super::extract::Identity;
use super::response::Versioned;
use super::state::Api;

/// `GET /me`
pub(crate) async fn me(State(api): State<Arc<Api>>, caller: Identity) -> Versioned<Value> {
    let config = api.service.config();
    let untrusted = config.ok().and_then(|config| config.not_trusted.as_ref().map(ToString::to_string));
    Versioned::of(json!({
        "actor": caller.actor,
        "role": caller.role,
        "version": env!("CARGO_PKG_VERSION"),
        "store": api.plans().store().location(),
        "worker": api.runs.load(Ordering::Acquire),
        "ends_soon": api.ends_soon.load(Ordering::Acquire),
        "workspace": api.workspace,
        "untrusted": untrusted,
    }))
}
