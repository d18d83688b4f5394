//! The write path of drivers: the runner records attempts, the planner records its results. They bring commands that they have
//! decided on the plan themselves; the same transaction, leases and slots count as for everybody else.

use waypost_core::{Actor, Command, PlanId};
use waypost_store::{Answer, Slots, WriteRequest};

use crate::service::Service;

/// Commands of a driver for one plan.
#[derive(Clone, Debug)]
pub struct Record {
    /// The plan.
    pub plan: PlanId,
    /// The worker, or in whose name the planner writes.
    pub by: Actor,
    /// The commands, which become one version.
    pub commands: Vec<Command>,
    /// The version that the driver has read, where it matters.
    pub known_version: Option<u64>,
    /// Seconds of the leases of tasks that are started.
    pub lease_seconds: Option<u32>,
}

impl From<Record> for WriteRequest {
    fn from(record: Record) -> Self {
        let Record { plan, by, commands, known_version, lease_seconds } = record;
        Self { plan, by, commands, known_version, lease_seconds }
    }
}

impl Service {
    /// Records all commands, or none.
    pub fn record(&self, record: Record) -> Answer {
        self.plans().write(record.into())
    }

    /// Records attempts of a worker whose tasks take slots of a queue: all, or none.
    pub fn record_attempts(&self, record: Record, slots: Slots) -> Answer {
        self.plans().write_with_slots(record.into(), slots)
    }

    /// The same for a plan that several workers share: what is refused is left out, because another worker may have been
    /// faster with one task, and the rest is worth writing.
    pub fn record_possible_attempts(&self, record: Record, slots: Slots) -> Answer {
        self.plans().write_partial(record.into(), Some(slots))
    }
}
