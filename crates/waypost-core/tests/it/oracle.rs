//! A slow reference implementation of readiness and cascades, computed from a draft alone, to check the plan's
//! incremental counts against.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{Dependency, DependencyRule, Draft, Status, Task};

/// The resolution of a task by its own dependencies and those of its parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Some dependency has not finished.
    Waits,
    /// Nothing blocks it.
    Free,
    /// Its author, or the author of an enclosing group, skips it.
    PassedOver,
    /// It has become impossible, for one of these causes.
    Doomed(BTreeSet<String>),
}

pub(crate) struct Oracle<'a> {
    tasks: BTreeMap<&'a str, &'a Task>,
    parents: BTreeSet<&'a str>,
}

impl<'a> Oracle<'a> {
    pub(crate) fn of(draft: &'a Draft) -> Self {
        Self {
            tasks: draft.tasks.iter().map(|task| (task.spec.id.as_str(), task)).collect(),
            parents: draft
                .tasks
                .iter()
                .filter_map(|task| task.spec.parent.as_ref())
                .map(|id| id.as_str())
                .collect(),
        }
    }

    pub(crate) fn is_parent(&self, task: &Task) -> bool {
        self.parents.contains(task.spec.id.as_str())
    }

    /// Returns the ancestors of a task, outermost first, followed by the task itself.
    fn line(&self, task: &'a Task) -> Vec<&'a Task> {
        let mut line = vec![task];
        while let Some(parent) = &line[line.len() - 1].spec.parent {
            line.push(self.tasks[parent.as_str()]);
        }
        line.reverse();
        line
    }

    fn own_fate(&self, task: &Task) -> Fate {
        // Each dependency: unfinished, or finished with the ids to blame (none if it is satisfied).
        let mut ends: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
        for dependency in &task.spec.depends_on {
            let end = match dependency {
                Dependency::Task(on) => {
                    let on = self.tasks[on.as_str()];
                    let blame = on.state.because_of.as_ref().unwrap_or(&on.spec.id).to_string();
                    match on.state.status {
                        Status::Pending | Status::Running => None,
                        Status::Done => Some(BTreeSet::new()),
                        Status::Skipped if on.state.because_of.is_none() => Some(BTreeSet::new()),
                        Status::Failed | Status::Cancelled | Status::Skipped => Some(BTreeSet::from([blame])),
                    }
                }
                Dependency::External(there) => {
                    let received = task.state.received.get(&there.key());
                    received.filter(|received| received.status.is_finished()).map(|received| {
                        match received.status {
                            Status::Done => BTreeSet::new(),
                            _ => BTreeSet::from([there.key()]),
                        }
                    })
                }
            };
            ends.insert(dependency.to_string(), end);
        }
        let blames: BTreeSet<String> = ends.values().flatten().flatten().cloned().collect();
        let open = ends.values().filter(|end| end.is_none()).count();
        let good = ends.values().filter(|end| end.as_ref().is_some_and(BTreeSet::is_empty)).count();
        match task.spec.when {
            DependencyRule::AllDone if !blames.is_empty() => Fate::Doomed(blames),
            DependencyRule::AnyDone if open == 0 && good == 0 && !ends.is_empty() => Fate::Doomed(blames),
            DependencyRule::AnyDone if ends.is_empty() || good > 0 => Fate::Free,
            DependencyRule::AllDone | DependencyRule::AllFinished if open == 0 => Fate::Free,
            DependencyRule::AllDone | DependencyRule::AllFinished | DependencyRule::AnyDone => Fate::Waits,
        }
    }

    /// Returns the resolution of a task without children that has not begun.
    pub(crate) fn fate(&self, task: &'a Task) -> Fate {
        let mut waits = false;
        for member in self.line(task) {
            match self.own_fate(member) {
                Fate::Doomed(blames) => return Fate::Doomed(blames),
                Fate::Free if member.spec.skip && !waits => return Fate::PassedOver,
                Fate::Free | Fate::PassedOver => waits |= member.spec.skip || member.state.held().is_some(),
                Fate::Waits => waits = true,
            }
        }
        if waits { Fate::Waits } else { Fate::Free }
    }

    /// Returns the ids of all tasks that are ready to start.
    pub(crate) fn ready(&self) -> BTreeSet<String> {
        let leaves = self.tasks.values().filter(|task| !self.is_parent(task));
        let pending =
            leaves.filter(|task| task.state.status == Status::Pending && task.state.question().is_none());
        pending.filter(|task| self.fate(task) == Fate::Free).map(|task| task.spec.id.to_string()).collect()
    }

    pub(crate) fn children(&self, parent: &Task) -> Vec<&'a Task> {
        self.tasks
            .values()
            .filter(|task| task.spec.parent.as_ref() == Some(&parent.spec.id))
            .copied()
            .collect()
    }

    /// Returns how a group must have ended if all its children have; `None` while one has not.
    pub(crate) fn end(&self, parent: &Task) -> Option<Status> {
        let children = self.children(parent);
        if children.iter().any(|child| !child.state.status.is_finished()) {
            return None;
        }
        let has = |wanted: Status| children.iter().any(|child| child.state.status == wanted);
        let cascaded = children.iter().any(|child| child.state.because_of.is_some());
        Some(if has(Status::Failed) {
            Status::Failed
        } else if has(Status::Cancelled) {
            Status::Cancelled
        } else if cascaded {
            Status::Skipped
        } else if has(Status::Done) {
            Status::Done
        } else {
            Status::Skipped
        })
    }
}
