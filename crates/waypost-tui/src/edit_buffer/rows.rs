//! Tasks as the rows of a tree: each parent right before its subtasks.

use std::collections::HashMap;
use std::sync::Arc;

use waypost_core::{EffectiveStatus, Task, TaskId, TaskSpec};

/// One task, with its place in the tree and its status.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub task: Arc<Task>,
    /// Its status when the plan was read.
    pub standing: EffectiveStatus,
    /// The number of its ancestors.
    pub depth: u16,
}

impl Row {
    pub fn spec(&self) -> &TaskSpec {
        &self.task.spec
    }

    pub fn id(&self) -> &TaskId {
        &self.task.spec.id
    }
}

pub(super) fn with_spec(row: &Row, spec: TaskSpec) -> Row {
    Row { task: Arc::new(Task { spec, state: row.task.state.clone() }), ..*row }
}

/// Moves a family to another parent; `deeper` is added to the depth of every row.
pub(super) fn reparented(family: &[Row], parent: Option<TaskId>, deeper: i32) -> Vec<Row> {
    let mut rows: Vec<Row> = family.to_vec();
    for row in &mut rows {
        row.depth = (i32::from(row.depth) + deeper).max(0) as u16;
    }
    if let Some(first) = rows.first_mut() {
        let mut spec = first.spec().clone();
        spec.parent = parent;
        *first = with_spec(first, spec);
    }
    rows
}

/// Tasks as rows, each parent right before its subtasks. A task with an unknown parent is a root, and
/// so is the first task of a parent cycle.
pub(super) fn rows_of(tasks: &[Task], standings: &[EffectiveStatus]) -> Vec<Row> {
    let places: HashMap<&TaskId, usize> =
        tasks.iter().enumerate().map(|(at, task)| (&task.spec.id, at)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    let mut roots = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        match task.spec.parent.as_ref().and_then(|parent| places.get(parent)) {
            Some(&parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let mut rows = Vec::with_capacity(tasks.len());
    let mut seen = vec![false; tasks.len()];
    let mut walk = |roots: Vec<usize>, rows: &mut Vec<Row>| {
        let mut stack: Vec<(usize, u16)> = roots.into_iter().rev().map(|root| (root, 0)).collect();
        while let Some((at, depth)) = stack.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let standing = standings.get(at).copied().unwrap_or(EffectiveStatus::Blocked);
            rows.push(Row { task: Arc::new(tasks[at].clone()), standing, depth });
            stack.extend(children[at].iter().rev().map(|&child| (child, depth.saturating_add(1))));
        }
    };
    walk(roots, &mut rows);
    // Tasks whose parents form a cycle are below no root. They are shown nevertheless, with their problem.
    walk((0..tasks.len()).collect(), &mut rows);
    rows
}
