//! The search over the tasks of all plans.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use waypost_core::EffectiveStatus;
use waypost_service::TaskSearch;

use super::extract::{Parameters, page_size};
use super::plans::unknown_word;
use super::response::{Problem, Reply, Versioned};
use super::state::Api;

/// Found tasks: default and maximum.
const TASKS_DEFAULT: usize = 20;
const TASKS_MAX: usize = 200;

/// What is searched for; all conditions hold together.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchQuery {
    /// Words, all of which fit the task or its plan.
    text: Option<String>,
    /// Statuses, separated by commas.
    standing: Option<String>,
    label: Option<String>,
    assignee: Option<String>,
    plan: Option<String>,
    /// Also archived plans.
    #[serde(default)]
    archived: bool,
    limit: Option<usize>,
}

/// `GET /search`
pub(crate) fn search(api: &Api, Parameters(query): Parameters<SearchQuery>) -> Reply {
    let limit = page_size(query.limit, TASKS_DEFAULT, TASKS_MAX)?;
    let plan = query.plan.filter(|plan| !plan.is_empty());
    let wanted = TaskSearch {
        text: query.text.unwrap_or_default(),
        statuses: statuses(query.standing.as_deref().unwrap_or_default())?,
        label: query.label.filter(|label| !label.is_empty()),
        assignee: query.assignee.filter(|assignee| !assignee.is_empty()),
        plan: plan.map(|plan| api.service.resolve_plan(&plan)).transpose()?,
        archived: query.archived,
    };
    Ok(Versioned::of(json!(api.service.search_tasks(&wanted, limit)?)))
}

/// Parses statuses that are separated by commas.
pub(super) fn statuses(words: &str) -> Result<Vec<EffectiveStatus>, Problem> {
    let unknown = |word| unknown_word("standing", word, EffectiveStatus::ALL.map(EffectiveStatus::as_str));
    let words = words.split(',').filter(|word| !word.is_empty());
    words.map(|word| word.parse().map_err(|_| unknown(word))).collect()
}
