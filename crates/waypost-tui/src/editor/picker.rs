//! Chooses the dependencies of a task from a list with a filter. Marks tasks that would close a cycle.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use waypost_core::{Dependency, TaskId};

use crate::edit_buffer::EditBuffer;
use crate::keys::{Action, Keys, Place};
use crate::text_input::TextInput;

#[derive(Clone, Debug)]
pub(crate) struct Picker {
    /// `None` for a new task.
    pub(crate) task: Option<TaskId>,
    /// Whether the choice is for the open form.
    pub(crate) for_form: bool,
    pub(crate) filter: TextInput,
    /// In the order of choice. Dependencies on other plans are not listed and stay.
    pub(crate) chosen: Vec<Dependency>,
    /// Rows of the tasks that match the filter.
    pub(crate) found: Vec<usize>,
    pub(crate) selected: usize,
    pub(crate) top: usize,
    /// By row: whether a dependency on it would close a cycle.
    closes_cycle: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Open,
    Kept,
    Discarded,
}

impl Picker {
    pub(crate) fn new(
        buffer: &EditBuffer,
        task: Option<TaskId>,
        chosen: Vec<Dependency>,
        for_form: bool,
    ) -> Self {
        let own = task.as_ref().and_then(|task| buffer.place(task));
        let closes_cycle = own.map_or_else(Vec::new, |at| buffer.dependencies().all_dependants(at));
        let mut picker = Self {
            task,
            for_form,
            filter: TextInput::line(""),
            chosen,
            found: Vec::new(),
            selected: 0,
            top: 0,
            closes_cycle,
        };
        picker.find(buffer);
        picker
    }

    pub(crate) fn is_chosen(&self, id: &TaskId) -> bool {
        self.chosen.iter().any(|on| on.here() == Some(id))
    }

    pub(crate) fn closes_cycle(&self, at: usize) -> bool {
        self.closes_cycle.get(at).copied().unwrap_or(false)
    }

    fn find(&mut self, buffer: &EditBuffer) {
        let wanted = self.filter.text().trim().to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let fits = |at: &usize| {
            let spec = buffer.rows()[*at].spec();
            let other = self.task.as_ref() != Some(&spec.id);
            other && (wanted.is_empty() || has(spec.id.as_str()) || has(&spec.description))
        };
        self.found = (0..buffer.rows().len()).filter(fits).collect();
        self.selected = 0;
        self.top = 0;
    }

    pub(crate) fn paste(&mut self, text: &str, buffer: &EditBuffer) {
        self.filter.insert(text);
        self.find(buffer);
    }

    pub(crate) fn toggle(&mut self, buffer: &EditBuffer) {
        let Some(row) = self.found.get(self.selected).and_then(|&at| buffer.rows().get(at)) else { return };
        let on = Dependency::Task(row.id().clone());
        if self.chosen.contains(&on) {
            self.chosen.retain(|other| *other != on);
        } else {
            self.chosen.push(on);
        }
    }

    pub(crate) fn scroll(&mut self, by: isize, rows: usize) {
        let last = self.found.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(rows.max(1)));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    pub(crate) fn key(&mut self, key: KeyEvent, keys: &Keys, buffer: &EditBuffer, rows: usize) -> Outcome {
        match keys.action_only(Place::Picker, key) {
            Some(Action::Toggle) => {
                self.toggle(buffer);
                self.scroll(1, rows);
                return Outcome::Open;
            }
            Some(Action::Accept) => return Outcome::Kept,
            Some(Action::Back) => return Outcome::Discarded,
            Some(_) | None => {}
        }
        let page = rows.max(1) as isize;
        match key.code {
            KeyCode::Up => self.scroll(-1, rows),
            KeyCode::Down => self.scroll(1, rows),
            KeyCode::PageUp => self.scroll(-page, rows),
            KeyCode::PageDown => self.scroll(page, rows),
            _ => {
                let before = self.filter.text().to_owned();
                self.filter.key(key);
                if before != self.filter.text() {
                    self.find(buffer);
                }
            }
        }
        Outcome::Open
    }
}
