//! What a person needs to know before approving a plan: what it would run, and what changed since the last approval.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_service::PreviewGroup;
use waypost_text::reveal_lines;

use super::approval_state::ApprovalFacts;
use super::extract::{Parameters, PlanPath, page_size};
use super::response::{Reply, Versioned};
use super::state::Api;

/// Tasks of each group of a preview on a page, by default and at most.
const GROUP_TASKS_DEFAULT: usize = 100;
const GROUP_TASKS_MAX: usize = 1_000;
/// Maximum number of differences since the last approval, and of problems, that are listed.
const DIFFERENCES_MAX: usize = 200;

/// What the reader knows already.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalQuery {
    /// The version that was read: `since_read` tells what authors changed after it.
    since: Option<u64>,
}

/// `GET /plans/{plan}/approval`: what a person needs to know before deciding.
pub(crate) fn approval(
    api: &Api,
    (PlanPath(id), Parameters(query)): (PlanPath, Parameters<ApprovalQuery>),
) -> Reply {
    let (draft, facts) = api.service.view(&id, |plan, _| (plan.to_draft(), ApprovalFacts::of(plan)))?;
    let version = facts.version();
    let mut value = api.approvals.describe(api.plans(), &id, facts)?;
    let problems = api.service.problems(&draft)?;
    value["problems"] =
        problems.iter().take(DIFFERENCES_MAX).map(|problem| json!(problem.to_string())).collect();
    let approved = api.service.last_approval(&id)?.map(|last| last.version);
    for (name, version) in [("since_approval", approved), ("since_read", query.since)] {
        let Some(version) = version else { continue };
        let mut found = api.service.written_since(&id, version)?;
        let total = found.len();
        found.truncate(DIFFERENCES_MAX);
        value[name] = json!({ "version": version, "differences": found, "differences_total": total });
    }
    reveal_all(&mut value);
    Ok(Versioned::at(value, version))
}

/// Which part of a preview to return.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewQuery {
    /// Only this group, counted from 0.
    group: Option<usize>,
    /// Skip this many tasks of the group.
    offset: Option<usize>,
    /// Maximum number of tasks of each group.
    limit: Option<usize>,
}

/// `GET /plans/{plan}/preview`: everything that machines would run. Further tasks of a group are on further pages, which
/// belong together if they have the same digest.
pub(crate) fn preview(
    api: &Api,
    (PlanPath(id), Parameters(query)): (PlanPath, Parameters<PreviewQuery>),
) -> Reply {
    let limit = page_size(query.limit, GROUP_TASKS_DEFAULT, GROUP_TASKS_MAX)?;
    let offset = query.offset.filter(|_| query.group.is_some()).unwrap_or(0);
    let mut preview = api.service.preview(&id)?;
    let groups = std::mem::take(&mut preview.groups);
    let version = preview.version;
    let mut value = json!(preview);
    let wanted = |number: usize| query.group.is_none_or(|group| group == number);
    let groups = groups.iter().enumerate().filter(|(number, _)| wanted(*number));
    value["groups"] = groups.map(|(number, group)| group_json(number, group, offset, limit)).collect();
    reveal_all(&mut value);
    let damage: Vec<String> = api.plans().store().damage(&id)?.into_iter().collect();
    Ok(Versioned::at(value, version).warned(&damage))
}

/// Shows the invisible characters of all texts: a person decides about exactly these.
fn reveal_all(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = reveal_lines(text) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(reveal_all),
        Value::Object(map) => map.values_mut().for_each(reveal_all),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn group_json(number: usize, group: &PreviewGroup, offset: usize, limit: usize) -> Value {
    let PreviewGroup { program, role, risks, settings, pattern, tasks } = group;
    let shown: Vec<_> = tasks.iter().skip(offset).take(limit).collect();
    let next = offset + shown.len();
    let warnings: Vec<_> = risks.iter().map(|risk| risk.describe()).collect();
    json!({
        "group": number, "program": program, "role": role, "risks": risks, "warnings": warnings,
        "settings": settings, "pattern": pattern, "tasks": shown, "tasks_total": tasks.len(), "next_offset": (next < tasks.len()).then_some(next),
    })
}
