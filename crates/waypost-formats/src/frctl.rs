//! frctl's goal trees: the plan as its document describes it and as the program saves it.
//!
//! A goal is a task with a parent; `child_ids`, `depth` and `max_depth` are derived. Values that a file has and that cannot be
//! derived are preserved, and written back as long as the plan has not changed in that place. Does not know how frctl plans.

mod index;
mod status;
mod tree;
mod write;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use waypost_core::{
    Dependency, Digest, Draft, PlannerNotes, Problem, ProblemKind, ProblemLocation, Refinement, Status, Task,
    TaskSpec, Timestamp,
};

pub use self::index::{is_index_line, remove_from_index, update_index, write_index};
use self::status::{goal_word, read_status};
use self::tree::{Tree, child_ids, root_description};
pub(crate) use self::write::write;
use crate::field_reader::{Fields, Nameless, PreservedFields, object_of, take_plan_id, task_id};
use crate::field_writer::{canonical, python};
use crate::{Dialect, Reading, Unreadable};

const DIALECT: Dialect = Dialect::Frctl;
/// Fields of a goal that may be left out. Who is whose child is never left out: `child_ids` say it, too.
const OPTIONAL: [&str; 6] = ["status", "dependencies", "reasoning", "tokens_used", "graph_node_id", "digest"];

/// Reads a plan, or an index of plans.
pub(crate) fn read(text: &str, _file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let top = object_of(text, DIALECT)?;
    if index::is_index(&top) { Ok(index::read(top)) } else { Ok(read_plan(top)) }
}

fn read_plan(plan: Map<String, Value>) -> Reading {
    let mut reading = Reading::new(DIALECT);
    let mut draft = Draft::new("");
    let mut kept = PreservedFields::default();
    let mut fields = Fields::new(plan, ProblemLocation::Plan);
    let program = written_by_program(&fields);
    kept.set("form", if program { "program" } else { "document" });
    let time = if program { python } else { canonical };
    if let Some(id) = fields.text_needed("id") {
        take_plan_id(&mut draft, id, &mut kept, &mut reading.notes);
    }
    let root = fields.text_needed("root_goal_id");
    let description = fields.text("description");
    draft.state.created_at = fields.time_as("created_at", &mut kept, time);
    // Storing the plan does not change it, although the store notes down a time.
    let updated_at = fields.peek("updated_at").filter(|at| !at.is_null()).cloned();
    draft.state.updated_at = fields.time_as("updated_at", &mut kept, time);
    if let Some(updated_at) = updated_at {
        kept.set("updated_at", updated_at);
    }
    refuse_later_version(&mut fields);
    let total_tokens = fields.integer("total_tokens").unwrap_or_default();
    let max_depth = fields.integer("max_depth").unwrap_or_default();
    let status = fields.text("status");
    let goals = take_goals(&mut fields);
    kept.keep_unknown(fields.finish(&mut reading.problems));

    let mut nameless = Nameless::default();
    let mut written = Vec::with_capacity(goals.len());
    for (index, (key, goal)) in goals.into_iter().enumerate() {
        let (task, more) = read_goal(key, goal, index, time, &mut nameless, &mut reading.problems);
        draft.tasks.push(task);
        written.push(more);
    }
    nameless.settle(&mut draft);
    put_in_order(&mut draft, &mut written);
    finish_goals(&mut draft, written, program, &mut reading);

    // The program does not always count; the tokens of its goals were spent all the same.
    let thoughts = draft.tasks.iter().filter_map(|task| task.spec.thinking.as_ref());
    let of_goals = thoughts.fold(0i64, |sum, thinking| sum.saturating_add(thinking.tokens));
    draft.state.tokens_used = total_tokens.max(of_goals);
    kept.remember("total_tokens", draft.state.tokens_used, total_tokens);

    let tree = Tree::of(&draft, None);
    kept.remember("max_depth", tree.depth_max(), max_depth);
    if let Some(root) = root {
        if !draft.tasks.iter().any(|task| task.spec.id.as_str() == root) {
            let detail = format!("the root goal {root} is not among the goals");
            reading.problems.push(Problem::plan(ProblemKind::Format { detail }));
        }
        let is_beside = |task: &&Task| task.spec.parent.is_none() && task.spec.id.as_str() != root;
        let beside: Vec<Value> =
            draft.tasks.iter().filter(is_beside).map(|task| task.spec.id.as_str().into()).collect();
        if !beside.is_empty() {
            kept.set("beside_root", beside);
        }
        kept.set("root", root);
    }
    draft.spec.title = match description {
        Some(description) => description,
        None => {
            kept.keep_absent(vec!["description"]);
            root_description(&draft, &kept).unwrap_or_default().to_owned()
        }
    };
    read_status(status.as_deref(), &mut draft, &mut kept, &mut reading.notes);
    draft.state.finished_at = draft.state.updated_at.filter(|_| draft.state.phase.is_finished());
    kept.keep_in(&mut draft.spec.foreign, DIALECT);
    reading.drafts.push(draft);
    reading
}

/// Refuses a plan of a later version: its fields may mean something else.
fn refuse_later_version(fields: &mut Fields) {
    let version = match fields.peek("schema_version") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => return,
    };
    let major =
        version.trim_start_matches(['v', 'V']).split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major > 1) {
        fields.problem(ProblemKind::LaterVersion { version, known: "1.0".to_owned() });
    }
}

/// Whether the plan has the field order in which the program saves it.
fn written_by_program(fields: &Fields) -> bool {
    let place = |name: &str| fields.names().position(|field| field == name);
    !fields.has("description")
        && match (place("goals"), place("status").or_else(|| place("created_at"))) {
            (Some(goals), Some(other)) => goals < other,
            (_, _) => false,
        }
}

fn take_goals(fields: &mut Fields) -> Vec<(String, Value)> {
    match fields.take_any("goals") {
        Some(Value::Object(goals)) => goals.into_iter().collect(),
        // The document requires a map, but a list has the same content.
        Some(Value::Array(goals)) => {
            fields.unlike::<()>("goals", "an object of goals by id", &Value::Array(Vec::new()));
            let key = |goal: &Value| goal.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            goals.into_iter().map(|goal| (key(&goal), goal)).collect()
        }
        Some(other) => fields.unlike("goals", "an object of goals by id", &other).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// What a goal states about the tree, to be compared with the actual tree.
struct Written {
    kept: PreservedFields,
    child_ids: Vec<String>,
    depth: Option<i64>,
    word: String,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
fn read_goal(
    key: String,
    goal: Value,
    index: usize,
    time: fn(Timestamp) -> String,
    nameless: &mut Nameless,
    problems: &mut Vec<Problem>,
) -> (Task, Written) {
    let mut kept = PreservedFields::default();
    let mut fields = match goal {
        Value::Object(map) => Fields::new(map, ProblemLocation::Task(key.clone())),
        other => {
            let mut fields = Fields::new(Map::new(), ProblemLocation::Task(key.clone()));
            fields.unlike::<()>("goals", "an object", &other);
            fields
        }
    };
    let id = fields.text_needed("id").unwrap_or_else(|| key.clone());
    if id != key {
        fields.format(format!("stands under the key {key}, but its id is {id}"));
        kept.set("key", key);
    }
    let id = task_id(Some(id), index, &mut fields, nameless, "id");
    kept.keep_absent(OPTIONAL.into_iter().filter(|name| !fields.has(name)).collect());
    let mut task = Task::new(TaskSpec::new(id, fields.text_needed("description").unwrap_or_default()));
    task.spec.parent = fields.text("parent_id").and_then(|parent| fields.task_id("parent_id", parent));
    let dependencies = fields.task_ids("dependencies").unwrap_or_default();
    task.spec.depends_on = dependencies.into_iter().map(Dependency::Task).collect();
    task.state.created_at = fields.time_as("created_at", &mut kept, time);
    task.state.updated_at = fields.time_as("updated_at", &mut kept, time);
    let child_ids = fields.names_in("child_ids").unwrap_or_default();
    let depth = fields.integer("depth");

    let mut thinking = PlannerNotes {
        refinement: None,
        reasoning: fields.text("reasoning"),
        tokens: fields.integer("tokens_used").unwrap_or_default(),
        graph_node_id: fields.text("graph_node_id"),
        digest: read_digest(&mut fields, &mut kept),
    };
    let word = fields.take_any("status").unwrap_or_else(|| "pending".into());
    match word.as_str() {
        Some("pending") => {}
        Some("decomposing") => thinking.refinement = Some(Refinement::Decomposing),
        Some("atomic") => thinking.refinement = Some(Refinement::Atomic),
        // Whether its children are done is known only after all goals have been read.
        Some("complete") if !child_ids.is_empty() => thinking.refinement = Some(Refinement::Decomposed),
        Some("complete") => {
            thinking.refinement = Some(Refinement::Atomic);
            task.state.status = Status::Done;
        }
        Some("failed") => task.state.status = Status::Failed,
        Some(_) | None => {
            fields.unlike::<()>("status", "pending, decomposing, atomic, complete or failed", &word);
        }
    }
    if thinking != PlannerNotes::default() {
        task.spec.thinking = Some(Box::new(thinking));
    }
    kept.keep_unknown(fields.finish(problems));
    let word = word.as_str().unwrap_or_default().to_owned();
    (task, Written { kept, child_ids, depth, word })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
fn read_digest(fields: &mut Fields, kept: &mut PreservedFields) -> Option<Digest> {
    let digest = |summary| Digest {
        summary,
        key_decisions: Vec::new(),
        artifacts: Vec::new(),
        compression_ratio: None,
        fidelity_score: None,
    };
    match fields.take("digest")? {
        Value::String(summary) => {
            kept.set("digest", "text");
            Some(digest(summary))
        }
        Value::Object(map) => {
            let mut inner = Fields::inside(map, fields.place().clone(), "digest");
            let mut read = digest(inner.text_needed("summary").unwrap_or_default());
            read.key_decisions = inner.names_in("key_decisions").unwrap_or_default();
            read.artifacts = inner.names_in("artifacts").unwrap_or_default();
            read.compression_ratio = inner.number("compression_ratio");
            read.fidelity_score = inner.number("fidelity_score");
            let more = fields.finish_inner(inner);
            if !more.is_empty() {
                kept.keep_unknown(Map::from_iter([("digest".to_owned(), Value::Object(more))]));
            }
            Some(read)
        }
        other => fields.unlike("digest", "an object or text", &other),
    }
}

/// Puts siblings into the order of their parent's `child_ids`, using the positions that they had among them.
fn put_in_order(draft: &mut Draft, written: &mut [Written]) {
    let place_of: HashMap<&str, usize> =
        draft.tasks.iter().enumerate().map(|(at, task)| (task.spec.id.as_str(), at)).collect();
    let mut moves = Vec::new();
    for (parent, goal) in draft.tasks.iter().zip(written.iter()) {
        let own = |child: &usize| draft.tasks[*child].spec.parent.as_ref() == Some(&parent.spec.id);
        let mut seen = HashSet::new();
        let listed =
            goal.child_ids.iter().filter_map(|child| place_of.get(child.as_str()).copied()).filter(own);
        let listed: Vec<usize> = listed.filter(|child| seen.insert(*child)).collect();
        if !listed.is_sorted() {
            let mut places = listed.clone();
            places.sort_unstable();
            moves.extend(places.into_iter().zip(listed));
        }
    }
    if moves.is_empty() {
        return;
    }
    let mut from: Vec<usize> = (0..draft.tasks.len()).collect();
    for (place, source) in moves {
        from[place] = source;
    }
    permute(&mut draft.tasks, &from);
    permute(written, &from);
}

/// Puts `list[from[n]]` at `n`, for each `n`. `from` must be a permutation.
fn permute<T>(list: &mut [T], from: &[usize]) {
    let mut settled = vec![false; list.len()];
    for start in 0..list.len() {
        let mut at = start;
        while !settled[at] {
            settled[at] = true;
            let next = from[at];
            if settled[next] {
                break;
            }
            list.swap(at, next);
            at = next;
        }
    }
}

/// Compares what the goals state with the actual tree, preserves the differences, and sets the status of composite goals.
fn finish_goals(draft: &mut Draft, written: Vec<Written>, program: bool, reading: &mut Reading) {
    let problems = &mut reading.problems;
    let tree = Tree::of(draft, None);
    for (at, goal) in written.iter().enumerate() {
        let id = &draft.tasks[at].spec.id;
        let children: HashSet<&str> =
            tree.children(at).iter().map(|child| draft.tasks[*child].spec.id.as_str()).collect();
        for child in goal.child_ids.iter().filter(|child| !children.contains(child.as_str())) {
            problems.push(Problem::task(id, ProblemKind::DanglingChild { child: child.clone() }));
        }
        let listed: HashSet<&str> = goal.child_ids.iter().map(String::as_str).collect();
        for child in tree.children(at).iter().map(|child| &draft.tasks[*child].spec.id) {
            if !listed.contains(child.as_str()) {
                let detail = format!("does not list {child} among its children, whose parent it is");
                problems.push(Problem::task(id, ProblemKind::Format { detail }));
            }
        }
        // If the parents form a cycle or lead nowhere, that is the problem, and the depth is undefined.
        if let Some(depth) = goal.depth
            && tree.is_rooted(at)
            && usize::try_from(depth).ok() != Some(tree.depth(at))
        {
            problems
                .push(Problem::task(id, ProblemKind::WrongDepth { written: depth, actual: tree.depth(at) }));
        }
    }
    settle_parents(draft, &tree);
    for (at, goal) in written.into_iter().enumerate() {
        let mut kept = goal.kept;
        let has_children = !tree.children(at).is_empty();
        let task = &mut draft.tasks[at];
        if task.state.status.is_finished() {
            task.state.finished_at = task.state.updated_at;
        }
        if has_children && goal.word == "failed" && task.state.status != Status::Failed {
            reading.notes.push(format!(
                "goal {} is failed, but it ends as the goals below it do: it is {} here",
                task.spec.id,
                task.state.status.as_str()
            ));
        }
        kept.remember("status", goal_word(task, has_children, program).0, goal.word);
        kept.remember("child_ids", child_ids(draft, &tree, at), goal.child_ids);
        if let Some(depth) = goal.depth {
            kept.remember("depth", tree.depth(at), depth);
        }
        kept.keep_in(&mut draft.tasks[at].spec.foreign, DIALECT);
    }
}

/// Ends goals as the goals below them end, as the store does.
fn settle_parents(draft: &mut Draft, tree: &Tree) {
    for at in tree.children_first() {
        let statuses = || tree.children(at).iter().map(|child| draft.tasks[*child].state.status);
        if tree.children(at).is_empty() {
            continue;
        }
        draft.tasks[at].state.status = match () {
            () if !statuses().all(Status::is_finished) => Status::Pending,
            () if statuses().any(|status| status == Status::Failed) => Status::Failed,
            () => Status::Done,
        };
    }
}
