//! Executors: they run the work of one attempt. The plan names an executor, and the configuration defines it.
//!
//! Knows nothing of the scheduler or the runner: both receive [`AttemptEvent`]s.

#![warn(clippy::wildcard_enum_match_arm)]

mod agent;
mod async_runtime;
mod attempt;
mod attempt_log;
mod attempt_spec;
pub mod check_evidence;
mod container;
mod dispatch;
pub mod http;
mod kubernetes;
pub mod liveness_lock;
mod outcome;
mod pending_queue;
mod pipes;
mod pool;
mod process;
mod process_tree;
mod prompt;
mod question;
mod remote_job;
mod remote_note;
mod remote_program;
mod resource_name;
mod secrets;
mod slurm;
mod thread_pool;
pub mod traces;
mod worktree;

pub use attempt::{AttemptHandle, PreparedAttempt};
pub use attempt_log::prepare_logs;
pub use attempt_spec::AttemptSpec;
pub use container::{end_left_behind, engines};
pub use outcome::{AttemptEvent, AttemptEvents, AttemptKey, AttemptOutcome, Force, Start};
pub use pool::ExecutorPool;
pub use process_tree::group_of;
pub use remote_job::end_left_job;
pub use remote_note::{RemoteNote, left_behind as left_remote_jobs, remove_empty as remove_remote_notes};
pub use secrets::Secrets;
pub use slurm::check_cluster as look_at_slurm;
pub use thread_pool::soon;
