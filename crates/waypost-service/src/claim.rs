//! Taking the next task: what is on offer, what lost workers had included, and the first of it that can be had.

use waypost_core::{Actor, Command, Plan, PlanId, Refusal, TaskId};
use waypost_store::{Committed, LeaseFilter, PlanStore, WriteError, WriteRequest};

/// Tasks that are tried when somebody wants one: others may be faster, or hold a lock.
const CANDIDATES_MAX: usize = 200;
/// Tasks of lost workers that are given back at a time.
const LOST_MAX: usize = 100;
/// Reasons why nothing could be had that are told.
const REASONS_MAX: usize = 3;

/// Who wants a task, and of which plans.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Who.
    pub by: &'a Actor,
    /// The name under which they work on it.
    pub worker: &'a str,
    /// Only of this plan.
    pub plan: Option<&'a PlanId>,
    /// Only of plans in this queue.
    pub queue: Option<&'a str>,
    /// For how long the worker is believed to work on it without a word; nothing is for ever.
    pub lease_seconds: Option<u32>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Claimed {
    /// A task was started.
    Taken {
        /// What was written.
        committed: Committed,
        /// Which task.
        task: TaskId,
    },
    /// Nothing could be had.
    Nothing {
        /// Why not, of a few that were tried.
        reasons: Vec<String>,
    },
}

/// Starts the most urgent task that can be had, leased to whoever asks.
pub fn claim(plans: &PlanStore, claim: &Claim<'_>) -> Result<Claimed, WriteError> {
    reclaim_expired_leases(plans, claim.plan)?;
    let mut reasons: Vec<String> = Vec::new();
    for (plan, task) in claimable(plans, claim.plan, claim.queue, CANDIDATES_MAX)? {
        let request = WriteRequest {
            plan,
            by: claim.by.clone(),
            commands: vec![Command::StartTask { task: task.clone(), worker: claim.worker.to_owned() }],
            known_version: None,
            lease_seconds: claim.lease_seconds,
        };
        match plans.write(request) {
            Ok(committed) => return Ok(Claimed::Taken { committed, task }),
            Err(WriteError::Refused(refusal)) if is_only_this_one(&refusal) => {
                if reasons.len() < REASONS_MAX {
                    reasons.push(refusal.to_string());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Claimed::Nothing { reasons })
}

/// The tasks that could start now, the most urgent first.
pub fn claimable(
    plans: &PlanStore,
    plan: Option<&PlanId>,
    queue: Option<&str>,
    limit: usize,
) -> Result<Vec<(PlanId, TaskId)>, WriteError> {
    if let Some(plan) = plan {
        let tasks = |found: &Plan| {
            found.claimable().take(limit).map(|task| (plan.clone(), task.spec.id.clone())).collect()
        };
        return plans.with_plan(plan, tasks);
    }
    Ok(plans.claimable(queue, limit)?.into_iter().map(|ready| (ready.plan, ready.task)).collect())
}

/// Whether another task may be had although this one was refused.
fn is_only_this_one(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::AlreadyRunning { .. }
        | Refusal::Blocked { .. }
        | Refusal::LockHeld { .. }
        | Refusal::QueueFull { .. }
        | Refusal::MachineWork { .. }
        | Refusal::WrongStatus { .. }
        | Refusal::WrongPhase { .. }
        | Refusal::NeedsApproval {}
        | Refusal::Archived {}
        | Refusal::IsParent { .. }
        | Refusal::AwaitsCheck { .. }
        | Refusal::AwaitsAnswer { .. }
        | Refusal::NoSuchTask { .. } => true,
        Refusal::Invalid { .. }
        | Refusal::OnlyAPerson { .. }
        | Refusal::NotWhatWasLookedAt { .. }
        | Refusal::StaleAttempt { .. }
        | Refusal::HasDependants { .. }
        | Refusal::NotAwaited { .. }
        | Refusal::NoQuestion { .. }
        | Refusal::NotAChoice { .. }
        | Refusal::NoEvidence { .. }
        | Refusal::StillRunning { .. }
        | Refusal::AlreadyExists {}
        | Refusal::NotCreated {} => false,
    }
}

/// Whoever took a task and was not heard of until the end of the lease has lost it.
pub fn reclaim_expired_leases(plans: &PlanStore, plan: Option<&PlanId>) -> Result<(), WriteError> {
    let mut lost = Vec::new();
    plans.store().read(&mut |read| {
        let now = read.now();
        lost = read.leases(&LeaseFilter::ended(now), LOST_MAX)?;
        Ok(())
    })?;
    for lease in lost.into_iter().filter(|lease| plan.is_none_or(|plan| *plan == lease.plan)) {
        let request = WriteRequest {
            plan: lease.plan,
            by: Actor::system("lease"),
            commands: vec![Command::LoseTask { task: lease.task, attempt: lease.attempt, retry: None }],
            known_version: None,
            lease_seconds: None,
        };
        match plans.write(request) {
            // Somebody else has given it back already, or it ended after all.
            Ok(_) | Err(WriteError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
