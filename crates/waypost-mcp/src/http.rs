//! The same server over streamable HTTP, as a service that whoever owns the socket mounts. Knows no socket, no token and no
//! host: who calls was settled before.

use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
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

/// The service for one agent.
pub type HttpService = StreamableHttpService<Server, Sessions>;

/// A service for the agent that `server` is for; requests have at most so many bytes.
pub fn http_service(server: &Server, body_bytes_max: usize) -> HttpService {
    let server = server.clone();
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(Duration::from_secs(SESSION_IDLE_SECONDS));
    let config = StreamableHttpServerConfig::default()
        // Whoever owns the socket has looked at these already.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(body_bytes_max);
    StreamableHttpService::new(move || Ok(server.for_session()), Arc::new(Sessions(sessions)), config)
}

/// The sessions of one agent, not more than [`SESSIONS_MAX`].
#[derive(Debug)]
pub struct Sessions(LocalSessionManager);

/// Why a session does not go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There are enough.
    #[error("this agent has {SESSIONS_MAX} sessions already; end one of them (DELETE), or use it")]
    TooMany,
    /// What the sessions themselves say.
    #[error(transparent)]
    Session(#[from] LocalSessionManagerError),
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        if self.0.sessions.read().await.len() >= SESSIONS_MAX {
            return Err(SessionError::TooMany);
        }
        Ok(self.0.create_session().await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.0.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.0.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        Ok(self.0.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.0.create_stream(id, message).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        Ok(self.0.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.0.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.0.resume(id, last_event_id).await?)
    }
}
