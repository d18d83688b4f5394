//! Tasks without work that stand between tasks with work. An approval covers what they wait for, and nobody but a person
//! ends them early: otherwise what comes after a gate could be taken out from behind it.
//!
//! Follows two nodes a task: its end, and its entry. The end of a task waits for its entry, and that of a group for its
//! members' ends; an entry waits for the ends of dependencies, and for the entry of the group around it.

use std::collections::{BTreeSet, HashSet};

use super::Plan;
use super::slot::NONE;
use crate::{Dependency, DependencyRule, ExternalTaskRef, Status, TaskId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    End(u32),
    Entry(u32),
}

impl Node {
    fn task(self) -> u32 {
        let (Self::End(number) | Self::Entry(number)) = self;
        number
    }

    fn place(self) -> usize {
        match self {
            Self::End(number) => 2 * number as usize,
            Self::Entry(number) => 2 * number as usize + 1,
        }
    }
}

/// What must end before a task ends, itself included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenBefore {
    /// Tasks of the same plan.
    pub tasks: BTreeSet<TaskId>,
    /// Tasks of other plans.
    pub elsewhere: BTreeSet<ExternalTaskRef>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// To what a node waits for.
    Up,
    /// To what waits for a node.
    Down,
}

impl Plan {
    fn add_neighbours(&self, node: Node, direction: Direction, found: &mut Vec<Node>) {
        let slot = self.slot(node.task());
        match (direction, node) {
            (Direction::Up, Node::End(number)) => {
                found.push(Node::Entry(number));
                found.extend(slot.children.iter().map(|&child| Node::End(child)));
            }
            (Direction::Up, Node::Entry(_)) => {
                found.extend(slot.before.iter().map(|&on| Node::End(on)));
                found.extend((slot.parent != NONE).then_some(Node::Entry(slot.parent)));
            }
            (Direction::Down, Node::End(_)) => {
                found.extend(slot.after.iter().map(|&next| Node::Entry(next)));
                found.extend((slot.parent != NONE).then_some(Node::End(slot.parent)));
            }
            (Direction::Down, Node::Entry(number)) => {
                found.push(Node::End(number));
                found.extend(slot.children.iter().map(|&child| Node::Entry(child)));
            }
        }
    }

    /// Marks everything that can be reached.
    fn reached(&self, mut stack: Vec<Node>, direction: Direction) -> Vec<bool> {
        let mut seen = vec![false; 2 * self.slots.len()];
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut seen[node.place()], true) {
                self.add_neighbours(node, direction, &mut stack);
            }
        }
        seen
    }

    /// Returns the tasks that are not work, that wait for work or for other plans, and that work waits for.
    pub(super) fn between_work(&self, is_work: &dyn Fn(u32) -> bool) -> BTreeSet<u32> {
        let alive = || (0..self.slots.len() as u32).filter(|&number| self.slot(number).alive);
        let work = alive().filter(|&number| is_work(number));
        let waited_for = self.reached(work.map(Node::Entry).collect(), Direction::Up);
        let work = alive().filter(|&number| is_work(number)).map(Node::End);
        let elsewhere = alive().filter(|&number| self.slot(number).elsewhere > 0).map(Node::Entry);
        let waiting = self.reached(work.chain(elsewhere).collect(), Direction::Down);
        let is_between = |node: Node| waited_for[node.place()] && waiting[node.place()];
        let plain = alive().filter(|&number| !is_work(number));
        plain.filter(|&number| is_between(Node::End(number)) || is_between(Node::Entry(number))).collect()
    }

    /// Returns the tasks that depend on tasks of other plans, in order.
    pub fn tasks_with_external_dependencies(&self) -> Vec<TaskId> {
        let waits = |number: &u32| self.slot(*number).elsewhere > 0;
        self.order().into_iter().filter(waits).map(|number| self.task_id(number)).collect()
    }

    /// Returns the tasks that have machine work or a check.
    pub fn work_tasks(&self) -> HashSet<TaskId> {
        let alive = (0..self.slots.len() as u32).filter(|&number| self.slot(number).alive);
        alive.filter(|&number| self.has_work(number)).map(|number| self.task_id(number)).collect()
    }

    /// Returns these tasks, and all that must end before one of them ends.
    pub fn waited_for_by(&self, tasks: &HashSet<TaskId>) -> HashSet<TaskId> {
        let from = tasks.iter().filter_map(|task| self.find(task.as_str())).map(Node::End).collect();
        let reached = self.reached(from, Direction::Up);
        let alive = (0..self.slots.len() as u32).filter(|&number| self.slot(number).alive);
        // Whoever waits for the end of a task has reached it; its entry is also reached from its subtasks.
        let is_reached = |number: &u32| reached[Node::End(*number).place()];
        alive.filter(is_reached).map(|number| self.task_id(number)).collect()
    }

    fn has_work(&self, number: u32) -> bool {
        self.with_spec(number, |spec| spec.work.is_some() || spec.check.is_some())
    }

    /// Visits what can be reached without passing through work, nearest first, until `visit` returns true. Returns whether
    /// it did.
    fn search(
        &self,
        mut stack: Vec<Node>,
        direction: Direction,
        mut visit: impl FnMut(Node, bool) -> bool,
    ) -> bool {
        let mut seen: HashSet<Node> = HashSet::new();
        while let Some(node) = stack.pop() {
            if !seen.insert(node) {
                continue;
            }
            let is_work = self.has_work(node.task());
            if visit(node, is_work) {
                return true;
            }
            if !is_work {
                self.add_neighbours(node, direction, &mut stack);
            }
        }
        false
    }

    /// Whether work waits for a task, directly or through tasks without work.
    pub(super) fn is_waited_for_by_work(&self, number: u32) -> bool {
        let from = vec![Node::End(number), Node::Entry(number)];
        self.search(from, Direction::Down, |node, is_work| is_work && node.task() != number)
    }

    /// Whether a task behind this one, up to work, waits for its end however it ends.
    pub(super) fn is_opened_by_any_end(&self, number: u32) -> bool {
        let is_content = |node: Node| matches!(node, Node::Entry(next) if self.slot(next).when == DependencyRule::AllFinished);
        self.search(vec![Node::End(number)], Direction::Down, |node, _| is_content(node))
    }

    /// Whether tasks, or what is in them, are work, or wait for work or for other plans.
    pub(super) fn waits_for_work(&self, numbers: impl IntoIterator<Item = u32>) -> bool {
        let from = numbers.into_iter().map(Node::End).collect();
        let is_elsewhere =
            |node: Node| matches!(node, Node::Entry(number) if self.slot(number).elsewhere > 0);
        self.search(from, Direction::Up, |node, is_work| is_work || is_elsewhere(node))
    }

    /// Returns the tasks with work that a task waits for, directly or through tasks without work.
    pub fn work_before(&self, task: &str) -> Vec<TaskId> {
        self.find(task).map(|own| self.work_above(own, Node::Entry(own))).unwrap_or_default()
    }

    /// Returns the tasks with work that must end before a task that has none, and contains none, ends.
    pub fn work_through(&self, task: &str) -> Vec<TaskId> {
        let plain = self.find(task).filter(|&own| !self.is_for_machines(own));
        plain.map(|own| self.work_above(own, Node::End(own))).unwrap_or_default()
    }

    fn work_above(&self, own: u32, from: Node) -> Vec<TaskId> {
        let mut found = BTreeSet::new();
        let mut stack = vec![from];
        let mut seen: HashSet<Node> = HashSet::new();
        while let Some(node) = stack.pop() {
            let number = node.task();
            if !seen.insert(node) {
                continue;
            }
            if number != own && self.has_work(number) {
                found.insert(number);
            } else {
                self.add_neighbours(node, Direction::Up, &mut stack);
            }
        }
        found.into_iter().map(|number| self.task_id(number)).collect()
    }

    /// Returns those of [`Self::work_before`] that have not finished.
    pub fn open_work_before(&self, task: &str) -> Vec<TaskId> {
        let mut open = self.work_before(task);
        open.retain(|task| self.task(task.as_str()).is_some_and(|task| !task.state.status.is_finished()));
        open
    }

    /// Returns everything open that must end before a task ends, directly or not.
    pub fn open_before(&self, task: &str) -> OpenBefore {
        let mut open = OpenBefore::default();
        let mut stack: Vec<Node> = self.find(task).map(Node::End).into_iter().collect();
        let mut seen: HashSet<Node> = HashSet::new();
        while let Some(node) = stack.pop() {
            if !seen.insert(node) {
                continue;
            }
            self.add_neighbours(node, Direction::Up, &mut stack);
            let id = self.task_id(node.task());
            let Some(found) = self.task(id.as_str()).filter(|task| !task.state.status.is_finished()) else {
                continue;
            };
            match node {
                Node::End(_) => drop(open.tasks.insert(id)),
                Node::Entry(_) => {
                    let elsewhere = found.spec.depends_on.iter().filter_map(Dependency::external);
                    let is_open = |on: &&ExternalTaskRef| !found.state.received.contains_key(&on.key());
                    open.elsewhere.extend(elsewhere.filter(is_open).cloned());
                }
            }
        }
        open
    }

    /// Returns the tasks without work that wait for a task, directly or through others of their kind, and none of which is
    /// content with another one that ended well.
    pub fn plain_tasks_behind(&self, task: &str) -> Vec<TaskId> {
        let Some(own) = self.find(task) else { return Vec::new() };
        let mut behind = BTreeSet::new();
        let mut stack = vec![Node::End(own)];
        let mut seen: HashSet<Node> = HashSet::new();
        while let Some(node) = stack.pop() {
            let number = node.task();
            let is_content =
                matches!(node, Node::Entry(_)) && self.slot(number).when == DependencyRule::AnyDone;
            if is_content || !seen.insert(node) || number != own && self.has_work(number) {
                continue;
            }
            if number != own && matches!(node, Node::End(_)) {
                behind.insert(number);
            }
            self.add_neighbours(node, Direction::Down, &mut stack);
        }
        behind.into_iter().map(|number| self.task_id(number)).collect()
    }

    /// Whether somebody ended a task; not so if it was skipped because of another one.
    pub fn was_ended(&self, task: &str) -> bool {
        self.task(task).is_some_and(|task| {
            let state = &task.state;
            state.status.is_finished() && !(state.status == Status::Skipped && state.because_of.is_some())
        })
    }
}
