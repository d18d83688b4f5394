//! The dependencies between new subtasks. The answer adds all subtasks to the plan at once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use waypost_core::{Command, Dependency, Plan, Problem, ProblemKind, Task, TaskId, TaskSpec, nearest};

use super::context::goal_text;
use super::{AnswerKind, AnswerResult, Decompose, PendingSubtasks, REASONING_BYTES_MAX};
use crate::Answer;
use crate::lenient_fields::{Reading, has_one_of, json_of, kind_of};
use crate::prompts::Values;
use crate::repair::Repair;
use crate::similarity::{cut, one_line};

const DEPENDENCIES: &[&str] = &["dependencies", "depends_on"];
const GOAL: &[&str] = &["goal_id", "id", "goal", "task"];

/// The dependencies of each subtask, by id.
type Edges = BTreeMap<TaskId, BTreeSet<TaskId>>;

impl Decompose {
    pub(super) fn siblings_values(&self, plan: &Plan, task: &Task) -> Values {
        let held = self.held.get(&task.spec.id);
        let children = held.map_or(&[][..], |held| &held.children);
        let lines: Vec<String> = children
            .iter()
            .map(|child| format!("- {}: {}", child.id, one_line(&child.description, 500)))
            .collect();
        // The id is inserted outside of marked data here, so it must not be able to carry instructions.
        let plain = |id: &&TaskId| {
            id.as_str().chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
                && id.as_str().len() <= 64
        };
        let id = |place: usize| {
            children
                .get(place)
                .map(|child| &child.id)
                .filter(plain)
                .map_or("…".to_owned(), ToString::to_string)
        };
        self.place_values(plan, task)
            .data("goal", &goal_text(task))
            .data("children", &lines.join("\n"))
            .plain("example_first", id(0))
            .plain("example_second", id(1))
    }

    pub(super) fn interpret_dependencies(
        &mut self,
        _plan: &Plan,
        task: &Task,
        answer: &Answer,
    ) -> Result<AnswerResult, Vec<String>> {
        let Some(held) = self.held.get(&task.spec.id) else {
            return Ok(AnswerResult { commands: Vec::new(), kind: AnswerKind::Stale, repairs: Vec::new() });
        };
        let (value, mut reading) = json_of(answer, &|value: &Value| is_edges(value, &held.children))?;
        let edges = read(&value, &held.children, &mut reading);
        if let Some(path) = ring(&held.children, &edges) {
            let problem = Problem::plan(ProblemKind::Cycle { path });
            reading.problem(format!("{}; {}", problem.wrong, problem.hint()));
        }
        if !reading.problems.is_empty() {
            return Err(reading.problems);
        }
        let commands = self.broken_down(task, &edges).into_iter().collect();
        Ok(AnswerResult { commands, kind: AnswerKind::Taken, repairs: reading.repairs.0 })
    }

    /// Falls back to running the subtasks in order, which is always valid, and records that.
    pub(super) fn without_dependencies(&mut self, task: &Task, problems: Vec<String>) -> AnswerResult {
        let children = self.held.get(&task.spec.id).map_or(&[][..], |held| &held.children);
        let pairs =
            children.windows(2).map(|pair| (pair[1].id.clone(), BTreeSet::from([pair[0].id.clone()])));
        let edges: Edges = pairs.collect();
        if let Some(held) = self.held.get_mut(&task.spec.id) {
            held.reasoning.push_str(
                "\nThe model gave no sound dependencies: each of the parts waits for the one before it.",
            );
        }
        let commands = self.broken_down(task, &edges).into_iter().collect();
        AnswerResult { commands, kind: AnswerKind::Without { problems }, repairs: vec![Repair::InOrder] }
    }

    fn broken_down(&mut self, task: &Task, edges: &Edges) -> Option<Command> {
        let PendingSubtasks { children, reasoning } = self.held.remove(&task.spec.id)?;
        let with_edges = |mut child: TaskSpec| {
            let on = edges.get(&child.id).into_iter().flatten();
            child.depends_on = on.cloned().map(Dependency::Task).collect();
            child
        };
        Some(Command::DecomposeTask {
            task: task.spec.id.clone(),
            children: children.into_iter().map(with_edges).collect(),
            reasoning: Some(cut(&reasoning, REASONING_BYTES_MAX)),
            tokens: 0,
        })
    }
}

fn is_edges(value: &Value, children: &[TaskSpec]) -> bool {
    match value {
        Value::Object(map) => {
            has_one_of(value, DEPENDENCIES)
                || map.keys().any(|key| children.iter().any(|child| child.id.as_str() == key))
        }
        Value::Array(list) => !list.is_empty() && list.iter().all(|item| has_one_of(item, GOAL)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Reads the dependencies: a list of goals, or an object by goal id.
fn read(value: &Value, children: &[TaskSpec], reading: &mut Reading) -> Edges {
    let mut edges = Edges::new();
    let inner = match value {
        Value::Object(map) => match DEPENDENCIES.iter().any(|name| map.contains_key(*name)) {
            true => reading.field(map, DEPENDENCIES),
            false => Some(value),
        },
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Some(other)
        }
    };
    match inner {
        None => {}
        Some(Value::Array(list)) => {
            if value.is_array() {
                reading.repairs.note(Repair::BareList);
            }
            for (place, item) in list.iter().enumerate() {
                let number = place + 1;
                let Some(fields) = item.as_object() else {
                    reading.problem(format!(
                        "dependency {number} must be an object with `goal_id` and `depends_on`, not {}",
                        kind_of(item)
                    ));
                    continue;
                };
                let Some(goal) = reading.field(fields, GOAL).and_then(|goal| reading.text(goal)) else {
                    reading.problem(format!("dependency {number} has no `goal_id`"));
                    continue;
                };
                let on = reading.field(fields, &["depends_on", "dependencies"]);
                let on = reading.texts(on, &format!("dependency {number}: `depends_on`"));
                note(&goal, on, children, &mut edges, reading);
            }
        }
        Some(Value::Object(by_goal)) => {
            reading.repairs.note(Repair::OtherName);
            for (goal, on) in
                by_goal.iter().filter(|(goal, _)| !["reasoning", "reason"].contains(&goal.as_str()))
            {
                let on = reading.texts(Some(on), &format!("`{}`", one_line(goal, 80)));
                note(goal, on, children, &mut edges, reading);
            }
        }
        Some(other) => reading.problem(format!("`dependencies` must be a list, not {}", kind_of(other))),
    }
    edges
}

fn note(goal: &str, on: Vec<String>, children: &[TaskSpec], edges: &mut Edges, reading: &mut Reading) {
    let find = |name: &str, reading: &mut Reading| {
        let found = children.iter().find(|child| child.id.as_str() == name).map(|child| child.id.clone());
        if found.is_none() {
            let names = || children.iter().map(|child| child.id.as_str());
            let near =
                nearest(name, names()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            let all = names().collect::<Vec<_>>().join(", ");
            reading.problem(format!(
                "no goal of the list has the id {}{near} (the ids are {all})",
                one_line(name, 80)
            ));
        }
        found
    };
    let goal_id = find(goal, reading);
    for name in on {
        let on_id = find(&name, reading);
        match (&goal_id, on_id) {
            (Some(goal), Some(on)) if *goal == on => {
                reading
                    .problem(format!("goal {goal} depends on itself; take its own id out of its depends_on"));
            }
            (Some(goal), Some(on)) => {
                edges.entry(goal.clone()).or_default().insert(on);
            }
            (Some(_) | None, _) => {}
        }
    }
}

/// A cycle of dependencies, if there is one.
fn ring(children: &[TaskSpec], edges: &Edges) -> Option<Vec<String>> {
    let mut over: BTreeSet<&TaskId> = BTreeSet::new();
    for child in children {
        let mut path: Vec<(&TaskId, Vec<&TaskId>)> = Vec::new();
        let below = |id: &TaskId| edges.get(id).into_iter().flatten().collect::<Vec<_>>();
        if !over.contains(&child.id) {
            path.push((&child.id, below(&child.id)));
        }
        while let Some((id, left)) = path.last_mut() {
            match left.pop() {
                Some(next) if over.contains(next) => {}
                Some(next) => match path.iter().position(|(id, _)| *id == next) {
                    Some(place) => {
                        let mut names: Vec<String> =
                            path[place..].iter().map(|(id, _)| id.to_string()).collect();
                        names.push(next.to_string());
                        return Some(names);
                    }
                    None => path.push((next, below(next))),
                },
                None => {
                    over.insert(id);
                    path.pop();
                }
            }
        }
    }
    None
}
