//! The text beside the tasks: the log of the selected task, or everything about it on the whole screen; searched, and gone through
//! from error to error.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use waypost_core::{EffectiveStatus, TaskId};

use super::log::log_text;
use super::{RunEffect, RunView, TaskDetail};
use crate::markdown::markdown_lines;
use crate::note::NoteKind;
use crate::screen::Context;
use crate::styled_text::{StyledLine, StyledText};
use crate::text_input::TextInput;
use crate::theme::Theme;

/// Rows above a match or an error that was gone to.
const ROWS_ABOVE: usize = 2;

impl RunView {
    /// Takes over the details of the selected task. The log of a failed task opens at its first error.
    pub(super) fn set_detail(&mut self, task: &TaskId, detail: &TaskDetail, context: &Context<'_>) {
        let is_other = self.detail.as_ref().is_none_or(|(known, _)| known != task);
        let is_changed = self.detail.as_ref().is_none_or(|(_, known)| **known != *detail);
        self.detail = Some((task.clone(), Box::new(detail.clone())));
        if is_other || is_changed {
            self.set_text(context);
        }
        let is_running = self.row().is_some_and(|row| row.standing == EffectiveStatus::Running);
        if is_other && self.is_zoomed && !is_running {
            self.behind = self.text.rows();
        }
        let has_failed = self.row().is_some_and(|row| row.standing == EffectiveStatus::Failed);
        if is_other && has_failed && !self.is_zoomed && self.search.is_empty() {
            let first = self.text.marks().first().copied();
            if let Some(line) = first {
                self.go_to(line, context.area);
            }
        }
    }

    /// Builds the text of the loaded details. What is read stays where it is, unless the end is followed.
    pub(super) fn set_text(&mut self, context: &Context<'_>) {
        let theme = context.settings.theme;
        let before = self.text.rows();
        let Some((of, detail)) = &self.detail else { return };
        let times = if self.shows_times { detail.log_times.as_slice() } else { &[] };
        let log = log_text(&detail.log, times, theme);
        let commits =
            self.commits.as_ref().filter(|(task, _)| *task == *of).map_or("", |(_, commits)| commits);
        let note = log_note(detail, !times.is_empty());
        self.text = if self.is_zoomed { whole_text(detail, commits, (&note, log), theme) } else { log };
        self.text.search(&self.search);
        self.wrap_text(context.area);
        if self.behind > 0 {
            self.behind += self.text.rows().saturating_sub(before);
        }
    }

    /// Shows when each line of the log was written, or no longer.
    pub(super) fn toggle_times(&mut self, context: &mut Context<'_>) {
        self.shows_times = !self.shows_times;
        let log = self.detail.as_ref().map(|(_, detail)| detail).filter(|detail| !detail.log.is_empty());
        if self.shows_times && log.is_some_and(|detail| detail.log_times.is_empty()) {
            let words =
                "this log has no times: an earlier version wrote it, or its file is on another machine";
            context.notify(NoteKind::Warning, words);
        }
        self.set_text(context);
    }

    pub(super) fn wrap_text(&mut self, area: Rect) {
        let columns = self.parts(area).text.width.saturating_sub(2);
        self.text.wrap(usize::from(columns));
    }

    /// Gives the text the whole screen, or takes it away.
    pub(super) fn zoom(&mut self, is_zoomed: bool, context: &mut Context<'_>) {
        self.is_zoomed = is_zoomed;
        if let Some(task) = self.row().map(|row| row.id.clone()).filter(|_| is_zoomed) {
            self.ask(RunEffect::LoadCommits(self.plan.clone(), task), context);
        }
        (self.marked, self.behind) = (None, 0);
        self.set_text(context);
        // What the task is about comes first; the end of a running task's log is followed.
        let is_running = self.row().is_some_and(|row| row.standing == EffectiveStatus::Running);
        if is_zoomed && !is_running {
            self.behind = self.text.rows();
        }
    }

    /// The rows of text on the screen.
    pub(super) fn text_rows(&self, area: Rect) -> usize {
        usize::from(self.parts(area).text.height.saturating_sub(2))
    }

    /// Scrolls so that a line is near the top.
    fn go_to(&mut self, line: usize, area: Rect) {
        self.wrap_text(area);
        self.marked = Some(line);
        let room = self.text_rows(area).saturating_sub(self.head_rows(area));
        let top = self.text.row_of(line).saturating_sub(ROWS_ABOVE.min(room / 3));
        self.behind = self.text.rows().saturating_sub(top + room);
    }

    /// Goes to the next match, or to the next error if nothing is searched.
    pub(super) fn jump(&mut self, is_back: bool, context: &mut Context<'_>) {
        // Where nothing was gone to yet, the first stop forward is the first of all, and backward the last.
        let next = self.text.next(self.marked.unwrap_or(usize::MAX), is_back);
        match next {
            Some(line) => self.go_to(line, context.area),
            None if self.search.is_empty() => context.notify(NoteKind::Warning, "the log shows no error"),
            None => context.notify(NoteKind::Warning, format!("nothing in the log has “{}”", self.search)),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    pub(super) fn type_key(&mut self, key: KeyEvent, context: &mut Context<'_>) {
        if let Some(choice) = self.choice_of(key) {
            return self.answer_at(Some(choice), context);
        }
        let Some(find) = &mut self.find else { return };
        let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => self.find = None,
            _ if key.code == KeyCode::Esc || control_c => {
                (self.find, self.marked) = (None, None);
                self.search(String::new(), context);
            }
            _ => {
                find.key(key);
                let wanted = find.text().to_owned();
                self.search(wanted, context);
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(find) = &mut self.find {
            find.insert(text);
        }
    }

    /// Searches the text, and goes to the last match: what matters stands at the end of a log.
    fn search(&mut self, wanted: String, context: &Context<'_>) {
        self.search = wanted;
        self.text.search(&self.search);
        if let Some(line) = self.text.found().last().copied() {
            self.go_to(line, context.area);
        }
    }

    /// The search that is typed, for the footer.
    pub(super) fn typed_search(&self) -> Option<(&TextInput, usize)> {
        self.find.as_ref().map(|find| (find, self.text.found().len()))
    }
}

/// What stands above a log: where it comes from, how much of it is shown, and the zone of its times.
pub(super) fn log_note(detail: &TaskDetail, has_times: bool) -> String {
    if detail.log.is_empty() {
        return detail.log_note.clone();
    }
    let mut words = vec!["log"];
    words.extend((!detail.log_note.is_empty()).then_some(detail.log_note.as_str()));
    words.extend(has_times.then_some("times in UTC"));
    words.join(", ")
}

/// Everything about a task: what its author and its workers said, then its log.
fn whole_text(
    detail: &TaskDetail,
    commits: &str,
    (note, log): (&str, StyledText),
    theme: Theme,
) -> StyledText {
    let mut lines: Vec<StyledLine> = Vec::new();
    for (name, text) in &detail.about {
        let style = if *name == "error" { theme.wrong() } else { theme.quiet() };
        lines.push(StyledLine::plain(name, style));
        match *name {
            "description" | "notes" => lines.extend(markdown_lines(text, theme).0),
            _ => lines.extend(text.lines().map(|line| StyledLine::plain(line, theme.text()))),
        }
        lines.push(StyledLine::default());
    }
    if !commits.is_empty() {
        lines.push(StyledLine::plain("commits", theme.quiet()));
        lines.extend(commits.lines().map(|line| StyledLine::plain(line, theme.text())));
        lines.push(StyledLine::default());
    }
    for why in &detail.why {
        lines.push(StyledLine::plain(&format!("waits for {why}"), theme.quiet()));
    }
    if note.is_empty() {
        return StyledText::new(lines, Vec::new());
    }
    lines.push(StyledLine::plain(&format!("── {note} ──"), theme.quiet()));
    let (log, errors) = log.into_parts();
    let errors = errors.into_iter().map(|line| line + lines.len()).collect();
    lines.extend(log);
    StyledText::new(lines, errors)
}
