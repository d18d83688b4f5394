//! Decides which events follow from a command, or why it is refused. Reads the plan and changes nothing; every rule is
//! stated once.

mod annotate;
mod attempt;
mod claims;
mod cycle_check;
mod edit;
mod merge;
mod question;
mod stop;

use self::stop::person;
use super::Plan;
use super::slot::{NONE, ParentGate, Verdict};
use crate::{
    Actor, ActorKind, ApprovedWork, Command, Dependency, DependencyRule, Event, ExternalTaskRef, Hold, Phase,
    Problem, ProblemKind, Refusal, StartRefusal, Status, TaskId, Timestamp, UpstreamResult, limits,
};

/// Maximum names listed in a refusal.
const NAMES_MAX: usize = 20;

type Decision = Result<Vec<Event>, Refusal>;

/// Whether a claimed task starts at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    Now,
    Later,
}

impl Plan {
    /// Returns the events that follow when `by` issues `command` at `at`. No events: the plan is already in the
    /// requested state.
    pub fn decide(&self, by: &Actor, at: Timestamp, command: &Command) -> Decision {
        match (self.version, command) {
            (0, Command::Create { draft, approval_required }) => {
                return self.decide_create(by, at, draft, *approval_required);
            }
            (0, Command::Merge(request)) => return self.decide_merge(by, at, request),
            (0, _) => return Err(Refusal::NotCreated {}),
            (_, Command::Create { .. }) => return Err(Refusal::AlreadyExists {}),
            (_, Command::Unarchive) if self.state.archived => {
                let events = vec![Event::PlanUnarchived {}];
                return self.keeps_stops(by, &events).map(|()| events);
            }
            (_, Command::Archive | Command::Unarchive) => {}
            (_, Command::Merge(request)) => return self.decide_merge(by, at, request),
            _ if self.state.archived => return Err(self.archived_refusal(by)),
            _ => {}
        }
        let mut events =
            self.decide_command(by, at, command).map_err(|refusal| self.name_stop(by, refusal))?;
        self.keeps_stops(by, &events)?;
        self.keeps_anothers_tasks(by, &events)?;
        if events.iter().any(|event| matches!(event, Event::PlanRevised { owner: Some(_), .. })) {
            self.is_not_anothers(by, "hand it over")?;
        }
        let voided = self.voided(by, &events);
        events.extend(voided);
        Ok(events)
    }

    fn decide_command(&self, by: &Actor, at: Timestamp, command: &Command) -> Decision {
        match command {
            Command::Create { .. } => Err(Refusal::AlreadyExists {}),
            Command::RevisePlan(changes) => self.revised(changes),
            Command::AddTasks { tasks, place } => self.decide_add(tasks, place),
            Command::ReviseTask { task, changes } => self.decide_revise(task, changes),
            Command::RemoveTask { task, detach } => self.decide_remove(task, *detach),
            Command::MoveTask { task, parent, place } => self.decide_move(task, parent.as_ref(), place),
            Command::Replace(draft) => self.decide_replace(draft),
            Command::Merge(request) => self.decide_merge(by, at, request),
            Command::Restore { version, draft } => {
                let mut events = self.decide_replace(draft)?;
                if !events.is_empty() {
                    events.insert(0, Event::PlanRestored { version: *version });
                }
                Ok(events)
            }
            Command::RequestApproval { message } => match self.state.phase {
                Phase::Draft => Ok(vec![Event::ApprovalRequested { message: message.clone() }]),
                Phase::AwaitingApproval => Ok(Vec::new()),
                phase @ (Phase::Active
                | Phase::Paused
                | Phase::Completed
                | Phase::Failed
                | Phase::Cancelled) => Err(Refusal::wrong_phase(phase, "put up for approval")),
            },
            Command::Approve { version, note, work } => {
                self.decide_approve(by, *version, note, work.as_deref())
            }
            Command::Revoke => self.decide_revoke(by),
            Command::RefuseStart(refusal) => self.decide_refuse_start(refusal),
            Command::Reject { reason } => {
                only_a_person(by, "reject a plan")?;
                match self.state.phase {
                    Phase::Draft | Phase::AwaitingApproval => {
                        Ok(vec![Event::PlanRejected { by: by.clone(), reason: reason.clone() }])
                    }
                    phase @ (Phase::Active
                    | Phase::Paused
                    | Phase::Completed
                    | Phase::Failed
                    | Phase::Cancelled) => Err(Refusal::wrong_phase(phase, "rejected")),
                }
            }
            Command::Activate => match self.state.phase {
                Phase::Draft | Phase::AwaitingApproval => self.activation(),
                Phase::Active => Ok(Vec::new()),
                phase @ (Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled) => {
                    Err(Refusal::wrong_phase(phase, "started"))
                }
            },
            Command::Pause { reason } => match self.state.phase {
                // Pausing a draft stops its planning.
                Phase::Active | Phase::Draft => {
                    Ok(vec![Event::PlanPaused { reason: reason.clone(), by: person(by) }])
                }
                // A person makes an agent's stop their own.
                Phase::Paused if self.state.stopped_by.is_none() && person(by).is_some() => {
                    Ok(vec![Event::PlanPaused { reason: reason.clone(), by: person(by) }])
                }
                Phase::Paused => Ok(Vec::new()),
                phase @ (Phase::AwaitingApproval | Phase::Completed | Phase::Failed | Phase::Cancelled) => {
                    Err(Refusal::wrong_phase(phase, "paused"))
                }
            },
            Command::Resume => match self.state.phase {
                Phase::Paused => {
                    let unapproved = self.state.approval_required && self.state.approval.is_none();
                    let to_draft = unapproved || self.state.started_at.is_none();
                    Ok(vec![Event::PlanResumed { to_draft }])
                }
                Phase::Active => Ok(Vec::new()),
                phase @ (Phase::Draft
                | Phase::AwaitingApproval
                | Phase::Completed
                | Phase::Failed
                | Phase::Cancelled) => Err(Refusal::wrong_phase(phase, "resumed")),
            },
            Command::StartTask { task, worker } => self.decide_start(by, at, task, worker, Begin::Now),
            Command::QueueTask { task, worker } => self.decide_start(by, at, task, worker, Begin::Later),
            Command::RecordStart { task, attempt, started_at } => {
                self.decide_record_start(by, at, task, *attempt, *started_at)
            }
            Command::FinishTask { task, attempt, outcome, retry } => {
                self.decide_finish(by, at, task, *attempt, outcome, *retry)
            }
            Command::LoseTask { task, attempt, retry } => self.decide_lose(at, task, *attempt, *retry),
            Command::ReleaseTask { task, attempt, reason } => self.decide_release(by, task, *attempt, reason),
            Command::AskQuestion { task, attempt, ask } => self.decide_ask(by, at, task, *attempt, ask),
            Command::AnswerQuestion { task, answer } => self.decide_answer(by, task, answer),
            Command::RecordGate { task, gate } => {
                only_a_person(by, "end a task for people")?;
                self.number(task)?;
                within("bytes of the gate's record", gate.via.len(), limits::LINE_BYTES_MAX, task)?;
                Ok(vec![Event::GateRecorded { task: task.clone(), gate: gate.clone() }])
            }
            Command::CancelTask { task, reason } => self.decide_cancel(by, task, reason),
            Command::HoldTask { task, reason } => self.decide_hold(by, task, reason),
            Command::UnholdTask { task } => {
                not_a_worker(by, "lift a hold")?;
                let hold = self.hold_of(self.number(task)?);
                if hold.is_some_and(Hold::is_dispute) {
                    return Err(Refusal::Disputed { task: task.to_string() });
                }
                Ok(hold.is_some().then(|| Event::TaskUnheld { task: task.clone() }).into_iter().collect())
            }
            Command::CommentTask { task, text } => self.decide_comment(by, task, text),
            Command::LabelTask { task, labels } => self.decide_label(by, task, labels),
            Command::AssignTask { task, assignee } => self.decide_assign(by, task, assignee),
            Command::RetryTask { task } => self.decide_retry(by, task),
            Command::RetryPlan => self.decide_retry_plan(),
            Command::RefineTask { task, refinement, reasoning, tokens } => {
                self.number(task)?;
                let found = reasoning.as_ref().map_or(0, String::len);
                within("bytes of the reasoning", found, limits::TEXT_BYTES_MAX, task)?;
                let (task, reasoning) = (task.clone(), reasoning.clone());
                Ok(vec![Event::TaskRefined { task, refinement: *refinement, reasoning, tokens: *tokens }])
            }
            Command::DecomposeTask { task, children, reasoning, tokens } => {
                self.decide_decompose(task, children, reasoning.as_ref(), *tokens)
            }
            Command::AttachDigest { task, digest, tokens } => {
                self.number(task)?;
                Ok(vec![Event::DigestAttached {
                    task: task.clone(),
                    digest: digest.clone(),
                    tokens: *tokens,
                }])
            }
            Command::ChargeTokens { task, tokens, call } => Ok(self.charge(task.as_ref(), *tokens, *call)),
            Command::RollBackTask { task, detach } => self.decide_roll_back(task, *detach),
            Command::ReceiveOutput { task, from, received, untrusted } => {
                self.decide_receive(task, from, received, *untrusted)
            }
            Command::WithdrawOutput { task, from } => self.decide_withdraw(task, from),
            Command::FinishPlan { phase, summary } => {
                self.is_not_anothers(by, "end it")?;
                self.decide_finish_plan(by, *phase, summary)
            }
            Command::Archive
                if self.state.archived && (self.state.archived_by.is_some() || person(by).is_none()) =>
            {
                Ok(Vec::new())
            }
            Command::Archive => {
                self.is_not_anothers(by, "archive it")?;
                self.nothing_runs()?;
                Ok(vec![Event::PlanArchived { by: person(by) }])
            }
            Command::Unarchive => Ok(Vec::new()),
        }
    }

    /// Refuses events that would take open tasks out of a started plan that another agent owns. Who could do that could end the
    /// plan. Whoever holds a task may skip it.
    fn keeps_anothers_tasks(&self, by: &Actor, events: &[Event]) -> Result<(), Refusal> {
        let find = |task: &TaskId| self.find(task.as_str());
        for event in events {
            let (numbers, wanted): (Vec<u32>, _) = if let Event::TaskSkipped { task, .. } = event {
                (find(task).into_iter().collect(), "skip its tasks")
            } else if let Event::TaskRevised { task } = event
                && task.skip
            {
                (find(&task.id).into_iter().collect(), "skip its tasks")
            } else if let Event::TasksCancelled { tasks, .. } = event {
                (tasks.iter().filter_map(find).collect(), "cancel its tasks")
            } else if let Event::TasksRemoved { tasks } = event {
                (self.families(tasks).collect(), "remove its tasks")
            } else {
                continue;
            };
            let is_taken = |&number: &u32| {
                let is_open = !self.slot(number).status.is_finished() && !self.spec_of(number).skip;
                is_open && self.speaks_for(by, number, None).is_err()
            };
            if numbers.iter().any(is_taken) {
                self.is_not_anothers(by, wanted)?;
            }
        }
        Ok(())
    }

    /// Refuses what would take a started plan with open tasks away from the agent that owns it.
    pub fn is_not_anothers(&self, by: &Actor, wanted: &'static str) -> Result<(), Refusal> {
        let is_owners = match by.kind {
            ActorKind::Person | ActorKind::System => true,
            ActorKind::Agent => by.name == self.spec.owner,
            ActorKind::Worker => false,
        };
        let has_started = matches!(self.state.phase, Phase::Active | Phase::Paused);
        let open = self.counts[Status::Pending as usize] + self.counts[Status::Running as usize];
        if is_owners || self.spec.owner.is_empty() || !has_started || open == 0 {
            return Ok(());
        }
        let (owner, by) = (self.spec.owner.clone(), by.to_string());
        Err(Refusal::NotItsPlan { owner, by, wanted })
    }

    fn wrong_status(&self, number: u32, status: Status, wanted: &'static str) -> Refusal {
        let queued = status == Status::Running && self.at(number).state.is_queued();
        Refusal::WrongStatus { task: self.name(number), status, queued, wanted, stopped_by: None }
    }

    fn is_running(&self, number: u32, wanted: &'static str) -> Result<(), Refusal> {
        match self.slot(number).status {
            Status::Running => Ok(()),
            status @ (Status::Pending
            | Status::Done
            | Status::Failed
            | Status::Skipped
            | Status::Cancelled) => Err(self.wrong_status(number, status, wanted)),
        }
    }

    fn nothing_runs(&self) -> Result<(), Refusal> {
        if self.running.is_empty() {
            return Ok(());
        }
        let running = self.running.iter().take(NAMES_MAX).map(|&number| self.name(number)).collect();
        Err(Refusal::StillRunning { running })
    }

    /// Returns the event that starts the plan, if it may start.
    fn activation(&self) -> Decision {
        if self.state.approval_required && self.state.approval.is_none() {
            return Err(Refusal::NeedsApproval { rejection: self.rejection() });
        }
        Ok(vec![Event::PlanActivated {}])
    }

    /// Returns the events that must come before work on a task: none, or the start of the plan.
    fn begin(&self, wanted: &'static str) -> Decision {
        match self.state.phase {
            Phase::Active => Ok(Vec::new()),
            Phase::Draft | Phase::AwaitingApproval => self.activation(),
            phase @ (Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled) => {
                Err(Refusal::wrong_phase(phase, wanted))
            }
        }
    }

    fn decide_approve(&self, by: &Actor, version: u64, note: &str, work: Option<&ApprovedWork>) -> Decision {
        only_a_person(by, "approve a plan")?;
        let is_own = work.is_some_and(|work| work.kind.is_own());
        if is_own && self.state.approval_required {
            return Err(Refusal::NeedsApproval { rejection: self.rejection() });
        }
        match (self.state.phase, &self.state.approval) {
            (Phase::Active | Phase::Paused, Some(approval)) if approval.work.as_deref() == work => {
                return Ok(Vec::new());
            }
            // A plan that runs can be approved again: the configuration changed since, or the record does not count.
            (Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused, _) => {}
            (phase @ (Phase::Completed | Phase::Failed | Phase::Cancelled), _) => {
                return Err(Refusal::wrong_phase(phase, "approved"));
            }
        }
        if version != self.version {
            return Err(Refusal::NotWhatWasLookedAt { looked_at: version, current: self.version });
        }
        let work = work.map(|work| Box::new(work.clone()));
        Ok(vec![Event::PlanApproved { by: by.clone(), version, note: note.to_owned(), work }])
    }

    fn decide_revoke(&self, by: &Actor) -> Decision {
        only_a_person(by, "revoke an approval")?;
        match (self.state.phase, &self.state.approval) {
            (Phase::Active | Phase::Paused, Some(_)) => Ok(vec![Event::ApprovalVoided {}]),
            // A person's own plan runs without one where nothing asks for it.
            (Phase::Active | Phase::Paused, None) if self.has_machine_work() => {
                Ok(vec![Event::ApprovalVoided {}])
            }
            (Phase::Active | Phase::Paused, None) => Ok(Vec::new()),
            (phase, _) => Err(Refusal::wrong_phase(phase, "revoked")),
        }
    }

    fn decide_refuse_start(&self, refusal: &StartRefusal) -> Decision {
        match self.state.phase {
            Phase::Active if self.state.start_refusals.contains(refusal) => Ok(Vec::new()),
            Phase::Active => {
                let mut refusal = refusal.clone();
                refusal.differences.truncate(limits::REFUSAL_DIFFERENCES_MAX);
                Ok(vec![Event::StartRefused { refusal: Box::new(refusal) }])
            }
            phase @ (Phase::Draft
            | Phase::AwaitingApproval
            | Phase::Paused
            | Phase::Completed
            | Phase::Failed
            | Phase::Cancelled) => Err(Refusal::wrong_phase(phase, "refused by a worker")),
        }
    }

    /// Checks whether a task's dependencies and parents let it begin; otherwise returns what it waits for.
    fn may_begin(&self, number: u32) -> Result<(), Refusal> {
        let slot = self.slot(number);
        if slot.is_parent() {
            return Err(Refusal::IsParent { task: self.name(number) });
        }
        let mut waits_for = Vec::new();
        let mut at = number;
        while at != NONE {
            if self.slot(at).skip {
                return Err(self.wrong_status(number, Status::Skipped, "worked on"));
            }
            if let Some(Hold { by, reason }) = self.hold_of(at) {
                let (task, by, reason) = (self.name(at), by.to_string(), reason.clone());
                return Err(Refusal::Held { task, by, reason });
            }
            if self.slot(at).verdict() != Verdict::Clear {
                waits_for.extend(self.unmet_names(at, NAMES_MAX));
            }
            at = self.slot(at).parent;
        }
        waits_for.truncate(NAMES_MAX);
        let free = slot.verdict() == Verdict::Clear && self.gate(number) == ParentGate::Open;
        if free { Ok(()) } else { Err(Refusal::Blocked { task: self.name(number), waits_for }) }
    }

    /// Returns the hold of a task. Reads only tasks that are held.
    pub(super) fn hold_of(&self, number: u32) -> Option<&Hold> {
        if self.slot(number).held { self.at(number).state.held() } else { None }
    }

    /// Returns at most `max` unsatisfied dependencies of a task, in the order in which it names them.
    pub(super) fn unmet_names(&self, number: u32, max: usize) -> Vec<String> {
        let task = self.at(number);
        let enough = |finished: bool, satisfies: bool| match task.spec.when {
            DependencyRule::AllFinished => finished,
            DependencyRule::AllDone | DependencyRule::AnyDone => satisfies,
        };
        let mut names: Vec<String> = Vec::new();
        for dependency in &task.spec.depends_on {
            let met = match dependency {
                Dependency::Task(on) => {
                    let on = self.find(on.as_str()).map(|on| self.slot(on));
                    on.is_some_and(|on| enough(on.status.is_finished(), on.satisfies))
                }
                Dependency::External(there) => {
                    let received = task.state.received.get(&there.key());
                    received.is_some_and(|received| {
                        enough(received.status.is_finished(), received.status == Status::Done)
                    })
                }
            };
            let name = dependency.to_string();
            if names.len() < max && !met && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn decide_cancel(&self, by: &Actor, task: &TaskId, reason: &str) -> Decision {
        let number = self.number(task)?;
        let family = self.family(number).into_iter().filter(|&member| !self.slot(member).is_parent());
        let open = family.filter(|&member| !self.slot(member).status.is_finished());
        let tasks: Vec<TaskId> = open.map(|member| self.spec_of(member).id.clone()).collect();
        if tasks.is_empty() {
            let status = self.slot(number).status;
            return Err(self.wrong_status(number, status, "cancelled"));
        }
        Ok(vec![Event::TasksCancelled { tasks, reason: reason.to_owned(), by: person(by) }])
    }

    fn decide_hold(&self, by: &Actor, task: &TaskId, reason: &str) -> Decision {
        not_a_worker(by, "hold a task")?;
        let number = self.number(task)?;
        let status = self.slot(number).status;
        if status.is_finished() {
            return Err(self.wrong_status(number, status, "held"));
        }
        within("bytes of the reason", reason.len(), limits::TEXT_BYTES_MAX, task)?;
        // A person makes an agent's hold their own.
        let stays = |hold: &Hold| hold.by.kind == ActorKind::Person || person(by).is_none();
        if self.at(number).state.held().is_some_and(stays) {
            return Ok(Vec::new());
        }
        Ok(vec![Event::TaskHeld { task: task.clone(), by: by.clone(), reason: reason.to_owned() }])
    }

    fn decide_retry(&self, by: &Actor, task: &TaskId) -> Decision {
        let number = self.number(task)?;
        let again = if self.slot(number).is_parent() { self.again_in(number) } else { vec![number] };
        let slot = self.slot(number);
        match slot.status {
            Status::Pending if slot.is_parent() && !again.is_empty() => {}
            // Machine work is retried as its policy says: no agent makes its failures count for nothing.
            Status::Pending
                if by.kind == ActorKind::Agent
                    && !(slot.asking || slot.reported)
                    && self.at(number).state.not_before.is_some()
                    && self.spec_of(number).work.is_some() =>
            {
                return Ok(Vec::new());
            }
            // It waits for its next attempt, which may then start at once.
            Status::Pending if self.at(number).state.not_before.is_some() => {}
            // The retry discards its report or its open question.
            Status::Pending if slot.reported || slot.asking => {}
            status @ (Status::Pending | Status::Running) => {
                return Err(self.wrong_status(number, status, "retried"));
            }
            Status::Done | Status::Failed | Status::Skipped | Status::Cancelled => {}
        }
        // A task that would be skipped again at once is not reset.
        if let [one] = again.as_slice()
            && let Some(waits_for) = self.skipped_again(*one)
        {
            return Err(if waits_for.is_empty() {
                self.wrong_status(number, Status::Skipped, "retried as long as it is to be passed over")
            } else {
                Refusal::Blocked { task: self.name(number), waits_for }
            });
        }
        Ok(vec![Event::TasksRetried { tasks: again.iter().map(|&member| self.task_id(member)).collect() }])
    }

    /// Returns the tasks of a group to redo: those that did not succeed, or all of them if the whole group succeeded.
    fn again_in(&self, number: u32) -> Vec<u32> {
        let family = self.family(number).into_iter();
        let ended: Vec<u32> = family
            .filter(|&member| !self.slot(member).is_parent() && self.slot(member).status.is_finished())
            .collect();
        let unsatisfied: Vec<u32> =
            ended.iter().copied().filter(|&member| !self.slot(member).satisfies).collect();
        if unsatisfied.is_empty() && self.slot(number).status.is_finished() { ended } else { unsatisfied }
    }

    fn decide_retry_plan(&self) -> Decision {
        let leaves = self.order().into_iter().filter(|&number| !self.slot(number).is_parent());
        let failed = leaves.filter(|&number| match self.slot(number).status {
            Status::Failed | Status::Cancelled => true,
            // Its cause has succeeded since: nothing failed here, but the task can proceed.
            Status::Skipped => !self.slot(number).satisfies && self.skipped_again(number).is_none(),
            Status::Pending | Status::Running | Status::Done => false,
        });
        let tasks: Vec<TaskId> = failed.map(|number| self.task_id(number)).collect();
        if tasks.is_empty() {
            return Err(Refusal::wrong_phase(self.state.phase, "retried: nothing has failed"));
        }
        Ok(vec![Event::TasksRetried { tasks }])
    }

    fn decide_receive(
        &self,
        task: &TaskId,
        from: &ExternalTaskRef,
        received: &UpstreamResult,
        untrusted: bool,
    ) -> Decision {
        let number = self.number(task)?;
        let waiting = self.at(number);
        let key = from.key();
        if let Some(output) = &received.output {
            within("bytes of the output", output.as_str().len(), limits::JSON_BYTES_MAX, task)?;
        }
        let awaited =
            waiting.spec.depends_on.iter().filter_map(Dependency::external).any(|there| there.key() == key);
        if !awaited {
            return Err(Refusal::NotAwaited { task: self.name(number), dependency: key });
        }
        let heard = waiting.state.received.get(&key);
        if heard == Some(received) || heard.is_some() && !self.listens(number) {
            return Ok(Vec::new());
        }
        if !received.status.is_finished() {
            return Err(Refusal::NotAwaited {
                task: self.name(number),
                dependency: format!("{key}, which goes on"),
            });
        }
        let mut events = vec![Event::OutputReceived {
            task: task.clone(),
            from: from.clone(),
            received: received.clone(),
        }];
        if untrusted {
            events.extend(self.holds_of(std::iter::once(number)));
        }
        Ok(events)
    }

    fn decide_withdraw(&self, task: &TaskId, from: &ExternalTaskRef) -> Decision {
        let number = self.number(task)?;
        if !self.listens(number) || !self.at(number).state.received.contains_key(&from.key()) {
            return Ok(Vec::new());
        }
        Ok(vec![Event::OutputWithdrawn { task: task.clone(), from: from.clone() }])
    }

    /// Whether a received result can still be replaced: a task that has begun keeps what it received.
    fn listens(&self, number: u32) -> bool {
        let slot = self.slot(number);
        match slot.status {
            Status::Pending => !slot.reported,
            Status::Skipped => !slot.satisfies,
            Status::Running | Status::Done | Status::Failed | Status::Cancelled => false,
        }
    }

    /// Whether an explicit end by the author would change nothing: a completed plan does not wait for other plans.
    fn has_last_word(&self) -> bool {
        self.state.phase == Phase::Completed || self.state.phase.is_finished() && self.state.closed
    }

    fn decide_finish_plan(&self, by: &Actor, phase: Phase, summary: &str) -> Decision {
        let wanted = match phase {
            Phase::Completed => "completed",
            Phase::Failed => "ended as failed",
            Phase::Cancelled => "cancelled",
            Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused => {
                "ended without an ending"
            }
        };
        // A person makes an agent's stop their own, with its summary if they give none.
        let affirms = self.state.closed && self.state.stopped_by.is_none() && person(by).is_some();
        let summary = if affirms && summary.is_empty() { &self.state.summary } else { summary };
        let event = Event::PlanFinished { phase, summary: summary.to_owned(), by: person(by) };
        match (phase, self.state.phase) {
            (Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused, now) => {
                Err(Refusal::wrong_phase(now, wanted))
            }
            // The plan ended by itself; its author may still add a summary or override the outcome.
            (_, now) if now == phase && self.state.summary == summary && self.has_last_word() && !affirms => {
                Ok(Vec::new())
            }
            // Cancelling a cancelled plan changes nothing, and a plan that ended otherwise keeps its outcome.
            (Phase::Cancelled, Phase::Cancelled) if summary.is_empty() && !affirms => Ok(Vec::new()),
            (Phase::Cancelled, now @ (Phase::Completed | Phase::Failed)) => {
                Err(Refusal::wrong_phase(now, wanted))
            }
            (Phase::Completed, Phase::Draft | Phase::AwaitingApproval) if self.state.approval_required => {
                Err(Refusal::NeedsApproval { rejection: self.rejection() })
            }
            (Phase::Completed, Phase::Failed | Phase::Cancelled) => {
                Err(Refusal::wrong_phase(self.state.phase, wanted))
            }
            (Phase::Completed, _) => {
                self.nothing_runs()?;
                Ok(vec![event])
            }
            (Phase::Failed | Phase::Cancelled, _) => Ok(vec![event]),
        }
    }
}

/// Refuses a value over its limit.
fn within(what: &str, found: usize, max: usize, task: &TaskId) -> Result<(), Refusal> {
    if found <= max {
        return Ok(());
    }
    let wrong = ProblemKind::OverLimit { what: what.to_owned(), found, max };
    Err(Refusal::Invalid { problems: vec![Problem::task(task, wrong)] })
}

/// Refuses a worker, which reports on its own attempts.
fn not_a_worker(by: &Actor, what: &'static str) -> Result<(), Refusal> {
    match by.kind {
        ActorKind::Worker => only_a_person(by, what),
        ActorKind::Agent | ActorKind::Person | ActorKind::System => Ok(()),
    }
}

fn only_a_person(by: &Actor, what: &'static str) -> Result<(), Refusal> {
    match by.kind {
        ActorKind::Person => Ok(()),
        ActorKind::Agent | ActorKind::Worker | ActorKind::System => {
            Err(Refusal::OnlyAPerson { what, by: by.clone() })
        }
    }
}
