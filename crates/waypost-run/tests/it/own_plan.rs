//! A person runs a plan of their own, as `waypost run` does: workers start nothing without the record of it.

use std::sync::Arc;

use waypost_config::{Config, Definitions, ExecutionEnv};
use waypost_core::{Actor, ApprovalKind, ApprovedWork, Command, Json, Plan, PlanId, Proof, Timestamp};
use waypost_run::{AfterFailure, RunError, Runner};
use waypost_service::{Approved, Authenticator, Caller, Presence, Service, preview_digest};
use waypost_store::{PlanStore, Query};

fn ada() -> Caller {
    Caller::new(Actor::person("ada")).present(Presence::new("terminal"))
}

/// How often a person tries to start a plan in a store that fails.
const TRIES: usize = 20;

/// Starts a plan. One that has ended, or that others have to approve, stays as it is.
pub(crate) fn start(plans: &Arc<PlanStore>, config: &Arc<Config>, plan: &PlanId) {
    let service = Service::new(Arc::clone(plans), Arc::clone(config));
    let _refused =
        (0..TRIES).any(|_| service.start(&ada(), plan, false, waypost_service::Guard::NONE).is_ok());
}

/// Starts all plans of a store.
pub(crate) fn start_all(plans: &Arc<PlanStore>, config: &Arc<Config>) {
    let heads = plans.heads(&Query { limit: 100, ..Query::default() });
    for head in heads.into_iter().flat_map(|page| page.items) {
        start(plans, config, &head.id);
    }
}

/// Starts a plan and creates its run.
pub(crate) fn runner(
    plans: &Arc<PlanStore>,
    config: &Arc<Config>,
    around: ExecutionEnv,
    plan: &PlanId,
) -> Result<Runner, RunError> {
    start(plans, config, plan);
    let (plans, config) = (Arc::clone(plans), Arc::clone(config));
    Runner::new(plans, config, around, AfterFailure::KeepGoing, vec![plan.clone()])
}

/// Returns the record that the service writes when a person starts or edits the plan; none if it has this record.
pub(crate) fn record(config: &Config, plan: &Plan, now: Timestamp) -> Option<Command> {
    let (digest, _) = preview_digest(&Definitions::of(config), plan);
    let known = plan.state().approval.as_ref().and_then(|approval| approval.work.as_ref());
    if known.is_some_and(|known| known.digest == digest) {
        return None;
    }
    let by = Actor::person("ada");
    let work = ApprovedWork {
        digest,
        definitions: Json::empty_object(),
        proof: Proof::Presence,
        via: "terminal".to_owned(),
        kind: ApprovalKind::Own,
        attestation: None,
        gates: Vec::new(),
        as_of: None,
    };
    let approved = Approved { plan: plan.id(), by: &by, version: plan.version(), note: "" };
    let work = Authenticator::default().attest(&config.approval, approved, work, now, None).unwrap();
    Some(Command::Approve { version: plan.version(), note: String::new(), work: Some(Box::new(work)) })
}
