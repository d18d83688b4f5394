//! Resolves the plan of a call: the one that it names, or the caller's own.

use waypost_core::PlanId;
use waypost_text::quote;

use super::arguments::Arguments;
use crate::reply_text;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum bytes of the title of an archived plan.
const TITLE_BYTES: usize = 60;

/// Returns the plan that the call names by an id or a prefix of it. Otherwise returns the plan that the session works on, even
/// if it has ended: a caller that reads how the plan ended, or retries what failed, need not name it.
pub(super) fn plan(call: &Call, arguments: &Arguments<'_>) -> Result<PlanId, ToolError> {
    if let Some(id) = arguments.name("plan")? {
        let plan = call.plan(id)?;
        call.remember(&plan)?;
        return Ok(plan);
    }
    if let Some(plan) = call.own_plan()? {
        return Ok(plan);
    }
    let (mut message, archived) = (format!("{} has no plan", call.by()), call.archived_plan()?);
    if let Some(archived) = &archived {
        let (title, by) = (quote(&reply_text::cut(&archived.title, TITLE_BYTES)), archived.by_whom());
        message.push_str(&format!("; its plan {} {title} was archived{by}", archived.plan));
    }
    let error = ToolError::new(message, "create one with plan_create, or name another agent's with plan");
    Err(match archived {
        Some(archived) => error.with_fact("archived", archived.plan.as_str()),
        None => error,
    })
}
