//! Checks before any start whether what was approved is what this worker would run, and whether the tasks for people
//! before it were ended by people.

use std::collections::BTreeMap;

use waypost_config::Definitions;
use waypost_core::{
    Command, GateRecord, Phase, PlanId, StartRefusal, StartRefusalReason, Task, TaskId, Timestamp,
};
use waypost_service::{
    external_tasks, gates_of, may_start, needs_record, tasks_behind_gates, unproved_gates,
};

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
            let is_signed = attestation.is_some_and(|attestation| attestation.signature.is_some());
            let ends = attestation.and_then(|attestation| attestation.expires_at);
            let work = followed.plan.work_digest();
            let known = followed.approval.as_ref();
            let known = known.filter(|known| known.work == work && known.approved == approved);
            if known.is_some() && !is_signed && ends.is_none() {
                continue;
            }
            let settings = &self.config.approval;
            let facts = self.authenticator.facts(settings, &followed.plan, now);
            // A record expires, and the key of a signature can be revoked at any time.
            let proved = (facts.verified.clone(), ends.is_some_and(|end| end <= now));
            if known.is_some_and(|known| known.proved == proved) {
                continue;
            }
            let refusal = may_start(settings, &self.definitions, &followed.plan, &self.worker, &facts).err();
            followed.approval = Some(CheckedApproval { work, approved, proved, refused: refusal.is_some() });
            self.look_at_live |= refusal.is_some();
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
                (gates.work, gates.human) = (Some(work), gates_of(&self.config, plan));
                gates.external = external_tasks(plan);
            }
            let (settings, known) = (&self.config.approval, &mut gates.genuine);
            let mut is_proved = |task: &TaskId, gate: &GateRecord| {
                // A seal is verified once; the key of a signature can be revoked at any time.
                known.get(task) == Some(gate) || {
                    let about = (plan.id(), task);
                    let is_proved = self.authenticator.is_gate_proved(settings, about, gate, now);
                    if is_proved && gate.signature.is_none() {
                        known.insert(task.clone(), gate.clone());
                    }
                    is_proved
                }
            };
            let unproved = unproved_gates(plan, &gates.human, &mut is_proved);
            let known = (Some(plan.version()), gates.elsewhere.1.clone());
            let (read_at, elsewhere) = match &self.others {
                Some(others) if !gates.external.is_empty() && gates.is_due(now, known.0) => {
                    gates.looked_at = Some(now);
                    match others.behind_gates_of_others(plan, &gates.external) {
                        Ok(found) => (known.0, found),
                        // What cannot be read now does not start now; the next step reads it again.
                        Err(error) => {
                            let held = |task: &TaskId| (task.clone(), error.to_string());
                            (None, gates.external.iter().map(held).collect())
                        }
                    }
                }
                Some(_) if !gates.external.is_empty() => known,
                Some(_) | None => (known.0, Vec::new()),
            };
            let is_same = is_same_work && unproved == gates.unproved && elsewhere == gates.elsewhere.1;
            gates.elsewhere = (read_at, elsewhere);
            if is_same {
                continue;
            }
            gates.behind = tasks_behind_gates(plan, &unproved, &gates.elsewhere.1);
            gates.unproved.clone_from(&unproved);
            if gates.behind.is_empty() {
                continue;
            }
            self.look_at_live = true;
            let approval = plan.state().approval.as_ref().and_then(|approval| approval.work.as_ref());
            let there = gates.elsewhere.1.iter().map(|(_, there)| there.clone());
            let names = unproved.iter().map(ToString::to_string).chain(there);
            let refusal = StartRefusal {
                worker: self.worker.clone(),
                reason: StartRefusalReason::GateNotProved,
                digest: approval.map(|work| work.digest.clone()).unwrap_or_default(),
                differences: names.collect(),
            };
            self.apply(now, id, Command::RefuseStart(Box::new(refusal)), draft);
        }
    }
}
