//! Orderings of a valid draft: topological order, levels and the critical path. Iterative; changes nothing.
//!
//! A parent is not worked on: its children begin after everything that it depends on, and its dependants begin after
//! its last child. Each task therefore has two nodes, its beginning and its end, and only a task without children takes
//! time between the two.

use crate::id_table::Names;
use crate::{Draft, Problem, ProblemKind, TaskId, validate};

const NONE: u32 = u32::MAX;

/// The precedence graph. Node `2n` is the beginning of task `n`, node `2n + 1` its end.
struct Edges {
    waiting: Vec<u32>,
    after: Vec<Vec<u32>>,
    parent: Vec<u32>,
    is_parent: Vec<bool>,
}

fn begin(task: u32) -> u32 {
    task * 2
}

fn end(task: u32) -> u32 {
    task * 2 + 1
}

impl Edges {
    fn of(draft: &Draft) -> Self {
        let tasks = &draft.tasks;
        let name_of = |number: u32| tasks[number as usize].spec.id.as_str();
        let mut names = Names::with_capacity(tasks.len());
        for number in 0..tasks.len() as u32 {
            // If two tasks share an id, the first is used; `validate` reports the second.
            let _taken = names.add(number, name_of);
        }
        let nodes = tasks.len() * 2;
        let mut edges = Self {
            waiting: vec![0; nodes],
            after: vec![Vec::new(); nodes],
            parent: vec![NONE; tasks.len()],
            is_parent: vec![false; tasks.len()],
        };
        for number in 0..tasks.len() as u32 {
            let spec = &tasks[number as usize].spec;
            edges.add(begin(number), end(number));
            if let Some(parent) = spec.parent.as_ref().and_then(|parent| names.find(parent.as_str(), name_of))
            {
                edges.parent[number as usize] = parent;
                edges.is_parent[parent as usize] = true;
                edges.add(begin(parent), begin(number));
                edges.add(end(number), end(parent));
            }
            let here = spec.depends_on.iter().filter_map(|dependency| dependency.here());
            let mut before: Vec<u32> = here.filter_map(|on| names.find(on.as_str(), name_of)).collect();
            before.sort_unstable();
            before.dedup();
            for on in before {
                edges.add(end(on), begin(number));
            }
        }
        edges
    }

    fn add(&mut self, before: u32, after: u32) {
        self.waiting[after as usize] += 1;
        self.after[before as usize].push(after);
    }

    /// Marks a node as passed and returns the nodes that no longer wait for anything.
    fn pass(&mut self, node: u32) -> Vec<u32> {
        let mut free = Vec::new();
        for next in std::mem::take(&mut self.after[node as usize]) {
            self.waiting[next as usize] -= 1;
            if self.waiting[next as usize] == 0 {
                free.push(next);
            }
        }
        free
    }

    fn free(&self) -> Vec<u32> {
        (0..self.waiting.len() as u32).filter(|&node| self.waiting[node as usize] == 0).collect()
    }
}

fn stuck(draft: &Draft) -> Problem {
    let problems = validate(draft);
    let cycle = problems.into_iter().find(|problem| {
        matches!(
            problem.wrong,
            ProblemKind::Cycle { .. } | ProblemKind::SelfDependency | ProblemKind::ParentCycle { .. }
        )
    });
    cycle.unwrap_or_else(|| Problem::plan(ProblemKind::Cycle { path: Vec::new() }))
}

/// Returns the tasks in topological order, each after all its dependencies. Among the candidates, the greatest id of
/// the latest batch comes first, as in clido.
pub fn topological_order(draft: &Draft) -> Result<Vec<TaskId>, Problem> {
    let id = |node: u32| &draft.tasks[node as usize / 2].spec.id;
    let mut edges = Edges::of(draft);
    let mut ready = edges.free();
    ready.sort_by_key(|&node| id(node));
    let mut order = Vec::with_capacity(draft.tasks.len());
    while let Some(node) = ready.pop() {
        if node % 2 == 0 {
            order.push(id(node).clone());
        }
        // An end is not a choice: it is passed at once, together with the ends of parents.
        let (mut ends, mut next) = (vec![node], Vec::new());
        while let Some(passed) = ends.pop() {
            for free in edges.pass(passed) {
                if free % 2 == 0 { next.push(free) } else { ends.push(free) }
            }
        }
        next.sort_by_key(|&node| id(node));
        ready.extend(next);
    }
    if order.len() < draft.tasks.len() { Err(stuck(draft)) } else { Ok(order) }
}

/// The longest path to each node.
struct Lateness {
    /// The number of tasks that come before the node, one after another.
    late: Vec<u32>,
    /// The predecessor on the longest path.
    because: Vec<u32>,
    /// Whether each task has children.
    is_parent: Vec<bool>,
}

fn lateness(draft: &Draft) -> Result<Lateness, Problem> {
    let mut edges = Edges::of(draft);
    let nodes = edges.waiting.len();
    let (mut late, mut because) = (vec![0u32; nodes], vec![NONE; nodes]);
    let (mut ready, mut seen) = (edges.free(), 0);
    while let Some(node) = ready.pop() {
        seen += 1;
        let takes_time = node % 2 == 0 && !edges.is_parent[node as usize / 2];
        for place in 0..edges.after[node as usize].len() {
            let next = edges.after[node as usize][place];
            let own_end = next == node + 1;
            let arrival = late[node as usize] + u32::from(takes_time && own_end);
            if arrival > late[next as usize] {
                late[next as usize] = arrival;
                because[next as usize] = node;
            }
        }
        ready.extend(edges.pass(node));
    }
    if seen < nodes { Err(stuck(draft)) } else { Ok(Lateness { late, because, is_parent: edges.is_parent }) }
}

/// Returns the tasks in levels: the tasks of a level depend only on earlier levels. A level is sorted by id.
pub fn levels(draft: &Draft) -> Result<Vec<Vec<TaskId>>, Problem> {
    let Lateness { late, .. } = lateness(draft)?;
    let mut levels: Vec<Vec<TaskId>> = Vec::new();
    for (number, task) in draft.tasks.iter().enumerate() {
        let level = late[number * 2] as usize;
        if levels.len() <= level {
            levels.resize_with(level + 1, Vec::new);
        }
        levels[level].push(task.spec.id.clone());
    }
    for level in &mut levels {
        level.sort();
    }
    Ok(levels)
}

/// Returns the longest chain of tasks that must run one after another, first task first.
pub fn critical_path(draft: &Draft) -> Result<Vec<TaskId>, Problem> {
    let Lateness { late, because, is_parent } = lateness(draft)?;
    let ends = (0..draft.tasks.len() as u32).map(end);
    let mut at = ends.rev().max_by_key(|&node| late[node as usize]).unwrap_or(NONE);
    let mut path = Vec::new();
    while at != NONE {
        let task = at as usize / 2;
        if at % 2 == 0 && !is_parent[task] {
            path.push(draft.tasks[task].spec.id.clone());
        }
        at = because[at as usize];
    }
    path.reverse();
    Ok(path)
}
