//! Runs programs: one thread for each attempt, one process group for each program, so that all of it can be ended.
//!
//! An attempt is over when its program has ended: whatever it left behind in its group is ended with it, so that nothing
//! of it runs when its locks are given to others.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use waypost_core::{Ask, Json, limits};

use super::Surroundings;
use super::job::{Job, Part, idempotency_key};
use super::log::{Log, log_path, without_secrets};
use crate::config::Secret;
use crate::identity::WORKER_VARIABLE;
use crate::proof::{self, Claim};
use crate::run::Message;
use crate::scheduler::{Ending, Force};

/// The exit code by which a worker asks to be tried again (`EX_TEMPFAIL`).
const EXIT_TRY_AGAIN: i32 = 75;
/// Milliseconds after which a program whose pipes others hold open is looked at.
const LOOK_MILLIS: i64 = 50;
/// Bytes of what a worker said that an error repeats.
const SAID_BYTES_MAX: usize = 300;
/// Bytes of plain text that become a task's result in words.
const RESULT_BYTES_MAX: usize = 16 * 1024;
/// Between two words about how far a task is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// How far an attempt is, for whoever wants to end it.
enum State {
    /// Nothing was started, or one part has ended and the next has not begun.
    Between,
    /// This group runs.
    Group(Pid),
    /// Nothing more is to be started.
    Stopped,
}

/// What an attempt can be ended by.
pub(crate) struct Handle {
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    /// Ends the attempt, or keeps it from beginning.
    pub(crate) fn stop(&self, force: Force) {
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
            State::Stopped => {}
        }
    }
}

/// Starts the work of an attempt. How it ends is told through `sender`.
pub(crate) fn launch(job: Job, around: Arc<Surroundings>, sender: Sender<Message>) -> Handle {
    let state = Arc::new(Mutex::new(State::Between));
    let handle = Handle { state: Arc::clone(&state) };
    let key = job.key.clone();
    let told = sender.clone();
    let thread = std::thread::Builder::new().name(format!("attempt {}", key.task)).spawn(move || {
        let ending = run(&job, &around, &state, &sender);
        // Nobody listens any more when the run is over.
        let _over = sender.send(Message::Ended(job.key.clone(), ending));
    });
    if let Err(error) = thread {
        let ending = Ending::TryAgain { error: format!("no thread could be started: {error}") };
        let _over = told.send(Message::Ended(key, ending));
    }
    handle
}

fn run(job: &Job, around: &Surroundings, state: &Mutex<State>, sender: &Sender<Message>) -> Ending {
    let path = log_path(&around.logs, &job.key.plan, &job.key.task, job.key.attempt);
    let mut log = Log::new(path, job.log_bytes_max);
    let reported = job.check.as_ref().and_then(|check| check.reported.clone());
    let is_reported = reported.is_some();
    let mut claim = reported.unwrap_or_default();
    for part in &job.parts {
        if let Some(check) = job.check.as_ref().filter(|_| part.is_check) {
            let found = run_part(job, &part.about(&claim), around, state, &mut log, sender);
            return proof::judged(&check.work, claim, is_reported, &around.worker, found, &log.tail);
        }
        match run_part(job, part, around, state, &mut log, sender) {
            Ending::Done { result, output } => claim = Claim { result, output },
            ending => return ending,
        }
    }
    match &job.check {
        Some(check) if check.is_noop => proof::passed_at_once(&check.work, claim, &around.worker),
        Some(_) | None => Ending::Done { result: claim.result, output: claim.output },
    }
}

fn run_part(
    job: &Job,
    part: &Part,
    around: &Surroundings,
    state: &Mutex<State>,
    log: &mut Log,
    sender: &Sender<Message>,
) -> Ending {
    log.begin();
    let (mut command, secrets) = match prepared(job, part, around) {
        Ok(prepared) => prepared,
        Err(error) => return Ending::Failed { error },
    };
    let spawned = {
        // Held while it starts, so that an order to end either comes before or finds the group.
        let mut state = lock(state);
        match &*state {
            State::Stopped => return Ending::Failed { error: "it was stopped before it began".to_owned() },
            State::Between | State::Group(_) => {}
        }
        let spawned = command.spawn();
        if let Ok(child) = &spawned
            && let Some(group) = Pid::from_raw(child.id() as i32)
        {
            *state = State::Group(group);
        }
        spawned
    };
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let program = part.process.command.first().map(String::as_str).unwrap_or_default();
            return Ending::Failed { error: format!("{program} could not be started: {error}") };
        }
    };
    let mut talk = Talk { input: part.input.as_bytes(), output: Vec::new(), too_much: false };
    let spoken = converse(job, &mut child, &mut talk, log, &secrets, sender);
    let status = end(&mut child, state);
    log.finish(&secrets);
    match (spoken, status) {
        (Ok(()), Ok(status)) => judged(job, status, &talk, log, &secrets),
        (Err(error), _) | (_, Err(error)) => {
            Ending::Failed { error: format!("it could not be followed: {error}") }
        }
    }
}

/// The command with everything that the configuration says, and the secrets that it was given.
fn prepared(job: &Job, part: &Part, around: &Surroundings) -> Result<(Command, Vec<String>), String> {
    let process = &part.process;
    let mut command = if process.shell {
        let mut command = Command::new("/bin/sh");
        command.arg("-c");
        command
    } else {
        Command::new(&process.command[0])
    };
    command.args(if process.shell { &process.command[..] } else { &process.command[1..] });
    command.current_dir(directory(around, &process.directory)?);
    command.env_clear();
    for name in &process.environment {
        if let Some(value) = around.variables.get(name) {
            command.env(name, value);
        }
    }
    let mut secrets = Vec::new();
    for (name, secret) in &process.secrets {
        let value = match secret {
            Secret::Variable(variable) => around.variables.get(variable).cloned(),
            Secret::File(file) => std::fs::read_to_string(around.workspace.join(file)).ok(),
        };
        let value = value
            .ok_or_else(|| format!("the secret {name} is not to be had where the configuration says"))?;
        let value = value.strip_suffix('\n').unwrap_or(&value).to_owned();
        command.env(name, &value);
        secrets.push(value);
    }
    let key = &job.key;
    command
        .env("WAYPOST_PLAN", key.plan.as_str())
        .env("WAYPOST_TASK", key.task.as_str())
        .env("WAYPOST_ATTEMPT", key.attempt.to_string())
        .env("WAYPOST_IDEMPOTENCY_KEY", idempotency_key(key))
        // Whoever calls `waypost` from inside the work asks as the worker that it is, not as the person at the keyboard.
        .env("WAYPOST_ACTOR", format!("worker:{}", key.plan))
        .env(WORKER_VARIABLE, &around.worker)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    Ok((command, secrets))
}

/// The folder that a program starts in. Links are followed before it is asked whether it lies in the workspace.
fn directory(around: &Surroundings, relative: &str) -> Result<PathBuf, String> {
    let unusable = |error: io::Error| format!("the folder {relative:?} cannot be used: {error}");
    let root = around.workspace.canonicalize().map_err(unusable)?;
    if relative.is_empty() {
        return Ok(root);
    }
    let folder = root.join(relative).canonicalize().map_err(unusable)?;
    if folder.starts_with(&root) {
        Ok(folder)
    } else {
        Err(format!("the folder {relative:?} leads out of the workspace"))
    }
}

/// What is said to a program and what it says.
struct Talk<'a> {
    input: &'a [u8],
    output: Vec<u8>,
    too_much: bool,
}

/// Writes the input and reads output and log, whichever can go on, until the program has ended or says no more.
fn converse(
    job: &Job,
    child: &mut Child,
    talk: &mut Talk<'_>,
    log: &mut Log,
    secrets: &[String],
    sender: &Sender<Message>,
) -> io::Result<()> {
    let (mut stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    if let Some(pipe) = &stdin {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    let mut told: Option<Instant> = None;
    let mut buffer = vec![0u8; 16 * 1024];
    while stdout.is_some() || stderr.is_some() {
        if let Some(pipe) = &mut stdin {
            match pipe.write(talk.input) {
                Ok(count) => talk.input = &talk.input[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A program that does not want its input need not read it.
                Err(_) => talk.input = &[],
            }
            if talk.input.is_empty() {
                stdin = None;
            }
        }
        let (can_write, can_read, can_log) = ready(
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        )?;
        if let Some(pipe) = stdout.as_mut().filter(|_| can_read) {
            match pipe.read(&mut buffer) {
                Ok(0) => stdout = None,
                Ok(count) if (talk.output.len() + count) as u64 > job.output_bytes_max => {
                    talk.too_much = true
                }
                Ok(count) => talk.output.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(pipe) = stderr.as_mut().filter(|_| can_log) {
            match pipe.read(&mut buffer) {
                Ok(0) => stderr = None,
                Ok(count) => log.take(&buffer[..count], secrets),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if log.progress.is_some() && told.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL) {
            told = Some(Instant::now());
            if let Some(progress) = log.progress.take() {
                let _over =
                    sender.send(Message::Progressed(job.key.clone(), shortened(&progress, SAID_BYTES_MAX)));
            }
        }
        // Others may hold the pipes open when the program itself has long ended.
        if !(can_write || can_read || can_log) && has_ended(child) {
            return Ok(());
        }
    }
    Ok(())
}

/// Which of the pipes can go on; none of them when the time of a look has passed.
fn ready(
    stdin: Option<BorrowedFd<'_>>,
    stdout: Option<BorrowedFd<'_>>,
    stderr: Option<BorrowedFd<'_>>,
) -> io::Result<(bool, bool, bool)> {
    let places = [(stdin, PollFlags::OUT), (stdout, PollFlags::IN), (stderr, PollFlags::IN)];
    let mut watched = Vec::with_capacity(3);
    let mut at = [None; 3];
    for (place, (pipe, flags)) in places.into_iter().enumerate() {
        if let Some(pipe) = pipe {
            at[place] = Some(watched.len());
            watched.push(PollFd::from_borrowed_fd(pipe, flags));
        }
    }
    let patience = Timespec { tv_sec: 0, tv_nsec: LOOK_MILLIS * 1_000_000 };
    match poll(&mut watched, Some(&patience)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let fired = at.map(|at| at.is_some_and(|at| !watched[at].revents().is_empty()));
    Ok((fired[0], fired[1], fired[2]))
}

/// Whether a program has ended. Its number stays its own until [`end`] takes note.
fn has_ended(child: &Child) -> bool {
    let Some(process) = Pid::from_raw(child.id() as i32) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(process), options), Ok(Some(_)) | Err(_))
}

/// Waits for the program, ends what it left behind in its group, and gives its number back.
fn end(child: &mut Child, state: &Mutex<State>) -> io::Result<ExitStatus> {
    let process = Pid::from_raw(child.id() as i32);
    if let Some(process) = process {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process), options) {}
    }
    let mut state = lock(state);
    if let Some(group) = process {
        // The program itself is not reaped yet, so the number still means its group.
        let _nobody_left = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait();
    *state = State::Between;
    drop(state);
    if let Some(group) = process {
        wait_for_the_killed(group);
    }
    status
}

/// Waits until nothing is left of a group that was killed. Mostly there is nothing, and it costs one look.
fn wait_for_the_killed(group: Pid) {
    /// Looks, a millisecond apart: what has not gone by then is dead and only not taken away by the system.
    const LOOKS_MAX: usize = 500;
    for _ in 0..LOOKS_MAX {
        if test_kill_process_group(group).is_err() {
            return;
        }
        let _passed = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
    }
}

/// What an exit code and an output mean.
fn judged(job: &Job, status: ExitStatus, talk: &Talk<'_>, log: &Log, secrets: &[String]) -> Ending {
    if let Some(question) = &log.question {
        // However it ended, it has asked: that is never taken for done.
        return asked(question);
    }
    let said = if log.last.is_empty() {
        String::new()
    } else {
        format!(": {}", shortened(&log.last, SAID_BYTES_MAX))
    };
    match (status.code(), status.signal()) {
        (Some(0), _) => {}
        (Some(EXIT_TRY_AGAIN), _) => {
            return Ending::TryAgain { error: format!("it asked to be tried again{said}") };
        }
        (Some(code), _) => return Ending::Failed { error: format!("it ended with exit code {code}{said}") },
        (None, Some(signal)) => {
            return Ending::Failed { error: format!("it was ended by signal {signal}{said}") };
        }
        (None, None) => return Ending::Failed { error: format!("nobody knows how it ended{said}") },
    }
    if talk.too_much {
        return Ending::Failed { error: format!("its output has more than {} bytes", job.output_bytes_max) };
    }
    let text = without_secrets(&String::from_utf8_lossy(&talk.output), secrets);
    let text = text.trim();
    if text.is_empty() {
        return Ending::Done { result: None, output: None };
    }
    match Json::parse(text) {
        Ok(output) => Ending::Done { result: None, output: Some(output) },
        Err(_) => Ending::Done { result: Some(shortened(text, RESULT_BYTES_MAX)), output: None },
    }
}

/// What a worker asks: plain words, or an object with `question`, `choices` and `state`.
fn asked(said: &str) -> Ending {
    #[derive(serde::Deserialize)]
    struct Long {
        question: String,
        #[serde(default)]
        choices: Vec<String>,
        state: Option<Json>,
    }
    let ask = match serde_json::from_str::<Long>(said) {
        Ok(Long { question, choices, state }) => Ask { text: question, choices, state },
        Err(_) => Ask { text: said.to_owned(), ..Ask::default() },
    };
    let state_bytes = ask.state.as_ref().map_or(0, |state| state.as_str().len());
    let choice_bytes = ask.choices.iter().map(String::len).max().unwrap_or(0);
    let wrong = if ask.text.trim().is_empty() || ask.choices.iter().any(|choice| choice.trim().is_empty()) {
        "an empty question or choice".to_owned()
    } else if ask.text.len().max(choice_bytes) > limits::QUESTION_BYTES_MAX {
        format!("a question or choice of more than {} bytes", limits::QUESTION_BYTES_MAX)
    } else if ask.choices.len() > limits::CHOICES_MAX {
        format!("a question with more than {} choices", limits::CHOICES_MAX)
    } else if state_bytes > limits::QUESTION_STATE_BYTES_MAX {
        format!("a question with a state of more than {} bytes", limits::QUESTION_STATE_BYTES_MAX)
    } else {
        return Ending::Asked(Box::new(ask));
    };
    Ending::Failed { error: format!("it asked {wrong}") }
}

fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_is_cut_between_characters() {
        assert_eq!(shortened("ééé", 3), "é…");
        assert_eq!(shortened("short", 10), "short");
    }
}
