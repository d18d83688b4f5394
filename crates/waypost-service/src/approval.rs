//! Approval: what a person sees, the decision, and the check of a worker before it starts anything.

use waypost_config::{ApprovalPolicy, Definitions};
use waypost_core::{ApprovedWork, Command, Plan, PlanId, StartRefusal, StartRefusalReason};
use waypost_store::WORKERS_PAGE_MAX;

use crate::active_workers::takes_tasks_of;
use crate::caller::{Caller, ProvedAct};
use crate::error::ServiceError;
use crate::preview::{Preview, Seen, plan_preview, preview_digest, short_digest, since_approval};
use crate::service::{Guard, Service, WriteResult};

/// Definitions, and the worker that published them; `None` for those of the local configuration.
type Source = (Option<String>, Definitions);

impl Service {
    /// Returns everything that machines would do for a plan. The definitions are those of the workers of its queue, or
    /// of the local configuration if no worker has published any. Where both agree, the local ones are named.
    pub fn preview(&self, plan: &PlanId) -> Result<Preview, ServiceError> {
        let sources = self.definitions_for(plan)?;
        let preview = self.read(plan, |plan| {
            let digests: Vec<String> =
                sources.iter().map(|(_, definitions)| preview_digest(definitions, plan).0).collect();
            let workers = || sources.iter().zip(&digests).filter(|((worker, _), _)| worker.is_some());
            let local_agrees =
                workers().next().is_none() || workers().any(|(_, digest)| Some(digest) == digests.first());
            let chosen = if local_agrees { 0 } else { 1 };
            let (worker, definitions) = sources.get(chosen)?;
            let disagrees = |(_, digest): &(&Source, &String)| Some(*digest) != digests.get(chosen);
            let names = workers().filter(disagrees).filter_map(|((worker, _), _)| worker.clone());
            let disagreeing = names.collect();
            Some(Preview { resolved_by: worker.clone(), disagreeing, ..plan_preview(definitions, plan) })
        })?;
        preview.ok_or_else(|| ServiceError::NoSuchPlan(plan.to_string()))
    }

    /// Returns the local definitions first, then those of the plan's workers.
    fn definitions_for(&self, plan: &PlanId) -> Result<Vec<Source>, ServiceError> {
        let mut sources = vec![(None, Definitions::of(&*self.config()?))];
        let (workers, now) = self
            .plans()
            .store()
            .query(|read| Ok((read.workers(None, WORKERS_PAGE_MAX)?.items, read.now())))?;
        let queue = self.read(plan, |plan| plan.spec().queue.clone())?;
        for worker in workers.into_iter().filter(|worker| takes_tasks_of(worker, now, &queue, plan)) {
            let published =
                worker.definitions.as_ref().map(|published| serde_json::from_str(published.as_str()));
            if let Some(Ok(definitions)) = published {
                sources.push((Some(worker.name), definitions));
            }
        }
        Ok(sources)
    }

    /// Approves what a person has seen: this version with this digest, and nothing else.
    pub fn approve(
        &self,
        by: &Caller,
        plan: &PlanId,
        seen: impl Into<Option<Seen>>,
        note: &str,
        guard: Guard,
    ) -> WriteResult {
        let command = format!("waypost approve {plan}");
        let act = ProvedAct { verb: "approve a plan", what: "approving", command: &command };
        let presence = by.proved(&act)?;
        let Some(seen) = seen.into() else { return Err(ServiceError::SeenMissing { plan: plan.clone() }) };
        let sources = self.definitions_for(plan)?;
        let note = note.to_owned();
        let (reply, ()) = self.write_with(by, plan, guard, move |plan| {
            let changed = || ServiceError::ChangedSinceSeen {
                plan: plan.id().clone(),
                seen: seen.version,
                current: plan.version(),
            };
            if plan.version() != seen.version {
                return Err(changed());
            }
            let as_seen = |(_, definitions): &&Source| preview_digest(definitions, plan).0 == seen.digest;
            let Some((_, definitions)) = sources.iter().find(as_seen) else { return Err(changed()) };
            let preview = plan_preview(definitions, plan);
            if !preview.unresolved.is_empty() {
                let (plan, names) = (plan.id().clone(), preview.unresolved);
                return Err(ServiceError::UnresolvedExecutor { plan, names });
            }
            let work = ApprovedWork {
                definitions: preview.kept_definitions(),
                digest: preview.digest,
                proof: presence.proof,
                via: presence.via.clone(),
            };
            let (version, note) = (seen.version, note.clone());
            Ok((vec![Command::Approve { version, note, work: Some(Box::new(work)) }], ()))
        })?;
        Ok(reply)
    }
}

/// Returns a worker's refusal as a sentence for people.
pub fn start_refusal_text(plan: &Plan, refusal: &StartRefusal) -> String {
    let (id, StartRefusal { worker, digest, differences, .. }) = (plan.id(), refusal);
    match refusal.reason {
        StartRefusalReason::NoDigest => {
            format!(
                "plan {id} was approved by an earlier version of Waypost, and has to be approved once more"
            )
        }
        StartRefusalReason::GateNotProved => {
            let gates = differences.join(", ");
            format!(
                "{worker} starts nothing behind {gates}: no record shows that a person ended it; retry it, and answer it again"
            )
        }
        StartRefusalReason::DigestMismatch => {
            let approval = plan.state().approval.as_ref().and_then(|approval| approval.work.as_ref());
            let approved = approval.map_or("", |work| short_digest(&work.digest));
            let why =
                if differences.is_empty() { String::new() } else { format!(" ({})", differences.join("; ")) };
            let would = short_digest(digest);
            format!("plan {id} was approved as {approved}, and {worker} would run {would}{why}")
        }
    }
}

/// Decides whether a worker with these definitions may start tasks of a plan: what was approved must be exactly what it
/// would run.
pub fn may_start(
    policy: ApprovalPolicy,
    definitions: &Definitions,
    plan: &Plan,
    worker: &str,
) -> Result<(), Box<StartRefusal>> {
    let Some(approval) = plan.state().approval.as_ref().filter(|_| policy != ApprovalPolicy::Never) else {
        return Ok(());
    };
    let (digest, now) = preview_digest(definitions, plan);
    let refuse = |reason, differences| {
        let (worker, digest) = (worker.to_owned(), digest.clone());
        Err(Box::new(StartRefusal { worker, reason, digest, differences }))
    };
    match &approval.work {
        None => refuse(StartRefusalReason::NoDigest, Vec::new()),
        Some(work) if work.digest == digest => Ok(()),
        Some(_) => refuse(StartRefusalReason::DigestMismatch, since_approval(plan, &now)),
    }
}
