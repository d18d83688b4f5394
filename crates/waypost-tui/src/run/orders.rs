//! What a person may say to a plan from the run view: dialogs, and the orders that come of them.

use waypost_core::{Command, Phase};
use waypost_run::Control;

use super::{Asking, Group, Intent, Ours, PreviewedTask, RunEffect, RunView};
use crate::app::{Context, Flow, NoteKind, Trouble};
use crate::dialog::{Button, Choice, Dialog};
use crate::keys::Action;
use crate::text;

/// Whether a key tells the plan something, so that a dry run has none of it.
pub(super) fn is_order(action: Action) -> bool {
    matches!(
        action,
        Action::Approve
            | Action::Reject
            | Action::Pause
            | Action::Cancel
            | Action::CancelPlan
            | Action::Retry
            | Action::RetryAll
            | Action::Answer
            | Action::Open
    )
}

impl RunView {
    /// A dialog that this screen opens.
    pub(super) fn dialog(&mut self, about: Asking, dialog: Dialog) -> Flow {
        self.asking = Some(about);
        Flow::Ask(dialog)
    }

    /// Why it does not run, with what to do about it: more than a line at the bottom can hold.
    pub(super) fn not_started(&mut self, trouble: &Trouble) -> Flow {
        self.asking = None;
        let lines = vec![trouble.what.clone(), String::new(), trouble.hint.clone()];
        Flow::Ask(Dialog::new("It does not run", lines, vec![Button::close('b', "back")]))
    }

    pub(super) fn leave(&mut self) -> Flow {
        match self.ours {
            Ours::Nothing => Flow::Pop,
            Ours::Starting | Ours::Running | Ours::Ending(_) => {
                let lines = vec![
                    "This process runs the plan.".to_owned(),
                    "Leave it running, and come back from the list of plans; or stop what runs now. The plan can always go on later."
                        .to_owned(),
                ];
                let buttons = vec![
                    Button::new('l', "let it go on", Choice::LetGoOn),
                    Button::new('s', "stop it", Choice::StopRun),
                    Button::close('b', "back"),
                ];
                self.dialog(Asking::Leave, Dialog::new("Leave the run", lines, buttons))
            }
        }
    }

    /// The first time nothing new is started, the second time what runs is stopped.
    pub(super) fn stop(&mut self, context: &mut Context<'_>) -> Flow {
        let control = match self.ours {
            Ours::Running => Control::Drain,
            Ours::Ending(_) => Control::Stop,
            Ours::Nothing | Ours::Starting => {
                let words = "this process does not run it; p pauses the plan for all, C cancels it";
                context.say(NoteKind::Warning, words);
                return Flow::Stay;
            }
        };
        self.end(control, context);
        Flow::Stay
    }

    fn end(&mut self, control: Control, context: &mut Context<'_>) {
        self.ours = Ours::Ending(control);
        self.ask(RunEffect::End(self.plan.clone(), control), context);
        let words = match control {
            Control::Drain => "nothing new starts here; waiting for what runs (once more stops it)",
            Control::Stop => "stopping what runs",
        };
        context.say(NoteKind::Warning, words);
    }

    pub(super) fn approve(&mut self, context: &mut Context<'_>) -> Flow {
        let needed = self.standings.as_ref().is_some_and(|standings| standings.needs_approval);
        let Some(preview) = self.preview.as_ref().filter(|_| needed) else {
            context.say(NoteKind::Warning, "nothing waits for approval here");
            return Flow::Stay;
        };
        let version = preview.version;
        let mut lines = vec![preview.words()];
        for (indent, line) in preview.tasks.iter().flat_map(PreviewedTask::lines) {
            lines.extend(line.lines().map(|line| format!("{:indent$}{line}", "")));
        }
        if preview.left_out() > 0 {
            lines.push(format!("  … and {} that are not shown", text::count(preview.left_out(), "task")));
        }
        let what = match self.intent {
            Intent::Execute => "approve and run",
            Intent::Watch => "approve",
        };
        let buttons = vec![Button::new('a', what, Choice::Confirm), Button::close('b', "back")];
        self.dialog(Asking::Approve(version), Dialog::new("Approve", lines, buttons))
    }

    pub(super) fn reject(&mut self, context: &mut Context<'_>) -> Flow {
        if !self.standings.as_ref().is_some_and(|standings| standings.needs_approval) {
            context.say(NoteKind::Warning, "nothing waits for approval here");
            return Flow::Stay;
        }
        let lines = vec!["What is wrong with it? Whoever wrote the plan can read it.".to_owned()];
        self.dialog(Asking::Reject, Dialog::ask("Do not allow it", lines, ""))
    }

    pub(super) fn pause_or_resume(&mut self, context: &mut Context<'_>) {
        match self.standings.as_ref().map(|standings| standings.phase) {
            Some(Phase::Paused) => self.order(Command::Resume, "goes on", context),
            Some(_) | None => {
                let command = Command::Pause { reason: String::new() };
                self.order(command, "paused: nothing new starts, here or elsewhere", context);
            }
        }
    }

    pub(super) fn cancel_task(&mut self, context: &mut Context<'_>) -> Flow {
        let Some(row) = self.row() else { return Flow::Stay };
        match row.group {
            Group::Asking | Group::Running | Group::Waiting => {
                let lines =
                    vec![format!("{}: {}", row.id, row.description), "What needs it is skipped.".to_owned()];
                let buttons =
                    vec![Button::new('c', "cancel the task", Choice::Confirm), Button::close('b', "back")];
                let about = Asking::CancelTask(row.id.clone());
                self.dialog(about, Dialog::new("Cancel a task", lines, buttons))
            }
            Group::Failed | Group::Ended => {
                context.say(NoteKind::Warning, format!("{} has ended already", row.id));
                Flow::Stay
            }
        }
    }

    pub(super) fn cancel_plan(&mut self) -> Flow {
        let running = self.standings.as_ref().map_or(0, |standings| standings.counts.in_progress() as usize);
        let lines = vec![
            match running {
                0 => "Nothing runs now; what is left is cancelled.".to_owned(),
                count => format!("{} stopped, whoever runs it; what is left is cancelled.", are(count)),
            },
            "`retry all` (T) sets it back later.".to_owned(),
        ];
        let buttons = vec![Button::new('c', "cancel the plan", Choice::Confirm), Button::close('b', "back")];
        self.dialog(Asking::CancelPlan, Dialog::new("Cancel the plan", lines, buttons))
    }

    pub(super) fn retry(&mut self, context: &mut Context<'_>) {
        if let Some(row) = self.row() {
            let said = format!("{} is to be done again", row.id);
            self.order(Command::RetryTask { task: row.id.clone() }, &said, context);
        }
    }

    pub(super) fn answer(&mut self, context: &mut Context<'_>) -> Flow {
        let asked = self.row().and_then(|row| Some((row.id.clone(), row.question.clone()?)));
        let Some((task, asked)) = asked else {
            context.say(NoteKind::Warning, "this task asks nothing");
            return Flow::Stay;
        };
        let mut lines = vec![asked.text];
        let first = asked.choices.first().cloned().unwrap_or_default();
        if !asked.choices.is_empty() {
            lines.push(format!("It can be answered: {}", asked.choices.join(" | ")));
        }
        let typed = if asked.choices.len() == 1 { first.as_str() } else { "" };
        let dialog = Dialog::ask(format!("Answer {task}"), lines, typed);
        self.dialog(Asking::Answer(task), dialog)
    }

    pub(super) fn order(&self, command: Command, said: &str, context: &mut Context<'_>) {
        let (plan, command, said) = (self.plan.clone(), Box::new(command), said.to_owned());
        self.ask(RunEffect::Order { plan, command, said }, context);
    }

    pub(super) fn chose(&mut self, choice: &Choice, typed: &str, context: &mut Context<'_>) -> Flow {
        let Some(asking) = self.asking.take() else { return Flow::Stay };
        match (asking, choice) {
            (Asking::Approve(version), _) => {
                self.ask(RunEffect::Approve(self.plan.clone(), version), context);
            }
            (Asking::Reject, _) if typed.trim().is_empty() => {
                context.say(NoteKind::Warning, "say why: whoever wrote the plan has only your words");
                return self.reject(context);
            }
            (Asking::Reject, _) => {
                self.order(Command::Reject { reason: typed.to_owned() }, "not allowed", context);
            }
            // Enter pressed twice is no answer, and what is for a person to do would be done by it.
            (Asking::Answer(_), _) if typed.trim().is_empty() => {
                context.say(NoteKind::Warning, "an answer has words: `done`, say, or `no`");
                return self.answer(context);
            }
            (Asking::Answer(task), _) => {
                // What is asked next, or runs now, is more interesting than what has its answer.
                self.chosen = None;
                let (plan, answer) = (self.plan.clone(), typed.to_owned());
                self.ask(RunEffect::Answer { plan, task, answer }, context);
            }
            (Asking::CancelTask(task), _) => {
                let said = format!("{task} is cancelled");
                self.order(Command::CancelTask { task, reason: String::new() }, &said, context);
            }
            (Asking::CancelPlan, _) => {
                let command = Command::FinishPlan { phase: Phase::Cancelled, summary: String::new() };
                self.order(command, "cancelled the plan", context);
            }
            (Asking::Leave, Choice::StopRun) => {
                self.end(Control::Stop, context);
                return Flow::Pop;
            }
            (Asking::Leave, _) => return Flow::Pop,
        }
        Flow::Stay
    }
}

/// `1 running task is`, `2 running tasks are`.
fn are(count: usize) -> String {
    format!("{} {}", text::count(count, "running task"), if count == 1 { "is" } else { "are" })
}
