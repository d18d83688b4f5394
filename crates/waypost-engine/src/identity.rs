//! Who a run is among all runs, and whether another one is still alive. Looks at this machine; writes nothing.
//!
//! The name of a run says where it runs: host, process, when that process began, and in which namespace its number
//! counts. So a later run on the same machine can tell at once that it is dead, and end what it left behind.

use std::fs;
use std::path::Path;

use crate::executors::end_left_behind;
use crate::vigil;

/// The variable by which the processes of a run are found after its death.
pub(crate) const WORKER_VARIABLE: &str = "WAYPOST_WORKER";

/// A run, by where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    host: String,
    process: u32,
    began: u64,
    namespace: u64,
}

impl Identity {
    fn of(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, ':');
        let (began, namespace) = parts.next()?.split_once('.')?;
        let began = u64::from_str_radix(began, 16).ok()?;
        let namespace = u64::from_str_radix(namespace, 16).ok()?;
        let process = parts.next()?.parse().ok()?;
        Some(Self { host: parts.next()?.to_owned(), process, began, namespace })
    }

    fn own() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let process = std::process::id();
        Self { host, process, began: began(process).unwrap_or(0), namespace: namespace() }
    }
}

/// The name of this process as a worker: `host:process:began.namespace`.
pub fn worker_name() -> String {
    let Identity { host, process, began, namespace } = Identity::own();
    format!("{host}:{process}:{began:x}.{namespace:x}")
}

/// The name of this machine.
pub(crate) fn host() -> String {
    Identity::own().host
}

/// Whether this is the name of a run on another machine.
pub(crate) fn is_elsewhere(worker: &str) -> bool {
    Identity::of(worker).is_some_and(|other| other.host != Identity::own().host)
}

/// When a process began, in ticks since the machine did.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program stands in brackets and may hold anything, brackets and spaces included.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// The namespace in which process numbers of this process count.
fn namespace() -> u64 {
    let link = fs::read_link("/proc/self/ns/pid").ok();
    let text = link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    let number: u64 = text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    // Enough to tell the namespaces of one machine apart, and short to read.
    number & 0xf_ffff
}

/// Whether the run of this name is known to be dead; where that cannot be known, it is not.
pub(crate) fn is_dead(worker: &str) -> bool {
    let (Some(other), own) = (Identity::of(worker), Identity::own()) else { return false };
    let can_tell =
        other.host == own.host && other.namespace == own.namespace && own.began > 0 && own.namespace > 0;
    can_tell && began(other.process) != Some(other.began)
}

/// Ends every process that a dead run had started and that is still there. Returns whether none is left: `runs` holds the
/// vigils of all runs, and `engines` are the programs that may be asked to end containers.
pub(crate) fn end_orphans(worker: &str, runs: &Path, engines: &[String]) -> bool {
    const ROUNDS_MAX: usize = 100;
    const PAUSE: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let mark = format!("{WORKER_VARIABLE}={worker}");
    for _ in 0..ROUNDS_MAX {
        let orphans = marked(&mark);
        // A container is no child of the program that asked for it, and may keep the vigil.
        if !end_left_behind(runs, worker, engines) {
            return false;
        }
        if orphans.is_empty() && vigil::is_over(runs, worker) {
            return true;
        }
        for orphan in orphans {
            kill_and_wait(orphan);
        }
        // One that is just being started shows its mark only a moment later.
        let _waited = rustix::event::poll(&mut [], Some(&PAUSE));
    }
    false
}

/// Processes in whose environment this line stands, but for our own.
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
    use rustix::process::{Signal, getpgid, getpgrp, kill_process, kill_process_group};
    /// Milliseconds that the system gets to take a killed process away.
    const WAIT_MILLIS: i64 = 2_000;
    #[cfg(target_os = "linux")]
    let watched = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok();
    // It may be gone already, and that is as good.
    let _gone = match getpgid(Some(process)) {
        Ok(group) if group != getpgrp() => kill_process_group(group, Signal::KILL),
        Ok(_) | Err(_) => kill_process(process, Signal::KILL),
    };
    #[cfg(target_os = "linux")]
    if let Some(watched) = watched {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let patience = Timespec { tv_sec: WAIT_MILLIS / 1_000, tv_nsec: 0 };
        let _late = poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&patience));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_read_back_and_only_the_dead_of_this_machine_are_dead() {
        let own = worker_name();
        assert_eq!(Identity::of(&own), Some(Identity::own()));
        assert!(!is_dead(&own));
        assert!(!is_dead("agent:somebody") && !is_dead("elsewhere:1:1.1") && !is_dead(""));
        let Identity { host, process, began, namespace } = Identity::own();
        let earlier = format!("{host}:{process}:{:x}.{namespace:x}", began - 1);
        assert_eq!(is_dead(&earlier), cfg!(target_os = "linux"), "another process had this number before");
        assert!(
            !is_dead(&format!("{host}:{process}:{:x}.{:x}", began - 1, namespace + 1)),
            "numbers of a container"
        );
    }
}
