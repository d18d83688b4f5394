//! What is written for the person at the terminal, as that person.

use waypost_core::{Command, Draft, Plan, PlanSpec, TaskId};
use waypost_service::admission as admit;
use waypost_service::answer_command;
use waypost_store::{Committed, NewPlan, WriteError, WriteRequest};

use super::EffectContext;
use crate::app::{ErrorMessage, Message, Note, NoteKind, PlanKey, Reply, SaveError};
use crate::history::HistoryReply;
use crate::run_view::RunReply;

impl EffectContext {
    /// Writes one version, if the configuration lets it be written.
    fn commit(
        &self,
        plan: &PlanKey,
        commands: Vec<Command>,
        known_version: Option<u64>,
    ) -> Result<Committed, SaveError> {
        let Some(workspace) = self.workspace(plan.store) else { return Err(SaveError::Refused(no_store())) };
        let problems =
            commands.iter().flat_map(|command| admit::command_problems(&workspace.config, command));
        if let Some(error) = ErrorMessage::of_config_problems(problems.collect()) {
            return Err(SaveError::Refused(error));
        }
        let (id, by) = (plan.id.clone(), self.by.clone());
        let request = WriteRequest { plan: id, by, commands, known_version, lease_seconds: None };
        workspace.plans().write(request).map_err(|error| match error {
            WriteError::Conflict(conflict) => SaveError::Conflict(conflict),
            other => SaveError::Refused(other.into()),
        })
    }

    pub(super) fn save(&self, plan: PlanKey, version: u64, commands: Vec<Command>) {
        let saved = self.commit(&plan, commands, Some(version)).map(|committed| {
            self.warn(&committed);
            committed.version
        });
        self.reply(Reply::Saved { plan, saved });
    }

    /// Says what tasks now wait for elsewhere that is not there so far.
    fn warn(&self, committed: &Committed) {
        for text in committed.warnings() {
            self.reply(Reply::Note(Note { kind: NoteKind::Warning, text }));
        }
    }

    pub(super) fn create(&self, store: usize, title: String) {
        let plan = self.created(store, title).map(|id| PlanKey { store, id });
        self.reply(Reply::Created { plan });
    }

    fn created(&self, store: usize, title: String) -> Result<waypost_core::PlanId, ErrorMessage> {
        let workspace = self.workspace(store).ok_or_else(no_store)?;
        let (plans, made) = workspace.plans_or_create()?;
        if made {
            // Whoever watched so far watched nothing.
            self.watch(store).map_err(|error| ErrorMessage {
                what: format!("the new store cannot be watched: {error}"),
                hint: "start the program again".to_owned(),
            })?;
        }
        let draft = Draft { spec: PlanSpec { title, ..PlanSpec::default() }, ..Draft::default() };
        let (by, approval_required) = (self.by.clone(), workspace.config.approval.required());
        Ok(plans.create(NewPlan { id: None, by, draft, approval_required })?.plan)
    }

    pub(super) fn write_command(&self, plan: &PlanKey, command: Command, said: String) {
        let note = match self.commit(plan, vec![command], None) {
            Ok(committed) if committed.changed => Note { kind: NoteKind::Good, text: said },
            Ok(_) => Note { kind: NoteKind::Warning, text: "nothing to change".to_owned() },
            Err(error) => failure_note(error),
        };
        self.reply(Reply::Note(note));
    }

    pub(super) fn answer_task(&self, plan: &PlanKey, task: TaskId, answer: &str) {
        let said = format!("{task} has its answer");
        let Some(workspace) = self.workspace(plan.store) else { return };
        let command = workspace
            .plans()
            .look(&plan.id, |known: &Plan| answer_command(&workspace.config, known, &task, answer, &self.by));
        match command {
            Ok(Ok(command)) => self.write_command(plan, command, said),
            Ok(Err(refusal)) => self.notify_error(&refusal.into()),
            Err(error) => self.notify_error(&error.into()),
        }
    }

    pub(super) fn approve(&self, plan: PlanKey, version: u64) {
        // Of the version that was shown: if somebody has changed it since, nothing is approved.
        let command = Command::Approve { version, note: String::new() };
        let approved = match self.commit(&plan, vec![command], None) {
            Ok(_) => Ok(version),
            Err(SaveError::Refused(error)) => Err(error),
            Err(SaveError::Conflict(conflict)) => Err(WriteError::Conflict(conflict).into()),
        };
        self.reply(Reply::Run(RunReply::Approved(plan, approved)));
    }

    pub(super) fn restore(&self, plan: PlanKey, version: u64, known: u64) {
        let restored = self.restored(&plan, version, known);
        self.reply(Reply::History(HistoryReply::Restored(plan, version, restored)));
    }

    fn restored(&self, plan: &PlanKey, version: u64, known: u64) -> Result<u64, ErrorMessage> {
        let workspace = self.workspace(plan.store).ok_or_else(no_store)?;
        let draft = workspace.plans().at_version(&plan.id, version)?.to_draft();
        let written = self.commit(plan, vec![Command::Replace(Box::new(draft))], Some(known));
        written.map(|committed| committed.version).map_err(|error| match error {
            SaveError::Refused(error) => error,
            SaveError::Conflict(conflict) => ErrorMessage {
                what: format!("plan {} has moved on to version {}", conflict.plan, conflict.current),
                hint: "look at what was written meanwhile, then restore again".to_owned(),
            },
        })
    }

    /// Tells the person what went wrong.
    pub(super) fn notify_error(&self, error: &ErrorMessage) {
        (self.send)(Message::Reply(Reply::Note(error.note())));
    }
}

fn failure_note(error: SaveError) -> Note {
    let error = match error {
        SaveError::Refused(error) => error,
        SaveError::Conflict(conflict) => WriteError::Conflict(conflict).into(),
    };
    error.note()
}

pub(super) fn no_store() -> ErrorMessage {
    ErrorMessage {
        what: "this store is no longer there".to_owned(),
        hint: "start the program again".to_owned(),
    }
}
