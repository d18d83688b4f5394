//! What a plan is and what may happen to it.
//!
//! Pure and synchronous: no clock, no randomness, no files, no async. Every door turns its request into a
//! [`Command`]; [`Plan::decide`] says which [`Event`]s follow, and [`Plan::evolve`] is the only place where a plan
//! changes. The same events give the same plan.

pub mod limits;

mod command;
mod diff;
mod draft;
mod event;
mod event_kind;
mod id_table;
mod ids;
mod line_diff;
mod locks;
mod plan;
mod problem;
mod raw_json;
mod refusal;
mod state;
mod suggest;
mod task;
mod task_extras;
mod timestamp;
mod topology;
mod validate;

pub use command::{Command, Outcome, PlanChanges, TaskChanges, Where};
pub use diff::{DiffStat, Difference, differences, set_back};
pub use draft::{Approval, Draft, FORMAT, Phase, PlanSpec, PlanState};
pub use event::Event;
pub use ids::{Actor, ActorKind, BadActor, BadId, PlanId, TaskId};
pub use line_diff::{Change, line_changes};
pub use locks::{LockHolder, LockTable};
pub use plan::{Consequence, Counts, Plan, SnapshotError, Standing, Touched, Waiting, event_kinds};
pub use problem::{Place, Problem, Wrong};
pub use raw_json::Json;
pub use refusal::Refusal;
pub use state::{Received, Status, TaskState};
pub use suggest::nearest;
pub use task::{
    Complexity, Dependency, Digest, Elsewhere, Foreign, Lock, LockMode, Refinement, Retry, Task, TaskSpec,
    Thinking, When, Work,
};
pub use task_extras::{Answer, Aside, Ask, Evidence, Question, Report};
pub use timestamp::{BadTime, Timestamp};
pub use topology::{critical_path, levels, topological_order};
pub use validate::validate;
