//! Does what the program asks for, by the same calls as the other doors, on threads of its own: one reads, one writes, and
//! each run has its own. A slow store keeps no key waiting. Draws nothing.

mod error;
mod read;
mod run;
mod write;

pub(crate) use self::read::now;

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use waypost_config::{Config, ExecutionEnv};
use waypost_core::Actor;
use waypost_store::{Plans, StoreError};

use self::run::ActiveRuns;
use crate::app::{Effect, ErrorMessage, Message, PlanKey, Reply};
use crate::history::HistoryEffect;
use crate::run_view::RunEffect;

/// How long it is believed which plans of a store of files cannot be read: looking reads all of them.
const DAMAGE_INTERVAL: Duration = Duration::from_secs(30);

/// A store, and everything that its plans find around them.
pub struct Workspace {
    /// What the list of plans calls it.
    pub name: String,
    /// What the operator allows.
    pub config: Arc<Config>,
    /// What the work of tasks finds around it.
    pub around: ExecutionEnv,
    plans: Mutex<Arc<Plans>>,
    create_store: Mutex<Option<CreateStore>>,
    /// What could not be read in it, and when that was found.
    damage: Mutex<Option<(Instant, Vec<String>)>>,
}

/// Makes a store that is not there yet.
pub type CreateStore = Box<dyn FnOnce() -> Result<Arc<Plans>, ErrorMessage> + Send>;

impl Workspace {
    /// With its plans; `make` makes the store when the first plan is written, where there is none yet.
    pub fn new(
        name: impl Into<String>,
        plans: Arc<Plans>,
        create_store: Option<CreateStore>,
        config: Arc<Config>,
        around: ExecutionEnv,
    ) -> Self {
        let (plans, create_store) = (Mutex::new(plans), Mutex::new(create_store));
        Self { name: name.into(), config, around, plans, create_store, damage: Mutex::default() }
    }

    /// Its plans.
    pub fn plans(&self) -> Arc<Plans> {
        Arc::clone(&self.plans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Plans that cannot be read, a line each. Only a store of files leaves them out of its lists; the others say so instead
    /// of giving a list.
    fn damage(&self) -> Result<Vec<String>, StoreError> {
        let plans = self.plans();
        if !plans.store().location().starts_with("file:") {
            return Ok(Vec::new());
        }
        let mut known = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, lines)) = known.as_ref().filter(|(at, _)| at.elapsed() < DAMAGE_INTERVAL) {
            return Ok(lines.clone());
        }
        let lines = plans.store().check()?;
        *known = Some((Instant::now(), lines.clone()));
        Ok(lines)
    }

    /// Its plans, in a store that is made now if there is none; and whether it was.
    fn plans_or_create(&self) -> Result<(Arc<Plans>, bool), ErrorMessage> {
        let create_store = self.create_store.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(create_store) = create_store else { return Ok((self.plans(), false)) };
        let created = create_store()?;
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&created);
        Ok((created, true))
    }
}

/// What a thread does next.
type Job = Box<dyn FnOnce() + Send>;

/// Whatever runner need, on every thread.
#[derive(Clone)]
struct EffectContext {
    workspaces: Arc<Vec<Workspace>>,
    by: Actor,
    send: MessageSender,
}

/// By which threads send the loop what came of it.
pub(crate) type MessageSender = Arc<dyn Fn(Message) + Send + Sync>;

impl EffectContext {
    fn workspace(&self, store: usize) -> Option<&Workspace> {
        self.workspaces.get(store)
    }

    fn reply(&self, reply: Reply) {
        (self.send)(Message::Reply(reply));
    }
}

/// The threads.
pub(crate) struct EffectRunner {
    context: EffectContext,
    reader: Sender<Job>,
    writer: Sender<Job>,
    runs: ActiveRuns,
}

impl EffectRunner {
    /// Starts them, and begins to watch the stores.
    pub(crate) fn start(workspaces: Vec<Workspace>, by: Actor, send: MessageSender) -> io::Result<Self> {
        let context = EffectContext { workspaces: Arc::new(workspaces), by, send };
        let runner = Self {
            reader: worker("reads")?,
            writer: worker("writes")?,
            runs: ActiveRuns::default(),
            context,
        };
        for store in 0..runner.context.workspaces.len() {
            runner.context.watch(store)?;
        }
        Ok(runner)
    }

    /// Sees to it that an effect is done. What needs the terminal is not for runner, and comes back.
    pub(crate) fn take(&self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Quit | Effect::Suspend | Effect::EditText { .. } => return Some(effect),
            Effect::LoadPlanPage { store, ticket, query } => {
                self.read(move |context| context.heads(store, ticket, &query));
            }
            Effect::LoadPlan(plan) => self.read(move |context| context.plan(plan)),
            Effect::Save { plan, version, commands } => {
                self.write(move |context| context.save(plan, version, commands));
            }
            Effect::CreatePlan { store, title } => self.write(move |context| context.create(store, title)),
            Effect::Execute(plan) => self.take_run(RunEffect::Start(plan)),
            Effect::Run(effect) => self.take_run(effect),
            Effect::History(effect) => match effect {
                HistoryEffect::Versions(plan, before) => {
                    self.read(move |context| context.versions(plan, before));
                }
                HistoryEffect::Compare(plan, old, new) => {
                    self.read(move |context| context.compare(plan, old, new));
                }
                HistoryEffect::Restore { plan, version, known } => {
                    self.write(move |context| context.restore(plan, version, known));
                }
            },
        }
        None
    }

    fn take_run(&self, effect: RunEffect) {
        match effect {
            RunEffect::LoadSnapshot(plan) => self.read(move |context| context.snapshot(plan)),
            RunEffect::LoadTaskDetail(plan, task) => self.read(move |context| context.detail(plan, task)),
            RunEffect::Preview(plan) => self.read(move |context| context.preview(plan)),
            RunEffect::Approve(plan, version) => self.write(move |context| context.approve(plan, version)),
            RunEffect::Write { plan, command, said } => {
                self.write(move |context| context.write_command(&plan, *command, said));
            }
            RunEffect::Answer { plan, task, answer } => {
                self.write(move |context| context.answer_task(&plan, task, &answer));
            }
            RunEffect::Start(plan) => {
                let runs = self.runs.clone();
                self.write(move |context| runs.start(context, plan));
            }
            RunEffect::End(plan, control) => self.runs.end(&plan, control),
        }
    }

    fn read(&self, work: impl FnOnce(&EffectContext) + Send + 'static) {
        let context = self.context.clone();
        let _over = self.reader.send(Box::new(move || work(&context)));
    }

    fn write(&self, work: impl FnOnce(&EffectContext) + Send + 'static) {
        let context = self.context.clone();
        let _over = self.writer.send(Box::new(move || work(&context)));
    }

    /// Stops what this process runs, and waits until that is written.
    pub(crate) fn finish(self) {
        self.runs.stop_all();
    }
}

fn worker(name: &str) -> io::Result<Sender<Job>> {
    let (sender, jobs): (Sender<Job>, Receiver<Job>) = channel();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || jobs.into_iter().for_each(|job| job()))?;
    Ok(sender)
}

/// The plan that is meant, as troubles name it.
fn plan_label(plan: &PlanKey) -> String {
    format!("plan {}", plan.id)
}
