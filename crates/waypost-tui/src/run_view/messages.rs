//! Effects and replies of the run view.

use waypost_core::{TaskId, Timestamp};
use waypost_run::Control;
use waypost_service::{AnswerChoice, GroupRole, PreviewTask, Seen};

use super::model::PlanSnapshot;
use crate::note::ErrorMessage;
use crate::plan::PlanKey;
use crate::text;

/// Maximum number of bytes read from the end of a log.
pub const LOG_BYTES_MAX: u64 = 64 * 1024;
/// Maximum number of tasks in a preview.
pub const PREVIEW_TASKS_MAX: usize = 1_000;
/// Maximum size of a preview in bytes.
pub const PREVIEW_BYTES_MAX: usize = 256 * 1024;
/// Maximum size of one text in a preview in bytes.
pub const PARTICULAR_BYTES_MAX: usize = 32 * 1024;

/// Indentation of a program.
const PROGRAM_COLUMNS: usize = 2;
/// Indentation of its inputs: deeper, so that no input can look like a program.
const ABOUT_COLUMNS: usize = 6;

/// A text with its name.
type Named = (&'static str, String);

/// Why the run view is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    Watch,
    /// Review what would run, to approve or reject it.
    Review,
    /// Answer what clones disagree about.
    Resolve,
    /// Run the plan in this process as soon as that is allowed.
    Execute,
}

/// A request of the run view to the event loop.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEffect {
    LoadSnapshot(PlanKey),
    /// Load the reasons why a task waits, and its log.
    LoadTaskDetail(PlanKey, TaskId),
    /// Search for the commits of a task, which takes a moment.
    LoadCommits(PlanKey, TaskId),
    /// Load what would run.
    Preview(PlanKey),
    /// Run the plan in this process.
    Start(PlanKey),
    /// Approve this version, which was shown.
    Approve(PlanKey, Seen),
    Write {
        plan: PlanKey,
        action: PlanAction,
        /// The note to show on success.
        success: String,
    },
    /// End a run of this process.
    End(PlanKey, Control),
}

/// The writes of the run view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanAction {
    Reject(String),
    Pause,
    Resume,
    HoldTask(TaskId),
    UnholdTask(TaskId),
    CancelTask(TaskId),
    SkipTask(TaskId),
    /// Mark it done.
    CompleteTask(TaskId),
    /// Mark it failed.
    FailTask(TaskId),
    /// Release it, or open it again.
    ReopenTask(TaskId),
    RequestApproval,
    CompletePlan,
    CancelPlan,
    Archive,
    Unarchive,
    RetryTask(TaskId),
    RetryAll,
    /// Answer the question of a task, or complete a task for a person.
    Answer {
        task: TaskId,
        answer: String,
        /// The digest of what the person has read.
        seen: String,
    },
    /// Answer what clones disagree about.
    Resolve {
        choice: AnswerChoice,
        /// The digest of what the person has read.
        seen: String,
    },
}

/// A reply to the run view.
#[derive(Clone, Debug)]
pub enum RunReply {
    Snapshot(PlanKey, Result<Box<PlanSnapshot>, ErrorMessage>),
    TaskDetail(PlanKey, TaskId, Box<TaskDetail>),
    /// The commits of a task, one to a line.
    Commits(PlanKey, TaskId, String),
    Preview(PlanKey, Result<Box<Preview>, ErrorMessage>),
    Started(PlanKey, Result<Started, ErrorMessage>),
    /// The approved version.
    Approved(PlanKey, Result<u64, ErrorMessage>),
    /// How a run of this process ended.
    Ended(PlanKey, Result<String, ErrorMessage>),
}

/// The result of [`RunEffect::Start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    Runs,
    NeedsApproval,
}

/// What would run, for review before approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    pub version: u64,
    /// The digest of everything that would run.
    pub digest: String,
    /// The words of the plan itself, by name.
    pub about: Vec<(&'static str, String)>,
    /// At most [`PREVIEW_TASKS_MAX`], with at most [`PREVIEW_BYTES_MAX`] in total.
    pub tasks: Vec<PreviewedTask>,
    /// Number of tasks for machines, including those left out.
    pub for_machines: usize,
    /// Number of tasks for people, including those left out.
    pub for_people: usize,
    /// Number of tasks whose words are read by agents that do their parts, including those left out.
    pub parents: usize,
    /// Whether a text is shown only in part.
    pub is_cut: bool,
}

/// One task that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedTask {
    /// Its id and its command line.
    pub program: String,
    /// How the program runs, for the first task of a group; then what the author of the plan says about the task.
    pub particulars: Vec<(&'static str, String)>,
}

impl PreviewedTask {
    /// Truncates each input to [`PARTICULAR_BYTES_MAX`].
    fn of(program: &str, warnings: &str, settings: &[Named], task: &PreviewTask) -> Self {
        let PreviewTask { id, particulars } = task.clone();
        let particulars = settings.iter().cloned().chain(particulars);
        let shown = |text: String| match text::head_bytes(&text, PARTICULAR_BYTES_MAX) {
            head if head.len() < text.len() => {
                format!("{head} … ({} more bytes not shown)", text.len() - head.len())
            }
            _ => text,
        };
        let particulars = particulars.map(|(name, text)| (name, shown(text)));
        Self { program: format!("{id}: {program}{warnings}"), particulars: particulars.collect() }
    }

    fn bytes(&self) -> usize {
        self.program.len() + self.particulars.iter().map(|(_, text)| text.len()).sum::<usize>()
    }

    /// The program and its inputs, each with its indentation. An input may contain line breaks.
    fn lines(&self) -> impl Iterator<Item = (usize, String)> {
        let about = self.particulars.iter().map(|(name, text)| (ABOUT_COLUMNS, format!("{name}: {text}")));
        std::iter::once((PROGRAM_COLUMNS, self.program.clone())).chain(about)
    }
}

impl Preview {
    /// Shows what machines would run, risky tasks first.
    pub fn of(found: &waypost_service::Preview) -> Self {
        let (version, digest, mut about) = (found.version, found.digest.clone(), found.about.clone());
        if let Some((_, changes)) = &found.changes {
            let changes = [changes.as_slice(), &found.since_approval].concat().join("\n");
            let changes = text::head_bytes(&changes, PARTICULAR_BYTES_MAX).to_owned();
            about.insert(0, ("changed since the last approval", changes));
        }
        let mut preview = Self { version, digest, about, ..Self::default() };
        let (mut bytes, mut is_full) = (0, false);
        for group in &found.groups {
            match group.role {
                GroupRole::Person => preview.for_people += group.tasks.len(),
                GroupRole::Machine => preview.for_machines += group.tasks.len(),
                GroupRole::Parent | GroupRole::Nothing => preview.parents += group.tasks.len(),
            }
            let warnings: Vec<&str> = group.risks.iter().map(|risk| risk.describe()).collect();
            let warnings =
                if warnings.is_empty() { String::new() } else { format!("  ! {}", warnings.join(", ")) };
            for (index, task) in group.tasks.iter().enumerate() {
                // Stops at the first task that does not fit, so that the shown tasks have no gap.
                if is_full {
                    break;
                }
                let settings = if index == 0 { group.settings.as_slice() } else { &[] };
                let previewed = PreviewedTask::of(&group.program, &warnings, settings, task);
                bytes += previewed.bytes();
                let texts = settings.iter().chain(&task.particulars);
                preview.is_cut |= texts.into_iter().any(|(_, text)| text.len() > PARTICULAR_BYTES_MAX);
                is_full = bytes > PREVIEW_BYTES_MAX || preview.tasks.len() == PREVIEW_TASKS_MAX;
                if !is_full {
                    preview.tasks.push(previewed);
                }
            }
        }
        preview
    }

    /// The words of the plan, then each program with its inputs, each with its indentation and whether it begins a task.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, String, bool)> {
        let about = self.about.iter().map(|(name, text)| (PROGRAM_COLUMNS, format!("{name}: {text}"), false));
        let tasks = self.tasks.iter().flat_map(PreviewedTask::lines);
        about.chain(tasks.map(|(indent, line)| (indent, line, indent == PROGRAM_COLUMNS)))
    }

    /// What a person decides about who has seen this preview.
    pub(super) fn seen(&self) -> Seen {
        Seen { version: self.version, digest: self.digest.clone() }
    }

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

    /// The number of tasks left out.
    pub(super) fn left_out(&self) -> usize {
        (self.for_machines + self.for_people + self.parents).saturating_sub(self.tasks.len())
    }
}

/// The details of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskDetail {
    /// Everything said about it, by name: its description, notes, result and error.
    pub about: Vec<(&'static str, String)>,
    /// Who it is for, its labels, and what was said last: a line each.
    pub remarks: Vec<String>,
    /// The reasons why it waits.
    pub why: Vec<String>,
    /// The end of its log.
    pub log: String,
    /// When each line of it was written; empty if nobody knows.
    pub log_times: Vec<Timestamp>,
    /// Size of the whole log in bytes.
    pub log_bytes: u64,
    /// The origin of the log, or why there is none.
    pub log_note: String,
}
