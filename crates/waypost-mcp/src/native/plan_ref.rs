//! Which plan a call means: the one that it names, or the caller's own.

use waypost_core::{Plan, PlanId};
use waypost_store::WriteError;

use super::arguments::Arguments;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// The plan that the call names by an id or its beginning; otherwise the one that the session worked on last, or the
/// caller's newest that has not ended, and without such a one the newest that has: whoever looks how it ended, or tries again what failed, need not name it.
pub(super) fn plan(call: &Call, arguments: &Arguments<'_>) -> Result<PlanId, ToolError> {
    if let Some(id) = arguments.name("plan")? {
        let plan = named(call, id)?;
        call.remember(&plan)?;
        return Ok(plan);
    }
    let open = call.own_plan()?;
    let found = if open.is_some() { open } else { call.latest_plan()? };
    found.ok_or_else(|| {
        let message = format!("{} has no plan", call.by);
        ToolError::new(message, "plan_create makes one; name another's with plan")
    })
}

/// The plan that an id or its beginning names.
pub(super) fn named(call: &Call, id: &str) -> Result<PlanId, ToolError> {
    call.workspace.plans.resolve(id).map_err(|error| match error {
        WriteError::NotFound(_) => {
            ToolError::new(error.to_string(), "plan_list with all: true shows the plans")
        }
        error => error.into(),
    })
}

/// Looks at a plan.
pub(super) fn read<R>(call: &Call, plan: &PlanId, look: impl FnOnce(&Plan) -> R) -> Result<R, ToolError> {
    Ok(call.workspace.plans.look(plan, look)?)
}
