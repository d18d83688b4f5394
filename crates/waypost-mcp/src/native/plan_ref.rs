//! Resolves the plan of a call: the one that it names, or the caller's own.

use waypost_core::PlanId;

use super::arguments::Arguments;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// The plan that the call names by an id or its beginning; otherwise the one that the session worked on last, or the
/// caller's newest that has not ended, and without such a one the newest that has: whoever looks how it ended, or tries again what failed, need not name it.
pub(super) fn plan(call: &Call, arguments: &Arguments<'_>) -> Result<PlanId, ToolError> {
    if let Some(id) = arguments.name("plan")? {
        let plan = call.plan(id)?;
        call.remember(&plan)?;
        return Ok(plan);
    }
    let open = call.own_plan()?;
    let found = if open.is_some() { open } else { call.latest_plan()? };
    found.ok_or_else(|| {
        let message = format!("{} has no plan", call.by());
        ToolError::new(message, "create one with plan_create, or name another agent's with plan")
    })
}
