//! The smallest list of edit operations that turns the stored plan into the buffer.
//!
//! Dependencies are removed first and added last, so that no intermediate state has a cycle that the result does not have.

use std::collections::{HashMap, HashSet};

use waypost_core::{Dependency, PlanChanges, PlanSpec, Position, Task, TaskChanges, TaskId, TaskSpec};
use waypost_service::{EditOp, NewTask};

use super::EditBuffer;

impl EditBuffer {
    /// The operations that turn the stored plan into the buffer.
    pub fn edit_ops(&self) -> Vec<EditOp> {
        let old: HashMap<&TaskId, &TaskSpec> =
            self.base.tasks.iter().map(|task| (&task.spec.id, &task.spec)).collect();
        let mut ops: Vec<EditOp> = plan_changes(&self.base.spec, &self.spec).into_iter().collect();
        for row in &self.rows {
            let Some(old) = old.get(row.id()) else { continue };
            let lost: Vec<Dependency> =
                old.depends_on.iter().filter(|on| !row.spec().depends_on.contains(on)).cloned().collect();
            if !lost.is_empty() {
                let changes = TaskChanges { remove_dependencies: lost, ..TaskChanges::default() };
                ops.push(revise(row.id(), changes));
            }
        }
        let early = self.put_in_place(&old, &mut ops);
        let gone = self.base.tasks.iter().filter(|task| !self.places.contains_key(&task.spec.id));
        let with_parent =
            |task: &&Task| task.spec.parent.as_ref().is_some_and(|parent| !self.places.contains_key(parent));
        for task in gone.filter(|task| !with_parent(task)) {
            ops.push(EditOp::RemoveTask { task: task.spec.id.clone(), drop_dependencies: true });
        }
        for row in &self.rows {
            match old.get(row.id()) {
                Some(old) => {
                    ops.extend(task_changes(old, row.spec()).map(|changes| revise(row.id(), changes)))
                }
                None if early.contains(row.id()) => {}
                None => {
                    let depends_on = Some(row.spec().depends_on.clone());
                    ops.push(revise(row.id(), TaskChanges { depends_on, ..TaskChanges::default() }));
                }
            }
        }
        ops
    }

    /// Adds new tasks and moves others into place: parents first, siblings from first to last. Returns the new tasks
    /// that were added with their dependencies.
    fn put_in_place(&self, old: &HashMap<&TaskId, &TaskSpec>, ops: &mut Vec<EditOp>) -> HashSet<&TaskId> {
        let mut children: HashMap<Option<&TaskId>, Vec<&TaskId>> = HashMap::new();
        for row in &self.rows {
            children.entry(row.spec().parent.as_ref()).or_default().push(row.id());
        }
        let numbers: HashMap<&TaskId, usize> =
            self.base.tasks.iter().enumerate().map(|(at, task)| (&task.spec.id, at)).collect();
        let mut here: HashSet<&TaskId> =
            numbers.keys().copied().filter(|id| self.places.contains_key(*id)).collect();
        let mut early = HashSet::new();
        let parents = std::iter::once(None).chain(self.rows.iter().map(|row| Some(row.id())));
        for (parent, siblings) in parents.filter_map(|parent| Some((parent, children.get(&parent)?))) {
            let stays = |id: &TaskId| old.get(id).is_some_and(|old| old.parent.as_ref() == parent);
            let kept: Vec<usize> = siblings.iter().filter(|id| stays(id)).map(|id| numbers[*id]).collect();
            let fixed: HashSet<usize> = longest_rising(&kept).into_iter().collect();
            let mut previous: Option<&TaskId> = None;
            for id in siblings {
                let position = previous.map_or(Position::First, |previous| Position::After(previous.clone()));
                let before = previous.replace(id);
                if !old.contains_key(id) {
                    let mut spec = self.rows[self.places[*id]].spec().clone();
                    if spec.depends_on.iter().filter_map(Dependency::here).all(|on| here.contains(on)) {
                        early.insert(*id);
                    } else {
                        spec.depends_on.clear();
                    }
                    here.insert(id);
                    add(spec, position, before, ops);
                    continue;
                }
                if stays(id) && fixed.contains(&numbers[*id]) {
                    continue;
                }
                ops.push(EditOp::MoveTask { task: (*id).clone(), parent: Some(parent.cloned()), position });
            }
        }
        early
    }
}

/// Adds a task after `before`. If the previous operation added `before`, the task joins that operation.
fn add(spec: TaskSpec, position: Position, before: Option<&TaskId>, ops: &mut Vec<EditOp>) {
    if let Some(EditOp::AddTasks { tasks, .. }) = ops.last_mut()
        && let Some(last) = tasks.last()
        && last.id.as_ref() == before
        && last.spec.parent == spec.parent
    {
        tasks.push(NewTask::named(spec));
        return;
    }
    ops.push(EditOp::AddTasks { tasks: vec![NewTask::named(spec)], position });
}

fn revise(task: &TaskId, changes: TaskChanges) -> EditOp {
    EditOp::ReviseTask { task: task.clone(), changes: Box::new(changes) }
}

/// The longest increasing subsequence, in reverse.
fn longest_rising(numbers: &[usize]) -> Vec<usize> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; numbers.len()];
    for (at, &number) in numbers.iter().enumerate() {
        let length = tails.partition_point(|&tail| numbers[tail] < number);
        before[at] = length.checked_sub(1).map(|last| tails[last]);
        if length == tails.len() { tails.push(at) } else { tails[length] = at }
    }
    let mut rising = Vec::new();
    let mut at = tails.last().copied();
    while let Some(here) = at {
        rising.push(numbers[here]);
        at = before[here];
    }
    rising
}

/// The differences between two specs of a task, except for its place and for removed dependencies.
pub(super) fn task_changes(old: &TaskSpec, new: &TaskSpec) -> Option<TaskChanges> {
    fn changed<T: PartialEq + Clone>(old: &T, new: &T) -> Option<T> {
        (old != new).then(|| new.clone())
    }
    fn unboxed<T: Clone>(value: &Option<Box<T>>) -> Option<T> {
        value.as_deref().cloned()
    }
    let kept: Vec<&Dependency> = old.depends_on.iter().filter(|on| new.depends_on.contains(on)).collect();
    let node = |spec: &TaskSpec| spec.thinking.as_ref().and_then(|thinking| thinking.graph_node_id.clone());
    let changes = TaskChanges {
        description: changed(&old.description, &new.description),
        depends_on: (!kept.into_iter().eq(&new.depends_on)).then(|| new.depends_on.clone()),
        add_dependencies: Vec::new(),
        remove_dependencies: Vec::new(),
        when: changed(&old.when, &new.when),
        complexity: changed(&old.complexity, &new.complexity),
        notes: changed(&old.notes, &new.notes),
        tools: changed(&old.tools, &new.tools),
        skip: changed(&old.skip, &new.skip),
        locks: changed(&old.locks, &new.locks),
        work: changed(&unboxed(&old.work), &unboxed(&new.work)),
        check: changed(&unboxed(&old.check), &unboxed(&new.check)),
        retry: changed(&unboxed(&old.retry), &unboxed(&new.retry)),
        timeout_seconds: changed(&old.timeout_seconds, &new.timeout_seconds),
        priority: changed(&old.priority, &new.priority),
        provides: changed(&old.provides, &new.provides),
        graph_node_id: changed(&node(old), &node(new)),
        foreign: changed(&old.foreign, &new.foreign),
    };
    (changes != TaskChanges::default()).then_some(changes)
}

fn plan_changes(old: &PlanSpec, new: &PlanSpec) -> Option<EditOp> {
    let changed = |old: &String, new: &String| (old != new).then(|| new.clone());
    let changes = PlanChanges {
        title: changed(&old.title, &new.title),
        goal: changed(&old.goal, &new.goal),
        status: changed(&old.status, &new.status),
        owner: changed(&old.owner, &new.owner),
        queue: changed(&old.queue, &new.queue),
        token_budget: (old.token_budget != new.token_budget).then_some(new.token_budget),
        body: changed(&old.body, &new.body),
        foreign: (old.foreign != new.foreign).then(|| new.foreign.clone()),
    };
    (changes != PlanChanges::default()).then(|| EditOp::RevisePlan(Box::new(changes)))
}
