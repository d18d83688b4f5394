//! What the loop knows of a session.

use crate::{Answer, AnswerResult, Decompose, ModelRequest};
use waypost_core::{Plan, TaskId};

/// A conversation about a plan that is in the store. Cheap to clone: what it knows is what is not in the plan yet.
pub trait Session: Clone {
    /// Every question that can be asked now; questions that are under way are among them.
    fn next(&self, plan: &Plan) -> Vec<ModelRequest>;
    /// What an answer means for the plan as it is.
    fn interpret(&mut self, plan: &Plan, ask: &ModelRequest, answer: &Answer) -> AnswerResult;
    /// The plan did not take what an answer had led to.
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
