//! Decomposes goals until every leaf is small enough: decides what to ask next, and what the answers mean for the plan.
//!
//! The open goals follow from the plan. The session itself holds only answers that are not in the plan yet (subtasks whose
//! dependencies are still being asked for, rejected answers). With the plan and the answers by slot, a session can be
//! restarted. Commands carry no tokens: the driver charges each answer once.

mod atomicity;
mod context;
mod dependencies;
mod progress;
mod refine;
mod session;
mod subtasks;

use waypost_core::{Plan, Refinement, Task, TaskId};

use crate::prompting::{Tries, cut_first, slot_name};
use crate::{Answer, ModelRequest, Purpose};
use progress::{ProgressView, Stage};
use session::{PendingSubtasks, marked, reasoning_of};

pub use session::{
    ADDED, AnswerKind, AnswerResult, Bounds, CHILDREN_LIMIT, Decompose, GIVEN_UP, Progress,
    REASONING_BYTES_MAX, Refining, Stopped,
};

impl Decompose {
    /// The requests that can be sent now, at most `parallel_max`. Includes pending requests, which the caller recognizes by
    /// their slots. Empty if nothing is left to ask.
    pub fn next(&self, plan: &Plan) -> Vec<ModelRequest> {
        let view = ProgressView::of(self, plan);
        view.open()
            .take(self.bounds.parallel_max)
            .map(|(task, stage)| self.question(plan, task, stage))
            .collect()
    }

    /// Whether nothing is left to ask.
    pub fn is_over(&self, plan: &Plan) -> bool {
        ProgressView::of(self, plan).open().next().is_none()
    }

    pub fn progress(&self, plan: &Plan) -> Progress {
        ProgressView::of(self, plan).progress()
    }

    /// Interprets an answer against the current plan.
    pub fn interpret(&mut self, plan: &Plan, ask: &ModelRequest, answer: &Answer) -> AnswerResult {
        let stale = AnswerResult { commands: Vec::new(), kind: AnswerKind::Stale, repairs: Vec::new() };
        let Some(task) = ask.task.as_ref().and_then(|id| plan.task(id.as_str())) else { return stale };
        let stage = ProgressView::of(self, plan).stage_of(&task.spec.id);
        let slot = first_slot(ask.purpose, &task.spec.id);
        let open = self.tries.get(&slot).map_or(&slot, |tries| &tries.open.slot);
        if stage.is_none_or(|stage| stage.purpose() != ask.purpose) || *open != ask.slot {
            return stale;
        }
        self.tries.entry(slot.clone()).or_insert_with(|| Tries::new(ask.clone()));
        let heard = match ask.purpose {
            Purpose::Atomicity => self.interpret_atomicity(plan, task, answer),
            Purpose::Decompose => self.interpret_subtasks(plan, task, answer),
            Purpose::Dependencies => self.interpret_dependencies(plan, task, answer),
            Purpose::Refine => self.interpret_refinement(plan, task, answer),
            Purpose::Generate
            | Purpose::Digest
            | Purpose::WriteExam
            | Purpose::AnswerExam
            | Purpose::GradeExam => {
                return stale;
            }
        };
        match heard {
            Ok(heard) => {
                self.tries.remove(&slot);
                heard
            }
            Err(problems) => self.unusable(task, ask, answer, cut_first(answer, problems)),
        }
    }

    /// The plan refused the commands of an answer: the goal is left as it is for the rest of this session.
    pub fn refused(&mut self, task: &TaskId, why: &str) {
        self.held.remove(task);
        let why = format!("the plan did not take it: {why}");
        self.stopped.insert(task.clone(), Stopped::GivenUp { why });
    }

    /// Handles an unusable answer: asks again, or gives up.
    fn unusable(
        &mut self,
        task: &Task,
        ask: &ModelRequest,
        answer: &Answer,
        problems: Vec<String>,
    ) -> AnswerResult {
        let id = &task.spec.id;
        let slot = first_slot(ask.purpose, id);
        let tries = self.tries.entry(slot.clone()).or_insert_with(|| Tries::new(ask.clone()));
        if tries.failed(&self.manner, answer, &problems) {
            return AnswerResult {
                commands: Vec::new(),
                kind: AnswerKind::Again { problems },
                repairs: Vec::new(),
            };
        }
        let asked = tries.answers.len();
        self.tries.remove(&slot);
        match ask.purpose {
            Purpose::Dependencies => self.without_dependencies(task, problems),
            Purpose::Refine => {
                self.refined.insert(id.clone());
                AnswerResult {
                    commands: Vec::new(),
                    kind: AnswerKind::Without { problems },
                    repairs: Vec::new(),
                }
            }
            purpose @ (Purpose::Generate
            | Purpose::Atomicity
            | Purpose::Decompose
            | Purpose::Digest
            | Purpose::WriteExam
            | Purpose::AnswerExam
            | Purpose::GradeExam) => {
                let problems = problems.join("; ");
                let why = format!(
                    "none of {asked} answers on its {} could be used; the last: {problems}",
                    purpose.name()
                );
                let reasoning = format!("{GIVEN_UP}{why}");
                let commands = marked(task, Refinement::Decomposing, &reasoning).into_iter().collect();
                let stopped = Stopped::GivenUp { why };
                self.stopped.insert(id.clone(), stopped.clone());
                AnswerResult { commands, kind: AnswerKind::Stopped(stopped), repairs: Vec::new() }
            }
        }
    }

    fn question(&self, plan: &Plan, task: &Task, stage: Stage) -> ModelRequest {
        let id = &task.spec.id;
        let slot = first_slot(stage.purpose(), id);
        match self.tries.get(&slot) {
            Some(tries) => tries.open.clone(),
            None => {
                let values = match stage {
                    Stage::Atomicity => self.atomicity_values(plan, task),
                    Stage::Decompose => self.children_values(plan, task),
                    Stage::Dependencies => self.siblings_values(plan, task),
                    Stage::Refine => self.refinement_values(plan, task),
                };
                self.manner.ask(stage.purpose(), Some(id.clone()), slot, &values)
            }
        }
    }
}

/// The slot of the first request about a goal for a purpose.
fn first_slot(purpose: Purpose, id: &TaskId) -> String {
    format!("{}/{}", purpose.name(), slot_name(id))
}
