//! Who may end, skip, answer or reopen what: tasks for people, and the stops of people. The core knows neither which
//! executor is a person, nor whether a person is present.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::slice::from_ref;
use std::sync::{Arc, Mutex, PoisonError};

use waypost_config::{Config, Definitions, ResolvedWork, resolve};
use waypost_core::canonical::sha256;
use waypost_core::{
    Actor, ActorKind, Command, Dependency, Draft, Event, ExternalTaskRef, GateOutcome, GateRecord, Json,
    OpenBefore, Outcome, Phase, Plan, PlanId, Refusal, Status, TaskId, TaskState, Timestamp, Work,
};
use waypost_text::hex;

use crate::admission;
use crate::authenticity::{AttestError, Authenticator};
use crate::caller::{Caller, Holder, Presence, ProvedAct};
use crate::error::ServiceError;
use crate::hint::{PersonAct, PersonVerb};
use crate::preview::definitions_kept;

/// What an agent may not do with a gate that is open.
const LET_PASS: &str = "let tasks pass it";

/// What an agent may not do with tasks that others wait for.
const HIDE: &str = "give it to another owner";

/// Whether work is for a person.
pub(crate) fn is_human(config: &Config, work: &Work) -> bool {
    matches!(resolve(config, work), Ok(ResolvedWork::Human))
}

/// Returns the tasks of a plan that are for people, for [`unproved_gates`]. As far as workers are concerned, they change with
/// the plan's work alone.
pub fn gates_of(config: &Config, plan: &Plan) -> Vec<HumanTask> {
    let of_task = |id: TaskId| HumanTask { plain_behind: plan.plain_tasks_behind(id.as_str()), id };
    human_tasks(config, plan).into_iter().map(of_task).collect()
}

/// Returns the tasks of a plan that are for people.
pub(crate) fn human_tasks(config: &Config, plan: &Plan) -> Vec<TaskId> {
    let approved = LazyCell::new(|| approved_as_human(plan));
    let is_for_people = |work: &Work| is_human_or(config, work, || approved.contains(&work.executor));
    let mut found = Vec::new();
    plan.for_each_spec(|spec| {
        if spec.work.as_deref().is_some_and(is_for_people) {
            found.push(spec.id.clone());
        }
    });
    found
}

/// Returns the tasks that do not start: those behind gates of the plan that no person ended, and those that wait for gates of
/// other plans, with everything behind them.
pub fn tasks_behind_gates(
    plan: &Plan,
    unproved: &[TaskId],
    elsewhere: &[(TaskId, String)],
) -> HashSet<TaskId> {
    let held: Vec<TaskId> = elsewhere.iter().map(|(task, _)| task.clone()).collect();
    let held = plan.with_members(&held);
    let mut behind = plan.tasks_behind(&[unproved, &held].concat());
    behind.extend(held);
    behind
}

/// Returns the tasks of a plan that wait for tasks of other plans.
pub fn external_tasks(plan: &Plan) -> Vec<TaskId> {
    plan.tasks_with_external_dependencies()
}

/// Returns the executors that were people where the plan was approved.
pub(crate) fn approved_as_human(plan: &Plan) -> HashSet<String> {
    let approval = plan.state().approval.as_ref().and_then(|approval| approval.work.as_deref());
    let Some(Definitions { executors, .. }) =
        approval.and_then(|approved| definitions_kept(&approved.definitions))
    else {
        return HashSet::new();
    };
    let is_human = |definition: &serde_json::Value| definition == "human";
    executors.into_iter().filter(|(_, definition)| is_human(definition)).map(|(name, _)| name).collect()
}

/// Whether work is for a person; `unknown` decides if nothing here defines its executor.
fn is_human_or(config: &Config, work: &Work, unknown: impl FnOnce() -> bool) -> bool {
    match resolve(config, work) {
        Ok(found) => matches!(found, ResolvedWork::Human),
        Err(_) => unknown(),
    }
}

/// A task for people, and the tasks without work that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanTask {
    /// The id of the task.
    pub id: TaskId,
    /// Those that wait for it, directly or through others of their kind.
    pub plain_behind: Vec<TaskId>,
}

/// Returns the tasks for people that have ended although no record that is proved shows that a person ended them, or that
/// are open although a task that waits for them was ended. A task that was skipped because a machine's work failed, or a person
/// stopped it, or that its author skips, was not ended by anyone.
pub fn unproved_gates(
    plan: &Plan,
    human: &[HumanTask],
    is_proved: &mut dyn FnMut(&TaskId, &GateRecord) -> bool,
) -> Vec<TaskId> {
    let mut is_unproved = |HumanTask { id, plain_behind }: &&HumanTask| {
        plan.task(id.as_str()).is_some_and(|task| {
            let is_open = !task.state.status.is_finished();
            if is_open && plain_behind.iter().any(|task| plan.was_ended(task.as_str())) {
                return true;
            }
            let state = &task.state;
            let is_skipped_along =
                || state.because_of.as_ref().is_some_and(|cause| fails_for_all(plan, cause));
            let is_decided = state.status.is_finished()
                && !(state.status == Status::Skipped && (task.spec.skip || is_skipped_along()));
            let is_proof = |gate: &GateRecord| is_valid(gate, state) && is_proved(id, gate);
            is_decided && !state.gate().is_some_and(is_proof)
        })
    };
    human.iter().filter(|task| is_unproved(task)).map(|task| task.id.clone()).collect()
}

/// Whether a task did not end well by more than an agent's word: work would run past a gate because an agent gave up a task
/// before it.
fn fails_for_all(plan: &Plan, cause: &TaskId) -> bool {
    plan.task(cause.as_str()).is_some_and(|task| {
        let by_person = task.state.stopped_by().is_some_and(|by| by.kind == ActorKind::Person);
        by_person || task.state.status == Status::Failed && has_work(plan, cause)
    })
}

/// Whether the record explains how a task ended. A check of the task may have run since, in a later attempt.
pub(crate) fn is_valid(gate: &GateRecord, state: &TaskState) -> bool {
    let same = match state.status {
        Status::Done => gate.outcome == GateOutcome::Done,
        Status::Skipped => gate.outcome == GateOutcome::Skipped,
        Status::Cancelled => gate.outcome == GateOutcome::Cancelled,
        Status::Pending | Status::Running | Status::Failed => true,
    };
    gate.by.kind == ActorKind::Person && same && gate.attempt <= state.attempt
}

/// A write of a front end, before it is decided.
pub(crate) struct Gatekeeper<'a> {
    pub(crate) by: &'a Caller,
    pub(crate) plan: &'a Plan,
    pub(crate) now: Timestamp,
    pub(crate) authenticator: &'a Authenticator,
    /// What is known about other plans.
    pub(crate) others: &'a OtherPlans,
    /// Whether the caller is offered the tasks of the plan.
    pub(crate) is_offered: bool,
}

/// What the gates of other plans have to do with a write. It is looked at only if the write is one that could matter.
#[derive(Debug, Default)]
pub(crate) struct OtherPlans {
    /// What the last attempt of the write would have passed, to be looked at before the next one.
    asked: Mutex<Option<Vec<ExternalTaskRef>>>,
    known: Option<OtherPlanFacts>,
}

impl OtherPlans {
    pub(crate) fn known(known: OtherPlanFacts) -> Self {
        Self { asked: Mutex::default(), known: Some(known) }
    }

    /// Takes the tasks of other plans that the write would no longer wait for; `None` if it does not matter.
    pub(crate) fn take_question(&self) -> Option<Vec<ExternalTaskRef>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What was found in other plans.
#[derive(Debug, Default)]
pub(crate) struct OtherPlanFacts {
    /// The tasks of the written plan that others wait for.
    pub(crate) awaited: HashSet<TaskId>,
    /// Those that others wait for by the name of the plan's owner.
    pub(crate) awaited_of_owner: BTreeSet<TaskId>,
    /// Those of the tasks in question that are open gates, or wait for one, with the first gate that was found.
    pub(crate) gated: BTreeMap<ExternalTaskRef, (PlanId, TaskId)>,
}

impl Gatekeeper<'_> {
    /// Refuses commands that the caller may not give. Returns the commands, with the records that people leave.
    pub(crate) fn admit(
        &self,
        commands: Vec<Command>,
        config: &dyn Fn() -> Result<Arc<Config>, ServiceError>,
    ) -> Result<Vec<Command>, ServiceError> {
        self.bind_program(&commands)?;
        self.keep_withheld(&commands)?;
        let commands = match commands.iter().any(|command| self.needs_configuration(command)) {
            true => self.guard_human_tasks(&*config()?, commands)?,
            false => commands,
        };
        self.only_reports(&commands)?;
        self.keep_stops(&commands)?;
        self.keep_answers(&commands)?;
        self.keep_behind_gates(&commands, config)?;
        Ok(commands)
    }

    /// Agents and workers take nothing out from behind a task for people that is open: what waits for it may be waited
    /// for from other plans, and ends without it.
    fn keep_behind_gates(
        &self,
        commands: &[Command],
        config: &dyn Fn() -> Result<Arc<Config>, ServiceError>,
    ) -> Result<(), ServiceError> {
        let plan = self.plan;
        if matches!(self.by.actor.kind, ActorKind::Person | ActorKind::System) {
            return Ok(());
        }
        if commands.iter().any(ends_plan) {
            self.keep_awaited_gates(&*config()?)?;
        }
        // What is refused is refused again when the write is decided.
        let after = || plan.after(&self.by.actor, self.now, commands);
        let mut loosened: BTreeSet<TaskId> = commands.iter().flat_map(|one| loosened(plan, one)).collect();
        let mut known_after = None;
        if commands.iter().any(may_change_all) {
            let after = known_after.insert(after());
            // By another owner's name, others no longer find what they wait for. Gates before it may be gone by now.
            if after.spec().owner != plan.spec().owner {
                let Some(known) = &self.others.known else { return Err(self.ask_others(external(plan))) };
                if let Some(awaited) = known.awaited_of_owner.first() {
                    let whom = "others, who wait for it by its owner's name".to_owned();
                    return Err(self.refuse(awaited, whom, HIDE));
                }
            }
            if plan.has_machine_work() || plan.waits_for_external() {
                loosened.extend(with_changed_waits(plan, after));
            }
        }
        let mut behind: Vec<(TaskId, OpenBefore)> = Vec::new();
        for task in loosened {
            let mut open = plan.open_before(task.as_str());
            open.tasks.retain(|task| has_work(plan, task));
            if !open.tasks.is_empty() {
                let config = config()?;
                open.tasks.retain(|task| may_be_gate(&config, plan, task));
            }
            if open != OpenBefore::default() {
                behind.push((task, open));
            }
        }
        if behind.is_empty() {
            return Ok(());
        }
        let after = known_after.unwrap_or_else(after);
        self.keep_in_this_plan(&behind, &after)?;
        self.keep_for_other_plans(&behind, &after)
    }

    /// Refuses to end a plan with a task for people that others wait for: what waits for it in the plan could then be
    /// written anew without it.
    fn keep_awaited_gates(&self, config: &Config) -> Result<(), ServiceError> {
        let plan = self.plan;
        let open = plan.tasks().map(|(task, _)| task).filter(|task| !task.state.status.is_finished());
        let mut gates =
            open.map(|task| &task.spec.id).filter(|task| may_be_gate(config, plan, task)).peekable();
        if gates.peek().is_none() {
            return Ok(());
        }
        let Some(known) = &self.others.known else { return Err(self.ask_others(Vec::new())) };
        let awaited = plan.waited_for_by(&known.awaited);
        match gates.find(|gate| awaited.contains(*gate)) {
            Some(gate) => Err(self.refuse(gate, "a person, and others wait for it".to_owned(), "cancel it")),
            None => Ok(()),
        }
    }

    /// Before the plan was approved, it is being written.
    fn keep_in_this_plan(&self, behind: &[(TaskId, OpenBefore)], after: &Plan) -> Result<(), ServiceError> {
        let (plan, state) = (self.plan, self.plan.state());
        if state.approval.is_none() && state.phase != Phase::Active {
            return Ok(());
        }
        for (task, open) in behind.iter().filter(|(task, _)| !has_work(plan, task)) {
            let is_open = after.task(task.as_str()).map(|task| !task.state.status.is_finished());
            let waits_for = match is_open {
                None => continue,
                Some(true) => after.open_work_before(task.as_str()),
                Some(false) => Vec::new(),
            };
            let is_passed = |gate: &&TaskId| {
                open.tasks.contains(*gate) && !waits_for.contains(gate) && after.task(gate.as_str()).is_some()
            };
            if let Some(gate) = plan.open_work_before(task.as_str()).iter().find(is_passed) {
                return Err(self.refuse(gate, "a person".to_owned(), LET_PASS));
            }
        }
        Ok(())
    }

    /// What other plans wait for stays behind the gates that it is behind, in this plan or elsewhere.
    fn keep_for_other_plans(
        &self,
        behind: &[(TaskId, OpenBefore)],
        after: &Plan,
    ) -> Result<(), ServiceError> {
        let plan = self.plan;
        let mut passed: Vec<(&TaskId, &TaskId, Option<&ExternalTaskRef>)> = Vec::new();
        // Work that stays work needs another approval.
        let stays_work = |task: &TaskId| has_work(plan, task) && has_work(after, task);
        for (task, before) in behind.iter().filter(|(task, _)| !stays_work(task)) {
            let has_ended = after.task(task.as_str()).is_some_and(|task| task.state.status.is_finished());
            let now = if has_ended { OpenBefore::default() } else { after.open_before(task.as_str()) };
            let is_open = |gate: &&TaskId| {
                after.task(gate.as_str()).is_some_and(|task| !task.state.status.is_finished())
            };
            let gates = before.tasks.iter().filter(|gate| !now.tasks.contains(*gate)).filter(is_open);
            passed.extend(gates.map(|gate| (task, gate, None)));
            let gone = before.elsewhere.iter().filter(|on| !now.elsewhere.contains(*on));
            passed.extend(gone.map(|on| (task, &on.task, Some(on))));
        }
        if passed.is_empty() {
            return Ok(());
        }
        let Some(known) = &self.others.known else {
            return Err(self.ask_others(passed.iter().filter_map(|(_, _, on)| on.cloned()).collect()));
        };
        // Work of the plan itself waits behind gates of other plans as well, once the plan is approved.
        let state = plan.state();
        let is_running = state.approval.is_some() || state.phase == Phase::Active;
        let awaited = plan.waited_for_by(&known.awaited);
        let work = plan.waited_for_by(&plan.work_tasks());
        for (task, gate, on) in passed {
            let is_passed = match on {
                None => awaited.contains(task),
                Some(on) => {
                    known.gated.contains_key(on)
                        && (awaited.contains(task) || is_running && work.contains(task))
                }
            };
            if is_passed {
                let there = on.and_then(|on| known.gated.get(on));
                let (plan, gate) = there.map_or((plan.id(), gate), |(plan, gate)| (plan, gate));
                return Err(self.refuse_in(plan, gate, "a person".to_owned(), LET_PASS));
            }
        }
        Ok(())
    }

    /// Has other plans looked at before the write is tried again. Nobody sees the error.
    fn ask_others(&self, asked: Vec<ExternalTaskRef>) -> ServiceError {
        *self.others.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
        self.not_its_task()
    }

    /// What a person has answered stays the question that they answered.
    fn keep_answers(&self, commands: &[Command]) -> Result<(), ServiceError> {
        for command in commands {
            if let Command::ReviseTask { task, changes } = command
                && let Some(known) = self.plan.task(task.as_str())
                && known.state.status.is_finished()
                && known.state.gate().is_some()
                && (changes.description.is_some() || changes.notes.is_some() || changes.work.is_some())
            {
                self.only_people(task, "change it now that it was answered")?;
            }
        }
        Ok(())
    }

    /// The program of a task does nothing in other plans.
    fn bind_program(&self, commands: &[Command]) -> Result<(), ServiceError> {
        let is_foreign = self.by.program.as_ref().is_some_and(|own| own.plan != self.plan.id().as_str());
        if is_foreign && !commands.is_empty() { Err(self.not_its_task()) } else { Ok(()) }
    }

    /// Agents and workers do nothing with a plan that they are not offered. What they had claimed before, they may still end.
    fn keep_withheld(&self, commands: &[Command]) -> Result<(), ServiceError> {
        match self.is_offered || commands.iter().all(|command| self.reports_on_own(command)) {
            true => Ok(()),
            false => Err(ServiceError::not_offered(&self.by.actor, self.plan.id())),
        }
    }

    /// Whether a command ends or releases an attempt that the caller holds, or asks a question about it.
    fn reports_on_own(&self, command: &Command) -> bool {
        let (Command::FinishTask { task, .. }
        | Command::ReleaseTask { task, .. }
        | Command::AskQuestion { task, .. }) = command
        else {
            return false;
        };
        self.plan.task(task.as_str()).is_some_and(|task| {
            let is_own = |worker: &String| self.by.relation_to(worker) == Holder::Caller;
            let state = &task.state;
            let is_held = state.status == Status::Running && state.worker.as_ref().is_some_and(is_own);
            is_held || self.by.is_program_of(self.plan, task)
        })
    }

    /// A caller that only reports claims, finishes, releases and asks, and nothing else.
    fn only_reports(&self, commands: &[Command]) -> Result<(), ServiceError> {
        for command in commands.iter().filter(|_| self.by.only_reports()) {
            if let Command::FinishTask {
                task,
                attempt,
                outcome: Outcome::Done { .. } | Outcome::Failed { .. },
                ..
            }
            | Command::ReleaseTask { task, attempt, .. }
            | Command::AskQuestion { task, attempt, .. } = command
            {
                self.by.may_report(self.plan, task, *attempt)?;
            } else if !matches!(command, Command::StartTask { .. }) {
                self.by.may_edit()?;
            } else if self.by.program.is_some() {
                return Err(self.not_its_task());
            }
        }
        Ok(())
    }

    /// Whether a command starts or ends a task with work, or a task that is only added by the same write.
    fn needs_configuration(&self, command: &Command) -> bool {
        let has_work =
            |task: &TaskId| self.plan.task(task.as_str()).is_none_or(|task| task.spec.work.is_some());
        match acted_on(command) {
            Some((task, Act::Cancel)) => has_work(task) || self.open_members(task).iter().any(has_work),
            Some((task, Act::Start | Act::End(_) | Act::Answer(_) | Act::Reopen)) => has_work(task),
            None => *command == Command::RetryPlan || self.by.is_present() && ends_plan(command),
        }
    }

    fn guard_human_tasks(
        &self,
        config: &Config,
        commands: Vec<Command>,
    ) -> Result<Vec<Command>, ServiceError> {
        let mut added: HashSet<TaskId> = HashSet::new();
        let mut admitted = Vec::with_capacity(commands.len());
        for command in commands {
            for (task, work, _) in admission::works(&command) {
                if work.is_some_and(|work| is_human(config, work)) {
                    added.insert(task.clone());
                }
            }
            let work_of =
                |task: &TaskId| self.plan.task(task.as_str()).and_then(|task| task.spec.work.as_deref());
            let is_for_people = |task: &TaskId| {
                added.contains(task) || work_of(task).is_some_and(|work| is_human(config, work))
            };
            let mut gates = Vec::new();
            match acted_on(&command) {
                Some((task, Act::Start)) => {
                    if is_for_people(task) {
                        self.only_people(task, "take it")?;
                    }
                    self.is_defined(config, task)?;
                }
                Some((task, Act::End(outcome))) if is_for_people(task) => {
                    gates.push(self.end(config, task, outcome, "end it", PersonVerb::Answer)?);
                }
                Some((task, Act::Cancel)) => {
                    self.open_members(task)
                        .iter()
                        .try_for_each(|member| self.is_surely_no_gate(config, member, "cancel it"))?;
                    for member in self.open_members(task).iter().filter(|member| is_for_people(member)) {
                        let end = (GateOutcome::Cancelled, None);
                        gates.push(self.end(config, member, end, "cancel it", PersonVerb::Cancel)?);
                    }
                }
                Some((task, Act::Answer(answer))) if is_for_people(task) => {
                    let end = (GateOutcome::Answered, Some(answer));
                    gates.push(self.end(config, task, end, "answer it", PersonVerb::Answer)?);
                }
                Some((task, Act::Reopen)) => {
                    self.is_surely_no_gate(config, task, "reopen it")?;
                    if is_for_people(task) {
                        self.only_people(task, "reopen it")?;
                    }
                }
                None if command == Command::RetryPlan => {
                    let failed = |task: &&TaskId| {
                        self.plan.task(task.as_str()).is_some_and(|task| task.state.status == Status::Failed)
                    };
                    if let Some(task) = human_tasks(config, self.plan).iter().find(failed) {
                        self.only_people(task, "reopen it")?;
                    }
                }
                // Tasks of other plans may wait for what ends with the plan, however it ends.
                None if self.by.is_present() && ends_plan(&command) && !self.plan.state().archived => {
                    let is_open = |task: &&TaskId| {
                        self.plan.task(task.as_str()).is_some_and(|task| !task.state.status.is_finished())
                    };
                    for task in human_tasks(config, self.plan).iter().filter(is_open) {
                        let end = (GateOutcome::Cancelled, None);
                        gates.push(self.end(config, task, end, "cancel it", PersonVerb::Cancel)?);
                    }
                }
                Some((_, Act::End(_) | Act::Answer(_))) | None => {}
            }
            // An archived plan takes no more commands.
            if command == Command::Archive {
                admitted.append(&mut gates);
            }
            admitted.push(command);
            admitted.extend(gates);
        }
        Ok(admitted)
    }

    fn only_people(&self, task: &TaskId, wanted: &'static str) -> Result<(), ServiceError> {
        match self.by.actor.kind {
            ActorKind::Person | ActorKind::System => Ok(()),
            ActorKind::Agent | ActorKind::Worker => Err(self.refuse(task, "a person".to_owned(), wanted)),
        }
    }

    /// An executor that nothing here defines may be a person elsewhere.
    fn is_defined(&self, config: &Config, task: &TaskId) -> Result<(), ServiceError> {
        let work = self.plan.task(task.as_str()).and_then(|task| task.spec.work.as_deref());
        match (work, self.by.actor.kind) {
            (Some(work), ActorKind::Worker) if resolve(config, work).is_err() => {
                let whom = format!("executor {}, which is not defined here", work.executor);
                Err(self.refuse(task, whom, "take it"))
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Leaves what people defined elsewhere may have to end to those people.
    fn is_surely_no_gate(
        &self,
        config: &Config,
        task: &TaskId,
        wanted: &'static str,
    ) -> Result<(), ServiceError> {
        let is_person = matches!(self.by.actor.kind, ActorKind::Person | ActorKind::System);
        let work = self.plan.task(task.as_str()).and_then(|task| task.spec.work.as_deref());
        match work {
            Some(work) if !is_person && !is_human(config, work) && may_be_gate(config, self.plan, task) => {
                let whom = format!("executor {}, which is not defined here", work.executor);
                Err(self.refuse(task, whom, wanted))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn not_its_task(&self) -> ServiceError {
        let (plan, by) = (self.plan.id().to_string(), self.by.actor.to_string());
        Refusal::NotItsTask { plan, by }.into()
    }

    fn refuse(&self, task: &TaskId, whom: String, wanted: &'static str) -> ServiceError {
        self.refuse_in(self.plan.id(), task, whom, wanted)
    }

    fn refuse_in(&self, plan: &PlanId, task: &TaskId, whom: String, wanted: &'static str) -> ServiceError {
        let (plan, task, by) = (plan.to_string(), task.to_string(), self.by.actor.to_string());
        Refusal::HumanGate { plan, task, whom, by, wanted }.into()
    }

    /// Returns the record of a person who ends a task for people.
    fn end(
        &self,
        config: &Config,
        task: &TaskId,
        (outcome, answer): (GateOutcome, Option<String>),
        wanted: &'static str,
        verb: PersonVerb,
    ) -> Result<Command, ServiceError> {
        self.only_people(task, wanted)?;
        let act = PersonAct::on_task(verb, self.plan.id(), task);
        let (verb, what) = match outcome {
            GateOutcome::Cancelled => ("cancel a task for people", "cancelling a task for people"),
            GateOutcome::Done | GateOutcome::Failed | GateOutcome::Skipped | GateOutcome::Answered => {
                ("end a task for people", "ending a task for people")
            }
        };
        let presence = self.by.proved(&ProvedAct { verb, what, act: act.clone() })?;
        let gate = self.record(&presence, task, outcome, answer.as_deref());
        if let Some(signed) = self.by.signed.as_deref() {
            let GateRecord { digest, attempt, outcome, answer, .. } = &signed.gate;
            let as_signed = (digest, attempt, outcome, answer)
                == (&gate.digest, &gate.attempt, &gate.outcome, &gate.answer);
            if signed.task != *task || !as_signed {
                let (plan, seen) = (self.plan.id().clone(), signed.gate.version);
                let (current, changes) = (self.plan.version(), Vec::new());
                return Err(ServiceError::ChangedSinceSeen { plan, seen, current, changes });
            }
            return Ok(Command::RecordGate { task: task.clone(), gate: Box::new(signed.gate.clone()) });
        }
        // To stop something, presence is enough; what is opened has to be proved as the workers demand.
        let opens = matches!(outcome, GateOutcome::Done | GateOutcome::Answered);
        let (needed, given) = (config.approval.proof, presence.proof);
        if opens && given < needed {
            return Err(ServiceError::NeedsStrongerProof { act, needed, given });
        }
        let about = (self.plan.id(), task);
        let gate = self.authenticator.attest_gate(&config.approval, about, gate, None)?;
        Ok(Command::RecordGate { task: task.clone(), gate: Box::new(gate) })
    }

    /// Returns the record of what a person does to a task of the plan as it is now.
    pub(crate) fn record(
        &self,
        presence: &Presence,
        task: &TaskId,
        outcome: GateOutcome,
        answer: Option<&str>,
    ) -> GateRecord {
        let approval = self.plan.state().approval.as_ref().and_then(|approval| approval.work.as_ref());
        GateRecord {
            version: self.plan.version(),
            digest: approval.map(|work| work.digest.clone()).unwrap_or_default(),
            attempt: self.plan.task(task.as_str()).map_or(0, |task| task.state.attempt),
            ..gate_record(self.by, presence, self.now, outcome, answer)
        }
    }

    /// Returns the tasks without subtasks that a cancellation would end.
    fn open_members(&self, task: &TaskId) -> Vec<TaskId> {
        let mut open = self.plan.with_members(from_ref(task));
        open.retain(|id| {
            let known = self.plan.task(id.as_str());
            self.plan.children(id.as_str()).is_empty()
                && known.is_some_and(|task| !task.state.status.is_finished())
        });
        // A task that is only added by the same write may be any.
        if self.plan.task(task.as_str()).is_none() {
            open.push(task.clone());
        }
        open
    }

    /// A person who has not proved to be one does not undo the stops of people, and in a plan that people approve is not more
    /// than an agent. Agents and workers never are: the core refuses them.
    fn keep_stops(&self, commands: &[Command]) -> Result<(), ServiceError> {
        if self.by.actor.kind != ActorKind::Person || self.by.is_present() {
            return Ok(());
        }
        let needs_approval = self.plan.state().approval_required;
        let mut plan = Cow::Borrowed(self.plan);
        for (place, command) in commands.iter().enumerate() {
            // What is refused is refused again when the write is decided.
            let Ok(events) = plan.decide(&self.by.actor, self.now, command) else { return Ok(()) };
            let undoes = self.reopens_refused_gate(&plan, &events)
                || match plan.undoes_no_stop(&events) {
                    // In a plan of one's own, a skipped task may be taken up again.
                    Err(Refusal::StoppedByPerson { did, .. }) => {
                        needs_approval || !did.starts_with("skipped ")
                    }
                    Err(_) | Ok(()) => false,
                };
            let proved = if undoes {
                Some(("undo a person's stop", "undoing a person's stop"))
            } else if plan.reruns_done_work(&events) {
                Some(("rerun finished machine work", "rerunning finished machine work"))
            } else if needs_approval && self.is_refused_to_agents(&plan, command) {
                Some(("act on approved work or a check", "acting on approved work or a check"))
            } else {
                None
            };
            if let Some((verb, what)) = proved {
                self.by.proved(&ProvedAct { verb, what, act: undoing(self.plan, command) })?;
            }
            if place + 1 < commands.len() {
                let plan = plan.to_mut();
                events.iter().for_each(|event| plan.evolve(event, self.now));
            }
        }
        Ok(())
    }

    /// Whether these events ask again what a person refused.
    fn reopens_refused_gate(&self, plan: &Plan, events: &[Event]) -> bool {
        let is_refused = |task: &TaskId| {
            let gate = plan.task(task.as_str()).and_then(|task| task.state.gate());
            gate.is_some_and(|gate| gate.outcome == GateOutcome::Failed)
        };
        events.iter().any(|event| {
            let again = if let Event::TasksRetried { tasks } | Event::TasksReset { tasks } = event {
                tasks
            } else {
                return false;
            };
            again.iter().any(is_refused)
        })
    }

    /// Whether an agent may not do this to a task because of its work, its check or the work behind it. That another one holds
    /// the task is no reason.
    fn is_refused_to_agents(&self, plan: &Plan, command: &Command) -> bool {
        let work_of = |task: &TaskId| plan.task(task.as_str()).and_then(|task| task.spec.work.as_deref());
        match acted_on(command) {
            Some((task, Act::Start | Act::End(_))) if work_of(task).is_some() => return true,
            // Stopping needs no proof, and answers are proved where they are given.
            Some((_, Act::Cancel | Act::Answer(_))) => return false,
            Some((_, Act::Start | Act::End(_) | Act::Reopen)) => {}
            None => {
                let adds = matches!(
                    command,
                    Command::AddTasks { .. }
                        | Command::MoveTask { .. }
                        | Command::DecomposeTask { .. }
                        | Command::RetryPlan
                );
                if !adds {
                    return false;
                }
            }
        }
        let agent = Actor::agent(self.by.actor.name.clone());
        matches!(
            plan.decide(&agent, self.now, command),
            Err(Refusal::OnlyAPerson { .. } | Refusal::AwaitsCheck { .. } | Refusal::Blocked { .. })
        )
    }
}

/// What a person does where it is proved that they act.
fn undoing(plan: &Plan, command: &Command) -> PersonAct {
    let on_task = |verb: PersonVerb, task: &TaskId| PersonAct::on_task(verb, plan.id(), task);
    match acted_on(command) {
        Some((task, Act::Start)) => return on_task(PersonVerb::Start, task),
        Some((task, Act::Reopen)) => return on_task(PersonVerb::Retry, task),
        Some((task, Act::End((outcome, _)))) => {
            return on_task(
                match outcome {
                    GateOutcome::Done | GateOutcome::Answered => PersonVerb::Done,
                    GateOutcome::Failed => PersonVerb::Fail,
                    GateOutcome::Skipped => PersonVerb::Skip,
                    GateOutcome::Cancelled => PersonVerb::Cancel,
                },
                task,
            );
        }
        Some((_, Act::Cancel | Act::Answer(_))) | None => {}
    }
    if let Command::UnholdTask { task } = command {
        return on_task(PersonVerb::Unhold, task);
    }
    if let Command::RequestApproval { .. } = command {
        // Who takes back a rejection can approve at once.
        return PersonAct::on_plan(PersonVerb::Approve, plan.id());
    }
    let verbs = [
        (Command::Unarchive, PersonVerb::Unarchive),
        (Command::RetryPlan, PersonVerb::Retry),
        (Command::Resume, PersonVerb::Resume),
        (Command::Activate, PersonVerb::Run),
    ];
    let known = verbs.iter().find(|(known, _)| known == command);
    PersonAct::on_plan(known.map_or(PersonVerb::Edit, |(_, verb)| *verb), plan.id())
}

/// What a command does to a task.
pub(crate) enum Act {
    Start,
    End((GateOutcome, Option<String>)),
    Cancel,
    Answer(String),
    Reopen,
}

/// Whether a task is for people.
pub(crate) fn is_gate(config: &Config, plan: &Plan, task: &TaskId) -> bool {
    let work = plan.task(task.as_str()).and_then(|task| task.spec.work.as_deref());
    work.is_some_and(|work| is_human_or(config, work, || approved_as_human(plan).contains(&work.executor)))
}

/// Whether a task may be for people: in a plan that was approved, an executor that nothing here defines may be a person
/// where it was.
pub(crate) fn may_be_gate(config: &Config, plan: &Plan, task: &TaskId) -> bool {
    let work = plan.task(task.as_str()).and_then(|task| task.spec.work.as_deref());
    work.is_some_and(|work| is_human_or(config, work, || plan.state().approval.is_some()))
}

fn has_work(plan: &Plan, task: &TaskId) -> bool {
    plan.task(task.as_str()).is_some_and(|task| task.spec.work.is_some() || task.spec.check.is_some())
}

/// Returns the tasks that may wait for less after a command, or have ended.
fn loosened(plan: &Plan, command: &Command) -> Vec<TaskId> {
    if let Command::ReviseTask { task, changes } = command {
        let waits = changes.depends_on.is_some()
            || !changes.remove_dependencies.is_empty()
            || changes.when.is_some()
            || changes.work.is_some();
        return if waits { plan.with_members(from_ref(task)) } else { Vec::new() };
    }
    if let Command::CancelTask { task, .. }
    | Command::FinishTask { task, outcome: Outcome::Skipped { .. }, .. } = command
    {
        return plan.with_members(from_ref(task));
    }
    if let Command::RemoveTask { task, .. } | Command::MoveTask { task, parent: Some(_), .. } = command {
        let mut loosened = left_behind(plan, from_ref(task));
        loosened.extend(plan.with_members(from_ref(task)));
        return loosened;
    }
    Vec::new()
}

/// Returns what no longer waits for tasks that leave their places: the groups that they are part of, and what comes after.
fn left_behind(plan: &Plan, leaving: &[TaskId]) -> Vec<TaskId> {
    let parent = |id: &TaskId| plan.task(id.as_str()).and_then(|task| task.spec.parent.clone());
    let groups: HashSet<TaskId> =
        leaving.iter().flat_map(|id| std::iter::successors(parent(id), parent)).collect();
    groups.into_iter().chain(plan.tasks_behind(leaving)).collect()
}

/// Whether a command may change what any task waits for, or by which name others wait for it.
fn may_change_all(command: &Command) -> bool {
    let renames = matches!(command, Command::RevisePlan(changes) if changes.owner.is_some());
    renames || matches!(command, Command::Replace(_) | Command::Restore { .. })
}

/// Returns the tasks that wait for something else afterwards, or have ended, with everything below them.
fn with_changed_waits(plan: &Plan, after: &Plan) -> Vec<TaskId> {
    let (mut changed, mut leaving) = (Vec::new(), Vec::new());
    for (task, _) in plan.tasks() {
        let id = &task.spec.id;
        let Some(then) = after.task(id.as_str()) else {
            leaving.push(id.clone());
            continue;
        };
        let (old, new) = (&task.spec, &then.spec);
        if old.parent != new.parent {
            leaving.push(id.clone());
        }
        let waits_alike = (&old.depends_on, old.when, &old.work, &old.check)
            == (&new.depends_on, new.when, &new.work, &new.check);
        let ends = then.state.status.is_finished() && !task.state.status.is_finished();
        if !waits_alike || ends || task.state.received != then.state.received {
            changed.push(id.clone());
        }
    }
    changed.extend(left_behind(plan, &leaving));
    changed.append(&mut leaving);
    plan.with_members(&changed)
}

/// Returns the tasks of other plans that tasks of this one wait for.
pub(crate) fn external(plan: &Plan) -> Vec<ExternalTaskRef> {
    let tasks = plan.tasks().map(|(task, _)| task);
    tasks.flat_map(|task| task.spec.depends_on.iter().filter_map(Dependency::external)).cloned().collect()
}

/// Whether a command ends a plan, or puts it away, with the tasks that are open.
fn ends_plan(command: &Command) -> bool {
    matches!(command, Command::FinishPlan { .. } | Command::Archive)
}

pub(crate) fn acted_on(command: &Command) -> Option<(&TaskId, Act)> {
    if let Command::StartTask { task, .. } | Command::QueueTask { task, .. } = command {
        return Some((task, Act::Start));
    }
    if let Command::FinishTask { task, outcome, .. } = command {
        return Some((task, Act::End(end_of(outcome))));
    }
    if let Command::CancelTask { task, .. } = command {
        return Some((task, Act::Cancel));
    }
    if let Command::AnswerQuestion { task, answer } = command {
        return Some((task, Act::Answer(answer.clone())));
    }
    if let Command::RetryTask { task } = command { Some((task, Act::Reopen)) } else { None }
}

fn end_of(outcome: &Outcome) -> (GateOutcome, Option<String>) {
    match outcome {
        Outcome::Done { result, output, .. } => {
            let answer = output.as_ref().map(Json::as_str).map(str::to_owned).or_else(|| result.clone());
            (GateOutcome::Done, answer)
        }
        Outcome::Failed { error, .. } => (GateOutcome::Failed, Some(error.clone())),
        Outcome::Skipped { reason } => (GateOutcome::Skipped, reason.clone()),
    }
}

/// Returns the record of a person who is present.
fn gate_record(
    by: &Caller,
    presence: &Presence,
    at: Timestamp,
    outcome: GateOutcome,
    answer: Option<&str>,
) -> GateRecord {
    GateRecord {
        by: by.actor.clone(),
        at,
        version: 0,
        digest: String::new(),
        attempt: 0,
        outcome,
        answer: answer.map(|answer| format!("sha256:{}", hex(&sha256(answer.as_bytes())))),
        proof: presence.proof,
        via: presence.via.clone(),
        // Filled in where records are sealed.
        account: String::new(),
        place: None,
        nonce: String::new(),
        seal: None,
        signature: None,
    }
}

/// Takes from a draft what only a person can have done: the ends of tasks for people, unless a person who is present
/// brings the draft, and skipped work. What has ended for good stays as it is.
///
/// Records are sealed for the plan's id, so that a draft without one cannot bring any.
pub(crate) fn without_peoples_acts(
    config: &Config,
    by: &Caller,
    draft: &mut Draft,
    now: Timestamp,
    (id, authenticator): (Option<&PlanId>, &Authenticator),
) -> Result<(), AttestError> {
    let ended = draft.has_ended();
    let presence = by.presence.as_ref().filter(|_| by.is_present());
    for task in &mut draft.tasks {
        let (spec, state) = (&task.spec, &mut task.state);
        // The core drops everything else that a draft cannot bring.
        state.aside = None;
        let is_for_people = spec.work.as_deref().is_some_and(|work| is_human(config, work));
        let outcome = match state.status {
            Status::Pending | Status::Running => continue,
            Status::Skipped if spec.skip || state.because_of.is_some() => continue,
            Status::Done => GateOutcome::Done,
            Status::Failed => GateOutcome::Failed,
            Status::Skipped => GateOutcome::Skipped,
            Status::Cancelled => GateOutcome::Cancelled,
        };
        let is_a_persons_skip = outcome == GateOutcome::Skipped
            && by.actor.kind != ActorKind::Person
            && (spec.work.is_some() || spec.check.is_some());
        match (is_for_people, presence.zip(id)) {
            (true, Some((presence, id))) => {
                let answer = state.output.as_ref().map(Json::as_str).or(state.result.as_deref());
                let gate = gate_record(by, presence, now, outcome, answer);
                let gate = GateRecord { attempt: state.attempt, ..gate };
                let gate = authenticator.attest_gate(&config.approval, (id, &spec.id), gate, None)?;
                state.aside.get_or_insert_default().gate = Some(gate);
            }
            (true, None) if !ended => *state = reopened(state),
            (false, _) if is_a_persons_skip && !ended => *state = reopened(state),
            (true, None) | (false, _) => {}
        }
    }
    Ok(())
}

/// Whether a draft says that a task for people has ended.
pub(crate) fn brings_peoples_acts(config: &Config, draft: &Draft) -> bool {
    let mut ended = draft.tasks.iter().filter(|task| task.state.status.is_finished());
    ended.any(|task| task.spec.work.as_deref().is_some_and(|work| is_human(config, work)))
}

fn reopened(state: &TaskState) -> TaskState {
    TaskState { attempt: state.attempt, created_at: state.created_at, ..TaskState::default() }
}
