//! Which plans a run follows: those that were named, or whatever its queues offer. Finds out by what was written, so that
//! the cost grows with what happens and not with the number of plans.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use waypost_core::{Phase, Plan, PlanId};
use waypost_store::{Plans, Query, Sort, StoreError, WriteError};

use super::{Message, RunError, Runner, VERSIONS_MAX};
use crate::scheduler::Input;
use waypost_config::Config;

/// Plans that a worker has in memory at the same time.
const PLANS_FOLLOWED_MAX: usize = 32;
/// Heads that are read at a time.
const HEADS_PAGE: usize = 100;
/// How long one wait for the store lasts at the most, before it is seen that the run is over.
const WATCH_WAIT: Duration = Duration::from_secs(1);

/// What a run follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// These plans.
    Plans(Vec<PlanId>),
    /// Every active plan of these queues.
    Queues(Vec<String>),
}

/// How far a run that follows queues has come.
#[derive(Debug)]
pub(super) struct Offers {
    queues: BTreeSet<String>,
    /// The number of the log up to which everything was looked at.
    seen: u64,
    /// Whether there are more plans than are followed.
    more: bool,
}

impl Offers {
    pub(super) fn of(follow: &Follow) -> Option<Self> {
        match follow {
            Follow::Plans(_) => None,
            Follow::Queues(queues) => {
                Some(Self { queues: queues.iter().cloned().collect(), seen: 0, more: false })
            }
        }
    }
}

/// Says so in the run's channel whenever somebody may have written, once until that was heard.
pub(crate) fn watch(
    plans: &Plans,
    sender: Sender<Message>,
    changed: Arc<AtomicBool>,
) -> Result<(), StoreError> {
    let mut watch = plans.watch()?;
    let changed = Arc::downgrade(&changed);
    let look = move || {
        loop {
            // A watch that breaks is no reason to stop: the run looks around once a second anyway.
            let written = watch.wait(WATCH_WAIT).unwrap_or_else(|_| {
                std::thread::park_timeout(WATCH_WAIT);
                true
            });
            let Some(changed) = changed.upgrade() else { return };
            if written && !changed.swap(true, Ordering::AcqRel) && sender.send(Message::StoreChanged).is_err()
            {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("store".to_owned()).spawn(look);
    thread.map(drop).map_err(|error| StoreError::Database(format!("no thread can be started: {error}")))
}

impl Runner {
    /// Takes up what there is at the beginning.
    pub(super) fn begin(&mut self, follow: Follow) -> Result<(), RunError> {
        match follow {
            Follow::Plans(ids) => {
                for id in ids {
                    let plan = self.plans.look(&id, Plan::clone).map_err(RunError::Plan)?;
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

    /// Looks at what others have written.
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

    /// Hands the scheduler the versions of a plan that its copy has not seen.
    pub(super) fn catch_up(&mut self, id: &PlanId) -> Result<(), StoreError> {
        let Some(known) = self.scheduler.plan(id).map(Plan::version) else { return Ok(()) };
        let entries = self.plans.versions_since(id, known, VERSIONS_MAX)?;
        if !entries.is_empty() {
            self.handle(Input::Advanced(id.clone(), entries));
        }
        Ok(())
    }

    /// Takes up a plan that offers something for this run.
    fn consider(&mut self, id: &PlanId) -> Result<(), WriteError> {
        let Some(offers) = &self.offers else { return Ok(()) };
        let (queues, scheduler) = (&offers.queues, &self.scheduler);
        let wanted =
            |plan: &Plan| queues.contains(Config::queue_name(&plan.spec().queue)) && scheduler.wants(plan);
        if !self.plans.look(id, wanted)? {
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
        let plan = self.plans.look(id, Plan::clone)?;
        self.handle(Input::Adopted(Box::new(plan)));
        Ok(())
    }

    /// Lets plans go of which nothing runs here and nothing can start, if `which` says so.
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

    /// Plans that have ended are forgotten; where there were more than could be followed, others take their places.
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

    /// Looks through all active plans of its queues, the most urgent first, until it has enough of them.
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

/// A plan that is gone, or cannot be read, is no reason not to look at the others.
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
