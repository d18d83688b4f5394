//! Replies: JSON with the version as its ETag, or a problem document (RFC 9457). Also words the service's hints for
//! HTTP.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};
use waypost_core::{Problem as PlanProblem, ProblemLocation, Refusal};
use waypost_service::{Hint, PersonAct, ServiceError, SharingError, WriteReply, WrongOperation};
use waypost_store::{StoreError, WriteError};
use waypost_text::{escape_json, sanitize, shell_word};

use crate::load_limits::Overload;

/// Seconds after which a caller may retry when the server is busy, or answers enough of its requests already.
const RETRY_SECONDS: &str = "2";

/// The media type of a problem document.
const KIND: &str = "application/problem+json";

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: String,
    detail: String,
    hint: String,
    more: Box<Map<String, Value>>,
}

impl From<Overload> for Problem {
    fn from(overload: Overload) -> Self {
        let (status, hint) = match overload {
            Overload::LargeRequests => (StatusCode::TOO_MANY_REQUESTS, "wait for an answer, then retry"),
            Overload::Streams => (StatusCode::TOO_MANY_REQUESTS, "close one, or use another token"),
            Overload::AllStreams | Overload::NoPermit => (StatusCode::SERVICE_UNAVAILABLE, "retry later"),
        };
        Self::new(status, overload.to_string(), hint)
    }
}

impl Problem {
    /// A problem of the request itself. Its code is the name of the status.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let code = status.canonical_reason().unwrap_or("error").to_lowercase().replace(' ', "_");
        let (detail, hint) = (detail.into(), hint.into());
        let (detail, hint) = (sanitize(&detail).into_owned(), sanitize(&hint).into_owned());
        Self { status, code, detail, hint, more: Box::default() }
    }

    pub(crate) fn bad(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail, hint)
    }

    /// Content that is not valid: each problem with its place, and its hint.
    pub(crate) fn invalid(problems: Vec<(String, String)>) -> Self {
        let (detail, hint) = match problems.as_slice() {
            [(words, hint)] => (words.clone(), hint.clone()),
            several => (
                format!("what would be written has {} problems", several.len()),
                hint_text(Hint::FixProblems),
            ),
        };
        let entry =
            |(words, hint): &(String, String)| json!({ "message": sanitize(words), "hint": sanitize(hint) });
        let entries = problems.iter().map(entry).collect();
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail, hint);
        let more = Box::new(Map::from_iter([("problems".to_owned(), entries)]));
        Self { code: "invalid".to_owned(), more, ..problem }
    }

    /// One problem for several operations, so that the caller can fix all of them at once. A single one stays as it is.
    pub(crate) fn of_operations(mut problems: Vec<Self>) -> Self {
        if problems.len() == 1 {
            return problems.remove(0);
        }
        let entries = |problem: &Self| match problem.more.get("problems") {
            Some(Value::Array(entries)) => entries.clone(),
            Some(_) | None => {
                vec![json!({ "code": problem.code, "message": problem.detail, "hint": problem.hint })]
            }
        };
        let detail = format!("{} operations are wrong", problems.len());
        let entries = problems.iter().flat_map(entries).collect();
        let is_alike = |pair: &[Self]| (pair[0].status, &pair[0].code) == (pair[1].status, &pair[1].code);
        let (status, code) = match problems.windows(2).all(is_alike).then(|| problems.pop()).flatten() {
            Some(last) => (last.status, last.code),
            None => (StatusCode::UNPROCESSABLE_ENTITY, "invalid".to_owned()),
        };
        let more = Box::new(Map::from_iter([("problems".to_owned(), Value::Array(entries))]));
        Self { code, more, ..Self::new(status, detail, hint_text(Hint::FixProblems)) }
    }

    /// Names the place of a problem that the service found.
    fn placed(mut self, place: &str) -> Self {
        self.detail = format!("{place}: {}", self.detail);
        for problem in self.more.get_mut("problems").and_then(Value::as_array_mut).into_iter().flatten() {
            let message = problem["message"].as_str().unwrap_or_default();
            problem["message"] = format!("{place}: {message}").into();
        }
        self
    }

    pub(crate) fn not_found(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail, hint)
    }

    /// Replaces the hint.
    pub(crate) fn with_hint(self, hint: &str) -> Self {
        Self { hint: hint.to_owned(), ..self }
    }

    /// Turns an error that is not a problem document into one, keeping its other headers. Returns all other responses
    /// unchanged.
    pub(crate) fn from_error_response(response: Response) -> Response {
        let status = response.status();
        let is_problem = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == KIND);
        if is_problem || !(status.is_client_error() || status.is_server_error()) {
            return response;
        }
        let (detail, hint) = match status {
            StatusCode::UNAUTHORIZED => {
                ("missing or unknown token", "send Authorization: Bearer TOKEN, or sign in")
            }
            StatusCode::FORBIDDEN => (
                "not allowed for this host, origin, session or token",
                "call the server by its own name; a page writes with its own Origin",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => ("the body is too large", "send less at a time"),
            StatusCode::REQUEST_TIMEOUT => ("the body took too long", "retry"),
            StatusCode::SERVICE_UNAVAILABLE => ("server is at capacity", "retry"),
            _ => ("request failed", "see /api/v1/openapi.json"),
        };
        let mut problem = Self::new(status, detail, hint).into_response();
        for (name, value) in response.headers() {
            if *name != CONTENT_TYPE && *name != CONTENT_LENGTH {
                problem.headers_mut().insert(name, value.clone());
            }
        }
        problem
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        if let ServiceError::WrongOperations(wrong) = error {
            let placed =
                |one: WrongOperation| Self::from(one.error).placed(&format!("operations[{}]", one.index));
            return Self::of_operations(wrong.into_iter().map(placed).collect());
        }
        let mut more = Map::new();
        let mut facts = error.facts();
        if let ServiceError::Conflict(conflict) = &error {
            let conflict = json!({
                "known": conflict.known,
                "current": conflict.current,
                "differences": conflict.differences,
                "differences_total": conflict.differences_total,
                "writers": conflict.writers,
            });
            more.insert("conflict".to_owned(), conflict);
        }
        if let ServiceError::Invalid { problems, .. } = &error {
            facts.shift_remove("problems");
            more.insert("problems".to_owned(), problems.iter().map(problem_entry).collect());
        }
        if !facts.is_empty() {
            // Nested, because facts can be called `status` or `detail`, too.
            more.insert("facts".to_owned(), Value::Object(facts));
        }
        let problem = Self::new(status_of(&error), error.to_string(), hint_of(&error));
        Self { code: error.code(), more: Box::new(more), ..problem }
    }
}

impl From<SharingError> for Problem {
    fn from(error: SharingError) -> Self {
        let (code, detail) = (error.code(), error.to_string());
        let (status, hint) = match error {
            SharingError::Service(error) => return error.into(),
            SharingError::NeedsPerson { .. } => {
                (StatusCode::FORBIDDEN, "ask a person to do it, in the dashboard or with a person's token")
            }
            SharingError::NotShared(_) => (StatusCode::NOT_FOUND, "a person shares it with `waypost share`"),
            SharingError::NoSuchQuestion { .. } => {
                (StatusCode::NOT_FOUND, "GET /api/v1/conflicts lists the open questions")
            }
            SharingError::QuestionChanged(_) => {
                (StatusCode::CONFLICT, "read the open questions again (GET /api/v1/conflicts)")
            }
            SharingError::WhichQuestion { .. } => (StatusCode::CONFLICT, "send the digest of one of them"),
            SharingError::BadAnswer(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "`answers` of the question lists the ways to answer it")
            }
            SharingError::Secrets(_) => {
                (StatusCode::CONFLICT, "remove it, or name an environment variable instead")
            }
            SharingError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "retry"),
            SharingError::Taken(_) | SharingError::Newer(_) => {
                (StatusCode::CONFLICT, "ask the operator of this server to run `waypost sync`")
            }
            SharingError::Git(_) | SharingError::NoBranch { .. } | SharingError::Records { .. } => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "ask the operator of this server to run `waypost sync` and `waypost doctor`",
            ),
        };
        Self { code, ..Self::new(status, detail, hint) }
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        ServiceError::from(error).into()
    }
}

fn status_of(error: &ServiceError) -> StatusCode {
    match error {
        ServiceError::Refused(Refusal::NoSuchTask { .. })
        | ServiceError::NoSuchPlan(_)
        | ServiceError::NoSuchVersion { .. } => StatusCode::NOT_FOUND,
        ServiceError::Refused(
            Refusal::OnlyAPerson { .. }
            | Refusal::HumanGate { .. }
            | Refusal::NotItsTask { .. }
            | Refusal::NotItsPlan { .. },
        )
        | ServiceError::NotForWorkers { .. }
        | ServiceError::NeedsPerson { .. }
        | ServiceError::NeedsTerminal { .. }
        | ServiceError::NeedsStrongerProof { .. }
        | ServiceError::NotThatActor { .. } => StatusCode::FORBIDDEN,
        ServiceError::Refused(_)
        | ServiceError::NotApproved { .. }
        | ServiceError::Ambiguous { .. }
        | ServiceError::IdUsed(_)
        | ServiceError::HeldByOtherSession { .. }
        | ServiceError::DoubtfulDone { .. }
        | ServiceError::ChangedSinceSeen { .. }
        | ServiceError::QuestionChanged { .. }
        | ServiceError::NotAttested(_)
        | ServiceError::UnresolvedExecutor { .. } => StatusCode::CONFLICT,
        ServiceError::Conflict(_) => StatusCode::PRECONDITION_FAILED,
        ServiceError::SeenMissing { .. } | ServiceError::QuestionNotNamed { .. } => {
            StatusCode::PRECONDITION_REQUIRED
        }
        ServiceError::Invalid { .. }
        | ServiceError::WrongOperations(_)
        | ServiceError::Unreadable { .. }
        | ServiceError::AnswerUnclear { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        ServiceError::NotOnePlan { .. } | ServiceError::Store(StoreError::BadCursor(_)) => {
            StatusCode::BAD_REQUEST
        }
        ServiceError::Store(StoreError::Busy | StoreError::HolderStopped { .. }) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ServiceError::Store(_) | ServiceError::Configuration { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns what to do next, in paths and fields of the API.
fn hint_of(error: &ServiceError) -> String {
    let ServiceError::Store(store) = error else { return hint_text(error.hint()) };
    match store {
        // The store's own hints are commands for the operator of the server.
        StoreError::Busy => "retry".to_owned(),
        StoreError::HolderStopped { .. } => {
            "a person has to continue or end that process on the server".to_owned()
        }
        StoreError::BadCursor(_) => {
            "send `next` of the previous page as `after`, with the same `sort`".to_owned()
        }
        StoreError::Files { .. }
        | StoreError::DiskFull { .. }
        | StoreError::StoreRemoved { .. }
        | StoreError::Unreachable(_)
        | StoreError::NotADatabase(_)
        | StoreError::TooNew { .. }
        | StoreError::BadLocation(_) => hint_text(Hint::CheckStore),
        StoreError::Database(_) | StoreError::Corrupt { .. } | StoreError::Pruned { .. } => {
            hint_text(error.hint())
        }
    }
}

/// Returns what to do next. The person who reads it has the dashboard or this API, and not the server's terminal.
pub(super) fn hint_text(hint: Hint) -> String {
    match hint {
        Hint::None => String::new(),
        Hint::PreviewAgain(plan) => {
            format!("GET /api/v1/plans/{plan}/preview returns both; look at it, then send them")
        }
        Hint::ReadQuestion(act) => {
            let (plan, task) = (&act.plan, act.task.as_deref().unwrap_or_default());
            format!(
                "read it (GET /api/v1/plans/{plan}/tasks/{task}, `question_digest`), then send its digest with the answer"
            )
        }
        Hint::ListPlans => "GET /api/v1/plans lists the plans".to_owned(),
        Hint::ListVersions(plan) => format!("GET /api/v1/plans/{plan}/history lists the versions"),
        Hint::LongerId => "send the whole id".to_owned(),
        Hint::OtherId => "choose another id, or omit it to get a new one".to_owned(),
        Hint::ReadChanges { current, .. } => {
            format!("read the changes in `conflict`, then write again with If-Match: \"{current}\"")
        }
        Hint::FixProblems => "fix the listed problems and retry".to_owned(),
        Hint::NameFormat => "name the format in `format`".to_owned(),
        Hint::OtherFormat => "choose another `format`".to_owned(),
        Hint::FixText => "fix the text at that position".to_owned(),
        Hint::RightText => "check that `text` is a plan of this format".to_owned(),
        Hint::OnePlan => "send one plan at a time".to_owned(),
        Hint::TakeOver => {
            "take another task, or if that session is gone, send the same with \"take_over\": true".to_owned()
        }
        Hint::FailOrBeSure => {
            "if it was not done, use the action `fail`; if it is done, send \"sure\": true".to_owned()
        }
        Hint::AskPerson(act) | Hint::ProvePresence(act) | Hint::UseOwnName(act) => {
            format!("ask a person to {act}, in the dashboard or with a person's token")
        }
        Hint::TrustRemote => {
            "ask the operator of this server to trust the remote that the plan is from".to_owned()
        }
        Hint::LeaveToOthers => "an agent or a person does this, with a token of its own".to_owned(),
        Hint::Sign { act: PersonAct { verb, plan, task }, touch } => {
            let task = task.map(|task| format!(" {}", shell_word(task.as_str()))).unwrap_or_default();
            let key = if touch { " with a security key" } else { "" };
            format!("a browser cannot sign: run `waypost {verb} {plan}{task} --sign` in a terminal{key}")
        }
        Hint::Approve(plan) | Hint::RunOrApprove(plan) => {
            format!("a person approves plan {plan}, in the dashboard or with a person's token")
        }
        Hint::ApproveOrRestore(plan) => {
            format!("approve plan {plan} again, or restore the worker's configuration")
        }
        Hint::ApproveOrAllowSigner(plan) => {
            format!("approve plan {plan} on the worker's account, or add the signer to its allowed signers")
        }
        Hint::AnswerAgain { plan, task } => {
            format!("a person retries task {task} of plan {plan}, and answers it again")
        }
        Hint::TrustStore => "ask the operator of this server whether the store was replaced".to_owned(),
        Hint::StartPlan => "start the plan first, with the action `start`".to_owned(),
        Hint::DropDependencies => {
            "change what they depend on first, or remove it with \"detach\": true".to_owned()
        }
        Hint::CheckStore => "ask the operator of this server to check its store".to_owned(),
        Hint::ReadLatest(plan) => format!("GET /api/v1/plans/{plan} returns its latest state"),
        // Nobody signs over HTTP.
        Hint::NameKey | Hint::SignPortable => "sign it in a terminal".to_owned(),
        Hint::Text(text) => text,
    }
}

fn problem_entry(problem: &PlanProblem) -> Value {
    let mut value = json!({ "message": sanitize(&problem.to_string()), "hint": sanitize(&problem.hint()) });
    if let ProblemLocation::Task(task) = &problem.place {
        value["task"] = json!(task);
    }
    value
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("error"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if !self.hint.is_empty() {
            body["hint"] = json!(self.hint);
        }
        if let Value::Object(fields) = &mut body {
            fields.extend(*self.more);
        }
        let body = escape_json(&body.to_string()).into_owned();
        let mut response = (self.status, Body::from(body)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
        }
        response
    }
}

/// What most requests are answered with.
pub(crate) type Reply = Result<Versioned<Value>, Problem>;

/// JSON, with the version of the plan that it describes.
pub(crate) struct Versioned<T> {
    pub(crate) status: StatusCode,
    pub(crate) body: T,
    pub(crate) version: Option<u64>,
}

impl<T> Versioned<T> {
    pub(crate) fn of(body: T) -> Self {
        Self { status: StatusCode::OK, body, version: None }
    }

    pub(crate) fn at(body: T, version: u64) -> Self {
        Self { version: Some(version), ..Self::of(body) }
    }
}

impl Versioned<Value> {
    /// Adds damage to the files of the plan that the body describes.
    pub(crate) fn warned(mut self, warnings: &[String]) -> Self {
        if !warnings.is_empty() {
            self.body["warnings"] = json!(warnings);
        }
        self
    }

    /// What was written to a plan.
    pub(crate) fn written(reply: &WriteReply) -> Self {
        Self::at(written(reply), reply.version)
    }
}

impl<T: Serialize> IntoResponse for Versioned<T> {
    fn into_response(self) -> Response {
        let text = match serde_json::to_string(&self.body) {
            Ok(text) => escape_json(&text).into_owned(),
            Err(error) => {
                return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "")
                    .into_response();
            }
        };
        let mut response = (self.status, Body::from(text)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(tag) = self.version.and_then(|version| HeaderValue::from_str(&tag(version)).ok()) {
            headers.insert(ETAG, tag);
        }
        response
    }
}

/// Renders a write, with what the author should know although it is valid.
pub(crate) fn written(reply: &WriteReply) -> Value {
    json!({
        "id": reply.plan,
        "version": reply.version,
        "changed": reply.changed,
        "warnings": reply.warnings,
        "notes": reply.notes(),
    })
}

/// Returns a version as an ETag.
pub(crate) fn tag(version: u64) -> String {
    format!("\"{version}\"")
}
