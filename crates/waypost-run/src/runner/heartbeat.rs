//! The signs of life of a run: its row among the workers, the leases of what it runs, and what it learns by them. One write
//! holds them all, and none of it makes a version.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use waypost_core::{PlanId, TaskId};
use waypost_store::{LeaseFilter, PlanStore, SharingScope, StoreError};

use super::message::Message;
use super::remark::RunWarning;
use super::{RunError, RunObserver, Runner, runs};
use crate::orphans::end_orphans;
use crate::scheduler::{Control, Input, Loss};
use waypost_exec::engines;
use waypost_exec::{AttemptKey, Force};
use waypost_store as identity;

/// Leases that are read at a time.
const LEASES_MAX: usize = 1_000;

impl Runner {
    fn lease(&self) -> Duration {
        Duration::from_secs(u64::from(self.config.lease_seconds))
    }

    /// Lets everybody know of this run, and forgets those that were not heard of for long.
    pub(super) fn register(&mut self) -> Result<(), StoreError> {
        self.service.register_worker(&mut self.row, self.config.lease_seconds)
    }

    /// The run is over: what it still has to tell, and its farewell.
    pub(super) fn unregister(&mut self) {
        let copies = self.copies.as_ref().map(|copies| copies.make([].iter(), self.clock.now()));
        let name = self.row.name.clone();
        // Whoever cannot say farewell is taken for dead after a while, which comes to the same.
        let _unheard = self.service.unregister_worker(&name, &copies.unwrap_or_default());
    }

    /// Leases, the run's own row and the logs that have grown, in one write.
    pub(super) fn send_heartbeat(&mut self) -> Result<(), StoreError> {
        // From before the write on, so that nobody counts on more than was promised.
        let asked = Instant::now();
        let held: Vec<AttemptKey> = self.scheduler.held().cloned().collect();
        let attempts: Vec<(PlanId, TaskId, u32)> =
            held.iter().map(|key| (key.plan.clone(), key.task.clone(), key.attempt)).collect();
        let running = self.scheduler.running().map(|(key, _)| key);
        let copies = self.copies.as_ref().map(|copies| copies.make(running, self.clock.now()));
        let copies = copies.unwrap_or_default();
        let mut row = self.row.clone();
        row.draining |= self.asked_to_end.is_some();
        row.waits_for = self.slots.as_ref().map(|slots| slots.waits_for()).unwrap_or_default();
        let renewed = self.service.heartbeat(&mut row, self.config.lease_seconds, &attempts, &copies)?;
        (self.row, self.heartbeat, self.renewed) = (row, asked, asked);
        if self.outage.lasts() {
            self.store_answered();
        }
        self.workshop.pending.leased_until(asked + self.lease());
        if let Some(kept) = &mut self.copies {
            kept.were_kept(&copies);
        }
        for (key, _) in held.into_iter().zip(renewed).filter(|(_, renewed)| !renewed) {
            self.lost(key);
        }
        Ok(())
    }

    /// An attempt of ours is somebody else's.
    fn lost(&mut self, key: AttemptKey) {
        self.handle(Input::Lost(key.clone()));
        // At once: one that is queued must not begin any more.
        self.stop(key.clone(), Force::Kill);
        self.remarks.push(RunWarning::LeaseLost { key });
    }

    /// Whoever has slept for longer than its leases last, or could not reach the store for so long, looks what it still has
    /// before it reports or starts anything.
    pub(super) fn verify_leases_after_pause(&mut self) -> Result<(), RunError> {
        if !self.is_unsure() || self.is_held() {
            return Ok(());
        }
        self.tolerate(Self::send_heartbeat)?;
        self.others_wrote = true;
        Ok(())
    }

    /// Whether the store is left alone for now.
    pub(super) fn is_held(&self) -> bool {
        self.hold_until.is_some_and(|until| until > Instant::now())
    }

    /// Whether leases of ours may be gone without our having heard of it.
    pub(super) fn is_unsure(&self) -> bool {
        self.renewed.elapsed() >= self.lease() && self.scheduler.held().next().is_some()
    }

    /// Once a second: what time it is, and whether somebody asks this run to drain.
    pub(super) fn look_at_own_row(&mut self) -> Result<(), StoreError> {
        let (now, stored) =
            self.plans.store().query(|read| Ok((read.now(), read.worker(&self.row.name)?)))?;
        self.clock.set_to(now);
        self.row.draining |= stored.is_some_and(|stored| stored.draining);
        Ok(())
    }

    /// Hears of a wish to drain that came through the store.
    pub(super) fn check_drain_requested(&mut self, watcher: &mut dyn RunObserver) {
        if self.row.draining && self.asked_to_end.is_none() {
            watcher.on_warning(&RunWarning::DrainAsked);
            self.take(Message::Control(Control::Drain), watcher);
        }
    }

    /// When the next sign of life is due.
    pub(super) fn is_heartbeat_due(&self) -> bool {
        let due = self.heartbeat.elapsed() >= Duration::from_secs(u64::from(self.config.heartbeat_seconds));
        due || self.leases_looked.elapsed() >= super::LEASES_INTERVAL && self.has_news_of_itself()
    }

    /// Whether something should be known to others sooner than with the next sign of life.
    fn has_news_of_itself(&self) -> bool {
        let waits = self.slots.as_ref().is_some_and(|slots| slots.waits_for() != self.row.waits_for);
        let drains = self.asked_to_end.is_some() && !self.row.draining;
        waits || drains || self.copies.as_ref().is_some_and(|copies| copies.are_due())
    }

    /// Whether several machines share the store, which then has to keep what files keep elsewhere.
    pub(super) fn is_shared(plans: &PlanStore) -> bool {
        plans.store().reach() == SharingScope::Machines
    }

    /// Attempts of others whose lease has ended, or whose process is known to be dead.
    pub(super) fn look_for_lost(&mut self) -> Result<(), RunError> {
        let mut foreign: BTreeMap<AttemptKey, String> = BTreeMap::new();
        for id in self.scheduler.followed() {
            let Some(plan) = self.scheduler.plan(id) else { continue };
            for task in plan.in_progress() {
                let worker = task.state.worker.clone().unwrap_or_default();
                if worker != self.workshop.around.worker {
                    foreign.insert(AttemptKey::new(id, &task.spec.id, task.state.attempt), worker);
                }
            }
        }
        if foreign.is_empty() {
            return Ok(());
        }
        // First those whose process is dead: what it left behind is ended then. A lease that has run out as well says nothing
        // about its programs, and they would run beside their successors.
        let runs = runs(&self.workshop.around);
        let engines = engines(&self.config, &self.workshop.around);
        let mut dead: BTreeMap<&str, bool> = BTreeMap::new();
        let mut gone = Vec::new();
        for (key, worker) in &foreign {
            let is_gone = *dead
                .entry(worker)
                .or_insert_with(|| identity::is_dead(worker) && end_orphans(worker, &runs, &engines));
            if is_gone {
                gone.push(key.clone());
            }
        }
        for key in gone {
            foreign.remove(&key);
            self.handle(Input::Gone(key, Loss::Died));
        }
        let mut ended = Vec::new();
        self.tolerate(|runner| {
            ended = runner.plans.store().query(|read| {
                let now = read.now();
                read.leases(&LeaseFilter::ended(now), LEASES_MAX)
            })?;
            Ok(())
        })?;
        for lease in ended {
            let key = AttemptKey::new(&lease.plan, &lease.task, lease.attempt);
            if foreign.remove(&key).is_some() {
                self.handle(Input::Gone(key, Loss::Expired));
            }
        }
        Ok(())
    }
}
