//! The one way to plans: every write of every front end and driver passes here. Commands are made from the plan inside the
//! store's transaction, so that nothing can come between what was read and what is written.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;
use waypost_config::Config;
use waypost_core::{Command, Plan, PlanId, Problem, TaskId};
use waypost_store::{Committed, PlanStore, WriteRequest};

use crate::admission;
use crate::caller::Caller;
use crate::error::{IdOf, ServiceError, Subject};

/// Loads the configuration when an act needs it for the first time.
pub type LoadConfig = Box<dyn Fn() -> Result<Arc<Config>, ServiceError> + Send + Sync>;

enum ConfigSource {
    Loaded(Arc<Config>),
    /// Most commands of a command line need no configuration, and reading it costs more than they do.
    OnDemand(OnceLock<Arc<Config>>, LoadConfig),
}

/// Every act on the plans of one store.
#[derive(Clone)]
pub struct Service {
    plans: Arc<PlanStore>,
    config: Arc<ConfigSource>,
}

/// The version that the caller has read, where it matters: nothing is written if the plan has changed since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// The version.
    pub known_version: Option<u64>,
}

impl Guard {
    /// Against the plan as it is.
    pub const NONE: Self = Self { known_version: None };

    /// Only if this is still the newest version.
    pub fn at(version: u64) -> Self {
        Self { known_version: Some(version) }
    }
}

impl From<Option<u64>> for Guard {
    fn from(known_version: Option<u64>) -> Self {
        Self { known_version }
    }
}

/// What a write returns.
pub type WriteResult = Result<WriteReply, ServiceError>;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteReply {
    /// The plan.
    pub plan: PlanId,
    /// Its version now.
    pub version: u64,
    /// Whether anything was written: what is as asked already makes no version.
    pub changed: bool,
    /// The tasks that were added, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<TaskId>,
    /// What tasks now wait for outside the plan that is not there so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What keeps the plan from running with this configuration.
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
    /// Everything that its author should know although it is not wrong, a clause each.
    pub fn notes(&self) -> Vec<String> {
        let not_runnable = self
            .not_runnable
            .iter()
            .map(|problem| format!("not runnable with this configuration: {problem}"));
        self.warnings.iter().cloned().chain(not_runnable).collect()
    }
}

/// What a builder of commands left beside them: what keeps the plan from running here, and what its caller wants.
type Built<T> = Result<(Vec<Problem>, T), ServiceError>;

/// How a write is to be done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) guard: Guard,
    pub(crate) lease_seconds: Option<u32>,
}

impl From<Guard> for Terms {
    fn from(guard: Guard) -> Self {
        Self { guard, lease_seconds: None }
    }
}

impl Service {
    /// For a process that has its configuration at hand.
    pub fn new(plans: Arc<PlanStore>, config: Arc<Config>) -> Self {
        Self { plans, config: Arc::new(ConfigSource::Loaded(config)) }
    }

    /// For a process that may not need its configuration at all.
    pub fn with_config_on_demand(plans: Arc<PlanStore>, load: LoadConfig) -> Self {
        Self { plans, config: Arc::new(ConfigSource::OnDemand(OnceLock::new(), load)) }
    }

    /// The plans, to read them.
    pub fn plans(&self) -> &Arc<PlanStore> {
        &self.plans
    }

    /// The configuration.
    pub fn config(&self) -> Result<Arc<Config>, ServiceError> {
        self.config.get()
    }

    /// The plan that an id or its beginning names.
    pub fn resolve_plan(&self, text: &str) -> Result<PlanId, ServiceError> {
        Ok(self.plans.resolve(text)?)
    }

    /// Refuses when the plan has changed since the caller read it, with what changed.
    pub fn check_guard(&self, by: &Caller, plan: &PlanId, guard: Guard) -> Result<(), ServiceError> {
        self.write(by, plan, Vec::new(), guard).map(drop)
    }

    /// Reads a plan as it is now.
    pub fn read<R>(&self, plan: &PlanId, read: impl FnOnce(&Plan) -> R) -> Result<R, ServiceError> {
        Ok(self.plans.with_plan(plan, read)?)
    }

    /// Writes one version of the commands that `build` makes of the plan inside the transaction, if the configuration lets them
    /// be written. Returns what `build` returned beside them.
    pub(crate) fn write_with<T: Send + 'static>(
        &self,
        by: &Caller,
        plan: &PlanId,
        terms: impl Into<Terms>,
        build: impl Fn(&Plan) -> Result<(Vec<Command>, T), ServiceError> + Send + Sync + 'static,
    ) -> Result<(WriteReply, T), ServiceError> {
        let Terms { guard, lease_seconds } = terms.into();
        // What the last call of `build` left behind: the backend may start over.
        let built: Arc<Mutex<Option<Built<T>>>> = Arc::default();
        let (left, config) = (Arc::clone(&built), Arc::clone(&self.config));
        let build = move |plan: &Plan| {
            let made = build(plan).and_then(|(commands, extra)| {
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
        let answer = self.plans.write_built(request, Arc::new(build));
        let left = built.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (answer, left) {
            (Ok(committed), Some(Ok((not_runnable, extra)))) => {
                Ok((WriteReply { not_runnable, ..WriteReply::from(&committed) }, extra))
            }
            (Err(_), Some(Err(error))) => Err(error),
            (Err(error), _) => Err(error.into()),
            (Ok(committed), Some(Err(_)) | None) => Err(ServiceError::NoSuchPlan(committed.plan.to_string())),
        }
    }

    /// Writes one version of commands that do not depend on how the plan is.
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

/// Refuses what the configuration forbids, and returns what only keeps the plan from running here.
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

/// The task that an id or its beginning names.
pub fn resolve_task(plan: &Plan, text: &str) -> Result<TaskId, ServiceError> {
    let candidates = match plan.resolve(text) {
        Ok(id) => return Ok(id),
        Err(candidates) => candidates,
    };
    if candidates.len() > 1 {
        let candidates = candidates.iter().map(ToString::to_string).collect();
        return Err(ServiceError::Ambiguous { what: IdOf::Task, prefix: text.to_owned(), candidates });
    }
    Err(plan.no_such_task(text).into())
}
