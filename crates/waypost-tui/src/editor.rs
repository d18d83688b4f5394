//! The plan editor. Keys change an edit buffer in memory; saving turns the buffer into edit operations against a known
//! version. Writes nothing itself.

mod choose;
mod draw;
mod draw_overlays;
mod find;
mod form;
mod layout;
mod mouse;
mod overlay;
mod picker;
mod save;
mod unsaved;
mod zoom;

use std::collections::HashSet;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use waypost_core::{TaskId, TaskSpec};

use crate::dialog::{Button, Choice, Dialog};
use crate::edit_buffer::{Deletion, EditBuffer};
use crate::keys::{Action, Place};
use crate::messages::{Effect, Purpose};
use crate::note::{ErrorMessage, NoteKind};
use crate::plan::{LoadedPlan, PlanKey};
use crate::screen::{Context, Event, Flow};
use crate::text;
use crate::text_input::TextInput;
use form::{Form, Target};
use overlay::{Choosing, Direction, Zoom};
use picker::Picker;

/// Maximum number of tasks that a question lists; the others are counted.
const NAMES_MAX: usize = 8;

/// What to do after the edits are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterSave {
    Stay,
    Leave,
    Quit,
    Execute,
}

#[derive(Debug)]
pub struct Editor {
    plan: PlanKey,
    buffer: Option<EditBuffer>,
    awaits_approval: bool,
    error: Option<ErrorMessage>,
    /// The rows that are not inside a folded task.
    visible: Vec<usize>,
    folded: HashSet<TaskId>,
    /// An index into `visible`.
    selected: usize,
    top: usize,
    form: Option<Form>,
    picker: Option<Picker>,
    /// The list of values that is open.
    choosing: Option<Choosing>,
    find: Option<TextInput>,
    /// What was last searched for.
    wanted: String,
    not_found: bool,
    /// Everything about the selected task, on the whole screen.
    zoom: Option<Zoom>,
    /// The task to select when the plan is loaded.
    look: Option<TaskId>,
    /// Whether the graph is drawn; `None` draws it if there is room.
    graph: Option<bool>,
    reading: bool,
    /// Whether the plan changed after the pending load was requested.
    stale: bool,
    saving: Option<AfterSave>,
    /// Whether another version was loaded during a save. If the save fails, the plan is loaded again.
    overtaken: bool,
    /// The version that this editor wrote last.
    written: Option<u64>,
    /// Where to go after the dialog about unsaved edits.
    after_prompt: AfterSave,
    /// A newer version that the edits are not based on.
    theirs: Option<Box<LoadedPlan>>,
    /// Whether the edits are rebased on the newer version as soon as it is loaded.
    rebasing: bool,
    /// Overlaps with the edits of others that are not shown yet.
    overlaps: Vec<String>,
    /// A dialog that is deferred while the user types, because it would receive the keys.
    question: Option<Dialog>,
    /// A text from `$EDITOR` that could not be parsed.
    unparsed: Option<String>,
}

impl Editor {
    /// The plan is loaded when the editor is shown.
    pub fn new(plan: PlanKey) -> Self {
        Self {
            plan,
            buffer: None,
            awaits_approval: false,
            error: None,
            visible: Vec::new(),
            folded: HashSet::new(),
            selected: 0,
            top: 0,
            form: None,
            picker: None,
            choosing: None,
            find: None,
            wanted: String::new(),
            not_found: false,
            zoom: None,
            look: None,
            graph: None,
            reading: false,
            stale: false,
            saving: None,
            overtaken: false,
            written: None,
            after_prompt: AfterSave::Leave,
            theirs: None,
            rebasing: false,
            overlaps: Vec::new(),
            question: None,
            unparsed: None,
        }
    }

    /// The plan is loaded when the editor is shown, and this task is selected.
    pub fn at_task(plan: PlanKey, task: TaskId) -> Self {
        Self { look: Some(task), ..Self::new(plan) }
    }

    pub(crate) fn requested_task(&self) -> Option<TaskId> {
        self.look.clone()
    }

    /// Selects a task.
    pub(crate) fn look_at(&mut self, task: TaskId) {
        match self.buffer {
            Some(_) => self.select_task(Some(&task)),
            None => self.look = Some(task),
        }
    }

    pub fn plan(&self) -> &PlanKey {
        &self.plan
    }

    /// A large plan is validated on a tick instead of at every edit.
    pub fn needs_tick(&self) -> bool {
        self.buffer.as_ref().is_some_and(EditBuffer::is_unchecked)
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

    /// The row of the selected task.
    fn at(&self) -> Option<usize> {
        self.visible.get(self.selected).copied()
    }

    pub fn selected_task(&self) -> Option<&TaskId> {
        self.at().and_then(|at| self.buffer.as_ref()?.rows().get(at)).map(crate::edit_buffer::Row::id)
    }

    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) {
        match event {
            Event::Shown => self.read(context),
            Event::Action(action) => self.act(action, context),
            Event::Key(key) => self.key(key, context),
            Event::Mouse(mouse) => self.mouse(mouse, context),
            Event::Paste(text) => self.paste(text),
            Event::DialogClosed => {}
            Event::Tick => {
                if let Some(buffer) = &mut self.buffer {
                    buffer.check();
                }
            }
            Event::Reply(reply) => self.reply(reply, context),
            Event::Written(store, plans) => self.written(store, plans, context),
            Event::Chosen(choice, typed) => {
                if !self.take_choice(choice, typed, context) {
                    self.chosen(choice, context);
                }
            }
        }
        context.flow = match std::mem::take(&mut context.flow) {
            Flow::Ask(dialog) if self.is_typing() && self.choosing.is_none() => {
                context.notify(NoteKind::Warning, format!("{}: asked when you finish typing", dialog.title));
                self.question = Some(*dialog);
                Flow::Stay
            }
            Flow::Stay if !self.is_typing() => {
                self.question.take().map_or(Flow::Stay, |dialog| Flow::Ask(Box::new(dialog)))
            }
            flow
            @ (Flow::Stay | Flow::Open(_) | Flow::Pop | Flow::Ask(_) | Flow::Replace(_) | Flow::Quit) => flow,
        };
        self.settle(context);
    }

    fn act(&mut self, action: Action, context: &mut Context<'_>) {
        let page = layout::rows(context.area, self.graph).max(1);
        if self.zoom_act(action, context) {
            return;
        }
        match action {
            Action::Up => self.selected = self.selected.saturating_sub(1),
            Action::Down => self.selected += 1,
            Action::PageUp => self.selected = self.selected.saturating_sub(page),
            Action::PageDown => self.selected += page,
            Action::First => self.selected = 0,
            Action::Last => self.selected = self.visible.len(),
            Action::Back => self.leave(AfterSave::Leave, context),
            Action::Quit => self.leave(AfterSave::Quit, context),
            Action::Edit => self.open_form(),
            Action::New => self.open_new_form(),
            Action::Delete => self.delete(context),
            Action::Skip => self.change(|buffer, at| buffer.toggle_skip(at)),
            Action::MoveUp => self.move_task(EditBuffer::move_up, "is the first among its siblings", context),
            Action::MoveDown => {
                self.move_task(EditBuffer::move_down, "is the last among its siblings", context)
            }
            Action::Indent => self.move_task(EditBuffer::indent, "has no sibling above it", context),
            Action::Outdent => self.move_task(EditBuffer::outdent, "is not a subtask", context),
            Action::Dependencies => self.open_picker(),
            Action::Fold => self.fold(),
            Action::Undo => self.step(EditBuffer::undo, "undone", "nothing to undo", context),
            Action::Redo => self.step(EditBuffer::redo, "redone", "nothing to redo", context),
            Action::Filter => (self.find, self.not_found) = (Some(TextInput::line("")), false),
            Action::Next => self.jump(Direction::Forward, context),
            Action::Previous => self.jump(Direction::Back, context),
            Action::Upstream => self.follow_edge(true, context),
            Action::Downstream => self.follow_edge(false, context),
            Action::Set => self.choose_what(context),
            Action::Zoom => self.open_zoom(context),
            Action::Graph => self.graph = Some(!layout::shows_graph(context.area, self.graph)),
            Action::External => self.open_editor(context),
            Action::Save => self.save(AfterSave::Stay, context),
            Action::Execute => self.execute(context),
            Action::Open
            | Action::Help
            | Action::Palette
            | Action::Sort
            | Action::Archived
            | Action::Refresh
            | Action::Status
            | Action::NextField
            | Action::PreviousField
            | Action::Accept
            | Action::Toggle
            | Action::Focus
            | Action::Follow
            | Action::Times
            | Action::Approve
            | Action::Questions
            | Action::Reject
            | Action::Pause
            | Action::Hold
            | Action::Cancel
            | Action::CancelPlan
            | Action::Retry
            | Action::RetryAll
            | Action::Stop
            | Action::ViewTasks
            | Action::Watch
            | Action::History
            | Action::ViewText
            | Action::Mark
            | Action::Restore
            | Action::Suspend => {}
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut EditBuffer, usize)) {
        let at = self.at();
        if let (Some(buffer), Some(at)) = (&mut self.buffer, at) {
            change(buffer, at);
            let id = buffer.rows().get(at).map(|row| row.id().clone());
            self.select_task(id.as_ref());
        }
    }

    fn move_task(
        &mut self,
        to: impl FnOnce(&mut EditBuffer, usize) -> bool,
        why_not: &str,
        context: &mut Context<'_>,
    ) {
        let Some(id) = self.selected_task().cloned() else { return };
        let mut moved = false;
        self.change(|buffer, at| moved = to(buffer, at));
        if !moved {
            context.notify(NoteKind::Warning, format!("{id} {why_not}"));
        }
        self.select_task(Some(&id));
    }

    fn step(
        &mut self,
        step: impl FnOnce(&mut EditBuffer) -> Option<(String, Option<TaskId>)>,
        done: &str,
        nothing: &str,
        context: &mut Context<'_>,
    ) {
        match self.buffer.as_mut().and_then(step) {
            Some((words, look)) => {
                context.notify(NoteKind::Good, format!("{done}: {words}"));
                self.select_task(look.as_ref());
            }
            None => context.notify(NoteKind::Warning, nothing),
        }
    }

    fn delete(&mut self, context: &mut Context<'_>) {
        let task = self.selected_task().cloned();
        let deletion = self.buffer.as_ref().zip(task).and_then(|(buffer, task)| buffer.deletion(&task));
        match deletion {
            Some(deletion) if deletion.parts.is_empty() && deletion.dependants.is_empty() => {
                self.remove(&deletion.task, context)
            }
            Some(deletion) => self.ask_to_delete(deletion, context),
            None => {}
        }
    }

    fn ask_to_delete(&self, deletion: Deletion, context: &mut Context<'_>) {
        let Some(buffer) = &self.buffer else { return };
        let mut lines = Vec::new();
        let (parts, dependants) = (deletion.parts.len(), deletion.dependants.len());
        if parts > 0 {
            lines.push(format!("It has {}, deleted with it.", text::count(parts, "subtask")));
        }
        if dependants > 0 {
            let verb = if dependants == 1 { "depends" } else { "depend" };
            lines.push(format!(
                "{} {verb} on it; the dependency would be removed:",
                text::count(dependants, "task")
            ));
        }
        let shown = deletion.dependants.iter().take(NAMES_MAX).filter_map(|id| buffer.place(id));
        for spec in shown.map(|at| buffer.rows()[at].spec()) {
            lines.push(format!("  {}  {}", spec.id, text::truncate(&spec.description, 60)));
        }
        if dependants > NAMES_MAX {
            lines.push(format!("  … and {} more", dependants - NAMES_MAX));
        }
        let title = format!("Delete {}?", deletion.task);
        let delete = Button::new('d', "delete", Choice::Delete(Box::new(deletion)));
        context.ask(Dialog::new(title, lines, vec![delete, Button::close('k', "keep")]));
    }

    /// Deletes only what the question named, because the plan may have changed while the dialog was open.
    fn delete_confirmed(&mut self, said: &Deletion, context: &mut Context<'_>) {
        match self.buffer.as_ref().and_then(|buffer| buffer.deletion(&said.task)) {
            Some(now) if now == *said => self.remove(&said.task, context),
            Some(now) => {
                context.notify(NoteKind::Warning, "the plan changed meanwhile; nothing was deleted");
                self.ask_to_delete(now, context)
            }
            None => context.notify(NoteKind::Warning, format!("{} is no longer in the plan", said.task)),
        }
    }

    fn remove(&mut self, task: &TaskId, context: &mut Context<'_>) {
        let selected = self.selected_task().cloned();
        let Some(buffer) = &mut self.buffer else { return };
        let Some(at) = buffer.place(task) else { return };
        buffer.remove(at);
        let undo =
            context.settings.keys.hint(Place::Editor, Action::Undo).map(|(key, _)| key).unwrap_or_default();
        context.notify(NoteKind::Good, format!("deleted {task}; {undo} restores it"));
        self.select_task(selected.as_ref());
    }

    fn open_form(&mut self) {
        if let (Some(buffer), Some(at)) = (&self.buffer, self.at()) {
            let spec = buffer.rows()[at].spec();
            self.form = Some(Form::new(Target::Task(spec.id.clone()), spec));
        }
    }

    fn open_new_form(&mut self) {
        if let Some(buffer) = &self.buffer
            && let Some(id) = buffer.free_ids().next()
        {
            let after = self.selected_task().cloned();
            let beside = self.at().and_then(|at| buffer.rows().get(at));
            let parent = beside.and_then(|row| row.spec().parent.clone());
            self.form = Some(Form::new(Target::New(after), &TaskSpec { parent, ..TaskSpec::new(id, "") }));
        }
    }

    fn open_picker(&mut self) {
        if let (Some(buffer), Some(at)) = (&self.buffer, self.at()) {
            let spec = buffer.rows()[at].spec();
            self.picker = Some(Picker::new(buffer, Some(spec.id.clone()), spec.depends_on.clone(), false));
        }
    }

    fn fold(&mut self) {
        let (Some(buffer), Some(at)) = (&self.buffer, self.at()) else { return };
        if buffer.is_parent(at) {
            let id = buffer.rows()[at].id().clone();
            if !self.folded.remove(&id) {
                self.folded.insert(id.clone());
            }
            self.select_task(Some(&id));
        }
    }

    fn key(&mut self, key: KeyEvent, context: &mut Context<'_>) {
        let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if let (Some(picker), Some(buffer)) = (&mut self.picker, &self.buffer) {
            let rows = draw_overlays::picker_rows(context.area);
            match picker.key(key, &context.settings.keys, buffer, rows) {
                picker::Outcome::Open => {}
                picker::Outcome::Kept => self.apply_picker(),
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
                form::Outcome::Kept => self.apply_form(context),
                form::Outcome::Discarded => self.form = None,
                form::Outcome::Choose => self.choose_for_form(),
                form::Outcome::Pick => self.pick_for_form(context),
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
            if control_c { (self.find, self.wanted) = (None, String::new()) } else { self.find_key(key) }
        }
    }

    fn choose_for_form(&mut self) {
        if let (Some(form), Some(buffer)) = (&self.form, &self.buffer) {
            let task = match &form.target {
                Target::Task(id) => Some(id.clone()),
                Target::New(_) => None,
            };
            self.picker = Some(Picker::new(buffer, task, form.depends_on.clone(), true));
        }
    }

    fn apply_picker(&mut self) {
        let (Some(picker), Some(buffer)) = (self.picker.take(), &mut self.buffer) else { return };
        if let Some(form) = self.form.as_mut().filter(|_| picker.for_form) {
            form.depends_on = picker.chosen;
        } else if let Some(at) = picker.task.as_ref().and_then(|task| buffer.place(task)) {
            let spec = TaskSpec { depends_on: picker.chosen, ..buffer.rows()[at].spec().clone() };
            buffer.revise(at, spec);
        }
    }

    fn apply_form(&mut self, context: &mut Context<'_>) {
        let (Some(form), Some(buffer)) = (&mut self.form, &mut self.buffer) else { return };
        let spec = form.spec();
        if spec.description.trim().is_empty() {
            context.notify(NoteKind::Warning, "the description must not be empty");
            return;
        }
        let look = match &form.target {
            Target::Task(id) => {
                let Some(at) = buffer.place(id) else {
                    context.notify(
                        NoteKind::Wrong,
                        format!("{id} is no longer in the plan; Enter again adds it as a new task"),
                    );
                    form.target = Target::New(None);
                    return;
                };
                let (parent, before) = (spec.parent.clone(), buffer.rows()[at].spec().parent.clone());
                buffer.revise(at, TaskSpec { parent: before, ..spec });
                buffer.set_parent(at, parent);
                Some(id.clone())
            }
            Target::New(after) => {
                let after = after.as_ref().and_then(|after| buffer.place(after));
                let parent = spec.parent.clone();
                let at = buffer.insert(after, spec);
                let id = at.and_then(|at| buffer.rows().get(at)).map(|row| row.id().clone());
                if let Some(at) = at {
                    buffer.set_parent(at, parent);
                }
                id
            }
        };
        self.form = None;
        self.select_task(look.as_ref());
    }

    fn paste(&mut self, text: &str) {
        if let (Some(picker), Some(buffer)) = (&mut self.picker, &self.buffer) {
            picker.paste(text, buffer);
        } else if let Some(form) = &mut self.form {
            if let Some(input) = form.input() {
                input.insert(text);
            }
        } else if let Some(find) = &mut self.find {
            find.insert(text);
            self.wanted = find.text().to_lowercase();
            self.find_next(0, Direction::Forward);
        }
    }

    /// Recomputes the visible rows.
    fn refold(&mut self) {
        self.visible.clear();
        let Some(buffer) = &self.buffer else { return };
        let mut hidden_below = None;
        for (at, row) in buffer.rows().iter().enumerate() {
            if hidden_below.is_some_and(|depth| row.depth > depth) {
                continue;
            }
            self.visible.push(at);
            hidden_below = (!self.folded.is_empty() && self.folded.contains(row.id())).then_some(row.depth);
        }
    }

    /// Selects a task, unfolding its parents.
    fn select_task(&mut self, id: Option<&TaskId>) {
        self.refold();
        let (Some(buffer), Some(id)) = (&self.buffer, id) else { return };
        let Some(at) = buffer.place(id) else { return };
        let mut hidden = false;
        let mut parent = buffer.rows()[at].spec().parent.clone();
        for _ in 0..buffer.rows()[at].depth {
            let Some(id) = parent else { break };
            hidden |= self.folded.remove(&id);
            parent = buffer.place(&id).and_then(|at| buffer.rows()[at].spec().parent.clone());
        }
        if hidden {
            self.refold();
        }
        self.selected = self.visible.partition_point(|&visible| visible < at);
    }

    fn settle(&mut self, context: &Context<'_>) {
        if self.buffer.is_some()
            && let Some(task) = self.look.take()
        {
            self.select_task(Some(&task));
        }
        self.wrap_zoom(context);
        self.selected = self.selected.min(self.visible.len().saturating_sub(1));
        let rows = layout::rows(context.area, self.graph).max(1);
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(rows));
        self.top = self.top.min(self.visible.len().saturating_sub(rows));
    }
}
