//! Writes of tests that arrange a store: without the service, whose rules are not what these tests are about.

use waypost_store::{Committed, NewPlan, PlanStore, WriteRequest};

#[expect(clippy::disallowed_methods, reason = "a test arranges what the service might refuse")]
pub(crate) fn create(plans: &PlanStore, new: NewPlan) -> Committed {
    plans.create(new).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test arranges what the service might refuse")]
pub(crate) fn write(plans: &PlanStore, request: WriteRequest) -> Committed {
    plans.write(request).unwrap()
}
