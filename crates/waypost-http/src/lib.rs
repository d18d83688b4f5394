//! The door for programs over HTTP: it owns the socket, looks who comes in, and hands them on to the services that were
//! mounted. It knows none of these services: whoever builds the program brings them.
//!
//! Everybody but who asks for `/health` needs a token, and the token says which agent calls. A service is made for each
//! token, so that nobody ever gets at the sessions of another.

mod api;
mod assets;
mod host_origin_guard;
mod listener;
mod metrics;
mod router;
mod sessions;
mod tokens;

pub use api::{Api, openapi};
pub use host_origin_guard::HostOriginGuard;
pub use listener::{
    CONNECTIONS_MAX, HEADER_SECONDS_MAX, SPARE_CONNECTIONS_MAX, SPARE_SECONDS_MAX, STOP_SECONDS_MAX, serve,
};
pub use metrics::{METRICS_PATH, metrics};
pub use router::{BODY_BYTES_MAX, BODY_SECONDS_MAX, Mount, Mounted, Site};
pub use sessions::{SESSION_SECONDS_MAX, SESSIONS_MAX};
pub use tokens::{Role, TOKENS_MAX, Token, TokenError, Tokens};
