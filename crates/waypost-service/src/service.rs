//! The single entry point to plans: every write of every front end and driver goes through it. Commands are built from
//! the plan inside the store's transaction, so the plan cannot change between read and write.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;
use waypost_config::Config;
use waypost_core::{ActorKind, Command, Plan, PlanId, Problem, TaskId, Timestamp, nearest};
use waypost_store::{AppendCommands, Committed, PlanStore, Read, WriteError, WriteRequest};

use crate::admission;
use crate::authenticity::Authenticator;
use crate::caller::Caller;
use crate::error::{IdOf, ServiceError, Subject, UnknownPlan};
use crate::gate::{Gatekeeper, OtherPlans};
use crate::merge_question::AskedQuestions;
use crate::preview::ShownPreviews;
use crate::sharing::FindBranch;

/// Loads the configuration when an operation first needs it.
pub type LoadConfig = Box<dyn Fn() -> Result<Arc<Config>, ServiceError> + Send + Sync>;

enum ConfigSource {
    Loaded(Arc<Config>),
    /// Most commands of the CLI need no configuration, and loading it would cost more than they do.
    OnDemand(OnceLock<Arc<Config>>, LoadConfig),
}

/// All operations on the plans of one store.
#[derive(Clone)]
pub struct Service {
    plans: Arc<PlanStore>,
    config: Arc<ConfigSource>,
    authenticator: Authenticator,
    /// The same with the id of the store, once it was needed.
    in_store: Arc<OnceLock<Authenticator>>,
    shown: Arc<ShownPreviews>,
    asked: Arc<AskedQuestions>,
    shared_branch: Option<FindBranch>,
    /// Set once the local branch was found to be where the store left it.
    branch_checked: Arc<OnceLock<()>>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Service").finish_non_exhaustive()
    }
}

/// The version that the caller has read. If it is set and the plan has changed since, nothing is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// The version that the caller has read.
    pub known_version: Option<u64>,
}

impl Guard {
    /// Writes to the current version, whatever it is.
    pub const NONE: Self = Self { known_version: None };

    /// Writes only if this is still the newest version.
    pub fn at(version: u64) -> Self {
        Self { known_version: Some(version) }
    }
}

impl From<Option<u64>> for Guard {
    fn from(known_version: Option<u64>) -> Self {
        Self { known_version }
    }
}

/// The result of a write.
pub type WriteResult = Result<WriteReply, ServiceError>;

/// A completed write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteReply {
    /// The id of the plan.
    pub plan: PlanId,
    /// The version of the plan after the write.
    pub version: u64,
    /// Whether anything was written. A request that changes nothing creates no version.
    pub changed: bool,
    /// The ids of the added tasks, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<TaskId>,
    /// Dependencies on tasks outside the plan that do not exist yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Problems that keep the plan from running with this configuration.
    #[serde(skip)]
    pub not_runnable: Vec<Problem>,
}

impl From<&Committed> for WriteReply {
    fn from(committed: &Committed) -> Self {
        Self {
            plan: committed.plan.clone(),
            version: committed.version,
            changed: committed.changed,
            added: Vec::new(),
            warnings: committed.warnings(),
            not_runnable: Vec::new(),
        }
    }
}

impl WriteReply {
    /// Returns everything in a valid write that the author should know, one clause each.
    pub fn notes(&self) -> Vec<String> {
        let not_runnable = self
            .not_runnable
            .iter()
            .map(|problem| format!("not runnable with this configuration: {problem}"));
        self.warnings.iter().cloned().chain(not_runnable).collect()
    }
}

/// The result of building commands: the problems that keep the plan from running here, and the builder's own value.
type Built<T> = Result<(Vec<Problem>, T), ServiceError>;

/// The conditions of a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) guard: Guard,
    pub(crate) lease_seconds: Option<u32>,
    pub(crate) record: RecordRule,
}

/// What a write by a person does to the record that the plan is their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecordRule {
    /// An edit renews a record that was good before it.
    #[default]
    Renew,
    /// It stays as it is.
    Keep,
    /// Starting or resuming the plan leaves one.
    Leave,
    /// Starting a plan by its file leaves one: what the person named is what is stored.
    LeaveNamed,
}

impl From<Guard> for Terms {
    fn from(guard: Guard) -> Self {
        Self { guard, ..Self::default() }
    }
}

impl Terms {
    /// Terms of a write by which a person starts or resumes a plan.
    pub(crate) fn starting(guard: Guard) -> Self {
        Self { guard, record: RecordRule::Leave, ..Self::default() }
    }
}

impl Service {
    /// Creates a service for a process that has already loaded its configuration. Approvals are sealed with a key of this
    /// process, unless [`Service::with_authenticator`] names the account.
    pub fn new(plans: Arc<PlanStore>, config: Arc<Config>) -> Self {
        Self::of(plans, ConfigSource::Loaded(config))
    }

    fn of(plans: Arc<PlanStore>, config: ConfigSource) -> Self {
        let (authenticator, in_store) = (Authenticator::default(), Arc::default());
        Self {
            plans,
            config: Arc::new(config),
            authenticator,
            in_store,
            shown: Arc::default(),
            asked: Arc::default(),
            shared_branch: None,
            branch_checked: Arc::default(),
        }
    }

    /// Returns the service with the branch that shared plans travel on: before it first names a task, it
    /// reads what is new there.
    #[must_use]
    pub fn with_shared_branch(self, find: FindBranch) -> Self {
        Self { shared_branch: Some(find), branch_checked: Arc::default(), ..self }
    }

    pub(crate) fn shared_branch(&self) -> Option<&FindBranch> {
        self.shared_branch.as_ref()
    }

    pub(crate) fn branch_checked(&self) -> &OnceLock<()> {
        &self.branch_checked
    }

    /// Returns the service with the account that vouches for approvals.
    #[must_use]
    pub fn with_authenticator(self, authenticator: Authenticator) -> Self {
        Self { authenticator, in_store: Arc::default(), ..self }
    }

    /// Returns the open questions of merges that were asked for last.
    pub(crate) fn asked(&self) -> &AskedQuestions {
        &self.asked
    }

    /// Returns the previews that were shown last.
    pub(crate) fn shown(&self) -> &ShownPreviews {
        &self.shown
    }

    /// Returns what vouches for approvals in the store.
    pub fn authenticator(&self) -> Result<&Authenticator, ServiceError> {
        if let Some(known) = self.in_store.get() {
            return Ok(known);
        }
        let found = self.authenticator.in_store(&**self.plans.store())?;
        Ok(self.in_store.get_or_init(|| found))
    }

    /// Creates a service for a process that may not need its configuration.
    pub fn with_config_on_demand(plans: Arc<PlanStore>, load: LoadConfig) -> Self {
        Self::of(plans, ConfigSource::OnDemand(OnceLock::new(), load))
    }

    /// Returns the plans, for reading.
    pub fn plans(&self) -> &Arc<PlanStore> {
        &self.plans
    }

    /// Returns the configuration, loading it if needed.
    pub fn config(&self) -> Result<Arc<Config>, ServiceError> {
        self.config.get()
    }

    /// Returns the plan with this id or id prefix.
    pub fn resolve_plan(&self, text: &str) -> Result<PlanId, ServiceError> {
        match self.plans.resolve(text) {
            Err(WriteError::NotFound(plan)) => {
                // The error is about the plan, even if no other one can be listed.
                let ids =
                    self.plans.store().query(|read| read.ids("", PLANS_COMPARED_MAX)).unwrap_or_default();
                let nearest = nearest(&plan, ids.iter().map(PlanId::as_str));
                Err(ServiceError::NoSuchPlan(Box::new(UnknownPlan { plan, nearest })))
            }
            resolved => Ok(resolved?),
        }
    }

    /// Fails with the changes if the plan has changed since the caller read it.
    pub fn check_guard(&self, by: &Caller, plan: &PlanId, guard: Guard) -> Result<(), ServiceError> {
        self.write(by, plan, Vec::new(), guard).map(drop)
    }

    /// Reads the current plan.
    pub fn read<R>(&self, plan: &PlanId, read: impl FnOnce(&Plan) -> R) -> Result<R, ServiceError> {
        Ok(self.plans.with_plan(plan, read)?)
    }

    /// Reads all that is intact of a plan, with the latest progress of its tasks and warnings about damage.
    pub fn view<R>(
        &self,
        plan: &PlanId,
        look: impl FnOnce(&Plan, &[String]) -> R,
    ) -> Result<R, ServiceError> {
        Ok(self.plans.view(plan, look)?)
    }

    /// Writes the commands that `build` creates from the plan inside the transaction as one version, if the
    /// configuration allows it. Also returns the second value of `build`.
    pub(crate) fn write_with<T: Send + 'static>(
        &self,
        by: &Caller,
        plan: &PlanId,
        terms: impl Into<Terms>,
        build: impl Fn(&Plan) -> Result<(Vec<Command>, T), ServiceError> + Send + Sync + 'static,
    ) -> Result<(WriteReply, T), ServiceError> {
        let (terms, build, mut others) = (terms.into(), Arc::new(build), Arc::<OtherPlans>::default());
        loop {
            let written = self.write_once(by, plan, terms, Arc::clone(&build), Arc::clone(&others));
            let Some(asked) = others.take_question().filter(|_| written.is_err()) else { return written };
            others = Arc::new(OtherPlans::known(self.look_at_other_plans(plan, asked)?));
        }
    }

    fn write_once<T: Send + 'static>(
        &self,
        by: &Caller,
        plan: &PlanId,
        Terms { guard, lease_seconds, record }: Terms,
        build: Arc<impl Fn(&Plan) -> Result<(Vec<Command>, T), ServiceError> + Send + Sync + 'static>,
        others: Arc<OtherPlans>,
    ) -> Result<(WriteReply, T), ServiceError> {
        let record = self.own_record(by, plan, record)?.map(Arc::new);
        // The result of the last call of `build`: the backend may retry the transaction.
        let built: Arc<Mutex<Option<Built<T>>>> = Arc::default();
        let (left, config) = (Arc::clone(&built), Arc::clone(&self.config));
        let append = record.clone().map(|record| {
            let left = Arc::clone(&built);
            let append = move |plan: &Plan, read: &mut dyn Read| match record.commands(plan, read) {
                Ok(commands) => Some(commands),
                Err(error) => {
                    *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(Err(error));
                    None
                }
            };
            Arc::new(append) as AppendCommands
        });
        let (caller, now) = (by.clone(), self.now_for(by)?);
        let is_offered = self.is_offered(by, plan)?;
        let authenticator = self.authenticator()?.clone();
        let build = move |plan: &Plan| {
            if let Some(record) = &record {
                record.observe(plan);
            }
            let made = build(plan).and_then(|(commands, extra)| {
                let gatekeeper = Gatekeeper {
                    by: &caller,
                    plan,
                    now,
                    authenticator: &authenticator,
                    others: &others,
                    is_offered,
                };
                let commands = gatekeeper.admit(commands, &|| config.get())?;
                let not_runnable = admit(&config, &commands)?;
                Ok((commands, (not_runnable, extra)))
            });
            let (commands, result) = match made {
                Ok((commands, rest)) => (Some(commands), Ok(rest)),
                Err(error) => (None, Err(error)),
            };
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            commands
        };
        let request = WriteRequest {
            plan: plan.clone(),
            by: by.actor.clone(),
            commands: Vec::new(),
            known_version: guard.known_version,
            lease_seconds,
        };
        let answer = self.plans.write_built(request, Arc::new(build), append);
        let left = built.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (answer, left) {
            (Ok(committed), Some(Ok((not_runnable, extra)))) => {
                Ok((WriteReply { not_runnable, ..WriteReply::from(&committed) }, extra))
            }
            (Err(_), Some(Err(error))) => Err(error),
            (Err(WriteError::Refused(refusal)), _) if refusal.awaits_approval() => {
                Err(ServiceError::NotApproved { plan: plan.clone(), refusal: Box::new(refusal) })
            }
            (Err(error), _) => Err(error.into()),
            (Ok(committed), Some(Err(_)) | None) => Err(ServiceError::no_such_plan(&committed.plan)),
        }
    }

    /// Returns the time of a person's act by the clock of the store. Others leave no records of their own.
    pub(crate) fn now_for(&self, by: &Caller) -> Result<Timestamp, ServiceError> {
        match by.actor.kind {
            ActorKind::Person => Ok(self.plans.store().query(|read| Ok(read.now()))?),
            ActorKind::Agent | ActorKind::Worker | ActorKind::System => Ok(Timestamp::from_micros(0)),
        }
    }

    /// Writes commands that do not depend on the state of the plan, as one version.
    pub(crate) fn write(
        &self,
        by: &Caller,
        plan: &PlanId,
        commands: Vec<Command>,
        terms: impl Into<Terms>,
    ) -> Result<WriteReply, ServiceError> {
        let (reply, ()) = self.write_with(by, plan, terms, move |_| Ok((commands.clone(), ())))?;
        Ok(reply)
    }
}

impl ConfigSource {
    fn get(&self) -> Result<Arc<Config>, ServiceError> {
        match self {
            Self::Loaded(config) => Ok(Arc::clone(config)),
            Self::OnDemand(loaded, load) => match loaded.get() {
                Some(config) => Ok(Arc::clone(config)),
                None => {
                    let config = load()?;
                    Ok(Arc::clone(loaded.get_or_init(|| config)))
                }
            },
        }
    }
}

/// Refuses inputs that do not match their shape. Returns the problems that only keep the plan from running here.
fn admit(config: &ConfigSource, commands: &[Command]) -> Result<Vec<Problem>, ServiceError> {
    if !commands.iter().any(admission::asks_configuration) {
        return Ok(Vec::new());
    }
    let config = config.get()?;
    let problems = commands.iter().flat_map(|command| admission::command_problems(&config, command));
    let (forbidden, not_runnable): (Vec<_>, Vec<_>) = problems.partition(admission::forbids_writing);
    match forbidden.is_empty() {
        true => Ok(not_runnable),
        false => Err(ServiceError::Invalid { subject: Subject::Write, problems: forbidden }),
    }
}

/// Maximum number of plans whose ids are compared with one that no plan has.
const PLANS_COMPARED_MAX: usize = 10_000;
/// Maximum number of tasks that an ambiguous prefix names.
const CANDIDATES_MAX: usize = 10;

/// Returns the task with this id or id prefix.
pub fn resolve_task(plan: &Plan, text: &str) -> Result<TaskId, ServiceError> {
    let candidates = match plan.resolve(text) {
        Ok(id) => return Ok(id),
        Err(candidates) => candidates,
    };
    if candidates.len() > 1 {
        let (prefix, more) = (text.to_owned(), candidates.len() > CANDIDATES_MAX);
        let candidates = candidates.iter().take(CANDIDATES_MAX).map(ToString::to_string).collect();
        return Err(ServiceError::Ambiguous { what: IdOf::Task, prefix, candidates, more });
    }
    Err(plan.no_such_task(text).into())
}
