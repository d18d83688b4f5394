//! The same server over streamable HTTP, as a service that whoever owns the socket mounts. Knows no socket, no token and no
//! host: who calls was settled before.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::server::Server;

/// Sessions of one agent at the same time.
pub const SESSIONS_MAX: usize = 64;
/// Seconds after which a session that nobody uses ends.
pub const SESSION_IDLE_SECONDS: u64 = 60 * 60;
