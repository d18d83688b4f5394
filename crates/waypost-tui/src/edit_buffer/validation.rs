//! Validation problems of a plan that is being edited, by task. `waypost_core::validate` finds them.

use std::collections::HashMap;

use waypost_core::{Draft, Problem, ProblemKind, ProblemLocation, validate};

/// Problems, and the tasks at which they are shown.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    by_task: HashMap<String, Vec<usize>>,
}

impl Problems {
    pub(super) fn of(draft: &Draft) -> Self {
        let list = validate(draft);
        let mut by_task: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, problem) in list.iter().enumerate() {
            // A cycle is a problem of every task on it.
            let names: Vec<&String> = match (&problem.wrong, &problem.place) {
                (ProblemKind::Cycle { path } | ProblemKind::ParentCycle { path }, _) => path.iter().collect(),
                (_, ProblemLocation::Task(id)) => vec![id],
                (_, ProblemLocation::Plan | ProblemLocation::TaskNumber(_)) => Vec::new(),
            };
            for name in names {
                let filed = by_task.entry(name.clone()).or_default();
                if filed.last() != Some(&at) {
                    filed.push(at);
                }
            }
        }
        for filed in by_task.values_mut() {
            filed.dedup();
        }
        Self { list, by_task }
    }

    pub fn all(&self) -> &[Problem] {
        &self.list
    }

    pub fn of_task(&self, id: &str) -> impl Iterator<Item = &Problem> {
        self.by_task.get(id).into_iter().flatten().filter_map(|&at| self.list.get(at))
    }

    pub fn has(&self, id: &str) -> bool {
        self.by_task.contains_key(id)
    }

    /// The cycle that a task is part of.
    pub fn cycle(&self, id: &str) -> Option<&[String]> {
        self.of_task(id).find_map(|problem| match &problem.wrong {
            ProblemKind::Cycle { path } | ProblemKind::ParentCycle { path } => Some(path.as_slice()),
            ProblemKind::DuplicateId
            | ProblemKind::BadId { .. }
            | ProblemKind::UnknownDependency { .. }
            | ProblemKind::ImpossibleExternal { .. }
            | ProblemKind::SelfDependency
            | ProblemKind::OrphanParent { .. }
            | ProblemKind::DanglingChild { .. }
            | ProblemKind::WrongDepth { .. }
            | ProblemKind::WorkOnParent
            | ProblemKind::WrongType { .. }
            | ProblemKind::Missing { .. }
            | ProblemKind::Empty { .. }
            | ProblemKind::UnknownExecutor { .. }
            | ProblemKind::UnknownQueue { .. }
            | ProblemKind::UnknownShape { .. }
            | ProblemKind::InputsDoNotFit { .. }
            | ProblemKind::DuplicateLock { .. }
            | ProblemKind::OverLimit { .. }
            | ProblemKind::BesideItself
            | ProblemKind::Format { .. }
            | ProblemKind::LaterVersion { .. }
            | ProblemKind::Inexact { .. } => None,
        })
    }
}
