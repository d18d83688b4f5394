//! The folder of an attempt that we and the nodes share, and all that lies in it:
//!
//! | | written by | |
//! |---|---|---|
//! | `input` | us | what the worker is told |
//! | `environment` | us, for its owner only | variables and secrets; the script removes it when it has read it |
//! | `batch` | us, before it is submitted | the name by which Slurm knows the batch, and the number in it |
//! | `job` | us, after it was submitted | Slurm's number of it |
//! | `owner` | us | which attempt follows it |
//! | `started` | the script, or us | a folder that only one can make: whoever did may go on |
//! | `output`, `log`, `exit` | the script | what the worker wrote, said, and ended with |
//!
//! A folder that is there is a job that nobody has taken the end of.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::job_state::JobId;

/// Bytes of the small files that only we and the script write.
const NOTE_BYTES_MAX: u64 = 4_096;
/// Bytes of a log that are taken at once.
const LOG_BYTES_AT_ONCE: u64 = 1024 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    pub(super) name: String,
}

impl Folder {
    pub(super) fn of(shared: &Path, name: &str) -> Self {
        Self { path: shared.join(name), name: name.to_owned() }
    }

    /// Makes the folder, with all that the script needs.
    pub(super) fn prepare(&self, input: &str, environment: &str) -> Result<(), String> {
        let prepared = || {
            private(&self.path)?;
            self.write("environment", environment)?;
            self.write("owner", &self.name)?;
            self.write("input", input)
        };
        prepared().map_err(|error| format!("{} cannot be written: {error}", self.path.display()))
    }

    pub(super) fn is_there(&self) -> bool {
        self.path.is_dir()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of all attempts.
    pub(super) fn shared(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Which attempt follows the job.
    pub(super) fn owner(&self) -> Option<String> {
        self.note("owner")
    }

    pub(super) fn give_to(&self, owner: &str) -> Result<(), String> {
        self.write("owner", owner)
            .map_err(|error| format!("{} cannot be written: {error}", self.path.display()))
    }

    /// Says what it will be submitted as.
    pub(super) fn set_batch(&self, batch: &str, index: usize) -> io::Result<()> {
        self.write("batch", &format!("{batch} {index}"))
    }

    /// What it was, or was about to be, submitted as. The folder may lie where others write, so it is looked at closely.
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

    /// What the worker ended with, once it has.
    pub(super) fn exit(&self) -> Option<i32> {
        self.note("exit")?.parse().ok()
    }

    /// Whether this is what the worker was told, but for the number of the attempt.
    pub(super) fn has_input(&self, input: &str) -> bool {
        let Ok(told) = fs::read_to_string(self.path.join("input")) else { return false };
        same_work(&told) == same_work(input)
    }

    /// What was added to the log after so many bytes.
    pub(super) fn log_from(&self, offset: u64) -> Vec<u8> {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.path.join("log"))?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(LOG_BYTES_AT_ONCE).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        // There is none before the job has begun.
        read().unwrap_or_default()
    }

    /// What the worker wrote, and one byte more than it may.
    pub(super) fn output(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path.join("output"))?.take(bytes_max + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Nobody waits for the work any more: if its job has not begun it never will, and if it has it ends itself.
    pub(super) fn close(&self) {
        let _begun = fs::create_dir(self.path.join("started"));
        // Out of the way at once, whatever is still written into it.
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

    /// Writes a file as a whole: whoever reads it finds the old one or the new one.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.path.join(format!("{name}.new"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(new, self.path.join(name))
    }
}

/// Makes a folder that only its owner sees.
pub(super) fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn same_work(told: &str) -> Option<Value> {
    let mut told: Value = serde_json::from_str(told).ok()?;
    let fields = told.as_object_mut()?;
    fields.remove("attempt");
    fields.remove("idempotency_key");
    Some(told)
}
