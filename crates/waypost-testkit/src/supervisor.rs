//! A script that runs servers for tests, and takes all of it along when its standard input ends: that also happens when the
//! process that holds the other end is killed. Does not know which servers.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// How often other ports are tried when somebody was faster.
const TRIES: u32 = 3;

pub(crate) struct Supervisor {
    /// As long as this is open, the servers run.
    alive: Option<ChildStdin>,
    script: Child,
}

impl Supervisor {
    /// Starts a script, and waits until it says `ready`.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        // Not in our group: who interrupts the tests does not interrupt the clearing up.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).current_dir("/");
        let started = command.spawn();
        let mut script =
            started.map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
        let alive = script.stdin.take();
        let mut lines = Vec::new();
        if let Some(stdout) = script.stdout.take() {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line == "ready" {
                    return Ok(Self { alive, script });
                }
                lines.push(line);
            }
        }
        let _ended = script.wait();
        Err(lines.join("\n"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.alive.take());
        let _ended = self.script.wait();
    }
}

/// Starts something on free ports; again, when somebody else has taken one meanwhile.
pub(crate) fn retried<T>(start: impl Fn() -> Result<T, String>) -> Result<T, String> {
    let mut tries = 0;
    loop {
        tries += 1;
        match start() {
            Err(why) if tries < TRIES && why.contains("already in use") => {}
            outcome => return outcome,
        }
    }
}
