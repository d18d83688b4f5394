//! Decides which task starts when: a synchronous state machine without threads, clock, files or store.
//!
//! Inputs go in through [`Scheduler::handle`], and actions come out of [`Scheduler::step`]. The scheduler keeps a copy
//! of each plan that it runs and applies its own commands to the copy before they are written, so that a finish and the
//! reservations that follow from it are one write. Nothing starts until that write is durable. If the write fails, the
//! stored plan replaces the copy and shows what became of the write.

mod approval;
mod attempts;
mod duration_average;
mod finish;
mod foreign_locks;
mod lookahead;
mod peer_workers;
mod run_event;
mod select;
mod shared_plan;
mod slots;
mod take_over;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use waypost_core::canonical::Hash;
use waypost_core::{
    Actor, Command, Dependency, Event, GateRecord, LockTable, Phase, Plan, PlanId, Proof, Refusal, Status,
    Task, TaskId, Timestamp,
};
use waypost_service::{Authenticator, HumanTask, NotAuthentic, Service};
use waypost_store::VersionRecord;

pub(crate) use duration_average::AHEAD_FEW;
pub use run_event::{News, RunEvent};
pub(crate) use run_event::{news_of, notices_of};
pub use slots::{SlotKeeper, Unshared};
use waypost_exec::{AttemptKey, AttemptOutcome, Force};

use attempts::{ActiveAttempt, AttemptStage};
use foreign_locks::ForeignLocks;
use slots::Slots;
use waypost_config::{Config, Definitions};

/// Commands of tasks that end at once, in one write.
const INSTANT_COMMANDS_MAX: usize = 2_000;
/// Attempts of a task whose worker asks for another attempt, if the task sets no limit.
pub const TRY_AGAIN_ATTEMPTS: u32 = 10;
/// The minimum number of attempts of a task whose workers were lost, if its author sets no limit.
pub const LOST_ATTEMPTS_MIN: u32 = 3;
/// Microseconds that a task waits after another process made it impossible.
const PARKED_MICROS: i64 = 250_000;

/// Seconds between two looks at other plans while a person has to act there.
const OTHER_PLANS_SECONDS: u64 = 1;

/// How an attempt of another worker was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its lease expired.
    Expired,
    /// The process that ran it is known to be dead, with everything that it started.
    Died,
    /// The process is known to be dead, and the remote job that it started may still run.
    JobLeft,
}

/// A request of the person at the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Start nothing new.
    Drain,
    /// Also stop what runs.
    Stop,
}

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// The plan as stored: at the start, and after a write whose result was not the expected one.
    Adopted(Box<Plan>),
    /// Versions that others wrote.
    Advanced(PlanId, Vec<VersionRecord>),
    /// The store may have changed.
    StoreChanged,
    /// A plan can no longer be read or written: it was purged, for example.
    PlanLost(PlanId),
    /// A write is durable and created this version.
    Written(PlanId, u64),
    /// The possible part of a write is durable, and the plan is at this version; the rest was refused.
    PartlyWritten(PlanId, u64, Vec<Refusal>),
    /// A write was refused as a whole.
    Refused(PlanId, Refusal),
    /// The result of a write is unknown.
    Unknown(PlanId),
    /// An attempt of ours has begun. If it was pending, it took the slot of the second attempt, whose end follows.
    Began(AttemptKey, Option<AttemptKey>),
    /// An attempt of ours has ended.
    Ended(AttemptKey, AttemptOutcome),
    /// An attempt of ours reported progress.
    Progressed(AttemptKey, String),
    /// An attempt of another worker is lost.
    Gone(AttemptKey, Loss),
    /// An attempt of ours has lost its lease to another worker.
    Lost(AttemptKey),
    Control(Control),
}

/// What to do.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Write these commands as one version, then report the result.
    Write(PlanId, Vec<Command>),
    /// Write those of these commands that are possible as one version, then report the result.
    WritePossible(PlanId, Vec<Command>),
    /// Read the versions of the plan that the copy has not seen, then pass them in.
    CatchUp(PlanId),
    /// Read the plan from the store, then pass it in.
    Read(PlanId),
    /// Make a durably queued attempt pending: it begins when another of its queue ends, or when it is started.
    Prepare(AttemptKey),
    /// Start a durably queued attempt.
    Start(AttemptKey),
    /// Stop an attempt.
    Stop(AttemptKey, Force),
    /// End a pending attempt, unless it has begun.
    Withdraw(AttemptKey),
    /// Notify the observers.
    Tell(RunEvent),
    /// Store the latest progress of an attempt.
    StoreProgress(AttemptKey, String),
}

/// What is left to do for a scheduler without actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idleness {
    /// Something runs, is being written or will be retried.
    Busy,
    /// People or workers elsewhere have to act.
    Waiting,
    /// Nothing more will happen here.
    Over,
}

/// How a run continues after a task has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFailure {
    /// Tasks that do not depend on the failed one continue.
    #[default]
    KeepGoing,
    /// Nothing new starts.
    FailFast,
}

/// Which tasks a run takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only tasks of these executors; `None`: of all.
    pub executors: Option<BTreeSet<String>>,
    /// Whether tasks that this configuration cannot run are left to other workers. Otherwise they fail.
    pub leaves_unknown: bool,
    /// Whether only events caused by this run are reported.
    pub tells_own_only: bool,
}

/// The limits of a run. The default has its queues to itself and takes every task.
#[derive(Debug)]
pub struct RunLimits {
    /// The most programs of all queues at the same time.
    pub jobs: Option<u32>,
    pub takes: TaskFilter,
    pub keeper: Box<dyn SlotKeeper>,
    /// Verifies approvals.
    pub authenticator: Authenticator,
    /// Reads plans that tasks depend on; without it, tasks for people in other plans are not looked at.
    pub others: Option<Service>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            jobs: None,
            takes: TaskFilter::default(),
            keeper: Box::new(Unshared),
            authenticator: Authenticator::default(),
            others: None,
        }
    }
}

/// A write whose result is not known yet.
#[derive(Debug, Default)]
struct Pending {
    /// For a shared plan: the version of the plan after the write, once it is known.
    written: Option<u64>,
    starts: Vec<AttemptKey>,
    finishes: Vec<(AttemptKey, ActiveAttempt)>,
    notices: Vec<RunEvent>,
}

#[derive(Debug)]
struct Followed {
    plan: Plan,
    /// The name of its queue, shared by all its attempts.
    queue: Arc<str>,
    pending: Option<Pending>,
    /// Whether the copy is outdated and has to be read again.
    stale: bool,
    /// Whether the read has been requested.
    reading: bool,
    /// Until when the plan is written as one that others write too.
    shared_until: Option<Timestamp>,
    gone: Vec<(AttemptKey, Loss)>,
    /// Tasks that another process blocks, and until when they are not tried.
    parked: BTreeMap<TaskId, Timestamp>,
    /// How often others have started the tasks that this worker tried, less how often it was faster.
    lost_races: u32,
    /// Tasks that wait for locks, and since when.
    lock_waits: BTreeMap<TaskId, Timestamp>,
    /// When tasks were added that have not started, as far as this process has seen it.
    added_at: BTreeMap<TaskId, Timestamp>,
    resumed_at: Option<Timestamp>,
    /// When the plan last started something, counted in starts of all plans.
    served: u64,
    /// The number of its attempts in this run.
    in_progress: u32,
    /// The latest check of its approval; `None` while it has none.
    approval: Option<CheckedApproval>,
    gates: CheckedGates,
}

/// The tasks for people, and what does not start because of them.
#[derive(Debug, Default)]
struct CheckedGates {
    /// The digest of the work for which the tasks for people were found.
    work: Option<Hash>,
    human: Vec<HumanTask>,
    /// The records that were found to be genuine.
    genuine: BTreeMap<TaskId, GateRecord>,
    /// Those that have ended although no record shows that a person ended them.
    unproved: Vec<TaskId>,
    /// Tasks with work that depend on tasks of other plans.
    external: Vec<TaskId>,
    /// Those that wait for a task for people there that no person ended, each with what it waits for; and the version for
    /// which they were found.
    elsewhere: (Option<u64>, Vec<(TaskId, String)>),
    /// When those were looked for.
    looked_at: Option<Timestamp>,
    /// What waits for those.
    behind: HashSet<TaskId>,
}

impl CheckedGates {
    /// Whether other plans are to be looked at: this plan has changed, or something waits for a person there.
    fn is_due(&self, now: Timestamp, version: Option<u64>) -> bool {
        let is_open =
            || self.looked_at.is_none_or(|at| now >= at.plus_seconds(OTHER_PLANS_SECONDS) || now < at);
        self.elsewhere.0 != version || !self.elsewhere.1.is_empty() && is_open()
    }
}

/// The result of comparing an approval with what this worker would run. It holds until the plan's work or its approval
/// changes.
#[derive(Debug)]
struct CheckedApproval {
    work: Hash,
    /// The digest and the nonce of the record.
    approved: Option<(String, String)>,
    /// What the record proved, and whether it had expired.
    proved: (Option<Result<Proof, NotAuthentic>>, bool),
    refused: bool,
}

#[derive(Debug)]
pub struct Scheduler {
    config: Arc<Config>,
    /// What the names in plans stand for here, to be compared with what was approved.
    definitions: Definitions,
    /// Shows whether an approval is genuine.
    authenticator: Authenticator,
    others: Option<Service>,
    worker: String,
    by: Actor,
    after_failure: AfterFailure,
    plans: BTreeMap<PlanId, Followed>,
    live: BTreeMap<AttemptKey, ActiveAttempt>,
    locks: LockTable,
    foreign_locks: ForeignLocks,
    /// The one task that newcomers may not overtake. With two, each could wait for the other.
    reserved: Option<(PlanId, TaskId, Vec<waypost_core::Lock>)>,
    slots: Slots,
    takes: TaskFilter,
    mates: peer_workers::PeerWorkers,
    /// Durably queued attempts that get the next free slot of their queue, in order.
    waiting: BTreeMap<Arc<str>, VecDeque<AttemptKey>>,
    pace: duration_average::DurationAverage,
    draining: bool,
    stopping: bool,
    /// Whether something has happened after which attempts may have to stop.
    look_at_live: bool,
    /// When the next attempt has to stop because of its time limit.
    live_wake_at: Option<Timestamp>,
    served: u64,
    wake_at: Option<Timestamp>,
    /// Whether an ended attempt waits until `wake_at` for more to be written with it.
    lingers: bool,
    told: Vec<Action>,
    /// The latest progress of attempts that is not reported yet.
    progress: BTreeMap<AttemptKey, String>,
}

/// The name under which a task holds locks.
fn holder(plan: &PlanId, task: &TaskId) -> String {
    format!("{plan}/{task}")
}

impl Scheduler {
    /// Creates a scheduler that writes as `worker`.
    pub fn new(config: Arc<Config>, worker: impl Into<String>, after_failure: AfterFailure) -> Self {
        Self::bounded(config, worker, after_failure, RunLimits::default())
    }

    /// Creates a scheduler with limits.
    pub fn bounded(
        config: Arc<Config>,
        worker: impl Into<String>,
        after_failure: AfterFailure,
        bounds: RunLimits,
    ) -> Self {
        let worker = worker.into();
        let RunLimits { jobs, takes, keeper, authenticator, others } = bounds;
        Self {
            by: Actor::worker(worker.clone()),
            definitions: Definitions::of(&config),
            authenticator,
            others,
            config,
            worker,
            after_failure,
            plans: BTreeMap::new(),
            live: BTreeMap::new(),
            locks: LockTable::default(),
            foreign_locks: ForeignLocks::default(),
            reserved: None,
            slots: Slots::new(keeper, jobs),
            takes,
            mates: peer_workers::PeerWorkers::default(),
            waiting: BTreeMap::new(),
            pace: duration_average::DurationAverage::default(),
            draining: false,
            stopping: false,
            look_at_live: true,
            live_wake_at: None,
            served: 0,
            wake_at: None,
            lingers: false,
            told: Vec::new(),
            progress: BTreeMap::new(),
        }
    }

    /// The actor of its writes.
    pub fn actor(&self) -> &Actor {
        &self.by
    }

    /// Returns the plan as it is once all requested writes are done.
    pub fn plan(&self, id: &PlanId) -> Option<&Plan> {
        self.plans.get(id).map(|followed| &followed.plan)
    }

    /// Returns the attempts that run here now, and since when.
    pub fn running(&self) -> impl Iterator<Item = (&AttemptKey, Timestamp)> {
        let running = self.live.iter().filter(|(_, live)| live.stage == AttemptStage::Running);
        running.filter_map(|(key, live)| Some((key, live.started_at?)))
    }

    /// Returns the attempts that this run has queued and not written as ended: those whose leases it must renew.
    pub fn held(&self) -> impl Iterator<Item = &AttemptKey> {
        self.live.iter().filter(|(_, live)| live.stage != AttemptStage::Reserving).map(|(key, _)| key)
    }

    /// Returns the attempts of this run that have ended, and whose end is not written.
    pub fn unrecorded(&self) -> impl Iterator<Item = &AttemptKey> {
        let has_ended = |live: &ActiveAttempt| live.stage == AttemptStage::Ended && !live.lost;
        let ended = self.live.iter().filter(move |(_, live)| has_ended(live)).map(|(key, _)| key);
        let pending = self.plans.values().filter_map(|followed| followed.pending.as_ref());
        ended.chain(pending.flat_map(|pending| pending.finishes.iter().map(|(key, _)| key)))
    }

    /// Returns the queue of a plan, and how many of its slots this run has apart from those that the pending write
    /// requests.
    pub fn slots_besides(&self, id: &PlanId) -> Option<(String, u32)> {
        let followed = self.plans.get(id)?;
        let queue = Config::queue_name(&followed.plan.spec().queue).to_owned();
        let asked = followed.pending.as_ref().map_or(0, |pending| {
            let has_slot = |key: &&AttemptKey| self.live.get(*key).is_some_and(|live| live.has_slot);
            pending.starts.iter().filter(has_slot).count() as u32
        });
        let own = self.slots.used(&queue).saturating_sub(asked);
        Some((queue, own))
    }

    /// When `step` is to be called again even if nothing happens.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.wake_at
    }

    /// Whether nothing is to be done until `wake_at`, unless few attempts are left that wait for a slot.
    pub fn is_batching(&self) -> bool {
        self.lingers
    }

    /// Processes an input.
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        match &input {
            // The plan is as predicted, and no attempt has to be stopped.
            Input::Written(..)
            | Input::StoreChanged
            | Input::Began(..)
            | Input::Ended(..)
            | Input::Progressed(..) => {}
            Input::Adopted(_)
            | Input::Advanced(..)
            | Input::PlanLost(_)
            | Input::Refused(..)
            | Input::PartlyWritten(..)
            | Input::Unknown(_)
            | Input::Gone(..)
            | Input::Lost(_)
            | Input::Control(_) => self.look_at_live = true,
        }
        match input {
            Input::Adopted(plan) => self.adopt(now, *plan),
            Input::Advanced(id, entries) => self.advance(now, &id, &entries),
            Input::StoreChanged => {
                let plans = &self.plans;
                self.foreign_locks.store_changed(|plan| plans.contains_key(plan));
            }
            Input::PlanLost(id) => self.lose_plan(&id),
            Input::Written(id, version) => self.written(now, &id, version),
            Input::PartlyWritten(id, version, refusals) => {
                self.partly_written(now, &id, version, &refusals);
            }
            Input::Refused(id, refusal) => self.refused(now, &id, &refusal),
            Input::Unknown(id) => {
                if let Some(followed) = self.plans.get_mut(&id) {
                    followed.stale = true;
                }
            }
            Input::Ended(key, ending) => self.ended(now, &key, ending),
            Input::Began(key, predecessor) => self.began(now, &key, predecessor.as_ref()),
            Input::Progressed(key, progress) => {
                self.progress.insert(key, progress);
            }
            Input::Gone(key, loss) => {
                if let Some(followed) = self.plans.get_mut(&key.plan)
                    && !self.live.contains_key(&key)
                {
                    // Its remote job may have been ended meanwhile.
                    followed.gone.retain(|(known, _)| *known != key);
                    followed.gone.push((key, loss));
                }
            }
            Input::Lost(key) => {
                if let Some(live) = self.live.get_mut(&key) {
                    live.lost = true;
                }
            }
            Input::Control(Control::Drain) => self.draining = true,
            Input::Control(Control::Stop) => (self.draining, self.stopping) = (true, true),
        }
    }

    /// Adopts the stored plan, and derives the result of a write that got no answer from it.
    fn adopt(&mut self, now: Timestamp, plan: Plan) {
        let id = plan.id().clone();
        let mut plan = plan;
        plan.take_touched();
        let known = self.plans.remove(&id);
        let pending = match known {
            Some(mut known) => {
                self.tell_missed(&known, &plan);
                let pending = known.pending.take();
                (known.plan, known.stale, known.reading) = (plan, false, false);
                (known.in_progress, known.approval, known.gates) = (0, None, CheckedGates::default());
                known.queue();
                self.plans.insert(id.clone(), known);
                pending
            }
            None => {
                self.plans.insert(id.clone(), Followed::new(plan));
                None
            }
        };
        let Some(followed) = self.plans.get_mut(&id) else { return };
        if self.mates.are_there(now) {
            // Workers that wrote other plans will write this one, too.
            followed.share(now);
        }
        self.foreign_locks.look_at(now, &followed.plan);
        self.resolve(now, &id, pending.unwrap_or_default());
    }

    /// Reports what the replaced copy of a plan does not show: what others wrote, and a write that got no answer.
    fn tell_missed(&mut self, replaced: &Followed, stored: &Plan) {
        let nothing = Pending::default();
        let pending = replaced.pending.as_ref().unwrap_or(&nothing);
        let own_only = self.takes.tells_own_only;
        for notice in run_event::notices_between(&replaced.plan, stored, &pending.notices) {
            let is_failure = matches!(notice, RunEvent::TaskEnded { status: Status::Failed, .. });
            self.draining |= is_failure && self.after_failure == AfterFailure::FailFast;
            let is_ours = notice.attempt().is_some_and(|key| {
                self.live.contains_key(&key) || pending.finishes.iter().any(|(ended, _)| *ended == key)
            });
            if is_ours || !own_only {
                self.told.push(Action::Tell(notice));
            }
        }
    }

    /// Forgets a plan. What runs of it is killed, and its ends are not written.
    fn lose_plan(&mut self, id: &PlanId) {
        self.plans.remove(id);
        let keys: Vec<AttemptKey> = self.live.keys().filter(|key| key.plan == *id).cloned().collect();
        for key in keys {
            let Some(live) = self.live.get_mut(&key) else { continue };
            match live.stage {
                AttemptStage::Queued | AttemptStage::Running => live.lost = true,
                AttemptStage::Reserving | AttemptStage::Ended => self.forget(&key),
            }
        }
    }

    fn written(&mut self, now: Timestamp, id: &PlanId, version: u64) {
        let Some(followed) = self.plans.get_mut(id) else { return };
        if version != followed.plan.version() {
            // Another writer came in between: the commands were decided on a version that this copy has not seen.
            followed.stale = true;
            followed.share(now);
            let notices = followed.pending.as_mut().map(|pending| std::mem::take(&mut pending.notices));
            self.told.extend(notices.into_iter().flatten().map(Action::Tell));
            return;
        }
        self.foreign_locks.settle(id, |_| false);
        self.foreign_locks.look_at(now, &followed.plan);
        let Some(pending) = followed.pending.take() else { return };
        // Starts first, because others wait for them; notifications after that.
        for key in pending.starts {
            self.begin_or_wait(now, key);
        }
        self.told.extend(pending.notices.into_iter().map(Action::Tell));
    }

    /// A refused write had no effect. The plan is read again, and what caused the refusal is not tried for a while.
    fn refused(&mut self, now: Timestamp, id: &PlanId, refusal: &Refusal) {
        self.note_refusals(now, id, std::slice::from_ref(refusal));
        self.foreign_locks.settle(id, |_| true);
        let Some(followed) = self.plans.get_mut(id) else { return };
        followed.stale = true;
        // Another process is at work: from now on a refusal does not reject the whole write.
        followed.share(now);
        let knows_when = matches!(refusal, Refusal::LockHeld { .. } | Refusal::QueueFull { .. });
        let task = refused_task(refusal).filter(|_| !knows_when);
        if let Some(task) = task.and_then(|task| TaskId::new(task).ok()) {
            let until = Timestamp::from_micros(now.as_micros() + PARKED_MICROS);
            followed.parked.insert(task, until);
        }
    }

    /// Records which locks and slots the store refused.
    fn note_refusals(&mut self, now: Timestamp, id: &PlanId, refusals: &[Refusal]) {
        let Some(followed) = self.plans.get_mut(id) else { return };
        for refusal in refusals {
            if let Refusal::LockHeld { task, key, holder } = refusal
                && let Some(found) = followed.plan.task(task)
                && let Some(lock) = found.spec.locks.iter().find(|lock| lock.key == *key)
            {
                self.foreign_locks.refused(now, lock, holder);
            } else if let Refusal::QueueFull { queue, .. } = refusal {
                self.slots.was_refused(queue);
            } else {
                continue;
            }
            // As long as the store limits the starts, it is asked about each of them.
            followed.share(now);
        }
    }

    /// Releases everything that an attempt held.
    fn forget(&mut self, key: &AttemptKey) {
        let Some(live) = self.live.remove(key) else { return };
        self.release(key, &live);
    }

    fn release(&mut self, key: &AttemptKey, live: &ActiveAttempt) {
        self.release_locks(key, &live.locks);
        if live.has_slot {
            self.slots.give(&live.queue);
        }
        if let Some(followed) = self.plans.get_mut(&key.plan) {
            followed.in_progress = followed.in_progress.saturating_sub(1);
        }
    }

    fn release_locks(&mut self, key: &AttemptKey, locks: &[waypost_core::Lock]) {
        if !locks.is_empty() {
            self.locks.release(&holder(&key.plan, &key.task), locks);
        }
    }

    /// Returns what to do now. At most one write of each plan is in progress at a time.
    pub fn step(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions = std::mem::take(&mut self.told);
        // A pending attempt can begin by itself, and even end, after its start was decided: it must not begin twice.
        actions.retain(|action| match action {
            Action::Start(key) => self.live.get(key).is_some_and(|live| live.started_at.is_none()),
            Action::Write(..)
            | Action::WritePossible(..)
            | Action::CatchUp(_)
            | Action::Read(_)
            | Action::Prepare(_)
            | Action::Stop(..)
            | Action::Withdraw(_)
            | Action::Tell(_)
            | Action::StoreProgress(..) => true,
        });
        (self.wake_at, self.lingers) = (None, false);
        self.slots.ask_again();
        self.tell_progress(&mut actions);
        self.stop_what_must_end(now, &mut actions);
        self.fill_slots(now);
        let ids: Vec<PlanId> = self.plans.keys().cloned().collect();
        let mut writes: BTreeMap<PlanId, Draft> = BTreeMap::new();
        for id in &ids {
            let Some(followed) = self.plans.get_mut(id) else { continue };
            if followed.stale {
                if !followed.reading {
                    followed.reading = true;
                    actions.push(Action::Read(id.clone()));
                }
                continue;
            }
            if followed.pending.as_ref().is_some_and(|pending| pending.written.is_some()) {
                actions.push(Action::CatchUp(id.clone()));
                continue;
            }
            let shared = followed.is_shared(now);
            if followed.pending.is_none() && !self.may_batch(now, id) {
                let mut draft = Draft { shared, ..Draft::default() };
                self.write_what_ended(now, id, &mut draft);
                writes.insert(id.clone(), draft);
            }
        }
        if writes.values().any(|draft| draft.events.iter().any(is_failure)) {
            self.draining |= self.after_failure == AfterFailure::FailFast;
        }
        if !self.draining {
            self.check_approvals(now, &mut writes);
            self.check_gates(now, &mut writes);
            self.take_over_jobs(now, &mut writes);
            self.choose_starts(now, &mut writes);
        }
        for (id, mut draft) in writes {
            self.record_starts(now, &id, &mut draft);
            let Some(followed) = self.plans.get_mut(&id) else { continue };
            if draft.commands.is_empty() {
                continue;
            }
            if draft.shared {
                let Draft { commands, starts, finishes, .. } = draft;
                followed.pending = Some(Pending { starts, finishes, ..Pending::default() });
                actions.push(Action::WritePossible(id, commands));
                continue;
            }
            followed.plan.finish_version(now.max(followed.plan.state().updated_at.unwrap_or(now)));
            let touched = followed.plan.take_touched();
            let notices = run_event::notices_of(&followed.plan, &draft.events, &touched);
            let Draft { starts, finishes, .. } = draft;
            followed.pending = Some(Pending { starts, finishes, notices, written: None });
            actions.push(Action::Write(id, draft.commands));
        }
        self.slots.give_back_unused();
        actions.append(&mut self.told);
        actions
    }

    /// Decides a command on the copy and applies it. Returns whether it was accepted.
    fn apply(&mut self, now: Timestamp, id: &PlanId, command: Command, draft: &mut Draft) -> bool {
        let Some(followed) = self.plans.get_mut(id) else { return false };
        let at = now.max(followed.plan.state().updated_at.unwrap_or(now));
        match followed.plan.decide(&self.by, at, &command) {
            Ok(_) if draft.shared => {
                draft.commands.push(command);
                true
            }
            Ok(events) => {
                for event in &events {
                    followed.plan.evolve(event, at);
                }
                draft.events.extend(events);
                draft.commands.push(command);
                true
            }
            Err(_) => false,
        }
    }

    /// Returns what is left to do, which decides whether to continue waiting.
    pub fn rest(&self) -> Idleness {
        let busy = |followed: &Followed| followed.pending.is_some() || followed.stale;
        if !self.live.is_empty() || self.plans.values().any(busy) {
            return Idleness::Busy;
        }
        if self.draining {
            return Idleness::Over;
        }
        let mut rest = Idleness::Over;
        for followed in self.plans.values() {
            match followed.plan.state().phase {
                Phase::Completed | Phase::Failed | Phase::Cancelled => continue,
                Phase::Paused | Phase::AwaitingApproval | Phase::Draft => rest = Idleness::Waiting,
                Phase::Active => {}
            }
            if followed.plan.in_progress().next().is_some() || followed.plan.asking().next().is_some() {
                rest = Idleness::Waiting;
            }
            let is_active = followed.plan.state().phase == Phase::Active;
            for task in followed.plan.ready() {
                match self.audience(task) {
                    // Its worker or agent finds it in the list of ready tasks.
                    Audience::Others => {}
                    Audience::APersons => rest = Idleness::Waiting,
                    // A person has to approve what this worker would run, or to end a task again.
                    Audience::Ours if is_active && followed.holds_back(task) => rest = Idleness::Waiting,
                    Audience::Ours if is_active => return Idleness::Busy,
                    Audience::Ours => {}
                }
            }
        }
        rest
    }

    fn audience(&self, task: &Task) -> Audience {
        Audience::of(&self.config, &self.takes, task)
    }

    /// Whether a decided start is still to be made: the attempt has not begun by itself or ended.
    pub fn awaits_start(&self, key: &AttemptKey) -> bool {
        let awaits = |live: &ActiveAttempt| live.stage == AttemptStage::Running && live.started_at.is_none();
        self.live.get(key).is_some_and(awaits)
    }

    /// Whether a plan is worth following: a task could start here, or one runs and may be lost.
    pub fn wants(&self, plan: &Plan) -> bool {
        let is_ours = |task: &Task| self.audience(task) == Audience::Ours;
        let (state, runs) = (plan.state(), plan.in_progress().next().is_some());
        state.phase == Phase::Active && !state.archived && (runs || plan.ready().any(is_ours))
    }

    /// Returns the priority of the most urgent task of a plan that could start here.
    pub fn urgency(&self, plan: &Plan) -> Option<i32> {
        let held = |task: &Task| self.plans.get(plan.id()).is_some_and(|followed| followed.holds_back(task));
        let is_ours = |task: &&Task| self.audience(task) == Audience::Ours && !held(task);
        plan.ready().find(is_ours).map(|task| task.spec.priority)
    }

    /// Whether machines work on tasks of the followed plans. While nothing runs here, these are other workers.
    pub fn others_work(&self) -> bool {
        let by_machine = |task: &Task| task.spec.work.is_some() && self.audience(task) != Audience::APersons;
        let active = self.plans.values().filter(|followed| followed.plan.state().phase == Phase::Active);
        active.flat_map(|followed| followed.plan.in_progress()).any(by_machine)
    }

    /// Returns since when a task could start, as far as the plan and what this process has seen of it tell.
    pub fn ready_since(&self, key: &AttemptKey) -> Option<Timestamp> {
        let followed = self.plans.get(&key.plan)?;
        let plan = &followed.plan;
        let task = plan.task(key.task.as_str())?;
        let ended = |on: &Dependency| match on {
            Dependency::Task(on) => plan.task(on.as_str())?.state.finished_at,
            Dependency::External(_) => None,
        };
        let ends = task.spec.depends_on.iter().filter_map(ended).max();
        let added_at = followed.added_at.get(&key.task).copied();
        let times = [ends, added_at, task.state.not_before, followed.resumed_at, plan.state().started_at];
        times.into_iter().flatten().max()
    }

    pub fn followed(&self) -> impl Iterator<Item = &PlanId> {
        self.plans.keys()
    }

    /// Whether nothing of a plan runs here or is being written, so that it can be dropped.
    pub fn is_idle(&self, id: &PlanId) -> bool {
        let rests =
            |followed: &Followed| followed.pending.is_none() && !followed.stale && followed.gone.is_empty();
        self.plans.get(id).is_some_and(rests) && !self.live.keys().any(|key| key.plan == *id)
    }

    /// Drops a plan, unless something of it runs here.
    pub fn let_go(&mut self, id: &PlanId) {
        if self.is_idle(id) {
            self.plans.remove(id);
        }
    }
}

/// Who a ready task is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Ours,
    APersons,
    Others,
}

impl Audience {
    fn of(config: &Config, takes: &TaskFilter, task: &Task) -> Self {
        if let (Some(_), Some(check)) = (task.state.reported(), &task.spec.check) {
            let unknown = waypost_config::resolve_check(config, check).is_err();
            let left = unknown && takes.leaves_unknown || !takes.executor(&check.executor);
            return if left { Self::Others } else { Self::Ours };
        }
        let Some(work) = &task.spec.work else { return Self::Others };
        match waypost_config::resolve(config, work) {
            Ok(waypost_config::ResolvedWork::Human) => Self::APersons,
            _ if !takes.executor(&work.executor) => Self::Others,
            Err(_) if takes.leaves_unknown => Self::Others,
            Ok(_) | Err(_) => Self::Ours,
        }
    }
}

impl TaskFilter {
    fn executor(&self, name: &str) -> bool {
        self.executors.as_ref().is_none_or(|executors| executors.contains(name))
    }
}

/// A write under construction.
#[derive(Debug, Default)]
struct Draft {
    commands: Vec<Command>,
    events: Vec<Event>,
    starts: Vec<AttemptKey>,
    finishes: Vec<(AttemptKey, ActiveAttempt)>,
    /// Whether others write the plan too: then nothing is decided here, and the copy does not change.
    shared: bool,
    /// Whether the starts of a shared plan have been chosen: their consequences are only seen later.
    chosen: bool,
}

/// Whether a task has failed for good.
fn is_failure(event: &Event) -> bool {
    matches!(event, Event::TaskFailed { again_at: None, .. })
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Returns the task that others keep from starting, or that has changed.
fn refused_task(refusal: &Refusal) -> Option<&str> {
    match refusal {
        Refusal::LockHeld { task, .. }
        | Refusal::QueueFull { task, .. }
        | Refusal::Blocked { task, .. }
        | Refusal::AlreadyRunning { task, .. }
        | Refusal::AwaitsCheck { task, .. }
        | Refusal::AwaitsAnswer { task, .. }
        | Refusal::Held { task, .. }
        | Refusal::Disputed { task }
        | Refusal::HumanGate { task, .. }
        | Refusal::WrongStatus { task, .. } => Some(task),
        Refusal::Invalid { .. }
        | Refusal::NoSuchTask { .. }
        | Refusal::WrongPhase { .. }
        | Refusal::NeedsApproval { .. }
        | Refusal::OnlyAPerson { .. }
        | Refusal::StoppedByPerson { .. }
        | Refusal::NotItsTask { .. }
        | Refusal::NotItsPlan { .. }
        | Refusal::NotWhatWasLookedAt { .. }
        | Refusal::StaleAttempt { .. }
        | Refusal::HasDependants { .. }
        | Refusal::IsParent { .. }
        | Refusal::MachineWork { .. }
        | Refusal::NoQuestion { .. }
        | Refusal::NotAChoice { .. }
        | Refusal::NoEvidence { .. }
        | Refusal::NotAwaited { .. }
        | Refusal::StillRunning { .. }
        | Refusal::Archived { .. }
        | Refusal::AlreadyExists {}
        | Refusal::NotCreated {} => None,
    }
}
