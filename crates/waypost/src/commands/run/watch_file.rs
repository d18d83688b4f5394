//! `run --watch`: reloads the source file whenever it is saved, while the plan runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use waypost_config::Config;
use waypost_core::{Draft, PlanId};
use waypost_formats::Dialect;
use waypost_mcp::is_written_by_tool;
use waypost_run::{Controller, RunObserver};
use waypost_service::{Caller, FileDraft, Guard, Seen};
use waypost_store::{PlanStore, watch_file};

use super::prepare::{self, Approval, RunRequest, SubmittedPlan};
use waypost_cli::approval_prompt::{self, Answer};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::plan_input::{self, FilePlan};
use waypost_cli::view::text;
use waypost_text::shell_word;

/// Maximum duration of one wait for a change of the file.
const FILE_WAIT: Duration = Duration::from_secs(60);

/// A watched file.
pub(super) struct FileWatcher {
    path: String,
    dialect: Option<Dialect>,
    /// The last text that was loaded or rejected.
    text: String,
    /// The last text that the plan agreed with.
    read: String,
    /// What the person is asked about, and their answer to come: the caller with proof, or `None` for a no.
    asked: Option<(Seen, Receiver<Option<Caller>>)>,
    config: Arc<Config>,
    plans: Arc<PlanStore>,
    id: PlanId,
    controller: Controller,
}

impl FileWatcher {
    /// Starts watching. From now on the run is interrupted briefly whenever the file may have changed.
    pub(super) fn begin(
        path: &str,
        dialect: Option<Dialect>,
        text: &str,
        config: &Arc<Config>,
        plans: &Arc<PlanStore>,
        id: &PlanId,
        controller: &Controller,
    ) -> Outcome<Self> {
        let watched = std::fs::canonicalize(path).map_err(|error| Failure::file(Path::new(path), &error))?;
        let mut watch = watch_file(&watched);
        let told = controller.clone();
        let hear = move || {
            while let Ok(changed) = watch.wait(FILE_WAIT) {
                if changed {
                    told.interrupt();
                }
            }
        };
        let thread = std::thread::Builder::new().name("source".to_owned()).spawn(hear);
        thread.map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))?;
        Ok(Self {
            path: path.to_owned(),
            dialect,
            text: text.to_owned(),
            read: text.to_owned(),
            asked: None,
            config: Arc::clone(config),
            plans: Arc::clone(plans),
            id: id.clone(),
            controller: controller.clone(),
        })
    }

    /// Whether an approval prompt is open, so that nothing else may be drawn.
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Called while the run is interrupted: reloads the file, or reads the answer to the prompt. Reports errors, after
    /// which the plan continues unchanged. Returns the text if it was loaded.
    pub(super) fn poll(
        &mut self,
        context: &mut Context,
        begin: &RunRequest<'_>,
        own: Option<&str>,
    ) -> Option<String> {
        if let Err(failure) = self.read_answer(context) {
            self.complain(context, &failure);
        }
        let text = match waypost_cli::files::read(&self.path) {
            Ok(text) => text,
            // Some editors delete the file before they create the new one.
            Err(_) => return None,
        };
        if own == Some(text.as_str()) {
            self.read = text;
            return None;
        }
        if text == self.text {
            return None;
        }
        self.text.clone_from(&text);
        match self.take_in(context, begin, &text) {
            Ok(()) => Some(text),
            Err(failure) => {
                self.complain(context, &failure);
                None
            }
        }
    }

    fn take_in(&mut self, context: &mut Context, begin: &RunRequest<'_>, text: &str) -> Outcome {
        let (plans, id) = (Arc::clone(&self.plans), self.id.clone());
        let (plans, id) = (&plans, &id);
        let file = plan_input::file_plan_of(context, &self.path, text.to_owned(), self.dialect)?;
        if let Some(other) = file.draft.id.as_ref().filter(|other| !file.is_id_derived && *other != id) {
            let message = format!("it is of plan {other} now, and this is the run of plan {id}");
            return Err(Failure::failed(
                message,
                format!("`waypost run {}` runs the other", shell_word(&self.path)),
            ));
        }
        let (assigned_ids, dialect) = (file.assigned_ids.clone(), file.dialect);
        let draft = self.runnable(begin, file)?;
        // The ids of a text without ids are found by what its format says about the plan.
        let said = match assigned_ids.is_empty() {
            true => plan_input::file_plan_of(context, &self.path, self.read.clone(), self.dialect).ok(),
            false => None,
        };
        let said = said.and_then(|said| self.runnable(begin, said).ok());
        let service = context.service(plans);
        let file = FileDraft { draft, assigned_ids, dialect, said };
        // Whoever can write the file is not the person at the terminal: a saved file opens no gate.
        let by = context.caller()?.absent();
        let (_, notes) = service.reload(&by, id, file, Guard::NONE)?;
        self.read = text.to_owned();
        for note in notes {
            context.out.note_fact(note);
        }
        let (version, total) = plans.with_plan(id, |plan| (plan.version(), plan.counts().total as usize))?;
        context.out.say(format!(
            "reloaded {}: plan {id} has {} (version {version})",
            self.path,
            text::count(total, "task")
        ));
        self.activate(context, begin)
    }

    /// Returns the plan of a file as the run would store it: on its queue, with its executor.
    fn runnable(&self, begin: &RunRequest<'_>, file: FilePlan) -> Outcome<Draft> {
        let mut draft = file.draft;
        if let Some(queue) = begin.queue {
            draft.spec.queue = queue.to_owned();
        }
        Ok(prepare::runnable(&self.config, draft, begin.executor)?.into_draft())
    }

    /// Asks for approval, if needed, without blocking the run.
    fn activate(&mut self, context: &mut Context, begin: &RunRequest<'_>) -> Outcome {
        let (plans, id) = (&self.plans, &self.id);
        let finished = plans.with_plan(id, |plan| plan.state().phase.is_finished())?;
        if finished {
            return Ok(());
        }
        let needed =
            plans.with_plan(id, |plan| plan.state().approval_required && plan.state().approval.is_none())?;
        if !needed || begin.answer.yes || !begin.can_ask(context)? {
            // The file has just been written into the plan.
            let named = !is_written_by_tool(&context.folders()?.own, Path::new(&self.path));
            let entered = SubmittedPlan { plans: Arc::clone(plans), id: id.clone(), made: false, named };
            if begin.activate(context, &self.config, &entered, None)? == Approval::Awaited {
                context
                    .out
                    .note(format!("the changed plan needs approval before it runs: `waypost approve {id}`"));
            }
            return Ok(());
        }
        let service = context.service_with(plans, &self.config)?;
        let preview = service.preview(id)?;
        let seen = preview.seen();
        let (tell, answer) = channel();
        let (controller, global) = (self.controller.clone(), context.for_server());
        let ask = move || {
            let _over = tell.send(
                approval_prompt::confirm(
                    &global,
                    &service,
                    &preview,
                    Answer { yes: false, seen: None },
                    "Approve and run it?",
                )
                .ok(),
            );
            controller.interrupt();
        };
        let thread = std::thread::Builder::new().name("question".to_owned()).spawn(ask);
        thread.map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))?;
        self.asked = Some((seen, answer));
        Ok(())
    }

    fn read_answer(&mut self, context: &Context) -> Outcome {
        let (plans, id) = (&self.plans, &self.id);
        let Some((_, answer)) = &self.asked else { return Ok(()) };
        let by = match answer.try_recv() {
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => None,
            Ok(by) => by,
        };
        let (Some((seen, _)), Some(by)) = (self.asked.take(), by) else {
            context
                .out
                .say(format!("the changed plan was not approved: `waypost approve {id}` does it later"));
            return Ok(());
        };
        context.service_with(plans, &self.config)?.approve(&by, id, seen, "", Guard::NONE)?;
        Ok(())
    }

    fn complain(&self, context: &mut Context, failure: &Failure) {
        let mut failure = Failure {
            details: failure.details.clone(),
            ..Failure::failed(failure.message.clone(), failure.hint.clone())
        };
        failure.message =
            format!("{} was not reloaded, and the plan continues unchanged: {}", self.path, failure.message);
        context.out.failure(&failure);
    }
}

/// Shows nothing while an approval prompt is open.
pub(super) struct Quiet;

impl RunObserver for Quiet {}
