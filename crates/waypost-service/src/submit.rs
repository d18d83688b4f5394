//! From a draft to an active plan in the store: compares it with an existing plan, assigns tasks without work to an
//! executor, and determines whether a person must approve. Prompts no one and runs nothing.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use waypost_config::{Config, Definitions};
use waypost_core::{
    ActorKind, Command, Difference, Draft, Event, Json, Phase, Plan, PlanChanges, PlanId, Problem, Refusal,
    Status, Task, TaskChanges, TaskId, TaskState, Timestamp, Work, differences,
};
use waypost_formats::alternative_id;
use waypost_store::WriteError;

use crate::admission;
use crate::approval::may_start;
use crate::authenticity::Authenticator;
use crate::caller::Caller;
use crate::error::ServiceError;
use crate::gate::is_human;
use crate::lifecycle::owned_by_creator;
use crate::own_record::OwnRecord;
use crate::preview::Preview;
use crate::service::{Guard, RecordRule, Service, Terms};

/// Versions of a plan's history read at a time.
const HISTORY_PAGE: usize = 1_000;

/// A submitted plan, new or already in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The id of the plan.
    pub plan: PlanId,
    /// Whether the plan is new.
    pub made: bool,
}

/// Why a draft could not be submitted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// A plan with this id exists and has different content.
    #[error("plan {plan} is in the store already, and asks for something else")]
    OtherContent {
        /// The id of the plan.
        plan: PlanId,
        /// The differences between the plan and the draft.
        differences: Vec<Difference>,
    },
    /// An agent wrote tasks of the plan as things to do, and no person has approved them for machines.
    #[error("plan {plan} has tasks that an agent wrote and that nobody has approved for {executor}")]
    NotForMachines {
        /// The id of the plan.
        plan: PlanId,
        /// The executor that would run the tasks.
        executor: String,
    },
    /// The store or the plan refused the write.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// A draft that this configuration can run. If an executor was named, its tasks without work are assigned to it.
#[derive(Clone, Debug)]
pub struct RunnableDraft {
    draft: Arc<Draft>,
    executor: Option<String>,
    /// The id that an import gives the plan if another one has its own.
    alternative: Option<PlanId>,
}

impl RunnableDraft {
    /// Assigns the tasks without work to `executor`. Fails with all problems that keep the draft from running here.
    pub fn new(config: &Config, mut draft: Draft, executor: Option<&str>) -> Result<Self, Vec<Problem>> {
        let alternative = alternative_id(&draft);
        if let Some(executor) = executor {
            assign_in_draft(&mut draft, executor);
        }
        let problems = admission::problems(config, &draft);
        if problems.is_empty() {
            Ok(Self { draft: Arc::new(draft), executor: executor.map(str::to_owned), alternative })
        } else {
            Err(problems)
        }
    }

    /// Like [`RunnableDraft::new`], for a draft that is stored and not run now: names that are unknown here may be
    /// defined where it runs. Returns what keeps it from running here.
    pub fn to_store(
        config: &Config,
        mut draft: Draft,
        executor: Option<&str>,
    ) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let alternative = alternative_id(&draft);
        if let Some(executor) = executor {
            assign_in_draft(&mut draft, executor);
        }
        let problems = admission::problems(config, &draft);
        if problems.iter().any(admission::forbids_writing) {
            return Err(problems);
        }
        let executor = executor.map(str::to_owned);
        Ok((Self { draft: Arc::new(draft), executor, alternative }, problems))
    }

    /// Returns the draft as it would run.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Returns the draft without the executor.
    pub fn into_draft(self) -> Draft {
        Arc::unwrap_or_clone(self.draft)
    }
}

impl Service {
    /// Returns the stored plan that submitting this draft again returns, if there is one. Writes nothing.
    pub fn find_submitted(&self, draft: &RunnableDraft) -> Result<Option<PlanId>, SubmitError> {
        let RunnableDraft { draft, executor, alternative } = draft;
        let Some(id) = &draft.id else { return Ok(None) };
        let is_same = |id: &PlanId| match self.plans().with_plan(id, Plan::to_draft) {
            Ok(stored) => is_the_same(id, stored, draft, executor.as_deref()).map(|()| Some(id.clone())),
            Err(WriteError::NotFound(_)) => Ok(None),
            Err(error) => Err(ServiceError::from(error).into()),
        };
        let found = is_same(id);
        let imported = alternative.as_ref().filter(|_| found.is_err()).and_then(|id| is_same(id).ok()?);
        imported.map_or(found, |id| Ok(Some(id)))
    }

    /// Stores a draft. The same id with the same tasks is the same plan, so that submitting twice creates it once.
    pub fn submit(&self, by: &Caller, submitted: &RunnableDraft) -> Result<Submitted, SubmitError> {
        by.may_edit()?;
        // Another caller may create the same id at the same moment; the second iteration finds it.
        for _ in 0..2 {
            if let Some(plan) = self.find_submitted(submitted)? {
                return Ok(Submitted { plan, made: false });
            }
            let config = self.config()?;
            let mut draft = Arc::clone(&submitted.draft);
            let id = self.id_for(&config, &draft, draft.id.clone())?;
            // A draft that tells nothing of the past and has its owner is stored as it is, without a second copy.
            if by.actor.kind == ActorKind::Agent || draft.tasks.iter().any(|task| has_past(&task.state)) {
                let draft = Arc::make_mut(&mut draft);
                owned_by_creator(by, draft);
                self.take_peoples_acts(&config, by, draft, id.as_ref())?;
            }
            let required = config.approval.policy.required();
            match self.plans().create_shared(id, by.actor.clone(), draft, required) {
                Ok(committed) => return Ok(Submitted { plan: committed.plan, made: true }),
                Err(WriteError::Refused(Refusal::AlreadyExists {})) => {}
                Err(error) => return Err(ServiceError::from(error).into()),
            }
        }
        Err(ServiceError::from(Refusal::AlreadyExists {}).into())
    }
}

/// Whether the state of a task says that somebody did something.
fn has_past(state: &TaskState) -> bool {
    state.status != Status::Pending || state.aside.is_some()
}

fn is_the_same(
    id: &PlanId,
    mut known: Draft,
    draft: &Draft,
    executor: Option<&str>,
) -> Result<(), SubmitError> {
    if let Some(executor) = executor {
        assign_in_draft(&mut known, executor);
    }
    if asks_the_same(&known, draft) {
        return Ok(());
    }
    let differences = differences(&asked(&known), &asked(draft));
    Err(SubmitError::OtherContent { plan: id.clone(), differences })
}

/// Whether a draft has the same tasks as the stored plan, each with the same work.
fn asks_the_same(known: &Draft, draft: &Draft) -> bool {
    let by_id: HashMap<&TaskId, &Task> = known.tasks.iter().map(|task| (&task.spec.id, task)).collect();
    let is_same = |task: &Task| {
        let other = by_id.get(&task.spec.id).map(|other| &other.spec);
        other.is_some_and(|other| other.same_work_as(&task.spec) && other.locks == task.spec.locks)
    };
    known.tasks.len() == draft.tasks.len() && draft.tasks.iter().all(is_same)
}

/// Returns a draft without its state and plan fields, so that only the tasks are compared.
fn asked(draft: &Draft) -> Draft {
    let mut asked = draft.clone();
    for task in &mut asked.tasks {
        task.state = Default::default();
    }
    asked.spec = Default::default();
    asked
}

/// The result of starting a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The plan is active.
    Runs,
    /// A person has to approve this version first.
    NeedsApproval {
        /// The version that was read.
        version: u64,
    },
}

impl Service {
    /// Whether a plan asks machines to do exactly what a draft says.
    pub fn is_as_written(&self, plan: &PlanId, draft: &Draft) -> Result<bool, ServiceError> {
        let written = Plan::from_trusted_draft(plan.clone(), draft.clone()).work_digest();
        self.read(plan, |plan| plan.work_digest() == written)
    }

    /// Refuses a plan that cannot be started: an archived, paused or ended one.
    pub fn startable(&self, by: &Caller, plan: &PlanId) -> Result<Phase, ServiceError> {
        by.may_edit()?;
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        self.read(plan, |plan| match plan.decide(&by.actor, now, &Command::Activate) {
            Err(refusal) if !refusal.awaits_approval() => Err(refusal.into()),
            Ok(_) | Err(_) => Ok(plan.state().phase),
        })?
    }

    /// Activates a plan, unless a person must approve it first. A person who starts their own plan leaves the record that
    /// workers ask for; `named` says that they named the file that it was stored from.
    pub fn start(
        &self,
        by: &Caller,
        plan: &PlanId,
        named: bool,
        guard: Guard,
    ) -> Result<Start, ServiceError> {
        let rule = if named { RecordRule::LeaveNamed } else { RecordRule::Leave };
        if guard.known_version.is_some() {
            self.check_guard(by, plan, guard)?;
        }
        let phase = self.startable(by, plan)?;
        let starts = self.start_rule(by, plan, rule)?;
        let (version, may_start, allowed) = self.read(plan, |plan| {
            let may_start = starts.has_approval(plan);
            (plan.version(), may_start, may_start || starts.leaves_record(plan))
        })?;
        if !allowed {
            return Ok(Start::NeedsApproval { version });
        }
        if may_start && phase == Phase::Active {
            return Ok(Start::Runs);
        }
        self.write(by, plan, vec![Command::Activate], Terms { guard, record: rule, ..Terms::default() })?;
        self.read(plan, |plan| match starts.has_approval(plan) {
            true => Start::Runs,
            false => Start::NeedsApproval { version: plan.version() },
        })
    }

    /// Prepares the rule by which a plan starts here, without another approval, when a caller asks for it.
    pub(crate) fn start_rule(
        &self,
        by: &Caller,
        plan: &PlanId,
        rule: RecordRule,
    ) -> Result<StartRule, ServiceError> {
        let (config, authenticator) = (self.config()?, self.authenticator()?.clone());
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        let record = self.own_record(by, plan, rule)?;
        Ok(StartRule { config, authenticator, now, record })
    }
}

/// Whether a plan starts without another approval.
pub(crate) struct StartRule {
    config: Arc<Config>,
    authenticator: Authenticator,
    now: Timestamp,
    record: Option<OwnRecord>,
}

impl StartRule {
    /// Whether a worker with this configuration would start the plan's tasks that are not for people.
    fn has_approval(&self, plan: &Plan) -> bool {
        let (settings, state) = (&self.config.approval, plan.state());
        if state.approval_required && state.approval.is_none() {
            return false;
        }
        let is_for_people = |task: &Task| {
            task.spec.check.is_none()
                && task.spec.work.as_deref().is_none_or(|work| is_human(&self.config, work))
        };
        if plan.tasks().all(|(task, _)| is_for_people(task)) {
            return true;
        }
        let facts = self.authenticator.facts(settings, plan, self.now);
        may_start(settings, &Definitions::of(&self.config), plan, "", &facts).is_ok()
    }

    /// The same, or the caller leaves the record that workers ask for.
    pub(crate) fn allows(&self, plan: &Plan) -> bool {
        self.has_approval(plan) || self.leaves_record(plan)
    }

    fn leaves_record(&self, plan: &Plan) -> bool {
        self.record.as_ref().is_some_and(|record| record.may_leave(plan))
    }
}

fn work(executor: &str) -> Work {
    Work { executor: executor.to_owned(), inputs: Json::empty_object(), shape: None }
}

/// Assigns every task of a draft that has neither work nor children to an executor.
fn assign_in_draft(draft: &mut Draft, executor: &str) {
    let parents: BTreeSet<TaskId> = draft.tasks.iter().filter_map(|task| task.spec.parent.clone()).collect();
    for task in &mut draft.tasks {
        if task.spec.work.is_none() && !parents.contains(&task.spec.id) {
            task.spec.work = Some(Box::new(work(executor)));
        }
    }
}

/// What a person changes in a stored plan by running it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunChanges<'a> {
    /// The queue to place the plan on.
    pub queue: Option<&'a str>,
    /// The executor for tasks without work.
    pub executor: Option<&'a str>,
}

impl Service {
    /// Returns what a person would approve who runs a plan with these changes; `None` if they change nothing, or need no
    /// approval. Writes nothing, so that the person can be asked first.
    pub fn preview_run(
        &self,
        by: &Caller,
        plan: &PlanId,
        changes: RunChanges<'_>,
    ) -> Result<Option<Preview>, ServiceError> {
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        let (commands, own) = self.read(plan, |plan| {
            let mut commands =
                changes.executor.map(|executor| assignments(plan, executor)).unwrap_or_default();
            if let Some(queue) = changes.queue.filter(|queue| *queue != plan.spec().queue) {
                let changes = PlanChanges { queue: Some(queue.to_owned()), ..PlanChanges::default() };
                commands.push(Command::RevisePlan(Box::new(changes)));
            }
            let own = plan.state().created_by.as_ref().is_some_and(|actor| actor.kind == ActorKind::Person);
            (commands, own)
        })?;
        if commands.is_empty() {
            return Ok(None);
        }
        let starts = self.start_rule(by, plan, RecordRule::Leave)?;
        let is_open = !own || self.machines_wrote(plan, &commands)?;
        let after = |plan: &Plan| plan.after(&by.actor, now, &commands).into_owned();
        if !is_open && self.read(plan, |plan| starts.allows(&after(plan)))? {
            return Ok(None);
        }
        self.preview_as(plan, |plan| Cow::Owned(after(plan))).map(Some)
    }

    /// Assigns every pending task of a stored plan that has neither work nor subtasks to an executor. This is a normal
    /// write: the history shows the actor, and the rules of approval apply. A to-do list that was not written by a person
    /// was never meant for machines: a person who is present assigns it, and then has to approve what they see.
    pub fn assign(&self, by: &Caller, plan: &PlanId, executor: &str) -> Result<(), SubmitError> {
        let (mut commands, phase, is_approved, own) = self.read(plan, |plan| {
            let state = plan.state();
            let own = state.created_by.as_ref().is_some_and(|actor| actor.kind == ActorKind::Person);
            (assignments(plan, executor), state.phase, state.approval.is_some(), own)
        })?;
        if commands.is_empty() {
            return Ok(());
        }
        if !own || self.machines_wrote(plan, &commands)? {
            let is_over = phase.is_finished();
            if phase != Phase::Draft && !is_over && !by.is_present() {
                let (plan, executor) = (plan.clone(), executor.to_owned());
                return Err(SubmitError::NotForMachines { plan, executor });
            }
            // Words that nobody has seen as work get no record: what the plan had counts no more.
            match phase {
                Phase::Draft => {
                    let message = format!("tasks without work are to be done by {executor}");
                    commands.push(Command::RequestApproval { message });
                }
                Phase::Active | Phase::Paused if is_approved => commands.insert(0, Command::Revoke),
                Phase::Active | Phase::Paused => commands.push(Command::Revoke),
                Phase::AwaitingApproval | Phase::Completed | Phase::Failed | Phase::Cancelled => {}
            }
        }
        self.write(by, plan, commands, Guard::NONE)?;
        Ok(())
    }
}

impl Service {
    /// Whether an agent or a worker wrote or changed one of the tasks that get work. Such words would be run.
    fn machines_wrote(&self, plan: &PlanId, assignments: &[Command]) -> Result<bool, ServiceError> {
        let assigned = assignments.iter().filter_map(|command| {
            if let Command::ReviseTask { task, .. } = command { Some(task) } else { None }
        });
        let assigned: BTreeSet<&TaskId> = assigned.collect();
        let wrote = |event: &Event| {
            if let Event::TasksAdded { tasks, .. } = event {
                return tasks.iter().any(|task| assigned.contains(&task.id));
            }
            if let Event::TaskRevised { task } = event { assigned.contains(&task.id) } else { false }
        };
        let mut after = 0;
        loop {
            let page = self.plans().history(plan, after, HISTORY_PAGE)?;
            let Some(last) = page.last() else { return Ok(false) };
            after = last.version;
            let mut by_machines =
                page.iter().filter(|one| matches!(one.actor.kind, ActorKind::Agent | ActorKind::Worker));
            if by_machines.any(|one| one.events.iter().any(wrote)) {
                return Ok(true);
            }
        }
    }
}

fn assignments(plan: &Plan, executor: &str) -> Vec<Command> {
    let open = plan.tasks().map(|(task, _)| task).filter(|task| {
        task.spec.work.is_none()
            && task.state.status == Status::Pending
            && plan.children(task.spec.id.as_str()).is_empty()
    });
    open.map(|task| {
        let changes = TaskChanges { work: Some(Some(work(executor))), ..TaskChanges::default() };
        Command::ReviseTask { task: task.spec.id.clone(), changes: Box::new(changes) }
    })
    .collect()
}
