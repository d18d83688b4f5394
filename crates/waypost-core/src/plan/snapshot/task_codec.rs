//! Encodes one task as bytes of a snapshot.
//!
//! Most tasks use few of the possible fields, and encoding an absent field costs as much as encoding a present one.
//! Tasks without unusual fields are therefore written in a short form: a set of flags, and the fields that are present. It
//! is read ten times as fast as the other form; workers read every task of a plan before they start one of it.

use bitcode::Buffer;

use crate::{Dependency, DependencyRule, Json, Status, Task, TaskId, TaskSpec, TaskState, Timestamp, Work};

/// First byte of a task in the short form.
const SHORT: u8 = 0;
/// First byte of a task with all its fields.
const WHOLE: u8 = 1;

/// The fields of the short form that may be absent, as bits.
mod flag {
    pub(super) const NOTES: u64 = 1;
    pub(super) const PARENT: u64 = 1 << 1;
    pub(super) const DEPENDS_ON: u64 = 1 << 2;
    pub(super) const WORK: u64 = 1 << 3;
    pub(super) const PRIORITY: u64 = 1 << 4;
    pub(super) const WORKER: u64 = 1 << 5;
    pub(super) const RESULT: u64 = 1 << 6;
    pub(super) const OUTPUT: u64 = 1 << 7;
    /// The first of the four times.
    pub(super) const TIMES: u64 = 1 << 8;
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put_number(bytes, ((number << 1) ^ (number >> 63)) as u64);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// Bytes that are being read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

/// A task without unusual fields.
struct Short<'a> {
    id: &'a str,
    description: &'a str,
    notes: &'a str,
    parent: Option<&'a str>,
    depends_on: Vec<&'a str>,
    /// The executor and its inputs.
    work: Option<(&'a str, &'a str)>,
    priority: i32,
    status: Status,
    attempt: u32,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    worker: Option<&'a str>,
    result: Option<&'a str>,
    output: Option<&'a str>,
}

impl<'a> Short<'a> {
    /// Returns the short form, or `None` if the task has other fields. Every field is named, so that a new one is not
    /// forgotten.
    fn of(task: &'a Task) -> Option<Self> {
        let TaskSpec {
            id,
            description,
            parent,
            depends_on,
            when,
            complexity,
            notes,
            tools,
            skip,
            locks,
            work,
            check,
            retry,
            timeout_seconds,
            priority,
            provides,
            thinking,
            foreign,
        } = &task.spec;
        let TaskState {
            status,
            attempt,
            tries,
            created_at,
            updated_at,
            started_at,
            finished_at,
            not_before,
            worker,
            progress,
            result,
            output,
            error,
            reason,
            because_of,
            received,
            aside,
        } = &task.state;
        let is_usual = *when == DependencyRule::default()
            && !skip
            && (complexity.is_none() && tools.is_none() && locks.is_empty() && check.is_none())
            && (retry.is_none() && timeout_seconds.is_none() && provides.is_none() && thinking.is_none())
            && work.as_ref().is_none_or(|work| work.shape.is_none())
            && foreign.is_empty()
            && (*tries == 0 && not_before.is_none() && progress.is_none() && error.is_none())
            && (reason.is_none() && because_of.is_none() && received.is_empty() && aside.is_none());
        if !is_usual {
            return None;
        }
        let here = |dependency: &'a Dependency| match dependency {
            Dependency::Task(task) => Some(task.as_str()),
            Dependency::External(_) => None,
        };
        Some(Self {
            id: id.as_str(),
            description,
            notes,
            parent: parent.as_ref().map(TaskId::as_str),
            depends_on: depends_on.iter().map(here).collect::<Option<_>>()?,
            work: work.as_ref().map(|work| (work.executor.as_str(), work.inputs.as_str())),
            priority: *priority,
            status: *status,
            attempt: *attempt,
            created_at: *created_at,
            updated_at: *updated_at,
            started_at: *started_at,
            finished_at: *finished_at,
            worker: worker.as_deref(),
            result: result.as_deref(),
            output: output.as_ref().map(Json::as_str),
        })
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        let times = [self.created_at, self.updated_at, self.started_at, self.finished_at];
        let mut flags = 0;
        for (flag, is_present) in [
            (flag::NOTES, !self.notes.is_empty()),
            (flag::PARENT, self.parent.is_some()),
            (flag::DEPENDS_ON, !self.depends_on.is_empty()),
            (flag::WORK, self.work.is_some()),
            (flag::PRIORITY, self.priority != 0),
            (flag::WORKER, self.worker.is_some()),
            (flag::RESULT, self.result.is_some()),
            (flag::OUTPUT, self.output.is_some()),
        ] {
            flags |= if is_present { flag } else { 0 };
        }
        for (place, _) in times.iter().enumerate().filter(|(_, time)| time.is_some()) {
            flags |= flag::TIMES << place;
        }
        put_number(bytes, flags);
        bytes.push(self.status as u8);
        put_number(bytes, u64::from(self.attempt));
        put_text(bytes, self.id);
        put_text(bytes, self.description);
        if !self.notes.is_empty() {
            put_text(bytes, self.notes);
        }
        self.parent.into_iter().for_each(|parent| put_text(bytes, parent));
        if !self.depends_on.is_empty() {
            put_number(bytes, self.depends_on.len() as u64);
            self.depends_on.iter().for_each(|on| put_text(bytes, on));
        }
        if let Some((executor, inputs)) = self.work {
            put_text(bytes, executor);
            put_text(bytes, inputs);
        }
        if self.priority != 0 {
            put_signed(bytes, i64::from(self.priority));
        }
        [self.worker, self.result, self.output].into_iter().flatten().for_each(|text| put_text(bytes, text));
        // The times of a task are close to each other.
        let mut last = 0;
        for time in times.into_iter().flatten() {
            put_signed(bytes, time.as_micros().wrapping_sub(last));
            last = time.as_micros();
        }
    }

    /// Reads what [`Short::put`] has written; `None` if the bytes are something else.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let flags = bytes.number()?;
        let has = |flag: u64| flags & flag != 0;
        let status = *Status::ALL.get(usize::from(bytes.byte()?))?;
        let attempt = u32::try_from(bytes.number()?).ok()?;
        let (id, description) = (bytes.text()?, bytes.text()?);
        let notes = if has(flag::NOTES) { bytes.text()? } else { "" };
        let parent = if has(flag::PARENT) { Some(bytes.text()?) } else { None };
        let count = if has(flag::DEPENDS_ON) { bytes.number()? } else { 0 };
        let depends_on = (0..count).map(|_| bytes.text()).collect::<Option<_>>()?;
        let work = if has(flag::WORK) { Some((bytes.text()?, bytes.text()?)) } else { None };
        let priority = if has(flag::PRIORITY) { i32::try_from(bytes.signed()?).ok()? } else { 0 };
        let mut text = |flag: u64| if has(flag) { bytes.text().map(Some) } else { Some(None) };
        let (worker, result, output) = (text(flag::WORKER)?, text(flag::RESULT)?, text(flag::OUTPUT)?);
        let (mut times, mut last) = ([None; 4], 0_i64);
        for (place, time) in times.iter_mut().enumerate() {
            if has(flag::TIMES << place) {
                last = last.wrapping_add(bytes.signed()?);
                *time = Some(Timestamp::from_micros(last));
            }
        }
        let [created_at, updated_at, started_at, finished_at] = times;
        bytes.0.is_empty().then_some(Self {
            id,
            description,
            notes,
            parent,
            depends_on,
            work,
            priority,
            status,
            attempt,
            created_at,
            updated_at,
            started_at,
            finished_at,
            worker,
            result,
            output,
        })
    }

    fn into_task(self) -> Task {
        let work = |(executor, inputs): (&str, &str)| Work {
            executor: executor.to_owned(),
            inputs: Json::trusted(inputs),
            shape: None,
        };
        let spec = TaskSpec {
            notes: self.notes.to_owned(),
            parent: self.parent.map(TaskId::trusted),
            depends_on: self.depends_on.into_iter().map(|id| Dependency::Task(TaskId::trusted(id))).collect(),
            work: self.work.map(work).map(Box::new),
            priority: self.priority,
            ..TaskSpec::new(TaskId::trusted(self.id), self.description)
        };
        let state = TaskState {
            status: self.status,
            attempt: self.attempt,
            created_at: self.created_at,
            updated_at: self.updated_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            worker: self.worker.map(str::to_owned),
            result: self.result.map(str::to_owned),
            output: self.output.map(Json::trusted),
            ..TaskState::default()
        };
        Task { spec, state }
    }
}

/// Encodes tasks one after another.
#[derive(Default)]
pub(in super::super) struct Writer {
    whole: Buffer,
}

impl Writer {
    /// Appends a task to `bytes`.
    pub(in super::super) fn put(&mut self, task: &Task, bytes: &mut Vec<u8>) {
        match Short::of(task) {
            Some(short) => {
                bytes.push(SHORT);
                short.put(bytes);
            }
            None => {
                bytes.push(WHOLE);
                bytes.extend_from_slice(self.whole.encode(task));
            }
        }
    }
}

/// Decodes a task; `None` if the bytes are not one.
pub(super) fn read(bytes: &[u8]) -> Option<Task> {
    match bytes.split_first()? {
        (&SHORT, rest) => Short::read(rest).map(Short::into_task),
        (&WHOLE, rest) => bitcode::decode::<Task>(rest).ok(),
        _ => None,
    }
}

/// Decodes a task of a snapshot.
pub(in super::super) fn task(bytes: &[u8], id: &str) -> Task {
    let found = read(bytes);
    // The checksum over all tasks was right when the plan was loaded, so decoding always succeeds. A task marked as
    // damaged is still better than a panic.
    found.unwrap_or_else(|| Task::new(TaskSpec::new(TaskId::trusted(id), "(damaged)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes and decodes a task, and returns the form in which it was written.
    fn form_of(task: &Task) -> u8 {
        let mut bytes = Vec::new();
        Writer::default().put(task, &mut bytes);
        assert_eq!(read(&bytes).as_ref(), Some(task));
        bytes[0]
    }

    #[test]
    fn a_task_comes_back_as_it_was_in_either_form() {
        let id = |text: &str| TaskId::new(text).unwrap();
        let mut task = Task::new(TaskSpec::new(id("build"), "Build it"));
        task.spec.notes = "With care".to_owned();
        task.spec.parent = Some(id("release"));
        task.spec.depends_on = vec![Dependency::Task(id("a")), Dependency::Task(id("b"))];
        let inputs = Json::of(&serde_json::json!({ "deep": [1, { "x": "ü" }] }));
        task.spec.work = Some(Box::new(Work { executor: "true".to_owned(), inputs, shape: None }));
        task.spec.priority = -3;
        task.state.status = Status::Done;
        task.state.attempt = 2;
        task.state.created_at = Some(Timestamp::from_micros(1));
        task.state.updated_at = Some(Timestamp::from_micros(4));
        task.state.started_at = Some(Timestamp::from_micros(2));
        task.state.finished_at = Some(Timestamp::from_micros(3));
        task.state.worker = Some("host-1".to_owned());
        task.state.result = Some("Built".to_owned());
        task.state.output = Some(Json::of(&7));
        assert_eq!(form_of(&task), SHORT);
        assert_eq!(form_of(&Task::new(TaskSpec::new(id("bare"), ""))), SHORT);
        let unusual: [fn(&mut Task); 6] = [
            |task| task.spec.skip = true,
            |task| task.spec.tools = Some(Vec::new()),
            |task| task.spec.work.as_mut().unwrap().shape = Some("s".to_owned()),
            |task| task.state.tries = 1,
            |task| task.state.error = Some(String::new()),
            |task| drop(task.state.received.insert("x/y".to_owned(), crate::UpstreamResult::default())),
        ];
        for change in unusual {
            let mut other = task.clone();
            change(&mut other);
            assert_eq!(form_of(&other), WHOLE, "{other:?}");
        }
    }

    #[test]
    fn bytes_of_no_task_are_none() {
        for bytes in [&[][..], &[SHORT], &[WHOLE, 0xFF], &[7, 1, 2, 3], &[SHORT; 12], &[0xFF; 12]] {
            assert!(read(bytes).is_none(), "{bytes:?}");
        }
        let mut task = Task::new(TaskSpec::new(TaskId::new("a").unwrap(), "A"));
        for (status, priority, at) in [
            (Status::Pending, 0, 0),
            (Status::Running, i32::MAX, i64::MAX),
            (Status::Done, i32::MIN, i64::MIN),
            (Status::Failed, -1, -1),
            (Status::Skipped, 1, 1),
            (Status::Cancelled, 63, 64),
        ] {
            (task.state.status, task.spec.priority) = (status, priority);
            task.state.created_at = Some(Timestamp::from_micros(at));
            task.state.finished_at = Some(Timestamp::from_micros(at / 2));
            assert_eq!(form_of(&task), SHORT);
            let mut bytes = Vec::new();
            Writer::default().put(&task, &mut bytes);
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).is_none(), "{length} of {} bytes", bytes.len());
            }
            bytes.push(0);
            assert!(read(&bytes).is_none(), "a byte too many");
        }
    }
}
