//! One attempt: the context that every kind of executor gets for a part, and the handle that stops the attempt. Does
//! not know how any executor works; each has its own file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;
use tokio::sync::watch;
use waypost_core::Json;
use waypost_text::truncate_bytes;

use super::attempt_log::Log;
use super::attempt_spec::AttemptSpec;
use super::process_tree::ProcessGroup;
use crate::outcome::{AttemptEvent, AttemptEvents, AttemptOutcome, Force};
use crate::secrets::Secrets;
use waypost_config::{ExecutionEnv, Secret};

/// Bytes of a worker's message that an error quotes.
pub(super) const SAID_BYTES_MAX: usize = 300;
/// Bytes of plain text that become a task's result.
const RESULT_BYTES_MAX: usize = 16 * 1024;

/// The stage of an attempt, which decides how it can be stopped.
pub(super) enum State {
    /// Nothing has started, or one part has ended and the next has not begun.
    Between,
    /// This program runs.
    Group(ProcessGroup),
    /// A remote worker runs, and stop requests reach it through this channel.
    Remote(watch::Sender<Option<Force>>),
    /// Nothing more may start.
    Stopped,
}

/// Stops an attempt.
#[derive(Clone)]
pub struct AttemptHandle {
    state: Arc<Mutex<State>>,
}

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AttemptHandle {
    pub(super) fn of(state: &Arc<Mutex<State>>) -> Self {
        Self { state: Arc::clone(state) }
    }

    /// Stops the attempt, or prevents it from starting.
    pub fn stop(&self, force: Force) {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Between => *state = State::Stopped,
            State::Group(group) => group.stop(match force {
                Force::Ask => Signal::TERM,
                Force::Kill => Signal::KILL,
            }),
            State::Remote(sender) => {
                sender.send_replace(Some(force));
            }
            State::Stopped => {}
        }
    }
}

/// An attempt that is ready to start.
pub struct PreparedAttempt {
    pub job: AttemptSpec,
    pub(super) state: Arc<Mutex<State>>,
}

impl PreparedAttempt {
    pub fn new(job: AttemptSpec) -> (Self, AttemptHandle) {
        let state = Arc::new(Mutex::new(State::Between));
        let handle = AttemptHandle::of(&state);
        (Self { job, state }, handle)
    }
}

/// The context that every kind of executor gets for a part.
pub(super) struct Attempt<'a> {
    pub(super) job: &'a AttemptSpec,
    pub(super) around: &'a ExecutionEnv,
    /// The working directory of this process.
    pub(super) here: Option<&'a Path>,
    pub(super) state: &'a Mutex<State>,
    pub(super) log: Log<'a>,
    pub(super) events: &'a AttemptEvents,
}

impl Attempt<'_> {
    /// Reports progress to the run.
    pub(super) fn progressed(&self, progress: &str) {
        let progress = truncate_bytes(progress, SAID_BYTES_MAX).into_owned();
        (self.events)(AttemptEvent::Progressed(self.job.key.clone(), progress));
    }

    /// Returns the value of a secret, read from the source that the configuration names.
    pub(super) fn secret(&self, name: &str, secret: &Secret) -> Result<String, String> {
        self.around.secret(name, secret)
    }
}

/// Converts the text of a worker: JSON becomes the output, other text the result, and empty text neither.
pub(super) fn done(text: &str, secrets: &Secrets) -> AttemptOutcome {
    let text = secrets.redact(text);
    let text = text.trim();
    if text.is_empty() {
        return AttemptOutcome::Done { result: None, output: None };
    }
    match Json::parse(text) {
        Ok(output) => AttemptOutcome::Done { result: None, output: Some(secrets.redact_decoded(output)) },
        Err(_) => AttemptOutcome::Done {
            result: Some(truncate_bytes(text, RESULT_BYTES_MAX).into_owned()),
            output: None,
        },
    }
}

/// Resolves a directory of the workspace. Links are followed before the check that it lies inside.
pub(super) fn inside(root: &std::path::Path, relative: &str) -> Result<PathBuf, String> {
    let unusable = |error: std::io::Error| format!("the folder {relative:?} cannot be used: {error}");
    if relative.is_empty() {
        return Ok(root.to_owned());
    }
    let root = root.canonicalize().map_err(unusable)?;
    let place = root.join(relative).canonicalize().map_err(unusable)?;
    if place.starts_with(&root) {
        Ok(place)
    } else {
        Err(format!("the folder {relative:?} leads out of the workspace"))
    }
}
