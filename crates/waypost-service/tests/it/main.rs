//! The rules of the service that no front end changes.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod approval;
mod edit;
mod gates;
mod gates_across_plans;
mod lifecycle;
mod plan_status;
mod preview;
mod sharing;
mod sharing_histories;
mod sharing_kit;
mod signatures;
mod task_search;
mod update;
