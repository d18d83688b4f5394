//! Shared by the commands that use models: the choice of models, limits, journals, and resuming.

mod failures;
mod goal;
mod limits;
mod models;
pub(crate) mod progress;
pub(crate) mod report;

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Command, Phase, PlanChanges, PlanId};
use waypost_llm::{Journal, JournalError, Redactor, Stop, read_journal};
use waypost_planner::planning::{
    CancelToken, PlanningDriver, PlanningRequest, PlanningResult, RequestLimits, RequestProgress,
    RequestStore, Session, Steps, StopReason,
};
use waypost_service::{Record, Service};
use waypost_store::PlanStore;

pub(crate) use failures::{note_bad, of_journal, of_order, of_thinking};
pub(crate) use goal::read_goal;
pub(crate) use limits::PlanningLimits;
pub(crate) use models::{Chosen, ModelOptions, author};
use progress::ProgressOutput;

use waypost_cli::context::{Context, PlanHandle};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::load_config::Folders;
use waypost_cli::signals;
use waypost_cli::view::text;

/// The folder of requests and journals, in Waypost's own folder.
const FOLDER: &str = "planning";

/// The store, configuration and requests of a planning command.
pub(crate) struct PlanningSession {
    pub(crate) folders: Folders,
    pub(crate) config: Config,
    /// The stored requests and the paths of their journals.
    pub(crate) orders: RequestStore,
    pub(crate) plans: Arc<PlanStore>,
    /// The service for operations on the plans.
    pub(crate) service: Service,
    /// Stops after the calls in progress.
    pub(crate) halt: CancelToken,
    /// Aborts the calls in progress.
    pub(crate) stop: Stop,
}

impl PlanningSession {
    /// Opens a session in the current folder. Does not create a store.
    pub(crate) fn enter(context: &Context) -> Outcome<Self> {
        Self::with(context, context.plans()?)
    }

    /// Opens a session that creates a plan, and creates the store if it is missing.
    pub(crate) fn enter_to_add(context: &Context) -> Outcome<Self> {
        Self::with(context, context.plans_to_add_to()?)
    }

    /// Opens a session on a store that is open already.
    pub(crate) fn with(context: &Context, plans: Arc<PlanStore>) -> Outcome<Self> {
        let folders = context.folders()?;
        let config = context.load_config(&folders, None)?;
        let orders = orders(&folders);
        let service = context.service(&plans);
        Ok(Self { folders, config, orders, plans, service, halt: CancelToken::default(), stop: Stop::new() })
    }

    /// Handles Ctrl-C: the first one prevents further model calls, the second aborts those in progress.
    pub(crate) fn listen(&self, context: &Context) -> Outcome {
        let (halt, stop, live) = (self.halt.clone(), self.stop.clone(), context.out.live());
        signals::listen(move |_| {
            if halt.is_cancelled() {
                return stop.now();
            }
            halt.cancel();
            let words = "no further model calls; waiting for those in progress (Ctrl-C again aborts them)";
            live.line(waypost_cli::style::Look::Yellow, "ending", words);
        })
    }

    /// The limits of the configuration.
    pub(crate) fn extent(&self) -> RequestLimits {
        models::extent(&self.config.planner)
    }

    /// The limits of a resumed request: its earlier token budget does not exceed the one configured now.
    pub(crate) fn held_to(&self, mut extent: RequestLimits) -> RequestLimits {
        let configured = self.config.planner.token_budget;
        extent.limits.tokens_max = extent.limits.tokens_max.into_iter().chain(configured).min();
        extent
    }

    /// Chooses the models, after checking that the requested record can be written.
    pub(crate) fn choose(&self, asked: &ModelOptions) -> Outcome<Chosen> {
        if let Some(to) = &asked.record {
            check_record(to)?;
        }
        models::choose(&self.config, &self.folders, asked)
    }

    /// The redactor that removes secrets from what models are sent and from what is stored.
    pub(crate) fn redactor(&self) -> Redactor {
        models::redactor(&self.config, &self.folders)
    }

    /// Opens the journal of a plan exclusively.
    pub(crate) fn journal(&self, plan: &PlanId) -> Outcome<Arc<Journal>> {
        self.folders.prepare()?;
        let journal = self.open_journal(plan);
        Ok(Arc::new(journal.map_err(|error| of_journal(&error, Some(plan)))?))
    }

    /// Opens the journal, and returns the journal's own error.
    pub(crate) fn open_journal(&self, plan: &PlanId) -> Result<Journal, JournalError> {
        let holder = format!("process {} ({})", std::process::id(), waypost_store::worker_name());
        Journal::open(&self.orders.journal(plan), text::now(), &holder, self.redactor())
    }

    /// Starts a request whose journal is open and whose models are chosen: applies the commands to the plan, then
    /// stores the request. Refusals come before any change.
    pub(crate) fn begin(
        &self,
        context: &mut Context,
        order: PlanningRequest,
        journal: &Journal,
        commands: Vec<Command>,
    ) -> Outcome<PlanningRequest> {
        let order = self.counted(order, journal)?;
        if !commands.is_empty() {
            let (plan, by) = (order.plan.clone(), context.actor()?);
            self.service.record(Record { plan, by, commands, known_version: None, lease_seconds: None })?;
        }
        self.keep(&order)?;
        Ok(order)
    }

    /// Replaces the plan's earlier request, and records how many calls the plan was charged with before its journal was begun.
    fn counted(&self, mut order: PlanningRequest, journal: &Journal) -> Outcome<PlanningRequest> {
        let calls = journal.totals().all.calls;
        let known = self.orders.find(&order.plan).map_err(|error| of_order(&error))?;
        let before = known.as_ref().filter(|_| calls > 0).map(|known| known.calls_before);
        if let Some(known) = known {
            order.replace(known);
        }
        order.calls_before = match before {
            Some(before) => before,
            None => match self.plans.with_plan(&order.plan, |plan| plan.state().calls) {
                Ok(charged) => charged.saturating_sub(calls),
                Err(waypost_store::WriteError::NotFound(_)) => 0,
                Err(error) => return Err(error.into()),
            },
        };
        Ok(order)
    }

    /// Stores a request.
    pub(crate) fn keep(&self, order: &PlanningRequest) -> Outcome {
        self.folders.prepare()?;
        self.orders.keep(order).map_err(|error| of_order(&error))
    }

    /// Runs a planning session, and reports its progress.
    pub(crate) fn think<S: Session>(
        &self,
        context: &mut Context,
        order: &PlanningRequest,
        (chosen, journal): (&Chosen, &Arc<Journal>),
        steps: Steps,
        session: &mut S,
    ) -> Outcome<PlanningResult> {
        let talk = ProgressOutput::new(context);
        let model = chosen.recorded(journal);
        let prices = |ask: &waypost_planner::ModelRequest| chosen.price(ask);
        let thinker = PlanningDriver {
            service: &self.service,
            plan: order.plan.clone(),
            by: chosen.actor(context)?,
            model: &*model,
            journal,
            calls_before: order.calls_before,
            limits: chosen.limits(order.extent.limits),
            prices: &prices,
            parallel_max: order.extent.parallel_max,
            steps,
            halt: self.halt.clone(),
            stop: self.stop.clone(),
            watcher: &talk,
        };
        let thought = thinker.run(session);
        talk.end();
        thought.map_err(|error| of_thinking(error, &order.plan))
    }

    /// The commands that make a paused plan plannable. A plan that was paused before it began is resumed; resuming one
    /// whose work had begun is left to the person.
    pub(crate) fn waking(&self, plan: &PlanId) -> Outcome<Vec<Command>> {
        let (phase, begun) = self.plans.with_plan(plan, |plan| {
            let state = plan.state();
            let unapproved = state.approval_required && state.approval.is_none();
            (state.phase, state.started_at.is_some() && !unapproved)
        })?;
        match (phase, begun) {
            (Phase::Paused, false) => Ok(vec![Command::Resume]),
            (Phase::Paused, true) => Err(Failure::failed(
                format!("plan {plan} is paused, and its work with it"),
                format!("`waypost resume {plan}` resumes both"),
            )),
            (
                Phase::Draft
                | Phase::AwaitingApproval
                | Phase::Active
                | Phase::Completed
                | Phase::Failed
                | Phase::Cancelled,
                _,
            ) => Ok(Vec::new()),
        }
    }

    /// Records whether anything is left to do, of this request or of an earlier one.
    pub(crate) fn ended(
        &self,
        context: &mut Context,
        order: &mut PlanningRequest,
        ending: &StopReason,
        within: Within,
    ) -> Outcome {
        let want = order.want.clone();
        match (ending, within) {
            (StopReason::Over, Within::Everything) | (StopReason::Gone, _) => order.close(),
            (StopReason::Over, Within::Bounds) => order.bound(),
            (
                StopReason::Stepped
                | StopReason::Halted
                | StopReason::Paused
                | StopReason::Bound(_)
                | StopReason::Trouble(_)
                | StopReason::Circles { .. },
                _,
            ) => order.stand = RequestProgress::Open,
        }
        self.keep(order)?;
        if order.want != want && !matches!(ending, StopReason::Gone) {
            let plan = &order.plan;
            context
                .out
                .note(format!("earlier planning is unfinished: `waypost plan continue {plan}` resumes it"));
        }
        Ok(())
    }

    pub(crate) fn found(self, plan: PlanId) -> PlanHandle {
        PlanHandle { plans: self.plans, service: self.service, id: plan }
    }
}

/// How much of the request was covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// Everything.
    Everything,
    /// Everything except goals that a limit keeps from being broken down.
    Bounds,
}

/// The command that stores a token budget with the plan, if one was given.
pub(crate) fn budget(tokens: Option<u64>) -> Option<Command> {
    let changes = PlanChanges { token_budget: Some(Some(tokens?)), ..PlanChanges::default() };
    Some(Command::RevisePlan(Box::new(changes)))
}

/// The stored requests of a workspace.
pub(crate) fn orders(folders: &Folders) -> RequestStore {
    RequestStore::new(folders.own.join(FOLDER))
}

/// Checks that a record can be written, before any call is paid for. Only an older record may be replaced.
fn check_record(to: &Path) -> Outcome {
    let failed = |error: std::io::Error| Failure::file(to, &error);
    let found = match std::fs::metadata(to) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
                let message = format!("the folder {} for the record does not exist", folder.display());
                return Err(Failure::not_found(message, "make it first, or name another"));
            }
            OpenOptions::new().write(true).create_new(true).open(to).map_err(failed)?;
            return std::fs::remove_file(to).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
    if found.is_dir() {
        let message = format!("{} is a folder, not a file", to.display());
        return Err(Failure::failed(message, "name a file for the record"));
    }
    // A text without a newline is read as a journal that was cut off in its first line.
    let is_record = || read_journal(to).is_ok_and(|lines| !lines.is_empty());
    if found.is_file() && found.len() > 0 && !is_record() {
        let message = format!("{} already exists and is not a record of model replies", to.display());
        return Err(Failure::failed(message, "choose another name: only an older record is replaced"));
    }
    OpenOptions::new().append(true).open(to).map(drop).map_err(failed)
}

/// Copies a journal to the requested record file.
pub(crate) fn record(journal: &Path, to: Option<&PathBuf>) -> Outcome {
    let Some(to) = to else { return Ok(()) };
    std::fs::copy(journal, to).map(drop).map_err(|error| {
        let message =
            format!("the record could not be written; all else is saved: {}: {error}", to.display());
        Failure::failed(message, format!("the same content is in {}", journal.display()))
    })
}
