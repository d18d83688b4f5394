//! What a text means to a plan that exists already: another body, or other tasks. Decides nothing about whether that is
//! allowed.

use std::collections::HashMap;

use waypost_core::{Command, Draft, PlanChanges, Problem, validate};

use crate::{Dialect, Unreadable, read, sniff};

/// What follows from a text.
#[derive(Clone, Debug)]
pub struct Update {
    /// What to ask of the plan.
    pub command: Command,
    /// What its author should know although it is not wrong.
    pub notes: Vec<String>,
}

/// Why nothing follows from a text.
#[derive(Debug, thiserror::Error)]
pub enum NoUpdate {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// What it says is no sound plan.
    #[error("the plan is not valid")]
    Invalid(Vec<Problem>),
    /// It holds no plan, or several.
    #[error("it holds {0} plans; expected one")]
    NotOne(usize),
}

/// A text, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    pub text: &'a str,
    /// Its format, if somebody says.
    pub dialect: Option<Dialect>,
    /// The file that it stands in, if it does.
    pub file_name: Option<&'a str>,
    /// How it is spoken of in notes.
    pub name: &'a str,
}

/// What a text makes of the plan that is now as `before` says. A Markdown text or a plan document gives it another body
/// (and title and status, where it names them); a text that lists tasks makes the plan what it says.
pub fn update(written: Written<'_>, before: &Draft) -> Result<Update, NoUpdate> {
    let Written { text, dialect, file_name, name } = written;
    let found = dialect.or_else(|| sniff(text, file_name));
    // A checklist that nobody called a plan is text, as is whatever is no plan and no JSON.
    let is_text = match found {
        None => !text.trim_start().starts_with(['{', '[']),
        Some(Dialect::Checklist) => dialect.is_none(),
        Some(_) => false,
    };
    if is_text {
        let changes = PlanChanges { body: Some(text.to_owned()), ..PlanChanges::default() };
        return Ok(Update { command: revise(changes), notes: Vec::new() });
    }
    let reading = read(text, found, file_name)?;
    let problems = reading.all_problems();
    if !problems.is_empty() {
        return Err(NoUpdate::Invalid(problems));
    }
    let mut notes: Vec<String> = reading.notes.iter().map(|note| format!("{name}: {note}")).collect();
    let (dialect, count) = (reading.dialect, reading.drafts.len());
    let mut drafts = reading.drafts.into_iter();
    let (Some(mut draft), None) = (drafts.next(), drafts.next()) else { return Err(NoUpdate::NotOne(count)) };
    if let Some(id) = draft.id.as_ref().filter(|id| before.id.as_ref() != Some(id)) {
        notes.push(format!("{name} is of plan {id}; it was written into this one"));
    }
    let command = match dialect {
        Dialect::PlanDocument => revise(document(draft, true)),
        Dialect::Markdown if draft.tasks.is_empty() => {
            if !before.tasks.is_empty() {
                notes.push("the text lists no tasks, so those of the plan stay".to_owned());
            }
            let has_front_matter = text.trim_start_matches('\u{feff}').starts_with("---");
            revise(document(draft, has_front_matter))
        }
        Dialect::Native
        | Dialect::Clido
        | Dialect::Jaato
        | Dialect::Frctl
        | Dialect::Agora
        | Dialect::Markdown
        | Dialect::Checklist
        | Dialect::TaskMaster
        | Dialect::Beads
        | Dialect::Backlog
        | Dialect::Mermaid
        | Dialect::Dot
        | Dialect::Graphml
        | Dialect::Svg => {
            keep_foreign(&mut draft, before);
            Command::Replace(Box::new(draft))
        }
    };
    Ok(Update { command, notes })
}

fn revise(changes: PlanChanges) -> Command {
    Command::RevisePlan(Box::new(changes))
}

/// What a document says of a plan: its body, and what else it names.
fn document(draft: Draft, names: bool) -> PlanChanges {
    let named = |text: String| Some(text).filter(|text| names && !text.is_empty());
    PlanChanges {
        body: Some(draft.spec.body),
        title: named(draft.spec.title),
        status: named(draft.spec.status),
        ..PlanChanges::default()
    }
}

/// What a text cannot hold of other formats' fields stays as it was.
pub fn keep_foreign(draft: &mut Draft, before: &Draft) {
    for (format, fields) in &before.spec.foreign.0 {
        draft.spec.foreign.0.entry(format.clone()).or_insert_with(|| fields.clone());
    }
    let old: HashMap<_, _> = before.tasks.iter().map(|task| (&task.spec.id, &task.spec)).collect();
    for task in &mut draft.tasks {
        if let Some(old) = old.get(&task.spec.id)
            && task.spec.foreign.is_empty()
        {
            task.spec.foreign = old.foreign.clone();
        }
    }
}

impl crate::Reading {
    /// Everything that is wrong: with the text as a text of its format, and with the plans in it.
    pub fn all_problems(&self) -> Vec<Problem> {
        let mut problems = self.problems.clone();
        for problem in self.drafts.iter().flat_map(validate) {
            // A reader may have seen the same already.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}
