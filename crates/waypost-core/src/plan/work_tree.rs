//! Hashes of tasks in buckets, with one root over all. Knows a plan only by [`HashedTasks`].

use std::collections::{BTreeMap, BTreeSet};

use super::slot::NONE;
use crate::canonical::{CanonicalHasher, Hash, sha256};

/// The tasks of a plan, by their numbers.
pub(super) trait HashedTasks {
    /// The number of tasks that the plan has had.
    fn count(&self) -> usize;
    /// The number of tasks in the plan.
    fn alive(&self) -> usize;
    /// Whether the task is still in the plan.
    fn is_alive(&self, number: u32) -> bool;
    /// The number of its parent, or [`NONE`].
    fn parent(&self, number: u32) -> u32;
    fn id(&self, number: u32) -> &str;
    /// Hashes a task that has work or a check; `None` for others.
    fn hash_of_work(&self, number: u32) -> Option<Hash>;
    fn hash(&self, number: u32) -> Hash;
    /// Hashes only what a task waits for.
    fn hash_of_order(&self, number: u32) -> Hash;
    /// Returns the tasks that are not work, that wait for work, and that work waits for.
    fn between_work(&self, is_work: &dyn Fn(u32) -> bool) -> BTreeSet<u32>;
}

const BUCKETS: u16 = 1024;

/// The hash tree of a plan's tasks.
#[derive(Clone, Debug)]
pub(super) struct WorkTree {
    /// By task number.
    entries: Vec<Entry>,
    /// Those that are not empty: a small plan has few.
    buckets: BTreeMap<u16, Bucket>,
    leaves: u64,
    /// The number of tasks that are hashed as work.
    works: usize,
    /// The tasks of which only the order is hashed.
    between: BTreeSet<u32>,
    pub(super) root: Hash,
    /// Tasks that changed since the root was computed.
    pub(super) touched: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    parent: u32,
    /// The number of tasks with work or a check among this one and its descendants.
    machine_tasks: u32,
    has_work: bool,
    /// Whether it is hashed as work.
    is_work: bool,
    leaf: Option<Hash>,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    tasks: BTreeSet<u32>,
    hash: Hash,
}

impl WorkTree {
    pub(super) fn new(tasks: Vec<u32>) -> Self {
        Self {
            entries: Vec::new(),
            buckets: BTreeMap::new(),
            leaves: 0,
            works: 0,
            between: BTreeSet::new(),
            root: Hash::default(),
            touched: tasks,
        }
    }

    pub(super) fn refresh(&mut self, tasks: &impl HashedTasks) {
        let touched: BTreeSet<u32> = std::mem::take(&mut self.touched).into_iter().collect();
        if touched.is_empty() && self.root != Hash::default() {
            return;
        }
        let blank = Entry { parent: NONE, machine_tasks: 0, has_work: false, is_work: false, leaf: None };
        self.entries.resize(tasks.count(), blank);
        // First all are removed, then all are added: in between, the recorded parents have no cycle.
        let mut changed = touched.clone();
        for &number in &touched {
            self.add_above(number, -i64::from(self.entries[number as usize].machine_tasks), &mut changed);
            self.entries[number as usize].parent = NONE;
        }
        // Each task is read once: it may have to be decoded.
        let mut hashed: BTreeMap<u32, Hash> = BTreeMap::new();
        for &number in &touched {
            let alive = tasks.is_alive(number);
            let hash = if alive { tasks.hash_of_work(number) } else { None };
            let has_work = hash.is_some();
            hashed.extend(hash.map(|hash| (number, hash)));
            let entry = &mut self.entries[number as usize];
            entry.machine_tasks = entry.machine_tasks + u32::from(has_work) - u32::from(entry.has_work);
            entry.has_work = has_work;
            entry.parent = if alive { tasks.parent(number) } else { NONE };
            let machine_tasks = i64::from(entry.machine_tasks);
            self.add_above(number, machine_tasks, &mut changed);
        }
        for &number in &changed {
            let entry = &mut self.entries[number as usize];
            let is_work = tasks.is_alive(number) && entry.machine_tasks > 0;
            self.works = self.works + usize::from(is_work) - usize::from(entry.is_work);
            entry.is_work = is_work;
        }
        // Most plans are for machines as a whole, or not at all.
        let between = match self.works == 0 || self.works == tasks.alive() {
            true => BTreeSet::new(),
            false => tasks.between_work(&|number| self.entries[number as usize].is_work),
        };
        changed.extend(self.between.symmetric_difference(&between));
        let mut stale = BTreeSet::new();
        for number in changed {
            let entry = &mut self.entries[number as usize];
            let is_order = between.contains(&number);
            let was = (entry.leaf.is_some(), self.between.contains(&number));
            let is_leaf = entry.is_work || is_order;
            if (is_leaf, is_order) == was && !touched.contains(&number) {
                continue;
            }
            let bucket = bucket_of(tasks.id(number));
            self.leaves = self.leaves + u64::from(is_leaf) - u64::from(entry.leaf.is_some());
            let hash = || match hashed.get(&number) {
                _ if is_order => tasks.hash_of_order(number),
                Some(hash) => *hash,
                None => tasks.hash(number),
            };
            entry.leaf = is_leaf.then(hash);
            let numbers = &mut self.buckets.entry(bucket).or_default().tasks;
            if is_leaf {
                numbers.insert(number);
            } else {
                numbers.remove(&number);
            }
            stale.insert(bucket);
        }
        self.between = between;
        for bucket in stale {
            let hash = self.hash_of_bucket(bucket);
            if let Some(found) = self.buckets.get_mut(&bucket) {
                found.hash = hash;
            }
        }
        self.buckets.retain(|_, bucket| !bucket.tasks.is_empty());
        let mut hasher = CanonicalHasher::new("tasks", 1);
        hasher.number(self.leaves);
        let empty = Hash::default();
        for number in 0..BUCKETS {
            hasher.hash(self.buckets.get(&number).map_or(&empty, |bucket| &bucket.hash));
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

    fn hash_of_bucket(&self, bucket: u16) -> Hash {
        let tasks = self.buckets.get(&bucket).map(|bucket| &bucket.tasks);
        let mut leaves: Vec<Hash> =
            tasks.into_iter().flatten().filter_map(|&number| self.entries[number as usize].leaf).collect();
        if leaves.is_empty() {
            return Hash::default();
        }
        leaves.sort_unstable();
        let mut hasher = CanonicalHasher::new("bucket", 1);
        hasher.list(leaves.iter(), |hasher, leaf| hasher.hash(leaf));
        hasher.finish()
    }
}

fn bucket_of(id: &str) -> u16 {
    let hash = sha256(id.as_bytes());
    u16::from_be_bytes([hash[0], hash[1]]) >> 6
}
