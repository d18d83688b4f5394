//! What a plan is and what may happen to it.
//!
//! Pure and synchronous: no clock, no randomness, no files, no async. Every door turns its request into a
//! [`Command`]; [`Plan::decide`] says which [`Event`]s follow, and [`Plan::evolve`] is the only place where a plan
//! changes. The same events give the same plan.

pub mod limits;

mod aside;
mod command;
mod diff;
mod draft;
mod event;
mod ids;
mod json;
mod kind;
mod line_diff;
mod locks;
mod names;
mod order;
mod plan;
mod problem;
mod refusal;
mod state;
mod task;
mod time;
mod validate;

pub use aside::{Answer, Aside, Ask, Evidence, Question, Report};
pub use command::{Command, Outcome, PlanChanges, TaskChanges, Where};
pub use diff::{DiffStat, Difference, differences, set_back};
pub use draft::{Approval, Draft, FORMAT, Phase, PlanSpec, PlanState};
pub use event::Event;
pub use ids::{Actor, ActorKind, BadActor, BadId, PlanId, TaskId};
pub use json::Json;
pub use line_diff::{Change, line_changes};
pub use locks::{LockHolder, LockTable};
pub use names::nearest;
pub use order::{critical_path, levels, topological_order};
pub use plan::{Consequence, Counts, Plan, SnapshotError, Standing, Touched, Waiting, event_kinds};
pub use problem::{Place, Problem, Wrong};
pub use refusal::Refusal;
pub use state::{Received, Status, TaskState};
pub use task::{
    Complexity, Dependency, Digest, Elsewhere, Foreign, Lock, LockMode, Refinement, Retry, Task, TaskSpec,
    Thinking, When, Work,
};
pub use time::{BadTime, Timestamp};
pub use validate::validate;
