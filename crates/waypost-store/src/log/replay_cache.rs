//! Plans as a reader of the log has come to know them: each at the version before the one that is read next, so that what
//! follows from that one can be told. Knows nothing of who wants to hear it.

use waypost_core::{DerivedEvent, Event, Plan};

use crate::error::{Result, StoreError};
use crate::plans::cache::{load, replay};
use crate::rows::VersionRecord;
use crate::store::Read;

/// Plans that are followed at the same time.
const PLANS_FOLLOWED_MAX: usize = 64;
/// Maximum number of tasks of all of them; the plan being read is kept at any size.
const TASKS_FOLLOWED_MAX: usize = 250_000;

/// Plans, the one that was read last behind all others.
#[derive(Default)]
pub(crate) struct Follower {
    plans: Vec<Plan>,
}

impl Follower {
    /// What followed from a version by the graph. Costs one replay of the plan where it was not read before.
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
            // What was decided can be told all the same; the doctor names what is damaged.
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
