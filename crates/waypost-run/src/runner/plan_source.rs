//! Selects the plans that a run follows: the named ones, or what its queues offer. Finds them by what was written, so
//! that the cost grows with the number of changes and not of plans.

use waypost_core::{Phase, Plan, PlanId};
use waypost_store::{Query, Sort, StoreError, WriteError};

use super::follow::Follow;
use super::{RunError, Runner, VERSIONS_MAX};
use crate::scheduler::Input;
use waypost_config::Config;

/// Plans that a worker has in memory at the same time.
const PLANS_FOLLOWED_MAX: usize = 32;
/// Plan summaries that are read at a time.
const HEADS_PAGE: usize = 100;

impl Runner {
    /// Adopts the plans that exist at the start.
    pub(super) fn begin(&mut self, follow: Follow) -> Result<(), RunError> {
        match follow {
            Follow::Plans(ids) => {
                for id in ids {
                    let plan = self.plans.with_plan(&id, Plan::clone).map_err(RunError::Plan)?;
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
        loop {
            let written = self.plans.written_since(seen, VERSIONS_MAX)?;
            seen = written.up_to;
            for (id, version) in &written.plans {
                match self.scheduler.plan(id).map(Plan::version) {
                    Some(known) if known >= *version => {}
                    Some(_) => self.catch_up(id)?,
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
        let entries = self.plans.versions_since(id, known, VERSIONS_MAX)?;
        if !entries.is_empty() {
            self.handle(Input::Advanced(id.clone(), entries));
        }
        Ok(())
    }

    /// Adopts a plan that has something to do for this run.
    fn consider(&mut self, id: &PlanId) -> Result<(), WriteError> {
        let Some(offers) = &self.offers else { return Ok(()) };
        let (queues, scheduler) = (&offers.queues, &self.scheduler);
        let wanted =
            |plan: &Plan| queues.contains(Config::queue_name(&plan.spec().queue)) && scheduler.wants(plan);
        if !self.plans.with_plan(id, wanted)? {
            return Ok(());
        }
        if self.scheduler.followed().count() >= PLANS_FOLLOWED_MAX {
            self.let_go(|_| true);
        }
        if self.scheduler.followed().count() >= PLANS_FOLLOWED_MAX {
            if let Some(offers) = &mut self.offers {
                offers.more = true;
            }
            return Ok(());
        }
        let plan = self.plans.with_plan(id, Plan::clone)?;
        self.handle(Input::Adopted(Box::new(plan)));
        Ok(())
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

    /// Drops plans that are not active. If there were more plans than could be followed, others take their places.
    pub(super) fn make_room(&mut self) -> Result<(), StoreError> {
        if self.offers.is_none() {
            return Ok(());
        }
        self.let_go(|plan| plan.state().phase != Phase::Active);
        let has_room = self.scheduler.followed().count() < PLANS_FOLLOWED_MAX;
        if let Some(offers) = self.offers.as_mut().filter(|offers| offers.more && has_room) {
            offers.more = false;
            self.search().or_else(of_the_store)?;
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
                let Some(offers) = &self.offers else { return Ok(()) };
                if offers.more {
                    return Ok(());
                }
                let in_queue = offers.queues.contains(Config::queue_name(&head.queue));
                let at_work = head.counts.ready > 0 || head.counts.in_progress() > 0;
                if in_queue && at_work && self.scheduler.plan(&head.id).is_none() {
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
