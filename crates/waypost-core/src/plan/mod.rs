//! A validated plan: its tasks as dense numbers with their dependency graph, updated incrementally, so that one
//! completion costs its dependants and not the size of the plan.
//!
//! Invariants: ids are unique; the graph has no cycle; a task with children has no work; counts agree with statuses at
//! every moment; after every event `ready` holds exactly the pending tasks without children whose dependencies are
//! satisfied, whose parents may begin, and that have no open question.

mod changes;
mod decide;
mod derived_events;
mod evolve;
mod propagate;
mod queries;
mod slot;
mod snapshot;
mod task_index;
mod work_digest;
mod work_order;
mod work_tree;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

pub use changes::IndexDelta;
pub use derived_events::{DerivedEvent, event_kinds};
pub use queries::{BlockReason, Counts, EffectiveStatus};
pub use snapshot::SnapshotError;
pub use work_order::OpenBefore;

use self::changes::{ChangeLog, DirtySets, Propagation};
use self::slot::{NONE, Numbers, Slot, id_in};
use self::task_index::Index;
use self::work_tree::WorkTree;
use crate::canonical::Hash;
use crate::{Draft, FORMAT, PlanId, PlanSpec, PlanState, Refusal, Status, Task, TaskId, TaskSpec, nearest};

/// Places of encoded tasks are numbers of 32 bits: beyond this, tasks that end stay decoded until the next snapshot.
const PACKED_BYTES_MAX: usize = 1 << 30;

/// A validated plan.
#[derive(Clone, Debug)]
pub struct Plan {
    id: PlanId,
    version: u64,
    spec: PlanSpec,
    state: PlanState,
    slots: Vec<Slot>,
    /// The ids of all tasks that the plan has ever had, concatenated.
    ids: String,
    index: Index,
    /// The number of tasks in the plan.
    live: u32,
    /// The latest snapshot: tasks are decoded from it on demand, and the next snapshot is built from it.
    bytes: Arc<Vec<u8>>,
    /// Tasks that have ended since, encoded: most are not read again, and decoded they would take ten times the memory.
    /// The places of tasks go on here after `bytes`.
    packed: Vec<u8>,
    /// Tasks that ended with the latest version, to be encoded with the next one.
    ended: Vec<u32>,
    roots: Numbers,
    ready: BTreeSet<(Reverse<i32>, u32)>,
    /// Tasks without children, by status.
    counts: [u32; 6],
    /// Tasks held by a worker, including the queued ones.
    running: BTreeSet<u32>,
    /// Tasks that wait for a person's answer.
    asking: BTreeSet<u32>,
    /// Tasks about whose removal, order or place the last merge asks a person.
    removals_asked: Vec<TaskId>,
    /// The number of tasks that planning marked as atomic.
    atomic: u32,
    /// The number of tasks that their author skips.
    skips: u32,
    next_number: u64,
    dirty: DirtySets,
    /// The recorded changes, while [`Plan::advance_telling`] wants to know them.
    change_log: Option<Box<ChangeLog>>,
    /// Tasks to re-evaluate before the current event is complete.
    propagations: Vec<Propagation>,
    /// Whether the current event gave the plan something to do, so that it continues even if it had ended.
    opened: bool,
    /// Whether the current event delivered a result from another plan for lack of which this plan had ended by itself.
    revived: bool,
    /// Hashes of the tasks, once the digest has been requested. Copies of the plan share them until they change.
    work_tree: OnceLock<Arc<WorkTree>>,
    /// The digest over these hashes: a worker compares it at each step.
    work_digest: OnceLock<Hash>,
}

impl Plan {
    /// Creates a plan without any history: it accepts only the command to create it.
    pub fn blank(id: PlanId) -> Self {
        Self {
            id,
            version: 0,
            spec: PlanSpec::default(),
            state: PlanState::default(),
            slots: Vec::new(),
            ids: String::new(),
            index: Index::default(),
            live: 0,
            bytes: Arc::default(),
            packed: Vec::new(),
            ended: Vec::new(),
            roots: Numbers::new(),
            ready: BTreeSet::new(),
            counts: [0; 6],
            running: BTreeSet::new(),
            asking: BTreeSet::new(),
            removals_asked: Vec::new(),
            atomic: 0,
            skips: 0,
            next_number: 1,
            dirty: DirtySets::default(),
            change_log: None,
            propagations: Vec::new(),
            opened: false,
            revived: false,
            work_tree: OnceLock::new(),
            work_digest: OnceLock::new(),
        }
    }

    /// Returns the whole plan as a draft, tasks in order (parents before children).
    pub fn to_draft(&self) -> Draft {
        Draft {
            format: FORMAT.to_owned(),
            id: Some(self.id.clone()),
            version: self.version,
            spec: self.spec.clone(),
            state: self.state.clone(),
            tasks: self.order().into_iter().map(|number| self.at(number).clone()).collect(),
        }
    }

    /// Returns only the ids of the tasks with their parents and dependencies: enough to order them.
    pub fn outline(&self) -> Draft {
        let mut draft = Draft::new("");
        for (task, _) in self.tasks() {
            let mut spec = TaskSpec::new(task.spec.id.clone(), "");
            spec.parent.clone_from(&task.spec.parent);
            spec.depends_on.clone_from(&task.spec.depends_on);
            draft.tasks.push(Task::new(spec));
        }
        draft
    }

    /// Builds the plan that a trusted draft describes, including its execution state. Only for drafts that this crate
    /// wrote itself: everything else goes through [`crate::Command::Create`].
    pub fn from_trusted_draft(id: PlanId, draft: Draft) -> Self {
        let mut plan = Self::blank(id);
        plan.version = draft.version;
        plan.fill(draft.spec, draft.state, draft.tasks.into_iter());
        plan.dirty = DirtySets::default();
        plan
    }

    fn slot(&self, number: u32) -> &Slot {
        &self.slots[number as usize]
    }

    fn slot_mut(&mut self, number: u32) -> &mut Slot {
        &mut self.slots[number as usize]
    }

    /// Returns the task with this number, decoding it if needed.
    fn at(&self, number: u32) -> &Task {
        let slot = self.slot(number);
        slot.task
            .get_or_init(|| Box::new(snapshot::task_codec::task(self.bytes_of(slot), self.id_of(number))))
    }

    /// Returns a task as it was encoded last.
    fn bytes_of(&self, slot: &Slot) -> &[u8] {
        let (start, length) = (slot.bytes.0 as usize, slot.bytes.1 as usize);
        let (bytes, start) = match start.checked_sub(self.bytes.len()) {
            Some(start) => (&self.packed[..], start),
            None => (&self.bytes[..], start),
        };
        bytes.get(start..start + length).unwrap_or_default()
    }

    /// Encodes the tasks that ended with an earlier version.
    fn pack_ended(&mut self, just_ended: &[u32]) {
        let mut writer = snapshot::task_codec::Writer::default();
        for number in std::mem::replace(&mut self.ended, just_ended.to_vec()) {
            let start = self.bytes.len() + self.packed.len();
            let Some(slot) = self.slots.get_mut(number as usize) else { continue };
            if !slot.alive || !slot.status.is_finished() || start > PACKED_BYTES_MAX {
                continue;
            }
            if let Some(task) = slot.task.take().filter(|_| !slot.stored) {
                writer.put(&task, &mut self.packed);
                let length = self.bytes.len() + self.packed.len() - start;
                (slot.bytes, slot.stored) = ((start as u32, length as u32), true);
            }
        }
    }

    /// Changes a task; the only place where a task changes. Everything that the graph needs of it is mirrored at once,
    /// and so is every count that depends on it. Consequences wait until the end of the event.
    fn change<R>(&mut self, number: u32, change: impl FnOnce(&mut Task) -> R) -> R {
        self.at(number);
        let slot = &mut self.slots[number as usize];
        let Some(task) = slot.task.get_mut() else { unreachable!("it was read a moment ago") };
        let (status, satisfies, because_of) = (slot.status, slot.satisfies, task.state.because_of.clone());
        let result = change(task);
        let same_cause = because_of == task.state.because_of;
        slot.stored = false;
        let (asked, reported, was_atomic) = (slot.asking, slot.reported, slot.atomic);
        let (was_held, was_skip) = (slot.held, slot.skip);
        slot.mirror();
        self.skips = self.skips + u32::from(slot.skip) - u32::from(was_skip);
        self.atomic = self.atomic + u32::from(slot.atomic) - u32::from(was_atomic);
        if (reported != slot.reported || !same_cause) && slot.elsewhere > 0 {
            // It receives results from other plans again, or no longer. One that was skipped for others may come back.
            self.dirty.waits.push(number);
        }
        if was_held != slot.held {
            self.propagations.push(Propagation::Look(number));
        }
        if asked != slot.asking {
            if slot.asking {
                self.asking.insert(number)
            } else {
                self.asking.remove(&number)
            };
            if let Some(noted) = &mut self.change_log {
                noted.asking.push(number);
            }
            self.propagations.push(Propagation::Look(number));
        }
        if slot.status != status || slot.satisfies != satisfies || !same_cause {
            self.tell(number, status, satisfies);
        }
        result
    }

    fn id_of(&self, number: u32) -> &str {
        id_in(&self.ids, self.slot(number).id)
    }

    fn task_id(&self, number: u32) -> TaskId {
        match self.slot(number).task.get() {
            Some(task) => task.spec.id.clone(),
            None => TaskId::trusted(self.id_of(number)),
        }
    }

    fn number(&self, task: &TaskId) -> Result<u32, Refusal> {
        self.find(task.as_str()).ok_or_else(|| self.no_such_task(task.as_str()))
    }

    /// Returns the refusal for an unknown task id, with the nearest existing id.
    pub fn no_such_task(&self, name: &str) -> Refusal {
        Refusal::NoSuchTask { task: name.to_owned(), nearest: nearest(name, self.live_ids()) }
    }

    /// Returns the number of a task that is in the plan.
    fn find(&self, task: &str) -> Option<u32> {
        self.index.find(task, &self.slots, &self.ids)
    }

    /// Registers the id of a new slot and counts it.
    fn add_name(&mut self, number: u32) {
        self.index.add(number, &self.slots, &self.ids);
        if let Some(("t", digits)) = numbered(without_tag(self.id_of(number))) {
            self.next_number = self.next_number.max(digits.saturating_add(1));
        }
        self.live += 1;
    }

    /// Undoes [`Plan::add_name`] for a slot that is removed.
    fn remove_name(&mut self, number: u32) {
        self.index.remove(number, id_in(&self.ids, self.slots[number as usize].id));
        self.live -= 1;
    }

    fn name(&self, number: u32) -> String {
        self.id_of(number).to_owned()
    }

    fn live(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.alive)
    }

    fn live_ids(&self) -> impl Iterator<Item = &str> {
        self.live().map(|slot| id_in(&self.ids, slot.id))
    }

    /// Returns the numbers of all tasks, parents before their children, siblings in order.
    fn order(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.slots.len());
        let mut stack: Vec<u32> = self.roots.iter().rev().copied().collect();
        while let Some(number) = stack.pop() {
            order.push(number);
            stack.extend(self.slot(number).children.iter().rev());
        }
        order
    }

    /// Returns the numbers of a task and of all its descendants.
    fn family(&self, number: u32) -> Vec<u32> {
        let (mut family, mut at) = (vec![number], 0);
        while at < family.len() {
            family.extend(&self.slot(family[at]).children);
            at += 1;
        }
        family
    }

    fn siblings(&self, parent: u32) -> &Numbers {
        if parent == NONE { &self.roots } else { &self.slot(parent).children }
    }

    fn siblings_mut(&mut self, parent: u32) -> &mut Numbers {
        if parent == NONE { &mut self.roots } else { &mut self.slot_mut(parent).children }
    }

    /// Returns the changes since the last call.
    pub fn take_touched(&mut self) -> IndexDelta {
        let marks = std::mem::take(&mut self.dirty);
        self.pack_ended(&marks.finished);
        let mut touched = IndexDelta { waits_changed: marks.gone, ..IndexDelta::default() };
        let unique = |mut numbers: Vec<u32>| {
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        let name = |&number: &u32| self.task_id(number);
        let alive = |numbers: Vec<u32>| unique(numbers).into_iter().filter(|&number| self.slot(number).alive);
        touched.finished = alive(marks.finished)
            .filter(|&number| self.slot(number).status.is_finished())
            .map(|number| name(&number))
            .collect();
        // A task that was stopped and then removed has also left rows behind.
        touched.stopped = unique(marks.stopped)
            .into_iter()
            .filter(|&number| !self.slot(number).alive || self.slot(number).status != Status::Running)
            .map(|number| name(&number))
            .collect();
        touched.started = alive(marks.started)
            .filter(|&number| self.slot(number).status == Status::Running)
            .map(|number| (name(&number), self.at(number).state.attempt))
            .collect();
        touched.waits_changed.extend(alive(marks.waits).map(|number| name(&number)));
        touched.outcomes = unique(marks.outcomes).iter().map(name).collect();
        touched.whole = marks.whole;
        touched
    }

    /// Ids `t1`, `t2`, … that no task of this plan has had, removed tasks included.
    pub fn free_task_ids(&self) -> impl Iterator<Item = TaskId> {
        self.free_task_ids_of(None)
    }

    /// The same, with the tag of a clone behind the number, if there is one: `t1-k7f`. Clones that add tasks without
    /// knowing of each other so give them different ids.
    pub fn free_task_ids_of(&self, tag: Option<&str>) -> impl Iterator<Item = TaskId> {
        let end = tag.map(|tag| format!("-{tag}")).unwrap_or_default();
        // If the largest possible number is taken, the search starts again at 1.
        let numbers = (self.next_number..u64::MAX).chain(1..self.next_number);
        let ids = numbers.filter_map(move |number| TaskId::new(format!("t{number}{end}")).ok());
        ids.filter(|id| self.find(id.as_str()).is_none())
    }

    /// Ids of the prefix and a number that no task of this plan has had, removed tasks included. The number is above those of all
    /// tasks with this prefix, and above the number of tasks.
    pub fn free_numbered_ids<'a>(&self, prefix: &'a str) -> impl Iterator<Item = TaskId> + use<'a> {
        let number = |id: &str| numbered(id).filter(|(found, _)| *found == prefix).map(|(_, number)| number);
        let gone = self.state.numbers_gone.get(prefix).copied();
        let last = self.live_ids().filter_map(number).chain(gone).max().unwrap_or(0).max(self.live.into());
        (last.saturating_add(1)..).filter_map(move |number| TaskId::new(format!("{prefix}{number}")).ok())
    }

    fn spec_of(&self, number: u32) -> &TaskSpec {
        &self.at(number).spec
    }
}

/// The id without the tag of a clone behind it: `t12` of `t12-k7f`.
fn without_tag(id: &str) -> &str {
    match id.split_once('-') {
        Some((start, _)) if start.len() > 1 && start.starts_with('t') && numbered(start).is_some() => start,
        Some(_) | None => id,
    }
}

/// The text before the number at the end of an id, and the number.
fn numbered(id: &str) -> Option<(&str, u64)> {
    let (prefix, digits) = id.split_at(id.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    let number = digits.parse().ok().filter(|_| !digits.starts_with('0'))?;
    Some((prefix, number))
}
