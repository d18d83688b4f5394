//! What a person's answer does to a task: it answers a question, or finishes a task that a person does. Writes nothing.

use serde_json::json;
use waypost_core::{
    Actor, ActorKind, Command, Json, Outcome, Plan, Problem, ProblemKind, Refusal, Status, Task, TaskId,
};

use waypost_config::{Config, Executor};

/// Whether a person's answer finishes a task: its executor is a person, and it is pending or running.
pub fn is_for_people(config: &Config, task: &Task) -> bool {
    let executor = task.spec.work.as_ref().and_then(|work| config.executors.get(&work.executor));
    matches!(executor, Some(Executor::Human))
        && matches!(task.state.status, Status::Pending | Status::Running)
}

/// Returns the command for an answer to a task. A task with an open question gets it as its answer. A task that a
/// person does fails with `no` or `n`, and is done with any other answer.
pub(crate) fn answer_command(
    config: &Config,
    plan: &Plan,
    task: &TaskId,
    answer: &str,
    by: &Actor,
) -> Result<Command, Refusal> {
    let known = plan.task(task.as_str());
    let asks = known.is_some_and(|task| task.state.question().is_some());
    if asks || !known.is_some_and(|task| is_for_people(config, task)) {
        return Ok(Command::AnswerQuestion { task: task.clone(), answer: answer.to_owned() });
    }
    if by.kind != ActorKind::Person {
        return Err(Refusal::OnlyAPerson { what: "answer what is for a person to do", by: by.clone() });
    }
    if answer.trim().is_empty() {
        let problem = Problem::task(task, ProblemKind::Empty { what: "the answer".to_owned() });
        return Err(Refusal::Invalid { problems: vec![problem] });
    }
    let outcome = match answer.trim().to_lowercase().as_str() {
        "no" | "n" => Outcome::Failed { error: format!("answered no by {by}"), evidence: None },
        "yes" | "y" => done("yes"),
        _ => done(answer.trim()),
    };
    Ok(Command::FinishTask { task: task.clone(), attempt: None, outcome, retry: None })
}

fn done(answer: &str) -> Outcome {
    let output = Some(Json::of(&json!({ "answer": answer })));
    Outcome::Done { result: None, output, evidence: None }
}
