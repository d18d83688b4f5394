//! A draft as nodes and edges, for the drawing formats. Knows no format.
//!
//! A draft is not validated: ids may occur twice, dependencies may be dangling or cyclic. All of that is kept as it is, and none
//! of it prevents a picture.

use std::collections::{HashMap, HashSet};

use waypost_core::{Dependency, Draft, EffectiveStatus, Plan, PlanId, Status, Task, TaskId, validate};

use crate::markdown::task_parser::first_places;

/// Maximum nesting of groups in a picture. Deeper tasks go into the deepest group.
pub(crate) const GROUP_LEVELS_MAX: usize = 8;

/// Returns the status of each task. A draft that is no valid plan has only the statuses that it names. What its author skips is
/// drawn as skipped, also before the plan starts.
fn statuses(draft: &Draft) -> Vec<EffectiveStatus> {
    let plan = PlanId::new("drawn").ok().filter(|_| validate(draft).is_empty());
    let plan = plan.map(|id| Plan::from_trusted_draft(id, draft.clone()));
    let started = plan.as_ref().map(Plan::as_started);
    let of_task = |task: &Task| {
        if task.spec.skip && task.state.status == Status::Pending {
            return EffectiveStatus::Skipped;
        }
        let derived = started.as_ref().and_then(|plan| plan.effective_status(task.spec.id.as_str()));
        derived.unwrap_or(match task.state.status {
            Status::Pending => EffectiveStatus::Ready,
            Status::Running => EffectiveStatus::Running,
            Status::Done => EffectiveStatus::Done,
            Status::Failed => EffectiveStatus::Failed,
            Status::Skipped => EffectiveStatus::Skipped,
            Status::Cancelled => EffectiveStatus::Cancelled,
        })
    };
    draft.tasks.iter().map(of_task).collect()
}

/// The nodes and edges of a draft.
pub(crate) struct Graph<'a> {
    /// The tasks; a node is an index into them.
    pub(crate) tasks: &'a [Task],
    /// The status of each task, including what follows from the graph.
    pub(crate) statuses: Vec<EffectiveStatus>,
    /// Pairs of a task and the task that waits for it. Each pair once, in the order of the waiting tasks.
    pub(crate) edges: Vec<(usize, usize)>,
    /// The parent of each task, if it is in the draft.
    pub(crate) parents: Vec<Option<usize>>,
    /// Dependencies that lead out of the draft: the waiting task, and the dependency.
    pub(crate) outside: Vec<(usize, &'a Dependency)>,
}

impl<'a> Graph<'a> {
    pub(crate) fn of(draft: &'a Draft) -> Self {
        let tasks = draft.tasks.as_slice();
        let places = first_places(tasks);
        let mut edges = Vec::new();
        let mut outside = Vec::new();
        let mut seen = HashSet::new();
        for (waiting, task) in tasks.iter().enumerate() {
            for dependency in &task.spec.depends_on {
                match dependency.here().and_then(|on| places.get(on)) {
                    Some(&first) => {
                        if seen.insert((first, waiting)) {
                            edges.push((first, waiting));
                        }
                    }
                    None => outside.push((waiting, dependency)),
                }
            }
        }
        let parents = tasks
            .iter()
            .enumerate()
            .map(|(n, task)| {
                let parent = task.spec.parent.as_ref().and_then(|parent| places.get(parent)).copied();
                parent.filter(|&parent| parent != n)
            })
            .collect();
        Self { tasks, statuses: statuses(draft), edges, parents, outside }
    }

    /// Returns a unique name for each task: its id, followed by a number where an id occurs twice.
    pub(crate) fn names(&self) -> Vec<String> {
        let used: HashSet<&str> = self.tasks.iter().map(|task| task.spec.id.as_str()).collect();
        let mut turns: HashMap<&TaskId, usize> = HashMap::new();
        let mut names = Vec::with_capacity(self.tasks.len());
        let mut made = HashSet::new();
        for task in self.tasks {
            let id = &task.spec.id;
            let turn = turns.entry(id).or_insert(0);
            *turn += 1;
            let mut name = if *turn == 1 { id.to_string() } else { format!("{id} ({turn})") };
            while *turn > 1 && (used.contains(name.as_str()) || made.contains(&name)) {
                *turn += 1;
                name = format!("{id} ({turn})");
            }
            made.insert(name.clone());
            names.push(name);
        }
        names
    }

    /// Returns the tasks in groups: a parent opens one for itself and its children.
    pub(crate) fn grouped(&self) -> Vec<Step> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.tasks.len()];
        for (n, parent) in self.parents.iter().enumerate() {
            if let Some(parent) = *parent {
                children[parent].push(n);
            }
        }
        let mut steps = Vec::with_capacity(self.tasks.len());
        let mut seen = vec![false; self.tasks.len()];
        let roots = (0..self.tasks.len()).filter(|&n| self.parents[n].is_none());
        // Tasks that remain after the roots are in a cycle of parents.
        for start in roots.chain(0..self.tasks.len()) {
            let mut stack = vec![Step::Task { node: start, level: 0 }];
            while let Some(step) = stack.pop() {
                let Step::Task { node, level } = step else {
                    steps.push(step);
                    continue;
                };
                if std::mem::replace(&mut seen[node], true) {
                    continue;
                }
                let opens = !children[node].is_empty() && level < GROUP_LEVELS_MAX;
                let inner = if opens { level + 1 } else { level };
                if opens {
                    steps.push(Step::Open { node, level });
                    stack.push(Step::Close { level });
                }
                steps.push(Step::Task { node, level: inner });
                stack.extend(children[node].iter().rev().map(|&node| Step::Task { node, level: inner }));
            }
        }
        steps
    }
}

/// One step of the walk through the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Open {
        node: usize,
        /// Number of enclosing groups.
        level: usize,
    },
    Task {
        node: usize,
        /// Number of enclosing groups.
        level: usize,
    },
    /// Closes the group that was opened last.
    Close {
        /// Number of enclosing groups.
        level: usize,
    },
}
