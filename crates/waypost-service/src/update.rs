//! Updating a plan from a text in any format. The text is applied inside the transaction, to the plan as it is then.

use serde::Serialize;
use waypost_core::{DiffStat, PlanId, TaskId, differences, reopened_tasks};
use waypost_formats::{Dialect, Written};

use crate::caller::Caller;
use crate::error::ServiceError;
use crate::service::{Guard, Service, WriteReply};

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

impl Service {
    /// Updates a plan from a text.
    pub fn update(
        &self,
        by: &Caller,
        plan: &PlanId,
        source: SourceText,
        guard: Guard,
    ) -> Result<UpdateReply, ServiceError> {
        let (written, (before, notes)) = self.write_with(by, plan, guard, move |plan| {
            let before = plan.to_draft();
            let SourceText { text, format, file_name, name } = &source;
            let written = Written { text, dialect: *format, file_name: file_name.as_deref(), name };
            let update = waypost_formats::update(written, &before, plan.free_task_ids())
                .map_err(|error| ServiceError::of_update(name, error))?;
            Ok((vec![update.command], (before, update.notes)))
        })?;
        let after = self.read(plan, |plan| plan.to_draft())?;
        let changes = DiffStat::of(&differences(&before, &after));
        let again = reopened_tasks(&before, &after);
        let approval_voided = before.state.approval.is_some() && after.state.approval.is_none();
        Ok(UpdateReply { written, changes, again, approval_voided, notes })
    }
}
