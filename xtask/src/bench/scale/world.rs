//! Virtual workers, the modelled server and the people who submit plans, on one virtual clock.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use waypost_config::{Config, Layer, Origin, Queue};
use waypost_core::{Plan, Timestamp};
use waypost_testkit::SeededRng;

use super::agenda::Agenda;
use super::event::{Answer, CallId, Event, WrittenAnswer};
use super::plans::{PLAN_TASKS, Requirement, StoredPlans};
use super::server::{Access, Costs, Machine, Server};
use super::worker::{Next, Request, VirtualWorker, Written};

/// Mean time of a program.
const TASK_SECONDS: f64 = 2.0;
/// When the virtual clock begins.
const BEGIN_MICROS: i64 = 1_000_000_000;
/// At most this long after a commit, its versions get their numbers.
const NUMBERING_MICROS: i64 = 10_000;
/// As in the runner and in the store.
const VERSIONS_MAX: usize = 1_000;
const HEADS_PAGE: usize = 100;

/// What is simulated.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) workers: usize,
    pub(super) slots_each: u32,
    /// Tasks that arrive each second, in plans of [`PLAN_TASKS`].
    pub(super) tasks_per_second: f64,
    pub(super) machine: Machine,
    pub(super) costs: Costs,
    /// Whether notifications reach workers; otherwise they poll.
    pub(super) listens: bool,
    /// Whether a worker that follows enough plans leaves others unread.
    pub(super) by_summary: bool,
    /// How many stores like this one share the work.
    pub(super) stores: usize,
    /// Virtual seconds before the measurement, and of it.
    pub(super) seconds: (f64, f64),
    pub(super) seed: u64,
}

/// What a simulation found.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) done_per_second: f64,
    /// From when a task could start until its program began, in milliseconds: median and 99th percentile.
    pub(super) delay_millis: (f64, f64),
    /// The share of the server's processor time that was used.
    pub(super) busy: f64,
    /// Calls per second, by kind.
    pub(super) calls: Vec<(&'static str, f64)>,
    pub(super) refusals_per_second: f64,
    /// Milliseconds of real processor time of the scheduler per task.
    pub(super) scheduler_millis: f64,
}

/// Who made a call.
enum Client {
    Worker(usize, Request),
    Author,
    Sequencer,
}

struct WorkerState {
    worker: VirtualWorker,
    is_calling: bool,
    wakes_at: Option<i64>,
}

pub(super) struct World {
    setting: Setting,
    config: Arc<Config>,
    agenda: Agenda<Event>,
    server: Server,
    plans: StoredPlans,
    seats: Vec<WorkerState>,
    clients: HashMap<CallId, Client>,
    results: HashMap<CallId, WrittenAnswer>,
    is_numbering: bool,
    rng: SeededRng,
    is_measuring: bool,
    delays: Vec<f64>,
    calls: [u64; KINDS.len()],
    now_error: Option<anyhow::Error>,
}

const KINDS: [&str; 8] = [
    "writes",
    "reads of a plan's versions",
    "reads of plans",
    "reads of the log",
    "searches",
    "heartbeats",
    "own rows",
    "leases",
];

fn kind(request: &Request) -> usize {
    match request {
        Request::Write(..) => 0,
        Request::CatchUp(_) => 1,
        Request::Read(_) | Request::Consider(_) => 2,
        Request::WrittenSince => 3,
        Request::Search(_) => 4,
        Request::Heartbeat => 5,
        Request::OwnRow => 6,
        Request::Leases => 7,
    }
}

/// Simulates one setting.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let mut world = World::new(setting.clone())?;
    let (warm, measured) = setting.seconds;
    let stores = setting.stores as f64;
    world.run_until(BEGIN_MICROS + (warm * 1e6) as i64)?;
    let (done, busy) = (world.done(), world.server.busy_micros);
    let scheduler: f64 = world.scheduler_seconds();
    let refusals = world.refusals();
    (world.is_measuring, world.calls) = (true, Default::default());
    world.run_until(BEGIN_MICROS + ((warm + measured) * 1e6) as i64)?;
    let tasks = (world.done() - done) as f64;
    world.delays.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (world.delays.len() as f64 * share) as usize;
        world.delays.get(place.min(world.delays.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    };
    let calls =
        KINDS.into_iter().zip(world.calls).map(|(name, count)| (name, count as f64 * stores / measured));
    Ok(Measured {
        done_per_second: tasks * stores / measured,
        delay_millis: (at(0.5), at(0.99)),
        busy: (world.server.busy_micros - busy) / (measured * 1e6 * setting.machine.cores as f64),
        calls: calls.collect(),
        refusals_per_second: (world.refusals() - refusals) as f64 * stores / measured,
        scheduler_millis: (world.scheduler_seconds() - scheduler) * 1e3 / tasks.max(1.0),
    })
}

/// The configuration of all workers: one executor, and a queue that limits nothing.
fn config() -> Result<Config> {
    let text = "[executors.run]\nkind = \"process\"\ncommand = [\"true\"]\n".to_owned();
    let layer = Layer { origin: Origin::User, name: "simulation".to_owned(), text };
    let mut config = Config::load(&[layer], []).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    config.queues.insert("default".to_owned(), Queue { concurrency: 1_000_000 });
    Ok(config)
}

impl World {
    fn new(setting: Setting) -> Result<Self> {
        let config = Arc::new(config()?);
        let mut agenda = Agenda::starting_at(BEGIN_MICROS);
        let server = Server::new(setting.machine.clone(), &setting.costs);
        let mut rng = SeededRng::new(setting.seed);
        let plans = StoredPlans::default();
        let seat = |number: usize| {
            let name = format!("worker-{number}");
            let (slots, listens) = (setting.slots_each, setting.listens);
            let worker = VirtualWorker::new(&config, name, slots, BEGIN_MICROS, plans.latest(), listens);
            WorkerState { worker, is_calling: false, wakes_at: None }
        };
        let mut seats: Vec<WorkerState> = (0..setting.workers).map(seat).collect();
        for (number, seat) in seats.iter_mut().enumerate() {
            seat.worker.shift(rng.below(5_000_000) as i64);
            // They do not begin in the same millisecond.
            let begin = rng.below(500_000) as i64;
            seat.wakes_at = Some(BEGIN_MICROS + begin);
            agenda.add(begin, Event::Wakes(number, BEGIN_MICROS + begin));
        }
        agenda.add(0, Event::PlanArrives);
        Ok(Self {
            setting,
            config,
            agenda,
            server,
            plans,
            seats,
            clients: HashMap::new(),
            results: HashMap::new(),
            is_numbering: false,
            rng,
            is_measuring: false,
            delays: Vec::new(),
            calls: Default::default(),
            now_error: None,
        })
    }

    fn run_until(&mut self, end: i64) -> Result<()> {
        while self.agenda.now() < end {
            let event = self.agenda.next().context("nothing is left to happen")?;
            self.handle(event);
            if let Some(error) = self.now_error.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.agenda.now())
    }

    fn done(&self) -> u64 {
        self.plans.all().map(|plan| u64::from(plan.counts().done)).sum()
    }

    fn refusals(&self) -> u64 {
        self.seats.iter().map(|seat| seat.worker.refusals).sum()
    }

    fn scheduler_seconds(&self) -> f64 {
        self.seats.iter().map(|seat| seat.worker.scheduler_seconds).sum()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Server(event) => {
                self.server.handle(&mut self.agenda, event);
                for call in std::mem::take(&mut self.server.granted) {
                    self.write(call);
                }
                for call in std::mem::take(&mut self.server.ended) {
                    self.ended(call);
                }
            }
            Event::Answered(number, answer) => {
                self.seats[number].is_calling = false;
                self.answered(number, *answer);
                self.drive(number);
            }
            Event::Wakes(number, at) if self.seats[number].wakes_at == Some(at) => {
                self.seats[number].wakes_at = None;
                self.drive(number);
            }
            Event::Wakes(..) => {}
            Event::ProgramEnded(number, key) => {
                self.seats[number].worker.program_ended(key);
                self.drive(number);
            }
            Event::PlanArrives => {
                let micros = self.setting.costs.write * 2.0;
                self.call(Client::Author, Access::Durable, micros);
                let pause = PLAN_TASKS as f64 / self.setting.tasks_per_second;
                let wait = self.exponential(pause * 1e6);
                self.agenda.add(wait, Event::PlanArrives);
            }
            Event::Number => {
                let micros = self.setting.costs.read;
                self.call(Client::Sequencer, Access::Durable, micros);
            }
            Event::Notified => {
                for number in 0..self.seats.len() {
                    self.seats[number].worker.notify();
                    self.wake_by(number);
                }
            }
        }
    }

    /// A random time with this mean.
    fn exponential(&mut self, mean_micros: f64) -> i64 {
        let share = (self.rng.below(1_000_000) as f64 + 1.0) / 1_000_001.0;
        (-share.ln() * mean_micros) as i64
    }

    fn call(&mut self, client: Client, access: Access, micros: f64) {
        let id = self.server.send(&mut self.agenda, access, micros);
        self.clients.insert(id, client);
    }

    /// Lets a worker run until it calls the store or waits.
    fn drive(&mut self, number: usize) {
        let now = self.agenda.now();
        let seat = &mut self.seats[number];
        if seat.is_calling {
            return;
        }
        let next = seat.worker.step(now, &self.plans);
        for key in std::mem::take(&mut seat.worker.starts) {
            if self.is_measuring
                && let Some(ready) = seat.worker.scheduler.ready_since(&key)
            {
                self.delays.push((now - ready.as_micros()) as f64 / 1e3);
            }
            let share = (self.rng.below(1_000_000) as f64 + 1.0) / 1_000_001.0;
            let micros = (-share.ln() * TASK_SECONDS * 1e6) as i64;
            self.agenda.add(micros, Event::ProgramEnded(number, key));
        }
        match next {
            Next::Call(request) => {
                seat.is_calling = true;
                seat.wakes_at = None;
                self.calls[kind(&request)] += 1;
                let costs = &self.setting.costs;
                let (access, micros) = match &request {
                    Request::Write(id, ..) => (Access::Plan(self.plans.place(id)), costs.write),
                    Request::Read(_) | Request::Consider(_) => (Access::Free, costs.load),
                    Request::CatchUp(_) | Request::WrittenSince | Request::OwnRow | Request::Leases => {
                        (Access::Free, costs.read)
                    }
                    Request::Search(_) => (Access::Free, costs.page),
                    Request::Heartbeat => (Access::Free, costs.heartbeat),
                };
                self.call(Client::Worker(number, request), access, micros);
            }
            Next::Wait(until) => {
                seat.wakes_at = Some(until);
                self.agenda.add(until - now, Event::Wakes(number, until));
            }
        }
    }

    /// Wakes a worker that was notified when it looks next.
    fn wake_by(&mut self, number: usize) {
        let now = self.agenda.now();
        let seat = &mut self.seats[number];
        let looks_at = seat.worker.looks_at().max(now);
        if !seat.is_calling && seat.wakes_at.is_none_or(|at| at > looks_at) {
            seat.wakes_at = Some(looks_at);
            self.agenda.add(looks_at - now, Event::Wakes(number, looks_at));
        }
    }

    /// A call has the lock of its plan: decides what it writes.
    fn write(&mut self, call: CallId) {
        let Some(Client::Worker(number, Request::Write(id, commands, extent))) = self.clients.get(&call)
        else {
            return;
        };
        let worker = &self.seats[*number].worker;
        let by = worker.scheduler.actor().clone();
        let known = worker.known(id);
        let place = self.plans.place(id);
        let result =
            self.plans.write(Timestamp::from_micros(self.agenda.now()), &by, place, commands, *extent);
        let entries = match (&result, extent) {
            (Ok((version, _)), Requirement::Possible) => self.plans.versions_since(place, known, *version),
            (Ok(_), Requirement::Whole) | (Err(_), _) => Vec::new(),
        };
        self.results.insert(call, (result, entries));
    }

    fn ended(&mut self, call: CallId) {
        self.server.release(call);
        let Some(client) = self.clients.remove(&call) else { return };
        match client {
            Client::Author => {
                let now = self.now();
                if let Err(error) = self.plans.add(&self.config, now, PLAN_TASKS) {
                    self.now_error = Some(error);
                }
                self.number_soon();
            }
            Client::Sequencer => {
                self.plans.number();
                self.is_numbering = false;
                if self.setting.listens {
                    self.server.burden(&mut self.agenda, self.setting.costs.wake * self.seats.len() as f64);
                    self.agenda.add(self.setting.machine.round_trip / 2, Event::Notified);
                }
            }
            Client::Worker(number, request) => {
                let answer = match request {
                    Request::Write(id, _, extent) => {
                        self.plans.flushed(self.plans.place(&id));
                        self.number_soon();
                        let Some(result) = self.results.remove(&call) else { return };
                        Answer::Written(id, extent, Box::new(result))
                    }
                    Request::CatchUp(place) => {
                        let id = self.plans.get(place).id().clone();
                        let known = self.seats[number].worker.known(&id);
                        let entries = self.plans.versions_since(place, known, self.plans.durable(place));
                        Answer::Versions(id, entries)
                    }
                    Request::Read(place) => Answer::Plan(place, true),
                    Request::Consider(place) => Answer::Plan(place, false),
                    Request::WrittenSince => Answer::WrittenSince,
                    Request::Search(after) => Answer::Searched(after),
                    Request::Heartbeat | Request::OwnRow | Request::Leases => Answer::Nothing,
                };
                let wait = self.setting.machine.round_trip / 2;
                self.agenda.add(wait, Event::Answered(number, Box::new(answer)));
            }
        }
    }

    fn number_soon(&mut self) {
        if !std::mem::replace(&mut self.is_numbering, true) {
            self.agenda.add(NUMBERING_MICROS, Event::Number);
        }
    }

    fn answered(&mut self, number: usize, answer: Answer) {
        let now = self.agenda.now();
        let worker = &mut self.seats[number].worker;
        match answer {
            Answer::Written(id, extent, written) => {
                let (result, entries) = *written;
                worker.written(now, id, extent, Written { result, entries });
            }
            Answer::Versions(id, entries) => worker.advanced(now, id, entries),
            Answer::Plan(place, true) => worker.adopted(now, self.plans.get(place)),
            Answer::Plan(place, false) => {
                let plan: &Plan = self.plans.get(place);
                worker.considered(now, place, plan);
            }
            Answer::WrittenSince => {
                worker.others_wrote(now, &self.plans, VERSIONS_MAX, self.setting.by_summary);
            }
            Answer::Searched(after) => worker.searched(&self.plans, after, HEADS_PAGE),
            Answer::Nothing => {}
        }
    }
}
