//! Does what the program asks for, by the same calls as the other doors, on threads of its own: one reads, one writes, and
//! each run has its own. A slow store keeps no key waiting. Draws nothing.

mod reads;
mod runs;
mod troubles;
mod writes;

pub(crate) use self::reads::now;

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use waypost_config::{Config, Surroundings};
use waypost_core::Actor;
use waypost_store::{Plans, StoreError};

use self::runs::Runs;
use crate::app::{Answer, Effect, Message, PlanKey, Trouble};
use crate::history::HistoryEffect;
use crate::run::RunEffect;

/// How long it is believed which plans of a store of files cannot be read: looking reads all of them.
const DAMAGE_INTERVAL: Duration = Duration::from_secs(30);

/// A store, and everything that its plans find around them.
pub struct Ground {
    /// What the list of plans calls it.
    pub name: String,
    /// What the operator allows.
    pub config: Arc<Config>,
    /// What the work of tasks finds around it.
    pub around: Surroundings,
    plans: Mutex<Arc<Plans>>,
    make: Mutex<Option<Make>>,
    /// What could not be read in it, and when that was found.
    damage: Mutex<Option<(Instant, Vec<String>)>>,
}

/// Makes a store that is not there yet.
pub type Make = Box<dyn FnOnce() -> Result<Arc<Plans>, Trouble> + Send>;

impl Ground {
    /// With its plans; `make` makes the store when the first plan is written, where there is none yet.
    pub fn new(
        name: impl Into<String>,
        plans: Arc<Plans>,
        make: Option<Make>,
        config: Arc<Config>,
        around: Surroundings,
    ) -> Self {
        let (plans, make) = (Mutex::new(plans), Mutex::new(make));
        Self { name: name.into(), config, around, plans, make, damage: Mutex::default() }
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
    fn plans_to_add_to(&self) -> Result<(Arc<Plans>, bool), Trouble> {
        let make = self.make.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(make) = make else { return Ok((self.plans(), false)) };
        let made = make()?;
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&made);
        Ok((made, true))
    }
}

/// What a thread does next.
type Job = Box<dyn FnOnce() + Send>;

/// Whatever hands need, on every thread.
#[derive(Clone)]
struct Shared {
    grounds: Arc<Vec<Ground>>,
    by: Actor,
    tell: Tell,
}

/// By which threads tell the loop what came of it.
pub(crate) type Tell = Arc<dyn Fn(Message) + Send + Sync>;

impl Shared {
    fn ground(&self, store: usize) -> Option<&Ground> {
        self.grounds.get(store)
    }

    fn answer(&self, answer: Answer) {
        (self.tell)(Message::Answer(answer));
    }
}

/// The threads.
pub(crate) struct Hands {
    shared: Shared,
    reader: Sender<Job>,
    writer: Sender<Job>,
    runs: Runs,
}

impl Hands {
    /// Starts them, and begins to watch the stores.
    pub(crate) fn start(grounds: Vec<Ground>, by: Actor, tell: Tell) -> io::Result<Self> {
        let shared = Shared { grounds: Arc::new(grounds), by, tell };
        let hands =
            Self { reader: worker("reads")?, writer: worker("writes")?, runs: Runs::default(), shared };
        for store in 0..hands.shared.grounds.len() {
            hands.shared.watch(store)?;
        }
        Ok(hands)
    }

    /// Sees to it that an effect is done. What needs the terminal is not for hands, and comes back.
    pub(crate) fn take(&self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Quit | Effect::Suspend | Effect::EditText { .. } => return Some(effect),
            Effect::LoadHeads { store, ticket, query } => {
                self.read(move |shared| shared.heads(store, ticket, &query));
            }
            Effect::LoadPlan(plan) => self.read(move |shared| shared.plan(plan)),
            Effect::Save { plan, version, commands } => {
                self.write(move |shared| shared.save(plan, version, commands));
            }
            Effect::CreatePlan { store, title } => self.write(move |shared| shared.create(store, title)),
            Effect::Execute(plan) => self.take_run(RunEffect::Start(plan)),
            Effect::Run(effect) => self.take_run(effect),
            Effect::History(effect) => match effect {
                HistoryEffect::Versions(plan, before) => {
                    self.read(move |shared| shared.versions(plan, before));
                }
                HistoryEffect::Compare(plan, old, new) => {
                    self.read(move |shared| shared.compare(plan, old, new));
                }
                HistoryEffect::Restore { plan, version, known } => {
                    self.write(move |shared| shared.restore(plan, version, known));
                }
            },
        }
        None
    }

    fn take_run(&self, effect: RunEffect) {
        match effect {
            RunEffect::Look(plan) => self.read(move |shared| shared.standings(plan)),
            RunEffect::LookCloser(plan, task) => self.read(move |shared| shared.closer(plan, task)),
            RunEffect::Preview(plan) => self.read(move |shared| shared.preview(plan)),
            RunEffect::Approve(plan, version) => self.write(move |shared| shared.approve(plan, version)),
            RunEffect::Order { plan, command, said } => {
                self.write(move |shared| shared.order(&plan, *command, said));
            }
            RunEffect::Answer { plan, task, answer } => {
                self.write(move |shared| shared.answer_task(&plan, task, &answer));
            }
            RunEffect::Start(plan) => {
                let runs = self.runs.clone();
                self.write(move |shared| runs.start(shared, plan));
            }
            RunEffect::End(plan, control) => self.runs.end(&plan, control),
        }
    }

    fn read(&self, work: impl FnOnce(&Shared) + Send + 'static) {
        let shared = self.shared.clone();
        let _over = self.reader.send(Box::new(move || work(&shared)));
    }

    fn write(&self, work: impl FnOnce(&Shared) + Send + 'static) {
        let shared = self.shared.clone();
        let _over = self.writer.send(Box::new(move || work(&shared)));
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
fn named(plan: &PlanKey) -> String {
    format!("plan {}", plan.id)
}
