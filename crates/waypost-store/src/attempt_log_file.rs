//! Finds the log of an attempt: the file of its run on this machine, or the copy that the store keeps for other
//! machines.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use waypost_core::{PlanId, TaskId};

use crate::{AttemptLog, PlanStore, StoreError, worker_identity};

/// Maximum bytes of a file name that come from the task id; a longer id is cut and gets a hash.
const NAME_BYTES_MAX: usize = 180;

/// The log of an attempt, by where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundLog {
    /// The log file is on this machine.
    File {
        /// The end of the log, at most as many bytes as the caller requested.
        text: String,
        /// The size of the whole file in bytes.
        bytes: u64,
    },
    /// The store has a copy of the end of the log.
    Copy(Box<AttemptLog>),
    /// There is neither a file nor a copy: as far as this machine knows, the attempt has written nothing.
    Nothing {
        /// The worker on another machine that made the attempt and has its log.
        elsewhere: Option<String>,
    },
}

/// The reason why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoLog {
    /// The log file cannot be read.
    #[error("{0}")]
    File(#[from] io::Error),
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Finds the log of an attempt that `worker` made and returns at most `bytes_max` bytes of its end. A file with
/// content on this machine takes precedence over the copy in the store.
pub fn find_log(
    plans: &PlanStore,
    logs: &Path,
    (plan, task, attempt): (&PlanId, &TaskId, u32),
    worker: Option<&str>,
    bytes_max: u64,
) -> Result<FoundLog, NoLog> {
    let (text, bytes) = log_tail(&log_path(logs, plan, task, attempt), bytes_max)?;
    if bytes > 0 {
        return Ok(FoundLog::File { text, bytes });
    }
    if let Some(mut copy) = plans.attempt_log(plan, task, attempt)? {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        copy.text = waypost_text::tail_bytes(&copy.text, bytes_max).to_owned();
        return Ok(FoundLog::Copy(Box::new(copy)));
    }
    let elsewhere = worker.filter(|worker| worker_identity::is_remote(worker)).map(str::to_owned);
    Ok(FoundLog::Nothing { elsewhere })
}

/// Returns the path of an attempt's log file under the directory `logs`.
pub fn log_path(logs: &Path, plan: &PlanId, task: &TaskId, attempt: u32) -> PathBuf {
    logs.join(plan.as_str()).join(format!("{}.{attempt}.log", file_name(task.as_str())))
}

/// Returns the end of an attempt's log and the size of the whole file in bytes. The text has at most `bytes_max` bytes;
/// when the log is longer, it begins at the start of a line. The text is empty when there is no file.
pub fn log_tail(path: &Path, bytes_max: u64) -> io::Result<(String, u64)> {
    let mut file = match open_log(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((String::new(), 0)),
        Err(error) => return Err(error),
    };
    let total = file.metadata()?.len();
    let from = total.saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    let line = bytes.iter().position(|&byte| byte == b'\n').filter(|_| from > 0);
    let text = String::from_utf8_lossy(&bytes[line.map_or(0, |end| end + 1)..]).into_owned();
    Ok((text, total))
}

/// Opens a log for reading. Tasks and cloned repositories can put anything in its place: a link would show another file, and
/// a pipe would never end.
pub fn open_log(path: &Path) -> io::Result<File> {
    // The folder of the plan, and that of all logs.
    if path.ancestors().skip(1).take(2).any(Path::is_symlink) {
        return Err(io::Error::other("a log is not read through a link"));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(io::Error::other("a log is not read through a link")),
        Err(error) => return Err(error.into()),
    };
    let about = file.metadata()?;
    match about.is_file() && about.nlink() == 1 {
        true => Ok(file),
        false => Err(io::Error::other("what is in the place of the log is not a plain file")),
    }
}

/// Returns a task id as part of a file name. Bytes that could change the path are written as `%` and two hex digits. A
/// name of more than 180 bytes is cut and gets a hash of the id.
pub fn file_name(task: &str) -> String {
    let mut name = String::new();
    for (at, byte) in task.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte == b'.' && at > 0;
        if plain { name.push(byte as char) } else { name.push_str(&format!("%{byte:02x}")) }
    }
    if name.len() > NAME_BYTES_MAX {
        let sum = task.bytes().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        name.truncate(NAME_BYTES_MAX);
        name.push_str(&format!("~{sum:016x}"));
    }
    name
}
