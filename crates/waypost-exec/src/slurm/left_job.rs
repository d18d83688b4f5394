//! Cancels a job that a dead run left behind and whose task no longer wants it.

use rustix::event::{Timespec, poll};
use serde_json::json;
use waypost_config::{ExecutionEnv, Slurm};

use super::attempt_dir::{EARLIER_MAX, Folder, name, shared};
use super::cli::Tools;
use super::job_state::{JobId, JobPhase, phase_of};
use crate::async_runtime::RemoteError;
use crate::outcome::{AttemptKey, Force};
use crate::remote_note::RemoteNote;

/// How often Slurm is asked whether a cancelled job has ended, and the pause between two questions.
const LOOKS: usize = 20;
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Cancels the job of a note. Returns whether it has ended.
pub(crate) fn end_left(around: &ExecutionEnv, slurm: &Slurm, note: &mut RemoteNote) -> Result<bool, String> {
    let text = |field: &str| note.job.as_ref()?.get(field)?.as_str().map(str::to_owned);
    let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let Some(folder_name) = text("name").filter(is_plain) else { return Ok(true) };
    let folder = Folder::of(&shared(around, slurm)?, &folder_name);
    let numbers = note.attempt.saturating_sub(EARLIER_MAX).max(1)..=note.attempt;
    let is_ours = |owner: String| {
        numbers
            .clone()
            .any(|number| owner == name(&AttemptKey::new(&note.plan, &note.task, number), note.is_check))
    };
    if folder.is_there() && !folder.owner().is_none_or(is_ours) {
        // A later attempt follows it, on another machine.
        return Ok(true);
    }
    let tools = Tools::of(around);
    let failed = |trouble| match trouble {
        RemoteError::Refused(why) | RemoteError::NotNow(why) => why,
    };
    let known = text("id").and_then(|id| JobId::parse(&id)).or_else(|| folder.job());
    let id = match (known, folder.batch()) {
        (Some(id), _) => Some(id),
        (None, Some((batch, index))) => tools.find(&batch).map_err(failed)?.map(|job| {
            let index = batch.starts_with("waypost-array-").then_some(index);
            JobId { job, index }
        }),
        (None, None) => None,
    };
    let Some(id) = id else {
        folder.close();
        return Ok(true);
    };
    // The folder is gone before the job has ended.
    note.job = Some(json!({ "name": folder_name, "id": id.to_string() }));
    note.write()?;
    tools.end(&[id], Force::Ask);
    folder.close();
    for _ in 0..LOOKS {
        let seen = tools.queue([&id]).map_err(failed)?;
        let runs = |phase| matches!(phase, JobPhase::Waits | JobPhase::Runs);
        if !seen.iter().any(|seen| seen.id == id && runs(phase_of(&seen.state))) {
            return Ok(true);
        }
        let _waited = poll(&mut [], Some(&PAUSE));
    }
    Ok(false)
}
