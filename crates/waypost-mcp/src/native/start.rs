//! `plan_start`: starts a plan, or requests approval for it. Never approves.

use serde_json::json;
use waypost_core::{Phase, PlanId};
use waypost_service::{Guard, awaits_approval};
use waypost_text::quote;

use super::arguments::{ArgumentForm, Arguments};
use super::{plan_facts, plan_ref};
use crate::approval::{self, APPROVAL_SECONDS_MAX, ApprovalOutcome};
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Default for how long a call waits for a person: long enough for a person at the client, shorter than the tool timeout of
/// clients.
const WAIT_SECONDS_DEFAULT: u64 = 20;

const KNOWN: [(&str, ArgumentForm); 3] =
    [("plan", ArgumentForm::Text), ("message", ArgumentForm::Text), ("wait", ArgumentForm::Number)];

pub(super) fn run(call: &Call) -> Result<Answer, ToolError> {
    let arguments = Arguments::of(&call.arguments, &KNOWN)?;
    let plan = plan_ref::plan(call, &arguments)?;
    let message = arguments.text("message")?.unwrap_or_default();
    let wait = arguments.number("wait")?.unwrap_or(WAIT_SECONDS_DEFAULT);
    if wait > APPROVAL_SECONDS_MAX {
        return Err(arguments.bad("wait", format!("must be at most {APPROVAL_SECONDS_MAX} seconds")));
    }
    if let Some(reason) = approval::rejection(call, &plan)? {
        return Ok(rejected(&plan, reason));
    }
    let needs_approval = call.read(&plan, awaits_approval)?;
    if !needs_approval || call.read(&plan, |plan| plan.state().phase)? == Phase::Paused {
        let activated = call.service().activate(&call.caller, &plan, Guard::NONE);
        activated.map_err(|error| call.refused(&plan, error))?;
        call.remember(&plan)?;
        if call.read(&plan, |plan| plan.state().phase)? != Phase::AwaitingApproval {
            return started(call, &plan);
        }
    }
    match approval::ask(call, &plan, message, wait)? {
        ApprovalOutcome::Approved => {
            // Approval starts a plan, unless somebody stopped it meanwhile; workers may even have finished it.
            if call.read(&plan, |plan| plan.state().phase)? == Phase::Draft {
                call.service().activate(&call.caller, &plan, Guard::NONE)?;
            }
            started(call, &plan)
        }
        ApprovalOutcome::Rejected(reason) => Ok(rejected(&plan, reason)),
        outcome @ (ApprovalOutcome::Dismissed | ApprovalOutcome::Waiting) => {
            let phase = Phase::AwaitingApproval.as_str();
            let approve = call.person_runs(&format!("approve {plan}"));
            let then = format!("{approve}; plan_start again waits for it");
            let mut value = json!({ "plan": plan, "phase": phase, "then": then });
            let why = if outcome == ApprovalOutcome::Dismissed {
                value["dismissed"] = json!(true);
                "the person at the client dismissed the question; "
            } else {
                ""
            };
            Ok(Answer { value, text: format!("{phase}: {why}{then}") })
        }
    }
}

fn rejected(plan: &PlanId, reason: String) -> Answer {
    let text = format!("rejected: {}; change the plan, then ask again", quote(&reason));
    let then = "change the plan, then ask again";
    let value = json!({ "plan": plan, "phase": "rejected", "reason": reason, "then": then });
    Answer { value, text }
}

fn started(call: &Call, plan: &PlanId) -> Result<Answer, ToolError> {
    Ok(call.read(plan, |plan| {
        let (phase, next) = (plan.state().phase.as_str(), plan_facts::next_ids(plan));
        let mut text = phase.to_owned();
        if !next.is_empty() {
            text.push_str(&format!("; next {}", next.join(", ")));
        }
        Answer { value: json!({ "plan": plan.id(), "phase": phase, "next": next }), text }
    })?)
}
