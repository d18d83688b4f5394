//! Unsaved edits: those in the buffer, and those in an open form or picker.

use waypost_core::{Draft, Task};
use waypost_formats::{Dialect, Form as Shape, write};

use super::Editor;
use super::form::{Form, Target};

impl Editor {
    /// The number of edits that are only in memory; a changed form or picker counts as one.
    pub(crate) fn unsaved(&self) -> usize {
        let changed = self.buffer.as_ref().filter(|buffer| buffer.is_changed());
        let edits = changed.map_or(0, |buffer| buffer.edits().max(1));
        let chosen = self.picker.as_ref().is_some_and(|picker| match (&self.buffer, &picker.task) {
            (Some(buffer), Some(task)) if !picker.for_form => {
                let now = buffer.place(task).and_then(|at| buffer.rows().get(at));
                now.is_some_and(|row| row.spec().depends_on != picker.chosen)
            }
            (Some(_) | None, Some(_) | None) => false,
        });
        edits + usize::from(chosen || self.form.as_ref().is_some_and(Form::is_changed))
    }

    /// The plan with all unsaved edits, as text; `None` if nothing would be lost.
    pub(crate) fn unsaved_text(&self) -> Option<String> {
        let buffer = self.buffer.as_ref().filter(|_| self.unsaved() > 0)?;
        let mut draft = buffer.draft();
        if let Some(form) = self.form.as_ref().filter(|form| form.is_changed()) {
            put(form, &mut draft);
        }
        if let Some(picker) = self.picker.as_ref().filter(|picker| !picker.for_form)
            && let Some(task) =
                draft.tasks.iter_mut().find(|task| Some(&task.spec.id) == picker.task.as_ref())
        {
            task.spec.depends_on.clone_from(&picker.chosen);
        }
        let written = write(&draft, Dialect::Markdown, Shape::Document);
        // A plan that cannot be written as Markdown is written in the native format.
        let written = written.or_else(|_| write(&draft, Dialect::Native, Shape::AsRead));
        written.ok().map(|writing| writing.text)
    }
}

/// Applies a form to a plan.
fn put(form: &Form, draft: &mut Draft) {
    let spec = form.spec();
    let place = draft.tasks.iter_mut().find(|task| task.spec.id == spec.id);
    match (&form.target, place) {
        (Target::Task(_), Some(task)) => task.spec = spec,
        (Target::Task(_), None) | (Target::New(_), _) => draft.tasks.push(Task::new(spec)),
    }
}
