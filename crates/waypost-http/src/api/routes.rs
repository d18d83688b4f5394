//! The routes under `/api/v1`, each with its handler and its documentation.

use std::sync::Arc;

use axum::extract::{FromRequest, State};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::on;
use axum::{Extension, Router};
use serde_json::Value;

use super::openapi::{Answer, DELETE, GET, PATCH, POST, PUT, RouteDoc, Verb, document, get};
use super::response::{Problem, Versioned};
use super::state::{Api, run_blocking, run_large};
use super::{
    actions, approval, edits, events, graph, history, inbox, log, me, next, plans, tasks, validate, workers,
};

use crate::load_limits::RequestPermit;

/// Creates the router of everything under `/api/v1`.
pub(crate) fn router(api: &Arc<Api>) -> Router {
    all()
        .router
        .fallback(|| async { Problem::not_found("no such path", "GET /api/v1/openapi.json lists the paths") })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method not allowed",
                "GET /api/v1/openapi.json lists the methods of each path",
            )
        })
        .with_state(Arc::clone(api))
}

/// Returns the OpenAPI document of the API.
pub fn openapi() -> Value {
    document(&all().docs)
}

/// `GET /openapi.json`
async fn served() -> Versioned<Value> {
    Versioned::of(openapi())
}

/// All routes, and their documentation.
#[derive(Default)]
struct Routes {
    router: Router<Arc<Api>>,
    docs: Vec<RouteDoc>,
}

impl Routes {
    /// A route whose handler waits for the store.
    fn blocking<T, M, R>(self, doc: RouteDoc, handler: fn(&Api, T) -> Result<R, Problem>) -> Self
    where
        T: FromRequest<Arc<Api>, M> + Send + 'static,
        M: 'static,
        R: IntoResponse + Send + 'static,
    {
        let handler = move |State(api): State<Arc<Api>>,
                            permit: Option<Extension<RequestPermit>>,
                            request: T| {
            let Extension(permit) = permit.unwrap_or_default();
            let is_large = permit.is_given();
            let work = move |api: &Api| {
                let _until_it_is_done = permit;
                handler(api, request)
            };
            async move { if is_large { run_large(api, work).await } else { run_blocking(api, work).await } }
        };
        self.add(doc, handler)
    }

    fn add<H: Handler<T, Arc<Api>>, T: 'static>(mut self, doc: RouteDoc, handler: H) -> Self {
        self.router = self.router.route(doc.path, on(doc.verb.1, handler));
        self.docs.push(doc);
        self
    }
}

fn all() -> Routes {
    of_tasks(of_plans(of_server(Routes::default())))
}

/// Documents a write to a plan, which `If-Match` guards.
fn write(verb: Verb, path: &'static str, summary: &'static str) -> RouteDoc {
    RouteDoc::new(verb, path, summary, Answer::Json("Written")).headers(&["If-Match"])
}

fn of_server(routes: Routes) -> Routes {
    let events = RouteDoc::new(GET, "/events", "Stream or list events", Answer::Events("EventPage"));
    let validate = RouteDoc::new(POST, "/validate", "Validate a plan", Answer::Json("Validity"));
    let claim = RouteDoc::new(POST, "/next", "Claim the next ready task", Answer::Json("Taken"));
    routes
        .add(get("/openapi.json", "Get this document", "Any"), served)
        .add(get("/me", "Get the caller and the server", "Me"), me::me)
        .blocking(get("/next", "List ready tasks", "TaskPage").query::<next::OfferQuery>(), next::list)
        .blocking(claim.body::<next::ClaimBody>(), next::take)
        .blocking(get("/inbox", "List everything that waits for a person", "Inbox"), inbox::inbox)
        .blocking(get("/workers", "List workers and what they run", "Workers"), workers::workers)
        .blocking(get("/agents", "List agents and what they work on", "Agents"), workers::agents)
        .blocking(get("/queues", "List configured queues", "Queues"), workers::queues)
        .blocking(get("/executors", "List configured executors", "Executors"), workers::executors)
        .blocking(validate.body::<validate::Text>(), validate::validate)
        .add(events.query::<events::EventQuery>().headers(&["Last-Event-ID"]), events::events)
}

fn of_plans(routes: Routes) -> Routes {
    let create = RouteDoc::new(POST, "/plans", "Create a plan", Answer::Made("Written"));
    let plan = get("/plans/{plan}", "Get a plan without its tasks", "Plan");
    let revise = write(PATCH, "/plans/{plan}", "Revise title, goal, status, owner, queue, body or budget");
    let delete = write(DELETE, "/plans/{plan}", "Archive a plan, or purge it (people only)");
    let content = write(PUT, "/plans/{plan}/content", "Update a plan from a text");
    let edits = write(POST, "/plans/{plan}/edits", "Edit a plan: all operations in one version");
    let restore = write(POST, "/plans/{plan}/restore", "Restore an earlier version");
    let action = write(POST, "/plans/{plan}/actions/{action}", "Approve, start, pause and so on");
    let approval = get("/plans/{plan}/approval", "Get what an approval would cover", "Approval");
    let preview = get("/plans/{plan}/preview", "Get everything that machines would run", "Preview");
    let graph = get("/plans/{plan}/graph", "Get the task graph with its layout", "Graph");
    let timeline = get("/plans/{plan}/timeline", "List the attempts of each task", "Timeline");
    let history = get("/plans/{plan}/history", "List versions", "History");
    let version = get("/plans/{plan}/versions/{version}", "Get an earlier version", "Any");
    let diff = get("/plans/{plan}/diff", "Compare two versions", "Differences");
    let export = RouteDoc::new(GET, "/plans/{plan}/export", "Export a plan in any format", Answer::Text);
    routes
        .blocking(get("/plans", "List plans", "PlanPage").query::<plans::PlanQuery>(), plans::list)
        .blocking(create.headers(&["Idempotency-Key"]).body::<plans::CreateBody>(), plans::create)
        .blocking(plan.headers(&["If-None-Match"]), plans::get)
        .blocking(revise.body::<plans::PlanPatch>(), plans::revise)
        .blocking(delete.query::<plans::DeleteQuery>(), plans::delete)
        .blocking(content.body::<edits::Content>(), edits::replace)
        .blocking(edits.body::<edits::Edits>(), edits::edit)
        .blocking(restore.body::<edits::RestoreBody>(), edits::restore)
        .blocking(action.body::<actions::ActionBody>(), actions::on_plan)
        .blocking(approval, approval::approval)
        .blocking(preview.query::<approval::PreviewQuery>(), approval::preview)
        .blocking(graph.query::<graph::GraphQuery>(), graph::graph)
        .blocking(timeline.query::<history::PageQuery>(), history::timeline)
        .blocking(history.query::<history::HistoryQuery>(), history::history)
        .blocking(version, history::version)
        .blocking(diff.query::<history::DiffQuery>(), history::diff)
        .blocking(export.query::<history::ExportQuery>(), history::export)
}

fn of_tasks(routes: Routes) -> Routes {
    let log = RouteDoc::new(GET, "/plans/{plan}/tasks/{task}/log", "Get the log of an attempt", Answer::Text);
    let path = "/plans/{plan}/tasks/{task}/actions/{action}";
    let action = write(POST, path, "Claim, finish, answer and so on");
    routes
        .blocking(
            get("/plans/{plan}/tasks", "List tasks", "TaskPage").query::<tasks::TaskQuery>(),
            tasks::list,
        )
        .blocking(get("/plans/{plan}/tasks/{task}", "Get a task", "Task"), tasks::get)
        .add(log.query::<log::LogQuery>().headers(&["Last-Event-ID"]), log::log)
        .blocking(action.body::<actions::ActionBody>(), actions::on_task)
}
