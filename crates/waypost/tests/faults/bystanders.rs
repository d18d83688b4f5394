//! Those who write and read while workers work: they are killed too, and record what they were told and nothing else.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use waypost_testkit::SeededRng;

use crate::ground::{Ground, Record, Signal, ends, now};

/// How long a command of a writer may take; after that it is killed, and nobody knows what became of it.
const WRITE_PATIENCE: Duration = Duration::from_secs(15);
/// The exit code of a write to a plan that does not exist, because it is not submitted yet: nothing was written.
const NOT_FOUND: i32 = 5;
/// The pause of a reader that was cut off, before it comes again.
const READER_PAUSE: Duration = Duration::from_millis(100);

/// Whoever writes to plans that others work on. Each write has a mark, is asked for once, and is recorded as acknowledged
/// only after the answer.
pub(crate) struct Writer<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) name: String,
    pub(crate) proxy: Option<usize>,
    /// Plans that get another status; the first gets tasks as well.
    pub(crate) plans: Vec<String>,
    pub(crate) record: &'a Record,
    pub(crate) dice: SeededRng,
    /// Percent of its commands that are killed.
    pub(crate) killed: u64,
}

impl Writer<'_> {
    /// Writes until it is told to end, or so often. Returns how many of its commands were killed.
    pub(crate) fn run(&mut self, end: &Signal, most: usize) -> usize {
        let mut killed = 0;
        for number in 0..most {
            if end.within(Duration::from_millis(self.dice.below(60) as u64)) {
                break;
            }
            killed += usize::from(self.write(number));
        }
        killed
    }

    /// Returns whether the command was killed.
    fn write(&mut self, number: usize) -> bool {
        let token = format!("token-{}-{number}", self.name);
        let plan = self.dice.pick(&self.plans).clone();
        let words = match plan == self.plans[0] {
            true => vec!["task", "add", plan.as_str(), "a note", "--id", token.as_str()],
            false => vec!["status", "set", plan.as_str(), token.as_str()],
        };
        self.record.line(&json!({ "what": "asked", "token": token, "plan": plan, "at": now() }).to_string());
        let mut child = self.ground.command(self.proxy, &words).spawn().unwrap();
        let patience = match self.dice.chance(self.killed) {
            // Before it has asked anything, or somewhere between the question and the answer.
            true => {
                let most = *self.dice.pick(&[60, 1_500]);
                Duration::from_millis(self.dice.below(most) as u64)
            }
            false => WRITE_PATIENCE,
        };
        let Some(status) = ends(&mut child, patience) else {
            let _gone = child.kill();
            let _gone = child.wait();
            return true;
        };
        let mut answer = String::new();
        child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        if status.success() {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let version = &answer["version"];
            let written = json!({ "what": "acknowledged", "token": token, "plan": plan, "version": version, "at": now() });
            self.record.line(&written.to_string());
        } else if status.code() == Some(NOT_FOUND) {
            self.record.line(&json!({ "what": "refused", "token": token, "plan": plan }).to_string());
        }
        false
    }
}

/// Whoever reads the log from a cursor, dies, and comes again with the cursor it had.
pub(crate) struct Reader<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) name: String,
    pub(crate) proxy: Option<usize>,
    /// Kinds of single events that it wants; none: whole versions.
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) dice: SeededRng,
}

/// A place in the log: a version, and an event of it.
type Place = (u64, u64);

/// How far the readers have to come; nothing while that is not known.
pub(crate) type Goal = Arc<Mutex<Option<Vec<Value>>>>;

impl Reader<'_> {
    /// Reads until it has come to its goal. Returns how often it was killed.
    pub(crate) fn run(&mut self, goal: &Goal, over: &Signal) -> usize {
        let record = Record::new(&self.ground.record(&format!("readers/{}.jsonl", self.name)));
        if !self.kinds.is_empty() {
            let kinds = self.ground.record(&format!("readers/{}.kinds", self.name));
            std::fs::write(kinds, self.kinds.join(" ")).unwrap();
        }
        let mut cursor = "0".to_owned();
        let mut at: Place = (0, 0);
        let mut deaths = 0;
        while !self.is_there(goal, at) && !over.within(READER_PAUSE) {
            let mut child = self.start(&cursor);
            let lines = lines_of(&mut child);
            let until = Instant::now() + Duration::from_millis(500 + self.dice.below(5_000) as u64);
            loop {
                match lines.recv_timeout(Duration::from_millis(50)) {
                    Ok(line) => {
                        record.line(&line);
                        (cursor, at) = self.behind(&serde_json::from_str(&line).unwrap());
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if self.is_there(goal, at) || over.within(Duration::ZERO) {
                    break;
                }
                if Instant::now() > until && goal.lock().unwrap().is_none() {
                    deaths += 1;
                    break;
                }
            }
            let _gone = child.kill();
            let _gone = child.wait();
        }
        deaths
    }

    fn start(&self, cursor: &str) -> Child {
        let mut words = vec!["events", "--follow", "--cursor", cursor];
        for kind in &self.kinds {
            words.extend(["--kind", kind]);
        }
        self.ground.command(self.proxy, &words).stderr(std::process::Stdio::null()).spawn().unwrap()
    }

    /// The cursor behind a line, and its place.
    fn behind(&self, line: &Value) -> (String, Place) {
        let sequence = line["sequence"].as_u64().unwrap();
        match line["index"].as_u64().filter(|_| !self.kinds.is_empty()) {
            Some(index) => (format!("{}+{}", sequence - 1, index + 1), (sequence, index)),
            None => (sequence.to_string(), (sequence, 0)),
        }
    }

    fn is_there(&self, goal: &Goal, at: Place) -> bool {
        let goal = goal.lock().unwrap();
        goal.as_ref().is_some_and(|log| at >= self.last(log))
    }

    /// The place of the last that it wants.
    fn last(&self, log: &[Value]) -> Place {
        for entry in log.iter().rev() {
            let sequence = entry["sequence"].as_u64().unwrap();
            if self.kinds.is_empty() {
                return (sequence, 0);
            }
            let wanted = |event: &Value| self.kinds.contains(&event["event"].as_str().unwrap());
            if let Some(index) = entry["events"].as_array().unwrap().iter().rposition(wanted) {
                return (sequence, index as u64);
            }
        }
        (0, 0)
    }
}

/// The whole lines that a process writes; the last of one that was killed may be cut off, and is none.
pub(crate) fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        let mut line = String::new();
        while stdout.read_line(&mut line).is_ok_and(|count| count > 0) && line.ends_with('\n') {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    lines
}
