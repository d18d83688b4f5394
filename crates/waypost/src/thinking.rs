//! What the commands that ask models share: which models, within which bounds, which journal, and how it goes on after an end.

mod bounds;
mod models;
pub(crate) mod progress;
pub(crate) mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use waypost_core::{Actor, ActorKind, Command, Phase, PlanChanges, PlanId};
use waypost_engine::Config;
use waypost_engine::models::{Journal, JournalError, Stop};
use waypost_engine::thinking::{
    Ending, Extent, Halt, Order, OrderError, Orders, Session, Stand, Steps, ThinkError, Thinker, Thought,
};
use waypost_store::{Plans, WriteRequest};

pub(crate) use bounds::Bounds;
pub(crate) use models::{Asked, Chosen};
use progress::Talk;

use crate::context::{Context, Found};
use crate::error::{Exit, Failure, Outcome};
use crate::setup::{self, Folders};
use crate::view::text;

/// The folder of orders and journals, in the folder that is ours.
const FOLDER: &str = "planning";

/// Where somebody thinks, and with whom.
pub(crate) struct Room {
    /// The folders of the workspace.
    pub(crate) folders: Folders,
    /// What the operator allows.
    pub(crate) config: Config,
    /// Orders and journals.
    pub(crate) orders: Orders,
    /// All plans.
    pub(crate) plans: Plans,
    /// Ends it after what is under way.
    pub(crate) halt: Halt,
    /// Ends it at once.
    pub(crate) stop: Stop,
}

impl Room {
    /// Of the current folder. Makes no store: what is looked for is there, or is not.
    pub(crate) fn enter(context: &Context) -> Outcome<Self> {
        Self::with(context, context.plans()?)
    }

    /// The same where a plan is to be made.
    pub(crate) fn enter_to_add(context: &Context) -> Outcome<Self> {
        Self::with(context, context.plans_to_add_to()?)
    }

    fn with(context: &Context, plans: Plans) -> Outcome<Self> {
        let folders = Folders::find(context)?;
        let config = setup::config(&folders, None)?;
        let orders = orders(&folders);
        Ok(Self { folders, config, orders, plans, halt: Halt::default(), stop: Stop::new() })
    }

    /// Hears Ctrl-C: the first time nothing new is asked, the second time questions under way are given up.
    pub(crate) fn listen(&self, context: &Context) -> Outcome {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]);
        let mut signals =
            signals.map_err(|error| Failure::failed(format!("signals cannot be heard: {error}"), ""))?;
        let (halt, stop, live) = (self.halt.clone(), self.stop.clone(), context.out.live());
        let hear = move || {
            for _ in &mut signals {
                if halt.is_said() {
                    stop.now();
                    continue;
                }
                halt.say();
                let words = "nothing new is asked; waiting for what is under way (Ctrl-C again gives it up)";
                live.line(crate::output::Look::Yellow, "ending", words);
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(hear);
        thread.map_err(|error| Failure::failed(format!("no thread can be started: {error}"), "")).map(drop)
    }

    /// How far to go where nobody says.
    pub(crate) fn extent(&self) -> Extent {
        models::extent(&self.config.planner)
    }

    /// How far an earlier order may go on: a budget of tokens that was said then does not raise the configured one now.
    pub(crate) fn held_to(&self, mut extent: Extent) -> Extent {
        let configured = self.config.planner.token_budget;
        extent.limits.tokens_max = extent.limits.tokens_max.into_iter().chain(configured).min();
        extent
    }

    /// The models that are to be asked.
    pub(crate) fn choose(&self, asked: &Asked) -> Outcome<Chosen> {
        models::choose(&self.config, &self.folders, asked)
    }

    /// The journal of a plan, for this process alone.
    pub(crate) fn journal(&self, plan: &PlanId) -> Outcome<Arc<Journal>> {
        self.folders.prepare()?;
        let journal = self.open_journal(plan);
        Ok(Arc::new(journal.map_err(|error| of_journal(&error, Some(plan)))?))
    }

    /// The same, in the journal's own words.
    pub(crate) fn open_journal(&self, plan: &PlanId) -> Result<Journal, JournalError> {
        let holder = format!("process {} ({})", std::process::id(), waypost_engine::worker_name());
        Journal::open(&self.orders.journal(plan), text::now(), &holder, models::redactor())
    }

    /// The order of a plan whose journal is open, with how many calls it was charged with before.
    pub(crate) fn order(&self, mut order: Order, journal: &Journal) -> Outcome<Order> {
        let calls = journal.totals().all.calls;
        let known = self.orders.find(&order.plan).map_err(|error| of_order(&error))?;
        order.calls_before = match known.filter(|_| calls > 0) {
            Some(known) => known.calls_before,
            None => match self.plans.look(&order.plan, |plan| plan.state().calls) {
                Ok(charged) => charged.saturating_sub(calls),
                Err(waypost_store::WriteError::NotFound(_)) => 0,
                Err(error) => return Err(error.into()),
            },
        };
        self.keep(&order)?;
        Ok(order)
    }

    /// Keeps an order.
    pub(crate) fn keep(&self, order: &Order) -> Outcome {
        self.folders.prepare()?;
        self.orders.keep(order).map_err(|error| of_order(&error))
    }

    /// Thinks about a plan, and says how it goes.
    pub(crate) fn think<S: Session>(
        &self,
        context: &mut Context,
        order: &Order,
        (chosen, journal): (&Chosen, &Arc<Journal>),
        steps: Steps,
        session: &mut S,
    ) -> Outcome<Thought> {
        let talk = Talk::new(context);
        let model = chosen.recorded(journal);
        let prices = |ask: &waypost_planner::Ask| chosen.price(ask);
        let thinker = Thinker {
            plans: &self.plans,
            plan: order.plan.clone(),
            by: chosen.actor(context)?,
            model: &*model,
            journal,
            calls_before: order.calls_before,
            limits: order.extent.limits,
            prices: &prices,
            parallel_max: order.extent.parallel_max,
            steps,
            halt: self.halt.clone(),
            stop: self.stop.clone(),
            watcher: &talk,
        };
        let thought = thinker.think(session);
        talk.end();
        thought.map_err(|error| of_thinking(error, &order.plan))
    }

    /// Goes on with a plan that was paused before it began; one that runs is somebody else's affair.
    pub(crate) fn wake(&self, context: &mut Context, plan: &PlanId) -> Outcome {
        let (phase, begun) = self.plans.look(plan, |plan| {
            let state = plan.state();
            let unapproved = state.approval_required && state.approval.is_none();
            (state.phase, state.started_at.is_some() && !unapproved)
        })?;
        match (phase, begun) {
            (Phase::Paused, false) => self.write(context, plan, vec![Command::Resume]),
            (Phase::Paused, true) => Err(Failure::failed(
                format!("plan {plan} is paused, and its work with it"),
                format!("`waypost resume {plan}` lets both go on"),
            )),
            (
                Phase::Draft
                | Phase::AwaitingApproval
                | Phase::Active
                | Phase::Completed
                | Phase::Failed
                | Phase::Cancelled,
                _,
            ) => Ok(()),
        }
    }

    /// Says what may be spent on a plan, if anybody said so.
    pub(crate) fn set_budget(&self, context: &mut Context, plan: &PlanId, tokens: Option<u64>) -> Outcome {
        let Some(tokens) = tokens else { return Ok(()) };
        let changes = PlanChanges { token_budget: Some(Some(tokens)), ..PlanChanges::default() };
        self.write(context, plan, vec![Command::RevisePlan(Box::new(changes))])
    }

    fn write(&self, context: &mut Context, plan: &PlanId, commands: Vec<Command>) -> Outcome {
        let (plan, by) = (plan.clone(), context.actor()?);
        let request = WriteRequest { plan, by, commands, known_version: None, lease_seconds: None };
        Ok(self.plans.write(request).map(drop)?)
    }

    /// Notes whether something is left to do.
    pub(crate) fn ended(&self, order: &mut Order, ending: &Ending) -> Outcome {
        order.stand = match ending {
            Ending::Over | Ending::Gone => Stand::Closed,
            Ending::Stepped
            | Ending::Halted
            | Ending::Paused
            | Ending::Bound(_)
            | Ending::Trouble(_)
            | Ending::Circles { .. } => Stand::Open,
        };
        self.keep(order)
    }

    /// The plan, for whoever answers about it.
    pub(crate) fn found(self, plan: PlanId) -> Found {
        Found { plans: self.plans, id: plan }
    }
}

/// The orders of a workspace.
pub(crate) fn orders(folders: &Folders) -> Orders {
    Orders::new(folders.own.join(FOLDER))
}

/// Who a model's words are written by: the agent who asks, or for a person the model itself.
pub(crate) fn author(context: &Context, model: &str) -> Outcome<Actor> {
    let asks = context.actor()?;
    Ok(match asks.kind {
        ActorKind::Agent => asks,
        ActorKind::Person | ActorKind::Worker | ActorKind::System => Actor::agent(model),
    })
}

/// Copies a journal to where somebody wants a record of it.
pub(crate) fn record(journal: &Path, to: Option<&PathBuf>) -> Outcome {
    let Some(to) = to else { return Ok(()) };
    std::fs::copy(journal, to).map(drop).map_err(|error| Failure::file(to, &error))
}

pub(crate) fn of_journal(error: &JournalError, plan: Option<&PlanId>) -> Failure {
    match (error, plan) {
        (JournalError::Held { by, .. }, Some(plan)) => Failure {
            code: "held".to_owned(),
            ..Failure::failed(
                format!("somebody thinks about plan {plan} already: {by}"),
                format!("wait for it, or stop it: `waypost pause {plan}`"),
            )
        },
        (
            JournalError::Held { .. }
            | JournalError::File { .. }
            | JournalError::Corrupt { .. }
            | JournalError::TooLarge { .. },
            _,
        ) => Failure { code: "journal".to_owned(), ..Failure::failed(error.to_string(), error.hint()) },
    }
}

pub(crate) fn of_order(error: &OrderError) -> Failure {
    let hint = match error {
        OrderError::File { .. } => "see that the folder may be read and written",
        OrderError::Corrupt { .. } => "mend it or move it away: then only the bounds that were said are lost",
    };
    Failure { code: "order".to_owned(), ..Failure::failed(error.to_string(), hint) }
}

pub(crate) fn of_thinking(error: ThinkError, plan: &PlanId) -> Failure {
    match error {
        ThinkError::Store(error) => {
            let mut failure = Failure::from(error);
            failure.hint = format!("{}; then `waypost continue {plan}`: no answer is lost", failure.hint);
            failure
        }
        ThinkError::Journal(error) => of_journal(&error, Some(plan)),
    }
}

/// A usage error for a number that makes no sense.
pub(crate) fn out_of_bounds(option: &str, found: impl std::fmt::Display, hint: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{option} {found} is out of bounds"), hint)
}
