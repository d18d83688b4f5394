//! The editor and the store: reading the plan, writing the edits, what others write meanwhile, and leaving.

use waypost_core::{PlanId, Status};
use waypost_dialects::{Dialect, Form as Shape, keep_foreign, read, write};
use waypost_engine::{Texts, difference_lines};
use waypost_store::Conflict;

use super::Editor;
use crate::app::{
    Answer, Context, Effect, Flow, Loaded, NotSaved, NoteKind, PlanKey, Purpose, Screen, Trouble,
};
use crate::browser::told;
use crate::dialog::{Button, Choice, Dialog};
use crate::history::History;
use crate::sheet::Sheet;
use crate::text;

/// Differences that a conflict shows; the others are counted.
const DIFFERENCES_MAX: usize = 12;

/// What comes after the edits have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterwards {
    Stay,
    Leave,
    Quit,
    Execute,
}

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
        let known = self.sheet.as_ref().map_or(0, |sheet| sheet.base().version);
        let mine = |(id, version): &&(PlanId, u64)| *id == self.plan.id && *version > known;
        if store == self.plan.store && plans.iter().any(|plan| mine(&plan)) {
            self.read(context);
        }
    }

    pub(super) fn answer(&mut self, answer: &Answer, context: &mut Context<'_>) -> Flow {
        match answer {
            Answer::Plan { plan, loaded } if *plan == self.plan => {
                self.reading = false;
                match loaded {
                    Ok(loaded) => self.take(loaded, context),
                    Err(trouble) if self.sheet.is_none() => self.trouble = Some(trouble.clone()),
                    Err(trouble) => context.say(NoteKind::Wrong, told(trouble)),
                }
                if std::mem::take(&mut self.stale) {
                    self.read(context);
                }
                Flow::Stay
            }
            Answer::Saved { plan, saved } if *plan == self.plan => self.saved(plan, saved, context),
            Answer::Edited { purpose: Purpose::Plan(plan), text } if *plan == self.plan => match text {
                Ok(Some(text)) => self.take_text(text, context),
                Ok(None) => Flow::Stay,
                Err(trouble) => not_edited(trouble),
            },
            Answer::Edited { purpose: Purpose::Field, text } => {
                match (text, &mut self.form) {
                    (Ok(Some(text)), Some(form)) => form.set_text(text),
                    (Err(trouble), _) => return not_edited(trouble),
                    (Ok(_), _) => {}
                }
                Flow::Stay
            }
            _ => Flow::Stay,
        }
    }

    /// The plan as the store has it. Edits stay: they are made on it if it says what it said before, and kept apart from
    /// it if not.
    fn take(&mut self, loaded: &Loaded, context: &mut Context<'_>) {
        self.awaits_approval = loaded.awaits_approval;
        self.trouble = None;
        let look = self.selected_task().cloned();
        let Some(sheet) = &mut self.sheet else {
            self.sheet = Some(Sheet::new(loaded.clone()));
            self.refold();
            return;
        };
        let version = loaded.draft.version;
        if version < sheet.base().version {
            return;
        }
        if std::mem::take(&mut self.rebasing) {
            *sheet = sheet.rebased(loaded.clone());
            self.theirs = None;
            context.say(
                NoteKind::Warning,
                format!("your edits stand on version {version} now; look, then save"),
            );
        } else if sheet.adopt(loaded).is_some() {
            self.theirs = None;
        } else if sheet.is_changed() && self.written != Some(version) {
            self.theirs = Some(Box::new(loaded.clone()));
            context.say(
                NoteKind::Warning,
                format!("somebody else wrote version {version}; your edits are kept"),
            );
        } else {
            *sheet = Sheet::new(loaded.clone());
            self.theirs = None;
        }
        self.look_at(look.as_ref());
    }

    pub(super) fn save(&mut self, afterwards: Afterwards, context: &mut Context<'_>) -> Flow {
        let Some(sheet) = &mut self.sheet else { return Flow::Stay };
        sheet.check();
        let problems = sheet.problems().all();
        if self.saving.is_some() {
            return Flow::Stay;
        }
        if !sheet.is_changed() {
            context.say(NoteKind::Good, "nothing to save: the store has it all");
            return Flow::Stay;
        }
        if let Some(first) = problems.first() {
            let more = if problems.len() > 1 {
                format!(" (and {} more)", problems.len() - 1)
            } else {
                String::new()
            };
            context.say(NoteKind::Wrong, format!("not saved: {first}{more}; {}", first.hint()));
            return Flow::Stay;
        }
        let commands = sheet.commands();
        let (plan, version) = (self.plan.clone(), sheet.base().version);
        self.saving = Some(afterwards);
        context.effects.push(Effect::Save { plan, version, commands });
        Flow::Stay
    }

    fn saved(&mut self, plan: &PlanKey, saved: &Result<u64, NotSaved>, context: &mut Context<'_>) -> Flow {
        let Some(afterwards) = self.saving.take() else { return Flow::Stay };
        match saved {
            Ok(version) => {
                self.written = Some(*version);
                context.say(NoteKind::Good, format!("saved as version {version} of {}", plan.id));
                match afterwards {
                    Afterwards::Stay => self.read(context),
                    Afterwards::Leave => return Flow::Pop,
                    Afterwards::Quit => return Flow::Quit,
                    Afterwards::Execute => {
                        self.read(context);
                        context.effects.push(Effect::Execute(self.plan.clone()));
                    }
                }
                Flow::Stay
            }
            Err(NotSaved::Refused(trouble)) => {
                let lines = vec![trouble.what.clone(), trouble.hint.clone()];
                Flow::Ask(Dialog::new("Not saved", lines, vec![Button::close('b', "back to the edits")]))
            }
            Err(NotSaved::Conflict(conflict)) => Flow::Ask(conflict_dialog(conflict)),
        }
    }

    pub(super) fn execute(&mut self, context: &mut Context<'_>) -> Flow {
        let Some(sheet) = &self.sheet else { return Flow::Stay };
        if context.settings.dry_run && sheet.base().state.phase.is_finished() {
            let phase = sheet.base().state.phase.word();
            context.say(NoteKind::Warning, format!("[dry run] the plan is {phase}: nothing would run"));
            return Flow::Stay;
        }
        if context.settings.dry_run {
            context.say(NoteKind::Warning, "[dry run] the plan would run now; nothing is run");
            return Flow::Stay;
        }
        if sheet.is_changed() {
            let lines = vec![format!(
                "{} are not saved yet. What runs is what the store has.",
                text::count(sheet.edits(), "edit")
            )];
            let buttons =
                vec![Button::new('s', "save and run", Choice::SaveAndExecute), Button::close('b', "back")];
            return Flow::Ask(Dialog::new("Run the plan?", lines, buttons));
        }
        context.effects.push(Effect::Execute(self.plan.clone()));
        Flow::Stay
    }

    pub(super) fn leave(&mut self, afterwards: Afterwards) -> Flow {
        let changed = self.sheet.as_ref().filter(|sheet| sheet.is_changed());
        let Some(sheet) = changed else {
            return if afterwards == Afterwards::Quit { Flow::Quit } else { Flow::Pop };
        };
        let lines = vec![format!("{} would be lost.", text::count(sheet.edits().max(1), "unsaved edit"))];
        let buttons = vec![
            Button::new('s', "save and leave", Choice::SaveAndLeave),
            Button::new('d', "discard", Choice::Discard),
            Button::close('b', "back"),
        ];
        self.leaving = afterwards;
        Flow::Ask(Dialog::new("Leave the plan?", lines, buttons))
    }

    pub(super) fn chosen(&mut self, choice: &Choice, context: &mut Context<'_>) -> Flow {
        match choice {
            Choice::SaveAndLeave => return self.save(self.leaving, context),
            Choice::SaveAndExecute => return self.save(Afterwards::Execute, context),
            Choice::Execute => context.effects.push(Effect::Execute(self.plan.clone())),
            Choice::Discard if self.leaving == Afterwards::Quit => return Flow::Quit,
            Choice::Discard => return Flow::Pop,
            Choice::Delete => self.remove(context),
            Choice::Rebase => {
                self.rebasing = true;
                match self.theirs.take() {
                    Some(theirs) => self.take(&theirs, context),
                    None => self.read(context),
                }
            }
            Choice::Compare => {
                let known = self.sheet.as_ref().map_or(0, |sheet| sheet.base().version);
                let history = History::since(self.plan.clone(), known);
                return Flow::Push(Screen::History(Box::new(history)));
            }
            Choice::TakeTheirs => {
                self.sheet = None;
                self.theirs = None;
                self.read(context);
            }
            Choice::EditAgain => {
                if let Some(text) = self.unread.take() {
                    let purpose = Purpose::Plan(self.plan.clone());
                    context.effects.push(Effect::EditText { purpose, text, ending: "md" });
                }
            }
            _ => {}
        }
        Flow::Stay
    }

    pub(super) fn open_editor(&mut self, context: &mut Context<'_>) {
        let Some(sheet) = &self.sheet else { return };
        match write(&sheet.draft(), Dialect::Markdown, Shape::Document) {
            Ok(writing) => {
                let purpose = Purpose::Plan(self.plan.clone());
                context.effects.push(Effect::EditText { purpose, text: writing.text, ending: "md" });
            }
            Err(error) => {
                context.say(NoteKind::Wrong, format!("the plan cannot be written as text: {error}"))
            }
        }
    }

    /// A plan that was edited as text becomes one edit, which can be taken back. What was typed is never thrown away.
    fn take_text(&mut self, typed: &str, context: &mut Context<'_>) -> Flow {
        let Some(sheet) = &mut self.sheet else { return Flow::Stay };
        let (wrong, mut drafts) = match read(typed, Some(Dialect::Markdown), None) {
            Ok(reading) => {
                let wrong: Vec<String> =
                    reading.problems.iter().map(|problem| format!("{problem}; {}", problem.hint())).collect();
                (wrong, reading.drafts)
            }
            Err(error) => (vec![error.to_string()], Vec::new()),
        };
        let Some(draft) = drafts.first_mut().filter(|_| wrong.is_empty()) else {
            self.unread = Some(typed.to_owned());
            let lines = if wrong.is_empty() { vec!["There is no plan in it.".to_owned()] } else { wrong };
            let buttons = vec![
                Button::new('e', "edit it again", Choice::EditAgain),
                Button::close('b', "back, without it"),
            ];
            return Flow::Ask(Dialog { marked: 0, ..Dialog::new("The text cannot be read", lines, buttons) });
        };
        keep_foreign(draft, sheet.base());
        let ticked = draft.tasks.iter().filter(|task| task.state.status == Status::Done).filter(|task| {
            let row = sheet.place(&task.spec.id).map(|at| &sheet.rows()[at]);
            row.is_none_or(|row| row.task.state.status != Status::Done)
        });
        let ticked = ticked.count();
        sheet.replace(draft, "edits in $EDITOR");
        if ticked > 0 {
            let said = format!(
                "{} ticked in the text: an edit finishes no work, `waypost done` does",
                text::count(ticked, "task")
            );
            context.say(NoteKind::Warning, said);
        }
        let look = self.selected_task().cloned();
        self.look_at(look.as_ref());
        Flow::Stay
    }

    /// Whether others wrote something that the edits are not made on.
    pub(super) fn newer(&self) -> Option<u64> {
        self.theirs.as_ref().map(|theirs| theirs.draft.version)
    }
}

/// What came of a text that another program was to edit, with the file that it may be kept in: more than a line can hold.
fn not_edited(trouble: &Trouble) -> Flow {
    let mut lines: Vec<String> = trouble.what.split("; ").map(|part| part.trim().to_owned()).collect();
    lines.extend(Some(trouble.hint.clone()).filter(|hint| !hint.is_empty()));
    Flow::Ask(Dialog::new("The text was not taken over", lines, vec![Button::close('b', "back")]))
}

/// What changed since, and what can be done about it. The edits stay in any case.
fn conflict_dialog(conflict: &Conflict) -> Dialog {
    let mut writers: Vec<String> = conflict.writers.iter().map(ToString::to_string).collect();
    writers.dedup();
    let mut lines = vec![
        format!(
            "Your edits were made on version {}; {} wrote version {} meanwhile:",
            conflict.known,
            writers.join(", "),
            conflict.current
        ),
        String::new(),
    ];
    let shown = conflict.differences.len().min(DIFFERENCES_MAX);
    let short = |value: &str| text::cut(value, 40);
    let different = difference_lines(&conflict.differences[..shown], Texts::Whole, &short);
    lines.extend(different.into_iter().map(|(_, line)| line));
    if conflict.differences_total > shown {
        lines.push(format!("… and {} more", conflict.differences_total - shown));
    }
    let buttons = vec![
        Button::new('r', "mine on top", Choice::Rebase),
        Button::new('v', "see both", Choice::Compare),
        Button::new('d', "discard", Choice::TakeTheirs),
        Button::close('b', "back"),
    ];
    Dialog { marked: 0, ..Dialog::new("Somebody else changed this plan", lines, buttons) }
}
