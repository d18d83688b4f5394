//! Turns a text into a command on an existing plan: a new body, or new tasks. Does not decide whether that is allowed.

use waypost_core::{Command, Draft, Phase, PlanChanges, PlanId, Problem, Task, TaskId, validate};

use crate::fit::{Baseline, Untaken, fit_to_plan, written_and_read};
use crate::{Dialect, Form, Unreadable, checklist, read, sniff, write};

/// The effect of a text on a plan.
#[derive(Clone, Debug)]
pub struct Update {
    /// The command to send to the plan.
    pub command: Command,
    /// Notes for the author that are not errors.
    pub notes: Vec<String>,
    /// The phase that the author wrote in place of the plan's. No text sets it.
    pub phase: Option<Phase>,
}

/// Why a text gives no update.
#[derive(Debug, thiserror::Error)]
pub enum NoUpdate {
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// The plan in it is invalid.
    #[error("the plan is not valid")]
    Invalid(Vec<Problem>),
    /// It holds no plan, or several.
    #[error("it holds {0} plans; expected one")]
    NotOne(usize),
}

/// A text and its origin.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    pub text: &'a str,
    /// Its format, if known.
    pub dialect: Option<Dialect>,
    /// The file that it was read from, if any.
    pub file_name: Option<&'a str>,
    /// Its name in notes.
    pub name: &'a str,
}

/// Returns the command that applies a text to the plan `before`. A Markdown text or a plan document replaces the body (and the
/// title and status, where it names them); a text that lists tasks replaces the whole plan, but for what its format cannot say. New
/// tasks without an id get the next of `free_ids`. `written_from` is the plan as it was when the text was written, if that is known:
/// what others changed since stays.
pub fn update(
    written: Written<'_>,
    before: &Draft,
    written_from: Option<&Draft>,
    free_ids: impl Iterator<Item = TaskId>,
) -> Result<Update, NoUpdate> {
    let Written { text, dialect, file_name, name } = written;
    let found = dialect.or_else(|| sniff(text, file_name));
    let is_unnamed_list = found == Some(Dialect::Checklist) && dialect.is_none();
    // A text that is neither a plan nor JSON is the body, and so is a list in a plan that is only a text.
    let is_text = match found {
        None => !text.trim_start().starts_with(['{', '[']),
        // The list of a plan without tasks has no items.
        Some(Dialect::Checklist) if before.tasks.is_empty() => {
            is_unnamed_list || !checklist::looks_like(text, file_name)
        }
        Some(_) => false,
    };
    if before.tasks.is_empty() && is_as_written(text, found, before) {
        return Ok(Update { command: revise(PlanChanges::default()), notes: Vec::new(), phase: None });
    }
    if is_text {
        return Ok(body(without_title(text, before)));
    }
    let mut reading = read(text, found, file_name)?;
    let mut untaken = Untaken::default();
    if let [draft] = reading.drafts.as_mut_slice() {
        let has_prose = !draft.spec.body.trim().is_empty();
        let dialect = reading.dialect;
        let said = written_from.and_then(|from| written_and_read(from, draft, dialect, file_name));
        let baseline = said.as_ref().map_or(Baseline::Format(dialect, file_name), Baseline::LastText);
        untaken = fit_to_plan(draft, &reading.assigned_ids, baseline, before, free_ids);
        let is_known = |task: &Task| before.tasks.iter().any(|known| known.spec.id == task.spec.id);
        if is_unnamed_list && !draft.tasks.iter().any(is_known) {
            // A text with boxes in it, and not the plan's tasks.
            if has_prose {
                return Ok(body(text));
            }
            let unclear = "it is a list, and none of its items is a task of the plan: to replace the tasks, name the format checklist";
            return Err(Unreadable::NoPlan(unclear.to_owned()).into());
        }
    }
    let problems = reading.all_problems();
    if !problems.is_empty() {
        return Err(NoUpdate::Invalid(problems));
    }
    let mut notes: Vec<String> = reading.notes.iter().map(|note| format!("{name}: {note}")).collect();
    notes.append(&mut untaken.notes);
    let (dialect, count) = (reading.dialect, reading.drafts.len());
    let mut drafts = reading.drafts.into_iter();
    let (Some(draft), None) = (drafts.next(), drafts.next()) else { return Err(NoUpdate::NotOne(count)) };
    let is_other = |id: &&PlanId| before.id.as_ref() != Some(*id) && !reading.derived_ids.contains(*id);
    if let Some(id) = draft.id.as_ref().filter(is_other) {
        notes.push(format!("{name} is of plan {id}; it was written into this one"));
    }
    let command = if dialect == Dialect::PlanDocument {
        if !draft.spec.owner.is_empty() && draft.spec.owner != before.spec.owner {
            notes.push(format!("the author was not changed to {}", draft.spec.owner));
        }
        revise(document(draft, true))
    } else if dialect == Dialect::Markdown && draft.tasks.is_empty() {
        if !before.tasks.is_empty() {
            notes.push("the text lists no tasks, so those of the plan stay".to_owned());
        }
        let has_front_matter = text.trim_start_matches('\u{feff}').starts_with("---");
        revise(document(draft, has_front_matter))
    } else {
        Command::Replace(Box::new(draft))
    };
    Ok(Update { command, notes, phase: untaken.phase })
}

/// Whether a text is what a plan without tasks is written as: some of its formats leave out a part of the body.
fn is_as_written(text: &str, found: Option<Dialect>, before: &Draft) -> bool {
    let dialects = found.map_or_else(|| vec![Dialect::Checklist, Dialect::Markdown], |found| vec![found]);
    dialects.into_iter().any(|dialect| {
        write(before, dialect, Form::AsRead).is_ok_and(|writing| writing.text.trim_end() == text.trim_end())
    })
}

/// Returns a text without the heading that a list of a plan without tasks begins with: the plan's title. A plan whose body begins
/// with that heading keeps it.
fn without_title<'a>(text: &'a str, before: &'a Draft) -> &'a str {
    let heading = format!("# {}\n", before.spec.title);
    let known = before.spec.body.as_str();
    let found =
        text.strip_prefix(&heading).filter(|_| before.tasks.is_empty() && !known.starts_with(&heading));
    match found {
        Some(rest) if rest.trim() == known.trim() => known,
        // Items in a body would be tasks, so a list leaves such a body out.
        Some(rest) if rest.trim().is_empty() && checklist::looks_like(known, None) => known,
        Some(rest) => rest.trim_start_matches(['\r', '\n']),
        None => text,
    }
}

/// Returns the update by a text that is the plan's body.
fn body(text: &str) -> Update {
    let changes = PlanChanges { body: Some(text.to_owned()), ..PlanChanges::default() };
    Update { command: revise(changes), notes: Vec::new(), phase: None }
}

fn revise(changes: PlanChanges) -> Command {
    Command::RevisePlan(Box::new(changes))
}

/// Returns the changes by a document: its body, and the title and status if it names them.
fn document(draft: Draft, names: bool) -> PlanChanges {
    let named = |text: String| Some(text).filter(|text| names && !text.is_empty());
    PlanChanges {
        body: Some(draft.spec.body),
        title: named(draft.spec.title),
        status: named(draft.spec.status),
        ..PlanChanges::default()
    }
}

impl crate::Reading {
    /// Returns all problems: of the text in its format, and of the plans in it.
    pub fn all_problems(&self) -> Vec<Problem> {
        let mut problems = self.problems.clone();
        for problem in self.drafts.iter().flat_map(validate) {
            // A reader may have reported the same already.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}
