//! The script of a batch of attempts for the nodes, and the arguments of `sbatch`. Pure.
//!
//! A script contains no text of a plan: names of attempts consist of letters, digits and dashes, the command is from
//! the configuration, and the input of a worker is in a file.

use std::path::{Path, PathBuf};

use super::attempt_dir::FileSums;
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
    pub(super) fn script(&self, attempts: &[(&str, &FileSums)]) -> String {
        let choice = |(at, (name, sums)): (usize, &(&str, &FileSums))| {
            let FileSums { input, environment } = sums;
            format!("{at}) attempt={name} input={input} environment={environment} ;;\n")
        };
        let choices: String = attempts.iter().enumerate().map(choice).collect();
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
/// itself, for example on a node that Slurm has lost contact with. Slurm keeps the script itself; what it reads is copied to where
/// only its owner can write, and compared.
const SCRIPT: &str = r#"#!/bin/sh
# Written by Waypost. Runs the work of one attempt, in the folder that the nodes share.
case "${SLURM_ARRAY_TASK_ID:-0}" in
CHOICES
*) exit 64 ;;
esac
folder=SHARED/$attempt
[ -d "$folder" ] || exit 66
mkdir "$folder/started" || exit 0
ends() { echo "$1" > "$folder/exit.new" && mv "$folder/exit.new" "$folder/exit"; exit "$1"; }
own=$(mktemp -d) && cp "$folder/environment" "$folder/input" "$own" || ends 66
rm -f "$folder/environment"
if ! printf '%s  %s\n' "$environment" "$own/environment" "$input" "$own/input" | sha256sum -c - > /dev/null 2>&1; then
    rm -rf "$own"
    echo "the files of this attempt were changed after it was submitted, so that nothing ran" > "$folder/log"
    ends 65
fi
. "$own/environment"
exec 3< "$own/input"
rm -rf "$own"
trap : TERM
( trap - TERM; while sleep 5; do [ -d "$folder/started" ] || { trap : TERM; kill -TERM 0; sleep 5; kill -KILL 0; }; done ) > /dev/null 2>&1 &
watch=$!
( trap - TERM; cd DIRECTORY && exec COMMAND 3<&- ) <&3 > "$folder/output" 2> "$folder/log"
code=$?
kill "$watch"
ends "$code"
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
    use std::fs;
    use std::process::Command;

    use waypost_config::{Config, Executor, Layer, Origin, Worker};

    use super::*;
    use crate::slurm::attempt_dir::Folder;

    /// A job may wait for hours in the folder that agents can write.
    #[test]
    fn a_job_whose_files_were_changed_meanwhile_runs_nothing() {
        let text = "[executors.d]\nkind = \"dispatch\"\ntarget = \"slurm\"\n[executors.d.workers.w]\ncommand = [\"sh\", \"-c\", \"cat; echo $WORD\"]\n";
        let layer = Layer { origin: Origin::User, name: "test".to_owned(), text: text.to_owned() };
        let config = Config::load(&[layer], []).unwrap();
        let Executor::Dispatch(workers) = &config.executors["d"] else { panic!() };
        let Worker::Slurm(slurm) = &workers["w"] else { panic!() };
        for changed in ["", "environment", "input"] {
            let root = std::env::temp_dir().join(format!("waypost-job{changed}-{}", std::process::id()));
            fs::create_dir_all(&root).unwrap();
            let directory = root.clone();
            let group = Group {
                shared: root.clone(),
                directory,
                slurm: (**slurm).clone(),
                time_minutes: None,
                nice: 0,
            };
            let folder = Folder::of(&root, "waypost-a");
            let sums = folder.prepare("input", "WORD=said; export WORD").unwrap();
            let script = group.script(&[("waypost-other", &sums), ("waypost-a", &sums)]);
            if !changed.is_empty() {
                let file = folder.path().join(changed);
                let text = fs::read_to_string(&file).unwrap();
                fs::write(file, format!("{text}touch {}/evil\n", root.display())).unwrap();
            }
            let ended = Command::new("sh").arg("-c").arg(script).env("SLURM_ARRAY_TASK_ID", "1").status();
            let (code, read) =
                (ended.unwrap().code(), |name: &str| fs::read_to_string(folder.path().join(name)));
            assert_eq!(folder.exit(), code);
            match changed {
                "" => assert_eq!((code, read("output").unwrap().as_str()), (Some(0), "input\nsaid\n")),
                _ => {
                    assert_eq!(code, Some(65));
                    assert!(read("log").unwrap().contains("were changed"), "{changed}");
                    assert!(read("output").is_err() && !root.join("evil").exists(), "{changed}");
                }
            }
            assert!(!folder.path().join("environment").exists(), "it may have secrets");
            fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn a_quoted_word_is_the_same_word_to_a_shell() {
        for word in ["", "plain", "$(touch x) `y` \"z\"", "it's", "a\nb\\", "*"] {
            let line = format!("printf %s {}", quoted(word));
            let said = Command::new("sh").arg("-c").arg(line).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word);
        }
    }
}
