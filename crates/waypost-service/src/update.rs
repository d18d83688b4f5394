//! Updating a plan from a text in any format. The text is applied inside the transaction, to the plan as it is then.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};
use waypost_core::{Command, DiffStat, Difference, Draft, Plan, PlanId, TaskId, differences, reopened_tasks};
use waypost_formats::{Baseline, Dialect, Written, fit_to_plan};

use crate::caller::Caller;
use crate::error::ServiceError;
use crate::service::{Guard, Service, WriteReply};
use crate::status_changes::{StatusChanges, status_changes};

/// Maximum number of removed values that a note names.
const REMOVED_NAMED_MAX: usize = 10;
/// The fields of a task that its author writes.
const AUTHORED: [&str; 15] = [
    "parent",
    "depends_on",
    "complexity",
    "notes",
    "tools",
    "skip",
    "locks",
    "work",
    "check",
    "retry",
    "timeout_seconds",
    "priority",
    "provides",
    "thinking",
    "foreign",
];

/// A text, and its origin.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// The text of the plan.
    pub text: String,
    /// The format of the text; detected if the caller does not name it.
    pub format: Option<Dialect>,
    /// The file that the text was read from.
    pub file_name: Option<String>,
    /// The name of the text in messages.
    pub name: String,
}

/// The result of an update.
#[derive(Clone, Debug, Serialize)]
pub struct UpdateReply {
    /// The result of the write.
    #[serde(flatten)]
    pub written: WriteReply,
    /// How much changed.
    pub changes: DiffStat,
    /// Finished tasks that have to be done again.
    pub again: Vec<TaskId>,
    /// Whether the plan lost its approval.
    pub approval_voided: bool,
    /// What the author of the text should know although it is valid.
    pub notes: Vec<String>,
}

/// Returns a note about values that a text has removed, if any: an author may have left them out without that intention.
fn removed_values(differences: &[Difference]) -> Option<String> {
    let is_removed = |before: &str, after: &str| match after {
        "" | "false" | "0" => !before.is_empty(),
        _ => false,
    };
    let removed_of = |field: &str, before: &str, after: &str| match is_removed(before, after) {
        true => vec![field.to_owned()],
        false => removed_keys(field, before, after),
    };
    let removed = differences.iter().flat_map(|difference| match difference {
        Difference::Plan { field: "phase" | "approval" | "archived" | "summary", .. } => Vec::new(),
        Difference::Plan { field, before, after } => {
            removed_of(field, before, after).iter().map(|field| format!("the plan's {field}")).collect()
        }
        Difference::Task { task, field, before, after } if AUTHORED.contains(field) => {
            removed_of(field, before, after).iter().map(|field| format!("{field} of {task}")).collect()
        }
        Difference::Task { .. }
        | Difference::Added { .. }
        | Difference::Removed { .. }
        | Difference::Reordered {} => Vec::new(),
    });
    let removed: Vec<String> = removed.collect();
    let named = removed.iter().take(REMOVED_NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match removed.len() {
        0 => None,
        count if count > REMOVED_NAMED_MAX => {
            Some(format!("removed: {named} and {} more", count - REMOVED_NAMED_MAX))
        }
        _ => Some(format!("removed: {named}")),
    }
}

/// Returns the keys that a JSON object no longer has, each with the field that it is in. Remarks of readers begin with `$`.
fn removed_keys(field: &str, before: &str, after: &str) -> Vec<String> {
    fn collect(
        place: &str,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        found: &mut Vec<String>,
    ) {
        for (key, value) in before.iter().filter(|(key, _)| !key.starts_with('$')) {
            let place = format!("{place}.{key}");
            match (value, after.get(key)) {
                (_, None) => found.push(place),
                (Value::Object(before), Some(Value::Object(after))) => collect(&place, before, after, found),
                (_, Some(_)) => {}
            }
        }
    }
    let mut found = Vec::new();
    if let (Ok(before), Ok(after)) = (serde_json::from_str(before), serde_json::from_str(after)) {
        collect(field, &before, &after, &mut found);
    }
    found
}

/// A plan that was read from a file which may have been edited since it was last read.
#[derive(Clone, Debug)]
pub struct FileDraft {
    /// The plan in the file.
    pub draft: Draft,
    /// The ids that the reader assigned to tasks without one.
    pub assigned_ids: HashSet<TaskId>,
    /// The format of the file.
    pub dialect: Dialect,
    /// What the file said when it was last read, if that is known.
    pub said: Option<Draft>,
}

impl Service {
    /// Updates a plan from a text.
    pub fn update(
        &self,
        by: &Caller,
        plan: &PlanId,
        source: SourceText,
        guard: Guard,
    ) -> Result<UpdateReply, ServiceError> {
        let (caller, config) = (by.clone(), self.config()?);
        let written_from = self.written_from(plan, &source)?;
        let tag = self.shared_tag(plan)?;
        let (written, (before, mut notes, phase)) = self.write_with(by, plan, guard, move |plan| {
            let before = plan.to_draft();
            let SourceText { text, format, file_name, name } = &source;
            let written = Written { text, dialect: *format, file_name: file_name.as_deref(), name };
            let mut update = waypost_formats::update(
                written,
                &before,
                written_from.as_ref(),
                plan.free_task_ids_of(tag.as_deref()),
            )
            .map_err(|error| ServiceError::of_update(name, error))?;
            let statuses = if let Command::Replace(draft) = &update.command {
                status_changes(&config, plan, &caller, draft)?
            } else {
                StatusChanges::default()
            };
            update.notes.extend(statuses.notes);
            let commands = std::iter::once(update.command).chain(statuses.commands).collect();
            Ok((commands, (before, update.notes, update.phase)))
        })?;
        let after = self.read(plan, |plan| plan.to_draft())?;
        if let Some(phase) = phase.filter(|phase| *phase != after.state.phase) {
            notes.push(format!("the plan was not set to {}: a text does not do that", phase.as_str()));
        }
        let differences = differences(&before, &after);
        let changes = DiffStat::of(&differences);
        notes.extend(removed_values(&differences));
        let again = reopened_tasks(&before, &after);
        let approval_voided = before.state.approval.is_some() && after.state.approval.is_none();
        Ok(UpdateReply { written, changes, again, approval_voided, notes })
    }

    /// Returns the plan as it was when a text was written that names an earlier version of it.
    fn written_from(&self, plan: &PlanId, source: &SourceText) -> Result<Option<Draft>, ServiceError> {
        let SourceText { text, format, file_name, .. } = source;
        let found = format.or_else(|| waypost_formats::sniff(text, file_name.as_deref()));
        if !matches!(found, Some(Dialect::Native | Dialect::Markdown)) {
            // No other text says of which version it is.
            return Ok(None);
        }
        let Ok(mut reading) = waypost_formats::read(text, found, file_name.as_deref()) else {
            return Ok(None);
        };
        let is_of_plan = |draft: &Draft| draft.id.as_ref() == Some(plan) && draft.version > 0;
        let (Some(draft), true) = (reading.drafts.pop(), reading.drafts.is_empty()) else { return Ok(None) };
        if !is_of_plan(&draft) || self.read(plan, Plan::version)? <= draft.version {
            return Ok(None);
        }
        // Without it, the text is compared with the plan as it is.
        Ok(self.plans().at_version(plan, draft.version).ok().map(|plan| plan.to_draft()))
    }

    /// Updates a plan from an edited file: what differs from `said`, which is what the file said when it was last read, or
    /// from what its format says about the plan. Also returns notes for the author.
    pub fn reload(
        &self,
        by: &Caller,
        plan: &PlanId,
        file: FileDraft,
        guard: Guard,
    ) -> Result<(WriteReply, Vec<String>), ServiceError> {
        let (caller, config, tag) = (by.clone(), self.config()?, self.shared_tag(plan)?);
        self.write_with(by, plan, guard, move |plan| {
            let FileDraft { mut draft, assigned_ids, dialect, said } = file.clone();
            let before = plan.to_draft();
            let baseline = said.as_ref().map_or(Baseline::Format(dialect, None), Baseline::LastText);
            let untaken = fit_to_plan(
                &mut draft,
                &assigned_ids,
                baseline,
                &before,
                plan.free_task_ids_of(tag.as_deref()),
            );
            let StatusChanges { mut commands, mut notes } = status_changes(&config, plan, &caller, &draft)?;
            notes.extend(untaken.notes);
            commands.insert(0, Command::Replace(Box::new(draft)));
            Ok((commands, notes))
        })
    }
}
