//! A signed approval outside a store: the plan, the record and the message that was signed. It counts wherever the signer
//! is allowed and the same work would run.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use waypost_config::{ApprovalSettings, Definitions};
use waypost_core::{
    Approval, ApprovedWork, Attestation, Command, Plan, PlanId, Proof, Task, TaskId, Timestamp,
};
use waypost_formats::{Dialect, Form, read, write};

use crate::authenticity::{Approved, AttestError, Authenticator};
use crate::caller::{Caller, ProvedAct};
use crate::error::ServiceError;
use crate::preview::{definitions_kept, kept_definitions, preview_digest};
use crate::service::{Guard, Service, WriteResult};

/// The value of a bundle's field `format`.
const BUNDLE_FORMAT: &str = "waypost-approval/1";

/// A plan with its portable approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalBundle {
    /// Which format this is.
    pub format: String,
    /// The plan in its native format.
    pub plan: Value,
    /// The record, with the signature.
    pub approval: Approval,
    /// What was signed, as `ssh-keygen -Y verify -n waypost` takes it.
    pub message: String,
}

impl ApprovalBundle {
    /// Reads a bundle. Returns `None` if the text is something else.
    pub fn read(text: &str) -> Option<Result<Self, serde_json::Error>> {
        // Most texts are not parsed twice.
        let value: Value = text.contains(BUNDLE_FORMAT).then(|| serde_json::from_str(text).ok())??;
        let is_bundle = value.get("format").and_then(Value::as_str) == Some(BUNDLE_FORMAT);
        is_bundle.then(|| serde_json::from_value(value))
    }

    /// Returns the id of the plan.
    pub fn plan_id(&self) -> Option<PlanId> {
        self.plan.get("id").and_then(Value::as_str)?.parse().ok()
    }

    /// Verifies the approval as one of this plan, by the allowed signers alone. Returns the proof that it gives.
    pub fn verify(
        &self,
        authenticator: &Authenticator,
        settings: &ApprovalSettings,
        plan: &PlanId,
        now: Timestamp,
    ) -> Result<Proof, AttestError> {
        let (work, portable) = portable(&self.approval).ok_or(AttestError::NotPortable)?;
        let message = authenticator.message(Approved::of(plan, &self.approval), work);
        let message = message.ok_or(AttestError::Malformed)??;
        if message != self.message {
            return Err(AttestError::OtherMessage);
        }
        if portable.expires_at.is_some_and(|end| end <= now) {
            return Err(AttestError::NotGenuine("it has expired".to_owned()));
        }
        let proof = authenticator.verify(settings, plan, &self.approval, now);
        proof.map_err(|why| AttestError::NotGenuine(why.to_string()))
    }
}

impl ApprovalBundle {
    /// Compares what the file shows with what was signed: the plan with the definitions gives the digest.
    pub fn verify_content(&self) -> Result<(), AttestError> {
        let (work, _) = portable(&self.approval).ok_or(AttestError::NotPortable)?;
        let definitions = definitions_kept(&work.definitions).ok_or(AttestError::NoDefinitions)?;
        let plan = self.shown_plan().ok_or(AttestError::OtherContent)?;
        let (digest, shown) = preview_digest(&definitions, &plan);
        // Nothing else stands beside it, which a reader would take for signed.
        match digest == work.digest && work.definitions.value() == json!(shown) {
            true => Ok(()),
            false => Err(AttestError::OtherContent),
        }
    }

    fn shown_plan(&self) -> Option<Plan> {
        let reading = read(&self.plan.to_string(), Some(Dialect::Native), None).ok()?;
        let readable = reading.all_problems().is_empty();
        let draft = reading.drafts.into_iter().next().filter(|_| readable)?;
        Some(Plan::from_trusted_draft(self.plan_id()?, draft))
    }
}

/// Returns what an approval covers, and who vouches for it, if it counts in every store.
fn portable(approval: &Approval) -> Option<(&ApprovedWork, &Attestation)> {
    let work = approval.work.as_deref()?;
    let attestation = work.attestation.as_ref()?;
    attestation.signature.as_ref().filter(|signature| signature.portable)?;
    Some((work, attestation))
}

/// Refuses what would lose a hold on its way to another store. `hold` is held as well.
pub(crate) fn holds_nothing(plan: &Plan, hold: &[TaskId]) -> Result<(), AttestError> {
    let is_held = |task: &Task| task.state.held().is_some();
    let held = plan.tasks().find(|(task, _)| is_held(task)).map(|(task, _)| &task.spec.id);
    match hold.first().or(held) {
        Some(task) => Err(AttestError::HoldNotPortable(task.to_string())),
        None => Ok(()),
    }
}

impl Service {
    /// Returns a plan with its portable approval.
    pub fn approval_bundle(&self, plan: &PlanId) -> Result<ApprovalBundle, ServiceError> {
        let authenticator = self.authenticator()?;
        let found = self.read(plan, |plan| {
            let approval = plan.state().approval.clone()?;
            let (work, _) = portable(&approval)?;
            let message = authenticator.message(Approved::of(plan.id(), &approval), work)?.ok()?;
            Some(holds_nothing(plan, &[]).map(|()| (plan.to_draft(), message, approval)))
        })?;
        let (draft, message, approval) = found.ok_or(AttestError::NotPortable)??;
        let unreadable = |error| ServiceError::Unreadable { name: plan.to_string(), error };
        let text = write(&draft, Dialect::Native, Form::AsRead).map_err(unreadable)?.text;
        let plan = serde_json::from_str(&text).map_err(|_| AttestError::Malformed)?;
        Ok(ApprovalBundle { format: BUNDLE_FORMAT.to_owned(), plan, approval, message })
    }

    /// Approves a plan by a bundle. The signature takes the place of the terminal, for a person; what would run here must
    /// be what was signed.
    pub fn approve_bundled(
        &self,
        by: &Caller,
        plan: &PlanId,
        bundle: &ApprovalBundle,
        guard: Guard,
    ) -> WriteResult {
        let act = ProvedAct::approval(plan);
        by.may_sign(&act)?;
        let config = self.config()?;
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        let proof = bundle.verify(self.authenticator()?, &config.approval, plan, now)?;
        if proof < config.approval.proof {
            let (needed, given) = (config.approval.proof, proof);
            return Err(ServiceError::NeedsStrongerProof { act: act.act, needed, given });
        }
        let (definitions, approval) = (Definitions::of(&config), bundle.approval.clone());
        let caller = by.clone();
        let (reply, ()) = self.write_with(by, plan, guard, move |plan| {
            caller.may_approve_rejected(plan)?;
            let (digest, definitions) = preview_digest(&definitions, plan);
            let work = approval.work.clone().filter(|work| work.digest == digest);
            let Some(mut work) = work else { return Err(AttestError::OtherWork.into()) };
            // Not those of the file: the signature covers their digest only.
            work.definitions = kept_definitions(&definitions);
            let (version, note) = (plan.version(), approval.note.clone());
            Ok((vec![Command::Approve { version, note, work: Some(work) }], ()))
        })?;
        Ok(reply)
    }
}
