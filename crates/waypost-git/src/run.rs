//! Runs one git command to its end: input, output and time are limited, and no process is left behind.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use waypost_text::truncate_bytes;

use crate::error::GitError;

/// Maximum bytes that a command prints.
const OUTPUT_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Maximum bytes of messages that are kept.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// Maximum bytes of a message in an error.
const SHOWN_BYTES_MAX: usize = 1_000;
/// How long a command may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    /// Seconds in all.
    seconds: u64,
    /// Seconds without a message, such as how much was received.
    silent: u64,
}

impl TimeLimit {
    /// The limit of a command that may be silent.
    pub(crate) const fn of(seconds: u64) -> Self {
        Self { seconds, silent: seconds }
    }
}

/// The limit of a command without a network.
pub(crate) const LOCAL: TimeLimit = TimeLimit::of(600);
/// The limit of a command that reaches a remote: a slow one is waited for, a silent one is not.
pub(crate) const REMOTE: TimeLimit = TimeLimit { seconds: 3_600, silent: 120 };

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
    message: JoinHandle<String>,
    /// When it said something last.
    spoke: Arc<Mutex<Instant>>,
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

/// Whether a message only says how far a command is.
fn is_progress(line: &str) -> bool {
    ["% (", "objects: ", "(delta "].iter().any(|words| line.contains(words))
        || line.starts_with("Delta compression")
}

/// Reads the lines of a message that name the cause, without those that advise or say how far it is.
fn read_message(source: impl Read, spoke: &Mutex<Instant>) -> String {
    let mut lines: Vec<String> = Vec::new();
    let (mut bytes, mut line, mut piece) = (0, Vec::new(), [0; 4096]);
    let mut source = source;
    loop {
        // What was read before an error is still worth showing.
        let count = match source.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.unwrap_or(0),
        };
        *spoke.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        for &byte in piece[..count].iter().chain(if count == 0 { &b"\n"[..] } else { &[] }) {
            if byte != b'\n' && byte != b'\r' {
                if line.len() < MESSAGE_BYTES_MAX {
                    line.push(byte);
                }
                continue;
            }
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            line.clear();
            let is_told = !text.is_empty() && !text.starts_with("hint:") && !is_progress(&text);
            if is_told && bytes < MESSAGE_BYTES_MAX {
                bytes += text.len();
                lines.push(text);
            }
        }
        if count == 0 {
            return truncate_bytes(&lines.join("; "), SHOWN_BYTES_MAX).to_string();
        }
    }
}

impl Running {
    /// Starts a command whose input and output are pipes.
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Self, GitError> {
        let io = |error| GitError::Io { command: name.to_owned(), error };
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().map_err(io)?;
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
        let stderr = child.stderr.take().ok_or_else(|| io(io::ErrorKind::BrokenPipe.into()))?;
        let spoke = Arc::new(Mutex::new(Instant::now()));
        let heard = Arc::clone(&spoke);
        let message = thread::spawn(move || read_message(stderr, &heard));
        Ok(Self { name: name.to_owned(), child, message, spoke })
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
        let message = std::mem::replace(&mut self.message, thread::spawn(String::new));
        let message = message.join().unwrap_or_default();
        match status.success() {
            true => Ok(()),
            false => Err(GitError::Failed { command: self.name.clone(), message }),
        }
    }
}

/// Runs a command with this input, and returns what it printed, whether it succeeded or not.
pub(crate) fn run(name: &str, command: Command, input: &[u8], limit: TimeLimit) -> Result<Output, GitError> {
    let mut running = Running::start(name, command)?;
    let (mut stdin, stdout) = (running.input()?, running.output()?);
    let (done, finished) = mpsc::channel();
    let (mut text, mut late) = (Vec::new(), None);
    let began = Instant::now();
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
        let end_of_all = began + Duration::from_secs(limit.seconds);
        loop {
            let spoke = *running.spoke.lock().unwrap_or_else(PoisonError::into_inner);
            let end_of_silence = spoke + Duration::from_secs(limit.silent);
            let now = Instant::now();
            late = match now {
                now if now >= end_of_all => Some(limit.seconds),
                now if now >= end_of_silence => Some(limit.silent),
                _ => None,
            };
            if late.is_some() {
                end(&running.child);
                break;
            }
            let wait = end_of_all.min(end_of_silence) - now;
            if finished.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) {
                break;
            }
        }
        text = reader.join().unwrap_or_default();
    });
    if let Some(seconds) = late {
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
