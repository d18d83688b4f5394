//! Versions that this process has read or written, kept for followers of their plan: a run that shares a plan with
//! others need not read from the store what its own write has just returned.

use std::collections::VecDeque;

use crate::rows::VersionRecord;

/// Maximum number of events kept for one plan. Followers that need more read them from the store.
const EVENTS_KEPT_MAX: usize = 50_000;

/// The latest versions of a plan without gaps, since a follower first asked for them.
#[derive(Default)]
pub(super) struct RecentVersions {
    entries: VecDeque<VersionRecord>,
    events: usize,
}

impl RecentVersions {
    /// Keeps a version; a gap discards the earlier ones. Returns `false` when the limit is exceeded.
    pub(super) fn keep(&mut self, entry: VersionRecord) -> bool {
        if self.entries.back().is_some_and(|last| last.version + 1 != entry.version) {
            self.entries.clear();
            self.events = 0;
        }
        self.events += entry.events.len();
        self.entries.push_back(entry);
        self.events <= EVENTS_KEPT_MAX
    }

    /// Removes and returns all versions after `known`, if they reach `version` without a gap.
    pub(super) fn take(&mut self, known: u64, version: u64) -> Option<Vec<VersionRecord>> {
        self.events = 0;
        let mut entries = std::mem::take(&mut self.entries);
        while entries.front().is_some_and(|first| first.version <= known) {
            entries.pop_front();
        }
        let (first, last) = (entries.front()?.version, entries.back()?.version);
        (first == known + 1 && last >= version).then(|| entries.into())
    }
}

/// Keeps a version if the plan has a follower.
pub(super) fn keep(kept: &mut Option<RecentVersions>, entry: impl FnOnce() -> VersionRecord) {
    if let Some(asked) = kept
        && !asked.keep(entry())
    {
        *kept = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use waypost_core::{Actor, Command, Draft, PlanId, Position, TaskId, TaskSpec};

    use super::*;
    use crate::{MemoryStore, NewPlan, PlanStore, Store, WriteRequest};

    fn add(plans: &PlanStore, id: &PlanId, name: &str) -> u64 {
        let task = TaskSpec::new(TaskId::new(name).unwrap(), "");
        let command = Command::AddTasks { tasks: vec![task], place: Position::Last };
        let by = Actor::worker(name);
        let (plan, commands) = (id.clone(), vec![command]);
        let request = WriteRequest { plan, by, commands, known_version: None, lease_seconds: None };
        plans.write_partial(request, None).unwrap().version
    }

    fn versions(entries: &[VersionRecord]) -> Vec<(u64, &str)> {
        entries.iter().map(|entry| (entry.version, entry.actor.name.as_str())).collect()
    }

    #[test]
    fn what_others_wrote_before_a_write_is_at_hand_after_it() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (ours, theirs) = (PlanStore::new(Arc::clone(&store)), PlanStore::new(store));
        let new =
            NewPlan { id: None, by: Actor::person("ada"), draft: Draft::new("p"), approval_required: None };
        let id = ours.create(new).unwrap().plan;
        add(&theirs, &id, "a");
        // The first time no versions were kept, so they are read.
        assert!(ours.cached_versions(&id, 1, 2).is_none());
        assert_eq!(versions(&ours.versions_since(&id, 1, 10).unwrap()), [(2, "a")]);
        add(&theirs, &id, "b");
        add(&theirs, &id, "c");
        let version = add(&ours, &id, "d");
        let at_hand = ours.cached_versions(&id, 2, version).unwrap();
        assert_eq!(versions(&at_hand), [(3, "b"), (4, "c"), (5, "d")]);
        // Kept versions are returned once; the next caller reads them from the store.
        assert!(ours.cached_versions(&id, 2, version).is_none());
        assert_eq!(ours.versions_since(&id, 2, 10).unwrap(), at_hand);
        assert_eq!(ours.versions_since(&id, version, 10).unwrap(), []);
    }

    #[test]
    fn what_is_too_much_is_not_kept() {
        let mut kept = RecentVersions::default();
        let entry = |version: u64, events: usize| VersionRecord {
            sequence: version,
            plan: PlanId::new("p").unwrap(),
            version,
            at: waypost_core::Timestamp::from_micros(0),
            actor: Actor::worker("w"),
            command: String::new(),
            events: vec![waypost_core::Event::PlanActivated {}; events],
        };
        assert!(kept.keep(entry(1, EVENTS_KEPT_MAX)));
        assert!(!kept.keep(entry(2, 1)), "one past the bound");
        // A gap makes the versions before it useless.
        let mut kept = RecentVersions::default();
        assert!(kept.keep(entry(1, 1)) && kept.keep(entry(3, 1)));
        assert!(kept.take(0, 3).is_none());
    }
}
