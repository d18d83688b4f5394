//! The digest of everything that machines would do for a plan, and in which order: the object of an approval.
//!
//! It covers nothing that changes while the plan runs. It also leaves out tasks that no machine works on or reads:
//! people may edit their own items without another approval. Of those that stand between machine tasks, it covers what they
//! wait for: without it, a task could be taken out from behind another one. The task hashes are grouped in buckets, so that one edit
//! hashes one task, one bucket and the list of buckets, whatever the size of the plan. They are computed when the
//! digest is first requested, and never stored: anyone who can write the store could write them too.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use waypost_text::hex;

use super::Plan;
use super::snapshot::task_codec;
use super::work_tree::{HashedTasks, WorkTree};
use crate::canonical::{CanonicalHasher, Hash};
use crate::{Dependency, DependencyRule, Lock, LockMode, Retry, TaskSpec, Work};

impl Plan {
    /// Returns the digest of everything that machines would do.
    pub fn work_digest(&self) -> Hash {
        *self.work_digest.get_or_init(|| {
            let tree = self.work_tree.get_or_init(|| {
                let mut tree = WorkTree::new(self.order());
                tree.refresh(self);
                Arc::new(tree)
            });
            let mut hasher = CanonicalHasher::new("work", 1);
            hasher.text(self.id.as_str()).text(&self.spec.title).text(&self.spec.goal).text(&self.spec.queue);
            hasher.hash(&tree.root);
            hasher.finish()
        })
    }

    pub(super) fn work_digest_text(&self) -> String {
        hex(&self.work_digest())
    }

    /// Forgets that a person rejected the work as it is now.
    pub(super) fn forget_rejection(&mut self) {
        if !self.state.rejections.is_empty() {
            let now = self.work_digest_text();
            self.state.rejections.retain(|rejection| rejection.work != now);
        }
    }

    /// Records that the author's part of a task, or its place, changed.
    pub(super) fn touch_work(&mut self, number: u32) {
        if let Some(tree) = self.work_tree.get_mut() {
            Arc::make_mut(tree).touched.push(number);
        }
    }

    /// Rehashes what changed, if the digest has been requested. The end of a version does it; whoever needs the digest
    /// earlier asks for it.
    pub fn refresh_work(&mut self) {
        if self.work_tree.get().is_some_and(|tree| !tree.touched.is_empty())
            && let Some(mut tree) = self.work_tree.take()
        {
            Arc::make_mut(&mut tree).refresh(self);
            let _ = self.work_tree.set(tree);
            self.work_digest = OnceLock::new();
        }
    }

    /// Visits the author's part of all tasks, parents before their children, without keeping what it decodes.
    pub fn for_each_spec(&self, mut visit: impl FnMut(&TaskSpec)) {
        for number in self.order() {
            self.with_spec(number, &mut visit);
        }
    }

    /// Reads a task without keeping it: a plan of 100,000 tasks does not grow in memory.
    pub(super) fn with_spec<R>(&self, number: u32, read: impl FnOnce(&TaskSpec) -> R) -> R {
        let slot = self.slot(number);
        match slot.task.get() {
            Some(task) => read(&task.spec),
            None => read(&task_codec::task(self.bytes_of(slot), self.id_of(number)).spec),
        }
    }
}

impl HashedTasks for Plan {
    fn count(&self) -> usize {
        self.slots.len()
    }

    fn alive(&self) -> usize {
        self.len()
    }

    fn is_alive(&self, number: u32) -> bool {
        self.slot(number).alive
    }

    fn parent(&self, number: u32) -> u32 {
        self.slot(number).parent
    }

    fn id(&self, number: u32) -> &str {
        self.id_of(number)
    }

    fn hash_of_work(&self, number: u32) -> Option<Hash> {
        let has_work = |spec: &TaskSpec| spec.work.is_some() || spec.check.is_some();
        self.with_spec(number, |spec| has_work(spec).then(|| hash_of_task(spec)))
    }

    fn hash(&self, number: u32) -> Hash {
        self.with_spec(number, hash_of_task)
    }

    fn hash_of_order(&self, number: u32) -> Hash {
        self.with_spec(number, hash_of_order)
    }

    fn between_work(&self, is_work: &dyn Fn(u32) -> bool) -> BTreeSet<u32> {
        Plan::between_work(self, is_work)
    }
}

/// Hashes what a task without work waits for.
fn hash_of_order(spec: &TaskSpec) -> Hash {
    let mut hasher = CanonicalHasher::new("order", 1);
    hasher.text(spec.id.as_str());
    hash_waits(&mut hasher, spec);
    hasher.finish()
}

/// Adds what a task waits for.
fn hash_waits(hasher: &mut CanonicalHasher, spec: &TaskSpec) {
    hasher.optional(spec.parent.as_ref(), |hasher, parent| hasher.text(parent.as_str()));
    let depends_on: BTreeSet<[&str; 3]> = spec.depends_on.iter().map(parts_of_dependency).collect();
    hasher.list(depends_on.iter(), |hasher, [agent, plan, task]| hasher.text(agent).text(plan).text(task));
    hasher.text(match spec.when {
        DependencyRule::AllDone => "all_done",
        DependencyRule::AllFinished => "all_finished",
        DependencyRule::AnyDone => "any_done",
    });
}

/// Hashes what machines would do for one task. Each field is either hashed or named as left out: a new field needs a
/// decision.
pub(super) fn hash_of_task(spec: &TaskSpec) -> Hash {
    let TaskSpec {
        id,
        description,
        parent: _,
        depends_on: _,
        when: _,
        complexity,
        notes,
        tools,
        skip,
        locks,
        work,
        check,
        retry,
        timeout_seconds,
        priority: _,
        provides,
        thinking: _,
        foreign: _,
    } = spec;
    let mut hasher = CanonicalHasher::new("task", 1);
    hasher.text(id.as_str());
    hash_waits(&mut hasher, spec);
    hasher.flag(*skip);
    let locks: BTreeSet<(&str, bool)> =
        locks.iter().map(|Lock { key, mode }| (key.as_str(), *mode == LockMode::Shared)).collect();
    hasher.list(locks.iter(), |hasher, (key, shared)| hasher.text(key).flag(*shared));
    for work in [work, check] {
        hasher.optional(work.as_deref(), |hasher, Work { executor, inputs, shape }| {
            hasher.text(executor).text(inputs.as_str());
            hasher.optional(shape.as_deref(), |hasher, shape| hasher.text(shape))
        });
    }
    hasher.optional(retry.as_deref(), |hasher, Retry { attempts, backoff_seconds, backoff_seconds_max }| {
        let numbers = [attempts, backoff_seconds, backoff_seconds_max].map(|number| u64::from(*number));
        numbers.into_iter().fold(hasher, |hasher, number| hasher.number(number))
    });
    hasher.optional(*timeout_seconds, |hasher, seconds| hasher.number(u64::from(seconds)));
    hasher.optional(provides.as_deref(), |hasher, provides| hasher.text(provides));
    hasher.text(description).text(notes);
    hasher.optional(tools.as_ref(), |hasher, tools| {
        hasher.list(tools.iter(), |hasher, tool| hasher.text(tool))
    });
    hasher.optional(complexity.as_ref(), |hasher, complexity| hasher.text(complexity.as_str()));
    hasher.finish()
}

/// Returns agent, plan and task; empty where the dependency does not name them.
fn parts_of_dependency(dependency: &Dependency) -> [&str; 3] {
    match dependency {
        Dependency::Task(task) => ["", "", task.as_str()],
        Dependency::External(there) => [
            there.agent.as_deref().unwrap_or_default(),
            there.plan.as_ref().map_or("", |plan| plan.as_str()),
            there.task.as_str(),
        ],
    }
}
