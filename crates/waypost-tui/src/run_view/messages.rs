//! What the run view asks the loop for, and what it is told.

use waypost_config::Config;
use waypost_core::{Command, Plan, TaskId};
use waypost_run::Control;
use waypost_service::{Disclosure, disclosure, is_for_people, is_to_be_run};

use super::{PARTICULAR_BYTES_MAX, PREVIEW_BYTES_MAX, PREVIEW_TASKS_MAX, PlanSnapshot};
use crate::app::{ErrorMessage, PlanKey};
use crate::text;

/// Columns before a program.
const PROGRAM_COLUMNS: usize = 2;
/// Columns before what is said to it, so that no text can look like a program.
const ABOUT_COLUMNS: usize = 6;

/// What the run view wants from the loop.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEffect {
    /// To know how the plan snapshot.
    LoadSnapshot(PlanKey),
    /// To know more of one task: what it waits for, its log.
    LoadTaskDetail(PlanKey, TaskId),
    /// To know what machines would do.
    Preview(PlanKey),
    /// To run the plan in this process.
    Start(PlanKey),
    /// To approve a version, as the person at the terminal.
    Approve(PlanKey, u64),
    /// To write one command.
    Write {
        /// Which plan.
        plan: PlanKey,
        /// What.
        command: Box<Command>,
        /// What to say when it is written.
        said: String,
    },
    /// To answer what a task asks, or what is for a person to do.
    Answer {
        /// Which plan.
        plan: PlanKey,
        /// Which task.
        task: TaskId,
        /// The answer.
        answer: String,
    },
    /// To end a run of this process.
    End(PlanKey, Control),
}

/// What the run view is told.
#[derive(Clone, Debug)]
pub enum RunReply {
    /// How the plan snapshot.
    Snapshot(PlanKey, Result<Box<PlanSnapshot>, ErrorMessage>),
    /// More of one task.
    TaskDetail(PlanKey, TaskId, Box<TaskDetail>),
    /// What machines would do.
    Preview(PlanKey, Result<Box<Preview>, ErrorMessage>),
    /// What came of [`RunEffect::Start`].
    Started(PlanKey, Result<Started, ErrorMessage>),
    /// What came of [`RunEffect::Approve`].
    Approved(PlanKey, Result<u64, ErrorMessage>),
    /// A run of this process is over: in words, and what to do next if it did not end well.
    Ended(PlanKey, Result<String, ErrorMessage>),
}

/// What came of the wish to run a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It runs in this process.
    Runs,
    /// A person has to approve it first.
    NeedsApproval,
}

/// What machines would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// In which version.
    pub version: u64,
    /// The tasks, at most [`PREVIEW_TASKS_MAX`] and as many as [`PREVIEW_BYTES_MAX`] hold.
    pub tasks: Vec<PreviewedTask>,
    /// Tasks for machines in all.
    pub for_machines: usize,
    /// Tasks for people in all.
    pub for_people: usize,
}

/// One task of those that would be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedTask {
    /// Its id and its program, as a person would type it.
    pub program: String,
    /// What the author of the plan says to the program, each with its name.
    pub particulars: Vec<(&'static str, String)>,
}

impl PreviewedTask {
    /// One, each of its texts cut to what may be shown of it.
    fn of(id: &TaskId, disclosure: Disclosure) -> Self {
        let Disclosure { program, particulars } = disclosure;
        let shown = |text: String| match text::head_bytes(&text, PARTICULAR_BYTES_MAX) {
            head if head.len() < text.len() => {
                format!("{head} … ({} more bytes are not shown)", text.len() - head.len())
            }
            _ => text,
        };
        let particulars = particulars.into_iter().map(|(name, text)| (name, shown(text)));
        Self { program: format!("{id}: {program}"), particulars: particulars.collect() }
    }

    fn bytes(&self) -> usize {
        self.program.len() + self.particulars.iter().map(|(_, text)| text.len()).sum::<usize>()
    }

    /// It in lines, those about it further in; a text has as many as its author gave it.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, String)> {
        let about = self.particulars.iter().map(|(name, text)| (ABOUT_COLUMNS, format!("{name}: {text}")));
        std::iter::once((PROGRAM_COLUMNS, self.program.clone())).chain(about)
    }
}

impl Preview {
    /// What a plan would have done: the programs, and what its author says to them.
    pub fn of(config: &Config, plan: &Plan) -> Self {
        let tasks = plan.tasks().map(|(task, _)| task).filter(|task| is_to_be_run(task));
        let mut preview = Self { version: plan.version(), ..Self::default() };
        let (mut bytes, mut is_full) = (0, false);
        for task in tasks {
            match is_for_people(config, task) && task.spec.check.is_none() {
                true => preview.for_people += 1,
                false => preview.for_machines += 1,
            }
            // What is shown is the beginning without a gap, so that what is counted is all of the rest.
            if is_full {
                continue;
            }
            let previewed = PreviewedTask::of(&task.spec.id, disclosure(config, &task.spec));
            bytes += previewed.bytes();
            is_full = bytes > PREVIEW_BYTES_MAX || preview.tasks.len() == PREVIEW_TASKS_MAX;
            if !is_full {
                preview.tasks.push(previewed);
            }
        }
        preview
    }

    /// What it comes to, in a line.
    pub(super) fn describe(&self) -> String {
        let people = match self.for_people {
            0 => String::new(),
            count => format!(", {} to people", text::count(count, "task")),
        };
        match self.for_machines {
            0 => format!("Version {} gives nothing to machines{people}.", self.version),
            count => {
                format!("Version {} gives {} to machines{people}:", self.version, text::count(count, "task"))
            }
        }
    }

    /// Tasks that are not among those shown.
    pub(super) fn left_out(&self) -> usize {
        (self.for_machines + self.for_people).saturating_sub(self.tasks.len())
    }
}

/// One task, looked at more closely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskDetail {
    /// What it waits for.
    pub why: Vec<String>,
    /// The end of its log.
    pub log: String,
    /// Bytes of the whole log.
    pub log_bytes: u64,
    /// What is to be known of the log: whose copy it is, or why there is none.
    pub log_note: String,
}
