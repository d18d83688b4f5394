//! The dependency graph of a plan that is being edited, by row.

use std::collections::HashMap;

use waypost_core::{Dependency, TaskId};

use super::Row;

/// The edges of the graph in both directions.
#[derive(Clone, Debug, Default)]
pub struct DependencyGraph {
    prerequisites: AdjacencyList,
    dependants: AdjacencyList,
}

/// Lists of numbers, stored one after the other: list `n` is `items[starts[n]..starts[n + 1]]`.
#[derive(Clone, Debug, Default)]
struct AdjacencyList {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl AdjacencyList {
    /// Builds the lists from pairs of a list's number and an item.
    fn of(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0u32; count + 1];
        for (whose, _) in pairs.clone() {
            starts[whose as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut items = vec![0u32; starts[count] as usize];
        for (whose, item) in pairs {
            let place = &mut next[whose as usize];
            items[*place as usize] = item;
            *place += 1;
        }
        Self { starts, items }
    }

    fn get(&self, at: usize) -> impl Iterator<Item = usize> {
        let range = match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(&start), Some(&end)) => start as usize..end as usize,
            _ => 0..0,
        };
        self.items[range].iter().map(|&item| item as usize)
    }
}

impl DependencyGraph {
    pub(super) fn of(rows: &[Row], places: &HashMap<TaskId, usize>) -> Self {
        let mut arrows: Vec<(u32, u32)> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let here = row.spec().depends_on.iter().filter_map(Dependency::here);
            arrows.extend(here.filter_map(|on| places.get(on)).map(|&on| (on as u32, at as u32)));
        }
        Self {
            dependants: AdjacencyList::of(rows.len(), arrows.iter().copied()),
            prerequisites: AdjacencyList::of(rows.len(), arrows.iter().map(|&(on, at)| (at, on))),
        }
    }

    /// The rows of the tasks that the task at a row depends on.
    pub fn prerequisites(&self, at: usize) -> impl Iterator<Item = usize> {
        self.prerequisites.get(at)
    }

    /// The rows of the tasks that depend on the task at a row.
    pub fn dependants(&self, at: usize) -> impl Iterator<Item = usize> {
        self.dependants.get(at)
    }

    /// Marks all tasks that depend on the task at a row, directly or indirectly, including that task.
    pub fn all_dependants(&self, at: usize) -> Vec<bool> {
        let mut reached = vec![false; self.dependants.starts.len().saturating_sub(1)];
        let mut stack = vec![at];
        while let Some(at) = stack.pop() {
            if let Some(seen) = reached.get_mut(at)
                && !std::mem::replace(seen, true)
            {
                stack.extend(self.dependants(at));
            }
        }
        reached
    }
}
