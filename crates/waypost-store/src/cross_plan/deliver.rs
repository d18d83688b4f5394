//! What happens in one plan is told to tasks of other plans that wait for it, in the same transaction: whoever sees that a
//! task has ended, or is to be done again, sees that those who wait for it know.
//!
//! Each time a waiting task is told how things stand, not what has just happened: so it does not matter how often, or in
//! which order, it is told. Decides nothing: what a waiting task makes of it is decided by its own plan.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use waypost_core::{Actor, Command, ExternalTaskRef, Plan, PlanId, Status, TaskId, UpstreamResult};

use crate::cross_plan::locate::locate;
use crate::cross_plan::target_status::TargetStatus;
use crate::error::Result;
use crate::plans::cache::{Cache, News, catch_up};
use crate::plans::request::{BatchError, Committed, Done, OnRefusal, Write, WriteRequest};
use crate::plans::transaction::write;
use crate::rows::Wait;
use crate::store::Transaction;

/// How often one task is told of one other by what follows from one write. Nothing that is no ring needs more than a few.
const TOLD_MAX: u32 = 8;
/// Tasks of one version that are looked up one by one among those that are waited for.
const LOOKUPS_MAX: usize = 32;

/// What there is to tell of a task elsewhere.
enum Truth {
    /// It has ended.
    Ended(UpstreamResult),
    /// It will not come, as things stand.
    Never(UpstreamResult),
    /// It has yet to be done.
    Open,
    /// It is not there, and what was heard of it stays.
    Absent,
}

/// How a task ended, for the tasks that wait for it; nothing while it is open.
fn ending(plan: &Plan, task: &TaskId) -> Option<UpstreamResult> {
    let found = plan.task(task.as_str()).filter(|task| task.state.status.is_finished())?;
    Some(UpstreamResult {
        status: found.state.status,
        output: found.state.output.clone(),
        provides: found.spec.provides.clone(),
        ..UpstreamResult::default()
    })
}

/// Tells what `news` of a plan means to others, and to itself what has happened elsewhere already; then what follows from
/// that, and so on.
pub(crate) fn deliver(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    by: &Actor,
    plan: &PlanId,
    news: News,
) -> Result<(), BatchError> {
    let mut all = VecDeque::from([(plan.clone(), news)]);
    let mut told = DeliveryCounts::new();
    while let Some((plan, news)) = all.pop_front() {
        let letters = letters(transaction, cache, &plan, &news, &mut told).map_err(BatchError::OfTheStore)?;
        for (plan, commands) in letters {
            let (by, known_version, lease_seconds) = (by.clone(), None, None);
            let request = WriteRequest { plan: plan.clone(), by, commands, known_version, lease_seconds };
            let (slots, build, on_refusal) = (None, None, OnRefusal::Skip);
            match write(transaction, cache, &Write { request, slots, build, on_refusal }) {
                Ok(_) => {}
                // A plan that accepts no more results does not stop the write.
                Err(BatchError::OfTheJob(_)) => continue,
                Err(error) => return Err(error),
            }
            if let Some(news) = cache.take_news(&plan) {
                all.push_back((plan, news));
            }
        }
    }
    Ok(())
}

/// Delivers what was written to the plans that wait for it.
pub(crate) fn and_tell(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    by: &Actor,
    mut done: Committed,
) -> Done {
    if let Some(news) = cache.take_news(&done.plan) {
        deliver(transaction, cache, by, &done.plan, news)?;
        // It may have heard something itself.
        if let Some(plan) = cache.get(&done.plan) {
            done.version = plan.version();
        }
    }
    Ok(done)
}

/// How often who was told.
type DeliveryCounts = HashMap<Wait, u32>;

fn letters(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    plan: &PlanId,
    news: &News,
    told: &mut DeliveryCounts,
) -> Result<BTreeMap<PlanId, Vec<Command>>> {
    let mut letters: BTreeMap<PlanId, Vec<Command>> = BTreeMap::new();
    for (wait, from) in concerned(transaction, cache, plan, news)? {
        // A plan that cannot be read does not stop the write.
        let Some(version) = transaction.version(&wait.plan)? else { continue };
        if catch_up(transaction, cache, &wait.plan, version).is_err() {
            continue;
        }
        let Some(waiting) = cache.get(&wait.plan) else { continue };
        let Some(task) = waiting.task(wait.task.as_str()) else { continue };
        let heard = task.state.received.get(&wait.on.key()).cloned();
        let ear =
            Recipient { wait: &wait, heard: heard.as_ref(), has_ended: waiting.state().phase.is_finished() };
        let mut truth = ear.truth(transaction, cache, from)?;
        let was_there = news.purged.as_ref().is_some_and(|purged| purged.tasks.contains(&wait.on.task));
        if was_there && heard.is_none() && matches!(truth, Truth::Absent) {
            truth = Truth::Never(never(format!("plan {plan} was purged"), Some(plan)));
        }
        let Some(command) = ear.command(truth) else { continue };
        let times = told.entry(wait.clone()).or_default();
        *times += 1;
        if *times <= TOLD_MAX {
            letters.entry(wait.plan).or_default().push(command);
        }
    }
    Ok(letters)
}

/// The waits that the news may mean something to; with each, the plan that the news is of unless that is the one who waits.
fn concerned<'a>(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    plan: &'a PlanId,
    news: &News,
) -> Result<BTreeMap<Wait, Option<&'a PlanId>>> {
    if let Some(purged) = &news.purged {
        return Ok(purged.waits.iter().map(|wait| (wait.clone(), None)).collect());
    }
    let mut found: BTreeSet<Wait> = BTreeSet::new();
    for (task, waits) in &news.waits {
        let wait = |on: &ExternalTaskRef| Wait { plan: plan.clone(), task: task.clone(), on: on.clone() };
        found.extend(waits.iter().map(wait));
    }
    if news.whole || !news.outcomes.is_empty() {
        let Some(owner) = cache.get(plan).map(|plan| plan.spec().owner.clone()) else {
            return Ok(BTreeMap::new());
        };
        if news.whole {
            // While it was archived it received nothing.
            found.extend(transaction.index(plan)?.waits);
            found.extend(transaction.waits(plan, &owner, None)?);
        } else if news.outcomes.len() > LOOKUPS_MAX {
            let tasks: HashSet<&TaskId> = news.outcomes.iter().collect();
            let waits = transaction.waits(plan, &owner, None)?.into_iter();
            found.extend(waits.filter(|wait| tasks.contains(&wait.on.task)));
        } else {
            for task in &news.outcomes {
                found.extend(transaction.waits(plan, &owner, Some(task.as_str()))?);
            }
        }
    }
    let with_source = |wait: Wait| {
        let from = (wait.plan != *plan).then_some(plan);
        (wait, from)
    };
    Ok(found.into_iter().map(with_source).collect())
}

fn never(reason: String, plan: Option<&PlanId>) -> UpstreamResult {
    UpstreamResult {
        status: Status::Cancelled,
        reason: Some(reason),
        plan: plan.cloned(),
        ..UpstreamResult::default()
    }
}

/// One who waits, and what it has heard so far.
struct Recipient<'a> {
    wait: &'a Wait,
    heard: Option<&'a UpstreamResult>,
    /// Whether its plan has ended.
    has_ended: bool,
}

impl Recipient<'_> {
    fn has_result(&self) -> bool {
        self.heard.is_some_and(|heard| heard.status == Status::Done)
    }

    /// How things stand with what it waits for. `from` has just changed.
    fn truth(
        &self,
        transaction: &mut dyn Transaction,
        cache: &mut Cache,
        from: Option<&PlanId>,
    ) -> Result<Truth> {
        let on = &self.wait.on;
        if on.plan.is_none()
            && let Some(truth) = self.truth_of_agent(transaction, cache, from)?
        {
            return Ok(truth);
        }
        let found = locate(transaction, cache, &self.wait.plan, on)?;
        let of_agent = on.plan.is_none();
        Ok(match &found {
            TargetStatus::There { plan, archived, .. } => {
                let source = of_agent.then_some(plan);
                match cache.get(plan).and_then(|found| ending(found, &on.task)) {
                    Some(ending) => Truth::Ended(UpstreamResult { plan: source.cloned(), ..ending }),
                    None if *archived => Truth::Never(never(format!("plan {plan} was archived"), source)),
                    None => Truth::Open,
                }
            }
            TargetStatus::Purged(_) => Truth::Never(never(found.describe(on), None)),
            TargetStatus::NoSuchTask { phase, archived, .. } if phase.is_finished() || *archived => {
                Truth::Never(never(found.describe(on), None))
            }
            TargetStatus::NoSuchTask { .. }
            | TargetStatus::NoSuchPlan(_)
            | TargetStatus::OwnPlan(_)
            | TargetStatus::OwnedBy { .. }
            | TargetStatus::NoPlanOf(_)
            | TargetStatus::NoTaskOf(_)
            | TargetStatus::NoName(_) => Truth::Absent,
        })
    }

    /// Who waits for an agent, whatever its plan, listens to the plan from which it has heard; to another one only for
    /// something better. Nothing when it has yet to be looked which plan is meant.
    fn truth_of_agent(
        &self,
        transaction: &mut dyn Transaction,
        cache: &mut Cache,
        from: Option<&PlanId>,
    ) -> Result<Option<Truth>> {
        let task = &self.wait.on.task;
        let mut end_in = |id: &PlanId| -> Result<Option<Option<UpstreamResult>>> {
            let Some(version) = transaction.version(id)? else { return Ok(None) };
            catch_up(transaction, cache, id, version)?;
            let Some(plan) = cache.get(id).filter(|plan| plan.task(task.as_str()).is_some()) else {
                return Ok(None);
            };
            let ending = ending(plan, task).map(|ending| UpstreamResult { plan: Some(id.clone()), ..ending });
            if ending.is_none() && plan.state().archived {
                return Ok(None);
            }
            Ok(Some(ending))
        };
        let source = self.heard.and_then(|heard| heard.plan.as_ref());
        let of_source = match source {
            Some(source) => end_in(source)?,
            None => None,
        };
        if let Some(Some(ending)) = &of_source
            && ending.status == Status::Done
        {
            return Ok(Some(Truth::Ended(ending.clone())));
        }
        if of_source.is_none() && self.has_result() {
            return Ok(Some(Truth::Absent));
        }
        // What has ended for want of one plan is not opened by another of the same agent.
        let listens = self.heard.is_none() || !self.has_ended;
        if let Some(from) = from.filter(|_| listens)
            && let Some(Some(ending)) = end_in(from)?
            && ending.status == Status::Done
        {
            return Ok(Some(Truth::Ended(ending)));
        }
        Ok(match (of_source, self.heard) {
            (Some(Some(ending)), _) => Some(Truth::Ended(ending)),
            // It is to be done again.
            (Some(None), _) | (None, None) => None,
            (None, Some(_)) => Some(Truth::Absent),
        })
    }

    /// What is to be told, if it is not known.
    fn command(&self, truth: Truth) -> Option<Command> {
        let (task, from) = (self.wait.task.clone(), self.wait.on.clone());
        let receive = |received: UpstreamResult| {
            let is_news = self.heard != Some(&received);
            is_news.then(|| Command::ReceiveOutput { task: task.clone(), from: from.clone(), received })
        };
        let is_withdrawn = match truth {
            Truth::Ended(received) => return receive(received),
            // What was given stays given.
            Truth::Never(_) if self.has_result() => false,
            Truth::Never(received) => return receive(received),
            Truth::Open => self.heard.is_some(),
            // A bad end that is gone is no end.
            Truth::Absent => from.plan.is_some() && self.heard.is_some() && !self.has_result(),
        };
        is_withdrawn.then_some(Command::WithdrawOutput { task, from })
    }
}
