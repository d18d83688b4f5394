//! Checks a plan against the configuration: executors, workers, shapes and queues must exist, and inputs must match
//! their shape. Runs nothing.

use waypost_core::{Command, Draft, Problem, ProblemKind, TaskId, TaskSpec, Work};

use waypost_config::{Config, ResolvedWork, resolve, resolve_check};

/// Returns every name in a plan that the configuration does not define, and every input that does not match its shape.
pub fn problems(config: &Config, draft: &Draft) -> Vec<Problem> {
    let mut problems: Vec<Problem> = unknown_queue(config, &draft.spec.queue).into_iter().collect();
    for task in &draft.tasks {
        problems.extend(task_problems(config, &task.spec));
    }
    problems
}

fn unknown_queue(config: &Config, queue: &str) -> Option<Problem> {
    let queue = Config::queue_name(queue);
    let unknown = !config.queues.contains_key(queue);
    unknown.then(|| Problem::plan(ProblemKind::UnknownQueue { queue: queue.to_owned() }))
}

/// Returns the queue that a command would move the plan to.
fn new_queue(command: &Command) -> Option<&str> {
    if let Command::RevisePlan(changes) = command { changes.queue.as_deref() } else { None }
}

/// Returns the problems of one task.
pub fn task_problems(config: &Config, spec: &TaskSpec) -> Vec<Problem> {
    work_problems(config, &spec.id, spec.work.as_deref(), spec.check.as_deref())
}

/// Returns the whole plan that a command would write, if it writes one.
fn written_draft(command: &Command) -> Option<&Draft> {
    if let Command::Create { draft, .. } = command {
        return Some(draft);
    }
    if let Command::Replace(draft) | Command::Restore { draft, .. } = command {
        return Some(draft);
    }
    None
}

/// Returns the problems of everything that a command would write.
pub fn command_problems(config: &Config, command: &Command) -> Vec<Problem> {
    if let Some(draft) = written_draft(command) {
        return problems(config, draft);
    }
    let queue = new_queue(command).and_then(|queue| unknown_queue(config, queue));
    let works = works(command).into_iter();
    queue
        .into_iter()
        .chain(works.flat_map(|(task, work, check)| work_problems(config, task, work, check)))
        .collect()
}

/// Whether a command would write anything that must be checked against the configuration. If not, the configuration
/// need not be loaded.
pub fn asks_configuration(command: &Command) -> bool {
    if let Some(draft) = written_draft(command) {
        return names_configured(draft);
    }
    new_queue(command).is_some() || !works(command).is_empty()
}

/// Whether a draft contains anything that must be checked against the configuration.
pub fn names_configured(draft: &Draft) -> bool {
    !draft.spec.queue.is_empty() || draft.tasks.iter().any(|task| work_of(&task.spec).is_some())
}

/// Whether a problem exists wherever the plan will run: inputs that do not match the shape in the configuration. A name
/// that is unknown here may be defined on another machine, so it keeps a plan from running, not from being written.
pub fn forbids_writing(problem: &Problem) -> bool {
    matches!(problem.wrong, ProblemKind::InputsDoNotFit { .. })
}

pub(crate) type Works<'a> = (&'a TaskId, Option<&'a Work>, Option<&'a Work>);

fn work_of(spec: &TaskSpec) -> Option<Works<'_>> {
    let (work, check) = (spec.work.as_deref(), spec.check.as_deref());
    (work.is_some() || check.is_some()).then_some((&spec.id, work, check))
}

/// Returns the work and the checks that a command would write.
pub(crate) fn works(command: &Command) -> Vec<Works<'_>> {
    fn new(work: &Option<Option<Work>>) -> Option<&Work> {
        work.as_ref().and_then(Option::as_ref)
    }
    fn of_draft(draft: &Draft) -> Vec<Works<'_>> {
        draft.tasks.iter().filter_map(|task| work_of(&task.spec)).collect()
    }
    match command {
        Command::Create { draft, .. } => of_draft(draft),
        Command::Replace(draft) | Command::Restore { draft, .. } => of_draft(draft),
        Command::AddTasks { tasks, .. } | Command::DecomposeTask { children: tasks, .. } => {
            tasks.iter().filter_map(work_of).collect()
        }
        Command::ReviseTask { task, changes } => {
            let (work, check) = (new(&changes.work), new(&changes.check));
            (work.is_some() || check.is_some()).then_some((task, work, check)).into_iter().collect()
        }
        Command::RevisePlan(_)
        | Command::RemoveTask { .. }
        | Command::MoveTask { .. }
        | Command::RequestApproval { .. }
        | Command::Approve { .. }
        | Command::Revoke
        | Command::RefuseStart(_)
        | Command::Reject { .. }
        | Command::Activate
        | Command::Pause { .. }
        | Command::Resume
        | Command::StartTask { .. }
        | Command::QueueTask { .. }
        | Command::RecordStart { .. }
        | Command::FinishTask { .. }
        | Command::LoseTask { .. }
        | Command::ReleaseTask { .. }
        | Command::AskQuestion { .. }
        | Command::AnswerQuestion { .. }
        | Command::RecordGate { .. }
        | Command::CancelTask { .. }
        | Command::HoldTask { .. }
        | Command::UnholdTask { .. }
        | Command::CommentTask { .. }
        | Command::LabelTask { .. }
        | Command::AssignTask { .. }
        | Command::RetryTask { .. }
        | Command::RetryPlan
        | Command::RefineTask { .. }
        | Command::AttachDigest { .. }
        | Command::ChargeTokens { .. }
        | Command::RollBackTask { .. }
        | Command::ReceiveOutput { .. }
        | Command::WithdrawOutput { .. }
        | Command::FinishPlan { .. }
        | Command::Archive
        | Command::Unarchive
        | Command::Merge(_) => Vec::new(),
    }
}

fn work_problems(config: &Config, task: &TaskId, work: Option<&Work>, check: Option<&Work>) -> Vec<Problem> {
    let mut found = Vec::new();
    if let Some(work) = work {
        found.extend(wrong_with(config, work, resolve(config, work), ""));
    }
    if let Some(check) = check {
        found.extend(wrong_with(config, check, resolve_check(config, check), "in its check, "));
    }
    found.into_iter().map(|wrong| Problem::task(task, wrong)).collect()
}

/// Returns the problems of some work. `of` is a prefix for messages about its inputs.
fn wrong_with(
    config: &Config,
    work: &Work,
    means: Result<ResolvedWork<'_>, ProblemKind>,
    of: &str,
) -> Vec<ProblemKind> {
    let mut found: Vec<ProblemKind> = means.err().into_iter().collect();
    if let Some(name) = &work.shape {
        match config.shapes.get(name) {
            None => found.push(ProblemKind::UnknownShape { shape: name.clone() }),
            Some(shape) => {
                let misfit =
                    |why| ProblemKind::InputsDoNotFit { shape: name.clone(), detail: format!("{of}{why}") };
                found.extend(shape.violations(&work.inputs.value()).into_iter().map(misfit));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use waypost_core::PlanChanges;

    use super::*;

    #[test]
    fn a_queue_that_a_plan_is_moved_to_must_be_configured() {
        let config = Config::default();
        let move_to = |queue: &str| {
            Command::RevisePlan(Box::new(PlanChanges { queue: Some(queue.into()), ..PlanChanges::default() }))
        };
        assert!(asks_configuration(&move_to("nowhere")));
        let found = command_problems(&config, &move_to("nowhere"));
        assert_eq!(found, [Problem::plan(ProblemKind::UnknownQueue { queue: "nowhere".to_owned() })]);
        assert_eq!(command_problems(&config, &move_to("")), []);
        assert!(!asks_configuration(&Command::RevisePlan(Box::default())));
    }
}
