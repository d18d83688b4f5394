//! The directory of an attempt that is shared with the nodes, and its files:
//!
//! | | written by | |
//! |---|---|---|
//! | `input` | us | the worker's input |
//! | `environment` | us, for its owner only | variables and secrets; the script removes it after reading it |
//! | `batch` | us, before the submission | the name of the batch in Slurm, and the index in it |
//! | `job` | us, after the submission | the job id in Slurm |
//! | `owner` | us | the attempt that follows the job |
//! | `started` | the script, or us | a directory that only one can create: its creator may proceed |
//! | `output`, `log`, `exit` | the script | standard output, standard error and exit code of the worker |
//!
//! An existing directory means a job whose end has not been read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use waypost_config::{ExecutionEnv, Slurm};
use waypost_core::canonical::sha256;
use waypost_text::hex;

use super::job_state::JobId;
use crate::attempt::inside;
use crate::outcome::AttemptKey;
use crate::remote_note::same_work;
use crate::resource_name;

/// Earlier attempts whose directories are searched for.
pub(super) const EARLIER_MAX: u32 = 100;
/// Bytes of the small files that only we and the script write.
const NOTE_BYTES_MAX: u64 = 4_096;
/// Bytes of one read from a log.
const LOG_BYTES_AT_ONCE: u64 = 1024 * 1024;

/// The SHA-256 of the files that a job reads. A job may wait for hours, and agents may be able to write into the directory.
#[derive(Clone, Debug)]
pub(super) struct FileSums {
    pub(super) input: String,
    pub(super) environment: String,
}

#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    pub(super) name: String,
}

impl Folder {
    pub(super) fn of(shared: &Path, name: &str) -> Self {
        Self { path: shared.join(name), name: name.to_owned() }
    }

    /// Creates the directory, with all files that the script needs, and returns the sums by which it recognises them.
    pub(super) fn prepare(&self, input: &str, environment: &str) -> Result<FileSums, String> {
        let prepared = || {
            private(&self.path)?;
            self.write("environment", environment)?;
            self.write("owner", &self.name)?;
            self.write("input", input)
        };
        prepared().map_err(|error| format!("{} cannot be written: {error}", self.path.display()))?;
        let sum = |text: &str| hex(&sha256(format!("{text}\n").as_bytes()));
        Ok(FileSums { input: sum(input), environment: sum(environment) })
    }

    pub(super) fn is_there(&self) -> bool {
        self.path.is_dir()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory with the directories of all attempts.
    pub(super) fn shared(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Returns the attempt that follows the job.
    pub(super) fn owner(&self) -> Option<String> {
        self.note("owner")
    }

    pub(super) fn give_to(&self, owner: &str) -> Result<(), String> {
        self.write("owner", owner)
            .map_err(|error| format!("{} cannot be written: {error}", self.path.display()))
    }

    /// Records the batch that the job will be submitted with.
    pub(super) fn set_batch(&self, batch: &str, index: usize) -> io::Result<()> {
        self.write("batch", &format!("{batch} {index}"))
    }

    /// Returns the batch that the job was, or was about to be, submitted with. The directory may be writable by others,
    /// so the name is checked strictly.
    pub(super) fn batch(&self) -> Option<(String, u32)> {
        let note = self.note("batch")?;
        let (name, index) = note.split_once(' ')?;
        let is_name = name.starts_with("waypost-")
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_name {
            return None;
        }
        Some((name.to_owned(), index.parse().ok()?))
    }

    pub(super) fn set_job(&self, job: JobId) -> io::Result<()> {
        self.write("job", &job.to_string())
    }

    pub(super) fn job(&self) -> Option<JobId> {
        JobId::parse(&self.note("job")?)
    }

    /// Returns the exit code of the worker, once there is one.
    pub(super) fn exit(&self) -> Option<i32> {
        self.note("exit")?.parse().ok()
    }

    /// Whether the worker got this input, apart from the number of the attempt.
    pub(super) fn has_input(&self, input: &str) -> bool {
        let Ok(told) = fs::read_to_string(self.path.join("input")) else { return false };
        same_work(&told) == same_work(input)
    }

    /// Reads the log from this offset, in bytes.
    pub(super) fn log_from(&self, offset: u64) -> Vec<u8> {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.path.join("log"))?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(LOG_BYTES_AT_ONCE).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        // There is no log before the job has started.
        read().unwrap_or_default()
    }

    /// Reads the output of the worker, up to one byte more than the limit.
    pub(super) fn output(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path.join("output"))?.take(bytes_max + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Abandons the work: a job that has not started never will, and one that has started ends itself.
    pub(super) fn close(&self) {
        let _begun = fs::create_dir(self.path.join("started"));
        // Renamed first, so that it is out of the way at once, whatever is still written into it.
        let gone = self.path.with_file_name(format!("gone-{}", self.name));
        let _not_there = fs::rename(&self.path, &gone);
        let _left = fs::remove_dir_all(&gone);
    }

    fn note(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        let file = File::open(self.path.join(name)).ok()?;
        file.take(NOTE_BYTES_MAX).read_to_string(&mut text).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// Writes a file atomically: a reader finds the old content or the new.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.path.join(format!("{name}.new"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(new, self.path.join(name))
    }
}

/// Creates a directory that only its owner can access.
pub(super) fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns the name of the directory of an attempt.
pub(super) fn name(key: &AttemptKey, is_check: bool) -> String {
    format!("{}{}", resource_name::name(key), if is_check { "-check" } else { "" })
}

/// Creates and returns the directory shared with the nodes.
pub(super) fn shared(around: &ExecutionEnv, slurm: &Slurm) -> Result<PathBuf, String> {
    let path = around.workspace.join(&slurm.folder);
    let unusable =
        |error: std::io::Error| format!("the shared folder {} cannot be used: {error}", path.display());
    private(&path).map_err(unusable)?;
    if slurm.folder.starts_with('/') {
        path.canonicalize().map_err(unusable)
    } else {
        inside(&around.workspace, &slurm.folder)
    }
}
