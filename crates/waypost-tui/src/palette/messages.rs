//! What the palette searches for, and what is found. Types only.

use waypost_core::TaskId;
use waypost_text::StatusSign;

use crate::plan::PlanKey;

/// Maximum number of plans that a search finds in a store.
pub const PLANS_FOUND_MAX: usize = 50;
/// Maximum number of tasks that a search finds.
pub const TASKS_FOUND_MAX: usize = 100;

/// A search for plans and tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRequest {
    /// Returned with the reply, to recognize late replies to old requests.
    pub ticket: u64,
    pub text: String,
    /// The plan whose tasks come first.
    pub plan: Option<PlanKey>,
}

/// A plan or a task that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    pub plan: PlanKey,
    /// `None` for the plan itself.
    pub task: Option<TaskId>,
    pub title: String,
    pub sign: StatusSign,
    /// Whether the plan is a draft, which opens in the editor.
    pub is_draft: bool,
}
