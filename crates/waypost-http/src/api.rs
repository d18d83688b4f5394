//! The JSON API over HTTP for programs and the dashboard: every operation on plans.
//!
//! A handler parses the request, calls the service once, and renders the reply. The only rule decided here is which
//! roles may write.

mod actions;
mod approval;
mod approval_state;
mod attempts;
mod conflicts;
mod edits;
mod event_broadcast;
mod events;
mod extract;
mod graph;
mod history;
mod inbox;
mod layout;
mod log;
mod me;
mod next;
mod openapi;
mod plans;
mod response;
mod response_schemas;
mod routes;
mod search;
mod state;
mod tasks;
mod validate;
mod workers;

pub(crate) use self::response::Problem;
pub use self::routes::openapi;
pub(crate) use self::routes::router;
pub use self::state::Api;
