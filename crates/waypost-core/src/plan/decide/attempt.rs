//! Decisions about attempts: who may begin, how they end, and whose word is believed.

use super::super::Plan;
use super::{Begin, Decision, within};
use crate::{
    Actor, ActorKind, Event, Evidence, Outcome, PlanId, Refusal, Report, Retry, Status, TaskId, TaskState,
    Timestamp, limits,
};

/// A wait before the next attempt is longer by up to one part in so many, so that those that failed together do not
/// all come back together.
const JITTER_PART: u64 = 4;

impl Plan {
    /// Machines' work is for workers; a person may step in, an agent may not pretend.
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

    /// What is reported as done is for machines to check: agents and persons have had their word.
    fn is_not_reported(&self, by: &Actor, number: u32) -> Result<(), Refusal> {
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

    /// A start is recorded once, by the worker that has queued the attempt.
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

    /// Whether `by` may report progress on a task, as the attempt that it names or as the one who holds it. Returns the attempt
    /// that the report belongs to. No event: a plan's versions do not have its progress.
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

    /// Shows the latest progress of a task in this copy, while that attempt runs. For copies that are shown: it is no part of
    /// any version.
    pub fn show_progress(&mut self, task: &TaskId, attempt: u32, progress: &str) {
        let Ok(number) = self.number(task) else { return };
        let state = &self.at(number).state;
        if state.status == Status::Running && state.attempt == attempt {
            self.change(number, |task| task.state.progress = Some(progress.to_owned()));
        }
    }

    /// Whether `by` may speak for the attempt that runs: it names the latest, or works on it, or is a person.
    pub(super) fn speaks_for(&self, by: &Actor, number: u32, attempt: Option<u32>) -> Result<(), Refusal> {
        let state = &self.at(number).state;
        let worker = state.worker.clone().unwrap_or_default();
        if let Some(attempt) = attempt {
            self.is_latest_attempt(number, attempt)?;
            // An attempt has a number that everybody can read: it proves nothing between agents.
            if by.kind != ActorKind::Agent || !worker.starts_with("agent:") {
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
            // Without an attempt to go by, only whoever works on it may end it, or a person.
            (Status::Running, _) => {
                self.speaks_for(by, number, attempt)?;
                Vec::new()
            }
            (Status::Pending, _) if attempt.is_some() => {
                return Err(self.wrong_status(number, Status::Pending, wanted));
            }
            // Machine work ends by the attempt that runs it, or by a person.
            (Status::Pending, _) if by.kind == ActorKind::Worker && self.spec_of(number).work.is_some() => {
                return Err(self.wrong_status(number, Status::Pending, wanted));
            }
            // What turned out to be unnecessary need not have been possible.
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
        if let (Outcome::Skipped { .. }, ActorKind::Agent, Some(_)) =
            (outcome, by.kind, &self.spec_of(number).check)
        {
            return Err(Refusal::OnlyAPerson { what: "skip a task that has a check", by: by.kind });
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
            Outcome::Skipped { reason } => Event::TaskSkipped { task: task.clone(), reason: reason.clone() },
        });
        Ok(events)
    }

    /// Done is a fact where there is no check or its evidence is here, and somebody's word otherwise.
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

    /// Evidence that fits: of a check that the task has, run by a machine, and of the outcome that it is to prove.
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
                (evidence.passed != passed).then_some("it says something else than the outcome")
            }
        };
        match why {
            Some(why) => Err(Refusal::NoEvidence { task: self.name(number), why }),
            None => Ok(Some(Box::new(Evidence { at: Some(at), ..evidence.clone() }))),
        }
    }

    /// When a task that has just failed once more may be tried again.
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
            // A task for people and agents goes back on the list: that somebody left says nothing about the task.
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
        self.is_running(number, "given back")?;
        self.speaks_for(by, number, attempt)?;
        within("bytes of the reason", reason.len(), limits::TEXT_BYTES_MAX, task)?;
        Ok(vec![Event::TaskReleased { task: task.clone(), reason: reason.to_owned() }])
    }
}

/// A number up to `most` that only this attempt of this task has: the core has no dice (FNV-1a).
fn jitter(plan: &PlanId, task: &TaskId, attempt: u32, most: u64) -> u64 {
    let attempt = attempt.to_le_bytes();
    let bytes = plan.as_str().bytes().chain([0]).chain(task.as_str().bytes()).chain([0]).chain(attempt);
    let sum = bytes
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // The lower bits of the sum of similar names are similar, the upper ones are not.
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

/// Whether `by` is the one who works on a task, or may speak for whoever does.
fn works_on(by: &Actor, state: &TaskState) -> bool {
    match by.kind {
        ActorKind::Person | ActorKind::System => true,
        ActorKind::Agent | ActorKind::Worker => {
            state.worker.as_ref().is_some_and(|worker| by.is_worker(worker))
        }
    }
}
