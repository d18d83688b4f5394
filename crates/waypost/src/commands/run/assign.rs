//! Tasks without work that a run gives to an executor. That is a version of the plan like any other, so that everybody
//! sees who did it, and the rules of approval hold for it.

use std::collections::BTreeSet;

use waypost_core::{
    Actor, ActorKind, Command, Draft, Json, Phase, Plan, PlanId, Status, TaskChanges, TaskId, Work,
};
use waypost_store::{Plans, WriteRequest};

use crate::error::{Failure, Outcome};

fn work(executor: &str) -> Work {
    Work { executor: executor.to_owned(), inputs: Json::empty_object(), shape: None }
}

/// Gives every task of a draft that has neither work nor children to an executor.
pub(crate) fn in_draft(draft: &mut Draft, executor: &str) {
    let parents: BTreeSet<TaskId> = draft.tasks.iter().filter_map(|task| task.spec.parent.clone()).collect();
    for task in &mut draft.tasks {
        if task.spec.work.is_none() && !parents.contains(&task.spec.id) {
            task.spec.work = Some(Box::new(work(executor)));
        }
    }
}

/// The same in a plan of the store, for what is not done yet. What an agent wrote down as a list of things to do was
/// never meant for machines, so giving it to them needs a person's approval.
pub(crate) fn in_plan(plans: &Plans, id: &PlanId, executor: &str, by: &Actor, yes: bool) -> Outcome {
    let (mut commands, phase, asks) = plans.look(id, |plan| {
        let state = plan.state();
        let own = state.created_by.as_ref().is_some_and(|actor| actor.kind == ActorKind::Person);
        (assignments(plan, executor), state.phase, !own && state.approval.is_none())
    })?;
    if commands.is_empty() {
        return Ok(());
    }
    match phase {
        Phase::Draft if asks => {
            let message = format!("tasks without work are to be done by {executor}");
            commands.push(Command::RequestApproval { message });
        }
        Phase::Active if asks && !(yes && by.kind == ActorKind::Person) => {
            let message = format!(
                "plan {id} is an agent's own list of things to do, and nobody has approved that {executor} does them"
            );
            let hint = format!("look at it (`waypost show {id}`); a person can say --yes");
            return Err(Failure { code: "approval_needed".to_owned(), ..Failure::failed(message, hint) });
        }
        Phase::Draft
        | Phase::AwaitingApproval
        | Phase::Active
        | Phase::Paused
        | Phase::Completed
        | Phase::Failed
        | Phase::Cancelled => {}
    }
    let (plan, by) = (id.clone(), by.clone());
    plans.write(WriteRequest { plan, by, commands, known_version: None, lease_seconds: None })?;
    Ok(())
}

fn assignments(plan: &Plan, executor: &str) -> Vec<Command> {
    let open = plan.tasks().map(|(task, _)| task).filter(|task| {
        task.spec.work.is_none()
            && task.state.status == Status::Pending
            && plan.children(task.spec.id.as_str()).is_empty()
    });
    open.map(|task| {
        let changes = TaskChanges { work: Some(Some(work(executor))), ..TaskChanges::default() };
        Command::ReviseTask { task: task.spec.id.clone(), changes: Box::new(changes) }
    })
    .collect()
}
