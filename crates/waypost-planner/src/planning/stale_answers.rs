//! Forgets answers about goals that were changed since, so that the model is asked about the current goal.

use std::collections::BTreeMap;

use waypost_core::{Actor, Event, PlanId, TaskId, Timestamp};
use waypost_store::{PlanStore, StoreError, VersionRecord, WriteError};

use super::result::PlanningError;
use waypost_llm::Journal;

/// Number of versions read at a time.
const VERSIONS_PER_PAGE: usize = 500;

/// Forgets answers about goals that actors other than `by` changed later, or that were rolled back or removed. Reads the
/// versions after `after`.
pub fn forget_outdated(
    plans: &PlanStore,
    plan: &PlanId,
    by: &Actor,
    journal: &Journal,
    after: u64,
) -> Result<(), PlanningError> {
    let entries = journal.entries();
    let Some(first) = entries.iter().map(|entry| entry.at).min() else { return Ok(()) };
    let changed = changed_since(plans, plan, by, after, Some(first))?;
    if changed.is_empty() {
        return Ok(());
    }
    journal.forget("the goal was changed", |entry| {
        entry.task.as_ref().and_then(|task| changed.get(task)).is_some_and(|at| entry.at < *at)
    })?;
    Ok(())
}

/// When goals were last changed by others, after a version and from a time on.
pub(super) fn changed_since(
    plans: &PlanStore,
    plan: &PlanId,
    by: &Actor,
    after: u64,
    since: Option<Timestamp>,
) -> Result<BTreeMap<TaskId, Timestamp>, PlanningError> {
    let mut changed = BTreeMap::new();
    let mut after = after;
    loop {
        let page = plans.history(plan, after, VERSIONS_PER_PAGE)?;
        let Some(last) = page.last() else { return Ok(changed) };
        after = last.version;
        for entry in page.iter().filter(|entry| since.is_none_or(|since| entry.at >= since)) {
            for event in &entry.events {
                changed.extend(outdates(event, entry, by).map(|task| (task.clone(), entry.at)));
                if let Event::TasksRemoved { tasks } = event {
                    for task in below(plans, plan, entry.version, tasks)? {
                        changed.insert(task, entry.at);
                    }
                }
            }
        }
    }
}

/// All tasks that were removed together with these at a version. Their ids may be reused for other goals.
fn below(
    plans: &PlanStore,
    plan: &PlanId,
    version: u64,
    tasks: &[TaskId],
) -> Result<Vec<TaskId>, PlanningError> {
    let before = match plans.at_version(plan, version.saturating_sub(1)) {
        // The earlier version was pruned.
        Err(WriteError::NoSuchVersion { .. } | WriteError::Store(StoreError::Pruned { .. })) => {
            return Ok(Vec::new());
        }
        before => before?,
    };
    let mut found = Vec::new();
    let mut rest: Vec<TaskId> = tasks.to_vec();
    while let Some(task) = rest.pop() {
        rest.extend(before.children(task.as_str()).into_iter().map(|child| child.spec.id.clone()));
        found.push(task);
    }
    Ok(found)
}

/// The goal about which an event makes earlier answers obsolete: rolling back or rewording a goal asks for new answers.
fn outdates<'a>(event: &'a Event, entry: &VersionRecord, by: &Actor) -> Option<&'a TaskId> {
    if let Event::TaskRolledBack { task, .. } = event {
        return Some(task);
    }
    if let Event::TaskRevised { task } = event {
        return (entry.actor != *by).then_some(&task.id);
    }
    None
}
