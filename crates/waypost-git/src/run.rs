//! Runs one git command to its end: input, output and time are limited, and no process is left behind.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use waypost_text::truncate_bytes;

use crate::error::GitError;

/// Maximum bytes that a command prints.
const OUTPUT_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Maximum bytes of messages that are kept.
const MESSAGE_BYTES_MAX: u64 = 16 * 1024;
/// Maximum bytes of a message in an error.
const SHOWN_BYTES_MAX: usize = 1_000;
/// Seconds that a command without a network may take.
pub(crate) const LOCAL_SECONDS_MAX: u64 = 600;
/// Seconds that a command may take which reaches a remote.
pub(crate) const REMOTE_SECONDS_MAX: u64 = 120;

/// What a command printed.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) text: Vec<u8>,
    pub(crate) message: String,
    pub(crate) succeeded: bool,
}

/// A command that runs.
pub(crate) struct Running {
    name: String,
    child: Child,
    message: JoinHandle<Vec<u8>>,
}

/// The process groups of the commands that run.
static GROUPS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Ends all git commands that this process has started, with what they have started: for a process that is told to end.
pub fn end_commands() {
    for group in GROUPS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        end_group(*group);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|group| *group != self.child.id());
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            end(&self.child);
            // Without a wait its entry would stay in the process table.
            let _ = self.child.wait();
        }
    }
}

fn end(child: &Child) {
    end_group(child.id());
}

fn end_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // It may just have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn read_all(source: impl Read, limit: u64) -> Vec<u8> {
    let (mut bytes, mut source) = (Vec::new(), source);
    // What was read before an error is still worth showing.
    let _ = source.by_ref().take(limit).read_to_end(&mut bytes);
    let _ = io::copy(&mut source, &mut io::sink());
    bytes
}

/// The words of a message that name the cause, without those that only advise.
fn shortened(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    let joined = lines.collect::<Vec<_>>().join("; ");
    truncate_bytes(&joined, SHOWN_BYTES_MAX).to_string()
}

impl Running {
    /// Starts a command whose input and output are pipes.
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Self, GitError> {
        let io = |error| GitError::Io { command: name.to_owned(), error };
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().map_err(io)?;
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
        let stderr = child.stderr.take().ok_or_else(|| io(io::ErrorKind::BrokenPipe.into()))?;
        let message = thread::spawn(move || read_all(stderr, MESSAGE_BYTES_MAX));
        Ok(Self { name: name.to_owned(), child, message })
    }

    fn broken(&self) -> GitError {
        GitError::Io { command: self.name.clone(), error: io::ErrorKind::BrokenPipe.into() }
    }

    /// Takes the end of its input.
    pub(crate) fn input(&mut self) -> Result<ChildStdin, GitError> {
        self.child.stdin.take().ok_or_else(|| self.broken())
    }

    /// Takes the end of its output.
    pub(crate) fn output(&mut self) -> Result<std::process::ChildStdout, GitError> {
        self.child.stdout.take().ok_or_else(|| self.broken())
    }

    /// Waits for its end, and fails unless it succeeded.
    pub(crate) fn finish(mut self) -> Result<(), GitError> {
        let status = self.child.wait().map_err(|error| GitError::Io { command: self.name.clone(), error })?;
        let message = std::mem::replace(&mut self.message, thread::spawn(Vec::new));
        let message = shortened(&message.join().unwrap_or_default());
        match status.success() {
            true => Ok(()),
            false => Err(GitError::Failed { command: self.name.clone(), message }),
        }
    }
}

/// Runs a command with this input, and returns what it printed, whether it succeeded or not.
pub(crate) fn run(name: &str, command: Command, input: &[u8], seconds: u64) -> Result<Output, GitError> {
    let mut running = Running::start(name, command)?;
    let (mut stdin, stdout) = (running.input()?, running.output()?);
    let (done, finished) = mpsc::channel();
    let (mut text, mut in_time) = (Vec::new(), true);
    thread::scope(|scope| {
        scope.spawn(move || {
            // A command that fails closes its input early; its message is worth more than the broken pipe.
            let _ = stdin.write_all(input);
        });
        let reader = scope.spawn(move || {
            let text = read_all(stdout, OUTPUT_BYTES_MAX);
            // The receiver is there until the scope ends.
            let _ = done.send(());
            text
        });
        if finished.recv_timeout(Duration::from_secs(seconds)).is_err() {
            in_time = false;
            end(&running.child);
        }
        text = reader.join().unwrap_or_default();
    });
    if !in_time {
        return Err(GitError::TimedOut { command: name.to_owned(), seconds });
    }
    if text.len() as u64 == OUTPUT_BYTES_MAX {
        let output = format!("more than {OUTPUT_BYTES_MAX} bytes");
        return Err(GitError::Malformed { command: name.to_owned(), output });
    }
    match running.finish() {
        Ok(()) => Ok(Output { text, message: String::new(), succeeded: true }),
        Err(GitError::Failed { message, .. }) => Ok(Output { text, message, succeeded: false }),
        Err(error) => Err(error),
    }
}
