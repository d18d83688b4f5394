//! One plan, to be edited: keys become edits of a sheet in memory, and saving turns the sheet into commands at a known
//! version. Writes nothing itself.

mod draw;
mod draw_parts;
mod form;
mod keep;
mod mouse;
mod picker;
mod unsaved;

use std::collections::HashSet;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use waypost_core::{TaskId, TaskSpec};

use crate::app::{Context, Effect, Event, Flow, Loaded, NoteKind, PlanKey, Purpose, Trouble};
use crate::dialog::{Button, Choice, Dialog};
use crate::input::Input;
use crate::keys::{Action, Place};
use crate::sheet::{Deletion, Sheet};
use crate::text;
use form::{Form, Target};
use keep::Afterwards;
use picker::Picker;

/// Names of tasks that a question lists; the others are counted.
const NAMES_MAX: usize = 8;

/// The plan editor.
#[derive(Debug)]
pub struct Editor {
    plan: PlanKey,
    sheet: Option<Sheet>,
    awaits_approval: bool,
    trouble: Option<Trouble>,
    /// The places of the rows that are seen when nothing is scrolled: those inside of folded tasks are not.
    visible: Vec<usize>,
    folded: HashSet<TaskId>,
    /// Which of the visible rows is selected.
    selected: usize,
    top: usize,
    form: Option<Form>,
    picker: Option<Picker>,
    find: Option<Input>,
    /// Whether no task has what is to be found.
    missed: bool,
    /// Whether the graph is drawn; nothing said: when there is room for it.
    graph: Option<bool>,
    /// Whether the plan is being read.
    reading: bool,
    /// Whether somebody wrote since it was asked for.
    stale: bool,
    saving: Option<Afterwards>,
    /// Whether the plan was read while it was being saved, and was something else: it is read again then.
    overtaken: bool,
    /// The version that this editor wrote last.
    written: Option<u64>,
    /// Where to go when the question about unsaved edits is answered.
    leaving: Afterwards,
    /// What others made of the plan meanwhile, when that is not what the edits are made on.
    theirs: Option<Box<Loaded>>,
    /// Whether the edits go on top of what others made of it as soon as that has been read.
    rebasing: bool,
    /// Where the edits met those of others, as far as there was no room to show it yet.
    met: Vec<String>,
    /// What is asked as soon as nobody types: a question takes the keys.
    question: Option<Dialog>,
    /// A text from `$EDITOR` that could not be read.
    unread: Option<String>,
}

impl Editor {
    /// For a plan, which is read when the editor is shown.
    pub fn new(plan: PlanKey) -> Self {
        Self {
            plan,
            sheet: None,
            awaits_approval: false,
            trouble: None,
            visible: Vec::new(),
            folded: HashSet::new(),
            selected: 0,
            top: 0,
            form: None,
            picker: None,
            find: None,
            missed: false,
            graph: None,
            reading: false,
            stale: false,
            saving: None,
            overtaken: false,
            written: None,
            leaving: Afterwards::Leave,
            theirs: None,
            rebasing: false,
            met: Vec::new(),
            question: None,
            unread: None,
        }
    }

    /// Which plan.
    pub fn plan(&self) -> &PlanKey {
        &self.plan
    }

    /// The plan as it is being edited, once it has been read.
    pub fn sheet(&self) -> Option<&Sheet> {
        self.sheet.as_ref()
    }

    /// Whether there is something to do when nobody types: a large plan is checked then.
    pub fn has_a_clock(&self) -> bool {
        self.sheet.as_ref().is_some_and(Sheet::is_unchecked)
    }

    pub(crate) fn place(&self) -> Place {
        if self.picker.is_some() {
            Place::Picker
        } else if self.form.is_some() {
            Place::Form
        } else {
            Place::Editor
        }
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.picker.is_some() || self.form.is_some() || self.find.is_some()
    }

    /// The place of the selected task among the rows.
    fn at(&self) -> Option<usize> {
        self.visible.get(self.selected).copied()
    }

    /// The task that is selected.
    pub fn selected_task(&self) -> Option<&TaskId> {
        self.at().and_then(|at| self.sheet.as_ref()?.rows().get(at)).map(crate::sheet::Row::id)
    }

    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) -> Flow {
        let flow = match event {
            Event::Shown => {
                self.read(context);
                Flow::Stay
            }
            Event::Action(action) => self.act(action, context),
            Event::Key(key) => self.key(key, context),
            Event::Mouse(mouse) => self.mouse(mouse, context),
            Event::Paste(text) => {
                self.paste(text);
                Flow::Stay
            }
            Event::Tick => {
                if let Some(sheet) = &mut self.sheet {
                    sheet.check();
                }
                Flow::Stay
            }
            Event::Answer(answer) => self.answer(answer, context),
            Event::Written(store, plans) => {
                self.written(store, plans, context);
                Flow::Stay
            }
            Event::Chosen(choice, _) => self.chosen(choice, context),
        };
        let flow = match flow {
            Flow::Ask(dialog) if self.is_typing() => {
                context.say(NoteKind::Warning, format!("{}: asked when you have typed", dialog.title));
                self.question = Some(dialog);
                Flow::Stay
            }
            Flow::Stay if !self.is_typing() => self.question.take().map_or(Flow::Stay, Flow::Ask),
            flow => flow,
        };
        self.settle(context);
        flow
    }

    fn act(&mut self, action: Action, context: &mut Context<'_>) -> Flow {
        let page = draw::rows(context.area, self.graph).max(1);
        match action {
            Action::Up => self.selected = self.selected.saturating_sub(1),
            Action::Down => self.selected += 1,
            Action::PageUp => self.selected = self.selected.saturating_sub(page),
            Action::PageDown => self.selected += page,
            Action::First => self.selected = 0,
            Action::Last => self.selected = self.visible.len(),
            Action::Back => return self.leave(Afterwards::Leave),
            Action::Quit => return self.leave(Afterwards::Quit),
            Action::Edit => self.open_form(),
            Action::New => self.open_new_form(),
            Action::Delete => return self.delete(context),
            Action::Skip => self.change(|sheet, at| sheet.toggle_skip(at)),
            Action::MoveUp => self.move_task(Sheet::move_up, "is the first among its siblings", context),
            Action::MoveDown => self.move_task(Sheet::move_down, "is the last among its siblings", context),
            Action::Indent => self.move_task(Sheet::indent, "has no task above it to be a part of", context),
            Action::Outdent => self.move_task(Sheet::outdent, "is a part of no other task", context),
            Action::Dependencies => self.open_picker(),
            Action::Fold => self.fold(),
            Action::Undo => self.step(Sheet::undo, "undone", "nothing to undo", context),
            Action::Redo => self.step(Sheet::redo, "done again", "nothing to do again", context),
            Action::Filter => (self.find, self.missed) = (Some(Input::line("")), false),
            Action::Problems => self.next_problem(context),
            Action::Graph => self.graph = Some(!draw::shows_graph(context.area, self.graph)),
            Action::External => self.open_editor(context),
            Action::Save => return self.save(Afterwards::Stay, context),
            Action::Execute => return self.execute(context),
            _ => {}
        }
        Flow::Stay
    }

    /// Does something to the selected task.
    fn change(&mut self, change: impl FnOnce(&mut Sheet, usize)) {
        let at = self.at();
        if let (Some(sheet), Some(at)) = (&mut self.sheet, at) {
            change(sheet, at);
            let id = sheet.rows().get(at).map(|row| row.id().clone());
            self.look_at(id.as_ref());
        }
    }

    fn move_task(
        &mut self,
        to: impl FnOnce(&mut Sheet, usize) -> bool,
        why_not: &str,
        context: &mut Context<'_>,
    ) {
        let Some(id) = self.selected_task().cloned() else { return };
        let mut moved = false;
        self.change(|sheet, at| moved = to(sheet, at));
        if !moved {
            context.say(NoteKind::Warning, format!("{id} {why_not}"));
        }
        self.look_at(Some(&id));
    }

    fn step(
        &mut self,
        step: impl FnOnce(&mut Sheet) -> Option<(String, Option<TaskId>)>,
        done: &str,
        nothing: &str,
        context: &mut Context<'_>,
    ) {
        match self.sheet.as_mut().and_then(step) {
            Some((words, look)) => {
                context.say(NoteKind::Good, format!("{done}: {words}"));
                self.look_at(look.as_ref());
            }
            None => context.say(NoteKind::Warning, nothing),
        }
    }

    fn delete(&mut self, context: &mut Context<'_>) -> Flow {
        let task = self.selected_task().cloned();
        let deletion = self.sheet.as_ref().zip(task).and_then(|(sheet, task)| sheet.deletion(&task));
        match deletion {
            Some(deletion) if deletion.parts.is_empty() && deletion.dependants.is_empty() => {
                self.remove(&deletion.task, context);
                Flow::Stay
            }
            Some(deletion) => self.ask_to_delete(deletion),
            None => Flow::Stay,
        }
    }

    fn ask_to_delete(&self, deletion: Deletion) -> Flow {
        let Some(sheet) = &self.sheet else { return Flow::Stay };
        let mut lines = Vec::new();
        let (parts, dependants) = (deletion.parts.len(), deletion.dependants.len());
        if parts > 0 {
            lines.push(format!("It has {}, which would go with it.", text::count(parts, "part")));
        }
        if dependants > 0 {
            let verb = if dependants == 1 { "depends" } else { "depend" };
            lines.push(format!(
                "{} {verb} on it and would no longer wait for it:",
                text::count(dependants, "task")
            ));
        }
        let shown = deletion.dependants.iter().take(NAMES_MAX).filter_map(|id| sheet.place(id));
        for spec in shown.map(|at| sheet.rows()[at].spec()) {
            lines.push(format!("  {}  {}", spec.id, text::truncate(&spec.description, 60)));
        }
        if dependants > NAMES_MAX {
            lines.push(format!("  … and {} more", dependants - NAMES_MAX));
        }
        let title = format!("Delete {}?", deletion.task);
        let delete = Button::new('d', "delete", Choice::Delete(Box::new(deletion)));
        Flow::Ask(Dialog::new(title, lines, vec![delete, Button::close('k', "keep it")]))
    }

    /// Somebody may have written while the question stood there: only what it said is deleted.
    fn delete_as_said(&mut self, said: &Deletion, context: &mut Context<'_>) -> Flow {
        match self.sheet.as_ref().and_then(|sheet| sheet.deletion(&said.task)) {
            Some(now) if now == *said => {
                self.remove(&said.task, context);
                Flow::Stay
            }
            Some(now) => {
                context.say(NoteKind::Warning, "the plan changed meanwhile; nothing is deleted yet");
                self.ask_to_delete(now)
            }
            None => {
                context.say(NoteKind::Warning, format!("{} is no longer in the plan", said.task));
                Flow::Stay
            }
        }
    }

    fn remove(&mut self, task: &TaskId, context: &mut Context<'_>) {
        let selected = self.selected_task().cloned();
        let Some(sheet) = &mut self.sheet else { return };
        let Some(at) = sheet.place(task) else { return };
        sheet.remove(at);
        let undo =
            context.settings.keys.hint(Place::Editor, Action::Undo).map(|(key, _)| key).unwrap_or_default();
        context.say(NoteKind::Good, format!("{task} is deleted; {undo} brings it back"));
        self.look_at(selected.as_ref());
    }

    fn open_form(&mut self) {
        if let (Some(sheet), Some(at)) = (&self.sheet, self.at()) {
            let spec = sheet.rows()[at].spec();
            self.form = Some(Form::new(Target::Task(spec.id.clone()), spec));
        }
    }

    fn open_new_form(&mut self) {
        if let Some(sheet) = &self.sheet
            && let Some(id) = sheet.free_id()
        {
            let after = self.selected_task().cloned();
            self.form = Some(Form::new(Target::New(after), &TaskSpec::new(id, "")));
        }
    }

    fn open_picker(&mut self) {
        if let (Some(sheet), Some(at)) = (&self.sheet, self.at()) {
            let spec = sheet.rows()[at].spec();
            self.picker = Some(Picker::new(sheet, Some(spec.id.clone()), spec.depends_on.clone(), false));
        }
    }

    fn fold(&mut self) {
        let (Some(sheet), Some(at)) = (&self.sheet, self.at()) else { return };
        if sheet.is_parent(at) {
            let id = sheet.rows()[at].id().clone();
            if !self.folded.remove(&id) {
                self.folded.insert(id.clone());
            }
            self.look_at(Some(&id));
        }
    }

    fn next_problem(&mut self, context: &mut Context<'_>) {
        let Some(sheet) = &mut self.sheet else { return };
        sheet.check();
        let count = sheet.rows().len();
        let from = self.visible.get(self.selected).copied().unwrap_or(0);
        let found = (1..=count)
            .map(|step| (from + step) % count)
            .find(|&at| sheet.problems().has(sheet.rows()[at].id().as_str()));
        match found {
            Some(at) => {
                let id = sheet.rows()[at].id().clone();
                let told = sheet
                    .problems()
                    .of_task(id.as_str())
                    .next()
                    .map(|problem| format!("{problem}; {}", problem.hint()));
                context.say(NoteKind::Wrong, told.unwrap_or_default());
                self.look_at(Some(&id));
            }
            None => match sheet.problems().all().first() {
                Some(problem) => context.say(NoteKind::Wrong, format!("{problem}; {}", problem.hint())),
                None => context.say(NoteKind::Good, "nothing is wrong with this plan"),
            },
        }
    }

    fn key(&mut self, key: KeyEvent, context: &mut Context<'_>) -> Flow {
        let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if let (Some(picker), Some(sheet)) = (&mut self.picker, &self.sheet) {
            let rows = draw_parts::picker_rows(context.area);
            match picker.key(key, &context.settings.keys, sheet, rows) {
                picker::Outcome::Open => {}
                picker::Outcome::Kept => self.keep_choice(),
                picker::Outcome::Discarded => self.picker = None,
            }
            if control_c {
                self.picker = None;
            }
            return self.catch_up(context);
        }
        if let Some(form) = &mut self.form {
            if control_c {
                self.form = None;
                return self.catch_up(context);
            }
            match form.key(key, &context.settings.keys) {
                form::Outcome::Open => {}
                form::Outcome::Kept => self.keep_form(context),
                form::Outcome::Discarded => self.form = None,
                form::Outcome::Choose => self.choose_for_form(),
                form::Outcome::External => {
                    if let Some(text) = form.input().map(|input| input.text().to_owned()) {
                        let effect = Effect::EditText { purpose: Purpose::Field, text, ending: "md" };
                        context.effects.push(effect);
                    }
                }
            }
            return self.catch_up(context);
        }
        if self.find.is_some() {
            if control_c { self.find = None } else { self.find_key(key) }
        }
        Flow::Stay
    }

    fn choose_for_form(&mut self) {
        if let (Some(form), Some(sheet)) = (&self.form, &self.sheet) {
            let task = match &form.target {
                Target::Task(id) => Some(id.clone()),
                Target::New(_) => None,
            };
            self.picker = Some(Picker::new(sheet, task, form.depends_on.clone(), true));
        }
    }

    fn keep_choice(&mut self) {
        let (Some(picker), Some(sheet)) = (self.picker.take(), &mut self.sheet) else { return };
        if let Some(form) = self.form.as_mut().filter(|_| picker.for_form) {
            form.depends_on = picker.chosen;
        } else if let Some(at) = picker.task.as_ref().and_then(|task| sheet.place(task)) {
            let spec = TaskSpec { depends_on: picker.chosen, ..sheet.rows()[at].spec().clone() };
            sheet.revise(at, spec);
        }
    }

    fn keep_form(&mut self, context: &mut Context<'_>) {
        let (Some(form), Some(sheet)) = (&mut self.form, &mut self.sheet) else { return };
        let spec = form.spec();
        if spec.description.trim().is_empty() {
            context.say(NoteKind::Warning, "say in the description what is to be done");
            return;
        }
        let look = match &form.target {
            Target::Task(id) => {
                let Some(at) = sheet.place(id) else {
                    context.say(NoteKind::Wrong, format!("{id} is no longer in the plan; again: a new task"));
                    form.target = Target::New(None);
                    return;
                };
                sheet.revise(at, spec);
                Some(id.clone())
            }
            Target::New(after) => {
                let after = after.as_ref().and_then(|after| sheet.place(after));
                let at = sheet.insert(after, spec);
                at.and_then(|at| sheet.rows().get(at)).map(|row| row.id().clone())
            }
        };
        self.form = None;
        self.look_at(look.as_ref());
    }

    fn find_key(&mut self, key: KeyEvent) {
        let Some(find) = &mut self.find else { return };
        let from = match key.code {
            KeyCode::Esc => return self.find = None,
            KeyCode::Enter if find.text().is_empty() => return self.find = None,
            KeyCode::Enter | KeyCode::Down | KeyCode::Tab => 1,
            _ => {
                find.key(key);
                0
            }
        };
        self.look_for(from);
    }

    /// Selects the task that has what is to be found, so many rows from the selected one or further down, and round again.
    fn look_for(&mut self, from: usize) {
        let wanted = self.find.as_ref().map(|find| find.text().to_lowercase()).unwrap_or_default();
        self.missed = false;
        let Some(sheet) = self.sheet.as_ref().filter(|_| !wanted.is_empty()) else { return };
        let count = sheet.rows().len();
        let start = self.visible.get(self.selected).copied().unwrap_or(0);
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let found = (from..=count).map(|step| (start + step) % count.max(1)).find(|&at| {
            sheet.rows().get(at).is_some_and(|row| has(row.id().as_str()) || has(&row.spec().description))
        });
        let id = found.map(|at| sheet.rows()[at].id().clone());
        self.missed = id.is_none();
        if id.is_some() {
            self.look_at(id.as_ref());
        }
    }

    fn paste(&mut self, text: &str) {
        if let (Some(picker), Some(sheet)) = (&mut self.picker, &self.sheet) {
            picker.paste(text, sheet);
        } else if let Some(form) = &mut self.form {
            if let Some(input) = form.input() {
                input.insert(text);
            }
        } else if let Some(find) = &mut self.find {
            find.insert(text);
            self.look_for(0);
        }
    }

    /// Works out which rows can be seen.
    fn refold(&mut self) {
        self.visible.clear();
        let Some(sheet) = &self.sheet else { return };
        let mut hidden_below = None;
        for (at, row) in sheet.rows().iter().enumerate() {
            if hidden_below.is_some_and(|depth| row.depth > depth) {
                continue;
            }
            self.visible.push(at);
            hidden_below = (!self.folded.is_empty() && self.folded.contains(row.id())).then_some(row.depth);
        }
    }

    /// Selects a task, wherever it stands now, and opens what hides it.
    fn look_at(&mut self, id: Option<&TaskId>) {
        self.refold();
        let (Some(sheet), Some(id)) = (&self.sheet, id) else { return };
        let Some(at) = sheet.place(id) else { return };
        let mut hidden = false;
        let mut parent = sheet.rows()[at].spec().parent.clone();
        for _ in 0..sheet.rows()[at].depth {
            let Some(id) = parent else { break };
            hidden |= self.folded.remove(&id);
            parent = sheet.place(&id).and_then(|at| sheet.rows()[at].spec().parent.clone());
        }
        if hidden {
            self.refold();
        }
        self.selected = self.visible.partition_point(|&visible| visible < at);
    }

    fn settle(&mut self, context: &Context<'_>) {
        self.selected = self.selected.min(self.visible.len().saturating_sub(1));
        let rows = draw::rows(context.area, self.graph).max(1);
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(rows));
        self.top = self.top.min(self.visible.len().saturating_sub(rows));
    }
}
