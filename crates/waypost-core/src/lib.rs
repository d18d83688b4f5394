//! The domain model: what a plan is and which changes to it are allowed.
//!
//! Pure and synchronous: no clock, no randomness, no files, no async. Every front end turns its request into a
//! [`Command`]; [`Plan::decide`] returns the [`Event`]s that follow, and [`Plan::evolve`] is the only place where a
//! plan changes. The same events always produce the same plan.

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod canonical;
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
mod merge_request;
mod plan;
mod problem;
mod proof;
mod raw_json;
mod refusal;
mod state;
mod suggest;
mod task;
mod task_act;
mod task_extras;
mod timestamp;
mod topology;
mod validate;

pub use command::{Command, Outcome, PlanChanges, Position, TaskChanges};
pub use diff::{DiffStat, Difference, differences, differences_in_full, reopened_tasks};
pub use draft::{
    Approval, ApprovalKind, ApprovalSignature, ApprovedWork, Attestation, DEFAULT_QUEUE, Draft, FORMAT,
    GateAhead, Phase, PlanSpec, PlanState, Rejection, StartRefusal, StartRefusalReason,
};
pub use event::Event;
pub use ids::{Actor, ActorKind, BadActor, BadId, PlanId, TaskId};
pub use line_diff::{Change, line_changes, merged_texts};
pub use locks::{LockHolder, LockTable};
pub use merge_request::{
    ARCHIVED_ELSEWHERE, ENDED_ELSEWHERE, MergeRequest, PLAN_ENDED, SharedStop, StopKind,
};
pub use plan::{
    BlockReason, Counts, DerivedEvent, EffectiveStatus, IndexDelta, OpenBefore, Plan, SnapshotError,
    event_kinds,
};
pub use problem::{Problem, ProblemKind, ProblemLocation};
pub use proof::Proof;
pub use raw_json::Json;
pub use refusal::Refusal;
pub use state::{Status, TaskState, UpstreamResult};
pub use suggest::nearest;
pub use task::{
    Complexity, Dependency, DependencyRule, Digest, ExternalTaskRef, ForeignFields, Lock, LockMode,
    PlannerNotes, Refinement, Retry, Task, TaskSpec, Work,
};
pub use task_act::TaskAct;
pub use task_extras::{
    Answer, Comment, Evidence, GateOutcome, GateRecord, Hold, Question, QuestionRequest, Report, TaskExtras,
};
pub use timestamp::{BadTime, Timestamp};
pub use topology::{critical_path, levels, topological_order};
pub use validate::validate;
