//! The tree that parents make of a draft's tasks. Iterative; tolerates a cycle of parents and a missing parent.

use waypost_core::{Draft, Task, TaskId};

use crate::field_reader::PreservedFields;
use crate::markdown::task_parser::first_places;

/// Children, depths and roots, by position in the list of tasks.
pub(crate) struct Tree {
    children: Vec<Vec<usize>>,
    depth: Vec<usize>,
    rooted: Vec<bool>,
    tops: Vec<usize>,
    /// Parents before their children; tasks in a cycle are not in it.
    order: Vec<usize>,
}

impl Tree {
    /// Builds the tree of the draft. With `made`, an additional root is above all tasks without a parent.
    pub(crate) fn of(draft: &Draft, made: Option<&TaskId>) -> Self {
        let count = draft.tasks.len();
        let place_of = first_places(&draft.tasks);
        let mut tree = Self {
            children: vec![Vec::new(); count],
            depth: vec![0; count],
            rooted: vec![false; count],
            tops: Vec::new(),
            order: Vec::with_capacity(count),
        };
        let mut orphans = Vec::new();
        for (at, task) in draft.tasks.iter().enumerate() {
            match task.spec.parent.as_ref().map(|parent| place_of.get(parent)) {
                None => tree.tops.push(at),
                Some(None) => orphans.push(at),
                Some(Some(&parent)) => tree.children[parent].push(at),
            }
        }
        let below_made = usize::from(made.is_some());
        for &top in &tree.tops {
            tree.depth[top] = below_made;
            tree.rooted[top] = true;
        }
        tree.order.extend(tree.tops.iter().chain(&orphans));
        let mut next = 0;
        while let Some(&at) = tree.order.get(next) {
            next += 1;
            for &child in &tree.children[at] {
                tree.depth[child] = tree.depth[at] + 1;
                tree.rooted[child] = tree.rooted[at];
                tree.order.push(child);
            }
        }
        tree
    }

    /// The children of the task at this position.
    pub(crate) fn children(&self, at: usize) -> &[usize] {
        &self.children[at]
    }

    /// The number of parents above it.
    pub(crate) fn depth(&self, at: usize) -> usize {
        self.depth[at]
    }

    pub(crate) fn depth_max(&self) -> usize {
        self.depth.iter().copied().max().unwrap_or_default()
    }

    /// Whether its parents lead to a task without a parent.
    pub(crate) fn is_rooted(&self, at: usize) -> bool {
        self.rooted[at]
    }

    /// The tasks without a parent.
    pub(crate) fn tops(&self) -> &[usize] {
        &self.tops
    }

    /// The positions of tasks, children before their parents. Tasks in a cycle are not among them.
    pub(crate) fn children_first(&self) -> impl Iterator<Item = usize> {
        self.order.iter().rev().copied()
    }
}

pub(super) fn child_ids(draft: &Draft, tree: &Tree, at: usize) -> Vec<String> {
    tree.children(at).iter().map(|child| draft.tasks[*child].spec.id.to_string()).collect()
}

/// Returns the goal that was the root when the plan was read, or the only one without a parent.
pub(super) fn root_of<'a>(draft: &'a Draft, kept: &PreservedFields) -> Option<&'a Task> {
    let named =
        kept.text("root").and_then(|root| draft.tasks.iter().find(|task| task.spec.id.as_str() == root));
    let mut tops = draft.tasks.iter().filter(|task| task.spec.parent.is_none());
    named.or_else(|| match (tops.next(), tops.next()) {
        (Some(only), None) => Some(only),
        (_, _) => None,
    })
}

pub(super) fn root_description<'a>(draft: &'a Draft, kept: &PreservedFields) -> Option<&'a str> {
    root_of(draft, kept).map(|root| root.spec.description.as_str())
}
