//! Approval: what a person sees, the decision, and the check of a worker before it starts anything.

use std::borrow::Cow;

use serde::Serialize;
use waypost_config::{ApprovalPolicy, ApprovalSettings, Definitions};
use waypost_core::{
    Actor, Approval, ApprovalKind, ApprovedWork, Command, Phase, Plan, PlanId, Proof, StartRefusal,
    StartRefusalReason, TaskId, Timestamp,
};
use waypost_store::{Query, Sort, WORKERS_PAGE_MAX, WorkerFilter};
use waypost_text::from_hex;

use crate::active_workers::takes_tasks_of;
use crate::approval_bundle::holds_nothing;
use crate::authenticity::{Approved, Authenticator, NotAuthentic, Signing};
use crate::caller::{Caller, Presence, ProvedAct};
use crate::error::{ServiceError, proof_text};
use crate::hint::{Hint, PersonAct, PersonVerb};
use crate::preview::{
    Preview, Seen, approved_work, kept_definitions, plan_preview, preview_digest, resolved, short_digest,
    since_approval,
};
use crate::service::{Guard, Service, WriteResult};
use crate::upstream::Upstream;

/// Plans that are read at once to find lapsed approvals.
const HEADS_PAGE: usize = 1_000;

/// Definitions, and the worker that published them; `None` for those of the local configuration.
pub(crate) type Source = (Option<String>, Definitions);

/// Returns the folder in which programs start, and those of workers that start them in another.
fn folders(chosen: &Definitions, sources: &[Source]) -> Option<(&'static str, String)> {
    let others = sources.iter().filter(|(_, other)| other.folder != chosen.folder);
    let other = |(worker, other): &Source| Some(format!("{} (worker {})", other.folder, worker.as_ref()?));
    let all = [chosen.folder.clone()].into_iter().chain(others.filter_map(other));
    let text = all.filter(|folder| !folder.is_empty()).collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(("folder", text))
}

/// An approval, and whether it counts on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifiedApproval {
    /// The id of the plan.
    pub plan: PlanId,
    /// The person.
    pub by: Actor,
    /// The version that was seen.
    pub version: u64,
    /// The digest of what was approved; records of early versions have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How the person was recognized, as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The name under which the key is allowed, if the approval is signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The fingerprint of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Why a worker of this machine starts nothing by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Service {
    /// Returns everything that machines would do for a plan. The definitions are those of the workers of its queue, or
    /// of the local configuration if no worker has published any. Where both agree, the local ones are named.
    pub fn preview(&self, plan: &PlanId) -> Result<Preview, ServiceError> {
        self.preview_as(plan, |plan| Cow::Borrowed(plan))
    }

    /// Returns the same for the plan as it would be after a change.
    pub(crate) fn preview_as(
        &self,
        plan: &PlanId,
        change: impl Fn(&Plan) -> Cow<'_, Plan>,
    ) -> Result<Preview, ServiceError> {
        let sources = self.definitions_for(plan)?;
        let preview = self.view(plan, |plan, _| {
            let plan = &*change(plan);
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
            let mut preview = plan_preview(definitions, plan);
            preview.about.extend(folders(definitions, &sources));
            Some(Preview { resolved_by: worker.clone(), disagreeing, ..preview })
        })?;
        let mut preview = preview.ok_or_else(|| ServiceError::no_such_plan(plan))?;
        let upstream = self.upstream(plan)?;
        preview.about.extend(upstream.texts());
        if let Some(last) = self.last_approval(plan)? {
            let is_other = last.work.as_ref().is_none_or(|work| work.digest != preview.digest);
            if is_other {
                let changes = self.changes_since(plan, last.version);
                preview.since_approval = since_approval(last.work.as_deref(), &preview.definitions);
                // The lines about tasks and texts say more.
                preview.since_approval.retain(|line| changes.is_empty() || !line.starts_with("plan: "));
                preview.changes = Some((last.version, changes));
            }
            // The digest covers which tasks of other plans work waits for.
            let gates = match is_other || self.view(plan, |plan, _| plan.waits_for_external())? {
                true => self.gates_since(plan, last.version)?,
                false => Vec::new(),
            };
            if !gates.is_empty() {
                preview.since_approval.extend(gates);
                preview.changes.get_or_insert((last.version, Vec::new()));
            }
        }
        preview.digest = upstream.seen_digest(&preview.digest);
        self.shown().add(&preview);
        Ok(preview)
    }

    /// Returns the local definitions first, then those of the plan's workers.
    pub(crate) fn definitions_for(&self, plan: &PlanId) -> Result<Vec<Source>, ServiceError> {
        let mut sources = vec![(None, Definitions::of(&*self.config()?))];
        let (workers, now) = self.plans().store().query(|read| {
            Ok((read.workers(WorkerFilter::After(None), WORKERS_PAGE_MAX)?.items, read.now()))
        })?;
        let queue = self.view(plan, |plan, _| plan.spec().queue.clone())?;
        for worker in workers.into_iter().filter(|worker| takes_tasks_of(worker, now, &queue, plan)) {
            let published =
                worker.definitions.as_ref().map(|published| serde_json::from_str(published.as_str()));
            if let Some(Ok(definitions)) = published {
                sources.push((Some(worker.name), definitions));
            }
        }
        Ok(sources)
    }

    /// Verifies the approval of a plan as a worker of this machine would; `None` if there is none that something could
    /// start by.
    pub fn verify_approval(&self, plan: &PlanId) -> Result<Option<VerifiedApproval>, ServiceError> {
        let config = self.config()?;
        let authenticator = self.authenticator()?;
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        let rewritten = self.rewritten_since_approval(plan)?;
        self.read(plan, |plan| {
            // What has ended starts nothing, whatever its approval is worth now.
            let state = plan.state();
            let approval = state.approval.as_ref().filter(|_| !state.phase.is_finished())?;
            let facts = authenticator.facts(&config.approval, plan, now);
            let refusal =
                may_start(&config.approval, &Definitions::of(&config), plan, "this machine", &facts).err();
            let work = approval.work.as_deref();
            let signature = work.and_then(|work| work.attestation.as_ref()?.signature.as_ref());
            Some(VerifiedApproval {
                plan: plan.id().clone(),
                by: approval.by.clone(),
                version: approval.version,
                digest: work.map(|work| work.digest.clone()),
                proof: work.map(|work| work.proof),
                signer: signature.map(|signature| signature.principal.clone()),
                fingerprint: signature.map(|signature| signature.fingerprint.clone()),
                problem: refusal.map(|refusal| start_refusal_text(plan, &refusal)).or(rewritten),
            })
        })
    }

    /// Says that the history before a person's approval is not the one that they approved. Workers do not look at it: what
    /// runs is in the digest.
    fn rewritten_since_approval(&self, plan: &PlanId) -> Result<Option<String>, ServiceError> {
        let found = self.read(plan, |plan| {
            let approval = plan.state().approval.as_ref().filter(|approval| !approval.is_own())?;
            let attestation = approval.work.as_deref()?.attestation.as_ref()?;
            // A portable approval is of another store.
            let is_portable = attestation.signature.as_ref().is_some_and(|signature| signature.portable);
            let history = from_hex(&attestation.history).filter(|_| !is_portable)?;
            Some((approval.version, history))
        })?;
        let Some((version, history)) = found else { return Ok(None) };
        let stored =
            self.plans().store().query(|read| read.stored_versions(plan, version.saturating_sub(1), 1))?;
        // It may have been pruned.
        let is_other =
            stored.first().is_some_and(|stored| stored.version == version && stored.hash != Some(history));
        Ok(is_other.then(|| format!("version {version} is not the one that was approved")))
    }

    /// Returns the plans that had an approval by which nothing starts on this machine now: an earlier version of Waypost
    /// recorded it, or it is void.
    pub fn lapsed_approvals(&self) -> Result<Vec<PlanId>, ServiceError> {
        let phases = vec![Phase::AwaitingApproval, Phase::Active, Phase::Paused];
        let mut query = Query { phases, sort: Sort::Id, limit: HEADS_PAGE, ..Query::default() };
        let mut lapsed = Vec::new();
        loop {
            let page = self.plans().heads(&query)?;
            for head in page.items {
                if self.has_lapsed(&head.id)? {
                    lapsed.push(head.id);
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(lapsed),
            }
        }
    }

    fn has_lapsed(&self, plan: &PlanId) -> Result<bool, ServiceError> {
        let (settings, authenticator) = (self.config()?.approval.clone(), self.authenticator()?);
        let sources = self.definitions_for(plan)?;
        let now = self.plans().store().query(|read| Ok(read.now()))?;
        self.read(plan, |plan| {
            let state = plan.state();
            match &state.approval {
                // What awaits approval although it was started has lost one.
                None => state.phase == Phase::AwaitingApproval && state.started_at.is_some(),
                // A person's own plan gets another record when they run it.
                Some(approval) if approval.is_own() => false,
                Some(_) => {
                    let facts = authenticator.facts(&settings, plan, now);
                    let starts = |(_, definitions): &Source| {
                        may_start(&settings, definitions, plan, "", &facts).is_ok()
                    };
                    !sources.iter().any(starts)
                }
            }
        })
    }

    /// Returns the message of a plan's approval and its signature, as `ssh-keygen -Y verify` takes them.
    pub fn signed_message(&self, plan: &PlanId) -> Result<Option<(String, String)>, ServiceError> {
        let authenticator = self.authenticator()?;
        self.read(plan, |plan| {
            let approval = plan.state().approval.as_ref()?;
            let work = approval.work.as_deref()?;
            let signature = work.attestation.as_ref()?.signature.as_ref()?;
            let message = authenticator.message(Approved::of(plan.id(), approval), work)?.ok()?;
            Some((message, signature.armored.clone()))
        })
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
        self.approve_with(by, plan, NewApproval { seen: seen.into(), note, ..NewApproval::default() }, guard)
    }

    /// Approves like [`Service::approve`], and holds tasks in the same version.
    pub fn approve_with(
        &self,
        by: &Caller,
        plan: &PlanId,
        new: NewApproval<'_>,
        guard: Guard,
    ) -> WriteResult {
        let seen = new.seen.as_ref().map(|seen| seen.digest.clone()).unwrap_or_default();
        self.approve_seen(by, plan, new, guard).map_err(|error| self.with_changes(error, &seen))
    }

    fn approve_seen(&self, by: &Caller, plan: &PlanId, new: NewApproval<'_>, guard: Guard) -> WriteResult {
        let NewApproval { seen, note, hold, signing } = new;
        let settings = self.config()?.approval.clone();
        let act = ProvedAct::approval(plan);
        let presence = match signing {
            None => by.proved(&act)?,
            // A signature takes the place of the terminal, for a person.
            Some(_) => by.may_sign(&act)?,
        };
        self.read(plan, |plan| by.may_approve_rejected(plan))??;
        let Some(seen) = seen else { return Err(ServiceError::SeenMissing { plan: plan.clone() }) };
        if signing.is_none() && presence.proof < settings.proof {
            let (needed, given) = (settings.proof, presence.proof);
            return Err(ServiceError::NeedsStrongerProof { act: act.act, needed, given });
        }
        let sources = self.definitions_for(plan)?;
        let authenticator = self.authenticator()?.clone();
        let (history, now) =
            self.plans().store().query(|read| Ok((read.plan_state(plan)?.hash(), read.now())))?;
        let upstream = self.upstream(plan)?;
        let mut work = self.read(plan, |plan| seen_work(plan, &seen, &upstream, &sources, &presence))??;
        if !signing.is_some_and(|signing| signing.portable) {
            work.as_of = Some(upstream.as_of);
            work.gates = upstream.gates;
        }
        if signing.is_some_and(|signing| signing.portable) {
            self.read(plan, |plan| holds_nothing(plan, hold))??;
        }
        // Its author goes on to edit it: their edits renew the record, and those of others void it.
        let is_authors = |plan: &Plan| {
            let state = plan.state();
            !state.approval_required && state.created_by.as_ref() == Some(&by.actor)
        };
        if signing.is_none() && settings.proof <= Proof::Presence && self.read(plan, is_authors)? {
            work.kind = ApprovalKind::OwnReviewed;
        }
        let approved = Approved { plan, by: &by.actor, version: seen.version, note };
        let work = match signing {
            None => authenticator.attest(&settings, approved, work, now, history)?,
            Some(signing) => authenticator.attest_signed(&settings, approved, work, now, history, signing)?,
        };
        if work.proof < settings.proof {
            let (needed, given) = (settings.proof, work.proof);
            return Err(ServiceError::NeedsStrongerProof { act: act.act, needed, given });
        }
        let (note, hold, of_store) = (note.to_owned(), hold.to_vec(), authenticator.clone());
        let (reply, ()) = self.write_with(by, plan, guard, move |plan| {
            // Nothing has changed between what was sealed and what is written.
            is_as_seen(plan, &seen)?;
            let known = plan.state().approval.as_ref().filter(|approval| !approval.is_own());
            let facts = authenticator.facts(&settings, plan, now);
            let is_good = known.is_some()
                && plan.state().phase != Phase::AwaitingApproval
                && may_start_with(&settings, &work.digest, plan, &facts).is_ok();
            let (version, note) = (seen.version, note.clone());
            let approve = || Command::Approve { version, note, work: Some(Box::new(work.clone())) };
            let mut commands: Vec<Command> = hold.iter().map(held_at_approval).collect();
            commands.extend((!is_good).then(approve));
            Ok((commands, ()))
        })?;
        of_store.note_store()?;
        Ok(reply)
    }
}

/// The approval that a person gives.
#[derive(Clone, Default)]
pub struct NewApproval<'a> {
    /// What the person has seen.
    pub seen: Option<Seen>,
    /// The person's note.
    pub note: &'a str,
    /// Tasks that do not start before a person lifts their hold.
    pub hold: &'a [TaskId],
    /// How the person signs, where they do.
    pub signing: Option<&'a Signing<'a>>,
}

fn held_at_approval(task: &TaskId) -> Command {
    Command::HoldTask { task: task.clone(), reason: "held when the plan was approved".to_owned() }
}

/// Refuses a plan that has changed since the person saw it.
fn is_as_seen(plan: &Plan, seen: &Seen) -> Result<(), ServiceError> {
    let (current, id) = (plan.version(), plan.id().clone());
    match current == seen.version {
        true => Ok(()),
        false => {
            Err(ServiceError::ChangedSinceSeen { plan: id, seen: seen.version, current, changes: Vec::new() })
        }
    }
}

/// Returns the work that an approval names, if the plan is as the person has seen it.
fn seen_work(
    plan: &Plan,
    seen: &Seen,
    upstream: &Upstream,
    sources: &[Source],
    presence: &Presence,
) -> Result<ApprovedWork, ServiceError> {
    is_as_seen(plan, seen)?;
    let as_seen = |(_, definitions): &&Source| {
        upstream.seen_digest(&preview_digest(definitions, plan).0) == seen.digest
    };
    let Some((_, definitions)) = sources.iter().find(as_seen) else {
        let (id, version) = (plan.id().clone(), seen.version);
        let changes = Vec::new();
        return Err(ServiceError::ChangedSinceSeen { plan: id, seen: version, current: version, changes });
    };
    let resolved = resolved(definitions, plan);
    if !resolved.unresolved.is_empty() {
        let (plan, names) = (plan.id().clone(), resolved.unresolved);
        return Err(ServiceError::UnresolvedExecutor { plan, names });
    }
    Ok(ApprovedWork {
        definitions: kept_definitions(&resolved.definitions),
        digest: resolved.digest,
        proof: presence.proof,
        via: presence.via.clone(),
        kind: ApprovalKind::Explicit,
        attestation: None,
        gates: Vec::new(),
        as_of: None,
    })
}

/// What a worker has read before it decides whether to start tasks of a plan.
#[derive(Clone, Debug)]
pub struct StartFacts {
    /// The time by the store's clock.
    pub now: Timestamp,
    /// The proof that the approval gives, if it is genuine; `None` without an approval.
    pub verified: Option<Result<Proof, NotAuthentic>>,
}

impl Authenticator {
    /// Reads what shows whether the approval of a plan is genuine.
    pub fn facts(&self, settings: &ApprovalSettings, plan: &Plan, now: Timestamp) -> StartFacts {
        let approval = plan.state().approval.as_ref().filter(|_| needs_record(settings));
        let verified = approval.map(|approval| self.verify(settings, plan.id(), approval, now));
        StartFacts { now, verified }
    }
}

/// Whether a worker with these settings starts only what a person approved or started.
pub fn needs_record(settings: &ApprovalSettings) -> bool {
    settings.policy != ApprovalPolicy::Never || settings.proof >= Proof::Signature
}

/// Decides whether a worker with these definitions may start tasks of a plan: a person's genuine record must name exactly
/// what it would run.
pub fn may_start(
    settings: &ApprovalSettings,
    definitions: &Definitions,
    plan: &Plan,
    worker: &str,
    facts: &StartFacts,
) -> Result<(), Box<StartRefusal>> {
    if !needs_record(settings) || !plan.has_machine_work() {
        return Ok(());
    }
    let (digest, now) = preview_digest(definitions, plan);
    may_start_with(settings, &digest, plan, facts).map_err(|(reason, detail)| {
        let differences = match reason {
            StartRefusalReason::DigestMismatch => since_approval(approved_work(plan), &now),
            StartRefusalReason::NoDigest
            | StartRefusalReason::GateNotProved
            | StartRefusalReason::NoRecord
            | StartRefusalReason::NotAuthentic
            | StartRefusalReason::StoreChanged
            | StartRefusalReason::Expired
            | StartRefusalReason::ProofTooLow => detail.into_iter().collect(),
        };
        Box::new(StartRefusal { worker: worker.to_owned(), reason, digest, differences })
    })
}

/// Why nothing starts, and what a person should know besides.
type Reason = (StartRefusalReason, Option<String>);

/// The same for what has this digest.
pub(crate) fn may_start_with(
    settings: &ApprovalSettings,
    digest: &str,
    plan: &Plan,
    facts: &StartFacts,
) -> Result<(), Reason> {
    let state = plan.state();
    // That a person ran the plan as their own does not approve what others wrote.
    let approval = state.approval.as_ref().filter(|approval| !(state.approval_required && approval.is_own()));
    let Some(approval) = approval else { return Err((StartRefusalReason::NoRecord, None)) };
    let Some(work) = &approval.work else { return Err((StartRefusalReason::NoDigest, None)) };
    let proof = match facts.verified.clone() {
        Some(Ok(proof)) => proof,
        Some(Err(NotAuthentic::Unattested)) => return Err((StartRefusalReason::NoDigest, None)),
        Some(Err(NotAuthentic::NotSealedHere)) | None => {
            return Err((StartRefusalReason::NotAuthentic, None));
        }
        Some(Err(NotAuthentic::Signature(why))) => {
            return Err((StartRefusalReason::NotAuthentic, Some(why)));
        }
        Some(Err(why @ (NotAuthentic::Revoked | NotAuthentic::OfOtherPlace))) => {
            return Err((StartRefusalReason::NotAuthentic, Some(why.to_string())));
        }
        Some(Err(NotAuthentic::StoreChanged(location) | NotAuthentic::StoreUnknown(location))) => {
            return Err((StartRefusalReason::StoreChanged, Some(location)));
        }
    };
    let expires_at = work.attestation.as_ref().and_then(|attestation| attestation.expires_at);
    if expires_at.is_some_and(|end| end <= facts.now) {
        return Err((StartRefusalReason::Expired, None));
    }
    let unattended = work.kind.is_own() && proof == Proof::Account;
    let suffices = match unattended {
        true => settings.unattended && settings.proof <= Proof::Presence,
        false => proof >= settings.proof,
    };
    if !suffices {
        return Err((StartRefusalReason::ProofTooLow, Some(proof_text(settings.proof).to_owned())));
    }
    if work.digest == digest { Ok(()) } else { Err((StartRefusalReason::DigestMismatch, None)) }
}

/// Returns who gave an approval, of what, how and when, as a clause for people. The note is not in it.
pub fn approval_text(approval: &Approval) -> String {
    let Approval { by, version, at, work, .. } = approval;
    let at = at.to_the_second();
    let Some(work) = work else { return format!("by {by}, at {at}, version {version}") };
    let via = if work.via.is_empty() { String::new() } else { format!(" ({})", work.via) };
    let own = if approval.is_own() { ", as their own plan" } else { "" };
    let digest = short_digest(&work.digest);
    format!("by {by}{own}, proof: {}{via}, at {at}, version {version} ({digest})", work.proof)
}

/// Returns a worker's refusal as a sentence for people. What to do next is in [`start_refusal_hint`].
pub fn start_refusal_text(plan: &Plan, refusal: &StartRefusal) -> String {
    let (id, StartRefusal { worker, digest, differences, .. }) = (plan.id(), refusal);
    let approval = plan.state().approval.as_ref().and_then(|approval| approval.work.as_ref());
    let detail = differences.first().map_or("", String::as_str);
    match refusal.reason {
        StartRefusalReason::NoDigest => format!("plan {id} was approved by an earlier version of Waypost"),
        StartRefusalReason::NoRecord => format!("nobody has approved plan {id}"),
        StartRefusalReason::NotAuthentic if detail.is_empty() => {
            format!("the approval of plan {id} was not given on this account")
        }
        StartRefusalReason::NotAuthentic => format!("the approval of plan {id} does not count: {detail}"),
        StartRefusalReason::StoreChanged => format!("{detail} is not the store that this account used there"),
        StartRefusalReason::Expired => {
            let attestation = approval.and_then(|work| work.attestation.as_ref());
            let ended = attestation.and_then(|attestation| attestation.expires_at);
            let ended = ended.map(|at| at.to_string()).unwrap_or_default();
            let day = ended.split('T').next().unwrap_or_default();
            format!("the approval of plan {id} ended on {day}")
        }
        StartRefusalReason::ProofTooLow => {
            let given = approval.map_or(String::new(), |work| work.proof.to_string());
            format!("{worker} needs {detail} to start plan {id}; {given} is not enough")
        }
        StartRefusalReason::GateNotProved => {
            let gates = differences.join(", ");
            format!("{worker} starts nothing behind {gates}: no record shows that a person ended it")
        }
        StartRefusalReason::DigestMismatch => {
            let approved = approval.map_or("", |work| short_digest(&work.digest));
            let why =
                if differences.is_empty() { String::new() } else { format!(" ({})", differences.join("; ")) };
            let would = short_digest(digest);
            format!("plan {id} was approved as {approved}; {worker} would run {would}{why}")
        }
    }
}

/// Returns what to do about a worker's refusal.
pub fn start_refusal_hint(plan: &PlanId, refusal: &StartRefusal) -> Hint {
    let detail = refusal.differences.first();
    match refusal.reason {
        StartRefusalReason::NoDigest | StartRefusalReason::Expired => Hint::Approve(plan.clone()),
        StartRefusalReason::NotAuthentic if detail.is_none() => Hint::Approve(plan.clone()),
        StartRefusalReason::NotAuthentic => Hint::ApproveOrAllowSigner(plan.clone()),
        StartRefusalReason::NoRecord => Hint::RunOrApprove(plan.clone()),
        StartRefusalReason::StoreChanged => Hint::TrustStore,
        StartRefusalReason::ProofTooLow => {
            let needs = |proof: Proof| detail.is_some_and(|needed| needed == proof_text(proof));
            let act = PersonAct::on_plan(PersonVerb::Approve, plan);
            match needs(Proof::Signature) || needs(Proof::Touch) {
                true => Hint::Sign { act, touch: needs(Proof::Touch) },
                false => Hint::Approve(plan.clone()),
            }
        }
        StartRefusalReason::GateNotProved => {
            let gate = detail.cloned().unwrap_or_default();
            // A task of another plan is named with its plan or agent.
            match gate.contains(['/', ':']) {
                true => Hint::Text("a person ends the tasks for people before it there".to_owned()),
                false => Hint::AnswerAgain { plan: plan.clone(), task: gate },
            }
        }
        StartRefusalReason::DigestMismatch => Hint::ApproveOrRestore(plan.clone()),
    }
}
