//! Storage of plans.
//!
//! [`Store`] is the trait of the four backends: memory, JSON files, SQLite and PostgreSQL. [`PlanStore`] is the front
//! of one backend: it runs `decide` inside the store's transaction, appends the events as one version, caches the plans
//! that a process works on, and commits waiting writers together (group commit).

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

mod attempt_log_file;
mod backends;
mod clock;
mod cross_plan;
mod dirs;
mod error;
mod log;
mod log_times;
mod maintenance;
mod metrics;
mod named_lock;
mod open;
mod plans;
mod rows;
mod store;
mod stored_version;
mod worker_identity;
mod workers;

pub use attempt_log_file::{
    FoundLog, NoLog, file_name as log_file_name, find_log, log_path, log_tail, open_log,
};
pub use backends::file::FileStore;
pub use backends::memory::MemoryStore;
pub use backends::postgres::{PostgresStore, Traffic, without_password};
pub use backends::sqlite::{Durability, SqliteStore};
pub use cross_plan::locate::WARNINGS_MAX;
pub use cross_plan::resolve::{AGENT_PLANS_MAX, RING_TASKS_MAX};
pub use cross_plan::target_status::TargetStatus;
pub use dirs::{make_state_folder, open_state_file};
pub use error::{BUSY_SECONDS_MAX, StoreError};
pub use log::change_watch::{WATCH_PAUSE, WATCH_SLOWLY, Watch, watch_file};
pub use log::commit_hook::{CommitInfo, set_commit_hook};
pub use log::event::{BadCursor, BadFilter, Cursor, EventFilter, EventSource, FILTER_NAMES_MAX, LogEvent};
pub use log::event_log::{EVENT_VERSIONS_MAX, EVENTS_MAX, EVENTS_WAIT_SECONDS_MAX, EventPage};
pub use log::progress_feed::ProgressFeed;
pub use log::subscription::{DroppedEvents, Subscription};
pub use log::subscriptions::{SUBSCRIPTIONS_MAX, Since, SubscriptionError};
pub use log_times::{LOG_TIMES_MAX, LogTimes, log_time_line, log_times_path};
pub use maintenance::copy::{Copied, CopyError, Progress, Running, SUBSCRIPTIONS_COPIED_MAX, copy};
pub use maintenance::integrity::{Finding, HISTORY_PAGE};
pub use maintenance::prune::{HeldBack, Looked, Mode as PruneMode, PrunedPlan, UNREAD_DAYS_MAX};
pub use maintenance::verify::{Anchor, BadAnchor, HistoryBreak, Verified};
pub use metrics::{Counter, Distribution, Family, Histogram, LABELS_MAX, Meters, Sizes, Times, meters};
pub use named_lock::{HOLD_SECONDS, NamedLock};
pub use open::{open, open_for_one_command};
pub use plans::PlanStore;
pub use plans::request::{
    Answer, AppendCommands, BuildCommands, Committed, Conflict, MakeRows, NewPlan, Purge, SharedGroup,
    SharedRow, SharedWrite, WriteError, WriteRequest,
};
pub use rows::{
    ArchiveFilter, HeldLock, IndexChanges, IndexRows, Lease, LeaseFilter, LeaseTerms, LeaseUpdate,
    LockFilter, LogFilter, LogPage, Page, PlanProgress, PlanState, PlanSummary, Pruned, Query, QueueTotals,
    ReadyTask, SYNC_ACTOR, SharedKeys, SharedScope, Sort, StoreState, SubscriptionFilter, TaskProgress,
    Totals, UNNUMBERED, Unreadable, VersionRecord, Wait, WaitFilter, WorkerFilter, WrittenSince,
};
pub use store::{
    Append, Appended, Inspect, Look, Maintenance, Pruning, Read, ReadHints, Record, Rewrite,
    SNAPSHOT_MILESTONE, SharingScope, Store, StorePlace, Transaction, Work,
};
pub use stored_version::StoredVersion;
pub use waypost_core::event_kinds;
pub use worker_identity::{WORKER_VARIABLE, host, is_alive, is_dead, is_remote, worker_name, worker_place};
pub use workers::{
    ATTEMPT_LOG_BYTES_MAX, AttemptLog, Slots, WORKER_KEPT_SECONDS, WORKERS_PAGE_MAX, Worker, WorkerKind,
    WorkerState,
};
