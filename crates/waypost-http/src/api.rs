//! The API for programs and for the dashboard: everything that can be done with plans, as JSON over HTTP.
//!
//! Each request is parsed, handed to the service in one call, and its reply rendered. Nothing here decides what is allowed but who
//! may write at all.

mod actions;
mod approval;
mod approval_state;
mod attempts;
mod edits;
mod event_broadcast;
mod events;
mod extract;
mod graph;
mod history;
mod log;
mod me;
mod next;
mod openapi;
mod plans;
mod response;
mod routes;
mod state;
mod tasks;
mod validate;
mod workers;

pub(crate) use self::response::Problem;
pub use self::routes::openapi;
pub(crate) use self::routes::router;
pub use self::state::Api;
