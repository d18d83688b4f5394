//! Ends the processes that a dead run left behind.

use std::fs;
use std::path::Path;

use waypost_exec::{end_left_behind, group_of, liveness_lock};
use waypost_store::WORKER_VARIABLE;

/// Kills every process that a dead run started and that still runs. Returns whether none is left. `runs` holds the
/// liveness locks of all runs, and `engines` are the programs that may be used to end containers.
pub(crate) fn end_orphans(worker: &str, runs: &Path, engines: &[String]) -> bool {
    const ROUNDS_MAX: usize = 100;
    const PAUSE: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let mark = format!("{WORKER_VARIABLE}={worker}");
    for _ in 0..ROUNDS_MAX {
        let orphans = marked(&mark);
        // A container is not a child of the program that started it, and may hold the lock.
        if !end_left_behind(runs, worker, engines) {
            return false;
        }
        if orphans.is_empty() && liveness_lock::is_over(runs, worker) {
            return true;
        }
        for orphan in orphans {
            kill_and_wait(orphan);
        }
        // A process that is just starting gets its mark only a moment later.
        let _waited = rustix::event::poll(&mut [], Some(&PAUSE));
    }
    false
}

/// Returns the processes with this line in their environment, except our own.
fn marked(mark: &str) -> Vec<rustix::process::Pid> {
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_string_lossy().parse::<i32>().ok());
    let others = numbers.filter(|&number| number != std::process::id() as i32);
    let is_marked = |number: &i32| {
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|line| line == mark.as_bytes())
    };
    others.filter(is_marked).filter_map(rustix::process::Pid::from_raw).collect()
}

fn kill_and_wait(process: rustix::process::Pid) {
    use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};
    /// Milliseconds that the system gets to remove a killed process.
    const WAIT_MILLIS: i64 = 2_000;
    #[cfg(target_os = "linux")]
    let watched = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok();
    // The process may be gone already, which is just as good.
    let other = group_of(process).filter(|&group| group_of(getpid()) != Some(group)).and_then(Pid::from_raw);
    let _gone = match other {
        Some(group) => kill_process_group(group, Signal::KILL),
        None => kill_process(process, Signal::KILL),
    };
    #[cfg(target_os = "linux")]
    if let Some(watched) = watched {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let patience = Timespec { tv_sec: WAIT_MILLIS / 1_000, tv_nsec: 0 };
        let _late = poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&patience));
    }
}
