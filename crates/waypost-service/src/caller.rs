//! The caller of an operation: the actor whose rights count, and the name under which it holds tasks.

use waypost_core::{Actor, ActorKind, GateRecord, Phase, Plan, PlanId, Proof, Refusal, Status, Task, TaskId};

use crate::error::{APPROVING_REJECTED, ServiceError};
use crate::hint::{PersonAct, PersonVerb};

/// The caller of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The person, agent or worker whose rights count.
    pub actor: Actor,
    /// The name under which the caller holds tasks: its own, or that of one session of an agent (`agent:robin#4f`).
    pub worker: String,
    /// How it is known that a person acts; `None` for agents, workers and people without proof.
    pub presence: Option<Presence>,
    /// The attempt that a program of a task runs for. It reports on no other attempt.
    pub program: Option<ProgramOf>,
    /// What the person has signed for this call.
    pub signed: Option<Box<SignedGate>>,
    /// Whether the caller only claims tasks and reports on those that it holds.
    pub only_reports: bool,
}

/// The signed record of a person who ends a task for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedGate {
    pub(crate) task: TaskId,
    pub(crate) gate: GateRecord,
}

/// The attempt that a program runs for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOf {
    /// The id of the plan.
    pub plan: String,
    /// The id of the task.
    pub task: String,
    /// The number of the attempt.
    pub attempt: u32,
}

/// An act that needs proof that a person acts.
pub(crate) struct ProvedAct {
    /// The act, as a verb.
    pub(crate) verb: &'static str,
    /// The act, as a gerund.
    pub(crate) what: &'static str,
    /// What a person does to that end.
    pub(crate) act: PersonAct,
}

impl ProvedAct {
    /// The approval of a plan.
    pub(crate) fn approval(plan: &PlanId) -> Self {
        let act = PersonAct::on_plan(PersonVerb::Approve, plan);
        Self { verb: "approve a plan", what: "approving", act }
    }

    /// The approval of a plan that a person rejected as it is.
    pub(crate) fn approval_of_rejected(plan: &PlanId) -> Self {
        Self { what: APPROVING_REJECTED, ..Self::approval(plan) }
    }
}

/// How it is known that a person acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// The strength of the proof.
    pub proof: Proof,
    /// Where the person acts, for example `terminal` or `dashboard`.
    pub via: String,
}

impl Presence {
    /// A person at a terminal, in a session of the dashboard, or with a token of their own.
    pub fn new(via: impl Into<String>) -> Self {
        Self { proof: Proof::Presence, via: via.into() }
    }

    /// A caller without a terminal that nothing marks as an agent or a worker: cron, CI, a script.
    pub fn unattended() -> Self {
        Self { proof: Proof::Account, via: "unattended".to_owned() }
    }
}

impl Caller {
    /// A caller that holds tasks under its own name.
    pub fn new(actor: Actor) -> Self {
        Self::session(actor.clone(), actor.to_string())
    }

    /// A worker that claims tasks and reports on those that it holds, and does nothing else.
    pub fn only_reporting(actor: Actor) -> Self {
        Self { only_reports: true, ..Self::new(actor) }
    }

    /// Returns the caller with proof that a person acts.
    #[must_use]
    pub fn present(self, presence: Presence) -> Self {
        Self { presence: Some(presence), ..self }
    }

    /// Returns the caller without proof that a person acts, for what others may have written in a person's name.
    #[must_use]
    pub fn absent(self) -> Self {
        let presence = self.presence.map(|_| Presence::unattended());
        Self { presence, signed: None, ..self }
    }

    /// Whether it is proved that a person acts.
    pub fn is_present(&self) -> bool {
        self.presence.as_ref().is_some_and(|presence| presence.proof > Proof::Account)
    }

    /// Returns the proof that a person acts, which the act needs.
    pub(crate) fn proved(&self, proved: &ProvedAct) -> Result<Presence, ServiceError> {
        let (actor, act) = (self.actor.clone(), proved.act.clone());
        match &self.presence {
            _ if self.actor.kind != ActorKind::Person => {
                Err(ServiceError::NeedsPerson { what: proved.verb, by: actor, act })
            }
            Some(presence) if self.is_present() || self.signed.is_some() => Ok(presence.clone()),
            Some(_) => Err(ServiceError::NeedsTerminal { what: proved.what, act }),
            None => Err(ServiceError::NotThatActor { actor, what: proved.what, act }),
        }
    }

    /// Returns where a person acts who signs: the signature takes the place of the terminal, and raises nobody else.
    pub(crate) fn may_sign(&self, act: &ProvedAct) -> Result<Presence, ServiceError> {
        match &self.presence {
            Some(presence) if self.actor.kind == ActorKind::Person => Ok(presence.clone()),
            Some(_) | None => self.proved(act),
        }
    }

    /// What a person rejected, unless it has changed since, only a person who is present approves: a signature shows a key, and
    /// may be older than the rejection.
    pub(crate) fn may_approve_rejected(&self, plan: &Plan) -> Result<(), ServiceError> {
        let state = plan.state();
        let is_rejected =
            !state.phase.is_finished() && state.phase != Phase::Paused && state.stopped_by.is_some();
        if is_rejected || plan.rejected_by().is_some() {
            self.proved(&ProvedAct::approval_of_rejected(plan.id()))?;
        }
        Ok(())
    }

    /// One session of an agent. It does not hold the tasks of the agent's other sessions.
    pub fn session(actor: Actor, worker: String) -> Self {
        Self { actor, worker, presence: None, program: None, signed: None, only_reports: false }
    }

    /// Whether the caller only claims tasks and reports on those that it holds. The program of a task does not even claim.
    pub(crate) fn only_reports(&self) -> bool {
        self.only_reports || self.program.is_some()
    }

    /// Refuses a caller that only reports on tasks.
    pub fn may_edit(&self) -> Result<(), ServiceError> {
        match self.only_reports() {
            true => Err(ServiceError::NotForWorkers { by: self.actor.clone() }),
            false => Ok(()),
        }
    }

    /// Refuses a report on a task that the caller does not hold, if it may report on no other. Others are refused by the
    /// plan, and so is an attempt that is over.
    pub(crate) fn may_report(
        &self,
        plan: &Plan,
        task: &TaskId,
        attempt: Option<u32>,
    ) -> Result<(), ServiceError> {
        let Some(found) = plan.task(task.as_str()).filter(|_| self.only_reports()) else { return Ok(()) };
        let state = &found.state;
        if attempt.is_some_and(|attempt| attempt != state.attempt) || self.is_program_of(plan, found) {
            return Ok(());
        }
        let (task, status) = (task.to_string(), state.status);
        match &state.worker {
            _ if status != Status::Running => {
                let (queued, wanted, stopped_by) = (false, "reported on", None);
                Err(Refusal::WrongStatus { task, status, queued, wanted, stopped_by }.into())
            }
            Some(worker) if self.relation_to(worker) == Holder::Caller => Ok(()),
            holder => {
                let worker = holder.clone().unwrap_or_default();
                Err(Refusal::AlreadyRunning { task, worker }.into())
            }
        }
    }

    /// Refuses a caller whose agent holds the task in another session.
    pub(crate) fn is_no_other_session(&self, task: &TaskId, holder: &str) -> Result<(), ServiceError> {
        match self.relation_to(holder) {
            Holder::OtherSession => {
                let (task, agent) = (task.clone(), self.actor.name.clone());
                Err(ServiceError::HeldByOtherSession { task, agent, until: None })
            }
            Holder::Caller | Holder::Other => Ok(()),
        }
    }

    /// Returns the attempt whose program the caller is, if it is one of this task.
    pub(crate) fn attempt_of(&self, plan: &PlanId, task: &TaskId) -> Option<u32> {
        let program = self.program.as_ref()?;
        let is_its = (program.plan.as_str(), program.task.as_str()) == (plan.as_str(), task.as_str());
        is_its.then_some(program.attempt)
    }

    /// Whether the caller is the program of a task. Another attempt than its own is refused by the plan.
    pub(crate) fn is_program_of(&self, plan: &Plan, task: &Task) -> bool {
        task.state.status == Status::Running && self.attempt_of(plan.id(), &task.spec.id).is_some()
    }

    /// Returns how the caller relates to the holder of a task.
    pub fn relation_to(&self, worker: &str) -> Holder {
        // A holder with the agent's bare name does not use sessions, so every session of the agent counts as the
        // holder.
        if worker == self.worker || worker == self.actor.to_string() {
            Holder::Caller
        } else if self.actor.is_worker(worker) {
            Holder::OtherSession
        } else {
            Holder::Other
        }
    }
}

/// The holder of a task, relative to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The caller itself.
    Caller,
    /// The same agent in another session.
    OtherSession,
    /// Another person, agent or worker.
    Other,
}
