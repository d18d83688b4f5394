//! The user's actions on a plan in the run view, and their dialogs.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use waypost_core::{EffectiveStatus, Phase, TaskAct, TaskId};
use waypost_run::Control;
use waypost_service::{AnswerChoice, Seen};

use super::{
    Choosable, DRY_RUN, Group, Intent, LocalRun, OpenDialog, PlanAction, Preview, RunEffect, RunView,
    TaskQuestion,
};
use crate::dialog::menu::{Menu, MenuOption};
use crate::dialog::{Button, Choice, Dialog};
use crate::note::{ErrorMessage, NoteKind};
use crate::screen::{Context, Destination, Flow};
use crate::text;

/// Columns of a choice that fits in the list of every terminal that is large enough.
const CHOICE_COLUMNS: usize = 44;

impl RunView {
    /// Opens a dialog of this screen.
    pub(super) fn dialog(&mut self, about: OpenDialog, dialog: Dialog, context: &mut Context<'_>) {
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
                let words = "not running in this process; P pauses the plan for all, C cancels it";
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
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.counts.total == 0) {
            return context.notify(NoteKind::Warning, "the plan has no tasks: there is nothing to approve");
        }
        let (about, dialog) = self.approval_dialog(preview);
        self.dialog(about, dialog, context);
    }

    fn approval_dialog(&self, preview: &Preview) -> (OpenDialog, Dialog) {
        let mut lines = vec![preview.describe()];
        for (indent, line, _) in preview.lines() {
            lines.extend(line.lines().map(|line| format!("{:indent$}{}", "", text::reveal(line))));
        }
        let what = match self.intent {
            Intent::Execute => "approve and run",
            Intent::Watch | Intent::Review | Intent::Resolve => "approve",
        };
        let buttons = vec![
            // Not the key that opens it, which may be pressed twice or held down.
            Button::new('A', what, Choice::Confirm),
            Button::new('R', "reject", Choice::Reject),
            Button::close('b', "back"),
        ];
        let dialog = Dialog::new("Approve", lines, buttons).to_be_read();
        (OpenDialog::Approve(preview.seen()), dialog)
    }

    /// The version that the open dialog is about, if it reviews what will run.
    pub(super) fn reviewed_version(&self) -> Option<u64> {
        match self.open_dialog.as_ref()? {
            OpenDialog::Approve(seen) => Some(seen.version),
            OpenDialog::Changed(_, latest) => Some(latest.version),
            OpenDialog::Reject
            | OpenDialog::Answer(..)
            | OpenDialog::Finish(..)
            | OpenDialog::TaskStatus(_)
            | OpenDialog::CancelTask(_)
            | OpenDialog::CancelPlan
            | OpenDialog::Resolve(..)
            | OpenDialog::ResolveText(_)
            | OpenDialog::Leave => None,
        }
    }

    /// Reports that the plan changed while it is reviewed, so that nothing is approved that was not shown.
    pub(super) fn update_review(&mut self, latest: &Preview, context: &mut Context<'_>) {
        let seen = match &self.open_dialog {
            Some(OpenDialog::Approve(seen) | OpenDialog::Changed(seen, _)) => seen.clone(),
            Some(_) | None => return,
        };
        if latest.seen() == seen {
            return;
        }
        let (about, dialog) = match latest.digest == seen.digest {
            true => self.approval_dialog(latest),
            false => changed_dialog(seen, latest),
        };
        self.open_dialog = Some(about);
        context.go(Flow::Replace(Box::new(dialog)));
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
        if row.standing == EffectiveStatus::Disputed {
            let words = "clones disagree about it, so it does not start: Q answers";
            return context.notify(NoteKind::Warning, words);
        }
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

    /// The choice that a digit stands for, if the selected task asks a question with numbered choices.
    pub(crate) fn choice_of(&self, key: KeyEvent) -> Option<usize> {
        let KeyCode::Char(digit @ '1'..='9') = key.code else { return None };
        let asked =
            self.row()?.question.as_ref().filter(|_| self.find.is_none() && key.modifiers.is_empty())?;
        let place = digit as usize - '1' as usize;
        (place < asked.choices.len()).then_some(place)
    }

    /// Asks for the answer to the question of the task: one of its choices, or a text.
    pub(super) fn answer(&mut self, context: &mut Context<'_>) {
        self.answer_at(None, context);
    }

    /// Asks for the answer, with one of the choices marked.
    pub(super) fn answer_at(&mut self, marked: Option<usize>, context: &mut Context<'_>) {
        if context.settings.dry_run {
            return context.notify(NoteKind::Warning, DRY_RUN);
        }
        let asked = self.row().and_then(|row| Some((row.id.clone(), row.question.clone()?)));
        let Some((task, asked)) = asked else {
            context.notify(NoteKind::Warning, "this task has no question");
            return;
        };
        let choices = choices(&asked);
        let lines = lines_of(&asked);
        if choices.is_empty() {
            let dialog = Dialog::ask(format!("Answer {task}"), lines, "", "send").to_be_read();
            return self.dialog(OpenDialog::Answer(task, asked.digest, choices), dialog, context);
        }
        let lines = with_long_choices(lines, &choices);
        let options = choices.iter().map(|choice| match choice {
            Choosable::Whole(answer) if asked.is_for_person => {
                MenuOption::new(if answer == "yes" { "Done" } else { "Not done: it failed" }, "")
            }
            Choosable::Whole(answer) => MenuOption::new(text::reveal(answer), ""),
            Choosable::WithText("yes") => MenuOption::new("Done, with a result …", ""),
            Choosable::WithText(_) => MenuOption::new("Not done, with a reason …", ""),
        });
        let title = if asked.is_for_person { format!("Your task {task}") } else { format!("Answer {task}") };
        // Enter twice by mistake answers nothing.
        let menu = Menu::new(options.collect());
        let menu = marked.map_or_else(|| menu.clone().unmarked(), |choice| menu.clone().at(choice));
        let dialog = Dialog::choose_from(title, lines, menu, "choose").to_be_read();
        self.dialog(OpenDialog::Answer(task, asked.digest, choices), dialog, context);
    }

    /// Takes a chosen answer, or asks for the text that belongs to it.
    fn answer_chosen(&mut self, task: TaskId, seen: String, choice: &Choosable, context: &mut Context<'_>) {
        match choice {
            Choosable::Whole(answer) => self.send_answer(task, answer.clone(), seen, context),
            Choosable::WithText(word) => {
                let label = if *word == "yes" { "The result:" } else { "The reason:" };
                let dialog = Dialog::ask(format!("Your task {task}"), vec![label.to_owned()], "", "send");
                self.dialog(OpenDialog::Finish(task, seen, word), dialog, context);
            }
        }
    }

    fn send_answer(&mut self, task: TaskId, answer: String, seen: String, context: &mut Context<'_>) {
        // The next question or a running task is more interesting than the answered one.
        self.chosen = None;
        let success = format!("answered {task}");
        self.write(PlanAction::Answer { task, answer, seen }, &success, context);
    }

    /// Lets the status of the task be chosen, of those that it can have next.
    pub(super) fn set_status(&mut self, context: &mut Context<'_>) {
        let Some(row) = self.row() else { return };
        let mut lines = vec![format!("It is {}.", row.standing.as_str())];
        let mut statuses = statuses(row.standing, &row.id);
        if row.question.as_ref().is_some_and(|asked| asked.is_for_person) {
            // Whoever ends it names what was read, so that belongs to its own dialog.
            statuses.retain(|(action, _)| !ends_by_hand(action));
            lines.push("It is a task for a person: Enter in the list ends it.".to_owned());
        }
        let (actions, options): (Vec<_>, Vec<_>) = statuses.into_iter().unzip();
        let title = format!("Status of {}", row.id);
        let dialog = Dialog::choose_from(title, lines, Menu::new(options).unmarked(), "set");
        self.dialog(OpenDialog::TaskStatus(actions), dialog, context);
    }

    pub(super) fn write(&self, action: PlanAction, success: &str, context: &mut Context<'_>) {
        let (plan, success) = (self.plan.clone(), success.to_owned());
        self.ask(RunEffect::Write { plan, action, success }, context);
    }

    pub(super) fn chose(&mut self, choice: &Choice, typed: &str, context: &mut Context<'_>) {
        let Some(open_dialog) = self.open_dialog.take() else { return };
        match (open_dialog, choice) {
            (OpenDialog::Approve(_), Choice::Reject) => self.reject(context),
            (OpenDialog::Changed(seen, _), Choice::Compare) => {
                context.go(Flow::Open(Destination::HistorySince(self.plan.clone(), seen.version)));
            }
            (OpenDialog::Changed(_, latest), _) => self.offer_approval(&latest, context),
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
            (OpenDialog::Answer(..), Choice::Take) if typed.trim().is_empty() => {
                context.notify(NoteKind::Warning, "an answer must not be empty");
                self.answer(context);
            }
            (OpenDialog::Answer(task, seen, _), Choice::Take) => {
                self.send_answer(task, typed.to_owned(), seen, context);
            }
            (OpenDialog::Answer(task, seen, choices), Choice::Option(at)) => {
                if let Some(choice) = choices.get(*at) {
                    self.answer_chosen(task, seen, choice, context);
                }
            }
            (OpenDialog::Answer(..), _) => {}
            (OpenDialog::Finish(task, seen, word), _) => {
                let typed = typed.trim();
                let answer = if typed.is_empty() { word.to_owned() } else { format!("{word}, {typed}") };
                self.send_answer(task, answer, seen, context);
            }
            (OpenDialog::TaskStatus(actions), Choice::Option(at)) => {
                if let Some(action) = actions.get(*at) {
                    self.write(action.clone(), "set the status", context);
                }
            }
            (OpenDialog::TaskStatus(_), _) => {}
            (OpenDialog::CancelTask(task), _) => {
                let said = format!("cancelled {task}");
                self.write(PlanAction::CancelTask(task), &said, context);
            }
            (OpenDialog::CancelPlan, _) => {
                self.write(PlanAction::CancelPlan, "cancelled the plan", context);
            }
            (OpenDialog::Resolve(question, resolutions), Choice::Option(at)) => {
                if let Some(resolution) = resolutions.get(*at).cloned() {
                    self.resolved(*question, resolution, context);
                }
            }
            (OpenDialog::Resolve(..), _) => {}
            (OpenDialog::ResolveText(seen), _) => {
                self.send_resolution(seen, AnswerChoice::Text(typed.to_owned()), context);
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

/// What can be chosen as an answer; empty if any text can be one.
fn choices(asked: &TaskQuestion) -> Vec<Choosable> {
    if asked.is_for_person {
        return vec![
            Choosable::Whole("yes".to_owned()),
            Choosable::WithText("yes"),
            Choosable::WithText("no"),
            Choosable::Whole("no".to_owned()),
        ];
    }
    asked.choices.iter().cloned().map(Choosable::Whole).collect()
}

/// The question, and below it the choices that the list may cut, in full.
fn with_long_choices(mut lines: Vec<String>, choices: &[Choosable]) -> Vec<String> {
    let long = choices.iter().enumerate().filter_map(|(at, choice)| match choice {
        Choosable::Whole(answer) if text::width(answer) > CHOICE_COLUMNS => Some((at + 1, answer)),
        Choosable::Whole(_) | Choosable::WithText(_) => None,
    });
    for (number, answer) in long {
        lines.extend([String::new(), format!("Answer {number} in full:")]);
        lines.extend(answer.lines().map(|line| format!("  {}", text::reveal(line))));
    }
    lines
}

/// The question with everything that its digest covers, in full: whoever answers has read it.
fn lines_of(asked: &TaskQuestion) -> Vec<String> {
    let lines = |text: &str| text.lines().map(|line| text::reveal(line).into_owned()).collect::<Vec<_>>();
    let mut shown = lines(&asked.text);
    for (name, text) in &asked.about {
        shown.push(String::new());
        shown.push(format!("{name}:"));
        shown.extend(lines(text).into_iter().map(|line| format!("  {line}")));
    }
    shown
}

/// What can be done by hand with a task of this status.
pub(crate) fn statuses(standing: EffectiveStatus, task: &TaskId) -> Vec<(PlanAction, MenuOption)> {
    let done = || (PlanAction::CompleteTask(task.clone()), MenuOption::new("done", "it is finished"));
    let failed = || (PlanAction::FailTask(task.clone()), MenuOption::new("failed", "it cannot be done"));
    let skip = || {
        (PlanAction::SkipTask(task.clone()), MenuOption::new("skipped", "it is not needed; dependants start"))
    };
    let cancel = || {
        (
            PlanAction::CancelTask(task.clone()),
            MenuOption::new("cancelled", "it is not wanted; dependants are skipped"),
        )
    };
    let hold = || {
        (
            PlanAction::HoldTask(task.clone()),
            MenuOption::new("held", "it does not start until the hold is lifted"),
        )
    };
    let lift = || (PlanAction::UnholdTask(task.clone()), MenuOption::new("not held", "it may start"));
    let retry = || {
        (
            PlanAction::RetryTask(task.clone()),
            MenuOption::new("retried", "with what was skipped because of it"),
        )
    };
    let reopen =
        || (PlanAction::ReopenTask(task.clone()), MenuOption::new("pending", "it is to be done again"));
    let release = || {
        (
            PlanAction::ReopenTask(task.clone()),
            MenuOption::new("pending", "it is taken from whoever works on it"),
        )
    };
    let of = |act: &TaskAct| match act {
        // Enter in the list answers it.
        TaskAct::Answer => None,
        TaskAct::Done => Some(done()),
        TaskAct::Fail => Some(failed()),
        TaskAct::Release => Some(release()),
        TaskAct::Hold => Some(hold()),
        TaskAct::Unhold => Some(lift()),
        TaskAct::Retry if matches!(standing, EffectiveStatus::Failed | EffectiveStatus::Cancelled) => {
            Some(retry())
        }
        TaskAct::Retry => Some(reopen()),
        TaskAct::Skip => Some(skip()),
        TaskAct::Cancel => Some(cancel()),
    };
    standing.acts().iter().filter_map(of).collect()
}

/// Says that a newer version arrived than the one that was reviewed, which can no longer be approved.
fn changed_dialog(seen: Seen, latest: &Preview) -> (OpenDialog, Dialog) {
    let lines = match latest.version == seen.version {
        true => vec![
            "What the plan would run changed while you were reading it: the configuration, or what it gets from other plans."
                .to_owned(),
        ],
        false => vec![format!("Version {} arrived while you were reading version {}.", latest.version, seen.version)],
    };
    let lines = [lines, vec!["Nothing was approved.".to_owned()]].concat();
    let compare = Button::new('v', "see what changed", Choice::Compare);
    let review = Button::new('a', format!("review version {}", latest.version), Choice::More);
    let mut buttons = vec![review, Button::close('b', "back")];
    if latest.version != seen.version {
        buttons.insert(0, compare);
    }
    (OpenDialog::Changed(seen, Box::new(latest.clone())), Dialog::new("The plan changed", lines, buttons))
}

/// Whether an action says how a task ended.
fn ends_by_hand(action: &PlanAction) -> bool {
    matches!(action, PlanAction::CompleteTask(_) | PlanAction::FailTask(_) | PlanAction::SkipTask(_))
}
