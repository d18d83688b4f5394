//! `plan_draft`: the host's own model writes a plan, in the same dialogue that `waypost plan` has with other models. Offered only
//! where the host supports sampling.

use std::sync::Arc;

use waypost_llm::{Journal, Quiet, Recorded, Redactor, Stop};
use waypost_planner::generate::TASKS_ASKED_MAX;
use waypost_planner::planning::{CancelToken, NoDraft, RequestStore, charge, generate};
use waypost_planner::{Generate, Limits, PlanBrief, PromptPolicy};
use waypost_service::CreateOptions;

use super::arguments::{ArgumentForm, Arguments};
use super::create;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

pub(crate) const NAME: &str = "plan_draft";

const KNOWN: [(&str, ArgumentForm); 3] = [
    ("goal", ArgumentForm::Needed),
    ("constraints", ArgumentForm::Texts),
    ("max_tasks", ArgumentForm::Number),
];

pub(super) fn run(call: &Call) -> Result<Answer, ToolError> {
    let arguments = Arguments::of(&call.arguments, &KNOWN)?;
    let Some(model) = &call.client.model else {
        let message = "this host does not support sampling";
        return Err(ToolError::new(message, "write the tasks yourself and call plan_create"));
    };
    let planner = &call.workspace.config.planner;
    let mut wanted = PlanBrief::new(arguments.needed("goal")?);
    wanted.constraints = arguments.texts("constraints")?;
    let tasks_max = arguments.small("max_tasks")?.unwrap_or(planner.tasks_max);
    wanted.tasks_max = usize::try_from(tasks_max).unwrap_or(usize::MAX).min(TASKS_ASKED_MAX);
    let manner = PromptPolicy { repairs_max: planner.repairs, ..PromptPolicy::default() };
    let session = Generate::new(manner, wanted, "generate/1");
    let mut session = session.map_err(|why| ToolError::new(why.to_string(), "rephrase the goal"))?;
    let id = call.service().reserve_id()?;
    let path = RequestStore::new(call.workspace.own.join("planning")).journal(&id);
    let journal = Journal::open(&path, call.workspace.now()?, &call.caller.worker, Redactor::default());
    let journal = Arc::new(journal.map_err(|error| ToolError::new(error.to_string(), error.hint()))?);
    let limits = Limits { tokens_max: planner.token_budget, ..Limits::default() };
    let recorded = Recorded::new(model.clone(), Arc::clone(&journal));
    let (halt, stop) = (CancelToken::default(), Stop::new());
    let drafted =
        generate(&mut session, &recorded, &journal, (limits, &|_| None), (&halt, &stop), &Quiet, |_, _| {});
    let drafted = drafted.map_err(|no| draft_error(no, &path.display().to_string()))?;
    let mut draft = drafted.planned.draft;
    draft.spec.owner.clone_from(&call.by().name);
    let options = CreateOptions { id: Some(id), ..CreateOptions::default() };
    let created = call.service().create(&call.caller, draft, options)?;
    charge(call.service(), &created.plan, call.by(), &journal, 0)?;
    call.remember(&created.plan)?;
    Ok(call.read(&created.plan, |plan| create::answer(plan, &[], &[]))?)
}

/// The error for a failed draft, with the path of the model's replies.
fn draft_error(no: NoDraft, path: &str) -> ToolError {
    let kept = format!("its replies are in {path}; write the tasks yourself");
    match no {
        NoDraft::GaveUp(gave_up) => {
            ToolError::new(format!("the model wrote no valid plan: {}", gave_up.problems.join("; ")), kept)
        }
        NoDraft::Bound(broken) => ToolError::new(broken.to_string(), broken.hint()),
        NoDraft::Trouble(error) => ToolError::new(error.to_string(), "write the tasks yourself"),
        NoDraft::Halted => ToolError::new("the call was cancelled", "ask again"),
    }
}
