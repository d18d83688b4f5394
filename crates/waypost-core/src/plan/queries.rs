//! What can be asked of a plan. Changes nothing.

use serde::Serialize;
use waypost_text::StatusSign;

use super::Plan;
use super::slot::{NONE, ParentGate, Verdict};
use crate::{Dependency, Phase, PlanId, PlanSpec, PlanState, Status, Task, TaskId, Timestamp};

/// How many tasks stand where. Parents are not counted: they end as their children end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All of them.
    pub total: u32,
    /// Could start now.
    pub ready: u32,
    /// Wait for something.
    pub blocked: u32,
    /// Reserved by a worker, and not known to have begun.
    pub queued: u32,
    /// Being worked on.
    pub running: u32,
    /// Accomplished.
    pub done: u32,
    /// Failed for good.
    pub failed: u32,
    /// Passed over.
    pub skipped: u32,
    /// Stopped by order.
    pub cancelled: u32,
}

impl Counts {
    /// The same where the queued ones were not counted apart: they are what is left of the total.
    pub fn with_queued(self) -> Self {
        let others = self.ready + self.blocked + self.running + self.finished();
        Self { queued: self.total.saturating_sub(others), ..self }
    }

    /// Those that somebody has: queued or running.
    pub fn in_progress(&self) -> u32 {
        self.queued + self.running
    }

    /// Those to which nothing more will happen by itself.
    pub fn finished(&self) -> u32 {
        self.done + self.failed + self.skipped + self.cancelled
    }

    /// The sign of a plan in this phase. An active plan is shown as running only while a task runs.
    pub fn sign(&self, phase: Phase) -> StatusSign {
        match phase {
            Phase::Draft => StatusSign::Draft,
            Phase::AwaitingApproval => StatusSign::Approval,
            // A worker queues only what it begins at once, or next: something runs.
            Phase::Active if self.in_progress() > 0 => StatusSign::Running,
            Phase::Active if self.ready > 0 => StatusSign::Idle,
            Phase::Active => StatusSign::Blocked,
            Phase::Paused => StatusSign::Paused,
            Phase::Completed => StatusSign::Done,
            Phase::Failed => StatusSign::Failed,
            Phase::Cancelled => StatusSign::Cancelled,
        }
    }
}

/// Where a task stands, with what is derived from the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectiveStatus {
    /// Waits for something.
    Blocked,
    /// Could start now.
    Ready,
    /// Said to be done; its check could start now.
    Reported,
    /// Waits for a person's answer.
    Asking,
    /// Reserved by a worker, and not known to have begun.
    Queued,
    /// Being worked on.
    Running,
    /// Accomplished.
    Done,
    /// Failed for good.
    Failed,
    /// Passed over.
    Skipped,
    /// Stopped by order.
    Cancelled,
}

impl EffectiveStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Ready => "ready",
            Self::Reported => "reported",
            Self::Asking => "asking",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// The sign that stands before the word.
    pub fn sign(self) -> StatusSign {
        match self {
            Self::Blocked => StatusSign::Blocked,
            Self::Ready => StatusSign::Ready,
            Self::Reported => StatusSign::Reported,
            Self::Asking => StatusSign::Asking,
            Self::Queued => StatusSign::Queued,
            Self::Running => StatusSign::Running,
            Self::Done => StatusSign::Done,
            Self::Failed => StatusSign::Failed,
            Self::Skipped => StatusSign::Skipped,
            Self::Cancelled => StatusSign::Cancelled,
        }
    }
}

/// What keeps a pending task from starting, as far as its plan knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockReason {
    /// A person's approval of the plan.
    Approval,
    /// The plan's phase.
    Phase(Phase),
    /// Tasks that it, or a parent of it, depends on.
    Dependencies(Vec<String>),
    /// The time of its next attempt.
    Until(Timestamp),
    /// A person's answer to this question.
    Answer(String),
    /// Its check: somebody said that it is done.
    Check,
}

impl Plan {
    /// Its id.
    pub fn id(&self) -> &PlanId {
        &self.id
    }

    /// How often it was written.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What its author says.
    pub fn spec(&self) -> &PlanSpec {
        &self.spec
    }

    /// What came of it.
    pub fn state(&self) -> &PlanState {
        &self.state
    }

    /// One task.
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.find(id).map(|number| self.at(number))
    }

    /// All tasks in their order, each with its depth (0 for roots).
    pub fn tasks(&self) -> impl Iterator<Item = (&Task, usize)> {
        let mut stack: Vec<(u32, usize)> = self.roots.iter().rev().map(|&number| (number, 0)).collect();
        std::iter::from_fn(move || {
            let (number, depth) = stack.pop()?;
            stack.extend(self.slot(number).children.iter().rev().map(|&child| (child, depth + 1)));
            Some((self.at(number), depth))
        })
    }

    /// The tasks that could start now, the most urgent first.
    pub fn ready(&self) -> impl Iterator<Item = &Task> {
        self.ready.iter().map(|&(_, number)| self.at(number))
    }

    /// The tasks that are being worked on.
    pub fn running(&self) -> impl Iterator<Item = &Task> {
        let begun = self.running.iter().filter(|&&number| !self.slot(number).queued);
        begun.map(|&number| self.at(number))
    }

    /// The tasks that somebody has, queued or running: they have leases and hold locks.
    pub fn in_progress(&self) -> impl Iterator<Item = &Task> {
        self.running.iter().map(|&number| self.at(number))
    }

    /// The tasks that wait for a person's answer.
    pub fn asking(&self) -> impl Iterator<Item = &Task> {
        self.asking.iter().map(|&number| self.at(number))
    }

    /// How many tasks were judged small enough to be done as they are.
    pub fn atomic(&self) -> u32 {
        self.atomic
    }

    /// The tasks that agents and persons may take now, the most urgent first: not those that wait for their check.
    pub fn claimable(&self) -> impl Iterator<Item = &Task> {
        let offered = self.ready.iter().filter(|(_, number)| !self.slot(*number).reported);
        offered.map(|&(_, number)| self.at(number))
    }

    /// How many those are.
    pub fn claimable_total(&self) -> usize {
        self.ready.iter().filter(|(_, number)| !self.slot(*number).reported).count()
    }

    /// The children of a task, in their order.
    pub fn children(&self, id: &str) -> Vec<&Task> {
        let number = self.find(id);
        number.map_or_else(Vec::new, |number| {
            self.slot(number).children.iter().map(|&child| self.at(child)).collect()
        })
    }

    /// The tasks of this plan that depend on a task.
    pub fn dependants(&self, id: &str) -> Vec<&Task> {
        let number = self.find(id);
        number.map_or_else(Vec::new, |number| {
            self.slot(number).after.iter().map(|&after| self.at(after)).collect()
        })
    }

    /// How many tasks stand where.
    pub fn counts(&self) -> Counts {
        let count = |status: Status| self.counts[status as usize];
        let ready = self.ready.len() as u32;
        let queued = self.running.iter().filter(|&&number| self.slot(number).queued).count() as u32;
        Counts {
            total: self.counts.iter().sum(),
            ready,
            blocked: count(Status::Pending).saturating_sub(ready),
            queued,
            running: count(Status::Running).saturating_sub(queued),
            done: count(Status::Done),
            failed: count(Status::Failed),
            skipped: count(Status::Skipped),
            cancelled: count(Status::Cancelled),
        }
    }

    /// How many tasks there are, parents included.
    pub fn len(&self) -> usize {
        self.live as usize
    }

    /// Whether it has no tasks.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Whether any task waits for a task elsewhere.
    pub fn waits_for_external(&self) -> bool {
        self.live().any(|slot| slot.elsewhere > slot.elsewhere_met)
    }

    /// Where a task stands. A parent that has begun but not ended is running.
    pub fn effective_status(&self, id: &str) -> Option<EffectiveStatus> {
        let number = self.find(id)?;
        let slot = self.slot(number);
        Some(match slot.status {
            Status::Pending if slot.is_parent() && self.has_begun(number) => EffectiveStatus::Running,
            Status::Pending if slot.is_parent() && slot.inside == ParentGate::Open => EffectiveStatus::Ready,
            Status::Pending if slot.asking => EffectiveStatus::Asking,
            Status::Pending if slot.ready && slot.reported => EffectiveStatus::Reported,
            Status::Pending if slot.ready => EffectiveStatus::Ready,
            Status::Pending => EffectiveStatus::Blocked,
            Status::Running if slot.queued => EffectiveStatus::Queued,
            Status::Running => EffectiveStatus::Running,
            Status::Done => EffectiveStatus::Done,
            Status::Failed => EffectiveStatus::Failed,
            Status::Skipped => EffectiveStatus::Skipped,
            Status::Cancelled => EffectiveStatus::Cancelled,
        })
    }

    /// Whether anything below a task has begun or ended.
    fn has_begun(&self, number: u32) -> bool {
        let mut stack = vec![number];
        while let Some(number) = stack.pop() {
            let slot = self.slot(number);
            if slot.status != Status::Pending && !slot.queued {
                return true;
            }
            stack.extend(&self.slot(number).children);
        }
        false
    }

    /// Everything that keeps a pending task from starting at `at`; empty when nothing in its plan does.
    pub fn waiting(&self, id: &str, at: Timestamp) -> Vec<BlockReason> {
        const NAMES_MAX: usize = 20;
        let Some(number) = self.find(id) else { return Vec::new() };
        let slot = self.slot(number);
        if slot.status != Status::Pending {
            return Vec::new();
        }
        let mut waiting = Vec::new();
        match self.state.phase {
            Phase::Active => {}
            Phase::Draft if !self.state.approval_required => {}
            Phase::Draft | Phase::AwaitingApproval => waiting.push(BlockReason::Approval),
            phase @ (Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled) => {
                waiting.push(BlockReason::Phase(phase));
            }
        }
        let mut at_number = number;
        while at_number != NONE {
            if self.slot(at_number).verdict() != Verdict::Clear {
                waiting.push(BlockReason::Dependencies(self.unmet_names(at_number, NAMES_MAX)));
            }
            at_number = self.slot(at_number).parent;
        }
        if let Some(until) = self.at(number).state.not_before.filter(|&until| until > at) {
            waiting.push(BlockReason::Until(until));
        }
        if let Some(question) = self.at(number).state.question() {
            waiting.push(BlockReason::Answer(question.text.clone()));
        }
        if slot.reported {
            waiting.push(BlockReason::Check);
        }
        waiting
    }

    /// The outputs that a task gets from what it depends on: by the name it is provided under, else by the task's id.
    pub fn outputs_for(&self, id: &str) -> Vec<(String, crate::Json)> {
        let Some(number) = self.find(id) else { return Vec::new() };
        let task = self.at(number);
        let mut outputs: Vec<(String, crate::Json)> = Vec::new();
        for dependency in &task.spec.depends_on {
            let found = match dependency {
                Dependency::Task(on) => self.task(on.as_str()).and_then(|on| {
                    let name = on.spec.provides.clone().unwrap_or_else(|| on.spec.id.to_string());
                    on.state.output.clone().map(|output| (name, output))
                }),
                Dependency::External(there) => {
                    let key = there.key();
                    let received = task.state.received.get(&key);
                    received.and_then(|received| {
                        let name = received.provides.clone().unwrap_or(key);
                        received.output.clone().map(|output| (name, output))
                    })
                }
            };
            outputs.extend(found.filter(|found| !outputs.contains(found)));
        }
        outputs
    }

    /// The id of a task by its name or by an unambiguous beginning of it.
    pub fn resolve(&self, text: &str) -> Result<TaskId, Vec<TaskId>> {
        if let Some(number) = self.find(text) {
            return Ok(self.task_id(number));
        }
        let mut found: Vec<TaskId> =
            self.live_ids().filter(|id| id.starts_with(text)).take(10).map(TaskId::trusted).collect();
        if found.len() == 1 { Ok(found.remove(0)) } else { Err(found) }
    }
}
