//! The HTTP server: the socket, authentication by tokens and sessions, the API, the dashboard, and services that the
//! binary mounts (MCP, metrics). It does not know what the mounted services do.
//!
//! Every path needs a token, which names the caller, or for the API a session; except the health checks, `/login` and the
//! dashboard's files. A mounted service is created per token, so that no caller reaches the sessions of another.

#![warn(clippy::wildcard_enum_match_arm)]

mod api;
mod assets;
mod host_origin_guard;
mod listener;
mod load_limits;
mod metrics;
mod models;
mod router;
mod sessions;
mod tokens;

pub use api::{Api, openapi};
pub use host_origin_guard::HostOriginGuard;
pub use listener::{
    CONNECTIONS_MAX, HEADER_SECONDS_MAX, SPARE_CONNECTIONS_MAX, SPARE_SECONDS_MAX, STOP_SECONDS_MAX, serve,
};
pub use load_limits::{
    BODY_PARTS_MAX, LARGE_REQUESTS_PER_TOKEN_MAX, STREAMS_MAX, STREAMS_PER_TOKEN_MAX, TASKS_AT_ONCE_MAX,
};
pub use metrics::{METRICS_PATH, metrics, metrics_page};
pub use models::{ModelFailure, Models, PlanJob, PlanWish};
pub use router::{BODY_BYTES_MAX, BODY_SECONDS_MAX, Mount, Mounted, Site};
pub use sessions::{LOGIN_CODE_SECONDS_MAX, SESSION_SECONDS_MAX, SESSIONS_MAX, SESSIONS_PER_TOKEN_MAX};
pub use tokens::{NewToken, Role, TOKENS_MAX, Token, TokenError, TokenFiles, Tokens};
