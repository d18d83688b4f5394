//! Executors: they run the work of one attempt. The plan names an executor, and the configuration defines it.
//!
//! Knows nothing of the scheduler or the runner: both receive [`AttemptEvent`]s.

mod agent;
mod async_runtime;
mod attempt;
mod attempt_log;
mod attempt_spec;
pub mod check_evidence;
mod container;
mod dispatch;
mod git;
pub mod http;
mod kubernetes;
pub mod liveness_lock;
mod outcome;
mod pending_queue;
mod pool;
mod process;
mod prompt;
mod question;
mod resource_name;
mod slurm;
mod thread_pool;
pub mod traces;
mod worktree;

pub use attempt::{AttemptHandle, PreparedAttempt};
pub use attempt_log::without_secrets;
pub use attempt_spec::AttemptSpec;
pub use container::{end_left_behind, engines};
pub use git::Git;
pub use outcome::{AttemptEvent, AttemptEvents, AttemptKey, AttemptOutcome, Force, Start};
pub use pool::ExecutorPool;
pub use slurm::check_cluster as look_at_slurm;
pub use thread_pool::soon;
