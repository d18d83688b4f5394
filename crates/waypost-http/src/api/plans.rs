//! Plans as a whole: list, create, read, revise, archive and purge.

use axum::extract::Path;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use waypost_core::{
    Draft, Phase, Plan, PlanChanges, PlanId, Refusal, Status, TaskId, Timestamp, critical_path,
};
use waypost_formats::{Dialect, Reading};
use waypost_service::{
    Caller, CreateOptions, EditOp, FoundPlans, Hint, ListedPlan, PlanStatus, ServiceError, Subject,
    approval_note, only_plan, question_digest,
};
use waypost_store::{ArchiveFilter, Page, PlanSummary, Query, Sort};
use waypost_text::StatusSign;

use super::approval_state::ApprovalFacts;
use super::extract::{
    Body, IfMatch, Parameters, PlanPath, Write, Writer, is_unchanged, nullable, page_size, parameter,
};
use super::response::{Problem, Reply, Versioned, hint_text, tag, written};
use super::state::Api;

/// The name of a request's text in messages.
pub(super) const TEXT_NAME: &str = "the text";
/// Plans on a page: default and maximum.
const PLANS_DEFAULT: usize = 50;
const PLANS_MAX: usize = 500;
/// Maximum number of questions and of running tasks listed with a plan.
const NAMES_MAX: usize = 500;
/// Maximum number of failed tasks listed with a plan.
const FAILED_MAX: usize = 20;
/// Maximum number of characters of an idempotency key.
const KEY_CHARACTERS_MAX: usize = 200;

/// Filters, sorts and pages the plans.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanQuery {
    phase: Option<String>,
    status: Option<String>,
    owner: Option<String>,
    queue: Option<String>,
    text: Option<String>,
    archived: Option<String>,
    sort: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
    /// Only plans that need a person.
    #[serde(default)]
    needs_you: bool,
}

impl PlanQuery {
    fn query(self) -> Result<Query, Problem> {
        let word = |name: &str, known: &str| Problem::bad(format!("{name} is not one of {known}"), "");
        let phases = self.phase.as_deref().unwrap_or_default().split(',').filter(|word| !word.is_empty());
        let phases = phases.map(phase).collect::<Result<Vec<_>, _>>()?;
        let shelf = match self.archived.as_deref() {
            None | Some("false") => ArchiveFilter::Current,
            Some("true") => ArchiveFilter::Archived,
            Some("all") => ArchiveFilter::All,
            Some(_) => return Err(word("archived", "true, false, all")),
        };
        let sort = self.sort.as_deref().unwrap_or("updated").parse::<Sort>();
        let sort = sort.map_err(|_| word("sort", "attention, updated, created, title, id, urgency"))?;
        let limit = page_size(self.limit, PLANS_DEFAULT, PLANS_MAX)?;
        let (status, owner, queue) = (self.status, self.owner, self.queue);
        let text = self.text.filter(|text| !text.is_empty());
        let after = self.after;
        Ok(Query { shelf, phases, status, owner, queue, text, sort, limit, after, offers_work: false })
    }
}

fn phase(word: &str) -> Result<Phase, Problem> {
    word.parse().map_err(|_| unknown_word("phase", word, Phase::ALL.map(Phase::as_str)))
}

/// The problem of a query parameter that takes certain words only.
pub(super) fn unknown_word<const N: usize>(name: &str, word: &str, known: [&str; N]) -> Problem {
    Problem::bad(format!("{name}: {word:?} is not a known value"), format!("use one of {}", known.join(", ")))
}

/// A page of plans.
#[derive(Debug, Serialize)]
pub(crate) struct PlanPage {
    plans: Vec<ListedPlan>,
    total: u64,
    next: Option<String>,
    /// Whether there are plans that were not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// `GET /plans`
pub(crate) fn list(
    api: &Api,
    Parameters(listing): Parameters<PlanQuery>,
) -> Result<Versioned<PlanPage>, Problem> {
    let needs_you = listing.needs_you;
    let query = listing.query()?;
    if needs_you {
        return needing_you(api, query);
    }
    let Page { items, total, next, warnings } = api.plans().heads(&query)?;
    let plans = api.service.summaries_with_status(items)?;
    Ok(Versioned::of(PlanPage { plans, total, next, more: None, warnings }))
}

/// Returns the plans that need a person, at most `limit`.
fn needing_you(api: &Api, query: Query) -> Result<Versioned<PlanPage>, Problem> {
    let query = Query { sort: Sort::Attention, ..query };
    let FoundPlans { plans, total, more, warnings } =
        api.service.plans_by_status(query, |state| state.needs_you)?;
    Ok(Versioned::of(PlanPage { plans, total: total as u64, next: None, more: Some(more), warnings }))
}

/// A plan to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateBody {
    /// The plan in any format.
    text: Option<String>,
    /// The format of the text; detected if omitted.
    format: Option<String>,
    /// The plan in the native format.
    plan: Option<Value>,
    /// The id that it should have.
    id: Option<String>,
}

/// `POST /plans`
pub(crate) fn create(
    api: &Api,
    (Writer(by), headers, Body(new)): (Writer, HeaderMap, Body<CreateBody>),
) -> Result<Response, Problem> {
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap_or_default().to_owned());
    if key.as_ref().is_some_and(|key| key.is_empty() || key.chars().count() > KEY_CHARACTERS_MAX) {
        return Err(Problem::bad(
            format!("Idempotency-Key has 1 to {KEY_CHARACTERS_MAX} plain characters"),
            "",
        ));
    }
    let (mut draft, notes) = read(new.text, new.format.as_deref(), new.plan)?;
    let named = new.id.map(PlanId::new).transpose();
    let named = named
        .map_err(|error| Problem::bad(error.to_string(), hint_text(Hint::OtherId)))?
        .or_else(|| draft.id.take());
    let keyed = key.filter(|_| named.is_none()).map(|key| keyed_id(&by, &key));
    let options = CreateOptions { id: named.or_else(|| keyed.clone()), ..CreateOptions::default() };
    draft.id = None;
    let (mut value, version) = match (api.service.create(&by, draft, options), keyed) {
        (Ok(reply), _) => (written(&reply), reply.version),
        // The key was used before: the reply names the plan that was created then.
        (Err(ServiceError::Refused(Refusal::AlreadyExists {})), Some(id)) => {
            let version = api.service.read(&id, Plan::version)?;
            (json!({ "id": id, "version": version, "warnings": [], "notes": [] }), version)
        }
        (Err(error), _) => return Err(error.into()),
    };
    let id = value["id"].as_str().unwrap_or_default().to_owned();
    let awaits = api.service.read(&api.service.resolve_plan(&id)?, approval_note)?;
    if awaits.is_some() {
        value["awaits_approval"] = json!(true);
    }
    if let Some(all) = value["notes"].as_array_mut() {
        all.extend(notes.into_iter().chain(awaits).map(Value::from));
    }
    let location = format!("/api/v1/plans/{id}");
    let reply = Versioned { status: StatusCode::CREATED, ..Versioned::at(value, version) };
    let mut response = reply.into_response();
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// Derives the id of a plan from an idempotency key: the same key from the same caller gives the same id.
fn keyed_id(by: &Caller, key: &str) -> PlanId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let sum = ring::digest::digest(&ring::digest::SHA256, format!("{}\n{key}", by.actor).as_bytes());
    let text: String =
        sum.as_ref().iter().take(15).map(|byte| ALPHABET[usize::from(byte % 32)] as char).collect();
    PlanId::new(format!("k{text}")).unwrap_or_else(|never| unreachable!("{never}"))
}

/// Reads one plan, from a text in any format or from native JSON, and notes for its author that are not errors.
pub(super) fn read(
    text: Option<String>,
    format: Option<&str>,
    plan: Option<Value>,
) -> Result<(Draft, Vec<String>), Problem> {
    let dialect = parse_format(format)?;
    let (text, dialect) = match (text, plan) {
        (Some(text), None) => (text, dialect),
        (None, Some(plan)) => (plan.to_string(), Some(Dialect::Native)),
        (_, _) => {
            return Err(Problem::bad("send either text or plan", "send {\"text\": …} or {\"plan\": {…}}"));
        }
    };
    let Reading { drafts, problems, notes, .. } = waypost_formats::read(&text, dialect, None)
        .map_err(|error| ServiceError::Unreadable { name: TEXT_NAME.to_owned(), error })?;
    if !problems.is_empty() {
        return Err(ServiceError::Invalid { subject: Subject::Text, problems }.into());
    }
    Ok((only_plan(TEXT_NAME, drafts)?, notes))
}

/// Parses the name of a format. Without a name, the format is detected.
pub(super) fn parse_format(format: Option<&str>) -> Result<Option<Dialect>, Problem> {
    let dialect = format.map(str::parse::<Dialect>).transpose();
    dialect.map_err(|error| Problem::bad(error.to_string(), "omit `format` to have it detected"))
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A plan without its tasks: its summary, with its questions, running tasks and failed tasks.
#[derive(Debug, Serialize)]
struct PlanView {
    #[serde(flatten)]
    summary: PlanSummary,
    goal: String,
    body: String,
    #[serde(rename = "summary")]
    outcome: String,
    reason: String,
    token_budget: Option<u64>,
    tokens_used: i64,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    questions: Vec<Value>,
    running: Vec<Value>,
    failed: Vec<TaskId>,
    state: PlanStatus,
    approval: Value,
    /// The number of questions that a merge left open.
    #[serde(skip_serializing_if = "is_zero")]
    conflicts: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// `GET /plans/{plan}`
pub(crate) fn get(api: &Api, (PlanPath(id), headers): (PlanPath, HeaderMap)) -> Result<Response, Problem> {
    let (statuses, is_shared) = (api.service.plan_statuses()?, api.service.is_shared(&id)?);
    let (view, facts, may_change) = api.service.view(&id, |plan, warnings| {
        let has_progress = plan.running().any(|task| task.state.progress.is_some());
        let view = PlanView::of(plan, statuses.of_plan(plan), warnings);
        // Workers and other plans tell, too.
        let waits = matches!(view.state.sign, StatusSign::Idle | StatusSign::Reported | StatusSign::Blocked);
        let may_change = has_progress || waits || is_shared || !warnings.is_empty();
        (view, ApprovalFacts::of(plan), may_change)
    })?;
    let version = facts.version();
    // Progress, workers, damage and open questions change without creating a version.
    if !may_change && is_unchanged(&headers, version) {
        let unchanged = [(axum::http::header::ETAG, tag(version))];
        return Ok((StatusCode::NOT_MODIFIED, unchanged).into_response());
    }
    let approval = api.approvals.describe(api.plans(), &id, facts)?;
    let conflicts = if is_shared { api.service.question_count(&id)? } else { 0 };
    let state = api.service.with_external_wait(&id, view.state)?;
    Ok(Versioned::at(PlanView { approval, conflicts, state, ..view }, version).into_response())
}

impl PlanView {
    /// Returns what a plan itself tells; its approval is in its history.
    fn of(plan: &Plan, status: PlanStatus, warnings: &[String]) -> Self {
        let (spec, state) = (plan.spec(), plan.state());
        let questions = plan.asking().take(NAMES_MAX).filter_map(|task| {
            let question = task.state.question()?;
            Some(json!({
                "task": task.spec.id,
                "question": question.text,
                "choices": question.choices,
                "digest": question_digest(plan.id(), task),
            }))
        });
        let running = plan.running().take(NAMES_MAX).map(|task| {
            json!({
                "task": task.spec.id,
                "attempt": task.state.attempt,
                "worker": task.state.worker,
                "since": task.state.started_at,
                "progress": task.state.progress,
            })
        });
        let failed = plan.tasks().filter(|(task, _)| task.state.status == Status::Failed);
        Self {
            summary: PlanSummary::detailed(plan),
            goal: spec.goal.clone(),
            body: spec.body.clone(),
            outcome: state.summary.clone(),
            reason: state.reason.clone(),
            token_budget: spec.token_budget,
            tokens_used: state.tokens_used,
            started_at: state.started_at,
            finished_at: state.finished_at,
            questions: questions.collect(),
            running: running.collect(),
            failed: failed.take(FAILED_MAX).map(|(task, _)| task.spec.id.clone()).collect(),
            state: status,
            approval: Value::Null,
            conflicts: 0,
            warnings: warnings.to_vec(),
        }
    }
}

/// Returns the critical path, truncated to `NAMES_MAX` tasks.
pub(super) fn longest_chain(plan: &Plan) -> Vec<TaskId> {
    let mut chain = critical_path(&plan.outline()).unwrap_or_default();
    chain.truncate(NAMES_MAX);
    chain
}

/// Changes of a plan's fields; an empty text clears.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanPatch {
    title: Option<String>,
    goal: Option<String>,
    status: Option<String>,
    owner: Option<String>,
    queue: Option<String>,
    body: Option<String>,
    #[schemars(with = "Option<u64>")]
    #[serde(default, deserialize_with = "nullable")]
    token_budget: Option<Option<u64>>,
}

/// `PATCH /plans/{plan}`
pub(crate) fn revise(api: &Api, Write { plan: id, guard, by, body: patch }: Write<PlanPatch>) -> Reply {
    let PlanPatch { title, goal, status, owner, queue, body, token_budget } = patch;
    let changes = PlanChanges { title, goal, status, owner, queue, token_budget, body, foreign: None };
    if changes == PlanChanges::default() {
        return Err(Problem::bad("no changes to the plan are given", "name the fields to change"));
    }
    let reply = api.service.edit(&by, &id, vec![EditOp::RevisePlan(Box::new(changes))], guard)?;
    Ok(Versioned::written(&reply))
}

/// Selects between archiving and purging.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteQuery {
    #[serde(default)]
    purge: bool,
}

type DeleteRequest = (PlanPath, Path<Vec<(String, String)>>, IfMatch, Writer, Parameters<DeleteQuery>);

/// `DELETE /plans/{plan}`: archives the plan; with `purge=true`, deletes it permanently, which only a person can.
pub(crate) fn delete(
    api: &Api,
    (PlanPath(id), Path(path), IfMatch(guard), Writer(by), Parameters(query)): DeleteRequest,
) -> Result<Response, Problem> {
    if query.purge {
        // What cannot be undone needs the whole id.
        if parameter(&path, "plan") != id.as_str() {
            return Err(ServiceError::no_such_plan(parameter(&path, "plan")).into());
        }
        api.service.purge(&by, &id)?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let reply = api.service.archive(&by, &id, guard)?;
    Ok(Versioned::written(&reply).into_response())
}
