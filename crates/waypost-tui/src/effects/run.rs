//! ActiveRuns of this process: the engine's own runner on a thread for each plan, as `waypost run` has it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use waypost_core::{ActorKind, Draft, Phase, Plan};
use waypost_run::{Control, Controller, Notice, Options, Relay, Remark, RunError, Runner, View, Watcher};
use waypost_service::admission as admit;
use waypost_service::submit;
use waypost_service::submit::{NotEntered, Start};
use waypost_store::Plans;

use super::write::no_store;
use super::{EffectContext, Workspace, plan_label};
use crate::app::{ErrorMessage, Note, NoteKind, PlanKey, Reply};
use crate::run_view::{RunReply, Started};
use crate::text;

/// How often a run looks up while nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The runs that go on.
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

    /// Says to a run that it is to end.
    pub(super) fn end(&self, plan: &PlanKey, control: Control) {
        if let Some(going) = self.lock().get(plan) {
            going.controller.say(control);
        }
    }

    /// Stops all runs, and waits until what they did is written.
    pub(super) fn stop_all(&self) {
        let going = std::mem::take(&mut *self.lock());
        for run in going.values() {
            run.controller.say(Control::Stop);
        }
        for run in going.into_values() {
            // One that broke down has said so by its panic.
            let _broken = run.thread.join();
        }
    }

    /// Begins to run a plan, if it may be run.
    pub(super) fn start(&self, context: &EffectContext, plan: PlanKey) {
        let goes_on = self.lock().contains_key(&plan);
        let started = if goes_on { Ok(Started::Runs) } else { self.begin(context, &plan) };
        context.reply(Reply::Run(RunReply::Started(plan, started)));
    }

    fn begin(&self, context: &EffectContext, plan: &PlanKey) -> Result<Started, ErrorMessage> {
        let workspace = context.workspace(plan.store).ok_or_else(no_store)?;
        let plans = workspace.plans();
        let since = plans.latest()?;
        let (draft, phase) = plans.look(&plan.id, |known| (known.to_draft(), known.state().phase))?;
        may_begin(plan, phase)?;
        is_allowed(workspace, draft)?;
        if let Some(executor) = &workspace.config.default_executor {
            submit::assign(&plans, &plan.id, executor, &context.by, false).map_err(not_entered)?;
        }
        match submit::start(&plans, &plan.id, &context.by)? {
            Start::Runs => {}
            Start::NeedsApproval { .. } if context.by.kind != ActorKind::Person => {
                return Err(ErrorMessage {
                    what: format!("{} runs nothing before a person has approved it", plan_label(plan)),
                    hint: format!("ask a person to look at it and to say `waypost approve {}`", plan.id),
                });
            }
            Start::NeedsApproval { .. } => return Ok(Started::NeedsApproval),
        }
        let relay = Relay::start(&plans, &workspace.config, &workspace.around, since)?;
        let options = Options::plans(vec![plan.id.clone()]);
        let around = workspace.around.clone();
        let runner = Runner::with(Arc::clone(&plans), Arc::clone(&workspace.config), around, options)?;
        let controller = runner.controller();
        let run = RunThread { runs: self.clone(), context: context.clone(), plan: plan.clone(), plans };
        // Held until the run is known, so that its end cannot come before its beginning.
        let mut going = self.lock();
        let thread = std::thread::Builder::new().name("run".to_owned()).spawn(move || run.go(runner, relay));
        let thread = thread.map_err(|error| ErrorMessage {
            what: format!("no thread can be started: {error}"),
            hint: "end other programs, then try again".to_owned(),
        })?;
        going.insert(plan.clone(), ActiveRun { controller, thread });
        Ok(Started::Runs)
    }
}

/// Whether anything is left to run.
fn may_begin(plan: &PlanKey, phase: Phase) -> Result<(), ErrorMessage> {
    let hint = match phase {
        Phase::Draft | Phase::AwaitingApproval | Phase::Active => return Ok(()),
        Phase::Paused => "let it go on first",
        Phase::Completed => "nothing is left to run; add tasks, or retry one",
        Phase::Failed | Phase::Cancelled => "set back what failed first (retry all)",
    };
    Err(ErrorMessage { what: format!("{} is {}", plan_label(plan), phase.word()), hint: hint.to_owned() })
}

/// Whether the configuration has everything that the plan names.
fn is_allowed(workspace: &Workspace, mut draft: Draft) -> Result<(), ErrorMessage> {
    if let Some(executor) = &workspace.config.default_executor {
        submit::assign_in_draft(&mut draft, executor);
    }
    let problems = admit::problems(&workspace.config, &draft);
    if problems.is_empty() {
        return Ok(());
    }
    Err(ErrorMessage::of_problems("the configuration does not allow this plan, and nothing ran", &problems))
}

fn not_entered(error: NotEntered) -> ErrorMessage {
    match error {
        NotEntered::Write(error) => error.into(),
        NotEntered::Service(error) => ErrorMessage { what: error.to_string(), hint: String::new() },
        NotEntered::NotForMachines { .. } | NotEntered::OtherContent { .. } => ErrorMessage {
            hint: "ask for approval first: `waypost request-approval`".to_owned(),
            what: error.to_string(),
        },
    }
}

/// One run.
struct RunThread {
    runs: ActiveRuns,
    context: EffectContext,
    plan: PlanKey,
    plans: Arc<Plans>,
}

impl RunThread {
    fn go(self, mut runner: Runner, relay: Relay) {
        let ended = runner.run(&mut WarningForwarder(&self.context));
        drop(runner);
        let ended = ended.map(|mut summary| {
            summary.unreported.extend(relay.finish());
            for text in summary.unreported {
                self.context.reply(Reply::Note(Note { kind: NoteKind::Warning, text }));
            }
            summary.asked_to_end.is_some()
        });
        self.runs.lock().remove(&self.plan);
        let words = self.describe(ended);
        self.context.reply(Reply::Run(RunReply::Ended(self.plan, words)));
    }

    /// What came of it.
    fn describe(&self, ended: Result<bool, RunError>) -> Result<String, ErrorMessage> {
        let was_asked = ended?;
        let (phase, counts) =
            self.plans.look(&self.plan.id, |plan: &Plan| (plan.state().phase, plan.counts()))?;
        let plan = plan_label(&self.plan);
        let error = |what: String, hint: &str| Err(ErrorMessage { what, hint: hint.to_owned() });
        match phase {
            Phase::Completed => {
                Ok(format!("{plan} is completed: {} done", text::count(counts.done as usize, "task")))
            }
            Phase::Failed | Phase::Cancelled => {
                let failed = text::count(counts.failed as usize, "task");
                error(format!("{plan} is {}: {failed} failed", phase.word()), "retry all sets them back")
            }
            Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused if was_asked => {
                Ok(format!("the run of {plan} was stopped; it can go on where it was"))
            }
            Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused => error(
                format!("{plan} is not completed"),
                "what is left is not for machines here; the list shows what it waits for",
            ),
        }
    }
}

/// What is seen of a run comes from the store, as it does for runs of others.
struct WarningForwarder<'a>(&'a EffectContext);

impl Watcher for WarningForwarder<'_> {
    fn told(&mut self, _: &Notice) {}
    fn asked_to_end(&mut self, _: Control) {}
    fn remarked(&mut self, remark: &Remark) {
        let note = Note { kind: NoteKind::Warning, text: remark.to_string() };
        self.0.reply(Reply::Note(note));
    }
    fn look(&mut self, _: &View<'_>) {}
    fn interval(&self) -> Duration {
        LOOK_INTERVAL
    }
}
