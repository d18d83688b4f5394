//! Enforces stops: only a person can undo a person's stop, and only a person can rerun machine work that has ended.

use super::super::Plan;
use super::super::slot::NONE;
use crate::{Actor, ActorKind, Dependency, Event, Hold, Phase, Refusal, Status, TaskId, TaskSpec};

/// Maximum number of tasks named in a refusal.
const NAMES_MAX: usize = 20;
/// What only people do about the questions of a merge.
const ANSWER_MERGE: &str = "answer a question about a merge";

impl Plan {
    /// Refuses events of agents and workers that would undo a person's stop.
    pub(super) fn keeps_stops(&self, by: &Actor, events: &[Event]) -> Result<(), Refusal> {
        match by.kind {
            ActorKind::Person | ActorKind::System => return Ok(()),
            ActorKind::Agent | ActorKind::Worker => {}
        }
        self.undoes_no_stop(events)?;
        for event in events {
            if let Event::TasksRetried { tasks } = event {
                self.keeps_reports(by, tasks)?;
                self.keeps_machine_work_ended(by, tasks)?;
            }
            if let Event::TaskSkipped { task, .. } = event {
                self.keeps_order(task, false)?;
            }
            if let Event::TasksCancelled { tasks, .. } = event {
                self.keeps_reports(by, tasks)?;
                tasks.iter().try_for_each(|task| self.keeps_order(task, true))?;
            }
            if let Event::TasksRemoved { tasks } = event {
                let parents = tasks.iter().filter_map(|task| self.parent_of(task));
                self.keeps_asked(by, self.families(tasks).chain(parents))?;
            }
            if let Event::TaskRevised { task } = event
                && let Some(number) = self.find(task.id.as_str())
                && (&self.spec_of(number).depends_on, &self.spec_of(number).work)
                    != (&task.depends_on, &task.work)
            {
                self.keeps_asked(by, [number])?;
            }
            if let Event::TasksAdded { tasks, .. } = event {
                self.keeps_checks(by, self.parents_of(tasks))?;
            }
            if let Event::TaskMoved { task, parent, .. } = event {
                self.keeps_asked(by, self.find(task.as_str()).into_iter().chain(self.parent_of(task)))?;
                self.keeps_checks(by, parent.iter().filter_map(|parent| self.find(parent.as_str())))?;
            }
        }
        Ok(())
    }

    /// Returns the refusal of anything but restoring an archived plan.
    pub(super) fn archived_refusal(&self, by: &Actor) -> Refusal {
        self.name_stop(by, Refusal::Archived { stopped_by: None })
    }

    /// Adds the person whose stop causes a refusal, so that an agent or a worker is not told to undo it.
    pub(super) fn name_stop(&self, by: &Actor, mut refusal: Refusal) -> Refusal {
        match by.kind {
            ActorKind::Person | ActorKind::System => return refusal,
            ActorKind::Agent | ActorKind::Worker => {}
        }
        let of_plan = &self.state.stopped_by;
        if let Refusal::Archived { stopped_by } = &mut refusal {
            stopped_by.clone_from(&self.state.archived_by);
        } else if let Refusal::WrongPhase { stopped_by, .. } = &mut refusal {
            stopped_by.clone_from(of_plan);
        } else if let Refusal::WrongStatus { task, stopped_by, .. } = &mut refusal {
            let of_task = self.task(task).and_then(|task| task.state.stopped_by().cloned());
            *stopped_by = of_task.or_else(|| of_plan.clone().filter(|_| self.state.phase.is_finished()));
        }
        refusal
    }

    /// Refuses events that would undo a person's stop.
    pub fn undoes_no_stop(&self, events: &[Event]) -> Result<(), Refusal> {
        for event in events {
            match event {
                Event::PlanUnarchived {} => self.keeps_archived()?,
                Event::PlanResumed { .. } => self.keeps_stopped("resume it")?,
                Event::ApprovalRequested { .. } => {
                    self.keeps_stopped("ask for its approval again before its work has changed")?
                }
                Event::PlanActivated {} => self.keeps_stopped("start it")?,
                Event::TasksAdded { tasks, .. } => {
                    if self.state.phase.is_finished() {
                        self.keeps_stopped("reopen it")?;
                    }
                    self.keep_each_stopped(self.parents_of(tasks))?;
                }
                Event::TaskRevised { task } => {
                    if self.state.phase.is_finished() {
                        self.keeps_stopped("reopen it")?;
                    }
                    if task.skip {
                        self.keeps_held_pending(&task.id)?;
                    }
                    self.keeps_waiting_for_held(task)?;
                }
                Event::TaskMoved { task, parent, .. } => self.keeps_place(task, parent.as_ref())?,
                Event::TasksRemoved { tasks } => {
                    self.keep_each_stopped(self.families(tasks))?;
                    self.keep_each_held(self.families(tasks))?;
                }
                Event::TaskUnheld { task } => self.keep_each_held(self.find(task.as_str()).into_iter())?,
                // What is passed over lets others start, as if it had been done; what is cancelled may let them.
                Event::TasksCancelled { tasks, .. } => {
                    tasks.iter().try_for_each(|task| self.keeps_held_pending(task))?;
                }
                Event::TaskSkipped { task, .. } => self.keeps_held_pending(task)?,
                Event::TasksReset { tasks } | Event::TasksRetried { tasks } => {
                    self.keeps_tasks_stopped(tasks)?;
                }
                Event::PlanCreated { .. }
                | Event::PlanRevised { .. }
                | Event::PlanRestored { .. }
                | Event::PlanMerged { .. }
                | Event::TasksReordered { .. }
                | Event::PlanApproved { .. }
                | Event::StartRefused { .. }
                | Event::PlanRejected { .. }
                | Event::ApprovalVoided {}
                | Event::PlanPaused { .. }
                | Event::PlanFinished { .. }
                | Event::PlanArchived { .. }
                | Event::TaskQueued { .. }
                | Event::TaskStarted { .. }
                | Event::TaskProgressed { .. }
                | Event::TaskDone { .. }
                | Event::TaskReported { .. }
                | Event::TaskFailed { .. }
                | Event::TaskReleased { .. }
                | Event::QuestionAsked { .. }
                | Event::QuestionAnswered { .. }
                | Event::GateRecorded { .. }
                | Event::TaskRefined { .. }
                | Event::DigestAttached { .. }
                | Event::TokensCharged { .. }
                | Event::TaskRolledBack { .. }
                | Event::OutputReceived { .. }
                | Event::OutputWithdrawn { .. }
                | Event::TaskHeld { .. }
                | Event::TaskCommented { .. }
                | Event::TaskLabeled { .. }
                | Event::TaskAssigned { .. } => {}
            }
        }
        Ok(())
    }

    /// Whether these events would rerun machine work that is done.
    pub fn reruns_done_work(&self, events: &[Event]) -> bool {
        let retried = events
            .iter()
            .filter_map(|event| if let Event::TasksRetried { tasks } = event { Some(tasks) } else { None });
        retried
            .flatten()
            .filter_map(|task| self.task(task.as_str()))
            .any(|task| task.spec.work.is_some() && task.state.status == Status::Done)
    }

    fn keeps_archived(&self) -> Result<(), Refusal> {
        match &self.state.archived_by {
            Some(by) => Err(stopped(by, "archived the plan", "", "restore it")),
            None => Ok(()),
        }
    }

    fn keeps_stopped(&self, wanted: &'static str) -> Result<(), Refusal> {
        let stopped_by = self.state.stopped_by.as_ref().or_else(|| self.rejected_by());
        let Some(by) = stopped_by else { return Ok(()) };
        let (did, reason) = match self.state.phase {
            Phase::Paused => ("paused the plan", &self.state.reason),
            Phase::Draft if self.is_reopened_draft() => ("cancelled the plan", &self.state.summary),
            Phase::Draft | Phase::AwaitingApproval | Phase::Active => {
                ("rejected the plan", &self.state.reason)
            }
            Phase::Completed | Phase::Failed | Phase::Cancelled => ("stopped the plan", &self.state.summary),
        };
        Err(stopped(by, did, reason, wanted))
    }

    fn keeps_tasks_stopped(&self, tasks: &[TaskId]) -> Result<(), Refusal> {
        // What was cancelled here and opened elsewhere is a draft again.
        if self.state.phase.is_finished()
            || self.state.phase == Phase::Draft && self.state.stopped_by.is_some()
        {
            self.keeps_stopped("retry its tasks")?;
        }
        self.keep_each_stopped(tasks.iter().filter_map(|task| self.find(task.as_str())))
    }

    fn keep_each_stopped(&self, mut numbers: impl Iterator<Item = u32>) -> Result<(), Refusal> {
        let stopped_task = numbers.find_map(|number| {
            let task = self.at(number);
            task.state.stopped_by().map(|by| (by, task))
        });
        let Some((by, task)) = stopped_task else { return Ok(()) };
        let did = match task.state.status {
            Status::Skipped => format!("skipped task {}", task.spec.id),
            Status::Pending | Status::Running | Status::Done | Status::Failed | Status::Cancelled => {
                format!("cancelled task {}", task.spec.id)
            }
        };
        Err(stopped(by, &did, task.state.reason.as_deref().unwrap_or_default(), "undo that"))
    }

    fn keep_each_held(&self, mut numbers: impl Iterator<Item = u32>) -> Result<(), Refusal> {
        let held = numbers.find_map(|number| {
            let binds = |hold: &&Hold| matches!(hold.by.kind, ActorKind::Person | ActorKind::System);
            let hold = self.hold_of(number).filter(binds)?;
            Some((hold, number))
        });
        let Some((Hold { by, reason }, number)) = held else { return Ok(()) };
        let wanted = match self.hold_of(number).is_some_and(Hold::is_dispute) {
            true => ANSWER_MERGE,
            false => "lift the hold",
        };
        Err(stopped(by, &format!("held task {}", self.id_of(number)), reason, wanted))
    }

    /// Refuses to pass over a task that has not begun, if it or a task above it is held.
    fn keeps_held_pending(&self, task: &TaskId) -> Result<(), Refusal> {
        let pending = self.find(task.as_str()).filter(|&number| self.slot(number).status == Status::Pending);
        self.keep_each_held(pending.into_iter().flat_map(|number| self.line(number)))
    }

    /// Refuses to take away a dependency on a task that is held, or that waits for one.
    fn keeps_waiting_for_held(&self, new: &TaskSpec) -> Result<(), Refusal> {
        let Some(number) = self.find(new.id.as_str()) else { return Ok(()) };
        let removed = self.spec_of(number).depends_on.iter().filter(|on| !new.depends_on.contains(on));
        for on in removed.filter_map(Dependency::here) {
            let open = self.open_before(on.as_str()).tasks;
            let open = open.iter().filter_map(|task| self.find(task.as_str()));
            self.keep_each_held(open.flat_map(|number| self.line(number)))?;
        }
        Ok(())
    }

    /// Refuses to move a task to another parent if that would pass by a stop: a group ends without the tasks that leave it,
    /// and a task that gets children ends with them.
    fn keeps_place(&self, task: &TaskId, parent: Option<&TaskId>) -> Result<(), Refusal> {
        let Some(number) = self.find(task.as_str()) else { return Ok(()) };
        let parent = parent.and_then(|parent| self.find(parent.as_str()));
        if self.slot(number).parent == parent.unwrap_or(NONE) {
            return Ok(());
        }
        match self.state.phase {
            Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => {
                self.keeps_stopped("move its tasks")?;
            }
            // A rejected plan is there to be changed.
            Phase::Draft | Phase::AwaitingApproval | Phase::Active => {}
        }
        let family = || self.family(number).into_iter();
        self.keep_each_stopped(family().chain(parent))?;
        self.keep_each_held(family().chain(parent.filter(|&parent| !self.slot(parent).is_parent())))?;
        let new: Vec<u32> = parent.into_iter().flat_map(|parent| self.line(parent)).collect();
        self.keep_each_held(self.line(number).skip(1).filter(|above| !new.contains(above)))
    }

    /// Refuses to remove tasks, or to change their order or place, while a person is asked about it.
    fn keeps_asked(&self, by: &Actor, tasks: impl IntoIterator<Item = u32>) -> Result<(), Refusal> {
        let is_asked = |number| self.removals_asked.contains(&self.spec_of(number).id);
        match !self.removals_asked.is_empty() && tasks.into_iter().any(is_asked) {
            true => Err(Refusal::OnlyAPerson { what: ANSWER_MERGE, by: by.clone() }),
            false => Ok(()),
        }
    }

    fn parent_of(&self, task: &TaskId) -> Option<u32> {
        self.line(self.find(task.as_str())?).nth(1)
    }

    /// Refuses to give children to a task with a check: it would be done with them, without the evidence.
    fn keeps_checks(&self, by: &Actor, mut parents: impl Iterator<Item = u32>) -> Result<(), Refusal> {
        let has_check = |parent: u32| self.spec_of(parent).check.is_some() && !self.slot(parent).is_parent();
        match parents.any(has_check) {
            true => {
                Err(Refusal::OnlyAPerson { what: "give children to a task with a check", by: by.clone() })
            }
            false => Ok(()),
        }
    }

    /// Iterates over the parents of new tasks that the plan has already.
    fn parents_of<'a>(&'a self, tasks: &'a [TaskSpec]) -> impl Iterator<Item = u32> + 'a {
        let parents = tasks.iter().filter_map(|task| task.parent.as_ref());
        parents.filter_map(|parent| self.find(parent.as_str()))
    }

    /// Iterates over a task and the tasks above it.
    fn line(&self, number: u32) -> impl Iterator<Item = u32> {
        let above = move |at: &u32| Some(self.slot(*at).parent).filter(|parent| *parent != NONE);
        std::iter::successors(Some(number), above)
    }

    /// Refuses to end a task without work before its turn, if work waits for it: nobody approved the work in that order.
    fn keeps_order(&self, task: &TaskId, is_cancelled: bool) -> Result<(), Refusal> {
        let Some(number) = self.find(task.as_str()) else { return Ok(()) };
        let opens = |number| !is_cancelled || self.is_opened_by_any_end(number);
        if self.slot(number).status != Status::Pending
            || !self.is_waited_for_by_work(number)
            || !opens(number)
        {
            return Ok(());
        }
        let open = self.open_work_before(task.as_str());
        let waits_for: Vec<String> = open.iter().take(NAMES_MAX).map(ToString::to_string).collect();
        match waits_for.is_empty() {
            true => Ok(()),
            false => Err(Refusal::Blocked { task: task.to_string(), waits_for }),
        }
    }

    /// Refuses to discard a report that is to be checked: a person may be reading it, and would answer about another one.
    fn keeps_reports(&self, by: &Actor, tasks: &[TaskId]) -> Result<(), Refusal> {
        let mut numbers = tasks.iter().filter_map(|task| self.find(task.as_str()));
        numbers.try_for_each(|number| self.is_not_reported(by, number))
    }

    /// Refuses to rerun finished machine work: approved work is done once, plus the retries of its policy.
    fn keeps_machine_work_ended(&self, by: &Actor, tasks: &[TaskId]) -> Result<(), Refusal> {
        if by.kind == ActorKind::Worker {
            return Err(Refusal::OnlyAPerson { what: "retry a task", by: by.clone() });
        }
        let numbers = tasks.iter().filter_map(|task| self.find(task.as_str()));
        for task in numbers.map(|number| self.at(number)).filter(|task| task.spec.work.is_some()) {
            let is_used_up = task.state.attempt >= task.spec.attempts_max();
            let what = match task.state.status {
                Status::Done => "rerun finished machine work",
                Status::Failed | Status::Skipped | Status::Cancelled if is_used_up => {
                    "rerun finished machine work"
                }
                // It asks a person: its attempts and failures would no longer count.
                Status::Pending if is_used_up || task.state.tries > 0 => "repeat an attempt of machine work",
                Status::Failed | Status::Skipped | Status::Cancelled | Status::Pending | Status::Running => {
                    continue;
                }
            };
            return Err(Refusal::OnlyAPerson { what, by: by.clone() });
        }
        Ok(())
    }
}

/// Returns the actor if it is a person; a stop by an agent or a worker is not binding.
pub(super) fn person(by: &Actor) -> Option<Actor> {
    (by.kind == ActorKind::Person).then(|| by.clone())
}

fn stopped(by: &Actor, did: &str, reason: &str, wanted: &'static str) -> Refusal {
    Refusal::StoppedByPerson { by: by.to_string(), did: did.to_owned(), reason: reason.to_owned(), wanted }
}
