//! Identifies a run among all runs, and checks whether another run is alive. Reads this machine; writes nothing.
//!
//! The name of a run contains its host, process id, process start time, and a number for its boot and pid namespace. A
//! later run on the same machine can therefore detect at once that the earlier one is dead, and end what it left behind.
//! Machines that were cloned have the same name, and their first pid namespaces have the same number everywhere: only the
//! boot tells them apart.

use std::sync::OnceLock;
use std::{fmt, fs};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// The environment variable by which the processes of a run are found after its death.
pub const WORKER_VARIABLE: &str = "WAYPOST_WORKER";

/// The parts of a run's name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    host: String,
    process: u32,
    began: u64,
    /// Where its processes are seen by these numbers. Names of earlier versions have the pid namespace alone.
    scope: u64,
}

impl Identity {
    fn of(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, ':');
        let (began, scope) = parts.next()?.split_once('.')?;
        let began = u64::from_str_radix(began, 16).ok()?;
        let scope = u64::from_str_radix(scope, 16).ok()?;
        let process = parts.next()?.parse().ok()?;
        Some(Self { host: parts.next()?.to_owned(), process, began, scope })
    }

    /// Returns that of this process, which is read once.
    fn own() -> &'static Self {
        static OWN: OnceLock<Identity> = OnceLock::new();
        OWN.get_or_init(|| {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let process = std::process::id();
            Self { host, process, began: began(process).unwrap_or(0), scope: scope().unwrap_or(0) }
        })
    }

    /// Whether both are of the same machine, and see each other's processes by the same numbers.
    fn sees(&self, other: &Self) -> bool {
        self.began > 0 && self.scope > 0 && (&self.host, self.scope) == (&other.host, other.scope)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, process, began, scope } = self;
        write!(f, "{host}:{process}:{began:x}.{scope:x}")
    }
}

/// Returns the name of this process as a worker: `host:process:began.scope`.
pub fn worker_name() -> String {
    Identity::own().to_string()
}

/// Returns the name of this machine.
pub fn host() -> String {
    Identity::own().host.clone()
}

/// Returns whether this is the name of a run on another machine.
pub fn is_remote(worker: &str) -> bool {
    Identity::of(worker).is_some_and(|other| other.host != Identity::own().host)
}

/// Returns the host and the process in the name of a worker; what follows tells its runs apart.
pub fn worker_place(worker: &str) -> &str {
    worker.match_indices(':').nth(1).map_or(worker, |(end, _)| &worker[..end])
}

/// Returns when a process started, in clock ticks since boot.
fn began(process: u32) -> Option<u64> {
    stat(process).map(|(_, began)| began)
}

/// Returns the state of a process, as a letter, and when it started.
pub(crate) fn stat(process: u32) -> Option<(char, u64)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program name is in parentheses and may contain anything, including parentheses and spaces.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Returns a number for this boot and pid namespace, which is short to read. `None` if the system does not tell.
fn scope() -> Option<u64> {
    /// The largest prime below 2^24, so that all digits count.
    const SCOPES: u64 = 16_777_213;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot = u64::from_str_radix(boot.get(..8)?, 16).ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let digits: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    let namespace: u64 = digits.parse().ok()?;
    Some(((boot << 32) ^ namespace) % SCOPES + 1)
}

/// Returns whether the run of this name is known to be dead; `false` where that cannot be determined.
pub fn is_dead(worker: &str) -> bool {
    state(worker) == ProcessState::Dead
}

/// Returns whether the run of this name is known to be alive: its process is on this machine.
pub fn is_alive(worker: &str) -> bool {
    state(worker) == ProcessState::Alive
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    Alive,
    Dead,
    Unknown,
}

fn state(worker: &str) -> ProcessState {
    let (Some(other), own) = (Identity::of(worker), Identity::own()) else { return ProcessState::Unknown };
    if !own.sees(&other) {
        return ProcessState::Unknown;
    }
    match stat(other.process) {
        Some((state, began)) if began == other.began => match state {
            // Stopped, traced, or ended and not reaped: it does not renew anything.
            'T' | 't' | 'Z' | 'X' => ProcessState::Unknown,
            _ => ProcessState::Alive,
        },
        Some(_) => ProcessState::Dead,
        // A system may hide the processes of other users; only one that does not exist is dead.
        None => {
            let process = i32::try_from(other.process).ok().and_then(Pid::from_raw);
            let is_gone = process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH));
            if is_gone { ProcessState::Dead } else { ProcessState::Unknown }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_read_back_and_only_the_dead_of_this_machine_are_dead() {
        let own = worker_name();
        assert_eq!(Identity::of(&own), Some(Identity::own().clone()));
        assert!(!is_dead(&own));
        assert_eq!(is_alive(&own), cfg!(target_os = "linux"));
        assert!(!is_dead("agent:somebody") && !is_dead("elsewhere:1:1.1") && !is_dead(""));
        let named = |change: fn(&mut Identity)| {
            let mut identity = Identity::own().clone();
            change(&mut identity);
            identity.to_string()
        };
        let earlier = named(|own| own.began -= 1);
        assert_eq!(is_dead(&earlier), cfg!(target_os = "linux"), "another process had this number before");
        let gone = named(|own| own.process = 0x3fff_ffff);
        assert_eq!(is_dead(&gone), cfg!(target_os = "linux"), "no process has this number");
        // A container, a cloned machine, or an earlier version.
        let elsewhere = named(|own| (own.began, own.scope) = (own.began - 1, own.scope + 1));
        assert!(!is_dead(&elsewhere) && !is_alive(&elsewhere));
    }
}
