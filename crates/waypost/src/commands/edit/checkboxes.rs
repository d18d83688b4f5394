//! Translates checkboxes changed in the editor into commands, as far as the plan allows them.

use std::collections::HashMap;

use waypost_core::{
    Actor, Command, Draft, Outcome as Ending, Plan, Status, Task, TaskId, Timestamp, topological_order,
};

use crate::error::{Failure, Outcome};
use crate::view::text;

/// Maximum number of rejected changes that are named.
const NAMED_MAX: usize = 20;

/// The result of the statuses in a text.
pub(super) struct Statuses {
    /// Commands to apply after the plan was replaced, in this order.
    pub(super) commands: Vec<Command>,
    /// Changes that were not applied, and why.
    pub(super) not_taken: Vec<String>,
}

/// Returns the commands that bring the plan's tasks to the draft's statuses, as far as they are allowed. They are tried on a copy.
pub(super) fn commands(plan: &Plan, by: &Actor, draft: &Draft) -> Outcome<Statuses> {
    let mut found = Statuses { commands: Vec::new(), not_taken: Vec::new() };
    if !differs(plan, draft) {
        return Ok(found);
    }
    let at = text::now().max(plan.state().updated_at.unwrap_or(Timestamp::from_micros(0)));
    let mut copy = plan.clone();
    apply(&mut copy, by, at, &Command::Replace(Box::new(draft.clone())))?;
    let wanted: HashMap<&TaskId, &Task> = draft.tasks.iter().map(|task| (&task.spec.id, task)).collect();
    // Dependencies come first, so that a whole chain can be ticked at once.
    let order =
        topological_order(draft).map_err(|problem| Failure::failed(problem.to_string(), problem.hint()))?;
    let mut left = 0;
    for id in &order {
        let Some(task) = wanted.get(id) else { continue };
        let Some(now) = copy.task(id.as_str()).map(|task| task.state.status) else { continue };
        // A parent's status follows from its children.
        if now == task.state.status || !copy.children(id.as_str()).is_empty() {
            continue;
        }
        let attempt = copy.task(id.as_str()).map_or(0, |task| task.state.attempt);
        let command = command(id, now, attempt, task, by);
        if let Err(failure) = apply(&mut copy, by, at, &command) {
            left += 1;
            if left <= NAMED_MAX {
                let (word, why) = (task.state.status.as_str(), failure.message);
                found.not_taken.push(format!("{id} was not marked {word}: {why}"));
            }
            continue;
        }
        found.commands.push(command);
    }
    if left > NAMED_MAX {
        found.not_taken.push(format!("{} more statuses were not applied", left - NAMED_MAX));
    }
    Ok(found)
}

fn differs(plan: &Plan, draft: &Draft) -> bool {
    draft.tasks.iter().any(|task| {
        let now = plan.task(task.spec.id.as_str()).map_or(Status::Pending, |task| task.state.status);
        now != task.state.status
    })
}

fn apply(plan: &mut Plan, by: &Actor, at: Timestamp, command: &Command) -> Outcome {
    for event in plan.decide(by, at, command)? {
        plan.evolve(&event, at);
    }
    Ok(())
}

fn command(id: &TaskId, now: Status, attempt: u32, wanted: &Task, by: &Actor) -> Command {
    let (task, state) = (id.clone(), &wanted.state);
    let finish =
        |outcome: Ending| Command::FinishTask { task: task.clone(), attempt: None, outcome, retry: None };
    match state.status {
        // The worker loses the task, which becomes claimable again.
        Status::Pending if now == Status::Running => {
            let reason = "reset in the editor".to_owned();
            Command::ReleaseTask { task, attempt: Some(attempt), reason }
        }
        Status::Pending => Command::RetryTask { task },
        Status::Running => Command::StartTask { task, worker: by.to_string() },
        Status::Done => finish(Ending::Done {
            result: state.result.clone(),
            output: state.output.clone(),
            evidence: None,
        }),
        Status::Failed => {
            let error = state.error.clone().unwrap_or_else(|| "marked as failed in the editor".to_owned());
            finish(Ending::Failed { error, evidence: None })
        }
        Status::Skipped => finish(Ending::Skipped { reason: state.reason.clone() }),
        Status::Cancelled => {
            let reason = state.reason.clone().unwrap_or_else(|| "cancelled in the editor".to_owned());
            Command::CancelTask { task, reason }
        }
    }
}
