//! Resolves the plan of a call: the one that it names, or the caller's own.

use waypost_core::PlanId;

use super::arguments::Arguments;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Returns the plan that the call names by an id or a prefix of it. Otherwise returns the plan that the session used last, or the
/// caller's newest unfinished plan, or else its newest finished one: a caller that reads how the plan ended, or retries what
/// failed, need not name it.
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
