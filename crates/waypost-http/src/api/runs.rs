//! The runs of a plan over time: the plans with its title, one after the other, with how long each task took in each; and what ran
//! on which day.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{PlanId, Timestamp};
use waypost_store::{ArchiveFilter, PlanSummary, Query, Sort};

use super::attempts::{Attempt, attempts};
use super::extract::{Parameters, PlanPath, page_size};
use super::response::{Problem, Reply, Versioned};
use super::state::Api;
use super::tasks::label;

/// Runs: default and maximum.
const RUNS_DEFAULT: usize = 12;
const RUNS_MAX: usize = 30;
/// Maximum number of plans that are looked at for their title.
const HEADS_MAX: usize = 500;
/// Maximum number of tasks of a plan that is read, and of tasks that are listed.
const TASKS_READ_MAX: u32 = 10_000;
const TASKS_MAX: usize = 200;
/// Maximum number of days that are listed; the latest are kept.
const DAYS_MAX: usize = 60;
/// Maximum width of a label, in columns.
const LABEL_COLUMNS_MAX: usize = 60;
const DAY_MICROS: i64 = 86_400_000_000;
/// The largest difference of a clock from UTC, in minutes.
const OFFSET_MINUTES_MAX: i64 = 24 * 60;

/// How many runs, and where days begin.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    limit: Option<usize>,
    /// The difference of the reader's clock from UTC, in minutes.
    offset: Option<i64>,
}

/// What the attempts of one task amount to.
#[derive(Clone, Copy, Default)]
struct Work {
    attempts: usize,
    failed: usize,
    micros: i64,
}

impl Work {
    fn of(attempts: &[Attempt], now: Timestamp) -> Self {
        attempts.iter().filter_map(|one| Some((one, one.started_at?))).fold(
            Self::default(),
            |sum, (one, from)| {
                let until = one.finished_at.unwrap_or(now);
                Self {
                    attempts: sum.attempts + 1,
                    failed: sum.failed + usize::from(one.outcome == Some("failed")),
                    micros: sum.micros + (until.as_micros() - from.as_micros()).max(0),
                }
            },
        )
    }

    fn plus(self, other: Self) -> Self {
        Self {
            attempts: self.attempts + other.attempts,
            failed: self.failed + other.failed,
            micros: self.micros + other.micros,
        }
    }

    fn json(self) -> Value {
        json!({ "attempts": self.attempts, "failed": self.failed, "seconds": seconds(self.micros) })
    }
}

fn seconds(micros: i64) -> f64 {
    (micros as f64 / 1_000.0).round() / 1_000.0
}

/// `GET /plans/{plan}/runs`: the oldest first.
pub(crate) fn runs(
    api: &Api,
    (PlanPath(id), Parameters(wanted)): (PlanPath, Parameters<RunsQuery>),
) -> Reply {
    let limit = page_size(wanted.limit, RUNS_DEFAULT, RUNS_MAX)?;
    let offset = wanted.offset.unwrap_or(0).clamp(-OFFSET_MINUTES_MAX, OFFSET_MINUTES_MAX);
    let now = api.plans().store().query(|read| Ok(read.now()))?;
    let (title, labels, version, warnings) = api.service.view(&id, |plan, warnings| {
        let labels: Vec<(String, String)> = plan
            .tasks()
            .map(|(task, _)| (task.spec.id.to_string(), label(task, LABEL_COLUMNS_MAX)))
            .collect();
        (plan.spec().title.clone(), labels, plan.version(), warnings.to_vec())
    })?;
    let known: BTreeSet<&String> = labels.iter().map(|(task, _)| task).collect();
    let statuses = api.service.plan_statuses()?;
    let mut all = Vec::new();
    let mut cells: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut days = Vec::new();
    for (place, head) in of_title(api, &id, &title, limit)?.iter().enumerate() {
        let found = attempts(api.plans(), &head.id, None)?;
        let (state, started, finished, outcomes) = api.service.view(&head.id, |plan, _| {
            let outcomes: BTreeMap<String, &'static str> = plan
                .tasks()
                .filter(|(task, _)| task.state.attempt > 0)
                .map(|(task, _)| (task.spec.id.to_string(), task.state.status.as_str()))
                .collect();
            (statuses.of_plan(plan), plan.state().started_at, plan.state().finished_at, outcomes)
        })?;
        let mut whole = Work::default();
        for (task, attempts) in &found {
            let work = Work::of(attempts, now);
            whole = whole.plus(work);
            if known.contains(task) {
                let row = cells.entry(task.clone()).or_default();
                row.resize(place, Value::Null);
                let mut cell = work.json();
                cell["outcome"] = json!(outcomes.get(task));
                row.push(cell);
            }
        }
        let first = found.values().flatten().filter_map(|one| one.started_at).min();
        let is_open = |one: &&Attempt| one.started_at.is_some() && one.finished_at.is_none();
        let runs = found.values().flatten().any(|one| is_open(&one));
        let last = found.values().flatten().filter_map(|one| one.finished_at).max().filter(|_| !runs);
        let begun = first.or(started);
        let ended = finished.or(last).filter(|_| !runs);
        let took = begun.map(|begun| ended.unwrap_or(now).as_micros() - begun.as_micros());
        let mut run = whole.json();
        run["plan"] = json!(head.id);
        run["state"] = json!(state);
        run["created_at"] = json!(head.created_at);
        run["started_at"] = json!(begun);
        run["finished_at"] = json!(ended);
        run["counts"] = json!(head.counts);
        run["took_seconds"] = json!(took.map(|took| seconds(took.max(0))));
        all.push(run);
        if head.id == id {
            days = by_day(&found, offset, now);
        }
    }
    let count = all.len();
    let total = cells.len();
    let tasks: Vec<Value> = labels
        .iter()
        .filter_map(|(task, label)| Some((task, label, cells.remove(task)?)))
        .take(TASKS_MAX)
        .map(|(task, label, mut row)| {
            row.resize(count, Value::Null);
            json!({ "task": task, "label": label, "cells": row })
        })
        .collect();
    let value = json!({ "runs": all, "tasks": tasks, "tasks_total": total, "days": days });
    Ok(Versioned::at(value, version).warned(&warnings))
}

/// The latest plans with this title, the oldest first. One without a title stands for itself only.
fn of_title(api: &Api, id: &PlanId, title: &str, limit: usize) -> Result<Vec<PlanSummary>, Problem> {
    let query = Query {
        shelf: ArchiveFilter::All,
        text: (!title.is_empty()).then(|| title.to_owned()),
        sort: Sort::Created,
        limit: HEADS_MAX,
        ..Query::default()
    };
    let mut found = api.plans().heads(&query)?.items;
    found.retain(|head| {
        head.id == *id || !title.is_empty() && head.title == title && head.goals <= TASKS_READ_MAX
    });
    let own = found.iter().position(|head| head.id == *id);
    // The plan itself is always there, with those around it.
    let from = own.map_or(0, |own| (own + 1).saturating_sub(limit));
    let mut found: Vec<PlanSummary> = found.into_iter().skip(from).take(limit).collect();
    if own.is_none() {
        found.extend(api.service.view(id, |plan, _| PlanSummary::detailed(plan)).ok());
    }
    found.sort_by_key(|head| head.created_at);
    Ok(found)
}

/// What began on which day.
fn by_day(found: &BTreeMap<String, Vec<Attempt>>, offset: i64, now: Timestamp) -> Vec<Value> {
    let mut days: BTreeMap<i64, Work> = BTreeMap::new();
    for one in found.values().flatten() {
        let Some(from) = one.started_at else { continue };
        let day = (from.as_micros() + offset * 60_000_000).div_euclid(DAY_MICROS);
        let sum = days.entry(day).or_default();
        *sum = sum.plus(Work::of(std::slice::from_ref(one), now));
    }
    let from = days.len().saturating_sub(DAYS_MAX);
    days.into_iter()
        .skip(from)
        .map(|(day, work)| {
            let mut value = work.json();
            let midnight = Timestamp::from_micros(day * DAY_MICROS);
            value["day"] = json!(midnight.to_the_second().get(..10));
            value
        })
        .collect()
}
