//! The script of a batch of attempts for the nodes, and the arguments of `sbatch`. Pure.
//!
//! A script contains no text of a plan: names of attempts consist of letters, digits and dashes, the command is from
//! the configuration, and the input of a worker is in a file.

use std::path::{Path, PathBuf};

use crate::attempt_spec::AttemptSpec;
use waypost_config::Slurm;

/// Seconds that a job's time limit in Slurm leaves beyond our own timeout.
const GRACE_SECONDS: u32 = 60;
/// Bytes of the comment that identifies a job to a person.
const COMMENT_BYTES_MAX: usize = 1_000;

/// The settings that all jobs of a batch share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) shared: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) slurm: Slurm,
    /// Minutes after which Slurm ends a job.
    pub(super) time_minutes: Option<u32>,
    pub(super) nice: u32,
}

impl Group {
    pub(super) fn of(slurm: &Slurm, job: &AttemptSpec, shared: PathBuf, directory: PathBuf) -> Self {
        let ours = job.timeout_seconds.map(|seconds| seconds.saturating_add(GRACE_SECONDS).div_ceil(60));
        let time_minutes = [ours, slurm.time_minutes].into_iter().flatten().min();
        let nice = i64::from(slurm.nice) - i64::from(job.priority);
        let nice = u32::try_from(nice.max(0)).unwrap_or(u32::MAX).min(NICE_MAX);
        Self { shared, directory, slurm: slurm.clone(), time_minutes, nice }
    }

    /// Returns the arguments of `sbatch` for this number of jobs.
    pub(super) fn arguments(&self, batch: &str, script: &Path, jobs: usize, comment: &str) -> Vec<String> {
        let mut words = vec![
            "--parsable".to_owned(),
            // Only Waypost decides about retries: there is one decider, and every attempt has its number.
            "--no-requeue".to_owned(),
            "--export=NIL".to_owned(),
            "--output=/dev/null".to_owned(),
            format!("--job-name={batch}"),
            format!("--comment={}", plain(comment)),
            format!("--chdir={}", self.shared.display()),
        ];
        let slurm = &self.slurm;
        let numbers = [("cpus-per-task", slurm.cpus), ("time", self.time_minutes)];
        words.extend(numbers.iter().filter_map(|(name, value)| Some(format!("--{name}={}", (*value)?))));
        let texts = [
            ("partition", &slurm.partition),
            ("account", &slurm.account),
            ("qos", &slurm.qos),
            ("mem", &slurm.memory),
            ("gpus", &slurm.gpus),
            ("gres", &slurm.gres),
        ];
        words.extend(texts.iter().filter_map(|(name, value)| Some(format!("--{name}={}", value.as_ref()?))));
        if self.nice > 0 {
            words.push(format!("--nice={}", self.nice));
        }
        words.extend(slurm.options.iter().cloned());
        if jobs > 1 {
            words.push(format!("--array=0-{}", jobs - 1));
        }
        words.push(script.display().to_string());
        words
    }

    /// Returns the script that the nodes run for these attempts.
    pub(super) fn script(&self, names: &[&str]) -> String {
        let choices: String =
            names.iter().enumerate().map(|(at, name)| format!("{at}) attempt={name} ;;\n")).collect();
        let process = &self.slurm.process;
        let command = process.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let command = if process.shell { format!("/bin/sh -c {command}") } else { command };
        let (shared, directory) = (quoted(&path(&self.shared)), quoted(&path(&self.directory)));
        SCRIPT
            .replace("CHOICES\n", &choices)
            .replace("SHARED", &shared)
            .replace("DIRECTORY", &directory)
            .replace("COMMAND", &command)
    }
}

/// The highest niceness that is requested. Slurm's maximum is 2,147,483,645.
const NICE_MAX: u32 = 2_000_000_000;

/// A wrapper around the command. `started` can be created only once, so that a batch submitted twice, because its first
/// submission got no answer, runs once. When the directory is gone, the result is no longer wanted and the job ends
/// itself, for example on a node that Slurm has lost contact with.
const SCRIPT: &str = r#"#!/bin/sh
# Written by Waypost. Runs the work of one attempt, in the folder that the nodes share.
case "${SLURM_ARRAY_TASK_ID:-0}" in
CHOICES
*) exit 64 ;;
esac
folder=SHARED/$attempt
[ -d "$folder" ] || exit 66
mkdir "$folder/started" || exit 0
. "$folder/environment"
rm -f "$folder/environment"
trap : TERM
( trap - TERM; while sleep 5; do [ -d "$folder/started" ] || { trap : TERM; kill -TERM 0; sleep 5; kill -KILL 0; }; done ) > /dev/null 2>&1 &
watch=$!
( trap - TERM; cd DIRECTORY && exec COMMAND ) < "$folder/input" > "$folder/output" 2> "$folder/log"
code=$?
kill "$watch"
echo "$code" > "$folder/exit.new" && mv "$folder/exit.new" "$folder/exit"
exit "$code"
"#;

fn path(path: &Path) -> String {
    path.display().to_string()
}

/// Quotes any text as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns a text on one line, shortened.
fn plain(text: &str) -> String {
    waypost_text::truncate_bytes(&waypost_text::sanitize_line(text), COMMENT_BYTES_MAX).into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_quoted_word_is_the_same_word_to_a_shell() {
        for word in ["", "plain", "$(touch x) `y` \"z\"", "it's", "a\nb\\", "*"] {
            let line = format!("printf %s {}", quoted(word));
            let said = Command::new("sh").arg("-c").arg(line).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word);
        }
    }
}
