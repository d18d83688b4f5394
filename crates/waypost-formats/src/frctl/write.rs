//! Writes frctl's goal trees. Knows the tree and the words, not how they are read.

use std::borrow::Cow;

use serde_json::{Map, Value};
use waypost_core::{Digest, Draft, Phase, Status, Task, TaskId, Timestamp};

use super::status::{goal_word, written_status};
use super::tree::{Tree, child_ids, root_description, root_of};
use crate::field_reader::{PreservedFields, plan_id_text, short_hash};
use crate::field_writer::{
    Shape, canonical, in_order, losses, own_dependencies, plan_loss, pretty, pretty_ascii, put, put_time,
    python, task_loss,
};
use crate::{Dialect, Form, Loss, Unreadable, Writing};

const PLAN_FIELDS: &[&str] = &["id", "title", "goal", "phase", "created_at", "updated_at", "tokens_used"];
const TASK_FIELDS: &[&str] =
    &["id", "description", "parent", "depends_on", "thinking", "status", "created_at", "updated_at"];

/// Writes a plan. If no single task is the root, a root goal is made from the plan itself.
pub(crate) fn write(draft: &Draft, form: Form) -> Result<Writing, Unreadable> {
    let kept = PreservedFields::of(&draft.spec.foreign, Dialect::Frctl);
    let shape = Shape::of(form, &kept);
    let mut losses = losses(draft, Dialect::Frctl, PLAN_FIELDS, TASK_FIELDS);
    let draft = &*below_root(draft, &kept, &mut losses);
    let time = if shape.program { python } else { canonical };
    let id = plan_id_text(draft, &kept, || short_hash(&draft.spec.title));

    let root = root_of(draft, &kept).map(|root| root.spec.id.to_string());
    let was_empty = draft.tasks.is_empty() && kept.text("root").is_some();
    let made = (root.is_none() && !was_empty).then(|| free_id(draft, &id));
    let root = root
        .or_else(|| made.as_ref().map(TaskId::to_string))
        .or_else(|| kept.text("root").map(str::to_owned));
    let tree = Tree::of(draft, made.as_ref());
    let mut goals = Map::new();
    if let Some(made) = &made {
        goals.insert(made.to_string(), Value::Object(made_root(draft, made, &tree, &kept, time)));
    }
    for (at, task) in draft.tasks.iter().enumerate() {
        let (key, goal) = write_goal(draft, &tree, at, made.as_ref(), shape, &mut losses);
        if goals.insert(key, goal).is_some() {
            return Err(Unreadable::NoPlan(format!("two tasks have the id {}", task.spec.id)));
        }
    }

    let mut told = vec![root_description(draft, &kept).unwrap_or_default()];
    if made.is_some() {
        told.push(if draft.spec.goal.is_empty() { &draft.spec.title } else { &draft.spec.goal });
    }
    let title = if draft.spec.title.is_empty() { &draft.spec.goal } else { &draft.spec.title }.as_str();
    let gap = shape.as_read && kept.was_absent("description") && told.contains(&title);
    let mut map = Map::new();
    map.insert("id".to_owned(), id.into());
    map.insert("root_goal_id".to_owned(), root.unwrap_or_default().into());
    if shape.program {
        map.insert("goals".to_owned(), Value::Null);
    }
    if !shape.program && !gap {
        map.insert("description".to_owned(), title.into());
        told.push(title);
    }
    let status = written_status(draft, &tree, &kept);
    if !shape.program {
        map.insert("status".to_owned(), status.clone());
    }
    put_time(&mut map, "created_at", draft.state.created_at, &kept, time);
    put(&mut map, "updated_at", updated_at(draft, &kept, time));
    map.insert("status".to_owned(), status);
    map.insert("total_tokens".to_owned(), kept.recall("total_tokens", draft.state.tokens_used));
    map.insert("max_depth".to_owned(), kept.recall("max_depth", tree.depth_max()));
    map.insert("goals".to_owned(), Value::Object(goals));
    for (field, text) in [("title", title), ("goal", draft.spec.goal.as_str())] {
        if !text.is_empty() && !told.contains(&text) {
            losses.push(plan_loss(field));
        }
    }
    match draft.state.phase {
        Phase::Draft | Phase::Active | Phase::Paused | Phase::Completed | Phase::Failed => {}
        Phase::AwaitingApproval | Phase::Cancelled => losses.push(plan_loss("phase")),
    }
    if shape.unknown {
        kept.write_unknown(&mut map, &[]);
    } else if kept.has_unknown() {
        losses.push(plan_loss("foreign.frctl"));
    }
    let text = if shape.program { pretty_ascii(&map) } else { pretty(&map, 4) + "\n" };
    Ok(Writing { text, losses: in_order(draft, losses) })
}

/// Puts tasks that were added beside the root below it, where frctl sees them. What the file itself had there stays.
fn below_root<'a>(draft: &'a Draft, kept: &PreservedFields, losses: &mut Vec<Loss>) -> Cow<'a, Draft> {
    let Some(root) = kept.text("root").and(root_of(draft, kept)).map(|root| root.spec.id.clone()) else {
        return Cow::Borrowed(draft);
    };
    let was_beside = kept.get("beside_root").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_added = |task: &Task| {
        let id = &task.spec.id;
        task.spec.parent.is_none() && *id != root && !was_beside.iter().any(|known| known == id.as_str())
    };
    if !draft.tasks.iter().any(is_added) {
        return Cow::Borrowed(draft);
    }
    let mut draft = draft.clone();
    for task in draft.tasks.iter_mut().filter(|task| is_added(task)) {
        losses.push(task_loss(&task.spec.id, "parent"));
        task.spec.parent = Some(root.clone());
    }
    Cow::Owned(draft)
}

/// Returns when the plan was last changed. A plan that has only been stored was not.
pub(super) fn updated_at(
    draft: &Draft,
    kept: &PreservedFields,
    time: fn(Timestamp) -> String,
) -> Option<Value> {
    match kept.get("updated_at") {
        Some(read) if draft.version <= 1 => Some(read.clone()),
        Some(_) | None => draft.state.updated_at.map(|at| kept.time_value("updated_at", at, time)),
    }
}

/// Returns an id for the made root that no task has: `<plan>-root`.
fn free_id(draft: &Draft, plan_id: &str) -> TaskId {
    let mut turn = 0;
    loop {
        let text = if turn == 0 { format!("{plan_id}-root") } else { format!("{plan_id}-root-{turn}") };
        // A plan id that is not a valid task id is replaced by a plain word.
        let id = TaskId::new(text).or_else(|_| TaskId::new(format!("root-{turn}")));
        if let Ok(id) = id
            && !draft.tasks.iter().any(|task| task.spec.id == id)
        {
            return id;
        }
        turn += 1;
    }
}

fn made_root(
    draft: &Draft,
    id: &TaskId,
    tree: &Tree,
    kept: &PreservedFields,
    time: fn(Timestamp) -> String,
) -> Map<String, Value> {
    let description = if draft.spec.goal.is_empty() { &draft.spec.title } else { &draft.spec.goal };
    let children: Vec<&str> = tree.tops().iter().map(|at| draft.tasks[*at].spec.id.as_str()).collect();
    let mut map = Map::new();
    map.insert("id".to_owned(), id.as_str().into());
    map.insert("description".to_owned(), description.as_str().into());
    let is_done = |at: &usize| draft.tasks[*at].state.status == Status::Done;
    let status = match children.is_empty() {
        true => "pending",
        false if tree.tops().iter().all(is_done) => "complete",
        false => "decomposing",
    };
    map.insert("status".to_owned(), status.into());
    map.insert("parent_id".to_owned(), Value::Null);
    map.insert("child_ids".to_owned(), children.into());
    map.insert("depth".to_owned(), 0.into());
    put_time(&mut map, "created_at", draft.state.created_at, kept, time);
    put_time(&mut map, "updated_at", draft.state.updated_at, kept, time);
    map.insert("reasoning".to_owned(), Value::Null);
    map.insert("digest".to_owned(), Value::Null);
    map.insert("tokens_used".to_owned(), 0.into());
    map.insert("dependencies".to_owned(), Value::Array(Vec::new()));
    map.insert("graph_node_id".to_owned(), Value::Null);
    map
}

fn write_goal(
    draft: &Draft,
    tree: &Tree,
    at: usize,
    made: Option<&TaskId>,
    shape: Shape,
    losses: &mut Vec<Loss>,
) -> (String, Value) {
    let Task { spec, state } = &draft.tasks[at];
    let kept = PreservedFields::of(&spec.foreign, Dialect::Frctl);
    let time = if shape.program { python } else { canonical };
    let (word, told) = goal_word(&draft.tasks[at], !tree.children(at).is_empty(), shape.program);
    if !told {
        let untold = match state.status {
            Status::Pending | Status::Done | Status::Failed => "thinking.refinement",
            Status::Running | Status::Skipped | Status::Cancelled => "status",
        };
        losses.push(task_loss(&spec.id, untold));
    }
    let parent = spec.parent.as_ref().or(made).map_or(Value::Null, |parent| parent.as_str().into());
    let dependencies = own_dependencies(spec, losses);
    let thinking = spec.thinking.as_deref().cloned().unwrap_or_default();
    // A goal must have times; if it has none, use the plan's. Only a file written as it was read has gaps.
    let or_plan = |own: Option<_>, plan| if shape.as_read { own } else { own.or(plan) };

    let mut map = Map::new();
    map.insert("id".to_owned(), spec.id.as_str().into());
    map.insert("description".to_owned(), spec.description.as_str().into());
    map.insert("status".to_owned(), kept.recall("status", word));
    map.insert("parent_id".to_owned(), parent);
    map.insert("child_ids".to_owned(), kept.recall("child_ids", child_ids(draft, tree, at)));
    map.insert("depth".to_owned(), kept.recall("depth", tree.depth(at)));
    put_time(&mut map, "created_at", or_plan(state.created_at, draft.state.created_at), &kept, time);
    put_time(&mut map, "updated_at", or_plan(state.updated_at, draft.state.updated_at), &kept, time);
    map.insert("reasoning".to_owned(), thinking.reasoning.into());
    map.insert("digest".to_owned(), write_digest(&draft.tasks[at], thinking.digest, &kept, shape, losses));
    map.insert("tokens_used".to_owned(), thinking.tokens.into());
    map.insert("dependencies".to_owned(), dependencies.into());
    map.insert("graph_node_id".to_owned(), thinking.graph_node_id.into());
    if shape.unknown {
        kept.write_unknown(&mut map, &["digest"]);
    } else if kept.has_unknown() {
        losses.push(task_loss(&spec.id, "foreign.frctl"));
    }
    (kept.text("key").unwrap_or(spec.id.as_str()).to_owned(), Value::Object(map))
}

/// Writes the digest: a text in the program's form, an object in the document's.
fn write_digest(
    task: &Task,
    digest: Option<Digest>,
    kept: &PreservedFields,
    shape: Shape,
    losses: &mut Vec<Loss>,
) -> Value {
    let Some(Digest { summary, key_decisions, artifacts, compression_ratio, fidelity_score }) = digest else {
        return Value::Null;
    };
    let more = kept.unknown("digest").and_then(Value::as_object);
    let only_summary = key_decisions.is_empty()
        && artifacts.is_empty()
        && compression_ratio.is_none()
        && fidelity_score.is_none()
        && more.is_none();
    let as_text =
        if shape.as_read { kept.text("digest") == Some("text") && only_summary } else { shape.program };
    if as_text {
        if !only_summary {
            losses.push(task_loss(&task.spec.id, "thinking.digest"));
        }
        return summary.into();
    }
    let mut map = Map::new();
    map.insert("summary".to_owned(), summary.into());
    map.insert("key_decisions".to_owned(), key_decisions.into());
    map.insert("artifacts".to_owned(), artifacts.into());
    put(&mut map, "compression_ratio", compression_ratio);
    put(&mut map, "fidelity_score", fidelity_score);
    for (name, value) in more.into_iter().flatten() {
        map.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(map)
}
