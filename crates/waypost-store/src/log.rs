//! The log of all versions: its events, its subscriptions, and how a process learns of new versions.

pub(crate) mod change_watch;
pub(crate) mod commit_hook;
pub(crate) mod event;
pub(crate) mod event_log;
pub(crate) mod progress_feed;
pub(crate) mod replay_cache;
pub(crate) mod subscription;
pub(crate) mod subscriptions;
