//! Where plans live.
//!
//! [`Store`] is the trait of the backends: memory, JSON files, SQLite, PostgreSQL. [`Plans`] stands in front of one: it runs
//! `decide` inside the store's transaction, appends the events as one version, keeps the plans that a process works on in
//! memory, and commits writers who wait together in one go.

mod across;
mod clock;
mod deliver;
mod events;
mod file;
mod files;
mod follow;
mod group;
mod history;
mod list;
mod memory;
mod open;
mod plans;
mod postgres;
mod record;
mod sqlite;
mod store;
mod subscriptions;
mod watch;

pub use across::{AGENT_PLANS_MAX, RING_TASKS_MAX};
pub use events::{
    BadCursor, BadFilter, Cursor, EVENT_VERSIONS_MAX, EVENTS_MAX, EVENTS_WAIT_SECONDS_MAX, EventFilter,
    EventPage, FILTER_NAMES_MAX, Happening, Occurrence, event_kinds,
};
pub use file::FileStore;
pub use history::{Finding, HISTORY_PAGE};
pub use memory::MemoryStore;
pub use open::open;
pub use plans::{Answer, Committed, Conflict, NewPlan, Plans, WriteError, WriteRequest};
pub use postgres::{PostgresStore, Traffic};
pub use record::{
    Entry, Head, HeldLock, IndexChanges, IndexRows, Lease, LogFilter, Page, Query, ReadyTask, Shelf, Sort,
    Wait, WrittenSince,
};
pub use sqlite::{Durability, SqliteStore};
pub use store::{
    Append, BUSY_SECONDS_MAX, Expected, Look, Read, SNAPSHOT_MILESTONE, Store, StoreError, Transaction, Work,
};
pub use subscriptions::{SUBSCRIPTIONS_MAX, Since, Subscription, SubscriptionError, Trouble};
pub use watch::{WATCH_PAUSE, WATCH_SLOWLY, Watch, watch_file};
