//! Encodes one task as bytes of a snapshot.
//!
//! Most tasks use few of the possible fields, and encoding an absent field costs as much as encoding a present one.
//! Tasks without unusual fields are therefore written in a short form.

use bitcode::{Buffer, Decode, Encode};

use crate::{Dependency, DependencyRule, Json, Status, Task, TaskId, TaskSpec, TaskState, Timestamp, Work};

/// First byte of a task in the short form.
const SHORT: u8 = 0;
/// First byte of a task with all its fields.
const WHOLE: u8 = 1;

/// A task without unusual fields.
#[derive(Encode, Decode)]
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
pub(super) struct Writer {
    short: Buffer,
    whole: Buffer,
}

impl Writer {
    /// Appends a task to `bytes`.
    pub(super) fn put(&mut self, task: &Task, bytes: &mut Vec<u8>) {
        match Short::of(task) {
            Some(short) => {
                bytes.push(SHORT);
                bytes.extend_from_slice(self.short.encode(&short));
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
        (&SHORT, rest) => bitcode::decode::<Short<'_>>(rest).ok().map(Short::into_task),
        (&WHOLE, rest) => bitcode::decode::<Task>(rest).ok(),
        _ => None,
    }
}

/// Decodes the task at the given place in a snapshot's bytes.
pub(in super::super) fn task(bytes: &[u8], (start, length): (u32, u32), id: &str) -> Task {
    let found = bytes.get(start as usize..start as usize + length as usize).and_then(read);
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
        for bytes in [&[][..], &[SHORT], &[WHOLE, 0xFF], &[7, 1, 2, 3]] {
            assert!(read(bytes).is_none(), "{bytes:?}");
        }
    }
}
