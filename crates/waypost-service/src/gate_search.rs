//! Looks at tasks for people in stored plans: signs their ends, verifies their records, and finds what waits for them from
//! other plans.

use waypost_core::{
    ActorKind, Command, Dependency, DependencyRule, ExternalTaskRef, GateOutcome, GateRecord, Plan, PlanId,
    TaskId,
};
use waypost_store::{ArchiveFilter, Query};

use crate::authenticity::Signing;
use crate::caller::{Caller, ProvedAct, SignedGate};
use crate::error::ServiceError;
use crate::gate::{Act, Gatekeeper, acted_on, gates_of, is_human, unproved_gates};
use crate::hint::{PersonAct, PersonVerb};
use crate::service::Service;

/// Maximum number of an agent's plans in which tasks for people are looked for. With more, nothing that depends on a task
/// by the agent's name starts.
const PLANS_OF_AGENT_MAX: usize = 200;

impl Service {
    /// Returns the caller with a signed record of what `command` does to a task for people. A person signs before the write,
    /// because a transaction does not wait for a key to be touched.
    pub(crate) fn sign_gate(
        &self,
        by: &Caller,
        plan: &PlanId,
        command: &Command,
        signing: &Signing<'_>,
    ) -> Result<Caller, ServiceError> {
        let (config, now, authenticator) = (self.config()?, self.now_for(by)?, self.authenticator()?);
        let act = PersonAct::on_plan(PersonVerb::Answer, plan);
        let act = ProvedAct { verb: "sign", what: "signing", act };
        let presence = by.may_sign(&act)?;
        let record = self.read(plan, |plan| {
            let (task, end) = match acted_on(command)? {
                (task, Act::End(end)) => (task, end),
                (task, Act::Answer(answer)) => (task, (GateOutcome::Answered, Some(answer))),
                (_, Act::Start | Act::Cancel | Act::Reopen) => return None,
            };
            let work = plan.task(task.as_str())?.spec.work.as_deref();
            let gatekeeper = Gatekeeper { by, plan, now, authenticator };
            let record = || gatekeeper.record(&presence, task, end.0, end.1.as_deref());
            work.is_some_and(|work| is_human(&config, work)).then(|| (task.clone(), record()))
        })?;
        // What leaves no record needs no signature.
        let Some((task, gate)) = record else { return Ok(by.clone()) };
        let gate = authenticator.attest_gate(&config.approval, (plan, &task), gate, Some(signing))?;
        let (needed, given) = (config.approval.proof, gate.proof);
        if given < needed {
            let act = PersonAct::on_task(PersonVerb::Answer, plan, task);
            return Err(ServiceError::NeedsStrongerProof { act, needed, given });
        }
        Ok(Caller { signed: Some(Box::new(SignedGate { task, gate })), ..by.clone() })
    }

    /// Returns those of these tasks that wait for a task of another plan behind a task for people that no person ended, each
    /// with what it waits for.
    pub fn behind_gates_of_others(
        &self,
        plan: &Plan,
        tasks: &[TaskId],
    ) -> Result<Vec<(TaskId, String)>, ServiceError> {
        let mut behind = Vec::new();
        for task in tasks.iter().filter_map(|task| plan.task(task.as_str())) {
            let received = |there: &ExternalTaskRef| task.state.received.get(&there.key());
            let waits = || task.spec.depends_on.iter().filter_map(Dependency::external);
            let is_open =
                task.spec.when != DependencyRule::AnyDone && !waits().all(|on| received(on).is_some());
            if task.state.status.is_finished() || is_open {
                continue;
            }
            for (there, received) in waits().filter_map(|there| Some((there, received(there)?))) {
                let mut sources: Vec<PlanId> = there.plan.iter().chain(&received.plan).cloned().collect();
                // Any agent can call its plan another agent's; then every plan of that name counts.
                if let (None, Some(agent)) = (&there.plan, &there.agent)
                    && !self.is_of_agent(received.plan.as_ref(), agent)?
                {
                    let of_agent = Query {
                        owner: Some(agent.clone()),
                        shelf: ArchiveFilter::All,
                        limit: PLANS_OF_AGENT_MAX,
                        ..Query::default()
                    };
                    let found = self.plans().heads(&of_agent)?.items;
                    if found.len() == PLANS_OF_AGENT_MAX {
                        behind.push((task.spec.id.clone(), there.key()));
                    }
                    sources.extend(found.into_iter().map(|head| head.id).filter(|id| id != plan.id()));
                }
                for source in &sources {
                    match self.is_behind_gate(source, &there.task) {
                        Ok(false) | Err(ServiceError::NoSuchPlan(_)) => {}
                        Ok(true) => behind.push((task.spec.id.clone(), there.key())),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        behind.dedup();
        Ok(behind)
    }

    /// Whether a person or the agent itself created the plan that is called the agent's.
    fn is_of_agent(&self, plan: Option<&PlanId>, agent: &str) -> Result<bool, ServiceError> {
        let Some(plan) = plan else { return Ok(false) };
        let created = self.read(plan, |plan| plan.state().created_by.clone());
        let created = match created {
            Err(ServiceError::NoSuchPlan(_)) => None,
            created => created?,
        };
        Ok(created.is_some_and(|by| by.kind == ActorKind::Person || by.name == agent))
    }

    /// Whether a task is for people, or comes after one, that has ended without a person. In a plan that was put away,
    /// tasks count as ended.
    fn is_behind_gate(&self, plan: &PlanId, task: &TaskId) -> Result<bool, ServiceError> {
        let (config, authenticator) = (self.config()?, self.authenticator()?);
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        self.read(plan, |plan| {
            let mut is_proved = |task: &TaskId, gate: &GateRecord| {
                authenticator.is_gate_proved(&config.approval, (plan.id(), task), gate, now)
            };
            let human = gates_of(&config, plan);
            let mut unproved = unproved_gates(plan, &human, &mut is_proved);
            let is_open = |task: &waypost_core::Task| !task.state.status.is_finished();
            if plan.task(task.as_str()).is_some_and(is_open) {
                let is_cancelled = |id: &TaskId, gate: &GateRecord| {
                    gate.outcome == GateOutcome::Cancelled && is_proved(id, gate)
                };
                unproved.extend(human.into_iter().map(|task| task.id).filter(|id| {
                    let found = plan.task(id.as_str()).filter(|task| is_open(task));
                    found.is_some_and(|task| !task.state.gate().is_some_and(|gate| is_cancelled(id, gate)))
                }));
            }
            let parent = |id: &TaskId| plan.task(id.as_str()).and_then(|task| task.spec.parent.clone());
            let is_member =
                |gate: &TaskId| std::iter::successors(Some(gate.clone()), parent).any(|id| id == *task);
            unproved.iter().any(is_member) || plan.tasks_behind(&unproved).contains(task)
        })
    }

    /// Returns what is wrong with the records of people who ended tasks for people.
    pub fn gate_problems(&self, plan: &PlanId) -> Result<Vec<String>, ServiceError> {
        let (config, authenticator) = (self.config()?, self.authenticator()?);
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        self.read(plan, |plan| {
            let is_proved = |task: &TaskId, gate: &GateRecord| {
                authenticator.is_gate_proved(&config.approval, (plan.id(), task), gate, now)
            };
            let mut human = gates_of(&config, plan);
            // A plan that was brought when it had ended has no records.
            let has_ended = plan.state().phase.is_finished();
            human.retain(|task| {
                !has_ended || plan.task(task.id.as_str()).is_some_and(|task| task.state.gate().is_some())
            });
            let unproved = unproved_gates(plan, &human, &mut { is_proved });
            let problem =
                |task: &TaskId| format!("no record that counts here shows that a person ended {task}");
            unproved.iter().map(problem).collect()
        })
    }
}
