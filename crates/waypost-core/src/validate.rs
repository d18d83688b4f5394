//! Validates a draft as a whole and reports every problem. Changes nothing; every traversal is iterative.

use std::collections::{HashMap, HashSet};

use crate::id_table::Names;
use crate::suggest::nearest;
use crate::{Dependency, Draft, Problem, ProblemKind, Refusal, Task, TaskSpec, limits};

const NONE: u32 = u32::MAX;

/// Returns every problem of a draft, each with its location; empty if the draft is valid.
pub fn validate(draft: &Draft) -> Vec<Problem> {
    let mut problems = Report::default();
    check_plan(draft, &mut problems);
    if draft.tasks.len() > limits::TASKS_MAX {
        problems.over("tasks in a plan", draft.tasks.len(), limits::TASKS_MAX, None);
        return problems.list;
    }
    let shape = Shape::of(draft, &mut problems);
    for (task, &children) in draft.tasks.iter().zip(&shape.children) {
        check_task(&task.spec, children > 0, &mut problems);
        check_state(task, &mut problems);
    }
    shape.parent_rings(draft, &mut problems);
    shape.cycles(draft, &mut problems);
    problems.list
}

/// A list of problems, capped at [`limits::PROBLEMS_MAX`].
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) list: Vec<Problem>,
}

impl Report {
    /// Whether another problem is still worth a suggestion, which costs a pass over all ids.
    pub(crate) fn suggests(&self) -> bool {
        self.list.len() < 20
    }

    pub(crate) fn into_result(self) -> Result<(), Refusal> {
        if self.list.is_empty() { Ok(()) } else { Err(Refusal::Invalid { problems: self.list }) }
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        if self.list.len() < limits::PROBLEMS_MAX {
            self.list.push(problem);
        }
    }

    pub(crate) fn over(&mut self, what: &str, found: usize, max: usize, task: Option<&TaskSpec>) {
        if found > max {
            let wrong = ProblemKind::OverLimit { what: what.to_owned(), found, max };
            self.add(match task {
                Some(task) => Problem::task(&task.id, wrong),
                None => Problem::plan(wrong),
            });
        }
    }
}

fn check_plan(draft: &Draft, problems: &mut Report) {
    let spec = &draft.spec;
    problems.over("bytes of the title", spec.title.len(), limits::LINE_BYTES_MAX, None);
    problems.over("bytes of the goal", spec.goal.len(), limits::TEXT_BYTES_MAX, None);
    problems.over("bytes of the status", spec.status.len(), limits::LINE_BYTES_MAX, None);
    problems.over("bytes of the owner", spec.owner.len(), limits::LINE_BYTES_MAX, None);
    problems.over("bytes of the queue", spec.queue.len(), limits::LINE_BYTES_MAX, None);
    problems.over("bytes of the body", spec.body.len(), limits::BODY_BYTES_MAX, None);
}

/// Checks one task on its own, without reading the others.
pub(crate) fn check_task(spec: &TaskSpec, has_children: bool, problems: &mut Report) {
    let task = Some(spec);
    problems.over("bytes of the description", spec.description.len(), limits::TEXT_BYTES_MAX, task);
    problems.over("bytes of the notes", spec.notes.len(), limits::TEXT_BYTES_MAX, task);
    problems.over("dependencies", spec.depends_on.len(), limits::DEPENDENCIES_MAX, task);
    problems.over("locks", spec.locks.len(), limits::LOCKS_MAX, task);
    if let Some(retry) = &spec.retry {
        problems.over("attempts", retry.attempts as usize, limits::ATTEMPTS_MAX as usize, task);
    }
    let mut keys = HashSet::new();
    for lock in &spec.locks {
        problems.over("bytes of a lock's key", lock.key.len(), limits::LINE_BYTES_MAX, task);
        if !keys.insert(lock.key.as_str()) {
            problems.add(Problem::task(&spec.id, ProblemKind::DuplicateLock { key: lock.key.clone() }));
        }
    }
    let reasoning = spec.thinking.as_ref().and_then(|thinking| thinking.reasoning.as_ref());
    problems.over("bytes of the reasoning", reasoning.map_or(0, String::len), limits::TEXT_BYTES_MAX, task);
    for (field, work) in [("work", &spec.work), ("check", &spec.check)] {
        let Some(work) = work else { continue };
        problems.over("bytes of the inputs", work.inputs.as_str().len(), limits::JSON_BYTES_MAX, task);
        if !work.inputs.is_object() {
            let wrong = ProblemKind::WrongType {
                field: format!("{field}.inputs"),
                detail: "an object is expected".to_owned(),
            };
            problems.add(Problem::task(&spec.id, wrong));
        }
    }
    if has_children && spec.work.is_some() {
        problems.add(Problem::task(&spec.id, ProblemKind::WorkOnParent));
    }
}

/// Checks the execution state that a draft carries for a task.
fn check_state(task: &Task, problems: &mut Report) {
    let (spec, state) = (Some(&task.spec), &task.state);
    let texts = [("result", &state.result), ("error", &state.error), ("reason", &state.reason)];
    for (what, text) in texts {
        let found = text.as_ref().map_or(0, String::len);
        problems.over(&format!("bytes of the {what}"), found, limits::TEXT_BYTES_MAX, spec);
    }
    let received = state.received.values().filter_map(|received| received.output.as_ref());
    for output in received.chain(&state.output) {
        problems.over("bytes of the output", output.as_str().len(), limits::JSON_BYTES_MAX, spec);
    }
}

/// The beginning or the end of a task. A task ends after it begins and after its children end; it begins after all its
/// dependencies have ended and after its parent has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Moment {
    Begin(u32),
    End(u32),
}

/// Returns the tasks of a cycle of moments, as the path shown to people. In the input, each moment comes after the next
/// and the last after the first. The first task is repeated at the end; every other task occurs once.
pub(crate) fn ring_of_tasks(moments: impl Iterator<Item = Moment>) -> Vec<u32> {
    let mut ring: Vec<Moment> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    for moment in moments {
        let (Moment::Begin(task) | Moment::End(task)) = moment;
        match places.get(&task).map(|&place| (place, ring[place])) {
            None => {
                places.insert(task, ring.len());
                ring.push(moment);
            }
            // There is a shorter way from a task's end to its beginning.
            Some((place, Moment::End(_))) => {
                for Moment::Begin(left) | Moment::End(left) in ring.drain(place + 1..) {
                    places.remove(&left);
                }
                ring[place] = moment;
            }
            // From a task's beginning to its end is already a cycle.
            Some((place, Moment::Begin(_))) => {
                ring.drain(..place);
                break;
            }
        }
    }
    let mut tasks: Vec<u32> =
        ring.into_iter().map(|(Moment::Begin(task) | Moment::End(task))| task).collect();
    tasks.extend(tasks.first().copied());
    tasks
}

/// The draft's graph as arrays. Node `n` is task `n`. If any task has a parent, node `n` is its beginning and node
/// `count + n` its end, so that a parent ends after its children, and they begin after it may begin.
pub(crate) struct Shape {
    count: usize,
    parent: Vec<u32>,
    children: Vec<u32>,
    /// `edges[starts[n]..starts[n + 1]]` are the nodes that node `n` waits for.
    starts: Vec<u32>,
    edges: Vec<u32>,
    has_parents: bool,
}

impl Shape {
    fn of(draft: &Draft, problems: &mut Report) -> Self {
        let tasks = &draft.tasks;
        let name_of = |number: u32| tasks[number as usize].spec.id.as_str();
        let mut names = Names::with_capacity(tasks.len());
        for number in 0..tasks.len() as u32 {
            if names.add(number, name_of).is_err() {
                problems.add(Problem::task(name_of(number), ProblemKind::DuplicateId));
            }
        }
        let mut parent = vec![NONE; tasks.len()];
        let mut children = vec![0; tasks.len()];
        let mut has_parents = false;
        for (number, task) in tasks.iter().enumerate() {
            let Some(above) = &task.spec.parent else { continue };
            match names.find(above.as_str(), name_of) {
                Some(found) => {
                    has_parents = true;
                    parent[number] = found;
                    children[found as usize] += 1;
                }
                None => {
                    let wrong = ProblemKind::OrphanParent { parent: above.to_string() };
                    problems.add(Problem::task(&task.spec.id, wrong));
                }
            }
        }
        let mut shape = Self {
            count: tasks.len(),
            parent,
            children,
            starts: Vec::with_capacity(tasks.len() + 1),
            edges: Vec::with_capacity(tasks.len()),
            has_parents,
        };
        for (number, task) in tasks.iter().enumerate() {
            shape.starts.push(shape.edges.len() as u32);
            if shape.parent[number] != NONE {
                shape.edges.push(shape.parent[number]);
            }
            for dependency in &task.spec.depends_on {
                shape.add_dependency(number as u32, task, dependency, &names, tasks, problems);
            }
        }
        if has_parents {
            shape.add_ends();
        }
        shape.starts.push(shape.edges.len() as u32);
        shape
    }

    fn add_dependency(
        &mut self,
        number: u32,
        task: &Task,
        dependency: &Dependency,
        names: &Names,
        tasks: &[Task],
        problems: &mut Report,
    ) {
        let Dependency::Task(on) = dependency else { return };
        let name_of = |number: u32| tasks[number as usize].spec.id.as_str();
        match names.find(on.as_str(), name_of) {
            Some(found) if found == number => {
                problems.add(Problem::task(&task.spec.id, ProblemKind::SelfDependency));
            }
            Some(found) if self.has_parents => self.edges.push(self.count as u32 + found),
            Some(found) => self.edges.push(found),
            None => {
                let near = problems
                    .suggests()
                    .then(|| {
                        let all = tasks.iter().map(|other| other.spec.id.as_str());
                        nearest(on.as_str(), all.filter(|id| *id != task.spec.id.as_str()))
                    })
                    .flatten();
                let wrong = ProblemKind::UnknownDependency { dependency: on.to_string(), nearest: near };
                problems.add(Problem::task(&task.spec.id, wrong));
            }
        }
    }

    /// Adds the second half of the nodes: a task's end waits for its beginning and for the ends of its children.
    fn add_ends(&mut self) {
        let mut first_child = vec![NONE; self.count];
        let mut next_sibling = vec![NONE; self.count];
        for number in (0..self.count).rev() {
            let above = self.parent[number];
            if above != NONE {
                next_sibling[number] = first_child[above as usize];
                first_child[above as usize] = number as u32;
            }
        }
        for (number, &first) in first_child.iter().enumerate() {
            self.starts.push(self.edges.len() as u32);
            self.edges.push(number as u32);
            let mut child = first;
            while child != NONE {
                self.edges.push(self.count as u32 + child);
                child = next_sibling[child as usize];
            }
        }
    }

    fn waits_for(&self, node: u32) -> &[u32] {
        &self.edges[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// Reports cycles of parents, and hierarchies that are too deep.
    fn parent_rings(&self, draft: &Draft, problems: &mut Report) {
        if !self.has_parents {
            return;
        }
        let mut seen_in = vec![0u32; self.count];
        let mut depth = vec![0u32; self.count];
        for start in 0..self.count as u32 {
            let walk = start + 1;
            let (mut path, mut at) = (Vec::new(), start);
            while at != NONE && seen_in[at as usize] == 0 {
                seen_in[at as usize] = walk;
                path.push(at);
                at = self.parent[at as usize];
            }
            if at != NONE && seen_in[at as usize] == walk {
                let ring = path.iter().skip_while(|&&n| n != at).chain([&at]);
                let path = ring.map(|&n| draft.tasks[n as usize].spec.id.to_string()).collect();
                problems
                    .add(Problem::task(&draft.tasks[at as usize].spec.id, ProblemKind::ParentCycle { path }));
                continue;
            }
            let lowest = if at == NONE { 0 } else { depth[at as usize] + 1 };
            for (&number, height) in path.iter().rev().zip(lowest..) {
                depth[number as usize] = height;
                if height as usize == limits::DEPTH_MAX + 1 {
                    let task = &draft.tasks[number as usize].spec;
                    problems.over("levels of parents", height as usize, limits::DEPTH_MAX, Some(task));
                }
            }
        }
    }

    /// Reports at least one cycle per group of tasks that wait for each other.
    fn cycles(&self, draft: &Draft, problems: &mut Report) {
        let nodes = self.starts.len() - 1;
        let mut waiting: Vec<u32> = (0..nodes as u32).map(|n| self.waits_for(n).len() as u32).collect();
        // The reverse edges, also as arrays.
        let mut begins = vec![0u32; nodes + 1];
        for &to in &self.edges {
            begins[to as usize + 1] += 1;
        }
        for node in 0..nodes {
            begins[node + 1] += begins[node];
        }
        let mut fill = begins.clone();
        let mut after = vec![0u32; self.edges.len()];
        for node in 0..nodes as u32 {
            for &to in self.waits_for(node) {
                after[fill[to as usize] as usize] = node;
                fill[to as usize] += 1;
            }
        }
        drop(fill);
        let mut free: Vec<u32> = (0..nodes as u32).filter(|&n| waiting[n as usize] == 0).collect();
        let mut ordered = free.len();
        while let Some(node) = free.pop() {
            for &next in &after[begins[node as usize] as usize..begins[node as usize + 1] as usize] {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    free.push(next);
                    ordered += 1;
                }
            }
        }
        if ordered < nodes {
            self.name_cycles(draft, &waiting, problems);
        }
    }

    fn name_cycles(&self, draft: &Draft, waiting: &[u32], problems: &mut Report) {
        let stuck = |node: u32| waiting[node as usize] > 0;
        let mut seen_in = vec![0u32; waiting.len()];
        for start in 0..waiting.len() as u32 {
            if !stuck(start) || seen_in[start as usize] != 0 {
                continue;
            }
            let walk = start + 1;
            let (mut path, mut at) = (Vec::new(), start);
            while seen_in[at as usize] == 0 {
                seen_in[at as usize] = walk;
                path.push(at);
                // A stuck node waits for at least one other stuck node.
                match self.waits_for(at).iter().find(|&&n| stuck(n)) {
                    Some(&next) => at = next,
                    None => break,
                }
            }
            if seen_in[at as usize] != walk {
                continue;
            }
            let count = self.count as u32;
            let ring = path.into_iter().skip_while(|&n| n != at);
            let tasks = ring_of_tasks(
                ring.map(|n| if n < count { Moment::Begin(n) } else { Moment::End(n - count) }),
            );
            let names: Vec<String> =
                tasks.iter().map(|&n| draft.tasks[n as usize].spec.id.to_string()).collect();
            // A cycle of parents only has already been reported as such.
            let has_all = |path: &[String]| names.iter().all(|name| path.contains(name));
            let reported = problems
                .list
                .iter()
                .any(|problem| matches!(&problem.wrong, ProblemKind::ParentCycle { path } if has_all(path)));
            if !reported {
                problems.add(Problem::task(names[0].clone(), ProblemKind::Cycle { path: names }));
            }
        }
    }
}
