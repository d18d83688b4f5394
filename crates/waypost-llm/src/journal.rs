//! The journal of all requests to models and their answers, one line of JSON each, on disk before an answer is used. A
//! recorded answer is never requested and paid for again. Does not know what answers mean.

mod entry;
mod error;
mod totals;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::ModelRequest;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use waypost_core::{TaskId, Timestamp};

use super::{Lost, ModelError, Redactor, Reply};

pub use entry::{Entry, JournalLine};
pub use error::{JOURNAL_BYTES_MAX, JournalError};
pub use totals::{Spent, Totals};

/// Bytes of a lock holder's name that are shown.
const HOLDER_BYTES_MAX: u64 = 200;

/// A journal that only this process writes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    redactor: Redactor,
    base: Timestamp,
    since: Instant,
    inner: Mutex<Inner>,
    torn: Option<u64>,
    /// The system releases the lock when the process ends, however it ends.
    _lock: File,
}

#[derive(Debug)]
struct Inner {
    file: File,
    by_slot: BTreeMap<String, Entry>,
    totals: Totals,
    /// The task and tokens of each call that cost something, in the order in which the calls ended: the first is call
    /// 1.
    charges: Vec<(Option<TaskId>, u64)>,
    /// Bytes of the file that are known to be whole lines.
    bytes: u64,
}

impl Journal {
    /// Opens or creates a journal. `now` is the store's time; `holder` identifies this process to others that find the
    /// journal locked.
    pub fn open(path: &Path, now: Timestamp, holder: &str, redactor: Redactor) -> Result<Self, JournalError> {
        if let Some(folder) = path.parent() {
            let made = match folder.is_symlink() {
                true => Err(io::Error::other(format!("{} is a link and is not used", folder.display()))),
                false => fs::create_dir_all(folder),
            };
            made.map_err(|error| of_file(path, &error))?;
        }
        let lock = take_lock(path, holder)?;
        let mut file = open_or_create(path)?;
        let read = read_all(path, &mut file)?;
        let (mut inner, torn) = (
            Inner {
                file,
                by_slot: BTreeMap::new(),
                totals: Totals::default(),
                charges: Vec::new(),
                bytes: read.whole,
            },
            read.torn,
        );
        inner.mend(&read).map_err(|error| of_file(path, &error))?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            // The directory entry must be as durable as the content.
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| of_file(path, &error))?;
        }
        read.lines.into_iter().for_each(|line| inner.take(line));
        let (base, since) = (now, Instant::now());
        let path = path.to_owned();
        Ok(Self { path, redactor, base, since, inner: Mutex::new(inner), torn, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of an unfinished last line that was removed: its writer died before it was complete.
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }

    /// Returns the answer to an earlier request, unless it was forgotten.
    pub fn find(&self, slot: &str) -> Option<Entry> {
        self.inner().by_slot.get(slot).cloned()
    }

    /// All answers that are not forgotten, by slot.
    pub fn entries(&self) -> Vec<Entry> {
        self.inner().by_slot.values().cloned().collect()
    }

    /// Returns what was spent, including forgotten answers.
    pub fn totals(&self) -> Totals {
        self.inner().totals.clone()
    }

    /// Returns the calls after the first `calls` that cost something: the charged task, and the tokens.
    pub fn charges_after(&self, calls: u64) -> Vec<(Option<TaskId>, u64)> {
        let calls = usize::try_from(calls).unwrap_or(usize::MAX);
        self.inner().charges.iter().skip(calls).cloned().collect()
    }

    /// Stores an answer. When this returns, the answer is on disk. Use the returned answer, which contains no secrets.
    pub fn keep(&self, ask: &ModelRequest, reply: Reply) -> Result<Reply, JournalError> {
        let mut reply = reply;
        reply.answer.text = self.redactor.clean(&reply.answer.text);
        let line = JournalLine::answered(self.now(), ask, &reply, &self.redactor);
        self.append(line)?;
        Ok(reply)
    }

    /// Stores a failed call and its cost, if it had any.
    pub fn keep_error(
        &self,
        ask: &ModelRequest,
        error: &ModelError,
        lost: Option<&Lost>,
    ) -> Result<(), JournalError> {
        self.append(JournalLine::failed(self.now(), ask, (error, lost), &self.redactor))
    }

    /// Forgets the answers selected by `is_meant`: they will be requested again. Their cost stays counted.
    pub fn forget(&self, why: &str, is_meant: impl Fn(&Entry) -> bool) -> Result<Vec<String>, JournalError> {
        let slots: Vec<String> = self
            .inner()
            .by_slot
            .values()
            .filter(|entry| is_meant(entry))
            .map(|entry| entry.slot.clone())
            .collect();
        if !slots.is_empty() {
            let why = self.redactor.clean(why);
            self.append(JournalLine::Forgotten { at: self.now(), slots: slots.clone(), why })?;
        }
        Ok(slots)
    }

    fn append(&self, line: JournalLine) -> Result<(), JournalError> {
        let mut text = serde_json::to_string(&line).map_err(|error| of_file(&self.path, &error.into()))?;
        text.push('\n');
        let mut inner = self.inner();
        if inner.bytes + text.len() as u64 > JOURNAL_BYTES_MAX {
            return Err(JournalError::TooLarge { file: self.path.display().to_string() });
        }
        inner.write(&text).map_err(|error| of_file(&self.path, &error))?;
        inner.take(line);
        Ok(())
    }

    fn now(&self) -> Timestamp {
        let micros = i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.base.as_micros().saturating_add(micros))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Completes the last line, or removes it if it was never finished.
    fn mend(&mut self, read: &ReadLines) -> io::Result<()> {
        if read.torn.is_some() {
            self.file.set_len(read.whole)?;
            self.file.sync_all()?;
        }
        self.file.seek(SeekFrom::Start(read.whole))?;
        if read.lacks_end {
            self.write("\n")?;
        }
        if read.lines.is_empty() {
            let mut begun = serde_json::to_string(&JournalLine::begun())?;
            begun.push('\n');
            self.write(&begun)?;
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.bytes += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Half a line would corrupt the next one.
                let _as_far_as_it_goes = self.file.set_len(self.bytes);
                let _same = self.file.seek(SeekFrom::Start(self.bytes));
                Err(error)
            }
        }
    }

    fn take(&mut self, line: JournalLine) {
        self.totals.add(&line);
        match line {
            JournalLine::Answered { entry, .. } => {
                self.charges.push((entry.task.clone(), entry.answer.tokens()));
                self.by_slot.insert(entry.slot.clone(), entry);
            }
            JournalLine::Forgotten { slots, .. } => {
                slots.iter().for_each(|slot| drop(self.by_slot.remove(slot)));
            }
            JournalLine::Failed { task, lost, .. } => {
                self.charges.extend(lost.map(|lost| (task, lost.tokens())));
            }
            JournalLine::Begun { .. } => {}
        }
    }
}

/// Reads all lines of a journal without locking it; an unfinished last line is left out.
pub fn read_journal(path: &Path) -> Result<Vec<JournalLine>, JournalError> {
    let mut file = File::open(path).map_err(|error| of_file(path, &error))?;
    Ok(read_all(path, &mut file)?.lines)
}

struct ReadLines {
    lines: Vec<JournalLine>,
    /// Bytes of the complete lines.
    whole: u64,
    /// Bytes of an unfinished line after them.
    torn: Option<u64>,
    lacks_end: bool,
}

fn read_all(path: &Path, file: &mut File) -> Result<ReadLines, JournalError> {
    let name = || path.display().to_string();
    let mut bytes = Vec::new();
    file.take(JOURNAL_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| of_file(path, &error))?;
    if bytes.len() as u64 > JOURNAL_BYTES_MAX {
        return Err(JournalError::TooLarge { file: name() });
    }
    let mut read = ReadLines { lines: Vec::new(), whole: 0, torn: None, lacks_end: false };
    for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let has_end = line.ends_with(b"\n");
        let text = line.trim_ascii();
        match serde_json::from_slice::<JournalLine>(text) {
            Ok(one) => {
                if let Err(why) = one.is_of_ours() {
                    return Err(JournalError::Corrupt { file: name(), line: number + 1, why });
                }
                read.lines.push(one);
                read.lacks_end = !has_end;
            }
            Err(_) if text.is_empty() && has_end => {}
            // Its writer died before it was complete, so nothing has used it.
            Err(_) if !has_end => {
                read.torn = Some(line.len() as u64);
                return Ok(read);
            }
            Err(error) => {
                let why = format!("not a journal line: {error}");
                return Err(JournalError::Corrupt { file: name(), line: number + 1, why });
            }
        }
        read.whole += line.len() as u64;
    }
    Ok(read)
}

fn of_file(path: &Path, error: &io::Error) -> JournalError {
    JournalError::File { file: path.display().to_string(), why: error.to_string() }
}

/// Opens a file, or creates it. A link in its place would lead to another one.
fn open_or_create(path: &Path) -> Result<File, JournalError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).mode(0o600);
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options.custom_flags(flags).open(path).map_err(|error| of_file(path, &error))
}

/// Locks a file beside the journal that names the holder.
fn take_lock(path: &Path, holder: &str) -> Result<File, JournalError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let mut file = open_or_create(Path::new(&beside))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // The lock counts even if the name cannot be written.
            let _named = file.set_len(0).and_then(|()| file.write_all(holder.as_bytes()));
            Ok(file)
        }
        Err(Errno::WOULDBLOCK) => {
            let mut by = String::new();
            let _unnamed = (&mut file).take(HOLDER_BYTES_MAX).read_to_string(&mut by);
            let by = if by.trim().is_empty() { "another process".to_owned() } else { by.trim().to_owned() };
            Err(JournalError::Held { file: path.display().to_string(), by })
        }
        // A file system without locks has no other process to coordinate with.
        Err(_) => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_at_its_limit_takes_no_further_line() {
        let folder = std::env::temp_dir().join(format!("waypost-journal-limit-{}", std::process::id()));
        let path = folder.join("plan.jsonl");
        let now = Timestamp::from_micros(0);
        let journal = Journal::open(&path, now, "host-1", Redactor::new([])).unwrap();
        let forgotten = || JournalLine::Forgotten { at: now, slots: Vec::new(), why: "over".to_owned() };
        let before = journal.inner().bytes;
        journal.append(forgotten()).unwrap();
        let line = journal.inner().bytes - before;
        journal.inner().bytes = JOURNAL_BYTES_MAX - line;
        assert_eq!(journal.append(forgotten()), Ok(()));
        let full = JournalError::TooLarge { file: path.display().to_string() };
        assert_eq!(journal.append(forgotten()), Err(full));
        let _gone = fs::remove_dir_all(&folder);
    }
}
