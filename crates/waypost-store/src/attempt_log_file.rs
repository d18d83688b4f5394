//! Where the log of an attempt is to be had: the file of its run, or the copy that the store keeps for other machines.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use waypost_core::{PlanId, TaskId};

use crate::{AttemptLog, PlanStore, StoreError, worker_identity};

/// Bytes of a file's name that stand for a task.
const NAME_BYTES_MAX: usize = 180;

/// The log of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundLog {
    /// Its file is on this machine.
    File {
        /// As much of its end as was asked for.
        text: String,
        /// Bytes of all of it.
        bytes: u64,
    },
    /// The store has a copy of its end.
    Copy(Box<AttemptLog>),
    /// Neither: it has written nothing, as far as is known here.
    Nothing {
        /// The worker on another machine that made the attempt and has its log.
        elsewhere: Option<String>,
    },
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoLog {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] io::Error),
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Looks for the log of an attempt that `worker` made, and reads at most `bytes_max` bytes of its end.
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

/// Where the log of an attempt is kept.
pub fn log_path(logs: &Path, plan: &PlanId, task: &TaskId, attempt: u32) -> PathBuf {
    logs.join(plan.as_str()).join(format!("{}.{attempt}.log", file_name(task.as_str())))
}

/// The end of an attempt's log, cut at the beginning of a line; and how
/// many bytes there are in all. Nothing was written: an empty text.
pub fn log_tail(path: &Path, bytes_max: u64) -> io::Result<(String, u64)> {
    let mut file = match File::open(path) {
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

/// A task's id as a part of a file's name: what could lead elsewhere is written as `%` and a number.
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
