//! An edit buffer of a plan: its tasks as rows, with undo and redo. Knows no screen.
//!
//! Every step is a few replacements of rows; undo applies them in reverse. Saving compares the buffer with
//! the stored plan (`to_edit_ops.rs`), independent of the steps in between.

mod dependencies;
mod moves;
mod rebase;
mod rows;
mod to_edit_ops;
mod validation;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use waypost_core::{Dependency, Draft, EffectiveStatus, PlanSpec, Task, TaskId, TaskSpec};
use waypost_service::EditOp;
use waypost_text::StatusSign;

use crate::plan::LoadedPlan;
pub use dependencies::DependencyGraph;
pub use rebase::Rebased;
pub use rows::Row;
use rows::{rows_of, with_spec};
pub use validation::Problems;

/// Number of tasks up to which a plan is validated at every edit. A larger plan is validated on a tick, so
/// mostly while the user pauses.
pub const CHECKED_AT_ONCE_MAX: usize = 1_000;

/// Replaces rows by others.
#[derive(Clone, Debug)]
struct Edit {
    at: usize,
    removed: Vec<Row>,
    added: Vec<Row>,
}

/// A change that is undone as a whole.
#[derive(Clone, Debug)]
struct UndoStep {
    /// For the note of undo and redo: `delete t3`.
    label: String,
    edits: Vec<Edit>,
    /// The plan's spec before and after, if it changed.
    plan: Option<Box<(PlanSpec, PlanSpec)>>,
    /// The task to select after redo, and after undo.
    looks: (Option<TaskId>, Option<TaskId>),
}

/// The state of the buffer when a save was sent.
#[derive(Debug)]
struct Sent {
    /// Number of steps at that time; `None` if they were undone and replaced since.
    edits: Option<usize>,
    spec: PlanSpec,
    rows: Vec<Row>,
}

/// What deleting a task also affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub task: TaskId,
    /// Its subtasks, on all levels; deleted with it.
    pub parts: Vec<TaskId>,
    /// Tasks that lose a dependency.
    pub dependants: Vec<TaskId>,
}

/// An edit buffer of a plan.
#[derive(Debug)]
pub struct EditBuffer {
    base: Draft,
    /// The index of each task in the base.
    base_places: HashMap<TaskId, usize>,
    /// The status of each task of the base.
    base_standings: Vec<EffectiveStatus>,
    /// The tasks that wait for a person to do them.
    for_people: HashSet<TaskId>,
    /// The number of the next id that the stored plan never used.
    next_number: u64,
    spec: PlanSpec,
    rows: Vec<Row>,
    places: HashMap<TaskId, usize>,
    dependencies: DependencyGraph,
    problems: Problems,
    unchecked: bool,
    done: Vec<UndoStep>,
    undone: Vec<UndoStep>,
    /// Number of steps that the store has; `None` if they were undone and replaced since.
    saved: Option<usize>,
    sent: Option<Sent>,
    /// Number of leaf tasks done, and of all leaf tasks.
    progress: (usize, usize),
    executors: Vec<String>,
    queues: Vec<String>,
}

impl EditBuffer {
    pub fn new(loaded: LoadedPlan) -> Self {
        let LoadedPlan { draft, mut standings, for_people, next_number, executors, queues, .. } = loaded;
        standings.resize(draft.tasks.len(), EffectiveStatus::Blocked);
        let rows = rows_of(&draft.tasks, &standings);
        let mut buffer = Self {
            spec: draft.spec.clone(),
            base_places: places_of(&draft.tasks),
            base_standings: standings,
            for_people,
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
            executors,
            queues,
        };
        buffer.changed();
        buffer
    }

    /// The plan as it was last read from or written to the store.
    pub fn base(&self) -> &Draft {
        &self.base
    }

    pub fn spec(&self) -> &PlanSpec {
        &self.spec
    }

    /// The tasks, each parent before its subtasks.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The sign of a task.
    pub fn sign(&self, row: &Row) -> StatusSign {
        let is_turn = row.standing == EffectiveStatus::Ready && self.for_people.contains(row.id());
        if is_turn { StatusSign::Person } else { row.standing.sign() }
    }

    /// The row of a task.
    pub fn place(&self, id: &TaskId) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// The dependency graph, by row.
    pub fn dependencies(&self) -> &DependencyGraph {
        &self.dependencies
    }

    /// The problems found by the last validation.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Whether the rows changed since the last validation.
    pub fn is_unchecked(&self) -> bool {
        self.unchecked
    }

    /// Number of tasks done, and of all tasks; parents are not counted.
    pub fn progress(&self) -> (usize, usize) {
        self.progress
    }

    fn count(&mut self) {
        let leaves = (0..self.rows.len()).filter(|&at| !self.is_parent(at));
        let done = leaves.clone().filter(|&at| self.rows[at].standing == EffectiveStatus::Done);
        self.progress = (done.count(), leaves.count());
    }

    /// Whether there are unsaved edits.
    pub fn is_changed(&self) -> bool {
        self.saved != Some(self.done.len())
    }

    /// The number of unsaved edits. After saved steps were undone and replaced, it counts all steps.
    pub fn edits(&self) -> usize {
        self.saved.map_or(self.done.len(), |saved| self.done.len().abs_diff(saved))
    }

    /// The rows of a task and all its subtasks.
    pub fn family(&self, at: usize) -> Range<usize> {
        let Some(first) = self.rows.get(at) else { return at..at };
        let parts = self.rows[at + 1..].iter().take_while(|row| row.depth > first.depth).count();
        at..at + 1 + parts
    }

    /// Whether a task has subtasks.
    pub fn is_parent(&self, at: usize) -> bool {
        self.rows.get(at + 1).is_some_and(|next| next.depth > self.rows[at].depth)
    }

    /// Replaces the spec of a task. Returns `false`, and makes no step, if nothing changes.
    pub fn revise(&mut self, at: usize, spec: TaskSpec) -> bool {
        let Some(row) = self.rows.get(at).filter(|row| *row.spec() != spec) else { return false };
        let edit = Edit { at, removed: vec![row.clone()], added: vec![with_spec(row, spec)] };
        self.make_one("edit", at, edit);
        true
    }

    pub fn toggle_skip(&mut self, at: usize) {
        if let Some(row) = self.rows.get(at) {
            let mut spec = row.spec().clone();
            spec.skip = !spec.skip;
            self.revise(at, spec);
        }
    }

    /// Ids that no task of this plan ever had: `t1`, `t2`, …
    pub fn free_ids(&self) -> impl Iterator<Item = TaskId> {
        let taken = |id: &TaskId| self.places.contains_key(id) || self.base_places.contains_key(id);
        let ids = (self.next_number..).map_while(|number| TaskId::new(format!("t{number}")).ok());
        ids.filter(move |id| !taken(id))
    }

    /// Inserts a new task after the one at `after` and its subtasks, as its sibling; with `None`, at the top. The buffer sets
    /// the parent, and the id if it is taken. Returns the row.
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

    /// The tasks outside a family that depend on a task in it.
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

    /// What deleting a task would affect.
    pub fn deletion(&self, task: &TaskId) -> Option<Deletion> {
        let at = self.place(task)?;
        let id = |at: usize| self.rows[at].id().clone();
        Some(Deletion {
            task: task.clone(),
            parts: self.family(at).skip(1).map(id).collect(),
            dependants: self.dependants(at).into_iter().map(id).collect(),
        })
    }

    /// Removes a task with all its subtasks, and dependencies on them.
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

    /// Replaces the author's part of the plan.
    pub fn revise_plan(&mut self, spec: PlanSpec) {
        if spec != self.spec {
            let plan = Some(Box::new((self.spec.clone(), spec)));
            let label = "edit the plan".to_owned();
            self.make(UndoStep { label, edits: Vec::new(), plan, looks: (None, None) });
        }
    }

    /// The executors and queues of the configuration, for the pickers.
    pub fn executors(&self) -> &[String] {
        &self.executors
    }

    pub fn queues(&self) -> &[String] {
        &self.queues
    }

    /// Replaces the plan by a draft; tasks that stay keep their state.
    pub fn replace(&mut self, draft: &Draft, label: &str) {
        let kept: HashMap<&TaskId, &Row> = self.rows.iter().map(|row| (row.id(), row)).collect();
        let tasks: Vec<Task> = draft
            .tasks
            .iter()
            .map(|task| match kept.get(&task.spec.id) {
                Some(row) => {
                    let mut spec = task.spec.clone();
                    // A text does not carry the planner's data, so its absence does not mean removal.
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

    /// Makes one edit of the task at `looked`, which stays selected.
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

    /// Undoes the last step. Returns its label and the task to select.
    pub fn undo(&mut self) -> Option<(String, Option<TaskId>)> {
        let step = self.done.pop()?;
        self.apply(&step, Direction::Back);
        let result = (step.label.clone(), step.looks.1.clone());
        self.undone.push(step);
        Some(result)
    }

    /// Redoes the last undone step. Returns its label and the task to select.
    pub fn redo(&mut self) -> Option<(String, Option<TaskId>)> {
        let step = self.undone.pop()?;
        self.apply(&step, Direction::Forth);
        let result = (step.label.clone(), step.looks.0.clone());
        self.done.push(step);
        Some(result)
    }

    fn apply(&mut self, step: &UndoStep, direction: Direction) {
        let mut put = |edit: &Edit, out: usize, rows: &[Row]| {
            // Tasks may have progressed since the edit was made, so their state is the one last read from the store.
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

    /// Recomputes everything derived from the rows.
    fn changed(&mut self) {
        self.places = self.rows.iter().enumerate().map(|(at, row)| (row.id().clone(), at)).collect();
        self.dependencies = DependencyGraph::of(&self.rows, &self.places);
        self.count();
        self.unchecked = true;
        if self.rows.len() <= CHECKED_AT_ONCE_MAX {
            self.check();
        }
    }

    /// Validates the plan, if it changed since the last validation.
    pub fn check(&mut self) {
        if std::mem::take(&mut self.unchecked) {
            self.problems = Problems::of(&self.draft());
        }
    }

    /// Adopts a newer stored version if its specs equal those of the base (`StoreDiff::SameAsBase`) or of the buffer
    /// (`StoreDiff::SameAsBuffer`); otherwise returns `None`. Edits and undo steps stay, and the states of tasks are updated.
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
        self.for_people.clone_from(&loaded.for_people);
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

    /// The operations that turn the stored plan into the buffer. The sent state is kept until the result is known,
    /// because editing may continue meanwhile.
    pub fn send(&mut self) -> Vec<EditOp> {
        let edits = Some(self.done.len());
        self.sent = Some(Sent { edits, spec: self.spec.clone(), rows: self.rows.clone() });
        self.edit_ops()
    }

    /// The sent edits are stored as this version, which becomes the base. Later edits stay.
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

    /// The save failed.
    pub fn not_stored(&mut self) {
        self.sent = None;
    }

    /// The plan with all edits.
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

/// How a newer stored version compares with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreDiff {
    /// Specs are those of the base: only states of tasks changed.
    SameAsBase,
    /// Specs are those of the buffer.
    SameAsBuffer,
}

fn places_of(tasks: &[Task]) -> HashMap<TaskId, usize> {
    tasks.iter().enumerate().map(|(at, task)| (task.spec.id.clone(), at)).collect()
}

/// The row with the state of the stored task.
fn as_far(row: &Row, stored: &Task, standing: EffectiveStatus) -> Row {
    if row.task.state == stored.state {
        return Row { standing, ..row.clone() };
    }
    let task = Task { spec: row.spec().clone(), state: stored.state.clone() };
    Row { task: Arc::new(task), standing, depth: row.depth }
}

/// Whether the specs equal those of a draft, in the same order.
fn same<'a>(specs: impl Iterator<Item = &'a TaskSpec>, draft: &Draft) -> bool {
    specs.eq(draft.tasks.iter().map(|task| &task.spec))
}

/// The dependencies of a task, as text.
pub fn dependency_names(spec: &TaskSpec) -> Vec<String> {
    spec.depends_on.iter().map(Dependency::to_string).collect()
}
