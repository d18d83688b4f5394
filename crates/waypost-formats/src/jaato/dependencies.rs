//! The dependencies of a jaato step and the outputs that it has received: `depends_on`, `blocked_by`, `received_outputs`.
//!
//! A reference names an agent and a step, sometimes a plan. Does not know the rest of a step.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use waypost_core::{
    Dependency, Draft, ExternalTaskRef, Json, Plan, PlanId, Problem, ProblemLocation, Status, Task, TaskId,
    TaskSpec, UpstreamResult,
};

use crate::Dialect;
use crate::field_reader::{Fields, PreservedFields};
use crate::field_writer::put;

/// The plan of the steps: a reference into it is a dependency on one of its own tasks.
pub(crate) struct Own {
    plan_id: Option<String>,
    steps: HashSet<String>,
}

impl Own {
    pub(crate) fn of(plan_id: Option<&str>, steps: &[Value]) -> Self {
        let name = |step: &Value| {
            let id = step.get("step_id").or_else(|| step.get("id"))?;
            id.as_str().map(str::to_owned)
        };
        Self { plan_id: plan_id.map(str::to_owned), steps: steps.iter().filter_map(name).collect() }
    }
}

/// One reference: the dependency, and its fields that Waypost has no equivalent for.
struct Reference {
    on: Dependency,
    more: Map<String, Value>,
}

/// A step's references and the outputs received for them.
pub(crate) struct Links {
    references: Vec<Reference>,
    waiting: HashSet<Dependency>,
    outputs: Map<String, Value>,
    /// Keys of outputs whose values the text does not include.
    told: Vec<String>,
    listed: bool,
}

impl Links {
    /// Takes the three fields. `blocked` is whether the step's status is `blocked`.
    pub(crate) fn take(fields: &mut Fields, own: &Own, blocked: bool) -> Self {
        let listed = fields.has("depends_on");
        let mut references = references(fields, "depends_on", own);
        let has_blocked_by = fields.has("blocked_by");
        let blocked_by = self::references(fields, "blocked_by", own);
        let mut waiting: HashSet<Dependency> =
            blocked_by.iter().map(|reference| reference.on.clone()).collect();
        let listed_already: HashSet<Dependency> =
            references.iter().map(|reference| reference.on.clone()).collect();
        let (listed_twice, only_there): (Vec<Reference>, Vec<Reference>) =
            blocked_by.into_iter().partition(|reference| listed_already.contains(&reference.on));
        for (name, value) in listed_twice.iter().flat_map(|reference| &reference.more) {
            if !references.iter().any(|reference| reference.more.get(name) == Some(value)) {
                fields.inexact(
                    &format!("blocked_by.{name}"),
                    value,
                    "nothing: what blocks a step is derived",
                );
            }
        }
        references.extend(only_there);
        if blocked && !has_blocked_by {
            waiting = references.iter().map(|reference| reference.on.clone()).collect();
        }
        let mut told = Vec::new();
        let outputs = match fields.take("received_outputs") {
            Some(Value::Object(outputs)) => outputs,
            // jaato's replies list only the keys.
            Some(Value::Array(keys)) => {
                told = keys.into_iter().filter_map(|key| key.as_str().map(str::to_owned)).collect();
                Map::new()
            }
            Some(other) => fields.unlike("received_outputs", "an object", &other).unwrap_or_default(),
            None => Map::new(),
        };
        Self { references, waiting, outputs, told, listed }
    }

    /// Applies them to the task; the rest goes into `kept`.
    pub(crate) fn put(mut self, task: &mut Task, kept: &mut PreservedFields) {
        let mut more = Map::new();
        let mut used = Vec::new();
        for Reference { on, more: fields } in self.references {
            if let Dependency::External(there) = &on
                && !self.waiting.contains(&on)
            {
                // It is resolved even without an output: the step was completed without one.
                let named = self.outputs.get(&there.key()).or_else(|| self.outputs.get(&output_key(there)));
                let output = named.map(Json::of);
                let received = UpstreamResult { status: Status::Done, output, ..UpstreamResult::default() };
                task.state.received.insert(there.key(), received);
                used.extend([there.key(), output_key(there)]);
            }
            if !fields.is_empty() {
                more.insert(on.to_string(), Value::Object(fields));
            }
            task.spec.depends_on.push(on);
        }
        for key in &used {
            self.outputs.shift_remove(key);
        }
        // The same output is listed again under the name that its step provides.
        let mut unnamed: HashMap<String, Vec<&mut UpstreamResult>> = HashMap::new();
        for given in task.state.received.values_mut() {
            if let Some(output) = &given.output {
                unnamed.entry(output.as_str().to_owned()).or_default().push(given);
            }
        }
        self.outputs.retain(|name, output| match unnamed.get_mut(&output.to_string()).and_then(Vec::pop) {
            Some(given) => {
                given.provides = Some(name.clone());
                false
            }
            None => true,
        });
        if !self.outputs.is_empty() {
            kept.keep_unknown(Map::from_iter([("received_outputs".to_owned(), Value::Object(self.outputs))]));
        }
        if !more.is_empty() {
            kept.set("references", more);
        }
        if !self.told.is_empty() {
            kept.set("received_keys", self.told);
        }
        if !self.listed && !task.spec.depends_on.is_empty() {
            kept.set("depends_on", "absent");
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
fn references(fields: &mut Fields, field: &str, own: &Own) -> Vec<Reference> {
    let list = fields.list(field).unwrap_or_default();
    let mut references = Vec::with_capacity(list.len());
    for (at, entry) in list.into_iter().enumerate() {
        let name = format!("{field}[{at}]");
        let read = match entry {
            Value::Object(map) => reference(map, &name, fields, own),
            Value::String(step) => {
                let id = fields.task_id(&name, step);
                id.map(|id| Reference { on: Dependency::Task(id), more: Map::new() })
            }
            other => fields.unlike(&name, "an object with `agent_id` and `step_id`", &other),
        };
        references.extend(read);
    }
    references
}

fn reference(map: Map<String, Value>, name: &str, fields: &mut Fields, own: &Own) -> Option<Reference> {
    let mut inner = Fields::inside(map, fields.place().clone(), name);
    let agent = inner.text_needed("agent_id");
    let step = inner.text_needed("step_id");
    let plan = inner.text("plan_id");
    let step = step.and_then(|step| inner.task_id("step_id", step));
    let mut more = fields.finish_inner(inner);
    let (agent, step) = (agent?, step?);
    if plan.is_some() && plan == own.plan_id && own.steps.contains(step.as_str()) {
        more.insert("agent_id".to_owned(), agent.into());
        return Some(Reference { on: Dependency::Task(step), more });
    }
    let plan = plan.and_then(|plan| match PlanId::new(plan.as_str()) {
        Ok(id) => Some(id),
        Err(_) => {
            more.insert("plan_id".to_owned(), plan.into());
            None
        }
    });
    // `*` is any agent: then the plan identifies the step.
    let agent = Some(agent).filter(|agent| agent != "*" || plan.is_none());
    let there = ExternalTaskRef { agent, plan, task: step };
    Some(Reference { on: Dependency::External(Box::new(there)), more })
}

/// Adds these references to the dependencies of a step of `plan` and returns the added ones. If a reference is invalid, returns all
/// problems and leaves the step unchanged.
pub(crate) fn add_references(
    plan: &Plan,
    step: &mut TaskSpec,
    list: Vec<Value>,
) -> Result<Vec<Dependency>, Vec<Problem>> {
    let is_own = |name: &&str| plan.task(name).is_some();
    let named = list.iter().filter_map(|reference| reference.get("step_id")?.as_str());
    let own = Own {
        plan_id: Some(plan.id().to_string()),
        steps: named.filter(is_own).map(str::to_owned).collect(),
    };
    let fields = Map::from_iter([("depends_on".to_owned(), Value::Array(list))]);
    let mut fields = Fields::new(fields, ProblemLocation::Task(step.id.to_string()));
    let read = references(&mut fields, "depends_on", &own);
    let mut problems = Vec::new();
    fields.finish(&mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut kept = PreservedFields::of(&step.foreign, Dialect::Jaato);
    let mut more = kept.get("references").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut added = Vec::new();
    for Reference { on, more: fields } in read {
        if !fields.is_empty() {
            more.insert(on.to_string(), Value::Object(fields));
        }
        if !step.depends_on.contains(&on) {
            step.depends_on.push(on.clone());
            added.push(on);
        }
    }
    if !more.is_empty() {
        kept.set("references", more);
        kept.keep_in(&mut step.foreign, Dialect::Jaato);
    }
    Ok(added)
}

/// What a step's links need to know of its plan.
pub(crate) struct Around<'a> {
    plan_id: &'a str,
    owner: &'a str,
    /// Whether a step of the same plan satisfies the dependencies on it.
    satisfies: Box<dyn Fn(&TaskId) -> bool + 'a>,
}

/// Returns the owner, or the default agent for a plan without one.
pub(crate) fn owner_of(owner: &str) -> &str {
    if owner.is_empty() { "main" } else { owner }
}

impl<'a> Around<'a> {
    pub(crate) fn of(draft: &'a Draft, plan_id: &'a str) -> Self {
        let satisfied: HashSet<&TaskId> =
            draft.tasks.iter().filter(|task| task.state.satisfies()).map(|task| &task.spec.id).collect();
        let satisfies = Box::new(move |id: &TaskId| satisfied.contains(id));
        Self { plan_id, owner: owner_of(&draft.spec.owner), satisfies }
    }

    pub(crate) fn of_plan(plan: &'a Plan) -> Self {
        let satisfies = |id: &TaskId| plan.task(id.as_str()).is_some_and(|task| task.state.satisfies());
        let (plan_id, owner) = (plan.id().as_str(), owner_of(&plan.spec().owner));
        Self { plan_id, owner, satisfies: Box::new(satisfies) }
    }

    fn is_resolved(&self, task: &Task, on: &Dependency) -> bool {
        match on {
            Dependency::External(there) => {
                task.state.received.get(&there.key()).is_some_and(|given| given.status == Status::Done)
            }
            Dependency::Task(id) => (self.satisfies)(id),
        }
    }
}

/// Returns jaato's key for a received output: the agent and the step, or the plan and the step if there is no agent.
fn output_key(there: &ExternalTaskRef) -> String {
    ExternalTaskRef { plan: there.plan.clone().filter(|_| there.agent.is_none()), ..there.clone() }.key()
}

/// Returns the fields of a step for its dependencies, its own output and the received outputs.
pub(crate) fn write_links(around: &Around<'_>, task: &Task, kept: &PreservedFields) -> Map<String, Value> {
    let Task { spec, state } = task;
    let mut depends_on = Vec::new();
    let mut blocked_by = Vec::new();
    for on in &spec.depends_on {
        let written = write_reference(around, on, kept);
        if !around.is_resolved(task, on) {
            blocked_by.push(written.clone());
        }
        depends_on.push(written);
    }
    let mut map = Map::new();
    if !depends_on.is_empty() && kept.text("depends_on") != Some("absent") {
        map.insert("depends_on".to_owned(), depends_on.into());
    }
    put(&mut map, "provides", spec.provides.as_deref());
    put(&mut map, "output", state.output.as_ref().map(Json::value));
    put(&mut map, "blocked_by", Some(blocked_by).filter(|blocked_by| !blocked_by.is_empty()));
    let mut outputs = Map::new();
    let there = || spec.depends_on.iter().filter_map(Dependency::external);
    for (key, given) in &state.received {
        if let Some(output) = &given.output {
            let short = there().find(|there| there.key() == *key).map(output_key);
            // Of two steps with the same name in two plans of an agent, the second key keeps its plan.
            let name = short.filter(|short| !outputs.contains_key(short)).unwrap_or_else(|| key.clone());
            outputs.insert(name, output.value());
            if let Some(provides) = &given.provides {
                outputs.insert(provides.clone(), output.value());
            }
        }
    }
    for (key, output) in kept.unknown("received_outputs").and_then(Value::as_object).into_iter().flatten() {
        outputs.entry(key.clone()).or_insert_with(|| output.clone());
    }
    if !outputs.is_empty() {
        map.insert("received_outputs".to_owned(), Value::Object(outputs));
    } else if let Some(keys) = kept.get("received_keys") {
        map.insert("received_outputs".to_owned(), keys.clone());
    }
    map
}

pub(crate) fn write_reference(around: &Around<'_>, on: &Dependency, kept: &PreservedFields) -> Value {
    let mut map = Map::new();
    match on {
        Dependency::External(there) => {
            map.insert("agent_id".to_owned(), there.agent.as_deref().unwrap_or("*").into());
            map.insert("step_id".to_owned(), there.task.as_str().into());
            put(&mut map, "plan_id", there.plan.as_ref().map(PlanId::as_str));
        }
        Dependency::Task(id) => {
            map.insert("agent_id".to_owned(), around.owner.into());
            map.insert("step_id".to_owned(), id.as_str().into());
            map.insert("plan_id".to_owned(), around.plan_id.into());
        }
    }
    // A reference that its author wrote without a plan may have got one since.
    let short = on.external().map(|there| ExternalTaskRef { plan: None, ..there.clone() }.key());
    let all = kept.get("references");
    let more =
        all.and_then(|all| all.get(on.to_string()).or_else(|| all.get(short?))).and_then(Value::as_object);
    for (name, value) in more.into_iter().flatten() {
        map.insert(name.clone(), value.clone());
    }
    Value::Object(map)
}
