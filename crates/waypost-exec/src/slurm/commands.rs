//! Slurm's commands as arguments of its programs. Does not know who calls them.

use super::cli::Tools;
use super::job_state::{FORMAT, JobId, Seen, accounts, queue};
use crate::async_runtime::RemoteError;
use crate::outcome::Force;

impl Tools {
    /// Returns the state of these jobs with one command. Jobs that Slurm has forgotten are left out.
    pub(super) fn queue<'j>(
        &self,
        jobs: impl IntoIterator<Item = &'j JobId>,
    ) -> Result<Vec<Seen>, RemoteError> {
        let Some(jobs) = listed(jobs) else { return Ok(Vec::new()) };
        let format = format!("--format={FORMAT}");
        let words = ["--noheader", "--array", "--states=all", &format!("--jobs={jobs}"), &format];
        match self.ask("squeue", &words.map(str::to_owned)) {
            Ok(answer) => Ok(queue(&answer)),
            // Slurm reports this when it knows none of the jobs any more.
            Err(RemoteError::Refused(why)) if why.contains("Invalid job id") => Ok(Vec::new()),
            Err(trouble) => Err(trouble),
        }
    }

    /// Returns our job with this name, if there is one.
    pub(super) fn find(&self, batch: &str) -> Result<Option<u64>, RemoteError> {
        let user = format!("--user={}", rustix::process::getuid().as_raw());
        let (name, format) = (format!("--name={batch}"), format!("--format={FORMAT}"));
        let words = ["--noheader", "--states=all", &user, &name, &format];
        let found = queue(&self.ask("squeue", &words.map(str::to_owned))?);
        Ok(found.first().map(|seen| seen.id.job))
    }

    /// Returns the accounting records of jobs that the controller has forgotten.
    pub(super) fn accounts(&self, jobs: &[JobId]) -> Result<Vec<Seen>, RemoteError> {
        let Some(jobs) = listed(jobs) else { return Ok(Vec::new()) };
        let jobs = format!("--jobs={jobs}");
        let words = ["--noheader", "--parsable2", "--allocations", "--array", &jobs, "--format=JobID,State"];
        Ok(accounts(&self.ask("sacct", &words.map(str::to_owned))?))
    }

    /// Ends jobs: with SIGTERM, which Slurm itself follows by SIGKILL after a while, or with SIGKILL at once.
    pub(super) fn end(&self, ids: &[JobId], force: Force) {
        if ids.is_empty() {
            return;
        }
        let mut words = match force {
            Force::Ask => Vec::new(),
            Force::Kill => vec!["--signal=KILL".to_owned(), "--full".to_owned()],
        };
        words.extend(ids.iter().map(JobId::to_string));
        // A job that has ended cannot be cancelled; a job that Slurm cannot reach ends when its directory is gone.
        let _ended = self.ask("scancel", &words);
    }

    /// Returns how many jobs an array may have, if the cluster reports it.
    pub(super) fn array_size(&self) -> Result<Option<usize>, RemoteError> {
        let answer = self.ask("scontrol", &["show".to_owned(), "config".to_owned()])?;
        let line = answer.lines().find_map(|line| line.strip_prefix("MaxArraySize"));
        Ok(line.and_then(|line| line.trim_start_matches([' ', '=']).trim().parse().ok()))
    }
}

/// Joins the ids of jobs with commas; the jobs of one array have one id.
fn listed<'j>(jobs: impl IntoIterator<Item = &'j JobId>) -> Option<String> {
    let mut numbers: Vec<u64> = jobs.into_iter().map(|id| id.job).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    (!words.is_empty()).then(|| words.join(","))
}
