//! The event loop that runs plans: waits for an event, asks the scheduler, and executes its actions.
//!
//! Makes no decisions about tasks. A reservation is durable before its work starts, and an end is durable before
//! anything that depends on it starts, because the scheduler returns starts only after the write that contains both.

mod expired_leases;
mod fences;
mod follow;
mod heartbeat;
mod job_endings;
mod lease_watch;
mod left_tasks;
mod log_upload;
mod lost_plan;
mod message;
mod outage;
mod plan_error;
mod plan_source;
mod poll_backoff;
mod remark;
mod remote_jobs;
mod store_outage;
mod worker_row;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

use expired_leases::ExpiredLeases;
use fences::Fences;
pub use follow::Follow;
use follow::Offers;
pub(crate) use follow::watch as watch_store;
use job_endings::Endings;
use lease_watch::LeaseWatch;
use log_upload::Copies;
pub(crate) use message::Message;
use outage::{Access, Outage, STORE_FAILURES_MAX, of_unrecorded};
use plan_error::{is_of_plan, lost_plan};
use poll_backoff::PollBackoff;
pub use remark::RunWarning;
use waypost_core::{Command, Plan, PlanId, Refusal, TaskId, Timestamp};
use waypost_service::{Authenticator, Record, Service};
use waypost_store::{PlanStore, Slots, StoreError, Worker, WriteError, meters};

use crate::action_queue::ActionQueue;
use crate::reporters::Reporters;
use crate::scheduler::{
    AHEAD_FEW, Action, AfterFailure, Control, Idleness, Input, RunEvent, RunLimits, Scheduler, SlotKeeper,
    TaskFilter,
};
use crate::slots::{FileSlots, StoredSlots};
use crate::store_clock::Clock;
use waypost_config::{Config, Definitions, ExecutionEnv};
use waypost_exec::liveness_lock::LivenessLock;
use waypost_exec::{
    AttemptEvent, AttemptHandle, AttemptKey, AttemptOutcome, AttemptSpec, ExecutorPool, Force,
    PreparedAttempt, prepare_logs, soon,
};

/// The interval of checking other workers' leases, and of reading their writes in case a notification was lost.
const LEASES_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two writes of progress; more frequent reports replace each other.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of other writers' versions read at a time.
const VERSIONS_MAX: usize = 1_000;

/// The state of a run at one moment.
#[derive(Debug)]
pub struct View<'a> {
    pub plans: Vec<&'a Plan>,
    /// The attempts running in this process, with their start times.
    pub running: Vec<(&'a AttemptKey, Timestamp)>,
    pub now: Timestamp,
    /// Whether the run waits for people or for workers elsewhere.
    pub waits: bool,
}

/// Receives the events of a run.
pub trait RunObserver {
    /// An event happened and is durable.
    fn on_event(&mut self, _notice: &RunEvent) {}
    /// All events so far were reported: batched output should be written now.
    fn pause(&mut self) {}
    /// The run was asked to end.
    fn asked_to_end(&mut self, _control: Control) {}
    /// A warning about the run itself, not about one of its tasks.
    fn on_warning(&mut self, _remark: &RunWarning) {}
    /// The current state of the run. Called about once per [`RunObserver::interval`], to update a clock.
    fn on_tick(&mut self, _view: &View<'_>) {}
    /// The maximum time between two calls of [`RunObserver::on_tick`] while nothing happens.
    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The last request to end, if there was one.
    pub asked_to_end: Option<Control>,
    /// Whether work is left that this run will not do.
    pub rest: Idleness,
    /// One message for each reporter that missed events.
    pub unreported: Vec<String>,
    /// Whether the run is not over but was interrupted by [`Controller::interrupt`], to be continued.
    pub aside: bool,
    /// The schema of the store, if the run ended because a newer build has migrated it.
    pub newer_schema: Option<u32>,
}

impl Summary {
    /// Returns the summary of a run that another process has carried out to its end.
    pub fn of_others() -> Self {
        let (asked_to_end, newer_schema) = (None, None);
        Self { asked_to_end, rest: Idleness::Over, unreported: Vec::new(), aside: false, newer_schema }
    }
}

/// When a run ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitPolicy {
    /// When nothing more will happen in this run.
    #[default]
    UntilOver,
    /// When nothing runs and nothing can start, here or on other workers.
    UntilIdle,
    /// Never, only on request.
    UntilAsked,
}

#[derive(Debug)]
pub struct Options {
    pub follow: Follow,
    pub after_failure: AfterFailure,
    /// Maximum number of concurrent programs, in addition to the limits of the queues.
    pub jobs: Option<u32>,
    pub takes: TaskFilter,
    pub patience: ExitPolicy,
    /// The account whose approvals count.
    pub authenticator: Authenticator,
}

impl Options {
    /// The defaults for a run of these plans.
    pub fn plans(ids: Vec<PlanId>) -> Self {
        Self {
            follow: Follow::Plans(ids),
            after_failure: AfterFailure::default(),
            jobs: None,
            takes: TaskFilter::default(),
            patience: ExitPolicy::default(),
            authenticator: Authenticator::default(),
        }
    }
}

/// Why a run could not continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store failed too many times in a row.
    #[error("the store failed {STORE_FAILURES_MAX} times in a row: {0}")]
    StoreFailed(StoreError),
    /// The store cannot be used any more.
    #[error("{0}")]
    Store(StoreError),
    /// The run was stopped while the store could not be used.
    #[error("the run was stopped while the store could not be used: {error}{}", of_unrecorded(unrecorded))]
    StoppedInOutage {
        error: StoreError,
        /// Attempts that ended and whose end is not in the store.
        unrecorded: Vec<AttemptKey>,
    },
    /// The plan could not be read or written.
    #[error("{0}")]
    Plan(WriteError),
    /// Attempts could not write their logs.
    #[error("the logs folder {} cannot be written: {error}", folder.display())]
    Logs { folder: PathBuf, error: std::io::Error },
    /// The only plan of the run can no longer be read or written.
    #[error("{}", lost_plan(plan, error))]
    PlanLost { plan: PlanId, error: Box<WriteError> },
}

/// Controls a run from another thread.
#[derive(Clone, Debug)]
pub struct Controller(Sender<Message>);

impl Controller {
    pub(crate) fn to(sender: Sender<Message>) -> Self {
        Self(sender)
    }

    /// Makes [`Runner::run`] return without ending anything.
    pub fn interrupt(&self) {
        let _over = self.0.send(Message::Aside);
    }

    /// Sends a request to end. A run that is over ignores it.
    pub fn say(&self, control: Control) {
        let _over = self.0.send(Message::Control(control));
    }
}

/// Runs plans of one store until nothing more is to be done.
pub struct Runner {
    _liveness: Option<LivenessLock>,
    /// The registry row of this run among the workers of the store.
    row: Worker,
    /// Whether the row has changed and is not written yet.
    has_news: bool,
    /// Counts slots in the store, if several machines share it.
    slots: Option<StoredSlots>,
    /// Uploads logs to the store, if several machines share it.
    copies: Option<Copies>,
    plans: Arc<PlanStore>,
    /// Writes to the store.
    service: Service,
    config: Arc<Config>,
    workshop: Arc<ExecutorPool>,
    scheduler: Scheduler,
    actions: ActionQueue,
    reporters: Reporters,
    offers: Option<Offers>,
    patience: ExitPolicy,
    changed: Arc<AtomicBool>,
    aside: bool,
    others_wrote: bool,
    /// When it last made the store number what was just committed.
    numbered: Instant,
    /// Whether the store has notified it of a change since it looked at its own row.
    was_notified: bool,
    news: PollBackoff,
    handles: BTreeMap<AttemptKey, AttemptHandle>,
    fences: Fences,
    /// Attempts that end when their lease does.
    leases: LeaseWatch,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    /// Wakes the loop at once, even while it batches.
    bell: Receiver<()>,
    clock: Clock,
    /// Expired leases of others that are alive.
    expired: ExpiredLeases,
    leases_looked: Instant,
    /// How long after that it looks again: longer if the store is slow, so that most of the time is left for the work.
    leases_pause: Duration,
    heartbeat: Instant,
    /// The latest progress of attempts, not stored yet.
    progress: BTreeMap<AttemptKey, String>,
    progress_stored: Instant,
    /// The last time at which all leases of this run were known to be held.
    renewed: Instant,
    shown: Option<Instant>,
    outage: Outage,
    remarks: Vec<RunWarning>,
    /// What happened to the plan that was lost last.
    lost: Option<RunError>,
    /// Remote jobs that are being ended.
    endings: Endings,
    hold_until: Option<Instant>,
    asked_to_end: Option<Control>,
    /// The schema of the store, once a newer build has migrated it.
    newer_schema: Option<u32>,
}

/// The directory with the liveness locks of all runs of this workspace.
fn runs(around: &ExecutionEnv) -> PathBuf {
    around.logs.with_file_name("runs")
}

impl Runner {
    /// Creates a run of these plans, which must be in the store.
    pub fn new(
        plans: Arc<PlanStore>,
        config: Arc<Config>,
        around: ExecutionEnv,
        after_failure: AfterFailure,
        ids: Vec<PlanId>,
    ) -> Result<Self, RunError> {
        Self::with(plans, config, around, Options { after_failure, ..Options::plans(ids) })
    }

    /// Creates a run with options.
    pub fn with(
        plans: Arc<PlanStore>,
        config: Arc<Config>,
        around: ExecutionEnv,
        options: Options,
    ) -> Result<Self, RunError> {
        let of_store = |error: StoreError| RunError::Plan(error.into());
        let Options { follow, after_failure, jobs, takes, patience, authenticator } = options;
        let of_logs = |error| RunError::Logs { folder: around.logs.clone(), error };
        prepare_logs(&around.logs).map_err(of_logs)?;
        let authenticator = authenticator.in_store(&**plans.store()).map_err(of_store)?;
        let row = worker_row::of(&plans, &config, &around.worker, &follow, &takes, jobs);
        let (sender, messages) = channel();
        let (ring, bell) = sync_channel(1);
        let changed = Arc::new(AtomicBool::new(false));
        // Before the first read, so that no change in between is missed.
        follow::watch(&plans, sender.clone(), Arc::clone(&changed)).map_err(of_store)?;
        let shared = Self::is_shared(&plans);
        let slots = shared.then(|| StoredSlots::new(Arc::clone(&plans), around.worker.clone()));
        let keeper: Box<dyn SlotKeeper> = match &slots {
            Some(slots) => Box::new(slots.clone()),
            None => Box::new(FileSlots::new(around.logs.with_file_name("queues"))),
        };
        let copies = shared.then(|| Copies::new(around.logs.clone(), around.worker.clone()));
        let offers = Offers::of(&follow, &takes);
        let others = Service::new(Arc::clone(&plans), Arc::clone(&config));
        let others = Some(others.with_authenticator(authenticator.clone()));
        let bounds = RunLimits { jobs, takes, keeper, authenticator, others };
        let scheduler = Scheduler::bounded(Arc::clone(&config), around.worker.clone(), after_failure, bounds);
        let clock = Clock::new(&plans).map_err(of_store)?;
        let now = Instant::now();
        let reporters = Reporters::begin(&config, &around);
        // Without the lock file, a later run can tell that this one died only by the marks of its processes.
        let liveness = LivenessLock::begin(&runs(&around), &around.worker).ok();
        let events = sender.clone();
        // The receiver is gone when the run is over.
        let events = Arc::new(move |event| drop(events.send(Message::Attempt(event))));
        let mut runner = Self {
            _liveness: liveness,
            row,
            has_news: false,
            slots,
            copies,
            service: Service::new(Arc::clone(&plans), Arc::clone(&config)),
            plans,
            config,
            workshop: Arc::new(ExecutorPool::new(around, events, ring, AHEAD_FEW)),
            scheduler,
            actions: ActionQueue::default(),
            reporters,
            offers,
            patience,
            changed,
            aside: false,
            others_wrote: false,
            numbered: now,
            was_notified: false,
            news: PollBackoff::new(),
            handles: BTreeMap::new(),
            fences: Fences::default(),
            leases: LeaseWatch::default(),
            sender,
            messages,
            bell,
            clock,
            expired: ExpiredLeases::default(),
            leases_looked: now,
            leases_pause: LEASES_INTERVAL,
            heartbeat: now,
            progress: BTreeMap::new(),
            progress_stored: now,
            renewed: now,
            shown: None,
            outage: Outage::default(),
            remarks: Vec::new(),
            lost: None,
            endings: Endings::default(),
            hold_until: None,
            asked_to_end: None,
            newer_schema: None,
        };
        runner.begin(follow)?;
        runner.register().map_err(of_store)?;
        runner.look_for_lost()?;
        Ok(runner)
    }

    /// Returns a handle that can end the run.
    pub fn controller(&self) -> Controller {
        Controller(self.sender.clone())
    }

    /// Runs until nothing more is to be done here.
    pub fn run(&mut self, watcher: &mut dyn RunObserver) -> Result<Summary, RunError> {
        let ended = self.turn_until_over(watcher);
        if ended.is_err() {
            // Work whose end could not be written must not continue unobserved.
            for handle in self.handles.values() {
                handle.stop(Force::Kill);
            }
        }
        let aside = std::mem::take(&mut self.aside);
        // An interrupted run continues to report later.
        let unreported = if aside { Vec::new() } else { self.reporters.finish() };
        if !aside {
            self.endings.finish(&self.workshop.around);
            self.unregister();
        }
        let (asked_to_end, newer_schema) = (self.asked_to_end, self.newer_schema);
        ended.map(|rest| Summary { asked_to_end, rest, unreported, aside, newer_schema })
    }

    fn turn_until_over(&mut self, watcher: &mut dyn RunObserver) -> Result<Idleness, RunError> {
        loop {
            self.verify_leases_after_pause()?;
            while let Ok(message) = self.messages.try_recv() {
                self.take(message, watcher);
            }
            self.check_drain_requested(watcher);
            if let Some(error) = self.stopped_in_outage() {
                return Err(error);
            }
            self.act(watcher)?;
            if let Some(error) = self.lost_run() {
                return Err(error);
            }
            self.warn(watcher);
            self.show(watcher);
            if self.aside {
                return Ok(self.scheduler.rest());
            }
            // A turn that ended early has more to do, and perhaps more to tell.
            if self.hold_until.is_none()
                && self.actions.is_done()
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

    /// Passes the warnings so far to the observer.
    fn warn(&mut self, watcher: &mut dyn RunObserver) {
        let left = self.offers.as_mut().map(|offers| offers.left.warnings()).unwrap_or_default();
        for remark in std::mem::take(&mut self.remarks).into_iter().chain(left) {
            watcher.on_warning(&remark);
        }
        watcher.pause();
    }

    /// Returns the next message, or `None` if there is none in time.
    fn next_message(&self, patience: Duration) -> Option<Message> {
        if patience.is_zero() {
            return self.messages.try_recv().ok();
        }
        if self.scheduler.is_batching() {
            // Waking up for each attempt that ends meanwhile would cost as much as writing each of them separately.
            let _rung = self.bell.recv_timeout(patience);
            return self.messages.try_recv().ok();
        }
        // While a single attempt runs, the loop may busy-poll: no other thread of this process needs the processor.
        if self.handles.len() == 1
            && let Some(found) = soon(&self.messages)
        {
            return found.ok();
        }
        self.messages.recv_timeout(patience).ok()
    }

    /// Returns how the run ends, if it ends now.
    fn is_over(&self) -> Option<Idleness> {
        let rest = self.scheduler.rest();
        let over = match (rest, self.patience) {
            (Idleness::Busy, _) => false,
            (Idleness::Waiting | Idleness::Over, _) if self.asked_to_end.is_some() => true,
            (_, ExitPolicy::UntilAsked) => false,
            // The plans that were not followed so far are searched first.
            (_, ExitPolicy::UntilIdle) if self.offers.as_ref().is_some_and(|offers| offers.more) => false,
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
                let at = self.clock.at(at);
                self.measure_start(&key, at);
                self.scheduler.handle(at, Input::Began(key, predecessor));
            }
            Message::Attempt(AttemptEvent::Ended { key, ending, at }) => {
                let at = self.clock.at(at);
                self.handles.remove(&key);
                self.fences.forget(&key);
                let ending = match self.leases.remove(&key) {
                    true => AttemptOutcome::TryAgain {
                        error: "the lease could not be renewed, and the attempt was ended (`end_when_lost`)"
                            .to_owned(),
                    },
                    false => ending,
                };
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
                // The flag is cleared before the store is read, so that later writes notify again.
                self.changed.store(false, Ordering::Release);
                (self.others_wrote, self.was_notified) = (true, true);
                self.handle(Input::StoreChanged);
            }
            Message::Aside => self.aside = true,
        }
    }

    /// Executes the actions of the scheduler until there are none, or until the turn has taken long enough.
    fn act(&mut self, watcher: &mut dyn RunObserver) -> Result<(), RunError> {
        if self.is_held() || self.is_unsure() {
            return Ok(());
        }
        self.hold_until = None;
        self.compare_pinned_files();
        self.actions.begin(self.clock.now());
        while let Some(action) = self.actions.next(self.clock.now(), &mut self.scheduler) {
            match action {
                Action::Write(id, commands) => self.write(&id, commands)?,
                Action::WritePossible(id, commands) => self.write_possible(&id, commands)?,
                Action::CatchUp(id) => self.tolerate(Access::Read, |runner| runner.catch_up(&id))?,
                Action::Read(id) => self.read(&id, watcher)?,
                Action::Prepare(key) => self.prepare(key),
                Action::Start(key) => self.start(key),
                Action::Stop(key, force) => self.stop(key, force),
                Action::Withdraw(key) => {
                    self.withdraw(&key);
                }
                Action::StoreProgress(key, progress) => {
                    self.progress.insert(key, progress);
                }
                Action::Tell(notice) => {
                    self.reporters.tell(self.clock.now(), &notice);
                    watcher.on_event(&notice);
                }
            }
            if self.actions.is_empty() && self.hold_until.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Looks at the files that executors pin. What changed is compared with the approvals, and told to others.
    fn compare_pinned_files(&mut self) {
        if self.config.pinned_files.is_empty() {
            return;
        }
        let definitions = Definitions::of(&self.config);
        let published = worker_row::published(&definitions);
        if self.scheduler.redefine(definitions) {
            self.row.definitions = published;
            self.has_news = true;
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

    /// Returns the slots that tasks of a plan take.
    fn slots(&self, id: &PlanId) -> Slots {
        let (queue, own) = self.scheduler.slots_besides(id).unwrap_or_default();
        let bound = self.slots.as_ref().and_then(|_| self.config.queues.get(&queue));
        Slots { concurrency: bound.map(|queue| queue.concurrency), queue, own }
    }

    /// Warns about a report that came too late.
    fn remark_on(&mut self, refusal: &Refusal) {
        if let Refusal::StaleAttempt { .. } = refusal {
            let remark = RunWarning::ReportRefused { why: refusal.to_string() };
            // The start and the end of an attempt are refused for the same reason; warn once.
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
    }

    /// Returns the tasks that get locks by these commands.
    fn locked_by(&self, id: &PlanId, commands: &[Command]) -> Vec<TaskId> {
        let Some(plan) = self.scheduler.plan(id) else { return Vec::new() };
        let locked = |command: &Command| {
            let Command::QueueTask { task, .. } = command else { return None };
            let has_locks = plan.task(task.as_str()).is_some_and(|task| !task.spec.locks.is_empty());
            has_locks.then(|| task.clone())
        };
        commands.iter().filter_map(locked).collect()
    }

    fn write_possible(&mut self, id: &PlanId, commands: Vec<Command>) -> Result<(), RunError> {
        let slots = self.slots(id);
        let locked = self.locked_by(id, &commands);
        match self.service.record_possible_attempts(self.record(id, commands), slots) {
            Ok(committed) => {
                self.store_answered(Access::Write);
                self.fences.note(id, locked, committed.version);
                let refusals: Vec<Refusal> =
                    committed.rejected.into_iter().map(|(_, refusal)| refusal).collect();
                for refusal in &refusals {
                    self.remark_on(refusal);
                }
                self.handle(Input::PartlyWritten(id.clone(), committed.version, refusals));
                let known = self.scheduler.plan(id).map_or(0, Plan::version);
                // If they are not cached, the scheduler requests them.
                if let Some(entries) = self.plans.cached_versions(id, known, committed.version) {
                    self.handle(Input::Advanced(id.clone(), entries));
                }
                self.news.wrote(!self.handles.is_empty());
                Ok(())
            }
            Err(WriteError::Store(error)) if !is_of_plan(&error) => {
                self.handle(Input::Unknown(id.clone()));
                self.store_failed(Access::Write, error)
            }
            Err(error) => {
                self.lose_plan(id, error);
                Ok(())
            }
        }
    }

    fn write(&mut self, id: &PlanId, commands: Vec<Command>) -> Result<(), RunError> {
        let slots = self.slots(id);
        let locked = self.locked_by(id, &commands);
        match self.service.record_attempts(self.record(id, commands), slots) {
            Ok(committed) => {
                self.store_answered(Access::Write);
                self.fences.note(id, locked, committed.version);
                self.news.wrote(false);
                self.handle(Input::Written(id.clone(), committed.version));
            }
            Err(WriteError::Refused(refusal)) => {
                self.remark_on(&refusal);
                self.handle(Input::Refused(id.clone(), refusal));
            }
            Err(WriteError::Store(error)) if !is_of_plan(&error) => {
                self.handle(Input::Unknown(id.clone()));
                self.store_failed(Access::Write, error)?;
            }
            Err(error) => self.lose_plan(id, error),
        }
        Ok(())
    }

    fn read(&mut self, id: &PlanId, watcher: &mut dyn RunObserver) -> Result<(), RunError> {
        loop {
            match self.copy_of(id) {
                Ok(plan) => {
                    self.store_answered(Access::Read);
                    self.handle(Input::Adopted(Box::new(plan)));
                    return Ok(());
                }
                Err(WriteError::Store(error)) if !is_of_plan(&error) => {
                    self.store_failed(Access::Read, error)?;
                    self.warn(watcher);
                    if let Some(error) = self.stopped_in_outage() {
                        return Err(error);
                    }
                    // The scheduler requests the plan only once, so retry here.
                    if let Ok(message) = self.messages.recv_timeout(self.store_pause()) {
                        self.take(message, watcher);
                    }
                }
                Err(error) => {
                    self.lose_plan(id, error);
                    return Ok(());
                }
            }
        }
    }

    fn job(&mut self, key: &AttemptKey) -> Option<PreparedAttempt> {
        let Some(plan) = self.scheduler.plan(&key.plan) else {
            self.end_before_it_began(key);
            return None;
        };
        let has_locks = plan.task(key.task.as_str()).is_some_and(|task| !task.spec.locks.is_empty());
        let fence = has_locks.then(|| self.fences.of(&self.plans, key)).flatten();
        match AttemptSpec::of(&self.config, plan, key, self.clock.now(), fence) {
            Ok(job) => {
                let ends_when_lost = self.config.end_when_lost.contains(&job.executor);
                let (attempt, handle) = PreparedAttempt::new(job);
                if ends_when_lost {
                    let until = Instant::now() + Duration::from_secs(u64::from(self.config.lease_seconds));
                    self.leases.add(key.clone(), handle.clone(), until);
                }
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
            // It was prepared; if it is no longer pending, it has started.
            true => self.workshop.pending.leave(&key),
            // It may have been prepared, begun by itself and ended.
            false if !self.scheduler.awaits_start(&key) => None,
            false => self.job(&key),
        };
        if let Some(attempt) = attempt {
            self.workshop.begin(attempt);
        }
    }

    /// Measures how long the task could have started before its program began.
    fn measure_start(&self, key: &AttemptKey, began: Timestamp) {
        let Some(plan) = self.scheduler.plan(&key.plan) else { return };
        if let Some(ready) = self.scheduler.ready_since(key) {
            let queue = Config::queue_name(&plan.spec().queue);
            meters().start_delays.with([queue], |times| times.took(began.since(ready)));
        }
    }

    fn stop(&mut self, key: AttemptKey, force: Force) {
        if !self.withdraw(&key)
            && let Some(handle) = self.handles.get(&key)
        {
            handle.stop(force);
        }
    }

    /// Ends a pending attempt. Returns false if it has begun.
    fn withdraw(&mut self, key: &AttemptKey) -> bool {
        let is_pending = self.workshop.pending.leave(key).is_some();
        if is_pending {
            self.handles.remove(key);
            self.leases.remove(key);
            self.end_before_it_began(key);
        }
        is_pending
    }

    fn end_before_it_began(&mut self, key: &AttemptKey) {
        let error = "it was stopped before it began".to_owned();
        self.handle(Input::Ended(key.clone(), AttemptOutcome::Failed { error }));
    }

    /// Returns how long to wait for a message.
    fn poll_timeout(&self, watcher: &dyn RunObserver) -> Duration {
        if !self.actions.is_done() && !self.is_held() {
            return Duration::ZERO;
        }
        let until_shown =
            watcher.interval().saturating_sub(self.shown.map_or(Duration::ZERO, |at| at.elapsed()));
        let mut patience = self.leases_pause.saturating_sub(self.leases_looked.elapsed()).min(until_shown);
        if let Some(wake_at) = self.scheduler.wake_at() {
            let micros = wake_at.as_micros().saturating_sub(self.clock.now().as_micros()).max(0);
            patience = patience.min(Duration::from_micros(micros as u64));
        }
        if self.others_wrote {
            patience = patience.min(self.next_look().saturating_duration_since(Instant::now()));
        }
        if !self.progress.is_empty() {
            patience = patience.min(PROGRESS_INTERVAL.saturating_sub(self.progress_stored.elapsed()));
        }
        if let Some(until) = self.hold_until {
            patience = until.saturating_duration_since(Instant::now());
        }
        patience.max(Duration::from_micros(100))
    }

    /// Returns when to read what others have written, if anything.
    fn next_look(&self) -> Instant {
        let is_busy = !self.handles.is_empty() && self.asked_to_end.is_none();
        let has_room = !(is_busy && self.slots.as_ref().is_some_and(StoredSlots::has_no_room));
        self.news.next_look(has_room)
    }

    /// Stores the latest progress of all attempts that have reported any, in one write.
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

    /// Reads other writers' changes, stores progress, sends heartbeats and checks leases, each when it is due.
    fn look_around(&mut self) -> Result<(), RunError> {
        if self.outage.lasts() && self.is_held() {
            return Ok(());
        }
        // A write that is decided and not made yet is about the copies as they are.
        if self.others_wrote && self.actions.is_empty() && self.next_look() <= Instant::now() {
            self.others_wrote = false;
            self.news.looked();
            self.tolerate(Access::Read, Self::read_others)?;
            self.tolerate(Access::Read, Self::make_room)?;
            self.tolerate(Access::Read, |runner| {
                runner.slots.as_ref().map_or(Ok(()), StoredSlots::look_again)
            })?;
            self.news.has_read();
        }
        if !self.progress.is_empty() && self.progress_stored.elapsed() >= PROGRESS_INTERVAL {
            self.progress_stored = Instant::now();
            self.tolerate(Access::Write, Self::store_progress)?;
        }
        if self.is_heartbeat_due() {
            self.heartbeat = Instant::now();
            self.tolerate(Access::Write, Self::send_heartbeat)?;
        }
        if self.leases_looked.elapsed() >= self.leases_pause {
            let began = Instant::now();
            if std::mem::take(&mut self.was_notified) || !self.is_quiet() {
                self.tolerate(Access::Read, Self::look_at_own_row)?;
                self.others_wrote = true;
            }
            self.look_for_lost()?;
            self.leases_looked = Instant::now();
            let longest = LEASES_INTERVAL.max(self.lease() / 3);
            self.leases_pause = (began.elapsed() * 4).clamp(LEASES_INTERVAL, longest);
        }
        Ok(())
    }

    /// Runs work that is repeated anyway, so that a single failure of the store does not end the run.
    fn tolerate(
        &mut self,
        access: Access,
        work: impl FnOnce(&mut Self) -> Result<(), StoreError>,
    ) -> Result<(), RunError> {
        match work(self) {
            Ok(()) => Ok(()),
            Err(error) => self.store_failed(access, error),
        }
    }
}
