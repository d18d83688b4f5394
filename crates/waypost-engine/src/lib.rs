//! What happens: plans are run.
//!
//! [`Config`] is what the operator allows, [`admit`] looks whether a plan keeps to it, [`Scheduler`] decides which task
//! starts when (pure: what happened in, what to do out), executors do the work, and [`Runner`] is the loop between them and
//! the store. Threads and channels; only workers on other machines share a small asynchronous runtime.

pub mod admit;
pub mod config;
pub mod models;
pub mod submit;

mod answers;
mod claim;
mod differences;
mod executors;
mod identity;
mod logs;
mod observe;
mod preview;
mod proof;
mod queues;
mod reporters;
mod roster;
mod run;
mod scheduler;
mod shapes;
mod summary;
pub mod thinking;
mod told;
pub mod traces;
mod vigil;
mod why;

pub use answers::{answer_command, is_for_people};
pub use claim::{Claim, Claimed, claim, give_back_lost, on_offer};
pub use config::{BadConfig, Config, ConfigProblem, Layer, Origin};
pub use differences::{Sign, Texts, difference_lines};
pub use executors::{Surroundings, log_path, log_tail, look_at_slurm};
pub use identity::worker_name;
pub use logs::{FoundLog, NoLog, find_log};
pub use observe::{Happened, News, Observer, happened_since};
pub use preview::{Disclosure, disclosure, is_to_be_run, preview, preview_of_check, preview_of_work};
pub use proof::CHECK_ATTEMPTS;
pub use reporters::{
    REPORT_BYTES_MAX, REPORTS_WAITING_MAX, Relay, WEBHOOK_AGE_SECONDS_MAX, payload, reporter_owner, reports,
};
pub use roster::{no_worker, worker_state, workers_of};
pub use run::{Controller, Follow, Options, Patience, Remark, RunError, Runner, Summary, View, Watcher};
pub use scheduler::{
    Action, AfterFailure, AttemptKey, Bounds, Control, Ending, Force, Input, LOST_ATTEMPTS_MIN, Loss, Notice,
    Rest, Scheduler, SlotKeeper, Start, TRY_AGAIN_ATTEMPTS, Takes, Unshared,
};
pub use summary::{consequence_summary, summary};
pub use told::{task_row, whole_task};
pub use waypost_planner as planner;
pub use why::{Reason, Why, why};
