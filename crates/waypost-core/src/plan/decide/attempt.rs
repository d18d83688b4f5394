//! Decisions about attempts: who may start one, how it ends, and which reports are accepted.

use super::super::Plan;
use super::stop::person;
use super::{Begin, Decision, only_a_person, within};
use crate::{
    Actor, ActorKind, Event, Evidence, Outcome, PlanId, Refusal, Report, Retry, Status, TaskId, TaskState,
    Timestamp, limits,
};

/// The wait before the next attempt is extended by up to 1/`JITTER_PART`, so that tasks that failed together do not all
/// retry together.
const JITTER_PART: u64 = 4;

impl Plan {
    /// Checks who may do machine work: workers, and a person who steps in, but not an agent.
    fn is_for(&self, by: &Actor, number: u32) -> Result<(), Refusal> {
        match (&self.spec_of(number).work, by.kind) {
            (Some(work), ActorKind::Agent) => Err(Refusal::MachineWork {
                task: self.name(number),
                executor: work.executor.clone(),
                by: by.kind,
            }),
            (Some(_) | None, ActorKind::Person | ActorKind::Worker | ActorKind::System)
            | (None, ActorKind::Agent) => Ok(()),
        }
    }

    /// Refuses agents and people on a task that is reported as done: machines check it.
    pub(super) fn is_not_reported(&self, by: &Actor, number: u32) -> Result<(), Refusal> {
        match (self.at(number).state.reported(), by.kind) {
            (Some(report), ActorKind::Agent | ActorKind::Person) => {
                Err(Refusal::AwaitsCheck { task: self.name(number), reported_by: report.by.to_string() })
            }
            (Some(_), ActorKind::Worker | ActorKind::System) | (None, _) => Ok(()),
        }
    }

    fn has_no_question(&self, number: u32) -> Result<(), Refusal> {
        match self.at(number).state.question() {
            Some(question) => {
                Err(Refusal::AwaitsAnswer { task: self.name(number), question: question.text.clone() })
            }
            None => Ok(()),
        }
    }

    pub(super) fn decide_start(
        &self,
        by: &Actor,
        at: Timestamp,
        task: &TaskId,
        worker: &str,
        begin: Begin,
    ) -> Decision {
        let number = self.number(task)?;
        let state = &self.at(number).state;
        match state.status {
            Status::Pending => {}
            Status::Running => {
                let worker = state.worker.clone().unwrap_or_default();
                return Err(Refusal::AlreadyRunning { task: self.name(number), worker });
            }
            status @ (Status::Done | Status::Failed | Status::Skipped | Status::Cancelled) => {
                return Err(self.wrong_status(number, status, "started"));
            }
        }
        self.is_for(by, number)?;
        self.is_not_reported(by, number)?;
        self.has_no_question(number)?;
        let mut events = self.begin("worked on")?;
        self.may_begin(number)?;
        if let Some(not_before) = state.not_before.filter(|&not_before| not_before > at) {
            let waits_for = vec![format!("its next attempt at {not_before}")];
            return Err(Refusal::Blocked { task: self.name(number), waits_for });
        }
        let (task, attempt, worker) = (task.clone(), state.attempt.saturating_add(1), worker.to_owned());
        events.push(match begin {
            Begin::Now => Event::TaskStarted { task, attempt, worker, started_at: None },
            Begin::Later => Event::TaskQueued { task, attempt, worker },
        });
        Ok(events)
    }

    /// A start is recorded once, by the worker that queued the attempt.
    pub(super) fn decide_record_start(
        &self,
        by: &Actor,
        at: Timestamp,
        task: &TaskId,
        attempt: u32,
        started_at: Timestamp,
    ) -> Decision {
        let number = self.number(task)?;
        self.is_latest_attempt(number, attempt)?;
        self.is_running(number, "started")?;
        self.speaks_for(by, number, None)?;
        let state = &self.at(number).state;
        if !state.is_queued() {
            return Ok(Vec::new());
        }
        let worker = state.worker.clone().unwrap_or_default();
        // The worker's clock may be ahead of the store's, or behind it.
        let queued_at = state.updated_at.unwrap_or(started_at);
        let started_at = Some(started_at.max(queued_at).min(at));
        Ok(vec![Event::TaskStarted { task: task.clone(), attempt, worker, started_at }])
    }

    pub(super) fn is_latest_attempt(&self, number: u32, given: u32) -> Result<(), Refusal> {
        let current = self.at(number).state.attempt;
        if given == current {
            return Ok(());
        }
        Err(Refusal::StaleAttempt { task: self.name(number), given, current })
    }

    /// Checks whether `by` may report progress on a task, as the attempt that it names or as the holder. Returns the
    /// attempt that the report belongs to. No event: progress is not part of a plan's versions.
    pub fn check_progress(
        &self,
        by: &Actor,
        task: &TaskId,
        attempt: Option<u32>,
        progress: &str,
    ) -> Result<u32, Refusal> {
        let number = self.number(task)?;
        within("bytes of the progress", progress.len(), limits::PROGRESS_BYTES_MAX, task)?;
        self.is_running(number, "reported on")?;
        self.speaks_for(by, number, attempt)?;
        Ok(self.at(number).state.attempt)
    }

    /// Sets the latest progress of a task in this copy, while that attempt runs. For copies that are displayed: it is
    /// not part of any version.
    pub fn show_progress(&mut self, task: &TaskId, attempt: u32, progress: &str) {
        let Ok(number) = self.number(task) else { return };
        let state = &self.at(number).state;
        if state.status == Status::Running && state.attempt == attempt {
            self.change(number, |task| task.state.progress = Some(progress.to_owned()));
        }
    }

    /// Checks whether `by` may act for the running attempt: it holds the task, is a person, or is a program of this plan's
    /// tasks that names the attempt. Programs are not called as the worker that started them; everybody else can read an
    /// attempt's number, so it proves nothing.
    pub(super) fn speaks_for(&self, by: &Actor, number: u32, attempt: Option<u32>) -> Result<(), Refusal> {
        let state = &self.at(number).state;
        let worker = state.worker.clone().unwrap_or_default();
        if let Some(attempt) = attempt {
            self.is_latest_attempt(number, attempt)?;
            let is_program = by.kind == ActorKind::Worker && by.name == self.id.as_str();
            if is_program && Actor::of_worker(&worker).is_none() {
                return Ok(());
            }
        }
        if works_on(by, state) {
            return Ok(());
        }
        Err(Refusal::AlreadyRunning { task: self.name(number), worker })
    }

    pub(super) fn decide_finish(
        &self,
        by: &Actor,
        at: Timestamp,
        task: &TaskId,
        attempt: Option<u32>,
        outcome: &Outcome,
        retry: Option<Retry>,
    ) -> Decision {
        let number = self.number(task)?;
        let state = &self.at(number).state;
        if let Some(attempt) = attempt {
            self.is_latest_attempt(number, attempt)?;
        }
        let wanted = match outcome {
            Outcome::Done { .. } => "done",
            Outcome::Failed { .. } => "failed",
            Outcome::Skipped { .. } => "skipped",
        };
        if self.slot(number).is_parent() {
            return Err(Refusal::IsParent { task: self.name(number) });
        }
        let mut events = match (state.status, outcome) {
            // Without an attempt number, only the holder or a person may end it.
            (Status::Running, _) => {
                self.speaks_for(by, number, attempt)?;
                Vec::new()
            }
            (Status::Pending, _) if attempt.is_some() => {
                return Err(self.wrong_status(number, Status::Pending, wanted));
            }
            // Only the attempt that runs machine work, or a person, may end it.
            (Status::Pending, _) if by.kind == ActorKind::Worker && self.spec_of(number).work.is_some() => {
                return Err(self.wrong_status(number, Status::Pending, wanted));
            }
            // An unnecessary task may be skipped even if it could not have started.
            (Status::Pending, Outcome::Skipped { .. }) => Vec::new(),
            (Status::Pending, Outcome::Done { .. } | Outcome::Failed { .. }) => {
                self.has_no_question(number)?;
                let events = self.begin("worked on")?;
                self.may_begin(number)?;
                events
            }
            (status @ (Status::Done | Status::Failed | Status::Skipped | Status::Cancelled), _) => {
                return Err(self.wrong_status(number, status, wanted));
            }
        };
        self.is_for(by, number)?;
        match (outcome, by.kind) {
            (Outcome::Skipped { .. }, ActorKind::Person) => {}
            (Outcome::Done { .. } | Outcome::Failed { .. } | Outcome::Skipped { .. }, _) => {
                self.is_not_reported(by, number)?;
            }
        }
        if let Outcome::Skipped { .. } = outcome {
            self.may_skip(by, number)?;
        }
        check_outcome(task, outcome)?;
        events.push(match outcome {
            Outcome::Done { result, output, evidence } => {
                self.done(by, at, number, (result, output), evidence.as_deref())?
            }
            Outcome::Failed { error, evidence } => {
                let evidence = self.evidence(by, at, number, evidence.as_deref(), false)?;
                let again_at = self.again_at(number, at, retry);
                Event::TaskFailed { task: task.clone(), error: error.clone(), again_at, evidence }
            }
            Outcome::Skipped { reason } => {
                Event::TaskSkipped { task: task.clone(), reason: reason.clone(), by: person(by) }
            }
        });
        Ok(events)
    }

    /// Skipping lets dependants proceed as if the task were done.
    fn may_skip(&self, by: &Actor, number: u32) -> Result<(), Refusal> {
        let spec = self.spec_of(number);
        let has_work = spec.work.is_some() || spec.check.is_some();
        match by.kind {
            ActorKind::Agent if has_work => only_a_person(by, "skip a task that has work or a check"),
            ActorKind::Worker => only_a_person(by, "skip a task"),
            ActorKind::Agent | ActorKind::Person | ActorKind::System => Ok(()),
        }
    }

    /// Done is a fact if there is no check or its evidence is present; otherwise it is only a report.
    fn done(
        &self,
        by: &Actor,
        at: Timestamp,
        number: u32,
        (result, output): (&Option<String>, &Option<crate::Json>),
        evidence: Option<&Evidence>,
    ) -> Result<Event, Refusal> {
        let found = self.at(number);
        let task = found.spec.id.clone();
        let (mut result, mut output) = (result.clone(), output.clone());
        if found.spec.check.is_some() && evidence.is_none() {
            return Ok(Event::TaskReported { task, result, output, by: by.clone() });
        }
        if let Some(Report { result: said, output: given, .. }) = found.state.reported() {
            result = result.or_else(|| said.clone());
            output = output.or_else(|| given.clone());
        }
        let evidence = self.evidence(by, at, number, evidence, true)?;
        Ok(Event::TaskDone { task, result, output, evidence })
    }

    /// Validates evidence: the task must have a check, a machine must have run it, and its result must match the
    /// outcome.
    fn evidence(
        &self,
        by: &Actor,
        at: Timestamp,
        number: u32,
        evidence: Option<&Evidence>,
        passed: bool,
    ) -> Result<Option<Box<Evidence>>, Refusal> {
        let Some(evidence) = evidence else { return Ok(None) };
        let why = match by.kind {
            ActorKind::Agent | ActorKind::Person => Some("only a run of Waypost brings it"),
            ActorKind::Worker | ActorKind::System if self.spec_of(number).check.is_none() => {
                Some("the task has no check")
            }
            ActorKind::Worker | ActorKind::System => {
                (evidence.passed != passed).then_some("it contradicts the outcome")
            }
        };
        match why {
            Some(why) => Err(Refusal::NoEvidence { task: self.name(number), why }),
            None => Ok(Some(Box::new(Evidence { at: Some(at), ..evidence.clone() }))),
        }
    }

    /// Returns when a task that has just failed may be retried.
    fn again_at(&self, number: u32, at: Timestamp, retry: Option<Retry>) -> Option<Timestamp> {
        let task = self.at(number);
        let retry = task.spec.retry.as_deref().copied().or(retry);
        let attempts = retry.map_or(1, |retry| retry.attempts);
        let tries = task.state.tries + 1;
        let wait = retry.map_or(0, |retry| retry.wait_seconds(tries)).saturating_mul(1_000_000);
        let more = jitter(&self.id, &task.spec.id, task.state.attempt, wait / JITTER_PART);
        let micros = i64::try_from(wait.saturating_add(more)).unwrap_or(i64::MAX);
        (tries < attempts).then(|| Timestamp::from_micros(at.as_micros().saturating_add(micros)))
    }

    pub(super) fn decide_lose(
        &self,
        at: Timestamp,
        task: &TaskId,
        attempt: u32,
        retry: Option<Retry>,
    ) -> Decision {
        let number = self.number(task)?;
        self.is_latest_attempt(number, attempt)?;
        self.is_running(number, "lost")?;
        let lost = self.at(number);
        let worker = lost.state.worker.as_deref().unwrap_or("its worker");
        let error = if lost.state.is_queued() {
            format!("{worker} was lost when attempt {attempt} was queued: it may have begun")
        } else {
            format!("{worker} was lost during attempt {attempt}")
        };
        let task = task.clone();
        if lost.spec.work.is_none() && lost.state.reported().is_none() {
            // A task for people and agents becomes available again: a lost worker says nothing about the task.
            return Ok(vec![Event::TaskReleased { task, reason: error }]);
        }
        let again_at = self.again_at(number, at, retry);
        Ok(vec![Event::TaskFailed { task, error, again_at, evidence: None }])
    }

    pub(super) fn decide_release(
        &self,
        by: &Actor,
        task: &TaskId,
        attempt: Option<u32>,
        reason: &str,
    ) -> Decision {
        let number = self.number(task)?;
        self.is_running(number, "released")?;
        self.speaks_for(by, number, attempt)?;
        within("bytes of the reason", reason.len(), limits::TEXT_BYTES_MAX, task)?;
        Ok(vec![Event::TaskReleased { task: task.clone(), reason: reason.to_owned() }])
    }
}

/// Returns a deterministic number up to `most` that depends on this attempt of this task (FNV-1a): the core has no
/// randomness.
fn jitter(plan: &PlanId, task: &TaskId, attempt: u32, most: u64) -> u64 {
    let attempt = attempt.to_le_bytes();
    let bytes = plan.as_str().bytes().chain([0]).chain(task.as_str().bytes()).chain([0]).chain(attempt);
    let sum = bytes
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // The lower bits are similar for similar names; the upper ones are not.
    (sum >> 16) % (most + 1)
}

fn check_outcome(task: &TaskId, outcome: &Outcome) -> Result<(), Refusal> {
    let (text, what, output, evidence) = match outcome {
        Outcome::Done { result, output, evidence } => {
            (result.as_deref(), "bytes of the result", output.as_ref(), evidence.as_deref())
        }
        Outcome::Failed { error, evidence } => {
            (Some(error.as_str()), "bytes of the error", None, evidence.as_deref())
        }
        Outcome::Skipped { reason } => (reason.as_deref(), "bytes of the reason", None, None),
    };
    let bytes = |json: Option<&crate::Json>| json.map_or(0, |json| json.as_str().len());
    within(what, text.map_or(0, str::len), limits::TEXT_BYTES_MAX, task)?;
    within("bytes of the output", bytes(output), limits::JSON_BYTES_MAX, task)?;
    let Some(Evidence { check, worker, outcome, output, log_tail, digest, passed: _, at: _ }) = evidence
    else {
        return Ok(());
    };
    let tail = log_tail.as_ref().map_or(0, String::len);
    within(
        "bytes of the evidence's output",
        bytes(output.as_ref()),
        limits::EVIDENCE_OUTPUT_BYTES_MAX,
        task,
    )?;
    within("bytes of the evidence's log", tail, limits::EVIDENCE_LOG_BYTES_MAX, task)?;
    for line in [check, worker, outcome, digest] {
        within("bytes of a line of the evidence", line.len(), limits::LINE_BYTES_MAX, task)?;
    }
    Ok(())
}

/// Whether `by` holds the task, or may act for its holder.
fn works_on(by: &Actor, state: &TaskState) -> bool {
    match by.kind {
        ActorKind::Person | ActorKind::System => true,
        ActorKind::Agent | ActorKind::Worker => {
            state.worker.as_ref().is_some_and(|worker| by.is_worker(worker))
        }
    }
}
