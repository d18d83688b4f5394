//! Derived events: what followed from a version through the graph alone, such as tasks finished by a cascade, tasks
//! that became ready, or a plan that ended. Never stored: a reader that needs them replays the version.

use serde::{Deserialize, Serialize};

use super::Plan;
use super::changes::{ChangeLog, DirtySets};
use super::slot::{ParentGate, Verdict};
use crate::{Event, Phase, Status, TaskId, Timestamp};

/// Something that followed from events without being an event itself. Derived events of one version are sorted by kind, in
/// the order of this enum, then by task.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DerivedEvent {
    /// A group became done with its last task.
    TaskDone {
        /// The id of the group.
        task: TaskId,
    },
    /// A group failed with one of its tasks.
    TaskFailed {
        /// The id of the group.
        task: TaskId,
        /// Why the group failed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        error: String,
    },
    /// A task was skipped because of another task or with its group.
    TaskSkipped {
        /// The id of the task.
        task: TaskId,
        /// Why the task was skipped, in prose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The task whose end made this one impossible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because_of: Option<TaskId>,
    },
    /// A task was cancelled. The command may have cancelled other tasks as well.
    TaskCancelled {
        /// The id of the task.
        task: TaskId,
        /// Why the task was cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A finished task was reopened.
    TaskReopened {
        /// The id of the task.
        task: TaskId,
    },
    /// A task is blocked: it was added that way, or was ready before.
    TaskBlocked {
        /// The id of the task.
        task: TaskId,
    },
    /// A task became ready to start.
    TaskUnblocked {
        /// The id of the task.
        task: TaskId,
    },
    /// The plan started, with or without an approval.
    PlanStarted {},
    /// The plan completed.
    PlanCompleted {},
    /// The plan ended, and a task failed.
    PlanFailed {},
    /// The plan was cancelled.
    PlanCancelled {},
    /// The plan had ended and was reopened.
    PlanReopened {},
}

impl DerivedEvent {
    /// The names of all derived events, in the order of [`DerivedEvent`].
    pub const KINDS: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// Returns the name of the event.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Returns the task that the event concerns, if any.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::TaskDone { task }
            | Self::TaskFailed { task, .. }
            | Self::TaskSkipped { task, .. }
            | Self::TaskCancelled { task, .. }
            | Self::TaskReopened { task }
            | Self::TaskBlocked { task }
            | Self::TaskUnblocked { task } => Some(task),
            Self::PlanStarted {}
            | Self::PlanCompleted {}
            | Self::PlanFailed {}
            | Self::PlanCancelled {}
            | Self::PlanReopened {} => None,
        }
    }
}

impl Plan {
    /// Like [`Plan::advance`], and returns the derived events in a deterministic order.
    pub fn advance_telling(&mut self, events: &[Event], at: Timestamp) -> Vec<DerivedEvent> {
        let (known, phase, is_new) = (self.slots.len() as u32, self.state.phase, self.version == 0);
        if is_new {
            // A new plan is as its author wrote it, so nothing was derived.
            self.advance(events, at);
            self.dirty = DirtySets::default();
            return Vec::new();
        }
        self.change_log = Some(Box::default());
        self.advance(events, at);
        self.dirty = DirtySets::default();
        let mut noted = *self.change_log.take().unwrap_or_default();
        // The first entry of a task holds its status before the version.
        noted.statuses.sort_by_key(|(number, _)| *number);
        noted.statuses.dedup_by_key(|(number, _)| *number);
        let mut told = self.ends(&noted, events);
        told.extend(self.gates(&noted, known));
        told.sort();
        told.extend(change_of_phase(phase, self.state.phase));
        told
    }

    /// Returns tasks that ended or were reopened, unless an event records it for that task alone.
    fn ends(&self, noted: &ChangeLog, events: &[Event]) -> Vec<DerivedEvent> {
        let alive = noted.statuses.iter().filter(|(number, _)| self.slot(*number).alive);
        let changed = alive.filter(|(number, old)| self.slot(*number).status != *old);
        let ended = changed.filter_map(|&(number, old)| {
            let (status, task) = (self.slot(number).status, self.task_id(number));
            if says(events, &task, status) {
                return None;
            }
            let state = &self.at(number).state;
            Some(match status {
                Status::Pending | Status::Running if !old.is_finished() => return None,
                Status::Pending | Status::Running => DerivedEvent::TaskReopened { task },
                Status::Done => DerivedEvent::TaskDone { task },
                Status::Failed => {
                    DerivedEvent::TaskFailed { task, error: state.error.clone().unwrap_or_default() }
                }
                Status::Skipped => {
                    let because_of = state.because_of.clone();
                    DerivedEvent::TaskSkipped { task, reason: state.why(), because_of }
                }
                Status::Cancelled => DerivedEvent::TaskCancelled { task, reason: state.why() },
            })
        });
        ended.collect()
    }

    /// Returns tasks that became ready or blocked. Tasks that changed in another way are reported by that change.
    fn gates(&self, noted: &ChangeLog, known: u32) -> Vec<DerivedEvent> {
        let mut numbers = noted.readiness.clone();
        numbers.sort_unstable();
        let changed = numbers.chunk_by(|a, b| a == b).filter(|run| run[0] < known);
        let told = changed.filter_map(|run| self.gate_of(noted, run[0], run.len() % 2 == 1));
        let new = (known..self.slots.len() as u32).filter(|&number| self.waits(number));
        let blocked = new.map(|number| DerivedEvent::TaskBlocked { task: self.task_id(number) });
        told.chain(blocked).collect()
    }

    /// Returns the derived event of a task that entered or left the ready set; `turned` if its readiness differs from
    /// before.
    fn gate_of(&self, noted: &ChangeLog, number: u32, turned: bool) -> Option<DerivedEvent> {
        let slot = self.slot(number);
        let found = noted.statuses.binary_search_by_key(&number, |(number, _)| *number);
        let before = found.map_or(slot.status, |place| noted.statuses[place].1);
        if !slot.alive || slot.is_parent() || before != Status::Pending || noted.asking.contains(&number) {
            return None;
        }
        let was_ready = slot.ready != turned;
        // The task may have started in the same version.
        let has_begun = matches!(slot.status, Status::Running | Status::Done | Status::Failed);
        match was_ready {
            false if slot.ready || has_begun => {
                Some(DerivedEvent::TaskUnblocked { task: self.task_id(number) })
            }
            true if self.waits(number) => Some(DerivedEvent::TaskBlocked { task: self.task_id(number) }),
            true | false => None,
        }
    }

    /// Whether a task is pending and waits for others.
    fn waits(&self, number: u32) -> bool {
        let slot = self.slot(number);
        let is_open = slot.alive && !slot.is_parent() && slot.status == Status::Pending && !slot.ready;
        is_open && (slot.verdict() == Verdict::Waiting || self.gate(number) == ParentGate::Shut)
    }
}

/// Whether an event records this end for this task alone.
fn says(events: &[Event], task: &TaskId, status: Status) -> bool {
    events.iter().any(|event| match status {
        Status::Done => matches!(event, Event::TaskDone { task: named, .. } if named == task),
        Status::Failed => {
            matches!(event, Event::TaskFailed { task: named, again_at: None, .. } if named == task)
        }
        Status::Skipped => matches!(event, Event::TaskSkipped { task: named, .. } if named == task),
        Status::Pending | Status::Running | Status::Cancelled => false,
    })
}

fn change_of_phase(before: Phase, after: Phase) -> Option<DerivedEvent> {
    match after {
        _ if before == after => None,
        Phase::Completed => Some(DerivedEvent::PlanCompleted {}),
        Phase::Failed => Some(DerivedEvent::PlanFailed {}),
        Phase::Cancelled => Some(DerivedEvent::PlanCancelled {}),
        Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused if before.is_finished() => {
            Some(DerivedEvent::PlanReopened {})
        }
        Phase::Active if matches!(before, Phase::Draft | Phase::AwaitingApproval) => {
            Some(DerivedEvent::PlanStarted {})
        }
        Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused => None,
    }
}

/// Returns the names of all events, including derived ones, in alphabetical order.
pub fn event_kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&str> = Event::KINDS.iter().chain(DerivedEvent::KINDS).copied().collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
