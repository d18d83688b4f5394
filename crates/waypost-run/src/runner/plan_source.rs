//! Selects the plans that a run follows: the named ones, or what its queues offer. Finds them by what was written, so
//! that the cost grows with the number of changes and not of plans.

use std::time::{Duration, Instant};

use waypost_core::{Phase, Plan, PlanId};
use waypost_service::needs_record;
use waypost_store::{Query, Sort, StoreError, WriteError};

use super::follow::Follow;
use super::plan_error::is_of_plan;
use super::{RunError, Runner, VERSIONS_MAX};
use crate::scheduler::Input;
use waypost_config::Config;

/// Plans that a worker has in memory at the same time, unless something of each of them runs here.
const PLANS_FOLLOWED_MAX: usize = 32;
/// The shortest time between two searches for plans that are more urgent than the followed ones.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// Plans without anything for this run that a search remembers.
const UNWANTED_MAX: usize = 10_000;
/// Plan summaries that are read at a time.
const HEADS_PAGE: usize = 100;

impl Runner {
    /// Adopts the plans that exist at the start.
    pub(super) fn begin(&mut self, follow: Follow) -> Result<(), RunError> {
        match follow {
            Follow::Plans(ids) => {
                for id in ids {
                    let plan = self.copy_of(&id).map_err(RunError::Plan)?;
                    self.handle(Input::Adopted(Box::new(plan)));
                }
                Ok(())
            }
            Follow::Queues(_) => {
                let latest = self.plans.latest().map_err(|error| RunError::Plan(error.into()))?;
                if let Some(offers) = &mut self.offers {
                    offers.seen = latest;
                }
                self.search().map_err(RunError::Plan)
            }
        }
    }

    /// Reads what others have written.
    pub(super) fn read_others(&mut self) -> Result<(), StoreError> {
        let Some(offers) = &self.offers else {
            let followed: Vec<PlanId> = self.scheduler.followed().cloned().collect();
            return followed.iter().try_for_each(|id| self.catch_up(id));
        };
        let mut seen = offers.seen;
        // Whoever committed a version numbers it soon, and notifies then; if that process died, this one does it.
        let numbers = self.numbered.elapsed() >= self.leases_pause;
        if numbers {
            self.numbered = Instant::now();
        }
        loop {
            let written = match numbers {
                true => self.plans.written_since(seen, VERSIONS_MAX)?,
                false => self.plans.numbered_since(seen, VERSIONS_MAX)?,
            };
            seen = written.up_to;
            for (id, version) in &written.plans {
                match self.scheduler.plan(id).map(Plan::version) {
                    Some(known) if known >= *version => {}
                    Some(_) => self.catch_up(id)?,
                    // A search finds it by its summary if it is more urgent than a followed plan. Otherwise each worker
                    // would load every plan that any other writes.
                    None if self.is_full() => self.look_for_more(),
                    None => self.consider(id).or_else(of_the_store)?,
                }
            }
            if let Some(offers) = &mut self.offers {
                offers.seen = seen;
            }
            if !written.more {
                return Ok(());
            }
        }
    }

    /// Passes the versions of a plan that its copy has not seen to the scheduler.
    pub(super) fn catch_up(&mut self, id: &PlanId) -> Result<(), StoreError> {
        let Some(known) = self.scheduler.plan(id).map(Plan::version) else { return Ok(()) };
        let entries = match self.plans.versions_since(id, known, VERSIONS_MAX) {
            Ok(entries) => entries,
            Err(error) if is_of_plan(&error) => {
                self.lose_plan(id, error.into());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if !entries.is_empty() {
            self.handle(Input::Advanced(id.clone(), entries));
        }
        Ok(())
    }

    /// Adopts a plan that has something to do for this run.
    fn consider(&mut self, id: &PlanId) -> Result<(), WriteError> {
        let Some(offers) = &mut self.offers else { return Ok(()) };
        let (queues, scheduler) = (&offers.queues, &self.scheduler);
        let (left, config) = (&mut offers.left, &self.config);
        let (version, wanted) = self.plans.with_plan(id, |plan| {
            let is_in_queue = queues.contains(Config::queue_name(&plan.spec().queue));
            if is_in_queue {
                left.notice(plan, config);
            }
            let wanted = is_in_queue && scheduler.wants(plan);
            (plan.version(), wanted.then(|| scheduler.urgency(plan)))
        })?;
        let Some(urgency) = wanted else {
            if offers.unwanted.len() >= UNWANTED_MAX {
                offers.unwanted.clear();
            }
            offers.unwanted.insert(id.clone(), version);
            return Ok(());
        };
        if self.is_full() {
            self.let_go(|_| true);
        }
        if self.is_full() {
            let place = self.place_for(urgency);
            self.look_for_more();
            match place {
                Some(Place::Of(less_urgent)) => self.scheduler.let_go(&less_urgent),
                Some(Place::Another) => {}
                None => return Ok(()),
            }
        }
        let plan = self.copy_of(id)?;
        self.handle(Input::Adopted(Box::new(plan)));
        Ok(())
    }

    /// Returns a copy of a plan. The digest that the approval is compared with is computed before, so that all copies share
    /// the hashes of the tasks.
    pub(super) fn copy_of(&self, id: &PlanId) -> Result<Plan, WriteError> {
        let needs_digest = needs_record(&self.config.approval);
        self.plans.with_plan(id, |plan| {
            if needs_digest && plan.state().phase == Phase::Active {
                plan.work_digest();
            }
            plan.clone()
        })
    }

    /// Records that there may be plans worth following.
    fn look_for_more(&mut self) {
        if let Some(offers) = &mut self.offers {
            offers.more = true;
        }
    }

    fn is_full(&self) -> bool {
        self.scheduler.followed().count() >= PLANS_FOLLOWED_MAX
    }

    /// Returns the place of a plan of this urgency among the followed ones, if it is more urgent than one of them.
    fn place_for(&self, urgency: Option<i32>) -> Option<Place> {
        let offered = |id: &PlanId| self.scheduler.plan(id).and_then(|plan| self.scheduler.urgency(plan));
        let idle = self.scheduler.followed().filter(|id| self.scheduler.is_idle(id));
        match idle.map(|id| (offered(id), id)).min() {
            Some((least, id)) => (least < urgency).then(|| Place::Of(id.clone())),
            // Something of each plan runs here, so that the number of plans is limited by that of the slots.
            None => self.scheduler.followed().any(|id| offered(id) < urgency).then_some(Place::Another),
        }
    }

    /// Drops plans that `which` selects and of which nothing runs or can start here.
    fn let_go(&mut self, which: impl Fn(&Plan) -> bool) {
        let idle = |id: &&PlanId| {
            let plan = self.scheduler.plan(id);
            plan.is_some_and(|plan| which(plan) && !self.scheduler.wants(plan)) && self.scheduler.is_idle(id)
        };
        let idle: Vec<PlanId> = self.scheduler.followed().filter(idle).cloned().collect();
        for id in idle {
            self.scheduler.let_go(&id);
        }
    }

    /// Drops plans that are not active. If there were more plans than could be followed, others take their places, or
    /// those of less urgent plans.
    pub(super) fn make_room(&mut self) -> Result<(), StoreError> {
        if self.offers.is_none() {
            return Ok(());
        }
        self.let_go(|plan| plan.state().phase != Phase::Active);
        let (is_full, began) = (self.is_full(), Instant::now());
        if let Some(offers) = self.offers.as_mut().filter(|offers| offers.more)
            && (!is_full || offers.next_search <= began)
        {
            offers.more = false;
            self.search().or_else(of_the_store)?;
            // A search reads the summaries of all plans, so its cost is kept small by searching less often.
            let pause = SEARCH_INTERVAL.max(began.elapsed() * 20);
            if let Some(offers) = &mut self.offers {
                offers.next_search = Instant::now() + pause;
            }
        }
        Ok(())
    }

    /// Searches all active plans of its queues, the most urgent first, until it follows enough of them.
    fn search(&mut self) -> Result<(), WriteError> {
        let mut query =
            Query { phases: vec![Phase::Active], sort: Sort::Urgency, limit: HEADS_PAGE, ..Query::default() };
        loop {
            let page = self.plans.heads(&query)?;
            for head in page.items {
                let is_full = self.is_full();
                let is_enough = is_full && self.place_for(Some(head.urgency)).is_none();
                let Some(offers) = &mut self.offers else { return Ok(()) };
                if is_enough {
                    offers.more = true;
                    return Ok(());
                }
                let in_queue = offers.queues.contains(Config::queue_name(&head.queue));
                let at_work = head.counts.ready > 0 || head.counts.in_progress() > 0;
                let is_unwanted = offers.unwanted.get(&head.id) == Some(&head.version);
                // Another worker may start what one has refused, but this one has enough to do.
                let is_refused = is_full && head.is_refused();
                let is_candidate = in_queue && at_work && !is_unwanted && !is_refused;
                if is_candidate && self.scheduler.plan(&head.id).is_none() {
                    self.consider(&head.id)
                        .or_else(|error| of_the_store(error).map_err(WriteError::Store))?;
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }
}

/// Where a plan is followed when there are enough.
enum Place {
    /// In place of this one.
    Of(PlanId),
    /// Beside all others.
    Another,
}

/// A plan that is gone or cannot be read is not a reason to skip the others.
fn of_the_store(error: WriteError) -> Result<(), StoreError> {
    match error {
        WriteError::Store(StoreError::Corrupt { .. }) => Ok(()),
        WriteError::Store(error) => Err(error),
        WriteError::Refused(_)
        | WriteError::Conflict(_)
        | WriteError::NotFound(_)
        | WriteError::Ambiguous { .. }
        | WriteError::NoSuchVersion { .. }
        | WriteError::IdUsed(_) => Ok(()),
    }
}
