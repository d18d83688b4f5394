//! Runs programs, each in its own process group, so that its child processes can be killed with it.
//!
//! An attempt is over when its program has ended. Processes left in its group are killed, so that none of them is
//! running when its locks pass to other tasks; of a program that was stopped, so are those that have left the group.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use waypost_text::truncate_bytes;

use super::attempt::{Attempt, SAID_BYTES_MAX, State, done, inside, lock};
use super::attempt_spec::idempotency_key;
use super::process_tree::{ProcessGroup, adopt_orphans};
use super::question::asked;
use crate::outcome::AttemptOutcome;
use crate::secrets::Secrets;
use waypost_config::Process;
use waypost_git::Git;
use waypost_store::WORKER_VARIABLE;

/// The exit code of a worker that asks for another attempt (`EX_TEMPFAIL`).
pub(super) const EXIT_TRY_AGAIN: i32 = 75;
/// Milliseconds between two polls of a program without a pidfd, or with progress to report.
const LOOK_MILLIS: i64 = 50;
/// Bytes that every pipe accepts at once. An input of at most this size is written before the program starts.
const INPUT_BYTES_AT_ONCE: usize = 4096;
/// Maximum number of reads from the pipes of a program that has ended, because other processes may still write to them.
const LAST_READS_MAX: usize = 256;
/// Bytes of one read from a pipe.
const READ_BYTES_MAX: usize = 8 * 1024;
/// Minimum time between two progress reports of a task.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// A program to run: its configuration, its working directory and its input.
pub(super) struct Program<'a> {
    pub(super) process: &'a Process,
    pub(super) directory: PathBuf,
    pub(super) input: &'a [u8],
    pub(super) environment: Environment<'a>,
    pub(super) escaped: Escaped,
}

/// What happens to processes that have left the group of a program that is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaped {
    /// They are part of its work, and are ended.
    End,
    /// They are left alone: the program has other means to end them, or starts none.
    Leave,
}

/// The environment of a program. Each also has the variable by which the processes of a dead run are found.
pub(super) enum Environment<'a> {
    /// What the configuration names, and the variables of the attempt.
    Configured,
    /// Exactly these variables.
    Closed(&'a [(&'static str, String)]),
}

pub(super) struct ProcessResult {
    pub(super) status: ExitStatus,
    pub(super) output: Vec<u8>,
    pub(super) too_much: bool,
    pub(super) secrets: Secrets,
}

/// Runs a program that implements the worker contract.
pub(super) fn run(
    attempt: &mut Attempt<'_>,
    process: &Process,
    input: &[u8],
) -> Result<AttemptOutcome, String> {
    let directory = inside(&attempt.around.workspace, &process.directory)?;
    let spoken = follow(
        attempt,
        &Program { process, directory, input, environment: Environment::Configured, escaped: Escaped::End },
    )?;
    Ok(outcome(attempt, &spoken))
}

/// The outcome of an attempt, from the exit status and the output of its worker.
pub(super) fn outcome(attempt: &Attempt<'_>, spoken: &ProcessResult) -> AttemptOutcome {
    judged(attempt, spoken).unwrap_or_else(|| done(&String::from_utf8_lossy(&spoken.output), &spoken.secrets))
}

/// Runs a program to its end.
pub(super) fn follow(attempt: &mut Attempt<'_>, program: &Program<'_>) -> Result<ProcessResult, String> {
    let (mut command, secrets) = prepared(attempt, program)?;
    let mut process_io = ProcessIo { input: program.input, output: Vec::new(), too_much: false };
    let pipes = connected(&mut command, &mut process_io);
    let pipes = pipes.map_err(|error| format!("cannot create pipes: {error}"))?;
    adopt_orphans();
    let spawned = {
        // Held while the program starts, so that a stop request either comes before or finds the group.
        let mut state = lock(attempt.state);
        if let State::Stopped = &*state {
            return Err("it was stopped before it began".to_owned());
        }
        let spawned = command.spawn();
        if let Ok(child) = &spawned
            && let Some(group) = Pid::from_raw(child.id() as i32)
        {
            *state = State::Group(ProcessGroup::new(group, marks(attempt, program.escaped)));
        }
        spawned
    };
    let mut child = spawned.map_err(|error| {
        let name = program.process.command.first().map(String::as_str).unwrap_or_default();
        format!("{name} could not be started: {error}")
    })?;
    let ours = ChildHandles { child: &child, command, pipes };
    let followed = pump_io(attempt, ours, &mut process_io, &secrets);
    let status = end(&mut child, attempt.state, matches!(followed, Ok(Followed::ToItsEnd)));
    attempt.log.finish(&secrets);
    let unseen = |error: io::Error| format!("waiting for it failed: {error}");
    followed.map_err(unseen)?;
    let status = status.map_err(unseen)?;
    Ok(ProcessResult { status, output: process_io.output, too_much: process_io.too_much, secrets })
}

/// Runs an external tool to its end. Returns its output without trailing whitespace; its standard error goes to the log.
pub(super) fn tool_output(
    attempt: &mut Attempt<'_>,
    command: Vec<String>,
    environment: &[&str],
    directory: &Path,
) -> Result<String, String> {
    let environment = environment.iter().map(|name| (*name).to_owned()).collect();
    let process = Process { command, environment, ..Process::default() };
    let directory = directory.to_owned();
    let (input, environment, escaped) = (b"", Environment::Configured, Escaped::Leave);
    tool(attempt, &Program { process: &process, directory, input, environment, escaped })
}

/// Runs git in a directory, as [`tool_output`] runs a tool.
pub(super) fn git_output(
    attempt: &mut Attempt<'_>,
    git: &Git,
    directory: &Path,
    words: &[&str],
    input: &[u8],
) -> Result<String, String> {
    let process = Process { command: git.command(words), ..Process::default() };
    let (directory, environment) = (directory.to_owned(), Environment::Closed(&git.variables));
    let escaped = Escaped::Leave;
    tool(attempt, &Program { process: &process, directory, input, environment, escaped })
}

fn tool(attempt: &mut Attempt<'_>, program: &Program<'_>) -> Result<String, String> {
    let before = std::mem::take(&mut attempt.log.last);
    let spoken = follow(attempt, program);
    let said = std::mem::replace(&mut attempt.log.last, before);
    let spoken = spoken?;
    if spoken.status.success() && !spoken.too_much {
        return Ok(String::from_utf8_lossy(&spoken.output).trim_end().to_owned());
    }
    Err(format!("{}: {}", spoken.status, truncate_bytes(&said, SAID_BYTES_MAX)))
}

/// Builds the command from the configuration. Also returns the values of its secrets.
fn prepared(attempt: &Attempt<'_>, program: &Program<'_>) -> Result<(Command, Secrets), String> {
    let Program { process, directory, .. } = program;
    let mut command = if process.shell {
        let mut command = Command::new("/bin/sh");
        command.arg("-c");
        command
    } else {
        Command::new(&process.command[0])
    };
    command.args(if process.shell { &process.command[..] } else { &process.command[1..] });
    // Changing to the current directory would take as long as other parts of starting a program, so it is skipped.
    if attempt.here != Some(directory.as_path()) {
        command.current_dir(directory);
    }
    command.env_clear();
    let mut secrets = Vec::new();
    match program.environment {
        Environment::Configured => {
            for name in &process.environment {
                if let Some(value) = attempt.around.variables.get(name) {
                    command.env(name, value);
                }
            }
            for (name, secret) in &process.secrets {
                let value = attempt.secret(name, secret)?;
                command.env(name, &value);
                secrets.push(value);
            }
            command.envs(attempt.job.variables());
        }
        Environment::Closed(variables) => {
            command.envs(variables.iter().map(|(name, value)| (name, value)));
        }
    }
    command.env(WORKER_VARIABLE, &attempt.around.worker).process_group(0);
    Ok((command, Secrets::new(secrets)))
}

/// Our ends of a program's pipes.
struct Pipes {
    /// `None` when the whole input is already in the pipe.
    input: Option<PipeWriter>,
    output: PipeReader,
    log: PipeReader,
}

/// Connects the pipes of a program that is about to start.
fn connected(command: &mut Command, process_io: &mut ProcessIo<'_>) -> io::Result<Pipes> {
    let (reads, mut input) = io::pipe()?;
    let (output, writes) = io::pipe()?;
    let (log, says) = io::pipe()?;
    command.stdin(Stdio::from(reads)).stdout(Stdio::from(writes)).stderr(Stdio::from(says));
    let input = if process_io.input.len() <= INPUT_BYTES_AT_ONCE {
        input.write_all(process_io.input)?;
        None
    } else {
        rustix::io::ioctl_fionbio(&input, true)?;
        Some(input)
    };
    Ok(Pipes { input, output, log })
}

/// The input and output of a program.
struct ProcessIo<'a> {
    input: &'a [u8],
    output: Vec<u8>,
    too_much: bool,
}

/// The parent's handles of a running program.
struct ChildHandles<'a> {
    child: &'a Child,
    /// Holds the program's ends of the pipes.
    command: Command,
    pipes: Pipes,
}

/// Why the I/O of a program is over.
enum Followed {
    /// The program has ended.
    ToItsEnd,
    /// The program has closed its standard output and standard error.
    ToItsLastWord,
}

/// Writes the input and reads output and log as the pipes become ready, until the program has ended or has closed both.
fn pump_io(
    attempt: &mut Attempt<'_>,
    ours: ChildHandles<'_>,
    process_io: &mut ProcessIo<'_>,
    secrets: &Secrets,
) -> io::Result<Followed> {
    let ChildHandles { child, command, pipes: Pipes { input: mut stdin, output, log } } = ours;
    let (mut stdout, mut stderr) = (Some(output), Some(log));
    let end = end_of(child);
    // While this process also holds the program's ends of the pipes, it wakes only when there is something to read or
    // the program has ended. A wake-up for the end of each pipe would cost a short program a good part of its time.
    let mut held = end.is_some().then_some(command);
    let mut has_ended_now = false;
    let mut last_reads = 0;
    let mut told: Option<Instant> = None;
    // Allocated at the first read: with many programs, most write nothing.
    let mut buffer = Vec::new();
    while stdout.is_some() || stderr.is_some() {
        if let Some(pipe) = &mut stdin {
            match pipe.write(process_io.input) {
                Ok(count) => process_io.input = &process_io.input[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A program need not read its input.
                Err(_) => process_io.input = &[],
            }
            if process_io.input.is_empty() {
                stdin = None;
            }
        }
        let patience = match (&held, has_ended_now, &attempt.log.progress) {
            (_, true, _) => Some(0),
            (Some(_), false, None) => None,
            (Some(_), false, Some(_)) | (None, false, _) => Some(LOOK_MILLIS),
        };
        let [can_write, can_read, can_log, ended] = ready(
            [
                (stdin.as_ref().map(AsFd::as_fd), PollFlags::OUT),
                (stdout.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (stderr.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (end.as_ref().filter(|_| held.is_some()).map(AsFd::as_fd), PollFlags::IN),
            ],
            patience,
        )?;
        if let Some(pipe) = stdout.as_mut().filter(|_| can_read.any()) {
            match can_read.read(pipe, &mut buffer) {
                Ok(0) => stdout = None,
                Ok(count) if (process_io.output.len() + count) as u64 > attempt.job.output_bytes_max => {
                    process_io.too_much = true
                }
                Ok(count) => process_io.output.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(pipe) = stderr.as_mut().filter(|_| can_log.any()) {
            match can_log.read(pipe, &mut buffer) {
                Ok(0) => stderr = None,
                Ok(count) => attempt.log.take(&buffer[..count], secrets),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if attempt.log.progress.is_some() && told.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL) {
            told = Some(Instant::now());
            if let Some(progress) = attempt.log.progress.take() {
                attempt.progressed(&progress);
            }
        }
        if ended.any() {
            (held, stdin, has_ended_now) = (None, None, true);
            continue;
        }
        // Other processes may hold the pipes open long after the program itself has ended.
        last_reads += usize::from(has_ended_now);
        let is_quiet = !(can_write.any() || can_read.any() || can_log.any());
        if has_ended_now && (is_quiet || last_reads > LAST_READS_MAX) {
            return Ok(Followed::ToItsEnd);
        }
        if is_quiet && has_ended(child) {
            return Ok(Followed::ToItsEnd);
        }
    }
    Ok(if has_ended_now { Followed::ToItsEnd } else { Followed::ToItsLastWord })
}

/// Returns a file descriptor that signals a program's end, where the system has one.
#[cfg(target_os = "linux")]
fn end_of(child: &Child) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    pidfd_open(Pid::from_raw(child.id() as i32)?, PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn end_of(_child: &Child) -> Option<OwnedFd> {
    None
}

/// Waits up to `patience` milliseconds until one of these is ready. After a timeout, none is.
fn ready<const COUNT: usize>(
    places: [(Option<BorrowedFd<'_>>, PollFlags); COUNT],
    patience: Option<i64>,
) -> io::Result<[Ready; COUNT]> {
    let mut watched = Vec::with_capacity(COUNT);
    let mut at = [None; COUNT];
    for (place, (pipe, flags)) in places.into_iter().enumerate() {
        if let Some(pipe) = pipe {
            at[place] = Some(watched.len());
            watched.push(PollFd::from_borrowed_fd(pipe, flags));
        }
    }
    let patience = patience.map(|millis| Timespec { tv_sec: 0, tv_nsec: millis * 1_000_000 });
    match poll(&mut watched, patience.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(at.map(|at| Ready(at.map_or(PollFlags::empty(), |at| watched[at].revents()))))
}

/// The events that a pipe is ready for.
#[derive(Clone, Copy)]
struct Ready(PollFlags);

impl Ready {
    fn any(self) -> bool {
        !self.0.is_empty()
    }

    /// Reads what is available. A pipe that was only closed is at its end, and the read is skipped.
    fn read(self, pipe: &mut PipeReader, buffer: &mut Vec<u8>) -> io::Result<usize> {
        if self.0 == PollFlags::HUP {
            return Ok(0);
        }
        buffer.resize(READ_BYTES_MAX, 0);
        pipe.read(buffer)
    }
}

/// Whether a program has ended. Does not reap it, so its process id stays valid until [`end`].
fn has_ended(child: &Child) -> bool {
    let Some(process) = Pid::from_raw(child.id() as i32) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(process), options), Ok(Some(_)) | Err(_))
}

/// Waits for the program, kills what it left in its group, and reaps it.
fn end(child: &mut Child, state: &Mutex<State>, has_ended: bool) -> io::Result<ExitStatus> {
    let process = Pid::from_raw(child.id() as i32);
    if let Some(process) = process.filter(|_| !has_ended) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process), options) {}
    }
    let mut state = lock(state);
    let group = match std::mem::replace(&mut *state, State::Between) {
        State::Group(group) => Some(group),
        other @ (State::Between | State::Remote(_) | State::Stopped) => {
            *state = other;
            None
        }
    };
    // The program is not reaped yet, so the process id still identifies its group.
    if let Some(group) = &group {
        group.kill_group();
    }
    let status = child.wait();
    drop(state);
    if let Some(group) = group {
        group.finish();
    }
    status
}

/// The lines of the environment by which the processes of an attempt are recognized.
fn marks(attempt: &Attempt<'_>, escaped: Escaped) -> Vec<String> {
    match escaped {
        Escaped::Leave => Vec::new(),
        Escaped::End => vec![
            format!("{WORKER_VARIABLE}={}", attempt.around.worker),
            format!("WAYPOST_IDEMPOTENCY_KEY={}", idempotency_key(&attempt.job.key)),
        ],
    }
}

/// Returns the outcome of a program from its exit status, or `None` if the output decides.
pub(super) fn judged(attempt: &Attempt<'_>, spoken: &ProcessResult) -> Option<AttemptOutcome> {
    if let Some(question) = &attempt.log.question {
        // A task with a question is never done, however the program ended.
        return Some(asked(question, &spoken.secrets));
    }
    let last = &attempt.log.last;
    let said =
        if last.is_empty() { String::new() } else { format!(": {}", truncate_bytes(last, SAID_BYTES_MAX)) };
    let failed = |error: String| Some(AttemptOutcome::Failed { error });
    match (spoken.status.code(), spoken.status.signal()) {
        (Some(0), _) if spoken.too_much => {
            failed(format!("its output has more than {} bytes", attempt.job.output_bytes_max))
        }
        (Some(0), _) => None,
        (Some(EXIT_TRY_AGAIN), _) => {
            Some(AttemptOutcome::TryAgain { error: format!("it asked to be tried again{said}") })
        }
        (Some(code), _) => failed(format!("it ended with exit code {code}{said}")),
        (None, Some(signal)) => failed(format!("it was ended by signal {signal}{said}")),
        (None, None) => failed(format!("its exit status is unknown{said}")),
    }
}
