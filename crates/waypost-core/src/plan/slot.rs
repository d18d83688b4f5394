//! One task with its place in the graph, and what its dependencies and parents allow. Does not know the plan.

use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::{Dependency, DependencyRule, ExternalTaskRef, Refinement, Status, Task};

pub(super) const NONE: u32 = u32::MAX;

/// Task numbers. Most tasks have few neighbours, and up to four need no heap allocation.
pub(super) type Numbers = SmallVec<[u32; 4]>;

/// One task and its place in the graph.
///
/// The graph is traversed without reading tasks: `Plan::change`, the only place where a task changes, mirrors here what
/// the graph needs of them. A plan loaded from a snapshot therefore decodes only the tasks that are asked for.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The task, once it has been decoded.
    pub(super) task: OnceLock<Box<Task>>,
    /// Its place in the bytes of the latest snapshot: first byte and length.
    pub(super) bytes: (u32, u32),
    /// Whether those bytes match the current task.
    pub(super) stored: bool,
    /// The place of its id among the ids of the plan: first byte and length.
    pub(super) id: (u32, u32),
    pub(super) status: Status,
    pub(super) satisfies: bool,
    pub(super) when: DependencyRule,
    pub(super) skip: bool,
    /// Whether a question to a person is open.
    pub(super) asking: bool,
    /// Whether the task is held.
    pub(super) held: bool,
    /// Whether planning marked the task as atomic.
    pub(super) atomic: bool,
    /// Whether the task is reported as done and waits for its check.
    pub(super) reported: bool,
    /// Whether a worker has reserved it and no start is recorded.
    pub(super) queued: bool,
    pub(super) priority: i32,
    /// Dependencies in this plan, without duplicates.
    pub(super) before: Numbers,
    /// Dependants in this plan.
    pub(super) after: Numbers,
    /// The children, in order.
    pub(super) children: Numbers,
    pub(super) parent: u32,
    /// The number of distinct tasks of other plans that it depends on; how many of them have no result yet, and how
    /// many are done.
    pub(super) elsewhere: u32,
    pub(super) elsewhere_unmet: u32,
    pub(super) elsewhere_met: u32,
    /// How many of all dependencies have not finished.
    pub(super) unmet: u32,
    /// How many of all dependencies are satisfied.
    pub(super) met: u32,
    /// How many children have not finished.
    pub(super) open_children: u32,
    /// What this task allows its children to do.
    pub(super) inside: ParentGate,
    /// Whether the task is still in the plan.
    pub(super) alive: bool,
    /// Whether the task is in the ready set.
    pub(super) ready: bool,
}

/// What the children of a task may do, as far as the task and its own parents decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParentGate {
    /// They may begin.
    Open,
    /// They must wait.
    Shut,
    /// They never begin: one of the parents has become impossible or is skipped.
    Sealed,
}

/// The evaluation of a task's dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Waiting,
    Clear,
    Doomed,
}

impl Slot {
    pub(super) fn verdict(&self) -> Verdict {
        let total = self.before.len() as u32 + self.elsewhere;
        let refused = total - self.unmet - self.met;
        match self.when {
            DependencyRule::AllDone if refused > 0 => Verdict::Doomed,
            DependencyRule::AllDone | DependencyRule::AllFinished if self.unmet == 0 => Verdict::Clear,
            DependencyRule::AllDone | DependencyRule::AllFinished => Verdict::Waiting,
            DependencyRule::AnyDone if total == 0 || self.met > 0 => Verdict::Clear,
            DependencyRule::AnyDone if self.unmet == 0 => Verdict::Doomed,
            DependencyRule::AnyDone => Verdict::Waiting,
        }
    }

    pub(super) fn is_parent(&self) -> bool {
        !self.children.is_empty()
    }
}

pub(super) fn id_in(ids: &str, (start, length): (u32, u32)) -> &str {
    &ids[start as usize..start as usize + length as usize]
}

impl Slot {
    pub(super) fn new(id: (u32, u32)) -> Self {
        Self {
            task: OnceLock::new(),
            bytes: (0, 0),
            stored: false,
            id,
            status: Status::Pending,
            satisfies: false,
            when: DependencyRule::AllDone,
            skip: false,
            asking: false,
            held: false,
            atomic: false,
            reported: false,
            queued: false,
            priority: 0,
            before: Numbers::new(),
            after: Numbers::new(),
            children: Numbers::new(),
            parent: NONE,
            elsewhere: 0,
            elsewhere_unmet: 0,
            elsewhere_met: 0,
            unmet: 0,
            met: 0,
            open_children: 0,
            inside: ParentGate::Open,
            alive: true,
            ready: false,
        }
    }

    /// Copies the fields that the graph needs from the task.
    pub(super) fn mirror(&mut self) {
        let Some(task) = self.task.get() else { return };
        self.status = task.state.status;
        self.satisfies = task.state.satisfies();
        self.when = task.spec.when;
        self.skip = task.spec.skip;
        self.asking = task.state.question().is_some();
        self.held = task.state.held().is_some();
        self.atomic = task
            .spec
            .thinking
            .as_ref()
            .is_some_and(|thinking| thinking.refinement == Some(Refinement::Atomic));
        self.reported = task.state.reported().is_some();
        self.queued = task.state.is_queued();
        self.priority = task.spec.priority;
        let mut keys: Vec<String> =
            task.spec.depends_on.iter().filter_map(Dependency::external).map(ExternalTaskRef::key).collect();
        keys.sort_unstable();
        keys.dedup();
        let received = |key: &String| task.state.received.get(key).map(|received| received.status);
        self.elsewhere = keys.len() as u32;
        let heard_of = |key: &&String| received(key).is_some_and(Status::is_finished);
        self.elsewhere_unmet = self.elsewhere - keys.iter().filter(heard_of).count() as u32;
        self.elsewhere_met = keys.iter().filter(|key| received(key) == Some(Status::Done)).count() as u32;
    }
}
