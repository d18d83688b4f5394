//! Identifies a run among all runs, and checks whether another run is alive. Reads this machine; writes nothing.
//!
//! The name of a run contains its host, process id, process start time and pid namespace. A later run on the same
//! machine can therefore detect at once that the earlier one is dead, and end what it left behind.

use std::fs;

/// The environment variable by which the processes of a run are found after its death.
pub const WORKER_VARIABLE: &str = "WAYPOST_WORKER";

/// The parts of a run's name.
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

/// Returns the name of this process as a worker: `host:process:began.namespace`.
pub fn worker_name() -> String {
    let Identity { host, process, began, namespace } = Identity::own();
    format!("{host}:{process}:{began:x}.{namespace:x}")
}

/// Returns the name of this machine.
pub fn host() -> String {
    Identity::own().host
}

/// Returns whether this is the name of a run on another machine.
pub fn is_remote(worker: &str) -> bool {
    Identity::of(worker).is_some_and(|other| other.host != Identity::own().host)
}

/// Returns when a process started, in clock ticks since boot.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program name is in parentheses and may contain anything, including parentheses and spaces.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// Returns the pid namespace of this process.
fn namespace() -> u64 {
    let link = fs::read_link("/proc/self/ns/pid").ok();
    let text = link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    let number: u64 = text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    // 20 bits distinguish the namespaces of one machine, and are short to read.
    number & 0xf_ffff
}

/// Returns whether the run of this name is known to be dead; `false` where that cannot be determined.
pub fn is_dead(worker: &str) -> bool {
    let (Some(other), own) = (Identity::of(worker), Identity::own()) else { return false };
    let can_tell =
        other.host == own.host && other.namespace == own.namespace && own.began > 0 && own.namespace > 0;
    can_tell && began(other.process) != Some(other.began)
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
