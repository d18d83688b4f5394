//! Runs plans: [`Scheduler`] decides which task starts when (pure: events in, actions out), executors do the work, and
//! [`Runner`] is the event loop between them and the store.

#![warn(clippy::wildcard_enum_match_arm)]

mod action_queue;
mod observe;
mod orphans;
mod reporters;
mod runner;
mod scheduler;
mod slots;
mod store_clock;

pub use action_queue::ActionQueue;
pub use observe::{Happened, Observer, happened_since};
pub use reporters::{
    REPORT_BYTES_MAX, REPORTS_WAITING_MAX, StoreReports, WEBHOOK_AGE_SECONDS_MAX, WebhookOutbox, payload,
    reporter_owner, reports,
};
pub use runner::{
    Controller, ExitPolicy, Follow, Options, RunError, RunObserver, RunWarning, Runner, Summary, View,
};
pub use scheduler::{
    Action, AfterFailure, Control, Idleness, Input, LOST_ATTEMPTS_MIN, Loss, News, RunEvent, RunLimits,
    Scheduler, SlotKeeper, TRY_AGAIN_ATTEMPTS, TaskFilter, Unshared,
};
pub use waypost_exec::check_evidence::CHECK_ATTEMPTS;
pub use waypost_exec::{AttemptKey, AttemptOutcome, Force, Start};
