//! What happens in one plan is told to tasks of other plans that wait for it, in the same transaction: whoever sees that a
//! task has ended sees that those who waited for it know.
//!
//! Decides nothing: what a waiting task makes of it is decided by its own plan.

use std::collections::{BTreeMap, VecDeque};

use waypost_core::{Actor, Command, Elsewhere, Plan, PlanId, Received, Status, TaskId};

use crate::across::candidates;
use crate::plans::{Cache, News, Trouble, WriteRequest, catch_up, write_possible};
use crate::store::{StoreError, Transaction};

/// How a task ended, for those who wait for it; nothing while it goes on.
fn ending(plan: &Plan, task: &TaskId) -> Option<Received> {
    let found = plan.task(task.as_str()).filter(|task| task.state.status.is_finished())?;
    Some(Received {
        status: found.state.status,
        output: found.state.output.clone(),
        provides: found.spec.provides.clone(),
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
) -> Result<(), Trouble> {
    let mut all = VecDeque::from([(plan.clone(), news)]);
    while let Some((plan, news)) = all.pop_front() {
        let letters = letters(transaction, cache, &plan, news).map_err(Trouble::OfTheStore)?;
        for (plan, commands) in letters {
            let (by, known_version, lease_seconds) = (by.clone(), None, None);
            let request = WriteRequest { plan: plan.clone(), by, commands, known_version, lease_seconds };
            match write_possible(transaction, cache, &request, None) {
                Ok(_) => {}
                // A plan that hears nothing any more is no reason not to write what happened.
                Err(Trouble::OfTheJob(_)) => continue,
                Err(error) => return Err(error),
            }
            if let Some(news) = cache.take_news(&plan) {
                all.push_back((plan, news));
            }
        }
    }
    Ok(())
}

fn letters(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    plan: &PlanId,
    news: News,
) -> Result<BTreeMap<PlanId, Vec<Command>>, StoreError> {
    let mut letters: BTreeMap<PlanId, Vec<Command>> = BTreeMap::new();
    for (task, waits) in news.waits {
        for from in waits {
            if let Some(received) = find(transaction, cache, plan, &from)? {
                let told = Command::ReceiveOutput { task: task.clone(), from, received };
                letters.entry(plan.clone()).or_default().push(told);
            }
        }
    }
    if news.finished.is_empty() || !transaction.has_waits()? {
        return Ok(letters);
    }
    let Some(version) = transaction.version(plan)? else { return Ok(letters) };
    catch_up(transaction, cache, plan, version)?;
    for task in news.finished {
        let Some(finished) = cache.get(plan) else { break };
        let Some(received) = ending(finished, &task) else { continue };
        let owner = finished.spec().owner.clone();
        for wait in transaction.waits(plan, &owner, task.as_str())? {
            // Who waits for an agent, and not for a plan, waits on as long as another plan of the agent has the task yet to do.
            let of_agent = wait.on.plan.is_none() && received.status != Status::Done;
            if of_agent && find(transaction, cache, &wait.plan, &wait.on)?.is_none() {
                continue;
            }
            let told = Command::ReceiveOutput { task: wait.task, from: wait.on, received: received.clone() };
            letters.entry(wait.plan).or_default().push(told);
        }
    }
    Ok(letters)
}

/// How the task that is meant has ended, if it has.
fn find(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    of: &PlanId,
    there: &Elsewhere,
) -> Result<Option<Received>, StoreError> {
    for id in candidates(transaction, there)?.into_iter().filter(|id| id != of) {
        let Some(version) = transaction.version(&id)? else { continue };
        catch_up(transaction, cache, &id, version)?;
        let Some(plan) = cache.get(&id) else { continue };
        if plan.task(there.task.as_str()).is_some() {
            return Ok(ending(plan, &there.task));
        }
    }
    Ok(None)
}
