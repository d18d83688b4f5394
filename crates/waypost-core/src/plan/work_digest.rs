//! The digest of everything that machines would do for a plan, and in which order: the object of an approval.
//!
//! It covers nothing that changes while the plan runs. It also leaves out tasks that no machine works on or reads:
//! people may edit their own items without another approval. The task hashes are grouped in buckets, so that one edit
//! hashes one task, one bucket and the list of buckets, whatever the size of the plan. They are computed when the
//! digest is first requested, and never stored: anyone who can write the store could write them too.

use std::collections::BTreeSet;

use super::Plan;
use super::slot::NONE;
use super::snapshot::task_codec;
use crate::canonical::{CanonicalHasher, Hash, sha256};
use crate::{Dependency, DependencyRule, Lock, LockMode, Retry, TaskSpec, Work};

const BUCKETS: usize = 1024;

/// The hash tree of a plan's tasks.
#[derive(Clone, Debug)]
pub(super) struct WorkTree {
    /// By task number.
    entries: Vec<Entry>,
    buckets: Vec<Bucket>,
    leaves: u64,
    root: Hash,
    /// Tasks that changed since the root was computed.
    touched: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    parent: u32,
    /// The number of tasks with work or a check among this one and its descendants.
    machine_tasks: u32,
    has_work: bool,
    leaf: Option<Hash>,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    tasks: BTreeSet<u32>,
    hash: Hash,
}

impl Plan {
    /// Returns the digest of everything that machines would do.
    pub fn work_digest(&self) -> Hash {
        let tree = self.work_tree.get_or_init(|| {
            let mut tree = Box::new(WorkTree::new());
            tree.touched = self.order();
            tree.refresh(self);
            tree
        });
        let mut hasher = CanonicalHasher::new("waypost/work/1");
        hasher.text(self.id.as_str()).text(&self.spec.title).text(&self.spec.goal).text(&self.spec.queue);
        hasher.hash(&tree.root);
        hasher.finish()
    }

    /// Records that the author's part of a task, or its place, changed.
    pub(super) fn touch_work(&mut self, number: u32) {
        if let Some(tree) = self.work_tree.get_mut() {
            tree.touched.push(number);
        }
    }

    /// Rehashes what changed, if the digest has been requested.
    pub(super) fn refresh_work(&mut self) {
        if let Some(mut tree) = self.work_tree.take() {
            tree.refresh(self);
            let _ = self.work_tree.set(tree);
        }
    }

    fn hash_of_task(&self, number: u32) -> Hash {
        let slot = self.slot(number);
        match slot.task.get() {
            Some(task) => hash_of_task(&task.spec),
            // Decoded and dropped: a plan of 100,000 tasks takes no more memory than before.
            None => hash_of_task(&task_codec::task(&self.bytes, slot.bytes, self.id_of(number)).spec),
        }
    }

    fn task_has_work(&self, number: u32) -> bool {
        let slot = self.slot(number);
        let has_work = |spec: &TaskSpec| spec.work.is_some() || spec.check.is_some();
        match slot.task.get() {
            Some(task) => has_work(&task.spec),
            None => has_work(&task_codec::task(&self.bytes, slot.bytes, self.id_of(number)).spec),
        }
    }
}

impl WorkTree {
    fn new() -> Self {
        Self {
            entries: Vec::new(),
            buckets: vec![Bucket::default(); BUCKETS],
            leaves: 0,
            root: Hash::default(),
            touched: Vec::new(),
        }
    }

    fn refresh(&mut self, plan: &Plan) {
        let touched: BTreeSet<u32> = std::mem::take(&mut self.touched).into_iter().collect();
        if touched.is_empty() && self.leaves > 0 {
            return;
        }
        let blank = Entry { parent: NONE, machine_tasks: 0, has_work: false, leaf: None };
        self.entries.resize(plan.slots.len(), blank);
        // First all are removed, then all are added: in between, the recorded parents have no cycle.
        let mut changed = touched.clone();
        for &number in &touched {
            self.add_above(number, -i64::from(self.entries[number as usize].machine_tasks), &mut changed);
            self.entries[number as usize].parent = NONE;
        }
        for &number in &touched {
            let alive = plan.slot(number).alive;
            let has_work = alive && plan.task_has_work(number);
            let entry = &mut self.entries[number as usize];
            entry.machine_tasks = entry.machine_tasks + u32::from(has_work) - u32::from(entry.has_work);
            entry.has_work = has_work;
            entry.parent = if alive { plan.slot(number).parent } else { NONE };
            let machine_tasks = i64::from(entry.machine_tasks);
            self.add_above(number, machine_tasks, &mut changed);
        }
        let mut stale = BTreeSet::new();
        for number in changed {
            let entry = &mut self.entries[number as usize];
            let is_leaf = plan.slot(number).alive && entry.machine_tasks > 0;
            if is_leaf == entry.leaf.is_some() && !touched.contains(&number) {
                continue;
            }
            let bucket = bucket_of(plan.id_of(number));
            self.leaves = self.leaves + u64::from(is_leaf) - u64::from(entry.leaf.is_some());
            entry.leaf = is_leaf.then(|| plan.hash_of_task(number));
            if is_leaf {
                self.buckets[bucket].tasks.insert(number);
            } else {
                self.buckets[bucket].tasks.remove(&number);
            }
            stale.insert(bucket);
        }
        for &bucket in &stale {
            self.buckets[bucket].hash = self.hash_of_bucket(bucket);
        }
        let mut hasher = CanonicalHasher::new("waypost/tasks/1");
        hasher.number(self.leaves);
        for bucket in &self.buckets {
            hasher.hash(&bucket.hash);
        }
        self.root = hasher.finish();
    }

    /// Adds `machine_tasks` to the count of every ancestor of a task.
    fn add_above(&mut self, number: u32, machine_tasks: i64, changed: &mut BTreeSet<u32>) {
        let mut above = self.entries[number as usize].parent;
        while above != NONE && machine_tasks != 0 {
            let entry = &mut self.entries[above as usize];
            entry.machine_tasks = (i64::from(entry.machine_tasks) + machine_tasks) as u32;
            changed.insert(above);
            above = entry.parent;
        }
    }

    fn hash_of_bucket(&self, bucket: usize) -> Hash {
        let tasks = &self.buckets[bucket].tasks;
        let mut leaves: Vec<Hash> =
            tasks.iter().filter_map(|&number| self.entries[number as usize].leaf).collect();
        if leaves.is_empty() {
            return Hash::default();
        }
        leaves.sort_unstable();
        let mut hasher = CanonicalHasher::new("waypost/bucket/1");
        hasher.list(leaves.iter(), |hasher, leaf| hasher.hash(leaf));
        hasher.finish()
    }
}

fn bucket_of(id: &str) -> usize {
    let hash = sha256(id.as_bytes());
    usize::from(u16::from_be_bytes([hash[0], hash[1]]) >> 6)
}

/// Hashes what machines would do for one task. Each field is either hashed or named as left out: a new field needs a
/// decision.
pub(super) fn hash_of_task(spec: &TaskSpec) -> Hash {
    let TaskSpec {
        id,
        description,
        parent,
        depends_on,
        when,
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
    let mut hasher = CanonicalHasher::new("waypost/task/1");
    hasher.text(id.as_str());
    hasher.optional(parent.as_ref(), |hasher, parent| hasher.text(parent.as_str()));
    let depends_on: BTreeSet<[&str; 3]> = depends_on.iter().map(parts_of_dependency).collect();
    hasher.list(depends_on.iter(), |hasher, [agent, plan, task]| hasher.text(agent).text(plan).text(task));
    hasher.text(match when {
        DependencyRule::AllDone => "all_done",
        DependencyRule::AllFinished => "all_finished",
        DependencyRule::AnyDone => "any_done",
    });
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
