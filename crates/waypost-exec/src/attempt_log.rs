//! The log of an attempt: what its worker writes to standard error, limited in size and without secrets.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use waypost_core::Timestamp;
use waypost_store::{LOG_TIMES_MAX, log_time_line, log_times_path};

use crate::attempt_spec::StoreClock;
use crate::outcome::AttemptKey;
use crate::secrets::Secrets;

/// Bytes of a line; a longer line is broken.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Prefix of a line that reports progress.
const PROGRESS_MARK: &str = "waypost:progress ";
/// Prefix of a line that asks a person.
const QUESTION_MARK: &str = "waypost:question";
/// Bytes of the latest lines that are kept in memory.
const TAIL_BYTES_MAX: usize = 16 * 1024;
/// Time between two times of a log at first. They double with every so many times, so that those of a log of months
/// are few.
const TIMES_APART: Duration = Duration::from_millis(100);
const TIMES_PER_DOUBLING: usize = 2_048;

/// Creates the folder of the logs if it is missing, and checks that logs can be written there.
pub fn prepare_logs(folder: &Path) -> io::Result<()> {
    waypost_store::make_state_folder(folder, 1)?;
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    match File::options().write(true).create_new(true).mode(0o600).open(&probe) {
        Ok(_) => {}
        // Another run of this process looks, too.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let _gone = fs::remove_file(probe);
    Ok(())
}

/// The log of one attempt. The file is created by the first write.
pub(super) struct Log<'a> {
    logs: &'a Path,
    key: &'a AttemptKey,
    file: Option<BufWriter<File>>,
    times: Times,
    broken: bool,
    bytes: u64,
    bytes_left: u64,
    line: Vec<u8>,
    /// The last line that is not empty, for the message of a failure.
    pub(super) last: String,
    last_is_ours: bool,
    /// The latest reported progress.
    pub(super) progress: Option<String>,
    /// The question of the worker to a person; the latest one counts.
    pub(super) question: Option<String>,
    /// The latest lines since [`Log::begin`].
    pub(super) tail: String,
}

impl<'a> Log<'a> {
    pub(super) fn new(logs: &'a Path, key: &'a AttemptKey, bytes_max: u64, clock: StoreClock) -> Self {
        let (last, line) = (String::new(), Vec::new());
        let (progress, question, tail) = (None, None, String::new());
        let (file, broken, bytes_left) = (None, false, bytes_max);
        Self {
            logs,
            key,
            file,
            times: Times { file: None, clock, count: 0, last: clock.then },
            broken,
            bytes: 0,
            bytes_left,
            line,
            last,
            last_is_ours: false,
            progress,
            question,
            tail,
        }
    }

    /// Resets the per-program state, because another program begins to write.
    pub(super) fn begin(&mut self) {
        self.last.clear();
        self.last_is_ours = false;
        self.tail.clear();
        self.question = None;
    }

    pub(super) fn take(&mut self, bytes: &[u8], secrets: &Secrets) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.ends_with(b"\n") {
                self.end_line(secrets);
            } else if self.line.len() >= LINE_BYTES_MAX {
                self.break_line(secrets);
            }
        }
    }

    /// Writes a line of our own. It does not replace the worker's last line, and comes before one that the worker has not ended:
    /// the rest of a secret may follow.
    pub(super) fn say(&mut self, line: &str, secrets: &Secrets) {
        let unfinished = std::mem::take(&mut self.line);
        let workers = std::mem::take(&mut self.last);
        let was_ours = std::mem::replace(&mut self.last_is_ours, true);
        self.take(format!("{line}\n").as_bytes(), secrets);
        if !was_ours && !workers.is_empty() {
            (self.last, self.last_is_ours) = (workers, false);
        } else {
            self.last_is_ours = true;
        }
        self.line = unfinished;
    }

    /// Writes an unfinished line and flushes the file.
    pub(super) fn finish(&mut self, secrets: &Secrets) {
        if !self.line.is_empty() {
            self.line.push(b'\n');
            self.end_line(secrets);
        }
        if let Some(file) = &mut self.file {
            let _lost = file.flush();
        }
    }

    /// Writes the beginning of a line that is too long. Its end waits for the rest: a secret or a character may begin there.
    fn break_line(&mut self, secrets: &Secrets) {
        let mut line = std::mem::take(&mut self.line);
        let broken = line.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        let rest = line.split_off(line.len() - broken);
        let text = secrets.redact(&String::from_utf8_lossy(&line));
        let waiting = secrets.bytes_max().saturating_sub(1).min(LINE_BYTES_MAX / 2);
        let mut end = text.len().saturating_sub(waiting);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.line = [&text.as_bytes()[end..], &rest].concat();
        self.write_line(&text[..end]);
    }

    fn end_line(&mut self, secrets: &Secrets) {
        let line = std::mem::take(&mut self.line);
        self.write_line(&secrets.redact(&String::from_utf8_lossy(&line)));
    }

    fn write_line(&mut self, line: &str) {
        let said = line.trim_end();
        if let Some(progress) = said.strip_prefix(PROGRESS_MARK) {
            self.progress = Some(progress.trim().to_owned());
        } else if let Some(question) = question_in(said) {
            self.question = Some(question.to_owned());
        } else if !waypost_text::is_protocol_line(said) {
            // The file keeps the colours of the program; a message of failure is plain text.
            let plain = waypost_text::terminal_text(said, false);
            if !plain.trim().is_empty() {
                (self.last, self.last_is_ours) = (plain.trim_end().to_owned(), false);
            }
        }
        self.tail.push_str(line);
        if self.tail.len() > TAIL_BYTES_MAX * 2 {
            self.tail = waypost_text::tail_bytes(&self.tail, TAIL_BYTES_MAX).to_owned();
        }
        self.put(line);
    }

    fn put(&mut self, line: &str) {
        if self.broken || self.bytes_left == 0 {
            return;
        }
        let cut = line.len() as u64 > self.bytes_left;
        let text = if cut { "(log truncated here: size limit reached)\n" } else { line };
        self.bytes_left = if cut { 0 } else { self.bytes_left - line.len() as u64 };
        // A log that cannot be written does not fail the attempt.
        self.broken = self.write(text).is_err();
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.file.is_none() {
            let path = waypost_store::log_path(self.logs, &self.key.plan, &self.key.task, self.key.attempt);
            if let Some(folder) = path.parent() {
                waypost_store::make_state_folder(folder, 2)?;
                if path.is_symlink() {
                    return Err(io::Error::other("a log is not written through a link"));
                }
            }
            self.file = Some(BufWriter::new(new_file(&path)?));
            // A log without times is a log.
            self.times.file = new_file(&log_times_path(&path)).ok();
        }
        self.times.note(self.bytes);
        self.bytes += text.len() as u64;
        match &mut self.file {
            Some(file) => file.write_all(text.as_bytes()).and_then(|()| file.flush()),
            None => Ok(()),
        }
    }
}

/// Creates a file. Whatever is in its place, such as a second name of another file, is not written to.
fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// The times of a log, in the file beside it.
struct Times {
    file: Option<File>,
    clock: StoreClock,
    /// How many were written.
    count: usize,
    last: Timestamp,
}

impl Times {
    /// Notes that what stands in the log from this byte on is written now, unless the time before says it well enough.
    fn note(&mut self, from: u64) {
        let now = self.clock.now();
        let Some(file) = self.file.as_mut().filter(|_| is_due(self.count, now.since(self.last))) else {
            return;
        };
        if file.write_all(log_time_line(from, now).as_bytes()).is_err() {
            self.file = None;
        }
        (self.count, self.last) = (self.count + 1, now);
    }
}

/// Whether a log with so many times gets another, so long after the last.
fn is_due(count: usize, passed: Duration) -> bool {
    count == 0 || count < LOG_TIMES_MAX && passed >= apart(count)
}

fn apart(count: usize) -> Duration {
    TIMES_APART * (1 << (count / TIMES_PER_DOUBLING))
}

/// Returns the question in a line, if it is one.
fn question_in(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(QUESTION_MARK)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use waypost_core::{PlanId, TaskId};
    use waypost_store::log_file_name as file_name;

    use super::*;

    fn now() -> StoreClock {
        StoreClock::set_to(Timestamp::from_micros(0))
    }

    #[test]
    fn a_log_has_its_times_beside_it_and_keeps_its_bytes() {
        let folder = std::env::temp_dir().join(format!("waypost-times-{}", std::process::id()));
        let key = AttemptKey::new(&PlanId::new("p").unwrap(), &TaskId::new("a").unwrap(), 1);
        let path = waypost_store::log_path(&folder, &key.plan, &key.task, key.attempt);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Times of a log that was there before are not those of this one.
        fs::write(log_times_path(&path), "0 1\n500 2\n").unwrap();
        let then = Timestamp::from_micros(1_000_000_000_000);
        let mut log = Log::new(&folder, &key, 1_000, StoreClock::set_to(then));
        log.take(b"one\n", Secrets::NONE);
        // A minute passes.
        log.times.clock.then = then.plus_seconds(60);
        log.take(b"two\n", Secrets::NONE);
        log.times.last = log.times.last.plus_seconds(3_600);
        log.take(b"three\n", Secrets::NONE);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
        let times: Vec<_> = waypost_store::LogTimes::of(&path).iter().collect();
        let minutes: Vec<_> = times.iter().map(|(from, at)| (*from, at.since(then).as_secs() / 60)).collect();
        assert_eq!(minutes, [(0, 0), (4, 1)], "three came too soon after two");
        let _gone = fs::remove_dir_all(folder);
    }

    #[test]
    fn the_times_of_a_long_log_are_few() {
        assert!(!is_due(LOG_TIMES_MAX, Duration::MAX) && is_due(LOG_TIMES_MAX - 1, Duration::MAX));
        let all: Duration = (0..LOG_TIMES_MAX).map(apart).sum();
        assert!(all > Duration::from_secs(100 * 86_400), "{all:?}");
        assert!(
            !is_due(1, TIMES_APART / 2) && is_due(1, TIMES_APART) && !is_due(TIMES_PER_DOUBLING, TIMES_APART)
        );
    }

    #[test]
    fn what_we_note_is_not_taken_for_the_last_word_of_a_worker() {
        let folder = std::env::temp_dir().join(format!("waypost-log-{}", std::process::id()));
        let key = AttemptKey::new(&PlanId::new("p").unwrap(), &TaskId::new("a").unwrap(), 1);
        let mut log = Log::new(&folder, &key, 1_000, now());
        log.say("waypost: job 1", Secrets::NONE);
        log.say("waypost: job 1 is on node1", Secrets::NONE);
        assert_eq!(log.last, "waypost: job 1 is on node1", "nobody else has said anything");
        log.take(b"on fire\n", Secrets::NONE);
        log.say("waypost: job 1 is on node2", Secrets::NONE);
        assert_eq!(log.last, "on fire");
        log.take(b"\x1b[1;31merror\x1b[0m: out\n\x1b[0m\n", Secrets::NONE);
        assert_eq!(log.last, "error: out", "colours are no part of a message");
        let _gone = fs::remove_dir_all(folder);
    }

    #[test]
    fn no_link_leads_a_log_to_another_place() {
        let root = std::env::temp_dir().join(format!("waypost-log-link-{}", std::process::id()));
        let (logs, other) = (root.join("logs"), root.join("other"));
        [&logs, &other].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        for (plan, link, target) in [("p", "p", other.clone()), ("q", "q/a.1.log", other.join("file"))] {
            fs::create_dir_all(logs.join(link).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, logs.join(link)).unwrap();
            let key = AttemptKey::new(&PlanId::new(plan).unwrap(), &TaskId::new("a").unwrap(), 1);
            Log::new(&logs, &key, 1_000, now()).take(b"a secret\n", Secrets::NONE);
        }
        // The folder of all logs is one as well, planted while a server runs.
        let planted = root.join("planted");
        std::os::unix::fs::symlink(&other, &planted).unwrap();
        let key = AttemptKey::new(&PlanId::new("p").unwrap(), &TaskId::new("a").unwrap(), 1);
        Log::new(&planted, &key, 1_000, now()).take(b"a secret\n", Secrets::NONE);
        assert!(prepare_logs(&planted).is_err());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn no_id_of_a_task_leads_out_of_the_folder() {
        for (task, expected) in [
            ("build-api", "build-api"),
            ("../../etc/passwd", "%2e.%2f..%2fetc%2fpasswd"),
            ("a/b", "a%2fb"),
            (".hidden", "%2ehidden"),
            ("v1.2", "v1.2"),
        ] {
            let name = file_name(task);
            assert!(!name.contains('/') && !name.starts_with('.'), "{name}");
            assert_eq!(name, expected);
        }
        let long = file_name(&"é".repeat(128));
        assert!(long.len() < 230, "{long}");
    }

    #[test]
    fn our_own_line_does_not_break_a_secret() {
        let folder = std::env::temp_dir().join(format!("waypost-own-line-{}", std::process::id()));
        let key = AttemptKey::new(&PlanId::new("p").unwrap(), &TaskId::new("a").unwrap(), 1);
        let secrets = Secrets::new(["TOPSECRET".to_owned()]);
        let mut log = Log::new(&folder, &key, 1_000, now());
        log.take(b"is TOPS", &secrets);
        log.say("waypost: job 1 runs", Secrets::NONE);
        log.take(b"ECRET", &secrets);
        log.finish(&secrets);
        let path = waypost_store::log_path(&folder, &key.plan, &key.task, key.attempt);
        assert_eq!(fs::read_to_string(path).unwrap(), "waypost: job 1 runs\nis ***\n");
        let _gone = fs::remove_dir_all(folder);
    }

    #[test]
    fn a_secret_at_the_border_of_a_broken_line_is_redacted() {
        let folder = std::env::temp_dir().join(format!("waypost-border-{}", std::process::id()));
        let key = AttemptKey::new(&PlanId::new("p").unwrap(), &TaskId::new("a").unwrap(), 1);
        let secrets = Secrets::new(["gehe\u{ed}m-TOPSECRET".to_owned()]);
        for before in (LINE_BYTES_MAX - 25)..(LINE_BYTES_MAX + 5) {
            let mut log = Log::new(&folder, &key, u64::MAX, now());
            let text = format!("{}gehe\u{ed}m-TOPSECRET and so on\n", "x".repeat(before));
            // As a pipe gives it: in parts that end anywhere.
            for part in text.as_bytes().chunks(1_000) {
                log.take(part, &secrets);
            }
            // Also in one part for each byte around the border.
            let (first, rest) = text.as_bytes().split_at(before);
            log.take(first, &secrets);
            rest.chunks(1).for_each(|byte| log.take(byte, &secrets));
            log.finish(&secrets);
            let path = waypost_store::log_path(&folder, &key.plan, &key.task, key.attempt);
            let written = fs::read_to_string(path).unwrap();
            assert_eq!(written, format!("{}*** and so on\n", "x".repeat(before)).repeat(2), "{before}");
        }
        let _gone = fs::remove_dir_all(folder);
    }
}
