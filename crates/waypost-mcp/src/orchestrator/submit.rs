//! `run_submit`: submits a plan for workers to run, as `waypost submit` does, without waiting for it.

use serde::Deserialize;
use serde_json::json;
use waypost_config::Config;
use waypost_core::{DiffStat, Draft, Phase, Plan, PlanChanges, PlanId, Problem, ProblemKind};
use waypost_formats::Dialect;
use waypost_service::submit::{RunnableDraft, Start, SubmitError, Submitted};
use waypost_service::{EditOp, Guard};

use super::lookup;
use crate::approval;
use crate::plan_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum number of parser notes in a reply.
const NOTES_MAX: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Submit {
    text: Option<String>,
    file: Option<String>,
    plan: Option<String>,
    format: Option<String>,
    id: Option<String>,
    queue: Option<String>,
}

/// The plan to submit.
struct Submission {
    draft: Draft,
    /// The id of a plan that is in the store already.
    known: Option<PlanId>,
    notes: Vec<String>,
}

pub(super) fn submit(call: &Call) -> Result<Answer, ToolError> {
    let asked: Submit = call.arguments()?;
    let queue = asked.queue.clone().filter(|queue| !queue.is_empty());
    let Submission { mut draft, known, notes } = find_plan(call, asked)?;
    let config = &call.workspace.config;
    if let Some(queue) = &queue {
        draft.spec.queue.clone_from(queue);
    }
    let executor = config.default_executor.as_deref();
    let draft = runnable(config, draft, executor)?;
    let entered = match known {
        Some(plan) => {
            if let Some(queue) = queue {
                let changes = PlanChanges { queue: Some(queue), ..PlanChanges::default() };
                let ops = vec![EditOp::RevisePlan(Box::new(changes))];
                call.service().edit(&call.caller, &plan, ops, Guard::NONE)?;
            }
            Submitted { plan, made: false }
        }
        None => call.service().submit(&call.caller, &draft).map_err(not_entered)?,
    };
    if let Some(executor) = executor {
        let assigned = call.service().assign(&call.caller, &entered.plan, executor);
        assigned.map_err(not_entered)?;
    }
    let next = begin(call, &entered.plan)?;
    answer(call, &entered, next, notes)
}

/// Starts the plan, or requests approval for it. Returns what a person has to do for an active plan.
fn begin(call: &Call, plan: &PlanId) -> Result<Option<String>, ToolError> {
    let phase = call.workspace.plans().with_plan(plan, |plan| plan.state().phase)?;
    match phase {
        Phase::Completed | Phase::Failed | Phase::Cancelled | Phase::Paused => Ok(None),
        Phase::Draft | Phase::AwaitingApproval | Phase::Active => {
            match call.service().start(&call.caller, plan, false, Guard::NONE)? {
                Start::Runs => Ok(None),
                // It was approved, and is asked for by what a person sees of it.
                Start::NeedsApproval { .. } if phase == Phase::Active => Ok(Some(format!(
                    "it needs approval again, because what would run is not what was approved: ask a person to approve plan {plan}"
                ))),
                Start::NeedsApproval { .. } => approval::ask(call, plan, "", 0).map(|_| None),
            }
        }
    }
}

fn answer(
    call: &Call,
    entered: &Submitted,
    next: Option<String>,
    mut notes: Vec<String>,
) -> Result<Answer, ToolError> {
    let workers = lookup::workers_of(call, &entered.plan)?;
    let answer = call.workspace.plans().with_plan(&entered.plan, |plan: &Plan| {
        let (phase, queue) = (plan.state().phase, Config::queue_name(&plan.spec().queue));
        let mut answer = json!({ "id": entered.plan, "version": plan.version(), "phase": phase });
        answer["created"] = entered.made.into();
        answer["queue"] = queue.into();
        answer["workers"] = workers.into();
        if let Some(next) = next.or_else(|| lookup::next(call, plan, workers)) {
            answer["next"] = next.into();
        }
        if !notes.is_empty() {
            notes.truncate(NOTES_MAX);
            answer["notes"] = notes.into();
        }
        answer
    })?;
    Ok(Answer::of(answer))
}

/// Returns the plan that the arguments give: exactly one of a text, a file and a stored plan.
fn find_plan(call: &Call, asked: Submit) -> Result<Submission, ToolError> {
    let Submit { text, file, plan, format, id, queue: _ } = asked;
    match (text, file, plan) {
        (Some(text), None, None) => {
            let format = format.as_deref().map(dialect).transpose()?;
            read(&text, None, format, id)
        }
        (None, Some(file), None) => {
            let format = format.as_deref().map(dialect).transpose()?;
            read(&call.files().read_plan(&file, format)?, Some(&file), format, id)
        }
        (None, None, Some(_)) if id.is_some() || format.is_some() => Err(ToolError::new(
            "`id` and `format` are about a text or a file, not about a plan of the store",
            "leave them out",
        )),
        (None, None, Some(plan)) => {
            let id = call.plan(&plan)?;
            let draft = call.workspace.plans().with_plan(&id, Plan::to_draft)?;
            Ok(Submission { draft, known: Some(id), notes: Vec::new() })
        }
        (text, file, plan) => {
            let given =
                [text.is_some(), file.is_some(), plan.is_some()].iter().filter(|given| **given).count();
            Err(ToolError::new(
                format!("one of `text`, `file` and `plan` is needed, and {given} were given"),
                "pass exactly one of them",
            ))
        }
    }
}

fn read(
    text: &str,
    file: Option<&str>,
    format: Option<Dialect>,
    id: Option<String>,
) -> Result<Submission, ToolError> {
    let (text, notes) = plan_text::read(text, file, format)?;
    let mut draft = text.draft;
    if let Some(id) = id {
        let id = PlanId::new(id).map_err(|error| ToolError::new(error.to_string(), "choose another id"))?;
        draft.id = Some(id);
    }
    Ok(Submission { draft, known: None, notes })
}

fn dialect(name: &str) -> Result<Dialect, ToolError> {
    name.parse().map_err(|_| ToolError::new(format!("unknown format {name:?}"), formats()))
}

fn formats() -> String {
    format!("name the format: {}", Dialect::all().map(Dialect::name).collect::<Vec<_>>().join(", "))
}

/// Refuses a draft that cannot run with this configuration.
fn runnable(config: &Config, draft: Draft, executor: Option<&str>) -> Result<RunnableDraft, ToolError> {
    RunnableDraft::new(config, draft, executor).map_err(|problems| not_runnable(config, &problems))
}

fn not_runnable(config: &Config, problems: &[Problem]) -> ToolError {
    let mut refused = ToolError::invalid(problems);
    let what = refused.message.trim_start_matches("invalid plan: ");
    refused.message = format!("not runnable with this configuration, nothing was submitted: {what}");
    if problems.iter().any(|problem| matches!(problem.wrong, ProblemKind::UnknownExecutor { .. })) {
        let names: Vec<&str> = config.executors.keys().map(String::as_str).collect();
        refused.hint = format!("known executors: {}; a person can configure others", names.join(", "));
    }
    refused
}

fn not_entered(error: SubmitError) -> ToolError {
    let message = error.to_string();
    match error {
        SubmitError::OtherContent { plan, differences } => {
            let message = format!("{message}: {}", DiffStat::of(&differences).describe());
            let hint = format!("choose another id, or run the one that is there: plan {plan}");
            ToolError::new(message, hint).with_fact("plan", plan.as_str())
        }
        SubmitError::NotForMachines { plan, .. } => ToolError::new(
            message,
            format!("to have machines run it all the same a person runs `waypost submit {plan} --yes`"),
        ),
        SubmitError::Service(error) => error.into(),
    }
}
