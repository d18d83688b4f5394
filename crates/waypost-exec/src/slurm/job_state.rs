//! The states of Slurm jobs, and their meaning for an attempt. Pure: calls no program.

use std::fmt;

/// The fields of `squeue`, separated by bars: job id, array index, state, node, reason.
pub(super) const FORMAT: &str = "%F|%K|%T|%N|%r";

/// Slurm's id of a job, and the index in its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobId {
    pub(super) job: u64,
    pub(super) index: Option<u32>,
}

impl JobId {
    /// Parses Slurm's notation: `12` or `12_3`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.split_once('_') {
            Some((job, index)) => Some(Self { job: job.parse().ok()?, index: Some(index.parse().ok()?) }),
            None => Some(Self { job: text.parse().ok()?, index: None }),
        }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}_{index}", self.job),
            None => write!(f, "{}", self.job),
        }
    }
}

/// The state of a job according to Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: JobId,
    pub(super) state: String,
    pub(super) node: String,
    pub(super) reason: String,
}

/// Parses the lines of `squeue`. Lines that do not have all fields are left out.
pub(super) fn queue(answer: &str) -> Vec<Seen> {
    let line = |line: &str| {
        let mut fields = line.trim().splitn(5, '|');
        let job = fields.next()?.parse().ok()?;
        let index = fields.next()?.parse().ok();
        let [state, node, reason] = [fields.next()?, fields.next()?, fields.next()?].map(str::to_owned);
        Some(Seen { id: JobId { job, index }, state, node, reason })
    };
    answer.lines().filter_map(line).collect()
}

/// Parses the lines of `sacct --parsable2 --format=JobID,State`.
pub(super) fn accounts(answer: &str) -> Vec<Seen> {
    let line = |line: &str| {
        let (id, state) = line.trim().split_once('|')?;
        // For example `CANCELLED by 1000`.
        let (state, reason) = state.split_once(' ').unwrap_or((state, ""));
        let (state, reason) = (state.trim_end_matches('+').to_owned(), reason.to_owned());
        Some(Seen { id: JobId::parse(id)?, state, node: String::new(), reason })
    };
    answer.lines().filter_map(line).collect()
}

/// The meaning of a state for the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobPhase {
    /// Not started.
    Waits,
    /// Started, or just ending.
    Runs,
    /// Ended by itself: the exit code decides.
    Ended,
    /// The cluster lost or removed the job, which has no meaning for the work.
    Lost(&'static str),
    /// Stopped for a reason that would apply again.
    Stopped(&'static str),
}

/// Returns the meaning of a state. An unknown state counts as running: no job is given up because of an unknown name.
pub(super) fn phase_of(state: &str) -> JobPhase {
    match state {
        "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "RESV_DEL_HOLD"
        | "SPECIAL_EXIT" => JobPhase::Waits,
        "COMPLETED" | "FAILED" => JobPhase::Ended,
        "NODE_FAIL" => JobPhase::Lost("its node failed"),
        "BOOT_FAIL" => JobPhase::Lost("its node did not start"),
        "PREEMPTED" => JobPhase::Lost("it had to make room for another job"),
        "REVOKED" => JobPhase::Lost("another cluster took it"),
        "LAUNCH_FAILED" | "RECONFIG_FAIL" => JobPhase::Lost("its node could not begin it"),
        "TIMEOUT" => JobPhase::Stopped("it took longer than its time limit in Slurm"),
        "DEADLINE" => JobPhase::Stopped("it could not end before its deadline in Slurm"),
        "OUT_OF_MEMORY" => JobPhase::Stopped("it used more memory than it may"),
        "CANCELLED" => JobPhase::Stopped("it was cancelled in Slurm"),
        _ => JobPhase::Runs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_squeue_and_sacct_say_is_read() {
        let said =
            "12|0|RUNNING|node1|None\n12|1|PENDING||Resources\n7|N/A|FAILED|node2|NonZeroExitCode\nnoise\n";
        let seen: Vec<(String, String, String)> =
            queue(said).into_iter().map(|seen| (seen.id.to_string(), seen.state, seen.reason)).collect();
        let expected = [
            ("12_0", "RUNNING", "None"),
            ("12_1", "PENDING", "Resources"),
            ("7", "FAILED", "NonZeroExitCode"),
        ];
        assert_eq!(
            seen,
            expected.map(|(id, state, reason)| (id.to_owned(), state.to_owned(), reason.to_owned()))
        );
        let said = "12_0|COMPLETED\n12_1|CANCELLED by 1000\n12_[2-5]|PENDING\n";
        let seen: Vec<(String, String)> =
            accounts(said).into_iter().map(|seen| (seen.id.to_string(), seen.state)).collect();
        assert_eq!(
            seen,
            [("12_0", "COMPLETED"), ("12_1", "CANCELLED")]
                .map(|(id, state)| (id.to_owned(), state.to_owned()))
        );
    }

    #[test]
    fn what_the_cluster_lost_is_tried_again_and_what_it_stopped_is_not() {
        for state in ["NODE_FAIL", "BOOT_FAIL", "PREEMPTED"] {
            assert!(matches!(phase_of(state), JobPhase::Lost(_)), "{state}");
        }
        for state in ["TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "DEADLINE"] {
            assert!(matches!(phase_of(state), JobPhase::Stopped(_)), "{state}");
        }
        for state in ["RUNNING", "COMPLETING", "SUSPENDED", "STAGE_OUT", "WHATEVER"] {
            assert_eq!(phase_of(state), JobPhase::Runs, "{state}");
        }
    }
}
