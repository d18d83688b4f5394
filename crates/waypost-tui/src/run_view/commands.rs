//! The user's actions on a plan in the run view, and their dialogs.

use waypost_core::{EffectiveStatus, Phase};
use waypost_run::Control;

use super::{Group, Intent, LocalRun, OpenDialog, PlanAction, Preview, RunEffect, RunView};
use crate::dialog::{Button, Choice, Dialog};
use crate::note::{ErrorMessage, NoteKind};
use crate::screen::{Context, Flow};
use crate::text;

impl RunView {
    /// Opens a dialog of this screen.
    fn dialog(&mut self, about: OpenDialog, dialog: Dialog, context: &mut Context<'_>) {
        self.open_dialog = Some(about);
        context.ask(dialog);
    }

    /// Shows why the plan does not run and what to do; too long for a note.
    pub(super) fn not_started(&mut self, error: &ErrorMessage, context: &mut Context<'_>) {
        self.open_dialog = None;
        let lines = vec![error.what.clone(), String::new(), error.hint.clone()];
        context.ask(Dialog::new("Cannot run", lines, vec![Button::close('b', "back")]));
    }

    pub(super) fn leave(&mut self, context: &mut Context<'_>) {
        match self.local_run {
            LocalRun::NotRunning => context.go(Flow::Pop),
            LocalRun::Starting | LocalRun::Running | LocalRun::Stopping(_) => {
                let lines = vec![
                    "This process runs the plan.".to_owned(),
                    "Keep it running and return from the list of plans, or stop it. A stopped run can be continued later."
                        .to_owned(),
                ];
                let buttons = vec![
                    Button::new('l', "keep running", Choice::KeepRunning),
                    Button::new('s', "stop", Choice::StopRun),
                    Button::close('b', "back"),
                ];
                self.dialog(OpenDialog::Leave, Dialog::new("Leave the run view", lines, buttons), context);
            }
        }
    }

    /// The first time, no new tasks start; the second time, running tasks are stopped.
    pub(super) fn stop(&mut self, context: &mut Context<'_>) {
        let control = match self.local_run {
            LocalRun::Running => Control::Drain,
            LocalRun::Stopping(_) => Control::Stop,
            LocalRun::NotRunning | LocalRun::Starting => {
                let words = "not running in this process; p pauses the plan for all, C cancels it";
                context.notify(NoteKind::Warning, words);
                return;
            }
        };
        self.end(control, context);
    }

    fn end(&mut self, control: Control, context: &mut Context<'_>) {
        self.local_run = LocalRun::Stopping(control);
        self.ask(RunEffect::End(self.plan.clone(), control), context);
        let words = match control {
            Control::Drain => "no new tasks start here; waiting for running tasks (again: stop them)",
            Control::Stop => "stopping running tasks",
        };
        context.notify(NoteKind::Warning, words);
    }

    pub(super) fn approve(&mut self, context: &mut Context<'_>) {
        match self.preview.clone() {
            Some(preview) => self.offer_approval(&preview, context),
            // A plan that does not wait for approval is shown without its preview.
            None => {
                self.approves_preview = true;
                self.ask(RunEffect::Preview(self.plan.clone()), context);
            }
        }
    }

    /// Asks whether to approve what the preview shows.
    pub(super) fn offer_approval(&mut self, preview: &Preview, context: &mut Context<'_>) {
        if preview.left_out() > 0 || preview.is_cut {
            let message = "not everything is shown here: approve in the dashboard, or with `waypost approve`";
            return context.notify(NoteKind::Warning, message);
        }
        let seen = preview.seen();
        let mut lines = vec![preview.describe()];
        for (indent, line, _) in preview.lines() {
            lines.extend(line.lines().map(|line| format!("{:indent$}{}", "", text::reveal(line))));
        }
        let what = match self.intent {
            Intent::Execute => "approve and run",
            Intent::Watch => "approve",
        };
        let dialog = Dialog::offer("Approve", lines, ('a', what, Choice::Confirm)).to_be_read();
        self.dialog(OpenDialog::Approve(seen), dialog, context);
    }

    pub(super) fn reject(&mut self, context: &mut Context<'_>) {
        let lines = vec!["The reason, for the author of the plan.".to_owned()];
        self.dialog(OpenDialog::Reject, Dialog::ask("Reject the plan", lines, "", "reject"), context);
    }

    pub(super) fn pause_or_resume(&mut self, context: &mut Context<'_>) {
        match self.snapshot.as_ref().map(|snapshot| snapshot.phase) {
            Some(Phase::Paused) => self.write(PlanAction::Resume, "resumed", context),
            Some(_) | None => {
                self.write(PlanAction::Pause, "paused: no new tasks start, here or elsewhere", context);
            }
        }
    }

    pub(super) fn hold_or_lift(&mut self, context: &mut Context<'_>) {
        let Some(row) = self.row() else { return };
        let task = row.id.clone();
        let (action, said) = match row.standing == EffectiveStatus::Held {
            true => (PlanAction::UnholdTask(task), format!("{} is no longer held", row.id)),
            false => (PlanAction::HoldTask(task), format!("{} is held: it does not start", row.id)),
        };
        self.write(action, &said, context);
    }

    pub(super) fn cancel_task(&mut self, context: &mut Context<'_>) {
        let Some(row) = self.row() else { return };
        match row.group {
            Group::Asking | Group::Running | Group::Waiting => {
                let lines = vec![
                    format!("{}: {}", row.id, row.description),
                    "Its dependants are skipped.".to_owned(),
                ];
                let about = OpenDialog::CancelTask(row.id.clone());
                let cancel = ('c', "cancel the task", Choice::Confirm);
                self.dialog(about, Dialog::offer("Cancel a task", lines, cancel), context);
            }
            Group::Failed | Group::Ended => {
                context.notify(NoteKind::Warning, format!("{} has already ended", row.id))
            }
        }
    }

    pub(super) fn cancel_plan(&mut self, context: &mut Context<'_>) {
        let running = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.counts.in_progress() as usize);
        let lines = vec![
            match running {
                0 => "No task is running; the remaining tasks are cancelled.".to_owned(),
                count => format!(
                    "{} stopped, in this process and elsewhere; the remaining tasks are cancelled.",
                    are(count)
                ),
            },
            "T retries them later.".to_owned(),
        ];
        let cancel = ('c', "cancel the plan", Choice::Confirm);
        self.dialog(OpenDialog::CancelPlan, Dialog::offer("Cancel the plan", lines, cancel), context);
    }

    pub(super) fn retry(&mut self, context: &mut Context<'_>) {
        if let Some(row) = self.row() {
            let said = format!("{} will be retried", row.id);
            self.write(PlanAction::RetryTask(row.id.clone()), &said, context);
        }
    }

    pub(super) fn answer(&mut self, context: &mut Context<'_>) {
        let asked = self.row().and_then(|row| Some((row.id.clone(), row.question.clone()?)));
        let Some((task, asked)) = asked else {
            context.notify(NoteKind::Warning, "this task has no question");
            return;
        };
        let mut lines = vec![asked.text];
        let first = asked.choices.first().cloned().unwrap_or_default();
        if !asked.choices.is_empty() {
            lines.push(format!("Possible answers: {}", asked.choices.join(" | ")));
        }
        let typed = if asked.choices.len() == 1 { first.as_str() } else { "" };
        let dialog = Dialog::ask(format!("Answer {task}"), lines, typed, "send");
        self.dialog(OpenDialog::Answer(task, asked.digest), dialog, context);
    }

    pub(super) fn write(&self, action: PlanAction, success: &str, context: &mut Context<'_>) {
        let (plan, success) = (self.plan.clone(), success.to_owned());
        self.ask(RunEffect::Write { plan, action, success }, context);
    }

    pub(super) fn chose(&mut self, choice: &Choice, typed: &str, context: &mut Context<'_>) {
        let Some(open_dialog) = self.open_dialog.take() else { return };
        match (open_dialog, choice) {
            (OpenDialog::Approve(seen), _) => {
                self.ask(RunEffect::Approve(self.plan.clone(), seen), context);
            }
            (OpenDialog::Reject, _) if typed.trim().is_empty() => {
                context.notify(NoteKind::Warning, "a reason is required");
                self.reject(context);
            }
            (OpenDialog::Reject, _) => {
                self.write(PlanAction::Reject(typed.to_owned()), "rejected", context);
            }
            // An empty answer is most likely Enter pressed twice, and it would complete a task for a person.
            (OpenDialog::Answer(..), _) if typed.trim().is_empty() => {
                context.notify(NoteKind::Warning, "an answer must not be empty");
                self.answer(context);
            }
            (OpenDialog::Answer(task, seen), _) => {
                // The next question or a running task is more interesting than the answered one.
                self.chosen = None;
                let success = format!("answered {task}");
                let answer = typed.to_owned();
                self.write(PlanAction::Answer { task, answer, seen }, &success, context);
            }
            (OpenDialog::CancelTask(task), _) => {
                let said = format!("cancelled {task}");
                self.write(PlanAction::CancelTask(task), &said, context);
            }
            (OpenDialog::CancelPlan, _) => {
                self.write(PlanAction::CancelPlan, "cancelled the plan", context);
            }
            (OpenDialog::Leave, Choice::StopRun) => {
                self.end(Control::Stop, context);
                context.go(Flow::Pop);
            }
            (OpenDialog::Leave, _) => context.go(Flow::Pop),
        }
    }
}

/// `1 running task is`, `2 running tasks are`.
fn are(count: usize) -> String {
    format!("{} {}", text::count(count, "running task"), if count == 1 { "is" } else { "are" })
}
