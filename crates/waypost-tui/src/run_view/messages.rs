//! What the run view asks the event loop for, and what it gets.

use waypost_config::Config;
use waypost_core::{Plan, TaskId};
use waypost_run::Control;
use waypost_service::{ApprovalPreview, approval_preview, is_for_people, is_to_be_run};

use super::model::PlanSnapshot;
use crate::note::ErrorMessage;
use crate::plan::PlanKey;
use crate::text;

/// Bytes of the end of a log that are read.
pub const LOG_BYTES_MAX: u64 = 64 * 1024;
/// Tasks that a preview shows.
pub const PREVIEW_TASKS_MAX: usize = 1_000;
/// Bytes of all its texts.
pub const PREVIEW_BYTES_MAX: usize = 256 * 1024;
/// Bytes of one of them.
pub const PARTICULAR_BYTES_MAX: usize = 32 * 1024;

/// Columns before a program.
const PROGRAM_COLUMNS: usize = 2;
/// Columns before its inputs, so that no text can look like a program.
const ABOUT_COLUMNS: usize = 6;

/// Why the run view is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    Watch,
    /// Run the plan in this process as soon as that is allowed.
    Execute,
}

/// What the run view asks the event loop for.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEffect {
    LoadSnapshot(PlanKey),
    /// What one task waits for, and its log.
    LoadTaskDetail(PlanKey, TaskId),
    /// What would run.
    Preview(PlanKey),
    /// Run the plan in this process.
    Start(PlanKey),
    /// Approve the version that was shown.
    Approve(PlanKey, u64),
    Write {
        plan: PlanKey,
        action: PlanAction,
        /// The note when it is written.
        success: String,
    },
    /// End a run of this process.
    End(PlanKey, Control),
}

/// What a person can do to a plan from the run view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanAction {
    Reject(String),
    Pause,
    Resume,
    CancelTask(TaskId),
    CancelPlan,
    RetryTask(TaskId),
    RetryAll,
    /// Answer what a task asks, or end a task that is for a person to do.
    Answer(TaskId, String),
}

/// What the run view gets from the event loop.
#[derive(Clone, Debug)]
pub enum RunReply {
    Snapshot(PlanKey, Result<Box<PlanSnapshot>, ErrorMessage>),
    TaskDetail(PlanKey, TaskId, Box<TaskDetail>),
    Preview(PlanKey, Result<Box<Preview>, ErrorMessage>),
    Started(PlanKey, Result<Started, ErrorMessage>),
    /// The approved version.
    Approved(PlanKey, Result<u64, ErrorMessage>),
    /// A run of this process ended, and how.
    Ended(PlanKey, Result<String, ErrorMessage>),
}

/// The result of [`RunEffect::Start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    Runs,
    NeedsApproval,
}

/// What would run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    pub version: u64,
    /// The tasks, at most [`PREVIEW_TASKS_MAX`] and as many as [`PREVIEW_BYTES_MAX`] hold.
    pub tasks: Vec<PreviewedTask>,
    /// All tasks for machines.
    pub for_machines: usize,
    /// All tasks for people.
    pub for_people: usize,
}

/// One task that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedTask {
    /// Its id and its program, as a person would type it.
    pub program: String,
    /// What the author of the plan says to the program, each with its name.
    pub particulars: Vec<(&'static str, String)>,
}

impl PreviewedTask {
    /// One, each of its texts cut to what may be shown of it.
    fn of(id: &TaskId, disclosure: ApprovalPreview) -> Self {
        let ApprovalPreview { program, particulars } = disclosure;
        let shown = |text: String| match text::head_bytes(&text, PARTICULAR_BYTES_MAX) {
            head if head.len() < text.len() => {
                format!("{head} … ({} more bytes not shown)", text.len() - head.len())
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
            let previewed = PreviewedTask::of(&task.spec.id, approval_preview(config, &task.spec));
            bytes += previewed.bytes();
            is_full = bytes > PREVIEW_BYTES_MAX || preview.tasks.len() == PREVIEW_TASKS_MAX;
            if !is_full {
                preview.tasks.push(previewed);
            }
        }
        preview
    }

    /// A summary line.
    pub(super) fn describe(&self) -> String {
        let people = match self.for_people {
            0 => String::new(),
            count => format!(", {} for people", text::count(count, "task")),
        };
        match self.for_machines {
            0 => format!("Version {}: nothing for machines{people}.", self.version),
            count => {
                format!("Version {}: {} for machines{people}", self.version, text::count(count, "task"))
            }
        }
    }

    /// Tasks that are not shown.
    pub(super) fn left_out(&self) -> usize {
        (self.for_machines + self.for_people).saturating_sub(self.tasks.len())
    }
}

/// The details of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskDetail {
    /// What it waits for.
    pub why: Vec<String>,
    /// The end of its log.
    pub log: String,
    /// Bytes of the whole log.
    pub log_bytes: u64,
    /// Where the log is from, or why there is none.
    pub log_note: String,
}
