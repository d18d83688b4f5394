//! The plans that a process works on, cached at a known version, and how they are loaded. Decides nothing.

use std::collections::HashMap;

use waypost_core::{ExternalTaskRef, Plan, PlanId, TaskId};

use super::recent_versions::{RecentVersions, keep};
use crate::error::{Result, StoreError};
use crate::rows::{LOST, Pruned, VersionRecord, Wait};
use crate::store::Read;

/// Maximum number of plans that a process caches.
pub(super) const PLANS_CACHED_MAX: usize = 64;
/// Maximum number of tasks of all cached plans; the plan that was used last is cached at any size.
const TASKS_CACHED_MAX: usize = 250_000;
/// Maximum number of versions that one read returns.
pub(super) const VERSIONS_READ_MAX: usize = 1_000;

/// Cached plans, each at the version that this process has seen.
#[derive(Default)]
pub(crate) struct Cache {
    pub(super) plans: HashMap<PlanId, Cached>,
    uses: u64,
}

pub(super) struct Cached {
    pub(super) plan: Plan,
    /// The use counter at its last use.
    pub(super) used: u64,
    /// How many versions were replayed to load it. After many, a snapshot is stored sooner.
    pub(super) replayed: u64,
    /// The consequences of its latest version for other plans.
    pub(super) news: Option<News>,
    /// Its versions since a caller that follows it last asked.
    pub(super) kept: Option<RecentVersions>,
}

/// The consequences of a version for tasks that wait for tasks of other plans.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Tasks whose outcome changed.
    pub(crate) outcomes: Vec<TaskId>,
    /// Whether the plan as a whole changed for others, so that all waits have to be checked.
    pub(crate) whole: bool,
    /// Tasks that now wait for a task of another plan.
    pub(crate) waits: Vec<(TaskId, Vec<ExternalTaskRef>)>,
    /// Set when the plan was purged.
    pub(crate) purged: Option<Purged>,
    /// The agent that owned the plan before, if it was handed over.
    pub(crate) former_owner: Option<String>,
}

/// The tasks that waited for a purged plan.
#[derive(Debug)]
pub(crate) struct Purged {
    /// The waits for its tasks.
    pub(crate) waits: Vec<Wait>,
    /// The tasks it contained, among those waited for.
    pub(crate) tasks: Vec<TaskId>,
}

impl Cache {
    pub(crate) fn get(&self, plan: &PlanId) -> Option<&Plan> {
        self.plans.get(plan).map(|cached| &cached.plan)
    }

    /// Returns the recent versions of a plan, and keeps further ones from now on.
    pub(super) fn take_kept(&mut self, id: &PlanId, known: u64, version: u64) -> Option<Vec<VersionRecord>> {
        self.plans.get_mut(id)?.kept.get_or_insert_default().take(known, version)
    }

    pub(crate) fn take_news(&mut self, plan: &PlanId) -> Option<News> {
        self.plans.get_mut(plan)?.news.take()
    }

    pub(super) fn put(&mut self, plan: Plan, replayed: u64) {
        self.uses += 1;
        self.plans
            .insert(plan.id().clone(), Cached { plan, used: self.uses, replayed, news: None, kept: None });
        if self.plans.len() > PLANS_CACHED_MAX {
            let oldest = self.plans.iter().min_by_key(|(_, cached)| cached.used).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.plans.remove(&oldest);
            }
        }
    }

    /// Removes the plans that were not used for longest while all have too many tasks. Not inside a transaction, which may
    /// still need them.
    pub(super) fn make_room(&mut self) {
        let mut tasks: usize = self.plans.values().map(|cached| cached.plan.len()).sum();
        while self.plans.len() > 1 && tasks > TASKS_CACHED_MAX {
            let oldest = self.plans.iter().min_by_key(|(_, cached)| cached.used).map(|(id, _)| id.clone());
            let Some(removed) = oldest.and_then(|oldest| self.plans.remove(&oldest)) else { return };
            tasks -= removed.plan.len();
        }
    }
}

/// Brings a cached plan to the stored version, or loads it.
pub(crate) fn catch_up(read: &mut dyn Read, cache: &mut Cache, id: &PlanId, version: u64) -> Result<()> {
    cache.uses += 1;
    let uses = cache.uses;
    if let Some(cached) = cache.plans.get_mut(id).filter(|cached| cached.plan.version() <= version) {
        cached.used = uses;
        let Cached { plan, kept, .. } = cached;
        let caught_up = replay_each(read, plan, version, |entry| keep(kept, || entry));
        cached.plan.take_touched();
        match caught_up {
            Ok(()) => return Ok(()),
            Err(error) => {
                cache.plans.remove(id);
                // Events that were pruned meanwhile are not needed: the state that they led to was kept.
                if !matches!(error, StoreError::Pruned { .. }) {
                    return Err(error);
                }
            }
        }
    }
    let (plan, replayed) = load_counting(read, id, version)?;
    cache.put(plan, replayed);
    Ok(())
}

/// Loads a plan as it was at `version`: from the latest readable snapshot, then version by version.
pub(crate) fn load(read: &mut dyn Read, id: &PlanId, version: u64) -> Result<Plan> {
    load_counting(read, id, version).map(|(plan, _)| plan)
}

/// Loads a plan, and also returns how many versions were replayed.
fn load_counting(read: &mut dyn Read, id: &PlanId, version: u64) -> Result<(Plan, u64)> {
    let mut at_most = version;
    let mut plan = loop {
        match read.snapshot(id, at_most)? {
            None => break Plan::blank(id.clone()),
            Some((at, bytes)) => match Plan::from_snapshot(bytes) {
                Ok(plan) if plan.version() == at && plan.id() == id => break plan,
                // A snapshot is only a shortcut: an unreadable one is ignored, and the events yield the same state.
                Ok(_) | Err(_) if at > 1 => at_most = at - 1,
                Ok(_) | Err(_) => break Plan::blank(id.clone()),
            },
        }
    };
    if plan.version() == 0
        && let Some(pruned) = read.pruned(id)?
        && version >= pruned.from
    {
        let (lost, Pruned { from, up_to, at, .. }) = (pruned.lost_versions(), pruned);
        if version < up_to {
            let up_to = if lost.is_empty() { up_to } else { up_to - 1 };
            return Err(StoreError::Pruned { plan: id.clone(), from, up_to, at, lost });
        }
        let what = format!("what is kept of plan {id} in the place of versions 1 to {up_to}");
        return Err(StoreError::Corrupt { what, detail: "it cannot be read".to_owned() });
    }
    let replayed = version.saturating_sub(plan.version());
    replay(read, &mut plan, version)?;
    plan.take_touched();
    Ok((plan, replayed))
}

/// Brings a plan to a later version.
pub(crate) fn replay(read: &mut dyn Read, plan: &mut Plan, version: u64) -> Result<()> {
    replay_each(read, plan, version, drop)
}

/// Brings a plan to a later version and passes each version to `each`.
fn replay_each(
    read: &mut dyn Read,
    plan: &mut Plan,
    version: u64,
    mut each: impl FnMut(VersionRecord),
) -> Result<()> {
    while plan.version() < version {
        let missing = usize::try_from(version - plan.version()).unwrap_or(usize::MAX);
        let entries = read.versions(plan.id(), plan.version(), missing.min(VERSIONS_READ_MAX))?;
        let begun = plan.version();
        for entry in entries {
            if entry.version != plan.version() + 1 {
                break;
            }
            if entry.is_forgotten() {
                let VersionRecord { plan, version: gone, at, command, .. } = entry;
                return Err(match command.as_str() {
                    LOST => {
                        StoreError::Pruned { plan, from: gone, up_to: version, at, lost: vec![(gone, gone)] }
                    }
                    _ => StoreError::Pruned { plan, from: 1, up_to: gone, at, lost: Vec::new() },
                });
            }
            plan.advance(&entry.events, entry.at);
            each(entry);
        }
        if plan.version() == begun {
            return Err(StoreError::Corrupt {
                what: format!("the history of plan {}", plan.id()),
                detail: format!("version {} is missing", plan.version() + 1),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use waypost_core::{Draft, Task, TaskSpec};

    use super::*;

    #[test]
    fn cached_plans_have_room_for_so_many_tasks() {
        let mut cache = Cache::default();
        let plan = |name: &str, tasks: usize| {
            let mut draft = Draft::new(name);
            draft.tasks = (0..tasks)
                .map(|number| Task::new(TaskSpec::new(TaskId::new(format!("t{number}")).unwrap(), "")))
                .collect();
            Plan::from_trusted_draft(PlanId::new(name).unwrap(), draft)
        };
        for (name, tasks) in [("a", TASKS_CACHED_MAX / 2), ("b", TASKS_CACHED_MAX / 2)] {
            cache.put(plan(name, tasks), 0);
        }
        cache.make_room();
        assert_eq!(cache.plans.len(), 2, "at the bound");
        cache.put(plan("c", 1), 0);
        cache.make_room();
        let mut left: Vec<&str> = cache.plans.keys().map(PlanId::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["b", "c"], "one past it");
        cache.put(plan("d", TASKS_CACHED_MAX + 1), 0);
        cache.make_room();
        assert_eq!(cache.plans.len(), 1, "the last one is kept at any size");
    }
}
