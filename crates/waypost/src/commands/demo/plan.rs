//! The plan and the executors of the demo, which are compiled in, and where its store is.

use std::path::Path;

use waypost_config::Config;
use waypost_core::{Draft, PlanId};
use waypost_service::{Caller, Service};

use crate::commands::run::prepare;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::store_location::FOLDER;

pub(super) const CONFIG: &str = include_str!("config.toml");
const PLAN: &str = include_str!("plan.json");

/// Stores the plan.
pub(super) fn submit(service: &Service, config: &Config, by: &Caller) -> Outcome<PlanId> {
    let draft: Draft = serde_json::from_str(PLAN).map_err(|error| broken(&error))?;
    let entered = service.submit(by, &prepare::runnable(config, draft, None)?);
    Ok(entered.map_err(|error| broken(&error))?.plan)
}

pub(super) fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("the demo is broken: {error}"), "report this")
}

/// The location of the demo's own store.
pub(super) fn store_in(folder: &Path) -> String {
    format!("sqlite:{}", folder.join(FOLDER).join("waypost.db").display())
}
