//! Plans as a reader of the log replays them: each at the version before the one that is read next, so that the events
//! derived from that version can be computed. Does not filter.

use waypost_core::{DerivedEvent, Event, Plan};

use crate::error::{Result, StoreError};
use crate::plans::cache::{load, replay};
use crate::rows::VersionRecord;
use crate::store::Read;

/// Maximum number of plans that are kept at the same time.
const PLANS_FOLLOWED_MAX: usize = 64;
/// Maximum number of tasks of all kept plans; the plan being read is kept at any size.
const TASKS_FOLLOWED_MAX: usize = 250_000;

/// The kept plans, the least recently read first.
#[derive(Default)]
pub(crate) struct Follower {
    plans: Vec<Plan>,
}

impl Follower {
    /// Returns the events that follow from a version by the graph. Costs one replay of the plan if it was not read
    /// before.
    pub(crate) fn consequences(
        &mut self,
        read: &mut dyn Read,
        entry: &VersionRecord,
    ) -> Result<Vec<DerivedEvent>> {
        let before = entry.version - 1;
        if before == 0 || !entry.events.iter().any(Event::may_have_consequences) {
            return Ok(Vec::new());
        }
        let mut plan = match self.plan_before(read, entry, before) {
            Ok(plan) => plan,
            // The stored events can be returned all the same; `waypost doctor` reports the damage.
            Err(StoreError::Corrupt { .. } | StoreError::Pruned { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let told = plan.advance_telling(&entry.events, entry.at);
        self.keep(plan);
        Ok(told)
    }

    fn plan_before(&mut self, read: &mut dyn Read, entry: &VersionRecord, before: u64) -> Result<Plan> {
        let known = self.plans.iter().position(|plan| *plan.id() == entry.plan);
        match known.map(|place| self.plans.remove(place)).filter(|plan| plan.version() <= before) {
            Some(mut plan) => {
                replay(read, &mut plan, before)?;
                plan.take_touched();
                Ok(plan)
            }
            None => load(read, &entry.plan, before),
        }
    }

    fn keep(&mut self, plan: Plan) {
        self.plans.push(plan);
        let mut tasks: usize = self.plans.iter().map(Plan::len).sum();
        while self.plans.len() > 1 && (self.plans.len() > PLANS_FOLLOWED_MAX || tasks > TASKS_FOLLOWED_MAX) {
            tasks -= self.plans.remove(0).len();
        }
    }
}
