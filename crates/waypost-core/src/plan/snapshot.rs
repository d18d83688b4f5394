//! A plan as bytes that load fast. A cache: the events are the truth, so unknown bytes are left aside, never guessed at.
//!
//! The graph stands apart from the tasks: loading reads the graph, and each task only when somebody asks for it.

use std::sync::Arc;

use bitcode::{Decode, Encode};

use super::{NONE, Plan, Slot};
use crate::names::Names;
use crate::{PlanId, PlanSpec, PlanState, Status, Task, TaskId, TaskSpec, When};

/// Changes whenever the bytes of a snapshot change their meaning; a golden test holds it to that.
const SNAPSHOT_FORMAT: u32 = 1;
/// The format and the length of the graph, before everything else.
const HEADER_BYTES: usize = 8;

/// Bytes that are no snapshot of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot was written by another version of Waypost, or is damaged")]
pub struct SnapshotError;

/// All but the tasks themselves, which follow it one behind the other.
#[derive(Encode, Decode)]
struct Graph {
    id: PlanId,
    version: u64,
    spec: PlanSpec,
    state: PlanState,
    next_number: u64,
    ids: String,
    nodes: Vec<Node>,
    /// What the nodes depend on, one behind the other.
    before: Vec<u32>,
    /// A sum over the bytes of the tasks: damage is noticed when the plan is loaded, not when a task is needed.
    tasks_sum: u64,
}

/// One task, as far as the graph is concerned.
#[derive(Encode, Decode)]
struct Node {
    id_length: u32,
    task_length: u32,
    status: Status,
    satisfies: bool,
    when: When,
    skip: bool,
    priority: i32,
    parent: u32,
    before: u32,
    elsewhere: u32,
    elsewhere_unmet: u32,
    elsewhere_met: u32,
}

/// A sum that tells damaged bytes from whole ones: eight at a time, because it is made at every load.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    let whole = words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(whole, |sum, byte| mix(sum, u64::from(*byte)))
}

/// The task that stands in a snapshot's bytes at `place`.
pub(super) fn task(bytes: &[u8], (start, length): (u32, u32), id: &str) -> Task {
    let found = bytes.get(start as usize..start as usize + length as usize).map(bitcode::decode::<Task>);
    match found {
        Some(Ok(task)) => task,
        // The sum over all tasks was right when the plan was loaded, so this is unreachable; a task that says so is
        // still better than the end of the process.
        Some(Err(_)) | None => Task::new(TaskSpec::new(TaskId::trusted(id), "(damaged)")),
    }
}

impl Plan {
    /// The whole plan as bytes. Costs a copy and the tasks that changed since the last one.
    pub fn snapshot(&mut self) -> Arc<Vec<u8>> {
        let order = self.order();
        let mut number_in_snapshot = vec![NONE; self.slots.len()];
        for (place, &number) in order.iter().enumerate() {
            number_in_snapshot[number as usize] = place as u32;
        }
        let (mut nodes, mut before, mut ids) = (Vec::with_capacity(order.len()), Vec::new(), String::new());
        let (mut tasks, mut lengths): (Vec<u8>, Vec<u32>) = (Vec::new(), Vec::with_capacity(order.len()));
        let mut buffer = bitcode::Buffer::new();
        for &number in &order {
            let slot = self.slot(number);
            let start = tasks.len();
            match slot.task.get() {
                Some(task) if !slot.stored => tasks.extend_from_slice(buffer.encode(&**task)),
                Some(_) | None => {
                    let (start, length) = slot.bytes;
                    tasks.extend_from_slice(&self.bytes[start as usize..start as usize + length as usize]);
                }
            }
            lengths.push((tasks.len() - start) as u32);
            ids.push_str(self.id_of(number));
            before.extend(slot.before.iter().map(|&on| number_in_snapshot[on as usize]));
            nodes.push(Node {
                id_length: slot.id.1,
                task_length: (tasks.len() - start) as u32,
                status: slot.status,
                satisfies: slot.satisfies,
                when: slot.when,
                skip: slot.skip,
                priority: slot.priority,
                parent: if slot.parent == NONE { NONE } else { number_in_snapshot[slot.parent as usize] },
                before: slot.before.len() as u32,
                elsewhere: slot.elsewhere,
                elsewhere_unmet: slot.elsewhere_unmet,
                elsewhere_met: slot.elsewhere_met,
            });
        }
        let graph = bitcode::encode(&Graph {
            id: self.id.clone(),
            version: self.version,
            spec: self.spec.clone(),
            state: self.state.clone(),
            next_number: self.next_number,
            ids,
            nodes,
            before,
            tasks_sum: sum(&tasks),
        });
        let mut bytes = Vec::with_capacity(HEADER_BYTES + graph.len() + tasks.len());
        bytes.extend(SNAPSHOT_FORMAT.to_le_bytes());
        bytes.extend((graph.len() as u32).to_le_bytes());
        bytes.extend(graph);
        let mut start = bytes.len() as u32;
        bytes.extend(tasks);
        for (&number, &length) in order.iter().zip(&lengths) {
            let slot = self.slot_mut(number);
            slot.bytes = (start, length);
            slot.stored = true;
            start += length;
        }
        self.bytes = Arc::new(bytes);
        Arc::clone(&self.bytes)
    }

    /// The plan that [`Plan::snapshot`] wrote.
    pub fn from_snapshot(bytes: Vec<u8>) -> Result<Self, SnapshotError> {
        let rest = bytes.strip_prefix(&SNAPSHOT_FORMAT.to_le_bytes()).ok_or(SnapshotError)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(SnapshotError)?;
        let (graph, tasks) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(SnapshotError)?;
        let graph: Graph = bitcode::decode(graph).map_err(|_| SnapshotError)?;
        if sum(tasks) != graph.tasks_sum {
            return Err(SnapshotError);
        }
        let mut plan = Self::blank(graph.id);
        plan.version = graph.version;
        plan.spec = graph.spec;
        plan.state = graph.state;
        plan.ids = graph.ids;
        let count = graph.nodes.len() as u32;
        let (mut id_start, mut before_start) = (0, 0);
        let mut task_start = bytes.len() - tasks.len();
        plan.slots.reserve(graph.nodes.len());
        for node in graph.nodes {
            let before =
                graph.before.get(before_start..before_start + node.before as usize).ok_or(SnapshotError)?;
            let sound = before.iter().all(|&on| on < count) && (node.parent == NONE || node.parent < count);
            plan.ids
                .get(id_start..id_start + node.id_length as usize)
                .filter(|_| sound)
                .ok_or(SnapshotError)?;
            let mut slot = Slot::new((id_start as u32, node.id_length));
            slot.bytes = (task_start as u32, node.task_length);
            slot.stored = true;
            slot.status = node.status;
            slot.satisfies = node.satisfies;
            slot.when = node.when;
            slot.skip = node.skip;
            slot.priority = node.priority;
            slot.parent = node.parent;
            slot.before = before.into();
            slot.elsewhere = node.elsewhere;
            slot.elsewhere_unmet = node.elsewhere_unmet;
            slot.elsewhere_met = node.elsewhere_met;
            plan.slots.push(slot);
            id_start += node.id_length as usize;
            before_start += node.before as usize;
            task_start += node.task_length as usize;
        }
        if task_start != bytes.len() {
            return Err(SnapshotError);
        }
        plan.bytes = Arc::new(bytes);
        plan.names = Names::with_capacity(plan.slots.len());
        for number in 0..count {
            plan.add_name(number);
        }
        plan.next_number = graph.next_number;
        plan.connect();
        plan.marks = super::Marks::default();
        Ok(plan)
    }
}
