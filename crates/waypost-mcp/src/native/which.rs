//! Which plan a call means: the one that it names, or the caller's own.

use waypost_core::{Plan, PlanId};
use waypost_store::WriteError;

use super::arguments::Arguments;
use crate::call::Call;
use crate::refused::Refused;

/// The plan that the call names by an id or its beginning; otherwise the caller's newest that has not ended.
pub(super) fn plan(call: &Call, arguments: &Arguments<'_>) -> Result<PlanId, Refused> {
    match arguments.text("plan")? {
        Some(id) => named(call, id),
        None => call.own_plan()?.ok_or_else(|| no_plan(call)),
    }
}

/// The same; without any that is open, the newest of those that have ended.
pub(super) fn plan_to_read(call: &Call, arguments: &Arguments<'_>) -> Result<PlanId, Refused> {
    match arguments.text("plan")? {
        Some(id) => named(call, id),
        None => {
            let open = call.own_plan()?;
            let found = if open.is_some() { open } else { call.latest_plan()? };
            found.ok_or_else(|| no_plan(call))
        }
    }
}

pub(super) fn named(call: &Call, id: &str) -> Result<PlanId, Refused> {
    call.workspace.plans.resolve(id).map_err(|error| match error {
        WriteError::NotFound(_) => {
            Refused::new(error.to_string(), "plan_list with all: true shows the plans")
        }
        error => error.into(),
    })
}

fn no_plan(call: &Call) -> Refused {
    let message = format!("{} has no open plan", call.by);
    Refused::new(message, "plan_create makes one; name another's with plan")
}

/// Looks at a plan.
pub(super) fn look<R>(call: &Call, plan: &PlanId, look: impl FnOnce(&Plan) -> R) -> Result<R, Refused> {
    Ok(call.workspace.plans.look(plan, look)?)
}
