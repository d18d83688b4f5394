//! What clones disagree about after a merge: the question with every version, and the answers that can be chosen.

use waypost_service::{AnswerChoice, MergeQuestion};
use waypost_service::{AnswerKind, Conflict, ConflictKind, ConflictVersion};

use super::{DRY_RUN, OpenDialog, PARTICULAR_BYTES_MAX, PlanAction, Resolution, RunView};
use crate::dialog::Dialog;
use crate::dialog::menu::{Menu, MenuOption};
use crate::messages::{Effect, Purpose};
use crate::note::{ErrorMessage, NoteKind};
use crate::screen::Context;
use crate::text;

/// Columns of a version next to the option that takes it.
const OPTION_COLUMNS: usize = 40;

impl RunView {
    /// Asks the first question about the selected task.
    pub(super) fn resolve_task(&mut self, context: &mut Context<'_>) {
        let Some(task) = self.row().map(|row| row.id.clone()) else { return };
        let at = self.snapshot.as_ref().and_then(|snapshot| {
            snapshot.conflicts.iter().position(|question| question.conflict.task.as_ref() == Some(&task))
        });
        self.resolve_at(at.unwrap_or(0), context);
    }

    /// Asks the first question.
    pub(super) fn resolve_next(&mut self, context: &mut Context<'_>) {
        self.resolve_at(0, context);
    }

    fn resolve_at(&mut self, at: usize, context: &mut Context<'_>) {
        if context.settings.dry_run {
            return context.notify(NoteKind::Warning, DRY_RUN);
        }
        let Some(snapshot) = &self.snapshot else { return };
        let Some(question) = snapshot.conflicts.get(at).cloned() else {
            return context.notify(NoteKind::Good, "no question of a merge is open in this plan");
        };
        let conflict = &question.conflict;
        if conflict.versions.iter().any(|version| version.value.len() > PARTICULAR_BYTES_MAX) {
            let message =
                "a version is too long for this screen: answer in the dashboard, or with `waypost resolve`";
            return context.notify(NoteKind::Warning, message);
        }
        let (resolutions, options): (Vec<_>, Vec<_>) =
            resolutions(conflict, snapshot.conflicts.len()).into_iter().unzip();
        let of = conflict.task.as_ref().map_or_else(|| "the plan".to_owned(), ToString::to_string);
        let title = match snapshot.conflicts_total {
            0 | 1 => format!("Clones disagree: {of}, {}", conflict.subject),
            total => format!("Clones disagree ({} of {total}): {of}, {}", at + 1, conflict.subject),
        };
        let menu = Menu::new(options).unmarked();
        let dialog = Dialog::choose_from(title, lines_of(conflict), menu, "choose").to_be_read();
        self.dialog(OpenDialog::Resolve(Box::new(question), resolutions), dialog, context);
    }

    /// Takes a chosen answer, or asks for the text that belongs to it.
    pub(super) fn resolved(
        &mut self,
        question: MergeQuestion,
        resolution: Resolution,
        context: &mut Context<'_>,
    ) {
        match resolution {
            Resolution::Whole(choice) => self.send_resolution(question.digest, choice, context),
            Resolution::Later => {
                let known = self.snapshot.as_ref().map_or(&[][..], |snapshot| &snapshot.conflicts);
                let at = known.iter().position(|other| other.digest == question.digest);
                let next = at.map_or(0, |at| (at + 1) % known.len().max(1));
                self.resolve_at(next, context);
            }
            Resolution::Text => {
                let shown = question.conflict.shown.and_then(|at| question.conflict.versions.get(at));
                let value = shown.or(question.conflict.versions.last()).map(|version| version.value.clone());
                let value = value.unwrap_or_default();
                if question.conflict.versions.iter().any(|version| version.value.contains('\n')) {
                    let purpose = Purpose::Resolve(self.plan.clone(), question.digest);
                    context.effects.push(Effect::EditText { purpose, text: value, ending: "md" });
                    return;
                }
                let lines = vec![format!("The text of {}.", question.conflict.subject)];
                let dialog = Dialog::ask("Clones disagree", lines, &value, "answer");
                self.dialog(OpenDialog::ResolveText(question.digest), dialog, context);
            }
        }
    }

    /// Takes the text that was written in `$EDITOR`.
    pub(super) fn resolve_edited(
        &mut self,
        seen: &str,
        text: &Result<Option<String>, ErrorMessage>,
        context: &mut Context<'_>,
    ) {
        match text {
            Ok(Some(text)) => {
                let text = text.strip_suffix('\n').unwrap_or(text);
                self.send_resolution(seen.to_owned(), AnswerChoice::Text(text.to_owned()), context);
            }
            Ok(None) => context.notify(NoteKind::Warning, "the text was not changed; nothing was answered"),
            Err(error) => context.notify_error(error),
        }
    }

    pub(super) fn send_resolution(&mut self, seen: String, choice: AnswerChoice, context: &mut Context<'_>) {
        let left = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.conflicts_total.saturating_sub(1));
        let success = match left {
            0 => "answered; no question of a merge is open".to_owned(),
            left => format!("answered; {} left, Q shows the next", text::count(left, "question")),
        };
        self.write(PlanAction::Resolve { choice, seen }, &success, context);
    }
}

/// Who wrote a version, and when.
fn who(version: &ConflictVersion) -> String {
    let ConflictVersion { by, from, at, .. } = version;
    format!("{by} · {} UTC · clone {from}", at.to_the_second())
}

/// The question with everything that its digest covers, in full.
fn lines_of(conflict: &Conflict) -> Vec<String> {
    let mut lines = vec![text::reveal(&conflict.text).into_owned()];
    for (at, version) in conflict.versions.iter().enumerate() {
        let shown = if conflict.shown == Some(at) { " · shown now" } else { "" };
        lines.push(String::new());
        lines.push(format!("{}  {}{shown}", at + 1, text::reveal(&who(version))));
        lines.extend(value_lines(conflict, version).map(|line| format!("   {line}")));
    }
    lines
}

/// The lines of a version. An act, such as a removal, has none.
fn value_lines(conflict: &Conflict, version: &ConflictVersion) -> impl Iterator<Item = String> {
    let is_value = conflict.answers.contains(&AnswerKind::Take);
    let value = if version.value.is_empty() && is_value { "(nothing)" } else { version.value.as_str() };
    value.lines().map(|line| text::reveal(line).into_owned())
}

/// The versions of a conflict, as a task shows them beside its log.
pub(super) fn brief_lines(conflict: &Conflict) -> Vec<String> {
    let mut lines = vec![format!("≠ {}: clones disagree", conflict.subject)];
    for (at, version) in conflict.versions.iter().enumerate() {
        let mark = if conflict.shown == Some(at) { "shown: " } else { "" };
        let value = value_lines(conflict, version).next().unwrap_or_default();
        let line = format!("  {mark}{} ({}): {value}", version.by, version.from);
        lines.push(line.trim_end_matches(": ").to_owned());
    }
    lines
}

/// The answers that fit a conflict.
fn resolutions(conflict: &Conflict, open: usize) -> Vec<(Resolution, MenuOption)> {
    let mut found = Vec::new();
    for kind in &conflict.answers {
        match kind {
            AnswerKind::Take => found.extend(conflict.versions.iter().enumerate().map(|(at, version)| {
                let choice = AnswerChoice::Take(version.record.to_string());
                let value = value_lines(conflict, version).next().unwrap_or_default();
                let value = text::truncate(&value, OPTION_COLUMNS).into_owned();
                (
                    Resolution::Whole(choice),
                    MenuOption::new(format!("Take {}: {}", at + 1, version.by), value),
                )
            })),
            AnswerKind::Text => {
                found.push((Resolution::Text, MenuOption::new("Write another text …", "")));
            }
            AnswerKind::Keep => {
                found.push((
                    Resolution::Whole(AnswerChoice::Keep),
                    MenuOption::new("Keep", "nothing is removed"),
                ));
            }
            AnswerKind::Remove => {
                let option = MenuOption::new("Remove", "it is removed all the same");
                found.push((Resolution::Whole(AnswerChoice::Remove), option));
            }
            AnswerKind::Dismiss => {
                let option = match conflict.kind {
                    ConflictKind::Outcome => MenuOption::new("Neither", "the task is done again"),
                    ConflictKind::Field(_)
                    | ConflictKind::Removal
                    | ConflictKind::Dependency
                    | ConflictKind::Parent
                    | ConflictKind::WorkOfGroup
                    | ConflictKind::Delete
                    | ConflictKind::Archive => MenuOption::new("Dismiss", "what was set aside is dropped"),
                };
                found.push((Resolution::Whole(AnswerChoice::Dismiss), option));
            }
        }
    }
    if open > 1 {
        found.push((Resolution::Later, MenuOption::new("Later", "shows the next question")));
    }
    found
}
