//! A plan's tasks in columns: names, statuses, dependencies.

use serde_json::{Value, json};
use std::collections::HashMap;
use waypost_config::Config;
use waypost_core::{Dependency, EffectiveStatus, Plan, Task, levels};
use waypost_service::HumanExecutors;

use super::extract::PlanPath;
use super::plans::longest_chain;
use super::response::{Reply, Versioned};
use super::state::Api;
use super::tasks::label;

/// Maximum width of a label, in columns.
const LABEL_COLUMNS_MAX: usize = 60;
/// `GET /plans/{plan}/graph`
pub(crate) fn graph(api: &Api, PlanPath(id): PlanPath) -> Reply {
    // Without a readable configuration, what every configuration has is still true.
    let config = api.service.config().unwrap_or_default();
    Ok(api
        .service
        .view(&id, |plan, warnings| Versioned::at(columns(&config, plan), plan.version()).warned(warnings))?)
}

/// Encodes an effective status as one letter.
fn letter(standing: EffectiveStatus) -> char {
    match standing {
        EffectiveStatus::Blocked => 'b',
        EffectiveStatus::Ready => 'r',
        EffectiveStatus::Reported => 'p',
        EffectiveStatus::Asking => 'q',
        EffectiveStatus::Held => 'h',
        EffectiveStatus::Disputed => 'x',
        EffectiveStatus::Queued => 'u',
        EffectiveStatus::Running => 'R',
        EffectiveStatus::Done => 'd',
        EffectiveStatus::Failed => 'f',
        EffectiveStatus::Skipped => 's',
        EffectiveStatus::Cancelled => 'c',
    }
}

/// Returns the tasks in plan order, each with its level. No one works on a parent, so it has no level of its own: it is
/// drawn at the first level of its children.
pub(super) fn placed(plan: &Plan) -> Vec<(&Task, usize)> {
    let found = levels(&plan.outline()).unwrap_or_default();
    let mut level_of: HashMap<&str, usize> = HashMap::with_capacity(plan.len());
    for (level, tasks) in found.iter().enumerate() {
        level_of.extend(tasks.iter().map(|task| (task.as_str(), level)));
    }
    let mut parents: Vec<(&str, usize)> = Vec::new();
    for (task, _) in plan.tasks() {
        if let (Some(parent), Some(&level)) = (&task.spec.parent, level_of.get(task.spec.id.as_str())) {
            parents.push((parent.as_str(), level));
        }
    }
    for (parent, level) in parents {
        let own = level_of.entry(parent).or_insert(level);
        *own = (*own).min(level);
    }
    let level = |task: &Task| level_of.get(task.spec.id.as_str()).copied().unwrap_or_default();
    plan.tasks().map(|(task, _)| (task, level(task))).collect()
}

/// Returns names, statuses and edges.
fn columns(config: &Config, plan: &Plan) -> Value {
    let chosen = placed(plan);
    let place_of: HashMap<&str, usize> =
        chosen.iter().enumerate().map(|(place, (task, _))| (task.spec.id.as_str(), place)).collect();
    let place = |id: &str| place_of.get(id).copied();
    let (mut from, mut to, mut parent) = (Vec::new(), Vec::new(), Vec::new());
    for (own, (task, _)) in chosen.iter().enumerate() {
        let above = task.spec.parent.as_ref().and_then(|parent| place(parent.as_str()));
        parent.push(above.map_or(-1, |above| i64::try_from(above).unwrap_or(-1)));
        for on in task.spec.depends_on.iter().filter_map(Dependency::here).filter_map(|on| place(on.as_str()))
        {
            from.push(on);
            to.push(own);
        }
    }
    let started = plan.as_started();
    let standing = |task: &Task| started.effective_status(task.spec.id.as_str()).map_or('b', letter);
    let standing: String = chosen.iter().map(|(task, _)| standing(task)).collect();
    let level: Vec<usize> = chosen.iter().map(|(_, level)| *level).collect();
    let critical: Vec<usize> = longest_chain(plan).iter().filter_map(|task| place(task.as_str())).collect();
    let for_people = HumanExecutors::of(config, plan);
    let people = (0..).zip(&chosen).filter(|(_, (task, _))| for_people.has(task));
    let people: Vec<usize> = people.map(|(place, _)| place).collect();
    let work: String =
        chosen.iter().map(|(task, _)| if task.spec.work.is_some() { 'w' } else { '-' }).collect();
    json!({
        "version": plan.version(),
        "count": plan.len(),
        "ids": chosen.iter().map(|(task, _)| task.spec.id.as_str()).collect::<Vec<_>>(),
        "labels": chosen.iter().map(|(task, _)| label(task, LABEL_COLUMNS_MAX)).collect::<Vec<_>>(),
        "standing": standing,
        "from": from,
        "to": to,
        "parent": parent,
        "level": level,
        "critical": critical,
        "people": people,
        "work": work,
    })
}
