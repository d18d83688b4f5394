//! What changed in a plan, by number of task: since the last version, and within the event that is being worked in.

use crate::{Status, TaskId};

/// What changed by the latest events, for those who keep tables beside a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexDelta {
    /// Tasks that finished, and those that a cascade took along.
    pub finished: Vec<TaskId>,
    /// Tasks that left the state of running, however.
    pub stopped: Vec<TaskId>,
    /// Tasks that somebody has from now on, queued or running, with their attempt.
    pub started: Vec<(TaskId, u32)>,
    /// Tasks whose dependencies elsewhere are not what they were.
    pub waits_changed: Vec<TaskId>,
    /// Tasks whose end is not what it was: they ended, ended otherwise, are to be done again, or were taken out.
    pub outcomes: Vec<TaskId>,
    /// Whether the plan itself is not what it was to others: it was made, ended, goes on again, was put away or taken out,
    /// or belongs to somebody else.
    pub whole: bool,
}

/// Numbers of tasks that changed since the last [`super::Plan::take_touched`]; a task may stand in it more than once.
#[derive(Clone, Debug, Default)]
pub(super) struct DirtySets {
    pub(super) finished: Vec<u32>,
    pub(super) stopped: Vec<u32>,
    pub(super) started: Vec<u32>,
    pub(super) waits: Vec<u32>,
    pub(super) outcomes: Vec<u32>,
    pub(super) whole: bool,
    /// Names of tasks that were taken out while they waited for something elsewhere.
    pub(super) gone: Vec<TaskId>,
}

/// What has changed while somebody wanted to know; a task may stand in a list more than once.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    /// Tasks, and what they were before each change.
    pub(super) statuses: Vec<(u32, Status)>,
    /// Tasks that came into the ready set, or left it.
    pub(super) readiness: Vec<u32>,
    /// Tasks that began or ceased to ask a person.
    pub(super) asking: Vec<u32>,
}

/// Something that may have consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Propagation {
    /// Something that the task's readiness depends on may have changed.
    Look(u32),
    /// A child of the task has ended or goes on, has come or gone.
    Family(u32),
}
