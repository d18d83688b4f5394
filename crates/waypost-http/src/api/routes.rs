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
    actions, approval, conflicts, edits, events, graph, history, inbox, layout, log, me, next, planner,
    plans, runs, search, tasks, validate, workers,
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
fn write(verb: Verb, path: &'static str, operation: &'static str, summary: &'static str) -> RouteDoc {
    RouteDoc::new(verb, path, operation, summary, Answer::Json("Written")).headers(&["If-Match"])
}

fn of_server(routes: Routes) -> Routes {
    let events =
        RouteDoc::new(GET, "/events", "list_events", "Stream or list events", Answer::Events("EventPage"));
    let validate =
        RouteDoc::new(POST, "/validate", "validate_plan", "Validate a plan", Answer::Json("Validity"));
    let claim = RouteDoc::new(
        POST,
        "/next",
        "claim_next_task",
        "Claim the next ready task",
        Answer::Json("ClaimedTask"),
    );
    let document = get("/openapi.json", "get_document", "Get this document", "Any");
    let ready = get("/next", "list_ready_tasks", "List ready tasks", "TaskPage");
    let inbox = get("/inbox", "get_inbox", "List everything that waits for a person", "Inbox");
    let conflicts = get(
        "/conflicts",
        "list_all_conflicts",
        "List what clones disagree about, over all plans",
        "ConflictPage",
    );
    let search = get("/search", "search_tasks", "Search the tasks of all plans", "FoundTasks");
    let workers = get("/workers", "list_workers", "List workers and what they run", "WorkerPage");
    let agents = get("/agents", "list_agents", "List agents and what they work on", "AgentPage");
    let planner = get("/planner", "get_planner", "Get the model that writes plans, and its jobs", "Planner");
    let job = get("/planner/jobs/{job}", "get_plan_job", "Get a plan that a model writes", "PlanJob");
    let begin = RouteDoc::new(
        POST,
        "/planner/jobs",
        "write_plan",
        "Have a model write a plan (people only)",
        Answer::Made("PlanJob"),
    );
    let stop = RouteDoc::new(
        POST,
        "/planner/jobs/{job}/stop",
        "stop_plan_job",
        "Stop a model that writes a plan",
        Answer::Json("PlanJob"),
    );
    let spending = get("/spending", "get_spending", "Get what models have cost, by plan", "Spending");
    let queues = get("/queues", "list_queues", "List configured queues", "QueuePage");
    let executors = get("/executors", "list_executors", "List configured executors", "ExecutorPage");
    routes
        .add(document, served)
        .add(get("/me", "get_me", "Get the caller and the server", "Me"), me::me)
        .blocking(ready.query::<next::OfferQuery>(), next::list)
        .blocking(claim.body::<next::ClaimBody>(), next::take)
        .blocking(inbox, inbox::inbox)
        .blocking(conflicts.query::<conflicts::ConflictQuery>(), conflicts::list)
        .blocking(search.query::<search::SearchQuery>(), search::search)
        .blocking(workers, workers::workers)
        .blocking(agents, workers::agents)
        .blocking(planner, planner::planner)
        .blocking(begin.body::<planner::PlanWishBody>(), planner::begin)
        .blocking(job, planner::job)
        .blocking(stop, planner::stop)
        .blocking(spending, planner::spending)
        .blocking(queues, workers::queues)
        .blocking(executors, workers::executors)
        .blocking(validate.body::<validate::PlanText>(), validate::validate)
        .add(events.query::<events::EventQuery>().headers(&["Last-Event-ID"]), events::events)
}

fn of_plans(routes: Routes) -> Routes {
    let create = RouteDoc::new(POST, "/plans", "create_plan", "Create a plan", Answer::Made("Written"));
    let list = get("/plans", "list_plans", "List plans", "PlanPage");
    let plan = get("/plans/{plan}", "get_plan", "Get a plan without its tasks", "Plan");
    let revise = write(
        PATCH,
        "/plans/{plan}",
        "revise_plan",
        "Revise title, goal, status, owner, queue, body or budget",
    );
    let delete = RouteDoc::new(
        DELETE,
        "/plans/{plan}",
        "delete_plan",
        "Archive a plan, or purge it (people only)",
        Answer::JsonOrNothing("Written"),
    );
    let content = write(PUT, "/plans/{plan}/content", "update_plan", "Update a plan from a text");
    let edits = write(POST, "/plans/{plan}/edits", "edit_plan", "Edit a plan: all operations in one version");
    let restore = write(POST, "/plans/{plan}/restore", "restore_plan", "Restore an earlier version");
    let action =
        write(POST, "/plans/{plan}/actions/{action}", "act_on_plan", "Approve, start, pause and so on");
    let approval =
        get("/plans/{plan}/approval", "get_approval", "Get what an approval would cover", "Approval");
    let preview =
        get("/plans/{plan}/preview", "get_preview", "Get everything that machines would run", "Preview");
    let graph =
        get("/plans/{plan}/graph", "get_graph", "Get the tasks and their dependencies, in columns", "Graph");
    let layout = get(
        "/plans/{plan}/layout",
        "get_layout",
        "Get the boxes and edges of a picture of the plan",
        "Layout",
    );
    let timeline =
        get("/plans/{plan}/timeline", "get_timeline", "List the attempts of each task", "Timeline");
    let runs = get(
        "/plans/{plan}/runs",
        "list_runs",
        "List the plans with the title of a plan, and its days",
        "Runs",
    );
    let spending = get(
        "/plans/{plan}/spending",
        "get_plan_spending",
        "Get what models have cost for a plan",
        "PlanSpending",
    );
    let history = get("/plans/{plan}/history", "list_versions", "List versions", "History");
    let version = get("/plans/{plan}/versions/{version}", "get_version", "Get an earlier version", "Any");
    let diff = get("/plans/{plan}/diff", "compare_versions", "Compare two versions", "Comparison");
    let path = "/plans/{plan}/conflicts";
    let conflicts = get(path, "list_conflicts", "List what clones disagree about in a plan", "ConflictPage");
    let resolve = write(POST, path, "resolve_conflict", "Answer one of these questions (people only)");
    let export = RouteDoc::new(
        GET,
        "/plans/{plan}/export",
        "export_plan",
        "Export a plan in any format",
        Answer::Text(&history::MEDIA_TYPES),
    );
    routes
        .blocking(list.query::<plans::PlanQuery>(), plans::list)
        .blocking(create.headers(&["Idempotency-Key"]).body::<plans::CreateBody>(), plans::create)
        .blocking(plan.headers(&["If-None-Match"]), plans::get)
        .blocking(revise.body::<plans::PlanPatch>(), plans::revise)
        .blocking(delete.headers(&["If-Match"]).query::<plans::DeleteQuery>(), plans::delete)
        .blocking(content.body::<edits::PlanContent>(), edits::replace)
        .blocking(edits.body::<edits::Edits>(), edits::edit)
        .blocking(restore.body::<edits::RestoreBody>(), edits::restore)
        .blocking(action.actions(&actions::PLAN_ACTIONS).body::<actions::ActionBody>(), actions::on_plan)
        .blocking(approval.query::<approval::ApprovalQuery>(), approval::approval)
        .blocking(preview.query::<approval::PreviewQuery>(), approval::preview)
        .blocking(graph, graph::graph)
        .blocking(layout.query::<layout::LayoutQuery>(), layout::layout)
        .blocking(timeline.query::<history::PageQuery>(), history::timeline)
        .blocking(runs.query::<runs::RunsQuery>(), runs::runs)
        .blocking(spending, planner::plan_spending)
        .blocking(history.query::<history::HistoryQuery>(), history::history)
        .blocking(version, history::version)
        .blocking(diff.query::<history::DiffQuery>(), history::diff)
        .blocking(conflicts.query::<conflicts::ConflictQuery>(), conflicts::of_plan)
        .blocking(resolve.body::<conflicts::ResolveBody>(), conflicts::resolve)
        .blocking(export.query::<history::ExportQuery>(), history::export)
}

fn of_tasks(routes: Routes) -> Routes {
    let log = RouteDoc::new(
        GET,
        "/plans/{plan}/tasks/{task}/log",
        "get_log",
        "Get the log of an attempt",
        Answer::Text(&["text/plain", "text/event-stream"]),
    );
    let times = get(
        "/plans/{plan}/tasks/{task}/log/times",
        "get_log_times",
        "Get when the lines of a log were written",
        "LogTimes",
    );
    let list = get("/plans/{plan}/tasks", "list_tasks", "List tasks", "TaskPage");
    let commits = get(
        "/plans/{plan}/tasks/{task}/commits",
        "list_commits",
        "List the commits that name a task in their Waypost-Task trailer",
        "TaskCommits",
    );
    let changes = get(
        "/plans/{plan}/tasks/{task}/changes",
        "get_changes",
        "Get what an agent changed in its worktree (people only)",
        "AttemptChanges",
    );
    let path = "/plans/{plan}/tasks/{task}/actions/{action}";
    let action = write(POST, path, "act_on_task", "Claim, finish, answer and so on");
    routes
        .blocking(list.query::<tasks::TaskQuery>(), tasks::list)
        .blocking(get("/plans/{plan}/tasks/{task}", "get_task", "Get a task", "Task"), tasks::get)
        .blocking(commits, tasks::commits)
        .blocking(changes.query::<tasks::ChangesQuery>(), tasks::changes)
        .add(log.query::<log::LogQuery>().headers(&["Last-Event-ID"]), log::log)
        .blocking(times.query::<log::LogTimesQuery>(), log::times)
        .blocking(action.actions(&actions::TASK_ACTIONS).body::<actions::ActionBody>(), actions::on_task)
}
