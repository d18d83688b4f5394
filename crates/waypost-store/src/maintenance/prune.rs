//! Prunes the events of plans that finished long ago. The final state of a plan stays, as do its summary and the
//! sequence numbers, times and actors in the log; its events are removed. Nothing is pruned automatically.

use serde::Serialize;
use waypost_core::{Actor, ActorKind, Event, Phase, Plan, PlanId, Refusal, Timestamp};

use crate::error::Result;
use crate::log::subscription::{DroppedEvents, Subscription};
use crate::plans::PlanStore;
use crate::plans::cache::load;
use crate::plans::request::WriteError;
use crate::rows::{
    ArchiveFilter, PlanSummary, Pruned, Query, Sort, SubscriptionFilter, VersionRecord, Wait, WaitFilter,
};
use crate::store::{Pruning, Read, Record, Transaction};

/// Days after which a subscription with unread events of a plan no longer prevents its pruning.
pub const UNREAD_DAYS_MAX: u64 = 90;
/// Maximum number of plans that are read at a time.
const PLANS_READ_MAX: usize = 500;
/// Maximum number of versions that are read at a time.
const VERSIONS_READ_MAX: usize = 1_000;
/// Maximum number of subscriptions that can prevent pruning.
const SUBSCRIPTIONS_READ_MAX: usize = 100_000;
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// The part of a plan that was pruned, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrunedPlan {
    /// The id of the plan.
    pub plan: PlanId,
    /// The title of the plan.
    pub title: String,
    /// When the plan finished.
    pub ended_at: Timestamp,
    /// The version of the plan: this one and all earlier versions have no events any more.
    pub up_to: u64,
    /// The number of versions whose events were removed.
    pub versions: u64,
    /// The size of these events in bytes, as JSON.
    pub bytes: u64,
}

/// The reason why a plan that finished long ago was not pruned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum HeldBack {
    /// A task of another plan waits for one of its tasks.
    Awaited {
        /// The plan of the waiting task.
        by: PlanId,
    },
    /// A subscription has not read all its events; this prevents pruning for at most [`UNREAD_DAYS_MAX`] days.
    Unread {
        /// The owner of the subscription.
        owner: String,
        /// The id of the subscription.
        subscription: String,
    },
}

/// The outcome for one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    /// The events were removed, or would be.
    Pruned(PrunedPlan),
    /// The plan is unchanged, for this reason.
    Kept(PlanId, HeldBack),
}

/// Whether the events are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Remove the events.
    Act,
    /// Only report what would be removed.
    DryRun,
}

impl PlanStore {
    /// Removes the events of plans that finished at least `seconds` ago, and reports each plan to `tell`. Only a person
    /// may prune; a dry run is open to every actor.
    pub fn prune(
        &self,
        seconds: u64,
        by: &Actor,
        mode: Mode,
        tell: &mut dyn FnMut(Looked),
    ) -> Result<(), WriteError> {
        if by.kind != ActorKind::Person && mode == Mode::Act {
            return Err(Refusal::OnlyAPerson { what: "prune plans", by: by.clone() }.into());
        }
        let (now, subscriptions) = self.store().query(|read| {
            Ok((read.now(), read.subscriptions(SubscriptionFilter::All, SUBSCRIPTIONS_READ_MAX)?))
        })?;
        let round = Round {
            plans: self,
            by,
            now,
            before: now.minus_seconds(seconds),
            unread_before: now.minus_seconds(UNREAD_DAYS_MAX * SECONDS_PER_DAY),
            subscriptions,
        };
        let phases = Phase::ALL.into_iter().filter(|phase| phase.is_finished()).collect();
        let (shelf, sort, limit) = (ArchiveFilter::All, Sort::Id, PLANS_READ_MAX);
        let mut query = Query { shelf, sort, limit, phases, ..Query::default() };
        loop {
            let page = self.heads(&query)?;
            for head in &page.items {
                if let Some(looked) = round.examine(head, mode)? {
                    tell(looked);
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Returns the range of a plan's versions whose events were pruned or lost, if any.
    pub fn pruned(&self, plan: &PlanId) -> Result<Option<Pruned>> {
        self.store().query(|read| read.pruned(plan))
    }
}

/// One pass over all plans.
struct Round<'a> {
    plans: &'a PlanStore,
    by: &'a Actor,
    now: Timestamp,
    before: Timestamp,
    unread_before: Timestamp,
    subscriptions: Vec<Subscription>,
}

/// A plan whose events can be removed.
struct Candidate {
    plan: Plan,
    found: PrunedPlan,
    /// The sequence number of its latest version in the log.
    sequence: u64,
}

impl Round<'_> {
    fn examine(&self, head: &PlanSummary, mode: Mode) -> Result<Option<Looked>, WriteError> {
        if head.created_at.is_some_and(|made| made > self.before) {
            return Ok(None);
        }
        let found = self.plans.store().query(|read| {
            let Some(candidate) = self.candidate(read, head)? else { return Ok(None) };
            let held_back = self.held_back(read, &candidate)?;
            Ok(Some((candidate, held_back)))
        })?;
        match found {
            None => Ok(None),
            Some((candidate, Some(why))) => Ok(Some(Looked::Kept(candidate.found.plan, why))),
            Some((candidate, None)) if mode == Mode::DryRun => Ok(Some(Looked::Pruned(candidate.found))),
            Some((candidate, None)) => Ok(self.prune(candidate)?.map(Looked::Pruned)),
        }
    }

    /// Returns the plan if it finished long enough ago and still has events.
    fn candidate(&self, read: &mut dyn Read, head: &PlanSummary) -> Result<Option<Candidate>> {
        let id = &head.id;
        let after = read.pruned(id)?.map_or(0, |pruned| pruned.up_to);
        if after >= head.version {
            return Ok(None);
        }
        let plan = load(read, id, head.version)?;
        let state = plan.state();
        let ended_at = state.finished_at.or(state.updated_at).unwrap_or(self.now);
        if !state.phase.is_finished() || ended_at > self.before {
            return Ok(None);
        }
        let (mut from, mut bytes, mut sequence) = (after, 0, 0);
        while from < head.version {
            let entries = read.versions(id, from, VERSIONS_READ_MAX)?;
            let Some(last) = entries.last() else { break };
            (from, sequence) = (last.version, last.sequence);
            bytes += entries.iter().map(size).sum::<u64>();
        }
        let (title, versions) = (head.title.clone(), head.version - after);
        let found = PrunedPlan { plan: id.clone(), title, ended_at, up_to: head.version, versions, bytes };
        Ok(Some(Candidate { plan, found, sequence }))
    }

    fn held_back(&self, read: &mut dyn Read, candidate: &Candidate) -> Result<Option<HeldBack>> {
        let plan = &candidate.plan;
        let is_awaited = |wait: &Wait| wait.plan != *plan.id() && plan.task(wait.on.task.as_str()).is_some();
        let on = WaitFilter::On { plan: plan.id(), owner: &plan.spec().owner, task: None };
        let waits = read.waits(on)?;
        if let Some(wait) = waits.into_iter().find(is_awaited) {
            return Ok(Some(HeldBack::Awaited { by: wait.plan }));
        }
        let may_wait = candidate.found.ended_at > self.unread_before;
        let unread = self.subscriptions.iter().find(|one| may_wait && is_behind(one, candidate));
        Ok(unread.map(|one| HeldBack::Unread { owner: one.owner.clone(), subscription: one.id.clone() }))
    }

    fn prune(&self, candidate: Candidate) -> Result<Option<PrunedPlan>> {
        let Candidate { mut plan, found, sequence } = candidate;
        let snapshot = plan.snapshot();
        let candidate = Candidate { plan, found, sequence };
        let (id, up_to) = (&candidate.found.plan, candidate.found.up_to);
        let mut pruned = false;
        self.plans.store().write(&mut |transaction| {
            // The plan may have been reopened since it was read.
            pruned = transaction.plan_state(id)?.version() == Some(up_to);
            if !pruned {
                return Ok(());
            }
            self.tell_the_unread(transaction, &candidate)?;
            let what = Pruned::new(up_to, self.now, self.by.clone());
            transaction.prune(&Pruning { pruned: &what, plan: &candidate.plan, snapshot: &snapshot })
        })?;
        Ok(pruned.then_some(candidate.found))
    }

    /// Records for each subscription that has not read the events that it loses them; `waypost doctor` reports it.
    fn tell_the_unread(&self, transaction: &mut dyn Transaction, candidate: &Candidate) -> Result<()> {
        for known in self.subscriptions.iter().filter(|one| is_behind(one, candidate)) {
            let now = transaction.subscriptions(SubscriptionFilter::Id(&known.id), 1)?.pop();
            let now = now.filter(|one| is_behind(one, candidate));
            let Some(mut behind) = now else { continue };
            let (mut lost, mut after) = (0, behind.cursor.sequence);
            let filter = crate::LogFilter { plan: Some(candidate.found.plan.clone()), actor: None };
            loop {
                let entries = transaction.log(after, &filter, VERSIONS_READ_MAX)?.versions;
                let Some(last) = entries.last() else { break };
                after = last.sequence;
                lost += entries.iter().map(|entry| entry.events.len() as u64).sum::<u64>();
            }
            let before = behind.trouble.take().map_or(0, |trouble| trouble.lost);
            let why = format!("plan {} was pruned before they were read", candidate.found.plan);
            behind.trouble = Some(DroppedEvents { lost: before + lost, at: self.now, why });
            transaction.put(Record::Subscription(&behind.id, Some(&behind)))?;
        }
        Ok(())
    }
}

/// Returns whether a subscription has yet to read events of a plan that its filter may admit.
fn is_behind(subscription: &Subscription, candidate: &Candidate) -> bool {
    let plans = &subscription.filter.plans;
    subscription.cursor.sequence < candidate.sequence
        && (plans.is_empty() || plans.contains(&candidate.found.plan))
}

/// Returns the size of a version's events in bytes, as JSON.
fn size(entry: &VersionRecord) -> u64 {
    let bytes = |event: &Event| serde_json::to_vec(event).map_or(0, |bytes| bytes.len() as u64);
    entry.events.iter().map(bytes).sum()
}
