//! The interface between the planning loop and a session.

use crate::{Answer, AnswerResult, Decompose, ModelRequest};
use waypost_core::{Plan, TaskId};

/// A conversation about a stored plan. Cheap to clone: it holds only what is not in the plan yet.
pub trait Session: Clone {
    /// The requests that can be sent now, including pending ones.
    fn next(&self, plan: &Plan) -> Vec<ModelRequest>;
    /// Interprets an answer against the current plan.
    fn interpret(&mut self, plan: &Plan, ask: &ModelRequest, answer: &Answer) -> AnswerResult;
    /// The plan refused the commands of an answer.
    fn refused(&mut self, task: &TaskId, why: &str);
}

impl Session for Decompose {
    fn next(&self, plan: &Plan) -> Vec<ModelRequest> {
        Self::next(self, plan)
    }

    fn interpret(&mut self, plan: &Plan, ask: &ModelRequest, answer: &Answer) -> AnswerResult {
        Self::interpret(self, plan, ask, answer)
    }

    fn refused(&mut self, task: &TaskId, why: &str) {
        Self::refused(self, task, why);
    }
}
