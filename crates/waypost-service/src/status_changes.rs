//! Translates the statuses in an edited text into commands, as far as the plan allows them.

use std::collections::HashMap;

use waypost_config::Config;
use waypost_core::{
    Actor, Command, Draft, Outcome, Plan, Refusal, Status, Task, TaskId, Timestamp, topological_order,
};

use crate::caller::Caller;
use crate::false_done::check_false_done;
use crate::gate::is_human;

/// Maximum number of rejected changes that are named.
const NAMED_MAX: usize = 20;

/// The result of the statuses in a text.
#[derive(Debug, Default)]
pub(crate) struct StatusChanges {
    /// Commands to apply after the plan was replaced, in this order.
    pub(crate) commands: Vec<Command>,
    /// Changes that were not applied, and why, and what else the author should know of them.
    pub(crate) notes: Vec<String>,
}

/// Returns the commands that bring the plan's tasks to the draft's statuses, as far as they are allowed. They are tried on a
/// copy. A text ends no task for people, whoever brings it: others may have written it, and a person answers what is shown.
pub(crate) fn status_changes(
    config: &Config,
    plan: &Plan,
    caller: &Caller,
    draft: &Draft,
) -> Result<StatusChanges, Refusal> {
    let by = &caller.actor;
    let mut found = StatusChanges::default();
    if !differs(plan, draft) {
        return Ok(found);
    }
    let at = plan.state().updated_at.unwrap_or(Timestamp::from_micros(0));
    let mut copy = plan.clone();
    apply(&mut copy, by, at, &Command::Replace(Box::new(draft.clone())))?;
    let wanted: HashMap<&TaskId, &Task> = draft.tasks.iter().map(|task| (&task.spec.id, task)).collect();
    // Dependencies come first, so that a whole chain can be ticked at once.
    let order = topological_order(draft).map_err(|problem| Refusal::Invalid { problems: vec![problem] })?;
    let mut left = 0;
    for id in &order {
        let Some(task) = wanted.get(id) else { continue };
        let Some(now) = copy.task(id.as_str()).map(|task| task.state.status) else { continue };
        // A parent's status follows from its children. What is done and has changed has to be done again; what was given up stays
        // given up.
        let is_reset = plan.task(id.as_str()).is_some_and(|task| task.state.status != now);
        let is_given_up = matches!(task.state.status, Status::Skipped | Status::Cancelled);
        let is_again = is_reset && !is_given_up;
        if now == task.state.status || is_again || !copy.children(id.as_str()).is_empty() {
            continue;
        }
        let attempt = copy.task(id.as_str()).map_or(0, |task| task.state.attempt);
        let command = command(id, now, attempt, task, by);
        let is_gate = task.spec.work.as_deref().is_some_and(|work| is_human(config, work));
        let is_done = task.state.status == Status::Done;
        let doubt = || check_false_done(caller, id, task.state.result.as_deref().filter(|_| is_done), false);
        let applied = match is_gate && task.state.status.is_finished() {
            true => Err("it is for a person, who answers it".to_owned()),
            false => doubt()
                .map_err(|error| error.to_string())
                .and_then(|()| apply(&mut copy, by, at, &command).map_err(|refusal| refusal.to_string())),
        };
        if let Err(why) = applied {
            left += 1;
            if left <= NAMED_MAX {
                let word = task.state.status.as_str();
                found.notes.push(format!("{id} was not marked {word}: {why}"));
            }
            continue;
        }
        if is_done && copy.task(id.as_str()).is_some_and(|task| task.state.status != Status::Done) {
            found.notes.push(format!("{id} is reported as done; its check decides"));
        }
        found.commands.push(command);
    }
    if left > NAMED_MAX {
        found.notes.push(format!("{} more statuses were not applied", left - NAMED_MAX));
    }
    Ok(found)
}

fn differs(plan: &Plan, draft: &Draft) -> bool {
    draft.tasks.iter().any(|task| match plan.task(task.spec.id.as_str()) {
        // Other words set a task back.
        Some(now) => {
            now.state.status != task.state.status || now.state.status.is_finished() && now.spec != task.spec
        }
        None => task.state.status != Status::Pending,
    })
}

fn apply(plan: &mut Plan, by: &Actor, at: Timestamp, command: &Command) -> Result<(), Refusal> {
    for event in plan.decide(by, at, command)? {
        plan.evolve(&event, at);
    }
    Ok(())
}

fn command(id: &TaskId, now: Status, attempt: u32, wanted: &Task, by: &Actor) -> Command {
    let (task, state) = (id.clone(), &wanted.state);
    let finish =
        |outcome: Outcome| Command::FinishTask { task: task.clone(), attempt: None, outcome, retry: None };
    match state.status {
        // The worker loses the task, which becomes claimable again.
        Status::Pending if now == Status::Running => {
            let reason = "reset in the text".to_owned();
            Command::ReleaseTask { task, attempt: Some(attempt), reason }
        }
        Status::Pending => Command::RetryTask { task },
        Status::Running => Command::StartTask { task, worker: by.to_string() },
        Status::Done => finish(Outcome::Done {
            result: state.result.clone(),
            output: state.output.clone(),
            evidence: None,
        }),
        Status::Failed => {
            let error = state.error.clone().unwrap_or_else(|| "marked as failed in the text".to_owned());
            finish(Outcome::Failed { error, evidence: None })
        }
        Status::Skipped => finish(Outcome::Skipped { reason: state.reason.clone() }),
        Status::Cancelled => {
            let reason = state.reason.clone().unwrap_or_else(|| "cancelled in the text".to_owned());
            Command::CancelTask { task, reason }
        }
    }
}
