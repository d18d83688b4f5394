//! A plan that is being edited: its tasks as rows, with undo and redo. Knows no screen.
//!
//! Every step is a few replacements of rows, so that undo applies them in reverse. Saving compares the buffer
//! with the stored plan (`to_edit_ops.rs`), whatever the steps in between were.

mod dependencies;
mod rebase;
mod rows;
mod to_edit_ops;
mod validation;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use waypost_core::{Dependency, Draft, EffectiveStatus, PlanSpec, Task, TaskId, TaskSpec};
use waypost_service::EditOp;

use crate::plan::LoadedPlan;
pub use dependencies::DependencyGraph;
pub use rebase::Rebased;
pub use rows::Row;
use rows::{reparented, rows_of, with_spec};
pub use validation::Problems;

/// Tasks up to which a plan is validated at every edit; a larger one when nobody types.
pub const CHECKED_AT_ONCE_MAX: usize = 1_000;

/// Rows that take the place of others.
#[derive(Clone, Debug)]
struct Edit {
    at: usize,
    removed: Vec<Row>,
    added: Vec<Row>,
}

/// What was done at once, and is taken back at once.
#[derive(Clone, Debug)]
struct UndoStep {
    /// In label: `delete t3`.
    label: String,
    edits: Vec<Edit>,
    /// What its author says of the plan, before and after.
    plan: Option<Box<(PlanSpec, PlanSpec)>>,
    /// The task to look at when it was made, and when it was taken back.
    looks: (Option<TaskId>, Option<TaskId>),
}

/// What is being saved.
#[derive(Debug)]
struct Sent {
    /// Steps that had been made then; `None` when they were undone and replaced since.
    edits: Option<usize>,
    spec: PlanSpec,
    rows: Vec<Row>,
}

/// What the deletion of a task takes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub task: TaskId,
    /// Its subtasks, on all levels.
    pub parts: Vec<TaskId>,
    /// Tasks that would lose a dependency.
    pub dependants: Vec<TaskId>,
}

/// A plan that is being edited.
#[derive(Debug)]
pub struct EditBuffer {
    base: Draft,
    /// The index of each task in the base.
    base_places: HashMap<TaskId, usize>,
    /// The status of each task of the base.
    base_standings: Vec<EffectiveStatus>,
    /// The number in the next id that was never used in the base.
    next_number: u64,
    spec: PlanSpec,
    rows: Vec<Row>,
    places: HashMap<TaskId, usize>,
    dependencies: DependencyGraph,
    problems: Problems,
    unchecked: bool,
    done: Vec<UndoStep>,
    undone: Vec<UndoStep>,
    /// Steps that the store has; `None` when they were undone and replaced since.
    saved: Option<usize>,
    sent: Option<Sent>,
    /// How many tasks without parts are done, and how many there are.
    progress: (usize, usize),
}

impl EditBuffer {
    /// A plan as it was read.
    pub fn new(loaded: LoadedPlan) -> Self {
        let LoadedPlan { draft, mut standings, next_number, .. } = loaded;
        standings.resize(draft.tasks.len(), EffectiveStatus::Blocked);
        let rows = rows_of(&draft.tasks, &standings);
        let mut buffer = Self {
            spec: draft.spec.clone(),
            base_places: places_of(&draft.tasks),
            base_standings: standings,
            base: draft,
            next_number,
            rows,
            places: HashMap::new(),
            dependencies: DependencyGraph::default(),
            problems: Problems::default(),
            unchecked: true,
            done: Vec::new(),
            undone: Vec::new(),
            saved: Some(0),
            sent: None,
            progress: (0, 0),
        };
        buffer.changed();
        buffer
    }

    /// The plan as the store has it.
    pub fn base(&self) -> &Draft {
        &self.base
    }

    /// What the author says of the plan.
    pub fn spec(&self) -> &PlanSpec {
        &self.spec
    }

    /// The tasks, parents before their parts.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Where a task stands among the rows.
    pub fn place(&self, id: &TaskId) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// What waits for what, by places.
    pub fn dependencies(&self) -> &DependencyGraph {
        &self.dependencies
    }

    /// What is wrong with it.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Whether what is wrong has yet to be found out.
    pub fn is_unchecked(&self) -> bool {
        self.unchecked
    }

    /// How many tasks are done, and how many there are; tasks with parts are not counted.
    pub fn progress(&self) -> (usize, usize) {
        self.progress
    }

    fn count(&mut self) {
        let leaves = (0..self.rows.len()).filter(|&at| !self.is_parent(at));
        let done = leaves.clone().filter(|&at| self.rows[at].standing == EffectiveStatus::Done);
        self.progress = (done.count(), leaves.count());
    }

    /// Whether there are edits that the store does not have.
    pub fn is_changed(&self) -> bool {
        self.saved != Some(self.done.len())
    }

    /// How many edits the store does not have, as far as that can be counted.
    pub fn edits(&self) -> usize {
        self.saved.map_or(self.done.len(), |saved| self.done.len().abs_diff(saved))
    }

    /// The rows of a task and all its parts.
    pub fn family(&self, at: usize) -> Range<usize> {
        let Some(first) = self.rows.get(at) else { return at..at };
        let parts = self.rows[at + 1..].iter().take_while(|row| row.depth > first.depth).count();
        at..at + 1 + parts
    }

    /// Whether a task has parts.
    pub fn is_parent(&self, at: usize) -> bool {
        self.rows.get(at + 1).is_some_and(|next| next.depth > self.rows[at].depth)
    }

    /// Changes what the author says of a task. Nothing happens when that is what it says already.
    pub fn revise(&mut self, at: usize, spec: TaskSpec) -> bool {
        let Some(row) = self.rows.get(at).filter(|row| *row.spec() != spec) else { return false };
        let edit = Edit { at, removed: vec![row.clone()], added: vec![with_spec(row, spec)] };
        self.make_one("edit", at, edit);
        true
    }

    /// Passes a task over, or not.
    pub fn toggle_skip(&mut self, at: usize) {
        if let Some(row) = self.rows.get(at) {
            let mut spec = row.spec().clone();
            spec.skip = !spec.skip;
            self.revise(at, spec);
        }
    }

    /// Ids that no task has had: `t1`, `t2`, …
    pub fn free_ids(&self) -> impl Iterator<Item = TaskId> {
        let taken = |id: &TaskId| self.places.contains_key(id) || self.base_places.contains_key(id);
        let ids = (self.next_number..).map_while(|number| TaskId::new(format!("t{number}")).ok());
        ids.filter(move |id| !taken(id))
    }

    /// A new task right behind the one at `after` and all its parts, as its sibling; first of all in an empty plan. Its id and
    /// its parent are the buffer's to say.
    pub fn insert(&mut self, after: Option<usize>, mut spec: TaskSpec) -> Option<usize> {
        if self.places.contains_key(&spec.id) {
            spec.id = self.free_ids().next()?;
        }
        let sibling = after.and_then(|at| self.rows.get(at));
        spec.parent = sibling.and_then(|row| row.spec().parent.clone());
        let depth = sibling.map_or(0, |row| row.depth);
        let look_back = sibling.map(|row| row.id().clone());
        let at = after.map_or(0, |at| self.family(at).end);
        let look = Some(spec.id.clone());
        let label = format!("new task {}", spec.id);
        let row = Row { task: Arc::new(Task::new(spec)), standing: EffectiveStatus::Blocked, depth };
        let edit = Edit { at, removed: Vec::new(), added: vec![row] };
        self.make(UndoStep { label, edits: vec![edit], plan: None, looks: (look, look_back) });
        Some(at)
    }

    /// The tasks outside of a family that depend on one in it.
    pub fn dependants(&self, at: usize) -> Vec<usize> {
        let family = self.family(at);
        let mut found: Vec<usize> = family
            .clone()
            .flat_map(|member| self.dependencies.dependants(member))
            .filter(|after| !family.contains(after))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What would go with a task.
    pub fn deletion(&self, task: &TaskId) -> Option<Deletion> {
        let at = self.place(task)?;
        let id = |at: usize| self.rows[at].id().clone();
        Some(Deletion {
            task: task.clone(),
            parts: self.family(at).skip(1).map(id).collect(),
            dependants: self.dependants(at).into_iter().map(id).collect(),
        })
    }

    /// Takes a task out with all its parts; what depends on it forgets it.
    pub fn remove(&mut self, at: usize) {
        let family = self.family(at);
        let Some(first) = self.rows.get(at).map(|row| row.id().clone()) else { return };
        let gone: Vec<&TaskId> = self.rows[family.clone()].iter().map(Row::id).collect();
        let mut edits = Vec::new();
        for dependant in self.dependants(at) {
            let row = &self.rows[dependant];
            let mut spec = row.spec().clone();
            spec.depends_on.retain(|on| on.here().is_none_or(|on| !gone.contains(&on)));
            edits.push(Edit { at: dependant, removed: vec![row.clone()], added: vec![with_spec(row, spec)] });
        }
        edits.push(Edit { at, removed: self.rows[family.clone()].to_vec(), added: Vec::new() });
        let next =
            self.rows.get(family.end).or_else(|| at.checked_sub(1).and_then(|before| self.rows.get(before)));
        let look = next.map(|row| row.id().clone());
        let label = format!("delete {first}");
        self.make(UndoStep { label, edits, plan: None, looks: (look, Some(first)) });
    }

    /// The place of the sibling right before, if there is one.
    fn sibling_before(&self, at: usize) -> Option<usize> {
        let depth = self.rows.get(at)?.depth;
        let before = self.rows[..at].iter().rposition(|row| row.depth <= depth)?;
        (self.rows[before].depth == depth).then_some(before)
    }

    /// Moves a task with its parts up among its siblings.
    pub fn move_up(&mut self, at: usize) -> bool {
        let Some(before) = self.sibling_before(at) else { return false };
        self.swap(before, at, at);
        true
    }

    /// Moves a task with its parts down among its siblings.
    pub fn move_down(&mut self, at: usize) -> bool {
        let Some(depth) = self.rows.get(at).map(|row| row.depth) else { return false };
        let next = self.family(at).end;
        if self.rows.get(next).is_none_or(|row| row.depth != depth) {
            return false;
        }
        self.swap(at, next, at);
        true
    }

    /// Puts the family at `second` before the one at `first`, which it follows.
    fn swap(&mut self, first: usize, second: usize, looked: usize) {
        let end = self.family(second).end;
        let removed = self.rows[first..end].to_vec();
        let mut added = removed.clone();
        added.rotate_left(second - first);
        self.make_one("move", looked, Edit { at: first, removed, added });
    }

    /// Makes a task the last part of the sibling above it.
    pub fn indent(&mut self, at: usize) -> bool {
        let Some(before) = self.sibling_before(at) else { return false };
        let parent = Some(self.rows[before].id().clone());
        let family = self.family(at);
        let added = reparented(&self.rows[family.clone()], parent, 1);
        self.place_family(family.clone(), family.start, added, "indent");
        true
    }

    /// Takes a task out of its parent: it follows it.
    pub fn outdent(&mut self, at: usize) -> bool {
        let Some(parent) = self.rows.get(at).and_then(|row| row.spec().parent.as_ref()) else { return false };
        let Some(parent) = self.place(parent) else { return false };
        let grandparent = self.rows[parent].spec().parent.clone();
        let family = self.family(at);
        let added = reparented(&self.rows[family.clone()], grandparent, -1);
        let to = self.family(parent).end - family.len();
        self.place_family(family, to, added, "outdent");
        true
    }

    /// Takes a family out and puts these rows at `to` of what is left, no further up.
    fn place_family(&mut self, family: Range<usize>, to: usize, added: Vec<Row>, verb: &str) {
        let removed = self.rows[family.start..to + family.len()].to_vec();
        let mut after = removed[family.len()..].to_vec();
        after.extend(added);
        self.make_one(verb, family.start, Edit { at: family.start, removed, added: after });
    }

    /// Makes the plan what a text says; tasks that stay keep their state.
    pub fn replace(&mut self, draft: &Draft, label: &str) {
        let kept: HashMap<&TaskId, &Row> = self.rows.iter().map(|row| (row.id(), row)).collect();
        let tasks: Vec<Task> = draft
            .tasks
            .iter()
            .map(|task| match kept.get(&task.spec.id) {
                Some(row) => {
                    let mut spec = task.spec.clone();
                    // What a planner thought of it is nothing that a text says.
                    if spec.thinking.is_none() {
                        spec.thinking.clone_from(&row.spec().thinking);
                    }
                    Task { spec, state: row.task.state.clone() }
                }
                None => Task::new(task.spec.clone()),
            })
            .collect();
        let standings: Vec<EffectiveStatus> = tasks
            .iter()
            .map(|task| kept.get(&task.spec.id).map_or(EffectiveStatus::Blocked, |row| row.standing))
            .collect();
        let added = rows_of(&tasks, &standings);
        let look = added.first().map(|row| row.id().clone());
        let look_back = self.rows.first().map(|row| row.id().clone());
        let mut spec = draft.spec.clone();
        spec.foreign.clone_from(&self.spec.foreign);
        let plan = (spec != self.spec).then(|| Box::new((self.spec.clone(), spec)));
        if added == self.rows && plan.is_none() {
            return;
        }
        let edit = Edit { at: 0, removed: self.rows.clone(), added };
        self.make(UndoStep { label: label.to_owned(), edits: vec![edit], plan, looks: (look, look_back) });
    }

    /// Makes one edit of the task at `looked`, which stays the one to look at.
    fn make_one(&mut self, verb: &str, looked: usize, edit: Edit) {
        let id = self.rows[looked].id().clone();
        let label = format!("{verb} {id}");
        self.make(UndoStep { label, edits: vec![edit], plan: None, looks: (Some(id.clone()), Some(id)) });
    }

    fn make(&mut self, step: UndoStep) {
        self.undone.clear();
        if self.saved.is_some_and(|saved| saved > self.done.len()) {
            self.saved = None;
        }
        if let Some(sent) = &mut self.sent
            && sent.edits.is_some_and(|edits| edits > self.done.len())
        {
            sent.edits = None;
        }
        self.apply(&step, Direction::Forth);
        self.done.push(step);
    }

    /// Takes the last edit back: what it was, and the task to look at.
    pub fn undo(&mut self) -> Option<(String, Option<TaskId>)> {
        let step = self.done.pop()?;
        self.apply(&step, Direction::Back);
        let result = (step.label.clone(), step.looks.1.clone());
        self.undone.push(step);
        Some(result)
    }

    /// Makes the last edit that was taken back again.
    pub fn redo(&mut self) -> Option<(String, Option<TaskId>)> {
        let step = self.undone.pop()?;
        self.apply(&step, Direction::Forth);
        let result = (step.label.clone(), step.looks.0.clone());
        self.done.push(step);
        Some(result)
    }

    fn apply(&mut self, step: &UndoStep, direction: Direction) {
        let mut put = |edit: &Edit, out: usize, rows: &[Row]| {
            // The work went on since the edit was made: how far a task is, is what the store last said.
            let rows = rows.iter().map(|row| match self.base_places.get(row.id()) {
                Some(&at) => as_far(row, &self.base.tasks[at], self.base_standings[at]),
                None => row.clone(),
            });
            self.rows.splice(edit.at..edit.at + out, rows);
        };
        match direction {
            Direction::Forth => {
                step.edits.iter().for_each(|edit| put(edit, edit.removed.len(), &edit.added));
            }
            Direction::Back => {
                step.edits.iter().rev().for_each(|edit| put(edit, edit.added.len(), &edit.removed));
            }
        }
        if let Some(plan) = &step.plan {
            let spec = match direction {
                Direction::Forth => &plan.1,
                Direction::Back => &plan.0,
            };
            self.spec.clone_from(spec);
        }
        self.changed();
    }

    /// Everything that is worked out from the rows.
    fn changed(&mut self) {
        self.places = self.rows.iter().enumerate().map(|(at, row)| (row.id().clone(), at)).collect();
        self.dependencies = DependencyGraph::of(&self.rows, &self.places);
        self.count();
        self.unchecked = true;
        if self.rows.len() <= CHECKED_AT_ONCE_MAX {
            self.check();
        }
    }

    /// Finds out what is wrong, if that has yet to be found out.
    pub fn check(&mut self) {
        if std::mem::take(&mut self.unchecked) {
            self.problems = Problems::of(&self.draft());
        }
    }

    /// Takes the plan as the store has it now, if its author says there what he said before (`StoreDiff::SameAsBase`), or what is on the
    /// buffer (`StoreDiff::SameAsBuffer`). Edits and the way back stay; where tasks stand is what it is now.
    pub fn adopt(&mut self, loaded: &LoadedPlan) -> Option<StoreDiff> {
        let diff = if self.spec == loaded.draft.spec && same(self.rows.iter().map(Row::spec), &loaded.draft) {
            StoreDiff::SameAsBuffer
        } else if self.base.spec == loaded.draft.spec
            && same(self.base.tasks.iter().map(|task| &task.spec), &loaded.draft)
        {
            StoreDiff::SameAsBase
        } else {
            return None;
        };
        if diff == StoreDiff::SameAsBuffer {
            self.saved = Some(self.done.len());
        }
        self.next_number = loaded.next_number;
        self.stand_on(loaded.draft.clone(), loaded.standings.clone());
        for row in &mut self.rows {
            if let Some(&at) = self.base_places.get(row.id()) {
                *row = as_far(row, &self.base.tasks[at], self.base_standings[at]);
            }
        }
        self.count();
        Some(diff)
    }

    fn stand_on(&mut self, base: Draft, mut standings: Vec<EffectiveStatus>) {
        standings.resize(base.tasks.len(), EffectiveStatus::Blocked);
        self.base_places = places_of(&base.tasks);
        self.base_standings = standings;
        self.base = base;
    }

    /// The operations that turn the stored plan into the buffer. What was sent is kept until the result is known, because
    /// edits may continue meanwhile.
    pub fn send(&mut self) -> Vec<EditOp> {
        let edits = Some(self.done.len());
        self.sent = Some(Sent { edits, spec: self.spec.clone(), rows: self.rows.clone() });
        self.edit_ops()
    }

    /// What was sent is in the store now, as this version. Edits that were made since stand on it.
    pub fn stored(&mut self, version: u64) {
        let Some(sent) = self.sent.take().filter(|_| self.base.version < version) else { return };
        let rows = sent.rows.iter().map(|row| match self.base_places.get(row.id()) {
            Some(&at) => as_far(row, &self.base.tasks[at], self.base_standings[at]),
            None => row.clone(),
        });
        let (tasks, standings) = rows.map(|row| ((*row.task).clone(), row.standing)).unzip();
        let (format, id, state) = (self.base.format.clone(), self.base.id.clone(), self.base.state.clone());
        self.stand_on(Draft { format, id, version, spec: sent.spec, state, tasks }, standings);
        self.saved = sent.edits;
    }

    /// What was sent has not been written.
    pub fn not_stored(&mut self) {
        self.sent = None;
    }

    /// The plan as it is now.
    pub fn draft(&self) -> Draft {
        Draft {
            format: self.base.format.clone(),
            id: self.base.id.clone(),
            version: self.base.version,
            spec: self.spec.clone(),
            state: self.base.state.clone(),
            tasks: self.rows.iter().map(|row| (*row.task).clone()).collect(),
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forth,
    Back,
}

/// What the store has, compared with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreDiff {
    /// What it had: only where tasks stand has changed.
    SameAsBase,
    /// The same as the buffer.
    SameAsBuffer,
}

fn places_of(tasks: &[Task]) -> HashMap<TaskId, usize> {
    tasks.iter().enumerate().map(|(at, task)| (task.spec.id.clone(), at)).collect()
}

/// A row that is as far as the stored task.
fn as_far(row: &Row, stored: &Task, standing: EffectiveStatus) -> Row {
    if row.task.state == stored.state {
        return Row { standing, ..row.clone() };
    }
    let task = Task { spec: row.spec().clone(), state: stored.state.clone() };
    Row { task: Arc::new(task), standing, depth: row.depth }
}

/// Whether these specs are those of a plan, in their order.
fn same<'a>(specs: impl Iterator<Item = &'a TaskSpec>, draft: &Draft) -> bool {
    specs.eq(draft.tasks.iter().map(|task| &task.spec))
}

/// The names of what a task waits for.
pub fn dependency_names(spec: &TaskSpec) -> Vec<String> {
    spec.depends_on.iter().map(Dependency::to_string).collect()
}
