//! Loading and saving in the editor: conflicts with what others write meanwhile, `$EDITOR`, and leaving.

use std::collections::HashSet;

use waypost_core::{PlanId, Status};
use waypost_formats::{Baseline, Dialect, Form as Shape, fit_to_plan, read, write};
use waypost_service::{Texts, difference_lines};
use waypost_store::Conflict;

use super::{AfterSave, Editor};
use crate::dialog::{Button, Choice, Dialog};
use crate::edit_buffer::{EditBuffer, Rebased};
use crate::messages::{Effect, Purpose, Reply, SaveError};
use crate::note::{ErrorMessage, NoteKind};
use crate::plan::{LoadedPlan, PlanKey};
use crate::screen::{Context, Destination, Flow};
use crate::text;

/// Maximum number of differences that a conflict shows; the others are counted.
const DIFFERENCES_MAX: usize = 12;

/// Shown above the overlaps.
const OVERLAP_INTRODUCTION: &str = "Nothing is saved yet. Undo shows the plan without your edits.";
const OVERLAP_COLUMNS_MAX: usize = 90;
/// Maximum number of lines of one overlap.
const OVERLAP_ROWS_MAX: usize = 4;
/// Rows for the border of the dialog, its buttons and the introduction.
const OVERLAP_ROWS_TAKEN: usize = 8;

impl Editor {
    pub(super) fn read(&mut self, context: &mut Context<'_>) {
        if self.reading {
            self.stale = true;
        } else {
            self.reading = true;
            context.effects.push(Effect::LoadPlan(self.plan.clone()));
        }
    }

    pub(super) fn written(&mut self, store: usize, plans: &[(PlanId, u64)], context: &mut Context<'_>) {
        let known = self.buffer.as_ref().map_or(0, |buffer| buffer.base().version);
        let mine = |(id, version): &&(PlanId, u64)| *id == self.plan.id && *version > known;
        if store == self.plan.store && plans.iter().any(|plan| mine(&plan)) {
            self.read(context);
        }
    }

    pub(super) fn reply(&mut self, reply: &Reply, context: &mut Context<'_>) {
        match reply {
            Reply::Plan { plan, loaded } if *plan == self.plan => {
                self.reading = false;
                match loaded {
                    Ok(loaded) => self.take(loaded, context),
                    Err(error) if self.buffer.is_none() => self.error = Some(error.clone()),
                    Err(error) => context.notify_error(error),
                }
                if std::mem::take(&mut self.stale) {
                    self.read(context);
                }
            }
            Reply::Saved { plan, saved } if *plan == self.plan => self.saved(plan, saved, context),
            Reply::Edited { purpose: Purpose::Plan(plan), text } if *plan == self.plan => match text {
                Ok(Some(text)) => self.take_text(text, context),
                Ok(None) => {}
                Err(error) => not_edited(error, context),
            },
            Reply::Edited { purpose: Purpose::Field, text } => match (text, &mut self.form) {
                (Ok(Some(text)), Some(form)) => form.set_text(text),
                (Err(error), _) => not_edited(error, context),
                (Ok(_), _) => {}
            },
            Reply::PlanPage { .. }
            | Reply::Plan { .. }
            | Reply::Text(..)
            | Reply::Found(..)
            | Reply::Saved { .. }
            | Reply::Created { .. }
            | Reply::Edited { .. }
            | Reply::Note(_)
            | Reply::Run(_)
            | Reply::History(_) => {}
        }
    }

    /// Takes over a loaded version. Edits are kept: they are based on it if its specs are unchanged, and kept apart from
    /// it otherwise. An open form or picker counts as an edit, because it was opened on the previous version.
    fn take(&mut self, loaded: &LoadedPlan, context: &mut Context<'_>) {
        self.awaits_approval = loaded.awaits_approval;
        self.error = None;
        let look = self.selected_task().cloned();
        let Some(buffer) = &mut self.buffer else {
            self.buffer = Some(EditBuffer::new(loaded.clone()));
            self.refold();
            if loaded.questions > 0 {
                let things = text::count(loaded.questions, "thing");
                let said = format!("clones disagree about {things} in this plan: Q shows what");
                context.notify(NoteKind::Warning, said);
            }
            return;
        };
        let version = loaded.draft.version;
        if version < buffer.base().version {
            return;
        }
        if buffer.adopt(loaded).is_some() {
            self.theirs = None;
            if std::mem::take(&mut self.rebasing) {
                context.notify(NoteKind::Good, format!("your edits are based on version {version} now"));
            }
        } else if self.saving.is_some() {
            // This version may be the one being saved; the reply to the save will show that.
            self.overtaken = true;
        } else if self.form.is_some() || self.picker.is_some() {
            self.theirs = Some(Box::new(loaded.clone()));
            let said = format!("version {version} was written by someone else; your input is kept");
            context.notify(NoteKind::Warning, said);
        } else if self.rebasing || buffer.is_changed() && self.written == Some(version) {
            self.rebase(loaded, context);
        } else if buffer.is_changed() {
            self.theirs = Some(Box::new(loaded.clone()));
            context.notify(
                NoteKind::Warning,
                format!("version {version} was written by someone else; your edits are kept"),
            );
        } else {
            *buffer = EditBuffer::new(loaded.clone());
            self.theirs = None;
        }
        self.select_task(look.as_ref());
    }

    /// Rebases the edits on a newer version, and shows the overlaps.
    fn rebase(&mut self, loaded: &LoadedPlan, context: &mut Context<'_>) {
        let Some(buffer) = &mut self.buffer else { return };
        let version = loaded.draft.version;
        let Rebased { buffer: rebased, overlaps } = buffer.rebased(loaded.clone());
        let is_changed = rebased.is_changed();
        *buffer = rebased;
        (self.theirs, self.rebasing) = (None, false);
        let said = if is_changed {
            format!("your edits are based on version {version} now; review, then save")
        } else {
            format!("version {version} already has all your edits")
        };
        context.notify(NoteKind::Warning, said);
        let columns = usize::from(context.area.width).saturating_sub(8).clamp(1, OVERLAP_COLUMNS_MAX);
        self.overlaps =
            overlaps.iter().flat_map(|overlap| text::wrap(overlap, columns, OVERLAP_ROWS_MAX)).collect();
        self.show_overlaps(context)
    }

    /// Shows as many overlaps as fit.
    fn show_overlaps(&mut self, context: &mut Context<'_>) {
        if self.overlaps.is_empty() {
            return;
        }
        let room = usize::from(context.area.height).saturating_sub(OVERLAP_ROWS_TAKEN).max(1);
        let rest = self.overlaps.split_off(room.min(self.overlaps.len()));
        let mut lines = vec![OVERLAP_INTRODUCTION.to_owned(), String::new()];
        lines.append(&mut self.overlaps);
        self.overlaps = rest;
        let mut buttons = vec![Button::close('b', "back to the edits")];
        if !self.overlaps.is_empty() {
            let left = text::count(self.overlaps.len(), "more line");
            buttons.insert(0, Button::new('m', left, Choice::More));
        }
        context.ask(Dialog { marked: 0, ..Dialog::new("Both of you changed these", lines, buttons) });
    }

    /// After a form or picker closes, takes over the version that others wrote meanwhile, unless there are edits.
    pub(super) fn catch_up(&mut self, context: &mut Context<'_>) {
        let is_changed = self.buffer.as_ref().is_some_and(EditBuffer::is_changed);
        if self.form.is_some() || self.picker.is_some() || is_changed && !self.rebasing {
            return;
        }
        if let Some(theirs) = self.theirs.take() {
            self.take(&theirs, context);
        }
    }

    pub(super) fn save(&mut self, then: AfterSave, context: &mut Context<'_>) {
        let Some(buffer) = &mut self.buffer else { return };
        buffer.check();
        let problems = buffer.problems().all();
        if let Some(saving) = &mut self.saving {
            if then != AfterSave::Stay {
                *saving = then;
            }
            return;
        }
        if !buffer.is_changed() {
            // The question may have been open while the edits were being saved.
            if matches!(then, AfterSave::Leave | AfterSave::Quit) {
                return self.leave(then, context);
            }
            context.notify(NoteKind::Good, "no unsaved edits");
            return;
        }
        if let Some(first) = problems.first() {
            let more = if problems.len() > 1 {
                format!(" (and {} more)", problems.len() - 1)
            } else {
                String::new()
            };
            context.notify(NoteKind::Wrong, format!("not saved: {first}{more}; {}", first.hint()));
            return;
        }
        let edits = buffer.send();
        let (plan, version) = (self.plan.clone(), buffer.base().version);
        self.saving = Some(then);
        context.effects.push(Effect::Save { plan, version, edits });
    }

    fn saved(&mut self, plan: &PlanKey, saved: &Result<u64, SaveError>, context: &mut Context<'_>) {
        let Some(then) = self.saving.take() else { return };
        let overtaken = std::mem::take(&mut self.overtaken);
        match (saved, &mut self.buffer) {
            (Ok(version), Some(buffer)) => buffer.stored(*version),
            (Err(_), Some(buffer)) => buffer.not_stored(),
            (_, None) => {}
        }
        match saved {
            Ok(version) => {
                self.written = Some(*version);
                context.notify(NoteKind::Good, format!("saved as version {version} of {}", plan.id));
                match then {
                    AfterSave::Stay => self.read(context),
                    AfterSave::Leave | AfterSave::Quit => {
                        // Keys pressed before the reply may have made more edits.
                        if self.is_typing() {
                            self.read(context);
                            return;
                        }
                        self.leave(then, context);
                        if matches!(context.flow, Flow::Ask(_)) {
                            self.read(context);
                        }
                    }
                    AfterSave::Execute => {
                        self.read(context);
                        context.effects.push(Effect::Execute(self.plan.clone()));
                    }
                }
            }
            Err(not_saved) => {
                if overtaken {
                    self.read(context);
                }
                context.ask(match not_saved {
                    SaveError::Refused(error) => {
                        let lines = vec![error.what.clone(), error.hint.clone()];
                        Dialog::new("Not saved", lines, vec![Button::close('b', "back to the edits")])
                    }
                    SaveError::Conflict(conflict) => conflict_dialog(conflict),
                });
            }
        }
    }

    pub(super) fn execute(&mut self, context: &mut Context<'_>) {
        let Some(buffer) = &self.buffer else { return };
        if context.settings.dry_run && buffer.base().state.phase.is_finished() {
            let phase = buffer.base().state.phase.as_str();
            context.notify(NoteKind::Warning, format!("[dry run] the plan is {phase}: nothing would run"));
            return;
        }
        if context.settings.dry_run {
            context.notify(NoteKind::Warning, "[dry run] the plan would run now; nothing was run");
            return;
        }
        if buffer.is_changed() {
            let lines = vec![format!(
                "{} not saved yet. Only the saved plan can run.",
                text::count(buffer.edits(), "edit")
            )];
            let buttons =
                vec![Button::new('s', "save and run", Choice::SaveAndExecute), Button::close('b', "back")];
            return context.ask(Dialog::new("Run the plan?", lines, buttons));
        }
        context.effects.push(Effect::Execute(self.plan.clone()));
    }

    pub(super) fn leave(&mut self, then: AfterSave, context: &mut Context<'_>) {
        let changed = self.buffer.as_ref().filter(|buffer| buffer.is_changed());
        let Some(buffer) = changed else {
            return context.go(if then == AfterSave::Quit { Flow::Quit } else { Flow::Pop });
        };
        let lines = vec![format!("{} would be lost.", text::count(buffer.edits().max(1), "unsaved edit"))];
        let buttons = vec![
            Button::new('s', "save and leave", Choice::SaveAndLeave),
            Button::new('d', "discard", Choice::Discard),
            Button::close('b', "back"),
        ];
        self.after_prompt = then;
        context.ask(Dialog::new("Leave the plan?", lines, buttons));
    }

    pub(super) fn chosen(&mut self, choice: &Choice, context: &mut Context<'_>) {
        match choice {
            Choice::SaveAndLeave => self.save(self.after_prompt, context),
            Choice::SaveAndExecute => self.save(AfterSave::Execute, context),
            Choice::Discard if self.after_prompt == AfterSave::Quit => context.go(Flow::Quit),
            Choice::Discard => context.go(Flow::Pop),
            Choice::Delete(said) => self.delete_confirmed(said, context),
            Choice::More => self.show_overlaps(context),
            Choice::Rebase => {
                self.rebasing = true;
                match self.theirs.take() {
                    Some(theirs) => self.take(&theirs, context),
                    None => self.read(context),
                }
            }
            Choice::Compare => {
                let known = self.buffer.as_ref().map_or(0, |buffer| buffer.base().version);
                context.go(Flow::Open(Destination::HistorySince(self.plan.clone(), known)));
            }
            Choice::TakeTheirs => {
                (self.buffer, self.theirs, self.rebasing) = (None, None, false);
                self.read(context);
            }
            Choice::EditAgain => {
                if let Some(text) = self.unparsed.take() {
                    let purpose = Purpose::Plan(self.plan.clone());
                    context.effects.push(Effect::EditText { purpose, text, ending: "md" });
                }
            }
            Choice::Take
            | Choice::Option(_)
            | Choice::Reject
            | Choice::Confirm
            | Choice::KeepRunning
            | Choice::StopRun
            | Choice::QuitAfterRuns
            | Choice::StopAndLeave
            | Choice::GoToEdits
            | Choice::DiscardAndLeave => {}
        }
    }

    pub(super) fn open_editor(&mut self, context: &mut Context<'_>) {
        let Some(buffer) = &self.buffer else { return };
        match write(&buffer.draft(), Dialect::Markdown, Shape::Document) {
            Ok(writing) => {
                let purpose = Purpose::Plan(self.plan.clone());
                context.effects.push(Effect::EditText { purpose, text: writing.text, ending: "md" });
            }
            Err(error) => {
                context.notify(NoteKind::Wrong, format!("the plan cannot be converted to text: {error}"))
            }
        }
    }

    /// Makes a plan edited as text one undoable edit. A text that cannot be parsed is kept, and can be edited again.
    fn take_text(&mut self, typed: &str, context: &mut Context<'_>) {
        let Some(buffer) = &mut self.buffer else { return };
        let (wrong, mut drafts, assigned_ids) = match read(typed, Some(Dialect::Markdown), None) {
            Ok(reading) => {
                let wrong: Vec<String> =
                    reading.problems.iter().map(|problem| format!("{problem}; {}", problem.hint())).collect();
                (wrong, reading.drafts, reading.assigned_ids)
            }
            Err(error) => (vec![error.to_string()], Vec::new(), HashSet::new()),
        };
        let Some(draft) = drafts.first_mut().filter(|_| wrong.is_empty()) else {
            self.unparsed = Some(typed.to_owned());
            let lines = if wrong.is_empty() { vec!["The text contains no plan.".to_owned()] } else { wrong };
            let buttons = vec![
                Button::new('e', "edit again", Choice::EditAgain),
                Button::close('b', "discard the text"),
            ];
            let dialog = Dialog::new("The text cannot be read", lines, buttons);
            return context.ask(Dialog { marked: 0, ..dialog });
        };
        let before = buffer.draft();
        let baseline = Baseline::Format(Dialect::Markdown, None);
        fit_to_plan(draft, &assigned_ids, baseline, &before, buffer.free_ids());
        let ticked = draft.tasks.iter().filter(|task| task.state.status == Status::Done).filter(|task| {
            let row = buffer.place(&task.spec.id).map(|at| &buffer.rows()[at]);
            row.is_none_or(|row| row.task.state.status != Status::Done)
        });
        let ticked = ticked.count();
        buffer.replace(draft, "edits in $EDITOR");
        if ticked > 0 {
            let said = format!(
                "{} ticked in the text stay open: use `waypost done` to finish a task",
                text::count(ticked, "task")
            );
            context.notify(NoteKind::Warning, said);
        }
        let look = self.selected_task().cloned();
        self.select_task(look.as_ref());
    }

    /// A newer version in the store, which the edits are not based on.
    pub(super) fn newer(&self) -> Option<u64> {
        self.theirs.as_ref().map(|theirs| theirs.draft.version)
    }
}

/// Shows why an edited text was not used, and the file that keeps it; too long for a note.
fn not_edited(error: &ErrorMessage, context: &mut Context<'_>) {
    let mut lines: Vec<String> = error.what.split("; ").map(|part| part.trim().to_owned()).collect();
    lines.extend(Some(error.hint.clone()).filter(|hint| !hint.is_empty()));
    context.ask(Dialog::new("The text was not used", lines, vec![Button::close('b', "back")]));
}

/// Shows what changed since, and offers a choice. The edits stay unless the user discards them.
fn conflict_dialog(conflict: &Conflict) -> Dialog {
    let mut writers: Vec<String> = conflict.writers.iter().map(ToString::to_string).collect();
    writers.dedup();
    let mut lines = vec![
        format!(
            "Your edits are based on version {}; {} wrote version {}:",
            conflict.known,
            writers.join(", "),
            conflict.current
        ),
        String::new(),
    ];
    let shown = conflict.differences.len().min(DIFFERENCES_MAX);
    let short = |value: &str| text::truncate(value, 40).into_owned();
    let different = difference_lines(&conflict.differences[..shown], Texts::Whole, &short);
    lines.extend(different.into_iter().map(|(_, line)| line));
    if conflict.differences_total > shown {
        lines.push(format!("… and {} more", conflict.differences_total - shown));
    }
    let buttons = vec![
        Button::new('r', "rebase mine", Choice::Rebase),
        Button::new('v', "review theirs", Choice::Compare),
        Button::new('d', "discard", Choice::TakeTheirs),
        Button::close('b', "back"),
    ];
    Dialog { marked: 0, ..Dialog::new("This plan changed while you were editing", lines, buttons) }
}
