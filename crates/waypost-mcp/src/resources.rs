//! Plans as resources that a client can list, read, complete and subscribe to. Read only.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use rmcp::model::{
    CompletionInfo, ListResourcesResult, Reference, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::{Value, json};
use waypost_core::{Plan, PlanId, TaskId};
use waypost_formats::{Dialect, Form};
use waypost_service::ServiceError;
use waypost_store::{PlanSummary, Query, Sort};

use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Maximum number of plans on a page of the list, and in the resource that lists them.
pub(crate) const PLANS_PAGE: usize = 50;
/// Maximum number of versions in a history; the latest are shown.
pub(crate) const VERSIONS_SHOWN_MAX: usize = 100;
/// Maximum bytes of a resource.
pub(crate) const RESOURCE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The common prefix of all resource URIs.
const PLANS: &str = "waypost://plans";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// A parsed resource URI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    Plans,
    Plan(String),
    Markdown(String),
    Task(String, String),
    History(String),
}

impl Address {
    /// Parses a URI; an unknown one is an error.
    pub(crate) fn parse(uri: &str) -> Result<Self, ToolError> {
        let no_such = || {
            let shown = waypost_text::excerpt_bytes(uri, 200);
            ToolError::new(
                format!("unknown resource {shown:?}"),
                "read waypost://plans, waypost://plans/{id}, or its /markdown, /history or /tasks/{task}",
            )
        };
        let rest = uri.strip_prefix(PLANS).ok_or_else(no_such)?;
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        match (rest.is_empty(), parts.as_slice()) {
            (true, _) | (false, [""]) if rest.len() <= 1 => Ok(Self::Plans),
            (false, [plan]) if !plan.is_empty() => Ok(Self::Plan((*plan).to_owned())),
            (false, [plan, "markdown"]) => Ok(Self::Markdown((*plan).to_owned())),
            (false, [plan, "history"]) => Ok(Self::History((*plan).to_owned())),
            (false, [plan, "tasks", task @ ..]) if !task.is_empty() => {
                Ok(Self::Task((*plan).to_owned(), unescaped(&task.join("/"))))
            }
            _ => Err(no_such()),
        }
    }

    /// The plan as it is written in the URI: an id or a prefix of one.
    pub(crate) fn plan(&self) -> Option<&str> {
        match self {
            Self::Plans => None,
            Self::Plan(plan) | Self::Markdown(plan) | Self::History(plan) | Self::Task(plan, _) => Some(plan),
        }
    }
}

/// Decodes percent-escapes: task ids may have any characters, and clients write some of them as `%20`.
fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

/// Returns one page of the list: the list of plans, and each plan, the latest change first.
pub(crate) fn list(workspace: &Workspace, cursor: Option<String>) -> Result<ListResourcesResult, ToolError> {
    let is_first = cursor.is_none();
    let query = Query { limit: PLANS_PAGE, after: cursor, ..Query::default() };
    let page = workspace.page(&query)?;
    let all = Resource::new(PLANS, "plans").with_title("Plans").with_mime_type(JSON);
    let plans = page.items.iter().map(|head| {
        let title = if head.title.is_empty() { "(untitled)" } else { &head.title };
        Resource::new(format!("{PLANS}/{}", head.id), head.id.as_str())
            .with_title(waypost_text::excerpt_bytes(title, 200))
            .with_description(summary(head))
            .with_mime_type(JSON)
    });
    let items = is_first.then_some(all).into_iter().chain(plans).collect();
    let mut listed = ListResourcesResult::with_all_items(items);
    listed.next_cursor = page.next;
    Ok(listed)
}

fn summary(head: &PlanSummary) -> String {
    let counts = &head.counts;
    format!("{}, {}/{} done, version {}", head.phase.as_str(), counts.done, counts.total, head.version)
}

/// The URI templates for any plan.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |rest: &str, name: &str, title: &str, mime: &str| {
        ResourceTemplate::new(format!("{PLANS}/{{id}}{rest}"), name).with_title(title).with_mime_type(mime)
    };
    vec![
        template("", "plan", "A plan, in the native format", JSON),
        template("/markdown", "plan_markdown", "A plan for people", MARKDOWN),
        template("/tasks/{task}", "task", "One task of a plan and where it stands", JSON),
        template("/history", "history", "Who changed a plan, how and when", JSON),
    ]
}

/// Returns the contents of a resource.
pub(crate) fn read(workspace: &Workspace, uri: &str) -> Result<ResourceContents, ToolError> {
    let address = Address::parse(uri)?;
    let (text, mime) = match &address {
        Address::Plans => (plans(workspace)?.to_string(), JSON),
        Address::Plan(plan) => (whole(workspace, plan, Dialect::Native)?, JSON),
        Address::Markdown(plan) => (whole(workspace, plan, Dialect::Markdown)?, MARKDOWN),
        Address::Task(plan, task) => (one_task(workspace, plan, task)?.to_string(), JSON),
        Address::History(plan) => (history(workspace, plan)?.to_string(), JSON),
    };
    if text.len() > RESOURCE_BYTES_MAX {
        return Err(ToolError::new(
            format!("{uri} has {} bytes, more than the {RESOURCE_BYTES_MAX} of a resource", text.len()),
            "read its tasks one by one, or export the plan to a file",
        ));
    }
    Ok(ResourceContents::text(text, uri).with_mime_type(mime))
}

fn plans(workspace: &Workspace) -> Result<Value, ToolError> {
    let page = workspace.plans().heads(&Query { limit: PLANS_PAGE, ..Query::default() })?;
    let mut value = json!({ "plans": page.items, "total": page.total });
    if !page.warnings.is_empty() {
        value["warnings"] = json!(page.warnings);
    }
    Ok(value)
}

/// Returns the plan with this id or id prefix.
pub(crate) fn resolve(workspace: &Workspace, plan: &str) -> Result<PlanId, ToolError> {
    workspace.service.resolve_plan(plan).map_err(|error| {
        let is_unlike_any = matches!(&error, ServiceError::NoSuchPlan(unknown) if unknown.nearest.is_none());
        match is_unlike_any {
            true => ToolError::new(error.to_string(), format!("{PLANS} lists the plans")),
            false => error.into(),
        }
    })
}

fn whole(workspace: &Workspace, plan: &str, dialect: Dialect) -> Result<String, ToolError> {
    let id = resolve(workspace, plan)?;
    let draft = workspace.plans().view(&id, |plan, _| plan.to_draft())?;
    let written = waypost_formats::write(&draft, dialect, Form::default());
    written
        .map(|written| written.text)
        .map_err(|error| ToolError::new(error.to_string(), "read it in another format"))
}

/// Returns a task with its effective status, which can change without a change in the task itself.
pub(crate) fn task_value(plan: &Plan, task: &TaskId) -> Option<Value> {
    let found = plan.task(task.as_str())?;
    Some(
        json!({ "plan": plan.id(), "standing": plan.as_started().effective_status(task.as_str()), "task": found }),
    )
}

fn one_task(workspace: &Workspace, plan: &str, task: &str) -> Result<Value, ToolError> {
    let id = resolve(workspace, plan)?;
    let found = workspace.plans().view(&id, |plan, _| {
        let task = plan.resolve(task).ok()?;
        let mut value = task_value(plan, &task)?;
        value["version"] = plan.version().into();
        Some(value)
    })?;
    found.ok_or_else(|| {
        let shown = waypost_text::excerpt_bytes(task, 200);
        ToolError::new(format!("plan {id} has no task {shown:?}"), "look at the plan for its tasks")
    })
}

fn history(workspace: &Workspace, plan: &str) -> Result<Value, ToolError> {
    let id = resolve(workspace, plan)?;
    let version = workspace.plans().view(&id, |plan, _| plan.version())?;
    let after = version.saturating_sub(VERSIONS_SHOWN_MAX as u64);
    let entries = workspace.plans().history(&id, after, VERSIONS_SHOWN_MAX)?;
    let entries = entries.iter().rev().map(|entry| {
        json!({ "version": entry.version, "at": entry.at, "by": entry.actor, "command": entry.command })
    });
    Ok(json!({ "plan": id, "version": version, "versions": entries.collect::<Vec<_>>() }))
}

/// Returns completions for a partial argument of a URI or a prompt.
pub(crate) fn complete(
    workspace: &Workspace,
    reference: &Reference,
    argument: &str,
    begun: &str,
    plan: Option<&str>,
) -> Result<CompletionInfo, ToolError> {
    let is_plan = match reference {
        Reference::Resource(_) => argument == "id",
        Reference::Prompt(_) => argument == "plan",
        _ => false,
    };
    let values = match plan {
        _ if is_plan => plan_ids(workspace, begun)?,
        Some(plan) if argument == "task" => task_ids(workspace, plan, begun)?,
        Some(_) | None => Vec::new(),
    };
    CompletionInfo::new(values).map_err(|error| ToolError::new(error, ""))
}

fn plan_ids(workspace: &Workspace, begun: &str) -> Result<Vec<String>, ToolError> {
    if begun.is_empty() {
        let query = Query { limit: CompletionInfo::MAX_VALUES, sort: Sort::Updated, ..Query::default() };
        let heads = workspace.plans().heads(&query)?;
        return Ok(heads.items.into_iter().map(|head| head.id.to_string()).collect());
    }
    let mut ids = Vec::new();
    workspace.plans().store().read(&mut |read| {
        ids = read.ids(begun, CompletionInfo::MAX_VALUES)?;
        Ok(())
    })?;
    Ok(ids.iter().map(PlanId::to_string).collect())
}

fn task_ids(workspace: &Workspace, plan: &str, begun: &str) -> Result<Vec<String>, ToolError> {
    let id = resolve(workspace, plan)?;
    Ok(workspace.plans().with_plan(&id, |plan| {
        let ids = plan.tasks().map(|(task, _)| task.spec.id.as_str()).filter(|id| id.starts_with(begun));
        ids.take(CompletionInfo::MAX_VALUES).map(str::to_owned).collect()
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_plans_tasks_and_histories_and_nothing_else() {
        let check =
            |uri: &str, expected: Option<Address>| assert_eq!(Address::parse(uri).ok(), expected, "{uri}");
        check("waypost://plans", Some(Address::Plans));
        check("waypost://plans/", Some(Address::Plans));
        check("waypost://plans/kq3", Some(Address::Plan("kq3".to_owned())));
        check("waypost://plans/kq3/markdown", Some(Address::Markdown("kq3".to_owned())));
        check("waypost://plans/kq3/history", Some(Address::History("kq3".to_owned())));
        let task = |id: &str| Some(Address::Task("kq3".to_owned(), id.to_owned()));
        check("waypost://plans/kq3/tasks/t1", task("t1"));
        check("waypost://plans/kq3/tasks/a%20b", task("a b"));
        check("waypost://plans/kq3/tasks/a/b", task("a/b"));
        check("waypost://plans/kq3/tasks", None);
        check("waypost://plans/kq3/", None);
        check("waypost://plansx", None);
        check("waypost://plan", None);
        check("file:///etc/passwd", None);
    }
}
