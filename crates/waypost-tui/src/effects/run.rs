//! Runs of this process: the same runner as `waypost run`, on one thread per plan.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use waypost_core::{ActorKind, Phase, Plan};
use waypost_run::{
    Control, Controller, Options, RunError, RunEvent, RunObserver, RunWarning, Runner, View, WebhookOutbox,
};
use waypost_service::submit::{RunnableDraft, Start};
use waypost_service::{Guard, Service};

use super::context::EffectContext;
use super::workspace::Workspace;
use crate::messages::Reply;
use crate::note::ErrorMessage;
use crate::plan::PlanKey;
use crate::run_view::{RunReply, Started};
use crate::text;

/// The interval of the runner's ticks while nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The runs of this process.
#[derive(Clone, Default)]
pub(super) struct ActiveRuns(Arc<Mutex<BTreeMap<PlanKey, ActiveRun>>>);

struct ActiveRun {
    controller: Controller,
    thread: JoinHandle<()>,
}

impl ActiveRuns {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlanKey, ActiveRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a run to end.
    pub(super) fn end(&self, plan: &PlanKey, control: Control) {
        if let Some(going) = self.lock().get(plan) {
            going.controller.say(control);
        }
    }

    /// Stops all runs, and waits until their state is written.
    pub(super) fn stop_all(&self) {
        let going = std::mem::take(&mut *self.lock());
        for run in going.values() {
            run.controller.say(Control::Stop);
        }
        for run in going.into_values() {
            // A run that panicked has already reported that.
            let _broken = run.thread.join();
        }
    }

    /// Starts to run a plan, if it may run.
    pub(super) fn start(&self, context: &EffectContext, plan: PlanKey) {
        let goes_on = self.lock().contains_key(&plan);
        let started = if goes_on { Ok(Started::Runs) } else { self.begin(context, &plan) };
        context.reply(Reply::Run(RunReply::Started(plan, started)));
    }

    fn begin(&self, context: &EffectContext, plan: &PlanKey) -> Result<Started, ErrorMessage> {
        let workspace = context.workspace(plan.store)?;
        let (service, by) = (workspace.service(), &context.by);
        let plans = workspace.plans();
        let since = plans.latest()?;
        check_runnable(workspace, &service, plan)?;
        if let Some(executor) = &workspace.config.default_executor {
            service.assign(by, &plan.id, executor)?;
        }
        match service.start(by, &plan.id, false, Guard::NONE)? {
            Start::Runs => {}
            Start::NeedsApproval { .. } if by.actor.kind != ActorKind::Person => {
                return Err(ErrorMessage {
                    what: format!("plan {} needs approval before it runs", plan.id),
                    hint: format!("ask a person to approve plan {}", plan.id),
                });
            }
            Start::NeedsApproval { .. } => {
                // The screen shows what would run once the plan waits for approval.
                let is_own_draft =
                    |plan: &Plan| plan.state().phase == Phase::Draft && !plan.state().approval_required;
                if service.read(&plan.id, is_own_draft)? {
                    service.request_approval(by, &plan.id, "", Guard::NONE)?;
                }
                return Ok(Started::NeedsApproval);
            }
        }
        let relay = WebhookOutbox::start(&plans, &workspace.config, &workspace.around, since)?;
        let authenticator = workspace.authenticator.clone();
        let options = Options { authenticator, ..Options::plans(vec![plan.id.clone()]) };
        let around = workspace.around.clone();
        let runner = Runner::with(Arc::clone(&plans), Arc::clone(&workspace.config), around, options)?;
        let controller = runner.controller();
        let run = RunThread { runs: self.clone(), context: context.clone(), plan: plan.clone(), service };
        // Locked until the run is registered, so that it cannot end before it is.
        let mut going = self.lock();
        let thread = std::thread::Builder::new().name("run".to_owned()).spawn(move || run.go(runner, relay));
        let thread = thread.map_err(|error| ErrorMessage {
            what: format!("cannot start a thread: {error}"),
            hint: "close other programs, then try again".to_owned(),
        })?;
        going.insert(plan.clone(), ActiveRun { controller, thread });
        Ok(Started::Runs)
    }
}

/// Refuses a plan that has nothing left to run, or that this configuration cannot run.
fn check_runnable(workspace: &Workspace, service: &Service, plan: &PlanKey) -> Result<(), ErrorMessage> {
    let (draft, phase) = service.read(&plan.id, |plan| (plan.to_draft(), plan.state().phase))?;
    let hint = match phase {
        Phase::Draft | Phase::AwaitingApproval | Phase::Active => "",
        Phase::Paused => "resume it first",
        Phase::Completed => "nothing is left to run; add tasks, or retry one",
        Phase::Failed | Phase::Cancelled => "retry what failed first (T)",
    };
    if !hint.is_empty() {
        let what = format!("plan {} is {}", plan.id, phase.as_str());
        return Err(ErrorMessage { what, hint: hint.to_owned() });
    }
    let executor = workspace.config.default_executor.as_deref();
    RunnableDraft::new(&workspace.config, draft, executor).map(drop).map_err(|problems| {
        ErrorMessage::of_problems("not runnable with this configuration, nothing was run", &problems)
    })
}

/// The thread of one run.
struct RunThread {
    runs: ActiveRuns,
    context: EffectContext,
    plan: PlanKey,
    service: Service,
}

impl RunThread {
    fn go(self, mut runner: Runner, relay: WebhookOutbox) {
        let ended = runner.run(&mut WarningForwarder(&self.context));
        drop(runner);
        let ended = ended.map(|mut summary| {
            summary.unreported.extend(relay.finish());
            summary.unreported.into_iter().for_each(|text| self.context.warn(text));
            summary.asked_to_end.is_some()
        });
        self.runs.lock().remove(&self.plan);
        let words = self.describe(ended);
        self.context.reply(Reply::Run(RunReply::Ended(self.plan, words)));
    }

    /// Describes the result for the user.
    fn describe(&self, ended: Result<bool, RunError>) -> Result<String, ErrorMessage> {
        let was_asked = ended?;
        let (phase, counts) =
            self.service.read(&self.plan.id, |plan: &Plan| (plan.state().phase, plan.counts()))?;
        let plan = format!("plan {}", self.plan.id);
        let error = |what: String, hint: &str| Err(ErrorMessage { what, hint: hint.to_owned() });
        match phase {
            Phase::Completed => {
                Ok(format!("{plan} is completed: {} done", text::count(counts.done as usize, "task")))
            }
            Phase::Failed | Phase::Cancelled => {
                let failed = text::count(counts.failed as usize, "task");
                error(format!("{plan} is {}: {failed} failed", phase.as_str()), "T retries them")
            }
            Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused if was_asked => {
                Ok(format!("the run of {plan} was stopped; it can be continued"))
            }
            Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused => error(
                format!("{plan} is not completed"),
                "the remaining tasks cannot run here; the list shows what they wait for",
            ),
        }
    }
}

/// Forwards warnings only: the screens read everything else from the store, as for runs of other processes.
struct WarningForwarder<'a>(&'a EffectContext);

impl RunObserver for WarningForwarder<'_> {
    fn on_event(&mut self, _: &RunEvent) {}
    fn asked_to_end(&mut self, _: Control) {}
    fn on_warning(&mut self, remark: &RunWarning) {
        self.0.warn(remark.to_string());
    }
    fn on_tick(&mut self, _: &View<'_>) {}
    fn interval(&self) -> Duration {
        LOOK_INTERVAL
    }
}
