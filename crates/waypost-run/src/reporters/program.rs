//! A program that gets events one after the other. Does not know what the events mean.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The time between two checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);

pub(super) struct Program {
    pub(super) command: Vec<String>,
    pub(super) folder: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) timeout: Duration,
}

/// Our ends of the channels to a program's thread.
pub(super) struct Line {
    /// Takes events; `None` after the end of the run.
    pub(super) events: Option<SyncSender<String>>,
    pub(super) failures: Receiver<String>,
    pub(super) stop: Sender<()>,
}

impl Program {
    /// Passes each event to the program, on a thread of its own. Up to `waiting_max` events wait.
    pub(super) fn listen(self, waiting_max: usize) -> io::Result<Line> {
        let (sender, events) = sync_channel::<String>(waiting_max);
        let (said, failures) = channel();
        let (stop, stopped) = channel();
        let work = move || {
            for event in events {
                if stopped.try_recv().is_ok() {
                    return;
                }
                let told = match self.tell(&event, &stopped) {
                    Ok(()) => Ok(()),
                    Err(Untold::Failed(why)) => said.send(why),
                    Err(Untold::Stopped) => return,
                };
                if told.is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("reporter".to_owned()).spawn(work)?;
        Ok(Line { events: Some(sender), failures, stop })
    }

    fn tell(&self, event: &str, stopped: &Receiver<()>) -> Result<(), Untold> {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let mut command = Command::new(program);
        command.args(self.command.iter().skip(1)).current_dir(&self.folder);
        command.env_clear().envs(&self.variables).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let no_start = |error| Untold::Failed(format!("{program} could not be started: {error}"));
        let mut child = command.spawn().map_err(no_start)?;
        if let Some(mut input) = child.stdin.take() {
            // A program that does not read its input has not failed; its exit code decides.
            let _unread = input.write_all(format!("{event}\n").as_bytes());
        }
        let ended = self.wait(&mut child, stopped);
        // Kills what the program left behind in its group.
        if let Some(group) = Pid::from_raw(child.id() as i32) {
            let _gone = kill_process_group(group, Signal::KILL);
        }
        let _known = child.wait();
        ended
    }

    fn wait(&self, child: &mut Child, stopped: &Receiver<()>) -> Result<(), Untold> {
        let until = Instant::now() + self.timeout;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(Untold::Failed(format!("it ended with {status}"))),
                Ok(None) if Instant::now() >= until => {
                    let seconds = self.timeout.as_secs();
                    return Err(Untold::Failed(format!("it took longer than {seconds} s")));
                }
                Ok(None) => {}
                Err(error) => return Err(Untold::Failed(error.to_string())),
            }
            if stopped.recv_timeout(LOOK).is_ok() {
                return Err(Untold::Stopped);
            }
        }
    }
}

/// Why a program did not get an event.
enum Untold {
    Failed(String),
    /// The run is over and does not wait any longer.
    Stopped,
}
