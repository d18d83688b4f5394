//! Runs plans: [`Scheduler`] decides which task starts when (pure: what happened in, what to do out), executors do the
//! work, and [`Runner`] is the event loop between them and the store.

mod observe;
mod orphans;
mod reporters;
mod runner;
mod scheduler;
mod slots;

pub use observe::{Happened, News, Observer, happened_since};
pub use reporters::{
    REPORT_BYTES_MAX, REPORTS_WAITING_MAX, Relay, WEBHOOK_AGE_SECONDS_MAX, payload, reporter_owner, reports,
};
pub use runner::{Controller, Follow, Options, Patience, Remark, RunError, Runner, Summary, View, Watcher};
pub use scheduler::{
    Action, AfterFailure, Bounds, Control, Input, LOST_ATTEMPTS_MIN, Loss, Notice, Rest, Scheduler,
    SlotKeeper, TRY_AGAIN_ATTEMPTS, Takes, Unshared,
};
pub use waypost_exec::check_evidence::CHECK_ATTEMPTS;
pub use waypost_exec::{AttemptKey, AttemptOutcome, Force, Start};
