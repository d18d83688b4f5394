//! Writes for the user, each one call of the service.

use waypost_core::{Draft, Phase, PlanId, PlanSpec, TaskId};
use waypost_service::{
    AnswerChoice, CreateOptions, EditOp, Guard, QuestionRef, Seen, Service, ServiceError, SharingError,
    StatusChange, TaskRef, WriteReply,
};

use super::context::EffectContext;
use super::workspace::Workspace;
use crate::history::HistoryReply;
use crate::messages::{Message, Reply, SaveError};
use crate::note::{ErrorMessage, Note, NoteKind};
use crate::plan::PlanKey;
use crate::run_view::{PlanAction, RunReply};

impl EffectContext {
    pub(super) fn save(&self, plan: PlanKey, version: u64, edits: Vec<EditOp>) {
        let saved = self.workspace(plan.store).map_err(SaveError::Refused).and_then(|workspace| {
            match workspace.service().edit(&self.by, &plan.id, edits, Guard::at(version)) {
                Ok(written) => Ok(self.warned(written).version),
                Err(ServiceError::Conflict(conflict)) => Err(SaveError::Conflict(conflict)),
                Err(error) => Err(SaveError::Refused(error.into())),
            }
        });
        self.reply(Reply::Saved { plan, saved });
    }

    /// Shows the notes of a completed write.
    fn warned(&self, written: WriteReply) -> WriteReply {
        written.notes().into_iter().for_each(|text| self.warn(text));
        written
    }

    pub(super) fn create(&self, store: usize, title: String) {
        let plan = self.created(store, title).map(|id| PlanKey { store, id });
        self.reply(Reply::Created { plan });
    }

    fn created(&self, store: usize, title: String) -> Result<PlanId, ErrorMessage> {
        let workspace = self.workspace(store)?;
        if workspace.ensure_store()? {
            // The existing watch is on the placeholder for the missing store.
            self.watch(store).map_err(|error| ErrorMessage {
                what: format!("the new store cannot be watched: {error}"),
                hint: "restart the program".to_owned(),
            })?;
        }
        let draft = Draft { spec: PlanSpec { title, ..PlanSpec::default() }, ..Draft::default() };
        let created = workspace.service().create(&self.by, draft, CreateOptions::default())?;
        Ok(self.warned(created).plan)
    }

    pub(super) fn act(&self, plan: &PlanKey, action: PlanAction, success: String) {
        match self.acted(plan, action) {
            Ok(written) if written.changed => {
                // An answer that leaves the plan as it is makes no version.
                let plans = vec![(plan.id.clone(), written.version)];
                self.send(Message::Written { store: plan.store, plans });
                self.reply(Reply::Note(Note { kind: NoteKind::Good, text: success }));
            }
            Ok(_) => self.warn("nothing to change".to_owned()),
            Err(error) => self.notify_error(&error),
        }
    }

    fn acted(&self, plan: &PlanKey, action: PlanAction) -> Result<WriteReply, ErrorMessage> {
        let workspace = self.workspace(plan.store)?;
        let (service, by, id) = (workspace.service(), &self.by, &plan.id);
        Ok(match action {
            PlanAction::Reject(reason) => service.reject(by, id, &reason, Guard::NONE),
            PlanAction::Pause => service.pause(by, id, "", Guard::NONE),
            PlanAction::Resume => service.resume(by, id, Guard::NONE),
            PlanAction::HoldTask(task) => service.hold_tasks(by, id, &[task], "", Guard::NONE),
            PlanAction::UnholdTask(task) => service.unhold_tasks(by, id, &[task], Guard::NONE),
            PlanAction::CancelTask(task) => service.cancel_task(by, id, &task, "", Guard::NONE),
            PlanAction::SkipTask(task) => {
                self.set_status(&service, id, task, StatusChange::Skipped { reason: None })
            }
            PlanAction::CompleteTask(task) => {
                let done = StatusChange::Done { result: None, output: None, sure: false };
                self.set_status(&service, id, task, done)
            }
            PlanAction::FailTask(task) => {
                let error = "marked as failed by hand".to_owned();
                self.set_status(&service, id, task, StatusChange::Failed { error })
            }
            PlanAction::ReopenTask(task) => {
                self.set_status(&service, id, task, StatusChange::Pending { reason: String::new() })
            }
            PlanAction::RequestApproval => service.request_approval(by, id, "", Guard::NONE),
            PlanAction::CompletePlan => service.finish(by, id, Phase::Completed, "", Guard::NONE),
            PlanAction::Archive => service.archive(by, id, Guard::NONE),
            PlanAction::Unarchive => service.unarchive(by, id, Guard::NONE),
            PlanAction::CancelPlan => service.finish(by, id, Phase::Cancelled, "", Guard::NONE),
            PlanAction::RetryTask(task) => service.retry_task(by, id, &task, Guard::NONE),
            PlanAction::RetryAll => service.retry_plan(by, id, Guard::NONE),
            PlanAction::Answer { task, answer, seen } => {
                let seen = Some(seen.as_str());
                let task = TaskRef { plan: id, task: &task, attempt: None, take_over: false, seen };
                service.answer(by, task, &answer, Guard::NONE)
            }
            PlanAction::Resolve { choice, seen } => return self.resolved(workspace, id, &choice, &seen),
        }?)
    }

    /// Answers what clones disagree about, as long as it is what was read.
    fn resolved(
        &self,
        workspace: &Workspace,
        plan: &PlanId,
        choice: &AnswerChoice,
        seen: &str,
    ) -> Result<WriteReply, ErrorMessage> {
        let Some(find) = &workspace.shared_branch else {
            return Err(SharingError::NotShared(plan.clone()).into());
        };
        let of = QuestionRef { plan, task: None, subject: None, seen: Some(seen) };
        let reply = workspace.service().resolve_question(&self.by, &find()?, of, choice)?;
        let (added, warnings, not_runnable) = (Vec::new(), Vec::new(), Vec::new());
        Ok(WriteReply {
            plan: reply.plan,
            version: reply.version,
            changed: true,
            added,
            warnings,
            not_runnable,
        })
    }

    fn set_status(
        &self,
        service: &Service,
        plan: &PlanId,
        task: TaskId,
        status: StatusChange,
    ) -> Result<WriteReply, ServiceError> {
        let set = EditOp::SetStatus { task, status, take_over: false };
        service.edit(&self.by, plan, vec![set], Guard::NONE)
    }

    /// Approves what was shown, and fails if it has changed since.
    pub(super) fn approve(&self, plan: PlanKey, seen: &Seen) {
        let approved = self.workspace(plan.store).and_then(|workspace| {
            workspace.service().approve(&self.by, &plan.id, seen.clone(), "", Guard::NONE)?;
            Ok(seen.version)
        });
        self.reply(Reply::Run(RunReply::Approved(plan, approved)));
    }

    pub(super) fn restore(&self, plan: PlanKey, version: u64, known: u64) {
        let restored = self.workspace(plan.store).and_then(|workspace| {
            let written = workspace.service().restore(&self.by, &plan.id, version, Guard::at(known))?;
            Ok(self.warned(written).version)
        });
        self.reply(Reply::History(HistoryReply::Restored(plan, version, restored)));
    }
}
