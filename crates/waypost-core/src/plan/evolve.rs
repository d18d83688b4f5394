//! Applies events; the only place where a plan changes. Trusts its events: they were decided, or read back from the
//! store.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::changes::Propagation;
use super::propagate::forget_outcome;
use super::slot::{NONE, Numbers, Slot};
use super::task_index::Index;
use super::{Plan, numbered};
use crate::{
    Actor, Answer, Approval, Comment, Dependency, Event, ExternalTaskRef, Hold, PLAN_ENDED, Phase, PlanSpec,
    PlanState, PlannerNotes, Rejection, Report, StartRefusalReason, Status, Task, TaskExtras, TaskId,
    TaskSpec, Timestamp, UpstreamResult, limits,
};

impl Plan {
    /// Advances the plan by one version: all events of one command, at one point in time.
    pub fn advance(&mut self, events: &[Event], at: Timestamp) {
        for event in events {
            self.evolve(event, at);
        }
        self.finish_version(at);
    }

    /// Completes one version after its events. A plan whose last task has ended ends only here: in between it may have
    /// been given something else to do.
    pub fn finish_version(&mut self, at: Timestamp) {
        self.settle_phase(at);
        self.refresh_work();
        self.version += 1;
        self.state.updated_at = Some(at);
    }

    /// Applies one event that happened at `at`, and everything that follows from it.
    pub fn evolve(&mut self, event: &Event, at: Timestamp) {
        self.apply(event, at);
        self.settle(at);
    }

    fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::PlanCreated { draft, by } => {
                let mut state = draft.state.clone();
                state.created_by = Some(by.clone());
                state.created_at.get_or_insert(at);
                // One by one: a second list of all tasks would be as large as the plan.
                let tasks = draft.tasks.iter().map(|task| {
                    let mut task = task.clone();
                    task.name_received();
                    task.state.created_at.get_or_insert(at);
                    if task.state.status.is_finished() {
                        task.state.finished_at.get_or_insert(at);
                    }
                    task
                });
                let (runs, ended) =
                    (matches!(state.phase, Phase::Active | Phase::Paused), state.phase.is_finished());
                if runs || ended {
                    state.started_at.get_or_insert(at);
                }
                state.finished_at = ended.then(|| state.finished_at.unwrap_or(at));
                self.fill(draft.spec.clone(), state, tasks);
                self.dirty.whole = true;
                if runs {
                    self.look_at_all();
                }
            }
            Event::PlanRevised { .. } => self.revise_plan(event),
            // The events that follow it change the plan.
            Event::PlanRestored { .. } => {}
            Event::PlanMerged { to_draft, begun, removals, .. } => {
                self.removals_asked.clone_from(removals);
                if *begun && self.state.started_at.is_none() {
                    self.state.started_at = Some(at);
                    self.look_at_all();
                }
                if *to_draft && self.state.phase.is_finished() {
                    self.state.phase = Phase::Draft;
                    (self.state.finished_at, self.state.closed) = (None, false);
                    self.dirty.whole = true;
                }
            }
            Event::TasksAdded { tasks, index } => self.add_tasks(tasks, *index, at),
            Event::TaskRevised { task } => self.revise_task(task, at),
            Event::TasksRemoved { tasks } => self.remove_tasks(tasks),
            Event::TaskMoved { task, parent, index } => self.move_task(task, parent.as_ref(), *index, at),
            Event::TasksReordered { parent, order } => self.reorder(parent.as_ref(), order),
            Event::TasksReset { tasks } | Event::TasksRetried { tasks } => {
                self.state
                    .start_refusals
                    .retain(|refusal| refusal.reason != StartRefusalReason::GateNotProved);
                for task in tasks {
                    self.with(task, |plan, number| plan.reopen(number, at));
                }
            }
            Event::ApprovalRequested { message } => {
                self.state.approval_required = true;
                // That a person ran the plan as their own is not the approval that is asked for.
                self.state.approval = self.state.approval.take().filter(|approval| !approval.is_own());
                self.state.phase = Phase::AwaitingApproval;
                self.state.reason.clone_from(message);
            }
            Event::PlanApproved { by, version, note, work } => {
                self.forget_rejection();
                let (by, note, work) = (by.clone(), note.clone(), work.clone());
                self.state.approval = Some(Approval { by, at, version: *version, note, work });
                self.state.start_refusals.clear();
                if matches!(self.state.phase, Phase::Draft | Phase::AwaitingApproval) {
                    self.state.reason = String::new();
                    self.activate(at);
                }
            }
            Event::StartRefused { refusal } => {
                let refusals = &mut self.state.start_refusals;
                refusals.retain(|known| known.worker != refusal.worker);
                if refusals.len() == limits::START_REFUSALS_MAX {
                    refusals.remove(0);
                }
                refusals.push((**refusal).clone());
            }
            Event::PlanRejected { by, reason } => {
                self.forget_rejection();
                if self.state.rejections.len() == limits::REJECTIONS_MAX {
                    self.state.rejections.remove(0);
                }
                let rejection = Rejection { by: by.clone(), work: self.work_digest_text() };
                self.state.rejections.push(rejection);
                self.state.stopped_by = Some(by.clone());
                // After a rejection, approval is required before anything runs.
                self.state.approval_required = true;
                self.state.approval_waived = false;
                self.state.approval = None;
                self.state.start_refusals.clear();
                self.state.phase = Phase::Draft;
                self.state.reason.clone_from(reason);
            }
            Event::ApprovalVoided {} => {
                if self.state.phase == Phase::Draft {
                    // It is no longer what was rejected.
                    self.state.stopped_by = None;
                }
                self.state.approval = None;
                self.state.start_refusals.clear();
                self.state.approval_required = true;
                // A person's pause holds: resuming leads back to a draft.
                let paused_by_person = self.state.phase == Phase::Paused && self.state.stopped_by.is_some();
                if matches!(self.state.phase, Phase::Active | Phase::Paused) && !paused_by_person {
                    self.state.phase = Phase::AwaitingApproval;
                }
            }
            Event::PlanActivated {} => self.activate(at),
            Event::PlanPaused { reason, by } => {
                self.state.phase = Phase::Paused;
                self.stopped_by(by.as_ref());
                self.state.reason.clone_from(reason);
            }
            Event::PlanResumed { to_draft } => {
                self.state.phase = if *to_draft { Phase::Draft } else { Phase::Active };
                self.state.stopped_by = None;
                self.state.reason = String::new();
            }
            Event::PlanFinished { phase, summary, by } => {
                self.finish_plan(*phase, summary, at);
                self.stopped_by(by.as_ref());
            }
            Event::PlanArchived { by } => {
                self.set_archived(true);
                self.state.archived_by.clone_from(by);
            }
            Event::PlanUnarchived {} => {
                self.set_archived(false);
                self.state.archived_by = None;
            }
            Event::TaskQueued { task, attempt, worker } => {
                self.begin_attempt(task, *attempt, worker, None, at)
            }
            Event::TaskStarted { task, attempt, worker, started_at } => {
                self.begin_attempt(task, *attempt, worker, Some(started_at.unwrap_or(at)), at);
            }
            Event::TaskProgressed { task, progress } => self.with(task, |plan, number| {
                plan.change(number, |task| {
                    task.state.progress = Some(progress.clone());
                    task.state.updated_at = Some(at);
                });
            }),
            Event::TaskDone { task, result, output, evidence } => {
                self.finish(task, Status::Done, at, |state| {
                    state.result.clone_from(result);
                    state.output.clone_from(output);
                    state.error = None;
                    state.reason = None;
                    state.because_of = None;
                    if let Some(evidence) = evidence {
                        state.change_aside(|aside| aside.evidence = Some((**evidence).clone()));
                    }
                })
            }
            Event::TaskReported { task, result, output, by } => {
                let report = Report { result: result.clone(), output: output.clone(), at, by: by.clone() };
                self.leave(task, at, |state| {
                    (state.error, state.reason) = (None, None);
                    state.change_aside(|aside| aside.reported = Some(report));
                });
            }
            Event::TaskFailed { task, error, again_at, evidence } => self.with(task, |plan, number| {
                plan.change(number, |task| {
                    let state = &mut task.state;
                    state.tries += 1;
                    state.error = Some(error.clone());
                    state.reason = None;
                    state.because_of = None;
                    state.not_before = *again_at;
                    // A check that could not run says nothing about the report; a check that failed does.
                    if let Some(evidence) = evidence {
                        state.change_aside(|aside| {
                            aside.reported = None;
                            aside.evidence = Some((**evidence).clone());
                        });
                    }
                });
                let status = if again_at.is_some() { Status::Pending } else { Status::Failed };
                plan.set_status(number, status, at);
            }),
            Event::TaskReleased { task, reason } => self.leave(task, at, |state| {
                state.reason = Some(reason.clone()).filter(|reason| !reason.is_empty());
            }),
            Event::QuestionAsked { task, question } => self.leave(task, at, |state| {
                state.change_aside(|aside| aside.question = Some((**question).clone()));
            }),
            Event::QuestionAnswered { task, answer, by } => self.with(task, |plan, number| {
                plan.change(number, |task| {
                    task.state.updated_at = Some(at);
                    task.state.change_aside(|aside| {
                        let Some(question) = aside.question.take() else { return };
                        let (answer, by) = (answer.clone(), by.clone());
                        let (question, state) = (question.text, question.state);
                        aside.add_answer(Answer { question, answer, by, at, state });
                    });
                });
            }),
            Event::GateRecorded { task, gate } => {
                // Whether that is enough is for each worker to judge again.
                self.state
                    .start_refusals
                    .retain(|refusal| refusal.reason != StartRefusalReason::GateNotProved);
                self.with(task, |plan, number| {
                    plan.change(number, |task| {
                        task.state.updated_at = Some(at);
                        task.state.change_aside(|aside| aside.gate = Some((**gate).clone()));
                    });
                });
            }
            Event::TaskSkipped { task, reason, by } => self.finish(task, Status::Skipped, at, |state| {
                state.reason.clone_from(reason);
                state.because_of = None;
                if by.is_some() {
                    state.change_aside(|aside| aside.stopped_by.clone_from(by));
                }
            }),
            Event::TasksCancelled { tasks, reason, by } => {
                let numbers: Vec<u32> = tasks.iter().filter_map(|task| self.find(task.as_str())).collect();
                self.cancel(&numbers, reason, at);
                for number in numbers.into_iter().filter(|_| by.is_some()) {
                    self.change(number, |task| {
                        task.state.change_aside(|aside| aside.stopped_by.clone_from(by));
                    });
                }
            }
            Event::TaskRefined { task, refinement, reasoning, tokens } => {
                self.think(task, *tokens, at, |thinking| {
                    thinking.refinement = Some(*refinement);
                    if reasoning.is_some() {
                        thinking.reasoning.clone_from(reasoning);
                    }
                })
            }
            Event::DigestAttached { task, digest, tokens } => self.think(task, *tokens, at, |thinking| {
                thinking.digest = Some(digest.clone());
            }),
            Event::TokensCharged { task, tokens, call } => {
                self.state.calls = self.state.calls.max(*call);
                match task {
                    Some(task) => self.think(task, *tokens, at, |_| {}),
                    None => self.state.tokens_used = self.state.tokens_used.saturating_add(*tokens),
                }
            }
            Event::TaskRolledBack { task, tokens } => {
                // The plan was charged when the tokens were spent.
                self.think(task, 0, at, |thinking| {
                    thinking.tokens = thinking.tokens.saturating_add(*tokens);
                    (thinking.refinement, thinking.reasoning, thinking.digest) = (None, None, None);
                });
            }
            Event::OutputReceived { task, from, received } => self.receive(task, at, |heard| {
                heard.insert(from.key(), received.clone());
            }),
            Event::OutputWithdrawn { task, from } => self.receive(task, at, |heard| {
                heard.remove(&from.key());
            }),
            Event::TaskHeld { task, by, reason } => {
                self.set_hold(task, Some(Hold { by: by.clone(), reason: reason.clone() }), at);
            }
            Event::TaskUnheld { task } => self.set_hold(task, None, at),
            Event::TaskCommented { task, by, text, at: written, place } => {
                let comment = Comment { by: by.clone(), at: written.unwrap_or(at), text: text.clone() };
                self.annotate(task, at, |aside| aside.insert_comment(comment, *place));
            }
            Event::TaskLabeled { task, labels } => {
                self.annotate(task, at, |aside| aside.labels.clone_from(labels));
            }
            Event::TaskAssigned { task, assignee } => {
                self.annotate(task, at, |aside| aside.assignee.clone_from(assignee));
            }
        }
    }

    /// Assigns a task to a worker; a queued task has not started yet.
    fn begin_attempt(
        &mut self,
        task: &TaskId,
        attempt: u32,
        worker: &str,
        started_at: Option<Timestamp>,
        at: Timestamp,
    ) {
        let is_reserved = self.task(task.as_str()).is_some_and(|known| {
            known.state.status == Status::Running
                && (known.state.attempt, known.state.worker.as_deref()) == (attempt, Some(worker))
        });
        if !is_reserved {
            // A worker that takes a task no longer refuses to start the plan; behind a gate it still may. Between the
            // reservation and the start it may have begun to refuse.
            self.state.start_refusals.retain(|refusal| {
                refusal.worker != worker || refusal.reason == StartRefusalReason::GateNotProved
            });
        }
        self.with(task, |plan, number| {
            plan.change(number, |task| {
                let state = &mut task.state;
                state.attempt = attempt;
                state.started_at = started_at;
                state.not_before = None;
                state.worker = Some(worker.to_owned());
                state.progress = None;
                state.error = None;
                state.reason = None;
            });
            plan.set_status(number, Status::Running, at);
        });
    }

    fn with(&mut self, task: &TaskId, change: impl FnOnce(&mut Self, u32)) {
        if let Some(number) = self.find(task.as_str()) {
            change(self, number);
        }
    }

    fn set_hold(&mut self, task: &TaskId, held: Option<Hold>, at: Timestamp) {
        self.with(task, |plan, number| {
            plan.change(number, |task| {
                task.state.updated_at = Some(at);
                task.state.change_aside(|aside| aside.held = held);
            });
        });
    }

    /// Changes what people and agents have said about a task.
    fn annotate(&mut self, task: &TaskId, at: Timestamp, change: impl FnOnce(&mut TaskExtras)) {
        self.with(task, |plan, number| {
            plan.change(number, |task| {
                task.state.updated_at = Some(at);
                task.state.change_aside(change);
            });
        });
    }

    /// Updates the results that a task received from other plans.
    fn receive(
        &mut self,
        task: &TaskId,
        at: Timestamp,
        change: impl FnOnce(&mut BTreeMap<String, UpstreamResult>),
    ) {
        self.with(task, |plan, number| {
            plan.change(number, |task| {
                change(&mut task.state.received);
                task.state.updated_at = Some(at);
            });
            plan.count_dependencies(number);
            plan.dirty.waits.push(number);
            plan.propagations.push(Propagation::Look(number));
            // A plan that ended by itself for lack of this continues; one that its author ended does not.
            plan.revived |= plan.state.phase.is_finished() && !plan.state.closed;
        });
    }

    /// Returns a task to pending without a worker.
    fn leave(&mut self, task: &TaskId, at: Timestamp, change: impl FnOnce(&mut crate::TaskState)) {
        self.with(task, |plan, number| {
            plan.change(number, |task| {
                (task.state.worker, task.state.progress) = (None, None);
                task.state.not_before = None;
                change(&mut task.state);
            });
            plan.set_status(number, Status::Pending, at);
        });
    }

    fn finish(
        &mut self,
        task: &TaskId,
        status: Status,
        at: Timestamp,
        change: impl FnOnce(&mut crate::TaskState),
    ) {
        self.with(task, |plan, number| {
            plan.change(number, |task| change(&mut task.state));
            plan.set_status(number, status, at);
            // It may have ended the same way before, with another output.
            plan.dirty.outcomes.push(number);
        });
    }

    fn think(&mut self, task: &TaskId, tokens: i64, at: Timestamp, change: impl FnOnce(&mut PlannerNotes)) {
        self.state.tokens_used = self.state.tokens_used.saturating_add(tokens);
        self.with(task, |plan, number| {
            plan.change(number, |task| {
                task.state.updated_at = Some(at);
                let thinking = task.spec.thinking.get_or_insert_default();
                thinking.tokens = thinking.tokens.saturating_add(tokens);
                change(thinking);
            });
        });
    }

    fn activate(&mut self, at: Timestamp) {
        self.dirty.whole |= self.state.phase.is_finished();
        self.state.phase = Phase::Active;
        self.state.finished_at = None;
        self.state.closed = false;
        self.state.stopped_by = None;
        if self.state.started_at.is_none() {
            // From now on the author's skips, and failures that came with an import, have consequences.
            self.state.started_at = Some(at);
            self.look_at_all();
        }
    }

    /// Resets a task on request: it is to be done again, even if the plan had ended.
    fn reopen(&mut self, number: u32, at: Timestamp) {
        if !self.slot(number).is_parent() {
            self.opened |= self.slot(number).status.is_finished();
            self.reset_task(number, at);
        }
    }

    fn finish_plan(&mut self, phase: Phase, summary: &str, at: Timestamp) {
        self.state.started_at.get_or_insert(at);
        let open = self.order().into_iter().filter(|&number| !self.slot(number).is_parent());
        let open: Vec<u32> = open.filter(|&number| !self.slot(number).status.is_finished()).collect();
        self.cancel(&open, PLAN_ENDED, at);
        self.state.phase = phase;
        self.state.finished_at = Some(at);
        self.state.closed = true;
        self.state.summary = summary.to_owned();
        self.dirty.whole = true;
    }

    /// Records a person's stop. A later stop by an agent does not remove it.
    fn stopped_by(&mut self, by: Option<&Actor>) {
        if let Some(by) = by {
            self.state.stopped_by = Some(by.clone());
        }
    }

    fn set_archived(&mut self, archived: bool) {
        self.state.archived = archived;
        self.dirty.whole = true;
    }

    fn cancel(&mut self, numbers: &[u32], reason: &str, at: Timestamp) {
        for &number in numbers {
            // What is skipped because of others can be cancelled, so that it stays so when they are done again.
            let follows = self.is_skipped_along(number);
            if self.slot(number).is_parent() || self.slot(number).status.is_finished() && !follows {
                continue;
            }
            self.change(number, |task| {
                task.state.reason = Some(reason.to_owned());
                task.state.because_of = None;
                task.state.not_before = None;
            });
            self.set_status(number, Status::Cancelled, at);
        }
    }

    fn revise_plan(&mut self, event: &Event) {
        let Event::PlanRevised { title, goal, status, owner, queue, token_budget, body, foreign } = event
        else {
            return;
        };
        self.dirty.whole |= owner.is_some();
        self.work_digest = OnceLock::new();
        let spec = &mut self.spec;
        let texts = [
            (title, &mut spec.title),
            (goal, &mut spec.goal),
            (status, &mut spec.status),
            (owner, &mut spec.owner),
            (queue, &mut spec.queue),
            (body, &mut spec.body),
        ];
        for (new, old) in texts {
            if let Some(new) = new {
                old.clone_from(new);
            }
        }
        if let Some(budget) = token_budget {
            spec.token_budget = (*budget > 0).then_some(*budget);
        }
        if let Some(foreign) = foreign {
            spec.foreign.clone_from(foreign);
        }
    }

    /// Builds the whole graph from a list of tasks, in linear time.
    pub(super) fn fill(
        &mut self,
        spec: PlanSpec,
        state: PlanState,
        tasks: impl ExactSizeIterator<Item = Task>,
    ) {
        self.spec = spec;
        self.state = state;
        (self.work_tree, self.work_digest) = (OnceLock::new(), OnceLock::new());
        self.index = Index::with_capacity(tasks.len());
        self.slots.reserve(tasks.len());
        for task in tasks {
            self.push_slot(task);
        }
        let last_gone = self.state.numbers_gone.get("t").copied().unwrap_or_default();
        self.next_number = self.next_number.max(last_gone.saturating_add(1));
        for number in 0..self.slots.len() as u32 {
            let before = self.dependencies_here(number);
            let parent = self.spec_of(number).parent.as_ref().and_then(|parent| self.find(parent.as_str()));
            let slot = self.slot_mut(number);
            slot.before = before;
            slot.parent = parent.unwrap_or(NONE);
        }
        self.connect();
    }

    /// Adds a slot with its id for a task, not yet connected to the graph.
    fn push_slot(&mut self, task: Task) -> u32 {
        let number = self.slots.len() as u32;
        let start = self.ids.len() as u32;
        self.ids.push_str(task.spec.id.as_str());
        let mut slot = Slot::new((start, self.ids.len() as u32 - start));
        slot.task = OnceLock::from(Box::new(task));
        slot.mirror();
        self.atomic += u32::from(slot.atomic);
        self.skips += u32::from(slot.skip);
        self.slots.push(slot);
        self.add_name(number);
        number
    }

    /// Computes everything derived, for slots that know their parents and dependencies.
    pub(super) fn connect(&mut self) {
        for number in 0..self.slots.len() as u32 {
            for place in 0..self.slot(number).before.len() {
                let on = self.slot(number).before[place];
                self.slot_mut(on).after.push(number);
            }
            let parent = self.slot(number).parent;
            self.siblings_mut(parent).push(number);
        }
        let mut ready = Vec::new();
        for number in self.order() {
            self.count_dependencies(number);
            self.count_children(number);
            let inside = self.inside_of(number);
            let slot = self.slot_mut(number);
            slot.inside = inside;
            let (status, is_parent, elsewhere) = (slot.status, slot.is_parent(), slot.elsewhere);
            if !is_parent {
                self.counts[status as usize] += 1;
            }
            if status == Status::Running {
                self.slot_mut(number).queued = self.at(number).state.is_queued();
                self.running.insert(number);
            }
            if self.slot(number).asking {
                self.asking.insert(number);
            }
            if elsewhere > 0 {
                self.dirty.waits.push(number);
            }
            if self.is_ready(number) {
                self.slot_mut(number).ready = true;
                ready.push((Reverse(self.slot(number).priority), number));
            }
        }
        self.ready = ready.into_iter().collect();
    }

    /// Returns the numbers of a task's dependencies in this plan, without duplicates.
    fn dependencies_here(&self, number: u32) -> Numbers {
        let here = self.spec_of(number).depends_on.iter().filter_map(Dependency::here);
        let mut before: Numbers = here.filter_map(|task| self.find(task.as_str())).collect();
        before.sort_unstable();
        before.dedup();
        before
    }

    /// Connects a task to its dependencies, in both directions.
    fn link(&mut self, number: u32) {
        let before = self.dependencies_here(number);
        for &on in &before {
            self.slot_mut(on).after.push(number);
        }
        self.slot_mut(number).before = before;
    }

    fn unlink(&mut self, number: u32) {
        for on in std::mem::take(&mut self.slot_mut(number).before) {
            let after = &mut self.slot_mut(on).after;
            if let Some(place) = after.iter().position(|&other| other == number) {
                after.swap_remove(place);
            }
        }
    }

    /// Recounts the dependencies of one task.
    pub(super) fn count_dependencies(&mut self, number: u32) {
        let slot = self.slot(number);
        let (mut unmet, mut met) = (slot.elsewhere_unmet, slot.elsewhere_met);
        for &on in &slot.before {
            unmet += u32::from(!self.slot(on).status.is_finished());
            met += u32::from(self.slot(on).satisfies);
        }
        let slot = self.slot_mut(number);
        (slot.unmet, slot.met) = (unmet, met);
    }

    fn count_children(&mut self, number: u32) {
        let children = self.slot(number).children.iter();
        let open = children.filter(|&&child| !self.slot(child).status.is_finished()).count();
        self.slot_mut(number).open_children = open as u32;
    }

    fn add_tasks(&mut self, tasks: &[TaskSpec], index: Option<usize>, at: Timestamp) {
        let first = self.slots.len() as u32;
        for spec in tasks {
            let mut task = Task::new(spec.clone());
            task.state.created_at = Some(at);
            task.state.updated_at = Some(at);
            // A task with this id may have existed before, and its worker may still report.
            task.state.attempt = self.state.attempts_gone;
            self.push_slot(task);
            self.counts[Status::Pending as usize] += 1;
        }
        // Two passes: tasks may depend on later ones of the same list, and be their children.
        let mut places: BTreeMap<u32, usize> = BTreeMap::new();
        for number in first..self.slots.len() as u32 {
            self.link(number);
            let parent = self.spec_of(number).parent.as_ref().and_then(|parent| self.find(parent.as_str()));
            let parent = parent.unwrap_or(NONE);
            let end = self.siblings(parent).len();
            let place = match places.get(&parent) {
                Some(place) => *place,
                None if places.is_empty() => index.unwrap_or(end).min(end),
                None => end,
            };
            places.insert(parent, place + 1);
            self.adopt(number, parent, place);
        }
        for number in first..self.slots.len() as u32 {
            self.count_dependencies(number);
            if self.slot(number).elsewhere > 0 {
                self.dirty.waits.push(number);
            }
            self.propagations.push(Propagation::Look(number));
        }
        self.opened = true;
    }

    /// Inserts a task among the children of `parent`.
    fn adopt(&mut self, number: u32, parent: u32, place: usize) {
        if parent != NONE && !self.slot(parent).is_parent() {
            // The parent was a plain task and becomes a group, which is not counted and ends as its children end.
            self.counts[self.slot(parent).status as usize] -= 1;
            if self.slot(parent).asking || self.slot(parent).reported {
                self.change(parent, |task| task.state.close_aside());
            }
            if self.slot(parent).status.is_finished() {
                let because_of = self.at(parent).state.because_of.clone();
                self.change(parent, |task| {
                    forget_outcome(task);
                    task.state.because_of = because_of;
                });
            }
            self.propagations.push(Propagation::Look(parent));
        }
        self.slot_mut(number).parent = parent;
        self.touch_work(number);
        let siblings = self.siblings_mut(parent);
        let place = place.min(siblings.len());
        siblings.insert(place, number);
        if parent != NONE {
            let open = u32::from(!self.slot(number).status.is_finished());
            self.slot_mut(parent).open_children += open;
            self.propagations.push(Propagation::Family(parent));
        }
    }

    /// Detaches tasks from their parents, all at once: each list of siblings is traversed once.
    fn orphan(&mut self, numbers: &BTreeSet<u32>) {
        let parents: BTreeSet<u32> = numbers.iter().map(|&number| self.slot(number).parent).collect();
        for &number in numbers {
            let open = u32::from(!self.slot(number).status.is_finished());
            let parent = std::mem::replace(&mut self.slot_mut(number).parent, NONE);
            if parent != NONE {
                self.slot_mut(parent).open_children -= open;
            }
        }
        for parent in parents {
            self.siblings_mut(parent).retain(|number| !numbers.contains(number));
            if parent == NONE {
                continue;
            }
            if self.slot(parent).is_parent() {
                self.propagations.push(Propagation::Family(parent));
            } else {
                // Without children it is a plain task again.
                self.counts[self.slot(parent).status as usize] += 1;
                self.propagations.push(Propagation::Look(parent));
            }
        }
    }

    fn revise_task(&mut self, spec: &TaskSpec, at: Timestamp) {
        let Some(number) = self.find(spec.id.as_str()) else { return };
        self.touch_work(number);
        // The ready set is sorted by priority: remove it under the old one, insert it under the new one.
        let was_ready = self.slot(number).ready;
        if was_ready {
            let key = (Reverse(self.slot(number).priority), number);
            self.ready.remove(&key);
        }
        let unskipped = self.slot(number).skip && !spec.skip;
        let relink = self.spec_of(number).depends_on != spec.depends_on;
        self.change(number, |task| {
            // A result of a removed dependency would be stale if the dependency were added again.
            let keys = |spec: &TaskSpec| -> Vec<String> {
                spec.depends_on.iter().filter_map(Dependency::external).map(ExternalTaskRef::key).collect()
            };
            let (old, new) = (keys(&task.spec), keys(spec));
            task.state.received.retain(|key, _| new.contains(key) || !old.contains(key));
            // The report or question was about different work.
            if task.spec.description != spec.description || !task.spec.runs_the_same_as(spec) {
                task.state.close_aside();
            }
            let parent = task.spec.parent.take();
            task.spec = TaskSpec { parent, ..spec.clone() };
            task.state.updated_at = Some(at);
        });
        if was_ready {
            let key = (Reverse(self.slot(number).priority), number);
            self.ready.insert(key);
        }
        if relink {
            self.unlink(number);
            self.link(number);
            self.dirty.waits.push(number);
        }
        self.count_dependencies(number);
        self.propagations.push(Propagation::Look(number));
        if self.slot(number).status.is_finished() {
            // Its output may have another name now.
            self.dirty.outcomes.push(number);
        }
        if unskipped {
            for member in self.family(number) {
                let slot = self.slot(member);
                if slot.status == Status::Skipped && slot.satisfies {
                    self.reopen(member, at);
                }
            }
        }
    }

    fn remove_tasks(&mut self, tasks: &[TaskId]) {
        let numbers: BTreeSet<u32> = tasks.iter().filter_map(|task| self.find(task.as_str())).collect();
        self.orphan(&numbers);
        for number in numbers {
            for member in self.family(number).into_iter().rev() {
                self.forget(member);
            }
        }
    }

    fn forget(&mut self, number: u32) {
        self.unlink(number);
        let id = self.task_id(number);
        for next in std::mem::take(&mut self.slot_mut(number).after) {
            self.change(next, |task| {
                task.spec.depends_on.retain(|dependency| dependency.here() != Some(&id))
            });
            self.slot_mut(next).before.retain(|on| *on != number);
            self.touch_work(next);
            self.count_dependencies(next);
            self.propagations.push(Propagation::Look(next));
        }
        if !self.slot(number).is_parent() {
            self.counts[self.slot(number).status as usize] -= 1;
        }
        self.state.attempts_gone = self.state.attempts_gone.max(self.at(number).state.attempt);
        if let Some((prefix, digits)) = numbered(id.as_str()) {
            let last = self.state.numbers_gone.entry(prefix.to_owned()).or_default();
            *last = digits.max(*last);
        }
        self.remove_name(number);
        if self.slot(number).elsewhere > 0 {
            self.dirty.gone.push(id);
        }
        self.dirty.outcomes.push(number);
        self.touch_work(number);
        let slot = self.slot_mut(number);
        slot.alive = false;
        slot.children = Numbers::new();
        let (was_atomic, was_skip) = (std::mem::take(&mut slot.atomic), std::mem::take(&mut slot.skip));
        self.atomic -= u32::from(was_atomic);
        self.skips -= u32::from(was_skip);
        self.set_ready(number);
        self.running.remove(&number);
        self.asking.remove(&number);
    }

    fn move_task(&mut self, task: &TaskId, parent: Option<&TaskId>, index: usize, at: Timestamp) {
        let Some(number) = self.find(task.as_str()) else { return };
        let above = parent.and_then(|parent| self.find(parent.as_str())).unwrap_or(NONE);
        if above == self.slot(number).parent {
            let siblings = self.siblings_mut(above);
            siblings.retain(|other| *other != number);
            siblings.insert(index.min(siblings.len()), number);
            self.propagations.extend((above != NONE).then_some(Propagation::Family(above)));
        } else {
            self.orphan(&BTreeSet::from([number]));
            self.adopt(number, above, index);
            // All its descendants have other ancestors now.
            let family = self.family(number);
            self.propagations.extend(family.into_iter().map(Propagation::Look));
        }
        self.change(number, |task| {
            task.spec.parent = parent.cloned();
            task.state.updated_at = Some(at);
        });
    }

    fn reorder(&mut self, parent: Option<&TaskId>, order: &[TaskId]) {
        let above = parent.and_then(|parent| self.find(parent.as_str())).unwrap_or(NONE);
        let wanted: Vec<u32> = order.iter().filter_map(|task| self.find(task.as_str())).collect();
        let place: BTreeMap<u32, usize> =
            wanted.iter().enumerate().map(|(place, &number)| (number, place)).collect();
        self.siblings_mut(above).sort_by_key(|number| place.get(number).copied().unwrap_or(usize::MAX));
        // Of several failed children, the first is named.
        self.propagations.extend((above != NONE).then_some(Propagation::Family(above)));
    }
}
