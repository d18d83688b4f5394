//! Change tracking by task number: since the last version, and within the event being applied.

use crate::{Status, TaskId};

/// The changes of the latest events, for callers that maintain tables beside a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexDelta {
    /// Tasks that finished, including those finished by a cascade.
    pub finished: Vec<TaskId>,
    /// Tasks that stopped running, for any reason.
    pub stopped: Vec<TaskId>,
    /// Tasks newly held by a worker, queued or running, with their attempt.
    pub started: Vec<(TaskId, u32)>,
    /// Tasks whose dependencies on other plans changed.
    pub waits_changed: Vec<TaskId>,
    /// Tasks whose outcome changed: they ended, ended differently, were reopened, or were removed.
    pub outcomes: Vec<TaskId>,
    /// Whether the plan as a whole changed for other plans: it was created, ended, reopened, archived or restored, or
    /// has another owner.
    pub whole: bool,
}

/// Numbers of tasks that changed since the last [`super::Plan::take_touched`]; a task may occur more than once.
#[derive(Clone, Debug, Default)]
pub(super) struct DirtySets {
    pub(super) finished: Vec<u32>,
    pub(super) stopped: Vec<u32>,
    pub(super) started: Vec<u32>,
    pub(super) waits: Vec<u32>,
    pub(super) outcomes: Vec<u32>,
    pub(super) whole: bool,
    /// Ids of tasks that were removed while they depended on other plans.
    pub(super) gone: Vec<TaskId>,
}

/// The changes recorded while a caller wants to know them; a task may occur more than once in a list.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    /// Tasks with their status before each change.
    pub(super) statuses: Vec<(u32, Status)>,
    /// Tasks that entered or left the ready set.
    pub(super) readiness: Vec<u32>,
    /// Tasks whose question was opened or closed.
    pub(super) asking: Vec<u32>,
}

/// A pending re-evaluation of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Propagation {
    /// Something that the task's readiness depends on may have changed.
    Look(u32),
    /// A child of the task has ended or was reopened, added or removed.
    Family(u32),
}
