//! Taking the next task: what is on offer, what lost workers had included, and the first of it that can be had.

use waypost_core::{Actor, Command, Plan, PlanId, Refusal, TaskId};
use waypost_store::LeaseFilter;

use crate::caller::Caller;
use crate::error::ServiceError;
use crate::service::{Guard, Service, Terms, WriteReply};

/// Tasks that are tried when somebody wants one: others may be faster, or hold a lock.
const CANDIDATES_MAX: usize = 200;
/// Tasks of lost workers that are given back at a time.
const LOST_MAX: usize = 100;
/// Reasons why nothing could be had that are told.
const REASONS_MAX: usize = 3;

/// Which tasks a caller would take.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimFilter<'a> {
    /// Only of this plan.
    pub plan: Option<&'a PlanId>,
    /// Only of plans in this queue.
    pub queue: Option<&'a str>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Claimed {
    /// A task was started.
    Taken {
        /// What was written.
        written: WriteReply,
        /// Which task.
        task: TaskId,
    },
    /// Nothing could be had.
    Nothing {
        /// Why not, of a few that were tried.
        reasons: Vec<String>,
    },
}

impl Service {
    /// Starts the most urgent task that can be had, leased to the caller.
    pub fn claim_next(
        &self,
        by: &Caller,
        filter: ClaimFilter<'_>,
        lease_seconds: Option<u32>,
    ) -> Result<Claimed, ServiceError> {
        self.reclaim_expired_leases(filter.plan)?;
        let terms = Terms { guard: Guard::NONE, lease_seconds };
        let mut reasons: Vec<String> = Vec::new();
        for (plan, task) in self.claimable(filter, CANDIDATES_MAX)? {
            let start = Command::StartTask { task: task.clone(), worker: by.worker.clone() };
            match self.write(by, &plan, vec![start], terms) {
                Ok(written) => return Ok(Claimed::Taken { written, task }),
                Err(ServiceError::Refused(refusal)) if is_only_this_one(&refusal) => {
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
        &self,
        filter: ClaimFilter<'_>,
        limit: usize,
    ) -> Result<Vec<(PlanId, TaskId)>, ServiceError> {
        if let Some(plan) = filter.plan {
            let tasks = |found: &Plan| {
                found.claimable().take(limit).map(|task| (plan.clone(), task.spec.id.clone())).collect()
            };
            return self.read(plan, tasks);
        }
        let ready = self.plans().claimable(filter.queue, limit)?;
        Ok(ready.into_iter().map(|ready| (ready.plan, ready.task)).collect())
    }

    /// Returns tasks whose leases have ended to the queue: of this plan, or of all.
    pub fn reclaim_expired_leases(&self, plan: Option<&PlanId>) -> Result<(), ServiceError> {
        let lost = self.plans().store().query(|read| {
            let now = read.now();
            read.leases(&LeaseFilter::ended(now), LOST_MAX)
        })?;
        let by = Caller::new(Actor::system("lease"));
        for lease in lost.into_iter().filter(|lease| plan.is_none_or(|plan| *plan == lease.plan)) {
            let lose = Command::LoseTask { task: lease.task, attempt: lease.attempt, retry: None };
            match self.write(&by, &lease.plan, vec![lose], Guard::NONE) {
                // Somebody else has given it back already, or it ended after all.
                Ok(_) | Err(ServiceError::Refused(_) | ServiceError::Invalid { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
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
        | Refusal::StoppedByPerson { .. }
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
