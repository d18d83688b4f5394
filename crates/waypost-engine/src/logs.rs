//! Where the log of an attempt is to be had: the file of its run, or the copy that the store keeps for other machines.

use std::io;
use std::path::Path;

use waypost_core::{PlanId, TaskId};
use waypost_store::{AttemptLog, Plans, StoreError};

use crate::executors::{log_path, log_tail};
use crate::identity;

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
        /// Who made the attempt on another machine, and has whatever there is.
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

/// Looks for the log of an attempt that `worker` made: at most so many bytes of its end.
pub fn find_log(
    plans: &Plans,
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
    let elsewhere = worker.filter(|worker| identity::is_elsewhere(worker)).map(str::to_owned);
    Ok(FoundLog::Nothing { elsewhere })
}
