//! The write path of drivers: the runner records attempts, the planner records its results. Drivers decide their
//! commands on the plan themselves; transactions, leases and slots apply as for all other writers.

use waypost_core::{Actor, Command, PlanId};
use waypost_store::{Answer, Slots, WriteRequest};

use crate::service::Service;

/// Commands of a driver for one plan.
#[derive(Clone, Debug)]
pub struct Record {
    /// The id of the plan.
    pub plan: PlanId,
    /// The worker, or the actor in whose name the planner writes.
    pub by: Actor,
    /// The commands, which become one version.
    pub commands: Vec<Command>,
    /// The version that the driver has read. If set, the write fails when the plan has changed since.
    pub known_version: Option<u64>,
    /// The lease duration of started tasks, in seconds.
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

    /// Like [`Self::record_attempts`], for a plan that several workers share. Refused commands are left out: another
    /// worker may have claimed one task first, and the rest is worth writing.
    pub fn record_possible_attempts(&self, record: Record, slots: Slots) -> Answer {
        self.plans().write_partial(record.into(), Some(slots))
    }
}
