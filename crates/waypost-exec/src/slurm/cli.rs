//! Calls Slurm's programs with a time limit, and separates permanent errors from temporary ones. Does not know what the
//! calls mean.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use waypost_config::ExecutionEnv;
use waypost_text::truncate_bytes;

use crate::async_runtime::RemoteError;
use crate::attempt::SAID_BYTES_MAX;
use crate::pipes::read_both;

/// The time limit of one call of a Slurm program.
const TOOL_SECONDS_MAX: u64 = 30;
/// Bytes of an answer; a longer one is an error.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The variables that Slurm's programs get from our environment: the locations of the programs and their cluster.
/// Nothing else reaches a job this way.
const ENVIRONMENT: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_JWT"];
/// Parts of Slurm's messages about temporary errors. All other errors are permanent.
const PASSES: [&str; 14] = [
    "Unable to contact slurm controller",
    "unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "temporarily unable",
    "Resource temporarily unavailable",
    "Connection refused",
    "Communication connection failure",
    "Transport endpoint",
    "DNS SRV lookup failed",
    "SubmitJob",
    "Protocol authentication error",
    "Munge",
    "try again",
];

/// The environment of Slurm's programs. Equal values mean the same cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tools {
    variables: BTreeMap<String, String>,
}

impl Tools {
    pub(super) fn of(around: &ExecutionEnv) -> Self {
        let known = |name: &&str| Some(((*name).to_owned(), around.variables.get(*name)?.clone()));
        Self { variables: ENVIRONMENT.iter().filter_map(known).collect() }
    }

    /// Runs a program of Slurm and returns its output.
    pub(super) fn ask(&self, program: &str, arguments: &[String]) -> Result<String, RemoteError> {
        let missing = |error: io::Error| match error.kind() == io::ErrorKind::NotFound {
            true => RemoteError::Refused(format!(
                "{program} is not in the PATH: run this where jobs of the cluster are submitted, or install Slurm's programs"
            )),
            false => RemoteError::NotNow(format!("{program} could not be called: {error}")),
        };
        let (output, says) = io::pipe().map_err(missing)?;
        let (errors, complains) = io::pipe().map_err(missing)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(&self.variables).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::from(says)).stderr(Stdio::from(complains));
        let mut child = command.spawn().map_err(missing)?;
        // `command` holds our copies of the writing ends.
        drop(command);
        let read = read_both(output, errors, Duration::from_secs(TOOL_SECONDS_MAX), ANSWER_BYTES_MAX);
        if !matches!(read, Ok(Some(_))) {
            let _gone = child.kill();
        }
        let status = child.wait().map_err(missing)?;
        let Some((answer, complaint)) = read.map_err(missing)? else {
            return Err(RemoteError::NotNow(format!(
                "{program} did not answer within {TOOL_SECONDS_MAX} s, or said too much"
            )));
        };
        if status.success() {
            return Ok(answer);
        }
        // Some programs write their errors to standard output.
        Err(judged(program, if complaint.trim().is_empty() { &answer } else { &complaint }))
    }
}

fn judged(program: &str, complaint: &str) -> RemoteError {
    let lines = complaint.lines().map(str::trim).filter(|line| !line.is_empty());
    let words = lines.map(|line| line.strip_prefix(&format!("{program}: ")).unwrap_or(line));
    let words = words.map(|line| line.strip_prefix("error: ").unwrap_or(line)).collect::<Vec<_>>().join("; ");
    let words = if words.is_empty() { "it gave no reason".to_owned() } else { words };
    let error = format!("{program} failed: {}", truncate_bytes(&words, SAID_BYTES_MAX));
    if PASSES.iter().any(|passes| complaint.contains(passes)) {
        RemoteError::NotNow(error)
    } else {
        RemoteError::Refused(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_is_away_may_come_back_and_a_wrong_partition_stays_wrong() {
        let away = judged(
            "sbatch",
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n",
        );
        assert!(matches!(away, RemoteError::NotNow(_)), "{away:?}");
        let full = "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n";
        assert!(matches!(judged("sbatch", full), RemoteError::NotNow(_)));
        let wrong = "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n";
        let expected = "sbatch failed: invalid partition specified: nope; Batch job submission failed: Invalid partition name specified";
        assert_eq!(judged("sbatch", wrong), RemoteError::Refused(expected.to_owned()));
    }
}
