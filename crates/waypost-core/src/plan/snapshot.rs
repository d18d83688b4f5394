//! A plan as bytes that load fast. A cache: the events are the source of truth, so unknown bytes are rejected, never
//! guessed at.
//!
//! The graph is separate from the tasks: loading decodes the graph, and each task only on demand.

pub(super) mod task_codec;

use std::sync::Arc;

use bitcode::{Decode, Encode};

use super::Plan;
use super::changes::DirtySets;
use super::slot::{NONE, Slot};
use crate::{DependencyRule, PlanId, PlanSpec, PlanState, Status, TaskId};

/// Must change whenever the meaning of a snapshot's bytes changes; a golden test enforces it.
const SNAPSHOT_FORMAT: u32 = 17;
/// The header: the format, the length of the graph, and a checksum over everything after the header.
const HEADER_BYTES: usize = 16;

/// The bytes are not a snapshot of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot was written by another version of Waypost, or is damaged")]
pub struct SnapshotError;

/// Everything except the tasks themselves, which follow it, concatenated. Stored as columns, not rows: they decode in
/// one pass, and absent fields take no space.
#[derive(Encode, Decode)]
struct Graph {
    id: PlanId,
    version: u64,
    spec: PlanSpec,
    state: PlanState,
    next_number: u64,
    ids: String,
    id_lengths: Vec<u16>,
    task_lengths: Vec<u32>,
    statuses: Vec<Status>,
    satisfies: Vec<bool>,
    whens: Vec<DependencyRule>,
    skips: Vec<bool>,
    priorities: Vec<i32>,
    parents: Vec<u32>,
    before_lengths: Vec<u32>,
    /// The dependencies of all tasks, concatenated.
    before: Vec<u32>,
    /// For tasks that depend on other plans: the task number, and how many such dependencies exist, are unmet, are met.
    elsewhere: Vec<(u32, u32, u32, u32)>,
    /// Tasks that wait for an answer, and tasks that wait for their check.
    asking: Vec<u32>,
    reported: Vec<u32>,
    /// Tasks that are held.
    held: Vec<u32>,
    /// Tasks that planning marked as atomic.
    atomic: Vec<u32>,
    /// Tasks about whose removal, order or place the last merge asks a person.
    removals_asked: Vec<TaskId>,
}

/// A checksum against damage. It takes eight bytes at a time, because it is computed at every load.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    let whole = words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(whole, |sum, byte| mix(sum, u64::from(*byte)))
}

impl Plan {
    /// Encodes the whole plan. Costs one copy plus the tasks that changed since the last snapshot.
    pub fn snapshot(&mut self) -> Arc<Vec<u8>> {
        let order = self.order();
        let mut number_in_snapshot = vec![NONE; self.slots.len()];
        for (place, &number) in order.iter().enumerate() {
            number_in_snapshot[number as usize] = place as u32;
        }
        let slots = || order.iter().map(|&number| self.slot(number));
        let (mut ids, mut before, mut elsewhere) = (String::new(), Vec::new(), Vec::new());
        let (mut tasks, mut task_lengths): (Vec<u8>, Vec<u32>) =
            (Vec::new(), Vec::with_capacity(order.len()));
        let mut writer = task_codec::Writer::default();
        for (place, &number) in order.iter().enumerate() {
            let slot = self.slot(number);
            let start = tasks.len();
            match slot.task.get() {
                Some(task) if !slot.stored => writer.put(task, &mut tasks),
                Some(_) | None => tasks.extend_from_slice(self.bytes_of(slot)),
            }
            task_lengths.push((tasks.len() - start) as u32);
            ids.push_str(self.id_of(number));
            before.extend(slot.before.iter().map(|&on| number_in_snapshot[on as usize]));
            if slot.elsewhere > 0 {
                elsewhere.push((place as u32, slot.elsewhere, slot.elsewhere_unmet, slot.elsewhere_met));
            }
        }
        let parent = |slot: &Slot| match slot.parent {
            NONE => NONE,
            parent => number_in_snapshot[parent as usize],
        };
        let places_of = |wanted: &dyn Fn(&Slot) -> bool| -> Vec<u32> {
            let places = slots().enumerate().filter(|(_, slot)| wanted(slot));
            places.map(|(place, _)| place as u32).collect()
        };
        let graph = bitcode::encode(&Graph {
            id: self.id.clone(),
            version: self.version,
            spec: self.spec.clone(),
            state: self.state.clone(),
            next_number: self.next_number,
            ids,
            id_lengths: slots().map(|slot| slot.id.1 as u16).collect(),
            task_lengths: task_lengths.clone(),
            statuses: slots().map(|slot| slot.status).collect(),
            satisfies: slots().map(|slot| slot.satisfies).collect(),
            whens: slots().map(|slot| slot.when).collect(),
            skips: slots().map(|slot| slot.skip).collect(),
            priorities: slots().map(|slot| slot.priority).collect(),
            parents: slots().map(parent).collect(),
            before_lengths: slots().map(|slot| slot.before.len() as u32).collect(),
            before,
            elsewhere,
            asking: places_of(&|slot| slot.asking),
            reported: places_of(&|slot| slot.reported),
            held: places_of(&|slot| slot.held),
            atomic: places_of(&|slot| slot.atomic),
            removals_asked: self.removals_asked.clone(),
        });
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.reserve_exact(graph.len() + tasks.len());
        bytes.extend_from_slice(&graph);
        let mut start = bytes.len() as u32;
        bytes.extend_from_slice(&tasks);
        let total = sum(&bytes[HEADER_BYTES..]);
        bytes[..4].copy_from_slice(&SNAPSHOT_FORMAT.to_le_bytes());
        bytes[4..8].copy_from_slice(&(graph.len() as u32).to_le_bytes());
        bytes[8..HEADER_BYTES].copy_from_slice(&total.to_le_bytes());
        for (&number, &length) in order.iter().zip(&task_lengths) {
            let slot = self.slot_mut(number);
            slot.bytes = (start, length);
            slot.stored = true;
            start += length;
        }
        self.bytes = Arc::new(bytes);
        self.packed = Vec::new();
        Arc::clone(&self.bytes)
    }

    /// Loads a plan written by [`Plan::snapshot`].
    pub fn from_snapshot(bytes: Vec<u8>) -> Result<Self, SnapshotError> {
        let rest = bytes.strip_prefix(&SNAPSHOT_FORMAT.to_le_bytes()).ok_or(SnapshotError)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(SnapshotError)?;
        let (total, rest) = rest.split_first_chunk::<8>().ok_or(SnapshotError)?;
        if sum(rest) != u64::from_le_bytes(*total) {
            return Err(SnapshotError);
        }
        let (graph, tasks) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(SnapshotError)?;
        let graph: Graph = bitcode::decode(graph).map_err(|_| SnapshotError)?;
        let tasks_start = bytes.len() - tasks.len();
        let mut plan = Self::blank(graph.id.clone());
        plan.take_graph(graph, tasks_start, bytes.len())?;
        plan.bytes = Arc::new(bytes);
        plan.live = plan.slots.len() as u32;
        plan.connect();
        plan.dirty = DirtySets::default();
        Ok(plan)
    }

    /// Creates the slots of a graph whose tasks occupy the bytes from `tasks_start` to `tasks_end`.
    fn take_graph(
        &mut self,
        graph: Graph,
        tasks_start: usize,
        tasks_end: usize,
    ) -> Result<(), SnapshotError> {
        let count = graph.id_lengths.len();
        let columns = [
            graph.task_lengths.len(),
            graph.statuses.len(),
            graph.satisfies.len(),
            graph.whens.len(),
            graph.skips.len(),
            graph.priorities.len(),
            graph.parents.len(),
            graph.before_lengths.len(),
        ];
        let known = |number: u32| (number as usize) < count;
        let sound = columns.iter().all(|&length| length == count)
            && graph.before.iter().all(|&on| known(on))
            && graph.parents.iter().all(|&parent| parent == NONE || known(parent))
            && graph.elsewhere.iter().all(|entry| known(entry.0))
            && [&graph.asking, &graph.reported, &graph.held, &graph.atomic]
                .into_iter()
                .flatten()
                .all(|&place| known(place));
        if !sound {
            return Err(SnapshotError);
        }
        self.version = graph.version;
        self.spec = graph.spec;
        self.state = graph.state;
        self.next_number = graph.next_number;
        self.removals_asked = graph.removals_asked;
        self.ids = graph.ids;
        let (mut id_start, mut before_start, mut task_start) = (0, 0, tasks_start);
        self.slots.reserve_exact(count);
        for place in 0..count {
            let id_end = id_start + usize::from(graph.id_lengths[place]);
            let before_end = before_start + graph.before_lengths[place] as usize;
            let before = graph.before.get(before_start..before_end).ok_or(SnapshotError)?;
            self.ids.get(id_start..id_end).ok_or(SnapshotError)?;
            let mut slot = Slot::new((id_start as u32, u32::from(graph.id_lengths[place])));
            slot.bytes = (task_start as u32, graph.task_lengths[place]);
            slot.stored = true;
            slot.status = graph.statuses[place];
            slot.satisfies = graph.satisfies[place];
            slot.when = graph.whens[place];
            slot.skip = graph.skips[place];
            self.skips += u32::from(slot.skip);
            slot.priority = graph.priorities[place];
            slot.parent = graph.parents[place];
            slot.before = before.into();
            self.slots.push(slot);
            (id_start, before_start) = (id_end, before_end);
            task_start += graph.task_lengths[place] as usize;
        }
        for (place, elsewhere, unmet, met) in graph.elsewhere {
            let slot = self.slot_mut(place);
            (slot.elsewhere, slot.elsewhere_unmet, slot.elsewhere_met) = (elsewhere, unmet, met);
        }
        for place in graph.asking {
            self.slot_mut(place).asking = true;
        }
        for place in graph.reported {
            self.slot_mut(place).reported = true;
        }
        for place in graph.held {
            self.slot_mut(place).held = true;
        }
        for place in graph.atomic {
            self.slot_mut(place).atomic = true;
            self.atomic += 1;
        }
        if task_start == tasks_end { Ok(()) } else { Err(SnapshotError) }
    }
}
