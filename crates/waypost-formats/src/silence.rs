//! What a text leaves out although its format has a place for it. An author who leaves a field out says nothing about it.
//!
//! Does not know the plan, only what the format says about it. In Waypost's own formats (JSON, Markdown, lists) an empty field is left
//! out, so that leaving one out there removes it.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use waypost_core::{Digest, Draft, ForeignFields, PlannerNotes, Status, Task, TaskId, TaskSpec};

use crate::Dialect;
use crate::preserved_fields::PreservedFields;

/// Fills in what `draft`, which was read as `dialect`, leaves out: it says there what the format says about the plan.
/// `without_ids` are the tasks whose ids the text does not have.
pub(crate) fn fill(
    draft: &mut Draft,
    (said, before): (&Draft, &Draft),
    dialect: Dialect,
    without_ids: &HashSet<TaskId>,
) {
    let said_tasks: HashMap<&TaskId, &Task> = said.tasks.iter().map(|task| (&task.spec.id, task)).collect();
    // Waypost writes ids. A line without one was written by hand, perhaps long ago: an empty box there does not set back what was
    // done since.
    for task in draft.tasks.iter_mut().filter(|task| task.state.status == Status::Pending) {
        if let Some(said) = said_tasks.get(&task.spec.id).filter(|_| without_ids.contains(&task.spec.id)) {
            task.state.status = said.state.status;
        }
    }
    match dialect {
        Dialect::Clido | Dialect::Jaato | Dialect::Frctl | Dialect::Agora => {}
        Dialect::Native | Dialect::PlanDocument | Dialect::Markdown | Dialect::Checklist => return,
        Dialect::TaskMaster | Dialect::Beads | Dialect::Backlog => return,
        Dialect::Mermaid | Dialect::Dot | Dialect::Graphml | Dialect::Svg => return,
    }
    // Without a description, the words of the root stand for it. They are the title only if they were.
    let is_absent =
        |draft: &Draft| PreservedFields::of(&draft.spec.foreign, dialect).was_absent("description");
    let is_title = is_absent(said) && said.spec.title == before.spec.title;
    if is_absent(draft) && !is_title {
        draft.spec.title.clone_from(&said.spec.title);
    }
    fill_unknown(&mut draft.spec.foreign, &said.spec.foreign, dialect);
    for task in &mut draft.tasks {
        if let Some(said) = said_tasks.get(&task.spec.id) {
            fill_task(task, said, dialect);
        }
    }
}

fn fill_task(task: &mut Task, said: &Task, dialect: Dialect) {
    let kept = PreservedFields::of(&task.spec.foreign, dialect);
    let (wanted, old) = (&mut task.spec, &said.spec);
    for name in kept.absent() {
        match name {
            "description" => wanted.description.clone_from(&old.description),
            "depends_on" | "dependencies" => wanted.depends_on.clone_from(&old.depends_on),
            "complexity" => wanted.complexity = old.complexity,
            "skip" => wanted.skip = old.skip,
            "notes" => wanted.notes.clone_from(&old.notes),
            "tools" => wanted.tools.clone_from(&old.tools),
            "provides" => wanted.provides.clone_from(&old.provides),
            "status" => {
                task.state.status = said.state.status;
                if dialect == Dialect::Frctl {
                    let refinement = old.thinking.as_ref().and_then(|thinking| thinking.refinement);
                    with_thinking(&mut wanted.thinking, |thinking| thinking.refinement = refinement);
                }
            }
            "reasoning" | "tokens_used" | "graph_node_id" | "digest" => {
                let old = old.thinking.as_deref().cloned().unwrap_or_default();
                with_thinking(&mut wanted.thinking, |thinking| match name {
                    "reasoning" => thinking.reasoning = old.reasoning,
                    "tokens_used" => thinking.tokens = old.tokens,
                    "graph_node_id" => thinking.graph_node_id = old.graph_node_id,
                    _ => thinking.digest = old.digest,
                });
            }
            _ => {}
        }
    }
    // The program's form has only the summary of a digest.
    if dialect == Dialect::Frctl && kept.text("digest") == Some("text") {
        let digest = |spec: &TaskSpec| spec.thinking.as_ref().and_then(|thinking| thinking.digest.clone());
        let is_same = |one: &Digest, other: &Digest| one.summary == other.summary;
        if let (Some(now), Some(old)) = (digest(wanted), digest(old))
            && is_same(&now, &old)
        {
            with_thinking(&mut wanted.thinking, |thinking| thinking.digest = Some(old));
        }
    }
    fill_unknown(&mut task.spec.foreign, &said.spec.foreign, dialect);
}

fn with_thinking(thinking: &mut Option<Box<PlannerNotes>>, change: impl FnOnce(&mut PlannerNotes)) {
    let mut notes = thinking.take().map(|notes| *notes).unwrap_or_default();
    change(&mut notes);
    if notes != PlannerNotes::default() {
        *thinking = Some(Box::new(notes));
    }
}

/// Unknown fields that are left out stay, at every level. An item of agora's has all its fields but one, so that what is not there
/// was removed.
fn fill_unknown(wanted: &mut ForeignFields, said: &ForeignFields, dialect: Dialect) {
    if dialect == Dialect::Agora {
        return;
    }
    let mut fields = wanted.of(dialect.name());
    let is_unknown = |name: &String| !name.starts_with('$') || name.starts_with("$$");
    let said: Map<String, Value> =
        said.of(dialect.name()).into_iter().filter(|(name, _)| is_unknown(name)).collect();
    if !said.is_empty() {
        merge(&mut fields, said);
        wanted.keep(dialect.name(), fields);
    }
}

fn merge(fields: &mut Map<String, Value>, said: Map<String, Value>) {
    for (name, value) in said {
        match (fields.get_mut(&name), value) {
            (None, value) => {
                fields.insert(name, value);
            }
            (Some(Value::Object(inner)), Value::Object(value)) => merge(inner, value),
            (Some(_), _) => {}
        }
    }
}
