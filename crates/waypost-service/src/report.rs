//! Claiming, reporting, releasing and asking, for all workers, people and agents. The lease policy is here: a claim
//! takes a lease, every progress report renews it for its original duration, and only the holder of an attempt, or a
//! person, may report on it.

use serde::Serialize;
use waypost_core::{
    Command, Json, Outcome, Plan, PlanId, Problem, ProblemKind, QuestionRequest, Refusal, Status, TaskId,
    Timestamp,
};
use waypost_store::{Lease, LeaseFilter, LeaseUpdate, StoreError, TaskProgress};

use crate::authenticity::Signing;
use crate::caller::{Caller, Holder, ProvedAct};
use crate::error::{ServiceError, Subject};
use crate::false_done::check_false_done;
use crate::hint::{PersonAct, PersonVerb};
use crate::human_answer::{answer_command, is_as_seen, is_for_people, names_question};
use crate::service::{Guard, Service, Terms, WriteReply};
use crate::sharing::SharingError;

/// The default lease of a claimed task in seconds.
pub(crate) const LEASE_SECONDS_DEFAULT: u32 = 15 * 60;
/// Maximum number of leases read to find some of them.
pub(crate) const LEASES_MAX: usize = 10_000;

/// Options for claiming a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimOptions {
    /// Seconds of the lease; 0 never expires. With `None`, a new lease gets the default duration, and a lease that the caller
    /// already holds is renewed without becoming shorter.
    pub lease_seconds: Option<u32>,
    /// Take the task over from another session of the same agent.
    pub take_over: bool,
    /// Reopen a finished task first, because its report was wrong.
    pub reopen: bool,
}

/// Returns the seconds of a new lease for [`ClaimOptions::lease_seconds`]; `None` never expires.
pub fn new_lease_seconds(wish: Option<u32>) -> Option<u32> {
    Some(wish.unwrap_or(LEASE_SECONDS_DEFAULT)).filter(|&seconds| seconds > 0)
}

/// A task that the caller now holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimReply {
    /// The result of the write; unchanged if the caller already held the task.
    #[serde(flatten)]
    pub written: WriteReply,
    /// The id of the task.
    pub task: TaskId,
    /// The attempt, which later reports may name.
    pub attempt: u32,
}

/// A report on a task by its worker.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskReport {
    /// Progress as text. Renews the lease.
    Progress(String),
    /// The task is done.
    Done {
        /// The result as text.
        result: Option<String>,
        /// The output for the tasks that depend on it.
        output: Option<Json>,
        /// Whether the caller is sure, although the result reads as if it were not done.
        sure: bool,
    },
    /// The task failed.
    Failed {
        /// Why it failed.
        error: String,
    },
    /// The task is not necessary.
    Skipped {
        /// Why it was skipped.
        reason: Option<String>,
    },
    /// The worker releases the task undone.
    Released {
        /// Why it was released.
        reason: String,
    },
    /// A person has to answer a question first.
    Question(Box<QuestionRequest>),
}

impl TaskReport {
    /// Refuses a report that lacks its text. That of a question is checked with its other limits.
    fn says_something(&self, task: &TaskId) -> Result<(), ServiceError> {
        let (what, text) = match self {
            Self::Progress(text) => ("the progress", text),
            Self::Failed { error } => ("the error", error),
            Self::Done { .. } | Self::Skipped { .. } | Self::Released { .. } | Self::Question(_) => {
                return Ok(());
            }
        };
        if text.trim().is_empty() {
            let problem = Problem::task(task, ProblemKind::Empty { what: what.to_owned() });
            return Err(ServiceError::Invalid { subject: Subject::Report, problems: vec![problem] });
        }
        Ok(())
    }
}

/// A task of a plan, and the attempt that reports. Without an attempt only the holder of the task or a person may
/// report.
#[derive(Clone, Copy, Debug)]
pub struct TaskRef<'a> {
    /// The id of the plan.
    pub plan: &'a PlanId,
    /// The id of the task.
    pub task: &'a TaskId,
    /// The attempt that reports.
    pub attempt: Option<u32>,
    /// Take the task over first if another session of the same agent holds it. Not with an attempt, which names its holder.
    pub take_over: bool,
    /// The digest of what the person has read who ends a task for people ([`question_digest`](crate::question_digest)).
    pub seen: Option<&'a str>,
}

impl Service {
    /// Starts a task, leased to the caller. If the caller already holds it, only its lease is renewed, as
    /// described in [`ClaimOptions::lease_seconds`].
    pub fn claim(
        &self,
        by: &Caller,
        plan: &PlanId,
        task: &TaskId,
        options: ClaimOptions,
        guard: Guard,
    ) -> Result<ClaimReply, ServiceError> {
        self.check_offer(by, plan)?;
        self.reclaim_expired_leases(Some(plan))?;
        let guard = if self.start_plan_of(by, plan, task, guard)? { Guard::NONE } else { guard };
        self.check_start(by, plan, task)?;
        let (caller, wanted) = (by.clone(), task.clone());
        let terms =
            Terms { lease_seconds: new_lease_seconds(options.lease_seconds), ..Terms::starting(guard) };
        let (mut written, held) = self
            .write_with(by, plan, terms, move |plan| {
                let start = Command::StartTask { task: wanted.clone(), worker: caller.worker.clone() };
                let Some((attempt, holder)) = holder_of(plan, &wanted) else {
                    let is_finished =
                        plan.task(wanted.as_str()).is_some_and(|task| task.state.status.is_finished());
                    let reopen = Command::RetryTask { task: wanted.clone() };
                    let reopen = (options.reopen && is_finished).then_some(reopen);
                    return Ok((reopen.into_iter().chain([start]).collect(), false));
                };
                match caller.relation_to(&holder) {
                    Holder::Caller => Ok((Vec::new(), true)),
                    Holder::OtherSession if options.take_over => {
                        let reason = "taken over by another session of the same agent".to_owned();
                        let (task, attempt) = (wanted.clone(), Some(attempt));
                        Ok((vec![Command::ReleaseTask { task, attempt, reason }, start], false))
                    }
                    Holder::OtherSession | Holder::Other => {
                        caller.is_no_other_session(&wanted, &holder)?;
                        Err(Refusal::AlreadyRunning { task: wanted.to_string(), worker: holder }.into())
                    }
                }
            })
            .map_err(|error| self.with_lease_end(plan, error))?;
        let attempt = self.read(plan, |plan| holder_of(plan, task).map_or(0, |(attempt, _)| attempt))?;
        if held {
            self.renew_lease(plan, task, attempt, options.lease_seconds, None)?;
            written.changed = false;
        }
        Ok(ClaimReply { written, task: task.clone(), attempt })
    }

    /// Records a report on a task by its worker. If the task ended in another clone meanwhile, it is recorded beside the
    /// other outcome, with a warning.
    pub fn report(
        &self,
        by: &Caller,
        task: TaskRef<'_>,
        report: TaskReport,
        guard: Guard,
    ) -> Result<WriteReply, ServiceError> {
        let written = self.retry_after_expiry(task.plan, || self.try_report(by, task, report.clone(), guard));
        let is_over = match &written {
            Err(ServiceError::Refused(Refusal::WrongStatus { status, .. })) => status.is_finished(),
            Err(ServiceError::Refused(Refusal::Archived { .. })) => true,
            Err(_) | Ok(_) => false,
        };
        let named = task.attempt.or_else(|| by.attempt_of(task.plan, task.task));
        let Some(end) = ending(task.task, named, &report).filter(|_| is_over) else { return written };
        match self.report_late(by, task.plan, task.task, &end) {
            Ok(Some(reply)) => Ok(reply),
            Err(SharingError::Service(error)) => Err(error),
            Ok(None) | Err(_) => written,
        }
    }

    /// Writes once more if another session holds the task. It may be gone: once its lease has expired, it no longer holds
    /// the task.
    pub(crate) fn retry_after_expiry(
        &self,
        plan: &PlanId,
        write: impl Fn() -> Result<WriteReply, ServiceError>,
    ) -> Result<WriteReply, ServiceError> {
        match write() {
            Err(ServiceError::HeldByOtherSession { .. }) => {
                self.reclaim_expired_leases(Some(plan))?;
                write()
            }
            written => written,
        }
    }

    /// Like [`Service::report`], by a signature: what a person has signed ends a task for people.
    pub fn report_signed(
        &self,
        by: &Caller,
        task: TaskRef<'_>,
        report: TaskReport,
        guard: Guard,
        signing: &Signing<'_>,
    ) -> Result<WriteReply, ServiceError> {
        let command = ending(task.task, task.attempt, &report);
        let signed = command.map(|command| self.sign_gate(by, task.plan, &command, signing)).transpose()?;
        self.report(signed.as_ref().unwrap_or(by), task, report, guard)
    }

    fn try_report(
        &self,
        by: &Caller,
        task: TaskRef<'_>,
        report: TaskReport,
        guard: Guard,
    ) -> Result<WriteReply, ServiceError> {
        report.says_something(task.task)?;
        if let TaskReport::Done { result, sure, .. } = &report {
            check_false_done(by, task.task, result.as_deref(), *sure)?;
        }
        if task.take_over && task.attempt.is_none() && self.is_in_other_session(by, &task)? {
            let options = ClaimOptions { take_over: true, ..ClaimOptions::default() };
            self.claim(by, task.plan, task.task, options, guard)?;
        }
        let named = task.attempt.or_else(|| by.attempt_of(task.plan, task.task));
        let (caller, wanted) = (by.clone(), task.task.clone());
        let (seen, config) = (task.seen.map(str::to_owned), self.config()?);
        let progress = if let TaskReport::Progress(text) = &report { Some(text.clone()) } else { None };
        let (mut reply, attempt) = self
            .write_with(by, task.plan, guard, move |plan| {
                // Whoever may not end it hears that first.
                if let Some(seen) = seen.as_ref().filter(|_| caller.is_present()) {
                    is_as_seen(plan, &wanted, seen)?;
                }
                let running = holder_of(plan, &wanted);
                if let (Some(program), Some((current, holder))) = (&caller.program, &running)
                    && program.plan == plan.id().as_str()
                    && caller.relation_to(holder) == Holder::Other
                {
                    let (task, given, current) = (wanted.to_string(), program.attempt, *current);
                    if program.task != task {
                        return Err(Refusal::AlreadyRunning { task, worker: holder.clone() }.into());
                    }
                    if given != current {
                        return Err(Refusal::StaleAttempt { task, given, current }.into());
                    }
                }
                // A caller that names the attempt knows it from the claim, so its session is not compared.
                if let (None, Some((_, holder))) = (named, &running) {
                    caller.is_no_other_session(&wanted, holder)?;
                }
                let command = match &report {
                    TaskReport::Progress(text) => {
                        caller.may_report(plan, &wanted, named)?;
                        let attempt = plan.check_progress(&caller.actor, &wanted, named, text)?;
                        return Ok((Vec::new(), attempt));
                    }
                    TaskReport::Done { .. } | TaskReport::Failed { .. } | TaskReport::Skipped { .. } => {
                        let is_gate =
                            plan.task(wanted.as_str()).is_some_and(|task| is_for_people(&config, plan, task));
                        let is_no = matches!(report, TaskReport::Failed { .. });
                        if is_gate && !is_no && caller.is_present() {
                            names_question(&config, plan, &wanted, seen.as_deref(), guard.known_version)?;
                        }
                        return Ok((ending(&wanted, named, &report).into_iter().collect(), 0));
                    }
                    TaskReport::Released { reason } => {
                        let (task, reason) = (wanted.clone(), reason.clone());
                        Command::ReleaseTask { task, attempt: named, reason }
                    }
                    TaskReport::Question(ask) => {
                        Command::AskQuestion { task: wanted.clone(), attempt: named, ask: ask.clone() }
                    }
                };
                Ok((vec![command], 0))
            })
            .map_err(|error| {
                if let ServiceError::Invalid { problems, .. } = error {
                    return ServiceError::Invalid { subject: Subject::Report, problems };
                }
                self.with_lease_end(task.plan, error)
            })?;
        if let Some(text) = progress {
            self.renew_lease(task.plan, task.task, attempt, None, Some(text))?;
            reply.changed = true;
        }
        Ok(reply)
    }

    fn is_in_other_session(&self, by: &Caller, task: &TaskRef<'_>) -> Result<bool, ServiceError> {
        let holder = self.read(task.plan, |plan| holder_of(plan, task.task))?;
        Ok(holder.is_some_and(|(_, holder)| by.relation_to(&holder) == Holder::OtherSession))
    }

    /// Renews the lease of an attempt: for `wish` seconds from now, which become its duration, or else for its duration but
    /// never to an earlier end. Stores progress with it. Does nothing for an attempt that has ended meanwhile.
    fn renew_lease(
        &self,
        plan: &PlanId,
        task: &TaskId,
        attempt: u32,
        wish: Option<u32>,
        text: Option<String>,
    ) -> Result<(), ServiceError> {
        let lease = self.lease(plan, task, attempt)?;
        let end = lease.as_ref().and_then(|lease| lease.until);
        let taken_for = lease.and_then(|lease| lease.seconds).unwrap_or(LEASE_SECONDS_DEFAULT);
        self.plans().store().write(&mut |transaction| {
            let at = transaction.now();
            let in_seconds = |seconds: u32| at.plus_seconds(u64::from(seconds));
            let until = match wish {
                None => end.map(|end| end.max(in_seconds(taken_for))),
                // An end can be moved but not removed, so a lease that never expires ends in 136 years.
                Some(0) => end.map(|_| in_seconds(u32::MAX)),
                Some(seconds) => Some(in_seconds(seconds)),
            };
            let (plan, task) = (plan.clone(), task.clone());
            let progress = text.clone().map(|text| TaskProgress { text, at });
            let seconds = wish.map(|seconds| if seconds == 0 { u32::MAX } else { seconds });
            let update = LeaseUpdate { plan, task, attempt, until, seconds, progress };
            transaction.update_leases(&[update]).map(drop)
        })?;
        Ok(())
    }

    /// Stores the latest progress of attempts that a worker runs. Does not renew leases.
    pub fn record_progress(&self, reports: &[(PlanId, TaskId, u32, String)]) -> Result<(), StoreError> {
        self.plans().store().write(&mut |transaction| {
            let at = transaction.now();
            let update = |(plan, task, attempt, text): &(PlanId, TaskId, u32, String)| LeaseUpdate {
                plan: plan.clone(),
                task: task.clone(),
                attempt: *attempt,
                until: None,
                seconds: None,
                progress: Some(TaskProgress { text: text.clone(), at }),
            };
            let updates: Vec<LeaseUpdate> = reports.iter().map(update).collect();
            transaction.update_leases(&updates).map(drop)
        })
    }

    /// Answers a task's question, or finishes a task that a person does. Only a person can, who names what they have read: by
    /// its digest, or by the version of the plan.
    pub fn answer(
        &self,
        by: &Caller,
        task: TaskRef<'_>,
        answer: &str,
        guard: Guard,
    ) -> Result<WriteReply, ServiceError> {
        let TaskRef { plan, task, seen, .. } = task;
        let config = self.config()?;
        let act = PersonAct::on_task(PersonVerb::Answer, plan, task);
        by.proved(&ProvedAct { verb: "answer a question", what: "answering", act })?;
        let (actor, task, answer) = (by.actor.clone(), task.clone(), answer.to_owned());
        let seen = seen.map(str::to_owned);
        let (reply, ()) = self.write_with(by, plan, guard, move |plan| {
            names_question(&config, plan, &task, seen.as_deref(), guard.known_version)?;
            Ok((vec![answer_command(&config, plan, &task, &answer, &actor)?], ()))
        })?;
        Ok(reply)
    }

    /// Like [`Service::answer`], by a signature.
    pub fn answer_signed(
        &self,
        by: &Caller,
        task: TaskRef<'_>,
        answer: &str,
        guard: Guard,
        signing: &Signing<'_>,
    ) -> Result<WriteReply, ServiceError> {
        let config = self.config()?;
        let TaskRef { plan, task: asked, seen, .. } = task;
        let command = self.read(plan, |plan| {
            names_question(&config, plan, asked, seen, guard.known_version)?;
            answer_command(&config, plan, asked, answer, &by.actor)
        })??;
        let signed = self.sign_gate(by, plan, &command, signing)?;
        self.answer(&signed, task, answer, guard)
    }

    /// Returns the leases of the caller, in all its sessions.
    pub fn leases_of(&self, by: &Caller) -> Result<Vec<Lease>, ServiceError> {
        let mut leases = self.plans().store().query(|read| read.leases(&LeaseFilter::All, LEASES_MAX))?;
        leases.retain(|lease| by.actor.is_worker(&lease.worker));
        Ok(leases)
    }

    fn lease(&self, plan: &PlanId, task: &TaskId, attempt: u32) -> Result<Option<Lease>, ServiceError> {
        let leases = self.plans().store().query(|read| read.leases(&LeaseFilter::Plan(plan), LEASES_MAX))?;
        Ok(leases.into_iter().find(|lease| lease.task == *task && lease.attempt == attempt))
    }

    /// Adds the end of the other session's lease to the error.
    pub(crate) fn with_lease_end(&self, plan: &PlanId, error: ServiceError) -> ServiceError {
        let ServiceError::HeldByOtherSession { task, agent, until: None } = error else { return error };
        let attempt = self.read(plan, |plan| holder_of(plan, &task).map(|(attempt, _)| attempt));
        let lease =
            attempt.ok().flatten().and_then(|attempt| self.lease(plan, &task, attempt).ok().flatten());
        let until: Option<Timestamp> = lease.and_then(|lease| lease.until);
        ServiceError::HeldByOtherSession { task, agent, until }
    }
}

/// Returns the running attempt of a task, and its holder.
pub(crate) fn holder_of(plan: &Plan, task: &TaskId) -> Option<(u32, String)> {
    let running = plan.task(task.as_str()).filter(|task| task.state.status == Status::Running)?;
    Some((running.state.attempt, running.state.worker.clone().unwrap_or_default()))
}

/// Returns the command for a report that ends a task.
fn ending(task: &TaskId, attempt: Option<u32>, report: &TaskReport) -> Option<Command> {
    let outcome = match report {
        TaskReport::Done { result, output, .. } => {
            Outcome::Done { result: result.clone(), output: output.clone(), evidence: None }
        }
        TaskReport::Failed { error } => Outcome::Failed { error: error.clone(), evidence: None },
        TaskReport::Skipped { reason } => Outcome::Skipped { reason: reason.clone() },
        TaskReport::Progress(_) | TaskReport::Released { .. } | TaskReport::Question(_) => return None,
    };
    Some(Command::FinishTask { task: task.clone(), attempt, outcome, retry: None })
}
