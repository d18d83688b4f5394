//! Checks before any start whether what was approved is what this worker would run, and whether the tasks for people
//! before it were ended by people.

use std::collections::BTreeMap;

use waypost_config::Definitions;
use waypost_core::{
    Command, GateRecord, Phase, PlanId, StartRefusal, StartRefusalReason, Task, TaskId, Timestamp,
};
use waypost_service::{human_tasks, may_start, needs_record, unproved_gates};

use super::{CheckedApproval, Draft, Followed, Scheduler};

impl Followed {
    /// Whether this worker starts nothing of the plan.
    pub(super) fn is_refused(&self) -> bool {
        self.approval.as_ref().is_some_and(|checked| checked.refused)
    }

    /// Whether this worker does not start a task of the plan.
    pub(super) fn holds_back(&self, task: &Task) -> bool {
        self.is_refused() || self.gates.behind.contains(&task.spec.id)
    }
}

impl Scheduler {
    /// Takes what the names of the configuration stand for now: files that executors pin may have changed. Returns whether
    /// they have.
    pub fn redefine(&mut self, definitions: Definitions) -> bool {
        let changed = definitions != self.definitions;
        if changed {
            self.definitions = definitions;
            self.plans.values_mut().for_each(|followed| followed.approval = None);
        }
        changed
    }

    /// Checks the approvals of plans that changed since the last check, and records new refusals.
    pub(super) fn check_approvals(&mut self, now: Timestamp, writes: &mut BTreeMap<PlanId, Draft>) {
        if !needs_record(&self.config.approval) {
            return;
        }
        for (id, draft) in writes {
            let Some(followed) = self.plans.get_mut(id) else { continue };
            let state = followed.plan.state();
            if state.phase != Phase::Active {
                followed.approval = None;
                continue;
            }
            let record = state.approval.as_ref().and_then(|approval| approval.work.as_deref());
            let attestation = record.and_then(|record| record.attestation.as_ref());
            let approved = record.map(|record| {
                let nonce = attestation.map(|attestation| attestation.nonce.clone());
                (record.digest.clone(), nonce.unwrap_or_default())
            });
            // A signature expires, and its key can be revoked at any time.
            let holds = attestation.is_none_or(|attestation| attestation.signature.is_none());
            let work = followed.plan.work_digest();
            let known = followed.approval.as_ref();
            if holds && known.is_some_and(|known| known.work == work && known.approved == approved) {
                continue;
            }
            let settings = &self.config.approval;
            let facts = self.authenticator.facts(settings, &followed.plan, now);
            let refusal = may_start(settings, &self.definitions, &followed.plan, &self.worker, &facts).err();
            followed.approval = Some(CheckedApproval { work, approved, refused: refusal.is_some() });
            let is_recorded = |refusal: &StartRefusal| {
                let same = |known: &StartRefusal| {
                    (&known.worker, known.reason, &known.digest)
                        == (&refusal.worker, refusal.reason, &refusal.digest)
                };
                followed.plan.state().start_refusals.iter().any(same)
            };
            if let Some(refusal) = refusal.filter(|refusal| !is_recorded(refusal)) {
                self.apply(now, id, Command::RefuseStart(refusal), draft);
            }
        }
    }

    /// Finds the tasks for people that no person ended. This reads only those tasks, unless the plan's work changed.
    pub(super) fn check_gates(&mut self, now: Timestamp, writes: &mut BTreeMap<PlanId, Draft>) {
        if !needs_record(&self.config.approval) {
            return;
        }
        for (id, draft) in writes {
            let Some(Followed { plan, gates, .. }) = self.plans.get_mut(id) else { continue };
            if plan.state().phase != Phase::Active {
                continue;
            }
            let work = plan.work_digest();
            let is_same_work = gates.work == Some(work);
            if !is_same_work {
                (gates.work, gates.human) = (Some(work), human_tasks(&self.config, plan));
            }
            let (settings, known) = (&self.config.approval, &mut gates.genuine);
            let mut is_genuine = |task: &TaskId, gate: &GateRecord| {
                // Verified once: the nonce tells two records apart, and the rest of the record is compared.
                known.get(task) == Some(gate) || {
                    let is_genuine = self.authenticator.is_gate_genuine(settings, (plan.id(), task), gate);
                    if is_genuine {
                        known.insert(task.clone(), gate.clone());
                    }
                    is_genuine
                }
            };
            let unproved = unproved_gates(plan, &gates.human, settings.proof, &mut is_genuine);
            if is_same_work && unproved == gates.unproved {
                continue;
            }
            gates.behind = plan.tasks_behind(&unproved);
            gates.unproved.clone_from(&unproved);
            if gates.behind.is_empty() {
                continue;
            }
            let approval = plan.state().approval.as_ref().and_then(|approval| approval.work.as_ref());
            let refusal = StartRefusal {
                worker: self.worker.clone(),
                reason: StartRefusalReason::GateNotProved,
                digest: approval.map(|work| work.digest.clone()).unwrap_or_default(),
                differences: unproved.iter().map(ToString::to_string).collect(),
            };
            self.apply(now, id, Command::RefuseStart(Box::new(refusal)), draft);
        }
    }
}
