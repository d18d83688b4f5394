//! A file that stays locked while a run, or any process that it started, is alive.
//!
//! The lock belongs to an open file that every process of the run inherits. The system releases it when the last of
//! them ends, however it ends. That includes a process started in the very moment in which the run was killed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use waypost_store::{make_state_folder, open_state_file};

/// Held by a run until it ends.
#[derive(Debug)]
pub struct LivenessLock {
    path: PathBuf,
    _file: File,
}

pub fn path(folder: &Path, worker: &str) -> PathBuf {
    let name: String =
        worker.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    folder.join(format!("{name}.alive"))
}

impl LivenessLock {
    /// Takes the lock for this run. All processes that it starts from now on hold the lock too.
    pub fn begin(folder: &Path, worker: &str) -> io::Result<Self> {
        make_state_folder(folder, 1)?;
        let path = path(folder, worker);
        let file = open_state_file(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        fcntl_setfd(&file, FdFlags::empty())?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        // A missing file means the same as an unlocked one.
        let _gone = fs::remove_file(&self.path);
    }
}

/// Returns whether no process of a run is left, according to its file. Removes the file of a run that is over.
pub fn is_over(folder: &Path, worker: &str) -> bool {
    let path = path(folder, worker);
    let Ok(file) = OpenOptions::new().write(true).open(&path) else { return true };
    let over = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if over {
        let _gone = fs::remove_file(&path);
    }
    over
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_lock_lasts_until_the_last_process_of_its_run_is_gone() {
        let folder = std::env::temp_dir().join(format!("waypost-liveness-{}", std::process::id()));
        let lock = LivenessLock::begin(&folder, "host:1:2.3").unwrap();
        assert!(!is_over(&folder, "host:1:2.3"));
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // As if the run had been killed: its own file is closed, and the path stays.
        let LivenessLock { path, .. } = &lock;
        let path = path.clone();
        fs::rename(&path, path.with_extension("kept")).unwrap();
        drop(lock);
        fs::rename(path.with_extension("kept"), &path).unwrap();
        assert!(!is_over(&folder, "host:1:2.3"), "what it started is still there");
        drop(child.stdin.take());
        child.wait().unwrap();
        // Programs that other tests started meanwhile have inherited the file, and end soon.
        let began = std::time::Instant::now();
        while !is_over(&folder, "host:1:2.3") {
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "nobody of the run is left");
            std::thread::yield_now();
        }
        assert!(!path.exists());
        assert!(is_over(&folder, "never:there"));
        fs::remove_dir_all(folder).unwrap();
    }
}
