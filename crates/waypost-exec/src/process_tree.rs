//! The processes of a program that are no longer in its process group, because they have begun a session or a group of
//! their own (`setsid`). On Linux, this process becomes the parent of every process that its programs leave behind. So it
//! finds them, and has to reap them.
//!
//! A process that has left its program, with an empty environment, is not recognized while the program runs. Other systems
//! than Linux end the process group only.

use rustix::process::{Pid, Signal, kill_process_group};

/// A program that runs, with what it has started.
pub(super) struct ProcessGroup {
    leader: Pid,
    /// The lines by which its processes are recognized in their environments. Without any, only the group is ended.
    marks: Vec<String>,
    /// Its processes outside of the group, as far as they are known.
    #[cfg(target_os = "linux")]
    escaped: Vec<linux::Process>,
    is_stopped: bool,
}

impl ProcessGroup {
    pub(super) fn new(leader: Pid, marks: Vec<String>) -> Self {
        Self {
            leader,
            marks,
            #[cfg(target_os = "linux")]
            escaped: Vec::new(),
            is_stopped: false,
        }
    }

    /// Sends a signal to all its processes because it must end. The caller must not have reaped the leader.
    pub(super) fn stop(&mut self, signal: Signal) {
        self.is_stopped = true;
        // Before the leader ends, because its children have another parent then.
        #[cfg(target_os = "linux")]
        if !self.marks.is_empty() {
            self.escaped = linux::outside_of_group(self.leader);
            self.escaped.iter().for_each(|process| process.signal(signal));
        }
        // The group may have just ended. Its id is not reused before the leader is reaped.
        let _gone = kill_process_group(self.leader, signal);
    }

    /// Kills what is left of the group. The caller must not have reaped the leader.
    pub(super) fn kill_group(&self) {
        let _nobody_left = kill_process_group(self.leader, Signal::KILL);
    }

    /// Waits until the killed processes of the group are gone. If the program was stopped, its other processes are killed,
    /// too; what ended by itself may have left something running on purpose. The caller has reaped the leader.
    pub(super) fn finish(self) {
        #[cfg(target_os = "linux")]
        {
            linux::reap_adopted();
            if self.is_stopped && !self.marks.is_empty() {
                linux::end_all(self.escaped, &self.marks);
            }
        }
        wait_for_group(self.leader);
    }
}

/// Makes this process the parent of what its programs leave behind, where the system can do that.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    linux::adopt_orphans();
}

/// Returns the number of a process's group. It is 0 if the group was made outside of the container that this process
/// runs in, which is why rustix's functions are of no use here: they take 0 for impossible.
#[cfg(target_os = "linux")]
pub fn group_of(process: Pid) -> Option<i32> {
    linux::group_of(process)
}

#[cfg(not(target_os = "linux"))]
pub fn group_of(process: Pid) -> Option<i32> {
    Some(rustix::process::getpgid(Some(process)).ok()?.as_raw_pid())
}

/// Waits until no process of a killed group is left. Usually none is, which costs one check.
fn wait_for_group(group: Pid) {
    use rustix::event::{Timespec, poll};
    use rustix::process::{WaitId, WaitIdOptions, test_kill_process_group, waitid};
    /// Checks, one millisecond apart. A process left after that is dead, and only not reaped by the system yet.
    const LOOKS_MAX: usize = 500;
    for _ in 0..LOOKS_MAX {
        if test_kill_process_group(group).is_err() {
            return;
        }
        // The program itself is reaped already: these are processes that it left, and whose parent this process became.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(group)), options) {}
        let _passed = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::sync::Once;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal,
        set_child_subreaper, waitid,
    };

    /// Rounds of killing; each finds what the killed have left.
    const ROUNDS_MAX: usize = 100;
    /// How long the system gets to end a killed process.
    const KILLED_WAIT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

    /// A process that is not confused with a later one of the same number.
    pub(super) struct Process {
        pid: Pid,
        fd: OwnedFd,
    }

    impl Process {
        /// Opens a process that still has this parent.
        fn open(pid: Pid, parent: Pid) -> Option<Self> {
            let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            Stat::of(pid).is_some_and(|stat| stat.parent == parent.as_raw_pid()).then_some(Self { pid, fd })
        }

        pub(super) fn signal(&self, signal: Signal) {
            let _gone = pidfd_send_signal(&self.fd, signal);
        }

        /// Kills it, waits until it is dead, and reaps it if it is a child of this process.
        fn end(&self) {
            self.signal(Signal::KILL);
            let _late = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&KILLED_WAIT));
            reap(self.pid);
        }

        fn has_ended(&self) -> bool {
            let ready = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&Timespec::default()));
            matches!(ready, Ok(1..))
        }
    }

    /// A line of `/proc/PID/stat`.
    struct Stat {
        state: char,
        parent: i32,
        group: i32,
        session: i32,
    }

    impl Stat {
        fn of(pid: Pid) -> Option<Self> {
            let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
            // The program name is in parentheses and may contain anything, including parentheses and spaces.
            let mut fields = text.rsplit_once(')')?.1.split_whitespace();
            let state = fields.next()?.chars().next()?;
            let mut number = || fields.next()?.parse().ok();
            Some(Self { state, parent: number()?, group: number()?, session: number()? })
        }
    }

    pub(super) fn group_of(pid: Pid) -> Option<i32> {
        Some(Stat::of(pid)?.group)
    }

    pub(super) fn adopt_orphans() {
        static ONCE: Once = Once::new();
        // Without it, what leaves its program is the child of the system, and is found only while its parent lives.
        ONCE.call_once(|| {
            let _unsupported = set_child_subreaper(Some(getpid()));
        });
    }

    fn pids(text: &str) -> Vec<Pid> {
        text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
    }

    /// Returns the children of a process.
    fn children(pid: Pid) -> Vec<Pid> {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())) else { return Vec::new() };
        let read = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
        threads.filter_map(|thread| read(thread.ok()?)).flat_map(|text| pids(&text)).collect()
    }

    /// Adds the descendants of a process.
    fn add_descendants(of: Pid, found: &mut Vec<Process>) {
        let mut open = vec![of];
        while let Some(parent) = open.pop() {
            for child in children(parent) {
                if let Some(process) = Process::open(child, parent) {
                    open.push(child);
                    found.push(process);
                }
            }
        }
    }

    /// Returns the descendants of a group's leader that are not in its group.
    pub(super) fn outside_of_group(leader: Pid) -> Vec<Process> {
        let mut found = Vec::new();
        add_descendants(leader, &mut found);
        let is_outside = |pid: Pid| Stat::of(pid).is_some_and(|stat| stat.group != leader.as_raw_pid());
        found.retain(|process| is_outside(process.pid));
        found
    }

    /// Returns the children of this process that it did not start itself. The system gives them to its first thread.
    fn adopted() -> Vec<(Pid, Stat)> {
        let (own, number) = (getpid(), getpid().as_raw_pid());
        let Ok(text) = fs::read_to_string(format!("/proc/self/task/{number}/children")) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        if text.is_empty() {
            return found;
        }
        // Not by `getpgrp` and `getsid`: see `group_of`.
        let Some(Stat { group, session, .. }) = Stat::of(own) else { return found };
        for pid in pids(&text) {
            let Some(stat) = Stat::of(pid).filter(|stat| stat.parent == own.as_raw_pid()) else { continue };
            // What this process starts is in its session, and in its group or at the head of one.
            let is_own = stat.session == session && (stat.group == group || stat.group == pid.as_raw_pid());
            if !is_own {
                found.push((pid, stat));
            }
        }
        found
    }

    fn reap(pid: Pid) {
        // It may be the child of another process, which then reaps it.
        let _other = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }

    /// Reaps the children that this process did not start.
    pub(super) fn reap_adopted() {
        for (pid, _) in adopted().iter().filter(|(_, stat)| stat.state == 'Z') {
            reap(*pid);
        }
    }

    fn has_marks(pid: Pid, marks: &[String]) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).unwrap_or_default();
        let has = |mark: &String| environment.split(|byte| *byte == 0).any(|line| line == mark.as_bytes());
        marks.iter().all(has)
    }

    /// Kills these processes, those with these marks that this process has adopted, and what they have started.
    pub(super) fn end_all(mut found: Vec<Process>, marks: &[String]) {
        for _ in 0..ROUNDS_MAX {
            let marked = adopted().into_iter().map(|(pid, _)| pid).filter(|&pid| has_marks(pid, marks));
            found.extend(marked.filter_map(|pid| Process::open(pid, getpid())));
            found.retain(|process| !process.has_ended());
            if found.is_empty() {
                break;
            }
            for at in 0..found.len() {
                let pid = found[at].pid;
                add_descendants(pid, &mut found);
            }
            found.drain(..).for_each(|process| process.end());
        }
        reap_adopted();
    }
}
