//! Delivers the outcomes of tasks to tasks of other plans that wait for them, in the same transaction: a reader that
//! sees that a task has ended, or was reopened, also sees that the waiting tasks were notified.
//!
//! Each delivery states the current status of the target and not the last change, so repetition and order do not
//! matter. This module decides nothing: the plan of the waiting task decides what a delivery changes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use waypost_core::{
    Actor, Command, Dependency, ExternalTaskRef, Plan, PlanId, Status, TaskChanges, TaskId, Timestamp,
    UpstreamResult,
};

use crate::cross_plan::locate::{locate, meant_plan, there, waits_since};
use crate::cross_plan::resolve::ended;
use crate::cross_plan::target_status::TargetStatus;
use crate::error::Result;
use crate::plans::cache::{Cache, News, catch_up};
use crate::plans::request::{BatchError, Committed, Done, OnRefusal, Write, WriteRequest};
use crate::plans::transaction::write;
use crate::rows::{SYNC_ACTOR, SharedKeys, SharedScope, Wait, WaitFilter};
use crate::store::Transaction;

/// Maximum number of deliveries to one task about one other task that follow from one write. Only a cycle needs more
/// than a few.
const TOLD_MAX: u32 = 8;
/// Maximum number of changed tasks of one version for which waits are looked up one by one.
const LOOKUPS_MAX: usize = 32;

/// The current state of a task in another plan, as a waiting task should see it.
enum Truth {
    /// The task has ended.
    Ended(UpstreamResult),
    /// The task will not be done in the current state of its plan: it was archived or purged, or lacks the task.
    Never(UpstreamResult),
    /// The task is not finished.
    Open,
    /// There is no such task. A result that was already received stays.
    Absent,
}

/// Returns the outcome of a task for the tasks that wait for it, or `None` while the task is open.
fn ending(plan: &Plan, task: &TaskId) -> Option<UpstreamResult> {
    let found = plan.task(task.as_str()).filter(|task| task.state.status.is_finished())?;
    Some(UpstreamResult {
        status: found.state.status,
        output: found.state.output.clone(),
        provides: found.spec.provides.clone(),
        ..UpstreamResult::default()
    })
}

/// Delivers the `news` of a plan to the plans that wait for it, and to the plan itself the results that already exist
/// elsewhere; then delivers the changes that follow, until there are none.
pub(crate) fn deliver(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    by: &Actor,
    plan: &PlanId,
    news: News,
) -> Result<(), BatchError> {
    let of_store = BatchError::OfTheStore;
    // What follows from what nobody trusts is not trusted either.
    let untrusted = *by == Actor::system(SYNC_ACTOR) && is_withheld(transaction, plan).map_err(of_store)?;
    let mut all = VecDeque::from([(plan.clone(), news)]);
    let mut told = DeliveryCounts::new();
    while let Some((plan, news)) = all.pop_front() {
        let letters = letters(transaction, cache, &plan, &news, &mut told).map_err(of_store)?;
        for (plan, mut commands) in letters {
            for command in &mut commands {
                if let Command::ReceiveOutput { untrusted: is_untrusted, .. } = command {
                    *is_untrusted = untrusted;
                }
            }
            let (by, known_version, lease_seconds) = (by.clone(), None, None);
            let request = WriteRequest { plan: plan.clone(), by, commands, known_version, lease_seconds };
            let (slots, build, on_refusal) = (None, None, OnRefusal::Skip);
            match write(transaction, cache, &Write { request, slots, build, append: None, on_refusal }) {
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

/// Whether no agent is offered the plan, because nobody has trusted where records of it came from.
fn is_withheld(transaction: &mut dyn Transaction, plan: &PlanId) -> Result<bool> {
    let rows = transaction.shared(SharedScope::Withheld, SharedKeys::Only(plan.as_str()), 1)?;
    Ok(!rows.is_empty())
}

/// Delivers the news of a completed write to the plans that wait for it.
pub(crate) fn and_tell(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    by: &Actor,
    mut done: Committed,
) -> Done {
    if let Some(news) = cache.take_news(&done.plan) {
        deliver(transaction, cache, by, &done.plan, news)?;
        // The plan may itself have received results, which makes a later version.
        if let Some(plan) = cache.get(&done.plan) {
            done.version = plan.version();
        }
    }
    Ok(done)
}

/// The number of deliveries of each wait.
type DeliveryCounts = HashMap<Wait, u32>;

fn letters(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    plan: &PlanId,
    news: &News,
    told: &mut DeliveryCounts,
) -> Result<BTreeMap<PlanId, Vec<Command>>> {
    let mut letters: BTreeMap<PlanId, Vec<Command>> = BTreeMap::new();
    if let Some(former) = &news.former_owner {
        for (waiting, command) in follow_handed_over(transaction, cache, plan, former)? {
            letters.entry(waiting).or_default().push(command);
        }
    }
    for (wait, from) in concerned(transaction, cache, plan, news)? {
        let is_open = cache.get(plan).is_some_and(|plan| !plan.state().phase.is_finished());
        // A plan that is over answers nobody who asks for its agent, except with what has ended just now.
        let from = from.filter(|_| is_open || news.outcomes.contains(&wait.on.task));
        // A plan that cannot be read does not stop the write.
        let Some(version) = transaction.plan_state(&wait.plan)?.version() else { continue };
        if catch_up(transaction, cache, &wait.plan, version).is_err() {
            continue;
        }
        let Some(waiting) = cache.get(&wait.plan) else { continue };
        let Some(task) = waiting.task(wait.task.as_str()) else { continue };
        let heard = task.state.received.get(&wait.on.key()).cloned();
        // A plan that heard nothing while it was archived hears now what has ended since its task began to wait.
        let was_deaf = news.whole && wait.plan == *plan;
        let ear = Recipient {
            wait: &wait,
            heard: heard.as_ref(),
            has_ended: waiting.state().phase.is_finished(),
            deaf_since: task.state.created_at.filter(|_| was_deaf),
        };
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

/// Returns the waits that the news may affect. Each comes with the plan that changed, unless the waiting plan is that
/// plan.
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
        let on = |task| WaitFilter::On { plan, owner: &owner, task };
        if news.whole {
            // The plan may have been archived, and an archived plan receives no results: check all its waits.
            found.extend(transaction.waits(WaitFilter::Of(plan))?);
            found.extend(transaction.waits(on(None))?);
        } else if news.outcomes.len() > LOOKUPS_MAX {
            let tasks: HashSet<&TaskId> = news.outcomes.iter().collect();
            let waits = transaction.waits(on(None))?.into_iter();
            found.extend(waits.filter(|wait| tasks.contains(&wait.on.task)));
        } else {
            for task in &news.outcomes {
                found.extend(transaction.waits(on(Some(task.as_str())))?);
            }
        }
    }
    let with_source = |wait: Wait| {
        let from = (wait.plan != *plan).then_some(plan);
        (wait, from)
    };
    Ok(found.into_iter().map(with_source).collect())
}

/// Makes the tasks that wait for a task of this plan by the name of its former owner name the plan and its owner: a wait
/// follows the plan that it was resolved to.
fn follow_handed_over(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    id: &PlanId,
    former: &str,
) -> Result<Vec<(PlanId, Command)>> {
    let Some(plan) = cache.get(id) else { return Ok(Vec::new()) };
    let owner = plan.spec().owner.clone();
    let (is_over, tasks) = (
        plan.state().phase.is_finished() || plan.state().archived,
        plan.tasks().map(|(task, _)| task.spec.id.clone()),
    );
    let tasks: HashSet<TaskId> = tasks.collect();
    let mut letters = Vec::new();
    for wait in transaction.waits(WaitFilter::On { plan: id, owner: former, task: None })? {
        let is_by_name = wait.on.agent.as_deref() == Some(former);
        if !is_by_name || wait.plan == *id || !tasks.contains(&wait.on.task) {
            continue;
        }
        let Some(version) = transaction.plan_state(&wait.plan)?.version() else { continue };
        if catch_up(transaction, cache, &wait.plan, version).is_err() {
            continue;
        }
        let task = cache.get(&wait.plan).and_then(|plan| plan.task(wait.task.as_str()));
        let meant_this = match task.and_then(|task| task.state.received.get(&wait.on.key())) {
            Some(heard) if heard.status == Status::Done => false,
            Some(_) | None if wait.on.plan.is_some() => true,
            Some(heard) => heard.plan.as_ref() == Some(id),
            None => !is_over && means(transaction, cache, &wait, id)?,
        };
        if meant_this {
            let agent = Some(owner.clone()).filter(|owner| !owner.is_empty());
            let there = ExternalTaskRef { agent, plan: Some(id.clone()), task: wait.on.task.clone() };
            let changes = TaskChanges {
                add_dependencies: vec![Dependency::External(Box::new(there))],
                remove_dependencies: vec![Dependency::External(Box::new(wait.on))],
                ..TaskChanges::default()
            };
            letters.push((wait.plan, Command::ReviseTask { task: wait.task, changes: Box::new(changes) }));
        }
    }
    Ok(letters)
}

/// Whether a wait means this plan of the agent, which may have ended or been handed over just now.
fn means(transaction: &mut dyn Transaction, cache: &mut Cache, wait: &Wait, plan: &PlanId) -> Result<bool> {
    let since = waits_since(cache, &wait.plan, &wait.task);
    let (meant, _) = meant_plan(transaction, cache, &wait.plan, since, &wait.on, Some(plan))?;
    Ok(meant.is_none_or(|meant| meant == *plan))
}

fn never(reason: String, plan: Option<&PlanId>) -> UpstreamResult {
    UpstreamResult {
        status: Status::Cancelled,
        reason: Some(reason),
        plan: plan.cloned(),
        ..UpstreamResult::default()
    }
}

/// A waiting task and the result that it has received so far.
struct Recipient<'a> {
    wait: &'a Wait,
    heard: Option<&'a UpstreamResult>,
    /// Whether the plan of the waiting task has finished.
    has_ended: bool,
    /// Since when the waiting task may have missed the end of a plan.
    deaf_since: Option<Timestamp>,
}

impl Recipient<'_> {
    fn has_result(&self) -> bool {
        self.heard.is_some_and(|heard| heard.status == Status::Done)
    }

    /// Returns the current state of the task that the recipient waits for. `from` is the plan that has just changed.
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
        let since = waits_since(cache, &self.wait.plan, &self.wait.task);
        let mut found = locate(transaction, cache, &self.wait.plan, since, on)?;
        let of_agent = on.plan.is_none();
        if of_agent && !found.is_there() {
            let changed = from.and_then(|from| cache.get(from));
            found = changed.and_then(|plan| there(plan, &on.task)).unwrap_or(found);
        }
        if of_agent && !found.is_there() {
            found = self.missed(transaction, cache)?.unwrap_or(found);
        }
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
            | TargetStatus::OnlyInEnded { .. }
            | TargetStatus::NoName(_) => Truth::Absent,
        })
    }

    /// Returns the task in a plan of the agent that ended while the recipient heard nothing.
    fn missed(&self, transaction: &mut dyn Transaction, cache: &mut Cache) -> Result<Option<TargetStatus>> {
        let (Some(agent), Some(since)) = (&self.wait.on.agent, self.deaf_since) else { return Ok(None) };
        for id in ended(transaction, agent)?.into_iter().filter(|id| *id != self.wait.plan) {
            let Some(version) = transaction.plan_state(&id)?.version() else { continue };
            // A damaged plan that is over answers nobody.
            if catch_up(transaction, cache, &id, version).is_err() {
                continue;
            }
            let plan = cache.get(&id).filter(|plan| plan.state().finished_at > Some(since));
            if let Some(found) = plan.and_then(|plan| there(plan, &self.wait.on.task)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the state of a target that is named by agent only. The recipient follows the plan from which it received
    /// its result, and takes another plan of the agent only for a better result. Returns `None` when the plan has yet
    /// to be located.
    fn truth_of_agent(
        &self,
        transaction: &mut dyn Transaction,
        cache: &mut Cache,
        from: Option<&PlanId>,
    ) -> Result<Option<Truth>> {
        let is_meant = match from {
            Some(from) => means(transaction, cache, self.wait, from)?,
            None => false,
        };
        let task = &self.wait.on.task;
        let mut end_in = |id: &PlanId| -> Result<Option<Option<UpstreamResult>>> {
            let Some(version) = transaction.plan_state(id)?.version() else { return Ok(None) };
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
        // A plan that finished without the result of one plan is not reopened by another plan of the same agent.
        let listens = is_meant && (self.heard.is_none() || !self.has_ended);
        if let Some(from) = from.filter(|_| listens)
            && let Some(Some(ending)) = end_in(from)?
            && ending.status == Status::Done
        {
            return Ok(Some(Truth::Ended(ending)));
        }
        Ok(match (of_source, self.heard) {
            (Some(Some(ending)), _) => Some(Truth::Ended(ending)),
            // The task was reopened, or nothing was received yet: locate the plan.
            (Some(None), _) | (None, None) => None,
            (None, Some(_)) => Some(Truth::Absent),
        })
    }

    /// Returns the command that delivers the truth, or `None` if the recipient already has it.
    fn command(&self, truth: Truth) -> Option<Command> {
        let (task, from) = (self.wait.task.clone(), self.wait.on.clone());
        let receive = |received: UpstreamResult| {
            let is_news = self.heard != Some(&received);
            let (task, from, untrusted) = (task.clone(), from.clone(), false);
            is_news.then_some(Command::ReceiveOutput { task, from, received, untrusted })
        };
        let is_withdrawn = match truth {
            Truth::Ended(received) => return receive(received),
            // A result that was delivered stays.
            Truth::Never(_) if self.has_result() => false,
            Truth::Never(received) => return receive(received),
            Truth::Open => self.heard.is_some(),
            // An unsuccessful outcome is withdrawn when its task no longer exists.
            Truth::Absent => from.plan.is_some() && self.heard.is_some() && !self.has_result(),
        };
        is_withdrawn.then_some(Command::WithdrawOutput { task, from })
    }
}
