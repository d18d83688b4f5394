//! Fits a draft that was read from a text to the plan that it changes. What the format cannot say stays as it is in the plan:
//! only what differs between the text and the same plan in that format is the author's edit.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use waypost_core::{Dependency, Draft, ForeignFields, Phase, PlanSpec, Task, TaskId, TaskSpec, TaskState};

use waypost_text::truncate_bytes;

use crate::preserved_fields::PreservedFields;
use crate::{Dialect, Form, read, silence, write};

/// The share of two descriptions that must agree for one to count as an edit of the other.
const SIMILAR_MIN: f64 = 0.6;
/// Maximum number of tasks that an edited one is compared with.
const CANDIDATES_MAX: usize = 8;
/// Maximum bytes of a description that are compared.
const COMPARED_BYTES_MAX: usize = 200;

/// Keeps the fields that the text says nothing new about.
macro_rules! keep_unchanged {
    ($wanted:expr, $said:expr, $before:expr, [$($field:ident),+]) => {
        $(if $wanted.$field == $said.$field {
            $wanted.$field.clone_from(&$before.$field);
        })+
    };
}

/// What a text is compared with to find its author's edits.
#[derive(Clone, Copy, Debug)]
pub enum Baseline<'a> {
    /// What the same text said before it was edited. What it no longer says was removed.
    LastText(&'a Draft),
    /// What a text of this format says about the plan. What the author left out stays as it is.
    Format(Dialect, Option<&'a str>),
}

/// Returns what a text of the kind of `like`, which was read as `dialect`, says about a plan: the plan written and read again,
/// with the plan's own task ids. `None` for a format that cannot be written.
pub fn written_and_read(
    before: &Draft,
    like: &Draft,
    dialect: Dialect,
    file_name: Option<&str>,
) -> Option<Draft> {
    let mut kept = PreservedFields::of(&before.spec.foreign, dialect);
    // A Markdown text for people leaves out the data of machines.
    let form = if dialect == Dialect::Markdown && !has_foreign(like) { Form::Document } else { Form::AsRead };
    let text = match PreservedFields::of(&like.spec.foreign, dialect).text("form") {
        Some(read_form) if kept.text("form") != Some(read_form) => {
            kept.set("form", read_form);
            let mut in_form = before.clone();
            kept.keep_in(&mut in_form.spec.foreign, dialect);
            write(&in_form, dialect, form)
        }
        Some(_) | None => write(before, dialect, form),
    };
    let text = text.ok()?.text;
    let mut reading = read(&text, Some(dialect), file_name).ok()?;
    let mut said = reading.drafts.pop().filter(|_| reading.drafts.is_empty())?;
    let ids: Vec<&TaskId> = depth_first(before);
    if said.tasks.len() == ids.len() {
        let known: HashSet<&TaskId> = ids.iter().copied().collect();
        let in_order: Vec<TaskId> = depth_first(&said).into_iter().cloned().collect();
        let is_other = |id: &TaskId| reading.assigned_ids.contains(id) || !known.contains(id);
        let others = in_order.into_iter().zip(ids).filter(|(id, _)| is_other(id));
        rename(&mut said, &others.map(|(id, own)| (id, own.clone())).collect(), &HashSet::new());
    }
    Some(said)
}

/// Whether a draft has fields of other formats.
fn has_foreign(draft: &Draft) -> bool {
    let own = Dialect::Markdown.name();
    draft.spec.foreign.0.keys().any(|format| format != own)
        || draft.tasks.iter().any(|task| !task.spec.foreign.is_empty())
}

/// Fits a draft to the plan `before`: what does not differ from the baseline stays as it is in the plan. Of a format that cannot be
/// written, empty fields count as not said. A task with an assigned id takes the id of the task that it was, so that applying the
/// same text again changes nothing; otherwise it gets the next of `free_ids`. Returns edits that no text makes.
pub fn fit_to_plan(
    draft: &mut Draft,
    assigned_ids: &HashSet<TaskId>,
    baseline: Baseline<'_>,
    before: &Draft,
    free_ids: impl Iterator<Item = TaskId>,
) -> Untaken {
    let by_format = match baseline {
        Baseline::LastText(_) => None,
        Baseline::Format(dialect, file_name) => written_and_read(before, draft, dialect, file_name),
    };
    let said = match baseline {
        Baseline::LastText(said) => Some(said),
        Baseline::Format(..) => by_format.as_ref(),
    };
    let without_ids = match assigned_ids.is_empty() {
        true => HashSet::new(),
        false => settle_ids(draft, assigned_ids, said.unwrap_or(before), before, free_ids),
    };
    if let (Baseline::Format(dialect, _), Some(said)) = (baseline, said) {
        silence::fill(draft, (said, before), dialect, &without_ids);
    }
    let (nothing, none) = (PlanSpec::default(), HashMap::new());
    let said_tasks = said.map_or(none, by_id);
    let (wanted, known) = (&mut draft.spec, &before.spec);
    let said_spec = said.map_or(&nothing, |said| &said.spec);
    keep_unchanged!(wanted, said_spec, known, [title, goal, status, owner, queue, token_budget, body]);
    // Of a plan without a title, the format has the goal in its place.
    let has_goal_as_title = known.title.is_empty() && !known.goal.is_empty() && said_spec.title == known.goal;
    if has_goal_as_title && !wanted.title.is_empty() {
        wanted.goal = std::mem::take(&mut wanted.title);
    }
    // A text without these does not mean that the plan has none any more.
    for (wanted, known) in [(&mut wanted.title, &known.title), (&mut wanted.owner, &known.owner)] {
        if wanted.is_empty() {
            wanted.clone_from(known);
        }
    }
    keep_foreign(&mut wanted.foreign, &said_spec.foreign, &known.foreign);
    let known = by_id(before);
    let untaken = said.map(|said| untaken(draft, said)).unwrap_or_default();
    if let Baseline::LastText(_) = baseline {
        // What was removed from the plan meanwhile, and is in the text as it was.
        let is_as_said =
            |task: &Task| said_tasks.get(&task.spec.id).is_some_and(|said| said.spec == task.spec);
        draft.tasks.retain(|task| known.contains_key(&task.spec.id) || !is_as_said(task));
    }
    for task in &mut draft.tasks {
        if let Some(known) = known.get(&task.spec.id) {
            let nothing = Task { spec: TaskSpec::new(task.spec.id.clone(), ""), state: TaskState::default() };
            keep_unsaid(task, said_tasks.get(&task.spec.id).copied().unwrap_or(&nothing), known);
        }
    }
    if let Some(said) = said {
        drop_invented(draft, said, &known);
        let named: HashSet<TaskId> = draft.tasks.iter().map(|task| task.spec.id.clone()).collect();
        let unsaid = before.tasks.iter().filter(|task| !said_tasks.contains_key(&task.spec.id));
        draft.tasks.extend(unsaid.filter(|task| !named.contains(&task.spec.id)).cloned());
        keep_order(draft, said, before);
    }
    untaken
}

/// What an author changed that no text changes.
#[derive(Clone, Debug, Default)]
pub struct Untaken {
    /// The summary of the plan, and words about tasks that ended the same way, as notes for the author.
    pub notes: Vec<String>,
    /// The phase that the author wrote in place of the plan's.
    pub phase: Option<Phase>,
}

fn untaken(draft: &Draft, said: &Draft) -> Untaken {
    let is_edited = |now: &Option<String>, before: &Option<String>| now.is_some() && now != before;
    let phase = Some(draft.state.phase).filter(|phase| *phase != said.state.phase);
    let mut found = Vec::new();
    if !draft.state.summary.is_empty() && draft.state.summary != said.state.summary {
        found.push("the plan's summary was not taken".to_owned());
    }
    let said = by_id(said);
    for Task { spec, state } in &draft.tasks {
        let Some(before) = said.get(&spec.id).filter(|said| said.state.status == state.status) else {
            continue;
        };
        let words = [
            ("result", is_edited(&state.result, &before.state.result)),
            ("error", is_edited(&state.error, &before.state.error)),
        ];
        let edited = words.into_iter().filter(|(_, is_edited)| *is_edited);
        found.extend(edited.map(|(word, _)| format!("the {word} of {} was not taken", spec.id)));
    }
    Untaken { notes: found, phase }
}

/// Drops the tasks that the format itself adds to a plan, such as a root. Their words are the plan's goal.
fn drop_invented(draft: &mut Draft, said: &Draft, known: &HashMap<&TaskId, &Task>) {
    let invented = said.tasks.iter().map(|task| &task.spec).filter(|spec| !known.contains_key(&spec.id));
    let invented: HashMap<&TaskId, &TaskSpec> = invented.map(|spec| (&spec.id, spec)).collect();
    if invented.is_empty() {
        return;
    }
    for task in &draft.tasks {
        if let Some(said) = invented.get(&task.spec.id)
            && said.description != task.spec.description
            && said.description == draft.spec.goal
        {
            draft.spec.goal.clone_from(&task.spec.description);
        }
    }
    draft.tasks.retain(|task| !invented.contains_key(&task.spec.id));
    for spec in draft.tasks.iter_mut().map(|task| &mut task.spec) {
        spec.parent.take_if(|parent| invented.contains_key(parent));
        spec.depends_on.retain(|on| !on.here().is_some_and(|on| invented.contains_key(on)));
    }
}

fn by_id(draft: &Draft) -> HashMap<&TaskId, &Task> {
    draft.tasks.iter().map(|task| (&task.spec.id, task)).collect()
}

fn keep_unsaid(task: &mut Task, said: &Task, known: &Task) {
    let (wanted, old, before) = (&mut task.spec, &said.spec, &known.spec);
    keep_unchanged!(
        wanted,
        old,
        before,
        [description, parent, when, complexity, notes, tools, skip, locks, work, check]
    );
    keep_unchanged!(wanted, old, before, [retry, timeout_seconds, priority, provides, thinking]);
    // A format without shared locks names them all the same.
    for lock in wanted.locks.iter_mut().filter(|lock| old.locks.contains(lock)) {
        let same = before.locks.iter().find(|same| same.key == lock.key);
        lock.mode = same.map_or(lock.mode, |same| same.mode);
    }
    let is_unsaid = |on: &&Dependency| !old.depends_on.contains(on) && !wanted.depends_on.contains(on);
    let unsaid: Vec<Dependency> = before.depends_on.iter().filter(is_unsaid).cloned().collect();
    if wanted.depends_on == old.depends_on {
        wanted.depends_on.clone_from(&before.depends_on);
    } else {
        wanted.depends_on.extend(unsaid);
    }
    keep_foreign(&mut wanted.foreign, &old.foreign, &before.foreign);
    if task.state.status == said.state.status {
        task.state = known.state.clone();
    }
}

/// A text says nothing of the fields of other formats. The reader's own remarks, such as the form of the text, are no edits.
fn keep_foreign(wanted: &mut ForeignFields, said: &ForeignFields, before: &ForeignFields) {
    let is_field = |name: &str| !name.starts_with('$') || name.starts_with("$$");
    let without_remarks = |fields: &ForeignFields, format: &str| {
        let mut fields = fields.of(format);
        fields.retain(|name, _| is_field(name));
        fields
    };
    let is_edited = |format: &String| without_remarks(wanted, format) != without_remarks(said, format);
    let was_there: BTreeSet<String> = wanted.0.keys().cloned().collect();
    let edited: BTreeSet<String> = wanted.0.keys().filter(|format| is_edited(format)).cloned().collect();
    wanted.0.retain(|format, _| edited.contains(format));
    for (format, fields) in &before.0 {
        let said = without_remarks(said, format);
        let is_removed = !was_there.contains(format) && !said.is_empty();
        if !is_removed && !edited.contains(format) {
            wanted.0.insert(format.clone(), fields.clone());
            continue;
        }
        // The form of the text may have no place for some fields.
        let mut now = wanted.of(format);
        for (name, value) in without_remarks(before, format) {
            if !said.contains_key(&name) {
                now.entry(name).or_insert(value);
            }
        }
        wanted.keep(format, now);
    }
}

/// Keeps the order of tasks, as far as the text has them in the same order as before. A new task stays behind the one that it
/// follows in the text.
fn keep_order(draft: &mut Draft, said: &Draft, before: &Draft) {
    fn order<'a>(draft: &'a Draft, among: &Draft) -> Vec<&'a TaskId> {
        let among = by_id(among);
        let ids = draft.tasks.iter().map(|task| &task.spec.id);
        ids.filter(|id| among.contains_key(id)).collect()
    }
    let kept = order(said, draft);
    if kept != order(draft, said) || kept == order(before, draft) {
        return;
    }
    let places: HashMap<&TaskId, usize> =
        before.tasks.iter().enumerate().map(|(place, task)| (&task.spec.id, place)).collect();
    let mut at = 0;
    let mut keyed: Vec<(usize, Task)> = std::mem::take(&mut draft.tasks)
        .into_iter()
        .map(|task| {
            at = places.get(&task.spec.id).copied().unwrap_or(at);
            (at, task)
        })
        .collect();
    keyed.sort_by_key(|(place, _)| *place);
    draft.tasks = keyed.into_iter().map(|(_, task)| task).collect();
}

/// Returns the ids of the tasks, each before its subtasks.
fn depth_first(draft: &Draft) -> Vec<&TaskId> {
    let mut children: HashMap<Option<&TaskId>, Vec<&TaskId>> = HashMap::new();
    for task in &draft.tasks {
        children.entry(task.spec.parent.as_ref()).or_default().push(&task.spec.id);
    }
    let mut ordered = Vec::with_capacity(draft.tasks.len());
    let mut stack: Vec<&TaskId> = children.remove(&None).unwrap_or_default();
    stack.reverse();
    while let Some(id) = stack.pop() {
        ordered.push(id);
        stack.extend(children.remove(&Some(id)).unwrap_or_default().into_iter().rev());
    }
    ordered
}

/// Gives tasks with an assigned id their ids in the plan. Returns these.
fn settle_ids(
    draft: &mut Draft,
    assigned_ids: &HashSet<TaskId>,
    said: &Draft,
    before: &Draft,
    free_ids: impl Iterator<Item = TaskId>,
) -> HashSet<TaskId> {
    let ids = draft.tasks.iter().map(|task| &task.spec.id);
    let mut kept: HashSet<TaskId> = ids.filter(|id| !assigned_ids.contains(*id)).cloned().collect();
    let mut free_ids = free_ids.filter({
        let named = kept.clone();
        move |id| !named.contains(id)
    });
    let known: HashSet<&TaskId> = before.tasks.iter().map(|task| &task.spec.id).collect();
    let unnamed: Vec<&TaskSpec> = said
        .tasks
        .iter()
        .map(|task| &task.spec)
        .filter(|spec| known.contains(&spec.id) && !kept.contains(&spec.id))
        .collect();
    let assigned: Vec<&TaskSpec> =
        draft.tasks.iter().map(|task| &task.spec).filter(|spec| assigned_ids.contains(&spec.id)).collect();
    let mut settled = matches(&assigned, &unnamed);
    kept.extend(settled.values().cloned());
    for spec in assigned {
        if !settled.contains_key(&spec.id)
            && let Some(free) = free_ids.next()
        {
            settled.insert(spec.id.clone(), free);
        }
    }
    rename(draft, &settled, &kept);
    settled.into_values().collect()
}

/// Finds which task of the text is which of the plan: the same description first, then an edited one at the same place.
fn matches(assigned: &[&TaskSpec], unnamed: &[&TaskSpec]) -> HashMap<TaskId, TaskId> {
    let mut same: HashMap<&str, VecDeque<&TaskId>> = HashMap::new();
    for spec in unnamed {
        same.entry(&spec.description).or_default().push_back(&spec.id);
    }
    let mut found: HashMap<TaskId, TaskId> = HashMap::with_capacity(assigned.len());
    for spec in assigned {
        if let Some(id) = same.get_mut(spec.description.as_str()).and_then(VecDeque::pop_front) {
            found.insert(spec.id.clone(), id.clone());
        }
    }
    // What lies between the same two neighbours in both.
    let taken: HashSet<&TaskId> = found.values().collect();
    let mut gaps: HashMap<Option<&TaskId>, (Vec<&TaskSpec>, Vec<&TaskSpec>)> = HashMap::new();
    let mut behind = None;
    for spec in assigned {
        match found.get(&spec.id) {
            Some(id) => behind = Some(id),
            None => gaps.entry(behind).or_default().0.push(spec),
        }
    }
    behind = None;
    for spec in unnamed {
        match taken.get(&spec.id) {
            Some(id) => behind = Some(*id),
            None => gaps.entry(behind).or_default().1.push(spec),
        }
    }
    let mut edited = Vec::new();
    for (new, old) in gaps.into_values() {
        let mut old: VecDeque<&TaskSpec> = old.into();
        for spec in new {
            let is_edit = |other: &&TaskSpec| is_similar(&spec.description, &other.description);
            let place = old.iter().take(CANDIDATES_MAX).position(is_edit);
            edited
                .extend(place.and_then(|at| old.remove(at)).map(|other| (spec.id.clone(), other.id.clone())));
        }
    }
    found.extend(edited);
    found
}

/// Whether one description may be an edit of the other, by their beginnings.
fn is_similar(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|text| truncate_bytes(text, COMPARED_BYTES_MAX));
    strsim::normalized_levenshtein(&one, &other) >= SIMILAR_MIN
}

/// Gives tasks other ids. A dependency on an id of `kept` means the plan's own task of that id.
fn rename(draft: &mut Draft, renamed: &HashMap<TaskId, TaskId>, kept: &HashSet<TaskId>) {
    for spec in draft.tasks.iter_mut().map(|task| &mut task.spec) {
        for id in std::iter::once(&mut spec.id).chain(&mut spec.parent) {
            if let Some(now) = renamed.get(id) {
                id.clone_from(now);
            }
        }
        for dependency in &mut spec.depends_on {
            let assigned = dependency.here().filter(|id| !kept.contains(*id));
            if let Some(now) = assigned.and_then(|id| renamed.get(id)) {
                *dependency = Dependency::Task(now.clone());
            }
        }
    }
}
