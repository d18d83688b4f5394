//! The heartbeat of a run: its row among the workers, the leases of its attempts and its grown logs, in one write. A
//! heartbeat never creates a version of a plan.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use waypost_core::{PlanId, TaskId};
use waypost_store::{Lease, LeaseFilter, PlanStore, SharingScope, StoreError, WorkerFilter};

use super::message::Message;
use super::outage::Access;
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
    pub(super) fn lease(&self) -> Duration {
        Duration::from_secs(u64::from(self.config.lease_seconds))
    }

    /// Registers this run, and removes workers that have not been seen for long.
    pub(super) fn register(&mut self) -> Result<(), StoreError> {
        self.service.register_worker(&mut self.row, self.config.lease_seconds)
    }

    /// Uploads the last logs and removes the run's row, because the run is over.
    pub(super) fn unregister(&mut self) {
        let copies = self.copies.as_ref().map(|copies| copies.make([].iter(), self.clock.now()));
        let name = self.row.name.clone();
        // A run that cannot unregister is taken for dead after a while, with the same effect.
        let _unheard = self.service.unregister_worker(&name, &copies.unwrap_or_default());
    }

    /// Renews the leases, updates the run's row and uploads the logs that have grown, in one write.
    pub(super) fn send_heartbeat(&mut self) -> Result<(), StoreError> {
        // The time before the write, so that a lease is never assumed to last longer than it does.
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
        let heartbeat = self.service.heartbeat(&mut row, self.config.lease_seconds, &attempts, &copies)?;
        self.newer_schema = heartbeat.newer_schema;
        if self.is_quiet() {
            self.clock.set_to(row.seen);
        }
        (self.row, self.heartbeat, self.renewed) = (row, asked, asked);
        self.has_news = false;
        if self.outage.lasts() {
            self.store_answered(Access::Write);
        }
        self.workshop.pending.leased_until(asked + self.lease());
        self.leases.renewed_until(asked + self.lease());
        if let Some(kept) = &mut self.copies {
            kept.were_kept(&copies);
        }
        for (key, _) in held.into_iter().zip(heartbeat.renewed).filter(|(_, renewed)| !renewed) {
            self.lost(key);
        }
        Ok(())
    }

    /// Stops an attempt of ours whose lease another worker has.
    fn lost(&mut self, key: AttemptKey) {
        if self.scheduler.plan(&key.plan).is_none() || self.lose_purged(&key.plan) {
            return;
        }
        self.handle(Input::Lost(key.clone()));
        // At once: a queued attempt must not begin any more.
        if self.actions.cancel_start(&key) {
            self.end_before_it_began(&key);
        }
        self.stop(key.clone(), Force::Kill);
        self.remarks.push(RunWarning::LeaseLost { key });
    }

    /// Verifies the leases before anything is reported or started, if the process slept, or could not reach the store,
    /// for longer than its leases last.
    pub(super) fn verify_leases_after_pause(&mut self) -> Result<(), RunError> {
        if !self.is_unsure() || self.is_held() {
            return Ok(());
        }
        self.tolerate(Access::Write, Self::send_heartbeat)?;
        self.others_wrote = true;
        Ok(())
    }

    /// Whether the store is left alone for now.
    pub(super) fn is_held(&self) -> bool {
        self.hold_until.is_some_and(|until| until > Instant::now())
    }

    /// Whether leases of ours may have expired unnoticed.
    pub(super) fn is_unsure(&self) -> bool {
        self.renewed.elapsed() >= self.lease() && self.scheduler.held().next().is_some()
    }

    /// Whether this run needs nothing from a store that notifies it of every change: no task of its plans is in progress, on any
    /// machine, and it waits neither for a slot nor for a place to follow another plan. Its heartbeats read the rest.
    pub(super) fn is_quiet(&self) -> bool {
        let in_progress = |id: &PlanId| {
            self.scheduler.plan(id).is_some_and(|plan| plan.in_progress().next().is_some())
                || !self.scheduler.is_idle(id)
        };
        self.slots.as_ref().is_some_and(|slots| !slots.is_any_full())
            && !self.offers.as_ref().is_some_and(|offers| offers.more)
            && !self.outage.lasts()
            && !self.scheduler.followed().any(in_progress)
    }

    /// Once a second, unless it is quiet: reads the store's time, and whether this run was asked to drain.
    pub(super) fn look_at_own_row(&mut self) -> Result<(), StoreError> {
        let (now, stored) = self.plans.store().query(|read| {
            Ok((read.now(), read.workers(WorkerFilter::Name(&self.row.name), 1)?.items.pop()))
        })?;
        self.clock.set_to(now);
        self.row.draining |= stored.is_some_and(|stored| stored.draining);
        Ok(())
    }

    /// Handles a request to drain that came through the store, or because a newer build has migrated the store.
    pub(super) fn check_drain_requested(&mut self, watcher: &mut dyn RunObserver) {
        if self.row.draining && self.asked_to_end.is_none() {
            watcher.on_warning(&match self.newer_schema {
                Some(schema) => RunWarning::StoreMigrated { schema },
                None => RunWarning::DrainAsked,
            });
            self.take(Message::Control(Control::Drain), watcher);
        }
    }

    /// Whether the next heartbeat is due.
    pub(super) fn is_heartbeat_due(&self) -> bool {
        let due = self.heartbeat.elapsed() >= Duration::from_secs(u64::from(self.config.heartbeat_seconds));
        due || self.leases_looked.elapsed() >= self.leases_pause && self.has_news_of_itself()
    }

    /// Whether others should get an update before the next regular heartbeat.
    fn has_news_of_itself(&self) -> bool {
        let waits = self.slots.as_ref().is_some_and(|slots| slots.waits_for() != self.row.waits_for);
        let drains = self.asked_to_end.is_some() && !self.row.draining;
        waits || drains || self.has_news || self.copies.as_ref().is_some_and(|copies| copies.are_due())
    }

    /// Whether several machines share the store, which then has to hold what files hold otherwise.
    pub(super) fn is_shared(plans: &PlanStore) -> bool {
        plans.store().reach() == SharingScope::Machines
    }

    /// Reports attempts of other workers whose lease has expired, or whose process is known to be dead.
    pub(super) fn look_for_lost(&mut self) -> Result<(), RunError> {
        let mut left = self.look_at_left_jobs();
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
        // First those whose process is dead: its orphans are killed then. An expired lease says nothing about the
        // programs, which would run beside their successors.
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
            match left.remove(&(key.plan.clone(), key.task.clone())) {
                None => self.handle(Input::Gone(key, Loss::Died)),
                Some(_) if self.scheduler.follows_at_once(self.clock.now(), &key) => {
                    self.handle(Input::Gone(key, Loss::JobLeft));
                }
                // Its locks are free once its job has ended.
                Some(notes) => notes.into_iter().for_each(|note| self.end_job(note)),
            }
        }
        // Those of a dead process whose programs could not be ended.
        foreign.retain(|key, _| !left.contains_key(&(key.plan.clone(), key.task.clone())));
        let mut ended = Vec::new();
        self.tolerate(Access::Read, |runner| {
            ended = runner.plans.store().query(|read| {
                let now = read.now();
                read.leases(&LeaseFilter::EndedBefore(now), LEASES_MAX)
            })?;
            Ok(())
        })?;
        let ended: BTreeMap<AttemptKey, Lease> = ended
            .into_iter()
            .map(|lease| (AttemptKey::new(&lease.plan, &lease.task, lease.attempt), lease))
            .collect();
        self.expired.keep(|key| ended.contains_key(key));
        let (now, duration) = (Instant::now(), self.lease());
        for (key, lease) in ended {
            let Some(worker) = foreign.remove(&key) else { continue };
            if !identity::is_alive(&worker) || self.expired.is_abandoned(&key, lease.until, now, duration) {
                self.handle(Input::Gone(key, Loss::Expired));
            }
        }
        Ok(())
    }
}
