//! frctl's index of plans, in the form of its document (a list) and of the program (a map).
//!
//! An index holds only summaries: a draft that is read from it has no tasks, and its counts are preserved.

use serde_json::{Map, Value, json};
use waypost_core::{Draft, ProblemLocation, Status, Timestamp};

use super::status::{goal_word, read_status, written_status};
use super::tree::Tree;
use super::write::updated_at;
use crate::field_reader::{
    Fields, PreservedFields, object_of, parse_timestamp, plan_id_text, short_hash, take_plan_id,
};
use crate::field_writer::{canonical, pretty, put, put_time, python, python_offset};
use crate::{Dialect, Form, Reading, Unreadable, Writing};

const COUNTS: [&str; 5] = ["total_goals", "atomic_goals", "complete_goals", "goal_count", "atomic_count"];

/// Whether this is an index: a list of summaries under `plans`, or a map of summaries by id.
pub(crate) fn is_index(top: &Map<String, Value>) -> bool {
    let is_head = |head: &Value| head.get("goal_count").is_some() || head.get("total_goals").is_some();
    let is_listed = top.get("plans").is_some_and(Value::is_array) && !top.contains_key("goals");
    is_listed || !top.is_empty() && top.values().all(is_head)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
pub(crate) fn read(mut top: Map<String, Value>) -> Reading {
    let mut reading = Reading::new(Dialect::Frctl);
    let (form, heads): (&str, Vec<Value>) = match top.shift_remove("plans") {
        Some(Value::Array(heads)) => ("document", heads),
        _ => ("program", top.into_iter().map(|(_, head)| head).collect()),
    };
    for (at, head) in heads.into_iter().enumerate() {
        match head {
            Value::Object(head) => read_head(head, form, &mut reading),
            other => {
                let mut fields = Fields::new(Map::new(), ProblemLocation::Plan);
                fields.unlike::<()>(&format!("plans[{at}]"), "an object", &other);
                fields.finish(&mut reading.problems);
            }
        }
    }
    reading
        .notes
        .push("this is an index: it names the plans, and their goals are in files of their own".to_owned());
    reading
}

fn read_head(head: Map<String, Value>, form: &str, reading: &mut Reading) {
    let mut draft = Draft::new("");
    let mut kept = PreservedFields::default();
    let mut fields = Fields::new(head, ProblemLocation::Plan);
    kept.set("form", form);
    let time = if form == "program" { python_offset } else { canonical };
    if let Some(id) = fields.text_needed("id") {
        take_plan_id(&mut draft, id, &mut kept, &mut reading.notes);
    }
    draft.spec.title = fields.text("description").unwrap_or_default();
    draft.state.created_at = fields.time_as("created_at", &mut kept, time);
    draft.state.updated_at = fields.time_as("updated_at", &mut kept, time);
    draft.state.tokens_used = fields.integer("total_tokens").unwrap_or_default();
    let status = fields.text("status");
    read_status(status.as_deref(), &mut draft, &mut kept, &mut reading.notes);
    let mut counts = Map::new();
    for name in COUNTS.into_iter().chain(["max_depth"]) {
        if let Some(count) = fields.integer(name) {
            counts.insert(name.to_owned(), count.into());
        }
    }
    kept.set("counts", counts);
    kept.keep_unknown(fields.finish(&mut reading.problems));
    kept.keep_in(&mut draft.spec.foreign, Dialect::Frctl);
    reading.drafts.push(draft);
}

/// Whether this draft is only a line of an index: the plan itself is in a file of its own.
pub fn is_index_line(draft: &Draft) -> bool {
    draft.tasks.is_empty() && draft.spec.foreign.of(Dialect::Frctl.name()).contains_key("$counts")
}

/// Writes an index of these plans. `Form::AsRead` uses the form of the first.
pub fn write_index(drafts: &[Draft], form: Form) -> Result<Writing, Unreadable> {
    let first = drafts.first().map(|draft| PreservedFields::of(&draft.spec.foreign, Dialect::Frctl));
    let program = match form {
        Form::AsRead => first.is_some_and(|kept| kept.text("form") == Some("program")),
        Form::Document => false,
        Form::Program => true,
    };
    let mut heads = Map::new();
    for draft in drafts {
        let (id, head) = write_head(draft, program);
        if heads.insert(id.clone(), head).is_some() {
            return Err(Unreadable::NoPlan(format!("two plans have the id {id}")));
        }
    }
    let text = if program {
        pretty(&heads, 2)
    } else {
        let last = drafts.iter().filter_map(|draft| draft.state.updated_at).max();
        let text = |at: Timestamp| {
            let draft = drafts.iter().find(|draft| draft.state.updated_at == Some(at));
            let kept = draft
                .map(|draft| PreservedFields::of(&draft.spec.foreign, Dialect::Frctl))
                .unwrap_or_default();
            kept.time("updated_at", at, canonical)
        };
        let plans: Vec<Value> = heads.into_iter().map(|(_, head)| head).collect();
        pretty(&json!({ "plans": plans, "last_updated": last.map(text) }), 4) + "\n"
    };
    Ok(Writing { text, losses: Vec::new() })
}

/// Returns an index with this plan in it, in the form of the index, or of the plan for a new one. What the index says about other
/// plans stays as it is.
pub fn update_index(index: Option<&str>, draft: &Draft) -> Result<String, Unreadable> {
    let mut top = index.map_or_else(|| Ok(Map::new()), |text| object_of(text, Dialect::Frctl))?;
    let kept = PreservedFields::of(&draft.spec.foreign, Dialect::Frctl);
    let is_new = index.is_none();
    let program = if is_new { kept.text("form") == Some("program") } else { !top.contains_key("plans") };
    if !is_new && !top.is_empty() && !is_index(&top) {
        return Err(Unreadable::NoPlan("it is not an index of plans".to_owned()));
    }
    let (id, head) = write_head(draft, program);
    if program {
        let known = top.get(&id).cloned();
        top.insert(id, with_unknown(head, known));
        return Ok(pretty(&top, 2));
    }
    let updated_at = head.get("updated_at").cloned();
    let plans = top.entry("plans").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(plans) = plans {
        match plans.iter_mut().find(|known| known.get("id").and_then(Value::as_str) == Some(&id)) {
            Some(known) => *known = with_unknown(head, Some(known.take())),
            None => plans.push(head),
        }
    }
    put(&mut top, "last_updated", updated_at);
    Ok(pretty(&top, 4) + "\n")
}

/// Returns an index without this plan, or nothing if it is not in it.
pub fn remove_from_index(index: &str, draft: &Draft) -> Result<Option<String>, Unreadable> {
    let mut top = object_of(index, Dialect::Frctl)?;
    let kept = PreservedFields::of(&draft.spec.foreign, Dialect::Frctl);
    let id = plan_id_text(draft, &kept, || short_hash(&draft.spec.title));
    if let Some(Value::Array(plans)) = top.get_mut("plans") {
        let before = plans.len();
        plans.retain(|known| known.get("id").and_then(Value::as_str) != Some(&id));
        return Ok((plans.len() != before).then(|| pretty(&top, 4) + "\n"));
    }
    Ok(top.shift_remove(&id).map(|_| pretty(&top, 2)))
}

/// Keeps what a line of an index has besides.
fn with_unknown(mut head: Value, known: Option<Value>) -> Value {
    if let (Value::Object(head), Some(Value::Object(known))) = (&mut head, known) {
        for (name, value) in known {
            head.entry(name).or_insert(value);
        }
    }
    head
}

fn write_head(draft: &Draft, program: bool) -> (String, Value) {
    let kept = PreservedFields::of(&draft.spec.foreign, Dialect::Frctl);
    let id = plan_id_text(draft, &kept, || short_hash(&draft.spec.title));
    let time = if program { python_offset } else { canonical };
    let tree = Tree::of(draft, None);
    let words: Vec<&str> = draft
        .tasks
        .iter()
        .enumerate()
        .map(|(at, task)| goal_word(task, !tree.children(at).is_empty(), program).0)
        .collect();
    let is_leaf = |at: usize| tree.children(at).is_empty();
    let atomic = words.iter().enumerate().filter(|(at, word)| match **word {
        "atomic" => true,
        word => word == "complete" && is_leaf(*at),
    });
    let atomic = atomic.count();
    let done = draft.tasks.iter().filter(|task| task.state.status == Status::Done).count();
    // A plan of which only the summary is known keeps the counts that were read with it.
    let counted = |name: &str, now: usize| -> Value {
        let read = kept.get("counts").and_then(|counts| counts.get(name)).filter(|_| draft.tasks.is_empty());
        read.cloned().unwrap_or_else(|| now.into())
    };

    let mut map = Map::new();
    map.insert("id".to_owned(), id.as_str().into());
    map.insert("description".to_owned(), draft.spec.title.as_str().into());
    map.insert("status".to_owned(), written_status(draft, &tree, &kept));
    put_time(&mut map, "created_at", draft.state.created_at, &kept, time);
    // The program writes times into its index in another form than into its plans.
    let in_index = |at: Value| match at.as_str().and_then(parse_timestamp) {
        Some(moment) if program && at == python(moment) => python_offset(moment).into(),
        Some(_) | None => at,
    };
    put(&mut map, "updated_at", updated_at(draft, &kept, time).map(in_index));
    if program {
        map.insert("goal_count".to_owned(), counted("goal_count", words.len()));
        map.insert("atomic_count".to_owned(), counted("atomic_count", atomic));
        map.insert("max_depth".to_owned(), counted("max_depth", tree.depth_max()));
        map.insert("total_tokens".to_owned(), kept.recall("total_tokens", draft.state.tokens_used));
    } else {
        map.insert("total_goals".to_owned(), counted("total_goals", words.len()));
        map.insert("atomic_goals".to_owned(), counted("atomic_goals", atomic));
        map.insert("complete_goals".to_owned(), counted("complete_goals", done));
    }
    if draft.tasks.is_empty() {
        kept.write_unknown(&mut map, &[]);
    }
    (id, Value::Object(map))
}
