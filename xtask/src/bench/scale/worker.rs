//! A virtual worker: the real scheduler, in the event loop of `waypost-run`'s runner as far as that calls the store.
//!
//! One call is made at a time, as there. Where the runner asks the store, the worker returns the call; the world answers it.
//! What `waypost-run/src/runner` does is repeated here, because the runner itself has threads, a clock and a store: a change
//! of when it reads belongs here too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use waypost_config::Config;
use waypost_core::{Command, Phase, Plan, PlanId, Refusal, Timestamp};
use waypost_run::{
    Action, ActionQueue, AfterFailure, AttemptKey, AttemptOutcome, Input, RunLimits, Scheduler, SlotKeeper,
};
use waypost_store::VersionRecord;

use super::plans::{Requirement, StoredPlans};

/// As in the runner.
const PLANS_FOLLOWED_MAX: usize = 32;
const LEASES_MICROS: i64 = 1_000_000;
const HEARTBEAT_MICROS: i64 = 5_000_000;
const SEARCH_MICROS: i64 = 1_000_000;
const PAUSE_MICROS: (i64, i64) = (2_000, 32_000);
/// Pauses between two looks of a worker that no notification reaches.
const POLL_MICROS: (i64, i64) = (100_000, 5_000_000);

/// The slots of a store that several machines share: the write of a start counts them.
#[derive(Debug)]
struct CountedInStore;

impl SlotKeeper for CountedInStore {
    fn take(&mut self, _: &str, _: u32) -> bool {
        true
    }
    fn give(&mut self, _: &str) {}
    fn is_wanted(&mut self, _: &str) -> bool {
        false
    }
    fn counts_starts(&self) -> bool {
        true
    }
}

/// A call of the store.
#[derive(Debug)]
pub(super) enum Request {
    Write(PlanId, Vec<Command>, Requirement),
    /// The versions of a followed plan since the one that is known.
    CatchUp(usize),
    /// A whole plan that is followed.
    Read(usize),
    /// A plan that may be worth following.
    Consider(usize),
    WrittenSince,
    /// One page of the active plans, after this one.
    Search(Option<usize>),
    Heartbeat,
    OwnRow,
    Leases,
}

/// What a worker does next.
pub(super) enum Next {
    Call(Request),
    /// Nothing before this time, unless something happens.
    Wait(i64),
}

/// The answer to a write.
pub(super) struct Written {
    pub(super) result: Result<(u64, Vec<Refusal>), Refusal>,
    /// The versions since the one that the worker knew, which a write returns.
    pub(super) entries: Vec<VersionRecord>,
}

pub(super) struct VirtualWorker {
    pub(super) scheduler: Scheduler,
    queue: ActionQueue,
    in_turn: bool,
    messages: Vec<Input>,
    seen: usize,
    pub(super) others_wrote: bool,
    was_notified: bool,
    /// Whether notifications reach it.
    listens: bool,
    looked: i64,
    pause: i64,
    polled: i64,
    poll_pause: i64,
    wrote: bool,
    heartbeat: i64,
    leases_looked: i64,
    /// Calls that follow from the last one.
    next_calls: VecDeque<Request>,
    more: bool,
    next_search: i64,
    unwanted: BTreeMap<usize, u64>,
    /// Attempts to start, since the world last took them.
    pub(super) starts: Vec<AttemptKey>,
    /// Seconds of real processor time that the scheduler took.
    pub(super) scheduler_seconds: f64,
    pub(super) refusals: u64,
}

impl VirtualWorker {
    pub(super) fn new(
        config: &Arc<Config>,
        name: String,
        slots: u32,
        now: i64,
        seen: usize,
        listens: bool,
    ) -> Self {
        let limits =
            RunLimits { jobs: Some(slots), keeper: Box::new(CountedInStore), ..RunLimits::default() };
        Self {
            scheduler: Scheduler::bounded(Arc::clone(config), name, AfterFailure::KeepGoing, limits),
            queue: ActionQueue::default(),
            in_turn: false,
            messages: Vec::new(),
            seen,
            others_wrote: false,
            was_notified: false,
            listens,
            looked: now,
            pause: 0,
            polled: now,
            poll_pause: POLL_MICROS.0,
            wrote: true,
            heartbeat: now,
            leases_looked: now,
            next_calls: VecDeque::from([Request::Search(None)]),
            more: false,
            next_search: now,
            unwanted: BTreeMap::new(),
            starts: Vec::new(),
            scheduler_seconds: 0.0,
            refusals: 0,
        }
    }

    /// Spreads the timers of many workers that begin at the same time.
    pub(super) fn shift(&mut self, micros: i64) {
        self.heartbeat -= micros % HEARTBEAT_MICROS;
        self.leases_looked -= micros % LEASES_MICROS;
        self.polled -= micros % POLL_MICROS.0;
    }

    fn handle(&mut self, now: i64, input: Input) {
        let began = Instant::now();
        self.scheduler.handle(Timestamp::from_micros(now), input);
        self.scheduler_seconds += began.elapsed().as_secs_f64();
    }

    /// A program has ended.
    pub(super) fn program_ended(&mut self, key: AttemptKey) {
        self.messages.push(Input::Ended(key, AttemptOutcome::Done { result: None, output: None }));
    }

    /// The store has notified it.
    pub(super) fn notify(&mut self) {
        if !self.others_wrote {
            self.messages.push(Input::StoreChanged);
        }
        (self.others_wrote, self.was_notified) = (true, true);
    }

    /// Continues the event loop until it calls the store or waits.
    pub(super) fn step(&mut self, now: i64, plans: &StoredPlans) -> Next {
        loop {
            if let Some(request) = self.next_calls.pop_front() {
                return Next::Call(request);
            }
            if !self.in_turn {
                for input in std::mem::take(&mut self.messages) {
                    self.handle(now, input);
                }
                self.queue.begin(Timestamp::from_micros(now));
                self.in_turn = true;
            }
            if let Some(request) = self.act(now, plans) {
                return Next::Call(request);
            }
            self.in_turn = false;
            if let Some(request) = self.look_around(now) {
                return Next::Call(request);
            }
            if self.queue.is_done() && self.messages.is_empty() {
                return Next::Wait(self.wakes_at(now));
            }
        }
    }

    /// Executes actions up to the next one that calls the store.
    fn act(&mut self, now: i64, plans: &StoredPlans) -> Option<Request> {
        loop {
            let began = Instant::now();
            let action = self.queue.next(Timestamp::from_micros(now), &mut self.scheduler);
            self.scheduler_seconds += began.elapsed().as_secs_f64();
            match action? {
                Action::Write(id, commands) => return Some(Request::Write(id, commands, Requirement::Whole)),
                Action::WritePossible(id, commands) => {
                    return Some(Request::Write(id, commands, Requirement::Possible));
                }
                Action::CatchUp(id) => return Some(Request::CatchUp(plans.place(&id))),
                Action::Read(id) => return Some(Request::Read(plans.place(&id))),
                Action::Start(key) => {
                    self.handle(now, Input::Began(key.clone(), None));
                    self.starts.push(key);
                }
                Action::Withdraw(key) => {
                    let error = "it was stopped before it began".to_owned();
                    self.handle(now, Input::Ended(key, AttemptOutcome::Failed { error }));
                }
                Action::Prepare(_) | Action::Stop(..) | Action::Tell(_) | Action::StoreProgress(..) => {}
            }
        }
    }

    fn look_around(&mut self, now: i64) -> Option<Request> {
        if !self.listens && now >= self.polled + self.poll_pause {
            self.polled = now;
            self.others_wrote = true;
        }
        if self.others_wrote && self.queue.is_empty() && now >= self.looked + self.pause {
            self.others_wrote = false;
            let was_quiet = now - self.looked >= 2 * PAUSE_MICROS.1;
            self.pause = match std::mem::take(&mut self.wrote) || was_quiet {
                true => 0,
                false => (self.pause * 2).clamp(PAUSE_MICROS.0, PAUSE_MICROS.1),
            };
            self.looked = now;
            return Some(Request::WrittenSince);
        }
        if now >= self.heartbeat + HEARTBEAT_MICROS {
            self.heartbeat = now;
            return Some(Request::Heartbeat);
        }
        if now >= self.leases_looked + LEASES_MICROS {
            self.leases_looked = now;
            if std::mem::take(&mut self.was_notified) || !self.is_quiet() {
                self.others_wrote = true;
                self.next_calls.push_back(Request::OwnRow);
            }
            if self.others_run() {
                self.next_calls.push_back(Request::Leases);
            }
            return self.next_calls.pop_front();
        }
        None
    }

    fn wakes_at(&self, now: i64) -> i64 {
        let mut at = (self.heartbeat + HEARTBEAT_MICROS).min(self.leases_looked + LEASES_MICROS);
        if let Some(wake_at) = self.scheduler.wake_at() {
            at = at.min(wake_at.as_micros());
        }
        if self.others_wrote {
            at = at.min(self.looked + self.pause);
        }
        if !self.listens {
            at = at.min(self.polled + self.poll_pause);
        }
        at.max(now + 100)
    }

    /// Returns when it reads next what others have written.
    pub(super) fn looks_at(&self) -> i64 {
        self.looked + self.pause
    }

    fn is_quiet(&self) -> bool {
        let in_progress = |id: &PlanId| {
            self.scheduler.plan(id).is_some_and(|plan| plan.in_progress().next().is_some())
                || !self.scheduler.is_idle(id)
        };
        !self.more && !self.scheduler.followed().any(in_progress)
    }

    /// Whether tasks of its plans run on other workers, whose leases it watches.
    fn others_run(&self) -> bool {
        let name = self.scheduler.actor().name.as_str();
        let plans = self.scheduler.followed().filter_map(|id| self.scheduler.plan(id));
        plans.flat_map(Plan::in_progress).any(|task| task.state.worker.as_deref() != Some(name))
    }

    pub(super) fn written(&mut self, now: i64, id: PlanId, extent: Requirement, written: Written) {
        self.wrote = true;
        match (written.result, extent) {
            (Ok((version, _)), Requirement::Whole) => self.handle(now, Input::Written(id, version)),
            (Ok((version, refusals)), Requirement::Possible) => {
                self.refusals += refusals.len() as u64;
                if !self.scheduler.running().next().is_none() {
                    (self.looked, self.pause) = (now, PAUSE_MICROS.1);
                }
                self.handle(now, Input::PartlyWritten(id.clone(), version, refusals));
                self.handle(now, Input::Advanced(id, written.entries));
            }
            (Err(refusal), _) => {
                self.refusals += 1;
                self.handle(now, Input::Refused(id, refusal));
            }
        }
    }

    pub(super) fn adopted(&mut self, now: i64, plan: &Plan) {
        self.handle(now, Input::Adopted(Box::new(plan.clone())));
    }

    pub(super) fn advanced(&mut self, now: i64, id: PlanId, entries: Vec<VersionRecord>) {
        if !entries.is_empty() {
            self.handle(now, Input::Advanced(id, entries));
        }
    }

    pub(super) fn known(&self, id: &PlanId) -> u64 {
        self.scheduler.plan(id).map_or(0, Plan::version)
    }

    /// Others have written: reads what concerns it.
    pub(super) fn others_wrote(&mut self, now: i64, plans: &StoredPlans, limit: usize, by_summary: bool) {
        let (written, up_to) = plans.written_since(self.seen, limit);
        self.poll_pause = match written.is_empty() {
            true => (self.poll_pause * 2).min(POLL_MICROS.1),
            false => POLL_MICROS.0,
        };
        for (place, version) in written {
            let plan = plans.get(place);
            match self.scheduler.plan(plan.id()).map(Plan::version) {
                Some(known) if known >= version => {}
                Some(_) => self.next_calls.push_back(Request::CatchUp(place)),
                None if by_summary && self.is_full() => self.more = true,
                None => self.next_calls.push_back(Request::Consider(place)),
            }
        }
        let is_all = up_to == plans.latest();
        self.seen = up_to;
        if !is_all {
            self.next_calls.push_back(Request::WrittenSince);
        } else if self.more {
            self.let_go(|plan| plan.state().phase != Phase::Active);
            if !self.is_full() || now >= self.next_search {
                self.more = false;
                self.next_search = now + SEARCH_MICROS;
                self.next_calls.push_back(Request::Search(None));
            }
        } else {
            self.let_go(|plan| plan.state().phase != Phase::Active);
        }
    }

    fn is_full(&self) -> bool {
        self.scheduler.followed().count() >= PLANS_FOLLOWED_MAX
    }

    fn let_go(&mut self, which: impl Fn(&Plan) -> bool) {
        let is_over = |id: &&PlanId| {
            let plan = self.scheduler.plan(id);
            plan.is_some_and(|plan| which(plan) && !self.scheduler.wants(plan)) && self.scheduler.is_idle(id)
        };
        let over: Vec<PlanId> = self.scheduler.followed().filter(is_over).cloned().collect();
        for id in over {
            self.scheduler.let_go(&id);
        }
    }

    /// Returns the place of a plan among the followed ones if it is more urgent than one of them.
    fn place_for(&self, urgency: Option<i32>) -> Option<Option<PlanId>> {
        let offered = |id: &PlanId| self.scheduler.plan(id).and_then(|plan| self.scheduler.urgency(plan));
        let idle = self.scheduler.followed().filter(|id| self.scheduler.is_idle(id));
        match idle.map(|id| (offered(id), id)).min() {
            Some((least, id)) => (least < urgency).then(|| Some(id.clone())),
            None => self.scheduler.followed().any(|id| offered(id) < urgency).then_some(None),
        }
    }

    /// Follows a plan that was read, if it has something to do for this worker.
    pub(super) fn considered(&mut self, now: i64, place: usize, plan: &Plan) {
        if self.scheduler.plan(plan.id()).is_some() {
            return;
        }
        if !self.scheduler.wants(plan) {
            self.unwanted.insert(place, plan.version());
            return;
        }
        let urgency = self.scheduler.urgency(plan);
        if self.is_full() {
            self.let_go(|_| true);
        }
        if self.is_full() {
            self.more = true;
            match self.place_for(urgency) {
                Some(Some(less_urgent)) => self.scheduler.let_go(&less_urgent),
                Some(None) => {}
                None => return,
            }
        }
        self.adopted(now, plan);
    }

    /// One page of the active plans was read. Returns those to consider; the search ends when enough are followed.
    pub(super) fn searched(&mut self, plans: &StoredPlans, after: Option<usize>, page: usize) {
        let from = after.map_or(0, |after| after + 1);
        let found: Vec<usize> = plans.active.range(from..).take(page).copied().collect();
        let is_last = found.len() < page;
        let last = found.last().copied();
        let mut room = PLANS_FOLLOWED_MAX.saturating_sub(self.scheduler.followed().count());
        for place in found {
            let plan = plans.get(place);
            let counts = plan.counts();
            let is_unwanted = self.unwanted.get(&place) == Some(&plan.version());
            let at_work = counts.ready > 0 || counts.in_progress() > 0;
            if room == 0 && self.place_for(Some(0)).is_none() {
                self.more = true;
                return;
            }
            if at_work && !is_unwanted && self.scheduler.plan(plan.id()).is_none() {
                room = room.saturating_sub(1);
                self.next_calls.push_back(Request::Consider(place));
            }
        }
        if !is_last {
            self.next_calls.push_back(Request::Search(last));
        }
    }
}
