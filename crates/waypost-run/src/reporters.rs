//! Reports the events of a run to the files and programs of the configuration. A reporter never delays or fails a run.
//!
//! Reporters get the same events as an observer of the run, with a timestamp. Events contain no inputs, no outputs of
//! tasks and no secrets; the evidence of a check may contain the check's output and the end of its log. Webhooks are not
//! served here: they get the event log itself, from a stored position ([`WebhookOutbox`]).

mod program;
mod store_reports;
mod webhook;
mod webhook_outbox;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use waypost_core::Timestamp;

use crate::scheduler::RunEvent;
use waypost_config::ExecutionEnv;
use waypost_config::{Config, Report, Reporter};
use waypost_store::WORKER_VARIABLE;

use self::program::{Line, Program};
pub use self::store_reports::StoreReports;
pub use self::webhook::payload;
pub use self::webhook_outbox::{WEBHOOK_AGE_SECONDS_MAX, WebhookOutbox, reporter_owner};

/// Events in the queue of a program; further ones are dropped and counted.
pub const REPORTS_WAITING_MAX: usize = 1_000;
/// Bytes of an event; a larger one is reported with only its name, plan, task, status, attempt and time.
pub const REPORT_BYTES_MAX: usize = 32 * 1024;
/// How long a run that is over waits for the reporter programs.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long it then takes at most to end a program that has not finished.
pub(crate) const LAST_STOP: Duration = Duration::from_secs(1);

/// All reporters of a run.
pub(crate) struct Reporters {
    all: Vec<Active>,
}

struct Active {
    name: String,
    events: Vec<String>,
    way: Way,
    failed: u64,
    why: Option<String>,
}

enum Way {
    /// Lines are appended; `None` if the file cannot be used.
    File(Option<File>),
    /// A thread passes each event to a program.
    Program(Line),
}

impl Reporters {
    /// Prepares all reporters. A reporter that cannot start is reported at the end.
    pub(crate) fn begin(config: &Config, around: &ExecutionEnv) -> Self {
        let begin = |(name, reporter): (&String, &Reporter)| match &reporter.report {
            Report::Console | Report::Webhook(_) => None,
            Report::File { path } => {
                let file = open(&around.workspace, path);
                let why = file.as_ref().err().cloned();
                Some(Active::new(name, reporter, Way::File(file.ok()), why))
            }
            Report::Command { command, environment, timeout_seconds } => {
                let mut variables = chosen(&around.variables, environment);
                // Marked so that the program is found and killed with the run's other programs, and so that a command
                // it calls does not act as a person.
                variables.insert(WORKER_VARIABLE.to_owned(), around.worker.clone());
                variables.insert("WAYPOST_ACTOR".to_owned(), format!("worker:reporter-{name}"));
                let program = Program {
                    command: command.clone(),
                    folder: around.workspace.clone(),
                    variables,
                    timeout: Duration::from_secs(u64::from(*timeout_seconds)),
                };
                Some(match program.listen(REPORTS_WAITING_MAX) {
                    Ok(line) => Active::new(name, reporter, Way::Program(line), None),
                    Err(error) => Active::new(name, reporter, Way::File(None), Some(error.to_string())),
                })
            }
        };
        Self { all: config.reporters.iter().filter_map(begin).collect() }
    }

    /// Whether there is nobody to report to.
    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns a message for each reporter that cannot work.
    fn unusable(&self) -> Vec<String> {
        let says = |one: &Active| one.why.as_ref().map(|why| format!("reporter {}: {why}", one.name));
        self.all.iter().filter_map(says).collect()
    }

    /// Reports an event to all reporters that want it.
    pub(crate) fn tell(&mut self, at: Timestamp, notice: &RunEvent) {
        if self.all.is_empty() {
            return;
        }
        let Ok(mut event) = serde_json::to_value(notice) else { return };
        if let Some(fields) = event.as_object_mut() {
            fields.insert("at".to_owned(), json!(at));
        }
        let mut line = event.to_string();
        if line.len() > REPORT_BYTES_MAX {
            let keep = ["event", "plan", "task", "status", "attempt", "at"];
            let kept = keep.iter().filter_map(|name| Some((*name, event.get(*name)?)));
            line = json!(kept.collect::<BTreeMap<&str, &Value>>()).to_string();
        }
        for reporter in &mut self.all {
            if wants(&reporter.events, &event) {
                reporter.tell(&line);
            }
        }
    }

    /// Waits a while for events still in progress. Returns a message for each reporter that missed events.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let until = Instant::now() + LAST_WORDS;
        let finished = self.all.drain(..).filter_map(|reporter| reporter.finish(until));
        finished.collect()
    }
}

/// Whether a list of event names includes this event; an empty list includes all.
fn wants(events: &[String], event: &Value) -> bool {
    events.is_empty() || filter_names(event).iter().any(|word| events.contains(word))
}

/// Whether a reporter gets an event.
pub fn reports(reporter: &Reporter, notice: &RunEvent) -> bool {
    serde_json::to_value(notice).is_ok_and(|event| wants(&reporter.events, &event))
}

/// The names that select an event: its own, and the one with the status of its task or the phase of its plan.
fn filter_names(event: &Value) -> Vec<String> {
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    let mut words: Vec<String> = text("event").map(str::to_owned).into_iter().collect();
    words.extend(text("status").map(|status| format!("task_{status}")));
    words.extend(text("phase").map(|phase| format!("plan_{phase}")));
    words
}

fn chosen(variables: &BTreeMap<String, String>, names: &[String]) -> BTreeMap<String, String> {
    names.iter().filter_map(|name| Some((name.clone(), variables.get(name)?.clone()))).collect()
}

/// Opens a log for appending: a file of the workspace, or an absolute path that the operator's configuration names. Links are
/// followed before the check that a file of the workspace lies inside.
fn open(workspace: &Path, named: &str) -> Result<File, String> {
    let unusable = |error: io::Error| format!("{named:?} cannot be used: {error}");
    let mut path = PathBuf::from(named);
    if !path.is_absolute() {
        let root = workspace.canonicalize().map_err(unusable)?;
        path = root.join(named);
        let folder = path.parent().unwrap_or(&root).canonicalize().map_err(unusable)?;
        let outside = |path: &Path| !path.starts_with(&root);
        if outside(&folder) || path.is_symlink() && path.canonicalize().map_or(true, |path| outside(&path)) {
            return Err(format!("{named:?} leads out of the workspace"));
        }
    }
    // A pipe would make the run wait for its reader.
    if path.exists() && !path.is_file() {
        return Err(format!("{named:?} is not a file"));
    }
    OpenOptions::new().append(true).create(true).open(&path).map_err(unusable)
}

impl Active {
    fn new(name: &str, reporter: &Reporter, way: Way, why: Option<String>) -> Self {
        Self { name: name.to_owned(), events: reporter.events.clone(), way, failed: 0, why }
    }

    fn tell(&mut self, line: &str) {
        let told = match &mut self.way {
            Way::File(None) => Err(None),
            Way::File(Some(file)) => {
                file.write_all(format!("{line}\n").as_bytes()).map_err(|error| Some(error.to_string()))
            }
            Way::Program(Line { events: None, .. }) => Err(None),
            Way::Program(Line { events: Some(queue), .. }) => {
                let full = format!("more than {REPORTS_WAITING_MAX} events wait for it");
                queue.try_send(line.to_owned()).map_err(|_| Some(full))
            }
        };
        if let Err(why) = told {
            self.failed += 1;
            self.why = self.why.take().or(why);
        }
    }

    /// Returns a message if events could not be reported.
    fn finish(mut self, until: Instant) -> Option<String> {
        if let Way::Program(Line { events: queue, failures, stop }) = &mut self.way {
            // Without a sender the thread ends after the last event.
            drop(queue.take());
            let mut hear = |why: String| {
                self.failed += 1;
                self.why.get_or_insert(why);
            };
            loop {
                match failures.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(why) => hear(why),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        hear("it was not done in time".to_owned());
                        // The thread kills its program, then ends.
                        let _gone = stop.send(());
                        while failures.recv_timeout(LAST_STOP).is_ok() {}
                        break;
                    }
                }
            }
        }
        let why = self.why?;
        let count = match self.failed {
            0 => String::new(),
            1 => " (1 event was not reported)".to_owned(),
            many => format!(" ({many} events were not reported)"),
        };
        Some(format!("reporter {}: {why}{count}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waypost_core::{PlanId, TaskId};

    fn reporting(report: Report) -> (Reporters, PathBuf) {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("waypost-reports-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let variables = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
        let (workspace, logs, worker) = (folder.clone(), folder.join("logs"), "w".to_owned());
        let around = ExecutionEnv { workspace, logs, remote_notes: PathBuf::new(), variables, worker };
        let mut config = Config::default();
        config.reporters.insert("r".to_owned(), Reporter { report, events: Vec::new() });
        (Reporters::begin(&config, &around), folder)
    }

    fn progressed(length: usize) -> RunEvent {
        let (plan, task) = (PlanId::new("p").unwrap(), TaskId::new("t").unwrap());
        RunEvent::TaskProgressed { plan, task, progress: "x".repeat(length) }
    }

    #[test]
    fn a_large_event_is_told_without_its_words() {
        let (mut reporters, folder) = reporting(Report::File { path: "log".to_owned() });
        let at = Timestamp::from_micros(0);
        for length in [10, REPORT_BYTES_MAX] {
            reporters.tell(at, &progressed(length));
        }
        assert_eq!(reporters.finish(), [""; 0]);
        let text = std::fs::read_to_string(folder.join("log")).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["progress"], "xxxxxxxxxx");
        assert_eq!((&lines[1]["event"], &lines[1]["task"]), (&json!("task_progressed"), &json!("t")));
        assert!(text.len() < 1_000 && lines[1].get("progress").is_none(), "{text}");
        let _gone = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn events_that_a_slow_program_has_no_room_for_are_left_out_and_the_run_goes_on() {
        let command = vec!["sleep".to_owned(), "36000".to_owned()];
        let environment = vec!["PATH".to_owned()];
        let (mut reporters, folder) =
            reporting(Report::Command { command, environment, timeout_seconds: 36_000 });
        // One event in progress, as many as the queue holds, and one more.
        for _ in 0..REPORTS_WAITING_MAX + 2 {
            reporters.tell(Timestamp::from_micros(0), &progressed(1));
        }
        let unreported = reporters.all.remove(0).finish(Instant::now()).unwrap();
        assert!(unreported.starts_with("reporter r: more than 1000 events wait for it"), "{unreported}");
        let _gone = std::fs::remove_dir_all(folder);
    }
}
