//! The subtasks of a goal.

use serde_json::{Map, Value};
use waypost_core::{Plan, Refinement, Task, TaskId, TaskSpec};

use super::atomicity::capital;
use super::context::{ancestors, siblings};
use super::{AnswerKind, AnswerResult, Decompose, PendingSubtasks, Stopped, marked, reasoning_of};
use crate::Answer;
use crate::budget::Bound;
use crate::lenient_fields::{Reading, json_of, kind_of};
use crate::prompts::Values;
use crate::repair::Repair;
use crate::similarity::{cut, one_line, restates, same};

const CHILDREN: &[&str] = &["sub_goals", "subgoals", "children", "goals", "tasks", "subtasks", "sub_tasks"];
const DESCRIPTION: &[&str] = &["description", "title", "name", "goal"];
/// Maximum size of a subtask's description in bytes.
pub(super) const CHILD_BYTES_MAX: usize = 4_000;

impl Decompose {
    pub(super) fn children_values(&self, plan: &Plan, task: &Task) -> Values {
        self.place_values(plan, task)
            .data_under("why", "It was found to be too large, for this reason:", reasoning_of(task))
            .plain("children_min", self.bounds.children_min)
            .plain("children_max", self.bounds.children_max)
    }

    pub(super) fn interpret_subtasks(
        &mut self,
        plan: &Plan,
        task: &Task,
        answer: &Answer,
    ) -> Result<AnswerResult, Vec<String>> {
        let (value, mut reading) = json_of(answer, &is_children)?;
        let (specs, reasoning) = read(&value, &mut reading);
        if reading.problems.is_empty() {
            self.judge(plan, task, &specs, &mut reading);
        }
        // A list that was cut off covers only a part of the goal, so it is never used.
        if let Some(problem) = reading.broke_off(answer, specs.len(), "goals") {
            reading.problems.insert(0, problem);
        }
        if !reading.problems.is_empty() {
            return Err(reading.problems);
        }
        let goals_max = self.bounds.goals_max;
        if self.goals(plan) + specs.len() > goals_max {
            let stopped = Stopped::Bound { bound: Bound::Goals, max: goals_max };
            let said = reasoning_of(task);
            let note = format!("{}; {}.", capital(&stopped.to_string()), stopped.hint());
            let text = if said.ends_with(&note) { said.to_owned() } else { format!("{said}\n{note}") };
            let commands = marked(task, Refinement::Decomposing, text.trim()).into_iter().collect();
            self.stopped.insert(task.spec.id.clone(), stopped.clone());
            return Ok(AnswerResult {
                commands,
                kind: AnswerKind::Stopped(stopped),
                repairs: reading.repairs.0,
            });
        }
        let ids = child_ids(plan, &task.spec.id, specs.len());
        let children = specs.into_iter().zip(ids).map(|(spec, id)| TaskSpec { id, ..spec }).collect();
        let said = [Some(reasoning_of(task)), reasoning.as_deref()];
        let said: Vec<&str> =
            said.into_iter().flatten().map(str::trim).filter(|text| !text.is_empty()).collect();
        self.held.insert(task.spec.id.clone(), PendingSubtasks { children, reasoning: said.join("\n") });
        Ok(AnswerResult { commands: Vec::new(), kind: AnswerKind::Taken, repairs: reading.repairs.0 })
    }

    /// Reports problems of the subtasks.
    fn judge(&self, plan: &Plan, task: &Task, children: &[TaskSpec], reading: &mut Reading) {
        let (min, max, found) = (self.bounds.children_min, self.bounds.children_max, children.len());
        if found < min {
            let there = if found == 1 { "is only 1 goal".to_owned() } else { format!("are {found} goals") };
            reading.problem(format!(
                "there {there}, too few: give between {min} and {max} that together achieve the goal"
            ));
        }
        if found > max {
            reading.problem(format!("there are {found} goals, too many: give between {min} and {max}, combining what belongs together"));
        }
        let above = ancestors(plan, task);
        let beside = siblings(plan, task);
        for (place, child) in children.iter().enumerate() {
            let number = place + 1;
            let text = child.description.as_str();
            let shown = one_line(text, 80);
            if restates(text, &task.spec.description) {
                reading.problem(format!("goal {number} ({shown}) restates the goal that is to be broken down; give smaller parts of it"));
            } else if let Some(above) = above.iter().find(|above| restates(text, &above.spec.description)) {
                let id = &above.spec.id;
                reading.problem(format!(
                    "goal {number} ({shown}) restates the goal {id} above it; give smaller parts"
                ));
            } else if same(text, &plan.spec().goal) {
                reading.problem(format!(
                    "goal {number} ({shown}) restates the goal of the whole plan; give smaller parts"
                ));
            } else if let Some(twin) =
                children[..place].iter().position(|other| same(text, &other.description))
            {
                let twin = twin + 1;
                reading.problem(format!(
                    "goal {number} ({shown}) says the same as goal {twin}; leave one of them out"
                ));
            } else if let Some(other) = beside.iter().find(|other| same(text, &other.spec.description)) {
                let id = &other.spec.id;
                reading.problem(format!(
                    "goal {number} ({shown}) duplicates {id}, a sibling of this goal; leave it out"
                ));
            }
        }
    }
}

/// Unused ids for new subtasks: the parent's id with a number.
fn child_ids(plan: &Plan, parent: &TaskId, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::with_capacity(count);
    let mut number = 0_usize;
    while ids.len() < count {
        number += 1;
        // An id that would be too long is replaced by a short one.
        let id = TaskId::new(format!("{parent}.{number}")).or_else(|_| TaskId::new(format!("g{number}")));
        if let Ok(id) = id
            && plan.task(id.as_str()).is_none()
            && !ids.contains(&id)
        {
            ids.push(id);
        }
    }
    ids
}

fn is_children(value: &Value) -> bool {
    match value {
        Value::Object(map) => CHILDREN.iter().any(|name| map.contains_key(*name)),
        Value::Array(list) => is_list(list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_list(list: &[Value]) -> bool {
    let has_words = |item: &Value| {
        item.as_object().is_some_and(|map| DESCRIPTION.iter().any(|name| map.contains_key(*name)))
    };
    !list.is_empty() && list.iter().all(|item| item.is_string() || has_words(item))
}

/// Reads the subtasks, with placeholder ids, and the reasoning.
fn read(value: &Value, reading: &mut Reading) -> (Vec<TaskSpec>, Option<String>) {
    let (list, reasoning) = match value {
        Value::Array(list) => {
            reading.repairs.note(Repair::BareList);
            (list, None)
        }
        Value::Object(map) => {
            let reasoning = reading.reasoning(map);
            match reading.field(map, CHILDREN) {
                Some(Value::Array(list)) => (list, reasoning),
                Some(other) => {
                    reading.problem(format!("`sub_goals` must be a list, not {}", kind_of(other)));
                    return (Vec::new(), reasoning);
                }
                None => {
                    reading.problem(
                        "`sub_goals` is missing; it must be a list of goals, each with a description",
                    );
                    return (Vec::new(), reasoning);
                }
            }
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            reading.problem(format!("the answer must be an object, not {}", kind_of(other)));
            return (Vec::new(), None);
        }
    };
    let children =
        list.iter().enumerate().filter_map(|(place, item)| child(place + 1, item, reading)).collect();
    (children, reasoning)
}

fn child(number: usize, item: &Value, reading: &mut Reading) -> Option<TaskSpec> {
    let whose = format!("goal {number}");
    let empty = Map::new();
    let (description, fields) = match item {
        Value::String(text) => {
            reading.repairs.note(Repair::TextAsObject);
            (Some(text.trim().to_owned()), &empty)
        }
        Value::Object(map) => {
            let value = reading.field(map, DESCRIPTION);
            (value.and_then(|value| reading.text(value)), map)
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            reading.problem(format!("{whose} must be an object with a description, not {}", kind_of(other)));
            return None;
        }
    };
    let Some(description) = description.filter(|text| !text.is_empty()) else {
        reading.problem(format!("{whose} has no description; say what is to be done"));
        return None;
    };
    // A placeholder id.
    let id = TaskId::new(number.to_string()).ok()?;
    let mut spec = TaskSpec::new(id, cut(&description, CHILD_BYTES_MAX));
    spec.complexity = reading.complexity(fields, &whose);
    let notes = reading.field(fields, &["notes"]).and_then(|value| reading.text(value));
    spec.notes = cut(&notes.unwrap_or_default(), CHILD_BYTES_MAX);
    Some(spec)
}
