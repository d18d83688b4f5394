//! Ends remote jobs that nobody wants any more, each by the means of its executor.

use waypost_config::{Config, ExecutionEnv, Worker, worker_named};
use waypost_core::Timestamp;

use crate::remote_note::RemoteNote;
use crate::{http, remote_program, slurm};

/// Ends the job of a note, and removes the note. Returns why it could not; a later call may succeed. Blocks for some
/// seconds if the other side does not answer.
pub fn end_left_job(
    config: &Config,
    around: &ExecutionEnv,
    note: RemoteNote,
    now: Timestamp,
) -> Result<(), String> {
    let name = note.key.clone();
    let unknown = || format!("{}: no executor of that name can end its job {name}", note.worker);
    let worker = worker_named(config, &note.worker, note.is_check).ok_or_else(unknown)?;
    let key = note.attempt_key();
    // Another run may have taken it over meanwhile.
    let mut note = match note.claim(around, &key) {
        Some(note) => note,
        None => return Ok(()),
    };
    let is_over = match worker {
        Worker::Http(http) => http::end_left(around, http, &note, now.as_micros() / 1_000_000)?,
        Worker::Slurm(slurm) => slurm::end_left(around, slurm, &mut note)?,
        Worker::Program(program) => remote_program::end_left(around, program, &mut note)?,
        // The configuration has changed since.
        Worker::Process(_) | Worker::Agent(_) | Worker::Container(_) | Worker::Kubernetes(_) => {
            return Err(format!("{} can no longer end its job {name}", note.worker));
        }
    };
    if is_over {
        note.remove();
    }
    if is_over { Ok(()) } else { Err(format!("the job {name} could not be ended, and may still be working")) }
}
