//! Runs programs, each in a process group of its own, so that all of it can be ended.
//!
//! An attempt is over when its program has ended: whatever it left behind in its group is ended with it, so that nothing
//! of it runs when its locks are given to others.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

use super::attempt::{Attempt, SAID_BYTES_MAX, State, done, inside, lock, shortened};
use super::question::asked;
use crate::config::Process;
use crate::identity::WORKER_VARIABLE;
use crate::scheduler::Ending;

/// The exit code by which a worker asks to be tried again (`EX_TEMPFAIL`).
pub(super) const EXIT_TRY_AGAIN: i32 = 75;
/// Milliseconds after which a program whose pipes others hold open is looked at.
const LOOK_MILLIS: i64 = 50;
/// Between two words about how far a task is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// A program that is to be run: how the configuration describes it, where it starts, and what it reads.
pub(super) struct Program<'a> {
    pub(super) process: &'a Process,
    pub(super) directory: PathBuf,
    pub(super) input: &'a [u8],
}

/// What came of a program.
pub(super) struct Spoken {
    pub(super) status: ExitStatus,
    pub(super) output: Vec<u8>,
    pub(super) too_much: bool,
    pub(super) secrets: Vec<String>,
}

/// Runs a program that keeps to the worker contract.
pub(super) fn run(attempt: &mut Attempt<'_>, process: &Process, input: &[u8]) -> Ending {
    let spoken = inside(&attempt.around.workspace, &process.directory)
        .and_then(|directory| follow(attempt, &Program { process, directory, input }));
    match spoken {
        Ok(spoken) => judged(attempt, &spoken)
            .unwrap_or_else(|| done(&String::from_utf8_lossy(&spoken.output), &spoken.secrets)),
        Err(error) => Ending::Failed { error },
    }
}

/// Runs a program to its end.
pub(super) fn follow(attempt: &mut Attempt<'_>, program: &Program<'_>) -> Result<Spoken, String> {
    let (mut command, secrets) = prepared(attempt, program)?;
    let spawned = {
        // Held while it starts, so that an order to end either comes before or finds the group.
        let mut state = lock(attempt.state);
        if let State::Stopped = &*state {
            return Err("it was stopped before it began".to_owned());
        }
        let spawned = command.spawn();
        if let Ok(child) = &spawned
            && let Some(group) = Pid::from_raw(child.id() as i32)
        {
            *state = State::Group(group);
        }
        spawned
    };
    let mut child = spawned.map_err(|error| {
        let name = program.process.command.first().map(String::as_str).unwrap_or_default();
        format!("{name} could not be started: {error}")
    })?;
    let mut talk = Talk { input: program.input, output: Vec::new(), too_much: false };
    let followed = converse(attempt, &mut child, &mut talk, &secrets);
    let status = end(&mut child, attempt.state);
    attempt.log.finish(&secrets);
    let unseen = |error: io::Error| format!("it could not be followed: {error}");
    followed.map_err(unseen)?;
    let status = status.map_err(unseen)?;
    Ok(Spoken { status, output: talk.output, too_much: talk.too_much, secrets })
}

/// Runs a tool of ours to its end; gives what it wrote, without the end of the last line. What it says stands in the log.
pub(super) fn told_by(
    attempt: &mut Attempt<'_>,
    command: Vec<String>,
    environment: &[&str],
    directory: &Path,
) -> Result<String, String> {
    let process = Process {
        command,
        shell: false,
        directory: String::new(),
        environment: environment.iter().map(|name| (*name).to_owned()).collect(),
        secrets: BTreeMap::new(),
        timeout_seconds: None,
    };
    let program = Program { process: &process, directory: directory.to_owned(), input: b"" };
    let before = std::mem::take(&mut attempt.log.last);
    let spoken = follow(attempt, &program);
    let said = std::mem::replace(&mut attempt.log.last, before);
    let spoken = spoken?;
    if spoken.status.success() && !spoken.too_much {
        return Ok(String::from_utf8_lossy(&spoken.output).trim_end().to_owned());
    }
    Err(format!("{}: {}", spoken.status, shortened(&said, SAID_BYTES_MAX)))
}

/// The command with everything that the configuration says, and the secrets that it was given.
fn prepared(attempt: &Attempt<'_>, program: &Program<'_>) -> Result<(Command, Vec<String>), String> {
    let Program { process, directory, .. } = program;
    let mut command = if process.shell {
        let mut command = Command::new("/bin/sh");
        command.arg("-c");
        command
    } else {
        Command::new(&process.command[0])
    };
    command.args(if process.shell { &process.command[..] } else { &process.command[1..] });
    command.current_dir(directory);
    command.env_clear();
    for name in &process.environment {
        if let Some(value) = attempt.around.variables.get(name) {
            command.env(name, value);
        }
    }
    let mut secrets = Vec::new();
    for (name, secret) in &process.secrets {
        let value = attempt.secret(name, secret)?;
        command.env(name, &value);
        secrets.push(value);
    }
    for (name, value) in attempt.job.variables() {
        command.env(name, value);
    }
    command
        .env(WORKER_VARIABLE, &attempt.around.worker)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    Ok((command, secrets))
}

/// What is said to a program and what it says.
struct Talk<'a> {
    input: &'a [u8],
    output: Vec<u8>,
    too_much: bool,
}

/// Writes the input and reads output and log, whichever can go on, until the program has ended or says no more.
fn converse(
    attempt: &mut Attempt<'_>,
    child: &mut Child,
    talk: &mut Talk<'_>,
    secrets: &[String],
) -> io::Result<()> {
    let (mut stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    if let Some(pipe) = &stdin {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    let mut told: Option<Instant> = None;
    let mut buffer = [0u8; 8 * 1024];
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
                Ok(count) if (talk.output.len() + count) as u64 > attempt.job.output_bytes_max => {
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

/// What an exit code means; nothing where it says that the output counts.
pub(super) fn judged(attempt: &Attempt<'_>, spoken: &Spoken) -> Option<Ending> {
    if let Some(question) = &attempt.log.question {
        // However it ended, it has asked: that is never taken for done.
        return Some(asked(question));
    }
    let last = &attempt.log.last;
    let said = if last.is_empty() { String::new() } else { format!(": {}", shortened(last, SAID_BYTES_MAX)) };
    let failed = |error: String| Some(Ending::Failed { error });
    match (spoken.status.code(), spoken.status.signal()) {
        (Some(0), _) if spoken.too_much => {
            failed(format!("its output has more than {} bytes", attempt.job.output_bytes_max))
        }
        (Some(0), _) => None,
        (Some(EXIT_TRY_AGAIN), _) => {
            Some(Ending::TryAgain { error: format!("it asked to be tried again{said}") })
        }
        (Some(code), _) => failed(format!("it ended with exit code {code}{said}")),
        (None, Some(signal)) => failed(format!("it was ended by signal {signal}{said}")),
        (None, None) => failed(format!("nobody knows how it ended{said}")),
    }
}
