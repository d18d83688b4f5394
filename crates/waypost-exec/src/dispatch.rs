//! Runs the parts of an attempt in order, each with its kind of executor.

use std::path::Path;
use std::sync::Mutex;

use waypost_config::{ExecutionEnv, Worker};

use crate::attempt::{Attempt, State};
use crate::attempt_log::Log;
use crate::attempt_spec::{AttemptSpec, Part};
use crate::check_evidence::{self, Claim};
use crate::outcome::{AttemptEvents, AttemptOutcome};
use crate::{agent, container, http, kubernetes, process, remote_program, slurm};

/// Runs all parts of an attempt. A part that does not succeed ends it.
pub(super) fn run(
    job: &AttemptSpec,
    around: &ExecutionEnv,
    here: Option<&Path>,
    state: &Mutex<State>,
    events: &AttemptEvents,
) -> AttemptOutcome {
    let log = Log::new(&around.logs, &job.key, job.log_bytes_max, job.made_at);
    let mut attempt = Attempt { job, around, here, state, log, events };
    let reported = job.check.as_ref().and_then(|check| check.reported.clone());
    let is_reported = reported.is_some();
    let mut claim = reported.unwrap_or_default();
    for part in &job.parts {
        if let Some(check) = job.check.as_ref().filter(|_| part.is_check) {
            let found = run_part(&mut attempt, &part.about(&claim));
            return check_evidence::judged(
                &check.work,
                claim,
                is_reported,
                &around.worker,
                found,
                &attempt.log.tail,
            );
        }
        match run_part(&mut attempt, part) {
            AttemptOutcome::Done { result, output } => claim = Claim { result, output },
            ending @ (AttemptOutcome::Failed { .. }
            | AttemptOutcome::TryAgain { .. }
            | AttemptOutcome::Asked(_)
            | AttemptOutcome::Checked { .. }) => return ending,
        }
    }
    match &job.check {
        Some(check) if check.is_noop => check_evidence::passed_at_once(&check.work, claim, &around.worker),
        Some(_) | None => AttemptOutcome::Done { result: claim.result, output: claim.output },
    }
}

fn run_part(attempt: &mut Attempt<'_>, part: &Part) -> AttemptOutcome {
    attempt.log.begin();
    let ended = match &part.worker {
        Worker::Process(process) => process::run(attempt, process, part.input.as_bytes()),
        Worker::Agent(agent) => Ok(agent::run(attempt, agent, &part.facts, part.pinned.as_ref())),
        Worker::Http(http) => http::run(attempt, http, part),
        Worker::Container(container) => container::run(attempt, container, part.input.as_bytes()),
        Worker::Kubernetes(kubernetes) => kubernetes::run(attempt, kubernetes, &part.input),
        Worker::Slurm(slurm) => slurm::run(attempt, slurm, part),
        Worker::Program(program) => remote_program::run(attempt, program, part),
    };
    ended.unwrap_or_else(|error| AttemptOutcome::Failed { error })
}
