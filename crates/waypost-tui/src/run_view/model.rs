//! A plan as the run view shows it: counts and a bounded list of tasks, the most interesting first. Depends on the plan only.

use waypost_core::{
    Counts, EffectiveStatus, Phase, Plan, PlanId, StartRefusal, Status, Task, TaskId, Timestamp,
};
use waypost_service::{
    MergeQuestion, approval_text, question_digest, start_refusal_hint, start_refusal_text,
};
use waypost_text::StatusSign;

use crate::hint_text::hint_text;

/// Maximum number of tasks in the list.
pub const ROWS_MAX: usize = 500;
/// Maximum number of questions of merges that are read at a time.
pub const CONFLICTS_MAX: usize = 100;
/// Maximum size of each text in bytes.
const TEXT_BYTES_MAX: usize = 2_000;
/// The period over which the rate is counted.
const RATE_SECONDS: i64 = 60;

/// Groups of tasks, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Waiting for a person.
    Asking,
    Running,
    Failed,
    /// Ready, blocked, reported or queued.
    Waiting,
    /// Done, skipped or cancelled.
    Ended,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub id: TaskId,
    /// Truncated.
    pub description: String,
    pub standing: EffectiveStatus,
    /// The sign under which it is shown.
    pub sign: StatusSign,
    pub group: Group,
    /// The number of the latest attempt; 0 before the first.
    pub attempt: u32,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// The current or last worker.
    pub worker: Option<String>,
    /// Progress of a running task, result of a done one, the reason otherwise.
    pub said: String,
    pub question: Option<TaskQuestion>,
    /// What clones disagree about, in one word each.
    pub conflicts: Vec<String>,
    /// Its index among all tasks.
    place: usize,
}

/// A question for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskQuestion {
    /// For a task without a question: its description.
    pub text: String,
    /// Everything else that the digest covers: the words of the task that asks.
    pub about: Vec<(&'static str, String)>,
    /// Whether it is a task that a person does, and no question of an agent.
    pub is_for_person: bool,
    /// The possible answers; if empty, any answer is possible.
    pub choices: Vec<String>,
    /// The digest of what is asked, which the answer names.
    pub digest: String,
}

/// A plan as the run view shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSnapshot {
    pub title: String,
    pub version: u64,
    pub phase: Phase,
    pub needs_approval: bool,
    /// Who approved it, by which proof and when.
    pub approved: Option<String>,
    /// Why a worker starts nothing of it, and what to do about it.
    pub refused: Option<String>,
    /// The reason of the rejection, until approval is requested again or given.
    pub rejected: Option<String>,
    pub counts: Counts,
    /// Number of ready tasks that wait for a person to do them.
    pub for_people: u32,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Number of tasks that finished in the last minute.
    pub rate: usize,
    /// At most [`ROWS_MAX`].
    pub rows: Vec<Row>,
    /// Number of tasks beyond [`ROWS_MAX`].
    pub left_out: usize,
    /// What clones disagree about; at most [`CONFLICTS_MAX`].
    pub conflicts: Vec<MergeQuestion>,
    /// The number of all that they disagree about.
    pub conflicts_total: usize,
}

impl PlanSnapshot {
    /// Whether a task asks or is for a person; those come first.
    pub(super) fn waits_for_person(&self) -> bool {
        self.rows.first().is_some_and(|row| row.group == Group::Asking)
    }

    /// `sign` decides under which sign a task with a status is shown: some wait for a person to do them.
    pub fn of(plan: &Plan, now: Timestamp, sign: &dyn Fn(&Task, EffectiveStatus) -> StatusSign) -> Self {
        let (state, started) = (plan.state(), plan.as_started());
        let mut order: Vec<(Group, i64, usize, &Task, EffectiveStatus)> = Vec::new();
        let (mut rate, mut total, mut for_people) = (0, 0_usize, 0);
        for (place, (task, _)) in plan.tasks().enumerate() {
            let Some(standing) = started.effective_status(task.spec.id.as_str()) else { continue };
            if !plan.children(task.spec.id.as_str()).is_empty() {
                continue;
            }
            total += 1;
            let finished = task.state.finished_at;
            let is_recent = |at: Timestamp| now.as_micros() - at.as_micros() < RATE_SECONDS * 1_000_000;
            rate += usize::from(finished.is_some_and(is_recent));
            let is_for_person = sign(task, standing) == StatusSign::Person;
            for_people += u32::from(is_for_person);
            let group = group(standing, is_for_person);
            // Of ended tasks, the last to end is the most interesting; the others keep the order of the plan.
            let latest = match group {
                Group::Ended => finished.map_or(0, |at| -at.as_micros()),
                Group::Asking | Group::Running | Group::Failed | Group::Waiting => 0,
            };
            order.push((group, latest, place, task, standing));
        }
        order.sort_by_key(|&(group, latest, place, _, standing)| {
            (group, matches!(standing, EffectiveStatus::Blocked | EffectiveStatus::Held), latest, place)
        });
        let left_out = total.saturating_sub(ROWS_MAX);
        let rows = order.into_iter().take(ROWS_MAX);
        Self {
            title: plan.spec().title.clone(),
            version: plan.version(),
            phase: state.phase,
            needs_approval: !state.start_refusals.is_empty()
                || state.phase == Phase::AwaitingApproval
                || state.phase == Phase::Draft && state.approval_required && state.approval.is_none(),
            approved: state.approval.as_ref().map(|approval| beginning(&approval_text(approval))),
            refused: state.start_refusals.first().map(|refusal| beginning(&refusal_words(plan, refusal))),
            // Requesting or giving approval replaces the reason of a rejection.
            rejected: Some(state.reason.trim())
                .filter(|reason| state.phase == Phase::Draft && !reason.is_empty())
                .map(beginning),
            counts: started.effective_counts(),
            for_people,
            started_at: state.started_at,
            ended_at: state.updated_at.filter(|_| state.phase.is_finished()),
            rate,
            rows: rows
                .map(|(group, _, place, task, standing)| Row {
                    sign: sign(task, standing),
                    ..row(plan.id(), group, place, task, standing)
                })
                .collect(),
            left_out,
            conflicts: Vec::new(),
            conflicts_total: 0,
        }
    }

    /// Adds what clones disagree about. The tasks that it is about come first.
    #[must_use]
    pub fn with_conflicts(mut self, open: Vec<MergeQuestion>, total: usize) -> Self {
        for MergeQuestion { conflict, .. } in &open {
            let row = self.rows.iter_mut().find(|row| conflict.task.as_ref() == Some(&row.id));
            if let Some(row) = row {
                row.conflicts.push(conflict.subject.clone());
            }
        }
        self.rows.sort_by_key(|row| row.conflicts.is_empty());
        Self { conflicts: open, conflicts_total: total, ..self }
    }
}

fn refusal_words(plan: &Plan, refusal: &StartRefusal) -> String {
    let hint = hint_text(start_refusal_hint(plan.id(), refusal));
    format!("{} ({hint})", start_refusal_text(plan, refusal))
}

fn group(standing: EffectiveStatus, for_people: bool) -> Group {
    match standing {
        EffectiveStatus::Asking | EffectiveStatus::Disputed => Group::Asking,
        EffectiveStatus::Ready if for_people => Group::Asking,
        EffectiveStatus::Running => Group::Running,
        EffectiveStatus::Failed => Group::Failed,
        EffectiveStatus::Blocked
        | EffectiveStatus::Held
        | EffectiveStatus::Ready
        | EffectiveStatus::Reported
        | EffectiveStatus::Queued => Group::Waiting,
        EffectiveStatus::Done | EffectiveStatus::Skipped | EffectiveStatus::Cancelled => Group::Ended,
    }
}

fn row(plan: &PlanId, group: Group, place: usize, task: &Task, standing: EffectiveStatus) -> Row {
    let state = &task.state;
    let said = match state.status {
        Status::Running => state.progress.clone().unwrap_or_default(),
        Status::Done => state.result.clone().unwrap_or_default(),
        Status::Pending | Status::Failed | Status::Skipped | Status::Cancelled => {
            state.why().unwrap_or_default()
        }
    };
    let about = |is_for_person: bool| {
        let inputs = task.spec.work.as_deref().map(|work| work.inputs.as_str().to_owned());
        let inputs = inputs.filter(|inputs| inputs != "{}").unwrap_or_default();
        let description = if is_for_person { String::new() } else { task.spec.description.clone() };
        let all = [("task", description), ("notes", task.spec.notes.clone()), ("inputs", inputs)];
        all.into_iter().filter(|(_, text)| !text.trim().is_empty()).collect()
    };
    let asked = |text: String, choices: &[String], is_for_person: bool| TaskQuestion {
        text,
        about: about(is_for_person),
        is_for_person,
        choices: choices.to_vec(),
        digest: question_digest(plan, task),
    };
    let question = match (group, state.question()) {
        (_, Some(question)) => Some(asked(question.text.clone(), &question.choices, false)),
        (Group::Asking, None) if standing != EffectiveStatus::Disputed => {
            Some(asked(task.spec.description.clone(), &[], true))
        }
        (Group::Asking | Group::Running | Group::Failed | Group::Waiting | Group::Ended, None) => None,
    };
    Row {
        id: task.spec.id.clone(),
        description: beginning(&task.spec.description),
        standing,
        sign: standing.sign(),
        group,
        attempt: state.attempt,
        started_at: state.started_at,
        finished_at: state.finished_at,
        worker: state.worker.clone(),
        // It may quote what a program printed.
        said: waypost_text::terminal_text(&beginning(&said), false),
        question,
        conflicts: Vec::new(),
        place,
    }
}

/// The beginning of a text, longer than a screen can show.
fn beginning(text: &str) -> String {
    waypost_text::head_bytes(text, TEXT_BYTES_MAX).to_owned()
}
