//! The facts about a task for an agent's prompt, as text. Pure: the plan in, texts out.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use waypost_core::{Dependency, Plan, Task};
use waypost_text::fence;

/// Ancestors that a prompt names; those above are left out.
const PARENTS_MAX: usize = 32;

#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By the name of their placeholder in a prompt.
    places: BTreeMap<&'static str, String>,
    /// The branch in the outputs of the preceding tasks, if they name exactly one.
    pub(super) branch_before: Option<String>,
}

impl Facts {
    /// Collects the facts of a task. `told` is the object that other workers read.
    pub fn of(plan: &Plan, task: &Task, told: &Value) -> Self {
        let spec = &task.spec;
        let places = BTreeMap::from([
            ("plan", plan.id().to_string()),
            ("title", plan.spec().title.clone()),
            ("goal", plan.spec().goal.clone()),
            ("task", spec.id.to_string()),
            ("attempt", task.state.attempt.to_string()),
            ("description", spec.description.clone()),
            ("notes", spec.notes.clone()),
            ("tools", spec.tools.as_ref().map(|tools| tools.join(", ")).unwrap_or_default()),
            (
                "complexity",
                spec.complexity.map(|complexity| complexity.as_str().to_owned()).unwrap_or_default(),
            ),
            ("parents", parents(plan, task)),
            ("inputs", display(told.get("inputs"))),
            ("outputs", outputs(plan, task)),
            ("answers", display(told.get("answers"))),
        ]);
        Self { places, branch_before: branch_before(told) }
    }

    pub(super) fn set(&mut self, place: &'static str, value: String) {
        self.places.insert(place, value);
    }

    pub(super) fn get(&self, place: &str) -> &str {
        self.places.get(place).map_or("", String::as_str)
    }
}

fn branch_before(told: &Value) -> Option<String> {
    let outputs = told.get("outputs")?.as_object()?;
    let mut branches = outputs.values().filter_map(|output| output.get("branch")?.as_str());
    let branch = branches.next()?.to_owned();
    branches.all(|other| other == branch).then_some(branch)
}

/// Formats a value for a reader; empty for a value without content.
fn display(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(fields)) if fields.is_empty() => String::new(),
        Some(Value::Array(items)) if items.is_empty() => String::new(),
        Some(value) => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// Lists the ancestors of the task, from the outermost to the nearest.
fn parents(plan: &Plan, task: &Task) -> String {
    let mut lines = Vec::new();
    let mut next = task.spec.parent.as_ref();
    while let Some(parent) = next.and_then(|id| plan.task(id.as_str())) {
        lines.push(format!("- {}", parent.spec.description));
        next = parent.spec.parent.as_ref().filter(|_| lines.len() < PARENTS_MAX);
    }
    lines.reverse();
    lines.join("\n")
}

/// Lists the outputs of the preceding tasks, or their results in words. Other programs wrote them, so they are quoted.
fn outputs(plan: &Plan, task: &Task) -> String {
    let mut text = String::new();
    let mut put = |name: &str, said: String| {
        if !said.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _never_fails = write!(text, "{gap}{name}:\n{}\n", fence(&said));
        }
    };
    for (name, output) in plan.outputs_for(task.spec.id.as_str()) {
        put(&name, display(Some(&output.value())));
    }
    for dependency in &task.spec.depends_on {
        let Dependency::Task(on) = dependency else { continue };
        let Some(on) = plan.task(on.as_str()).filter(|on| on.state.output.is_none()) else { continue };
        put(on.spec.id.as_str(), on.state.result.clone().unwrap_or_default());
    }
    text.trim_end().to_owned()
}
