//! Finding tasks: by a text that is typed, and from match to match or from problem to problem.

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::Editor;
use super::overlay::Direction;
use crate::note::NoteKind;
use crate::screen::Context;

impl Editor {
    /// Goes to the next match if a text was searched for, and otherwise to the next problem.
    pub(super) fn jump(&mut self, direction: Direction, context: &mut Context<'_>) {
        if self.wanted.is_empty() {
            return self.next_problem(direction, context);
        }
        self.find_next(1, direction);
        if self.not_found {
            context.notify(NoteKind::Warning, format!("no task has “{}”", self.wanted));
        }
    }

    fn next_problem(&mut self, direction: Direction, context: &mut Context<'_>) {
        let Some(buffer) = &mut self.buffer else { return };
        buffer.check();
        let count = buffer.rows().len();
        let from = self.visible.get(self.selected).copied().unwrap_or(0);
        let found = (1..=count)
            .map(|step| direction.place(from, step, count))
            .find(|&at| buffer.problems().has(buffer.rows()[at].id().as_str()));
        match found {
            Some(at) => {
                let id = buffer.rows()[at].id().clone();
                let text = buffer
                    .problems()
                    .of_task(id.as_str())
                    .next()
                    .map(|problem| format!("{problem}; {}", problem.hint()));
                context.notify(NoteKind::Wrong, text.unwrap_or_default());
                self.select_task(Some(&id));
            }
            None => match buffer.problems().all().first() {
                Some(problem) => context.notify(NoteKind::Wrong, format!("{problem}; {}", problem.hint())),
                None => context.notify(NoteKind::Good, "no problems"),
            },
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    pub(super) fn find_key(&mut self, key: KeyEvent) {
        let Some(find) = &mut self.find else { return };
        let from = match key.code {
            KeyCode::Esc => return (self.find, self.wanted) = (None, String::new()),
            // The search stays: n and p go on from match to match.
            KeyCode::Enter => return self.find = None,
            KeyCode::Down | KeyCode::Tab => 1,
            _ => {
                find.key(key);
                self.wanted = find.text().to_lowercase();
                0
            }
        };
        self.find_next(from, Direction::Forward);
    }

    /// Selects the next matching task, starting `from` rows away from the selected one and wrapping around.
    pub(super) fn find_next(&mut self, from: usize, direction: Direction) {
        let wanted = &self.wanted;
        self.not_found = false;
        let Some(buffer) = self.buffer.as_ref().filter(|_| !wanted.is_empty()) else { return };
        let count = buffer.rows().len();
        let start = self.visible.get(self.selected).copied().unwrap_or(0);
        let has = |text: &str| text.to_lowercase().contains(wanted);
        let found = (from..=count).map(|step| direction.place(start, step, count.max(1))).find(|&at| {
            buffer.rows().get(at).is_some_and(|row| has(row.id().as_str()) || has(&row.spec().description))
        });
        let id = found.map(|at| buffer.rows()[at].id().clone());
        self.not_found = id.is_none();
        if id.is_some() {
            self.select_task(id.as_ref());
        }
    }
}
