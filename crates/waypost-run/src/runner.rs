//! The loop that runs plans: waits for something to happen, asks the scheduler, does what it says.
//!
//! Decides nothing about tasks. A reservation is durable before its work begins, and an end is durable before anything that
//! depends on it begins, because the scheduler hands out starts only after the write that holds both.

mod follow;
mod heartbeat;
mod log_upload;
mod message;
mod outage;
mod plan_source;
mod poll_backoff;
mod remark;
mod store_outage;
mod worker_row;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

pub use follow::Follow;
use follow::Offers;
pub(crate) use follow::watch as watch_store;
use log_upload::Copies;
pub(crate) use message::Message;
use outage::{Outage, STORE_FAILURES_MAX};
use poll_backoff::PollBackoff;
pub use remark::RunWarning;
use waypost_core::{Command, Plan, PlanId, Refusal, Timestamp};
use waypost_service::{Record, Service};
use waypost_store::{PlanStore, Slots, StoreError, Worker, WriteError};

use crate::reporters::Reporters;
use crate::scheduler::{
    AHEAD_FEW, Action, AfterFailure, Control, Idleness, Input, RunEvent, RunLimits, Scheduler, SlotKeeper,
    TaskFilter,
};
use crate::slots::{FileSlots, StoredSlots};
use crate::store_clock::Clock;
use waypost_config::Config;
use waypost_config::ExecutionEnv;
use waypost_exec::liveness_lock::LivenessLock;
use waypost_exec::{
    AttemptEvent, AttemptHandle, AttemptKey, AttemptOutcome, AttemptSpec, ExecutorPool, Force,
    PreparedAttempt, soon,
};

/// Between two looks at the leases of others, and at what they have written should nothing have told of it.
const LEASES_INTERVAL: Duration = Duration::from_secs(1);
/// Between two writes of progress: reports that come faster replace each other.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// Versions of others that are read at a time.
const VERSIONS_MAX: usize = 1_000;

/// What a run looks like at a moment.
#[derive(Debug)]
pub struct View<'a> {
    /// The plans.
    pub plans: Vec<&'a Plan>,
    /// What runs here, and since when.
    pub running: Vec<(&'a AttemptKey, Timestamp)>,
    /// Now.
    pub now: Timestamp,
    /// Whether it waits for people or for workers elsewhere.
    pub waits: bool,
}

/// Whoever is told how a run goes.
pub trait RunObserver {
    /// Something happened, and is durable.
    fn on_event(&mut self, _notice: &RunEvent) {}
    /// All that has happened so far was told: what was kept back to be said together is to be said.
    fn pause(&mut self) {}
    /// Somebody asked the run to end.
    fn asked_to_end(&mut self, _control: Control) {}
    /// Something that concerns the run itself and none of its tasks.
    fn on_warning(&mut self, _remark: &RunWarning) {}
    /// How it looks now; called often enough for a clock to be shown, not more.
    fn on_tick(&mut self, _view: &View<'_>) {}
    /// How long may pass between two calls of [`RunObserver::on_tick`] while nothing happens.
    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Whether somebody asked it to end.
    pub asked_to_end: Option<Control>,
    /// Whether something is left that this run will not do.
    pub rest: Idleness,
    /// What could not be reported to whom, in words.
    pub unreported: Vec<String>,
    /// Whether it is not over: it was left for a moment by [`Controller::interrupt`], and is to be run on.
    pub aside: bool,
}

/// When a run ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitPolicy {
    /// When nothing more will happen here.
    #[default]
    UntilOver,
    /// When nothing runs and nothing can start, here or on other workers.
    UntilIdle,
    /// Never.
    UntilAsked,
}

/// What a run follows, and how.
#[derive(Debug)]
pub struct Options {
    /// What it follows.
    pub follow: Follow,
    /// How it goes on after a failure.
    pub after_failure: AfterFailure,
    /// Programs that it may have at the same time; the bounds of queues hold as well.
    pub jobs: Option<u32>,
    /// Which tasks it takes.
    pub takes: TaskFilter,
    /// When it ends by itself.
    pub patience: ExitPolicy,
}

impl Options {
    /// For a run of these plans that has no wishes.
    pub fn plans(ids: Vec<PlanId>) -> Self {
        Self {
            follow: Follow::Plans(ids),
            after_failure: AfterFailure::default(),
            jobs: None,
            takes: TaskFilter::default(),
            patience: ExitPolicy::default(),
        }
    }
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store failed again and again.
    #[error("the store failed {STORE_FAILURES_MAX} times in a row: {0}")]
    Store(StoreError),
    /// The plan could not be read.
    #[error("{0}")]
    Plan(WriteError),
}

/// By which a person at the run makes it end.
#[derive(Clone, Debug)]
pub struct Controller(Sender<Message>);

impl Controller {
    pub(crate) fn to(sender: Sender<Message>) -> Self {
        Self(sender)
    }

    /// Makes [`Runner::run`] return for a moment without ending anything.
    pub fn interrupt(&self) {
        let _over = self.0.send(Message::Aside);
    }

    /// Says what is wanted. A run that is over does not hear it.
    pub fn say(&self, control: Control) {
        let _over = self.0.send(Message::Control(control));
    }
}

/// Runs plans of one store until nothing more is to be done.
pub struct Runner {
    _liveness: Option<LivenessLock>,
    /// What this run says of itself in the store.
    row: Worker,
    /// Where the store counts the slots of queues.
    slots: Option<StoredSlots>,
    /// Where the store keeps copies of logs.
    copies: Option<Copies>,
    plans: Arc<PlanStore>,
    /// The way to write.
    service: Service,
    config: Arc<Config>,
    workshop: Arc<ExecutorPool>,
    scheduler: Scheduler,
    reporters: Reporters,
    offers: Option<Offers>,
    patience: ExitPolicy,
    changed: Arc<AtomicBool>,
    aside: bool,
    others_wrote: bool,
    news: PollBackoff,
    handles: BTreeMap<AttemptKey, AttemptHandle>,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    /// Rung by those whom the loop must hear at once even if it lingers.
    bell: Receiver<()>,
    clock: Clock,
    leases_looked: Instant,
    heartbeat: Instant,
    /// The latest progress of attempts that is not stored yet.
    progress: BTreeMap<AttemptKey, String>,
    progress_stored: Instant,
    /// Up to this moment all leases of ours were known to be ours.
    renewed: Instant,
    shown: Option<Instant>,
    outage: Outage,
    remarks: Vec<RunWarning>,
    hold_until: Option<Instant>,
    asked_to_end: Option<Control>,
}

/// The folder with the liveness locks of all runs of this workspace.
fn runs(around: &ExecutionEnv) -> PathBuf {
    around.logs.with_file_name("runs")
}

impl Runner {
    /// For these plans, which are in the store already.
    pub fn new(
        plans: Arc<PlanStore>,
        config: Arc<Config>,
        around: ExecutionEnv,
        after_failure: AfterFailure,
        ids: Vec<PlanId>,
    ) -> Result<Self, RunError> {
        Self::with(plans, config, around, Options { after_failure, ..Options::plans(ids) })
    }

    /// The same with wishes.
    pub fn with(
        plans: Arc<PlanStore>,
        config: Arc<Config>,
        around: ExecutionEnv,
        options: Options,
    ) -> Result<Self, RunError> {
        let of_store = |error: StoreError| RunError::Plan(error.into());
        let Options { follow, after_failure, jobs, takes, patience } = options;
        let row = worker_row::of(&plans, &config, &around.worker, &follow, &takes, jobs);
        let (sender, messages) = channel();
        let (ring, bell) = sync_channel(1);
        let changed = Arc::new(AtomicBool::new(false));
        // Before anything is read, so that nothing falls between the two.
        follow::watch(&plans, sender.clone(), Arc::clone(&changed)).map_err(of_store)?;
        let shared = Self::is_shared(&plans);
        let slots = shared.then(|| StoredSlots::new(Arc::clone(&plans), around.worker.clone()));
        let keeper: Box<dyn SlotKeeper> = match &slots {
            Some(slots) => Box::new(slots.clone()),
            None => Box::new(FileSlots::new(around.logs.with_file_name("queues"))),
        };
        let copies = shared.then(|| Copies::new(around.logs.clone(), around.worker.clone()));
        let bounds = RunLimits { jobs, takes, keeper };
        let scheduler = Scheduler::bounded(Arc::clone(&config), around.worker.clone(), after_failure, bounds);
        let clock = Clock::new(&plans).map_err(of_store)?;
        let now = Instant::now();
        let reporters = Reporters::begin(&config, &around);
        // Where no file can be made, a later run has only the marks of the processes to go by.
        let liveness = LivenessLock::begin(&runs(&around), &around.worker).ok();
        let events = sender.clone();
        // Nobody listens any more when the run is over.
        let events = Arc::new(move |event| drop(events.send(Message::Attempt(event))));
        let mut runner = Self {
            _liveness: liveness,
            row,
            slots,
            copies,
            service: Service::new(Arc::clone(&plans), Arc::clone(&config)),
            plans,
            config,
            workshop: Arc::new(ExecutorPool::new(around, events, ring, AHEAD_FEW)),
            scheduler,
            reporters,
            offers: Offers::of(&follow),
            patience,
            changed,
            aside: false,
            others_wrote: false,
            news: PollBackoff::new(),
            handles: BTreeMap::new(),
            sender,
            messages,
            bell,
            clock,
            leases_looked: now,
            heartbeat: now,
            progress: BTreeMap::new(),
            progress_stored: now,
            renewed: now,
            shown: None,
            outage: Outage::default(),
            remarks: Vec::new(),
            hold_until: None,
            asked_to_end: None,
        };
        runner.begin(follow)?;
        runner.register().map_err(of_store)?;
        runner.look_for_lost()?;
        Ok(runner)
    }

    /// By which the run can be made to end while it goes on.
    pub fn controller(&self) -> Controller {
        Controller(self.sender.clone())
    }

    /// Runs until nothing more is to be done here.
    pub fn run(&mut self, watcher: &mut dyn RunObserver) -> Result<Summary, RunError> {
        let ended = self.turn_until_over(watcher);
        if ended.is_err() {
            // Work whose end could not be written must not go on unseen.
            for handle in self.handles.values() {
                handle.stop(Force::Kill);
            }
        }
        let aside = std::mem::take(&mut self.aside);
        // One that is only left for a moment goes on reporting.
        let unreported = if aside { Vec::new() } else { self.reporters.finish() };
        if !aside {
            self.unregister();
        }
        ended.map(|rest| Summary { asked_to_end: self.asked_to_end, rest, unreported, aside })
    }

    fn turn_until_over(&mut self, watcher: &mut dyn RunObserver) -> Result<Idleness, RunError> {
        loop {
            self.verify_leases_after_pause()?;
            while let Ok(message) = self.messages.try_recv() {
                self.take(message, watcher);
            }
            self.check_drain_requested(watcher);
            self.act(watcher)?;
            for remark in std::mem::take(&mut self.remarks) {
                watcher.on_warning(&remark);
            }
            watcher.pause();
            self.show(watcher);
            if self.aside {
                return Ok(self.scheduler.rest());
            }
            if self.hold_until.is_none()
                && let Some(rest) = self.is_over()
            {
                return Ok(rest);
            }
            if let Some(message) = self.next_message(self.poll_timeout(watcher)) {
                self.verify_leases_after_pause()?;
                self.take(message, watcher);
            }
            self.look_around()?;
        }
    }

    /// What happens next, if anything does for so long.
    fn next_message(&self, patience: Duration) -> Option<Message> {
        if self.scheduler.is_batching() {
            // To be woken by everyone who ends meanwhile would cost as much as to write each of them apart.
            let _rung = self.bell.recv_timeout(patience);
            return self.messages.try_recv().ok();
        }
        // While one alone works, whoever waits for it has a processor that nobody else of us wants.
        if self.handles.len() == 1
            && let Some(found) = soon(&self.messages)
        {
            return found.ok();
        }
        self.messages.recv_timeout(patience).ok()
    }

    /// How it ends, if it does now.
    fn is_over(&self) -> Option<Idleness> {
        let rest = self.scheduler.rest();
        let over = match (rest, self.patience) {
            (Idleness::Busy, _) => false,
            (Idleness::Waiting | Idleness::Over, _) if self.asked_to_end.is_some() => true,
            (_, ExitPolicy::UntilAsked) => false,
            (Idleness::Over, ExitPolicy::UntilOver | ExitPolicy::UntilIdle) => true,
            (Idleness::Waiting, ExitPolicy::UntilOver) => false,
            (Idleness::Waiting, ExitPolicy::UntilIdle) => !self.scheduler.others_work(),
        };
        over.then_some(rest)
    }

    fn handle(&mut self, input: Input) {
        let now = self.clock.now();
        self.scheduler.handle(now, input);
    }

    fn take(&mut self, message: Message, watcher: &mut dyn RunObserver) {
        match message {
            Message::Attempt(AttemptEvent::Began { key, predecessor, at }) => {
                self.scheduler.handle(self.clock.at(at), Input::Began(key, predecessor));
            }
            Message::Attempt(AttemptEvent::Ended { key, ending, at }) => {
                let at = self.clock.at(at);
                self.handles.remove(&key);
                if let Some(copies) = &mut self.copies {
                    copies.ended(&key);
                }
                self.scheduler.handle(at, Input::Ended(key, ending));
            }
            Message::Attempt(AttemptEvent::Progressed(key, progress)) => {
                self.handle(Input::Progressed(key, progress))
            }
            Message::Control(control) => {
                self.asked_to_end = Some(control);
                watcher.asked_to_end(control);
                self.handle(Input::Control(control));
            }
            Message::StoreChanged => {
                // First said, then looked: what is written from now on is told of again.
                self.changed.store(false, Ordering::Release);
                self.others_wrote = true;
            }
            Message::Aside => self.aside = true,
        }
    }

    /// Does what the scheduler says until it says nothing more.
    fn act(&mut self, watcher: &mut dyn RunObserver) -> Result<(), RunError> {
        if self.is_held() || self.is_unsure() {
            return Ok(());
        }
        self.hold_until = None;
        loop {
            let actions = self.scheduler.step(self.clock.now());
            if actions.is_empty() {
                return Ok(());
            }
            for action in actions {
                match action {
                    Action::Write(id, commands) => self.write(&id, commands)?,
                    Action::WritePossible(id, commands) => self.write_possible(&id, commands)?,
                    Action::CatchUp(id) => self.tolerate(|runner| runner.catch_up(&id))?,
                    Action::Read(id) => self.read(&id, watcher)?,
                    Action::Prepare(key) => self.prepare(key),
                    Action::Start(key) => self.start(key),
                    Action::Stop(key, force) => self.stop(key, force),
                    Action::StoreProgress(key, progress) => {
                        self.progress.insert(key, progress);
                    }
                    Action::Tell(notice) => {
                        self.reporters.tell(self.clock.now(), &notice);
                        watcher.on_event(&notice);
                    }
                }
            }
            if self.hold_until.is_some() {
                return Ok(());
            }
        }
    }

    fn record(&self, id: &PlanId, commands: Vec<Command>) -> Record {
        Record {
            plan: id.clone(),
            by: self.scheduler.actor().clone(),
            commands,
            known_version: None,
            lease_seconds: Some(self.config.lease_seconds),
        }
    }

    /// The slots that tasks of a plan take.
    fn slots(&self, id: &PlanId) -> Slots {
        let (queue, own) = self.scheduler.slots_besides(id).unwrap_or_default();
        let bound = self.slots.as_ref().and_then(|_| self.config.queues.get(&queue));
        Slots { concurrency: bound.map(|queue| queue.concurrency), queue, own }
    }

    /// A report that came too late is worth a word.
    fn remark_on(&mut self, refusal: &Refusal) {
        if let Refusal::StaleAttempt { .. } = refusal {
            let remark = RunWarning::ReportRefused { why: refusal.to_string() };
            // Its start and its end are refused for the same reason.
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
    }

    fn write_possible(&mut self, id: &PlanId, commands: Vec<Command>) -> Result<(), RunError> {
        let slots = self.slots(id);
        match self.service.record_possible_attempts(self.record(id, commands), slots) {
            Ok(committed) => {
                self.store_answered();
                let refusals: Vec<Refusal> =
                    committed.rejected.into_iter().map(|(_, refusal)| refusal).collect();
                for refusal in &refusals {
                    self.remark_on(refusal);
                }
                self.handle(Input::PartlyWritten(id.clone(), committed.version, refusals));
                let known = self.scheduler.plan(id).map_or(0, Plan::version);
                // Where they are not at hand, the scheduler asks for them.
                if let Some(entries) = self.plans.cached_versions(id, known, committed.version) {
                    self.handle(Input::Advanced(id.clone(), entries));
                }
                self.news.wrote(!self.handles.is_empty());
                Ok(())
            }
            Err(WriteError::Store(error)) => {
                self.handle(Input::Unknown(id.clone()));
                self.store_failed(error)
            }
            Err(error) => Err(RunError::Plan(error)),
        }
    }

    fn write(&mut self, id: &PlanId, commands: Vec<Command>) -> Result<(), RunError> {
        let slots = self.slots(id);
        match self.service.record_attempts(self.record(id, commands), slots) {
            Ok(committed) => {
                self.store_answered();
                self.news.wrote(false);
                self.handle(Input::Written(id.clone(), committed.version));
            }
            Err(WriteError::Refused(refusal)) => {
                self.remark_on(&refusal);
                self.handle(Input::Refused(id.clone(), refusal));
            }
            Err(WriteError::Store(error)) => {
                self.handle(Input::Unknown(id.clone()));
                self.store_failed(error)?;
            }
            Err(error) => return Err(RunError::Plan(error)),
        }
        Ok(())
    }

    fn read(&mut self, id: &PlanId, watcher: &mut dyn RunObserver) -> Result<(), RunError> {
        loop {
            match self.plans.with_plan(id, Plan::clone) {
                Ok(plan) => {
                    self.store_answered();
                    self.handle(Input::Adopted(Box::new(plan)));
                    return Ok(());
                }
                Err(WriteError::Store(error)) => {
                    self.store_failed(error)?;
                    // The scheduler has asked once and waits for the answer, so the wait is here.
                    if let Ok(message) = self.messages.recv_timeout(self.store_pause()) {
                        self.take(message, watcher);
                    }
                }
                Err(error) => return Err(RunError::Plan(error)),
            }
        }
    }

    fn job(&mut self, key: &AttemptKey) -> Option<PreparedAttempt> {
        let plan = self.scheduler.plan(&key.plan)?;
        match AttemptSpec::of(&self.config, plan, key, self.clock.now()) {
            Ok(job) => {
                let (attempt, handle) = PreparedAttempt::new(job);
                self.handles.insert(key.clone(), handle);
                Some(attempt)
            }
            Err(error) => {
                self.handle(Input::Ended(key.clone(), AttemptOutcome::Failed { error }));
                None
            }
        }
    }

    fn prepare(&mut self, key: AttemptKey) {
        if let Some(attempt) = self.job(&key) {
            self.workshop.pending.join(attempt);
        }
    }

    fn start(&mut self, key: AttemptKey) {
        let attempt = match self.handles.contains_key(&key) {
            // It stood in line; if it no longer does, it has begun.
            true => self.workshop.pending.leave(&key),
            false => self.job(&key),
        };
        if let Some(attempt) = attempt {
            self.workshop.begin(attempt);
        }
    }

    fn stop(&mut self, key: AttemptKey, force: Force) {
        if self.workshop.pending.leave(&key).is_some() {
            self.handles.remove(&key);
            let error = "it was stopped before it began".to_owned();
            self.handle(Input::Ended(key, AttemptOutcome::Failed { error }));
        } else if let Some(handle) = self.handles.get(&key) {
            handle.stop(force);
        }
    }

    /// How long to wait for a message.
    fn poll_timeout(&self, watcher: &dyn RunObserver) -> Duration {
        let until_shown =
            watcher.interval().saturating_sub(self.shown.map_or(Duration::ZERO, |at| at.elapsed()));
        let mut patience = LEASES_INTERVAL.saturating_sub(self.leases_looked.elapsed()).min(until_shown);
        if let Some(wake_at) = self.scheduler.wake_at() {
            let micros = wake_at.as_micros().saturating_sub(self.clock.now().as_micros()).max(0);
            patience = patience.min(Duration::from_micros(micros as u64));
        }
        if self.others_wrote {
            patience = patience.min(self.news.next_look().saturating_duration_since(Instant::now()));
        }
        if !self.progress.is_empty() {
            patience = patience.min(PROGRESS_INTERVAL.saturating_sub(self.progress_stored.elapsed()));
        }
        if let Some(until) = self.hold_until {
            patience = until.saturating_duration_since(Instant::now());
        }
        patience.max(Duration::from_micros(100))
    }

    /// Stores the latest progress of all attempts that have reported some, in one write.
    fn store_progress(&mut self) -> Result<(), StoreError> {
        let reports = self
            .progress
            .iter()
            .map(|(key, progress)| (key.plan.clone(), key.task.clone(), key.attempt, progress.clone()));
        self.service.record_progress(&reports.collect::<Vec<_>>())?;
        self.progress.clear();
        Ok(())
    }

    fn show(&mut self, watcher: &mut dyn RunObserver) {
        if self.shown.is_some_and(|at| at.elapsed() < watcher.interval()) {
            return;
        }
        self.shown = Some(Instant::now());
        let plans = self.scheduler.followed().filter_map(|id| self.scheduler.plan(id)).collect();
        let running = self.scheduler.running().collect();
        let waits = self.scheduler.rest() == Idleness::Waiting;
        watcher.on_tick(&View { plans, running, now: self.clock.now(), waits });
    }

    /// What others have written, whose leases have ended, and our own signs of life, each when its time has come.
    fn look_around(&mut self) -> Result<(), RunError> {
        if self.outage.lasts() && self.is_held() {
            return Ok(());
        }
        if self.others_wrote && self.news.next_look() <= Instant::now() {
            self.others_wrote = false;
            self.news.looked();
            self.tolerate(Self::read_others)?;
            self.tolerate(Self::make_room)?;
            self.tolerate(|runner| runner.slots.as_ref().map_or(Ok(()), StoredSlots::look_again))?;
        }
        if !self.progress.is_empty() && self.progress_stored.elapsed() >= PROGRESS_INTERVAL {
            self.progress_stored = Instant::now();
            self.tolerate(Self::store_progress)?;
        }
        if self.is_heartbeat_due() {
            self.heartbeat = Instant::now();
            self.tolerate(Self::send_heartbeat)?;
        }
        if self.leases_looked.elapsed() >= LEASES_INTERVAL {
            self.leases_looked = Instant::now();
            self.tolerate(Self::look_at_own_row)?;
            self.others_wrote = true;
            self.look_for_lost()?;
        }
        Ok(())
    }

    /// Runs something that will be tried again later anyway.
    fn tolerate(&mut self, work: impl FnOnce(&mut Self) -> Result<(), StoreError>) -> Result<(), RunError> {
        match work(self) {
            Ok(()) => Ok(()),
            Err(error) => self.store_failed(error),
        }
    }
}
