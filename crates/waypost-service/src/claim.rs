//! Claiming the next task: reclaims tasks with expired leases, then starts the first claimable task that is not
//! refused.

use std::collections::BTreeSet;

use waypost_config::{ResolvedWork, resolve};
use waypost_core::{Actor, ActorKind, Command, GateRecord, Plan, PlanId, Refusal, Task, TaskId};
use waypost_store::{Lease, LeaseFilter, StoreError, WriteError, is_alive};

use crate::approval::{Source, may_start, needs_record};
use crate::caller::Caller;
use crate::error::ServiceError;
use crate::gate::{external_tasks, gates_of, tasks_behind_gates, unproved_gates};
use crate::report::new_lease_seconds;
use crate::service::{Guard, Service, Terms, WriteReply};
use crate::standstill::{may_start_tasks, standstill, starts_with_plan};
use crate::submit::Start;

/// Maximum number of tasks to try in one claim: another worker may claim one first, or hold its lock. A few are tried before
/// the plans of all others are read.
const CANDIDATES_MAX: [usize; 2] = [8, 200];
/// Maximum number of expired leases to reclaim at a time.
const LOST_MAX: usize = 100;
/// Maximum number of refusals to report when no task could be claimed.
const REASONS_MAX: usize = 3;
/// Maximum number of dependencies on other plans that are read to explain that no task could be claimed.
const WAITS_MAX: usize = 20;

/// Limits which tasks a caller would claim.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimFilter<'a> {
    /// Claim only tasks of this plan.
    pub plan: Option<&'a PlanId>,
    /// Claim only tasks of plans in this queue.
    pub queue: Option<&'a str>,
}

/// Tasks that could start now, the most urgent first.
#[derive(Clone, Debug, Default)]
pub struct Claimable {
    /// The tasks, each with its plan.
    pub tasks: Vec<(PlanId, TaskId)>,
    /// Plans that are left out because their files are damaged.
    pub warnings: Vec<String>,
}

/// The result of a claim.
#[derive(Clone, Debug)]
pub enum Claimed {
    /// A task was started.
    Taken {
        /// The result of the write.
        written: WriteReply,
        /// The id of the started task.
        task: TaskId,
    },
    /// No task could be claimed.
    Nothing {
        /// Why: the state of the plan, what its tasks wait for in other plans, the refusals of the first few tasks that were
        /// tried, each once, and plans that are damaged. Never empty.
        reasons: Vec<String>,
    },
}

impl Service {
    /// Starts the most urgent claimable task, leased to the caller. `lease_seconds` is as in [`crate::ClaimOptions`].
    pub fn claim_next(
        &self,
        by: &Caller,
        filter: ClaimFilter<'_>,
        lease_seconds: Option<u32>,
    ) -> Result<Claimed, ServiceError> {
        filter.plan.map_or(Ok(()), |plan| self.check_offer(by, plan))?;
        self.reclaim_expired_leases(filter.plan)?;
        let terms = Terms { lease_seconds: new_lease_seconds(lease_seconds), ..Terms::starting(Guard::NONE) };
        let mut reasons: Vec<String> = Vec::new();
        // Otherwise each task of the plan would be refused for the same reason.
        let is_person = by.actor.kind == ActorKind::Person;
        let may_start = |plan: &Plan| may_start_tasks(plan) || is_person && plan.is_reopened_draft();
        let may_start = filter.plan.map(|plan| self.view(plan, |plan, _| may_start(plan))).transpose()?;
        let (mut tried, mut warnings) = (BTreeSet::new(), Vec::new());
        for limit in CANDIDATES_MAX {
            let found = self.claimable(by, filter, limit)?;
            let is_all = found.tasks.len() < limit;
            warnings = found.warnings;
            let tasks = found.tasks.into_iter().filter(|_| may_start != Some(false));
            for (plan, task) in tasks {
                if !tried.insert((plan.clone(), task.clone())) {
                    continue;
                }
                let start = Command::StartTask { task: task.clone(), worker: by.worker.clone() };
                self.start_plan_of(by, &plan, &task, Guard::NONE)?;
                let written = self.check_start(by, &plan, &task);
                match written.and_then(|()| self.write(by, &plan, vec![start], terms)) {
                    Ok(written) => return Ok(Claimed::Taken { written, task }),
                    Err(error) if error.refusal().is_some_and(is_only_this_one) => {
                        let reason = error.to_string();
                        if reasons.len() < REASONS_MAX && !reasons.contains(&reason) {
                            reasons.push(reason);
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            if is_all {
                break;
            }
        }
        let refusals = std::mem::replace(&mut reasons, self.idle_reasons(by, filter)?);
        reasons.extend(refusals);
        reasons.extend(warnings);
        Ok(Claimed::Nothing { reasons })
    }

    /// Starts a draft in which a task waits only for tasks that their author skips: they are skipped when it starts. Returns whether
    /// the plan was started.
    pub(crate) fn start_plan_of(
        &self,
        by: &Caller,
        plan: &PlanId,
        task: &TaskId,
        guard: Guard,
    ) -> Result<bool, ServiceError> {
        Ok(self.view(plan, |plan, _| starts_with_plan(plan, task.as_str()))?
            && self.start(by, plan, false, guard)? == Start::Runs)
    }

    /// Refuses work to a worker that claims it, as `waypost worker` would: without a genuine approval of what stands there,
    /// and behind a task for people that no person ended.
    pub(crate) fn check_start(&self, by: &Caller, plan: &PlanId, task: &TaskId) -> Result<(), ServiceError> {
        let config = self.config()?;
        let settings = &config.approval;
        match by.actor.kind {
            ActorKind::Worker if needs_record(settings) => {}
            ActorKind::Worker | ActorKind::Agent | ActorKind::Person | ActorKind::System => return Ok(()),
        }
        // What cannot start anyway is refused with its own reason.
        let could_start = |plan: &Plan| {
            let found = plan.claimable().find(|ready| ready.spec.id == *task);
            let work = found.and_then(|task| task.spec.work.as_deref());
            work.is_some_and(|work| !matches!(resolve(&config, work), Ok(ResolvedWork::Human) | Err(_)))
        };
        if !self.read(plan, could_start)? {
            return Ok(());
        }
        // A copy: other plans are read, too.
        let found = self.read(plan, Plan::clone)?;
        let authenticator = self.authenticator()?;
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        let facts = authenticator.facts(settings, &found, now);
        let allows = |(_, definitions): &Source| may_start(settings, definitions, &found, "", &facts).is_ok();
        if !self.definitions_for(plan)?.iter().any(allows) {
            return Err(ServiceError::Refused(Refusal::NeedsApproval { rejection: found.rejection() }));
        }
        let mut is_proved = |task: &TaskId, gate: &GateRecord| {
            authenticator.is_gate_proved(settings, (plan, task), gate, now)
        };
        let unproved = unproved_gates(&found, &gates_of(&config, &found), &mut is_proved);
        let elsewhere = self.behind_gates_of_others(&found, &external_tasks(&found))?;
        if !tasks_behind_gates(&found, &unproved, &elsewhere).contains(task) {
            return Ok(());
        }
        let names = unproved.iter().map(ToString::to_string);
        let waits_for = names.chain(elsewhere.into_iter().map(|(_, there)| there)).collect();
        Err(ServiceError::Refused(Refusal::Blocked { task: task.to_string(), waits_for }))
    }

    /// Says why no task can be claimed, a clause each: of a plan its state, and what its tasks wait for in other plans,
    /// missing tasks first.
    pub fn idle_reasons(&self, by: &Caller, filter: ClaimFilter<'_>) -> Result<Vec<String>, ServiceError> {
        let Some(plan) = filter.plan else { return Ok(vec!["no active plan has ready tasks".to_owned()]) };
        let (mut reasons, starts) =
            self.view(plan, |plan, _| (standstill(plan, by), may_start_tasks(plan)))?;
        let mut waits = match self.plans().external_waits(plan, WAITS_MAX) {
            Ok(waits) if starts => waits,
            Ok(_) | Err(WriteError::Store(StoreError::Corrupt { .. })) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        waits.sort_by_key(|(_, found)| found.is_there());
        let words =
            waits.iter().map(|(wait, found)| format!("{} waits for {}", wait.task, found.named(&wait.on)));
        reasons.extend(words.take(REASONS_MAX));
        Ok(reasons)
    }

    /// Returns the tasks that could start now, the most urgent first.
    pub fn claimable(
        &self,
        by: &Caller,
        filter: ClaimFilter<'_>,
        limit: usize,
    ) -> Result<Claimable, ServiceError> {
        if let Some(plan) = filter.plan {
            self.check_offer(by, plan)?;
            let elsewhere = self.claims_of_other_clones(plan)?;
            return self.view(plan, |found, warnings| {
                let started = found.as_started();
                let is_free = |task: &&Task| !elsewhere.contains_key(&task.spec.id);
                let taken = started.claimable().filter(|task| !is_free(task));
                // What somebody does in another clone is offered last.
                let tasks = started.claimable().filter(is_free).chain(taken).take(limit);
                let tasks = tasks.map(|task| (plan.clone(), task.spec.id.clone())).collect();
                Claimable { tasks, warnings: warnings.to_vec() }
            });
        }
        let not_offered = self.not_offered()?;
        let ready = self.plans().claimable(filter.queue, limit.saturating_add(not_offered.len()))?;
        let tasks = ready.items.into_iter().map(|ready| (ready.plan, ready.task));
        let mut tasks: Vec<(PlanId, TaskId)> =
            tasks.filter(|(plan, _)| !not_offered.contains(plan)).take(limit).collect();
        let plans: BTreeSet<PlanId> = tasks.iter().map(|(plan, _)| plan.clone()).collect();
        let elsewhere = self.claims_of_other_clones_on(&plans)?;
        tasks.sort_by_key(|(plan, task)| elsewhere.get(plan).is_some_and(|taken| taken.contains_key(task)));
        Ok(Claimable { tasks, warnings: ready.warnings })
    }

    /// Returns tasks with expired leases to the queue: those of this plan, or of all plans.
    pub fn reclaim_expired_leases(&self, plan: Option<&PlanId>) -> Result<(), ServiceError> {
        let lost = self.plans().store().query(|read| {
            let now = read.now();
            read.leases(&LeaseFilter::EndedBefore(now), LOST_MAX)
        })?;
        let by = Caller::new(Actor::system("lease"));
        // A process that is alive renews its lease, or another run sees that it does not: clocks can differ.
        let is_ours = |lease: &Lease| plan.is_none_or(|plan| *plan == lease.plan) && !is_alive(&lease.worker);
        for lease in lost.into_iter().filter(is_ours) {
            let lose = Command::LoseTask { task: lease.task, attempt: lease.attempt, retry: None };
            match self.write(&by, &lease.plan, vec![lose], Guard::NONE) {
                // Another worker has reclaimed it already, or the attempt ended in time.
                Ok(_) | Err(ServiceError::Invalid { .. }) => {}
                Err(error) if error.refusal().is_some() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a refusal concerns only this task, so that another task may still be claimed.
fn is_only_this_one(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::AlreadyRunning { .. }
        | Refusal::Blocked { .. }
        | Refusal::Held { .. }
        | Refusal::Disputed { .. }
        | Refusal::LockHeld { .. }
        | Refusal::QueueFull { .. }
        | Refusal::MachineWork { .. }
        | Refusal::HumanGate { .. }
        | Refusal::WrongStatus { .. }
        | Refusal::WrongPhase { .. }
        | Refusal::NeedsApproval { .. }
        | Refusal::Archived { .. }
        | Refusal::IsParent { .. }
        | Refusal::AwaitsCheck { .. }
        | Refusal::AwaitsAnswer { .. }
        | Refusal::StoppedByPerson { .. }
        | Refusal::NotItsTask { .. }
        | Refusal::NotItsPlan { .. }
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
