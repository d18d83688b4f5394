//! Looks at tasks for people in stored plans: signs their ends, verifies their records, and finds what waits for them from
//! other plans.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use waypost_core::{
    Command, Dependency, DependencyRule, Event, ExternalTaskRef, GateOutcome, GateRecord, Plan, PlanId,
    Status, Task, TaskId,
};
use waypost_store::{ArchiveFilter, Query, StoreError, Wait, WaitFilter};

use crate::authenticity::Signing;
use crate::caller::{Caller, ProvedAct, SignedGate};
use crate::error::ServiceError;
use crate::gate::{
    Act, Gatekeeper, OtherPlanFacts, OtherPlans, acted_on, external, gates_of, is_gate, is_human, is_valid,
    may_be_gate, unproved_gates,
};
use crate::hint::{PersonAct, PersonVerb};
use crate::service::Service;

/// Maximum number of an agent's plans in which tasks for people are looked for. With more, nothing that depends on a task
/// by the agent's name starts.
const PLANS_OF_AGENT_MAX: usize = 200;

/// What an approver reads if nobody can say which gates of other plans are new or gone.
const NOT_COMPARED: &str =
    "the tasks for people in other plans cannot be compared with those of the last approval";

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
            let others = OtherPlans::default();
            let gatekeeper = Gatekeeper { by, plan, now, authenticator, others: &others, is_offered: true };
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
            let is_any = task.spec.when == DependencyRule::AnyDone;
            let has_ended = task.state.status.is_finished();
            let is_open = !has_ended && !is_any && !waits().all(|on| received(on).is_some());
            let has_work = task.spec.work.is_some() || task.spec.check.is_some();
            let id = task.spec.id.as_str();
            let is_passed = !has_work
                && (has_ended
                    || plan.plain_tasks_behind(id).iter().any(|task| plan.was_ended(task.as_str())));
            if has_ended && has_work || is_open && !is_passed {
                continue;
            }
            // What the approval names holds, whatever the other plans say by now.
            let approved = plan.state().approval.as_ref().and_then(|approval| approval.work.as_ref());
            let gates = approved.iter().flat_map(|work| &work.gates);
            for gate in gates.filter(|gate| gate.before.contains(&task.spec.id)) {
                let needs_done = task.spec.when != DependencyRule::AllFinished;
                let is_open = !self.is_gate_ended(&gate.plan, &gate.task, needs_done)?
                    || self.gate_words(&gate.plan, &gate.task)?.0 != gate.question;
                if is_open && !is_any {
                    behind.push((task.spec.id.clone(), format!("{}/{}", gate.plan, gate.task)));
                }
            }
            // Tasks without work may have been ended without what they wait for; work behind them still waits.
            let is_considered = |on: &&ExternalTaskRef| received(on).is_some() || is_passed && !is_any;
            for there in waits().filter(is_considered) {
                let from = received(there).and_then(|received| received.plan.as_ref());
                let mut sources: Vec<PlanId> = there.plan.iter().chain(from).cloned().collect();
                let mut known = sources.clone();
                // Any agent can call its plan, or itself, by another agent's name: every plan of that name counts.
                if let (None, Some(agent)) = (&there.plan, &there.agent) {
                    let found = self.plans_of_agent(agent)?;
                    if found.len() == PLANS_OF_AGENT_MAX {
                        behind.push((task.spec.id.clone(), there.key()));
                    }
                    known.extend(found.into_iter().filter(|id| id != plan.id()));
                }
                let is_done = !has_ended || task.state.status == Status::Done;
                let needs_done = task.spec.when != DependencyRule::AllFinished && is_done;
                let Some(gates) = self.gates_when_approved(plan, &known, &there.task)? else {
                    behind.push((task.spec.id.clone(), there.key()));
                    continue;
                };
                for (source, gate) in gates {
                    if !self.is_gate_ended(&source, &gate, needs_done)? {
                        behind.push((task.spec.id.clone(), there.key()));
                    }
                }
                if let Some(from) = from.filter(|_| needs_done)
                    && !self.is_done_as_agreed(plan, &known, &there.task, from)?
                {
                    behind.push((task.spec.id.clone(), there.key()));
                }
                // Without an approval, nothing says what stood there before.
                if plan.state().approval.is_none() {
                    sources = known;
                } else if received(there).is_none() {
                    sources.clear();
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

    /// Whether a task was done in the way that was agreed when this plan was approved: with a passed check, if a task of that
    /// name had a check then, and by a machine, if it was a machine's. Any agent can bring another plan with a task of that name.
    fn is_done_as_agreed(
        &self,
        plan: &Plan,
        sources: &[PlanId],
        task: &TaskId,
        done_in: &PlanId,
    ) -> Result<bool, ServiceError> {
        let Some(sequence) = self.seen_as_of(plan)? else { return Ok(true) };
        let (mut had_check, mut had_work) = (false, false);
        for source in sources {
            let Some(agreed) = self.agreed_task(source, task, sequence)? else { continue };
            had_check |= agreed.has_check;
            had_work |= agreed.has_work;
        }
        if !had_check && !had_work {
            return Ok(true);
        }
        let is_agreed = self.read(done_in, |plan| {
            plan.task(task.as_str()).is_some_and(|task| {
                let is_checked = task.state.evidence().is_some_and(|evidence| evidence.passed);
                is_checked || !had_check && task.spec.work.is_some()
            })
        });
        match is_agreed {
            Err(ServiceError::NoSuchPlan(_)) => Ok(false),
            is_agreed => is_agreed,
        }
    }

    /// Returns the gates that a task of other plans waited for, there or further on, when this plan was approved. Agents may
    /// have changed those plans since. `None` if there are too many to look at.
    fn gates_when_approved(
        &self,
        plan: &Plan,
        sources: &[PlanId],
        task: &TaskId,
    ) -> Result<Option<BTreeSet<(PlanId, TaskId)>>, ServiceError> {
        let Some(sequence) = self.seen_as_of(plan)? else { return Ok(Some(BTreeSet::new())) };
        self.gates_then(sources.iter().map(|source| (source.clone(), task.clone())).collect(), sequence)
    }

    /// Returns the sequence number of the latest version of any plan when a person saw what they approved; `None` without an
    /// approval, or if it can no longer be read.
    fn seen_as_of(&self, plan: &Plan) -> Result<Option<u64>, ServiceError> {
        let Some(approval) = &plan.state().approval else { return Ok(None) };
        match approval.work.as_ref().and_then(|work| work.as_of) {
            None => self.approved_at(plan.id(), approval.version),
            as_of => Ok(as_of),
        }
    }

    /// Returns the sequence number of the approval of a version; `None` if it can no longer be read.
    fn approved_at(&self, plan: &PlanId, version: u64) -> Result<Option<u64>, ServiceError> {
        // It is recorded with the version that was seen, or with the next one.
        let versions = self.plans().history(plan, version.saturating_sub(1), 2)?;
        let is_approval = |event: &Event| matches!(event, Event::PlanApproved { .. });
        let approved = versions.iter().find(|version| version.events.iter().any(is_approval));
        Ok(approved.or(versions.last()).map(|version| version.sequence))
    }

    /// Returns the open gates that these tasks of plans waited for, there or further on, when this sequence number was the
    /// latest. `None` if there are too many to look at.
    fn gates_then(
        &self,
        mut stack: Vec<(PlanId, TaskId)>,
        sequence: u64,
    ) -> Result<Option<BTreeSet<(PlanId, TaskId)>>, ServiceError> {
        let mut gates = BTreeSet::new();
        let config = self.config()?;
        let mut known: HashSet<(PlanId, TaskId)> = HashSet::new();
        while let Some((source, task)) = stack.pop() {
            if !known.insert((source.clone(), task.clone())) {
                continue;
            }
            if known.len() > PLANS_OF_AGENT_MAX {
                return Ok(None);
            }
            let Some(then) = self.plan_then(&source, sequence)? else { continue };
            let open = then.open_before(task.as_str());
            let is_gate = |task: &TaskId| is_gate(&config, &then, task);
            gates.extend(open.tasks.into_iter().filter(is_gate).map(|gate| (source.clone(), gate)));
            for on in open.elsewhere {
                let named = self.plans_named(&on)?;
                if named.len() >= PLANS_OF_AGENT_MAX {
                    return Ok(None);
                }
                stack.extend(named.into_iter().map(|source| (source, on.task.clone())));
            }
        }
        Ok(Some(gates))
    }

    /// Returns which open gates of other plans a plan waits for that it did not wait for when a version of it was approved,
    /// and which it no longer waits for although no person ended them, a line each: agents may have changed those plans.
    pub(crate) fn gates_since(&self, plan: &PlanId, approved: u64) -> Result<Vec<String>, ServiceError> {
        let Ok(before) = self.plans().at_version(plan, approved) else { return Ok(Vec::new()) };
        let before = external(&before);
        let now = self.view(plan, |plan, _| external(plan))?;
        if before.is_empty() && now.is_empty() {
            return Ok(Vec::new());
        }
        let sequence = match self.approved_at(plan, approved) {
            // Whoever looks at a damaged plan sees what there is.
            Ok(None) | Err(ServiceError::Store(StoreError::Corrupt { .. })) => {
                return Ok(vec![NOT_COMPARED.to_owned()]);
            }
            sequence => sequence?.unwrap_or_default(),
        };
        let gates = |waits: Vec<ExternalTaskRef>, sequence: u64| {
            let mut sources = Vec::new();
            for on in waits {
                let named = self.plans_named(&on)?;
                sources.extend(named.into_iter().map(|source| (source, on.task.clone())));
            }
            self.gates_then(sources, sequence)
        };
        let (Some(before), Some(now)) = (gates(before, sequence)?, gates(now, u64::MAX)?) else {
            return Ok(vec![NOT_COMPARED.to_owned()]);
        };
        let mut lines = Vec::new();
        for (source, gate) in before.difference(&now) {
            if !self.is_gate_ended(source, gate, false)? {
                lines.push(format!("no longer waits for {source}/{gate}, which no person has ended"));
            }
        }
        lines.extend(now.difference(&before).map(|(source, gate)| format!("now waits for {source}/{gate}")));
        Ok(lines)
    }

    /// Returns a plan as it was when this sequence number was the latest; `None` if it did not exist or can no longer be read.
    pub(crate) fn plan_then(&self, plan: &PlanId, sequence: u64) -> Result<Option<Plan>, ServiceError> {
        let latest = match self.read(plan, Plan::version) {
            Err(ServiceError::NoSuchPlan(_)) => return Ok(None),
            latest => latest?,
        };
        // The sequence numbers of a plan's versions grow.
        let (mut known, mut above) = (0, latest + 1);
        while known + 1 < above {
            let middle = known + (above - known) / 2;
            match self.plans().sequence_of(plan, middle)?.is_some_and(|found| found <= sequence) {
                true => known = middle,
                false => above = middle,
            }
        }
        Ok(if known == 0 { None } else { self.plans().at_version(plan, known).ok() })
    }

    /// Whether a person ended a gate, and with success if that is needed.
    fn is_gate_ended(&self, plan: &PlanId, gate: &TaskId, needs_done: bool) -> Result<bool, ServiceError> {
        let (config, authenticator) = (self.config()?, self.authenticator()?);
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        let ended = self.read(plan, |plan| {
            plan.task(gate.as_str()).is_some_and(|task| {
                let state = &task.state;
                // A person who puts a plan away cancels its gates.
                let is_over = |record: &GateRecord| match needs_done {
                    true => state.status == Status::Done,
                    false => state.status.is_finished() || record.outcome == GateOutcome::Cancelled,
                };
                let is_proof = |record: &GateRecord| {
                    let about = (plan.id(), gate);
                    is_valid(record, state)
                        && authenticator.is_gate_proved(&config.approval, about, record, now)
                };
                state.gate().is_some_and(|record| is_over(record) && is_proof(record))
            })
        });
        match ended {
            Err(ServiceError::NoSuchPlan(_)) => Ok(false),
            ended => ended,
        }
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
            let is_open = |task: &Task| !task.state.status.is_finished();
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

    /// Whether work for machines may wait for a plan: its own, or that of a plan that waits for it in turn. Other waits follow a
    /// plan to its next owner, and nothing runs because of them.
    fn matters_to_machines(&self, plan: &PlanId) -> Result<bool, ServiceError> {
        let (has_work, owner) =
            self.read(plan, |plan| (plan.has_machine_work(), plan.spec().owner.clone()))?;
        Ok(has_work || !self.waits_on(plan, &owner)?.is_empty())
    }

    /// Returns the tasks that wait for a task of a plan, or of any plan of its owner.
    fn waits_on(&self, plan: &PlanId, owner: &str) -> Result<Vec<Wait>, ServiceError> {
        let on = WaitFilter::On { plan, owner, task: None };
        Ok(self.plans().store().query(|read| read.waits(on))?)
    }

    /// Looks at other plans for a write: who waits for tasks of the plan, and which of the tasks in question are gates or
    /// wait for one.
    pub(crate) fn look_at_other_plans(
        &self,
        plan: &PlanId,
        asked: Vec<ExternalTaskRef>,
    ) -> Result<OtherPlanFacts, ServiceError> {
        let owner = self.read(plan, |plan| plan.spec().owner.clone())?;
        let waits = self.waits_on(plan, &owner)?;
        let mut awaited_of_owner = BTreeSet::new();
        for wait in waits.iter().filter(|wait| wait.on.plan.is_none()) {
            if self.matters_to_machines(&wait.plan)? {
                awaited_of_owner.insert(wait.on.task.clone());
            }
        }
        let awaited: HashSet<TaskId> = waits.into_iter().map(|wait| wait.on.task).collect();
        let mut known = OtherPlanFacts { awaited, awaited_of_owner, gated: BTreeMap::new() };
        for on in asked {
            if !known.gated.contains_key(&on)
                && let Some(gate) = self.open_gate(&on)?
            {
                known.gated.insert(on, gate);
            }
        }
        Ok(known)
    }

    /// Returns an open gate that a task of another plan is, or waits for, there or further on.
    fn open_gate(&self, on: &ExternalTaskRef) -> Result<Option<(PlanId, TaskId)>, ServiceError> {
        Ok(self.open_gates(on)?.pop_first())
    }

    /// Returns the open gates that a task of another plan is, or waits for, there or further on.
    pub(crate) fn open_gates(
        &self,
        on: &ExternalTaskRef,
    ) -> Result<BTreeSet<(PlanId, TaskId)>, ServiceError> {
        let (config, mut gates) = (self.config()?, BTreeSet::new());
        let mut seen: HashSet<ExternalTaskRef> = HashSet::new();
        let mut stack = vec![on.clone()];
        while let Some(on) = stack.pop() {
            if !seen.insert(on.clone()) {
                continue;
            }
            let sources = self.plans_named(&on)?;
            // Too many to look at: there may be one.
            if seen.len() + sources.len() > PLANS_OF_AGENT_MAX {
                gates.extend(sources.into_iter().next().map(|source| (source, on.task.clone())));
                return Ok(gates);
            }
            for source in sources {
                let found = self.read(&source, |plan| {
                    let open = plan.open_before(on.task.as_str());
                    let is_gate = |task: &TaskId| may_be_gate(&config, plan, task);
                    (open.tasks.into_iter().filter(is_gate).collect::<Vec<TaskId>>(), open.elsewhere)
                });
                match found {
                    Ok((found, elsewhere)) => {
                        gates.extend(found.into_iter().map(|gate| (source.clone(), gate)));
                        stack.extend(elsewhere);
                    }
                    Err(ServiceError::NoSuchPlan(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(gates)
    }

    /// Returns the plans in which a task may be that another plan waits for.
    pub(crate) fn plans_named(&self, on: &ExternalTaskRef) -> Result<Vec<PlanId>, ServiceError> {
        match (&on.plan, &on.agent) {
            (Some(plan), _) => Ok(vec![plan.clone()]),
            (None, Some(agent)) => self.plans_of_agent(agent),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Returns the plans of an agent, at most [`PLANS_OF_AGENT_MAX`].
    fn plans_of_agent(&self, agent: &str) -> Result<Vec<PlanId>, ServiceError> {
        let of_agent = Query {
            owner: Some(agent.to_owned()),
            shelf: ArchiveFilter::All,
            limit: PLANS_OF_AGENT_MAX,
            ..Query::default()
        };
        Ok(self.plans().heads(&of_agent)?.items.into_iter().map(|head| head.id).collect())
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
