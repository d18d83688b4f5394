//! Writes a plan as GraphML, for graph libraries: every field is a typed attribute, every dependency a directed edge from the
//! dependency to the task that waits for it.
//!
//! Write only. Values that are not plain texts, numbers or flags are JSON texts.

use serde::Serialize;
use serde_json::{Map, Value};
use waypost_core::{Draft, Task};

use crate::graph::Graph;
use crate::label::xml;
use crate::unsupported_fields::{set_in_plan, set_in_task};
use crate::{Form, Loss, Unreadable, Writing};

/// The attributes of the graph, with the types of those that are not texts.
const PLAN_KEYS: &str = "\
     format id version:long title goal status owner queue token_budget:long body foreign phase \
     approval_required:boolean approval_waived:boolean approval created_by created_at updated_at \
     started_at finished_at tokens_used:long summary reason archived:boolean attempts_gone:long";

/// The attributes of a node, with the types of those that are not texts. `depends_on` is written only where edges cannot show it.
const TASK_KEYS: &str = "\
     description parent depends_on when complexity notes tools skip:boolean locks work check retry \
     timeout_seconds:long priority:int provides thinking foreign status attempt:long tries:long \
     created_at updated_at started_at finished_at not_before worker progress result output error \
     reason because_of received reported evidence question answers";

/// Returns the names of the attributes and their types.
fn attributes(keys: &str) -> impl Iterator<Item = (&str, &str)> {
    keys.split_whitespace().map(|key| key.split_once(':').unwrap_or((key, "string")))
}

pub(crate) fn write(draft: &Draft, _form: Form) -> Result<Writing, Unreadable> {
    let graph = Graph::of(draft);
    let names = graph.names();
    let mut losses = Vec::new();
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns \
         http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">\n",
    );
    for (name, kind) in attributes(PLAN_KEYS) {
        text.push_str(&key("plan", "graph", name, kind));
    }
    for (name, kind) in attributes(TASK_KEYS) {
        text.push_str(&key("task", "node", name, kind));
    }
    text.push_str("  <graph id=\"plan\" edgedefault=\"directed\">\n");
    let plan = plan_fields(draft);
    for (name, _) in attributes(PLAN_KEYS) {
        if let Some(value) = plan.get(name).map(plain) {
            text.push_str(&data("plan", name, &value, "    "));
        }
    }
    losses.extend(lost(None, &plan, set_in_plan(draft), PLAN_KEYS));
    let mut outside = vec![false; draft.tasks.len()];
    graph.outside.iter().for_each(|(waiting, _)| outside[*waiting] = true);
    for (n, task) in draft.tasks.iter().enumerate() {
        let mut fields = task_fields(task);
        if !outside[n] {
            fields.shift_remove("depends_on");
        }
        text.push_str(&format!("    <node id=\"{}\">\n", xml(&names[n])));
        for (name, _) in attributes(TASK_KEYS) {
            if let Some(value) = fields.get(name).map(plain) {
                text.push_str(&data("task", name, &value, "      "));
            }
        }
        text.push_str("    </node>\n");
        let id = task.spec.id.as_str();
        losses.extend(lost(Some(id), &fields, set_in_task(task), TASK_KEYS));
        if names[n] != id || has_unwritable(id) {
            losses.push(Loss { task: Some(id.to_owned()), field: "id".to_owned() });
        }
    }
    for (first, waiting) in &graph.edges {
        let (first, waiting) = (xml(&names[*first]), xml(&names[*waiting]));
        text.push_str(&format!("    <edge source=\"{first}\" target=\"{waiting}\"/>\n"));
    }
    text.push_str("  </graph>\n</graphml>\n");
    losses.sort();
    losses.dedup();
    Ok(Writing { text, losses })
}

fn key(owner: &str, place: &str, name: &str, kind: &str) -> String {
    format!("  <key id=\"{owner}.{name}\" for=\"{place}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>\n")
}

fn data(owner: &str, name: &str, value: &str, margin: &str) -> String {
    format!("{margin}<data key=\"{owner}.{name}\">{}</data>\n", xml(value))
}

/// The fields of the plan's spec and state, side by side.
fn plan_fields(draft: &Draft) -> Map<String, Value> {
    let mut fields = object(&draft.spec);
    fields.extend(object(&draft.state));
    fields.insert("format".to_owned(), Value::from(waypost_core::FORMAT));
    if let Some(id) = &draft.id {
        fields.insert("id".to_owned(), Value::from(id.as_str()));
    }
    if draft.version != 0 {
        fields.insert("version".to_owned(), Value::from(draft.version));
    }
    fields
}

fn task_fields(task: &Task) -> Map<String, Value> {
    let mut fields = object(&task.spec);
    fields.extend(object(&task.state));
    fields
}

fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Formats a value as the text of an attribute: texts as they are, everything else as JSON.
#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the fields without an attribute, and the texts with characters that XML cannot hold.
fn lost(task: Option<&str>, fields: &Map<String, Value>, set: Vec<String>, keys: &str) -> Vec<Loss> {
    let has_key = |field: &str| attributes(keys).any(|(key, _)| key == field);
    set.into_iter()
        .filter(|field| {
            let name = field.split_once('.').map_or(field.as_str(), |(name, _)| name);
            let unwritable = fields.get(name).map(plain).is_some_and(|text| has_unwritable(&text));
            unwritable || !(has_key(name) || task.is_some() && name == "id")
        })
        .map(|field| Loss { task: task.map(str::to_owned), field })
        .collect()
}

fn has_unwritable(text: &str) -> bool {
    text.chars()
        .any(|c| c < '\u{20}' && !matches!(c, '\n' | '\r' | '\t') || matches!(c, '\u{fffe}' | '\u{ffff}'))
}
