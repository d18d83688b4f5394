//! What there is under `/api/v1`: each entry is a route, and a part of the document that describes it.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use super::{Api, actions, document, edits, events, graph, history, log, next, others, plans, tasks};

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

/// What the document says of a route.
#[derive(Clone, Debug)]
pub(super) struct Says {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) answer: Answer,
    pub(super) parameters: Option<Schema>,
    pub(super) body: Option<Schema>,
    /// Headers that matter.
    pub(super) headers: &'static [&'static str],
}

impl Says {
    fn asks<T: JsonSchema>(self) -> Self {
        Self { parameters: Some(schema::<T>()), ..self }
    }
    fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(schema::<T>()), ..self }
    }
    fn heads(self, headers: &'static [&'static str]) -> Self {
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

fn get(path: &'static str, summary: &'static str, shape: &'static str) -> Says {
    says(Verb::Get, path, summary, Answer::Json(shape))
}

fn says(verb: Verb, path: &'static str, summary: &'static str, answer: Answer) -> Says {
    Says { verb, path, summary, answer, parameters: None, body: None, headers: &[] }
}

/// All routes, and what is said of them.
#[derive(Default)]
pub(super) struct Routes {
    pub(super) router: Router<Arc<Api>>,
    pub(super) said: Vec<Says>,
}

impl Routes {
    fn add<H: Handler<T, Arc<Api>>, T: 'static>(mut self, says: Says, handler: H) -> Self {
        self.router = self.router.route(says.path, on(says.verb.filter(), handler));
        self.said.push(says);
        self
    }
}

const KNOWN: &[&str] = &["If-Match"];

/// Everything that there is.
pub(super) fn all() -> Routes {
    of_tasks(of_plans(of_others(Routes::default())))
}

fn of_others(routes: Routes) -> Routes {
    let page =
        says(Verb::Get, "/events", "What happens, as a stream or as a page", Answer::Events("EventPage"));
    let validate = says(Verb::Post, "/validate", "Whether a text is a sound plan", Answer::Json("Validity"));
    let take = says(Verb::Post, "/next", "Takes the first of what can be worked on", Answer::Json("Taken"));
    routes
        .add(get("/openapi.json", "This document", "Any"), document::served)
        .add(get("/me", "Who calls, and what this server is", "Me"), others::me)
        .add(get("/next", "What can be worked on now", "TaskPage").asks::<next::Listing>(), next::list)
        .add(take.takes::<next::Wish>(), next::take)
        .add(get("/workers", "Workers and what they run", "Workers"), others::workers)
        .add(get("/agents", "Agents and what they work on", "Agents"), others::agents)
        .add(get("/queues", "Queues of the configuration", "Queues"), others::queues)
        .add(get("/executors", "Executors of the configuration", "Executors"), others::executors)
        .add(validate.takes::<others::Text>(), others::validate)
        .add(page.asks::<events::Wanted>().heads(&["Last-Event-ID"]), events::events)
}

fn of_plans(routes: Routes) -> Routes {
    use Verb::{Delete, Patch, Post, Put};
    let written = Answer::Json("Written");
    let create = says(Post, "/plans", "Makes a plan", Answer::Made("Written")).heads(&["Idempotency-Key"]);
    let revise = says(Patch, "/plans/{plan}", "Changes what the author says of it", written).heads(KNOWN);
    let delete = says(Delete, "/plans/{plan}", "Puts it away; a person may purge it", written).heads(KNOWN);
    let content = says(Put, "/plans/{plan}/content", "Replaces its content by a text", written).heads(KNOWN);
    let edits = says(Post, "/plans/{plan}/edits", "Operations that become one version", written).heads(KNOWN);
    let restore = says(Post, "/plans/{plan}/restore", "Brings an earlier version back", written).heads(KNOWN);
    let action =
        says(Post, "/plans/{plan}/actions/{action}", "Approve, start, pause and so on", written).heads(KNOWN);
    let export = says(Verb::Get, "/plans/{plan}/export", "The plan in any format", Answer::Text);
    routes
        .add(get("/plans", "Plans", "PlanPage").asks::<plans::Listing>(), plans::list)
        .add(create.takes::<plans::NewText>(), plans::create)
        .add(get("/plans/{plan}", "A plan without its tasks", "Plan").heads(&["If-None-Match"]), plans::get)
        .add(revise.takes::<plans::Words>(), plans::revise)
        .add(delete.asks::<plans::Going>(), plans::delete)
        .add(content.takes::<edits::Content>(), edits::replace)
        .add(edits.takes::<edits::Edits>(), edits::edit)
        .add(restore.takes::<edits::Earlier>(), edits::restore)
        .add(action.takes::<actions::Words>(), actions::on_plan)
        .add(get("/plans/{plan}/approval", "What a person has to know", "Approval"), actions::approval)
        .add(get("/plans/{plan}/graph", "Tasks with places", "Graph").asks::<graph::Wanted>(), graph::graph)
        .add(
            get("/plans/{plan}/timeline", "When tasks ran", "Timeline").asks::<history::After>(),
            history::timeline,
        )
        .add(get("/plans/{plan}/history", "Versions", "History").asks::<history::Paging>(), history::history)
        .add(get("/plans/{plan}/versions/{version}", "The plan as it was", "Any"), history::version)
        .add(
            get("/plans/{plan}/diff", "Between two versions", "Differences").asks::<history::Between>(),
            history::diff,
        )
        .add(export.asks::<history::Wanted>(), history::export)
}

fn of_tasks(routes: Routes) -> Routes {
    let written = says(Verb::Get, "/plans/{plan}/tasks/{task}/log", "The log of an attempt", Answer::Text);
    let path = "/plans/{plan}/tasks/{task}/actions/{action}";
    let action = says(Verb::Post, path, "Claim, finish, answer and so on", Answer::Json("Written"));
    routes
        .add(get("/plans/{plan}/tasks", "Tasks", "TaskPage").asks::<tasks::Listing>(), tasks::list)
        .add(get("/plans/{plan}/tasks/{task}", "A task in full", "Task"), tasks::get)
        .add(written.asks::<log::Wanted>().heads(&["Last-Event-ID"]), log::log)
        .add(action.takes::<actions::Words>().heads(KNOWN), actions::on_task)
}
