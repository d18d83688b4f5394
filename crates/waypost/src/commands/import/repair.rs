//! Drops dangling references and reports them. Never changes a task's work.

use std::collections::HashMap;

use waypost_core::{Dependency, Draft, Problem, ProblemKind, ProblemLocation, Task, validate};
use waypost_formats::Reading;

/// Whether dropping a reference would fix the problem.
pub(super) fn can_repair(problem: &Problem) -> bool {
    match &problem.wrong {
        ProblemKind::UnknownDependency { .. }
        | ProblemKind::ImpossibleExternal { .. }
        | ProblemKind::SelfDependency
        | ProblemKind::OrphanParent { .. }
        | ProblemKind::DanglingChild { .. }
        | ProblemKind::WrongDepth { .. }
        | ProblemKind::DuplicateLock { .. } => true,
        ProblemKind::DuplicateId
        | ProblemKind::BadId { .. }
        | ProblemKind::Cycle { .. }
        | ProblemKind::ParentCycle { .. }
        | ProblemKind::WorkOnParent
        | ProblemKind::WrongType { .. }
        | ProblemKind::Missing { .. }
        | ProblemKind::Empty { .. }
        | ProblemKind::UnknownExecutor { .. }
        | ProblemKind::UnknownQueue { .. }
        | ProblemKind::UnknownShape { .. }
        | ProblemKind::InputsDoNotFit { .. }
        | ProblemKind::OverLimit { .. }
        | ProblemKind::BesideItself
        | ProblemKind::LaterVersion { .. }
        | ProblemKind::Inexact { .. }
        | ProblemKind::Format { .. } => false,
    }
}

/// Reports external dependencies that can never be satisfied: the agent's name is empty or `*`, and no plan is named. What
/// has ended waits for nothing.
pub(super) fn nowhere(draft: &Draft) -> Vec<Problem> {
    let mut problems = Vec::new();
    let ended = draft.has_ended();
    for Task { spec, .. } in draft.tasks.iter().filter(|_| !ended) {
        for there in spec.depends_on.iter().filter_map(Dependency::external) {
            let agent = there.agent.as_deref().filter(|agent| *agent == "*" || agent.trim().is_empty());
            if let (Some(agent), None) = (agent, &there.plan) {
                let why = format!("{agent:?} names no agent");
                let wrong = ProblemKind::ImpossibleExternal { dependency: there.key(), why };
                problems.push(Problem::task(&spec.id, wrong));
            }
        }
    }
    problems
}

/// Repairs what it can and returns what was done. The remaining problems are still reported.
pub(super) fn repair(reading: &mut Reading) -> Vec<String> {
    let mut done = Vec::new();
    // Lists of children and depths follow from the parents, so they can be dropped.
    reading.problems.retain(|problem| {
        let dropped = can_repair(problem);
        if dropped {
            done.push(format!("{problem}; dropped"));
        }
        !dropped
    });
    for draft in &mut reading.drafts {
        repair_draft(draft, &mut done);
    }
    done
}

fn repair_draft(draft: &mut Draft, done: &mut Vec<String>) {
    let problems = validate(draft).into_iter().filter(can_repair).chain(nowhere(draft));
    let problems: Vec<Problem> = problems.collect();
    if problems.is_empty() {
        return;
    }
    let places: HashMap<String, usize> =
        draft.tasks.iter().enumerate().map(|(number, task)| (task.spec.id.to_string(), number)).collect();
    for problem in problems {
        let ProblemLocation::Task(id) = &problem.place else { continue };
        let Some(spec) = places.get(id).map(|&number| &mut draft.tasks[number].spec) else { continue };
        let drop_dependency = |depends_on: &mut Vec<Dependency>, name: &str| {
            depends_on.retain(|on| on.here().is_none_or(|on| on.as_str() != name));
        };
        match &problem.wrong {
            ProblemKind::UnknownDependency { dependency, .. } => {
                drop_dependency(&mut spec.depends_on, dependency)
            }
            ProblemKind::ImpossibleExternal { dependency, .. } => {
                spec.depends_on.retain(|on| on.external().is_none_or(|there| there.key() != *dependency));
            }
            ProblemKind::SelfDependency => drop_dependency(&mut spec.depends_on, id),
            ProblemKind::OrphanParent { .. } => spec.parent = None,
            ProblemKind::DuplicateLock { key } => {
                let mut seen = false;
                spec.locks.retain(|lock| lock.key != *key || !std::mem::replace(&mut seen, true));
            }
            ProblemKind::DanglingChild { .. }
            | ProblemKind::WrongDepth { .. }
            | ProblemKind::DuplicateId
            | ProblemKind::BadId { .. }
            | ProblemKind::Cycle { .. }
            | ProblemKind::ParentCycle { .. }
            | ProblemKind::WorkOnParent
            | ProblemKind::WrongType { .. }
            | ProblemKind::Missing { .. }
            | ProblemKind::Empty { .. }
            | ProblemKind::UnknownExecutor { .. }
            | ProblemKind::UnknownQueue { .. }
            | ProblemKind::UnknownShape { .. }
            | ProblemKind::InputsDoNotFit { .. }
            | ProblemKind::OverLimit { .. }
            | ProblemKind::BesideItself
            | ProblemKind::LaterVersion { .. }
            | ProblemKind::Inexact { .. }
            | ProblemKind::Format { .. } => continue,
        }
        done.push(format!("{problem}; dropped"));
    }
}
