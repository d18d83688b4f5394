//! A checked plan: its tasks as dense numbers with who waits for whom, kept up to date change by change, so that one
//! completion costs its dependants and not the size of the plan.
//!
//! Invariants: ids are unique; the graph has no cycle; a task with children has no work; counts agree with statuses at
//! every moment; after every event `ready` holds exactly the pending tasks without children whose dependencies are met,
//! whose parents may begin, and who ask nobody anything.

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

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

pub use changes::IndexDelta;
pub use derived_events::{DerivedEvent, event_kinds};
pub use queries::{BlockReason, Counts, EffectiveStatus};
pub use snapshot::SnapshotError;

use self::changes::{ChangeLog, DirtySets, Propagation};
use self::slot::{NONE, Numbers, Slot, id_in};
use self::task_index::Index;
use self::work_digest::WorkTree;
use crate::{Draft, FORMAT, PlanId, PlanSpec, PlanState, Refusal, Status, Task, TaskId, TaskSpec, nearest};

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    id: PlanId,
    version: u64,
    spec: PlanSpec,
    state: PlanState,
    slots: Vec<Slot>,
    /// Ids of all tasks that the plan has had, one behind the other.
    ids: String,
    index: Index,
    /// How many tasks there are.
    live: u32,
    /// The latest snapshot: tasks are read from it when they are asked for, and the next one is made from it.
    bytes: Arc<Vec<u8>>,
    roots: Numbers,
    ready: BTreeSet<(Reverse<i32>, u32)>,
    /// Tasks without children, by status.
    counts: [u32; 6],
    /// Tasks that somebody has, the queued ones included.
    running: BTreeSet<u32>,
    /// Tasks that wait for a person's answer.
    asking: BTreeSet<u32>,
    /// How many tasks were judged small enough to be done as they are.
    atomic: u32,
    next_number: u64,
    dirty: DirtySets,
    /// What has changed, while somebody wants to know ([`Plan::advance_telling`]).
    change_log: Option<Box<ChangeLog>>,
    /// Who has to be looked at before the event that is being worked in is over.
    propagations: Vec<Propagation>,
    /// Whether that event gave the plan something to do, so that it goes on even if it had ended.
    opened: bool,
    /// Whether it heard something from elsewhere for want of which it had ended by itself.
    revived: bool,
    /// Hashes of the tasks, once the digest has been asked for.
    work_tree: OnceLock<Box<WorkTree>>,
}

impl Plan {
    /// A plan to which nothing has happened: it takes only the command to create it.
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
            roots: Numbers::new(),
            ready: BTreeSet::new(),
            counts: [0; 6],
            running: BTreeSet::new(),
            asking: BTreeSet::new(),
            atomic: 0,
            next_number: 1,
            dirty: DirtySets::default(),
            change_log: None,
            propagations: Vec::new(),
            opened: false,
            revived: false,
            work_tree: OnceLock::new(),
        }
    }

    /// The whole plan as a draft, tasks in their order (parents before children).
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

    /// The names of its tasks with their parents and what they depend on, and nothing else: enough to order them.
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

    /// The plan that a trusted draft describes, whatever happened to it included. For what this crate wrote itself:
    /// everything else goes through [`crate::Command::Create`].
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

    /// The task with this number.
    fn at(&self, number: u32) -> &Task {
        let slot = self.slot(number);
        slot.task
            .get_or_init(|| Box::new(snapshot::task_codec::task(&self.bytes, slot.bytes, self.id_of(number))))
    }

    /// The only place where a task changes: what the graph needs of it is mirrored at once, and so is every count that
    /// depends on it. What follows from that waits until the end of the event.
    fn change<R>(&mut self, number: u32, change: impl FnOnce(&mut Task) -> R) -> R {
        self.at(number);
        let slot = &mut self.slots[number as usize];
        let Some(task) = slot.task.get_mut() else { unreachable!("it was read a moment ago") };
        let (status, satisfies, because_of) = (slot.status, slot.satisfies, task.state.because_of.clone());
        let result = change(task);
        let same_cause = because_of == task.state.because_of;
        slot.stored = false;
        let (asked, reported, was_atomic) = (slot.asking, slot.reported, slot.atomic);
        slot.mirror();
        self.atomic = self.atomic + u32::from(slot.atomic) - u32::from(was_atomic);
        if reported != slot.reported && slot.elsewhere > 0 {
            // It hears of others again, or no longer.
            self.dirty.waits.push(number);
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

    /// That no task is called so, with the nearest name.
    pub fn no_such_task(&self, name: &str) -> Refusal {
        Refusal::NoSuchTask { task: name.to_owned(), nearest: nearest(name, self.live_ids()) }
    }

    /// The number of a task that is in the plan.
    fn find(&self, task: &str) -> Option<u32> {
        self.index.find(task, &self.slots, &self.ids)
    }

    /// Counts a new slot and makes its id known.
    fn add_name(&mut self, number: u32) {
        self.index.add(number, &self.slots, &self.ids);
        if let Some(digits) = Self::number_of(self.id_of(number)) {
            self.next_number = self.next_number.max(digits.saturating_add(1));
        }
        self.live += 1;
    }

    /// Undoes [`Plan::add_name`] for a slot that is given up.
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

    /// Numbers of all tasks, parents before their children, siblings in their order.
    fn order(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.slots.len());
        let mut stack: Vec<u32> = self.roots.iter().rev().copied().collect();
        while let Some(number) = stack.pop() {
            order.push(number);
            stack.extend(self.slot(number).children.iter().rev());
        }
        order
    }

    /// The numbers of a task and of all below it.
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

    /// What changed since the last call.
    pub fn take_touched(&mut self) -> IndexDelta {
        let marks = std::mem::take(&mut self.dirty);
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
        // One that was stopped and then taken out has left its rows behind as well.
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

    /// The number in ids such as `t12`, when `id` is one.
    fn number_of(id: &str) -> Option<u64> {
        id.strip_prefix('t').filter(|digits| !digits.starts_with('0'))?.parse().ok()
    }

    /// Ids that no task of this plan has had: `t1`, `t2`, … Those of removed tasks are not given again.
    pub fn free_task_ids(&self) -> impl Iterator<Item = TaskId> {
        // The last number there is may be taken; then those from the beginning are searched.
        let numbers = (self.next_number..u64::MAX).chain(1..self.next_number);
        let ids = numbers.filter_map(|number| TaskId::new(format!("t{number}")).ok());
        ids.filter(|id| self.find(id.as_str()).is_none())
    }

    fn spec_of(&self, number: u32) -> &TaskSpec {
        &self.at(number).spec
    }
}
