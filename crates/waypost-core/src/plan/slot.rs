//! One task with its place in the graph, and what its dependencies and its parents allow. Does not know the plan.

use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::{Dependency, DependencyRule, ExternalTaskRef, Refinement, Status, Task};

pub(super) const NONE: u32 = u32::MAX;

/// Numbers of tasks; as most tasks have few neighbours, a few of them need no memory of their own.
pub(super) type Numbers = SmallVec<[u32; 4]>;

/// One task and its place in the graph.
///
/// The graph is walked without reading tasks: what it needs of them is mirrored here by `Plan::change`, the only place
/// where a task changes. So a plan that was loaded from a snapshot reads only the tasks that somebody asks for.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The task, once somebody has asked for it.
    pub(super) task: OnceLock<Box<Task>>,
    /// Where it stands in the bytes of the latest snapshot: first byte and length.
    pub(super) bytes: (u32, u32),
    /// Whether those bytes say what the task says.
    pub(super) stored: bool,
    /// Where its id stands among the ids of the plan: first byte and length.
    pub(super) id: (u32, u32),
    pub(super) status: Status,
    pub(super) satisfies: bool,
    pub(super) when: DependencyRule,
    pub(super) skip: bool,
    /// Whether it waits for a person's answer.
    pub(super) asking: bool,
    /// Whether it was judged small enough to be done as it is.
    pub(super) atomic: bool,
    /// Whether it is said to be done and waits for its check.
    pub(super) reported: bool,
    /// Whether a worker has reserved it and no start is recorded.
    pub(super) queued: bool,
    pub(super) priority: i32,
    /// Tasks of this plan that it depends on, each once.
    pub(super) before: Numbers,
    /// Tasks of this plan that depend on it.
    pub(super) after: Numbers,
    /// Its children, in their order.
    pub(super) children: Numbers,
    pub(super) parent: u32,
    /// How many distinct tasks elsewhere it depends on; how many of them it has not heard of, and how many are done.
    pub(super) elsewhere: u32,
    pub(super) elsewhere_unmet: u32,
    pub(super) elsewhere_met: u32,
    /// How many of all that it depends on have not finished.
    pub(super) unmet: u32,
    /// How many of them let it go on.
    pub(super) met: u32,
    /// How many children have not finished.
    pub(super) open_children: u32,
    /// What it means for its children that they are inside it.
    pub(super) inside: ParentGate,
    /// Whether it is still in the plan.
    pub(super) alive: bool,
    /// Whether it is in the ready set.
    pub(super) ready: bool,
}

/// What the children of a task may do as far as the task, and its own parents, are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParentGate {
    /// Begin.
    Open,
    /// Wait.
    Shut,
    /// Never begin: one of the parents has become impossible, or is passed over.
    Sealed,
}

/// What a look at the dependencies of a task says.
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

    /// Copies from the task what the graph needs.
    pub(super) fn mirror(&mut self) {
        let Some(task) = self.task.get() else { return };
        self.status = task.state.status;
        self.satisfies = task.state.satisfies();
        self.when = task.spec.when;
        self.skip = task.spec.skip;
        self.asking = task.state.question().is_some();
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
