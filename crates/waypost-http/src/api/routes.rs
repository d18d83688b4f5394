//! What there is under `/api/v1`: each entry is a route, and a part of the document that describes it.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use super::{
    Api, actions, edits, events, graph, history, log, me, next, openapi, plans, tasks, validate, workers,
};

/// A method, as the document writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Patch => MethodFilter::PATCH,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// JSON of this shape.
    Json(&'static str),
    /// JSON of this shape about something new.
    Made(&'static str),
    /// A page of JSON, or a stream of events.
    Events(&'static str),
    /// A text.
    Text,
}

/// What the document doc of a route.
#[derive(Clone, Debug)]
pub(super) struct RouteDoc {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) answer: Answer,
    pub(super) parameters: Option<Schema>,
    pub(super) body: Option<Schema>,
    /// Headers that matter.
    pub(super) headers: &'static [&'static str],
}

impl RouteDoc {
    fn query<T: JsonSchema>(self) -> Self {
        Self { parameters: Some(schema::<T>()), ..self }
    }
    fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(schema::<T>()), ..self }
    }
    fn headers(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }
}

/// The schema of a request, whole in itself.
fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>()
}

fn get(path: &'static str, summary: &'static str, shape: &'static str) -> RouteDoc {
    route_doc(Verb::Get, path, summary, Answer::Json(shape))
}

fn route_doc(verb: Verb, path: &'static str, summary: &'static str, answer: Answer) -> RouteDoc {
    RouteDoc { verb, path, summary, answer, parameters: None, body: None, headers: &[] }
}

/// All routes, and what is said of them.
#[derive(Default)]
pub(super) struct Routes {
    pub(super) router: Router<Arc<Api>>,
    pub(super) docs: Vec<RouteDoc>,
}

impl Routes {
    fn add<H: Handler<T, Arc<Api>>, T: 'static>(mut self, doc: RouteDoc, handler: H) -> Self {
        self.router = self.router.route(doc.path, on(doc.verb.filter(), handler));
        self.docs.push(doc);
        self
    }
}

const KNOWN: &[&str] = &["If-Match"];

/// Everything that there is.
pub(super) fn all() -> Routes {
    of_tasks(of_plans(of_server(Routes::default())))
}

fn of_server(routes: Routes) -> Routes {
    let page =
        route_doc(Verb::Get, "/events", "What happens, as a stream or as a page", Answer::Events("EventPage"));
    let validate = route_doc(Verb::Post, "/validate", "Whether a text is a sound plan", Answer::Json("Validity"));
    let take = route_doc(Verb::Post, "/next", "Takes the first of what can be worked on", Answer::Json("Taken"));
    routes
        .add(get("/openapi.json", "This document", "Any"), openapi::served)
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
    use Verb::{Delete, Patch, Post, Put};
    let written = Answer::Json("Written");
    let create = route_doc(Post, "/plans", "Makes a plan", Answer::Made("Written")).headers(&["Idempotency-Key"]);
    let revise = route_doc(Patch, "/plans/{plan}", "Changes what the author doc of it", written).headers(KNOWN);
    let delete = route_doc(Delete, "/plans/{plan}", "Puts it away; a person may purge it", written).headers(KNOWN);
    let content = route_doc(Put, "/plans/{plan}/content", "Replaces its content by a text", written).headers(KNOWN);
    let edits = route_doc(Post, "/plans/{plan}/edits", "Operations that become one version", written).headers(KNOWN);
    let restore = route_doc(Post, "/plans/{plan}/restore", "Brings an earlier version back", written).headers(KNOWN);
    let action =
        route_doc(Post, "/plans/{plan}/actions/{action}", "Approve, start, pause and so on", written).headers(KNOWN);
    let export = route_doc(Verb::Get, "/plans/{plan}/export", "The plan in any format", Answer::Text);
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
        .add(get("/plans/{plan}/approval", "What a person has to know", "Approval"), actions::approval)
        .add(get("/plans/{plan}/graph", "Tasks with places", "Graph").query::<graph::GraphQuery>(), graph::graph)
        .add(
            get("/plans/{plan}/timeline", "When tasks ran", "Timeline").query::<history::PageQuery>(),
            history::timeline,
        )
        .add(get("/plans/{plan}/history", "Versions", "History").query::<history::HistoryQuery>(), history::history)
        .add(get("/plans/{plan}/versions/{version}", "The plan as it was", "Any"), history::version)
        .add(
            get("/plans/{plan}/diff", "Between two versions", "Differences").query::<history::DiffQuery>(),
            history::diff,
        )
        .add(export.query::<history::ExportQuery>(), history::export)
}

fn of_tasks(routes: Routes) -> Routes {
    let written = route_doc(Verb::Get, "/plans/{plan}/tasks/{task}/log", "The log of an attempt", Answer::Text);
    let path = "/plans/{plan}/tasks/{task}/actions/{action}";
    let action = route_doc(Verb::Post, path, "Claim, finish, answer and so on", Answer::Json("Written"));
    routes
        .add(get("/plans/{plan}/tasks", "Tasks", "TaskPage").query::<tasks::TaskQuery>(), tasks::list)
        .add(get("/plans/{plan}/tasks/{task}", "A task in full", "Task"), tasks::get)
        .add(written.query::<log::LogQuery>().headers(&["Last-Event-ID"]), log::log)
        .add(action.body::<actions::ActionBody>().headers(KNOWN), actions::on_task)
}
