//! Refines the remaining goals after a part was decomposed, before a goal that depended on its siblings is considered.
//! Changes only untouched goals. Applying the same answer twice has no further effect.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use waypost_core::{Command, Dependency, Plan, PlannerNotes, Position, Task, TaskChanges, TaskId, TaskSpec};

use super::context::{SIBLINGS_TOLD_MAX, digest_text, line, siblings, waits_for};
use super::progress::is_untouched;
use super::subtasks::CHILD_BYTES_MAX;
use super::{ADDED, AnswerKind, AnswerResult, Decompose, REASONING_BYTES_MAX};
use crate::Answer;
use crate::lenient_fields::{Reading, has_one_of, json_of, kind_of};
use crate::prompts::Values;
use crate::similarity::{cut, one_line, restates, same};

/// Maximum number of goals that one answer may add.
pub(super) const ADDED_MAX: usize = 3;
const FIELDS: &[&str] = &["revise", "drop", "add"];

/// The changes that an answer requests.
#[derive(Default)]
struct Changes {
    revised: Vec<(TaskId, String)>,
    dropped: BTreeSet<TaskId>,
    added: Vec<(String, Vec<TaskId>)>,
    reasoning: Option<String>,
}

/// A goal with the siblings that depend on it, and the other siblings.
struct RemainingGoals<'a> {
    rest: Vec<&'a Task>,
    settled: Vec<&'a Task>,
}

impl<'a> RemainingGoals<'a> {
    fn of(plan: &'a Plan, task: &'a Task) -> Self {
        let mut rest = vec![task];
        let mut settled = siblings(plan, task);
        loop {
            let waits =
                |other: &&Task| is_untouched(plan, other) && rest.iter().any(|one| waits_for(other, one));
            let Some(place) = settled.iter().position(waits) else { break };
            rest.push(settled.remove(place));
        }
        Self { rest, settled }
    }

    fn find(&self, name: &str) -> Option<&'a Task> {
        self.rest.iter().chain(&self.settled).copied().find(|task| task.spec.id.as_str() == name)
    }

    fn is_rest(&self, id: &TaskId) -> bool {
        self.rest.iter().any(|task| task.spec.id == *id)
    }
}

impl Decompose {
    pub(super) fn refinement_values(&self, plan: &Plan, task: &Task) -> Values {
        let parts = RemainingGoals::of(plan, task);
        let parent = task.spec.parent.as_ref().and_then(|parent| plan.task(parent.as_str()));
        let goal = parent.map_or(plan.spec().goal.as_str(), |parent| &parent.spec.description);
        let mut settled: Vec<String> = Vec::new();
        for one in parts.settled.iter().take(SIBLINGS_TOLD_MAX) {
            settled.push(format!("- {}", line(one)));
            match digest_text(one) {
                Some(digest) => settled.push(digest),
                None if waits_for(task, one) => {
                    let below = plan.children(one.spec.id.as_str()).into_iter().take(SIBLINGS_TOLD_MAX);
                    settled.extend(below.map(|child| format!("  - {}", line(child))));
                }
                None => {}
            }
        }
        let rest: Vec<String> =
            parts.rest.iter().take(SIBLINGS_TOLD_MAX).map(|one| format!("- {}", line(one))).collect();
        let goal = if goal.trim().is_empty() { &plan.spec().title } else { goal };
        let place = parent.map_or_else(Values::default, |parent| self.place_values(plan, parent));
        place
            .data("goal", goal)
            .data("settled", &settled.join("\n"))
            .data("rest", &rest.join("\n"))
            .plain("added_max", self.added_max(plan, &parts))
    }

    /// How many siblings may be added.
    fn added_max(&self, plan: &Plan, parts: &RemainingGoals<'_>) -> usize {
        let beside = self.bounds.children_max.saturating_sub(parts.rest.len() + parts.settled.len());
        ADDED_MAX.min(beside).min(self.bounds.goals_max.saturating_sub(self.goals(plan)))
    }

    pub(super) fn interpret_refinement(
        &mut self,
        plan: &Plan,
        task: &Task,
        answer: &Answer,
    ) -> Result<AnswerResult, Vec<String>> {
        let (value, mut reading) = json_of(answer, &|value: &Value| has_one_of(value, FIELDS))?;
        let parts = RemainingGoals::of(plan, task);
        let changes = match value.as_object() {
            Some(map) => self.read_changes(plan, task, map, &parts, &mut reading),
            None => {
                reading.problem(format!("the answer must be an object, not {}", kind_of(&value)));
                Changes::default()
            }
        };
        if !reading.problems.is_empty() {
            return Err(reading.problems);
        }
        self.refined.insert(task.spec.id.clone());
        let commands = commands(plan, task, &parts, changes);
        Ok(AnswerResult { commands, kind: AnswerKind::Taken, repairs: reading.repairs.0 })
    }

    fn read_changes(
        &self,
        plan: &Plan,
        task: &Task,
        map: &Map<String, Value>,
        parts: &RemainingGoals<'_>,
        reading: &mut Reading,
    ) -> Changes {
        let mut changes = Changes { reasoning: reading.reasoning(map), ..Changes::default() };
        let drop = reading.field(map, &["drop"]);
        for name in reading.texts(drop, "`drop`") {
            match parts.find(&name) {
                Some(one) if parts.is_rest(&one.spec.id) => {
                    changes.dropped.insert(one.spec.id.clone());
                }
                Some(one) => {
                    reading.problem(format!("goal {} is settled and cannot be dropped", one.spec.id))
                }
                // A missing goal may have been dropped by this same answer.
                None => {}
            }
        }
        for item in objects(map, "revise", reading) {
            let id =
                reading.field(item, &["id", "goal_id"]).and_then(|id| reading.text(id)).unwrap_or_default();
            let text =
                reading.field(item, &["description"]).and_then(|text| reading.text(text)).unwrap_or_default();
            match parts.find(&id) {
                None => reading.problem(format!(
                    "`revise` names the id {}, which none of the rest has",
                    one_line(&id, 80)
                )),
                Some(one) if !parts.is_rest(&one.spec.id) => {
                    reading.problem(format!("goal {id} is settled and cannot be revised"));
                }
                Some(one) if changes.dropped.contains(&one.spec.id) => {
                    reading.problem(format!("goal {id} cannot be both revised and dropped"));
                }
                Some(_) if text.is_empty() => {
                    reading.problem(format!("goal {id} is to be revised, but to an empty text"))
                }
                Some(one) if one.spec.description == text => {}
                Some(one) => {
                    let others =
                        parts.rest.iter().chain(&parts.settled).filter(|other| other.spec.id != one.spec.id);
                    judge(plan, task, &text, &format!("goal {id}"), others, reading);
                    changes.revised.push((one.spec.id.clone(), cut(&text, CHILD_BYTES_MAX)));
                }
            }
        }
        for item in objects(map, "add", reading) {
            let text =
                reading.field(item, &["description"]).and_then(|text| reading.text(text)).unwrap_or_default();
            if text.is_empty() {
                reading.problem("a goal of `add` has no description; say what is to be done");
                continue;
            }
            // An existing goal may have been added by this same answer.
            if parts.rest.iter().chain(&parts.settled).any(|one| same(&one.spec.description, &text)) {
                continue;
            }
            let whose = format!("the added goal ({})", one_line(&text, 80));
            judge(plan, task, &text, &whose, [].iter(), reading);
            let mut on = Vec::new();
            let field = reading.field(item, &["depends_on"]);
            for name in reading.texts(field, &format!("{whose}: `depends_on`")) {
                match parts.find(&name).map(|one| &one.spec.id) {
                    Some(id) if !changes.dropped.contains(id) => on.push(id.clone()),
                    Some(id) => reading.problem(format!("{whose} depends on {id}, which is dropped")),
                    None => reading
                        .problem(format!("{whose} depends on {}, which is not there", one_line(&name, 80))),
                }
            }
            changes.added.push((cut(&text, CHILD_BYTES_MAX), on));
        }
        let (found, max) = (changes.added.len(), self.added_max(plan, parts));
        if found > max {
            reading.problem(format!("{found} goals are added, over the limit of {max}"));
        }
        changes
    }
}

/// The objects of a list; other values are reported as problems.
fn objects<'a>(
    map: &'a Map<String, Value>,
    name: &str,
    reading: &mut Reading,
) -> Vec<&'a Map<String, Value>> {
    let list = match map.get(name) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(list)) => list.as_slice(),
        Some(other) => {
            reading.problem(format!("`{name}` must be a list, not {}", kind_of(other)));
            &[]
        }
    };
    let mut objects = Vec::new();
    for item in list {
        match item.as_object() {
            Some(object) => objects.push(object),
            None => reading.problem(format!("`{name}` must hold objects, not {}", kind_of(item))),
        }
    }
    objects
}

/// Reports a description that restates the parent goal or duplicates another goal.
fn judge<'a>(
    plan: &Plan,
    task: &Task,
    text: &str,
    whose: &str,
    mut others: impl Iterator<Item = &'a &'a Task>,
    reading: &mut Reading,
) {
    let parent = task.spec.parent.as_ref().and_then(|parent| plan.task(parent.as_str()));
    if parent.is_some_and(|parent| restates(text, &parent.spec.description))
        || restates(text, &plan.spec().goal)
    {
        reading.problem(format!("{whose} restates the goal that all of it is for"));
    } else if let Some(other) = others.find(|other| same(text, &other.spec.description)) {
        reading.problem(format!("{whose} says the same as goal {}", other.spec.id));
    }
}

fn commands(plan: &Plan, task: &Task, parts: &RemainingGoals<'_>, changes: Changes) -> Vec<Command> {
    let mut commands = Vec::new();
    if !changes.added.is_empty() {
        let ids = new_ids(plan, task, changes.added.len());
        let why = changes.reasoning.unwrap_or_else(|| "the model gave no reason.".to_owned());
        let tasks = changes.added.into_iter().zip(ids).map(|((description, on), id)| {
            let mut spec = TaskSpec::new(id, description);
            spec.parent.clone_from(&task.spec.parent);
            spec.depends_on = on.into_iter().map(Dependency::Task).collect();
            // Marks the goal as added, so that it does not trigger a refinement itself.
            let reasoning = Some(cut(&format!("{ADDED}{why}"), REASONING_BYTES_MAX));
            spec.thinking = Some(Box::new(PlannerNotes { reasoning, ..PlannerNotes::default() }));
            spec
        });
        commands.push(Command::AddTasks { tasks: tasks.collect(), place: Position::Last });
    }
    for (id, description) in changes.revised {
        let changes = TaskChanges { description: Some(description), ..TaskChanges::default() };
        commands.push(Command::ReviseTask { task: id, changes: Box::new(changes) });
    }
    let dropped = &changes.dropped;
    let mut rewired = BTreeSet::new();
    for id in dropped {
        for after in plan.dependants(id.as_str()) {
            if dropped.contains(&after.spec.id) || !rewired.insert(&after.spec.id) {
                continue;
            }
            // Dependants of a dropped goal inherit its dependencies.
            let depends_on = Some(instead(plan, &after.spec.depends_on, dropped));
            let changes = TaskChanges { depends_on, ..TaskChanges::default() };
            commands.push(Command::ReviseTask { task: after.spec.id.clone(), changes: Box::new(changes) });
        }
    }
    let in_order = parts.rest.iter().map(|one| &one.spec.id).filter(|id| dropped.contains(*id));
    commands.extend(in_order.map(|id| Command::RemoveTask { task: id.clone(), detach: true }));
    commands
}

/// Replaces dropped dependencies by the dependencies of the dropped goals.
fn instead(plan: &Plan, on: &[Dependency], dropped: &BTreeSet<TaskId>) -> Vec<Dependency> {
    let mut left: Vec<Dependency> = on.iter().rev().cloned().collect();
    let mut seen: BTreeSet<TaskId> = BTreeSet::new();
    let mut instead = Vec::new();
    while let Some(dependency) = left.pop() {
        match dependency.here().filter(|id| dropped.contains(*id)) {
            Some(id) if seen.insert(id.clone()) => {
                let below = plan.task(id.as_str()).map_or(&[][..], |task| &task.spec.depends_on);
                left.extend(below.iter().rev().cloned());
            }
            Some(_) => {}
            None if instead.contains(&dependency) => {}
            None => instead.push(dependency),
        }
    }
    instead
}

/// Ids for goals added while refining a goal. Derived from its id: no other goal is ever refined in its place.
fn new_ids(plan: &Plan, task: &Task, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    let mut number = 0_usize;
    while ids.len() < count {
        number += 1;
        let id = TaskId::new(format!("{}-{number}", task.spec.id));
        match id.or_else(|_| TaskId::new(format!("a{number}"))) {
            Ok(id) if plan.task(id.as_str()).is_none() && !ids.contains(&id) => ids.push(id),
            Ok(_) | Err(_) => {}
        }
    }
    ids
}
