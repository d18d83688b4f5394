//! Turns a text into a command on an existing plan: a new body, or new tasks. Does not decide whether that is allowed.

use std::collections::{HashMap, HashSet, VecDeque};

use waypost_core::{Command, Dependency, Draft, PlanChanges, Problem, TaskId, validate};

use crate::{Dialect, Unreadable, read, sniff};

/// The effect of a text on a plan.
#[derive(Clone, Debug)]
pub struct Update {
    /// The command to send to the plan.
    pub command: Command,
    /// Notes for the author that are not errors.
    pub notes: Vec<String>,
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
/// title and status, where it names them); a text that lists tasks replaces the whole plan. New tasks without an id get the next
/// of `free_ids`.
pub fn update(
    written: Written<'_>,
    before: &Draft,
    free_ids: impl Iterator<Item = TaskId>,
) -> Result<Update, NoUpdate> {
    let Written { text, dialect, file_name, name } = written;
    let found = dialect.or_else(|| sniff(text, file_name));
    // A checklist whose format was not named is plain text, like any text that is neither a plan nor JSON.
    let is_text = match found {
        None => !text.trim_start().starts_with(['{', '[']),
        Some(Dialect::Checklist) => dialect.is_none(),
        Some(_) => false,
    };
    if is_text {
        let changes = PlanChanges { body: Some(text.to_owned()), ..PlanChanges::default() };
        return Ok(Update { command: revise(changes), notes: Vec::new() });
    }
    let mut reading = read(text, found, file_name)?;
    if let [draft] = reading.drafts.as_mut_slice() {
        fit_to_plan(draft, &reading.assigned_ids, before, free_ids);
    }
    let problems = reading.all_problems();
    if !problems.is_empty() {
        return Err(NoUpdate::Invalid(problems));
    }
    let mut notes: Vec<String> = reading.notes.iter().map(|note| format!("{name}: {note}")).collect();
    let (dialect, count) = (reading.dialect, reading.drafts.len());
    let mut drafts = reading.drafts.into_iter();
    let (Some(draft), None) = (drafts.next(), drafts.next()) else { return Err(NoUpdate::NotOne(count)) };
    if let Some(id) = draft.id.as_ref().filter(|id| before.id.as_ref() != Some(id)) {
        notes.push(format!("{name} is of plan {id}; it was written into this one"));
    }
    let command = if dialect == Dialect::PlanDocument {
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
    Ok(Update { command, notes })
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

/// Fits a draft that was read from a text to the plan that it replaces. A task with an assigned id takes the id of a task with
/// the same description that the text does not name, so that applying the same text again changes nothing; otherwise it gets the
/// next of `free_ids`. Fields of other formats that the text cannot hold are kept.
pub fn fit_to_plan(
    draft: &mut Draft,
    assigned_ids: &HashSet<TaskId>,
    before: &Draft,
    free_ids: impl Iterator<Item = TaskId>,
) {
    if !assigned_ids.is_empty() {
        settle_ids(draft, assigned_ids, before, free_ids);
    }
    keep_foreign(draft, before);
}

fn settle_ids(
    draft: &mut Draft,
    assigned_ids: &HashSet<TaskId>,
    before: &Draft,
    free_ids: impl Iterator<Item = TaskId>,
) {
    let ids = draft.tasks.iter().map(|task| &task.spec.id);
    let mut kept: HashSet<TaskId> = ids.filter(|id| !assigned_ids.contains(*id)).cloned().collect();
    let mut free_ids = free_ids.filter({
        let named = kept.clone();
        move |id| !named.contains(id)
    });
    let mut unnamed: HashMap<&str, VecDeque<&TaskId>> = HashMap::new();
    for task in before.tasks.iter().filter(|task| !kept.contains(&task.spec.id)) {
        unnamed.entry(&task.spec.description).or_default().push_back(&task.spec.id);
    }
    let mut settled: HashMap<TaskId, TaskId> = HashMap::with_capacity(assigned_ids.len());
    for spec in draft.tasks.iter().map(|task| &task.spec).filter(|spec| assigned_ids.contains(&spec.id)) {
        let same = unnamed.get_mut(spec.description.as_str()).and_then(VecDeque::pop_front).cloned();
        kept.extend(same.clone());
        settled.extend(same.or_else(|| free_ids.next()).map(|id| (spec.id.clone(), id)));
    }
    for spec in draft.tasks.iter_mut().map(|task| &mut task.spec) {
        for id in std::iter::once(&mut spec.id).chain(&mut spec.parent) {
            if let Some(now) = settled.get(id) {
                id.clone_from(now);
            }
        }
        for dependency in &mut spec.depends_on {
            // `after: t1` means the plan's own t1, if the plan keeps it.
            let assigned = dependency.here().filter(|id| !kept.contains(*id));
            if let Some(now) = assigned.and_then(|id| settled.get(id)) {
                *dependency = Dependency::Task(now.clone());
            }
        }
    }
}

fn keep_foreign(draft: &mut Draft, before: &Draft) {
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
