//! The history of one plan: a file with one version per line, in their order, so that line 17 is version 17. Only the
//! journal appends to it, or replaces it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use waypost_core::canonical::Hash;
use waypost_core::{Plan, PlanId, Timestamp};

use super::conflict_markers::{CONFLICT, first_conflict_line, is_conflict_marker};
use super::fs::{self, Stamp, corrupt, failed, open_to_read};
use crate::error::{Result, StoreError};
use crate::rows::{PURGED, VersionRecord};
use crate::stored_version::{StoredVersion, optional_hash};

/// Bytes at the end of a file that are read first to find its last line.
const TAIL_BYTES: u64 = 16 * 1024;

/// One line, as it is written.
#[derive(Serialize)]
struct Line<'a> {
    sequence: u64,
    plan: &'a PlanId,
    version: u64,
    at: Timestamp,
    actor: &'a str,
    command: &'a str,
    events: &'a RawValue,
    /// The fingerprint of the readable file that belongs to this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The hash of the version, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chained_from: Option<u64>,
}

/// The fields of a line that are needed to index it.
#[derive(Deserialize)]
struct Mark {
    sequence: u64,
    plan: PlanId,
    version: u64,
    command: String,
    file: Option<String>,
    #[serde(default, deserialize_with = "optional_hash")]
    hash: Option<Hash>,
}

/// A line, with the fields that some reader needs.
pub(super) trait ReadLine: DeserializeOwned {
    /// Returns the plan that the line names, and its version.
    fn place(&self) -> (&PlanId, u64);
}

impl ReadLine for VersionRecord {
    fn place(&self) -> (&PlanId, u64) {
        (&self.plan, self.version)
    }
}

impl ReadLine for StoredVersion {
    fn place(&self) -> (&PlanId, u64) {
        (&self.plan, self.version)
    }
}

/// Returns the text of a line.
pub(super) fn line(entry: &StoredVersion, file: Option<&str>) -> Result<String> {
    let StoredVersion { sequence, plan, version, at, actor, command, events, hash, chained_from } = entry;
    let failed = |error: serde_json::Error| StoreError::Database(error.to_string());
    let line = Line {
        sequence: *sequence,
        plan,
        version: *version,
        at: *at,
        actor,
        command,
        events: serde_json::from_str(events).map_err(failed)?,
        file,
        hash: hash.map(|hash| waypost_text::hex(&hash)),
        chained_from: *chained_from,
    };
    let mut text = serde_json::to_string(&line).map_err(failed)?;
    text.push('\n');
    Ok(text)
}

/// Returns the versions that can be read in a damaged history, whatever is before, between and after them; each with
/// the fingerprint of the readable file that belongs to it. Also counts the lines after the last of them that may have been
/// versions.
pub(super) fn intact_lines(bytes: &[u8]) -> (Vec<(StoredVersion, Option<String>)>, u64) {
    let (mut found, mut torn) = (Vec::new(), 0);
    let lines = bytes.split(|&byte| byte == b'\n');
    for line in lines.filter(|line| !line.is_empty() && !is_conflict_marker(line)) {
        torn += 1;
        let Some(begin) = line.iter().position(|&byte| byte == b'{') else { continue };
        let mut entries = serde_json::Deserializer::from_slice(&line[begin..]).into_iter::<VersionRecord>();
        let mut from = begin;
        while let Some(Ok(_)) = entries.next() {
            let to = begin + entries.byte_offset();
            let mark = serde_json::from_slice::<Mark>(&line[from..to]).ok();
            let entry = serde_json::from_slice::<StoredVersion>(&line[from..to]).ok();
            found.extend(entry.map(|entry| (entry, mark.and_then(|mark| mark.file))));
            (from, torn) = (to, 0);
        }
    }
    (found, torn)
}

/// Says why a line cannot be parsed. A line has no lines of its own, so the parser's position is left out.
fn not_a_version(error: &serde_json::Error) -> String {
    if !error.is_data() {
        return "it is not a version (it is not valid JSON)".to_owned();
    }
    let words = error.to_string();
    let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
    format!("it is not a version ({})", waypost_text::plain_parse_error("", words))
}

/// Returns an error about damage in one line of a history.
fn bad_line(path: &Path, number: u64, detail: impl ToString) -> StoreError {
    StoreError::Corrupt { what: format!("{} line {number}", path.display()), detail: detail.to_string() }
}

/// Returns the damage that a merge left in a history, where reading its last line would only find the last of it.
fn conflict_in(path: &Path) -> Result<Option<StoreError>> {
    let bytes = fs::read(path)?.unwrap_or_default();
    Ok(first_conflict_line(&bytes).map(|number| bad_line(path, number, CONFLICT)))
}

/// The last line of a history.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) version: u64,
    pub(super) sequence: u64,
    /// The fingerprint of the readable file that belongs to it.
    pub(super) file: Option<String>,
    /// The hash of the version.
    pub(super) hash: Option<Hash>,
    /// Whether the plan was purged, so that its versions have no events any more.
    pub(super) purged: bool,
    /// The size of the whole history in bytes.
    pub(super) length: u64,
}

/// Reads only the last line of a history, if there is one.
pub(super) fn tail(path: &Path, plan: &PlanId) -> Result<Option<Tail>> {
    let Some(mut file) = open_to_read(path)? else { return Ok(None) };
    let length = file.metadata().map_err(failed(path))?.len();
    let mut wanted = TAIL_BYTES;
    let bytes = loop {
        let from = length.saturating_sub(wanted);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut bytes)).map_err(failed(path))?;
        let whole = match bytes.split_last() {
            None => return Err(bad_line(path, 1, "the history is empty")),
            Some((b'\n', rest)) => rest,
            Some(_) => {
                let number = count_lines(path)? + 1;
                let torn = || bad_line(path, number, "the line was not written to its end");
                return Err(conflict_in(path)?.unwrap_or_else(torn));
            }
        };
        match whole.iter().rposition(|&byte| byte == b'\n') {
            Some(before) => break whole[before + 1..].to_vec(),
            None if from == 0 => break whole.to_vec(),
            None => wanted *= 8,
        }
    };
    let mark: Mark = match serde_json::from_slice(&bytes) {
        Ok(mark) => mark,
        Err(error) => {
            let damage = bad_line(path, count_lines(path)?, not_a_version(&error));
            return Err(conflict_in(path)?.unwrap_or(damage));
        }
    };
    if mark.plan != *plan {
        return Err(bad_line(path, mark.version, format!("it belongs to plan {}", mark.plan)));
    }
    let purged = mark.command == PURGED;
    let Mark { version, sequence, file, hash, .. } = mark;
    Ok(Some(Tail { version, sequence, file, hash, purged, length }))
}

fn count_lines(path: &Path) -> Result<u64> {
    let Some(file) = open_to_read(path)? else { return Ok(0) };
    let mut reader = BufReader::new(file);
    let (mut count, mut line) = (0, Vec::new());
    while reader.read_until(b'\n', &mut line).map_err(failed(path))? > 0 {
        count += u64::from(line.ends_with(b"\n"));
        line.clear();
    }
    Ok(count)
}

/// The positions of the lines of a history, as far as this process has read it.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadPosition {
    /// The file as it was when it was last read.
    stamp: Option<Stamp>,
    /// The damage that was found then.
    damage: Option<StoreError>,
    /// The bytes that have been read.
    length: u64,
    /// The last line that was read.
    last: Vec<u8>,
    /// The offset of each line, and its sequence number in the log.
    lines: Vec<(u64, u64)>,
}

impl ReadPosition {
    /// Reads the lines that were appended since the last call, and checks that they follow each other.
    ///
    /// Every writer calls this before it appends, so a sound history that has grown and contains the line that was its
    /// last one was only appended to. A file that changed in any other way is read again from its start.
    pub(super) fn catch_up(&mut self, path: &Path, plan: &PlanId) -> Result<()> {
        let stamp = Stamp::of(path)?;
        if stamp.is_some() && stamp == self.stamp {
            return self.damage.clone().map_or(Ok(()), Err);
        }
        let Some((file, stamp)) = open_to_read(path)?.zip(stamp) else {
            *self = Self::default();
            return Ok(());
        };
        let mut reader = BufReader::new(file);
        let is_sound = self.damage.is_none();
        let has_grown = self.stamp.is_some_and(|before| stamp.has_grown_since(&before));
        if !(is_sound && has_grown && self.ends_the_same(&mut reader, path)?) {
            *self = Self::default();
            reader.seek(SeekFrom::Start(0)).map_err(failed(path))?;
        }
        let read = self.read_on(&mut reader, path, plan);
        self.stamp = Some(stamp);
        self.damage = read.as_ref().err().cloned();
        read
    }

    fn read_on(&mut self, reader: &mut BufReader<File>, path: &Path, plan: &PlanId) -> Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(failed(path))? as u64;
            let number = self.lines.len() as u64 + 1;
            if length == 0 {
                return Ok(());
            }
            if is_conflict_marker(&line) {
                return Err(bad_line(path, number, CONFLICT));
            }
            if !line.ends_with(b"\n") {
                return Err(bad_line(path, number, "the line was not written to its end"));
            }
            let mark: Mark = serde_json::from_slice(&line)
                .map_err(|error| bad_line(path, number, not_a_version(&error)))?;
            let before = self.lines.last().map_or(0, |&(_, sequence)| sequence);
            if mark.plan != *plan || mark.version != number || mark.sequence <= before {
                let mut detail = format!("version {} of plan {} stands here", mark.version, mark.plan);
                if mark.plan == *plan && mark.version < number {
                    detail.push_str(" again, as where a merge took the lines of both sides");
                }
                return Err(bad_line(path, number, detail));
            }
            self.lines.push((self.length, mark.sequence));
            self.length += length;
            self.last.clone_from(&line);
        }
    }

    /// Returns whether the last line is unchanged: version control may have put another history here. Leaves the reader
    /// after that line.
    fn ends_the_same(&self, reader: &mut BufReader<File>, path: &Path) -> Result<bool> {
        let mut there = vec![0; self.last.len()];
        let from = self.length - self.last.len() as u64;
        reader
            .seek(SeekFrom::Start(from))
            .and_then(|_| reader.read_exact(&mut there))
            .map_err(failed(path))?;
        Ok(there == self.last)
    }

    /// Returns the sequence numbers in the log, in their order.
    pub(super) fn sequences(&self) -> impl Iterator<Item = u64> {
        self.lines.iter().map(|&(_, sequence)| sequence)
    }

    /// Returns the number of versions up to `sequence` in the log.
    pub(super) fn before_sequence(&self, sequence: u64) -> u64 {
        self.lines.partition_point(|&(_, number)| number <= sequence) as u64
    }

    /// Returns the versions after `after`, at most `limit`.
    pub(super) fn read<T: ReadLine>(
        &self,
        path: &Path,
        plan: &PlanId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<T>> {
        let first = usize::try_from(after).unwrap_or(usize::MAX);
        let Some(&(from, _)) = self.lines.get(first).filter(|_| limit > 0) else { return Ok(Vec::new()) };
        let end = self.lines.get(first.saturating_add(limit)).map_or(self.length, |&(end, _)| end);
        let gone = || corrupt(path, "it was removed while it was being read");
        let mut file = open_to_read(path)?.ok_or_else(gone)?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from)).map_err(failed(path))?;
        file.take(end - from).read_to_end(&mut bytes).map_err(failed(path))?;
        let mut entries = Vec::new();
        for (line, number) in bytes.split_inclusive(|&byte| byte == b'\n').zip(after + 1..) {
            match parse::<T>(line, path, plan, number) {
                Ok(entry) => entries.push(entry),
                // The versions before a damaged line can be read; only a reader that needs more gets the error.
                Err(_) if !entries.is_empty() => break,
                Err(damage) => return Err(damage),
            }
        }
        Ok(entries)
    }
}

/// Parses the line of a version.
fn parse<T: ReadLine>(line: &[u8], path: &Path, plan: &PlanId, number: u64) -> Result<T> {
    let entry: T =
        serde_json::from_slice(line).map_err(|error| bad_line(path, number, not_a_version(&error)))?;
    match entry.place() {
        (found, version) if version != number || found != plan => {
            Err(bad_line(path, number, format!("version {version} of plan {found} stands here")))
        }
        _ => Ok(entry),
    }
}

/// Brings a plan to the end of its history.
pub(super) fn replay(path: &Path, mut plan: Plan) -> Result<Plan> {
    const ENTRIES_READ_MAX: usize = 1_000;
    let mut marks = ReadPosition::default();
    marks.catch_up(path, plan.id())?;
    loop {
        let entries: Vec<VersionRecord> = marks.read(path, plan.id(), plan.version(), ENTRIES_READ_MAX)?;
        if entries.is_empty() {
            plan.take_touched();
            return Ok(plan);
        }
        for entry in &entries {
            plan.advance(&entry.events, entry.at);
        }
    }
}
