//! A plan's tasks in columns, with a layout to draw them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use waypost_core::{Counts, Dependency, EffectiveStatus, Plan, Task, levels};
use waypost_formats::places;

use super::extract::{Parameters, PlanPath};
use super::plans::longest_chain;
use super::response::{Problem, Reply, Versioned};
use super::state::Api;
use super::tasks::label;

/// Maximum number of tasks drawn one by one. A larger plan is drawn a few levels at a time.
const DRAWN_MAX: usize = 2_000;
/// Target number of groups for a large plan. Wide levels can make it more.
const GROUPS_MAX: usize = 60;
/// Tasks per part of a level that has too many to be drawn.
const PART_TASKS: usize = 500;
/// Maximum width of a label, in columns.
const LABEL_COLUMNS_MAX: usize = 60;
/// The width and height of a box.
const BOX: (f64, f64) = (200.0, 56.0);

/// Selects levels.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphQuery {
    levels: Option<String>,
    /// Of these levels only this part of the tasks.
    part: Option<usize>,
}

impl GraphQuery {
    fn range(&self) -> Result<Option<(usize, usize)>, Problem> {
        let Some(text) = &self.levels else { return Ok(None) };
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let range = from.parse().and_then(|from| to.parse().map(|to| (from, to)));
        range
            .map(Some)
            .map_err(|_| Problem::bad(format!("levels {text:?} is not a range"), "send A-B, for example 0-9"))
    }
}

/// `GET /plans/{plan}/graph`
pub(crate) fn graph(
    api: &Api,
    (PlanPath(id), Parameters(wanted)): (PlanPath, Parameters<GraphQuery>),
) -> Reply {
    let range = wanted.range()?;
    Ok(api.service.view(&id, |plan, warnings| {
        Versioned::at(columns(plan, range, wanted.part), plan.version()).warned(warnings)
    })?)
}

/// Encodes an effective status as one letter.
fn letter(standing: EffectiveStatus) -> char {
    match standing {
        EffectiveStatus::Blocked => 'b',
        EffectiveStatus::Ready => 'r',
        EffectiveStatus::Reported => 'p',
        EffectiveStatus::Asking => 'q',
        EffectiveStatus::Held => 'h',
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
fn placed(plan: &Plan) -> Vec<(&Task, usize)> {
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

/// Returns what is drawn: names, statuses, edges, and the position of each box.
fn columns(plan: &Plan, range: Option<(usize, usize)>, part: Option<usize>) -> Value {
    let mut chosen = placed(plan);
    chosen.retain(|(_, level)| range.is_none_or(|(from, to)| (from..=to).contains(level)));
    if let Some(part) = part {
        chosen.drain(..part.saturating_mul(PART_TASKS).min(chosen.len()));
        chosen.truncate(PART_TASKS);
    }
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
    let mut value = json!({
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
    });
    if chosen.len() <= DRAWN_MAX {
        let arrows: Vec<(usize, usize)> = from.iter().copied().zip(to.iter().copied()).collect();
        let drawn = places(chosen.len(), &arrows, BOX);
        value["x"] = drawn.corners.iter().map(|(x, _)| json!(x.round())).collect();
        value["y"] = drawn.corners.iter().map(|(_, y)| json!(y.round())).collect();
        value["width"] = json!(drawn.width.round());
        value["height"] = json!(drawn.height.round());
    } else {
        value["groups"] = groups(&level, &standing);
    }
    value
}

/// Groups consecutive levels, each group with the counts of its tasks by status. A level with too many tasks is split
/// into parts.
fn groups(level: &[usize], standing: &str) -> Value {
    let highest = level.iter().copied().max().unwrap_or_default();
    let mut letters = vec![String::new(); highest + 1];
    for (&level, letter) in level.iter().zip(standing.chars()) {
        letters[level].push(letter);
    }
    let wanted = (level.len() / GROUPS_MAX).clamp(1, DRAWN_MAX);
    let mut groups: Vec<(usize, usize, String)> = Vec::new();
    for (level, own) in letters.into_iter().enumerate() {
        match groups.last_mut() {
            Some((_, to, all)) if all.len() + own.len() <= wanted => {
                *to = level;
                all.push_str(&own);
            }
            _ => groups.push((level, level, own)),
        }
    }
    let mut told = Vec::new();
    for (from, to, letters) in groups {
        let name = if from == to {
            format!("Level {}", from + 1)
        } else {
            format!("Levels {}–{}", from + 1, to + 1)
        };
        let group = |name: String, letters: &str| {
            json!({
                "name": name, "level_from": from, "level_to": to, "count": letters.len(), "counts": counts(letters),
            })
        };
        if letters.len() <= DRAWN_MAX {
            told.push(group(name, &letters));
            continue;
        }
        for begin in (0..letters.len()).step_by(PART_TASKS) {
            let end = (begin + PART_TASKS).min(letters.len());
            let mut own = group(format!("{name}, tasks {}–{end}", begin + 1), &letters[begin..end]);
            own["part"] = json!(begin / PART_TASKS);
            told.push(own);
        }
    }
    Value::from(told)
}

/// Counts the letters by status, as a plan counts its tasks.
fn counts(letters: &str) -> Counts {
    let mut counts = Counts { total: u32::try_from(letters.len()).unwrap_or(u32::MAX), ..Counts::default() };
    for letter in letters.chars() {
        match letter {
            'r' => counts.ready += 1,
            'p' => counts.reported += 1,
            'q' => counts.asking += 1,
            'h' => counts.held += 1,
            'u' => counts.queued += 1,
            'R' => counts.running += 1,
            'd' => counts.done += 1,
            'f' => counts.failed += 1,
            's' => counts.skipped += 1,
            'c' => counts.cancelled += 1,
            _ => counts.blocked += 1,
        }
    }
    counts
}
