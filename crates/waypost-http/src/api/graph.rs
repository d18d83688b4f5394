//! A plan's tasks as columns, with places to draw them at.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{Counts, Dependency, Plan, levels};
use waypost_dialects::places;

use super::answer::{Problem, Told};
use super::asked::{Parameters, PlanPath};
use super::plans::longest_chain;
use super::tasks::{label, standing};
use super::{Api, aside};

/// Tasks that are drawn one by one; of a plan with more, some levels at a time.
const DRAWN_MAX: usize = 2_000;
/// Groups of levels that a large plan is shown in.
const GROUPS_MAX: usize = 60;
/// Characters of a label.
const LABEL_CHARACTERS_MAX: usize = 60;
/// The size of a box.
const BOX: (f64, f64) = (200.0, 56.0);

/// Which levels.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    levels: Option<String>,
}

impl Wanted {
    fn range(&self) -> Result<Option<(usize, usize)>, Problem> {
        let Some(text) = &self.levels else { return Ok(None) };
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let range = from.parse().and_then(|from| to.parse().map(|to| (from, to)));
        range
            .map(Some)
            .map_err(|_| Problem::bad(format!("levels {text:?} is no range"), "write A-B, such as 0-9"))
    }
}

/// `GET /plans/{plan}/graph`
pub(crate) async fn graph(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Told<Value>, Problem> {
    let range = wanted.range()?;
    aside(api, move |api| {
        let (value, version) = api.plans.look(&id, |plan| (columns(plan, range), plan.version()))?;
        Ok(Told::at(value, version))
    })
    .await
}

fn letter(word: &str) -> char {
    match word {
        "ready" => 'r',
        "running" => 'R',
        "done" => 'd',
        "failed" => 'f',
        "skipped" => 's',
        "cancelled" => 'c',
        "asking" => 'q',
        "reported" => 'p',
        _ => 'b',
    }
}

/// What is drawn: names, standings, arrows, and where each box stands.
#[derive(Default)]
struct Columns {
    ids: Vec<String>,
    labels: Vec<String>,
    standing: String,
    parent: Vec<i64>,
    level: Vec<usize>,
}

fn columns(plan: &Plan, range: Option<(usize, usize)>) -> Value {
    let found = levels(&plan.outline()).unwrap_or_default();
    let mut level_of = std::collections::HashMap::new();
    for (level, tasks) in found.iter().enumerate() {
        for task in tasks {
            level_of.insert(task.to_string(), level);
        }
    }
    // A parent is not worked on and stands in no level of its own: it is drawn where its first child is.
    let mut parents: Vec<(String, String)> = Vec::new();
    for (task, _) in plan.tasks() {
        if let (Some(parent), Some(_)) = (&task.spec.parent, level_of.get(task.spec.id.as_str())) {
            parents.push((parent.to_string(), task.spec.id.to_string()));
        }
    }
    for (parent, child) in parents {
        let level = level_of.get(&child).copied().unwrap_or_default();
        let own = level_of.entry(parent).or_insert(level);
        *own = (*own).min(level);
    }
    let inside = |level: usize| range.is_none_or(|(from, to)| (from..=to).contains(&level));
    let mut columns = Columns::default();
    let mut places_of = std::collections::HashMap::new();
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (task, _) in plan.tasks() {
        let level = level_of.get(task.spec.id.as_str()).copied().unwrap_or_default();
        if !inside(level) {
            continue;
        }
        places_of.insert(task.spec.id.to_string(), columns.ids.len());
        columns.ids.push(task.spec.id.to_string());
        columns.labels.push(label(task, LABEL_CHARACTERS_MAX));
        columns.standing.push(letter(standing(plan, task)));
        columns.level.push(level);
    }
    for (task, _) in plan.tasks() {
        let Some(&place) = places_of.get(task.spec.id.as_str()) else { continue };
        let parent = task.spec.parent.as_ref().and_then(|parent| places_of.get(parent.as_str()));
        columns.parent.push(parent.map_or(-1, |&parent| i64::try_from(parent).unwrap_or(-1)));
        for on in task.spec.depends_on.iter().filter_map(Dependency::here) {
            if let Some(&on) = places_of.get(on.as_str()) {
                from.push(on);
                to.push(place);
            }
        }
    }
    let critical: Vec<usize> =
        longest_chain(plan).iter().filter_map(|task| places_of.get(task.as_str()).copied()).collect();
    let Columns { ids, labels, standing, parent, level } = columns;
    let mut value = json!({
        "version": plan.version(),
        "count": plan.len(),
        "ids": ids,
        "labels": labels,
        "standing": standing,
        "from": from,
        "to": to,
        "parent": parent,
        "level": level,
        "critical": critical,
    });
    if ids.len() <= DRAWN_MAX {
        let arrows: Vec<(usize, usize)> = from.iter().copied().zip(to.iter().copied()).collect();
        let drawn = places(ids.len(), &arrows, BOX);
        value["x"] = drawn.corners.iter().map(|(x, _)| json!(x.round())).collect();
        value["y"] = drawn.corners.iter().map(|(_, y)| json!(y.round())).collect();
        value["width"] = json!(drawn.width.round());
        value["height"] = json!(drawn.height.round());
    } else {
        value["groups"] = groups(&level, &standing);
    }
    value
}

/// Levels that are shown together, each with how its tasks stand.
fn groups(level: &[usize], standing: &str) -> Value {
    let highest = level.iter().copied().max().unwrap_or_default();
    let mut counts = vec![Counts::default(); highest + 1];
    for (&level, letter) in level.iter().zip(standing.chars()) {
        let count = &mut counts[level];
        count.total += 1;
        match letter {
            'r' => count.ready += 1,
            'R' | 'q' | 'p' => count.running += 1,
            'd' => count.done += 1,
            'f' => count.failed += 1,
            's' => count.skipped += 1,
            'c' => count.cancelled += 1,
            _ => count.blocked += 1,
        }
    }
    let total: usize = level.len();
    let wanted = (total / GROUPS_MAX).clamp(1, DRAWN_MAX) as u32;
    let mut groups: Vec<(usize, usize, Counts)> = Vec::new();
    for (level, count) in counts.iter().enumerate() {
        match groups.last_mut() {
            Some((_, to, sum)) if sum.total + count.total <= wanted => {
                *to = level;
                add(sum, count);
            }
            _ => groups.push((level, level, *count)),
        }
    }
    groups
        .iter()
        .map(|(from, to, counts)| {
            let name = if from == to { format!("Level {}", from + 1) } else { format!("Levels {}–{}", from + 1, to + 1) };
            json!({ "name": name, "level_from": from, "level_to": to, "count": counts.total, "counts": counts })
        })
        .collect()
}

fn add(sum: &mut Counts, more: &Counts) {
    sum.total += more.total;
    sum.ready += more.ready;
    sum.blocked += more.blocked;
    sum.running += more.running;
    sum.done += more.done;
    sum.failed += more.failed;
    sum.skipped += more.skipped;
    sum.cancelled += more.cancelled;
}
