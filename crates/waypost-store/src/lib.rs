//! Where plans live.
//!
//! [`Store`] is the trait of the backends: memory, JSON files, SQLite, PostgreSQL. [`Plans`] stands in front of one: it runs
//! `decide` inside the store's transaction, appends the events as one version, keeps the plans that a process works on in
//! memory, and commits writers who wait together in one go.

mod across;
mod attempt_log_file;
mod clock;
mod copy;
mod deliver;
mod events;
mod file;
mod files;
mod follow;
mod group;
mod heard;
mod history;
mod hold;
mod list;
mod memory;
mod meters;
mod open;
mod pending;
mod plans;
mod postgres;
mod prune;
mod record;
mod sqlite;
mod store;
mod subscriptions;
mod watch;
mod whereabouts;
mod worker_identity;
mod workers;

pub use across::{AGENT_PLANS_MAX, RING_TASKS_MAX};
pub use attempt_log_file::{FoundLog, NoLog, file_name as log_file_name, find_log, log_path, log_tail};
pub use copy::{Copied, CopyError, Progress, Running, SUBSCRIPTIONS_COPIED_MAX, copy};
pub use events::{
    BadCursor, BadFilter, Cursor, EVENT_VERSIONS_MAX, EVENTS_MAX, EVENTS_WAIT_SECONDS_MAX, EventFilter,
    EventPage, FILTER_NAMES_MAX, Happening, Occurrence,
};
pub use file::FileStore;
pub use heard::{Heard, hear_of_commits};
pub use history::{Finding, HISTORY_PAGE};
pub use hold::{HOLD_SECONDS, Held};
pub use memory::MemoryStore;
pub use meters::{Counter, Distribution, Family, Histogram, LABELS_MAX, Meters, Sizes, Times, meters};
pub use open::open;
pub use plans::{Answer, BuildCommands, Committed, Conflict, NewPlan, Plans, WriteError, WriteRequest};
pub use postgres::{PostgresStore, Traffic, without_password};
pub use prune::{HeldBack, Looked, Mode as PruneMode, PrunedPlan, UNREAD_DAYS_MAX};
pub use record::{
    Entry, Head, HeldLock, IndexChanges, IndexRows, Lease, LogFilter, Page, Pruned, Query, ReadyTask, Shelf,
    Sort, Terms, Totals, Wait, WrittenSince,
};
pub use sqlite::{Durability, SqliteStore};
pub use store::{
    Adopted, Append, BUSY_SECONDS_MAX, Expected, Look, Pruning, Reach, Read, SNAPSHOT_MILESTONE, Store,
    StoreError, Transaction, Work,
};
pub use subscriptions::{SUBSCRIPTIONS_MAX, Since, Subscription, SubscriptionError, Trouble};
pub use watch::{WATCH_PAUSE, WATCH_SLOWLY, Watch, watch_file};
pub use waypost_core::event_kinds;
pub use whereabouts::{WARNINGS_MAX, Whereabouts};
pub use worker_identity::{WORKER_VARIABLE, host, is_dead, is_elsewhere, worker_name};
pub use workers::{
    ATTEMPT_LOG_BYTES_MAX, AttemptLog, Slots, WORKER_KEPT_SECONDS, WORKERS_PAGE_MAX, Worker, WorkerKind,
    WorkerState,
};
