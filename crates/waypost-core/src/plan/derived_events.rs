//! What followed from a version by the graph alone, told to readers: tasks that a cascade took along, tasks that could go
//! on, a plan that ended. Never stored: whoever wants to know replays the version.

use serde::{Deserialize, Serialize};

use super::Plan;
use super::changes::{ChangeLog, DirtySets};
use super::slot::{ParentGate, Verdict};
use crate::{Event, Phase, Status, TaskId, Timestamp};

/// Something that followed from events and that no event says by itself. Those of one version are told in this order, and of
/// each kind by their tasks.
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
    /// A group was accomplished with its last task.
    TaskDone {
        /// Which.
        task: TaskId,
    },
    /// A group failed with one of its tasks.
    TaskFailed {
        /// Which.
        task: TaskId,
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        error: String,
    },
    /// A task was passed over because of another, or with its group.
    TaskSkipped {
        /// Which.
        task: TaskId,
        /// Why, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The task whose end made it impossible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because_of: Option<TaskId>,
    },
    /// A task was stopped by an order that may have named others too.
    TaskCancelled {
        /// Which.
        task: TaskId,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A task that had ended is to be done after all.
    TaskReopened {
        /// Which.
        task: TaskId,
    },
    /// A task waits for something: it was added so, or was ready before.
    TaskBlocked {
        /// Which.
        task: TaskId,
    },
    /// What a task waited for has come about: it could start now.
    TaskUnblocked {
        /// Which.
        task: TaskId,
    },
    /// The plan began to run, with or without a person's word.
    PlanStarted {},
    /// The plan ended well.
    PlanCompleted {},
    /// The plan ended, and something in it failed.
    PlanFailed {},
    /// The plan was ended by order.
    PlanCancelled {},
    /// The plan had ended and was given something to do.
    PlanReopened {},
}

impl DerivedEvent {
    /// The words for all of them, in the order of [`DerivedEvent`].
    pub const KINDS: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// The word for it.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The task that it is about, when it is about one.
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
    /// The same as [`Plan::advance`] for whoever wants to hear what followed. They always come in the same order.
    pub fn advance_telling(&mut self, events: &[Event], at: Timestamp) -> Vec<DerivedEvent> {
        let (known, phase, is_new) = (self.slots.len() as u32, self.state.phase, self.version == 0);
        if is_new {
            // A plan begins as its author wrote it: nothing followed.
            self.advance(events, at);
            self.dirty = DirtySets::default();
            return Vec::new();
        }
        self.change_log = Some(Box::default());
        self.advance(events, at);
        self.dirty = DirtySets::default();
        let mut noted = *self.change_log.take().unwrap_or_default();
        // The first note of a task says what it was before the version.
        noted.statuses.sort_by_key(|(number, _)| *number);
        noted.statuses.dedup_by_key(|(number, _)| *number);
        let mut told = self.ends(&noted, events);
        told.extend(self.gates(&noted, known));
        told.sort();
        told.extend(change_of_phase(phase, self.state.phase));
        told
    }

    /// Tasks that ended, or are open again, and no event says so of them alone.
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

    /// Tasks that could go on, or no longer can. Those that changed in another way are told of by that.
    fn gates(&self, noted: &ChangeLog, known: u32) -> Vec<DerivedEvent> {
        let mut numbers = noted.readiness.clone();
        numbers.sort_unstable();
        let changed = numbers.chunk_by(|a, b| a == b).filter(|run| run[0] < known);
        let told = changed.filter_map(|run| self.gate_of(noted, run[0], run.len() % 2 == 1));
        let new = (known..self.slots.len() as u32).filter(|&number| self.waits(number));
        let blocked = new.map(|number| DerivedEvent::TaskBlocked { task: self.task_id(number) });
        told.chain(blocked).collect()
    }

    /// What is told of a task that came into the ready set or left it; `turned` when it is not where it was before.
    fn gate_of(&self, noted: &ChangeLog, number: u32, turned: bool) -> Option<DerivedEvent> {
        let slot = self.slot(number);
        let found = noted.statuses.binary_search_by_key(&number, |(number, _)| *number);
        let before = found.map_or(slot.status, |place| noted.statuses[place].1);
        if !slot.alive || slot.is_parent() || before != Status::Pending || noted.asking.contains(&number) {
            return None;
        }
        let was_ready = slot.ready != turned;
        // It may have begun in the same version.
        let has_begun = matches!(slot.status, Status::Running | Status::Done | Status::Failed);
        match was_ready {
            false if slot.ready || has_begun => {
                Some(DerivedEvent::TaskUnblocked { task: self.task_id(number) })
            }
            true if self.waits(number) => Some(DerivedEvent::TaskBlocked { task: self.task_id(number) }),
            true | false => None,
        }
    }

    /// Whether a task is open and has to wait for others.
    fn waits(&self, number: u32) -> bool {
        let slot = self.slot(number);
        let is_open = slot.alive && !slot.is_parent() && slot.status == Status::Pending && !slot.ready;
        is_open && (slot.verdict() == Verdict::Waiting || self.gate(number) == ParentGate::Shut)
    }
}

/// Whether an event says of this task alone that it came to this end.
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

/// The names of all events, derived ones included, in alphabetical order.
pub fn event_kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&str> = Event::KINDS.iter().chain(DerivedEvent::KINDS).copied().collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
