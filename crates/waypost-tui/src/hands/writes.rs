//! What is written for the person at the terminal, as that person.

use waypost_core::{Command, Draft, Plan, PlanSpec, TaskId};
use waypost_service::admission as admit;
use waypost_service::answer_command;
use waypost_store::{Committed, NewPlan, WriteError, WriteRequest};

use super::Shared;
use crate::app::{Answer, Message, NotSaved, Note, NoteKind, PlanKey, Trouble};
use crate::history::HistoryAnswer;
use crate::run::RunAnswer;

impl Shared {
    /// Writes one version, if the configuration lets it be written.
    fn commit(
        &self,
        plan: &PlanKey,
        commands: Vec<Command>,
        known_version: Option<u64>,
    ) -> Result<Committed, NotSaved> {
        let Some(ground) = self.ground(plan.store) else { return Err(NotSaved::Refused(no_store())) };
        let problems = commands.iter().flat_map(|command| admit::command_problems(&ground.config, command));
        if let Some(trouble) = Trouble::of_misfits(problems.collect()) {
            return Err(NotSaved::Refused(trouble));
        }
        let (id, by) = (plan.id.clone(), self.by.clone());
        let request = WriteRequest { plan: id, by, commands, known_version, lease_seconds: None };
        ground.plans().write(request).map_err(|error| match error {
            WriteError::Conflict(conflict) => NotSaved::Conflict(conflict),
            other => NotSaved::Refused(other.into()),
        })
    }

    pub(super) fn save(&self, plan: PlanKey, version: u64, commands: Vec<Command>) {
        let saved = self.commit(&plan, commands, Some(version)).map(|committed| {
            self.warn(&committed);
            committed.version
        });
        self.answer(Answer::Saved { plan, saved });
    }

    /// Says what tasks now wait for elsewhere that is not there so far.
    fn warn(&self, committed: &Committed) {
        for text in committed.warnings() {
            self.answer(Answer::Note(Note { kind: NoteKind::Warning, text }));
        }
    }

    pub(super) fn create(&self, store: usize, title: String) {
        let plan = self.created(store, title).map(|id| PlanKey { store, id });
        self.answer(Answer::Created { plan });
    }

    fn created(&self, store: usize, title: String) -> Result<waypost_core::PlanId, Trouble> {
        let ground = self.ground(store).ok_or_else(no_store)?;
        let (plans, made) = ground.plans_to_add_to()?;
        if made {
            // Whoever watched so far watched nothing.
            self.watch(store).map_err(|error| Trouble {
                what: format!("the new store cannot be watched: {error}"),
                hint: "start the program again".to_owned(),
            })?;
        }
        let draft = Draft { spec: PlanSpec { title, ..PlanSpec::default() }, ..Draft::default() };
        let (by, approval_required) = (self.by.clone(), ground.config.approval.required());
        Ok(plans.create(NewPlan { id: None, by, draft, approval_required })?.plan)
    }

    pub(super) fn order(&self, plan: &PlanKey, command: Command, said: String) {
        let note = match self.commit(plan, vec![command], None) {
            Ok(committed) if committed.changed => Note { kind: NoteKind::Good, text: said },
            Ok(_) => Note { kind: NoteKind::Warning, text: "nothing to change".to_owned() },
            Err(error) => wrong(error),
        };
        self.answer(Answer::Note(note));
    }

    pub(super) fn answer_task(&self, plan: &PlanKey, task: TaskId, answer: &str) {
        let said = format!("{task} has its answer");
        let Some(ground) = self.ground(plan.store) else { return };
        let command = ground
            .plans()
            .look(&plan.id, |known: &Plan| answer_command(&ground.config, known, &task, answer, &self.by));
        match command {
            Ok(Ok(command)) => self.order(plan, command, said),
            Ok(Err(refusal)) => self.trouble(&refusal.into()),
            Err(error) => self.trouble(&error.into()),
        }
    }

    pub(super) fn approve(&self, plan: PlanKey, version: u64) {
        // Of the version that was shown: if somebody has changed it since, nothing is approved.
        let command = Command::Approve { version, note: String::new() };
        let approved = match self.commit(&plan, vec![command], None) {
            Ok(_) => Ok(version),
            Err(NotSaved::Refused(trouble)) => Err(trouble),
            Err(NotSaved::Conflict(conflict)) => Err(WriteError::Conflict(conflict).into()),
        };
        self.answer(Answer::Run(RunAnswer::Approved(plan, approved)));
    }

    pub(super) fn restore(&self, plan: PlanKey, version: u64, known: u64) {
        let restored = self.restored(&plan, version, known);
        self.answer(Answer::History(HistoryAnswer::Restored(plan, version, restored)));
    }

    fn restored(&self, plan: &PlanKey, version: u64, known: u64) -> Result<u64, Trouble> {
        let ground = self.ground(plan.store).ok_or_else(no_store)?;
        let draft = ground.plans().at_version(&plan.id, version)?.to_draft();
        let written = self.commit(plan, vec![Command::Replace(Box::new(draft))], Some(known));
        written.map(|committed| committed.version).map_err(|error| match error {
            NotSaved::Refused(trouble) => trouble,
            NotSaved::Conflict(conflict) => Trouble {
                what: format!("plan {} has moved on to version {}", conflict.plan, conflict.current),
                hint: "look at what was written meanwhile, then restore again".to_owned(),
            },
        })
    }

    /// Tells the person what went wrong.
    pub(super) fn trouble(&self, trouble: &Trouble) {
        (self.tell)(Message::Answer(Answer::Note(trouble.note())));
    }
}

fn wrong(error: NotSaved) -> Note {
    let trouble = match error {
        NotSaved::Refused(trouble) => trouble,
        NotSaved::Conflict(conflict) => WriteError::Conflict(conflict).into(),
    };
    trouble.note()
}

pub(super) fn no_store() -> Trouble {
    Trouble { what: "this store is no longer there".to_owned(), hint: "start the program again".to_owned() }
}
