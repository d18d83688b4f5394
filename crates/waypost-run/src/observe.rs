//! Observes work that other processes do: follows plans by their stored versions and notifies an observer. Writes
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use waypost_core::{Phase, Plan, PlanId, Timestamp};
use waypost_store::{Lease, PlanStore, ProgressFeed, Query, Sort, StoreError, WriteError};

use crate::runner::{Controller, Message, RunError, RunObserver, View, watch_store};
use waypost_exec::AttemptKey;

use crate::scheduler::{News, RunEvent, news_of, notices_of};
use crate::store_clock::Clock;

/// Maximum number of plans watched at the same time.
const PLANS_WATCHED_MAX: usize = 64;
/// Maximum number of versions read at a time.
const VERSIONS_MAX: usize = 1_000;
/// The interval at which the clock is synchronized with the store's.
const CLOCK_INTERVAL: Duration = Duration::from_secs(10);

/// Follows one plan, or all active plans.
pub struct Observer {
    plans: Arc<PlanStore>,
    only: Option<PlanId>,
    seen: u64,
    watched: BTreeMap<PlanId, Plan>,
    clock: Clock,
    clock_set: Instant,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    changed: Arc<AtomicBool>,
    shown: Option<Instant>,
    progress: ProgressFeed,
}

impl Observer {
    /// Creates an observer of this plan or, without one, of all active plans.
    pub fn new(plans: Arc<PlanStore>, only: Option<PlanId>) -> Result<Self, RunError> {
        let of_store = |error: StoreError| RunError::Plan(error.into());
        let (sender, messages) = channel();
        let changed = Arc::new(AtomicBool::new(false));
        watch_store(&plans, sender.clone(), Arc::clone(&changed)).map_err(of_store)?;
        let seen = plans.latest().map_err(of_store)?;
        let clock = Clock::new(&plans).map_err(of_store)?;
        let (watched, clock_set, shown) = (BTreeMap::new(), Instant::now(), None);
        let progress = ProgressFeed::default();
        let mut observer =
            Self { plans, only, seen, watched, clock, clock_set, sender, messages, changed, shown, progress };
        observer.begin().map_err(RunError::Plan)?;
        Ok(observer)
    }

    fn begin(&mut self) -> Result<(), WriteError> {
        let ids = match &self.only {
            Some(only) => vec![only.clone()],
            None => {
                let query = Query {
                    phases: vec![Phase::Active],
                    sort: Sort::Updated,
                    limit: PLANS_WATCHED_MAX,
                    ..Query::default()
                };
                self.plans.heads(&query)?.items.into_iter().map(|head| head.id).collect()
            }
        };
        for id in ids {
            // A damaged plan is watched as far as it can be read.
            let plan = self.plans.view(&id, |plan, _| plan.clone())?;
            self.watched.insert(id, plan);
        }
        // Progress reported before the start is shown, but causes no event.
        for lease in self.progress.poll(&self.plans, Instant::now())? {
            self.show_progress(&lease);
        }
        Ok(())
    }

    /// Returns a handle that ends the observation.
    pub fn controller(&self) -> Controller {
        Controller::to(self.sender.clone())
    }

    /// Reports events until the controller ends the observation or, for a single plan, `until` returns true.
    pub fn observe(
        &mut self,
        watcher: &mut dyn RunObserver,
        until: impl Fn(&Plan) -> bool,
    ) -> Result<(), RunError> {
        let of_store = |error: StoreError| RunError::Plan(error.into());
        loop {
            watcher.pause();
            self.show(watcher);
            let over = |only: &PlanId| self.watched.get(only).is_none_or(&until);
            if self.only.as_ref().is_some_and(over) {
                return Ok(());
            }
            let shown = self.shown.map_or(Duration::ZERO, |at| at.elapsed());
            let patience = watcher.interval().saturating_sub(shown);
            let patience = self.progress.wait(Instant::now()).map_or(patience, |due| due.min(patience));
            match self.messages.recv_timeout(patience) {
                Ok(Message::Control(_)) => return Ok(()),
                Ok(_) => {
                    self.changed.store(false, Ordering::Release);
                    self.read(watcher).map_err(of_store)?;
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    if self.progress.wait(Instant::now()).is_some_and(|due| due.is_zero()) {
                        self.deliver_progress(watcher).map_err(of_store)?;
                    }
                }
            }
            if self.clock_set.elapsed() > CLOCK_INTERVAL {
                self.clock_set = Instant::now();
                self.clock.set(&self.plans).map_err(of_store)?;
            }
        }
    }

    fn read(&mut self, watcher: &mut dyn RunObserver) -> Result<(), StoreError> {
        loop {
            let written = self.plans.written_since(self.seen, VERSIONS_MAX)?;
            for (id, _) in &written.plans {
                if self.only.as_ref().is_none_or(|only| only == id) {
                    self.follow(id, watcher)?;
                }
            }
            self.seen = written.up_to;
            if !written.more {
                break;
            }
        }
        self.deliver_progress(watcher)
    }

    fn deliver_progress(&mut self, watcher: &mut dyn RunObserver) -> Result<(), StoreError> {
        for lease in self.progress.poll(&self.plans, Instant::now())? {
            if let Some(event) = self.show_progress(&lease) {
                watcher.on_event(&event);
            }
        }
        Ok(())
    }

    /// Shows the progress of a task in the copy of its plan, if the plan is watched.
    fn show_progress(&mut self, lease: &Lease) -> Option<RunEvent> {
        let (plan, progress) = (self.watched.get_mut(&lease.plan)?, lease.progress.as_ref()?.text.clone());
        plan.show_progress(&lease.task, lease.attempt, &progress);
        Some(RunEvent::TaskProgressed { plan: lease.plan.clone(), task: lease.task.clone(), progress })
    }

    fn follow(&mut self, id: &PlanId, watcher: &mut dyn RunObserver) -> Result<(), StoreError> {
        if !self.watched.contains_key(id) {
            let found =
                self.plans.with_plan(id, |plan| (plan.state().phase == Phase::Active).then(|| plan.clone()));
            if let Ok(Some(plan)) = found
                && self.watched.len() < PLANS_WATCHED_MAX
            {
                watcher.on_event(&RunEvent::PlanPhaseChanged { plan: id.clone(), phase: plan.state().phase });
                self.watched.insert(id.clone(), plan);
            }
            return Ok(());
        }
        loop {
            let Some(plan) = self.watched.get_mut(id) else { return Ok(()) };
            let entries = self.plans.history(id, plan.version(), VERSIONS_MAX)?;
            for entry in &entries {
                plan.advance(&entry.events, entry.at);
                let touched = plan.take_touched();
                for notice in notices_of(plan, &entry.events, &touched) {
                    watcher.on_event(&notice);
                }
            }
            let over = self.only.is_none() && plan.state().phase.is_finished();
            if entries.len() < VERSIONS_MAX {
                if over {
                    self.watched.remove(id);
                }
                return Ok(());
            }
        }
    }

    fn show(&mut self, watcher: &mut dyn RunObserver) {
        if self.shown.is_some_and(|at| at.elapsed() < watcher.interval()) {
            return;
        }
        self.shown = Some(Instant::now());
        let attempts: Vec<(AttemptKey, Timestamp)> = self
            .watched
            .iter()
            .flat_map(|(id, plan)| {
                plan.running().map(|task| {
                    let since = task.state.started_at.unwrap_or(self.clock.now());
                    (AttemptKey::new(id, &task.spec.id, task.state.attempt), since)
                })
            })
            .collect();
        let running = attempts.iter().map(|(key, since)| (key, *since)).collect();
        watcher.on_tick(&View {
            plans: self.watched.values().collect(),
            running,
            now: self.clock.now(),
            waits: false,
        });
    }
}

/// What happened to a plan after a version.
#[derive(Clone, Debug, PartialEq)]
pub struct Happened {
    /// In chronological order.
    pub news: Vec<News>,
    /// The version up to which `news` is complete.
    pub version: u64,
    /// Whether there may be later versions.
    pub more: bool,
}

/// Returns what happened to a plan after version `since`, for at most a thousand versions.
pub fn happened_since(plans: &PlanStore, id: &PlanId, since: u64) -> Result<Happened, WriteError> {
    // The creation of the plan, version 1, is not reported.
    let since = since.max(1);
    let entries = plans.history(id, since, VERSIONS_MAX)?;
    let mut happened = Happened { news: Vec::new(), version: since, more: entries.len() == VERSIONS_MAX };
    if entries.is_empty() {
        return Ok(happened);
    }
    let mut plan = plans.at_version(id, since)?;
    for entry in &entries {
        plan.advance(&entry.events, entry.at);
        let touched = plan.take_touched();
        happened.news.extend(news_of(&plan, &entry.events, &touched));
        happened.version = entry.version;
    }
    Ok(happened)
}
