//! The record that a person runs a plan of their own. Workers start nothing without a record, so starting a plan leaves
//! one, and the person's edits renew it in the same version. It never stands for what an agent wrote.

use std::sync::{Mutex, PoisonError};

use waypost_config::{ApprovalPolicy, ApprovalSettings};
use waypost_core::{
    Actor, ActorKind, ApprovalKind, ApprovedWork, Command, Phase, Plan, PlanId, Proof, Timestamp,
};
use waypost_store::Read;

use crate::approval::{Source, may_start_with};
use crate::authenticity::{Approved, Authenticator};
use crate::caller::{Caller, Presence};
use crate::error::ServiceError;
use crate::preview::{kept_definitions, preview_digest, resolved};
use crate::service::{RecordRule, Service};

/// Writes the record of one write.
pub(crate) struct OwnRecord {
    rule: RecordRule,
    by: Actor,
    presence: Presence,
    settings: ApprovalSettings,
    sources: Vec<Source>,
    authenticator: Authenticator,
    now: Timestamp,
    /// The number of the plan's first version in the store.
    created: u64,
    /// The index of the definitions that the record before the write was made with.
    fits: Mutex<Option<usize>>,
}

impl Service {
    /// Prepares the record of a write; `None` if the write leaves none.
    pub(crate) fn own_record(
        &self,
        by: &Caller,
        plan: &PlanId,
        rule: RecordRule,
    ) -> Result<Option<OwnRecord>, ServiceError> {
        let leaves = by.actor.kind == ActorKind::Person && rule != RecordRule::Keep;
        let Some(presence) = by.presence.clone().filter(|_| leaves) else { return Ok(None) };
        let matters = self.read(plan, |plan| {
            let state = plan.state();
            let renews = state.approval.as_ref().is_some_and(|approval| approval.is_own());
            !state.approval_required && (renews || rule != RecordRule::Renew)
        });
        match matters {
            Ok(true) => {}
            // A plan that does not exist is reported by the write.
            Ok(false) | Err(ServiceError::NoSuchPlan(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        let settings = self.config()?.approval.clone();
        let unattended = presence.proof == Proof::Account;
        // What needs no record, and where a person's own record would not count.
        if settings.policy == ApprovalPolicy::Never
            || settings.proof > Proof::Presence
            || unattended && !settings.unattended
        {
            return Ok(None);
        }
        let authenticator = self.authenticator()?.clone();
        let sources = self.definitions_for(plan)?;
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        let created = self.plans().sequence_of(plan, 1)?.unwrap_or(0);
        let (by, fits) = (by.actor.clone(), Mutex::default());
        Ok(Some(OwnRecord { rule, by, presence, settings, sources, authenticator, now, created, fits }))
    }
}

impl OwnRecord {
    /// Notes whether the record is good before the write.
    pub(crate) fn observe(&self, plan: &Plan) {
        let fits = match self.rule {
            RecordRule::Renew => self.good_with(plan),
            RecordRule::Keep | RecordRule::Leave | RecordRule::LeaveNamed => None,
        };
        *self.fits.lock().unwrap_or_else(PoisonError::into_inner) = fits;
    }

    /// Returns the definitions with which a worker could start the plan now.
    fn good_with(&self, plan: &Plan) -> Option<usize> {
        let facts = self.authenticator.facts(&self.settings, plan, self.now);
        let starts = |(_, definitions): &Source| {
            may_start_with(&self.settings, &preview_digest(definitions, plan).0, plan, &facts).is_ok()
        };
        self.sources.iter().position(starts)
    }

    /// Returns the command that records the plan as the write leaves it; none if the record is still good, or if this
    /// person cannot leave one.
    pub(crate) fn commands(&self, plan: &Plan, read: &mut dyn Read) -> Result<Vec<Command>, ServiceError> {
        let state = plan.state();
        let runs = match state.phase {
            Phase::Active => true,
            Phase::Paused => self.rule == RecordRule::Renew,
            Phase::Draft | Phase::AwaitingApproval | Phase::Completed | Phase::Failed | Phase::Cancelled => {
                false
            }
        };
        if state.approval_required || !runs || !plan.has_machine_work() {
            return Ok(Vec::new());
        }
        let known = state.approval.as_ref().filter(|approval| approval.is_own());
        let known = known.and_then(|approval| approval.work.as_deref());
        let (found, proof) = match self.rule {
            RecordRule::Keep => return Ok(Vec::new()),
            RecordRule::Renew => {
                let fits = *self.fits.lock().unwrap_or_else(PoisonError::into_inner);
                let source = fits.and_then(|index| self.sources.get(index));
                let (Some((_, definitions)), Some(known)) = (source, known) else { return Ok(Vec::new()) };
                let found = resolved(definitions, plan);
                if self.presence.proof < known.proof || found.digest == known.digest {
                    return Ok(Vec::new());
                }
                // The rest of the plan was started with the earlier proof.
                (found, known.proof)
            }
            RecordRule::Leave | RecordRule::LeaveNamed => {
                let is_good = state.approval.is_some() && self.good_with(plan).is_some();
                if is_good || !self.may_leave(plan) {
                    return Ok(Vec::new());
                }
                let mut found = self.sources.iter().map(|(_, definitions)| resolved(definitions, plan));
                let Some(found) = found.find(|found| found.unresolved.is_empty()) else {
                    return Ok(Vec::new());
                };
                (found, self.presence.proof)
            }
        };
        let work = ApprovedWork {
            definitions: kept_definitions(&found.definitions),
            digest: found.digest,
            proof,
            via: self.presence.via.clone(),
            kind: ApprovalKind::Own,
            attestation: None,
            gates: Vec::new(),
            as_of: None,
        };
        let version = plan.version();
        let approved = Approved { plan: plan.id(), by: &self.by, version, note: "" };
        let history = read.plan_state(plan.id())?.hash();
        let work = self.authenticator.attest(&self.settings, approved, work, self.now, history)?;
        Ok(vec![Command::Approve { version, note: String::new(), work: Some(Box::new(work)) }])
    }

    /// Whether the person can say that the plan is their own. A record that was not given on this account shows that the
    /// plan came from elsewhere, as does another author, or a store that the account has not used before. Whoever writes
    /// the files of a store also writes the name of the author: there the person names the file that the plan came from, or
    /// looks at it and approves. The same holds for what has changed since the record: somebody else may have changed it.
    pub(crate) fn may_leave(&self, plan: &Plan) -> bool {
        let state = plan.state();
        let Some(approval) = &state.approval else {
            let is_author = state.created_by.as_ref() == Some(&self.by);
            let is_known = self.rule == RecordRule::LeaveNamed || !self.authenticator.is_in_files();
            return is_author && is_known && self.authenticator.knew_store_before(self.created);
        };
        let verified = self.authenticator.verify(&self.settings, plan.id(), approval, self.now);
        // Whoever names a file says what is in it, with no weaker proof than before.
        let given = approval.work.as_ref().map(|work| work.proof);
        let is_named = self.rule == RecordRule::LeaveNamed && Some(self.presence.proof) >= given;
        let is_known = is_named || self.good_with(plan).is_some();
        verified.is_ok() && approval.is_own() && is_known
    }
}
