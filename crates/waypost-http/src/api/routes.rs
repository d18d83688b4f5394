//! What there is under `/api/v1`: each entry is a route, and a part of the document that describes it.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::on;
use serde_json::Value;

use super::openapi::{Answer, DELETE, GET, PATCH, POST, PUT, RouteDoc, document, get, route_doc};
use super::response::{Problem, Versioned};
use super::state::Api;
use super::{
    actions, approval, edits, events, graph, history, log, me, next, plans, tasks, validate, workers,
};

/// Everything under `/api/v1`.
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

/// The OpenAPI document of the API.
pub fn openapi() -> Value {
    document(&all().docs)
}

/// `GET /openapi.json`
async fn served() -> Versioned<Value> {
    Versioned::of(openapi())
}

/// All routes, and what is said of them.
#[derive(Default)]
struct Routes {
    router: Router<Arc<Api>>,
    docs: Vec<RouteDoc>,
}

impl Routes {
    fn add<H: Handler<T, Arc<Api>>, T: 'static>(mut self, doc: RouteDoc, handler: H) -> Self {
        self.router = self.router.route(doc.path, on(doc.verb.1, handler));
        self.docs.push(doc);
        self
    }
}

const KNOWN: &[&str] = &["If-Match"];

/// Everything that there is.
fn all() -> Routes {
    of_tasks(of_plans(of_server(Routes::default())))
}

fn of_server(routes: Routes) -> Routes {
    let page =
        route_doc(GET, "/events", "What happens, as a stream or as a page", Answer::Events("EventPage"));
    let validate = route_doc(POST, "/validate", "Whether a text is a sound plan", Answer::Json("Validity"));
    let take = route_doc(POST, "/next", "Takes the first of what can be worked on", Answer::Json("Taken"));
    routes
        .add(get("/openapi.json", "This document", "Any"), served)
        .add(get("/me", "Who calls, and what this server is", "Me"), me::me)
        .add(get("/next", "What can be worked on now", "TaskPage").query::<next::OfferQuery>(), next::list)
        .add(take.body::<next::ClaimBody>(), next::take)
        .add(get("/workers", "Workers and what they run", "Workers"), workers::workers)
        .add(get("/agents", "Agents and what they work on", "Agents"), workers::agents)
        .add(get("/queues", "Queues of the configuration", "Queues"), workers::queues)
        .add(get("/executors", "Executors of the configuration", "Executors"), workers::executors)
        .add(validate.body::<validate::Text>(), validate::validate)
        .add(page.query::<events::EventQuery>().headers(&["Last-Event-ID"]), events::events)
}

fn of_plans(routes: Routes) -> Routes {
    let written = Answer::Json("Written");
    let create =
        route_doc(POST, "/plans", "Makes a plan", Answer::Made("Written")).headers(&["Idempotency-Key"]);
    let revise =
        route_doc(PATCH, "/plans/{plan}", "Changes what the author doc of it", written).headers(KNOWN);
    let delete =
        route_doc(DELETE, "/plans/{plan}", "Puts it away; a person may purge it", written).headers(KNOWN);
    let content =
        route_doc(PUT, "/plans/{plan}/content", "Replaces its content by a text", written).headers(KNOWN);
    let edits =
        route_doc(POST, "/plans/{plan}/edits", "Operations that become one version", written).headers(KNOWN);
    let restore =
        route_doc(POST, "/plans/{plan}/restore", "Brings an earlier version back", written).headers(KNOWN);
    let action =
        route_doc(POST, "/plans/{plan}/actions/{action}", "Approve, start, pause and so on", written)
            .headers(KNOWN);
    let export = route_doc(GET, "/plans/{plan}/export", "The plan in any format", Answer::Text);
    routes
        .add(get("/plans", "Plans", "PlanPage").query::<plans::PlanQuery>(), plans::list)
        .add(create.body::<plans::CreateBody>(), plans::create)
        .add(get("/plans/{plan}", "A plan without its tasks", "Plan").headers(&["If-None-Match"]), plans::get)
        .add(revise.body::<plans::PlanPatch>(), plans::revise)
        .add(delete.query::<plans::DeleteQuery>(), plans::delete)
        .add(content.body::<edits::Content>(), edits::replace)
        .add(edits.body::<edits::Edits>(), edits::edit)
        .add(restore.body::<edits::RestoreBody>(), edits::restore)
        .add(action.body::<actions::ActionBody>(), actions::on_plan)
        .add(get("/plans/{plan}/approval", "What a person has to know", "Approval"), approval::approval)
        .add(
            get("/plans/{plan}/graph", "Tasks with places", "Graph").query::<graph::GraphQuery>(),
            graph::graph,
        )
        .add(
            get("/plans/{plan}/timeline", "When tasks ran", "Timeline").query::<history::PageQuery>(),
            history::timeline,
        )
        .add(
            get("/plans/{plan}/history", "Versions", "History").query::<history::HistoryQuery>(),
            history::history,
        )
        .add(get("/plans/{plan}/versions/{version}", "The plan as it was", "Any"), history::version)
        .add(
            get("/plans/{plan}/diff", "Between two versions", "Differences").query::<history::DiffQuery>(),
            history::diff,
        )
        .add(export.query::<history::ExportQuery>(), history::export)
}

fn of_tasks(routes: Routes) -> Routes {
    let written = route_doc(GET, "/plans/{plan}/tasks/{task}/log", "The log of an attempt", Answer::Text);
    let path = "/plans/{plan}/tasks/{task}/actions/{action}";
    let action = route_doc(POST, path, "Claim, finish, answer and so on", Answer::Json("Written"));
    routes
        .add(get("/plans/{plan}/tasks", "Tasks", "TaskPage").query::<tasks::TaskQuery>(), tasks::list)
        .add(get("/plans/{plan}/tasks/{task}", "A task in full", "Task"), tasks::get)
        .add(written.query::<log::LogQuery>().headers(&["Last-Event-ID"]), log::log)
        .add(action.body::<actions::ActionBody>().headers(KNOWN), actions::on_task)
}
