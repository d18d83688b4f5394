//! Propagates changes through the graph. Every consequence is taken from a work list, never by recursion.
//!
//! Consequences come in waves: first all tasks of a wave are evaluated, then the effects are applied, and the affected
//! tasks form the next wave. The result therefore does not depend on the order in which tasks are numbered.

use std::cmp::Reverse;

use super::Plan;
use super::changes::Propagation;
use super::slot::{NONE, ParentGate, Slot, Verdict};
use crate::{Dependency, Phase, Status, Task, TaskId, Timestamp};

/// The effect on an evaluated task.
enum Effect {
    /// The task, or one of its ancestors, is impossible or skipped.
    Skip { because_of: Option<TaskId> },
    /// The reason for which the task was skipped no longer holds.
    ComeBack,
    /// Its children give the parent another status.
    Group(ParentEnd),
}

/// Why a task is skipped.
enum Resolution {
    /// Its author skips it or one of its ancestors.
    PassedOver,
    /// A dependency of this task, which is the skipped task or an ancestor, did not end as required.
    Doomed(u32),
}

/// The end of a parent whose children have all ended.
pub(super) struct ParentEnd {
    pub(super) status: Status,
    pub(super) because_of: Option<TaskId>,
    pub(super) error: Option<String>,
}

impl ParentEnd {
    const NOT_YET: Self = Self { status: Status::Pending, because_of: None, error: None };
    pub(super) const PASSED_OVER: Self = Self { status: Status::Skipped, because_of: None, error: None };

    pub(super) fn of<'a>(children: impl Iterator<Item = &'a Task> + Clone) -> Self {
        let first = |wanted: &dyn Fn(&Task) -> bool| children.clone().find(|task| wanted(task));
        let (mut because_of, mut error) = (None, None);
        let status = if let Some(child) = first(&|task| task.state.status == Status::Failed) {
            error = Some(format!("{} failed", child.spec.id));
            Status::Failed
        } else if first(&|task| task.state.status == Status::Cancelled).is_some() {
            Status::Cancelled
        } else if let Some(child) = first(&|task| task.state.because_of.is_some()) {
            because_of = child.state.because_of.clone();
            Status::Skipped
        } else if first(&|task| task.state.status == Status::Done).is_some() {
            Status::Done
        } else {
            Status::Skipped
        };
        Self { status, because_of, error }
    }
}

impl Plan {
    /// Updates all counts after a task changed from `old`, and queues the affected tasks.
    pub(super) fn tell(&mut self, number: u32, old: Status, satisfied: bool) {
        let slot = self.slot(number);
        let (new, satisfies, parent) = (slot.status, slot.satisfies, slot.parent);
        if old != new {
            if !slot.is_parent() {
                self.counts[old as usize] -= 1;
                self.counts[new as usize] += 1;
            }
            self.mark(number, old, new);
        }
        let (was_open, is_open) = (!old.is_finished(), !new.is_finished());
        for place in 0..self.slot(number).after.len() {
            let next = self.slot(number).after[place];
            let slot = self.slot_mut(next);
            slot.unmet = slot.unmet + u32::from(is_open) - u32::from(was_open);
            slot.met = slot.met + u32::from(satisfies) - u32::from(satisfied);
            if !(was_open && is_open) {
                self.propagations.push(Propagation::Look(next));
            }
        }
        if parent != NONE && !(was_open && is_open) {
            let slot = self.slot_mut(parent);
            slot.open_children = slot.open_children + u32::from(is_open) - u32::from(was_open);
            self.propagations.push(Propagation::Family(parent));
        }
        self.propagations.push(Propagation::Look(number));
    }

    fn mark(&mut self, number: u32, old: Status, new: Status) {
        if let Some(noted) = &mut self.change_log {
            noted.statuses.push((number, old));
        }
        if old == Status::Running {
            self.running.remove(&number);
            self.dirty.stopped.push(number);
        }
        if new == Status::Running {
            self.running.insert(number);
            self.dirty.started.push(number);
        }
        if new.is_finished() {
            self.dirty.finished.push(number);
        }
        if old.is_finished() || new.is_finished() {
            self.dirty.outcomes.push(number);
        }
        if self.slot(number).elsewhere > 0 {
            // Only a pending task waits.
            self.dirty.waits.push(number);
        }
    }

    /// Applies all consequences of the recorded changes.
    pub(super) fn settle(&mut self, at: Timestamp) {
        self.open_again();
        self.work_off(at);
        if std::mem::take(&mut self.revived) {
            self.open_again();
            self.work_off(at);
        }
    }

    fn work_off(&mut self, at: Timestamp) {
        let mut wave = std::mem::take(&mut self.propagations);
        let mut consequences = Vec::new();
        while !wave.is_empty() {
            wave.sort_unstable();
            wave.dedup();
            consequences.extend(wave.iter().filter_map(|&ripple| self.consequence(ripple)));
            for &ripple in &wave {
                match ripple {
                    Propagation::Look(number) => self.refresh(number),
                    Propagation::Family(_) => {}
                }
            }
            // A task that comes back keeps its parent from ending, whichever has the smaller number.
            consequences.sort_by_key(|(_, consequence)| match consequence {
                Effect::ComeBack => 0,
                Effect::Group(end) if !end.status.is_finished() => 0,
                Effect::Skip { .. } => 1,
                Effect::Group(_) => 2,
            });
            for (number, consequence) in consequences.drain(..) {
                self.follow(number, consequence, at);
            }
            wave.clear();
            std::mem::swap(&mut wave, &mut self.propagations);
        }
        self.propagations = wave;
    }

    /// Returns what the parent of `number` allows its children to do.
    pub(super) fn gate(&self, number: u32) -> ParentGate {
        let parent = self.slot(number).parent;
        if parent == NONE { ParentGate::Open } else { self.slot(parent).inside }
    }

    /// Returns what a task allows its children to do, derived from the task and its parent.
    pub(super) fn inside_of(&self, number: u32) -> ParentGate {
        let slot = self.slot(number);
        match (self.gate(number), slot.verdict()) {
            (ParentGate::Sealed, _) | (_, Verdict::Doomed) => ParentGate::Sealed,
            (ParentGate::Open, Verdict::Clear) if slot.skip => ParentGate::Sealed,
            (ParentGate::Open, Verdict::Clear) if slot.held => ParentGate::Shut,
            (ParentGate::Open, Verdict::Clear) => ParentGate::Open,
            (ParentGate::Shut, _) | (_, Verdict::Waiting) => ParentGate::Shut,
        }
    }

    /// Updates the derived fields of one slot; does not change the task.
    fn refresh(&mut self, number: u32) {
        if !self.slot(number).alive {
            return;
        }
        let inside = self.inside_of(number);
        // Inside a sealed task the reason may have changed.
        if inside != self.slot(number).inside || inside == ParentGate::Sealed {
            self.slot_mut(number).inside = inside;
            let children = self.slots[number as usize].children.iter();
            self.propagations.extend(children.map(|&child| Propagation::Look(child)));
        }
        self.set_ready(number);
    }

    fn consequence(&self, ripple: Propagation) -> Option<(u32, Effect)> {
        let (Propagation::Look(number) | Propagation::Family(number)) = ripple;
        let slot = self.slot(number);
        if !slot.alive {
            return None;
        }
        if slot.is_parent() {
            return self.new_end(number).map(|end| (number, Effect::Group(end)));
        }
        // Until a plan has started it stays as its author wrote it.
        self.state.started_at?;
        let skipped_along = slot.status == Status::Skipped && !slot.satisfies;
        if slot.status != Status::Pending && !skipped_along {
            return None;
        }
        let consequence = match self.resolution(number) {
            None if slot.status == Status::Pending => return None,
            // In an ended plan a skipped task stays skipped until the plan is reopened.
            None if self.state.phase.is_finished() && !self.revived => return None,
            None => Effect::ComeBack,
            Some(Resolution::PassedOver) => Effect::Skip { because_of: None },
            Some(Resolution::Doomed(culprit)) => {
                let known = self.skipped_because_of(number);
                let because_of = self.cause(culprit, known);
                if skipped_along && because_of.as_ref() == known {
                    return None;
                }
                Effect::Skip { because_of }
            }
        };
        Some((number, consequence))
    }

    pub(super) fn skipped_because_of(&self, number: u32) -> Option<&TaskId> {
        let slot = self.slot(number);
        if slot.status == Status::Skipped && !slot.satisfies {
            self.at(number).state.because_of.as_ref()
        } else {
            None
        }
    }

    /// Returns why a task without children can never begin; `None` if it can or may yet.
    fn resolution(&self, number: u32) -> Option<Resolution> {
        let slot = self.slot(number);
        let gate = self.gate(number);
        if gate == ParentGate::Sealed {
            let mut line = Vec::new();
            let mut above = slot.parent;
            while above != NONE {
                line.push(above);
                above = self.slot(above).parent;
            }
            // From the outside in: the outermost reason counts.
            let found = line.into_iter().rev().find_map(|above| self.own_resolution(above, self.gate(above)));
            if found.is_some() {
                return found;
            }
        }
        self.own_resolution(number, gate)
    }

    fn own_resolution(&self, number: u32, gate: ParentGate) -> Option<Resolution> {
        let slot = self.slot(number);
        match slot.verdict() {
            Verdict::Doomed => Some(Resolution::Doomed(number)),
            Verdict::Clear if slot.skip && gate == ParentGate::Open => Some(Resolution::PassedOver),
            Verdict::Clear | Verdict::Waiting => None,
        }
    }

    /// Returns why a reset task would be skipped again at once: the tasks that cause it, or an empty list if its author
    /// skips it.
    pub(super) fn skipped_again(&self, number: u32) -> Option<Vec<String>> {
        self.state.started_at?;
        match self.resolution(number)? {
            Resolution::PassedOver => Some(Vec::new()),
            Resolution::Doomed(culprit) => {
                Some(self.causes(culprit).map(|cause| cause.to_string()).collect())
            }
        }
    }

    /// Whether a task is skipped because of others, or by its author: that is no outcome of its own.
    pub(super) fn is_skipped_along(&self, number: u32) -> bool {
        let is_below_skip = || {
            let above = |at: &u32| Some(self.slot(*at).parent).filter(|&parent| parent != NONE);
            std::iter::successors(Some(number), above).any(|at| self.slot(at).skip)
        };
        let state = &self.at(number).state;
        state.status == Status::Skipped
            && (state.because_of.is_some() || self.skipped_again(number).is_some() || is_below_skip())
    }

    /// Returns the tasks whose ends make this one impossible, in the order of its dependencies. A skipped task passes
    /// on its own cause, so that a whole cascade points at its origin.
    fn causes(&self, number: u32) -> impl Iterator<Item = TaskId> {
        let task = self.at(number);
        task.spec.depends_on.iter().filter_map(move |dependency| match dependency {
            Dependency::Task(on) => {
                let on = self.find(on.as_str())?;
                let refuses = self.slot(on).status.is_finished() && !self.slot(on).satisfies;
                refuses.then(|| self.skipped_because_of(on).cloned().unwrap_or_else(|| self.task_id(on)))
            }
            Dependency::External(there) => {
                let key = there.key();
                let status = task.state.received.get(&key)?.status;
                let refuses = status.is_finished() && status != Status::Done;
                refuses.then(|| TaskId::new(key).unwrap_or_else(|_| there.task.clone()))
            }
        })
    }

    /// Returns the task to name as the cause: the known one, as long as it still is a cause.
    fn cause(&self, number: u32, known: Option<&TaskId>) -> Option<TaskId> {
        let still = known.filter(|known| self.causes(number).any(|cause| cause == **known)).cloned();
        still.or_else(|| self.causes(number).next())
    }

    /// Returns the end that a parent's children give it, if it differs from the current one.
    fn new_end(&self, number: u32) -> Option<ParentEnd> {
        let slot = self.slot(number);
        let end = if slot.open_children > 0 {
            if slot.status == Status::Pending {
                return None;
            }
            ParentEnd::NOT_YET
        } else if slot.skip && slot.verdict() != Verdict::Doomed && self.gate(number) != ParentGate::Sealed {
            ParentEnd::PASSED_OVER
        } else {
            ParentEnd::of(slot.children.iter().map(|&child| self.at(child)))
        };
        let now = &self.at(number).state;
        let same = now.status == end.status && now.because_of == end.because_of && now.error == end.error;
        (!same).then_some(end)
    }

    fn follow(&mut self, number: u32, consequence: Effect, at: Timestamp) {
        match consequence {
            Effect::Skip { because_of } => self.change(number, |task| {
                task.state.because_of = because_of;
                task.state.reason = None;
                task.state.not_before = None;
                enter(task, Status::Skipped, at);
            }),
            Effect::ComeBack => {
                self.opened |= self.state.phase.is_finished();
                self.reset_task(number, at);
            }
            // A child came back in the same wave, so the parent has not ended.
            Effect::Group(end) if end.status.is_finished() && self.slot(number).open_children > 0 => {}
            Effect::Group(end) => self.change(number, |task| {
                task.state.because_of = end.because_of;
                task.state.error = end.error;
                enter(task, end.status, at);
            }),
        }
    }

    /// Sets the status of a task.
    pub(super) fn set_status(&mut self, number: u32, status: Status, at: Timestamp) {
        self.change(number, |task| enter(task, status, at));
    }

    pub(super) fn is_ready(&self, number: u32) -> bool {
        let slot = self.slot(number);
        slot.alive
            && !slot.is_parent()
            && !slot.skip
            && slot.status == Status::Pending
            && !slot.asking
            && !slot.held
            && slot.verdict() == Verdict::Clear
            && self.gate(number) == ParentGate::Open
    }

    /// Adds a task to the ready set or removes it, depending on its state.
    pub(super) fn set_ready(&mut self, number: u32) {
        let ready = self.is_ready(number);
        let slot = self.slot(number);
        if ready == slot.ready {
            return;
        }
        let key = (Reverse(slot.priority), number);
        self.slot_mut(number).ready = ready;
        if let Some(noted) = &mut self.change_log {
            noted.readiness.push(number);
        }
        if ready {
            self.ready.insert(key);
        } else {
            self.ready.remove(&key);
        }
    }

    /// Resets a task without children. The tasks skipped because of it follow by propagation.
    pub(super) fn reset_task(&mut self, number: u32, at: Timestamp) {
        self.change(number, |task| {
            let state = &mut task.state;
            state.tries = 0;
            state.not_before = None;
            state.forget_aside();
            if state.status.is_finished() {
                forget_outcome(task);
                enter(task, Status::Pending, at);
            }
        });
    }

    /// Reopens an ended plan that was given something to do.
    fn open_again(&mut self) {
        let open = self.counts[Status::Pending as usize] + self.counts[Status::Running as usize];
        let opened = std::mem::take(&mut self.opened);
        if !opened || open == 0 || !self.state.phase.is_finished() {
            return;
        }
        let may_run = !self.state.approval_required || self.state.approval.is_some();
        self.state.phase = if may_run { Phase::Active } else { Phase::AwaitingApproval };
        self.state.finished_at = None;
        self.state.closed = false;
        self.state.stopped_by = None;
        self.dirty.whole = true;
        self.state.summary = String::new();
        // Consequences that were suspended while the plan had ended apply again.
        self.look_at_all();
    }

    pub(super) fn look_at_all(&mut self) {
        let order = self.order();
        self.propagations.extend(order.into_iter().map(Propagation::Look));
    }

    /// Ends a plan whose last task has ended.
    pub(super) fn settle_phase(&mut self, at: Timestamp) {
        let count = |status: Status| self.counts[status as usize];
        let open = count(Status::Pending) + count(Status::Running);
        let total: u32 = self.counts.iter().sum();
        let runs = matches!(self.state.phase, Phase::Active | Phase::Paused);
        if !runs || open > 0 || total == 0 {
            return;
        }
        // A result from another plan may have caused skips although nothing failed here.
        let cut_off = |slot: &&Slot| slot.status == Status::Skipped && !slot.satisfies && !slot.is_parent();
        self.state.phase = if count(Status::Failed) > 0 {
            Phase::Failed
        } else if count(Status::Cancelled) > 0 {
            Phase::Cancelled
        } else if count(Status::Skipped) > 0 && self.live().any(|slot| cut_off(&slot)) {
            Phase::Failed
        } else {
            Phase::Completed
        };
        self.state.finished_at = Some(at);
        self.dirty.whole = true;
    }
}

fn enter(task: &mut Task, status: Status, at: Timestamp) {
    task.state.status = status;
    task.state.updated_at = Some(at);
    task.state.finished_at = status.is_finished().then_some(at);
    if status.is_finished() {
        task.state.close_aside();
    }
}

/// Clears the outcome of a task.
pub(super) fn forget_outcome(task: &mut Task) {
    let state = &mut task.state;
    state.started_at = None;
    state.result = None;
    state.output = None;
    state.error = None;
    state.reason = None;
    state.because_of = None;
    state.progress = None;
    state.forget_aside();
}
