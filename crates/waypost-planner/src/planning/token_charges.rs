//! Charges a plan for calls in its journal that it was not charged for. A call's number is its position in the journal;
//! the plan records the latest number, so that a repeated charge has no effect.

use waypost_core::{Actor, Command, Plan, PlanId};
use waypost_llm::Journal;
use waypost_service::{Record, Service};
use waypost_store::WriteError;

/// The commands for the missing charges.
pub(super) fn lacking(plan: &Plan, journal: &Journal, calls_before: u64) -> Vec<Command> {
    let known = plan.state().calls.saturating_sub(calls_before);
    let calls = (plan.state().calls.max(calls_before) + 1)..;
    let tokens = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    journal
        .charges_after(known)
        .into_iter()
        .zip(calls)
        .map(|((task, spent), call)| Command::ChargeTokens { task, tokens: tokens(spent), call })
        .collect()
}

/// Charges a plan for every call in its journal that it was not charged for. Returns their number.
pub fn charge(
    service: &Service,
    plan: &PlanId,
    by: &Actor,
    journal: &Journal,
    calls_before: u64,
) -> Result<usize, WriteError> {
    let commands = service.plans().with_plan(plan, |plan| lacking(plan, journal, calls_before))?;
    let count = commands.len();
    if count > 0 {
        service.record(Record {
            plan: plan.clone(),
            by: by.clone(),
            commands,
            known_version: None,
            lease_seconds: None,
        })?;
    }
    Ok(count)
}
