//! Importing a plan that was read from a text: the same file is the same plan, at every front end. Reads no files.

use std::collections::HashSet;

use waypost_core::{Draft, Json, Plan, PlanId, Refusal, TaskId, TaskSpec, Work};
use waypost_formats::{Baseline, Dialect, alternative_id, fit_to_plan};

use crate::caller::Caller;
use crate::error::ServiceError;
use crate::lifecycle::CreateOptions;
use crate::service::{Service, WriteReply};

/// A plan that was read from a text.
#[derive(Clone, Debug)]
pub struct ImportDraft {
    /// The plan in the text.
    pub draft: Draft,
    /// The ids that the reader assigned to tasks without one.
    pub assigned_ids: HashSet<TaskId>,
    /// The format of the text.
    pub dialect: Dialect,
    /// The file that it was read from.
    pub file_name: Option<String>,
}

/// The result of an import.
#[derive(Clone, Debug)]
pub enum Imported {
    /// The plan is there, and the text says nothing new about it.
    Unchanged {
        /// The id of the plan.
        plan: PlanId,
        /// The current version of the plan.
        version: u64,
        /// Whether the plan is archived.
        archived: bool,
    },
    /// The plan was created.
    Created {
        /// The result of the write.
        reply: WriteReply,
        /// The id that the text names, if another plan has it.
        taken: Option<PlanId>,
    },
}

/// Returns the only plan of a text. Several are not one: none of them is left out silently, and the caller says which one it
/// means.
pub fn only_plan(name: &str, drafts: Vec<Draft>) -> Result<Draft, ServiceError> {
    let count = drafts.len();
    match <[Draft; 1]>::try_from(drafts) {
        Ok([draft]) => Ok(draft),
        Err(_) => Err(ServiceError::NotOnePlan { name: name.to_owned(), count }),
    }
}

impl Service {
    /// Imports a plan under its own id, or under another one if another plan has that id. A plan that is there and about which the
    /// text says nothing new is left as it is.
    pub fn import(&self, by: &Caller, text: ImportDraft) -> Result<Imported, ServiceError> {
        let (own, alternative) = (text.draft.id.clone(), alternative_id(&text.draft));
        for id in own.iter().chain(&alternative) {
            let same = |plan: &Plan| is_same(plan, &text).then(|| (plan.version(), plan.state().archived));
            if let Ok(Some((version, archived))) = self.read(id, same) {
                return Ok(Imported::Unchanged { plan: id.clone(), version, archived });
            }
        }
        let create = |draft, id| self.create(by, draft, CreateOptions { id, ..CreateOptions::default() });
        let is_taken = |error: &ServiceError| {
            matches!(error, ServiceError::Refused(Refusal::AlreadyExists {}) | ServiceError::IdUsed(_))
        };
        for (id, taken) in [(own.clone(), None), (alternative, own.clone())] {
            match create(text.draft.clone(), id) {
                Err(error) if is_taken(&error) => {}
                created => return Ok(Imported::Created { reply: created?, taken }),
            }
        }
        Ok(Imported::Created { reply: create(text.draft, None)?, taken: own })
    }
}

/// Whether a text says nothing new about a stored plan. What its format cannot say is not compared, and neither are the states
/// of tasks.
fn is_same(plan: &Plan, text: &ImportDraft) -> bool {
    let before = plan.to_draft();
    let mut draft = text.draft.clone();
    let baseline = Baseline::Format(text.dialect, text.file_name.as_deref());
    fit_to_plan(&mut draft, &text.assigned_ids, baseline, &before, plan.free_task_ids());
    let specs =
        |draft: &Draft| -> Vec<TaskSpec> { draft.tasks.iter().map(|task| task.spec.clone()).collect() };
    let (mut known, said) = (specs(&before), specs(&draft));
    for (known, said) in known.iter_mut().zip(&said) {
        // An executor that a run gave the task is not written back into the file.
        let is_given = |work: &Work| work.shape.is_none() && work.inputs == Json::empty_object();
        if said.work.is_none() && known.work.as_deref().is_some_and(is_given) {
            known.work = None;
        }
    }
    before.spec == draft.spec && known == said
}
