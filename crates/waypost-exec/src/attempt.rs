//! One attempt: what every kind of executor finds when it does a part, and the handle by which the attempt is ended.
//!
//! Does not know how any kind of worker works; each has its own file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;
use waypost_core::Json;
use waypost_text::truncate_bytes;

use super::attempt_log::{Log, without_secrets};
use super::attempt_spec::AttemptSpec;
use crate::outcome::{AttemptEvent, AttemptEvents, AttemptOutcome, Force};
use waypost_config::{ExecutionEnv, Secret};

/// Bytes of what a worker said that an error repeats.
pub(super) const SAID_BYTES_MAX: usize = 300;
/// Bytes of plain text that become a task's result in words.
const RESULT_BYTES_MAX: usize = 16 * 1024;

/// How far an attempt is, for whoever wants to end it.
pub(super) enum State {
    /// Nothing was started, or one part has ended and the next has not begun.
    Between,
    /// This group runs.
    Group(Pid),
    /// Somebody elsewhere is at work, and hears of it through this.
    Remote(watch::Sender<Option<Force>>),
    /// Nothing more is to be started.
    Stopped,
}

/// What an attempt can be ended by.
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

    /// Ends the attempt, or keeps it from beginning.
    pub fn stop(&self, force: Force) {
        let mut state = lock(&self.state);
        match &*state {
            State::Between => *state = State::Stopped,
            State::Group(group) => {
                let signal = match force {
                    Force::Ask => Signal::TERM,
                    Force::Kill => Signal::KILL,
                };
                // It may have ended a moment ago; its number is not given away before the thread has taken note.
                let _gone = kill_process_group(*group, signal);
            }
            State::Remote(sender) => {
                sender.send_replace(Some(force));
            }
            State::Stopped => {}
        }
    }
}

/// An attempt that can begin.
pub struct PreparedAttempt {
    pub job: AttemptSpec,
    pub(super) state: Arc<Mutex<State>>,
}

impl PreparedAttempt {
    /// An attempt, and what it can be ended by.
    pub fn new(job: AttemptSpec) -> (Self, AttemptHandle) {
        let state = Arc::new(Mutex::new(State::Between));
        let handle = AttemptHandle::of(&state);
        (Self { job, state }, handle)
    }
}

/// What every kind of worker finds when it does a part.
pub(super) struct Attempt<'a> {
    pub(super) job: &'a AttemptSpec,
    pub(super) around: &'a ExecutionEnv,
    /// The folder that we are in ourselves.
    pub(super) here: Option<&'a Path>,
    pub(super) state: &'a Mutex<State>,
    pub(super) log: Log<'a>,
    pub(super) events: &'a AttemptEvents,
}

impl Attempt<'_> {
    /// Tells the run how far it is.
    pub(super) fn progressed(&self, progress: &str) {
        let progress = truncate_bytes(progress, SAID_BYTES_MAX).into_owned();
        (self.events)(AttemptEvent::Progressed(self.job.key.clone(), progress));
    }

    /// The value of a secret, read where the configuration says.
    pub(super) fn secret(&self, name: &str, secret: &Secret) -> Result<String, String> {
        self.around.secret(name, secret)
    }
}

/// What a text that a worker gave means: an output, a result in words, or nothing.
pub(super) fn done(text: &str, secrets: &[String]) -> AttemptOutcome {
    let text = without_secrets(text, secrets);
    let text = text.trim();
    if text.is_empty() {
        return AttemptOutcome::Done { result: None, output: None };
    }
    match Json::parse(text) {
        Ok(output) => AttemptOutcome::Done { result: None, output: Some(output) },
        Err(_) => AttemptOutcome::Done {
            result: Some(truncate_bytes(text, RESULT_BYTES_MAX).into_owned()),
            output: None,
        },
    }
}

/// A folder of the workspace. Links are followed before it is asked whether it lies in there.
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
