//! Choosing the value of a field of the selected task or of the plan from a list. A status is written at once; everything else is an
//! edit like any other.

use waypost_core::{Complexity, PlanSpec, TaskId, TaskSpec};
use waypost_text::count;

use super::Editor;
use super::form::{Field, with_executor};
use super::overlay::{Choosing, Settable};
use crate::dialog::menu::{Menu, MenuOption};
use crate::dialog::{Choice, Dialog};
use crate::messages::Effect;
use crate::note::NoteKind;
use crate::run_view::{RunEffect, task_statuses};
use crate::screen::Context;
use crate::text;

/// Priorities that are always offered.
const PRIORITIES: [(i32, &str); 4] = [(10, "urgent"), (5, "high"), (0, "normal"), (-5, "low")];
/// Maximum width of a task's description in a list.
const TITLE_COLUMNS: usize = 60;

impl Editor {
    fn open_list(&mut self, choosing: Choosing, dialog: Dialog, context: &mut Context<'_>) {
        self.choosing = Some(choosing);
        context.ask(dialog);
    }

    /// Lets one of the fields be chosen, each with its value.
    pub(super) fn choose_what(&mut self, context: &mut Context<'_>) {
        let Some(buffer) = &self.buffer else { return };
        let mut options = Vec::new();
        if let Some(row) = self.at().and_then(|at| buffer.rows().get(at)) {
            let spec = row.spec();
            let none = |value: Option<&str>| value.unwrap_or("none").to_owned();
            options.extend([
                (Settable::Status, "status", buffer.sign(row).label().to_owned()),
                (Settable::Complexity, "complexity", none(spec.complexity.map(Complexity::as_str))),
                (Settable::Priority, "priority", spec.priority.to_string()),
                (
                    Settable::Executor,
                    "executor",
                    none(spec.work.as_deref().map(|work| work.executor.as_str())),
                ),
                (Settable::Parent, "part of", none(spec.parent.as_ref().map(TaskId::as_str))),
            ]);
        }
        let plan = buffer.spec();
        options.extend([
            (Settable::Title, "title of the plan", plan.title.clone()),
            (Settable::Note, "note on the plan", plan.status.clone()),
            (Settable::Queue, "queue of the plan", plan.queue.clone()),
            (Settable::Owner, "owner of the plan", plan.owner.clone()),
        ]);
        let fields = options.iter().map(|(field, _, _)| *field).collect();
        let menu =
            Menu::new(options.into_iter().map(|(_, name, value)| MenuOption::new(name, value)).collect());
        let title = self.selected_task().map_or_else(|| "Set".to_owned(), |task| format!("Set in {task}"));
        self.open_list(
            Choosing::What(fields),
            Dialog::choose_from(title, Vec::new(), menu, "choose"),
            context,
        );
    }

    /// Lets the value of the form's field be chosen.
    pub(super) fn pick_for_form(&mut self, context: &mut Context<'_>) {
        let field = match self.form.as_ref().map(|form| form.focus) {
            Some(Field::Complexity) => Settable::Complexity,
            Some(Field::Priority) => Settable::Priority,
            Some(Field::Executor) => Settable::Executor,
            Some(Field::Parent) => Settable::Parent,
            Some(Field::Description | Field::Notes | Field::DependsOn | Field::Tools | Field::Skip)
            | None => {
                return;
            }
        };
        self.choose(field, context);
    }

    /// The task whose values are chosen: that of the form, or the selected one.
    fn target(&self) -> Option<TaskSpec> {
        match &self.form {
            Some(form) => Some(form.spec()),
            None => Some(self.buffer.as_ref()?.rows().get(self.at()?)?.spec().clone()),
        }
    }

    fn choose(&mut self, field: Settable, context: &mut Context<'_>) {
        match field {
            Settable::Status => self.choose_status(context),
            Settable::Complexity => {
                let values =
                    vec![None, Some(Complexity::Low), Some(Complexity::Medium), Some(Complexity::High)];
                let label = |value: &Option<Complexity>| value.map_or("not set", Complexity::as_str);
                let options = values.iter().map(|value| MenuOption::new(label(value), "")).collect();
                let at = self.target().and_then(|spec| values.iter().position(|one| *one == spec.complexity));
                let menu = Menu::new(options).at(at.unwrap_or(0));
                let dialog = Dialog::choose_from("Complexity", Vec::new(), menu, "set");
                self.open_list(Choosing::Complexity(values), dialog, context);
            }
            Settable::Priority => self.choose_priority(context),
            Settable::Executor => self.choose_executor(context),
            Settable::Parent => self.choose_parent(context),
            Settable::Title | Settable::Note | Settable::Queue | Settable::Owner => {
                self.choose_plan_text(field, context);
            }
        }
    }

    fn choose_status(&mut self, context: &mut Context<'_>) {
        let Some(buffer) = &self.buffer else { return };
        let Some(row) = self.at().and_then(|at| buffer.rows().get(at)) else { return };
        let id = row.id().clone();
        if !buffer.base().tasks.iter().any(|task| task.spec.id == id) {
            return context.notify(NoteKind::Warning, format!("{id} is not saved yet: save it first"));
        }
        let lines = vec![format!("It is {}. The status is written at once.", buffer.sign(row).label())];
        let (actions, options): (Vec<_>, Vec<_>) = task_statuses(row.standing, &id).into_iter().unzip();
        let dialog =
            Dialog::choose_from(format!("Status of {id}"), lines, Menu::new(options).unmarked(), "set");
        self.open_list(Choosing::Status(actions), dialog, context);
    }

    fn choose_priority(&mut self, context: &mut Context<'_>) {
        let Some(spec) = self.target() else { return };
        let rows = self.buffer.iter().flat_map(|buffer| buffer.rows());
        let mut values: Vec<i32> = rows.map(|row| row.spec().priority).collect();
        values.extend(PRIORITIES.iter().map(|(value, _)| *value));
        values.push(spec.priority);
        values.sort_by_key(|value| std::cmp::Reverse(*value));
        values.dedup();
        let word =
            |value: i32| PRIORITIES.iter().find(|(known, _)| *known == value).map_or("", |(_, word)| word);
        let options = values.iter().map(|&value| MenuOption::new(value.to_string(), word(value))).collect();
        let at = values.iter().position(|value| *value == spec.priority).unwrap_or(0);
        let lines =
            vec!["A task with a higher priority starts first. Type another number, or choose.".to_owned()];
        let menu = Menu::filtered(options).or_typed().at(at);
        let dialog = Dialog::choose_from("Priority", lines, menu, "set");
        self.open_list(Choosing::Priority(values), dialog, context);
    }

    fn choose_executor(&mut self, context: &mut Context<'_>) {
        let (Some(spec), Some(buffer)) = (self.target(), &self.buffer) else { return };
        let known = buffer.executors();
        let used = buffer.rows().iter().filter_map(|row| row.spec().work.as_deref());
        let mut names: Vec<String> = used.map(|work| work.executor.clone()).collect();
        names.extend(known.iter().cloned());
        names.sort();
        names.dedup();
        let option = |name: &String| {
            let is_known = known.contains(name);
            MenuOption::new(name.clone(), if is_known { "" } else { "not in this configuration" })
        };
        let mut options = vec![MenuOption::new("none", "an agent or a person does it")];
        options.extend(names.iter().map(option));
        let values: Vec<Option<String>> = std::iter::once(None).chain(names.into_iter().map(Some)).collect();
        let now = spec.work.as_deref().map(|work| work.executor.clone());
        let at = values.iter().position(|value| *value == now).unwrap_or(0);
        let menu = Menu::filtered(options).at(at);
        let dialog = Dialog::choose_from("Executor", Vec::new(), menu, "set");
        self.open_list(Choosing::Executor(values), dialog, context);
    }

    fn choose_parent(&mut self, context: &mut Context<'_>) {
        let (Some(spec), Some(buffer)) = (self.target(), &self.buffer) else { return };
        // A task is no part of itself, and of none of its parts.
        let own = buffer.place(&spec.id).map(|at| buffer.family(at));
        let rows = buffer.rows().iter().enumerate();
        let others: Vec<_> = rows
            .filter(|(at, _)| own.as_ref().is_none_or(|own| !own.contains(at)))
            .map(|(_, row)| row)
            .collect();
        let mut options = vec![MenuOption::new("nothing", "it stands alone")];
        options.extend(others.iter().map(|row| {
            let title = text::excerpt(&row.spec().description, TITLE_COLUMNS).into_owned();
            MenuOption::new(format!("{} {}", buffer.sign(row).glyph(), row.id()), title)
        }));
        let values: Vec<Option<TaskId>> =
            std::iter::once(None).chain(others.iter().map(|row| Some(row.id().clone()))).collect();
        let at = values.iter().position(|value| *value == spec.parent).unwrap_or(0);
        let menu = Menu::filtered(options).at(at);
        let dialog = Dialog::choose_from(format!("{} is part of", spec.id), Vec::new(), menu, "set");
        self.open_list(Choosing::Parent(values), dialog, context);
    }

    fn choose_plan_text(&mut self, field: Settable, context: &mut Context<'_>) {
        let Some(buffer) = &self.buffer else { return };
        let spec = buffer.spec();
        let ask = |title: &str, text: &str| Dialog::ask(title, Vec::new(), text, "keep");
        let (texts, dialog) = match field {
            Settable::Title => (Vec::new(), ask("Title of the plan", &spec.title)),
            Settable::Note => (Vec::new(), ask("Note on the plan", &spec.status)),
            Settable::Queue => {
                let mut texts = vec![String::new()];
                texts.extend(buffer.queues().iter().cloned());
                if !texts.contains(&spec.queue) {
                    texts.push(spec.queue.clone());
                }
                (texts, text_menu("Queue of the plan", "(default queue)", buffer.queues(), &spec.queue))
            }
            Settable::Owner => {
                let known: Vec<String> =
                    Some(spec.owner.clone()).into_iter().filter(|owner| !owner.is_empty()).collect();
                let texts = std::iter::once(String::new()).chain(known.iter().cloned()).collect();
                (texts, text_menu("Owner of the plan", "(nobody)", &known, &spec.owner))
            }
            Settable::Status
            | Settable::Complexity
            | Settable::Priority
            | Settable::Executor
            | Settable::Parent => return,
        };
        self.open_list(Choosing::Plan(field, texts), dialog, context);
    }

    /// Takes over what was chosen. Returns whether a list was open.
    pub(super) fn take_choice(&mut self, choice: &Choice, typed: &str, context: &mut Context<'_>) -> bool {
        let Some(choosing) = self.choosing.take() else { return false };
        let at = if let Choice::Option(at) = choice { Some(*at) } else { None };
        match (choosing, at) {
            (Choosing::What(fields), Some(at)) => {
                if let Some(field) = fields.get(at) {
                    self.choose(*field, context);
                }
            }
            (Choosing::Status(actions), Some(at)) => {
                if context.settings.dry_run {
                    context.notify(
                        NoteKind::Warning,
                        "[dry run] the status would be set now; nothing was written",
                    );
                } else if let Some(action) = actions.get(at).cloned() {
                    let (plan, success) = (self.plan.clone(), "set the status".to_owned());
                    context.effects.push(Effect::Run(RunEffect::Write { plan, action, success }));
                }
            }
            (Choosing::Complexity(values), Some(at)) => {
                if let Some(value) = values.get(at).copied() {
                    self.set(|spec| spec.complexity = value);
                }
            }
            (Choosing::Priority(values), Some(at)) => {
                if let Some(value) = values.get(at).copied() {
                    self.set(|spec| spec.priority = value);
                }
            }
            (Choosing::Priority(_), None) => match typed.trim().parse() {
                Ok(value) => self.set(|spec| spec.priority = value),
                Err(_) => {
                    context.notify(NoteKind::Warning, format!("{:?} is not a whole number", typed.trim()));
                }
            },
            (Choosing::Executor(values), Some(at)) => {
                if let Some(value) = values.get(at).cloned() {
                    self.set(|spec| spec.work = with_executor(spec.work.as_deref(), value.as_deref()));
                }
            }
            (Choosing::Parent(values), Some(at)) => {
                if let Some(value) = values.get(at).cloned() {
                    self.set_parent(value, context);
                }
            }
            (Choosing::Plan(field, texts), at) => {
                let text =
                    at.and_then(|at| texts.get(at).cloned()).unwrap_or_else(|| typed.trim().to_owned());
                self.set_plan(field, text);
            }
            (Choosing::What(_) | Choosing::Status(_) | Choosing::Complexity(_), None)
            | (Choosing::Executor(_) | Choosing::Parent(_), None) => {}
        }
        true
    }

    /// Changes the task of the form, or the selected one.
    fn set(&mut self, change: impl FnOnce(&mut TaskSpec)) {
        let Some(mut spec) = self.target() else { return };
        change(&mut spec);
        if let Some(form) = &mut self.form {
            form.complexity = spec.complexity;
            form.priority = spec.priority;
            form.executor = spec.work.map(|work| work.executor);
            form.parent = spec.parent;
        } else {
            self.change(|buffer, at| {
                buffer.revise(at, spec);
            });
        }
    }

    fn set_parent(&mut self, parent: Option<TaskId>, context: &mut Context<'_>) {
        if let Some(form) = &mut self.form {
            form.parent = parent;
            return;
        }
        let Some(id) = self.selected_task().cloned() else { return };
        let mut is_moved = false;
        if let (Some(buffer), Some(at)) = (&mut self.buffer, self.visible.get(self.selected).copied()) {
            is_moved = buffer.set_parent(at, parent);
        }
        self.select_task(Some(&id));
        if !is_moved {
            context.notify(NoteKind::Good, format!("{id} stays where it is"));
        }
    }

    fn set_plan(&mut self, field: Settable, text: String) {
        let Some(buffer) = &mut self.buffer else { return };
        let spec = buffer.spec().clone();
        buffer.revise_plan(match field {
            Settable::Title => PlanSpec { title: text, ..spec },
            Settable::Note => PlanSpec { status: text, ..spec },
            Settable::Queue => PlanSpec { queue: text, ..spec },
            Settable::Owner => PlanSpec { owner: text, ..spec },
            Settable::Status
            | Settable::Complexity
            | Settable::Priority
            | Settable::Executor
            | Settable::Parent => return,
        });
        self.refold();
    }

    /// Goes to a task that the selected one depends on, or that depends on it. Further ones follow from there.
    pub(super) fn follow_edge(&mut self, is_up: bool, context: &mut Context<'_>) {
        let (Some(buffer), Some(at)) = (&self.buffer, self.at()) else { return };
        let places: Vec<usize> = match is_up {
            true => {
                let on = buffer.rows()[at].spec().depends_on.iter();
                on.filter_map(|on| buffer.place(on.here()?)).collect()
            }
            false => buffer.dependencies().dependants(at).collect(),
        };
        let id = buffer.rows()[at].id().to_string();
        let Some(&first) = places.first() else {
            let said = if is_up {
                format!("{id} depends on no task of this plan")
            } else {
                format!("nothing depends on {id}")
            };
            return context.notify(NoteKind::Good, said);
        };
        let look = buffer.rows()[first].id().clone();
        if places.len() > 1 {
            let what = if is_up { "dependency" } else { "dependant" };
            context.notify(NoteKind::Good, format!("the first of {}", count(places.len(), what)));
        }
        self.select_task(Some(&look));
    }
}

/// A list of texts, of which the first is none; another can be typed.
fn text_menu(title: &str, none: &str, known: &[String], now: &str) -> Dialog {
    let mut options = vec![MenuOption::new(none, "")];
    options.extend(known.iter().map(|text| MenuOption::new(text.clone(), "")));
    if !now.is_empty() && !known.iter().any(|text| text == now) {
        options.push(MenuOption::new(now, ""));
    }
    let at = options.iter().position(|option| option.label == now).unwrap_or(0);
    let lines = vec!["Type a new name, or choose one.".to_owned()];
    Dialog::choose_from(title, lines, Menu::filtered(options).or_typed().at(at), "keep")
}
