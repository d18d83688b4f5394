//! Reads, writes and describes a text of any format by the format's name.

use std::collections::{HashMap, HashSet};

use waypost_core::{DependencyRule, Draft, Status, Task, TaskId};

use crate::derived_id::derive_ids;
use crate::detect::{several, sniff, why_unknown};
use crate::long_numbers::long_numbers;
use crate::repeated_keys::repeated_keys;
use crate::{
    Dialect, Form, Reading, Unreadable, Writing, agora, backlog, beads, checklist, clido, dot, frctl,
    graphml, jaato, markdown, mermaid, native, plan_document, svg, task_master,
};

/// Reads `text` as `dialect`, or in the detected format. Several objects one after the other are several plans.
pub fn read(text: &str, dialect: Option<Dialect>, file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut reading, parts) = match several(text, dialect, file_name) {
        Some((dialect, parts)) => {
            let mut whole = Reading::new(dialect);
            for part in &parts {
                whole.append(read_one(part, dialect, file_name)?);
            }
            (whole, parts)
        }
        None => {
            let Some(dialect) = dialect.or_else(|| sniff(text, file_name)) else {
                return Err(why_unknown(text));
            };
            (read_one(text, dialect, file_name)?, vec![text])
        }
    };
    // The native format says itself what was skipped because of what.
    if reading.dialect != Dialect::Native {
        reading.drafts.iter_mut().for_each(name_causes);
    }
    // A text that was not read from a file, such as a model's reply, is a new plan each time.
    if file_name.is_some() {
        derive_ids(&mut reading);
    }
    let repeated = parts.into_iter().flat_map(repeated_keys);
    reading
        .notes
        .extend(repeated.map(|key| format!("the key {key} is there more than once; one of them counts")));
    // A clido plan may be in the prose of a model's reply. What is JSON in Markdown is looked at where it is read.
    if reading.dialect == Dialect::Clido || text.trim_start().starts_with(['{', '[']) {
        reading.notes.extend(long_numbers(text));
    }
    Ok(reading)
}

fn read_one(text: &str, dialect: Dialect, file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let reading = match dialect {
        Dialect::Native => native::read(text, file_name),
        Dialect::Clido => clido::read(text, file_name),
        Dialect::Jaato => jaato::read(text, file_name),
        Dialect::Frctl => frctl::read(text, file_name),
        Dialect::Agora => agora::read(text, file_name),
        Dialect::PlanDocument => plan_document::read(text, file_name),
        Dialect::Markdown => markdown::read(text, file_name),
        Dialect::Checklist => checklist::read(text, file_name),
        Dialect::TaskMaster => task_master::read(text, file_name),
        Dialect::Beads => beads::read(text, file_name),
        Dialect::Backlog => backlog::read(text, file_name),
        Dialect::Mermaid | Dialect::Dot | Dialect::Graphml | Dialect::Svg => {
            Err(Unreadable::WriteOnly(dialect))
        }
    }?;
    Ok(reading.part_inexact())
}

/// Names the task because of which others were skipped. Other formats say only that they were, and that is not their author's
/// skip: what waits for them must not run.
fn name_causes(draft: &mut Draft) {
    let by_id: HashMap<&TaskId, &Task> = draft.tasks.iter().map(|task| (&task.spec.id, task)).collect();
    let is_skipped = |task: &Task| {
        task.state.status == Status::Skipped && !task.spec.skip && task.spec.when == DependencyRule::AllDone
    };
    let mut causes: HashMap<TaskId, TaskId> = HashMap::new();
    for skipped in draft.tasks.iter().filter(|task| is_skipped(task)) {
        let (mut stack, mut seen) = (vec![skipped], HashSet::new());
        while let Some(task) = stack.pop() {
            if !seen.insert(&task.spec.id) {
                continue;
            }
            if matches!(task.state.status, Status::Failed | Status::Cancelled) {
                causes.insert(skipped.spec.id.clone(), task.spec.id.clone());
                break;
            }
            let known = causes.get(&task.spec.id).and_then(|cause| by_id.get(cause));
            let before = task.spec.depends_on.iter().filter_map(|on| by_id.get(on.here()?));
            stack.extend(before.filter(|_| is_skipped(task)).chain(known).copied());
        }
    }
    for task in &mut draft.tasks {
        if let Some(cause) = causes.remove(&task.spec.id) {
            task.state.because_of = Some(cause);
        }
    }
}

/// Writes `draft` as `dialect`.
pub fn write(draft: &Draft, dialect: Dialect, form: Form) -> Result<Writing, Unreadable> {
    match dialect {
        Dialect::Native => native::write(draft, form),
        Dialect::Clido => clido::write(draft, form),
        Dialect::Jaato => jaato::write(draft, form),
        Dialect::Frctl => frctl::write(draft, form),
        Dialect::Agora => agora::write(draft, form),
        Dialect::PlanDocument => plan_document::write(draft, form),
        Dialect::Markdown => markdown::write(draft, form),
        Dialect::Checklist => checklist::write(draft, form),
        Dialect::Mermaid => mermaid::write(draft, form),
        Dialect::Dot => dot::write(draft, form),
        Dialect::Graphml => graphml::write(draft, form),
        Dialect::Svg => svg::write(draft, form),
        Dialect::TaskMaster | Dialect::Beads | Dialect::Backlog => Err(Unreadable::ReadOnly(dialect)),
    }
}

/// Writes the results of a plan into the text that it was read from: in the same form, with what has happened.
pub fn write_back(draft: &Draft, dialect: Dialect) -> Result<Writing, Unreadable> {
    // A request to run items has no place for their state.
    let needs_state = dialect == Dialect::Agora && draft.tasks.iter().any(agora::has_state);
    write(draft, dialect, if needs_state { Form::Program } else { Form::AsRead })
}

/// Writes several plans into one text. Only jaato's store files hold more than one; any other format takes exactly one.
pub fn write_many(drafts: &[Draft], dialect: Dialect, form: Form) -> Result<Writing, Unreadable> {
    match (dialect, drafts) {
        (Dialect::Jaato, _) => jaato::write_store(drafts, form, serde_json::Map::new()),
        (_, [draft]) => write(draft, dialect, form),
        (_, _) => Err(Unreadable::NoPlan(format!(
            "{dialect} holds one plan in a text, and there are {}",
            drafts.len()
        ))),
    }
}

/// Returns the JSON Schema (draft 2020-12) of a JSON format.
pub fn schema(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Native => Some(include_str!("../schemas/waypost-1.schema.json")),
        Dialect::Clido => Some(include_str!("../schemas/clido-plan.schema.json")),
        Dialect::Jaato => Some(include_str!("../schemas/jaato-plan.schema.json")),
        Dialect::Frctl => Some(include_str!("../schemas/plan-v1.schema.json")),
        Dialect::Agora => Some(include_str!("../schemas/agora-run.schema.json")),
        Dialect::PlanDocument => Some(include_str!("../schemas/plan-document.schema.json")),
        Dialect::Markdown
        | Dialect::Checklist
        | Dialect::TaskMaster
        | Dialect::Beads
        | Dialect::Backlog
        | Dialect::Mermaid
        | Dialect::Dot
        | Dialect::Graphml
        | Dialect::Svg => None,
    }
}
