//! Plans as a whole: list, make, look, change the author's words, put away.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use waypost_core::{Command, Draft, Phase, Plan, PlanChanges, PlanId, critical_path};
use waypost_formats::{Dialect, Reading};
use waypost_service::admission as admit;
use waypost_store::{Head, NewPlan, Query, Shelf, Sort, WriteError};

use super::response::{Problem, Versioned, tag};
use super::approval_state::approval;
use super::extract::{Body, IfMatch, Parameters, PlanPath, Writer, is_unchanged, page_size, nullable};
use super::{Api, run_blocking};

/// Plans on a page, unless the caller says otherwise, and at the most.
const PLANS_DEFAULT: usize = 50;
const PLANS_MAX: usize = 500;
/// Names of a plan's tasks that are told in a list.
const NAMES_MAX: usize = 500;
/// Characters of an idempotency key.
const KEY_CHARACTERS_MAX: usize = 200;

/// Which plans to list.
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
}

impl PlanQuery {
    fn query(self) -> Result<Query, Problem> {
        let word = |name: &str, known: &str| Problem::bad(format!("{name} is not one of {known}"), "");
        let phases = self.phase.as_deref().unwrap_or_default().split(',').filter(|word| !word.is_empty());
        let phases = phases.map(phase).collect::<Result<Vec<_>, _>>()?;
        let shelf = match self.archived.as_deref() {
            None | Some("false") => Shelf::Current,
            Some("true") => Shelf::Archived,
            Some("all") => Shelf::All,
            Some(_) => return Err(word("archived", "true, false, all")),
        };
        let sort = match self.sort.as_deref() {
            None | Some("updated") => Sort::Updated,
            Some("attention") => Sort::Attention,
            Some("created") => Sort::Created,
            Some("title") => Sort::Title,
            Some("id") => Sort::Id,
            Some("urgency") => Sort::Urgency,
            Some(_) => return Err(word("sort", "attention, updated, created, title, id, urgency")),
        };
        let limit = page_size(self.limit, PLANS_DEFAULT, PLANS_MAX)?;
        let (status, owner, queue) = (self.status, self.owner, self.queue);
        let text = self.text.filter(|text| !text.is_empty());
        Ok(Query {
            shelf,
            phases,
            status,
            owner,
            queue,
            offers_work: false,
            text,
            sort,
            limit,
            after: self.after,
        })
    }
}

fn phase(word: &str) -> Result<Phase, Problem> {
    let known = [
        Phase::Draft,
        Phase::AwaitingApproval,
        Phase::Active,
        Phase::Paused,
        Phase::Completed,
        Phase::Failed,
        Phase::Cancelled,
    ];
    let words = || known.map(Phase::word).join(", ");
    known
        .into_iter()
        .find(|phase| phase.word() == word)
        .ok_or_else(|| Problem::bad(format!("{word:?} is no phase"), format!("one of {}", words())))
}

/// `GET /plans`
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    Parameters(listing): Parameters<PlanQuery>,
) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, move |api| {
        let page = api.plans.heads(&listing.query()?)?;
        Ok(Versioned::of(json!({ "plans": page.items, "total": page.total, "next": page.next })))
    })
    .await
}

/// A plan that is to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateBody {
    /// The plan in any format.
    text: Option<String>,
    /// The format; otherwise it is found out.
    format: Option<String>,
    /// The plan in the native format.
    plan: Option<Value>,
    /// The id that it should have.
    id: Option<String>,
}

/// `POST /plans`
pub(crate) async fn create(
    State(api): State<Arc<Api>>,
    writer: Writer,
    headers: HeaderMap,
    Body(new): Body<CreateBody>,
) -> Result<Response, Problem> {
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap_or_default().to_owned());
    if key.as_ref().is_some_and(|key| key.is_empty() || key.chars().count() > KEY_CHARACTERS_MAX) {
        return Err(Problem::bad(
            format!("Idempotency-Key has 1 to {KEY_CHARACTERS_MAX} plain characters"),
            "",
        ));
    }
    run_blocking(api, move |api| {
        let mut draft = read(new.text, new.format.as_deref(), new.plan)?;
        let said = new
            .id
            .map(|id| PlanId::new(id).map_err(|error| Problem::bad(error.to_string(), "")))
            .transpose()?;
        let keyed = key.map(|key| keyed_id(&writer, &key));
        let id = said.or_else(|| draft.id.take()).or_else(|| keyed.clone());
        draft.id = None;
        let problems = admit::problems(&api.config, &draft);
        let (forbidden, unknown): (Vec<_>, Vec<_>) = problems.into_iter().partition(admit::forbids_writing);
        if !forbidden.is_empty() {
            return Err(Problem::invalid("the configuration does not let it be written", &forbidden));
        }
        let notes: Vec<String> = unknown
            .iter()
            .map(|problem| format!("by the configuration here this cannot run: {problem}"))
            .collect();
        let approval_required = api.config.approval.required();
        let made = api.plans.create(NewPlan { id: id.clone(), by: writer.0, draft, approval_required });
        let (plan, version) = match (made, keyed) {
            (Ok(committed), _) => (committed.plan, committed.version),
            // The same key again: what was made then is the answer.
            (Err(WriteError::Refused(waypost_core::Refusal::AlreadyExists {})), Some(keyed))
                if id.as_ref() == Some(&keyed) =>
            {
                let version = api.plans.look(&keyed, Plan::version)?;
                (keyed, version)
            }
            (Err(error), _) => return Err(error.into()),
        };
        let mut response = Versioned {
            status: StatusCode::CREATED,
            ..Versioned::at(json!({ "id": plan, "version": version, "notes": notes }), version)
        }
        .into_response();
        if let Ok(place) = HeaderValue::from_str(&format!("/api/v1/plans/{plan}")) {
            response.headers_mut().insert(LOCATION, place);
        }
        Ok(response)
    })
    .await
}

/// The id of the plan that somebody makes with a key: the same key by the same caller is the same plan.
fn keyed_id(writer: &Writer, key: &str) -> PlanId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let sum = ring::digest::digest(&ring::digest::SHA256, format!("{}\n{key}", writer.0).as_bytes());
    let text: String =
        sum.as_ref().iter().take(15).map(|byte| ALPHABET[usize::from(byte % 32)] as char).collect();
    PlanId::new(format!("k{text}")).unwrap_or_else(|never| unreachable!("{never}"))
}

/// Reads one plan from a text in any format.
pub(super) fn read(
    text: Option<String>,
    format: Option<&str>,
    plan: Option<Value>,
) -> Result<Draft, Problem> {
    let dialect = format.map(str::parse::<Dialect>).transpose();
    let dialect =
        dialect.map_err(|error| Problem::bad(error.to_string(), "leave it out to have it found out"))?;
    let (text, dialect) = match (text, plan) {
        (Some(text), None) => (text, dialect),
        (None, Some(plan)) => (plan.to_string(), Some(Dialect::Native)),
        (_, _) => {
            return Err(Problem::bad(
                "neither text nor plan was sent, or both",
                "send {\"text\": …} or {\"plan\": {…}}",
            ));
        }
    };
    let reading = waypost_formats::read(&text, dialect, None);
    let Reading { mut drafts, problems, .. } = reading.map_err(|error| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string(), "name the format, or mend the text")
    })?;
    if !problems.is_empty() {
        return Err(Problem::invalid("the text is no sound plan of its format", &problems));
    }
    match (drafts.pop(), drafts.is_empty()) {
        (Some(draft), true) => Ok(draft),
        (_, _) => Err(Problem::bad("the text holds several plans, or none", "send one plan at a time")),
    }
}

/// `GET /plans/{plan}`
pub(crate) async fn get(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    run_blocking(api, move |api| {
        let (value, version) = api.plans.look(&id, |plan| (whole(plan), plan.version()))?;
        if is_unchanged(&headers, version) {
            let unchanged = [(axum::http::header::ETAG, tag(version))];
            return Ok((StatusCode::NOT_MODIFIED, unchanged).into_response());
        }
        let mut value = value;
        let approval = approval(api, &id)?;
        value.insert("approval".to_owned(), approval);
        Ok(Versioned::at(Value::Object(value), version).into_response())
    })
    .await
}

/// The head of a plan, and what a person looks for first.
fn whole(plan: &Plan) -> Map<String, Value> {
    let mut fields = match json!(Head::of(plan)) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let (spec, state) = (plan.spec(), plan.state());
    fields.insert("goal".to_owned(), json!(spec.goal));
    fields.insert("body".to_owned(), json!(spec.body));
    fields.insert("summary".to_owned(), json!(state.summary));
    fields.insert("reason".to_owned(), json!(state.reason));
    fields.insert("token_budget".to_owned(), json!(spec.token_budget));
    fields.insert("tokens_used".to_owned(), json!(state.tokens_used));
    fields.insert("started_at".to_owned(), json!(state.started_at));
    fields.insert("finished_at".to_owned(), json!(state.finished_at));
    let questions = plan.asking().take(NAMES_MAX).filter_map(|task| {
        let question = task.state.question()?;
        Some(json!({ "task": task.spec.id, "question": question.text, "choices": question.choices }))
    });
    fields.insert("questions".to_owned(), questions.collect());
    let running = plan.running().take(NAMES_MAX).map(|task| {
        json!({
            "task": task.spec.id,
            "attempt": task.state.attempt,
            "worker": task.state.worker,
            "since": task.state.started_at,
            "progress": task.state.progress,
        })
    });
    fields.insert("running".to_owned(), running.collect());
    let failed = plan.tasks().filter(|(task, _)| task.state.status == waypost_core::Status::Failed);
    let failed = failed.take(20).map(|(task, _)| json!(task.spec.id));
    fields.insert("failed".to_owned(), failed.collect());
    fields
}

/// The longest chain of tasks that wait for one another, as far as it is told.
pub(super) fn longest_chain(plan: &Plan) -> Vec<waypost_core::TaskId> {
    let mut chain = critical_path(&plan.outline()).unwrap_or_default();
    chain.truncate(NAMES_MAX);
    chain
}

/// Changes of what the author says of a plan; an empty text clears.
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
pub(crate) async fn revise(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    IfMatch(known): IfMatch,
    writer: Writer,
    Body(words): Body<PlanPatch>,
) -> Result<Versioned<Value>, Problem> {
    let PlanPatch { title, goal, status, owner, queue, body, token_budget } = words;
    let changes = PlanChanges { title, goal, status, owner, queue, token_budget, body, foreign: None };
    run_blocking(api, move |api| {
        let command = Command::RevisePlan(Box::new(changes));
        let committed = api.write(&writer.0, &id, vec![command], known)?;
        Ok(Versioned::at(json!({ "id": id, "version": committed.version }), committed.version))
    })
    .await
}

/// How a plan is to go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteQuery {
    #[serde(default)]
    purge: bool,
}

/// `DELETE /plans/{plan}`: puts it away; with `purge=true` a person forgets it for good.
pub(crate) async fn delete(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    IfMatch(known): IfMatch,
    writer: Writer,
    Parameters(going): Parameters<DeleteQuery>,
) -> Result<Response, Problem> {
    run_blocking(api, move |api| {
        if going.purge {
            api.plans.purge(&id, &writer.0)?;
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let committed = api.write(&writer.0, &id, vec![Command::Archive], known)?;
        Ok(Versioned::at(json!({ "id": id, "version": committed.version }), committed.version).into_response())
    })
    .await
}
